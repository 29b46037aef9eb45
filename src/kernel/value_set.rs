//! A set of values, in which a search looks up the options of one position.

/// A set of 16-bit values, one bit each, in memory of fixed size (8 KiB): no operation tests a bound.
pub(crate) struct ValueSet {
    words: [u64; 1 << 10],
    /// Number of values.
    pub(super) count: usize,
}

impl ValueSet {
    /// The set of these values, which differ.
    pub(crate) fn of(values: &[u16]) -> ValueSet {
        let mut words = [0; 1 << 10];
        for value in values {
            words[usize::from(value / 64)] |= 1 << (value % 64);
        }
        ValueSet { words, count: values.len() }
    }

    /// A word whose lowest bit tells whether the set has the value. Ignore its other bits.
    #[inline]
    pub(super) fn word_at(&self, value: u16) -> u64 {
        self.words[usize::from(value / 64)] >> (value % 64)
    }

    /// Whether the set has a value.
    #[inline]
    pub(crate) fn contains(&self, value: u16) -> bool {
        self.word_at(value) & 1 == 1
    }

    /// Removes a value. Returns whether the set had it.
    #[inline]
    pub(crate) fn remove(&mut self, value: u16) -> bool {
        let is_in = self.contains(value);
        if is_in {
            self.words[usize::from(value / 64)] &= !(1 << (value % 64));
            self.count -= 1;
        }
        is_in
    }
}

//! Checksums of data that is written once and read for a long time.
//!
//! A flipped bit in such data could make every later value wrong without any other sign. So each piece of data gets a
//! checksum when it is created, and the solver compares it before each commit and before the data is replaced.
//!
//! Invariant: a change of data under a checksum is reported by the next check, even when the data was replaced in
//! between.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;

/// A 64-bit checksum of data in memory: two different inputs have the same one with probability 2^-64. It never
/// outlives the process, so it may use [`DefaultHasher`], whose algorithm can change with the compiler.
pub(super) fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// A value with the checksum that it had when it was created. The value changes only as a whole, by
/// [`Checked::replace`].
#[derive(Clone, Debug)]
pub(super) struct Checked<T> {
    value: T,
    checksum: u64,
    /// Whether a value that was replaced had another checksum than at its creation.
    damaged: bool,
}

impl<T: Hash> Checked<T> {
    pub(super) fn new(value: T) -> Checked<T> {
        let checksum = hash(&value);
        Checked { value, checksum, damaged: false }
    }

    /// Replaces the value, after comparing the old value with its checksum.
    pub(super) fn replace(&mut self, value: T) {
        self.damaged |= hash(&self.value) != self.checksum;
        self.checksum = hash(&value);
        self.value = value;
    }

    /// Whether this value, and every value that it replaced, agrees with its checksum.
    pub(super) fn is_intact(&self) -> bool {
        !self.damaged && hash(&self.value) == self.checksum
    }

    /// The value without its checksum, to flip bits of it.
    #[cfg(test)]
    pub(super) fn value_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Deref for Checked<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

/// The checksum of a list whose entries come, go and change their order: the sum of the checksums of its entries, each
/// taken when the entry is added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EntrySum(u64);

impl EntrySum {
    /// The checksum of these entries.
    pub(super) fn of<T: Hash>(entries: &[T]) -> EntrySum {
        let mut sum = EntrySum::default();
        for entry in entries {
            sum.add(entry);
        }
        sum
    }

    /// Enters an entry that joins the list.
    pub(super) fn add(&mut self, entry: impl Hash) {
        self.0 = self.0.wrapping_add(hash(entry));
    }

    /// Removes an entry that leaves the list.
    pub(super) fn remove(&mut self, entry: impl Hash) {
        self.0 = self.0.wrapping_sub(hash(entry));
    }
}

/// The checksum of the first values of a sequence: the sum of G(n) m(n) modulo 2^64, where m(n) is an odd number mixed
/// from the bits of n. So a change of one value changes it, and a change of several values almost certainly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SequenceSum {
    sum: u64,
    count: u64,
}

impl SequenceSum {
    /// Number of values added.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Adds the next values.
    pub(super) fn add(&mut self, values: &[u16]) {
        /// 2^64 divided by the golden ratio.
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        for &value in values {
            let mixed = self.count.wrapping_mul(STEP);
            let odd = (mixed ^ mixed >> 32).wrapping_mul(STEP) | 1;
            self.sum = self.sum.wrapping_add(odd.wrapping_mul(u64::from(value)));
            self.count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_a_sequence_depends_on_each_value_and_on_no_division() {
        let sum = |pieces: &[&[u16]]| {
            let mut sum = SequenceSum::default();
            pieces.iter().for_each(|piece| sum.add(piece));
            sum
        };
        let whole = sum(&[&[1, 2, 3, 2, 0]]);
        assert_eq!((whole, whole.count()), (sum(&[&[1], &[2, 3], &[], &[2, 0]]), 5));
        let others: [&[u16]; 5] =
            [&[1, 2, 3, 2], &[1, 2, 3, 2, 1], &[2, 1, 3, 2, 0], &[1, 2, 3, 3, 0], &[1, 3, 2, 2, 0]];
        others.iter().for_each(|other| assert_ne!(sum(&[other]), whole));
    }

    #[test]
    fn a_change_is_noticed_even_after_a_replacement() {
        let mut checked = Checked::new(vec![1, 2, 3]);
        checked.replace(vec![4, 5]);
        assert!(checked.is_intact());
        checked.value_mut()[1] ^= 16;
        assert!(!checked.is_intact());
        checked.replace(vec![6]);
        assert!(!checked.is_intact());
    }

    #[test]
    fn the_sum_of_entries_ignores_their_order_alone() {
        let sum = EntrySum::of(&[1, 2, 3]);
        assert_eq!(sum, EntrySum::of(&[3, 1, 2]));
        assert_ne!(sum, EntrySum::of(&[1, 2, 2]));
        assert_ne!(sum, EntrySum::of(&[1, 2]));
    }
}

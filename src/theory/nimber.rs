//! Nim-values: nim-sum, mex and sets of nim-values.
//!
//! A nim-value is a `u16`. The XOR of nim-values is a nim-value; a mex outside this range is reported and never
//! truncated. The set keeps one bit per value ([`bitvec`]), so that the mex is the number of leading ones.

use bitvec::vec::BitVec;
use std::hash::{Hash, Hasher};

/// The nim-sum (XOR) of nim-values; 0 for an empty list.
///
/// ```
/// assert_eq!(grundy::theory::nimber::nim_sum([3, 6]), 5); // Eureka 2 (1939), the nim addition table
/// ```
#[must_use]
pub fn nim_sum(values: impl IntoIterator<Item = u16>) -> u16 {
    values.into_iter().fold(0, |sum, value| sum ^ value)
}

/// The least non-negative integer that is not among `values`, in 0..=65536.
///
/// ```
/// assert_eq!(grundy::theory::nimber::mex([0, 1, 2, 3, 5, 7]), 4);
/// ```
#[must_use]
pub fn mex(values: impl IntoIterator<Item = u16>) -> u32 {
    let mut set = NimSet::new();
    values.into_iter().for_each(|value| set.insert(value));
    set.mex()
}

/// Converts a position or length to an index, and never truncates it.
///
/// # Panics
/// If it does not fit, which can happen only on a 32-bit machine.
#[inline]
pub(crate) fn index(position: u64) -> usize {
    usize::try_from(position).expect("positions held in memory fit its address space")
}

/// A set of nim-values, one bit each; it grows with the largest value inserted.
#[derive(Clone, Debug, Default)]
pub struct NimSet {
    bits: BitVec<u64>,
}

impl PartialEq for NimSet {
    fn eq(&self, other: &NimSet) -> bool {
        self.used_words() == other.used_words()
    }
}

impl Eq for NimSet {}

/// Hashes whole words, because `BitVec` hashes one bit at a time.
impl Hash for NimSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.used_words().hash(state);
    }
}

impl NimSet {
    /// The empty set.
    #[must_use]
    pub fn new() -> NimSet {
        NimSet { bits: BitVec::new() }
    }

    /// Adds a value.
    #[inline]
    pub fn insert(&mut self, value: u16) {
        self.make_room(value);
        // Direct access to the word instead of bitvec's proxy reference: this is the innermost loop of the definition.
        self.bits.as_raw_mut_slice()[usize::from(value) / 64] |= 1 << (value % 64);
    }

    /// Grows until there is a bit for the value.
    #[inline]
    fn make_room(&mut self, value: u16) {
        let value = usize::from(value);
        if value >= self.bits.len() {
            self.bits.resize((value + 1).next_power_of_two().max(64), false);
        }
    }

    /// Adds a value that is not in the set, or removes one that is.
    pub(crate) fn toggle(&mut self, value: u16) {
        self.make_room(value);
        self.bits.as_raw_mut_slice()[usize::from(value) / 64] ^= 1 << (value % 64);
    }

    /// Whether the value is in the set.
    #[must_use]
    pub fn contains(&self, value: u16) -> bool {
        self.bits.get(usize::from(value)).is_some_and(|bit| *bit)
    }

    /// The least value that is not in the set, in 0..=65536.
    #[must_use]
    pub fn mex(&self) -> u32 {
        u32::try_from(self.bits.leading_ones()).expect("at most 65536 bits")
    }

    /// The values from 64 `at` to 64 `at` + 63, one bit each.
    pub(crate) fn word(&self, at: usize) -> u64 {
        self.bits.as_raw_slice().get(at).copied().unwrap_or(0)
    }

    /// The words up to the last that has a value.
    fn used_words(&self) -> &[u64] {
        let words = self.bits.as_raw_slice();
        &words[..words.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1)]
    }

    /// Number of words of memory.
    pub(crate) fn words(&self) -> u64 {
        self.bits.as_raw_slice().len() as u64
    }

    /// The least value that is in `self` but not in `other`.
    #[must_use]
    pub fn first_outside(&self, other: &NimSet) -> Option<u16> {
        let theirs = other.bits.as_raw_slice();
        let (at, word) = self.bits.as_raw_slice().iter().enumerate().find_map(|(at, word)| {
            let left = word & !theirs.get(at).copied().unwrap_or(0);
            (left != 0).then_some((at, left))
        })?;
        let value = at * 64 + usize::try_from(word.trailing_zeros()).expect("below 64");
        Some(u16::try_from(value).expect("at most 65536 bits"))
    }

    /// Adds all values of another set.
    pub fn union(&mut self, other: &NimSet) {
        if other.bits.len() > self.bits.len() {
            self.bits.resize(other.bits.len(), false);
        }
        let theirs = other.bits.as_raw_slice();
        self.bits.as_raw_mut_slice().iter_mut().zip(theirs).for_each(|(mine, word)| *mine |= word);
    }

    /// Removes all values, keeping the memory.
    pub fn clear(&mut self) {
        self.bits.fill(false);
    }
}

/// Inserts many values at once, the first ones bit by bit and the rest through one byte per value: setting a bit reads,
/// changes and writes its word, and so waits for the bit before. A few values do not repay the 65,536 bytes.
impl Extend<u16> for NimSet {
    fn extend<I: IntoIterator<Item = u16>>(&mut self, values: I) {
        /// Number of first values that are inserted bit by bit.
        const FEW: usize = 1 << 11;
        let mut values = values.into_iter();
        values.by_ref().take(FEW).for_each(|value| self.insert(value));
        let Some(next) = values.next() else { return };
        let mut seen = vec![0u8; 1 << 16];
        let any = std::iter::once(next).chain(values).fold(0, |any, value| {
            seen[usize::from(value)] = 1;
            any | value
        });
        self.make_room(any);
        let words = self.bits.as_raw_mut_slice().iter_mut().zip(seen.as_chunks::<64>().0);
        words.for_each(|(word, seen)| *word |= packed(seen));
    }
}

/// Bit i: byte i, which is 0 or 1.
fn packed(bytes: &[u8; 64]) -> u64 {
    // The product has byte i of the eight at bit 56 + i, and no carry reaches these bits.
    let byte = |eight: &[u8; 8]| u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    bytes.as_chunks::<8>().0.iter().rev().fold(0, |word, eight| word << 8 | byte(eight))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mex_of_everything_is_65536_and_not_0() {
        assert_eq!(mex(0..=u16::MAX), 65536);
        assert_eq!(mex([]), 0);
        assert_eq!(mex(1..=u16::MAX), 0);
    }

    #[test]
    fn the_grundy_paper_of_1939_prints_this_nim_addition_table() {
        let printed = ["01234567", "10325476", "23016745", "32107654", "45670123", "54761032", "67452301", "76543210"];
        for (row, line) in (0..).zip(printed) {
            let computed: String = (0..8).map(|column| char::from(b'0' + (nim_sum([row, column]) as u8))).collect();
            assert_eq!(computed, line);
        }
    }

    #[test]
    fn extend_inserts_the_same_values_as_insert() {
        let many = (0..40_000u16).map(|i| i.wrapping_mul(40_503)).collect();
        for values in [vec![], vec![0], vec![65535, 0, 65535], many] {
            let (mut one_by_one, mut at_once) = (NimSet::new(), NimSet::new());
            at_once.insert(700);
            values.iter().chain([&700]).for_each(|&value| one_by_one.insert(value));
            at_once.extend(values);
            assert!((0..=u16::MAX).all(|value| one_by_one.contains(value) == at_once.contains(value)));
        }
    }

    #[test]
    fn a_set_keeps_values_on_word_boundaries() {
        let mut set = NimSet::new();
        for value in [0, 63, 64, 127, 128, 65535] {
            set.insert(value);
            assert!(set.contains(value));
        }
        assert!(!set.contains(1) && !set.contains(65));
        let mut other = NimSet::new();
        other.insert(0);
        other.insert(63);
        assert_eq!(set.first_outside(&other), Some(64));
        other.union(&set);
        assert_eq!(set.first_outside(&other), None);
        set.clear();
        assert_eq!(set.mex(), 0);
    }
}

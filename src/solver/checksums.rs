//! Checksums of data that is written once and read for a long time.
//!
//! A flipped bit in such data could make every later value wrong without any other sign. So each piece of data gets a
//! checksum when it is created, and the solver compares it before each commit and before the data is replaced.
//!
//! Invariant: a change of data under a checksum is reported by the next check, even when the data was replaced in
//! between.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::{Deref, RangeBounds};

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

/// A list whose entries come, go and change their order, with the sum of the checksums that they had when they came.
#[derive(Clone, Debug)]
pub(super) struct CheckedList<T> {
    entries: Vec<T>,
    sum: u64,
    /// Whether entries that were replaced had another checksum than when they came.
    damaged: bool,
}

impl<T: Hash> CheckedList<T> {
    pub(super) fn new(entries: Vec<T>) -> CheckedList<T> {
        CheckedList { sum: sum_of(&entries), entries, damaged: false }
    }

    /// Appends an entry.
    pub(super) fn push(&mut self, entry: T) {
        self.sum = self.sum.wrapping_add(hash(&entry));
        self.entries.push(entry);
    }

    /// Removes the entries of a range of indices.
    pub(super) fn remove(&mut self, range: impl RangeBounds<usize>) {
        for entry in self.entries.drain(range) {
            self.sum = self.sum.wrapping_sub(hash(entry));
        }
    }

    /// Replaces the list by the same entries in another order.
    pub(super) fn reorder(&mut self, entries: Vec<T>) {
        self.entries = entries;
    }

    /// Replaces the list by the entries of `all` that are not `left_out`, after comparing both lists with their
    /// checksums.
    pub(super) fn replace(&mut self, all: &CheckedList<T>, left_out: impl Fn(&T) -> bool)
    where
        T: Copy,
    {
        let damaged = !self.is_intact() || !all.is_intact();
        *self = CheckedList { entries: Vec::new(), sum: all.sum, damaged };
        for entry in &all.entries {
            if left_out(entry) {
                self.sum = self.sum.wrapping_sub(hash(entry));
            } else {
                self.entries.push(*entry);
            }
        }
    }

    /// Whether the entries, and all that were replaced, agree with their checksums.
    pub(super) fn is_intact(&self) -> bool {
        !self.damaged && sum_of(&self.entries) == self.sum
    }

    /// The entries without their checksums, to flip bits of them.
    #[cfg(test)]
    pub(super) fn entries_mut(&mut self) -> &mut [T] {
        &mut self.entries
    }
}

fn sum_of<T: Hash>(entries: &[T]) -> u64 {
    entries.iter().fold(0, |sum, entry| sum.wrapping_add(hash(entry)))
}

impl<T> Default for CheckedList<T> {
    fn default() -> CheckedList<T> {
        CheckedList { entries: Vec::new(), sum: 0, damaged: false }
    }
}

impl<T> Deref for CheckedList<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.entries
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
    fn a_list_notices_every_change_but_that_of_the_order() {
        let mut list = CheckedList::new(vec![1, 2, 3, 4]);
        list.push(5);
        list.remove(1..2);
        list.reorder(vec![5, 4, 3, 1]);
        assert!(list.is_intact() && *list == [5, 4, 3, 1]);
        for wrong in [vec![5, 4, 3, 3], vec![5, 4, 3], vec![5, 4, 3, 1, 0]] {
            let mut changed = list.clone();
            changed.reorder(wrong);
            assert!(!changed.is_intact());
        }
        let mut odd = CheckedList::default();
        odd.replace(&list, |entry| entry % 2 == 0);
        assert!(odd.is_intact() && *odd == [5, 3, 1]);
        // A change of either list is noticed after the replacement.
        let mut changed = list.clone();
        changed.entries_mut()[1] ^= 1;
        odd.replace(&changed, |_| true);
        assert!(!odd.is_intact());
        let mut flipped = list.clone();
        flipped.entries_mut()[0] ^= 2;
        flipped.replace(&list, |_| false);
        assert!(*flipped == *list && !flipped.is_intact());
    }
}

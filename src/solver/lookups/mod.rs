//! The lookups of the candidate stream, and the rare positions from which they come.
//!
//! Let r be a rare position and (s, c, d) a split of the rule: it removes s tokens, XORs the constant c, and leaves two
//! parts that differ by at least d. A heap of n has the parts r and n - s - r, hence the option c ^ G(r) ^ G(n - s -
//! r). So r and the split make one [`Lookup`]: offset s + r, value c ^ G(r).
//!
//! A lookup is **irregular** at n when the other part n - s - r does not exist, is rare itself (a pair of rare parts
//! gives a rare value, which the code cannot express), or is too near to r for the difference rule. Let R be the last
//! rare position, S the greatest removal of all moves and D the greatest difference of all splits: from n = 2 R + S +
//! max(D, 1) on, every lookup is regular.
//!
//! [`plan`] sorts the lookups of a range of positions into jobs of the kernel. [`far_lanes`] is what the far ones
//! leave.
//!
//! Invariant: [`RarePositions`] changes only by appending.

pub(super) mod far_lanes;
pub(super) mod plan;

use super::checksums::hash;
use crate::theory::nimber::index;
use bitvec::vec::BitVec;

/// One rare part r under one split (s, c, d): a heap of n has the option `value ^ G(n - offset)`.
///
/// A move that leaves one heap is a lookup with r = 0 where its options have the class of the heap that is left.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Lookup {
    /// s + r.
    pub(super) offset: u64,
    /// c ^ G(r).
    pub(super) value: u16,
    /// r.
    pub(super) part: u64,
    /// d.
    pub(super) min_difference: u64,
}

impl Lookup {
    /// The first n from `start` on at which the two parts of this lookup are too near to each other, if any.
    fn next_too_near(&self, start: u64) -> Option<u64> {
        // The parts differ by less than d from n = offset + part - (d - 1) to offset + part + (d - 1).
        let equal = self.offset + self.part;
        let d = self.min_difference;
        (d > 0 && start < equal + d).then(|| start.max((equal + 1).saturating_sub(d)))
    }
}

/// The rare positions, ascending, with their values.
#[derive(Clone, Debug, Default)]
pub(super) struct RarePositions {
    list: Vec<(u64, u16)>,
    /// One bit per position, up to the last rare position.
    is_rare: BitVec<u64>,
    /// Checksum of the checksum before the last entry and of this entry.
    checksum: u64,
}

impl RarePositions {
    pub(super) fn list(&self) -> &[(u64, u16)] {
        &self.list
    }

    /// The last rare position, or 0 without any.
    pub(super) fn last(&self) -> u64 {
        self.list.last().map_or(0, |rare| rare.0)
    }

    /// Whether `n` is a rare position.
    #[inline]
    pub(super) fn contains(&self, n: u64) -> bool {
        self.is_rare.get(index(n)).is_some_and(|bit| *bit)
    }

    /// Appends a rare position `n`, after all others, with its value.
    pub(super) fn push(&mut self, n: u64, value: u16) {
        self.list.push((n, value));
        self.checksum = hash((self.checksum, n, value));
        self.is_rare.resize(index(n), false);
        self.is_rare.push(true);
    }

    /// Whether the list and the bits are as they were written.
    pub(super) fn is_intact(&self) -> bool {
        let checksum = self.list.iter().fold(0, |checksum, &(n, value)| hash((checksum, n, value)));
        checksum == self.checksum
            && self.is_rare.count_ones() == self.list.len()
            && self.list.iter().all(|rare| self.contains(rare.0))
    }

    /// The first position from `start` on at which the lookup is irregular, or [`u64::MAX`].
    fn next_irregular(&self, lookup: &Lookup, start: u64) -> u64 {
        if start <= lookup.offset {
            return start.max(lookup.offset); // the other part does not exist yet, or is 0, which is no heap
        }
        let next_rare = self.list.partition_point(|rare| rare.0 < start - lookup.offset);
        let rare_pair = self.list.get(next_rare).map_or(u64::MAX, |rare| rare.0 + lookup.offset);
        rare_pair.min(lookup.next_too_near(start).unwrap_or(u64::MAX))
    }

    /// The other part of an irregular lookup at `n`, when the option exists and is common.
    #[inline]
    pub(super) fn other_part(&self, lookup: &Lookup, n: u64) -> Option<u64> {
        let other = n.checked_sub(lookup.offset)?;
        let is_far_enough = other.abs_diff(lookup.part) >= lookup.min_difference;
        (other > 0 && !self.contains(other) && is_far_enough).then_some(other)
    }

    /// The list without its checksum, to flip bits of it.
    #[cfg(test)]
    pub(super) fn list_mut(&mut self) -> &mut [(u64, u16)] {
        &mut self.list
    }
}

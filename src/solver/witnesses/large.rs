//! The last values above 255, with their positions.
//!
//! A target of 256 and more needs a part whose value is itself above 255 (or a constant with such a bit). Such values
//! are rare, one in thousands, so a short list of their positions gives most witnesses of these targets.

use crate::solver::checksums::CheckedList;

/// Minimum number of last values above 255 that are kept with their positions. No benchmark measures it.
const LARGE: usize = 1 << 14;

/// The last positions with values above 255, with these values, ascending.
pub(super) struct LargeValues {
    list: CheckedList<(u64, u16)>,
}

impl LargeValues {
    /// The values above 255 with their positions: all, or at least the last [`LARGE`].
    pub(super) fn new(list: Vec<(u64, u16)>) -> LargeValues {
        LargeValues { list: CheckedList::new(list) }
    }

    /// Enters those of the values from position `end` on that are above 255, and drops old entries in excess.
    pub(super) fn push(&mut self, end: u64, values: &[u16]) {
        if values.iter().copied().max().unwrap_or(0) <= 255 {
            return;
        }
        for (n, &value) in (end..).zip(values) {
            if value > 255 {
                self.list.push((n, value));
            }
        }
        self.list.remove(..droppable(&self.list));
    }

    /// Forgets the entries from position `end` on.
    pub(super) fn truncate(&mut self, end: u64) {
        let kept = self.list.partition_point(|large| large.0 < end);
        self.list.remove(kept..);
    }

    /// The entries with positions before `n`, ascending.
    pub(super) fn before(&self, n: u64) -> &[(u64, u16)] {
        &self.list[..self.list.partition_point(|large| large.0 < n)]
    }

    /// Whether the list agrees with its checksum.
    pub(super) fn is_intact(&self) -> bool {
        self.list.is_intact()
    }

    /// Flips a bit; returns false when the list is empty.
    #[cfg(test)]
    pub(super) fn flip(&mut self, draw: u64, bit: u8) -> bool {
        let count = self.list.len().max(1);
        let Some((n, value)) = self.list.entries_mut().get_mut(crate::theory::nimber::index(draw / 2) % count) else {
            return false;
        };
        if draw.is_multiple_of(2) {
            *n ^= u64::from(bit);
        } else {
            *value ^= u16::from(bit);
        }
        true
    }
}

/// The number of entries at the start of the list of values above 255 that may be dropped.
pub(in crate::solver) fn droppable(large: &[(u64, u16)]) -> usize {
    if large.len() > 4 * LARGE { large.len() - 2 * LARGE } else { 0 }
}

//! The lookups of the rare positions: all of them, and those that are not marked.
//!
//! For each split, a rare position r gives one lookup. Position n reads it as the pair of r and n - s - r, where s is
//! the number of tokens that the split removes.

use super::run::Run;
use crate::kernel::WidePart;
use crate::solver::checksums::CheckedList;
use crate::theory::nimber::index;
use crate::theory::rule::Split;
use std::ops::Range;

/// Parts, ascending by offset.
#[derive(Default)]
pub(super) struct PartList {
    pub(super) parts: CheckedList<WidePart>,
}

impl PartList {
    /// The indices of the far lookups of a run: two ranges, between which the parts are too near to each other for some
    /// position of the run ([`PartList::too_near`]).
    fn far(&self, split: &Split, run: Run<'_>) -> [Range<usize>; 2] {
        let far = self.parts.partition_point(|part| part.offset < run.far());
        // Take a lookup outside this range. If its rare part is before `run.known`, its other part is smaller than
        // `run.far()`, and the far step enters all pairs with so small a part. Otherwise it is a middle or near option.
        let last = run.first.min(run.known + split.remove);
        let exist = self.parts.partition_point(|part| (part.offset as u64) < last);
        let too_near = self.too_near(split, run.positions());
        [far..too_near.start.clamp(far, exist.max(far)), too_near.end.clamp(far, exist.max(far))..exist.max(far)]
    }

    /// The far lookups of a run: two slices.
    pub(super) fn far_parts(&self, split: &Split, run: Run<'_>) -> [&[WidePart]; 2] {
        self.far(split, run).map(|range| &self.parts[range])
    }

    /// The indices of the lookups whose parts may differ by less than the split requires, at some of the positions.
    pub(super) fn too_near(&self, split: &Split, positions: Range<u64>) -> Range<usize> {
        // With r = offset - s the parts n - s - r and r differ by less than d where |n + s - 2 offset| < d.
        let Split { min_difference: d, remove, .. } = *split;
        let twice = |part: &WidePart| 2 * part.offset as u64;
        let start = self.parts.partition_point(|part| twice(part) + d <= positions.start + remove);
        let end = self.parts.partition_point(|part| twice(part) < positions.end + remove + d);
        if d == 0 { start..start } else { start..end.max(start) }
    }
}

/// The lookups of one split: for each rare position r its offset, and the value c ^ G(r).
pub(super) struct SplitLookups {
    pub(super) split: Split,
    pub(super) all: PartList,
    /// Those that are not marked: each of the others has its mark in [`Marks::parts`](super::learning::Marks::parts).
    pub(super) unmarked: PartList,
}

impl SplitLookups {
    /// No lookups of a split.
    pub(super) fn of(split: Split) -> SplitLookups {
        SplitLookups { split, all: PartList::default(), unmarked: PartList::default() }
    }

    /// Enters the lookups of a rare position n, after all others.
    pub(super) fn enter(&mut self, n: u64, value: u16) {
        let part = WidePart { offset: index(self.split.remove + n), value: self.split.constant ^ value };
        self.all.parts.push(part);
        self.unmarked.parts.push(part);
    }
}

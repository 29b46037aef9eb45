//! A run of consecutive positions, for which one thread prepares what the far options leave open.

use super::recent_parts::RecentParts;
use crate::kernel::WIDE_LANES;
use crate::theory::nimber::index;
use std::ops::Range;

/// [`WIDE_LANES`] consecutive positions.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    /// The far step reads the values before this position.
    pub(super) known: u64,
    /// The first position of the run.
    pub(super) first: u64,
    /// The parts of pairs that were found before `known`.
    pub(super) recent: &'a RecentParts,
}

impl Run<'_> {
    /// The positions.
    pub(super) fn positions(self) -> Range<u64> {
        self.first..self.first + WIDE_LANES as u64
    }

    /// The least offset at which every position of the run reads a value before `known`. So the other part of a pair
    /// with a smaller part from here on is before `known` too.
    pub(super) fn far(self) -> usize {
        index(self.first - self.known) + WIDE_LANES
    }
}

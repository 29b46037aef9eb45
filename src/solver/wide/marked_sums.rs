//! The values that the marked pairs leave open, of which all splits of a game share the computation.
//!
//! A split that removes t tokens and XORs c has at n the pairs with the sum n - t, and the options c ^ G(a) ^ G(b) of
//! these pairs. So the values of the marked pairs of a sum are entered once, however many splits there are, and each
//! split takes the set of its sum, and XORs c. Every marked pair exists in all splits, whatever difference of the parts
//! they require.
//!
//! Let s be the least removal of all splits. The *place* of a sum m is m + s: the position with this sum in that split.

use super::reader::Reader;
use super::run::Run;
use crate::kernel::{Kernel, MARK_LANES, WIDE_LANES};
use crate::solver::pair_sets::with_nim_sums;
use crate::theory::nimber::index;
use crate::theory::rule::Split;
use std::cmp::Reverse;

/// For the sums of the pairs of a run, the values that no marked pair gives.
pub(super) struct MarkedSums {
    /// The least removal of all splits.
    removal: u64,
    /// The groups of [`MARK_LANES`] sums, descending. Group k ends `MARK_LANES * k` places before the last position of
    /// the run.
    groups: Vec<usize>,
    /// Number of words per sum.
    words: usize,
    /// Bit v % 64 of word v / 64 of a sum: whether v is open. The sums are ascending. Empty if no part is marked.
    open: Vec<u64>,
}

impl MarkedSums {
    /// The sums of the pairs of the run, in each of the splits.
    pub(super) fn of(reader: &Reader<'_>, kernel: Kernel, run: Run<'_>) -> MarkedSums {
        let solver = reader.solver;
        let (removal, words) = (solver.least_removal(), solver.classes.bound() / 64);
        let mut groups: Vec<usize> = Vec::new();
        for split in solver.rule.splits() {
            let shift = index(split.remove - removal);
            groups.extend(shift / MARK_LANES..=(shift + WIDE_LANES - 1) / MARK_LANES);
        }
        groups.sort_unstable_by_key(|&group| Reverse(group));
        groups.dedup();
        let marked = solver.marks.from(run.far());
        let mut open = Vec::new();
        if !marked.is_empty() {
            // Groups without a gap are consecutive lanes.
            for groups in groups.chunk_by(|a, b| *a == b + 1) {
                let place = run.positions().end - (MARK_LANES * (groups[0] + 1)) as u64;
                let mut seen = vec![0u8; groups.len() * MARK_LANES * words * 64];
                for parts in reader.windows(place, marked) {
                    kernel.mark_values(parts, words * 64, &mut seen);
                }
                let done = open.len();
                open.resize(done + seen.len() / 64, 0);
                kernel.unmarked(&seen, &mut open[done..]);
            }
        }
        MarkedSums { removal, groups, words, open }
    }

    /// Clears in `open`, one bit per value, the options of the marked pairs that a split makes of a position of the
    /// run: the position in lane `lane`.
    pub(super) fn clear_options(&self, lane: usize, split: &Split, open: &mut [u64]) {
        if self.open.is_empty() {
            return;
        }
        let distance = WIDE_LANES - 1 - lane + index(split.remove - self.removal);
        let group = self
            .groups
            .binary_search_by_key(&Reverse(distance / MARK_LANES), |&group| Reverse(group))
            .expect("a group of each split");
        let sum = group * MARK_LANES + (MARK_LANES - 1 - distance % MARK_LANES);
        let set = &self.open[sum * self.words..][..self.words];
        if split.constant == 0 {
            open.iter_mut().zip(set).for_each(|(open, set)| *open &= set);
            return;
        }
        let (word, bit) = (usize::from(split.constant / 64), split.constant % 64);
        open.iter_mut().enumerate().for_each(|(i, open)| *open &= with_nim_sums(set[i ^ word], bit));
    }
}

const _: () = assert!(WIDE_LANES.is_multiple_of(MARK_LANES));

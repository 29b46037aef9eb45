//! The far options of a run of [`WIDE_LANES`] positions: what they leave open.

use super::{SplitLookups, WideSolver};
use crate::kernel::{Kernel, MARK_LANES, WIDE_CANDIDATES, WIDE_LANES, WideCandidates, WidePart};
use crate::solver::witnesses::HEAD_PARTS;
use crate::theory::rule::Split;
use std::ops::Range;

/// What the far options of one position leave open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FarLane {
    /// The least common values that are no far option, ascending: at most [`WIDE_CANDIDATES`]. Empty if all values that
    /// were held against the lookups are options.
    pub(super) candidates: Vec<u16>,
    /// Rare values below the first candidate, ascending. No far pair with a part below [`HEAD_PARTS`], both values
    /// of which memory holds, gives them.
    pub(super) open: Vec<u16>,
    /// Rare values between the first and the last candidate, ascending. No marked pair gives them.
    pub(super) later: Vec<u16>,
}

/// Maximum number of times that a position gets new candidates because the lookups hit all it has.
const ROUNDS: usize = 10;

/// Number of lookups after which the candidates that are options are dropped.
const LOOKUPS_PER_STAGE: usize = 256;

/// The values that no marked part gives at one position.
struct OpenValues<'a> {
    /// Bit v % 64 of word v / 64: whether v is open.
    open: &'a [u64],
    /// Bit v % 64 of word v / 64: whether v is rare.
    rare: &'a [u64],
}

impl OpenValues<'_> {
    /// The common values, ascending.
    fn common(&self) -> impl Iterator<Item = u16> {
        values_of(self.open.iter().zip(self.rare).map(|(open, rare)| open & !rare))
    }

    /// The `candidates` and the rare values below the last of them.
    fn below(&self, candidates: Vec<u16>) -> FarLane {
        let (Some(&least), Some(&last)) = (candidates.first(), candidates.last()) else { return FarLane::default() };
        let mut open: Vec<u16> = self.rare().take_while(|&t| t < last).collect();
        let later = open.split_off(open.partition_point(|&t| t < least));
        FarLane { candidates, open, later }
    }

    /// The rare values, ascending.
    fn rare(&self) -> impl Iterator<Item = u16> {
        values_of(self.open.iter().zip(self.rare).map(|(open, rare)| open & rare))
    }
}

/// The numbers of the bits that are set, ascending.
fn values_of(words: impl Iterator<Item = u64>) -> impl Iterator<Item = u16> {
    (0..=u16::MAX).step_by(64).zip(words).flat_map(|(first, mut bits)| {
        std::iter::from_fn(move || {
            let bit = (bits != 0).then(|| bits.trailing_zeros())?;
            bits &= bits - 1;
            Some(first | u16::from(bit.to_le_bytes()[0]))
        })
    })
}

impl WideSolver {
    /// The far options of the run from `first` on, in a batch of at most `length` positions that contains the run.
    pub(super) fn far_lanes(&self, kernel: Kernel, first: u64, length: usize) -> Vec<FarLane> {
        let open = self.unmarked_values(kernel, first);
        let open: Vec<OpenValues<'_>> = (first..)
            .zip(open.chunks(self.classes.bound() / 64))
            .map(|(n, open)| OpenValues { open, rare: &self.classes.rare[usize::from(n % 2 == 1)] })
            .collect();
        let candidates = self.least_candidates(kernel, first, length, &open);
        let lanes = open.iter().enumerate().map(|(lane, open)| open.below(candidates.of(lane).collect()));
        let mut lanes: Vec<FarLane> = lanes.collect();
        for (n, lane) in (first..).zip(&mut lanes) {
            self.search_far(kernel, n, length, &mut lane.open);
        }
        lanes
    }

    /// The values that no marked part gives, for each lane one bit per value below the bound of the classes.
    fn unmarked_values(&self, kernel: Kernel, first: u64) -> Vec<u64> {
        let bound = self.classes.bound();
        let mut open = vec![0; WIDE_LANES * bound / 64];
        let mut seen = vec![0u8; MARK_LANES * bound];
        let at = self.values.at(first);
        for (first_lane, open) in (0..).step_by(MARK_LANES).zip(open.chunks_mut(seen.len() / 64)) {
            seen.fill(0);
            kernel.mark_values(self.values.items(), at + first_lane, &self.marks.parts, &mut seen);
            kernel.unmarked(&seen, open);
        }
        open
    }

    /// The least common values that are no far options. A lane stays without candidates if those of [`ROUNDS`] rounds
    /// are all options.
    fn least_candidates(&self, kernel: Kernel, first: u64, length: usize, open: &[OpenValues<'_>]) -> WideCandidates {
        let mut candidates = WideCandidates::new();
        for round in 0..ROUNDS {
            let mut is_done = true;
            for (lane, open) in open.iter().enumerate() {
                if candidates.of(lane).next().is_none() {
                    let next = open.common().skip(round * WIDE_CANDIDATES).take(WIDE_CANDIDATES);
                    next.for_each(|value| candidates.push(lane, value));
                    is_done &= candidates.of(lane).next().is_none();
                }
            }
            if is_done {
                break;
            }
            self.check_candidates(kernel, first, length, &mut candidates);
        }
        candidates
    }

    /// Drops the candidates that a far option with a rare part has.
    fn check_candidates(&self, kernel: Kernel, first: u64, length: usize, candidates: &mut WideCandidates) {
        let at = self.values.at(first);
        for lookups in &self.lookups {
            for range in lookups.far(first, length) {
                for parts in lookups.parts[range].chunks(LOOKUPS_PER_STAGE) {
                    kernel.drop_hits(self.values.items(), at, parts, candidates);
                }
            }
        }
    }

    /// Removes the targets, ascending, that a far pair of n with a part below [`HEAD_PARTS`] gives.
    pub(super) fn search_far(&self, kernel: Kernel, n: u64, length: usize, targets: &mut Vec<u16>) {
        /// Ends of the ranges of smaller parts, searched one after the other for all splits.
        const ENDS: [u64; 4] = [1 << 9, 1 << 11, 1 << 13, HEAD_PARTS];
        let mut from = length as u64;
        for to in ENDS {
            for split in self.rule.splits() {
                let to = to.min(self.far_reach(n, &split) + 1);
                if targets.is_empty() || to <= from {
                    continue;
                }
                let (small, large) = self.part_values(n, &split, from..to);
                targets.iter_mut().for_each(|target| *target ^= split.constant);
                kernel.find_values(small, large, targets);
                targets.iter_mut().for_each(|target| *target ^= split.constant);
            }
            from = to.max(from);
        }
        targets.sort_unstable();
    }

    /// The largest smaller part below [`HEAD_PARTS`] for which memory holds the values of both parts.
    pub(super) fn far_reach(&self, n: u64, split: &Split) -> u64 {
        let held = (n - self.values.start()).saturating_sub(split.remove);
        split.largest_small_part(n).min(HEAD_PARTS - 1).min(held)
    }

    /// The values of the smaller parts, descending, and of the other parts at the same indices.
    pub(super) fn part_values(&self, n: u64, split: &Split, parts: Range<u64>) -> (&[u16], &[u16]) {
        let rest = n - split.remove;
        (self.head.values(parts.start, parts.end), self.values.slice(rest + 1 - parts.end, rest + 1 - parts.start))
    }
}

impl SplitLookups {
    /// The indices of the far lookups of the run from `first` on: two ranges, between which the parts are too near to
    /// each other for some position of the run ([`SplitLookups::too_near`]).
    fn far(&self, first: u64, length: usize) -> [Range<usize>; 2] {
        let far = self.parts.partition_point(|part| part.offset < length);
        let exist = self.parts.partition_point(|part| (part.offset as u64) < first);
        let too_near = self.too_near(first, first + WIDE_LANES as u64 - 1);
        [far..too_near.start.clamp(far, exist.max(far)), too_near.end.clamp(far, exist.max(far))..exist.max(far)]
    }

    /// The indices of the lookups whose parts may differ by less than the split requires, at some position of
    /// `first..=last`.
    pub(super) fn too_near(&self, first: u64, last: u64) -> Range<usize> {
        // With r = offset - s the parts n - s - r and r differ by less than d where |n + s - 2 offset| < d.
        let Split { min_difference: d, remove, .. } = self.split;
        let twice = |part: &WidePart| 2 * part.offset as u64;
        let start = self.parts.partition_point(|part| twice(part) + d <= first + remove);
        let end = self.parts.partition_point(|part| twice(part) < last + remove + d);
        if d == 0 { start..start } else { start..end.max(start) }
    }
}

const _: () = assert!(WIDE_CANDIDATES > 0 && WIDE_LANES.is_multiple_of(MARK_LANES));

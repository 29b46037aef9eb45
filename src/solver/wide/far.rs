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
    /// Rare values below the first candidate, ascending. No far pair with a part below [`HEAD_PARTS`] gives them.
    pub(super) open: Vec<u16>,
    /// Rare values between the first and the last candidate, ascending. No marked pair gives them.
    pub(super) later: Vec<u16>,
}

/// Maximum number of common values of one position that are held against the lookups.
const MOST_OPEN: usize = 8 * WIDE_CANDIDATES;

/// Number of lookups after which the candidates that are options are dropped.
const LOOKUPS_PER_STAGE: usize = 256;

impl WideSolver {
    /// The far options of the run from `first` on, in a batch of at most `length` positions that contains the run.
    pub(super) fn far_lanes(&self, kernel: Kernel, first: u64, length: usize) -> Vec<FarLane> {
        let mut lanes = vec![FarLane::default(); WIDE_LANES];
        let mut candidates = WideCandidates::new();
        let mut common = vec![Vec::new(); WIDE_LANES];
        let bound = self.classes.bound();
        let mut seen = vec![0u8; MARK_LANES * bound];
        for first_lane in (0..WIDE_LANES).step_by(MARK_LANES) {
            seen.fill(0);
            let at = self.values.at(first) + first_lane;
            kernel.mark_values(self.values.items(), at, &self.marks, &mut seen);
            for (lane, seen) in (first_lane..).zip(seen.chunks(bound)) {
                (common[lane], lanes[lane].later) = self.open_values(first + lane as u64, seen);
            }
        }
        for round in 0..MOST_OPEN / WIDE_CANDIDATES {
            let mut is_done = true;
            for (lane, common) in common.iter().enumerate() {
                if candidates.of(lane).next().is_some() {
                    continue;
                }
                let next = common.iter().skip(round * WIDE_CANDIDATES).take(WIDE_CANDIDATES);
                next.for_each(|&value| is_done &= !candidates.push(lane, value));
            }
            if is_done {
                break;
            }
            self.check_candidates(kernel, first, length, &mut candidates);
        }
        for (n, (i, lane)) in (first..).zip(lanes.iter_mut().enumerate()) {
            lane.candidates = candidates.of(i).collect();
            let Some(&least) = lane.candidates.first() else { continue };
            let later = lane.later.split_off(lane.later.partition_point(|&t| t < least));
            lane.open = std::mem::replace(&mut lane.later, later);
            self.search_far(kernel, n, length, &mut lane.open);
        }
        lanes
    }

    /// The least common values at `n` that are not in the set `seen`, ascending, at most [`MOST_OPEN`], and the rare
    /// values below the last of them that are not in the set.
    fn open_values(&self, n: u64, seen: &[u8]) -> (Vec<u16>, Vec<u16>) {
        let rare = &self.classes.rare[usize::from(n % 2 == 1)];
        let (mut common, mut open_rare) = (Vec::new(), Vec::new());
        for (first, (seen, &rare)) in (0..=u16::MAX).step_by(64).zip(seen.as_chunks::<64>().0.iter().zip(rare)) {
            let open = !bits_of(seen);
            push_bits(first, open & !rare, &mut common);
            push_bits(first, open & rare, &mut open_rare);
            if common.len() >= MOST_OPEN {
                break;
            }
        }
        common.truncate(MOST_OPEN);
        (common, open_rare)
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

/// Appends the numbers of the bits that are set, counted from `first`.
fn push_bits(first: u16, mut bits: u64, list: &mut Vec<u16>) {
    while bits != 0 {
        list.push(first + u16::from(bits.trailing_zeros().to_le_bytes()[0]));
        bits &= bits - 1;
    }
}

/// Bit i: whether byte i, which is 0 or 1, is 1.
fn bits_of(bytes: &[u8; 64]) -> u64 {
    let mut bits = 0;
    for (i, chunk) in bytes.as_chunks::<8>().0.iter().enumerate() {
        // The product moves bit 8j to bit 56 + j; no two terms meet below.
        let eight = u64::from_le_bytes(*chunk).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        bits |= eight << (8 * i);
    }
    bits
}

const _: () = assert!(WIDE_CANDIDATES > 0 && WIDE_LANES.is_multiple_of(MARK_LANES));

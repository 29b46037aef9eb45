//! The far options of a run of [`WIDE_LANES`] positions: what they leave open.

use super::candidates::Search;
use super::marked_sums::MarkedSums;
use super::{LONGEST_BATCH, PartList, SplitLookups, WideSolver};
use crate::kernel::{Kernel, WIDE_LANES, WIDE_ROWS, WidePart, WideParts, WideRow};
use crate::solver::witnesses::HEAD_PARTS;
use crate::theory::nimber::index;
use crate::theory::rule::Split;
use rayon::prelude::*;
use std::array::from_fn;
use std::ops::Range;

/// What the far options of one position leave open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FarLane {
    /// The least common values that are no far option, ascending: at most [`WIDE_ROWS`], or [`MOST_OPEN`] where all far
    /// pairs were compared. Empty if all values that were held against the lookups are options.
    pub(super) candidates: Vec<u16>,
    /// Rare values below the first candidate, ascending, that the search left open. Where all far pairs were compared,
    /// all open ones below the first open common value that is no candidate, as far as the far step went.
    pub(super) open: Vec<u16>,
    /// Rare values between the first and the last candidate, ascending, which no marked pair gives.
    pub(super) later: Vec<u16>,
    /// Values after the last candidate that no marked pair gives; middle options stay among them. None where all far
    /// pairs were compared.
    pub(super) further: FurtherValues,
    /// What the search for pairs met.
    pub(super) searched: Searched,
}

/// The open values after the last candidate of a position, in case near options have all candidates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FurtherValues {
    /// Number of words before the first.
    first: usize,
    /// Bit v % 64 of word v / 64 - `first`: whether v is open.
    words: [u64; 2],
}

impl FurtherValues {
    /// The values after `last`, or all if there is none, as many as fit.
    fn of(open: &[u64], last: Option<u16>) -> FurtherValues {
        let (first, bit) = last.map_or((0, 0), |last| (usize::from(last) / 64, u32::from(last) % 64 + 1));
        let mut words = [0; 2];
        words.iter_mut().zip(&open[first..]).for_each(|(word, open)| *word = *open);
        words[0] &= u64::MAX.checked_shl(bit).unwrap_or(0);
        FurtherValues { first, words }
    }

    /// The values, ascending.
    pub(super) fn values(&self) -> impl Iterator<Item = u16> {
        values_of(std::iter::repeat_n(0, self.first).chain(self.words))
    }
}

/// What a search for the pairs of one position met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Searched {
    /// Whether all far pairs were compared.
    pub(super) is_complete: bool,
    /// Number of rare values searched.
    pub(super) targets: u64,
    /// Number of these for which all pairs were compared here: those that no recent part and no pair with a part below
    /// [`HEAD_PARTS`] gives. 0 where memory does not hold all values.
    pub(super) deep: u64,
    /// Recent parts that gave a value, and the parts of the pairs of larger parts found.
    pub(super) parts: Vec<u64>,
}

/// Number of positions of a run that one thread searches, while others may take the rest.
const LANES_PER_TASK: usize = 16;

/// Least offset of the far lookups of a run from which each position needs three candidates instead of two.
const MANY_NEAR: usize = 768;

/// Number of lookups after which candidates that are options are replaced.
const STAGE: usize = 256;

/// Maximum number of candidates where all far pairs are compared. All but one of them may be near options.
const MOST_OPEN: usize = 16;

/// Number of pairs of a split that one deep search compares before it turns to the next split.
const PAIRS_PER_SEARCH: usize = 1 << 14;

/// [`WIDE_LANES`] consecutive positions of a batch.
#[derive(Clone, Copy)]
pub(super) struct Run {
    /// The far step reads the values before this position.
    pub(super) known: u64,
    /// The first position of the run.
    pub(super) first: u64,
}

impl Run {
    /// The positions.
    pub(super) fn positions(self) -> Range<u64> {
        self.first..self.first + WIDE_LANES as u64
    }

    /// The least offset at which every position of the run reads a value before `known`.
    pub(super) fn far(self) -> usize {
        index(self.first - self.known) + WIDE_LANES
    }
}

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

    /// The `candidates`, the rare values below the last of them, and values after it.
    fn around(&self, candidates: Vec<u16>) -> FarLane {
        let (least, last) = (candidates.first().copied().unwrap_or(0), candidates.last().copied());
        /// Usual number of values, or more.
        const USUAL: usize = 64;
        let mut open = Vec::with_capacity(USUAL);
        open.extend(self.rare().take_while(|&t| Some(t) < last));
        let later = open.split_off(open.partition_point(|&t| t < least));
        let further = FurtherValues::of(self.open, last);
        FarLane { candidates, open, later, further, searched: Searched::default() }
    }

    /// The open values, where all far pairs were compared.
    fn exact(&self) -> FarLane {
        let mut common = self.common();
        let candidates: Vec<u16> = common.by_ref().take(MOST_OPEN).collect();
        let next = common.next().unwrap_or(u16::MAX);
        let open = self.rare().take_while(|&t| t < next).collect();
        let searched = Searched { is_complete: true, ..Searched::default() };
        FarLane { candidates, open, searched, ..FarLane::default() }
    }

    /// The rare values, ascending.
    fn rare(&self) -> impl Iterator<Item = u16> {
        values_of(self.open.iter().zip(self.rare).map(|(open, rare)| open & rare))
    }
}

/// The numbers of the bits that are set, ascending. No bit from word 1024 on is set.
fn values_of(mut words: impl Iterator<Item = u64>) -> impl Iterator<Item = u16> {
    let (mut bits, mut next) = (0, 0);
    std::iter::from_fn(move || {
        while bits == 0 {
            bits = words.next()?;
            next += 64;
        }
        let bit = bits.trailing_zeros();
        bits &= bits - 1;
        u16::try_from(next - 64 + bit).ok()
    })
}

/// Calls `search` with the targets without the constant of the split: values that pairs of parts can have.
fn without_constant(split: &Split, targets: &mut Vec<u16>, search: impl FnOnce(&mut Vec<u16>)) {
    targets.iter_mut().for_each(|target| *target ^= split.constant);
    search(targets);
    targets.iter_mut().for_each(|target| *target ^= split.constant);
}

impl WideSolver {
    /// The far options of a run.
    pub(super) fn far_lanes(&self, kernel: Kernel, run: Run) -> Vec<FarLane> {
        let words = self.classes.bound() / 64;
        let mut open = self.unmarked_values(kernel, run);
        if self.marks.all_pairs {
            let tracked = self.tracked_words().min(words);
            open.chunks_mut(words).for_each(|open| open[tracked..].fill(0));
            self.clear_pages(kernel, run, &mut open);
        }
        let open: Vec<OpenValues<'_>> = run
            .positions()
            .zip(open.chunks(words))
            .map(|(n, open)| OpenValues { open, rare: &self.classes.rare[usize::from(n % 2 == 1)] })
            .collect();
        if self.marks.all_pairs {
            return open.iter().map(OpenValues::exact).collect();
        }
        let candidates = self.least_candidates(kernel, run, &open);
        let lane = |(n, (candidates, open)): (u64, (Vec<u16>, &OpenValues<'_>))| {
            let mut lane = open.around(candidates);
            lane.searched = self.search_far(kernel, n, run, &mut lane.open);
            lane
        };
        let lanes: Vec<_> = run.positions().zip(candidates.into_iter().zip(&open)).collect();
        lanes.into_par_iter().with_min_len(LANES_PER_TASK).map(lane).collect()
    }

    /// The first lane with a candidate that is an option of a far lookup, marked or not. There is none, unless a lookup
    /// was left out of the comparison although no mark was entered for it. `None` where all pairs are compared.
    pub(super) fn lane_with_option(&self, kernel: Kernel, run: Run, lanes: &[FarLane]) -> Option<usize> {
        if self.marks.all_pairs {
            return None;
        }
        let candidate = |row: usize, lane: usize| lanes[lane].candidates.get(row).copied();
        let rows: [WideRow; WIDE_ROWS] = from_fn(|row| from_fn(|lane| candidate(row, lane).unwrap_or(0)));
        let (window, at) = (self.values.items(), self.values.at(run.first));
        let hits = |lookups: &SplitLookups| kernel.wide_hits(WideParts { window, at, list: lookups.far(run) }, &rows);
        let hits: Vec<[u64; WIDE_ROWS]> = self.lookups.iter().map(hits).collect();
        let is_hit = |row: usize, lane: usize| hits.iter().any(|hits| hits[row] >> lane & 1 == 1);
        (0..lanes.len()).find(|&lane| (0..WIDE_ROWS).any(|row| candidate(row, lane).is_some() && is_hit(row, lane)))
    }

    /// Removes from the lanes of a run, but for their further values, the options of pairs with a part that the far
    /// step did not know, as far as it is known now.
    pub(super) fn remove_known(&self, run: Run, lanes: &mut [FarLane]) {
        for (n, lane) in run.positions().zip(lanes) {
            let lists = [&mut lane.candidates, &mut lane.open, &mut lane.later];
            for values in lists.into_iter().filter(|values| !values.is_empty()) {
                for split in self.rule.splits() {
                    let smaller = |known: u64| (n + 1).saturating_sub(split.remove + known);
                    let parts = smaller(self.end()).max(1)..smaller(run.known);
                    let (small, large) = self.small_part_values(n, &split, parts);
                    without_constant(&split, values, |values| self.kernel.find_values(small, large, values));
                }
                values.sort_unstable();
            }
        }
    }

    /// The values that neither a marked part nor a far pair with a small part gives, for each lane one bit per value
    /// below the bound of the classes.
    fn unmarked_values(&self, kernel: Kernel, run: Run) -> Vec<u64> {
        let words = self.classes.bound() / 64;
        let mut open = vec![u64::MAX; WIDE_LANES * words];
        let marked = MarkedSums::of(self, kernel, run);
        for (lane, (n, open)) in run.positions().zip(open.chunks_mut(words)).enumerate() {
            for split in self.rule.splits() {
                marked.clear_options(lane, &split, open);
                let nearest = (n - run.known + 1).saturating_sub(split.remove).max(1);
                for option in self.small_part_options(n, &split, nearest..run.far() as u64) {
                    open[usize::from(option) / 64] &= !(1 << (option % 64));
                }
            }
        }
        open
    }

    /// The least common values that are no far options. A lane may stay without candidates although not all values are
    /// options.
    fn least_candidates(&self, kernel: Kernel, run: Run, open: &[OpenValues<'_>]) -> Vec<Vec<u16>> {
        let at = self.values.at(run.first);
        let stages: Vec<&[WidePart]> = self.lookups.iter().flat_map(|lookups| lookups.stages(run)).collect();
        // More near options have more candidates.
        let wanted = if run.far() < MANY_NEAR { 2 } else { 3 };
        let search = Search::new(wanted, stages.len(), open.iter().map(OpenValues::common).collect());
        search.run(|stage, rows| {
            let list = stages[stage].iter().copied();
            kernel.wide_hits(WideParts { window: self.values.items(), at, list }, rows)
        })
    }

    /// Removes the targets, ascending, that a pair of n gives whose values memory holds: a pair with a smaller part from
    /// [`Run::far`] to [`HEAD_PARTS`] or with one of the first recent parts; or any pair with parts of at least
    /// [`Run::far`] where memory holds all values ([`WideSolver::holds_all`]).
    pub(super) fn search_far(&self, kernel: Kernel, n: u64, run: Run, targets: &mut Vec<u16>) -> Searched {
        /// Lengths of the ranges of smaller parts that are searched one after the other before recent parts.
        const LENGTHS: [u64; 3] = [1 << 8, 1 << 10, 1 << 12];
        let mut searched = Searched { targets: targets.len() as u64, ..Searched::default() };
        let mut from = run.far() as u64;
        for length in LENGTHS {
            self.search_parts(kernel, n, from..from + length, targets);
            from += length;
        }
        self.search_first_recent(n, targets, &mut searched.parts);
        self.search_parts(kernel, n, from..HEAD_PARTS, targets);
        if self.holds_all() {
            searched.is_complete = true;
            self.search_other_recent(n, targets, &mut searched.parts);
            searched.deep = targets.len() as u64;
            self.search_deep(kernel, n, targets, &mut searched.parts);
        }
        targets.sort_unstable();
        searched
    }

    /// Removes the targets that the pairs give whose smaller part is in `parts`, which end at [`HEAD_PARTS`] or before,
    /// and whose values memory holds.
    fn search_parts(&self, kernel: Kernel, n: u64, parts: Range<u64>, targets: &mut Vec<u16>) {
        for split in self.rule.splits() {
            if targets.is_empty() {
                return;
            }
            let (small, large) = self.small_part_values(n, &split, parts.clone());
            without_constant(&split, targets, |targets| kernel.find_values(small, large, targets));
        }
    }

    /// Removes the targets that a pair with parts of at least [`HEAD_PARTS`] gives, where memory holds all values, and
    /// adds the parts of these pairs to `found`.
    fn search_deep(&self, kernel: Kernel, n: u64, targets: &mut Vec<u16>, found: &mut Vec<u64>) {
        for from in (HEAD_PARTS..=n / 2).step_by(PAIRS_PER_SEARCH) {
            if targets.is_empty() {
                break;
            }
            for split in self.rule.splits() {
                let to = (from + PAIRS_PER_SEARCH as u64).min(split.largest_small_part(n) + 1);
                if to <= from {
                    continue;
                }
                let rest = n - split.remove;
                let (small, large) = (self.values.slice(from, to), self.values.slice(rest + 1 - to, rest + 1 - from));
                without_constant(&split, targets, |targets| {
                    kernel.find_mirrored_values(small, large, targets, |k| {
                        found.extend([from + k as u64, rest - from - k as u64]);
                    });
                });
            }
        }
    }

    /// The options of pairs whose smaller parts are in `parts`, as far as memory holds the values.
    pub(super) fn small_part_options(&self, n: u64, split: &Split, parts: Range<u64>) -> impl Iterator<Item = u16> {
        let (small, large) = self.small_part_values(n, split, parts);
        let constant = split.constant;
        small.iter().zip(large).map(move |(a, b)| constant ^ a ^ b)
    }

    /// [`WideSolver::part_values`] for those of the parts whose values memory holds.
    fn small_part_values(&self, n: u64, split: &Split, parts: Range<u64>) -> (&[u16], &[u16]) {
        let end = parts.end.min(self.far_reach(n, split) + 1);
        if parts.start < end { self.part_values(n, split, parts.start..end) } else { (&[], &[]) }
    }

    /// The option of a far pair with smaller part `a`, both values of which memory holds.
    pub(super) fn pair_option(&self, n: u64, split: &Split, a: u64) -> u16 {
        let value = if a < HEAD_PARTS { self.head.value(a) } else { self.values.get(a) };
        split.constant ^ value ^ self.values.get(n - split.remove - a)
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
    /// All far lookups of a run.
    fn far(&self, run: Run) -> impl Iterator<Item = WidePart> + Clone {
        self.all.far(&self.split, run).into_iter().flat_map(|range| self.all.parts[range].iter().copied())
    }

    /// The far lookups of a run that are not marked, at most [`STAGE`] at a time.
    fn stages(&self, run: Run) -> impl Iterator<Item = &[WidePart]> {
        let far = self.unmarked.far(&self.split, run);
        far.into_iter().flat_map(|range| self.unmarked.parts[range].chunks(STAGE))
    }
}

impl PartList {
    /// The indices of the far lookups of a run: two ranges, between which the parts are too near to each other for some
    /// position of the run ([`PartList::too_near`]).
    fn far(&self, split: &Split, run: Run) -> [Range<usize>; 2] {
        let far = self.parts.partition_point(|part| part.offset < run.far());
        let exist = self.parts.partition_point(|part| (part.offset as u64) < run.first);
        let too_near = self.too_near(split, run.positions());
        [far..too_near.start.clamp(far, exist.max(far)), too_near.end.clamp(far, exist.max(far))..exist.max(far)]
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

// The deep search compares pairs whose smaller part is at least `HEAD_PARTS`, and the far step knows the other part of
// each: a position is less than two batches and a run after the known values.
const _: () = assert!((2 * LONGEST_BATCH + WIDE_LANES) as u64 <= HEAD_PARTS);

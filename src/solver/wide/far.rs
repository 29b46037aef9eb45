//! The far options of a run of [`WIDE_LANES`] positions: what they leave open.

use super::LONGEST_LEAD;
use super::candidates::Search;
use super::marked_sums::MarkedSums;
use super::reader::{LONGEST_SLICE, Reader};
use super::run::Run;
use crate::kernel::{Kernel, WIDE_LANES, WIDE_ROWS, WidePart, WideParts, WideRow};
use crate::solver::witnesses::HEAD_PARTS;
use crate::theory::rule::Split;
use std::array::from_fn;
use std::ops::Range;

/// What the far options of one position leave open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FarLane {
    /// The least common values that are no far option, ascending: at most [`WIDE_ROWS`], or [`MOST_OPEN`] where all far
    /// pairs were compared. Empty if no common value is open, or if the search gave up after it had found that each
    /// value it tried is an option. The middle step removes candidates too.
    pub(super) candidates: Vec<u16>,
    /// Rare values below the first candidate, ascending, that no searched pair gives. Where all far pairs were
    /// compared: the open rare values below the first open common value that is not among the candidates.
    pub(super) searched_rare: Vec<u16>,
    /// Rare values between the first candidate and the last one that the lane ever had, ascending, which no marked pair
    /// gives. No search has tried them.
    pub(super) unsearched_rare: Vec<u16>,
    /// Values after the last candidate that the lane ever had, which no marked pair gives; middle options stay among
    /// them. None where all far pairs were compared.
    pub(super) values_after: FurtherValues,
    /// What the search for pairs met.
    pub(super) searched: Searched,
}

impl FarLane {
    /// Forgets everything but the memory of the lists: fresh memory would cost more time than the work.
    fn clear(&mut self) {
        [&mut self.candidates, &mut self.searched_rare, &mut self.unsearched_rare].into_iter().for_each(Vec::clear);
        (self.values_after, self.searched) = Default::default();
    }
}

/// What the far options of a run leave open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FarRun {
    /// One for each position.
    pub(super) lanes: Vec<FarLane>,
    /// Middle options both of whose parts are before this position are removed from `candidates`, `searched_rare` and
    /// `unsearched_rare`; `values_after` still contains them.
    pub(super) known: u64,
}

/// Number of words of 64 further values.
const FURTHER: usize = 8;

/// The open values after the last candidate of a position, in case each candidate is a middle or a near option.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FurtherValues {
    /// Number of words before the first.
    first: usize,
    /// Bit v % 64 of word v / 64 - `first`: whether v is open.
    words: [u64; FURTHER],
    /// One past the last value that the words cover.
    end: usize,
}

impl FurtherValues {
    /// Whether there is none among the words.
    pub(super) fn is_empty(&self) -> bool {
        self.words == [0; FURTHER]
    }

    /// Those after `last`, which the words cover.
    pub(super) fn after(&self, last: u16) -> FurtherValues {
        let before = usize::from(last) + 1 - 64 * self.first;
        let mut after = self.clone();
        for (word, start) in after.words.iter_mut().zip((0..).step_by(64)) {
            let cleared = u32::try_from(before.saturating_sub(start)).unwrap_or(u32::MAX);
            *word &= u64::MAX.checked_shl(cleared).unwrap_or(0);
        }
        after
    }

    /// The values after `last`, or all if there is none, as many as fit.
    fn of(open: &[u64], last: Option<u16>) -> FurtherValues {
        let (first, bit) = last.map_or((0, 0), |last| (usize::from(last) / 64, u32::from(last) % 64 + 1));
        let mut words = [0; FURTHER];
        words.iter_mut().zip(&open[first..]).for_each(|(word, open)| *word = *open);
        words[0] &= u64::MAX.checked_shl(bit).unwrap_or(0);
        FurtherValues { first, words, end: 64 * (first + words.len()).min(open.len()) }
    }

    /// All values after those that the words cover, open or not: all values, where all far pairs were compared.
    pub(super) fn rest(&self) -> impl Iterator<Item = u16> {
        (self.end..=usize::from(u16::MAX)).filter_map(|v| u16::try_from(v).ok())
    }

    /// The open values, ascending.
    pub(super) fn values(&self) -> impl Iterator<Item = u16> {
        values_of(std::iter::repeat_n(0, self.first).chain(self.words))
    }
}

/// What a search for the pairs of one position met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Searched {
    /// Number of searches for a rare value.
    pub(super) targets: u64,
    /// Number of these for which all pairs were compared here: those that no recent part and no pair with a part below
    /// [`HEAD_PARTS`] gives. 0 where memory does not hold all values.
    pub(super) deep: u64,
    /// Recent parts that gave a value, and the parts of the pairs of larger parts found.
    pub(super) parts: Vec<u64>,
}

impl Searched {
    /// Adds what another search met.
    pub(super) fn add(&mut self, mut other: Searched) {
        self.targets += other.targets;
        self.deep += other.deep;
        self.parts.append(&mut other.parts);
    }
}

/// Number of lookups after which candidates that are options are replaced.
const STAGE: usize = 256;

/// Maximum number of candidates where all far pairs are compared. As long as one of them is no near option, it is m*.
const MOST_OPEN: usize = 16;

/// Number of pairs of a split that one deep search compares before it turns to the next split.
const PAIRS_PER_SEARCH: usize = 1 << 14;
const _: () = assert!(PAIRS_PER_SEARCH as u64 <= LONGEST_SLICE);

/// The values that are still open at one position.
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

    /// Enters the rare values below the last candidate of the lane, and values after it.
    fn around(&self, lane: &mut FarLane) {
        let (least, last) = (lane.candidates.first().copied().unwrap_or(0), lane.candidates.last().copied());
        let mut rare = self.rare().take_while(|&t| Some(t) < last).peekable();
        lane.searched_rare.extend(std::iter::from_fn(|| rare.next_if(|&t| t < least)));
        lane.unsearched_rare.extend(rare);
        lane.values_after = FurtherValues::of(self.open, last);
    }

    /// Enters the open values in the lane, where all far pairs were compared.
    fn exact(&self, lane: &mut FarLane) {
        let mut common = self.common();
        lane.candidates.extend(common.by_ref().take(MOST_OPEN));
        let next = common.next().unwrap_or(u16::MAX);
        lane.searched_rare.extend(self.rare().take_while(|&t| t < next));
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
pub(super) fn without_constant(split: &Split, targets: &mut Vec<u16>, search: impl FnOnce(&mut Vec<u16>)) {
    targets.iter_mut().for_each(|target| *target ^= split.constant);
    search(targets);
    targets.iter_mut().for_each(|target| *target ^= split.constant);
}

/// The lanes of each row in which a part gives the candidate.
pub(super) fn hits(kernel: Kernel, parts: &WideParts<'_, &[WidePart]>, rows: &[WideRow]) -> [u64; WIDE_ROWS] {
    kernel.wide_hits(WideParts { window: parts.window, at: parts.at, list: parts.list.iter().copied() }, rows)
}

impl Reader<'_> {
    /// Puts into `far` what the far options of a run leave open, in place of what was there.
    pub(super) fn far_lanes(&self, kernel: Kernel, run: Run<'_>, far: &mut FarRun) {
        let FarRun { lanes, known } = far;
        *known = run.known;
        lanes.resize_with(WIDE_LANES, FarLane::default);
        lanes.iter_mut().for_each(FarLane::clear);
        let words = self.solver.classes.bound() / 64;
        let mut open = self.unmarked_values(kernel, run);
        if self.solver.all_pairs.in_far_step {
            self.clear_pages(kernel, run, &mut open);
        }
        let open: Vec<OpenValues<'_>> = run
            .positions()
            .zip(open.chunks(words))
            .map(|(n, open)| OpenValues { open, rare: &self.solver.classes.rare[usize::from(n % 2 == 1)] })
            .collect();
        if self.solver.all_pairs.in_far_step {
            open.iter().zip(lanes).for_each(|(open, lane)| open.exact(lane));
            return;
        }
        self.least_candidates(kernel, run, &open, lanes);
        for (n, (open, lane)) in run.positions().zip(open.iter().zip(lanes)) {
            open.around(lane);
            lane.searched = self.search_far(kernel, n, run, &mut lane.searched_rare);
        }
    }

    /// The first lane with a candidate that is an option of a far lookup, marked or not. It exists only after a fault,
    /// which left a lookup out of the marks and of the comparison. `None` where all pairs are compared.
    pub(super) fn lane_with_option(&self, kernel: Kernel, run: Run<'_>, lanes: &[FarLane]) -> Option<usize> {
        if self.solver.all_pairs.in_far_step {
            return None;
        }
        let candidate = |row: usize, lane: usize| lanes[lane].candidates.get(row).copied();
        let rows: [WideRow; WIDE_ROWS] = from_fn(|row| from_fn(|lane| candidate(row, lane).unwrap_or(0)));
        let lists = self.lookups().flat_map(|lookups| lookups.all.far_parts(&lookups.split, run));
        let hits: Vec<[u64; WIDE_ROWS]> =
            lists.flat_map(|list| self.windows(run.first, list)).map(|parts| hits(kernel, &parts, &rows)).collect();
        let is_hit = |row: usize, lane: usize| hits.iter().any(|hits| hits[row] >> lane & 1 == 1);
        (0..lanes.len()).find(|&lane| (0..WIDE_ROWS).any(|row| candidate(row, lane).is_some() && is_hit(row, lane)))
    }

    /// The lookups that candidates of a run are compared with, in stages: those that are far and not marked.
    pub(super) fn stages(&self, run: Run<'_>) -> Vec<WideParts<'_, &[WidePart]>> {
        let lists = self.lookups().flat_map(|lookups| lookups.unmarked.far_parts(&lookups.split, run));
        let stages = lists.flat_map(|list| list.chunks(STAGE)).flat_map(|list| self.windows(run.first, list));
        stages.filter(|stage| !stage.list.is_empty()).collect()
    }

    /// The values that neither a marked part nor a far pair with a small part gives, for each lane one bit per value
    /// below the bound of the classes.
    fn unmarked_values(&self, kernel: Kernel, run: Run<'_>) -> Vec<u64> {
        let words = self.solver.classes.bound() / 64;
        let mut open = vec![u64::MAX; WIDE_LANES * words];
        let marked = MarkedSums::of(self, kernel, run);
        for (lane, (n, open)) in run.positions().zip(open.chunks_mut(words)).enumerate() {
            for split in self.solver.rule.splits() {
                marked.clear_options(lane, &split, open);
                let nearest = (n - run.known + 1).saturating_sub(split.remove).max(1);
                for option in self.small_part_options(n, &split, nearest..run.far() as u64) {
                    // Only a changed bit in memory gives an option beyond the bound.
                    open[usize::from(option) / 64 % words] &= !(1 << (option % 64));
                }
            }
        }
        open
    }

    /// Enters the least common values that are no far options. A lane may stay without candidates although not all
    /// values are options.
    fn least_candidates(&self, kernel: Kernel, run: Run<'_>, open: &[OpenValues<'_>], lanes: &mut [FarLane]) {
        let stages = self.stages(run);
        let search = Search::new(self.solver.wanted, stages.len(), open.iter().map(OpenValues::common).collect());
        let search = search.run(|stage, rows| hits(kernel, &stages[stage], rows));
        lanes.iter_mut().enumerate().for_each(|(lane, far)| far.candidates.extend(search.passed(lane)));
    }

    /// Removes from `targets`, ascending, those that a pair of n gives whose values memory holds. Tries smaller parts
    /// from [`Run::far`] to [`HEAD_PARTS`] and the first recent parts. Where memory holds all values, tries the other
    /// recent parts and then all larger parts too, so that no far pair gives what is left.
    pub(super) fn search_far(&self, kernel: Kernel, n: u64, run: Run<'_>, targets: &mut Vec<u16>) -> Searched {
        /// Lengths of the ranges of smaller parts that are searched one after the other before recent parts.
        const LENGTHS: [u64; 3] = [1 << 8, 1 << 10, 1 << 12];
        let mut searched = Searched { targets: targets.len() as u64, ..Searched::default() };
        let (first, others) = run.recent.first_and_others();
        let mut from = run.far() as u64;
        for length in LENGTHS {
            self.search_parts(kernel, n, from..from + length, targets);
            from += length;
        }
        searched.parts = self.search_recent(n, run, first, targets);
        self.search_parts(kernel, n, from..HEAD_PARTS, targets);
        if self.solver.holds_all() {
            searched.parts.extend(self.search_recent(n, run, others, targets));
            searched.deep = targets.len() as u64;
            self.search_deep(kernel, n, targets, &mut searched.parts);
        }
        targets.sort_unstable();
        searched
    }

    /// Removes the targets that the pairs give whose smaller part is in `parts`, which end at [`HEAD_PARTS`] or before,
    /// and whose values memory holds.
    fn search_parts(&self, kernel: Kernel, n: u64, parts: Range<u64>, targets: &mut Vec<u16>) {
        for split in self.solver.rule.splits() {
            if targets.is_empty() {
                return;
            }
            let (small, large) = self.small_part_values(n, &split, parts.clone());
            without_constant(&split, targets, |targets| kernel.remove_pair_values(small, large, targets));
        }
    }

    /// Removes the targets that a pair with parts of at least [`HEAD_PARTS`] gives, where memory holds all values, and
    /// adds the parts of these pairs to `found`.
    fn search_deep(&self, kernel: Kernel, n: u64, targets: &mut Vec<u16>, found: &mut Vec<u64>) {
        for from in (HEAD_PARTS..=n / 2).step_by(PAIRS_PER_SEARCH) {
            if targets.is_empty() {
                break;
            }
            for split in self.solver.rule.splits() {
                let to = (from + PAIRS_PER_SEARCH as u64).min(split.largest_small_part(n) + 1);
                if to <= from {
                    continue;
                }
                let rest = n - split.remove;
                let (small, large) = (self.slice(from, to), self.slice(rest + 1 - to, rest + 1 - from));
                without_constant(&split, targets, |targets| {
                    kernel.find_mirrored_pairs(small, large, targets, |k| {
                        found.extend([from + k as u64, rest - from - k as u64]);
                    });
                });
            }
        }
    }
}

// The deep search compares pairs whose smaller part is at least `HEAD_PARTS`, and the far step knows the other part of
// each: a position is less than a lead and a run after the known values.
const _: () = assert!(LONGEST_LEAD + WIDE_LANES as u64 <= HEAD_PARTS);

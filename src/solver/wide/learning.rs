//! Which pairs to mark: those that hit most values below G(n), learnt on the last values.
//!
//! Where there are few lookups, the solver marks every rare part that may be marked. Otherwise the choice is greedy, as
//! in [`lookup_order`]: a part gains the weights of the values below G(n) that it hits, and each hit lowers the weight
//! of a value to about 3/8. A round takes all parts whose gain reaches a threshold; the next threshold is three
//! quarters of it.

use super::WideSolver;
use super::lookups::SplitLookups;
use crate::kernel::{WIDE_LANES, WidePart};
use crate::solver::checksums::Checked;
use crate::solver::lookup_order;
use crate::solver::witnesses::HEAD_PARTS;
use crate::theory::nimber::index;
use crate::theory::rule::Split;
use rayon::prelude::*;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// The least part that may be marked. The other part of a pair with a smaller one can lie inside the run. With more
/// than one thread it can also lie in the lead; leaving those parts out as well changes no time.
const LEAST: u64 = WIDE_LANES as u64;

/// Bound, exclusive, of the common parts that may be marked where memory does not hold all values, or where the last
/// rare position is small.
const DEPTH: u64 = 1 << 14;

/// Number of pairs of parts per mark that takes the time of an average deep search among them: the search compares half
/// of the pairs, at a rate of eight pairs in the time of one mark.
const PAIRS_PER_MARK: u64 = 16;

/// Approximate number of rare parts, spread evenly, among which the marks are chosen.
const MOST_RARE_PARTS: usize = 1 << 17;

/// Approximate number of common parts from [`DEPTH`] on, spread evenly, among which the marks are chosen.
const MOST_DEEP_PARTS: usize = 1 << 15;

/// Where all pairs are compared: approximate number of parts among which the marks are chosen.
const MOST_SPREAD_PARTS: u64 = 1 << 14;

/// Maximum number of positions in a sample.
const SAMPLE: u64 = 128;

// The parts that may be marked read values of the head.
const _: () = assert!(DEPTH <= HEAD_PARTS);

/// Weight of a value that no chosen part hits yet.
const FULL_WEIGHT: u8 = u8::MAX;

/// Maximum number of positions per new hit of a marked rare part: a part that needs more positions to hit one more
/// common value is not marked. A mark takes 0.27 ns per position.
const COMMON_PER_MARK: u64 = 300;

/// Where there are many lookups, the maximum is their number divided by this one instead, if that is larger, because a
/// candidate is compared with all lookups that are not marked. With 60, .146 takes 2 % longer.
const RARE_PARTS_PER_MARK: u64 = 30;

/// Maximum number of lookups where every rare part that may be marked is marked. The far step then compares candidates
/// with few lookups, and few further values are options of a lookup. With 1600 to 2000 lookups, the additional marks
/// take as much time as the comparison; with 4000 they take longer (record 2026-11-30).
const ALL_MARKED: u64 = 2500;

/// Maximum number of positions per new hit of a marked common part, which gives rare values, for each split of the
/// game. That many marks take about as long as the search for a pair.
const RARE_PER_MARK: u64 = 60;

/// Where all pairs are compared: maximum number of positions per new hit of a marked part. A pair that is compared with
/// all open values of one page takes 0.045 ns, and a hit among them some nanoseconds.
const ANY_PER_MARK: u64 = 20;

/// Minimum number of positions after which marks are learnt again that were learnt without counts of searches. Unit
/// tests learn again soon.
const UNCOUNTED_POSITIONS: u64 = if cfg!(test) { 256 } else { 1 << 14 };

/// Divisor of the number of values that gives the minimum number of positions after which other marks are learnt again:
/// about six times per doubling.
const LEARN_AGAIN_AFTER: u64 = if cfg!(test) { 64 } else { 8 };

/// Minimum time between two learnings, as a multiple of the duration of the earlier one. No measurement is recorded;
/// with 50, some games took a little longer in short runs (record 2026-11-26h).
const TIMES_OF_LEARNING: u32 = if cfg!(test) { 0 } else { 100 };

/// The same after a learning without counts of searches.
const TIMES_OF_UNCOUNTED_LEARNING: u32 = if cfg!(test) { 0 } else { 10 };

/// Maximum number of marked parts of one class.
const MOST_MARKS: usize = 1 << 16;

/// The pairs whose options are entered first.
///
/// The splits share the marks ([`marked_sums`](super::marked_sums)): the offset of a part a is a + s, where s is the
/// least removal of all splits, and the value is G(a), without a constant.
pub(super) struct Marks {
    /// Ascending by offset.
    pub(super) parts: Checked<Vec<WidePart>>,
    /// An upper bound of the smaller parts of the pairs.
    pub(super) depth: u64,
}

impl Marks {
    /// No marks.
    pub(super) fn new() -> Marks {
        Marks { parts: Checked::new(Vec::new()), depth: 0 }
    }

    /// The marks of offset `least` or more.
    pub(super) fn from(&self, least: usize) -> &[WidePart] {
        &self.parts[self.parts.partition_point(|part| part.offset < least)..]
    }
}

/// The last learning of the marks, and the searches since.
pub(super) struct LastLearning {
    /// The number of values at which the marks were learnt.
    pub(super) learnt_at: u64,
    /// When they had been learnt.
    time: Instant,
    /// How long that took.
    duration: Duration,
    /// Whether searches were counted before they were learnt.
    has_counts: bool,
    /// Number of searches for rare values that no mark gave, since.
    pub(super) searches: u64,
    /// Number of these searches that compared all pairs.
    pub(super) deep_searches: u64,
}

impl LastLearning {
    /// A learning that begins at `begin`, at `learnt_at` values, and ends now.
    pub(super) fn ending_now(learnt_at: u64, begin: Instant, has_counts: bool) -> LastLearning {
        LastLearning {
            learnt_at,
            time: Instant::now(),
            duration: begin.elapsed(),
            has_counts,
            searches: 0,
            deep_searches: 0,
        }
    }
}

/// Where the solver compares all pairs, not only chosen ones.
#[derive(Default)]
pub(super) struct AllPairs {
    /// Whether the far step compares all pairs ([`WideSolver::compares_all_pairs`]).
    pub(super) in_far_step: bool,
    /// The number of values at which that was decided last.
    pub(super) judged_at: u64,
    /// Whether searches often compare all pairs, so that memory should hold all values.
    pub(super) in_searches: bool,
}

impl WideSolver {
    /// Learns the marks again when the sequence has doubled, when the far step begins or stops comparing all pairs, and
    /// otherwise when enough positions have passed and learning takes only a small share of the time.
    pub(super) fn learn_when_due(&mut self) {
        let end = self.end();
        let has_changed = self.judge_far_step();
        let has_doubled = end >= self.learning.learnt_at.saturating_mul(2);
        if has_doubled || has_changed || self.is_relearning_due(end) {
            let begin = Instant::now();
            // Memory is dropped only after a doubling: better marks need it, and it should not be read repeatedly.
            let keeps = self.all_pairs.in_searches && !has_doubled;
            self.all_pairs.in_searches = keeps || self.often_searches_all_pairs();
            let marks = self.learn();
            self.enter_marks(marks);
            let has_counts = self.learning.learnt_at > 0 && !has_changed;
            self.learning = LastLearning::ending_now(end, begin, has_counts);
        }
    }

    /// Decides, when that is due, whether the far step compares all pairs. Returns whether that has changed.
    fn judge_far_step(&mut self) -> bool {
        let end = self.end();
        let before = self.all_pairs.in_far_step;
        let is_possible = !self.has_space() || self.holds_all();
        if end >= self.all_pairs.judged_at + self.all_pairs.judged_at / 8 {
            self.all_pairs.judged_at = end;
            self.all_pairs.in_far_step = self.compares_all_pairs();
        } else {
            self.all_pairs.in_far_step &= is_possible;
        }
        self.all_pairs.in_far_step != before
    }

    /// Replaces the marks, and updates the lookups that are not marked.
    fn enter_marks(&mut self, mut marks: Vec<WidePart>) {
        self.marks.depth = marks.iter().map(|mark| mark.offset as u64).max().unwrap_or(0);
        marks.sort_unstable_by_key(|mark| mark.offset);
        self.marks.parts.replace(marks);
        // No marked part gives a candidate, so candidates need no comparison with marked parts.
        let marked: HashSet<WidePart> = self.marks.parts.iter().copied().collect();
        let removal = self.least_removal();
        for SplitLookups { split, all, unmarked } in &mut self.lookups {
            // The mark with the pairs of the lookup.
            let mark = |lookup: WidePart| WidePart {
                offset: lookup.offset - index(split.remove - removal),
                value: lookup.value ^ split.constant,
            };
            unmarked.parts.replace(&all.parts, |lookup| marked.contains(&mark(*lookup)));
        }
    }

    /// Whether the marks should be learnt again although the sequence has not doubled: first because searches were
    /// counted since, then because the values change.
    fn is_relearning_due(&self, end: u64) -> bool {
        let LastLearning { learnt_at, time, duration, has_counts, .. } = self.learning;
        let (positions, times) = if has_counts {
            (learnt_at / LEARN_AGAIN_AFTER, TIMES_OF_LEARNING)
        } else {
            (UNCOUNTED_POSITIONS, TIMES_OF_UNCOUNTED_LEARNING)
        };
        !self.all_pairs.in_far_step && end >= learnt_at + positions && time.elapsed() >= times * duration
    }

    /// The rare parts that may be marked, at most about [`MOST_RARE_PARTS`].
    fn rare_parts(&self) -> Vec<WidePart> {
        let step = (self.rare_positions.list().len() / MOST_RARE_PARTS).max(1);
        let may_be_marked = LEAST..self.deepest_mark();
        let rare = self.rare_positions.list().iter().step_by(step);
        rare.filter(|(r, _)| may_be_marked.contains(r)).map(|&(r, value)| self.mark(r, value)).collect()
    }

    /// The common parts that may be marked: those below [`DEPTH`], and, where memory holds all values, about
    /// [`MOST_DEEP_PARTS`] parts of all sizes up to the last rare position.
    fn common_parts(&self) -> Vec<WidePart> {
        let goes_deep = self.holds_all() && self.rare_positions.last() > 2 * HEAD_PARTS;
        // A larger part than the last rare position could need values that a resumed solver does not hold.
        let deepest = if goes_deep { self.rare_positions.last() } else { DEPTH };
        let step = (index(deepest) / MOST_DEEP_PARTS) | 1;
        let most = self.deepest_mark();
        let deep = (DEPTH..deepest.min(most)).step_by(step);
        // A step is odd, so that the parts are even and odd in turn.
        let parts = (LEAST..DEPTH.min(most / 2)).chain(deep).map(|a| (a, self.part_value(a)));
        parts.filter(|&(a, value)| !self.is_rare(value, a)).map(|(a, value)| self.mark(a, value)).collect()
    }

    /// The mark of the part a, with its value.
    fn mark(&self, a: u64, value: u16) -> WidePart {
        WidePart { offset: index(a + self.least_removal()), value }
    }

    /// The value of a part that may be marked.
    fn part_value(&self, a: u64) -> u16 {
        if a < HEAD_PARTS { self.head.value(a) } else { self.values.get(a) }
    }

    /// Bound, exclusive, of the smaller parts that all splits have at the positions of a sample and at all later ones.
    fn deepest_mark(&self) -> u64 {
        let n = self.end() - lookup_order::SPAN.min(self.end() / 4);
        self.rule.splits().map(|split| split.largest_small_part(n)).min().unwrap_or(0)
    }

    /// Parts that may be marked, spread evenly: about one for 16 values, and at most about [`MOST_SPREAD_PARTS`], so
    /// that learning takes little time beside the comparison of all pairs.
    fn spread_parts(&self) -> Vec<WidePart> {
        let most = self.deepest_mark();
        let step = index(most / (self.end() / 16).clamp(1, MOST_SPREAD_PARTS)) | 1;
        (LEAST..most).step_by(step).map(|a| self.mark(a, self.part_value(a))).collect()
    }

    /// The parts to mark: rare parts, which give common values, then common parts, which give rare values. Where all
    /// pairs are compared, any parts.
    fn learn(&self) -> Vec<WidePart> {
        let end = self.end();
        let span = lookup_order::SPAN.min(end / 4);
        if span == 0 {
            return Vec::new();
        }
        let count = SAMPLE.min(span / 4).max(1);
        let step = (span / count).saturating_sub(1) | 1;
        let sample: Vec<u64> = (0..count).map(|i| end - 1 - i * step % span).collect();
        if self.all_pairs.in_far_step {
            return self.best_parts(&self.spread_parts(), &sample, ANY_PER_MARK);
        }
        let (rare, common) = (self.rare_parts(), self.common_parts());
        let common_per_mark = COMMON_PER_MARK.max(self.count_lookups() / RARE_PARTS_PER_MARK);
        let pairs = self.lookups.len() as u64 * (end / 2).saturating_sub(HEAD_PARTS);
        let LastLearning { searches, deep_searches, .. } = self.learning;
        let deep = deep_searches.saturating_mul(pairs) / (PAIRS_PER_MARK * searches.max(1));
        let rare_per_mark = RARE_PER_MARK * self.lookups.len() as u64 + deep;
        let of_rare = || match self.count_lookups() {
            0..=ALL_MARKED => rare.clone(),
            _ => self.best_parts(&rare, &sample, common_per_mark),
        };
        let (mut marks, more) = rayon::join(of_rare, || self.best_parts(&common, &sample, rare_per_mark));
        marks.extend(more);
        marks
    }

    /// The best of the parts, roughly best first, at most [`MOST_MARKS`]: those that hit a new value below G(n)
    /// at one position of the sample in `per_mark`, or more often.
    fn best_parts(&self, parts: &[WidePart], sample: &[u64], per_mark: u64) -> Vec<WidePart> {
        if parts.is_empty() {
            // A removal may then exceed the positions of the sample, and the subtraction below would underflow.
            return Vec::new();
        }
        let bound = self.classes.bound();
        let mut weight = vec![0u8; bound * sample.len()];
        for (row, &n) in weight.chunks_mut(bound).zip(sample) {
            row[..usize::from(self.values.get(n)).min(bound)].fill(FULL_WEIGHT);
        }
        let items = self.values.items();
        let removal = self.least_removal();
        // For each position of the sample and each split: the start of the row of the position in `weight`, the index
        // in `items` from which the offsets of parts count back, and the constant.
        let reads: Vec<(usize, usize, u16)> = (0..)
            .step_by(bound)
            .zip(sample)
            .flat_map(|(first, &n)| {
                let at = move |split: Split| self.values.at(n) - index(split.remove - removal);
                self.rule.splits().map(move |split| (first, at(split), split.constant))
            })
            .collect();
        // `bound` is a power of two. Of an option beyond it, which only a changed bit in memory can give, the low bits
        // count.
        let places = |part: WidePart| {
            let option = move |at: usize| items[at - part.offset] ^ part.value;
            reads.iter().map(move |&(first, at, constant)| first + (usize::from(option(at) ^ constant) & (bound - 1)))
        };
        let gain = |weight: &[u8], part: WidePart| places(part).map(|place| u64::from(weight[place])).sum::<u64>();
        // A gain that was computed earlier is an upper bound. So each round computes only those again that would be
        // enough.
        let mut gains: Vec<(u64, WidePart)> = parts.par_iter().map(|&part| (gain(&weight, part), part)).collect();
        let least = (u64::from(FULL_WEIGHT) * sample.len() as u64).div_ceil(per_mark);
        let mut enough = gains.iter().map(|&(most, _)| most).max().unwrap_or(0);
        let mut best = Vec::new();
        while enough >= least && best.len() < MOST_MARKS {
            // Most gains are too small now, which all threads find out in parallel.
            let stale = gains.par_iter_mut().filter(|(most, _)| *most >= enough);
            stale.for_each(|(most, part)| *most = gain(&weight, *part));
            gains.retain_mut(|(most, part)| {
                if *most >= enough {
                    *most = gain(&weight, *part);
                }
                let is_chosen = *most >= enough && best.len() < MOST_MARKS;
                if is_chosen {
                    places(*part).for_each(|place| weight[place] = weight[place] / 8 * 3);
                    best.push(*part);
                }
                !is_chosen
            });
            if enough == least {
                break;
            }
            enough = least.max(enough * 3 / 4);
        }
        best
    }
}

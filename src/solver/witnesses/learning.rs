//! How the witness stream learns: which parts to mark, how many of them, and how many codes to consider.

use super::Witnesses;
use crate::kernel::{self, LANES, Probe, Probes};
use crate::solver::clocks::LearningClocks;
use crate::solver::codes::{Codes, POISON};
use crate::solver::cost;
use crate::solver::lookup_order::{self, Left, LookupRun};
use crate::theory::nimber::index;

/// The largest smaller part that is marked. No benchmark measures it.
pub(super) const DEPTH: u64 = 16_384;

/// Number of possible smaller parts that are tried per target of a value, because few targets need few parts. No
/// benchmark measures it.
const DEPTH_PER_TARGET: u64 = 512;

/// Number of last values by whose targets the number of codes is chosen. No benchmark measures it.
const CONSIDERED_VALUES: u64 = 1 << 12;

/// Maximum number of parts that are marked or held against the least open targets. No benchmark measures it.
const MOST_PARTS: usize = 900;

/// Common parts in learnt order, and their use.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Parts {
    /// All learnt parts.
    learnt: Vec<Probe>,
    /// The first of `learnt`, which are marked.
    pub(super) marks: Probes,
    /// The next of `learnt`, which are held against the least targets that stay open.
    pub(super) clear_probes: Probes,
}

impl Parts {
    /// The same parts, of which the first `marks` are marked and the next `clear_probes` are held against the least
    /// open targets.
    fn with_budget(&self, marks: usize, clear_probes: usize) -> Parts {
        let mut parts = Parts { learnt: self.learnt.clone(), ..Parts::default() };
        for part in self.learnt.iter().take(marks) {
            parts.marks.push(*part);
        }
        for part in self.learnt.iter().skip(marks).take(clear_probes) {
            parts.clear_probes.push(*part);
        }
        parts
    }

    /// Flips a bit; returns false when no parts are known.
    #[cfg(test)]
    pub(super) fn flip(&mut self, draw: u64, bit: u8) -> bool {
        let count = self.learnt.len().max(1);
        let Some(part) = self.learnt.get_mut(index(draw) % count) else { return false };
        *part = Probe::new(part.offset, part.code() ^ bit);
        true
    }
}

/// What the stream has chosen besides the parts, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Learning {
    /// Number of codes considered when marking: those below it.
    pub(super) codes_considered: usize,
    /// The largest smaller part that may be marked; 0 before parts are learnt.
    pub(super) depth: u64,
    pub(super) clocks: LearningClocks,
    /// Number of targets per 1024 values when the budget was chosen.
    targets_at_rebalance: usize,
}

impl Learning {
    /// Nothing is learnt yet.
    pub(super) fn new() -> Learning {
        let codes_considered = kernel::MOST_CODES;
        Learning { codes_considered, depth: 0, clocks: LearningClocks::default(), targets_at_rebalance: 0 }
    }
}

impl Witnesses {
    /// Whether parts are due, before the next values are pushed.
    pub(in crate::solver) fn is_learning_due(&self) -> bool {
        self.learning.clocks.is_learning_due(self.end(), cost::LEARN_PARTS_FROM_N)
    }

    /// Before the next values are pushed: learns the parts, when due. All threads of the pool take part: the pool must
    /// have no task that waits for the caller, because a thread that learns could start it, and neither would end.
    pub(in crate::solver) fn learn_when_due(&mut self, codes: &Codes) {
        if self.is_learning_due() {
            self.learn(codes);
        }
    }

    /// Before the check of values from `start` on: reconsiders the number of codes, when due.
    pub(in crate::solver) fn reconsider_when_due(&mut self, start: u64, codes: &Codes) {
        if self.learning.depth > 0 && self.learning.clocks.is_reconsidering_due(start) {
            self.reconsider(codes);
        }
    }

    /// The number of targets of `n`, whose codes are those below this number; 0 where G(n) is rare or has no code.
    fn targets(&self, n: u64, codes: &Codes) -> usize {
        let below = self.rare_below[usize::from(n % 2 == 1)].get(usize::from(self.recent.get(n)));
        if codes.get(n) == POISON { 0 } else { below.map_or(0, |&below| usize::from(below)) }
    }

    /// Chooses the number of codes to consider from the last values. Chooses the budget again as well when the number
    /// of targets has changed by more than an eighth, or when the last choice is old.
    fn reconsider(&mut self, codes: &Codes) {
        let end = self.end();
        self.learning.clocks.reconsidered(end);
        let last = end.saturating_sub(CONSIDERED_VALUES).max(self.recent.start());
        let below: Vec<usize> = (last..end).map(|n| self.targets(n, codes)).collect();
        self.learning.codes_considered =
            lookup_order::codes_to_consider(&below, cost::TARGET_CODE_PS, |more| more * cost::UNCONSIDERED_TARGET_PS);
        let targets = below.iter().sum::<usize>() * 1024 / below.len().max(1);
        let before = self.learning.targets_at_rebalance;
        if targets.abs_diff(before) * 8 > before || self.learning.clocks.is_rebalancing_due(end) {
            self.learning.targets_at_rebalance = targets;
            self.rebalance(codes);
        }
    }

    /// Learns which parts to mark, from the last values.
    fn learn(&mut self, codes: &Codes) {
        let end = self.end();
        let sample = lookup_order::sample(end);
        let below: Vec<usize> = sample.iter().map(|&n| self.targets(n, codes)).collect();
        let targets = below.iter().sum::<usize>() / sample.len().max(1);
        let depth = DEPTH.min(end / 4).min(DEPTH_PER_TARGET * (targets as u64 + 1));
        if !sample.first().is_some_and(|&first| codes.hold(first, depth + self.rule.max_remove(), end)) {
            self.learning.depth = 0;
            return;
        }
        self.learning.depth = depth;
        self.learning.clocks.learnt(end);
        let indices: Vec<usize> = sample.iter().map(|&n| codes.at(n)).collect();
        let mut learnt = self.common_parts(depth);
        lookup_order::learn(&mut learnt, MOST_PARTS, &below, |part, i| {
            codes.items()[indices[i] - part.offset] ^ part.code()
        });
        learnt.truncate(MOST_PARTS);
        self.parts.replace(Parts { learnt, ..Parts::clone(&self.parts) });
        self.reconsider(codes);
        self.rebalance(codes);
    }

    /// The common parts from 1 to `depth` of every split that can be marked: with a code that poison turns into none of
    /// the codes considered.
    fn common_parts(&self, depth: u64) -> Vec<Probe> {
        let mut parts = Vec::new();
        for split in &self.splits {
            for a in 1..=depth {
                let value = self.head.value(a);
                if self.space.is_rare(value, a) || value.max(value ^ split.constant) >= self.space.coded() {
                    continue;
                }
                let code = self.space.code(value ^ split.constant);
                if usize::from(POISON ^ code) >= kernel::MOST_CODES {
                    parts.push(Probe::new(index(a + split.remove), code));
                }
            }
        }
        parts
    }

    /// Chooses how many of the parts are marked and how many are held against the least open targets, from the targets
    /// that they leave open at the last values.
    fn rebalance(&mut self, codes: &Codes) {
        let considered = self.learning.codes_considered;
        let below = |n: u64| self.targets(n, codes).min(considered).to_le_bytes()[0];
        let run =
            |first: u64| LookupRun { at: codes.at(first), below: std::array::from_fn(|i| below(first + i as u64)) };
        let runs: Vec<LookupRun> = lookup_order::last_runs(self.end()).map(run).collect();
        let left = lookup_order::left(self.kernel, codes.items(), &self.parts.learnt, &runs, considered);
        let (marks, clear_probes) = choose_budget(&left, runs.len() * LANES, considered);
        self.parts.replace(self.parts.with_budget(marks, clear_probes));
        self.learning.clocks.rebalanced(self.end());
    }
}

/// The cheapest numbers of parts, in learnt order, to mark and then to hold against the least open targets. Among
/// equally cheap choices it takes the one with the fewest marks, then the one with the fewest parts.
///
/// `left[k]` counts the targets that the first k · [`lookup_order::LOOKUPS_PER_STEP`] parts leave open, over `values`
/// sampled values.
fn choose_budget(left: &[Left], values: usize, considered: usize) -> (usize, usize) {
    const STEP: usize = lookup_order::LOOKUPS_PER_STEP;
    // Open targets beyond the first MAX_CLEARED_CODES of each lane, which are not held against parts.
    let beyond = |left: &Left| left.sum - left.at_least[1..=kernel::MAX_CLEARED_CODES].iter().sum::<usize>();
    let mut cheapest = None;
    for first in 0..left.len() {
        for last in first..left.len() {
            let searched = left[last].sum + beyond(&left[first]);
            let parts = first as u64 * cost::mark_ps(considered) + (last - first) as u64 * cost::CLEAR_PS;
            let price = STEP as u64 * parts * values as u64 + searched as u64 * cost::FIND_TARGET_PS;
            if cheapest.is_none_or(|(least, _, _)| price < least) {
                cheapest = Some((price, first, last));
            }
        }
    }
    cheapest.map_or((0, 0), |(_, first, last)| (STEP * first, STEP * (last - first)))
}

//! The choice of the budget: how many lookups are marked, and how many candidates each stage of checking keeps.

use crate::kernel::KEEP;
use crate::solver::cost;
use crate::solver::lookup_order::{LOOKUPS_PER_STEP, Left};
use crate::solver::lookups::plan::{Budget, StageBudget};

/// The estimated cost of each budget, from a sample of values.
///
/// A budget marks the lookups before some rank and checks the others against the least codes that stay open, in stages
/// that keep fewer and fewer of them ([`KEEP`]). A stage loses the answer of a lane where at least as many codes below
/// the answer are open as it keeps. The model counts these losses for the first stage only, because a later stage
/// begins where next to no answers are lost.
pub(super) struct CostModel<'a> {
    /// `left[step]` counts the open codes below the answer after the first `step` · [`LOOKUPS_PER_STEP`] lookups.
    left: &'a [Left],
    /// Number of lookups.
    ranks: usize,
    /// Number of sampled values.
    values: usize,
    /// Number of codes considered.
    codes: usize,
    /// One picosecond that only one thread can spend counts as this many that all threads share.
    weight: u64,
    /// Number of middle and late lookups, which are checked after the last stage.
    late: usize,
    /// For each of [`KEEP`], the rank from which a stage may keep this number of candidates; `ranks` if none may.
    begin: [usize; KEEP.len()],
}

impl CostModel<'_> {
    /// A model of `ranks` lookups with `codes` codes considered; `left` counts over `values` sampled values.
    pub(super) fn new(left: &[Left], ranks: usize, values: usize, codes: usize) -> CostModel<'_> {
        CostModel { left, ranks, values, codes, late: 0, weight: 1, begin: [ranks; KEEP.len()] }.with_stages()
    }

    /// The same model where `late` more lookups are checked after the stages, and the time of one thread has this
    /// weight.
    pub(super) fn with_late(self, late: usize, weight: u64) -> Self {
        CostModel { late, weight, ..self }.with_stages()
    }

    /// Finds the ranks from which stages may keep fewer candidates.
    fn with_stages(mut self) -> Self {
        for (i, keep) in KEEP.into_iter().enumerate() {
            let lost = |step: &usize| self.lost(*step, keep) as u64 * self.weight;
            let few = |step: &usize| lost(step) <= (self.values / cost::VALUES_PER_LOST_ANSWER) as u64;
            self.begin[i] = (0..self.left.len()).find(few).map_or(self.ranks, |step| self.rank(step));
        }
        self
    }

    /// The budget with the least estimated cost. Among equals, the first stage keeps most and the marks are fewest.
    pub(super) fn cheapest_budget(&self) -> Budget {
        let mut cheapest: Option<(u64, Budget)> = None;
        for first in 0..KEEP.len() {
            for step in 0..self.left.len() {
                let budget = self.budget(first, step);
                let cost = self.cost_ps(&budget, step);
                if cheapest.as_ref().is_none_or(|(least, _)| cost < *least) {
                    cheapest = Some((cost, budget));
                }
            }
        }
        cheapest.expect("there are choices").1
    }

    /// Rank of the first lookup after the first `step` steps.
    fn rank(&self, step: usize) -> usize {
        self.ranks.min(step * LOOKUPS_PER_STEP)
    }

    /// Number of sampled values whose answer a stage would lose that begins after `step` steps and keeps `keep`
    /// candidates.
    fn lost(&self, step: usize, keep: usize) -> usize {
        self.left[step].at_least[keep]
    }

    /// The budget that marks `step` steps and then checks in stages, the first of which keeps `KEEP[first]` candidates.
    /// Each later stage begins as early as it may, unless the stage before would be too short.
    fn budget(&self, first: usize, step: usize) -> Budget {
        let marks = self.rank(step);
        let mut stages = vec![StageBudget { keep: KEEP[first], from: marks }];
        for (&keep, &begin) in KEEP.iter().zip(&self.begin).skip(first + 1) {
            if begin >= self.ranks {
                continue;
            }
            let from = begin.max(marks);
            let last = stages[stages.len() - 1].from;
            if from == last {
                // The stage before would be empty.
                stages.pop();
                stages.push(StageBudget { keep, from });
            } else if from >= last + cost::MIN_STAGE_LOOKUPS {
                stages.push(StageBudget { keep, from });
            }
        }
        let keep_late = self.keep_for_late(stages[stages.len() - 1].keep);
        Budget { codes: self.codes, marks, stages, keep_late }
    }

    /// The number of candidates to compare with the middle and late lookups, at most the number that the last stage
    /// keeps. The others are read where none of these is left.
    fn keep_for_late(&self, last: usize) -> usize {
        let fewer = KEEP.into_iter().filter(|&keep| keep <= last);
        fewer.min_by_key(|&keep| self.late_ps(keep)).filter(|_| self.late > 0).unwrap_or(last)
    }

    /// The estimated cost of the middle and late lookups with `keep` candidates, in picoseconds per value.
    fn late_ps(&self, keep: usize) -> u64 {
        let lost = self.lost(self.left.len() - 1, keep) as u64 * cost::LATE_LANE_PS / self.values as u64;
        self.late as u64 * cost::check_ps(keep) + lost
    }

    /// Whether other threads should evaluate the far lookups. They should where the middle and late lookups, as this
    /// model prices them, cost less than one `factor`-th of marking all lookups, which one thread alone could do
    /// instead. The more candidates the far lookups leave, the more the middle and late ones cost.
    pub(super) fn should_share(&self, factor: u64) -> bool {
        let late_ps = KEEP.into_iter().map(|keep| factor * self.late_ps(keep)).min();
        late_ps < Some(self.ranks as u64 * cost::mark_ps(self.codes))
    }

    /// The estimated cost of a budget that marks `step` steps, in picoseconds per value: of marking, of checking, and
    /// of the answers that the first stage loses.
    fn cost_ps(&self, budget: &Budget, step: usize) -> u64 {
        let mut checks = 0;
        for (i, stage) in budget.stages.iter().enumerate() {
            let end = budget.stages.get(i + 1).map_or(self.ranks, |next| next.from);
            checks += (end - stage.from) as u64 * cost::check_ps(stage.keep);
        }
        let marks = budget.marks as u64 * cost::mark_ps(self.codes);
        let lost = self.lost(step, budget.stages[0].keep) as u64 * self.weight;
        let lost = lost * cost::UNRESOLVED_LANE_PS / self.values as u64;
        marks + checks + lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::CANDIDATES;
    use crate::support::Random;

    /// Counts of open codes that fall from step to step, and with the number of open codes.
    fn random_counts(random: &mut Random, steps: usize, values: usize) -> Vec<Left> {
        let mut at_least = [values; CANDIDATES + 1];
        let mut left = Vec::new();
        for _ in 0..=steps {
            for k in 1..=CANDIDATES {
                let most = at_least[k].min(at_least[k - 1]);
                let kept = if random.below(8) == 0 { 0 } else { random.below(256) as usize };
                at_least[k] = most * kept.max(120) / 256;
                if kept == 0 {
                    at_least[k] = 0;
                }
            }
            left.push(Left { sum: at_least[1..].iter().sum(), at_least });
        }
        left
    }

    /// The number of candidates that each lookup from `marks` on is checked against, and one more entry: the last stage
    /// that begins at or before a lookup decides.
    fn keeps(left: &[Left], ranks: usize, values: usize, first: usize, marks: usize) -> Vec<usize> {
        let mut stages: Vec<(usize, usize)> = vec![(marks, KEEP[first])];
        for &keep in &KEEP[first + 1..] {
            let Some(step) = left.iter().position(|left| left.at_least[keep] <= values / 2048) else { continue };
            let rank = 16 * step;
            let from = rank.max(marks);
            let last = stages.last().unwrap().0;
            if rank < ranks && (from == last || from >= last + 60) {
                stages.push((from, keep));
            }
        }
        (marks..=ranks).map(|rank| stages.iter().rev().find(|stage| stage.0 <= rank).unwrap().1).collect()
    }

    /// Prices every choice lookup by lookup.
    #[test]
    fn the_cheapest_budget_is_that_of_a_brute_force_search() {
        let random = &mut Random::new("budgets");
        for _ in 0..300 {
            let ranks = 1 + random.below(900) as usize;
            let values = 64 * (1 + random.below(64) as usize);
            let codes = crate::kernel::CODES[random.below(12) as usize];
            let weight = 1 + random.below(8);
            let left = random_counts(random, ranks.div_ceil(16), values);
            let found = CostModel::new(&left, ranks, values, codes).with_late(0, weight).cheapest_budget();
            let mut choices = Vec::new();
            for first in 0..KEEP.len() {
                for (step, left_here) in left.iter().enumerate() {
                    let marks = ranks.min(16 * step);
                    let keeps = keeps(&left, ranks, values / weight as usize, first, marks);
                    let mark_ps = (500 + 36 * codes as u64) / 64;
                    let checks: u64 = keeps[..ranks - marks].iter().map(|&keep| (500 + 240 * keep as u64) / 64).sum();
                    let lost = left_here.at_least[keeps[0]] as u64 * weight * 1_000_000 / values as u64;
                    choices.push((marks as u64 * mark_ps + checks + lost, marks, keeps));
                }
            }
            let least = choices.iter().map(|choice| choice.0).min().unwrap();
            let (_, marks, keeps) = choices.into_iter().find(|choice| choice.0 == least).unwrap();
            assert_eq!(found.codes, codes);
            assert_eq!(found.marks, marks);
            assert_eq!(found.stages[0].from, marks);
            assert!(found.stages.windows(2).all(|pair| pair[0].from < pair[1].from && pair[0].keep > pair[1].keep));
            let stage_of = |rank: usize| found.stages.iter().rev().find(|stage| stage.from <= rank).unwrap();
            let found_keeps: Vec<usize> = (marks..=ranks).map(|rank| stage_of(rank).keep).collect();
            assert_eq!(found_keeps, keeps);
        }
    }
}

//! How the candidate stream learns: the number of codes, which lookups are far, the order of the lookups, and the
//! budget.

use super::cost_model::CostModel;
use super::{CandidateStream, least_far_choices};
use crate::kernel::{self, LANES, Probe};
use crate::solver::cost;
use crate::solver::lookup_order::{self, Left, LookupRun};
use crate::solver::lookups::Lookup;
use crate::solver::lookups::plan::LEAST_MIDDLE;
use crate::theory::nimber::index;

/// Number of last values from which the number of codes is chosen.
const CONSIDERED_VALUES: usize = 1 << 13;

/// Maximum number of lookups that are chosen one by one. No benchmark measures it.
const MOST_CHOSEN: usize = 1 << 11;

/// Factor of the price of an answer above the codes considered, where threads share the far lookups. Where a late or
/// near lookup hits the only considered candidate that is left in a lane, only the producer can resolve the lane, one
/// byte per marked lookup.
const BEYOND_WEIGHT: u64 = 8;

/// Divisor of the number of threads that gives the weight of the producer's time.
const THREADS_PER_WEIGHT: u64 = 4;

/// Maximum weight of the producer's time.
const MOST_WEIGHT: u64 = 4;

/// Price of an answer outside the codes considered, `beyond` ≥ 1 codes above the last of them, in picoseconds.
fn loss_ps(beyond: u64) -> u64 {
    if beyond <= kernel::BEYOND as u64 { cost::ANSWER_BEYOND_PS } else { cost::UNRESOLVED_LANE_PS }
}

impl CandidateStream {
    /// Whether an order of the lookups is due.
    pub(in crate::solver) fn is_learning_due(&self) -> bool {
        !self.plan.is_recurrence() && self.clocks.is_learning_due(self.end(), cost::LEARN_LOOKUPS_FROM_N)
    }

    /// Learns the order of the lookups, when due. All threads of the pool take part: the pool must have no task that
    /// waits for the caller, because a thread that learns could start it, and neither would end.
    pub(in crate::solver) fn learn_when_due(&mut self) {
        if self.is_learning_due() {
            self.learn();
        }
    }

    /// Reconsiders the number of codes when due. The window must hold codes.
    pub(super) fn reconsider_when_due(&mut self) {
        if self.clocks.is_reconsidering_due(self.end()) {
            self.reconsider();
        }
    }

    /// Chooses the number of codes to consider. Chooses the budget again as well when too many lanes were unresolved,
    /// or when the last choice is old.
    fn reconsider(&mut self) {
        self.choose_codes();
        let is_due = self.unresolved > cost::MAX_UNRESOLVED_LANES || self.clocks.is_rebalancing_due(self.end());
        if is_due && self.clocks.has_learnt() && !self.plan.is_recurrence() {
            self.rebalance();
        }
    }

    /// Chooses the number of codes to consider from the last values.
    fn choose_codes(&mut self) {
        self.clocks.reconsidered(self.end());
        let last_codes = self.windows.codes().items().iter().rev().take(CONSIDERED_VALUES);
        let answers: Vec<usize> = last_codes.map(|&code| usize::from(code)).collect();
        let weight = if self.may_share_far() { BEYOND_WEIGHT } else { 1 };
        let weighted_ps = |beyond| weight * loss_ps(beyond);
        let codes = lookup_order::codes_to_consider(&answers, cost::CANDIDATE_CODE_PS, weighted_ps);
        if codes != self.budget.codes {
            self.budget.codes = codes;
            self.discard_plan();
        }
    }

    /// One picosecond that only the producer can spend counts as this many that all threads share.
    fn serial_weight(&self) -> u64 {
        if !self.may_share_far() {
            return 1;
        }
        (self.threads.count() as u64 / THREADS_PER_WEIGHT).clamp(1, MOST_WEIGHT)
    }

    /// Number of middle and late lookups.
    fn count_late(&self) -> usize {
        let late = LANES as u64..self.least_far as u64;
        self.lookups.iter().filter(|lookup| late.contains(&lookup.offset)).count()
    }

    /// Decides which lookups are far, learns the order of the lookups, and chooses the budget.
    fn learn(&mut self) {
        for &least_far in least_far_choices(self.threads).iter().rev() {
            self.least_far = least_far;
            self.choose_codes();
            if !self.may_share_far() || self.should_share(&self.model(&self.left_open())) {
                break;
            }
        }
        self.learn_order();
        self.rebalance();
    }

    /// Learns the order of the lookups. Where threads share the far lookups, the others follow in the order that they
    /// had.
    fn learn_order(&mut self) {
        let end = self.end();
        let sample = lookup_order::sample(end);
        let answers: Vec<usize> = sample.iter().map(|&n| self.answer(n)).collect();
        let least = if self.may_share_far() { self.least_far as u64 } else { 0 };
        let (mut order, mut rest): (Vec<Lookup>, Vec<Lookup>) =
            self.lookups.iter().copied().partition(|lookup| lookup.offset >= least);
        lookup_order::learn(&mut order, MOST_CHOSEN, &answers, |lookup, i| self.option(lookup, sample[i]));
        order.append(&mut rest);
        self.lookups.reorder(order);
        self.clocks.learnt(end);
    }

    /// Chooses the budget from the codes that the lookups leave open at the last values. Where the threads should
    /// not share the far lookups from this offset on, makes a new order due.
    fn rebalance(&mut self) {
        let left = self.left_open();
        let model = self.model(&left);
        self.budget = model.cheapest_budget();
        let should_not_share = self.may_share_far() && !self.should_share(&model);
        self.clocks.rebalanced(self.end());
        if should_not_share {
            self.clocks.forget_order();
        }
        self.unresolved = 0;
        self.discard_plan();
    }

    /// Whether the far lookups of this model leave so few candidates that the threads should share them.
    fn should_share(&self, model: &CostModel<'_>) -> bool {
        let factor = if self.least_far > LEAST_MIDDLE { cost::LONG_LEAD_FACTOR } else { 1 };
        model.should_share(factor)
    }

    /// The estimated cost of each budget, from the codes that the lookups leave open.
    fn model<'a>(&self, left: &'a [Left]) -> CostModel<'a> {
        let (ranks, values) = (self.lookups.len(), self.sampled_positions().count() * LANES);
        CostModel::new(left, ranks, values, self.budget.codes).with_late(self.count_late(), self.serial_weight())
    }

    /// The number of codes that the lookups leave open at some of the last values.
    fn left_open(&self) -> Vec<Left> {
        let runs = self.sampled_runs();
        let first = runs.iter().map(|run| run.at).min().unwrap_or(0);
        let probes: Vec<Probe> = self.lookups.iter().map(|lookup| self.sample_probe(lookup, first)).collect();
        lookup_order::left(self.kernel, self.windows.codes().items(), &probes, &runs, self.budget.codes)
    }

    /// Runs of 64 of the last values, with the number of codes below each answer. Where there are many lookups only the
    /// last of these runs, so that the time is bounded.
    fn sampled_runs(&self) -> Vec<LookupRun> {
        let below = |n: u64| self.answer(n).min(self.budget.codes).to_le_bytes()[0];
        let run = |first: u64| LookupRun {
            at: self.windows.codes().at(first),
            below: std::array::from_fn(|i| below(first + i as u64)),
        };
        self.sampled_positions().map(run).collect()
    }

    /// The first positions of these runs.
    fn sampled_positions(&self) -> impl Iterator<Item = u64> {
        /// Maximum number of lookups, times runs.
        const MOST_LOOKUPS: usize = 1 << 22;
        let most = (MOST_LOOKUPS / self.lookups.len().max(1)).max(1);
        lookup_order::last_runs(self.end()).take(most)
    }

    /// The lookup in codes, for runs from index `first` of the codes on.
    ///
    /// Near, late and middle lookups, which are evaluated after the stages, and lookups without an option get a
    /// placeholder that hits the code of the answer itself. Only the codes below the answer matter.
    fn sample_probe(&self, lookup: &Lookup, first: usize) -> Probe {
        let offset = index(lookup.offset);
        if offset < self.least_far || offset > first || lookup.value >= self.space.coded() {
            return Probe::new(0, 0);
        }
        Probe::new(offset, self.space.code(lookup.value))
    }

    /// The code of the option that a lookup gives at `n`, or [`u8::MAX`] when it gives none. A pair of rare parts
    /// counts as if its option were common, which costs speed at worst.
    fn option(&self, lookup: &Lookup, n: u64) -> u8 {
        let other = n.checked_sub(lookup.offset).filter(|_| lookup.value < self.space.coded());
        other.map_or(u8::MAX, |other| self.windows.codes().get(other) ^ self.space.code(lookup.value))
    }

    /// The code of G(n), or 0 at a rare position, from which there is nothing to learn.
    fn answer(&self, n: u64) -> usize {
        if self.rare_positions.contains(n) { 0 } else { usize::from(self.windows.codes().get(n)) }
    }
}

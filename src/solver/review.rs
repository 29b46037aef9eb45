//! Review of the sparse space and of the engine while a solver computes.
//!
//! At the lengths where a review is due ([`choice`](super::choice)), the solver enters the space that it chooses. A
//! space that is fixed, and the space of a sequence with discarded values, stay.
//!
//! The byte streams compute the values in a space where exhaustive searches are infrequent, and the wide solver where
//! they are frequent: the streams discard what they have computed after a new rare position. The streams hand over when
//! a value has no byte code, or when exhaustive searches are frequent ([`LABORIOUS`]; each new rare position needs
//! one). They take over again when searches were infrequent ([`CALM`]) in the last quarter of the values. A new space,
//! and a resumed run, begins on the wide solver if new rare positions are expected to be frequent
//! ([`VALUES_PER_RARE`]), or were frequent in the last quarter. At small n many parts are rare, so even games with few
//! rare positions begin on the wide solver.
//!
//! Invariants: the space never changes while candidates wait for their witnesses, nor once values are discarded, which
//! includes the time of the commit that discards the first ones; an engine is replaced only after a check of its data
//! in memory.

use super::choice::{BestSpace, Choice, Forecast, keeps_built_in, review_point};
use super::engine::{EarlierValues, Engine};
use super::{Method, SequenceStats, Solver, SparseSpace, Work, may_be_sparse};
use crate::error::Result;
use crate::theory::definition::Sequence;
use crate::theory::rule::Rule;

/// Number of values per new rare position below which a new space, or a resumed run, begins on the wide solver.
const VALUES_PER_RARE: u64 = 256;

/// Number of values per exhaustive search below which the streams hand over to the wide solver.
const LABORIOUS: u64 = 768;

/// Number of values per exhaustive search above which the wide solver hands over to the streams.
const CALM: u64 = 4096;

/// Minimum number of exhaustive searches before the streams hand over to the wide solver. The change reads the whole
/// table, as a search does.
const MIN_SEARCHES: u64 = 64;

/// When the space is reviewed, and what the last review found.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpaceReview {
    /// Whether the space is never reviewed ([`Solver::fix_space`]).
    pub(super) fixed: bool,
    /// The length of the sequence at which the next review is due.
    pub(super) due_at: u64,
    /// The best space at the last search for one.
    pub(super) best: Option<BestSpace>,
}

impl SpaceReview {
    /// The review of a sequence that continues in `choice` after `n` values.
    pub(super) fn new(choice: Choice, n: u64) -> SpaceReview {
        SpaceReview { fixed: false, due_at: review_point(n, choice.space), best: choice.best }
    }
}

/// From where exhaustive searches are counted, which decide whether another engine is faster.
#[derive(Clone, Copy, Debug)]
pub(super) struct SearchCount {
    /// The length of the sequence since which they are counted.
    from: u64,
    /// The number of exhaustive searches before that.
    before: u64,
}

impl SearchCount {
    /// Counts exhaustive searches from `n` values on.
    pub(super) fn starting(n: u64, work: &Work) -> SearchCount {
        SearchCount { from: n, before: work.exhaustive_searches }
    }

    /// The number of exhaustive searches counted, and of the values that they belong to, of `n` in all.
    fn effort(&self, n: u64, work: &Work) -> (u64, u64) {
        (work.exhaustive_searches - self.before, n - self.from)
    }
}

/// The space in which a new solver continues `past`. It is `space` if the caller knows it, otherwise that of a solver
/// which has computed all of `past`. Before the first review, no space is used.
pub(super) fn space_to_continue(
    rule: &Rule,
    method: Method,
    space: Option<SparseSpace>,
    past: &dyn Sequence,
) -> Result<Choice> {
    match space {
        Some(space) => Ok(Choice { space, best: None }),
        None if may_be_sparse(rule, method) && past.discarded().is_empty() => Choice::after(rule, past),
        None => Ok(Choice { space: SparseSpace::NONE, best: None }),
    }
}

/// Whether rare positions were so frequent in the last quarter of `n` values that the wide solver is faster.
pub(super) fn are_frequent(rare_positions: &[(u64, u16)], n: u64) -> bool {
    let before = rare_positions.partition_point(|rare| rare.0 < n - n / 4);
    (rare_positions.len() - before) as u64 * VALUES_PER_RARE > n / 4
}

impl Solver {
    /// Searches for a better space when a review is due.
    pub(super) fn review(&mut self, past: &dyn Sequence) -> Result<()> {
        let n = past.len();
        if n < self.space_review.due_at {
            return Ok(());
        }
        debug_assert!(!matches!(&self.engine, Engine::Sparse(streams) if !streams.block.is_empty()));
        if may_be_sparse(&self.rule, self.method) && !self.keeps_space(past) {
            let forecast = Forecast::of(past)?;
            let choice = forecast.choose(&self.rule, self.space());
            self.space_review.best = choice.best;
            if choice.space != self.space() {
                self.adopt(past, choice.space, &forecast)?;
            }
        }
        self.space_review.due_at = review_point(n + 1, self.space());
        Ok(())
    }

    /// Whether the space in use stays, whatever a review would find.
    fn keeps_space(&self, past: &dyn Sequence) -> bool {
        let space = self.space();
        // The rare positions among discarded values are unknown under another space.
        let is_bound = self.space_review.fixed || !past.discarded().is_empty();
        (space != SparseSpace::NONE && is_bound) || keeps_built_in(&self.rule, space, self.max_value)
    }

    /// Continues `past` in `space`, or without one, with the solver that is faster if the forecast is right.
    fn adopt(&mut self, past: &dyn Sequence, space: SparseSpace, forecast: &Forecast) -> Result<()> {
        self.search_count = SearchCount::starting(past.len(), &self.work);
        let before = self.space;
        let replaced = self.replace_engine(past, |solver, past| {
            solver.prefers_wide = forecast.new_rare_positions(space) * VALUES_PER_RARE > past.len();
            solver.space = space;
            if space == SparseSpace::NONE { solver.engine_without_space(past) } else { solver.enter_space(past) }
        });
        if replaced.is_err() {
            self.space = before;
        }
        replaced
    }

    /// Continues with the wide solver when the streams meet a value without a byte code, or search too often. `past`
    /// holds all values so far, and `needs_wide` tells that the streams cannot continue.
    pub(super) fn widen(&mut self, past: &dyn Sequence, needs_wide: bool) -> Result<()> {
        let n = past.len();
        let (searches, values) = self.search_count.effort(n, &self.work);
        let is_laborious = searches >= MIN_SEARCHES && searches * LABORIOUS > values && past.discarded().is_empty();
        if needs_wide || is_laborious {
            self.prefers_wide = true;
            self.search_count = SearchCount::starting(n, &self.work);
            return self.replace_engine(past, Solver::same_space);
        }
        if values >= n / 4 {
            self.search_count = SearchCount::starting(n, &self.work);
        }
        Ok(())
    }

    /// Continues with the streams when the wide solver has searched little in the last quarter of the values.
    pub(super) fn narrow(&mut self, past: &dyn Sequence) -> Result<()> {
        let n = past.len();
        let (searches, values) = self.search_count.effort(n, &self.work);
        if values < n / 4 || !matches!(self.engine, Engine::Wide(_)) {
            return Ok(());
        }
        self.search_count = SearchCount::starting(n, &self.work);
        let has_codes = self.space() != SparseSpace::NONE && self.has_codes();
        if self.prefers_wide && has_codes && searches * CALM < values {
            self.prefers_wide = false;
            self.replace_engine(past, Solver::same_space)?;
        }
        Ok(())
    }

    /// Replaces the engine by `new`, after a check of the memory of the old one: a bit flip there may have made values
    /// wrong, and no later check would find it.
    pub(super) fn replace_engine(
        &mut self,
        past: &dyn Sequence,
        new: impl FnOnce(&mut Solver, &dyn Sequence) -> Result<Engine>,
    ) -> Result<()> {
        self.check_memory(past)?;
        self.engine = new(self, past)?;
        Ok(())
    }

    /// The engine that continues `past` in the space in use. The engine in use knows the rare positions among the
    /// discarded values.
    fn same_space(&mut self, past: &dyn Sequence) -> Result<Engine> {
        let hole = past.discarded();
        let known = self.engine.rare_positions().unwrap_or_default();
        let rare_positions = known.iter().copied().filter(|(n, _)| hole.contains(n)).collect();
        let known = SequenceStats { rare_positions, max_value: self.max_value, ..SequenceStats::default() };
        let seen = EarlierValues::of(past, self.space, &known)?;
        self.max_value = seen.stats.max_value;
        self.sparse_engine(past, seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::kernel::Kernel;
    use crate::solver::values;
    use crate::theory::rule::Rule;

    /// After a change of the engine nothing could find a flip that came before it.
    #[test]
    fn a_bit_flip_before_a_change_of_the_engine_is_noticed() {
        type Change = fn(&mut Solver, &[u16]) -> Result<()>;
        let adopt: Change = |solver, past| solver.adopt(&past, solver.space, &Forecast::of(&past)?);
        let widen: Change = |solver, past| solver.widen(&past, true);
        let narrow: Change = |solver, past| {
            solver.search_count.from = 0;
            solver.narrow(&past)
        };
        let rule = "0.6".parse::<Rule>().unwrap();
        let past = values(&rule, Method::Sparse(Kernel::best()), 100_000).unwrap();
        for (is_wide, change) in [(false, adopt), (false, widen), (true, narrow)] {
            let start = || {
                let mut solver = Solver::new(&rule, Method::Sparse(Kernel::best()), None, &past).unwrap();
                solver.widen(&past, is_wide).unwrap();
                assert_eq!(matches!(solver.engine, Engine::Wide(_)), is_wide);
                solver
            };
            let mut changed = start();
            change(&mut changed, &past).unwrap();
            assert!(!is_wide || matches!(changed.engine, Engine::Sparse(_)), "the streams take over");
            let mut flipped = start();
            flipped.flip();
            assert!(matches!(change(&mut flipped, &past), Err(Error::Flipped { .. })));
        }
    }
}

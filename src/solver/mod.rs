//! The sparse-space solver: exact values, each with its witnesses.
//!
//! For each n let m* be the least common value at n that is not an option (`theory::sparse_space` defines rare and
//! common). Then G(n) = m* if and only if every value below m* that is rare at n is an option as well. If some are not,
//! G(n) is the least of them, n is a rare position, and it joins the list of rare positions. This is exact: it relies
//! on no hypothesis and no conjecture. The choice of the sparse space decides only the speed.
//!
//! Two streams work side by side in blocks (`block`): the candidates (`candidates`) of one block, and the witnesses
//! (`witnesses`) of the block before. So the candidates are at most one block ahead of the witnesses. `pipeline`
//! describes how they communicate during a block. A new rare position takes both back to the position after it. Blocks
//! then start small and double, so that the many rare positions of a short sequence cost little.
//!
//! The streams compute with one byte per value. Where values exceed a byte code, or new rare positions are frequent,
//! the wide solver (`wide`) computes the values instead.
//!
//! Before a space is known, and for games that have none, the solver compares all pairs of parts: as bytes
//! (`exhaustive`) while all values are below 256, and in the wide solver from then on. It finds a space by the
//! Walsh–Hadamard transform of the histogram ([`Histogram::best_space`]), and reviews it as the sequence grows
//! (`choice`, `review`). Some named games have a built-in space, which is not reviewed while all values are below 512.
//!
//! Rules with moves that leave three heaps, and codes that repeat, have no sparse space. If they have splits, their
//! values come from the sets of the values of all pairs of heaps (`pair_sets`). Rules without splits follow the
//! definition; where their moves form long runs, as in Nim, the solver counts the options of each value (`removals`).
//!
//! Some code repeats other code on purpose. The audit (`audit`) and `verify::exclusion` each derive the list of lookups
//! from the rare positions themselves, and memory holds two copies of the codes, computed independently: a mistake in
//! one does not repeat in the other.
//!
//! Invariant: values that [`Solver::advance`] returns are proved, provided that the values before them are right.

mod audit;
pub(crate) mod bench;
mod block;
mod candidates;
mod checksums;
pub(crate) mod choice;
mod clocks;
mod codes;
mod cost;
pub(crate) mod ends;
pub(crate) mod engine;
mod exhaustive;
mod lookup_order;
mod lookups;
mod pair_sets;
mod parallelism;
mod pipeline;
mod removals;
mod review;
mod slots;
mod strategy;
mod stream;
mod wide;
mod window;
mod witnesses;

pub use crate::theory::sparse_space::{Histogram, SparseSpace};
pub use crate::theory::stats::SequenceStats;
pub use strategy::Strategy;
pub use stream::ValueStream;

use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::theory::definition::{self, Appended, Sequence};
use crate::theory::rule::Rule;
use block::BlockLimits;
use choice::FIRST_REVIEW;
use engine::{EarlierValues, Engine};
use parallelism::Threads;
use pipeline::BLOCK;
use review::{SearchCount, SpaceReview};
use window::Window;

/// How values are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// With a sparse space and this kernel; by comparing all pairs of parts where no good space is known.
    Sparse(Kernel),
    /// Computes every value by the definition.
    Definition,
}

impl Default for Method {
    /// A sparse space, and the best kernel that this processor can run.
    fn default() -> Method {
        Method::Sparse(Kernel::best())
    }
}

impl Method {
    /// The name of the method, as the option `--kernel` takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Method::Sparse(kernel) => kernel.name(),
            Method::Definition => "definition",
        }
    }
}

/// Counters of the work of a solver since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Number of values proved by the sparse-space method.
    pub witnessed: u64,
    /// Number of values computed by the definition, by counts of options, or from all pairs of parts.
    pub defined: u64,
    /// Number of searches that compare all pairs of parts of a position: after a failed search for witnesses, or, in
    /// the wide solver, in its place.
    pub exhaustive_searches: u64,
    /// Number of rare positions found.
    pub found_rare: u64,
    /// Number of values audited by another kernel ([`Solver::with_audit`]).
    pub audited: u64,
    /// Number of new largest values proved by comparing all pairs of parts.
    pub proved_maxima: u64,
    /// An upper bound of the smaller parts of all witnesses since [`Solver::take_depth`], in which pairs of two rare
    /// parts may be left out; 0 where no witness was searched.
    pub depth: u64,
}

/// Adds the work of another solver.
impl std::ops::AddAssign for Work {
    fn add_assign(&mut self, other: Work) {
        let Work { witnessed, defined, exhaustive_searches, found_rare, audited, proved_maxima, depth } = other;
        self.witnessed += witnessed;
        self.defined += defined;
        self.exhaustive_searches += exhaustive_searches;
        self.found_rare += found_rare;
        self.audited += audited;
        self.proved_maxima += proved_maxima;
        self.depth = self.depth.max(depth);
    }
}

/// Number of last values that a new sparse solver reads when `last_rare` is the last rare position. It also reads the
/// first 2^16 values.
#[must_use]
pub fn lookback(rule: &Rule, last_rare: u64) -> u64 {
    last_rare.saturating_add(lookup_order::SPAN).max(witnesses::LOOKBACK).saturating_add(rule.max_remove())
}

/// Whether the solver could ever use a sparse space. If not, it needs all earlier values for every new one, or, for
/// rules without splits, as many as the largest removal.
#[must_use]
pub fn may_be_sparse(rule: &Rule, method: Method) -> bool {
    method != Method::Definition && obstacle(rule).is_none()
}

/// Why the solver can never use a sparse space for a game, as a clause; `None` if it can.
#[must_use]
pub fn obstacle(rule: &Rule) -> Option<&'static str> {
    if !rule.has_splits() {
        Some("no move leaves more than one heap")
    } else if rule.largest_heap().is_some() {
        Some("the code of the game repeats")
    } else if !rule.may_be_sparse() {
        Some("a move leaves three heaps")
    } else if rule.max_remove() > LONGEST_REMOVAL {
        Some("a move removes more than 65,536 tokens")
    } else {
        None
    }
}

/// The sparse space in use after all of `past`, none of which is discarded. It depends on the game and the number of
/// values alone; [`SparseSpace::NONE`] for none.
pub(crate) fn space_after(rule: &Rule, method: Method, past: &dyn Sequence) -> Result<SparseSpace> {
    Ok(review::space_to_continue(rule, method, None, past)?.space)
}

/// Computes a sequence, block by block.
pub struct Solver {
    rule: Rule,
    method: Method,
    /// The space of the engine in use; [`SparseSpace::NONE`] if it has none.
    space: SparseSpace,
    space_review: SpaceReview,
    search_count: SearchCount,
    engine: Engine,
    /// Proved values that follow those returned: a call with a smaller limit than the one before leaves them. Counters
    /// include them.
    ahead: Vec<u16>,
    /// The largest value so far.
    max_value: u16,
    work: Work,
    /// Maximum number of values in a block.
    largest_block: usize,
    /// Seed that selects the audited groups; `None` without an audit.
    audit: Option<u64>,
    /// Whether the wide solver computes values that have byte codes.
    prefers_wide: bool,
    /// Whether an error occurred, which may have left the streams at different positions.
    failed: bool,
}

/// Maximum number of tokens that a move may remove in a game for which a sparse space is used. The streams hold at
/// least this number of last values in memory, so a larger removal would make their windows too large.
const LONGEST_REMOVAL: u64 = 1 << 16;

impl Solver {
    /// A solver that continues `past`, whose values must be right. `space` is the sparse space in use after them, which
    /// is [`SparseSpace::NONE`] if none is; `None` if the caller does not know it.
    ///
    /// # Errors
    /// [`Error::Unlisted`] when `past` ends beyond the heaps that a repeating code covers, [`Error::Memory`], and any
    /// other error of reading `past`.
    ///
    /// # Panics
    /// If `space` is that of another rule.
    pub fn new(rule: &Rule, method: Method, space: Option<SparseSpace>, past: &dyn Sequence) -> Result<Solver> {
        Solver::knowing(rule, method, space, past, &SequenceStats::default())
    }

    /// A solver that continues `past`, some of whose values may be discarded; `known` describes the discarded values
    /// under `space`.
    ///
    /// # Errors
    /// [`Error::Discarded`] when the solver needs discarded values, and the errors of [`Solver::new`].
    ///
    /// # Panics
    /// If `space` is that of another rule: in it, values would be proved by lookups that prove nothing.
    pub fn knowing(
        rule: &Rule,
        method: Method,
        space: Option<SparseSpace>,
        past: &dyn Sequence,
        known: &SequenceStats,
    ) -> Result<Solver> {
        assert!(space.is_none_or(|space| space.belongs_to(rule)), "{} has no sparse space {space:?}", rule.name());
        let mut choice = review::space_to_continue(rule, method, space, past)?;
        let seen = EarlierValues::of(past, choice.space, known)?;
        if past.len() < FIRST_REVIEW || !may_be_sparse(rule, method) {
            choice.space = SparseSpace::NONE;
        }
        let mut solver = Solver {
            rule: rule.clone(),
            method,
            space: choice.space,
            space_review: SpaceReview::new(choice, past.len()),
            search_count: SearchCount::starting(past.len(), &Work::default()),
            engine: Engine::Definition(Window::new(0, Vec::new())),
            ahead: Vec::new(),
            max_value: seen.stats.max_value,
            work: Work::default(),
            largest_block: BLOCK,
            audit: None,
            prefers_wide: false,
            failed: false,
        };
        if solver.space != SparseSpace::NONE {
            solver.prefers_wide = review::are_frequent(&seen.stats.rare_positions, past.len());
            solver.engine = solver.sparse_engine(past, seen)?;
        } else {
            solver.engine = solver.engine_without_space(past)?;
        }
        Ok(solver)
    }

    /// Sets the maximum number of values in a block, clamped to 1..=2^18. It changes the speed but no value (for
    /// tests).
    #[doc(hidden)]
    #[must_use]
    pub fn with_block(mut self, largest: usize) -> Solver {
        self.largest_block = largest.clamp(1, BLOCK);
        self
    }

    /// Keeps the first space in use, however bad it is. It changes the speed but no value (for tests, and to recompute
    /// the values of a run in the space of that run).
    #[doc(hidden)]
    #[must_use]
    pub fn with_fixed_space(mut self) -> Solver {
        self.fix_space();
        self
    }

    /// Whether the space is kept.
    #[cfg(test)]
    pub(crate) fn has_fixed_space(&self) -> bool {
        self.space_review.fixed
    }

    /// Keeps the space in use from now on.
    pub(crate) fn fix_space(&mut self) {
        self.space_review.fixed = true;
    }

    /// Must be called before the values before `n` are discarded, after [`Solver::check_memory`]: from now on the
    /// solver reads none of them, except those above 255, which it holds in a list with a checksum. The last
    /// [`Solver::lookback`] values must be from `n` on.
    pub(crate) fn prepare_discard(&mut self, n: u64) {
        match &mut self.engine {
            Engine::Sparse(streams) => streams.witnesses.drop_before(n),
            Engine::Wide(solver) => solver.drop_before(n),
            Engine::Definition(_) | Engine::Removals(_) | Engine::Exhaustive(_) | Engine::PairSets(_) => {}
        }
    }

    /// Audits a sample of the values, which `seed` selects, by another kernel where this processor has one. A value
    /// that the audit does not confirm is an error ([`Error::Differs`], [`Error::OptionsDiffer`]).
    #[must_use]
    pub fn with_audit(mut self, seed: u64) -> Solver {
        self.audit = Some(seed);
        self
    }

    /// The space in use; [`SparseSpace::NONE`] before one is found.
    #[must_use]
    pub fn space(&self) -> SparseSpace {
        self.space
    }

    /// The number of rare positions among the values computed so far, and the last of them. n = 0 is a rare position.
    /// Without a sparse space all positions are rare, and `handed_out` is the number of values that the solver has
    /// returned.
    #[must_use]
    pub fn count_rare_positions(&self, handed_out: u64) -> (u64, u64) {
        match self.engine.rare_positions() {
            None => (handed_out, handed_out.saturating_sub(1)),
            Some(rare) => (rare.len() as u64, rare.last().map_or(0, |rare| rare.0)),
        }
    }

    /// Number of last values that must stay readable besides the first 2^16, or `None` for all values, while no sparse
    /// space is in use. A new rare position or an exhaustive search may still need other values.
    #[must_use]
    pub fn lookback(&self) -> Option<u64> {
        let last_rare = self.engine.rare_positions()?.last().map_or(0, |rare| rare.0);
        Some(lookback(&self.rule, last_rare))
    }

    /// Checks the data in memory on which later values depend, because a single flipped bit could make every later
    /// value wrong: tables by checksums from their creation, copies of values by `past`, which holds all values that
    /// the solver has returned.
    ///
    /// # Errors
    /// [`Error::Flipped`] at the first difference, and any error of reading `past`.
    pub fn check_memory(&self, past: &dyn Sequence) -> Result<()> {
        let past = &Appended { first: past, more: &self.ahead };
        self.engine.check_memory(&self.rule, self.space, past)
    }

    /// Counters of the work since the creation of the solver.
    #[must_use]
    pub fn work(&self) -> Work {
        self.work
    }

    /// Returns [`Work::depth`] and resets it to 0.
    pub fn take_depth(&mut self) -> u64 {
        std::mem::take(&mut self.work.depth)
    }

    /// Appends proved values to `out`: at least one, and none from position `limit` on. `past` must hold all values
    /// that the solver has returned so far.
    ///
    /// # Errors
    /// [`Error::ValueTooLarge`] at a value above 65535; [`Error::Unlisted`] at a heap that a repeating code does not
    /// cover; [`Error::Differs`], [`Error::OptionsDiffer`] and [`Error::Flipped`] when a check fails;
    /// [`Error::Discarded`] when a value depends on discarded values, [`Error::Memory`], and any other error of reading
    /// `past`. The values appended before the error are proved, unless a check failed. The solver cannot continue:
    /// create a new one. After a call with a larger limit, the error may concern a position from `limit` on.
    ///
    /// # Panics
    /// If an earlier call returned an error, or `limit` does not exceed the length of `past`.
    pub fn advance(&mut self, past: &dyn Sequence, limit: u64, out: &mut Vec<u16>) -> Result<()> {
        assert!(limit > past.len(), "no value from {} on is below {limit}", past.len());
        assert!(!self.failed, "a solver cannot continue after an error");
        let before = out.len();
        let advanced = if self.ahead.is_empty() {
            self.compute(past, limit, out)
        } else {
            out.append(&mut self.ahead);
            Ok(())
        };
        self.failed = advanced.is_err();
        // The streams prove whole blocks, the last of which may have been begun under a larger limit.
        let end = usize::try_from(limit - past.len()).map_or(usize::MAX, |below| before.saturating_add(below));
        self.ahead.extend(out.drain(end.min(out.len())..));
        advanced
    }

    /// Continues `values`, all values that the solver has returned so far, up to `to` values. After each block `go_on`
    /// gets the number of values so far, and stops the computation by returning false. Returns whether the last call of
    /// `go_on` returned true; true without any call.
    ///
    /// # Errors
    /// As [`Solver::advance`]. `values` then ends with the values proved before the error.
    ///
    /// # Panics
    /// If an earlier call returned an error.
    pub fn extend_to(&mut self, values: &mut Vec<u16>, to: u64, mut go_on: impl FnMut(u64) -> bool) -> Result<bool> {
        self.extend_after(&[].as_slice(), values, to, |_, count| go_on(count))
    }

    /// As [`Solver::extend_to`], where `more` are the values after those of `first`, and `to` and the second argument
    /// of `go_on` count the values of both. Its first argument contains the values of the block.
    pub(crate) fn extend_after(
        &mut self,
        first: &dyn Sequence,
        more: &mut Vec<u16>,
        to: u64,
        mut go_on: impl FnMut(&[u16], u64) -> bool,
    ) -> Result<bool> {
        let mut fresh = Vec::new();
        loop {
            let past = Appended { first, more };
            if past.len() >= to {
                return Ok(true);
            }
            fresh.clear();
            let advanced = self.advance(&past, to, &mut fresh);
            if more.try_reserve(fresh.len()).is_err() {
                self.failed = true; // the solver is ahead of `more`
                return Err(Error::Memory { what: "the sequence", bytes: to.saturating_mul(2) });
            }
            more.extend_from_slice(&fresh);
            advanced?;
            if !go_on(&fresh, first.len() + more.len() as u64) {
                return Ok(false);
            }
        }
    }

    /// [`Solver::advance`], which remembers an error.
    fn compute(&mut self, past: &dyn Sequence, limit: u64, out: &mut Vec<u16>) -> Result<()> {
        let before = out.len();
        while out.len() == before {
            self.review(past)?;
            self.narrow(past)?;
            let before_review = limit.min(self.space_review.due_at);
            match &mut self.engine {
                Engine::Definition(values) => {
                    engine::apply_definition(&self.rule, values, past, before_review, out)?;
                    self.work.defined += (out.len() - before) as u64;
                }
                Engine::Exhaustive(solver) => {
                    if self.max_value >= engine::WIDE_FROM {
                        self.replace_engine(past, |solver, past| solver.engine_without_space(past))?;
                        continue;
                    }
                    engine::compare_pairs(&self.rule, solver, before_review, out)?;
                    self.work.defined += (out.len() - before) as u64;
                }
                Engine::Removals(solver) => {
                    solver.advance(&self.rule, past, before_review, out)?;
                    self.work.defined += (out.len() - before) as u64;
                }
                Engine::PairSets(solver) => {
                    solver.advance(&self.rule, before_review, out)?;
                    self.work.defined += (out.len() - before) as u64;
                }
                Engine::Sparse(streams) => {
                    streams.prepare_audit(&self.rule, self.space, self.audit);
                    let threads = Threads::of_pool();
                    let limits = BlockLimits { end: before_review, longest: self.largest_block, threads };
                    let stepped = streams.step(past, limits, &mut self.work, out);
                    // Also the values before an error are handed out.
                    self.prove_largest(past, before, out)?;
                    let needs_wide = stepped?;
                    let widened = self.widen(&Appended { first: past, more: &out[before..] }, needs_wide);
                    if widened.is_err() {
                        // A bit flip that the change of the engine finds may have made these values wrong.
                        out.truncate(before);
                    }
                    widened?;
                }
                Engine::Wide(solver) => {
                    solver.set_audit(self.audit);
                    let threads = Threads::of_pool();
                    let limits = BlockLimits { end: before_review, longest: self.largest_block, threads };
                    let stepped = solver.step(past, limits, &mut self.work, out);
                    self.prove_largest(past, before, out)?;
                    stepped?;
                }
            }
        }
        let largest = out[before..].iter().copied().max().unwrap_or(0);
        self.max_value = self.max_value.max(largest);
        Ok(())
    }

    /// Computes each value that exceeds all earlier ones a second time, by the definition, while no values are
    /// discarded. A wrong value is likely to be a new maximum.
    fn prove_largest(&mut self, past: &dyn Sequence, before: usize, out: &mut Vec<u16>) -> Result<()> {
        let from = past.len();
        // Nearly every call ends here, after a few vector instructions.
        if out[before..].iter().copied().max().is_none_or(|largest| largest <= self.max_value) {
            return Ok(());
        }
        for i in before..out.len() {
            let (value, n) = (out[i], from + (i - before) as u64);
            if value <= self.max_value {
                continue;
            }
            self.max_value = value;
            if past.discarded().is_empty() {
                let again = definition::value_at(&self.rule, &Appended { first: past, more: &out[before..] }, n)?;
                if again != value {
                    out.truncate(i);
                    return Err(Error::Differs {
                        n,
                        value: value.into(),
                        again: again.into(),
                        how: "all pairs".into(),
                    });
                }
                self.work.proved_maxima += 1;
            }
        }
        Ok(())
    }
}

/// Computes G(0), …, G(count - 1) in memory, two bytes per value.
///
/// # Errors
/// Those of [`extend`].
pub fn values(rule: &Rule, method: Method, count: usize) -> Result<Vec<u16>> {
    extend(rule, method, Vec::new(), count, |_| true)
}

/// Continues `values`, the first values of the game, up to `count` values. After each block `go_on` gets the number of
/// values so far, and stops the computation by returning false.
///
/// # Errors
/// [`Error::ValueTooLarge`] at the first value above 65535, [`Error::Unlisted`] at a heap that a repeating code does
/// not cover, [`Error::Memory`] when the values do not fit in memory, and [`Error::Flipped`], [`Error::Differs`] or
/// [`Error::OptionsDiffer`] when a check fails.
pub fn extend(
    rule: &Rule,
    method: Method,
    mut values: Vec<u16>,
    count: usize,
    go_on: impl FnMut(u64) -> bool,
) -> Result<Vec<u16>> {
    let mut solver = Solver::new(rule, method, None, &values)?;
    solver.extend_to(&mut values, count as u64, go_on)?;
    solver.check_memory(&values)?;
    Ok(values)
}

/// A bit flip, for tests of the callers of a solver.
#[cfg(test)]
impl Solver {
    pub(crate) fn flip(&mut self) {
        match &mut self.engine {
            Engine::Sparse(streams) => streams.candidates.flip_rare(1, 1),
            Engine::Wide(solver) => assert!(solver.flip(3, 1, 1), "a rare position"),
            Engine::Definition(_) | Engine::Removals(_) | Engine::Exhaustive(_) | Engine::PairSets(_) => {
                panic!("the solver has no sparse space")
            }
        }
    }
}

#[cfg(test)]
mod contract_tests;
#[cfg(test)]
mod tests;

//! The sparse-space solver: exact values, each with its witnesses.
//!
//! For each n let m* be the least value common at n that is not among the common options. Then G(n) = m* if and only if
//! every value below m* that is rare at n is an option as well. If some are not, G(n) is the least of them, n is a rare
//! position, and it joins the list of rare positions. This is exact: it relies on no hypothesis and no conjecture. The
//! choice of the sparse space decides only the speed.
//!
//! Two streams work side by side (`rayon::join`): the candidates (`candidates`) of one block, and the witnesses
//! (`witnesses`) of the block before. `pipeline` describes how they communicate during a block. Neither runs farther
//! ahead. A new rare position takes both back to the position after it. Blocks then start small and double, so that the
//! many rare positions of a short sequence cost little.
//!
//! Before a space is known, and for games that have none, the solver compares all pairs of parts (`exhaustive`). It
//! finds a space by the Walsh–Hadamard transform of the histogram ([`Histogram::best_space`]), and reviews the space
//! whenever the sequence has doubled or the number of rare positions has grown by a quarter. Some named games have a
//! built-in space.
//!
//! Invariant: values that [`Solver::advance`] returns are proved, provided that the values before them are right.

mod audit;
mod block;
mod candidates;
mod codes;
mod engine;
mod exhaustive;
mod lookup_order;
mod pipeline;
mod review;
mod window;
mod witnesses;

pub use crate::theory::sparse_space::{Histogram, SparseSpace};

pub use block::BLOCK;

use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::theory::definition::{self, Appended, Sequence};
use crate::theory::nimber::index;
use crate::theory::rule::Rule;
use engine::{EarlierValues, Engine};
use window::Window;

/// How values are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// With a sparse space and this kernel; by comparing all pairs of parts where no good space is known.
    Sparse(Kernel),
    /// Computes every value by the definition.
    Definition,
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
    /// Number of values computed by the definition or by comparing all pairs of parts.
    pub defined: u64,
    /// Number of exhaustive searches after a failed search for witnesses.
    pub exhaustive_searches: u64,
    /// Number of rare positions found.
    pub found_rare: u64,
    /// Number of values audited by another kernel ([`Solver::with_audit`]).
    pub audited: u64,
    /// Number of new largest values proved by comparing all pairs of parts.
    pub proved_maxima: u64,
    /// The largest smaller part of any witness since [`Solver::take_depth`]; 0 where no witness was searched.
    pub depth: u64,
}

/// What is known of discarded values ([`Sequence::freed`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SequenceStats {
    /// The rare positions among them under the space in use, ascending, with the values.
    pub rares: Vec<(u64, u16)>,
    /// The largest discarded value.
    pub max_value: u16,
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
    method != Method::Definition && rule.splits().next().is_some() && rule.max_remove() <= LONGEST_REMOVAL
}

/// Computes a sequence, block by block.
pub struct Solver {
    rule: Rule,
    method: Method,
    space: SparseSpace,
    /// Whether `space` is the built-in space of a named game, which is not reviewed while all values are below 512.
    built_in: bool,
    /// Whether the space is never reviewed ([`Solver::with_fixed_space`]).
    fixed: bool,
    max_value: u16,
    next_review: u64,
    rares_at_review: u64,
    work: Work,
    largest_block: usize,
    engine: Engine,
    /// Seed that selects the audited groups; `None` without an audit.
    audit: Option<u64>,
    /// Whether an error occurred, which may have left the streams at different positions.
    failed: bool,
}

/// Number of values computed without a sparse space before one is used.
const BOOTSTRAP: u64 = 4096;

/// Maximum number of tokens that a move may remove in a game for which a sparse space is used, because the windows of
/// the streams hold no more.
const LONGEST_REMOVAL: u64 = 1 << 16;

impl Solver {
    /// A solver that continues `past`, whose values must be right. `space` is the sparse space in use so far, if any.
    ///
    /// # Errors
    /// Any error of reading `past`.
    pub fn new<S: Sequence + ?Sized>(
        rule: &Rule,
        method: Method,
        space: Option<SparseSpace>,
        past: &S,
    ) -> Result<Solver> {
        Solver::knowing(rule, method, space, past, &SequenceStats::default())
    }

    /// A solver that continues `past`, some of whose values may be discarded; `known` describes the discarded values
    /// under `space`.
    ///
    /// # Errors
    /// [`Error::Freed`] when the solver needs discarded values, and any other error of reading `past`.
    pub fn knowing<S: Sequence + ?Sized>(
        rule: &Rule,
        method: Method,
        space: Option<SparseSpace>,
        past: &S,
        known: &SequenceStats,
    ) -> Result<Solver> {
        let named = rule.known().and_then(|known| known.space);
        let built_in = named.and_then(|(mask, position)| SparseSpace::new(rule, mask, position));
        let chosen = space.or(built_in).unwrap_or(SparseSpace::NONE);
        let seen = EarlierValues::of(past, chosen, known)?;
        let mut solver = Solver {
            rule: rule.clone(),
            method,
            space: chosen,
            built_in: built_in.is_some() && (space.is_none() || space == built_in),
            fixed: false,
            max_value: seen.max_value,
            next_review: past.len().max(BOOTSTRAP),
            rares_at_review: 0,
            work: Work::default(),
            largest_block: BLOCK,
            engine: Engine::Definition(Window::new(0, Vec::new())),
            audit: None,
            failed: false,
        };
        if past.len() >= BOOTSTRAP && solver.space != SparseSpace::NONE && method != Method::Definition {
            solver.engine = solver.sparse_engine(past, seen)?;
            solver.next_review = past.len() * 2;
        } else {
            solver.engine = solver.definition_engine(past)?;
        }
        Ok(solver)
    }

    /// Sets the maximum number of values in a block, clamped to 1..=[`BLOCK`]. It changes the speed but no value (for
    /// tests).
    #[must_use]
    pub fn with_block(mut self, largest: usize) -> Solver {
        self.largest_block = largest.clamp(1, BLOCK);
        self
    }

    /// Keeps the first space in use, however bad it is. It changes the speed but no value (for tests).
    #[must_use]
    pub fn with_fixed_space(mut self) -> Solver {
        self.fixed = true;
        self
    }

    /// Audits a sample of the values, which `seed` selects, by another kernel where this processor has one. A value
    /// that the audit does not confirm is an error ([`Error::Differs`]).
    #[must_use]
    pub fn with_audit(mut self, seed: u64) -> Solver {
        self.audit = Some(seed);
        self
    }

    /// The space in use; [`SparseSpace::NONE`] before one is found.
    #[must_use]
    pub fn space(&self) -> SparseSpace {
        match self.engine {
            Engine::Definition(_) | Engine::Dense(_) => SparseSpace::NONE,
            Engine::Sparse(_) => self.space,
        }
    }

    /// The number of rare positions among the values computed so far, and the last of them. n = 0 is a rare position.
    /// Without a sparse space all positions are rare, and `handed_out` is the number of values that the solver has
    /// returned.
    #[must_use]
    pub fn rares(&self, handed_out: u64) -> (u64, u64) {
        match &self.engine {
            Engine::Definition(_) | Engine::Dense(_) => (handed_out, handed_out.saturating_sub(1)),
            Engine::Sparse(streams) => {
                let rares = streams.candidates.rares();
                (rares.len() as u64, rares.last().map_or(0, |rare| rare.0))
            }
        }
    }

    /// Number of last values that must stay readable besides the first 2^16, or `None` for all values, while no sparse
    /// space is in use. A new rare position or an exhaustive search may still need other values.
    #[must_use]
    pub fn lookback(&self) -> Option<u64> {
        match &self.engine {
            Engine::Definition(_) | Engine::Dense(_) => None,
            Engine::Sparse(_) => Some(lookback(&self.rule, self.rares(0).1)),
        }
    }

    /// Compares the data in memory that later values depend on with its state at creation, because a single flipped bit
    /// could make every later value wrong. `past` holds all values that the solver has returned.
    ///
    /// # Errors
    /// [`Error::Flipped`] at the first difference, and any error of reading `past`.
    pub fn check_memory<S: Sequence + ?Sized>(&self, past: &S) -> Result<()> {
        match &self.engine {
            Engine::Definition(values) => values.agrees_with(past),
            Engine::Dense(dense) => dense.check_memory(past),
            Engine::Sparse(streams) => {
                streams.candidates.check_memory(&streams.codes, past)?;
                streams.witnesses.check_memory(&streams.codes, past)
            }
        }
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
    /// that the solver has returned so far. `limit` must be above its length, and must never fall between calls.
    ///
    /// # Errors
    /// [`Error::ValueTooLarge`] at a value above 65535, [`Error::Differs`] and [`Error::Flipped`] when a check fails,
    /// [`Error::Freed`] when a value depends on discarded values, and any other error of reading `past`. The values
    /// appended before the error are proved, but the solver cannot continue: create a new one.
    ///
    /// # Panics
    /// If an earlier call returned an error.
    pub fn advance<S: Sequence + ?Sized>(&mut self, past: &S, limit: u64, out: &mut Vec<u16>) -> Result<()> {
        assert!(!self.failed, "a solver cannot continue after an error");
        let advanced = self.go_on(past, limit, out);
        self.failed = advanced.is_err();
        advanced
    }

    fn go_on<S: Sequence + ?Sized>(&mut self, past: &S, limit: u64, out: &mut Vec<u16>) -> Result<()> {
        let before = out.len();
        while out.len() == before {
            self.review(past)?;
            match &mut self.engine {
                Engine::Definition(values) => {
                    let limit = limit.min(if past.len() < self.next_review { self.next_review } else { limit });
                    engine::define(&self.rule, values, limit, out)?;
                    self.work.defined += (out.len() - before) as u64;
                }
                Engine::Dense(dense) => {
                    let limit = limit.min(if past.len() < self.next_review { self.next_review } else { limit });
                    engine::compare(&self.rule, dense, limit, out)?;
                    self.work.defined += (out.len() - before) as u64;
                }
                Engine::Sparse(streams) => {
                    streams.prepare_audit(&self.rule, self.space, self.audit);
                    streams.step(past, limit, self.largest_block, &mut self.work, out)?;
                    self.prove_largest(past, before, out)?;
                }
            }
        }
        let largest = out[before..].iter().copied().max().unwrap_or(0);
        self.max_value = self.max_value.max(largest);
        Ok(())
    }

    /// Computes each value that exceeds all earlier ones a second time, by the definition, while no values are
    /// discarded. A wrong value is likely to be a new maximum.
    fn prove_largest<S: Sequence + ?Sized>(&mut self, past: &S, before: usize, out: &mut Vec<u16>) -> Result<()> {
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
            if past.freed().is_empty() {
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
/// [`Error::ValueTooLarge`] at the first value above 65535.
pub fn values(rule: &Rule, method: Method, count: usize) -> Result<Vec<u16>> {
    extend(rule, method, Vec::new(), count, BLOCK, |_| true)
}

/// Continues `values`, the first values of the game, up to `count` values in blocks of at most `block` values. Between
/// blocks `go_on` gets the number of values so far, and stops the computation by returning false.
///
/// # Errors
/// [`Error::ValueTooLarge`] at the first value above 65535.
pub fn extend(
    rule: &Rule,
    method: Method,
    mut values: Vec<u16>,
    count: usize,
    block: usize,
    mut go_on: impl FnMut(u64) -> bool,
) -> Result<Vec<u16>> {
    let mut solver = Solver::new(rule, method, None, values.as_slice())?.with_block(block);
    let mut fresh = Vec::new();
    while values.len() < count && go_on(values.len() as u64) {
        fresh.clear();
        solver.advance(values.as_slice(), count as u64, &mut fresh)?;
        values.extend_from_slice(&fresh);
    }
    Ok(values)
}

/// A bit flip, for tests of the callers of a solver.
#[cfg(test)]
impl Solver {
    pub(crate) fn flip(&mut self) {
        let Engine::Sparse(streams) = &mut self.engine else { panic!("the solver has no sparse space") };
        streams.candidates.flip_rare(1, 1);
    }
}

#[cfg(test)]
mod tests;

//! The six ways to compute values: by the definition, by counts of the options of each value, by comparing all pairs of
//! bytes, by sets of the values of pairs, on byte codes in a sparse space, and on values of any size, with or without a
//! space.
//!
//! The engine that continues a sequence is created from the earlier values. Without a space it needs all of them, or,
//! for rules without splits, as many as the largest removal. With a space it needs the rare positions, the last
//! values above 255, the largest value, the first 2^16 values, and the last values, back to the largest offset of a
//! lookup.

use super::block::{self, Streams};
use super::candidates::CandidateStream;
use super::codes::Codes;
use super::exhaustive::ExhaustiveSolver;
use super::pair_sets::PairSets;
use super::removals::{OptionCounts, RemovalSolver};
use super::wide::WideSolver;
use super::window::Window;
use super::witnesses::{self, Witnesses};
use super::{Method, SequenceStats, Solver, SparseSpace, may_be_sparse};
use crate::error::{Error, Result};
use crate::theory::definition::{self, Sequence, scan_in_parallel};
use crate::theory::nimber::index;
use crate::theory::rule::Rule;

/// What a solver extracts from the earlier values before it starts.
#[derive(Default)]
pub(super) struct EarlierValues {
    /// The rare positions under the space, and the largest value. `max_at` is not meaningful, because what is known of
    /// discarded values may lack it.
    pub(super) stats: SequenceStats,
    /// The last values above 255, and perhaps some before them.
    pub(super) large: Vec<(u64, u16)>,
}

impl EarlierValues {
    /// Scans all values that are retained, in parallel; `known` describes the others.
    pub(super) fn of(past: &dyn Sequence, space: SparseSpace, known: &SequenceStats) -> Result<EarlierValues> {
        let freed = past.discarded();
        let see = |seen: &mut EarlierValues, from: u64, values: &[u16]| seen.see(space, from, values);
        let scan = |range| scan_in_parallel(past, range, see, EarlierValues::and);
        let known = EarlierValues { stats: known.clone(), large: Vec::new() };
        Ok(scan(0..freed.start)?.and(known).and(scan(freed.end..past.len())?))
    }

    /// Adds the next values, which start at n = `from`.
    fn see(&mut self, space: SparseSpace, from: u64, values: &[u16]) {
        self.stats.see(space, from, values);
        if values.iter().copied().max().is_some_and(|largest| largest > 255) {
            self.large.extend((from..).zip(values.iter().copied()).filter(|&(_, v)| v > 255));
            self.forget();
        }
    }

    /// What the solver extracts from these values and `later` ones together.
    fn and(mut self, later: EarlierValues) -> EarlierValues {
        self.stats = self.stats.and(later.stats);
        self.large.extend(later.large);
        self.forget();
        self
    }

    /// Forgets the first values above 255, of which the solver needs only the last.
    fn forget(&mut self) {
        self.large.drain(..witnesses::droppable(&self.large));
    }
}

pub(super) enum Engine {
    /// By the definition, one pair after the other.
    Definition(Window<u16>),
    /// By counts of the options, for rules without splits whose moves form long runs.
    Removals(RemovalSolver),
    /// All pairs of bytes, many at once.
    Exhaustive(ExhaustiveSolver),
    /// Sets of the values of all pairs, for moves that leave three heaps, and for codes with splits that repeat.
    PairSets(PairSets),
    /// Candidates and witnesses in a sparse space, on byte codes.
    Sparse(Box<Streams>),
    /// Values of any size, with or without a sparse space.
    Wide(Box<WideSolver>),
}

impl Engine {
    /// The rare positions, ascending, with their values; `None` without a sparse space.
    pub(super) fn rare_positions(&self) -> Option<&[(u64, u16)]> {
        match self {
            Engine::Definition(_) | Engine::Removals(_) | Engine::Exhaustive(_) | Engine::PairSets(_) => None,
            Engine::Sparse(streams) => Some(streams.candidates.rare_positions()),
            Engine::Wide(solver) => solver.rare_positions(),
        }
    }

    /// Checks the data in memory of the engine for this rule in this space, as
    /// [`Solver::check_memory`](super::Solver::check_memory) states.
    ///
    /// # Errors
    /// [`Error::Flipped`] at the first difference, and any error of reading `past`.
    pub(super) fn check_memory(&self, rule: &Rule, space: SparseSpace, past: &dyn Sequence) -> Result<()> {
        // Both streams, and the wide solver, have copies of their own.
        let is_same = match self {
            Engine::Sparse(streams) => streams.is_of(rule, space),
            Engine::Wide(solver) => solver.is_of(rule, space),
            Engine::Definition(_) | Engine::Removals(_) | Engine::Exhaustive(_) | Engine::PairSets(_) => {
                space == SparseSpace::NONE
            }
        };
        if !is_same {
            return Err(Error::Flipped { what: "the rule or the sparse space", from: 0, to: past.len() });
        }
        match self {
            Engine::Definition(values) => values.agrees_with(past),
            Engine::Exhaustive(solver) => solver.check_memory(past),
            Engine::Removals(solver) => solver.check_memory(rule, past),
            Engine::PairSets(solver) => solver.check_memory(rule, past),
            Engine::Sparse(streams) => streams.check_memory(past),
            Engine::Wide(solver) => solver.check_memory(past),
        }
    }
}

/// The least value that does not fit the bytes of the exhaustive solver, which compares twice as many pairs per
/// instruction as the wide solver.
pub(super) const WIDE_FROM: u16 = 256;

/// The engine of a game whose values no kernel computes, whatever the method, unless that is [`Method::Definition`].
/// `None` for other games.
pub(crate) fn without_kernel(rule: &Rule) -> Option<&'static str> {
    if rule.has_splits() {
        return (!rule.may_be_sparse()).then_some("sets");
    }
    Some(if OptionCounts::pay(rule) { "counts" } else { Method::Definition.name() })
}

impl Solver {
    /// The engine without a sparse space: all pairs of bytes, the wide solver, sets of pairs, or, where no move leaves
    /// more than one heap, counts of options; the definition where counts do not pay or the method is
    /// [`Method::Definition`].
    pub(super) fn engine_without_space(&self, past: &dyn Sequence) -> Result<Engine> {
        let has_splits = self.rule.has_splits();
        if let (Method::Sparse(kernel), true) = (self.method, has_splits) {
            if !self.rule.may_be_sparse() {
                return Ok(Engine::PairSets(PairSets::new(&self.rule, past)?));
            }
            if self.max_value < WIDE_FROM {
                return Ok(Engine::Exhaustive(ExhaustiveSolver::new(kernel, past)?));
            }
            let stats = SequenceStats { max_value: self.max_value, ..SequenceStats::default() };
            return Ok(Engine::Wide(Box::new(WideSolver::new(&self.rule, SparseSpace::NONE, kernel, stats, past)?)));
        }
        if self.method != Method::Definition && OptionCounts::pay(&self.rule) {
            return Ok(Engine::Removals(RemovalSolver::new(&self.rule, past)?));
        }
        let start = if has_splits { 0 } else { past.len().saturating_sub(self.rule.max_remove()) };
        let mut values = vec![0; index(past.len() - start)];
        past.read(start, &mut values)?;
        Ok(Engine::Definition(Window::new(start, values)))
    }

    /// Whether the byte streams can hold the values: all have byte codes, and so have all values below 512.
    pub(super) fn has_codes(&self) -> bool {
        // If the lowest bit of the mask is above bit 8, only values below 256 have codes: too few to begin with codes.
        self.max_value < self.space.coded() && self.space.coded() >= 512
    }

    pub(super) fn sparse_engine(&self, past: &dyn Sequence, seen: EarlierValues) -> Result<Engine> {
        let Method::Sparse(kernel) = self.method else { return self.engine_without_space(past) };
        if !may_be_sparse(&self.rule, self.method) {
            return self.engine_without_space(past);
        }
        // `seen` lacks the largest value where it is discarded and the caller did not know it.
        let stats = SequenceStats { max_value: self.max_value, ..seen.stats };
        if !self.has_codes() || self.prefers_wide {
            return Ok(Engine::Wide(Box::new(WideSolver::new(&self.rule, self.space, kernel, stats, past)?)));
        }
        let candidates = CandidateStream::new(&self.rule, self.space, kernel, stats, past)?;
        let witnesses = Witnesses::new(&self.rule, self.space, kernel, seen.large, past)?;
        let codes = Codes::reading(self.space, block::horizon(&candidates, &witnesses, past.len()), past)?;
        Ok(Engine::Sparse(Box::new(Streams::new(kernel, candidates, witnesses, codes))))
    }

    /// The engine for a space that was not in use so far.
    pub(super) fn enter_space(&self, past: &dyn Sequence) -> Result<Engine> {
        self.sparse_engine(past, EarlierValues::of(past, self.space, &SequenceStats::default())?)
    }
}

/// Appends the next values, none from position `limit` on, by comparing all pairs of parts: one batch, short enough
/// that the caller can stop in time. It ends with the first value that is [`WIDE_FROM`] or larger, which the solver
/// cannot hold.
pub(super) fn compare_pairs(rule: &Rule, solver: &mut ExhaustiveSolver, limit: u64, out: &mut Vec<u16>) -> Result<()> {
    /// Maximum work per batch, in compared pairs (see [`ExhaustiveSolver::work`]): a fraction of a second.
    const BATCH: u64 = 1 << 30;
    let until = solver.work().saturating_add(BATCH);
    while solver.end() < limit && solver.work() < until {
        let value = solver.next(rule)?;
        out.push(value);
        if value >= WIDE_FROM {
            // The solver compares bytes.
            break;
        }
    }
    Ok(())
}

/// Appends the next values, none from position `limit` on, by the definition: one batch, short enough that the caller
/// can stop in time. `past` holds the values up to the end of the window.
pub(super) fn apply_definition(
    rule: &Rule,
    values: &mut Window<u16>,
    past: &dyn Sequence,
    limit: u64,
    out: &mut Vec<u16>,
) -> Result<()> {
    /// Maximum number of options per batch: a fraction of a second.
    const BATCH: u64 = 1 << 26;
    /// Minimum number of options for which several threads compute one value.
    const PARALLEL: u64 = 1 << 18;
    if !rule.has_splits() {
        values.forget(values.end().saturating_sub(rule.max_remove()), past)?;
    }
    let mut work = 0u64;
    while values.end() < limit && work < BATCH {
        let n = values.end();
        let options = rule.options_about(n);
        let value = if rule.has_splits() && options >= PARALLEL && values.start() == 0 {
            definition::value_at(rule, &values.items(), n)?
        } else {
            definition::value(rule, n, |m| values.get(m))?
        };
        values.push(value);
        out.push(value);
        work = work.saturating_add(16 + options);
    }
    Ok(())
}

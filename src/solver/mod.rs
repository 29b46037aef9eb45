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
pub(crate) mod bench;
mod candidates;
mod codes;
mod exhaustive;
mod lookup_order;
mod pipeline;
mod window;
mod witnesses;

pub use crate::theory::sparse_space::{Histogram, SparseSpace};

use crate::error::{Error, Result};
use crate::fault;
use crate::kernel::Kernel;
use crate::theory::definition::{self, Appended, Sequence, for_each_kept, for_each_piece};
use crate::theory::nimber::index;
use crate::theory::rule::Rule;
use audit::Audit;
use candidates::{Stop, Stream};
use codes::Codes;
use exhaustive::Dense;
use pipeline::{MarkWorker, MarkedAhead, pipeline};
use rayon::prelude::*;
use std::collections::VecDeque;
use window::Window;
use witnesses::Witnesses;

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

/// What a solver extracts from the earlier values before it starts.
#[derive(Default)]
struct EarlierValues {
    rares: Vec<(u64, u16)>,
    /// The last values above 255.
    large: Vec<(u64, u16)>,
    max_value: u16,
}

impl EarlierValues {
    /// Scans all values that are retained; `known` describes the others.
    fn of<S: Sequence + ?Sized>(past: &S, space: SparseSpace, known: &SequenceStats) -> Result<EarlierValues> {
        let mut seen = EarlierValues { max_value: known.max_value, ..EarlierValues::default() };
        for_each_kept(past, |from, values| {
            if space != SparseSpace::NONE {
                seen.rares.extend(space.rares(from, values));
            }
            let largest = values.iter().copied().max().unwrap_or(0);
            if largest > 255 {
                seen.large.extend((from..).zip(values.iter().copied()).filter(|&(_, v)| v > 255));
            }
            seen.max_value = seen.max_value.max(largest);
            seen.large.drain(..witnesses::many_first(&seen.large));
            Ok(())
        })?;
        seen.rares.extend(&known.rares);
        seen.rares.sort_unstable();
        Ok(seen)
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

enum Engine {
    /// By the definition, one pair after the other.
    Definition(Window<u16>),
    /// All pairs, many at once.
    Dense(Dense),
    /// Candidates and witnesses in a sparse space.
    Sparse(Box<Streams>),
}

struct Streams {
    kernel: Kernel,
    candidates: Stream,
    witnesses: Witnesses,
    /// The last codes, up to the end of `block`.
    codes: Codes,
    /// Pieces marked ahead for the next block.
    ahead: VecDeque<MarkedAhead>,
    audit: Option<Audit>,
    /// Candidates that wait for their witnesses, from the first unproved position on.
    block: Vec<u16>,
    /// Length of the next block.
    next_length: usize,
}

/// Number of values computed without a sparse space before one is used.
const BOOTSTRAP: u64 = 4096;

/// Maximum number of tokens that a move may remove in a game for which a sparse space is used, because the windows of
/// the streams hold no more.
const LONGEST_REMOVAL: u64 = 1 << 16;

/// Minimum number of values per rare position in a space that is worth using.
const WORTH: u64 = 8;

/// Number of values in the block after a new rare position.
const SMALLEST_BLOCK: usize = 64;

/// Maximum number of values in a block: a multiple of the lanes of a kernel and of the groups of the witness search.
/// The threads meet after each block, so a smaller number costs time. `sequence` of `cargo bench` (benches/sequence.rs)
/// measures its effect.
pub const BLOCK: usize = 1 << 17;

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

    /// The engine without a sparse space: all pairs, or the definition as it is written where the method is
    /// [`Method::Definition`] or the rule has no splits.
    fn definition_engine<S: Sequence + ?Sized>(&self, past: &S) -> Result<Engine> {
        let has_splits = self.rule.splits().next().is_some();
        if let (Method::Sparse(kernel), true) = (self.method, has_splits) {
            return Ok(Engine::Dense(Dense::new(kernel, past)?));
        }
        let start = if has_splits { 0 } else { past.len().saturating_sub(self.rule.max_remove()) };
        let mut values = vec![0; index(past.len() - start)];
        past.read(start, &mut values)?;
        Ok(Engine::Definition(Window::new(start, values)))
    }

    fn sparse_engine<S: Sequence + ?Sized>(&self, past: &S, seen: EarlierValues) -> Result<Engine> {
        let Method::Sparse(kernel) = self.method else { return self.definition_engine(past) };
        if !may_be_sparse(&self.rule, self.method) {
            return self.definition_engine(past);
        }
        let candidates = Stream::new(&self.rule, self.space, kernel, seen.rares, self.max_value, past)?;
        let witnesses = Witnesses::new(&self.rule, self.space, kernel, seen.large, past)?;
        let start = past.len().saturating_sub(candidates.reach().max(witnesses.lookback()));
        let mut codes = Codes::new(self.space, start);
        for_each_piece(past, start, past.len(), |_, values| {
            codes.push(values);
            Ok(())
        })?;
        Ok(Engine::Sparse(Box::new(Streams {
            kernel,
            candidates,
            witnesses,
            codes,
            ahead: VecDeque::new(),
            audit: None,
            block: Vec::new(),
            next_length: SMALLEST_BLOCK,
        })))
    }

    /// The engine for a space that was not in use so far.
    fn enter_space<S: Sequence + ?Sized>(&self, past: &S) -> Result<Engine> {
        self.sparse_engine(past, EarlierValues::of(past, self.space, &SequenceStats::default())?)
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
                    define(&self.rule, values, limit, out)?;
                    self.work.defined += (out.len() - before) as u64;
                }
                Engine::Dense(dense) => {
                    let limit = limit.min(if past.len() < self.next_review { self.next_review } else { limit });
                    compare(&self.rule, dense, limit, out)?;
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

    /// Searches a better space when a review is due.
    fn review<S: Sequence + ?Sized>(&mut self, past: &S) -> Result<()> {
        let n = past.len();
        let rares = match &self.engine {
            Engine::Sparse(streams) if !streams.block.is_empty() => return Ok(()),
            Engine::Sparse(streams) => streams.candidates.rares().len() as u64,
            Engine::Definition(_) | Engine::Dense(_) => n,
        };
        let sparse = matches!(self.engine, Engine::Sparse(_));
        let grown = sparse && rares > self.rares_at_review + self.rares_at_review / 4 + 64;
        // Once values are discarded the space must stay: the rare positions among them under another space are unknown.
        let freed = !past.freed().is_empty();
        let keep_space = sparse && (self.fixed || freed || (self.built_in && self.max_value < 512));
        if keep_space || self.method == Method::Definition || (n < self.next_review && !grown) {
            return Ok(());
        }
        self.next_review = (2 * n).max(BOOTSTRAP);
        self.rares_at_review = rares;
        if self.built_in && !sparse {
            self.engine = self.enter_space(past)?;
            return Ok(());
        }
        let (best, fewest) = Histogram::of(past)?.best_space(&self.rule);
        let better = if sparse { fewest * 5 < rares * 4 } else { fewest * WORTH <= n };
        if better && best != SparseSpace::NONE {
            self.space = best;
            self.rares_at_review = fewest;
            self.engine = self.enter_space(past)?;
        }
        Ok(())
    }
}

/// Appends the next values by comparing all pairs of parts: one batch, short enough that the caller can stop in time.
fn compare(rule: &Rule, dense: &mut Dense, limit: u64, out: &mut Vec<u16>) -> Result<()> {
    /// Maximum work per batch, in compared pairs (see [`Dense::work`]): a fraction of a second.
    const BATCH: u64 = 1 << 30;
    let until = dense.work().saturating_add(BATCH);
    while dense.end() < limit && dense.work() < until {
        out.push(dense.next(rule)?);
    }
    Ok(())
}

/// Appends the next values by the definition: one batch, short enough that the caller can stop in time.
fn define(rule: &Rule, values: &mut Window<u16>, limit: u64, out: &mut Vec<u16>) -> Result<()> {
    /// Maximum number of options per batch: a fraction of a second.
    const BATCH: u64 = 1 << 26;
    /// Minimum number of pairs of parts for which several threads compute one value.
    const PARALLEL: u64 = 1 << 18;
    let splits = rule.splits().count() as u64;
    let singles = rule.moves().len() as u64 - splits;
    let mut pairs = 0;
    while values.end() < limit && pairs < BATCH {
        let n = values.end();
        let value = if n * splits / 2 >= PARALLEL && values.start() == 0 {
            definition::value_at(rule, values.items(), n)?
        } else {
            definition::value(rule, n, |m| values.get(m))?
        };
        values.push(value);
        out.push(value);
        pairs += 16 + n * splits / 2 + singles.min(n);
    }
    if splits == 0 {
        values.forget_before(values.end().saturating_sub(rule.max_remove()));
    }
    Ok(())
}

/// Searches witnesses for the values from `start` to the end of their stream, audits some of the witnessed groups, and
/// serves the pipeline between groups if there is a `worker`.
fn check<S: Sequence + ?Sized>(
    witnesses: &mut Witnesses,
    audit: Option<&Audit>,
    start: u64,
    codes: &Codes,
    mut worker: Option<&mut MarkWorker>,
    past: &S,
) -> Result<witnesses::CheckedGroup> {
    /// Number of groups that each thread searches between two services of the pipeline, or the unit of this number.
    const GROUPS: u64 = 2;
    let end = witnesses.end();
    let mut checked = witnesses::CheckedGroup::default();
    // "use-unproved" is a deliberate fault, see fault.rs.
    if start == end || fault::is("use-unproved") {
        return Ok(checked);
    }
    witnesses.prepare(start, codes);
    let witnesses = &*witnesses;
    let mut from = start;
    while from < end && checked.missing.is_none() {
        // The threads meet less often when the producer waits for no marks. They still meet, because the work behind a
        // new rare position is discarded.
        let factor = match worker.as_mut().map(|worker| (worker.serve(), worker.marks())) {
            Some((true, true)) => 1,
            Some((true, false)) => 2,
            Some((false, _)) => 16,
            None => 4,
        };
        let groups = factor * GROUPS * rayon::current_num_threads() as u64;
        let to =
            (from / witnesses::GROUP_VALUES).saturating_add(groups).saturating_mul(witnesses::GROUP_VALUES).min(end);
        let search = |group: u64| {
            let range = from.max(group * witnesses::GROUP_VALUES)..to.min((group + 1) * witnesses::GROUP_VALUES);
            let checked = witnesses.check_group(witnesses.kernel(), range.start, range.end, codes, past)?;
            let audited = match audit {
                Some(audit) if checked.missing.is_none() => audit.check(range, codes, witnesses, past)?,
                _ => 0,
            };
            Ok(witnesses::CheckedGroup { audited, ..checked })
        };
        let groups: Vec<u64> = (from / witnesses::GROUP_VALUES..to.div_ceil(witnesses::GROUP_VALUES)).collect();
        let found = groups
            .into_par_iter()
            .with_max_len(1) // so that the thread that completes the candidates finds groups left to search
            .map(search)
            .try_reduce(witnesses::CheckedGroup::default, |a, b| Ok(a.and(b)))?;
        checked = checked.and(found);
        from = to;
    }
    Ok(checked)
}

impl Streams {
    /// Prepares the audit, if there is to be one, and again after every new rare position.
    fn prepare_audit(&mut self, rule: &Rule, space: SparseSpace, seed: Option<u64>) {
        let rares = self.candidates.rares();
        if let Some(seed) = seed.filter(|_| self.audit.as_ref().is_none_or(|audit| audit.rares() != rares.len())) {
            self.audit = Some(Audit::new(rule, space, audit::other_than(self.kernel), seed, rares));
        }
    }

    /// Computes the candidates of one block and searches the witnesses of the block before, side by side. Appends the
    /// values proved to `out`.
    fn step<S: Sequence + ?Sized>(
        &mut self,
        past: &S,
        limit: u64,
        largest: usize,
        work: &mut Work,
        out: &mut Vec<u16>,
    ) -> Result<()> {
        let start = past.len();
        let from = self.candidates.end();
        // Blocks end on multiples of their length, so that lanes and groups of the witness search are complete.
        let mut length = self.next_length as u64 - from % self.next_length as u64;
        length = length.min(limit.saturating_sub(from));
        let horizon = start.saturating_sub(self.candidates.reach().max(self.witnesses.lookback()));
        self.candidates.forget(start, horizon, &mut self.codes, past)?;
        let (candidates, witnesses, block) = (&mut self.candidates, &mut self.witnesses, &self.block);
        let (audit, ahead) = (self.audit.as_ref(), std::mem::take(&mut self.ahead));
        let codes = &self.codes;
        let (mut producer, mut worker) = pipeline(codes, self.kernel, candidates.plan(), limit, ahead);
        let ((next, rest), checked) = rayon::join(
            || {
                let next = if length == 0 {
                    Ok((Vec::new(), Stop::Done))
                } else {
                    candidates.block(index(length), &mut producer)
                };
                (next, producer.close())
            },
            || {
                witnesses.forget(past)?;
                witnesses.push(block);
                if rayon::current_num_threads() > 2 && worker.marks() {
                    let (checked, recent) =
                        rayon::join(|| check(witnesses, audit, start, codes, None, past), || worker.finish());
                    return Ok((checked?, recent));
                }
                let checked = check(witnesses, audit, start, codes, Some(&mut worker), past)?;
                Ok::<_, Error>((checked, worker.finish()))
            },
        );
        let (checked, recent) = checked?;
        self.codes.append(&recent)?;
        self.ahead = rest.into_waiting();
        work.exhaustive_searches += checked.exhaustive_searches;
        work.depth = work.depth.max(checked.depth);
        if let Some((n, value)) = checked.missing {
            let proved_count = index(n - start);
            work.witnessed += proved_count as u64;
            let first = out.len();
            out.extend_from_slice(&self.block[..proved_count]);
            let freed = past.freed();
            if !freed.is_empty() {
                // Positions after a new rare position read values from the first on.
                let hole = (freed.start, freed.end);
                return Err(Error::Freed { from: 0, to: n, hole, heap: Some(n) });
            }
            work.witnessed += 1;
            work.found_rare += 1;
            self.block.clear();
            self.ahead.clear();
            self.candidates.truncate(n);
            self.codes.truncate(n);
            self.witnesses.truncate(n);
            let proved = Appended { first: past, more: &out[first..] };
            self.candidates.push_rare(value, &proved)?;
            self.codes.push(&[value]);
            self.witnesses.push(&[value]);
            out.push(value);
            self.next_length = SMALLEST_BLOCK.min(largest);
            return Ok(());
        }
        work.audited += checked.audited;
        work.witnessed += self.block.len() as u64;
        out.append(&mut self.block);
        let (next, stop) = next?;
        let nothing_waits = next.is_empty();
        self.block = next;
        self.next_length = (self.next_length * 2).min(largest).min(self.candidates.longest_block());
        if stop == Stop::TooWide && nothing_waits {
            let first = out.len() - index(self.candidates.end() - start);
            self.candidates.widen(&Appended { first: past, more: &out[first..] })?;
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
mod tests {
    use super::*;
    use crate::support::{Random, Tally, cases};
    use crate::theory::rule::{Leaves, Move};

    /// Flips one bit of the data that later values depend on; a second call with the same arguments flips it back.
    /// Returns false when there is no data of this kind.
    fn flip(streams: &mut Streams, what: usize, draw: u64) -> bool {
        let (bit, unproved) = (1u8 << (draw % 8), streams.block.len());
        match what {
            0 => streams.candidates.flip_code(draw / 8, bit, unproved),
            1 => {
                let from = streams.codes.start().max(streams.candidates.first_code());
                let n = from + draw / 8 % (streams.codes.end() - from);
                let at = streams.codes.at(n);
                streams.codes.items_mut()[at] ^= bit;
            }
            2 => streams.witnesses.flip_recent(draw / 8, bit),
            3 => streams.candidates.flip_rare(draw / 8, bit),
            4 => return streams.candidates.flip_plan(draw / 8, bit),
            5 => return streams.witnesses.flip_head(draw / 8, bit),
            6 => return streams.witnesses.flip_part(draw / 8, bit),
            7 => return streams.witnesses.flip_large(draw / 8, bit),
            8 => streams.witnesses.flip_rare_below(draw / 8, bit),
            _ => streams.candidates.flip_value(draw / 8, bit, unproved),
        }
        true
    }

    /// The check finds a flip whether or not values were computed from it in the meantime.
    #[test]
    fn a_bit_flip_in_the_data_of_the_streams_is_noticed() {
        let tally = Tally::begin("flips in memory");
        let rounds = cases(500, 100_000);
        let mut random = Random::new("flips in memory");
        let mut noticed = [0u64; 10];
        let leap = (0..600).map(|constant| Move { remove: 4500, constant, leaves: Leaves::One });
        let wide = "0.77".parse::<Rule>().unwrap().moves().iter().copied().chain(leap).collect();
        let game = |name: &str| name.parse::<Rule>().unwrap();
        let all = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9][..];
        // The last game has values without a byte code.
        let games = [
            (game("grundy"), 100_000, all),
            (game("0.6"), 100_000, all),
            (game(".106"), 80_000, all),
            (Rule::from_moves("leaping", wide).unwrap(), 6_000, &[2, 3, 7, 8, 9]),
        ];
        let rounds_each = rounds / games.len() as u64;
        for (rule, count, kinds) in games {
            let values = values(&rule, Method::Sparse(Kernel::best()), count).unwrap();
            let start = || {
                let mut solver = Solver::new(&rule, Method::Sparse(Kernel::best()), None, values.as_slice()).unwrap();
                let mut past = values.clone();
                go_on(&mut solver, &mut past, count / 10).unwrap();
                solver.check_memory(past.as_slice()).unwrap();
                (solver, past)
            };
            let (mut solver, mut past) = start();
            let mut flipped = 0;
            // Take the kinds in turn, so that each has its share whatever the random numbers.
            for &kind in kinds.iter().cycle() {
                if flipped == rounds_each {
                    break;
                }
                let draw = random.next();
                let Engine::Sparse(streams) = &mut solver.engine else { panic!("{rule} has a space") };
                if !flip(streams, kind, draw) {
                    continue;
                }
                flipped += 1;
                // Where there are codes, later values depend on only a few of the last values (kind 9).
                if random.below(50) == 0 && (kind != 9 || count < 10_000) {
                    // Either the check of forgotten data or the check of the data held now finds the flip.
                    let seen =
                        go_on(&mut solver, &mut past, count / 5).and_then(|()| solver.check_memory(past.as_slice()));
                    assert!(seen.is_err(), "{rule}: flip {kind} of {draw:#x} was not noticed after going on");
                    (solver, past) = start();
                } else {
                    let seen = solver.check_memory(past.as_slice());
                    assert!(seen.is_err(), "{rule}: flip {kind} of {draw:#x} was not noticed");
                    let Engine::Sparse(streams) = &mut solver.engine else { panic!("{rule} has a space") };
                    flip(streams, kind, draw);
                    solver.check_memory(past.as_slice()).unwrap();
                }
                noticed[kind] += 1;
            }
        }
        assert!(noticed.iter().all(|&kind| kind > rounds / 30), "{noticed:?}");
        tally.end(noticed.iter().sum(), "all noticed before the commit");
    }

    /// The choice of the audited values does not depend on threads and blocks.
    #[test]
    fn one_group_in_fifty_is_audited() {
        let (rule, kernel) = ("grundy".parse().unwrap(), Kernel::best());
        let start = values(&rule, Method::Sparse(kernel), 1 << 18).unwrap();
        let audited = |threads: usize, block: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let solver = Solver::new(&rule, Method::Sparse(kernel), None, start.as_slice()).unwrap();
                let (mut solver, mut past) = (solver.with_audit(7).with_block(block), start.clone());
                while past.len() < 1 << 19 {
                    let mut more = Vec::new();
                    solver.advance(past.as_slice(), 1 << 19, &mut more).unwrap();
                    past.append(&mut more);
                }
                solver.work().audited
            })
        };
        let once = audited(1, BLOCK);
        assert!((1 << 18) / 75 < once && once < (1 << 18) / 35, "{once} of 2^18 values");
        assert_eq!([audited(2, BLOCK), audited(5, 1 << 14), audited(2, 1 << 9)], [once; 3]);
    }

    fn go_on(solver: &mut Solver, past: &mut Vec<u16>, count: usize) -> Result<()> {
        let end = past.len() + count;
        while past.len() < end {
            let mut more = Vec::new();
            solver.advance(past.as_slice(), u64::MAX, &mut more)?;
            past.append(&mut more);
        }
        Ok(())
    }

    /// The table of a resumed run may hold billions of values above 255; the solver needs only the last ones.
    #[test]
    fn a_resumed_solver_keeps_only_the_last_large_values() {
        let values = vec![300u16; 1 << 20];
        let seen = EarlierValues::of(values.as_slice(), SparseSpace::NONE, &SequenceStats::default()).unwrap();
        assert!(seen.large.len() < 1 << 18, "{} values above 255 are held", seen.large.len());
        assert_eq!(seen.large.last(), Some(&((1 << 20) - 1, 300)));
    }
}

//! The sparse-space solver: exact values, each with its witnesses.
//!
//! At heap n let m* be the least value common at n that is not among the common options. Then G(n) = m* if and only if
//! every value below m* that is rare at n is an option as well; if some are not, G(n) is the least of them, n is rare, and
//! it joins the list. This is exact: no hypothesis, no conjecture; the space decides only how fast it is.
//!
//! Two streams work side by side (`rayon::join`): the candidates (`candidate`) of one block, and the witnesses (`witness`)
//! of the block before; `pipeline` says how they talk meanwhile. Nothing runs farther ahead. A new rare heap takes both back to
//! the heap after it; blocks then start small and double, so that the many rares of a young sequence cost little.
//!
//! Before a space is known, and for games that have none, all pairs are compared (`dense`). A space is found by the
//! Walsh–Hadamard transform of the histogram ([`Histogram::best_space`]) and reviewed whenever the sequence has doubled
//! or the rares have grown by a quarter. Of the named games it is built in.
//!
//! Invariant: what [`Solver::advance`] hands out is proved, given that the values before it are right.

mod audit;
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
    /// Rares and commons, with this kernel; by the definition where no good space is known.
    Sparse(Kernel),
    /// Every value by the definition.
    Definition,
}

impl Method {
    /// The name that `--kernel` takes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Method::Sparse(kernel) => kernel.name(),
            Method::Definition => "definition",
        }
    }
}

/// What a solver has done since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Values whose witnesses were all found.
    pub witnessed: u64,
    /// Values computed by the definition.
    pub defined: u64,
    /// Exhaustive exhaustive_searches after a search that failed.
    pub exhaustive_searches: u64,
    /// Rare heaps found.
    pub found_rare: u64,
    /// Heaps looked at again by another kernel ([`Solver::with_audit`]).
    pub audited: u64,
    /// New largest values settled by all pairs.
    pub proved_maxima: u64,
    /// The largest smaller part of any witness (0 where the definition was used).
    pub depth: u64,
}

/// What is known of values that are no longer there ([`Sequence::freed`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SequenceStats {
    /// Their rare positions under the space in use, ascending, with the values.
    pub rares: Vec<(u64, u16)>,
    /// The largest of them.
    pub max_value: u16,
}

/// What a solver looks for in the values before it starts.
#[derive(Default)]
struct EarlierValues {
    rares: Vec<(u64, u16)>,
    /// The last values above 255.
    large: Vec<(u64, u16)>,
    max_value: u16,
}

impl EarlierValues {
    /// One scan of all values that are there; `known` stands for the others.
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

/// How many of the last values a sparse solver reads again when it is made anew, for the rare positions up to
/// `last_rare`; the first 2^16 are read besides.
#[must_use]
pub fn lookback(rule: &Rule, last_rare: u64) -> u64 {
    last_rare.saturating_add(lookup_order::SPAN).max(witnesses::LOOKBACK).saturating_add(rule.max_remove())
}

/// Whether a space could ever be used; otherwise all values are looked back at.
#[must_use]
pub fn may_be_sparse(rule: &Rule, method: Method) -> bool {
    method != Method::Definition && rule.splits().next().is_some() && rule.max_remove() <= LONGEST_REMOVAL
}

/// Computes a sequence, block by block.
pub struct Solver {
    rule: Rule,
    method: Method,
    space: SparseSpace,
    /// The built-in space of a named game is not reviewed while all values are below 512.
    built_in: bool,
    /// Any space is kept, good or bad.
    fixed: bool,
    max_value: u16,
    next_review: u64,
    rares_at_review: u64,
    work: Work,
    largest_block: usize,
    engine: Engine,
    /// What decides where a second look is taken; none without.
    audit: Option<u64>,
    /// An error may have left the streams between two heaps.
    failed: bool,
}

enum Engine {
    /// One pair after the other.
    Definition(Window<u16>),
    /// All pairs, many at once.
    Dense(Dense),
    Sparse(Box<Streams>),
}

struct Streams {
    kernel: Kernel,
    candidates: Stream,
    witnesses: Witnesses,
    /// Of everything up to the end of `block`.
    codes: Codes,
    /// For the block that is computed next.
    ahead: VecDeque<MarkedAhead>,
    audit: Option<Audit>,
    /// Candidates that wait for their witnesses, from the first unproved heap on.
    block: Vec<u16>,
    next_length: usize,
}

/// Values computed by the definition before a sparse space is used.
const BOOTSTRAP: u64 = 4096;

/// Rules that remove more tokens at once are left to the definition: the windows of the streams would not hold them.
const LONGEST_REMOVAL: u64 = 1 << 16;

/// Rare heaps make up at most one in this many in a space worth using.
const WORTH: u64 = 8;

/// The block after a new rare heap.
const SMALLEST_BLOCK: usize = 64;

/// The usual block: a multiple of the lanes of a kernel and of the groups of the witness search. (Threads meet after each:
/// with 2^15 it took .106 and .6 some 6 % longer, Grundy's game 4 %, with two threads; 2^19 is no better.)
pub const BLOCK: usize = 1 << 17;

impl Solver {
    /// A solver that continues `past`, whose values must be right; `space` is the one used so far, where one was.
    ///
    /// # Errors
    /// What reading `past` gives.
    pub fn new<S: Sequence + ?Sized>(
        rule: &Rule,
        method: Method,
        space: Option<SparseSpace>,
        past: &S,
    ) -> Result<Solver> {
        Solver::knowing(rule, method, space, past, &SequenceStats::default())
    }

    /// A solver that continues `past`, some of whose values may be freed: `known` tells of these, under `space`.
    ///
    /// # Errors
    /// What reading `past` gives; [`Error::Freed`] when values are looked back at that are no longer there.
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

    /// Changes the largest block (at most [`BLOCK`]), which changes speed but no value (for tests).
    #[must_use]
    pub fn with_block(mut self, largest: usize) -> Solver {
        self.largest_block = largest.clamp(1, BLOCK);
        self
    }

    /// Keeps the space it was made with, however bad it is, which changes speed but no value (for tests).
    #[must_use]
    pub fn with_fixed_space(mut self) -> Solver {
        self.fixed = true;
        self
    }

    /// Takes a second look at a sample of the heaps, which `seed` decides; a value that is found to be another one then
    /// is an error ([`Error::Differs`]).
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

    /// The number of rare positions among the values handed out, and the last of them; n = 0 is one.
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

    /// How many of the last values handed out must stay readable, besides the first 2^16; `None` for all of them, while
    /// values are computed by the definition. A new rare position or a walk over all pairs may still need others.
    #[must_use]
    pub fn lookback(&self) -> Option<u64> {
        match &self.engine {
            Engine::Definition(_) | Engine::Dense(_) => None,
            Engine::Sparse(_) => Some(lookback(&self.rule, self.rares(0).1)),
        }
    }

    /// Compares what is held in memory, and what later values will be computed from, with what it was when it was
    /// computed. A single changed bit would poison all that follows. `past` holds all values handed out.
    ///
    /// # Errors
    /// [`Error::Flipped`], and what reading `past` gives.
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

    /// What has been done since the solver was made.
    #[must_use]
    pub fn work(&self) -> Work {
        self.work
    }

    /// [`Work::depth`] since this was asked last.
    pub fn take_depth(&mut self) -> u64 {
        std::mem::take(&mut self.work.depth)
    }

    /// All pairs; the definition as it is written when it is asked for, and when there are no pairs.
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

    /// [`Solver::sparse_engine`] of a space that is new to the values so far.
    fn enter_space<S: Sequence + ?Sized>(&self, past: &S) -> Result<Engine> {
        self.sparse_engine(past, EarlierValues::of(past, self.space, &SequenceStats::default())?)
    }

    /// Appends proved values to `out`: at least one, and none from heap `limit` on. `past` holds all values handed out so
    /// far, and `limit` is above its length and never lowered between calls.
    ///
    /// # Errors
    /// [`Error::ValueTooLarge`], or what reading `past` gives: [`Error::Freed`] when a heap needs values that are no longer
    /// there. The values appended are right all the same, but the solver is of no more use: make another one.
    ///
    /// # Panics
    /// When it is asked again after an error.
    pub fn advance<S: Sequence + ?Sized>(&mut self, past: &S, limit: u64, out: &mut Vec<u16>) -> Result<()> {
        assert!(!self.failed, "a solver was asked again after an error");
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
                    streams.look_again(&self.rule, self.space, self.audit);
                    streams.step(past, limit, self.largest_block, &mut self.work, out)?;
                    self.prove_largest(past, before, out)?;
                }
            }
        }
        let largest = out[before..].iter().copied().max().unwrap_or(0);
        self.max_value = self.max_value.max(largest);
        Ok(())
    }

    /// A value larger than all before it is a surprise, and settled by all pairs, while all values are there.
    fn prove_largest<S: Sequence + ?Sized>(&mut self, past: &S, before: usize, out: &mut Vec<u16>) -> Result<()> {
        let from = past.len();
        // Nearly always there is none, and then it is a vector instruction or two.
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

    /// Looks for a better space where it is time to.
    fn review<S: Sequence + ?Sized>(&mut self, past: &S) -> Result<()> {
        let n = past.len();
        let rares = match &self.engine {
            Engine::Sparse(streams) if !streams.block.is_empty() => return Ok(()),
            Engine::Sparse(streams) => streams.candidates.rares().len() as u64,
            Engine::Definition(_) | Engine::Dense(_) => n,
        };
        let sparse = matches!(self.engine, Engine::Sparse(_));
        let grown = sparse && rares > self.rares_at_review + self.rares_at_review / 4 + 64;
        // A space is not changed once values are freed: which of them are rare in another is no longer known.
        let freed = !past.freed().is_empty();
        let settled = sparse && (self.fixed || freed || (self.built_in && self.max_value < 512));
        if settled || self.method == Method::Definition || (n < self.next_review && !grown) {
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

/// The next values by all pairs at once: one batch, small enough that a stop is noticed soon.
fn compare(rule: &Rule, dense: &mut Dense, limit: u64, out: &mut Vec<u16>) -> Result<()> {
    /// Pairs of heaps and single heaps looked up per batch; a fraction of a second.
    const BATCH: u64 = 1 << 30;
    let until = dense.work().saturating_add(BATCH);
    while dense.end() < limit && dense.work() < until {
        out.push(dense.next(rule)?);
    }
    Ok(())
}

/// The next values by the definition: one batch, small enough that a stop is noticed soon.
fn define(rule: &Rule, values: &mut Window<u16>, limit: u64, out: &mut Vec<u16>) -> Result<()> {
    /// Pairs of heaps per batch; a fraction of a second.
    const BATCH: u64 = 1 << 26;
    /// From this many pairs on, one value is worth several threads.
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

/// Searches witnesses for the heaps from `start` to the end of their stream, looks again at some of those that have them,
/// and lends a hand to the candidates meanwhile.
fn check<S: Sequence + ?Sized>(
    witnesses: &mut Witnesses,
    audit: Option<&Audit>,
    start: u64,
    codes: &Codes,
    mut worker: Option<&mut MarkWorker>,
    past: &S,
) -> Result<witnesses::CheckedGroup> {
    /// Groups searched by each thread before the candidates are asked for again, or some times as many.
    const GROUPS: u64 = 2;
    let end = witnesses.end();
    let mut checked = witnesses::CheckedGroup::default();
    // The second is a deliberate fault, see fault.rs.
    if start == end || fault::is("use-unproved") {
        return Ok(checked);
    }
    witnesses.prepare(start, codes);
    let witnesses = &*witnesses;
    let mut from = start;
    while from < end && checked.missing.is_none() {
        // Threads meet less often when nobody waits for marks; but what follows a new rare heap is thrown away.
        let often = match worker.as_mut().map(|worker| (worker.serve(), worker.marks())) {
            Some((true, true)) => 1,
            Some((true, false)) => 2,
            Some((false, _)) => 16,
            None => 4,
        };
        let groups = often * GROUPS * rayon::current_num_threads() as u64;
        let to =
            (from / witnesses::GROUP_VALUES).saturating_add(groups).saturating_mul(witnesses::GROUP_VALUES).min(end);
        let search = |group: u64| {
            let heaps = from.max(group * witnesses::GROUP_VALUES)..to.min((group + 1) * witnesses::GROUP_VALUES);
            let checked = witnesses.check_group(witnesses.kernel(), heaps.start, heaps.end, codes, past)?;
            let audit = audit.filter(|_| checked.missing.is_none());
            let audited = audit.map_or(Ok(0), |audit| audit.look(heaps, codes, witnesses, past))?;
            Ok(witnesses::CheckedGroup { audited, ..checked })
        };
        let groups: Vec<u64> = (from / witnesses::GROUP_VALUES..to.div_ceil(witnesses::GROUP_VALUES)).collect();
        let found = groups
            .into_par_iter()
            .with_max_len(1) // the thread that comes back from the candidates is to find something to do
            .map(search)
            .try_reduce(witnesses::CheckedGroup::default, |a, b| Ok(a.and(b)))?;
        checked = checked.and(found);
        from = to;
    }
    Ok(checked)
}

impl Streams {
    /// Makes the second look ready, when one is to be taken: after every new rare heap anew.
    fn look_again(&mut self, rule: &Rule, space: SparseSpace, seed: Option<u64>) {
        let rares = self.candidates.rares();
        if let Some(seed) = seed.filter(|_| self.audit.as_ref().is_none_or(|audit| audit.rares() != rares.len())) {
            self.audit = Some(Audit::new(rule, space, audit::other_than(self.kernel), seed, rares));
        }
    }

    /// The candidates of one block and the witnesses of the block before, side by side.
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
        // Blocks end on multiples of their length, so that groups of lanes and witnesses are whole ones.
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
            let good = index(n - start);
            work.witnessed += good as u64;
            let first = out.len();
            out.extend_from_slice(&self.block[..good]);
            let freed = past.freed();
            if !freed.is_empty() {
                // The heaps after a new rare one look back at all values, from the first on.
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

/// G(0), …, G(count - 1) in memory, by the fastest method; two bytes a value.
///
/// # Errors
/// [`Error::ValueTooLarge`] at the first value above 65535.
pub fn values(rule: &Rule, method: Method, count: usize) -> Result<Vec<u16>> {
    extend(rule, method, Vec::new(), count, BLOCK, |_| true)
}

/// Continues `values` up to `count` values; `go_on` sees how many there are now and then and may stop the computation.
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

/// A bit that flips, for a test of who uses a solver.
#[cfg(test)]
impl Solver {
    pub(crate) fn flip(&mut self) {
        let Engine::Sparse(streams) = &mut self.engine else { panic!("nothing is flipped without a space") };
        streams.candidates.flip_rare(1, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::{Random, Tally, cases};
    use crate::theory::rule::{Leaves, Move};

    /// Flips one bit of one thing that later values are computed from, and back when it is done again; false when there is
    /// no such thing.
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

    /// A flip stands until the check, whether something was computed from it meanwhile or not.
    #[test]
    fn a_bit_that_flips_in_what_is_looked_back_at_is_noticed() {
        let tally = Tally::begin("flips in memory");
        let rounds = cases(500, 100_000);
        let mut random = Random::new("flips in memory");
        let mut noticed = [0u64; 10];
        let leap = (0..600).map(|constant| Move { remove: 4500, constant, leaves: Leaves::One });
        let wide = "0.77".parse::<Rule>().unwrap().moves().iter().copied().chain(leap).collect();
        let game = |name: &str| name.parse::<Rule>().unwrap();
        let all = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9][..];
        // The last game goes beyond the byte codes.
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
            // In turn, so that each kind has its share whatever is drawn.
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
                // Of the values only the last few are looked back at, unless there are no codes.
                if random.below(50) == 0 && (kind != 9 || count < 10_000) {
                    // Either what was forgotten since, or what is there now.
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

    /// Which heaps are looked at again does not depend on threads and blocks, and they are about one in fifty.
    #[test]
    fn a_second_look_is_taken_at_one_group_in_fifty() {
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
        assert!((1 << 18) / 75 < once && once < (1 << 18) / 35, "{once} of 2^18 heaps");
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

    /// A table that a run is resumed on may hold billions of values above 255; the last ones will do.
    #[test]
    fn a_resumed_solver_keeps_only_the_last_large_values() {
        let values = vec![300u16; 1 << 20];
        let seen = EarlierValues::of(values.as_slice(), SparseSpace::NONE, &SequenceStats::default()).unwrap();
        assert!(seen.large.len() < 1 << 18, "{} values above 255 are held", seen.large.len());
        assert_eq!(seen.large.last(), Some(&((1 << 20) - 1, 300)));
    }
}

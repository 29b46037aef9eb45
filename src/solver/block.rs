//! One block through both streams.
//!
//! [`Streams::step`] computes the candidates of one block ([`pipeline`](super::pipeline)) and, side by side, searches
//! the witnesses of the block before. When every value of the earlier block has its witnesses, the block is accepted,
//! and the candidates wait for the next step. When a value turns out to be rare, the values before it and the rare
//! value are accepted. The streams then continue after it, and everything that was computed beyond it is discarded. Now
//! and then, before a block, both streams learn their lookups.
//!
//! Invariant: all values that `step` appends are proved; both streams and the codes end at the same position after each
//! new rare position.

use super::audit::Audit;
use super::candidates::{CandidateStream, Stop};
use super::codes::Codes;
use super::parallelism::Threads;
use super::pipeline::{BlockValues, Follower, Pipeline};
use super::slots::lock;
use super::witnesses::{CheckedGroup, GROUP_VALUES, Witnesses};
use super::{SparseSpace, Work};
use crate::error::{Error, Result};
use crate::fault;
use crate::kernel::Kernel;
use crate::theory::definition::{Appended, Sequence};
use crate::theory::nimber::index;
use crate::theory::rule::Rule;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// Number of values in the block after a new rare position.
const SMALLEST_BLOCK: usize = 64;

/// Time that a thread sleeps between two tests of whether the search for witnesses is prepared, when the candidates are
/// complete.
const PREPARATION_POLL: Duration = Duration::from_micros(20);

/// What bounds a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockLimits {
    /// The first position that is not computed.
    pub(super) end: u64,
    /// Maximum number of values in a block.
    pub(super) longest: usize,
    /// The threads of the step.
    pub(super) threads: Threads,
}

/// The two streams, and the data that they share.
pub(super) struct Streams {
    pub(super) kernel: Kernel,
    pub(super) candidates: CandidateStream,
    pub(super) witnesses: Witnesses,
    /// The last codes, up to the end of `block`.
    pub(super) codes: Codes,
    /// Memory for the values of the block in computation.
    values: BlockValues,
    audit: Option<Audit>,
    /// Candidates that wait for their witnesses, from the first unproved position on.
    pub(super) block: Vec<u16>,
    /// Length of the next block.
    next_length: usize,
}

/// The candidates of a block, and where the stream stopped.
type CandidateBlock = (Vec<u16>, Stop);

impl Streams {
    /// The streams between two blocks. `codes` holds everything that they read.
    pub(super) fn new(kernel: Kernel, candidates: CandidateStream, witnesses: Witnesses, codes: Codes) -> Streams {
        Streams {
            kernel,
            candidates,
            witnesses,
            codes,
            values: BlockValues::default(),
            audit: None,
            block: Vec::new(),
            next_length: SMALLEST_BLOCK,
        }
    }

    /// Whether both streams compute the values of this rule in this space.
    pub(super) fn is_of(&self, rule: &Rule, space: SparseSpace) -> bool {
        self.candidates.is_of(rule, space) && self.witnesses.is_of(rule, space)
    }

    /// Compares the values with `past`, which holds all proved values, the two copies of the codes with each other, and
    /// the tables with their checksums.
    pub(super) fn check_memory(&self, past: &dyn Sequence) -> Result<()> {
        let (candidates, witnesses) = rayon::join(
            || self.candidates.check_memory(&self.codes, past),
            || self.witnesses.check_memory(&self.codes, past),
        );
        candidates.and(witnesses)
    }

    /// Prepares the audit, if there is to be one, and again after every new rare position.
    pub(super) fn prepare_audit(&mut self, rule: &Rule, space: SparseSpace, seed: Option<u64>) {
        let rare_positions = self.candidates.rare_positions();
        let is_current = |audit: &Audit| audit.rare_positions() == rare_positions.len();
        if let Some(seed) = seed
            && !self.audit.as_ref().is_some_and(is_current)
        {
            self.audit = Some(Audit::new(rule, space, self.kernel.other(), seed, rare_positions));
        }
    }

    /// Computes the candidates of one block and searches the witnesses of the block before, side by side. Appends the
    /// values proved to `out`. Returns whether the streams cannot continue, because the next value has no byte code, or
    /// the last value has none.
    pub(super) fn step(
        &mut self,
        past: &dyn Sequence,
        limits: BlockLimits,
        work: &mut Work,
        out: &mut Vec<u16>,
    ) -> Result<bool> {
        let length = self.schedule(limits.end);
        self.forget(past)?;
        if length > 0 {
            self.candidates.use_threads(limits.threads);
            self.learn_when_due();
        }
        let (next, checked) = self.join_streams(past, length, limits)?;
        work.exhaustive_searches += checked.exhaustive_searches;
        work.depth = work.depth.max(checked.depth);
        let before = out.len();
        let accepted = match checked.missing {
            Some(rare) => self.accept_rare(rare, past, limits, out),
            None => Ok(self.accept_block(next, limits, out)),
        };
        work.witnessed += (out.len() - before) as u64;
        match checked.missing {
            Some(_) => work.found_rare += u64::from(accepted.is_ok()),
            None => work.audited += checked.audited,
        }
        accepted
    }

    /// The length of the next block of candidates, none of them at `end` or beyond.
    fn schedule(&self, end: u64) -> usize {
        let from = self.candidates.end();
        // Blocks end on multiples of their length, so that lanes and groups of the witness search are complete.
        let length = self.next_length as u64 - from % self.next_length as u64;
        index(length.min(end.saturating_sub(from)))
    }

    /// Forgets the codes that no stream reads from now on.
    fn forget(&mut self, past: &dyn Sequence) -> Result<()> {
        let horizon = horizon(&self.candidates, &self.witnesses, past.len());
        self.candidates.forget(past, horizon, &mut self.codes)
    }

    /// Learns the lookups of both streams, when due, with all threads. This precedes the block: during a block, a
    /// thread that waits for the pool could start a task that ends only with the block ([`evaluate_and_search`]), and
    /// the block would wait for that thread.
    fn learn_when_due(&mut self) {
        let (candidates, witnesses, codes) = (&mut self.candidates, &mut self.witnesses, &self.codes);
        if candidates.is_learning_due() || witnesses.is_learning_due() {
            rayon::join(|| candidates.learn_when_due(), || witnesses.learn_when_due(codes));
        }
    }

    /// Runs both streams side by side: the next `length` candidates, and the witnesses of the waiting block. Appends
    /// the codes of the candidates to the shared codes.
    fn join_streams(
        &mut self,
        past: &dyn Sequence,
        length: usize,
        limits: BlockLimits,
    ) -> Result<(CandidateBlock, CheckedGroup)> {
        let pipeline = Pipeline::new(&self.codes, &self.values, self.kernel, self.candidates.end() + length as u64);
        let candidates = &mut self.candidates;
        let block = &self.block;
        let threads = limits.threads;
        let witnesses = &mut self.witnesses;
        let (audit, codes) = (self.audit.as_ref(), &self.codes);
        let (next, searched) = rayon::join(
            || {
                let _closing = pipeline.closing();
                candidates.block(length, &pipeline)
            },
            || evaluate_and_search(|| WitnessSearch::prepare(witnesses, block, audit, codes, past), threads, &pipeline),
        );
        let (search, followers) = searched;
        let checked = search?.result()?;
        self.codes.push_in_parallel(&next.0);
        followers.par_iter().try_for_each(|follower| follower.agrees_with(&self.codes))?;
        Ok((next, checked))
    }

    /// Accepts the values of the waiting block before n and then the rare `value` at n, where `rare` is `(n, value)`.
    /// Takes both streams back to n + 1. Returns whether the value has no byte code.
    fn accept_rare(
        &mut self,
        rare: (u64, u16),
        past: &dyn Sequence,
        limits: BlockLimits,
        out: &mut Vec<u16>,
    ) -> Result<bool> {
        let (n, value) = rare;
        let first = out.len();
        out.extend_from_slice(&self.block[..index(n - past.len())]);
        let freed = past.discarded();
        if !freed.is_empty() {
            // The lookups of a new rare position read all values from G(1) on.
            let hole = (freed.start, freed.end);
            return Err(Error::Discarded { from: 0, to: n, hole, heap: Some(n) });
        }
        self.block.clear();
        self.candidates.truncate(n);
        self.codes.truncate(n);
        self.witnesses.truncate(n);
        if value >= self.candidates.space().coded() {
            out.push(value);
            return Ok(true);
        }
        let entered = self.enter_rare(value, &Appended { first: past, more: &out[first..] });
        if entered.is_err() {
            // A bit flip that the check in `enter_rare` finds may have made these values wrong.
            out.truncate(first);
        }
        entered?;
        self.codes.push(&[value]);
        self.witnesses.push(&[value]);
        out.push(value);
        self.next_length = SMALLEST_BLOCK.min(limits.longest);
        Ok(false)
    }

    /// Lets the candidates continue after a rare value, with all that its lookups read. `proved` holds every value
    /// before it.
    ///
    /// # Errors
    /// [`Error::Flipped`] when memory has changed, and any error of reading `proved`. This is checked before the
    /// windows are read again: afterwards both copies of the codes would come from the same, perhaps wrong, values.
    fn enter_rare(&mut self, value: u16, proved: &dyn Sequence) -> Result<()> {
        let holds_all = self.candidates.holds_all() && self.codes.start() == 0;
        if !holds_all {
            self.check_memory(proved)?;
        }
        self.candidates.push_rare(value, proved)?;
        // The lookups of the new rare position read codes that may be forgotten.
        let horizon = horizon(&self.candidates, &self.witnesses, proved.len());
        if self.codes.start() > horizon {
            self.codes = Codes::reading(self.candidates.space(), horizon, proved)?;
        }
        Ok(())
    }

    /// Accepts the waiting block, and lets the candidates `next` wait in its place. Returns whether there are none,
    /// because the next value has no byte code.
    fn accept_block(&mut self, next: CandidateBlock, limits: BlockLimits, out: &mut Vec<u16>) -> bool {
        out.append(&mut self.block);
        let (next, stop) = next;
        let nothing_waits = next.is_empty();
        self.block = next;
        self.next_length =
            (self.next_length * 2).min(limits.longest).min(self.candidates.longest_block(limits.threads));
        stop == Stop::TooWide && nothing_waits
    }
}

/// The first position whose code the streams read from position `start` on.
pub(super) fn horizon(candidates: &CandidateStream, witnesses: &Witnesses, start: u64) -> u64 {
    start.saturating_sub(candidates.codes_to_keep().max(witnesses.lookback()))
}

/// Evaluates far lookups and searches witnesses with all threads, until both are done. Far lookups come first, because
/// the producer needs them at once. So the other threads begin with them while this thread prepares the search.
fn evaluate_and_search<'a>(
    prepare: impl FnOnce() -> Result<WitnessSearch<'a>> + Send,
    threads: Threads,
    pipeline: &Pipeline<'_>,
) -> (Result<WitnessSearch<'a>>, Vec<Follower>) {
    let (search, followers) = (OnceLock::<Result<WitnessSearch<'a>>>::new(), Mutex::new(Vec::new()));
    let is_prepared = AtomicBool::new(false);
    let work = || {
        let mut follower = Follower::default();
        loop {
            let (seen, is_prepared) = (pipeline.changes(), is_prepared.load(Ordering::Acquire));
            let search = search.get();
            let search_next = || matches!(search, Some(Ok(search)) if search.search_next(pipeline));
            if pipeline.evaluate(&mut follower) || search_next() {
                continue;
            }
            if !pipeline.wait(seen) {
                if is_prepared {
                    break;
                }
                // The candidates are complete, and the search is about to begin.
                std::thread::sleep(PREPARATION_POLL);
            }
        }
        lock(&followers).push(follower);
    };
    rayon::scope(|scope| {
        (1..threads.count()).for_each(|_| scope.spawn(|_| work()));
        // The preparation must not wait for tasks of the pool: meanwhile this thread could start `work`, which ends
        // only after the preparation.
        let mut preparation = Preparation { is_over: &is_prepared, pipeline, has_failed: true };
        preparation.has_failed = search.get_or_init(prepare).is_err();
        drop(preparation);
        work();
    });
    let search = search.into_inner().expect("the search is prepared");
    (search, followers.into_inner().unwrap_or_else(|error| error.into_inner()))
}

/// The preparation of a search. When it is over, no thread waits for it any more; if it has failed, also by a panic,
/// the block is discarded.
struct Preparation<'a, 'p> {
    is_over: &'a AtomicBool,
    pipeline: &'a Pipeline<'p>,
    has_failed: bool,
}

impl Drop for Preparation<'_, '_> {
    fn drop(&mut self) {
        if self.has_failed {
            self.pipeline.close();
        }
        self.is_over.store(true, Ordering::Release);
        self.pipeline.wake();
    }
}

/// The search for the witnesses of one block.
struct WitnessSearch<'a> {
    witnesses: &'a Witnesses,
    audit: Option<&'a Audit>,
    /// The codes up to the end of the block.
    codes: &'a Codes,
    /// The values before the block.
    past: &'a dyn Sequence,
    /// The positions of the block.
    range: Range<u64>,
    /// The group that is searched next.
    next: AtomicU64,
    /// Whether no more groups are searched: a rare position was found, or a search failed.
    is_stopped: AtomicBool,
    /// The result of the groups searched so far.
    found: Mutex<Result<CheckedGroup>>,
}

impl<'a> WitnessSearch<'a> {
    /// The search for the witnesses of the values of `block`, which begin where `past` ends.
    ///
    /// # Errors
    /// Those of [`Witnesses::forget`].
    fn prepare(
        witnesses: &'a mut Witnesses,
        block: &[u16],
        audit: Option<&'a Audit>,
        codes: &'a Codes,
        past: &'a dyn Sequence,
    ) -> Result<WitnessSearch<'a>> {
        witnesses.forget(past)?;
        witnesses.push(block);
        let start = past.len();
        // "use-unproved" is a deliberate fault, see fault.rs.
        let end = if fault::is("use-unproved") { start } else { witnesses.end() };
        let range = start..end;
        if !range.is_empty() {
            witnesses.reconsider_when_due(start, codes);
        }
        let next = AtomicU64::new(range.start / GROUP_VALUES);
        let (is_stopped, found) = (AtomicBool::new(false), Mutex::new(Ok(CheckedGroup::default())));
        Ok(WitnessSearch { witnesses, audit, codes, past, range, next, is_stopped, found })
    }

    /// Searches the next group. Returns false if there is none.
    fn search_next(&self, pipeline: &Pipeline<'_>) -> bool {
        if self.is_stopped.load(Ordering::Relaxed) || self.range.is_empty() {
            return false;
        }
        // Groups begin in ascending order, so every group before one with a rare position is searched.
        let first = self.next.fetch_add(1, Ordering::Relaxed) * GROUP_VALUES;
        if first >= self.range.end {
            return false;
        }
        let group = self.check_group(first.max(self.range.start), (first + GROUP_VALUES).min(self.range.end));
        if !group.as_ref().is_ok_and(|group| group.missing.is_none()) {
            self.is_stopped.store(true, Ordering::Relaxed);
            // The candidates after a rare position are discarded.
            pipeline.close();
        }
        let mut found = self.found.lock().unwrap_or_else(|error| error.into_inner());
        match (&mut *found, group) {
            (Ok(found), Ok(group)) => *found = found.and(group),
            (found @ Ok(_), Err(error)) => *found = Err(error),
            (Err(_), _) => {}
        }
        true
    }

    /// Searches witnesses for the values `from..to`, all of one group, and audits them where the audit chooses the
    /// group.
    fn check_group(&self, from: u64, to: u64) -> Result<CheckedGroup> {
        let mut checked = self.witnesses.check_group(self.witnesses.kernel(), from..to, self.codes, self.past)?;
        if let Some(audit) = self.audit
            && checked.missing.is_none()
        {
            checked.audited = audit.check(from..to, self.codes, self.witnesses, self.past)?;
        }
        Ok(checked)
    }

    /// The result of all groups searched.
    fn result(self) -> Result<CheckedGroup> {
        self.found.into_inner().unwrap_or_else(|error| error.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::codes::Codes;
    use crate::solver::engine::Engine;
    use crate::solver::pipeline::BLOCK;
    use crate::solver::pipeline::BlockValues;
    use crate::solver::{Method, Solver, values};
    use crate::theory::sparse_space::SparseSpace;
    use std::sync::mpsc::RecvTimeoutError;

    /// At a rare position that comes late the streams read codes again. A bit flip before it may have made values
    /// wrong, and the position rare.
    #[test]
    fn a_bit_flip_before_a_late_rare_position_is_noticed() {
        let (rule, method) = ("0.6".parse().unwrap(), Method::Sparse(Kernel::best()));
        let known = values(&rule, method, 100_000).unwrap();
        let limits = BlockLimits { end: u64::MAX, longest: BLOCK, threads: Threads::ONE };
        let accept = |flip: fn(&mut Streams)| {
            let mut solver = Solver::new(&rule, method, None, &known).unwrap();
            let (mut past, mut out) = (known.clone(), Vec::new());
            solver.advance(&known, u64::MAX, &mut past).unwrap();
            let Engine::Sparse(streams) = &mut solver.engine else { panic!("the game has a space") };
            assert!(!streams.candidates.holds_all() && streams.block.len() > 2);
            // As if the search had found a rare value in the block that waits.
            streams.witnesses.push(&streams.block);
            flip(streams);
            let n = past.len() + streams.block.len() / 2;
            let accepted = streams.accept_rare((n as u64, 1), &past, limits, &mut out);
            (accepted, out.len(), n + 1 - past.len())
        };

        let (accepted, count, expected) = accept(|_| ());
        assert!(accepted.is_ok() && count == expected, "{accepted:?}, {count}");
        let flips: [fn(&mut Streams); 3] = [
            |streams| streams.candidates.flip_code(12_345, 64, streams.block.len()),
            |streams| streams.candidates.flip_value(12_345, 1, streams.block.len()),
            |streams| {
                let at = streams.codes.at(90_000);
                streams.codes.items_mut()[at] ^= 2;
            },
        ];
        for (i, flip) in flips.into_iter().enumerate() {
            let (accepted, count, _) = accept(flip);
            assert!(matches!(accepted, Err(Error::Flipped { .. })), "flip {i}: {accepted:?}");
            assert_eq!(count, 0, "values that may be wrong after flip {i}");
        }
    }

    /// A search that cannot be prepared ends the block for all threads, whether by an error or by a panic.
    #[test]
    fn no_thread_waits_for_a_search_that_failed_before_it_began() {
        // On a thread of its own: a thread that waits would wait forever.
        let (send, ended) = std::sync::mpsc::channel();
        let tests = std::thread::spawn(move || {
            let failed = outcome_of(|| Err(Error::Flipped { what: "the value", from: 0, to: 1 }));
            assert!(matches!(failed, (Err(Error::Flipped { .. }), false)));
            let panicked = std::panic::catch_unwind(|| outcome_of(|| panic!("a defect")));
            assert!(panicked.is_err());
            send.send(()).unwrap();
        });
        if ended.recv_timeout(Duration::from_secs(60)) != Err(RecvTimeoutError::Timeout) {
            return tests.join().unwrap();
        }
        panic!("a thread waits for the search");
    }

    /// The outcome of a block whose search for witnesses is prepared by `prepare`, and whether its pipeline is open
    /// afterwards.
    fn outcome_of(prepare: fn() -> Result<WitnessSearch<'static>>) -> (Result<()>, bool) {
        let (codes, memory) = (Codes::new(SparseSpace::NONE, 0), BlockValues::default());
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
        let pipeline = Pipeline::new(&codes, &memory, Kernel::best(), BLOCK as u64);
        let outcome = pool.install(|| {
            let _closing = pipeline.closing();
            let threads = Threads::of_pool();
            evaluate_and_search(prepare, threads, &pipeline).0.map(drop)
        });
        (outcome, pipeline.is_open())
    }
}

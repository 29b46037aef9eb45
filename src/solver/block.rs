//! One block through both streams.
//!
//! [`Streams::step`] computes the candidates of one block and, side by side, searches the witnesses of the block
//! before. When every value of the earlier block has its witnesses, the block is accepted, and the candidates wait for
//! the next step. When a value turns out to be rare, the values before it and the rare value are accepted. The streams
//! then continue after it, and everything that was computed beyond it is discarded.
//!
//! Invariant: all values that `step` appends are proved; both streams and the codes end at the same position after each
//! new rare position.

use super::audit::Audit;
use super::candidates::{CandidateStream, Stop};
use super::codes::Codes;
use super::parallelism::{MarkingThread, Threads};
use super::pipeline::{MarkWorker, MarkedAhead, Producer, pipeline};
use super::witnesses::{CheckedGroup, GROUP_VALUES, Witnesses};
use super::{SparseSpace, Work};
use crate::error::{Error, Result};
use crate::fault;
use crate::kernel::Kernel;
use crate::theory::definition::{Appended, Sequence};
use crate::theory::nimber::index;
use crate::theory::rule::Rule;
use rayon::prelude::*;
use std::collections::VecDeque;

/// Number of values in the block after a new rare position.
const SMALLEST_BLOCK: usize = 64;

/// Maximum number of values in a block: a multiple of the lanes of a kernel and of the groups of the witness search.
/// The threads meet after each block, so a smaller number costs time. `sequence` of `cargo bench` (benches/sequence.rs)
/// measures its effect.
pub(super) const BLOCK: usize = 1 << 17;

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

#[cfg(test)]
impl BlockLimits {
    /// Blocks up to position `end`, with all threads of the pool.
    pub(super) fn up_to(end: u64) -> BlockLimits {
        BlockLimits { end, longest: BLOCK, threads: super::Parallelism::of_pool().in_pool() }
    }
}

/// The two streams, and the data that they share.
pub(super) struct Streams {
    pub(super) kernel: Kernel,
    pub(super) candidates: CandidateStream,
    pub(super) witnesses: Witnesses,
    /// The last codes, up to the end of `block`.
    pub(super) codes: Codes,
    /// Pieces marked ahead for the next block.
    ahead: VecDeque<MarkedAhead>,
    audit: Option<Audit>,
    /// Candidates that wait for their witnesses, from the first unproved position on.
    pub(super) block: Vec<u16>,
    /// Length of the next block.
    next_length: usize,
    /// Whether the next value has no byte code, or the last value has none.
    needs_wide: bool,
}

#[cfg(test)]
impl Streams {
    /// Whether pieces were marked ahead of time for the next block.
    pub(super) fn has_marks(&self) -> bool {
        !self.ahead.is_empty()
    }
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
            ahead: VecDeque::new(),
            audit: None,
            block: Vec::new(),
            next_length: SMALLEST_BLOCK,
            needs_wide: false,
        }
    }

    /// Whether the streams cannot continue, because a value has no byte code. Every value before it was returned.
    pub(super) fn needs_wide(&self) -> bool {
        self.needs_wide
    }

    /// Compares the data of both streams with its state at creation. `past` holds all proved values.
    pub(super) fn check_memory<S: Sequence + ?Sized>(&self, past: &S) -> Result<()> {
        self.candidates.check_memory(&self.codes, past)?;
        self.witnesses.check_memory(&self.codes, past)
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
    /// values proved to `out`.
    pub(super) fn step<S: Sequence + ?Sized>(
        &mut self,
        past: &S,
        limits: BlockLimits,
        work: &mut Work,
        out: &mut Vec<u16>,
    ) -> Result<()> {
        let length = self.schedule(limits.end);
        self.forget(past.len())?;
        let (next, checked) = self.join_streams(past, length, limits)?;
        work.exhaustive_searches += checked.exhaustive_searches;
        work.depth = work.depth.max(checked.depth);
        let before = out.len();
        let accepted = match checked.missing {
            Some(rare) => self.accept_rare(rare, past, limits, out),
            None => {
                self.accept_block(next, limits, out);
                Ok(())
            }
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
    fn forget(&mut self, start: u64) -> Result<()> {
        let horizon = start.saturating_sub(self.candidates.reach().max(self.witnesses.lookback()));
        self.candidates.forget(start, horizon, &mut self.codes)
    }

    /// Runs both streams side by side: the next `length` candidates, and the witnesses of the waiting block. Appends
    /// the codes of the candidates to the shared codes.
    fn join_streams<S: Sequence + ?Sized>(
        &mut self,
        past: &S,
        length: usize,
        limits: BlockLimits,
    ) -> Result<(CandidateBlock, CheckedGroup)> {
        let ahead = std::mem::take(&mut self.ahead);
        let (mut producer, worker) = pipeline(&self.codes, self.kernel, self.candidates.plan(), limits, ahead);
        let candidates = &mut self.candidates;
        let block = &self.block;
        let search = WitnessSearch {
            witnesses: &mut self.witnesses,
            audit: self.audit.as_ref(),
            codes: &self.codes,
            past,
            threads: limits.threads,
        };
        let ((next, rest), checked) = rayon::join(
            || {
                let next = next_candidates(candidates, length, &mut producer);
                (next, producer.close())
            },
            || search.run(block, worker),
        );
        let (checked, recent) = checked?;
        self.codes.append(&recent)?;
        self.ahead = rest.into_waiting();
        Ok((next, checked))
    }

    /// Accepts the values of the waiting block before n and then the rare `value` at n, where `rare` is `(n, value)`.
    /// Takes both streams back to n + 1.
    fn accept_rare<S: Sequence + ?Sized>(
        &mut self,
        rare: (u64, u16),
        past: &S,
        limits: BlockLimits,
        out: &mut Vec<u16>,
    ) -> Result<()> {
        let (n, value) = rare;
        let first = out.len();
        out.extend_from_slice(&self.block[..index(n - past.len())]);
        let freed = past.discarded();
        if !freed.is_empty() {
            // The lookups of a new rare position read all values from G(1) on.
            let hole = (freed.start, freed.end);
            return Err(Error::Discarded { from: 0, to: n, hole, heap: Some(n) });
        }
        if value >= self.candidates.space().coded() {
            out.push(value);
            self.needs_wide = true;
            return Ok(());
        }
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
        self.next_length = SMALLEST_BLOCK.min(limits.longest);
        Ok(())
    }

    /// Accepts the waiting block, and lets the candidates `next` wait in its place.
    fn accept_block(&mut self, next: CandidateBlock, limits: BlockLimits, out: &mut Vec<u16>) {
        out.append(&mut self.block);
        let (next, stop) = next;
        let nothing_waits = next.is_empty();
        self.block = next;
        self.next_length = (self.next_length * 2).min(limits.longest).min(self.candidates.longest_block());
        self.needs_wide = stop == Stop::TooWide && nothing_waits;
    }
}

/// The next `length` candidates, which the stream also sends to the other end of the pipeline.
fn next_candidates(candidates: &mut CandidateStream, length: usize, producer: &mut Producer) -> CandidateBlock {
    if length == 0 { (Vec::new(), Stop::Done) } else { candidates.block(length, producer) }
}

/// The search for the witnesses of one block.
struct WitnessSearch<'a, S: ?Sized> {
    witnesses: &'a mut Witnesses,
    audit: Option<&'a Audit>,
    /// The codes up to the end of the block.
    codes: &'a Codes,
    /// The values before the block.
    past: &'a S,
    threads: Threads,
}

impl<S: Sequence + ?Sized> WitnessSearch<'_, S> {
    /// Searches the witnesses of `block`, which follows `past`, and marks lookups for the producer until it has sent
    /// the next block. Also returns the worker's copy of the last codes, which ends with those of the next block.
    fn run(mut self, block: &[u16], mut worker: MarkWorker) -> Result<(CheckedGroup, Codes)> {
        self.witnesses.forget(self.past)?;
        self.witnesses.push(block);
        if self.threads.marking() == MarkingThread::Dedicated && worker.marks() {
            let (checked, recent) = rayon::join(|| self.check(None), || worker.finish());
            return Ok((checked?, recent));
        }
        let checked = self.check(Some(&mut worker))?;
        Ok((checked, worker.finish()))
    }

    /// Searches witnesses for the values after `past`, and audits some of the witnessed groups. If there is a `worker`,
    /// it marks lookups for the producer between the searches.
    fn check(&mut self, mut worker: Option<&mut MarkWorker>) -> Result<CheckedGroup> {
        /// Number of groups per thread between two calls of [`MarkWorker::serve`], before `factor` multiplies it.
        const GROUPS: u64 = 2;
        let start = self.past.len();
        let end = self.witnesses.end();
        let mut checked = CheckedGroup::default();
        // "use-unproved" is a deliberate fault, see fault.rs.
        if start == end || fault::is("use-unproved") {
            return Ok(checked);
        }
        self.witnesses.prepare(start, self.codes);
        let search = &*self;
        let mut from = start;
        while from < end && checked.missing.is_none() {
            // Serve less often when there is nothing to mark. The threads still meet now and then, because the work
            // after a new rare position is discarded.
            let factor = match worker.as_mut().map(|worker| (worker.serve(), worker.marks())) {
                Some((true, true)) => 1,
                Some((true, false)) => 2,
                Some((false, _)) => 16,
                None => 4,
            };
            let groups = factor * GROUPS * search.threads.count() as u64;
            let to = (from / GROUP_VALUES).saturating_add(groups).saturating_mul(GROUP_VALUES).min(end);
            let groups: Vec<u64> = (from / GROUP_VALUES..to.div_ceil(GROUP_VALUES)).collect();
            let found = groups
                .into_par_iter()
                .with_max_len(1) // so that the thread that completes the candidates finds groups left to search
                .map(|group| {
                    let first = from.max(group * GROUP_VALUES);
                    search.check_group(first, to.min((group + 1) * GROUP_VALUES))
                })
                .try_reduce(CheckedGroup::default, |a, b| Ok(a.and(b)))?;
            checked = checked.and(found);
            from = to;
        }
        Ok(checked)
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
}

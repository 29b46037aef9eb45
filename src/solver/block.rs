//! One block through both streams.

use super::audit::{self, Audit};
use super::candidates::{Stop, Stream};
use super::codes::Codes;
use super::pipeline::{MarkWorker, MarkedAhead, pipeline};
use super::witnesses::{self, Witnesses};
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
pub(super) const SMALLEST_BLOCK: usize = 64;

/// Maximum number of values in a block: a multiple of the lanes of a kernel and of the groups of the witness search.
/// The threads meet after each block, so a smaller number costs time. `sequence` of `cargo bench` (benches/sequence.rs)
/// measures its effect.
pub const BLOCK: usize = 1 << 17;

pub(super) struct Streams {
    pub(super) kernel: Kernel,
    pub(super) candidates: Stream,
    pub(super) witnesses: Witnesses,
    /// The last codes, up to the end of `block`.
    pub(super) codes: Codes,
    /// Pieces marked ahead for the next block.
    pub(super) ahead: VecDeque<MarkedAhead>,
    pub(super) audit: Option<Audit>,
    /// Candidates that wait for their witnesses, from the first unproved position on.
    pub(super) block: Vec<u16>,
    /// Length of the next block.
    pub(super) next_length: usize,
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
    pub(super) fn prepare_audit(&mut self, rule: &Rule, space: SparseSpace, seed: Option<u64>) {
        let rares = self.candidates.rares();
        if let Some(seed) = seed.filter(|_| self.audit.as_ref().is_none_or(|audit| audit.rares() != rares.len())) {
            self.audit = Some(Audit::new(rule, space, audit::other_than(self.kernel), seed, rares));
        }
    }

    /// Computes the candidates of one block and searches the witnesses of the block before, side by side. Appends the
    /// values proved to `out`.
    pub(super) fn step<S: Sequence + ?Sized>(
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

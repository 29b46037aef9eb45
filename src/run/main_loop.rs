//! The main loop of a run: computes a block, checks, commits.

use super::commit_clock::CommitClock;
use super::observer::{Observer, Outcome, Progress, ProofSummary};
use super::options::{Options, RunPolicy};
use super::spot_checks::SpotChecks;
use crate::checkpoint::commit::{Batch, has_discardable};
use crate::checkpoint::journal::{Check, Checks};
use crate::checkpoint::summary::RecordStats;
use crate::checkpoint::writer::Writer;
use crate::error::{Error, KeepReason, Result};
use crate::solver::ends::LOOKBACKS_RETAINED;
use crate::solver::{self, Solver, SparseSpace, Strategy};
use crate::storage::Dir;
use crate::table::digest::{DigestChain, SEGMENT};
use crate::theory::definition::{self, Appended, Sequence};
use crate::theory::rule::Rule;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// An open run: the solver, the writer, and the values between them.
pub(super) struct OpenRun {
    pub(super) dir: Dir,
    pub(super) rule: Rule,
    pub(super) writer: Writer,
    pub(super) solver: Solver,
    /// Proved values that the writer does not have yet.
    pub(super) pending: Vec<u16>,
    /// Digest of all values, updated when each was computed.
    pub(super) computed_digest: DigestChain,
    /// The largest value so far, and its position.
    pub(super) largest: RecordStats,
    /// The same without the values of `pending`.
    pub(super) largest_before: RecordStats,
    pub(super) spot_checks: SpotChecks,
    pub(super) memory_checks: u64,
    /// The n of the first value above 65535, when the computation has reached it.
    pub(super) too_large: Option<u64>,
    /// `checks` of the record that this process started from.
    pub(super) checks_before: Checks,
    pub(super) from: u64,
    /// The last strategy of which the observer received a note.
    pub(super) noted: Option<Strategy>,
}

impl OpenRun {
    /// Computes values, checks them and commits them, until there are `options.to` of them or the stop flag is set.
    pub(super) fn go_on(
        mut self,
        options: &Options,
        policy: RunPolicy,
        observer: &mut (dyn Observer + Send),
        stop: &AtomicBool,
    ) -> Result<Outcome> {
        let to = options.to.unwrap_or(u64::MAX);
        let mut clock = CommitClock::new();
        let mut block = Vec::new();
        loop {
            self.writer.poll()?;
            let count = self.count();
            observer.advanced(&self.progress());
            let stopping = stop.load(Ordering::Relaxed);
            let is_last = count >= to || stopping;
            if is_last || self.is_commit_due(policy, &clock) {
                self.check()?;
                self.commit()?;
                if policy.commit_every.is_some() {
                    self.writer.wait()?;
                }
                clock.commit_handed_over(Instant::now());
                if is_last {
                    return self.finish(observer, stopping && count < to);
                }
                self.note_strategy(observer);
                if let Err(error) = self.check_keep() {
                    self.writer.close()?;
                    return Err(error);
                }
            }
            let computed = self.compute_block(to.min(next_boundary(count, policy)), &mut block, observer);
            clock.block_computed(Instant::now());
            if let Err(error) = computed {
                return self.end_after(error);
            }
        }
    }

    /// Whether a commit is due before the next block: at the end of a segment, and as the policy or the clock states.
    fn is_commit_due(&self, policy: RunPolicy, clock: &CommitClock) -> bool {
        let is_at = |every: u64| self.count().is_multiple_of(every) && !self.pending.is_empty();
        is_at(SEGMENT)
            || match policy.commit_every {
                Some(every) => is_at(every),
                None => clock.is_due(Instant::now()) && !self.writer.is_busy(),
            }
    }

    /// Computes the next block, to at most `end` values. An error can come after some values. `block` is a buffer for
    /// reuse.
    fn compute_block(&mut self, end: u64, block: &mut Vec<u16>, observer: &mut (dyn Observer + Send)) -> Result<()> {
        let count = self.count();
        let given = Appended { first: self.writer.published(), more: self.writer.in_flight() };
        let past = Appended { first: &given, more: &self.pending };
        let advanced = self.solver.advance(&past, end, block);
        // The hash must precede the next block, during which the solver drops its own copy of some of these values.
        self.computed_digest.update_in_parallel(block);
        self.largest.see_largest(count, block);
        let (rares, last_rare) = self.solver.count_rare_positions(count + block.len() as u64);
        let depth = self.solver.take_depth();
        observer.proved(count, block, &ProofSummary { space: self.solver.space(), rares, last_rare, depth });
        self.pending.append(block);
        advanced
    }

    /// Ends the run after its last commit.
    fn finish(mut self, observer: &mut (dyn Observer + Send), stopped: bool) -> Result<Outcome> {
        self.writer.wait()?;
        let progress = self.progress();
        observer.advanced(&progress);
        let computed = progress.count - self.from;
        self.writer.close()?;
        Ok(Outcome { rule: self.rule, progress, computed, stopped })
    }

    /// Ends the run after an error of the solver. Commits the values before it, unless a check failed: then they may be
    /// wrong too.
    pub(super) fn end_after(mut self, error: Error) -> Result<Outcome> {
        if error.is_failed_check() {
            return Err(error);
        }
        self.check()?;
        self.confirm_too_large(&error)?;
        self.commit()?;
        let error = self.explain(error);
        self.writer.close()?;
        Err(error)
    }

    /// Confirms a value above 65535 by exhaustive search before a record states it, unless values that the search needs
    /// are discarded: then no record states it.
    ///
    /// # Errors
    /// [`Error::Differs`] if the value is not above 65535.
    fn confirm_too_large(&mut self, error: &Error) -> Result<()> {
        let &Error::ValueTooLarge { n } = error else { return Ok(()) };
        let given = Appended { first: self.writer.published(), more: self.writer.in_flight() };
        let past = Appended { first: &given, more: &self.pending };
        match definition::value_at(&self.rule, &past, n) {
            Err(Error::ValueTooLarge { .. }) => {
                self.too_large = Some(n);
                self.spot_checks.confirm(n);
            }
            Err(Error::Discarded { .. }) => {}
            Err(other) => return Err(other),
            Ok(again) => {
                let (value, how) = (1 << 16, "the definition".into());
                return Err(Error::Differs { n, value, again: again.into(), how });
            }
        }
        Ok(())
    }

    /// Checks the memory of the solver and the largest value, and computes due spot checks, so that a commit contains
    /// no value that was computed from changed memory.
    pub(super) fn check(&mut self) -> Result<()> {
        let given = Appended { first: self.writer.published(), more: self.writer.in_flight() };
        let past = Appended { first: &given, more: &self.pending };
        self.solver.check_memory(&past)?;
        let mut largest = self.largest_before;
        largest.see_largest(given.len(), &self.pending);
        if largest != self.largest {
            return Err(Error::Flipped { what: "the largest value", from: 0, to: past.len() });
        }
        self.memory_checks += 1;
        // Without a space every position counts as rare.
        let has_space = self.solver.space() != SparseSpace::NONE;
        self.spot_checks.look(
            &self.rule,
            &past,
            if has_space { self.solver.count_rare_positions(past.len()).1 } else { 0 },
        )
    }

    /// Number of proved values.
    fn count(&self) -> u64 {
        self.writer.published().len() + self.writer.in_flight().len() as u64 + self.pending.len() as u64
    }

    fn progress(&self) -> Progress {
        let count = self.count();
        let (rares, last_rare) = self.solver.count_rare_positions(count);
        Progress {
            count,
            committed: self.writer.published().len(),
            rares,
            last_rare,
            max_value: self.largest.max_value,
            max_at: self.largest.max_at,
        }
    }

    /// Tells the observer how the next values are computed, if that has changed.
    fn note_strategy(&mut self, observer: &mut (dyn Observer + Send)) {
        let strategy = self.solver.strategy();
        if self.noted.as_ref().is_none_or(|noted| !noted.is_same(&strategy)) {
            observer.note(&format!("from n = {} on: {strategy}", self.count()));
            self.noted = Some(strategy);
        }
    }

    /// Ends a run whose lookback exceeds `--keep`, before it discards values that it needs.
    fn check_keep(&self) -> Result<()> {
        let Some(keep) = self.writer.keep() else { return Ok(()) };
        let lookback = self.solver.lookback();
        let why = match lookback {
            Some(needed) if needed > keep => {
                KeepReason::Lookback { last_rare: self.solver.count_rare_positions(self.count()).1, needed }
            }
            None if has_discardable(self.writer.published(), Some(keep)) => KeepReason::StillDefinition,
            _ => return Ok(()),
        };
        let needed = lookback.map(|values| values.saturating_mul(LOOKBACKS_RETAINED));
        Err(Error::Keep { path: self.dir.path().into(), keep, needed, why })
    }

    /// Replaces an error about discarded values by one that says why they are needed and which `--keep` suffices.
    fn explain(&self, error: Error) -> Error {
        match (error, self.writer.keep()) {
            (Error::Discarded { hole, heap: Some(n), .. }, Some(keep)) => Error::Keep {
                path: self.dir.path().into(),
                keep,
                needed: Some(solver::lookback(&self.rule, n)),
                why: KeepReason::AllValues { n, hole },
            },
            (error, _) => error,
        }
    }

    /// Hands the proved values to the writer.
    pub(super) fn commit(&mut self) -> Result<()> {
        let (rares, last_rare) = self.solver.count_rare_positions(self.count());
        let work = self.solver.work();
        let mut checks = self.checks_before.clone();
        for (check, number) in [
            (Check::Witnessed, work.witnessed),
            (Check::Definition, work.defined),
            (Check::ExhaustiveSearches, work.exhaustive_searches),
            (Check::Audited, work.audited),
            (Check::ProvedMaxima, work.proved_maxima),
            (Check::SpotChecks, self.spot_checks.done()),
            (Check::Memory, self.memory_checks),
        ] {
            checks.add(check, number);
        }
        self.largest_before = self.largest;
        let batch = Batch {
            values: Arc::new(std::mem::replace(&mut self.pending, self.writer.take_spare())),
            computed_digest: self.computed_digest.digest(),
            counted: RecordStats { rares, last_rare, ..self.largest },
            too_large: self.too_large,
            strategy: self.solver.strategy(),
            checks,
            suspect: self.spot_checks.suspect(),
            lookback: self.solver.lookback(),
        };
        self.writer.wait()?;
        if let Some(end) = batch.discards_before(self.writer.published(), self.writer.keep()) {
            // The discard summary lists the rare positions of one space, that of the batch.
            self.solver.fix_space();
            self.solver.prepare_discard(end);
        }
        self.writer.commit(batch)
    }
}

/// The least number of values above `count` at which a block ends, because a commit is due there.
fn next_boundary(count: u64, policy: RunPolicy) -> u64 {
    let after = |every: u64| (count / every + 1).saturating_mul(every);
    after(SEGMENT).min(after(policy.commit_every.unwrap_or(SEGMENT)))
}

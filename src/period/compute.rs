//! Computes a sequence in a run directory until its period is proved.
//!
//! The first search is at 2^20 values, or at the length of the table if that is greater. The next ones are at the
//! lengths of a search in memory ([`super::memory_search`]), until the run discards values.
//!
//! Invariant: every value of a run directory that a search reads was computed by this process, or hashed by it and
//! compared with the journal, before the search read it. [`Run`] does so when it resumes; values that are searched
//! without resuming the run are verified first.

use super::certificate::may_certify;
use super::facts::CertifiedFacts;
use super::memory_search::next_look;
use super::preperiod::WindowProof;
use super::primes::prime_factors;
use super::retrace::DiscardingRun;
use super::search::last_difference;
use super::watch::Watch;
use super::waypoints::{Recorder, STRIDE, Waypoints};
use super::{Finding, OffsetCopies, Repeat, Status, Subject};
use crate::checkpoint::commit::RETAINED_HEAD;
use crate::error::{Error, Result};
use crate::run::{Observer, Opening, Options, Progress, ProofSummary, Run, RunReader};
use crate::solver::ends::LOOKBACKS_RETAINED;
use crate::solver::{self, SequenceStats, SparseSpace};
use crate::theory::definition::{Prefix, Sequence};
use crate::theory::rule::Rule;
use crate::verify;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Number of values at which a run directory is first searched.
const FIRST_LOOK_ON_DISK: u64 = 1 << 20;

/// Maximum time that a later step of a search re-hashes the table without notifying the observer.
const QUIET_REHASH: Duration = Duration::from_secs(2);

/// Note before all values are computed again.
const ALL_AGAIN: &str =
    "the exact preperiod depends on freed values: computing the sequence twice again, one period apart";

/// The stage in which a search of a run directory was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stopped {
    /// Values were being computed; more of them may show or prove a period.
    Searching,
    /// The period was proved; the least preperiod, or the facts of a certificate, were being computed.
    Preperiod,
}

/// The result of a search of a run directory.
#[derive(Debug)]
pub enum Found {
    /// The run was searched.
    Searched {
        /// The run.
        view: Box<RunReader>,
        /// The result of the search of its values.
        finding: Box<Finding>,
        /// The stage in which the stop flag ended the search; `None` when the search is complete.
        stopped: Option<Stopped>,
    },
    /// The stop flag was set before all stored values had been verified; nothing was searched.
    Unverified {
        /// Number of values that agree with the journal.
        verified: u64,
        /// Number of values to verify.
        of: u64,
    },
}

/// Passes the events of all runs of a search to one observer, and watches the values for a period.
struct Watching<'a> {
    inner: &'a mut (dyn Observer + Send),
    watch: Watch,
    /// Saves waypoints of a run that discards values.
    recorder: Option<Recorder>,
    dir: &'a Path,
    /// Maximum number of values of the whole search; each [`Run`] covers a part of it.
    to: Option<u64>,
    /// Stops the run; set when `outer` is set, and when the watch has found a period.
    stop: &'a AtomicBool,
    /// The stop flag of the caller.
    outer: &'a AtomicBool,
    /// Number of first values that this process has verified or computed; all, once a run has started.
    verified: u64,
    /// Number of values verified, and number of values to verify, as of the last event.
    rehashed: (u64, u64),
    /// End of the previous run of this search; `None` during the first.
    previous_run_ended: Option<Instant>,
    /// Whether the observer shows the search, rather than a re-hash.
    shows_search: bool,
    /// Whether the values of the game end: the next one exceeds 65535, or not all moves of its heap are listed.
    has_ended: bool,
}

impl Observer for Watching<'_> {
    fn opened(&mut self, opening: &Opening<'_>) {
        self.forget(opening.rule);
        if self.previous_run_ended.is_none() {
            let needed = opening.needed.filter(|_| self.to == opening.to);
            self.inner.opened(&Opening { to: self.to, needed, ..*opening });
        }
    }

    fn started(&mut self, rule: &Rule, from: u64, _: Option<u64>) {
        self.verified = u64::MAX;
        self.forget(rule);
        // The run has just re-hashed these values, so the watch may read them. It starts from the saved state, not
        // from what it saw before a failed check.
        let view = match RunReader::open(self.dir) {
            Ok(view) => Some(view),
            Err(error) => {
                // A new run has no record yet.
                if from > 0 {
                    self.warn(&format!("no waypoints are saved, and the watch for the period begins again: {error}"));
                }
                None
            }
        };
        let waypoints = view.as_ref().filter(|view| view.contents.last.keep.is_some());
        self.recorder = waypoints.map(|view| Recorder::new(Waypoints::of(self.dir, &view.contents.last.run), STRIDE));
        let resumed = view.map(|view| Watch::resume(rule, self.dir, &view)).transpose().unwrap_or_else(|error| {
            self.warn(&format!("the watch for the period begins again: {error}"));
            None
        });
        if let Some(resumed) = resumed.filter(|_| from > 0) {
            self.watch = resumed;
        }
        if !std::mem::replace(&mut self.shows_search, true) {
            self.inner.started(rule, from, self.to);
        }
    }

    fn rehashed(&mut self, count: u64, of: u64) {
        self.rehashed = (count, of);
        if self.previous_run_ended.is_none_or(|ended| ended.elapsed() > QUIET_REHASH) {
            self.shows_search = false;
            self.inner.rehashed(count, of);
        }
        self.stop.fetch_or(self.outer.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    fn advanced(&mut self, progress: &Progress) {
        self.inner.advanced(progress);
        let saved = self.recorder.as_mut().map(|recorder| recorder.committed(progress.committed));
        if let Some(Err(error)) = saved {
            self.recorder = None;
            self.warn(&format!("no more waypoints are saved, so the preperiod will take longer: {error}"));
        }
        let done = self.outer.load(Ordering::Relaxed) || self.watch.found.is_some();
        self.stop.fetch_or(done, Ordering::Relaxed);
    }

    fn recomputed(&mut self, done: u64, of: u64) {
        self.inner.recomputed(done, of);
    }

    fn proved(&mut self, from: u64, values: &[u16], proof: &ProofSummary) {
        self.watch.see(from, values, proof);
        if proof.space == SparseSpace::NONE {
            return;
        }
        let width = solver::lookback(&self.watch.rule, proof.last_rare).saturating_mul(LOOKBACKS_RETAINED);
        if let Some(recorder) = &mut self.recorder {
            recorder.see(from, values, width);
        }
    }

    fn note(&mut self, text: &str) {
        self.inner.note(text);
    }

    fn warn(&mut self, text: &str) {
        self.inner.warn(text);
    }
}

impl<'a> Watching<'a> {
    /// What passes events to `inner`; it sets `stop` when `outer` is set, and when a period is found.
    fn new(
        search: &RunSearch<'a>,
        inner: &'a mut (dyn Observer + Send),
        stop: &'a AtomicBool,
        outer: &'a AtomicBool,
    ) -> Watching<'a> {
        Watching {
            inner,
            watch: Watch::new(search.rule),
            recorder: None,
            dir: search.dir,
            to: search.options.to,
            stop,
            outer,
            verified: 0,
            rehashed: (0, 0),
            previous_run_ended: None,
            shows_search: false,
            has_ended: false,
        }
    }

    /// Forgets what the values of an earlier attempt showed. After a failed check the run is opened again, without the
    /// values after its last commit: a period that they showed must neither stop the search nor be its result.
    fn forget(&mut self, rule: &Rule) {
        self.watch = Watch::new(rule);
        self.stop.store(self.outer.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Computes up to `goal` values, or those that there are, and opens the run; `None` when the stop flag was set
    /// before all stored values were verified.
    fn compute(&mut self, rule: &Rule, options: &Options, goal: u64) -> Result<Option<RunReader>> {
        self.stop.store(false, Ordering::Relaxed);
        let options = Options { to: Some(goal), ..options.clone() };
        let dir = self.dir;
        let stop = self.stop;
        let stopped = match Run::builder(rule, dir).options(options).observer(self).stop(stop).run() {
            Err(end @ (Error::ValueTooLarge { .. } | Error::Unlisted { .. })) => {
                self.has_ended = true;
                self.inner.note(&end.to_string());
                false
            }
            outcome => outcome?.stopped,
        };
        self.previous_run_ended = Some(Instant::now());
        if stopped && self.verified == 0 {
            return Ok(None);
        }
        let view = RunReader::open(self.dir)?;
        if stopped && self.verified < view.len() {
            return Ok(None); // another process has written more values
        }
        view.check_suspect()?;
        Ok(Some(view))
    }

    /// Verifies all stored values and opens the run; `None` when the stop flag was set before the end.
    fn verify(&mut self) -> Result<Option<RunReader>> {
        let verified = verify::verified(self.dir, |done, of| {
            self.rehashed(done, of);
            !self.outer.load(Ordering::Relaxed)
        })?;
        self.verified = verified.as_ref().map_or(self.verified, |view| view.len());
        Ok(verified)
    }
}

/// A search for the period of a game in a run directory, which is created or resumed.
///
/// ```
/// use grundy::period::{Found, RunSearch, Status};
/// use grundy::run::Options;
/// use std::sync::atomic::AtomicBool;
///
/// # let home = tempfile::tempdir()?;
/// # let dir = &home.path().join("kayles");
/// let kayles = "kayles".parse()?;
/// let options = Options { to: Some(5000), threads: 1, ..Options::default() };
/// let search = RunSearch { rule: &kayles, dir, options: &options, certify: false };
/// let found = search.compute_until_proved(&mut (), &AtomicBool::new(false))?;
/// let Found::Searched { finding, .. } = found else { panic!("nothing stopped the search") };
/// assert_eq!((finding.status(), finding.repeat.expect("Kayles is periodic").period), (Status::Proved, 12));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RunSearch<'a> {
    /// The rule of the game.
    pub rule: &'a Rule,
    /// The run directory.
    pub dir: &'a Path,
    /// The options of the run; `to` is the maximum number of values.
    pub options: &'a Options,
    /// Whether the facts that a certificate states about discarded values are computed as well.
    pub certify: bool,
}

impl RunSearch<'_> {
    /// Computes values until the period is proved, there are `options.to` of them, or the values of the game end.
    ///
    /// While all values are retained, the period is searched for after each doubling. A run that discards values is
    /// watched instead (`period::watch`): the watch finds the period when the remembered window recurs. The preperiod
    /// depends on discarded values, so these are computed again (`period::preperiod`): a part of them if the run has
    /// waypoints, otherwise all. When `stop` ends that computation, or it needs more values than it retains,
    /// the preperiod is only bounded.
    ///
    /// When a proof is complete before `stop` ends the search, the result equals that of a search that was not stopped.
    ///
    /// # Errors
    /// Errors of [`Run::run`], [`verify::verified`] and [`super::Subject::find`].
    pub fn compute_until_proved(&self, observer: &mut (dyn Observer + Send), stop: &AtomicBool) -> Result<Found> {
        let to = self.options.to.unwrap_or(u64::MAX);
        let mut goal = FIRST_LOOK_ON_DISK.min(to);
        // A table that is already longer than the first goal is searched before any value is computed.
        let there = RunReader::open(self.dir)
            .map_or(0, |view| if view.rule.name() == self.rule.name() { view.len() } else { 0 });
        let ended = AtomicBool::new(false);
        let mut watching = Watching::new(self, observer, &ended, stop);
        watching.rehashed = (0, there);
        loop {
            let opened = match (goal > there).then_some(goal) {
                Some(goal) => watching.compute(self.rule, self.options, goal),
                None => match watching.verify() {
                    // An interrupted run, which is resumed first.
                    Err(Error::Damage { damage, .. }) if damage.is_interruption() => {
                        watching.compute(self.rule, self.options, there)
                    }
                    opened => opened,
                },
            };
            let Some(view) = opened? else {
                let (verified, of) = watching.rehashed;
                return Ok(Found::Unverified { verified, of });
            };
            let stopped = stop.load(Ordering::Relaxed);
            let mut finding = Box::new(self.search(&view, &mut watching, stopped)?);
            let stopped = self.complete(&view, &mut finding, &mut watching, stopped)?;
            let is_whole = finding.count >= to || watching.has_ended;
            if finding.status() == Status::Proved || stopped.is_some() || is_whole {
                return Ok(Found::Searched { view: Box::new(view), finding, stopped });
            }
            // Beyond the head that is always retained, a run that discards values continues in one piece, under one
            // watch.
            let frees = view.contents.last.keep.is_some() && finding.count >= RETAINED_HEAD;
            goal = if frees { to } else { next_look(self.rule, &finding).min(to) };
        }
    }

    /// Searches the values of the run, and takes the period that the watch has found when they do not prove one.
    fn search(&self, view: &RunReader, watching: &mut Watching<'_>, stopped: bool) -> Result<Finding> {
        let freed = view.discarded_stats()?;
        let subject =
            Subject { rule: self.rule, method: self.options.method, space: view.space(), values: view, freed: &freed };
        let mut finding = subject.find()?;
        // What the watch has found counts whether or not it can be saved.
        if (stopped || watching.watch.found.is_some())
            && let Err(error) = watching.watch.write_down(self.dir, view)
        {
            watching.warn(&format!("the state of the watch for the period is not saved: {error}"));
        }
        if finding.status() != Status::Proved {
            // The watch sees values before they are committed.
            let is_committed = |found: &Repeat| found.proof.as_ref().is_some_and(|proof| proof.length <= view.len());
            finding.repeat = watching.watch.found.take().filter(is_committed).or(finding.repeat);
        }
        Ok(finding)
    }

    /// Computes what a proved period lacks besides the proof. Returns the stage in which the search was stopped.
    fn complete(
        &self,
        view: &RunReader,
        finding: &mut Finding,
        watching: &mut Watching<'_>,
        stopped: bool,
    ) -> Result<Option<Stopped>> {
        let stopped = stopped && finding.count < self.options.to.unwrap_or(u64::MAX);
        if finding.status() != Status::Proved {
            return Ok(stopped.then_some(Stopped::Searching));
        }
        let exact = finding.repeat.as_ref().is_some_and(|repeat| repeat.exact);
        if exact && (!self.certify || view.discarded().is_empty()) {
            return Ok(None);
        }
        let is_complete = !stopped && self.compute_again(view, finding, watching)?;
        Ok((!is_complete).then_some(Stopped::Preperiod))
    }

    /// Computes values again to find the least preperiod of a period proved by P4, and the facts of a certificate, when
    /// earlier values are discarded. After another proof it computes nothing, and the preperiod stays a bound. Returns
    /// false when the stop flag ended the computation.
    fn compute_again(&self, view: &RunReader, finding: &mut Finding, watching: &mut Watching<'_>) -> Result<bool> {
        let Some(repeat) = finding.repeat.as_mut() else { return Ok(true) };
        let Some(proof) = &mut repeat.proof else { return Ok(true) };
        let Some(window) = proof.window else { return Ok(true) };
        let observer = &mut *watching.inner;
        let stop = watching.outer;
        let RunSearch { rule, options: Options { method, .. }, .. } = *self;
        let proved = WindowProof { rule, method: *method, period: repeat.period, proof, window };
        let go_on = |observer: &mut (dyn Observer + Send), done, of| {
            observer.recomputed(done, of);
            !stop.load(Ordering::Relaxed)
        };
        let copies = match self.by_waypoints(&proved, view, |done, of| go_on(observer, done, of)) {
            Ok(ByWaypoints::Found(copies)) => Ok(Some(*copies)),
            Ok(ByWaypoints::Stopped) => Ok(None),
            Err(error @ Error::OtherDigest { .. }) => Err(error),
            insufficient => {
                if let Err(error) = insufficient {
                    observer.warn(&format!("the waypoints do not show the preperiod: {error}"));
                }
                observer.note(ALL_AGAIN);
                by_copies(&proved, view, |done, of| go_on(observer, done, of))
            }
        };
        match copies {
            Ok(None) => return Ok(false),
            Ok(Some(copies)) => {
                (repeat.preperiod, repeat.exact) = (copies.preperiod, true);
                *proof = copies.proof.clone();
                finding.copies = Some(copies);
            }
            Err(e @ (Error::Discarded { .. } | Error::Memory { .. })) => {
                observer.note(&format!("the preperiod is only bounded: {e}"))
            }
            Err(e) => return Err(e),
        }
        Ok(true)
    }

    /// What the waypoints of a run show about a period. `go_on` receives the number of values done and an estimate of
    /// those to do.
    ///
    /// # Errors
    /// Errors of the solver and of reading the run; [`Error::Differs`], [`Error::OptionsDiffer`] and [`Error::Flipped`]
    /// when the values contradict the waypoints, the proof, or the first values of the run.
    fn by_waypoints(
        &self,
        proved: &WindowProof<'_>,
        view: &RunReader,
        mut go_on: impl FnMut(u64, u64) -> bool,
    ) -> Result<ByWaypoints> {
        let RunSearch { rule, options: Options { method, .. }, .. } = *self;
        let (window, length) = (proved.window, proved.proof.length);
        let waypoints = &Waypoints::of(self.dir, &view.contents.last.run);
        let positions = &waypoints.positions(window.width(rule))[..];
        let hole = view.discarded();
        if positions.is_empty() || window.last_rare >= hole.start || length <= hole.end {
            return Ok(ByWaypoints::Insufficient);
        }
        let Some(digest) = view.digest_before(length)? else { return Ok(ByWaypoints::Insufficient) };
        let freed = &view.discarded_stats()?;
        let stats = SequenceStats::of(&Prefix { of: view, count: length }, window.space, freed)?;
        let counted = CertifiedFacts::new(digest, stats);
        let run = DiscardingRun {
            rule,
            method: *method,
            space: window.space,
            values: view,
            freed,
            waypoints,
            positions,
            points: &view.contents.points,
        };
        // In half strides: one for each step of the binary search and each witness of the least period, six for each of
        // the two copies.
        let steps = u64::from(positions.len().ilog2()) + 1;
        let halves = steps + prime_factors(proved.period).len() as u64 + 2 * 6;
        let of = halves * (STRIDE / 2);
        let found = proved.by_waypoints(&run, counted, |done| go_on(done.min(of), of))?;
        let Some(copies) = found else { return Ok(ByWaypoints::Stopped) };
        if self.certify && !may_certify(rule, copies.preperiod, &window) {
            return Ok(ByWaypoints::Insufficient);
        }
        confirm_preperiod(&copies, proved.period, view)?;
        Ok(ByWaypoints::Found(Box::new(copies)))
    }
}

/// What the waypoints of a run show about a period.
enum ByWaypoints {
    /// The waypoints do not suffice: there are none, a rare position or the proof lies at or beyond the discarded
    /// values, the journal lacks a digest, or a certificate cannot state the window.
    Insufficient,
    /// The stop flag ended the computation.
    Stopped,
    Found(Box<OffsetCopies>),
}

/// What two copies of the sequence show about a period; `None` when `go_on` ended the computation.
///
/// # Errors
/// Errors of [`WindowProof::offset_copies`]; [`Error::OtherDigest`] and [`Error::Flipped`] when the copies contradict
/// the run.
fn by_copies(
    proved: &WindowProof<'_>,
    view: &RunReader,
    go_on: impl FnMut(u64, u64) -> bool,
) -> Result<Option<OffsetCopies>> {
    let Some(copies) = proved.offset_copies(go_on)? else { return Ok(None) };
    confirm_digest(&copies, view)?;
    confirm_preperiod(&copies, proved.period, view)?;
    Ok(Some(copies))
}

/// Compares the digest of the values that the proof uses, as copies counted it, with that of the run, if the journal
/// gives it.
///
/// # Errors
/// [`Error::OtherDigest`] when they disagree, and errors of reading the run.
fn confirm_digest(copies: &OffsetCopies, view: &RunReader) -> Result<()> {
    let to = copies.proof.length;
    match view.digest_before(to)? {
        Some(digest) if digest.to_string() != copies.counted.digest => Err(Error::OtherDigest { from: 0, to }),
        _ => Ok(()),
    }
}

/// Compares the preperiod that copies show with the values before those that the run has discarded, if there are enough
/// of them: the last difference between two that are a period apart.
///
/// # Errors
/// [`Error::Flipped`] when they disagree, and errors of reading the run.
fn confirm_preperiod(copies: &OffsetCopies, period: u64, view: &RunReader) -> Result<()> {
    let hole = view.discarded();
    let first = if hole.is_empty() { view.len() } else { hole.start };
    let (from, to) = (copies.preperiod.saturating_sub(1), first.saturating_sub(period));
    if from < to && last_difference(view, period, from, to)? != copies.preperiod.checked_sub(1) {
        return Err(Error::Flipped { what: "a copy of the sequence", from, to });
    }
    Ok(())
}

#[cfg(test)]
mod tests;

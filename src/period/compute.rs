//! Computing a sequence until its period is proved.
//!
//! In doublings: at each length the period is looked for ([`super::Subject::find`]). When one is observed, the next length
//! is the one that a proof needs, if that is nearer than the double. In memory, two bytes a value, or in a run directory.
//!
//! Invariant: every value of a run directory that a search reads was computed, or hashed and compared with the journal, by
//! this process before it was read. The engine does so when it resumes a run; values that are searched without resuming
//! it are verified first.

use super::preperiod::lag;
use super::watch::Watch;
use super::{Finding, Status, Subject};
use crate::checkpoint::commit::RETAINED_HEAD;
use crate::error::{Error, Result};
use crate::run::{self, Observer, Options, Progress, ProofSummary, RunReader};
use crate::solver::{Method, SequenceStats, Solver, SparseSpace};
use crate::theory::definition::Sequence;
use crate::theory::rule::Rule;
use crate::verify;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A sequence computed in memory until its period was proved, or `to` values were there.
#[derive(Debug)]
pub struct Search {
    /// G(0), G(1), …
    pub values: Vec<u16>,
    /// Of these.
    pub finding: Finding,
    /// The sparse space in use at the end.
    pub space: SparseSpace,
    /// Whether `go_on` ended it.
    pub stopped: bool,
}

/// The first length at which a period is looked for.
const FIRST_LOOK: u64 = 1 << 10;

/// The length at which to look again: twice as many values, or as many as a proof of what is observed needs.
fn next_look(rule: &Rule, finding: &Finding) -> u64 {
    let doubled = finding.count.saturating_mul(2).max(FIRST_LOOK);
    finding.needed(rule).filter(|&n| n > finding.count).map_or(doubled, |needed| needed.min(doubled))
}

/// Computes a sequence in doublings and looks for its period each time, until it is proved or there are as many values as
/// `limit` says, which sees what was found last and the space in use; `go_on` sees the number of values now and then.
///
/// # Errors
/// [`Error::ValueTooLarge`], and [`Error::Memory`] when there is not enough for two bytes a value.
pub fn compute_until_proved(
    rule: &Rule,
    method: Method,
    mut limit: impl FnMut(Option<&Finding>, SparseSpace) -> u64,
    mut go_on: impl FnMut(u64) -> bool,
) -> Result<Search> {
    let mut values: Vec<u16> = Vec::new();
    let mut solver = Solver::new(rule, method, None, values.as_slice())?;
    let mut fresh = Vec::new();
    let mut goal = FIRST_LOOK.min(limit(None, solver.space()));
    loop {
        let mut going = true;
        while (values.len() as u64) < goal && going {
            fresh.clear();
            solver.advance(values.as_slice(), goal, &mut fresh)?;
            values.try_reserve(fresh.len()).map_err(|_| Error::Memory { what: "the sequence", bytes: 2 * goal })?;
            values.extend_from_slice(&fresh);
            going = go_on(values.len() as u64);
        }
        let space = solver.space();
        let subject = Subject { rule, method, space, values: values.as_slice(), freed: &SequenceStats::default() };
        let finding = subject.find()?;
        let limit = limit(Some(&finding), space);
        if !going || finding.status() == Status::Proved || finding.count >= limit {
            return Ok(Search { values, finding, space, stopped: !going });
        }
        goal = next_look(rule, &finding).min(limit);
    }
}

/// The first length at which a run directory is looked at.
const FIRST_LOOK_ON_DISK: u64 = 1 << 20;

/// Maximum time that a later step of a search re-hashes the table before the observer hears of it.
const QUIET_REHASH: Duration = Duration::from_secs(2);

/// What stopped a search of a run directory early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Between two values: more of them may show a period, or prove one.
    Searching,
    /// After the period was proved, while the least preperiod, or what a certificate states, was computed.
    Preperiod,
}

/// What came of a search of a run directory.
#[derive(Debug)]
pub enum Found {
    /// The run was searched.
    Searched {
        /// The run.
        view: Box<RunReader>,
        /// What its values show.
        finding: Box<Finding>,
        /// What was left undone when the stop flag ended the search.
        stopped: Option<Stopped>,
    },
    /// The stop flag was set before all values that were there had been verified; nothing was searched.
    Unverified {
        /// Values that agree with the journal.
        verified: u64,
        /// Values to verify.
        of: u64,
    },
}

/// Passes the events of all runs of a search on to one observer, and watches for a period meanwhile.
struct Watching<'a> {
    inner: &'a mut (dyn Observer + Send),
    watch: Watch,
    dir: &'a Path,
    /// How far the whole search goes; each run of the engine covers a part of it.
    to: Option<u64>,
    /// Ends the engine's run; set when the outer flag is, and when a period is found.
    stop: &'a AtomicBool,
    outer: &'a AtomicBool,
    /// Whether this process has verified all values that were there.
    is_verified: bool,
    /// Values verified, and values to verify, when the observer heard of it last.
    rehashed: (u64, u64),
    /// When the current run of the engine began; `None` in the first.
    again: Option<Instant>,
    /// Whether the observer shows the search, not a re-hash.
    shows_search: bool,
}

impl Observer for Watching<'_> {
    fn started(&mut self, rule: &Rule, from: u64, _: Option<u64>) {
        self.is_verified = true;
        // Only now: these values have just been re-hashed. A run that was opened again after a failed check forgets what
        // was seen before.
        let resumed = RunReader::open(self.dir).and_then(|view| Watch::resume(rule, self.dir, &view));
        self.watch = resumed.ok().filter(|_| from > 0).unwrap_or_else(|| Watch::new(rule));
        if !std::mem::replace(&mut self.shows_search, true) {
            self.inner.started(rule, from, self.to);
        }
    }

    fn rehashed(&mut self, count: u64, of: u64) {
        self.rehashed = (count, of);
        if self.again.is_none_or(|begun| begun.elapsed() > QUIET_REHASH) {
            self.shows_search = false;
            self.inner.rehashed(count, of);
        }
        self.stop.fetch_or(self.outer.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    fn advanced(&mut self, progress: &Progress) {
        self.inner.advanced(progress);
        let done = self.outer.load(Ordering::Relaxed) || self.watch.found.is_some();
        self.stop.fetch_or(done, Ordering::Relaxed);
    }

    fn again(&mut self, done: u64, of: u64) {
        self.inner.again(done, of);
    }

    fn proved(&mut self, from: u64, values: &[u16], proof: &ProofSummary) {
        self.watch.see(from, values, proof);
    }

    fn note(&mut self, text: &str) {
        self.inner.note(text);
    }
}

impl Watching<'_> {
    /// Computes up to `goal` and opens the run; `None` when the stop flag was set before all was verified.
    fn compute(&mut self, rule: &Rule, options: &Options, goal: u64) -> Result<Option<RunReader>> {
        self.stop.store(false, Ordering::Relaxed);
        let options = Options { to: Some(goal), ..options.clone() };
        let (dir, stop) = (self.dir, self.stop);
        let stopped = run::run(Some(rule), dir, &options, self, stop)?.stopped;
        self.again = Some(Instant::now());
        if stopped && !self.is_verified {
            return Ok(None);
        }
        let view = RunReader::open(self.dir)?;
        view.check_suspect()?;
        Ok(Some(view))
    }

    /// Verifies all that is there and opens it; `None` when the stop flag was set meanwhile.
    fn verify(&mut self) -> Result<Option<RunReader>> {
        verify::verified(self.dir, |done, of| {
            self.rehashed(done, of);
            !self.outer.load(Ordering::Relaxed)
        })
    }
}

/// Finds the least preperiod of what is proved by windows, and what a certificate says, while values before are freed; false
/// when `stop` ended it.
fn compute_again(
    rule: &Rule,
    method: Method,
    finding: &mut Finding,
    observer: &mut (dyn Observer + Send),
    stop: &AtomicBool,
) -> Result<bool> {
    let Some(repeat) = finding.repeat.as_mut() else { return Ok(true) };
    let Some(proof) = &mut repeat.proof else { return Ok(true) };
    let Some(window) = proof.window else { return Ok(true) };
    observer.note("computing all values again, as two copies side by side, to learn what freed values would show");
    let lag = lag(rule, method, repeat.period, proof, &window, |done, of| {
        observer.again(done, of);
        !stop.load(Ordering::Relaxed)
    });
    match lag {
        Ok(None) => return Ok(false),
        Ok(Some(lag)) => {
            (repeat.preperiod, repeat.exact) = (lag.preperiod, true);
            *proof = lag.proof.clone();
            finding.lag = Some(lag);
        }
        Err(e @ Error::Freed { .. }) => observer.note(&format!("the preperiod is only bounded: {e}")),
        Err(e) => return Err(e),
    }
    Ok(true)
}

/// [`compute_until_proved`] in a run directory, which is made, or resumed; at most to `options.to` values.
///
/// While all values are kept the period is looked for at each doubling. A run that frees values is watched ([`super::watch`]):
/// its period shows when it comes round. The preperiod, which freed values would tell, is then found by computing them
/// again ([`super::preperiod`]), as is what a certificate says of them, if one is wanted; when `stop` ends that, or it needs more
/// than it may keep, the preperiod is only bounded.
///
/// When a proof is complete before `stop` ends the search, the answer is that of a search that was not stopped.
///
/// # Errors
/// What [`run::run`], [`verify::verified`] and the search give.
pub fn compute_until_proved_in(
    rule: &Rule,
    dir: &Path,
    options: &Options,
    certify: bool,
    observer: &mut (dyn Observer + Send),
    stop: &AtomicBool,
) -> Result<Found> {
    let to = options.to.unwrap_or(u64::MAX);
    let mut goal = FIRST_LOOK_ON_DISK.min(to);
    // What is there is looked at first.
    let there = RunReader::open(dir).map_or(0, |view| if view.rule.name() == rule.name() { view.len() } else { 0 });
    let ended = AtomicBool::new(false);
    let mut watching = Watching {
        inner: observer,
        watch: Watch::new(rule),
        dir,
        to: options.to,
        stop: &ended,
        outer: stop,
        is_verified: false,
        rehashed: (0, there),
        again: None,
        shows_search: false,
    };
    loop {
        let opened = if goal > there { watching.compute(rule, options, goal)? } else { watching.verify()? };
        let Some(view) = opened else {
            let (verified, of) = watching.rehashed;
            return Ok(Found::Unverified { verified, of });
        };
        let stopped = stop.load(Ordering::Relaxed);
        let (space, freed) = (view.space(), view.freed_known()?);
        let subject = Subject { rule, method: options.method, space, values: &view, freed: &freed };
        let mut finding = Box::new(subject.find()?);
        let watch = &mut watching.watch;
        if stopped || watch.found.is_some() {
            watch.write_down(dir, &view)?;
        }
        if finding.status() != Status::Proved && watch.found.is_some() {
            finding.repeat = watch.found.take();
        }
        let mut stopped = stopped.then_some(Stopped::Searching).filter(|_| finding.count < to);
        let is_proved = finding.status() == Status::Proved;
        if is_proved {
            let exact = finding.repeat.as_ref().is_some_and(|repeat| repeat.exact);
            let is_done = (exact && (!certify || view.freed().is_empty()))
                || (stopped.is_none() && compute_again(rule, options.method, &mut finding, watching.inner, stop)?);
            stopped = (!is_done).then_some(Stopped::Preperiod);
        }
        if is_proved || stopped.is_some() || finding.count >= to {
            return Ok(Found::Searched { view: Box::new(view), finding, stopped });
        }
        // Beyond what is always kept a run that frees values goes on in one piece, which can be watched.
        let frees = view.contents.last.keep.is_some() && finding.count >= RETAINED_HEAD;
        goal = if frees { to } else { next_look(rule, &finding).min(to) };
    }
}

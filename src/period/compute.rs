//! Computes a sequence in a run directory until its period is proved.
//!
//! The first search is at 2^20 values, or at the length of the table if that is greater. The next ones are at the
//! lengths of a search in memory ([`super::memory_search`]), until the run discards values.
//!
//! Invariant: every value of a run directory that a search reads was computed by this process, or hashed by it and
//! compared with the journal, before the search read it. [`Run`](crate::run::Run) does so when it resumes; values
//! that are searched without resuming the run are verified first.

use super::certificate::may_certify;
use super::facts::CertifiedFacts;
use super::memory_search::next_look;
use super::preperiod::WindowProof;
use super::primes::prime_factors;
use super::retrace::DiscardingRun;
use super::search::last_difference;
use super::session::{RunSettings, Session};
use super::waypoints::{STRIDE, Waypoints};
use super::{Finding, OffsetCopies, Repeat, Status, Subject};
use crate::checkpoint::commit::RETAINED_HEAD;
use crate::error::{Error, Result};
use crate::run::{Observer, Options, RunReader};
use crate::solver::SequenceStats;
use crate::theory::definition::{Prefix, Sequence};
use crate::theory::rule::Rule;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of values at which a run directory is first searched.
const FIRST_LOOK_ON_DISK: u64 = 1 << 20;

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
    /// Errors of [`Run::run`](crate::run::Run::run), [`verify::verified`](crate::verify::verified) and
    /// [`super::Subject::find`].
    pub fn compute_until_proved(&self, observer: &mut (dyn Observer + Send), stop: &AtomicBool) -> Result<Found> {
        let to = self.options.to.unwrap_or(u64::MAX);
        let mut goal = FIRST_LOOK_ON_DISK.min(to);
        // A table that is already longer than the first goal is searched before any value is computed.
        let there = RunReader::open(self.dir)
            .map_or(0, |view| if view.rule.name() == self.rule.name() { view.len() } else { 0 });
        let ended = AtomicBool::new(false);
        let RunSearch { rule, dir, options, .. } = *self;
        let mut session = Session::new(RunSettings { rule, dir, options }, observer, &ended, stop);
        loop {
            let opened = match (goal > there).then_some(goal) {
                Some(goal) => session.compute(goal),
                None => match session.verify() {
                    // An interrupted run, which is resumed first.
                    Err(Error::Damage { damage, .. }) if damage.is_interruption() => session.compute(there),
                    opened => opened,
                },
            };
            let Some(view) = opened? else {
                let (verified, of) = session.last_rehashed();
                return Ok(Found::Unverified { verified, of: of.max(there) });
            };
            let stopped = stop.load(Ordering::Relaxed);
            let mut finding = Box::new(self.search(&view, &mut session, stopped)?);
            let stopped = self.complete(&view, &mut finding, &mut session, stopped)?;
            let is_whole = finding.count >= to || session.has_ended();
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
    fn search(&self, view: &RunReader, session: &mut Session<'_>, stopped: bool) -> Result<Finding> {
        let freed = view.discarded_stats()?;
        let subject =
            Subject { rule: self.rule, method: self.options.method, space: view.space(), values: view, freed: &freed };
        let mut finding = subject.find()?;
        // What the watch has found counts whether or not it can be saved.
        let watch = session.watch();
        if (stopped || watch.found.is_some())
            && let Err(error) = watch.write_down(self.dir, view)
        {
            session.warn(&format!("the state of the watch for the period is not saved: {error}"));
        }
        if finding.status() != Status::Proved {
            // The watch sees values before they are committed.
            let is_committed = |found: &Repeat| found.proof.as_ref().is_some_and(|proof| proof.length <= view.len());
            finding.repeat = session.watch().found.take().filter(is_committed).or(finding.repeat);
        }
        Ok(finding)
    }

    /// Computes what a proved period lacks besides the proof. Returns the stage in which the search was stopped.
    fn complete(
        &self,
        view: &RunReader,
        finding: &mut Finding,
        session: &mut Session<'_>,
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
        let is_complete = !stopped && self.compute_again(view, finding, session)?;
        Ok((!is_complete).then_some(Stopped::Preperiod))
    }

    /// Computes values again to find the least preperiod of a period proved by P4, and the facts of a certificate, when
    /// earlier values are discarded. After another proof it computes nothing, and the preperiod stays a bound. Returns
    /// false when the stop flag ended the computation.
    fn compute_again(&self, view: &RunReader, finding: &mut Finding, session: &mut Session<'_>) -> Result<bool> {
        let Some(repeat) = finding.repeat.as_mut() else { return Ok(true) };
        let Some(proof) = &mut repeat.proof else { return Ok(true) };
        let Some(window) = proof.window else { return Ok(true) };
        let (observer, stop) = session.caller();
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

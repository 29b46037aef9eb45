//! Computing a sequence until its period is proved.
//!
//! In doublings: at each length the period is looked for ([`super::Subject::find`]). When one is observed, the next length
//! is the one that a proof needs, if that is nearer than the double. In memory, two bytes a value, or in a run directory.

use super::lag::lag;
use super::watch::Watch;
use super::{Finding, Status, Subject};
use crate::definition::Sequence;
use crate::engine::{self, Observer, Options, Progress, Settled, View};
use crate::error::{Error, Result};
use crate::ledger::HEAD;
use crate::rule::Rule;
use crate::sparse::{Known, Method, Solver, Space};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// A sequence computed in memory until its period was proved, or `to` values were there.
#[derive(Debug)]
pub struct Hunt {
    /// G(0), G(1), …
    pub values: Vec<u16>,
    /// Of these.
    pub finding: Finding,
    /// The sparse space in use at the end.
    pub space: Space,
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
pub fn hunt(
    rule: &Rule,
    method: Method,
    mut limit: impl FnMut(Option<&Finding>, Space) -> u64,
    mut go_on: impl FnMut(u64) -> bool,
) -> Result<Hunt> {
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
        let subject = Subject { rule, method, space, values: values.as_slice(), freed: &Known::default() };
        let finding = subject.find()?;
        let limit = limit(Some(&finding), space);
        if !going || finding.status() == Status::Proved || finding.count >= limit {
            return Ok(Hunt { values, finding, space, stopped: !going });
        }
        goal = next_look(rule, &finding).min(limit);
    }
}

/// The first length at which a run directory is looked at.
const FIRST_LOOK_ON_DISK: u64 = 1 << 20;

/// Passes on what an observer is told, and watches for a period meanwhile.
struct Watching<'a> {
    inner: &'a mut (dyn Observer + Send),
    watch: Watch,
    /// Ends the run; set when the outer flag is, and when a period is found.
    stop: &'a AtomicBool,
    outer: &'a AtomicBool,
}

impl Observer for Watching<'_> {
    fn started(&mut self, rule: &Rule, from: u64, to: Option<u64>) {
        self.inner.started(rule, from, to);
    }

    fn rehashed(&mut self, count: u64, of: u64) {
        self.inner.rehashed(count, of);
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

    fn proved(&mut self, from: u64, values: &[u16], settled: &Settled) {
        self.watch.see(from, values, settled);
    }

    fn note(&mut self, text: &str) {
        self.inner.note(text);
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
    observer.note("computing all again, two copies side by side, for what freed values would tell");
    let lag = lag(rule, method, repeat.period, proof, &window, |done, of| {
        observer.again(done, of);
        !stop.load(Ordering::Relaxed)
    });
    match lag {
        Ok(None) => return Ok(false),
        Ok(Some(lag)) => {
            (repeat.preperiod, repeat.exact) = (lag.preperiod, true);
            proof.least.clone_from(&lag.least);
            finding.lag = Some(lag);
        }
        Err(e @ Error::Freed { .. }) => observer.note(&format!("the preperiod is only bounded: {e}")),
        Err(e) => return Err(e),
    }
    Ok(true)
}

/// [`hunt`] in a run directory, which is made, or resumed; at most to `options.to` values. The answer is the run and what
/// was found, and whether `stop` ended it.
///
/// While all values are kept the period is looked for at each doubling. A run that frees values is watched ([`super::watch`]):
/// its period shows when it comes round. The preperiod, which freed values would tell, is then found by computing them
/// again ([`super::lag`]), as is what a certificate says of them, if one is wanted; when `stop` ends that, or it needs more
/// than it may keep, the preperiod is only bounded.
///
/// # Errors
/// What [`engine::run`] and the search give.
pub fn hunt_in(
    rule: &Rule,
    dir: &Path,
    options: &Options,
    certify: bool,
    observer: &mut (dyn Observer + Send),
    stop: &AtomicBool,
) -> Result<(View, Finding, bool)> {
    let to = options.to.unwrap_or(u64::MAX);
    let mut goal = FIRST_LOOK_ON_DISK.min(to);
    // What is there is looked at first.
    let there = View::open(dir).map_or(0, |view| if view.rule.name() == rule.name() { view.len() } else { 0 });
    loop {
        let (mut watch, mut stopped) = (Watch::new(rule), false);
        if goal > there {
            let ended = AtomicBool::new(false);
            // A run that cannot be read now is told of, or mended, by the engine.
            if let Ok(resumed) = View::open(dir).and_then(|view| Watch::resume(rule, dir, &view)) {
                watch = resumed;
            }
            let mut watching = Watching { inner: observer, watch, stop: &ended, outer: stop };
            let options = Options { to: Some(goal), ..options.clone() };
            stopped =
                engine::run(Some(rule), dir, &options, &mut watching, &ended)?.stopped && stop.load(Ordering::Relaxed);
            watch = watching.watch;
        }
        let view = View::open(dir)?;
        view.check_suspect()?;
        let (space, freed) = (view.space(), view.freed_known()?);
        let mut finding = Subject { rule, method: options.method, space, values: &view, freed: &freed }.find()?;
        if stopped || watch.found.is_some() {
            watch.write_down(dir, &view)?;
        }
        if finding.status() != Status::Proved && watch.found.is_some() {
            finding.repeat = watch.found;
        }
        if !stopped && finding.status() == Status::Proved {
            let exact = finding.repeat.as_ref().is_some_and(|repeat| repeat.exact);
            let again = !exact || (certify && !view.freed().is_empty());
            let stopped = again && !compute_again(rule, options.method, &mut finding, observer, stop)?;
            return Ok((view, finding, stopped));
        }
        if stopped || finding.count >= to {
            return Ok((view, finding, stopped));
        }
        // Beyond what is always kept a run that frees values goes on in one piece, which can be watched.
        let frees = view.contents.last.keep.is_some() && finding.count >= HEAD;
        goal = if frees { to } else { next_look(rule, &finding).min(to) };
    }
}

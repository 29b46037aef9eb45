//! Computing a sequence until its period is proved.
//!
//! In doublings: at each length the period is looked for ([`super::Subject::find`]). When one is observed, the next length
//! is the one that a proof needs, if that is nearer than the double. In memory, two bytes a value, or in a run directory.

use super::{Finding, Status, Subject};
use crate::engine::{self, Observer, Options, View};
use crate::error::{Error, Result};
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

/// [`hunt`] in a run directory, which is made, or resumed; at most to `options.to` values. The answer is the run and what
/// was found of all that is there, and whether `stop` ended it.
///
/// # Errors
/// What [`engine::run`] and the search give.
pub fn hunt_in(
    rule: &Rule,
    dir: &Path,
    options: &Options,
    observer: &mut (dyn Observer + Send),
    stop: &AtomicBool,
) -> Result<(View, Finding, bool)> {
    let to = options.to.unwrap_or(u64::MAX);
    let mut goal = FIRST_LOOK_ON_DISK.min(to);
    loop {
        let outcome = engine::run(Some(rule), dir, &Options { to: Some(goal), ..options.clone() }, observer, stop)?;
        let view = View::open(dir)?;
        let (space, freed) = (view.space(), view.freed_known()?);
        let finding = Subject { rule, method: options.method, space, values: &view, freed: &freed }.find()?;
        let stopped = outcome.stopped || stop.load(Ordering::Relaxed);
        if stopped || finding.status() == Status::Proved || finding.count >= to {
            return Ok((view, finding, stopped));
        }
        goal = next_look(rule, &finding).min(to);
    }
}

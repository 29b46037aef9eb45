//! Computes values again that a run has discarded, each from the nearest waypoint before it.
//!
//! Invariant: each discarded value is computed by a solver, which proves it, from the values before it. These begin
//! with the first values of the run, which its journal covers, and a waypoint, which contains its own hash. Where the
//! computation passes another waypoint, the values must be those of that waypoint. Before values are returned, the
//! memory of the solver is compared with its state at creation.

use super::preperiod::Copy;
use super::waypoints::Waypoints;
use crate::error::{Error, Result};
use crate::solver::{Method, SequenceStats, SparseSpace};
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::rule::Rule;
use std::ops::Range;

/// A run that has discarded values.
pub(super) struct DiscardingRun<'a, S: ?Sized> {
    pub(super) rule: &'a Rule,
    /// The method that computes values again.
    pub(super) method: Method,
    /// The sparse space of the run.
    pub(super) space: SparseSpace,
    /// The values of the run.
    pub(super) values: &'a S,
    /// Statistics of the discarded values.
    pub(super) freed: &'a SequenceStats,
    pub(super) waypoints: &'a Waypoints,
    /// The n of the valid waypoints, ascending.
    pub(super) positions: &'a [u64],
}

impl<S: Sequence + ?Sized> DiscardingRun<'_, S> {
    /// A copy that continues from the last waypoint up to n, or from the first values of the run.
    fn copy_before(&self, n: u64) -> Result<Copy> {
        let head = self.values.discarded().start;
        let mut first = vec![0; index(head)];
        self.values.read(0, &mut first)?;
        let earlier = self.positions.iter().rev().filter(|&&waypoint| head < waypoint && waypoint <= n);
        let waypoint = earlier.copied().find_map(|n| self.waypoints.read(n).map(|last| (n - last.len() as u64, last)));
        let (from, window) = waypoint.unwrap_or((head, Vec::new()));
        let mut rare_positions = self.freed.rare_positions.clone();
        rare_positions.retain(|(n, _)| (head..from).contains(n));
        let known = SequenceStats { rare_positions, ..self.freed.clone() };
        Copy::resuming(self.rule, self.method, self.space, (first, from, window), &known)
    }

    /// The first waypoint after n.
    fn waypoint_after(&self, n: u64) -> Option<u64> {
        self.positions.get(self.positions.partition_point(|&waypoint| waypoint <= n)).copied()
    }

    /// The `count` values before waypoint n, as saved.
    ///
    /// # Errors
    /// Errors of reading the run, [`Error::Discarded`] among them, if the file has gone.
    pub(super) fn saved(&self, n: u64, count: u64) -> Result<Vec<u16>> {
        let mut last = self.waypoints.read(n).unwrap_or_default();
        match last.len().checked_sub(index(count)) {
            Some(before) => drop(last.drain(..before)),
            None => {
                last.resize(index(count), 0);
                self.values.read(n - count, &mut last)?;
            }
        }
        Ok(last)
    }

    /// Compares the last values of a copy with the waypoint at its end, if there is one.
    fn check(&self, copy: &Copy) -> Result<()> {
        let n = copy.len();
        let Some(saved) = self.positions.binary_search(&n).ok().and_then(|_| self.waypoints.read(n)) else {
            return Ok(());
        };
        let from = (n - saved.len() as u64).max(copy.values.discarded().end);
        let mut computed = vec![0; index(n - from)];
        copy.values.read(from, &mut computed)?;
        let saved = &saved[saved.len() - computed.len()..];
        match computed.iter().zip(saved).position(|(a, b)| a != b) {
            None => Ok(()),
            Some(i) => {
                let (value, again) = (computed[i].into(), saved[i].into());
                Err(Error::Differs { n: from + i as u64, value, again, how: format!("the file waypoint-{n}.bin") })
            }
        }
    }
}

/// Computes values of a run, roughly in ascending order.
pub(super) struct Retrace<'a, S: ?Sized> {
    run: &'a DiscardingRun<'a, S>,
    copy: Option<Copy>,
}

impl<'a, S: Sequence + ?Sized> Retrace<'a, S> {
    pub(super) fn new(run: &'a DiscardingRun<'a, S>) -> Retrace<'a, S> {
        Retrace { run, copy: None }
    }

    /// The values of `range`, computed from the values before them if the run has discarded some. `go_on` receives the
    /// number of values computed since the last call; the result is `None` when it returned false.
    ///
    /// # Errors
    /// Errors of the solver and of reading the run; [`Error::Differs`] when a waypoint has other values;
    /// [`Error::Flipped`] when the memory of the solver has changed.
    pub(super) fn values(
        &mut self,
        range: Range<u64>,
        go_on: &mut impl FnMut(u64) -> bool,
    ) -> Result<Option<Vec<u16>>> {
        let mut values = vec![0; index(range.end - range.start)];
        let hole = self.run.values.discarded();
        if range.end <= hole.start || range.start >= hole.end {
            self.run.values.read(range.start, &mut values)?;
            return Ok(Some(values));
        }
        let (run, length) = (self.run, values.len() as u64);
        let mut copy = match self.copy.take().filter(|copy| self.is_near(copy, &range)) {
            Some(copy) => copy,
            None => run.copy_before(range.start)?,
        };
        while copy.len() < range.end {
            let to = run.waypoint_after(copy.len()).map_or(range.end, |waypoint| waypoint.min(range.end));
            let from = copy.advance(to, length)?;
            if !go_on(copy.len() - from) {
                return Ok(None);
            }
            run.check(&copy)?;
        }
        copy.check_memory()?;
        copy.values.read(range.start, &mut values)?;
        self.copy = Some(copy);
        Ok(Some(values))
    }

    /// Whether a copy has retained the first values of `range`, or will compute them before it reaches a later
    /// waypoint.
    fn is_near(&self, copy: &Copy, range: &Range<u64>) -> bool {
        let waypoint = self.run.waypoint_after(copy.len());
        range.start >= copy.values.discarded().end && waypoint.is_none_or(|waypoint| waypoint > range.start)
    }
}

//! Computes values again that a run has discarded, each from the nearest waypoint before it.
//!
//! Invariant: each discarded value is computed by a solver, which proves it, from the values before it. These begin
//! with the first values of the run, which its journal covers, and a waypoint, which contains its own hash. Before
//! values are returned, the computation goes on to the end of their segment, where the values computed must have the
//! digest that the journal states ([`SegmentCheck`]). Waypoints lie at segment boundaries
//! ([`STRIDE`](super::waypoints::STRIDE) is a multiple of [`SEGMENT`](crate::table::digest::SEGMENT)), so each segment
//! whose digests at both ends are known is checked. Where the computation passes another waypoint, the values
//! must be those of that waypoint. The memory of the solver is checked as well.

use super::offset_copy::OffsetCopy;
use super::segment_check::SegmentCheck;
use super::waypoints::Waypoints;
use crate::checkpoint::journal::CommitPoint;
use crate::error::{Error, Result};
use crate::solver::{Method, SequenceStats, SparseSpace};
use crate::table::files::waypoint_name;
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::rule::Rule;
use std::ops::Range;

/// A run that has discarded values.
pub(super) struct DiscardingRun<'a> {
    pub(super) rule: &'a Rule,
    /// The method that computes values again.
    pub(super) method: Method,
    /// The sparse space of the run.
    pub(super) space: SparseSpace,
    /// The values of the run.
    pub(super) values: &'a dyn Sequence,
    /// Statistics of the discarded values.
    pub(super) freed: &'a SequenceStats,
    pub(super) waypoints: &'a Waypoints,
    /// The n of the valid waypoints, ascending.
    pub(super) positions: &'a [u64],
    /// The digests that the journal states, ascending by number of values.
    pub(super) points: &'a [CommitPoint],
}

impl DiscardingRun<'_> {
    /// A copy that continues from the last waypoint up to n, or from the first values of the run.
    fn copy_before(&self, n: u64) -> Result<OffsetCopy> {
        let head = self.values.discarded().start;
        let mut first = vec![0; index(head)];
        self.values.read(0, &mut first)?;
        let earlier = self.positions.iter().rev().filter(|&&waypoint| head < waypoint && waypoint <= n);
        let waypoint = earlier.copied().find_map(|n| self.waypoints.read(n).map(|last| (n - last.len() as u64, last)));
        let (from, window) = waypoint.unwrap_or((head, Vec::new()));
        let mut rare_positions = self.freed.rare_positions.clone();
        rare_positions.retain(|(n, _)| (head..from).contains(n));
        let known = SequenceStats { rare_positions, ..self.freed.clone() };
        OffsetCopy::resuming(self.rule, self.method, self.space, (first, from, window), &known)
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
    fn check(&self, copy: &OffsetCopy) -> Result<()> {
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
                Err(Error::Differs { n: from + i as u64, value, again, how: format!("the file {}", waypoint_name(n)) })
            }
        }
    }
}

/// Computes values of a run, roughly in ascending order.
pub(super) struct Retrace<'a> {
    run: &'a DiscardingRun<'a>,
    copy: Option<(OffsetCopy, SegmentCheck<'a>)>,
}

impl<'a> Retrace<'a> {
    pub(super) fn new(run: &'a DiscardingRun<'a>) -> Retrace<'a> {
        Retrace { run, copy: None }
    }

    /// The values of `range`, computed from the values before them if the run has discarded some. `go_on` receives the
    /// number of values computed since the last call; the result is `None` when it returned false.
    ///
    /// # Errors
    /// Errors of the solver and of reading the run; [`Error::Differs`] when a waypoint has other values;
    /// [`Error::OtherDigest`] when the values do not have the digest of the journal; [`Error::Flipped`] when the memory
    /// of the solver has changed.
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
        let run = self.run;
        let (mut copy, mut check) = match self.copy.take().filter(|(copy, _)| self.is_near(copy, &range)) {
            Some(near) => near,
            None => (run.copy_before(range.start)?, SegmentCheck::new(run.points)),
        };
        let end = check.end(range.end);
        while copy.len() < end {
            let to = run.waypoint_after(copy.len()).map_or(end, |waypoint| waypoint.min(end));
            let from = copy.advance(to, end - range.start)?;
            check.see(from, &copy.fresh)?;
            if !go_on(copy.len() - from) {
                return Ok(None);
            }
            run.check(&copy)?;
        }
        copy.check_memory()?;
        copy.values.read(range.start, &mut values)?;
        self.copy = Some((copy, check));
        Ok(Some(values))
    }

    /// Whether a copy has retained the first values of `range`, or will compute them before it reaches a later
    /// waypoint.
    fn is_near(&self, copy: &OffsetCopy, range: &Range<u64>) -> bool {
        let waypoint = self.run.waypoint_after(copy.len());
        range.start >= copy.values.discarded().end && waypoint.is_none_or(|waypoint| waypoint > range.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::period::waypoints::Waypoints;
    use crate::solver::ends::Ends;
    use crate::solver::{self, Histogram};
    use crate::table::digest::{Digest, DigestChain, SEGMENT};

    #[test]
    fn discarded_values_are_computed_again_and_compared_with_digests() {
        /// Number of retained first values.
        const HEAD: u64 = 1 << 17;
        /// Position of the waypoint, in the middle of the discarded values.
        const MIDDLE: u64 = 1 << 20;
        let (rule, method): (Rule, _) = (".16".parse().unwrap(), Method::default());
        let all = solver::values(&rule, method, index(2 * MIDDLE + 1000)).unwrap();
        let (space, _) = Histogram::of(&&all[..1 << 20]).unwrap().best_space(&rule);
        let mut chain = DigestChain::new();
        let mut points = Vec::new();
        for segment in all.chunks(index(SEGMENT)) {
            chain.update(segment);
            points.push(CommitPoint { count: chain.count(), escapes: 0, digest: chain.digest() });
        }
        let hole = index(HEAD)..index(2 * MIDDLE);
        let values = &Ends::of(all[..hole.start].to_vec(), 2 * MIDDLE, all[hole.end..].to_vec());
        let mut freed = SequenceStats::default();
        freed.see(space, HEAD, &all[hole]);
        let home = tempfile::tempdir().unwrap();
        let waypoints = &Waypoints::of(home.path(), "run");
        waypoints.write(MIDDLE, &all[index(MIDDLE) - 300_000..index(MIDDLE)]).unwrap();
        let (rule, freed, positions) = (&rule, &freed, &[MIDDLE][..]);
        let run = |points| DiscardingRun { rule, method, space, values, freed, waypoints, positions, points };
        let mut other = points.clone();
        other[index(MIDDLE / SEGMENT)].digest = Digest([1; 32]);
        let (right, wrong) = (run(&points), run(&other));
        let mut retrace = Retrace::new(&right);
        let (from, to) = (MIDDLE + 70_000, MIDDLE + 250_000);
        // Adjacent ranges, then one that begins before a waypoint, and one that ends where the retained values begin.
        for range in [from..to, to..to + 1, MIDDLE - 1000..MIDDLE + 5, 2 * MIDDLE - 9..2 * MIDDLE] {
            let found = retrace.values(range.clone(), &mut |_| true).unwrap().unwrap();
            assert_eq!(found, all[index(range.start)..index(range.end)]);
        }
        let refused = Retrace::new(&wrong).values(from..to, &mut |_| true);
        assert!(matches!(refused, Err(Error::OtherDigest { from: MIDDLE, .. })), "{refused:?}");
    }
}

//! Finds the least preperiod from the waypoints of a run, in a small part of the time that two whole copies take.
//!
//! Let p be the period that P4 ([`crate::period::theorems`]) has proved. Only waypoints w <= n1 are used that satisfy
//! the conditions of P4 for n1 ([`PeriodWindow::is_placed`]). Such a waypoint exceeds r, the last rare position below
//! n2, so no position from w to n2 - 1 is rare, and by P4 none from n1 on.
//!
//! **Claim.** If the W values before w equal those before w + p, then G(n + p) = G(n) for all n >= w.
//!
//! *Proof.* Every n >= w is common, so G(n) is the least common value that is not an option of n. By the proof of P4,
//! the W values before n determine it; no witness is needed. ∎
//!
//! So if the values before a waypoint agree with those p later, then those before every later waypoint do. A binary
//! search finds two adjacent waypoints such that the values before the first one differ from those p later, and the
//! values before the second one agree. The values between these two are then compared with those p later. The last
//! difference is the last exception.
//!
//! The binary search compares saved values with values computed from the nearest waypoint before them. The comparison
//! begins at the waypoint before the two, or at 0 if there is none. So it also computes the values before each of them,
//! which must equal the saved ones ([`Retrace`]). Its result must agree with the binary search.

use super::differences::Differences;
use super::{OffsetCopies, WindowProof};
use crate::error::{Error, Result};
use crate::period::facts::CertifiedFacts;
use crate::period::primes::prime_factors;
use crate::period::retrace::{DiscardingRun, Retrace};
use crate::period::{PeriodWindow, Proof};
use std::ops::Range;

/// Number of values compared at once.
const AT_ONCE: usize = 1 << 20;

/// Computes values at n and at n + p.
struct TwoPlaces<'a, F> {
    /// Values at n.
    back: Retrace<'a>,
    /// Values at n + p.
    front: Retrace<'a>,
    go_on: F,
}

impl<F: FnMut(u64) -> bool> TwoPlaces<'_, F> {
    /// The n in `range` with G(n) != G(n + p); `None` when it was stopped.
    fn differences(&mut self, range: Range<u64>, p: u64) -> Result<Option<Differences>> {
        let mut differences = Differences::default();
        for start in range.clone().step_by(AT_ONCE) {
            let end = range.end.min(start + AT_ONCE as u64);
            let Some(values) = self.back.values(start..end, &mut self.go_on)? else { return Ok(None) };
            let Some(later) = self.front.values(start + p..end + p, &mut self.go_on)? else { return Ok(None) };
            differences.compare(start, &values, &later);
        }
        Ok(Some(differences))
    }

    /// For each prime factor f of p an n in `range` with G(n) != G(n + p/f), if there is one; `None` when it was
    /// stopped.
    fn least(&mut self, range: Range<u64>, p: u64) -> Result<Option<Vec<(u64, u64)>>> {
        let Range { start, end } = range;
        let Some(values) = self.back.values(range, &mut self.go_on)? else { return Ok(None) };
        let mut least = Vec::new();
        // Ascending shifts, so that the copy goes on.
        for f in prime_factors(p).into_iter().rev() {
            let shift = p / f;
            let Some(later) = self.front.values(start + shift..end + shift, &mut self.go_on)? else { return Ok(None) };
            least.extend(values.iter().zip(&later).position(|(a, b)| a != b).map(|i| (f, start + i as u64)));
        }
        least.sort_unstable();
        Ok(Some(least))
    }
}

impl WindowProof<'_> {
    /// Finds the least preperiod, and witnesses of the least period, from the waypoints of `run`. `counted` are the
    /// facts about the values that the proof needs. `go_on` receives the number of values computed so far; the result
    /// is `None` when it returned false. Exceptions are counted only if all values before the preperiod were compared.
    ///
    /// # Errors
    /// Errors of the solver and of reading the run; [`Error::Differs`], [`Error::OptionsDiffer`] and [`Error::Flipped`]
    /// when the values computed contradict a waypoint, the binary search, or the proof.
    pub(in crate::period) fn by_waypoints(
        &self,
        run: &DiscardingRun<'_>,
        counted: CertifiedFacts,
        mut go_on: impl FnMut(u64) -> bool,
    ) -> Result<Option<OffsetCopies>> {
        let (n1, width) = (self.window.from, self.window.width(self.rule));
        let p = self.period;
        let mut done = 0;
        let go_on = |computed: u64| {
            done += computed;
            go_on(done)
        };
        let mut places = TwoPlaces { back: Retrace::new(run), front: Retrace::new(run), go_on };
        let is_placed = |n: u64| n <= n1 && PeriodWindow { from: n, to: n + p, ..self.window }.is_placed(self.rule);
        let waypoints: Vec<u64> = run.positions.iter().copied().filter(|&n| is_placed(n)).collect();
        // The values before waypoint `differing - 1` differ from those p later, and those before waypoint `agreeing`
        // agree.
        let (mut differing, mut agreeing) = (0, waypoints.len());
        while differing < agreeing {
            let middle = usize::midpoint(differing, agreeing);
            let n = waypoints[middle];
            let later = n + p - width..n + p;
            let Some(later) = places.front.values(later, &mut places.go_on)? else { return Ok(None) };
            if run.saved(n, width)? == later { agreeing = middle } else { differing = middle + 1 }
        }
        let differs_from = differing.checked_sub(1).map(|last| waypoints[last] - width);
        let agrees_from = waypoints.get(agreeing).copied().unwrap_or(n1) - width;
        let from = differing.checked_sub(2).map_or(0, |before| waypoints[before].min(waypoints[before + 1] - width));
        let to = agrees_from + width;
        let Some(differences) = places.differences(from..to, p)? else { return Ok(None) };
        differences.require_none_from(agrees_from, p)?;
        let preperiod = differences.preperiod();
        if let Some(from) = differs_from.filter(|&from| preperiod <= from) {
            return Err(Error::Flipped { what: "a value computed again", from, to });
        }
        let Some(least) = places.least(n1 - width..n1, p)? else { return Ok(None) };
        let exceptions = (from == 0 && preperiod <= p).then_some((differences.count, differences.first));
        let proof = Proof { least, ..self.proof.clone() };
        Ok(Some(OffsetCopies { preperiod, exceptions, counted, proof }))
    }
}

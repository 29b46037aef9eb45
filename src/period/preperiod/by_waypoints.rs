//! Finds the least preperiod from the waypoints of a run, in a small part of the time that two whole copies take.
//!
//! If the W values before k equal those before k + p, and no rare position follows, then G(n + p) = G(n) for all
//! n >= k, because each value follows from the W before it (P4 of [`crate::period::theorems`]). So once the values
//! before some waypoint agree with those p later, the values before every later waypoint do. A binary search finds two
//! adjacent waypoints before which they differ and agree. Only the values between these two, and those p later, are
//! computed and compared; the last difference is the last exception.
//!
//! Only the binary search reads saved values. The computation begins at the waypoint before these two, so that it
//! arrives at both, and compares them ([`Retrace`]).

use super::{OffsetCopies, ProvedPeriod};
use crate::error::{Error, Result};
use crate::period::Proof;
use crate::period::certificate::CertifiedFacts;
use crate::period::primes::prime_factors;
use crate::period::retrace::{DiscardingRun, Retrace};
use crate::theory::definition::Sequence;

/// Number of values compared at once.
const AT_ONCE: u64 = 1 << 20;

/// A run, and the values p earlier and later in it.
struct Halves<'a, S: ?Sized, F> {
    p: u64,
    /// Values before n1.
    back: Retrace<'a, S>,
    /// Values p later.
    front: Retrace<'a, S>,
    go_on: F,
}

impl<S: Sequence + ?Sized, F: FnMut(u64) -> bool> Halves<'_, S, F> {
    /// The last n in `from..to` with G(n) != G(n + p), and its two values; the outer `None` when it was stopped.
    fn last_difference(&mut self, from: u64, to: u64) -> Result<Option<Option<(u64, u16, u16)>>> {
        let mut last = None;
        for start in (from..to).step_by(AT_ONCE as usize) {
            let end = to.min(start + AT_ONCE);
            let Some(values) = self.back.values(start..end, &mut self.go_on)? else { return Ok(None) };
            let shifted = start + self.p..end + self.p;
            let Some(later) = self.front.values(shifted, &mut self.go_on)? else { return Ok(None) };
            if let Some(i) = values.iter().zip(&later).rposition(|(a, b)| a != b) {
                last = Some((start + i as u64, values[i], later[i]));
            }
        }
        Ok(Some(last))
    }

    /// For each prime factor f of p an n in `from..to` with G(n) != G(n + p/f), if there is one; `None` when it was
    /// stopped.
    fn least(&mut self, from: u64, to: u64) -> Result<Option<Vec<(u64, u64)>>> {
        let Some(values) = self.back.values(from..to, &mut self.go_on)? else { return Ok(None) };
        let mut least = Vec::new();
        // Ascending shifts, so that the copy goes on.
        for f in prime_factors(self.p).into_iter().rev() {
            let shift = self.p / f;
            let Some(later) = self.front.values(from + shift..to + shift, &mut self.go_on)? else { return Ok(None) };
            least.extend(values.iter().zip(&later).position(|(a, b)| a != b).map(|i| (f, from + i as u64)));
        }
        least.sort_unstable();
        Ok(Some(least))
    }
}

impl ProvedPeriod<'_> {
    /// Finds the least preperiod, and witnesses of the least period, from the waypoints of `run`. `counted` are the
    /// facts about the values that the proof needs. `go_on` receives the number of values computed so far; the result is
    /// `None` when it returned false. The exceptions are not counted.
    ///
    /// # Errors
    /// Errors of the solver and of reading the run; [`Error::Differs`] when a waypoint has other values than those
    /// computed, or the values before n1 do not belong to the period.
    pub(in crate::period) fn by_waypoints<S: Sequence + ?Sized>(
        &self,
        run: &DiscardingRun<'_, S>,
        counted: CertifiedFacts,
        mut go_on: impl FnMut(u64) -> bool,
    ) -> Result<Option<OffsetCopies>> {
        let (p, n1, width) = (self.period, self.window.from, self.window.width(self.rule));
        let mut done = 0;
        let go_on = |computed: u64| {
            done += computed;
            go_on(done)
        };
        let mut halves = Halves { p, back: Retrace::new(run), front: Retrace::new(run), go_on };
        let waypoints: Vec<u64> = run.positions.iter().copied().filter(|&n| width < n && n <= n1).collect();
        // The values before waypoint `differing - 1` differ from those p later, and those before waypoint `agreeing`
        // agree.
        let (mut differing, mut agreeing) = (0, waypoints.len());
        while differing < agreeing {
            let middle = usize::midpoint(differing, agreeing);
            let n = waypoints[middle];
            let later = n + p - width..n + p;
            let Some(later) = halves.front.values(later, &mut halves.go_on)? else { return Ok(None) };
            if run.saved(n, width)? == later { agreeing = middle } else { differing = middle + 1 }
        }
        let from = differing.checked_sub(2).map_or(0, |before| waypoints[before].min(waypoints[before + 1] - width));
        let to = waypoints.get(agreeing).copied().unwrap_or(n1);
        let Some(last) = halves.last_difference(from, to)? else { return Ok(None) };
        if let Some((n, value, again)) = last.filter(|&(n, ..)| n >= n1 - width) {
            let (value, again) = (value.into(), again.into());
            return Err(Error::Differs { n: n + p, value, again, how: "the period that was proved".into() });
        }
        let Some(least) = halves.least(n1 - width, n1)? else { return Ok(None) };
        let proof = Proof { least, ..self.proof.clone() };
        let preperiod = last.map_or(0, |(n, ..)| n + 1);
        Ok(Some(OffsetCopies { preperiod, exceptions: None, counted, proof }))
    }
}

//! Finds the least preperiod of a sequence of which only the last values are retained.
//!
//! A run that discards values finds its period p when a window recurs ([`super::watch`]), and P4 of
//! [`super::theorems`] proves that p holds from some n1 on. The values before n1 are discarded, so they do not tell
//! where the period begins. So the sequence is computed twice more, as two copies side by side and p apart: the last
//! n < n1 with G(n) != G(n + p) is the last exception, and n + 1 is the least preperiod. That takes as long as
//! computing n1 + n2 values, where n2 = n1 + p, and the memory for the first values and the last ones, twice.
//!
//! The front copy receives all values below n2. So it counts the facts that a certificate states about them. For each
//! prime factor f of p it also searches for an n with G(n) != G(n + p/f) among the W before n1, which belong to the
//! period because the W values before n2 are the same.
//!
//! The run may have taken its window long after the period began, because the run was resumed, or had computed values
//! before a search for the period began. The front copy is watched from its first value on, so it finds the period at
//! the first power of two n1 whose window recurs. When that happens before the run's n2, the proof by this nearer
//! window replaces the run's, and both copies stop there. So `from` of the proof is bounded by preperiod, lookback and
//! period, as [`super::certificate`] requires, and a certificate needs no more values than necessary.
//!
//! A watched run that discards values saves waypoints ([`super::waypoints`]). With them a small part of the values
//! suffices ([`by_waypoints`]).
//!
//! Invariant: without waypoints, both copies are computed from the rule alone, by a solver that proves each value; no
//! value of the run is read.

mod by_waypoints;
mod differences;
mod shown;

#[cfg(doc)]
use super::LISTED;
use super::facts::{CertifiedFacts, FactCounter};
use super::offset_copy::OffsetCopy;
use super::watch::Watch;
use super::{PeriodWindow, Proof};
use crate::checkpoint::commit::RETAINED_HEAD;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::run::ProofSummary;
use crate::solver::Method;
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::rule::Rule;
use differences::Differences;
use shown::Shown;

/// Maximum number of values by which the distance of the copies exceeds the period.
const MAX_LEAD: u64 = 1 << 22;

/// The result of computing values of a sequence twice, one period apart: all of them, or a part with waypoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetCopies {
    /// The least preperiod.
    pub preperiod: u64,
    /// Number of exceptions before the preperiod, and the first of them, at most [`LISTED`]; `None` when the preperiod
    /// exceeds the period, because G(n + p) need not be a value of the period then, and when not all values were
    /// computed.
    pub exceptions: Option<(u64, Vec<u64>)>,
    /// The facts that a certificate states about the values below n2.
    pub(super) counted: CertifiedFacts,
    /// The proof by the nearest window: the given one, or an earlier one. For each prime factor f of p it has
    /// an n that shows that p/f is not a period, if one was found.
    pub(super) proof: Proof,
}

/// A period proved by P4 whose least preperiod is to be computed.
pub(super) struct WindowProof<'a> {
    pub(super) rule: &'a Rule,
    /// The method that computes the copies.
    pub(super) method: Method,
    /// p.
    pub(super) period: u64,
    /// The proof by P4.
    pub(super) proof: &'a Proof,
    /// The window of the proof.
    pub(super) window: PeriodWindow,
}

impl WindowProof<'_> {
    /// Computes the front copy up to n2 and the back copy up to n1. `go_on` receives the number of values done and the
    /// number to do; the result is `None` when it returned false.
    ///
    /// # Errors
    /// Errors of the solver, [`Error::Discarded`] among them when a copy needs values that it has not retained;
    /// [`Error::Differs`] when the values before n1 do not belong to the period, so that the run or this computation
    /// was wrong.
    pub(super) fn offset_copies(&self, go_on: impl FnMut(u64, u64) -> bool) -> Result<Option<OffsetCopies>> {
        self.offset_copies_retaining(RETAINED_HEAD, go_on)
    }

    /// Like [`WindowProof::offset_copies`]; each copy retains the first `head` values.
    fn offset_copies_retaining(
        &self,
        head: u64,
        mut go_on: impl FnMut(u64, u64) -> bool,
    ) -> Result<Option<OffsetCopies>> {
        let p = self.period;
        let lead = MAX_LEAD.min(head);
        let mut front = OffsetCopy::new(self.rule, self.method, head)?;
        let mut back = OffsetCopy::new(self.rule, self.method, head)?;
        let mut ahead = Ahead::new(self);
        let claimed = self.window.from - self.window.width(self.rule);
        let mut behind = Differences::default();
        let mut there = Vec::new();
        while front.len() < ahead.n2 || back.len() < ahead.n1 {
            if !go_on(front.len().min(ahead.n2) + back.len().min(ahead.n1), ahead.n1 + ahead.n2) {
                return Ok(None);
            }
            if front.len() < ahead.n2.min(back.len() + p + lead / 2) {
                let from = front.advance(ahead.n2.min(back.len() + p + lead), lead)?;
                let proof = front.proof();
                ahead.see(from, &front.fresh, &proof);
                continue;
            }
            let from = back.advance(ahead.n1.min(front.len() - p), 0)?;
            there.resize(back.fresh.len(), 0);
            front.values.read(from + p, &mut there)?;
            behind.compare(from, &back.fresh, &there);
            behind.require_none_from(claimed, p)?;
        }
        front.check_memory()?;
        back.check_memory()?;
        let Ahead { n1, proof, counting, nearer, shown, .. } = ahead;
        let window = proof.window.unwrap_or(self.window);
        behind.require_none_from(n1 - window.width(self.rule), p)?;
        let preperiod = behind.preperiod();
        let exceptions = (preperiod <= p).then_some((behind.count, behind.first));
        let least = if nearer { shown.nearer.found } else { shown.given.found };
        Ok(Some(OffsetCopies { preperiod, exceptions, counted: counting.done(), proof: Proof { least, ..proof } }))
    }
}

/// What the front copy shows.
struct Ahead {
    p: u64,
    n1: u64,
    n2: u64,
    /// The current proof, without its witnesses of the least period, which are in `shown`.
    proof: Proof,
    window: PeriodWindow,
    /// Whether the front copy's own watch found the window of `proof`.
    nearer: bool,
    watch: Watch,
    counting: FactCounter,
    shown: BothShown,
}

/// Witnesses of the least period, from the values before the n1 of the run and before the n1 of the copy's own window.
struct BothShown {
    given: Shown,
    nearer: Shown,
    /// The n1 of `nearer`.
    mark: Option<u64>,
}

impl Ahead {
    fn new(proved: &WindowProof<'_>) -> Ahead {
        let WindowProof { rule, period: p, proof, window, .. } = *proved;
        let given = Shown::new(window.from - window.width(rule)..window.from, p);
        Ahead {
            p,
            n1: window.from,
            n2: proof.length,
            proof: proof.clone(),
            window,
            nearer: false,
            watch: Watch::new(rule),
            counting: FactCounter::new(window.space, window.to),
            shown: BothShown { given, nearer: Shown::new(0..0, p), mark: None },
        }
    }

    /// Receives the next values, those from `from` on.
    fn see(&mut self, from: u64, values: &[u16], proof: &ProofSummary) {
        if !self.nearer {
            self.watch.see(from, values, proof);
            self.follow_mark(from, values);
            self.take_nearer();
        }
        // The window found may end inside the batch; a certificate covers only the values before this end.
        let needed = &values[..index(self.n2.saturating_sub(from)).min(values.len())];
        self.counting.see(from, needed);
        self.shown.given.see(from, values);
    }

    fn follow_mark(&mut self, from: u64, values: &[u16]) {
        let Some((n1, window)) = self.watch.mark_now() else { return };
        let shown = &mut self.shown;
        if shown.mark == Some(n1) {
            shown.nearer.see(from, values);
            return;
        }
        let start = n1 - window.len() as u64;
        (shown.mark, shown.nearer) = (Some(n1), Shown::new(start..n1, self.p));
        shown.nearer.see(start, window);
        shown.nearer.see(n1, &values[index(n1 - from)..]);
    }

    /// Replaces the proof by the one that the watch has found, when that has the same period and space and a smaller
    /// n2.
    fn take_nearer(&mut self) {
        let Some(found) = self.watch.found.as_ref().filter(|found| found.period == self.p) else { return };
        let Some(proof) = &found.proof else { return };
        let Some(window) = proof.window.filter(|window| window.space == self.window.space) else { return };
        if proof.length < self.n2 {
            (self.n1, self.n2, self.nearer) = (window.from, proof.length, true);
            self.proof = proof.clone();
        }
    }
}

#[cfg(test)]
mod tests;

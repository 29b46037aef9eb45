//! What the front copy of a sequence shows while it is computed: the nearest window that proves the period, and the
//! facts that a certificate states.

use super::WindowProof;
use super::shown::Shown;
use crate::period::facts::FactCounter;
use crate::period::watch::Watch;
use crate::period::{PeriodWindow, Proof};
use crate::run::ProofSummary;
use crate::table::digest::Digest;
use crate::theory::nimber::index;
use std::ops::Range;

/// What the front copy shows.
pub(super) struct Ahead {
    p: u64,
    pub(super) n1: u64,
    pub(super) n2: u64,
    /// The current proof, without its witnesses of the least period.
    pub(super) proof: Proof,
    window: PeriodWindow,
    /// Whether the front copy's own watch found the window of `proof`.
    pub(super) is_nearer: bool,
    watch: Watch,
    pub(super) counting: FactCounter,
    /// What the values show about the window of the run.
    pub(super) given: WindowFacts,
    /// What the values show about the window that the watch remembers.
    pub(super) nearer: Option<WindowFacts>,
}

/// What the values show about a window before some n1.
pub(super) struct WindowFacts {
    pub(super) n1: u64,
    /// Witnesses of the least period, from the values of the window.
    pub(super) shown: Shown,
    /// Digest of the values below n1; `None` until all are computed.
    pub(super) digest: Option<Digest>,
}

impl WindowFacts {
    /// Facts about the window of the values `heaps`, of a period p.
    fn new(heaps: Range<u64>, p: u64) -> WindowFacts {
        WindowFacts { n1: heaps.end, shown: Shown::new(heaps, p), digest: None }
    }

    /// Receives the next values, those from `from` on; `before` has counted those below `from`.
    fn see(&mut self, from: u64, values: &[u16], before: &FactCounter) {
        self.shown.see(from, values);
        if self.digest.is_none() && self.n1 <= from + values.len() as u64 {
            self.digest = Some(before.digest_with(&values[..index(self.n1 - from)]));
        }
    }
}

impl Ahead {
    pub(super) fn new(proved: &WindowProof<'_>) -> Ahead {
        let WindowProof { rule, period: p, proof, window, .. } = *proved;
        Ahead {
            p,
            n1: window.from,
            n2: proof.length,
            proof: proof.clone(),
            window,
            is_nearer: false,
            watch: Watch::new(rule),
            counting: FactCounter::new(window.space, window.to),
            given: WindowFacts::new(window.from - window.width(rule)..window.from, p),
            nearer: None,
        }
    }

    /// Receives the next values, those from `from` on.
    pub(super) fn see(&mut self, from: u64, values: &[u16], proof: &ProofSummary) {
        if !self.is_nearer {
            self.watch.see(from, values, proof);
            self.follow_mark(from, values);
            self.take_nearer();
        }
        self.given.see(from, values, &self.counting);
        // The window found may end inside the batch; a certificate covers only the values before this end.
        let needed = &values[..index(self.n2.saturating_sub(from)).min(values.len())];
        self.counting.see(from, needed);
    }

    /// Follows the window that the watch remembers now, which ends inside these values if it is a new one.
    fn follow_mark(&mut self, from: u64, values: &[u16]) {
        let Some((n1, window)) = self.watch.mark_now() else { return };
        let start = n1 - window.len() as u64;
        let facts = match self.nearer.take().filter(|facts| facts.n1 == n1) {
            Some(facts) => self.nearer.insert(facts),
            None => {
                let facts = self.nearer.insert(WindowFacts::new(start..n1, self.p));
                facts.shown.see(start, &window[..index(from.saturating_sub(start))]);
                facts
            }
        };
        facts.see(from, values, &self.counting);
    }

    /// Replaces the proof by the one that the watch has found, when that has the same period and space and a smaller
    /// n2.
    fn take_nearer(&mut self) {
        let Some(found) = self.watch.found.as_ref().filter(|found| found.period == self.p) else { return };
        let Some(proof) = &found.proof else { return };
        let Some(window) = proof.window.filter(|window| window.space == self.window.space) else { return };
        if proof.length < self.n2 {
            (self.n1, self.n2, self.is_nearer) = (window.from, proof.length, true);
            self.proof = proof.clone();
        }
    }
}

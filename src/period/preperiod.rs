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
//! value of the run is read. A bit that flips in a value before it is compared is noticed ([`two_copies`]).

mod ahead;
mod by_waypoints;
mod differences;
mod shown;
mod two_copies;

#[cfg(doc)]
use super::LISTED;
use super::facts::CertifiedFacts;
use super::{PeriodWindow, Proof};
use crate::checkpoint::commit::RETAINED_HEAD;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::solver::Method;
use crate::theory::rule::Rule;
use two_copies::TwoCopies;

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
    /// was wrong; [`Error::Flipped`] when a value of a copy or the memory of a solver has changed.
    pub(super) fn offset_copies(&self, go_on: impl FnMut(u64, u64) -> bool) -> Result<Option<OffsetCopies>> {
        self.offset_copies_retaining(RETAINED_HEAD, go_on)
    }

    /// Like [`WindowProof::offset_copies`]; each copy retains the first `head` values.
    fn offset_copies_retaining(
        &self,
        head: u64,
        mut go_on: impl FnMut(u64, u64) -> bool,
    ) -> Result<Option<OffsetCopies>> {
        let mut copies = TwoCopies::new(self, head)?;
        while !copies.are_complete() {
            let (done, of) = copies.progress();
            if !go_on(done, of) {
                return Ok(None);
            }
            copies.step()?;
        }
        copies.finish().map(Some)
    }
}

#[cfg(test)]
mod tests;

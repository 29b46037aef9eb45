//! Computes two copies of a sequence side by side, one period apart, and compares their values.
//!
//! Invariant: the values that are compared are those that were computed. The values of the front copy are compared with
//! those of the back copy long after the facts of a certificate were counted from them, so they are digested a second
//! time when they are read again. And the values of both copies below n1 must have the same digest.

use super::ahead::Ahead;
use super::differences::Differences;
use super::{OffsetCopies, WindowProof};
use crate::error::{Error, Result};
use crate::period::Proof;
use crate::period::offset_copy::OffsetCopy;
use crate::table::digest::DigestChain;
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;

/// Maximum number of values by which the distance of the copies exceeds the period.
const MAX_LEAD: u64 = 1 << 22;

/// A front copy, which advances to n2, and a back copy, which advances to n1 and is compared with the values p later.
pub(super) struct TwoCopies<'a> {
    proved: &'a WindowProof<'a>,
    /// Number of values that the front copy retains beyond those that the solver needs.
    lead: u64,
    pub(super) front: OffsetCopy,
    pub(super) back: OffsetCopy,
    ahead: Ahead,
    behind: Differences,
    /// Digest of the values of the back copy.
    pub(super) back_digest: DigestChain,
    /// Digest of the values of the front copy: those below p as they were computed, those from p on as they were read
    /// again.
    front_digest: DigestChain,
    /// The values p after those of the last batch of the back copy.
    there: Vec<u16>,
}

impl<'a> TwoCopies<'a> {
    /// Copies without values; each retains the first `head` values.
    pub(super) fn new(proved: &'a WindowProof<'a>, head: u64) -> Result<TwoCopies<'a>> {
        Ok(TwoCopies {
            proved,
            lead: MAX_LEAD.min(head),
            front: OffsetCopy::new(proved.rule, proved.method, head)?,
            back: OffsetCopy::new(proved.rule, proved.method, head)?,
            ahead: Ahead::new(proved),
            behind: Differences::default(),
            back_digest: DigestChain::new(),
            front_digest: DigestChain::new(),
            there: Vec::new(),
        })
    }

    /// Number of values done, and number of values to do.
    pub(super) fn progress(&self) -> (u64, u64) {
        let Ahead { n1, n2, .. } = self.ahead;
        (self.front.len().min(n2) + self.back.len().min(n1), n1 + n2)
    }

    /// Whether all values are computed and compared.
    pub(super) fn are_complete(&self) -> bool {
        let (done, of) = self.progress();
        done == of
    }

    /// Computes one batch of the copy whose turn it is.
    ///
    /// # Errors
    /// Errors of the solver; [`Error::Differs`] when a value of the window is not that of the period.
    pub(super) fn step(&mut self) -> Result<()> {
        let (p, &Ahead { n1, n2, .. }) = (self.proved.period, &self.ahead);
        if self.front.len() < n2.min(self.back.len() + p + self.lead / 2) {
            let from = self.front.advance(n2.min(self.back.len() + p + self.lead), self.lead)?;
            let proof = self.front.proof();
            let fresh = &self.front.fresh;
            self.ahead.see(from, fresh, &proof);
            self.front_digest.update_in_parallel(&fresh[..index(p.saturating_sub(from).min(fresh.len() as u64))]);
            return Ok(());
        }
        let from = self.back.advance(n1.min(self.front.len() - p), 0)?;
        let values = &self.back.fresh;
        self.there.resize(values.len(), 0);
        self.front.values.read(from + p, &mut self.there)?;
        self.back_digest.update_in_parallel(values);
        self.front_digest.update_in_parallel(&self.there);
        self.behind.compare(from, values, &self.there);
        let claimed = self.proved.window.from - self.proved.window.width(self.proved.rule);
        self.behind.require_none_from(claimed, p)
    }

    /// The result of complete copies.
    ///
    /// # Errors
    /// [`Error::Flipped`] when the memory of a solver or a value of a copy has changed; [`Error::Differs`] when a value
    /// of the window is not that of the period.
    pub(super) fn finish(self) -> Result<OffsetCopies> {
        self.front.check_memory()?;
        self.back.check_memory()?;
        let p = self.proved.period;
        let Ahead { n1, n2, proof, is_nearer, counting, given, nearer, .. } = self.ahead;
        let facts = nearer.filter(|_| is_nearer).unwrap_or(given);
        let back_digest = self.back_digest.digest();
        if self.front_digest.digest() != counting.digest() || facts.digest != Some(back_digest) {
            return Err(Error::Flipped { what: "a copy of the sequence", from: 0, to: n2 });
        }
        let window = proof.window.unwrap_or(self.proved.window);
        self.behind.require_none_from(n1 - window.width(self.proved.rule), p)?;
        let preperiod = self.behind.preperiod();
        let exceptions = (preperiod <= p).then_some((self.behind.count, self.behind.first));
        let proof = Proof { least: facts.shown.found, ..proof };
        Ok(OffsetCopies { preperiod, exceptions, counted: counting.done(), proof })
    }
}

//! Compares values that are computed again with the digests that the journal of a run states.
//!
//! Invariant: a segment is compared if its values are received from its first one to its last one, and the journal
//! states the digests at both of its ends.

use crate::checkpoint::journal::CommitPoint;
use crate::error::{Error, Result};
use crate::table::digest::{Digest, DigestChain, SEGMENT};
use crate::theory::nimber::index;

/// Compares values that are computed again with the digests of the journal.
pub(super) struct SegmentCheck<'a> {
    points: &'a [CommitPoint],
    /// The digest of the values received; `None` before the first segment boundary whose digest is known.
    chain: Option<DigestChain>,
}

impl<'a> SegmentCheck<'a> {
    /// A check that has received no values; `points` ascend by number of values.
    pub(super) fn new(points: &'a [CommitPoint]) -> SegmentCheck<'a> {
        SegmentCheck { points, chain: None }
    }

    /// The digest of the first n values, if the journal states it.
    fn digest(&self, n: u64) -> Option<Digest> {
        let place = self.points.binary_search_by_key(&n, |point| point.count).ok()?;
        Some(self.points[place].digest)
    }

    /// The end of the segment that contains G(n - 1), if its digest is known; n otherwise.
    pub(super) fn end(&self, n: u64) -> u64 {
        Some(n.next_multiple_of(SEGMENT)).filter(|&end| self.digest(end).is_some()).unwrap_or(n)
    }

    /// Receives the next values, from n = `from` on.
    ///
    /// # Errors
    /// [`Error::OtherDigest`] when the values of a segment do not have its digest.
    pub(super) fn see(&mut self, mut from: u64, mut values: &[u16]) -> Result<()> {
        while !values.is_empty() {
            if self.chain.is_none() && from.is_multiple_of(SEGMENT) {
                self.chain = self.digest(from).map(|digest| DigestChain::resume(from, digest));
            }
            let (piece, rest) = values.split_at(values.len().min(index(SEGMENT - from % SEGMENT)));
            (from, values) = (from + piece.len() as u64, rest);
            let Some(chain) = &mut self.chain else { continue };
            chain.update(piece);
            let digest = chain.digest();
            if from.is_multiple_of(SEGMENT) && self.digest(from).is_some_and(|stated| stated != digest) {
                return Err(Error::OtherDigest { from: from - SEGMENT, to: from });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::Random;

    #[test]
    fn values_without_the_digest_of_the_journal_are_refused() {
        let random = &mut Random::new("digests of values computed again");
        let values: Vec<u16> = (0..3 * SEGMENT).map(|n| (n % 251) as u16).collect();
        let mut chain = DigestChain::new();
        let mut points = Vec::new();
        for segment in values.chunks(index(SEGMENT)) {
            chain.update(segment);
            points.push(CommitPoint { count: chain.count(), escapes: 0, digest: chain.digest() });
        }
        // The first segment of the values from `start` on that the check refuses.
        let mut refused = |start: u64, values: &[u16]| {
            let mut check = SegmentCheck::new(&points);
            let mut n = start;
            while n < values.len() as u64 {
                let to = (n + 1 + random.below(SEGMENT)).min(values.len() as u64);
                if let Err(Error::OtherDigest { from, to }) = check.see(n, &values[index(n)..index(to)]) {
                    return Some((from, to));
                }
                n = to;
            }
            None
        };
        let mut changed = values.clone();
        changed[index(SEGMENT + 5)] ^= 1;
        for start in [0, SEGMENT - 1000, SEGMENT] {
            assert_eq!(refused(start, &values), None);
            assert_eq!(refused(start, &changed), Some((SEGMENT, 2 * SEGMENT)));
        }
        // The first whole segment from here on is the last one.
        assert_eq!(refused(SEGMENT + 1, &changed), None);
        let check = SegmentCheck::new(&points);
        assert_eq!([1, SEGMENT, 3 * SEGMENT + 1].map(|n| check.end(n)), [SEGMENT, SEGMENT, 3 * SEGMENT + 1]);
    }
}

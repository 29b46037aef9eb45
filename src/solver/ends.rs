//! A sequence of which only the first and the last values are retained, in memory.
//!
//! A solver with a sparse space reads the first values and the last [`super::Solver::lookback`]. Its witness search may
//! read further back, and then needs a value that is perhaps discarded. Both users of [`Ends`] therefore retain
//! [`LOOKBACKS_RETAINED`] times the lookback.
//!
//! Invariant: a read of discarded values is an error, never a guess.

use crate::error::{Error, Result};
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use std::ops::Range;

/// Ratio of the number of last values to retain to the lookback. In Grundy's game the witness search for
/// n = 258 592 279 reads more than 57 million values back, beyond the lookback of 48.5 million.
pub(crate) const LOOKBACKS_RETAINED: u64 = 2;

/// The first and the last values of a sequence.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    /// The first values, at most `most` of them.
    head: Vec<u16>,
    /// Maximum number of values in `head`.
    most: u64,
    /// The n of the first value of `last`, if there is one.
    start: u64,
    /// The last values.
    last: Vec<u16>,
}

impl Ends {
    /// An empty sequence that will retain its first `most` values.
    pub(crate) fn new(most: u64) -> Ends {
        Ends { head: Vec::new(), most, start: 0, last: Vec::new() }
    }

    /// The `first` values of a sequence, and its `last` values, which begin at n = `from`. If they overlap, `first`
    /// counts.
    pub(crate) fn of(first: Vec<u16>, from: u64, mut last: Vec<u16>) -> Ends {
        let most = first.len() as u64;
        let both = most.saturating_sub(from).min(last.len() as u64);
        last.drain(..index(both));
        Ends { head: first, most, start: from + both, last }
    }

    /// Appends values.
    ///
    /// # Errors
    /// [`Error::Memory`] if they do not fit in memory.
    pub(crate) fn push(&mut self, values: &[u16]) -> Result<()> {
        let room = index(self.most - self.head.len() as u64).min(values.len());
        let (first, rest) = values.split_at(room);
        let bytes = self.len().saturating_add(values.len() as u64).saturating_mul(2);
        let full = |_| Error::Memory { what: "the sequence", bytes };
        self.head.try_reserve(first.len()).map_err(full)?;
        self.last.try_reserve(rest.len()).map_err(full)?;
        self.head.extend_from_slice(first);
        self.start = self.start.max(self.head.len() as u64);
        self.last.extend_from_slice(rest);
        Ok(())
    }

    /// Number of values that are neither in `head` nor among the last `keep`.
    fn dead(&self, keep: u64) -> u64 {
        (self.last.len() as u64).saturating_sub(keep)
    }

    /// Whether [`Ends::free`] would discard values.
    pub(crate) fn is_due(&self, keep: u64) -> bool {
        let dead = self.dead(keep);
        dead > 0 && dead >= keep / 4
    }

    /// Discards the values that are neither in `head` nor among the last `keep`, once they are a quarter of `keep`, so
    /// that moving the others down stays cheap.
    pub(crate) fn free(&mut self, keep: u64) {
        if self.is_due(keep) {
            let dead = self.dead(keep);
            self.last.drain(..index(dead));
            self.start += dead;
            // Returns the memory of a sequence that was retained whole until now.
            self.last.shrink_to(index(keep.saturating_add(keep / 2)));
        }
    }

    /// Flips a bit of G(n), which must be in the head.
    #[cfg(test)]
    pub(crate) fn flip(&mut self, n: u64) {
        self.head[index(n)] ^= 4;
    }
}

impl Sequence for Ends {
    fn len(&self) -> u64 {
        self.start.max(self.head.len() as u64) + self.last.len() as u64
    }

    fn discarded(&self) -> Range<u64> {
        let head = self.head.len() as u64;
        if self.start > head { head..self.start } else { 0..0 }
    }

    fn read(&self, from: u64, out: &mut [u16]) -> Result<()> {
        self.require(from, from.saturating_add(out.len() as u64))?;
        let in_head = index((self.head.len() as u64).saturating_sub(from).min(out.len() as u64));
        let (first, rest) = out.split_at_mut(in_head);
        if !first.is_empty() {
            self.head.as_slice().read(from, first)?;
        }
        if !rest.is_empty() {
            self.last.as_slice().read(from.max(self.start) - self.start, rest)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_of_both_ends_succeed_and_reads_of_discarded_values_fail() {
        let values: Vec<u16> = (0..1000).collect();
        let mut ends = Ends::new(10);
        for (i, piece) in values.chunks(7).enumerate() {
            ends.push(piece).unwrap();
            ends.free(20);
            let count = ends.len();
            assert_eq!(count, 1000.min(7 * (i as u64 + 1)));
            let freed = ends.discarded();
            assert!(freed.is_empty() || (freed.start == 10 && count - freed.end >= 20 && count - freed.end < 32));
            for (from, to) in [(0, count.min(10)), (freed.end.min(count), count), (0, count), (5, count.min(15))] {
                let mut out = vec![0; index(to - from)];
                match ends.read(from, &mut out) {
                    Ok(()) => assert_eq!(out, &values[index(from)..index(to)]),
                    Err(error) => {
                        let is_freed = matches!(error, Error::Discarded { .. });
                        assert!(is_freed && from < freed.end && to > freed.start, "{from}..{to}: {error}");
                    }
                }
            }
        }
        assert!(!ends.discarded().is_empty());
    }
}

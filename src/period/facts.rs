//! The facts that a certificate states about values: digest, largest value, rare positions.

use crate::error::Result;
use crate::solver::{SequenceStats, SparseSpace};
use crate::table::digest::{Digest, DigestChain};
use crate::theory::definition::{Sequence, for_each_piece};
use crate::theory::nimber::index;

/// The facts that a certificate states about all values below `checked_through`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CertifiedFacts {
    /// Digest of the values.
    pub(super) digest: String,
    /// The largest of the values, and the rare positions below n2 under the certificate's space.
    pub(super) stats: SequenceStats,
}

/// Collects [`CertifiedFacts`] from consecutive values.
pub(super) struct FactCounter {
    chain: DigestChain,
    space: SparseSpace,
    to: u64,
    stats: SequenceStats,
}

impl FactCounter {
    /// Creates a counter that collects the rare positions below `to` under `space`.
    pub(super) fn new(space: SparseSpace, to: u64) -> FactCounter {
        FactCounter { chain: DigestChain::new(), space, to, stats: SequenceStats::default() }
    }

    /// Receives the next values, those from `from` on.
    pub(super) fn see(&mut self, from: u64, values: &[u16]) {
        self.chain.update_in_parallel(values);
        let (before, after) = values.split_at(index(self.to.saturating_sub(from).min(values.len() as u64)));
        self.stats.see(self.space, from, before);
        self.stats.see(SparseSpace::NONE, from + before.len() as u64, after);
    }

    /// The digest of the values received.
    pub(super) fn digest(&self) -> Digest {
        self.chain.digest()
    }

    /// The digest of the values received and the `next` ones.
    pub(super) fn digest_with(&self, next: &[u16]) -> Digest {
        let mut chain = self.chain.clone();
        chain.update(next);
        chain.digest()
    }

    pub(super) fn done(self) -> CertifiedFacts {
        CertifiedFacts { digest: self.chain.digest().to_string(), stats: self.stats }
    }
}

impl CertifiedFacts {
    /// The facts of values with this digest and these statistics.
    pub(super) fn new(digest: Digest, stats: SequenceStats) -> CertifiedFacts {
        CertifiedFacts { digest: digest.to_string(), stats }
    }

    /// Collects the facts of the first `length` values, with the rare positions below `to` under `space`.
    pub(super) fn of(values: &dyn Sequence, length: u64, space: SparseSpace, to: u64) -> Result<CertifiedFacts> {
        let mut counting = FactCounter::new(space, to);
        for_each_piece(values, 0, length, |from, piece| {
            counting.see(from, piece);
            Ok(())
        })?;
        Ok(counting.done())
    }

    /// Returns the digest of the rare positions, `rares_digest` of a certificate.
    pub(super) fn rares_digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for (n, v) in &self.stats.rare_positions {
            hasher.update(&n.to_le_bytes());
            hasher.update(&v.to_le_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }
}

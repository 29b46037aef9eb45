//! The facts that a certificate states about values: digest, largest value, rare positions.

use crate::error::Result;
use crate::solver::SparseSpace;
use crate::table::digest::DigestChain;
use crate::theory::definition::{Sequence, for_each_piece};

/// The facts that a certificate states about all values below `checked_through`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::period) struct CertifiedFacts {
    pub(super) digest: String,
    pub(super) max_value: u16,
    pub(super) max_at: u64,
    /// The rare positions below n2 under the certificate's space, with their values.
    pub(super) rares: Vec<(u64, u16)>,
}

/// Collects [`CertifiedFacts`] from consecutive values.
pub(in crate::period) struct FactCounter {
    chain: DigestChain,
    space: SparseSpace,
    to: u64,
    counted: CertifiedFacts,
}

impl FactCounter {
    /// Creates a counter that collects the rare positions below `to` under `space`.
    pub(in crate::period) fn new(space: SparseSpace, to: u64) -> FactCounter {
        FactCounter { chain: DigestChain::new(), space, to, counted: CertifiedFacts::default() }
    }

    /// Receives the next values, those from `from` on.
    pub(in crate::period) fn see(&mut self, from: u64, values: &[u16]) {
        self.chain.update(values);
        for (n, &v) in (from..).zip(values) {
            if v > self.counted.max_value {
                self.counted.max_value = v;
                self.counted.max_at = n;
            }
        }
        if self.space != SparseSpace::NONE {
            let to = self.to;
            self.counted.rares.extend(self.space.rares(from, values).filter(|rare| rare.0 < to));
        }
    }

    pub(in crate::period) fn done(self) -> CertifiedFacts {
        CertifiedFacts { digest: self.chain.digest().to_string(), ..self.counted }
    }
}

impl CertifiedFacts {
    /// Collects the facts of the first `length` values, with the rare positions below `to` under `space`.
    pub(in crate::period) fn of<S: Sequence + ?Sized>(
        values: &S,
        length: u64,
        space: SparseSpace,
        to: u64,
    ) -> Result<CertifiedFacts> {
        let mut counting = FactCounter::new(space, to);
        for_each_piece(values, 0, length, |from, piece| {
            counting.see(from, piece);
            Ok(())
        })?;
        Ok(counting.done())
    }

    pub(super) fn rares_digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for (n, v) in &self.rares {
            hasher.update(&n.to_le_bytes());
            hasher.update(&v.to_le_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }
}

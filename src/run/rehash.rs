//! Verifies the values of a table against every commit point of the journal.

use super::observer::Observer;
use crate::checkpoint::journal::CommitPoint;
use crate::checkpoint::summary::{DiscardSummary, RecordStats};
use crate::error::{Error, Result};
use crate::fault;
use crate::solver::SparseSpace;
use crate::table::digest::DigestChain;
use crate::table::{Extent, Published, TableReader};
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of values that several tasks read and that are then hashed. Progress is reported after each piece.
const PIECE: usize = 1 << 20;

/// Number of values that one task reads and counts.
const VALUES_PER_TASK: usize = 1 << 15;

/// The result of hashing and counting a table.
pub(super) struct VerifiedTable {
    /// Digest chain of all values that agree with the journal.
    pub(super) chain: DigestChain,
    pub(super) counted: RecordStats,
    /// Number of commit points that agree, before the first that does not.
    pub(super) good: usize,
}

/// A table to be hashed, counted and compared with every commit point.
pub(super) struct Rehash<'a> {
    pub(super) table: &'a TableReader,
    /// The commit points, ascending.
    pub(super) points: &'a [CommitPoint],
    /// The summary that accounts for the discarded values.
    pub(super) summary: Option<&'a DiscardSummary>,
    /// The sparse space whose rare positions are counted.
    pub(super) space: SparseSpace,
}

impl Rehash<'_> {
    /// Hashes and counts up to the first commit point that disagrees. Returns `None` if the stop flag was set.
    pub(super) fn run(&self, observer: &mut (dyn Observer + Send), stop: &AtomicBool) -> Result<Option<VerifiedTable>> {
        let mut chain = DigestChain::new();
        let mut counted = RecordStats::default();
        let mut escapes = 0;
        for (good, point) in self.points.iter().enumerate() {
            if let Some(summary) = self.summary.filter(|summary| summary.from < point.count) {
                if point.count < summary.to {
                    continue;
                }
                if chain.count() < summary.to {
                    if chain.count() != summary.from {
                        // Nothing states the digest of the head. A resume drops such points before.
                        return Ok(Some(VerifiedTable { chain, counted, good }));
                    }
                    chain = DigestChain::resume(summary.to, summary.digest().unwrap_or_default());
                    counted = counted.and(summary.recount());
                }
            }
            let chain_before = chain.clone();
            let counted_before = counted;
            // Without later escapes: an altered one would mislead the binary search for an earlier one.
            let extent = Extent { values: point.count, escapes: point.escapes };
            let Some(first) = self.table.published().first(extent) else {
                return Ok(Some(VerifiedTable { chain, counted, good }));
            };
            match self.add(&first, &mut chain, &mut counted, observer) {
                // The bytes and the escapes contradict each other.
                Err(Error::Damage { .. }) => {
                    return Ok(Some(VerifiedTable { chain: chain_before, counted: counted_before, good }));
                }
                added => added?,
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if !agrees(&first, point, &chain, escapes) {
                return Ok(Some(VerifiedTable { chain: chain_before, counted: counted_before, good }));
            }
            escapes = point.escapes;
        }
        Ok(Some(VerifiedTable { chain, counted, good: self.points.len() }))
    }

    /// Adds the values of `first` that the chain does not have yet, with all threads of the pool.
    fn add(
        &self,
        first: &Published,
        chain: &mut DigestChain,
        counted: &mut RecordStats,
        observer: &mut (dyn Observer + Send),
    ) -> Result<()> {
        let to = first.len();
        let mut buffer = vec![0; index((to - chain.count()).min(PIECE as u64))];
        while chain.count() < to {
            let from = chain.count();
            let piece = &mut buffer[..index((to - from).min(PIECE as u64))];
            let read = |(i, values): (usize, &mut [u16])| {
                let from = from + (i * VALUES_PER_TASK) as u64;
                first.read(from, values)?;
                let mut counted = RecordStats::default();
                counted.see(self.space, from, values);
                Ok(counted)
            };
            let tasks = piece.par_chunks_mut(VALUES_PER_TASK).enumerate();
            *counted = counted.and(tasks.map(read).try_reduce(RecordStats::default, |a, b| Ok(a.and(b)))?);
            chain.update_in_parallel(piece);
            observer.rehashed(chain.count(), self.table.len());
        }
        Ok(())
    }
}

/// Returns whether the values of `first`, digested by `chain`, and their escapes from number `escapes` on, are those of
/// `point`.
fn agrees(first: &Published, point: &CommitPoint, chain: &DigestChain, escapes: u64) -> bool {
    if fault::is("skip-rehash") {
        return true; // deliberate fault, see fault.rs
    }
    // The values alone do not show that a record counts escapes of later values.
    chain.digest() == point.digest
        && first.check_escapes(escapes..point.escapes).is_ok()
        && first.escapes_from(point.count) == point.escapes
}

//! Verifies the values of a table against every commit point of the journal.

use super::Observer;
use crate::checkpoint::journal::CommitPoint;
use crate::checkpoint::summary::{DiscardSummary, RecordStats};
use crate::error::{Error, Result};
use crate::fault;
use crate::solver::SparseSpace;
use crate::table::TableReader;
use crate::table::digest::DigestChain;
use crate::theory::definition::{Sequence, for_each_piece};
use std::sync::atomic::{AtomicBool, Ordering};

/// The result of hashing and counting a table.
pub(super) struct VerifiedTable {
    /// Digest chain of all values that agree with the journal.
    pub(super) chain: DigestChain,
    pub(super) counted: RecordStats,
    /// Number of commit points that agree, before the first that does not.
    pub(super) good: usize,
}

/// Hashes and counts the table and compares it with every commit point; `snapshot` accounts for the discarded values.
/// Returns `None` if the stop flag was set.
pub(super) fn rehash(
    table: &TableReader,
    points: &[CommitPoint],
    snapshot: Option<&DiscardSummary>,
    space: SparseSpace,
    observer: &mut (dyn Observer + Send),
    stop: &AtomicBool,
) -> Result<Option<VerifiedTable>> {
    let mut checked = VerifiedTable { chain: DigestChain::new(), counted: RecordStats::default(), good: points.len() };
    let mut escapes = 0;
    for (good, point) in points.iter().enumerate() {
        if let Some(snapshot) = snapshot.filter(|s| s.from < point.count) {
            if point.count < snapshot.to {
                continue;
            }
            if checked.chain.count() < snapshot.to {
                checked.chain = DigestChain::resume(snapshot.to, snapshot.digest().unwrap_or_default());
                checked.counted = checked.counted.and(snapshot.recount());
            }
        }
        let (before, counted_before) = (checked.chain.clone(), checked.counted);
        let read = for_each_piece(table, checked.chain.count(), point.count, |from, values| {
            checked.chain.update(values);
            checked.counted.see(space, from, values);
            observer.rehashed(checked.chain.count(), table.len());
            Ok(())
        });
        match read {
            // The bytes and the escapes contradict each other.
            Err(Error::Damage { .. }) => {
                return Ok(Some(VerifiedTable { good, chain: before, counted: counted_before }));
            }
            read => read?,
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        // The values alone do not show that a record counts escapes of later values.
        let agree = checked.chain.digest() == point.digest
            && table.check_some_escapes(escapes..point.escapes).is_ok()
            && table.escapes_below(point.count) == point.escapes;
        let believed = fault::is("skip-rehash"); // deliberate fault, see fault.rs
        if !agree && !believed {
            return Ok(Some(VerifiedTable { good, chain: before, ..checked }));
        }
        escapes = point.escapes;
    }
    Ok(Some(checked))
}

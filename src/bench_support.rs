//! What the benchmarks of this repository call and the library hides. It is no part of the public interface and may
//! change at any time.

pub use crate::kernel::bench::*;
pub use crate::solver::bench::*;

use crate::checkpoint::commit::{Batch, Committer};
use crate::checkpoint::journal::{self, Checks, Event, Journal, Record};
use crate::checkpoint::summary::{DiscardSummary, RecordStats};
use crate::checkpoint::writer::Writer;
use crate::error::{Error, NoRunReason, Result};
use crate::solver::{SparseSpace, Strategy};
use crate::storage::Dir;
use crate::table::Table;
use crate::table::digest::DigestChain;
use std::sync::Arc;

/// A run that accepts any values and commits them.
pub struct CommitBench {
    writer: Writer,
    chain: DigestChain,
    counted: RecordStats,
    space: SparseSpace,
}

impl CommitBench {
    /// Opens the run in `dir`, which holds exactly `values`, to commit more values.
    ///
    /// # Errors
    /// [`Error::NoRun`] when there is none, and any error of opening its files.
    pub fn open(dir: &Dir, values: &[u16]) -> Result<CommitBench> {
        let (mut journal, contents) = Journal::open(dir)?;
        let no_run = || Error::NoRun { path: dir.path().into(), why: NoRunReason::NoRecord { journal: journal::NAME } };
        let contents = contents.ok_or_else(no_run)?;
        let last = contents.last;
        let table = Table::open(dir, last.width, last.extent())?;
        let mut chain = DigestChain::new();
        chain.update(values);
        let counted = RecordStats {
            rares: last.rares,
            last_rare: last.last_rare,
            max_value: last.max_value,
            max_at: last.max_at,
        };
        journal.append(Record { event: Event::Open, ..last.clone() })?;
        let template = Record { event: Event::Commit, ..last };
        let committer = Committer::new(dir, journal, table, template).resumed(chain.clone(), &contents.points, None);
        Ok(CommitBench { writer: Writer::new(committer)?, chain, counted, space: SparseSpace::NONE })
    }

    /// Adds values to the digest that the next commit must confirm. Call it before [`CommitBench::commit`]: a run
    /// computes this digest while it computes the values.
    pub fn announce(&mut self, values: &[u16]) {
        self.counted.see_largest(self.chain.count(), values);
        self.chain.update(values);
    }

    /// Commits the announced values and waits until they are durable.
    ///
    /// # Errors
    /// Any error of the commit.
    pub fn commit(&mut self, values: Arc<Vec<u16>>) -> Result<()> {
        self.writer.commit(Batch {
            values,
            computed_digest: self.chain.digest(),
            counted: self.counted,
            too_large: None,
            strategy: Strategy { engine: "byte streams", space: self.space, reason: "this is a benchmark".into() },
            checks: Checks::default(),
            suspect: None,
            lookback: None,
        })?;
        self.writer.wait()
    }

    /// Ends the run cleanly.
    ///
    /// # Errors
    /// Any error of the last record.
    pub fn close(self) -> Result<()> {
        self.writer.close()
    }
}

/// A summary of discarded values.
pub struct SummaryBench(DiscardSummary);

impl SummaryBench {
    /// The summary of these values, which start at n = 0, in a sparse space.
    #[must_use]
    pub fn new(space: SparseSpace, values: &[u16]) -> SummaryBench {
        let mut summary = DiscardSummary::new("a benchmark", space, 0);
        summary.see(space, values);
        SummaryBench(summary)
    }

    /// Writes the summary durably, and returns the hash of the file.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn write(&self, dir: &Dir) -> Result<String> {
        Ok(self.0.write(dir)?.blake3)
    }
}

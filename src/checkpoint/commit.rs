//! The files of a run that a process writes ([`Committer`]), and the order in which a commit writes them.
//!
//! The order of the writes protects committed values from kills and power cuts. A commit writes the values, makes them
//! durable, writes the record, makes the record durable, and only then publishes the values.
//!
//! With a limit on retained values (`--keep`), a commit may discard whole segments between the head ([`RETAINED_HEAD`])
//! and the last values. It hashes them a last time, and writes their counts ([`crate::checkpoint::counts`]) and their
//! discard summary ([`crate::checkpoint::summary`]). Both are durable before the record that names the summary and
//! lists the values as discarded. From that record on the table refuses to read them. Only when a second record lists
//! them as well does the commit punch their hole and remove the previous summary: if the last record is ever lost, the
//! record before it still describes the files. After a kill before the hole is punched, the next run punches it.
//!
//! While the solver computes values, a thread of its own runs the commits ([`super::writer`]).
//!
//! Invariant: every hole in the values that the last record commits lies within the ranges that the last two records
//! both list as discarded. After a rollback, holes may remain after the last committed value; the run overwrites them.

use crate::checkpoint::counts::{BLOCK, BlockCounts, CountsFile};
use crate::checkpoint::journal::{Attached, Checks, CommitPoint, Event, Journal, Record, kept};
use crate::checkpoint::summary::{self, DiscardSummary, Head, RecordStats};
use crate::error::{Damage, Error, Result};
use crate::fault;
use crate::solver::{SparseSpace, Strategy};
use crate::storage::Dir;
use crate::table::digest::{Digest, DigestChain, SEGMENT};
use crate::table::{Extent, HEADER, Published, Table};
use crate::theory::definition::{Sequence, for_each_piece};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Number of values from n = 0 on that are never discarded. Few in unit tests.
pub(crate) const RETAINED_HEAD: u64 = if cfg!(test) { 1 << 16 } else { 1 << 26 };

/// Maximum number of values that a run with `--keep` holds besides the head and the values to keep: an incomplete
/// segment, a segment that waits for its second record, a segment in computation and a segment being written.
pub(crate) const RETENTION_SLACK: u64 = 4 * SEGMENT;

/// Returns the end of the range that may be discarded when the last `keep` of `count` values are kept. The range starts
/// at the end of the head.
fn discardable_end(count: u64, keep: u64) -> u64 {
    count.saturating_sub(keep) / SEGMENT * SEGMENT
}

/// Returns whether there are values that may be discarded but are not yet.
pub(crate) fn has_discardable(published: &Published, keep: Option<u64>) -> bool {
    keep.is_some_and(|keep| discardable_end(published.len(), keep) > RETAINED_HEAD.max(published.discarded().end))
}

/// The input of one commit.
pub(crate) struct Batch {
    /// The values that follow the committed ones.
    pub(crate) values: Arc<Vec<u16>>,
    /// The digest of all values up to the end of `values`, updated as they were computed.
    pub(crate) computed_digest: Digest,
    /// The statistics of all values up to the end of `values`.
    pub(crate) counted: RecordStats,
    /// The number of values up to the end of `values`, if the next value is known to be above 65535.
    pub(crate) too_large: Option<u64>,
    /// How the solver computes the next values, with the sparse space in use.
    pub(crate) strategy: Strategy,
    /// Number of checks of each kind since the run was created, for the record.
    pub(crate) checks: Checks,
    /// The n whose value failed a check and has not been recomputed.
    pub(crate) suspect: Option<u64>,
    /// Number of last values that must stay readable; `None` if all must.
    pub(crate) lookback: Option<u64>,
}

impl Batch {
    /// Returns whether the commit of this batch after the `published` values may discard some of them, none of which
    /// the solver needs.
    pub(crate) fn may_discard(&self, published: &Published, keep: Option<u64>) -> bool {
        has_discardable(published, keep) && self.lookback.is_some() && self.lookback <= keep
    }

    /// Returns a bound, exclusive, of the values that the same commit may discard; `None` if it discards none.
    pub(crate) fn discards_before(&self, published: &Published, keep: Option<u64>) -> Option<u64> {
        let keep = keep.filter(|_| self.may_discard(published, keep))?;
        Some(discardable_end(published.len() + self.values.len() as u64, keep))
    }
}

/// The table, the journal and the discard summary of a run that this process writes.
pub(crate) struct Committer {
    dir: Dir,
    journal: Journal,
    table: Table,
    chain: DigestChain,
    /// The fields that are equal in all records of this process.
    template: Record,
    /// The discard summary, with the name and hash by which the last record refers to it.
    summary: Option<(DiscardSummary, Attached)>,
    /// The counts of the discarded values; opened when this process first discards values.
    counts: Option<CountsFile>,
    /// The known digests at segment ends, by n. Discarding values drops the entries below their end.
    ends: BTreeMap<u64, Digest>,
    /// The discarded values below this n are known to be a hole.
    punched: u64,
    /// When this process began to compute. `template.seconds` counts the earlier processes.
    begun: Instant,
}

impl Committer {
    /// Returns a committer without digests and without a discard summary: that of a new run. [`Committer::resumed`]
    /// adds those of an existing run. `template.keep` is the minimum number of last values to keep.
    pub(crate) fn new(dir: &Dir, journal: Journal, table: Table, template: Record) -> Committer {
        Committer {
            dir: dir.clone(),
            journal,
            table,
            chain: DigestChain::new(),
            template,
            summary: None,
            counts: None,
            ends: BTreeMap::new(),
            punched: RETAINED_HEAD,
            begun: Instant::now(),
        }
    }

    /// Adds what is known of a resumed run, whose files have been verified: `chain` has digested all committed values,
    /// `points` are the commit points, and `summary` is the discard summary that the template names.
    pub(crate) fn resumed(
        self,
        chain: DigestChain,
        points: &[CommitPoint],
        summary: Option<DiscardSummary>,
    ) -> Committer {
        let segment_ends = points.iter().filter(|point| point.count.is_multiple_of(SEGMENT));
        // The record at the end of the discarded values may be lost; their summary states the same digest.
        let summarized = summary.as_ref().and_then(|summary| Some((summary.to, summary.digest()?)));
        let ends = segment_ends.map(|point| (point.count, point.digest)).chain(summarized).collect();
        let summary = summary.zip(self.template.snapshot.clone());
        Committer { chain, summary, ends, ..self }
    }

    /// The run directory.
    pub(super) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Computing time of the run over all processes, rounded to seconds.
    fn seconds(&self) -> u64 {
        let in_this_process = (self.begun.elapsed() + Duration::from_millis(500)).as_secs();
        self.template.seconds.saturating_add(in_this_process)
    }

    /// The committed values.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// Minimum number of last values to keep; `None` if the run keeps all values.
    pub(crate) fn keep(&self) -> Option<u64> {
        self.template.keep
    }

    /// Commits a batch: writes the values, syncs them, writes and syncs the record, and publishes the values. Last, it
    /// punches the holes that two records confirm.
    pub(super) fn commit(&mut self, batch: &Batch) -> Result<()> {
        let before = self.journal.last().cloned();
        let discards = batch.may_discard(self.table.published(), self.keep());
        let states = |last: &Record| last.keep == self.keep() && last.too_large == batch.too_large;
        let is_committed = batch.values.is_empty() && before.as_ref().is_some_and(states);
        if is_committed && !discards {
            return Ok(());
        }
        self.digest(batch)?;
        self.table.write(&batch.values)?;
        self.sync_values()?;
        self.note_segment_end();
        if discards {
            self.write_discard_summary(batch.strategy.space)?;
        }
        self.append(self.record_of(batch))?;
        let discarded = self.discarded();
        self.table.refuse_discarded(discarded);
        self.table.publish()?;
        match before {
            Some(before) => self.punch_confirmed_holes(&before),
            None => Ok(()),
        }
    }

    /// Digests the values of a batch, which must not have changed since they were computed.
    fn digest(&mut self, batch: &Batch) -> Result<()> {
        let from = self.chain.count();
        self.chain.update(&batch.values);
        if self.chain.digest() != batch.computed_digest {
            return Err(Error::Flipped { what: "a value waiting to be written", from, to: self.chain.count() });
        }
        Ok(())
    }

    /// Makes the written values durable, before a record commits them.
    fn sync_values(&self) -> Result<()> {
        if fault::is("swap-syncs") {
            return Ok(()); // deliberate fault, see fault.rs
        }
        self.table.sync()
    }

    /// Remembers the digest of the values written so far, if they end a segment.
    fn note_segment_end(&mut self) {
        if self.chain.count().is_multiple_of(SEGMENT) {
            self.ends.insert(self.chain.count(), self.chain.digest());
        }
    }

    /// Returns the range of values that the next record lists as discarded.
    fn discarded(&self) -> Range<u64> {
        self.summary.as_ref().map_or(0..0, |(summary, _)| summary.discarded())
    }

    /// Returns the record that commits everything written.
    fn record_of(&self, batch: &Batch) -> Record {
        let Extent { values: count, escapes } = self.table.written();
        let mut record = Record {
            count,
            escapes,
            mask: batch.strategy.space.mask,
            position: batch.strategy.space.position,
            strategy: Some(batch.strategy.to_string()),
            kept: kept(count, &self.discarded()),
            snapshot: self.summary.as_ref().map(|(_, attached)| attached.clone()),
            too_large: batch.too_large,
            checks: batch.checks.clone(),
            suspect: batch.suspect,
            seconds: self.seconds(),
            ..self.template.clone()
        };
        fill(&mut record, &self.chain, batch.counted);
        record
    }

    /// Appends a record, durably, if the files still are what it describes.
    fn append(&mut self, record: Record) -> Result<()> {
        // As late as possible: a change between this check and the record goes unnoticed.
        self.table.check_unchanged()?;
        self.journal.append(record)?;
        if fault::is("swap-syncs") {
            self.table.sync()?; // deliberate fault, see fault.rs
        }
        Ok(())
    }

    /// Writes durable counts and a durable discard summary that also cover the published values which may now be
    /// discarded, up to the last segment end with a known digest. The next record names the summary, and so lists these
    /// values as discarded.
    ///
    /// # Errors
    /// [`Error::Damage`] if the digest of these values has changed; [`Error::Io`].
    fn write_discard_summary(&mut self, space: SparseSpace) -> Result<()> {
        let limit = self.keep().map_or(0, |keep| discardable_end(self.table.len(), keep));
        let new = || DiscardSummary::new(&self.template.run, space, RETAINED_HEAD);
        let mut summary = self.summary.as_ref().map_or_else(new, |(summary, _)| summary.clone());
        let from = summary.to;
        let last = self.ends.range(..=limit).next_back().filter(|(to, _)| **to > from);
        let Some((&to, &digest)) = last else { return Ok(()) };
        let Some(&before) = self.ends.get(&from) else { return Ok(()) };
        if let (None, Some(digest)) = (&summary.head, self.ends.get(&RETAINED_HEAD)) {
            let escapes = self.table.published().escapes_from(RETAINED_HEAD);
            summary.head = Some(Head { escapes, digest: digest.to_string() });
        }
        let mut chain = DigestChain::resume(from, before);
        let mut blocks = Vec::new();
        while summary.to < to {
            let (start, earlier) = (summary.to, summary.histogram.clone());
            for_each_piece(&self.table, start, start + BLOCK, |_, values| {
                chain.update(values);
                summary.see(space, values);
                Ok(())
            })?;
            blocks.push(BlockCounts::between(start, summary.to, &earlier, &summary.histogram));
        }
        if chain.digest() != digest {
            return Err(Error::Damage {
                path: self.table.path().into(),
                offset: HEADER + from * self.table.width().bytes(),
                damage: Damage::DiscardedValues { from, to },
            });
        }
        self.write_counts(from, &blocks)?;
        summary.digest = digest.to_string();
        let attached = summary.write(&self.dir)?;
        self.summary = Some((summary, attached));
        self.ends = self.ends.split_off(&to);
        Ok(())
    }

    /// Writes the counts of the values to be discarded, from n = `from` on.
    fn write_counts(&mut self, from: u64, blocks: &[BlockCounts]) -> Result<()> {
        let mut file = match self.counts.take() {
            Some(file) => file,
            None => CountsFile::open(&self.dir, from)?,
        };
        file.append(blocks)?;
        self.counts = Some(file);
        Ok(())
    }

    /// Punches holes for the values that the last record and the record `before` it both list as discarded, and removes
    /// the summaries that neither of them names.
    fn punch_confirmed_holes(&mut self, before: &Record) -> Result<()> {
        if self.keep().is_none() {
            return Ok(());
        }
        let confirmed_end = before.discarded().map_or(0, |discarded| discarded.end).min(self.table.discarded().end);
        if confirmed_end > self.punched {
            self.table.punch(self.punched..confirmed_end)?;
            self.punched = confirmed_end;
        }
        let last = self.journal.last().and_then(|last| last.snapshot.as_ref());
        let named: Vec<&Attached> = [before.snapshot.as_ref(), last].into_iter().flatten().collect();
        summary::remove_others(&self.dir, &named)
    }

    /// Ends the run cleanly: truncates the tables to the high-water mark and syncs them, then appends a `close` record.
    /// From that record on, the headers and the lengths of the files must agree with the journal.
    pub(crate) fn close(mut self) -> Result<()> {
        self.table.cut(self.journal.high_water_mark())?;
        let Some(last) = self.journal.last().cloned() else { return Ok(()) };
        if last.event != Event::Close {
            self.append(Record { event: Event::Close, ..last.clone() })?;
        }
        // The `close` record repeats the record before it, so the last two records list the same discarded values.
        self.punch_confirmed_holes(&last)
    }
}

/// Enters the digest and the statistics of all values into a record.
pub(crate) fn fill(record: &mut Record, chain: &DigestChain, counted: RecordStats) {
    record.digest = chain.digest().to_string();
    record.rares = counted.rares;
    record.last_rare = counted.last_rare;
    record.max_value = counted.max_value;
    record.max_at = counted.max_at;
}

#[cfg(test)]
mod tests;

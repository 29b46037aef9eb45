//! The files of a run that a process writes ([`Ledger`]), and the order in which a commit writes them.
//!
//! A commit loses nothing because of its order: it writes the values, makes them durable, writes the record, makes the
//! record durable, and only then publishes the values.
//!
//! With a limit on retained values (`--keep`), a commit may discard whole segments between the head ([`RETAINED_HEAD`])
//! and the last values. It hashes them a last time and writes their discard summary ([`crate::checkpoint::summary`]),
//! which is durable before the record that names it and lists the values as freed. From that record on the table
//! refuses to read them. Only when a second record lists them as well does the commit punch their hole and remove the
//! previous summary: if the last record is ever lost, the record before it still describes the files. After a kill
//! before the hole is punched, the next run punches it.
//!
//! While the solver computes values, a thread of its own runs the commits, one at a time and in order ([`Writer`]).
//! Until a commit ends, its values stay readable in the batch. The view that it publishes is handed back when it ends,
//! before the next commit starts, and so before a hole is punched into values that an older view would still read.
//!
//! Invariant: every hole lies within the ranges that the last two records both list as freed.

use crate::checkpoint::journal::{Attached, Checks, CommitPoint, Event, Journal, Record, kept};
use crate::checkpoint::summary::{self, DiscardSummary, RecordStats};
use crate::error::{Error, Result};
use crate::fault;
use crate::solver::SparseSpace;
use crate::storage::Dir;
use crate::table::digest::{Digest, DigestChain, SEGMENT, SMALL};
use crate::table::{Extent, HEADER, Published, Table};
use crate::theory::definition::{Sequence, for_each_piece};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Number of values from n = 0 on that are never discarded.
pub(crate) const RETAINED_HEAD: u64 = if SMALL { 1 << 16 } else { 1 << 26 };

/// Maximum number of values that a run with `--keep` holds besides the head and the values to keep: an incomplete
/// segment, a segment that waits for its second record, a segment in computation and a segment being written.
pub(crate) const RETENTION_SLACK: u64 = 4 * SEGMENT;

/// Returns the end of the range that may be discarded when the last `keep` of `count` values are kept. The range starts
/// at the end of the head.
fn free_end(count: u64, keep: u64) -> u64 {
    count.saturating_sub(keep) / SEGMENT * SEGMENT
}

/// Returns whether there are values that may be discarded but are not yet.
pub(crate) fn may_free(published: &Published, keep: Option<u64>) -> bool {
    keep.is_some_and(|keep| free_end(published.len(), keep) > RETAINED_HEAD.max(published.freed().end))
}

/// The input of one commit.
pub(crate) struct Batch {
    /// The values that follow the committed ones.
    pub(crate) values: Arc<Vec<u16>>,
    /// The digest of all values up to the end of `values`, updated as they were computed.
    pub(crate) computed_digest: Digest,
    /// The statistics of all values up to the end of `values`.
    pub(crate) counted: RecordStats,
    /// The sparse space in use.
    pub(crate) space: SparseSpace,
    /// Number of checks of each kind since the run was created, for the record.
    pub(crate) checks: Checks,
    /// The n whose value failed a check and has not been recomputed.
    pub(crate) suspect: Option<u64>,
    /// Number of last values that must stay readable; `None` if all must.
    pub(crate) lookback: Option<u64>,
}

/// The table, the journal and the discard summary of a run that this process writes.
pub(crate) struct Ledger {
    dir: Dir,
    journal: Journal,
    table: Table,
    chain: DigestChain,
    /// The fields that are equal in all records of this process.
    template: Record,
    /// The discard summary, with the name and hash by which the last record refers to it.
    snapshot: Option<(DiscardSummary, Attached)>,
    /// The known digests at segment ends, by n. Discarding values drops the entries below their end.
    ends: BTreeMap<u64, Digest>,
    /// The freed values below this n are known to be a hole.
    punched: u64,
    /// When this process began to compute. `template.seconds` counts the earlier processes.
    begun: Instant,
}

impl Ledger {
    /// Returns the ledger of files that have been verified. `chain` has digested the whole table, `points` are its
    /// commit points, and `template.keep` is the number of last values to keep from now on.
    pub(crate) fn new(
        dir: &Dir,
        journal: Journal,
        table: Table,
        chain: DigestChain,
        points: &[CommitPoint],
        snapshot: Option<DiscardSummary>,
        template: Record,
    ) -> Ledger {
        let ends = points.iter().filter(|p| p.count.is_multiple_of(SEGMENT)).map(|p| (p.count, p.digest));
        let snapshot = snapshot.zip(template.snapshot.clone());
        Ledger {
            dir: dir.clone(),
            journal,
            table,
            chain,
            template,
            snapshot,
            ends: ends.collect(),
            punched: RETAINED_HEAD,
            begun: Instant::now(),
        }
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

    /// Commits a batch in the order that loses nothing: write the values, sync them, write and sync the record, publish
    /// the values; last, punch the holes that two records confirm.
    fn commit(&mut self, batch: &Batch) -> Result<()> {
        let may_free =
            may_free(self.table.published(), self.keep()) && batch.lookback <= self.keep() && batch.lookback.is_some();
        let before = self.journal.last().cloned();
        let nothing_new = batch.values.is_empty() && before.as_ref().is_some_and(|last| last.keep == self.keep());
        if nothing_new && !may_free {
            return Ok(());
        }
        let from = self.chain.count();
        self.chain.update(&batch.values);
        if self.chain.digest() != batch.computed_digest {
            return Err(Error::Flipped { what: "a value waiting to be written", from, to: self.chain.count() });
        }
        self.table.write(&batch.values)?;
        let swapped = fault::is("swap-syncs"); // deliberate fault, see fault.rs
        if !swapped {
            self.table.sync()?;
        }
        let Extent { values: count, escapes } = self.table.written();
        if count.is_multiple_of(SEGMENT) {
            self.ends.insert(count, self.chain.digest());
        }
        if may_free {
            self.archive_and_discard(batch.space)?;
        }
        let freed = self.snapshot.as_ref().map_or(0..0, |(snapshot, _)| snapshot.freed());
        let mut record = Record {
            count,
            escapes,
            mask: batch.space.mask,
            position: batch.space.position,
            kept: kept(count, &freed),
            snapshot: self.snapshot.as_ref().map(|(_, attached)| attached.clone()),
            checks: batch.checks.clone(),
            suspect: batch.suspect,
            seconds: self.seconds(),
            ..self.template.clone()
        };
        fill(&mut record, &self.chain, batch.counted);
        // As late as possible: a change between this check and the record goes unnoticed.
        self.table.check_unchanged()?;
        self.journal.append(record)?;
        if swapped {
            self.table.sync()?;
        }
        self.table.free(freed);
        self.table.publish()?;
        match before {
            Some(before) => self.punch_confirmed_holes(&before),
            None => Ok(()),
        }
    }

    /// Writes a durable summary of the published values that may be discarded, up to the last segment end with a known
    /// digest.
    ///
    /// # Errors
    /// [`Error::Damage`] if the digest of these values has changed; [`Error::Io`].
    fn archive_and_discard(&mut self, space: SparseSpace) -> Result<()> {
        let limit = self.keep().map_or(0, |keep| free_end(self.table.len(), keep));
        let new = || DiscardSummary::new(&self.template.run, space, RETAINED_HEAD);
        let mut summary = self.snapshot.as_ref().map_or_else(new, |(summary, _)| summary.clone());
        let from = summary.to;
        let last = self.ends.range(..=limit).next_back().filter(|(to, _)| **to > from);
        let Some((&to, &digest)) = last else { return Ok(()) };
        let Some(&before) = self.ends.get(&from) else { return Ok(()) };
        let mut chain = DigestChain::resume(from, before);
        for_each_piece(&self.table, from, to, |_, values| {
            chain.update(values);
            summary.see(space, values);
            Ok(())
        })?;
        if chain.digest() != digest {
            return Err(Error::Damage {
                path: self.table.path().into(),
                offset: HEADER + from * self.table.width().bytes(),
                what: format!(
                    "the values {from}..{to}, which this commit would free, differ from the values that were written"
                ),
            });
        }
        summary.digest = digest.to_string();
        let attached = summary.write(&self.dir)?;
        self.snapshot = Some((summary, attached));
        self.ends = self.ends.split_off(&to);
        Ok(())
    }

    /// Punches holes for the values that the last record and the record `before` it both list as freed, and removes the
    /// summaries that neither of them names.
    fn punch_confirmed_holes(&mut self, before: &Record) -> Result<()> {
        if self.keep().is_none() {
            return Ok(());
        }
        let confirmed_end = before.freed().map_or(0, |freed| freed.end).min(self.table.freed().end);
        if confirmed_end > self.punched {
            self.table.punch(self.punched..confirmed_end)?;
            self.punched = confirmed_end;
        }
        let last = self.journal.last().and_then(|last| last.snapshot.as_ref());
        let named: Vec<&Attached> = [before.snapshot.as_ref(), last].into_iter().flatten().collect();
        summary::remove_others(&self.dir, &named)
    }

    /// Ends the run cleanly: truncates the files to the high-water mark, then appends a `close` record. From that
    /// record on, the headers and the lengths of the files must agree with the journal.
    pub(crate) fn close(mut self) -> Result<()> {
        self.table.close(self.journal.high_water_mark())?;
        let Some(last) = self.journal.last().cloned() else { return Ok(()) };
        if last.event != Event::Close {
            self.table.check_unchanged()?;
            self.journal.append(Record { event: Event::Close, ..last.clone() })?;
        }
        // The `close` record repeats the record before it, so the last two records list the same freed values.
        self.punch_confirmed_holes(&last)
    }
}

/// A ledger on a thread of its own, with at most one commit in flight.
pub(crate) struct Writer {
    keep: Option<u64>,
    published: Published,
    /// The values of the commit in flight.
    in_flight: Arc<Vec<u16>>,
    /// The buffer of the previous commit, reused because fresh memory must first be mapped page by page.
    spare: Vec<u16>,
    busy: bool,
    /// `None` when the thread shall end.
    orders: Option<SyncSender<Batch>>,
    done: Receiver<Result<Published>>,
    thread: Option<JoinHandle<Ledger>>,
}

impl Writer {
    /// Moves the ledger to a thread of its own.
    ///
    /// # Errors
    /// [`Error::Io`] if the system starts no thread.
    pub(crate) fn new(mut ledger: Ledger) -> Result<Writer> {
        let dir = ledger.dir.clone();
        let keep = ledger.keep();
        let published = ledger.table.published().clone();
        let (orders, inbox) = sync_channel::<Batch>(1);
        let (outbox, done) = channel();
        let work = move || {
            for batch in inbox {
                let result = ledger.commit(&batch).map(|()| ledger.table.published().clone());
                let failed = result.is_err();
                drop(batch); // `take_result` gets the buffer back only if no other reference is left
                if outbox.send(result).is_err() || failed {
                    break; // nothing is written after an error
                }
            }
            ledger
        };
        let thread = std::thread::Builder::new().name("commit".into()).spawn(work);
        let thread = Some(thread.map_err(Error::io("starting a thread for", dir.path()))?);
        Ok(Writer {
            keep,
            published,
            in_flight: Arc::default(),
            spare: Vec::new(),
            busy: false,
            orders: Some(orders),
            done,
            thread,
        })
    }

    /// Minimum number of last values to keep; `None` if the run keeps all values.
    pub(crate) fn keep(&self) -> Option<u64> {
        self.keep
    }

    /// The values whose commit has ended.
    pub(crate) fn published(&self) -> &Published {
        &self.published
    }

    /// The values that follow the published values, while their commit is in flight.
    pub(crate) fn in_flight(&self) -> &[u16] {
        &self.in_flight
    }

    /// Takes an empty buffer for the values of the next commit.
    pub(crate) fn take_spare(&mut self) -> Vec<u16> {
        std::mem::take(&mut self.spare)
    }

    /// Returns whether a commit is in flight. Only [`Writer::poll`] and [`Writer::wait`] notice its end.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy
    }

    /// Takes the result of the commit in flight if it has ended, without waiting.
    ///
    /// # Errors
    /// The error of the commit.
    pub(crate) fn poll(&mut self) -> Result<()> {
        match self.done.try_recv() {
            Ok(result) => self.take_result(result),
            Err(TryRecvError::Empty) => Ok(()),
            Err(TryRecvError::Disconnected) => self.resume_panic(),
        }
    }

    /// Waits for the commit in flight.
    ///
    /// # Errors
    /// The error of the commit.
    pub(crate) fn wait(&mut self) -> Result<()> {
        if !self.busy {
            return Ok(());
        }
        match self.done.recv() {
            Ok(result) => self.take_result(result),
            Err(_) => self.resume_panic(),
        }
    }

    /// Notes the end of the commit in flight and takes back its buffer.
    fn take_result(&mut self, result: Result<Published>) -> Result<()> {
        self.busy = false;
        self.published = result?;
        self.spare = Arc::into_inner(std::mem::take(&mut self.in_flight)).unwrap_or_default();
        self.spare.clear();
        Ok(())
    }

    /// Continues the panic of the thread, which ended without a result.
    fn resume_panic(&mut self) -> ! {
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            _ => panic!("the commit thread ended without a result"),
        }
    }

    /// Waits for the commit in flight, then starts the next one.
    ///
    /// # Errors
    /// The error of the commit that was in flight.
    pub(crate) fn commit(&mut self, batch: Batch) -> Result<()> {
        self.wait()?;
        self.in_flight = Arc::clone(&batch.values);
        self.busy = true;
        let is_sent = self.orders.as_ref().is_some_and(|orders| orders.send(batch).is_ok());
        if is_sent { Ok(()) } else { self.resume_panic() }
    }

    /// Waits for the commit in flight, then ends the run cleanly ([`Ledger::close`]).
    ///
    /// # Errors
    /// The error of the commit, or of [`Ledger::close`].
    pub(crate) fn close(mut self) -> Result<()> {
        self.wait()?;
        self.orders = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(ledger)) => ledger.close(),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(()),
        }
    }
}

impl Drop for Writer {
    /// Waits for the thread to end: after that nothing is written and the lock is free.
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
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
mod tests {
    use super::*;
    use crate::checkpoint::journal;
    use crate::storage::testing::{Faults, Memory, SECTOR};
    use crate::storage::{Mode, Storage};
    use crate::table;
    use crate::table::Width;
    use crate::theory::nimber::index;
    use crate::theory::rule::Rule;
    use std::ops::Range;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    /// The last record of a run that retains at least 1000 values behind the head.
    fn template(rule: &Rule, space: SparseSpace) -> Record {
        Record {
            event: Event::Commit,
            mask: space.mask,
            position: space.position,
            keep: Some(1000),
            ..Record::first(rule, Width::U8)
        }
    }

    /// Cuts the power after every operation of the commits that discard a segment. In every image, the values that the
    /// last record lists as kept are in the table, and the summary that it names covers exactly the values that it
    /// lists as freed.
    #[test]
    fn power_cut_during_discard_leaves_files_that_match_the_journal() {
        const FREED: Range<u64> = RETAINED_HEAD..RETAINED_HEAD + SEGMENT;
        let rule: Rule = "grundy".parse().unwrap();
        let space = SparseSpace::new(&rule, 0x1fe, 0).unwrap();
        // Common values only; 0, which a hole reads as, is not among them.
        let common: Vec<u16> = (1..256).filter(|&v| !space.is_rare(v, 1)).collect();
        let value = move |n: u64| common[index(n) % common.len()];
        let disk = Memory::new();
        let watching = Arc::new(AtomicBool::new(false));
        let images = Arc::new(AtomicU64::new(0));
        let seed = AtomicU64::new(1);
        let watch = {
            let disk = disk.clone();
            let watching = Arc::clone(&watching);
            let images = Arc::clone(&images);
            let value = value.clone();
            move |_| {
                if !watching.load(Ordering::SeqCst) {
                    return;
                }
                let mut choose = |bound| {
                    let next = seed.load(Ordering::SeqCst).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(11);
                    seed.store(next, Ordering::SeqCst);
                    (next >> 33) % bound
                };
                let image: Arc<dyn Storage> = Arc::new(disk.image(SECTOR, &mut choose));
                let dir = Dir::on(image, Path::new("image"));
                let last = journal::read(&dir).unwrap().last;
                let freed = last.freed().unwrap();
                assert_eq!(DiscardSummary::read(&dir, &last).unwrap().map_or(0..0, |s| s.freed()), freed);
                let file = dir.open(table::VALUES, Mode::Read).unwrap();
                let edges = [FREED.start, FREED.end - 1, FREED.end, last.count - 1];
                for n in (0..last.count).step_by(40_009).chain(edges).filter(|&n| n < last.count) {
                    let mut byte = [0];
                    file.read_exact_at(&mut byte, HEADER + n).unwrap();
                    assert!(freed.contains(&n) || u16::from(byte[0]) == value(n), "G({n}) = {} is kept", byte[0]);
                }
                images.fetch_add(1, Ordering::SeqCst);
            }
        };
        let dir = Dir::on(Arc::new(Faults::watched(Arc::new(disk.clone()), watch)), Path::new("run"));
        let journal = Journal::open(&dir).unwrap().0;
        let table = Table::create(&dir, Width::U8).unwrap();
        let mut ledger = Ledger::new(&dir, journal, table, DigestChain::new(), &[], None, template(&rule, space));
        let mut chain = DigestChain::new();
        for length in [SEGMENT; 5].into_iter().chain([2000; 4]) {
            watching.store(length < SEGMENT, Ordering::SeqCst);
            let values: Vec<u16> = (chain.count()..chain.count() + length).map(&value).collect();
            chain.update(&values);
            let batch = Batch {
                values: Arc::new(values),
                computed_digest: chain.digest(),
                counted: RecordStats::default(),
                space,
                checks: Checks::default(),
                suspect: None,
                lookback: Some(1000),
            };
            ledger.commit(&batch).unwrap();
        }
        ledger.close().unwrap();
        let mut hole = [7; 4096];
        dir.open(table::VALUES, Mode::Read).unwrap().read_exact_at(&mut hole, HEADER + FREED.start).unwrap();
        assert_eq!(hole, [0; 4096], "the segment was freed");
        assert!(images.load(Ordering::SeqCst) > 40);
    }
}

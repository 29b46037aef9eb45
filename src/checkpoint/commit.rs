//! What a run has on the disk, and the order of a commit that loses nothing.
//!
//! Values, their durability, the record, its durability, and only then are they published. With `--keep`, whole segments
//! between the head ([`RETAINED_HEAD`]) and the last values are freed in an order that loses nothing either: they are hashed a last
//! time, and what is known of them goes into a snapshot ([`crate::checkpoint::summary`]), durable before the record that names it and
//! says that they are freed. From then on they are refused, but their hole is punched, and the snapshot before is removed,
//! only when a second record says the same: if the last record is ever lost, the one before it still tells the truth. A
//! kill before the hole is punched leaves it to the next run, which punches it again.
//!
//! While values are computed, commits run on a thread of their own ([`Writer`]), one at a time and in order. What is in
//! flight is readable where it came from; what is published is handed back when the commit has ended, before the next one
//! starts, and so before a hole is punched into what an older view would still read.
//!
//! Invariant: a hole is part of what the last two records say is freed.

use crate::checkpoint::journal::{Attached, CommitPoint, Event, Journal, Record, kept};
use crate::checkpoint::summary::{self, DiscardSummary, RecordStats};
use crate::error::{Error, Result};
use crate::fault;
use crate::solver::SparseSpace;
use crate::storage::Dir;
use crate::table::digest::{Digest, DigestChain, SEGMENT, SMALL};
use crate::table::{HEADER, Published, Table};
use crate::theory::definition::{Sequence, for_each_piece};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Values that a run keeps from the start, whatever is freed.
pub(crate) const RETAINED_HEAD: u64 = if SMALL { 1 << 16 } else { 1 << 26 };

/// Values that a run with `--keep` may hold besides the head and those that are to be kept: a segment that is not whole,
/// one that waits for its second record, one that is being computed, one that is being written.
pub(crate) const RETENTION_SLACK: u64 = 4 * SEGMENT;

/// The values up to here, but for the head, may be freed of `count` when the last `keep` are kept.
fn free_end(count: u64, keep: u64) -> u64 {
    count.saturating_sub(keep) / SEGMENT * SEGMENT
}

/// Whether values could be freed that are not.
pub(crate) fn may_free(published: &Published, keep: Option<u64>) -> bool {
    keep.is_some_and(|keep| free_end(published.len(), keep) > RETAINED_HEAD.max(published.freed().end))
}

/// What is to be committed.
pub(crate) struct Batch {
    /// The values that follow the committed ones.
    pub(crate) values: Arc<Vec<u16>>,
    /// The digest of all values, these included, taken when each was computed.
    pub(crate) computed_digest: Digest,
    /// Counted over all values, these included.
    pub(crate) counted: RecordStats,
    /// The space in use.
    pub(crate) space: SparseSpace,
    /// The checks of the record.
    pub(crate) checks: BTreeMap<String, u64>,
    /// The n whose value failed a check and has not been recomputed.
    pub(crate) suspect: Option<u64>,
    /// How many of the last values must stay readable; `None` for all.
    pub(crate) lookback: Option<u64>,
}

/// Table, journal and snapshot of a run that this process writes.
pub(crate) struct Ledger {
    dir: Dir,
    journal: Journal,
    table: Table,
    chain: DigestChain,
    /// What is the same in all records of this process.
    template: Record,
    /// What is known of the freed values, and how the last record names it.
    snapshot: Option<(DiscardSummary, Attached)>,
    /// The digests at ends of segments that are not freed.
    ends: BTreeMap<u64, Digest>,
    /// Freed values before this one are known to be a hole.
    punched: u64,
    /// When this process began to compute; the template has the seconds of the processes before it.
    begun: Instant,
}

impl Ledger {
    /// Takes up what was checked: `chain` has digested the table, `points` speak of it, `template.keep` is what shall be
    /// kept from now on.
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

    /// Computing time of the run over all processes, in whole seconds.
    fn seconds(&self) -> u64 {
        let here = (self.begun.elapsed() + Duration::from_millis(500)).as_secs();
        self.template.seconds.saturating_add(here)
    }

    /// The committed values.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// How many of the last values are kept at least.
    pub(crate) fn keep(&self) -> Option<u64> {
        self.template.keep
    }

    /// The order that loses nothing: data, data durable, record, record durable, published; then what is freed.
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
            return Err(Error::Flipped { what: "what waited to be written", from, to: self.chain.count() });
        }
        self.table.write(&batch.values)?;
        let swapped = fault::is("swap-syncs"); // deliberate fault, see fault.rs
        if !swapped {
            self.table.sync()?;
        }
        let (count, escapes) = self.table.written();
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
        self.table.check_unchanged()?; // as late as can be: between this and the record nobody notices
        self.journal.append(record)?;
        if swapped {
            self.table.sync()?;
        }
        self.table.free(freed);
        self.table.publish()?;
        before.map_or(Ok(()), |before| self.punch_confirmed_holes(&before))
    }

    /// Puts what is known of values that may be freed into a durable snapshot. They are among the published ones.
    fn archive_and_discard(&mut self, space: SparseSpace) -> Result<()> {
        let limit = self.keep().map_or(0, |keep| free_end(self.table.len(), keep));
        let new = || DiscardSummary::new(&self.template.run, space, RETAINED_HEAD);
        let mut snapshot = self.snapshot.as_ref().map_or_else(new, |(snapshot, _)| snapshot.clone());
        let from = snapshot.to;
        let last = self.ends.range(..=limit).next_back().filter(|(to, _)| **to > from);
        let (Some(before), Some((&to, &digest))) = (self.ends.get(&from), last) else { return Ok(()) };
        let mut chain = DigestChain::resume(from, *before);
        for_each_piece(&self.table, from, to, |_, values| {
            chain.update(values);
            snapshot.see(space, values);
            Ok(())
        })?;
        if chain.digest() != digest {
            return Err(Error::Damage {
                path: self.table.path().into(),
                offset: HEADER + from * self.table.width().bytes(),
                what: format!("the values {from}..{to}, which were to be freed, are no longer those that were written"),
            });
        }
        snapshot.digest = digest.to_string();
        let attached = snapshot.write(&self.dir)?;
        self.snapshot = Some((snapshot, attached));
        self.ends = self.ends.split_off(&to);
        Ok(())
    }

    /// Gives up what the last record and the one before it say is freed.
    fn punch_confirmed_holes(&mut self, before: &Record) -> Result<()> {
        if self.keep().is_none() {
            return Ok(());
        }
        let twice = before.freed().map_or(0, |freed| freed.end).min(self.table.freed().end);
        if twice > self.punched {
            self.table.punch(self.punched..twice)?;
            self.punched = twice;
        }
        let last = self.journal.last().and_then(|last| last.snapshot.as_ref());
        let named: Vec<&Attached> = [before.snapshot.as_ref(), last].into_iter().flatten().collect();
        summary::remove_others(&self.dir, &named)
    }

    /// Ends the run cleanly, and then says so in the journal: from then on headers and lengths are what it says.
    pub(crate) fn close(mut self) -> Result<()> {
        self.table.close(self.journal.high_water_mark())?;
        let Some(last) = self.journal.last().cloned() else { return Ok(()) };
        if last.event != Event::Close {
            self.table.check_unchanged()?;
            self.journal.append(Record { event: Event::Close, ..last.clone() })?;
        }
        // A clean stop repeats the record before it, so two say the same in either case.
        self.punch_confirmed_holes(&last)
    }
}

/// A ledger on a thread of its own, with at most one commit in flight.
pub(crate) struct Writer {
    keep: Option<u64>,
    published: Published,
    /// The values that are being committed.
    in_flight: Arc<Vec<u16>>,
    /// Room of those before: fresh memory for so many took 1 to 2 % of the time.
    spare: Vec<u16>,
    busy: bool,
    /// `None` once the thread is to end.
    orders: Option<SyncSender<Batch>>,
    done: Receiver<Result<Published>>,
    thread: Option<JoinHandle<Ledger>>,
}

impl Writer {
    /// Gives the ledger a thread.
    pub(crate) fn new(mut ledger: Ledger) -> Result<Writer> {
        let (dir, keep, published) = (ledger.dir.clone(), ledger.keep(), ledger.table.published().clone());
        let (orders, inbox) = sync_channel::<Batch>(1);
        let (outbox, done) = channel();
        let work = move || {
            for batch in inbox {
                let result = ledger.commit(&batch).map(|()| ledger.table.published().clone());
                let failed = result.is_err();
                drop(batch); // whoever hears of it may take its values back
                if outbox.send(result).is_err() || failed {
                    break; // after an error nothing is written any more
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

    /// How many of the last values are kept at least.
    pub(crate) fn keep(&self) -> Option<u64> {
        self.keep
    }

    /// The values whose commit has ended.
    pub(crate) fn published(&self) -> &Published {
        &self.published
    }

    /// The values that follow, whose commit has not.
    pub(crate) fn in_flight(&self) -> &[u16] {
        &self.in_flight
    }

    /// Room for the values of the next commit.
    pub(crate) fn take_spare(&mut self) -> Vec<u16> {
        std::mem::take(&mut self.spare)
    }

    /// Whether a commit is in flight, as far as [`Writer::poll`] has seen.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy
    }

    /// Takes note of a commit that has ended; its error is the run's.
    pub(crate) fn poll(&mut self) -> Result<()> {
        match self.done.try_recv() {
            Ok(result) => self.ended(result),
            Err(TryRecvError::Empty) => Ok(()),
            Err(TryRecvError::Disconnected) => self.gone(),
        }
    }

    /// Waits for the commit in flight.
    pub(crate) fn wait(&mut self) -> Result<()> {
        match self.busy.then(|| self.done.recv()) {
            None => Ok(()),
            Some(Ok(result)) => self.ended(result),
            Some(Err(_)) => self.gone(),
        }
    }

    fn ended(&mut self, result: Result<Published>) -> Result<()> {
        self.busy = false;
        self.published = result?;
        self.spare = Arc::into_inner(std::mem::take(&mut self.in_flight)).unwrap_or_default();
        self.spare.clear();
        Ok(())
    }

    /// The thread ended without an answer: it panicked.
    fn gone(&mut self) -> ! {
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            _ => panic!("the thread of the commits has ended"),
        }
    }

    /// Starts a commit, after the one before it has ended.
    pub(crate) fn commit(&mut self, batch: Batch) -> Result<()> {
        self.wait()?;
        self.in_flight = Arc::clone(&batch.values);
        self.busy = true;
        let is_sent = self.orders.as_ref().is_some_and(|orders| orders.send(batch).is_ok());
        if is_sent { Ok(()) } else { self.gone() }
    }

    /// Waits for the commit in flight, and ends the run cleanly.
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
    /// Waits for the thread, so that nothing is written any more and the lock is free.
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Enters what is known of all values into a record.
pub(crate) fn fill(record: &mut Record, chain: &DigestChain, counted: RecordStats) {
    record.digest = chain.digest().to_string();
    (record.rares, record.last_rare) = (counted.rares, counted.last_rare);
    (record.max_value, record.max_at) = (counted.max_value, counted.max_at);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::journal;
    use crate::storage::faults::Faults;
    use crate::storage::memory::Memory;
    use crate::storage::{Mode, Storage};
    use crate::table;
    use crate::table::Width;
    use crate::theory::nimber::index;
    use crate::theory::rule::Rule;
    use std::ops::Range;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    /// A power cut after every operation of the commits that free a segment: what the journal then says is kept is there,
    /// and what it says is freed is told by the snapshot that it names.
    #[test]
    fn a_power_cut_while_values_are_freed_leaves_what_the_journal_says() {
        const FREED: Range<u64> = RETAINED_HEAD..RETAINED_HEAD + SEGMENT;
        let rule: Rule = "grundy".parse().unwrap();
        let space = SparseSpace::new(&rule, 0x1fe, 0).unwrap();
        // None is rare, and none is what a hole reads as.
        let common: Vec<u16> = (1..256).filter(|&v| !space.is_rare(v, 1)).collect();
        let value = move |n: u64| common[index(n) % common.len()];
        let disk = Memory::new();
        let (watching, tried, seed) =
            (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)), AtomicU64::new(1));
        let watch = {
            let (disk, watching, tried, value) =
                (disk.clone(), Arc::clone(&watching), Arc::clone(&tried), value.clone());
            move |_| {
                if !watching.load(Ordering::SeqCst) {
                    return;
                }
                let mut choose = |bound| {
                    let next = seed.load(Ordering::SeqCst).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(11);
                    seed.store(next, Ordering::SeqCst);
                    (next >> 33) % bound
                };
                let image: Arc<dyn Storage> = Arc::new(disk.image(crate::storage::memory::SECTOR, &mut choose));
                let dir = Dir::on(image, Path::new("image"));
                let last = journal::read_in(&dir).unwrap().last;
                let freed = last.freed().unwrap();
                assert_eq!(DiscardSummary::read_in(&dir, &last).unwrap().map_or(0..0, |s| s.freed()), freed);
                let file = dir.open(table::VALUES, Mode::Read).unwrap();
                let places = [FREED.start, FREED.end - 1, FREED.end, last.count - 1];
                for n in (0..last.count).step_by(40_009).chain(places).filter(|&n| n < last.count) {
                    let mut byte = [0];
                    file.read_exact_at(&mut byte, HEADER + n).unwrap();
                    assert!(freed.contains(&n) || u16::from(byte[0]) == value(n), "G({n}) = {} is kept", byte[0]);
                }
                tried.fetch_add(1, Ordering::SeqCst);
            }
        };
        let dir = Dir::on(Arc::new(Faults::watched(Arc::new(disk.clone()), watch)), Path::new("run"));
        let journal = Journal::open_in(&dir).unwrap().0;
        let table = Table::create_in(&dir, Width::U8).unwrap();
        let text = |length: usize| "0".repeat(length);
        let template = Record {
            format: journal::FORMAT,
            run: text(32),
            game: rule.name().into(),
            rule: text(64),
            sequence: 0,
            event: Event::Commit,
            count: 0,
            escapes: 0,
            width: Width::U8,
            mask: space.mask,
            position: space.position,
            kept: Vec::new(),
            keep: Some(1000),
            snapshot: None,
            digest: text(64),
            rares: 0,
            last_rare: 0,
            max_value: 0,
            max_at: 0,
            checks: BTreeMap::new(),
            errors: 0,
            suspect: None,
            kernel: text(0),
            program: text(0),
            time: text(0),
            seconds: 0,
            previous: text(0),
            blake3: text(0),
        };
        let mut ledger = Ledger::new(&dir, journal, table, DigestChain::new(), &[], None, template);
        let mut chain = DigestChain::new();
        for length in [SEGMENT; 5].into_iter().chain([2000; 4]) {
            watching.store(length < SEGMENT, Ordering::SeqCst);
            let values: Vec<u16> = (chain.count()..chain.count() + length).map(&value).collect();
            chain.update(&values);
            let (computed_digest, counted) = (chain.digest(), RecordStats::default());
            let values = Arc::new(values);
            let batch = Batch {
                values,
                computed_digest,
                counted,
                space,
                checks: BTreeMap::new(),
                suspect: None,
                lookback: Some(1000),
            };
            ledger.commit(&batch).unwrap();
        }
        ledger.close().unwrap();
        let mut hole = [7; 4096];
        dir.open(table::VALUES, Mode::Read).unwrap().read_exact_at(&mut hole, HEADER + FREED.start).unwrap();
        assert_eq!(hole, [0; 4096], "the segment was freed");
        assert!(tried.load(Ordering::SeqCst) > 40);
    }
}

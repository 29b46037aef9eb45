//! Resumes a run: loads the journal, verifies the table against it, repairs or rolls back, and starts the solver.

use super::admission::{RoomRequest, check_keep, check_room};
use super::context::{Context, Prepared};
use super::main_loop::OpenRun;
use super::observer::{Observer, Opening, Outcome, Progress};
use super::reader::{known_space, rule_of, space_of};
use super::rehash::{Rehash, VerifiedTable};
use super::repair::{Damaged, open_at};
use super::spot_checks;
use super::spot_checks::SpotChecks;
use crate::checkpoint::commit::{Committer, RETAINED_HEAD, fill};
use crate::checkpoint::journal::{Check, CommitPoint, Contents, Event, Journal, Record, UNKNOWN_KERNEL, kept};
use crate::checkpoint::summary::DiscardSummary;
use crate::checkpoint::writer::Writer;
use crate::error::{Damage, Error, Result};
use crate::solver::{self, Solver};
use crate::storage::Dir;
use crate::table::digest::SEGMENT;
use crate::table::{self, Extent, HEADER, Table, Width, files};
use crate::theory::definition::Sequence;
use crate::theory::rule::Rule;
use std::ops::Range;

/// Resumes the run of a journal: load, verify, repair, recover, start. docs/DURABILITY.md lists what is done in each
/// state of the journal and the table.
///
/// Before it verifies the table, a resume changes only this: it rewrites the last record with the same bytes; with
/// `keep`, it writes and removes the file `holes.tmp`; it creates missing table files, empty; with `rollback`, it
/// replaces a table file that is shorter than its header by an empty one. Two actions change committed bytes. A
/// repair restores what the journal states. A rollback quarantines the first values that disagree, and records that
/// before anything is overwritten.
pub(super) fn resume(context: &mut Context, journal: Journal, contents: Contents) -> Result<Prepared> {
    let mut recovery = Recovery::load(context, journal, contents)?;
    let table = recovery.open_table()?;
    let Some(verified) = recovery.verify(&table)? else { return Ok(recovery.end(true)) };
    if !recovery.context.options.rollback {
        table.check_headers()?;
        recovery.note_missing_records(&table);
    }
    let Some((table, mut verified)) = recovery.repair(table, verified)? else { return Ok(recovery.end(true)) };
    let wrong = recovery.check_suspect(&table, &mut verified)?;
    if recovery.agrees_with_journal(&verified) {
        recovery.accept(&table, &verified)?;
        return recovery.start(table, verified);
    }
    let disagreement = recovery.retreat(verified.good);
    if !recovery.context.options.rollback {
        return Err(recovery.refusal(&table, disagreement.next));
    }
    let Some((table, verified)) = recovery.roll_back(table, disagreement, wrong)? else {
        return Ok(recovery.end(true));
    };
    recovery.start(table, verified)
}

/// A run between the opening of its journal and its first new value.
struct Recovery<'c, 'a> {
    context: &'c mut Context<'a>,
    rule: Rule,
    journal: Journal,
    /// The journal as it was found, and the head that the summary states among its points.
    contents: Contents,
    /// The record that the next one continues.
    last: Record,
    /// The commit points that the run can go back to, ascending.
    points: Vec<CommitPoint>,
    /// What is known of the discarded values.
    summary: Option<DiscardSummary>,
    /// Number of ranges of values that were computed again and restored, and that no record counts yet.
    repaired: u64,
}

impl<'c, 'a> Recovery<'c, 'a> {
    /// Reads what the journal states, and refuses what cannot succeed before any file is opened for writing.
    fn load(context: &'c mut Context<'a>, journal: Journal, mut contents: Contents) -> Result<Recovery<'c, 'a>> {
        let (dir, options) = (context.dir, context.options);
        let mut last = contents.last.clone();
        let rule = rule_of(dir.path(), &last)?;
        if let Some(width) = options.width.filter(|&width| width != last.width) {
            let (found, expected) = (last.width.name().into(), width.name().into());
            return Err(Error::Mismatch { path: dir.path().into(), what: "the width of the table", found, expected });
        }
        last.keep = options.keep.or(last.keep);
        if let Some(keep) = last.keep {
            // Without a space every position counts as rare, and the solver has no lookback yet.
            let last_rare = known_space(&rule, &last).map_or(0, |_| last.last_rare);
            check_keep(dir.path(), &rule, options, keep, last_rare)?;
            table::check_holes(dir)?;
        }
        let summary = match DiscardSummary::read(dir, &last) {
            Err(Error::Damage { .. }) if options.rollback => None,
            read => read?,
        };
        if let Some(summary) = &summary {
            summary.add_head(&mut contents.points);
        }
        let lookback = solver::lookback(&rule, last.last_rare);
        let is_head_lost = is_head_lost(&last, &contents.points);
        let keep = last.keep.filter(|_| !is_head_lost);
        let request = RoomRequest { to: options.to, keep, width: last.width, lookback };
        let room = check_room(dir, &request, Some(&contents.last))?;
        context.observer.opened(&Opening::new(&rule, dir, options, last.count, room));
        let points = contents.points.clone();
        let mut recovery = Recovery { context, rule, journal, contents, last, points, summary, repaired: 0 };
        recovery.drop_unusable_points();
        if is_head_lost {
            recovery.note_lost_head();
        }
        Ok(recovery)
    }

    /// Notes that no values are discarded, because the record that stated the digest of the head was lost.
    fn note_lost_head(&mut self) {
        let path = self.context.dir.path().display();
        let note = format!(
            "{path}: no values are freed: the journal record at {RETAINED_HEAD} values was lost, and without its digest \
             none can be"
        );
        self.context.observer.warn(&note);
    }

    /// Drops the last points to which the run cannot go back, because the solver would need discarded values from
    /// there.
    fn drop_unusable_points(&mut self) {
        let discarded = self.contents.last.discarded().unwrap_or(0..0);
        let lookback = solver::lookback(&self.rule, self.contents.last.last_rare);
        let has_summary = self.summary.is_some();
        let has_head = self.points.iter().any(|point| point.count == discarded.start);
        let is_usable = |point: &CommitPoint| {
            discarded.is_empty()
                || point.count <= discarded.start
                || (has_summary && has_head && point.count >= discarded.end.saturating_add(lookback))
        };
        while self.points.last().is_some_and(|last| !is_usable(last)) {
            self.points.pop();
        }
        if self.points.last().is_none_or(|last| last.count <= discarded.start) {
            self.summary = None;
        }
    }

    /// Opens the table at the last point whose values can be there; without `rollback`, that must be the last of all.
    fn open_table(&mut self) -> Result<Table> {
        let rollback = self.context.options.rollback;
        make_missing_files(self.context.dir, &self.contents, rollback, self.context.observer)?;
        loop {
            match self.reopen_table() {
                Err(Error::Damage { .. }) if rollback && !self.points.is_empty() => {
                    self.points.pop();
                    self.drop_unusable_points();
                }
                opened => return opened,
            }
        }
    }

    fn reopen_table(&self) -> Result<Table> {
        open_at(self.context.dir, &self.last, self.points.last(), self.summary.as_ref())
    }

    /// Hashes the table and compares it with every point; `None` if the run was stopped.
    fn verify(&mut self, table: &Table) -> Result<Option<VerifiedTable>> {
        let space = space_of(&self.rule, &self.last);
        let rehash = Rehash { table, points: &self.points, summary: self.summary.as_ref(), space };
        rehash.run(self.context.observer, self.context.stop)
    }

    /// Whether the table agrees with every usable commit point, and the last of them is that of the last record.
    fn agrees_with_journal(&self, verified: &VerifiedTable) -> bool {
        verified.good == self.points.len() && self.points.last().map(|point| point.count) == Some(self.last.count)
    }

    /// Recomputes values that disagree with the journal, commit by commit, until all agree or one cannot be repaired;
    /// `None` if the run was stopped, after a record of what was restored. If the run is then refused or the process is
    /// killed, the restored bytes stay, and no record mentions them.
    fn repair(&mut self, table: Table, verified: VerifiedTable) -> Result<Option<(Table, VerifiedTable)>> {
        // A damaged journal needs `rollback`. Values that can be repaired are repaired all the same.
        let may_repair = self.context.policy.repair && (!self.context.options.rollback || self.journal.is_damaged());
        let (mut table, mut verified) = (table, verified);
        while may_repair && !self.agrees_with_journal(&verified) {
            let Some(wrong) = self.points.get(verified.good) else { break };
            drop(table);
            let before = &self.points[..verified.good];
            let damaged = Damaged { last: &self.last, before, wrong, chain: &verified.chain };
            let is_restored = damaged.repair(&self.rule, self.summary.as_ref(), self.context)?;
            table = self.reopen_table()?;
            let Some(again) = self.verify(&table)? else {
                self.repaired += u64::from(is_restored);
                self.record_repairs_before_stop(&table)?;
                return Ok(None);
            };
            let agrees_further = again.good > verified.good;
            verified = again;
            if !is_restored || !agrees_further {
                break;
            }
            self.repaired += 1;
        }
        Ok(Some((table, verified)))
    }

    /// Warns if a header states more values than the journal. A header is updated after the record is durable. So
    /// either records are missing, for example because the journal was restored from an older copy, or a power cut
    /// left a header that mixes an old and a new shape. After a rollback there is no warning, because a kill can
    /// leave a header that is older than the record.
    fn note_missing_records(&mut self, table: &Table) {
        let count = self.last.count;
        if let Ok(Extent { values, .. }) = table.header_shapes()
            && values > count
            && self.last.event != Event::Rollback
        {
            self.context.observer.warn(&format!(
                "{}: the header states {values} values, the last record of the journal {count}; records may be \
                 missing, and the values from n = {count} on are computed again",
                table.path().display()
            ));
        }
    }

    /// Recomputes a suspect value by the definition. A committed wrong value agrees with the journal, but every value
    /// that is computed from it may be wrong as well. With `rollback`, `verified` ends before a wrong value, whose n is
    /// returned.
    fn check_suspect(&mut self, table: &Table, verified: &mut VerifiedTable) -> Result<Option<u64>> {
        let agreed = self.points[..verified.good].last().map_or(0, |point| point.count);
        let Some(n) = self.last.suspect.filter(|&n| n < agreed) else { return Ok(None) };
        if !table.discarded().is_empty() {
            let what = format!("G({n}) is suspect, but recomputing it needs all values, and some are freed");
            self.context.observer.warn(&what);
            return Ok(None);
        }
        match spot_checks::compare(&self.rule, table, n) {
            Ok(()) => {
                self.last.suspect = None;
                Ok(None)
            }
            Err(Error::Differs { .. }) if self.context.options.rollback => {
                verified.good = self.points.partition_point(|point| point.count <= n);
                Ok(Some(n))
            }
            Err(Error::Differs { value, again, .. }) => Err(Error::Damage {
                path: table.path().into(),
                offset: HEADER + n * self.last.width.bytes(),
                damage: Damage::WrongSuspect { n, value, expected: again },
            }),
            Err(other) => Err(other),
        }
    }

    /// Accepts a table that agrees with the journal: compares the counters of the last record, drops what follows the
    /// last good record, and records repairs. With `rollback`, a record with the counters of the table follows one with
    /// false counters.
    fn accept(&mut self, table: &Table, verified: &VerifiedTable) -> Result<()> {
        let has_false_counters = !verified.counted.agrees(&self.last);
        if has_false_counters {
            let error = self.journal.last_record_damaged(verified.counted.mismatch_with(&self.last));
            if !self.context.options.rollback {
                return Err(error);
            }
            self.context.observer.warn(&format!("{error}; the next record states the counters of the table"));
            fill(&mut self.last, &verified.chain, verified.counted);
        }
        if self.journal.is_damaged() {
            // A rollback to the same count states the damage, and counts the repairs.
            self.last.event = Event::Rollback;
            self.count_repairs();
            table.write_headers()?; // see `record`
            return self.replace_damage();
        }
        self.drop_torn_tail()?;
        if has_false_counters {
            self.last.errors = self.last.errors.saturating_add(1);
            return self.record(Event::Rollback, table);
        }
        if self.repaired > 0 { self.record(Event::Repair, table) } else { Ok(()) }
    }

    /// Records what this resume has restored, because the next process will find nothing to restore. Repairs beside a
    /// damaged journal are not recorded.
    fn record_repairs_before_stop(&mut self, table: &Table) -> Result<()> {
        if self.repaired == 0 || self.journal.is_damaged() {
            return Ok(());
        }
        self.drop_torn_tail()?;
        self.record(Event::Repair, table)
    }

    /// Appends a record of the same count, which states what this resume has restored or corrected.
    ///
    /// The headers may state the count of the last record or of the one before. They are written first: after the
    /// append, that earlier record would be the third last, whose count a header must not state.
    fn record(&mut self, event: Event, table: &Table) -> Result<()> {
        table.write_headers()?;
        self.last.event = event;
        self.count_repairs();
        self.journal.append(self.last.clone())
    }

    /// Counts the repairs of this resume in the next record, each once.
    fn count_repairs(&mut self) {
        let repaired = std::mem::take(&mut self.repaired);
        if repaired > 0 {
            self.last.errors = self.last.errors.saturating_add(repaired);
            self.last.checks.add(Check::Repaired, repaired);
        }
    }

    /// Truncates a journal that is not damaged to its good records.
    fn drop_torn_tail(&mut self) -> Result<()> {
        if let Some(offset) = self.contents.torn {
            let note = format!("the journal ends with an incomplete record at byte {offset}; it is dropped");
            self.context.observer.note(&note);
        }
        self.journal.end_at_good_records().map(drop)
    }

    /// Replaces a damaged journal by one with the records that can follow each other, then the next record, which
    /// counts the damage as an error.
    fn replace_damage(&mut self) -> Result<()> {
        let good = self.journal.last().map_or(0, |last| last.sequence + 1);
        let later = self.contents.last.sequence + 1 - good;
        self.last.errors = self.last.errors.saturating_add(1);
        if self.last.kernel == UNKNOWN_KERNEL {
            self.last.kernel = self.context.options.method.name().into(); // the record adds no values
        }
        let name = self.journal.replace_damage(self.last.clone())?;
        let kept = if later > 0 { ", and the records after it are kept" } else { "" };
        let count = self.last.count;
        let note = format!(
            "the journal was damaged: everything from the damage on is copied to {name}{kept}; the run continues from \
             {count} values"
        );
        self.context.observer.warn(&note);
        Ok(())
    }

    /// Drops the points from number `good` on, with those before them to which the run cannot go back.
    fn retreat(&mut self, good: usize) -> Disagreement {
        let next = self.points.get(good).map_or(self.last.count, |point| point.count);
        self.points.truncate(good);
        let discarded = self.contents.last.discarded().unwrap_or(0..0);
        let (values, escapes) = first_wrong(&self.contents.points, self.points.last(), &discarded);
        self.drop_unusable_points();
        Disagreement { values, escapes, next }
    }

    /// The number of values at the last remaining point.
    fn remaining(&self) -> u64 {
        self.points.last().map_or(0, |point| point.count)
    }

    /// Returns the error of a refused run: values or escapes up to `next` disagree with the journal.
    fn refusal(&self, table: &Table, next: u64) -> Error {
        let count = self.remaining();
        let escapes_of = |point: Option<&CommitPoint>| point.map_or(0, |point| point.escapes);
        let refused = self.contents.points.iter().find(|point| point.count == next);
        let (path, offset) = match table.check_some_escapes(escapes_of(self.points.last())..escapes_of(refused)) {
            Err(Error::Damage { path, offset, .. }) => (path, offset),
            _ => (table.path().into(), HEADER + count * self.last.width.bytes()),
        };
        Error::Damage { path, offset, damage: Damage::Digest { from: count, to: next, repair_failed: true } }
    }

    /// Goes back to the last remaining point, quarantines the units of `disagreement`, and records the rollback before
    /// anything is overwritten; `None` if the run was stopped. Later values are overwritten without a copy. `wrong` is
    /// the n of a committed wrong value.
    fn roll_back(
        &mut self,
        table: Table,
        disagreement: Disagreement,
        wrong: Option<u64>,
    ) -> Result<Option<(Table, VerifiedTable)>> {
        let count = self.remaining();
        if !self.journal.is_damaged() {
            self.drop_torn_tail()?;
        }
        for name in table.quarantine(self.last.sequence, disagreement.values, disagreement.escapes)? {
            let copy = self.context.dir.join(&name);
            self.context.observer.warn(&format!("the damaged bytes are kept in {}", copy.display()));
        }
        drop(table);
        let table = self.reopen_table()?;
        if table.discarded().is_empty() {
            let space = solver::space_after(&self.rule, self.context.options.method, &table)?;
            (self.last.mask, self.last.position, self.last.strategy) = (space.mask, space.position, None);
        }
        let Some(verified) = self.verify(&table)? else { return Ok(None) };
        if verified.good < self.points.len() {
            let damage = Damage::UnstableValues { values: count };
            return Err(Error::Damage { path: table.path().into(), offset: HEADER, damage });
        }
        self.count_repairs();
        let last = &mut self.last;
        last.event = Event::Rollback;
        last.count = count;
        last.too_large = None;
        last.escapes = table.written().escapes;
        last.kept = kept(count, &table.discarded());
        if self.summary.is_none() {
            last.snapshot = None;
        }
        fill(last, &verified.chain, verified.counted);
        // `errors` already counts the failed check of a suspect value.
        last.errors = last.errors.saturating_add(u64::from(wrong.is_none()));
        if self.journal.is_damaged() {
            self.replace_damage()?;
        } else {
            self.journal.append(self.last.clone())?;
        }
        let why = wrong.map_or("the table was damaged".into(), |n| format!("G({n}) was wrong"));
        self.context.observer.warn(&format!("{why}: the run went back to {count} values"));
        Ok(Some((table, verified)))
    }

    /// Removes the waypoints of a period search after the first `count` values, which this resume or an interrupted
    /// rollback left without the values before them.
    fn remove_waypoints(&self, count: u64) -> Result<()> {
        let dir = self.context.dir;
        let is_after = |name: &str| files::waypoint_number(name).is_some_and(|n| n > count);
        let names = dir.names().map_err(Error::io("reading the names in", dir.path()))?;
        names
            .iter()
            .filter(|name| is_after(name))
            .try_for_each(|name| dir.remove(name))
            .map_err(Error::io("removing a waypoint from", dir.path()))
    }

    /// Removes what lies after the last verified value, and starts the solver there, after an `open` record if one is
    /// needed; or ends the run cleanly if nothing is left to do.
    fn start(self, table: Table, verified: VerifiedTable) -> Result<Prepared> {
        self.remove_waypoints(self.last.count)?;
        // A process that ended because the disk was full can leave values without a record, and no room for a record.
        table.cut(self.journal.high_water_mark())?;
        table.write_headers()?;
        let ended = self.end(false);
        let Recovery { context, rule, mut journal, contents, last, points, summary, .. } = self;
        let options = context.options;
        let template = Record {
            event: Event::Commit,
            kernel: options.method.name().into(),
            program: crate::PROGRAM.into(),
            ..last.clone()
        };
        let same_keep = journal.last().is_some_and(|record| record.keep == last.keep);
        let needs_more = options.to.is_none_or(|to| to > last.count);
        let too_large = last.too_large.filter(|_| needs_more);
        let nothing_to_do = (!needs_more || too_large.is_some()) && same_keep;
        // Before anything is written: the files no longer end where the last record says.
        let closed = journal.last().is_some_and(|last| last.event == Event::Close);
        if last.suspect != contents.last.suspect || (closed && !nothing_to_do) {
            journal.append(Record { event: Event::Open, ..template.clone() })?;
        }
        let known = summary.as_ref().map(DiscardSummary::known).unwrap_or_default();
        let computed_digest = verified.chain.clone();
        let committer = Committer::new(context.dir, journal, table, template).resumed(verified.chain, &points, summary);
        if nothing_to_do {
            committer.close()?;
            if let Some(n) = too_large {
                return Err(Error::ValueTooLarge { n });
            }
            context.observer.note("nothing to do: the run already has these values");
            return Ok(ended);
        }
        if !is_head_lost(&last, &points) {
            context.note_retention(last.keep);
        }
        context.observer.started(&rule, last.count, options.to);
        let space = known_space(&rule, &last);
        let solver = Solver::knowing(&rule, options.method, space, committer.table(), &known)?;
        let mut checks_before = last.checks;
        checks_before.add(Check::Rehashed, last.kept.iter().map(|(from, to)| to - from).sum());
        Ok(Prepared::Ready(Box::new(OpenRun {
            dir: context.dir.clone(),
            rule,
            writer: Writer::new(committer)?,
            solver: solver.with_audit(context.attempt.seed),
            pending: Vec::new(),
            computed_digest,
            largest: verified.counted,
            largest_before: verified.counted,
            spot_checks: SpotChecks::new(last.count, verified.counted.last_rare, last.suspect),
            memory_checks: 0,
            too_large: last.too_large,
            checks_before,
            from: last.count,
            noted: None,
        })))
    }

    /// The end of a run that computes nothing: with the values of the last record that is in the journal now.
    fn end(&self, stopped: bool) -> Prepared {
        let last = self.journal.last().unwrap_or(&self.last);
        let progress = Progress {
            count: last.count,
            committed: last.count,
            rares: last.rares,
            last_rare: last.last_rare,
            max_value: last.max_value,
            max_at: last.max_at,
        };
        Prepared::Nothing(Outcome { rule: self.rule.clone(), progress, computed: 0, stopped })
    }
}

/// Whether the run has a limit on retained values but can never discard any, because neither a record nor the summary
/// states the digest of the head. A run that has discarded values goes back to a point before them instead, and
/// computes the head again.
fn is_head_lost(last: &Record, points: &[CommitPoint]) -> bool {
    let is_stated = points.iter().any(|point| point.count == RETAINED_HEAD);
    let has_discarded = last.snapshot.is_some();
    last.keep.is_some() && last.count > RETAINED_HEAD && !is_stated && !has_discarded
}

/// Where the table disagrees with the journal.
struct Disagreement {
    /// The first values that disagree, at most one segment of them.
    values: Range<u64>,
    /// The entries of the escapes from the last point that agrees to the next one.
    escapes: Range<u64>,
    /// The number of values at the first point that disagrees.
    next: u64,
}

/// Creates missing files of the table without data: the escapes where no record has any, and with `rollback` any file.
/// With `rollback` it also replaces a file that ends within its header. The run then goes back to what the remaining
/// files support.
fn make_missing_files(
    dir: &Dir,
    contents: &Contents,
    rollback: bool,
    observer: &mut (dyn Observer + Send),
) -> Result<()> {
    let width = contents.last.width;
    let no_escapes = contents.points.iter().all(|point| point.escapes == 0);
    for name in [table::VALUES, table::ESCAPES] {
        let needed = name == table::VALUES || width == Width::U8;
        let length = table::length_of(dir, name)?;
        let lost = match length {
            None => {
                rollback || (name == table::ESCAPES && no_escapes && table::length_of(dir, table::VALUES)?.is_some())
            }
            Some(length) => rollback && length < HEADER,
        };
        if needed && lost {
            Table::make_empty(dir, width, name)?;
            let what = if length.is_none() { "is missing" } else { "ends within its header" };
            observer.warn(&format!("{} {what}; it is created again without entries", dir.join(name).display()));
        }
    }
    Ok(())
}

/// The values and the escapes between `good`, the last point that agrees, and the next one: the units that a rollback
/// quarantines. No discarded values are among them.
fn first_wrong(points: &[CommitPoint], good: Option<&CommitPoint>, discarded: &Range<u64>) -> (Range<u64>, Range<u64>) {
    let (count, escapes) = good.map_or((0, 0), |good| (good.count, good.escapes));
    let from = if discarded.contains(&count) { discarded.end } else { count };
    let next = points.iter().find(|point| point.count > from);
    // At most one segment, and no discarded values, which are a hole.
    let most = if from < discarded.start { discarded.start } else { u64::MAX };
    let end = next.map_or(from, |next| next.count.min(from.saturating_add(SEGMENT)).min(most));
    (from..end, escapes..next.map_or(escapes, |next| next.escapes.max(escapes)))
}

//! Resumes a run: loads the journal, verifies the table against it, repairs or rolls back, and starts the solver.

use super::admission::{check_keep, check_room};
use super::main_loop::{Run, more};
use super::reader::{rule_of, space_of};
use super::rehash::rehash;
use super::repair::Damaged;
use super::retry::Attempt;
use super::spot_checks;
use super::spot_checks::SpotChecks;
use super::{Observer, Options, Outcome, Prepared, Progress};
use crate::checkpoint::commit::{Ledger, Writer, fill};
use crate::checkpoint::journal::{self, CommitPoint, Contents, Event, Journal, Record, kept};
use crate::checkpoint::summary::DiscardSummary;
use crate::error::{Error, Result};
use crate::solver::{self, Solver, SparseSpace};
use crate::storage::Dir;
use crate::table::digest::SEGMENT;
use crate::table::{self, HEADER, Table, Width};
use crate::theory::definition::Sequence;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

pub(super) fn resume(
    dir: &Dir,
    mut journal: Journal,
    contents: Contents,
    options: &Options,
    attempt: Attempt,
    observer: &mut (dyn Observer + Send),
    stop: &AtomicBool,
) -> Result<Prepared> {
    let mut last = contents.last.clone();
    let rule = rule_of(dir.path(), &last)?;
    if let Some(width) = options.width.filter(|&width| width != last.width) {
        let (found, expected) = (last.width.name().into(), width.name().into());
        return Err(Error::Mismatch { path: dir.path().into(), what: "the width of the table", found, expected });
    }
    let as_it_is = |last: &Record, stopped: bool| {
        let progress = Progress {
            count: last.count,
            committed: last.count,
            rares: last.rares,
            last_rare: last.last_rare,
            max_value: last.max_value,
            max_at: last.max_at,
        };
        Prepared::Nothing(Outcome { rule: rule.clone(), progress, computed: 0, stopped })
    };
    last.keep = options.keep.or(last.keep);
    if let Some(keep) = last.keep {
        check_keep(dir.path(), &rule, options, keep, last.last_rare)?;
        table::check_holes(dir)?;
    }
    check_room(dir, options, Some(&last), last.width, solver::lookback(&rule, last.last_rare))?;
    let space = space_of(&rule, &last);
    let mut points = contents.points.clone();
    let mut snapshot = match DiscardSummary::read_in(dir, &last) {
        Err(Error::Damage { .. }) if options.rollback => None,
        read => read?,
    };
    let freed = last.freed().unwrap_or(0..0);
    // Where a run may go back to: what is looked back at from there is not freed.
    let lookback = solver::lookback(&rule, last.last_rare);
    let usable = |point: &CommitPoint, snapshot: &Option<DiscardSummary>| {
        freed.is_empty()
            || point.count <= freed.start
            || (snapshot.is_some() && point.count >= freed.end.saturating_add(lookback))
    };
    let drop_unusable = |points: &mut Vec<CommitPoint>, snapshot: &mut Option<DiscardSummary>| {
        while points.last().is_some_and(|last| !usable(last, snapshot)) {
            points.pop();
        }
        *snapshot = snapshot.take().filter(|_| points.last().is_some_and(|last| last.count > freed.start));
    };
    drop_unusable(&mut points, &mut snapshot);
    make_missing_files(dir, &contents, options.rollback, observer)?;
    let mut table = loop {
        match open_at(dir, &last, points.last(), snapshot.as_ref()) {
            // The last point whose values are there at all.
            Err(Error::Damage { .. }) if options.rollback && !points.is_empty() => {
                points.pop();
                drop_unusable(&mut points, &mut snapshot);
            }
            other => break other?,
        }
    };
    let Some(mut checked) = rehash(&table, &points, snapshot.as_ref(), space, observer, stop)? else {
        return Ok(as_it_is(&last, true)); // a second thought during the re-hash
    };
    let is_whole = |good: usize, points: &[CommitPoint]| {
        good == points.len() && points.last().map(|p| p.count) == Some(last.count)
    };
    if !options.rollback {
        table.check_headers()?;
    }
    let mut repaired = 0;
    // A damaged journal needs a rollback, which is no reason to give up values that can be repaired.
    let may_repair = attempt.policy.repair && (!options.rollback || journal.is_damaged());
    while may_repair && !is_whole(checked.good, &points) {
        let Some(wrong) = points.get(checked.good) else { break };
        let damaged = Damaged { last: &last, before: &points[..checked.good], wrong, chain: &checked.chain };
        drop(table);
        let mended = damaged.repair(dir, &rule, options.method, snapshot.as_ref(), observer, stop)?;
        table = open_at(dir, &last, points.last(), snapshot.as_ref())?;
        let Some(again) = rehash(&table, &points, snapshot.as_ref(), space, observer, stop)? else {
            return Ok(as_it_is(&last, true));
        };
        let progress = again.good > checked.good;
        checked = again;
        if !mended || !progress {
            break;
        }
        repaired += 1;
    }
    // A wrong value that is committed agrees with the journal, and all that is computed from it would be wrong as well.
    let agreed = |good: usize| points[..good].last().map_or(0, |point| point.count);
    let mut went_wrong = None;
    let mut suspect = last.suspect;
    if let Some(n) = suspect.filter(|&n| n < agreed(checked.good)) {
        let compared = if table.freed().is_empty() { Some(spot_checks::compare(&rule, &table, n)) } else { None };
        match compared {
            None => {
                observer.note(&format!("G({n}) is suspect, but recomputing it needs all values, and some are freed"))
            }
            Some(Ok(())) => suspect = None,
            Some(Err(Error::Differs { .. })) if options.rollback => {
                checked.good = points.partition_point(|point| point.count <= n);
                went_wrong = Some(n);
            }
            Some(Err(Error::Differs { value, again, .. })) => {
                return Err(Error::Damage {
                    path: table.path().into(),
                    offset: HEADER + n * last.width.bytes(),
                    what: format!(
                        "G({n}) was computed as {value}, but the definition gives {again}: nothing from there on can be \
                         trusted; 'grundy run --dir {} --rollback' goes back before it",
                        dir.path().display()
                    ),
                });
            }
            Some(Err(other)) => return Err(other),
        }
    }
    let suspect_changed = last.suspect != suspect;
    last.suspect = suspect;
    let whole = is_whole(checked.good, &points);
    if whole {
        drop_rest(&mut journal, contents.torn, &mut last, observer)?;
    }
    if whole && repaired > 0 {
        last.event = Event::Repair;
        last.errors = last.errors.saturating_add(repaired);
        more(&mut last.checks, "repaired", repaired);
        journal.append(last.clone())?;
    }
    if !whole {
        let next = points.get(checked.good).map_or(last.count, |p| p.count);
        points.truncate(checked.good);
        let wrong = first_wrong(&contents.points, points.last());
        drop_unusable(&mut points, &mut snapshot);
        let count = points.last().map_or(0, |p| p.count);
        if !options.rollback {
            table.check_escapes()?; // which tells more
            return Err(Error::Damage {
                path: table.path().into(),
                offset: HEADER + count * last.width.bytes(),
                what: format!(
                    "the values {count}..{next} are not those that the journal speaks of; 'grundy run --dir {} --rollback' \
                     goes back to {count} values",
                    dir.path().display(),
                ),
            });
        }
        drop_rest(&mut journal, contents.torn, &mut last, observer)?;
        for name in table.quarantine(last.sequence, wrong.0, wrong.1)? {
            observer.note(&format!("the damaged bytes are kept in {name}"));
        }
        drop(table);
        table = open_at(dir, &last, points.last(), snapshot.as_ref())?;
        let Some(again) = rehash(&table, &points, snapshot.as_ref(), space, observer, stop)? else {
            return Ok(as_it_is(&last, true));
        };
        if again.good < points.len() {
            let what = format!("the {count} values that agreed with the journal do not any more; look at the disk");
            return Err(Error::Damage { path: table.path().into(), offset: HEADER, what });
        }
        checked = again;
        last = Record { event: Event::Rollback, count, escapes: table.written().1, ..last };
        last.kept = kept(count, &table.freed());
        last.snapshot = last.snapshot.filter(|_| snapshot.is_some());
        fill(&mut last, &checked.chain, checked.counted);
        last.errors = last.errors.saturating_add(u64::from(went_wrong.is_none())); // else it was counted when it was found
        journal.append(last.clone())?;
        let why = went_wrong.map_or("the table was damaged".into(), |n| format!("heap {n} had a wrong value"));
        observer.note(&format!("{why}: the run went back to {count} values"));
    }
    table.write_headers()?;
    let counted = checked.counted;
    if !counted.agrees(&last) {
        return Err(Error::Damage {
            path: dir.join(journal::NAME),
            offset: 0,
            what: format!(
                "rares and largest value counted from the table are {counted:?}, not those of the last record"
            ),
        });
    }
    let template = Record {
        event: Event::Commit,
        kernel: options.method.name().into(),
        program: crate::PROGRAM.into(),
        ..last.clone()
    };
    let known = snapshot.as_ref().map(DiscardSummary::known).unwrap_or_default();
    let same_keep = journal.last().is_some_and(|record| record.keep == last.keep);
    let computed_digest = checked.chain.clone();
    let nothing_to_do = options.to.is_some_and(|to| to <= last.count) && same_keep;
    // Before anything is written: the files no longer end where the last record says.
    let closed = journal.last().is_some_and(|last| last.event == Event::Close);
    if suspect_changed || (closed && !nothing_to_do) {
        journal.append(Record { event: Event::Open, ..template.clone() })?;
    }
    let ledger = Ledger::new(dir, journal, table, checked.chain, &points, snapshot, template);
    if nothing_to_do {
        ledger.close()?;
        observer.note(&format!("nothing is left to do: {} values are there", last.count));
        return Ok(as_it_is(&last, false));
    }
    observer.started(&rule, last.count, options.to);
    let used = (space != SparseSpace::NONE).then_some(space);
    let solver = Solver::knowing(&rule, options.method, used, ledger.table(), &known)?.with_audit(attempt.seed);
    let mut checks_before = last.checks;
    more(&mut checks_before, "rehashed", last.kept.iter().map(|(from, to)| to - from).sum());
    Ok(Prepared::Ready(Box::new(Run {
        dir: dir.clone(),
        rule,
        writer: Writer::new(ledger)?,
        solver,
        pending: Vec::new(),
        computed_digest,
        largest: counted,
        places: SpotChecks::new(last.count, counted.last_rare, suspect),
        memory_checks: 0,
        checks_before,
        from: last.count,
    })))
}

/// Ends the journal at its last good record, now that the run is certain to go on; what follows was torn off or damaged.
fn drop_rest(
    journal: &mut Journal,
    torn: Option<u64>,
    last: &mut Record,
    observer: &mut (dyn Observer + Send),
) -> Result<()> {
    if let Some(offset) = torn {
        observer.note(&format!("the last record of the journal (byte {offset}) broke off and is dropped"));
    }
    if let Some(name) = journal.drop_rest()? {
        observer.note(&format!("the journal was damaged: everything from the damage on is kept in {name}"));
        last.errors = last.errors.saturating_add(1);
    }
    Ok(())
}

/// Makes files of the table that are missing, empty: the escapes where no record has any, and with `rollback` any file, also
/// one that ends within its header. The run then goes back to what the remaining files support.
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
            observer.note(&format!("{} {what}, and is made again without entries", dir.join(name).display()));
        }
    }
    Ok(())
}

/// Opens the table of a record as far as a point says; what is freed is refused.
pub(super) fn open_at(
    dir: &Dir,
    last: &Record,
    point: Option<&CommitPoint>,
    snapshot: Option<&DiscardSummary>,
) -> Result<Table> {
    let (count, escapes) = point.map_or((0, 0), |p| (p.count, p.escapes));
    let mut table = Table::open_in(dir, last.width, count, escapes, true)?;
    table.free(snapshot.map_or(0..0, DiscardSummary::freed));
    Ok(table)
}

/// The values, and the escapes, between the last point that agrees and the next one.
fn first_wrong(points: &[CommitPoint], good: Option<&CommitPoint>) -> (Range<u64>, Range<u64>) {
    let (count, escapes) = good.map_or((0, 0), |good| (good.count, good.escapes));
    let next = points.iter().find(|point| point.count > count);
    // Longer only where a snapshot is damaged, and what it stands for is a hole.
    let end = next.map_or(count, |next| next.count.min(count.saturating_add(SEGMENT)));
    (count..end, escapes..next.map_or(escapes, |next| next.escapes.max(escapes)))
}

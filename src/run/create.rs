//! Creates a run: decides the width of its table, and writes its first record.

use super::admission::{RoomRequest, check_keep, check_room};
use super::context::{Context, Prepared};
use super::main_loop::OpenRun;
use super::observer::{Opening, Outcome, Progress};
use super::spot_checks::SpotChecks;
use crate::checkpoint::commit::Committer;
use crate::checkpoint::journal::{Checks, Event, Journal, Record};
use crate::checkpoint::summary::RecordStats;
use crate::checkpoint::writer::Writer;
use crate::error::{Error, Result};
use crate::solver::Solver;
use crate::table::digest::DigestChain;
use crate::table::{self, Table, Width};
use crate::theory::rule::Rule;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of first values that decide the width of the table.
const WIDTH_SAMPLE: u64 = 1 << 16;

/// A table of bytes may hold at most one escape (a value of 255 or more) per this number of values in the sample.
const ESCAPES_WORTH: usize = 256;

/// Decides the width of a new table by its first [`WIDTH_SAMPLE`] values, even if the run ends before them, so that the
/// width suits every later continuation of the run. Returns the width and the values; `None` if `stop` came first.
fn decide_width(solver: &mut Solver, stop: &AtomicBool) -> Result<Option<(Width, Vec<u16>)>> {
    let mut sample = Vec::new();
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    match solver.extend_to(&mut sample, WIDTH_SAMPLE, |_| !stop.load(Ordering::Relaxed)) {
        // The values before the large one decide; the run may end before it.
        Err(Error::ValueTooLarge { .. } | Error::Unlisted { .. }) => {}
        Err(error) => return Err(error),
        Ok(_) if (sample.len() as u64) < WIDTH_SAMPLE => return Ok(None),
        Ok(_) => {}
    }
    let escapes = sample.iter().filter(|&&v| table::is_escape(v)).count();
    let width = if escapes * ESCAPES_WORTH > sample.len() { Width::U16 } else { Width::U8 };
    Ok(Some((width, sample)))
}

pub(super) fn create(context: &mut Context, journal: Journal, rule: &Rule) -> Result<Prepared> {
    let first = match first_values(context, rule) {
        Ok(Some(first)) => first,
        nothing => {
            // Only the directory remains.
            let dir = context.dir;
            let has_table = [table::VALUES, table::ESCAPES].iter().any(|name| !matches!(dir.length(name), Ok(None)));
            let removed = journal.remove_if_empty(has_table);
            nothing.and(removed)?;
            let progress = Progress::default();
            return Ok(Prepared::Nothing(Outcome { rule: rule.clone(), progress, computed: 0, stopped: true }));
        }
    };
    start(context, journal, rule, first)
}

/// The width of a new table, the values that decided it, and the solver of the next ones.
struct FirstValues {
    width: Width,
    values: Vec<u16>,
    solver: Solver,
}

/// Refuses a run that cannot succeed, and computes the first values, before anything is written. `None` if the run was
/// stopped.
fn first_values(context: &mut Context, rule: &Rule) -> Result<Option<FirstValues>> {
    let Context { dir, options, attempt, stop, .. } = *context;
    if let Some(keep) = options.keep {
        check_keep(dir.path(), rule, options, keep, 0)?;
        table::check_holes(dir)?;
    }
    context.note_retention(options.keep);
    context.observer.started(rule, 0, options.to);
    let new_solver = |past: &[u16]| -> Result<Solver> {
        Ok(Solver::new(rule, options.method, None, &past)?.with_audit(attempt.seed))
    };
    let mut solver = new_solver(&[])?;
    // Values of three heaps or of moves that remove any number of tokens take long, so the first ones do not decide.
    let slow = rule.max_heaps() > 2 || rule.largest_heap().is_some();
    let (width, mut values) = match options.width.or(slow.then_some(Width::U16)) {
        Some(width) => (width, Vec::new()),
        None => match decide_width(&mut solver, stop)? {
            Some(decided) => decided,
            None => return Ok(None),
        },
    };
    if options.to.is_some_and(|to| to < values.len() as u64) {
        // The sample is longer than the run.
        values.clear();
    }
    if (values.len() as u64) < WIDTH_SAMPLE {
        // Either the values were dropped, or an error ended the sample; no solver continues after an error.
        solver = new_solver(&values)?;
    }
    let room = check_room(dir, &RoomRequest { to: options.to, keep: options.keep, width, lookback: 0 }, None)?;
    context.observer.opened(&Opening::new(rule, dir, options, 0, room));
    Ok(Some(FirstValues { width, values, solver }))
}

/// Creates the table and writes the first record.
fn start(context: &mut Context, mut journal: Journal, rule: &Rule, first: FirstValues) -> Result<Prepared> {
    let FirstValues { width, values: pending, solver } = first;
    let Context { dir, options, attempt, .. } = *context;
    let is_torn = journal.has_rest()?;
    match journal.end_at_good_records()? {
        Some(name) => context.observer.warn(&format!("the journal was damaged; it is kept in {name}")),
        None if is_torn => context.observer.note("the journal holds no whole record: the run starts again"),
        None => {}
    }
    for name in Table::quarantine_files_without_record(dir)? {
        context.observer.warn(&format!("the tables without a good record are kept: {name}"));
    }
    let table = Table::create(dir, width)?;
    let template = Record {
        keep: options.keep,
        errors: attempt.failures, // which no earlier record counts
        kernel: options.method.name().into(),
        ..Record::first(rule, width)
    };
    // The first record precedes every value, so that every table has an owner.
    journal.append(template.clone())?;
    let template = Record { event: Event::Commit, ..template };
    let mut largest = RecordStats::default();
    largest.see_largest(0, &pending);
    let mut computed_digest = DigestChain::new();
    computed_digest.update(&pending);
    Ok(Prepared::Ready(Box::new(OpenRun {
        dir: dir.clone(),
        rule: rule.clone(),
        writer: Writer::new(Committer::new(dir, journal, table, template))?,
        solver,
        pending,
        computed_digest,
        largest,
        largest_before: RecordStats::default(),
        spot_checks: SpotChecks::new(0, 0, None),
        memory_checks: 0,
        too_large: None,
        checks_before: Checks::default(),
        from: 0,
        noted: None,
    })))
}

/// A random number.
pub(super) fn random_seed() -> u64 {
    std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0)
}

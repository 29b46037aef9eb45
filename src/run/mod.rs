//! The run: where the mathematics meets the storage.
//!
//! A run computes values, proves them, and commits them to a directory so that nothing that was said to be there is ever
//! lost or wrong (`ledger`). A commit comes within the first second, then every 2^24 values or 5 s, and at each end of a
//! segment of the digest; the last one may end anywhere. Computing does not wait for it, unless the one before has not
//! ended; when a commit fails, the run ends at the next block.
//!
//! On opening, the journal is read, all of the table that is kept is hashed again and compared with every record that
//! still speaks of it, and rares and largest value are counted anew, for freed values from their snapshot. Values that do
//! not agree are computed anew from those before, and put back when they are then what the journal speaks of; what stood
//! there is kept. Else the table stops the run; with `rollback` it goes back to the last record that agrees, and says so
//! in the journal before anything is written over.
//!
//! While it goes on, memory is compared before every commit, and some heaps are computed twice (`solver::audit`,
//! `places`). When something differs the run is opened again, and goes on from what is committed ([`run`]).
//!
//! Invariant: before a process writes to the tables, a record of its own is durable that says so.

pub(crate) mod spot_checks;

use crate::checkpoint::commit::{Batch, Ledger, RETAINED_HEAD, RETENTION_SLACK, Writer, fill, may_free};
use crate::checkpoint::journal::{self, CommitPoint, Contents, Event, FORMAT, Journal, Record, StatedGame, kept};
use crate::checkpoint::summary::{DiscardSummary, RecordStats};
use crate::error::{Error, Result};
use crate::fault;
use crate::solver::{self, Method, SequenceStats, Solver, SparseSpace};
use crate::storage::Dir;
use crate::table::Width;
use crate::table::digest::{DigestChain, SEGMENT};
use crate::table::{self, HEADER, Table};
use crate::theory::definition::{Appended, Sequence, for_each_piece};
use crate::theory::rule::Rule;
use spot_checks::SpotChecks;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum time between two commits.
const COMMIT_EVERY: Duration = Duration::from_secs(5);

/// Time from the first block of a process to its first commit. Each later interval is twice as long, up to
/// [`COMMIT_EVERY`], so that a process which is killed after a few seconds has committed most of what it computed.
const FIRST_COMMIT: Duration = Duration::from_millis(700);

/// Number of first values that decide the width of the table.
const WIDTH_SAMPLE: u64 = 1 << 16;

/// Maximum number of failed checks per process before the run is abandoned.
const FAILURES: usize = 8;

/// Characters of a game's name that a record of 4096 bytes has room for, with all else in it.
const LONGEST_NAME: usize = 2048;

/// A table of bytes may hold at most one escape (a value of 255 or more) per this number of values in the sample.
const ESCAPES_WORTH: usize = 256;

/// What a run is asked to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many values there shall be; `None` for as many as there is time for.
    pub to: Option<u64>,
    /// Threads; 0 for one a core.
    pub threads: usize,
    /// How values are computed.
    pub method: Method,
    /// The width of a new table; `None` to let the first values decide.
    pub width: Option<Width>,
    /// Keep the first 2^26 values and at least so many of the last ones, and free the others; `None` for what the run did
    /// before, and for all in a new one.
    pub keep: Option<u64>,
    /// Go back to the last good record when the table does not agree with the journal.
    pub rollback: bool,
}

/// What is left to the program, as a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunPolicy {
    /// Commit after every so many values and wait for it, whatever the clock says (for tests).
    pub commit_every: Option<u64>,
    /// Compute values anew that do not agree with the journal, and put them back when they are those that it speaks of.
    pub repair: bool,
    /// Decides at which heaps a second look is taken; chance, when it is left out.
    pub seed: Option<u64>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Values computed and proved.
    pub count: u64,
    /// Values committed.
    pub committed: u64,
    /// Rare positions.
    pub rares: u64,
    /// The last rare position.
    pub last_rare: u64,
    /// The largest value.
    pub max_value: u16,
    /// Where it appears first.
    pub max_at: u64,
}

/// How values were settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofSummary {
    /// The sparse space in use.
    pub space: SparseSpace,
    /// Rare heaps up to and with these values.
    pub rares: u64,
    /// The last of them.
    pub last_rare: u64,
    /// No witness of them has a greater smaller part.
    pub depth: u64,
}

/// Is told how a run goes on.
pub trait Observer {
    /// The run has this game and directory and starts at `from`.
    fn started(&mut self, rule: &Rule, from: u64, to: Option<u64>);
    /// `count` of `of` stored values have been hashed again.
    fn rehashed(&mut self, count: u64, of: u64);
    /// Some values more; called after every block.
    fn advanced(&mut self, progress: &Progress);
    /// These values, from heap `from` on, were computed and proved. Not called for those that were there.
    fn proved(&mut self, _from: u64, _values: &[u16], _settled: &ProofSummary) {}
    /// `done` of `of` values have been computed a second time, after a run, where freed ones are asked for.
    fn again(&mut self, _done: u64, _of: u64) {}
    /// Something that a person should know.
    fn note(&mut self, text: &str);
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The game.
    pub rule: Rule,
    /// Where the run is now.
    pub progress: Progress,
    /// Values computed this time.
    pub computed: u64,
    /// Whether the stop flag ended it.
    pub stopped: bool,
}

/// A run directory opened for reading: the committed part, without lock or write permission.
///
/// A sequence as well. While it is read, the run may go on and free values: whatever was read is handed out only when the
/// journal still says that it is kept.
#[derive(Debug)]
pub struct RunReader {
    /// The game.
    pub rule: Rule,
    /// The journal.
    pub contents: Contents,
    /// The table.
    pub table: Table,
    dir: Dir,
    /// How many good records the journal held when it was last read, and what it says is freed.
    followed: Mutex<(u64, Range<u64>)>,
}

impl RunReader {
    /// Opens the run in `dir`.
    ///
    /// # Errors
    /// What reading journal and table gives; [`Error::Damage`] when the journal's game is none.
    pub fn open(dir: &Path) -> Result<RunReader> {
        RunReader::open_in(&Dir::at(dir))
    }

    /// [`RunReader::open`] on any storage.
    ///
    /// # Errors
    /// As [`RunReader::open`].
    pub fn open_in(dir: &Dir) -> Result<RunReader> {
        let contents = journal::read_in(dir)?;
        let rule = rule_of(dir.path(), &contents.last)?;
        let Record { width, count, escapes, .. } = contents.last;
        let mut table = Table::open_in(dir, width, count, escapes, false)?;
        let freed = contents.last.freed().unwrap_or(0..0);
        table.free(freed.clone());
        let followed = Mutex::new((contents.records, freed));
        Ok(RunReader { rule, contents, table, dir: dir.clone(), followed })
    }

    /// The sparse space that the run uses.
    #[must_use]
    pub fn space(&self) -> SparseSpace {
        space_of(&self.rule, &self.contents.last)
    }

    /// What is known of the values that the run has freed.
    ///
    /// # Errors
    /// What reading the snapshot gives.
    pub fn freed_known(&self) -> Result<SequenceStats> {
        let snapshot = DiscardSummary::read_in(&self.dir, &self.contents.last)?;
        Ok(snapshot.as_ref().map(DiscardSummary::known).unwrap_or_default())
    }

    /// Recomputes the suspect value by the definition, if the run has one and no value is freed.
    ///
    /// # Errors
    /// [`Error::Differs`] if the definition gives another value, and what reading the values gives.
    pub fn check_suspect(&self) -> Result<()> {
        match self.contents.last.suspect {
            Some(n) if n < self.len() && self.freed().is_empty() => spot_checks::compare(&self.rule, self, n),
            _ => Ok(()),
        }
    }

    /// Checks that the run has not freed these values since it was opened.
    fn still_there(&self, from: u64, to: u64) -> Result<()> {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if journal::is_another_in(&self.dir, followed.0)? {
            let Contents { last, points, records, .. } = journal::read_in(&self.dir)?;
            let ours = |point: &&CommitPoint| point.count == self.table.len();
            let digest = points.iter().find(ours).map(|point| point.digest.to_string());
            if digest.as_ref() != Some(&self.contents.last.digest) {
                let what = "the run went back while it was read; read it again".into();
                return Err(Error::Damage { path: self.dir.join(journal::NAME), offset: 0, what });
            }
            *followed = (records, last.freed().unwrap_or(0..0));
        }
        let hole = &followed.1;
        if from.max(hole.start) < to.min(hole.end) {
            return Err(Error::Freed { from, to, hole: (hole.start, hole.end), heap: None });
        }
        Ok(())
    }
}

impl Sequence for RunReader {
    fn len(&self) -> u64 {
        self.table.len()
    }

    fn freed(&self) -> Range<u64> {
        self.table.freed()
    }

    fn saturated_bytes(&self) -> Option<&[u8]> {
        self.table.saturated_bytes()
    }

    fn read(&self, from: u64, out: &mut [u16]) -> Result<()> {
        let to = from.saturating_add(out.len() as u64);
        // Before as well: on a tmpfs that is full, to read a hole through a map is to die of it (SIGBUS).
        self.still_there(from, to)?;
        self.table.read(from, out)?;
        self.still_there(from, to)
    }
}

/// The rule of a record, which must parse and have the digest that stands there.
fn rule_of(dir: &Path, record: &Record) -> Result<Rule> {
    let rule: Rule = record.game.parse().map_err(|_| Error::Damage {
        path: dir.join(journal::NAME),
        offset: 0,
        what: format!("'{}' is no game of this program", record.game.escape_default()),
    })?;
    check_rule(dir, &rule, record)?;
    Ok(rule)
}

fn check_rule(dir: &Path, rule: &Rule, record: &Record) -> Result<()> {
    if rule.name() != record.game || rule.digest() != record.rule {
        let found = record.game.escape_default().to_string();
        return Err(Error::Mismatch { path: dir.into(), what: "the game", found, expected: rule.name().into() });
    }
    Ok(())
}

/// The space of a record; [`SparseSpace::NONE`] when it has none.
pub(crate) fn space_of(rule: &Rule, record: &Record) -> SparseSpace {
    SparseSpace::new(rule, record.mask, record.position).unwrap_or(SparseSpace::NONE)
}

/// Makes or resumes the run in `dir`; `rule` may be left out when the directory holds one.
///
/// `stop` is looked at between blocks; when it is set the run commits what it has and returns. When a check fails (memory,
/// a second look), the run is opened again and goes on from what is committed; `errors` of the record counts it.
///
/// # Errors
/// Everything in [`Error`]; what was committed before stays. [`Error::Differs`] or [`Error::Flipped`] when a check fails
/// the same way twice, or again and again.
pub fn run(
    rule: Option<&Rule>,
    dir: &Path,
    options: &Options,
    observer: &mut (dyn Observer + Send),
    stop: &AtomicBool,
) -> Result<Outcome> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads).build().map_err(|e| Error::Io {
        action: "starting threads for".into(),
        path: dir.into(),
        source: std::io::Error::other(e),
    })?;
    let existed = dir.exists();
    let policy = RunPolicy { repair: true, ..RunPolicy::default() };
    let outcome = pool.install(|| run_in(&Dir::at(dir), rule, options, policy, observer, stop));
    if !existed && outcome.as_ref().is_ok_and(|outcome| outcome.stopped && outcome.progress.count == 0) {
        let _ = std::fs::remove_dir(dir); // which this run made, and left empty
    }
    outcome
}

/// [`run`] on any storage, with the threads of the pool that it is called in.
///
/// # Errors
/// As [`run`].
pub fn run_in(
    dir: &Dir,
    rule: Option<&Rule>,
    options: &Options,
    policy: RunPolicy,
    observer: &mut (dyn Observer + Send),
    stop: &AtomicBool,
) -> Result<Outcome> {
    let seed = policy.seed.unwrap_or_else(random_seed);
    retry_failed_checks(seed, policy, observer, |attempt, observer| {
        record_check_failure(dir, observer, |observer| match prepare(rule, dir, options, attempt, observer, stop)? {
            Prepared::Nothing(outcome) => Ok(outcome),
            Prepared::Ready(run) => run.go_on(options, policy, observer, stop),
        })
    })
}

/// Does something with the run, and says in the journal when a check failed: at once, whatever happens to the process then.
fn record_check_failure(
    dir: &Dir,
    observer: &mut (dyn Observer + Send),
    work: impl FnOnce(&mut (dyn Observer + Send)) -> Result<Outcome>,
) -> Result<Outcome> {
    let done = work(observer);
    let Err(error @ (Error::Differs { .. } | Error::Flipped { .. })) = &done else { return done };
    let count = || -> Result<()> {
        let (mut journal, contents) = Journal::open_in(dir)?;
        // Before the first record there is nothing that could be wrong.
        let Some(Contents { mut last, .. }) = contents else { return Ok(()) };
        journal.drop_rest()?;
        last.errors = last.errors.saturating_add(1);
        if let Error::Differs { n, .. } = *error {
            // A wrong value makes later ones wrong, so the least suspect is rechecked first.
            last.suspect = Some(last.suspect.map_or(n, |other| other.min(n)));
        }
        journal.append(Record { event: Event::Open, ..last })
    };
    if let Err(why) = count() {
        observer.note(&format!("that a check failed could not be written down: {why}"));
    }
    done
}

/// What tells one failed check from another: two failures with the same key are the same failure.
#[derive(Debug, PartialEq, Eq)]
enum FailureKey {
    /// Memory changed at this place.
    Flipped { what: &'static str, from: u64, to: u64 },
    /// Two computations of G(n) gave these values.
    Differs { n: u64, value: u32, again: u32 },
}

impl FailureKey {
    /// The key of a failed check; `None` for any other error.
    fn of(error: &Error) -> Option<FailureKey> {
        match *error {
            Error::Flipped { what, from, to } => Some(FailureKey::Flipped { what, from, to }),
            Error::Differs { n, value, again, .. } => Some(FailureKey::Differs { n, value, again }),
            _ => None,
        }
    }

    /// What the same failure twice in one process means.
    fn repeated(&self) -> &'static str {
        match self {
            FailureKey::Flipped { .. } => {
                "the same memory changed again: a stuck memory bit is the likely cause; test the memory of this machine, and \
                 resume the run on a different machine"
            }
            FailureKey::Differs { .. } => {
                "the same check failed identically twice: this points to a bug in grundy, or to a permanent hardware fault; \
                 repeat the run on a different machine, and report the bug if it fails there too"
            }
        }
    }
}

/// Attempts a run, and again after a failed check: a transient hardware fault does not fail the same way twice.
fn retry_failed_checks(
    seed: u64,
    policy: RunPolicy,
    observer: &mut (dyn Observer + Send),
    mut run: impl FnMut(Attempt, &mut (dyn Observer + Send)) -> Result<Outcome>,
) -> Result<Outcome> {
    let mut failures: Vec<FailureKey> = Vec::new();
    loop {
        let done = run(Attempt { policy, seed, failures: failures.len() as u64 }, observer);
        let Err(error) = done else { return done };
        let Some(key) = FailureKey::of(&error) else { return Err(error) };
        if failures.contains(&key) {
            observer.note(key.repeated());
            return Err(error);
        }
        if failures.len() == FAILURES {
            observer.note("checks fail again and again: test the memory and the processor of this machine");
            return Err(error);
        }
        observer.note(&format!("{error}. The run is opened again, and continues from its last commit"));
        failures.push(key);
    }
}

/// One way through a run, from opening it.
#[derive(Clone, Copy)]
struct Attempt {
    policy: RunPolicy,
    /// Decides where a second look is taken, the same in each attempt.
    seed: u64,
    /// How many attempts before it failed.
    failures: u64,
}

struct Run {
    dir: Dir,
    rule: Rule,
    writer: Writer,
    solver: Solver,
    /// Proved, not given to the writer.
    pending: Vec<u16>,
    /// Of all values, each entered when it was computed.
    computed_digest: DigestChain,
    largest: RecordStats,
    places: SpotChecks,
    memory_checks: u64,
    /// `checks` of the record that this process started from.
    checks_before: BTreeMap<String, u64>,
    from: u64,
}

enum Prepared {
    Ready(Box<Run>),
    Nothing(Outcome),
}

fn prepare(
    rule: Option<&Rule>,
    dir: &Dir,
    options: &Options,
    attempt: Attempt,
    observer: &mut (dyn Observer + Send),
    stop: &AtomicBool,
) -> Result<Prepared> {
    let length = |name: &str| dir.length(name).map_err(Error::io("reading the state of", dir.join(name)));
    // Asked in this order: who makes a run makes the journal before the data.
    let has_data = length(table::VALUES)?.is_some() || length(table::ESCAPES)?.is_some();
    let fresh = length(journal::NAME)?.is_none();
    let no_run = |why: &str| Error::NoRun { path: dir.path().into(), why: why.into() };
    if let Some(rule) = rule.filter(|rule| rule.name().len() > LONGEST_NAME) {
        let length = rule.name().len();
        return Err(Error::Rule(format!(
            "a name of {length} characters does not fit a record; at most {LONGEST_NAME} do"
        )));
    }
    if fresh {
        let Some(rule) = rule else { return Err(no_run("and no game was named")) };
        if has_data && !options.rollback {
            return Err(no_run(&format!(
                "its tables are here, but {} is missing, so nothing says how far they hold; restore it from a copy, choose \
                 another directory with --dir, or set the tables aside and start again with 'grundy run {rule} --dir {} \
                 --rollback'",
                journal::NAME,
                dir.path().display()
            )));
        }
        check_unoccupied(dir)?;
        if let Some(keep) = options.keep {
            check_keep(dir.path(), rule, options, keep, 0)?;
        }
        check_room(dir, options, None, options.width.unwrap_or(Width::U8), 0)?;
        dir.make().map_err(Error::io("making", dir.path()))?;
    }
    let (journal, contents) = if options.rollback { Journal::open_to_roll_back(dir)? } else { Journal::open_in(dir)? };
    let stated = match (&contents, journal.game_behind_damage()) {
        (None, Some(game)) => Some(stated_rule(dir.path(), rule, game)?),
        _ => None,
    };
    match (contents, rule.or(stated.as_ref())) {
        (Some(contents), rule) => {
            if let Some(rule) = rule {
                check_rule(dir.path(), rule, &contents.last)?;
            }
            resume(dir, journal, contents, options, attempt, observer, stop)
        }
        (None, None) => Err(no_run(&format!(
            "its journal holds no good record that names the game; name it: 'grundy run GAME --dir {}'",
            dir.path().display()
        ))),
        (None, Some(rule)) => {
            // A kill before the first record leaves empty tables; values without a record are somebody's loss to decide on.
            for name in [table::VALUES, table::ESCAPES] {
                let path = dir.join(name);
                if length(name)?.unwrap_or(0) > HEADER && !options.rollback {
                    let what = format!(
                        "values are here, but no record of the journal is good; 'grundy run {rule} --dir {} --rollback' \
                         sets them aside and starts again",
                        dir.path().display()
                    );
                    return Err(Error::Damage { path, offset: HEADER, what });
                }
            }
            create(dir, journal, rule, options, attempt, observer, stop)
        }
    }
}

/// The rule that a record behind the damage of a journal states, which must be `named` if the user named one.
fn stated_rule(dir: &Path, named: Option<&Rule>, game: &StatedGame) -> Result<Rule> {
    let found = game.name.escape_default().to_string();
    let expected = named.map_or("a game of this program", Rule::name).to_owned();
    let mismatch =
        || Error::Mismatch { path: dir.into(), what: "the game", found: found.clone(), expected: expected.clone() };
    let rule: Rule = game.name.parse().map_err(|_| mismatch())?;
    let agrees = |rule: &Rule| rule.digest() == game.rule;
    let agrees = agrees(&rule) && named.is_none_or(agrees);
    if agrees { Ok(rule) } else { Err(mismatch()) }
}

/// Refuses a directory that holds files of others: a run would mix its own among them. Hidden files are nobody's data, and
/// `lost+found` belongs to the file system.
fn check_unoccupied(dir: &Dir) -> Result<()> {
    if !dir.exists().map_err(Error::io("reading the state of", dir.path()))? {
        return Ok(());
    }
    let ours = |name: &str| {
        let name = name.strip_suffix(".part").unwrap_or(name);
        [table::VALUES, table::ESCAPES, journal::NAME, "holes.tmp", "watch.bin", "lost+found"].contains(&name)
            || ["snapshot-", "quarantine-", "."].iter().any(|start| name.starts_with(start))
    };
    let names = dir.names().map_err(Error::io("reading the names in", dir.path()))?;
    match names.into_iter().find(|name| !ours(name)) {
        Some(name) => Err(Error::Occupied { path: dir.path().into(), name: name.escape_default().to_string() }),
        None => Ok(()),
    }
}

/// Decides the width of a new table by its first [`WIDTH_SAMPLE`] values, even if the run ends before them, so that the width
/// suits every later continuation of the run. Returns the width and the values; `None` if `stop` came first.
fn decide_width(solver: &mut Solver, stop: &AtomicBool) -> Result<Option<(Width, Vec<u16>)>> {
    let mut sample = Vec::new();
    while (sample.len() as u64) < WIDTH_SAMPLE {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let mut more = Vec::new();
        let advanced = solver.advance(sample.as_slice(), WIDTH_SAMPLE, &mut more);
        sample.append(&mut more);
        match advanced {
            // The values before it decide. Whether the run comes to the large value is for the run to find out.
            Err(Error::ValueTooLarge { .. }) => break,
            advanced => advanced?,
        }
    }
    let escapes = sample.iter().filter(|&&v| table::is_escape(v)).count();
    let width = if escapes * ESCAPES_WORTH > sample.len() { Width::U16 } else { Width::U8 };
    Ok(Some((width, sample)))
}

fn create(
    dir: &Dir,
    mut journal: Journal,
    rule: &Rule,
    options: &Options,
    attempt: Attempt,
    observer: &mut (dyn Observer + Send),
    stop: &AtomicBool,
) -> Result<Prepared> {
    if let Some(keep) = options.keep {
        check_keep(dir.path(), rule, options, keep, 0)?;
        table::check_holes(dir)?;
    }
    observer.started(rule, 0, options.to);
    let has_data = || [table::VALUES, table::ESCAPES].iter().any(|name| !matches!(dir.length(name), Ok(None)));
    let new_solver = || Ok(Solver::new(rule, options.method, None, [].as_slice())?.with_audit(attempt.seed));
    let mut solver: Solver = new_solver()?;
    let (width, mut pending) = match options.width {
        Some(width) => (width, Vec::new()),
        None => match decide_width(&mut solver, stop)? {
            Some(decided) => decided,
            None => {
                // Nothing stays behind but a directory. A journal stays where data must not lose it.
                if !has_data() {
                    journal.discard()?;
                }
                let progress = Progress::default();
                return Ok(Prepared::Nothing(Outcome { rule: rule.clone(), progress, computed: 0, stopped: true }));
            }
        },
    };
    if options.to.is_some_and(|to| to < pending.len() as u64) {
        // The sample reaches beyond the values that were asked for.
        pending.clear();
        solver = new_solver()?;
    }
    if let Err(error) = check_room(dir, options, None, width, 0) {
        if !has_data() {
            journal.discard()?;
        }
        return Err(error);
    }
    let is_torn = journal.has_rest()?;
    match journal.drop_rest()? {
        Some(name) => observer.note(&format!("the journal was damaged, and is kept in {name}")),
        None if is_torn => observer.note("the journal holds no whole record: the run starts again"),
        None => {}
    }
    for name in Table::put_old_files_aside(dir)? {
        observer.note(&format!("the tables without a good record are kept: {name}"));
    }
    let table = Table::create_in(dir, width)?;
    let template = Record {
        format: FORMAT,
        run: new_identity(),
        game: rule.name().into(),
        rule: rule.digest(),
        sequence: 0,
        event: Event::Open,
        count: 0,
        escapes: 0,
        width,
        mask: 0,
        position: 0,
        kept: kept(0, &(0..0)),
        keep: options.keep,
        snapshot: None,
        digest: DigestChain::new().digest().to_string(),
        rares: 0,
        last_rare: 0,
        max_value: 0,
        max_at: 0,
        checks: BTreeMap::new(),
        errors: attempt.failures, // which no record could count
        suspect: None,
        kernel: options.method.name().into(),
        program: crate::PROGRAM.into(),
        time: String::new(),
        seconds: 0,
        previous: String::new(),
        blake3: String::new(),
    };
    // Before any value is: from now on it is clear whose they are.
    journal.append(template.clone())?;
    let template = Record { event: Event::Commit, ..template };
    let mut largest = RecordStats::default();
    largest.see_largest(0, &pending);
    let mut computed_digest = DigestChain::new();
    computed_digest.update(&pending);
    Ok(Prepared::Ready(Box::new(Run {
        dir: dir.clone(),
        rule: rule.clone(),
        writer: Writer::new(Ledger::new(dir, journal, table, DigestChain::new(), &[], None, template))?,
        solver,
        pending,
        computed_digest,
        largest,
        places: SpotChecks::new(0, 0, None),
        memory_checks: 0,
        checks_before: BTreeMap::new(),
        from: 0,
    })))
}

/// Another number in every run.
fn random_seed() -> u64 {
    std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0)
}

/// 128 bits that tell one run from another; no secret.
fn new_identity() -> String {
    let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seconds.as_nanos().to_le_bytes());
    hasher.update(&std::process::id().to_le_bytes());
    hasher.update(format!("{:p}", &raw const hasher).as_bytes());
    hasher.finalize().to_hex()[..32].to_owned()
}

fn resume(
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

/// Counts more of a check; what was counted before is what a file says.
fn more(checks: &mut BTreeMap<String, u64>, name: &str, number: u64) {
    let count = checks.entry(name.into()).or_default();
    *count = count.saturating_add(number);
}

/// Opens the table of a record as far as a point says; what is freed is refused.
fn open_at(dir: &Dir, last: &Record, point: Option<&CommitPoint>, snapshot: Option<&DiscardSummary>) -> Result<Table> {
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

/// Values that are not those that a point of the journal speaks of.
struct Damaged<'a> {
    last: &'a Record,
    /// The points that agree.
    before: &'a [CommitPoint],
    /// The first that does not.
    wrong: &'a CommitPoint,
    /// Of the values before.
    chain: &'a DigestChain,
}

impl Damaged<'_> {
    /// Computes the values anew from those before, and puts them back when they are those that the journal speaks of;
    /// what stood there is kept. `false`, and nothing is written, when they are not, or the escapes are damaged as well.
    fn repair(
        &self,
        dir: &Dir,
        rule: &Rule,
        method: Method,
        snapshot: Option<&DiscardSummary>,
        observer: &mut (dyn Observer + Send),
        stop: &AtomicBool,
    ) -> Result<bool> {
        let (from, to) = (self.chain.count(), self.wrong.count);
        let escapes = match self.before.last() {
            None if from == 0 => 0,
            Some(point) if from == point.count => point.escapes,
            _ => return Ok(false), // the end of what is freed, of which no record says how many escapes there were
        };
        // What is freed lies behind what is computed anew, or before it.
        let snapshot = snapshot.filter(|snapshot| snapshot.from < from);
        let start = CommitPoint { count: from, escapes, digest: self.chain.digest() };
        let table = open_at(dir, self.last, Some(&start), snapshot)?;
        let space = Some(space_of(rule, self.last)).filter(|&space| space != SparseSpace::NONE);
        let known = snapshot.map(DiscardSummary::known).unwrap_or_default();
        let mut solver = match Solver::knowing(rule, method, space, &table, &known) {
            Err(Error::Freed { .. }) => return Ok(false),
            made => made?,
        };
        let mut values = Vec::new();
        while from + (values.len() as u64) < to && !stop.load(Ordering::Relaxed) {
            let mut more = Vec::new();
            let past = Appended { first: &table, more: &values };
            match solver.advance(&past, to, &mut more) {
                Err(Error::Freed { .. } | Error::ValueTooLarge { .. }) => return Ok(false),
                advanced => advanced?,
            }
            values.append(&mut more);
        }
        let mut chain = self.chain.clone();
        chain.update(&values);
        let escapes = escapes..self.wrong.escapes.max(escapes);
        if chain.digest() != self.wrong.digest || !table.has_escapes(from, &values, escapes.clone())? {
            return Ok(false);
        }
        for name in table.quarantine(self.last.sequence, from..to, 0..0)? {
            observer.note(&format!("the damaged bytes are kept in {name}"));
        }
        table.restore(from, &values)?;
        observer.note(&format!(
            "the values {from}..{to} were not those that the journal speaks of; computed anew they are, and were put back"
        ));
        Ok(true)
    }
}

/// What hashing and counting the values anew came to.
struct VerifiedTable {
    /// Of all values that agree.
    chain: DigestChain,
    counted: RecordStats,
    /// How many points agree before the first that does not.
    good: usize,
}

/// Hashes and counts the table and compares it with every point; `snapshot` stands for what is freed. `None` when the stop
/// flag was set.
fn rehash(
    table: &Table,
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
            // Bytes and escapes contradict each other.
            Err(Error::Damage { .. }) => {
                return Ok(Some(VerifiedTable { good, chain: before, counted: counted_before }));
            }
            read => read?,
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        // Nor do the values show that a record speaks of escapes behind its own values.
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

/// Decides when a commit is due.
struct CommitClock {
    /// When the next commit is due; `None` before the first block.
    next: Option<Instant>,
    interval: Duration,
}

impl CommitClock {
    fn new() -> CommitClock {
        CommitClock { next: None, interval: FIRST_COMMIT }
    }

    /// A block was computed. The clock starts with the first one, which may take longer than the others: a commit before it
    /// would hold next to nothing.
    fn computed(&mut self, now: Instant) {
        self.next.get_or_insert(now + self.interval);
    }

    fn committed(&mut self, now: Instant) {
        self.interval = (2 * self.interval).min(COMMIT_EVERY);
        self.next = Some(now + self.interval);
    }

    fn is_due(&self, now: Instant) -> bool {
        self.next.is_some_and(|next| now >= next)
    }
}

/// Refuses to keep fewer values than the solver looks back at, as far as that is known: from the rare positions of the run up
/// to `last_rare`, and from those that the literature or our own runs know of the game, if the run reaches them.
fn check_keep(dir: &Path, rule: &Rule, options: &Options, keep: u64, last_rare: u64) -> Result<()> {
    let refuse = |needed, why: String| Err(Error::Keep { path: dir.into(), keep, needed, freed: false, why });
    if !solver::may_be_sparse(rule, options.method) {
        return refuse(None, "values are computed by the definition, which looks back at all of them".into());
    }
    let known = rule.known_last_rare().filter(|&n| options.to.is_none_or(|to| to > n));
    let last_rare = known.map_or(last_rare, |known| known.max(last_rare));
    let needed = solver::lookback(rule, last_rare);
    if needed > keep {
        return refuse(Some(needed), looks_back(last_rare, needed));
    }
    Ok(())
}

fn looks_back(last_rare: u64, needed: u64) -> String {
    format!("with the last rare position at {last_rare}, {needed} values are looked back at")
}

/// Refuses a run that does not fit the disk, before anything is written. `lookback` bounds what may be kept from below.
fn check_room(dir: &Dir, options: &Options, last: Option<&Record>, width: Width, lookback: u64) -> Result<()> {
    /// For the journal, the escapes and the files of others.
    const RESERVE: u64 = 1 << 20;
    let count = last.map_or(0, |last| last.count);
    let Some(to) = options.to.filter(|&to| to > count) else { return Ok(()) };
    let available = dir.free_space().map_err(Error::io("reading the free space of", dir.path()))?;
    let held: u64 = last.map_or(0, |last| last.kept.iter().map(|(from, to)| to - from).sum());
    // What a killed process wrote, or a run went back behind, is written over. Between holes nobody knows how much is there.
    // Tables without a record are set aside.
    let length = dir.length(table::VALUES).map_err(Error::io("reading the state of", dir.join(table::VALUES)))?;
    let behind = length.unwrap_or(0).saturating_sub(count.saturating_mul(width.bytes()).saturating_add(HEADER));
    let is_reused = last.is_some() && held == count;
    let available = if is_reused { available.saturating_add(behind) } else { available };
    let most = last
        .map_or(options.keep, |last| last.keep)
        .map_or(u64::MAX, |keep| keep.saturating_add(RETAINED_HEAD + RETENTION_SLACK));
    let needed = (to - count).min(most.saturating_sub(held)).saturating_mul(width.bytes()).saturating_add(RESERVE);
    if needed > available {
        let room = available.saturating_sub(RESERVE) / width.bytes();
        let keep = (held + room)
            .checked_sub(RETAINED_HEAD + RETENTION_SLACK)
            .filter(|&keep| keep >= lookback.max(RETAINED_HEAD));
        return Err(Error::NoRoom { path: dir.path().into(), needed, available, fits: Some(count + room), keep });
    }
    Ok(())
}

impl Run {
    fn go_on(
        mut self,
        options: &Options,
        policy: RunPolicy,
        observer: &mut (dyn Observer + Send),
        stop: &AtomicBool,
    ) -> Result<Outcome> {
        let to = options.to.unwrap_or(u64::MAX);
        let mut clock = CommitClock::new();
        loop {
            self.writer.poll()?;
            let count = self.count();
            observer.advanced(&self.progress());
            let stopping = stop.load(Ordering::Relaxed);
            let last = count >= to || stopping;
            let boundary = count.is_multiple_of(SEGMENT) && !self.pending.is_empty();
            let due = last
                || boundary
                || match policy.commit_every {
                    Some(every) => count.is_multiple_of(every) && !self.pending.is_empty(),
                    None => clock.is_due(Instant::now()) && !self.writer.is_busy(),
                };
            if due {
                self.check()?;
                self.commit()?;
                if policy.commit_every.is_some() {
                    self.writer.wait()?;
                }
                clock.committed(Instant::now());
            }
            if last {
                self.writer.wait()?;
                observer.advanced(&self.progress());
                let outcome = Outcome {
                    rule: self.rule.clone(),
                    progress: self.progress(),
                    computed: count - self.from,
                    stopped: stopping && count < to,
                };
                self.writer.close()?;
                return Ok(outcome);
            }
            if due && let Err(error) = self.check_keep() {
                self.writer.close()?;
                return Err(error);
            }
            let every = policy.commit_every.unwrap_or(SEGMENT);
            let segment_end =
                (count / SEGMENT + 1).saturating_mul(SEGMENT).min((count / every + 1).saturating_mul(every));
            let mut more = Vec::new();
            let given = Appended { first: self.writer.published(), more: self.writer.in_flight() };
            let past = Appended { first: &given, more: &self.pending };
            let advanced = self.solver.advance(&past, to.min(segment_end), &mut more);
            self.computed_digest.update(&more);
            self.largest.see_largest(count, &more);
            let (rares, last_rare) = self.solver.rares(count + more.len() as u64);
            let depth = self.solver.take_depth();
            observer.proved(count, &more, &ProofSummary { space: self.solver.space(), rares, last_rare, depth });
            self.pending.append(&mut more);
            clock.computed(Instant::now());
            if let Err(error) = advanced {
                // What was proved before the error is right, and stays.
                self.check()?;
                self.commit()?;
                let error = self.explain(error);
                self.writer.close()?;
                return Err(error);
            }
        }
    }

    /// What was computed from memory that changed is not written, nor what is another value the second time.
    fn check(&mut self) -> Result<()> {
        let given = Appended { first: self.writer.published(), more: self.writer.in_flight() };
        let past = Appended { first: &given, more: &self.pending };
        self.solver.check_memory(&past)?;
        self.memory_checks += 1;
        // Without a space every heap counts as rare.
        let has_space = self.solver.space() != SparseSpace::NONE;
        self.places.look(&self.rule, &past, if has_space { self.solver.rares(past.len()).1 } else { 0 })
    }

    /// The values that are proved.
    fn count(&self) -> u64 {
        self.writer.published().len() + self.writer.in_flight().len() as u64 + self.pending.len() as u64
    }

    fn progress(&self) -> Progress {
        let count = self.count();
        let (rares, last_rare) = self.solver.rares(count);
        Progress {
            count,
            committed: self.writer.published().len(),
            rares,
            last_rare,
            max_value: self.largest.max_value,
            max_at: self.largest.max_at,
        }
    }

    /// Stops a run that looks back farther than it is to keep values, before it frees any that it needs.
    fn check_keep(&self) -> Result<()> {
        let Some(keep) = self.writer.keep() else { return Ok(()) };
        let needed = self.solver.lookback();
        let why = match needed {
            Some(needed) if needed > keep => looks_back(self.solver.rares(self.count()).1, needed),
            None if may_free(self.writer.published(), Some(keep)) => {
                "values are still computed by the definition, which looks back at all of them".into()
            }
            _ => return Ok(()),
        };
        Err(Error::Keep { path: self.dir.path().into(), keep, needed, freed: false, why })
    }

    /// Says what freed values were needed for, and with how many it would have gone on.
    fn explain(&self, error: Error) -> Error {
        match (error, self.writer.keep()) {
            (Error::Freed { hole, heap: Some(n), .. }, Some(keep)) => Error::Keep {
                path: self.dir.path().into(),
                keep,
                needed: Some(solver::lookback(&self.rule, n)),
                freed: true,
                why: format!(
                    "heap {n} is a new rare position, or its value is proved by no option near the ends, and so all values \
                     before it are looked back at, of which {}..{} are freed",
                    hole.0, hole.1
                ),
            },
            (error, _) => error,
        }
    }

    /// Gives the writer what is proved.
    fn commit(&mut self) -> Result<()> {
        let (rares, last_rare) = self.solver.rares(self.count());
        let work = self.solver.work();
        let mut checks = self.checks_before.clone();
        for (name, number) in [
            ("witnessed", work.witnessed),
            ("definition", work.defined),
            ("walks", work.exhaustive_searches),
            ("audited", work.audited),
            ("settled", work.proved_maxima),
            ("places", self.places.done()),
            ("memory", self.memory_checks),
        ] {
            more(&mut checks, name, number);
        }
        let batch = Batch {
            values: Arc::new(std::mem::replace(&mut self.pending, self.writer.take_spare())),
            computed_digest: self.computed_digest.digest(),
            counted: RecordStats { rares, last_rare, ..self.largest },
            space: self.solver.space(),
            checks,
            suspect: self.places.suspect(),
            lookback: self.solver.lookback(),
        };
        self.writer.commit(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::storage::Memory;
    use crate::support::{Random, Tally, cases};
    use crate::theory::definition;

    /// Remembers what it is told.
    #[derive(Default)]
    struct Notes(Vec<String>);

    impl Observer for Notes {
        fn started(&mut self, _: &Rule, _: u64, _: Option<u64>) {}
        fn rehashed(&mut self, _: u64, _: u64) {}
        fn advanced(&mut self, _: &Progress) {}
        fn note(&mut self, text: &str) {
            self.0.push(text.into());
        }
    }

    const TO: u64 = 20_000;

    fn options(to: u64) -> Options {
        let method = Method::Sparse(Kernel::best());
        Options { to: Some(to), threads: 1, method, width: Some(Width::U8), keep: None, rollback: false }
    }

    /// Runs to [`TO`]; what `harm` does to each attempt comes after some values and before the next check.
    fn run_with(dir: &Dir, notes: &mut Notes, mut harm: impl FnMut(u64, &mut Run)) -> Result<Outcome> {
        let (rule, policy) =
            ("0.6".parse::<Rule>().unwrap(), RunPolicy { commit_every: Some(1000), ..RunPolicy::default() });
        let stop = AtomicBool::new(false);
        run_in(dir, Some(&rule), &options(12_000), policy, notes, &stop).unwrap();
        let mut attempts = 0;
        retry_failed_checks(7, policy, notes, |attempt, observer| {
            attempts += 1;
            record_check_failure(dir, observer, |observer| {
                match prepare(Some(&rule), dir, &options(TO), attempt, observer, &stop)? {
                    Prepared::Nothing(outcome) => Ok(outcome),
                    Prepared::Ready(mut run) => {
                        harm(attempts, &mut run);
                        run.go_on(&options(TO), policy, observer, &stop)
                    }
                }
            })
        })
    }

    fn last_record(dir: &Dir) -> Record {
        journal::read_in(dir).unwrap().last
    }

    #[test]
    fn a_flip_in_memory_opens_the_run_again_is_counted_and_leaves_no_trace() {
        let values = definition::values(&"0.6".parse().unwrap(), 20_000).unwrap();
        let mut chain = DigestChain::new();
        chain.update(&values);
        // What later values are computed from; and what waits to be written.
        for harm in [|run: &mut Run| run.solver.flip(), |run: &mut Run| run.computed_digest.update(&[7])] {
            let (dir, mut notes) = (Dir::on(Arc::new(Memory::new()), Path::new("run")), Notes::default());
            let outcome = run_with(&dir, &mut notes, |attempt, run| {
                if attempt <= 2 {
                    harm(run)
                }
            });
            // Twice the same place is a mistake; these are two accidents, or one.
            let last = last_record(&dir);
            match outcome {
                Ok(outcome) => {
                    assert_eq!((outcome.progress.count, last.errors), (TO, 2), "{:?}", notes.0);
                    assert_eq!(last.digest, chain.digest().to_string());
                }
                Err(error) => {
                    assert!(matches!(error, Error::Flipped { .. }), "{error}");
                    assert!(notes.0.last().unwrap().contains("memory changed again"), "{:?}", notes.0);
                    assert_eq!((last.count, last.errors), (12_000, 2), "no value was written");
                    run_with(&dir, &mut notes, |_, _| ()).unwrap();
                    assert_eq!(last_record(&dir).digest, chain.digest().to_string());
                }
            }
        }
    }

    /// What is computed and not yet written is nowhere else: a bit that flips there would be committed.
    #[test]
    fn a_bit_that_flips_in_what_waits_to_be_written_is_never_committed() {
        let tally = Tally::begin("flips in the output buffer");
        let rounds = cases(100, 20_000);
        let mut random = Random::new("flips in the output buffer");
        let (rule, stop) = ("0.6".parse::<Rule>().unwrap(), AtomicBool::new(false));
        let (policy, mut notes) = (RunPolicy { seed: Some(7), ..RunPolicy::default() }, Notes::default());
        let dir = Dir::on(Arc::new(Memory::new()), Path::new("run"));
        run_in(&dir, Some(&rule), &options(12_000), policy, &mut notes, &stop).unwrap();
        let attempt = Attempt { policy, seed: 7, failures: 0 };
        for round in 0..rounds {
            let prepared = prepare(Some(&rule), &dir, &options(TO), attempt, &mut notes, &stop).unwrap();
            let Prepared::Ready(mut run) = prepared else { panic!("there is something to do") };
            for _ in 0..1 + random.below(3) {
                let mut more = Vec::new();
                let past = Appended { first: run.writer.published(), more: &run.pending };
                run.solver.advance(&past, TO, &mut more).unwrap();
                run.computed_digest.update(&more);
                run.largest.see_largest(past.len(), &more);
                run.pending.append(&mut more);
            }
            let at = crate::theory::nimber::index(random.below(run.pending.len() as u64));
            run.pending[at] ^= 1 << random.below(16);
            let seen = run.check().and_then(|()| run.commit()).and_then(|()| run.writer.wait());
            assert!(matches!(seen, Err(Error::Flipped { .. })), "round {round}: bit of {at}: {seen:?}");
            drop(run);
            assert_eq!(last_record(&dir).count, 12_000);
        }
        tally.end(rounds, "all noticed before the commit");
    }

    /// A table that agrees with its journal and has a wrong value, as a mistake of the program would leave it.
    #[test]
    fn a_wrong_value_that_is_committed_stops_the_run_until_it_goes_back_before_it() {
        let (rule, stop) = ("0.07".parse::<Rule>().unwrap(), AtomicBool::new(false));
        let values = definition::values(&rule, 5000).unwrap();
        let mut chain = DigestChain::new();
        chain.update(&values);
        let policy = RunPolicy { commit_every: Some(500), repair: true, seed: None };
        let (dir, mut notes) = (Dir::on(Arc::new(Memory::new()), Path::new("run")), Notes::default());
        run_in(&dir, Some(&rule), &options(2000), policy, &mut notes, &stop).unwrap();
        let attempt = Attempt { policy, seed: 7, failures: 0 };
        let prepared = |attempt: Attempt, notes: &mut Notes| match prepare(
            Some(&rule),
            &dir,
            &options(5000),
            attempt,
            notes,
            &stop,
        ) {
            Ok(Prepared::Ready(run)) => Ok(run),
            Ok(Prepared::Nothing(_)) => panic!("there is something to do"),
            Err(error) => Err(error),
        };
        let mut run = prepared(attempt, &mut notes).unwrap();
        run.pending = values[2000..2500].to_vec();
        run.pending[250] ^= 1;
        run.computed_digest.update(&run.pending);
        run.largest.see_largest(2000, &run.pending);
        run.commit().unwrap();
        run.writer.wait().unwrap();
        run.writer.close().unwrap();

        let mut attempts = 0;
        let seen = retry_failed_checks(7, policy, &mut notes, |attempt, observer| {
            attempts += 1;
            record_check_failure(&dir, observer, |_| {
                let mut run = prepared(attempt, &mut Notes::default())?;
                run.places = SpotChecks::new(2500, 0, Some(2250)); // as if it were one that is looked at late
                run.go_on(&options(5000), policy, &mut Notes::default(), &stop)
            })
        });
        let refused = |seen: &Result<Outcome>| matches!(seen, Err(error) if error.to_string().contains("--rollback"));
        assert!(refused(&seen) && attempts == 2, "{attempts}: {seen:?}");
        // Nor does another process, or one that has nothing to do, or a reader who asks, take it for good.
        for to in [5000, 2500] {
            let seen = run_in(&dir, None, &options(to), policy, &mut notes, &stop);
            assert!(refused(&seen), "{seen:?}");
            let last = last_record(&dir);
            assert_eq!((last.count, last.errors, last.suspect), (2500, 1, Some(2250)));
            let seen = RunReader::open_in(&dir).unwrap().check_suspect();
            assert!(matches!(seen, Err(Error::Differs { n: 2250, .. })), "{seen:?}");
        }
        let back = Options { rollback: true, ..options(2100) };
        run_in(&dir, None, &back, policy, &mut notes, &stop).unwrap();
        assert!(notes.0.iter().any(|note| note.contains("went back to 2000")), "{:?}", notes.0);
        let last = last_record(&dir);
        assert_eq!((last.count, last.errors, last.suspect), (2100, 1, Some(2250)), "until it is there again");
        run_in(&dir, None, &options(5000), policy, &mut notes, &stop).unwrap();
        let last = last_record(&dir);
        assert_eq!((last.count, last.errors, last.suspect), (5000, 1, None));
        assert_eq!(last.digest, chain.digest().to_string());
    }

    /// Both at once: what is damaged is told or put right, what is in doubt is looked at in what agrees.
    #[test]
    fn going_back_because_of_damage_does_not_forget_a_heap_in_doubt() {
        let (rule, stop) = ("0.07".parse::<Rule>().unwrap(), AtomicBool::new(false));
        let policy = RunPolicy { commit_every: Some(500), repair: true, seed: None };
        let memory = Arc::new(Memory::new());
        let (dir, mut notes) = (Dir::on(memory.clone(), Path::new("run")), Notes::default());
        run_in(&dir, Some(&rule), &options(3000), policy, &mut notes, &stop).unwrap();
        for n in [1250, 2750] {
            let differs = || Err(Error::Differs { n, value: 1, again: 2, how: "a test".into() });
            assert!(record_check_failure(&dir, &mut notes, |_| differs()).is_err());
        }
        assert_eq!((last_record(&dir).errors, last_record(&dir).suspect), (2, Some(1250)), "the least");
        let mut bytes = memory.get(table::VALUES).unwrap();
        bytes[4096 + 2600] ^= 1;
        memory.put(table::VALUES, bytes);
        let back = Options { rollback: true, ..options(2500) };
        run_in(&dir, None, &back, policy, &mut notes, &stop).unwrap();
        assert_eq!((last_record(&dir).count, last_record(&dir).suspect), (2500, None), "1250 was good");

        assert!(
            record_check_failure(&dir, &mut notes, |_| Err(Error::Differs {
                n: 2400,
                value: 1,
                again: 2,
                how: "a".into()
            }))
            .is_err()
        );
        let mut bytes = memory.get(table::VALUES).unwrap();
        bytes[4096 + 2100] ^= 1;
        memory.put(table::VALUES, bytes);
        run_in(&dir, None, &Options { rollback: true, ..options(2000) }, policy, &mut notes, &stop).unwrap();
        assert_eq!((last_record(&dir).count, last_record(&dir).suspect), (2000, Some(2400)), "not there any more");
        run_in(&dir, None, &options(3000), policy, &mut notes, &stop).unwrap();
        assert_eq!((last_record(&dir).count, last_record(&dir).suspect), (3000, None));
    }

    /// A failure that a stop follows at once is counted all the same.
    #[test]
    fn a_check_that_fails_while_the_run_is_stopped_is_counted() {
        let (rule, stop) = ("0.6".parse::<Rule>().unwrap(), AtomicBool::new(false));
        let policy = RunPolicy { commit_every: Some(1000), ..RunPolicy::default() };
        let (dir, mut notes) = (Dir::on(Arc::new(Memory::new()), Path::new("run")), Notes::default());
        run_in(&dir, Some(&rule), &options(12_000), policy, &mut notes, &stop).unwrap();
        let outcome = retry_failed_checks(7, policy, &mut notes, |attempt, observer| {
            record_check_failure(&dir, observer, |observer| {
                match prepare(Some(&rule), &dir, &options(TO), attempt, observer, &stop)? {
                    Prepared::Nothing(outcome) => Ok(outcome),
                    Prepared::Ready(mut run) => {
                        stop.store(true, Ordering::Relaxed);
                        run.solver.flip();
                        run.go_on(&options(TO), policy, observer, &stop)
                    }
                }
            })
        });
        assert!(outcome.unwrap().stopped);
        assert_eq!((last_record(&dir).count, last_record(&dir).errors), (12_000, 1), "{:?}", notes.0);
    }

    /// A machine that fails every 6 s, of which opening the run takes 1 s, keeps most of what it computes.
    #[test]
    fn commits_come_early_after_the_first_block_and_then_less_often() {
        let begun = Instant::now();
        let at = |milliseconds| begun + Duration::from_millis(milliseconds);
        let mut clock = CommitClock::new();
        assert!(!clock.is_due(at(3_600_000)), "the first block decides, however long it takes");
        clock.computed(at(1000));
        let mut commits = Vec::new();
        for now in (1000..30_000).step_by(100) {
            clock.computed(at(now));
            if clock.is_due(at(now)) {
                commits.push(now);
                clock.committed(at(now));
            }
        }
        assert_eq!(commits, [1700, 3100, 5900, 10_900, 15_900, 20_900, 25_900]);
    }

    #[test]
    fn another_result_the_second_time_is_an_accident_and_the_same_one_is_not() {
        let differs = |n: u64| Error::Differs { n, value: 1, again: 2, how: "a test".into() };
        let done = || {
            Ok(Outcome { rule: "kayles".parse().unwrap(), progress: Progress::default(), computed: 0, stopped: false })
        };
        let attempt = |failing: &dyn Fn(u64) -> Option<Error>| {
            let (mut attempts, mut notes) = (0, Notes::default());
            let outcome = retry_failed_checks(0, RunPolicy::default(), &mut notes, |attempt, _| {
                attempts += 1;
                assert_eq!(attempt.failures + 1, attempts, "the next attempt knows of the failures");
                failing(attempts).map_or_else(done, Err)
            });
            (outcome.map(|_| ()), attempts, notes.0.last().cloned().unwrap_or_default())
        };
        assert!(matches!(attempt(&|_| None), (Ok(()), 1, _)));
        assert!(matches!(attempt(&|n| (n == 1).then(|| differs(5))), (Ok(()), 2, _)));
        assert!(matches!(attempt(&|n| (n < 4).then(|| differs(n))), (Ok(()), 4, _)));
        let (outcome, attempts, note) = attempt(&|_| Some(differs(5)));
        assert!(
            matches!(outcome, Err(Error::Differs { n: 5, .. })) && attempts == 2 && note.contains("report the bug")
        );
        // A bit that is stuck changes the same memory each time; the second text is then no evidence of a bug.
        let flipped = || Error::Flipped { what: "the codes", from: 1, to: 2 };
        let (outcome, attempts, note) = attempt(&|_| Some(flipped()));
        assert!(matches!(outcome, Err(Error::Flipped { .. })) && attempts == 2 && note.contains("stuck memory bit"));
        assert!(!note.contains("bug"), "{note}");
        let (outcome, attempts, note) = attempt(&|n| Some(differs(n)));
        assert!(
            outcome.is_err() && attempts == 1 + FAILURES as u64 && note.contains("test the memory"),
            "{attempts}, {note}"
        );
        let (outcome, attempts, _) = attempt(&|_| Some(Error::ValueTooLarge { n: 1 }));
        assert!(matches!(outcome, Err(Error::ValueTooLarge { .. })) && attempts == 1, "no check failed");
    }
}

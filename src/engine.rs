//! The run: where the mathematics meets the storage.
//!
//! A run computes values, proves them, and commits them to a directory so that nothing that was said to be there is ever
//! lost or wrong: values are written, made durable, entered in the journal, the journal is made durable, and only then
//! are they published in headers, progress and map. A commit comes within the first second, then every 2^24 values or 5 s,
//! and at each end of a segment of the digest; the last one may end anywhere.
//!
//! On opening, the journal is read, the whole table is hashed again and compared with every record that still speaks of
//! it, and rares and largest value are counted anew from the table. A table that does not agree stops the run; with
//! `rollback` it goes back to the last record that agrees, and says so in the journal before anything is written over.

use crate::definition::{Appended, Sequence, for_each_piece};
use crate::digest::{Chain, SEGMENT};
use crate::error::{Error, Result};
use crate::journal::{self, Contents, Event, FORMAT, Journal, Point, Record, Width, rule_digest};
use crate::rule::Rule;
use crate::sparse::{Method, Solver, Space};
use crate::table::{self, HEADER, Table};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The time between commits, and to the first one.
const COMMIT_EVERY: Duration = Duration::from_secs(5);
const FIRST_COMMIT: Duration = Duration::from_millis(700);

/// How many values decide the width of the table.
const WIDTH_SAMPLE: u64 = 1 << 16;

/// Characters of a game's name that a record of 4096 bytes has room for, with all else in it.
const LONGEST_NAME: usize = 2048;

/// One in this many values may exceed 255 in a table of bytes.
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
    /// Go back to the last good record when the table does not agree with the journal.
    pub rollback: bool,
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

/// Is told how a run goes on.
pub trait Observer {
    /// The run has this game and directory and starts at `from`.
    fn started(&mut self, rule: &Rule, from: u64, to: Option<u64>);
    /// `count` of `of` stored values have been hashed again.
    fn rehashed(&mut self, count: u64, of: u64);
    /// Some values more; called after every block.
    fn advanced(&mut self, progress: &Progress);
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
#[derive(Debug)]
pub struct View {
    /// The game.
    pub rule: Rule,
    /// The journal.
    pub contents: Contents,
    /// The table.
    pub table: Table,
}

impl View {
    /// Opens the run in `dir`.
    ///
    /// # Errors
    /// What reading journal and table gives; [`Error::Damage`] when the journal's game is none.
    pub fn open(dir: &Path) -> Result<View> {
        let contents = journal::read(dir)?;
        let rule = rule_of(dir, &contents.last)?;
        let Record { width, count, escapes, .. } = contents.last;
        let table = Table::open(dir, width, count, escapes, false)?;
        Ok(View { rule, contents, table })
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
    if rule.name() != record.game || rule_digest(rule) != record.rule {
        let found = record.game.escape_default().to_string();
        return Err(Error::Mismatch { path: dir.into(), what: "the game", found, expected: rule.name().into() });
    }
    Ok(())
}

/// What the table alone tells: recounted on every resume and compared with the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recount {
    pub(crate) rares: u64,
    pub(crate) last_rare: u64,
    pub(crate) max_value: u16,
    pub(crate) max_at: u64,
}

impl Recount {
    pub(crate) fn see(&mut self, space: Space, from: u64, values: &[u16]) {
        self.see_largest(from, values);
        for (n, &v) in (from..).zip(values) {
            if space.is_rare(v, n) {
                self.rares += 1;
                self.last_rare = n;
            }
        }
    }

    fn see_largest(&mut self, from: u64, values: &[u16]) {
        let largest = values.iter().copied().max().unwrap_or(0);
        if largest > self.max_value {
            self.max_value = largest;
            self.max_at = from + values.iter().position(|&v| v == largest).unwrap_or(0) as u64;
        }
    }

    /// Whether a record says the same.
    pub(crate) fn agrees(&self, record: &Record) -> bool {
        (self.rares, self.last_rare, self.max_value, self.max_at)
            == (record.rares, record.last_rare, record.max_value, record.max_at)
    }
}

/// The space of a record; [`Space::NONE`] when it has none.
pub(crate) fn space_of(rule: &Rule, record: &Record) -> Space {
    Space::new(rule, record.mask, record.position).unwrap_or(Space::NONE)
}

/// Makes or resumes the run in `dir`; `rule` may be left out when the directory holds one.
///
/// `stop` is looked at between blocks; when it is set the run commits what it has and returns.
///
/// # Errors
/// Everything in [`Error`]; what was committed before stays.
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
    pool.install(|| match prepare(rule, dir, options, observer, stop)? {
        Prepared::Nothing(outcome) => Ok(outcome),
        Prepared::Ready(run) => run.go_on(options, observer, stop),
    })
}

struct Run {
    rule: Rule,
    journal: Journal,
    table: Table,
    solver: Solver,
    chain: Chain,
    /// Proved, not committed.
    pending: Vec<u16>,
    largest: Recount,
    template: Record,
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
    dir: &Path,
    options: &Options,
    observer: &mut (dyn Observer + Send),
    stop: &AtomicBool,
) -> Result<Prepared> {
    let fresh = !dir.join(journal::NAME).exists();
    let no_run = |why: &str| Error::NoRun { path: dir.into(), why: why.into() };
    if let Some(rule) = rule.filter(|rule| rule.name().len() > LONGEST_NAME) {
        let length = rule.name().len();
        return Err(Error::Rule(format!(
            "a name of {length} characters does not fit a record; at most {LONGEST_NAME} do"
        )));
    }
    if fresh {
        if rule.is_none() {
            return Err(no_run("and no game was named"));
        }
        if [table::VALUES, table::ESCAPES].iter().any(|name| dir.join(name).exists()) {
            return Err(no_run("but data files without a journal, which are left untouched"));
        }
        check_room(dir, options.to, 0, options.width.unwrap_or(Width::U8))?;
        std::fs::create_dir_all(dir).map_err(Error::io("making", dir))?;
    }
    let (mut journal, contents) = Journal::open(dir)?;
    match (contents, rule) {
        (Some(contents), rule) => {
            if let Some(rule) = rule {
                check_rule(dir, rule, &contents.last)?;
            }
            resume(dir, journal, contents, options, observer, stop)
        }
        (None, None) => Err(no_run("the journal holds no whole record, and no game was named")),
        (None, Some(rule)) => {
            // A kill in the first second leaves empty tables; values without a record are somebody's loss to decide on.
            for name in [table::VALUES, table::ESCAPES] {
                let path = dir.join(name);
                let length = std::fs::metadata(&path).map_or(0, |m| m.len());
                if length > HEADER && !options.rollback {
                    let what = "values are here, but no record of the journal is good; 'grundy run --rollback' of the \
                                same game and directory throws them away and starts anew";
                    return Err(Error::Damage { path, offset: HEADER, what: what.into() });
                }
            }
            if journal.has_torn_tail()? {
                observer.note("the journal holds no whole record: the run starts anew");
                journal.drop_torn_tail()?;
            }
            create(dir, journal, rule, options, observer, stop).map(|run| Prepared::Ready(Box::new(run)))
        }
    }
}

fn create(
    dir: &Path,
    journal: Journal,
    rule: &Rule,
    options: &Options,
    observer: &mut (dyn Observer + Send),
    stop: &AtomicBool,
) -> Result<Run> {
    observer.started(rule, 0, options.to);
    let mut solver = Solver::new(rule, options.method, None, [].as_slice())?;
    let mut pending = Vec::new();
    let sample = options.to.unwrap_or(u64::MAX).min(WIDTH_SAMPLE);
    while options.width.is_none() && (pending.len() as u64) < sample && !stop.load(Ordering::Relaxed) {
        let mut more = Vec::new();
        solver.advance(pending.as_slice(), sample, &mut more)?;
        pending.append(&mut more);
    }
    let large = pending.iter().filter(|&&v| v > 255).count();
    let decided = if large * ESCAPES_WORTH > pending.len() { Width::U16 } else { Width::U8 };
    let width = options.width.unwrap_or(decided);
    check_room(dir, options.to, 0, width)?;
    let table = Table::create(dir, width)?;
    let template = Record {
        format: FORMAT,
        run: new_identity(),
        game: rule.name().into(),
        rule: rule_digest(rule),
        sequence: 0,
        event: Event::Commit,
        count: 0,
        escapes: 0,
        width,
        mask: 0,
        position: 0,
        kept: Vec::new(),
        digest: String::new(),
        rares: 0,
        last_rare: 0,
        max_value: 0,
        max_at: 0,
        checks: BTreeMap::new(),
        errors: 0,
        kernel: options.method.name().into(),
        program: concat!("grundy ", env!("CARGO_PKG_VERSION")).into(),
        previous: String::new(),
        blake3: String::new(),
    };
    let mut largest = Recount::default();
    largest.see_largest(0, &pending);
    Ok(Run {
        rule: rule.clone(),
        journal,
        table,
        solver,
        chain: Chain::new(),
        pending,
        largest,
        checks_before: BTreeMap::new(),
        template,
        from: 0,
    })
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
    dir: &Path,
    mut journal: Journal,
    contents: Contents,
    options: &Options,
    observer: &mut (dyn Observer + Send),
    stop: &AtomicBool,
) -> Result<Prepared> {
    let mut last = contents.last.clone();
    let rule = rule_of(dir, &last)?;
    if let Some(width) = options.width.filter(|&width| width != last.width) {
        let (found, expected) = (last.width.name().into(), width.name().into());
        return Err(Error::Mismatch { path: dir.into(), what: "the width of the table", found, expected });
    }
    if let Some(offset) = contents.torn {
        observer.note(&format!("the last record of the journal (byte {offset}) broke off and is dropped"));
        journal.drop_torn_tail()?;
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
    check_room(dir, options.to, last.count, last.width)?;
    let mut points = contents.points;
    let mut table = open_table(dir, &last, &mut points, options.rollback)?;
    let checked = rehash(&table, &points, observer, stop)?;
    let Some((mut chain, good)) = checked else {
        return Ok(as_it_is(&last, true)); // a second thought during the re-hash
    };
    let whole = good == points.len() && points.last().is_some_and(|p| p.count == last.count);
    let header = table.header_shapes().and_then(|_| table.check_escapes());
    if let Err(error) = header
        && whole
        && !options.rollback
    {
        return Err(error);
    }
    if !whole {
        let point =
            good.checked_sub(1).map_or(Point { count: 0, escapes: 0, digest: Default::default() }, |i| points[i]);
        if !options.rollback {
            let next = points.get(good).map_or(last.count, |p| p.count);
            return Err(Error::Damage {
                path: table.path().into(),
                offset: HEADER + point.count * last.width.bytes(),
                what: format!(
                    "the values {}..{next} are not those that the journal speaks of; 'grundy run --dir {} --rollback' \
                     goes back to {} values",
                    point.count,
                    dir.display(),
                    point.count
                ),
            });
        }
        drop(table);
        table = Table::open(dir, last.width, point.count, point.escapes, true)?;
        chain = Chain::new();
        for_each_piece(&table, 0, point.count, |_, values| {
            chain.update(values);
            Ok(())
        })?;
        let recount = recount(&table, space_of(&rule, &last))?;
        last = Record { event: Event::Rollback, count: point.count, escapes: point.escapes, ..last };
        fill(&mut last, &chain, recount);
        last.errors += 1;
        journal.append(last.clone())?;
        observer.note(&format!("the table was damaged: the run went back to {} values", point.count));
    }
    table.write_headers()?;
    let space = space_of(&rule, &last);
    let counted = recount(&table, space)?;
    if !counted.agrees(&last) {
        return Err(Error::Damage {
            path: dir.join(journal::NAME),
            offset: 0,
            what: format!(
                "rares and largest value counted from the table are {counted:?}, not those of the last record"
            ),
        });
    }
    if options.to.is_some_and(|to| to <= last.count) {
        close(table, &mut journal)?;
        observer.note(&format!("nothing is left to do: {} values are there", last.count));
        return Ok(as_it_is(&last, false));
    }
    observer.started(&rule, last.count, options.to);
    let solver = Solver::new(&rule, options.method, (space != Space::NONE).then_some(space), &table)?;
    let template = Record {
        event: Event::Commit,
        kernel: options.method.name().into(),
        program: concat!("grundy ", env!("CARGO_PKG_VERSION")).into(),
        ..last.clone()
    };
    let mut checks_before = last.checks;
    *checks_before.entry("rehashed".into()).or_default() += last.count;
    Ok(Prepared::Ready(Box::new(Run {
        rule,
        journal,
        table,
        solver,
        chain,
        pending: Vec::new(),
        largest: counted,
        checks_before,
        template,
        from: last.count,
    })))
}

/// Ends a run cleanly, and then says so in the journal: from then on headers and lengths are exact.
fn close(table: Table, journal: &mut Journal) -> Result<()> {
    table.close()?;
    match journal.last() {
        Some(last) if last.event != Event::Close => journal.append(Record { event: Event::Close, ..last.clone() }),
        _ => Ok(()),
    }
}

/// Opens the table at the last point whose values are there at all; `points` loses those that are not.
fn open_table(dir: &Path, last: &Record, points: &mut Vec<Point>, rollback: bool) -> Result<Table> {
    loop {
        let point = points.last().copied().unwrap_or(Point { count: 0, escapes: 0, digest: Default::default() });
        match Table::open(dir, last.width, point.count, point.escapes, true) {
            Err(Error::Damage { .. }) if rollback && !points.is_empty() => {
                points.pop();
            }
            other => return other,
        }
    }
}

/// Hashes the table and compares it with every point: the chain, and how many points agree before the first that does
/// not. `None` when the stop flag was set.
fn rehash(
    table: &Table,
    points: &[Point],
    observer: &mut (dyn Observer + Send),
    stop: &AtomicBool,
) -> Result<Option<(Chain, usize)>> {
    let mut chain = Chain::new();
    for (good, point) in points.iter().enumerate() {
        for_each_piece(table, chain.count(), point.count, |_, values| {
            chain.update(values);
            observer.rehashed(chain.count(), table.len());
            Ok(())
        })?;
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if chain.digest() != point.digest {
            return Ok(Some((chain, good)));
        }
    }
    Ok(Some((chain, points.len())))
}

fn recount(table: &Table, space: Space) -> Result<Recount> {
    let mut recount = Recount::default();
    for_each_piece(table, 0, table.len(), |from, values| {
        recount.see(space, from, values);
        Ok(())
    })?;
    Ok(recount)
}

fn fill(record: &mut Record, chain: &Chain, counted: Recount) {
    record.digest = chain.digest().to_string();
    record.kept = vec![(0, record.count)];
    (record.rares, record.last_rare) = (counted.rares, counted.last_rare);
    (record.max_value, record.max_at) = (counted.max_value, counted.max_at);
}

/// Refuses a run that does not fit the disk, before anything is written.
fn check_room(dir: &Path, to: Option<u64>, count: u64, width: Width) -> Result<()> {
    /// For the journal, the escapes and the files of others.
    const RESERVE: u64 = 1 << 20;
    let Some(to) = to.filter(|&to| to > count) else { return Ok(()) };
    let existing = dir.ancestors().find(|d| !d.as_os_str().is_empty() && d.exists()).unwrap_or(Path::new("."));
    let available = table::available(existing)?;
    let needed = (to - count).saturating_mul(width.bytes()).saturating_add(RESERVE);
    if needed > available {
        let fits = count + available.saturating_sub(RESERVE) / width.bytes();
        return Err(Error::NoRoom { path: dir.into(), needed, available, fits: Some(fits) });
    }
    Ok(())
}

impl Run {
    fn go_on(mut self, options: &Options, observer: &mut (dyn Observer + Send), stop: &AtomicBool) -> Result<Outcome> {
        let to = options.to.unwrap_or(u64::MAX);
        let mut next_commit = Instant::now() + FIRST_COMMIT;
        loop {
            let count = self.table.len() + self.pending.len() as u64;
            observer.advanced(&self.progress());
            let stopping = stop.load(Ordering::Relaxed);
            let boundary = count.is_multiple_of(SEGMENT) && count > self.table.len();
            if count >= to || stopping || boundary || Instant::now() >= next_commit {
                self.commit()?;
                observer.advanced(&self.progress());
                next_commit = Instant::now() + COMMIT_EVERY;
            }
            if count >= to || stopping {
                let outcome = Outcome {
                    rule: self.rule.clone(),
                    progress: self.progress(),
                    computed: count - self.from,
                    stopped: stopping && count < to,
                };
                close(self.table, &mut self.journal)?;
                return Ok(outcome);
            }
            let segment_end = (count / SEGMENT + 1).saturating_mul(SEGMENT);
            let mut more = Vec::new();
            let past = Appended { first: &self.table, more: &self.pending };
            let advanced = self.solver.advance(&past, to.min(segment_end), &mut more);
            self.largest.see_largest(count, &more);
            self.pending.append(&mut more);
            if let Err(error) = advanced {
                // What was proved before the error is right, and stays.
                self.commit()?;
                return Err(error);
            }
        }
    }

    fn progress(&self) -> Progress {
        let count = self.table.len() + self.pending.len() as u64;
        let (rares, last_rare) = self.solver.rares(count);
        Progress {
            count,
            committed: self.table.len(),
            rares,
            last_rare,
            max_value: self.largest.max_value,
            max_at: self.largest.max_at,
        }
    }

    /// The order that loses nothing: data, data durable, record, record durable, published.
    fn commit(&mut self) -> Result<()> {
        if self.pending.is_empty() && self.journal.last().is_some() {
            return Ok(());
        }
        self.chain.update(&self.pending);
        self.table.write(&self.pending)?;
        self.table.sync()?;
        let (count, escapes) = self.table.written();
        let work = self.solver.work();
        let space = self.solver.space();
        let (rares, last_rare) = self.solver.rares(count);
        let mut record = Record { count, escapes, mask: space.mask, position: space.position, ..self.template.clone() };
        fill(&mut record, &self.chain, Recount { rares, last_rare, ..self.largest });
        record.checks.clone_from(&self.checks_before);
        for (name, number) in [("witnessed", work.witnessed), ("definition", work.defined), ("walks", work.walks)] {
            *record.checks.entry(name.into()).or_default() += number;
        }
        self.journal.append(record)?;
        self.pending.clear();
        self.table.publish()
    }
}

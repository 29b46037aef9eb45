//! `grundy status`: show what a run contains, from its last record, and which checks its values have passed.

use super::Usage;
use anyhow::Result;
use grundy::checkpoint::journal::{self, Checks, Contents, Record};
use grundy::error::{Error, Kind};
use grundy::period::exclude::{self, Excluded};
use grundy::run::RunReader;
use grundy::solver::SparseSpace;
use grundy::table::Width;
use grundy::theory::definition::Sequence;
use indicatif::{DecimalBytes, HumanCount, HumanDuration};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments of `grundy status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy status\n         \
                        grundy status runs/grundy --json\n\
                        JSON keys: game count width mask position rares last_rare max_value max_at escapes digest\n\
                        checks errors suspect strategy time seconds kept excluded.\n\
                        'rares' is the number of rare positions, 'last_rare' the last of them; 'suspect' is the n\n\
                        whose value failed a check and has not been recomputed, else null; 'strategy' is how the\n\
                        next values are computed, and why; 'time' is when the last record was written (UTC);\n\
                        'seconds' is the computing time over all processes; 'kept' lists the half-open ranges of n\n\
                        whose values are kept. 'excluded' says which periods are ruled out by zeros: every divisor\n\
                        of each of 'count' numbers, of which 'largest' is the largest. 'least_left' is the least\n\
                        period that no zero rules out, 'looked' the number of values searched for zeros.\n\
                        Exit status 3 if a file of the run is missing or shorter than the journal says; 'grundy\n\
                        verify' checks every byte.")]
pub(crate) struct Args {
    /// Run directories [default: list the runs in runs/, one line each].
    #[arg(value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// Print one JSON object per run.
    #[arg(long)]
    json: bool,
}

pub(crate) fn status(args: &Args) -> Result<()> {
    if args.dirs.is_empty() {
        return list(args.json);
    }
    let results: Vec<Result<()>> = args.dirs.iter().enumerate().map(|(i, dir)| status_of(dir, args.json, i)).collect();
    gravest(results.into_iter().filter_map(Result::err).collect())
}

/// Returns the first error that is damage, or else the first one, and prints the others.
fn gravest(mut errors: Vec<anyhow::Error>) -> Result<()> {
    if errors.is_empty() {
        return Ok(());
    }
    let is_damage = |error: &anyhow::Error| error.downcast_ref().map(Error::kind) == Some(Kind::Damage);
    let gravest = errors.remove(errors.iter().position(is_damage).unwrap_or(0));
    errors.iter().for_each(super::report);
    Err(gravest)
}

/// Prints the state of a run, the `i`-th in the list.
fn status_of(dir: &Path, json: bool, i: usize) -> Result<()> {
    let contents = journal::read(super::source::run_directory(dir)?)?;
    let record = &contents.last;
    // Opening the run compares the lengths of its files with the journal. If they are damaged, status still prints the
    // journal, then reports the damage.
    let view = RunReader::open(dir);
    let excluded = view.as_ref().ok().and_then(excluded);
    super::output::print(|out| {
        if json {
            return super::output::object(out, &Object::of(record, excluded.as_ref()));
        }
        let gap = if i > 0 { "\n" } else { "" };
        Ok(write!(out, "{gap}{}", Report { contents: &contents, excluded: excluded.as_ref() })?)
    })?;
    Ok(view.map(drop)?)
}

/// Lists the runs in the directory of all runs, one line each.
fn list(json: bool) -> Result<()> {
    let runs = super::source::runs_in(Path::new(super::RUNS));
    if runs.is_empty() {
        return Err(Usage(format!("there are no runs in {}/; name a run directory DIR", super::RUNS)).into());
    }
    let (mut records, mut errors) = (Vec::new(), Vec::new());
    for dir in runs {
        match journal::read(&dir) {
            Ok(contents) => records.push((dir, contents.last)),
            Err(error) => errors.push(error.into()),
        }
    }
    let names: Vec<String> = records.iter().map(|(dir, _)| super::source::printable(dir)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    super::output::print(|out| {
        for (name, (dir, record)) in names.iter().zip(&records) {
            if json {
                let excluded = RunReader::open(dir).ok().as_ref().and_then(excluded);
                super::output::object(out, &Object::of(record, excluded.as_ref()))?;
            } else {
                let (count, time) = (HumanCount(record.count).to_string(), record.time.escape_default());
                writeln!(out, "{name:<width$}  {count:>18} values  largest {:>5}  {time}", record.max_value)?;
            }
        }
        Ok(())
    })?;
    gravest(errors)
}

/// Prints the object of `status --json` for a run.
pub(super) fn object(dir: &Path) -> Result<()> {
    let contents = journal::read(dir)?;
    let view = RunReader::open(dir)?;
    super::output::print(|out| super::output::object(out, &Object::of(&contents.last, excluded(&view).as_ref())))
}

/// The object of `status --json`: one field per key.
#[derive(Serialize)]
struct Object<'a> {
    game: &'a str,
    count: u64,
    width: Width,
    mask: u16,
    position: u8,
    rares: u64,
    last_rare: u64,
    max_value: u16,
    max_at: u64,
    escapes: u64,
    digest: &'a str,
    checks: &'a Checks,
    errors: u64,
    suspect: Option<u64>,
    strategy: Option<&'a str>,
    time: &'a str,
    seconds: u64,
    kept: &'a [(u64, u64)],
    excluded: Option<ExcludedPeriods>,
}

/// The object `excluded` of `status --json`.
#[derive(Serialize)]
struct ExcludedPeriods {
    count: usize,
    largest: Option<u64>,
    least_left: u64,
    looked: u64,
}

impl<'a> Object<'a> {
    fn of(record: &'a Record, excluded: Option<&Excluded>) -> Object<'a> {
        let excluded = excluded.map(|excluded| ExcludedPeriods {
            count: excluded.multiples.len(),
            largest: excluded.multiples.last().copied(),
            least_left: excluded.least_left,
            looked: excluded.examined,
        });
        Object {
            game: &record.game,
            count: record.count,
            width: record.width,
            mask: record.mask,
            position: record.position,
            rares: record.rares,
            last_rare: record.last_rare,
            max_value: record.max_value,
            max_at: record.max_at,
            escapes: record.escapes,
            digest: &record.digest,
            checks: &record.checks,
            errors: record.errors,
            suspect: record.suspect,
            strategy: record.strategy.as_deref(),
            time: &record.time,
            seconds: record.seconds,
            kept: &record.kept,
            excluded,
        }
    }
}

/// The lines of `status`, each a name and a value.
struct Report<'a> {
    contents: &'a Contents,
    excluded: Option<&'a Excluded>,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let record = &self.contents.last;
        let lines = [
            ("game", record.game.escape_default().to_string()),
            ("values", values(record)),
            ("kept", kept(record)),
            ("table", width(record)),
            ("space", space(record)),
            ("strategy", strategy(record)),
            ("rare positions", rare_positions(record)),
            ("largest value", format!("{} at {}", record.max_value, HumanCount(record.max_at))),
            ("periods", periods(self.excluded)),
            ("digest", record.digest.escape_default().to_string()),
            ("proved", checks(record, PROVED)),
            ("rechecked", checks(record, RECHECKED)),
            ("failed checks", failed_checks(record)),
            ("written by", format!("{}, kernel {}", record.program.escape_default(), record.kernel.escape_default())),
            ("last record", record.time.escape_default().to_string()),
            ("computing time", computing_time(record)),
            ("commits", HumanCount(self.contents.records).to_string()),
        ];
        for (name, value) in lines {
            writeln!(f, "{name:<14}  {value}")?;
        }
        if self.contents.torn.is_some() {
            writeln!(f, "{:<14}  the last record is incomplete; the next run removes it", "note")?;
        }
        Ok(())
    }
}

fn computing_time(record: &Record) -> String {
    let time = HumanDuration(Duration::from_secs(record.seconds));
    format!("{} s ({time})", HumanCount(record.seconds))
}

fn values(record: &Record) -> String {
    match record.count {
        0 => "0 (none is committed yet)".to_owned(),
        count => format!("{} (G(0) to G({}))", HumanCount(count), HumanCount(count - 1)),
    }
}

fn kept(record: &Record) -> String {
    let range = |(from, to): &(u64, u64)| format!("{}..{}", HumanCount(*from), HumanCount(*to));
    let ranges = record.kept.iter().map(range).collect::<Vec<String>>().join(" and ");
    match record.keep {
        Some(keep) => format!("{ranges} (the first values, and at least the last {})", HumanCount(keep)),
        None => ranges,
    }
}

/// The length of the tables.
fn width(record: &Record) -> String {
    /// Length of an entry of the list of large values, in bytes.
    const ESCAPE: u64 = 10;
    let kept: u64 = record.kept.iter().map(|(from, to)| to - from).sum();
    match record.width {
        Width::U8 => {
            let size = DecimalBytes(kept.saturating_add(ESCAPE.saturating_mul(record.escapes)));
            format!("{size}: one byte per value (u8), and a list of {} values from 255 on", HumanCount(record.escapes))
        }
        Width::U16 => format!("{}: two bytes per value (u16)", DecimalBytes(kept.saturating_mul(2))),
    }
}

fn space(record: &Record) -> String {
    match record.mask {
        0 => "none".to_owned(),
        mask => format!("mask {mask:#x}, position term {}", record.position),
    }
}

/// The number of rare positions, and which they are.
fn rare_positions(record: &Record) -> String {
    let space = record.game.parse().ok().and_then(|rule| SparseSpace::new(&rule, record.mask, record.position));
    let Some(space) = space else { return "all, because there is no sparse space".to_owned() };
    let (count, last) = (HumanCount(record.rares), HumanCount(record.last_rare));
    let parity = |n| if space.is_rare(0, n) { "even" } else { "odd" };
    let which = match (parity(2), parity(1)) {
        (even, odd) if even == odd => format!("an {even} number of bits of G(n) are in the mask"),
        (even, odd) => format!("at even n an {even}, at odd n an {odd} number of bits of G(n) are in the mask"),
    };
    format!("{count}, the last at {last} (n is rare if {which})")
}

fn strategy(record: &Record) -> String {
    let strategy = record.strategy.as_deref().unwrap_or("not recorded; the next run records it");
    strategy.escape_default().to_string()
}

fn periods(excluded: Option<&Excluded>) -> String {
    let Some(excluded) = excluded else { return "unknown, because the table cannot be read".to_owned() };
    let Excluded { multiples, least_left, examined, .. } = excluded;
    let Some(largest) = multiples.last() else {
        return format!("no period is ruled out by the zeros among the first {examined} values");
    };
    let (count, largest, examined) = (multiples.len(), HumanCount(*largest), HumanCount(*examined));
    format!(
        "no divisor of {count} numbers up to {largest}, by the zeros among the first {examined} values; the least period \
         left is {}",
        HumanCount(*least_left)
    )
}

/// The checks that prove values: the key in the record, and what it counts.
const PROVED: &[(&str, &str)] = &[("witnessed", "values by witnesses"), ("definition", "by the definition")];

/// The checks that repeat a computation: the key in the record, and what it counts.
const RECHECKED: &[(&str, &str)] = &[
    ("audited", "values by another kernel"),
    ("places", "by the definition"),
    ("settled", "new maxima from all pairs"),
    ("walks", "anomalies by exhaustive search"),
    ("memory", "memory checks"),
    ("rehashed", "values hashed from the disk"),
    ("repaired", "damaged ranges restored"),
];

/// The numbers of checks of these kinds that the run has made.
fn checks(record: &Record, kinds: &[(&str, &str)]) -> String {
    let mut counts = Vec::new();
    for (key, what) in kinds {
        if let Some(number) = record.checks.get(key).filter(|number| *number > 0) {
            counts.push(format!("{} {what}", HumanCount(number)));
        }
    }
    counts.join(", ")
}

fn failed_checks(record: &Record) -> String {
    let mut text = record.errors.to_string();
    if record.errors > 0 {
        text += "; uncommitted values were recomputed; test the memory and the disk of this machine";
    }
    if let Some(n) = record.suspect {
        text += &format!("; G({n}) is suspect until it is recomputed");
    }
    text
}

/// The periods that zeros among the first values rule out; `None` if the values cannot be read, a fault that `verify`
/// reports.
fn excluded(view: &RunReader) -> Option<Excluded> {
    /// Maximum number of first values searched for zeros: later zeros are scarce, and status must be quick.
    const LOOKED: u64 = 1 << 22;
    let discarded = view.discarded();
    let there = if discarded.is_empty() { view.len() } else { discarded.start };
    exclude::excluded(&view.rule, view, there.min(LOOKED)).ok()
}

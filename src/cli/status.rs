//! `grundy status`: show what a run contains, from its last record, and which checks its values have passed.

use anyhow::Result;
use grundy::checkpoint::journal::{self, Checks, Contents, Record};
use grundy::period::exclude::{self, Excluded};
use grundy::run::RunReader;
use grundy::table::Width;
use grundy::theory::definition::Sequence;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Arguments of `grundy status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy status runs/grundy --json\n\
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
    /// Run directory.
    dir: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn status(args: &Args) -> Result<()> {
    let contents = journal::read(super::source::run_directory(&args.dir)?)?;
    let record = &contents.last;
    // Opening the run compares the lengths of its files with the journal. If they are damaged, status still prints the
    // journal, then reports the damage.
    let view = RunReader::open(&args.dir);
    let excluded = view.as_ref().ok().and_then(excluded);
    super::output::print(|out| {
        if args.json {
            return super::output::object(out, &Object::of(record, excluded.as_ref()));
        }
        Ok(write!(out, "{}", Report { contents: &contents, excluded: excluded.as_ref() })?)
    })?;
    Ok(view.map(drop)?)
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
            ("width", width(record)),
            ("space", space(record)),
            ("strategy", strategy(record)),
            ("rare positions", format!("{}, the last at {}", record.rares, record.last_rare)),
            ("largest value", format!("{} at {}", record.max_value, record.max_at)),
            ("periods", periods(self.excluded)),
            ("digest", record.digest.escape_default().to_string()),
            ("proved", checks(record, PROVED)),
            ("rechecked", checks(record, RECHECKED)),
            ("failed checks", failed_checks(record)),
            ("written by", format!("{}, kernel {}", record.program.escape_default(), record.kernel.escape_default())),
            ("last record", record.time.escape_default().to_string()),
            ("computing time", format!("{} s", record.seconds)),
            ("commits", self.contents.records.to_string()),
        ];
        for (name, value) in lines {
            writeln!(f, "{name:>15}  {value}")?;
        }
        if self.contents.torn.is_some() {
            writeln!(f, "{:>15}  the last record is incomplete; the next run removes it", "note")?;
        }
        Ok(())
    }
}

fn values(record: &Record) -> String {
    match record.count {
        0 => "0 (none is committed yet)".to_owned(),
        count => format!("{count} (G(0) to G({}))", count - 1),
    }
}

fn kept(record: &Record) -> String {
    let ranges: Vec<String> = record.kept.iter().map(|(from, to)| format!("{from}..{to}")).collect();
    let ranges = ranges.join(" and ");
    match record.keep {
        Some(keep) => format!("{ranges} (the first values, and at least the last {keep})"),
        None => ranges,
    }
}

fn width(record: &Record) -> String {
    match record.width {
        Width::U8 => format!("u8, and {} values of 255 or more", record.escapes),
        Width::U16 => "u16".into(),
    }
}

fn space(record: &Record) -> String {
    match record.mask {
        0 => "none".to_owned(),
        mask => format!("mask {mask:#x}, position term {}", record.position),
    }
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
    let count = multiples.len();
    format!(
        "no divisor of {count} numbers up to {largest}, by the zeros among the first {examined} values; the least period \
         left is {least_left}"
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
            counts.push(format!("{number} {what}"));
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

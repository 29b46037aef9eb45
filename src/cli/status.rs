//! `grundy status`: show what a run contains, from its last record, and which checks its values have passed.

use anyhow::Result;
use grundy::checkpoint::journal::{self, Contents, Record};
use grundy::period::exclude::{self, Excluded};
use grundy::run::RunReader;
use grundy::table::Width;
use grundy::theory::definition::Sequence;
use std::path::PathBuf;

/// Arguments of `grundy status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy status runs/grundy --json\n\
                        JSON keys: game count width mask position rares last_rare max_value max_at escapes digest\n\
                        checks errors suspect time seconds kept excluded.\n\
                        'rares' is the number of rare positions, 'last_rare' the last of them; 'suspect' is the n\n\
                        whose value failed a check and has not been recomputed, else null; 'time' is when the last\n\
                        record was written (UTC); 'seconds' is the computing time over all processes; 'kept' lists\n\
                        the half-open ranges of n whose values are kept. 'excluded' says which periods are ruled out\n\
                        by zeros: every divisor of each of 'count' numbers, of which 'largest' is the largest.\n\
                        'least_left' is the least period that no zero rules out, 'looked' the number of values\n\
                        searched for zeros.\n\
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
            return Ok(writeln!(out, "{}", in_json(record, excluded.as_ref()))?);
        }
        for (name, value) in in_words(&contents, excluded.as_ref()) {
            writeln!(out, "{name:>15}  {value}")?;
        }
        if contents.torn.is_some() {
            writeln!(out, "{:>15}  the last record is incomplete; the next run removes it", "note")?;
        }
        Ok(())
    })?;
    Ok(view.map(drop)?)
}

/// The object that `status --json` prints.
fn in_json(record: &Record, excluded: Option<&Excluded>) -> serde_json::Value {
    serde_json::json!({
        "game": record.game,
        "count": record.count,
        "width": record.width,
        "mask": record.mask,
        "position": record.position,
        "rares": record.rares,
        "last_rare": record.last_rare,
        "max_value": record.max_value,
        "max_at": record.max_at,
        "escapes": record.escapes,
        "digest": record.digest,
        "checks": record.checks,
        "errors": record.errors,
        "suspect": record.suspect,
        "time": record.time,
        "seconds": record.seconds,
        "kept": record.kept,
        "excluded": excluded.map(|excluded| serde_json::json!({
            "count": excluded.multiples.len(),
            "largest": excluded.multiples.last(),
            "least_left": excluded.least_left,
            "looked": excluded.examined,
        })),
    })
}

/// The lines that `status` prints, each a name and a value.
fn in_words(contents: &Contents, excluded: Option<&Excluded>) -> Vec<(&'static str, String)> {
    let record = &contents.last;
    let some = |names: &[(&str, &str)]| -> Vec<String> {
        let number = |name: &str| record.checks.get(name).copied().unwrap_or(0);
        let lines = names.iter().map(|&(name, what)| (number(name), what)).filter(|line| line.0 > 0);
        lines.map(|(number, what)| format!("{number} {what}")).collect()
    };
    let proved = some(&[("witnessed", "values by witnesses"), ("definition", "by the definition")]);
    let rechecked = some(&[
        ("audited", "values by another kernel"),
        ("places", "by the definition"),
        ("settled", "new maxima from all pairs"),
        ("walks", "anomalies by exhaustive search"),
        ("memory", "memory checks"),
        ("rehashed", "values hashed from the disk"),
        ("repaired", "damaged ranges restored"),
    ]);
    let failed = match record.errors {
        0 => "0".to_owned(),
        errors => {
            format!("{errors}; uncommitted values were recomputed; test the memory and the disk of this machine")
        }
    };
    let suspect = record.suspect;
    let suspect = suspect.map_or_else(String::new, |n| format!("; G({n}) is suspect until it is recomputed"));
    let failed = failed + &suspect;
    let periods = match excluded {
        None => "unknown, because the table cannot be read".to_owned(),
        Some(e) if e.multiples.is_empty() => {
            format!("no period is ruled out by the zeros among the first {} values", e.examined)
        }
        Some(e) => format!(
            "no divisor of {} numbers up to {}, by the zeros among the first {} values; the least period left is {}",
            e.multiples.len(),
            e.multiples.last().copied().unwrap_or(0),
            e.examined,
            e.least_left
        ),
    };
    let kept: Vec<String> = record.kept.iter().map(|(from, to)| format!("{from}..{to}")).collect();
    let keeps =
        record.keep.map_or_else(String::new, |keep| format!(" (the first values, and at least the last {keep})"));
    vec![
        ("game", record.game.escape_default().to_string()),
        (
            "values",
            match record.count {
                0 => "0 (none is committed yet)".to_owned(),
                count => format!("{count} (G(0) to G({}))", count - 1),
            },
        ),
        ("kept", format!("{}{keeps}", kept.join(" and "))),
        (
            "width",
            match record.width {
                Width::U8 => format!("u8, and {} values of 255 or more", record.escapes),
                Width::U16 => "u16".into(),
            },
        ),
        (
            "space",
            match record.mask {
                0 => "none; every value is computed by the definition".to_owned(),
                mask => format!("mask {mask:#x}, position term {}", record.position),
            },
        ),
        ("rare positions", format!("{}, the last at {}", record.rares, record.last_rare)),
        ("largest value", format!("{} at {}", record.max_value, record.max_at)),
        ("periods", periods),
        ("digest", record.digest.escape_default().to_string()),
        ("proved", proved.join(", ")),
        ("rechecked", rechecked.join(", ")),
        ("failed checks", failed),
        ("written by", format!("{}, kernel {}", record.program.escape_default(), record.kernel.escape_default())),
        ("last record", record.time.escape_default().to_string()),
        ("computing time", format!("{} s", record.seconds)),
        ("commits", contents.records.to_string()),
    ]
}

/// The periods that zeros among the first values rule out; `None` if the values cannot be read, a fault that `verify`
/// reports.
fn excluded(view: &RunReader) -> Option<Excluded> {
    /// Maximum number of first values searched for zeros: later zeros are scarce, and status must be quick.
    const LOOKED: u64 = 1 << 22;
    let freed = view.freed();
    let there = if freed.is_empty() { view.len() } else { freed.start };
    exclude::excluded(&view.rule, view, there.min(LOOKED)).ok()
}

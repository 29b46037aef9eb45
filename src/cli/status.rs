//! `grundy status`: what a run holds and how far it may be trusted.

use anyhow::Result;
use grundy::checkpoint::journal;
use grundy::period::exclude::{self, Excluded};
use grundy::run::RunReader;
use grundy::table::Width;
use grundy::theory::definition::Sequence;
use std::path::PathBuf;

/// Arguments of `grundy status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy status runs/grundy --json\n\
                        Keys: game count width mask position rares last_rare max_value max_at escapes digest checks errors\n\
                        suspect time seconds kept excluded. 'suspect' is the n whose value failed a check and has not been\n\
                        recomputed, else null; 'time' is when the last record was written (UTC); 'seconds' is the computing\n\
                        time over all processes; 'kept' lists the half-open ranges of values that are kept. 'excluded' says\n\
                        which periods the zeros rule out: no divisor of 'count' numbers, the largest of them, the 'least_left'\n\
                        that no zero rules out, and 'looked', the number of values searched for zeros.\n\
                        Exit status 3 if a file of the run is missing or shorter than the journal says; 'grundy verify'\n\
                        checks every byte.")]
pub(crate) struct Args {
    /// The run directory.
    dir: PathBuf,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn status(args: &Args) -> Result<()> {
    let contents = journal::read(super::source::run_directory(&args.dir)?)?;
    let record = &contents.last;
    // Opening the table compares its files with the journal. The journal is shown even if they are damaged.
    let view = RunReader::open(&args.dir);
    let excluded = view.as_ref().ok().and_then(excluded);
    if args.json {
        let object = serde_json::json!({
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
            "excluded": excluded.as_ref().map(|excluded| serde_json::json!({
                "count": excluded.multiples.len(),
                "largest": excluded.multiples.last(),
                "least_left": excluded.least_left,
                "looked": excluded.looked,
            })),
        });
        super::output::print(|out| Ok(writeln!(out, "{object}")?))?;
        return Ok(view.map(drop)?);
    }
    let some = |names: &[(&str, &str)]| -> Vec<String> {
        let number = |name: &str| record.checks.get(name).copied().unwrap_or(0);
        let lines = names.iter().map(|&(name, what)| (number(name), what)).filter(|line| line.0 > 0);
        lines.map(|(number, what)| format!("{number} {what}")).collect()
    };
    let proved = some(&[("witnessed", "values by witnesses"), ("definition", "by the definition")]);
    let again = some(&[
        ("audited", "values by another kernel"),
        ("places", "by the definition"),
        ("settled", "new maxima by all pairs"),
        ("walks", "surprises by all pairs"),
        ("memory", "times the memory"),
        ("rehashed", "values read back from the disk"),
        ("repaired", "pieces of the table put back"),
    ]);
    let failed = match record.errors {
        0 => "0".to_owned(),
        errors => {
            format!("{errors}; what was not committed was computed anew; test the memory and the disk of this machine")
        }
    };
    let suspect = record.suspect;
    let suspect = suspect.map_or_else(String::new, |n| format!("; G({n}) is suspect until it is recomputed"));
    let failed = failed + &suspect;
    let periods = match &excluded {
        None => "no table to look at".to_owned(),
        Some(e) if e.multiples.is_empty() => format!("none is excluded by a zero below {}", e.looked),
        Some(e) => format!(
            "no divisor of {} numbers up to {}, by zeros below {}; the least left is {}",
            e.multiples.len(),
            e.multiples.last().copied().unwrap_or(0),
            e.looked,
            e.least_left
        ),
    };
    let kept: Vec<String> = record.kept.iter().map(|(from, to)| format!("{from}..{to}")).collect();
    let keeps = record.keep.map_or_else(String::new, |keep| format!(" (the head, and at least the last {keep})"));
    let lines = [
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
                0 => "none: every value by the definition".to_owned(),
                mask => format!("mask {mask:#x}, position term {}", record.position),
            },
        ),
        ("rares", format!("{}, the last at {}", record.rares, record.last_rare)),
        ("largest value", format!("{} at {}", record.max_value, record.max_at)),
        ("periods", periods),
        ("digest", record.digest.escape_default().to_string()),
        ("proved", proved.join(", ")),
        ("looked at again", again.join(", ")),
        ("failed checks", failed),
        ("written by", format!("{}, kernel {}", record.program.escape_default(), record.kernel.escape_default())),
        ("last record", record.time.escape_default().to_string()),
        ("computing time", format!("{} s", record.seconds)),
        ("commits", contents.records.to_string()),
    ];
    super::output::print(|out| {
        for (name, value) in lines {
            writeln!(out, "{name:>15}  {value}")?;
        }
        if contents.torn.is_some() {
            writeln!(out, "{:>15}  the last record broke off; the next run drops it", "note")?;
        }
        Ok(())
    })?;
    Ok(view.map(drop)?)
}

/// What the first values exclude; `None` if they cannot be read, which `verify` explains.
fn excluded(view: &RunReader) -> Option<Excluded> {
    /// Number of first values searched for zeros: zeros soon become rare, and status must be quick.
    const LOOKED: u64 = 1 << 22;
    let freed = view.freed();
    let there = if freed.is_empty() { view.len() } else { freed.start };
    exclude::excluded(&view.rule, view, there.min(LOOKED)).ok()
}

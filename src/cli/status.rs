//! `grundy status`: what a run holds and how far it may be trusted.

use anyhow::Result;
use grundy::definition::Sequence;
use grundy::engine::View;
use grundy::journal::{self, DOUBT, Width};
use grundy::period::zeros::{self, Excluded};
use std::path::{Path, PathBuf};

/// Arguments of `grundy status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy status runs/grundy --json\n\
                        Keys: game count width mask position rares last_rare max_value max_at escapes digest checks errors\n\
                        doubt kept excluded ('doubt' is a heap of which a check has found another value, until it is\n\
                        computed again; 'kept' lists the half-open ranges of values that are there; 'excluded' has the\n\
                        count and the largest of the numbers no divisor of which is a period, the least_left that no\n\
                        zero excludes, and looked, how many values were searched for zeros)")]
pub(crate) struct Args {
    /// The run directory.
    dir: PathBuf,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn status(args: &Args) -> Result<()> {
    let contents = journal::read(&args.dir)?;
    let record = &contents.last;
    let excluded = excluded(&args.dir);
    if args.json {
        let mut checks = record.checks.clone();
        checks.remove(DOUBT);
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
            "checks": checks,
            "errors": record.errors,
            DOUBT: record.doubt(),
            "kept": record.kept,
            "excluded": excluded.as_ref().map(|excluded| serde_json::json!({
                "count": excluded.multiples.len(),
                "largest": excluded.multiples.last(),
                "least_left": excluded.least_left,
                "looked": excluded.looked,
            })),
        });
        super::output::print(|out| Ok(writeln!(out, "{object}")?))?;
        return Ok(());
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
    let doubt = record.doubt();
    let doubt = doubt.map_or_else(String::new, |n| format!("; heap {n} is in doubt until it is computed again"));
    let failed = failed + &doubt;
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
        ("values", format!("{} (G(0) to G({}))", record.count, record.count.saturating_sub(1))),
        ("kept", format!("{}{keeps}", kept.join(" and "))),
        (
            "width",
            match record.width {
                Width::U8 => format!("u8, and {} values above 255", record.escapes),
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
    })
}

/// What the first values exclude; `None` when they cannot be read, which is for `verify` to explain.
fn excluded(dir: &Path) -> Option<Excluded> {
    /// Zeros get rare soon, and status shall be quick.
    const LOOKED: u64 = 1 << 22;
    let view = View::open(dir).ok()?;
    let freed = view.freed();
    let there = if freed.is_empty() { view.len() } else { freed.start };
    zeros::excluded(&view.rule, &view, there.min(LOOKED)).ok()
}

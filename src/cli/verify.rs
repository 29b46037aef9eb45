//! `grundy verify`: independent checks of a run.

use super::number;
use super::progress::Meter;
use anyhow::Result;
use clap::ValueEnum;
use grundy::verify::{self, Report};
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `grundy verify`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy verify runs/grundy\n         \
                        grundy verify runs/grundy --level exclusion\n         \
                        grundy verify runs/grundy --level recompute --range 47e6..49e6\n         \
                        grundy verify runs/grundy --level definition --samples 20\n\
                        All levels can run beside the run that is checked, on all cores, without permission to write.\n\
                        Exit status 3 when something is wrong. JSON keys: level from to checked records seed unchecked\n\
                        kernel ('unchecked' is null, or the range that cannot be checked because values are freed;\n\
                        'kernel' is what computed values anew: a kernel, 'definition', or null)")]
pub(crate) struct Args {
    /// The run directory, or the file of a certificate (grundy period --certificate).
    #[arg(value_name = "DIR|CERTIFICATE")]
    dir: PathBuf,
    /// Which heaps; left out: all. A digest check starts at the segment (2^24 values) that holds A.
    #[arg(long, value_name = "A..B", value_parser = number::range)]
    range: Option<Range<u64>>,
    /// What is checked; left out: digest.
    #[arg(long, value_enum)]
    level: Option<Level>,
    /// How many values are computed anew (level definition), besides the first and the last; left out: 30.
    #[arg(long, value_name = "K", value_parser = number::number)]
    samples: Option<u64>,
    /// Chooses the sample; left out: 1.
    #[arg(long, value_name = "S", value_parser = number::number)]
    seed: Option<u64>,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Level {
    /// Every byte against the journal.
    Digest,
    /// Each value against all its options with one rare part, rare heaps by all pairs: finds every value that is too
    /// low, and many of those too high. Only games with a sparse space.
    Exclusion,
    /// Each value computed anew from those before, by another kernel than that of the run: finds every wrong value.
    Recompute,
    /// A sample of the values by all pairs.
    Definition,
}

pub(crate) fn verify(args: &Args, quiet: bool) -> Result<ExitCode> {
    if args.dir.is_file() {
        if args.level.is_some() || args.range.is_some() || args.samples.is_some() || args.seed.is_some() {
            let text = "a certificate is checked as a whole: --level, --range, --samples and --seed are for runs";
            return Err(super::Usage(text.into()).into());
        }
        return super::period::verify(&args.dir, args.json, quiet);
    }
    super::start_threads()?;
    let level = args.level.unwrap_or(Level::Digest);
    let seed = args.seed.unwrap_or(1);
    let mut meter = Meter::new(quiet);
    let mut begun = false;
    let progress = |done, all| {
        if !std::mem::replace(&mut begun, true) {
            meter.begin("verifying", 0, Some(all));
        }
        meter.at(done, String::new);
    };
    let report = match level {
        Level::Digest => verify::digest(&args.dir, args.range.clone(), progress),
        Level::Exclusion => verify::exclusion(&args.dir, args.range.clone(), progress),
        Level::Recompute => verify::recompute(&args.dir, args.range.clone(), progress),
        Level::Definition => {
            verify::definition(&args.dir, args.range.clone(), args.samples.unwrap_or(30), seed, progress)
        }
    };
    meter.end();
    let Report { from, to, checked, records, unchecked, kernel } = report?;
    let name = match level {
        Level::Digest => "digest",
        Level::Exclusion => "exclusion",
        Level::Recompute => "recompute",
        Level::Definition => "definition",
    };
    super::output::print(|out| {
        if args.json {
            let object = serde_json::json!({
                "level": name, "from": from, "to": to, "checked": checked, "records": records, "seed": seed,
                "unchecked": unchecked, "kernel": kernel,
            });
            writeln!(out, "{object}")?;
        } else {
            let what = match level {
                Level::Digest => "hashed, all as the journal says".to_owned(),
                Level::Exclusion => "held against their options with one rare part, none contradicts".to_owned(),
                Level::Recompute => format!("computed anew ({}), all right", kernel.unwrap_or_default()),
                Level::Definition => "computed anew by all pairs, all right".to_owned(),
            };
            writeln!(out, "{from}..{to}: {checked} values {what}; {records} journal records good")?;
            if let Some((from, to)) = unchecked {
                writeln!(out, "{from}..{to}: not checked, since values are freed (--keep)")?;
            }
        }
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

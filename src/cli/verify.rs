//! `grundy verify`: independent checks of a run, or of a certificate.

use super::period::IN_MEMORY;
use super::progress::Meter;
use super::signals::stop_flag;
use super::temporary::Temporary;
use super::{KernelChoice, complain, number};
use anyhow::{Context, Result, anyhow};
use clap::ValueEnum;
use grundy::period::Status;
use grundy::period::certificate::{Certificate, MAX_BYTES};
use grundy::run::{self, Options, RunReader};
use grundy::solver;
use grundy::theory::rule::Rule;
use grundy::verify::{self, Report};
use indicatif::{BinaryBytes, HumanCount};
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `grundy verify`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy verify runs/grundy\n         \
                        grundy verify runs/grundy --level exclusion\n         \
                        grundy verify runs/grundy --level recompute --range 47e6..49e6\n         \
                        grundy verify runs/grundy --level definition --samples 20\n         \
                        grundy verify 104.json\n\
                        All levels can run beside the run that is checked, on all cores, without permission to write.\n\
                        A certificate is checked by computing every value it speaks of. What it says is judged first, then\n\
                        the number of values is printed; more than 2^28 go to a temporary directory (TMPDIR).\n\
                        Exit status 3 when something is wrong. JSON keys for a run: level from to checked records seed\n\
                        unchecked kernel ('unchecked' is null, or the range that cannot be checked because values are freed;\n\
                        'kernel' is what recomputed the values: a kernel, 'definition', or null). For a certificate: game\n\
                        status period preperiod max_value theorem checked_through")]
pub(crate) struct Args {
    /// The run directory, or the file of a certificate (grundy period --certificate).
    #[arg(value_name = "DIR|CERTIFICATE")]
    dir: PathBuf,
    /// Range of n to check [default: all]. A digest check starts at the segment (2^24 values) that holds A.
    #[arg(long, value_name = "A..B", value_parser = number::range)]
    range: Option<Range<u64>>,
    /// Check to make [default: digest].
    #[arg(long, value_enum)]
    level: Option<Level>,
    /// Number of values to recompute at level definition, besides the first and the last [default: 30].
    #[arg(long, value_name = "K", value_parser = number::number)]
    samples: Option<u64>,
    /// Seed that chooses the sample [default: 1].
    #[arg(long, value_name = "S", value_parser = number::number)]
    seed: Option<u64>,
    /// Print one JSON object.
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
    if let Ok(there) = std::fs::metadata(&args.dir)
        && !there.is_dir()
    {
        if !there.is_file() && !there.file_type().is_fifo() {
            return Err(anyhow!(
                "{}: not a run directory, and neither a file nor a pipe with a certificate",
                args.dir.display()
            ));
        }
        if args.level.is_some() || args.range.is_some() || args.samples.is_some() || args.seed.is_some() {
            let text = "a certificate is checked as a whole: --level, --range, --samples and --seed are for runs";
            return Err(super::Usage(text.into()).into());
        }
        return certificate(&args.dir, args.json, quiet);
    }
    super::source::run_or_certificate(&args.dir)?;
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

/// Checks a certificate: judges what it says, computes the game's values from nothing, and compares.
fn certificate(path: &Path, json: bool, quiet: bool) -> Result<ExitCode> {
    let certificate = read_certificate(path)?;
    let rule = certificate.judge()?;
    let count = certificate.checked_through;
    if !quiet {
        let place = match count > IN_MEMORY {
            true => format!(" in {}, which need {} or more", std::env::temp_dir().display(), BinaryBytes(count)),
            false => String::new(),
        };
        complain!("{}: computing {} values of {rule}{place}", path.display(), HumanCount(count));
    }
    let method = KernelChoice::Auto.method()?;
    let mut meter = Meter::new(quiet);
    if count > IN_MEMORY {
        let stop = stop_flag()?;
        let home = Temporary::new("grundy-verify-")?;
        let options = Options { to: Some(count), threads: 0, method, width: None, keep: None, rollback: false };
        let outcome = run::run(Some(&rule), &home.run(), &options, &mut meter, &stop);
        meter.end();
        if outcome?.stopped {
            complain!("stopped before the certificate was checked");
            return Ok(ExitCode::from(130));
        }
        certificate.check(method, &RunReader::open(&home.run())?)?;
    } else {
        meter.begin(rule.name(), 0, Some(count));
        let length = usize::try_from(count)?;
        let values = solver::extend(&rule, method, Vec::new(), length, solver::BLOCK, |n| {
            meter.at(n, String::new);
            true
        });
        meter.end();
        certificate.check(method, values?.as_slice())?;
    }
    passed(&certificate, &rule, json)
}

/// Reads a certificate of at most [`MAX_BYTES`].
fn read_certificate(path: &Path) -> Result<Certificate> {
    let mut text = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut text));
    read.with_context(|| format!("reading {}", path.display()))?;
    if text.len() as u64 > MAX_BYTES {
        let what = format!("{} is longer than {} bytes, the most that a certificate has", path.display(), MAX_BYTES);
        return Err(grundy::Error::Certificate { what }.into());
    }
    Ok(Certificate::parse(&text)?)
}

fn passed(certificate: &Certificate, rule: &Rule, json: bool) -> Result<ExitCode> {
    let Certificate { theorem, period, preperiod, max_value, checked_through, .. } = certificate;
    super::output::print(|out| {
        if json {
            let object = serde_json::json!({
                "game": rule.name(), "status": Status::Proved, "period": period, "preperiod": preperiod,
                "max_value": max_value, "theorem": theorem, "checked_through": checked_through,
            });
            writeln!(out, "{object}")?;
        } else {
            writeln!(
                out,
                "{rule}: period {period}, preperiod {preperiod}, by {theorem}: {checked_through} values recomputed, all as \
                 the certificate says"
            )?;
        }
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

//! `grundy verify`: check a run or a certificate independently of the process that wrote it.

use super::layout::{counted, printable, size};
use super::period::IN_MEMORY;
use super::progress::Meter;
use super::signals::{STOPPED, stop_flag};
use super::temporary::Temporary;
use super::{KernelChoice, advice, complain, number};
use anyhow::{Result, anyhow};
use clap::ValueEnum;
use grundy::error::{Error, Kind};
use grundy::kernel::Kernel;
use grundy::period::Status;
use grundy::period::certificate::Certificate;
use grundy::run::{Run, RunReader};
use grundy::solver;
use grundy::theory::definition::Sequence;
use grundy::theory::rule::Rule;
use grundy::verify::{self, Report};
use indicatif::HumanCount;
use std::ops::Range;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Default of `--samples`.
pub(super) const SAMPLES: u64 = 30;

/// Default of `--seed`.
pub(super) const SEED: u64 = 1;

/// The usage error for options of another level.
pub(super) const SAMPLES_OF_DEFINITION: &str = "--samples and --seed select values for '--level definition' only";

/// Arguments of `grundy verify`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy verify runs/grundy\n         \
                        grundy verify runs/grundy --level exclusion\n         \
                        grundy verify runs/grundy --level recompute --range 47e6..49e6\n         \
                        grundy verify runs/grundy --level definition --samples 20\n         \
                        grundy verify 104.json\n\n\
                        Every level uses all cores (fewer with --threads), needs no write permission, and can check \
                        a run while it computes. A certificate is checked for consistency first. Then the number of \
                        values it covers is printed and each of them is recomputed, in a temporary directory (TMPDIR) if there \
                        are more than 2^28.\n\n\
                        Exit status 3 if a check fails.\n\n\
                        JSON keys for a run: ok level from to checked records seed unchecked kernel. 'unchecked' is \
                        null, or the range that cannot be checked because its values were freed; 'kernel' names the \
                        kernels that recomputed the values ('avx2', or 'avx512, avx2' for a run by several kernels), \
                        or is 'definition', or null.\n\n\
                        JSON keys for a certificate: ok game status period preperiod max_value theorem \
                        checked_through\n\n\
                        JSON keys if a check fails: ok n error. 'ok' is false, and true in the other objects; 'n' is \
                        the n of the wrong value, or null if the check does not name one.")]
pub(crate) struct Args {
    /// Run directory, or certificate file (written by grundy period --certificate).
    #[arg(value_name = "DIR|CERTIFICATE")]
    dir: PathBuf,
    /// Range of n to check [default: all]. Level digest starts at the segment (2^24 values) that contains A.
    #[arg(long, value_name = "A..B", value_parser = number::range, allow_negative_numbers = true)]
    range: Option<Range<u64>>,
    /// Kind of check [default: digest].
    #[arg(long, value_enum)]
    level: Option<Level>,
    /// Number of values that level definition recomputes besides the first and the last [default: 30].
    #[arg(long, value_name = "K", value_parser = number::number, allow_negative_numbers = true)]
    samples: Option<u64>,
    /// Seed that selects the sample of level definition [default: 1].
    #[arg(long, value_name = "S", value_parser = number::number, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Number of threads, 1 to 1024 [default: one per core].
    #[arg(long, value_name = "T", value_parser = number::within::<u16>(1..=1024))]
    threads: Option<u16>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Level {
    /// Hash every byte of the table and compare the digests with the journal.
    Digest,
    /// Compare each value with all its options that have one rare part, and recompute rare positions from all pairs:
    /// finds every value that is too low, and many that are too high. Needs a game with a sparse space.
    Exclusion,
    /// Recompute each value from the earlier ones, with a kernel other than the one that computed it: finds every wrong
    /// value.
    /// If a move leaves three heaps, or the code repeats, by the definition, which takes long: give a --range.
    Recompute,
    /// Recompute a sample of the values from all pairs.
    Definition,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Digest => "digest",
            Level::Exclusion => "exclusion",
            Level::Recompute => "recompute",
            Level::Definition => "definition",
        }
    }
}

impl Args {
    /// Number of threads; 0 means one per core.
    fn threads(&self) -> usize {
        self.threads.map_or(0, usize::from)
    }
}

pub(crate) fn verify(args: &Args, quiet: bool) -> Result<ExitCode> {
    match check(args, quiet) {
        Err(error) if error.downcast_ref().map(Error::kind) == Some(Kind::Damage) => failed(args, error),
        result => result,
    }
}

/// Reports a check that failed: the result of the command, not an error of it.
fn failed(args: &Args, error: anyhow::Error) -> Result<ExitCode> {
    let wrong = match error.downcast_ref() {
        Some(
            Error::Wrong { n, .. }
            | Error::Excluded { n, .. }
            | Error::Differs { n, .. }
            | Error::OptionsDiffer { n, .. },
        ) => Some(*n),
        _ => None,
    };
    super::report(&error);
    if matches!(error.downcast_ref(), Some(Error::Wrong { .. } | Error::Excluded { .. })) {
        complain!(
            "{}: later values may be wrong as well; 'grundy verify {}' checks whether the files changed after the \
             computation. If they did not, compute the run again in another directory",
            printable(&args.dir),
            advice::quoted_path(&args.dir)
        );
    }
    if args.json {
        let text = error.downcast_ref().map(advice::message);
        let object = serde_json::json!({ "ok": false, "n": wrong, "error": text });
        super::output::print(|out| Ok(writeln!(out, "{object}")?))?;
    }
    Ok(ExitCode::from(3))
}

fn check(args: &Args, quiet: bool) -> Result<ExitCode> {
    if let Ok(there) = std::fs::metadata(&args.dir)
        && !there.is_dir()
    {
        if !there.is_file() && !there.file_type().is_fifo() {
            return Err(anyhow!(
                "{}: neither a run directory nor a certificate (neither a file nor a pipe)",
                args.dir.display()
            ));
        }
        if args.level.is_some() || args.range.is_some() || args.samples.is_some() || args.seed.is_some() {
            let text =
                "a certificate is always checked as a whole; --level, --range, --samples and --seed apply to runs only";
            return Err(super::Usage(text.into()).into());
        }
        return certificate(args, quiet);
    }
    super::source::run_or_certificate(&args.dir)?;
    if args.level != Some(Level::Definition) && (args.samples.is_some() || args.seed.is_some()) {
        return Err(super::Usage(SAMPLES_OF_DEFINITION.into()).into());
    }
    super::warn_of_threads(args.threads());
    super::start_threads(args.threads())?;
    let level = args.level.unwrap_or(Level::Digest);
    if let (Level::Recompute, [only]) = (level, &Kernel::available()[..]) {
        let name = only.name();
        complain!(
            "grundy: warning: this processor supports no other kernel than '{name}', so values that '{name}' computed \
             are recomputed by the same kernel"
        );
    }
    let seed = args.seed.unwrap_or(SEED);
    let meter = Meter::new(quiet);
    let threads = counted(rayon::current_num_threads() as u64, "threads");
    meter.introduce(format!("verifying {} ({}, {threads})", printable(&args.dir), level.name()));
    let progress = |done, all| meter.phase("verifying", done, all);
    let freed = || RunReader::open(&args.dir).map(|run| run.discarded());
    let freed_before = freed().ok();
    let meets = |range: &Range<u64>, freed: &Range<u64>| range.start.max(freed.start) < range.end.min(freed.end);
    let wants_freed = args.range.as_ref().zip(freed_before.as_ref()).is_some_and(|(range, freed)| meets(range, freed));
    let report = match level {
        Level::Digest => verify::digest(&args.dir, args.range.clone(), progress),
        Level::Exclusion => verify::exclusion(&args.dir, args.range.clone(), progress),
        Level::Recompute => verify::recompute(&args.dir, args.range.clone(), progress),
        Level::Definition => {
            verify::definition(&args.dir, args.range.clone(), args.samples.unwrap_or(SAMPLES), seed, progress)
        }
    };
    meter.end();
    let report = report.map_err(|error| match error {
        Error::Discarded { .. } if !wants_freed && freed().ok() != freed_before => anyhow!(
            "{}: the run freed values during the check (--keep); '--range 0..2^26' checks the first values, which are never \
             freed",
            printable(&args.dir)
        ),
        error => advice::of_run(error, &args.dir),
    })?;
    super::output::print(|out| {
        if args.json {
            let Report { from, to, checked, records, unchecked, kernel, .. } = &report;
            let object = serde_json::json!({
                "ok": true, "level": level.name(), "from": from, "to": to, "checked": checked, "records": records,
                "seed": seed, "unchecked": unchecked, "kernel": kernel,
            });
            writeln!(out, "{object}")?;
        } else {
            out.write_all(for_people(&report, level).as_bytes())?;
        }
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What a check found: a line on the values that it checked, and one on those that it could not check.
fn for_people(report: &Report, level: Level) -> String {
    let Report { from, to, checked, records, unchecked, .. } = *report;
    let what = match level {
        Level::Digest => "hashed, all digests agree with the journal".to_owned(),
        Level::Exclusion => "compared with their options that have one rare part, no contradiction".to_owned(),
        Level::Recompute => format!("recomputed ({}), all equal", report.kernel.as_deref().unwrap_or_default()),
        Level::Definition => "recomputed from all pairs, all equal".to_owned(),
    };
    let (values, records) = (counted(checked, "values"), counted(records, "journal records"));
    let (before, after) = unchecked.unwrap_or((to, to));
    let mut text = format!("{}: {values} {what}; {records} valid\n", ranges([(from, before), (after, to)]));
    if let Some(unchecked) = unchecked {
        let range = ranges([unchecked]);
        text += &format!("{range}: not checked: these values, or options of theirs, were freed (--keep)\n");
    }
    text
}

/// The ranges that are not empty, or the first if all are: `0..1,000 and 2,000..3,000`.
fn ranges<const N: usize>(ranges: [(u64, u64); N]) -> String {
    let range = |(from, to): &(u64, u64)| format!("{}..{}", HumanCount(*from), HumanCount(*to));
    let texts: Vec<String> = ranges.iter().filter(|(from, to)| from < to).map(range).collect();
    if texts.is_empty() { range(&ranges[0]) } else { texts.join(" and ") }
}

/// Checks a certificate: first its statements for consistency, then, against them, every value that they cover,
/// computed from the rule alone.
fn certificate(args: &Args, quiet: bool) -> Result<ExitCode> {
    let path = args.dir.as_path();
    super::start_threads(args.threads())?;
    let certificate = read_certificate(path)?;
    let rule = certificate.judge().map_err(|error| of_file(error, path))?;
    let count = certificate.checked_through;
    if !quiet {
        let place = if count > IN_MEMORY {
            format!(" in {}, which needs at least {}", std::env::temp_dir().display(), size(count))
        } else {
            String::new()
        };
        complain!("{}: computing {} of {rule}{place}", path.display(), counted(count, "values"));
    }
    let method = KernelChoice::Auto.method()?;
    let mut meter = Meter::new(quiet);
    if count > IN_MEMORY {
        let stop = stop_flag()?;
        let home = Temporary::new("grundy-verify-")?;
        let run = Run::builder(&rule, home.run()).to(count).method(method).threads(args.threads());
        let outcome = run.observer(&mut meter).stop(&stop).run();
        meter.end();
        let outcome = outcome.map_err(|error| match error {
            Error::NoRoom { needed, available, .. } => anyhow!(
                "{}: no room: {} are needed, {} are free; set TMPDIR to a directory on a larger file system",
                std::env::temp_dir().display(),
                size(needed),
                size(available)
            ),
            error => error.into(),
        });
        if outcome?.stopped {
            complain!("stopped before the check of the certificate was complete");
            return Ok(ExitCode::from(STOPPED));
        }
        certificate.check(method, &RunReader::open(&home.run())?).map_err(|error| of_file(error, path))?;
    } else {
        meter.begin(rule.name(), 0, Some(count));
        let length = usize::try_from(count)?;
        let values = solver::extend(&rule, method, Vec::new(), length, |n| {
            meter.at(n);
            true
        });
        meter.end();
        certificate.check(method, &values?.as_slice()).map_err(|error| of_file(error, path))?;
    }
    passed(&certificate, &rule, args.json)
}

/// Reads a certificate. The error for a file that is none ends with advice.
fn read_certificate(path: &Path) -> Result<Certificate> {
    let advice = "; give a file that 'grundy period GAME --certificate FILE' wrote, or compare a list of values with \
                  'grundy check GAME FILE'";
    Certificate::read(path).map_err(|error| match error {
        Error::Certificate { what } => Error::Certificate { what: what + advice }.into(),
        other => other.into(),
    })
}

/// Names the file in [`Error::Certificate`]; returns other errors unchanged.
fn of_file(error: Error, path: &Path) -> Error {
    match error {
        Error::Certificate { what } => Error::Certificate { what: format!("{}: {what}", printable(path)) },
        other => other,
    }
}

/// Reports that the certificate holds.
fn passed(certificate: &Certificate, rule: &Rule, json: bool) -> Result<ExitCode> {
    let Certificate { theorem, period, preperiod, max_value, checked_through, .. } = certificate;
    super::output::print(|out| {
        if json {
            let object = serde_json::json!({
                "ok": true, "game": rule.name(), "status": Status::Proved, "period": period, "preperiod": preperiod,
                "max_value": max_value, "theorem": theorem, "checked_through": checked_through,
            });
            writeln!(out, "{object}")?;
        } else {
            writeln!(
                out,
                "{rule}: period {}, preperiod {}, by {theorem}: {} recomputed, all agree with the certificate",
                HumanCount(*period),
                HumanCount(*preperiod),
                counted(*checked_through, "values")
            )?;
        }
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

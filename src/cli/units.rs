//! `grundy units` and `grundy unit`: divide a survey or a verification into units, and do one of them.

use super::advice::message;
use super::layout::counted;
use super::number;
use super::progress::{GAMES, Meter};
use super::signals::stop_flag;
use super::survey::games_of;
use super::{KernelChoice, Usage, complain, verify};
use anyhow::{Result, bail};
use clap::{ArgGroup, Subcommand, ValueEnum};
use grundy::error::Kind;
use grundy::survey;
use grundy::units::{self, Joined, MAX_PARTS, Performed, Plan, Request, Unit};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Arguments of `grundy units`.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true,
    after_help = "Example: grundy units survey --digits 4 --to 2^16 --parts 997 > units.txt\n         \
                  parallel grundy unit {} --in octal4 :::: units.txt\n         \
                  grundy units --missing octal4\n         \
                  grundy merge octal4 --format csv -o octal4.csv\n\n\
                  The names of the units go to stdout, one per line; 'grundy unit NAME --in DIR' does one of them, on \
                  any machine that sees the directory. Use at least ten times as many parts as workers, because units \
                  take different times; the longest unit bounds the time of all.\n\n\
                  JSON keys of --efficiency: workers total longest makespan efficiency (times in seconds)"
)]
pub(crate) struct UnitsArgs {
    #[command(subcommand)]
    work: Option<Work>,
    /// Print the names of the units that have no result in any of these directories, which must have the same plan.
    // Each by name: clap does not require --efficiency for an option where that is in conflict.
    #[arg(long, value_name = "DIR", num_args = 1.., conflicts_with_all = ["efficiency", "pilot", "workers", "json"])]
    missing: Vec<PathBuf>,
    /// Compute from the processor times of the results in DIR how long other numbers of workers would take, and their
    /// efficiency: the share of that time in which they would work.
    #[arg(long, value_name = "DIR")]
    efficiency: Option<PathBuf>,
    /// Directory of a pilot: results of units of the same games and as many parts, with a smaller --to. --efficiency
    /// assumes that the units are done in the order of its times, as 'grundy units survey --pilot' lists them
    /// [default: the order of the parts].
    #[arg(long, value_name = "DIR", requires = "efficiency")]
    pilot: Option<PathBuf>,
    /// Numbers of workers for --efficiency.
    #[arg(long, value_name = "W", value_delimiter = ',', default_value = "8,64", requires = "efficiency",
          value_parser = number::within::<u16>(1..=u16::MAX.into()))]
    workers: Vec<u16>,
    /// Print JSON Lines for --efficiency.
    #[arg(long, requires = "efficiency")]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Work {
    /// Divide the survey of many games into units.
    Survey(SurveyArgs),
    /// Divide the verification of a run into units.
    Verify(VerifyArgs),
}

#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("source").required(true), after_help = "Example: grundy units survey games.txt --parts 64 --in survey > units.txt\n\n\
                        Games with the same sequence stay in one unit, which computes their values once. --in writes \
                        the file units.plan, which lists the expected units. The units of --digits need no plan: the \
                        first 'grundy unit' writes it.")]
struct SurveyArgs {
    /// File with one game per line, at most 64 MiB; # begins a comment, '-' is standard input.
    #[arg(value_name = "GAMES-FILE", group = "source")]
    games: Option<PathBuf>,
    /// Examine all octal codes 0.… and 4.… with up to K digits after the point.
    #[arg(long, value_name = "K", group = "source",
          value_parser = number::within::<u32>(1..=survey::plan::MAX_DIGITS.into()))]
    digits: Option<u32>,
    /// Number of parts; empty parts are omitted.
    #[arg(long, value_name = "N", value_parser = number::within::<u64>(1..=MAX_PARTS))]
    parts: u64,
    /// Number of values of each game to examine.
    #[arg(long, value_name = "N", default_value = "2^20", value_parser = number::positive,
          allow_negative_numbers = true)]
    to: u64,
    /// Directory for the plan and the results; it must be new, empty, or have the same plan.
    #[arg(long = "in", value_name = "DIR", required_unless_present = "digits")]
    dir: Option<PathBuf>,
    /// List the units first whose parts took the longest in DIR, the results of units of the same games and as many
    /// parts, to fewer values.
    #[arg(long, value_name = "DIR")]
    pilot: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: grundy units verify runs/grundy --level recompute --parts 64 --in check > units.txt\n\n\
                        Each unit checks one range of n: first that its values have the digests of the journal, then \
                        the values themselves. Its result names the digest of the run."
)]
struct VerifyArgs {
    /// Run directory.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Kind of check, as of 'grundy verify'.
    #[arg(long, value_enum)]
    level: Level,
    /// Number of parts.
    #[arg(long, value_name = "N", value_parser = number::within::<u64>(1..=MAX_PARTS))]
    parts: u64,
    /// Number of values that level definition recomputes in each unit besides the first and the last [default: 30].
    #[arg(long, value_name = "K", value_parser = number::number, allow_negative_numbers = true)]
    samples: Option<u64>,
    /// Seed that selects the sample of level definition [default: 1].
    #[arg(long, value_name = "S", value_parser = number::number, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Directory for the plan and the results; it must be new, empty, or have the same plan.
    #[arg(long = "in", value_name = "DIR")]
    dir: PathBuf,
}

impl VerifyArgs {
    /// The level, with the options that belong to it.
    fn level(&self) -> Result<units::Level> {
        if self.level != Level::Definition && (self.samples.is_some() || self.seed.is_some()) {
            return Err(Usage(verify::SAMPLES_OF_DEFINITION.into()).into());
        }
        Ok(match self.level {
            Level::Exclusion => units::Level::Exclusion,
            Level::Recompute => units::Level::Recompute,
            Level::Definition => units::Level::Definition {
                samples: self.samples.unwrap_or(verify::SAMPLES),
                seed: self.seed.unwrap_or(verify::SEED),
            },
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Level {
    /// Compare each value with all its options that have one rare part.
    Exclusion,
    /// Recompute each value from the earlier ones, with another kernel.
    Recompute,
    /// Recompute a sample of the values from all pairs.
    Definition,
}

/// Arguments of `grundy unit`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: grundy unit survey-digits4-part017of997-to65536-proof262144-0123456789abcdef --in octal4\n\n\
                        Writes NAME.part and renames it to NAME.jsonl when the unit is complete. A unit that is \
                        complete takes no time, and an interrupted survey unit continues with the missing games. Exit \
                        status 0: the unit is complete; 3: a value is wrong, or a file is damaged; 75: another process \
                        is working on this unit; 130: stopped by a signal, the same command continues."
)]
pub(crate) struct UnitArgs {
    /// Name of the unit, as 'grundy units' prints it.
    name: String,
    /// Directory of the results.
    #[arg(long = "in", value_name = "DIR")]
    dir: PathBuf,
    /// Run directory of a verification, if its path here is not the one at which the plan was written.
    #[arg(long, value_name = "RUN")]
    run: Option<PathBuf>,
    /// Number of threads, 1 to 1024.
    #[arg(long, value_name = "T", default_value = "1", value_parser = number::within::<u16>(1..=1024))]
    threads: u16,
    /// Kernel that computes the values of a survey; level recompute uses another kernel than the one that computed a
    /// value.
    #[arg(long, value_enum, default_value = "auto")]
    kernel: KernelChoice,
}

pub(crate) fn units(args: &UnitsArgs, quiet: bool) -> Result<()> {
    let (plan, dir) = match (&args.work, &args.missing[..], &args.efficiency) {
        (Some(Work::Survey(args)), ..) => (survey_plan(args)?, args.dir.as_deref()),
        (Some(Work::Verify(args)), ..) => {
            let plan = Plan::verify(super::source::run_directory(&args.run)?, args.level()?, args.parts)?;
            (plan, Some(args.dir.as_path()))
        }
        (None, [], Some(dir)) => return efficiency(dir, args),
        (None, [], None) => {
            return Err(Usage("nothing to do; name 'survey', 'verify', --missing or --efficiency".into()).into());
        }
        (None, dirs, _) => return missing(dirs, quiet),
    };
    if let Some(dir) = dir {
        super::output::refuse_unsuitable_directory(dir)?;
        plan.write(dir)?;
    }
    let pilot = match &args.work {
        Some(Work::Survey(args)) => args.pilot.as_deref(),
        _ => None,
    };
    let units = ordered(&plan, pilot)?;
    let names: Vec<String> = units.iter().map(|unit| unit.name().to_owned()).collect();
    super::output::print(|out| names.iter().try_for_each(|name| Ok(writeln!(out, "{name}")?)))
}

fn survey_plan(args: &SurveyArgs) -> Result<Plan> {
    let games = match (&args.games, args.digits) {
        (Some(path), _) => survey::Games::List(games_of(path)?),
        (None, digits) => survey::Games::Digits(digits.unwrap_or(1)),
    };
    Ok(Plan::survey(games, args.to, args.parts).map_err(Usage)?)
}

fn missing(dirs: &[PathBuf], quiet: bool) -> Result<()> {
    let dirs: Vec<&Path> = dirs.iter().map(PathBuf::as_path).collect();
    let Joined { missing, expected, begun, .. } = units::join(&dirs)?;
    if !quiet {
        let shown: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
        complain!("{}: {} of {expected} units are missing; begun: {begun}", shown.join(", "), missing.len());
    }
    super::output::print(|out| missing.iter().try_for_each(|name| Ok(writeln!(out, "{name}")?)))
}

/// The units of a plan: in the order of the parts, or of the times of a pilot.
fn ordered(plan: &Plan, pilot: Option<&Path>) -> Result<Vec<Unit>> {
    let Some(pilot) = pilot else { return Ok(plan.units()) };
    units::join(&[pilot])?.order(plan).ok_or_else(|| {
        Usage(format!("{}: the units there have other games or another number of parts", pilot.display())).into()
    })
}

fn efficiency(dir: &Path, args: &UnitsArgs) -> Result<()> {
    let joined = units::join(&[dir])?;
    if joined.results.is_empty() {
        bail!("{}: no unit has a result yet, so nothing is known of their times", dir.display());
    }
    let order = ordered(&joined.plan, args.pilot.as_deref())?;
    super::output::print(|out| {
        for &workers in &args.workers {
            let schedule = joined.schedule(&order, workers.into());
            let units::Schedule { total, longest, makespan, .. } = schedule;
            let efficiency = schedule.efficiency();
            if args.json {
                let object = serde_json::json!({ "workers": workers, "total": total, "longest": longest,
                    "makespan": makespan, "efficiency": efficiency });
                writeln!(out, "{object}")?;
            } else {
                let units = counted(joined.results.len() as u64, "units");
                let (workers, percent) = (counted(workers.into(), "workers"), 100.0 * efficiency);
                writeln!(
                    out,
                    "{workers}: {makespan:.1} s for {units} of {total:.1} s together, the longest {longest:.1} s: \
                     efficiency {percent:.1} %"
                )?;
            }
        }
        Ok(())
    })
}

pub(crate) fn unit(args: &UnitArgs, quiet: bool) -> Result<ExitCode> {
    let threads = usize::from(args.threads);
    let name = args.name.trim_end(); // a line of a list can end with a carriage return
    let is_verification = name.starts_with("verify-");
    // A verification cannot be interrupted, so signals end it at once.
    let stop = if is_verification { Arc::new(AtomicBool::new(false)) } else { stop_flag()? };
    if !is_verification && args.run.is_some() {
        return Err(Usage("--run is for units of a verification; omit it".into()).into());
    }
    if is_verification && args.kernel != KernelChoice::Auto {
        return Err(Usage("--kernel is for units of a survey; a verification chooses its kernel".into()).into());
    }
    super::warn_of_threads(threads);
    super::start_threads(threads)?;
    let meter = Meter::new(quiet);
    let begun = AtomicBool::new(false);
    let request = Request { method: args.kernel.method()?, threads, run: args.run.as_deref() };
    let performed = units::perform(name, &args.dir, request, &stop, |done, all| {
        if !begun.swap(true, Ordering::Relaxed) {
            let what = if is_verification { "values" } else { GAMES };
            meter.begin_counting(what, "unit", done, Some(all));
        }
        meter.at(done);
    });
    meter.end();
    match performed? {
        Performed::Completed { spent, restarted, outdated } => {
            super::warn_of_restarts(&restarted);
            super::warn_of_outdated(outdated);
            say(&format!("{name}: complete after {:.1} s\n", spent.wall))
        }
        Performed::Already => say(&format!("{name}: complete already\n")),
        Performed::Wrong(why) => {
            complain!("grundy: error: {name}: {why}");
            Ok(ExitCode::from(3))
        }
        Performed::Stopped => {
            complain!("{name}: stopped; the same command continues with the missing games");
            Ok(ExitCode::from(super::signals::STOPPED))
        }
        Performed::Failed(failed) => {
            for failure in &failed {
                complain!("grundy: error: {}: {}", failure.games.join(", "), message(&failure.error));
            }
            let is_damage = failed.iter().any(|failure| failure.error.kind() == Kind::Damage);
            Ok(ExitCode::from(if is_damage { 3 } else { 1 }))
        }
        _ => Ok(ExitCode::FAILURE),
    }
}

fn say(text: &str) -> Result<ExitCode> {
    super::output::print(|out| Ok(out.write_all(text.as_bytes())?))?;
    Ok(ExitCode::SUCCESS)
}

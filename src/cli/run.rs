//! `grundy run`: start or resume a run.

use super::advice;
use super::deadline::Deadline;
use super::layout::{counted, fitted, printable};
use super::number;
use super::progress::{Meter, note};
use super::values::{known_period, proof_length};
use super::{Compute, Usage, default_directory};
use anyhow::{Result, anyhow, bail};
use clap::ValueEnum;
use grundy::checkpoint::journal;
use grundy::run::{Outcome, Progress, Run};
use grundy::table::Width;
use grundy::theory::catalogue::PeriodFact;
use grundy::theory::rule::Rule;
use indicatif::HumanCount;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Maximum number of values of a run of nim.
const MOST_OF_NIM: u64 = 1 << 16;

/// Arguments of `grundy run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy run grundy --to 1e8\n\
                        Example with less disk space: grundy run grundy --to 1e11 --keep 1G\n\n\
                        Ctrl-C (INT), TERM or HUP stops the run after a commit; the same command resumes it. USR1 \
                        and USR2 are ignored.\n\n\
                        --keep 1G keeps the first 2^26 values and at least the last 10^9, and frees the others \
                        permanently.")]
pub(crate) struct Args {
    /// Game to compute [default: the game of the run in --dir; without --dir, Grundy's game].
    #[arg(value_parser = advice::rule)]
    game: Option<Rule>,
    /// Number of values to compute, G(0) to G(N-1) [default: continue until stopped].
    #[arg(long, value_name = "N", value_parser = number::positive, allow_negative_numbers = true)]
    pub(super) to: Option<u64>,
    /// Run directory [default: a directory in runs/ named by the code of GAME, such as runs/0.77 for kayles].
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Keep the first 2^26 values and at least the last SIZE values, and free the others permanently [default: that of
    /// the run that is resumed, else keep all]. Refused when the solver needs more than the last SIZE values.
    #[arg(long, value_name = "SIZE", value_parser = number::positive, allow_negative_numbers = true)]
    keep: Option<u64>,
    #[command(flatten)]
    compute: Compute,
    #[command(flatten)]
    deadline: Deadline,
    /// Bytes per value in a new table.
    #[arg(long, value_enum, default_value = "auto")]
    width: WidthChoice,
    /// If the run is damaged, continue from the last state that its files support; later values are computed again.
    #[arg(long)]
    rollback: bool,
    /// Print one JSON object at the end, as 'status --json'.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WidthChoice {
    /// One byte, or two if many values exceed 255.
    Auto,
    /// One byte, and a separate list for the values of 255 and above.
    U8,
    /// Two bytes.
    U16,
}

pub(crate) fn run(args: &Args, quiet: bool) -> Result<ExitCode> {
    let grundy = || Rule::grundy(1).expect("Grundy's game is a valid rule");
    let dir = match (&args.dir, &args.game) {
        (Some(dir), _) => dir.clone(),
        (None, game) => default_directory(game.as_ref().unwrap_or(&grundy())),
    };
    if dir.exists() && !dir.is_dir() {
        bail!("{}: this is not a directory; choose one with --dir", printable(&dir));
    }
    args.compute.warn();
    let is_new = !super::source::may_have_run(&dir);
    if is_new && args.dir.is_some() && args.game.is_none() {
        let command = format!("grundy run GAME --dir {}", advice::quoted_path(&dir));
        bail!("{}: no run here; check the name, or name the game to compute there: '{command}'", printable(&dir));
    }
    if is_new {
        super::output::refuse_unsuitable_directory(&Path::new(".").join(&dir))?;
    }
    let rule = args.game.clone().or(is_new.then(grundy));
    if let (Some(rule), Some(to)) = (&rule, args.to) {
        if rule.is_nim() && to > MOST_OF_NIM {
            let why = "G(n) = n, and a table holds values up to 65535";
            return Err(Usage(format!("nim: {why}, so --to is at most {MOST_OF_NIM}")).into());
        }
        rule.check_heap(to - 1).map_err(|error| match rule.largest_heap() {
            Some(largest) => anyhow!(
                "{}; --to is at most {}, or less, if an earlier value exceeds 65535",
                advice::message(&error),
                largest + 1
            ),
            None => error.into(),
        })?;
    }
    if is_new && let Some(rule) = &rule {
        note_period(rule);
    }
    let stop = super::signals::stop_flag()?;
    let mut meter = Meter::new(quiet);
    args.deadline.arm(&stop, &meter)?;
    let freed_before = freed(&dir);
    let outcome = configured(args, rule.as_ref(), &dir)?.observer(&mut meter).stop(&stop).run();
    meter.end();
    let outcome = outcome?;
    let freed = freed(&dir);
    if freed.end > freed_before.end {
        let from = HumanCount(freed.start.max(freed_before.end));
        note(&format!("--keep freed the values from n = {from} to {} permanently", HumanCount(freed.end - 1)));
    }
    if outcome.stopped && !dir.join(journal::NAME).exists() {
        super::complain!("stopped before the first value; nothing was written");
        return Ok(ExitCode::from(super::signals::STOPPED));
    }
    let printed = if args.json { super::status::object(&dir) } else { summary(&outcome, &dir) };
    if outcome.stopped {
        let command = [Some(resume_command(&outcome.rule, &dir, args.to)), args.compute.words(), args.deadline.words()];
        super::complain!("stopped; to resume: {}", command.into_iter().flatten().collect::<Vec<String>>().join(" "));
        return Ok(ExitCode::from(super::signals::STOPPED));
    }
    printed?;
    Ok(ExitCode::SUCCESS)
}

/// Notes the period of the game if it is known.
fn note_period(rule: &Rule) {
    if let Some(PeriodFact::Periodic { period, preperiod }) = known_period(rule) {
        let [period, preperiod] = [period, preperiod].map(HumanCount);
        let any = match proof_length(rule) {
            Some(_) => format!("; 'grundy values {} N' prints any value", advice::quoted(rule.name())),
            None => String::new(),
        };
        note(&format!("the period of {rule} is known to be {period}, from n = {preperiod} on{any}"));
    }
}

/// The values of a run that `--keep` has freed; none if the directory has no valid run.
fn freed(dir: &Path) -> Range<u64> {
    let last = journal::read(dir).map(|contents| contents.last);
    last.ok().and_then(|last| last.discarded()).unwrap_or_default()
}

/// Prints what a run contains now.
fn summary(outcome: &Outcome, dir: &Path) -> Result<()> {
    let Progress { count, max_value, max_at, rares, last_rare, .. } = outcome.progress;
    let [last_rare, max_at, computed] = [last_rare, max_at, outcome.computed].map(HumanCount);
    let rare = match rares {
        // Without a sparse space every position counts as rare.
        all if all == count => String::new(),
        _ => format!(" {}, the last at {last_rare};", counted(rares, "rare positions")),
    };
    let values = format!("{}: {} in {} ({computed} new)", outcome.rule, counted(count, "values"), printable(dir));
    let text = fitted(&format!("{values};{rare} largest value {max_value} at {max_at}\n"));
    super::output::print(|out| Ok(out.write_all(text.as_bytes())?))
}

/// The run that the arguments describe.
fn configured<'a>(args: &Args, rule: Option<&'a Rule>, dir: &Path) -> Result<Run<'a>> {
    let method = args.compute.kernel.method()?;
    let run = match rule {
        Some(rule) => Run::builder(rule, dir),
        None => Run::resume(dir),
    };
    let mut run = run.threads(args.compute.threads()).method(method).rollback(args.rollback);
    if let Some(to) = args.to {
        run = run.to(to);
    }
    if let Some(keep) = args.keep {
        run = run.keep(keep);
    }
    match args.width {
        WidthChoice::Auto => Ok(run),
        WidthChoice::U8 => Ok(run.width(Width::U8)),
        WidthChoice::U16 => Ok(run.width(Width::U16)),
    }
}

/// The shell command that resumes a run.
pub(super) fn resume_command(rule: &Rule, dir: &Path, to: Option<u64>) -> String {
    let to = to.map_or_else(String::new, |to| format!(" --to {to}"));
    format!("grundy run {} --dir {}{to}", advice::quoted(rule.name()), advice::quoted_path(dir))
}

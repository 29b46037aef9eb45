//! `grundy run`: make or resume a run.

use super::number;
use super::progress::Meter;
use super::{Compute, default_directory};
use anyhow::Result;
use clap::ValueEnum;
use grundy::run::{self, Options};
use grundy::table::Width;
use grundy::theory::rule::Rule;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `grundy run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy run grundy --to 1e8\n\
                        Stop it with Ctrl-C; the same command resumes it. TERM and HUP stop it too; USR1 and USR2 are\n\
                        ignored.\n\n\
                        Example with less disk: grundy run grundy --to 1e11 --keep 1G\n\
                        keeps the first 2^26 values and at least the last 10^9, and frees the others for good.")]
pub(crate) struct Args {
    /// The game; left out: that of the directory, or Grundy's.
    game: Option<Rule>,
    /// How many values there shall be, G(0) to G(N-1); left out: until stopped.
    #[arg(long, value_name = "N", value_parser = number::positive)]
    to: Option<u64>,
    /// The run directory; left out: runs/GAME.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Keep the first 2^26 values and at least the last SIZE, free the others; a resumed run goes on with what it had. What
    /// is freed stays freed. Refused when the game looks back farther.
    #[arg(long, value_name = "SIZE", value_parser = number::positive)]
    keep: Option<u64>,
    #[command(flatten)]
    compute: Compute,
    /// Bytes a value in a new table.
    #[arg(long, value_enum, default_value = "auto")]
    width: WidthChoice,
    /// Go back to the last good record when the table is damaged.
    #[arg(long)]
    rollback: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WidthChoice {
    /// One, unless many values exceed 255.
    Auto,
    /// One, and a list of the values that exceed 255.
    U8,
    /// Two.
    U16,
}

pub(crate) fn run(args: &Args, quiet: bool) -> Result<ExitCode> {
    let grundy = || Rule::grundy(1).expect("a rule");
    let dir = match (&args.dir, &args.game) {
        (Some(dir), _) => dir.clone(),
        (None, game) => default_directory(game.as_ref().unwrap_or(&grundy())),
    };
    let has_run = dir.join(grundy::checkpoint::journal::NAME).exists();
    let rule = if has_run { args.game.clone() } else { Some(args.game.clone().unwrap_or_else(grundy)) };
    let options = Options {
        to: args.to,
        threads: args.compute.threads(),
        method: args.compute.kernel.method()?,
        width: match args.width {
            WidthChoice::Auto => None,
            WidthChoice::U8 => Some(Width::U8),
            WidthChoice::U16 => Some(Width::U16),
        },
        keep: args.keep,
        rollback: args.rollback,
    };
    let stop = super::signals::stop_flag()?;
    let mut meter = Meter::new(quiet);
    let outcome = run::run(rule.as_ref(), &dir, &options, &mut meter, &stop);
    meter.end();
    let outcome = outcome?;
    let progress = outcome.progress;
    let said = super::output::print(|out| {
        Ok(writeln!(
            out,
            "{}: {} values in {} ({} new); {} rares, the last at {}; largest value {} at {}",
            outcome.rule,
            progress.count,
            dir.display(),
            outcome.computed,
            progress.rares,
            progress.last_rare,
            progress.max_value,
            progress.max_at
        )?)
    });
    if outcome.stopped {
        super::complain!("stopped; to go on: {}", resume_command(&outcome.rule, &dir, args.to));
        return Ok(ExitCode::from(130));
    }
    said?;
    Ok(ExitCode::SUCCESS)
}

/// What goes on with a run, to be typed in a shell.
pub(super) fn resume_command(rule: &Rule, dir: &Path, to: Option<u64>) -> String {
    let to = to.map_or_else(String::new, |to| format!(" --to {to}"));
    let dir = dir.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-=:+".contains(c);
    let dir = if dir.chars().all(plain) { dir } else { format!("'{}'", dir.replace('\'', r"'\''")) };
    format!("grundy run {rule} --dir {dir}{to}")
}

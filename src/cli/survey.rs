//! `grundy survey`: find the periods of many games.

use super::advice::message;
use super::deadline::Deadline;
use super::duration::duration;
use super::input::{called, read_text};
use super::layout::{counted, fitted, printable};
use super::number;
use super::progress::{GAMES, Meter};
use super::signals::stop_flag;
use super::{Compute, Usage};
use anyhow::Result;
use clap::{ArgGroup, ValueEnum};
use grundy::error::Kind;
use grundy::period::Status;
use grundy::survey::{self, Failure, Games, Means, Outcome, Plan, Record};
use grundy::theory::rule::Rule;
use indicatif::HumanCount;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum length of a file with a list of games, in bytes.
const MAX_LIST_BYTES: u64 = 64 << 20;

/// Tables that the survey writes into its directory, each with its format.
const TABLES: [(&str, Format); 2] = [("survey.csv", Format::Csv), ("survey.md", Format::Markdown)];

/// Arguments of `grundy survey`.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("source").required(true), after_help = "Example: grundy survey --digits 2 -o octal2\n         \
                        grundy survey games.txt --to 2^22 --shard 0/4 -o shard0\n         \
                        grundy merge shard0 shard1 shard2 shard3\n\n\
                        Writes one record per game (CODE.json), the tables survey.csv and survey.md, and \
                        survey.plan, which lists the expected games. The values of games with the same sequence are \
                        computed once. Games without a sparse space, whose values need all pairs, are examined up to \
                        an eighth of --to, or 2^14 values if that is more; a game with an observed period is \
                        examined up to four times --to if that could prove it. The same command, or one with a \
                        larger --to or --time-limit, continues a survey; the values of games that take long are \
                        saved every ten minutes and when it is stopped, but a game that --time-limit ended is \
                        computed from the beginning under a longer limit. A new survey needs an empty or a new \
                        directory, and the directory of another survey is refused. Records and tables have the \
                        canonical names that 'grundy info' states. Exit status 75 means that another process is using \
                        the directory.")]
pub(crate) struct Args {
    /// File with one game per line, at most 64 MiB; # begins a comment, '-' is standard input.
    #[arg(value_name = "GAMES-FILE", group = "source")]
    games: Option<PathBuf>,
    /// Examine all octal codes 0.… and 4.… with up to K digits after the point.
    #[arg(long, value_name = "K", group = "source",
          value_parser = number::within::<u32>(1..=survey::plan::MAX_DIGITS.into()))]
    digits: Option<u32>,
    /// Examine only part I of N parts of the games, I from 0 to N-1; a hash of the game's standard form selects its
    /// part.
    #[arg(long, value_name = "I/N", value_parser = shard, default_value = "0/1")]
    shard: (u64, u64),
    /// Number of values of each game to examine.
    #[arg(long, value_name = "N", default_value = "2^20", value_parser = number::positive,
          allow_negative_numbers = true)]
    to: u64,
    /// End the search of a game before a step that would exceed this computing time, as estimated from the steps before
    /// [default: no limit]; in whole seconds, or such as 30s, 10m.
    #[arg(long, value_name = "DURATION", value_parser = seconds, allow_negative_numbers = true)]
    time_limit: Option<u64>,
    /// Directory for the records; it must be new, empty, or the directory of the same survey.
    #[arg(short, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    deadline: Deadline,
    #[command(flatten)]
    compute: Compute,
    /// Print the records as JSON Lines.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// A Markdown table.
    Markdown,
    /// Comma-separated, with a header line.
    Csv,
    /// JSON Lines, one record per line.
    Jsonl,
}

impl Format {
    pub(super) fn text<'a>(self, records: impl Iterator<Item = &'a Record>) -> Result<String> {
        Ok(match self {
            Format::Markdown => survey::markdown(records),
            Format::Csv => survey::csv(records),
            Format::Jsonl => {
                let lines: Result<Vec<String>, _> = records.map(serde_json::to_string).collect();
                lines?.into_iter().map(|line| line + "\n").collect()
            }
        })
    }
}

/// Parses a number of seconds, at least 1, or a duration such as `30s` or `10m`.
fn seconds(text: &str) -> Result<u64, String> {
    if text.ends_with(|c: char| c.is_ascii_alphabetic()) {
        let time = duration(text)?;
        let is_whole = time.subsec_nanos() == 0 && !time.is_zero();
        return if is_whole { Ok(time.as_secs()) } else { Err("must be a whole number of seconds, at least 1".into()) };
    }
    number::positive(text).map_err(|why| format!("{why}; or a duration such as 30s or 10m"))
}

/// Parses `I/N` with I less than N.
fn shard(text: &str) -> Result<(u64, u64), String> {
    let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match parts {
        Some((i, n)) if i < n => Ok((i, n)),
        _ => Err("a shard is I/N with I from 0 to N-1".to_owned()),
    }
}

/// Reads the games of a file, one per line: their canonical names without repetitions.
pub(super) fn games_of(path: &Path) -> Result<Vec<String>> {
    let text = read_text(path, MAX_LIST_BYTES).map_err(|error| {
        let is_missing = !path.exists() && path != Path::new("-");
        match path.to_str().filter(|name| is_missing && name.parse::<Rule>().is_ok()) {
            Some(game) => Usage(format!(
                "{game}: no such file; name a file with one game per line, or use 'grundy period {0}' for one game",
                super::advice::quoted(game)
            ))
            .into(),
            None => error,
        }
    })?;
    let path = called(path);
    let (mut games, mut seen) = (Vec::new(), BTreeSet::new());
    // Some editors begin a file with a byte order mark.
    for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        let game = line.split('#').next().unwrap_or_default().trim();
        if game.is_empty() {
            continue;
        }
        let rule: Rule =
            game.parse().map_err(|e| Usage(format!("{}, line {number}: {}", path.display(), message(&e))))?;
        if seen.insert(rule.name().to_owned()) {
            games.push(rule.name().to_owned());
        }
    }
    if games.is_empty() {
        return Err(Usage(format!("{}: the file contains no games; write one game per line", path.display())).into());
    }
    Ok(games)
}

pub(crate) fn survey(args: &Args, quiet: bool) -> Result<ExitCode> {
    super::output::refuse_unsuitable_directory(&args.output)?;
    TABLES.iter().try_for_each(|(name, _)| super::output::refuse_foreign(&args.output.join(name)))?;
    let method = args.compute.kernel.method()?;
    let games = match (&args.games, args.digits) {
        (Some(path), _) => Games::List(games_of(path)?),
        (None, digits) => Games::Digits(digits.unwrap_or(1)),
    };
    let plan = Plan { time_limit: args.time_limit, ..Plan::new(games, args.shard, args.to).map_err(Usage)? };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    args.compute.warn();
    let threads = match args.compute.threads() {
        0 => cores,
        threads => threads,
    };
    let stop = stop_flag()?;
    let meter = Meter::new(quiet);
    args.deadline.arm(&stop, &meter)?;
    let games = plan.mine().len() as u64;
    let begun = AtomicBool::new(false);
    let outcome = survey::survey(plan, &args.output, Means { method, threads }, &stop, |done| {
        if begun.swap(true, Ordering::Relaxed) {
            return meter.at(done as u64);
        }
        let [count, of, to] = [done as u64, games, args.to].map(HumanCount);
        let (dir, method, threads) = (printable(&args.output), method.name(), counted(threads as u64, "threads"));
        meter.introduce(format!("survey {dir}: {count} of {of} games done, {to} values each ({method}, {threads})"));
        meter.begin_counting(GAMES, "survey", done as u64, Some(games));
    });
    meter.end();
    let outcome = outcome?;
    let records = survey::read(&[&args.output])?;
    for (name, format) in TABLES {
        let text = format.text(records.values())?;
        super::output::refuse_foreign(&args.output.join(name))?;
        super::output::whole_file(&args.output.join(name), |out| Ok(out.write_all(text.as_bytes())?))?;
    }
    let (dir, new) = (args.output.display(), HumanCount(outcome.completed as u64));
    let printed = super::output::print(|out| {
        if args.json {
            return Ok(out.write_all(Format::Jsonl.text(records.values())?.as_bytes())?);
        }
        let done = (outcome.found + outcome.completed) as u64;
        let mut games = if done < games {
            format!("{} of {}", HumanCount(done), counted(games, "games"))
        } else {
            counted(games, "games")
        };
        if outcome.stopped {
            games = format!("stopped after {games}");
        }
        let text =
            format!("{dir}: {games}, {new} of them new; {}; tables: survey.md and survey.csv\n", tally(&records));
        Ok(out.write_all(fitted(&text).as_bytes())?)
    });
    warn_of_limited(records.values());
    super::warn_of_restarts(&outcome.restarted);
    super::warn_of_outdated(outcome.outdated);
    let status = report_ending(&outcome);
    printed.map(|()| status)
}

/// The numbers of games by the result of their search.
fn tally(records: &BTreeMap<(bool, String), Record>) -> String {
    let of = |status| records.values().filter(move |record| record.status == status);
    let [observed, none] = [Status::Observed, Status::None].map(|status| HumanCount(of(status).count() as u64));
    let mut text = format!("{} proved", counted(of(Status::Proved).count() as u64, "periods"));
    if of(Status::Observed).next().is_some() {
        text += &format!(", {observed} observed");
    }
    if let Some(least) = of(Status::None).map(|record| record.checked_through).min() {
        text += &format!(", {none} not found in {} or more", counted(least, "values"));
    }
    text
}

/// Reports failures and a stop; returns the exit status.
fn report_ending(outcome: &Outcome) -> ExitCode {
    for Failure { games, error, .. } in &outcome.failed {
        super::complain!("grundy: error: {}: {}", games.join(", "), message(error));
    }
    if outcome.stopped {
        let saved = match outcome.saved {
            0 => String::new(),
            count => format!(" and the saved values of {}", counted(count as u64, "sequences")),
        };
        super::complain!("stopped; the same command continues with the missing games{saved}");
    }
    let is_damage = |failure: &Failure| failure.error.kind() == Kind::Damage;
    match outcome {
        Outcome { failed, .. } if failed.iter().any(is_damage) => ExitCode::from(3),
        Outcome { failed, .. } if !failed.is_empty() => ExitCode::FAILURE,
        Outcome { stopped: true, .. } => ExitCode::from(super::signals::STOPPED),
        _ => ExitCode::SUCCESS,
    }
}

/// States on stderr how many searches the time limit ended.
fn warn_of_limited<'a>(records: impl Iterator<Item = &'a Record>) {
    let limited: Vec<&Record> = records.filter(|record| record.time_limit.is_some()).collect();
    if let Some(Record { game, checked_through, .. }) = limited.iter().min_by_key(|record| record.checked_through) {
        let count = limited.len();
        super::complain!(
            "grundy: warning: games ended by the time limit: {count}; the earliest, {game}, after {}",
            counted(*checked_through, "values")
        );
    }
}

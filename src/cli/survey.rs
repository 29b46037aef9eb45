//! `grundy survey` and `grundy merge`: the periods of many games, and their table.

use super::number;
use super::progress::Meter;
use super::signals::stop_flag;
use super::{Compute, Usage};
use anyhow::{Context, Result};
use clap::ValueEnum;
use grundy::rule::Rule;
use grundy::survey::{self, Record};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

/// Arguments of `grundy survey`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy survey --digits 2 -o octal2\n         \
                        grundy survey games.txt --to 2^22 --shard 0/4 -o shard0\n         \
                        grundy merge shard0 shard1 shard2 shard3\n\
                        Writes one record a game, CODE.json, and the tables survey.csv and survey.md. Games that need\n\
                        every pair of heaps are looked at up to an eighth of --to, others up to four times as far when\n\
                        a period could be proved there. The same command goes on with what is missing.")]
pub(crate) struct SurveyArgs {
    /// A file with one game a line; what follows # is a comment.
    #[arg(value_name = "GAMES-FILE", required_unless_present = "digits", conflicts_with = "digits")]
    games: Option<PathBuf>,
    /// All octal codes 0.… and 4.… with up to K digits after the point.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=6))]
    digits: Option<u32>,
    /// Every N-th game, from the I-th on: 0/N to (N-1)/N.
    #[arg(long, value_name = "I/N", value_parser = shard, default_value = "0/1")]
    shard: (usize, usize),
    /// How many values of a game are looked at, as a rule.
    #[arg(long, value_name = "N", default_value = "2^20", value_parser = number::positive)]
    to: u64,
    /// The directory of the records.
    #[arg(short, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    compute: Compute,
    /// The records as JSON Lines on stdout.
    #[arg(long)]
    json: bool,
}

/// Arguments of `grundy merge`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy merge shard0 shard1 --format csv -o table.csv\n\
                        Of two records of a game the one counts that looked further; contradictions are refused.")]
pub(crate) struct MergeArgs {
    /// Directories of surveys.
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// The format of the table.
    #[arg(long, value_enum, default_value = "markdown")]
    format: Format,
    /// File to write, '-' for stdout [default: stdout]
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The same as --format jsonl.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table for people.
    Markdown,
    /// Comma-separated, with a header line.
    Csv,
    /// The records, one a line.
    Jsonl,
}

impl Format {
    fn text<'a>(self, records: impl Iterator<Item = &'a Record>) -> Result<String> {
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

/// `I/N` with I below N.
fn shard(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match parts {
        Some((i, n)) if i < n => Ok((i, n)),
        _ => Err("a shard is I/N with I from 0 to N-1".to_owned()),
    }
}

/// One game a line.
fn games_of(path: &Path) -> Result<Vec<Rule>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let (mut games, mut names): (Vec<Rule>, _) = (Vec::new(), BTreeSet::new());
    for (number, line) in (1..).zip(text.lines()) {
        let game = line.split('#').next().unwrap_or_default().trim();
        if game.is_empty() {
            continue;
        }
        let rule: Rule = game.parse().map_err(|e| Usage(format!("{}, line {number}: {e}", path.display())))?;
        if names.insert(rule.name().to_owned()) {
            games.push(rule);
        }
    }
    if games.is_empty() {
        return Err(Usage(format!("{}: no games", path.display())).into());
    }
    Ok(games)
}

pub(crate) fn survey(args: &SurveyArgs, quiet: bool) -> Result<ExitCode> {
    super::output::refuse_run_directory(&args.output)?;
    let method = args.compute.kernel.method()?;
    let games = match (&args.games, args.digits) {
        (Some(path), _) => games_of(path)?,
        (None, digits) => survey::codes(digits.unwrap_or(1)),
    };
    let (first, step) = args.shard;
    let games: Vec<Rule> = games.into_iter().skip(first).step_by(step).collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = match args.compute.threads() {
        0 => cores,
        threads => threads,
    };
    let stop = stop_flag()?;
    let meter = Mutex::new(Meter::new(quiet));
    let with_meter = |show: &mut dyn FnMut(&mut Meter)| show(&mut meter.lock().unwrap_or_else(|e| e.into_inner()));
    with_meter(&mut |meter| meter.begin("games", 0, Some(games.len() as u64)));
    let outcome = survey::survey(&games, &args.output, method, args.to, threads, &stop, |done| {
        with_meter(&mut |meter| meter.at(done as u64, String::new));
    });
    with_meter(&mut Meter::end);
    let outcome = outcome?;
    let records = survey::read(&[&args.output])?;
    for (name, format) in [("survey.csv", Format::Csv), ("survey.md", Format::Markdown)] {
        let text = format.text(records.values())?;
        super::output::whole_file(&args.output.join(name), |out| Ok(out.write_all(text.as_bytes())?))?;
    }
    let proved = records.values().filter(|r| r.status == grundy::period::Status::Proved).count();
    super::output::print(|out| {
        if args.json {
            return Ok(out.write_all(Format::Jsonl.text(records.values())?.as_bytes())?);
        }
        writeln!(
            out,
            "{}: {} games, {} of them new; {proved} periods proved; the table is in survey.md and survey.csv",
            args.output.display(),
            records.len(),
            outcome.made
        )?;
        Ok(())
    })?;
    for (game, why) in &outcome.failed {
        super::complain!("grundy: error: {game}: {why}");
    }
    if !outcome.failed.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    if outcome.stopped {
        super::complain!("stopped; the same command goes on with the games that are missing");
        return Ok(ExitCode::from(130));
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn merge(args: &MergeArgs) -> Result<()> {
    let dirs: Vec<&Path> = args.dirs.iter().map(PathBuf::as_path).collect();
    let records = survey::read(&dirs)?;
    let text = if args.json { Format::Jsonl } else { args.format }.text(records.values())?;
    match &args.output {
        Some(path) => super::output::whole_file(path, |out| Ok(out.write_all(text.as_bytes())?)),
        None => super::output::print(|out| Ok(out.write_all(text.as_bytes())?)),
    }
}

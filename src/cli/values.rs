//! `grundy values`: print values, read from a run or computed in memory.

use super::number;
use super::progress::{Meter, means, note};
use super::source::{Source, is_slow};
use super::{KernelChoice, Usage, advice};
use anyhow::Result;
use grundy::Error;
use grundy::period::{Continuation, MemorySearch, Theorem};
use grundy::run::RunReader;
use grundy::solver::{Method, Solver, SparseSpace};
use grundy::theory::catalogue::{self, PeriodFact};
use grundy::theory::definition::Sequence;
use grundy::theory::rule::Rule;
use indicatif::HumanCount;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::ops::Range;
use std::path::Path;

/// Number of values that are printed without a range.
const USUAL: u64 = 100;

/// Maximum number of values computed in memory, two bytes each.
const MAX_VALUES: u64 = 1 << 32;

/// Maximum number of values that are computed from all earlier ones although the period of the game is known.
const FEW: u64 = 1 << 14;

/// Number of values in which to search for a period, if none is known.
const SEARCHED: u64 = 1 << 17;

/// Arguments of `grundy values`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy values kayles\n         \
                        grundy values kayles 0..1000 1e18\n         \
                        grundy values runs/grundy 1e6 7250049\n         \
                        grundy values runs/grundy 0..100 --verify\n\n\
                        The values of a game whose period is proved follow from the period, from n = 2^14 to 2^63 - 1.\n\n\
                        For a run, checks the journal and reads the table as it is; --verify checks the table first.")]
pub(crate) struct Args {
    /// Game, or run directory (./x is always a directory).
    #[arg(value_name = "GAME|DIR")]
    source: OsString,
    /// Values to print: half-open ranges A..B of n, or single n [default: the first hundred, in rows of ten].
    #[arg(value_name = "RANGE", value_parser = range, allow_negative_numbers = true)]
    ranges: Vec<Range<u64>>,
    /// Print JSON Lines: {"n":0,"value":0}
    #[arg(long)]
    json: bool,
    /// Verify the run's table against the digests in the journal first; exit with status 3 if a byte was altered. Only
    /// with DIR.
    #[arg(long)]
    verify: bool,
}

pub(crate) fn values(args: &Args, quiet: bool) -> Result<()> {
    match Source::find(&args.source)? {
        Source::Directory(dir) => {
            let view = open(&dir, args.verify, quiet)?;
            for range in &args.ranges {
                view.require(range.start, range.end).map_err(|error| advice::of_run(error, &dir))?;
            }
            if args.ranges.is_empty() {
                print_first(&view.values(0..view.len().min(USUAL))?, args.json)
            } else {
                print(&view, args, quiet)
            }
        }
        Source::Game(_) if args.verify => Err(Usage(COMPUTED.into()).into()),
        Source::Game(rule) if args.ranges.is_empty() => print_first(&computed(&rule, USUAL, quiet)?, args.json),
        Source::Game(rule) if rule.is_nim() => super::nim::values(&args.ranges, args.json),
        Source::Game(rule) => {
            let count = args.ranges.iter().map(|r| r.end).max().unwrap_or(0);
            print(&*of_game(&rule, count, quiet)?, args, quiet)
        }
    }
}

/// Prints the first values: in rows of ten below their last digits, or as JSON Lines.
fn print_first(values: &[u16], json: bool) -> Result<()> {
    if json {
        return super::output::print(|out| lines(&values, 0..values.len() as u64, json, out, |_| {}));
    }
    let width = values.iter().max().map_or(1, |value| value.to_string().len());
    super::output::print(|out| {
        let row = |cells: Vec<String>| cells.iter().map(|cell| format!("  {cell:>width$}")).collect::<String>();
        writeln!(out, " n {}", row((0..10).map(|digit| digit.to_string()).collect()))?;
        for (tens, values) in values.chunks(10).enumerate() {
            writeln!(out, "{:>2} {}", 10 * tens, row(values.iter().map(u16::to_string).collect()))?;
        }
        Ok(())
    })
}

/// The first `count` values of a game, or all, from its period, where that is less work.
pub(super) fn of_game(rule: &Rule, count: u64, quiet: bool) -> Result<Box<dyn Sequence>> {
    of_game_bounded(rule, count, quiet).map(|(values, _)| values)
}

/// [`of_game`], with the largest of the values that were computed, which bounds all of them.
pub(super) fn of_game_bounded(rule: &Rule, count: u64, quiet: bool) -> Result<(Box<dyn Sequence>, u16)> {
    if count > Continuation::LENGTH {
        return Err(Usage("the largest n of a game is 2^63 - 1".into()).into());
    }
    Ok(match by_period(rule, count, quiet)? {
        Some(all) => {
            let largest = all.largest();
            (Box::new(all), largest)
        }
        None => {
            require_few(rule, count)?;
            let values = solved(rule, count, quiet)?.0;
            let largest = values.iter().copied().max().unwrap_or(0);
            (Box::new(values), largest)
        }
    })
}

/// The values of a game for every n, from its period, if fewer than `count` values prove that. `None` for few values.
fn by_period(rule: &Rule, count: u64, quiet: bool) -> Result<Option<Continuation>> {
    let needed = if count > FEW { proof_length(rule).or_else(|| search_length(rule, count)) } else { None };
    let Some(needed) = needed.filter(|&needed| needed < count) else { return Ok(None) };
    let work = format!("searching for the period in the first {} values", HumanCount(needed));
    let (meter, method) = begin(rule, needed, quiet, &work)?;
    let mut search = MemorySearch::new(rule, method);
    search.until_proved(needed, |n| {
        meter.at(n);
        true
    })?;
    meter.end();
    let all = Continuation::of(&search);
    if let Some(all) = &all {
        let [period, preperiod, values] = [all.period(), all.preperiod(), search.count()].map(HumanCount);
        note(&format!(
            "{rule}: {values} values prove the period {period} from n = {preperiod} on, which gives all others \
             ('grundy period {}')",
            advice::quoted(rule.name())
        ));
    }
    Ok(all)
}

/// What is known of the period of a game.
pub(super) fn known_period(rule: &Rule) -> Option<PeriodFact> {
    catalogue::known(rule).period.map(|known| known.fact)
}

/// A number of values that prove the period of a game, if it is known and memory holds that many.
pub(super) fn proof_length(rule: &Rule) -> Option<u64> {
    let Some(PeriodFact::Periodic { period, preperiod }) = known_period(rule) else { return None };
    let length = |theorem: Theorem| theorem.length(rule, preperiod.max(1), period);
    length(Theorem::P1).or_else(|| length(Theorem::P3)).filter(|&length| length <= MAX_VALUES)
}

/// The number of values in which to search for the period of a game, if nothing is known of it, and `count` values are
/// too many to compute; `None` if that search takes long.
fn search_length(rule: &Rule, count: u64) -> Option<u64> {
    (known_period(rule).is_none() && count > MAX_VALUES && !is_slow(rule)).then_some(SEARCHED)
}

/// The usage error for `--verify` without a run.
pub(super) const COMPUTED: &str =
    "--verify checks the table of a run, but no run directory is given; the values of a game are computed in memory";

/// Opens a run for reading. With `verify`, first verifies its table against the journal.
///
/// # Errors
/// The errors of opening the run; [`Error::Damage`] if `verify` finds an altered byte.
pub(super) fn open(dir: &Path, verify: bool, quiet: bool) -> Result<RunReader> {
    if !verify {
        return Ok(RunReader::open(dir)?);
    }
    super::start_threads(0)?;
    let meter = Meter::new(quiet);
    let verified = grundy::verify::verified(dir, |done, all| {
        meter.phase("verifying", done, all);
        true
    });
    meter.end();
    verified?.ok_or_else(|| anyhow::anyhow!("{}: the verification was stopped before its end", dir.display()))
}

/// The first `count` values of a game in memory, from its period where that is less work.
pub(super) fn computed(rule: &Rule, count: u64, quiet: bool) -> Result<Vec<u16>> {
    require_few(rule, count)?;
    match by_period(rule, count, quiet)? {
        Some(all) => first_of(&all, count),
        None => Ok(solved(rule, count, quiet)?.0),
    }
}

/// [`computed`], with the sparse space in use after the last value, or after [`FEW`] values if the others follow from
/// the period.
pub(super) fn computed_with_space(rule: &Rule, count: u64, quiet: bool) -> Result<(Vec<u16>, SparseSpace)> {
    require_few(rule, count)?;
    match by_period(rule, count, quiet)? {
        Some(all) => Ok((first_of(&all, count)?, solved(rule, FEW, true)?.1)),
        None => solved(rule, count, quiet),
    }
}

/// The first `count` values of a sequence.
fn first_of(all: &dyn Sequence, count: u64) -> Result<Vec<u16>> {
    let mut values = reserved(count)?;
    values.resize(usize::try_from(count)?, 0);
    all.read(0, &mut values)?;
    Ok(values)
}

/// Checks that the game has `count` values, and that they are at most [`MAX_VALUES`].
fn require_few(rule: &Rule, count: u64) -> Result<()> {
    rule.check_heap(count.saturating_sub(1))?;
    if count > MAX_VALUES {
        return Err(Usage(too_many(rule, count)).into());
    }
    Ok(())
}

/// Memory for `count` values, reserved at once, so that a shortage is reported before they are computed.
fn reserved(count: u64) -> Result<Vec<u16>> {
    let shortage = || Error::Memory { what: "the sequence", bytes: 2 * count };
    let mut values = Vec::new();
    values.try_reserve_exact(usize::try_from(count).map_err(|_| shortage())?).map_err(|_| shortage())?;
    Ok(values)
}

/// The first `count` values as the solver computes them, and the sparse space in use after the last one.
fn solved(rule: &Rule, count: u64, quiet: bool) -> Result<(Vec<u16>, SparseSpace)> {
    let (meter, method) = begin(rule, count, quiet, &format!("computing {} values in memory", HumanCount(count)))?;
    let mut values = reserved(count)?;
    let mut solver = Solver::new(rule, method, None, &values)?;
    solver.extend_to(&mut values, count, |n| {
        meter.at(n);
        true
    })?;
    meter.end();
    Ok((values, solver.space()))
}

/// Starts the threads that compute `count` values, and a meter, which names the work and what it uses.
fn begin(rule: &Rule, count: u64, quiet: bool, work: &str) -> Result<(Meter, Method)> {
    let meter = Meter::new(quiet);
    let method = KernelChoice::Auto.method()?;
    super::start_threads(0)?;
    let means = means(rule, method.name(), rayon::current_num_threads());
    meter.introduce(format!("{work} ({means})"));
    meter.begin(rule.name(), 0, Some(count));
    Ok((meter, method))
}

/// Parses a range after the game.
fn range(text: &str) -> std::result::Result<Range<u64>, String> {
    number::range(text).map_err(|why| match text.parse::<Rule>() {
        Ok(_) => "this is a game; name it before the ranges, as in 'grundy values grundy 0..20'".into(),
        Err(_) => why,
    })
}

/// The usage error for more than [`MAX_VALUES`] values.
fn too_many(rule: &Rule, count: u64) -> String {
    let instead = match known_period(rule) {
        Some(PeriodFact::Periodic { period, preperiod }) => {
            let last = count - 1;
            let same = if last < preperiod { last } else { preperiod + (last - preperiod) % period };
            let [period, preperiod] = [period, preperiod].map(HumanCount);
            let game = advice::quoted(rule.name());
            let known = if same < last { format!(", so G({last}) = G({same})") } else { String::new() };
            format!(
                "they have period {period} from n = {preperiod} on{known}; 'grundy run {game} --keep SIZE --to N' computes \
                 more, on disk"
            )
        }
        _ => {
            let game = advice::quoted(rule.name());
            format!("no period of {rule} is known; 'grundy run {game} --to {count}' computes them on disk")
        }
    };
    format!("{} values are too many to compute in memory (at most 2^32); {instead}", HumanCount(count))
}

/// Prints the values of the ranges, one per line.
fn print(values: &dyn Sequence, args: &Args, quiet: bool) -> Result<()> {
    // No progress between values on the same terminal.
    let meter = Meter::new(quiet || std::io::stdout().is_terminal());
    let add = |sum: u64, range: &Range<u64>| sum.saturating_add(range.end - range.start);
    meter.begin("printing", 0, Some(args.ranges.iter().fold(0, add)));
    let mut before = 0;
    super::output::print(|out| {
        for range in &args.ranges {
            lines(values, range.clone(), args.json, out, |n| meter.at(add(before, &(range.start..n))))?;
            before = add(before, range);
        }
        Ok(())
    })
}

/// Writes the values of a range, one per line; `see` receives the first n of each piece.
fn lines(values: &dyn Sequence, range: Range<u64>, json: bool, out: &mut dyn Write, see: impl Fn(u64)) -> Result<()> {
    in_pieces(values, range, |from, piece| {
        see(from);
        Ok((from..).zip(piece).try_for_each(|(n, v)| {
            if json { writeln!(out, "{{\"n\":{n},\"value\":{v}}}") } else { writeln!(out, "{n} {v}") }
        })?)
    })
}

/// Calls `work(n, values)` with the values of consecutive pieces of a range, 2^16 at a time, up to its first error.
///
/// # Errors
/// Any error of reading `values`, and the first error of `work`.
pub(super) fn in_pieces(
    values: &dyn Sequence,
    range: Range<u64>,
    mut work: impl FnMut(u64, &[u16]) -> Result<()>,
) -> Result<()> {
    /// Number of values in a piece.
    const PIECE: u64 = 1 << 16;
    let mut piece = Vec::new();
    let mut n = range.start;
    while n < range.end {
        piece.resize(usize::try_from(PIECE.min(range.end - n))?, 0);
        values.read(n, &mut piece)?;
        work(n, &piece)?;
        n += piece.len() as u64;
    }
    Ok(())
}

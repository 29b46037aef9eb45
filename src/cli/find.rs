//! `grundy find`: what people publish about a sequence, read from a run or computed in memory.

use super::discarded::{Give, See, rows_of_run};
use super::layout::counted;
use super::number;
use super::output::Output;
use super::progress::{Meter, note};
use super::run::resume_command;
use super::signals::{self, Stopped};
use super::source::{Source, is_slow};
use super::values::{COMPUTED, computed, computed_with_space, known_period, open};
use super::{Usage, advice, complain, space};
use anyhow::Result;
use clap::ValueEnum;
use grundy::Error;
use grundy::find::{Question, Row, rows};
use grundy::run::RunReader;
use grundy::solver::{self, Method, SparseSpace};
use grundy::theory::catalogue::{self, PeriodFact};
use grundy::theory::definition::Sequence;
use grundy::theory::rule::Rule;
use indicatif::HumanCount;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;

/// Number of values searched without `--range`.
const USUAL: u64 = 1 << 20;

/// The same for a game whose values take long or soon exceed 65535: a move leaves three heaps, or the code repeats.
const USUAL_OF_SLOW: u64 = 1 << 12;

/// Number of values after which a solver has searched for a sparse space.
const LONG_ENOUGH: u64 = 1 << 16;

/// Arguments of `grundy find`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "grundy find [OPTIONS] \
                                  <--zeros|--records|--first|--histogram|--rares|--value <V[..W]>> <GAME|DIR>")]
#[command(after_help = "Example: grundy find runs/grundy --zeros\n         \
                        grundy find grundy --first --range 0..1e7 --format csv -o first.csv\n         \
                        grundy find runs/grundy --rares --format bfile -o rares.txt\n         \
                        grundy find .07 --zeros --format bfile --offset -1 -o zeros.txt\n\n\
                        Rows: 'n value' with --zeros, --value, --records and --rares; 'value n' with --first, where \
                        '-' means that the value does not occur; 'value number' with --histogram. In a b-file, the \
                        positions are numbered from 1; --first and --histogram are indexed by the value. A position \
                        n is rare if n is 0, or if G(n) is in the smaller class of the sparse space: nearly all \
                        values are in the other class. The space of a run is that of 'grundy status', or else that \
                        of 'grundy info'; the space of a game is that of 'grundy info', or else one found in the \
                        values of the range. Of the values that a run has freed (--keep), it knows the rare positions, \
                        the records and the counts; other questions about them are refused. For a run, checks the \
                        journal and reads the table as it is; --verify checks the table first.")]
pub(crate) struct Args {
    /// Game, or run directory (./x is always a directory).
    #[arg(value_name = "GAME|DIR")]
    source: OsString,
    #[command(flatten)]
    wanted: Wanted,
    /// Range of n to search [default: all committed values of a run, the first 2^20 of a game, 2^12 if a
    /// move leaves three heaps or the code repeats].
    #[arg(long, value_name = "A..B", value_parser = number::range, allow_negative_numbers = true)]
    range: Option<Range<u64>>,
    /// Format to write.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write n + K instead of n in a b-file; K may be negative.
    #[arg(long, value_name = "K", default_value = "0", allow_negative_numbers = true, value_parser = number::offset)]
    offset: i64,
    /// File to write; '-' is stdout [default: stdout].
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Verify the run's table against the digests in the journal first; exit with status 3 if a byte was altered. Only
    /// with DIR.
    #[arg(long)]
    verify: bool,
}

/// What to find.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Wanted {
    /// Find the positions with value 0, where the player to move loses.
    #[arg(long)]
    zeros: bool,
    /// Find the positions whose value is greater than all values before it in the range.
    #[arg(long)]
    records: bool,
    /// Find the first position of each value, and the values that do not occur.
    #[arg(long)]
    first: bool,
    /// Count the positions of each value.
    #[arg(long)]
    histogram: bool,
    /// Find the rare positions of the sparse space, with their values.
    #[arg(long)]
    rares: bool,
    /// Find the positions of a value V, or of the values V to W-1.
    #[arg(long, value_name = "V[..W]", value_parser = number::range, allow_negative_numbers = true)]
    value: Option<Range<u64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Two numbers per line.
    Text,
    /// Comma-separated, with a header line.
    Csv,
    /// JSON Lines, one object per row.
    Json,
    /// OEIS b-file: "n a(n)", one space, LF.
    Bfile,
}

impl Wanted {
    /// The values of `--value`.
    fn values(&self) -> Result<Option<RangeInclusive<u16>>> {
        let Some(value) = &self.value else { return Ok(None) };
        let first = u16::try_from(value.start);
        let first = first.map_err(|_| Usage(format!("--value {}: values are below 65536", value.start)))?;
        Ok(Some(first..=u16::try_from(value.end - 1).unwrap_or(u16::MAX)))
    }

    /// The question. `space` returns the space that decides which positions are rare.
    fn question(&self, space: impl FnOnce() -> Result<SparseSpace>) -> Result<Question> {
        if let Some(values) = self.values()? {
            return Ok(Question::Values(values));
        }
        Ok(match self {
            Wanted { zeros: true, .. } => Question::Values(0..=0),
            Wanted { records: true, .. } => Question::Records,
            Wanted { first: true, .. } => Question::First,
            Wanted { histogram: true, .. } => Question::Histogram,
            _ => Question::Rare(space()?),
        })
    }
}

/// Returns the first of two spaces that is not [`SparseSpace::NONE`], and notes which positions are rare. `more` is the
/// advice where both are.
fn chosen_space(rule: &Rule, spaces: [SparseSpace; 2], more: &str) -> Result<SparseSpace> {
    let none = "so rare positions are not defined";
    if let Some(why) = solver::obstacle(rule) {
        return Err(Usage(format!("{rule}: there is no sparse space, because {why}; {none}")).into());
    }
    let space = spaces.into_iter().find(|space| *space != SparseSpace::NONE);
    let more = match known_period(rule) {
        Some(PeriodFact::Periodic { period, .. }) => {
            format!("the game has the proved period {}, so more values show no new ones", HumanCount(period))
        }
        _ => more.to_owned(),
    };
    let space = space.ok_or_else(|| Usage(format!("{rule}: no sparse space is known, {none}; {more}")))?;
    note(&format!("{rule}: sparse space with mask {:#x}: {}", space.mask, space::which_are_rare(space)));
    Ok(space)
}

/// The space that `grundy info` states for a game.
fn known_space(rule: &Rule) -> SparseSpace {
    catalogue::known(rule).space.map_or(SparseSpace::NONE, |known| known.fact.space)
}

/// Number of values of a game that are searched without `--range`.
fn usual(rule: &Rule) -> u64 {
    if is_slow(rule) || rule.largest_heap().is_some() { USUAL_OF_SLOW } else { USUAL }
}

pub(crate) fn find(args: &Args, quiet: bool) -> Result<()> {
    let output = Output::of_option(args.output.as_deref())?;
    args.wanted.values()?;
    if args.offset != 0 && (args.format != Format::Bfile || args.wanted.histogram) {
        return Err(Usage("--offset needs --format bfile, and does not apply to --histogram".into()).into());
    }
    super::start_threads(0)?;
    match Source::find(&args.source)? {
        Source::Directory(dir) => {
            output.refuse_files_of(&dir)?;
            let view = open(&dir, args.verify, quiet)?;
            let question = args.wanted.question(|| {
                let more = resume_command(&view.rule, &dir, Some(view.len().saturating_mul(2).max(LONG_ENOUGH)));
                let spaces = [view.space(), known_space(&view.rule)];
                chosen_space(&view.rule, spaces, &format!("'{more}' may find one"))
            })?;
            let range = args.range.clone().unwrap_or(0..view.len());
            let (from, to, count) = (range.start, range.end, view.len());
            if to > count {
                return Err(advice::of_run(Error::Range { from, to, count }, &dir));
            }
            let search = |see: See<'_>, row: Give<'_>| rows_of_run(&view, range.clone(), &question, (see, row));
            write(&output, args, (&question, &range), search, quiet)
        }
        Source::Game(_) if args.verify => Err(Usage(COMPUTED.into()).into()),
        Source::Game(rule) => {
            let range = args.range.clone().unwrap_or(0..usual(&rule));
            if rule.is_nim() {
                return Err(Usage("nim: G(n) = n for all n, so there is nothing to find".into()).into());
            }
            if args.wanted.rares && !solver::may_be_sparse(&rule, Method::default()) {
                chosen_space(&rule, [SparseSpace::NONE; 2], "")?;
            }
            let (values, found) = if args.wanted.rares {
                computed_with_space(&rule, range.end, quiet)?
            } else {
                (computed(&rule, range.end, quiet)?, SparseSpace::NONE)
            };
            // The known space first: that of the solver depends on the number of values.
            let more = "the program may find one in the values of a longer --range";
            let spaces = || [known_space(&rule), found];
            let question = args.wanted.question(|| chosen_space(&rule, spaces(), more))?;
            let search = |see: See<'_>, row: Give<'_>| rows(&values, range.clone(), &question, see, row);
            write(&output, args, (&question, &range), search, quiet)
        }
    }
}

/// Writes the rows that `search` gives, and shows how far it is.
fn write(
    output: &Output,
    args: &Args,
    (question, range): (&Question, &Range<u64>),
    search: impl FnOnce(See<'_>, Give<'_>) -> Result<()>,
    quiet: bool,
) -> Result<()> {
    // No progress bar between rows on the same terminal.
    let meter = Meter::new(quiet || output.is_stdout() && std::io::stdout().is_terminal());
    meter.begin("searching", 0, Some(range.end - range.start));
    let mut table = Table { offset: args.offset, ..Table::new(args.format, question) };
    let mut rows = 0u64;
    let written = output.write(|out| {
        let mut see = |n| {
            meter.at(n - range.start);
            check_stop()
        };
        let mut give = |row| {
            table.row(row, out)?;
            // A b-file ends at its first gap.
            rows += u64::from(table.gap.is_none());
            Ok(())
        };
        search(&mut see, &mut give)?;
        table.begin(out)
    });
    meter.end();
    if written.is_ok() {
        let to = if output.is_stdout() { String::new() } else { format!("wrote {}: ", output.name()) };
        let rows = if rows == 0 { "no rows".to_owned() } else { counted(rows, "rows") };
        let [start, end] = [range.start, range.end].map(HumanCount);
        let more = if args.range.is_some() { "" } else { " (the default range)" };
        note(&format!("{to}{rows} for n in {start}..{end}{more}"));
    }
    if let Some(value) = table.gap {
        complain!("grundy: warning: the value {value} does not occur, so the b-file ends before it");
    }
    written
}

/// Writes the rows of a run that answer `question` as CSV. `show` receives the n that the search has reached.
pub(super) fn csv_of_run(run: &RunReader, question: &Question, show: impl Fn(u64), out: &mut dyn Write) -> Result<()> {
    let mut table = Table::new(Format::Csv, question);
    let mut see = |n| {
        show(n);
        check_stop()
    };
    rows_of_run(run, 0..run.len(), question, (&mut see, &mut |row| table.row(row, out)))?;
    table.begin(out)
}

/// Ends a search after a signal. One without results would not notice that the output was stopped.
fn check_stop() -> Result<()> {
    if signals::is_stopping() { Err(Stopped.into()) } else { Ok(()) }
}

/// The header of a CSV file.
fn header(question: &Question) -> &'static str {
    match question {
        Question::First => "value,n",
        Question::Histogram => "value,count",
        _ => "n,value",
    }
}

/// The rows in a format.
struct Table {
    format: Format,
    /// The header of a CSV file until it is written. A question that is refused writes nothing.
    header: Option<&'static str>,
    /// What a b-file adds to each n.
    offset: i64,
    /// The number of rows of a b-file so far; where rows are indexed by the value, the next index.
    index: u64,
    /// The first value that does not occur, where the b-file ends.
    gap: Option<u16>,
}

impl Table {
    fn new(format: Format, question: &Question) -> Table {
        Table { format, header: Some(header(question)), offset: 0, index: 0, gap: None }
    }

    /// Writes the header, if the format has one, before the first row, or at the end of a table without rows.
    fn begin(&mut self, out: &mut dyn Write) -> Result<()> {
        if let Some(header) = self.header.take().filter(|_| self.format == Format::Csv) {
            writeln!(out, "{header}")?;
        }
        Ok(())
    }

    fn row(&mut self, row: Row, out: &mut dyn Write) -> Result<()> {
        self.begin(out)?;
        match (self.format, row) {
            (Format::Bfile, row) => self.line(row, out)?,
            (Format::Text, Row::At { n, value }) => writeln!(out, "{n} {value}")?,
            (Format::Text, Row::First { value, n: Some(n) }) => writeln!(out, "{value} {n}")?,
            (Format::Text, Row::First { value, n: None }) => writeln!(out, "{value} -")?,
            (Format::Text, Row::Count { value, count }) => writeln!(out, "{value} {count}")?,
            (Format::Csv, Row::At { n, value }) => writeln!(out, "{n},{value}")?,
            (Format::Csv, Row::First { value, n: Some(n) }) => writeln!(out, "{value},{n}")?,
            (Format::Csv, Row::First { value, n: None }) => writeln!(out, "{value},")?,
            (Format::Csv, Row::Count { value, count }) => writeln!(out, "{value},{count}")?,
            (Format::Json, Row::At { n, value }) => writeln!(out, "{{\"n\":{n},\"value\":{value}}}")?,
            (Format::Json, Row::First { value, n }) => {
                writeln!(out, "{}", serde_json::json!({ "value": value, "n": n }))?;
            }
            (Format::Json, Row::Count { value, count }) => {
                writeln!(out, "{{\"value\":{value},\"count\":{count}}}")?;
            }
        }
        Ok(())
    }

    /// Writes the line of a b-file, whose indices have no gaps.
    fn line(&mut self, row: Row, out: &mut dyn Write) -> Result<()> {
        let shifted = |n: u64| i128::from(n) + i128::from(self.offset);
        match row {
            Row::At { n, .. } => {
                self.index += 1;
                writeln!(out, "{} {}", self.index, shifted(n))?;
            }
            Row::First { value, n: Some(n) } if self.gap.is_none() => writeln!(out, "{value} {}", shifted(n))?,
            Row::First { value, .. } => {
                self.gap.get_or_insert(value);
            }
            Row::Count { value, count } => {
                for absent in self.index..value.into() {
                    writeln!(out, "{absent} 0")?;
                }
                self.index = u64::from(value) + 1;
                writeln!(out, "{value} {count}")?;
            }
        }
        Ok(())
    }
}

//! `grundy export`: write the values of a run, or of a game, in another format.

use super::output::Output;
use super::progress::{Meter, note};
use super::source::Source;
use super::values::{COMPUTED, in_pieces, of_game_bounded, open};
use super::{Usage, advice, layout, number, parquet_file};
use anyhow::Result;
use clap::ValueEnum;
use grundy::table::digest::DigestChain;
use grundy::table::npy_header;
use grundy::theory::definition::{Prefix, Sequence};
use grundy::theory::rule::Rule;
use indicatif::HumanCount;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::ops::Range;
use std::path::PathBuf;

/// Number of values of a game that are written without `--range`.
const USUAL: u64 = 10_001;

/// Arguments of `grundy export`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy export runs/grundy --format bfile --range 0..200001 -o b002188.txt\n         \
                        grundy export .07 --format bfile --offset -1 --range 1..10002 -o b002187.txt\n         \
                        grundy export runs/grundy --format npy --verify -o values.npy\n         \
                        grundy export runs/grundy --format parquet -o values.parquet\n         \
                        grundy export .07 --format list --range 0..80\n\n\
                        For a run, checks the journal and reads the table as it is; --verify checks the table first. \
                        The file appears under its name when it is complete. It keeps the mode of the file that it \
                        replaces. Files in a run directory are refused.")]
pub(crate) struct Args {
    /// Game, or run directory (./x is always a directory).
    #[arg(value_name = "GAME|DIR")]
    source: OsString,
    /// Format to write.
    #[arg(long, value_enum)]
    format: Format,
    /// Range of n to write [default: all committed values of a run, the first 10,001 of a game].
    #[arg(long, value_name = "A..B", value_parser = number::range, allow_negative_numbers = true)]
    range: Option<Range<u64>>,
    /// Write n + K instead of n in a b-file; K may be negative.
    #[arg(long, value_name = "K", default_value = "0", allow_negative_numbers = true,
          value_parser = number::offset)]
    offset: i64,
    /// Begin a b-file or a CSV file with lines of '#' that name the program, the command, the game and the digest of
    /// the values.
    #[arg(long)]
    comment: bool,
    /// File to write; '-' is stdout [default: stdout].
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Verify the run's table against the digests in the journal first; exit with status 3 if a byte was altered. Only
    /// with DIR.
    #[arg(long)]
    verify: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// OEIS b-file: "n a(n)", one space, LF.
    Bfile,
    /// Comma-separated, with a header line "n,value".
    Csv,
    /// One NumPy array of u16.
    Npy,
    /// JSON Lines: {"n":0,"value":0}
    Jsonl,
    /// The values alone in one line, as in the data section of the OEIS: "0, 0, 0, 1".
    List,
    /// Parquet file for DuckDB, Polars or pandas: columns n (u64) and value (u16), and metadata with the digest of the
    /// values.
    Parquet,
}

impl Format {
    /// Whether the format is binary.
    fn is_binary(self) -> bool {
        matches!(self, Format::Npy | Format::Parquet)
    }
}

/// The values to write.
struct Values<'a> {
    rule: &'a Rule,
    all: &'a dyn Sequence,
    /// An upper bound of the values to write.
    largest: u16,
    /// The positions to write.
    range: Range<u64>,
}

pub(crate) fn export(args: &Args, quiet: bool) -> Result<()> {
    let is_bfile = args.format == Format::Bfile;
    if args.offset != 0 && !is_bfile {
        return Err(Usage("--offset is for --format bfile".into()).into());
    }
    if args.comment && !is_bfile && args.format != Format::Csv {
        return Err(Usage("--comment is for --format bfile or csv".into()).into());
    }
    if args.format.is_binary() && args.output.is_none() && std::io::stdout().is_terminal() {
        return Err(Usage("this format is binary, and stdout is a terminal; name a file with -o FILE".into()).into());
    }
    let source = Source::find(&args.source)?;
    let output = Output::of_option(args.output.as_deref())?;
    match source {
        Source::Directory(dir) => {
            output.refuse_files_of(&dir)?;
            let view = open(&dir, args.verify, quiet)?;
            let range = args.range.clone().unwrap_or(0..view.len());
            view.require(range.start, range.end).map_err(|error| advice::of_run(error, &dir))?;
            let largest = view.contents.last.max_value;
            write_to(&output, &Values { rule: &view.rule, all: &view, largest, range }, args, quiet)
        }
        Source::Game(_) if args.verify => Err(Usage(COMPUTED.into()).into()),
        Source::Game(rule) => {
            let range = args.range.clone().unwrap_or(0..USUAL);
            rule.check_heap(range.end.saturating_sub(1))?;
            let (values, largest) = of_game_bounded(&rule, range.end, quiet)?;
            let all = Prefix { of: &*values, count: range.end };
            write_to(&output, &Values { rule: &rule, all: &all, largest, range }, args, quiet)
        }
    }
}

fn write_to(output: &Output, values: &Values<'_>, args: &Args, quiet: bool) -> Result<()> {
    let Range { start, end } = values.range;
    let size = Size::of(values, args);
    output.require_room(size.least)?;
    let count = layout::counted(end - start, "values");
    note(&format!("{}: {count} to {}, {}", values.rule, output.name(), size.in_words()));
    // No progress bar between values on the same terminal.
    let meter = Meter::new(quiet || output.is_stdout() && std::io::stdout().is_terminal());
    meter.begin("exporting", 0, Some(end - start));
    let written = output.write(|out| write(values, args, &meter, out));
    meter.end();
    if written.is_ok() && !output.is_stdout() {
        note(&format!("wrote {}", output.name()));
    }
    written
}

/// The lines of `--comment`.
fn comment(values: &Values<'_>) -> Result<String> {
    let Range { start, end } = values.range;
    let mut chain = DigestChain::new();
    in_pieces(values.all, start..end, |_, piece| {
        chain.update(piece);
        Ok(())
    })?;
    let command: Vec<String> =
        std::env::args_os().skip(1).map(|word| advice::quoted(&word.to_string_lossy())).collect();
    let command = grundy::error::printable(&command.join(" "));
    let (program, rule, digest) = (grundy::PROGRAM, values.rule, chain.digest());
    let last = end.saturating_sub(1);
    Ok(format!("# {program}\n# grundy {command}\n# {rule}: G({start}) to G({last}), digest {digest}\n"))
}

/// Bounds on the size of an exported range, in bytes; equal if the size is known exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    least: u64,
    most: u64,
}

impl Size {
    /// Bounds the size of the values in the format, without a comment. The largest value bounds the number of digits of
    /// each.
    fn of(values: &Values<'_>, args: &Args) -> Size {
        let count = values.range.end - values.range.start;
        let most_digits = u64::from(values.largest.checked_ilog10().unwrap_or(0)) + 1;
        let (header, line) = match args.format {
            Format::Bfile => (0, "n v\n".len() - 2),
            Format::Csv => ("n,value\n".len(), "n,v\n".len() - 2),
            Format::Jsonl => (0, "{\"n\":n,\"value\":v}\n".len() - 2),
            Format::Npy => {
                let size = npy_header("'<u2'", count, 128).len() as u64 + 2 * count;
                return Size { least: size, most: size };
            }
            Format::List => {
                let of_values = |digits: u64| count.saturating_mul(digits + ", ".len() as u64).saturating_sub(1);
                return Size { least: of_values(1), most: of_values(most_digits) };
            }
            Format::Parquet => {
                let (least, most) = parquet_file::size(count, values.largest, values.rule.name());
                return Size { least, most };
            }
        };
        let shift = |n: u64| n.checked_add_signed(args.offset);
        let (digits, signs) = match (shift(values.range.start), shift(values.range.end)) {
            (Some(start), Some(end)) => (digits(&(start..end)), 0),
            // Some numbers are negative: at most 20 characters more than a digit each.
            _ => (count, count.saturating_mul(20)),
        };
        let rest = (header as u64).saturating_add(digits).saturating_add(count.saturating_mul(line as u64));
        let most = rest.saturating_add(count.saturating_mul(most_digits)).saturating_add(signs);
        Size { least: rest.saturating_add(count), most }
    }

    fn in_words(self) -> String {
        let about = if self.least == self.most { "" } else { "at most " };
        match self.most {
            most @ 0..1000 => format!("{about}{most} bytes"),
            most => format!("{about}{} bytes ({})", HumanCount(most), layout::size(most)),
        }
    }
}

/// Total number of decimal digits of all numbers in the range.
fn digits(range: &Range<u64>) -> u64 {
    let least = |digits: u32| if digits == 1 { 0 } else { 10u64.checked_pow(digits - 1).unwrap_or(u64::MAX) };
    let with = |digits| range.end.min(least(digits + 1)).saturating_sub(range.start.max(least(digits)));
    (1..=20).fold(0u64, |sum, digits| sum.saturating_add(with(digits).saturating_mul(u64::from(digits))))
}

/// Writes consecutive values, those from some n on, in a format.
type Rows<'a> = &'a dyn Fn(&mut dyn Write, u64, &[u16]) -> std::io::Result<()>;

fn write(values: &Values<'_>, args: &Args, meter: &Meter, out: &mut dyn Write) -> Result<()> {
    let Range { start, end } = values.range;
    if args.comment {
        out.write_all(comment(values)?.as_bytes())?;
    }
    let offset = i128::from(args.offset);
    let rows: Rows<'_> = match args.format {
        Format::Bfile => {
            &|out, n, piece| (n..).zip(piece).try_for_each(|(n, v)| writeln!(out, "{} {v}", i128::from(n) + offset))
        }
        Format::Csv => {
            out.write_all(b"n,value\n")?;
            &|out, n, piece| (n..).zip(piece).try_for_each(|(n, v)| writeln!(out, "{n},{v}"))
        }
        Format::Npy => {
            out.write_all(&npy_header("'<u2'", end - start, 128))?;
            &|out, _, piece| out.write_all(&piece.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>())
        }
        Format::Jsonl => {
            &|out, n, piece| (n..).zip(piece).try_for_each(|(n, v)| writeln!(out, "{{\"n\":{n},\"value\":{v}}}"))
        }
        Format::List => &|out, n, piece| {
            (n..).zip(piece).try_for_each(|(n, v)| write!(out, "{v}{}", if n + 1 == end { "\n" } else { ", " }))
        },
        Format::Parquet => {
            let at = |n| meter.at(n - start);
            return parquet_file::write(values.all, &values.range, values.rule.name(), at, out);
        }
    };
    in_pieces(values.all, start..end, |from, piece| {
        meter.at(from - start);
        Ok(rows(out, from, piece)?)
    })
}

#[cfg(test)]
mod tests {
    use super::{Size, digits};

    #[test]
    fn digits_of_a_range_are_the_sum_over_its_numbers() {
        for range in [0..0, 0..1, 0..11, 9..10, 95..1005, 99_990..100_010, 0..12_345] {
            let written: usize = range.clone().map(|n: u64| n.to_string().len()).sum();
            assert_eq!(digits(&range), written as u64, "{range:?}");
        }
        assert_eq!(digits(&(u64::MAX - 2..u64::MAX)), 40);
    }

    #[test]
    fn sizes_in_words_state_whether_they_are_exact() {
        assert_eq!(Size { least: 7, most: 7 }.in_words(), "7 bytes");
        assert_eq!(Size { least: 1, most: 13_100_000_000 }.in_words(), "at most 13,100,000,000 bytes (13.1 GB)");
    }
}

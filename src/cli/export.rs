//! `grundy export`: write the values of a run in another format.

use super::number;
use super::output::Output;
use super::progress::Meter;
use super::values::open;
use anyhow::Result;
use clap::ValueEnum;
use grundy::run::RunReader;
use grundy::table::npy_header;
use grundy::theory::definition::{Sequence, for_each_piece};
use std::io::{IsTerminal, Write};
use std::ops::Range;
use std::path::PathBuf;

/// Arguments of `grundy export`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy export runs/grundy --format bfile --range 0..200001 -o b002188.txt\n         \
                        grundy export runs/grundy --format npy --verify -o values.npy\n\
                        Checks the journal and reads the table as it is; --verify checks the table first.\n\
                        The file appears under its name when it is complete. It keeps the mode of the file that it\n\
                        replaces. Files in a run directory are refused.")]
pub(crate) struct Args {
    /// Run directory.
    dir: PathBuf,
    /// Format to write.
    #[arg(long, value_enum)]
    format: Format,
    /// Range of n to write [default: all committed values].
    #[arg(long, value_name = "A..B", value_parser = number::range)]
    range: Option<Range<u64>>,
    /// File to write; '-' is stdout [default: stdout].
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Verify the table against the digests in the journal first; exit with status 3 if a byte was altered.
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
}

pub(crate) fn export(args: &Args, quiet: bool) -> Result<()> {
    let dir = super::source::run_directory(&args.dir)?;
    let output = args.output.as_deref().map_or_else(|| Ok(Output::stdout()), Output::to)?;
    output.refuse_files_of(dir)?;
    let view = open(dir, args.verify, quiet)?;
    let range = args.range.clone().unwrap_or(0..view.len());
    view.require(range.start, range.end)?;
    let size = Size::of(&view, args.format, &range);
    output.require_room(size.least)?;
    tracing::info!("{}: {} values to {}, {}", view.rule, range.end - range.start, output.name(), size.in_words());
    // No progress bar between values on the same terminal.
    let mut meter = Meter::new(quiet || output.is_stdout() && std::io::stdout().is_terminal());
    meter.begin("exporting", range.start, Some(range.end));
    let written = output.write(|out| write(&view, args.format, range, &mut meter, out));
    meter.end();
    written
}

/// Bounds on the size of an exported range, in bytes; equal if the size is known exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    least: u64,
    most: u64,
}

impl Size {
    /// Bounds the size of `range` in `format`. The largest value, which the journal records, bounds the number of
    /// digits of each value.
    fn of(view: &RunReader, format: Format, range: &Range<u64>) -> Size {
        let count = range.end - range.start;
        let (header, line) = match format {
            Format::Bfile => (0, "n v\n".len() - 2),
            Format::Csv => ("n,value\n".len(), "n,v\n".len() - 2),
            Format::Jsonl => (0, "{\"n\":n,\"value\":v}\n".len() - 2),
            Format::Npy => {
                let size = npy_header("'<u2'", count, 128).len() as u64 + 2 * count;
                return Size { least: size, most: size };
            }
        };
        let most_digits = u64::from(view.contents.last.max_value.checked_ilog10().unwrap_or(0)) + 1;
        let rest = (header as u64).saturating_add(digits(range)).saturating_add(count.saturating_mul(line as u64));
        Size { least: rest.saturating_add(count), most: rest.saturating_add(count.saturating_mul(most_digits)) }
    }

    fn in_words(self) -> String {
        let about = if self.least == self.most { "" } else { "at most " };
        let units = ["kB", "MB", "GB", "TB", "PB", "EB"];
        // For display only.
        let scaled = (1..).zip(units).map(|(power, unit)| (self.most as f64 / 1000f64.powi(power), unit));
        match scaled.take_while(|(amount, _)| *amount >= 1.0).last() {
            Some((amount, unit)) => format!("{about}{} bytes ({amount:.1} {unit})", self.most),
            None => format!("{about}{} bytes", self.most),
        }
    }
}

/// Total number of decimal digits of all numbers in the range.
fn digits(range: &Range<u64>) -> u64 {
    let least = |digits: u32| if digits == 1 { 0 } else { 10u64.checked_pow(digits - 1).unwrap_or(u64::MAX) };
    let with = |digits| range.end.min(least(digits + 1)).saturating_sub(range.start.max(least(digits)));
    (1..=20).fold(0u64, |sum, digits| sum.saturating_add(with(digits).saturating_mul(u64::from(digits))))
}

fn write<S: Sequence + ?Sized>(
    values: &S,
    format: Format,
    range: Range<u64>,
    meter: &mut Meter,
    out: &mut dyn Write,
) -> Result<()> {
    match format {
        Format::Csv => out.write_all(b"n,value\n")?,
        Format::Npy => out.write_all(&npy_header("'<u2'", range.end - range.start, 128))?,
        Format::Bfile | Format::Jsonl => {}
    }
    let mut result = Ok(());
    for_each_piece(values, range.start, range.end, |from, piece| {
        if result.is_ok() {
            meter.at(from, String::new);
            result = (from..).zip(piece).try_for_each(|(n, v)| match format {
                Format::Bfile => writeln!(out, "{n} {v}"),
                Format::Csv => writeln!(out, "{n},{v}"),
                Format::Npy => out.write_all(&v.to_le_bytes()),
                Format::Jsonl => writeln!(out, "{{\"n\":{n},\"value\":{v}}}"),
            });
        }
        Ok(())
    })?;
    Ok(result?)
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
        assert_eq!(Size { least: 1, most: 13_100_000_000 }.in_words(), "at most 13100000000 bytes (13.1 GB)");
    }
}

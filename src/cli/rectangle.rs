//! `grundy rectangle`: nim-values of Schrage's game, by the theorem or by direct recursion.

use super::values::computed;
use super::{Usage, number};
use anyhow::Result;
use grundy::games::rectangle::{Bars, by_theorem, name};
use grundy::theory::rule::Rule;
use std::io::Write;

/// Maximum number of values of single sides that are computed in memory.
const MAX_VALUES: u64 = 1 << 28;

/// Arguments of `grundy rectangle`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy rectangle 17 23\n         \
                        grundy rectangle 5 8 13 --min-difference 2 --direct\n         \
                        grundy rectangle --table 20x20\n\n\
                        By the theorem (G. Schrage, 1983), the value of a bar is 0 if all its sides have the value \
                        0; the nonzero value if exactly one side has one; and 1 if two or more have one. For sides \
                        of 2^28 and more, compute a table with 'grundy run', print the values of the sides with \
                        'grundy values', and apply the theorem.\n\n\
                        JSON keys: sides min_difference side_values value method ('theorem' or 'direct'). With \
                        --table, JSON Lines, one object per row: {\"row\":1,\"values\":[0,0,1]}, with the values of \
                        columns 1, 2, …")]
pub(crate) struct Args {
    /// Sides of the bar, in any number of dimensions; '5x8' is the same as '5 8'.
    #[arg(value_name = "SIDE", value_parser = sides, required_unless_present = "table", conflicts_with = "table")]
    sides: Vec<Sides>,
    /// Print the values of all bars up to M by N, one row for each first side.
    #[arg(long, value_name = "MxN", value_parser = table)]
    table: Option<(u64, u64)>,
    /// Minimum difference between the parts of a broken side; 0 allows equal halves.
    #[arg(long, value_name = "D", default_value = "1", value_parser = number::number, allow_negative_numbers = true)]
    min_difference: u64,
    /// Compute by recursion over all smaller bars instead of by the theorem; for sides up to about 1000.
    #[arg(long)]
    direct: bool,
    /// Print one JSON object; with --table, one per row.
    #[arg(long)]
    json: bool,
}

/// Sides that one argument names.
#[derive(Clone, Debug)]
struct Sides(Vec<u64>);

/// Parses a side, or several with `x` between them.
fn sides(text: &str) -> Result<Sides, String> {
    text.split('x').map(number::positive).collect::<Result<_, _>>().map(Sides)
}

/// Parses `MxN` with M and N at least 1.
fn table(text: &str) -> Result<(u64, u64), String> {
    let (rows, columns) = text.split_once('x').ok_or("write the table as MxN, for example 20x20")?;
    Ok((number::positive(rows)?, number::positive(columns)?))
}

/// The values of a bar and of all bars that fit into it.
enum Values {
    /// G of single sides; the theorem gives the value of a bar.
    Theorem(Vec<u16>),
    /// The value of every bar, by recursion.
    Direct(Bars),
}

impl Values {
    fn new(args: &Args, sides: &[u64], quiet: bool) -> Result<Values> {
        let rule = Rule::grundy(args.min_difference)?;
        if args.direct {
            return Ok(Values::Direct(Bars::compute(sides, args.min_difference)?));
        }
        let longest = sides.iter().copied().max().unwrap_or(0);
        if longest >= MAX_VALUES {
            let text = format!(
                "side {longest} is too long to compute its value in memory (sides must be less than 2^28); compute a \
                 table with 'grundy run {rule}', print the values of the sides with 'grundy values', and apply the \
                 theorem (--help)"
            );
            return Err(Usage(text).into());
        }
        Ok(Values::Theorem(computed(&rule, longest + 1, quiet)?))
    }

    /// G of one side.
    fn side(&self, axis: usize, side: u64) -> Result<u16> {
        let value = match self {
            Values::Theorem(values) => usize::try_from(side).ok().and_then(|side| values.get(side).copied()),
            Values::Direct(bars) => bars.side_value(axis, side),
        };
        value.ok_or_else(|| anyhow::anyhow!("the value of side {side} was not computed"))
    }

    /// The value of a bar.
    fn bar(&self, bar: &[u64]) -> Result<u16> {
        match self {
            Values::Theorem(_) => {
                let sides: Result<Vec<u16>> = bar.iter().enumerate().map(|(axis, &s)| self.side(axis, s)).collect();
                Ok(by_theorem(sides?))
            }
            Values::Direct(bars) => {
                bars.value(bar).ok_or_else(|| anyhow::anyhow!("the value of {} was not computed", name(bar)))
            }
        }
    }
}

pub(crate) fn rectangle(args: &Args, quiet: bool) -> Result<()> {
    match args.table {
        Some((rows, columns)) => {
            let values = Values::new(args, &[rows, columns], quiet)?;
            super::output::print(|out| print_table(out, args.json, (rows, columns), |m, n| values.bar(&[m, n])))
        }
        None => {
            let bar: Vec<u64> = args.sides.iter().flat_map(|sides| sides.0.iter().copied()).collect();
            let values = Values::new(args, &bar, quiet)?;
            let sides: Result<Vec<u16>> = bar.iter().enumerate().map(|(axis, &side)| values.side(axis, side)).collect();
            let (sides, value) = (sides?, values.bar(&bar)?);
            super::output::print(|out| print_bar(out, args, &bar, &sides, value))
        }
    }
}

fn print_bar(out: &mut dyn Write, args: &Args, bar: &[u64], side_values: &[u16], value: u16) -> Result<()> {
    let method = if args.direct { "direct" } else { "theorem" };
    if args.json {
        let object = serde_json::json!({
            "sides": bar, "min_difference": args.min_difference, "side_values": side_values, "value": value,
            "method": method,
        });
        return Ok(writeln!(out, "{object}")?);
    }
    let sides: Vec<String> = bar.iter().zip(side_values).map(|(s, v)| format!("G({s}) = {v}")).collect();
    let by = if args.direct { "by direct recursion" } else { "by the theorem" };
    Ok(writeln!(out, "{}: nim-value {value}, {by}; {}", name(bar), sides.join(", "))?)
}

/// Prints the values of all bars, rows and columns from 1; as text with row and column numbers.
fn print_table(
    out: &mut dyn Write,
    json: bool,
    (rows, columns): (u64, u64),
    value: impl Fn(u64, u64) -> Result<u16>,
) -> Result<()> {
    let width = columns.to_string().len().max(rows.to_string().len());
    if !json {
        write!(out, "{:width$} ", "")?;
        (1..=columns).try_for_each(|n| write!(out, " {n:width$}"))?;
        writeln!(out)?;
    }
    for m in 1..=rows {
        let row: Result<Vec<u16>> = (1..=columns).map(|n| value(m, n)).collect();
        let row = row?;
        if json {
            writeln!(out, "{}", serde_json::json!({ "row": m, "values": row }))?;
        } else {
            write!(out, "{m:width$} ")?;
            row.iter().try_for_each(|value| write!(out, " {value:width$}"))?;
            writeln!(out)?;
        }
    }
    Ok(())
}

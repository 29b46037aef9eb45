//! The table of `grundy period --values`: values in rows, with the exceptions marked.

use crate::cli::output;
use anyhow::Result;
use grundy::period::{Repeat, compare_before_preperiod};
use grundy::theory::definition::Sequence;

/// Maximum number of columns of text in a row.
const WIDTH: usize = 80;

/// Maximum number of values in a row of several periods.
const SEVERAL: u64 = 20;

/// The layout of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    /// Number of values in a row.
    row: u64,
    /// One past the last n.
    end: u64,
}

impl Layout {
    /// Chooses rows of whole periods if `width` columns hold them: of one period, or of as many as have at most
    /// [`SEVERAL`] values. The last row is then the first one without an exception. Other rows are of twenty or ten
    /// values, and the last one ends with the first period.
    fn new(repeat: &Repeat, head: usize, cell: usize, width: usize) -> Layout {
        let (p, n0) = (repeat.period, repeat.preperiod);
        let most = (width.saturating_sub(head) / cell) as u64;
        if p > most {
            return Layout { row: if most < 20 { 10 } else { 20 }, end: n0 + p };
        }
        let row = p * (most.min(SEVERAL) / p).max(1);
        Layout { row, end: (n0.div_ceil(row) + 1) * row }
    }
}

/// Prints the values up to the end of the first whole period, and as many of the next ones as complete the last row.
/// `values` must hold the first period; `largest` is the largest of all values.
pub(super) fn print(values: &dyn Sequence, repeat: &Repeat, largest: u16) -> Result<()> {
    let digits = |number: u64| number.to_string().len();
    let head = digits(repeat.preperiod + repeat.period).max(2);
    // A blank, the mark, and the digits.
    let cell = digits(largest.into()) + 2;
    let Layout { row, end } = Layout::new(repeat, head, cell, WIDTH);
    output::print(|out| {
        let numbers: String = (0..row).map(|n| format!("{n:>cell$}")).collect();
        write!(out, "\n{:>head$}{numbers}", "n")?;
        let mut show = |n: u64, value: u16, mark: &str| -> Result<()> {
            if n.is_multiple_of(row) {
                write!(out, "\n{n:>head$}")?;
            }
            Ok(write!(out, "{:>cell$}", format!("{mark}{value}"))?)
        };
        compare_before_preperiod(values, repeat, |n, value, fits| show(n, value, if fits { "" } else { "*" }))?;
        for n in repeat.preperiod..end.min(values.len()) {
            let mut value = [0];
            values.read(n, &mut value)?;
            show(n, value[0], "")?;
        }
        Ok(writeln!(out)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_whole_periods_where_these_fit_the_width() {
        let layout = |period, preperiod, cell| {
            let repeat = Repeat { period, preperiod, exact: true, saltus: 0, proof: None };
            let Layout { row, end } = Layout::new(&repeat, 2, cell, 80);
            (row, end)
        };
        // Kayles: six rows with exceptions, then the period.
        assert_eq!(layout(12, 71, 3), (12, 84));
        assert_eq!([layout(1, 4, 3), layout(3, 0, 3), layout(9, 18, 3)], [(20, 40), (18, 18), (18, 36)]);
        assert_eq!([layout(26, 5, 3), layout(27, 5, 3), layout(27, 5, 5)], [(26, 52), (20, 32), (10, 32)]);
        // Two periods of 9 do not fit, one does; of 1, fifteen fit.
        assert_eq!([layout(9, 9, 5), layout(1, 0, 5)], [(9, 18), (15, 15)]);
    }
}

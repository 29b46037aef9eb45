//! Shapes: sets of cells of the square grid, from which tokens or squares are taken.
//!
//! A text has rows of `#` (a cell) and `.` (no cell), with `/` or a new line between rows; rows may differ in length.
//! [`Shape::placed`] gives shapes that differ only by a translation, rotation or reflection the same form.

use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::str::FromStr;

/// A row and a column, from 0.
pub type Cell = (u16, u16);

/// A finite set of cells, sorted, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    cells: Vec<Cell>,
}

/// Maximum number of cells of a shape, far above those that a search can solve.
const MAX_CELLS: usize = 1 << 20;

impl Shape {
    /// Creates the shape of these cells.
    #[must_use]
    pub fn new(mut cells: Vec<Cell>) -> Shape {
        cells.sort_unstable();
        cells.dedup();
        Shape { cells }
    }

    /// Returns the cells, sorted by row and column.
    #[must_use]
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Creates a rectangle, which is empty when a side is 0.
    ///
    /// # Errors
    /// [`Error::Board`] when it has too many cells.
    pub fn rectangle(rows: u64, columns: u64) -> Result<Shape> {
        Shape::filled(rows, columns, |_, _| true)
    }

    /// Creates the diamond of the cells with |a| + |b| <= c around a centre, 2c² + 2c + 1 cells.
    ///
    /// # Errors
    /// [`Error::Board`] when it has too many cells.
    pub fn diamond(c: u64) -> Result<Shape> {
        let side = c.checked_mul(2).and_then(|twice| twice.checked_add(1)).ok_or_else(too_large)?;
        Shape::filled(side, side, |a, b| a.abs_diff(c) + b.abs_diff(c) <= c)
    }

    /// Creates a cross: a row of `m` and a column of `n` cells through a common cell in the middle of both, m + n - 1
    /// cells.
    ///
    /// # Errors
    /// [`Error::Position`] when `m` or `n` is 0, [`Error::Board`] when it has too many cells.
    pub fn cross(m: u64, n: u64) -> Result<Shape> {
        if m == 0 || n == 0 {
            return Err(Error::Position(format!(
                "a cross of {m} and {n} has no cell where its lines meet; both are at least 1"
            )));
        }
        Shape::filled(n, m, |row, column| row == n / 2 || column == m / 2)
    }

    fn filled(rows: u64, columns: u64, there: impl Fn(u64, u64) -> bool) -> Result<Shape> {
        let all = usize::try_from(rows.max(1).saturating_mul(columns.max(1))).unwrap_or(usize::MAX);
        if all > MAX_CELLS || rows.max(columns) > u64::from(u16::MAX) {
            return Err(too_large());
        }
        let (rows, columns) = (u16::try_from(rows), u16::try_from(columns));
        let (Ok(rows), Ok(columns)) = (rows, columns) else { return Err(too_large()) };
        let cells = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        Ok(Shape { cells: cells.filter(|&(row, column)| there(row.into(), column.into())).collect() })
    }

    /// Creates the shape of these rows, one text per row.
    ///
    /// # Errors
    /// [`Error::Shape`] with row and column of a character that is neither `#` nor `.`, [`Error::Board`] when it is too
    /// large.
    pub fn from_rows<'a>(rows: impl Iterator<Item = &'a str>) -> Result<Shape> {
        let mut cells = Vec::new();
        for (row, text) in rows.enumerate() {
            for (column, found) in text.chars().enumerate() {
                match found {
                    '#' => {
                        let place = (u16::try_from(row), u16::try_from(column));
                        let (Ok(row), Ok(column)) = place else { return Err(too_large()) };
                        cells.push((row, column));
                    }
                    '.' => {}
                    _ => return Err(Error::Shape { row: row + 1, column: column + 1, found }),
                }
            }
            if cells.len() > MAX_CELLS {
                return Err(too_large());
            }
        }
        Ok(Shape { cells })
    }

    /// Returns the shape of the cells for which `keep` holds.
    #[must_use]
    pub fn filter(&self, keep: impl Fn(Cell) -> bool) -> Shape {
        Shape { cells: self.cells.iter().copied().filter(|&cell| keep(cell)).collect() }
    }

    /// Splits the shape into parts; cells whose indices have the same mark form one part.
    pub(super) fn parts(&self, mark: impl Fn(usize) -> usize) -> Vec<Shape> {
        let mut parts: BTreeMap<usize, Shape> = BTreeMap::new();
        for (at, &cell) in self.cells.iter().enumerate() {
            parts.entry(mark(at)).or_default().cells.push(cell);
        }
        parts.into_values().collect()
    }

    /// Returns the shape with rows and columns exchanged.
    #[must_use]
    pub fn transposed(&self) -> Shape {
        Shape::new(self.cells.iter().map(|&(row, column)| (column, row)).collect())
    }

    /// Returns the least of the eight rotations and reflections of the shape, each moved into the corner.
    #[must_use]
    pub fn placed(&self) -> Shape {
        let low = |of: fn(&Cell) -> u16| self.cells.iter().map(of).min().unwrap_or(0);
        let high = |of: fn(&Cell) -> u16| self.cells.iter().map(of).max().unwrap_or(0);
        let (top, bottom) = (low(|c| c.0), high(|c| c.0));
        let (left, right) = (low(|c| c.1), high(|c| c.1));
        let mirrored = |rows: bool, columns: bool| {
            let row = move |row: u16| if rows { bottom - row } else { row - top };
            let column = move |column: u16| if columns { right - column } else { column - left };
            Shape::new(self.cells.iter().map(|&(r, c)| (row(r), column(c))).collect())
        };
        let ways = [(false, false), (false, true), (true, false), (true, true)].map(|(r, c)| mirrored(r, c));
        let turned = ways.each_ref().map(Shape::transposed);
        ways.into_iter().chain(turned).min().unwrap_or_default()
    }
}

fn too_large() -> Error {
    Error::Board(format!("a shape has at most {MAX_CELLS} cells in at most 65535 rows and columns"))
}

impl FromStr for Shape {
    type Err = Error;

    /// Reads `###/#.#`.
    fn from_str(text: &str) -> Result<Shape> {
        Shape::from_rows(text.split('/'))
    }
}

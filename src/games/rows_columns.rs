//! Rows and columns: tokens on a grid; a move takes all tokens of one row or of one column, at least one.
//! (P. Alladi et al., *PRIMES STEP Plays Games*.)
//!
//! A token joins its row and its column, and nothing else matters: the game is played on the bipartite graph of rows
//! and columns, a move takes a vertex, and the parts of that graph are independent. So rows and columns may be
//! exchanged and put in any order, and empty ones left out. The lines of each part are put into an order that depends
//! little on their original one; equivalent parts often become equal, but not always.

use super::finite::Game;
use super::shape::Shape;
use petgraph::unionfind::UnionFind;
use std::collections::BTreeMap;

/// The game; its positions are the shapes of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RowsColumns;

impl Game for RowsColumns {
    type Position = Shape;

    fn options(&self, shape: Shape) -> impl Iterator<Item = Shape> {
        let rows = unlike(&shape).into_iter().map(|row| (Some(row), None));
        let columns = unlike(&shape.transposed()).into_iter().map(|column| (None, Some(column)));
        let lines = rows.chain(columns);
        lines.map(move |(row, column)| shape.filter(|cell| Some(cell.0) != row && Some(cell.1) != column))
    }

    fn components(&self, shape: Shape) -> Vec<Shape> {
        let cells = shape.cells();
        let mut joined = UnionFind::new(cells.len());
        let (mut rows, mut columns) = (BTreeMap::new(), BTreeMap::new());
        for (at, &(row, column)) in cells.iter().enumerate() {
            joined.union(*rows.entry(row).or_insert(at), at);
            joined.union(*columns.entry(column).or_insert(at), at);
        }
        let parts = shape.parts(|at| joined.find(at));
        parts.iter().map(|part| ordered(part).min(ordered(&part.transposed()))).collect()
    }

    fn parts(&self, shape: &Shape) -> usize {
        shape.cells().len()
    }
}

/// Returns one row of each set of rows that have the same columns, because taking any of these leaves equivalent
/// positions.
fn unlike(shape: &Shape) -> Vec<u16> {
    let mut columns: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
    for &(row, column) in shape.cells() {
        columns.entry(row).or_default().push(column);
    }
    let rows: BTreeMap<Vec<u16>, u16> = columns.into_iter().map(|(row, columns)| (columns, row)).collect();
    rows.into_values().collect()
}

/// Numbers the rows by their columns, then the columns by their rows, then the rows again.
fn ordered(part: &Shape) -> Shape {
    numbered(&numbered(&numbered(part).transposed()).transposed())
}

/// Numbers the rows from 0, by their number of tokens, then by their columns. The columns keep their numbers.
fn numbered(part: &Shape) -> Shape {
    let mut rows: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
    for &(row, column) in part.cells() {
        rows.entry(row).or_default().push(column);
    }
    let mut rows: Vec<Vec<u16>> = rows.into_values().collect();
    rows.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    let numbers = 0..=u16::MAX; // a shape has at most 2^16 - 1 cells
    Shape::new(rows.iter().zip(numbers).flat_map(|(columns, row)| columns.iter().map(move |&c| (row, c))).collect())
}

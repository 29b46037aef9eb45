//! Rows and columns: tokens on a grid; a move takes all tokens of one row or of one column, at least one.
//! (P. Alladi et al., *PRIMES STEP Plays Games*.)
//!
//! A token says that its row and its column meet, and nothing else matters: the game is played on the bipartite graph of
//! rows and columns, a move takes a vertex, and the parts of that graph are independent. So rows and columns may be
//! exchanged and put in any order, and empty ones left out. Each part is put into an order that depends little on where
//! its lines stood; parts that play alike need not become equal, but often do.

use super::finite::Game;
use super::shape::Shape;
use petgraph::unionfind::UnionFind;
use std::collections::{BTreeMap, BTreeSet};

/// The game; its positions are the shapes of tokens.
#[derive(Clone, Copy, Debug)]
pub struct RowsColumns;

impl Game for RowsColumns {
    type Position = Shape;

    fn options(&self, shape: &Shape) -> impl Iterator<Item = Shape> {
        let rows: BTreeSet<u16> = shape.cells().iter().map(|cell| cell.0).collect();
        let columns: BTreeSet<u16> = shape.cells().iter().map(|cell| cell.1).collect();
        let without_row = rows.into_iter().map(|row| shape.filter(|cell| cell.0 != row));
        let without_column = columns.into_iter().map(|column| shape.filter(|cell| cell.1 != column));
        without_row.chain(without_column)
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
}

/// Rows numbered by the columns they meet, then columns by the rows, in this order.
fn ordered(part: &Shape) -> Shape {
    numbered(&numbered(&numbered(part).transposed()).transposed())
}

/// Rows numbered from 0: fewer tokens first, then by their columns. Columns stay.
fn numbered(part: &Shape) -> Shape {
    let mut rows: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
    for &(row, column) in part.cells() {
        rows.entry(row).or_default().push(column);
    }
    let mut rows: Vec<Vec<u16>> = rows.into_values().collect();
    rows.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    Shape::new((0..).zip(&rows).flat_map(|(row, columns)| columns.iter().map(move |&c| (row, c))).collect())
}

//! Remove a square: a move takes a k×k square of cells from a shape that has all of them, for any k >= 1.
//! (P. Alladi et al., *PRIMES STEP Plays Games*; OEIS A286332 for 2×n.)
//!
//! A move can take two cells together only when a square of the shape has both, and every square of side 2 or more is
//! a union of overlapping 2×2 squares. So the parts connected by 2×2 squares are independent, and a cell in no 2×2
//! square is a game of value 1. That makes long narrow shapes cheap: a 2×n shape leaves only shorter ones and cells.

use super::finite::Game;
use super::shape::{Cell, Shape};
use petgraph::unionfind::UnionFind;
use std::collections::HashMap;

/// The game; its positions are the shapes of what is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RemoveSquare;

impl Game for RemoveSquare {
    type Position = Shape;

    fn options(&self, shape: Shape) -> impl Iterator<Item = Shape> {
        let squares = sides(&shape).into_iter().flat_map(|(corner, side)| (1..=side).map(move |side| (corner, side)));
        squares.map(move |((top, left), side)| {
            // A difference cannot overflow, unlike a sum of coordinates.
            let inside = |from: u16, at: u16| at.checked_sub(from).is_some_and(|distance| distance < side);
            shape.filter(|(row, column)| !(inside(top, row) && inside(left, column)))
        })
    }

    fn components(&self, shape: Shape) -> Vec<Shape> {
        let mut joined = UnionFind::new(shape.cells().len());
        let place = |cell: Cell| shape.cells().binary_search(&cell).expect("a cell of a square that is there");
        for ((row, column), side) in sides(&shape) {
            if side > 1 {
                let corner = place((row, column));
                for other in [(row, column + 1), (row + 1, column), (row + 1, column + 1)] {
                    joined.union(corner, place(other));
                }
            }
        }
        shape.parts(|at| joined.find(at)).iter().map(Shape::placed).collect()
    }

    fn parts(&self, shape: &Shape) -> usize {
        shape.cells().len()
    }
}

/// Returns each cell with the side of the largest square that has this cell as its upper left corner.
fn sides(shape: &Shape) -> Vec<(Cell, u16)> {
    let mut sides: HashMap<Cell, u16> = HashMap::with_capacity(shape.cells().len());
    let mut all = Vec::with_capacity(shape.cells().len());
    for &(row, column) in shape.cells().iter().rev() {
        let side = |down: u16, right: u16| {
            let cell = row.checked_add(down).zip(column.checked_add(right));
            cell.and_then(|cell| sides.get(&cell)).copied().unwrap_or(0)
        };
        let side = side(0, 1).min(side(1, 0)).min(side(1, 1)) + 1;
        sides.insert((row, column), side);
        all.push(((row, column), side));
    }
    all
}

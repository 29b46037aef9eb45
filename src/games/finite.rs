//! Finite games: what a game has to tell, and the one solver of them all.
//!
//! The nim-value of a position is the XOR of the nim-values of its independent components, and that of a component is
//! the mex over its options (P. M. Grundy, *Mathematics and Games*, Eureka 2, 1939; M. Dufour, *The Grundy theorem for
//! combinatorial games*, 2007). A position is lost for who has to move, a P-position, exactly when its value is 0.
//!
//! The solver keeps the value of every component it has met, and a stack of those whose value is still to be found. It
//! is a stack of its own and not that of the machine, so that a game a million moves long is as good as any. What is on
//! it is expanded twice: to see which components are unknown, and again when they are known; to keep the options in
//! between would cost more memory than it saves time.
//!
//! Invariant: values and stack together hold at most as many positions as was said, so a search too large ends with an
//! error and not with the memory. A game that goes round in circles ends the same way.

use crate::error::{Error, Result};
use crate::nimber::{NimSet, nim_sum};
use std::collections::HashMap;
use std::hash::Hash;

/// An impartial game without infinite plays; who cannot move loses.
pub trait Game {
    /// A position, in a form in which positions that play alike are equal as often as is cheap.
    type Position: Clone + Eq + Hash;

    /// The positions that one move leads to, in any order; the same may come twice.
    fn options(&self, position: &Self::Position) -> impl Iterator<Item = Self::Position>;

    /// Positions whose sum this one is: a move is a move in exactly one of them. None at all when there is no move.
    fn components(&self, position: Self::Position) -> Vec<Self::Position> {
        vec![position]
    }
}

/// The most positions that a search should hold when the first one has this many parts (cells, edges) of a few bytes,
/// and no other has more: 2^21, less when 2^28 parts (1 GiB) would be exceeded, or 2^32 when each
/// position has as many options as parts, so that a search too large ends soon.
#[must_use]
pub fn bound(parts: usize) -> usize {
    let parts = parts.max(1);
    (1 << 21).min((1 << 28) / parts).min((1 << 32) / parts.saturating_mul(parts))
}

/// Finds nim-values, and remembers them.
pub struct Solver<'a, G: Game> {
    game: &'a G,
    bound: usize,
    values: HashMap<G::Position, u16>,
}

impl<'a, G: Game> Solver<'a, G> {
    /// A solver that holds at most `bound` positions.
    #[must_use]
    pub fn new(game: &'a G, bound: usize) -> Solver<'a, G> {
        Solver { game, bound, values: HashMap::new() }
    }

    /// How many components it knows the value of.
    #[must_use]
    pub fn known(&self) -> usize {
        self.values.len()
    }

    /// The nim-value of a position.
    ///
    /// # Errors
    /// [`Error::Positions`] when more positions than the bound would be held, [`Error::PositionValue`] when a value is
    /// above 65535.
    pub fn value(&mut self, position: G::Position) -> Result<u16> {
        let components = self.game.components(position);
        let mut open = components.clone();
        while let Some(top) = open.last() {
            if self.values.contains_key(top) {
                open.pop();
                continue;
            }
            let mut seen = NimSet::new();
            let mut unknown = Vec::new();
            for option in self.game.options(top) {
                let before = unknown.len();
                let mut sum = 0;
                for component in self.game.components(option) {
                    match self.values.get(&component) {
                        Some(value) => sum ^= value,
                        None => unknown.push(component),
                    }
                }
                if unknown.len() == before {
                    seen.insert(sum);
                }
                if self.values.len() + open.len() + unknown.len() > self.bound {
                    return Err(Error::Positions { bound: self.bound });
                }
            }
            if unknown.is_empty() {
                let value = u16::try_from(seen.mex()).map_err(|_| Error::PositionValue)?;
                self.values.extend(open.pop().map(|position| (position, value)));
            } else {
                open.append(&mut unknown);
            }
        }
        Ok(nim_sum(components.iter().map(|component| self.values[component])))
    }
}

//! Finite games: the trait that each game implements, and the solver that they share.
//!
//! The nim-value of a position is the XOR of the nim-values of its independent components, and that of a component is
//! the mex over its options (P. M. Grundy, *Mathematics and Games*, Eureka 2, 1939; M. Dufour, *The Grundy theorem for
//! combinatorial games*, 2007). The player to move loses, in a P-position, exactly when the value is 0.
//!
//! The solver keeps the value of every component that it has solved, and a stack of those it is solving, each
//! with an iterator over its remaining options. The stack is a data structure of its own, not the call stack, so
//! games a million moves long can be solved; it holds only the components of one line of play.
//!
//! Invariant: values and stack together hold at most the configured number of positions. So a search that is too
//! large ends with an error before memory is exhausted, and so does a game with a cycle.

use crate::error::{Error, Result};
use crate::theory::nimber::{NimSet, nim_sum};
use std::collections::HashMap;
use std::hash::Hash;

/// An impartial game without infinite plays, in which a player who cannot move loses.
pub trait Game {
    /// A position. Equivalent positions should be equal values when that is cheap to arrange, because each is solved
    /// once.
    type Position: Clone + Eq + Hash;

    /// Returns the positions to which one move leads, in any order; a position may occur twice.
    fn options(&self, position: Self::Position) -> impl Iterator<Item = Self::Position>;

    /// Splits the position into components whose sum it is: a move is a move in exactly one of them. A position
    /// without a move may have none.
    fn components(&self, position: Self::Position) -> Vec<Self::Position> {
        vec![position]
    }

    /// Returns the number of parts (cells, edges), each of a few bytes, of a position; no option has more.
    fn parts(&self, _position: &Self::Position) -> usize {
        1
    }
}

/// Maximum number of positions that a limited search holds.
pub const POSITIONS: usize = 1 << 21;

/// Maximum number of parts of all positions that a limited search holds; they take about 1 GiB.
const PARTS: usize = 1 << 28;

/// Maximum number of parts that a limited search reads to generate options: for each option all parts of its position.
const WORK: u64 = 1 << 32;

/// Computes nim-values, and remembers them.
pub struct GameSolver<'a, G: Game> {
    game: &'a G,
    /// Maximum number of positions among the values and on the stack.
    bound: usize,
    /// Maximum number of parts of these positions.
    most_parts: usize,
    /// Maximum number of parts read per call to generate options.
    most_work: u64,
    values: HashMap<G::Position, u16>,
    /// Number of parts of the positions among the values.
    parts: usize,
}

/// A component on the stack, whose value is being computed.
struct Open<'a, P> {
    position: P,
    parts: usize,
    /// The remaining options.
    options: Box<dyn Iterator<Item = P> + 'a>,
    /// The remaining components of the current option.
    components: Vec<P>,
    /// The nim-sum of the other components of the current option; `None` before the first option.
    sum: Option<u16>,
    /// The values of the options before the current one.
    seen: NimSet,
}

/// Ratio of the memory of a position on the stack to that of one among the values. The stack holds the position
/// itself, the iterator over its options with the moves that lead to them, and a copy among the components of the
/// option that it belongs to.
const COPIES: usize = 5;

impl<'a, G: Game> GameSolver<'a, G> {
    /// Creates a solver that holds at most `bound` positions, of any size.
    #[must_use]
    pub fn new(game: &'a G, bound: usize) -> GameSolver<'a, G> {
        GameSolver { game, bound, most_parts: usize::MAX, most_work: u64::MAX, values: HashMap::new(), parts: 0 }
    }

    /// Creates a solver that holds at most 2^21 positions and about 1 GiB, and ends a search after a bounded amount
    /// of work.
    #[must_use]
    pub fn limited(game: &'a G) -> GameSolver<'a, G> {
        GameSolver { most_parts: PARTS, most_work: WORK, ..GameSolver::new(game, POSITIONS) }
    }

    /// Returns the number of components whose value is known.
    #[must_use]
    pub fn known(&self) -> usize {
        self.values.len()
    }

    /// Returns how much of its nearest limit a search has used, at least 0 and at most 1, when the stack holds
    /// `on_stack` positions with `parts_on_stack` parts and `work` parts were read.
    fn used(&self, on_stack: usize, parts_on_stack: usize, work: u64) -> f64 {
        let positions = (self.values.len() + on_stack) as f64 / self.bound as f64;
        let parts = (self.parts + COPIES * parts_on_stack) as f64 / self.most_parts as f64;
        positions.max(parts).max(work as f64 / self.most_work as f64).min(1.0)
    }

    /// Returns the nim-value of a position.
    ///
    /// # Errors
    /// [`Error::Positions`] when more positions than the bound would be held, [`Error::Search`] when they are too large
    /// or have too many options, [`Error::PositionValue`] when a value is above 65535.
    pub fn value(&mut self, position: G::Position) -> Result<u16> {
        self.watched(position, |_, _| {})
    }

    /// Like [`GameSolver::value`]; calls `watch` during the search with the number of components whose value is known,
    /// and with how much of its nearest limit the search has used, from 0 to 1.
    ///
    /// # Errors
    /// As [`GameSolver::value`].
    pub fn watched(&mut self, position: G::Position, mut watch: impl FnMut(usize, f64)) -> Result<u16> {
        let components = self.game.components(position);
        let mut work = 0;
        for component in &components {
            if !self.values.contains_key(component) {
                self.search(component.clone(), &mut work, &mut watch)?;
            }
        }
        Ok(nim_sum(components.iter().map(|component| self.values[component])))
    }

    /// Computes the value of a component that has none yet.
    fn search(&mut self, component: G::Position, work: &mut u64, watch: &mut impl FnMut(usize, f64)) -> Result<()> {
        let first = self.open(component);
        // A position with as many options as parts would exceed the work by its own options.
        if (first.parts as u64).saturating_mul(first.parts as u64) > self.most_work {
            return Err(Error::Search { parts: self.most_parts, work: self.most_work });
        }
        let (mut on_stack, mut stack) = (first.parts, vec![first]);
        while let Some(top) = stack.last_mut() {
            match top.components.pop() {
                Some(component) => match self.values.get(&component) {
                    Some(value) => top.sum = top.sum.map(|sum| sum ^ value),
                    None => {
                        // The component stays in the list, and is looked up when its value is known.
                        top.components.push(component.clone());
                        let open = self.open(component);
                        on_stack += open.parts;
                        stack.push(open);
                        watch(self.values.len(), self.used(stack.len(), on_stack, *work));
                        if self.values.len() + stack.len() > self.bound {
                            return Err(Error::Positions { bound: self.bound });
                        }
                    }
                },
                None => {
                    top.sum.take().into_iter().for_each(|sum| top.seen.insert(sum));
                    if let Some(option) = top.options.next() {
                        (top.components, top.sum) = (self.game.components(option), Some(0));
                        *work += top.parts as u64;
                    } else if let Some(Open { position, parts, seen, .. }) = stack.pop() {
                        let value = u16::try_from(seen.mex()).map_err(|_| Error::PositionValue)?;
                        self.values.insert(position, value);
                        self.parts += parts;
                        on_stack -= parts;
                        watch(self.values.len(), self.used(stack.len(), on_stack, *work));
                    }
                }
            }
            if self.parts + COPIES * on_stack > self.most_parts || *work > self.most_work {
                return Err(Error::Search { parts: self.most_parts, work: self.most_work });
            }
        }
        Ok(())
    }

    fn open(&self, position: G::Position) -> Open<'a, G::Position> {
        let options = Box::new(self.game.options(position.clone()));
        let parts = self.game.parts(&position);
        Open { position, parts, options, components: Vec::new(), sum: None, seen: NimSet::new() }
    }
}

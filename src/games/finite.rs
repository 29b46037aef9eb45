//! Finite games: what a game has to tell, and the one solver of them all.
//!
//! The nim-value of a position is the XOR of the nim-values of its independent components, and that of a component is
//! the mex over its options (P. M. Grundy, *Mathematics and Games*, Eureka 2, 1939; M. Dufour, *The Grundy theorem for
//! combinatorial games*, 2007). A position is lost for who has to move, a P-position, exactly when its value is 0.
//!
//! The solver keeps the value of every component it has met, and a stack of those whose value is still to be found, each
//! with the options that are still to be looked at. It is a stack of its own and not that of the machine, so that a game
//! a million moves long is as good as any, and it holds no more than one line of play.
//!
//! Invariant: values and stack together hold at most what was said, so a search too large ends with an error and not with
//! the memory. A game that goes round in circles ends the same way.

use crate::error::{Error, Result};
use crate::theory::nimber::{NimSet, nim_sum};
use std::collections::HashMap;
use std::hash::Hash;

/// An impartial game without infinite plays; who cannot move loses.
pub trait Game {
    /// A position, in a form in which positions that play alike are equal as often as is cheap.
    type Position: Clone + Eq + Hash;

    /// The positions that one move leads to, in any order; the same may come twice.
    fn options(&self, position: Self::Position) -> impl Iterator<Item = Self::Position>;

    /// Positions whose sum this one is: a move is a move in exactly one of them. None at all when there is no move.
    fn components(&self, position: Self::Position) -> Vec<Self::Position> {
        vec![position]
    }

    /// How many parts (cells, edges) of a few bytes a position has; no option has more.
    fn parts(&self, _position: &Self::Position) -> usize {
        1
    }
}

/// What a search may hold and do when nothing else is said: positions, parts of all of them (1 GiB), and parts that are
/// read to make options, of each position all of them for each option (minutes).
pub const POSITIONS: usize = 1 << 21;
const PARTS: usize = 1 << 28;
const WORK: u64 = 1 << 32;

/// Finds nim-values, and remembers them.
pub struct GameSolver<'a, G: Game> {
    game: &'a G,
    bound: usize,
    most_parts: usize,
    most_work: u64,
    values: HashMap<G::Position, u16>,
    /// How many parts the positions among the values have.
    parts: usize,
}

/// A component whose value is still to be found.
struct Open<'a, P> {
    position: P,
    parts: usize,
    /// The options that are still to be looked at.
    options: Box<dyn Iterator<Item = P> + 'a>,
    /// Of the option at hand the components that are still to be looked at, and the sum of the others.
    components: Vec<P>,
    sum: Option<u16>,
    /// The values of the options before it.
    seen: NimSet,
}

/// What is on the stack takes so much as it would among the values: it is there itself, with the iterator over its options
/// and the moves that lead to them, and among the components of the option that it belongs to.
const COPIES: usize = 5;

impl<'a, G: Game> GameSolver<'a, G> {
    /// A solver that holds at most `bound` positions, however large they are.
    #[must_use]
    pub fn new(game: &'a G, bound: usize) -> GameSolver<'a, G> {
        GameSolver { game, bound, most_parts: usize::MAX, most_work: u64::MAX, values: HashMap::new(), parts: 0 }
    }

    /// A solver that holds at most 2^21 positions and about a gigabyte, and gives up a search that would take long.
    #[must_use]
    pub fn limited(game: &'a G) -> GameSolver<'a, G> {
        GameSolver { most_parts: PARTS, most_work: WORK, ..GameSolver::new(game, POSITIONS) }
    }

    /// How many components it knows the value of.
    #[must_use]
    pub fn known(&self) -> usize {
        self.values.len()
    }

    /// The nim-value of a position.
    ///
    /// # Errors
    /// [`Error::Positions`] when more positions than the bound would be held, [`Error::Search`] when they are too large or
    /// have too many options, [`Error::PositionValue`] when a value is above 65535.
    pub fn value(&mut self, position: G::Position) -> Result<u16> {
        self.watched(position, |_| {})
    }

    /// The same, and tells again and again how many components are known.
    ///
    /// # Errors
    /// As [`GameSolver::value`].
    pub fn watched(&mut self, position: G::Position, mut watch: impl FnMut(usize)) -> Result<u16> {
        let components = self.game.components(position);
        let mut work = 0;
        for component in &components {
            if !self.values.contains_key(component) {
                self.search(component.clone(), &mut work, &mut watch)?;
            }
        }
        Ok(nim_sum(components.iter().map(|component| self.values[component])))
    }

    /// Finds the value of a component that has none yet.
    fn search(&mut self, component: G::Position, work: &mut u64, watch: &mut impl FnMut(usize)) -> Result<()> {
        let first = self.open(component);
        // With as many options as parts, to look at them once would be too long already.
        if (first.parts as u64).saturating_mul(first.parts as u64) > self.most_work {
            return Err(Error::Search { parts: self.most_parts, work: self.most_work });
        }
        let (mut on_stack, mut stack) = (first.parts, vec![first]);
        while let Some(top) = stack.last_mut() {
            match top.components.pop() {
                Some(component) => match self.values.get(&component) {
                    Some(value) => top.sum = top.sum.map(|sum| sum ^ value),
                    None => {
                        // It stays, to be looked up when it is known.
                        top.components.push(component.clone());
                        let open = self.open(component);
                        on_stack += open.parts;
                        stack.push(open);
                        watch(self.values.len());
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
                        watch(self.values.len());
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

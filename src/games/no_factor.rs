//! No factor: the numbers 1 to n; a move takes any of those, at least one, of which no proper factor is left.
//! (P. Alladi et al., *PRIMES STEP Plays Games*, where strategy stealing shows that the second player wins for n > 1.)
//!
//! A move may take numbers that have nothing to do with each other, so parts are **not** independent in the sense of a
//! sum, and a position is one component. There are as many positions as sets of which no number divides another (OEIS
//! A051026), 879 937 for n = 30.

use super::finite::Game;
use crate::error::{Error, Result};

/// The game of the numbers up to some n; a position has bit i - 1 set when i is left.
#[derive(Clone, Debug)]
pub struct NoFactor {
    /// For each number the larger ones that it divides.
    multiples: Vec<u64>,
}

impl NoFactor {
    /// The game of 1 to `n`.
    ///
    /// # Errors
    /// [`Error::Board`] when n is above 64, far beyond any search.
    pub fn new(n: u64) -> Result<NoFactor> {
        if n > 64 {
            return Err(Error::Board(format!("n = {n} is above 64; there are too many positions to search")));
        }
        let multiples = (1..=n).map(|i| (2 * i..=n).filter(|j| j % i == 0).fold(0, |set, j| set | 1 << (j - 1)));
        Ok(NoFactor { multiples: multiples.collect() })
    }

    /// All numbers.
    #[must_use]
    pub fn start(&self) -> u64 {
        (0..self.multiples.len()).fold(0, |set, i| set | 1 << i)
    }

    /// The numbers of which no proper factor is left.
    fn free(&self, left: u64) -> u64 {
        let there = self.multiples.iter().enumerate().filter(|(i, _)| left >> i & 1 == 1);
        left & !there.fold(0, |set, (_, multiples)| set | multiples)
    }
}

impl Game for NoFactor {
    type Position = u64;

    fn options(&self, left: &u64) -> impl Iterator<Item = u64> {
        // All non-empty subsets of what is free, from the whole down.
        let (left, free) = (*left, self.free(*left));
        let first = (free != 0).then_some(free);
        std::iter::successors(first, move |taken| Some((taken - 1) & free).filter(|&next| next != 0))
            .map(move |taken| left & !taken)
    }
}

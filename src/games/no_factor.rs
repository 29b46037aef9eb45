//! No factor: a position is a set of the numbers 1 to n; a move takes one or more numbers of which no proper factor
//! is left. (P. Alladi et al., *PRIMES STEP Plays Games*, where strategy stealing shows that the second player wins
//! for n > 1.)
//!
//! One move may take unrelated numbers, so parts are **not** independent in the sense of a
//! sum, and a position is one component. There are as many positions as sets in which no number divides another (OEIS
//! A051026), for example 879 937 for n = 30.

use super::finite::Game;
use crate::error::{Error, Result};

/// The game on the numbers 1 to n; a position has bit i - 1 set when i is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoFactor {
    /// For each number the set of greater numbers that it divides.
    multiples: Vec<u64>,
}

impl NoFactor {
    /// Creates the game on 1 to `n`.
    ///
    /// # Errors
    /// [`Error::Board`] when n is above 64, where a search is infeasible.
    pub fn new(n: u64) -> Result<NoFactor> {
        if n > 64 {
            return Err(Error::Board(format!("n = {n} is above 64; there are too many positions to search")));
        }
        let multiples = (1..=n).map(|i| (2 * i..=n).filter(|j| j % i == 0).fold(0, |set, j| set | 1 << (j - 1)));
        Ok(NoFactor { multiples: multiples.collect() })
    }

    /// Returns the position with all numbers.
    #[must_use]
    pub fn start(&self) -> u64 {
        (0..self.multiples.len()).fold(0, |set, i| set | 1 << i)
    }

    /// Returns the number of positions that can occur, or `None` when it exceeds `most`. A set can occur when it has
    /// every multiple of its members; there are as many such sets as sets in which no number divides another.
    #[must_use]
    pub fn positions(&self, most: usize) -> Option<usize> {
        let related = |i: usize| {
            let factors = (0..i).filter(|&j| self.multiples[j] >> i & 1 == 1);
            factors.fold(self.multiples[i], |set, j| set | 1 << j)
        };
        let related: Vec<u64> = (0..self.multiples.len()).map(related).collect();
        let (mut count, mut open) = (0usize, vec![self.start()]);
        while let Some(left) = open.pop() {
            let there = (0..related.len()).filter(|&i| left >> i & 1 == 1);
            let number = there.max_by_key(|&i| (related[i] & left).count_ones());
            match number.filter(|&i| related[i] & left != 0) {
                // Count the sets with this number, and those without it.
                Some(i) => open.extend([left & !related[i] & !(1 << i), left & !(1 << i)]),
                // No two of the numbers left are related, so each subset counts.
                None => count = count.saturating_add(1usize.checked_shl(left.count_ones()).unwrap_or(usize::MAX)),
            }
            if count > most {
                return None;
            }
        }
        Some(count)
    }

    /// Returns the numbers of which no proper factor is left.
    fn free(&self, left: u64) -> u64 {
        let there = self.multiples.iter().enumerate().filter(|(i, _)| left >> i & 1 == 1);
        left & !there.fold(0, |set, (_, multiples)| set | multiples)
    }
}

impl Game for NoFactor {
    type Position = u64;

    fn options(&self, left: u64) -> impl Iterator<Item = u64> {
        // All non-empty subsets of the free numbers, in ascending order.
        let free = self.free(left);
        let next = move |taken: u64| Some(taken.wrapping_sub(free) & free).filter(|&next| next != 0);
        std::iter::successors(next(0), move |&taken| next(taken)).map(move |taken| left & !taken)
    }
}

//! Schrage's game: break a bar along a score into two unequal rectangles, in any number of dimensions.
//!
//! A position is a bar with sides of at least 1. A move replaces one side s of one bar by parts i and s - i that differ
//! by at least d, and leaves two bars. With one dimension and d = 1 it is Grundy's game (G. Schrage, *A two-dimensional
//! generalization of Grundy's game*, submitted December 1983, which has the theorem below; its Table 2 is in `data/`).
//!
//! **Theorem.** Let G be the nim-value of a single heap under the same rule. Say that a side s *counts* when
//! G(s) != 0. A bar on which no side counts has the value 0. If exactly one side s counts, the value is G(s). If two
//! or more count, the value is 1.
//!
//! *Proof*, by induction on the sum of the sides. Let no side count. Breaking a side s gives the options
//! G(i) ^ G(s-i), never 0. Let exactly one side s count. Breaking it gives the options of a heap of s, whose mex is
//! G(s); breaking another side leaves two bars of value G(s) or 1 each, so the option is 0 or G(s) ^ 1, never G(s).
//! Let two or more count. Breaking a side that counts leaves bars of value r, when its part has value 0, or 1, when
//! not; r is the value of the other sides and not 0, so the option is 0 or r ^ 1, never 1. Breaking a side that does
//! not count gives 1 ^ 1 = 0. And 0 is an option: a side that counts has parts with G(i) = G(s-i). So the mex is 1. ∎
//!
//! The proof does not depend on which pairs of parts are allowed, so the theorem holds for every d, including d = 0,
//! which allows equal halves. Section 4 of the article states the condition for parts I and K - I as |K - I| >= d.
//! That would allow equal halves for d = 1, which the article says is Grundy's game; so |K - 2I| >= d is meant, and
//! used here.
//!
//! [`Bars`] is the direct recursion, against which the theorem is tested. It computes a value for every bar in the
//! box, in all orders of the sides, so the symmetry of the game is a result and not an assumption.

use crate::error::{Error, Result};
use crate::theory::nimber::{NimSet, index};
use crate::theory::rule::Split;

/// Maximum of the number of bars times the sum of the sides in a direct recursion. A bar takes two bytes.
pub const LARGEST_SEARCH: u64 = 1 << 32;

/// Returns the nim-value of a bar by the theorem, from the values G(side) of its sides.
///
/// ```
/// use grundy::games::rectangle::by_theorem;
/// assert_eq!(by_theorem([0, 0]), 0);
/// assert_eq!(by_theorem([0, 4]), 4); // Schrage 1983, Table 2: G(1, 18)
/// assert_eq!(by_theorem([2, 2]), 1); // G(5, 5)
/// ```
#[must_use]
pub fn by_theorem(side_values: impl IntoIterator<Item = u16>) -> u16 {
    let mut counting = side_values.into_iter().filter(|&value| value != 0);
    match (counting.next(), counting.next()) {
        (None, _) => 0,
        (Some(value), None) => value,
        (Some(_), Some(_)) => 1,
    }
}

/// The nim-values of all bars that fit into a largest one, by direct recursion.
#[derive(Clone, Debug)]
pub struct Bars {
    sides: Vec<u64>,
    /// The values of all bars; the last side varies fastest, and a side of s has index s - 1.
    values: Vec<u16>,
}

impl Bars {
    /// Computes the values of all bars with sides from 1 to those given, when parts must differ by `min_difference`.
    ///
    /// # Errors
    /// [`Error::Position`] when a side is 0, or when the number of bars times the sum of the sides is above
    /// [`LARGEST_SEARCH`].
    pub fn compute(sides: &[u64], min_difference: u64) -> Result<Bars> {
        if sides.contains(&0) {
            return Err(Error::Position("a bar with a side of 0; sides are at least 1".into()));
        }
        let bars = sides.iter().try_fold(1u64, |bars, &side| bars.checked_mul(side));
        let sum = sides.iter().try_fold(0u64, |sum, &side| sum.checked_add(side));
        let work = bars.zip(sum).and_then(|(bars, sum)| bars.checked_mul(sum));
        let Some((bars, _)) = bars.zip(work).filter(|&(_, work)| work <= LARGEST_SEARCH) else {
            return Err(Error::Position(format!(
                "{} is too large for the direct recursion: the product of the sides times their sum must be at most \
                 {LARGEST_SEARCH}; the theorem has no such bound",
                name(sides)
            )));
        };
        let mut strides = vec![1; sides.len()];
        for axis in (1..sides.len()).rev() {
            strides[axis - 1] = strides[axis] * index(sides[axis]);
        }
        let mut values: Vec<u16> = Vec::with_capacity(index(bars));
        let mut bar = vec![1; sides.len()];
        let mut options = NimSet::new();
        for at in 0..index(bars) {
            options.clear();
            for (&side, &stride) in bar.iter().zip(&strides) {
                let last = Split { remove: 0, constant: 0, min_difference }.largest_small_part(side);
                let (whole, last) = (index(side), index(last));
                for part in 1..=last {
                    options.insert(values[at - part * stride] ^ values[at - (whole - part) * stride]);
                }
            }
            // A bar has fewer options than its sides above 1 sum to; this sum is at most their product, so at most
            // 2^16.
            values.push(u16::try_from(options.mex()).expect("fewer than 65536 options"));
            for (side, &most) in bar.iter_mut().zip(sides).rev() {
                if *side < most {
                    *side += 1;
                    break;
                }
                *side = 1;
            }
        }
        Ok(Bars { sides: sides.to_vec(), values })
    }

    /// Returns the value of a bar; `None` when it does not fit into the largest one or has another number of sides.
    #[must_use]
    pub fn value(&self, bar: &[u64]) -> Option<u16> {
        if bar.len() != self.sides.len() {
            return None;
        }
        let at = bar
            .iter()
            .zip(&self.sides)
            .try_fold(0, |at, (&side, &most)| (1..=most).contains(&side).then(|| at * index(most) + index(side) - 1))?;
        Some(self.values[at])
    }

    /// Returns the value of a bar whose other sides are 1, which is that of a heap of `side`; `None` when `side` or
    /// `axis` is too large.
    #[must_use]
    pub fn side_value(&self, axis: usize, side: u64) -> Option<u16> {
        let mut bar = vec![1; self.sides.len()];
        *bar.get_mut(axis)? = side;
        self.value(&bar)
    }
}

/// Returns the name of a bar, such as `3x4x5`.
#[must_use]
pub fn name(sides: &[u64]) -> String {
    sides.iter().map(u64::to_string).collect::<Vec<_>>().join("x")
}

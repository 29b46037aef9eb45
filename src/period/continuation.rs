//! The values of a periodic game for every n, from its first values and its proved period.
//!
//! A theorem of [`super::theorems`] proves G(n + p) = G(n) for all n >= n0. So G(n) = G(n0 + (n - n0) mod p) for them,
//! and the first n0 + p values determine all others.

use super::{MemorySearch, Repeat};
use crate::error::Result;
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;

/// The values of a game whose period is proved, for every n below [`Continuation::LENGTH`].
///
/// ```
/// use grundy::period::{Continuation, MemorySearch};
/// use grundy::solver::Method;
/// use grundy::theory::definition::Sequence;
///
/// let mut search = MemorySearch::new(&"kayles".parse()?, Method::default());
/// search.until_proved(5000, |_| true)?;
/// let kayles = Continuation::of(&search).expect("the period of Kayles is proved");
/// assert_eq!((kayles.period(), kayles.preperiod()), (12, 71)); // Guy and Smith, 1956
/// let mut value = [0];
/// kayles.read(1_000_000_000_000, &mut value)?;
/// assert_eq!(value, [1]); // 10^12 = 4 modulo 12, and G(76) = 1
/// # Ok::<(), grundy::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// The values up to the end of the first period.
    values: Vec<u16>,
    period: u64,
}

impl Continuation {
    /// Number of values: 2^63, so that positions behind the last one fit in 64 bits.
    pub const LENGTH: u64 = 1 << 63;

    /// The values of the game that `search` examined; `None` unless its period is proved.
    #[must_use]
    pub fn of(search: &MemorySearch) -> Option<Continuation> {
        let finding = search.finding().filter(|_| search.is_proved())?;
        let &Repeat { period, preperiod, saltus: 0, .. } = finding.repeat.as_ref()? else { return None };
        let values = search.values().get(..index(preperiod + period))?.to_vec();
        Some(Continuation { values, period })
    }

    /// The period.
    #[must_use]
    pub fn period(&self) -> u64 {
        self.period
    }

    /// The preperiod.
    #[must_use]
    pub fn preperiod(&self) -> u64 {
        self.values.len() as u64 - self.period
    }

    /// The largest value.
    #[must_use]
    pub fn largest(&self) -> u16 {
        self.values.iter().copied().max().unwrap_or(0)
    }

    /// The n' below the end of the first period with G(n') = G(n).
    fn reduced(&self, n: u64) -> u64 {
        let preperiod = self.preperiod();
        if n < preperiod { n } else { preperiod + (n - preperiod) % self.period }
    }
}

impl Sequence for Continuation {
    fn len(&self) -> u64 {
        Continuation::LENGTH
    }

    fn read(&self, from: u64, out: &mut [u16]) -> Result<()> {
        self.require(from, from.saturating_add(out.len() as u64))?;
        let mut n = from;
        let mut rest = out;
        while !rest.is_empty() {
            let values = &self.values[index(self.reduced(n))..];
            let (piece, later) = rest.split_at_mut(values.len().min(rest.len()));
            piece.copy_from_slice(&values[..piece.len()]);
            n += piece.len() as u64;
            rest = later;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::solver::{Method, values};
    use crate::theory::rule::Rule;

    fn continued(game: &str, limit: u64) -> Option<Continuation> {
        let mut search = MemorySearch::new(&game.parse().unwrap(), Method::default());
        search.until_proved(limit, |_| true).unwrap();
        Continuation::of(&search)
    }

    /// Published periods and preperiods: Kayles 12, 71; .137 34, 52; .156 349, 3479; take 1, 2 or 3: 4, 0.
    #[test]
    fn continued_values_are_the_computed_ones() {
        for (game, p, n0) in [("kayles", 12, 71), (".137", 34, 52), (".156", 349, 3479), (".333", 4, 0)] {
            let rule: Rule = game.parse().unwrap();
            let all = values(&rule, Method::default(), 50_000).unwrap();
            let continued = continued(game, 20_000).unwrap();
            assert_eq!((continued.period(), continued.preperiod()), (p, n0), "{game}");
            assert_eq!(Some(continued.largest()), all.iter().copied().max(), "{game}");
            for (from, to) in [(0, 50_000), (n0, n0 + p), (n0 + p - 1, n0 + 3 * p + 1), (49_999, 50_000), (7, 7)] {
                let mut read = vec![0; index(to - from)];
                continued.read(from, &mut read).unwrap();
                assert_eq!(read, all[index(from)..index(to)], "{game}, {from}..{to}");
            }
            let (end, mut last) = (Continuation::LENGTH, [0]);
            continued.read(end - 1, &mut last).unwrap();
            assert_eq!(last[0], all[index(n0 + (end - 1 - n0) % p)], "{game}");
            let beyond = continued.read(end - 1, &mut [0, 0]);
            assert!(matches!(beyond, Err(Error::Range { .. })), "{game}: {beyond:?}");
        }
    }

    #[test]
    fn nothing_is_continued_without_a_proof() {
        assert_eq!(continued("grundy", 1 << 14), None);
        // 155 values show the period of Kayles, but P1 needs more.
        assert_eq!(continued("kayles", 100), None);
    }
}

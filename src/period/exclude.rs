//! Finds numbers that are not periods of a game, from the values of small heaps alone.
//!
//! **Statement.** Let (s, c, d) be a split and l >= 1 a heap with G(l) = c. Then G(n) != G(n - s - l) for all n with
//! n - s - l >= l + d. So no divisor of s + l is a period, whatever the preperiod.
//!
//! *Proof.* (l, n - s - l) is an option of n: its parts differ by at least d. Its value is
//! c ^ G(l) ^ G(n-s-l) = G(n-s-l). No option of a heap has the value of that heap, so G(n) != G(n-s-l). A period p
//! that divides s + l would give G(n) = G(n-s-l) for all large n. ∎
//!
//! For Grundy's game these l are the zeros of G (OEIS A036685); for example, no period divides 1222.

use crate::error::Result;
use crate::theory::definition::{Sequence, for_each_piece};
use crate::theory::nimber::index;
use crate::theory::rule::Rule;

/// The periods that the first values of a sequence exclude.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Excluded {
    /// Numbers none of whose divisors is a period, ascending.
    pub non_multiples: Vec<u64>,
    /// The least number that is not excluded as a period.
    pub least_left: u64,
    /// Number of values examined, those of l < `examined`.
    pub examined: u64,
}

/// Returns the periods that the values of all l < `to` exclude.
///
/// # Errors
/// Errors of reading `values`.
pub fn excluded(rule: &Rule, values: &dyn Sequence, to: u64) -> Result<Excluded> {
    let splits: Vec<_> = rule.splits().collect();
    let mut non_multiples = Vec::new();
    for_each_piece(values, 0, to, |from, piece| {
        for split in &splits {
            let zeros = (from..).zip(piece).filter(|&(l, &v)| l >= 1 && v == split.constant);
            non_multiples.extend(zeros.map(|(l, _)| split.remove + l));
        }
        Ok(())
    })?;
    non_multiples.sort_unstable();
    non_multiples.dedup();
    let largest = non_multiples.last().copied().unwrap_or(0);
    let mut present = vec![false; index(largest) + 1];
    for &number in &non_multiples {
        present[index(number)] = true;
    }
    let is_left = |&p: &u64| !(p..=largest).step_by(index(p)).any(|number| present[index(number)]);
    let least_left = (1..=largest).find(is_left).unwrap_or(largest + 1);
    Ok(Excluded { non_multiples, least_left, examined: to })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theory::definition;

    #[test]
    fn no_published_period_is_excluded_and_every_exclusion_holds() {
        for (game, period) in [("kayles", 12), (".07", 34), (".137", 34), (".156", 349), (".055", 148), (".4", 34)] {
            let rule: Rule = game.parse().unwrap();
            let values = definition::values(&rule, 3000).unwrap();
            let excluded = excluded(&rule, &values, 3000).unwrap();
            assert!(excluded.non_multiples.iter().all(|m| !m.is_multiple_of(period)), "{game}");
            assert!(excluded.least_left <= period, "{game}: {excluded:?}");
            for &m in excluded.non_multiples.iter().filter(|&&m| m < 1000) {
                let from = index(2 * m + rule.max_difference());
                assert!((from..3000).all(|n| values[n] != values[n - index(m)]), "{game}: {m}");
            }
        }
    }

    #[test]
    fn zeros_of_grundys_game_exclude_their_divisors() {
        let rule = Rule::grundy(1).unwrap();
        let values = definition::values(&rule, 2000).unwrap();
        let excluded = excluded(&rule, &values, 2000).unwrap();
        // OEIS A036685: 0, 1, 2, 4, 7, 10, 20, 23, 26, …, 1222; 0 is not a part.
        assert_eq!(excluded.non_multiples[..8], [1, 2, 4, 7, 10, 20, 23, 26]);
        assert_eq!((excluded.non_multiples.len(), excluded.non_multiples.last()), (41, Some(&1222)));
        assert!(excluded.non_multiples.iter().all(|m| !m.is_multiple_of(excluded.least_left)));
    }
}

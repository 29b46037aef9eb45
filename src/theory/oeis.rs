//! The sequences of the On-Line Encyclopedia of Integer Sequences (OEIS) that have the values of a game.
//!
//! Two files, which are part of the program, list them: `data/oeis-octal.csv` those of octal games without a known
//! period, and of some with a large one, all of which begin with a(1); `data/oeis-further.csv` others.
//!
//! ```
//! use grundy::theory::catalogue::known;
//!
//! // a(k) of A002187 is the value of the heap k + 1 in Dawson's Kayles.
//! let sequence = known(&"0.07".parse()?).oeis.unwrap();
//! assert_eq!((sequence.number, sequence.shift, sequence.first), ("A002187", 1, 0));
//! # Ok::<(), grundy::Error>(())
//! ```

use std::fmt;

const OCTAL: &str = include_str!("../../data/oeis-octal.csv");

const FURTHER: &str = include_str!("../../data/oeis-further.csv");

/// A sequence of the OEIS that has the values of a game: a(k) = G(k + shift) for k >= first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OeisSequence {
    /// The number of the sequence, such as `A002188`.
    pub number: &'static str,
    /// The heap whose value is a(k), minus k.
    pub shift: i64,
    /// The index of the first term: 0 or 1.
    pub first: u64,
}

/// The formula, such as `a(n) = G(n + 2)`.
impl fmt::Display for OeisSequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shift {
            0 => write!(f, "a(n) = G(n)"),
            1.. => write!(f, "a(n) = G(n + {})", self.shift),
            _ => write!(f, "a(n) = G(n - {})", self.shift.unsigned_abs()),
        }
    }
}

/// The rows of a file, without comments and the header.
fn rows(file: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    file.lines().filter(|line| !line.starts_with('#')).skip(1).map(|line| line.split(';').collect())
}

/// All sequences, each with its game.
fn sequences() -> impl Iterator<Item = (&'static str, OeisSequence)> {
    let octal = rows(OCTAL).filter_map(|row| {
        let &[number, game, shift, ..] = row.as_slice() else { return None };
        Some((game, OeisSequence { number, shift: shift.parse().ok()?, first: 1 }))
    });
    let further = rows(FURTHER).filter_map(|row| {
        let &[number, game, shift, first, ..] = row.as_slice() else { return None };
        Some((game, OeisSequence { number, shift: shift.parse().ok()?, first: first.parse().ok()? }))
    });
    further.chain(octal)
}

/// The canonical names of the games of all sequences.
pub(super) fn games() -> impl Iterator<Item = &'static str> {
    sequences().map(|(game, _)| game)
}

/// The sequence listed for the game of this canonical name.
pub(super) fn of(name: &str) -> Option<OeisSequence> {
    sequences().find(|(game, _)| *game == name).map(|(_, sequence)| sequence)
}

/// The sequence with this number, in lower or upper case, with or without leading zeros, and its game.
pub(super) fn find(number: &str) -> Option<(&'static str, OeisSequence)> {
    let digits = number.strip_prefix(['A', 'a'])?.trim_start_matches('0');
    sequences().find(|(_, sequence)| sequence.number[1..].trim_start_matches('0') == digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theory::definition;
    use crate::theory::rule::Rule;

    /// The values of a game from a(`first`) on.
    fn terms(game: &str, shift: i64, first: i64, count: usize) -> Vec<u16> {
        let rule: Rule = game.parse().unwrap();
        assert_eq!(rule.name(), game, "a canonical name");
        let from = usize::try_from(first + shift).unwrap();
        definition::values(&rule, from + count).unwrap().split_off(from)
    }

    /// Each row states the first twelve terms.
    #[test]
    fn published_terms_are_the_values_of_the_games() {
        let mut checked = 0;
        for row in rows(OCTAL).chain(rows(FURTHER)) {
            let [number, game, shift, _, stated] = row[..] else { panic!("{row:?}") };
            let sequence = of(game).unwrap();
            assert_eq!((sequence.number, sequence.shift), (number, shift.parse().unwrap()));
            assert_eq!(find(number), Some((game, sequence)));
            let stated: Vec<u16> = stated.split(',').map(|term| term.parse().unwrap()).collect();
            assert_eq!(stated.len(), 12, "{number}");
            assert_eq!(terms(game, sequence.shift, sequence.first.cast_signed(), stated.len()), stated, "{number}");
            checked += 1;
        }
        assert!(checked > 80, "{checked}");
    }

    #[test]
    fn a_sequence_is_found_by_its_number() {
        for number in ["A002188", "a002188", "A2188", "a02188"] {
            assert_eq!(find(number).map(|(game, sequence)| (game, sequence.first)), Some(("grundy", 0)), "{number}");
        }
        for number in ["A000001", "A", "002188", "A0021880", "A-2188"] {
            assert_eq!(find(number), None, "{number}");
        }
        assert_eq!(of("0.3"), None);
        assert_eq!(find("A071426").unwrap().1.to_string(), "a(n) = G(n + 2)");
    }
}

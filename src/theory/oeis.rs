//! The sequences of the On-Line Encyclopedia of Integer Sequences (OEIS) that have the values of a game.
//!
//! `data/oeis-octal.csv`, which is part of the program, lists those of octal games without a known period, and of some
//! with a large one. The constant `OTHERS` lists more.
//!
//! ```
//! use grundy::theory::catalogue::known;
//!
//! // a(k) of A002187 is the value of the heap k + 1 in Dawson's Kayles.
//! let sequence = known(&"0.07".parse()?).oeis.unwrap();
//! assert_eq!((sequence.number, sequence.shift), ("A002187", 1));
//! # Ok::<(), grundy::Error>(())
//! ```

const OCTAL: &str = include_str!("../../data/oeis-octal.csv");

/// Sequence, game and shift, as in `data/oeis-octal.csv`.
const OTHERS: [(&str, &str, i64); 5] = [
    ("A002186", "0.77", 0),
    ("A002187", "0.137", 0),
    ("A002188", "grundy", 0),
    ("A071435", "0.177", 0),
    ("A071452", "0.11377", 0),
];

/// A sequence of the OEIS that has the values of a game: a(k) = G(k + shift).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OeisSequence {
    /// The number of the sequence, such as `A002188`.
    pub number: &'static str,
    /// The heap whose value is a(k), minus k.
    pub shift: i64,
}

/// All sequences, each with its game.
fn sequences() -> impl Iterator<Item = (&'static str, OeisSequence)> {
    let row = |line: &'static str| {
        let mut cells = line.split(';');
        Some((cells.next()?, cells.next()?, cells.next()?.parse().ok()?))
    };
    let all = OTHERS.into_iter().chain(OCTAL.lines().filter(|line| !line.starts_with('#')).filter_map(row));
    all.map(|(number, game, shift)| (game, OeisSequence { number, shift }))
}

/// The sequence listed for the game of this canonical name.
pub(super) fn of(name: &str) -> Option<OeisSequence> {
    sequences().find(|(game, _)| *game == name).map(|(_, sequence)| sequence)
}

/// The game of the sequence with this number, in lower or upper case.
pub(super) fn game_of(number: &str) -> Option<&'static str> {
    sequences().find(|(_, sequence)| sequence.number.eq_ignore_ascii_case(number)).map(|(game, _)| game)
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

    /// The file states a(1) to a(12). `catalogue` tests the sequences whose b-files are known.
    #[test]
    fn published_terms_are_the_values_of_the_games() {
        let mut checked = 0;
        for line in OCTAL.lines().filter(|line| !line.starts_with('#')).skip(1) {
            let [number, game, shift, _, stated] = line.split(';').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let stated: Vec<u16> = stated.split(',').map(|term| term.parse().unwrap()).collect();
            assert_eq!(terms(game, shift.parse().unwrap(), 1, stated.len()), stated, "{number}");
            assert_eq!((game_of(number), of(game).unwrap().number), (Some(game), number));
            checked += 1;
        }
        assert!(checked > 70, "{checked}");
        // Kayles: Winning Ways, chapter 4.
        assert_eq!(terms("0.77", of("0.77").unwrap().shift, 0, 12), [0, 1, 2, 3, 1, 4, 3, 2, 1, 4, 2, 6]);
        assert_eq!((game_of("a002188"), game_of("A000001"), of("0.3")), (Some("grundy"), None, None));
    }
}

//! The rule of a heap game: normal form, parsing, printing, names.
//!
//! All heap games of this program have one normal form. A rule is a finite list of moves `(s, c, k, d)`: remove `s`
//! tokens, leave exactly `k` non-empty heaps (`k` = 0, 1 or 2), XOR the constant `c`, and for `k` = 2 require the two
//! heaps to differ by at least `d`. The value of an option of a heap of `n` is
//!
//! - k = 0, n = s: `c`
//! - k = 1, n > s: `c ^ G(n-s)`
//! - k = 2, n > s+1: `c ^ G(a) ^ G(b)` for a + b = n - s, a, b >= 1, |a - b| >= d
//!
//! and `G(n)` is the mex of these. An octal code `0.d1 d2 d3…` gives, for each `s`, k = 0 by bit 0 of `d_s`, k = 1 by
//! bit 1 and k = 2 by bit 2 (Guy and Smith, *The G-values of various games*, 1956); a leading 4 instead of 0 allows a
//! heap to be split without removing a token.
//!
//! The normal form is a list of moves, not a code, so that games with constants (remove-a-square on 2×n) are rules too.

use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// What a move leaves of the heap it is made in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Leaves {
    /// Nothing (k = 0).
    Nothing,
    /// One non-empty heap (k = 1).
    One,
    /// Two non-empty heaps that differ by at least `min_difference` (k = 2).
    Two {
        /// The least difference of the two heaps; 0 allows equal halves.
        min_difference: u64,
    },
}

/// One move `(s, c, k, d)` of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Move {
    /// Tokens taken away (s).
    pub remove: u64,
    /// XORed to the value of what is left (c).
    pub constant: u16,
    /// What is left (k and d).
    pub leaves: Leaves,
}

/// A move with k = 2, as the engines see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Tokens taken away (s).
    pub remove: u64,
    /// XORed to the value of the two heaps (c).
    pub constant: u16,
    /// The least difference of the two heaps (d).
    pub min_difference: u64,
}

impl Split {
    /// The largest smaller part `a` of a heap of `n`: the parts are `(a, n-s-a)` for a in 1..=this; 0 when there is no
    /// such option.
    #[must_use]
    pub fn largest_small_part(&self, n: u64) -> u64 {
        n.saturating_sub(self.remove).saturating_sub(self.min_difference) / 2
    }
}

/// The rule of a heap game, in normal form, with its canonical name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    name: String,
    moves: Vec<Move>,
}

/// The largest number of tokens that a move may remove; keeps sums of positions far from the ends of `u64`.
const MAX_REMOVE: u64 = 1 << 32;

impl Rule {
    /// A rule from its moves; `name` is what [`Display`](fmt::Display) prints.
    ///
    /// # Errors
    /// [`Error::Rule`] when a move would leave the heap as it is, or nothing of an empty heap.
    ///
    /// ```
    /// use grundy::rule::{Leaves, Move, Rule};
    /// let split = Move { remove: 0, constant: 0, leaves: Leaves::Two { min_difference: 1 } };
    /// assert_eq!(Rule::from_moves("mine", vec![split])?.moves(), "grundy".parse::<Rule>()?.moves());
    /// # Ok::<(), grundy::Error>(())
    /// ```
    pub fn from_moves(name: impl Into<String>, mut moves: Vec<Move>) -> Result<Rule> {
        for m in &moves {
            let large = |d: u64| m.remove > MAX_REMOVE || d > MAX_REMOVE;
            match m.leaves {
                Leaves::Nothing | Leaves::One if m.remove == 0 => {
                    return Err(Error::Rule("a move that leaves less than two heaps must remove a token".into()));
                }
                Leaves::Two { min_difference } if large(min_difference) => {
                    return Err(Error::Rule(format!("removals and differences are at most {MAX_REMOVE}")));
                }
                _ if large(0) => return Err(Error::Rule(format!("removals are at most {MAX_REMOVE}"))),
                _ => {}
            }
        }
        moves.sort_unstable();
        moves.dedup();
        Ok(Rule { name: name.into(), moves })
    }

    /// Grundy's game with the two parts at least `d` apart (Schrage, section 4); d = 1 is Grundy's own.
    ///
    /// # Errors
    /// [`Error::Rule`] when `d` exceeds 2^32.
    pub fn grundy(d: u64) -> Result<Rule> {
        let name = if d == 1 { "grundy".to_owned() } else { format!("grundy:d={d}") };
        Rule::from_moves(name, vec![Move { remove: 0, constant: 0, leaves: Leaves::Two { min_difference: d } }])
    }

    /// Remove a 1×1 or a 2×2 square from a 2×n board (OEIS A286332); a lone cell of a column is a heap of value 1.
    #[must_use]
    pub fn remove_a_square() -> Rule {
        let both = [Leaves::Nothing, Leaves::One, Leaves::Two { min_difference: 0 }];
        let moves = [(2, 0), (1, 1)]
            .iter()
            .flat_map(|&(remove, constant)| both.iter().map(move |&leaves| Move { remove, constant, leaves }));
        Rule::from_moves("remove-a-square", moves.collect()).expect("every move removes a token")
    }

    /// The canonical name: `grundy`, `grundy:d=2`, `0.77`, `4.3`, `remove-a-square`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The moves, sorted, each once.
    #[must_use]
    pub fn moves(&self) -> &[Move] {
        &self.moves
    }

    /// The moves that leave two heaps.
    pub fn splits(&self) -> impl Iterator<Item = Split> + '_ {
        self.moves.iter().filter_map(|m| match m.leaves {
            Leaves::Two { min_difference } => Some(Split { remove: m.remove, constant: m.constant, min_difference }),
            _ => None,
        })
    }

    /// The values of the options of `n` that come from moves with k = 0 or 1, given the earlier values.
    pub fn single_options<'a>(&'a self, n: u64, value: impl Fn(u64) -> u16 + 'a) -> impl Iterator<Item = u16> + 'a {
        self.moves.iter().filter_map(move |m| match m.leaves {
            Leaves::Nothing if n == m.remove => Some(m.constant),
            Leaves::One if n > m.remove => Some(m.constant ^ value(n - m.remove)),
            _ => None,
        })
    }

    /// The greatest number of tokens that a move removes; 0 without moves.
    #[must_use]
    pub fn max_remove(&self) -> u64 {
        self.moves.iter().map(|m| m.remove).max().unwrap_or(0)
    }

    /// The greatest difference that a split requires; 0 without splits.
    #[must_use]
    pub fn max_difference(&self) -> u64 {
        self.splits().map(|s| s.min_difference).max().unwrap_or(0)
    }

    /// The name as a directory: `grundy:d=2` becomes `grundy-d2`.
    #[must_use]
    pub fn directory_name(&self) -> String {
        self.name.replace(":d=", "-d")
    }

    /// What the program knows of this rule, when it is a named one.
    #[must_use]
    pub fn known(&self) -> Option<&'static Known> {
        KNOWN.iter().find(|known| known.game == self.name)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A game that the program knows by name or knows a good mask of.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The canonical name.
    pub game: &'static str,
    /// Other names that users may type.
    pub aliases: &'static [&'static str],
    /// Mask and position term of its sparse space, where a good one is known (`crate::sparse`).
    pub space: Option<(u16, u8)>,
    /// What is known of it, with the source.
    pub about: &'static str,
}

/// The games that `grundy games` lists.
pub const KNOWN: &[Known] = &[
    Known {
        game: "grundy",
        aliases: &[],
        space: Some((0x1fe, 0)),
        about: "split a heap into two unequal heaps (P. M. Grundy, Eureka 2, 1939; OEIS A002188); period unknown",
    },
    Known {
        game: "0.6",
        aliases: &["officers"],
        space: Some((0x1ee, 0)),
        about: "Officers: remove one token, not a heap of one (R. K. Guy, in Eureka 16); period unknown",
    },
    Known {
        game: "0.77",
        aliases: &["kayles"],
        space: Some((0xf, 0)),
        about: "Kayles: knock down one or two adjacent pins (OEIS A002186); period 12, preperiod 71",
    },
    Known {
        game: "0.07",
        aliases: &["dawson-kayles"],
        space: None,
        about: "Dawson's Kayles: remove two adjacent tokens (OEIS A002187 shifted); period 34, preperiod 53",
    },
    Known {
        game: "0.137",
        aliases: &["dawson-chess"],
        space: None,
        about: "Dawson's chess (OEIS A002187); period 34, preperiod 52",
    },
    Known {
        game: "0.4",
        aliases: &[],
        space: None,
        about: "remove one token from inside a row (Guy); period 34, preperiod 54",
    },
    Known {
        game: "0.007",
        aliases: &["treblecross"],
        space: None,
        about: "Treblecross: one-dimensional noughts and crosses; period unknown",
    },
    Known {
        game: "remove-a-square",
        aliases: &[],
        space: Some((0x3, 1)),
        about: "remove a 1x1 or 2x2 square from a 2xn board (PRIMES STEP; OEIS A286332); period 12, preperiod 71",
    },
    Known {
        game: "0.106",
        aliases: &[],
        space: Some((0xd, 1)),
        about: "period 328226140474, preperiod 465384263797 (A. Flammenkamp)",
    },
    Known { game: "0.104", aliases: &[], space: Some((0x17, 1)), about: "periodic, preperiod about 2e8 (Flammenkamp)" },
    Known { game: "0.054", aliases: &[], space: Some((0x3d, 0)), about: "periodic, preperiod about 2e8 (Flammenkamp)" },
    Known { game: "0.454", aliases: &[], space: Some((0x3d, 0)), about: "periodic, preperiod about 2e8 (Flammenkamp)" },
];

impl FromStr for Rule {
    type Err = Error;

    /// Reads `grundy`, `grundy:d=2`, an octal code (`0.77`, `.77`, `4.3`) or an alias.
    fn from_str(text: &str) -> Result<Rule> {
        if let Some(rest) = text.strip_prefix("grundy") {
            return parse_grundy(text, rest);
        }
        if text == "remove-a-square" {
            return Ok(Rule::remove_a_square());
        }
        let alias = KNOWN.iter().find(|known| known.aliases.contains(&text));
        parse_octal(alias.map_or(text, |known| known.game))
    }
}

const NAMES: &str = "'grundy', 'grundy:d=2', an octal code such as '.77' or '4.3', or a name of 'grundy games'";

fn parse_grundy(text: &str, rest: &str) -> Result<Rule> {
    if rest.is_empty() {
        return Rule::grundy(1);
    }
    let Some(digits) = rest.strip_prefix(":d=") else {
        return Err(bad(text, "grundy".len() + 1, NAMES));
    };
    let start = text.chars().count() - digits.chars().count() + 1;
    if let Some(at) = digits.chars().position(|c| !c.is_ascii_digit()) {
        return Err(bad(text, start + at, "a decimal digit of the least difference"));
    }
    let d = digits.parse().map_err(|_| bad(text, start, "the least difference, at most 2^32"))?;
    Rule::grundy(d)
}

fn parse_octal(text: &str) -> Result<Rule> {
    let mut chars = text.chars().enumerate().map(|(at, c)| (at + 1, c)).peekable();
    let mut splits_whole = false;
    if let Some(&(position, first)) = chars.peek()
        && first != '.'
    {
        match first {
            '0' => {}
            '4' => splits_whole = true,
            '1'..='9' => return Err(bad(text, position, "0 or 4 before the point")),
            _ => return Err(bad(text, position, NAMES)),
        }
        chars.next();
    }
    match chars.next() {
        Some((_, '.')) => {}
        Some((position, _)) => return Err(bad(text, position, "the point of an octal code")),
        None => return Err(bad(text, text.chars().count() + 1, "the point of an octal code")),
    }
    let mut digits = String::new();
    let mut moves = Vec::new();
    if splits_whole {
        moves.push(Move { remove: 0, constant: 0, leaves: Leaves::Two { min_difference: 0 } });
    }
    for (remove, (position, c)) in (1u64..).zip(chars) {
        let digit = c.to_digit(8).ok_or_else(|| bad(text, position, "an octal digit, 0 to 7"))?;
        digits.push(c);
        let kinds = [Leaves::Nothing, Leaves::One, Leaves::Two { min_difference: 0 }];
        let allowed = kinds.into_iter().enumerate().filter(|(bit, _)| digit >> bit & 1 == 1);
        moves.extend(allowed.map(|(_, leaves)| Move { remove, constant: 0, leaves }));
    }
    if digits.is_empty() && !splits_whole {
        return Err(bad(text, text.chars().count() + 1, "an octal digit, 0 to 7"));
    }
    let digits = digits.trim_end_matches('0');
    let whole = if splits_whole { '4' } else { '0' };
    let name = if digits.is_empty() { format!("{whole}.0") } else { format!("{whole}.{digits}") };
    Rule::from_moves(name, moves)
}

fn bad(text: &str, position: usize, expected: &'static str) -> Error {
    let found = match text.chars().nth(position - 1) {
        Some(c) => format!("'{}'", c.escape_default()),
        None => "nothing".to_owned(),
    };
    Error::Code { text: text.to_owned(), position, found, expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Rule {
        text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    fn position_of_error(text: &str) -> usize {
        match text.parse::<Rule>() {
            Err(Error::Code { position, .. }) => position,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_bad_digit_is_refused_with_its_place() {
        assert_eq!(position_of_error(".8"), 2);
        assert_eq!(position_of_error("0.778"), 5);
        assert_eq!(position_of_error("5.3"), 1);
        assert_eq!(position_of_error("8.3"), 1);
        assert_eq!(position_of_error("00.3"), 2);
        assert_eq!(position_of_error(".7 7"), 3);
        assert_eq!(position_of_error(".7.7"), 3);
        assert_eq!(position_of_error("."), 2);
        assert_eq!(position_of_error("0"), 2);
        assert_eq!(position_of_error(""), 1);
        assert_eq!(position_of_error("kayle"), 1);
        assert_eq!(position_of_error("grundy:d=x"), 10);
        assert_eq!(position_of_error("grundy:d="), 10);
        assert_eq!(position_of_error("grundy:d=99999999999999999999"), 10);
        assert_eq!(position_of_error("grundyy"), 7);
        assert_eq!(position_of_error(".7\u{0667}"), 3); // an Arabic digit is no octal digit
        assert!("grundy:d=4294967297".parse::<Rule>().is_err());
    }

    #[test]
    fn printing_and_parsing_agree_and_aliases_are_the_same_rule() {
        for (text, name) in [
            ("grundy", "grundy"),
            ("grundy:d=1", "grundy"),
            ("grundy:d=2", "grundy:d=2"),
            (".77", "0.77"),
            ("0.770", "0.77"),
            ("kayles", "0.77"),
            ("dawson-kayles", "0.07"),
            ("dawson-chess", "0.137"),
            ("officers", "0.6"),
            ("treblecross", "0.007"),
            ("4.3", "4.3"),
            ("4.", "4.0"),
            (".0", "0.0"),
            ("remove-a-square", "remove-a-square"),
        ] {
            assert_eq!(rule(text).name(), name);
            assert_eq!(rule(name), rule(text));
        }
        assert_eq!(rule("grundy:d=2").directory_name(), "grundy-d2");
        assert!(KNOWN.iter().all(|known| rule(known.game).name() == known.game));
    }

    #[test]
    fn each_bit_of_a_digit_is_one_move() {
        let one = |k| Move { remove: 1, constant: 0, leaves: k };
        assert_eq!(rule(".1").moves(), [one(Leaves::Nothing)]);
        assert_eq!(rule(".2").moves(), [one(Leaves::One)]);
        assert_eq!(rule(".4").moves(), [one(Leaves::Two { min_difference: 0 })]);
        assert_eq!(rule(".7").moves().len(), 3);
        assert_eq!(rule("4.").moves(), [Move { remove: 0, constant: 0, leaves: Leaves::Two { min_difference: 0 } }]);
        let long = format!(".{}7", "0".repeat(5000));
        assert_eq!(rule(&long).max_remove(), 5001);
    }

    #[test]
    fn a_move_that_changes_nothing_is_refused() {
        for leaves in [Leaves::Nothing, Leaves::One] {
            assert!(Rule::from_moves("x", vec![Move { remove: 0, constant: 0, leaves }]).is_err());
        }
    }
}

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
//!
//! **Nim** has no bound on the tokens that a move removes, so a finite list cannot state its rule. [`Rule::nim`] lists
//! the removals of 1 to 65536 tokens. These are all moves of Nim in heaps of up to 65536, and G(n) = n there. The value
//! of the heap of 65536 is the first that this program does not store, so it never computes a value beyond the list.

use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// What a move leaves of its heap.
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
    /// Number of tokens removed (s).
    pub remove: u64,
    /// The constant XORed to the value of the remaining heaps (c).
    pub constant: u16,
    /// The remaining heaps (k and d).
    pub leaves: Leaves,
}

/// A move with k = 2, in the form that the solvers use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Number of tokens removed (s).
    pub remove: u64,
    /// The constant XORed to the values of the two heaps (c).
    pub constant: u16,
    /// The least difference of the two heaps (d).
    pub min_difference: u64,
}

impl Split {
    /// The largest possible smaller part L of a heap of `n`: the parts are `(a, n-s-a)` for a in 1..=L. 0 when there is
    /// no such option.
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
    /// The moves with k = 0 or 1.
    removals: Vec<Removals>,
    /// The moves with k = 2.
    splits: Vec<Split>,
}

/// The moves that remove `first` to `last` tokens, leave one heap or none, and XOR the same constant. Nim has 131072
/// moves with k = 0 or 1, which are two of these.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Removals {
    first: u64,
    last: u64,
    constant: u16,
    leaves_one: bool,
}

/// The moves with k = 2.
fn splits(moves: &[Move]) -> Vec<Split> {
    let split = |m: &Move| match m.leaves {
        Leaves::Two { min_difference } => Some(Split { remove: m.remove, constant: m.constant, min_difference }),
        Leaves::Nothing | Leaves::One => None,
    };
    moves.iter().filter_map(split).collect()
}

/// Groups the moves with k = 0 or 1.
fn removals(moves: &[Move]) -> Vec<Removals> {
    let singles = moves.iter().filter(|m| !matches!(m.leaves, Leaves::Two { .. }));
    let mut singles: Vec<(bool, u16, u64)> = singles.map(|m| (m.leaves == Leaves::One, m.constant, m.remove)).collect();
    singles.sort_unstable();
    let mut grouped: Vec<Removals> = Vec::new();
    for (leaves_one, constant, remove) in singles {
        match grouped.last_mut() {
            Some(r) if (r.leaves_one, r.constant, r.last + 1) == (leaves_one, constant, remove) => r.last = remove,
            _ => grouped.push(Removals { first: remove, last: remove, constant, leaves_one }),
        }
    }
    grouped
}

/// Maximum number of tokens that a move may remove, and maximum least difference. It keeps sums of positions far below
/// 2^64.
const MAX_REMOVE: u64 = 1 << 32;

/// The canonical name of Nim.
const NIM: &str = "nim";

/// Maximum number of tokens that a move of [`Rule::nim`] removes: the size of the first heap whose value in Nim does
/// not fit 16 bits.
const NIM_MAX_REMOVE: u64 = 1 << 16;

impl Rule {
    /// A rule from its moves; `name` is what [`Display`](fmt::Display) prints.
    ///
    /// # Errors
    /// [`Error::Rule`] when a move that leaves fewer than two heaps removes no token, or a removal or a least
    /// difference exceeds 2^32.
    ///
    /// ```
    /// use grundy::theory::rule::{Leaves, Move, Rule};
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
        Ok(Rule { name: name.into(), removals: removals(&moves), splits: splits(&moves), moves })
    }

    /// Grundy's game with the two parts at least `d` apart (Schrage, section 4); d = 1 is the original game.
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

    /// Nim, for heaps of up to 65536 tokens: remove any number of tokens from 1 to 65536.
    ///
    /// G(n) = n for n up to 65535. The computation of G(65536) ends with [`Error::ValueTooLarge`], as for any game with
    /// a value above 65535.
    #[must_use]
    pub fn nim() -> Rule {
        let removals = 1..=NIM_MAX_REMOVE;
        let moves = removals
            .flat_map(|remove| [Leaves::Nothing, Leaves::One].map(|leaves| Move { remove, constant: 0, leaves }));
        Rule::from_moves(NIM, moves.collect()).expect("every move removes a token")
    }

    /// Whether this rule is [`Rule::nim`].
    #[must_use]
    pub fn is_nim(&self) -> bool {
        self.name == NIM && *self == Rule::nim()
    }

    /// The canonical name: `grundy`, `grundy:d=2`, `0.77`, `4.3`, `remove-a-square`, `nim`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The moves, sorted, each once.
    #[must_use]
    pub fn moves(&self) -> &[Move] {
        &self.moves
    }

    /// BLAKE3 of the moves, hexadecimal: each move is one line `s c k d`, in the order of [`Rule::moves`]. Two games
    /// with the same moves have the same digest.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for m in self.moves() {
            let (k, d) = match m.leaves {
                Leaves::Nothing => (0, 0),
                Leaves::One => (1, 0),
                Leaves::Two { min_difference } => (2, min_difference),
            };
            hasher.update(format!("{} {} {k} {d}\n", m.remove, m.constant).as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// The moves that leave two heaps.
    pub fn splits(&self) -> impl Iterator<Item = Split> + '_ {
        self.splits.iter().copied()
    }

    /// The values of the options of `n` that come from moves with k = 0 or 1, given the earlier values, in no fixed
    /// order.
    pub fn single_options<'a>(
        &'a self,
        n: u64,
        value: impl Fn(u64) -> u16 + Copy + 'a,
    ) -> impl Iterator<Item = u16> + 'a {
        let nothing = self.removals.iter().filter(move |r| !r.leaves_one && r.first <= n && n <= r.last);
        let one = self.removals.iter().filter(|r| r.leaves_one).flat_map(move |r| {
            let last = r.last.min(n.saturating_sub(1));
            (r.first..=last).map(move |remove| r.constant ^ value(n - remove))
        });
        nothing.map(|r| r.constant).chain(one)
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

    /// The entry of [`NAMED_GAMES`] for this rule, if there is one.
    #[must_use]
    pub fn known(&self) -> Option<&'static NamedGame> {
        NAMED_GAMES.iter().find(|known| known.game == self.name)
    }

    /// [`NamedGame::last_rare`] of this rule: a lower bound for the number of last values that a run of this game
    /// needs.
    ///
    /// ```
    /// let grundy: grundy::theory::rule::Rule = "grundy".parse()?;
    /// assert_eq!(grundy.known_last_rare(), Some(48_399_022));
    /// # Ok::<(), grundy::Error>(())
    /// ```
    #[must_use]
    pub fn known_last_rare(&self) -> Option<u64> {
        self.known().and_then(|known| known.last_rare)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A game that the program knows by name, or for which it knows a good mask.
#[derive(Clone, Copy, Debug)]
pub struct NamedGame {
    /// The canonical name.
    pub game: &'static str,
    /// Other names that users may type, the usual one first.
    pub aliases: &'static [&'static str],
    /// Mask and position term of its sparse space, where a good one is known (`crate::solver`).
    pub space: Option<(u16, u8)>,
    /// The last known rare position under `space`. `data/results` has the runs and proofs that it comes from; for
    /// Kayles and remove-a-square it follows from the period. Grundy's game has 1274 rare positions up to n = 82 860,
    /// no other below 47 million, and 13 more up to n = 48 399 022, so a run that ends early shows too small a value.
    pub last_rare: Option<u64>,
    /// Period and preperiod, proved or published; `about` names the source where this program has not proved them.
    pub period: Option<(u64, u64)>,
    /// The moves in words, and the source.
    pub about: &'static str,
}

impl NamedGame {
    /// The moves, the source, and the period where one is known.
    ///
    /// ```
    /// let kayles: grundy::theory::rule::Rule = "kayles".parse()?;
    /// assert!(kayles.known().unwrap().summary().ends_with("; period 12, preperiod 71"));
    /// # Ok::<(), grundy::Error>(())
    /// ```
    #[must_use]
    pub fn summary(&self) -> String {
        match self.period {
            Some((period, preperiod)) => format!("{}; period {period}, preperiod {preperiod}", self.about),
            None => self.about.to_owned(),
        }
    }
}

/// A game without aliases, sparse space and period.
const PLAIN: NamedGame = NamedGame { game: "", aliases: &[], space: None, last_rare: None, period: None, about: "" };

/// The games that `grundy games` lists.
pub const NAMED_GAMES: &[NamedGame] = &[
    NamedGame {
        game: "grundy",
        aliases: &["grundys-game"],
        space: Some((0x1fe, 0)),
        last_rare: Some(48_399_022),
        about: "split a heap into two unequal heaps (P. M. Grundy, Eureka 2, 1939; OEIS A002188); no period known",
        ..PLAIN
    },
    NamedGame {
        game: NIM,
        about: "take any number of tokens (C. L. Bouton, Annals of Mathematics 3, 1901); G(n) = n",
        ..PLAIN
    },
    NamedGame {
        game: "0.6",
        aliases: &["officers"],
        space: Some((0x1ee, 0)),
        last_rare: Some(20_627),
        about: "Officers: remove one token, not a heap of one (R. K. Guy, in Eureka 16); no period known",
        ..PLAIN
    },
    NamedGame {
        game: "0.77",
        aliases: &["kayles"],
        space: Some((0xf, 0)),
        last_rare: Some(70),
        period: Some((12, 71)),
        about: "Kayles: knock down one or two adjacent pins (OEIS A002186)",
    },
    NamedGame {
        game: "0.07",
        aliases: &["dawson-kayles", "dawsons-kayles"],
        period: Some((34, 53)),
        about: "Dawson's Kayles: remove two adjacent tokens (OEIS A002187 shifted)",
        ..PLAIN
    },
    NamedGame {
        game: "0.137",
        aliases: &["dawson-chess", "dawsons-chess"],
        period: Some((34, 52)),
        about: "Dawson's chess (OEIS A002187)",
        ..PLAIN
    },
    NamedGame { game: "0.4", period: Some((34, 54)), about: "remove one token from inside a row (Guy)", ..PLAIN },
    NamedGame {
        game: "0.007",
        aliases: &["treblecross"],
        about: "Treblecross: one-dimensional noughts and crosses; no period known",
        ..PLAIN
    },
    NamedGame {
        game: "remove-a-square",
        space: Some((0x3, 1)),
        last_rare: Some(70),
        period: Some((12, 71)),
        about: "remove a 1x1 or 2x2 square from a 2xn board (PRIMES STEP; OEIS A286332)",
        ..PLAIN
    },
    NamedGame {
        game: "0.106",
        space: Some((0xd, 1)),
        last_rare: Some(1103),
        period: Some((328_226_140_474, 465_384_263_797)),
        about: "published by A. Flammenkamp, not recomputed here",
        ..PLAIN
    },
    NamedGame {
        game: "0.104",
        space: Some((0x17, 1)),
        last_rare: Some(284),
        period: Some((11_770_282, 197_769_598)),
        about: "published by A. Flammenkamp, proved by 'grundy period'",
        ..PLAIN
    },
    NamedGame {
        game: "0.054",
        space: Some((0x3d, 0)),
        last_rare: Some(796),
        period: Some((10_015_179, 193_235_616)),
        about: "published by A. Flammenkamp, proved by 'grundy period'",
        ..PLAIN
    },
    NamedGame {
        game: "0.454",
        space: Some((0x3d, 0)),
        last_rare: Some(124),
        period: Some((60_620_715, 160_949_019)),
        about: "published by A. Flammenkamp, proved by 'grundy period'",
        ..PLAIN
    },
];

impl FromStr for Rule {
    type Err = Error;

    /// Reads an octal code (`0.77`, `.77`, `4.3`), `grundy:d=2`, or the name or an alias of a game of [`NAMED_GAMES`].
    /// Case, blanks, hyphens, underscores and apostrophes do not matter in a name.
    ///
    /// # Errors
    /// [`Error::Code`] for a bad code, [`Error::UnknownGame`] for a name that is not known, with the names that
    /// resemble it, and [`Error::Misere`] for the misère form of a game.
    ///
    /// ```
    /// use grundy::theory::rule::Rule;
    /// assert_eq!("Dawson's Kayles".parse::<Rule>()?.name(), "0.07");
    /// # Ok::<(), grundy::Error>(())
    /// ```
    fn from_str(text: &str) -> Result<Rule> {
        if text.starts_with(|c: char| c == '.' || c.is_ascii_digit()) || text.is_empty() {
            return parse_octal(text);
        }
        if key(text).contains("misere") {
            return Err(Error::Misere { text: text.to_owned() });
        }
        let (name, parameter) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let Some(known) = find(&key(name)) else { return Err(unknown(text)) };
        match (known.game, parameter) {
            ("grundy", None) => Rule::grundy(1),
            ("grundy", Some(parameter)) => parse_difference(text, parameter),
            (_, Some(_)) => Err(unknown(text)),
            ("remove-a-square", None) => Ok(Rule::remove_a_square()),
            (NIM, None) => Ok(Rule::nim()),
            (code, None) => parse_octal(code),
        }
    }
}

/// The expected input, for the error of an empty name.
const NAMES: &str = "'grundy', 'grundy:d=2', an octal code such as '.77' or '4.3', or a name of 'grundy games'";

/// The form of a name in which spellings are compared: lower case, without accents on the e of misère, and without
/// blanks, hyphens, underscores and apostrophes.
fn key(text: &str) -> String {
    let ignored = |c: &char| c.is_whitespace() || "-_'`\u{2018}\u{2019}\u{300}\u{301}".contains(*c);
    let letters = text.chars().filter(|c| !ignored(c)).flat_map(char::to_lowercase);
    letters.map(|c| if c == 'è' || c == 'é' { 'e' } else { c }).collect()
}

/// The names of a game: the canonical one, unless it is a code, and the aliases.
fn names(known: &NamedGame) -> impl Iterator<Item = &'static str> {
    let name = Some(known.game).filter(|game| !game.starts_with(|c: char| c.is_ascii_digit()));
    name.into_iter().chain(known.aliases.iter().copied())
}

/// The game that has a name with this key.
fn find(wanted: &str) -> Option<&'static NamedGame> {
    NAMED_GAMES.iter().find(|known| names(known).any(|name| key(name) == wanted))
}

/// The error for a name that is not known.
fn unknown(text: &str) -> Error {
    Error::UnknownGame { text: text.to_owned(), suggestions: suggestions(text) }
}

/// The names that the user may have meant by `text`: Grundy's game with a parameter in another notation, else names
/// that begin with `text`, else the names with the least edit distance, at most one edit per three letters.
fn suggestions(text: &str) -> Vec<String> {
    let wanted = key(text);
    if let Some(name) = with_difference(&wanted) {
        return vec![name];
    }
    let all: Vec<(String, &str)> =
        NAMED_GAMES.iter().filter_map(|known| names(known).next()).map(|name| (key(name), name)).collect();
    let longer = |(key, _): &&(String, &str)| wanted.len() >= 3 && key.starts_with(&wanted);
    let mut found: Vec<String> = all.iter().filter(longer).map(|&(_, name)| name.to_owned()).collect();
    if found.is_empty() {
        let distance = |key: &str| strsim::osa_distance(key, &wanted);
        let least = all.iter().map(|(key, _)| distance(key)).min().unwrap_or(usize::MAX);
        if least <= (wanted.chars().count() / 3).max(1) {
            found.extend(all.iter().filter(|(key, _)| distance(key) == least).map(|&(_, name)| name.to_owned()));
        }
    }
    found
}

/// The name of Grundy's game with the least difference that this key ends with: `grundy:d=2` for `grundy:2` or
/// `grundyd2`.
fn with_difference(key: &str) -> Option<String> {
    let digits = key.strip_prefix("grundy")?.trim_start_matches([':', 'd', '=']);
    Some(Rule::grundy(digits.parse().ok()?).ok()?.name)
}

/// Grundy's game with the parameter `d=N`, the end of `text`.
fn parse_difference(text: &str, parameter: &str) -> Result<Rule> {
    let length = |part: &str| part.chars().count();
    let start = length(text) - length(parameter) + 1;
    let Some(digits) = parameter.strip_prefix("d=").or_else(|| parameter.strip_prefix("D=")) else {
        return Err(match with_difference(&key(text)) {
            Some(name) => Error::UnknownGame { text: text.to_owned(), suggestions: vec![name] },
            None => bad(text, start, "d= and the least difference of the two heaps"),
        });
    };
    let start = start + 2;
    if let Some(at) = digits.chars().position(|c| !c.is_ascii_digit()) {
        return Err(bad(text, start + at, "a decimal digit of the least difference"));
    }
    let d = digits.parse().map_err(|_| bad(text, start, "the least difference, at most 2^32"))?;
    Rule::grundy(d)
}

/// Parses an octal code.
fn parse_octal(text: &str) -> Result<Rule> {
    let mut chars = text.chars().enumerate().map(|(at, c)| (at + 1, c)).peekable();
    let mut splits_whole = false;
    if let Some(&(position, first)) = chars.peek()
        && first != '.'
    {
        match first {
            '0' => {}
            '4' => splits_whole = true,
            _ => return Err(bad(text, position, "0 or 4 before the point")),
        }
        chars.next();
    }
    match chars.next() {
        Some((_, '.')) => {}
        Some((position, _)) => return Err(bad(text, position, "the point of an octal code")),
        None if text.is_empty() => return Err(bad(text, 1, NAMES)),
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

/// The error at character `position`, counted from 1, of an octal code or a parameter.
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
        assert_eq!(position_of_error("grundy:d=x"), 10);
        assert_eq!(position_of_error("grundy:d="), 10);
        assert_eq!(position_of_error("grundy:d=99999999999999999999"), 10);
        assert_eq!(position_of_error("grundy:x"), 8);
        assert_eq!(position_of_error("grundy:"), 8);
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
            ("nim", "nim"),
            ("Dawson's Kayles", "0.07"),
            ("Dawson\u{2019}s kayles", "0.07"),
            ("dawsons-kayles", "0.07"),
            ("DAWSON_CHESS", "0.137"),
            (" KAYLES", "0.77"),
            ("Remove a square", "remove-a-square"),
            ("Grundy's game", "grundy"),
            ("GRUNDY:D=3", "grundy:d=3"),
        ] {
            assert_eq!(rule(text).name(), name);
            assert_eq!(rule(name), rule(text));
        }
        assert_eq!(rule("grundy:d=2").directory_name(), "grundy-d2");
        assert!(NAMED_GAMES.iter().all(|known| rule(known.game).name() == known.game));
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_names_that_resemble_it() {
        for (text, expected) in [
            ("kayle", ["kayles"].as_slice()),
            ("Kayels", &["kayles"]),
            ("tribblecross", &["treblecross"]),
            ("grundyy", &["grundy"]),
            ("nmi", &["nim"]),
            ("dawson", &["dawson-kayles", "dawson-chess"]),
            ("kayles:3", &["kayles"]),
            ("grundy:2", &["grundy:d=2"]),
            ("grundy2", &["grundy:d=2"]),
            ("grundy-d2", &["grundy:d=2"]),
            ("xyzzy", &[]),
            ("x", &[]),
            ("\u{e8}", &[]),
        ] {
            match text.parse::<Rule>() {
                Err(Error::UnknownGame { text: typed, suggestions }) => {
                    assert_eq!(
                        (typed.as_str(), suggestions.as_slice()),
                        (text, &expected.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()[..])
                    );
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn misere_play_is_refused_by_name() {
        for text in ["misere-kayles", "mis\u{e8}re:kayles", "Mise\u{300}re Nim", "kayles misere", "MIS\u{c8}RE"] {
            assert!(matches!(text.parse::<Rule>(), Err(Error::Misere { .. })), "{text}");
        }
    }

    /// Compares with the definition, for small heaps and for heaps around the largest value that is stored.
    #[test]
    fn nim_has_every_removal_and_the_value_n_up_to_65535() {
        let nim = Rule::nim();
        assert!(nim.is_nim() && !rule(".3").is_nim());
        assert_eq!(crate::theory::definition::values(&nim, 300).unwrap(), (0..300).collect::<Vec<u16>>());
        for n in [65534u64, 65535] {
            let value = crate::theory::definition::value(&nim, n, |m| u16::try_from(m).unwrap()).unwrap();
            assert_eq!(u64::from(value), n);
            let mut options: Vec<u16> = nim.single_options(n, |m| u16::try_from(m).unwrap()).collect();
            options.sort_unstable();
            assert!(options == (0..value).collect::<Vec<u16>>(), "every smaller heap once");
        }
        let above = crate::theory::definition::value(&nim, 65536, |m| u16::try_from(m).unwrap());
        assert!(matches!(above, Err(Error::ValueTooLarge { n: 65536 })));
    }

    /// Grouped moves give the same options as the list of moves.
    #[test]
    fn single_options_are_those_of_the_moves() {
        let one = |remove, constant, leaves| Move { remove, constant, leaves };
        let gaps = [(1, 0), (2, 0), (4, 0), (3, 5), (4, 5), (9, 5), (1 << 32, 0)];
        let moves = gaps.iter().flat_map(|&(s, c)| [one(s, c, Leaves::Nothing), one(s, c, Leaves::One)]);
        let mixed = Rule::from_moves("mixed", moves.chain(rule(".3407").moves().to_vec()).collect()).unwrap();
        let value = |n: u64| u16::try_from(n * n % 251).unwrap();
        for game in [mixed, rule(".3"), rule(".12345670123"), rule("remove-a-square"), Rule::nim()] {
            for n in 0..40 {
                let listed = game.moves().iter().filter_map(|m| match m.leaves {
                    Leaves::Nothing if n == m.remove => Some(m.constant),
                    Leaves::One if n > m.remove => Some(m.constant ^ value(n - m.remove)),
                    _ => None,
                });
                let (mut listed, mut grouped) =
                    (listed.collect::<Vec<_>>(), game.single_options(n, value).collect::<Vec<_>>());
                listed.sort_unstable();
                grouped.sort_unstable();
                assert_eq!(grouped, listed, "{game}, {n}");
            }
        }
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

//! The games that the program knows by name, and the comparison of names.

use super::oeis;
use super::rule::{NIM, Rule};
use crate::error::Error;

/// A game that the program knows by name, or for which it knows a good mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
        game: "4.(3)",
        aliases: &["lasker", "laskers-nim"],
        about: "Lasker's Nim: take any number of tokens, or split a heap (E. Lasker, 1931); G(n+4) = G(n)+4 from 1 on",
        ..PLAIN
    },
    NamedGame {
        game: "0.6",
        aliases: &["officers"],
        space: Some((0x1ee, 0)),
        last_rare: Some(20_627),
        about: "Officers: remove one token, not a heap of one (Eureka 16); no period known",
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
        about: "published by A. Flammenkamp (2002), proved by this program",
        ..PLAIN
    },
    NamedGame {
        game: "0.104",
        space: Some((0x17, 1)),
        last_rare: Some(284),
        period: Some((11_770_282, 197_769_598)),
        about: "published by A. Flammenkamp, proved by this program",
        ..PLAIN
    },
    NamedGame {
        game: "0.054",
        space: Some((0x3d, 0)),
        last_rare: Some(796),
        period: Some((10_015_179, 193_235_616)),
        about: "published by A. Flammenkamp, proved by this program",
        ..PLAIN
    },
    NamedGame {
        game: "0.454",
        space: Some((0x3d, 0)),
        last_rare: Some(124),
        period: Some((60_620_715, 160_949_019)),
        about: "published by A. Flammenkamp, proved by this program",
        ..PLAIN
    },
];

impl Rule {
    /// The entry of [`NAMED_GAMES`] for this rule, if there is one.
    #[must_use]
    pub fn known(&self) -> Option<&'static NamedGame> {
        let is_same = |known: &&NamedGame| known.game.parse::<Rule>().is_ok_and(|rule| rule == *self);
        NAMED_GAMES.iter().filter(|known| known.game == self.name()).find(is_same)
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

/// The form of a name in which spellings are compared: lower case, without accents on the e of misère, and without
/// blanks, hyphens, underscores and apostrophes.
pub(super) fn key(text: &str) -> String {
    let ignored = |c: &char| c.is_whitespace() || "-_'`\u{2018}\u{2019}\u{300}\u{301}".contains(*c);
    let letters = text.chars().filter(|c| !ignored(c)).flat_map(char::to_lowercase);
    letters.map(|c| if c == 'è' || c == 'é' { 'e' } else { c }).collect()
}

/// The names of a game: the canonical one, unless it is a code, and the aliases.
fn names(known: &NamedGame) -> impl Iterator<Item = &'static str> {
    let name = Some(known.game).filter(|game| !game.contains('.'));
    name.into_iter().chain(known.aliases.iter().copied())
}

/// The game that has a name with this key.
pub(super) fn find(wanted: &str) -> Option<&'static NamedGame> {
    NAMED_GAMES.iter().find(|known| names(known).any(|name| key(name) == wanted))
}

/// The error for a name that is not known.
pub(super) fn unknown(text: &str) -> Error {
    match oeis::find(text) {
        Some((game, sequence)) => Error::OeisSequence { number: sequence.number, formula: sequence.to_string(), game },
        None => Error::UnknownGame { text: text.to_owned(), suggestions: suggestions(text) },
    }
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
    let stem = wanted.strip_suffix('s').unwrap_or(&wanted); // of a genitive
    let longer = |(key, _): &&(String, &str)| stem.len() >= 3 && key.starts_with(stem);
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
pub(super) fn with_difference(key: &str) -> Option<String> {
    let digits = key.strip_prefix("grundy")?.trim_start_matches([':', 'd', '=']);
    Some(Rule::grundy(digits.parse().ok()?).ok()?.name().to_owned())
}

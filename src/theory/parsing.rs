//! Parsing of rules: codes, Grundy's game with a least difference, subtraction sets, names.

use super::game_code::{GameCode, bad, is_code, parse_set};
use super::names::{find, key, unknown, with_difference};
use super::rule::{NIM, Rule};
use crate::error::{Error, Result};
use std::str::FromStr;

impl FromStr for Rule {
    type Err = Error;

    /// Reads an octal or hexadecimal code (`0.77`, `.77`, `4.3`, `.8F`), a code that repeats (`4.(3)`, `4.333...`),
    /// `grundy:d=2`, the set of a subtraction game (`sub:1,4,10`, or `allbut:1,4` for all other numbers of tokens), or
    /// the name or an alias of a game of [`NAMED_GAMES`](super::names::NAMED_GAMES). Case, blanks, hyphens, underscores
    /// and apostrophes do not matter in a name.
    ///
    /// # Errors
    /// [`Error::Code`] for a bad code, [`Error::UnknownGame`] for a name that is not known, with the names that
    /// resemble it, [`Error::Misere`] for the misère form of a game, and [`Error::Rule`] for a least difference above
    /// 2^32.
    ///
    /// ```
    /// use grundy::theory::rule::Rule;
    /// assert_eq!("Dawson's Kayles".parse::<Rule>()?.name(), "0.07");
    /// # Ok::<(), grundy::Error>(())
    /// ```
    fn from_str(text: &str) -> Result<Rule> {
        if text.is_empty() {
            return Err(bad(text, 1, NAMES));
        }
        if is_code(text) {
            return GameCode::parse(text)?.rule();
        }
        if key(text).contains("misere") {
            return Err(Error::Misere { text: text.to_owned() });
        }
        let (name, parameter) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        if let (kind @ ("sub" | "allbut"), Some(_)) = (key(name).as_str(), parameter) {
            let set = parse_set(text, name.chars().count() + 2)?;
            return GameCode::subtraction(&set, kind == "allbut").rule();
        }
        let Some(known) = find(&key(name)) else { return Err(unknown(text)) };
        match (known.game, parameter) {
            ("grundy", None) => Rule::grundy(1),
            ("grundy", Some(parameter)) => parse_difference(text, parameter),
            (_, Some(_)) => Err(unknown(text)),
            ("remove-a-square", None) => Ok(Rule::remove_a_square()),
            (NIM, None) => Ok(Rule::nim()),
            (code, None) => GameCode::parse(code)?.rule(),
        }
    }
}

/// The expected input, for the error of an empty name.
const NAMES: &str =
    "'grundy', 'grundy:d=2', a code such as '.77', '4.3' or '.8F', 'sub:1,4', or the name of a known game";

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

#[cfg(test)]
mod tests;

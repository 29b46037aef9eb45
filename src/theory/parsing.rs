//! Parsing of rules: octal codes, Grundy's game with a least difference, names.

use super::names::{find, key, unknown, with_difference};
use super::rule::{Leaves, Move, NIM, Rule};
use crate::error::{Error, Result};
use std::str::FromStr;

impl FromStr for Rule {
    type Err = Error;

    /// Reads an octal code (`0.77`, `.77`, `4.3`), `grundy:d=2`, or the name or an alias of a game of
    /// [`NAMED_GAMES`](super::names::NAMED_GAMES).
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
const NAMES: &str = "'grundy', 'grundy:d=2', an octal code such as '.77' or '4.3', or the name of a known game";

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
mod tests;

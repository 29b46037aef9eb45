//! Codes of games in which a move removes tokens from a heap and leaves up to three heaps: octal and hexadecimal codes,
//! codes that repeat, and subtraction sets.
//!
//! A code is `d0.d1 d2 d3…`. Digit d_s gives the moves that remove s tokens: they may leave nothing (bit 0), one heap
//! (bit 1), two heaps (bit 2) or three heaps (bit 3). d0 is 0, 4, 8 or C, because a move that removes nothing must
//! leave at least two heaps. Digits in parentheses repeat without end: `0.(3)` is Nim, and `4.(3)` Lasker's Nim
//! (*Winning Ways*, Berlekamp, Conway, Guy, chapter 4, writes `4.333…`).
//!
//! Invariant: equal codes have one canonical form: upper-case digits, no zeros at the end, no shorter group of digits
//! that repeats, and before the group a digit other than the last one of the group.

use super::rule::{LISTED, Leaves, Move, NIM, Rule};
use crate::error::{Error, Result};
use crate::theory::nimber::index;
use std::fmt;

/// The code of a game.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GameCode {
    /// The digit before the point: 0, 4, 8 or 12.
    whole: u32,
    /// The digits after the point that do not repeat, 0 to 15 each.
    digits: Vec<u32>,
    /// The digits that repeat; empty for a finite code.
    group: Vec<u32>,
}

/// Whether a text is meant as a code, not as a name: it begins with a decimal digit, a point, or a hexadecimal digit
/// and a point.
pub(super) fn is_code(text: &str) -> bool {
    let mut chars = text.chars();
    let first = chars.next();
    let is_letter = first.is_some_and(|c| c.is_ascii_hexdigit()) && chars.next() == Some('.');
    is_letter || first.is_some_and(|c| c == '.' || c.is_ascii_digit())
}

/// The expected digit, for errors.
const DIGIT: &str = "a digit, 0 to 9 or A to F";

impl GameCode {
    /// Parses a code.
    ///
    /// # Errors
    /// [`Error::Code`] with the first character that does not belong there.
    pub(super) fn parse(text: &str) -> Result<GameCode> {
        let Some((before, after)) = text.split_once('.') else {
            // Only the digit before the point can be wrong, or the point is missing.
            GameCode::whole(text, text)?;
            return Err(bad(text, if text.is_empty() { 1 } else { 2 }, "the point of a code"));
        };
        let mut code = GameCode { whole: GameCode::whole(text, before)?, ..GameCode::default() };
        let start = before.chars().count() + 2;
        let mut in_group = false;
        let mut chars = (start..).zip(after.chars());
        while let Some((position, c)) = chars.next() {
            match c {
                '(' if !in_group => in_group = true,
                ')' if !code.group.is_empty() => return code.ended(text, position, chars.next()),
                '.' | '…' if !in_group => return code.with_ellipsis(text, position),
                _ => {
                    let digit = c.to_digit(16).ok_or_else(|| bad(text, position, DIGIT))?;
                    if in_group { code.group.push(digit) } else { code.digits.push(digit) }
                }
            }
        }
        if in_group || (code.digits.is_empty() && code.whole == 0) {
            let expected = if code.group.is_empty() { DIGIT } else { "the parenthesis that ends the repeating digits" };
            return Err(bad(text, text.chars().count() + 1, expected));
        }
        Ok(code.canonical())
    }

    /// The digit before the point of `text`.
    fn whole(text: &str, before: &str) -> Result<u32> {
        let mut chars = before.chars();
        let whole = match chars.next() {
            None | Some('0') => 0,
            Some(c) => c
                .to_digit(16)
                .filter(|digit| matches!(digit, 4 | 8 | 12))
                .ok_or_else(|| bad(text, 1, "0, 4, 8 or C before the point"))?,
        };
        if chars.next().is_some() { Err(bad(text, 2, "the point of a code")) } else { Ok(whole) }
    }

    /// The code whose group ends at `position`; `rest` is the next character.
    fn ended(self, text: &str, position: usize, rest: Option<(usize, char)>) -> Result<GameCode> {
        match rest {
            Some((next, _)) => Err(bad(text, next, "the end of the code after the repeating digits")),
            None => self.short_enough(text, position),
        }
    }

    /// The code whose last digit repeats, as in `.333...`; the dots begin at `position`.
    fn with_ellipsis(mut self, text: &str, position: usize) -> Result<GameCode> {
        let dots: String = text.chars().skip(position - 1).collect();
        let repeats = match self.digits[..] {
            [.., a, b] => a == b,
            [_] => true,
            [] => return Err(bad(text, position, DIGIT)),
        };
        if !repeats || !matches!(dots.as_str(), "..." | "…") {
            return Err(bad(text, position, "a digit, or parentheses around the digits that repeat, as in '.12(34)'"));
        }
        self.group = self.digits.split_off(self.digits.len() - 1);
        self.short_enough(text, position)
    }

    /// The canonical code, unless a repeating code has too many digits.
    fn short_enough(self, text: &str, position: usize) -> Result<GameCode> {
        if self.digits.len() + self.group.len() > index(LISTED) {
            return Err(bad(text, position, "at most 65536 digits"));
        }
        Ok(self.canonical())
    }

    /// The code of a subtraction game: a move removes a number of tokens that is in `set`, or that is not in it if
    /// `is_complement`.
    pub(super) fn subtraction(set: &[u64], is_complement: bool) -> GameCode {
        let largest = set.iter().copied().max().unwrap_or(0);
        let digits = (1..=largest).map(|s| if set.contains(&s) == is_complement { 0 } else { 3 }).collect();
        let group = if is_complement { vec![3] } else { Vec::new() };
        GameCode { whole: 0, digits, group }.canonical()
    }

    fn canonical(mut self) -> GameCode {
        let length = self.group.len();
        let repeats = |q: &usize| length.is_multiple_of(*q) && (*q..length).all(|i| self.group[i] == self.group[i - q]);
        if let Some(least) = (1..length).find(repeats) {
            self.group.truncate(least);
        }
        if self.group == [0] {
            self.group.clear();
        }
        while !self.group.is_empty() && self.digits.last() == self.group.last() {
            self.digits.pop();
            self.group.rotate_right(1);
        }
        while self.group.is_empty() && self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        self
    }

    /// The digit for the moves that remove `s` tokens, s >= 1.
    fn digit(&self, s: u64) -> u32 {
        let at = index(s - 1);
        match self.digits.get(at) {
            Some(&digit) => digit,
            None if self.group.is_empty() => 0,
            None => self.group[(at - self.digits.len()) % self.group.len()],
        }
    }

    /// The rule, with the code as its name; Nim has its own.
    pub(super) fn rule(&self) -> Result<Rule> {
        let name = self.to_string();
        let last = if self.group.is_empty() { self.digits.len() as u64 } else { LISTED };
        let moves = (1..=last).map(|s| (s, self.digit(s)));
        let moves = std::iter::once((0, self.whole)).chain(moves).flat_map(|(s, digit)| moves_of(s, digit)).collect();
        match self.group[..] {
            [] => Rule::from_moves(name, moves),
            [3] if self.whole == 0 && self.digits.is_empty() => Rule::unbounded(NIM, moves),
            _ => Rule::unbounded(name, moves),
        }
    }
}

/// The moves that remove `remove` tokens, by the bits of a digit.
fn moves_of(remove: u64, digit: u32) -> impl Iterator<Item = Move> {
    let kinds = [Leaves::Nothing, Leaves::One, Leaves::Two { min_difference: 0 }, Leaves::Three];
    let allowed = kinds.into_iter().enumerate().filter(move |(bit, _)| digit >> bit & 1 == 1);
    allowed.map(move |(_, leaves)| Move { remove, constant: 0, leaves })
}

impl fmt::Display for GameCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}.", self.whole)?;
        self.digits.iter().try_for_each(|digit| write!(f, "{digit:X}"))?;
        if !self.group.is_empty() {
            f.write_str("(")?;
            self.group.iter().try_for_each(|digit| write!(f, "{digit:X}"))?;
            return f.write_str(")");
        }
        if self.digits.is_empty() { f.write_str("0") } else { Ok(()) }
    }
}

/// The error at character `position`, counted from 1, of a code or a parameter.
pub(super) fn bad(text: &str, position: usize, expected: &'static str) -> Error {
    let found = match text.chars().nth(position - 1) {
        Some(c) => format!("'{}'", c.escape_default()),
        None => "nothing".to_owned(),
    };
    Error::Code { text: text.to_owned(), position, found, expected }
}

/// Maximum number of tokens in a subtraction set.
const LARGEST_ELEMENT: u64 = 4096;

/// Parses the set of `sub:1,4,10` or `allbut:1,4`, the part of `text` that begins at character `start`.
///
/// # Errors
/// [`Error::Code`] at the first element that is not a number of tokens.
pub(super) fn parse_set(text: &str, start: usize) -> Result<Vec<u64>> {
    let list: String = text.chars().skip(start - 1).collect();
    let mut position = start;
    let mut set = Vec::new();
    for element in list.split(',') {
        let blanks = element.chars().take_while(|c| c.is_whitespace()).count();
        let tokens = element.trim();
        let parsed = tokens.bytes().all(|c| c.is_ascii_digit()).then(|| tokens.parse().ok()).flatten();
        let Some(tokens) = parsed.filter(|tokens| (1..=LARGEST_ELEMENT).contains(tokens)) else {
            return Err(refused_element(text, position + blanks));
        };
        set.push(tokens);
        position += element.chars().count() + 1;
    }
    Ok(set)
}

fn refused_element(text: &str, position: usize) -> Error {
    bad(text, position, "numbers of tokens, 1 to 4096, separated by commas")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> String {
        GameCode::parse(text).unwrap_or_else(|e| panic!("{text}: {e}")).to_string()
    }

    #[test]
    fn equal_codes_have_one_canonical_form() {
        for (texts, canonical) in [
            (&[".8", "0.8", ".80", ".8(0)", "0.800(00)"][..], "0.8"),
            (&[".f", "0.F", ".F0"], "0.F"),
            (&["c.", "C.0", "C.(0)"], "C.0"),
            (&[".3...", ".333...", ".33…", ".(3)", ".3(3)", "0.33(333)"], "0.(3)"),
            (&["4.333...", "4.(3)", "4.(33)"], "4.(3)"),
            (&[".1(21)", ".(12)", ".1212(1212)", ".121(21)"], "0.(12)"),
            (&[".0330(3)", ".0330333..."], "0.0330(3)"),
            (&[".(03)", ".0(30)", ".03(03)"], "0.(03)"),
        ] {
            for text in texts {
                assert_eq!(name(text), canonical, "{text}");
                assert_eq!(name(canonical), canonical);
            }
        }
    }

    #[test]
    fn subtraction_sets_are_codes() {
        assert_eq!(GameCode::subtraction(&[1, 4, 10], false).to_string(), "0.3003000003");
        assert_eq!(GameCode::subtraction(&[4, 1, 4], true).to_string(), "0.0330(3)");
        assert_eq!(parse_set("sub:1, 4,10", 5).unwrap(), [1, 4, 10]);
    }

    #[test]
    fn a_group_repeats_its_digits_without_end() {
        let code = GameCode::parse("4.12(3F0)").unwrap();
        let digits: Vec<u32> = (1..=9).map(|s| code.digit(s)).collect();
        assert_eq!(digits, [1, 2, 3, 15, 0, 3, 15, 0, 3]);
        let rule = code.rule().unwrap();
        assert_eq!(rule.largest_heap(), Some(65536));
        assert!(rule.moves().contains(&Move { remove: 65535, constant: 0, leaves: Leaves::One }), "digit 3 at 3k");
        assert!(!rule.moves().iter().any(|m| m.remove == 65534), "digit 0 at 3k + 2");
    }
}

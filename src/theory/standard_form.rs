//! Standard forms: octal games that have the same sequence by a theorem, up to a shift of n.
//!
//! Let Z, A and S be the sets of removals that leave nothing, one heap and two heaps, in a rule without constants and
//! least differences: an octal game. Two theorems, each proved by induction on n, give the same sequence a simpler
//! rule. The first is the relation of the "first cousins" of *Winning Ways* (Berlekamp, Conway, Guy, chapter 4).
//!
//! **Shift.** Suppose that 1 is not in Z, so that a heap of one token has no move and G(1) = 0. Let H be the game with
//! Z' = {t - 1 : t in Z} + A + {t + 1 : t in S}, A' = A + {t + 1 : t in S} and S' = {t + 1 : t in S}. Then
//! G(n) = H(n - 1) for n >= 1, because the options of n in G are those of m = n - 1 in H:
//!
//! - t in Z gives the option 0 at n = t, which t - 1 in Z' gives at m = t - 1; t is at least 2.
//! - t in A gives G(n - t) = H(m - t) for m - t >= 0: t in A' gives it for m > t, and t in Z' for m = t.
//! - t in S gives G(a) ^ G(b) = H(a - 1) ^ H(b - 1), where a - 1 and b - 1 are any two numbers, 0 included, with the
//!   sum m - (t + 1). So t + 1 in S' gives it where neither is 0, in A' where one is, and in Z' where both are.
//!
//! Each element of Z', A' and S' comes from one of these cases, so m has no other options.
//!
//! **Redundant removals.** t in A gives only options that other moves give if some u in S with u < t has G(t - u) = 0:
//! for n > t, G(t - u) ^ G(n - t) = G(n - t) is an option by u. t in Z is redundant if the heap of t has the option 0
//! by another move. Both are finite checks. First drop all redundant removals from A. Then drop each removal of Z that
//! is redundant given S and what is left of A. By induction on n, no value changes: the options that a dropped t in A
//! gave at n are given by u in S, which is never dropped; the option 0 that a dropped t in Z gave at n = t is given by
//! S or what is left of A.
//!
//! The standard form of a game with moves shifts until 1 is in Z, then drops all redundant removals. Games with the
//! same standard form have the same sequence up to a shift of n. The converse is not claimed, but the 273 octal games
//! with up to three digits without a known period have 74 standard forms, and no two of these have the same first 2900
//! values.

use crate::theory::definition;
use crate::theory::nimber::index;
use crate::theory::rule::{Leaves, Rule};
use std::collections::BTreeSet;

/// Maximum number of tokens that a move may remove in a game whose standard form is computed.
const LONGEST: u64 = 256;

/// The standard form of an octal game.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandardForm {
    /// The octal game in standard form, with its sequence H.
    pub rule: Rule,
    /// The number s with G(n) = H(n - s) for n >= s, and G(n) = 0 for n <= s.
    pub shift: u64,
}

impl StandardForm {
    /// The standard form of a rule; `None` if the rule is not that of an octal code, or a move removes more than 256
    /// tokens. The moves of the standard form may remove more than that, so it may have no standard form itself.
    ///
    /// ```
    /// use grundy::theory::standard_form::StandardForm;
    ///
    /// // Dawson's Kayles and Dawson's Chess.
    /// let [kayles, chess] = ["0.07", "0.137"].map(|code| StandardForm::of(&code.parse().unwrap()).unwrap());
    /// assert_eq!(kayles.rule, chess.rule);
    /// assert_eq!((kayles.shift, chess.shift), (1, 0));
    /// ```
    #[must_use]
    pub fn of(rule: &Rule) -> Option<StandardForm> {
        let mut removals = OctalRemovals::of(rule).filter(|removals| removals.largest() <= LONGEST)?;
        let mut shift = 0;
        while !removals.nothing.contains(&1) && removals != OctalRemovals::default() {
            removals = removals.shifted();
            shift += 1;
        }
        Some(StandardForm { rule: removals.without_redundant()?.rule(), shift })
    }
}

/// The removals of an octal game, by what they leave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OctalRemovals {
    /// Z.
    nothing: BTreeSet<u64>,
    /// A.
    one: BTreeSet<u64>,
    /// S.
    two: BTreeSet<u64>,
}

impl OctalRemovals {
    /// The removals of a rule; `None` if it is not that of a finite octal code.
    fn of(rule: &Rule) -> Option<OctalRemovals> {
        if rule.largest_heap().is_some() {
            return None;
        }
        let mut removals = OctalRemovals::default();
        for m in rule.moves() {
            let same = match m.leaves {
                Leaves::Nothing => &mut removals.nothing,
                Leaves::One => &mut removals.one,
                Leaves::Two { min_difference: 0 } => &mut removals.two,
                Leaves::Two { .. } | Leaves::Three => return None,
            };
            if m.constant != 0 {
                return None;
            }
            same.insert(m.remove);
        }
        Some(removals)
    }

    fn largest(&self) -> u64 {
        [&self.nothing, &self.one, &self.two].into_iter().filter_map(|set| set.last()).max().copied().unwrap_or(0)
    }

    /// The game H of the shift.
    fn shifted(&self) -> OctalRemovals {
        let two: BTreeSet<u64> = self.two.iter().map(|t| t + 1).collect();
        let one = &self.one | &two;
        let nothing = self.nothing.iter().map(|t| t - 1).chain(one.iter().copied()).collect();
        OctalRemovals { nothing, one, two }
    }

    /// The game without its redundant removals; `None` if a value does not fit 16 bits.
    fn without_redundant(mut self) -> Option<OctalRemovals> {
        let values = definition::values(&self.rule(), index(self.largest()) + 1).ok()?;
        let value = |n: u64| values[index(n)];
        self.one.retain(|&t| !self.two.range(..t).any(|&u| value(t - u) == 0));
        let OctalRemovals { one, two, .. } = &self;
        let loses = |t: u64| {
            let by_one = one.range(..t).any(|&u| value(t - u) == 0);
            by_one || two.range(..t).any(|&u| (1..t - u).any(|a| value(a) == value(t - u - a)))
        };
        self.nothing = self.nothing.iter().copied().filter(|&t| !loses(t)).collect();
        Some(self)
    }

    /// The octal game with these removals.
    fn rule(&self) -> Rule {
        let digit = |t: u64| {
            let bit = |set: &BTreeSet<u64>, weight: u32| if set.contains(&t) { weight } else { 0 };
            char::from_digit(bit(&self.nothing, 1) + bit(&self.one, 2) + bit(&self.two, 4), 8).expect("below 8")
        };
        let digits: String = (1..=self.largest().max(1)).map(digit).collect();
        format!("{}.{digits}", digit(0)).parse().expect("an octal code")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theory::random::split_mix;

    /// Every value of the game is that of its standard form, by the definition.
    fn assert_same_sequence(code: &str) {
        let rule: Rule = code.parse().unwrap();
        let form = StandardForm::of(&rule).unwrap();
        let values = definition::values(&rule, 200).unwrap();
        let shift = index(form.shift);
        let (first, shifted) = values.split_at(shift);
        assert!(first.iter().all(|&v| v == 0), "{code}");
        assert_eq!(shifted, &definition::values(&form.rule, 200).unwrap()[..200 - shift], "{code}: {form:?}");
        assert_eq!(StandardForm::of(&form.rule), Some(StandardForm { shift: 0, ..form.clone() }), "{code}: {form:?}");
    }

    #[test]
    fn standard_forms_have_the_values_of_the_game() {
        for digits in 1..=2 {
            for code in 0..8u32.pow(digits) {
                let width = digits as usize;
                assert_same_sequence(&format!("0.{code:0width$o}"));
                assert_same_sequence(&format!("4.{code:0width$o}"));
            }
        }
        for i in 0..500 {
            let random = split_mix(2026, i);
            assert_same_sequence(&format!("{}.{:07o}", random >> 61 & 4, random % 8u64.pow(7)));
        }
    }

    #[test]
    fn published_equivalences_have_one_standard_form() {
        // Each line is one sequence, up to a shift: A. Flammenkamp's list of octal games; the last line, Winning Ways,
        // chapter 4.
        for line in [".206 .216", ".244 .246 .254 .256", ".764 .765 .766 .767", ".007 .04 .042", ".07 .137"] {
            let form = |code: &str| StandardForm::of(&code.parse().unwrap()).unwrap().rule;
            let forms: Vec<Rule> = line.split(' ').map(form).collect();
            assert!(forms.iter().all(|other| *other == forms[0]), "{line}: {forms:?}");
        }
    }

    #[test]
    fn other_games_have_no_standard_form() {
        for name in ["grundy", "grundy:d=2", "remove-a-square", "nim", "lasker", ".8"] {
            assert_eq!(StandardForm::of(&name.parse().unwrap()), None, "{name}");
        }
    }
}

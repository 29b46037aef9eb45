//! The rule of a heap game: moves, normal form, digest.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
pub(super) const NIM: &str = "nim";

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
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests;

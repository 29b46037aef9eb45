//! The rule of a heap game: moves, normal form, digest.
//!
//! All heap games of this program have one normal form. A rule is a finite list of moves `(s, c, k, d)`: remove `s`
//! tokens, leave exactly `k` non-empty heaps (`k` = 0, 1, 2 or 3), XOR the constant `c`, and for `k` = 2 require the
//! two heaps to differ by at least `d`. The value of an option of a heap of `n` is
//!
//! - k = 0, n = s: `c`
//! - k = 1, n > s: `c ^ G(n-s)`
//! - k = 2, n > s+1: `c ^ G(a) ^ G(b)` for a + b = n - s, a, b >= 1, |a - b| >= d
//! - k = 3, n > s+2: `c ^ G(a) ^ G(b) ^ G(e)` for a + b + e = n - s, a, b, e >= 1
//!
//! and `G(n)` is the mex of these. An octal code `0.d1 d2 d3…` gives, for each `s`, k = 0 by bit 0 of `d_s`, k = 1 by
//! bit 1 and k = 2 by bit 2 (Guy and Smith, *The G-values of various games*, 1956). A hexadecimal code also gives k = 3
//! by bit 3. A digit 4, 8 or C instead of 0 before the point allows a heap to be split without removing a token.
//!
//! The normal form is a list of moves, not a code, so that games with constants (remove-a-square on 2×n) are rules too.
//!
//! **Codes that repeat**, such as that of Nim, `0.(3)`, have no bound on the tokens that a move removes, so a finite
//! list cannot state their rules. The list holds the moves that remove up to 65536 tokens. These are all moves in heaps
//! of up to 65536, and no value of a larger heap is computed ([`Rule::largest_heap`]).

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
    /// Three non-empty heaps (k = 3).
    Three,
}

impl Leaves {
    /// The number of heaps (k).
    #[must_use]
    pub fn heaps(self) -> u64 {
        match self {
            Leaves::Nothing => 0,
            Leaves::One => 1,
            Leaves::Two { .. } => 2,
            Leaves::Three => 3,
        }
    }
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

/// A move with k = 2, in the form that the solvers use; also the options of a move with k = 3 that have the same
/// smallest part ([`Rule::triples`]).
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

/// A move with k = 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Triple {
    /// Number of tokens removed (s).
    pub remove: u64,
    /// The constant XORed to the values of the three heaps (c).
    pub constant: u16,
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
    /// The moves with k = 3.
    triples: Vec<Triple>,
    /// The largest heap all of whose moves are listed; `None` for a finite rule.
    largest_heap: Option<u64>,
}

/// The moves that remove `first` to `last` tokens, leave one heap or none, and XOR the same constant. Nim has 131072
/// moves with k = 0 or 1, which are two of these.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Removals {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) constant: u16,
    pub(crate) leaves_one: bool,
}

/// The moves with k = 2.
fn splits(moves: &[Move]) -> Vec<Split> {
    let split = |m: &Move| match m.leaves {
        Leaves::Two { min_difference } => Some(Split { remove: m.remove, constant: m.constant, min_difference }),
        Leaves::Nothing | Leaves::One | Leaves::Three => None,
    };
    moves.iter().filter_map(split).collect()
}

/// The moves with k = 3.
fn triples(moves: &[Move]) -> Vec<Triple> {
    let three = moves.iter().filter(|m| m.leaves == Leaves::Three);
    three.map(|m| Triple { remove: m.remove, constant: m.constant }).collect()
}

/// Groups the moves with k = 0 or 1.
fn removals(moves: &[Move]) -> Vec<Removals> {
    let singles = moves.iter().filter(|m| m.leaves.heaps() < 2);
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

/// Maximum number of tokens that a listed move of a rule without a bound removes: the size of the first heap whose
/// value in Nim does not fit 16 bits.
pub(super) const LISTED: u64 = 1 << 16;

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
        let (removals, splits, triples) = (removals(&moves), splits(&moves), triples(&moves));
        Ok(Rule { name: name.into(), moves, removals, splits, triples, largest_heap: None })
    }

    /// A rule without a bound on the tokens that a move removes; `moves` are those that remove up to [`LISTED`].
    pub(super) fn unbounded(name: impl Into<String>, moves: Vec<Move>) -> Result<Rule> {
        Ok(Rule { largest_heap: Some(LISTED), ..Rule::from_moves(name, moves)? })
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
        let removals = 1..=LISTED;
        let moves = removals
            .flat_map(|remove| [Leaves::Nothing, Leaves::One].map(|leaves| Move { remove, constant: 0, leaves }));
        Rule::unbounded(NIM, moves.collect()).expect("every move removes a token")
    }

    /// Whether this rule is [`Rule::nim`].
    #[must_use]
    pub fn is_nim(&self) -> bool {
        self.name == NIM && *self == Rule::nim()
    }

    /// The canonical name: `grundy`, `grundy:d=2`, `0.77`, `4.3`, `0.F`, `4.(3)`, `remove-a-square`, `nim`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the name is the canonical name of a game with these moves. [`Rule::from_moves`] accepts any name, but
    /// run directories and certificates contain only the name, which their readers parse.
    ///
    /// ```
    /// use grundy::theory::rule::Rule;
    /// let kayles: Rule = "kayles".parse()?;
    /// let mine = Rule::from_moves("mine", kayles.moves().to_vec())?;
    /// assert_eq!((kayles.is_named(), mine.is_named()), (true, false));
    /// # Ok::<(), grundy::Error>(())
    /// ```
    #[must_use]
    pub fn is_named(&self) -> bool {
        self.name.parse::<Rule>().is_ok_and(|named| (named.name(), named.digest()) == (self.name(), self.digest()))
    }

    /// The moves, sorted, each once.
    #[must_use]
    pub fn moves(&self) -> &[Move] {
        &self.moves
    }

    /// BLAKE3 of the moves, hexadecimal: each listed move is one line `s c k d`, in the order of [`Rule::moves`]. Where
    /// moves that remove more tokens are not listed, the line `above N` follows, where N is [`Rule::largest_heap`]. Two
    /// games with the same moves have the same digest.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for m in self.moves() {
            let d = if let Leaves::Two { min_difference } = m.leaves { min_difference } else { 0 };
            hasher.update(format!("{} {} {} {d}\n", m.remove, m.constant, m.leaves.heaps()).as_bytes());
        }
        if let Some(largest) = self.largest_heap {
            hasher.update(format!("above {largest}\n").as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// The moves that leave one heap or none, as runs of consecutive removals.
    pub(crate) fn removals(&self) -> &[Removals] {
        &self.removals
    }

    /// The moves that leave two heaps, by the tokens that they remove.
    pub fn splits(&self) -> impl Iterator<Item = Split> + '_ {
        self.splits.iter().copied()
    }

    /// The moves that leave three heaps, by the tokens that they remove.
    ///
    /// If a is the smallest of three heaps a + b + e = n - s, the other two are an option of the split that removes
    /// s + a tokens and XORs c ^ G(a); and a <= (n - s)/3.
    pub fn triples(&self) -> impl Iterator<Item = Triple> + '_ {
        self.triples.iter().copied()
    }

    /// The largest heap whose value can be computed, all of whose moves are listed; `None` if there is no largest one.
    ///
    /// ```
    /// use grundy::theory::rule::Rule;
    /// assert_eq!("lasker".parse::<Rule>()?.largest_heap(), Some(65536));
    /// assert_eq!("kayles".parse::<Rule>()?.largest_heap(), None);
    /// # Ok::<(), grundy::Error>(())
    /// ```
    #[must_use]
    pub fn largest_heap(&self) -> Option<u64> {
        self.largest_heap
    }

    /// Checks that all moves of a heap of `n` are listed.
    ///
    /// # Errors
    /// [`Error::Unlisted`] if n exceeds [`Rule::largest_heap`]; [`Error::ValueTooLarge`] in Nim.
    pub fn check_heap(&self, n: u64) -> Result<()> {
        match self.largest_heap {
            Some(largest) if n > largest && self.is_nim() => Err(Error::ValueTooLarge { n: u64::from(u16::MAX) + 1 }),
            Some(largest) if n > largest => Err(Error::Unlisted { n, largest }),
            _ => Ok(()),
        }
    }

    /// Whether a move leaves two heaps or more.
    #[must_use]
    pub fn has_splits(&self) -> bool {
        !self.splits.is_empty() || !self.triples.is_empty()
    }

    /// Whether the sparse-space method applies: a move leaves two heaps, none leaves three, and all moves are listed.
    #[must_use]
    pub fn may_be_sparse(&self) -> bool {
        !self.splits.is_empty() && self.triples.is_empty() && self.largest_heap.is_none()
    }

    /// About the number of options of a heap of `n`, as a measure of work; at most 2^64 - 1.
    #[must_use]
    pub fn options_about(&self, n: u64) -> u64 {
        let singles = (self.moves.len() - self.splits.len() - self.triples.len()) as u64;
        let pairs = (self.splits.len() as u64).min(n).saturating_mul(n / 2);
        // A heap of n divides into three in n²/12 ways, rounded.
        let triples = (self.triples.len() as u64).min(n).saturating_mul(n.saturating_mul(n) / 12);
        singles.min(n).saturating_add(pairs).saturating_add(triples)
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

    /// The greatest number of tokens that a listed move removes; 0 without moves.
    #[must_use]
    pub fn max_remove(&self) -> u64 {
        self.moves.iter().map(|m| m.remove).max().unwrap_or(0)
    }

    /// The greatest number of heaps that a move leaves; 0 without moves.
    #[must_use]
    pub fn max_heaps(&self) -> u64 {
        self.moves.iter().map(|m| m.leaves.heaps()).max().unwrap_or(0)
    }

    /// The greatest difference that a split requires; 0 without splits.
    #[must_use]
    pub fn max_difference(&self) -> u64 {
        self.splits().map(|s| s.min_difference).max().unwrap_or(0)
    }

    /// The name as a directory, of ASCII letters, digits, points, hyphens and underscores: `grundy:d=2` becomes
    /// `grundy-d2`, and `4.(3)` becomes `4.r3`. Of a name with other characters or of more than 100, up to a hundred
    /// characters and a hash.
    #[must_use]
    pub fn directory_name(&self) -> String {
        const LONGEST: usize = 100;
        let name = self.name.replace(":d=", "-d").replace('(', "r").replace(')', "");
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if name.len() <= LONGEST && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(is_plain)
        {
            return name;
        }
        let start: String = name.chars().filter(|&c| is_plain(c)).take(LONGEST).collect();
        let start = start.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
        format!("{}-{}", if start.is_empty() { "game" } else { start }, blake3::hash(name.as_bytes()).to_hex())
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests;

//! Plays sums of heaps: computes the nim-value of a position and every winning move.
//!
//! A position is a list of heaps, each of its own game: a rule of a heap game, or Nim, where a heap of x has
//! value x and a move takes any number of tokens (which is not a rule of the normal form, because it has no bound on
//! the tokens removed). The value of the position is the nim-sum of the values of its heaps, and the player to move
//! at value 0 loses (P. M. Grundy, *Mathematics and Games*, Eureka 2, 1939, who calls such a position won, namely for
//! the player who moved to it). So a move in a heap of value g wins if and only if its option has the value
//! total ^ g. There is one whenever the total is not 0, by the digital-sum theorem: some heap has total ^ g < g, and
//! by the mex it has an option of that value.
//!
//! Every option of every heap is tested, splits included, in the order of heaps, tokens taken, constants, heaps left,
//! smallest part. Moves of a rule that lead to the same heaps count as one. Splits that take the same number and XOR
//! the same constant differ only in their least difference, so the one with the smallest least difference has all of
//! them; and each pair of parts is tested once, as smaller and larger part.

use crate::error::{Error, Result};
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::rule::{Leaves, Rule};
use std::ops::RangeInclusive;

/// The game of a heap.
#[derive(Clone, Copy)]
pub enum Game<'a> {
    /// Nim: a move takes any number of tokens, at least one.
    Nim,
    /// A heap game; `values` must be those of `rule`, and reach the heaps of the position.
    Heap {
        /// The rule.
        rule: &'a Rule,
        /// The values G(0), G(1), … of the rule.
        values: &'a dyn Sequence,
    },
}

/// One heap of a position.
#[derive(Clone, Copy)]
pub struct Heap<'a> {
    /// The game of the heap.
    pub game: Game<'a>,
    /// Number of tokens.
    pub size: u64,
}

impl Heap<'_> {
    /// Returns the nim-value of the heap.
    ///
    /// # Errors
    /// Errors of reading the values.
    pub fn value(&self) -> Result<u64> {
        match self.game {
            Game::Nim => Ok(self.size),
            Game::Heap { values, .. } => Ok(one(values, self.size)?.into()),
        }
    }
}

/// A winning move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Winning {
    /// Index of the heap that the move changes, from 0.
    pub heap: usize,
    /// Number of tokens of this heap before the move.
    pub from: u64,
    /// The heaps left of it, ascending, 0 for none: `[0, 0, 0]`, `[0, 0, b]`, `[0, a, b]` or `[a, b, c]`.
    pub left: [u64; 3],
    /// The constant of the move: the value of what it leaves besides heaps (remove-a-square: a lone cell, 1).
    pub constant: u16,
}

impl Winning {
    /// Returns the heaps that are left: up to three.
    pub fn parts(&self) -> impl Iterator<Item = u64> {
        self.left.into_iter().filter(|&part| part > 0)
    }

    /// Returns the number of tokens taken.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.from - self.left.iter().sum::<u64>()
    }
}

/// Returns the nim-value of a position, which is 0 when the player to move loses.
///
/// # Errors
/// Errors of reading the values, such as [`Error::Range`] for a heap beyond them.
pub fn value(position: &[Heap<'_>]) -> Result<u64> {
    position.iter().try_fold(0, |sum, heap| Ok(sum ^ heap.value()?))
}

/// Number of pairs of parts read at a time.
const PAIRS_PER_READ: u64 = 1 << 16;

/// Calls `see` for every winning move of a position, each once, in the order of the module head; for none when the
/// position is lost.
///
/// # Errors
/// Errors of reading the values, those for values that do not exist before the first call of `see`; and errors of
/// `see`.
pub fn winning_moves<E: From<Error>>(
    position: &[Heap<'_>],
    mut see: impl FnMut(Winning) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    for heap in position {
        if let Game::Heap { values, .. } = heap.game {
            values.require(0, heap.size.saturating_add(1)).map_err(|error| error.for_heap(heap.size))?;
        }
    }
    let total = value(position)?;
    if total == 0 {
        return Ok(());
    }
    for (number, heap) in position.iter().enumerate() {
        let target = total ^ heap.value()?;
        let mut win = |left, constant| see(Winning { heap: number, from: heap.size, left, constant });
        match (heap.game, u16::try_from(target)) {
            (Game::Nim, _) if target < heap.size => win([0, 0, target], 0)?,
            (Game::Heap { rule, values }, Ok(target)) => options_of_value(rule, values, heap.size, target, win)?,
            // No heap game of this program has a value above 65535.
            (Game::Nim, _) | (Game::Heap { .. }, Err(_)) => {}
        }
    }
    Ok(())
}

/// Calls `see(left, constant)` for every option of a heap of `n` that has the value `target`.
fn options_of_value<E: From<Error>>(
    rule: &Rule,
    values: &dyn Sequence,
    n: u64,
    target: u16,
    mut see: impl FnMut([u64; 3], u16) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let mut split_before = None;
    for m in rule.moves() {
        let Some(left) = n.checked_sub(m.remove) else { continue };
        match m.leaves {
            Leaves::Nothing if left == 0 && m.constant == target => see([0, 0, 0], m.constant)?,
            Leaves::One if left > 0 && m.constant ^ one(values, left)? == target => see([0, 0, left], m.constant)?,
            // Moves are sorted, so of splits that differ only in their least difference the one with the smallest
            // comes first.
            Leaves::Two { min_difference } if split_before != Some((m.remove, m.constant)) => {
                split_before = Some((m.remove, m.constant));
                let parts = 1..=left.saturating_sub(min_difference) / 2;
                splits_of_value(values, left, parts, m.constant ^ target, |a| see([0, a, left - a], m.constant))?;
            }
            Leaves::Three => {
                for a in 1..=left / 3 {
                    let (rest, wanted) = (left - a, m.constant ^ target ^ one(values, a)?);
                    splits_of_value(values, rest, a..=rest / 2, wanted, |b| see([a, b, rest - b], m.constant))?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Calls `see(a)` for every a of `parts` with G(a) ^ G(left - a) = `wanted`, ascending.
fn splits_of_value<E: From<Error>>(
    values: &dyn Sequence,
    left: u64,
    parts: RangeInclusive<u64>,
    wanted: u16,
    mut see: impl FnMut(u64) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let (mut first, last) = parts.into_inner();
    while first <= last {
        let end = last.min(first + PAIRS_PER_READ - 1);
        let length = index(end - first + 1);
        let (mut small, mut large) = (vec![0; length], vec![0; length]);
        values.read(first, &mut small)?;
        values.read(left - end, &mut large)?;
        for (a, (small, large)) in (first..).zip(small.iter().zip(large.iter().rev())) {
            if small ^ large == wanted {
                see(a)?;
            }
        }
        first = end + 1;
    }
    Ok(())
}

fn one(values: &dyn Sequence, n: u64) -> Result<u16> {
    let mut value = [0];
    values.read(n, &mut value)?;
    Ok(value[0])
}

//! The sequence that a check compares with the right values.

use crate::error::{Error, Result};
use crate::solver::{SequenceStats, SparseSpace};
use crate::theory::definition::Sequence;
use crate::theory::rule::Rule;

/// A sequence to be checked, with its sparse space and statistics.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The rule of the game.
    pub rule: &'a Rule,
    /// The sparse space that decides which positions are rare, or [`SparseSpace::NONE`].
    pub space: SparseSpace,
    /// The values G(0), G(1), …
    pub values: &'a dyn Sequence,
    /// Rare positions and largest value of the whole sequence under `space`, discarded values included.
    pub stats: &'a SequenceStats,
}

/// Compares a value of the table with the right one.
pub(super) fn compare(n: u64, found: u16, expected: u16) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::Wrong { n, found: found.into(), expected: expected.into() })
}

//! Review of the sparse space: when the solver searches a better one, and when it adopts it.
//!
//! A review is due whenever the sequence has doubled, or the number of rare positions has grown by a quarter and 64. It
//! finds the best space by the histogram of all values ([`Histogram::best_space`]). A first space is adopted when it
//! has at most one rare position per [`WORTH`] values; a later one when it has less than four fifths of the rare
//! positions. A solver without a space enters the built-in space of a named game at the first review.
//!
//! Invariant: the space never changes while candidates wait for their witnesses, nor once values are discarded.

use super::engine::Engine;
use super::{BOOTSTRAP, Histogram, Method, Solver, SparseSpace};
use crate::error::Result;
use crate::theory::definition::Sequence;

/// Minimum number of values per rare position in a space that is worth using.
const WORTH: u64 = 8;

/// The largest value, exclusive, up to which the built-in space of a named game is not reviewed.
const BUILT_IN_BELOW: u16 = 512;

/// What decides when the space is reviewed.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpaceReview {
    /// Whether the space is the built-in space of a named game, which is not reviewed while all values are below
    /// [`BUILT_IN_BELOW`].
    pub(super) built_in: bool,
    /// Whether the space is never reviewed ([`Solver::with_fixed_space`]).
    pub(super) fixed: bool,
    /// The length of the sequence at which the next review is due.
    pub(super) due_at: u64,
    /// The number of rare positions at the last review.
    pub(super) rare_positions: u64,
}

impl Solver {
    /// Searches a better space when a review is due.
    pub(super) fn review<S: Sequence + ?Sized>(&mut self, past: &S) -> Result<()> {
        let n = past.len();
        let rare_positions = match &self.engine {
            Engine::Sparse(streams) if !streams.block.is_empty() => return Ok(()),
            Engine::Sparse(streams) => streams.candidates.rare_positions().len() as u64,
            Engine::Definition(_) | Engine::Exhaustive(_) => n,
        };
        let sparse = matches!(self.engine, Engine::Sparse(_));
        let grown = sparse && rare_positions > self.review.rare_positions + self.review.rare_positions / 4 + 64;
        // Once values are discarded the space must stay: the rare positions among them under another space are unknown.
        let freed = !past.discarded().is_empty();
        let keeps_built_in = self.review.built_in && self.max_value < BUILT_IN_BELOW;
        let keep_space = sparse && (self.review.fixed || freed || keeps_built_in);
        if keep_space || self.method == Method::Definition || (n < self.review.due_at && !grown) {
            return Ok(());
        }
        self.review.due_at = (2 * n).max(BOOTSTRAP);
        self.review.rare_positions = rare_positions;
        if self.review.built_in && !sparse {
            self.engine = self.enter_space(past)?;
            return Ok(());
        }
        let (best, fewest) = Histogram::of(past)?.best_space(&self.rule);
        let better = if sparse { fewest * 5 < rare_positions * 4 } else { fewest * WORTH <= n };
        if better && best != SparseSpace::NONE {
            self.space = best;
            self.review.rare_positions = fewest;
            self.engine = self.enter_space(past)?;
        }
        Ok(())
    }
}

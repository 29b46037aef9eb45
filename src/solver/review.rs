//! Review of the sparse space.

use super::{BOOTSTRAP, Engine, Histogram, Method, Solver, SparseSpace};
use crate::error::Result;
use crate::theory::definition::Sequence;

/// Minimum number of values per rare position in a space that is worth using.
const WORTH: u64 = 8;

impl Solver {
    /// Searches a better space when a review is due.
    pub(super) fn review<S: Sequence + ?Sized>(&mut self, past: &S) -> Result<()> {
        let n = past.len();
        let rares = match &self.engine {
            Engine::Sparse(streams) if !streams.block.is_empty() => return Ok(()),
            Engine::Sparse(streams) => streams.candidates.rares().len() as u64,
            Engine::Definition(_) | Engine::Dense(_) => n,
        };
        let sparse = matches!(self.engine, Engine::Sparse(_));
        let grown = sparse && rares > self.rares_at_review + self.rares_at_review / 4 + 64;
        // Once values are discarded the space must stay: the rare positions among them under another space are unknown.
        let freed = !past.freed().is_empty();
        let keep_space = sparse && (self.fixed || freed || (self.built_in && self.max_value < 512));
        if keep_space || self.method == Method::Definition || (n < self.next_review && !grown) {
            return Ok(());
        }
        self.next_review = (2 * n).max(BOOTSTRAP);
        self.rares_at_review = rares;
        if self.built_in && !sparse {
            self.engine = self.enter_space(past)?;
            return Ok(());
        }
        let (best, fewest) = Histogram::of(past)?.best_space(&self.rule);
        let better = if sparse { fewest * 5 < rares * 4 } else { fewest * WORTH <= n };
        if better && best != SparseSpace::NONE {
            self.space = best;
            self.rares_at_review = fewest;
            self.engine = self.enter_space(past)?;
        }
        Ok(())
    }
}

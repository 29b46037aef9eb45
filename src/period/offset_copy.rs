//! A copy of a sequence, computed again by a solver that retains the first and the last of its values. A preperiod is
//! found by two copies, one period apart.

use crate::error::Result;
use crate::run::ProofSummary;
use crate::solver::ends::{Ends, LOOKBACKS_RETAINED};
use crate::solver::{Method, SequenceStats, Solver, SparseSpace};
use crate::theory::definition::Sequence;
use crate::theory::rule::Rule;

/// A copy of a sequence that is computed again.
pub(super) struct OffsetCopy {
    solver: Solver,
    pub(super) values: Ends,
    /// The values of the last batch.
    pub(super) fresh: Vec<u16>,
}

impl OffsetCopy {
    pub(super) fn new(rule: &Rule, method: Method, head: u64) -> Result<OffsetCopy> {
        let values = Ends::new(head);
        Ok(OffsetCopy { solver: Solver::new(rule, method, None, &values)?, values, fresh: Vec::new() })
    }

    /// A copy that continues after the `first` values of a sequence and its `last` values, which begin at n = `from`;
    /// `known` describes the values between them.
    pub(super) fn resuming(
        rule: &Rule,
        method: Method,
        space: SparseSpace,
        (first, from, last): (Vec<u16>, u64, Vec<u16>),
        known: &SequenceStats,
    ) -> Result<OffsetCopy> {
        let values = Ends::of(first, from, last);
        let solver = Solver::knowing(rule, method, Some(space), &values, known)?.with_fixed_space();
        Ok(OffsetCopy { solver, values, fresh: Vec::new() })
    }

    pub(super) fn len(&self) -> u64 {
        self.values.len()
    }

    /// Computes one batch, to at most `to`, and keeps at least the last `keep` values. Returns the first new n;
    /// the batch is in `fresh`.
    pub(super) fn advance(&mut self, to: u64, keep: u64) -> Result<u64> {
        let from = self.len();
        self.fresh.clear();
        self.solver.advance(&self.values, to, &mut self.fresh)?;
        self.values.push(&self.fresh)?;
        if let Some(needed) = self.solver.lookback() {
            self.values.free(needed.saturating_mul(LOOKBACKS_RETAINED).max(keep));
        }
        Ok(from)
    }

    /// Checks the memory of the solver ([`Solver::check_memory`]).
    pub(super) fn check_memory(&self) -> Result<()> {
        self.solver.check_memory(&self.values)
    }

    /// Returns the summary of how the last batch was proved.
    pub(super) fn proof(&mut self) -> ProofSummary {
        let (rares, last_rare) = self.solver.count_rare_positions(self.len());
        ProofSummary { space: self.solver.space(), rares, last_rare, depth: self.solver.take_depth() }
    }
}

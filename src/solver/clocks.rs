//! The clocks by which a stream learns.
//!
//! A stream makes three choices, which change its speed but no value. Each choice is due again after a number of
//! values ([`cost`] has the numbers):
//!
//! ```text
//! choice           due again after             because
//! learn            four times the length, or   an order of lookups degrades over hundreds of millions of values
//!                  2^27 values, or earlier
//!                  when threads should share
//!                  fewer lookups or none
//! rebalance        2^20 values, or earlier     large values come in bursts, in which more codes stay open
//!                  when the values change
//! reconsider       2^17 values                 bursts change how many codes the answers need
//! ```
//!
//! To *learn* is to choose the order of the lookups, and whether threads share them; to *rebalance* is to choose the
//! budget, that is, how many of them are marked and how many are checked; to *reconsider* is to choose the number of
//! codes.

use super::cost;
use super::lookup_order;

/// The ends of the sequence at which a stream last made each of its choices; 0 before the first time, and for an
/// order that is due at once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LearningClocks {
    learnt_at: u64,
    rebalanced_at: u64,
    reconsidered_at: u64,
}

impl LearningClocks {
    /// Whether a new order is due when the sequence ends at `n`; never before `least`.
    pub(super) fn is_learning_due(&self, n: u64, least: u64) -> bool {
        n >= lookup_order::next_learning(self.learnt_at).max(least)
    }

    /// Whether a new budget is due when the sequence ends at `n`.
    pub(super) fn is_rebalancing_due(&self, n: u64) -> bool {
        n >= self.rebalanced_at + cost::REBALANCE_INTERVAL_VALUES
    }

    /// Whether a new number of codes is due when the sequence ends at `n`.
    pub(super) fn is_reconsidering_due(&self, n: u64) -> bool {
        n >= self.reconsidered_at + cost::RECONSIDER_INTERVAL_VALUES
    }

    /// Makes a new order due.
    pub(super) fn forget_order(&mut self) {
        self.learnt_at = 0;
    }

    /// Whether the stream has learnt an order.
    pub(super) fn has_learnt(&self) -> bool {
        self.learnt_at > 0
    }

    /// Notes that the stream has learnt an order of the lookups from the values before `n`.
    pub(super) fn learnt(&mut self, n: u64) {
        self.learnt_at = n;
    }

    /// Notes that the stream has chosen its budget from the values before `n`.
    pub(super) fn rebalanced(&mut self, n: u64) {
        self.rebalanced_at = n;
    }

    /// Notes that the stream has chosen the number of codes from the values before `n`.
    pub(super) fn reconsidered(&mut self, n: u64) {
        self.reconsidered_at = n;
    }

    /// Takes the clocks back to `end`, to which the stream is truncated.
    pub(super) fn truncate(&mut self, end: u64) {
        self.learnt_at = self.learnt_at.min(end);
        self.rebalanced_at = self.rebalanced_at.min(end);
        self.reconsidered_at = self.reconsidered_at.min(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_fall_due_and_go_back_with_the_stream() {
        let mut clocks = LearningClocks::default();
        assert!(!clocks.is_learning_due(9999, 10_000) && clocks.is_learning_due(10_000, 10_000));
        assert!(!clocks.has_learnt());
        clocks.learnt(10_000);
        clocks.rebalanced(10_000);
        clocks.reconsidered(10_000);
        assert!(clocks.has_learnt());
        assert!(!clocks.is_learning_due(39_999, 0) && clocks.is_learning_due(40_000, 0));
        let rebalance_at = 10_000 + cost::REBALANCE_INTERVAL_VALUES;
        assert!(!clocks.is_rebalancing_due(rebalance_at - 1) && clocks.is_rebalancing_due(rebalance_at));
        let reconsider_at = 10_000 + cost::RECONSIDER_INTERVAL_VALUES;
        assert!(!clocks.is_reconsidering_due(reconsider_at - 1) && clocks.is_reconsidering_due(reconsider_at));
        clocks.truncate(5000);
        assert!(clocks.is_learning_due(20_000, 0) && clocks.is_rebalancing_due(rebalance_at - 5000));
        clocks.forget_order();
        assert!(!clocks.has_learnt() && clocks.is_learning_due(5000, 5000) && !clocks.is_learning_due(4999, 5000));
        clocks.learnt(1 << 30);
        let learn_at = (1 << 30) + cost::LEARN_INTERVAL_VALUES;
        assert!(!clocks.is_learning_due(learn_at - 1, 0) && clocks.is_learning_due(learn_at, 0));
    }
}

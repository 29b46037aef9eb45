//! One of the two copies: a solver that retains the first and the last of its values.

use crate::error::Result;
use crate::run::ProofSummary;
use crate::solver::{Method, Solver};
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::rule::Rule;
use std::ops::Range;

/// Minimum number of values that a copy drops at once, which keeps moving the others down cheap.
pub(super) const MIN_DROPPED: u64 = 1 << 22;

/// The first and the last values of a sequence.
pub(super) struct Ends {
    /// The first values, at most `most` of them.
    pub(super) head: Vec<u16>,
    /// The n of the first value of `last`.
    pub(super) start: u64,
    /// The last values.
    pub(super) last: Vec<u16>,
    /// Maximum number of values in `head`.
    pub(super) most: u64,
}

impl Ends {
    pub(super) fn push(&mut self, values: &[u16]) {
        let room = index(self.most - self.head.len() as u64).min(values.len());
        let (first, rest) = values.split_at(room);
        self.head.extend_from_slice(first);
        self.start = self.start.max(self.head.len() as u64);
        self.last.extend_from_slice(rest);
    }

    /// Drops the values that are neither in `head` nor among the last `keep`, when there are enough of them.
    pub(super) fn free(&mut self, keep: u64) {
        let dead = (self.last.len() as u64).saturating_sub(keep);
        if dead >= MIN_DROPPED.min(self.most).max(keep / 2) {
            self.last.drain(..index(dead));
            self.start += dead;
        }
    }
}

impl Sequence for Ends {
    fn len(&self) -> u64 {
        self.start.max(self.head.len() as u64) + self.last.len() as u64
    }

    fn discarded(&self) -> Range<u64> {
        let head = self.head.len() as u64;
        if self.start > head { head..self.start } else { 0..0 }
    }

    fn read(&self, from: u64, out: &mut [u16]) -> Result<()> {
        self.require(from, from.saturating_add(out.len() as u64))?;
        let (first, rest) =
            out.split_at_mut(index((self.head.len() as u64).saturating_sub(from).min(out.len() as u64)));
        if !first.is_empty() {
            self.head.as_slice().read(from, first)?;
        }
        if rest.is_empty() { Ok(()) } else { self.last.as_slice().read(from.max(self.start) - self.start, rest) }
    }
}

/// One of the two copies.
pub(super) struct Copy {
    solver: Solver,
    pub(super) values: Ends,
    pub(super) fresh: Vec<u16>,
}

impl Copy {
    pub(super) fn new(rule: &Rule, method: Method, head: u64) -> Result<Copy> {
        let values = Ends { head: Vec::new(), start: 0, last: Vec::new(), most: head };
        Ok(Copy { solver: Solver::new(rule, method, None, &values)?, values, fresh: Vec::new() })
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
        self.values.push(&self.fresh);
        if let Some(needed) = self.solver.lookback() {
            self.values.free(needed.saturating_mul(2).max(keep));
        }
        Ok(from)
    }

    /// Returns the summary of how the last batch was proved.
    pub(super) fn proof(&mut self) -> ProofSummary {
        let (rares, last_rare) = self.solver.count_rare_positions(self.len());
        ProofSummary { space: self.solver.space(), rares, last_rare, depth: self.solver.take_depth() }
    }
}

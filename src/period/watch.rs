//! Watches a run for a period, when the run retains only its last values.
//!
//! As in Brent's cycle detection (*An improved Monte Carlo factorization algorithm*, BIT 20, 1980), the watch
//! remembers the last values before some n1, its window, and compares every later end of the sequence with it. It
//! takes a window as soon as there are enough values, and replaces it at each power of two. When the W values before n2
//! equal those before n1, no rare position occurred in between, and n1 and the window are large enough for the depth of
//! the witnesses, P4 of [`super::theorems`] proves that n2 - n1 is a period from n1 on. It is the least period: a
//! smaller one would have shown the same window sooner. Without a sparse space there is no window.
//!
//! The cost is a copy of the values, and a search for the last [`NEEDLE`] values of the window among them. When a run
//! is stopped, its window is saved ([`super::watch_state`]). A run that was killed takes a new window when it is
//! resumed, and then finds the period one period later.
//!
//! Invariant: from n1 to the last value seen every n is common, and `depth` bounds the depth of its witnesses.

use super::mark::{Mark, NEEDLE};
use super::{PeriodWindow, Proof, Repeat, Theorem, watch_state};
use crate::error::{Error, Result};
use crate::run::{ProofSummary, RunReader};
use crate::solver::{self, SparseSpace};
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::rule::Rule;
use std::path::Path;

/// Number of values, beyond two windows, that a resumed watch reads again. It exceeds the number that a run computes
/// after its watch has found the period.
const SEEN_AGAIN: u64 = 1 << 20;

/// Receives the values of a run and searches them for a period.
pub(super) struct Watch {
    pub(super) rule: Rule,
    /// The last values seen.
    recent: Vec<u16>,
    /// One past the last n seen.
    end: u64,
    mark: Option<Mark>,
    /// The first period that P4 proved.
    pub(super) found: Option<Repeat>,
}

impl Watch {
    pub(super) fn new(rule: &Rule) -> Watch {
        Watch { rule: rule.clone(), recent: Vec::new(), end: 0, mark: None, found: None }
    }

    /// Returns n1 and the window before it, as remembered now.
    pub(super) fn mark_now(&self) -> Option<(u64, &[u16])> {
        self.mark.as_ref().map(|mark| (mark.n1, mark.window.as_slice()))
    }

    /// Creates a watch that continues where a run was stopped, from the saved state.
    ///
    /// # Errors
    /// [`Error::Memory`], and errors of reading the last values.
    pub(super) fn resume(rule: &Rule, dir: &Path, view: &RunReader) -> Result<Watch> {
        let end = view.len();
        let mut watch = Watch { end, ..Watch::new(rule) };
        if view.space() == SparseSpace::NONE {
            return Ok(watch);
        }
        let wide = solver::lookback(rule, view.contents.last.last_rare);
        // Far enough back to find again a period that was found just before the stop.
        let start = end.saturating_sub(wide.saturating_mul(2).saturating_add(SEEN_AGAIN)).max(view.discarded().end);
        let length = index(end - start);
        let bytes = 2 * (end - start);
        watch.recent.try_reserve_exact(length).map_err(|_| Error::Memory { what: "the last values", bytes })?;
        watch.recent.resize(length, 0);
        view.read(start, &mut watch.recent)?;
        watch.mark = watch_state::read(dir, view);
        watch.compare(watch.recent.len());
        Ok(watch)
    }

    /// Saves the mark for [`Watch::resume`], if the watch has seen all values of the run.
    ///
    /// # Errors
    /// Errors of writing the file.
    pub(super) fn write_down(&self, dir: &Path, view: &RunReader) -> Result<()> {
        match &self.mark {
            Some(mark) if self.end == view.len() => watch_state::write(dir, view, mark),
            _ => Ok(()),
        }
    }

    /// Receives the values of `from..from + values.len()`, and the summary of how they were proved.
    pub(super) fn see(&mut self, from: u64, values: &[u16], proof: &ProofSummary) {
        if from != self.end {
            // The run was opened again.
            self.recent = Vec::new();
            self.mark = None;
        }
        self.end = from;
        if proof.space == SparseSpace::NONE {
            (self.recent, self.mark, self.end) = (Vec::new(), None, from + values.len() as u64);
            return;
        }
        let wide = solver::lookback(&self.rule, proof.last_rare);
        if let Some(mark) = &mut self.mark {
            mark.proof.depth = mark.proof.depth.max(proof.depth);
            if mark.proof != (ProofSummary { depth: mark.proof.depth, ..*proof }) {
                self.mark = None; // another space, or a new rare position
            }
        }
        let mut rest = values;
        while !rest.is_empty() {
            // Up to the next power of two.
            let next = (self.end + 1).next_power_of_two();
            let (piece, later) = rest.split_at(index(next - self.end).min(rest.len()));
            self.take(piece);
            rest = later;
            if self.found.is_some() {
                continue; // the found period stays, and so does its window
            }
            self.compare(piece.len());
            let due = self.mark.is_none() || self.end == next;
            if due && proof.last_rare < self.end && self.found.is_none() {
                self.mark(wide, proof);
            }
        }
        let keep = index(wide);
        if self.recent.len() > 4 * keep + (1 << 20) {
            self.recent.drain(..self.recent.len() - keep);
        }
    }

    fn take(&mut self, piece: &[u16]) {
        self.recent.extend_from_slice(piece);
        self.end += piece.len() as u64;
    }

    /// Takes the last `wide` values as the window, when there are enough of them.
    fn mark(&mut self, wide: u64, proof: &ProofSummary) {
        let Some(start) = self.recent.len().checked_sub(index(wide)) else { return };
        self.mark = Mark::new(self.end, *proof, self.recent[start..].to_vec());
    }

    /// Compares each of the last `fresh` ends of the sequence with the window.
    fn compare(&mut self, fresh: usize) {
        let Some(mark) = &self.mark else { return };
        let first = self.recent.len().saturating_sub(fresh + NEEDLE - 1);
        let low: Vec<u8> = self.recent[first..].iter().map(|v| v.to_le_bytes()[0]).collect();
        let mut from = 0;
        while let Some(at) = mark.needle.find(&low[from..]) {
            let end = first + from + at + NEEDLE; // in `recent`
            from += at + 1;
            let n2 = self.end - (self.recent.len() - end) as u64;
            let width = mark.window.len();
            if n2 <= mark.n1 || end < width || self.recent[end - width..end] != mark.window[..] {
                continue;
            }
            let ProofSummary { space, rares: rare_positions, last_rare, depth } = mark.proof;
            let window = PeriodWindow { from: mark.n1, to: n2, space, rare_positions, last_rare, depth };
            if !window.is_placed(&self.rule) || window.width(&self.rule) > width as u64 || last_rare >= mark.n1 {
                continue;
            }
            let proof =
                Proof { theorem: Theorem::P4, from: mark.n1, length: n2, window: Some(window), least: Vec::new() };
            let (period, preperiod) = (n2 - mark.n1, mark.n1);
            self.found = Some(Repeat { period, preperiod, exact: false, saltus: 0, proof: Some(proof) });
            return;
        }
    }
}

#[cfg(test)]
mod tests;

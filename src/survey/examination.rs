//! The examination of one game: how far its values are computed, and its record.

use super::extent::Extent;
use super::pace::Pace;
use super::record::{FORMAT, Record, nim};
use super::saved::Saved;
use crate::error::Result;
use crate::period::MemorySearch;
use crate::solver::{Method, SequenceStats, SparseSpace};
use crate::table::digest::DigestChain;
use crate::theory::rule::Rule;
use std::time::Instant;

/// Maximum number of values of a game with an observed period, as a multiple of the number of values of each game: it
/// is computed that far if this could prove the period.
pub(crate) const PROOF_FACTOR: u64 = 4;

/// A game that needs all pairs is examined to at least this number of values, or to [`Extent::to`] if that is less.
const ALL_PAIRS: u64 = 1 << 14;

/// Why [`Examination::advance`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The game is examined.
    Done,
    /// There are at least as many values as the caller asked for.
    Paused,
    /// The caller ended it; [`Examination::advance`] continues it.
    Interrupted,
}

/// The examination of one game.
pub(super) struct Examination {
    rule: Rule,
    extent: Extent,
    search: MemorySearch,
    /// The computing times so far.
    pub(super) pace: Pace,
    /// The number of values to examine as decided at the beginning of the step in progress.
    step_limit: Option<u64>,
    /// The number of values after which the time limit ends the examination, once that is known.
    limited_to: Option<u64>,
}

impl Examination {
    pub(super) fn new(rule: &Rule, method: Method, extent: Extent) -> Examination {
        let search = MemorySearch::new(rule, method);
        Examination { rule: rule.clone(), extent, search, pace: Pace::default(), step_limit: None, limited_to: None }
    }

    /// The examination of another game of the same family, whose first values are `values`. It ends at the length at
    /// which the time limit ended this examination.
    pub(super) fn of_equal(&self, rule: &Rule, method: Method, values: Vec<u16>) -> Examination {
        let search = MemorySearch::knowing(rule, method, values);
        let Examination { extent, limited_to, .. } = *self;
        Examination { rule: rule.clone(), extent, search, pace: Pace::default(), step_limit: None, limited_to }
    }

    /// Compares the values with those that were computed.
    ///
    /// # Errors
    /// [`Error::Flipped`](crate::error::Error::Flipped) when one has changed in memory.
    pub(super) fn check(&self) -> Result<()> {
        self.search.check()
    }

    /// The values examined so far.
    pub(super) fn values(&self) -> &[u16] {
        self.search.values()
    }

    /// Whether a failed check made the search begin again.
    pub(super) fn has_restarted(&self) -> bool {
        self.search.has_restarted()
    }

    /// Number of values that are known.
    pub(super) fn known(&self) -> u64 {
        self.search.known()
    }

    /// What another process needs to continue the examination.
    ///
    /// # Errors
    /// [`Error::Flipped`](crate::error::Error::Flipped) when a value has changed in memory.
    pub(super) fn saved(&self) -> Result<Saved<&[u16]>> {
        let Examination { rule, search, pace, .. } = self;
        search.check()?;
        Ok(Saved { game: rule.clone(), pace: *pace, values: search.known_values() })
    }

    /// Continues with saved values of this game, if these are more than it has.
    pub(super) fn resume(&mut self, method: Method, saved: Saved<Vec<u16>>) {
        if saved.values.len() as u64 > self.search.known() {
            self.search = MemorySearch::knowing(&self.rule, method, saved.values);
            self.pace = saved.pace;
        }
    }

    /// Flips a bit of G(n).
    #[cfg(test)]
    pub(super) fn flip(&mut self, n: usize) {
        self.search.flip(n);
    }

    /// Examines the game until it is done, there are `pause_at` values, or `go_on` returns false.
    pub(super) fn advance(&mut self, pause_at: u64, go_on: impl Fn() -> bool) -> Result<Progress> {
        if self.rule.is_nim() {
            return Ok(Progress::Done);
        }
        loop {
            let (count, known) = (self.search.count(), self.search.known());
            let limit = self.step_limit.unwrap_or_else(|| self.limit().max(known.min(self.extent.to)));
            if self.search.is_proved() || self.search.end().is_some() || (count >= limit && count > 0) {
                return Ok(Progress::Done);
            }
            let missing = limit.min(2 * count).saturating_sub(known);
            if self.step_limit.is_none() && missing > 0 && self.pace.would_exceed(self.extent.time_limit, missing) {
                self.limited_to = Some(count);
                return Ok(Progress::Done);
            }
            if count >= pause_at {
                self.search.pause();
                return Ok(Progress::Paused);
            }
            self.step_limit = Some(limit);
            let begun = Instant::now();
            let is_searched = self.search.look(limit, |_| go_on())?;
            if self.search.known() > known {
                self.pace.spend(begun.elapsed());
            }
            if !is_searched {
                return Ok(Progress::Interrupted);
            }
            self.step_limit = None;
            // After a failed check the search has begun again, with fewer values than before.
            if self.search.known() == self.search.count()
                && let Some(new) = self.search.count().checked_sub(count)
            {
                self.pace.end_step(new);
            }
        }
    }

    /// The number of values to examine, as far as the values so far tell. A game whose observed period can be proved
    /// with at most [`PROOF_FACTOR`] times `to` values is examined to the number that the proof needs. Another game
    /// with splits but without a sparse space is examined to an eighth of `to`, at least to [`ALL_PAIRS`], and never
    /// less far than it is now.
    fn limit(&self) -> u64 {
        let to = self.extent.to;
        let needs_pairs = self.search.space() == SparseSpace::NONE && self.rule.has_splits();
        let usual = match self.search.finding() {
            Some(found) if needs_pairs => to.min(found.count.max(to / 8).max(ALL_PAIRS)),
            _ => to,
        };
        let needed = self.search.finding().and_then(|found| found.needed(&self.rule));
        let limit = usual.max(needed.filter(|&needed| needed <= to.saturating_mul(PROOF_FACTOR)).unwrap_or(0));
        limit.min(self.limited_to.unwrap_or(u64::MAX))
    }

    /// The record of what was examined.
    pub(super) fn record(&self) -> Result<Record> {
        let Some(finding) = self.search.finding() else { return Ok(nim(self.extent.to)) };
        let (values, space) = (self.search.values(), self.search.space());
        let stats = SequenceStats::of(&values, space, &SequenceStats::default())?;
        let digest = if self.search.known() == finding.count {
            self.search.digest()
        } else {
            let mut chain = DigestChain::new();
            chain.update_in_parallel(values);
            chain.digest()
        };
        self.search.check()?;
        let sparse = space != SparseSpace::NONE;
        let repeat = finding.repeat.as_ref();
        let is_short = finding.count < self.extent.to && !self.search.is_proved();
        let is_limited = is_short && self.limited_to == Some(finding.count);
        let time_limit = self.extent.time_limit.filter(|_| is_limited);
        Ok(Record {
            format: FORMAT.into(),
            program: crate::PROGRAM.into(),
            game: self.rule.name().into(),
            to: self.extent.to,
            time_limit: time_limit.map(|limit| limit.as_secs()),
            status: finding.status(),
            period: repeat.map(|repeat| repeat.period),
            preperiod: repeat.map(|repeat| repeat.preperiod),
            saltus: repeat.map_or(0, |repeat| repeat.saltus),
            max_value: stats.max_value,
            max_at: stats.max_at,
            mask: space.mask,
            position: space.position,
            rares: sparse.then_some(stats.rare_positions.len() as u64),
            last_rare: sparse.then(|| stats.last_rare()),
            theorem: repeat.and_then(|repeat| repeat.proof.as_ref()).map(|proof| proof.theorem),
            checked_through: finding.count,
            digest: digest.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The search begins again with fewer values than the examination has seen.
    #[test]
    fn a_flipped_value_changes_no_record() {
        let rule: Rule = "0.16".parse().unwrap();
        let extent = Extent { to: 1 << 16, time_limit: None };
        let record = |flips: bool| {
            let mut examination = Examination::new(&rule, Method::default(), extent);
            assert!(matches!(examination.advance(1 << 14, || true).unwrap(), Progress::Paused));
            if flips {
                examination.search.flip(100);
            }
            assert!(matches!(examination.advance(u64::MAX, || true).unwrap(), Progress::Done));
            examination.record().unwrap()
        };
        assert_eq!(record(true), record(false));
        let mut examination = Examination::new(&rule, Method::default(), extent);
        examination.advance(1 << 14, || true).unwrap();
        examination.search.flip(100);
        assert!(examination.record().is_err() && examination.saved().is_err() && examination.check().is_err());
    }
}

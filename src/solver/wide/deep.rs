//! The search for pairs of any parts that give a value.
//!
//! Where few pairs give a value, consecutive positions often have pairs that share a part, whose value is infrequent: in
//! .143, one in six positions has a value that only pairs with one of some dozen parts far from both ends give. So the
//! search first tries the parts of the last pairs found.

use super::WideSolver;
use crate::error::Result;
use crate::fault;
use crate::solver::Work;
use crate::solver::witnesses::{HEAD_PARTS, Joined};
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::rule::Split;
use rayon::prelude::*;
use std::sync::OnceLock;

/// Maximum number of parts that are tried first.
const RECENT_PARTS: usize = 512;

/// Maximum number of tasks that one thread does by itself.
const FEW_TASKS: usize = 4;

/// Number of pairs that one task compares.
const TASK: u64 = 1 << 16;

/// Parts of pairs that were found, roughly those that gave most values first. They change no value, so they need no
/// checksum.
#[derive(Debug, Default)]
pub(super) struct DeepParts {
    recent: Vec<u64>,
}

impl DeepParts {
    /// Moves a part towards the front, or enters it.
    pub(super) fn note(&mut self, part: u64) {
        match self.recent.iter().position(|&recent| recent == part) {
            Some(place) => self.recent.swap(place, place / 2),
            None => {
                self.recent.truncate(RECENT_PARTS - 1);
                self.recent.push(part);
            }
        }
    }
}

/// Two deliberate faults, see fault.rs.
fn is_skipped(target: u16) -> bool {
    fault::is("use-unproved") || (fault::is("skip-large-targets") && target > 255)
}

impl WideSolver {
    /// The least of the values `open`, ascending, none of which a pair gives.
    pub(super) fn least_open(&self, open: &[u16]) -> Option<u16> {
        open.iter().copied().find(|&target| !is_skipped(target))
    }

    /// The least of the values `open`, ascending, that no pair of parts of the next position gives; `None` if pairs
    /// give all of them.
    ///
    /// # Errors
    /// Any error of reading `past`.
    pub(super) fn least_missing<S: Sequence + ?Sized>(
        &mut self,
        open: &[u16],
        past: &S,
        work: &mut Work,
    ) -> Result<Option<u16>> {
        let n = self.end();
        for &target in open {
            if is_skipped(target) {
                continue;
            }
            if let Some(part) = self.recent_pair(n, target) {
                work.depth = work.depth.max(part.min(n - part));
                self.deep.note(part);
                continue;
            }
            work.exhaustive_searches += 1;
            let pair = self.find_pair(n, target, past).map_err(|error| error.for_heap(n))?;
            let Some((part, other)) = pair else { return Ok(Some(target)) };
            work.depth = work.depth.max(part);
            // Nothing tells which of the two parts the next pairs will share.
            self.deep.note(part);
            self.deep.note(other);
        }
        Ok(None)
    }

    /// A recent part that gives the target with some split.
    pub(super) fn recent_pair(&self, n: u64, target: u16) -> Option<u64> {
        let value = |m: u64| if m < HEAD_PARTS { Some(self.head.value(m)) } else { self.held(m) };
        let gives = |part: &&u64| {
            self.rule.splits().any(|split| {
                let other = n.saturating_sub(split.remove).saturating_sub(**part);
                let exists = other > 0 && **part > 0 && other.abs_diff(**part) >= split.min_difference;
                exists && value(**part).zip(value(other)).is_some_and(|(a, b)| a ^ b ^ split.constant == target)
            })
        };
        self.deep.recent.iter().find(gives).copied()
    }

    /// G(m) if memory holds it.
    fn held(&self, m: u64) -> Option<u16> {
        (self.values.start() <= m && m < self.values.end()).then(|| self.values.get(m))
    }

    /// The parts of a pair that gives the target, the smaller one first, or `None` if no pair does. Compares all pairs.
    fn find_pair<S: Sequence + ?Sized>(&self, n: u64, target: u16, past: &S) -> Result<Option<(u64, u64)>> {
        let all = Joined { past, recent: &self.values, end: n };
        let tasks: Vec<(Split, u64, u64)> = self
            .rule
            .splits()
            .flat_map(|split| {
                let last = split.largest_small_part(n);
                (1..=last).step_by(index(TASK)).map(move |from| (split, from, last.min(from + TASK - 1)))
            })
            .collect();
        // A pair that is found outweighs an error of reading values that another task needs.
        let error = OnceLock::new();
        let find = |&range: &(Split, u64, u64)| match self.pair_between(n, range, target, &all) {
            Ok(pair) => pair,
            Err(failed) => {
                let _ = error.set(failed); // the first error is as good as any other
                None
            }
        };
        let found =
            if tasks.len() > FEW_TASKS { tasks.par_iter().find_map_any(find) } else { tasks.iter().find_map(find) };
        match (found, error.into_inner()) {
            (None, Some(error)) => Err(error),
            (found, _) => Ok(found),
        }
    }

    /// A pair that gives the target, with the smaller part, which comes first, in `from..=last`.
    fn pair_between<S: Sequence + ?Sized>(
        &self,
        n: u64,
        (split, from, last): (Split, u64, u64),
        target: u16,
        all: &Joined<'_, S>,
    ) -> Result<Option<(u64, u64)>> {
        let (length, other) = (index(last + 1 - from), n - split.remove - last);
        let (mut small, mut large) = (Vec::new(), Vec::new());
        let small = self.held_or_read(from, length, all, &mut small)?;
        let large = self.held_or_read(other, length, all, &mut large)?;
        let place = self.kernel.find_mirrored(small, large, target ^ split.constant);
        Ok(place.map(|place| (from + place as u64, n - split.remove - from - place as u64)))
    }

    /// The `length` values from position `from` on: those in memory, or read into `buffer`.
    fn held_or_read<'a, S: Sequence + ?Sized>(
        &'a self,
        from: u64,
        length: usize,
        all: &Joined<'_, S>,
        buffer: &'a mut Vec<u16>,
    ) -> Result<&'a [u16]> {
        if from >= self.values.start() {
            return Ok(self.values.slice(from, from + length as u64));
        }
        buffer.resize(length, 0);
        all.read(from, buffer)?;
        Ok(buffer)
    }
}

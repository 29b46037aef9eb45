//! The search for pairs of any parts that give a value.
//!
//! If few pairs give a value, the pairs of consecutive positions often share a part. In .143, one position in six needs
//! a pair with one of about a dozen parts, all far from 0 and from n. So the search first tries the *recent parts*,
//! those of the last pairs found, and compares all pairs only after that.

use super::reader::{LONGEST_SLICE, Reader};
use super::recent_parts::PARTS_AT_ONCE;
use super::run::Run;
use crate::error::Result;
use crate::fault;
use crate::kernel::ValueSet;
use crate::solver::witnesses::Joined;
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::rule::Split;
use rayon::prelude::*;
use std::sync::OnceLock;

/// Minimum number of targets for which the options of recent parts are looked up in a set. An estimate; no other number
/// was measured. Unit tests need fewer.
const MANY_TARGETS: usize = if cfg!(test) { 3 } else { 32 };

/// In place of the value of an option.
const NO_OPTION: u32 = 1 << 16;

/// Maximum number of tasks that one thread does by itself where other threads could help.
const FEW_TASKS: usize = 4;

/// Number of pairs that one task compares.
const TASK: u64 = 1 << 16;
const _: () = assert!(TASK <= LONGEST_SLICE);

/// Two deliberate faults, see fault.rs.
pub(super) fn is_skipped(target: u16) -> bool {
    fault::is("use-unproved") || (fault::is("skip-large-targets") && target > 255)
}

impl Reader<'_> {
    /// Removes the targets that a pair with a part in `recent` gives, if both parts are before `run.known` and in
    /// memory. Returns the recent parts that gave a target.
    pub(super) fn search_recent(&self, n: u64, run: Run<'_>, recent: &[u64], targets: &mut Vec<u16>) -> Vec<u64> {
        if targets.len() >= MANY_TARGETS {
            return self.look_up_recent(n, run, recent, targets);
        }
        let mut found = Vec::new();
        for parts in recent.chunks(PARTS_AT_ONCE) {
            for split in self.solver.rule.splits() {
                if targets.is_empty() {
                    return found;
                }
                let mut options = [NO_OPTION; PARTS_AT_ONCE];
                options
                    .iter_mut()
                    .zip(parts)
                    .for_each(|(option, &part)| *option = self.recent_option(n, run.known, &split, part));
                targets.retain(|&target| {
                    let is_target = |option: &u32| *option == u32::from(target);
                    // All options are compared, which the compiler vectorises; the place is searched only for a hit.
                    let is_option = options.iter().fold(false, |any, option| any | is_target(option));
                    if is_option {
                        found.extend(options.iter().position(is_target).map(|place| parts[place]));
                    }
                    !is_option
                });
            }
        }
        found
    }

    /// [`Reader::search_recent`] for many targets: looks each option up in a set of them.
    fn look_up_recent(&self, n: u64, run: Run<'_>, recent: &[u64], targets: &mut Vec<u16>) -> Vec<u64> {
        let mut open = ValueSet::of(targets);
        let mut found = Vec::new();
        for &part in recent {
            for split in self.solver.rule.splits() {
                let option = u16::try_from(self.recent_option(n, run.known, &split, part));
                if option.is_ok_and(|option| open.remove(option)) {
                    found.push(part);
                }
            }
        }
        targets.retain(|&target| open.contains(target));
        found
    }

    /// The value of the option of n that leaves a heap of `part` by a split, or [`NO_OPTION`] if there is none or
    /// memory does not hold the values of its parts.
    fn recent_option(&self, n: u64, known: u64, split: &Split, part: u64) -> u32 {
        let option = || {
            let other = n.checked_sub(split.remove)?.checked_sub(part)?;
            let exists = part > 0 && other > 0 && other.abs_diff(part) >= split.min_difference;
            exists.then(|| Some(self.held(part, known)? ^ self.held(other, known)? ^ split.constant))?
        };
        option().map_or(NO_OPTION, u32::from)
    }

    /// The parts of a pair that gives the target at the next position n, the smaller one first, or `None` if no pair
    /// does. Compares all pairs, `alone` or with other threads of the pool.
    pub(super) fn find_pair(
        &self,
        n: u64,
        target: u16,
        past: &dyn Sequence,
        alone: bool,
    ) -> Result<Option<(u64, u64)>> {
        let all = Joined { past, recent: self.last(), end: n };
        let tasks: Vec<(Split, u64, u64)> = self
            .solver
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
        let found = if !alone && tasks.len() > FEW_TASKS {
            tasks.par_iter().find_map_any(find)
        } else {
            tasks.iter().find_map(find)
        };
        match (found, error.into_inner()) {
            (None, Some(error)) => Err(error),
            (found, _) => Ok(found),
        }
    }

    /// A pair that gives the target, with the smaller part, which comes first, in `from..=last`.
    fn pair_between(
        &self,
        n: u64,
        (split, from, last): (Split, u64, u64),
        target: u16,
        all: &Joined<'_>,
    ) -> Result<Option<(u64, u64)>> {
        let (length, other) = (index(last + 1 - from), n - split.remove - last);
        let (mut small, mut large) = (Vec::new(), Vec::new());
        let small = self.held_or_read(from, length, all, &mut small)?;
        let large = self.held_or_read(other, length, all, &mut large)?;
        let place = self.solver.kernel.find_mirrored_pair(small, large, target ^ split.constant);
        Ok(place.map(|place| (from + place as u64, n - split.remove - from - place as u64)))
    }

    /// The `length` values from position `from` on: those in memory, or read into `buffer`.
    fn held_or_read<'a>(
        &'a self,
        from: u64,
        length: usize,
        all: &Joined<'_>,
        buffer: &'a mut Vec<u16>,
    ) -> Result<&'a [u16]> {
        if from >= self.solver.values.start() {
            return Ok(self.slice(from, from + length as u64));
        }
        buffer.resize(length, 0);
        all.read(from, buffer)?;
        Ok(buffer)
    }
}

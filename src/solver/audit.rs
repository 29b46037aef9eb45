//! The audit: a second, independent computation of a sample of the values by another kernel.
//!
//! The streams are fast because they read little: lookups in a learnt order, fewer and fewer candidates, lookups that
//! another thread evaluated, only the targets that matter. A mistake in that choice, or a processor that computes
//! wrongly, would make all later values wrong, and they would stay consistent with each other. So for one group of
//! [`GROUP_VALUES`] values in 50, or in 200 where lookups are few, the audit derives all lookups from the list of rare
//! positions itself, marks all of them by another kernel in the order of the list, and requires that the answer is the
//! value of the candidate stream: no smaller common value is open, and that value is. The same other kernel searches
//! the witnesses again.
//!
//! The list of lookups repeats what `candidates` and `verify::exclusion` compute. This is deliberate: shared code would
//! repeat a mistake in both.
//!
//! [`choice`] selects groups from a seed and the number of the group, and from nothing else. Of the selected groups
//! those are audited that lie within one block and whose codes are in memory. The audit runs on the thread that has
//! just found the witnesses of the group, so that no other thread waits for it.
//!
//! The audit skips groups in which some lookup meets a rare position or does not exist yet (for Grundy's game they lie
//! below 97 million, mostly below 10^5), and values that have no code.

use super::codes::{Codes, POISON};
use super::witnesses::{GROUP_VALUES, Witnesses};
use crate::error::{Error, Result};
use crate::kernel::{BitPlanes, CODES, Kernel, LANES, MOST_CODES, Probe, Probes};
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::random::split_mix;
use crate::theory::rule::{Leaves, Rule};
use crate::theory::sparse_space::SparseSpace;
use std::ops::Range;

/// Number of groups per audited group. It is larger where a value takes few lookups, because the audit then costs more
/// relative to the value.
const fn one_in(lookups: usize) -> u64 {
    if lookups < 320 { 200 } else { 50 }
}

/// 64 pseudorandom bits that decide whether a group is audited: output number `group` of the generator SplitMix64 with
/// this seed.
pub(super) fn choice(seed: u64, group: u64) -> u64 {
    split_mix(seed, group)
}

/// The data of an audit, for one list of rare positions.
#[derive(Clone, Debug)]
pub(super) struct Audit {
    space: SparseSpace,
    kernel: Kernel,
    seed: u64,
    /// All lookups that have a code.
    probes: Probes,
    /// The rare positions, ascending.
    rare_positions: Vec<u64>,
    /// Up to this n a move may leave a single heap whose value is rare, or no heap at all.
    singles_until: u64,
    /// Removal and least difference of each split.
    splits: Vec<(u64, u64)>,
}

impl Audit {
    /// The audit of a sequence with these rare positions, ascending, and their values.
    pub(super) fn new(
        rule: &Rule,
        space: SparseSpace,
        kernel: Kernel,
        seed: u64,
        rare_positions: &[(u64, u16)],
    ) -> Audit {
        let mut probes = Probes::new();
        let mut enter = |offset: u64, value: u16| {
            // An option without a code is larger than all values that have one.
            if value < space.coded() {
                probes.push(Probe::new(index(offset), space.code(value)));
            }
        };
        let mut singles_until = 0;
        for m in rule.moves() {
            match m.leaves {
                Leaves::Nothing => singles_until = singles_until.max(m.remove),
                Leaves::One => {
                    singles_until = singles_until.max(rare_positions.last().map_or(0, |rare| rare.0) + m.remove);
                    if space.keeps_class(m.remove, m.constant) {
                        enter(m.remove, m.constant);
                    }
                }
                Leaves::Two { .. } => {
                    let parts = rare_positions.iter().filter(|rare| rare.0 > 0);
                    parts.for_each(|&(r, value)| enter(m.remove + r, m.constant ^ value));
                }
                Leaves::Three => unreachable!("no rule with such a move has a sparse space"),
            }
        }
        let splits = rule.splits().map(|split| (split.remove, split.min_difference)).collect();
        let rare_positions = rare_positions.iter().map(|rare| rare.0).collect();
        Audit { space, kernel, seed, probes, rare_positions, singles_until, splits }
    }

    /// The number of rare positions from which the lookups were derived.
    pub(super) fn rare_positions(&self) -> usize {
        self.rare_positions.len()
    }

    /// The complete groups inside `range` that are audited.
    fn groups(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let one_in = one_in(self.probes.list().len());
        let whole = range.start.div_ceil(GROUP_VALUES)..range.end / GROUP_VALUES;
        let chosen = whole.filter(|group| choice(self.seed, *group).is_multiple_of(one_in));
        chosen
            .map(|group| group * GROUP_VALUES..(group + 1) * GROUP_VALUES)
            .filter(|group| self.has_all(group))
            .collect()
    }

    /// Whether for each n of `range` every lookup exists, and meets no rare position.
    fn has_all(&self, range: &Range<u64>) -> bool {
        let last = self.rare_positions.last().copied().unwrap_or(0);
        let exist = |&(remove, _): &(u64, u64)| range.start > last + remove;
        if range.start <= self.singles_until || !self.splits.iter().all(exist) {
            return false;
        }
        let apart = |&(remove, difference): &(u64, u64)| range.start > 2 * last + remove + difference;
        if self.splits.iter().all(apart) {
            return true;
        }
        self.splits.iter().all(|&(remove, difference)| {
            self.rare_positions.iter().filter(|&&r| r > 0).all(|&r| {
                let others = range.start - remove - r..range.end - remove - r;
                let next = self.rare_positions.partition_point(|&rare| rare < others.start);
                let near = others.start < r + difference && r < others.end + difference;
                self.rare_positions.get(next).is_none_or(|&rare| rare >= others.end) && !(difference > 0 && near)
            })
        })
    }

    /// Audits the chosen groups of `range` for which `codes` holds everything that the lookups read, and returns the
    /// number of values audited. The witnesses of `range` must have been found.
    ///
    /// # Errors
    /// [`Error::Differs`] at the first value that the audit does not confirm, and any error of reading `past`.
    pub(super) fn check(
        &self,
        range: Range<u64>,
        codes: &Codes,
        witnesses: &Witnesses,
        past: &dyn Sequence,
    ) -> Result<u64> {
        let reach = self.probes.max_offset() as u64;
        let differs = |n: u64, again: u16| {
            let (value, how) = (witnesses.value(n).into(), format!("kernel {}", self.kernel));
            Err(Error::Differs { n, value, again: again.into(), how })
        };
        let mut audited = 0;
        for group in self.groups(range).into_iter().filter(|group| codes.hold(group.start, reach, group.end)) {
            let wrong = group.clone().step_by(LANES).find_map(|first| self.wrong_lane(first, codes));
            if let Some((n, again)) = wrong {
                return differs(n, again);
            }
            let checked = witnesses.check_group(self.kernel, group.clone(), codes, past)?;
            if let Some((n, again)) = checked.missing {
                return differs(n, again);
            }
            audited += GROUP_VALUES;
        }
        Ok(audited)
    }

    /// The first of the [`LANES`] positions from `first` on whose value is not the least common value that is no
    /// option, with the value that the audit finds. Skips rare positions, whose values come from the search of all
    /// pairs. Where the code of the value is above those that a kernel considers, checks only that all codes considered
    /// are options.
    fn wrong_lane(&self, first: u64, codes: &Codes) -> Option<(u64, u16)> {
        let at = codes.at(first);
        let answers = &codes.items()[at..at + LANES];
        let is_rare = |n: u64, code: u8| code == POISON && self.rare_positions.binary_search(&n).is_ok();
        let common = || (first..).zip(answers.iter().copied()).enumerate().filter(|(_, (n, code))| !is_rare(*n, *code));
        let largest = usize::from(common().map(|(_, (_, code))| code).max()?);
        let considered = CODES.into_iter().find(|&codes| codes > largest).unwrap_or(MOST_CODES);
        let mut planes = BitPlanes::new(considered);
        self.kernel.mark(codes.items(), at, &self.probes, &mut planes);
        // All smaller codes are options, and the answer, if its code is considered, is none. This reads the planes byte
        // by byte instead of calling Kernel::marks_to_open, which the witnesses use: a code that a fault in
        // Kernel::marks_to_open drops would otherwise go unnoticed twice.
        let right = |lane: usize, answer: u8| {
            let end = usize::from(answer).min(considered);
            let mut rows = planes.rows().iter().map(|row| row[lane]);
            rows.by_ref().take(end / 8).all(|bits| bits == u8::MAX)
                && rows.next().is_none_or(|bits| bits.trailing_ones() as usize == end % 8)
        };
        common().find(|&(lane, (_, answer))| !right(lane, answer)).map(|(lane, (n, _))| {
            let least = planes.unmarked_codes(lane).next();
            (n, self.space.decode(least.unwrap_or(u8::MAX), n))
        })
    }
}

#[cfg(test)]
mod tests;

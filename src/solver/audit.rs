//! The audit: a second, independent computation of a sample of the values by another kernel.
//!
//! The streams are fast because they read little: lookups in a learnt order, fewer and fewer candidates, marks made
//! ahead of time, only the targets that matter. A mistake in that choice, or a processor that computes wrongly, would
//! make all later values wrong, and they would stay consistent with each other. So for one group of [`GROUP_VALUES`]
//! values in 50 the audit derives all lookups from the list of rare positions itself, marks all of them by another
//! kernel in the order of the list, and requires that the answer is the value of the candidate stream: no smaller
//! common value is open, and that value is. The same other kernel searches the witnesses again.
//!
//! [`choice`] selects the groups from a seed and the number of the group. It depends on nothing else, so every build of
//! the program that computes a stretch with the same seed audits the same groups. The audit runs on the thread that has
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
fn choice(seed: u64, group: u64) -> u64 {
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
    rares: Vec<u64>,
    /// Up to this n a move may leave a single heap whose value is rare, or no heap at all.
    singles_until: u64,
    /// Removal and least difference of each split.
    splits: Vec<(u64, u64)>,
}

/// The kernel of the audit: a kernel other than `kernel`, where this processor has one.
pub(super) fn other_than(kernel: Kernel) -> Kernel {
    Kernel::available().into_iter().find(|&other| other != kernel).unwrap_or(kernel)
}

impl Audit {
    pub(super) fn new(rule: &Rule, space: SparseSpace, kernel: Kernel, seed: u64, rares: &[(u64, u16)]) -> Audit {
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
                    singles_until = singles_until.max(rares.last().map_or(0, |rare| rare.0) + m.remove);
                    if space.keeps_class(m.remove, m.constant) {
                        enter(m.remove, m.constant);
                    }
                }
                Leaves::Two { .. } => {
                    let parts = rares.iter().filter(|rare| rare.0 > 0);
                    parts.for_each(|&(r, value)| enter(m.remove + r, m.constant ^ value));
                }
            }
        }
        let splits = rule.splits().map(|split| (split.remove, split.min_difference)).collect();
        let rares = rares.iter().map(|rare| rare.0).collect();
        Audit { space, kernel, seed, probes, rares, singles_until, splits }
    }

    /// The number of rare positions from which the lookups were derived.
    pub(super) fn rares(&self) -> usize {
        self.rares.len()
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
        let last = self.rares.last().copied().unwrap_or(0);
        let exist = |&(remove, _): &(u64, u64)| range.start > last + remove;
        if range.start <= self.singles_until || !self.splits.iter().all(exist) {
            return false;
        }
        let apart = |&(remove, difference): &(u64, u64)| range.start > 2 * last + remove + difference;
        if self.splits.iter().all(apart) {
            return true;
        }
        self.splits.iter().all(|&(remove, difference)| {
            self.rares.iter().filter(|&&r| r > 0).all(|&r| {
                let others = range.start - remove - r..range.end - remove - r;
                let next = self.rares.partition_point(|&rare| rare < others.start);
                let near = others.start < r + difference && r < others.end + difference;
                self.rares.get(next).is_none_or(|&rare| rare >= others.end) && !(difference > 0 && near)
            })
        })
    }

    /// Audits the chosen groups of `range` for which `codes` holds everything that the lookups read, and returns the
    /// number of values audited. The witnesses of `range` must have been found.
    ///
    /// # Errors
    /// [`Error::Differs`] at the first value that the audit does not confirm, and any error of reading `past`.
    pub(super) fn check<S: Sequence + ?Sized>(
        &self,
        range: Range<u64>,
        codes: &Codes,
        witnesses: &Witnesses,
        past: &S,
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
            let checked = witnesses.check_group(self.kernel, group.start, group.end, codes, past)?;
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
        let is_rare = |n: u64, code: u8| code == POISON && self.rares.binary_search(&n).is_ok();
        let common = || (first..).zip(answers.iter().copied()).enumerate().filter(|(_, (n, code))| !is_rare(*n, *code));
        let largest = usize::from(common().map(|(_, (_, code))| code).max()?);
        let considered = CODES.into_iter().find(|&codes| codes > largest).unwrap_or(MOST_CODES);
        let mut planes = BitPlanes::new(considered);
        self.kernel.mark(codes.items(), at, &self.probes, &mut planes);
        // All smaller codes are options, and the answer, if its code is considered, is none. This reads the planes byte
        // by byte instead of calling Kernel::open, which the witnesses use: a code that a fault in Kernel::open drops
        // would otherwise go unnoticed twice.
        let right = |lane: usize, answer: u8| {
            let end = usize::from(answer).min(considered);
            let mut rows = planes.rows().iter().map(|row| row[lane]);
            rows.by_ref().take(end / 8).all(|bits| bits == u8::MAX)
                && rows.next().is_none_or(|bits| bits.trailing_ones() as usize == end % 8)
        };
        common().find(|&(lane, (_, answer))| !right(lane, answer)).map(|(lane, (n, _))| {
            let least = planes.open(lane).next();
            (n, self.space.decode(least.unwrap_or(u8::MAX), n))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::{Method, values};
    use crate::theory::definition;

    /// The first outputs of SplitMix64 for the seed 0, as its authors and other implementations publish them.
    #[test]
    fn audited_groups_are_chosen_by_splitmix64() {
        let published = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
        assert_eq!([0, 1, 2].map(|group| choice(0, group)), published);
        // The seed 1, output 0: the same state as the seed 1 - γ, output 1.
        assert_eq!(choice(1, 0), choice(1u64.wrapping_sub(0x9e37_79b9_7f4a_7c15), 1));
        assert_eq!(choice(u64::MAX, u64::MAX), choice(u64::MAX - 0x9e37_79b9_7f4a_7c15, 0), "no overflow");
    }

    /// A single wrong value, whatever it is, makes its group fail.
    #[test]
    fn the_audit_finds_a_wrong_value_and_passes_right_ones() {
        let mut state = 0x5eed_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for game in ["grundy", ".106", "0.6", "kayles", "grundy:d=2"] {
            let rule: Rule = game.parse().unwrap();
            let right = values(&rule, Method::Sparse(Kernel::best()), 140_000).unwrap();
            let known = rule.known().and_then(|known| known.space);
            let space = known.and_then(|(mask, position)| SparseSpace::new(&rule, mask, position));
            let space =
                space.unwrap_or_else(|| crate::solver::Histogram::of(right.as_slice()).unwrap().best_space(&rule).0);
            let rares: Vec<_> = space.rare_positions(0, &right).collect();
            for kernel in Kernel::available() {
                let start = 100_000u64;
                let mut audits = (0..1000).map(|seed| Audit::new(&rule, space, other_than(kernel), seed, &rares));
                let audit = audits.find(|audit| audit.groups(start..start + 20_000).len() > 2).unwrap();
                let mut audited = 0;
                for length in [20_000, 1, 255, 256, 5000] {
                    let block = &right[index(start)..index(start) + length];
                    let (codes, witnesses) = streams(&rule, space, kernel, &right[..index(start)], block);
                    audited += audit.check(start..codes.end(), &codes, &witnesses, &right[..index(start)]).unwrap();
                }
                assert!(audited > 250, "{game}, {kernel}: {audited} values were audited");
                let groups = audit.groups(start..start + 20_000);
                for _ in 0..12 {
                    let group = &groups[index(random(groups.len() as u64))];
                    let n = group.start + random(GROUP_VALUES);
                    let mut wrong = right[index(start)..index(group.end)].to_vec();
                    let value = &mut wrong[index(n - start)];
                    let other = u16::try_from(random(u64::from(space.coded()))).unwrap();
                    if *value >= space.coded() || other == *value || usize::from(space.code(*value)) >= MOST_CODES {
                        continue;
                    }
                    *value = other;
                    let (codes, witnesses) = streams(&rule, space, kernel, &right[..index(start)], &wrong);
                    let seen = audit.check(start..codes.end(), &codes, &witnesses, &right[..index(start)]);
                    // The error may be at another n of the group, which has the wrong value as an option.
                    let in_group = matches!(&seen, Err(Error::Differs { n, .. }) if group.contains(n));
                    assert!(in_group, "{game}, {kernel}: G({n}) = {other} gave {seen:?}");
                    assert_ne!(definition::value_at(&rule, right.as_slice(), n).unwrap(), other);
                }
            }
        }
    }

    fn streams(rule: &Rule, space: SparseSpace, kernel: Kernel, past: &[u16], block: &[u16]) -> (Codes, Witnesses) {
        let mut codes = Codes::new(space, 0);
        codes.push(past);
        codes.push(block);
        let mut witnesses = Witnesses::new(rule, space, kernel, Vec::new(), past).unwrap();
        witnesses.push(block);
        (codes, witnesses)
    }
}

//! A second look at a sample of the heaps, by another kernel and another way.
//!
//! The streams are fast because they look at little: lookups in a learnt order, fewer and fewer candidates, marks made
//! ahead of time, the targets that matter. A mistake in that choice, or a processor that computes wrongly, would poison
//! all that follows and agree with itself for ever. So of one group of [`GROUP_VALUES`] heaps in 50 all lookups are
//! made out of the list of rare heaps itself, all of them are marked by another kernel, in the order of the list, and the
//! answer must be the value that the candidates had: no smaller common value is open, and the value is. The
//! witnesses are asked for again by the same other kernel.
//!
//! [`choice`] selects the groups from a seed and the number of the group. It depends on nothing else, so every build of the
//! program that computes a stretch with the same seed audits the same groups. The audit runs on the thread that has just
//! found the witnesses of the group; run after all of them, it left one of two threads waiting.
//!
//! Groups in which some lookup of a heap meets a rare heap, or does not exist yet, are left out (for Grundy's game they
//! lie below 97 million, mostly below 10^5), as are values that have no code.

use super::codes::{Codes, POISON};
use super::witnesses::{GROUP_VALUES, Witnesses};
use crate::error::{Error, Result};
use crate::kernel::{BitPlanes, CODES, Kernel, LANES, MOST_CODES, Probe, Probes};
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::rule::{Leaves, Rule};
use crate::theory::sparse_space::SparseSpace;
use std::ops::Range;

/// One group in so many is looked at again; fewer where a value takes few lookups, and little time besides.
const fn one_in(lookups: usize) -> u64 {
    if lookups < 320 { 200 } else { 50 }
}

/// 64 pseudorandom bits that decide whether a group is audited: output number `group`, counted from 0, of the generator
/// SplitMix64 with this seed (G. L. Steele, D. Lea and C. H. Flood, *Fast splittable pseudorandom number generators*, 2014).
/// Output i mixes the state seed + (i + 1)γ and needs no output before it.
fn choice(seed: u64, group: u64) -> u64 {
    const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
    let z = seed.wrapping_add(group.wrapping_add(1).wrapping_mul(GAMMA));
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What is needed for a second look, for one list of rare heaps.
#[derive(Clone, Debug)]
pub(super) struct Audit {
    space: SparseSpace,
    kernel: Kernel,
    seed: u64,
    /// All lookups that have a code.
    probes: Probes,
    /// The rare heaps, ascending.
    rares: Vec<u64>,
    /// Heaps up to here may leave one heap that is rare, or none at all.
    singles_until: u64,
    /// Removals and least differences of the splits.
    splits: Vec<(u64, u64)>,
}

/// The kernel for the second look: another one, where this processor has one.
pub(super) fn other_than(kernel: Kernel) -> Kernel {
    Kernel::available().into_iter().find(|&other| other != kernel).unwrap_or(kernel)
}

impl Audit {
    pub(super) fn new(rule: &Rule, space: SparseSpace, kernel: Kernel, seed: u64, rares: &[(u64, u16)]) -> Audit {
        let mut probes = Probes::new();
        let mut enter = |offset: u64, value: u16| {
            // Without a code, the option is larger than all values that have one.
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

    /// How many rare heaps the lookups were made of.
    pub(super) fn rares(&self) -> usize {
        self.rares.len()
    }

    /// The groups of `heaps` that are looked at again, whole ones only.
    fn groups(&self, heaps: Range<u64>) -> Vec<Range<u64>> {
        let one_in = one_in(self.probes.list().len());
        let whole = heaps.start.div_ceil(GROUP_VALUES)..heaps.end / GROUP_VALUES;
        let chosen = whole.filter(|group| choice(self.seed, *group).is_multiple_of(one_in));
        chosen
            .map(|group| group * GROUP_VALUES..(group + 1) * GROUP_VALUES)
            .filter(|group| self.has_all(group))
            .collect()
    }

    /// Whether for each of these heaps every lookup exists, and meets no rare heap.
    fn has_all(&self, heaps: &Range<u64>) -> bool {
        let last = self.rares.last().copied().unwrap_or(0);
        let exist = |&(remove, _): &(u64, u64)| heaps.start > last + remove;
        if heaps.start <= self.singles_until || !self.splits.iter().all(exist) {
            return false;
        }
        let apart = |&(remove, difference): &(u64, u64)| heaps.start > 2 * last + remove + difference;
        if self.splits.iter().all(apart) {
            return true;
        }
        self.splits.iter().all(|&(remove, difference)| {
            self.rares.iter().filter(|&&r| r > 0).all(|&r| {
                let others = heaps.start - remove - r..heaps.end - remove - r;
                let next = self.rares.partition_point(|&rare| rare < others.start);
                let near = others.start < r + difference && r < others.end + difference;
                self.rares.get(next).is_none_or(|&rare| rare >= others.end) && !(difference > 0 && near)
            })
        })
    }

    /// Looks again at those of these heaps whose turn it is, and which `codes` hold with all that lookups reach; how many
    /// were looked at. Their witnesses have been found.
    ///
    /// # Errors
    /// [`Error::Differs`] when something else comes out, and what reading `past` gives.
    pub(super) fn look<S: Sequence + ?Sized>(
        &self,
        heaps: Range<u64>,
        codes: &Codes,
        witnesses: &Witnesses,
        past: &S,
    ) -> Result<u64> {
        let reach = self.probes.high_water_mark() as u64;
        let differs = |n: u64, again: u16| {
            let (value, how) = (witnesses.value(n).into(), format!("kernel {}", self.kernel));
            Err(Error::Differs { n, value, again: again.into(), how })
        };
        let mut looked = 0;
        for group in self.groups(heaps).into_iter().filter(|group| codes.hold(group.start, reach, group.end)) {
            let wrong = group.clone().step_by(LANES).find_map(|first| self.wrong_lane(first, codes));
            if let Some((n, again)) = wrong {
                return differs(n, again);
            }
            let checked = witnesses.check_group(self.kernel, group.start, group.end, codes, past)?;
            if let Some((n, again)) = checked.missing {
                return differs(n, again);
            }
            looked += GROUP_VALUES;
        }
        Ok(looked)
    }

    /// The first of the heaps from `first` on whose value is not the least common one that is no option, and that one. Rare
    /// heaps are passed over, they were settled by all pairs; of codes beyond those that a kernel considers it is asked
    /// only that all below are options.
    fn wrong_lane(&self, first: u64, codes: &Codes) -> Option<(u64, u16)> {
        let at = codes.at(first);
        let answers = &codes.items()[at..at + LANES];
        let is_rare = |n: u64, code: u8| code == POISON && self.rares.binary_search(&n).is_ok();
        let common = || (first..).zip(answers.iter().copied()).enumerate().filter(|(_, (n, code))| !is_rare(*n, *code));
        let largest = usize::from(common().map(|(_, (_, code))| code).max()?);
        let considered = CODES.into_iter().find(|&codes| codes > largest).unwrap_or(MOST_CODES);
        let mut planes = BitPlanes::new(considered);
        self.kernel.mark(codes.items(), at, &self.probes, &mut planes);
        // All smaller codes are options, and the answer, if it is one that is considered, is none. (EarlierValues here byte by byte, not
        // by the kernels' job that the witnesses ask as well: what that one drops would be dropped twice.)
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

    /// Whatever one value is changed to, the group in which it lies does not pass.
    #[test]
    fn a_wrong_value_is_seen_and_right_ones_pass() {
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
            let rares: Vec<_> = space.rares(0, &right).collect();
            for kernel in Kernel::available() {
                let start = 100_000u64;
                let mut audits = (0..1000).map(|seed| Audit::new(&rule, space, other_than(kernel), seed, &rares));
                let audit = audits.find(|audit| audit.groups(start..start + 20_000).len() > 2).unwrap();
                let mut looked = 0;
                for length in [20_000, 1, 255, 256, 5000] {
                    let block = &right[index(start)..index(start) + length];
                    let (codes, witnesses) = streams(&rule, space, kernel, &right[..index(start)], block);
                    looked += audit.look(start..codes.end(), &codes, &witnesses, &right[..index(start)]).unwrap();
                }
                assert!(looked > 250, "{game}, {kernel}: {looked} heaps were looked at");
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
                    let seen = audit.look(start..codes.end(), &codes, &witnesses, &right[..index(start)]);
                    // Another heap of the group may have the wrong one as an option.
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

//! The search on values, position by position: small parts, then parts with large values, then all pairs.

use super::head::HEAD_PARTS;
use super::joined::Joined;
use super::{CheckedGroup, GroupSearch, Witnesses};
use crate::error::{Error, Result};
use crate::fault;
use crate::theory::definition::{self, Sequence};
use crate::theory::nimber::NimSet;
use crate::theory::rule::Split;

impl GroupSearch<'_> {
    /// Searches witnesses of the targets of one n: among the smallest parts, then with the values above 255, then
    /// exhaustively.
    pub(super) fn search(&self, n: u64, mut targets: Vec<u16>, past: &dyn Sequence) -> Result<CheckedGroup> {
        let stream = self.stream;
        let mut checked = CheckedGroup::default();
        if fault::is("skip-large-targets") {
            targets.retain(|&t| t <= 255); // deliberate fault, see fault.rs
        }
        for option in stream.rule.single_options(n, |m| stream.recent.get(m)) {
            targets.retain(|&t| t != option);
        }
        let mut everything = true;
        for split in &stream.splits {
            let largest = stream.largest_held_part(n, split);
            everything &= largest == split.largest_small_part(n);
            if largest == 0 {
                continue;
            }
            let depth = self.search_small(n, split, largest, &mut targets);
            checked.depth = checked.depth.max(depth);
            if targets.is_empty() {
                return Ok(checked);
            }
        }
        let all = Joined { past, recent: &stream.recent, end: n };
        if !everything {
            checked.depth = checked.depth.max(stream.search_large(n, &mut targets, &all)?);
        }
        if !targets.is_empty() {
            checked.exhaustive_searches = u64::from(!everything);
            checked.depth = n / 2;
            checked.missing = stream.search_all_pairs(n, &all)?.map(|t| (n, t));
            if everything && checked.missing.is_none() {
                // The search on values has compared all pairs too, and found no witness of the first target.
                let (value, again, how) = (stream.recent.get(n).into(), targets[0].into(), "all pairs".into());
                return Err(Error::Differs { n, value, again, how });
            }
        }
        Ok(checked)
    }

    /// Removes the targets that splits with smaller part in 1..=largest give. Returns the largest smaller part
    /// compared.
    fn search_small(&self, n: u64, split: &Split, largest: u64, targets: &mut Vec<u16>) -> u64 {
        /// Maximum number of targets that are compared one by one; with more, the options are entered in a set.
        const FEW: usize = 16;
        /// Number of options entered in the set between two tests of the targets.
        const SPLITS_BETWEEN_TESTS: u64 = 256;
        let mut depth = 0;
        let mut seen = NimSet::new();
        let mut a = 1;
        while a <= largest && targets.len() > FEW {
            let to = (a + SPLITS_BETWEEN_TESTS).min(largest + 1);
            let (small, large) = self.stream.part_values(n, split, a, to);
            small.iter().zip(large).for_each(|(x, y)| seen.insert(split.constant ^ x ^ y));
            targets.retain(|&t| !seen.contains(t));
            a = to;
            depth = to - 1;
        }
        let (small, large) = self.stream.part_values(n, split, a, largest + 1);
        targets.retain(|&t| match self.kernel.find_value_pair(small, large, t ^ split.constant) {
            Some(pairs) => {
                depth = depth.max(a - 1 + pairs as u64);
                false
            }
            None => true,
        });
        if targets.is_empty() { depth } else { largest }
    }
}

impl Witnesses {
    /// Removes the targets that splits give in which one part has a value above 255 and is in the list of such values.
    /// Returns the largest smaller part of these splits.
    fn search_large(&self, n: u64, targets: &mut Vec<u16>, all: &dyn Sequence) -> Result<u64> {
        /// Maximum number of values above 255 that are tried: the last ones before n.
        const LAST: usize = 4096;
        let mut depth = 0;
        for &(b, value) in self.large.before(n).iter().rev().take(LAST) {
            for split in &self.splits {
                // After a bit flip the position b may be any number.
                let rest = n.checked_sub(b).and_then(|rest| rest.checked_sub(split.remove));
                let Some(a) = rest.filter(|&a| a > 0) else { continue };
                if a.abs_diff(b) >= split.min_difference {
                    let mut other = [0];
                    match all.read(a, &mut other) {
                        Err(Error::Discarded { .. }) => continue, // another split may give the target
                        read => read?,
                    }
                    let before = targets.len();
                    targets.retain(|&t| t != split.constant ^ value ^ other[0]);
                    if targets.len() < before {
                        depth = depth.max(a.min(b));
                    }
                }
            }
            if targets.is_empty() {
                break;
            }
        }
        Ok(depth)
    }

    /// The least value below the value of n that no pair of parts gives, if there is one. Compares all pairs.
    ///
    /// # Errors
    /// [`Error::Differs`] when the missing value is common: then the candidate was not the least common value that is
    /// missing, so the kernel is wrong, or a bit has flipped.
    fn search_all_pairs(&self, n: u64, all: &Joined) -> Result<Option<u16>> {
        let value = u32::from(self.recent.get(n));
        let missing = definition::first_missing(&self.rule, all, n, value)?;
        if let Some(least) = missing.filter(|&t| !self.space.is_rare(t, n)) {
            return Err(Error::Differs { n, value, again: least.into(), how: "all pairs".into() });
        }
        Ok(missing)
    }

    /// The largest smaller part for which memory holds the values of both parts.
    #[inline]
    pub(super) fn largest_held_part(&self, n: u64, split: &Split) -> u64 {
        let held = (n - self.recent.start()).saturating_sub(split.remove);
        split.largest_small_part(n).min(HEAD_PARTS - 1).min(held)
    }

    /// The values of the smaller parts `from..to`, descending, and of the other parts at the same indices.
    #[inline]
    pub(super) fn part_values(&self, n: u64, split: &Split, from: u64, to: u64) -> (&[u16], &[u16]) {
        (self.head.values(from, to), self.recent.slice(n - split.remove - to + 1, n - split.remove - from + 1))
    }
}

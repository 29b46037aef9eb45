//! Checks for each n whether it has witnesses within a given depth.
//!
//! Let D be the depth that a certificate states. For each n of the window and each value below G(n) that is rare at n,
//! an option with that value must exist whose smaller part is at most D; options that leave fewer than two heaps count
//! as depth 0. P4 asks for a smaller part of at most q = max(r, D); this check is stricter, so that D has a meaning of
//! its own. The solver finds witnesses, but it only bounds their depth from above, and the bound depends on kernel and
//! thread count. So when the bound exceeds D, this module tries the options with smaller part at most D one by one. It
//! shares no code with the solver's witness search, whose statement it checks.

use crate::error::Result;
use crate::solver::SparseSpace;
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::rule::{Rule, Split};
use rayon::prelude::*;
use std::ops::{Range, RangeInclusive};

/// Number of values of n checked by one task.
const VALUES_PER_TASK: u64 = 1 << 12;

/// Maximum smaller part whose value a task holds in memory; the values of larger parts are read when they are needed.
const NEAR: u64 = 1 << 16;

/// Number of smaller parts tried between two tests whether every value has a witness.
const PARTS_BETWEEN_TESTS: u64 = 1 << 10;

/// Returns the first n of `heaps` with a value that has no witness with a smaller part of at most `depth`, and the
/// least such value; `None` when every value has one. The threads of the calling rayon pool share the work.
///
/// # Errors
/// Errors of reading `values`.
pub(super) fn first_deeper(
    rule: &Rule,
    space: SparseSpace,
    values: &dyn Sequence,
    heaps: Range<u64>,
    depth: u64,
) -> Result<Option<(u64, u16)>> {
    let near = depth.min(NEAR).min(heaps.end.saturating_sub(1));
    let mut head = vec![0; index(near + 1)];
    values.read(0, &mut head)?;
    let search = Search { rule, splits: rule.splits().collect(), space, values, depth, near, head };
    let pieces = (heaps.end.saturating_sub(heaps.start)).div_ceil(VALUES_PER_TASK);
    let found = (0..pieces).into_par_iter().find_map_first(|i| {
        let from = heaps.start + i * VALUES_PER_TASK;
        search.piece(from..heaps.end.min(from + VALUES_PER_TASK)).transpose()
    });
    found.transpose()
}

struct Search<'a> {
    rule: &'a Rule,
    splits: Vec<Split>,
    space: SparseSpace,
    values: &'a dyn Sequence,
    depth: u64,
    /// Largest part whose value is in `head`.
    near: u64,
    /// The values G(0), …, G(near).
    head: Vec<u16>,
}

/// The values of a piece, and the last ones before it.
struct Recent {
    /// The n of the first of `values`.
    start: u64,
    values: Vec<u16>,
}

impl Recent {
    fn slice(&self, from: u64, to: u64) -> &[u16] {
        &self.values[index(from - self.start)..index(to - self.start)]
    }
}

/// The set of values that still need a witness.
struct Open {
    /// Bit v % 64 of word v / 64 is set when v is in the set.
    bits: Vec<u64>,
    count: usize,
}

impl Open {
    /// Creates the set of values below `value` that are rare at `n`.
    fn rare_below(space: SparseSpace, value: u16, n: u64) -> Open {
        let mut open = Open { bits: vec![0; usize::from(value).div_ceil(64)], count: 0 };
        for target in (0..value).filter(|&target| space.is_rare(target, n)) {
            open.bits[usize::from(target / 64)] |= 1 << (target % 64);
            open.count += 1;
        }
        open
    }

    fn remove(&mut self, option: u16) {
        if let Some(bits) = self.bits.get_mut(usize::from(option / 64)) {
            let bit = 1 << (option % 64);
            self.count -= usize::from(*bits & bit != 0);
            *bits &= !bit;
        }
    }

    fn least(&self) -> Option<u16> {
        (0..=u16::MAX).zip(&self.bits).find(|(_, bits)| **bits != 0).map(|(i, bits)| {
            let bit = bits.trailing_zeros();
            i * 64 + u16::from(bit.to_le_bytes()[0])
        })
    }
}

/// One n whose witnesses are searched.
struct Position<'a> {
    n: u64,
    recent: &'a Recent,
    /// The values that still need a witness.
    open: Open,
}

impl Search<'_> {
    fn piece(&self, heaps: Range<u64>) -> Result<Option<(u64, u16)>> {
        let start = heaps.start.saturating_sub(self.near + self.rule.max_remove());
        let mut recent = Recent { start, values: vec![0; index(heaps.end - start)] };
        self.values.read(start, &mut recent.values)?;
        for n in heaps {
            if let Some(target) = self.heap(n, &recent)? {
                return Ok(Some((n, target)));
            }
        }
        Ok(None)
    }

    /// Returns the least value without a witness at `n`.
    fn heap(&self, n: u64, recent: &Recent) -> Result<Option<u16>> {
        let value = |n: u64| recent.values[index(n - recent.start)];
        let mut position = Position { n, recent, open: Open::rare_below(self.space, value(n), n) };
        if position.open.count > 0 {
            self.rule.single_options(n, value).for_each(|option| position.open.remove(option));
        }
        let deepest = self.splits.iter().map(|split| split.largest_small_part(n)).max().unwrap_or(0).min(self.depth);
        let mut first = 1;
        while position.open.count > 0 && first <= deepest {
            let next = if first <= self.near {
                (first + PARTS_BETWEEN_TESTS).min(self.near + 1)
            } else {
                first + PARTS_BETWEEN_TESTS
            };
            for split in &self.splits {
                let last = (next - 1).min(deepest).min(split.largest_small_part(n));
                if first <= last {
                    self.remove_options(&mut position, split, first..=last)?;
                }
            }
            first = next;
        }
        Ok(position.open.least())
    }

    /// Removes from the open values those of the options of one split with these smaller parts.
    fn remove_options(&self, position: &mut Position<'_>, split: &Split, parts: RangeInclusive<u64>) -> Result<()> {
        let Position { n, recent, ref mut open } = *position;
        let first = *parts.start();
        let last = *parts.end();
        let rest = n - split.remove;
        let mut remove = |small: &[u16], large: &[u16]| {
            small.iter().zip(large.iter().rev()).for_each(|(a, b)| open.remove(split.constant ^ a ^ b));
        };
        if last <= self.near {
            remove(&self.head[index(first)..=index(last)], recent.slice(rest - last, rest - first + 1));
            return Ok(());
        }
        let mut small = vec![0; index(last - first + 1)];
        let mut large = vec![0; small.len()];
        self.values.read(first, &mut small)?;
        self.values.read(rest - last, &mut large)?;
        remove(&small, &large);
        Ok(())
    }
}

#[cfg(test)]
mod tests;

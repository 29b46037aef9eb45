//! Exclusion: checks that no value is that of an option with one rare part, and that every rare position has the
//! value of the definition.
//!
//! All statements are under one admissible space. The rare positions R are collected from the table itself
//! ([`crate::solver::SequenceStats`]). For every n of the range the check tests
//!
//! 1. when n is in R: whether G(n) is the mex over all pairs;
//! 2. whether G(n) differs from c ^ G(r) ^ G(n-s-r) for every r in R and every split (s, c, d) that allows these parts,
//!    and from the options of all moves that leave one heap or none.
//!
//! **What it finds.** Let the values before n be right, and G(n) wrong in the table. *Too low*: always found. The value
//! is below the mex, hence that of some option. If it is rare at n, then n is in R and (1) finds it. If it is common at
//! n, the option is that of a move that does not leave two heaps, or has exactly one rare part
//! (`theory::sparse_space`), which is in R because the values before n are right; (2) finds it. *Too high*: found by
//! (1) when the wrong value is rare at n, because n is then in R; found by (2) when the value is one of the common
//! options. Not found is a wrong common value above the right one that no common option has. In particular the check
//! does not find the least common value that is not an option where a smaller rare value is right, which is what a run
//! without witnesses would write. Finding it takes [`mod@super::recompute`]. The share of too high values that the
//! check finds depends on the game.
//!
//! The check derives its list of lookups itself, as the audit of the solver does. This is deliberate: shared code would
//! repeat a mistake.
//!
//! A wrong value at n gives wrong options to later n. So the error may name a later n, and of the values
//! that contradict each other either one may be wrong.

use super::target::{Target, compare};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, REPEATS_VALUES};
use crate::solver::SparseSpace;
use crate::theory::definition::{self, Sequence};
use crate::theory::nimber::index;
use crate::theory::rule::Leaves;
use rayon::prelude::*;
use std::ops::{BitXor, Range};

/// Number of values checked between two reports of progress: a multiple of [`CHUNK`].
const WAVE: u64 = 1 << 22;

/// Number of values checked by one task: a multiple of [`REPEATS_VALUES`].
const CHUNK: usize = 1 << 13;

/// Number of values that a task reads at once.
const VALUES_PER_READ: usize = 1 << 16;

/// An option that many n have: n has the option `value ^ G(n - offset)`.
struct Lookup {
    offset: u64,
    value: u16,
    /// The rare part that the option leaves besides; 0 for none.
    part: u64,
    /// Least difference of the two parts.
    min_difference: u64,
}

/// How a block is compared with its options, on codes or on values.
struct Comparison<I, R> {
    /// Maps a value to the code or value that is compared; `None` for a value without a code.
    item: I,
    /// The kernel's test whether a block of [`REPEATS_VALUES`] values has one that equals an option.
    repeats: R,
}

/// The items of a stretch of values, between two paddings of [`REPEATS_VALUES`] items.
struct Items<T> {
    /// The n of the item at index [`REPEATS_VALUES`].
    base: u64,
    window: Vec<T>,
    /// The largest offset at which earlier items are compared.
    reach: u64,
}

impl<T: Copy + Default + Send> Items<T> {
    /// No items yet; the first that are compared are those of `start` and later.
    fn new(start: u64, reach: u64) -> Items<T> {
        Items { base: start.saturating_sub(reach), window: vec![T::default(); 2 * REPEATS_VALUES], reach }
    }

    /// The index of the item of n.
    fn place(&self, n: u64) -> usize {
        index(n - self.base) + REPEATS_VALUES
    }

    /// Reads the values up to `end`, of which those from `start` on are compared next, and drops items that are out of
    /// reach, many at a time.
    fn advance(
        &mut self,
        start: u64,
        end: u64,
        values: &dyn Sequence,
        item: &(impl Fn(u16) -> Option<T> + Sync),
    ) -> Result<()> {
        let dead = start.saturating_sub(self.reach).saturating_sub(self.base);
        if dead >= WAVE.max(self.reach / 4) {
            self.window.drain(..index(dead));
            self.base += dead;
        }
        let known = self.window.len() - 2 * REPEATS_VALUES;
        let count = index(end - self.base);
        self.window.resize(count + 2 * REPEATS_VALUES, T::default());
        let from = self.base + known as u64;
        let fresh = self.window[known + REPEATS_VALUES..count + REPEATS_VALUES].par_chunks_mut(VALUES_PER_READ);
        fresh.enumerate().try_for_each(|(i, items)| {
            let mut read = vec![0; items.len()];
            values.read(from + (i * VALUES_PER_READ) as u64, &mut read)?;
            items.iter_mut().zip(read).for_each(|(to, value)| *to = item(value).unwrap_or_default());
            Ok(())
        })
    }
}

/// One check of a sequence.
struct Exclusion<'a> {
    target: Target<'a>,
    /// Sorted by offset.
    lookups: Vec<Lookup>,
}

/// Checks the values of `range`. Returns the number of rare positions in the range.
///
/// # Errors
/// [`Error::Wrong`] or [`Error::Excluded`] at the lowest n whose value contradicts the others; errors of reading
/// `past`.
pub fn check(target: Target<'_>, range: Range<u64>, progress: impl FnMut(u64, u64)) -> Result<u64> {
    let Target { space, stats, .. } = target;
    let (inside, rare_positions) = check_rare_positions(target, &range);
    // The error names the lowest n, so only the values below a wrong rare position are still checked.
    let until = match &rare_positions {
        Err(Error::Wrong { n, .. }) => *n,
        _ => range.end,
    };
    let exclusion = Exclusion::new(target, until);
    let uncovered = exclusion.uncovered(&range);
    let kernel = Kernel::best();
    // When all values have codes, the codes of a common option and a common value are equal exactly when these are
    // equal.
    if stats.max_value < space.coded() {
        let code = |v: u16| (v < space.coded()).then(|| space.code(v));
        let comparison = Comparison { item: code, repeats: |w: &[u8], at, l: &[_]| kernel.repeats(w, at, l) };
        exclusion.sweep(range.start..until, &uncovered, comparison, progress)?;
    } else {
        let comparison = Comparison { item: Some, repeats: |w: &[u16], at, l: &[_]| kernel.repeats_value(w, at, l) };
        exclusion.sweep(range.start..until, &uncovered, comparison, progress)?;
    }
    rare_positions.map(|()| inside)
}

/// Checks the rare positions of the range by the definition. Returns their number, and the error at the first wrong
/// one.
fn check_rare_positions(target: Target<'_>, range: &Range<u64>) -> (u64, Result<()>) {
    let inside = target.stats.rare_positions_in(range);
    let wrong = inside.par_iter().map(|&(n, found)| {
        let expected = definition::value_at(target.rule, target.values, n)?;
        compare(n, found, expected)
    });
    (inside.len() as u64, wrong.find_first(Result::is_err).unwrap_or(Ok(())))
}

impl<'a> Exclusion<'a> {
    /// Creates the check of values below `end`.
    fn new(target: Target<'a>, end: u64) -> Exclusion<'a> {
        let Target { rule, space, stats, .. } = target;
        let singles = rule.moves().iter().filter(|m| keeps_class(space, m.leaves, m.remove, m.constant));
        let single = |remove, constant| Lookup { offset: remove, value: constant, part: 0, min_difference: 0 };
        let mut lookups: Vec<Lookup> = singles.map(|m| single(m.remove, m.constant)).collect();
        for &(part, value) in stats.rare_positions.iter().filter(|rare| rare.0 > 0) {
            lookups.extend(rule.splits().map(|s| Lookup {
                offset: s.remove + part,
                value: s.constant ^ value,
                part,
                min_difference: s.min_difference,
            }));
        }
        lookups.retain(|lookup| lookup.offset < end);
        lookups.sort_unstable_by_key(|lookup| lookup.offset);
        Exclusion { target, lookups }
    }

    /// Returns the n that may have common options which no lookup covers. These are options of moves that leave
    /// nothing, and of moves that leave one heap and change its class, when that heap is rare. (When that heap is
    /// common, the option is rare, and cannot be the value of a common position; a rare position is checked by the
    /// definition.)
    fn uncovered(&self, range: &Range<u64>) -> Vec<u64> {
        let Target { rule, space, stats, .. } = self.target;
        let mut uncovered = Vec::new();
        for m in rule.moves() {
            match m.leaves {
                Leaves::Nothing => uncovered.push(m.remove),
                Leaves::One if !keeps_class(space, m.leaves, m.remove, m.constant) => {
                    uncovered.extend(stats.rare_positions.iter().map(|rare| rare.0 + m.remove));
                }
                _ => {}
            }
        }
        uncovered.retain(|n| range.contains(n));
        uncovered.sort_unstable();
        uncovered.dedup();
        uncovered
    }

    /// Checks all values of the range; `uncovered` has those n of the range that [`Exclusion::uncovered`] returns.
    fn sweep<T, I, R>(
        &self,
        range: Range<u64>,
        uncovered: &[u64],
        comparison: Comparison<I, R>,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<()>
    where
        T: Copy + Default + Eq + BitXor<Output = T> + Send + Sync,
        I: Fn(u16) -> Option<T> + Sync,
        R: Fn(&[T], usize, &[(usize, T)]) -> bool + Sync,
    {
        let Comparison { item, repeats } = comparison;
        let probes: Vec<(usize, T)> =
            self.lookups.iter().filter_map(|lookup| Some((index(lookup.offset), item(lookup.value)?))).collect();
        let mut items = Items::new(range.start, probes.last().map_or(0, |probe| probe.0 as u64));
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min(start + WAVE);
            items.advance(start, end, self.target.values, &item)?;
            let chunks = index(end - start).div_ceil(CHUNK);
            let checked = (0..chunks).into_par_iter().map(|chunk| {
                let from = start + (chunk * CHUNK) as u64;
                let to = end.min(from + CHUNK as u64);
                let mut uncovered = &uncovered[uncovered.partition_point(|&n| n < from)..];
                for first in (from..to).step_by(REPEATS_VALUES) {
                    let last = to.min(first + REPEATS_VALUES as u64);
                    // Offsets at which the other part exists at least for the last n of the block.
                    let near = &probes[..probes.partition_point(|probe| (probe.0 as u64) < last - 1)];
                    let hit = repeats(&items.window, items.place(first), near);
                    let (singly, later) = uncovered.split_at(uncovered.partition_point(|&n| n < last));
                    for n in (first..last).filter(|n| hit || singly.contains(n)) {
                        let place = items.place(n);
                        let own = items.window[place];
                        let is_hit = |&&(offset, item): &&(usize, T)| items.window[place - offset] ^ item == own;
                        let hits = near.iter().filter(is_hit).map(|&(offset, _)| offset as u64);
                        self.check_options(n, hits)?;
                    }
                    uncovered = later;
                }
                Ok(())
            });
            checked.find_first(Result::is_err).unwrap_or(Ok(()))?;
            start = end;
            progress(start - range.start, range.end - range.start);
        }
        Ok(())
    }

    /// Refuses the value of n when it is that of an option, either of a move that does not leave two heaps or of a
    /// lookup with one of these offsets.
    fn check_options(&self, n: u64, offsets: impl Iterator<Item = u64>) -> Result<()> {
        let value_of = |n: u64| {
            let mut value = [0];
            self.target.values.read(n, &mut value).map(|()| value[0])
        };
        let value = value_of(n)?;
        let excluded = |rest| Err(Error::Excluded { n, value: value.into(), rest });
        for m in self.target.rule.moves() {
            match m.leaves {
                Leaves::Nothing if n == m.remove && m.constant == value => return excluded((0, 0)),
                Leaves::One if n > m.remove && m.constant ^ value_of(n - m.remove)? == value => {
                    return excluded((0, n - m.remove));
                }
                _ => {}
            }
        }
        for offset in offsets.filter(|&offset| offset < n) {
            let other = n - offset;
            let others = value_of(other)?;
            let first = self.lookups.partition_point(|lookup| lookup.offset < offset);
            let mut same = self.lookups[first..].iter().take_while(|lookup| lookup.offset == offset);
            let repeats = |lookup: &&Lookup| {
                let allowed = lookup.part > 0 && other.abs_diff(lookup.part) >= lookup.min_difference;
                allowed && lookup.value ^ others == value
            };
            if let Some(lookup) = same.find(repeats) {
                return excluded((lookup.part, other));
            }
        }
        Ok(())
    }
}

/// Whether a move leaves one heap and its options have the class of that heap.
fn keeps_class(space: SparseSpace, leaves: Leaves, remove: u64, constant: u16) -> bool {
    leaves == Leaves::One && space.keeps_class(remove, constant)
}

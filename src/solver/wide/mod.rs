//! The wide solver: values up to 65,535, with a sparse space or without one.
//!
//! One thread finds the values in order, and all threads prepare the next positions (`step`), in runs of 64. The far
//! step of a run knows the values before the *lead*, the positions just before the run. Let n be a position of the run.
//! The options of n with a part in the run are *near*. So are moves that leave one heap or none, and the options of a
//! lookup whose two parts are too close for the split at some position of the run. Of the others, those with a part in
//! the lead are *middle* options, and the rest are *far*.
//!
//! 1. **Far** (`far`), for the runs in any order: enter the options of some thousand pairs of parts in a set. Compare
//!    the least common values that stay open (the *candidates*) with the options of all other rare parts
//!    (`candidates`). For each open rare value below the least candidate, search for a far pair that gives it; if
//!    memory holds all values, search all far pairs. Where there are few pairs, compare all of them with all open
//!    values instead: what stays open is then exactly what no far pair gives.
//! 2. **Middle** (`middle`), when the values before the run are known: remove the candidates and the rare values that
//!    are middle options. With four threads or more, another thread begins with it a little earlier.
//! 3. **Near** (`near`), one position after the other: remove the candidates and the rare values that are near options.
//!    The least candidate left is the least common value m* that is no option. For a position without a candidate, the
//!    solver tries the first *further* values, which no mark gives, unless an open rare value already decides; if all
//!    of these are options, it computes all options with a rare part. If memory does not hold all values, each rare
//!    value below m* that is still open is searched among all pairs (`deep`), least first. If no pair gives it, it is
//!    G(n), and n joins the list of rare positions; otherwise G(n) = m*.
//!
//! Without a space ([`SparseSpace::NONE`]) no list holds rare positions, and all pairs are compared. While all values
//! are below 256 the comparison of bytes (`exhaustive`) is faster.
//!
//! The choice of the marks (`learning`) decides only the speed.
//!
//! A new rare position costs one comparison of all pairs. While memory holds all values, nothing that was computed
//! before is discarded, because no far option depends on it. Otherwise the step ends, and the solver reads all values
//! into memory; it drops them again when no lookup reads them. So this solver suits games with many rare positions.
//! The byte streams ([`block`](super::block)) compute a position an order of magnitude faster where new rare positions
//! are very few and all values have byte codes.
//!
//! Invariant: every value appended to `values` is proved in one of two ways. It is m*, which is no option, and every
//! smaller value, common or rare, is an option. Or it is the least rare value below m* that is no option; all pairs
//! were compared.

mod all_pairs;
mod audit;
mod candidates;
mod deep;
mod far;
mod learning;
mod lookups;
mod marked_sums;
mod middle;
mod near;
mod reader;
mod recent_parts;
mod run;
mod step;
#[cfg(test)]
mod tests;
mod tile_order;

use super::block::BlockLimits;
use super::checksums::Checked;
use super::lookups::RarePositions;
use super::parallelism::Threads;
use super::window::Window;
use super::witnesses::{Head, Joined};
use super::{SparseSpace, Work};
use crate::error::{Error, Result};
use crate::fault;
use crate::kernel::{Kernel, WIDE_LANES, WIDE_ROWS};
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::rule::Rule;
use learning::{AllPairs, LastLearning, Marks};
use lookups::SplitLookups;
use recent_parts::RecentParts;
use std::time::Instant;
use step::{LONGEST_LEAD, NextValues, Step, longest_lead};
use tile_order::TileOrders;

/// Minimum number of last values that memory holds, unless they have been discarded: 32 MiB, and few in unit tests.
const HELD: u64 = if cfg!(test) { 1 << 11 } else { 1 << 24 };

/// Maximum number of values, two bytes each, that memory holds where searches often compare all pairs: 2 GiB.
const MOST_HELD: u64 = 1 << 30;

/// Average number of pairs per position that searches of all pairs compare, above which memory holds all values.
const DEEP_PAIRS: u64 = 1 << 14;

/// Number of positions in a run.
const RUN: u64 = WIDE_LANES as u64;

/// Minimum number of positions in the lead where several threads work: that of two threads.
const LEAST_LEAD: u64 = 4 * RUN;

/// Number of positions in the lead of a new solver, where the number of threads allows it.
const FIRST_LEAD: u64 = if cfg!(test) { LONGEST_LEAD } else { LEAST_LEAD };

/// Maximum number of positions between two returns to the caller.
const STEP: u64 = 1 << 16;

/// The values below a bound, sorted by class.
#[derive(Clone, Debug, Default, Hash)]
struct Classes {
    /// Bit v % 64 of word v / 64: whether v is rare at even and at odd n.
    rare: [Vec<u64>; 2],
}

impl Classes {
    /// The values below `bound`, a multiple of 64.
    fn new(space: SparseSpace, bound: usize) -> Classes {
        let word = |first: usize, n: u64| {
            let is_rare = |bit: &usize| u16::try_from(first + bit).is_ok_and(|v| is_rare(space, v, n));
            (0..64).filter(is_rare).fold(0, |bits, bit| bits | 1u64 << bit)
        };
        Classes { rare: [2, 1].map(|n| (0..bound).step_by(64).map(|first| word(first, n)).collect()) }
    }

    /// Number of values.
    fn bound(&self) -> usize {
        64 * self.rare[0].len()
    }
}

/// Whether the value v at n needs a witness. Without a space none does, because all pairs are compared.
fn is_rare(space: SparseSpace, v: u16, n: u64) -> bool {
    space != SparseSpace::NONE && space.is_rare(v, n)
}

/// Reads the values of the positions `from..to`.
///
/// # Errors
/// [`Error::Memory`], and any error of reading `past`.
fn read_from(from: u64, to: u64, past: &dyn Sequence) -> Result<Vec<u16>> {
    let mut values = Vec::new();
    let memory = Error::Memory { what: "the sequence", bytes: 2 * (to - from) };
    values.try_reserve_exact(index(to - from)).map_err(|_| memory)?;
    values.resize(index(to - from), 0);
    past.read(from, &mut values)?;
    Ok(values)
}

/// A solver on 16-bit values, between two steps.
pub(super) struct WideSolver {
    rule: Rule,
    space: SparseSpace,
    kernel: Kernel,
    rare_positions: RarePositions,
    lookups: Vec<SplitLookups>,
    /// The last values: back to the largest offset of a lookup, and at least [`HELD`] of those that are not discarded.
    values: Window<u16>,
    head: Head,
    marks: Marks,
    learning: LastLearning,
    all_pairs: AllPairs,
    classes: Checked<Classes>,
    recent: RecentParts,
    /// The orders in which all pairs are compared.
    tile_orders: TileOrders,
    /// Number of candidates that the far step finds for each position, from 2 to [`WIDE_ROWS`].
    wanted: usize,
    /// Maximum number of positions in the lead: a multiple of [`RUN`], at least [`LEAST_LEAD`].
    lead: u64,
    /// Whether memory for all values was not available.
    lacks_memory: bool,
    /// Seed of the audit; `None` without an audit.
    audit: Option<u64>,
}

impl WideSolver {
    /// A solver that continues `past`, whose rare positions under `space` and whose largest value are given.
    ///
    /// # Errors
    /// Any error of reading `past`.
    pub(super) fn new(
        rule: &Rule,
        space: SparseSpace,
        kernel: Kernel,
        stats: super::SequenceStats,
        past: &dyn Sequence,
    ) -> Result<WideSolver> {
        let head = Head::reading(space, past)?;
        let mut solver = WideSolver {
            rule: rule.clone(),
            space,
            kernel,
            rare_positions: RarePositions::default(),
            lookups: rule.splits().map(SplitLookups::of).collect(),
            values: Window::new(past.len(), Vec::new()),
            head,
            marks: Marks::new(),
            learning: LastLearning::ending_now(0, Instant::now(), false),
            all_pairs: AllPairs::default(),
            classes: Checked::new(Classes::default()),
            recent: RecentParts::default(),
            tile_orders: TileOrders::default(),
            wanted: 2,
            lead: FIRST_LEAD,
            lacks_memory: false,
            audit: None,
        };
        for (n, value) in stats.rare_positions {
            solver.enter(n, value);
        }
        solver.fit_classes(stats.max_value);
        solver.refill(past)?;
        Ok(solver)
    }

    /// One past the position of the last value.
    fn end(&self) -> u64 {
        self.values.end()
    }

    /// The rare positions, ascending, with their values; `None` without a sparse space.
    pub(super) fn rare_positions(&self) -> Option<&[(u64, u16)]> {
        self.has_space().then(|| self.rare_positions.list())
    }

    /// The first position that memory holds: lookups, moves and marks read no earlier ones. Memory holds at least the
    /// last [`HELD`] values, which make the search for pairs fast, and all values where searches often compare all
    /// pairs.
    fn horizon(&self, past: &dyn Sequence) -> u64 {
        if !self.has_space() {
            return 0;
        }
        let needed = past.len().saturating_sub(super::lookback(&self.rule, self.rare_positions.last()));
        let holds_all = self.all_pairs.in_searches && !self.lacks_memory && self.end() <= MOST_HELD;
        let held = if holds_all { self.end() } else { HELD };
        needed.min(past.len().saturating_sub(held).max(past.discarded().end))
    }

    /// Whether searches compared all pairs often since the marks were learnt.
    fn often_searches_all_pairs(&self) -> bool {
        /// Minimum number of values that are counted.
        const COUNTED: u64 = 1 << 12;
        let values = (self.end() - self.learning.learnt_at).max(COUNTED);
        self.learning.deep_searches.saturating_mul(self.end() / 2) > DEEP_PAIRS.saturating_mul(values)
    }

    /// Whether there is a sparse space. Otherwise all pairs are compared, and no list holds rare positions.
    fn has_space(&self) -> bool {
        self.space != SparseSpace::NONE
    }

    /// Whether v is rare at n in a space.
    fn is_rare(&self, v: u16, n: u64) -> bool {
        is_rare(self.space, v, n)
    }

    /// Whether memory holds all values, so that the far step searches all far pairs.
    fn holds_all(&self) -> bool {
        self.values.start() == 0
    }

    /// The least removal of all splits; 0 without a split.
    fn least_removal(&self) -> u64 {
        self.rule.splits().map(|split| split.remove).min().unwrap_or(0)
    }

    /// Number of lookups of the next position in the space.
    fn count_lookups(&self) -> u64 {
        self.lookups.iter().map(|lookups| lookups.all.parts.len() as u64).sum()
    }

    /// Enters a rare position, after all others, and its lookups.
    fn enter(&mut self, n: u64, value: u16) {
        let frozen = fault::is("freeze-rares") && n >= self.end(); // deliberate fault, see fault.rs
        self.rare_positions.push(n, value);
        if n > 0 && !frozen {
            self.lookups.iter_mut().for_each(|lookups| lookups.enter(n, value));
        }
    }

    /// Makes the classes cover every option of values up to `max_value`.
    fn fit_classes(&mut self, max_value: u16) {
        let all = self.rule.moves().iter().fold(max_value, |all, m| all | m.constant);
        let bound = (usize::from(all) + 1).next_power_of_two().max(64);
        if bound > self.classes.bound() {
            self.classes.replace(Classes::new(self.space, bound));
        }
    }

    /// Reads the window again from `past`, which holds every value up to the end.
    fn refill(&mut self, past: &dyn Sequence) -> Result<()> {
        let start = self.horizon(past);
        self.values = Window::new(start, read_from(start, past.len(), past)?);
        Ok(())
    }

    /// Whether the solver computes the values of this rule, in this space or without one.
    pub(super) fn is_of(&self, rule: &Rule, space: SparseSpace) -> bool {
        self.space == space && &self.rule == rule && rule.splits().eq(self.lookups.iter().map(|lookups| lookups.split))
    }

    /// Drops the values before `n`, which positions from the end on do not need.
    pub(super) fn drop_before(&mut self, n: u64) {
        self.values.drop_before(n);
    }

    /// Checks the tables and the copies of values, as [`Solver::check_memory`](super::Solver::check_memory) states.
    ///
    /// # Errors
    /// [`Error::Flipped`] at the first difference, and any error of reading `past`.
    pub(super) fn check_memory(&self, past: &dyn Sequence) -> Result<()> {
        self.values.agrees_with(past)?;
        self.head.agrees_with(past)?;
        let flipped = |what| Err(Error::Flipped { what, from: 0, to: self.end() });
        if !self.rare_positions.is_intact() {
            return flipped("the list of rare positions");
        }
        if !self.lookups.iter().all(|lookups| lookups.all.parts.is_intact() && lookups.unmarked.parts.is_intact()) {
            return flipped("the list of lookups");
        }
        if !self.marks.parts.is_intact() || !self.classes.is_intact() {
            return flipped("the list of parts");
        }
        Ok(())
    }

    /// Appends the next values to `out`, at least one and none from position `limits.end` on. `past` holds all values
    /// before.
    ///
    /// # Errors
    /// [`Error::ValueTooLarge`], [`Error::OptionsDiffer`] when the audit does not confirm the options of a position,
    /// [`Error::Flipped`], and any error of reading `past`. The values appended before the error are proved.
    pub(super) fn step(
        &mut self,
        past: &dyn Sequence,
        limits: BlockLimits,
        work: &mut Work,
        out: &mut Vec<u16>,
    ) -> Result<()> {
        // Otherwise the searches would read values that no check compares.
        self.values.drop_before(past.discarded().end);
        self.all_pairs.in_searches |= past.discarded().is_empty() && self.often_searches_all_pairs();
        if self.horizon(past) < self.values.start() {
            self.values.agrees_with(past)?;
            match self.refill(past) {
                // Less memory makes the search for pairs slower, and changes no value.
                Err(Error::Memory { .. }) => self.lacks_memory = true,
                refilled => refilled?,
            }
        }
        let horizon = self.horizon(past);
        self.values.forget(horizon, past)?;
        let until = limits.end.min(self.end() + STEP.min(limits.longest as u64));
        self.learn_when_due();
        let next = Step::new(self, until, limits.threads).run(past, work)?;
        self.adjust_wanted(&next, limits.threads);
        self.adjust_lead(&next, limits.threads);
        self.append(next, past, work, out)
    }

    /// Adjusts the number of candidates to the positions of a step that were left without one. For such a position the
    /// near step compares more options, while other threads wait; each candidate more takes some percent of the time of
    /// all.
    fn adjust_wanted(&mut self, next: &NextValues, threads: Threads) {
        /// Number of positions per position without a candidate, for one thread, below which candidates are too few.
        const TOO_FEW: u64 = 64;
        /// The same, above which they are too many.
        const TOO_MANY: u64 = 16 * TOO_FEW;
        let without = next.found.without_candidate;
        let positions_of = |rate: u64| without * rate * threads.count() as u64;
        let positions = next.values.len() as u64;
        if positions_of(TOO_FEW) > positions {
            self.wanted = WIDE_ROWS.min(self.wanted + 1);
        } else if positions_of(TOO_MANY) < positions {
            self.wanted = 2.max(self.wanted - 1);
        }
    }

    /// Adjusts the lead to the positions of a step that were left without a candidate. The shorter the lead, the fewer
    /// candidates are middle options, and the less work is left to the near step, which one thread does. With a longer
    /// lead, more threads can prepare runs.
    fn adjust_lead(&mut self, next: &NextValues, threads: Threads) {
        /// Number of positions per position without a candidate below which the lead is too long.
        const TOO_LONG: u64 = 10;
        /// The same, above which it may be longer.
        const TOO_SHORT: u64 = 2 * TOO_LONG;
        let (without, positions) = (next.found.without_candidate, next.values.len() as u64);
        if self.wanted == WIDE_ROWS && without * TOO_LONG > positions {
            self.lead = LEAST_LEAD.max(self.lead - RUN);
        } else if without * TOO_SHORT < positions {
            self.lead = longest_lead(threads).max(LEAST_LEAD).min(self.lead + RUN);
        }
    }

    /// Appends what a step found to the values and to `out`.
    ///
    /// # Errors
    /// The error of the step, and any error of reading all values, which the lookups of a new rare position need. The
    /// values appended before the error are proved.
    fn append(&mut self, next: NextValues, past: &dyn Sequence, work: &mut Work, out: &mut Vec<u16>) -> Result<()> {
        let NextValues { mut values, mut found, mut outcome } = next;
        let first = self.end();
        let is_value = |&(n, value): &(u64, u16)| values[index(n - first)] == value && self.is_rare(value, n);
        if let Some(&(n, _)) = found.rare_positions.iter().find(|rare| !is_value(rare)) {
            return Err(Error::Flipped { what: "a rare position", from: n, to: n + 1 });
        }
        if let Some(&(n, _)) = found.rare_positions.first()
            && !self.holds_all()
        {
            let all = Joined { past, recent: &self.values, end: first };
            match read_from(0, first, &all) {
                Ok(all) => self.values = Window::new(0, all),
                Err(error) => {
                    values.truncate(index(n - first));
                    found.rare_positions.clear();
                    outcome = Err(error.for_heap(n));
                }
            }
        }
        work.found_rare += found.rare_positions.len() as u64;
        for (n, value) in found.rare_positions {
            self.enter(n, value);
        }
        self.head.push(first, &values);
        self.values.extend(values.iter().copied());
        self.recent = found.recent;
        self.learning.searches += found.searches;
        self.learning.deep_searches += found.deep_searches;
        let count = if self.has_space() { &mut work.witnessed } else { &mut work.defined };
        *count += values.len() as u64;
        self.fit_classes(values.iter().copied().max().unwrap_or(0));
        out.append(&mut values);
        outcome
    }
}

/// Bit flips for tests; `draw` selects the place.
#[cfg(test)]
impl WideSolver {
    /// Returns false when there is no data of this kind, or no check would find the flip.
    pub(super) fn flip(&mut self, what: usize, draw: u64, bit: u8) -> bool {
        let flip_part = |parts: &mut [crate::kernel::WidePart]| {
            let place = index(draw) % parts.len().max(1);
            parts.get_mut(place).map(|part| part.value ^= u16::from(bit)).is_some()
        };
        match what {
            0 => flip_part(self.lookups[0].all.parts.entries_mut()),
            1 => flip_part(self.marks.parts.value_mut()),
            2 => {
                let values = self.values.items_mut();
                let place = index(draw) % values.len();
                values[place] ^= u16::from(bit) << (draw % 8);
                true
            }
            3 => {
                let list = self.rare_positions.list_mut();
                let place = index(draw) % list.len();
                list[place].1 ^= u16::from(bit);
                true
            }
            4 => {
                let words = &mut self.classes.value_mut().rare[index(draw % 2)];
                let place = index(draw / 2) % words.len();
                words[place] ^= u64::from(bit);
                true
            }
            5 => flip_part(self.lookups[0].unmarked.parts.entries_mut()),
            _ => {
                self.head.flip(draw, bit, self.values.end());
                true
            }
        }
    }
}

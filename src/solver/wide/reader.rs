//! What one thread reads during a step: the solver as it was when the step began, and the values found since.
//!
//! No thread writes to the solver during a step. Each has its own copy of the last values, which it continues from the
//! values that the near step publishes. So memory holds several copies of these values, and the solver compares them
//! after the step.

use super::WideSolver;
use super::lookups::{PartList, SplitLookups};
use crate::error::{Error, Result};
use crate::fault;
use crate::kernel::{WidePart, WideParts};
use crate::solver::window::Window;
use crate::solver::witnesses::HEAD_PARTS;
use crate::theory::nimber::index;
use crate::theory::rule::Split;
use std::ops::Range;

/// Maximum number of values that [`Reader::slice`] reads.
pub(super) const LONGEST_SLICE: u64 = HEAD_PARTS;

/// Maximum number of values in a copy when a step begins.
const COPIED: u64 = 2 * LONGEST_SLICE;

/// The values and the lookups that one thread reads.
pub(super) struct Reader<'a> {
    /// The solver when the step began.
    pub(super) solver: &'a WideSolver,
    /// The last values before the step, and those of the step that this thread knows.
    last: Window<u16>,
    /// The lookups of the rare positions of the step that this thread knows. Where memory does not hold all values, the
    /// step ends with its first rare position.
    lookups: Vec<SplitLookups>,
}

impl<'a> Reader<'a> {
    /// A reader that knows the values of the solver.
    pub(super) fn new(solver: &'a WideSolver) -> Reader<'a> {
        Reader::with_copy(solver, COPIED)
    }

    /// A reader whose copy begins with the last `copied` values.
    pub(super) fn with_copy(solver: &'a WideSolver, copied: u64) -> Reader<'a> {
        let start = solver.end().saturating_sub(copied).max(solver.values.start());
        let last = Window::new(start, solver.values.slice(start, solver.end()).to_vec());
        let lookups = solver.rule.splits().map(SplitLookups::of).collect();
        Reader { solver, last, lookups }
    }

    /// One past the last position that this thread knows.
    pub(super) fn end(&self) -> u64 {
        self.last.end()
    }

    /// The values of the step that this thread knows.
    pub(super) fn found(&self) -> &[u16] {
        self.last.slice(self.solver.end(), self.end())
    }

    /// Appends the next values.
    pub(super) fn push(&mut self, values: &[u16]) {
        for &value in values {
            let n = self.end();
            self.last.push(value);
            let frozen = fault::is("freeze-rares"); // deliberate fault, see fault.rs
            if self.solver.is_rare(value, n) && !frozen {
                self.lookups.iter_mut().for_each(|lookups| lookups.enter(n, value));
            }
        }
    }

    /// All lookups that this thread knows.
    pub(super) fn lookups(&self) -> impl Iterator<Item = &SplitLookups> + Clone {
        self.solver.lookups.iter().chain(&self.lookups)
    }

    /// G(m). Memory must hold it.
    pub(super) fn value(&self, m: u64) -> u16 {
        if m >= self.last.start() { self.last.get(m) } else { self.solver.values.get(m) }
    }

    /// G(m) if memory holds it and m is before `known`.
    pub(super) fn held(&self, m: u64, known: u64) -> Option<u16> {
        if m >= self.solver.values.start() && m < known {
            Some(self.value(m))
        } else if m < HEAD_PARTS.min(known) {
            Some(self.solver.head.value(m))
        } else {
            None
        }
    }

    /// The values of the positions `from..to`, at most [`LONGEST_SLICE`] of them. Memory must hold them.
    pub(super) fn slice(&self, from: u64, to: u64) -> &[u16] {
        if from >= self.last.start() { self.last.slice(from, to) } else { self.solver.values.slice(from, to) }
    }

    /// Divides parts, ascending by offset, into those that read the copy in the lanes from position `n` on, and those
    /// that read the values of the solver.
    pub(super) fn windows<'p>(&'p self, n: u64, parts: &'p [WidePart]) -> [WideParts<'p, &'p [WidePart]>; 2] {
        let reach = n.checked_sub(self.last.start());
        let count = reach.map_or(0, |reach| parts.partition_point(|part| part.offset as u64 <= reach));
        let (recent, old) = parts.split_at(count);
        [(&self.last, recent), (&self.solver.values, old)].map(|(window, list)| WideParts {
            window: window.items(),
            at: index(n.wrapping_sub(window.start())), // used by no part where n is before the window
            list,
        })
    }

    /// Two slices of equal length: the values of the smaller parts in `parts` and below [`HEAD_PARTS`], descending by
    /// part, and those of their other parts at the same indices. Leaves out pairs whose values memory does not hold.
    pub(super) fn small_part_values(&self, n: u64, split: &Split, parts: Range<u64>) -> (&[u16], &[u16]) {
        let end = parts.end.min(self.largest_held(n, split) + 1);
        if parts.start >= end {
            return (&[], &[]);
        }
        let rest = n - split.remove;
        (self.solver.head.values(parts.start, end), self.slice(rest + 1 - end, rest + 1 - parts.start))
    }

    /// The options of the pairs whose smaller part is in `parts` and below [`HEAD_PARTS`], but for pairs whose values
    /// memory does not hold.
    pub(super) fn small_part_options(&self, n: u64, split: &Split, parts: Range<u64>) -> impl Iterator<Item = u16> {
        let (small, large) = self.small_part_values(n, split, parts);
        let constant = split.constant;
        small.iter().zip(large).map(move |(a, b)| constant ^ a ^ b)
    }

    /// The largest smaller part below [`HEAD_PARTS`] for which memory holds the values of both parts.
    fn largest_held(&self, n: u64, split: &Split) -> u64 {
        let held = (n - self.solver.values.start()).saturating_sub(split.remove);
        split.largest_small_part(n).min(HEAD_PARTS - 1).min(held)
    }

    /// The option of a pair with smaller part `a`, both values of which memory holds.
    pub(super) fn pair_option(&self, n: u64, split: &Split, a: u64) -> u16 {
        let value = if a < HEAD_PARTS { self.solver.head.value(a) } else { self.value(a) };
        split.constant ^ value ^ self.value(n - split.remove - a)
    }

    /// The options of all pairs with a smaller part of at least `least`, where memory holds all values.
    pub(super) fn pair_options(&self, n: u64, split: &Split, least: u64) -> impl Iterator<Item = u16> {
        /// Number of pairs of which the values are read at once.
        const AT_ONCE: usize = 1 << 14;
        const { assert!(AT_ONCE as u64 <= LONGEST_SLICE) };
        let (end, rest, constant) = (split.largest_small_part(n) + 1, n - split.remove.min(n), split.constant);
        (least..end).step_by(AT_ONCE).flat_map(move |from| {
            let to = end.min(from + AT_ONCE as u64);
            let pairs = self.slice(from, to).iter().zip(self.slice(rest + 1 - to, rest + 1 - from).iter().rev());
            pairs.map(move |(a, b)| constant ^ a ^ b)
        })
    }

    /// The option of a lookup, if its two parts exist and are far enough apart.
    pub(super) fn option(&self, n: u64, split: &Split, part: &WidePart) -> Option<u16> {
        let (offset, r) = (part.offset as u64, part.offset as u64 - split.remove);
        let other = n.checked_sub(offset)?;
        (other > 0 && other.abs_diff(r) >= split.min_difference).then(|| part.value ^ self.value(other))
    }

    /// Enters the options of lookups, as far as they exist. `options` has an item for each value below the bound of the
    /// classes, a power of two. Of an option beyond it, which only a changed bit in memory can give, the low bits
    /// count.
    pub(super) fn enter_options(&self, n: u64, split: &Split, lookups: &PartList, options: &mut [bool]) {
        let (PartList { parts, .. }, most) = (lookups, options.len() - 1);
        let exist = parts.partition_point(|part| (part.offset as u64) < n);
        let too_near = lookups.too_near(split, n..n + 1);
        let (start, end) = (too_near.start.min(exist), too_near.end.min(exist));
        for WideParts { window, at, list } in
            [&parts[..start], &parts[end..exist]].into_iter().flat_map(|parts| self.windows(n, parts))
        {
            for part in list {
                options[usize::from(window[at - part.offset] ^ part.value) & most] = true;
            }
        }
        for option in parts[start..end].iter().filter_map(|part| self.option(n, split, part)) {
            options[usize::from(option) & most] = true;
        }
    }

    /// Checks that the copy of this thread is that of `other` as far as both know the values, and that no lookup has
    /// changed.
    ///
    /// # Errors
    /// [`Error::Flipped`] otherwise: what this thread found may be wrong.
    pub(super) fn agrees_with(&self, other: &Window<u16>) -> Result<()> {
        let (from, to) = (self.last.start(), self.end().min(other.end()));
        let is_intact =
            self.lookups.iter().all(|lookups| lookups.all.parts.is_intact() && lookups.unmarked.parts.is_intact());
        if !is_intact || self.last.slice(from, to) != other.slice(from, to) {
            return Err(Error::Flipped { what: "a copy of the last values", from, to });
        }
        Ok(())
    }

    /// The copy of the last values.
    pub(super) fn last(&self) -> &Window<u16> {
        &self.last
    }
}

/// Bit flips for tests.
#[cfg(test)]
impl Reader<'_> {
    /// Flips a bit of the last lookup that is not marked.
    pub(super) fn flip_lookup(&mut self, bit: u16) {
        self.lookups[0].unmarked.parts.entries_mut().last_mut().expect("a rare position").value ^= bit;
    }
}

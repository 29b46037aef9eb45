//! The witness stream: for each candidate, an option for every smaller rare value.
//!
//! The least common value m* that is not an option is G(n) if and only if every value below m* that is rare at n is an
//! option too. Each such value (a target) needs one option that has it, its witness. There is no serial dependency
//! here: a witness may use any parts below n, so threads check groups of values side by side.
//!
//! **Marks.** A pair of common parts gives a rare value, and most options are such pairs. The kernel that marks the
//! options of rare parts for the candidates marks here the options of some hundred common parts, 64 values at a time.
//! It then holds some hundred more parts against the least targets that stay open below the candidate
//! (`code_search`). The stream searches the remaining targets position by position, from the smallest parts on: first
//! on codes, all targets of one n in one pass ([`Kernel::find_code_pairs`]), then, where codes do not suffice, on
//! values (`value_search`). A search that fails ends in the exhaustive search over all pairs
//! ([`first_missing`](crate::theory::definition::first_missing)). A value is called rare only after the exhaustive
//! search. The stream learns which parts to mark ([`lookup_order`]) and chooses on a sample how many (`learning`).
//!
//! **Values of 256 and more** are targets like all others. Their witnesses need a part whose value is itself above 255
//! (or a constant with such a bit). Such values are rare, one in thousands, so the stream keeps a list of their
//! positions (`large`).
//!
//! Invariant: a value counts as witnessed only after each of its targets was found as the value of an option whose
//! parts are at least 1 and far enough apart. Parts inside the block under test count, because the values are accepted
//! in ascending order: when one fails, the solver discards all from there on.

pub(super) mod bench;
mod code_search;
mod head;
mod joined;
mod large;
mod learning;
#[cfg(test)]
mod tests;
mod value_search;

pub(super) use joined::Joined;
pub(super) use large::droppable;

use super::checksums::Checked;
use super::codes::Codes;
use super::lookup_order;
use super::window::Window;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, LANES};
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::rule::{Rule, Split};
use crate::theory::sparse_space::SparseSpace;
pub(super) use head::{HEAD_PARTS, Head};
use large::LargeValues;
use learning::{DEPTH, Learning, Parts};
use std::ops::Range;

/// Number of values that one task checks, a multiple of [`LANES`].
pub(super) const GROUP_VALUES: u64 = 256;

/// Number of last values that a new stream reads, besides the largest removal of the rule and the first [`HEAD_PARTS`].
pub(super) const LOOKBACK: u64 = HEAD_PARTS + lookup_order::SPAN + GROUP_VALUES;

/// The result of checking one group of values, or several consecutive ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CheckedGroup {
    /// The first n whose candidate is too large, and its true value, which is rare.
    pub(super) missing: Option<(u64, u16)>,
    /// The largest smaller part of any witness, or an upper bound of it.
    pub(super) depth: u64,
    /// Number of exhaustive searches.
    pub(super) exhaustive_searches: u64,
    /// Number of values audited by another kernel.
    pub(super) audited: u64,
}

impl CheckedGroup {
    /// Combines this result with that of other values; the lower n decides `missing`.
    pub(super) fn and(self, other: CheckedGroup) -> CheckedGroup {
        CheckedGroup {
            missing: self.missing.into_iter().chain(other.missing).min(),
            depth: self.depth.max(other.depth),
            exhaustive_searches: self.exhaustive_searches + other.exhaustive_searches,
            audited: self.audited + other.audited,
        }
    }
}

pub(super) struct Witnesses {
    rule: Rule,
    kernel: Kernel,
    space: SparseSpace,
    splits: Vec<Split>,
    head: Head,
    /// The last values, back by at least [`HEAD_PARTS`] and the largest removal.
    recent: Window<u16>,
    large: LargeValues,
    /// For even and odd n, the number of rare values below each value. The k rare values below v have the codes
    /// 0, ..., k - 1.
    rare_below: [Vec<u16>; 2],
    parts: Checked<Parts>,
    learning: Learning,
}

impl Witnesses {
    /// A stream that continues `past`; `large` are the last of its values above 255, with their positions.
    ///
    /// # Errors
    /// Any error of reading `past`.
    pub(super) fn new(
        rule: &Rule,
        space: SparseSpace,
        kernel: Kernel,
        large: Vec<(u64, u16)>,
        past: &dyn Sequence,
    ) -> Result<Witnesses> {
        let end = past.len();
        let start = end.saturating_sub(LOOKBACK + rule.max_remove());
        let mut recent = vec![0; index(end - start)];
        past.read(start, &mut recent)?;
        Ok(Witnesses {
            rule: rule.clone(),
            kernel,
            space,
            splits: rule.splits().collect(),
            head: Head::reading(space, past)?,
            recent: Window::new(start, recent),
            large: LargeValues::new(large),
            rare_below: rare_below(space),
            parts: Checked::new(Parts::default()),
            learning: Learning::new(),
        })
    }

    /// One past the position of the last value.
    pub(super) fn end(&self) -> u64 {
        self.recent.end()
    }

    /// Whether the stream searches the witnesses of this rule in this space.
    pub(super) fn is_of(&self, rule: &Rule, space: SparseSpace) -> bool {
        (&self.rule, self.space) == (rule, space) && rule.splits().eq(self.splits.iter().copied())
    }

    /// The kernel that searches.
    pub(super) fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// G(n) for one of the last positions.
    pub(super) fn value(&self, n: u64) -> u16 {
        self.recent.get(n)
    }

    /// Number of last codes to keep: marked parts up to [`DEPTH`] can then be read at every position of a group and of
    /// a sample.
    pub(super) fn lookback(&self) -> u64 {
        DEPTH + lookup_order::SPAN + self.rule.max_remove() + GROUP_VALUES
    }

    /// Appends the next values, proved or about to be checked.
    pub(super) fn push(&mut self, values: &[u16]) {
        let end = self.end();
        self.head.push(end, values);
        self.large.push(end, values);
        self.recent.extend(values.iter().copied());
    }

    /// Forgets the values that positions from the end on do not read, after comparing them with `past`.
    ///
    /// # Errors
    /// [`Error::Flipped`] at the first difference, and any error of reading `past`.
    pub(super) fn forget(&mut self, past: &dyn Sequence) -> Result<()> {
        let horizon = self.end().saturating_sub(LOOKBACK + self.rule.max_remove());
        self.recent.forget(horizon, past)
    }

    /// Drops the values before `n`, which positions from the end on do not need.
    pub(super) fn drop_before(&mut self, n: u64) {
        self.recent.drop_before(n.min(self.end().saturating_sub(LOOKBACK + self.rule.max_remove())));
    }

    /// Forgets the values from `end` on.
    pub(super) fn truncate(&mut self, end: u64) {
        self.recent.truncate(end);
        self.large.truncate(end);
        self.learning.clocks.truncate(end);
    }

    /// Compares the values with `past` and with their codes, and the tables with their checksums.
    ///
    /// # Errors
    /// [`Error::Flipped`] at the first difference, and any error of reading `past`.
    pub(super) fn check_memory(&self, codes: &Codes, past: &dyn Sequence) -> Result<()> {
        self.recent.agrees_with(past)?;
        self.head.agrees_with(past)?;
        if !self.parts.is_intact() || self.rare_below != rare_below(self.space) {
            return Err(Error::Flipped { what: "the list of parts", from: 0, to: self.learning.depth });
        }
        if !self.large.is_intact() {
            return Err(Error::Flipped { what: "the list of values above 255", from: 0, to: self.end() });
        }
        codes.agree_with(self.recent.start(), self.recent.items())
    }

    /// Whether marks are valid for `from..to`: all marked parts exist and are far enough apart for n from `from` on,
    /// and `codes` holds everything that they read.
    fn uses_marks(&self, from: u64, to: u64, codes: &Codes) -> bool {
        let removed = self.rule.max_remove();
        self.learning.depth > 0
            && from > 2 * self.learning.depth + removed + self.rule.max_difference()
            && codes.hold(from, self.learning.depth + removed, to)
    }

    /// Searches witnesses for the values `range` of the stream with this kernel. `codes` holds the codes of these
    /// values; `past` holds at least the values before the oldest one held here, for the exhaustive search.
    ///
    /// # Errors
    /// [`Error::Differs`] when the exhaustive search finds a smaller common value than the candidate, and any error of
    /// reading `past`.
    pub(super) fn check_group(
        &self,
        kernel: Kernel,
        range: Range<u64>,
        codes: &Codes,
        past: &dyn Sequence,
    ) -> Result<CheckedGroup> {
        let search = self.search_with(kernel, codes);
        if self.uses_marks(range.start, range.end, codes) {
            search.with_marks(range, past)
        } else {
            search.without_marks(range, past)
        }
    }

    fn search_with<'a>(&'a self, kernel: Kernel, codes: &'a Codes) -> GroupSearch<'a> {
        GroupSearch { stream: self, kernel, codes }
    }
}

/// The search for the witnesses of a group.
struct GroupSearch<'a> {
    stream: &'a Witnesses,
    kernel: Kernel,
    codes: &'a Codes,
}

impl GroupSearch<'_> {
    /// Searches the witnesses of `range` position by position, on values.
    fn without_marks(&self, range: Range<u64>, past: &dyn Sequence) -> Result<CheckedGroup> {
        let mut checked = CheckedGroup::default();
        for n in range {
            let targets = (0..self.stream.recent.get(n)).filter(|&t| self.stream.space.is_rare(t, n)).collect();
            checked = checked.and(self.search(n, targets, past)?);
            if checked.missing.is_some() {
                break;
            }
        }
        Ok(checked)
    }

    /// Searches the witnesses of `range` by marks, and the remaining targets position by position: on codes, then
    /// on values.
    fn with_marks(&self, range: Range<u64>, past: &dyn Sequence) -> Result<CheckedGroup> {
        let mut checked = CheckedGroup { depth: self.stream.learning.depth, ..CheckedGroup::default() };
        let mut hard = Vec::new();
        for first in range.clone().step_by(LANES) {
            let lanes = index(range.end - first).min(LANES);
            self.open_targets(first, lanes, |n, targets| {
                checked.depth = checked.depth.max(self.find(n, targets));
                hard.extend(targets.iter().map(|&code| (n, self.stream.space.decode_rare(code, n))));
            });
        }
        // In ascending order of n: the first failure ends the search, because the later candidates depend on it.
        for same in hard.chunk_by(|a, b| a.0 == b.0) {
            let targets = same.iter().map(|&(_, t)| t).collect();
            checked = checked.and(self.search(same[0].0, targets, past)?);
            if checked.missing.is_some() {
                break;
            }
        }
        Ok(checked)
    }
}

/// The number of rare values below each value that has a code when common, at even and at odd n.
fn rare_below(space: SparseSpace) -> [Vec<u16>; 2] {
    [2, 1].map(|n| {
        let mut rare = 0;
        let below = |v: u16| {
            let before = rare;
            rare += u16::from(space.is_rare(v, n));
            before
        };
        (0..space.coded()).map(below).collect()
    })
}

/// Bit flips for tests; `draw` selects the place.
#[cfg(test)]
impl Witnesses {
    pub(super) fn flip_recent(&mut self, draw: u64, bit: u8) {
        let values = self.recent.items_mut(); // all of these are proved
        let i = index(draw) % values.len();
        values[i] ^= u16::from(bit) << (draw % 8);
    }

    pub(super) fn flip_head(&mut self, draw: u64, bit: u8) {
        self.head.flip(draw, bit, self.recent.end());
    }

    /// Returns false when the list is empty.
    pub(super) fn flip_large(&mut self, draw: u64, bit: u8) -> bool {
        self.large.flip(draw, bit)
    }

    pub(super) fn flip_rare_below(&mut self, draw: u64, bit: u8) {
        let list = &mut self.rare_below[index(draw % 2)];
        let at = index(draw / 2) % list.len();
        list[at] ^= u16::from(bit);
    }

    /// Returns false when no parts are known.
    pub(super) fn flip_part(&mut self, draw: u64, bit: u8) -> bool {
        self.parts.value_mut().flip(draw, bit)
    }
}

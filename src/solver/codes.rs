//! The byte codes of the last heaps that are proved or being proved, for everything that looks back at them side by side.
//!
//! Lookups that stand for pairs of two common parts, and those marked ahead of time, must not meet a rare heap: the pair
//! would have the other class, which the code cannot tell. So rare heaps (n = 0 among them) stand here as [`POISON`]; who
//! looks up a code c for which [`POISON`] ^ c is none of the codes considered, does not see them.
//!
//! Behind the last heap there are [`LANES`] bytes of poison, so that 64 lanes may start at any heap.

use super::window::Window;
use crate::error::{Error, Result};
use crate::kernel::LANES;
use crate::theory::nimber::index;
use crate::theory::sparse_space::SparseSpace;
use rayon::prelude::*;

/// Stands for a rare heap.
pub(super) const POISON: u8 = u8::MAX;

/// More than all values that have a code.
const TABLE: usize = 513;

#[derive(Debug)]
pub(super) struct Codes {
    /// What stands for a value at even and at odd heaps; the last entry for all that have no code.
    table: Box<[[u8; TABLE]; 2]>,
    coded: u16,
    window: Window<u8>,
    /// From here on there are values that have no code.
    until: u64,
}

impl Codes {
    /// No codes yet; the first will be that of heap `start`.
    pub(super) fn new(space: SparseSpace, start: u64) -> Codes {
        let coded = space.coded();
        let code = |v: u16, n: u64| if v >= coded || space.is_rare(v, n) { POISON } else { space.code(v) };
        let table = Box::new([2, 1].map(|n| {
            let mut values = 0..;
            std::array::from_fn(|_| code(values.next().expect("endless"), n))
        }));
        Codes { table, coded, window: Window::new(start, vec![POISON; LANES]), until: u64::MAX }
    }

    /// A copy of the last ones, as many as there are of them, with room for some more.
    pub(super) fn last(&self, count: usize, more: usize) -> Codes {
        let from = self.end().saturating_sub(count as u64).max(self.window.start());
        let mut items = Vec::with_capacity(count + LANES + more);
        items.extend_from_slice(self.window.slice(from, self.window.end()));
        Codes { table: self.table.clone(), window: Window::new(from, items), ..*self }
    }

    /// Takes up what a copy of the last ones has behind them by now.
    ///
    /// # Errors
    /// [`Error::Flipped`] when the others are no longer the same: what was marked from them may be wrong.
    pub(super) fn append(&mut self, longer: &Codes) -> Result<()> {
        let (from, end) = (longer.window.start(), self.end());
        let (ours, theirs) = (self.window.slice(from, end), longer.window.slice(from, end));
        if ours != theirs {
            return Err(Error::Flipped { what: "a copy of the codes", from, to: end });
        }
        self.window.truncate(end);
        self.window.extend(longer.window.slice(end, longer.window.end()).iter().copied());
        self.until = longer.until;
        Ok(())
    }

    /// One past the last heap.
    pub(super) fn end(&self) -> u64 {
        self.window.end() - LANES as u64
    }

    /// Whether 64 lanes at any heap before `to` may look `reach` back from any heap from `from` on.
    pub(super) fn hold(&self, from: u64, reach: u64, to: u64) -> bool {
        self.window.start() + reach <= from && to <= self.end() && to <= self.until
    }

    /// Index of heap `n` in [`Codes::items`].
    pub(super) fn at(&self, n: u64) -> usize {
        self.window.at(n)
    }

    pub(super) fn get(&self, n: u64) -> u8 {
        self.window.get(n)
    }

    pub(super) fn items(&self) -> &[u8] {
        self.window.items()
    }

    #[cfg(test)]
    pub(super) fn start(&self) -> u64 {
        self.window.start()
    }

    #[cfg(test)]
    pub(super) fn items_mut(&mut self) -> &mut Vec<u8> {
        self.window.items_mut()
    }

    /// Takes up the next values.
    pub(super) fn push(&mut self, values: &[u16]) {
        let end = self.end();
        self.window.truncate(end);
        let largest = values.iter().copied().max().unwrap_or(0);
        if self.until == u64::MAX
            && largest >= self.coded
            && let Some(i) = values.iter().position(|&v| v >= self.coded)
        {
            self.until = end + i as u64;
        }
        let is_odd = usize::from(end % 2 == 1);
        let [first, second] = [is_odd, 1 - is_odd].map(|parity| &self.table[parity]);
        let code = |table: &[u8; TABLE], v: u16| table[usize::from(v).min(TABLE - 1)];
        self.window.extend_by_turns(values, |v| code(first, v), |v| code(second, v));
        if end == 0 && !values.is_empty() {
            self.window.items_mut()[0] = POISON;
        }
        self.window.extend([POISON; LANES]);
    }

    /// Forgets the heaps from `end` on.
    pub(super) fn truncate(&mut self, end: u64) {
        self.window.truncate(end);
        self.window.extend([POISON; LANES]);
        if end <= self.until {
            self.until = u64::MAX;
        }
    }

    /// The end of what [`Codes::forget_before`] would drop, when it would drop anything.
    pub(super) fn evictable(&self, n: u64) -> Option<u64> {
        let evictable = self.window.evictable(n).len() as u64;
        (evictable > 0).then(|| self.window.start() + evictable)
    }

    /// Allows the heaps before `n` to be dropped.
    pub(super) fn forget_before(&mut self, n: u64) {
        self.window.forget_before(n);
    }

    /// Compares these codes with another copy of those from `start` on, in parallel; rare heaps stand here as poison.
    pub(super) fn compare(&self, start: u64, other: &[u8], is_rare: impl Fn(u64) -> bool + Sync) -> Result<()> {
        /// Heaps compared at once.
        const CODES_PER_TASK: usize = 1 << 18;
        let from = start.max(self.window.start());
        let to = self.end().min(start + other.len() as u64);
        if from >= to {
            return Ok(());
        }
        let ours = self.window.slice(from, to);
        let theirs = &other[index(from - start)..index(to - start)];
        ours.par_chunks(CODES_PER_TASK).zip(theirs.par_chunks(CODES_PER_TASK)).enumerate().try_for_each(
            |(i, (ours, theirs))| {
                let first = from + (i * CODES_PER_TASK) as u64;
                let differs = |(n, (ours, theirs)): (u64, (&u8, &u8))| {
                    (ours != theirs && !(*ours == POISON && is_rare(n))).then_some(n)
                };
                match ours == theirs {
                    true => Ok(()),
                    false => match (first..).zip(ours.iter().zip(theirs)).find_map(differs) {
                        None => Ok(()),
                        Some(n) => Err(Error::Flipped { what: "the code", from: n, to: n + 1 }),
                    },
                }
            },
        )
    }

    /// Whether what stands for these values, of the heaps from `start` on, is what it should be.
    pub(super) fn agree_with(&self, start: u64, values: &[u16]) -> Result<()> {
        for (n, &value) in (start..self.end()).zip(values).filter(|(n, _)| *n >= self.window.start().max(1)) {
            if self.get(n) != self.table[usize::from(n % 2 == 1)][usize::from(value).min(TABLE - 1)] {
                return Err(Error::Flipped { what: "the value", from: n, to: n + 1 });
            }
        }
        Ok(())
    }
}

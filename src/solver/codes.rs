//! The byte codes of the last values, proved or being proved, for the jobs that read 64 of them at once.
//!
//! Lookups for pairs of two common parts, and lookups that other threads evaluate, must not use a rare part: the option
//! of such a pair has the other class, which the code cannot express. So the code of every rare position (n = 0 among
//! them) is [`POISON`] here. A lookup with code c is unaffected by rare positions if [`POISON`] ^ c is none of the
//! codes considered.
//!
//! [`LANES`] bytes of poison follow the last code, so that 64 lanes may start at any position.

use super::window::{Window, convert_by_turns};
use crate::error::{Error, Result};
use crate::kernel::LANES;
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::sparse_space::SparseSpace;
use rayon::prelude::*;
use std::ops::Range;

/// The byte in the place of the code of a rare position, or of a value without a code.
pub(super) const POISON: u8 = u8::MAX;

/// The byte for G(n) = `v`: its code, or [`POISON`] where the value is rare or has no code. n = 0 is rare.
pub(super) fn byte_of(space: SparseSpace, n: u64, v: u16) -> u8 {
    if v >= space.coded() || space.is_rare(v, n) { POISON } else { space.code(v) }
}

/// Number of entries in the table of codes: one for each value that may have a code, and one for all larger values.
const TABLE: usize = 513;

/// A window of codes, and the table that computes them from values.
#[derive(Debug)]
pub(super) struct Codes {
    table: CodeTable,
    window: Window<u8>,
    /// The first position whose value has no code.
    until: u64,
}

/// The bytes of all values.
#[derive(Clone, Debug)]
struct CodeTable {
    /// The byte for each value at even and at odd n; the last entry is also for all larger values, which have no code
    /// in the spaces of the streams.
    bytes: Box<[[u8; TABLE]; 2]>,
    /// Values from here on have no code.
    coded: u16,
}

impl CodeTable {
    fn new(space: SparseSpace) -> CodeTable {
        let coded = space.coded();
        let mut bytes = Box::new([[POISON; TABLE]; 2]);
        // The positions 2 and 1 stand for all even and all odd positions.
        for (row, n) in bytes.iter_mut().zip([2, 1]) {
            for (byte, value) in row.iter_mut().zip(0..coded) {
                *byte = byte_of(space, n, value);
            }
        }
        CodeTable { bytes, coded }
    }

    /// The byte for value `v` at `n > 0`.
    fn byte(&self, v: u16, n: u64) -> u8 {
        self.bytes[usize::from(n % 2 == 1)][usize::from(v).min(TABLE - 1)]
    }

    /// Writes the bytes for `values` = G(`from`), G(`from` + 1), … to `codes`.
    fn encode(&self, from: u64, values: &[u16], codes: &mut [u8]) {
        let is_odd = usize::from(from % 2 == 1);
        let [first, second] = [is_odd, 1 - is_odd].map(|parity| &self.bytes[parity]);
        let byte = |bytes: &[u8; TABLE], v: u16| bytes[usize::from(v).min(TABLE - 1)];
        convert_by_turns(values, codes, |v| byte(first, v), |v| byte(second, v));
        if from == 0
            && let Some(code) = codes.first_mut()
        {
            *code = POISON;
        }
    }
}

impl Codes {
    /// An empty window whose first code will be that of position `start`.
    pub(super) fn new(space: SparseSpace, start: u64) -> Codes {
        Codes { table: CodeTable::new(space), window: Window::new(start, vec![POISON; LANES]), until: u64::MAX }
    }

    /// The codes of the values of `past` from `start` on, which all have codes.
    ///
    /// # Errors
    /// Any error of reading `past`.
    pub(super) fn reading(space: SparseSpace, start: u64, past: &dyn Sequence) -> Result<Codes> {
        let table = CodeTable::new(space);
        let mut window = Window::reading(past, start, |n, values, codes| table.encode(n, values, codes))?;
        window.extend([POISON; LANES]);
        Ok(Codes { table, window, until: u64::MAX })
    }

    /// A copy of the last `count` codes, or of all if there are fewer, with capacity for `more`.
    pub(super) fn last(&self, count: usize, more: usize) -> Codes {
        let from = self.end().saturating_sub(count as u64).max(self.window.start());
        let mut items = Vec::with_capacity(count + LANES + more);
        items.extend_from_slice(self.window.slice(from, self.window.end()));
        Codes { table: self.table.clone(), window: Window::new(from, items), until: self.until }
    }

    /// Compares these codes with `copy`, which began as a copy of the last of them and was continued apart. These codes
    /// reach at least as far.
    ///
    /// # Errors
    /// [`Error::Flipped`] when they differ.
    pub(super) fn agree_with_copy(&self, copy: &Codes) -> Result<()> {
        let (from, to) = (copy.window.start(), copy.end());
        if self.window.slice(from, to) != copy.window.slice(from, to) {
            return Err(Error::Flipped { what: "a copy of the codes", from, to });
        }
        Ok(())
    }

    /// One past the position of the last code.
    pub(super) fn end(&self) -> u64 {
        self.window.end() - LANES as u64
    }

    /// Whether all values before `to` have codes, and the window holds the codes from `from - reach` up to `to`.
    /// Lookups with offsets up to `reach` may then run on any lanes in `from..to`.
    pub(super) fn hold(&self, from: u64, reach: u64, to: u64) -> bool {
        self.window.start() + reach <= from && to <= self.end() && to <= self.until
    }

    /// Index of position `n` in [`Codes::items`].
    pub(super) fn at(&self, n: u64) -> usize {
        self.window.at(n)
    }

    /// The code of position `n`.
    pub(super) fn get(&self, n: u64) -> u8 {
        self.window.get(n)
    }

    /// The codes, and [`LANES`] bytes of poison.
    pub(super) fn items(&self) -> &[u8] {
        self.window.items()
    }

    /// The position of the first code.
    pub(super) fn start(&self) -> u64 {
        self.window.start()
    }

    #[cfg(test)]
    pub(super) fn items_mut(&mut self) -> &mut Vec<u8> {
        self.window.items_mut()
    }

    /// Appends the codes of the next values.
    pub(super) fn push(&mut self, values: &[u16]) {
        let from = self.end();
        let places = self.make_room(values);
        self.table.encode(from, values, &mut self.window.items_mut()[places]);
    }

    /// Appends the codes of the next values, which all threads of the pool compute.
    pub(super) fn push_in_parallel(&mut self, values: &[u16]) {
        /// Number of codes that one task computes.
        const CODES_PER_TASK: usize = 1 << 14;
        let from = self.end();
        let places = self.make_room(values);
        let codes = self.window.items_mut()[places].par_chunks_mut(CODES_PER_TASK);
        let tasks = values.par_chunks(CODES_PER_TASK).zip(codes).enumerate();
        tasks.for_each(|(i, (values, codes))| self.table.encode(from + (i * CODES_PER_TASK) as u64, values, codes));
    }

    /// Appends room, filled with poison, for the codes of the next values, and notes the first value without a code.
    /// Returns the indices of these codes in [`Codes::items`].
    fn make_room(&mut self, values: &[u16]) -> Range<usize> {
        let end = self.end();
        let largest = values.iter().copied().max().unwrap_or(0);
        if self.until == u64::MAX
            && largest >= self.table.coded
            && let Some(i) = values.iter().position(|&v| v >= self.table.coded)
        {
            self.until = end + i as u64;
        }
        self.window.grow(values.len(), POISON);
        self.at(end)..self.at(end) + values.len()
    }

    /// Forgets the codes from position `end` on.
    pub(super) fn truncate(&mut self, end: u64) {
        self.window.truncate(end);
        self.window.extend([POISON; LANES]);
        if end <= self.until {
            self.until = u64::MAX;
        }
    }

    /// The end of the positions that [`Codes::forget_before`] would drop, if it would drop any.
    pub(super) fn evictable(&self, n: u64) -> Option<u64> {
        let evictable = self.window.evictable(n).len() as u64;
        (evictable > 0).then(|| self.window.start() + evictable)
    }

    /// Allows the positions before `n` to be dropped.
    pub(super) fn forget_before(&mut self, n: u64) {
        self.window.forget_before(n);
    }

    /// Compares these codes with another copy of the codes from `start` on, in parallel. Where these hold poison, the
    /// other copy may hold any byte at a rare position.
    ///
    /// # Errors
    /// [`Error::Flipped`] at the first difference that a thread finds.
    pub(super) fn compare(&self, start: u64, other: &[u8], is_rare: impl Fn(u64) -> bool + Sync) -> Result<()> {
        /// Number of codes that one task compares.
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
                if ours == theirs {
                    return Ok(());
                }
                match (first..).zip(ours.iter().zip(theirs)).find_map(differs) {
                    None => Ok(()),
                    Some(n) => Err(Error::Flipped { what: "the code", from: n, to: n + 1 }),
                }
            },
        )
    }

    /// Checks that the codes from `start` on are those of `values`, the values from `start` on.
    ///
    /// # Errors
    /// [`Error::Flipped`] at the first difference.
    pub(super) fn agree_with(&self, start: u64, values: &[u16]) -> Result<()> {
        for (n, &value) in (start..self.end()).zip(values).filter(|(n, _)| *n >= self.window.start().max(1)) {
            if self.get(n) != self.table.byte(value, n) {
                return Err(Error::Flipped { what: "the value", from: n, to: n + 1 });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::Random;
    use crate::theory::rule::Rule;

    #[test]
    fn codes_computed_in_parallel_and_in_pieces_are_those_of_the_space() {
        let mut random = Random::new("codes of values");
        let rules = [("grundy", 0x1fe, 0), ("0.106", 0x12, 1)].map(|(rule, mask, position)| {
            let rule: Rule = rule.parse().unwrap();
            SparseSpace::new(&rule, mask, position).unwrap()
        });
        for (space, start) in rules.into_iter().flat_map(|space| [(space, 0), (space, 7)]) {
            let values: Vec<u16> = (0..100_001).map(|_| u16::try_from(random.below(600)).unwrap()).collect();
            let (mut whole, mut pieces) = (Codes::new(space, start), Codes::new(space, start));
            whole.push_in_parallel(&values);
            values.chunks(77).for_each(|piece| pieces.push(piece));
            let byte = |(n, &v): (u64, &u16)| {
                if v >= space.coded() || space.is_rare(v, n) { POISON } else { space.code(v) }
            };
            let mut expected: Vec<u8> = (start..).zip(&values).map(byte).collect();
            expected.extend([POISON; LANES]);
            assert!(whole.items() == expected && pieces.items() == expected, "{space} from {start}");
            assert_eq!(whole.until, start + values.iter().position(|&v| v >= space.coded()).unwrap() as u64);
            assert_eq!(whole.until, pieces.until);
        }
    }

    #[test]
    fn codes_read_from_a_sequence_are_those_pushed() {
        let mut random = Random::new("codes of a sequence");
        let space = SparseSpace::new(&"grundy".parse().unwrap(), 0x1fe, 0).unwrap();
        let values: Vec<u16> = (0..2_300_001).map(|_| u16::try_from(random.below(512)).unwrap()).collect();
        for start in [0, 1, 7, 2_300_000, 2_300_001] {
            let mut pushed = Codes::new(space, start);
            pushed.push(&values[index(start)..]);
            let read = Codes::reading(space, start, &values).unwrap();
            assert!(read.items() == pushed.items() && read.end() == pushed.end(), "from {start}");
        }
    }
}

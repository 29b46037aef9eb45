//! Games without a good sparse space, while their values are small: all pairs of parts, many at once.
//!
//! G(n) is the mex over all options. The values of the options with the smallest parts are entered in a set. In most
//! cases the least value missing from the set is then G(n), or G(n) is one of a few larger ones. The search then
//! tests whether any other pair gives the least missing value, and moves on to the next missing value until no pair
//! gives it. Each test compares two rows of values, one of them backwards, with one wanted value
//! ([`Kernel::find_code_pair`]), 64 pairs per instruction. So the values are stored forwards and backwards, as bytes:
//! they are below 256. The number of pairs that are entered first follows the number of values found late.
//!
//! Invariant: the answer is the least value that no option has; every pair was entered or compared.

pub(super) mod bench;

use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::solver::cost::ENTER_PAIRS;
use crate::solver::window::Window;
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::rule::{Rule, Split};
use rayon::prelude::*;

/// Minimum number of small parts per split whose options are entered in the set.
const MARKED: u64 = 256;

/// Number of pairs that one task compares; fewer are not worth a second thread.
const TASK: u64 = 1 << 17;

/// The pairs of parts of a split with smaller part in `first..=last`.
#[derive(Clone, Copy)]
struct PairRange {
    split: Split,
    first: u64,
    last: u64,
}

/// Values as bytes, stored forwards and backwards.
struct Row {
    forwards: Vec<u8>,
    /// The values in reverse order at the end, with free space before them.
    backwards: Vec<u8>,
}

impl Row {
    fn new(forwards: Vec<u8>) -> Row {
        let backwards = forwards.iter().rev().copied().collect();
        Row { forwards, backwards }
    }

    fn push(&mut self, value: u8) {
        let length = self.forwards.len();
        self.forwards.push(value);
        if length == self.backwards.len() {
            let room = length.max(1 << 12);
            let mut longer = vec![0; length + room];
            longer[room..].copy_from_slice(&self.backwards);
            self.backwards = longer;
        }
        let first = self.backwards.len() - 1 - length;
        self.backwards[first] = value;
    }

    /// The values of these parts of `n`: the smaller parts in descending order, and the larger parts at the same
    /// indices.
    fn parts(&self, n: u64, pairs: PairRange) -> (&[u8], &[u8]) {
        let PairRange { split, first, last } = pairs;
        if last < first {
            return (&[], &[]);
        }
        let (end, rest) = (self.backwards.len(), n - split.remove);
        let small = &self.backwards[end - 1 - index(last)..end - index(first)];
        (small, &self.forwards[index(rest - last)..index(rest - first + 1)])
    }

    /// The index of the first value that is not the one of `expected` in one of the two directions.
    fn first_mismatch(&self, expected: &[u16]) -> Option<usize> {
        let both = self.forwards.iter().zip(self.backwards.iter().rev());
        both.zip(expected).position(|((&a, &b), &value)| u16::from(a) != value || u16::from(b) != value)
    }
}

/// The solver by all pairs: all values of a sequence, and the row that it compares.
pub(super) struct ExhaustiveSolver {
    kernel: Kernel,
    values: Window<u16>,
    row: Row,
    /// The bitwise OR of all values.
    mask: u16,
    /// Number of small parts per split whose options are entered in the set before others are compared.
    marked: u64,
    /// Number of pairs compared plus [`ENTER_PAIRS`] times the number entered, since the start.
    work: u64,
}

impl ExhaustiveSolver {
    /// A solver that continues `past`, whose values are below 256.
    ///
    /// # Errors
    /// Any error of reading `past`.
    pub(super) fn new(kernel: Kernel, past: &dyn Sequence) -> Result<ExhaustiveSolver> {
        let mut values = vec![0; index(past.len())];
        past.read(0, &mut values)?;
        let bytes = values.iter().map(|&value| u8::try_from(value).expect("a value below 256")).collect();
        let mask = values.iter().fold(0, |all, v| all | v);
        let (values, row) = (Window::new(0, values), Row::new(bytes));
        Ok(ExhaustiveSolver { kernel, values, row, mask, marked: MARKED, work: 0 })
    }

    /// Compares the values and the row with the values of `past`.
    ///
    /// # Errors
    /// [`Error::Flipped`] at the first difference, and any error of reading `past`.
    pub(super) fn check_memory(&self, past: &dyn Sequence) -> Result<()> {
        self.values.agrees_with(past)?;
        let values = self.values.items();
        if self.mask != values.iter().fold(0, |all, v| all | v) {
            return Err(Error::Flipped { what: "the bits of all values", from: 0, to: self.end() });
        }
        match self.row.first_mismatch(values) {
            None => Ok(()),
            Some(n) => Err(Error::Flipped { what: "the row of values", from: n as u64, to: values.len() as u64 }),
        }
    }

    /// The work so far, in compared pairs.
    pub(super) fn work(&self) -> u64 {
        self.work
    }

    /// One past the position of the last value.
    pub(super) fn end(&self) -> u64 {
        self.values.end()
    }

    /// Computes the next value, and appends it if it is below 256. At a larger one the solver cannot continue.
    ///
    /// # Errors
    /// [`Error::ValueTooLarge`] at a value above 65535; [`Error::Flipped`] at an option above all values.
    pub(super) fn next(&mut self, rule: &Rule) -> Result<u16> {
        let value = self.value(rule, self.end())?;
        if let Ok(byte) = u8::try_from(value) {
            self.values.push(value);
            self.mask |= value;
            self.row.push(byte);
        }
        Ok(value)
    }

    /// G(n) of the rule, where `n` is at most the number of values held.
    fn value(&mut self, rule: &Rule, n: u64) -> Result<u16> {
        let all = rule.moves().iter().fold(self.mask, |all, m| all | m.constant);
        // No option is above this, so the least value missing is at most one more.
        let largest = (usize::from(all) + 1).next_power_of_two() - 1;
        let mut seen = vec![false; largest + 2];
        let mut options = 0;
        for option in rule.single_options(n, |m| self.values.get(m)) {
            options |= option;
            seen[usize::from(option) & largest] = true;
        }
        let mut rest = Vec::new();
        let mut pairs = 0;
        let mut entered = 0;
        for split in rule.splits() {
            let last = split.largest_small_part(n);
            let marked = last.min(self.marked);
            let early = PairRange { split, first: 1, last: marked };
            options |= mark(&mut seen[..=largest], self.row.parts(n, early), split.constant);
            for from in (marked..last).step_by(index(TASK)) {
                rest.push(PairRange { split, first: from + 1, last: last.min(from + TASK) });
            }
            pairs += last - marked;
            entered += marked;
        }
        if usize::from(options) > largest {
            return Err(Error::Flipped { what: "the bits of all values", from: 0, to: n });
        }
        let mut late = 0;
        let mut place = 0;
        loop {
            place += seen[place..].iter().position(|seen| !seen).unwrap_or(seen.len() - place);
            let least = u16::try_from(place).map_err(|_| Error::ValueTooLarge { n })?;
            let has = |&pairs: &PairRange| self.has(n, pairs, least);
            let found = if rest.len() > 1 { rest.par_iter().any(has) } else { rest.iter().any(has) };
            if !found {
                // Entering twice as many pairs would find about half of the late values early. A late value costs about
                // half of the remaining pairs.
                let saved = late * pairs / 4;
                let cost = self.marked * ENTER_PAIRS;
                if saved > cost {
                    self.marked *= 2;
                } else if saved < cost / 8 && pairs > 0 {
                    self.marked = (self.marked / 2).max(MARKED);
                }
                self.work += entered * ENTER_PAIRS + (late + 1) * pairs + seen.len() as u64;
                return Ok(least);
            }
            let Some(seen) = seen.get_mut(place) else {
                return Err(Error::Flipped { what: "the bits of all values", from: 0, to: n });
            };
            *seen = true;
            late += 1;
        }
    }

    /// Whether one of these pairs of parts of `n` gives this value.
    fn has(&self, n: u64, pairs: PairRange, value: u16) -> bool {
        // No XOR of bytes is above 255.
        let Ok(wanted) = u8::try_from(value ^ pairs.split.constant) else { return false };
        let (small, large) = self.row.parts(n, pairs);
        self.kernel.find_code_pair(small, large, wanted).is_some()
    }
}

/// Enters the values of the options of pairs of parts in a set, whose length is a power of two, and returns the bits
/// that any of them has. Of an option beyond the set only the low bits are entered.
fn mark(seen: &mut [bool], (small, large): (&[u8], &[u8]), constant: u16) -> u16 {
    let most = seen.len() - 1;
    let mut options = 0;
    for (&a, &b) in small.iter().zip(large) {
        let option = constant ^ u16::from(a ^ b);
        options |= option;
        seen[usize::from(option) & most] = true;
    }
    options
}

#[cfg(test)]
mod tests;

//! The last values, which the lookups of the candidate stream read.

use crate::error::Result;
use crate::solver::codes::Codes;
use crate::solver::window::{Window, convert_by_turns};
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::sparse_space::SparseSpace;

/// Number of last codes and of last values that a stream keeps at least.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lookback {
    /// Back to the largest offset of a lookup, from a position of a sample.
    pub(super) codes: u64,
    /// Back to the largest removal of the rule, from a position of a sample.
    pub(super) values: u64,
}

/// The last values of a sequence: byte codes for the lookups, and values for the moves that leave one heap.
pub(super) struct ValueWindows {
    space: SparseSpace,
    /// The value of each code at even and at odd n.
    decoded: [[u16; 256]; 2],
    /// Byte codes, back to the largest offset of a lookup.
    codes: Window<u8>,
    /// Values, back to the largest removal.
    values: Window<u16>,
}

impl ValueWindows {
    /// Empty windows at the end of a sequence of `end` values.
    pub(super) fn new(space: SparseSpace, end: u64) -> ValueWindows {
        ValueWindows {
            space,
            decoded: [0, 1].map(|n| std::array::from_fn(|code| space.decode(code.to_le_bytes()[0], n))),
            codes: Window::new(end, Vec::new()),
            values: Window::new(end, Vec::new()),
        }
    }

    /// One past the position of the last value.
    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.values.end()
    }

    /// The byte codes.
    #[inline]
    pub(super) fn codes(&self) -> &Window<u8> {
        &self.codes
    }

    /// The byte codes, to append those of the next positions; [`ValueWindows::decode_from`] must follow.
    #[inline]
    pub(super) fn codes_mut(&mut self) -> &mut Window<u8> {
        &mut self.codes
    }

    /// The values at the positions `from..to`.
    pub(super) fn values(&self, from: u64, to: u64) -> &[u16] {
        self.values.slice(from, to)
    }

    /// G(m) for a single heap that a move may leave: from the values, or from the codes that are not decoded yet.
    #[inline]
    pub(super) fn value_at(&self, m: u64) -> u16 {
        if m < self.values.end() { self.values.get(m) } else { self.space.decode(self.codes.get(m), m) }
    }

    /// The value window, to flip bits of it.
    #[cfg(test)]
    pub(super) fn values_mut(&mut self) -> &mut Window<u16> {
        &mut self.values
    }

    /// Reads the windows again from `past`, which holds every value up to the end of the stream.
    ///
    /// # Errors
    /// Any error of reading `past`.
    pub(super) fn refill(&mut self, past: &dyn Sequence, lookback: Lookback) -> Result<()> {
        let end = past.len();
        let codes_from = end.saturating_sub(lookback.codes);
        let values_from = end.saturating_sub(lookback.values);
        let space = self.space;
        self.codes = Window::reading(past, codes_from, |_, values, codes| {
            codes.iter_mut().zip(values).for_each(|(code, &v)| *code = space.code(v));
        })?;
        let mut values = vec![0; index(end - values_from)];
        past.read(values_from, &mut values)?;
        self.values = Window::new(values_from, values);
        Ok(())
    }

    /// Appends the next value.
    pub(super) fn push(&mut self, value: u16) {
        self.codes.push(self.space.code(value));
        self.values.push(value);
    }

    /// Appends the values of the codes from `start` on.
    pub(super) fn decode_from(&mut self, start: u64) {
        let codes = &self.codes.items()[self.codes.at(start)..];
        let is_odd = usize::from(start % 2 == 1);
        let [first, second] = [is_odd, 1 - is_odd].map(|parity| &self.decoded[parity]);
        let values = self.values.grow(codes.len(), 0);
        convert_by_turns(codes, values, |code| first[usize::from(code)], |code| second[usize::from(code)]);
    }

    /// Forgets everything from position `end` on.
    pub(super) fn truncate(&mut self, end: u64) {
        self.codes.truncate(end);
        self.values.truncate(end);
    }

    /// Allows the values before `from` to be dropped, after comparing them with `past`.
    ///
    /// # Errors
    /// [`Error::Flipped`](crate::error::Error::Flipped) at the first difference, and any error of reading `past`.
    pub(super) fn forget_values(&mut self, from: u64, past: &dyn Sequence) -> Result<()> {
        self.values.forget(from, past)
    }

    /// Allows the codes before `horizon` to be dropped, here and in the other copy, after comparing those that either
    /// copy would drop.
    ///
    /// # Errors
    /// [`Error::Flipped`](crate::error::Error::Flipped) at the first difference.
    pub(super) fn forget_codes(
        &mut self,
        horizon: u64,
        other: &mut Codes,
        is_rare: impl Fn(u64) -> bool + Sync,
    ) -> Result<()> {
        let start = self.codes.start();
        let ours = start + self.codes.evictable(horizon).len() as u64;
        let end = other.evictable(horizon).unwrap_or(0).clamp(ours, self.codes.end());
        other.compare(start, self.codes.slice(start, end), is_rare)?;
        // Two threads, because the remaining codes move down: tens of millions in Grundy's game.
        rayon::join(|| self.codes.forget_before(horizon), || other.forget_before(horizon));
        Ok(())
    }

    /// Compares the values with those of `past`, at the positions that `past` holds.
    ///
    /// # Errors
    /// [`Error::Flipped`](crate::error::Error::Flipped) at the first difference, and any error of reading `past`.
    pub(super) fn values_agree_with(&self, past: &dyn Sequence) -> Result<()> {
        self.values.agrees_with(past)
    }

    /// Compares the codes with the other copy.
    ///
    /// # Errors
    /// [`Error::Flipped`](crate::error::Error::Flipped) at the first difference.
    pub(super) fn codes_agree_with(&self, other: &Codes, is_rare: impl Fn(u64) -> bool + Sync) -> Result<()> {
        other.compare(self.codes.start(), self.codes.items(), is_rare)
    }
}

//! Finds the shifts at which the end of a sequence repeats.
//!
//! A sequence of N values shows the period p from some n0 on when its last values also occur p earlier. So the search
//! is string matching: it searches for the last h values backwards from the end, and the nearest earlier occurrence
//! gives the least p. Two-Way matching backwards (Crochemore and Perrin, *Two-way string-matching*, JACM 38, 1991;
//! `memchr::memmem`) takes linear time and constant memory. It works on the bytes min(G(n), 255), which a table of
//! bytes maps without a copy. Equal values have equal bytes, so no shift is missed. Where the bytes agree, whole
//! values are compared, so no shift is reported wrongly. After [`TRIES`] shifts at which the bytes repeat and the
//! values do not, the search starts again on whole values.
//!
//! The choice of h: with h = N/2 the theorems of [`super::theorems`] apply most often. A smaller h, down to N/16,
//! suffices for an observation, and one lookback of the solver for the window theorem. If the last h values occur p
//! earlier, so do the last h' < h. So the search begins with the least h, and usually ends there because nothing
//! repeats.

use super::Repeat;
use crate::error::{Error, Result};
use crate::table::saturated;
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use memchr::memmem::FinderRev;
use rayon::prelude::*;
use std::borrow::Cow;

/// Maximum number of shifts rejected by comparing whole values before the search continues on whole values.
const TRIES: usize = 1 << 10;

/// Number of values compared by one task.
const VALUES_PER_TASK: u64 = 1 << 16;

/// The values of a sequence after its discarded ones, as bytes that can be searched.
pub(super) struct Stretch<'a> {
    values: &'a dyn Sequence,
    /// First n of the stretch.
    pub(super) start: u64,
    /// min(G(n), 255) for every n of the stretch.
    bytes: Cow<'a, [u8]>,
}

impl<'a> Stretch<'a> {
    /// Borrows the saturated bytes of `values`, or computes them: one byte per value.
    pub(super) fn new(values: &'a dyn Sequence) -> Result<Stretch<'a>> {
        let freed = values.discarded();
        let start = if freed.is_empty() { 0 } else { freed.end };
        let bytes = match values.saturated_bytes() {
            Some(bytes) => Cow::Borrowed(&bytes[index(start)..]),
            None => {
                let length = values.len() - start;
                let mut bytes = Vec::new();
                let none = |_| Error::Memory { what: "a byte of each value, to be searched,", bytes: length };
                bytes.try_reserve_exact(index(length)).map_err(none)?;
                crate::theory::definition::for_each_piece(values, start, values.len(), |_, piece| {
                    bytes.extend(piece.iter().map(|&v| saturated(v)));
                    Ok(())
                })?;
                Cow::Owned(bytes)
            }
        };
        Ok(Stretch { values, start, bytes })
    }

    /// Returns the number of values in the stretch.
    pub(super) fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns the least p >= `least` such that the last `h` values equal those p earlier.
    pub(super) fn shift(&self, h: u64, least: u64) -> Result<Option<u64>> {
        let length = self.bytes.len();
        let h = index(h.max(1));
        let Some(mut end) = length.checked_sub(index(least.max(1))) else { return Ok(None) };
        if h > length {
            return Ok(None);
        }
        let count = self.values.len();
        let finder = FinderRev::new(&self.bytes[length - h..]);
        let mut tries = 0;
        while let Some(at) = finder.rfind(&self.bytes[..end]) {
            let p = (length - h - at) as u64;
            if last_difference(self.values, p, count - h as u64 - p, count - p)?.is_none() {
                self.require_all()?;
                return Ok(Some(p));
            }
            end = at + h - 1;
            tries += 1;
            if tries == TRIES {
                self.require_all()?;
                return self.shift_of_values(h, p + 1);
            }
        }
        self.require_all()?;
        Ok(None)
    }

    /// Checks that no value of the stretch was discarded during the search. Its borrowed byte would read as 0, and hide
    /// a smaller shift.
    fn require_all(&self) -> Result<()> {
        self.values.require(self.start, self.values.len())
    }

    /// Like [`Stretch::shift`], on whole values of two bytes, for sequences whose saturated bytes repeat where their
    /// values do not.
    fn shift_of_values(&self, h: usize, least: u64) -> Result<Option<u64>> {
        let bytes = 2 * self.length();
        let mut pairs = Vec::new();
        let none = |_| Error::Memory { what: "the sequence, to be searched,", bytes };
        pairs.try_reserve_exact(index(bytes)).map_err(none)?;
        crate::theory::definition::for_each_piece(self.values, self.start, self.values.len(), |_, piece| {
            pairs.extend(piece.iter().flat_map(|v| v.to_le_bytes()));
            Ok(())
        })?;
        let finder = FinderRev::new(&pairs[pairs.len() - 2 * h..]);
        let mut end = pairs.len().saturating_sub(2 * index(least));
        while let Some(at) = finder.rfind(&pairs[..end]) {
            if at % 2 == 0 {
                return Ok(Some(((pairs.len() - at) / 2 - h) as u64));
            }
            end = at + 2 * h - 1;
        }
        Ok(None)
    }
}

/// Returns the greatest n in `from..to` with G(n + p) != G(n). `values` must hold all n < `to + p`. The threads of
/// the calling rayon pool share the work.
///
/// # Errors
/// Errors of reading `values`.
pub fn last_difference(values: &dyn Sequence, p: u64, from: u64, to: u64) -> Result<Option<u64>> {
    let pieces = to.saturating_sub(from).div_ceil(VALUES_PER_TASK);
    let found = (0..pieces).into_par_iter().find_map_first(|back| {
        let end = to - back * VALUES_PER_TASK;
        let begin = end.saturating_sub(VALUES_PER_TASK).max(from);
        last_in(values, p, begin, end).transpose()
    });
    found.transpose()
}

fn last_in(values: &dyn Sequence, p: u64, from: u64, to: u64) -> Result<Option<u64>> {
    let length = index(to - from);
    let mut here = vec![0; length];
    let mut there = vec![0; length];
    values.read(from, &mut here)?;
    values.read(from + p, &mut there)?;
    if here == there {
        return Ok(None);
    }
    Ok(here.iter().zip(&there).rposition(|(a, b)| a != b).map(|i| from + i as u64))
}

/// Compares each value before the preperiod n0 with the repetition continued backwards: calls `see(n, value, fits)` for
/// n = 0, …, n0 - 1. An n < n0 whose value does not fit is an exception.
///
/// # Errors
/// Errors of reading `values`, which must hold all n < n0 + p, and errors of `see`.
pub fn compare_before_preperiod<E: From<Error>>(
    values: &dyn Sequence,
    repeat: &Repeat,
    mut see: impl FnMut(u64, u16, bool) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let Repeat { period: p, preperiod: n0, saltus, .. } = *repeat;
    let mut here = Vec::new();
    let mut there = Vec::new();
    let mut n = 0;
    while n < n0 {
        // The position of the first period that corresponds to n: n0 <= image < n0 + p, image = n mod p.
        let image = n0 + (n + p - n0 % p) % p;
        let increase = u128::from((image - n) / p) * u128::from(saltus);
        let length = index((n0 - n).min(n0 + p - image).min(VALUES_PER_TASK));
        here.resize(length, 0);
        there.resize(length, 0);
        values.read(n, &mut here)?;
        values.read(image, &mut there)?;
        for (n, (&value, &later)) in (n..).zip(here.iter().zip(&there)) {
            see(n, value, u128::from(value) + increase == u128::from(later))?;
        }
        n += length as u64;
    }
    Ok(())
}

/// Returns the number of exceptions ([`compare_before_preperiod`]), and the first `most` of them.
///
/// # Errors
/// Errors of reading `values`, which must hold all n < n0 + p.
pub fn exceptions(values: &dyn Sequence, repeat: &Repeat, most: usize) -> Result<(u64, Vec<u64>)> {
    let mut count = 0;
    let mut first = Vec::new();
    compare_before_preperiod(values, repeat, |n, _, fits| {
        if !fits {
            count += 1;
            if first.len() < most {
                first.push(n);
            }
        }
        Ok::<(), Error>(())
    })?;
    Ok((count, first))
}

#[cfg(test)]
mod tests;

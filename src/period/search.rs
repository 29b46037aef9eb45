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
//! The choice of h: with h = N/2 the theorems of [`super`] apply most often. A shorter end, down to N/16, suffices
//! for an observation, and a few thousand values suffice for the window theorem. A shift of a long end is also a
//! shift of each shorter end, so the search begins with the shortest end, and usually ends there because nothing
//! repeats.

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
pub(super) struct Stretch<'a, S: ?Sized> {
    values: &'a S,
    /// First n of the stretch.
    pub(super) start: u64,
    /// min(G(n), 255) for every n of the stretch.
    bytes: Cow<'a, [u8]>,
}

impl<'a, S: Sequence + ?Sized> Stretch<'a, S> {
    /// Borrows the saturated bytes of `values`, or computes them: one byte per value.
    pub(super) fn new(values: &'a S) -> Result<Stretch<'a, S>> {
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
                return Ok(Some(p));
            }
            end = at + h - 1;
            tries += 1;
            if tries == TRIES {
                return self.shift_of_values(h, p + 1);
            }
        }
        // A run may have discarded borrowed bytes during the search; this read reports it.
        self.values.read(self.start, &mut [0])?;
        Ok(None)
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
pub fn last_difference<S: Sequence + ?Sized>(values: &S, p: u64, from: u64, to: u64) -> Result<Option<u64>> {
    let pieces = to.saturating_sub(from).div_ceil(VALUES_PER_TASK);
    let found = (0..pieces).into_par_iter().find_map_first(|back| {
        let end = to - back * VALUES_PER_TASK;
        let begin = end.saturating_sub(VALUES_PER_TASK).max(from);
        last_in(values, p, begin, end).transpose()
    });
    found.transpose()
}

fn last_in<S: Sequence + ?Sized>(values: &S, p: u64, from: u64, to: u64) -> Result<Option<u64>> {
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

/// Returns the number of exceptions, and the first `most` of them. An exception is an n < n0 whose value differs from
/// the one that the period p, which holds from n0 on, gives when it is continued backwards.
///
/// # Errors
/// Errors of reading `values`.
pub fn exceptions<S: Sequence + ?Sized>(values: &S, p: u64, n0: u64, most: usize) -> Result<(u64, Vec<u64>)> {
    let mut count = 0;
    let mut first = Vec::new();
    let mut here = Vec::new();
    let mut there = Vec::new();
    let mut n = 0;
    while n < n0 {
        // The position of the first period that corresponds to n: n0 <= image < n0 + p, image = n mod p.
        let image = n0 + (n + p - n0 % p) % p;
        let length = index((n0 - n).min(n0 + p - image).min(VALUES_PER_TASK));
        here.resize(length, 0);
        there.resize(length, 0);
        values.read(n, &mut here)?;
        values.read(image, &mut there)?;
        for (n, _) in (n..).zip(here.iter().zip(&there)).filter(|(_, (a, b))| a != b) {
            count += 1;
            if first.len() < most {
                first.push(n);
            }
        }
        n += length as u64;
    }
    Ok((count, first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::Random;

    /// Finds the least shift by comparing at every shift.
    fn plainly(values: &[u16], h: usize, least: usize) -> Option<u64> {
        let n = values.len();
        (least.max(1)..=n.saturating_sub(h)).find(|p| values[n - h..] == values[n - h - p..n - p]).map(|p| p as u64)
    }

    #[test]
    fn the_least_shift_is_the_one_of_the_definition() {
        let mut random = Random::new("shifts");
        for _ in 0..3000 {
            let (length, letters) = (1 + random.below(80), 1 + random.below(3));
            let period = 1 + random.below(20);
            let mut values: Vec<u16> = Vec::new();
            for i in 0..length {
                let again = i >= period && random.below(12) > 0;
                let fresh = random.below(letters) + if random.below(4) == 0 { 300 } else { 0 };
                values.push(if again { values[index(i - period)] } else { u16::try_from(fresh).unwrap() });
            }
            let stretch = Stretch::new(values.as_slice()).unwrap();
            for h in 1..=values.len() {
                for least in [0, 1, 2, 7] {
                    let found = stretch.shift(h as u64, least).unwrap();
                    assert_eq!(found, plainly(&values, h, index(least)), "{values:?}, {h}, {least}");
                }
            }
        }
    }

    /// The bytes repeat at every shift; the values repeat only at one that comes after [`TRIES`] others.
    #[test]
    fn whole_values_are_searched_when_saturated_bytes_repeat_everywhere() {
        for period in [1000u64, 1025, 1500] {
            let values: Vec<u16> = (0..3 * period + 10).map(|i| if i % period == 0 { 256 } else { 300 }).collect();
            let stretch = Stretch::new(values.as_slice()).unwrap();
            assert_eq!(stretch.shift(2 * period, 1).unwrap(), Some(period));
            assert_eq!(stretch.shift(3 * period, 1).unwrap(), None);
        }
    }

    #[test]
    fn the_last_difference_is_found_across_pieces() {
        let p = 3;
        let mut values: Vec<u16> = (0..300_000).map(|n| [5, 6, 300][n % 3]).collect();
        assert_eq!(last_difference(values.as_slice(), p, 0, 300_000 - p).unwrap(), None);
        for at in [299_999, 299_000, 65_536, 65_535, 100, 2] {
            values[at] ^= 256;
            assert_eq!(last_difference(values.as_slice(), p, 0, 300_000 - p).unwrap(), {
                let at = at as u64;
                Some(if at + p < 300_000 { at } else { at - p })
            });
            values[at] ^= 256;
        }
        assert_eq!(last_difference(values.as_slice(), p, 7, 7).unwrap(), None);
    }

    #[test]
    fn exceptions_differ_from_the_period_continued_backwards() {
        let mut random = Random::new("exceptions");
        for _ in 0..200 {
            let (p, n0) = (1 + random.below(30), random.below(100));
            let pattern = |n: u64| u16::try_from(n % p).unwrap();
            let chosen: Vec<u64> = (0..n0).filter(|_| random.below(5) == 0).collect();
            let values: Vec<u16> = (0..n0 + p).map(|n| pattern(n) + 1000 * u16::from(chosen.contains(&n))).collect();
            let (count, first) = exceptions(values.as_slice(), p, n0, 4).unwrap();
            assert_eq!((count, first.as_slice()), (chosen.len() as u64, &chosen[..chosen.len().min(4)]), "{p}, {n0}");
        }
    }
}

//! Where the end of a sequence repeats.
//!
//! A sequence of N values has period p from some n0 on, as far as it goes, when its end stands once more p earlier. So
//! the search is string matching: the last h values are looked for in all before them, from the end, and the nearest
//! place at which they stand is the least p. Two-Way matching backwards (Crochemore and Perrin, *Two-way string-matching*,
//! JACM 38, 1991; `memchr::memmem`) takes linear time and no memory. It works on the bytes min(G(n), 255), which a table
//! of bytes has mapped as they are. Equal values have equal bytes, so no shift is missed; what agrees in the bytes is compared
//! in whole values, so none is invented. After [`TRIES`] shifts at which the bytes repeat and the values do not, the search
//! begins again with whole values.
//!
//! Which h: with h = N/2 the theorems of [`super`] can say more. Less, down to N/16, makes an observation, and a few
//! thousand values are enough for the window theorem. What repeats for a long end repeats for a short one, so the search
//! begins with the shortest, which nearly always ends it at once.

use crate::error::{Error, Result};
use crate::table::saturated;
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use memchr::memmem::FinderRev;
use rayon::prelude::*;
use std::borrow::Cow;

/// Maximum number of shifts at which whole values are compared before the search continues with whole values.
const TRIES: usize = 1 << 10;

/// Values compared by one task.
const VALUES_PER_TASK: u64 = 1 << 16;

/// The last stretch of a sequence of which all values are there, made ready to be searched.
pub(super) struct Stretch<'a, S: ?Sized> {
    values: &'a S,
    /// The first value of the stretch.
    pub(super) start: u64,
    /// min(G(n), 255) for every n of the stretch.
    bytes: Cow<'a, [u8]>,
}

impl<'a, S: Sequence + ?Sized> Stretch<'a, S> {
    /// Borrows the saturated bytes of `values`, or computes them: one byte per value.
    pub(super) fn new(values: &'a S) -> Result<Stretch<'a, S>> {
        let freed = values.freed();
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

    /// How many values there are.
    pub(super) fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The least p >= `least` with which the last `h` values are those that stand p earlier.
    pub(super) fn shift(&self, h: u64, least: u64) -> Result<Option<u64>> {
        let (length, h) = (self.bytes.len(), index(h.max(1)));
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
        // Borrowed bytes may have been freed during the search; a read reports that.
        self.values.read(self.start, &mut [0])?;
        Ok(None)
    }

    /// The same by whole values, two bytes each: for sequences whose saturated bytes repeat where their values do not.
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

/// The greatest n in `from..to` with G(n + p) != G(n); values up to `to + p` are there. All threads of the pool are used.
///
/// # Errors
/// What reading `values` gives.
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
    let (mut here, mut there) = (vec![0; length], vec![0; length]);
    values.read(from, &mut here)?;
    values.read(from + p, &mut there)?;
    if here == there {
        return Ok(None);
    }
    Ok(here.iter().zip(&there).rposition(|(a, b)| a != b).map(|i| from + i as u64))
}

/// The heaps n < n0 whose value is not the one that period p, which holds from n0 on, would give them: how many, and the
/// first `most` of them.
///
/// # Errors
/// What reading `values` gives.
pub fn exceptions<S: Sequence + ?Sized>(values: &S, p: u64, n0: u64, most: usize) -> Result<(u64, Vec<u64>)> {
    let (mut count, mut first) = (0, Vec::new());
    let (mut here, mut there) = (Vec::new(), Vec::new());
    let mut n = 0;
    while n < n0 {
        // The heap of the first period that n stands for: n0 <= image < n0 + p, image = n mod p.
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

    /// The least shift by the definition.
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

    /// Bytes that repeat with every shift, and values that repeat with one that comes after [`TRIES`] others.
    #[test]
    fn values_are_searched_in_whole_when_their_bytes_say_nothing() {
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
    fn exceptions_are_those_heaps_that_do_not_fit_the_pattern_continued_backwards() {
        let mut random = Random::new("exceptions");
        for _ in 0..200 {
            let (p, n0) = (1 + random.below(30), random.below(100));
            let pattern = |n: u64| u16::try_from(n % p).unwrap();
            let odd: Vec<u64> = (0..n0).filter(|_| random.below(5) == 0).collect();
            let values: Vec<u16> = (0..n0 + p).map(|n| pattern(n) + 1000 * u16::from(odd.contains(&n))).collect();
            let (count, first) = exceptions(values.as_slice(), p, n0, 4).unwrap();
            assert_eq!((count, first.as_slice()), (odd.len() as u64, &odd[..odd.len().min(4)]), "{p}, {n0}");
        }
    }
}

//! THE DEFINITION: G(n) is the mex of the values of all options, computed as it is written.
//!
//! Everything else in this crate is an optimisation of this file and is tested against it. The solver uses it
//!
//! - for the first values, and for rules without splits whose moves form no long runs,
//! - to compute each new maximum again, while all values are retained,
//! - to search all pairs for a smaller value that no witness excludes.
//!
//! [`first_missing`] is the exhaustive search for one huge n. It divides all splits into chunks of 2^16 pairs, enters
//! the chunks in bit sets in parallel (rayon), and stops as soon as every value below a bound has been seen.
//!
//! Invariant: this file uses no masks, no rare positions and no kernels.

use crate::error::{Error, Result};
use crate::theory::nimber::{NimSet, index};
use crate::theory::rule::{Leaves, Rule, Split, Triple};
use rayon::prelude::*;
use std::fmt;
use std::ops::Range;

/// Something that holds the first values of a sequence: a vector, a table on disk, or both.
///
/// ```
/// use grundy::theory::definition::{Prefix, Sequence, values};
///
/// let values = values(&"grundy".parse()?, 100)?;
/// let first = Prefix { of: &values, count: 20 };
/// let mut out = [0; 3];
/// first.read(17, &mut out)?;
/// assert_eq!(out, values[17..20]);
/// assert!(first.read(18, &mut out).is_err()); // 20 is not one of the first 20 values
/// # Ok::<(), grundy::Error>(())
/// ```
pub trait Sequence: Sync {
    /// The number of values: those of n = 0..`len()`.
    fn len(&self) -> u64;

    /// Whether there are no values.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The positions of the values that have been discarded; an empty range when all values are retained.
    fn discarded(&self) -> Range<u64> {
        0..0
    }

    /// Copies the values of `from..from + out.len()` to `out`.
    ///
    /// # Errors
    /// [`Error::Range`] when the range exceeds the values, [`Error::Discarded`] when some of them have been discarded.
    fn read(&self, from: u64, out: &mut [u16]) -> Result<()>;

    /// min(G(n), 255) for every n, if these bytes are in memory. The bytes of discarded values are meaningless.
    fn saturated_bytes(&self) -> Option<&[u8]> {
        None
    }

    /// Checks that the values of `from..to` can be read.
    ///
    /// # Errors
    /// [`Error::Range`] when the range exceeds the values, [`Error::Discarded`] when some of them have been discarded.
    fn require(&self, from: u64, to: u64) -> Result<()> {
        let count = self.len();
        let freed = self.discarded();
        if from > to || to > count {
            return Err(Error::Range { from, to, count });
        }
        if from.max(freed.start) < to.min(freed.end) {
            return Err(Error::Discarded { from, to, hole: (freed.start, freed.end), heap: None });
        }
        Ok(())
    }
}

/// States the number of values.
impl fmt::Debug for dyn Sequence + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} values", self.len())
    }
}

impl Sequence for &[u16] {
    fn len(&self) -> u64 {
        <[u16]>::len(self) as u64
    }

    fn read(&self, from: u64, out: &mut [u16]) -> Result<()> {
        let count = Sequence::len(self);
        let to = from.saturating_add(out.len() as u64);
        let values = usize::try_from(from).ok().and_then(|from| self.get(from..from.checked_add(out.len())?));
        out.copy_from_slice(values.ok_or(Error::Range { from, to, count })?);
        Ok(())
    }
}

impl Sequence for Vec<u16> {
    fn len(&self) -> u64 {
        Sequence::len(&self.as_slice())
    }

    fn read(&self, from: u64, out: &mut [u16]) -> Result<()> {
        self.as_slice().read(from, out)
    }
}

/// A sequence and the values that follow it.
#[derive(Debug)]
pub struct Appended<'a> {
    /// The first values.
    pub first: &'a dyn Sequence,
    /// The values after `first`.
    pub more: &'a [u16],
}

impl Sequence for Appended<'_> {
    fn len(&self) -> u64 {
        self.first.len() + self.more.len() as u64
    }

    fn discarded(&self) -> Range<u64> {
        self.first.discarded()
    }

    fn read(&self, from: u64, out: &mut [u16]) -> Result<()> {
        self.require(from, from.saturating_add(out.len() as u64))?;
        let length = self.first.len();
        let (old, new) = out.split_at_mut(index(length.saturating_sub(from).min(out.len() as u64)));
        if !old.is_empty() {
            self.first.read(from, old)?;
        }
        if new.is_empty() { Ok(()) } else { self.more.read(from.max(length) - length, new) }
    }
}

/// The first values of a sequence.
#[derive(Debug)]
pub struct Prefix<'a> {
    /// The sequence.
    pub of: &'a dyn Sequence,
    /// Number of values in the prefix, at most the length of the sequence.
    pub count: u64,
}

impl Sequence for Prefix<'_> {
    fn len(&self) -> u64 {
        self.count
    }

    fn discarded(&self) -> Range<u64> {
        let freed = self.of.discarded();
        freed.start.min(self.count)..freed.end.min(self.count)
    }

    fn saturated_bytes(&self) -> Option<&[u8]> {
        self.of.saturated_bytes().map(|bytes| &bytes[..index(self.count)])
    }

    fn read(&self, from: u64, out: &mut [u16]) -> Result<()> {
        self.require(from, from.saturating_add(out.len() as u64))?;
        self.of.read(from, out)
    }
}

/// Calls `see(n, values)` with the values G(n), G(n + 1), … for consecutive pieces of `from..to`, at most 2^16 values
/// each.
///
/// # Errors
/// Any error of reading `past`, and the first error of `see`.
pub fn for_each_piece(
    past: &dyn Sequence,
    from: u64,
    to: u64,
    mut see: impl FnMut(u64, &[u16]) -> Result<()>,
) -> Result<()> {
    let mut buffer = vec![0; index((to.saturating_sub(from)).min(1 << 16))];
    let mut n = from;
    while n < to {
        let piece = &mut buffer[..index((to - n).min(1 << 16))];
        past.read(n, piece)?;
        see(n, piece)?;
        n += piece.len() as u64;
    }
    Ok(())
}

/// Scans the values in `range` in parallel: `see(summary, n, values)` adds the values G(n), G(n + 1), … to the summary
/// of values just before them, and `and` combines the summaries of two consecutive ranges. `and` must be associative,
/// with the default as neutral element.
///
/// # Errors
/// Any error of reading `past`.
pub(crate) fn scan_in_parallel<T: Default + Send>(
    past: &dyn Sequence,
    range: Range<u64>,
    see: impl Fn(&mut T, u64, &[u16]) + Sync,
    and: impl Fn(T, T) -> T + Sync,
) -> Result<T> {
    /// Number of values that one task scans.
    const VALUES_PER_TASK: u64 = 1 << 20;
    let scan = |from: u64| {
        let mut summary = T::default();
        for_each_piece(past, from, range.end.min(from + VALUES_PER_TASK), |n, values| {
            see(&mut summary, n, values);
            Ok(())
        })?;
        Ok(summary)
    };
    let tasks: Vec<u64> = range.clone().step_by(index(VALUES_PER_TASK)).collect();
    tasks.into_par_iter().map(scan).try_reduce(T::default, |before, after| Ok(and(before, after)))
}

/// G(n) by the definition, given the earlier values.
///
/// # Errors
/// [`Error::ValueTooLarge`] when G(n) is above 65535, and [`Error::Unlisted`] when not all moves of n are listed.
pub fn value(rule: &Rule, n: u64, earlier: impl Fn(u64) -> u16) -> Result<u16> {
    rule.check_heap(n)?;
    let mut options = NimSet::new();
    rule.single_options(n, &earlier).for_each(|option| options.insert(option));
    for Split { remove, constant, min_difference } in rule.splits() {
        for a in 1..=n.saturating_sub(remove) / 2 {
            let b = n - remove - a;
            if b >= a + min_difference {
                options.insert(constant ^ earlier(a) ^ earlier(b));
            }
        }
    }
    for Triple { remove, constant } in rule.triples() {
        let left = n.saturating_sub(remove);
        for a in 1..=left / 3 {
            for b in a..=(left - a) / 2 {
                options.insert(constant ^ earlier(a) ^ earlier(b) ^ earlier(left - a - b));
            }
        }
    }
    u16::try_from(options.mex()).map_err(|_| Error::ValueTooLarge { n })
}

/// G(0), …, G(count - 1) by the definition.
///
/// # Errors
/// [`Error::ValueTooLarge`] at the first value above 65535, and [`Error::Unlisted`] at a heap above
/// [`Rule::largest_heap`].
///
/// ```
/// let rule = "grundy".parse()?;
/// assert_eq!(grundy::theory::definition::values(&rule, 10)?, [0, 0, 0, 1, 0, 2, 1, 0, 2, 1]);
/// # Ok::<(), grundy::Error>(())
/// ```
pub fn values(rule: &Rule, count: usize) -> Result<Vec<u16>> {
    let mut values: Vec<u16> = Vec::with_capacity(count);
    for n in 0..count {
        values.push(value(rule, n as u64, |m| values[index(m)])?);
    }
    Ok(values)
}

/// Number of pairs that one task searches, in two buffers of 128 KiB.
const CHUNK: u64 = 1 << 16;

/// Maximum number of tasks that are started together.
const MAX_WAVE: usize = 1 << 16;

/// The least value below `below` that no option of a heap of `n` has, or `None` if options have all of them.
///
/// With `below` = 65536 this is the definition, in parallel. With a smaller bound the search stops as soon as options
/// have all values below it. The search runs in the rayon pool of the calling thread.
///
/// # Errors
/// [`Error::Range`] when `past` does not hold 0..n, [`Error::Discarded`] when the search needs discarded values, and
/// [`Error::Unlisted`] when not all moves of n are listed.
pub fn first_missing(rule: &Rule, past: &dyn Sequence, n: u64, below: u32) -> Result<Option<u16>> {
    search_all(rule, past, n, below).map_err(|error| error.for_heap(n))
}

fn search_all(rule: &Rule, past: &dyn Sequence, n: u64, below: u32) -> Result<Option<u16>> {
    rule.check_heap(n)?;
    let mut seen = NimSet::new();
    for m in rule.moves() {
        match m.leaves {
            Leaves::Nothing if n == m.remove => seen.insert(m.constant),
            Leaves::One if n > m.remove => {
                let mut left = [0];
                past.read(n - m.remove, &mut left)?;
                seen.insert(m.constant ^ left[0]);
            }
            _ => {}
        }
    }
    search_splits(past, n, below, &mut seen, rule.splits().map(|split| (split, 1)))?;
    for Triple { remove, constant } in rule.triples() {
        let last = n.saturating_sub(remove) / 3;
        let mut values = vec![0; index(last)];
        past.read(1.min(n), &mut values)?;
        // The other two heaps of a triple with the smallest part a are those of a split, each at least a.
        let with =
            |(a, value): (u64, u16)| (Split { remove: remove + a, constant: constant ^ value, min_difference: 0 }, a);
        search_splits(past, n, below, &mut seen, (1..).zip(values).map(with))?;
    }
    let mex = seen.mex();
    Ok((mex < below).then(|| u16::try_from(mex).ok()).flatten())
}

/// Adds the values of the options of splits to `seen`, each split with its least part, until `seen` has all values
/// below `below`.
fn search_splits(
    past: &dyn Sequence,
    n: u64,
    below: u32,
    seen: &mut NimSet,
    splits: impl Iterator<Item = (Split, u64)>,
) -> Result<()> {
    let mut chunks = splits.flat_map(|(split, least)| {
        let last = split.largest_small_part(n);
        let parts = (last + 1).saturating_sub(least);
        let chunk = move |i: u64| (split, least + i * CHUNK, last.min(least + (i + 1) * CHUNK - 1));
        (0..parts.div_ceil(CHUNK)).map(chunk)
    });
    // Number of chunks in the next batch; it doubles, so that a search that can stop early wastes little.
    let mut wave = 1;
    while seen.mex() < below {
        let batch: Vec<(Split, u64, u64)> = chunks.by_ref().take(wave).collect();
        if batch.is_empty() {
            break;
        }
        let found = batch
            .par_iter()
            .map(|&(split, first, last)| search_pairs(past, n, split, first, last))
            .try_reduce(NimSet::new, |mut all, set| {
                all.union(&set);
                Ok(all)
            })?;
        seen.union(&found);
        wave = (2 * wave).min(MAX_WAVE);
    }
    Ok(())
}

/// The values of the options of one split with smaller part in `first..=last`.
fn search_pairs(past: &dyn Sequence, n: u64, split: Split, first: u64, last: u64) -> Result<NimSet> {
    let length = index(last - first + 1);
    let mut small = vec![0; length];
    let mut large = vec![0; length];
    past.read(first, &mut small)?;
    past.read(n - split.remove - last, &mut large)?;
    let mut set = NimSet::new();
    set.extend(small.iter().zip(large.iter().rev()).map(|(a, b)| split.constant ^ a ^ b));
    Ok(set)
}

/// G(n) by the parallel exhaustive search, given the values before n.
///
/// # Errors
/// Any error of [`first_missing`], and [`Error::ValueTooLarge`] when G(n) is above 65535.
pub fn value_at(rule: &Rule, past: &dyn Sequence, n: u64) -> Result<u16> {
    first_missing(rule, past, n, 1 << 16)?.ok_or(Error::ValueTooLarge { n })
}

//! The jobs on 16-bit values, for games whose values have no byte code.
//!
//! # Terms
//!
//! - The *window* is a slice of earlier values, in the order of n. *Lane* i belongs to the index `at + i` of the window.
//! - A [`WidePart`] is one part of a split, with a known value. In lane i it gives the *option*
//!   `window[at + i - offset] ^ value`.
//!
//! # Jobs
//!
//! | job | result |
//! |---|---|
//! | [`Kernel::mark_values`] | the options of parts, one byte per value and lane |
//! | [`Kernel::unmarked`] | the values without a mark, one bit per value |
//! | [`Kernel::drop_hits`] | the candidates of each lane that are no option of further parts |
//! | [`Kernel::find_mirrored`] | a pair that gives a value, one row backwards |
//! | [`Kernel::find_values`] | the values of a list that are no XOR of some pair |
//!
//! Entering an option in a set takes three instructions per lane, so the callers enter the options of some thousand
//! parts that hit most values. Comparing an option with a candidate takes two instructions per register of lanes, so
//! the callers hold all other parts against the few values that stay open.

use super::{Kernel, Platform, jobs::dispatch};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};

/// Number of consecutive n for which [`Kernel::drop_hits`] compares options at once.
pub(crate) const WIDE_LANES: usize = 32;

/// Number of consecutive n for which [`Kernel::mark_values`] enters options at once.
pub(crate) const MARK_LANES: usize = 4;

/// Maximum number of candidates per lane.
pub(crate) const WIDE_CANDIDATES: usize = 12;

/// One part of a split: in each lane it gives the option `window[at + lane - offset] ^ value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WidePart {
    /// Distance from n to the other part.
    pub(crate) offset: usize,
    /// The value of the part, XORed with the constant of the split.
    pub(crate) value: u16,
}

/// The candidates of [`WIDE_LANES`] lanes, ascending in each lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WideCandidates {
    /// `rows[k][lane]` is candidate k of the lane, if there is one.
    rows: [[u16; WIDE_LANES]; WIDE_CANDIDATES],
    /// Number of candidates of each lane.
    counts: [usize; WIDE_LANES],
}

impl WideCandidates {
    /// No candidates.
    pub(crate) fn new() -> WideCandidates {
        WideCandidates { rows: [[0; WIDE_LANES]; WIDE_CANDIDATES], counts: [0; WIDE_LANES] }
    }

    /// Appends a candidate to a lane.
    ///
    /// # Panics
    /// If the lane has [`WIDE_CANDIDATES`] of them.
    pub(crate) fn push(&mut self, lane: usize, candidate: u16) {
        self.rows[self.counts[lane]][lane] = candidate;
        self.counts[lane] += 1;
    }

    /// The candidates of a lane, ascending.
    pub(crate) fn of(&self, lane: usize) -> impl Iterator<Item = u16> + '_ {
        self.rows.iter().take(self.counts[lane]).map(move |row| row[lane])
    }

    /// The greatest number of candidates of a lane.
    pub(crate) fn most(&self) -> usize {
        self.counts.into_iter().max().unwrap_or(0)
    }

    /// Removes the candidates whose bits are set: bit `lane` of `hits[k]` for candidate k of the lane.
    fn drop(&mut self, hits: &[u32]) {
        let mut lanes = hits.iter().fold(0, |any, hit| any | hit);
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as usize;
            lanes &= lanes - 1;
            let mut kept = 0;
            for k in 0..self.counts[lane] {
                if hits.get(k).is_none_or(|hit| hit >> lane & 1 == 0) {
                    self.rows[kept][lane] = self.rows[k][lane];
                    kept += 1;
                }
            }
            self.counts[lane] = kept;
        }
    }
}

/// Parts whose options lie inside the window in all lanes.
#[derive(Clone, Copy)]
pub(super) struct WideParts<'a> {
    pub(super) window: &'a [u16],
    pub(super) at: usize,
    pub(super) list: &'a [WidePart],
}

impl<'a> WideParts<'a> {
    /// The values that a part reads in lanes 0, 1, …
    #[inline(always)]
    pub(super) fn others(&self, part: &WidePart) -> &'a [u16; WIDE_LANES] {
        let from = self.at.wrapping_sub(part.offset);
        self.window[from..from.wrapping_add(WIDE_LANES)].try_into().expect("WIDE_LANES values")
    }
}

impl Kernel {
    /// Sets `seen[lane * values + v]` to 1 for each option v of a part in the [`MARK_LANES`] lanes from index `at` of
    /// the window on, where `values`, a power of two, is the length of `seen` divided by [`MARK_LANES`].
    ///
    /// # Panics
    /// If `values` is no power of two, or a part reads values outside the window. An option at or above `values` sets
    /// another byte of its lane.
    pub(crate) fn mark_values(self, window: &[u16], at: usize, parts: &[WidePart], seen: &mut [u8]) {
        let values = seen.len() / MARK_LANES;
        assert!(values.is_power_of_two() && seen.len() == MARK_LANES * values, "a power of two values per lane");
        mark_values(window, at, parts, seen);
    }

    /// Sets bit v % 64 of `open[v / 64]` to whether byte v of `seen` is 0.
    ///
    /// # Panics
    /// If `seen` does not have 64 bytes for each item of `open`.
    pub(crate) fn unmarked(self, seen: &[u8], open: &mut [u64]) {
        let (seen, rest) = seen.as_chunks::<64>();
        assert!(rest.is_empty() && seen.len() == open.len(), "64 bytes for each word");
        dispatch!(self, unmarked(seen, open), avx2::unmarked(seen, open), avx512::unmarked(seen, open));
    }

    /// Removes the candidates that are options of the parts, in the [`WIDE_LANES`] lanes from index `at` of the window
    /// on.
    ///
    /// # Panics
    /// If a part reads values outside the window.
    pub(crate) fn drop_hits(self, window: &[u16], at: usize, parts: &[WidePart], candidates: &mut WideCandidates) {
        let parts = WideParts { window, at, list: parts };
        let rows = &candidates.rows;
        match candidates.most() {
            0 => {}
            1 => candidates.drop(&self.hits::<1>(parts, rows)),
            2 => candidates.drop(&self.hits::<2>(parts, rows)),
            3 | 4 => candidates.drop(&self.hits::<4>(parts, rows)),
            5 | 6 => candidates.drop(&self.hits::<6>(parts, rows)),
            7 | 8 => candidates.drop(&self.hits::<8>(parts, rows)),
            9 | 10 => candidates.drop(&self.hits::<10>(parts, rows)),
            _ => candidates.drop(&self.hits::<WIDE_CANDIDATES>(parts, rows)),
        }
    }

    /// Searches a pair whose XOR is `wanted`: pair k, counted from 0, consists of item k of `a` and item k from the end of
    /// `b`. Returns the least k of such a pair. The longer slice has items without a partner.
    #[must_use]
    pub(crate) fn find_mirrored(self, a: &[u16], b: &[u16], wanted: u16) -> Option<usize> {
        let pairs = a.len().min(b.len());
        let (a, b) = (&a[..pairs], &b[b.len() - pairs..]);
        for (i, (x, y)) in a.chunks(PAIRS_PER_STEP).zip(b.rchunks(PAIRS_PER_STEP)).enumerate() {
            let is_among = match (<&[u16; PAIRS_PER_STEP]>::try_from(x), <&[u16; PAIRS_PER_STEP]>::try_from(y)) {
                (Ok(x), Ok(y)) => dispatch!(
                    self,
                    is_mirrored(x, y, wanted),
                    avx2::is_mirrored(x, y, wanted),
                    avx512::is_mirrored(x, y, wanted)
                ),
                _ => true,
            };
            if is_among && let Some(k) = x.iter().zip(y.iter().rev()).position(|(x, y)| x ^ y == wanted) {
                return Some(i * PAIRS_PER_STEP + k);
            }
        }
        None
    }

    /// Removes from `wanted` the values that are XORs of pairs from `a` and `b`, numbered as in [`Kernel::find`]. The
    /// order of the values left is unspecified.
    pub(crate) fn find_values(self, a: &[u16], b: &[u16], wanted: &mut Vec<u16>) {
        let pairs = a.len().min(b.len());
        let (a, b) = (&a[a.len() - pairs..], &b[b.len() - pairs..]);
        for (a, b) in a.rchunks(PAIRS_PER_STEP).zip(b.rchunks(PAIRS_PER_STEP)) {
            if wanted.is_empty() {
                return;
            }
            match (<&[u16; PAIRS_PER_STEP]>::try_from(a), <&[u16; PAIRS_PER_STEP]>::try_from(b)) {
                (Ok(a), Ok(b)) => dispatch!(
                    self,
                    find_values(a, b, wanted),
                    avx2::find_values(a, b, wanted),
                    avx512::find_values(a, b, wanted)
                ),
                _ => wanted.retain(|value| a.iter().zip(b).all(|(x, y)| x ^ y != *value)),
            }
        }
    }

    /// Bit `lane` of entry k: whether `rows[k][lane]` is an option of a part.
    fn hits<const K: usize>(self, parts: WideParts<'_>, rows: &[[u16; WIDE_LANES]; WIDE_CANDIDATES]) -> [u32; K] {
        let rows: &[[u16; WIDE_LANES]; K] = rows[..K].try_into().expect("K rows");
        dispatch!(self, hits(parts, rows), avx2::wide_hits(parts, rows), avx512::wide_hits(parts, rows))
    }
}

/// [`Kernel::mark_values`]. A function of its own, so that its loop keeps everything in registers.
#[inline(never)]
fn mark_values(window: &[u16], at: usize, parts: &[WidePart], seen: &mut [u8]) {
    /// One in each of four lanes of 16 bits.
    const ONES: u64 = 0x0001_0001_0001_0001;
    let values = seen.len() / MARK_LANES;
    let mask = (values - 1) as u64 * ONES;
    for part in parts {
        let from = at - part.offset;
        let others: &[u16; MARK_LANES] = window[from..from + MARK_LANES].try_into().expect("MARK_LANES values");
        let [a, b, c, d] = others.map(u64::from);
        let options = (a | b << 16 | c << 32 | d << 48) ^ (u64::from(part.value) * ONES);
        let options = options & mask;
        for lane in 0..MARK_LANES {
            let option = (options >> (16 * lane) & 0xffff) as usize;
            // SAFETY: `lane` is below MARK_LANES and `option`, masked, at most `values - 1`, and `seen` holds
            // MARK_LANES times `values` bytes.
            unsafe { *seen.get_unchecked_mut(lane * values + option) = 1 };
        }
    }
}

/// The reference for the vector implementations.
fn unmarked(seen: &[[u8; 64]], open: &mut [u64]) {
    for (seen, open) in seen.iter().zip(open) {
        *open = seen.iter().rev().fold(0, |bits, &byte| bits << 1 | u64::from(byte == 0));
    }
}

/// Number of pairs whose XORs an implementation of [`Kernel::find_values`] holds in registers.
pub(super) const PAIRS_PER_STEP: usize = 256;

/// [`Kernel::find_values`] for one step. The compiler vectorises it for each instruction set.
#[inline(always)]
pub(super) fn find_values(a: &[u16; PAIRS_PER_STEP], b: &[u16; PAIRS_PER_STEP], wanted: &mut Vec<u16>) {
    let mut options = [0; PAIRS_PER_STEP];
    for (option, (x, y)) in options.iter_mut().zip(a.iter().zip(b)) {
        *option = x ^ y;
    }
    wanted.retain(|value| options.iter().fold(true, |none, option| none & (option != value)));
}

/// Whether a pair of items, those of `b` taken backwards, has this XOR. The compiler vectorises it for each instruction
/// set.
#[inline(always)]
pub(super) fn is_mirrored(a: &[u16; PAIRS_PER_STEP], b: &[u16; PAIRS_PER_STEP], wanted: u16) -> bool {
    (0..PAIRS_PER_STEP).fold(false, |any, k| any | (a[k] ^ b[PAIRS_PER_STEP - 1 - k] == wanted))
}

/// The reference for the vector implementations.
fn hits<const K: usize>(parts: WideParts<'_>, rows: &[[u16; WIDE_LANES]; K]) -> [u32; K] {
    let mut hits = [0; K];
    for part in parts.list {
        let others = parts.others(part);
        for (hit, row) in hits.iter_mut().zip(rows) {
            for (lane, (other, candidate)) in others.iter().zip(row).enumerate() {
                *hit |= u32::from(other ^ part.value == *candidate) << lane;
            }
        }
    }
    hits
}

//! The jobs on 16-bit values, for the wide solver: most of its games have values without a byte code.
//!
//! # Terms
//!
//! - The *window* is a slice of earlier values, in the order of n. *Lane* i belongs to the index `at + i` of the
//!   window.
//! - A [`WidePart`] is one part of a split, with a known value. In lane i it gives the *option*
//!   `window[at + i - offset] ^ value`.
//!
//! # Jobs
//!
//! | job | result |
//! |---|---|
//! | [`Kernel::mark_values`] | the options of parts, one byte per value and lane |
//! | [`Kernel::unmarked`] | the values without a mark, one bit per value |
//! | [`Kernel::wide_hits`] | the lanes whose candidate is an option of some part |
//! | [`Kernel::find_mirrored_pair`] | the first pair whose XOR is a value; the second slice is read backwards |
//! | [`Kernel::find_mirrored_pairs`] | the values of a list that no such pair gives |
//! | [`Kernel::remove_pair_values`] | the values that no pair of items at equal distance from the ends gives |
//!
//! To mark an option takes three instructions per lane, so the callers mark only some thousand parts, those that hit
//! most values. They compare the options of all other parts with the few candidates of each lane, at two instructions
//! per register of lanes. Where many values of one position are searched, the fastest kernel looks each option up in a
//! [`ValueSet`].

use super::jobs::dispatch;
use super::portable::PAIRS_PER_STEP;
use super::{Kernel, Platform, ValueSet, WIDE_ROWS, WidePart, WideParts, WideRow, portable, prefetch, scalar};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};

/// Number of lanes in a group. [`Kernel::mark_values`] enters the options of one group or of several at once.
pub(crate) const MARK_LANES: usize = 4;

/// Maximum number of parts whose options [`Kernel::mark_values`] enters as it reads them. Each part reads a cache line,
/// which several groups share, and the level-2 cache keeps that many lines.
const DIRECT_PARTS: usize = 1 << 12;

/// Where there are more than [`DIRECT_PARTS`] parts: number of parts in a batch. [`Kernel::mark_values`] gathers the
/// options of a batch for all lanes, and then enters them. It cannot enter all lanes of a part at once, because
/// entering needs one byte per value and lane in the level-1 cache.
const GATHERED_PARTS: usize = 1 << 11;

/// Number of parts between the one whose options are gathered and the one whose values the processor begins to load.
const PREFETCHED: usize = 16;

/// Number of values in a cache line.
const LINE: usize = 32;

impl Kernel {
    /// Sets `seen[lane * values + v]` to 1 for each option v of a part in the first `seen.len() / values` lanes, which
    /// is a multiple of [`MARK_LANES`]. Of an option at or above `values`, only the bits below `values` count.
    ///
    /// # Panics
    /// If `values` is no power of two or above 2^16, `seen` does not have this length, or a part reads values outside
    /// the window.
    pub(crate) fn mark_values(self, parts: WideParts<'_, &[WidePart]>, values: usize, seen: &mut [u8]) {
        assert!(values.is_power_of_two() && values <= 1 << 16, "a power of two up to 2^16");
        assert!(seen.len().is_multiple_of(MARK_LANES * values), "whole groups of lanes");
        let WideParts { window, at, list } = parts;
        if list.len() <= DIRECT_PARTS {
            match values {
                512 => mark_groups::<4, 512>(&parts, seen),
                1024 => mark_groups::<4, 1024>(&parts, seen),
                2048 => mark_groups::<2, 2048>(&parts, seen),
                _ => mark_lanes(&parts, values, seen),
            }
            return;
        }
        // Room at the end of each row, so that its items do not all share a set of the cache.
        let row = GATHERED_PARTS + 8;
        let mut gathered = vec![0; seen.len() / (MARK_LANES * values) * row];
        for list in list.chunks(GATHERED_PARTS) {
            gather_options(WideParts { window, at, list }, row, &mut gathered);
            for (options, seen) in gathered.chunks(row).zip(seen.chunks_mut(MARK_LANES * values)) {
                enter_options(options[..list.len()].iter().copied(), seen);
            }
        }
    }

    /// Sets bit v % 64 of `open[v / 64]` to whether byte v of `seen` is 0.
    ///
    /// # Panics
    /// If `seen` does not have 64 bytes for each item of `open`.
    pub(crate) fn unmarked(self, seen: &[u8], open: &mut [u64]) {
        let (seen, rest) = seen.as_chunks::<64>();
        assert!(rest.is_empty() && seen.len() == open.len(), "64 bytes for each word");
        dispatch!(self, scalar::unmarked(seen, open), avx2::unmarked(seen, open), avx512::unmarked(seen, open));
    }

    /// Bit `lane` of entry k: whether `rows[k][lane]` is an option of a part, in the lanes from index `at` of the
    /// window on. Entries without a row are 0.
    ///
    /// # Panics
    /// If a part reads values outside the window, or there are more than [`WIDE_ROWS`] rows.
    pub(crate) fn wide_hits(
        self,
        parts: WideParts<'_, impl Iterator<Item = WidePart> + Clone>,
        rows: &[WideRow],
    ) -> [u64; WIDE_ROWS] {
        let mut hits = [0; WIDE_ROWS];
        match rows.len() {
            0 => {}
            1 => hits[..1].copy_from_slice(&self.row_hits::<1, _>(parts, rows)),
            2 => hits[..2].copy_from_slice(&self.row_hits::<2, _>(parts, rows)),
            3 => hits[..3].copy_from_slice(&self.row_hits::<3, _>(parts, rows)),
            _ => hits = self.row_hits(parts, rows),
        }
        hits
    }

    /// Searches a pair whose XOR is `wanted`: pair k, counted from 0, consists of item k of `a` and item k from the end
    /// of `b`. Returns the least k of such a pair. The longer slice has items without a partner.
    #[must_use]
    pub(crate) fn find_mirrored_pair(self, a: &[u16], b: &[u16], wanted: u16) -> Option<usize> {
        let mut least = None;
        self.find_mirrored_pairs(a, b, &mut vec![wanted], |k| least = Some(k));
        least
    }

    /// Removes from `wanted` the values that are XORs of pairs, numbered as in [`Kernel::find_mirrored_pair`]. Calls
    /// `found` with the least number of such a pair for each of them, in any order. The order of the values left is
    /// unspecified. The values of `wanted` must differ.
    pub(crate) fn find_mirrored_pairs(self, a: &[u16], b: &[u16], wanted: &mut Vec<u16>, mut found: impl FnMut(usize)) {
        let pairs = a.len().min(b.len());
        let (a, b) = (&a[..pairs], &b[b.len() - pairs..]);
        let options = a.as_chunks::<LOOKED_UP>().0.iter().zip(b.as_rchunks::<LOOKED_UP>().1.iter().rev());
        let options = options.map(|(a, b)| std::array::from_fn(|k| a[k] ^ b[LOOKED_UP - 1 - k]));
        let mut first = if self.looks_up(wanted) { find_many(options, wanted, &mut found) } else { 0 };
        while first < pairs && !wanted.is_empty() {
            let (a, b) = (&a[first..], &b[..pairs - first]);
            let without = dispatch!(
                self,
                portable::steps_without(a, b, wanted),
                avx2::steps_without(a, b, wanted),
                avx512::steps_without(a, b, wanted)
            );
            let skipped = without * PAIRS_PER_STEP;
            let step = skipped..a.len().min(skipped + PAIRS_PER_STEP);
            let pairs = a[step.clone()].iter().zip(b[b.len() - step.end..b.len() - step.start].iter().rev());
            let mut options = pairs.map(|(a, b)| a ^ b);
            let Some(mut last) = options.clone().next() else { break };
            // A last step that is not full repeats its last option.
            let options: [u16; PAIRS_PER_STEP] = std::array::from_fn(|_| {
                last = options.next().unwrap_or(last);
                last
            });
            wanted.retain(|&value| {
                // All options are compared, which the compiler vectorises; the place is searched only for a hit.
                let is_value = |option: &u16| *option == value;
                let is_option = options.iter().fold(false, |any, option| any | is_value(option));
                let k = if is_option { options.iter().position(is_value) } else { None };
                k.into_iter().for_each(|k| found(first + skipped + k));
                k.is_none()
            });
            first += step.end;
        }
    }

    /// Removes from `wanted` the values that are XORs of pairs from `a` and `b`, numbered as in
    /// [`Kernel::find_code_pair`]. The order of the values left is unspecified. The values of `wanted` must differ.
    pub(crate) fn remove_pair_values(self, a: &[u16], b: &[u16], wanted: &mut Vec<u16>) {
        let pairs = a.len().min(b.len());
        let (a, b) = (&a[a.len() - pairs..], &b[b.len() - pairs..]);
        let options = a.as_rchunks::<LOOKED_UP>().1.iter().zip(b.as_rchunks::<LOOKED_UP>().1).rev();
        let options = options.map(|(a, b)| std::array::from_fn(|k| a[k] ^ b[k]));
        let pairs = if self.looks_up(wanted) { pairs - find_many(options, wanted, |_| {}) } else { pairs };
        let (a, b) = (&a[..pairs], &b[..pairs]);
        if pairs == 0 || wanted.is_empty() {
            return;
        }
        if pairs < PAIRS_PER_STEP {
            // One step, filled up with the first pair.
            let filled = |values: &[u16]| {
                let mut step = [values[0]; PAIRS_PER_STEP];
                step[..pairs].copy_from_slice(values);
                step
            };
            self.remove_pair_values(&filled(a), &filled(b), wanted);
        } else {
            dispatch!(
                self,
                portable::remove_pair_values(a, b, wanted),
                avx2::remove_pair_values(a, b, wanted),
                avx512::remove_pair_values(a, b, wanted)
            );
        }
    }
}

impl Kernel {
    /// Whether a search looks options up in a set, because many values are wanted. Only the fastest kernel does. The
    /// kernel that repeats a part of its work compares the options instead.
    fn looks_up(self, wanted: &[u16]) -> bool {
        wanted.len() >= MANY && self == Kernel::best()
    }

    /// [`Kernel::wide_hits`] for K rows.
    fn row_hits<const K: usize, I: Iterator<Item = WidePart> + Clone>(
        self,
        parts: WideParts<'_, I>,
        rows: &[WideRow],
    ) -> [u64; K] {
        let rows: &[WideRow; K] = rows.try_into().expect("K rows");
        dispatch!(self, scalar::wide_hits(parts, rows), avx2::wide_hits(parts, rows), avx512::wide_hits(parts, rows))
    }
}

/// The options of [`MARK_LANES`] lanes, the first in the lowest bits.
type Options = u64;

/// One in each lane of [`Options`].
const ONES: Options = 0x0001_0001_0001_0001;

/// The options of a part in the lanes in which the other part has these values.
#[inline(always)]
fn options_of(others: &[u16], part: &WidePart) -> Options {
    let others: &[u16; MARK_LANES] = others[..MARK_LANES].try_into().expect("MARK_LANES values");
    let [a, b, c, d] = others.map(u64::from);
    (a | b << 16 | c << 32 | d << 48) ^ (u64::from(part.value) * ONES)
}

/// [`Kernel::mark_values`] for VALUES values, with GROUPS groups at a time. Their bytes take at most half of the
/// fastest cache.
fn mark_groups<const GROUPS: usize, const VALUES: usize>(parts: &WideParts<'_, &[WidePart]>, seen: &mut [u8]) {
    let WideParts { window, mut at, list } = *parts;
    let mut groups = seen.chunks_exact_mut(GROUPS * MARK_LANES * VALUES);
    for seen in &mut groups {
        enter_parts::<GROUPS, VALUES>(WideParts { window, at, list }, seen);
        at += GROUPS * MARK_LANES;
    }
    mark_lanes(&WideParts { window, at, list }, VALUES, groups.into_remainder());
}

/// Sets the bytes of the options of parts in `seen`, which has VALUES bytes for each lane of GROUPS groups. The
/// addresses of the lanes are constants of the loop, and all lanes share the reading of a part.
#[inline(never)]
fn enter_parts<const GROUPS: usize, const VALUES: usize>(parts: WideParts<'_, &[WidePart]>, seen: &mut [u8]) {
    let seen = seen.as_chunks_mut::<VALUES>().0;
    assert!(seen.len() == GROUPS * MARK_LANES, "VALUES bytes for each lane");
    for part in parts.list {
        let others = &parts.window[parts.at - part.offset..][..GROUPS * MARK_LANES];
        for (group, others) in others.as_chunks::<MARK_LANES>().0.iter().enumerate() {
            let options = options_of(others, part);
            for lane in 0..MARK_LANES {
                seen[group * MARK_LANES + lane][(options >> (16 * lane)) as usize % VALUES] = 1;
            }
        }
    }
}

/// [`Kernel::mark_values`] with one group at a time.
fn mark_lanes(parts: &WideParts<'_, &[WidePart]>, values: usize, seen: &mut [u8]) {
    let groups = seen.chunks_mut(MARK_LANES * values);
    for (at, seen) in (parts.at..).step_by(MARK_LANES).zip(groups) {
        let others = |part: &WidePart| &parts.window[at - part.offset..];
        enter_options(parts.list.iter().map(|part| options_of(others(part), part)), seen);
    }
}

/// Writes the options of part i in group g of [`MARK_LANES`] lanes to `gathered[g * row + i]`, for as many groups as
/// there are rows.
fn gather_options(parts: WideParts<'_, &[WidePart]>, row: usize, gathered: &mut [Options]) {
    let lanes = gathered.len() / row * MARK_LANES;
    for (i, part) in parts.list.iter().enumerate() {
        if let Some(ahead) = parts.list.get(i + PREFETCHED) {
            let from = parts.at - ahead.offset;
            parts.window[from..from + lanes].iter().step_by(LINE).for_each(prefetch);
        }
        let from = parts.at - part.offset;
        let others = parts.window[from..from + lanes].chunks_exact(MARK_LANES);
        others.zip(gathered.chunks_exact_mut(row)).for_each(|(others, row)| row[i] = options_of(others, part));
    }
}

/// Sets the bytes of the options in `seen`, which has equally many bytes, a power of two, for each of [`MARK_LANES`]
/// lanes. A function of its own, so that its loop keeps everything in registers.
///
/// # Panics
/// If `seen` is empty.
#[inline(never)]
fn enter_options(options: impl Iterator<Item = Options>, seen: &mut [u8]) {
    let values = seen.len() / MARK_LANES;
    assert!(values > 0, "a byte for each value");
    let mask = (values - 1) as u64 * ONES;
    for options in options {
        let options = options & mask;
        for lane in 0..MARK_LANES {
            let option = (options >> (16 * lane) & 0xffff) as usize;
            // SAFETY: `lane` is below MARK_LANES and `option`, masked, at most `values - 1`, and `seen` holds
            // MARK_LANES times `values` bytes.
            unsafe { *seen.get_unchecked_mut(lane * values + option) = 1 };
        }
    }
}

/// Minimum number of wanted values for which a search looks each option up in a set, instead of comparing it with each
/// value. An estimate; no other number was measured. Unit tests need fewer.
const MANY: usize = if cfg!(test) { 3 } else { 32 };

/// Number of options that [`find_many`] looks up before it tests whether the set had one of them.
const LOOKED_UP: usize = 16;

/// Removes from `wanted` the values that are among `options`, while at least [`MANY`] values are left. Calls `found`
/// with the number of the first option that has each of them. Returns the number of options read.
fn find_many(
    options: impl ExactSizeIterator<Item = [u16; LOOKED_UP]>,
    wanted: &mut Vec<u16>,
    mut found: impl FnMut(usize),
) -> usize {
    if options.len() == 0 {
        return 0;
    }
    let mut open = ValueSet::of(wanted);
    let mut read = 0;
    for options in options {
        if options.iter().fold(0, |any, &option| any | open.word_at(option)) & 1 == 1 {
            options.iter().zip(read..).filter(|(option, _)| open.remove(**option)).for_each(|(_, k)| found(k));
            if open.count < MANY {
                read += LOOKED_UP;
                break;
            }
        }
        read += LOOKED_UP;
    }
    wanted.retain(|&value| open.contains(value));
    read
}

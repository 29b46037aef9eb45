//! Tiles of pairs: the values of consecutive parts and of their partners, for consecutive sums.
//!
//! The pairs with the sum m consist of the parts a, a + 1, … and of their partners, whose sizes descend. With the next
//! sum each partner is one larger. So one stored run of partners serves many consecutive sums: those of sum number i,
//! counted from 0, begin at item i.
//!
//! A [`Page`] holds the open ones of the values below 2048. The constant of a tile brings the options in another range
//! of 2048 values there: XORed with 2048 p, the 2048 values from 2048 p on are those below 2048.
//!
//! The vector kernels split every value into two bytes, which XOR as the value does: bits 3 to 10 are the *high* byte,
//! and the other bits the *low* byte. The high byte is an index of a table of 256 bytes, which holds one bit for each
//! value below 2048. The low byte selects the bit: its bits 0 to 2 are those of the value. If its bit 3 or 7 is set,
//! which are bits 11 and 12 of the value, no bit is selected; the kernels do not read its bits 4 to 6. So they find for
//! 64 or 32 pairs at once those whose option is in the set, by table lookups in registers, and some whose option is
//! 8192 or more.

use super::{Kernel, Platform, jobs::dispatch};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};

/// Maximum number of pairs in a tile, for each sum. The two sides of a tile take half of a first-level cache.
pub(crate) const TILE_PAIRS: usize = 4096;

/// The open values below 2048: bit v % 64 of word v / 64 is that of value v.
pub(crate) type Page = [u64; PAGE_WORDS];

/// Number of words of a [`Page`].
pub(crate) const PAGE_WORDS: usize = 32;

/// Number of pairs that a vector kernel compares with the same tables: it clears the hits among them afterwards.
pub(super) const TILE_STEP: usize = 1024;

/// The hits among [`TILE_STEP`] pairs. Bit i of word j: whether the option of pair 64 j + i is open, or perhaps 8192 or
/// more.
pub(super) type Hits = [u64; TILE_STEP / 64];

/// Enters the hits that `find` finds: it gets the number of a pair and returns the N words of hits from this pair on.
/// Returns the words that are not 0: bit j for word j.
#[inline(always)]
pub(super) fn enter_hits<const N: usize>(hits: &mut Hits, mut find: impl FnMut(usize) -> [u64; N]) -> u32 {
    // Not part of `Hits`, which the compiler keeps in memory: each word would wait there for the one before.
    let mut words = 0;
    for (i, hits) in hits.as_chunks_mut().0.iter_mut().enumerate() {
        *hits = find(64 * N * i);
        for (j, &hits) in (N * i..).zip(&*hits) {
            words |= u32::from(hits != 0) << j;
        }
    }
    words
}

/// One side of a tile.
#[derive(Clone, Debug, Default)]
pub(super) struct TileSide {
    pub(super) values: Vec<u16>,
    /// The high bytes of the values, and [`TILE_STEP`] unused ones, if the kernel that filled the tile uses them.
    pub(super) high: Vec<u8>,
    /// The low bytes of the values, and [`TILE_STEP`] unused ones, if the kernel that filled the tile uses them.
    pub(super) low: Vec<u8>,
}

impl TileSide {
    /// Enters the two bytes of each value.
    #[inline(always)]
    fn split(&mut self) {
        self.high.resize(self.values.len() + TILE_STEP, 0);
        self.low.resize(self.values.len() + TILE_STEP, 0);
        for ((high, low), value) in self.high.iter_mut().zip(&mut self.low).zip(&self.values) {
            *high = (value >> 3).to_le_bytes()[0]; // bits 3 to 10
            *low = (value & 7 | value >> 8 & 8 | value >> 5 & 0x80 | value >> 9 & 0x70).to_le_bytes()[0];
        }
    }
}

/// Pair j of sum number i consists of `parts[j]` and `others[i + j]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct PairTile {
    parts: TileSide,
    others: TileSide,
    /// Number of pairs with each sum.
    pairs: usize,
    /// Number of sums.
    sums: usize,
    /// The kernel that filled the tile.
    filled_by: Option<Kernel>,
}

/// The two bytes of both values of [`TILE_STEP`] pairs.
#[derive(Clone, Copy)]
pub(super) struct TileBytes<'a> {
    pub(super) high: [&'a [u8; TILE_STEP]; 2],
    pub(super) low: [&'a [u8; TILE_STEP]; 2],
}

impl Kernel {
    /// Fills a tile: pair j of sum number i consists of item j of `parts`, XORed with `constant`, and `others[i + j]`,
    /// for as many sums as `others` suffices for.
    ///
    /// # Panics
    /// If there are more than [`TILE_PAIRS`] parts, or `others` is shorter than `parts`.
    pub(crate) fn fill_tile<'a>(
        self,
        tile: &mut PairTile,
        parts: impl ExactSizeIterator<Item = &'a u16>,
        constant: u16,
        others: &[u16],
    ) {
        assert!(parts.len() <= TILE_PAIRS && parts.len() <= others.len(), "a tile of pairs");
        dispatch!(
            self,
            fill(tile, parts, constant, others),
            avx2::fill_tile(tile, parts, constant, others),
            avx512::fill_tile(tile, parts, constant, others)
        );
        tile.filled_by = Some(self);
    }

    /// Clears the bits of the options of the pairs with a sum that are below 2048: the XORs of their two values.
    ///
    /// # Panics
    /// If the tile does not have that sum, or another kernel filled it.
    pub(crate) fn clear_options(self, tile: &PairTile, sum: usize, open: &mut Page) {
        assert!(sum < tile.sums, "a sum of the tile");
        assert!(tile.filled_by == Some(self), "a tile that this kernel filled");
        dispatch!(
            self,
            clear_options(tile, sum, open),
            avx2::clear_options(tile, sum, open),
            avx512::clear_options(tile, sum, open)
        );
    }
}

/// [`Kernel::fill_tile`]. The compiler vectorises it for each instruction set.
#[inline(always)]
fn fill<'a>(tile: &mut PairTile, parts: impl ExactSizeIterator<Item = &'a u16>, constant: u16, others: &[u16]) {
    (tile.pairs, tile.sums) = (parts.len(), others.len() + 1 - parts.len());
    tile.parts.values.clear();
    tile.parts.values.extend(parts.map(|value| value ^ constant));
    tile.others.values.clear();
    tile.others.values.extend_from_slice(others);
}

/// [`fill`] for a vector kernel, which uses the two bytes of each value.
#[inline(always)]
pub(super) fn fill_split<'a>(
    tile: &mut PairTile,
    parts: impl ExactSizeIterator<Item = &'a u16>,
    constant: u16,
    others: &[u16],
) {
    fill(tile, parts, constant, others);
    tile.parts.split();
    tile.others.split();
}

/// The reference for the vector implementations: one byte for each option below 2048, and one for all others.
fn clear_options(tile: &PairTile, sum: usize, open: &mut Page) {
    const VALUES: u16 = 64 * PAGE_WORDS as u16;
    let mut seen = [0u8; VALUES as usize + 1];
    let others = &tile.others.values[sum..][..tile.pairs];
    // The compiler vectorises the first loop over a chunk, and would make a branch of the minimum in a single loop.
    let mut options = [0; 256];
    for (parts, others) in tile.parts.values.chunks(options.len()).zip(others.chunks(options.len())) {
        let options = &mut options[..parts.len()];
        for (option, (part, other)) in options.iter_mut().zip(parts.iter().zip(others)) {
            *option = (part ^ other).min(VALUES);
        }
        options.iter().for_each(|&option| seen[usize::from(option)] = 1);
    }
    for (seen, open) in seen.as_chunks::<64>().0.iter().zip(open) {
        *open &= seen.iter().rev().fold(0, |bits, &byte| bits << 1 | u64::from(byte == 0));
    }
}

/// [`Kernel::clear_options`] for a kernel that finds the hits among [`TILE_STEP`] pairs at once. `find` gets the open
/// values, unless they are those of the call before, and the bytes of these pairs. The bytes after the last pair of the
/// tile are arbitrary. `find` enters the hits and returns what [`enter_hits`] does; `None` if no value is open.
#[inline(always)]
pub(super) fn clear_found(
    tile: &PairTile,
    sum: usize,
    open: &mut Page,
    mut find: impl FnMut(Option<&Page>, TileBytes<'_>, &mut Hits) -> Option<u32>,
) {
    let pairs = tile.pairs;
    let (parts, others) = (&tile.parts.values[..pairs], &tile.others.values[sum..][..pairs]);
    let (mut changed, mut hits) = (true, [0; TILE_STEP / 64]);
    for first in (0..pairs).step_by(TILE_STEP) {
        let bytes = TileBytes {
            high: [step_of(&tile.parts.high, first), step_of(&tile.others.high, sum + first)],
            low: [step_of(&tile.parts.low, first), step_of(&tile.others.low, sum + first)],
        };
        let Some(mut words) = find(changed.then_some(open), bytes, &mut hits) else { return };
        changed = words != 0;
        // The end of a loop over hits is hard to predict. So one loop clears those of all words.
        while words != 0 {
            let word = words.trailing_zeros() as usize;
            let hit = hits[word];
            hits[word] = hit & (hit - 1);
            words ^= u32::from(hits[word] == 0) << word;
            let at = first + 64 * word + hit.trailing_zeros() as usize;
            if at < pairs {
                let option = usize::from(parts[at] ^ others[at]);
                if let Some(open) = open.get_mut(option / 64) {
                    *open &= !(1 << (option % 64));
                }
            }
        }
    }
}

/// The bytes of [`TILE_STEP`] pairs from `first` on.
#[inline(always)]
fn step_of(bytes: &[u8], first: usize) -> &[u8; TILE_STEP] {
    bytes[first..].first_chunk().expect("a side has TILE_STEP unused bytes")
}

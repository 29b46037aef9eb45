//! The jobs on tiles of pairs.
//!
//! `pshufb` looks a byte up in a table of sixteen bytes, which hold 128 values of a page: a page has sixteen tables.
//! The kernel looks each option up in every table with an open value. A table gives 0 for the options of the other
//! tables (see [`avx2`](super)), so OR combines the results. Where all open values are small, few tables have one.

use super::HALF;
use crate::kernel::pair_tile::{PAGE_WORDS, Page, PairTile, TILE_STEP, TileBytes, clear_found, enter_hits, fill_split};
use crate::kernel::planes::ONE_HOT;
use std::arch::x86_64::*;

/// Number of registers, of [`HALF`] pairs each, that are looked up together, so that each table is read for all of
/// them.
const REGISTERS: usize = 4;

/// Number of words of hits that these registers give.
const WORDS: usize = REGISTERS * HALF / 64;

/// Number of [`Table`]s of a page.
const TABLES: usize = PAGE_WORDS / 2;

/// Sixteen bytes of a page, with a bit for each of 128 values.
#[derive(Clone, Copy)]
struct Table {
    /// The bytes, twice.
    bytes: __m256i,
    /// The number of the first of them in the page, in each byte.
    first: __m256i,
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(in crate::kernel) fn fill_tile<'a>(
    tile: &mut PairTile,
    parts: impl ExactSizeIterator<Item = &'a u16>,
    constant: u16,
    others: &[u16],
) {
    fill_split(tile, parts, constant, others);
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(in crate::kernel) fn clear_options(tile: &PairTile, sum: usize, open: &mut Page) {
    let mut tables = [Table { bytes: _mm256_setzero_si256(), first: _mm256_setzero_si256() }; TABLES];
    let mut count = 0;
    clear_found(tile, sum, open, |open, bytes, hits| {
        if let Some(open) = open {
            count = fill_tables(open, &mut tables);
        }
        let tables = &tables[..count];
        if tables.is_empty() {
            return None;
        }
        Some(enter_hits(hits, |at| hits_in(tables, bytes, at)))
    });
}

/// Fills the first tables with those that have an open value, and returns their number.
#[inline]
#[target_feature(enable = "avx2")]
fn fill_tables(open: &Page, tables: &mut [Table; TABLES]) -> usize {
    let mut count = 0;
    for (number, &[lower, upper]) in (0i8..).zip(open.as_chunks::<2>().0) {
        if lower | upper != 0 {
            let bytes =
                _mm256_set_epi64x(upper.cast_signed(), lower.cast_signed(), upper.cast_signed(), lower.cast_signed());
            tables[count] = Table { bytes, first: _mm256_set1_epi8(number << 4) };
            count += 1;
        }
    }
    count
}

/// Bit i of word j: whether the option of pair `at` + 64 j + i is open; the bit may be set too if the option is 8192 or
/// more.
#[inline]
#[target_feature(enable = "avx2")]
fn hits_in(tables: &[Table], bytes: TileBytes<'_>, at: usize) -> [u64; WORDS] {
    let high: [__m256i; REGISTERS] = std::array::from_fn(|i| options(bytes.high, at + HALF * i));
    let mut found = [_mm256_setzero_si256(); REGISTERS];
    for table in tables {
        for (found, high) in found.iter_mut().zip(high) {
            // 0 to 15 for the bytes of this table; from 128 on, for which the shuffle gives 0, for all others.
            let index = _mm256_adds_epu8(_mm256_xor_si256(high, table.first), _mm256_set1_epi8(112));
            *found = _mm256_or_si256(*found, _mm256_shuffle_epi8(table.bytes, index));
        }
    }
    // Bit `low % 8`. The shuffle takes its index from bits 0 to 3, of which indices from 8 on have no bit, and gives no
    // bit where bit 7 is set.
    let bit_of = _mm256_set_epi64x(0, ONE_HOT, 0, ONE_HOT);
    std::array::from_fn(|word| {
        let [low, high] = [2 * word, 2 * word + 1].map(|i| {
            let bit = _mm256_shuffle_epi8(bit_of, options(bytes.low, at + HALF * i));
            let none = _mm256_cmpeq_epi8(_mm256_and_si256(found[i], bit), _mm256_setzero_si256());
            !_mm256_movemask_epi8(none).cast_unsigned()
        });
        u64::from(high) << HALF | u64::from(low)
    })
}

/// One byte of the options of the pairs from `at` on.
#[inline]
#[target_feature(enable = "avx2")]
fn options([parts, others]: [&[u8; TILE_STEP]; 2], at: usize) -> __m256i {
    let [parts, others] = [parts, others].map(|side| {
        // SAFETY: the slice has as many bytes as a register.
        unsafe { _mm256_loadu_si256(side[at..at + HALF].as_ptr().cast()) }
    });
    _mm256_xor_si256(parts, others)
}

//! The jobs on tiles of pairs.

use crate::kernel::pair_tile::{Page, PairTile, TILE_STEP, clear_found, enter_hits, fill_split};
use crate::kernel::planes::ONE_HOT;
use std::arch::x86_64::*;

/// Number of pairs whose bytes are in one register.
const PAIRS_PER_REGISTER: usize = 64;

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,popcnt,bmi1,bmi2")]
pub(in crate::kernel) fn fill_tile<'a>(
    tile: &mut PairTile,
    parts: impl ExactSizeIterator<Item = &'a u16>,
    constant: u16,
    others: &[u16],
) {
    fill_split(tile, parts, constant, others);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,popcnt,bmi1,bmi2")]
pub(in crate::kernel) fn clear_options(tile: &PairTile, sum: usize, open: &mut Page) {
    let mut tables = [_mm512_setzero_si512(); 4];
    clear_found(tile, sum, open, |open, bytes, hits| {
        if let Some(open) = open {
            tables = tables_of(open);
        }
        if is_zero(&tables) {
            return None;
        }
        Some(enter_hits(hits, |at| [pairs_with_open_option(&tables, options(bytes.high, at), options(bytes.low, at))]))
    });
}

/// One byte of the options of the pairs from `at` on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn options([parts, others]: [&[u8; TILE_STEP]; 2], at: usize) -> __m512i {
    let [parts, others] = [parts, others].map(|side| {
        // SAFETY: the slice has as many bytes as a register.
        unsafe { _mm512_loadu_si512(side[at..at + PAIRS_PER_REGISTER].as_ptr().cast()) }
    });
    _mm512_xor_si512(parts, others)
}

/// The open values of a page in registers.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn tables_of(open: &Page) -> [__m512i; 4] {
    let mut tables = [_mm512_setzero_si512(); 4];
    for (table, words) in tables.iter_mut().zip(open.as_chunks::<8>().0) {
        // SAFETY: eight words have as many bytes as a register.
        *table = unsafe { _mm512_loadu_si512(words.as_ptr().cast()) };
    }
    tables
}

/// Whether no value of a page is open.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn is_zero(&[a, b, c, d]: &[__m512i; 4]) -> bool {
    let all = _mm512_or_si512(_mm512_or_si512(a, b), _mm512_or_si512(c, d));
    _mm512_test_epi64_mask(all, all) == 0
}

/// Bit i: whether option i, given by its two bytes, is open; the bit may be set too if the option is 8192 or more.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn pairs_with_open_option(&[a, b, c, d]: &[__m512i; 4], high: __m512i, low: __m512i) -> __mmask64 {
    let lower = _mm512_permutex2var_epi8(a, high, b);
    let bytes = _mm512_mask_blend_epi8(_mm512_movepi8_mask(high), lower, _mm512_permutex2var_epi8(c, high, d));
    // Bit `low % 8`. The shuffle takes its index from bits 0 to 3, of which indices from 8 on have no bit, and gives no
    // bit where bit 7 is set.
    let bit_of = _mm512_broadcast_i32x4(_mm_set_epi64x(0, ONE_HOT));
    _mm512_test_epi8_mask(bytes, _mm512_shuffle_epi8(bit_of, low))
}

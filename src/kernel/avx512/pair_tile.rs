//! The jobs on tiles of pairs.

use super::NUMBERS;
use crate::kernel::pair_tile::{Page, PairTile, TILE_STEP, fill};
use std::arch::x86_64::*;

/// Number of pairs in a register.
const LANES: usize = 64;

/// Number of registers of pairs that are compared with the same tables.
const STEPS: usize = TILE_STEP / LANES;

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,popcnt,bmi1,bmi2")]
pub(in crate::kernel) fn fill_tile<'a>(
    tile: &mut PairTile,
    parts: impl ExactSizeIterator<Item = &'a u16>,
    constant: u16,
    others: &[u16],
) {
    fill(tile, parts, constant, others);
    tile.parts.split();
    tile.others.split();
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,popcnt,bmi1,bmi2")]
pub(in crate::kernel) fn clear_options(tile: &PairTile, lane: usize, page: u8, open: &mut Page) {
    let (pairs, padded) = (tile.pairs, tile.pairs + TILE_STEP);
    let (parts, others) = (&tile.parts.values[..pairs], &tile.others.values[lane..][..pairs]);
    let (high, other_high) = (&tile.parts.high[..padded], &tile.others.high[lane..][..padded]);
    let (low, other_low) = (&tile.parts.low[..padded], &tile.others.low[lane..][..padded]);
    // The hits among the pairs from `list_first` on, whose bits are still to be cleared.
    let (mut list, mut count, mut list_first) = ([0u8; TILE_STEP + LANES], 0, 0);
    for first_pair in (0..pairs).step_by(TILE_STEP) {
        let tables = tables_of(open);
        // After the loads of the tables, which would wait for these stores.
        clear(open, &list[..count], parts, others, list_first);
        let mut hits = [0; STEPS];
        for (step, hits) in hits.iter_mut().enumerate() {
            let at = first_pair + step * LANES;
            // SAFETY: `first_pair` is below `pairs`, and each side has `TILE_STEP` items more.
            let (high, low) = unsafe {
                (
                    _mm512_xor_si512(
                        _mm512_loadu_si512(high.as_ptr().add(at).cast()),
                        _mm512_loadu_si512(other_high.as_ptr().add(at).cast()),
                    ),
                    _mm512_xor_si512(
                        _mm512_loadu_si512(low.as_ptr().add(at).cast()),
                        _mm512_loadu_si512(other_low.as_ptr().add(at).cast()),
                    ),
                )
            };
            *hits = lanes_in(&tables, high, _mm512_xor_si512(low, _mm512_set1_epi8((page << 3).cast_signed())));
        }
        (count, list_first) = (0, first_pair);
        if hits.iter().fold(0, |any, hits| any | hits) != 0 {
            if first_pair + TILE_STEP > pairs {
                for (step, hits) in hits.iter_mut().enumerate() {
                    let left = pairs.saturating_sub(first_pair + step * LANES).min(LANES);
                    *hits &= ((1u128 << left) - 1) as u64;
                }
            }
            count = places_of(&hits, &mut list);
        }
    }
    clear(open, &list[..count], parts, others, list_first);
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

/// The lanes whose values, in two bytes each, are open. The low bytes are those of values of page 0.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn lanes_in(&[a, b, c, d]: &[__m512i; 4], high: __m512i, low: __m512i) -> __mmask64 {
    let lower = _mm512_permutex2var_epi8(a, high, b);
    let bytes = _mm512_mask_blend_epi8(_mm512_movepi8_mask(high), lower, _mm512_permutex2var_epi8(c, high, d));
    // Bit `low`, for a low byte below 8. The shuffle takes its index from four bits.
    let bits = _mm512_shuffle_epi8(_mm512_set1_epi64(0x8040_2010_0804_0201u64.cast_signed()), low);
    let is_in_page = _mm512_testn_epi8_mask(low, _mm512_set1_epi8(0xf8u8.cast_signed()));
    _mm512_mask_test_epi8_mask(is_in_page, bytes, bits)
}

/// Stores in `list` the places of the hits, and returns their number.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,popcnt")]
fn places_of(hits: &[__mmask64; STEPS], list: &mut [u8; TILE_STEP + LANES]) -> usize {
    let mut count = 0;
    for (hits, places) in hits.iter().zip(NUMBERS.as_chunks::<LANES>().0) {
        // SAFETY: `places` has as many bytes as a register, and at most `LANES` places of each earlier step precede
        // those of this one in `list`.
        unsafe {
            let places = _mm512_maskz_compress_epi8(*hits, _mm512_loadu_si512(places.as_ptr().cast()));
            _mm512_storeu_si512(list.as_mut_ptr().add(count).cast(), places);
        }
        count += hits.count_ones() as usize;
    }
    count
}

// A place is one byte.
const _: () = assert!(TILE_STEP <= 256);

/// Clears the bits of the options of pairs, all in the page: `list` has their distances from pair `list_first`.
#[inline]
fn clear(open: &mut Page, list: &[u8], parts: &[u16], others: &[u16], list_first: usize) {
    for &place in list {
        let at = list_first + usize::from(place);
        let option = usize::from(parts[at] ^ others[at]);
        open[option / 64 % open.len()] &= !(1 << (option % 64));
    }
}

//! The jobs on tiles of pairs.

use crate::kernel::pair_tile::{PairTile, TILE_STEP, fill};
use std::arch::x86_64::*;

/// Number of bytes with one bit for each of 2048 consecutive values, which one high byte selects: a page.
const PAGE: usize = 256;

/// Maximum number of pages that the registers hold.
const MOST_PAGES: usize = 4;

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
pub(in crate::kernel) fn clear_options(tile: &PairTile, lane: usize, open: &mut [u64]) {
    for (group, open) in open.chunks_mut(MOST_PAGES * PAGE / 8).enumerate() {
        match open.len().div_ceil(PAGE / 8) {
            1 => clear_pages::<1>(tile, lane, group * MOST_PAGES, open),
            2 => clear_pages::<2>(tile, lane, group * MOST_PAGES, open),
            3 => clear_pages::<3>(tile, lane, group * MOST_PAGES, open),
            _ => clear_pages::<MOST_PAGES>(tile, lane, group * MOST_PAGES, open),
        }
    }
}

/// The tables of a page: one bit for each value.
type Tables = [__m512i; 4];

/// The bits of the pages in registers.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn tables_of<const P: usize>(bits: &[[u64; PAGE / 8]; P]) -> [Tables; P] {
    let mut tables = [[_mm512_setzero_si512(); 4]; P];
    for (tables, bits) in tables.iter_mut().zip(bits) {
        for (table, bits) in tables.iter_mut().zip(bits.as_chunks::<8>().0) {
            // SAFETY: eight words have as many bytes as a register.
            *table = unsafe { _mm512_loadu_si512(bits.as_ptr().cast()) };
        }
    }
    tables
}

/// The lanes whose values, in two bytes each, are in the pages.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn lanes_in<const P: usize>(tables: &[Tables; P], selections: &[__m512i; P], high: __m512i, low: __m512i) -> __mmask64 {
    let upper = _mm512_movepi8_mask(high);
    let mut found = _mm512_setzero_si512();
    for (&[a, b, c, d], &selection) in tables.iter().zip(selections) {
        let lower = _mm512_permutex2var_epi8(a, high, b);
        let bytes = _mm512_mask_blend_epi8(upper, lower, _mm512_permutex2var_epi8(c, high, d));
        let selected = _mm512_and_si512(bytes, _mm512_permutexvar_epi8(low, selection));
        found = _mm512_or_si512(found, selected);
    }
    // The selections have no entries for low bytes from 64 on.
    let is_selected = _mm512_testn_epi8_mask(low, _mm512_set1_epi8(0xc0u8.cast_signed()));
    _mm512_mask_test_epi8_mask(is_selected, found, found)
}

/// Stores in `list` the places of the hits, and returns their number.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,popcnt")]
fn places_of(hits: &[__mmask64; STEPS], list: &mut [u8; TILE_STEP + LANES]) -> usize {
    let mut count = 0;
    for (hits, places) in hits.iter().zip(&PLACES) {
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

/// The places of the pairs of each step.
const PLACES: [[u8; LANES]; STEPS] = {
    let mut places = [[0; LANES]; STEPS];
    let mut place = 0;
    while place < TILE_STEP {
        places[place / LANES][place % LANES] = place as u8;
        place += 1;
    }
    places
};

/// Selection p has bit `low % 8` for the low bytes of page p, and 0 for those of the other pages.
const SELECTIONS: [[u8; LANES]; MOST_PAGES] = {
    let mut selections = [[0; LANES]; MOST_PAGES];
    let mut low = 0;
    while low < 8 * MOST_PAGES {
        selections[low / 8][low] = 1 << (low % 8);
        low += 1;
    }
    selections
};

/// Clears the bits of `P` pages of values, of which `first` is the first, a multiple of [`MOST_PAGES`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,popcnt,bmi1,bmi2")]
fn clear_pages<const P: usize>(tile: &PairTile, lane: usize, first: usize, open: &mut [u64]) {
    let mut bits = [[0u64; PAGE / 8]; P];
    bits.as_flattened_mut()[..open.len()].copy_from_slice(open);
    let pairs = tile.pairs;
    let (parts, others) = (&tile.parts.values[..pairs], &tile.others.values[lane..][..pairs]);
    let padded = pairs + TILE_STEP;
    let (high, other_high) = (&tile.parts.high[..padded], &tile.others.high[lane..][..padded]);
    let (low, other_low) = (&tile.parts.low[..padded], &tile.others.low[lane..][..padded]);
    let mut selections = [_mm512_setzero_si512(); P];
    for (selection, bytes) in selections.iter_mut().zip(&SELECTIONS) {
        // SAFETY: `bytes` has as many bytes as a register.
        *selection = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
    }
    let first_page = _mm512_set1_epi8((first << 3) as i8);
    // The places of the last hits, which are still to be cleared.
    let (mut list, mut count) = ([0u8; TILE_STEP + LANES], 0);
    for from in (0..pairs).step_by(TILE_STEP) {
        let tables = tables_of(&bits);
        // After the loads of the tables, which would wait for these stores.
        clear(&mut bits, first, &list[..count], parts, others, from.wrapping_sub(TILE_STEP));
        let mut hits = [0; STEPS];
        for (step, hits) in hits.iter_mut().enumerate() {
            let at = from + step * LANES;
            // SAFETY: `from` is below `pairs`, and each side has `TILE_STEP` items more.
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
            *hits = lanes_in(&tables, &selections, high, _mm512_xor_si512(low, first_page));
        }
        count = 0;
        if hits.iter().fold(0, |any, hits| any | hits) != 0 {
            if from + TILE_STEP > pairs {
                for (step, hits) in hits.iter_mut().enumerate() {
                    let left = pairs.saturating_sub(from + step * LANES).min(LANES);
                    *hits &= ((1u128 << left) - 1) as u64;
                }
            }
            count = places_of(&hits, &mut list);
        }
    }
    clear(&mut bits, first, &list[..count], parts, others, pairs.saturating_sub(1) / TILE_STEP * TILE_STEP);
    open.copy_from_slice(&bits.as_flattened()[..open.len()]);
}

/// Clears the bits of the options of the pairs from `from` on that `list` names.
#[inline]
fn clear<const P: usize>(
    bits: &mut [[u64; PAGE / 8]; P],
    first: usize,
    list: &[u8],
    parts: &[u16],
    others: &[u16],
    from: usize,
) {
    for &place in list {
        let at = from + usize::from(place);
        let v = usize::from(parts[at] ^ others[at]) - first * 8 * PAGE;
        bits.as_flattened_mut()[v / 64] &= !(1 << (v % 64));
    }
}

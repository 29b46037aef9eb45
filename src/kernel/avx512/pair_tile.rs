//! The jobs on tiles of pairs.

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

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,popcnt,bmi1,bmi2")]
pub(in crate::kernel) fn clear_options(tile: &PairTile, lane: usize, open: &mut Page) {
    let (pairs, padded) = (tile.pairs, tile.pairs.next_multiple_of(TILE_STEP));
    let (parts, others) = (&tile.parts.values[..pairs], &tile.others.values[lane..][..pairs]);
    let high = [&tile.parts.high[..padded], &tile.others.high[lane..][..padded]];
    let low = [&tile.parts.low[..padded], &tile.others.low[lane..][..padded]];
    for first_pair in (0..padded).step_by(TILE_STEP) {
        let tables = tables_of(open);
        if is_zero(&tables) {
            return;
        }
        let mut hits = [0; STEPS];
        // Bit i: whether there are hits in step i.
        let mut steps = 0u32;
        for (step, hits) in hits.iter_mut().enumerate() {
            let at = first_pair + step * LANES;
            // SAFETY: `at` is a multiple of `LANES` below `padded`, the number of bytes of each side.
            let (high, low) = unsafe { (options(high, at), options(low, at)) };
            *hits = lanes_in(&tables, high, low);
            steps |= u32::from(*hits != 0) << step;
        }
        // The end of a loop over hits is hard to predict. So one loop clears those of all steps.
        while steps != 0 {
            let step = steps.trailing_zeros() as usize;
            let hit = hits[step];
            hits[step] = hit & (hit - 1);
            steps ^= u32::from(hits[step] == 0) << step;
            let at = first_pair + step * LANES + hit.trailing_zeros() as usize;
            if at < pairs {
                let option = usize::from(parts[at] ^ others[at]);
                if let Some(word) = open.get_mut(option / 64) {
                    *word &= !(1 << (option % 64));
                }
            }
        }
    }
}

/// One byte of the options of the pairs from `at` on.
///
/// # Safety
/// Both slices have [`LANES`] bytes from `at` on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn options([parts, others]: [&[u8]; 2], at: usize) -> __m512i {
    debug_assert!(at + LANES <= parts.len().min(others.len()));
    // SAFETY: see above; a register has `LANES` bytes.
    unsafe {
        let (parts, others) = (parts.as_ptr().add(at), others.as_ptr().add(at));
        _mm512_xor_si512(_mm512_loadu_si512(parts.cast()), _mm512_loadu_si512(others.cast()))
    }
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

/// The lanes whose values, in two bytes each, are open, and maybe some with values from 8192 on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn lanes_in(&[a, b, c, d]: &[__m512i; 4], high: __m512i, low: __m512i) -> __mmask64 {
    let lower = _mm512_permutex2var_epi8(a, high, b);
    let bytes = _mm512_mask_blend_epi8(_mm512_movepi8_mask(high), lower, _mm512_permutex2var_epi8(c, high, d));
    // Bit `low % 8`. The shuffle takes its index from bits 0 to 3, of which indices from 8 on have no bit, and gives no
    // bit where bit 7 is set.
    let bit_of = _mm512_broadcast_i32x4(_mm_set_epi64x(0, 0x8040_2010_0804_0201u64.cast_signed()));
    _mm512_test_epi8_mask(bytes, _mm512_shuffle_epi8(bit_of, low))
}

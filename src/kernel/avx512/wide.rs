//! The jobs on 16-bit values.

use crate::kernel::wide::{PAIRS_PER_STEP, WIDE_LANES, WideParts};
use std::arch::x86_64::*;

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(in crate::kernel) fn unmarked(seen: &[[u8; 64]], open: &mut [u64]) {
    for (seen, open) in seen.iter().zip(open) {
        // SAFETY: an item of `seen` has as many bytes as a register.
        let seen = unsafe { _mm512_loadu_si512(seen.as_ptr().cast()) };
        *open = _mm512_testn_epi8_mask(seen, seen);
    }
}

/// The least XOR of an option and a candidate is 0 exactly where one of the options is the candidate. This takes two
/// instructions per candidate.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(in crate::kernel) fn wide_hits<const K: usize>(parts: WideParts<'_>, rows: &[[u16; WIDE_LANES]; K]) -> [u32; K] {
    // SAFETY: a row has as many bytes as a register.
    let candidates = rows.each_ref().map(|row| unsafe { _mm512_loadu_si512(row.as_ptr().cast()) });
    let mut least = [_mm512_set1_epi16(-1); K];
    for part in parts.list {
        // SAFETY: `others` returns as many bytes as a register has.
        let others = unsafe { _mm512_loadu_si512(parts.others(part).as_ptr().cast()) };
        let option = _mm512_xor_si512(others, _mm512_set1_epi16(part.value.cast_signed()));
        for k in 0..K {
            least[k] = _mm512_min_epu16(least[k], _mm512_xor_si512(option, candidates[k]));
        }
    }
    least.map(|least| _mm512_testn_epi16_mask(least, least))
}

/// Holds the XORs of all pairs in eight registers, and compares them with each wanted value.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(in crate::kernel) fn find_values(a: &[u16; PAIRS_PER_STEP], b: &[u16; PAIRS_PER_STEP], wanted: &mut Vec<u16>) {
    const { assert!(PAIRS_PER_STEP == 8 * WIDE_LANES) };
    let options = [0, 1, 2, 3, 4, 5, 6, 7].map(|i| {
        // SAFETY: register i holds the items from 32 i on, and i is at most 7.
        let (x, y) = unsafe {
            (_mm512_loadu_si512(a.as_ptr().add(32 * i).cast()), _mm512_loadu_si512(b.as_ptr().add(32 * i).cast()))
        };
        _mm512_xor_si512(x, y)
    });
    wanted.retain(|value| {
        let key = _mm512_set1_epi16(value.cast_signed());
        options.iter().fold(0, |any, option| any | _mm512_cmpeq_epi16_mask(*option, key)) == 0
    });
}

/// Whether a pair of items, those of `b` taken backwards, has this XOR: each register of `b` is reversed.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(in crate::kernel) fn is_mirrored(a: &[u16; PAIRS_PER_STEP], b: &[u16; PAIRS_PER_STEP], wanted: u16) -> bool {
    const REVERSED: [u16; WIDE_LANES] = {
        let mut order = [0; WIDE_LANES];
        let mut lane = 0;
        while lane < 32 {
            order[lane as usize] = 31 - lane;
            lane += 1;
        }
        order
    };
    // SAFETY: the order has as many bytes as a register.
    let order = unsafe { _mm512_loadu_si512(REVERSED.as_ptr().cast()) };
    let key = _mm512_set1_epi16(wanted.cast_signed());
    let mut any = 0;
    for (x, y) in a.as_chunks::<WIDE_LANES>().0.iter().zip(b.as_chunks::<WIDE_LANES>().0.iter().rev()) {
        // SAFETY: each chunk has as many bytes as a register.
        let (x, y) = unsafe { (_mm512_loadu_si512(x.as_ptr().cast()), _mm512_loadu_si512(y.as_ptr().cast())) };
        let option = _mm512_xor_si512(x, _mm512_permutexvar_epi16(order, y));
        any |= _mm512_cmpeq_epi16_mask(option, key);
    }
    any != 0
}

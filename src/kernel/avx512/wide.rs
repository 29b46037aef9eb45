//! Comparing options with candidates on 16-bit values.

use crate::kernel::wide::{PAIRS_PER_STEP, WIDE_LANES, WideParts};
use std::arch::x86_64::*;

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

//! The jobs on 16-bit values.

use crate::kernel::portable::{PAIRS_PER_STEP, for_each_step, steps_before};
use crate::kernel::wide_part::{WIDE_LANES, WidePart, WideParts, WideRow, others};
use std::arch::x86_64::*;

/// Number of 16-bit values in a register.
const VALUES_PER_REGISTER: usize = 32;

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(in crate::kernel) fn unmarked(seen: &[[u8; 64]], open: &mut [u64]) {
    for (seen, open) in seen.iter().zip(open) {
        // SAFETY: an item of `seen` has as many bytes as a register.
        let seen = unsafe { _mm512_loadu_si512(seen.as_ptr().cast()) };
        *open = _mm512_testn_epi8_mask(seen, seen);
    }
}

/// The least XOR of an option and a candidate is 0 exactly where one of the options is the candidate. This takes two
/// instructions per candidate and register.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(in crate::kernel) fn wide_hits<const K: usize>(
    parts: WideParts<'_, impl Iterator<Item = WidePart>>,
    candidates: &[WideRow; K],
) -> [u64; K] {
    // SAFETY: half a row has as many bytes as a register.
    let load = |row: &[u16; WIDE_LANES], half: usize| unsafe { _mm512_loadu_si512(row.as_ptr().add(32 * half).cast()) };
    let candidates = candidates.each_ref().map(|row| [load(row, 0), load(row, 1)]);
    let mut least = [[_mm512_set1_epi16(-1); 2]; K];
    for part in parts.list {
        let others = others(parts.window, parts.at, part);
        let value = _mm512_set1_epi16(part.value.cast_signed());
        for half in 0..2 {
            let option = _mm512_xor_si512(load(others, half), value);
            for k in 0..K {
                least[k][half] = _mm512_min_epu16(least[k][half], _mm512_xor_si512(option, candidates[k][half]));
            }
        }
    }
    least.map(|[low, high]| {
        let zero = |least| u64::from(_mm512_testn_epi16_mask(least, least));
        zero(low) | zero(high) << 32
    })
}

/// Holds the XORs of the pairs of a step in eight registers, and compares them with each wanted value.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(in crate::kernel) fn remove_pair_values(a: &[u16], b: &[u16], wanted: &mut Vec<u16>) {
    const { assert!(PAIRS_PER_STEP == 8 * VALUES_PER_REGISTER) };
    for_each_step(a, b, |a, b| {
        let options = [0, 1, 2, 3, 4, 5, 6, 7].map(|i| {
            // SAFETY: register i holds the items from 32 i on, and i is at most 7.
            let (x, y) = unsafe {
                (_mm512_loadu_si512(a.as_ptr().add(32 * i).cast()), _mm512_loadu_si512(b.as_ptr().add(32 * i).cast()))
            };
            _mm512_xor_si512(x, y)
        });
        wanted.retain(|value| !is_among(&options, *value));
        wanted.is_empty()
    });
}

/// Whether one of the options is `value`: the least XOR of an option and the value is 0, as in [`wide_hits`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn is_among(options: &[__m512i; PAIRS_PER_STEP / VALUES_PER_REGISTER], value: u16) -> bool {
    let key = _mm512_set1_epi16(value.cast_signed());
    let [a, b, c, d, e, f, g, h] = options.map(|option| _mm512_xor_si512(option, key));
    let low = _mm512_min_epu16(_mm512_min_epu16(a, b), _mm512_min_epu16(c, d));
    let high = _mm512_min_epu16(_mm512_min_epu16(e, f), _mm512_min_epu16(g, h));
    let least = _mm512_min_epu16(low, high);
    _mm512_testn_epi16_mask(least, least) != 0
}

/// The indices of the values of a register in reverse order.
const REVERSED: [u16; VALUES_PER_REGISTER] = {
    let mut order = [0; VALUES_PER_REGISTER];
    let mut index = 0;
    while index < 32 {
        order[index as usize] = 31 - index;
        index += 1;
    }
    order
};

/// The XORs of all pairs, those of `b` taken backwards: each register of `b` is reversed.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn mirrored(a: &[u16; PAIRS_PER_STEP], b: &[u16; PAIRS_PER_STEP]) -> [__m512i; PAIRS_PER_STEP / VALUES_PER_REGISTER] {
    // SAFETY: the order has as many bytes as a register.
    let order = unsafe { _mm512_loadu_si512(REVERSED.as_ptr().cast()) };
    [0, 1, 2, 3, 4, 5, 6, 7].map(|i| {
        // SAFETY: register i holds the items from 32 i on, and i is at most 7.
        let (x, y) = unsafe {
            let y = b.as_ptr().add(PAIRS_PER_STEP - VALUES_PER_REGISTER * (i + 1));
            (_mm512_loadu_si512(a.as_ptr().add(VALUES_PER_REGISTER * i).cast()), _mm512_loadu_si512(y.cast()))
        };
        _mm512_xor_si512(x, _mm512_permutexvar_epi16(order, y))
    })
}

/// Holds the XORs of the pairs of a step in eight registers, and compares them with each wanted value.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(in crate::kernel) fn steps_without(a: &[u16], b: &[u16], wanted: &[u16]) -> usize {
    steps_before(a, b, |a, b| {
        let options = mirrored(a, b);
        wanted.iter().any(|value| is_among(&options, *value))
    })
}

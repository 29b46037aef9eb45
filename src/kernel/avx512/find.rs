//! Searching codes among the XORs of pairs.

use crate::kernel::{LANES, PAIRS_BETWEEN_TESTS, scalar};
use std::arch::x86_64::*;

/// The portable loop with two registers per step, written with intrinsics because the compiled Rust loop is slower.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(in crate::kernel) fn find_code_pair(a: &[u8], b: &[u8], wanted: u8) -> Option<usize> {
    const { assert!(PAIRS_BETWEEN_TESTS == 2 * LANES) };
    let pairs = a.len().min(b.len());
    let (a, b) = (&a[a.len() - pairs..], &b[b.len() - pairs..]);
    let key = _mm512_set1_epi8(wanted.cast_signed());
    let hits = |from: usize| {
        assert!(from + LANES <= pairs);
        // SAFETY: 64 bytes from `from` on are inside both slices, which are `pairs` long.
        let (x, y) = unsafe {
            (_mm512_loadu_si512(a.as_ptr().add(from).cast()), _mm512_loadu_si512(b.as_ptr().add(from).cast()))
        };
        _mm512_cmpeq_epi8_mask(_mm512_xor_si512(x, y), key)
    };
    let mut left = pairs;
    while left >= PAIRS_BETWEEN_TESTS {
        left -= PAIRS_BETWEEN_TESTS;
        if hits(left) | hits(left + LANES) != 0 {
            return Some(pairs - left);
        }
    }
    let rest = a[..left].iter().zip(&b[..left]).any(|(x, y)| x ^ y == wanted);
    rest.then_some(pairs)
}

/// Compares four registers of pairs at a time with all wanted codes, which share the loads and the cost of a
/// mispredicted branch.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(in crate::kernel) fn find_code_pairs(
    a: &[u8],
    b: &[u8],
    wanted: &mut Vec<u8>,
    mut good: impl FnMut(u8, usize) -> bool,
) {
    let count = a.len().min(b.len());
    let (a, b) = (&a[a.len() - count..], &b[b.len() - count..]);
    let mut left = count;
    while left >= 4 * LANES && !wanted.is_empty() {
        left -= 4 * LANES;
        let options = [
            pairs(a, b, left),
            pairs(a, b, left + LANES),
            pairs(a, b, left + 2 * LANES),
            pairs(a, b, left + 3 * LANES),
        ];
        let mut k = 0;
        while let Some(&code) = wanted.get(k) {
            let key = _mm512_set1_epi8(code.cast_signed());
            let hits = [
                _mm512_cmpeq_epi8_mask(options[0], key),
                _mm512_cmpeq_epi8_mask(options[1], key),
                _mm512_cmpeq_epi8_mask(options[2], key),
                _mm512_cmpeq_epi8_mask(options[3], key),
            ];
            if hits[0] | hits[1] | hits[2] | hits[3] == 0 {
                k += 1;
                continue;
            }
            // One past the last hit, which `good` sees first; computed without a branch.
            let ends =
                [0, 1, 2, 3].map(|i| if hits[i] == 0 { 0 } else { (i + 1) * LANES - hits[i].leading_zeros() as usize });
            let last = left + ends.into_iter().fold(0, usize::max) - 1;
            let mut others = (left..last).rev().filter(|&at| a[at] ^ b[at] == code);
            if good(code, count - last) || others.any(|at| good(code, count - at)) {
                wanted.swap_remove(k);
            } else {
                k += 1;
            }
        }
    }
    scalar::find_code_pairs(&a[..left], &b[..left], wanted, |code, pairs| good(code, count - left + pairs));
}

/// The XORs of the 64 pairs from `from` on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn pairs(a: &[u8], b: &[u8], from: usize) -> __m512i {
    let (a, b) = (&a[from..from + LANES], &b[from..from + LANES]);
    // SAFETY: both slices have as many bytes as a register.
    unsafe { _mm512_xor_si512(_mm512_loadu_si512(a.as_ptr().cast()), _mm512_loadu_si512(b.as_ptr().cast())) }
}

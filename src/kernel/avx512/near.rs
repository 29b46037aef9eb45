//! Near probes: [`near`] decides 64 lanes at a time, and corrects the few that were wrong.
//!
//! A near probe reads the code of an earlier lane, or of one of the 63 positions before lane 0. Few near probes hit a
//! candidate. So the kernel first takes the least candidate of every lane as its code, and computes the options of all
//! lanes with these codes. Where no option is the code of its own lane, the code is right if all earlier ones are. So
//! all lanes before the first one that an option hits are decided, and so is that one: its code is the least of its
//! candidates that is no option. The kernel then computes the options of the lanes after it again. In Grundy's game
//! this happens once in 64 lanes.

use super::load;
use crate::kernel::planes::{before, for_kept};
use crate::kernel::{LANES, Lanes, NearJob};
use std::arch::x86_64::*;

/// # Safety
/// The lanes must be `from <= to <= LANES` and inside the window, and the offset of each probe must be in `1..LANES`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi1,bmi2")]
pub(in crate::kernel) unsafe fn near(window: &mut [u8], job: NearJob<'_>, lanes: &Lanes) -> usize {
    // SAFETY: the same requirements.
    unsafe { for_kept!(lanes.kept, near_kept(window, job, lanes)) }
}

/// # Safety
/// That of [`near`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi1,bmi2")]
unsafe fn near_kept<const N: usize>(window: &mut [u8], job: NearJob<'_>, lanes: &Lanes) -> usize {
    let NearJob { at, probes, from, to } = job;
    let candidates: [__m512i; N] = load(lanes);
    // SAFETY: the array has 64 bytes.
    let end_of_considered = unsafe { _mm512_loadu_si512(lanes.considered_below.as_ptr().cast()) };
    // The lanes whose candidate k is missing, or may be hit by a marked probe; such a candidate is not chosen.
    let unfit: [__mmask64; N] = std::array::from_fn(|k| _mm512_cmpge_epu8_mask(candidates[k], end_of_considered));
    let (known, asked) = (before(from), before(to) & !before(from));
    let base = window.as_mut_ptr();
    // SAFETY: the load reads only the bytes that its mask selects: window[at - 64 + i] for max(0, 64 - at) <= i < 64.
    // The lanes are inside the window, so at <= window.len().
    let earlier = unsafe {
        _mm512_maskz_loadu_epi8(!before(LANES.saturating_sub(at)), base.wrapping_add(at).wrapping_sub(LANES).cast())
    };
    // SAFETY: the load reads only the bytes that its mask selects: window[at + i] for i < from. The
    // lanes are inside the window, so at + from <= window.len().
    let first = unsafe { _mm512_maskz_loadu_epi8(known, base.wrapping_add(at).cast()) };
    let mut codes = _mm512_mask_mov_epi8(candidates[0], known, first);
    let mut undecided = asked;
    let end = loop {
        // The least XOR of all options of a lane with its candidate k: 0 if one of them is the candidate.
        let mut distance = [_mm512_set1_epi8(-1); N];
        for probe in probes.list() {
            // Byte i of `other` is `offset` bytes before byte i of `codes`; `earlier` precedes them.
            // SAFETY: `NUMBERS` has 64 bytes from number LANES - offset on, which is in 1..LANES as the offset is.
            let places = unsafe { _mm512_loadu_si512(NUMBERS.as_ptr().add(LANES - probe.offset).cast()) };
            let other = _mm512_permutex2var_epi8(earlier, places, codes);
            let option = _mm512_xor_si512(other, _mm512_set1_epi32(i32::from_ne_bytes(probe.codes)));
            for k in 0..N {
                distance[k] = _mm512_min_epu8(distance[k], _mm512_xor_si512(option, candidates[k]));
            }
        }
        let hits = distance.map(|distance| _mm512_testn_epi8_mask(distance, distance));
        // The lanes that are not yet decided still have their first candidate.
        let wrong = (hits[0] | unfit[0]) & undecided;
        if wrong == 0 {
            break to;
        }
        let lane = wrong.trailing_zeros() as usize;
        let bit = 1u64 << lane;
        let Some(k) = (0..N).find(|&k| hits[k] & bit == 0).filter(|&k| unfit[k] & bit == 0) else { break lane };
        codes = _mm512_mask_mov_epi8(codes, bit, candidates[k]);
        undecided &= !before(lane + 1);
    };
    // SAFETY: the mask selects bytes from window[at + from] to window[at + to - 1], and the store writes no others.
    // These are inside the window.
    unsafe { _mm512_mask_storeu_epi8(base.wrapping_add(at).cast(), before(end) & asked, codes) };
    end
}

/// The numbers of the bytes of two registers.
static NUMBERS: [u8; 2 * LANES] = {
    let mut numbers = [0; 2 * LANES];
    let mut number = 0;
    while number < 2 * LANES {
        numbers[number] = number as u8; // below 128
        number += 1;
    }
    numbers
};

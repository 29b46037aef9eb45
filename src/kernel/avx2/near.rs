//! Near probes: [`near`] decides 64 lanes at a time, and corrects the few that were wrong. `avx512/near.rs` explains
//! the method.

use super::{HALF, load};
use crate::kernel::planes::{before, for_kept};
use crate::kernel::{LANES, Lanes, NearJob};
use std::arch::x86_64::*;

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(in crate::kernel) fn near(window: &mut [u8], job: NearJob<'_>, lanes: &Lanes) -> usize {
    for_kept!(lanes.kept, near_kept(window, job, lanes))
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
fn near_kept<const N: usize>(window: &mut [u8], job: NearJob<'_>, lanes: &Lanes) -> usize {
    let NearJob { at, from, to, .. } = job;
    // The codes before lane 0, as far as there are any, and those of all lanes: their first candidates, until decided.
    let mut codes = [0u8; 2 * LANES];
    let earlier = at.min(LANES);
    codes[LANES - earlier..][..earlier + from].copy_from_slice(&window[at - earlier..at + from]);
    codes[LANES + from..].copy_from_slice(&lanes.code[0][from..]);
    // The lanes whose candidate k is missing, or may be hit by a marked probe; such a candidate is not chosen.
    let mut unfit = [0u64; N];
    // The lanes whose candidate k a near probe hits.
    let mut hits = [0u64; N];
    for lane in [0, HALF] {
        let unfit_in_half = unconsidered::<N>(lanes, lane);
        (0..N).for_each(|k| unfit[k] |= u64::from(unfit_in_half[k]) << lane);
    }
    let mut undecided = before(to) & !before(from);
    // The first lane whose options may have changed since they were computed. Only halves with such lanes are computed
    // again.
    let mut changed = 0;
    let end = loop {
        for lane in [0, HALF].into_iter().filter(|lane| changed < lane + HALF) {
            let hits_in_half = hit_candidates::<N>(&codes, job, lanes, lane);
            (0..N)
                .for_each(|k| hits[k] = hits[k] & !(u64::from(u32::MAX) << lane) | u64::from(hits_in_half[k]) << lane);
        }
        // The lanes that are not yet decided still have their first candidate.
        let wrong = (hits[0] | unfit[0]) & undecided;
        if wrong == 0 {
            break to;
        }
        let lane = wrong.trailing_zeros() as usize;
        let bit = 1u64 << lane;
        let Some(k) = (0..N).find(|&k| hits[k] & bit == 0).filter(|&k| unfit[k] & bit == 0) else { break lane };
        codes[LANES + lane] = lanes.code[k][lane];
        undecided &= !before(lane + 1);
        changed = lane + 1;
    };
    window[at + from..at + end].copy_from_slice(&codes[LANES + from..LANES + end]);
    end
}

/// For each candidate k, bit i: whether the candidate of lane `lane` + i was not considered there, or is missing.
#[inline]
#[target_feature(enable = "avx2")]
fn unconsidered<const N: usize>(lanes: &Lanes, lane: usize) -> [u32; N] {
    let [end] = load(&[lanes.considered_below], lane);
    let candidates: [__m256i; N] = load(&lanes.code, lane);
    candidates.map(|code| mask(_mm256_cmpeq_epi8(_mm256_max_epu8(code, end), code)))
}

/// For each candidate k, bit i: whether a near probe hits the candidate of lane `lane` + i.
#[inline]
#[target_feature(enable = "avx2")]
fn hit_candidates<const N: usize>(codes: &[u8; 2 * LANES], job: NearJob<'_>, lanes: &Lanes, lane: usize) -> [u32; N] {
    let candidates: [__m256i; N] = load(&lanes.code, lane);
    // The least XOR of all options of a lane with its candidate k: 0 if one of them is the candidate.
    let mut distance = [_mm256_set1_epi8(-1); N];
    for probe in job.probes.list() {
        let others = &codes[LANES + lane - probe.offset..][..HALF];
        // SAFETY: the slice has as many bytes as a register.
        let others = unsafe { _mm256_loadu_si256(others.as_ptr().cast()) };
        let option = _mm256_xor_si256(others, _mm256_set1_epi32(i32::from_ne_bytes(probe.codes)));
        for k in 0..N {
            distance[k] = _mm256_min_epu8(distance[k], _mm256_xor_si256(option, candidates[k]));
        }
    }
    distance.map(|distance| mask(_mm256_cmpeq_epi8(distance, _mm256_setzero_si256())))
}

/// One bit for each byte.
#[inline]
#[target_feature(enable = "avx2")]
fn mask(bytes: __m256i) -> u32 {
    _mm256_movemask_epi8(bytes).cast_unsigned()
}

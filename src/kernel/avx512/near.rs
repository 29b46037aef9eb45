//! Near probes: the method of `kernel/near.rs`, 64 lanes in one register.

use crate::kernel::near::{NearCodes, least_open, near_by};
use crate::kernel::{LANES, Lanes, NearJob, NearProbes};
use std::arch::x86_64::*;

#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2")]
pub(in crate::kernel) fn near(window: &mut [u8], job: NearJob<'_>, lanes: &Lanes) -> usize {
    let probes = job.probes;
    let doubtful = |codes: &NearCodes| hit_first(codes, probes, lanes) | unconsidered_first(lanes);
    near_by(window, job, lanes, doubtful, |codes, lane| decide(codes, lane, probes, lanes))
}

/// Bit i: whether the first candidate of lane i is missing, or was not considered there.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn unconsidered_first(lanes: &Lanes) -> u64 {
    _mm512_cmpge_epu8_mask(load(&lanes.code[0]), load(&lanes.considered_below))
}

/// Bit i: whether an option of lane i hits its first candidate.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn hit_first(codes: &NearCodes, probes: &NearProbes, lanes: &Lanes) -> u64 {
    let first = load(&lanes.code[0]);
    // The least XOR of all options of a lane with its first candidate: 0 if one of them is the candidate.
    let mut distance = _mm512_set1_epi8(-1);
    for probe in probes.list() {
        let others = load(codes[LANES - probe.offset..].first_chunk().expect("the offset is below LANES"));
        let option = _mm512_xor_si512(others, _mm512_set1_epi32(i32::from_ne_bytes(probe.codes)));
        distance = _mm512_min_epu8(distance, _mm512_xor_si512(option, first));
    }
    _mm512_testn_epi8_mask(distance, distance)
}

/// Replaces the code of a lane by the least of its candidates that no option hits. Bit i: whether lane i is a later one
/// whose first candidate the new code hits; 0 if the code stays. `None` if there is no such candidate, or if it was not
/// considered.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn decide(codes: &mut NearCodes, lane: usize, probes: &NearProbes, lanes: &Lanes) -> Option<u64> {
    let rows = probes.rows().iter();
    // A probe hits a candidate if its code is the XOR of the candidate with the code that the probe reads.
    let others = load(codes[lane..].first_chunk().expect("a lane is below LANES"));
    let is_hit = |candidate: u8| {
        let hitting = _mm512_xor_si512(others, _mm512_set1_epi8(candidate.cast_signed()));
        let is_in = |row: &[u8; LANES]| _mm512_cmpeq_epi8_mask(load(row), hitting);
        rows.clone().fold(0, |hits, row| hits | is_in(row.backward())) & probes.backward_offsets() != 0
    };
    let code = least_open(lanes, lane, is_hit)?;
    if code == codes[LANES + lane] {
        return Some(0);
    }
    codes[LANES + lane] = code;
    let hitting = _mm512_xor_si512(load(&lanes.code[0]), _mm512_set1_epi8(code.cast_signed()));
    let is_in = |row: &[u8; LANES]| _mm512_cmpeq_epi8_mask(load(row), hitting);
    Some(rows.fold(0, |hits, row| hits | is_in(row.after_lane(lane))) & probes.offsets() << lane)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn load(bytes: &[u8; LANES]) -> __m512i {
    // SAFETY: there are 64 bytes.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

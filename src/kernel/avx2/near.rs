//! Near probes: the method of `kernel/near.rs`, 64 lanes in two registers.

use super::HALF;
use crate::kernel::near::{NearCodes, least_open, near_by};
use crate::kernel::{LANES, Lanes, NearJob, NearProbes};
use std::arch::x86_64::*;

/// 64 bytes: the lower and the upper half.
type Bytes = [__m256i; 2];

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(in crate::kernel) fn near(window: &mut [u8], job: NearJob<'_>, lanes: &Lanes) -> usize {
    let probes = job.probes;
    let doubtful = |codes: &NearCodes| hit_first(codes, probes, lanes) | unconsidered_first(lanes);
    near_by(window, job, lanes, doubtful, |codes, lane| decide(codes, lane, probes, lanes))
}

/// Bit i: whether the first candidate of lane i is missing, or was not considered there.
#[inline]
#[target_feature(enable = "avx2")]
fn unconsidered_first(lanes: &Lanes) -> u64 {
    let (first, end) = (load(&lanes.code[0]), load(&lanes.considered_below));
    bits([0, 1].map(|half| _mm256_cmpeq_epi8(_mm256_max_epu8(first[half], end[half]), first[half])))
}

/// Bit i: whether an option of lane i hits its first candidate.
#[inline]
#[target_feature(enable = "avx2")]
fn hit_first(codes: &NearCodes, probes: &NearProbes, lanes: &Lanes) -> u64 {
    let first = load(&lanes.code[0]);
    let mut hits = [_mm256_setzero_si256(); 2];
    for probe in probes.list() {
        let others = load(codes[LANES - probe.offset..].first_chunk().expect("the offset is below LANES"));
        let code = _mm256_set1_epi32(i32::from_ne_bytes(probe.codes));
        for half in 0..2 {
            let hit = _mm256_cmpeq_epi8(_mm256_xor_si256(others[half], code), first[half]);
            hits[half] = _mm256_or_si256(hits[half], hit);
        }
    }
    bits(hits)
}

/// Replaces the code of a lane by the least of its candidates that no option hits. Bit i: whether lane i is a later one
/// whose first candidate the new code hits; 0 if the code stays. `None` if there is no such candidate, or if it was not
/// considered.
#[inline]
#[target_feature(enable = "avx2")]
fn decide(codes: &mut NearCodes, lane: usize, probes: &NearProbes, lanes: &Lanes) -> Option<u64> {
    let rows = probes.rows().iter();
    // A probe hits a candidate if its code is the XOR of the candidate with the code that the probe reads.
    let others = load(codes[lane..].first_chunk().expect("a lane is below LANES"));
    let is_hit = |candidate: u8| {
        let hitting = xor(others, candidate);
        equal_bytes(hitting, rows.clone().map(|row| row.backward())) & probes.backward_offsets() != 0
    };
    let code = least_open(lanes, lane, is_hit)?;
    if code == codes[LANES + lane] {
        return Some(0);
    }
    codes[LANES + lane] = code;
    let hitting = xor(load(&lanes.code[0]), code);
    Some(equal_bytes(hitting, rows.map(|row| row.after_lane(lane))) & probes.offsets() << lane)
}

/// Bit i: whether byte i equals byte i of one of the rows.
#[inline]
#[target_feature(enable = "avx2")]
fn equal_bytes<'a>(bytes: Bytes, rows: impl Iterator<Item = &'a [u8; LANES]>) -> u64 {
    let mut equal = [_mm256_setzero_si256(); 2];
    for row in rows {
        let row = load(row);
        equal = [0, 1].map(|half| _mm256_or_si256(equal[half], _mm256_cmpeq_epi8(bytes[half], row[half])));
    }
    bits(equal)
}

/// The XOR of every byte with `byte`.
#[inline]
#[target_feature(enable = "avx2")]
fn xor(bytes: Bytes, byte: u8) -> Bytes {
    bytes.map(|half| _mm256_xor_si256(half, _mm256_set1_epi8(byte.cast_signed())))
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; LANES]) -> Bytes {
    // SAFETY: there are 32 bytes from either half on.
    [0, HALF].map(|lane| unsafe { _mm256_loadu_si256(bytes[lane..lane + HALF].as_ptr().cast()) })
}

/// One bit for each byte: its highest bit.
#[inline]
#[target_feature(enable = "avx2")]
fn bits(bytes: Bytes) -> u64 {
    let [low, high] = bytes.map(|half| u64::from(_mm256_movemask_epi8(half).cast_unsigned()));
    low | high << HALF
}

//! The AVX2 kernel: two halves of 32 lanes, the planes of codes in two passes of eight registers.
//!
//! The method is that of `avx512`; without byte masks and ternary logic each step takes an instruction or two more.

use super::{LANES, Lanes, MOST_CODES, NONE, Planes, Probe, Probes, STRIKES, for_kept};
use std::arch::x86_64::*;

pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
}

const HALF: usize = LANES / 2;
/// Planes of eight codes that are held in registers at once.
const PASS: usize = 8;
const PASSES: usize = MOST_CODES.div_ceil(8 * PASS);

/// The options of a far probe in the 32 lanes from `lane` on.
#[inline]
#[target_feature(enable = "avx2")]
fn options(window: &[u8], at: usize, lane: usize, probe: &Probe) -> __m256i {
    debug_assert!(probe.offset <= at && at - probe.offset + LANES <= window.len() && lane + HALF <= LANES);
    // SAFETY: the caller has checked that offset <= at and at - offset + LANES <= window.len().
    let bytes = unsafe { _mm256_loadu_si256(window.as_ptr().add(at - probe.offset + lane).cast()) };
    _mm256_xor_si256(bytes, _mm256_set1_epi32(i32::from_ne_bytes(probe.codes)))
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn mark(window: &[u8], at: usize, probes: &Probes, planes: &mut Planes) {
    for lane in [0, HALF] {
        for (pass, rows) in planes.rows_mut().chunks_mut(PASS).enumerate() {
            match rows.len() {
                1 => mark_rows::<1>(window, at, lane, probes, pass, rows),
                2 => mark_rows::<2>(window, at, lane, probes, pass, rows),
                4 => mark_rows::<4>(window, at, lane, probes, pass, rows),
                _ => mark_rows::<8>(window, at, lane, probes, pass, rows),
            }
        }
    }
}

/// The codes that the planes leave open, least first.
#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn least_codes(planes: &Planes, lanes: &mut Lanes) {
    for lane in [0, HALF] {
        // Codes that are not considered count as marked.
        let mut rows = [[u8::MAX; HALF]; PASS * PASSES];
        for (half, row) in rows.iter_mut().zip(planes.rows()) {
            half.copy_from_slice(&row[lane..lane + HALF]);
        }
        least(&rows, u64::MAX, lane, &mut lanes.code[..lanes.kept]);
    }
}

/// Drops the candidates that a probe hits; the others move up.
#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn check(window: &[u8], at: usize, probes: &Probes, lanes: &mut Lanes) {
    for lane in [0, HALF] {
        for_kept!(lanes.kept, check_kept(window, at, lane, probes, lanes));
    }
}

/// Marks the 8 * `N` codes from 64 * `pass` on.
#[inline]
#[target_feature(enable = "avx2")]
fn mark_rows<const N: usize>(
    window: &[u8],
    at: usize,
    lane: usize,
    probes: &Probes,
    pass: usize,
    rows: &mut [[u8; LANES]],
) {
    let one_hot = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64.cast_signed());
    let (seven, low_bits) = (_mm256_set1_epi8(7), _mm256_set1_epi8(0x1f));
    // SAFETY: there are 32 bytes from either half of a row on.
    let load = |row: &[u8; LANES]| unsafe { _mm256_loadu_si256(row[lane..lane + HALF].as_ptr().cast()) };
    let mut planes: [__m256i; N] = std::array::from_fn(|j| load(&rows[j]));
    for probe in probes.list() {
        let option = options(window, at, lane, probe);
        let bit = _mm256_shuffle_epi8(one_hot, _mm256_and_si256(option, seven));
        let high = _mm256_and_si256(_mm256_srli_epi16::<3>(option), low_bits);
        for (j, plane) in planes.iter_mut().enumerate() {
            let mask = _mm256_cmpeq_epi8(high, _mm256_set1_epi8(plane_number(pass, j)));
            *plane = _mm256_or_si256(*plane, _mm256_and_si256(bit, mask));
        }
    }
    for (row, plane) in rows.iter_mut().zip(planes) {
        // SAFETY: there are 32 bytes from either half of a row on.
        unsafe { _mm256_storeu_si256(row[lane..lane + HALF].as_mut_ptr().cast(), plane) };
    }
}

/// The number of plane j of a pass, as the intrinsics want it.
const fn plane_number(pass: usize, j: usize) -> i8 {
    assert!(pass < PASSES && j < PASS);
    (pass * PASS + j).to_le_bytes()[0].cast_signed()
}

/// The code of bit `bit` of the 64 of a pass.
fn code(pass: usize, bit: u32) -> u8 {
    u8::try_from(pass * 64).expect("at most three passes") + bit.to_le_bytes()[0]
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn strike(window: &[u8], at: usize, probes: &Probes, open: &mut Planes) {
    for lane in [0, HALF] {
        let mut rows = [[0; HALF]; PASS * PASSES];
        for (half, row) in rows.iter_mut().zip(open.rows()) {
            half.copy_from_slice(&row[lane..lane + HALF]);
        }
        let mut found = [[NONE; LANES]; STRIKES];
        least(&rows, 0, lane, &mut found);
        let codes: [__m256i; STRIKES] = load(&found, lane);
        let distance = distances(window, at, lane, probes, &codes);
        for (codes, distance) in found.iter().zip(distance) {
            let zero = _mm256_cmpeq_epi8(distance, _mm256_setzero_si256());
            let mut hit = _mm256_movemask_epi8(zero).cast_unsigned();
            while hit != 0 {
                let i = hit.trailing_zeros() as usize;
                if let Some(row) = open.rows_mut().get_mut(usize::from(codes[lane + i] / 8)) {
                    row[lane + i] &= !(1 << (codes[lane + i] % 8));
                }
                hit &= hit - 1;
            }
        }
    }
}

/// The least codes of each lane whose bits, XOR `flip`, are set.
#[inline]
#[target_feature(enable = "avx2,bmi1")]
fn least(rows: &[[u8; HALF]; PASS * PASSES], flip: u64, half: usize, least: &mut [[u8; LANES]]) {
    for lane in 0..HALF {
        let mut found = 0;
        'lane: for pass in 0..PASSES {
            let bytes: [u8; 8] = std::array::from_fn(|j| rows[pass * PASS + j][lane]);
            let mut left = u64::from_le_bytes(bytes) ^ flip;
            while left != 0 {
                least[found][half + lane] = code(pass, left.trailing_zeros());
                found += 1;
                if found == least.len() {
                    break 'lane;
                }
                left &= left - 1;
            }
        }
    }
}

/// Half of the first rows.
#[inline]
#[target_feature(enable = "avx2")]
fn load<const N: usize>(rows: &[[u8; LANES]], lane: usize) -> [__m256i; N] {
    // SAFETY: there are 32 bytes from either half of a row on.
    std::array::from_fn(|k| unsafe { _mm256_loadu_si256(rows[k][lane..lane + HALF].as_ptr().cast()) })
}

/// The least XOR of any option with a candidate: 0 exactly when one of them hits it.
#[inline]
#[target_feature(enable = "avx2")]
fn distances<const N: usize>(
    window: &[u8],
    at: usize,
    lane: usize,
    probes: &Probes,
    candidates: &[__m256i; N],
) -> [__m256i; N] {
    let mut distance = [_mm256_set1_epi8(-1); N];
    for probe in probes.list() {
        let option = options(window, at, lane, probe);
        for k in 0..N {
            distance[k] = _mm256_min_epu8(distance[k], _mm256_xor_si256(option, candidates[k]));
        }
    }
    distance
}

#[target_feature(enable = "avx2")]
fn check_kept<const N: usize>(window: &[u8], at: usize, lane: usize, probes: &Probes, lanes: &mut Lanes) {
    let codes: [__m256i; N] = load(&lanes.code, lane);
    let distance = distances(window, at, lane, probes, &codes);
    // Bit i of left[k]: candidate k of lane i is there and was not hit.
    let left: [u32; N] = std::array::from_fn(|k| {
        let hit = _mm256_movemask_epi8(_mm256_cmpeq_epi8(distance[k], _mm256_setzero_si256()));
        let absent = _mm256_movemask_epi8(_mm256_cmpeq_epi8(codes[k], _mm256_set1_epi8(NONE.cast_signed())));
        !(hit | absent).cast_unsigned()
    });
    for i in 0..HALF {
        let candidates: [u8; N] = std::array::from_fn(|k| lanes.code[k][lane + i]);
        let mut kept = [NONE; N];
        let mut m = 0;
        for k in 0..N {
            // Written always, kept only when the candidate is left: no branch to mispredict.
            let is_left = left[k] >> i & 1 == 1;
            kept[m] = if is_left { candidates[k] } else { NONE };
            m += usize::from(is_left && m + 1 < N);
        }
        lanes.code[..N].iter_mut().zip(kept).for_each(|(row, code)| row[lane + i] = code);
    }
}

//! The AVX2 kernel: two halves of 32 lanes, with up to twelve bit planes in registers at once.
//!
//! The contracts of the jobs are those of the methods of [`Kernel`](super::Kernel) with the same name; `Kernel` has
//! checked the arguments.
//!
//! The methods are those of `avx512`, except for marking, because AVX2 has no byte masks, ternary logic and tables of
//! 64 bytes. `pshufb` gives 0 for an index of 128 or more. For each two planes, XOR with their first code leaves 0 to
//! 15 for the options of these planes alone, and adding 112 with saturation takes all other options to 128 or more. So
//! one `pshufb` per plane looks up the bits of its own options, and 0 for all others ([`mark_rows`]). Eleven or twelve
//! planes leave too few registers for this method, and are marked by another ([`mark_rows_by_masks`]).

mod near;
mod pair_tile;

use super::planes::{MOST_ROWS, ONE_HOT, first_code, for_kept, number};
use super::probes::FarProbes;
use super::wide_part::{WIDE_LANES, WidePart, WideParts, WideRow, others};
use super::{BitPlanes, LANES, Lanes, MAX_CLEARED_CODES, NONE, Probe, portable};
pub(super) use near::near;
pub(super) use pair_tile::{clear_options, fill_tile};
use std::arch::x86_64::*;

/// Whether this processor has all instructions that the functions of this file and of `avx2/` use.
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
}

/// Number of lanes in a register.
const HALF: usize = LANES / 2;

/// The options of a far probe in the 32 lanes from `lane` on.
///
/// # Safety
/// The probe must be one of `far`, and `lane` at most [`HALF`].
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn options(far: FarProbes<'_>, lane: usize, probe: &Probe) -> __m256i {
    let FarProbes { window, at, .. } = far;
    debug_assert!(probe.offset <= at && at - probe.offset + LANES <= window.len() && lane + HALF <= LANES);
    let from = at.wrapping_sub(probe.offset).wrapping_add(lane);
    // SAFETY: `FarProbes` states that offset <= at and at - offset + LANES <= window.len() for each of its probes, and
    // lane + HALF <= LANES.
    let bytes = unsafe { _mm256_loadu_si256(window.as_ptr().wrapping_add(from).cast()) };
    _mm256_xor_si256(bytes, _mm256_set1_epi32(i32::from_ne_bytes(probe.codes)))
}

/// The first `N` rows in the 32 lanes from `lane` on.
#[inline]
#[target_feature(enable = "avx2")]
fn load<const N: usize>(rows: &[[u8; LANES]], lane: usize) -> [__m256i; N] {
    // SAFETY: there are 32 bytes from either half of a row on.
    std::array::from_fn(|k| unsafe { _mm256_loadu_si256(rows[k][lane..lane + HALF].as_ptr().cast()) })
}

/// Writes the first `N` rows in the 32 lanes from `lane` on.
#[inline]
#[target_feature(enable = "avx2")]
fn store<const N: usize>(rows: &mut [[u8; LANES]], lane: usize, bytes: [__m256i; N]) {
    for (row, bytes) in rows.iter_mut().zip(bytes) {
        // SAFETY: there are 32 bytes from either half of a row on.
        unsafe { _mm256_storeu_si256(row[lane..lane + HALF].as_mut_ptr().cast(), bytes) };
    }
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn mark(far: FarProbes<'_>, planes: &mut BitPlanes) {
    for lane in [0, HALF] {
        let rows = planes.rows_mut();
        match rows.len() {
            2 => mark_rows::<0, 2>(far, lane, rows),
            4 => mark_rows::<0, 4>(far, lane, rows),
            8 => mark_rows::<0, 8>(far, lane, rows),
            9 => mark_rows::<0, 9>(far, lane, rows),
            10 => mark_rows::<0, 10>(far, lane, rows),
            11 => mark_rows_by_masks::<11>(far, lane, rows),
            12 => mark_rows_by_masks::<12>(far, lane, rows),
            20 => {
                let (first, rest) = rows.split_at_mut(10);
                mark_rows::<0, 10>(far, lane, first);
                mark_rows::<10, 10>(far, lane, rest);
            }
            _ => {
                let (first, rest) = rows.split_at_mut(8);
                mark_rows::<0, 8>(far, lane, first);
                match rest.len() {
                    6 => mark_rows::<8, 6>(far, lane, rest),
                    8 => mark_rows::<8, 8>(far, lane, rest),
                    9 => mark_rows::<8, 9>(far, lane, rest),
                    _ => mark_rows::<8, 10>(far, lane, rest),
                }
            }
        }
    }
}

/// Marks the codes of the `PLANES` planes from plane `FIRST` on, an even one, which `rows` holds.
#[inline]
#[target_feature(enable = "avx2")]
fn mark_rows<const FIRST: usize, const PLANES: usize>(far: FarProbes<'_>, lane: usize, rows: &mut [[u8; LANES]]) {
    assert_eq!(rows.len(), PLANES, "a row for each plane");
    let table = tables();
    let beyond = _mm256_set1_epi8(0x70);
    let mut planes: [__m256i; PLANES] = load(rows, lane);
    for probe in far.list() {
        // SAFETY: a probe of the list, and the callers pass 0 or HALF as `lane`.
        let option = unsafe { options(far, lane, probe) };
        let mut index = option;
        for j in 0..PLANES {
            if j % 2 == 0 {
                index = _mm256_adds_epu8(_mm256_xor_si256(option, _mm256_set1_epi8(first_code(FIRST + j))), beyond);
            }
            planes[j] = _mm256_or_si256(planes[j], _mm256_shuffle_epi8(table[j % 2], index));
        }
    }
    store(rows, lane, planes);
}

/// Marks the codes of the first `PLANES` planes, which `rows` holds.
///
/// The bits of an option are looked up by its low four bits, once for the even planes and once for the odd ones. For
/// each two planes, a comparison of the high four bits selects the lanes whose option belongs to them.
#[inline]
#[target_feature(enable = "avx2")]
fn mark_rows_by_masks<const PLANES: usize>(far: FarProbes<'_>, lane: usize, rows: &mut [[u8; LANES]]) {
    assert_eq!(rows.len(), PLANES, "a row for each plane");
    let table = tables();
    let fifteen = _mm256_set1_epi8(0x0f);
    let mut planes: [__m256i; PLANES] = load(rows, lane);
    for probe in far.list() {
        // SAFETY: as in `mark_rows`.
        let option = unsafe { options(far, lane, probe) };
        let (low, high) = (_mm256_and_si256(option, fifteen), _mm256_andnot_si256(fifteen, option));
        let bits = [_mm256_shuffle_epi8(table[0], low), _mm256_shuffle_epi8(table[1], low)];
        let mut mask = high;
        for j in 0..PLANES {
            if j % 2 == 0 {
                mask = _mm256_cmpeq_epi8(high, _mm256_set1_epi8(first_code(j)));
            }
            planes[j] = _mm256_or_si256(planes[j], _mm256_and_si256(bits[j % 2], mask));
        }
    }
    store(rows, lane, planes);
}

/// The bits of the codes of an even plane and of the odd plane after it, by the distance of a code from the first code
/// of the even one.
#[inline]
#[target_feature(enable = "avx2")]
fn tables() -> [__m256i; 2] {
    [_mm256_setr_epi64x(ONE_HOT, 0, ONE_HOT, 0), _mm256_setr_epi64x(0, ONE_HOT, 0, ONE_HOT)]
}

/// Fills the candidates with the codes that the planes leave open, least first.
#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn least_codes(planes: &BitPlanes, lanes: &mut Lanes) {
    for lane in [0, HALF] {
        least_set_codes(planes.candidates(), -1, lane, &mut lanes.code[..lanes.kept]);
    }
}

/// Fills `found` with the least codes of each lane whose bits, XOR `flip`, are set.
#[inline]
#[target_feature(enable = "avx2")]
fn least_set_codes(rows: &[[u8; LANES]], flip: i8, lane: usize, found: &mut [[u8; LANES]]) {
    let (zero, none, fifteen) = (_mm256_setzero_si256(), _mm256_set1_epi8(NONE.cast_signed()), _mm256_set1_epi8(0x0f));
    // Trailing zeros of 0..16; for 0 a number above all others.
    let nibble_zeros = {
        let table = _mm_setr_epi8(8, 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0);
        _mm256_broadcastsi128_si256(table)
    };
    // The bits that are still open. Each pass takes the lowest one of each lane.
    let mut planes = [zero; MOST_ROWS];
    let open = &mut planes[..rows.len()];
    for (open, row) in open.iter_mut().zip(rows) {
        // SAFETY: there are 32 bytes from either half of a row on.
        let bits = unsafe { _mm256_loadu_si256(row[lane..lane + HALF].as_ptr().cast()) };
        *open = _mm256_xor_si256(bits, _mm256_set1_epi8(flip));
    }
    for slot in found {
        // The lowest plane with an open bit, and the byte of that plane.
        let (mut byte, mut base) = (zero, none);
        for (j, &open) in open.iter().enumerate().rev() {
            let empty = _mm256_cmpeq_epi8(open, zero);
            byte = _mm256_blendv_epi8(open, byte, empty);
            base = _mm256_blendv_epi8(_mm256_set1_epi8(first_code(j)), base, empty);
        }
        let low = _mm256_shuffle_epi8(nibble_zeros, _mm256_and_si256(byte, fifteen));
        let high = _mm256_shuffle_epi8(nibble_zeros, _mm256_and_si256(_mm256_srli_epi16::<4>(byte), fifteen));
        let zeros = _mm256_min_epu8(low, _mm256_add_epi8(high, _mm256_set1_epi8(4)));
        let codes = _mm256_blendv_epi8(_mm256_add_epi8(base, zeros), none, _mm256_cmpeq_epi8(byte, zero));
        // SAFETY: there are 32 bytes from either half of a row on.
        unsafe { _mm256_storeu_si256(slot[lane..lane + HALF].as_mut_ptr().cast(), codes) };
        // Clear the bit in its plane: byte & (byte - 1).
        let rest = _mm256_and_si256(byte, _mm256_sub_epi8(byte, _mm256_set1_epi8(1)));
        for (j, open) in open.iter_mut().enumerate() {
            let here = _mm256_cmpeq_epi8(base, _mm256_set1_epi8(first_code(j)));
            *open = _mm256_blendv_epi8(*open, rest, here);
        }
    }
}

/// Drops the candidates that a probe hits. Those left move to the lowest slots.
#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn check(far: FarProbes<'_>, lanes: &mut Lanes) {
    for lane in [0, HALF] {
        for_kept!(lanes.kept, check_kept(far, lane, lanes));
    }
}

#[target_feature(enable = "avx2")]
fn check_kept<const N: usize>(far: FarProbes<'_>, lane: usize, lanes: &mut Lanes) {
    let codes: [__m256i; N] = load(&lanes.code, lane);
    let distance = distances(far, lane, &codes);
    let (zero, none) = (_mm256_setzero_si256(), _mm256_set1_epi8(NONE.cast_signed()));
    let mut kept = [none; N];
    let mut count = zero;
    for k in 0..N {
        let gone = _mm256_or_si256(_mm256_cmpeq_epi8(distance[k], zero), _mm256_cmpeq_epi8(codes[k], none));
        // Candidate k moves to one of the slots 0 to k.
        for (m, slot) in kept.iter_mut().enumerate().take(k + 1) {
            let here = _mm256_andnot_si256(gone, _mm256_cmpeq_epi8(count, _mm256_set1_epi8(number(m))));
            *slot = _mm256_blendv_epi8(*slot, codes[k], here);
        }
        count = _mm256_add_epi8(count, _mm256_andnot_si256(gone, _mm256_set1_epi8(1)));
    }
    store(&mut lanes.code, lane, kept);
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn clear_hits(far: FarProbes<'_>, open: &mut BitPlanes) {
    for lane in [0, HALF] {
        let mut found = [[NONE; LANES]; MAX_CLEARED_CODES];
        least_set_codes(open.rows(), 0, lane, &mut found);
        let codes: [__m256i; MAX_CLEARED_CODES] = load(&found, lane);
        let distance = distances(far, lane, &codes);
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

/// The least XOR of any option with each candidate: 0 exactly when a probe hits the candidate.
#[inline]
#[target_feature(enable = "avx2")]
fn distances<const N: usize>(far: FarProbes<'_>, lane: usize, candidates: &[__m256i; N]) -> [__m256i; N] {
    let mut distance = [_mm256_set1_epi8(-1); N];
    for probe in far.list() {
        // SAFETY: as in `mark_rows`.
        let option = unsafe { options(far, lane, probe) };
        for k in 0..N {
            distance[k] = _mm256_min_epu8(distance[k], _mm256_xor_si256(option, candidates[k]));
        }
    }
    distance
}

/// Compares as `avx512::find_code_pairs` does. What follows a hit stands in both functions: shared by a function of
/// its own, it is slower (docs/PERFORMANCE.md).
#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn find_code_pairs(a: &[u8], b: &[u8], wanted: &mut Vec<u8>, mut good: impl FnMut(u8, usize) -> bool) {
    let count = a.len().min(b.len());
    let (a, b) = (&a[a.len() - count..], &b[b.len() - count..]);
    let mut left = count;
    while left >= 4 * HALF && !wanted.is_empty() {
        left -= 4 * HALF;
        let options =
            [pairs(a, b, left), pairs(a, b, left + HALF), pairs(a, b, left + 2 * HALF), pairs(a, b, left + 3 * HALF)];
        let mut k = 0;
        while let Some(&code) = wanted.get(k) {
            let key = _mm256_set1_epi8(code.cast_signed());
            let equal = [
                _mm256_cmpeq_epi8(options[0], key),
                _mm256_cmpeq_epi8(options[1], key),
                _mm256_cmpeq_epi8(options[2], key),
                _mm256_cmpeq_epi8(options[3], key),
            ];
            let any = _mm256_or_si256(_mm256_or_si256(equal[0], equal[1]), _mm256_or_si256(equal[2], equal[3]));
            if _mm256_movemask_epi8(any) == 0 {
                k += 1;
                continue;
            }
            let mut hits = [0; 4];
            for i in 0..4 {
                hits[i] = _mm256_movemask_epi8(equal[i]).cast_unsigned();
            }
            // One past the last hit, which `good` sees first; computed without a branch.
            let ends =
                [0, 1, 2, 3].map(|i| if hits[i] == 0 { 0 } else { (i + 1) * HALF - hits[i].leading_zeros() as usize });
            let last = left + ends.into_iter().fold(0, usize::max) - 1;
            let mut others = (left..last).rev().filter(|&at| a[at] ^ b[at] == code);
            if good(code, count - last) || others.any(|at| good(code, count - at)) {
                wanted.swap_remove(k);
            } else {
                k += 1;
            }
        }
    }
    super::scalar::find_code_pairs(&a[..left], &b[..left], wanted, |code, pairs| good(code, count - left + pairs));
}

/// The XORs of the 32 pairs from `from` on.
#[inline]
#[target_feature(enable = "avx2")]
fn pairs(a: &[u8], b: &[u8], from: usize) -> __m256i {
    let (a, b) = (&a[from..from + HALF], &b[from..from + HALF]);
    // SAFETY: both slices have as many bytes as a register.
    unsafe { _mm256_xor_si256(_mm256_loadu_si256(a.as_ptr().cast()), _mm256_loadu_si256(b.as_ptr().cast())) }
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn unmarked(seen: &[[u8; 64]], open: &mut [u64]) {
    for (seen, open) in seen.iter().zip(open) {
        let half = |i: usize| {
            // SAFETY: each half of an item of `seen` has as many bytes as a register.
            let bytes = unsafe { _mm256_loadu_si256(seen.as_ptr().add(32 * i).cast()) };
            let zero = _mm256_cmpeq_epi8(bytes, _mm256_setzero_si256());
            u64::from(_mm256_movemask_epi8(zero).cast_unsigned())
        };
        *open = half(0) | half(1) << 32;
    }
}

/// As `avx512::wide_hits`, in four quarters of 16 lanes.
#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn wide_hits<const K: usize>(
    parts: WideParts<'_, impl Iterator<Item = WidePart> + Clone>,
    candidates: &[WideRow; K],
) -> [u64; K] {
    let load = |values: &[u16; WIDE_LANES], quarter: usize| {
        // SAFETY: each quarter of the lanes has as many bytes as a register.
        unsafe { _mm256_loadu_si256(values.as_ptr().add(quarter * WIDE_LANES / 4).cast()) }
    };
    let mut hits = [0; K];
    for half in [0, 2] {
        let candidates = candidates.each_ref().map(|row| [load(row, half), load(row, half + 1)]);
        let mut least = [[_mm256_set1_epi16(-1); 2]; K];
        for part in parts.list.clone() {
            let others = others(parts.window, parts.at, part);
            let value = _mm256_set1_epi16(part.value.cast_signed());
            for i in 0..2 {
                let option = _mm256_xor_si256(load(others, half + i), value);
                for k in 0..K {
                    least[k][i] = _mm256_min_epu16(least[k][i], _mm256_xor_si256(option, candidates[k][i]));
                }
            }
        }
        for k in 0..K {
            for (i, least) in least[k].into_iter().enumerate() {
                let zero = _mm256_cmpeq_epi16(least, _mm256_setzero_si256());
                // Two equal bits per lane; every second one is kept.
                let bits = _pext_u32(_mm256_movemask_epi8(zero).cast_unsigned(), 0x5555_5555);
                hits[k] |= u64::from(bits) << ((half + i) * WIDE_LANES / 4);
            }
        }
    }
    hits
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn remove_pair_values(a: &[u16], b: &[u16], wanted: &mut Vec<u16>) {
    portable::remove_pair_values(a, b, wanted);
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn steps_without(a: &[u16], b: &[u16], wanted: &[u16]) -> usize {
    portable::steps_without(a, b, wanted)
}

//! The AVX-512 kernel (F, BW, VL): 64 lanes are one register.
//!
//! **Marking.** 8 to 16 planes of bits a lane (plane j, bit b: code 8j + b), all in registers. `pshufb` by the low half of an
//! option's code makes the one-hot byte, and yields 0 for codes of 128 and more by itself; a second `pshufb` by the high
//! half makes the byte mask of the plane, and one ternary logic instruction puts both in.
//!
//! **Checking.** The least XOR of all options with a candidate is 0 exactly when one of them hits it: two instructions a
//! candidate and 64 lanes.
//!
//! **Near.** Once the value of lane i is known, it is held against the candidates of all later lanes at once: the look-up
//! table, shifted by i, tells which code of which later lane it hits.

use super::portable::TURNS;
use super::{CANDIDATES, Far, KEEP, LANES, Lanes, MOST_CODES, NONE, PLANE, Probe, Probes};
use std::arch::x86_64::*;

pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vpopcntdq")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
}

/// The options of a far probe in all lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn options(window: &[u8], at: usize, probe: &Probe) -> __m512i {
    debug_assert!(probe.offset >= LANES && probe.offset <= at && at <= window.len());
    // SAFETY: the caller has checked LANES <= offset <= at <= window.len(), so the 64 bytes are inside the window.
    let bytes = unsafe { _mm512_loadu_si512(window.as_ptr().add(at - probe.offset).cast()) };
    _mm512_xor_si512(bytes, _mm512_set1_epi8(probe.code.cast_signed()))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) fn candidates(window: &[u8], at: usize, far: &Far) -> Lanes {
    let least = match far.codes {
        64 => least(&mark::<8>(window, at, &far.mark)),
        80 => least(&mark::<10>(window, at, &far.mark)),
        96 => least(&mark::<12>(window, at, &far.mark)),
        128 => least(&mark::<16>(window, at, &far.mark)),
        _ => {
            let (low, high) = (mark::<16>(window, at, &far.mark), mark_high(window, at, &far.mark));
            least::<20>(&std::array::from_fn(|j| if j < 16 { low[j] } else { high[j - 16] }))
        }
    };
    let kept = check::<{ KEEP[0] }, { KEEP[1] }>(window, at, &far.check[0], &least);
    let kept = check::<{ KEEP[1] }, { KEEP[2] }>(window, at, &far.check[1], &kept);
    let kept = check::<{ KEEP[2] }, CANDIDATES>(window, at, &far.check[2], &kept);
    let mut lanes = Lanes { code: [[0; LANES]; CANDIDATES] };
    for (row, codes) in lanes.code.iter_mut().zip(kept) {
        // SAFETY: a row has 64 bytes.
        unsafe { _mm512_storeu_si512(row.as_mut_ptr().cast(), codes) };
    }
    lanes
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn mark<const PLANES: usize>(window: &[u8], at: usize, probes: &Probes) -> [__m512i; PLANES] {
    let one_hot =
        _mm512_set4_epi32(0x8040_2010_u32.cast_signed(), 0x0804_0201, 0x8040_2010_u32.cast_signed(), 0x0804_0201);
    let low_bits = _mm512_set1_epi8(0x0f);
    // Byte j of the table of plane j is all ones.
    let select: [__m512i; PLANES] = std::array::from_fn(|j| {
        let mut table = [0u8; 16];
        table[j] = 0xff;
        // SAFETY: the table has 16 bytes.
        unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast())) }
    });
    let mut planes = [_mm512_setzero_si512(); PLANES];
    for probe in probes.list() {
        let option = options(window, at, probe);
        let bit = _mm512_shuffle_epi8(one_hot, option);
        let high = _mm512_and_si512(_mm512_srli_epi16::<3>(option), low_bits);
        for j in 0..PLANES {
            let mask = _mm512_shuffle_epi8(select[j], high);
            planes[j] = _mm512_ternarylogic_epi64::<0xf8>(planes[j], bit, mask); // plane | (bit & mask)
        }
    }
    planes
}

/// The four planes of the codes 128..160, in a pass of their own: the others leave no registers.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn mark_high(window: &[u8], at: usize, probes: &Probes) -> [__m512i; 4] {
    let one_hot = _mm512_set1_epi64(0x8040_2010_0804_0201_u64.cast_signed());
    let mut planes = [_mm512_setzero_si512(); 4];
    for probe in probes.list() {
        let option = options(window, at, probe);
        let bit = _mm512_shuffle_epi8(one_hot, _mm512_and_si512(option, _mm512_set1_epi8(7)));
        let high = _mm512_and_si512(option, _mm512_set1_epi8(0xf8_u8.cast_signed()));
        for (plane, first) in planes.iter_mut().zip([128u8, 136, 144, 152]) {
            let here = _mm512_cmpeq_epi8_mask(high, _mm512_set1_epi8(first.cast_signed()));
            *plane = _mm512_or_si512(*plane, _mm512_maskz_mov_epi8(here, bit));
        }
    }
    planes
}

/// The least codes of each lane whose bits are not set.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn least<const PLANES: usize>(planes: &[__m512i; PLANES]) -> [__m512i; KEEP[0]] {
    let none = _mm512_set1_epi8(NONE.cast_signed());
    let zero = _mm512_setzero_si512();
    let nibble_zeros = {
        // Trailing zeros of 0..16; 4 for none.
        let table = [4u8, 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0];
        // SAFETY: the table has 16 bytes.
        unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast())) }
    };
    let fifteen = _mm512_set1_epi8(0x0f);
    // The bytes that still have open bits, plane after plane, are worked off from below.
    let mut open: [__m512i; PLANES] = std::array::from_fn(|j| _mm512_xor_si512(planes[j], none));
    let mut found = [none; KEEP[0]];
    for slot in &mut found {
        // The lowest plane with an open bit, and that plane's byte.
        let mut byte = zero;
        let mut base = none;
        for j in (0..PLANES).rev() {
            let some = _mm512_test_epi8_mask(open[j], open[j]);
            byte = _mm512_mask_mov_epi8(byte, some, open[j]);
            base = _mm512_mask_mov_epi8(base, some, _mm512_set1_epi8(first_code(j)));
        }
        let low = _mm512_and_si512(byte, fifteen);
        let high = _mm512_and_si512(_mm512_srli_epi16::<4>(byte), fifteen);
        let zeros_low = _mm512_shuffle_epi8(nibble_zeros, low);
        let zeros_high = _mm512_add_epi8(_mm512_shuffle_epi8(nibble_zeros, high), _mm512_set1_epi8(4));
        let in_low = _mm512_test_epi8_mask(low, low);
        let zeros = _mm512_mask_mov_epi8(zeros_high, in_low, zeros_low);
        let any = _mm512_test_epi8_mask(byte, byte);
        *slot = _mm512_mask_add_epi8(none, any, base, zeros);
        // Take the bit away: byte & (byte - 1) in the plane where it was found.
        let rest = _mm512_and_si512(byte, _mm512_sub_epi8(byte, _mm512_set1_epi8(1)));
        for (j, open) in open.iter_mut().enumerate() {
            let here = _mm512_mask_cmpeq_epi8_mask(any, base, _mm512_set1_epi8(first_code(j)));
            *open = _mm512_mask_mov_epi8(*open, here, rest);
        }
    }
    found
}

/// The least code of plane j, as the intrinsics want it.
const fn first_code(j: usize) -> i8 {
    assert!(j < MOST_CODES / 8);
    (j * 8).to_le_bytes()[0].cast_signed()
}

/// A small number, as the intrinsics want it.
const fn number(m: usize) -> i8 {
    assert!(m < 128);
    m.to_le_bytes()[0].cast_signed()
}

/// Drops the candidates that a probe hits; the first `M` others move up.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn check<const N: usize, const M: usize>(
    window: &[u8],
    at: usize,
    probes: &Probes,
    candidates: &[__m512i; N],
) -> [__m512i; M] {
    let none = _mm512_set1_epi8(NONE.cast_signed());
    let mut distance = [none; N];
    for probe in probes.list() {
        let option = options(window, at, probe);
        for k in 0..N {
            distance[k] = _mm512_min_epu8(distance[k], _mm512_xor_si512(option, candidates[k]));
        }
    }
    let mut kept = [none; M];
    let mut count = _mm512_setzero_si512();
    for k in 0..N {
        let unhit = _mm512_test_epi8_mask(distance[k], distance[k]);
        let left = _mm512_mask_cmpneq_epi8_mask(unhit, candidates[k], none);
        for (m, slot) in kept.iter_mut().enumerate() {
            let here = _mm512_mask_cmpeq_epi8_mask(left, count, _mm512_set1_epi8(number(m)));
            *slot = _mm512_mask_mov_epi8(*slot, here, candidates[k]);
        }
        count = _mm512_mask_add_epi8(count, left, count, _mm512_set1_epi8(1));
    }
    kept
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2")]
pub(super) fn near(window: &mut [u8], at: usize, near: &Probes, lanes: &Lanes, from: usize, to: usize) -> usize {
    // SAFETY: the rows have 64 bytes.
    let candidates: [__m512i; CANDIDATES] =
        std::array::from_fn(|k| unsafe { _mm512_loadu_si512(lanes.code[k].as_ptr().cast()) });
    let none = _mm512_set1_epi8(NONE.cast_signed());
    // Bit i of open[k]: candidate k of lane i exists and was not hit so far.
    let mut open: [u64; CANDIDATES] = std::array::from_fn(|k| _mm512_cmpneq_epi8_mask(candidates[k], none));
    // What the known values before lane `from` hit.
    for probe in near.list() {
        let first = at + from - probe.offset;
        let known = u64::MAX >> (64 - probe.offset); // lanes from..from + offset see known values
        let lanes_seen = known << from;
        // SAFETY: only the bytes of the mask are touched: window[at + lane - offset] for from <= lane < from + offset,
        // lane < 64, all before at + from, which is inside the window; and offset <= at.
        let bytes = unsafe {
            _mm512_maskz_loadu_epi8(lanes_seen, window.as_ptr().wrapping_add(first).wrapping_sub(from).cast())
        };
        let option = _mm512_xor_si512(bytes, _mm512_set1_epi8(probe.code.cast_signed()));
        for k in 0..CANDIDATES {
            open[k] &= !_mm512_mask_cmpeq_epi8_mask(lanes_seen, option, candidates[k]);
        }
    }
    // The codes of the probes by their offset, and which offsets there are; several rows where an offset has several.
    let mut tables = [[0u8; 2 * LANES]; 4];
    let mut offsets = [0u64; 4];
    let mut rows = 0;
    for probe in near.list() {
        let bit = 1u64 << probe.offset;
        match (0..rows).find(|&row| offsets[row] & bit == 0 || tables[row][LANES + probe.offset] == probe.code) {
            Some(row) => {
                offsets[row] |= bit;
                tables[row][LANES + probe.offset] = probe.code;
            }
            None if rows < 4 => {
                offsets[rows] = bit;
                tables[rows][LANES + probe.offset] = probe.code;
                rows += 1;
            }
            None => return super::scalar::near(window, at, near, lanes, from, to),
        }
    }
    for lane in from..to {
        let Some(k) = (0..CANDIDATES).find(|&k| open[k] >> lane & 1 == 1) else { return lane };
        let code = lanes.code[k][lane];
        window[at + lane] = code;
        let code = _mm512_set1_epi8(code.cast_signed());
        for row in 0..rows {
            // Lane l is hit by the probe of offset l - lane.
            // SAFETY: 64 bytes from LANES - lane >= 1 on, of 128.
            let table = unsafe { _mm512_loadu_si512(tables[row].as_ptr().add(LANES - lane).cast()) };
            let option = _mm512_xor_si512(code, table);
            let seen = offsets[row] << lane;
            for k in 0..CANDIDATES {
                open[k] &= !_mm512_mask_cmpeq_epi8_mask(seen, option, candidates[k]);
            }
        }
    }
    to
}

/// The portable loop with one register and one test: compiled from Rust, the question whether anything is left took more
/// instructions than the planes before it.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) fn settle(planes: &[u8], at: usize, asks: &[usize], needed: &mut [u8; PLANE]) {
    assert!(planes.len() >= PLANE);
    let last = planes.len() - PLANE;
    // SAFETY: 64 bytes are read.
    let mut left = unsafe { _mm512_loadu_si512(needed.as_ptr().cast()) };
    for asks in asks.chunks(TURNS) {
        for ask in asks {
            let start = at.wrapping_add(*ask);
            assert!(start <= last, "a plane outside the planes");
            // SAFETY: 64 bytes from `start` on are inside `planes`, as just checked.
            let plane = unsafe { _mm512_loadu_si512(planes.as_ptr().add(start).cast()) };
            left = _mm512_andnot_si512(plane, left);
        }
        if _mm512_test_epi64_mask(left, left) == 0 {
            break;
        }
    }
    // SAFETY: 64 bytes are written.
    unsafe { _mm512_storeu_si512(needed.as_mut_ptr().cast(), left) };
}

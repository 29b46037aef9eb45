//! Short lists of probes: [`recurrence()`] computes 16 values at once. The module
//! [`kernel::recurrence`](crate::kernel::recurrence) describes the method.

use crate::kernel::LANES;
use crate::kernel::recurrence::{self, LEAST_RANGE, Recurrence, VALUES_AT_ONCE};
use std::arch::x86_64::*;

/// `COUNTING[k] = k`: a load at k gives the lanes the numbers k, k + 1, ….
const COUNTING: [u32; LANES + VALUES_AT_ONCE] = {
    let mut numbers = [0u32; LANES + VALUES_AT_ONCE];
    let mut k = 1;
    while k < numbers.len() {
        numbers[k] = numbers[k - 1] + 1;
        k += 1;
    }
    numbers
};

/// # Safety
/// `recurrence.is_inside(at)` must hold, and at <= to <= window.len().
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vpopcntdq,bmi1,bmi2")]
pub(in crate::kernel) unsafe fn recurrence(window: &mut [u8], at: usize, to: usize, recurrence: &Recurrence) -> usize {
    // The sets of `groups` have the least range.
    if recurrence.range > LEAST_RANGE {
        return recurrence::avx512(window, at, to, recurrence);
    }
    let nearest = recurrence.probes.first().map_or(VALUES_AT_ONCE, |probe| probe.offset);
    // SAFETY: the same requirements, and no offset is below the number of the instance.
    unsafe {
        match nearest {
            1 => groups::<1>(window, at, to, recurrence),
            2 => groups::<2>(window, at, to, recurrence),
            3 => groups::<3>(window, at, to, recurrence),
            4 => groups::<4>(window, at, to, recurrence),
            5 => groups::<5>(window, at, to, recurrence),
            6 | 7 => groups::<6>(window, at, to, recurrence),
            8..VALUES_AT_ONCE => groups::<8>(window, at, to, recurrence),
            _ => groups::<VALUES_AT_ONCE>(window, at, to, recurrence),
        }
    }
}

/// The AVX-512 version for lookups with offsets of at least `NEAREST`.
///
/// # Safety
/// That of [`recurrence()`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vpopcntdq,bmi1,bmi2")]
unsafe fn groups<const NEAREST: usize>(window: &mut [u8], at: usize, to: usize, recurrence: &Recurrence) -> usize {
    debug_assert!(recurrence.is_inside(at) && at <= to && to <= window.len());
    let one = _mm512_set1_epi32(1);
    // SAFETY: 64 = LANES <= at <= window.len().
    let mut last = unsafe { _mm512_loadu_si512(window.as_ptr().add(at - LANES).cast()) };
    let (in_group, rest) = recurrence.probes.split_at(recurrence.in_group);
    let (in_register, far) = rest.split_at(recurrence.in_register - in_group.len());
    let (in_group_codes, rest) = recurrence.codes.split_at(in_group.len());
    let (in_register_codes, far_codes) = rest.split_at(in_register.len());
    let mut n = at;
    while n < to {
        let mut set = _mm512_setzero_si512();
        for (probe, code) in far.iter().zip(far_codes) {
            // SAFETY: LANES <= offset <= at <= n, so the 16 bytes are before n and inside the window.
            let bytes = unsafe { _mm_loadu_si128(window.as_ptr().add(n - probe.offset).cast()) };
            set = enter(set, _mm512_cvtepu8_epi32(bytes), *code);
        }
        for (probe, code) in in_group.iter().zip(in_group_codes) {
            // The first `offset` lanes read codes before the group.
            // SAFETY: 1 <= offset <= LANES, so the 16 numbers are in the table.
            let places = unsafe { _mm512_loadu_si512(COUNTING.as_ptr().add(LANES - probe.offset).cast()) };
            let bytes = _mm512_maskz_permutexvar_epi8(0x1111_1111_1111_1111, places, last);
            let options = _mm512_xor_si512(bytes, _mm512_set1_epi32(code.cast_signed()));
            let hit = _mm512_maskz_sllv_epi32(!(u16::MAX << probe.offset), one, options);
            set = _mm512_or_si512(set, hit);
        }
        for (probe, code) in in_register.iter().zip(in_register_codes) {
            // SAFETY: as above.
            let places = unsafe { _mm512_loadu_si512(COUNTING.as_ptr().add(LANES - probe.offset).cast()) };
            let bytes = _mm512_maskz_permutexvar_epi8(0x1111_1111_1111_1111, places, last);
            set = enter(set, bytes, *code);
        }
        let mut codes = trailing_ones(set);
        let mut known = 0;
        while known + NEAREST < VALUES_AT_ONCE {
            for lane in known..VALUES_AT_ONCE.min(known + NEAREST) {
                // A lane pushes to lanes that are at least NEAREST later.
                if lane + NEAREST < VALUES_AT_ONCE {
                    let place = _mm512_set1_epi32(i32::try_from(lane).expect("below 16"));
                    let code = _mm512_permutexvar_epi32(place, codes);
                    for row in &recurrence.rows {
                        // SAFETY: 16 numbers from VALUES_AT_ONCE - lane >= 1 on, of 32.
                        let row = unsafe { _mm512_loadu_si512(row.as_ptr().add(VALUES_AT_ONCE - lane).cast()) };
                        let hit = _mm512_sllv_epi32(one, _mm512_xor_si512(code, row));
                        set = _mm512_or_si512(set, hit);
                    }
                }
            }
            known += NEAREST;
            codes = trailing_ones(set);
        }
        let bytes = _mm512_cvtepi32_epi8(codes);
        let wanted = VALUES_AT_ONCE.min(to - n);
        let full = _mm512_cmpeq_epi32_mask(codes, _mm512_set1_epi32(i32::from(LEAST_RANGE)));
        let full = usize::try_from(full.trailing_zeros()).expect("at most 16");
        if full < wanted || wanted < VALUES_AT_ONCE {
            let good = full.min(wanted);
            let bytes: [u8; VALUES_AT_ONCE] = {
                let mut array = [0; VALUES_AT_ONCE];
                // SAFETY: 16 bytes.
                unsafe { _mm_storeu_si128(array.as_mut_ptr().cast(), bytes) };
                array
            };
            window[n..n + good].copy_from_slice(&bytes[..good]);
            return n + good;
        }
        // SAFETY: n + VALUES_AT_ONCE <= to <= window.len().
        unsafe { _mm_storeu_si128(window.as_mut_ptr().add(n).cast(), bytes) };
        last = _mm512_alignr_epi64::<2>(_mm512_castsi128_si512(bytes), last);
        n += VALUES_AT_ONCE;
    }
    to
}

/// Enters the option of each lane in its set. Options of 32 or more enter nothing, because the shift then gives 0.
#[inline]
#[target_feature(enable = "avx512f")]
fn enter(set: __m512i, values: __m512i, code: u32) -> __m512i {
    let options = _mm512_xor_si512(values, _mm512_set1_epi32(code.cast_signed()));
    _mm512_or_si512(set, _mm512_sllv_epi32(_mm512_set1_epi32(1), options))
}

/// The number of trailing ones of each lane.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn trailing_ones(set: __m512i) -> __m512i {
    let above = _mm512_add_epi32(set, _mm512_set1_epi32(1));
    // set & !(set + 1): the ones below the lowest zero.
    _mm512_popcnt_epi32(_mm512_andnot_si512(above, set))
}

//! The recurrence kernel: short lists of lookups, near and far together, value by value.
//!
//! Games with a few dozen lookups (.106, Kayles) need neither an order of the lookups nor candidates. The options of n
//! are entered in one set of [`RECURRENCE_CODES`] bits, and the least code is the number of its trailing ones. Options
//! at or above [`RECURRENCE_CODES`] do not matter while a lower code is left. Where no code is left the kernel stops,
//! and the caller computes that value by a method that covers all codes.
//!
//! The cost is that each value depends on the values just before it. So the kernel computes several values at once with
//! the lookups that read only values before all of them, and evaluates only the nearer lookups value by value. With
//! AVX-512
//!
//! - 16 values are one register of sets. Lookups with offsets below 64 read from a register that holds the last 64
//!   codes, because a load across two fresh stores would wait for both;
//! - once the code of lane j is known, XOR with a table of the near lookups shifted by j gives the options of all later
//!   lanes ("pushing"). As many lanes become known together as the nearest lookup reaches back (6 in .106).
//!
//! Invariant: a value is written once, after all values before it.

use super::{LANES, Probe};

/// Number of codes that the recurrence kernel covers: those below it.
pub const RECURRENCE_CODES: u8 = 32;

/// Number of values that the AVX-512 version computes at once.
const VALUES_AT_ONCE: usize = 16;

/// The lookups of [`Kernel::chain`](super::Kernel::chain).
#[derive(Clone, Debug, Default, Hash)]
pub struct Recurrence {
    /// The lookups, ascending by offset, without duplicates.
    probes: Vec<Probe>,
    /// The codes of `probes`, as wide as a set, so that one instruction loads, broadcasts and XORs a code.
    codes: Vec<u32>,
    /// Number of lookups with an offset below [`VALUES_AT_ONCE`].
    near: usize,
    /// Number of lookups with an offset below [`LANES`].
    middle: usize,
    /// For each near lookup, entry `VALUES_AT_ONCE + offset` of some row is its code; the other entries give no option.
    rows: Vec<[u32; 2 * VALUES_AT_ONCE]>,
}

impl Recurrence {
    /// Creates the list from lookups in any order.
    #[must_use]
    pub fn new(mut probes: Vec<Probe>) -> Recurrence {
        probes.sort_unstable_by_key(|probe| (probe.offset, probe.code()));
        probes.dedup();
        let nearer = |than| probes.partition_point(|probe| probe.offset < than);
        let (near, middle) = (nearer(VALUES_AT_ONCE), nearer(LANES));
        let mut rows: Vec<[u32; 2 * VALUES_AT_ONCE]> = Vec::new();
        for probe in &probes[..near] {
            let entry = VALUES_AT_ONCE + probe.offset;
            let row = rows.iter().position(|row| row[entry] == u32::MAX).unwrap_or_else(|| {
                rows.push([u32::MAX; 2 * VALUES_AT_ONCE]);
                rows.len() - 1
            });
            rows[row][entry] = u32::from(probe.code());
        }
        let codes = probes.iter().map(|probe| u32::from(probe.code())).collect();
        Recurrence { probes, codes, near, middle, rows }
    }

    /// The number of different lookups.
    #[must_use]
    pub fn len(&self) -> usize {
        self.probes.len()
    }

    /// Whether there is no lookup.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.probes.is_empty()
    }

    /// Whether all lookups of positions from `at` on read bytes before the position and inside the window.
    pub(super) fn is_inside(&self, at: usize) -> bool {
        at >= LANES
            && self.probes.first().is_none_or(|p| p.offset >= 1)
            && self.probes.last().is_none_or(|p| p.offset <= at)
    }
}

/// The portable version: lookups with an offset of at least `BLOCK` are loops over `BLOCK` values, which the compiler
/// vectorises; nearer lookups are evaluated value by value.
#[inline(always)]
fn blocks<const BLOCK: usize>(window: &mut [u8], at: usize, to: usize, chain: &Recurrence) -> usize {
    let nearer = chain.probes.partition_point(|probe| probe.offset < BLOCK);
    let (near, far) = chain.probes.split_at(nearer);
    for from in (at..to).step_by(BLOCK) {
        let mut sets = [0u32; BLOCK];
        let count = BLOCK.min(to - from);
        if count == BLOCK {
            for probe in far {
                let bytes: &[u8; BLOCK] = window[from - probe.offset..][..BLOCK].try_into().expect("a block");
                for (set, byte) in sets.iter_mut().zip(bytes) {
                    *set |= 1u32.checked_shl(u32::from(byte ^ probe.code())).unwrap_or(0);
                }
            }
        }
        let probes = if count == BLOCK { near } else { &chain.probes };
        for (n, set) in (from..to).zip(sets) {
            let set =
                probes.iter().fold(set, |set, probe| set | BIT[usize::from(window[n - probe.offset] ^ probe.code())]);
            if set == u32::MAX {
                return n;
            }
            window[n] = set.trailing_ones().to_le_bytes()[0];
        }
    }
    to
}

/// The set of one code; empty from [`RECURRENCE_CODES`] on.
static BIT: [u32; 256] = {
    let mut bits = [0; 256];
    let (mut code, mut bit) = (0, 1u32);
    while bit != 0 {
        bits[code] = bit;
        bit <<= 1;
        code += 1;
    }
    bits
};

pub(super) fn scalar(window: &mut [u8], at: usize, to: usize, chain: &Recurrence) -> usize {
    blocks::<32>(window, at, to, chain)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn avx2(window: &mut [u8], at: usize, to: usize, chain: &Recurrence) -> usize {
    blocks::<8>(window, at, to, chain)
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::avx512;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{LANES, RECURRENCE_CODES, Recurrence, VALUES_AT_ONCE};
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

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vpopcntdq,bmi1,bmi2")]
    pub(in super::super) fn avx512(window: &mut [u8], at: usize, to: usize, chain: &Recurrence) -> usize {
        match chain.probes.first().map_or(VALUES_AT_ONCE, |probe| probe.offset) {
            1 => groups::<1>(window, at, to, chain),
            2 => groups::<2>(window, at, to, chain),
            3 => groups::<3>(window, at, to, chain),
            4 => groups::<4>(window, at, to, chain),
            5 => groups::<5>(window, at, to, chain),
            6 | 7 => groups::<6>(window, at, to, chain),
            8..VALUES_AT_ONCE => groups::<8>(window, at, to, chain),
            _ => groups::<VALUES_AT_ONCE>(window, at, to, chain),
        }
    }

    /// The AVX-512 version for lookups with offsets of at least `NEAREST`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vpopcntdq,bmi1,bmi2")]
    fn groups<const NEAREST: usize>(window: &mut [u8], at: usize, to: usize, chain: &Recurrence) -> usize {
        debug_assert!(chain.is_inside(at) && at <= to && to <= window.len());
        let one = _mm512_set1_epi32(1);
        // SAFETY: 64 = LANES <= at <= window.len().
        let mut last = unsafe { _mm512_loadu_si512(window.as_ptr().add(at - LANES).cast()) };
        let (near, rest) = chain.probes.split_at(chain.near);
        let (middle, far) = rest.split_at(chain.middle - near.len());
        let (near_codes, rest) = chain.codes.split_at(near.len());
        let (middle_codes, far_codes) = rest.split_at(middle.len());
        let mut n = at;
        while n < to {
            let mut set = _mm512_setzero_si512();
            for (probe, code) in far.iter().zip(far_codes) {
                // SAFETY: LANES <= offset <= at <= n, so the 16 bytes are before n and inside the window.
                let bytes = unsafe { _mm_loadu_si128(window.as_ptr().add(n - probe.offset).cast()) };
                set = enter(set, _mm512_cvtepu8_epi32(bytes), *code);
            }
            for (probe, code) in near.iter().zip(near_codes) {
                // The first `offset` lanes read codes before the group.
                // SAFETY: 1 <= offset <= LANES, so the 16 numbers are in the table.
                let places = unsafe { _mm512_loadu_si512(COUNTING.as_ptr().add(LANES - probe.offset).cast()) };
                let bytes = _mm512_maskz_permutexvar_epi8(0x1111_1111_1111_1111, places, last);
                let options = _mm512_xor_si512(bytes, _mm512_set1_epi32(code.cast_signed()));
                let hit = _mm512_maskz_sllv_epi32(!(u16::MAX << probe.offset), one, options);
                set = _mm512_or_si512(set, hit);
            }
            for (probe, code) in middle.iter().zip(middle_codes) {
                // SAFETY: as above.
                let places = unsafe { _mm512_loadu_si512(COUNTING.as_ptr().add(LANES - probe.offset).cast()) };
                let bytes = _mm512_maskz_permutexvar_epi8(0x1111_1111_1111_1111, places, last);
                set = enter(set, bytes, *code);
            }
            let mut codes = least(set);
            let mut known = 0;
            while known + NEAREST < VALUES_AT_ONCE {
                for lane in known..VALUES_AT_ONCE.min(known + NEAREST) {
                    // A lane pushes to lanes that are at least NEAREST later.
                    if lane + NEAREST < VALUES_AT_ONCE {
                        let place = _mm512_set1_epi32(i32::try_from(lane).expect("below 16"));
                        let code = _mm512_permutexvar_epi32(place, codes);
                        for row in &chain.rows {
                            // SAFETY: 16 numbers from VALUES_AT_ONCE - lane >= 1 on, of 32.
                            let row = unsafe { _mm512_loadu_si512(row.as_ptr().add(VALUES_AT_ONCE - lane).cast()) };
                            let hit = _mm512_sllv_epi32(one, _mm512_xor_si512(code, row));
                            set = _mm512_or_si512(set, hit);
                        }
                    }
                }
                known += NEAREST;
                codes = least(set);
            }
            let bytes = _mm512_cvtepi32_epi8(codes);
            let wanted = VALUES_AT_ONCE.min(to - n);
            let full = _mm512_cmpeq_epi32_mask(codes, _mm512_set1_epi32(i32::from(RECURRENCE_CODES)));
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
    fn least(set: __m512i) -> __m512i {
        let above = _mm512_add_epi32(set, _mm512_set1_epi32(1));
        // set & !(set + 1): the ones below the lowest zero.
        _mm512_popcnt_epi32(_mm512_andnot_si512(above, set))
    }
}

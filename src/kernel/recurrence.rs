//! The chain: short lists of lookups, near and far together, heap after heap.
//!
//! Games with a few dozen lookups (.106, Kayles) need no order of the lookups and no candidates: a heap's options are
//! entered in one set of [`RECURRENCE_CODES`] bits, and the least code is the number of its trailing ones. Options at or above
//! [`RECURRENCE_CODES`] cannot matter while a lower code is left; where none is left the chain stops, and the caller computes
//! that heap by a way that knows all codes.
//!
//! What costs time is that a heap needs the values just before it. So several heaps are done at once as far as their
//! lookups reach back before all of them, and only the nearer lookups go heap by heap. The 15 lookups of .106, one
//! thread of a Zen 4: 80 million heaps a second one by one, 165 in blocks of 32 (portable), 335 in blocks of 8 (AVX2),
//! 600 with AVX-512; there
//!
//! - 16 heaps are one register of sets. Lookups nearer than 64 read from a register that holds the last 64 codes, since
//!   a load across two fresh stores would wait for both;
//! - the code of lane j, once known, held against a table of the near lookups shifted by j, gives the options of all
//!   later lanes ("pushing"); as many lanes as the nearest lookup reaches back (6 in .106) become known together.
//!
//! Invariant: a heap is written once, when all heaps before it are.

use super::{LANES, Probe};

/// Codes that the chain knows. (Up to 10^7 the largest code of .106, .104, .054, .454 and Kayles is 19.)
pub const RECURRENCE_CODES: u8 = 32;

/// Heaps that AVX-512 makes at once.
const VALUES_AT_ONCE: usize = 16;

/// The lookups of a chain.
#[derive(Clone, Debug, Default, Hash)]
pub struct Recurrence {
    /// Ascending by offset; those that give the same options are there once.
    probes: Vec<Probe>,
    /// Their codes, as wide as a set, so that one instruction loads, spreads and XORs one.
    codes: Vec<u32>,
    /// How many of them reach back less than [`VALUES_AT_ONCE`], and less than [`LANES`].
    near: usize,
    middle: usize,
    /// Entry `VALUES_AT_ONCE + offset` of some row is the code of each near lookup; the other entries give no option.
    rows: Vec<[u32; 2 * VALUES_AT_ONCE]>,
}

impl Recurrence {
    /// The lookups in any order.
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

    /// How many different lookups there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.probes.len()
    }

    /// Whether there is no lookup at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.probes.is_empty()
    }

    /// Whether all lookups of a heap at `at` or later reach what is before it and inside the window.
    pub(super) fn is_inside(&self, at: usize) -> bool {
        at >= LANES
            && self.probes.first().is_none_or(|p| p.offset >= 1)
            && self.probes.last().is_none_or(|p| p.offset <= at)
    }
}

/// The portable way: the lookups of `BLOCK` heaps that reach back that far or farther are loops over the heaps, which a
/// compiler turns into vector instructions; the nearer ones go heap by heap.
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

    /// `COUNTING[k..][..VALUES_AT_ONCE]` are the numbers from k on.
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

    /// No lookup is nearer than `NEAREST`.
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
                // The first `offset` lanes look at what is before the group.
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
                    // A lane pushes to lanes at least NEAREST further on.
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

    /// Enters the option of each lane in its set; a shift by 32 or more gives no bit.
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

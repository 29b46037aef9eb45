//! Comparing codes with probes: [`check`] drops the candidates that a probe hits, and [`clear_hits`] clears the bits of
//! the least open codes that a probe hits.

use super::least::{for_planes, least_set_codes};
use super::{load, options};
use crate::kernel::planes::{ONE_HOT, first_code, for_kept, number};
use crate::kernel::probes::FarProbes;
use crate::kernel::{BitPlanes, LANES, Lanes, MAX_CLEARED_CODES, NONE};
use std::arch::x86_64::*;
use std::sync::LazyLock;

/// Drops the candidates that a probe hits. Those left move to the lowest slots.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(in crate::kernel) fn check(far: FarProbes<'_>, lanes: &mut Lanes) {
    for_kept!(lanes.kept, check_kept(far, lanes));
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn check_kept<const N: usize>(far: FarProbes<'_>, lanes: &mut Lanes) {
    let none = _mm512_set1_epi8(NONE.cast_signed());
    let candidates: [__m512i; N] = load(&lanes.code);
    let unhit = if masks_pay() { unhit::<N, true>(far, &candidates) } else { unhit::<N, false>(far, &candidates) };
    let mut kept = [none; N];
    let mut count = _mm512_setzero_si512();
    for k in 0..N {
        let left = _mm512_mask_cmpneq_epi8_mask(unhit[k], candidates[k], none);
        // Candidate k moves to one of the slots 0 to k.
        for (m, slot) in kept.iter_mut().enumerate().take(k + 1) {
            let here = _mm512_mask_cmpeq_epi8_mask(left, count, _mm512_set1_epi8(number(m)));
            *slot = _mm512_mask_mov_epi8(*slot, here, candidates[k]);
        }
        count = _mm512_mask_add_epi8(count, left, count, _mm512_set1_epi8(1));
    }
    for (row, codes) in lanes.code.iter_mut().zip(kept) {
        // SAFETY: a row has 64 bytes.
        unsafe { _mm512_storeu_si512(row.as_mut_ptr().cast(), codes) };
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(in crate::kernel) fn clear_hits(far: FarProbes<'_>, open: &mut BitPlanes) {
    let mut least = [[NONE; LANES]; MAX_CLEARED_CODES];
    for_planes!(least_set_codes(open.rows(), 0, &mut least[..]));
    let least: [__m512i; MAX_CLEARED_CODES] = load(&least);
    let unhit = if masks_pay() {
        unhit::<MAX_CLEARED_CODES, true>(far, &least)
    } else {
        unhit::<MAX_CLEARED_CODES, false>(far, &least)
    };
    let one_hot = _mm512_set1_epi64(ONE_HOT);
    for k in 0..MAX_CLEARED_CODES {
        let hit = !unhit[k];
        if hit == 0 {
            continue;
        }
        let bit = _mm512_shuffle_epi8(one_hot, _mm512_and_si512(least[k], _mm512_set1_epi8(7)));
        let first = _mm512_and_si512(least[k], _mm512_set1_epi8(0xf8_u8.cast_signed()));
        for (j, row) in open.rows_mut().iter_mut().enumerate() {
            let here = _mm512_mask_cmpeq_epi8_mask(hit, first, _mm512_set1_epi8(first_code(j)));
            // SAFETY: a row has 64 bytes.
            let bits = unsafe { _mm512_loadu_si512(row.as_ptr().cast()) };
            let cleared = _mm512_andnot_si512(_mm512_maskz_mov_epi8(here, bit), bits);
            // SAFETY: a row has 64 bytes.
            unsafe { _mm512_storeu_si512(row.as_mut_ptr().cast(), cleared) };
        }
    }
}

/// For each candidate the lanes in which no probe hits it.
///
/// The least XOR of all options with a candidate, which takes two instructions, is 0 exactly when one of them hits it.
/// Two probes are combined per step, because each minimum waits for the one before. With `MASKS` the first candidates
/// are compared instead, and each comparison narrows the mask of the one before.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn unhit<const N: usize, const MASKS: bool>(far: FarProbes<'_>, candidates: &[__m512i; N]) -> [u64; N] {
    let masks = if MASKS { compared(N) } else { 0 };
    let mut unequal = [u64::MAX; N];
    let mut distance = [_mm512_set1_epi8(-1); N];
    let mut pairs = far.list().chunks_exact(2);
    for pair in &mut pairs {
        // SAFETY: two probes of the list.
        let (x, y) = unsafe { (options(far, &pair[0]), options(far, &pair[1])) };
        for k in 0..masks {
            unequal[k] = _mm512_mask_cmpneq_epi8_mask(unequal[k], x, candidates[k]);
            unequal[k] = _mm512_mask_cmpneq_epi8_mask(unequal[k], y, candidates[k]);
        }
        for k in masks..N {
            let [x, y] = [x, y].map(|option| _mm512_xor_si512(option, candidates[k]));
            distance[k] = _mm512_min_epu8(distance[k], _mm512_min_epu8(x, y));
        }
    }
    for probe in pairs.remainder() {
        // SAFETY: a probe of the list.
        let x = unsafe { options(far, probe) };
        for k in 0..N {
            distance[k] = _mm512_min_epu8(distance[k], _mm512_xor_si512(x, candidates[k]));
        }
    }
    std::array::from_fn(|k| _mm512_mask_test_epi8_mask(unequal[k], distance[k], distance[k]))
}

/// Whether to compare some of the candidates into masks ([`unhit`]). A comparison is one instruction where the least
/// XOR takes two, but it runs in fewer execution pipes. It pays on processors with two pipes for vectors of 64 bytes
/// (Sapphire Rapids) or with pipes of half this width (Zen 4), and costs time on processors with four full pipes
/// (Zen 5).
fn masks_pay() -> bool {
    static PAY: LazyLock<bool> = LazyLock::new(|| {
        let vendor = __cpuid(0);
        let family = __cpuid(1).eax >> 8;
        let is_amd = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).as_flattened() == b"AuthenticAMD";
        // The family of Zen 5 is 26: base family 15 plus extended family 11.
        !(is_amd && (family & 15) + (family >> 12 & 255) >= 26)
    });
    *PAY
}

/// Number of candidates, out of `candidates`, that are compared into masks when masks pay: about half or more, at most
/// the seven usable mask registers. One pipe compares these while the other computes the XORs of the rest.
const fn compared(candidates: usize) -> usize {
    match candidates {
        12 => 7,
        8 => 5,
        6 => 4,
        5 => 3,
        _ => candidates.div_ceil(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::avx512::is_available;
    use crate::kernel::{KEEP, Probe, Probes};
    use crate::support::Random;

    /// A processor uses only one of the two methods, so the contract test of `check` does not cover both.
    #[test]
    fn masks_and_least_xors_find_the_same_unhit_candidates() {
        fn both<const N: usize>(random: &mut Random) {
            let byte = |random: &mut Random| random.below(90).to_le_bytes()[0];
            let window: Vec<u8> = (0..1000).map(|_| byte(random)).collect();
            let at = 600 + random.below(300) as usize;
            let probes: Probes =
                (0..random.below(60)).map(|_| Probe::new(64 + random.below(500) as usize, byte(random))).collect();
            let mut rows = [[0; LANES]; N];
            rows.as_flattened_mut().iter_mut().for_each(|code| *code = byte(random));
            let far = FarProbes::new(&window, at, &probes);
            // SAFETY: the caller has checked `is_available`.
            let found = unsafe {
                let candidates: [__m512i; N] = load(&rows);
                [unhit::<N, true>(far, &candidates), unhit::<N, false>(far, &candidates)]
            };
            for (k, row) in rows.iter().enumerate() {
                for (lane, &code) in row.iter().enumerate() {
                    let hit = probes.list().iter().any(|p| window[at + lane - p.offset] ^ p.code() == code);
                    assert_eq!(found.map(|unhit| unhit[k] >> lane & 1 == 0), [hit; 2], "{N} candidates, {k}, {lane}");
                }
            }
        }
        if is_available() {
            let random = &mut Random::new("masks");
            for _ in 0..20 {
                for kept in KEEP {
                    for_kept!(kept, both(random));
                }
            }
        }
    }
}

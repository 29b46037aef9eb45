//! The AVX-512 kernel (F, BW, VL, VBMI, VPOPCNTDQ): 64 lanes are one register.
//!
//! Each file holds the jobs of one kind. The contracts of the jobs are those of the methods of [`Kernel`] with the same
//! name; `Kernel` has checked the arguments.
//!
//! [`Kernel`]: super::Kernel

mod check;
mod find;
mod least;
mod mark;
mod near;
mod pair_tile;
mod recurrence;
mod wide;

use super::probes::FarProbes;
use super::{LANES, Probe};
pub(super) use check::{check, clear_hits};
pub(super) use find::{find_code_pair, find_code_pairs};
pub(super) use least::least_codes;
pub(super) use mark::mark;
pub(super) use near::near;
pub(super) use pair_tile::{clear_options, fill_tile};
pub(super) use recurrence::recurrence;
use std::arch::x86_64::*;
pub(super) use wide::{remove_pair_values, steps_without, unmarked, wide_hits};

/// Whether this processor has all instructions that the functions of this folder use.
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vpopcntdq") // for the recurrence kernel; absent on early VBMI processors
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
}

/// The options of a far probe in all lanes.
///
/// # Safety
/// The probe must be one of `far`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn options(far: FarProbes<'_>, probe: &Probe) -> __m512i {
    let FarProbes { window, at, .. } = far;
    debug_assert!(probe.offset <= at && at - probe.offset + LANES <= window.len());
    // SAFETY: `FarProbes` states that offset <= at and at - offset + LANES <= window.len() for each of its probes.
    let bytes = unsafe { _mm512_loadu_si512(window.as_ptr().wrapping_add(at.wrapping_sub(probe.offset)).cast()) };
    _mm512_xor_si512(bytes, _mm512_set1_epi32(i32::from_ne_bytes(probe.codes)))
}

/// The first `N` candidates of each lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn load<const N: usize>(rows: &[[u8; LANES]]) -> [__m512i; N] {
    // SAFETY: a row has 64 bytes.
    std::array::from_fn(|k| unsafe { _mm512_loadu_si512(rows[k].as_ptr().cast()) })
}

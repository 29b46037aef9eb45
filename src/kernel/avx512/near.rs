//! Near probes: [`near`] decides the lanes one after the other.
//!
//! Once the code of lane i is known, the kernel compares it with the candidates of all later lanes at once: in lane l,
//! only the probes with offset l - i read it. A table of the codes of the probes by offset, shifted by i, gives the
//! codes to be XORed in all lanes.

use super::load;
use crate::kernel::planes::for_kept;
use crate::kernel::{LANES, Lanes, NONE, NearJob, scalar};
use std::arch::x86_64::*;

#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2")]
pub(in crate::kernel) fn near(window: &mut [u8], job: NearJob<'_>, lanes: &Lanes) -> usize {
    for_kept!(lanes.kept, near_kept(window, job, lanes))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2")]
fn near_kept<const N: usize>(window: &mut [u8], job: NearJob<'_>, lanes: &Lanes) -> usize {
    let NearJob { at, probes, from, to } = job;
    let candidates: [__m512i; N] = load(lanes);
    let none = _mm512_set1_epi8(NONE.cast_signed());
    // Bit i of open[k]: candidate k of lane i exists and was not hit so far.
    let mut open: [u64; N] = std::array::from_fn(|k| _mm512_cmpneq_epi8_mask(candidates[k], none));
    // Clear the candidates that the known values before lane `from` hit.
    for probe in probes.list() {
        let first = at + from - probe.offset;
        let known = u64::MAX >> (64 - probe.offset); // lanes from..from + offset read known values
        let lanes_seen = known << from;
        // SAFETY: only the bytes of the mask are touched: window[at + lane - offset] for from <= lane < from + offset,
        // lane < 64, all before at + from, which is inside the window; and offset <= at.
        let bytes = unsafe {
            _mm512_maskz_loadu_epi8(lanes_seen, window.as_ptr().wrapping_add(first).wrapping_sub(from).cast())
        };
        let option = _mm512_xor_si512(bytes, _mm512_set1_epi8(probe.code().cast_signed()));
        for k in 0..N {
            open[k] &= !_mm512_mask_cmpeq_epi8_mask(lanes_seen, option, candidates[k]);
        }
    }
    // The codes of the probes by offset, and a mask of the offsets present. Probes with equal offsets are in different
    // rows.
    let mut tables = [[0u8; 2 * LANES]; 4];
    let mut offsets = [0u64; 4];
    let mut rows = 0;
    for probe in probes.list() {
        let bit = 1u64 << probe.offset;
        match (0..rows).find(|&row| offsets[row] & bit == 0 || tables[row][LANES + probe.offset] == probe.code()) {
            Some(row) => {
                offsets[row] |= bit;
                tables[row][LANES + probe.offset] = probe.code();
            }
            None if rows < 4 => {
                offsets[rows] = bit;
                tables[rows][LANES + probe.offset] = probe.code();
                rows += 1;
            }
            None => return scalar::near(window, job, lanes),
        }
    }
    for lane in from..to {
        let Some(k) = (0..N).find(|&k| open[k] >> lane & 1 == 1) else { return lane };
        let code = lanes.code[k][lane];
        if lanes.is_unmarked(code) {
            return lane;
        }
        window[at + lane] = code;
        let code = _mm512_set1_epi8(code.cast_signed());
        for row in 0..rows {
            // In lane l the probe with offset l - lane reads the value of `lane`.
            // SAFETY: 64 bytes from LANES - lane >= 1 on, of 128.
            let table = unsafe { _mm512_loadu_si512(tables[row].as_ptr().add(LANES - lane).cast()) };
            let option = _mm512_xor_si512(code, table);
            let seen = offsets[row] << lane;
            for k in 0..N {
                open[k] &= !_mm512_mask_cmpeq_epi8_mask(seen, option, candidates[k]);
            }
        }
    }
    to
}

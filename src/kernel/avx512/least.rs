//! The least codes of each lane: [`least_codes`] for the first candidates, [`least_set_codes`] for any planes.
//!
//! Each pass takes the lowest bit of each lane: it finds the lowest plane whose byte is not 0, and the lowest bit of
//! this byte by a table of the 16 nibbles.

use crate::kernel::planes::first_code;
use crate::kernel::{BitPlanes, LANES, Lanes, NONE};
use std::arch::x86_64::*;

/// Calls the instance of a generic function for a number of planes: one of `CODES` / 8, or larger by `BEYOND` / 8.
macro_rules! for_planes {
    ($function:ident($rows:expr, $flip:expr, $found:expr)) => {
        match $rows.len() {
            2 => $function::<2>($rows, $flip, $found),
            4 => $function::<4>($rows, $flip, $found),
            6 => $function::<6>($rows, $flip, $found),
            8 => $function::<8>($rows, $flip, $found),
            9 => $function::<9>($rows, $flip, $found),
            10 => $function::<10>($rows, $flip, $found),
            11 => $function::<11>($rows, $flip, $found),
            12 => $function::<12>($rows, $flip, $found),
            13 => $function::<13>($rows, $flip, $found),
            14 => $function::<14>($rows, $flip, $found),
            16 => $function::<16>($rows, $flip, $found),
            17 => $function::<17>($rows, $flip, $found),
            18 => $function::<18>($rows, $flip, $found),
            19 => $function::<19>($rows, $flip, $found),
            20 => $function::<20>($rows, $flip, $found),
            _ => $function::<22>($rows, $flip, $found),
        }
    };
}
pub(super) use for_planes;

/// Fills the candidates with the codes that the planes leave open, least first.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(in crate::kernel) fn least_codes(planes: &BitPlanes, lanes: &mut Lanes) {
    for_planes!(least_set_codes(planes.candidates(), -1, &mut lanes.code[..lanes.kept]));
}

/// Fills `found` with the least codes of each lane whose bits, XOR `flip`, are set.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) fn least_set_codes<const PLANES: usize>(rows: &[[u8; LANES]], flip: i8, found: &mut [[u8; LANES]]) {
    let none = _mm512_set1_epi8(NONE.cast_signed());
    let zero = _mm512_setzero_si512();
    let nibble_zeros = {
        // Trailing zeros of 0..16; 4 for 0.
        let table = [4u8, 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0];
        // SAFETY: the table has 16 bytes.
        unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast())) }
    };
    let fifteen = _mm512_set1_epi8(0x0f);
    // The bits that are still open. Each pass takes the lowest one of each lane.
    let mut open: [__m512i; PLANES] = std::array::from_fn(|j| {
        // SAFETY: a row has 64 bytes.
        let bits = unsafe { _mm512_loadu_si512(rows[j].as_ptr().cast()) };
        _mm512_xor_si512(bits, _mm512_set1_epi8(flip))
    });
    for slot in found {
        // The lowest plane with an open bit, and the byte of that plane.
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
        let codes = _mm512_mask_add_epi8(none, any, base, zeros);
        // SAFETY: a row has 64 bytes.
        unsafe { _mm512_storeu_si512(slot.as_mut_ptr().cast(), codes) };
        // Clear the bit in its plane: byte & (byte - 1).
        let rest = _mm512_and_si512(byte, _mm512_sub_epi8(byte, _mm512_set1_epi8(1)));
        for (j, open) in open.iter_mut().enumerate() {
            let here = _mm512_mask_cmpeq_epi8_mask(any, base, _mm512_set1_epi8(first_code(j)));
            *open = _mm512_mask_mov_epi8(*open, here, rest);
        }
    }
}

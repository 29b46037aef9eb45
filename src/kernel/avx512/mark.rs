//! Marking: [`mark`] enters the options of probes in the bit planes.
//!
//! One pass marks 2 to 12 bit planes (plane j, bit b: code 8j + b), all in registers. `vpermb` looks up
//! the low six bits of an option in a table of 64 bytes, which holds 1 << b at 8j + b: the byte to enter in plane j. A
//! byte mask separates the ranges of 64 codes, which the six bits cannot distinguish. One ternary logic instruction
//! enters the bytes of two probes. More than 12 planes take two passes, because their registers would spill; the first
//! pass marks eight planes, with one mask.

use super::options;
use crate::kernel::planes::ONE_HOT;
use crate::kernel::probes::FarProbes;
use crate::kernel::{BitPlanes, LANES};
use std::arch::x86_64::*;

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(in crate::kernel) fn mark(far: FarProbes<'_>, planes: &mut BitPlanes) {
    // The registers hold at most twelve planes and their tables. The first eight planes need only one mask.
    let rows = planes.rows_mut();
    let passes = if rows.len() > 12 { rows.split_at_mut(8) } else { (rows, [].as_mut_slice()) };
    match passes.0.len() {
        2 => mark_rows::<0, 2>(far, passes.0),
        4 => mark_rows::<0, 4>(far, passes.0),
        8 => mark_rows::<0, 8>(far, passes.0),
        9 => mark_rows::<0, 9>(far, passes.0),
        10 => mark_rows::<0, 10>(far, passes.0),
        11 => mark_rows::<0, 11>(far, passes.0),
        _ => mark_rows::<0, 12>(far, passes.0),
    }
    match passes.1.len() {
        0 => {}
        6 => mark_rows::<8, 6>(far, passes.1),
        8 => mark_rows::<8, 8>(far, passes.1),
        9 => mark_rows::<8, 9>(far, passes.1),
        10 => mark_rows::<8, 10>(far, passes.1),
        _ => mark_rows::<8, 12>(far, passes.1),
    }
}

/// The lanes whose option lies in each of the three ranges of 64 codes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn ranges(option: __m512i) -> [__mmask64; 3] {
    // As signed bytes, the second range is all above 63, and the third all below -64.
    [
        _mm512_testn_epi8_mask(option, _mm512_set1_epi8(0xc0_u8.cast_signed())),
        _mm512_cmpgt_epi8_mask(option, _mm512_set1_epi8(0x3f)),
        _mm512_cmplt_epi8_mask(option, _mm512_set1_epi8(0xc0_u8.cast_signed())),
    ]
}

/// Marks the `PLANES` bit planes from plane `FIRST` on, which `rows` holds.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn mark_rows<const FIRST: usize, const PLANES: usize>(far: FarProbes<'_>, rows: &mut [[u8; LANES]]) {
    assert_eq!(rows.len(), PLANES, "a row for each plane");
    // Byte 8j + b of table j is 1 << b; planes 64 codes apart share a table.
    let table: [__m512i; 8] = std::array::from_fn(|j| {
        let mut table = [0u8; LANES];
        table[8 * j..8 * j + 8].copy_from_slice(&ONE_HOT.to_le_bytes());
        // SAFETY: the table has 64 bytes.
        unsafe { _mm512_loadu_si512(table.as_ptr().cast()) }
    });
    // SAFETY: a row has 64 bytes.
    let mut planes: [__m512i; PLANES] = std::array::from_fn(|j| unsafe { _mm512_loadu_si512(rows[j].as_ptr().cast()) });
    let mut pairs = far.list().chunks_exact(2);
    for pair in &mut pairs {
        // SAFETY: two probes of the list.
        let (x, y) = unsafe { (options(far, &pair[0]), options(far, &pair[1])) };
        let (in_x, in_y) = (ranges(x), ranges(y));
        for j in 0..PLANES {
            let bits_x = _mm512_maskz_permutexvar_epi8(in_x[(FIRST + j) / 8], x, table[(FIRST + j) % 8]);
            let bits_y = _mm512_maskz_permutexvar_epi8(in_y[(FIRST + j) / 8], y, table[(FIRST + j) % 8]);
            planes[j] = _mm512_ternarylogic_epi64::<0xfe>(planes[j], bits_x, bits_y); // or of three
        }
    }
    for probe in pairs.remainder() {
        // SAFETY: a probe of the list.
        let x = unsafe { options(far, probe) };
        let in_x = ranges(x);
        for j in 0..PLANES {
            let bits = _mm512_maskz_permutexvar_epi8(in_x[(FIRST + j) / 8], x, table[(FIRST + j) % 8]);
            planes[j] = _mm512_or_si512(planes[j], bits);
        }
    }
    for (row, plane) in rows.iter_mut().zip(planes) {
        // SAFETY: a row has 64 bytes.
        unsafe { _mm512_storeu_si512(row.as_mut_ptr().cast(), plane) };
    }
}

//! The AVX-512 kernel (F, BW, VL, VBMI, VPOPCNTDQ): 64 lanes are one register.
//!
//! **Marking.** One pass marks 2 to 12 bit planes (plane j, bit b: code 8j + b), all in registers. `vpermb` looks up
//! the low six bits of an option in a table of 64 bytes, which holds 1 << b at 8j + b: the byte to enter in plane j. A
//! byte mask separates the ranges of 64 codes, which the six bits cannot distinguish. One ternary logic instruction
//! enters the bytes of two lookups. More than 12 planes take two passes, because their registers would spill; the first
//! pass marks eight planes, with one mask.
//!
//! **Near.** Once the value of lane i is known, the kernel compares it with the candidates of all later lanes at once:
//! the table of lookups, shifted by i, gives the code that it hits in each later lane.

use super::{
    BEYOND, BitPlanes, CANDIDATES, LANES, Lanes, MAX_CLEAR_PROBES, MOST_CODES, NONE, PAIRS_BETWEEN_TESTS, Probe,
    Probes, for_kept,
};
use std::arch::x86_64::*;
use std::sync::LazyLock;

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
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn options(window: &[u8], at: usize, probe: &Probe) -> __m512i {
    debug_assert!(probe.offset <= at && at - probe.offset + LANES <= window.len());
    // SAFETY: the caller has checked that offset <= at and at - offset + LANES <= window.len().
    let bytes = unsafe { _mm512_loadu_si512(window.as_ptr().wrapping_add(at.wrapping_sub(probe.offset)).cast()) };
    _mm512_xor_si512(bytes, _mm512_set1_epi32(i32::from_ne_bytes(probe.codes)))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) fn mark(window: &[u8], at: usize, probes: &Probes, planes: &mut BitPlanes) {
    // The registers hold at most twelve planes and their tables. The first eight planes need only one mask.
    let rows = planes.rows_mut();
    let passes = if rows.len() > 12 { rows.split_at_mut(8) } else { (rows, [].as_mut_slice()) };
    match passes.0.len() {
        2 => mark_rows::<0, 2>(window, at, probes, passes.0),
        4 => mark_rows::<0, 4>(window, at, probes, passes.0),
        8 => mark_rows::<0, 8>(window, at, probes, passes.0),
        9 => mark_rows::<0, 9>(window, at, probes, passes.0),
        10 => mark_rows::<0, 10>(window, at, probes, passes.0),
        11 => mark_rows::<0, 11>(window, at, probes, passes.0),
        _ => mark_rows::<0, 12>(window, at, probes, passes.0),
    }
    match passes.1.len() {
        0 => {}
        6 => mark_rows::<8, 6>(window, at, probes, passes.1),
        8 => mark_rows::<8, 8>(window, at, probes, passes.1),
        9 => mark_rows::<8, 9>(window, at, probes, passes.1),
        10 => mark_rows::<8, 10>(window, at, probes, passes.1),
        _ => mark_rows::<8, 12>(window, at, probes, passes.1),
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

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn mark_rows<const FIRST: usize, const PLANES: usize>(
    window: &[u8],
    at: usize,
    probes: &Probes,
    rows: &mut [[u8; LANES]],
) {
    assert_eq!(rows.len(), PLANES, "a row for each plane");
    // Byte 8j + b of table j is 1 << b; planes 64 codes apart share a table.
    let table: [__m512i; 8] = std::array::from_fn(|j| {
        let mut table = [0u8; LANES];
        table[8 * j..8 * j + 8].copy_from_slice(&0x8040_2010_0804_0201_u64.to_le_bytes());
        // SAFETY: the table has 64 bytes.
        unsafe { _mm512_loadu_si512(table.as_ptr().cast()) }
    });
    // SAFETY: a row has 64 bytes.
    let mut planes: [__m512i; PLANES] = std::array::from_fn(|j| unsafe { _mm512_loadu_si512(rows[j].as_ptr().cast()) });
    let mut pairs = probes.list().chunks_exact(2);
    for pair in &mut pairs {
        let (x, y) = (options(window, at, &pair[0]), options(window, at, &pair[1]));
        let (in_x, in_y) = (ranges(x), ranges(y));
        for j in 0..PLANES {
            let bits_x = _mm512_maskz_permutexvar_epi8(in_x[(FIRST + j) / 8], x, table[(FIRST + j) % 8]);
            let bits_y = _mm512_maskz_permutexvar_epi8(in_y[(FIRST + j) / 8], y, table[(FIRST + j) % 8]);
            planes[j] = _mm512_ternarylogic_epi64::<0xfe>(planes[j], bits_x, bits_y); // or of three
        }
    }
    for probe in pairs.remainder() {
        let x = options(window, at, probe);
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

/// Calls the instance of a generic function for the number of planes.
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

/// Fills the candidates with the codes that the planes leave open, least first.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) fn least_codes(planes: &BitPlanes, lanes: &mut Lanes) {
    for_planes!(set_codes(planes.candidates(), -1, &mut lanes.code[..lanes.kept]));
}

/// Fills `found` with the least codes of each lane whose bits, XOR `flip`, are set.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn set_codes<const PLANES: usize>(rows: &[[u8; LANES]], flip: i8, found: &mut [[u8; LANES]]) {
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

/// The least code of plane j, in the type of the intrinsics.
const fn first_code(j: usize) -> i8 {
    assert!(j < (MOST_CODES + BEYOND) / 8);
    (j * 8).to_le_bytes()[0].cast_signed()
}

/// A number below 128, in the type of the intrinsics.
const fn number(m: usize) -> i8 {
    assert!(m < 128);
    m.to_le_bytes()[0].cast_signed()
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) fn clear_hits(window: &[u8], at: usize, probes: &Probes, open: &mut BitPlanes) {
    let mut least = Lanes { code: [[NONE; LANES]; CANDIDATES], kept: MAX_CLEAR_PROBES, marked: NONE };
    for_planes!(set_codes(open.rows(), 0, &mut least.code[..MAX_CLEAR_PROBES]));
    let least: [__m512i; MAX_CLEAR_PROBES] = load(&least);
    let unhit = if masks_pay() {
        unhit::<MAX_CLEAR_PROBES, true>(window, at, probes, &least)
    } else {
        unhit::<MAX_CLEAR_PROBES, false>(window, at, probes, &least)
    };
    let one_hot = _mm512_set1_epi64(0x8040_2010_0804_0201_u64.cast_signed());
    for k in 0..MAX_CLEAR_PROBES {
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

/// Whether to compare some of the candidates into masks. A comparison is one instruction where the least XOR takes two,
/// but it runs in fewer execution pipes. It pays on processors with two pipes for vectors of 64 bytes (Sapphire Rapids)
/// or with pipes of half this width (Zen 4), and costs time on processors with four full pipes (Zen 5).
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

/// For each candidate the lanes in which no probe hits it.
///
/// The least XOR of all options with a candidate, which takes two instructions, is 0 exactly when one of them hits it.
/// Two lookups are combined per step, because each minimum waits for the one before. With `MASKS` the first candidates
/// are compared instead, and each comparison narrows the mask of the one before.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn unhit<const N: usize, const MASKS: bool>(
    window: &[u8],
    at: usize,
    probes: &Probes,
    candidates: &[__m512i; N],
) -> [u64; N] {
    let masks = if MASKS { compared(N) } else { 0 };
    let mut unequal = [u64::MAX; N];
    let mut distance = [_mm512_set1_epi8(NONE.cast_signed()); N];
    let mut pairs = probes.list().chunks_exact(2);
    for pair in &mut pairs {
        let (x, y) = (options(window, at, &pair[0]), options(window, at, &pair[1]));
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
        let x = options(window, at, probe);
        for k in 0..N {
            distance[k] = _mm512_min_epu8(distance[k], _mm512_xor_si512(x, candidates[k]));
        }
    }
    std::array::from_fn(|k| _mm512_mask_test_epi8_mask(unequal[k], distance[k], distance[k]))
}

/// The first `N` rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn load<const N: usize>(lanes: &Lanes) -> [__m512i; N] {
    // SAFETY: a row has 64 bytes.
    std::array::from_fn(|k| unsafe { _mm512_loadu_si512(lanes.code[k].as_ptr().cast()) })
}

/// Drops the candidates that a probe hits; the others move up.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) fn check(window: &[u8], at: usize, probes: &Probes, lanes: &mut Lanes) {
    for_kept!(lanes.kept, check_kept(window, at, probes, lanes));
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn check_kept<const N: usize>(window: &[u8], at: usize, probes: &Probes, lanes: &mut Lanes) {
    let none = _mm512_set1_epi8(NONE.cast_signed());
    let candidates: [__m512i; N] = load(lanes);
    let unhit = if masks_pay() {
        unhit::<N, true>(window, at, probes, &candidates)
    } else {
        unhit::<N, false>(window, at, probes, &candidates)
    };
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

#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2")]
pub(super) fn near(window: &mut [u8], at: usize, near: &Probes, lanes: &Lanes, from: usize, to: usize) -> usize {
    for_kept!(lanes.kept, near_kept(window, at, near, lanes, from, to))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2")]
fn near_kept<const N: usize>(
    window: &mut [u8],
    at: usize,
    near: &Probes,
    lanes: &Lanes,
    from: usize,
    to: usize,
) -> usize {
    let candidates: [__m512i; N] = load(lanes);
    let none = _mm512_set1_epi8(NONE.cast_signed());
    // Bit i of open[k]: candidate k of lane i exists and was not hit so far.
    let mut open: [u64; N] = std::array::from_fn(|k| _mm512_cmpneq_epi8_mask(candidates[k], none));
    // Clear the candidates that the known values before lane `from` hit.
    for probe in near.list() {
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
    for probe in near.list() {
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
            None => return super::scalar::near(window, at, near, lanes, from, to),
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

/// The portable loop with two registers per step, written with intrinsics because the compiled Rust loop is slower.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) fn find(a: &[u8], b: &[u8], wanted: u8) -> Option<usize> {
    const { assert!(PAIRS_BETWEEN_TESTS == 2 * LANES) };
    let pairs = a.len().min(b.len());
    let (a, b) = (&a[a.len() - pairs..], &b[b.len() - pairs..]);
    let key = _mm512_set1_epi8(wanted.cast_signed());
    let hits = |from: usize| {
        assert!(from + LANES <= pairs);
        // SAFETY: 64 bytes from `from` on are inside both slices, which are `pairs` long.
        let (x, y) = unsafe {
            (_mm512_loadu_si512(a.as_ptr().add(from).cast()), _mm512_loadu_si512(b.as_ptr().add(from).cast()))
        };
        _mm512_cmpeq_epi8_mask(_mm512_xor_si512(x, y), key)
    };
    let mut left = pairs;
    while left >= PAIRS_BETWEEN_TESTS {
        left -= PAIRS_BETWEEN_TESTS;
        if hits(left) | hits(left + LANES) != 0 {
            return Some(pairs - left);
        }
    }
    let rest = a[..left].iter().zip(&b[..left]).any(|(x, y)| x ^ y == wanted);
    rest.then_some(pairs)
}

/// The XORs of the 64 pairs from `from` on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn pairs(a: &[u8], b: &[u8], from: usize) -> __m512i {
    let (a, b) = (&a[from..from + LANES], &b[from..from + LANES]);
    // SAFETY: both slices have as many bytes as a register.
    unsafe { _mm512_xor_si512(_mm512_loadu_si512(a.as_ptr().cast()), _mm512_loadu_si512(b.as_ptr().cast())) }
}

/// Compares four registers of pairs at a time with all wanted codes, which share the loads and the cost of a
/// mispredicted branch.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) fn find_each(a: &[u8], b: &[u8], wanted: &mut Vec<u8>, mut good: impl FnMut(u8, usize) -> bool) {
    let count = a.len().min(b.len());
    let (a, b) = (&a[a.len() - count..], &b[b.len() - count..]);
    let mut left = count;
    while left >= 4 * LANES && !wanted.is_empty() {
        left -= 4 * LANES;
        let options = [
            pairs(a, b, left),
            pairs(a, b, left + LANES),
            pairs(a, b, left + 2 * LANES),
            pairs(a, b, left + 3 * LANES),
        ];
        let mut k = 0;
        while let Some(&code) = wanted.get(k) {
            let key = _mm512_set1_epi8(code.cast_signed());
            let hits = [
                _mm512_cmpeq_epi8_mask(options[0], key),
                _mm512_cmpeq_epi8_mask(options[1], key),
                _mm512_cmpeq_epi8_mask(options[2], key),
                _mm512_cmpeq_epi8_mask(options[3], key),
            ];
            if hits[0] | hits[1] | hits[2] | hits[3] == 0 {
                k += 1;
                continue;
            }
            // One past the last hit, which `good` sees first; computed without a branch.
            let ends =
                [0, 1, 2, 3].map(|i| if hits[i] == 0 { 0 } else { (i + 1) * LANES - hits[i].leading_zeros() as usize });
            let last = left + ends.into_iter().fold(0, usize::max) - 1;
            let mut others = (left..last).rev().filter(|&at| a[at] ^ b[at] == code);
            if good(code, count - last) || others.any(|at| good(code, count - at)) {
                wanted.swap_remove(k);
            } else {
                k += 1;
            }
        }
    }
    super::scalar::find_each(&a[..left], &b[..left], wanted, |code, pairs| good(code, count - left + pairs));
}

#[cfg(test)]
mod tests {
    use super::*;
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
            let mut lanes = Lanes { code: [[NONE; LANES]; CANDIDATES], kept: N, marked: NONE };
            lanes.code.as_flattened_mut().iter_mut().for_each(|code| *code = byte(random));
            // SAFETY: the caller has checked `is_available`.
            let found = unsafe {
                let candidates: [__m512i; N] = load(&lanes);
                [
                    unhit::<N, true>(&window, at, &probes, &candidates),
                    unhit::<N, false>(&window, at, &probes, &candidates),
                ]
            };
            for (k, row) in lanes.code[..N].iter().enumerate() {
                for (lane, &code) in row.iter().enumerate() {
                    let hit = probes.list().iter().any(|p| window[at + lane - p.offset] ^ p.code() == code);
                    assert_eq!(found.map(|unhit| unhit[k] >> lane & 1 == 0), [hit; 2], "{N} candidates, {k}, {lane}");
                }
            }
        }
        if is_available() {
            let random = &mut Random::new("masks");
            for _ in 0..20 {
                for kept in super::super::KEEP {
                    for_kept!(kept, both(random));
                }
            }
        }
    }
}

//! The portable kernel, the reference for the others: one byte per code and lane for marking, plain loops over the
//! lanes for checking.
//!
//! The contracts of the jobs are those of the methods of [`Kernel`](super::Kernel) with the same name; `Kernel` has
//! checked the arguments.
//!
//! Marking stores bytes instead of setting bits, because a bit must be read, changed and written, and each such access
//! waits for the one before. The loops over 16 lanes are simple enough for compilers to vectorise them with the
//! baseline instructions of the target.

use super::planes::for_kept;
use super::probes::FarProbes;
use super::wide_part::{WIDE_LANES, WidePart, WideParts, WideRow, others};
use super::{BitPlanes, LANES, Lanes, MAX_CLEARED_CODES, NONE, NearJob, Probe};

/// Number of lanes checked at once: one byte each in a vector register of the oldest 64-bit processors.
const LANES_AT_ONCE: usize = 16;

pub(super) fn mark(far: FarProbes<'_>, planes: &mut BitPlanes) {
    let mut marked = [[0u8; 256]; LANES];
    for probe in far.list() {
        let code = probe.code();
        for (row, byte) in marked.iter_mut().zip(bytes(far, probe)) {
            row[usize::from(byte ^ code)] = 1;
        }
    }
    for (lane, marked) in marked.iter().enumerate() {
        for (row, bytes) in planes.rows_mut().iter_mut().zip(marked.chunks_exact(8)) {
            // Each byte is 0 or 1: the product gathers the eight bits in its highest byte.
            let bits = u64::from_le_bytes(bytes.try_into().expect("eight")).wrapping_mul(0x0102_0408_1020_4080);
            row[lane] |= bits.to_le_bytes()[7];
        }
    }
}

/// Fills the candidates with the codes that the planes leave open, least first.
pub(super) fn least_codes(planes: &BitPlanes, lanes: &mut Lanes) {
    least_set_codes(planes.candidates(), u8::MAX, &mut lanes.code[..lanes.kept]);
}

/// Fills `least` with the least codes of each lane whose bits, XOR `flip`, are set.
fn least_set_codes(rows: &[[u8; LANES]], flip: u8, least: &mut [[u8; LANES]]) {
    for lane in 0..LANES {
        let mut found = 0;
        'lane: for (first, row) in (0..).step_by(8).zip(rows) {
            let mut left = row[lane] ^ flip;
            while left != 0 {
                least[found][lane] = first + left.trailing_zeros().to_le_bytes()[0];
                found += 1;
                if found == least.len() {
                    break 'lane;
                }
                left &= left - 1;
            }
        }
    }
}

/// Drops the candidates that a probe hits. Those left move to the lowest slots.
pub(super) fn check(far: FarProbes<'_>, lanes: &mut Lanes) {
    for group in (0..LANES).step_by(LANES_AT_ONCE) {
        for_kept!(lanes.kept, check_kept(far, group, lanes));
    }
}

pub(super) fn clear_hits(far: FarProbes<'_>, open: &mut BitPlanes) {
    let mut least = [[NONE; LANES]; MAX_CLEARED_CODES];
    least_set_codes(open.rows(), 0, &mut least);
    for lane in (0..LANES).step_by(LANES_AT_ONCE) {
        let distance = distances::<MAX_CLEARED_CODES>(far, lane, &least);
        for (codes, distance) in least.iter().zip(distance) {
            for (i, _) in distance.iter().enumerate().filter(|(_, d)| **d == 0) {
                let code = codes[lane + i];
                if let Some(row) = open.rows_mut().get_mut(usize::from(code / 8)) {
                    row[lane + i] &= !(1 << (code % 8));
                }
            }
        }
    }
}

/// The bytes that a far probe reads for the 64 lanes, before the XOR with its code.
#[inline]
fn bytes<'a>(far: FarProbes<'a>, probe: &Probe) -> &'a [u8; LANES] {
    let from = far.at - probe.offset;
    far.window[from..from + LANES].try_into().expect("64 lanes")
}

/// The least XOR of any option with each candidate: 0 exactly when a probe hits the candidate.
#[inline]
fn distances<const N: usize>(far: FarProbes<'_>, lane: usize, candidates: &[[u8; LANES]]) -> [[u8; LANES_AT_ONCE]; N] {
    let candidate: [[u8; LANES_AT_ONCE]; N] =
        std::array::from_fn(|k| candidates[k][lane..lane + LANES_AT_ONCE].try_into().expect("16 lanes"));
    let mut distance = [[u8::MAX; LANES_AT_ONCE]; N];
    for probe in far.list() {
        let bytes = &bytes(far, probe)[lane..lane + LANES_AT_ONCE];
        let code = probe.code();
        for k in 0..N {
            for i in 0..LANES_AT_ONCE {
                distance[k][i] = distance[k][i].min(bytes[i] ^ code ^ candidate[k][i]);
            }
        }
    }
    distance
}

fn check_kept<const N: usize>(far: FarProbes<'_>, lane: usize, lanes: &mut Lanes) {
    let distance = distances::<N>(far, lane, &lanes.code);
    for i in 0..LANES_AT_ONCE {
        let codes: [u8; N] = std::array::from_fn(|k| lanes.code[k][lane + i]);
        let left = (0..N).filter(|&k| distance[k][i] != 0 && codes[k] != NONE).map(|k| codes[k]);
        let mut left = left.chain(std::iter::repeat(NONE));
        lanes.code[..N].iter_mut().for_each(|row| row[lane + i] = left.next().expect("endless"));
    }
}

pub(super) fn near(window: &mut [u8], job: NearJob<'_>, lanes: &Lanes) -> usize {
    let NearJob { at, probes, from, to } = job;
    // The last lane, counted from 1 at `from`, in which each code was hit. Bytes, because bits in words wait for each
    // other.
    let mut hit = [0u8; 256];
    for (lane, stamp) in (from..to).zip(1..) {
        for probe in probes.list() {
            hit[usize::from(window[at + lane - probe.offset] ^ probe.code())] = stamp;
        }
        let open = |code: &u8| *code != NONE && hit[usize::from(*code)] != stamp;
        match lanes.rows().iter().map(|row| row[lane]).find(open) {
            Some(code) if !lanes.is_unconsidered(lane, code) => window[at + lane] = code,
            _ => return lane,
        }
    }
    to
}

pub(super) fn find_code_pairs(a: &[u8], b: &[u8], wanted: &mut Vec<u8>, mut good: impl FnMut(u8, usize) -> bool) {
    if wanted.is_empty() {
        return;
    }
    let mut is_wanted = [false; 256];
    wanted.iter().for_each(|&code| is_wanted[usize::from(code)] = true);
    for (pairs, (x, y)) in (1..).zip(a.iter().rev().zip(b.iter().rev())) {
        let code = x ^ y;
        if is_wanted[usize::from(code)] && good(code, pairs) {
            is_wanted[usize::from(code)] = false;
            wanted.retain(|&other| other != code);
            if wanted.is_empty() {
                return;
            }
        }
    }
}

pub(super) fn unmarked(seen: &[[u8; 64]], open: &mut [u64]) {
    for (seen, open) in seen.iter().zip(open) {
        *open = seen.iter().rev().fold(0, |bits, &byte| bits << 1 | u64::from(byte == 0));
    }
}

pub(super) fn wide_hits<const K: usize>(
    parts: WideParts<'_, impl Iterator<Item = WidePart>>,
    candidates: &[WideRow; K],
) -> [u64; K] {
    // One number per lane, 0 or 1: the compiler computes them in vectors. One bit per lane would take a shift for each.
    let mut hits = [[0; WIDE_LANES]; K];
    for part in parts.list {
        let others = others(parts.window, parts.at, part);
        for (hits, row) in hits.iter_mut().zip(candidates) {
            for (hit, (other, candidate)) in hits.iter_mut().zip(others.iter().zip(row)) {
                *hit |= u16::from(other ^ part.value == *candidate);
            }
        }
    }
    hits.map(|lanes| lanes.iter().rev().fold(0, |bits, &hit| bits << 1 | u64::from(hit)))
}

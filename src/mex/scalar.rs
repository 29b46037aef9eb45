//! The portable kernel: one byte a code and lane for marking, plain loops over the lanes for checking.
//!
//! A byte that is only ever stored to beats a bit that is read, changed and written (no chain through memory), and the
//! loops over 16 lanes are ones that every compiler turns into the vector instructions of its base line.

use super::{CANDIDATES, Far, KEEP, LANES, Lanes, NONE, Probe, Probes, STAGES};

/// Lanes checked at once: what fits the vector registers of the oldest 64-bit processors.
const GROUP: usize = 16;

pub(super) fn candidates(window: &[u8], at: usize, far: &Far) -> Lanes {
    let mut marked = [[0u8; 256]; LANES];
    for probe in far.mark.list() {
        for (row, byte) in marked.iter_mut().zip(options(window, at, probe)) {
            row[usize::from(byte ^ probe.code)] = 1;
        }
    }
    let mut least = [[NONE; LANES]; KEEP[0]];
    for (lane, row) in marked.iter().enumerate() {
        let mut found = 0;
        'row: for (word, bytes) in row[..far.codes].chunks_exact(8).enumerate() {
            // Marks are 0 or 1, so the low bits of the complement show the codes that are left.
            let mut left = !u64::from_le_bytes(bytes.try_into().expect("eight")) & 0x0101_0101_0101_0101;
            while left != 0 {
                let code = word * 8 + (left.trailing_zeros() / 8) as usize;
                least[found][lane] = u8::try_from(code).expect("below 128");
                found += 1;
                if found == KEEP[0] {
                    break 'row;
                }
                left &= left - 1;
            }
        }
    }
    for group in (0..LANES).step_by(GROUP) {
        check::<{ KEEP[0] }>(window, at, &far.check[0], group, &mut least);
        check::<{ KEEP[1] }>(window, at, &far.check[1], group, &mut least);
        check::<{ KEEP[2] }>(window, at, &far.check[2], group, &mut least);
    }
    const { assert!(STAGES == 3) };
    Lanes { code: std::array::from_fn::<_, CANDIDATES, _>(|k| least[k]) }
}

/// What stands `offset` back from each of the 64 lanes.
#[inline]
fn options<'a>(window: &'a [u8], at: usize, probe: &Probe) -> &'a [u8; LANES] {
    let from = at - probe.offset;
    window[from..from + LANES].try_into().expect("64 lanes")
}

/// Drops those of the first `N` candidates that a probe hits, and moves the others up.
#[inline]
fn check<const N: usize>(window: &[u8], at: usize, probes: &Probes, lane: usize, least: &mut [[u8; LANES]; KEEP[0]]) {
    let candidate: [[u8; GROUP]; N] =
        std::array::from_fn(|k| least[k][lane..lane + GROUP].try_into().expect("16 lanes"));
    // The least XOR of any option with a candidate is 0 exactly when one of them hits it.
    let mut distance = [[u8::MAX; GROUP]; N];
    for probe in probes.list() {
        let bytes = &options(window, at, probe)[lane..lane + GROUP];
        for k in 0..N {
            for i in 0..GROUP {
                distance[k][i] = distance[k][i].min(bytes[i] ^ probe.code ^ candidate[k][i]);
            }
        }
    }
    for i in 0..GROUP {
        let left = (0..N).filter(|&k| distance[k][i] != 0 && candidate[k][i] != NONE).map(|k| candidate[k][i]);
        let mut left = left.chain(std::iter::repeat(NONE));
        least.iter_mut().for_each(|row| row[lane + i] = left.next().expect("endless"));
    }
}

pub(super) fn near(window: &mut [u8], at: usize, near: &Probes, lanes: &Lanes, from: usize, to: usize) -> usize {
    for lane in from..to {
        let mut hit = [0u64; 4];
        for probe in near.list() {
            let code = window[at + lane - probe.offset] ^ probe.code;
            hit[usize::from(code / 64)] |= 1 << (code % 64);
        }
        let open = |code: &u8| *code != NONE && hit[usize::from(code / 64)] >> (code % 64) & 1 == 0;
        match lanes.code.iter().map(|row| row[lane]).find(open) {
            Some(code) => window[at + lane] = code,
            None => return lane,
        }
    }
    to
}

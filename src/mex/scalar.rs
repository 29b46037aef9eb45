//! The portable kernel: one byte a code and lane for marking, plain loops over the lanes for checking.
//!
//! A byte that is only ever stored to beats a bit that is read, changed and written (no chain through memory), and the
//! loops over 16 lanes are ones that every compiler turns into the vector instructions of its base line.

use super::{CANDIDATES, CODES, LANES, Lanes, Probe};

/// Lanes checked at once: what fits the vector registers of the oldest 64-bit processors.
const GROUP: usize = 16;

/// Candidates checked in one pass over the probes.
const ROUND: usize = 4;

pub(super) fn candidates(window: &[u8], at: usize, mark: &[Probe], check: &[Probe]) -> Lanes {
    let mut marked = [[0u8; 256]; LANES];
    for probe in mark {
        for (row, byte) in marked.iter_mut().zip(options(window, at, probe)) {
            row[usize::from(byte ^ probe.code)] = 1;
        }
    }
    let mut lanes = Lanes { code: [[0; LANES]; CANDIDATES], open: [0; LANES] };
    for (lane, row) in marked.iter().enumerate() {
        let mut found = 0;
        'row: for (word, bytes) in row[..CODES].chunks_exact(8).enumerate() {
            // Marks are 0 or 1, so the low bits of the complement show the codes that are left.
            let mut left = !u64::from_le_bytes(bytes.try_into().expect("eight")) & 0x0101_0101_0101_0101;
            while left != 0 {
                let code = word * 8 + (left.trailing_zeros() / 8) as usize;
                lanes.code[found][lane] = u8::try_from(code).expect("below 128");
                lanes.open[lane] |= 1 << found;
                found += 1;
                if found == CANDIDATES {
                    break 'row;
                }
                left &= left - 1;
            }
        }
    }
    for group in 0..LANES / GROUP {
        for round in 0..CANDIDATES / ROUND {
            check_group(window, at, check, group * GROUP, round * ROUND, &mut lanes);
        }
    }
    lanes
}

/// What stands `offset` back from each of the 64 lanes.
#[inline]
fn options<'a>(window: &'a [u8], at: usize, probe: &Probe) -> &'a [u8; LANES] {
    assert!(probe.offset >= LANES, "a probe nearer than its lanes would read what is not known yet");
    let from = at.checked_sub(probe.offset).expect("a probe reaches before the window");
    window[from..from + LANES].try_into().expect("64 lanes")
}

#[inline]
fn check_group(window: &[u8], at: usize, check: &[Probe], lane: usize, first: usize, lanes: &mut Lanes) {
    let candidate: [[u8; GROUP]; ROUND] =
        std::array::from_fn(|k| lanes.code[first + k][lane..lane + GROUP].try_into().expect("16 lanes"));
    // The least XOR of any option with a candidate is 0 exactly when one of them hits it.
    let mut least = [[u8::MAX; GROUP]; ROUND];
    for probe in check {
        let bytes = &options(window, at, probe)[lane..lane + GROUP];
        for k in 0..ROUND {
            for i in 0..GROUP {
                least[k][i] = least[k][i].min(bytes[i] ^ probe.code ^ candidate[k][i]);
            }
        }
    }
    for (k, least) in least.iter().enumerate() {
        for (i, least) in least.iter().enumerate() {
            if *least == 0 {
                lanes.open[lane + i] &= !(1 << (first + k));
            }
        }
    }
}

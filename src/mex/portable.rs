//! The jobs of the witness search: plain Rust, compiled once more for each instruction set.

use super::PLANE;

/// Pairs looked at between two questions whether the wanted value was among them.
const STEP: usize = 64;

/// Planes between two questions whether all is settled.
pub(super) const TURNS: usize = 4;

#[inline(always)]
pub(super) fn settle(planes: &[u8], at: usize, asks: &[usize], needed: &mut [u8; PLANE]) {
    let mut left = *needed;
    for asks in asks.chunks(TURNS) {
        for ask in asks {
            let start = at.wrapping_add(*ask);
            let plane: &[u8; PLANE] = planes[start..][..PLANE].try_into().expect("64 bytes");
            for (left, settled) in left.iter_mut().zip(plane) {
                *left &= !settled;
            }
        }
        if left.iter().fold(0, |any, bits| any | bits) == 0 {
            break;
        }
    }
    *needed = left;
}

#[inline(always)]
pub(super) fn gain(levels: &[Vec<u64>; 3], hits: &[u64]) -> u32 {
    let ones = |level: &[u64]| level.iter().zip(hits).map(|(a, b)| (a & b).count_ones()).sum::<u32>();
    9 * ones(&levels[0]) + 3 * ones(&levels[1]) + ones(&levels[2])
}

#[inline(always)]
pub(super) fn find(a: &[u16], b: &[u16], wanted: u16) -> Option<usize> {
    let pairs = a.len().min(b.len());
    let (a, b) = (&a[a.len() - pairs..], &b[b.len() - pairs..]);
    let mut looked = 0;
    while looked < pairs {
        let step = STEP.min(pairs - looked);
        let (x, y) = (&a[pairs - looked - step..pairs - looked], &b[pairs - looked - step..pairs - looked]);
        looked += step;
        let among = match (<&[u16; STEP]>::try_from(x), <&[u16; STEP]>::try_from(y)) {
            (Ok(x), Ok(y)) => x.iter().zip(y).fold(false, |any, (x, y)| any | (x ^ y == wanted)),
            _ => x.iter().zip(y).any(|(x, y)| x ^ y == wanted),
        };
        if among {
            return Some(looked);
        }
    }
    None
}

macro_rules! compiled_for {
    ($features:literal, $gain:ident, $find:ident) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        pub(super) fn $gain(levels: &[Vec<u64>; 3], hits: &[u64]) -> u32 {
            gain(levels, hits)
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        pub(super) fn $find(a: &[u16], b: &[u16], wanted: u16) -> Option<usize> {
            find(a, b, wanted)
        }
    };
}

compiled_for!("avx2,popcnt,bmi1,bmi2", gain_avx2, find_avx2);
compiled_for!("avx512f,avx512bw,avx512vl,avx512vpopcntdq,popcnt,bmi1,bmi2", gain_avx512, find_avx512);

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
pub(super) fn settle_avx2(planes: &[u8], at: usize, asks: &[usize], needed: &mut [u8; PLANE]) {
    settle(planes, at, asks, needed);
}

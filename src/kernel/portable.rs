//! Jobs that are plain Rust, compiled once more for each instruction set.

use super::{BitPlanes, HEAPS, LANES, PAIRS_BETWEEN_TESTS};
use std::ops::{BitXor, Not};

#[inline(always)]
pub(super) fn open(planes: &mut BitPlanes, below: &[u8; LANES]) {
    for (first, row) in (0..).step_by(8).zip(planes.rows_mut()) {
        for (bits, below) in row.iter_mut().zip(below) {
            // Of the eight codes from `first` on those below `below`.
            let wanted = (1u32 << below.saturating_sub(first).min(8)) - 1;
            *bits = !*bits & wanted.to_le_bytes()[0];
        }
    }
}

#[inline(always)]
pub(super) fn find<T: Copy + PartialEq + BitXor<Output = T>>(a: &[T], b: &[T], wanted: T) -> Option<usize> {
    let pairs = a.len().min(b.len());
    let (a, b) = (&a[a.len() - pairs..], &b[b.len() - pairs..]);
    let mut looked = 0;
    while looked < pairs {
        let step = PAIRS_BETWEEN_TESTS.min(pairs - looked);
        let (x, y) = (&a[pairs - looked - step..pairs - looked], &b[pairs - looked - step..pairs - looked]);
        looked += step;
        let among = match (<&[T; PAIRS_BETWEEN_TESTS]>::try_from(x), <&[T; PAIRS_BETWEEN_TESTS]>::try_from(y)) {
            (Ok(x), Ok(y)) => x.iter().zip(y).fold(false, |any, (&x, &y)| any | (x ^ y == wanted)),
            _ => x.iter().zip(y).any(|(&x, &y)| x ^ y == wanted),
        };
        if among {
            return Some(looked);
        }
    }
    None
}

/// Whether some item is an option of its own heap, of those from `at` on.
#[inline(always)]
pub(super) fn repeats<T>(window: &[T], at: usize, lookups: &[(usize, T)]) -> bool
where
    T: Copy + Ord + Default + BitXor<Output = T> + Not<Output = T>,
{
    let own: &[T; HEAPS] = window[at..at + HEAPS].try_into().expect("as many heaps");
    // The least XOR of an option and its heap's own item, lane by lane: 0 exactly when one repeats it.
    let mut least = [!T::default(); HEAPS];
    for &(offset, item) in lookups {
        let from = at - offset;
        let others: &[T; HEAPS] = window[from..from + HEAPS].try_into().expect("as many heaps");
        for i in 0..HEAPS {
            least[i] = least[i].min(others[i] ^ own[i] ^ item);
        }
    }
    least.contains(&T::default())
}

macro_rules! compiled_for {
    ($features:literal, $open:ident, $find_value:ident, $repeats:ident, $repeats_value:ident) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        pub(super) fn $open(planes: &mut BitPlanes, below: &[u8; LANES]) {
            open(planes, below);
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        pub(super) fn $find_value(a: &[u16], b: &[u16], wanted: u16) -> Option<usize> {
            find(a, b, wanted)
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        pub(super) fn $repeats(window: &[u8], at: usize, lookups: &[(usize, u8)]) -> bool {
            repeats(window, at, lookups)
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        pub(super) fn $repeats_value(window: &[u16], at: usize, lookups: &[(usize, u16)]) -> bool {
            repeats(window, at, lookups)
        }
    };
}

compiled_for!("avx2,popcnt,bmi1,bmi2", open_avx2, find_value_avx2, repeats_avx2, repeats_value_avx2);
compiled_for!(
    "avx512f,avx512bw,avx512vl,avx512vbmi,popcnt,bmi1,bmi2",
    open_avx512,
    find_value_avx512,
    repeats_avx512,
    repeats_value_avx512
);

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn find_avx2(a: &[u8], b: &[u8], wanted: u8) -> Option<usize> {
    find(a, b, wanted)
}

//! Jobs written in plain Rust and compiled separately for each instruction set, so that the compiler vectorises them.

use super::{BitPlanes, LANES, PAIRS_BETWEEN_TESTS, REPEATS_VALUES};
use std::ops::{BitXor, Not};

#[inline(always)]
pub(super) fn open(planes: &mut BitPlanes, below: &[u8; LANES]) {
    for (first, row) in (0..).step_by(8).zip(planes.rows_mut()) {
        for (bits, below) in row.iter_mut().zip(below) {
            // A bit for each of the eight codes from `first` on that is below `below`.
            let wanted = (1u32 << below.saturating_sub(first).min(8)) - 1;
            *bits = !*bits & wanted.to_le_bytes()[0];
        }
    }
}

#[inline(always)]
pub(super) fn find_pair<T: Copy + PartialEq + BitXor<Output = T>>(a: &[T], b: &[T], wanted: T) -> Option<usize> {
    let pairs = a.len().min(b.len());
    let (a, b) = (&a[a.len() - pairs..], &b[b.len() - pairs..]);
    let mut tested = 0;
    while tested < pairs {
        let step = PAIRS_BETWEEN_TESTS.min(pairs - tested);
        let (x, y) = (&a[pairs - tested - step..pairs - tested], &b[pairs - tested - step..pairs - tested]);
        tested += step;
        let among = match (<&[T; PAIRS_BETWEEN_TESTS]>::try_from(x), <&[T; PAIRS_BETWEEN_TESTS]>::try_from(y)) {
            (Ok(x), Ok(y)) => x.iter().zip(y).fold(false, |any, (&x, &y)| any | (x ^ y == wanted)),
            _ => x.iter().zip(y).any(|(&x, &y)| x ^ y == wanted),
        };
        if among {
            return Some(tested);
        }
    }
    None
}

/// Whether one of the [`REPEATS_VALUES`] items from `at` on equals an option of its own position.
#[inline(always)]
pub(super) fn repeats<T>(window: &[T], at: usize, lookups: &[(usize, T)]) -> bool
where
    T: Copy + Ord + Default + BitXor<Output = T> + Not<Output = T>,
{
    let own: &[T; REPEATS_VALUES] = window[at..at + REPEATS_VALUES].try_into().expect("REPEATS_VALUES items");
    // The least XOR of the item and its options, lane by lane: 0 exactly when an option equals the item.
    let mut least = [!T::default(); REPEATS_VALUES];
    for &(offset, item) in lookups {
        let from = at - offset;
        let others: &[T; REPEATS_VALUES] =
            window[from..from + REPEATS_VALUES].try_into().expect("REPEATS_VALUES items");
        for i in 0..REPEATS_VALUES {
            least[i] = least[i].min(others[i] ^ own[i] ^ item);
        }
    }
    least.contains(&T::default())
}

/// Defines the jobs of this module for one set of target features.
macro_rules! compiled_for {
    ($features:literal, $open:ident, $find_value_pair:ident, $repeats:ident, $repeats_value:ident) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        pub(super) fn $open(planes: &mut BitPlanes, below: &[u8; LANES]) {
            open(planes, below);
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        pub(super) fn $find_value_pair(a: &[u16], b: &[u16], wanted: u16) -> Option<usize> {
            find_pair(a, b, wanted)
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

compiled_for!("avx2,popcnt,bmi1,bmi2", open_avx2, find_value_pair_avx2, repeats_avx2, repeats_value_avx2);
compiled_for!(
    "avx512f,avx512bw,avx512vl,avx512vbmi,popcnt,bmi1,bmi2",
    open_avx512,
    find_value_pair_avx512,
    repeats_avx512,
    repeats_value_avx512
);

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn find_code_pair_avx2(a: &[u8], b: &[u8], wanted: u8) -> Option<usize> {
    find_pair(a, b, wanted)
}

/// Number of pairs whose XORs a search holds in registers.
pub(super) const PAIRS_PER_STEP: usize = 256;

/// Calls `is_done` with [`PAIRS_PER_STEP`] pairs of two equally long slices at a time, from the last to the first,
/// until it returns true. The slices have at least that length; if it is no multiple of [`PAIRS_PER_STEP`], the last
/// call repeats some pairs.
#[inline(always)]
pub(super) fn for_each_step(
    a: &[u16],
    b: &[u16],
    mut is_done: impl FnMut(&[u16; PAIRS_PER_STEP], &[u16; PAIRS_PER_STEP]) -> bool,
) {
    let (mut a, mut b) = (a, b);
    while let (Some((before_a, last_a)), Some((_, last_b))) = (a.split_last_chunk(), b.split_last_chunk()) {
        if is_done(last_a, last_b) || before_a.is_empty() {
            return;
        }
        // The last step begins with pair 0, so it may compare some pairs again.
        let end = before_a.len().max(PAIRS_PER_STEP);
        (a, b) = (&a[..end], &b[..end]);
    }
}

/// [`Kernel::remove_pair_values`](super::Kernel::remove_pair_values) for [`PAIRS_PER_STEP`] pairs or more.
#[inline(always)]
pub(super) fn remove_pair_values(a: &[u16], b: &[u16], wanted: &mut Vec<u16>) {
    for_each_step(a, b, |a, b| {
        let options: [u16; PAIRS_PER_STEP] = std::array::from_fn(|k| a[k] ^ b[k]);
        wanted.retain(|value| options.iter().fold(true, |none, option| none & (option != value)));
        wanted.is_empty()
    });
}

/// The number of steps of [`PAIRS_PER_STEP`] pairs, numbered as in
/// [`Kernel::find_mirrored_pair`](super::Kernel::find_mirrored_pair), before the first one with a wanted XOR. Pairs
/// after the last whole step are not compared. `a` and `b` have the same length.
#[inline(always)]
pub(super) fn steps_without(a: &[u16], b: &[u16], wanted: &[u16]) -> usize {
    steps_before(a, b, |a, b| {
        let options: [u16; PAIRS_PER_STEP] = std::array::from_fn(|k| a[k] ^ b[PAIRS_PER_STEP - 1 - k]);
        wanted.iter().any(|value| options.iter().fold(false, |any, option| any | (option == value)))
    })
}

/// The number of steps of [`PAIRS_PER_STEP`] pairs, those of `b` taken from its end, before the first one for which
/// `is_last` returns true.
#[inline(always)]
pub(super) fn steps_before(
    a: &[u16],
    b: &[u16],
    is_last: impl Fn(&[u16; PAIRS_PER_STEP], &[u16; PAIRS_PER_STEP]) -> bool,
) -> usize {
    let steps = a.as_chunks().0.iter().zip(b.as_rchunks().1.iter().rev());
    for (number, (a, b)) in steps.clone().enumerate() {
        if is_last(a, b) {
            return number;
        }
    }
    steps.len()
}

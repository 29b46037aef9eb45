//! The recurrence kernel ([`Kernel::recurrence`](super::Kernel::recurrence)): short lists of lookups, near and far
//! together, position by position.
//!
//! Games with few lookups (.106, Kayles) need neither an order of the lookups nor candidates. The options of n are
//! entered in one set of bits, and the least code is the number of its trailing ones. The set covers the codes below
//! the *range* of the list, one of [`RANGES`]. Options at or above the range do not matter while a lower code is left.
//! Where no code is left the kernel stops, and the caller computes that value by a method that covers all codes.
//!
//! Each value depends on the values just before it. So the kernel evaluates lookups for several positions at once where
//! they read only values before all of these, and the other lookups position by position.
//! The general version is plain Rust, which the compiler vectorises. With AVX-512 and the least range
//! (`avx512/recurrence.rs`),
//!
//! - 16 values are one register of sets. Lookups with offsets below 64 read from a register that holds the last 64
//!   codes, because a load across two fresh stores would wait for both;
//! - once the code of lane j is known, XOR with a table of the near lookups shifted by j gives the options of all later
//!   lanes ("pushing"). As many lanes become known together as the nearest lookup reaches back (6 in .106).
//!
//! Invariant: a value is written once, after all values before it.

use super::{LANES, Probe};
use std::ops::BitOrAssign;

/// The ranges of the recurrence kernel: it covers the codes below the range. A larger range costs more time.
pub(crate) const RANGES: [u8; 2] = [LEAST_RANGE, 64];

/// The least of [`RANGES`].
pub(super) const LEAST_RANGE: u8 = 32;

/// Number of values that the AVX-512 version for the least range computes at once.
pub(super) const VALUES_AT_ONCE: usize = 16;

/// The lookups of [`Kernel::recurrence`](super::Kernel::recurrence).
#[derive(Clone, Debug, Hash)]
pub(crate) struct Recurrence {
    /// The lookups, ascending by offset, without duplicates.
    pub(super) probes: Vec<Probe>,
    /// Number of codes covered, those below it: one of [`RANGES`].
    pub(super) range: u8,
    /// The codes of `probes`, as wide as a set of the least range, so that one instruction loads, broadcasts and XORs a
    /// code.
    pub(super) codes: Vec<u32>,
    /// Number of lookups with an offset below [`VALUES_AT_ONCE`].
    pub(super) in_group: usize,
    /// Number of lookups with an offset below [`LANES`].
    pub(super) in_register: usize,
    /// For each lookup with an offset below [`VALUES_AT_ONCE`], entry `VALUES_AT_ONCE + offset` of some row is its
    /// code; the other entries give no option.
    pub(super) rows: Vec<[u32; 2 * VALUES_AT_ONCE]>,
}

impl Recurrence {
    /// Creates the list from lookups in any order.
    ///
    /// # Panics
    /// If the range is none of [`RANGES`].
    #[must_use]
    pub(crate) fn new(mut probes: Vec<Probe>, range: u8) -> Recurrence {
        assert!(RANGES.contains(&range), "the range must be one of RANGES");
        probes.sort_unstable_by_key(|probe| (probe.offset, probe.code()));
        probes.dedup();
        let below = |offset| probes.partition_point(|probe| probe.offset < offset);
        let in_group = below(VALUES_AT_ONCE);
        let in_register = below(LANES);
        let mut rows: Vec<[u32; 2 * VALUES_AT_ONCE]> = Vec::new();
        for probe in &probes[..in_group] {
            let entry = VALUES_AT_ONCE + probe.offset;
            let row = rows.iter().position(|row| row[entry] == u32::MAX).unwrap_or_else(|| {
                rows.push([u32::MAX; 2 * VALUES_AT_ONCE]);
                rows.len() - 1
            });
            rows[row][entry] = u32::from(probe.code());
        }
        let codes = probes.iter().map(|probe| u32::from(probe.code())).collect();
        Recurrence { probes, range, codes, in_group, in_register, rows }
    }

    /// The number of different lookups.
    pub(crate) fn len(&self) -> usize {
        self.probes.len()
    }

    /// Whether all lookups of positions from `at` on read bytes before the position and inside the window.
    pub(super) fn is_inside(&self, at: usize) -> bool {
        at >= LANES
            && self.probes.first().is_none_or(|p| p.offset >= 1)
            && self.probes.last().is_none_or(|p| p.offset <= at)
    }
}

/// A set of codes: bit c tells whether it contains the code c.
trait CodeSet: Copy + Eq + BitOrAssign {
    /// The set without codes.
    const EMPTY: Self;
    /// The set of all codes below the number of bits.
    const FULL: Self;

    /// The set of one code; empty if the set has no bit for the code.
    fn one(code: u8) -> Self;

    /// [`CodeSet::one`] from a table, which is faster where sets are computed one after the other.
    fn one_from_table(code: u8) -> Self;

    /// The least code that the set does not contain. The set must not be [`CodeSet::FULL`].
    fn least_missing(self) -> u8;
}

/// Implements [`CodeSet`] for an unsigned integer of at most 64 bits.
macro_rules! code_set {
    ($bits:ty) => {
        impl CodeSet for $bits {
            const EMPTY: $bits = 0;
            const FULL: $bits = <$bits>::MAX;

            #[inline(always)]
            fn one(code: u8) -> $bits {
                <$bits>::checked_shl(1, u32::from(code)).unwrap_or(0)
            }

            #[inline(always)]
            fn one_from_table(code: u8) -> $bits {
                static SETS: [$bits; 256] = {
                    let mut sets = [0; 256];
                    let (mut code, mut set): (usize, $bits) = (0, 1);
                    while set != 0 {
                        sets[code] = set;
                        set <<= 1;
                        code += 1;
                    }
                    sets
                };
                SETS[usize::from(code)]
            }

            #[inline(always)]
            fn least_missing(self) -> u8 {
                self.trailing_ones().to_le_bytes()[0]
            }
        }
    };
}

code_set!(u32);
code_set!(u64);

/// The version in plain Rust: lookups with an offset of at least `BLOCK` are loops over `BLOCK` values, which the
/// compiler vectorises; the others are evaluated position by position.
#[inline(always)]
fn blocks<Set: CodeSet, const BLOCK: usize>(window: &mut [u8], at: usize, to: usize, recurrence: &Recurrence) -> usize {
    let split = recurrence.probes.partition_point(|probe| probe.offset < BLOCK);
    let (in_block, before_block) = recurrence.probes.split_at(split);
    for from in (at..to).step_by(BLOCK) {
        let mut sets = [Set::EMPTY; BLOCK];
        let count = BLOCK.min(to - from);
        if count == BLOCK {
            for probe in before_block {
                let bytes: &[u8; BLOCK] = window[from - probe.offset..][..BLOCK].try_into().expect("a block");
                for (set, byte) in sets.iter_mut().zip(bytes) {
                    *set |= Set::one(byte ^ probe.code());
                }
            }
        }
        let probes = if count == BLOCK { in_block } else { &recurrence.probes };
        for (n, mut set) in (from..to).zip(sets) {
            for probe in probes {
                set |= Set::one_from_table(window[n - probe.offset] ^ probe.code());
            }
            if set == Set::FULL {
                return n;
            }
            window[n] = set.least_missing();
        }
    }
    to
}

/// Calls [`blocks`] with sets for the range of the lookups, and with blocks of the given length.
#[inline(always)]
fn blocks_of_range<const BLOCK: usize>(window: &mut [u8], at: usize, to: usize, recurrence: &Recurrence) -> usize {
    match recurrence.range {
        LEAST_RANGE => blocks::<u32, BLOCK>(window, at, to, recurrence),
        _ => blocks::<u64, BLOCK>(window, at, to, recurrence),
    }
}

pub(super) fn scalar(window: &mut [u8], at: usize, to: usize, recurrence: &Recurrence) -> usize {
    blocks_of_range::<32>(window, at, to, recurrence)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn avx2(window: &mut [u8], at: usize, to: usize, recurrence: &Recurrence) -> usize {
    blocks_of_range::<8>(window, at, to, recurrence)
}

/// For the larger range. `avx512/recurrence.rs` has a faster version for the least one.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vpopcntdq,bmi1,bmi2")]
pub(super) fn avx512(window: &mut [u8], at: usize, to: usize, recurrence: &Recurrence) -> usize {
    blocks_of_range::<16>(window, at, to, recurrence)
}

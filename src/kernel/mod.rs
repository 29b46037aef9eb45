//! The mex kernels: for 64 consecutive n at once, the least codes that no lookup hits.
//!
//! A [`Kernel`] is one implementation of the same jobs, for one instruction set: `scalar` (portable Rust, the reference
//! for the others), `avx2` and `avx512`. All kernels give the same results and differ only in speed.
//!
//! A kernel sees only numbers and offsets: bytes, or values of 16 bits. [`crate::solver`] decides what the bytes
//! mean: most are the order-preserving codes of common values. Each job has one contract, one signature and one test
//! (`contract_tests.rs`) that all kernels share.
//!
//! - `jobs.rs` states the terms and the contracts, checks the arguments and calls the implementation.
//! - `probes.rs`, `near_probes.rs`, `planes.rs` and `wide_part.rs` hold the data between the jobs.
//! - `scalar.rs`, `avx2.rs` with `avx2/`, and `avx512/` are the implementations for one instruction set each.
//! - `portable.rs` holds the jobs in plain Rust that the compiler vectorises for each instruction set; `near.rs` holds
//!   the method of the vector kernels for near lookups, and `recurrence.rs` the job for short lists of lookups.
//! - `wide.rs` and `pair_tile.rs` state the contracts of the jobs on values of any size; `value_set.rs` is a set of
//!   values.
//! - `bench.rs` passes the jobs on to the benchmarks.
//!
//! Invariant: a [`Kernel`] value comes from [`Kernel::available`] (or is the portable one), so holding one proves that
//! this processor supports it.

#![allow(unsafe_code)] // vector instructions, and calls of functions compiled for them

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod bench;
mod jobs;
mod near;
mod near_probes;
mod pair_tile;
mod planes;
mod portable;
mod probes;
mod recurrence;
mod scalar;
mod value_set;
mod wide;
mod wide_part;

use crate::error::{Error, Result};
use jobs::PAIRS_BETWEEN_TESTS;
pub(crate) use jobs::{MAX_CLEARED_CODES, NearJob, REPEATS_VALUES};
pub(crate) use near_probes::NearProbes;
pub(crate) use pair_tile::{PAGE_WORDS, Page, PairTile, TILE_PAIRS};
pub(crate) use planes::{BEYOND, BitPlanes, CANDIDATES, CODES, KEEP, LANES, Lanes, MOST_CODES, NONE, Stage};
pub(crate) use probes::{Probe, Probes};
pub(crate) use recurrence::{RANGES, Recurrence};
use std::fmt;
use std::str::FromStr;
pub(crate) use value_set::ValueSet;
pub(crate) use wide::MARK_LANES;
pub(crate) use wide_part::{WIDE_LANES, WIDE_ROWS, WidePart, WideParts, WideRow};

/// Lets the processor begin to load the cache line in which an item begins, while it executes other instructions. Does
/// nothing where the processor has no such instruction.
#[inline]
pub(crate) fn prefetch<T>(item: &T) {
    // SAFETY: a prefetch reads no memory that the program can observe, and the address is that of a reference.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = item;
}

/// A kernel that this processor supports.
///
/// ```
/// use grundy::kernel::Kernel;
/// let kernel = Kernel::best();
/// assert_eq!(kernel.name().parse::<Kernel>()?, kernel);
/// # Ok::<(), grundy::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kernel(Platform);

/// The instruction set of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Platform {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Kernel {
    /// The portable kernel, the reference for the others.
    #[must_use]
    pub fn scalar() -> Kernel {
        Kernel(Platform::Scalar)
    }

    /// The kernels that this processor supports, fastest first. The last one is [`Kernel::scalar`].
    #[must_use]
    pub fn available() -> Vec<Kernel> {
        let mut kernels = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if avx512::is_available() {
                kernels.push(Kernel(Platform::Avx512));
            }
            if avx2::is_available() {
                kernels.push(Kernel(Platform::Avx2));
            }
        }
        kernels.push(Kernel::scalar());
        kernels
    }

    /// The names of all kernels in this build, fastest first, whether or not this processor supports them.
    #[must_use]
    pub fn compiled() -> &'static [&'static str] {
        if cfg!(target_arch = "x86_64") { &["avx512", "avx2", "scalar"] } else { &["scalar"] }
    }

    /// The fastest kernel that this processor supports.
    #[must_use]
    pub fn best() -> Kernel {
        Kernel::available()[0]
    }

    /// The kernel with which a result of this one is checked: the fastest other kernel that this processor supports. If
    /// it supports no other, this kernel.
    #[must_use]
    pub fn other(self) -> Kernel {
        Kernel::available().into_iter().find(|&other| other != self).unwrap_or(self)
    }

    /// The name of the kernel, as the option `--kernel` takes it: `scalar`, `avx2` or `avx512`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Platform::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Platform::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Platform::Avx512 => "avx512",
        }
    }
}

impl fmt::Display for Kernel {
    /// Writes [`Kernel::name`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kernel {
    type Err = Error;

    /// Reads [`Kernel::name`].
    ///
    /// # Errors
    /// [`Error::Kernel`] if no kernel that this processor supports has this name.
    fn from_str(name: &str) -> Result<Kernel> {
        let named = Kernel::available().into_iter().find(|kernel| kernel.name() == name);
        named.ok_or_else(|| Error::Kernel { name: name.to_owned() })
    }
}

#[cfg(test)]
mod contract_tests;

//! The mex kernels: for 64 consecutive n at once, the least values that no lookup hits.
//!
//! Each job has one contract, one signature, one reference (`scalar`) and one test that all kernels share. A kernel
//! sees only bytes and offsets. [`crate::solver`] decides what the bytes mean (the order-preserving code of common
//! values).
//!
//! A lookup ([`Probe`]) represents one part of a split whose value is known: for lane i it gives the option
//! `window[at + i - offset] ^ code`, where `at` is the index of lane 0 in the window. A lookup hits a code when this
//! option is the code. The jobs are:
//!
//! - [`Kernel::mark`]: enters the options of some lookups in [`BitPlanes`], one bit per code and lane. Both streams use
//!   it: the candidates mark the lookups of rare parts, the witnesses those of common parts.
//! - [`Kernel::refine`]: checks the least open codes, and a few codes behind those marked ([`BEYOND`]), against the
//!   other lookups, in stages that keep fewer and fewer of them ([`Stage`]). Marking a lookup costs a table access,
//!   checking it costs two instructions per candidate, so a good order of the lookups (many hits first) shortens both:
//!   see `solver::lookup_order`.
//! - [`Kernel::near`]: evaluates the lookups with offsets below 64, lane by lane, because each lane needs the values
//!   just before it.
//! - [`Kernel::open`], [`Kernel::clear_hits`]: the codes below a bound that are still open after marking, without the
//!   least of them that some more lookups hit. The witness search uses them.
//! - [`Kernel::find_each`]: searches witnesses for all targets of one n. [`Kernel::find`] and [`Kernel::find_value`]
//!   search one value.
//! - [`Kernel::repeats`], [`Kernel::repeats_value`]: whether a finished value is an option of its own n. The check of a
//!   table uses them.
//! - [`Kernel::chain`]: evaluates all lookups, near and far, for any number of values, where the lookups are few: see
//!   `recurrence`.
//!
//! Invariant: a [`Kernel`] value comes from [`Kernel::available`] (or is the portable one), so holding one proves that
//! this processor supports it.

#![allow(unsafe_code)] // vector instructions, and calls of functions compiled for them

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod jobs;
mod planes;
mod portable;
mod probes;
mod recurrence;
mod scalar;

pub use jobs::{HEAPS, MAX_CLEAR_PROBES, PAIRS_BETWEEN_TESTS};
pub use planes::{BEYOND, BitPlanes, CANDIDATES, CODES, KEEP, LANES, Lanes, MOST_CODES, NONE, Stage};
pub use probes::{Probe, Probes};
pub use recurrence::{RECURRENCE_CODES, Recurrence};
use std::fmt;

/// A kernel that this processor supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel(Platform);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

    /// The kernels that this processor supports, fastest first.
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

    /// The fastest kernel of this processor.
    #[must_use]
    pub fn best() -> Kernel {
        Kernel::available()[0]
    }

    /// The kernel of this name, if this processor supports it.
    #[must_use]
    pub fn named(name: &str) -> Option<Kernel> {
        Kernel::available().into_iter().find(|kernel| kernel.name() == name)
    }

    /// The name of the kernel, as the option `--kernel` takes it.
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
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod contract_tests;

#![doc = include_str!("README.md")]

mod fault;

pub mod error;
pub mod theory;

pub mod kernel;

pub mod solver;

pub mod storage;

pub mod table;

pub mod checkpoint;

pub mod run;

pub mod verify;

pub mod period;

pub mod survey;

pub mod games;

pub mod tune;

pub mod selftest;

#[doc(hidden)]
pub mod bench_support;

pub use error::{Error, Result};

/// The name and version of this program, the commit that it was built from, if known, and the target. Commit records,
/// certificates and `grundy --version` contain this text. The suffix `+changes` of the commit means that source files
/// differed from the commit.
///
/// ```
/// // For example, "grundy 0.1.0 (0123456789ab, x86_64-unknown-linux-gnu)".
/// assert!(grundy::PROGRAM.starts_with(concat!("grundy ", env!("CARGO_PKG_VERSION"), " (")));
/// ```
pub const PROGRAM: &str = env!("GRUNDY_PROGRAM");

#[cfg(test)]
#[path = "../tests/support/hazard.rs"]
mod support;

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

pub use error::{Error, Result};

/// The name and version of this program, with the commit that it was built from, if that is known, and the target: as
/// records, certificates and `grundy --version` state it. `+changes` behind the commit says that files the program is built
/// from differed from it.
///
/// ```
/// // Such as "grundy 0.1.0 (0123456789ab, x86_64-unknown-linux-gnu)".
/// assert!(grundy::PROGRAM.starts_with(concat!("grundy ", env!("CARGO_PKG_VERSION"), " (")));
/// ```
pub const PROGRAM: &str = env!("GRUNDY_PROGRAM");

#[cfg(test)]
#[path = "../tests/support/hazard.rs"]
mod support;

#![doc = include_str!("README.md")]

mod fault;

pub mod error;
pub mod rule;

pub mod nimber;

pub mod definition;
pub mod mex;

pub mod sparse;

pub mod storage;

pub mod digest;
pub mod journal;
pub mod snapshot;
pub mod table;

mod ledger;
mod places;

pub mod engine;

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

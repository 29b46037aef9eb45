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

/// The program and its version.
pub const PROGRAM: &str = concat!("grundy ", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
#[path = "../tests/support/hazard.rs"]
mod support;

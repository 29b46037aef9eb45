#![doc = include_str!("README.md")]

mod fault;

pub mod error;
pub mod theory;

pub mod kernel;

pub mod solver;

// Public for tests and benchmarks alone; users name directories by paths.
#[doc(hidden)]
pub mod storage;

pub mod table;

pub mod find;

pub mod checkpoint;

pub mod run;

pub mod verify;

pub mod period;

pub mod survey;

pub mod units;

pub mod publish;

pub mod games;

pub mod tune;

pub mod selftest;

#[doc(hidden)]
pub mod bench_support;

pub use error::{Error, Result};
pub use kernel::Kernel;
pub use run::{Observer, Outcome, Progress, Run, RunReader};
pub use solver::{Method, Solver, ValueStream};
pub use theory::rule::Rule;

/// A nim-value G(n). A computation that meets a value above 65535 ends with [`Error::ValueTooLarge`].
pub type Value = u16;

/// Computes the first values of a game, G(0) to G(`count` - 1), in memory, with the best method of this machine.
///
/// A value takes two bytes. [`ValueStream`] computes values without holding all of them, and [`Run`] stores them in
/// files. [`solver::values`] takes any method.
///
/// # Errors
/// [`Error::ValueTooLarge`] at the first value above 65535.
///
/// ```
/// let grundy = "grundy".parse()?;
/// assert_eq!(grundy::values(&grundy, 17)?, [0, 0, 0, 1, 0, 2, 1, 0, 2, 1, 0, 2, 1, 3, 2, 1, 3]);
/// # Ok::<(), grundy::Error>(())
/// ```
pub fn values(rule: &Rule, count: usize) -> Result<Vec<Value>> {
    solver::values(rule, Method::default(), count)
}

/// The name and version of this program, the commit that it was built from, if known, and the target. Commit records,
/// certificates and `grundy --version` contain this text. The suffix `+changes` of the commit means that source files
/// differed from the commit.
///
/// ```
/// // For example, "grundy 0.1.0 (0123456789ab, x86_64-unknown-linux-gnu)".
/// assert!(grundy::PROGRAM.starts_with(concat!("grundy ", env!("CARGO_PKG_VERSION"), " (")));
/// ```
pub const PROGRAM: &str = env!("GRUNDY_PROGRAM");

/// The name of the library in the files of `tests/` that the unit tests include.
#[cfg(test)]
extern crate self as grundy;

/// What unit tests and test programs share.
#[cfg(test)]
#[path = "../tests/support"]
mod support {
    mod hazard;
    pub(crate) mod simulated;

    pub(crate) use hazard::{Random, Tally, cases};

    /// Whether the runs of `tests/simulated` discard values: they do with the small segments of unit tests.
    pub(crate) const FREES: bool = true;
}

/// The tests of `tests/simulated` as unit tests.
#[cfg(test)]
#[path = "../tests/simulated"]
mod simulated {
    mod histories;
    mod storage;
}

//! Checks a table independently of the run that wrote it, by range; needs no lock and no write permission, and uses
//! all cores.
//!
//! [`digest()`] checks that the files agree with the journal: every record has the right hash and follows the one
//! before, the headers are byte for byte those that this program writes, escapes and table agree, every commit's
//! digest holds, and rare positions and largest value, counted again, are those of the last record. It finds any
//! altered byte of table, escapes or journal.
//!
//! The other levels check that each value is right, given those before. [`exclusion()`] checks that no value is that
//! of an option with one rare part, and that rare positions have the value of the definition; it finds every value
//! that is too low and many that are too high ([`mod@exclusion`] states which). [`recompute()`] computes each value
//! again by the solver, with another kernel than the one that computed it; it finds every wrong value. [`definition()`]
//! computes a sample of the values by the mex over all pairs.
//!
//! Discarded values can no longer be checked. Without a range, the retained values are checked, and the report names
//! the rest; a range that needs discarded values is refused. The head is hashed from the start, and the last values
//! from the digest at the end of the discarded ones. For the discarded values themselves the counts of the discard
//! summary are used, which the journal covers. Of the escapes of discarded values only the order is checked. Values
//! whose options lie among discarded ones are not checked either.
//!
//! A range of the digest starts at a segment boundary, where a record states the digest of all values before; so
//! ranges can be checked on different machines. The other levels also read the values before a range, to find the
//! rare positions.
//!
//! Exclusion, recomputing and definition each have one function of a sequence and its rule, and one of a directory,
//! which calls it.
//!
//! ```
//! use grundy::{Rule, Run, verify};
//!
//! # let home = tempfile::tempdir()?;
//! # let dir = &home.path().join("kayles");
//! let kayles: Rule = "kayles".parse()?;
//! Run::builder(&kayles, dir).to(5000).run()?;
//!
//! assert_eq!(verify::digest(dir, None, |_, _| {})?.checked, 5000);
//! assert_eq!(verify::exclusion(dir, None, |_, _| {})?.checked, 5000);
//! assert_eq!(verify::recompute(dir, Some(1000..3000), |_, _| {})?.checked, 2000);
//! verify::definition(dir, None, 20, 1, |done, all| assert!(done <= all))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod checked_run;
mod definition;
mod digest;
mod directory;
pub mod exclusion;
pub mod recompute;
mod report;
mod target;

pub use definition::sample;
pub use digest::{digest, verified};
pub use directory::{definition, exclusion, recompute};
pub(crate) use directory::{exclusion_space, sampled};
pub use report::Report;
pub use target::Target;

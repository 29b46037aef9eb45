//! What others need to cite a run and to check it: a [`Manifest`], and the comparison of two of them.
//!
//! A manifest states the game, the number of values, digests at regular distances, how the values were computed, which
//! checks they passed, and the SHA-256 of every published file. It is made from the journal, which states the digest
//! at every segment boundary, also of values that the run has discarded.
//!
//! A succinct proof of nim-values is not known. What takes its place is the digest, computed again by another kernel on
//! another machine: [`Comparison::confirmed`]. Because the digests form a chain, [`compare`] also finds the first
//! segment in which two runs differ.
//!
//! ```
//! use grundy::publish::{Manifest, compare};
//! use grundy::{Run, RunReader};
//!
//! # let home = tempfile::tempdir()?;
//! # let dirs = [home.path().join("one"), home.path().join("two")];
//! let kayles = "kayles".parse()?;
//! Run::builder(&kayles, &dirs[0]).to(5000).run()?;
//! Run::builder(&kayles, &dirs[1]).to(4000).run()?;
//! let [one, two] = dirs.map(|dir| RunReader::open(&dir).map(|run| Manifest::of(&run)));
//! let comparison = compare(&one?, &two?).expect("both are of Kayles");
//! assert_eq!((comparison.differs, comparison.confirmed), (None, 0)); // both on this machine
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod comparison;
mod confirmations;
mod crate_metadata;
mod manifest;

pub use comparison::{Comparison, Difference, Obstacle, compare};
pub use confirmations::{confirmations, record};
pub use crate_metadata::{Publication, ro_crate};
pub use manifest::{Computed, Confirmation, FileEntry, Manifest, Segment, sha256};

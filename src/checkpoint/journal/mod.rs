//! The journal: the commit records, which alone define how much of the other files of a run is valid.
//!
//! `journal.jsonl` is append only. Every line has exactly 4096 bytes: a JSON object, spaces and a newline. Every record
//! contains two hashes: the BLAKE3 of its own 4096 bytes, computed with spaces in the place of the 64 digits of that
//! field (`blake3`, always the last key), and the BLAKE3 of the previous record. A reader therefore detects every line
//! that is lost, changed or exchanged, except at the end: a journal that lost its last lines equals that of an earlier
//! moment, and a changed last line looks like one that a kill tore.
//!
//! What follows the last good record is a torn tail, which the next run drops, or damage. docs/FORMAT.md ("Torn tail
//! and damage") states the rule, and [`read()`] applies it. A run stops at damage, unless it may roll back
//! (`Journal::open_to_roll_back`): then it copies everything from the damage on to a separate file, and replaces the
//! journal by one without the damaged records. If the records after the damage cannot follow those before it, the new
//! journal ends before the damage.
//!
//! A record whose event is `rollback` returns the run to an equal or smaller count. Earlier records with larger counts
//! no longer describe the table.
//!
//! A run that discards values lists in `kept` the ranges that it retains; only its records have the fields `keep` and
//! `snapshot`. The discarded values are, or become, holes in the table, which read as zeros, so they must not be read
//! ([`Record::discarded`]).
//!
//! The writer locks the journal, and before each record it checks that the path still leads to the locked file.

mod read;
mod record;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use read::has_changed_since;
pub use read::{Contents, StatedGame, last_records, read};
pub use record::{Attached, Checks, CommitPoint, Event, Origin, Record};
pub(crate) use record::{Check, kept};
pub(crate) use write::Journal;

/// The version of the files of a run directory.
pub const FORMAT: u32 = 2;

/// Length of a record, in bytes.
pub const RECORD: usize = 4096;

const RECORD_BYTES: u64 = RECORD as u64;

/// Maximum length of a torn tail, in bytes. Each record is durable before the next one is written, so a killed process
/// leaves less than one record; the margin allows for file systems that extend a file before its data arrives.
pub const MAX_TORN_TAIL: u64 = 1 << 20;

/// The name in the place of the kernel where the record that stated it was lost.
pub(crate) const UNKNOWN_KERNEL: &str = "unknown";

/// The name of the journal in a run directory.
pub const NAME: &str = "journal.jsonl";

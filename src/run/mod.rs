//! The run: computes values, proves them, and commits them to a directory.
//!
//! `checkpoint::commit` states the order of a commit, and docs/DURABILITY.md what is guaranteed of committed values.
//! The first commit comes 0.7 s after the first block; each later interval is twice as long, up to 5 s. A commit also
//! comes at each end of a segment of the digest (2^24 values), and at the end of the run. A commit that is due by the
//! clock is put off while the previous one is being written; any other commit waits for it. If a commit fails, the
//! run ends when the block in computation is complete.
//!
//! `resume` reads the journal, hashes the whole retained table, compares it with every record that still describes
//! it, and counts rare positions and the largest value again; for discarded values it takes the counts from their
//! summary. It recomputes values that disagree with the journal, and restores them if they then agree; the damaged
//! bytes are quarantined. Otherwise the run ends with an error. With `rollback` it recomputes values only if the
//! journal is damaged, and otherwise returns to the last record that agrees; it writes the record of the rollback
//! before it overwrites a value. docs/DURABILITY.md has the table of states and actions, and states which damaged
//! bytes are preserved.
//!
//! During a run, `solver` compares its memory before every commit, and `solver::audit` and `spot_checks` compute some
//! values twice. If a check fails, the run is opened again and continues from the last commit ([`Run::run`]).
//!
//! Invariant: while a process writes values, the last durable record is not a `close` record, because that record
//! states the final lengths of the files.

mod admission;
mod builder;
mod commit_clock;
mod context;
mod create;
mod main_loop;
mod observer;
mod options;
mod prepare;
mod reader;
mod rehash;
mod repair;
mod resume;
mod retry;
pub(crate) mod spot_checks;
#[cfg(test)]
mod tests;

pub use builder::Run;
pub use observer::{Observer, Opening, Outcome, Progress, ProofSummary};
pub use options::Options;
#[doc(hidden)]
pub use options::RunPolicy;
pub use reader::RunReader;
pub(crate) use reader::space_of;

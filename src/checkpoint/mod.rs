//! Checkpoints of a run: what a commit record says, and the order in which a commit writes.

pub(crate) mod commit;
pub mod journal;
pub mod summary;

//! Checkpoints of a run: the commit records, the summary and the counts of discarded values, and the order in which a
//! commit writes.

pub(crate) mod commit;
pub(crate) mod counts;
pub mod journal;
pub(crate) mod machine;
pub mod summary;
#[doc(hidden)]
pub mod testing;
pub(crate) mod writer;

//! Runs on a simulated disk: power cuts, I/O errors and random histories. A program of its own, because
//! `scripts/test` builds it twice: with the feature `small-segments` the runs discard values.

mod histories;
mod storage;
#[path = "../support/mod.rs"]
mod support;

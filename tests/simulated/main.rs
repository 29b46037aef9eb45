//! Runs on a simulated disk: power cuts, I/O errors and random histories. `src/lib.rs` includes the same tests as unit
//! tests, whose runs discard values.

mod histories;
mod storage;
#[path = "../support/mod.rs"]
mod support;

//! Runs on a simulated disk: power cuts, I/O errors and random histories. `scripts/test` builds this program once more
//! with the feature `small-segments`: then the runs discard values.

mod histories;
mod storage;
#[path = "../support/mod.rs"]
mod support;

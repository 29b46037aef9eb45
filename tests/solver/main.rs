//! The values of the solver against the definition, published values and second algorithms, through the library
//! alone: these tests build without the command line, so that `scripts/sanitize` can run them.

mod agreement;
mod golden;
mod hazards;
#[path = "../support/mod.rs"]
mod support;

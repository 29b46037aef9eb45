//! The games and their theory, in the library and on the command line: names, positions, boards, graphs, codes, periods
//! and certificates.

mod boards;
mod certificates;
mod codes;
mod games;
mod graphs;
mod names;
mod period;
#[path = "../support/mod.rs"]
mod support;

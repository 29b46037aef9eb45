//! The mathematics that everything else relies on: rules, nim-values, the definition, sparse spaces.
//!
//! Nothing here is fast, and nothing here reads or writes a file.

pub mod definition;
pub mod nimber;
pub mod rule;
pub mod sparse_space;

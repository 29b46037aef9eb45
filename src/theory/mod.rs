//! The mathematics on which the other modules rely: rules, nim-values, the definition, sparse spaces.
//!
//! These modules prefer plain code to fast code, and read and write no files.

pub mod definition;
pub mod nimber;
pub mod rule;
pub mod sparse_space;

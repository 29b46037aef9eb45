//! The mathematics on which the other modules rely: rules and their names, nim-values, the definition, sparse spaces.
//!
//! These modules prefer plain code to fast code, and read and write no files.

pub mod catalogue;
pub mod definition;
mod game_code;
pub mod names;
pub mod nimber;
pub mod oeis;
mod parsing;
pub(crate) mod random;
pub mod rule;
pub mod sparse_space;
pub mod standard_form;
pub mod stats;
pub mod words;

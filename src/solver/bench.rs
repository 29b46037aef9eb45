//! What the benchmarks call of the streams and of the comparison of all pairs.

pub use super::candidates::bench::*;
pub use super::exhaustive::bench::*;
pub use super::witnesses::bench::*;

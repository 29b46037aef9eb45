//! Games that are not heaps of one rule: their positions are searched, or a theorem speaks of them.
//!
//! [`finite`] has what the searched ones share: a trait (options of a position, its independent components) and one
//! memoised solver. The others are a game a file; [`play`] and [`rectangle`] look at values of heaps besides.

pub mod edges;
pub mod finite;
pub mod graph;
pub mod no_factor;
pub mod play;
pub mod rectangle;
pub mod remove_edge;
pub mod remove_square;
pub mod rows_columns;
pub mod shape;
pub mod sum;

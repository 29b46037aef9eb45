//! Games other than single heaps of one rule. Their values come from a search of positions or from a theorem.
//!
//! [`finite`] has what the searches share: a trait (options of a position, its independent components) and one
//! memoised solver. [`sum`] has the theorem on sums; [`edges`] and [`shape`] read graphs and shapes. Each other file
//! has one game; [`play`] and [`rectangle`] also use values of heaps.

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

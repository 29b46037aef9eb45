//! Games beyond the single heap: sums that are played, and the finite games of the literature.

pub mod play;
pub mod rectangle;

//! How far the games of a survey are examined.

use std::time::Duration;

/// How far the games of a survey are examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// Number of values of each game.
    pub(super) to: u64,
    /// Maximum computing time of a game, as estimated before each step.
    pub(super) time_limit: Option<Duration>,
}

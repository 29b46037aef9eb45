//! Decides when a run commits.

use std::time::{Duration, Instant};

/// Maximum time between two commits.
const COMMIT_EVERY: Duration = Duration::from_secs(5);

/// Time from the first block of a process to its first commit. Each later interval is twice as long, up to
/// [`COMMIT_EVERY`], so that a process which is killed after a few seconds has committed most of what it computed.
const FIRST_COMMIT: Duration = Duration::from_millis(700);

/// Decides when a commit is due.
pub(super) struct CommitClock {
    /// When the next commit is due; `None` before the first block.
    next: Option<Instant>,
    interval: Duration,
}

impl CommitClock {
    pub(super) fn new() -> CommitClock {
        CommitClock { next: None, interval: FIRST_COMMIT }
    }

    /// Receives the time at which a block was computed. The clock starts with the first block, which can take longer
    /// than the others: an earlier commit would hold almost no values.
    pub(super) fn block_computed(&mut self, now: Instant) {
        self.next.get_or_insert(now + self.interval);
    }

    /// Receives the time after values were handed to the writer.
    pub(super) fn commit_handed_over(&mut self, now: Instant) {
        self.interval = (2 * self.interval).min(COMMIT_EVERY);
        self.next = Some(now + self.interval);
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.next.is_some_and(|next| now >= next)
    }
}

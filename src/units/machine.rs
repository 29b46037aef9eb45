//! The name of the host that a result states, and the clock of its times.

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Maximum length of the name of a host, in characters.
const LONGEST: usize = 200;

/// Returns the name of this host, as the system states it.
pub(super) fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().chars().filter(|c| *c == ' ' || c.is_ascii_graphic()).take(LONGEST).collect()
}

/// Times of a unit, in seconds, over all processes that worked on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spent {
    /// Elapsed time.
    pub wall: f64,
    /// Processor time of all threads.
    pub cpu: f64,
}

/// Returns the processor time of this process so far, in seconds.
fn process_time() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    rounded(Duration::try_from(time).unwrap_or_default().as_secs_f64())
}

/// Rounds a time to milliseconds.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

/// Measures the times of a unit.
pub(super) struct Clock {
    begun: Instant,
    /// The processor time of this process at the beginning.
    cpu: f64,
    /// The times of earlier processes.
    before: Spent,
}

impl Clock {
    /// A clock that starts now.
    pub(super) fn start() -> Clock {
        Clock { begun: Instant::now(), cpu: process_time(), before: Spent::default() }
    }

    /// The same clock, which also counts the times of earlier processes.
    pub(super) fn after(self, before: Spent) -> Clock {
        Clock { before, ..self }
    }

    /// The processor time since the clock was started, in seconds.
    pub(super) fn own_cpu(&self) -> f64 {
        rounded(process_time() - self.cpu)
    }

    pub(super) fn spent(&self) -> Spent {
        Spent {
            wall: rounded(self.before.wall + self.begun.elapsed().as_secs_f64()),
            cpu: rounded(self.before.cpu + self.own_cpu()),
        }
    }
}

impl Spent {
    /// Whether both are times.
    pub(super) fn is_valid(self) -> bool {
        [self.wall, self.cpu].into_iter().all(|seconds| seconds.is_finite() && seconds >= 0.0)
    }
}

//! How long the next values of a game will take, estimated from the last ones.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The computing time of a sequence so far, and of one value in the last two steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pace {
    /// Seconds in all.
    total: f64,
    /// Seconds in the step in progress.
    step: f64,
    /// Seconds per value in the last step.
    last: f64,
    /// Seconds per value in the step before.
    before: f64,
}

impl Pace {
    /// Adds computing time to the step in progress.
    pub(super) fn spend(&mut self, time: Duration) {
        self.total += time.as_secs_f64();
        self.step += time.as_secs_f64();
    }

    /// Ends the step in progress, which computed this number of values, unless no time was spent on it.
    pub(super) fn end_step(&mut self, values: u64) {
        if self.step == 0.0 {
            return;
        }
        let last = self.step / values.max(1) as f64;
        *self = Pace { step: 0.0, last, before: self.last, ..*self };
    }

    /// The computing time so far.
    pub(super) fn total(&self) -> Duration {
        seconds(self.total)
    }

    /// Whether all numbers are computing times.
    pub(super) fn is_valid(&self) -> bool {
        let Pace { total, step, last, before } = *self;
        [total, step, last, before].iter().all(|time| time.is_finite() && *time >= 0.0)
    }

    /// The growth of the time per value from step to step: 1 if a value always takes the same time, 2 if a value takes
    /// a time proportional to its position, as it does when all pairs of parts are compared and the length doubles.
    fn growth(&self) -> f64 {
        const GROWTH: (f64, f64) = (1.0, 2.0);
        let ratio = self.last / self.before;
        if ratio.is_finite() { ratio.clamp(GROWTH.0, GROWTH.1) } else { GROWTH.1 }
    }

    /// The estimated time of a next step of this number of values.
    pub(super) fn estimate(&self, values: u64) -> Duration {
        seconds(values as f64 * self.last * self.growth())
    }

    /// Whether the computing time of the whole sequence would exceed the limit after a next step of this number of
    /// values.
    pub(super) fn would_exceed(&self, limit: Option<Duration>, values: u64) -> bool {
        limit.is_some_and(|limit| self.total().saturating_add(self.estimate(values)) > limit)
    }
}

fn seconds(time: f64) -> Duration {
    Duration::try_from_secs_f64(time).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimate_follows_the_last_two_steps() {
        // Steps of 100 and 200 values, and a next one of 400 values.
        let pace = |times: &[u64]| {
            let mut pace = Pace::default();
            for (&time, values) in times.iter().zip([100, 200]) {
                pace.spend(Duration::from_secs(time));
                pace.end_step(values);
            }
            pace
        };
        let next = |times: &[u64]| pace(times).estimate(400).as_secs_f64().round();
        assert_eq!((next(&[1, 3]), next(&[1, 4]), next(&[1, 9])), (9.0, 16.0, 36.0));
        assert_eq!((next(&[2, 2]), next(&[1]), next(&[])), (4.0, 8.0, 0.0));
        let limit = |seconds| Some(Duration::from_secs(seconds));
        let exceeds = |seconds| pace(&[1, 4]).would_exceed(limit(seconds), 400);
        assert_eq!((exceeds(20), exceeds(22), pace(&[1, 4]).would_exceed(None, 400)), (true, false, false));
    }
}

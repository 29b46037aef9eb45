//! How long the next values of a game will take, estimated from the last ones.

use std::time::Duration;

/// The computing times of the last two doublings of a sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Pace {
    /// Computing time so far.
    pub(super) total: Duration,
    last: Duration,
    before: Duration,
}

impl Pace {
    /// Notes the computing time of the last doubling.
    pub(super) fn note(&mut self, time: Duration) {
        *self = Pace { total: self.total + time, last: time, before: self.last };
    }

    /// The ratio of the times of two doublings: 2 if a value always takes the same time, 4 if a value takes a time
    /// proportional to its position, as it does when all pairs of parts are compared.
    fn growth(&self) -> f64 {
        const GROWTH: (f64, f64) = (2.0, 4.0);
        let ratio = self.last.as_secs_f64() / self.before.as_secs_f64();
        if ratio.is_finite() { ratio.clamp(GROWTH.0, GROWTH.1) } else { GROWTH.1 }
    }

    /// The estimated time of the next doubling.
    pub(super) fn next(&self) -> Duration {
        self.last.mul_f64(self.growth())
    }

    /// Whether the next doubling would exceed this computing time.
    pub(super) fn would_exceed(&self, limit: Option<Duration>) -> bool {
        limit.is_some_and(|limit| self.total + self.next() > limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_the_next_doubling_follows_the_last_two() {
        let pace = |times: &[u64]| {
            let mut pace = Pace::default();
            times.iter().for_each(|&time| pace.note(Duration::from_secs(time)));
            pace
        };
        let next = |times: &[u64]| pace(times).next().as_secs();
        assert_eq!((next(&[1, 3]), next(&[1, 4]), next(&[1, 9])), (9, 16, 36));
        assert_eq!((next(&[2, 2]), next(&[1]), next(&[])), (4, 4, 0));
        let limit = |seconds| Some(Duration::from_secs(seconds));
        let exceeds = |seconds| pace(&[1, 4]).would_exceed(limit(seconds));
        assert_eq!((exceeds(20), exceeds(21), pace(&[1, 4]).would_exceed(None)), (true, false, false));
    }
}

//! Candidates by the recurrence kernel, for games with few lookups.

use super::{CandidateStream, Stop};
use crate::kernel::{RANGES, Recurrence};
use crate::solver::cost;
use std::sync::Arc;

/// Maximum number of values per call of [`Kernel::recurrence`](crate::kernel::Kernel::recurrence).
const LINKS: usize = 1024;

/// The range of the recurrence kernel, and the penalty for values that are outside of it. Where the penalty grows too
/// large, the stream takes the next larger range for good, and after the largest no longer uses that kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecurrenceRange {
    /// One of [`RANGES`]; `None` if the recurrence kernel is not used.
    pub(super) codes: Option<u8>,
    /// The penalty, in values: [`cost::FALLBACK_COST_VALUES`] for each value that the kernel could not compute, less
    /// one for each that it could.
    pub(super) penalty: u64,
}

impl Default for RecurrenceRange {
    fn default() -> RecurrenceRange {
        RecurrenceRange { codes: RANGES.first().copied(), penalty: 0 }
    }
}

impl RecurrenceRange {
    /// Notes that the kernel has computed this number of values.
    fn computed(&mut self, values: usize) {
        self.penalty = self.penalty.saturating_sub(values as u64);
    }

    /// Notes a value that the kernel could not compute.
    fn fell_back(&mut self) {
        self.penalty += cost::FALLBACK_COST_VALUES;
    }

    /// Takes the next larger range where the penalty is too large, or none after the largest. Returns whether the range
    /// has changed.
    fn grow_when_due(&mut self) -> bool {
        let is_due = self.penalty > cost::MAX_FALLBACK_COST_VALUES;
        if is_due {
            let larger = RANGES.into_iter().find(|&range| self.codes.is_some_and(|codes| range > codes));
            *self = RecurrenceRange { codes: larger, penalty: 0 };
        }
        is_due
    }
}

impl CandidateStream {
    /// Computes the next `count` candidates with the recurrence kernel. Where the least code is outside the range of
    /// the kernel, reads all lookups for that value.
    pub(super) fn recurrence_values(&mut self, count: usize) -> Stop {
        let start = self.end();
        let plan = Arc::clone(&self.plan);
        let done = plan.recurrence.as_ref().map_or(0, |recurrence| self.recurrence_codes(recurrence, count));
        if self.recurrence_range.grow_when_due() {
            let plan = self.plan.with_recurrence(self.recurrence_range.codes);
            self.plan.replace(Arc::new(plan));
        }
        self.windows.decode_from(start);
        if done == count { Stop::Done } else { Stop::TooWide }
    }

    /// Appends the codes of the next `count` candidates. Returns their number, which is less than `count` when one has
    /// no byte code.
    fn recurrence_codes(&mut self, recurrence: &Recurrence, count: usize) -> usize {
        let start = self.end();
        let at = self.windows.codes().at(start);
        let mut done = 0;
        while done < count {
            let to = at + count.min(done + LINKS);
            let codes = self.windows.codes_mut().items_mut();
            codes.resize(to, 0);
            let end = self.kernel.recurrence(codes, at + done, to, recurrence);
            codes.truncate(end);
            self.recurrence_range.computed(end - at - done);
            done = end - at;
            if end < to {
                let n = start + done as u64;
                if !self.push_code(self.least_code(n), n) {
                    break;
                }
                self.recurrence_range.fell_back();
                done += 1;
            }
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_grows_with_the_fallbacks_and_ends_after_the_largest() {
        let mut range = RecurrenceRange::default();
        let mut ranges = vec![range.codes];
        for _ in 0..10_000 {
            range.fell_back();
            range.computed(8);
            if range.grow_when_due() {
                ranges.push(range.codes);
            }
        }
        assert_eq!(ranges[..3], [Some(32), Some(64), None]);
        assert!(ranges[3..].iter().all(Option::is_none));
        let mut range = RecurrenceRange::default();
        let grows = (0..10_000).any(|_| {
            range.fell_back();
            range.computed(64);
            range.grow_when_due()
        });
        assert!(!grows, "64 values for each fallback are just enough to keep the range");
    }
}

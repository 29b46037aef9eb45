//! Candidates by the recurrence kernel, for games with few lookups.

use super::{CandidateStream, Stop};
use crate::kernel::Recurrence;
use crate::solver::cost;
use std::sync::Arc;

/// Maximum number of values per call of [`Kernel::recurrence`](crate::kernel::Kernel::recurrence).
const LINKS: usize = 1024;

/// The penalty for values that the recurrence kernel could not compute. Where it grows too large, the stream stops
/// using that kernel for good.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FallbackPenalty {
    /// In values: [`cost::FALLBACK_COST_VALUES`] for each value that the kernel could not compute, less one for each
    /// that it could.
    pub(super) values: u64,
    /// Whether the recurrence kernel is not used.
    pub(super) forbids_recurrence: bool,
}

impl FallbackPenalty {
    /// Whether the recurrence kernel may be used.
    pub(super) fn allows_recurrence(self) -> bool {
        !self.forbids_recurrence
    }

    /// Notes that the kernel has computed this number of values.
    fn computed(&mut self, values: usize) {
        self.values = self.values.saturating_sub(values as u64);
    }

    /// Notes a value that the kernel could not compute.
    fn fell_back(&mut self) {
        self.values += cost::FALLBACK_COST_VALUES;
    }

    /// Whether the kernel costs more than it saves.
    fn is_too_high(self) -> bool {
        self.values > cost::MAX_FALLBACK_COST_VALUES
    }
}

impl CandidateStream {
    /// Computes the next `count` candidates with the recurrence kernel. Where the least code is outside the range of
    /// the kernel, reads all lookups for that value.
    pub(super) fn recurrence_values(&mut self, count: usize) -> Stop {
        let start = self.end();
        let plan = Arc::clone(&self.plan);
        let done = plan.recurrence.as_ref().map_or(0, |recurrence| self.recurrence_codes(recurrence, count));
        if self.fallback.is_too_high() {
            self.fallback.forbids_recurrence = true;
            let plan = self.plan.without_recurrence();
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
            self.fallback.computed(end - at - done);
            done = end - at;
            if end < to {
                let n = start + done as u64;
                if !self.push_code(self.least_code(n), n) {
                    break;
                }
                self.fallback.fell_back();
                done += 1;
            }
        }
        done
    }
}

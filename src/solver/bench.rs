//! Functions and cost constants of the streams and of the comparison of all pairs, for the benchmarks.

pub use super::candidates::bench::*;
pub use super::exhaustive::bench::*;
pub use super::witnesses::bench::*;

use super::cost;

/// Price of marking one lookup with `codes` codes considered, in picoseconds per value.
#[must_use]
pub fn mark_ps(codes: usize) -> u64 {
    cost::mark_ps(codes)
}

/// Price of checking one lookup with `keep` candidates kept per lane, in picoseconds per value.
#[must_use]
pub fn check_ps(keep: usize) -> u64 {
    cost::check_ps(keep)
}

/// Price of holding one part against the least open targets, in picoseconds per value.
pub const CLEAR_PS: u64 = cost::CLEAR_PS;

/// Price of one more considered code in the candidate stream, in picoseconds per value.
pub const CANDIDATE_CODE_PS: u64 = cost::CANDIDATE_CODE_PS;

/// Price of an unresolved lane, in picoseconds.
pub const UNRESOLVED_LANE_PS: u64 = cost::UNRESOLVED_LANE_PS;

/// Price of an answer among the codes just above those considered, in picoseconds.
pub const ANSWER_BEYOND_PS: u64 = cost::ANSWER_BEYOND_PS;

/// Cost of a value that the recurrence kernel cannot compute, in values that it can.
pub const FALLBACK_COST_VALUES: u64 = cost::FALLBACK_COST_VALUES;

/// Price of one more considered code in the witness stream, in picoseconds per value.
pub const TARGET_CODE_PS: u64 = cost::TARGET_CODE_PS;

/// Price of a target that is searched position by position, in picoseconds.
pub const FIND_TARGET_PS: u64 = cost::FIND_TARGET_PS;

/// Price of a target that is not considered, in picoseconds.
pub const UNCONSIDERED_TARGET_PS: u64 = cost::UNCONSIDERED_TARGET_PS;

/// The processor time of this thread.
#[must_use]
pub fn processor_time() -> std::time::Duration {
    rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

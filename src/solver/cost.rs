//! What the work of the solver costs, and how often the two streams choose their plans again.
//!
//! The streams choose by these constants how many lookups they mark and how many they check, how many codes they
//! consider, and when a choice is due again. No constant changes a value: wrong prices only cost time.
//!
//! The unit of most constants is in their names: `_PS` are picoseconds, `_VALUES`, `_LOOKUPS`, `_LANES` and `_PAIRS`
//! are numbers of these, `_N` is a position. "Per value" means per position of the sequence, so a price per lookup
//! and value is 1/64 of what the kernel takes for one lookup in all [`LANES`] lanes.
//!
//! Each constant names the benchmark that measures it, if one does: `kernels` measures the kernel jobs, `candidates`
//! and `witnesses` the prices of the streams. `docs/PERFORMANCE.md`, section "Constants, measured", compares the
//! constants with these measurements, and states what was tried in their place. On another machine the figures differ
//! by a factor of up to two, and the speed of whole runs hardly changes.

use crate::kernel::LANES;

// ---- Kernel jobs -----------------------------------------------------------------------------------------------

/// Time to mark one lookup in all [`LANES`] lanes, apart from [`MARK_CODE_PS`], in picoseconds. `benches/kernels.rs`
/// measures it as a part of [`mark_ps`].
const MARK_BASE_PS: u64 = 500;

/// Time to mark one lookup in all [`LANES`] lanes, in picoseconds per code considered. `benches/kernels.rs` measures it
/// as a part of [`mark_ps`].
const MARK_CODE_PS: u64 = 36;

/// Price of marking one lookup (or one part) with `codes` codes considered, in picoseconds per value.
///
/// In all lanes this is 2.8, 3.1 and 3.4 ns for 64, 72 and 80 codes. `benches/kernels.rs` measures it.
pub(super) const fn mark_ps(codes: usize) -> u64 {
    (MARK_BASE_PS + MARK_CODE_PS * codes as u64) / LANES as u64
}

/// Time to check one lookup in all [`LANES`] lanes, apart from [`CHECK_CANDIDATE_PS`], in picoseconds.
/// `benches/kernels.rs` measures it as a part of [`check_ps`].
const CHECK_BASE_PS: u64 = 500;

/// Time to check one lookup in all [`LANES`] lanes, in picoseconds per candidate kept. `benches/kernels.rs` measures it
/// as a part of [`check_ps`].
const CHECK_CANDIDATE_PS: u64 = 240;

/// Price of checking one lookup with `keep` candidates kept per lane, in picoseconds per value.
///
/// In all lanes this is 1.0, 1.5, 1.9 and 2.4 ns for 2, 4, 6 and 8 candidates. `benches/kernels.rs` measures it.
pub(super) const fn check_ps(keep: usize) -> u64 {
    (CHECK_BASE_PS + CHECK_CANDIDATE_PS * keep as u64) / LANES as u64
}

/// Price of holding one part against the least open targets
/// ([`Kernel::clear_hits`](crate::kernel::Kernel::clear_hits)), in picoseconds per value.
///
/// In all lanes this is 1.2 ns. `benches/kernels.rs` measures it.
pub(super) const CLEAR_PS: u64 = 19;

// ---- Candidates ------------------------------------------------------------------------------------------------

/// Price of one more considered code in the candidate stream, in picoseconds per value.
///
/// It is the sum over all marked lookups, so it is proportional to their number. `benches/candidates.rs` measures it
/// with the lookups that Grundy's game and .6 mark.
pub(super) const CANDIDATE_CODE_PS: u64 = 300;

/// Price of an unresolved lane, or of a lane that is completed by reading all lookups, in picoseconds per such value.
/// `benches/candidates.rs` measures it.
pub(super) const UNRESOLVED_LANE_PS: u64 = 1_000_000;

/// Price of a lane that has lost the candidates compared with the middle and late lookups and has others, in
/// picoseconds per such value: the stream reads the middle, late and near lookups. It is an estimate, a fifth of
/// [`UNRESOLVED_LANE_PS`], because about one lookup in six is one of these (208 of 1273 in Grundy's game, where far
/// lookups begin at 1024). No benchmark measures it.
pub(super) const LATE_LANE_PS: u64 = 200_000;

/// Price of an answer among the [`BEYOND`](crate::kernel::BEYOND) codes just above those considered, in picoseconds per
/// such value: a thread reads only the marked lookups again, and the middle ones where it revises the lane.
/// `benches/candidates.rs` measures it.
pub(super) const ANSWER_BEYOND_PS: u64 = 400_000;

/// Factor, without a unit, by which the middle and late lookups must be cheaper than marking all lookups where threads
/// share only the lookups from 512 or from 1024 on. Below it, they share the lookups from the next lower of
/// [`LEAST_FAR`](super::lookups::plan::LEAST_FAR) on. With four threads, games with a factor up to 2.1 take 0.6 to 0.9
/// of the processor time with 512 instead of 1024, and games with a factor of 8 or more 1.0 to 1.05
/// (`benches/record/2026-11-29b-zen3-2-cores.md`). No benchmark measures it.
pub(super) const LONG_LEAD_FACTOR: u64 = 4;

/// Number of sampled values per answer that a stage of checking may lose where it begins. No benchmark measures it.
pub(super) const VALUES_PER_LOST_ANSWER: usize = 2048;

/// Minimum number of lookups in a stage of checking other than the last; a shorter stage costs more than it saves. No
/// benchmark measures it.
pub(super) const MIN_STAGE_LOOKUPS: usize = 60;

/// Cost of a value that the recurrence kernel cannot compute, in values that it can.
/// `benches/candidates.rs` measures it with the lookups of .106.
pub(super) const FALLBACK_COST_VALUES: u64 = 64;

/// Cost of fallbacks, in values that the recurrence kernel can compute, above which the stream takes a larger range for
/// that kernel, or stops using it. Each value that the kernel computes lowers the cost by one. No benchmark measures
/// it.
pub(super) const MAX_FALLBACK_COST_VALUES: u64 = 1 << 14;

// ---- Witnesses -------------------------------------------------------------------------------------------------

/// Price of one more considered code in the witness stream, in picoseconds per value.
///
/// It is the sum over all marked parts, so it is proportional to their number. `benches/witnesses.rs` measures it with
/// the parts that Grundy's game, .6 and .106 mark.
pub(super) const TARGET_CODE_PS: u64 = 250;

/// Price of a target that is searched position by position, in picoseconds per target.
/// `benches/witnesses.rs` measures it, and `benches/kernels.rs` the kernel job `find`.
pub(super) const FIND_TARGET_PS: u64 = 60_000;

/// Price of a target that is not considered, in picoseconds per target. It is two thirds of [`FIND_TARGET_PS`], because
/// no part was marked for it in vain. `benches/witnesses.rs` measures it.
pub(super) const UNCONSIDERED_TARGET_PS: u64 = 40_000;

/// Number of lookups that are marked before an order is learnt. No benchmark measures it.
pub(super) const UNLEARNT_LOOKUPS: usize = 600;

// ---- Clocks of learning ----------------------------------------------------------------------------------------
//
// No benchmark measures a constant of this section.

/// The least n at which the candidate stream learns an order of the lookups. Below it the order is by offset.
pub(super) const LEARN_LOOKUPS_FROM_N: u64 = 1 << 16;

/// The least n at which the witness stream learns parts. Below it the stream searches every target position by
/// position.
pub(super) const LEARN_PARTS_FROM_N: u64 = 8192;

/// Factor, without a unit, by which the sequence grows before a new order is due, unless [`LEARN_INTERVAL_VALUES`] is
/// less.
pub(super) const LEARN_GROWTH: u64 = 4;

/// Maximum number of values between two learnings of an order.
/// `benches/sequence.rs` does not reach it: compare whole runs with `scripts/compare`.
pub(super) const LEARN_INTERVAL_VALUES: u64 = 1 << 27;

/// Number of values after which a stream chooses its budget again. Compare whole runs with `scripts/compare`.
pub(super) const REBALANCE_INTERVAL_VALUES: u64 = 1 << 20;

/// Number of values after which a stream chooses the number of codes to consider again, because large values come in
/// bursts.
pub(super) const RECONSIDER_INTERVAL_VALUES: u64 = 1 << 17;

/// Number of unresolved lanes since the last choice above which a stream chooses its budget early; lanes that were
/// completed by reading all lookups count as well. Resolving that many lanes costs several times as much as a choice.
pub(super) const MAX_UNRESOLVED_LANES: u64 = 1 << 13;

// ---- All pairs -------------------------------------------------------------------------------------------------

/// Cost of entering one pair of parts in the set of options, in pairs compared. `benches/kernels.rs` measures it.
pub(super) const ENTER_PAIRS: u64 = 24;

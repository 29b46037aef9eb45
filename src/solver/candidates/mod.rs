//! The candidate stream: for each n the least common value that is not an option.
//!
//! Only options with exactly one rare part can be common (`theory::sparse_space`), so one lookup per rare position and
//! split finds all common options ([`lookups`](super::lookups)). Lookups with an offset of at least [`LANES`] (far) and
//! nearer ones (near) are separate kernel jobs, 64 values at a time (`lanes`). Far lookups are marked, or checked in
//! stages.
//!
//! ```text
//! block   262,144 positions   one step of the solver; the threads meet at its end (fewer where lookups are many)
//! group       256 positions   what one task of the witness search checks
//! lanes        64 positions   one kernel job, and what the stream publishes in the pipeline at once; lane i is
//!                             position first + i
//! plane         8 codes       one row of the bit planes of 64 lanes:
//!
//!             lane 0     lane 1     …  lane 63
//!   row 0   [ 01100000 | 11111010 | … | 00110001 ]   bit b of row j: is code 8j + b an option in this lane?
//!   row 1   [ 00000001 | 00000000 | … | 10000000 ]   (bit 0 is on the right.) Once every lookup is marked, the
//!   …                                                least bit that is 0 is the candidate.
//! ```
//!
//! The stream learns the order of the lookups ([`lookup_order`]) on a sample of the last values. On a second sample it
//! chooses the [`Budget`]: how many lookups are marked, and how many candidates each stage keeps. It chooses the budget
//! again as the values change (`learning`, `cost_model`). With more than one thread, and where that pays, any other
//! thread evaluates the far lookups ahead of the stream, and then the middle ones ([`pipeline`](super::pipeline)). The
//! far ones begin at one of the offsets [`LEAST_FAR`], above [`LANES`]. While there are irregular lookups, the stream
//! evaluates those and the near ones one lane at a time.
//!
//! Where there are few lookups and all are regular, all of them are one job of the recurrence kernel
//! ([`Recurrence`](crate::kernel::Recurrence)), and their order is not used (`recurrence`). When the values of a
//! game often have codes outside the range of the recurrence kernel, the stream takes a larger range, and after the
//! largest one stops using that kernel for good.
//!
//! The far lookups leave each lane a list of candidates. Only the first [`Budget::keep_late`] of them are compared with
//! the middle and late lookups in 64 lanes at once; the others are *set aside*, and the stream reads them only for a
//! lane all of whose first candidates were hit. The 16 codes ([`BEYOND`](crate::kernel::BEYOND)) just above the
//! considered codes are candidates too. When such a code is the first one left, or none is left, the thread that has
//! evaluated the far lookups, or the middle lookups, *completes* the lane: it reads these lookups again, one byte each,
//! while the codes are in its cache ([`FarLanes`](super::lookups::far_lanes::FarLanes)).
//!
//! A lane is **unresolved** when lookups hit all its candidates. The stream then reads every lookup.
//!
//! Values at or above [`SparseSpace::coded`] have no byte code. The stream stops before the first of them
//! ([`Stop::TooWide`]), and the wide solver ([`wide`](super::wide)) continues.
//!
//! Invariant: after [`CandidateStream::block`] the stream is ahead of the proved values; [`CandidateStream::truncate`]
//! takes it back.

pub(super) mod bench;
mod cost_model;
#[cfg(test)]
mod flips;
mod lanes;
mod learning;
mod recurrence;
#[cfg(test)]
mod tests;
mod windows;

use super::SequenceStats;
use super::checksums::{Checked, CheckedList};
use super::clocks::LearningClocks;
use super::codes::Codes;
use super::cost;
use super::lookup_order;
use super::lookups::far_lanes::SharedLanes;
use super::lookups::plan::{Budget, LEAST_FAR, LookupPlan, PLANNED, Planner, RECURRENCE_VALUES, StageBudget};
use super::lookups::{Lookup, RarePositions};
use super::parallelism::Threads;
use super::pipeline::Pipeline;
use crate::error::{Error, Result};
use crate::fault;
use crate::kernel::{self, BitPlanes, Kernel, LANES};
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::rule::{Leaves, Rule, Split};
use crate::theory::sparse_space::SparseSpace;
use recurrence::RecurrenceRange;
use std::sync::Arc;
use windows::{Lookback, ValueWindows};

pub(super) struct CandidateStream {
    rule: Rule,
    space: SparseSpace,
    kernel: Kernel,
    rare_positions: RarePositions,
    /// All lookups, in learnt order.
    lookups: CheckedList<Lookup>,
    budget: Budget,
    plan: Checked<Arc<LookupPlan>>,
    clocks: LearningClocks,
    /// Number of unresolved lanes since the last choice of the budget.
    unresolved: u64,
    recurrence_range: RecurrenceRange,
    /// The last values, which the lookups read.
    windows: ValueWindows,
    /// The threads of the current block.
    threads: Threads,
    /// The least offset of a far lookup: one of [`LEAST_FAR`]. If it is above [`LANES`], other threads may evaluate the
    /// far lookups.
    least_far: usize,
    /// Memory for the lanes that the stream evaluates itself.
    own_lanes: Option<SharedLanes>,
    /// Memory for the marks of lanes that the stream evaluates.
    planes: BitPlanes,
    /// The next lanes from a position on, if another thread had evaluated them when the lanes before were taken.
    ahead: Option<(u64, SharedLanes)>,
    /// Memory of lanes that other threads have evaluated, to be returned to them.
    used: Vec<SharedLanes>,
}

/// The least offsets of far lookups from which a stream with these threads chooses, ascending.
fn least_far_choices(threads: Threads) -> &'static [usize] {
    match threads.count() {
        ..2 => &LEAST_FAR[..1],
        2 | 3 => &LEAST_FAR[..3],
        _ => &LEAST_FAR,
    }
}

/// Where the stream stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The block is complete.
    Done,
    /// The next value has no byte code.
    TooWide,
}

impl CandidateStream {
    /// A stream that continues `past`, whose rare positions under `space` and whose largest value are `stats`.
    ///
    /// # Errors
    /// Any error of reading `past`.
    pub(super) fn new(
        rule: &Rule,
        space: SparseSpace,
        kernel: Kernel,
        stats: SequenceStats,
        past: &dyn Sequence,
    ) -> Result<CandidateStream> {
        let first_stage = StageBudget { keep: kernel::CANDIDATES, from: cost::UNLEARNT_LOOKUPS };
        let mut stream = CandidateStream {
            rule: rule.clone(),
            space,
            kernel,
            rare_positions: RarePositions::default(),
            lookups: CheckedList::default(),
            budget: Budget {
                codes: kernel::MOST_CODES,
                marks: cost::UNLEARNT_LOOKUPS,
                stages: vec![first_stage],
                keep_late: kernel::CANDIDATES,
            },
            plan: Checked::new(Arc::new(LookupPlan::none())),
            clocks: LearningClocks::default(),
            unresolved: 0,
            recurrence_range: RecurrenceRange::default(),
            windows: ValueWindows::new(space, past.len()),
            threads: Threads::ONE,
            least_far: LANES,
            own_lanes: None,
            planes: BitPlanes::default(),
            ahead: None,
            used: Vec::new(),
        };
        for m in rule.moves().iter().filter(|m| m.leaves == Leaves::One && space.keeps_class(m.remove, m.constant)) {
            stream.lookups.push(Lookup { offset: m.remove, value: m.constant, part: 0, min_difference: 0 });
        }
        for (n, value) in stats.rare_positions {
            stream.enter(n, value);
        }
        stream.windows.refill(past, stream.lookback())?;
        Ok(stream)
    }

    pub(super) fn end(&self) -> u64 {
        self.windows.end()
    }

    pub(super) fn rare_positions(&self) -> &[(u64, u16)] {
        self.rare_positions.list()
    }

    /// Number of last codes to keep: every lookup can then be read at the end, and at each of the last
    /// [`lookup_order::SPAN`] positions, from which samples are drawn.
    pub(super) fn codes_to_keep(&self) -> u64 {
        self.lookback().codes
    }

    /// Number of last codes and of last values that the stream keeps at least.
    fn lookback(&self) -> Lookback {
        let values = self.rule.max_remove() + lookup_order::SPAN;
        Lookback { codes: self.rare_positions.last() + values, values }
    }

    /// Whether no code is forgotten.
    pub(super) fn holds_all(&self) -> bool {
        self.windows.codes().start() == 0
    }

    /// Enters a rare position, after all others, and its lookups.
    fn enter(&mut self, n: u64, value: u16) {
        let frozen = fault::is("freeze-rares") && n == self.end(); // deliberate fault, see fault.rs
        self.rare_positions.push(n, value);
        if n > 0 && !frozen {
            for Split { remove, constant, min_difference, .. } in self.rule.splits() {
                self.lookups.push(Lookup { offset: remove + n, value: constant ^ value, part: n, min_difference });
            }
        }
        self.discard_plan();
    }

    /// Makes the stream plan again before its next values.
    fn discard_plan(&mut self) {
        self.plan.replace(Arc::new(LookupPlan::none()));
    }

    /// Appends the next value, which the witness search found to be rare. `past` holds every value before it. Unless
    /// the stream [holds all codes](CandidateStream::holds_all), it reads the windows again, so the caller must have
    /// checked them.
    ///
    /// # Errors
    /// Any error of reading `past`.
    ///
    /// # Panics
    /// If the value has no byte code.
    pub(super) fn push_rare(&mut self, value: u16, past: &dyn Sequence) -> Result<()> {
        let n = past.len();
        assert_eq!(n, self.end(), "a rare value must follow the last proved value");
        self.enter(n, value);
        if !self.holds_all() {
            // The lookups of the new rare position read all values from G(1) on.
            self.windows.refill(past, self.lookback())?;
        }
        self.windows.push(value);
        Ok(())
    }

    /// Whether the stream computes the values of this rule in this space.
    pub(super) fn is_of(&self, rule: &Rule, space: SparseSpace) -> bool {
        (&self.rule, self.space) == (rule, space)
    }

    /// The space of the stream.
    pub(super) fn space(&self) -> SparseSpace {
        self.space
    }

    /// Takes the stream back to `end` and keeps everything before it.
    pub(super) fn truncate(&mut self, end: u64) {
        self.windows.truncate(end);
        self.clocks.truncate(end);
    }

    /// Forgets the values that positions after `past`, the proved values, do not read, and the codes before `horizon`,
    /// which the shared `codes` forget as well. No later check would notice a change in what is forgotten, so this
    /// first compares the values with `past`, and the codes with the other copy.
    ///
    /// # Errors
    /// [`Error::Flipped`] at the first difference, and any error of reading `past`.
    pub(super) fn forget(&mut self, past: &dyn Sequence, horizon: u64, codes: &mut Codes) -> Result<()> {
        self.windows.forget_values(past.len().saturating_sub(self.lookback().values), past)?;
        self.windows.forget_codes(horizon, codes, |n| self.rare_positions.contains(n))
    }

    /// Whether other threads may evaluate the far lookups. [`LookupPlan::shares_far`] tells whether they do.
    fn may_share_far(&self) -> bool {
        self.least_far > LANES
    }

    /// Uses these threads from the next block on.
    pub(super) fn use_threads(&mut self, threads: Threads) {
        let [before, choices] = [self.threads, threads].map(least_far_choices);
        self.threads = threads;
        if choices != before {
            // The order and the budget were learnt for other far lookups.
            self.least_far = choices[choices.len() - 1];
            self.clocks = LearningClocks::default();
            self.discard_plan();
        }
    }

    /// Computes the next `length` candidates and publishes them if other threads evaluate lookups. Computes fewer when
    /// one has no byte code, or when the pipeline is closed.
    pub(super) fn block(&mut self, length: usize, pipeline: &Pipeline<'_>) -> (Vec<u16>, Stop) {
        let start = self.end();
        let end = start + length as u64;
        if length == 0 {
            return (Vec::new(), Stop::Done);
        }
        self.ahead = None;
        self.reconsider_when_due();
        pipeline.plan(&self.plan);
        let mut stop = Stop::Done;
        while self.end() < end && stop == Stop::Done {
            let from = self.end();
            let length = if self.plan.is_recurrence() { RECURRENCE_VALUES } else { PLANNED };
            let to = end.min((from + 1).next_multiple_of(length as u64));
            if !self.plan.holds(from, to) {
                let plan = self.make_plan(from, to);
                self.plan.replace(Arc::new(plan));
                pipeline.plan(&self.plan);
            }
            let Some(stopped) = self.publish_lanes(to, pipeline) else { break };
            stop = stopped;
        }
        (self.windows.values(start, self.end()).to_vec(), stop)
    }

    /// Computes the candidates up to `to`, and publishes them, 64 at a time, where other threads evaluate lookups;
    /// `None` when the pipeline is closed.
    fn publish_lanes(&mut self, to: u64, pipeline: &Pipeline<'_>) -> Option<Stop> {
        let mut stop = Stop::Done;
        while self.end() < to && stop == Stop::Done {
            let from = self.end();
            if self.plan.is_recurrence() {
                stop = self.recurrence_values(index(to - from));
                if !self.plan.is_recurrence() {
                    pipeline.plan(&self.plan);
                }
            } else {
                let lanes_end = to.min((from + 1).next_multiple_of(LANES as u64));
                stop = self.lanes(index(lanes_end - from), pipeline);
            }
            let is_open = if self.plan.shares_far() {
                pipeline.publish(self.windows.values(pipeline.known(), self.windows.end()), &mut self.used)
            } else {
                // The other threads evaluate no lookups, so they need no values yet.
                pipeline.is_open()
            };
            if !is_open {
                return None;
            }
        }
        Some(stop)
    }

    /// The plan of the positions `start..end`.
    fn make_plan(&self, start: u64, end: u64) -> LookupPlan {
        let planner = Planner {
            rule: &self.rule,
            space: self.space,
            rare_positions: &self.rare_positions,
            lookups: &self.lookups,
            budget: &self.budget,
            least_far: self.least_far,
            recurrence_range: self.recurrence_range.codes,
        };
        planner.plan(start, end)
    }

    /// The longest block whose lookups take these threads a fraction of a second.
    pub(super) fn longest_block(&self, threads: Threads) -> usize {
        /// Maximum number of lookups per block and thread. On the slow paths a lookup takes about a nanosecond.
        const BATCH: usize = 1 << 28;
        let threads = if self.may_share_far() { threads.count() } else { 1 };
        1 << (BATCH * threads / self.lookups.len().max(1)).max(LANES).ilog2()
    }

    /// Compares the codes with the other copy, which was computed independently, the values with `past`, and the rare
    /// positions, the lookups and the plan with their checksums.
    ///
    /// # Errors
    /// [`Error::Flipped`] at the first difference, and any error of reading `past`.
    pub(super) fn check_memory(&self, codes: &Codes, past: &dyn Sequence) -> Result<()> {
        self.windows.values_agree_with(past)?;
        if !self.rare_positions.is_intact() {
            return Err(Error::Flipped { what: "the list of rare positions", from: 0, to: self.end() });
        }
        if !self.lookups.is_intact() || !self.plan.is_intact() {
            return Err(Error::Flipped { what: "the list of lookups", from: 0, to: self.end() });
        }
        self.windows.codes_agree_with(codes, |n| self.rare_positions.contains(n))
    }
}

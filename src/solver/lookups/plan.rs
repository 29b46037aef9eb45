//! The lookups of the positions `from..until`, sorted by the kernel job that evaluates them.
//!
//! ```text
//!                        offset of the lookup
//! rank in the order      0 ····· 64 ····· 256 ····· least_far ········ 2^19 ·········>
//! before budget.marks    near    late     middle    mark               mark_old
//! from budget.marks on   near    late     middle    check, by stage    check_old
//! ```
//!
//! - *near*: the other part may be in the same 64 lanes, so these lookups are resolved one lane after the other; all
//!   others are evaluated in 64 lanes at once;
//! - *mark*, *mark_old*: marked in the bit planes of the 64 lanes;
//! - *check*: compared with the few least codes that stay open, in stages that keep fewer and fewer;
//! - *check_old*: compared with the candidates that are left then;
//! - *middle*, then *late*: compared with the first `keep_late` of them;
//! - *irregular*: read one lane at a time, whatever their offset.
//!
//! The lookups with an offset of at least `least_far` are the *far* ones. Where several threads share them, any thread
//! evaluates them ([`pipeline`], [`FarLanes`]). The *middle* lookups are then those that any thread can evaluate just
//! before the thread that computes the candidates needs the result, and the *late* lookups are left to that thread.
//! Where one thread evaluates all lookups, there are neither: all lookups from offset 64 on are far. The lists named
//! *old* read the codes before the block, the others a copy of the last codes.
//!
//! Where the lookups are few and all regular, all of them are one job of the recurrence kernel instead.
//!
//! Invariant: the jobs of a regular plan, taken together, hold every common option at every n of `from..until`.
//!
//! [`pipeline`]: crate::solver::pipeline
//! [`FarLanes`]: super::far_lanes::FarLanes

use super::{Lookup, RarePositions};
use crate::kernel::{self, LANES, NearProbes, Probe, Probes, Recurrence, Stage};
use crate::solver::codes::Codes;
use crate::theory::nimber::index;
use crate::theory::rule::{Leaves, Rule};
use crate::theory::sparse_space::SparseSpace;

/// Number of positions after which the stream tests whether its plan is still valid.
pub(in crate::solver) const PLANNED: usize = 1024;

/// Number of values that the recurrence kernel computes at once. `sequence/0.106` of `cargo bench`
/// (benches/sequence.rs) measures its effect.
pub(in crate::solver) const RECURRENCE_VALUES: usize = 2 * PLANNED;

/// The least offsets, in values, of far lookups, ascending. With the first, one thread evaluates all lookups. With
/// another, threads share the far lookups. The smaller the offset, the less work is left to the thread that computes
/// the candidates, and the later other threads can begin. One thread uses only the first, two or three threads the
/// first three. The stream tries the largest first.
pub(in crate::solver) const LEAST_FAR: [usize; 4] = [LANES, LEAST_MIDDLE, 512, 1024];

/// The least offset, in values, of a middle lookup where threads share the far lookups. The smaller it is, the less
/// work is left to the thread that computes the candidates, and the later another thread can begin. If far lookups
/// begin here, there are no middle lookups.
pub(in crate::solver) const LEAST_MIDDLE: usize = 256;

/// The largest offset, in values, of a lookup that reads a copy of the last codes, and the maximum length of this copy
/// at the start of a block. Lookups with larger offsets read the codes before the block.
pub(in crate::solver) const RECENT: usize = 1 << 19;

/// Maximum number of different lookups of a game, times the range, for which the stream uses
/// [`kernel::Kernel::recurrence`]: 320 lookups for the range of 32 codes, 160 for that of 64. For the range of 64,
/// marking and checking are faster with 225 lookups and more; nothing between 102 and 225 was measured.
const MOST_LOOKUPS_TIMES_RANGE: usize = 10_240;

/// The use of the lookups by rank in the order: those before rank `marks` are marked, the others are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::solver) struct Budget {
    /// Number of codes considered (those below it); one of [`kernel::CODES`].
    pub(in crate::solver) codes: usize,
    pub(in crate::solver) marks: usize,
    /// The stages of checking. The first begins at rank `marks`, and each ends where the next begins.
    pub(in crate::solver) stages: Vec<StageBudget>,
    /// Number of candidates per lane that are compared with the middle and late lookups; one of [`kernel::KEEP`].
    pub(in crate::solver) keep_late: usize,
}

/// A stage of checking: which candidates it keeps, and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::solver) struct StageBudget {
    /// Number of candidates kept per lane; one of [`kernel::KEEP`].
    pub(in crate::solver) keep: usize,
    /// Rank of the first lookup of this stage.
    pub(in crate::solver) from: usize,
}

impl Budget {
    /// The stage in which the lookup of this rank, at least `marks`, is checked.
    fn stage_of(&self, rank: usize) -> usize {
        self.stages.partition_point(|stage| stage.from <= rank) - 1
    }
}

/// The lookups of the positions `from..until`, sorted by the kernel job that evaluates them.
#[derive(Clone, Debug, Hash)]
pub(in crate::solver) struct LookupPlan {
    /// The plan is valid for the positions `from..until`.
    from: u64,
    until: u64,
    /// Number of codes considered (those below it); one of [`kernel::CODES`].
    pub(in crate::solver) codes: usize,
    /// The least offset of a far lookup: one of [`LEAST_FAR`].
    pub(in crate::solver) least_far: usize,
    /// Far lookups that are marked, with offsets up to [`RECENT`].
    pub(in crate::solver) mark: Probes,
    /// Far lookups that are marked, with offsets above [`RECENT`].
    pub(in crate::solver) mark_old: Probes,
    /// Far lookups checked against the candidates that are left, stage by stage, with offsets up to [`RECENT`].
    pub(in crate::solver) check: Vec<Stage>,
    /// Far lookups checked after all stages, with offsets above [`RECENT`].
    pub(in crate::solver) check_old: Probes,
    /// Lookups checked after the far ones, with offsets from [`LEAST_MIDDLE`] on.
    pub(in crate::solver) middle: Probes,
    /// Lookups checked last, with offsets from [`LANES`] on.
    pub(in crate::solver) late: Probes,
    /// Number of candidates per lane that are compared with the middle and late lookups; one of [`kernel::KEEP`].
    pub(in crate::solver) keep_late: usize,
    /// The near lookups: offsets below [`LANES`].
    pub(in crate::solver) near: NearProbes,
    pub(in crate::solver) irregular: Vec<Lookup>,
    /// Whether moves that leave one heap may have common options that no lookup represents.
    pub(in crate::solver) single_heap_moves: bool,
    /// All lookups, where they are few and all regular.
    pub(in crate::solver) recurrence: Option<Recurrence>,
}

impl LookupPlan {
    /// An empty plan, valid for no position.
    pub(in crate::solver) fn none() -> LookupPlan {
        LookupPlan {
            from: 0,
            until: 0,
            codes: kernel::MOST_CODES,
            least_far: LANES,
            mark: Probes::new(),
            mark_old: Probes::new(),
            check: Vec::new(),
            check_old: Probes::new(),
            middle: Probes::new(),
            late: Probes::new(),
            keep_late: kernel::CANDIDATES,
            near: NearProbes::default(),
            irregular: Vec::new(),
            single_heap_moves: true,
            recurrence: None,
        }
    }

    /// A plan valid for every block, with this least offset of far lookups. Of its far lookups, those in the first half
    /// of the list are marked.
    #[cfg(test)]
    pub(in crate::solver) fn of_lookups(least_far: usize, lookups: &[Probe]) -> LookupPlan {
        let stages = vec![StageBudget { keep: kernel::CANDIDATES, from: lookups.len() / 2 }];
        let (codes, keep_late) = (kernel::MOST_CODES, kernel::CANDIDATES);
        let budget = Budget { codes, marks: lookups.len() / 2, stages, keep_late };
        let check = vec![Stage { keep: kernel::CANDIDATES, check: Probes::new() }];
        let mut plan = LookupPlan { until: u64::MAX, least_far, check, single_heap_moves: false, ..LookupPlan::none() };
        for (rank, &probe) in lookups.iter().enumerate() {
            plan.push(&budget, rank, probe);
        }
        plan
    }

    /// This plan with the recurrence kernel for this range, where it is possible, or without that kernel.
    pub(in crate::solver) fn with_recurrence(&self, range: Option<u8>) -> LookupPlan {
        LookupPlan { recurrence: range.and_then(|range| self.as_recurrence(range)), ..self.clone() }
    }

    /// Whether all lookups are one job of the recurrence kernel.
    pub(in crate::solver) fn is_recurrence(&self) -> bool {
        self.recurrence.is_some()
    }

    /// Whether other threads can evaluate the far lookups.
    pub(in crate::solver) fn shares_far(&self) -> bool {
        self.least_far > LANES && self.is_regular() && !self.is_recurrence()
    }

    /// Whether the plan is valid for the positions `start..end`.
    pub(in crate::solver) fn holds(&self, start: u64, end: u64) -> bool {
        self.from <= start && end <= self.until
    }

    /// The lookups that are marked.
    pub(in crate::solver) fn marked(&self) -> impl Iterator<Item = &Probes> {
        [&self.mark, &self.mark_old].into_iter()
    }

    /// The far lookups.
    pub(in crate::solver) fn far(&self) -> impl Iterator<Item = &Probes> {
        self.recent().chain(self.old())
    }

    /// The lookups from offset [`LANES`] on that are not far.
    pub(in crate::solver) fn after_far(&self) -> impl Iterator<Item = &Probes> {
        [&self.middle, &self.late].into_iter()
    }

    /// The lookups from offset [`LANES`] on.
    pub(in crate::solver) fn beyond_lanes(&self) -> impl Iterator<Item = &Probes> {
        self.far().chain(self.after_far())
    }

    /// The far lookups that read the last codes.
    fn recent(&self) -> impl Iterator<Item = &Probes> {
        self.check.iter().map(|stage| &stage.check).chain([&self.mark])
    }

    /// The far lookups that read the codes before the block.
    fn old(&self) -> impl Iterator<Item = &Probes> {
        [&self.mark_old, &self.check_old].into_iter()
    }

    /// An upper bound of the offsets of the middle and far lookups that read the last codes.
    pub(in crate::solver) fn reach_of_recent(&self) -> usize {
        self.recent().map(Probes::max_offset).fold(self.least_far, usize::max)
    }

    /// Whether `recent` and `old` hold all codes that the far lookups read in the lanes from `n` on.
    pub(in crate::solver) fn can_read(&self, n: u64, recent: &Codes, old: &Codes) -> bool {
        let end = n + LANES as u64;
        let hold = |codes: &Codes, reach: usize, least: usize| {
            reach == 0 || codes.hold(n, reach as u64, end.saturating_sub(least as u64))
        };
        let reach_of_old = self.old().map(Probes::max_offset).max().unwrap_or(0);
        hold(recent, self.reach_of_recent(), self.least_far) && hold(old, reach_of_old, RECENT + 1)
    }

    /// Whether the lists of the kernels hold every common option.
    #[inline]
    pub(in crate::solver) fn is_regular(&self) -> bool {
        self.irregular.is_empty() && !self.single_heap_moves
    }

    /// Enters the lookup of this rank, which is regular, in its list.
    fn push(&mut self, budget: &Budget, rank: usize, probe: Probe) {
        if probe.offset < LANES {
            self.near.push(probe);
        } else {
            self.list_of(budget, rank, probe.offset).push(probe);
        }
    }

    /// The list of the lookup of this rank and offset, which is regular and not near.
    fn list_of(&mut self, budget: &Budget, rank: usize, offset: usize) -> &mut Probes {
        let is_old = offset > RECENT;
        if offset < self.least_far.min(LEAST_MIDDLE) {
            &mut self.late
        } else if offset < self.least_far {
            &mut self.middle
        } else if rank < budget.marks {
            if is_old { &mut self.mark_old } else { &mut self.mark }
        } else if is_old {
            &mut self.check_old
        } else {
            &mut self.check[budget.stage_of(rank)].check
        }
    }

    /// All lookups as one job of the recurrence kernel for this range, if the plan is regular and they are few.
    fn as_recurrence(&self, range: u8) -> Option<Recurrence> {
        if !self.is_regular() {
            return None;
        }
        let mut probes = Vec::new();
        for list in self.beyond_lanes().chain([self.near.probes()]) {
            probes.extend_from_slice(list.list());
        }
        let fits = |recurrence: &Recurrence| recurrence.len() * usize::from(range) <= MOST_LOOKUPS_TIMES_RANGE;
        Some(Recurrence::new(probes, range)).filter(fits)
    }
}

/// What a plan is made from.
pub(in crate::solver) struct Planner<'a> {
    pub(in crate::solver) rule: &'a Rule,
    pub(in crate::solver) space: SparseSpace,
    pub(in crate::solver) rare_positions: &'a RarePositions,
    /// All lookups, in learnt order.
    pub(in crate::solver) lookups: &'a [Lookup],
    pub(in crate::solver) budget: &'a Budget,
    /// The least offset of a far lookup.
    pub(in crate::solver) least_far: usize,
    /// The range of the recurrence kernel; `None` if the plan may not use it.
    pub(in crate::solver) recurrence_range: Option<u8>,
}

impl Planner<'_> {
    /// The plan of the positions `start..end`, valid from `start` until the first position from `end` on at which a
    /// lookup becomes irregular.
    pub(in crate::solver) fn plan(&self, start: u64, end: u64) -> LookupPlan {
        let Budget { codes, keep_late, .. } = *self.budget;
        let least_far = self.least_far;
        let mut plan = LookupPlan { from: start, until: u64::MAX, codes, least_far, keep_late, ..LookupPlan::none() };
        let single_heap_moves_until = self.single_heap_moves_until();
        plan.single_heap_moves = start < single_heap_moves_until;
        if plan.single_heap_moves {
            plan.until = single_heap_moves_until.max(end);
        }
        for stage in &self.budget.stages {
            plan.check.push(Stage { keep: stage.keep, check: Probes::new() });
        }
        for (rank, lookup) in self.lookups.iter().enumerate() {
            // `lookup.value` has no code, so its XOR with a value that has a code has none either, and is no candidate.
            if lookup.value >= self.space.coded() {
                continue;
            }
            let irregular_at = self.rare_positions.next_irregular(lookup, start);
            plan.until = plan.until.min(irregular_at.max(end));
            // Even the last n of the range is too small for the lookup.
            if lookup.offset >= end {
                continue;
            }
            if irregular_at < end {
                plan.irregular.push(*lookup);
                continue;
            }
            let probe = Probe::new(index(lookup.offset), self.space.code(lookup.value));
            plan.push(self.budget, rank, probe);
        }
        plan.with_recurrence(self.recurrence_range)
    }

    /// One past the last n at which a move that leaves one heap may have a common option that no lookup represents; 0
    /// if the rule has no such move.
    fn single_heap_moves_until(&self) -> u64 {
        if self.rule.moves().iter().all(|m| matches!(m.leaves, Leaves::Two { .. })) {
            return 0;
        }
        self.rare_positions.last() + self.rule.max_remove() + 1
    }
}

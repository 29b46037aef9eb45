//! The lookups of the positions `from..until`, sorted by the kernel job that evaluates them.
//!
//! ```text
//!                        offset of the lookup
//! rank in the order      0 ······ 64 ··········· 4096 ············· 2^18 ·········>
//! before budget.marks    near     mark           ahead_recent       ahead_old
//! from budget.marks on   near     check, in the stage of the rank
//! ```
//!
//! - *near*: the other part may be in the same 64 lanes, so these lookups are resolved one lane after the other; all
//!   other lookups are *far*;
//! - *ahead*: marked up to four pieces ahead of time by another thread, if there is one ([`pipeline`]): from its copy
//!   of the recent codes (`ahead_recent`), or from the codes before the block (`ahead_old`);
//! - *mark*: marked in the bit planes of the 64 lanes;
//! - *check*: compared with the few least codes that stay open, in stages that keep fewer and fewer;
//! - *irregular*: read one lane at a time, whatever their offset.
//!
//! Where the lookups are few and all regular, all of them are one job of the recurrence kernel instead.
//!
//! Invariant: the jobs of a regular plan, taken together, hold every common option at every n of `from..until`.
//!
//! [`pipeline`]: crate::solver::pipeline

use super::{Lookup, RarePositions};
use crate::kernel::{self, LANES, Probe, Probes, Recurrence, Stage};
use crate::theory::nimber::index;
use crate::theory::rule::{Leaves, Rule};
use crate::theory::sparse_space::SparseSpace;

/// Number of values in a piece; pieces end on multiples of it. With longer pieces fewer lookups can be marked ahead.
/// `sequence` of `cargo bench` (benches/sequence.rs) measures its effect.
pub(in crate::solver) const PIPELINE_PIECE: usize = 1024;

/// Number of values in a piece where nothing is marked ahead. `sequence/0.106` of `cargo bench` (benches/sequence.rs)
/// measures its effect.
pub(in crate::solver) const LONG_PIECE: usize = 2 * PIPELINE_PIECE;

/// The least offset, in values, of a lookup that is marked ahead of time.
pub(in crate::solver) const AHEAD: usize = 4 * PIPELINE_PIECE;

/// The largest offset, in values, of a lookup that is marked ahead in the copy of the last codes, and the maximum
/// length of this copy at the start of a block. Lookups with larger offsets are marked ahead in the codes before the
/// block.
pub(in crate::solver) const RECENT: usize = 1 << 18;

// A lookup with an offset above RECENT, from anywhere in a block or up to AHEAD after it, must read codes before the
// block.
const _: () = assert!(crate::solver::block::BLOCK + AHEAD <= RECENT);

/// Maximum number of different lookups of a game for which the stream uses [`kernel::Kernel::recurrence`]. Most
/// games with more lookups have codes outside the range of the recurrence kernel.
const MAX_RECURRENCE_LOOKUPS: usize = 320;

/// The use of the lookups by rank in the order: those before rank `marks` are marked, the others are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::solver) struct Budget {
    /// Number of codes considered (those below it); one of [`kernel::CODES`].
    pub(in crate::solver) codes: usize,
    pub(in crate::solver) marks: usize,
    /// The stages of checking. The first begins at rank `marks`, and each ends where the next begins.
    pub(in crate::solver) stages: Vec<StageBudget>,
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
    /// Lookups marked first, perhaps ahead of time, that read the recent codes: offsets of [`AHEAD`] to [`RECENT`].
    pub(in crate::solver) ahead_recent: Probes,
    /// Lookups marked first, perhaps ahead of time, that read older codes: offsets above [`RECENT`].
    pub(in crate::solver) ahead_old: Probes,
    /// Lookups marked after those of `ahead_recent` and `ahead_old`.
    pub(in crate::solver) mark: Probes,
    /// Lookups checked against the candidates that are left, stage by stage.
    pub(in crate::solver) check: Vec<Stage>,
    /// The near lookups: offsets below [`LANES`].
    pub(in crate::solver) near: Probes,
    pub(in crate::solver) irregular: Vec<Lookup>,
    /// Whether moves that leave one heap may have common options that no lookup represents.
    pub(in crate::solver) single_heap_moves: bool,
    /// All lookups, where they are few and all regular.
    pub(in crate::solver) recurrence: Option<Recurrence>,
}

impl LookupPlan {
    /// An empty plan, valid for no block.
    pub(in crate::solver) fn none() -> LookupPlan {
        LookupPlan {
            from: 0,
            until: 0,
            codes: kernel::MOST_CODES,
            ahead_recent: Probes::new(),
            ahead_old: Probes::new(),
            mark: Probes::new(),
            check: Vec::new(),
            near: Probes::new(),
            irregular: Vec::new(),
            single_heap_moves: true,
            recurrence: None,
        }
    }

    /// A plan valid for every block, with nothing but lookups to mark ahead.
    #[cfg(test)]
    pub(in crate::solver) fn marking(ahead_recent: Probes, ahead_old: Probes) -> LookupPlan {
        LookupPlan { until: u64::MAX, ahead_recent, ahead_old, single_heap_moves: false, ..LookupPlan::none() }
    }

    /// This plan without the recurrence kernel.
    pub(in crate::solver) fn without_recurrence(&self) -> LookupPlan {
        LookupPlan { recurrence: None, ..self.clone() }
    }

    /// Whether all lookups are one job of the recurrence kernel.
    pub(in crate::solver) fn is_recurrence(&self) -> bool {
        self.recurrence.is_some()
    }

    /// Whether there are lookups to mark ahead of time, and marks made ahead would be used.
    pub(in crate::solver) fn has_ahead(&self) -> bool {
        self.is_regular() && !self.is_recurrence() && self.ahead().iter().any(|list| !list.list().is_empty())
    }

    /// Whether the plan is valid for the positions `start..end`.
    pub(in crate::solver) fn holds(&self, start: u64, end: u64) -> bool {
        self.from <= start && end <= self.until
    }

    /// The lookups that are marked first, perhaps ahead of time.
    pub(in crate::solver) fn ahead(&self) -> [&Probes; 2] {
        [&self.ahead_recent, &self.ahead_old]
    }

    /// The lookups that are marked, now or ahead of time.
    pub(in crate::solver) fn marked(&self) -> impl Iterator<Item = &Probes> {
        std::iter::once(&self.mark).chain(self.ahead())
    }

    /// The lookups that are checked.
    pub(in crate::solver) fn checked(&self) -> impl Iterator<Item = &Probes> {
        self.check.iter().map(|stage| &stage.check)
    }

    /// The far lookups (offsets of at least [`LANES`]): those that are marked and those that are checked.
    pub(in crate::solver) fn far(&self) -> impl Iterator<Item = &Probes> {
        self.marked().chain(self.checked())
    }

    /// Whether the lists of the kernels hold every common option.
    #[inline]
    pub(in crate::solver) fn is_regular(&self) -> bool {
        self.irregular.is_empty() && !self.single_heap_moves
    }

    /// The list of the lookup of this rank and offset, where it is regular.
    fn list_of(&mut self, budget: &Budget, rank: usize, offset: usize) -> &mut Probes {
        if offset < LANES {
            &mut self.near
        } else if rank >= budget.marks {
            &mut self.check[budget.stage_of(rank)].check
        } else if offset > RECENT {
            &mut self.ahead_old
        } else if offset >= AHEAD {
            &mut self.ahead_recent
        } else {
            &mut self.mark
        }
    }

    /// All lookups as one job of the recurrence kernel, if the plan is regular and they are few.
    fn as_recurrence(&self) -> Option<Recurrence> {
        if !self.is_regular() {
            return None;
        }
        let mut probes = Vec::new();
        for list in self.far().chain([&self.near]) {
            probes.extend_from_slice(list.list());
        }
        Some(Recurrence::new(probes)).filter(|recurrence| recurrence.len() <= MAX_RECURRENCE_LOOKUPS)
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
    /// Whether the plan may use the recurrence kernel.
    pub(in crate::solver) may_use_recurrence: bool,
}

impl Planner<'_> {
    /// The plan of the positions `start..end`, valid from `start` until the first position from `end` on at which a
    /// lookup becomes irregular.
    pub(in crate::solver) fn plan(&self, start: u64, end: u64) -> LookupPlan {
        let mut plan = LookupPlan { from: start, until: u64::MAX, codes: self.budget.codes, ..LookupPlan::none() };
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
            // Even the last n of the block is too small for the lookup.
            if lookup.offset >= end {
                continue;
            }
            if irregular_at < end {
                plan.irregular.push(*lookup);
                continue;
            }
            let probe = Probe::new(index(lookup.offset), self.space.code(lookup.value));
            plan.list_of(self.budget, rank, probe.offset).push(probe);
        }
        if self.may_use_recurrence {
            plan.recurrence = plan.as_recurrence();
        }
        plan
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

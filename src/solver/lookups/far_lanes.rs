//! What the far and middle lookups leave in 64 lanes: the candidates of each lane.
//!
//! A thread *evaluates* the far lookups, and later a thread *revises* the lanes with the middle lookups
//! ([`pipeline`](crate::solver::pipeline)). In most lanes some of the considered codes are left then. In the others the
//! answer is a code above them, or one that a stage has cut off. The thread that finds this out *completes* the lane,
//! while the codes that the lookups read are in its cache: it reads the marked and the middle lookups again, one byte
//! each, and all others if nothing is left of the list.
//!
//! Invariant: the candidates of a lane are the least codes that no lookup evaluated so far hits, in ascending order.
//! Two kinds may still be hit: marked lookups may hit the codes that [`Lanes::is_unconsidered`] names, and middle
//! lookups those that are set aside.

use super::plan::{LEAST_MIDDLE, LookupPlan};
use crate::kernel::{self, BitPlanes, Kernel, LANES, Lanes, Probes};
use crate::solver::codes::Codes;
use std::iter::once;
use std::sync::Arc;

/// What the far lookups of a plan, and later its middle lookups, leave in 64 lanes.
#[derive(Clone, Debug)]
pub(in crate::solver) struct FarLanes {
    /// The plan, to be compared by address; `None` in unused memory.
    plan: Option<Arc<LookupPlan>>,
    /// The candidates. All but the first [`LookupPlan::keep_late`] of them are set aside.
    pub(in crate::solver) lanes: Lanes,
    /// Number of lanes that were completed by reading all lookups, because none of their candidates was left.
    pub(in crate::solver) lost: u64,
    /// Whether the candidates were compared with the middle lookups.
    is_revised: bool,
}

/// Lanes that pass from thread to thread without being copied.
pub(in crate::solver) type SharedLanes = Box<FarLanes>;

/// The codes that the lookups of 64 lanes read.
#[derive(Clone, Copy, Debug)]
pub(in crate::solver) struct LaneCodes<'a> {
    /// The last codes, and the index of lane 0.
    recent: (&'a [u8], usize),
    /// The codes that lookups with an offset above [`RECENT`](super::plan::RECENT) read, and the index of lane 0.
    old: (&'a [u8], usize),
}

impl<'a> LaneCodes<'a> {
    /// Codes in two windows, each with the index of lane 0.
    pub(in crate::solver) fn of_two(recent: (&'a [u8], usize), old: (&'a [u8], usize)) -> LaneCodes<'a> {
        LaneCodes { recent, old }
    }

    /// All codes in one window, in which lane 0 has this index.
    pub(in crate::solver) fn of(window: &'a [u8], at: usize) -> LaneCodes<'a> {
        LaneCodes::of_two((window, at), (window, at))
    }

    /// Enters the codes that lookups hit in one lane: `recent` lookups read the last codes, `old` ones the others.
    fn enter<'p>(
        self,
        lane: usize,
        recent: impl Iterator<Item = &'p Probes>,
        old: impl Iterator<Item = &'p Probes>,
        hits: &mut Hits,
    ) {
        enter_hits(self.recent.0, self.recent.1 + lane, recent, hits);
        enter_hits(self.old.0, self.old.1 + lane, old, hits);
    }
}

impl Default for FarLanes {
    fn default() -> FarLanes {
        FarLanes { plan: None, lanes: Lanes::none(), lost: 0, is_revised: false }
    }
}

impl FarLanes {
    /// Whether the far lookups of this very plan were evaluated.
    pub(in crate::solver) fn is_of(&self, plan: &Arc<LookupPlan>) -> bool {
        self.plan.as_ref().is_some_and(|own| Arc::ptr_eq(own, plan))
    }

    /// Lets the processor begin to load what the middle and late lookups read of these lanes: at most `rows` candidates
    /// per lane.
    pub(in crate::solver) fn prefetch(&self, rows: usize) {
        kernel::prefetch(&self.plan);
        kernel::prefetch(&self.lost);
        self.lanes.prefetch(rows);
    }

    /// Evaluates the far lookups of a plan. `planes` is memory for the marks.
    ///
    /// # Panics
    /// If a far lookup reads codes outside of its window.
    pub(in crate::solver) fn evaluate(
        &mut self,
        plan: &Arc<LookupPlan>,
        kernel: Kernel,
        codes: LaneCodes<'_>,
        planes: &mut BitPlanes,
    ) {
        let LaneCodes { recent, old } = codes;
        planes.clear(plan.codes);
        kernel.mark(old.0, old.1, &plan.mark_old, planes);
        kernel.mark(recent.0, recent.1, &plan.mark, planes);
        self.lanes = kernel.refine(recent.0, recent.1, planes, &plan.check);
        kernel.check(old.0, old.1, &plan.check_old, &mut self.lanes);
        self.lost = 0;
        self.is_revised = plan.middle.list().is_empty();
        self.complete(plan, codes);
        self.lanes.set_aside(plan.keep_late);
        self.plan = Some(Arc::clone(plan));
    }

    /// Whether two copies of the codes hold all codes that the far and middle lookups read in these lanes, which begin
    /// at position `n`.
    pub(in crate::solver) fn can_revise(&self, n: u64, recent: &Codes, old: &Codes) -> bool {
        let known = (n + LANES as u64).saturating_sub(LEAST_MIDDLE as u64);
        let holds_middle = |plan: &LookupPlan| recent.hold(n, plan.middle.max_offset() as u64, known);
        self.plan.as_ref().is_none_or(|plan| holds_middle(plan) && plan.can_read(n, recent, old))
    }

    /// Removes the candidates that middle lookups hit, except those set aside, and completes the lanes that then have
    /// no considered code. Does nothing if the lanes are revised already.
    ///
    /// # Panics
    /// If a middle or far lookup reads codes outside of its window.
    pub(in crate::solver) fn revise(&mut self, kernel: Kernel, codes: LaneCodes<'_>) {
        if !self.is_revised
            && let Some(plan) = self.plan.take()
        {
            kernel.check(codes.recent.0, codes.recent.1, &plan.middle, &mut self.lanes);
            self.is_revised = true;
            self.complete(&plan, codes);
            self.plan = Some(plan);
        }
    }

    /// Finds the candidates of the lanes in which no considered code is left.
    fn complete(&mut self, plan: &LookupPlan, codes: LaneCodes<'_>) {
        for lane in self.lanes.incomplete() {
            self.complete_lane(lane, plan, codes);
        }
    }

    /// Finds the candidates of a lane in which no considered code is left.
    fn complete_lane(&mut self, lane: usize, plan: &LookupPlan, codes: LaneCodes<'_>) {
        let mut hits = [0; 256];
        let middle = self.is_revised.then_some(&plan.middle);
        codes.enter(lane, once(&plan.mark).chain(middle), once(&plan.mark_old), &mut hits);
        // All considered codes are hit, so those that are left of the list are the least ones that are not.
        let left = self.lanes.of(lane).into_iter().filter(|&code| code != kernel::NONE && hits[usize::from(code)] == 0);
        let mut left = left.peekable();
        if left.peek().is_some() {
            return self.lanes.complete(lane, left);
        }
        self.lost += 1;
        codes.enter(lane, plan.check.iter().map(|stage| &stage.check), once(&plan.check_old), &mut hits);
        self.lanes.complete(lane, (0..=u8::MAX).filter(|&code| hits[usize::from(code)] == 0));
    }
}

/// The codes that are options in one lane: entry `code` is not 0.
pub(in crate::solver) type Hits = [u8; 256];

/// Enters the codes that these lookups hit at the position of index `at` of some codes.
#[inline]
pub(in crate::solver) fn enter_hits<'a>(
    codes: &[u8],
    at: usize,
    lists: impl Iterator<Item = &'a Probes>,
    hits: &mut Hits,
) {
    for list in lists {
        // One loop per list: the loop over a flattened iterator is slower.
        list.list().iter().for_each(|probe| hits[usize::from(codes[at - probe.offset] ^ probe.code())] = 1);
    }
}

#[cfg(test)]
impl FarLanes {
    /// Whether a lane was completed.
    pub(in crate::solver) fn is_completed(&self, lane: usize) -> bool {
        !self.lanes.is_unconsidered(lane, kernel::NONE - 1)
    }

    /// Number of lanes that were completed.
    pub(in crate::solver) fn count_completed(&self) -> usize {
        (0..LANES).filter(|&lane| self.is_completed(lane)).count()
    }

    /// The candidates of a lane that no marked lookup hits: those that are not set aside, and all.
    pub(in crate::solver) fn unmarked_candidates(&self, lane: usize) -> [Vec<u8>; 2] {
        let in_rows = |rows: &[[u8; LANES]]| -> Vec<u8> {
            let codes = rows.iter().map(|row| row[lane]).take_while(|&code| code != kernel::NONE);
            codes.take_while(|&code| !self.lanes.is_unconsidered(lane, code)).collect()
        };
        let first = in_rows(self.lanes.rows());
        let all = [&first[..], &in_rows(self.lanes.aside())].concat();
        [first, all]
    }
}

/// The codes that no lookup in these lists hits at the position of index `at` of a window, by plain comparisons.
#[cfg(test)]
pub(in crate::solver) fn unhit_codes<'a>(window: &[u8], at: usize, lists: impl Iterator<Item = &'a Probes>) -> Vec<u8> {
    let hits: Vec<u8> = lists.flat_map(Probes::list).map(|p| window[at - p.offset] ^ p.code()).collect();
    (0..kernel::NONE).filter(|code| !hits.contains(code)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Probe;
    use crate::solver::lookups::plan::LEAST_FAR;
    use crate::support::Random;
    use crate::theory::nimber::index;

    /// A plan of random far lookups, and as many middle lookups as `middle` says.
    fn random_plan(random: &mut Random, at: usize, spread: usize, [far, middle]: [usize; 2]) -> LookupPlan {
        let mut index = |below: usize| index(random.below(below as u64));
        let far = (0..far).map(|_| [LEAST_FAR[3] + index(at + 1 - LEAST_FAR[3]), index(spread)]).collect::<Vec<_>>();
        let middle = (0..middle).map(|_| [LEAST_MIDDLE + index(LEAST_FAR[3] - LEAST_MIDDLE), index(spread)]);
        let probes: Vec<Probe> =
            far.into_iter().chain(middle).map(|[offset, code]| Probe::new(offset, code.to_le_bytes()[0])).collect();
        let mut plan = LookupPlan::of_lookups(LEAST_FAR[3], &probes);
        (plan.codes, plan.keep_late) = (kernel::CODES[index(6)], kernel::KEEP[index(7)]);
        plan
    }

    /// Few codes and many lookups, so that many lanes lose all codes considered, some of them only to middle lookups.
    /// The expected candidates come from plain comparisons.
    #[test]
    fn each_lane_has_the_least_codes_that_no_lookup_hits() {
        let random = &mut Random::new("far lanes");
        let mut planes = BitPlanes::default();
        let [mut completed, mut completed_later, mut usual] = [0; 3];
        for round in 0..256 {
            let (spread, count) = ([20, 40, 100, 256][round % 4], [10, 60, 200, 600][round / 4 % 4]);
            let mut index = |below: usize| index(random.below(below as u64));
            let window: Vec<u8> = (0..8 * LEAST_FAR[3]).map(|_| index(spread).to_le_bytes()[0]).collect();
            let (at, middle) = (4 * LEAST_FAR[3] + index(1000), 1 + index(200));
            let plan = Arc::new(random_plan(random, at, spread, [count, middle]));
            let codes = LaneCodes::of(&window, at);
            for kernel in Kernel::available() {
                let mut evaluated = FarLanes::default();
                evaluated.evaluate(&plan, kernel, codes, &mut planes);
                assert_eq!(evaluated.lanes.rows().len(), plan.keep_late);
                let mut revised = evaluated.clone();
                revised.revise(kernel, codes);
                for lane in 0..LANES {
                    let what = format!("{kernel}, lane {lane}, round {round}");
                    let expected = unhit_codes(&window, at + lane, plan.far());
                    let [_, found] = evaluated.unmarked_candidates(lane);
                    assert_eq!(found, expected[..found.len()], "{what}");
                    // A lane has no candidate only if no code is left.
                    assert!(!found.is_empty() || expected.is_empty(), "{what}");
                    let expected = unhit_codes(&window, at + lane, plan.far().chain([&plan.middle]));
                    let [first, all] = revised.unmarked_candidates(lane);
                    let completed_before = evaluated.is_completed(lane);
                    let completed_now = revised.is_completed(lane) && !completed_before;
                    // Candidates set aside are compared with middle lookups only where the lane is completed.
                    let found = if completed_now { &all } else { &first };
                    assert_eq!(found[..], expected[..found.len()], "revised, {what}");
                    // A lane completed before may have lost all its candidates again.
                    assert!(completed_before || !all.is_empty() || expected.is_empty(), "revised, {what}");
                    completed += u32::from(completed_before);
                    completed_later += u32::from(completed_now);
                    usual += u32::from(!revised.is_completed(lane));
                }
            }
        }
        assert!(
            completed > 500 && completed_later > 500 && usual > 500,
            "{completed} lanes were completed, {completed_later} were when they were revised, {usual} were not"
        );
    }
}

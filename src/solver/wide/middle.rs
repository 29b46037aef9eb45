//! The middle options of a run: those with a part in the lead, and none in the run.
//!
//! The middle step removes them from the values that the far step left open. The producer does it when all values
//! before the run are known. Where many threads work, the lead is long, so another thread does a part of it a little
//! earlier: it *revises* the lanes, with the values known then, and replaces the candidates that are lost. The producer
//! removes the other middle options.
//!
//! Invariant: every common value up to the last candidate that a lane ever had is a candidate, a far option, or a
//! middle option both of whose parts are before [`FarRun::known`]. The same holds for every such rare value, but the
//! candidates are all common: an open rare value is in [`FarLane::searched_rare`] or [`FarLane::unsearched_rare`].

use super::candidates::Search;
use super::far::{FarLane, FarRun, FurtherValues, hits, without_constant};
use super::reader::Reader;
use super::run::Run;
use crate::kernel::{Kernel, WIDE_LANES};
use std::ops::Range;

/// Number of candidates that a revised lane should have. A lane with fewer is searched again, for at most as many more.
/// Two, because the near step may remove the first.
const WANTED: usize = 2;

impl Reader<'_> {
    /// Removes middle options from the values that the far options leave open, as far as this thread knows the values
    /// before the run. It does not remove them from the further values.
    pub(super) fn remove_middle(&self, kernel: Kernel, run: Run<'_>, far: &mut FarRun) {
        let known = self.end().min(run.first);
        self.remove_options(kernel, far.known..known, run.positions().zip(&mut far.lanes));
        far.known = known;
    }

    /// Revises the lanes: removes middle options, as far as this thread knows the values before the run. If some
    /// position with further values has no candidate left, searches more candidates for each position that has further
    /// values and fewer candidates than [`WANTED`]. Searches pairs for the rare values below the least candidate.
    pub(super) fn revise(&self, kernel: Kernel, run: Run<'_>, far: &mut FarRun) {
        self.remove_middle(kernel, run, far);
        let lacks = |lane: &FarLane, needed: usize| lane.candidates.len() < needed && !lane.values_after.is_empty();
        let FarRun { lanes, known } = far;
        if lanes.iter().any(|lane| lacks(lane, 1)) {
            let lacking: Vec<usize> = (0..lanes.len()).filter(|&lane| lacks(&lanes[lane], WANTED)).collect();
            self.find_more_candidates(kernel, run, &lacking, lanes);
            let changed = run.positions().zip(&mut *lanes).enumerate().filter(|(lane, _)| lacking.contains(lane));
            self.remove_options(kernel, run.known..*known, changed.map(|(_, changed)| changed));
        }
        for (n, lane) in run.positions().zip(lanes) {
            self.search_later(kernel, n, run, lane);
        }
    }

    /// Removes from lanes, except from their further values, the options of their positions with a part in `parts`,
    /// positions before the run that the far step did not know. This thread knows their values.
    fn remove_options<'l>(
        &self,
        kernel: Kernel,
        parts: Range<u64>,
        lanes: impl Iterator<Item = (u64, &'l mut FarLane)>,
    ) {
        let mut open = Vec::new();
        for (n, lane) in lanes {
            let lists = [&mut lane.candidates, &mut lane.searched_rare, &mut lane.unsearched_rare];
            open.clear();
            lists.iter().for_each(|values| open.extend_from_slice(values));
            let count = open.len();
            for split in self.solver.rule.splits() {
                let smaller = |part: u64| (n + 1).saturating_sub(split.remove + part);
                let (small, large) = self.small_part_values(n, &split, smaller(parts.end).max(1)..smaller(parts.start));
                without_constant(&split, &mut open, |open| kernel.remove_pair_values(small, large, open));
            }
            if open.len() < count {
                lists.into_iter().for_each(|values| values.retain(|value| open.contains(value)));
            }
        }
    }

    /// Finds up to [`WANTED`] more candidates for each of the lanes `lacking`, among their further values. Middle
    /// options may be among them.
    pub(super) fn find_more_candidates(&self, kernel: Kernel, run: Run<'_>, lacking: &[usize], lanes: &mut [FarLane]) {
        let mut further = vec![FurtherValues::default(); WIDE_LANES];
        lacking.iter().for_each(|&lane| further[lane] = lanes[lane].values_after.clone());
        let is_rare = |lane: usize, value: &u16| self.solver.is_rare(*value, run.first + lane as u64);
        let common = |lane: usize| further[lane].values().filter(move |value| !is_rare(lane, value));
        let stages = self.stages(run);
        let search = Search::new(WANTED, stages.len(), (0..WIDE_LANES).map(common).collect());
        let search = search.run(|stage, rows| hits(kernel, &stages[stage], rows));
        for &lane in lacking {
            let FarLane { candidates, unsearched_rare, values_after, .. } = &mut lanes[lane];
            let more = || search.passed(lane).take(WANTED);
            candidates.extend(more());
            if let Some(last) = more().last() {
                let is_before = |value: &u16| *value < last;
                unsearched_rare
                    .extend(further[lane].values().take_while(is_before).filter(|value| is_rare(lane, value)));
                *values_after = further[lane].after(last);
            }
        }
    }

    /// Searches pairs for the rare values below the least candidate that no search has tried.
    fn search_later(&self, kernel: Kernel, n: u64, run: Run<'_>, lane: &mut FarLane) {
        let FarLane { candidates, searched_rare, unsearched_rare, searched, .. } = lane;
        let Some(&least) = candidates.first() else { return };
        let count = unsearched_rare.partition_point(|&value| value < least);
        let mut below: Vec<u16> = unsearched_rare.drain(..count).collect();
        if !below.is_empty() {
            searched.add(self.search_far(kernel, n, run, &mut below));
            searched_rare.append(&mut below);
        }
    }
}

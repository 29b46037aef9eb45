//! The near options of the positions of a run, and their values.

use super::deep::is_skipped;
use super::far::{FarLane, Searched, without_constant};
use super::lookups::SplitLookups;
use super::reader::Reader;
use super::recent_parts::RecentParts;
use super::run::Run;
use super::step::Step;
use crate::error::{Error, Result};
use crate::kernel::WidePart;
use crate::solver::Work;
use crate::solver::witnesses::HEAD_PARTS;
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::rule::Split;

/// What the near step finds beside the values.
pub(super) struct Found {
    /// The rare positions, ascending, with their values.
    pub(super) rare_positions: Vec<(u64, u16)>,
    /// The parts of the last pairs found.
    pub(super) recent: RecentParts,
    /// Number of searches for a rare value; a value that several steps search counts several times.
    pub(super) searches: u64,
    /// Number of these searches that compared all pairs.
    pub(super) deep_searches: u64,
    /// Number of positions that were left without a candidate.
    pub(super) without_candidate: u64,
}

/// The near step: one position after the other.
pub(super) struct NearStep<'a> {
    step: &'a Step<'a>,
    /// Its values end before the next position.
    pub(super) reader: Reader<'a>,
    past: &'a dyn Sequence,
    pub(super) work: &'a mut Work,
    /// Memory for the near options of a position.
    near: Vec<u16>,
    pub(super) found: Found,
}

impl<'a> NearStep<'a> {
    /// The near step before its first position.
    pub(super) fn new(step: &'a Step<'a>, past: &'a dyn Sequence, work: &'a mut Work) -> NearStep<'a> {
        let found = Found {
            rare_positions: Vec::new(),
            recent: step.solver.recent.clone(),
            searches: 0,
            deep_searches: 0,
            without_candidate: 0,
        };
        NearStep { step, reader: Reader::new(step.solver), past, work, near: Vec::new(), found }
    }

    /// Finds the values of the positions of `run` before `end`, where the far options leave `lanes` open. Returns
    /// whether the step can continue: not after a value for which the solver must change.
    ///
    /// # Errors
    /// [`Error::ValueTooLarge`], and any error of reading the values before. The values before the error are found.
    pub(super) fn run(&mut self, run: Run<'_>, lanes: &[FarLane], end: u64) -> Result<bool> {
        let solver = self.reader.solver;
        let too_near = self.too_near(run);
        for lane in lanes.iter().take(index(end - run.first)) {
            let value = self.value(lane, run, &too_near)?;
            self.reader.push(&[value]);
            let needs_all_values = !self.found.rare_positions.is_empty() && !solver.holds_all();
            if needs_all_values || usize::from(value) >= solver.classes.bound() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The pairs of parts of a run that the far step left out, because they are too near to each other.
    pub(super) fn too_near(&self, run: Run<'_>) -> Vec<(Split, Vec<WidePart>)> {
        let of = |lookups: &SplitLookups| {
            let SplitLookups { split, all, .. } = lookups;
            (*split, all.parts[all.too_near(split, run.positions())].to_vec())
        };
        if self.reader.solver.all_pairs.in_far_step { Vec::new() } else { self.reader.lookups().map(of).collect() }
    }

    /// The position whose value is next.
    fn n(&self) -> u64 {
        self.reader.end()
    }

    /// The value of the next position, which is in `run`, where the far options leave `lane` open. `too_near` are the
    /// pairs that the far step left out.
    fn value(&mut self, lane: &FarLane, run: Run<'_>, too_near: &[(Split, Vec<WidePart>)]) -> Result<u16> {
        let mut near = std::mem::take(&mut self.near);
        near.clear();
        self.near_options(run, too_near, &mut near);
        let value = self.value_from_candidates(&near, lane, run);
        self.near = near;
        value
    }

    /// [`NearStep::value`] where the near options are given.
    fn value_from_candidates(&mut self, near: &[u16], lane: &FarLane, run: Run<'_>) -> Result<u16> {
        let solver = self.reader.solver;
        self.note(&lane.searched);
        let candidate = lane.candidates.iter().copied().find(|value| !near.contains(value));
        // Each common value up to the last candidate that the lane ever had is a candidate or an option. So if every
        // candidate is a near option, G(n) is the least open rare value below that candidate, provided that all pairs
        // were compared, that is, memory holds all values. Without such a value, `value_from_further_values` decides.
        let below = candidate.unwrap_or(u16::MAX);
        let open = |rare: &[u16]| -> Vec<u16> {
            rare.iter().copied().take_while(|&t| t < below).filter(|t| !near.contains(t)).collect()
        };
        let (mut open, mut later) = (open(&lane.searched_rare), open(&lane.unsearched_rare));
        if !later.is_empty() {
            let searched = self.reader.search_far(solver.kernel, self.n(), run, &mut later);
            self.note(&searched);
            open.append(&mut later);
        }
        if candidate.is_none() && (open.is_empty() || !solver.holds_all()) {
            return self.value_from_further_values(lane, run, near);
        }
        self.decide(run, candidate, &open)
    }

    /// The value of the next position, which is in `run`, where `candidate` is the least common value that is no
    /// option, if there is one, and `open` are the smaller rare values that no compared pair gives, ascending.
    fn decide(&mut self, run: Run<'_>, candidate: Option<u16>, open: &[u16]) -> Result<u16> {
        let (n, solver) = (self.n(), self.reader.solver);
        let compared = if solver.all_pairs.in_far_step { n } else { HEAD_PARTS.max(solver.marks.depth) };
        self.work.depth = self.work.depth.max(compared.min(n / 2));
        let open: Vec<u16> = open.iter().copied().filter(|&target| !is_skipped(target)).collect();
        // Where memory holds all values, all pairs were compared.
        let least = if solver.holds_all() { open.first().copied() } else { self.least_missing(run, open)? };
        let Some(rare) = least else {
            return candidate.ok_or(Error::ValueTooLarge { n });
        };
        self.found.rare_positions.push((n, rare));
        // All pairs were compared with this value, as in a search.
        self.work.exhaustive_searches += u64::from(solver.all_pairs.in_far_step);
        Ok(rare)
    }

    /// The least of the targets, ascending and no near options, that no pair of parts of the next position gives;
    /// `None` if pairs give all of them.
    ///
    /// # Errors
    /// Any error of reading the values before.
    fn least_missing(&mut self, run: Run<'_>, mut targets: Vec<u16>) -> Result<Option<u16>> {
        let n = self.n();
        let (_, others) = run.recent.first_and_others();
        for part in self.reader.search_recent(n, run, others, &mut targets) {
            self.work.depth = self.work.depth.max(part.min(n - part));
            self.found.recent.note(part);
        }
        for target in targets {
            self.work.exhaustive_searches += 1;
            self.found.deep_searches += 1;
            let find = |alone: bool| self.reader.find_pair(n, target, self.past, alone);
            let pair = self.step.search(find).map_err(|error| error.for_heap(n))?;
            let Some((part, other)) = pair else { return Ok(Some(target)) };
            self.work.depth = self.work.depth.max(part);
            // Nothing tells which of the two parts the next pairs will share.
            self.found.recent.note(part);
            self.found.recent.note(other);
        }
        Ok(None)
    }

    /// Counts what a search met, and remembers the parts of the pairs that it found.
    fn note(&mut self, searched: &Searched) {
        let n = self.n();
        self.work.exhaustive_searches += searched.deep;
        self.found.searches += searched.targets;
        self.found.deep_searches += searched.deep;
        for &part in &searched.parts {
            self.work.depth = self.work.depth.max(part.min(n - part));
            self.found.recent.note(part);
        }
    }

    /// The least smaller part of a pair of the next position whose other part is before the run.
    fn first_beyond_run(&self, run: Run<'_>, split: &Split) -> u64 {
        (self.n() + 1).saturating_sub(split.remove + run.first).max(1)
    }

    /// Appends the near options: those of moves that leave one heap or none, all pairs with a part in the run, and the
    /// pairs of parts so near to each other that the far step left them out.
    pub(super) fn near_options(&self, run: Run<'_>, too_near: &[(Split, Vec<WidePart>)], near: &mut Vec<u16>) {
        let (n, reader) = (self.n(), &self.reader);
        near.extend(reader.solver.rule.single_options(n, |m| reader.value(m)));
        for split in reader.solver.rule.splits() {
            near.extend(reader.small_part_options(n, &split, 1..self.first_beyond_run(run, &split)));
        }
        for (split, parts) in too_near {
            near.extend(parts.iter().filter_map(|part| reader.option(n, split, part)));
        }
    }

    /// The value of the next position, which is in `run`, where `lane` has no candidates or each of them is a near
    /// option. The next candidate is the least of the first further values that is no option.
    pub(super) fn value_from_further_values(&mut self, lane: &FarLane, run: Run<'_>, near: &[u16]) -> Result<u16> {
        /// Maximum number of further values that are compared.
        const COMPARED: usize = 16;
        let (n, solver) = (self.n(), self.reader.solver);
        self.found.without_candidate += 1;
        let is_common = |v: &u16| !solver.is_rare(*v, n);
        let mut common: Vec<u16> = lane.values_after.values().filter(is_common).take(COMPARED).collect();
        self.remove_other_options(run, near, &mut common);
        let Some(candidate) = common.into_iter().min() else { return self.value_from_all_options(lane, run, near) };
        self.check_further(run, candidate)?;
        // All rare values before the further ones that are not in the lists are options.
        let rare = lane.searched_rare.iter().chain(&lane.unsearched_rare).copied().chain(lane.values_after.values());
        let mut rare: Vec<u16> = rare.take_while(|v| *v < candidate).filter(|v| !is_common(v)).collect();
        self.remove_other_options(run, near, &mut rare);
        rare.sort_unstable();
        let searched = self.reader.search_far(solver.kernel, n, run, &mut rare);
        self.note(&searched);
        self.decide(run, Some(candidate), &rare)
    }

    /// Removes from further values of a lane, or values of its lists, the options of the next position: `near`, the
    /// pairs with a part that the far step did not know, and the lookups that are not marked. The far step entered all
    /// other pairs with a rare part, so none of them gives such a value.
    fn remove_other_options(&self, run: Run<'_>, near: &[u16], targets: &mut Vec<u16>) {
        let (n, solver) = (self.n(), self.reader.solver);
        targets.retain(|target| !near.contains(target));
        for split in solver.rule.splits() {
            let parts = self.first_beyond_run(run, &split)..run.far() as u64;
            let (small, large) = self.reader.small_part_values(n, &split, parts);
            without_constant(&split, targets, |targets| solver.kernel.remove_pair_values(small, large, targets));
        }
        if targets.is_empty() {
            return;
        }
        let mut seen = vec![false; solver.classes.bound()];
        for SplitLookups { split, unmarked, .. } in self.reader.lookups() {
            self.reader.enter_options(n, split, unmarked, &mut seen);
        }
        targets.retain(|target| !seen[usize::from(*target)]);
    }

    /// Compares a further value that is to be a candidate with all lookups, marked or not, where the run is audited.
    ///
    /// # Errors
    /// [`Error::OptionsDiffer`] when it is an option.
    fn check_further(&self, run: Run<'_>, candidate: u16) -> Result<()> {
        let (n, solver) = (self.n(), self.reader.solver);
        if !solver.is_audited(run) {
            return Ok(());
        }
        let is_option = |lookups: &SplitLookups| {
            let mut seen = vec![false; solver.classes.bound()];
            self.reader.enter_options(n, &lookups.split, &lookups.all, &mut seen);
            seen[usize::from(candidate)]
        };
        if self.reader.lookups().any(is_option) {
            return Err(solver.options_differ(run, index(n - run.first)));
        }
        Ok(())
    }

    /// The value of the next position, which is in `run`, where neither a candidate of `lane` nor one of the first
    /// further values is left, or where all pairs are compared: all options with a rare part enter a set.
    pub(super) fn value_from_all_options(&mut self, lane: &FarLane, run: Run<'_>, near: &[u16]) -> Result<u16> {
        let (n, solver) = (self.n(), self.reader.solver);
        let mut seen = vec![false; solver.classes.bound()];
        for SplitLookups { split, all, .. } in self.reader.lookups() {
            self.reader.enter_options(n, split, all, &mut seen);
        }
        let most = seen.len() - 1; // see `Reader::enter_options`
        let mut enter = |option: u16| seen[usize::from(option) & most] = true;
        near.iter().copied().for_each(&mut enter);
        for split in solver.rule.splits() {
            let parts = self.first_beyond_run(run, &split)..run.far() as u64;
            self.reader.small_part_options(n, &split, parts).for_each(&mut enter);
            if solver.all_pairs.in_far_step {
                self.reader.pair_options(n, &split, run.far() as u64).for_each(&mut enter);
            }
        }
        let is_open = |v: &u16| !seen.get(usize::from(*v)).is_some_and(|&seen| seen);
        let is_common = |v: &u16| !solver.is_rare(*v, n);
        // All common values before the further ones are options, and so are all rare ones that are not in the lists.
        let listed =
            lane.searched_rare.iter().chain(&lane.unsearched_rare).copied().filter(|_| !solver.all_pairs.in_far_step);
        let values = || lane.values_after.values().chain(lane.values_after.rest());
        let candidate = values().find(|v| is_common(v) && is_open(v));
        let is_below = |v: &u16| candidate.is_none_or(|candidate| *v < candidate);
        let rare = listed.chain(values()).take_while(is_below);
        let mut open: Vec<u16> = rare.filter(|v| !is_common(v) && is_open(v)).collect();
        if !solver.all_pairs.in_far_step {
            let searched = self.reader.search_far(solver.kernel, n, run, &mut open);
            self.note(&searched);
        }
        self.decide(run, candidate, &open)
    }
}

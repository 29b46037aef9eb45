//! The near options of one position, and its value.

use super::far::{FarLane, Run, Searched};
use super::{WideSolver, read_from};
use crate::error::{Error, Result};
use crate::kernel::WidePart;
use crate::solver::Work;
use crate::solver::window::Window;
use crate::solver::witnesses::{HEAD_PARTS, Joined};
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::rule::Split;

impl WideSolver {
    /// The next value, a position of `run`, where the far options leave `lane` open. Enters the position if it is rare.
    ///
    /// # Errors
    /// [`Error::ValueTooLarge`], and any error of reading `past`.
    pub(super) fn near_value<S: Sequence + ?Sized>(
        &mut self,
        lane: &FarLane,
        run: Run,
        past: &S,
        work: &mut Work,
    ) -> Result<u16> {
        let n = self.end();
        self.note(&lane.searched, work);
        let near = self.near_options(n, run);
        let candidate = lane.candidates.iter().copied().find(|value| !near.contains(value));
        // All common values below the last candidate that are no candidates are options. So if near options have all
        // candidates, the least rare value that no pair gives is the value of n. Only where memory holds all values, all
        // pairs were compared.
        let below = candidate.unwrap_or(u16::MAX);
        let open = |rare: &[u16]| -> Vec<u16> {
            rare.iter().copied().take_while(|&t| t < below).filter(|t| !near.contains(t)).collect()
        };
        let (mut open, mut later) = (open(&lane.open), open(&lane.later));
        if !lane.searched.is_complete {
            // A rare position of this batch may have brought all values into memory.
            later.append(&mut open);
        }
        if !later.is_empty() {
            let searched = self.search_far(self.kernel, n, run, &mut later);
            self.note(&searched, work);
            open.append(&mut later);
        }
        if candidate.is_none() && (open.is_empty() || !self.holds_all()) {
            return self.plain_value(run, past, work);
        }
        self.decide(candidate, &open, past, work)
    }

    /// The next value, where `candidate` is the least common value that is no option, if there is one, and `open` are the
    /// smaller rare values that no compared pair gives, ascending. Enters the position if it is rare.
    fn decide<S: Sequence + ?Sized>(
        &mut self,
        candidate: Option<u16>,
        open: &[u16],
        past: &S,
        work: &mut Work,
    ) -> Result<u16> {
        let n = self.end();
        let compared = if self.marks.all_pairs { n } else { HEAD_PARTS.max(self.marks.depth) };
        work.depth = work.depth.max(compared.min(n / 2));
        // Where memory holds all values, all pairs were compared.
        let least = if self.holds_all() { self.least_open(open) } else { self.least_missing(open, past, work)? };
        let Some(rare) = least else {
            return candidate.ok_or(Error::ValueTooLarge { n });
        };
        if self.values.start() > 0 {
            // The lookups of the new rare position read all values from G(1) on.
            let all = Joined { past, recent: &self.values, end: n };
            let values = read_from(0, n, &all).map_err(|error| error.for_heap(n))?;
            self.values = Window::new(0, values);
        }
        self.enter(n, rare);
        work.found_rare += 1;
        // All pairs were compared with this value, as in a search.
        work.exhaustive_searches += u64::from(self.marks.all_pairs);
        Ok(rare)
    }

    /// Counts what a search met, and remembers the parts of the pairs that it found.
    fn note(&mut self, searched: &Searched, work: &mut Work) {
        let n = self.end();
        work.exhaustive_searches += searched.deep;
        self.marks.targets += searched.targets;
        self.marks.deep += searched.deep;
        for &part in &searched.parts {
            work.depth = work.depth.max(part.min(n - part));
            self.deep.note(part);
        }
    }

    /// The near options: those of moves that leave one heap or none, all pairs with a part in the batch, and the pairs
    /// of parts so near to each other that the far step left them out.
    fn near_options(&self, n: u64, run: Run) -> Vec<u16> {
        let mut near = Vec::with_capacity(index(n - run.batch + 64) * self.lookups.len());
        near.extend(self.rule.single_options(n, |m| self.values.get(m)));
        for lookups in &self.lookups {
            let split = lookups.split;
            let nearest = (n - run.batch + 1).saturating_sub(split.remove);
            self.small_part_options(n, &split, 1..nearest, |option| near.push(option));
            if !self.marks.all_pairs {
                let too_near = &lookups.parts[lookups.too_near(run.positions())];
                near.extend(too_near.iter().filter_map(|part| self.option(n, &split, part)));
            }
        }
        near
    }

    /// The option of a lookup, if its two parts exist and are far enough apart.
    fn option(&self, n: u64, split: &Split, part: &WidePart) -> Option<u16> {
        let (offset, r) = (part.offset as u64, part.offset as u64 - split.remove);
        let other = n.checked_sub(offset)?;
        (other > 0 && other.abs_diff(r) >= split.min_difference).then(|| part.value ^ self.values.get(other))
    }

    /// The option of a pair with smaller part `a`, both values of which memory holds.
    pub(super) fn pair_option(&self, n: u64, split: &Split, a: u64) -> u16 {
        let value = if a < HEAD_PARTS { self.head.value(a) } else { self.values.get(a) };
        split.constant ^ value ^ self.values.get(n - split.remove - a)
    }

    /// The next value, a position of `run`, where no candidate is left: all options with a rare part enter a set.
    fn plain_value<S: Sequence + ?Sized>(&mut self, run: Run, past: &S, work: &mut Work) -> Result<u16> {
        let n = self.end();
        let mut seen = vec![false; 1 << 16];
        let mut enter = |option: u16| seen[usize::from(option)] = true;
        self.near_options(n, run).into_iter().for_each(&mut enter);
        for lookups in &self.lookups {
            let split = lookups.split;
            self.small_part_options(n, &split, 1..run.far() as u64, &mut enter);
            lookups.parts.iter().filter_map(|part| self.option(n, &split, part)).for_each(&mut enter);
            if self.marks.all_pairs {
                (run.far() as u64..=split.largest_small_part(n)).for_each(|a| enter(self.pair_option(n, &split, a)));
            }
        }
        let is_open = |&v: &u16| !self.is_rare(v, n) && !seen[usize::from(v)];
        let candidate = (0..=u16::MAX).find(is_open);
        let is_target = |&t: &u16| self.is_rare(t, n) && !seen[usize::from(t)];
        let mut open: Vec<u16> = (0..=candidate.unwrap_or(u16::MAX)).filter(is_target).collect();
        if !self.marks.all_pairs {
            let searched = self.search_far(self.kernel, n, run, &mut open);
            self.note(&searched, work);
        }
        self.decide(candidate, &open, past, work)
    }
}

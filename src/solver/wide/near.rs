//! The near options of one position, and its value.

use super::WideSolver;
use super::far::FarLane;
use crate::error::{Error, Result};
use crate::kernel::WIDE_LANES;
use crate::solver::Work;
use crate::solver::window::Window;
use crate::solver::witnesses::{HEAD_PARTS, Joined};
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;

impl WideSolver {
    /// The next value, where the far options leave `lane` open. Enters the position if it is rare. The batch has at most
    /// `length` positions.
    ///
    /// # Errors
    /// [`Error::ValueTooLarge`], and any error of reading `past`.
    pub(super) fn near_value<S: Sequence + ?Sized>(
        &mut self,
        lane: &FarLane,
        length: usize,
        past: &S,
        work: &mut Work,
    ) -> Result<u16> {
        let n = self.end();
        let near = self.near_options(n, length as u64);
        let candidate = lane.candidates.iter().copied().find(|value| !near.contains(value));
        let Some(candidate) = candidate else { return self.plain_value(past, work) };
        let is_open = |t: &u16| !near.contains(t);
        let mut later: Vec<u16> = lane.later.iter().copied().take_while(|&t| t < candidate).filter(is_open).collect();
        self.search_far(self.kernel, n, length, &mut later);
        let mut open: Vec<u16> = lane.open.iter().copied().filter(is_open).collect();
        open.append(&mut later);
        self.decide(Some(candidate), &open, past, work)
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
        work.depth = work.depth.max(HEAD_PARTS.max(self.marks.depth).min(n / 2));
        let Some(rare) = self.least_missing(open, past, work)? else {
            return candidate.ok_or(Error::ValueTooLarge { n });
        };
        if self.values.start() > 0 {
            // The lookups of the new rare position read all values from G(1) on.
            let mut values = Vec::new();
            let memory = Error::Memory { what: "the sequence", bytes: 2 * n };
            values.try_reserve_exact(index(n)).map_err(|_| memory)?;
            values.resize(index(n), 0);
            let all = Joined { past, recent: &self.values, end: n };
            all.read(0, &mut values).map_err(|error| error.for_heap(n))?;
            self.values = Window::new(0, values);
        }
        self.enter(n, rare);
        work.found_rare += 1;
        Ok(rare)
    }

    /// The near options: those of moves that leave one heap or none, all pairs with a part of at most `length`, and the
    /// pairs of too near lookups that are far enough apart at this n.
    fn near_options(&self, n: u64, length: u64) -> Vec<u16> {
        // The far step left out every lookup that is too near at some position of the run of n.
        let run = WIDE_LANES as u64 - 1;
        let mut near = Vec::with_capacity(index(length + 64) * self.lookups.len());
        near.extend(self.rule.single_options(n, |m| self.values.get(m)));
        for lookups in &self.lookups {
            let split = lookups.split;
            let last = length.min(self.far_reach(n, &split));
            if last > 0 {
                let (small, large) = self.part_values(n, &split, 1..last + 1);
                near.extend(small.iter().zip(large).map(|(a, b)| split.constant ^ a ^ b));
            }
            for part in &lookups.parts[lookups.too_near(n.saturating_sub(run), n + run)] {
                let (offset, r) = (part.offset as u64, part.offset as u64 - split.remove);
                let other = n.saturating_sub(offset);
                if other > 0 && other.abs_diff(r) >= split.min_difference {
                    near.push(part.value ^ self.values.get(other));
                }
            }
        }
        near
    }

    /// The next value, where no candidate is left: all lookups enter their options in a set.
    fn plain_value<S: Sequence + ?Sized>(&mut self, past: &S, work: &mut Work) -> Result<u16> {
        let n = self.end();
        let mut seen = vec![false; 1 << 16];
        for option in self.near_options(n, super::LONGEST_BATCH as u64) {
            seen[usize::from(option)] = true;
        }
        for lookups in &self.lookups {
            let split = lookups.split;
            for part in &lookups.parts {
                let (offset, r) = (part.offset as u64, part.offset as u64 - split.remove);
                let other = n.saturating_sub(offset);
                if other > 0 && other.abs_diff(r) >= split.min_difference {
                    seen[usize::from(part.value ^ self.values.get(other))] = true;
                }
            }
        }
        let is_open = |&v: &u16| !self.space.is_rare(v, n) && !seen[usize::from(v)];
        let candidate = (0..=u16::MAX).find(is_open);
        let is_target = |&t: &u16| self.space.is_rare(t, n) && !seen[usize::from(t)];
        let mut open: Vec<u16> = (0..=candidate.unwrap_or(u16::MAX)).filter(is_target).collect();
        self.search_far(self.kernel, n, super::LONGEST_BATCH, &mut open);
        self.decide(candidate, &open, past, work)
    }
}

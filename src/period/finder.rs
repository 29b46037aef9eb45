//! Searches a sequence for its period, and proves it when the values suffice.

use super::primes::prime_factors;
use super::search::{Stretch, last_difference};
use super::theorems::{PeriodWindow, Theorem, is_octal};
use super::{Finding, Proof, Repeat};
use crate::error::{Error, Result};
use crate::solver::{self, Method, SequenceStats, SparseSpace};
use crate::theory::definition::{Prefix, Sequence, for_each_piece};
use crate::theory::nimber::index;
use crate::theory::rule::Rule;
use crate::verify::{Target, recompute};

/// Minimum number of values at the end of a long sequence that must repeat for the repetition to be called observed.
const SHORTEST: u64 = 64;

/// A sequence to be searched, with what is known about it besides its values.
///
/// ```
/// use grundy::period::{Status, Subject, Theorem};
/// use grundy::solver::{self, Method, SequenceStats, SparseSpace};
/// use grundy::{kernel::Kernel, theory::rule::Rule};
///
/// let (kayles, method): (Rule, _) = ("kayles".parse()?, Method::Sparse(Kernel::best()));
/// let values = solver::values(&kayles, method, 1000)?;
/// let (space, freed) = (SparseSpace::NONE, SequenceStats::default());
/// let subject = Subject { rule: &kayles, method, space, values: &values, freed: &freed };
/// let finding = subject.find()?;
/// let repeat = finding.repeat.as_ref().expect("Kayles is periodic");
/// assert_eq!((finding.status(), repeat.period, repeat.preperiod), (Status::Proved, 12, 71));
/// assert_eq!(repeat.proof.as_ref().map(|proof| proof.theorem), Some(Theorem::P1));
/// # Ok::<(), grundy::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The rule of the game.
    pub rule: &'a Rule,
    /// The method that recomputes values for P4.
    pub method: Method,
    /// The sparse space, or [`SparseSpace::NONE`].
    pub space: SparseSpace,
    /// The values G(0), G(1), …
    pub values: &'a dyn Sequence,
    /// Rare positions and largest value among the discarded values.
    pub freed: &'a SequenceStats,
}

impl<'a> Subject<'a> {
    /// Searches for the period that the end of the sequence shows, and proves it when there are enough values.
    ///
    /// # Errors
    /// Errors of reading the values; [`Error::Wrong`] when a value that is recomputed for P4 differs from the stored
    /// one.
    pub fn find(self) -> Result<Finding> {
        let known = self.known()?;
        let stretch = Stretch::new(self.values)?;
        let length = stretch.length();
        let shortest = (length / 16).max(SHORTEST).min(length / 2);
        let mut finding = Finding {
            repeat: None,
            count: self.values.len(),
            max_value: known.max_value,
            unseen_end: None,
            start: stretch.start,
            copies: None,
        };
        if shortest == 0 {
            return Ok(finding);
        }
        let mut ends: Vec<u64> = [length / 2, length / 4, length / 8, shortest].into_iter().collect();
        if self.space != SparseSpace::NONE {
            let window = solver::lookback(self.rule, known.last_rare());
            ends.extend((window < length / 2).then_some(window));
        }
        ends.retain(|&h| h >= 1);
        ends.sort_unstable();
        ends.dedup();
        let mut shifts: Vec<(u64, u64)> = Vec::new();
        for h in ends {
            let least = shifts.last().map_or(1, |shift| shift.1);
            match stretch.shift(h, least)? {
                Some(p) => shifts.push((h, p)),
                None => {
                    finding.unseen_end = Some(h);
                    break; // a longer end does not repeat either
                }
            }
        }
        // Longer ends first; the shorter ends that the same shift explains add nothing.
        shifts.reverse();
        shifts.dedup_by_key(|&mut (_, p)| p);
        for (h, p) in shifts {
            let repeat = self.examine(&known, stretch.start, p)?;
            let proved = repeat.proof.is_some();
            let seen_twice = h >= shortest && p <= h;
            if proved || (finding.repeat.is_none() && seen_twice) {
                finding.repeat = Some(repeat);
            }
            if proved {
                break;
            }
        }
        if finding.repeat.is_none() && stretch.start == 0 && !is_octal(self.rule) {
            finding.repeat = self.find_arithmetic(&known)?;
        }
        Ok(finding)
    }

    /// Returns the rare positions and the largest value of the whole sequence; [`Error::Discarded`] when no value after
    /// the discarded ones is retained, because `freed` may then describe values beyond the end.
    fn known(self) -> Result<SequenceStats> {
        let freed = self.values.discarded();
        let count = self.values.len();
        if !freed.is_empty() && freed.end >= count {
            return Err(Error::Discarded { from: 0, to: count, hole: (freed.start, freed.end), heap: None });
        }
        let none = SequenceStats::default();
        SequenceStats::of(self.values, self.space, if freed.is_empty() { &none } else { self.freed })
    }

    /// Returns the repetition with period `p`, or with the divisor of `p` that is the least period: its preperiod,
    /// and a proof if a theorem applies.
    fn examine(self, known: &SequenceStats, start: u64, p: u64) -> Result<Repeat> {
        let count = self.values.len();
        let difference = last_difference(self.values, p, start, count - p)?;
        let preperiod = difference.map_or(start, |n| n + 1);
        let mut least = Vec::new();
        for f in prime_factors(p) {
            let q = p / f;
            // The values repeat with p from the preperiod on, which is at most count - p. So these n decide for q.
            match last_difference(self.values, q, preperiod, preperiod + p - q)? {
                Some(n) => least.push((f, n)),
                None => return self.examine(known, start, q),
            }
        }
        let exact = difference.is_some() || start == 0;
        let repeat = Repeat { period: p, preperiod, exact, saltus: 0, proof: None };
        // Where values are discarded, the windows of P4 come first: from them the least preperiod is found.
        let by_window = || self.by_window(known, start, preperiod, p);
        let proof = match start {
            0 => self.by_bound(preperiod, p)?.map_or_else(by_window, |proof| Ok(Some(proof)))?,
            _ => by_window()?.map_or_else(|| self.by_bound(preperiod, p), |proof| Ok(Some(proof)))?,
        };
        Ok(Repeat { proof: proof.map(|proof| Proof { least, ..proof }), ..repeat })
    }

    /// Proves the period by P1, P2 or P3, for values that repeat with `p` from `n0` on.
    fn by_bound(self, n0: u64, p: u64) -> Result<Option<Proof>> {
        for theorem in [Theorem::P1, Theorem::P2, Theorem::P3] {
            let from = theorem.start(n0);
            let Some(length) = theorem.length(self.rule, from, p).filter(|&length| length <= self.values.len()) else {
                continue;
            };
            if theorem == Theorem::P2 && has_zero(self.values, from, from + p)? {
                continue;
            }
            return Ok(Some(Proof { theorem, from, length, window: None, least: Vec::new() }));
        }
        Ok(None)
    }

    /// Proves the period by P4, for values that repeat with `p` from `n0` on. Recomputes the values from n1 to n2,
    /// which yields the depth of their witnesses.
    fn by_window(self, known: &SequenceStats, start: u64, n0: u64, p: u64) -> Result<Option<Proof>> {
        let rule = self.rule;
        let count = self.values.len();
        if known.rare_positions.is_empty() {
            return Ok(None);
        }
        let last_rare = known.last_rare();
        if self.space == SparseSpace::NONE || !solver::may_be_sparse(rule, self.method) || p == 0 || p >= count {
            return Ok(None);
        }
        // One lookback beyond n0, and beyond the lookback itself: enough for a window unless a witness is deeper than
        // the solver usually searches.
        let usual = solver::lookback(rule, last_rare);
        let from = n0.max(usual).saturating_add(usual.saturating_add(rule.max_difference())).min(count - p);
        let to = from + p;
        let rare_positions = known.rare_positions.len() as u64;
        let mut window = PeriodWindow { from, to, space: self.space, rare_positions, last_rare, depth: 0 };
        if last_rare >= from || !self.windows_agree(&window, start)? {
            return Ok(None);
        }
        let first = Prefix { of: self.values, count: to };
        let target = Target { rule, space: self.space, values: &first, stats: known };
        let work = match recompute::check(target, self.method, from..to, |_, _| ()) {
            Err(Error::Discarded { .. }) => return Ok(None),
            work => work?,
        };
        window.depth = work.depth;
        if work.defined > 0 || work.found_rare > 0 || !self.windows_agree(&window, start)? {
            return Ok(None);
        }
        Ok(Some(Proof { theorem: Theorem::P4, from, length: to, window: Some(window), least: Vec::new() }))
    }

    /// Proves the period by P4 alone, for values that repeat with `p` > 0 from `n0` on; `None` when the premises of P4
    /// are not met, or `p` is 0.
    ///
    /// # Errors
    /// As [`Subject::find`].
    #[doc(hidden)]
    pub fn prove_by_window(self, n0: u64, p: u64) -> Result<Option<Proof>> {
        let known = self.known()?;
        let freed = self.values.discarded();
        self.by_window(&known, if freed.is_empty() { 0 } else { freed.end }, n0, p)
    }

    /// Whether n1 and n2 are placed as P4 requires, and the W values before each are retained and agree.
    pub(super) fn windows_agree(self, window: &PeriodWindow, start: u64) -> Result<bool> {
        let width = window.width(self.rule);
        if !window.is_placed(self.rule) || window.from < start + width {
            return Ok(false);
        }
        let shift = window.to - window.from;
        Ok(last_difference(self.values, shift, window.from - width, window.from)?.is_none())
    }

    /// Finds p and saltus > 0 with G(n + p) = G(n) + saltus throughout the last half, for p up to half of `ENOUGH`.
    /// Searches only when the last half has a greater value than the first. The caller excludes octal games, where a
    /// short table can show such a repetition although none lasts.
    fn find_arithmetic(self, known: &SequenceStats) -> Result<Option<Repeat>> {
        /// Number of values at the end in which the period is searched.
        const ENOUGH: u64 = 1 << 18;
        let count = self.values.len();
        if count < SHORTEST || known.max_at < count / 2 {
            return Ok(None);
        }
        let mut last = vec![0; index(count.min(ENOUGH))];
        self.values.read(count - last.len() as u64, &mut last)?;
        let steps: Vec<u16> = last.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
        let Some(p) = Stretch::new(&steps)?.shift(steps.len() as u64 / 2, 1)? else { return Ok(None) };
        let end = last[last.len() - 1];
        let period_before = last[last.len() - 1 - index(p)];
        let Some(saltus) = end.checked_sub(period_before).filter(|&saltus| saltus > 0) else { return Ok(None) };
        let mut preperiod = 0;
        let mut there = Vec::new();
        for_each_piece(self.values, 0, count - p, |from, here| {
            there.resize(here.len(), 0);
            self.values.read(from + p, &mut there)?;
            let exception = here.iter().zip(&there).rposition(|(&a, &b)| a.checked_add(saltus) != Some(b));
            preperiod = exception.map_or(preperiod, |i| from + i as u64 + 1);
            Ok(())
        })?;
        let seen = preperiod <= count / 2;
        Ok(seen.then_some(Repeat { period: p, preperiod, exact: true, saltus, proof: None }))
    }
}

pub(super) fn has_zero(values: &dyn Sequence, from: u64, to: u64) -> Result<bool> {
    let mut found = false;
    for_each_piece(values, from, to, |_, piece| {
        found |= piece.contains(&0);
        Ok(())
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::solver::ends::Ends;
    use crate::solver::{self, Histogram};

    /// P1 would prove the period of kayles as well, but only the windows of P4 lead to the least preperiod, 71, which
    /// depends on discarded values.
    #[test]
    fn windows_prove_the_period_where_values_are_discarded() {
        let (rule, method): (Rule, _) = ("kayles".parse().unwrap(), Method::Sparse(Kernel::best()));
        let all = solver::values(&rule, method, 400_000).unwrap();
        let (space, _) = Histogram::of(&all).unwrap().best_space(&rule);
        for (hole, theorem) in [(0..0, Theorem::P1), (70_000..150_000, Theorem::P4)] {
            let values = &Ends::of(all[..hole.start].to_vec(), hole.end as u64, all[hole.end..].to_vec());
            let mut freed = SequenceStats::default();
            freed.see(space, hole.start as u64, &all[hole.clone()]);
            let subject = Subject { rule: &rule, method, space, values, freed: &freed };
            let repeat = subject.find().unwrap().repeat.unwrap();
            assert_eq!((repeat.period, repeat.exact), (12, hole.is_empty()), "{hole:?}");
            assert_eq!(repeat.proof.map(|proof| proof.theorem), Some(theorem), "{hole:?}");
        }
    }
}

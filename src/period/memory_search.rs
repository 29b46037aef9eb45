//! The search for the period of a sequence that is computed in memory, two bytes per value.
//!
//! The length doubles from look to look; at each length [`Subject::find`] searches for the period. When it finds an
//! observed one, the next length is the one that a proof needs, if that is less than the double.
//!
//! Invariant: after each look, all values have the digest that they had when they were computed, so no bit that flipped
//! in them before proves a period.

use super::{Finding, Status, Subject};
use crate::error::{Error, Result};
use crate::solver::{self, Method, SequenceStats, Solver, SparseSpace};
use crate::table::digest::{Digest, DigestChain};
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::rule::Rule;

/// Number of values at which a period is first searched for.
const FIRST_LOOK: u64 = 1 << 10;

/// The statistics of no values: none are discarded in memory.
static NOTHING_FREED: SequenceStats = SequenceStats { rare_positions: Vec::new(), max_value: 0, max_at: 0 };

/// Returns the number of values at which to search next: double, or the number that a proof of the observed period
/// needs, if less.
pub(super) fn next_look(rule: &Rule, finding: &Finding) -> u64 {
    let doubled = finding.count.saturating_mul(2).max(FIRST_LOOK);
    finding.needed(rule).filter(|&n| n > finding.count).map_or(doubled, |needed| needed.min(doubled))
}

/// A search for the period of a game, whose values are computed in memory as the search needs them.
///
/// ```
/// use grundy::period::{MemorySearch, Status};
/// use grundy::solver::Method;
///
/// let mut search = MemorySearch::new(&"kayles".parse()?, Method::default());
/// assert!(search.until_proved(5000, |_| true)?);
/// let finding = search.finding().expect("the search has begun");
/// assert_eq!((finding.status(), finding.repeat.as_ref().map(|repeat| repeat.period)), (Status::Proved, Some(12)));
/// # Ok::<(), grundy::Error>(())
/// ```
pub struct MemorySearch {
    rule: Rule,
    method: Method,
    /// The values known so far.
    values: Vec<u16>,
    /// The digest of these values, taken as they were computed.
    computed: DigestChain,
    /// The sparse space after the values that were searched.
    space: SparseSpace,
    /// What computes the next values; `None` before the first of them, and after [`MemorySearch::pause`].
    solver: Option<Solver>,
    /// The result of the last look.
    finding: Option<Finding>,
    /// Why no further value can be computed.
    end: Option<Error>,
    /// Whether a failed check made the search begin again.
    has_restarted: bool,
}

impl MemorySearch {
    /// A search that computes all values.
    #[must_use]
    pub fn new(rule: &Rule, method: Method) -> MemorySearch {
        MemorySearch::knowing(rule, method, Vec::new())
    }

    /// A search to which the first values of the game are known. They must be right.
    #[must_use]
    pub fn knowing(rule: &Rule, method: Method, values: Vec<u16>) -> MemorySearch {
        let mut computed = DigestChain::new();
        computed.update_in_parallel(&values);
        MemorySearch {
            rule: rule.clone(),
            method,
            values,
            computed,
            space: SparseSpace::NONE,
            solver: None,
            finding: None,
            end: None,
            has_restarted: false,
        }
    }

    /// The values that were searched: G(0), G(1), …
    #[must_use]
    pub fn values(&self) -> &[u16] {
        &self.values[..index(self.count())]
    }

    /// What was searched, for the functions that need more than the finding.
    #[must_use]
    pub fn subject(&self) -> Subject<'_> {
        let MemorySearch { rule, method, space, .. } = self;
        Subject { rule, method: *method, space: *space, values: self, freed: &NOTHING_FREED }
    }

    /// The result of the last look, over all values that were searched; `None` before the first.
    #[must_use]
    pub fn finding(&self) -> Option<&Finding> {
        self.finding.as_ref()
    }

    /// The sparse space after the values that were searched; [`SparseSpace::NONE`] for none.
    #[must_use]
    pub fn space(&self) -> SparseSpace {
        self.space
    }

    /// Number of values that were searched.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.finding.as_ref().map_or(0, |finding| finding.count)
    }

    /// Whether the period is proved.
    #[must_use]
    pub fn is_proved(&self) -> bool {
        self.finding.as_ref().is_some_and(|finding| finding.status() == Status::Proved)
    }

    /// The error that ended the computation of values, if one did: [`Error::ValueTooLarge`] or [`Error::Unlisted`].
    #[must_use]
    pub fn end(&self) -> Option<&Error> {
        self.end.as_ref()
    }

    /// Whether a failed check made the search begin again. The machine may be faulty.
    #[must_use]
    pub fn has_restarted(&self) -> bool {
        self.has_restarted
    }

    /// Number of values that are known, of which the last look may not have searched all.
    #[must_use]
    pub fn known(&self) -> u64 {
        self.values.len() as u64
    }

    /// All values that are known: G(0), G(1), …
    #[must_use]
    pub fn known_values(&self) -> &[u16] {
        &self.values
    }

    /// The digest of all values that are known.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.computed.digest()
    }

    /// Compares all values that are known with the digest that they had when they were computed.
    ///
    /// # Errors
    /// [`Error::Flipped`] when they differ.
    pub fn check(&self) -> Result<()> {
        let mut found = DigestChain::new();
        found.update_in_parallel(&self.values);
        if found.digest() == self.computed.digest() {
            Ok(())
        } else {
            Err(Error::Flipped { what: "a value in memory", from: 0, to: self.known() })
        }
    }

    /// Computes the values up to the next length, at most `limit`, and searches them. `go_on` receives the number of
    /// values after each block; when it returns false, the look ends without a search, and the next one continues with
    /// the values so far. Returns whether the search was made. At a value that cannot be computed the look searches the
    /// values before it, and so does every later look ([`MemorySearch::end`]). After the first failed check the search
    /// forgets all values, and looks at the first ones again.
    ///
    /// # Errors
    /// [`Error::Memory`] when two bytes per value do not fit in memory; [`Error::Flipped`], [`Error::Differs`] and
    /// [`Error::OptionsDiffer`] when a second check fails.
    pub fn look(&mut self, limit: u64, mut go_on: impl FnMut(u64) -> bool) -> Result<bool> {
        let is_first = !self.has_restarted;
        match self.look_once(limit, &mut go_on) {
            Err(error) if error.is_failed_check() && is_first => self.look_once(limit, go_on),
            looked => looked,
        }
    }

    /// Forgets all values after a failed check.
    fn restart_after<T>(&mut self, done: Result<T>) -> Result<T> {
        if matches!(&done, Err(error) if error.is_failed_check()) {
            *self = MemorySearch { has_restarted: true, ..MemorySearch::new(&self.rule, self.method) };
        }
        done
    }

    /// [`MemorySearch::look`] up to the first failed check.
    fn look_once(&mut self, limit: u64, go_on: impl FnMut(u64) -> bool) -> Result<bool> {
        let goal = self.finding.as_ref().map_or(FIRST_LOOK, |finding| next_look(&self.rule, finding)).min(limit);
        if self.known() < goal && self.end.is_none() {
            let computed = self.compute(goal, go_on);
            if !self.restart_after(computed)? {
                return Ok(false);
            }
        }
        let searched = self.search(goal.min(self.known()));
        self.restart_after(searched).map(|()| true)
    }

    /// Searches all values that are known, after a look that `go_on` ended.
    ///
    /// # Errors
    /// [`Error::Memory`]; [`Error::Flipped`] when a check fails.
    pub fn search_known(&mut self) -> Result<()> {
        let searched = self.search(self.known());
        self.restart_after(searched)
    }

    /// Searches the first `count` values.
    fn search(&mut self, count: u64) -> Result<()> {
        let values = &self.values[..index(count)];
        let space = solver::space_after(&self.rule, self.method, &values)?;
        let finding = Subject { values: &values, space, ..self.subject() }.find();
        // A changed value can also make the search fail.
        self.check()?;
        (self.space, self.finding) = (space, Some(finding?));
        Ok(())
    }

    /// Looks until the period is proved, there are `to` values, or no further value can be computed; otherwise as
    /// [`MemorySearch::look`].
    ///
    /// # Errors
    /// As [`MemorySearch::look`].
    pub fn until_proved(&mut self, to: u64, mut go_on: impl FnMut(u64) -> bool) -> Result<bool> {
        while !self.is_proved() && self.count() < to && self.end.is_none() {
            if !self.look(to, &mut go_on)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Frees all memory but that of the values. The search can continue.
    pub fn pause(&mut self) {
        self.solver = None;
    }

    /// Flips a bit of G(n).
    #[cfg(test)]
    pub(crate) fn flip(&mut self, n: usize) {
        self.values[n] ^= 4;
    }

    /// Computes the values up to `goal`, or up to the last one that can be computed.
    fn compute(&mut self, goal: u64, mut go_on: impl FnMut(u64) -> bool) -> Result<bool> {
        let solver = match &mut self.solver {
            Some(solver) => solver,
            none => none.insert(Solver::new(&self.rule, self.method, None, &self.values)?),
        };
        let computed = &mut self.computed;
        let mut extended = solver.extend_after(&[].as_slice(), &mut self.values, goal, |more, count| {
            // Before the next block, during which the solver drops its own copy of some of these values.
            computed.update_in_parallel(more);
            go_on(count)
        });
        // Those before an error.
        computed.update_in_parallel(&self.values[index(computed.count())..]);
        if !matches!(&extended, Err(error) if error.is_failed_check()) {
            // This check outweighs another error: the values may be wrong.
            solver.check_memory(&self.values)?;
        }
        if let Err(end @ (Error::ValueTooLarge { .. } | Error::Unlisted { .. })) = extended {
            self.end = Some(end);
            extended = Ok(true);
        }
        if extended.is_err() || self.end.is_some() {
            self.solver = None;
        }
        extended
    }
}

/// The values that were searched.
impl Sequence for MemorySearch {
    fn len(&self) -> u64 {
        self.count()
    }

    fn read(&self, from: u64, out: &mut [u16]) -> Result<()> {
        self.values().read(from, out)
    }
}

impl std::fmt::Debug for MemorySearch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let MemorySearch { rule, space, finding, .. } = self;
        let mut shown = f.debug_struct("MemorySearch");
        shown.field("rule", rule).field("space", space).field("finding", finding).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flipped bit in a value that the solver no longer reads, which would change the preperiod.
    #[test]
    fn a_flipped_value_begins_the_search_again_and_proves_nothing() {
        let rule: Rule = "kayles".parse().unwrap();
        let proved = |flip: fn(&mut MemorySearch)| {
            let mut search = MemorySearch::new(&rule, Method::default());
            assert!(search.look(u64::MAX, |_| true).unwrap());
            flip(&mut search);
            let looked = search.look(5000, |_| true);
            (looked, search)
        };

        let (looked, search) = proved(|search| {
            search.finding = None;
            search.values[300] ^= 4;
        });
        assert!(looked.unwrap() && search.has_restarted && search.is_proved());
        assert_eq!(
            search.finding().unwrap().repeat.as_ref().map(|repeat| (repeat.period, repeat.preperiod)),
            Some((12, 71))
        );
        let (looked, search) = proved(|search| {
            (search.finding, search.has_restarted) = (None, true);
            search.values[300] ^= 4;
        });
        assert!(matches!(looked, Err(Error::Flipped { .. })) && search.known() == 0, "{looked:?}");
        let mut search = MemorySearch::knowing(
            &rule,
            Method::default(),
            crate::solver::values(&rule, Method::default(), 300).unwrap(),
        );
        search.check().unwrap();
        search.values[299] ^= 1;
        assert!(matches!(search.check(), Err(Error::Flipped { .. })));
    }

    /// The flipped value is among those that the proof computes again, so that the search itself fails.
    #[test]
    fn a_flipped_value_that_ends_the_search_is_a_failed_check() {
        let (rule, method) = (".16".parse().unwrap(), Method::default());
        let mut search = MemorySearch::knowing(&rule, method, crate::solver::values(&rule, method, 600_000).unwrap());
        search.values[200_000] ^= 4;
        let searched = search.search_known();
        assert!(matches!(searched, Err(Error::Flipped { .. })) && search.has_restarted, "{searched:?}");
    }
}

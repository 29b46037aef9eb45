//! Values of rules without splits whose moves form long runs of consecutive removals, such as Nim.
//!
//! Moves that remove `first`, `first + 1`, …, `last` tokens, leave one heap and XOR c ([`Removals`]) give a heap of n
//! the options c ^ G(m) for n - `last` <= m <= n - `first`, m >= 1. For a heap of n + 1 one position joins this
//! interval, and one leaves it. So the solver counts how many moves give each value, and changes at most two counts of
//! each run per heap, where the definition computes one option per move.
//!
//! Invariant: the counts are those of the options of the next heap, and a value is in the set exactly if its count is
//! not 0. A flipped bit stays a difference, because a change adds to a count, and toggles a value of the set.

use super::window::Window;
use crate::error::{Error, Result};
use crate::theory::definition::Sequence;
use crate::theory::nimber::{NimSet, index};
use crate::theory::rule::{Removals, Rule};

/// Minimum average number of moves in a run for which the counts pay. With shorter runs, the definition has hardly more
/// options than there are counts to change.
const LONG: usize = 4;

/// How many moves with k = 0 or 1 give a heap each value.
pub(super) struct OptionCounts {
    /// The size of the heap.
    n: u64,
    /// Entry v: the number of moves that give the value v.
    counts: Vec<u32>,
    /// The values with a count.
    set: NimSet,
}

impl OptionCounts {
    /// Whether counting is faster than computing each option.
    pub(super) fn pay(rule: &Rule) -> bool {
        let moves = rule.moves().iter().filter(|m| m.leaves.heaps() < 2).count();
        moves > 0 && moves >= LONG * rule.removals().len()
    }

    /// The counts of a heap of `n`, given the earlier values.
    pub(super) fn of(rule: &Rule, n: u64, earlier: impl Fn(u64) -> u16 + Copy) -> OptionCounts {
        let mut counts = OptionCounts { n, counts: vec![0; 1 << 16], set: NimSet::new() };
        rule.single_options(n, earlier).for_each(|option| counts.add(option));
        counts
    }

    /// Goes on to the next heap, given the earlier values, that of the present heap included.
    pub(super) fn advance(&mut self, rule: &Rule, earlier: impl Fn(u64) -> u16) {
        let n = self.n + 1;
        for &Removals { first, last, constant, leaves_one } in rule.removals() {
            let (joining, leaving) = if leaves_one {
                ((n > first).then(|| earlier(n - first)), (n > last + 1).then(|| earlier(n - last - 1)))
            } else {
                ((n == first).then_some(0), (n == last + 1).then_some(0))
            };
            joining.into_iter().for_each(|value| self.add(constant ^ value));
            leaving.into_iter().for_each(|value| self.subtract(constant ^ value));
        }
        self.n = n;
    }

    /// The values of the options.
    pub(super) fn set(&self) -> &NimSet {
        &self.set
    }

    /// Compares the counts with the options themselves.
    ///
    /// # Errors
    /// [`Error::Flipped`] at a difference.
    pub(super) fn check_memory(&self, rule: &Rule, earlier: impl Fn(u64) -> u16 + Copy) -> Result<()> {
        let again = OptionCounts::of(rule, self.n, earlier);
        if self.counts != again.counts || self.set != again.set {
            return Err(Error::Flipped { what: "the counts of the options", from: self.n, to: self.n + 1 });
        }
        Ok(())
    }

    fn add(&mut self, option: u16) {
        let count = &mut self.counts[usize::from(option)];
        if *count == 0 {
            self.set.toggle(option);
        }
        // After a bit flip the count may be wrong, which `check_memory` reports.
        *count = count.wrapping_add(1);
    }

    fn subtract(&mut self, option: u16) {
        let count = &mut self.counts[usize::from(option)];
        *count = count.wrapping_sub(1);
        if *count == 0 {
            self.set.toggle(option);
        }
    }
}

/// The last values of a sequence, as far as the moves reach back, and the counts of the next heap.
pub(super) struct RemovalSolver {
    values: Window<u16>,
    options: OptionCounts,
}

impl RemovalSolver {
    /// Continues `past`.
    ///
    /// # Errors
    /// Any error of reading `past`.
    pub(super) fn new(rule: &Rule, past: &dyn Sequence) -> Result<RemovalSolver> {
        let end = past.len();
        let start = end.saturating_sub(rule.max_remove());
        let mut values = vec![0; index(end - start)];
        past.read(start, &mut values)?;
        let values = Window::new(start, values);
        let options = OptionCounts::of(rule, end, |m| values.get(m));
        Ok(RemovalSolver { values, options })
    }

    /// Compares the values with those of `past`, and the counts with those of the values.
    ///
    /// # Errors
    /// [`Error::Flipped`] at the first difference, and any error of reading `past`.
    pub(super) fn check_memory(&self, rule: &Rule, past: &dyn Sequence) -> Result<()> {
        self.values.agrees_with(past)?;
        self.options.check_memory(rule, |m| self.values.get(m))
    }

    /// Appends the next values, none from position `limit` on: one batch, short enough that the caller can stop in
    /// time. `past` holds the values up to the end of the window.
    ///
    /// # Errors
    /// [`Error::ValueTooLarge`] at a value above 65535, [`Error::Unlisted`] when not all moves of a heap are listed,
    /// [`Error::Flipped`] when a value that is no longer needed differs from `past`, and any error of reading `past`.
    pub(super) fn advance(&mut self, rule: &Rule, past: &dyn Sequence, limit: u64, out: &mut Vec<u16>) -> Result<()> {
        /// Maximum number of counts and words of the set per batch: a fraction of a second.
        const BATCH: u64 = 1 << 26;
        self.values.forget(self.values.end().saturating_sub(rule.max_remove()), past)?;
        let mut work = 0;
        while self.values.end() < limit && work < BATCH {
            let n = self.values.end();
            rule.check_heap(n)?;
            let value = u16::try_from(self.options.set().mex()).map_err(|_| Error::ValueTooLarge { n })?;
            out.push(value);
            self.values.push(value);
            self.options.advance(rule, |m| self.values.get(m));
            work += 16 + 2 * rule.removals().len() as u64 + self.options.set().words();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::{Engine, Method, Solver};
    use crate::support::Random;
    use crate::theory::definition;
    use crate::theory::rule::{Leaves, Move};

    /// A rule of up to three runs of removals, each with its own constant.
    fn rule_of_runs(random: &mut Random) -> Rule {
        let mut moves = Vec::new();
        for _ in 0..1 + random.below(3) {
            let (first, length, constant) = (1 + random.below(40), 8 + random.below(60), random.below(40) as u16);
            let leaves = random.pick(&[Leaves::Nothing, Leaves::One]);
            moves.extend((first..first + length).map(|remove| Move { remove, constant, leaves }));
        }
        Rule::from_moves("runs", moves).unwrap()
    }

    #[test]
    fn counts_give_the_values_of_the_definition_from_any_position() {
        let random = &mut Random::new("runs of removals");
        for _ in 0..50 {
            let rule = rule_of_runs(random);
            let expected = definition::values(&rule, 600).unwrap();
            let mut values = expected[..random.below(600) as usize].to_vec();
            let mut solver = Solver::new(&rule, Method::default(), None, &values).unwrap();
            assert!(matches!(solver.engine, Engine::Removals(_)));
            solver.extend_to(&mut values, 600, |_| true).unwrap();
            assert_eq!(values, expected, "{:?}", rule.moves());
            solver.check_memory(&values).unwrap();
        }
    }

    #[test]
    fn values_that_no_move_reaches_are_dropped() {
        let rule = rule_of_runs(&mut Random::new("dropped values"));
        let expected = definition::values(&rule, 20_000).unwrap();
        let mut solver = RemovalSolver::new(&rule, &[].as_slice()).unwrap();
        let mut values = Vec::new();
        for limit in (1000..=20_000).step_by(1000) {
            let past = values.clone();
            solver.advance(&rule, &past, limit, &mut values).unwrap();
            solver.check_memory(&rule, &values).unwrap();
        }
        assert_eq!(values, expected);
        assert!(solver.values.start() > 10_000, "{} values are held", solver.values.items().len());
    }

    #[test]
    fn nim_has_the_value_n_up_to_65535_and_no_further_value() {
        let mut values = Vec::new();
        let mut solver = Solver::new(&Rule::nim(), Method::default(), None, &values).unwrap();
        let error = solver.extend_to(&mut values, 65_537, |_| true).unwrap_err();
        assert!(matches!(error, Error::ValueTooLarge { n: 65_536 }), "{error}");
        assert!(values.iter().copied().eq(0..=u16::MAX));
    }

    #[test]
    fn heaps_with_unlisted_moves_have_no_value() {
        let rule = ".(1)".parse().unwrap();
        let mut values = Vec::new();
        let mut solver = Solver::new(&rule, Method::default(), None, &values).unwrap();
        let error = solver.extend_to(&mut values, 65_538, |_| true).unwrap_err();
        assert!(matches!(error, Error::Unlisted { n: 65_537, .. }) && values.len() == 65_537, "{error}");
    }

    /// Immediately, and after more values, one of which may be wrong.
    #[test]
    fn a_flipped_bit_is_reported_before_and_after_more_values() {
        let rule = Rule::nim();
        let start: Vec<u16> = (0..100).collect();
        let flips: [fn(&mut RemovalSolver); 5] = [
            |solver| solver.options.counts[3] ^= 1,
            |solver| solver.options.counts[120] ^= 1 << 20,
            |solver| solver.options.set.toggle(3),
            |solver| solver.options.set.toggle(120),
            |solver| solver.values.items_mut()[50] ^= 1,
        ];
        for flip in flips {
            for further in [0, 1, 200] {
                let mut values = start.clone();
                let mut solver = RemovalSolver::new(&rule, &values).unwrap();
                flip(&mut solver);
                let past = values.clone();
                // The check of the values that are dropped may end it earlier.
                let advanced = solver.advance(&rule, &past, 100 + further, &mut values);
                let seen = advanced.and_then(|()| solver.check_memory(&rule, &values));
                assert!(matches!(seen, Err(Error::Flipped { .. })), "{further} further values: {seen:?}");
            }
        }
    }
}

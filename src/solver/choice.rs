//! The choice of the sparse space, by reviews of the values at fixed lengths of the sequence.
//!
//! Reviews are due at n = 2^12 and then at 5/4, 3/2, 7/4 and 2 times each power of two ([`review_point`]). While a
//! space is in use, reviews from 2^22 on are due at powers of two only, because a review reads all values. A review
//! depends on the values before it and on the space in use, so the space at each n depends on the game alone: not on
//! the number of threads, nor on where a run was interrupted. [`Choice::after`] repeats all reviews of a sequence.
//!
//! Values of some games approach a space only late, so the last quarter of the values foretells the next ones: a space
//! is as good as the number of rare positions that it will have when the sequence has doubled, if they stay as frequent
//! as in this quarter. For all spaces at once, that number follows from one histogram in which each value of the last
//! quarter counts five times ([`Histogram::best_space`]).
//!
//! A first space is adopted when at most one position in [`WORTH`] will be rare; a later one when it will have less
//! than four fifths of the rare positions. If more than one position in [`WORTHLESS`] will be rare under every space,
//! the space is given up, and all pairs are compared until a space is worth using again. The built-in space of a named
//! game is adopted at the first review, and kept while all values are below [`BUILT_IN_BELOW`].

use super::{Histogram, SparseSpace};
use crate::error::Result;
use crate::theory::definition::Sequence;
use crate::theory::rule::Rule;

/// Number of values at the first review.
pub(super) const FIRST_REVIEW: u64 = 4096;

/// The length of the sequence from which a space in use is reviewed at powers of two only.
const DOUBLINGS_FROM: u64 = 1 << 22;

/// Minimum number of values per expected rare position in a space that is worth using.
pub(super) const WORTH: u64 = 6;

/// Number of values per expected rare position in the best space below which the space in use is given up. It is less
/// than [`WORTH`], so that a game near the limit does not adopt and give up spaces in turn.
const WORTHLESS: u64 = 4;

/// The built-in space of a named game is not reviewed while all values are below this one.
const BUILT_IN_BELOW: u16 = 512;

/// The first review at a length of at least `n`, if the space in use is `space`.
pub(super) fn review_point(n: u64, space: SparseSpace) -> u64 {
    let n = n.max(FIRST_REVIEW);
    let octave = 1 << n.ilog2();
    let step = if octave < DOUBLINGS_FROM || space == SparseSpace::NONE { octave / 4 } else { octave };
    n.next_multiple_of(step)
}

/// The built-in space of a named game; [`SparseSpace::NONE`] for other games.
pub(crate) fn built_in(rule: &Rule) -> SparseSpace {
    let named = rule.known().and_then(|known| known.space);
    named.and_then(|(mask, position)| SparseSpace::new(rule, mask, position)).unwrap_or(SparseSpace::NONE)
}

/// Whether `space` is a built-in space that is kept, where `max_value` is the largest value so far.
pub(super) fn keeps_built_in(rule: &Rule, space: SparseSpace, max_value: u16) -> bool {
    space != SparseSpace::NONE && space == built_in(rule) && max_value < BUILT_IN_BELOW
}

/// The values so far, and those expected when the sequence has doubled.
pub(super) struct Forecast {
    now: Histogram,
    doubled: Histogram,
    /// Number of values so far.
    count: u64,
}

impl Forecast {
    /// The forecast that the values after `past` resemble its last quarter.
    pub(super) fn of(past: &dyn Sequence) -> Result<Forecast> {
        Forecast::after(Histogram::default(), 1, past, past.len())
    }

    /// The forecast after `count` values of `past`, of which `counted` counts those from n = 1 to `from` - 1.
    fn after(counted: Histogram, from: u64, past: &dyn Sequence, count: u64) -> Result<Forecast> {
        let mut now = counted;
        now.add(past, from..count, 1)?;
        let mut doubled = now.clone();
        doubled.add(past, count - count / 4..count, 4)?;
        Ok(Forecast { now, doubled, count })
    }

    /// The number of new rare positions before the sequence has doubled.
    pub(super) fn new_rare_positions(&self, space: SparseSpace) -> u64 {
        self.doubled.rare_positions(space) - self.now.rare_positions(space)
    }

    /// The choice of a review while `current` is the space in use.
    pub(super) fn choose(&self, rule: &Rule, current: SparseSpace) -> Choice {
        if self.count == FIRST_REVIEW && current == SparseSpace::NONE && built_in(rule) != SparseSpace::NONE {
            return Choice { space: built_in(rule), best: None };
        }
        if keeps_built_in(rule, current, self.now.largest()) {
            return Choice { space: current, best: None };
        }
        let (space, expected) = self.doubled.best_space(rule);
        let best = BestSpace { space, expected, count: 2 * self.count };
        let next = if current == SparseSpace::NONE {
            if expected * WORTH <= best.count { space } else { current }
        } else if expected * WORTHLESS > best.count {
            SparseSpace::NONE
        } else if expected * 5 < self.doubled.rare_positions(current) * 4 {
            space
        } else {
            current
        };
        Choice { space: next, best: Some(best) }
    }
}

/// The best space that a review found.
#[derive(Clone, Copy, Debug)]
pub(super) struct BestSpace {
    pub(super) space: SparseSpace,
    /// Expected number of rare positions among `count` values.
    pub(super) expected: u64,
    /// Number of values when the sequence has doubled.
    pub(super) count: u64,
}

/// What a review chooses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    /// The space to use from now on; [`SparseSpace::NONE`] for none.
    pub(super) space: SparseSpace,
    /// The best space, where one was sought.
    pub(super) best: Option<BestSpace>,
}

impl Choice {
    /// The last choice of the reviews at lengths below that of `past`, all of whose values are retained.
    pub(super) fn after(rule: &Rule, past: &dyn Sequence) -> Result<Choice> {
        let mut choice = Choice { space: SparseSpace::NONE, best: None };
        let (mut counted, mut from) = (Histogram::default(), 1);
        let mut point = FIRST_REVIEW;
        while point < past.len() {
            let forecast = Forecast::after(counted, from, past, point)?;
            choice = forecast.choose(rule, choice.space);
            (counted, from) = (forecast.now, point);
            point = review_point(point + 1, choice.space);
        }
        Ok(choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::{Method, Solver};
    use crate::theory::nimber::index;
    use crate::theory::random::split_mix;
    use rayon::ThreadPoolBuilder;

    #[test]
    fn reviews_are_due_four_times_per_doubling_and_then_once() {
        let space = SparseSpace::new(&"0.6".parse().unwrap(), 494, 0).unwrap();
        let points = [(0, 4096), (4096, 4096), (4097, 5120), (7169, 8192), (1 << 22, 1 << 22)];
        for (n, point) in points {
            assert_eq!((review_point(n, space), review_point(n, SparseSpace::NONE)), (point, point), "{n}");
        }
        assert_eq!(review_point((1 << 22) + 1, space), 1 << 23);
        assert_eq!(review_point((1 << 22) + 1, SparseSpace::NONE), 5 << 20);
    }

    /// Two people who compute the same game state the same space and the same rare positions. The spaces of these games
    /// change before n = 26,000.
    #[test]
    fn the_space_at_each_length_depends_on_the_game_alone() {
        const COUNT: u64 = 26_000;
        for (seed, code) in (0..).zip(["0.014", "0.064", "0.163", "0.172", "0.264", "4.007", "0.6"]) {
            let rule = code.parse::<Rule>().unwrap();
            let mut lengths: Vec<u64> = (0..20).map(|i| split_mix(seed, i) % COUNT).collect();
            lengths.extend([4096, 4097, 8192, 8193, 12_288, 24_576, 24_577, COUNT]);
            lengths.sort_unstable();
            let new = |space, past: &[u16]| Solver::new(&rule, Method::default(), space, &past).unwrap();
            let (mut whole, mut past) = (new(None, &[]), Vec::new());
            let (mut space, mut resumed) = (None, Vec::new());
            for length in lengths {
                whole.extend_to(&mut past, length, |_| true).unwrap();
                let mut solver = new(space, &resumed).with_block(1 + index(split_mix(seed, length) % 2000));
                let pool = ThreadPoolBuilder::new().num_threads(1 + index(length % 3)).build().unwrap();
                pool.install(|| solver.extend_to(&mut resumed, length, |_| true)).unwrap();
                space = Some(solver.space());
                let state = |solver: &Solver| (solver.space(), solver.count_rare_positions(length));
                assert_eq!(state(&whole), state(&solver), "{code}, {length} values, seed {seed}");
                assert_eq!(Choice::after(&rule, &past).unwrap().space, solver.space(), "{code}, {length}");
                assert_eq!(new(None, &past).space(), solver.space(), "{code}, {length} values");
            }
            assert_eq!(past, resumed, "{code}, seed {seed}");
        }
    }

    /// More than one value in four of .004 is rare at first, whatever the space.
    #[test]
    fn a_space_with_too_many_rare_positions_is_given_up() {
        const REVIEW: usize = 6144;
        let rule = "0.004".parse::<Rule>().unwrap();
        let all = crate::theory::definition::values(&rule, REVIEW + 100).unwrap();
        let forecast = Forecast::of(&&all[..REVIEW]).unwrap();
        let (space, expected) = forecast.doubled.best_space(&rule);
        assert!(expected * WORTHLESS > 2 * REVIEW as u64, "{expected} rare positions");
        assert_eq!(forecast.choose(&rule, space).space, SparseSpace::NONE);
        assert_eq!(forecast.choose(&rule, SparseSpace::NONE).space, SparseSpace::NONE);
        let start = || Solver::new(&rule, Method::default(), Some(space), &&all[..REVIEW - 100]).unwrap();
        for (mut solver, end) in [(start(), SparseSpace::NONE), (start().with_fixed_space(), space)] {
            assert_eq!(solver.space(), space);
            let mut past = all[..REVIEW - 100].to_vec();
            solver.extend_to(&mut past, all.len() as u64, |_| true).unwrap();
            assert_eq!((solver.space(), past == all), (end, true));
        }
    }
}

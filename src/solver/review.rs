//! Review of the sparse space: when the solver searches a better one, and when it adopts it.
//!
//! Reviews are due at fixed lengths of the sequence ([`review_point`]): at 4, 5, 6 and 7 times each power of two, and
//! beyond [`DOUBLINGS_FROM`] at the powers of two. A review depends on the values before it and on the space in use, so
//! the space at each n depends on the game alone: not on the number of threads, nor on where a run was interrupted.
//!
//! Values of some games approach a space only late, so the last quarter of the values foretells the next ones: a space
//! is as good as the number of rare positions that it will have when the sequence has doubled, if they stay as frequent
//! as in this quarter. For all spaces at once, that number follows from one histogram in which each value of the last
//! quarter counts five times ([`Histogram::best_space`]).
//!
//! A first space is adopted when at most one position in [`WORTH`] will be rare; a later one when it will have less
//! than four fifths of the rare positions. If more than one position in [`WORTHLESS`] will be rare under every space,
//! the solver gives up its space, and compares all pairs until a space is worth using again. A solver without a space
//! enters the built-in space of a named game at the first review.
//!
//! The byte streams compute the values in a space where exhaustive searches are infrequent, and the wide solver where
//! they are frequent: the streams discard what they have computed after a new rare position. The streams hand over when
//! a value has no byte code, or when one value in 768 needed a search since the last review (each new rare position
//! needs one). They take over again at a review before which fewer than one in 4096 did. A new space, and a resumed
//! run, begins on the wide solver if one position in 256 is expected to be a new rare position, or was one in the last
//! quarter. At small n many parts are rare, so even games with few rare positions begin on the wide solver.
//!
//! Invariants: the space never changes while candidates wait for their witnesses, nor once values are discarded, which
//! includes the time of the commit that discards the first ones; an engine is replaced only after a check of its data
//! in memory.

use super::engine::{EarlierValues, Engine};
use super::{BOOTSTRAP, Histogram, Method, SequenceStats, Solver, SparseSpace, Work};
use crate::error::Result;
use crate::theory::definition::Sequence;

/// Minimum number of values per expected rare position in a space that is worth using. From 2^18 to 2^20, a minimum of
/// 2 and no space at all make no clear difference for .004. For .244, 2 makes none, and no space takes nearly twice as
/// long.
pub(super) const WORTH: u64 = 6;

/// Number of values per expected rare position in the best space below which a solver gives up its space. It is less
/// than [`WORTH`], so that a game near the limit does not adopt and give up spaces in turn.
const WORTHLESS: u64 = 4;

/// Number of values per new rare position below which a new space, or a resumed run, begins on the wide solver.
const VALUES_PER_RARE: u64 = 256;

/// Number of values per exhaustive search below which the streams hand over to the wide solver.
const LABORIOUS: u64 = 768;

/// Number of values per exhaustive search above which the wide solver hands over to the streams.
const CALM: u64 = 4096;

/// Minimum number of exhaustive searches since a review before the streams hand over to the wide solver.
const MIN_SEARCHES: u64 = 64;

/// The length of the sequence from which reviews are due at powers of two only: a review reads all values.
const DOUBLINGS_FROM: u64 = 1 << 22;

/// The largest value, exclusive, up to which the built-in space of a named game is not reviewed.
const BUILT_IN_BELOW: u16 = 512;

/// What decides when the space is reviewed.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpaceReview {
    /// Whether the space is the built-in space of a named game, which is not reviewed while all values are below
    /// [`BUILT_IN_BELOW`].
    pub(super) built_in: bool,
    /// Whether the space is never reviewed ([`Solver::fix_space`]).
    pub(super) fixed: bool,
    /// The length of the sequence at which the next review is due.
    pub(super) due_at: u64,
    /// The number of values at the last review.
    pub(super) reviewed_at: u64,
    /// The best space at the last search for one, and its expected number of rare positions in how many values.
    pub(super) best: Option<(SparseSpace, u64, u64)>,
    /// The number of exhaustive searches before the last review.
    pub(super) searches: u64,
}

impl SpaceReview {
    /// Notes what the solver has done when it has computed `n` values.
    pub(super) fn note(&mut self, n: u64, work: &Work) {
        self.reviewed_at = n;
        self.searches = work.exhaustive_searches;
    }

    /// Whether exhaustive searches were frequent since the last review, so that the wide solver is faster. A few
    /// searches are not enough: the change reads the whole table, as a search does.
    pub(super) fn is_laborious(&self, n: u64, work: &Work) -> bool {
        let searches = work.exhaustive_searches - self.searches;
        searches >= MIN_SEARCHES && searches * LABORIOUS > n - self.reviewed_at
    }

    /// Whether exhaustive searches were infrequent since the last review, so that the byte streams are faster. Fewer than
    /// [`CALM`] values do not decide.
    fn is_calm(&self, n: u64, work: &Work) -> bool {
        (work.exhaustive_searches - self.searches + 1) * CALM < n - self.reviewed_at
    }
}

/// The first review at a length of at least `n`.
pub(super) fn review_point(n: u64) -> u64 {
    let n = n.max(BOOTSTRAP);
    let octave = 1 << n.ilog2();
    let step = if octave < DOUBLINGS_FROM { octave / 4 } else { octave };
    n.next_multiple_of(step)
}

/// Whether rare positions were so frequent in the last quarter of `n` values that the wide solver is faster.
pub(super) fn are_frequent(rare_positions: &[(u64, u16)], n: u64) -> bool {
    let before = rare_positions.partition_point(|rare| rare.0 < n - n / 4);
    (rare_positions.len() - before) as u64 * VALUES_PER_RARE > n / 4
}

/// The values so far, and those expected when the sequence has doubled.
struct Forecast {
    now: Histogram,
    doubled: Histogram,
}

impl Forecast {
    /// The forecast that the values after `past` resemble its last quarter.
    fn of<S: Sequence + ?Sized>(past: &S) -> Result<Forecast> {
        let now = Histogram::of(past)?;
        let mut doubled = now.clone();
        doubled.add(past, past.len() - past.len() / 4, 4)?;
        Ok(Forecast { now, doubled })
    }

    /// The number of new rare positions before the sequence has doubled.
    fn new_rare_positions(&self, space: SparseSpace) -> u64 {
        self.doubled.rare_positions(space) - self.now.rare_positions(space)
    }
}

impl Solver {
    /// Searches for a better space when a review is due.
    pub(super) fn review<S: Sequence + ?Sized>(&mut self, past: &S) -> Result<()> {
        let n = past.len();
        if n < self.review.due_at {
            return Ok(());
        }
        self.review.due_at = review_point(n + 1);
        if self.method == Method::Definition {
            return Ok(());
        }
        let is_calm = self.review.is_calm(n, &self.work);
        self.review.note(n, &self.work);
        let sparse = self.engine.rare_positions().is_some();
        if self.review.built_in && !sparse {
            return self.adopt(past, self.space, &Forecast::of(past)?);
        }
        // Once values are discarded the space must stay: the rare positions among them under another space are unknown.
        let freed = !past.discarded().is_empty();
        let keeps_built_in = self.review.built_in && self.max_value < BUILT_IN_BELOW;
        let keep_space = sparse && (self.review.fixed || freed || keeps_built_in);
        let is_adopted = !keep_space && self.adopt_better(past)?;
        let has_codes = self.max_value < self.space.coded();
        if !is_adopted && sparse && is_calm && has_codes && self.prefers_wide && matches!(self.engine, Engine::Wide(_))
        {
            self.prefers_wide = false;
            self.replace_engine(past, Solver::same_space)?;
        }
        Ok(())
    }

    /// Adopts the best space if it is better than the one in use, and gives up the space in use if none is worth using.
    /// Returns whether the space has changed.
    fn adopt_better<S: Sequence + ?Sized>(&mut self, past: &S) -> Result<bool> {
        let forecast = Forecast::of(past)?;
        let (best, expected) = forecast.doubled.best_space(&self.rule);
        let doubled = 2 * past.len();
        self.review.best = Some((best, expected, doubled));
        let next = match self.engine.rare_positions() {
            Some(_) if expected * WORTHLESS > doubled => SparseSpace::NONE,
            Some(_) if expected * 5 < forecast.doubled.rare_positions(self.space) * 4 => best,
            None if expected * WORTH <= doubled => best,
            _ => return Ok(false),
        };
        let is_new = next != self.space();
        if is_new {
            self.review.built_in = false;
            self.adopt(past, next, &forecast)?;
        }
        Ok(is_new)
    }

    /// Continues `past` in `space`, or without one, with the solver that is faster if the forecast is right.
    fn adopt<S: Sequence + ?Sized>(&mut self, past: &S, space: SparseSpace, forecast: &Forecast) -> Result<()> {
        self.replace_engine(past, |solver, past| {
            solver.prefers_wide = forecast.new_rare_positions(space) * VALUES_PER_RARE > past.len();
            solver.space = space;
            if space == SparseSpace::NONE { solver.definition_engine(past) } else { solver.enter_space(past) }
        })
    }

    /// Continues with the wide solver when the streams meet a value without a byte code, or search too often. `past`
    /// holds all values so far, and `needs_wide` tells that the streams cannot continue.
    pub(super) fn widen<S: Sequence + ?Sized>(&mut self, past: &S, needs_wide: bool) -> Result<()> {
        let n = past.len();
        let searches_often = self.review.is_laborious(n, &self.work) && past.discarded().is_empty();
        if !needs_wide && !searches_often {
            return Ok(());
        }
        self.prefers_wide = true;
        self.review.note(n, &self.work);
        self.replace_engine(past, Solver::same_space)
    }

    /// Replaces the engine by `new`, after a check of the memory of the old one: a bit flip there may have made values
    /// wrong, and no later check would find it.
    pub(super) fn replace_engine<S: Sequence + ?Sized>(
        &mut self,
        past: &S,
        new: impl FnOnce(&mut Solver, &S) -> Result<Engine>,
    ) -> Result<()> {
        self.check_memory(past)?;
        self.engine = new(self, past)?;
        Ok(())
    }

    /// The engine that continues `past` in the space in use. The engine in use knows the rare positions among the
    /// discarded values.
    fn same_space<S: Sequence + ?Sized>(&mut self, past: &S) -> Result<Engine> {
        let hole = past.discarded();
        let known = self.engine.rare_positions().unwrap_or_default();
        let rare_positions = known.iter().copied().filter(|(n, _)| hole.contains(n)).collect();
        let known = SequenceStats { rare_positions, max_value: self.max_value, ..SequenceStats::default() };
        let seen = EarlierValues::of(past, self.space, &known)?;
        self.max_value = seen.max_value;
        self.sparse_engine(past, seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::kernel::Kernel;
    use crate::solver::values;
    use crate::theory::nimber::index;
    use crate::theory::random::split_mix;
    use crate::theory::rule::Rule;

    /// After a change of the engine nothing could find a flip that came before it.
    #[test]
    fn a_bit_flip_before_a_change_of_the_engine_is_noticed() {
        type Change = fn(&mut Solver, &[u16]) -> Result<()>;
        let adopt: Change = |solver, past| solver.adopt(past, solver.space, &Forecast::of(past)?);
        let widen: Change = |solver, past| solver.widen(past, true);
        let calm: Change = |solver, past| {
            // A review of a space without frequent searches returns from the wide solver to the streams.
            solver.review.fixed = true;
            (solver.review.due_at, solver.review.reviewed_at) = (0, 0);
            solver.review(past)
        };
        let rule = "0.6".parse::<Rule>().unwrap();
        let past = values(&rule, Method::Sparse(Kernel::best()), 100_000).unwrap();
        for (is_wide, change) in [(false, adopt), (false, widen), (true, calm)] {
            let start = || {
                let mut solver = Solver::new(&rule, Method::Sparse(Kernel::best()), None, past.as_slice()).unwrap();
                solver.widen(past.as_slice(), is_wide).unwrap();
                assert_eq!(matches!(solver.engine, Engine::Wide(_)), is_wide);
                solver
            };
            let mut changed = start();
            change(&mut changed, &past).unwrap();
            assert!(!is_wide || matches!(changed.engine, Engine::Sparse(_)), "a calm review returns to the streams");
            let mut flipped = start();
            flipped.flip();
            assert!(matches!(change(&mut flipped, &past), Err(Error::Flipped { .. })));
        }
    }

    /// Two people who compute the same game state the same space and the same rare positions. The spaces of these games
    /// change before n = 26,000.
    #[test]
    fn the_space_at_each_length_depends_on_the_game_alone() {
        const COUNT: u64 = 26_000;
        for (seed, code) in (0..).zip(["0.014", "0.064", "0.163", "0.172", "0.264", "4.007", "0.6"]) {
            let rule = code.parse::<Rule>().unwrap();
            let mut lengths: Vec<u64> = (0..20).map(|i| split_mix(seed, i) % COUNT).collect();
            lengths.extend([BOOTSTRAP, BOOTSTRAP + 1, 2 * BOOTSTRAP, 2 * BOOTSTRAP + 1, COUNT]);
            lengths.sort_unstable();
            let (mut whole, mut past) =
                (Solver::new(&rule, Method::default(), None, [].as_slice()).unwrap(), Vec::new());
            let (mut space, mut resumed) = (None, Vec::new());
            for length in lengths {
                whole.extend_to(&mut past, length, |_| true).unwrap();
                let solver = Solver::new(&rule, Method::default(), space, resumed.as_slice()).unwrap();
                let mut solver = solver.with_block(1 + index(split_mix(seed, length) % 2000));
                solver.extend_to(&mut resumed, length, |_| true).unwrap();
                space = Some(solver.space());
                let states = [&whole, &solver].map(|solver| (solver.space(), solver.count_rare_positions(length)));
                assert_eq!(states[0], states[1], "{code}, {length} values, seed {seed}");
            }
            assert_eq!(past, resumed, "{code}, seed {seed}");
        }
    }

    /// More than one value in four of .004 is rare at first, whatever the space.
    #[test]
    fn a_space_with_too_many_rare_positions_is_given_up() {
        let rule = "0.004".parse::<Rule>().unwrap();
        let all = crate::theory::definition::values(&rule, 6000).unwrap();
        let (space, expected) = Forecast::of(&all[..5000]).unwrap().doubled.best_space(&rule);
        assert!(expected * WORTHLESS > 10_000, "{expected} rare positions");
        let mut solver = Solver::new(&rule, Method::default(), Some(space), &all[..5000]).unwrap();
        assert_eq!(solver.space(), space);
        solver.review.due_at = 0;
        let mut past = all[..5000].to_vec();
        solver.extend_to(&mut past, 6000, |_| true).unwrap();
        assert_eq!(solver.space(), SparseSpace::NONE);
        assert_eq!(past, all);
        let mut fixed = Solver::new(&rule, Method::default(), Some(space), &all[..5000]).unwrap().with_fixed_space();
        fixed.review.due_at = 0;
        fixed.review(&all[..5000]).unwrap();
        assert_eq!(fixed.space(), space);
        // The next review does not return to a space that is not worth using.
        solver.review.due_at = 0;
        solver.review(past.as_slice()).unwrap();
        assert_eq!(solver.space(), SparseSpace::NONE);
    }
}

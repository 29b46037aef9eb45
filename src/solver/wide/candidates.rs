//! The search for the least common values that are no far options, in all lanes of a run at once.
//!
//! Each lane holds a few open values, its candidates, against the stages of lookups, one after the other in a cycle.
//! The next open value of the lane replaces a candidate that a stage hits. A candidate that has met all stages since it
//! was placed, whichever was first, *passes*: it is no far option. A lane is done when as many candidates have passed
//! as it needs.
//!
//! Invariant: each lane places its values in ascending order, so every open value below a candidate that has passed
//! was placed no later, and has passed or was hit.

use crate::kernel::{WIDE_LANES, WIDE_ROWS, WideRow};

/// Number of cycles after which a candidate that is hit is not replaced, so that a lane may stay without candidates.
const CYCLES: usize = 6;

/// The bit of a key that tells whether the candidate has passed.
const PASSED: u64 = 1 << 48;

/// The key of no candidate.
const NOT_PLACED: u64 = 1 << 49;

/// The candidate of a key.
fn value_of(key: u64) -> u16 {
    (key >> 32 & 0xffff) as u16
}

/// Sorts four keys without branches.
fn sort(keys: &mut [u64; WIDE_ROWS]) {
    const { assert!(WIDE_ROWS == 4) };
    for (i, j) in [(0, 1), (2, 3), (0, 2), (1, 3), (1, 2)] {
        (keys[i], keys[j]) = (keys[i].min(keys[j]), keys[i].max(keys[j]));
    }
}

/// The candidates of all lanes.
pub(super) struct Search<I> {
    /// Number of candidates that must pass in each lane. If the first is a near option, the others are left.
    wanted: usize,
    /// Number of stages in a cycle.
    cycle: usize,
    /// The open values of each lane that were not placed yet, ascending.
    further: Vec<I>,
    /// `rows[k][lane]` is a candidate if `placed[lane][k]` is not `None`.
    rows: [WideRow; WIDE_ROWS],
    /// The number of stages met before each candidate was placed; `None` where there is no candidate.
    placed: [[Option<usize>; WIDE_ROWS]; WIDE_LANES],
    /// The number of stages met.
    met: usize,
}

impl<I: Iterator<Item = u16>> Search<I> {
    /// The search for `wanted` candidates in a cycle of `cycle` stages, where `open` are the open values of each
    /// lane, ascending. Each lane has [`WIDE_ROWS`] candidates at a time.
    pub(super) fn new(wanted: usize, cycle: usize, open: Vec<I>) -> Search<I> {
        let (rows, placed) = ([[0; WIDE_LANES]; WIDE_ROWS], [[None; WIDE_ROWS]; WIDE_LANES]);
        let mut search = Search { wanted, cycle, further: open, rows, placed, met: 0 };
        for lane in 0..WIDE_LANES {
            (0..WIDE_ROWS).for_each(|row| search.place(lane, row));
        }
        search
    }

    /// Searches until all lanes are done. Bit `lane` of entry k of `hits(stage, rows)` tells whether the stage hits
    /// `rows[k][lane]`.
    pub(super) fn run(mut self, hits: impl Fn(usize, &[WideRow]) -> [u64; WIDE_ROWS]) -> Search<I> {
        loop {
            let (count, until) = self.advance_to();
            if count == 0 {
                break;
            }
            while self.met < until {
                let hits = hits(self.met % self.cycle, &self.rows[..count]);
                self.met += 1;
                hits.iter().take(count).enumerate().for_each(|(row, &lanes)| self.replace(row, lanes));
            }
        }
        self
    }

    /// Places the next open value of the lane.
    fn place(&mut self, lane: usize, row: usize) {
        let value = if self.met <= CYCLES * self.cycle { self.further[lane].next() } else { None };
        self.placed[lane][row] = value.map(|_| self.met);
        self.rows[row][lane] = value.unwrap_or(0);
    }

    /// Replaces the candidates of a row in these lanes.
    fn replace(&mut self, row: usize, mut lanes: u64) {
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as usize;
            lanes &= lanes - 1;
            if self.placed[lane][row].is_some() {
                self.place(lane, row);
            }
        }
    }

    /// Whether a candidate placed after that many stages has met all stages.
    fn has_passed(&self, placed: Option<usize>) -> bool {
        placed.is_some_and(|placed| self.met - placed >= self.cycle)
    }

    /// What orders the candidates of a lane: those that have not passed, then those that have, each ascending, then
    /// none. Bits 32 to 47 are the value, the bits below the number of stages before it was placed.
    fn key(&self, lane: usize, row: usize) -> u64 {
        let Some(placed) = self.placed[lane][row] else { return NOT_PLACED };
        debug_assert!(placed < 1 << 32, "memory does not hold the lookups of 2^32 stages");
        let passed = if self.has_passed(Some(placed)) { PASSED } else { 0 };
        passed | u64::from(self.rows[row][lane]) << 32 | placed as u64
    }

    /// The number of rows with candidates of lanes that are not done, which become the first rows, and the number of
    /// stages after which all lanes will be done if no stage hits.
    fn advance_to(&mut self) -> (usize, usize) {
        let (mut count, mut until) = (0, self.met);
        for lane in 0..WIDE_LANES {
            let mut keys: [u64; WIDE_ROWS] = std::array::from_fn(|row| self.key(lane, row));
            sort(&mut keys);
            for (row, key) in keys.into_iter().enumerate() {
                self.rows[row][lane] = value_of(key);
                self.placed[lane][row] = (key < NOT_PLACED).then_some((key & 0xffff_ffff) as usize);
            }
            let waiting = keys.iter().filter(|&&key| key < PASSED).count();
            let passed = keys.iter().filter(|&&key| key < NOT_PLACED).count() - waiting;
            if passed < self.wanted && waiting > 0 {
                count = count.max(waiting);
                let last = self.placed[lane][(self.wanted - passed).min(waiting) - 1];
                until = until.max(last.map_or(0, |placed| placed + self.cycle));
            } else {
                (0..waiting).for_each(|row| self.placed[lane][row] = None);
            }
        }
        (count, until)
    }

    /// The candidates of a lane that have passed, ascending.
    pub(super) fn passed(&self, lane: usize) -> impl Iterator<Item = u16> {
        let mut keys: [u64; WIDE_ROWS] = std::array::from_fn(|row| self.key(lane, row));
        sort(&mut keys);
        keys.into_iter().filter(|key| (PASSED..NOT_PLACED).contains(key)).map(value_of)
    }
}

//! The search for the least common values that are no far options, in all lanes of a run at once.
//!
//! Each lane holds a few open values, its candidates, against the stages of lookups, one after the other in a circle.
//! The next open value of the lane replaces a candidate that a stage hits. A candidate that has met all stages since it
//! was placed, whichever was first, is no far option: it is *proved*. A lane is done when it has as many of these as it
//! needs.
//!
//! Invariant: each lane places its values in ascending order, so every open value below a proved candidate was placed
//! no later, and is proved or was hit.

use crate::kernel::{WIDE_LANES, WIDE_ROWS, WideRow};

/// Number of circles after which a candidate that is hit is not replaced, so that a lane may stay without candidates.
const CIRCLES: usize = 6;

/// The bit of a key that tells whether the candidate is proved.
const PROVED: u64 = 1 << 48;

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
    /// Number of proved candidates that each lane needs. If near options have the first, the others are left.
    wanted: usize,
    /// Number of stages in a circle.
    circle: usize,
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
    /// The search for `wanted` candidates in a circle of `circle` stages, where `open` are the open values of each
    /// lane, ascending. Each lane has [`WIDE_ROWS`] candidates at a time.
    pub(super) fn new(wanted: usize, circle: usize, open: Vec<I>) -> Search<I> {
        let (rows, placed) = ([[0; WIDE_LANES]; WIDE_ROWS], [[None; WIDE_ROWS]; WIDE_LANES]);
        let mut search = Search { wanted, circle, further: open, rows, placed, met: 0 };
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
                let hits = hits(self.met % self.circle, &self.rows[..count]);
                self.met += 1;
                hits.iter().take(count).enumerate().for_each(|(row, &lanes)| self.replace(row, lanes));
            }
        }
        self
    }

    /// Places the next open value of the lane.
    fn place(&mut self, lane: usize, row: usize) {
        let value = if self.met <= CIRCLES * self.circle { self.further[lane].next() } else { None };
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
    fn is_proved(&self, placed: Option<usize>) -> bool {
        placed.is_some_and(|placed| self.met - placed >= self.circle)
    }

    /// What orders the candidates of a lane: unproved ones first, then proved ones, each ascending, then none. Bits 32
    /// to 47 are the value, the bits below the number of stages before it was placed.
    fn key(&self, lane: usize, row: usize) -> u64 {
        let Some(placed) = self.placed[lane][row] else { return NOT_PLACED };
        debug_assert!(placed < 1 << 32, "memory does not hold the lookups of 2^32 stages");
        let proved = if self.is_proved(Some(placed)) { PROVED } else { 0 };
        proved | u64::from(self.rows[row][lane]) << 32 | placed as u64
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
            let unproved = keys.iter().filter(|&&key| key < PROVED).count();
            let proved = keys.iter().filter(|&&key| key < NOT_PLACED).count() - unproved;
            if proved < self.wanted && unproved > 0 {
                count = count.max(unproved);
                let last = self.placed[lane][(self.wanted - proved).min(unproved) - 1];
                until = until.max(last.map_or(0, |placed| placed + self.circle));
            } else {
                (0..unproved).for_each(|row| self.placed[lane][row] = None);
            }
        }
        (count, until)
    }

    /// The proved candidates of a lane, ascending.
    pub(super) fn proved(&self, lane: usize) -> impl Iterator<Item = u16> {
        let mut keys: [u64; WIDE_ROWS] = std::array::from_fn(|row| self.key(lane, row));
        sort(&mut keys);
        keys.into_iter().filter(|key| (PROVED..NOT_PLACED).contains(key)).map(value_of)
    }
}

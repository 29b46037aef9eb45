//! The comparison of all far pairs, where memory holds all values.
//!
//! The options of the splits of one [`SplitGroup`] are the XORs of the pairs of parts with the same sums, up to the
//! constant that the splits share. So each pair is compared once, with the open values of all positions and splits to
//! which its sum belongs. The tiles of pairs that close the most open values are compared first
//! ([`super::tile_order`]).

use super::WideSolver;
use super::reader::{LONGEST_SLICE, Reader};
use super::run::Run;
use super::tile_order::{Place, TileRanks};
use crate::kernel::{Kernel, PAGE_WORDS, Page, PairTile, TILE_PAIRS, WIDE_LANES};
use crate::theory::nimber::index;
use crate::theory::rule::{Rule, Split};
use std::ops::Range;

/// Price of comparing a pair with the open values of one page, in picoseconds.
const PAIR_PS: u64 = 45;

/// Price of a rare part, whatever the number of splits, in picoseconds: its share of the marks and of the learning.
const RARE_PART_PS: u64 = 200;

/// Price of a rare part for each split, in picoseconds: its comparison with candidates, and its share of the search for
/// pairs.
const LOOKUP_PS: u64 = 220;

/// Where all pairs are compared: number of open values of a position with which the far step stops. As long as one of
/// them is no near option, it decides the value.
const ENOUGH: u32 = 4;

/// Number of tiles after which a value that a pair of one split gives is no longer searched in the other splits.
const TILES_PER_EXCHANGE: u64 = 4;

/// One sum in this many is a sample for the order of the tiles, or fewer where there are many tiles. It is odd, so that
/// positions of both parities are sampled.
const SUMS_PER_SAMPLE: usize = 3;

/// Approximate maximum number of pages that hold what the tiles hit in the samples: 32 MiB.
const MOST_HITS: usize = 1 << 17;

/// Splits that XOR the same constant and require the same difference of the parts, and whose removals differ by less
/// than [`WIDE_LANES`].
pub(super) struct SplitGroup {
    /// The split with the least removal.
    least: Split,
    /// How much more each split removes than the least, ascending; 0 first.
    shifts: Vec<usize>,
}

impl SplitGroup {
    /// The splits of a rule.
    pub(super) fn of(rule: &Rule) -> Vec<SplitGroup> {
        let mut splits: Vec<Split> = rule.splits().collect();
        splits.sort_by_key(|split| (split.constant, split.min_difference, split.remove));
        let mut groups: Vec<SplitGroup> = Vec::new();
        for split in splits {
            match groups.last_mut().map(|group| (group.shift(&split), group)) {
                Some((Some(shift), group)) => group.shifts.push(shift),
                _ => groups.push(SplitGroup { least: split, shifts: vec![0] }),
            }
        }
        groups
    }

    /// How much more the split removes than the least one, if it belongs to the group.
    fn shift(&self, split: &Split) -> Option<usize> {
        let alike = |split: &Split| (split.constant, split.min_difference);
        let shift = split.remove.checked_sub(self.least.remove).map(index)?;
        (alike(split) == alike(&self.least) && shift < WIDE_LANES).then_some(shift)
    }

    /// How much more the split with the largest removal removes.
    fn largest_shift(&self) -> usize {
        self.shifts.last().copied().unwrap_or(0)
    }

    /// The splits.
    fn splits(&self) -> impl Iterator<Item = Split> + '_ {
        self.shifts.iter().map(|&shift| Split { remove: self.least.remove + shift as u64, ..self.least })
    }

    /// The numbers of the sums of a lane, one per split. Sum 0 is that of lane 0 in the split with the largest removal,
    /// and the next sum is larger by 1.
    fn sums(&self, lane: usize) -> impl Iterator<Item = usize> + '_ {
        self.shifts.iter().map(move |shift| lane + self.largest_shift() - shift)
    }
}

// A tile reads its pairs, and one more value for each sum: the lanes, and the removals of a group.
const _: () = assert!((TILE_PAIRS + 2 * WIDE_LANES) as u64 <= LONGEST_SLICE);

/// Whether a value is open.
fn has_open(page: &Page) -> bool {
    page.iter().any(|&word| word != 0)
}

/// The open values of one page in lanes, and in the sums of their pairs.
struct OpenPages<'a> {
    group: &'a SplitGroup,
    /// The lanes without enough open values on earlier pages, and their open values.
    lanes: &'a mut [(usize, Page)],
    /// For each sum, the values that are open in a lane of the sum.
    sums: Vec<Page>,
}

impl<'a> OpenPages<'a> {
    fn new(group: &'a SplitGroup, lanes: &'a mut [(usize, Page)]) -> OpenPages<'a> {
        let sums = vec![[0; PAGE_WORDS]; WIDE_LANES + group.largest_shift()];
        let mut pages = OpenPages { group, lanes, sums };
        pages.open_sums();
        pages
    }

    /// Opens in the sums what is open in their lanes.
    fn open_sums(&mut self) {
        self.sums.fill([0; PAGE_WORDS]);
        for (lane, open) in &*self.lanes {
            for sum in self.group.sums(*lane) {
                self.sums[sum].iter_mut().zip(open).for_each(|(sum, open)| *sum |= open);
            }
        }
    }

    /// Whether no value is open in any lane.
    fn is_closed(&self) -> bool {
        !self.lanes.iter().any(|(_, open)| has_open(open))
    }

    /// Closes in the lanes what was cleared in one of their sums, and in the sums what no lane needs any more.
    fn exchange(&mut self) {
        for (lane, open) in &mut *self.lanes {
            for sum in self.group.sums(*lane) {
                open.iter_mut().zip(&self.sums[sum]).for_each(|(open, sum)| *open &= sum);
            }
        }
        self.open_sums();
    }
}

impl WideSolver {
    /// Whether the far step should compare all pairs: always without a space; otherwise if memory holds all values and
    /// this costs no more than the lookups.
    pub(super) fn compares_all_pairs(&self) -> bool {
        let groups = SplitGroup::of(&self.rule).len() as u64;
        let part = RARE_PART_PS + self.lookups.len() as u64 * LOOKUP_PS;
        let rare = self.rare_positions.list().len() as u64;
        let pairs = groups * self.end() / 2;
        let pages = tracked_words(self.values.items()).div_ceil(PAGE_WORDS) as u64;
        !self.has_space() || self.holds_all() && pairs * pages * PAIR_PS <= rare * part
    }
}

/// Number of words of open values that the far step tracks after these values: they cover all but two of the last 4096.
/// A position with a larger value has no candidate left, and the near step compares all of its options.
fn tracked_words(values: &[u16]) -> usize {
    /// Number of last values.
    const LAST: usize = 1 << 12;
    /// Number of them that may be larger.
    const LARGER: usize = 2;
    let mut last = values[values.len().saturating_sub(LAST)..].to_vec();
    let place = last.len().saturating_sub(1 + LARGER);
    let bound = if last.is_empty() { 0 } else { *last.select_nth_unstable(place).1 };
    (usize::from(bound) + 1).div_ceil(64)
}

impl Reader<'_> {
    /// Clears the bits of the options of all pairs whose smaller part is at least [`Run::far`], and all bits of the
    /// pages after the first ones with enough open values. Memory must hold all values. `open` has one bit per value
    /// below the bound of the classes, for each lane.
    pub(super) fn clear_pages(&self, kernel: Kernel, run: Run<'_>, open: &mut [u64]) {
        let words = self.solver.classes.bound() / 64;
        let tracked = tracked_words(self.last().slice(self.last().start(), run.known)).min(words);
        open.chunks_mut(words).for_each(|open| open[tracked..].fill(0));
        let groups = SplitGroup::of(&self.solver.rule);
        let mut found = [0; WIDE_LANES];
        for first in (0..words).step_by(PAGE_WORDS) {
            let page_start = u16::try_from(64 * first).expect("a page of 16-bit values");
            let count = PAGE_WORDS.min(words - first);
            // The lanes without enough open values, and their page.
            let mut lanes = Vec::with_capacity(WIDE_LANES);
            for (lane, open) in open.chunks_mut(words).enumerate() {
                let open = &mut open[first..first + count];
                if found[lane] < ENOUGH {
                    let mut page = [0; PAGE_WORDS];
                    page[..count].copy_from_slice(open);
                    lanes.push((lane, page));
                }
                open.fill(0);
            }
            for (number, group) in groups.iter().enumerate() {
                self.clear_pairs(kernel, run, (number, page_start), OpenPages::new(group, &mut lanes));
            }
            for (lane, page) in lanes {
                found[lane] += page.iter().map(|open| open.count_ones()).sum::<u32>();
                open[lane * words + first..][..count].copy_from_slice(&page[..count]);
            }
        }
    }

    /// Clears the bits of the options of the same pairs in one page.
    fn clear_pairs(&self, kernel: Kernel, run: Run<'_>, place: Place, mut pages: OpenPages<'_>) {
        if pages.is_closed() {
            return;
        }
        let (group, tiles) = (pages.group, Tiles::of(&pages, run, place.1));
        let ranks = match self.solver.tile_orders.ranks(place, run.first) {
            // The kernels that audit take several times as long.
            None if kernel == self.solver.kernel => {
                let ranks = TileRanks::learn(&self.hits(kernel, &tiles, &pages));
                self.solver.tile_orders.enter(place, ranks)
            }
            ranks => ranks.unwrap_or_default(),
        };
        let order = ranks.order(tiles.count());
        let mut tile = PairTile::default();
        for (left, number) in (0..tiles.count()).rev().zip(order) {
            self.fill(kernel, &tiles, number, &mut tile);
            for (sum, open) in pages.sums.iter_mut().enumerate().filter(|(_, open)| has_open(open)) {
                kernel.clear_options(&tile, sum, open);
            }
            let is_due = group.shifts.len() > 1 && left.is_multiple_of(TILES_PER_EXCHANGE);
            if is_due || left == 0 {
                pages.exchange();
            }
            if is_due && pages.is_closed() {
                return;
            }
        }
        for (lane, open) in pages.lanes {
            let n = run.first + *lane as u64;
            for split in group.splits() {
                // The pairs that do not exist with all sums.
                for a in tiles.parts.end.max(tiles.parts.start)..=split.largest_small_part(n) {
                    let option = usize::from(self.pair_option(n, &split, a) ^ place.1);
                    if let Some(word) = open.get_mut(option / 64) {
                        *word &= !(1 << (option % 64));
                    }
                }
            }
        }
    }

    /// Fills `tile` with the pairs of tile `number`.
    fn fill(&self, kernel: Kernel, tiles: &Tiles, number: u64, tile: &mut PairTile) {
        let start = tiles.parts.start + number * TILE_PAIRS as u64;
        let end = tiles.parts.end.min(start + TILE_PAIRS as u64);
        let others = self.slice(tiles.rest + 1 - end, tiles.rest - start + tiles.sums);
        kernel.fill_tile(tile, self.slice(start, end).iter().rev(), tiles.constant, others);
    }

    /// The open values that each tile hits in some of the sums.
    fn hits(&self, kernel: Kernel, tiles: &Tiles, pages: &OpenPages<'_>) -> Vec<Vec<Page>> {
        let step = SUMS_PER_SAMPLE.max(pages.sums.len() * index(tiles.count()) / MOST_HITS) | 1;
        let samples = pages.sums.iter().enumerate().filter(|(_, open)| has_open(open)).step_by(step);
        let samples: Vec<(usize, &Page)> = samples.collect();
        let mut tile = PairTile::default();
        let mut hits_in = |number| {
            self.fill(kernel, tiles, number, &mut tile);
            let hits = |&(sum, before): &(usize, &Page)| {
                let mut open = *before;
                kernel.clear_options(&tile, sum, &mut open);
                std::array::from_fn(|word| before[word] & !open[word])
            };
            samples.iter().map(hits).collect()
        };
        (0..tiles.count()).map(&mut hits_in).collect()
    }
}

/// The pairs of a group of splits that exist with all sums of a run, in tiles of [`TILE_PAIRS`].
struct Tiles {
    /// The smaller parts.
    parts: Range<u64>,
    /// The sum number 0.
    rest: u64,
    /// Number of sums.
    sums: u64,
    /// XORed with it, the options in the page are below its length.
    constant: u16,
}

impl Tiles {
    /// Those that are compared with one page, which begins with the value `page_start`.
    fn of(pages: &OpenPages<'_>, run: Run<'_>, page_start: u16) -> Tiles {
        let SplitGroup { least, .. } = pages.group;
        // The position at which the split with the least removal has the sum number 0. If there is none, no pair exists
        // for every sum.
        let first = run.first.saturating_sub(pages.group.largest_shift() as u64);
        Tiles {
            parts: run.far() as u64..least.largest_small_part(first) + 1,
            rest: first.saturating_sub(least.remove),
            sums: pages.sums.len() as u64,
            constant: least.constant ^ page_start,
        }
    }

    /// Number of tiles.
    fn count(&self) -> u64 {
        self.parts.end.saturating_sub(self.parts.start).div_ceil(TILE_PAIRS as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theory::rule::{Leaves, Move};

    #[test]
    fn splits_are_grouped_by_constant_difference_and_distance() {
        let split = |remove, constant, min_difference| {
            let leaves = Leaves::Two { min_difference };
            Move { remove, constant, leaves }
        };
        let moves =
            vec![split(1, 0, 0), split(2, 5, 0), split(64, 0, 0), split(65, 0, 0), split(3, 0, 2), split(4, 5, 0)];
        let groups = SplitGroup::of(&Rule::from_moves("splits", moves).unwrap());
        let found: Vec<(u64, u16, Vec<usize>)> =
            groups.iter().map(|group| (group.least.remove, group.least.constant, group.shifts.clone())).collect();
        assert_eq!(found, [(1, 0, vec![0, 63]), (65, 0, vec![0]), (3, 0, vec![0]), (2, 5, vec![0, 2])]);
        assert_eq!(groups[0].sums(7).collect::<Vec<_>>(), [7 + 63, 7]);
        let removals: Vec<u64> = groups[3].splits().map(|split| split.remove).collect();
        assert_eq!(removals, [2, 4]);
    }
}

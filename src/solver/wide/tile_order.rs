//! The order in which tiles of pairs are compared where all pairs are: first those that close the most open values.
//!
//! Each pair is compared with the values that are still open, so the sooner values close, the less is compared. Most
//! values are options of many pairs of all sizes, but some only of pairs whose parts have certain sizes. At the next
//! positions these sizes are nearly the same. So an order is learnt on the open values of one run of positions, and
//! serves the next runs.
//!
//! The choice is greedy: the next tile is the one that hits the most values which no earlier tile hits.
//!
//! Invariant: an order contains every tile once, whatever the ranks are. So neither stale ranks nor a flipped bit in
//! them leaves a pair out.

use crate::kernel::{PAGE_WORDS, Page};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Minimum number of positions after which an order is learnt again.
const LEARN_AGAIN_AFTER: u64 = if cfg!(test) { 128 } else { 1 << 12 };

/// Divisor of n that gives another minimum number of positions after which an order is learnt again.
const LEARN_AGAIN_DIVISOR: u64 = 256;

/// Maximum number of tiles that are ranked. The others are expected to close few values.
const MOST_RANKED: u32 = 256;

/// The ranks of tiles: the place of each in the learnt order. The tiles after the last one, and those with the rank
/// [`UNRANKED`], come last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TileRanks(Vec<u32>);

/// The rank of a tile that closes no further value.
const UNRANKED: u32 = u32::MAX;

impl TileRanks {
    /// Ranks tiles by what each of them hits: `hits` has one entry for each tile, with the open values that it hits in
    /// each sample.
    pub(super) fn learn(hits: &[Vec<Page>]) -> TileRanks {
        let mut ranks = vec![UNRANKED; hits.len()];
        let mut hit = vec![[0; PAGE_WORDS]; hits.first().map_or(0, Vec::len)];
        // A gain only falls, so the gain of a tile at an earlier time is an upper bound of it.
        let mut bounds: BinaryHeap<(u32, usize)> =
            (0..).zip(hits).map(|(number, tile)| (gain(tile, &hit), number)).collect();
        let mut rank = 0;
        while let Some((1.., number)) = bounds.pop() {
            let gained = gain(&hits[number], &hit);
            if bounds.peek().is_some_and(|&(bound, _)| bound > gained) {
                bounds.push((gained, number));
                continue;
            }
            if gained == 0 || rank == MOST_RANKED {
                break;
            }
            ranks[number] = rank;
            rank += 1;
            for (hit, tile) in hit.iter_mut().zip(&hits[number]) {
                hit.iter_mut().zip(tile).for_each(|(hit, tile)| *hit |= tile);
            }
        }
        TileRanks(ranks)
    }

    /// The numbers of all tiles below `count`: those with a rank by rank, then the others, the largest first, because
    /// the smallest parts give few different values.
    pub(super) fn order(&self, count: u64) -> Vec<u64> {
        let ranks = self.0.iter().copied().chain(std::iter::repeat(UNRANKED));
        let mut order: Vec<(u32, Reverse<u64>)> = ranks.zip((0..count).map(Reverse)).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, Reverse(number))| number).collect()
    }
}

/// Number of values that a tile hits and that are not hit yet, in all samples.
fn gain(tile: &[Page], hit: &[Page]) -> u32 {
    let new =
        |(tile, hit): (&Page, &Page)| tile.iter().zip(hit).map(|(tile, hit)| (tile & !hit).count_ones()).sum::<u32>();
    tile.iter().zip(hit).map(new).sum()
}

/// What is compared in one order: the number of a group of splits, and the first value of a page.
pub(super) type Place = (usize, u16);

/// The learnt orders of a solver. Any thread may learn one.
#[derive(Debug, Default)]
pub(super) struct TileOrders(Mutex<HashMap<Place, Learnt>>);

#[derive(Debug, Default)]
struct Learnt {
    /// The first position at which the ranks are learnt again.
    until: u64,
    ranks: Arc<TileRanks>,
}

impl TileOrders {
    fn lock(&self) -> MutexGuard<'_, HashMap<Place, Learnt>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ranks for a run from n on; `None` if the caller should learn them. Other threads use the old ones meanwhile.
    pub(super) fn ranks(&self, place: Place, n: u64) -> Option<Arc<TileRanks>> {
        let mut all = self.lock();
        let learnt = all.entry(place).or_default();
        let is_due = n >= learnt.until;
        if is_due {
            learnt.until = n + LEARN_AGAIN_AFTER.max(n / LEARN_AGAIN_DIVISOR);
        }
        (!is_due).then(|| Arc::clone(&learnt.ranks))
    }

    /// Number of tiles with a rank, in all orders.
    #[cfg(test)]
    pub(super) fn count_ranked(&self) -> usize {
        let ranked = |learnt: &Learnt| learnt.ranks.0.iter().filter(|&&rank| rank != UNRANKED).count();
        self.lock().values().map(ranked).sum()
    }

    /// Enters learnt ranks, and returns them.
    pub(super) fn enter(&self, place: Place, ranks: TileRanks) -> Arc<TileRanks> {
        let ranks = Arc::new(ranks);
        self.lock().entry(place).or_default().ranks = Arc::clone(&ranks);
        ranks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::Random;

    /// A page with these values below 64.
    fn page(values: u64) -> Page {
        std::array::from_fn(|word| if word == 0 { values } else { 0 })
    }

    #[test]
    fn the_tile_that_hits_most_further_values_comes_next() {
        // The second tile hits most; after it, the third hits more than the first. The last hits nothing more.
        let hits = [0b11, 0b1111, 0b111_0000, 0b1].map(|values| vec![page(values), page(values << 8)]);
        assert_eq!(TileRanks::learn(&hits), TileRanks(vec![UNRANKED, 0, 1, UNRANKED]));
        assert_eq!(TileRanks::learn(&hits).order(6), [1, 2, 5, 4, 3, 0]);
        assert_eq!(TileRanks::default().order(3), [2, 1, 0]);
    }

    #[test]
    fn every_order_contains_each_tile_once() {
        let random = &mut Random::new("tile orders");
        for _ in 0..200 {
            let ranks = TileRanks((0..random.below(40)).map(|_| random.below(6) as u32).collect());
            let count = random.below(50);
            let mut order = ranks.order(count);
            order.sort_unstable();
            assert!(order.into_iter().eq(0..count), "{ranks:?}, {count}");
        }
    }

    #[test]
    fn one_thread_learns_while_others_use_the_old_ranks() {
        let orders = TileOrders::default();
        let place = (0, 2048);
        assert!(orders.ranks(place, 1000).is_none(), "nothing is learnt");
        assert_eq!(orders.ranks(place, 1001).unwrap(), Arc::default());
        let learnt = orders.enter(place, TileRanks(vec![1, 0]));
        assert_eq!(orders.ranks(place, 1000 + LEARN_AGAIN_AFTER - 1).unwrap(), learnt);
        assert!(orders.ranks((1, 2048), 1001).is_none(), "another group");
        assert!(orders.ranks(place, 1000 + LEARN_AGAIN_AFTER).is_none(), "due again");
    }
}

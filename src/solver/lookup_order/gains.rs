//! The gain of each lookup while an order is learnt: the sum of the weights of the codes that it hits.
//!
//! For each sample position and code, a list names the lookups that hit the code there. When a lookup is chosen, the
//! weights of the codes that it hits fall, and the lists name the gains that fall with them. So all gains are always up
//! to date, and a choice costs a pass over some lists, instead of a sum over the sample for many lookups.
//!
//! Gains only fall, so the largest gain that a chunk of lookups ever had is an upper bound of its gains. A choice takes
//! the chunk with the largest bound and computes its largest gain. If that equals the bound, it is the largest gain of
//! all; otherwise it becomes the bound of the chunk, and the choice goes on with the chunk that has the largest bound
//! now.

use crate::kernel::MOST_CODES;
use std::cmp::Reverse;

/// Weight of a code that no chosen lookup hits, in units of gain.
const FULL_WEIGHT: u16 = 1 << 12;

/// Gain of a lookup when it is chosen. It only falls afterwards, and the gains of other lookups are never negative.
const CHOSEN: i32 = -1;

/// Minimum number of lookups in a shard other than the last. In smaller shards most lists have only a few entries, and
/// to read them costs more than further threads save.
const MIN_SHARD: usize = 1 << 10;

/// Number of lookups in a chunk.
const CHUNK: usize = 1 << 8;

/// Maximum number of lookups in a shard.
const MAX_SHARD: usize = 1 << 16;

/// The number of lookups in each shard but the last: as many shards as the pool has threads, where the length allows.
/// What is chosen does not depend on it.
pub(super) fn shard_length(lookups: usize) -> usize {
    lookups.div_ceil(rayon::current_num_threads()).clamp(MIN_SHARD, MAX_SHARD)
}

/// The weights of the codes that matter, at each sample position.
pub(super) struct Weights(Vec<Vec<u16>>);

/// A code whose weight falls.
pub(super) struct Fall {
    /// The sample position.
    i: usize,
    /// The code, which matters there.
    code: usize,
    /// The difference of its weights before and after, in units of gain.
    by: u16,
}

impl Weights {
    /// Full weights: at sample position i the codes below `below[i]` and [`MOST_CODES`] matter.
    pub(super) fn new(below: &[usize]) -> Weights {
        Weights(below.iter().map(|&end| vec![FULL_WEIGHT; end.min(MOST_CODES)]).collect())
    }

    /// Lowers the weight of the code that a chosen lookup hits at each sample position to 3/8: `option(i)`, if that
    /// code matters.
    pub(super) fn lower(&mut self, option: impl Fn(usize) -> u8) -> Vec<Fall> {
        let fall = |(i, weights): (usize, &mut Vec<u16>)| {
            let code = usize::from(option(i));
            let weight = weights.get_mut(code)?;
            let before = std::mem::replace(weight, *weight * 3 / 8);
            Some(Fall { i, code, by: before - *weight })
        };
        self.0.iter_mut().enumerate().filter_map(fall).collect()
    }
}

/// The gains of the lookups of one shard.
pub(super) struct Gains {
    /// The gain of each lookup.
    gains: Vec<i32>,
    /// For each sample position, the lookups that hit each code that matters.
    hits: Vec<Hits>,
    /// For each chunk of lookups, an upper bound of their gains.
    bounds: Vec<i32>,
    /// The first chunk that has the largest gain.
    best: usize,
    /// The largest gain.
    most: i32,
}

/// The lookups of a shard that hit each code that matters, at one sample position.
struct Hits {
    /// The lookups that hit code v are `lookups[starts[v]..starts[v + 1]]`.
    starts: Vec<u32>,
    lookups: Vec<u16>,
}

impl Gains {
    /// The gains of lookups 0 to `count` - 1, at most [`MAX_SHARD`], under full weights. `option(of, i)` is the code
    /// that lookup `of` hits at sample position i, where the codes below `below[i]` and [`MOST_CODES`] matter.
    pub(super) fn new(count: usize, below: &[usize], option: impl Fn(usize, usize) -> u8) -> Gains {
        let hits = |(i, &end): (usize, &usize)| Hits::new((0..count).map(|of| option(of, i)), end.min(MOST_CODES));
        let hits: Vec<Hits> = below.iter().enumerate().map(hits).collect();
        let bounds = vec![i32::MAX; count.div_ceil(CHUNK)];
        let mut gains = Gains { gains: vec![0; count], hits, bounds, best: 0, most: CHOSEN };
        for &of in gains.hits.iter().flat_map(|hits| &hits.lookups) {
            gains.gains[usize::from(of)] += i32::from(FULL_WEIGHT);
        }
        gains.find_most();
        gains
    }

    /// The gains of all lookups; those of the chosen ones are negative.
    pub(super) fn all(&self) -> &[i32] {
        &self.gains
    }

    /// Chooses the first lookup with the largest gain.
    pub(super) fn choose(&mut self) -> usize {
        let start = self.best * CHUNK;
        let is_most = |&gain: &i32| gain == self.most;
        let of = start + self.gains[start..].iter().position(is_most).expect("a lookup has the largest gain");
        self.gains[of] = CHOSEN;
        of
    }

    /// Lowers the gain of each lookup that hits a code whose weight falls.
    pub(super) fn fall(&mut self, falls: &[Fall]) {
        for fall in falls {
            for &of in self.hits[fall.i].of(fall.code) {
                self.gains[usize::from(of)] -= i32::from(fall.by);
            }
        }
        self.find_most();
    }

    /// Finds the largest gain again.
    fn find_most(&mut self) {
        let first_largest = |bounds: &[i32]| (0..bounds.len()).max_by_key(|&chunk| (bounds[chunk], Reverse(chunk)));
        while let Some(chunk) = first_largest(&self.bounds) {
            let gains = self.gains[chunk * CHUNK..].iter().take(CHUNK);
            let most = gains.copied().max().expect("no chunk is empty");
            if std::mem::replace(&mut self.bounds[chunk], most) == most {
                (self.best, self.most) = (chunk, most);
                return;
            }
        }
        self.most = CHOSEN;
    }
}

/// The number of the first shard with the largest gain of all; `None` when no lookup gains anything.
pub(super) fn best(shards: &[Gains]) -> Option<usize> {
    let most = |(shard, gains): (usize, &Gains)| (gains.most, Reverse(shard));
    let (gain, Reverse(best)) = shards.iter().enumerate().map(most).max()?;
    (gain > 0).then_some(best)
}

impl Hits {
    /// The hits of the codes below `end` among `options`, one for each lookup.
    fn new(options: impl Iterator<Item = u8>, end: usize) -> Hits {
        let numbered = (0..=u16::MAX).zip(options);
        let hits: Vec<(u16, u8)> = numbered.filter(|&(_, code)| usize::from(code) < end).collect();
        let mut starts = vec![0; end + 1];
        hits.iter().for_each(|&(_, code)| starts[usize::from(code) + 1] += 1);
        (0..end).for_each(|code| starts[code + 1] += starts[code]);
        let mut next = starts.clone();
        let mut lookups = vec![0; hits.len()];
        for (of, code) in hits {
            let next = &mut next[usize::from(code)];
            lookups[*next as usize] = of;
            *next += 1;
        }
        Hits { starts, lookups }
    }

    /// The lookups that hit `code`.
    fn of(&self, code: usize) -> &[u16] {
        &self.lookups[self.starts[code] as usize..self.starts[code + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::Random;

    /// The numbers of the lookups of a shard take all values of 16 bits.
    #[test]
    fn largest_shard_has_the_hits_of_its_last_lookup() {
        let option = |of: usize, _: usize| if of == MAX_SHARD - 1 { 3 } else { 5 };
        let mut gains = Gains::new(MAX_SHARD, &[4], option);
        assert_eq!(gains.choose(), MAX_SHARD - 1);
        assert_eq!(gains.all().iter().filter(|&&gain| gain != 0).count(), 1);
    }
    /// Few codes, so that lookups of several chunks have equal gains.
    #[test]
    fn the_first_lookup_with_the_largest_gain_is_chosen() {
        let random = &mut Random::new("gains");
        let (count, below) = (3 * CHUNK + 5, [4, 2, 5]);
        let options: Vec<[u8; 3]> = (0..count).map(|_| [0; 3].map(|_| random.below(6) as u8)).collect();
        let mut weights = Weights::new(&below);
        let mut gains = Gains::new(count, &below, |of, i| options[of][i]);
        let (mut chosen, mut ties) = (vec![false; count], 0);
        for _ in 0..200 {
            let weight =
                |(weights, &code): (&Vec<u16>, &u8)| weights.get(usize::from(code)).map_or(0, |&w| i32::from(w));
            let gain = |of: usize| weights.0.iter().zip(&options[of]).map(weight).sum::<i32>();
            let largest = (0..count).filter(|&of| !chosen[of]).map(gain).max().unwrap();
            let mut equal = (0..count).filter(|&of| !chosen[of] && gain(of) == largest);
            let first = equal.next().unwrap();
            ties += u64::from(equal.any(|of| of / CHUNK > first / CHUNK));
            assert_eq!(gains.choose(), first, "gain {largest}");
            chosen[first] = true;
            gains.fall(&weights.lower(|i| options[first][i]));
        }
        assert!(ties > 50, "{ties} ties between chunks");
    }
}

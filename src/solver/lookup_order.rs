//! The learnt order of lookups: those with many hits first.
//!
//! The order never changes a result. It only changes how many codes stay open after the first lookups are marked. The
//! module learns it greedily on a sample of the last values: each next lookup is the one that hits most of the codes
//! that matter and are not hit yet. A code that is hit keeps 3/8 of its weight: at another n the same lookup will not
//! hit the code that matters there, so a second hit is still worth something. Both streams use such an order: the
//! candidates for the lookups of rare parts, the witnesses for those of common parts.
//!
//! A choice lowers the gains of the lookups that hit the same codes at the same positions ([`gains`]). An order stays
//! good while the sequence grows by a small factor, and degrades over hundreds of millions of values. So
//! [`next_learning`] asks for a new order when the sequence has grown fourfold, or by 2^27 values.
//!
//! The budget says how many lookups of the order are marked and how many are checked. It ages faster than the order,
//! because large values come in bursts, in which more codes stay open: with the budget of the values before a burst,
//! many lanes stay unresolved. So the streams choose their budgets again every [`cost::REBALANCE_INTERVAL_VALUES`]
//! values, and when the values change, from a few of the last values ([`last_runs`], [`left`]).

mod gains;

use super::cost;
use crate::kernel::{BitPlanes, CANDIDATES, CODES, Kernel, LANES, MOST_CODES, Probe, Probes};
use gains::{Gains, Weights};
use rayon::prelude::*;
use std::cmp::Reverse;

/// Number of last values from which samples are taken, for long sequences.
pub(super) const SPAN: u64 = 1 << 16;

/// Maximum number of positions in a sample.
const SAMPLE: u64 = 512;

/// Number of values per sampled position while the sequence is short.
const VALUES_PER_SAMPLE: u64 = 1 << 13;

/// The length of the sequence at which a new order is due: four times the length at the last learning, or 2^27 more.
pub(super) fn next_learning(learnt_at: u64) -> u64 {
    (learnt_at * cost::LEARN_GROWTH).min(learnt_at + cost::LEARN_INTERVAL_VALUES)
}

/// The positions to learn from: in the older half of the last [`SPAN`] values before `end`, or of the last quarter if
/// that is shorter. Their distance is odd, so that the sample contains even and odd positions.
pub(super) fn sample(end: u64) -> Vec<u64> {
    let span = SPAN.min(end / 4);
    let count = SAMPLE.min(end / VALUES_PER_SAMPLE).clamp(1, span / 4);
    let step = (span / 2 / count).saturating_sub(1) | 1;
    (0..count).map(|i| end - span + i * step).collect()
}

/// The first positions of the runs of [`LANES`] values from which a budget is chosen, the last run first, spread over
/// the last [`SPAN`] values before `end`. `end` is at least 2^13.
pub(super) fn last_runs(end: u64) -> impl Iterator<Item = u64> {
    let apart = SPAN.min(end / 4) / RUNS;
    (1..=RUNS).map(move |i| end - i * apart)
}

/// Number of runs from which a budget is chosen.
const RUNS: u64 = 32;

/// The number of codes to consider, one of [`CODES`], with the least total cost for a sample of `answers`, which are
/// codes.
///
/// Each code considered costs `price` per value. An answer at or above the number costs `loss(k)`, where k ≥ 1 counts
/// the codes from the number up to the answer.
pub(super) fn codes_to_consider(answers: &[usize], price: u64, loss: impl Fn(u64) -> u64) -> usize {
    // The number of answers with each code: the answers are thousands, and the codes 256.
    let mut counts = vec![0u64; 1 + answers.iter().copied().max().unwrap_or(0)];
    answers.iter().for_each(|&code| counts[code] += 1);
    let price_of = |&codes: &usize| -> u64 {
        let beyond = (1..).zip(counts.iter().skip(codes)).map(|(beyond, &count)| count * loss(beyond));
        beyond.sum::<u64>() + price * (codes * answers.len()) as u64
    };
    CODES.into_iter().min_by_key(price_of).unwrap_or(MOST_CODES)
}

/// Moves the best `count` of `lookups` to the front, best first. The others follow, those that would gain most as the
/// next one first. Of lookups with equal gains, the earlier stays first. All threads of the pool take part.
///
/// At sample position i the codes below `below[i]` matter, and `option(lookup, i)` is the code of the option that the
/// lookup gives there, or at least [`MOST_CODES`] when it gives none.
pub(super) fn learn<T: Copy + Sync>(
    lookups: &mut Vec<T>,
    count: usize,
    below: &[usize],
    option: impl Fn(&T, usize) -> u8 + Sync,
) {
    let shard_length = gains::shard_length(lookups.len());
    let gains = |shard: &[T]| Gains::new(shard.len(), below, |of, i| option(&shard[of], i));
    let mut shards: Vec<Gains> = lookups.par_chunks(shard_length).map(gains).collect();
    let mut weights = Weights::new(below);
    let mut chosen = Vec::with_capacity(lookups.len());
    while chosen.len() < count
        && let Some(shard) = gains::best(&shards)
    {
        let best = shard * shard_length + shards[shard].choose();
        chosen.push(lookups[best]);
        let falls = weights.lower(|i| option(&lookups[best], i));
        shards.par_iter_mut().for_each(|gains| gains.fall(&falls));
    }
    let gains = shards.iter().flat_map(Gains::all);
    let mut others: Vec<(i32, T)> =
        gains.copied().zip(lookups.iter().copied()).filter(|&(gain, _)| gain >= 0).collect();
    others.sort_by_key(|&(gain, _)| Reverse(gain));
    chosen.extend(others.into_iter().map(|(_, lookup)| lookup));
    *lookups = chosen;
}

/// A run of [`LANES`] consecutive values, from index `at` of a window on: in lane i the codes below `below[i]` matter.
pub(super) struct LookupRun {
    pub(super) at: usize,
    pub(super) below: [u8; LANES],
}

/// The number of codes that matter and that no marked lookup hits (open codes), over all lanes of some runs.
#[derive(Clone, Debug)]
pub(super) struct Left {
    /// Number of open codes in all lanes together.
    pub(super) sum: usize,
    /// `at_least[k]`: the number of lanes with at least k open codes, for 0 < k <= [`CANDIDATES`].
    pub(super) at_least: [usize; CANDIDATES + 1],
}

/// Number of lookups between two counts of the open codes.
pub(super) const LOOKUPS_PER_STEP: usize = 16;

/// Counts the open codes among `codes` codes after the first 0, [`LOOKUPS_PER_STEP`], 2 [`LOOKUPS_PER_STEP`], …
/// lookups, and finally after all of them. The kernel marks one run of [`LANES`] lanes at a time.
pub(super) fn left(kernel: Kernel, window: &[u8], lookups: &[Probe], runs: &[LookupRun], codes: usize) -> Vec<Left> {
    let steps: Vec<Probes> = lookups.chunks(LOOKUPS_PER_STEP).map(|step| step.iter().copied().collect()).collect();
    let mut left = vec![Left { sum: 0, at_least: [0; CANDIDATES + 1] }; steps.len() + 1];
    for run in runs {
        let mut planes = BitPlanes::new(codes);
        for (i, left) in left.iter_mut().enumerate() {
            if i > 0 {
                kernel.mark(window, run.at, &steps[i - 1], &mut planes);
            }
            let mut open = planes.clone();
            kernel.marks_to_open(&mut open, &run.below);
            for count in open_codes(&open) {
                left.sum += usize::from(count);
                left.at_least[usize::from(count).min(CANDIDATES)] += 1;
            }
        }
    }
    // So far `at_least[k]` counts the lanes with exactly k open codes, or with CANDIDATES and more.
    for left in &mut left {
        (0..CANDIDATES).rev().for_each(|k| left.at_least[k] += left.at_least[k + 1]);
    }
    left
}

/// The number of set bits in each lane.
fn open_codes(planes: &BitPlanes) -> [u8; LANES] {
    let mut count = [0u64; LANES / 8];
    for row in planes.rows() {
        for (count, &lanes) in count.iter_mut().zip(row.as_chunks().0) {
            // Count the bits within each byte: pairs first, then nibbles, then whole bytes. No sum exceeds MOST_CODES.
            let bits = u64::from_le_bytes(lanes);
            let bits = bits.wrapping_sub(bits >> 1 & 0x5555_5555_5555_5555);
            let bits = (bits & 0x3333_3333_3333_3333).wrapping_add(bits >> 2 & 0x3333_3333_3333_3333);
            *count = count.wrapping_add(bits.wrapping_add(bits >> 4) & 0x0f0f_0f0f_0f0f_0f0f);
        }
    }
    let mut lanes = [0; LANES];
    lanes.as_chunks_mut().0.iter_mut().zip(count).for_each(|(lanes, count)| *lanes = count.to_le_bytes());
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::Random;

    /// A wrong choice would change no value, but would make the streams slow.
    #[test]
    fn the_codes_to_consider_are_the_cheapest_by_plain_sums() {
        let mut random = Random::new("codes to consider");
        for _ in 0..200 {
            let spread = 1 + random.below(256);
            let answers: Vec<usize> = (0..random.below(300)).map(|_| random.below(spread) as usize).collect();
            let (price, loss) = (random.below(50), |beyond: u64| if beyond <= 16 { 400 } else { 1000 + beyond });
            let cost = |codes: usize| -> u64 {
                let lost = answers.iter().filter(|&&code| code >= codes).map(|&code| loss((code - codes + 1) as u64));
                price * (codes * answers.len()) as u64 + lost.sum::<u64>()
            };
            let found = codes_to_consider(&answers, price, loss);
            assert_eq!(cost(found), CODES.into_iter().map(cost).min().unwrap(), "{found} for {answers:?}");
        }
    }

    /// The order by definition: each lookup has the largest sum of weights of those left, the first of equal ones.
    /// After `count` lookups, the weights stay.
    fn greedy(options: &[Vec<u8>], below: &[usize], count: usize) -> Vec<usize> {
        let mut weights = vec![[1u32 << 12; MOST_CODES]; below.len()];
        let (mut chosen, mut rest) = (Vec::new(), (0..options.len()).collect::<Vec<usize>>());
        while !rest.is_empty() {
            let matters = |lookup: usize, i: usize| usize::from(options[lookup][i]) < below[i].min(MOST_CODES);
            let gain = |&lookup: &usize| -> u32 {
                let hit = (0..below.len()).filter(|&i| matters(lookup, i));
                hit.map(|i| weights[i][usize::from(options[lookup][i])]).sum()
            };
            let best = rest.iter().map(gain).max().unwrap();
            let at = rest.iter().position(|lookup| gain(lookup) == best).unwrap();
            let lookup = rest.remove(at);
            for i in (0..below.len()).filter(|&i| chosen.len() < count && matters(lookup, i)) {
                let weight = &mut weights[i][usize::from(options[lookup][i])];
                *weight = *weight * 3 / 8;
            }
            chosen.push(lookup);
        }
        chosen
    }

    /// A wrong order would change no value, but would make the streams slow.
    #[test]
    fn the_learnt_order_is_the_greedy_one_with_any_number_of_threads() {
        let mut random = Random::new("learnt order");
        let pools = [1, 3].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
        for (count, codes, positions) in [(30, 256, 40), (30, 4, 2), (2500, 256, 20), (0, 256, 5), (7, 256, 0)] {
            let below: Vec<usize> = (0..positions).map(|_| random.below(250) as usize).collect();
            let mut option = || random.below(codes).to_le_bytes()[0];
            let options: Vec<Vec<u8>> = (0..count).map(|_| below.iter().map(|_| option()).collect()).collect();
            for chosen in [0, 5, 100] {
                let expected = greedy(&options, &below, chosen);
                for pool in &pools {
                    let mut lookups: Vec<usize> = (0..options.len()).collect();
                    pool.install(|| learn(&mut lookups, chosen, &below, |&lookup, i| options[lookup][i]));
                    assert!(lookups == expected, "{chosen} of {count} lookups, {} threads", pool.current_num_threads());
                }
            }
        }
    }

    /// Wrong counts would change no value, but would make the streams slow.
    #[test]
    fn open_code_counts_agree_with_a_plain_count() {
        let mut random = Random::new("what lookups leave open");
        for codes in CODES {
            let mut byte = |below: usize| random.below(below as u64).to_le_bytes()[0];
            let window: Vec<u8> = (0..2000).map(|_| byte(codes)).collect();
            let lookups: Vec<Probe> =
                (0..5 * LOOKUPS_PER_STEP + 3).map(|_| Probe::new(4 * usize::from(byte(256)), byte(codes))).collect();
            let runs = [1200, 1300].map(|at| LookupRun { at, below: std::array::from_fn(|_| byte(codes + 1)) });
            let plain_counts = |used: usize| {
                let mut open = Vec::new();
                for (run, lane) in runs.iter().flat_map(|run| (0..LANES).map(move |lane| (run, lane))) {
                    let hit = |p: &Probe| window[run.at + lane - p.offset] ^ p.code();
                    let left = |&code: &u8| lookups[..used].iter().all(|p| hit(p) != code);
                    open.push((0..run.below[lane]).filter(left).count());
                }
                open
            };
            for kernel in Kernel::available() {
                let found = left(kernel, &window, &lookups, &runs, codes);
                assert_eq!(found.len(), 7, "{kernel}, {codes} codes");
                for (i, left) in found.iter().enumerate() {
                    let open = plain_counts(lookups.len().min(i * LOOKUPS_PER_STEP));
                    assert_eq!(left.sum, open.iter().sum::<usize>(), "{kernel}, {codes} codes, step {i}");
                    let at_least: Vec<usize> =
                        (0..=CANDIDATES).map(|k| open.iter().filter(|&&open| open >= k).count()).collect();
                    assert_eq!(left.at_least[..], at_least, "{kernel}, {codes} codes, step {i}");
                }
            }
        }
    }
}

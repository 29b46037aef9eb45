//! The learnt order of lookups: many hits first.
//!
//! The order never changes a result, only how much is left after the first lookups are marked; taken greedily on a
//! sample of the last heaps it is worth a factor of two against the order by distance. Each next lookup is the one that
//! hits most of the codes that matter and are not hit yet; a hit code keeps about a third of its weight, so that what is
//! hit once may be hit again elsewhere. Both streams order theirs so: the candidates the lookups of rare parts, the
//! witnesses those of common parts.
//!
//! Gains only fall as lookups are chosen, so the best of a heap whose gain is up to date is the best of all (lazy
//! greedy). An order keeps well: learnt at 2·10^6 and used at 10^7 it left Grundy's game as many false candidates, and as
//! few witnesses to search, as one learnt on the spot. From 10^8 to 7·10^8 it does not keep: the search heap by heap took
//! twice the time. So it is learnt when the sequence has grown fourfold, or by 2^27 heaps (learning every 2^26
//! took 2 % of the samples).
//!
//! What does not keep is how far down the order to go before what is left is done another way: large values come in bursts,
//! in which more codes stay open. By the shares of the heaps before it, a burst at 4.5·10^8 lost the candidate of one heap in
//! 16 (0.8 µs each; one in 100 otherwise), and values took twice the time. So these shares are decided anew every [`SHARE`]
//! heaps and when the values change, from a few of the last heaps ([`last`], [`left`]); values in bursts take a quarter to a
//! third less time.

use crate::kernel::{BitPlanes, CANDIDATES, CODES, Kernel, LANES, MOST_CODES, Probe, Probes};
use std::collections::BinaryHeap;

/// The sample is spread over so many of the last heaps.
pub(super) const SPAN: u64 = 1 << 16;

/// Heaps in the sample at most, and one for so many heaps of a young sequence.
const SAMPLE: u64 = 512;
const YOUTH: u64 = 1 << 11;

/// A new order is learnt whenever the sequence has grown so many times as long, or by so many heaps.
pub(super) fn next_learning(learnt_at: u64) -> u64 {
    (learnt_at * 4).min(learnt_at + (1 << 27))
}

/// The heaps before `end` to learn from, all after `end - SPAN` and in the last quarter. They lie an odd number apart, so
/// that no class of heaps is left out.
pub(super) fn sample(end: u64) -> Vec<u64> {
    let span = SPAN.min(end / 4);
    let count = SAMPLE.min(end / YOUTH).clamp(1, span / 4);
    let step = (span / 2 / count).saturating_sub(1) | 1;
    (0..count).map(|i| end - span + i * step).collect()
}

/// How lookups are shared out is decided anew after so many heaps, or when so many were left without an answer: what they
/// lose then costs some times as much as deciding.
pub(super) const SHARE: u64 = 1 << 20;
pub(super) const LOST: u64 = 1 << 13;

/// The first heaps of runs of [`LANES`] before `end`, which is at least 2^13, to decide by: spread over the last [`SPAN`].
pub(super) fn last(end: u64) -> impl Iterator<Item = u64> {
    let apart = SPAN.min(end / 4) / RUNS;
    (1..=RUNS).rev().map(move |i| end - i * apart)
}
const RUNS: u64 = 32;

/// After so many heaps it is asked anew how many codes to consider: large values come in bursts.
pub(super) const RECONSIDER: u64 = 1 << 17;

/// How many codes to consider, given those of the answers in a sample: one more costs `price` in every heap, an answer
/// beyond costs `loss(codes above)`.
pub(super) fn codes_to_consider(answers: &[usize], price: u64, loss: impl Fn(u64) -> u64) -> usize {
    let cost = |&codes: &usize| -> u64 {
        let beyond = answers.iter().filter(|&&code| code >= codes).map(|&code| loss((code - codes) as u64 + 1));
        beyond.sum::<u64>() + price * (codes * answers.len()) as u64
    };
    CODES.into_iter().min_by_key(cost).unwrap_or(MOST_CODES)
}

const WHOLE: u32 = 1 << 12;

/// Puts the best `count` of `lookups` in producer, best first; the others follow in no particular order, as do those that
/// would gain less than one code in one heap.
///
/// Those of `given` are used in any case. `below[i]` says that the codes below it matter at sample heap i,
/// `option(lookup, i)` is the code of the option that the lookup gives there (at least [`MOST_CODES`] when there is
/// none).
pub(super) fn learn<T: Copy>(
    lookups: &mut Vec<T>,
    given: &[T],
    count: usize,
    below: &[usize],
    option: impl Fn(&T, usize) -> u8,
) {
    // What a hit of code v at heap i is worth.
    let mut weight: Vec<[u32; 256]> =
        below.iter().map(|&end| std::array::from_fn(|v| if v < end.min(MOST_CODES) { WHOLE } else { 0 })).collect();
    for lookup in given {
        for (i, row) in weight.iter_mut().enumerate() {
            let v = usize::from(option(lookup, i));
            row[v] = row[v] * 3 / 8;
        }
    }
    let options: Vec<Vec<u8>> =
        lookups.iter().map(|lookup| (0..below.len()).map(|i| option(lookup, i)).collect()).collect();
    let gain = |weight: &[[u32; 256]], of: usize| -> u64 {
        options[of].iter().zip(weight).map(|(&v, row)| u64::from(row[usize::from(v)])).sum()
    };
    let mut queue: BinaryHeap<(u64, usize)> = (0..lookups.len()).map(|i| (gain(&weight, i), i)).collect();
    let mut chosen = Vec::with_capacity(lookups.len());
    while let Some((bound, of)) = queue.pop() {
        if chosen.len() >= count || bound < WHOLE.into() {
            chosen.push(of);
            continue;
        }
        let now = gain(&weight, of);
        // Gains only fall. Nearly the best is good enough: it saves nine of ten looks.
        let best = queue.peek().map_or(0, |next| next.0);
        if now < bound && now * 16 < best * 15 {
            queue.push((now, of));
            continue;
        }
        chosen.push(of);
        for (&v, row) in options[of].iter().zip(&mut weight) {
            row[usize::from(v)] = row[usize::from(v)] * 3 / 8;
        }
    }
    *lookups = chosen.into_iter().map(|of| lookups[of]).collect();
}

/// Consecutive heaps to decide by, from index `at` of a window on, and for each how many codes matter: those below.
pub(super) struct LookupRun {
    pub(super) at: usize,
    pub(super) below: [u8; LANES],
}

/// How many of the codes that matter some lookups leave open, in all heaps of some runs together.
#[derive(Clone, Debug)]
pub(super) struct Left {
    /// Of all heaps.
    pub(super) sum: usize,
    /// `at_least[k]`: heaps with at least k, for 0 < k <= [`CANDIDATES`].
    pub(super) at_least: [usize; CANDIDATES + 1],
}

/// Lookups between two questions how many codes are left.
pub(super) const LOOKUPS_PER_STEP: usize = 16;

/// What the first 0, [`LOOKUPS_PER_STEP`], 2 [`LOOKUPS_PER_STEP`], … lookups, and in the end all of them, leave open of `codes` codes. (A kernel
/// marks them for 64 heaps at a time; one heap after the other it took 3 to 4 % of all time for half as many heaps.)
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
            kernel.open(&mut open, &run.below);
            for count in open_codes(&open) {
                left.sum += usize::from(count);
                left.at_least[usize::from(count).min(CANDIDATES)] += 1;
            }
        }
    }
    // So far these are the heaps with exactly k, or with CANDIDATES and more.
    for left in &mut left {
        (0..CANDIDATES).rev().for_each(|k| left.at_least[k] += left.at_least[k + 1]);
    }
    left
}

/// How many bits of each lane are set.
fn open_codes(planes: &BitPlanes) -> [u8; LANES] {
    let mut count = [0u64; LANES / 8];
    for row in planes.rows() {
        for (count, &lanes) in count.iter_mut().zip(row.as_chunks().0) {
            // Of each byte for itself: first two bits together, then four, then all. No sum exceeds MOST_CODES.
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

    /// Wrong counts would change no value, only make the streams slow.
    #[test]
    fn what_look_ups_leave_open_is_what_a_plain_count_says() {
        let mut random = Random::new("what lookups leave open");
        for codes in CODES {
            let mut byte = |below: usize| random.below(below as u64).to_le_bytes()[0];
            let window: Vec<u8> = (0..2000).map(|_| byte(codes)).collect();
            let lookups: Vec<Probe> =
                (0..5 * LOOKUPS_PER_STEP + 3).map(|_| Probe::new(4 * usize::from(byte(256)), byte(codes))).collect();
            let runs = [1200, 1300].map(|at| LookupRun { at, below: std::array::from_fn(|_| byte(codes + 1)) });
            let plainly = |asked: usize| {
                let mut open = Vec::new();
                for (run, lane) in runs.iter().flat_map(|run| (0..LANES).map(move |lane| (run, lane))) {
                    let hit = |p: &Probe| window[run.at + lane - p.offset] ^ p.code();
                    let left = |&code: &u8| lookups[..asked].iter().all(|p| hit(p) != code);
                    open.push((0..run.below[lane]).filter(left).count());
                }
                open
            };
            for kernel in Kernel::available() {
                let found = left(kernel, &window, &lookups, &runs, codes);
                assert_eq!(found.len(), 7, "{kernel}, {codes} codes");
                for (i, left) in found.iter().enumerate() {
                    let open = plainly(lookups.len().min(i * LOOKUPS_PER_STEP));
                    assert_eq!(left.sum, open.iter().sum::<usize>(), "{kernel}, {codes} codes, step {i}");
                    let at_least: Vec<usize> =
                        (0..=CANDIDATES).map(|k| open.iter().filter(|&&open| open >= k).count()).collect();
                    assert_eq!(left.at_least[..], at_least, "{kernel}, {codes} codes, step {i}");
                }
            }
        }
    }
}

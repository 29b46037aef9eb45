//! The learnt order of look-ups: many hits first.
//!
//! The order never changes a result, only how much is left after the first look-ups are marked; taken greedily on a
//! sample of the last heaps it is worth a factor of two against the order by distance. Each next look-up is the one that
//! hits most of the codes that matter and are not hit yet; a hit code keeps about a third of its weight, so that what is
//! hit once may be hit again elsewhere. Both streams order theirs so: the candidates the look-ups of rare parts, the
//! witnesses those of common parts.
//!
//! Gains only fall as look-ups are chosen, so the best of a heap whose gain is up to date is the best of all (lazy
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

use crate::mex::{CANDIDATES, CODES, LANES, MOST_CODES, Probe};
use std::collections::BinaryHeap;

/// The sample is spread over so many of the last heaps.
pub(super) const SPAN: u64 = 1 << 16;

/// Heaps in the sample at most, and one for so many heaps of a young sequence.
const SAMPLE: u64 = 512;
const YOUTH: u64 = 1 << 11;

/// So many times as many heaps are there to try what was learnt: what is rare shows only in many.
const TRIED: u64 = 8;

/// A new order is learnt whenever the sequence has grown so many times as long, or by so many heaps.
pub(super) fn next_learning(learnt_at: u64) -> u64 {
    (learnt_at * 4).min(learnt_at + (1 << 27))
}

/// The heaps before `end` to learn from, and others to try what was learnt; all after `end - SPAN` and in the last
/// quarter, the latter half later than the former. They lie an odd number apart, so that no class of heaps is left out.
pub(super) fn samples(end: u64) -> (Vec<u64>, Vec<u64>) {
    let span = SPAN.min(end / 4);
    let count = SAMPLE.min(end / YOUTH).clamp(1, span / 4);
    let heaps = |first: u64, count: u64| -> Vec<u64> {
        let step = (span / 2 / count).saturating_sub(1) | 1;
        (0..count).map(|i| first + i * step).collect()
    };
    (heaps(end - span, count), heaps(end - span / 2, (TRIED * count).min(span / 2)))
}

/// How look-ups are shared out is decided anew after so many heaps, or when so many were left without an answer: what they
/// lose then costs some times as much as deciding.
pub(super) const SHARE: u64 = 1 << 20;
pub(super) const LOST: u64 = 1 << 13;

/// The last heaps, to decide by: runs of [`LANES`], so that what they look at is near, spread over the last [`SPAN`].
pub(super) fn last(end: u64) -> Vec<u64> {
    let apart = SPAN.min(end / 4) / RUNS;
    let runs = (1..=RUNS).rev().map(|i| end - i * apart);
    runs.flat_map(|first| first..first + apart.min(LANES as u64)).collect()
}
const RUNS: u64 = 16;

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

/// Puts the best `count` of `lookups` in front, best first; the others follow in no particular order, as do those that
/// would gain less than one code in one heap.
///
/// Those of `given` are used in any case. `below[i]` says that the codes below it matter at sample heap i,
/// `option(lookup, i)` is the code of the option that the look-up gives there (at least [`MOST_CODES`] when there is
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

/// How many of the codes that matter some look-ups leave open, in all heaps of a sample together.
#[derive(Clone, Debug)]
pub(super) struct Left {
    /// Of all heaps.
    pub(super) sum: usize,
    /// `at_least[k]`: heaps with at least k, for 0 < k <= [`CANDIDATES`].
    pub(super) at_least: [usize; CANDIDATES + 1],
}

/// What the first 0, 1, … look-ups leave open, of the codes below `below` at each heap `(at, below)`.
pub(super) fn left(window: &[u8], lookups: &[Probe], heaps: &[(usize, usize)]) -> Vec<Left> {
    let none = Left { sum: 0, at_least: [0; CANDIDATES + 1] };
    // First by how much less each look-up leaves than the one before, heap by heap: so all that is touched is near.
    let mut less = vec![none.clone(); lookups.len() + 1];
    let mut all = none;
    for &(at, below) in heaps {
        let mut open: [bool; 256] = std::array::from_fn(|code| code < below);
        let mut left = below.min(256);
        all.sum += left;
        all.at_least[..=left.min(CANDIDATES)].iter_mut().for_each(|heaps| *heaps += 1);
        for (lookup, less) in lookups.iter().zip(&mut less[1..]) {
            if std::mem::take(&mut open[usize::from(window[at - lookup.offset] ^ lookup.code())]) {
                less.sum += 1;
                if left <= CANDIDATES {
                    less.at_least[left] += 1;
                }
                left -= 1;
            }
        }
    }
    for left in &mut less {
        all.sum -= left.sum;
        all.at_least.iter_mut().zip(&left.at_least).for_each(|(all, less)| *all -= less);
        *left = all.clone();
    }
    less
}

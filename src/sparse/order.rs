//! The learnt order of the look-ups: many hits first.
//!
//! The order never changes a result, only how many false candidates are left after the first look-ups are marked; taken
//! greedily on the last heaps it is worth a factor of two against the order by distance. Each next look-up is the one that
//! hits most of the values below the true one that are not hit yet; a hit value keeps about a third of its weight, so
//! that what is hit once may be hit again when the sequence drifts on.
//!
//! Gains only fall as look-ups are chosen, so the best of a heap whose gain is up to date is the best of all (lazy greedy).

use super::candidate::Lookup;
use crate::mex::MOST_CODES;
use std::collections::BinaryHeap;

/// Heaps learnt from.
pub(super) const SAMPLE: usize = 512;

const WHOLE: u32 = 1 << 12;

/// Puts the `count` best look-ups in front, best first; the others follow in no particular order.
///
/// `truth[i]` is the code of sample heap i (`None` when it is rare), `option(lookup, i)` the code of the option that the
/// look-up gives there (at least [`MOST_CODES`] when there is none).
pub(super) fn learn(
    lookups: &mut Vec<Lookup>,
    count: usize,
    truth: &[Option<u8>],
    option: impl Fn(&Lookup, usize) -> u8,
) {
    // What a hit of code v at heap i is worth; nothing at or above the true value.
    let mut weight: Vec<[u32; 256]> = truth
        .iter()
        .map(|code| {
            let below = code.map_or(0, usize::from).min(MOST_CODES);
            std::array::from_fn(|v| if v < below { WHOLE } else { 0 })
        })
        .collect();
    let options: Vec<Vec<u8>> =
        lookups.iter().map(|lookup| (0..truth.len()).map(|i| option(lookup, i)).collect()).collect();
    let gain = |weight: &[[u32; 256]], of: usize| -> u64 {
        options[of].iter().zip(weight).map(|(&v, row)| u64::from(row[usize::from(v)])).sum()
    };
    let mut queue: BinaryHeap<(u64, usize, usize)> = (0..lookups.len()).map(|i| (gain(&weight, i), i, 0)).collect();
    let mut chosen = Vec::with_capacity(lookups.len());
    while let Some((_, of, round)) = queue.pop() {
        if chosen.len() >= count {
            chosen.push(of);
        } else if round == chosen.len() {
            chosen.push(of);
            for (&v, row) in options[of].iter().zip(&mut weight) {
                row[usize::from(v)] = row[usize::from(v)] * 3 / 8;
            }
        } else {
            queue.push((gain(&weight, of), of, chosen.len()));
        }
    }
    *lookups = chosen.into_iter().map(|of| lookups[of]).collect();
}

use super::*;
use crate::solver::pipeline::Pipeline;
use crate::solver::{Histogram, Method, values};

/// A stream that continues the first values of a game, with the rare positions of its best space.
fn stream(rule: &Rule, kernel: Kernel, past: &[u16]) -> CandidateStream {
    let (space, _) = Histogram::of(past).unwrap().best_space(rule);
    let rare_positions = (0..).zip(past.iter().copied()).filter(|&(n, v)| space.is_rare(v, n)).collect();
    let max_value = past.iter().copied().max().unwrap_or(0);
    CandidateStream::new(
        rule,
        space,
        kernel,
        SequenceStats { rare_positions, max_value, ..SequenceStats::default() },
        past,
    )
    .unwrap()
}

/// Compares the recurrence kernel with marking, checking and near lookups, in blocks of many lengths.
#[test]
fn the_recurrence_and_the_lanes_give_the_same_candidates() {
    let games = [".106", ".104", ".054", ".454", ".77", ".044", ".205", "remove-a-square"];
    // Two games have codes outside the range of the recurrence kernel: one now and then, one too often.
    let games = games.into_iter().chain([".174"]).map(|game| (game, true)).chain([(".015", false)]);
    let mut fallbacks = 0;
    for (game, stays) in games {
        let rule: Rule = game.parse().unwrap();
        let past = values(&rule, Method::Sparse(Kernel::best()), 12_000).unwrap();
        for kernel in Kernel::available() {
            let (mut from_recurrence, mut plain) = (stream(&rule, kernel, &past), stream(&rule, kernel, &past));
            plain.fallback.forbids_recurrence = true;
            for length in [1, 7, 63, 64, 65, 1000, 1024, 1025, 16384, 3, 16384, 2, 16384, 16384, 16384, 16384] {
                let proved = from_recurrence.end();
                let [found, expected] = [&mut from_recurrence, &mut plain].map(|stream| {
                    let codes = Codes::new(stream.space, stream.end());
                    stream.block(length, Threads::ONE, &Pipeline::new(&codes, kernel, stream.end() + length as u64))
                });
                assert!(found == expected, "{rule}, {kernel}, {length} from {proved}");
                fallbacks += u64::from(from_recurrence.fallback.values > 0);
            }
            assert!(!plain.plan.is_recurrence());
            assert_eq!(
                from_recurrence.plan.is_recurrence(),
                stays,
                "{rule}, {kernel}, penalty of {} values",
                from_recurrence.fallback.values
            );
        }
    }
    assert!(fallbacks > 0, "no game had a code outside the range of the recurrence kernel");
}

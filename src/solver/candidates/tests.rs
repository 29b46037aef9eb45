use super::*;
use crate::kernel::RANGES;
use crate::solver::lookups::far_lanes::{FarLanes, LaneCodes};
use crate::solver::pipeline::{BlockValues, Pipeline};
use crate::solver::{Histogram, Method, values};
use crate::support::Random;

/// A stream that continues the first values of a game, with the rare positions of its best space.
fn stream(rule: &Rule, kernel: Kernel, past: &[u16]) -> CandidateStream {
    let (space, _) = Histogram::of(&past).unwrap().best_space(rule);
    let rare_positions = (0..).zip(past.iter().copied()).filter(|&(n, v)| space.is_rare(v, n)).collect();
    let max_value = past.iter().copied().max().unwrap_or(0);
    CandidateStream::new(
        rule,
        space,
        kernel,
        SequenceStats { rare_positions, max_value, ..SequenceStats::default() },
        &past,
    )
    .unwrap()
}

/// Compares the recurrence kernel with marking, checking and near lookups, in blocks of many lengths.
#[test]
fn the_recurrence_and_the_lanes_give_the_same_candidates() {
    let games = [".106", ".104", ".054", ".454", ".77", ".044", ".205", "remove-a-square", ".174"];
    // Two games have codes outside the least range too often: one has few lookups, one too many for the larger range.
    let games = games.into_iter().map(|game| (game, Some(RANGES[0])));
    let games = games.chain([("4.045", Some(RANGES[1])), (".015", None)]);
    let mut fallbacks = 0;
    for (game, range) in games {
        let rule: Rule = game.parse().unwrap();
        let past = values(&rule, Method::Sparse(Kernel::best()), 12_000).unwrap();
        for kernel in Kernel::available() {
            let (mut from_recurrence, mut plain) = (stream(&rule, kernel, &past), stream(&rule, kernel, &past));
            plain.recurrence_range.codes = None;
            for length in [1, 7, 63, 64, 65, 1000, 1024, 1025, 16384, 3, 16384, 2, 16384, 16384, 16384, 16384] {
                let proved = from_recurrence.end();
                let [found, expected] = [&mut from_recurrence, &mut plain].map(|stream| {
                    let codes = Codes::new(stream.space, stream.end());
                    let end = stream.end() + length as u64;
                    stream.use_threads(Threads::ONE);
                    stream.learn_when_due();
                    stream.block(length, &Pipeline::new(&codes, &BlockValues::default(), kernel, end))
                });
                assert!(found == expected, "{rule}, {kernel}, {length} from {proved}");
                fallbacks += u64::from(from_recurrence.recurrence_range.penalty > 0);
            }
            assert!(!plain.plan.is_recurrence());
            let used = from_recurrence.recurrence_range.codes.filter(|_| from_recurrence.plan.is_recurrence());
            let penalty = from_recurrence.recurrence_range.penalty;
            assert_eq!(used, range, "{rule}, {kernel}, penalty of {penalty} values");
        }
    }
    assert!(fallbacks > 0, "no game had a code outside the range of the recurrence kernel");
}

/// The percentages of the lookups that reach back less than 256, 512 and 1024 are: 4.404: 37, 59, 89; .374: 29, 56, 83;
/// .36: 9, 14, 24.
/// The expected choices follow from these numbers and the prices in `cost`.
#[test]
fn threads_share_far_lookups_only_where_these_leave_few_candidates() {
    let choices = [("4.404", [LANES, LANES]), (".374", [256, 256]), (".36", [512, 1024])];
    for (game, [with_two, with_eight]) in choices {
        let rule: Rule = game.parse().unwrap();
        let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let past = one_thread.install(|| values(&rule, Method::Sparse(Kernel::best()), 100_000)).unwrap();
        for (threads, first, learnt) in [(Threads::TWO, 512, with_two), (Threads::EIGHT, 1024, with_eight)] {
            let mut stream = stream(&rule, Kernel::best(), &past[..70_000]);
            stream.use_threads(threads);
            assert_eq!(stream.least_far, first, "{game}, {threads:?}: before the stream has learnt");
            stream.learn_when_due();
            assert_eq!(stream.least_far, learnt, "{game}, {threads:?}");
            let codes = Codes::new(stream.space, stream.end());
            let (found, _) =
                stream.block(30_000, &Pipeline::new(&codes, &BlockValues::default(), stream.kernel, 100_000));
            assert_eq!(stream.plan.shares_far(), learnt > LANES, "{game}, {threads:?}");
            assert!(found == past[70_000..], "{game}, {threads:?}");
        }
    }
}

/// As in a burst: the budget shows that the far lookups leave too many candidates.
#[test]
fn a_stream_learns_again_when_it_should_no_longer_share() {
    let rule: Rule = "4.404".parse().unwrap();
    let past = values(&rule, Method::Sparse(Kernel::best()), index(cost::RECONSIDER_INTERVAL_VALUES)).unwrap();
    let mut stream = stream(&rule, Kernel::best(), &past);
    stream.use_threads(Threads::TWO);
    stream.learn_when_due();
    assert!(!stream.is_learning_due());
    stream.least_far = 512;
    stream.unresolved = cost::MAX_UNRESOLVED_LANES + 1;
    stream.clocks.reconsidered(0);
    stream.reconsider_when_due();
    assert!(stream.is_learning_due());
    stream.learn_when_due();
    assert!(stream.least_far == LANES && !stream.is_learning_due());
}

/// Budgets that lose many answers, so that lanes are completed after the far and after the middle lookups, and
/// candidates set aside are read. Each code is compared with that of all lookups, read one by one.
#[test]
fn a_lane_without_a_candidate_gets_the_least_code_of_all_lookups() {
    for game in ["grundy", ".6", ".014"] {
        let rule: Rule = game.parse().unwrap();
        let past = values(&rule, Method::Sparse(Kernel::best()), 1 << 18).unwrap();
        let mut random = Random::new("lanes without a candidate");
        for kernel in Kernel::available() {
            let mut stream = stream(&rule, kernel, &past[..200_000]);
            stream.use_threads(Threads::EIGHT);
            let [mut completed, mut completed_later, mut aside] = [0; 3];
            for round in 0..60 {
                let marks = 400 + 50 * (round % 5);
                let keep = kernel::KEEP[kernel::KEEP.len() - 1 - round % 4];
                let codes = kernel::CODES[2 + round % 4];
                stream.budget = Budget { codes, marks, stages: vec![StageBudget { keep, from: marks }], keep_late: 2 };
                let start = index(stream.end() + random.below(1000)).next_multiple_of(LANES);
                past[index(stream.end())..start].iter().for_each(|&value| stream.windows.push(value));
                let plan = Arc::new(stream.make_plan(start as u64, (start + LANES) as u64));
                if !plan.shares_far() {
                    continue;
                }
                stream.plan.replace(Arc::clone(&plan));
                let mut far = FarLanes::default();
                let (window, at) = (stream.windows.codes().items(), stream.windows.codes().at(start as u64));
                far.evaluate(&plan, kernel, LaneCodes::of(window, at), &mut BitPlanes::default());
                let before = far.count_completed();
                far.revise(kernel, LaneCodes::of(window, at));
                completed += before;
                completed_later += far.count_completed() - before;
                kernel.check(window, at, &plan.late, &mut far.lanes);
                for (lane, &value) in past[start..start + LANES].iter().enumerate() {
                    let n = (start + lane) as u64;
                    let code = stream.lane_code(n, &far.lanes, lane);
                    assert_eq!(code, stream.least_code(n), "{game}, {kernel}, {n}");
                    let is_in = |rows: &[[u8; LANES]]| rows.iter().any(|row| Some(row[lane]) == code);
                    aside += usize::from(is_in(far.lanes.aside()));
                    stream.windows.push(value);
                }
            }
            assert!(
                completed > 5 && completed_later > 5 && aside > 5,
                "{game}, {kernel}: {completed} and {completed_later} lanes completed, {aside} read aside"
            );
        }
    }
}

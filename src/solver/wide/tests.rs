use super::NextValues;
use super::WideSolver;
use super::audit::ONE_IN_OF_ALL_PAIRS;
use super::far::{FarLane, FarRun};
use super::lookups::SplitLookups;
use super::near::NearStep;
use super::reader::Reader;
use super::run::Run;
use super::step::Step;
use crate::error::Error;
use crate::kernel::{Kernel, WIDE_ROWS};
use crate::solver::audit;
use crate::solver::block::BlockLimits;
use crate::solver::ends::Ends;
use crate::solver::parallelism::Threads;
use crate::solver::{self, Engine, Method, SequenceStats, Solver, SparseSpace, Work};
use crate::support::Random;
use crate::theory::definition;
use crate::theory::rule::{Leaves, Move, Rule, Split};

/// Compares the wide solver with the definition: a random kernel and number of threads, resumed at random lengths.
/// Returns whether the wide solver computed a value.
fn agrees(random: &mut Random, rule: &Rule, expected: &[u16]) -> bool {
    let mut found = expected[..4096 + random.below(500) as usize].to_vec();
    let mut witnessed = 0;
    while found.len() < expected.len() {
        let kernel = random.pick(&Kernel::available());
        let pool = rayon::ThreadPoolBuilder::new().num_threads(random.pick(&[1, 2, 5, 8, 16])).build().unwrap();
        let to = expected.len().min(found.len() + 1 + random.below(2000) as usize);
        witnessed += pool.install(|| {
            let mut solver = Solver::new(rule, Method::Sparse(kernel), None, &found).unwrap().with_audit(1);
            solver.prefers_wide = true;
            if matches!(solver.engine, Engine::Sparse(_)) {
                solver.engine = solver.enter_space(&found).unwrap();
            }
            solver.extend_to(&mut found, to as u64, |_| true).unwrap();
            let is_wide = matches!(solver.engine, Engine::Wide(_));
            if is_wide { solver.work().witnessed } else { 0 }
        });
        let differs = (0..found.len()).find(|&n| found[n] != expected[n]);
        assert_eq!(differs, None, "{rule}, {kernel}, up to {to}: first wrong value");
    }
    witnessed > 0
}

/// Games with byte codes, on the wide solver: pairs that are too near to each other among them.
#[test]
fn games_with_byte_codes_agree_with_the_definition() {
    let random = &mut Random::new("wide solver, bytes");
    for game in ["0.77", ".106", ".143", ".6", "remove-a-square", "grundy", "grundy:d=2", "grundy:d=7", ".644"] {
        let rule: Rule = game.parse().unwrap();
        let expected = definition::values(&rule, 9000).unwrap();
        let named = rule.known().is_some_and(|known| known.space.is_some());
        assert!(agrees(random, &rule, &expected) || !named, "{game} is not computed by the wide solver");
    }
}

/// A random rule with values above 511: Nim with at most `top` tokens taken, or constants of that size, and splits.
fn large_rule(random: &mut Random) -> Rule {
    let single = |remove, constant, leaves| Move { remove, constant, leaves };
    let mut moves = Vec::new();
    if random.below(2) == 0 {
        for s in 1..=520 + random.below(600) {
            moves.extend([single(s, 0, Leaves::One), single(s, 0, Leaves::Nothing)]);
        }
    } else {
        for _ in 0..520 + random.below(600) {
            moves.push(single(1 + random.below(3), random.below(2048) as u16, Leaves::One));
        }
    }
    // Splits that share all pairs, some, or none.
    let (most, constants) = (random.pick(&[5, 5, 80, 300]), random.pick(&[&[0][..], &[0, 0, 1, 6, 513]]));
    for _ in 0..1 + random.below(3) {
        let leaves = Leaves::Two { min_difference: random.pick(&[0, 0, 1, 2, 5]) };
        moves.push(single(random.below(most), random.pick(constants), leaves));
    }
    Rule::from_moves("large", moves).unwrap()
}

/// Continues `values` up to `to` values with the wide solver, where every position is rare. Returns the number of tiles
/// of pairs that were ranked.
fn extend_without_space(rule: &Rule, kernel: Kernel, threads: usize, values: &mut Vec<u16>, to: usize) -> usize {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let mut solver = Solver::new(rule, Method::Sparse(kernel), None, values).unwrap();
        let stats = SequenceStats { max_value: solver.max_value, ..SequenceStats::default() };
        let wide = WideSolver::new(rule, SparseSpace::NONE, kernel, stats, values).unwrap();
        (solver.engine, solver.space) = (Engine::Wide(Box::new(wide)), SparseSpace::NONE);
        solver.space_review.due_at = u64::MAX;
        let mut solver = solver.with_audit(1);
        solver.extend_to(values, to as u64, |_| true).unwrap();
        let Engine::Wide(wide) = &solver.engine else { panic!("another engine") };
        wide.tile_orders.count_ranked()
    })
}

/// Every position is rare: short and long sequences, resumed at any length.
#[test]
fn games_without_a_space_agree_with_the_definition() {
    let random = &mut Random::new("wide solver, no space");
    let named = ["0.4", ".07", ".244", ".644", "4.3", "grundy", "grundy:d=3", "remove-a-square"];
    let mut rules: Vec<Rule> = named.iter().map(|game| game.parse().unwrap()).collect();
    rules.extend((0..crate::support::cases(8, 100)).map(|_| large_rule(random)));
    for rule in rules {
        let expected = definition::values(&rule, 7000).unwrap();
        let mut found = expected[..random.pick(&[1, 2, 30, 300, 1200, 4000])].to_vec();
        while found.len() < expected.len() {
            let kernel = random.pick(&Kernel::available());
            let to = expected.len().min(found.len() + 1 + random.below(4000) as usize);
            extend_without_space(&rule, kernel, random.pick(&[1, 2, 5, 8, 16]), &mut found, to);
            let differs = (0..found.len()).find(|&n| found[n] != expected[n]);
            assert_eq!(differs, None, "{rule}, {kernel}, up to {to}: first wrong value");
        }
    }
}

/// More pairs than four tiles hold, in splits that share all of them, some, or none.
#[test]
fn values_from_several_tiles_of_pairs_agree_with_the_definition() {
    let random = &mut Random::new("wide solver, tiles");
    let split = |remove, constant| Move { remove, constant, leaves: Leaves::Two { min_difference: 0 } };
    let several = [0, 1, 70].map(|remove| split(remove, 0)).into_iter().chain([split(2, 5), split(3, 5)]);
    let rules = [".244".parse().unwrap(), Rule::from_moves("several splits", several.collect()).unwrap()];
    for rule in rules {
        let mut found = solver::values(&rule, Method::default(), 38_000).unwrap();
        let ranked = extend_without_space(&rule, Kernel::best(), 2, &mut found, 40_000);
        assert!(ranked > 1, "{rule}: {ranked} tiles ranked");
        let positions: Vec<u64> = (0..200).map(|_| 38_000 + random.below(2_000)).collect();
        let expected = |n: u64| definition::value_at(&rule, &found, n).unwrap();
        let wrong = positions.iter().find(|&&n| found[n as usize] != expected(n));
        assert_eq!(wrong, None, "{rule}: a wrong value");
    }
}

/// A wide solver that continues the values.
fn wide_solver(rule: &Rule, space: SparseSpace, values: &[u16]) -> WideSolver {
    let max_value = *values.iter().max().unwrap();
    let rare_positions = space.rare_positions(0, values).collect();
    let stats = SequenceStats { rare_positions, max_value, ..SequenceStats::default() };
    WideSolver::new(rule, space, Kernel::best(), stats, &values).unwrap()
}

/// The values of a game up to `end`, and a solver in the best space of the first `begin` of them, which it has learnt
/// from.
fn solver_of(game: &str, begin: usize, end: usize) -> (Vec<u16>, WideSolver) {
    let (all, mut wide) = unlearnt_solver_of(game, begin, end);
    wide.learn_when_due();
    (all, wide)
}

/// The same with a solver that uses lookups, where [`solver_of`] may compare all pairs.
fn lookup_solver_of(game: &str, begin: usize, end: usize) -> (Vec<u16>, WideSolver) {
    let (all, mut wide) = unlearnt_solver_of(game, begin, end);
    wide.all_pairs.judged_at = begin as u64;
    wide.learn_when_due();
    assert!(!wide.all_pairs.in_far_step, "{game}");
    (all, wide)
}

/// The values of a game up to `end`, and a solver in the best space of the first `begin` of them.
fn unlearnt_solver_of(game: &str, begin: usize, end: usize) -> (Vec<u16>, WideSolver) {
    let rule: Rule = game.parse().unwrap();
    let all = solver::values(&rule, Method::default(), end).unwrap();
    let (space, _) = solver::Histogram::of(&&all[..begin]).unwrap().best_space(&rule);
    let wide = wide_solver(&rule, space, &all[..begin]);
    (all, wide)
}

/// A game of the catalogue, and its sparse space there.
fn rule_and_known_space(game: &str) -> (Rule, SparseSpace) {
    let rule: Rule = game.parse().unwrap();
    let (mask, position) = rule.known().unwrap().space.unwrap();
    let space = SparseSpace::new(&rule, mask, position).unwrap();
    (rule, space)
}

/// Memory holds the last values of .106 alone until searches often compare all pairs. The byte streams give the
/// expected values.
#[test]
fn memory_holds_all_values_where_searches_compare_all_pairs() {
    let (rule, space) = rule_and_known_space(".106");
    let expected = solver::values(&rule, Method::default(), 182_000).unwrap();
    for deep in [0, u64::from(u32::MAX)] {
        let mut values = expected[..180_000].to_vec();
        let mut wide = wide_solver(&rule, space, &values);
        assert!(wide.values.start() > 0);
        let limits = BlockLimits { end: 0, longest: 1 << 12, threads: Threads::of_pool() };
        while values.len() < expected.len() {
            let mut more = Vec::new();
            let limits = BlockLimits { end: expected.len().min(values.len() + 500) as u64, ..limits };
            wide.step(&values, limits, &mut Work::default(), &mut more).unwrap();
            values.extend(more);
            wide.check_memory(&values).unwrap();
            wide.learning.deep_searches += deep;
        }
        assert_eq!((values == expected, wide.values.start() == 0), (true, deep > 0), "{deep}");
    }
}

/// Nothing can be compared with a copy of a discarded value.
#[test]
fn memory_holds_no_value_that_is_discarded() {
    let (rule, space) = rule_and_known_space(".106");
    let expected = solver::values(&rule, Method::default(), 231_000).unwrap();
    let limits = |n: usize| BlockLimits { end: n as u64 + 500, longest: 1 << 12, threads: Threads::ONE };
    let mut wide = wide_solver(&rule, space, &expected[..230_000]);
    wide.all_pairs.in_searches = true;
    let mut more = Vec::new();
    wide.step(&&expected[..230_000], limits(230_000), &mut Work::default(), &mut more).unwrap();
    assert!(wide.holds_all());

    let end = 230_000 + more.len();
    let past = Ends::of(expected[..1 << 16].to_vec(), 90_000, expected[90_000..end].to_vec());
    wide.step(&past, limits(end), &mut Work::default(), &mut more).unwrap();
    assert_eq!(wide.values.start(), 90_000);
    assert_eq!(more, expected[230_000..][..more.len()]);
    wide.drop_before(95_000);
    assert_eq!(wide.values.start(), 95_000);
}

/// G(7 250 049) = 256 is rare under the mask 254, long after all other rare positions below. So memory does not hold
/// all values when it is found, and the step ends. The byte streams with another mask give the expected values.
#[test]
fn a_late_rare_position_brings_all_values_into_memory() {
    const LATE: usize = 7_250_049;
    let random = &mut Random::new("wide solver, late rare position");
    let rule: Rule = "grundy".parse().unwrap();
    let expected = solver::values(&rule, Method::default(), LATE + 2000).unwrap();
    assert_eq!(expected[LATE], 256);
    let space = SparseSpace::new(&rule, 0xfe, 0).unwrap();
    for threads in [1, 2, 5] {
        let mut values = expected[..LATE - random.below(1000) as usize].to_vec();
        let mut wide = wide_solver(&rule, space, &values);
        assert!(wide.values.start() > 0);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let work = &mut Work::default();
        pool.install(|| {
            while values.len() < expected.len() {
                let end = expected.len() as u64;
                let limits = BlockLimits { end, longest: 1 << 13, threads: Threads::of_pool() };
                let mut more = Vec::new();
                wide.step(&values, limits, work, &mut more).unwrap();
                values.extend(more);
                wide.check_memory(&values).unwrap();
            }
        });
        assert_eq!((0..values.len()).find(|&n| values[n] != expected[n]), None, "{threads} threads");
        assert!(wide.values.start() == 0 && work.found_rare >= 1, "{threads} threads");
    }
}

/// The search compares all pairs, those whose values memory does not hold among them.
#[test]
fn a_search_of_all_pairs_finds_a_pair_where_there_is_one() {
    const COUNT: u64 = 300_000;
    let random = &mut Random::new("wide solver, all pairs");
    let split = |remove, constant, min_difference| Move { remove, constant, leaves: Leaves::Two { min_difference } };
    let rule = Rule::from_moves("splits", vec![split(0, 0, 1), split(7, 5, 0), split(9000, 0, 40_000)]).unwrap();
    let space = SparseSpace::new(&rule, 0x0110, 0).unwrap();
    // On average 2.5 pairs give a rare value with bit 15. All rare positions are small.
    let mut value = |n: u64| {
        let high = if random.below(20) == 0 { 0x8000 } else { 0 };
        Some(random.below(0x8000) as u16 | high).filter(|&v| space.is_rare(v, n) == (n < 30))
    };
    let mut values = vec![0];
    while (values.len() as u64) < COUNT {
        values.extend(value(values.len() as u64));
    }
    let wide = wide_solver(&rule, space, &values);
    assert!(wide.values.start() > COUNT / 4, "memory holds the values from {} on", wide.values.start());
    let option =
        |split: Split, a: u64| values[a as usize] ^ values[(COUNT - split.remove - a) as usize] ^ split.constant;
    let mut is_option = vec![false; 1 << 16];
    for split in rule.splits() {
        (1..=split.largest_small_part(COUNT)).for_each(|a| is_option[usize::from(option(split, a))] = true);
    }
    let reader = Reader::new(&wide);
    let mut found = 0;
    for target in (0..200).map(|_| random.below(0x8000) as u16 | 0x8000) {
        for alone in [true, false] {
            let pair = reader.find_pair(COUNT, target, &values, alone).unwrap();
            let gives = |(a, b): (u64, u64)| {
                let is_pair = |split: &Split| a + b + split.remove == COUNT && a <= split.largest_small_part(COUNT);
                a > 0 && rule.splits().filter(is_pair).any(|split| option(split, a) == target)
            };
            assert_eq!(pair.map(gives), is_option[usize::from(target)].then_some(true), "{target}: {pair:?}");
            found += u64::from(pair.is_some());
        }
    }
    assert!((40..360).contains(&found), "{found} of 400 searches found a pair");
}

/// The far step finds the same whether a thread reads the values before its copy from the solver, or has copied all of
/// them; also where some rare positions and values are newer than the solver.
#[test]
fn a_short_copy_reads_the_same_values_as_a_complete_one() {
    const BEGIN: usize = 150_000;
    let random = &mut Random::new("wide solver, copies");
    for (game, has_space) in [(".146", true), (".143", true), ("grundy", true), ("grundy", false), (".644", false)] {
        let rule: Rule = game.parse().unwrap();
        let all = solver::values(&rule, Method::default(), BEGIN + 4096).unwrap();
        let space = if has_space {
            solver::Histogram::of(&&all[..BEGIN]).unwrap().best_space(&rule).0
        } else {
            SparseSpace::NONE
        };
        assert_eq!(space != SparseSpace::NONE, has_space, "{game}");
        let mut wide = wide_solver(&rule, space, &all[..BEGIN]);
        wide.learn_when_due();
        let mut readers = [Reader::new(&wide), Reader::with_copy(&wide, u64::MAX)];
        assert!(readers[0].last().start() > readers[1].last().start(), "{game}");
        for _ in 0..4 {
            let known = readers[0].end();
            let run = Run { known, first: known + 64 * random.below(5), recent: &wide.recent };
            for kernel in Kernel::available() {
                let [short, complete] = readers.each_ref().map(|reader| {
                    let mut far = FarRun::default();
                    reader.far_lanes(kernel, run, &mut far);
                    far
                });
                assert!(short == complete, "{game}, {kernel}, from {} on, values known before {known}", run.first);
            }
            let more = &all[known as usize..][..random.below(1000) as usize];
            readers.iter_mut().for_each(|reader| reader.push(more));
        }
    }
}

/// A solver at `begin` that audits the next run.
fn auditing_solver(game: &str, begin: usize) -> WideSolver {
    let (_, mut wide) = solver_of(game, begin, begin);
    let selects_next = |&seed: &u64| audit::choice(seed, begin as u64 / 64).is_multiple_of(ONE_IN_OF_ALL_PAIRS);
    wide.set_audit((0..).find(selects_next));
    wide
}

/// The kernels find the parts of pairs in different orders, which must not stop a run.
#[test]
fn an_audit_compares_the_found_parts_in_any_order() {
    const BEGIN: usize = 8192;
    let wide = auditing_solver(".146", BEGIN);
    let run = Run { known: BEGIN as u64, first: BEGIN as u64, recent: &wide.recent };
    assert!(wide.is_audited(run));
    for (parts, agrees) in [([7, 5], true), ([5, 6], false)] {
        let audited = wide.audited(run, &mut FarRun::default(), |kernel, far| {
            far.lanes = vec![FarLane::default(); 64];
            far.lanes[3].searched.parts = if kernel == wide.kernel { vec![5, 7] } else { parts.to_vec() };
        });
        match audited {
            Ok(()) => assert!(agrees, "{parts:?}"),
            Err(Error::OptionsDiffer { n, .. }) => assert_eq!((agrees, n), (false, BEGIN as u64 + 3), "{parts:?}"),
            Err(error) => panic!("{error}"),
        }
    }
}

/// A lookup that was left out of a comparison leaves an option among the candidates.
#[test]
fn an_audit_finds_a_candidate_that_is_an_option() {
    const BEGIN: usize = 1 << 17;
    let random = &mut Random::new("wide solver, candidate that is an option");
    let wide = auditing_solver("grundy", BEGIN);
    assert!(!wide.all_pairs.in_far_step, "all pairs need no lookups");
    let reader = Reader::new(&wide);
    let run = Run { known: BEGIN as u64, first: BEGIN as u64, recent: &wide.recent };
    let mut far = FarRun::default();
    reader.far_lanes(wide.kernel, run, &mut far);
    wide.check_candidates(&reader, run, &far).unwrap();
    for _ in 0..50 {
        let (mut far, lane) = (far.clone(), random.below(64));
        let n = run.first + lane;
        let lookups = &wide.lookups[random.below(wide.lookups.len() as u64) as usize];
        // Parts at a distance from both ends, so that the option is far and its parts may have any difference.
        let far_parts: Vec<_> = lookups.all.parts.iter().filter(|part| (64..4000).contains(&part.offset)).collect();
        let option = reader.option(n, &lookups.split, random.pick(&far_parts)).unwrap();
        let candidates = &mut far.lanes[lane as usize].candidates;
        match random.below(4) as usize {
            row if row < candidates.len() => candidates[row] = option,
            _ => *candidates = vec![option],
        }
        let found = wide.check_candidates(&reader, run, &far);
        assert!(matches!(found, Err(Error::OptionsDiffer { n: at, .. }) if at == n), "{n}, {option}: {found:?}");
    }
}

/// What is left open before the near step does not depend on the lead, nor on when the run was revised.
#[test]
fn revised_lanes_are_those_of_a_far_step_without_a_lead() {
    const BEGIN: usize = 50_000;
    let random = &mut Random::new("wide solver, revised lanes");
    let mut compared = 0;
    for game in [".146", ".143", ".606", ".206", "grundy"] {
        let (all, wide) = solver_of(game, BEGIN, BEGIN + 2048);
        for _ in 0..6 {
            let kernel = random.pick(&Kernel::available());
            let known = BEGIN as u64;
            let first = known + 64 * random.below(16);
            let run = Run { known, first, recent: &wide.recent };
            let mut reader = Reader::new(&wide);
            let mut far = FarRun::default();
            reader.far_lanes(kernel, run, &mut far);
            while reader.end() < first {
                let more = (1 + random.below(500)).min(first - reader.end());
                reader.push(&all[reader.end() as usize..][..more as usize]);
                if random.below(2) == 0 {
                    reader.remove_middle(kernel, run, &mut far);
                } else {
                    reader.revise(kernel, run, &mut far);
                }
            }
            reader.revise(kernel, run, &mut far);
            let mut expected = FarRun::default();
            reader.far_lanes(kernel, Run { known: first, ..run }, &mut expected);
            for (n, (lane, expected)) in run.positions().zip(far.lanes.iter().zip(&expected.lanes)) {
                let (least, least_expected) = (lane.candidates.first(), expected.candidates.first());
                let (Some(&least), Some(&least_expected)) = (least, least_expected) else {
                    let further =
                        |lane: &FarLane| lane.values_after.values().chain(lane.values_after.rest()).collect::<Vec<_>>();
                    let is_further = |value: Option<&u16>, lane| value.is_none_or(|v| further(lane).contains(v));
                    assert!(is_further(least, expected) && is_further(least_expected, lane), "{game}, {kernel}, {n}");
                    continue;
                };
                assert_eq!(least, least_expected, "{game}, {kernel}, candidate of {n}, lead from {known}");
                let [open, open_expected] = [lane, expected]
                    .map(|lane| -> Vec<u16> { lane.searched_rare.iter().copied().filter(|&t| t < least).collect() });
                assert_eq!(open, open_expected, "{game}, {kernel}, open rare values of {n}, lead from {known}");
                assert!(
                    lane.unsearched_rare.iter().all(|&t| t > least),
                    "{game}, {kernel}, rare values of {n} not searched"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 1000, "only {compared} lanes have candidates");
}

/// Every further value up to the last new candidate is a new candidate, a rare value to be searched, or an option of a
/// lookup; the others stay further values.
#[test]
fn no_further_value_is_lost_where_candidates_are_replaced() {
    const BEGIN: usize = 50_000;
    let random = &mut Random::new("wide solver, more candidates");
    let (mut candidates, mut rare) = (0, 0);
    for game in [".143", "grundy", ".6"] {
        let (all, wide) = solver_of(game, BEGIN, BEGIN + 2048);
        let [reader, mut all_known] = [Reader::new(&wide), Reader::new(&wide)];
        all_known.push(&all[BEGIN..]);
        for _ in 0..3 {
            let run = Run { known: BEGIN as u64, first: BEGIN as u64 + 64 * random.below(16), recent: &wide.recent };
            let mut far = FarRun::default();
            reader.far_lanes(wide.kernel, run, &mut far);
            let lacking: Vec<usize> = (0..64).filter(|_| random.below(3) == 0).collect();
            for &lane in &lacking {
                let lane = &mut far.lanes[lane];
                [&mut lane.candidates, &mut lane.searched_rare, &mut lane.unsearched_rare]
                    .into_iter()
                    .for_each(Vec::clear);
            }
            let mut more = far.clone();
            reader.find_more_candidates(wide.kernel, run, &lacking, &mut more.lanes);
            let option = reader.lane_with_option(wide.kernel, run, &more.lanes);
            assert_eq!(option, None, "{game}: a new candidate is an option");
            for (lane, (before, after)) in far.lanes.iter().zip(&more.lanes).enumerate() {
                if !lacking.contains(&lane) {
                    assert_eq!(before, after, "{game}, lane {lane}");
                    continue;
                }
                let n = run.first + lane as u64;
                let last = after.candidates.last();
                let (passed, left): (Vec<u16>, Vec<u16>) =
                    before.values_after.values().partition(|value| last.is_some_and(|last| value <= last));
                assert!(after.values_after.values().eq(left), "{game}, lane {lane}");
                let mut is_option = [false; 1 << 16];
                wide.lookups
                    .iter()
                    .for_each(|SplitLookups { split, all, .. }| all_known.enter_options(n, split, all, &mut is_option));
                let (rare_passed, common): (Vec<u16>, Vec<u16>) =
                    passed.into_iter().partition(|&value| wide.is_rare(value, n));
                assert_eq!(after.unsearched_rare, rare_passed, "{game}, lane {lane}");
                let unhit: Vec<u16> = common.into_iter().filter(|value| !is_option[usize::from(*value)]).collect();
                assert!(unhit.iter().all(|value| after.candidates.contains(value)), "{game}, lane {lane}");
                (candidates, rare) = (candidates + after.candidates.len(), rare + rare_passed.len());
            }
        }
    }
    assert!(candidates > 50 && rare > 20, "{candidates} candidates, {rare} rare values");
}

/// For a position without a candidate, the further values give the value that all options give, whatever the lead.
#[test]
fn further_values_give_the_value_that_all_options_give() {
    const BEGIN: usize = 50_000;
    let random = &mut Random::new("wide solver, further values");
    let (mut further, mut rare) = (0, 0);
    for game in [".146", ".143", ".416", ".206", "grundy", "grundy:d=7"] {
        let (all, mut wide) = lookup_solver_of(game, BEGIN, BEGIN + 2048);
        wide.kernel = random.pick(&Kernel::available());
        let (known, mut work) = (BEGIN as u64, Work::default());
        let step = Step::new(&wide, known + 2048, Threads::ONE);
        for lead in [0, 64, 256, 1024] {
            let run = Run { known, first: known + lead, recent: &wide.recent };
            let past = &all[..BEGIN];
            let mut near = NearStep::new(&step, &past, &mut work);
            let mut far = FarRun::default();
            near.reader.far_lanes(wide.kernel, run, &mut far);
            near.reader.push(&all[BEGIN..][..lead as usize]);
            let too_near = near.too_near(run);
            for (n, lane) in run.positions().zip(&far.lanes) {
                let mut options = Vec::new();
                near.near_options(run, &too_near, &mut options);
                let value = near.value_from_further_values(lane, run, &options).unwrap();
                let expected = near.value_from_all_options(lane, run, &options).unwrap();
                assert_eq!(value, expected, "{game}, {}, {n}, lead {lead}", wide.kernel);
                further += u64::from(lane.values_after.values().any(|v| v == value));
                rare += u64::from(wide.is_rare(value, n));
                near.reader.push(&all[n as usize..][..1]);
            }
        }
    }
    assert!(further > 500 && rare > 0, "{further} further values, {rare} rare ones");
}

/// A changed bit in memory can give a value beyond all others.
#[test]
fn a_value_beyond_the_bound_of_the_classes_ends_no_process() {
    let (all, mut wide) = lookup_solver_of(".146", 50_000, 50_000);
    let bound = wide.classes.bound();
    let place = all.len() - 200;
    wide.values.items_mut()[place] ^= 1 << 15;
    let reader = Reader::new(&wide);
    let mut seen = vec![false; bound];
    for SplitLookups { split, all, .. } in &wide.lookups {
        reader.enter_options(reader.end(), split, all, &mut seen);
    }
    let (mut far, end) = (FarRun::default(), reader.end());
    reader.far_lanes(wide.kernel, Run { known: end, first: end, recent: &wide.recent }, &mut far);
    // The solver learns from a sample of these values.
    wide.values.items_mut()[30_000..].iter_mut().for_each(|value| *value |= 1 << 15);
    wide.learning.learnt_at = 0;
    wide.learn_when_due();
    assert_eq!(wide.learning.learnt_at, end, "the marks are learnt again");
    assert!(wide.check_memory(&all.as_slice()).is_err());
}

/// The lead is between that of two threads and the longest of the given threads.
#[test]
fn the_lead_is_shortened_while_candidates_are_lost() {
    let (_, mut wide) = solver_of(".146", 5000, 5000);
    let mut lead_after = |without: u64, wanted: usize, threads: Threads| {
        wide.wanted = wanted;
        let mut work = Work::default();
        let past: &[u16] = &[];
        let step = Step::new(&wide, 5001, Threads::ONE);
        let mut found = NearStep::new(&step, &past, &mut work).found;
        found.without_candidate = without;
        wide.adjust_lead(&NextValues { values: vec![0; 1000], found, outcome: Ok(()) }, threads);
        wide.lead
    };
    assert_eq!(lead_after(30, WIDE_ROWS, Threads::EIGHT), 768, "the longest lead of eight threads");
    assert_eq!(lead_after(200, WIDE_ROWS - 1, Threads::EIGHT), 768, "more candidates come first");
    assert_eq!(lead_after(200, WIDE_ROWS, Threads::EIGHT), 704);
    assert_eq!(lead_after(70, WIDE_ROWS, Threads::EIGHT), 704, "neither too many nor few");
    assert_eq!(lead_after(30, WIDE_ROWS, Threads::EIGHT), 768);
    assert_eq!((0..20).map(|_| lead_after(200, WIDE_ROWS, Threads::EIGHT)).last(), Some(256));
    assert_eq!(lead_after(0, WIDE_ROWS, Threads::TWO), 256);
}

/// A thread whose copy of the last values or of the new lookups changes is found out after the step.
#[test]
fn a_changed_copy_of_the_last_values_is_found() {
    let random = &mut Random::new("wide solver, changed copy");
    let (all, wide) = solver_of(".146", 5000, 6000);
    let [mut right, mut wrong] = [Reader::new(&wide), Reader::new(&wide)];
    right.push(&all[5000..]);
    let mut changed = all[5000..5900].to_vec();
    changed[random.below(900) as usize] ^= 1 << random.below(8);
    wrong.push(&changed);
    assert!(matches!(wrong.agrees_with(right.last()), Err(Error::Flipped { .. })));
    right.agrees_with(&wide.values).unwrap();
    right.flip_lookup(1 << random.below(8));
    assert!(matches!(right.agrees_with(&wide.values), Err(Error::Flipped { .. })));
}

#[test]
fn random_rules_with_values_above_511_agree_with_the_definition() {
    let random = &mut Random::new("wide solver, large values");
    let (mut wide, mut tried) = (0, 0);
    let wanted = crate::support::cases(12, 200);
    while wide < wanted {
        tried += 1;
        assert!(tried < 40 * wanted, "{wide} of {tried} rules had a space");
        let random = &mut random.fork();
        let rule = large_rule(random);
        let first = definition::values(&rule, 4096).unwrap();
        let (_, rare) = crate::solver::Histogram::of(&first).unwrap().best_space(&rule);
        if rare * 6 > 4096 || first.iter().all(|&v| v < 512) {
            continue;
        }
        let expected = definition::values(&rule, 5500).unwrap();
        wide += u64::from(agrees(random, &rule, &expected));
    }
}

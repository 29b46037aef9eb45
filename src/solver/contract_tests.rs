//! Tests of what all engines promise: whatever the earlier values are, the next ones are those of the definition.
//!
//! No proof of a value uses that the earlier values belong to a game. So these tests continue random values, and meet
//! what games hardly ever show: many late rare positions, values of 16 bits, values that few pairs give, and searches
//! that need discarded values.

use super::ends::Ends;
use super::*;
use crate::support::{Random, Tally, cases};
use crate::theory::nimber::index;
use crate::theory::rule::{Leaves, Move};

/// Values that belong to no game, and what a solver needs to continue them.
#[derive(Debug)]
struct MadeUp {
    rule: Rule,
    space: SparseSpace,
    values: Vec<u16>,
}

/// A random rule with splits, and often with other moves.
fn made_up_rule(random: &mut Random) -> Rule {
    let mut moves = Vec::new();
    let singles = random.pick(&[0, 3, 20, 200]);
    for _ in 0..singles {
        let constant = random.pick(&[0, 0, 0, 1, 40, 300]);
        let leaves = random.pick(&[Leaves::One, Leaves::Nothing]);
        moves.push(Move { remove: 1 + random.below(40), constant, leaves });
    }
    let (splits, removals) = (random.pick(&[1, 1, 2, 3, 30]), random.pick(&[3, 5, 80, 300, 3000]));
    let constants = random.pick(&[&[0][..], &[0], &[0, 0, 1, 6, 513]]);
    for _ in 0..splits {
        let leaves = Leaves::Two { min_difference: random.pick(&[0, 0, 1, 2, 5, 70, 3000]) };
        moves.push(Move { remove: random.below(removals), constant: random.pick(constants), leaves });
    }
    Rule::from_moves("made up", moves).unwrap()
}

/// A space of the rule, with a random mask below 2^`bits`; `None` if the rule does not admit any of 100.
fn made_up_space(random: &mut Random, rule: &Rule, bits: u32) -> Option<SparseSpace> {
    let mut mask = || u16::try_from(1 + random.below((1 << bits) - 1)).unwrap();
    (0..100).find_map(|i| SparseSpace::new(rule, mask(), i % 2))
}

/// A random rule, and a space of it.
fn made_up_rule_and_space(random: &mut Random, bits: u32) -> (Rule, SparseSpace) {
    loop {
        let rule = made_up_rule(random);
        if let Some(space) = made_up_space(random, &rule, bits) {
            return (rule, space);
        }
    }
}

/// `count` random values of at most `bits` bits, for solvers of the rule in the space to continue.
fn made_up(random: &mut Random, (rule, space): (Rule, SparseSpace), count: u64, bits: u32) -> MadeUp {
    // Few values are large, so that few pairs of a position give a large value: about `pairs`, if it has one bit more.
    let usual = 1 + random.below(u64::from(bits) - 1) % random.pick(&[4, 16]);
    let large = usual + 1 + random.below(u64::from(bits) - usual) % random.pick(&[1, 16]);
    let pairs = random.pick(&[1, 4, 10, 1000]);
    let large_one_in = (count / (pairs << usual)).max(2);
    let (last_rare, rare_one_in) = (1 + random.below(count), random.pick(&[2, 20, 100, 1000]));
    let mut values = vec![0];
    for n in 1..count {
        let is_rare = n <= last_rare && random.below(rare_one_in) == 0;
        let bits = if random.below(large_one_in) == 0 { large } else { usual };
        let value = u16::try_from(random.below(1 << bits)).unwrap();
        // A bit of the mask changes the class of a value.
        let other = value ^ (space.mask & space.mask.wrapping_neg());
        values.push(if space.is_rare(value, n) == is_rare { value } else { other });
    }
    MadeUp { rule, space, values }
}

/// The values and `count` more, each by the definition; fewer, if a value exceeds 65,535.
fn continued(made_up: &MadeUp, count: usize) -> Vec<u16> {
    let MadeUp { rule, values, .. } = made_up;
    let mut all = values.clone();
    while all.len() < values.len() + count {
        let Ok(value) = definition::value_at(rule, &all, all.len() as u64) else { break };
        all.push(value);
    }
    all
}

/// What the solvers of a test met.
#[derive(Debug, Default)]
struct Met {
    /// Number of values that the byte streams computed.
    streams: u64,
    /// The same of the wide solver, with a space or without one.
    wide: u64,
    /// The same of the comparison of all pairs of bytes.
    exhaustive: u64,
    /// The same of the sets of the values of pairs.
    pair_sets: u64,
    /// The same of the counts of options.
    removals: u64,
    /// The same of the definition.
    definition: u64,
    /// Number of new rare positions.
    rare: u64,
    /// Number of searches that compared all pairs.
    searches: u64,
    /// Number of solvers that stopped because they needed discarded values.
    discarded: u64,
}

impl Met {
    /// The number of values that this engine computed.
    fn values_of(&mut self, engine: &Engine) -> &mut u64 {
        match engine {
            Engine::Definition(_) => &mut self.definition,
            Engine::Removals(_) => &mut self.removals,
            Engine::Exhaustive(_) => &mut self.exhaustive,
            Engine::PairSets(_) => &mut self.pair_sets,
            Engine::Sparse(_) => &mut self.streams,
            Engine::Wide(_) => &mut self.wide,
        }
    }
}

/// A random rule for an engine without a space. One in four has moves that leave three heaps, and one in four no
/// splits.
fn made_up_rule_without_space(random: &mut Random) -> Rule {
    let mut moves = made_up_rule(random).moves().to_vec();
    match random.below(4) {
        0 => moves.push(Move { remove: random.below(5), constant: random.below(3) as u16, leaves: Leaves::Three }),
        1 => {
            moves.retain(|m| m.leaves.heaps() < 2);
            // Options are counted where a run of removals is long enough.
            let (constant, most) = (random.pick(&[0, 1, 600]), random.pick(&[3, 700]));
            let longest = 1 + random.below(most);
            moves.extend((1..=longest).map(|remove| Move { remove, constant, leaves: Leaves::One }));
        }
        _ => {}
    }
    Rule::from_moves("made up", moves).unwrap()
}

/// A solver that continues `past`. `known` describes the discarded values.
fn solver_of(random: &mut Random, made_up: &MadeUp, past: &Ends, known: &SequenceStats) -> Solver {
    let method = Method::Sparse(random.pick(&Kernel::available()));
    let solver = Solver::knowing(&made_up.rule, method, Some(made_up.space), past, known).unwrap();
    let mut solver = solver.with_audit(random.next()).with_block(1 << random.below(12));
    if made_up.space == SparseSpace::NONE {
        return solver;
    }
    solver.prefers_wide = random.below(3) == 0;
    let seen = EarlierValues::of(past, made_up.space, known).unwrap();
    solver.engine = solver.sparse_engine(past, seen).unwrap();
    solver
}

/// Continues the made-up values with solvers, each resumed after some values, and compares with `expected`. The values
/// that the solvers do not need may be discarded.
fn compare(random: &mut Random, made_up: &MadeUp, expected: &[u16], met: &mut Met) {
    let MadeUp { rule, space, values } = made_up;
    let discards = random.below(3) == 0;
    let last_rare = space.rare_positions(0, values).map(|rare| rare.0).max().unwrap_or(0);
    let keep = lookback(rule, last_rare);
    let mut past = Ends::new(if discards { witnesses::HEAD_PARTS } else { u64::MAX });
    past.push(values).unwrap();
    past.free(keep);
    let mut known = SequenceStats::default();
    let freed = past.discarded();
    known.see(*space, freed.start, &values[index(freed.start)..index(freed.end)]);
    let mut solver = solver_of(random, made_up, &past, &known);
    while past.len() < expected.len() as u64 {
        if random.below(10) == 0 && past.discarded() == freed {
            solver = solver_of(random, made_up, &past, &known);
        }
        let (from, limit) = (index(past.len()), past.len() + 1 + random.below(500));
        let mut more = Vec::new();
        let advanced = solver.advance(&past, limit.min(expected.len() as u64), &mut more);
        let wrong = more.iter().zip(&expected[from..]).position(|(value, expected)| value != expected);
        assert_eq!(wrong, None, "{rule:?}, {space:?}, {:?}, wrong from {from} on", solver.method);
        past.push(&more).unwrap();
        *met.values_of(&solver.engine) += more.len() as u64;
        match advanced {
            Ok(()) if random.below(10) == 0 => solver.check_memory(&past).unwrap(),
            Ok(()) => {}
            Err(Error::Discarded { .. }) if discards => {
                met.discarded += 1;
                break;
            }
            Err(error) => panic!("{rule:?}, {space:?}, after {} values: {error}", past.len()),
        }
    }
    met.rare += solver.work().found_rare;
    met.searches += solver.work().exhaustive_searches;
}

/// Approximate number of pairs of parts that the definition compares in a round.
const PAIRS: u64 = 1 << 24;

#[test]
fn any_values_are_continued_as_the_definition_says() {
    let tally = Tally::begin("made-up earlier values");
    let random = &mut Random::new("made-up values");
    let mut met = Met::default();
    let rounds = cases(25, 4_000);
    for round in 0..rounds {
        let random = &mut random.fork();
        // The byte streams hold the values of every other round.
        let bits = random.pick(&[[3, 8, 9], [10, 12, 16]][index(round % 2)]);
        let rule_and_space = made_up_rule_and_space(random, bits);
        let splits = rule_and_space.0.splits().count() as u64;
        // With many splits, learning from many values takes most of the time.
        let least = if splits > 3 { 5_000 } else { random.pick(&[5_000, 5_000, 20_000, 150_000]) };
        let count = least + random.below(least);
        let made_up = made_up(random, rule_and_space, count, bits);
        let pairs = count / 2 * splits;
        let expected = continued(&made_up, index((PAIRS / pairs).clamp(10, 500)));
        for _ in 0..2 {
            let threads = random.pick(&[1, 2, 3, 5, 8]);
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| compare(random, &made_up, &expected, &mut met));
        }
    }
    let Met { streams, wide, rare, searches, discarded, .. } = met;
    let least = streams.min(wide).min(rare).min(searches);
    assert!(least > 4 * rounds && discarded < rounds, "{met:?}");
    tally.end(streams + wide, "no wrong value");
}

/// The same for the engines without a space.
#[test]
fn any_values_are_continued_without_a_space() {
    let random = &mut Random::new("made-up values, no space");
    let mut met = Met::default();
    let rounds = cases(100, 10_000);
    for _ in 0..rounds {
        let random = &mut random.fork();
        let rule = made_up_rule_without_space(random);
        let (most, bits) = (if rule.may_be_sparse() { 4000 } else { 300 }, random.pick(&[3, 6, 8, 12, 16]));
        let count = 2 + random.below(most);
        let made_up = made_up(random, (rule, SparseSpace::NONE), count, bits);
        let expected = continued(&made_up, 100);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(random.pick(&[1, 2, 5])).build().unwrap();
        pool.install(|| compare(random, &made_up, &expected, &mut met));
    }
    let Met { wide, exhaustive, pair_sets, removals, definition, .. } = met;
    let least = wide.min(exhaustive).min(pair_sets).min(removals).min(definition);
    assert!(least > 2 * rounds, "{met:?}");
}

//! Unit tests of the solver.

use super::*;
use crate::solver::block::Streams;
use crate::support::{Random, Tally, cases};
use crate::theory::rule::{Leaves, Move};

/// Flips one bit of the data that later values depend on; a second call with the same arguments flips it back.
/// Returns false when there is no data of this kind.
fn flip(engine: &mut Engine, what: usize, draw: u64) -> bool {
    match engine {
        Engine::Sparse(streams) => flip_streams(streams, what, draw),
        Engine::Wide(solver) => solver.flip(what, draw / 8, 1 << (draw % 8)),
        Engine::Definition(_) | Engine::Removals(_) | Engine::Exhaustive(_) | Engine::PairSets(_) => {
            panic!("the game has a space")
        }
    }
}

fn flip_streams(streams: &mut Streams, what: usize, draw: u64) -> bool {
    let (bit, unproved) = (1u8 << (draw % 8), streams.block.len());
    match what {
        0 => streams.candidates.flip_code(draw / 8, bit, unproved),
        1 => {
            let from = streams.codes.start().max(streams.candidates.first_code());
            let n = from + draw / 8 % (streams.codes.end() - from);
            let at = streams.codes.at(n);
            streams.codes.items_mut()[at] ^= bit;
        }
        2 => streams.witnesses.flip_recent(draw / 8, bit),
        3 => streams.candidates.flip_rare(draw / 8, bit),
        4 => return streams.candidates.flip_plan(draw / 8, bit),
        5 => streams.witnesses.flip_head(draw / 8, bit),
        6 => return streams.witnesses.flip_part(draw / 8, bit),
        7 => return streams.witnesses.flip_large(draw / 8, bit),
        8 => streams.witnesses.flip_rare_below(draw / 8, bit),
        _ => streams.candidates.flip_value(draw / 8, bit, unproved),
    }
    true
}

/// The check finds a flip whether or not values were computed from it in the meantime.
#[test]
fn a_bit_flip_in_the_data_of_the_streams_is_noticed() {
    let tally = Tally::begin("flips in memory");
    let rounds = cases(500, 100_000);
    let mut random = Random::new("flips in memory");
    // Ten kinds of data of the streams, then seven of the wide solver.
    let mut noticed = [0u64; 17];
    let leap = (0..600).map(|constant| Move { remove: 4500, constant, leaves: Leaves::One });
    let wide = "0.77".parse::<Rule>().unwrap().moves().iter().copied().chain(leap).collect();
    let game = |name: &str| name.parse::<Rule>().unwrap();
    let all = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9][..];
    // The last two games have values without a byte code.
    let games = [
        (game("grundy"), 100_000, all),
        (game("0.6"), 100_000, all),
        (game(".106"), 80_000, all),
        (Rule::from_moves("leaping", wide).unwrap(), 6_000, &[0, 1, 2, 3, 4, 5]),
        (game(".146"), 70_000, &[0, 1, 2, 3, 4, 5, 6]),
    ];
    let rounds_each = rounds / games.len() as u64;
    for (threads, (rule, count, kinds)) in [1, 8, 16, 2, 8].into_iter().zip(games) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let values = values(&rule, Method::Sparse(Kernel::best()), count).unwrap();
            let start = || {
                let mut solver = Solver::new(&rule, Method::Sparse(Kernel::best()), None, &values).unwrap();
                let mut past = values.clone();
                go_on(&mut solver, &mut past, count / 10).unwrap();
                solver.check_memory(&past).unwrap();
                (solver, past)
            };
            let (mut solver, mut past) = start();
            let mut flipped = 0;
            // Take the kinds in turn, so that each has its share whatever the random numbers.
            for &kind in kinds.iter().cycle() {
                if flipped == rounds_each {
                    break;
                }
                let draw = random.next();
                if !flip(&mut solver.engine, kind, draw) {
                    continue;
                }
                flipped += 1;
                if random.below(10) == 0 {
                    // Either the check of forgotten data or the check of the data held now finds the flip.
                    let seen = go_on(&mut solver, &mut past, count / 5).and_then(|()| solver.check_memory(&past));
                    assert!(seen.is_err(), "{rule}: flip {kind} of {draw:#x} was not noticed after going on");
                    (solver, past) = start();
                } else {
                    let seen = solver.check_memory(&past);
                    assert!(seen.is_err(), "{rule}: flip {kind} of {draw:#x} was not noticed");
                    flip(&mut solver.engine, kind, draw);
                    solver.check_memory(&past).unwrap();
                }
                noticed[kind + if matches!(solver.engine, Engine::Wide(_)) { 10 } else { 0 }] += 1;
            }
        });
    }

    assert!(noticed.iter().all(|&kind| kind > rounds / 60), "{noticed:?}");
    tally.end(noticed.iter().sum(), "all noticed before the commit");
}

/// The candidates that wait for their witnesses are in no table yet.
#[test]
fn a_large_value_in_the_block_that_waits_is_noticed() {
    let (rule, method) = ("0.6".parse().unwrap(), Method::Sparse(Kernel::best()));
    let mut past = values(&rule, method, 100_000).unwrap();
    let mut solver = Solver::new(&rule, method, None, &past).unwrap();
    go_on(&mut solver, &mut past, 1).unwrap();
    let Engine::Sparse(streams) = &mut solver.engine else { panic!("the game has a space") };
    streams.block[5] ^= 1 << 15;
    let seen = go_on(&mut solver, &mut past, 10_000).and_then(|()| solver.check_memory(&past));
    assert!(seen.is_err(), "{seen:?}");
}

/// Each part of an engine has its own copy of the rule.
#[test]
fn a_change_of_the_rule_is_noticed() {
    for (game, count) in [("0.6", 100_000), ("0.146", 50_000)] {
        let (rule, method) = (game.parse().unwrap(), Method::Sparse(Kernel::best()));
        let past = values(&rule, method, count).unwrap();
        let mut solver = Solver::new(&rule, method, None, &past).unwrap();
        assert_eq!(matches!(solver.engine, Engine::Wide(_)), game == "0.146");
        solver.check_memory(&past).unwrap();
        solver.rule = "0.7".parse().unwrap();
        let seen = solver.check_memory(&past);
        assert!(matches!(seen, Err(Error::Flipped { .. })), "{game}: {seen:?}");
    }
}

/// Without splits, the last values are the only data that later values depend on.
#[test]
fn bit_flip_in_the_values_of_the_definition_is_noticed() {
    let rule = "sub:3,5,2000".parse().unwrap();
    let mut solver = Solver::new(&rule, Method::default(), None, &[].as_slice()).unwrap();
    let mut past = Vec::new();
    go_on(&mut solver, &mut past, 1 << 20).unwrap();
    let Engine::Definition(values) = &mut solver.engine else { panic!("the game has no splits") };
    let last = values.items_mut().len() - 1;
    values.items_mut()[last - 1234] ^= 1;
    // The next batch reads the value, and a later one forgets the value.
    let seen = go_on(&mut solver, &mut past, 1 << 23);
    assert!(matches!(seen, Err(Error::Flipped { .. })), "{seen:?}");
}

/// The choice of the audited values does not depend on threads and blocks.
#[test]
fn one_group_in_fifty_is_audited() {
    let (rule, kernel) = ("grundy".parse().unwrap(), Kernel::best());
    let start = values(&rule, Method::Sparse(kernel), 1 << 18).unwrap();
    let audited = |threads: usize, block: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let solver = Solver::new(&rule, Method::Sparse(kernel), None, &start).unwrap();
            let mut solver = solver.with_audit(7).with_block(block);
            solver.extend_to(&mut start.clone(), 1 << 19, |_| true).unwrap();
            solver.work().audited
        })
    };
    let once = audited(1, BLOCK);
    assert!((1 << 18) / 75 < once && once < (1 << 18) / 35, "{once} of 2^18 values");
    assert_eq!([audited(2, BLOCK), audited(5, 1 << 14), audited(2, 1 << 9)], [once; 3]);
}

fn go_on(solver: &mut Solver, past: &mut Vec<u16>, count: usize) -> Result<()> {
    let end = past.len() + count;
    while past.len() < end {
        let mut more = Vec::new();
        solver.advance(past, u64::MAX, &mut more)?;
        past.append(&mut more);
    }
    Ok(())
}

/// The table of a resumed run may hold billions of values above 255; the solver needs only the last ones.
#[test]
fn a_resumed_solver_keeps_only_the_last_large_values() {
    let values = vec![300u16; 1 << 20];
    let seen = EarlierValues::of(&values, SparseSpace::NONE, &SequenceStats::default()).unwrap();
    assert!(seen.large.len() < 1 << 18, "{} values above 255 are held", seen.large.len());
    assert_eq!(seen.large.last(), Some(&((1 << 20) - 1, 300)));
}

/// Otherwise the threads that evaluate far lookups for the producer can read none of them, for as many positions as the
/// rare position has before it.
#[test]
fn late_rare_positions_find_all_codes_that_their_lookups_read() {
    let rule: Rule = "4.324".parse().unwrap();
    let mut solver = Solver::new(&rule, Method::Sparse(Kernel::best()), None, &[].as_slice()).unwrap();
    let (mut past, mut checked) = (Vec::new(), 0);
    while past.len() < 700_000 {
        go_on(&mut solver, &mut past, 1).unwrap();
        let Engine::Sparse(streams) = &solver.engine else { continue };
        let needed = streams.codes.end().saturating_sub(streams.candidates.codes_to_keep());
        assert!(streams.codes.start() <= needed, "{} and {needed} at {}", streams.codes.start(), past.len());
        checked += 1;
    }
    assert!(checked > 10, "{checked} steps of the streams");
}

/// The streams prove whole blocks, and the waiting block was begun under a larger limit.
#[test]
fn no_value_is_returned_beyond_a_limit_that_is_smaller_than_before() {
    let rule: Rule = "grundy".parse().unwrap();
    let method = Method::Sparse(Kernel::best());
    let expected = values(&rule, method, 300_000).unwrap();
    let mut found = expected[..100_000].to_vec();
    let mut solver = Solver::new(&rule, method, None, &found).unwrap();
    assert!(!solver.extend_to(&mut found, 300_000, |_| false).unwrap());
    for step in [10, 1, 1000, 200, 150_000] {
        let to = found.len() + step;
        assert!(solver.extend_to(&mut found, to as u64, |_| true).unwrap());
        assert!(found == expected[..to], "{to}");
        solver.check_memory(&found).unwrap();
    }
}

/// One thread evaluates all lookups itself, and more threads share the far ones.
#[test]
fn the_number_of_threads_decides_which_lookups_are_shared() {
    let rule: Rule = "grundy".parse().unwrap();
    let (method, held) = (Method::Sparse(Kernel::best()), 1 << 17);
    let expected = values(&rule, method, held + 3 * BLOCK).unwrap();
    for threads in 1..=3 {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let (solver, found) = pool.install(|| {
            let mut solver = Solver::new(&rule, method, None, &&expected[..held]).unwrap();
            let mut found = expected[..held].to_vec();
            go_on(&mut solver, &mut found, 2 * BLOCK).unwrap();
            (solver, found)
        });
        assert!(found == expected[..found.len()], "{threads} threads");
        let Engine::Sparse(streams) = &solver.engine else { panic!("the game has a space") };
        assert_eq!(streams.candidates.shares_far(), threads > 1, "{threads} threads");
    }
}

/// The threads share the lookups of these games from different offsets on, or not at all.
#[test]
fn values_do_not_depend_on_the_lookups_that_are_shared() {
    let method = Method::Sparse(Kernel::best());
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let pools = [1, 2, 8, 3, 1, 4].map(pool);
    for game in ["4.404", ".374", ".36", "4.045"] {
        let rule: Rule = game.parse().unwrap();
        let expected = pools[0].install(|| values(&rule, method, 370_000)).unwrap();
        let mut found = expected[..70_000].to_vec();
        let mut solver = Solver::new(&rule, method, None, &&expected[..70_000]).unwrap();
        for pool in &pools {
            let end = found.len() as u64 + 50_000;
            pool.install(|| solver.extend_to(&mut found, end, |_| true)).unwrap();
        }
        assert!(found == expected[..370_000], "{game}");
    }
}

//! Values of the solver against the definition: random rules, unsuitable sparse spaces, values above a byte, every
//! block length and number of threads. The definition itself is compared with a second, plainer one in this file.
//!
//! Extend this file for a class of rules or values that the solver must compute correctly, and `hazards.rs` for the
//! order in which its two threads and its restarts work.

use crate::support::Random;
use crate::support::solving::{BOOTSTRAP, Setting, assert_same_values};
use grundy::kernel::Kernel;
use grundy::solver::{Histogram, Method, Solver, SparseSpace, Work};
use grundy::theory::definition;
use grundy::theory::rule::{Leaves, Move, Rule};
use std::collections::BTreeSet;

const BLOCKS: [usize; 5] = [1, 7, 64, 100, 4096];
const THREADS: [usize; 5] = [1, 2, 5, 8, 16];

/// Values by the formula of the rule's normal form, with a set of the standard library.
fn plainly(moves: &[Move], count: usize) -> Vec<u16> {
    let mut g: Vec<u16> = Vec::new();
    for n in 0..count {
        let mut options = BTreeSet::new();
        for m in moves {
            let s = m.remove as usize;
            match m.leaves {
                Leaves::Nothing if n == s => {
                    options.insert(m.constant);
                }
                Leaves::One if n > s => {
                    options.insert(m.constant ^ g[n - s]);
                }
                Leaves::Two { min_difference } if n > s + 1 => {
                    let apart = |&(a, b): &(usize, usize)| a.abs_diff(b) as u64 >= min_difference;
                    options.extend(
                        (1..n - s).map(|a| (a, n - s - a)).filter(apart).map(|(a, b)| m.constant ^ g[a] ^ g[b]),
                    );
                }
                _ => {}
            }
        }
        g.push((0..).find(|v| !options.contains(v)).unwrap());
    }
    g
}

fn on_threads<T: Send>(threads: usize, body: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(body)
}

/// Continues `values` to `count` values.
fn continued(rule: &Rule, setting: Setting, mut values: Vec<u16>, count: usize) -> (Vec<u16>, Work) {
    let mut solver = setting.solver(rule, &values);
    let mut more = Vec::new();
    while values.len() < count {
        more.clear();
        solver.advance(&values, count as u64, &mut more).unwrap();
        assert!(!more.is_empty() && values.len() + more.len() <= count, "{rule}: the limit is kept");
        values.extend_from_slice(&more);
    }
    (values, solver.work())
}

/// A solver that chooses its own sparse space.
fn unaided(kernel: Kernel, block: usize) -> Setting {
    Setting { kernel, space: None, fixed: false, block }
}

/// Computes the whole sequence with a random setting and compares it with the definition.
fn agrees(random: &mut Random, rule: &Rule, expected: &[u16]) -> Work {
    let (block, threads, kernel) = (random.pick(&BLOCKS), random.pick(&THREADS), random.pick(&Kernel::available()));
    let setting = format!("kernel {kernel}, blocks of {block}, {threads} threads");
    let with = unaided(kernel, block);
    let (found, work) = on_threads(threads, || continued(rule, with, Vec::new(), expected.len()));
    assert_same_values(rule, &setting, &found, expected);
    work
}

fn split(remove: u64, constant: u16, min_difference: u64) -> Move {
    Move { remove, constant, leaves: Leaves::Two { min_difference } }
}

fn one(remove: u64, constant: u16) -> Move {
    Move { remove, constant, leaves: Leaves::One }
}

/// A random rule with one to three splits and some other moves.
fn random_rule(random: &mut Random, removals: u64, constants: &[u16]) -> Rule {
    let mut moves = Vec::new();
    for _ in 0..1 + random.below(3) {
        moves.push(split(random.below(removals), random.pick(constants), random.pick(&[0, 0, 1, 1, 2, 3, 5])));
    }
    for _ in 0..random.below(5) {
        let leaves = random.pick(&[Leaves::One, Leaves::One, Leaves::Nothing]);
        moves.push(Move { remove: 1 + random.below(removals), constant: random.pick(constants), leaves });
    }
    Rule::from_moves("random", moves).unwrap()
}

/// Tries random rules until `wanted` of them had values that the solver proved by witnesses; other rules test nothing.
fn random_rules_agree(random: &mut Random, wanted: usize, removals: u64, constants: &[u16]) {
    let mut sparse = 0;
    for case in 0..100 * wanted {
        let random = &mut random.fork();
        let rule = random_rule(random, removals, constants);
        let mut expected = definition::values(&rule, BOOTSTRAP).unwrap();
        let (_, rares) = Histogram::of(&expected).unwrap().best_space(&rule);
        if rares * 8 > BOOTSTRAP as u64 {
            continue;
        }
        for n in BOOTSTRAP..6000 + random.below(3000) as usize {
            expected.push(definition::value(&rule, n as u64, |m| expected[m as usize]).unwrap());
        }
        sparse += usize::from(agrees(random, &rule, &expected).witnessed > 0);
        if sparse == wanted {
            println!("{wanted} sparse ones in {} rules", case + 1);
            return;
        }
    }
    panic!("too few rules had a sparse space: {sparse} of {}", 100 * wanted);
}

#[test]
fn definition_equals_the_formula_of_the_normal_form() {
    let random = &mut Random::new("formula");
    for _ in 0..60 {
        let rule = random_rule(random, 12, &[0, 0, 1, 2, 3, 6, 9, 300, 65_535]);
        let expected = plainly(rule.moves(), 250);
        assert_same_values(&rule, "definition", &definition::values(&rule, 250).unwrap(), &expected);
        for n in [0, 1, 2, 3, 17, 249] {
            let walked = definition::value_at(&rule, &expected, n).unwrap();
            assert_eq!(walked, expected[n as usize], "the parallel walk, {:?} at {n}", rule.moves());
        }
    }
}

#[test]
fn random_rules_with_small_constants_agree_with_the_definition() {
    random_rules_agree(&mut Random::new("small constants"), 16, 13, &[0, 0, 0, 0, 1, 2, 3, 4, 7, 11]);
}

#[test]
fn random_rules_with_lookups_longer_than_a_lane_block_agree() {
    random_rules_agree(&mut Random::new("far"), 8, 400, &[0, 0, 0, 1, 5]);
}

/// With a constant of 256 or more, small values give options that no byte code can represent.
#[test]
fn random_rules_with_constants_above_a_byte_agree() {
    random_rules_agree(&mut Random::new("large constants"), 8, 5, &[0, 0, 1, 256, 300, 511, 512, 513, 1024, 32_768]);
}

/// Both parts are small and the option is above 512. It must not be confused with the small common value that has the
/// same low bits.
#[test]
fn option_above_512_from_small_values_is_not_truncated_to_a_byte() {
    let rule = Rule::from_moves("large constant", vec![split(1, 0, 1), split(2, 512, 1)]).unwrap();
    let expected = definition::values(&rule, BOOTSTRAP + 100).unwrap();
    let (found, work) = continued(&rule, unaided(Kernel::scalar(), 4096), Vec::new(), expected.len());
    assert_same_values(&rule, "scalar", &found, &expected);
    assert!(work.witnessed > 0, "the rule is no longer sparse; the test needs a different rule");
}

#[test]
fn random_octal_games_agree_with_the_definition() {
    let random = &mut Random::new("octal");
    let mut sparse = 0;
    for _ in 0..30 {
        let digits: String = (0..1 + random.below(4)).map(|_| char::from(b'0' + random.below(8) as u8)).collect();
        let game = format!("{}.{digits}", random.pick(&["0", "0", "0", "4"]));
        let rule: Rule = game.parse().unwrap();
        let expected = definition::values(&rule, 6000 + random.below(3000) as usize).unwrap();
        println!("{game}");
        sparse += usize::from(agrees(random, &rule, &expected).witnessed > 0);
    }
    assert!(sparse > 0, "none of the games was sparse");
}

#[test]
fn named_games_agree_for_every_block_size_and_thread_count() {
    let random = &mut Random::new("named games");
    for game in ["grundy", "0.77", "0.106", "0.054", "0.104", "0.454", "remove-a-square", "grundy:d=2", "grundy:d=4"] {
        let rule: Rule = game.parse().unwrap();
        let expected = definition::values(&rule, 7000).unwrap();
        for block in BLOCKS {
            for threads in THREADS {
                for kernel in Kernel::available().into_iter().filter(|_| random.tries(3)) {
                    let with = unaided(kernel, block);
                    let (found, _) = on_threads(threads, || continued(&rule, with, Vec::new(), 7000));
                    assert_same_values(
                        &rule,
                        &format!("{kernel}, blocks of {block}, {threads} threads"),
                        &found,
                        &expected,
                    );
                }
            }
        }
    }
}

/// 0.6 soon exceeds 128, the number of codes that kernels count, and 255. 0.404 and 0.64 have a single value of 256.
#[test]
fn values_around_128_and_255_agree_with_the_definition() {
    let random = &mut Random::new("bytes");
    for (game, count) in [("0.6", 16_000), ("0.64", 18_000), ("0.404", 18_000)] {
        let rule: Rule = game.parse().unwrap();
        let expected = definition::values(&rule, count).unwrap();
        assert!(expected.iter().any(|&v| v > 255), "{game} has values above a byte");
        assert!(agrees(random, &rule, &expected).witnessed > 0, "{game} is sparse");
    }
}

/// Nim with at most `top` tokens taken, and a split: its values reach `top`, and it has a sparse space.
fn wide_rule(top: u64, remove: u64, d: u64) -> Rule {
    let nim = (1..=top).flat_map(|s| [one(s, 0), Move { remove: s, constant: 0, leaves: Leaves::Nothing }]);
    Rule::from_moves(format!("wide {top} {remove} {d}"), nim.chain([split(remove, 0, d)]).collect()).unwrap()
}

/// Nim with a bounded number of tokens per move, and a split: values exceed 512 long before the solver becomes sparse.
#[test]
fn games_with_values_above_512_from_the_start_agree() {
    let random = &mut Random::new("wide");
    for (top, remove, d) in [(600, 1, 0), (600, 3, 1), (700, 3, 1), (700, 0, 0), (1100, 0, 1), (1100, 3, 5)] {
        let rule = wide_rule(top, remove, d);
        let expected = definition::values(&rule, 6000).unwrap();
        assert!(expected.iter().any(|&v| v >= 512));
        let work = agrees(random, &rule, &expected);
        assert!(work.witnessed > 0, "{rule} is sparse");
    }
}

/// From n = s + 1 on, every value below 2^bits is an option of a move that takes s tokens. So the values jump there,
/// in the middle of a block, long after the solver has become sparse.
#[test]
fn values_that_jump_above_256_and_512_within_a_block_agree() {
    let random = &mut Random::new("leap");
    for game in ["0.644", "0.77", "0.106", "remove-a-square", "0.054"] {
        for bits in [8, 9, 10] {
            let known: Rule = game.parse().unwrap();
            let s = 4200 + random.below(900);
            let leap = (0..1 << bits).map(|constant| one(s, constant));
            let moves = known.moves().iter().copied().chain(leap).collect();
            let rule = Rule::from_moves(format!("{game} leaping by {bits} bits at {s}"), moves).unwrap();
            let expected = definition::values(&rule, s as usize + 400).unwrap();
            assert!(expected[..s as usize].iter().all(|&v| v < 256) && expected[s as usize + 1] >= 1 << bits);
            let work = agrees(random, &rule, &expected);
            assert!(work.witnessed > 0, "{rule} is sparse");
        }
    }
}

/// .004 reaches 512 at n = 65 759. The solver itself finds no suitable space there and uses the definition. The test
/// gives it a space in which the values from 512 on are rare.
#[test]
fn values_that_grow_past_512_within_a_block_agree() {
    const HELD: usize = 65_600;
    let rule: Rule = ".004".parse().unwrap();
    let expected = definition::values(&rule, HELD + 500).unwrap();
    let first = expected.iter().position(|&v| v >= 512);
    assert!(first.is_some_and(|n| n > HELD), "{first:?}");
    let space = SparseSpace::new(&rule, 0x200, 0);
    assert!(space.is_some());
    for kernel in Kernel::available() {
        let past = expected[..HELD].to_vec();
        let (found, work) = continued(&rule, Setting { kernel, space, fixed: true, block: 4096 }, past, expected.len());
        assert_same_values(&rule, kernel.name(), &found, &expected);
        assert!(work.witnessed > 0, "{kernel}: {work:?}");
    }
}

/// Few lookups, with more codes in use than the fast path for few lookups supports: for some positions or for most.
#[test]
fn short_lookup_lists_with_codes_above_32_agree() {
    let random = &mut Random::new("short lists");
    let mut sparse = 0;
    for (top, remove, d) in [(40, 1, 0), (62, 1, 0), (64, 3, 0), (66, 3, 1), (70, 0, 0), (100, 3, 5), (130, 1, 0)] {
        let rule = wide_rule(top, remove, d);
        let expected = definition::values(&rule, 6000 + random.below(3000) as usize).unwrap();
        sparse += usize::from(agrees(random, &rule, &expected).witnessed > 0);
    }
    assert!(sparse > 2, "{sparse} of the rules are sparse");
    for game in ["0.77", "0.106", "remove-a-square", "0.104"] {
        let known: Rule = game.parse().unwrap();
        for bits in [5, 6, 7] {
            let s = 4200 + random.below(900);
            let leap = (0..1 << bits).map(|constant| one(s, constant));
            let moves = known.moves().iter().copied().chain(leap).collect();
            let rule = Rule::from_moves(format!("{game} leaping by {bits} bits at {s}"), moves).unwrap();
            // At n = 2s the values become small again.
            let expected = definition::values(&rule, 2 * s as usize + 3000).unwrap();
            assert!(expected[s as usize + 1..2 * s as usize].iter().all(|&v| v >= 1 << bits));
            let work = agrees(random, &rule, &expected);
            assert!(work.witnessed > 0, "{rule} is sparse");
        }
    }
}

/// A space that looks suitable at first: bits that it lacks, or has too many of, come into use later. Common positions
/// then turn out to be rare, and the solver repeatedly discards what it computed ahead.
#[test]
fn unsuitable_sparse_space_costs_time_but_no_value() {
    let random = &mut Random::new("bad spaces");
    let games =
        ["grundy", "grundy:d=3", "0.6", "0.07", "0.4", "0.137", "0.77", "0.106", "remove-a-square", "0.156", "0.16"];
    let mut found_rare = 0;
    for case in 0..24 {
        let random = &mut random.fork();
        let rule: Rule = match random.below(3) {
            0 => random_rule(random, 8, &[0, 0, 1, 2]),
            _ => random.pick(&games).parse().unwrap(),
        };
        let held = BOOTSTRAP + random.below(1000) as usize;
        let expected = definition::values(&rule, held + 300 + random.below(600) as usize).unwrap();
        let rares = |space: SparseSpace| (0..).zip(&expected[..held]).filter(|&(n, &v)| space.is_rare(v, n)).count();
        let masks = (1..1024u16).chain([0x400, 0x8000, 0x8001]);
        let spaces =
            masks.flat_map(|mask| [0, 1].map(|e| (mask, e))).filter_map(|(mask, e)| SparseSpace::new(&rule, mask, e));
        let spaces: Vec<(usize, SparseSpace)> = spaces.map(|space| (rares(space), space)).collect();
        let Some(least) = spaces.iter().map(|s| s.0).min() else { continue };
        // A space with at most a quarter more rare positions than the best stays in use. The solver soon replaces
        // others, which is tested too.
        let mut near: Vec<SparseSpace> = spaces.iter().filter(|s| s.0 * 4 <= least * 5).map(|s| s.1).collect();
        if case % 4 == 0 {
            near = spaces.iter().map(|s| s.1).collect();
        }
        let space = random.pick(&near);
        let (block, threads, kernel) = (random.pick(&BLOCKS), random.pick(&THREADS), random.pick(&Kernel::available()));
        let with = Setting { kernel, space: Some(space), fixed: random.below(2) == 0, block };
        let past = expected[..held].to_vec();
        let (found, work) = on_threads(threads, || continued(&rule, with, past, expected.len()));
        let setting = format!("{rule}, {with:?}, from {held}, {threads} threads");
        assert_same_values(&rule, &setting, &found, &expected);
        found_rare += work.found_rare;
    }
    assert!(found_rare > 0, "no space was bad enough");
}

/// Rare positions that are thousands of positions apart are found when the producer is a whole block ahead and no
/// longer holds old values. It must be able to continue from there all the same. With bit 5 missing from its mask,
/// .054 has hundreds of such positions.
#[test]
fn distant_rare_positions_rewind_a_producer_that_is_a_block_ahead() {
    let rule: Rule = ".054".parse().unwrap();
    let (good, bad) = (SparseSpace::new(&rule, 0x3d, 0).unwrap(), SparseSpace::new(&rule, 0x1d, 0).unwrap());
    let first = definition::values(&rule, BOOTSTRAP).unwrap();
    let with = |space, block| Setting { kernel: Kernel::best(), space: Some(space), fixed: true, block };
    let count = 400_000;
    let (expected, _) = continued(&rule, with(good, 64), first.clone(), count);
    for block in [1024, 4096, 16384] {
        let (found, work) = continued(&rule, with(bad, block), first.clone(), count);
        assert_same_values(&rule, &format!("blocks of {block}"), &found, &expected);
        assert!(work.found_rare > 300, "{} rare positions: the test no longer tries its case", work.found_rare);
    }
    // Both agree with the definition at the rare positions of the unsuitable space.
    let rares = (0..).zip(&expected).filter(|&(n, &v)| n > 200_000 && bad.is_rare(v, n)).take(20);
    for (n, &v) in rares {
        assert_eq!(definition::value_at(&rule, &expected, n).unwrap(), v, "G({n})");
    }
}

/// A move that only takes all of a very large heap needs a longer window than the solver has, so the solver uses the
/// definition.
#[test]
fn removals_longer_than_the_window_use_the_definition() {
    let mut moves = "kayles".parse::<Rule>().unwrap().moves().to_vec();
    moves.push(Move { remove: 200_000, constant: 0, leaves: Leaves::Nothing });
    let rule = Rule::from_moves("long removal", moves).unwrap();
    let found = grundy::solver::values(&rule, Method::Sparse(Kernel::best()), 9000).unwrap();
    assert_same_values(&rule, "from nothing", &found, &definition::values(&"kayles".parse().unwrap(), 9000).unwrap());
}

/// What `resume` does: a new solver continues in the middle, with the sparse space of the first solver.
#[test]
fn solver_created_at_any_n_continues_with_the_same_values() {
    let random = &mut Random::new("resumed solver");
    let games = ["grundy", "0.6", "0.77", "0.106", "remove-a-square", "0.07", "grundy:d=2", "0.404"];
    let named = games.map(|game| game.parse::<Rule>().unwrap());
    for rule in named.into_iter().chain([wide_rule(600, 3, 1), wide_rule(700, 0, 0)]) {
        let expected = definition::values(&rule, 9000).unwrap();
        let mut values = Vec::new();
        let mut space = None;
        while values.len() < expected.len() {
            let to = (values.len() + 1 + random.below(2500) as usize).min(expected.len());
            let (block, kernel) = (random.pick(&BLOCKS), random.pick(&Kernel::available()));
            let method = Method::Sparse(kernel);
            let mut solver = Solver::new(&rule, method, space, &values).unwrap().with_block(block);
            solver.extend_to(&mut values, to as u64, |_| true).unwrap();
            assert_same_values(&rule, &format!("new solver, up to {to}"), &values, &expected[..to]);
            space = Some(solver.space()).filter(|&space| space != SparseSpace::NONE);
        }
    }
}

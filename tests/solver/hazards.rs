//! Hazards of a solver with two threads and restarts: late rare positions under lookups marked ahead, new solvers at
//! any n, all kernels, and errors of reading.
//!
//! Extend this file for the order in which the parts of the solver work, and `agreement.rs` for a class of rules or
//! values.

use crate::support::Random;
use crate::support::solving::{BOOTSTRAP, Setting, assert_same_values};
use grundy::kernel::Kernel;
use grundy::solver::{SparseSpace, Work};
use grundy::theory::definition::{self, Sequence};
use grundy::theory::rule::{Leaves, Move, Rule};
use grundy::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// Continues `values` to `count` values in several calls with random limits, as a run does.
fn continue_to(
    rule: &Rule,
    with: Setting,
    values: &mut Vec<u16>,
    count: usize,
    random: &mut Random,
) -> (Work, SparseSpace) {
    let mut solver = with.solver(rule, values);
    let mut limit = values.len();
    let mut more = Vec::new();
    while values.len() < count {
        if limit <= values.len() {
            let most = 1 << random.below(19);
            limit = (limit + 1 + random.below(most) as usize).min(count);
        }
        more.clear();
        solver.advance(values, limit as u64, &mut more).unwrap();
        assert!(!more.is_empty() && values.len() + more.len() <= limit, "{rule}: the limit is kept");
        values.extend_from_slice(&more);
    }
    (solver.work(), solver.space())
}

/// Compares random samples, and the neighbours of the given positions, with the definition.
fn assert_samples(rule: &Rule, values: &[u16], around: &[usize], samples: usize, random: &mut Random) {
    let near = around.iter().flat_map(|&n| n.saturating_sub(2)..(n + 3).min(values.len()));
    let others = (0..samples).map(|_| random.below(values.len() as u64) as usize);
    for n in near.chain(others) {
        let value = definition::value_at(rule, &values, n as u64).unwrap();
        assert_eq!(value, values[n], "{:?}: G({n})", rule.moves());
    }
}

fn random_rule(random: &mut Random) -> Rule {
    let constants: &[u16] = random.pick(&[&[0][..], &[0, 0, 0, 1], &[0, 0, 1, 2, 3, 4, 5, 6, 7], &[0, 256, 512, 3]]);
    let mut moves = Vec::new();
    for i in 0..1 + random.below(4) {
        let leaves = match random.below(4) {
            _ if i == 0 => Leaves::Two { min_difference: random.below(4) },
            0 => Leaves::One,
            1 => Leaves::Nothing,
            _ => Leaves::Two { min_difference: random.below(4) },
        };
        let least = u64::from(!matches!(leaves, Leaves::Two { .. }));
        moves.push(Move { remove: least + random.below(6 - least), constant: random.pick(constants), leaves });
    }
    Rule::from_moves("random", moves).unwrap()
}

fn random_kernel(random: &mut Random) -> Kernel {
    random.pick(&Kernel::available())
}

/// Any sparse space, new solvers at any n and blocks of any length: thousands of values that pass the first marks of
/// the witness search, all compared with the definition.
fn any_space(random: &mut Random, cases: usize, count: usize) {
    let mut found_rare = 0;
    for case in 0..cases {
        let random = &mut random.fork();
        let rule = random_rule(random);
        let expected =
            definition::values(&rule, BOOTSTRAP + random.below((count - BOOTSTRAP) as u64) as usize).unwrap();
        let mut spaces: Vec<(usize, SparseSpace)> = Vec::new();
        for mask in (1..1024u16).chain([0x400, 0x8000, 0x8001, 0x4100]) {
            for e in [0, 1] {
                if let Some(space) = SparseSpace::new(&rule, mask, e) {
                    let rares = (0..).zip(&expected).filter(|&(n, &v)| space.is_rare(v, n)).count();
                    spaces.push((rares, space));
                }
            }
        }
        spaces.sort_by_key(|s| s.0);
        if spaces.is_empty() {
            continue;
        }
        let top = if random.below(2) == 0 { 20.min(spaces.len()) } else { spaces.len() };
        let space = spaces[random.below(top as u64) as usize].1;
        let mut values = expected[..BOOTSTRAP].to_vec();
        let fixed = random.below(4) > 0;
        let mut used = Some(space);
        while values.len() < expected.len() {
            let most = 1 << random.below(14);
            let to = (values.len() + 1 + random.below(most) as usize).min(expected.len());
            let block = random.pick(&[1, 3, 7, 63, 64, 65, 100, 511, 513, 1000, 4096, 131_072]);
            let with = Setting { kernel: random_kernel(random), space: used, fixed, block };
            let from = values.len();
            let (work, now) = continue_to(&rule, with, &mut values, to, random);
            assert_same_values(
                &rule,
                &format!("case {case}: {with:?} from {from} to {to}"),
                &values,
                &expected[..values.len()],
            );
            found_rare += work.found_rare;
            used = Some(now).filter(|&space| space != SparseSpace::NONE);
        }
    }
    println!("{found_rare} rare positions");
}

#[test]
fn values_agree_for_any_space_and_solver_created_at_any_n() {
    any_space(&mut Random::new("any space"), 3, 10_000);
}

/// Bit 8 is missing from the mask of Grundy's game, so the first value of 256 turns out to be a rare position, at n =
/// 7 250 049, while the worker marks lookups for later positions. The solver then discards its work from there on.
/// Lookups that are marked ahead have an offset of at least 4096, so the marks that used the wrong code are for
/// positions at least 4096 later.
#[test]
fn late_rare_position_discards_lookups_marked_ahead() {
    let random = &mut Random::new("late rare");
    let rule: Rule = "grundy".parse().unwrap();
    let (good, bad) = (SparseSpace::new(&rule, 0x1fe, 0), SparseSpace::new(&rule, 0xfe, 0));
    const LATE: usize = 7_250_049;
    let with = Setting { kernel: Kernel::best(), space: good, fixed: true, block: 32768 };
    let mut expected = Vec::new();
    continue_to(&rule, with, &mut expected, LATE + 40_000, random);
    assert_eq!(expected[LATE], 256);
    for kernel in Kernel::available() {
        for threads in [2, 16] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let block = random.pick(&[1000, 4096, 32768, 131_072]);
            let with = Setting { kernel, space: bad, fixed: true, block };
            let mut found = expected[..LATE - 20_000 - random.below(50_000) as usize].to_vec();
            let (work, _) = pool.install(|| continue_to(&rule, with, &mut found, expected.len(), random));
            assert_same_values(&rule, &format!("{with:?}, {threads} threads"), &found, &expected);
            assert!(work.found_rare >= 1, "the test no longer tries its case");
        }
    }
    assert_samples(&rule, &expected, &[LATE], 20, random);
}

/// Long runs with every kernel, any block length and new solvers at any n, against the scalar kernel and samples of
/// the definition.
fn long_runs(random: &mut Random, games: &[&str], count: usize) {
    for game in games {
        let rule: Rule = game.parse().unwrap();
        let mut expected = Vec::new();
        let with = Setting { kernel: Kernel::scalar(), space: None, fixed: false, block: 1777 };
        continue_to(&rule, with, &mut expected, count, random);
        assert_samples(&rule, &expected, &[], 300, random);
        let mut values = expected[..BOOTSTRAP].to_vec();
        let mut used = None;
        while values.len() < count {
            let most = 1 << (10 + random.below(9));
            let to = (values.len() + 1 + random.below(most) as usize).min(count);
            let block = random.pick(&[65, 100, 511, 1000, 4096, 8192, 32768, 131_072]);
            let with = Setting { kernel: random_kernel(random), space: used, fixed: false, block };
            let from = values.len();
            let (_, now) = continue_to(&rule, with, &mut values, to, random);
            assert_same_values(&rule, &format!("{with:?} from {from} to {to}"), &values, &expected[..values.len()]);
            used = Some(now).filter(|&space| space != SparseSpace::NONE);
        }
    }
}

/// The rare positions of Grundy's game at 36 184 and 82 860 are so far apart that the latter lies in blocks that are
/// marked ahead.
#[test]
fn long_runs_agree_with_new_solvers_and_all_kernels() {
    long_runs(&mut Random::new("long runs"), &["0.6", "grundy", "0.354"], 120_000);
}

/// A sequence one of whose reads fails.
struct Flaky<'a> {
    values: &'a [u16],
    /// Number of reads up to and including the one that fails.
    left: &'a AtomicU64,
}

impl Sequence for Flaky<'_> {
    fn len(&self) -> u64 {
        self.values.len() as u64
    }

    fn read(&self, from: u64, out: &mut [u16]) -> Result<()> {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            return Err(Error::Rule("cannot be read now".into()));
        }
        self.values.read(from, out)
    }
}

/// After an error the solver is between two positions. If it continued, it would search the witnesses of wrong
/// positions.
#[test]
#[should_panic(expected = "cannot continue after an error")]
fn advancing_a_solver_after_an_error_panics() {
    let rule: Rule = ".054".parse().unwrap();
    let (good, bad) = (SparseSpace::new(&rule, 0x3d, 0), SparseSpace::new(&rule, 0x1d, 0));
    let with = Setting { kernel: Kernel::best(), space: good, fixed: true, block: 4096 };
    let mut values = Vec::new();
    continue_to(&rule, with, &mut values, 150_000, &mut Random::new("unreadable"));
    let left = AtomicU64::new(u64::MAX);
    let mut solver = Setting { space: bad, ..with }.solver(&rule, &values);
    left.store(1, Ordering::Relaxed);
    loop {
        let mut more = Vec::new();
        // The first read after a new rare position fails.
        let _ = solver.advance(&Flaky { values: &values, left: &left }, 300_000, &mut more);
        values.append(&mut more);
        assert!(values.len() < 300_000, "nothing was read");
    }
}

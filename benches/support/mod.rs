//! What several benchmarks share.

#![allow(dead_code, reason = "each benchmark uses a part of it")]

use criterion::Criterion;
use grundy::kernel::Kernel;
use grundy::run::{Observer, Run, RunPolicy};
use grundy::solver::{self, Method};
use grundy::storage::Dir;
use grundy::theory::definition;
use grundy::theory::rule::Rule;
use std::time::{Duration, Instant};

#[path = "../../tests/support/hazard.rs"]
mod hazard;

/// Random numbers that are the same on every machine.
pub(crate) use hazard::Random;

/// A game with a sparse space.
pub(crate) struct Game {
    /// The name.
    pub(crate) name: &'static str,
    /// The rule.
    pub(crate) rule: Rule,
    /// Mask and position term of its sparse space.
    pub(crate) space: (u16, u8),
}

/// Grundy's game, .6 and .106.
pub(crate) fn games() -> [Game; 3] {
    [("grundy", (0x1fe, 0)), ("0.6", (0x1ee, 0)), ("0.106", (0xd, 1))].map(|(name, space)| {
        let rule = name.parse().expect("a game");
        Game { name, rule, space }
    })
}

/// The first `count` values of a game, by the fastest kernel. Panics unless the definition gives the first 2000 values
/// and 16 of the last 2^14.
pub(crate) fn checked_values(rule: &Rule, count: usize) -> Vec<u16> {
    let values = solver::values(rule, Method::Sparse(Kernel::best()), count).expect("values below 65536");
    let first = definition::values(rule, 2000.min(count)).expect("values below 65536");
    assert!(values.starts_with(&first), "{rule}: the first values are not those of the definition");
    let mut random = Random::seeded(1);
    for _ in 0..16 {
        let n = count - 1 - random.below(count.min(1 << 14) as u64) as usize;
        let value = definition::value_at(rule, &values, n as u64).expect("a value below 65536");
        assert_eq!(values[n], value, "{rule}: G({n}) by the definition");
    }
    values
}

/// Settings with which a benchmark takes one to two seconds.
pub(crate) fn short() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600))
        .sample_size(20)
}

/// Whether the program measures; `cargo test` calls it only to see whether it works.
pub(crate) fn is_measuring() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

/// The least time of one call of `work` in picoseconds, over rounds of at least half a millisecond for half a second.
/// On a busy machine some rounds are short enough not to be interrupted. Calls `work` once when the program does not
/// measure.
pub(crate) fn picoseconds(mut work: impl FnMut()) -> f64 {
    /// Minimum number of rounds, where a call takes long.
    const ROUNDS: u32 = 5;
    work();
    if !is_measuring() {
        return 1.0;
    }
    let begin = Instant::now();
    let mut calls = 1u32;
    let mut rounds = 0;
    let mut best = f64::INFINITY;
    while rounds < ROUNDS || begin.elapsed() < Duration::from_millis(500) {
        let start = Instant::now();
        (0..calls).for_each(|_| work());
        let time = start.elapsed();
        if time < Duration::from_micros(500) {
            calls *= 2;
            continue;
        }
        best = best.min(time.as_secs_f64() * 1e12 / f64::from(calls));
        rounds += 1;
    }
    best
}

/// Prints the line of a cost constant: its value, the measured one, and measured / constant.
pub(crate) fn report(name: &str, measured: f64, constant: u64, unit: &str) {
    if is_measuring() {
        let ratio = measured / constant as f64;
        println!("{name:<34} measured {measured:>10.1}, constant {constant:>8} {unit}, ratio {ratio:.2}");
    }
}

/// Creates the run of a game in `dir`, or resumes it, up to `to` values, with the threads of the current pool. Repairs
/// nothing.
pub(crate) fn run_to(dir: &Dir, rule: &Rule, to: u64, observer: &mut (dyn Observer + Send)) -> grundy::Result<()> {
    let policy = RunPolicy { seed: Some(1), ..RunPolicy::default() };
    let run = Run::on(Some(rule), dir).to(to).method(Method::Sparse(Kernel::best())).policy(policy).observer(observer);
    let outcome = run.run_in_pool()?;
    assert_eq!(outcome.progress.count, to, "{rule}: the run ended early");
    Ok(())
}

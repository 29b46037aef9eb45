//! Benchmarks of whole sequences with every value proved, for Grundy's game, .6, .106 and .77. Each benchmark asserts
//! its answer first.
//!
//! `cargo bench --bench sequence` takes half a minute. An element is one value. No cost constant is measured here, but
//! the length of blocks (`BLOCK`) and of the calls of the recurrence kernel (`RECURRENCE_VALUES`) can be tried by it.
//! `record/` keeps results.

mod support;

use criterion::{BatchSize, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use grundy::kernel::Kernel;
use grundy::solver::{Method, Solver, SparseSpace};
use grundy::theory::rule::Rule;
use support::{checked_values, short};

/// Measures the solver from n = 2^20 on, with every value proved, without table and digest.
fn sequences(c: &mut Criterion) {
    /// Number of values known at the start.
    const HELD: usize = 1 << 20;
    /// Number of values computed.
    const MORE: usize = 1 << 19;
    let mut group = c.benchmark_group("sequence");
    group.throughput(Throughput::Elements(MORE as u64)).sample_size(10).sampling_mode(SamplingMode::Flat);
    for (game, mask, position) in [("grundy", 0x1fe, 0), ("0.6", 0x1ee, 0), ("0.106", 0xd, 1), ("0.77", 0xf, 0)] {
        let rule: Rule = game.parse().expect("a game");
        let space = SparseSpace::new(&rule, mask, position);
        let expected = checked_values(&rule, HELD + MORE);
        for kernel in Kernel::available() {
            let solver = || {
                Solver::new(&rule, Method::Sparse(kernel), space, &&expected[..HELD])
                    .expect("a solver of values in memory")
            };
            let run = |mut solver: Solver| {
                let mut values = expected[..HELD].to_vec();
                solver.extend_to(&mut values, (HELD + MORE) as u64, |_| true).expect("values below 65536");
                values
            };
            assert!(run(solver()) == expected, "{game}, {kernel}");
            group.bench_function(format!("{game} {kernel}"), |b| b.iter_batched(solver, run, BatchSize::PerIteration));
        }
    }
    group.finish();
}

criterion_group! { name = benches; config = short(); targets = sequences }
criterion_main!(benches);

//! Benchmarks of the kernels alone, and of whole sequences with every value proved. Each benchmark asserts its answer
//! first, so that a fast wrong kernel gives no result.
//!
//! `cargo bench` runs all of them; `cargo bench -- kernel`, `-- chain` or `-- sequence` runs a part. `record/` keeps
//! the results.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use grundy::kernel::{BitPlanes, Kernel, LANES, Probe, Probes, Recurrence, Stage};
use grundy::solver::{self, Method, Solver, SparseSpace};
use grundy::theory::rule::Rule;
use std::hint::black_box;

/// A window and lookups like those of Grundy's game: 440 marked and 806 checked, with offsets below 82 064.
fn far() -> (Vec<u8>, Probes, Vec<Stage>) {
    // A linear congruential generator of full period, so that the work is the same on every machine.
    let mut state = 1u64;
    let mut next = move |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((state >> 33) % bound as u64).expect("small")
    };
    let window: Vec<u8> = (0..100_000).map(|_| u8::try_from(next(90)).expect("below 90")).collect();
    let mut probes = |count: usize| {
        let mut list = Probes::new();
        for _ in 0..count {
            list.push(Probe::new(LANES + next(82_000), u8::try_from(next(90)).expect("below 90")));
        }
        list
    };
    let mark = probes(440);
    let stages = [(8, 201), (6, 101), (5, 101), (4, 151), (3, 252)];
    let check = stages.map(|(keep, count)| Stage { keep, check: probes(count) }).into();
    (window, mark, check)
}

/// Measures `mark` with 72 codes considered, and `refine` with five stages, per value.
fn kernels(c: &mut Criterion) {
    let (window, mark, check) = far();
    let at = window.len();
    let marked = |kernel: Kernel| {
        let mut planes = BitPlanes::new(72);
        kernel.mark(&window, at, &mark, &mut planes);
        planes
    };
    let planes = marked(Kernel::scalar());
    let lanes = Kernel::scalar().refine(&window, at, &planes, &check);
    let mut group = c.benchmark_group("kernel");
    group.throughput(Throughput::Elements(LANES as u64));
    for kernel in Kernel::available() {
        assert!(marked(kernel) == planes, "{kernel}");
        assert_eq!(kernel.refine(&window, at, &planes, &check), lanes, "{kernel}");
        group.bench_function(format!("mark {kernel}"), |b| b.iter(|| marked(black_box(kernel))));
        group.bench_function(format!("refine {kernel}"), |b| {
            b.iter(|| kernel.refine(black_box(&window), at, black_box(&planes), &check));
        });
    }
    group.finish();
}

/// Measures the recurrence kernel with the lookups of .106. The initial values are arbitrary; they hardly change the
/// time.
fn chains(c: &mut Criterion) {
    /// Number of values before the first one computed.
    const AT: usize = 4096;
    /// Number of values computed.
    const HEAPS: usize = 1 << 16;
    let offsets = [6, 10, 13, 29, 71, 87, 99, 104, 323, 348, 362, 476, 566, 996, 1106];
    let codes = [0, 1, 2, 3, 1, 4, 5, 4, 4, 4, 4, 5, 8, 8, 8];
    let chain =
        Recurrence::new(offsets.into_iter().zip(codes).map(|(offset, code)| Probe::new(offset, code)).collect());
    let window: Vec<u8> = (0..AT).map(|n| (n * n % 13).to_le_bytes()[0]).chain([0; HEAPS]).collect();
    let run = |kernel: Kernel, mut window: Vec<u8>| {
        assert_eq!(kernel.chain(&mut window, AT, AT + HEAPS, &chain), AT + HEAPS);
        window
    };
    let reference = run(Kernel::scalar(), window.clone());
    let mut group = c.benchmark_group("chain");
    group.throughput(Throughput::Elements(HEAPS as u64));
    for kernel in Kernel::available() {
        assert!(run(kernel, window.clone()) == reference, "{kernel}");
        group.bench_function(kernel.name(), |b| {
            b.iter_batched(|| window.clone(), |window| run(kernel, window), BatchSize::SmallInput);
        });
    }
    group.finish();
}

/// Measures the solver from n = 2^20 on, with every value proved, without table and digest.
fn sequences(c: &mut Criterion) {
    /// Number of values known at the start.
    const HELD: usize = 1 << 20;
    /// Number of values computed.
    const MORE: usize = 1 << 19;
    let mut group = c.benchmark_group("sequence");
    group.throughput(Throughput::Elements(MORE as u64)).sample_size(10);
    for (game, mask, position) in [("grundy", 0x1fe, 0), ("0.6", 0x1ee, 0), ("0.106", 0xd, 1), ("0.77", 0xf, 0)] {
        let rule: Rule = game.parse().expect("a game");
        let space = SparseSpace::new(&rule, mask, position);
        // The portable kernel is the reference here; the tests compare it with the definition.
        let expected =
            solver::values(&rule, Method::Sparse(Kernel::scalar()), HELD + MORE).expect("values below 65536");
        for kernel in Kernel::available() {
            let solver = || {
                Solver::new(&rule, Method::Sparse(kernel), space, &expected[..HELD])
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

criterion_group!(benches, kernels, chains, sequences);
criterion_main!(benches);

//! Benchmarks of the witness search: Grundy's game, .6 and .106 after 2^20 known values. Each benchmark first checks
//! the values by the definition, that every target has a witness, and that one is missing at a rare position.
//!
//! `cargo bench --bench witnesses` takes less than a minute. The criterion group `witnesses` has four benchmarks
//! for each game:
//!
//! - `learnt`: the search of a block, as the solver calls it: marks of the learnt parts, then the search position by
//!   position for what they leave; an element is one position;
//! - `marks`: its first part alone;
//! - `unlearnt`: the search position by position for all targets, as before parts are learnt;
//! - `exhaustive`: all pairs of one position; an element is one pair.
//!
//! The group `constant` prints a line for each cost constant of the witness search that is no price of a kernel job:
//!
//! - `FIND_TARGET_PS`: a target that the learnt parts leave open, searched position by position;
//! - `UNCONSIDERED_TARGET_PS`: a target that is not considered with one step fewer codes, searched position by
//!   position;
//! - `TARGET_CODE_PS`: one more considered code, per value, with the parts that the search marks.

mod support;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use grundy::bench_support::{
    CODE_COUNTS, FIND_TARGET_PS, LANE_COUNT, OpenTargets, TARGET_CODE_PS, UNCONSIDERED_TARGET_PS, WitnessBench,
};
use grundy::kernel::Kernel;
use grundy::solver::SparseSpace;
use grundy::theory::definition;
use std::hint::black_box;
use support::{Game, checked_values, games, is_measuring, picoseconds, report, short};

/// Number of positions in a block.
const BLOCK: usize = 1 << 12;

/// Number of values known before the block.
const KNOWN: usize = 1 << 20;

/// The stream of a game after its first [`KNOWN`] values. Panics unless the stream finds every witness of the others,
/// and finds a witness missing at the last rare position, where no option has the true value.
fn checked_stream(game: &Game, kernel: Kernel, values: &[u16]) -> WitnessBench {
    let Game { name, rule, space } = game;
    let stream = |values: &[u16], from: usize| WitnessBench::new(rule, *space, kernel, values, from).expect("a stream");
    let right = stream(values, KNOWN);
    assert_eq!(right.check().expect("no error"), None, "{name}, {kernel}: a witness is missing");
    assert_eq!(right.search(&right.all_targets()).expect("no error"), None, "{name}, {kernel}: unlearnt");
    let space = SparseSpace::new(rule, space.0, space.1).expect("a space of this game");
    let is_rare = |&n: &usize| space.is_rare(values[n], n as u64);
    let rare = (0..KNOWN).rev().find(is_rare).expect("0 is a rare position");
    let mut wrong = values[..=rare].to_vec();
    wrong[rare] = (values[rare]..).find(|&v| !space.is_rare(v, rare as u64)).expect("a common value");
    let missing = stream(&wrong, rare).check().expect("no error");
    assert_eq!(missing, Some((rare as u64, values[rare])), "{name}, {kernel}: a witness that does not exist");
    right
}

/// Measures the searches.
fn searches(c: &mut Criterion) {
    let mut group = c.benchmark_group("witnesses");
    for game in games() {
        let values = checked_values(&game.rule, KNOWN + BLOCK);
        group.throughput(Throughput::Elements(BLOCK as u64));
        for kernel in Kernel::available() {
            let stream = checked_stream(&game, kernel, &values);
            let name = game.name;
            group.bench_function(format!("{name} learnt {kernel}"), |b| b.iter(|| black_box(stream.check())));
            if kernel == Kernel::best() {
                group.bench_function(format!("{name} marks"), |b| b.iter(|| black_box(stream.open_targets())));
                let targets = stream.all_targets();
                group.bench_function(format!("{name} unlearnt"), |b| b.iter(|| black_box(stream.search(&targets))));
            }
        }
        exhaustive(&mut group, &game, &values);
    }
    group.finish();
}

type Group<'a> = criterion::BenchmarkGroup<'a, criterion::measurement::WallTime>;

/// Measures the exhaustive search of the last position: all pairs of parts of all splits.
fn exhaustive(group: &mut Group, game: &Game, values: &[u16]) {
    let n = values.len() - 1;
    let value = values[n];
    let missing = |below: u32| definition::first_missing(&game.rule, &&values[..n], n as u64, below).expect("no error");
    // With this bound the search cannot end early, because no option has the value G(n).
    let bound = u32::from(value) + 1;
    assert_eq!(missing(value.into()), None, "{}: a value below G({n}) is missing", game.name);
    assert_eq!(missing(bound), Some(value), "{}: G({n}) is an option", game.name);
    let pairs: u64 = game.rule.splits().map(|split| split.largest_small_part(n as u64)).sum();
    group.throughput(Throughput::Elements(pairs));
    group.bench_function(format!("{} exhaustive", game.name), |b| b.iter(|| missing(black_box(bound))));
}

/// Prints the lines of the cost constants, for the fastest kernel.
fn constants(_: &mut Criterion) {
    for game in games() {
        let name = game.name;
        let values = checked_values(&game.rule, KNOWN + BLOCK);
        let mut stream = checked_stream(&game, Kernel::best(), &values);
        let count = |targets: &OpenTargets| targets.iter().map(|(_, targets)| targets.len()).sum::<usize>();
        let open = stream.open_targets();
        let all: usize = stream.all_targets().iter().map(|(_, targets)| targets.len()).sum();
        if is_measuring() {
            let [marked, held] = stream.parts();
            let per_value = |count: usize| count as f64 / BLOCK as f64;
            println!(
                "{name}: {marked} parts marked, {held} held against the least open targets; {} codes considered; \
                 {:.2} targets per value, {:.3} left open",
                stream.codes(),
                per_value(all),
                per_value(count(&open))
            );
        }
        let find = |stream: &WitnessBench, targets: &OpenTargets| {
            picoseconds(|| {
                black_box(stream.find(black_box(targets)));
            }) / count(targets) as f64
        };
        if count(&open) > 0 {
            report(&format!("FIND_TARGET_PS, {name}"), find(&stream, &open), FIND_TARGET_PS, "ps");
        }
        let times = [16, 72].map(|codes| {
            picoseconds(|| {
                black_box(stream.mark_with(codes));
            })
        });
        let price = (times[1] - times[0]) / ((72 - 16) * LANE_COUNT) as f64;
        report(&format!("TARGET_CODE_PS, {name}"), price, TARGET_CODE_PS, "ps");
        // One step fewer codes considered leave more targets. Only those that are not considered count here.
        let considered = stream.codes();
        let Some(&fewer) = CODE_COUNTS.iter().rev().find(|&&codes| codes < considered) else { continue };
        stream.consider(fewer);
        let targets = stream.open_targets();
        let beyond: OpenTargets = targets
            .into_iter()
            .map(|(n, codes)| (n, codes.into_iter().filter(|&code| usize::from(code) >= fewer).collect::<Vec<u8>>()))
            .filter(|(_, codes)| !codes.is_empty())
            .collect();
        if count(&beyond) > 0 {
            report(&format!("UNCONSIDERED_TARGET_PS, {name}"), find(&stream, &beyond), UNCONSIDERED_TARGET_PS, "ps");
        }
    }
}

criterion_group! { name = benches; config = short(); targets = searches, constants }
criterion_main!(benches);

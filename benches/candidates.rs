//! Benchmarks of the candidate stream: Grundy's game, .6 and .106 (which uses the recurrence kernel) after 2^20 known
//! values. Each benchmark first compares the candidates with the values.
//!
//! `cargo bench --bench candidates` takes less than half a minute. The criterion group `candidates` measures whole
//! blocks by one thread; an element is one value. The group `constant` prints a line for each cost constant of
//! the candidate stream that is no price of a kernel job:
//!
//! - `CANDIDATE_CODE_PS`: one more considered code, per value, with the lookups that the stream marks;
//! - `UNRESOLVED_LANE_PS`: a lane without a candidate;
//! - `ANSWER_BEYOND_PS`: a lane whose answer is among the codes just above those considered;
//! - `FALLBACK_COST_VALUES`: a value that the recurrence kernel cannot compute, in values that it can.

mod support;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use grundy::bench_support::{
    ANSWER_BEYOND_PS, CANDIDATE_CODE_PS, CandidateBench, FALLBACK_COST_VALUES, LANE_COUNT, UNRESOLVED_LANE_PS,
};
use grundy::kernel::Kernel;
use grundy::theory::rule::Rule;
use std::hint::black_box;
use support::{Game, checked_values, games, is_measuring, picoseconds, report, short};

/// Number of candidates in a block.
const BLOCK: usize = 1 << 14;

/// Number of values known before the block.
const KNOWN: usize = 1 << 20;

/// The values of a game, and its stream after all of them but the last [`BLOCK`].
fn stream(rule: &Rule, (mask, position): (u16, u8), values: &[u16], kernel: Kernel) -> CandidateBench {
    let (past, block) = values.split_at(values.len() - BLOCK);
    let mut stream = CandidateBench::new(rule, mask, position, kernel, past).expect("a stream");
    // In these blocks no position is rare.
    assert!(stream.block(BLOCK).expect("candidates") == block, "{rule}, {kernel}: wrong candidates");
    stream
}

/// Measures whole blocks.
fn blocks(c: &mut Criterion) {
    let mut group = c.benchmark_group("candidates");
    group.throughput(Throughput::Elements(BLOCK as u64));
    for Game { name, rule, space } in games() {
        let values = checked_values(&rule, KNOWN + BLOCK);
        for kernel in Kernel::available() {
            let mut stream = stream(&rule, space, &values, kernel);
            group.bench_function(format!("{name} {kernel}"), |bench| {
                bench.iter(|| black_box(stream.block(BLOCK).expect("candidates")));
            });
        }
    }
    group.finish();
}

/// Prints the lines of the cost constants, for the fastest kernel.
fn constants(_: &mut Criterion) {
    let kernel = Kernel::best();
    for Game { name, rule, space } in games() {
        let values = checked_values(&rule, KNOWN + BLOCK);
        let value = values[KNOWN];
        let mut stream = stream(&rule, space, &values, kernel);
        let [marked, checked, near] = stream.lookups();
        if is_measuring() {
            let codes = stream.codes();
            println!("{name}: {marked} lookups marked, {checked} checked, {near} near; {codes} codes considered");
        }
        if stream.recurrence(BLOCK, BLOCK).is_some() {
            fallback(&mut stream, value);
            continue;
        }
        let times = [64, 128].map(|codes| {
            picoseconds(|| {
                black_box(stream.mark_with(codes));
            })
        });
        let price = (times[1] - times[0]) / (64 * LANE_COUNT) as f64;
        report(&format!("CANDIDATE_CODE_PS, {name}"), price, CANDIDATE_CODE_PS, "ps");
        assert_eq!(stream.unresolved(), value, "{name}: the answer of an unresolved lane");
        let lane = picoseconds(|| {
            black_box(stream.unresolved());
        });
        report(&format!("UNRESOLVED_LANE_PS, {name}"), lane, UNRESOLVED_LANE_PS, "ps");
        assert_eq!(stream.beyond(), Some(160), "{name}: no marked lookup hits the first code above 159");
        let lane = picoseconds(|| {
            black_box(stream.beyond());
        });
        report(&format!("ANSWER_BEYOND_PS, {name}"), lane, ANSWER_BEYOND_PS, "ps");
    }
}

/// Prints the line of the cost of a value that the recurrence kernel cannot compute: the time of reading all lookups,
/// and of calling the kernel again.
fn fallback(stream: &mut CandidateBench, value: u16) {
    /// Number of codes per call of the recurrence kernel: the most that the stream computes per call, and few.
    const STEPS: [usize; 2] = [1024, 128];
    assert_eq!(stream.fallback(), value, "the answer from all lookups");
    let all = picoseconds(|| {
        black_box(stream.fallback());
    });
    let [whole, cut] = STEPS.map(|step| {
        picoseconds(|| {
            black_box(stream.recurrence(BLOCK, step));
        })
    });
    let calls = (BLOCK / STEPS[1] - BLOCK / STEPS[0]) as f64;
    let call = ((cut - whole) / calls).max(0.0);
    report("FALLBACK_COST_VALUES", (all + call) / (whole / BLOCK as f64), FALLBACK_COST_VALUES, "values");
}

criterion_group! { name = benches; config = short(); targets = blocks, constants }
criterion_main!(benches);

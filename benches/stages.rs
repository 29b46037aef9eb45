//! The processor time of each stage of the solver: Grundy's game, .6, .014 and .774 after 2^23 known values.
//!
//! `cargo bench --bench stages` prints for each game the nanoseconds of processor time per value, the least of several
//! rounds, on the clock of one thread. So the figures hold on a machine with few cores or with other work:
//!
//! - `near`: the near and late lookups, and taking and publishing, which one thread does in order;
//! - `middle`: the middle lookups, which all threads share as far as they come in time;
//! - `far`: the far lookups, which all threads share;
//! - `witnesses`: the search for witnesses, which all threads share.
//!
//! With t threads a value takes at least max(near, (near + middle + far + witnesses) / t): the last columns. The work
//! between two blocks, commits and audits are not included.

mod support;

use grundy::bench_support::{CandidateBench, WitnessBench, processor_time};
use grundy::kernel::Kernel;
use std::time::Duration;
use support::{checked_values, is_measuring};

/// Number of values in a block.
const BLOCK: usize = 1 << 17;

/// Games with the masks and position terms of their sparse spaces.
const GAMES: [(&str, (u16, u8)); 4] =
    [("grundy", (0x1fe, 0)), ("0.6", (0x1ee, 0)), ("0.014", (0x1fe, 0)), ("0.774", (0x1fa, 0))];

/// Numbers of threads of the last columns.
const THREADS: [u32; 5] = [1, 2, 4, 8, 16];

fn main() {
    let (known, rounds) = if is_measuring() { (1 << 23, 20) } else { (1 << 18, 1) };
    let limits: String = THREADS.iter().map(|threads| format!("{threads:>7}")).collect();
    println!("ns per value:  near middle    far  witnesses    lower bound with threads:{limits}");
    for (name, space) in GAMES {
        let [near, middle, far, witnesses] = stages(name, space, known, rounds);
        let least = |&threads: &u32| near.max((near + middle + far + witnesses) / f64::from(threads));
        let limits: String = THREADS.iter().map(|threads| format!("{:>7.1}", least(threads))).collect();
        println!("{name:12} {near:>6.1} {middle:>6.1} {far:>6.1} {witnesses:>10.1}                        {limits}");
    }
}

/// The nanoseconds per value of each stage, the least of some rounds.
fn stages(name: &str, space: (u16, u8), known: usize, rounds: usize) -> [f64; 4] {
    let rule = name.parse().expect("a game");
    let values = checked_values(&rule, known + BLOCK);
    let kernel = Kernel::best();
    let (past, block) = values.split_at(known);
    let mut candidates = CandidateBench::new(&rule, space.0, space.1, kernel, past).expect("a stream");
    let witnesses = WitnessBench::new(&rule, space, kernel, &values, known).expect("a stream");
    let mut least = [Duration::MAX; 4];
    for _ in 0..rounds {
        let (found, [far, middle, near]) = candidates.stages(BLOCK).expect("candidates").expect("far lookups");
        assert!(found == block, "{name}: wrong candidates");
        let begin = processor_time();
        assert_eq!(witnesses.check().expect("no error"), None, "{name}: a witness is missing");
        let times = [near, middle, far, processor_time() - begin];
        least.iter_mut().zip(times).for_each(|(least, time)| *least = time.min(*least));
    }
    least.map(|time| time.as_secs_f64() * 1e9 / BLOCK as f64)
}

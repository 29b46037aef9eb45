//! Benchmarks of everything that reads a committed table again, on a run of 2^22 values of Grundy's game in the
//! directory for temporary files. Its files are in the page cache, so no benchmark waits for the device.
//!
//! `cargo bench --bench verify` takes less than a minute. An element is one value. The benchmarks are:
//!
//! - `rehash`: the table hashed again on resume, up to the last value;
//! - `resume`: the whole resume of a run that has nothing to compute;
//! - `digest`, `exclusion`, `recompute`: the levels of `grundy verify`, with all cores; `recompute` computes the last
//!   2^20 values by another kernel.
//!
//! Before the measurement each of them must pass the right table, and must refuse it with one value set to 0. No cost
//! constant depends on these times.

mod support;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use grundy::run::Observer;
use grundy::storage::Dir;
use grundy::table::{HEADER, VALUES};
use grundy::theory::rule::Rule;
use grundy::verify;
use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};
use support::{run_to, short};

/// Number of values in the run.
const COUNT: u64 = 1 << 22;

/// Number of values that `recompute` computes.
const RECOMPUTED: u64 = 1 << 20;

/// Notes when the last value was hashed again.
struct Clock {
    start: Instant,
    rehashed: Option<Duration>,
}

impl Observer for Clock {
    fn rehashed(&mut self, count: u64, of: u64) {
        if count == of {
            self.rehashed = Some(self.start.elapsed());
        }
    }
}

/// Resumes the run, which has nothing to compute. Returns the time up to the last value hashed, and the whole time.
fn resume(dir: &Path, rule: &Rule) -> grundy::Result<[Duration; 2]> {
    let mut clock = Clock { start: Instant::now(), rehashed: None };
    run_to(&Dir::at(dir), rule, COUNT, &mut clock)?;
    Ok([clock.rehashed.expect("the table was hashed"), clock.start.elapsed()])
}

fn digest(dir: &Path) -> grundy::Result<verify::Report> {
    verify::digest(dir, None, |_, _| {})
}

fn exclusion(dir: &Path) -> grundy::Result<verify::Report> {
    verify::exclusion(dir, None, |_, _| {})
}

fn recompute(dir: &Path) -> grundy::Result<verify::Report> {
    verify::recompute(dir, Some(COUNT - RECOMPUTED..COUNT), |_, _| {})
}

type Check = fn(&Path) -> grundy::Result<verify::Report>;

/// The checks, with the number of values that each checks.
const CHECKS: [(&str, Check, u64); 3] =
    [("digest", digest, COUNT), ("exclusion", exclusion, COUNT), ("recompute", recompute, RECOMPUTED)];

/// Sets one value of the table to 0, calls `work`, and restores the value.
fn with_wrong_value(dir: &Path, work: impl FnOnce()) {
    let path = dir.join(VALUES);
    let mut file = OpenOptions::new().read(true).write(true).open(path).expect("the table");
    // The first of the last values that is not 0.
    let mut at = HEADER + COUNT - 1000;
    let mut value = [0];
    while value == [0] {
        at += 1;
        file.seek(SeekFrom::Start(at)).expect("a place in the table");
        file.read_exact(&mut value).expect("a value");
    }
    let mut set = |value: [u8; 1]| {
        file.seek(SeekFrom::Start(at)).expect("a place in the table");
        file.write_all(&value).expect("a value");
    };
    set([0]);
    work();
    set(value);
}

fn checks(c: &mut Criterion) {
    let rule: Rule = "grundy".parse().expect("a game");
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let dir = temporary.path();
    run_to(&Dir::at(dir), &rule, COUNT, &mut ()).expect("a run");
    for (name, check, count) in CHECKS {
        assert_eq!(check(dir).expect("a right table").checked, count, "{name}");
    }
    with_wrong_value(dir, || {
        for (name, check, _) in CHECKS {
            assert!(check(dir).is_err(), "{name}: a wrong value passes");
        }
        assert!(resume(dir, &rule).is_err(), "resume: a wrong value passes");
    });
    let mut group = c.benchmark_group("verify");
    group.sample_size(10).sampling_mode(SamplingMode::Flat).throughput(Throughput::Elements(COUNT));
    for (i, name) in ["rehash", "resume"].into_iter().enumerate() {
        group.bench_function(name, |bench| {
            bench.iter_custom(|resumes| (0..resumes).map(|_| resume(dir, &rule).expect("a right table")[i]).sum());
        });
    }
    for (name, check, count) in CHECKS {
        group.throughput(Throughput::Elements(count));
        group.bench_function(name, |bench| bench.iter(|| check(dir).expect("a right table")));
    }
    group.finish();
}

criterion_group! { name = benches; config = short(); targets = checks }
criterion_main!(benches);

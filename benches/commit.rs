//! Benchmarks of one commit: values to the table, fsync, record to the journal, fsync, publish.
//!
//! `cargo bench --bench commit` takes less than a minute and writes up to 500 MB to the directory for temporary
//! files (`TMPDIR`), which it removes. The criterion groups are:
//!
//! - `commit/disk`: commits of 1, 2^16, 2^20 and 2^24 values (the most that a run commits at once) on the file system
//!   of the temporary directory;
//! - `commit/memory`: the same on the simulated disk of `storage::testing`, without the device. The simulated disk
//!   copies what it makes durable, so only the commit of 1 value shows the fixed cost of a commit;
//! - `summary`: the durable write of a discard summary of 2^20 values of Grundy's game, its rare positions included;
//! - `fsync`: 4096 bytes written and synced, once per iteration: what the device takes at least.
//!
//! No cost constant depends on these times. A run commits every 5 s at most (`run/commit_clock.rs`), on a thread of its
//! own.

mod support;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use grundy::bench_support::{CommitBench, SummaryBench};
use grundy::run::RunReader;
use grundy::solver::SparseSpace;
use grundy::storage::testing::Memory;
use grundy::storage::{Dir, Mode};
use grundy::theory::definition::Sequence;
use grundy::theory::rule::Rule;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{checked_values, run_to, short};

/// Number of values in the run before the commits.
const FIRST: usize = 1 << 16;

/// The next `count` values to commit; the committer accepts any values.
fn batch(values: &[u16], count: usize) -> Vec<u16> {
    values.iter().copied().cycle().take(count).collect()
}

/// A run of Grundy's game in `dir` with [`FIRST`] values, to commit more.
fn open(dir: &Dir, rule: &Rule, values: &[u16]) -> CommitBench {
    run_to(dir, rule, FIRST as u64, &mut ()).expect("a run");
    CommitBench::open(dir, &values[..FIRST]).expect("the run that was just written")
}

/// Commits `batch` and returns the time of the commit.
fn commit(run: &mut CommitBench, batch: &[u16]) -> Duration {
    run.announce(batch);
    let values = Arc::new(batch.to_vec());
    let start = Instant::now();
    run.commit(values).expect("a commit");
    start.elapsed()
}

/// Ends the run, and compares its committed values with `expected`.
fn check(dir: &Dir, run: CommitBench, expected: &[u16]) {
    run.close().expect("the last record");
    let reader = RunReader::open(dir).expect("a run");
    assert_eq!(reader.len(), expected.len() as u64);
    let mut read = vec![0; expected.len()];
    reader.read(0, &mut read).expect("the committed values");
    assert!(read == expected, "the committed values are others");
}

/// Measures commits in the directories that `new_dir` creates.
fn commits(c: &mut Criterion, place: &str, counts: &[usize], mut new_dir: impl FnMut() -> Dir) {
    let rule: Rule = "grundy".parse().expect("a game");
    let values = checked_values(&rule, FIRST);
    let mut group = c.benchmark_group(format!("commit/{place}"));
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    for &count in counts {
        let batch = batch(&values, count);
        let dir = new_dir();
        let mut run = open(&dir, &rule, &values);
        commit(&mut run, &batch);
        check(&dir, run, &[&values[..], &batch].concat());
        let dir = new_dir();
        let mut run = open(&dir, &rule, &values);
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(format!("{count}"), |bench| {
            bench.iter_custom(|commits| (0..commits).map(|_| commit(&mut run, &batch)).sum());
        });
        run.close().expect("the last record");
    }
    group.finish();
}

fn disk(c: &mut Criterion) {
    let mut dirs = Vec::new();
    commits(c, "disk", &[1, 1 << 16, 1 << 20, 1 << 24], || {
        dirs.clear(); // removes the files of the run before
        let dir = tempfile::tempdir().expect("a temporary directory");
        let at = Dir::at(dir.path());
        dirs.push(dir);
        at
    });
}

fn memory(c: &mut Criterion) {
    commits(c, "memory", &[1, 1 << 16, 1 << 20], || Dir::on(Arc::new(Memory::new()), Path::new("memory")));
}

/// Measures the durable write of a summary, and of one page.
fn parts(c: &mut Criterion) {
    /// Number of values that the summary describes.
    const COUNT: usize = 1 << 20;
    let rule: Rule = "grundy".parse().expect("a game");
    let space = SparseSpace::new(&rule, 0x1fe, 0).expect("a space of this game");
    let summary = SummaryBench::new(space, &checked_values(&rule, COUNT));
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let places =
        [("disk", Dir::at(temporary.path())), ("memory", Dir::on(Arc::new(Memory::new()), Path::new("memory")))];
    for (place, dir) in places {
        let hash = summary.write(&dir).expect("a summary");
        let bytes = dir.read(&format!("snapshot-{COUNT}.json")).expect("the summary");
        assert_eq!(blake3::hash(&bytes).to_hex().as_str(), hash);
        c.bench_function(&format!("summary/{place}"), |bench| bench.iter(|| summary.write(&dir)));
        let file = dir.open("page", Mode::New).expect("a file");
        let write = || {
            file.write_all_at(&[1; 4096], 0).expect("a page");
            file.sync_data().expect("a page on the disk");
        };
        c.bench_function(&format!("fsync/{place}"), |bench| bench.iter(write));
    }
}

criterion_group! { name = benches; config = short(); targets = disk, memory, parts }
criterion_main!(benches);

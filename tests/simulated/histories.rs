//! Random histories of a run on a simulated disk: stops, kills, power cuts, I/O errors, damage and rollbacks in any
//! order. After each step the committed values are present and correct.
//!
//! Extend [`Step`] for a new kind of event. In the unit tests of the library the runs discard values.

use crate::support::simulated::{
    FILES, FREEING, Game, KEEP, Process, USUAL, after, begin, dir, is_right, left, on, published,
};
use crate::support::{FREES, Random, cases};
use grundy::checkpoint::journal::{self, RECORD};
use grundy::error::{Error, Kind};
use grundy::kernel::Kernel;
use grundy::run::{Observer, Outcome, Progress, RunReader};
use grundy::solver::Method;
use grundy::storage::Storage;
use grundy::storage::testing::{Fault, Faults, Memory, Plan};
use grundy::table::Width;
use grundy::theory::rule::Rule;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// An event in the history of a run. Numbers are reduced to the range that exists at that time.
#[derive(Clone, Debug)]
enum Step {
    /// A process computes up to `by` more values, and may be stopped before.
    Run { by: u64, every: u64, stop: Option<u64>, solver: usize, threads: usize, repair: bool },
    /// A process is killed at an operation, or the power is cut and the seed chooses what remains.
    End { by: u64, every: u64, at: u64, power_cut: Option<u64> },
    /// Random operations of a process fail.
    Fail { by: u64, seed: u64, harmful: u64 },
    /// A byte of a file changes.
    Flip { file: usize, at: u64, with: u8 },
    /// A file is truncated.
    Cut { file: usize, at: u64 },
    /// A process rolls back.
    Rollback { by: u64 },
    /// A reader reads all values.
    Look,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let scale: u64 = if FREES { 10 } else { 1 };
    let by = move || 1..500 * scale;
    let every = move || 40 * scale..300 * scale;
    let any = any::<u64>;
    let step = prop_oneof![
        4 => (by(), every(), prop::option::of(0..500u64), 0..4usize, 0..3usize, prop::bool::ANY).prop_map(
            |(by, every, stop, solver, threads, repair)| Step::Run { by, every, stop, solver, threads, repair }
        ),
        4 => (by(), every(), 1..120u64, prop::option::of(any())).prop_map(
            |(by, every, at, power_cut)| Step::End { by, every, at, power_cut }
        ),
        2 => (by(), any(), 0..40u64).prop_map(|(by, seed, harmful)| Step::Fail { by, seed, harmful: harmful << 20 }),
        1 => (0..4usize, any(), 1..=255u8).prop_map(|(file, at, with)| Step::Flip { file, at, with }),
        1 => (0..4usize, any()).prop_map(|(file, at)| Step::Cut { file, at }),
        1 => by().prop_map(|by| Step::Rollback { by }),
        1 => Just(Step::Look),
    ];
    prop::collection::vec(step, 1..12)
}

/// Reads the run during the computation, and stops it at a given count.
struct Reader<'a> {
    game: &'a Game,
    disk: &'a Memory,
    stop: &'a AtomicBool,
    stop_at: u64,
    calls: u64,
}

impl Observer for Reader<'_> {
    fn started(&mut self, _: &Rule, from: u64, _: Option<u64>) {
        self.stop_at = self.stop_at.saturating_add(from);
    }

    fn rehashed(&mut self, _: u64, _: u64) {}

    fn advanced(&mut self, progress: &Progress) {
        self.stop.store(progress.count >= self.stop_at, Ordering::Relaxed);
        self.calls += 1;
        if progress.committed > 0 && self.calls.is_multiple_of(3) {
            assert_readable(self.game, self.disk, progress.committed);
        }
    }

    fn note(&mut self, _: &str) {}
}

/// Checks that a reader finds all committed values, and that they are correct.
fn assert_readable(game: &Game, disk: &Memory, committed: u64) {
    use grundy::theory::definition::Sequence;
    let view = RunReader::open(dir(on(disk))).unwrap();
    assert!(view.len() >= committed, "{committed} values were committed, {} are read", view.len());
    for (from, to) in view.contents.last.kept.clone() {
        let mut values = vec![0; (to - from) as usize];
        view.read(from, &mut values).unwrap();
        assert!(values == game.values[from as usize..to as usize], "what is read is not right");
    }
    let status = journal::read(dir(on(disk))).unwrap().last;
    assert_eq!(status.digest, game.digest(status.count));
}

/// The model of a run: its values, and the number of committed ones.
struct Model {
    game: &'static Game,
    width: Width,
    disk: Memory,
    /// Least number of values that the run must hold.
    committed: u64,
    /// The disk before the first damage.
    undamaged: Option<Memory>,
}

impl Model {
    fn process(&self, by: u64, every: u64) -> Process {
        let to = (self.committed + by).min(self.game.values.len() as u64);
        Process { to, every, width: self.width, keep: FREES.then_some(KEEP), ..USUAL }
    }

    /// Checks the end of a process without faults; `before` is what it found on the disk.
    fn ended(&mut self, process: Process, ended: grundy::Result<Outcome>, before: &[Option<Vec<u8>>; 3]) {
        let disk = &self.disk;
        match (ended, self.undamaged.is_some()) {
            (Ok(outcome), damaged) => {
                let count = is_right(self.game, self.width, disk, &process);
                assert_eq!(outcome.progress.count, count);
                assert!(damaged || count >= self.committed, "{} were committed, {count} are left", self.committed);
                assert!(outcome.stopped || count >= process.to);
                (self.committed, self.undamaged) = (count, None);
            }
            (Err(error), true) => {
                let foreign = matches!(error, Error::Mismatch { .. } | Error::NoRun { .. });
                assert!(error.kind() == Kind::Damage || foreign, "{error}");
                // Only a torn tail of the journal may be dropped before the refusal.
                let now = FILES.map(|name| disk.get(name));
                let torn = before[2].as_ref().is_some_and(|b| now[2].as_ref().is_some_and(|now| b.starts_with(now)));
                let same = now[..2] == before[..2] && (torn || now[2] == before[2]);
                assert!(process.repair || process.rollback || same, "a refused run changes nothing: {error}");
                if process.rollback {
                    // Rollback cannot repair all damage, for example a damaged record before good ones or a missing
                    // header.
                    self.disk = self.undamaged.take().unwrap();
                }
            }
            (Err(error), false) => panic!("{process:?}: {error}"),
        }
    }

    fn step(&mut self, step: &Step, pools: &[rayon::ThreadPool]) {
        let before = FILES.map(|name| self.disk.get(name));
        // Faults are tried on undamaged disks only; a process without faults opens the others.
        let usual =
            Step::Run { by: 1, every: if FREES { 1000 } else { 100 }, stop: None, solver: 0, threads: 0, repair: true };
        let damaged = self.undamaged.is_some();
        let step = if damaged && matches!(step, Step::End { .. } | Step::Fail { .. }) { &usual } else { step };
        match *step {
            Step::Run { by, every, stop, solver, threads, repair } => {
                let kernels = Kernel::available();
                let method = match kernels.get(solver) {
                    Some(&kernel) if self.game.method != Method::Definition => Method::Sparse(kernel),
                    _ => self.game.method,
                };
                let process = Process { repair, method: Some(method), ..self.process(by, every) };
                let flag = AtomicBool::new(false);
                let stop_at = stop.unwrap_or(u64::MAX);
                let mut reader = Reader { game: self.game, disk: &self.disk, stop: &flag, stop_at, calls: 0 };
                let run = || process.watched(self.game, on(&self.disk), &mut reader, &flag);
                let ended = pools[threads].install(run);
                self.ended(process, ended, &before);
            }
            Step::End { by, every, at, power_cut } => {
                let plan = Plan::At { at, fault: Fault::PowerCut, lasting: true };
                let ended = self.process(by, every).run(self.game, Arc::new(Faults::new(on(&self.disk), plan)));
                self.broke_off(ended);
                if let Some(seed) = power_cut {
                    let random = &mut Random::seeded(seed);
                    self.disk = left(&self.disk, random);
                }
            }
            Step::Fail { by, seed, harmful } => {
                let plan = Plan::Drawn { seed, harmless: 1 << 29, harmful };
                let ended = self
                    .process(by, if FREES { 1000 } else { 100 })
                    .run(self.game, Arc::new(Faults::new(on(&self.disk), plan)));
                self.broke_off(ended);
            }
            Step::Flip { file, at, with } => self.damage(file, |bytes| {
                let at = at as usize % bytes.len();
                bytes[at] ^= with;
            }),
            Step::Cut { file, at } => self.damage(file, |bytes| bytes.truncate(at as usize % bytes.len())),
            Step::Rollback { by } => {
                let process = Process { rollback: true, ..self.process(by, if FREES { 1000 } else { 100 }) };
                let ended = process.run(self.game, on(&self.disk));
                self.ended(process, ended, &before);
            }
            Step::Look => {
                if !damaged && self.committed > 0 {
                    assert_readable(self.game, &self.disk, self.committed);
                }
            }
        }
    }

    /// After a fault the progress of a process is unknown, except for what it published.
    fn broke_off(&mut self, ended: grundy::Result<Outcome>) {
        if let Err(error) = &ended {
            assert_eq!(error.kind(), Kind::Failed, "{error}");
        }
        // A header that a power cut tore, and that this process has not rewritten, states an arbitrary number.
        let published = published(&self.disk);
        let journal = self.disk.get("journal.jsonl").unwrap_or_default();
        let mut records =
            journal.chunks(RECORD).filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
        if records.any(|record| record["count"] == published) {
            self.committed = self.committed.max(published);
        }
        assert_readable_if_committed(self.game, &self.disk, self.committed);
    }

    /// Damages one of [`FILES`] or the snapshot.
    fn damage(&mut self, file: usize, alter: impl FnOnce(&mut Vec<u8>)) {
        let snapshot = || self.disk.names().unwrap().into_iter().find(|name| name.starts_with("snapshot-"));
        let Some(name) = FILES.get(file).map(ToString::to_string).or_else(snapshot) else { return };
        let Some(mut bytes) = self.disk.get(&name).filter(|bytes| !bytes.is_empty()) else { return };
        if self.undamaged.is_none() {
            self.undamaged = Some(self.disk.copy());
        }
        self.disk = self.disk.copy();
        alter(&mut bytes);
        self.disk.put(&name, bytes);
    }
}

fn assert_readable_if_committed(game: &Game, disk: &Memory, committed: u64) {
    if committed > 0 {
        assert_readable(game, disk, committed);
    }
}

#[test]
fn committed_values_survive_random_histories_of_faults() {
    let tally = begin("random histories of a run", "random histories of a run, runs that free values");
    let random = &mut Random::new("histories");
    let base = if FREES {
        after(Game::freeing(), &Memory::new(), Process { to: 200_000, ..FREEING })
    } else {
        after(Game::sparse(), &Memory::new(), Process { to: 4200, every: 1400, ..USUAL })
    };
    /// Number of threads, each with its own random generator.
    const LANES: u64 = 4;
    let count = if FREES { cases(50, 2000) } else { cases(500, 50_000) };
    let done = AtomicU64::new(0);
    let lane = |seed: &[u8]| {
        let pools = [1, 2, 3].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
        let config = Config {
            cases: u32::try_from(count.div_ceil(LANES)).unwrap(),
            failure_persistence: None,
            max_shrink_iters: 500,
            ..Config::default()
        };
        let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, seed));
        let tried = runner.run(&(0..5u8, prop::bool::ANY, steps()), |(game, narrow, steps)| {
            let mut model = match game {
                _ if FREES => Model {
                    game: Game::freeing(),
                    width: Width::U8,
                    disk: base.copy(),
                    committed: 200_000,
                    undamaged: None,
                },
                0 => Model {
                    game: Game::sparse(),
                    width: Width::U8,
                    disk: base.copy(),
                    committed: 4200,
                    undamaged: None,
                },
                _ => {
                    let width = if narrow { Width::U8 } else { Width::U16 };
                    Model { game: Game::quick(), width, disk: Memory::new(), committed: 0, undamaged: None }
                }
            };
            steps.iter().for_each(|step| model.step(step, &pools));
            model.step(&Step::Rollback { by: 1 }, &pools);
            model.step(
                &Step::Run {
                    by: 300,
                    every: if FREES { 1000 } else { 100 },
                    stop: None,
                    solver: 0,
                    threads: 0,
                    repair: false,
                },
                &pools,
            );
            done.fetch_add(steps.len() as u64, Ordering::Relaxed);
            Ok(())
        });
        tried.unwrap_or_else(|error| panic!("{error}"));
    };
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            let seed: Vec<u8> = (0..4).flat_map(|_| random.next().to_le_bytes()).collect();
            let lane = &lane;
            scope.spawn(move || lane(&seed));
        }
    });
    tally.end(count, &format!("{} steps, after each of which the committed values were present", done.into_inner()));
}

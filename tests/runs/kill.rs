//! SIGKILL at any moment: nothing committed is lost, and the run ends with the bytes of an uninterrupted one.
//!
//! Moments are random. Many of them are at the start, during the rehash of a resumed run, and in a commit, whose steps
//! are visible from outside by files that grow.

use crate::support::whole::{Whole, length, recorded};
use crate::support::{Random, Tally, cases, count, grundy, kernels, run_well, same_run, says_no_run, start, text};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

/// When a run is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// At this time after the start.
    After(Duration),
    /// At this time after the file became longer.
    Grown(&'static str, Duration),
}

impl Moment {
    fn random(random: &mut Random) -> Moment {
        let after = |from: u64, to: u64, random: &mut Random| {
            Moment::After(Duration::from_micros(1000 * from + random.below(1000 * (to - from))))
        };
        // Most often without delay; a commit takes from less than one to some hundred milliseconds.
        let soon = Duration::from_micros(random.pick(&[0, 0, 100, 1000, 10_000]));
        match random.below(8) {
            0 => after(0, 30, random),
            1 => after(0, 300, random),
            2 => after(650, 900, random),
            3 => after(300, 2000, random),
            4 | 5 => Moment::Grown("values.npy", soon),
            _ => Moment::Grown("journal.jsonl", soon),
        }
    }

    /// Waits for the moment. Returns whether the run was still active then.
    fn comes(self, child: &mut Child, dir: &Path) -> bool {
        let begun = Instant::now();
        let running = |child: &mut Child| child.try_wait().unwrap().is_none();
        match self {
            Moment::After(delay) => std::thread::sleep(delay),
            Moment::Grown(name, delay) => {
                let path = dir.join(name);
                // The header of a new table holds no values.
                let before = length(&path).max(if name == "values.npy" { 4096 } else { 0 });
                while length(&path) <= before && begun.elapsed() < Duration::from_secs(20) {
                    if !running(child) {
                        return false;
                    }
                    std::thread::sleep(Duration::from_micros(50));
                }
                std::thread::sleep(delay);
            }
        }
        running(child)
    }
}

/// Results of the kills of one game.
#[derive(Default)]
struct Seen {
    kills: u64,
    runs: u64,
    before_the_first_record: u64,
    with_a_tail: u64,
}

/// Kills each run of a game up to seven times, and then lets it end.
fn kill_runs(whole: &Whole, kernels: &[String], kills: u64, random: &mut Random) -> Seen {
    let mut seen = Seen::default();
    while seen.kills < kills {
        let dirs = tempfile::tempdir().unwrap();
        let dir = dirs.path().join("run");
        let (mut committed, mut ended) = (0, false);
        let most = 1 + random.below(7);
        for _ in 0..most.min(kills - seen.kills) {
            let moment = Moment::random(random);
            let kernel = &kernels[usize::try_from(random.below(kernels.len() as u64)).unwrap()];
            let threads = random.pick(&[1, 2, 3, 5, 8, 16]);
            let what = format!("{} to {}, {threads} threads, {kernel}, {moment:?}", whole.game, whole.to);
            let mut child = start(whole.command(&dir, threads).args(["--kernel", kernel]));
            if !moment.comes(&mut child, &dir) {
                let output = child.wait_with_output().unwrap();
                assert_eq!(output.status.code(), Some(0), "{what}: {}", text(&output.stderr));
                ended = true;
                break;
            }
            let recorded = recorded(&dir);
            child.kill().unwrap();
            child.wait().unwrap();
            seen.kills += 1;
            let now = count(&dir);
            assert!(now >= committed.max(recorded), "{what}: {committed}, then {recorded} were committed, now {now}");
            committed = now;
            let verified = grundy(["verify"]).arg(&dir).output().unwrap();
            match (verified.status.code(), committed) {
                (Some(0), _) => {}
                (Some(1), 0) if says_no_run(&verified) => seen.before_the_first_record += 1,
                (code, _) => panic!("{what}: verify ends with {code:?}: {}", text(&verified.stderr)),
            }
            let bytes = if whole.width == "u16" { 2 } else { 1 };
            seen.with_a_tail += u64::from(length(&dir.join("values.npy")) > 4096 + bytes * committed);
        }
        if !ended {
            let output = whole.command(&dir, 0).output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}: {}", whole.game, text(&output.stderr));
        }
        assert_eq!(grundy(["verify"]).arg(&dir).output().unwrap().status.code(), Some(0), "{}", whole.game);
        same_run(&dir, &whole.dir());
        seen.runs += 1;
    }
    seen
}

#[test]
fn kill_at_any_moment_loses_nothing_committed() {
    let random = &mut Random::new("kill -9");
    let tally = Tally::begin("kill -9");
    let kernels = kernels();
    let games =
        [("grundy", "u8", 2_000_000), ("0.6", "u8", 600_000), (".106", "u8", 30_000_000), ("kayles", "u16", 9_000_000)];
    let each = cases(20, 2000).div_ceil(games.len() as u64);
    // At the same time, so that runs also wait for each other.
    let seen: Vec<Seen> = std::thread::scope(|scope| {
        let threads: Vec<_> = games
            .map(|(game, width, most)| {
                let (mut random, kernels) = (random.fork(), &kernels);
                scope.spawn(move || {
                    let whole = Whole::lasting(game, width, Duration::from_millis(1500), most);
                    println!("{game}: {} values", whole.to);
                    kill_runs(&whole, kernels, each, &mut random)
                })
            })
            .into();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let sum = |of: fn(&Seen) -> u64| seen.iter().map(of).sum::<u64>();
    tally.end(
        sum(|s| s.kills),
        &format!(
            "{} runs, {} kills before the first record, {} with values beyond the last; nothing lost, the same bytes",
            sum(|s| s.runs),
            sum(|s| s.before_the_first_record),
            sum(|s| s.with_a_tail)
        ),
    );
}

/// After a clean stop the files have exact lengths. The next process makes them longer before it writes its first
/// record.
#[test]
fn kill_between_a_clean_stop_and_the_next_record_is_no_damage() {
    let random = &mut Random::new("kill after a clean stop");
    let tally = Tally::begin("kill after a clean stop");
    let kills = cases(4, 200);
    let mut with_a_tail = 0;
    for _ in 0..kills {
        let dirs = tempfile::tempdir().unwrap();
        let (dir, whole) = (dirs.path().join("run"), dirs.path().join("whole"));
        let before = 20_000 + random.below(10_000);
        run_well("kayles", &dir, &["--to", &before.to_string(), "--width", "u8"]);
        let table = dir.join("values.npy");
        let long = length(&table);
        let mut child = start(grundy(["run", "kayles", "--dir"]).arg(&dir));
        wait_until_soon(|| length(&table) > long);
        child.kill().unwrap();
        child.wait().unwrap();
        with_a_tail += u64::from(count(&dir) == before && length(&table) > long);
        let verified = grundy(["verify"]).arg(&dir).output().unwrap();
        assert_eq!(verified.status.code(), Some(0), "{}", text(&verified.stderr));
        let to = (count(&dir) + 1000).to_string();
        run_well("kayles", &dir, &["--to", &to]);
        run_well("kayles", &whole, &["--to", &to, "--width", "u8"]);
        same_run(&dir, &whole);
    }
    tally.end(
        kills,
        &format!("{with_a_tail} with values beyond the clean stop; verify says it is good, the same bytes"),
    );
}

/// As `wait_until`, polling every 50 microseconds.
fn wait_until_soon(happened: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !happened() {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// The first commit had no record yet, so the same command can discard what it wrote.
#[test]
fn kill_during_the_first_commit_needs_no_rollback() {
    let tally = Tally::begin("kill in the first commit");
    let kills = cases(4, 200);
    let mut with_a_tail = 0;
    for _ in 0..kills {
        let dirs = tempfile::tempdir().unwrap();
        let (dir, whole) = (dirs.path().join("run"), dirs.path().join("whole"));
        let table = dir.join("values.npy");
        let mut child = start(grundy(["run", "kayles", "--width", "u8", "--dir"]).arg(&dir));
        wait_until_soon(|| length(&table) > 4096);
        child.kill().unwrap();
        child.wait().unwrap();
        with_a_tail += u64::from(count(&dir) == 0);
        let to = (count(&dir) + 1000).to_string();
        run_well("kayles", &dir, &["--to", &to, "--width", "u8"]);
        run_well("kayles", &whole, &["--to", &to, "--width", "u8"]);
        same_run(&dir, &whole);
    }
    tally.end(
        kills,
        &format!("{with_a_tail} with values before the first record; the same command resumed to the same bytes"),
    );
}

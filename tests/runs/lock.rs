//! Many starts on one directory: one process runs, the others are refused, and never do two processes write.

use crate::support::whole::recorded;
use crate::support::{Random, Tally, cases, count, grundy, run, run_well, same_run, start, text, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Child, Output};
use std::sync::Barrier;
use std::time::{Duration, Instant};

const GAME: &str = "0.106";

/// More values than are computed in a minute.
const FAR: &str = "1e11";

fn start_run(dir: &Path) -> Child {
    start(grundy(["run", GAME, "--keep", "2^26", "--to", FAR, "--threads", "1", "--dir"]).arg(dir))
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Checks the message of a refused start.
fn refused(output: &Output, dir: &Path) {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(75), "{stderr}");
    assert!(stderr.contains("another process is using it"), "{stderr}");
    assert!(stderr.contains(dir.to_str().unwrap()) && !stderr.contains("panicked"), "{stderr}");
}

/// Starts eight processes at once and returns the one that runs.
fn one_of_eight(dir: &Path) -> Child {
    const EIGHT: usize = 8;
    let barrier = Barrier::new(EIGHT);
    let started: Vec<Child> = std::thread::scope(|scope| {
        let starting: Vec<_> = (0..EIGHT)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    start_run(dir)
                })
            })
            .collect();
        starting.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let begun = Instant::now();
    let (mut running, mut ended) = (started, Vec::new());
    while running.len() > 1 && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(1));
        for i in (0..running.len()).rev() {
            if running[i].try_wait().unwrap().is_some() {
                ended.push(running.swap_remove(i));
            }
        }
    }
    let count = running.len();
    let holder = running.pop();
    running.into_iter().for_each(kill);
    let holder = holder.filter(|_| count == 1).unwrap_or_else(|| {
        let said = ended.drain(..).map(|child| text(&child.wait_with_output().unwrap().stderr));
        panic!("{count} run at once; the others say {:?}", said.collect::<Vec<_>>())
    });
    ended.into_iter().for_each(|child| refused(&child.wait_with_output().unwrap(), dir));
    holder
}

#[test]
fn one_of_eight_starts_runs_and_after_its_kill_a_new_one() {
    let random = &mut Random::new("eight starts");
    let tally = Tally::begin("eight starts");
    let rounds = cases(10, 1000);
    let (mut fresh, mut resumed) = (0, 0);
    let mut dirs = tempfile::tempdir().unwrap();
    for _ in 0..rounds {
        // A directory that one of the eight creates, or one in which a run was killed.
        if random.below(3) == 0 {
            dirs = tempfile::tempdir().unwrap();
        }
        let dir = dirs.path().join("run");
        if dir.exists() {
            resumed += 1;
        } else {
            fresh += 1;
        }
        let mut holder = one_of_eight(&dir);
        if random.below(4) == 0 {
            let before = recorded(&dir);
            wait_until("the holder commits", || recorded(&dir) > before);
        } else {
            // Before the first commit, which comes after 700 ms.
            std::thread::sleep(Duration::from_millis(random.below(300)));
        }
        assert_eq!(holder.try_wait().unwrap(), None, "the holder runs");
        refused(&run(GAME, &dir, &[]), &dir);
        kill(holder);
    }
    let dir = dirs.path().join("run");
    let to = (count(&dir) + 5000).to_string();
    run_well(GAME, &dir, &["--to", &to]);
    let whole = dirs.path().join("whole");
    run_well(GAME, &whole, &["--to", &to]);
    assert_eq!(grundy(["verify"]).arg(&dir).output().unwrap().status.code(), Some(0));
    // No values are discarded yet, unless the machine is very fast.
    if count(&dir) < 1 << 26 {
        same_run(&dir, &whole);
    }
    tally.end(
        rounds * 8,
        &format!("{rounds} rounds, {fresh} in new directories, {resumed} after a kill: one ran, seven refused"),
    );
}

/// An editor or a copy that replaces a file also replaces its lock.
#[test]
fn file_replaced_under_a_run_never_admits_two_writers() {
    let random = &mut Random::new("replaced file");
    let tally = Tally::begin("replaced file");
    let rounds = cases(10, 1000);
    let names = ["journal.jsonl", "values.npy", "escapes.npy"];
    let mut draws: Vec<(&str, Random)> =
        (0..rounds).zip(names.into_iter().cycle()).map(|(_, name)| (name, random.fork())).collect();
    // Most of a round is waiting for commits.
    std::thread::scope(|scope| {
        for some in draws.chunks_mut(index(rounds.div_ceil(4))) {
            scope.spawn(|| some.iter_mut().for_each(|(name, random)| replaced(name, random)));
        }
    });
    tally.end(
        rounds,
        "the holder stopped at its next commit, the second was refused or came after it, the bytes are right",
    );
}

fn index(n: u64) -> usize {
    usize::try_from(n).unwrap()
}

fn replaced(name: &str, random: &mut Random) {
    let dirs = tempfile::tempdir().unwrap();
    let (dir, whole, other) = (dirs.path().join("run"), dirs.path().join("whole"), dirs.path().join("other"));
    let file = dir.join(name);
    let holder = start(grundy(["run", GAME, "--threads", "1", "--dir"]).arg(&dir));
    wait_until("the holder commits", || recorded(&dir) > 0);
    std::thread::sleep(Duration::from_millis(random.below(100)));
    std::fs::copy(&file, &other).unwrap();
    std::fs::rename(&other, &file).unwrap();
    let committed = count(&dir);
    let to = committed + 1000;
    let output = run(GAME, &dir, &["--to", &to.to_string()]);
    // The first process notices the change at its next commit and stops. A second one that waits for the lock long
    // enough continues.
    let continued = output.status.code() == Some(0);
    if !continued {
        refused(&output, &dir);
    }
    let signalled = kill_process(Pid::from_child(&holder), Signal::TERM);
    let output = holder.wait_with_output().unwrap();
    assert!(
        signalled.is_err() || output.status.code() == Some(1),
        "{name}, {:?}: {}",
        output.status,
        text(&output.stderr)
    );
    assert!(text(&output.stderr).contains(name), "{name}: {}", text(&output.stderr));
    assert_eq!(count(&dir), if continued { to } else { committed }, "{name}");
    assert_eq!(grundy(["verify"]).arg(&dir).output().unwrap().status.code(), Some(0), "{name}");
    let to = to.to_string();
    run_well(GAME, &dir, &["--to", &to]);
    run_well(GAME, &whole, &["--to", &to]);
    same_run(&dir, &whole);
}

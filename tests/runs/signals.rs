//! Signals and system limits: which signals stop a run and which it ignores, and how a process without memory ends.

use crate::support::whole::{length, recorded};
use crate::support::{count, grundy, is_ignored, start, text, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// The program under test, started by a shell command that ends with `exec "$@"`.
fn under(shell: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", shell, "sh", env!("CARGO_BIN_EXE_grundy")]).args(arguments);
    command
}

/// Sends signals to a run, which must continue and commit more; then TERM, which must stop it.
fn goes_on_under(mut command: Command, dir: &std::path::Path, signals: &[Signal]) {
    let mut child = start(&mut command);
    wait_until("the run commits", || recorded(dir) > 0 || child.try_wait().unwrap().is_some());
    for &signal in signals {
        send(&child, signal);
    }
    let before = recorded(dir);
    wait_until("the run commits more", || recorded(dir) > before || child.try_wait().unwrap().is_some());
    assert!(child.try_wait().unwrap().is_none(), "{signals:?} ended the run");
    send(&child, Signal::TERM);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{signals:?}: {}", text(&output.stderr));
    assert!(count(dir) > before, "{signals:?}");
}

#[test]
fn usr1_and_usr2_do_not_end_a_run() {
    let dirs = tempfile::tempdir().unwrap();
    let dir = dirs.path().join("run");
    let mut command = grundy(["-q", "run", "kayles", "--threads", "1", "--dir"]);
    command.arg(&dir);
    goes_on_under(command, &dir, &[Signal::USR1, Signal::USR2]);
}

#[test]
fn ignored_int_and_hup_are_inherited_and_ignored_term_is_not() {
    let dirs = tempfile::tempdir().unwrap();
    let dir = dirs.path().join("run");
    let arguments = ["-q", "run", "kayles", "--threads", "1", "--dir", dir.to_str().unwrap()];
    let command = under("trap '' INT HUP TERM; exec \"$@\"", &arguments);
    goes_on_under(command, &dir, &[Signal::INT, Signal::HUP]);
}

/// A run of Kayles that is long to export.
fn long_run(dir: &std::path::Path) {
    crate::support::run_well("kayles", dir, &["--to", "6e6"]);
}

#[test]
fn a_signal_ends_an_export_and_removes_the_unfinished_file() {
    let dirs = tempfile::tempdir().unwrap();
    let (run, out) = (dirs.path().join("run"), dirs.path().join("out"));
    long_run(&run);
    std::fs::create_dir(&out).unwrap();
    let file = out.join("values.jsonl");
    std::fs::write(&file, "old").unwrap();
    let names =
        || -> Vec<std::path::PathBuf> { std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()).collect() };
    // The program ignores INT and HUP where the tests themselves inherited them as ignored.
    let signals = [Signal::TERM, Signal::HUP, Signal::INT];
    for signal in signals.into_iter().filter(|&signal| !is_ignored(signal)) {
        let arguments = ["-q", "export", run.to_str().unwrap(), "--format", "jsonl", "-o", file.to_str().unwrap()];
        let mut child = start(&mut grundy(arguments));
        let begun = || names().iter().any(|name| *name != file && length(name) > 0);
        wait_until("something is written", || begun() || child.try_wait().unwrap().is_some());
        send(&child, signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{signal:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("stopped by a signal"), "{}", text(&output.stderr));
        assert!(matches!(&names()[..], [name] if *name == file), "{signal:?}: {:?}", names());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "old", "{signal:?}");
    }
}

#[test]
fn signal_ends_an_export_that_blocks_on_a_pipe() {
    let dirs = tempfile::tempdir().unwrap();
    let run = dirs.path().join("run");
    crate::support::run_well("kayles", &run, &["--to", "100000"]);
    for output in [&[][..], &["-o", "-"], &["-o", "/dev/stdout"]] {
        let mut command = grundy(["-q", "export", run.to_str().unwrap(), "--format", "csv"]);
        let mut child = command.args(output).stdout(Stdio::piped()).spawn().unwrap();
        let mut byte = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut byte).unwrap();
        // The export fills the pipe, whose reader then stops.
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert!(child.try_wait().unwrap().is_none(), "{output:?}: the pipe holds everything");
        send(&child, Signal::TERM);
        wait_until("the export ends", || child.try_wait().unwrap().is_some());
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::TERM.as_raw()), "{output:?}");
    }
}

/// A search for a period sets a flag at a signal, which an open that waits for a reader would not notice.
#[test]
fn signal_ends_a_command_that_waits_for_a_reader_of_a_pipe() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut command = grundy(["-q", "period", "kayles", "--certificate"]);
    let mut child = start(command.arg(&pipe));
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert!(child.try_wait().unwrap().is_none(), "the command did not wait for a reader");
    send(&child, Signal::TERM);
    wait_until("the command ends", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

fn limited(kilobytes: u32, arguments: &[&str]) -> Output {
    let mut command = under(&format!("ulimit -c 0; ulimit -v {kilobytes} && exec \"$@\""), arguments);
    // Each thread needs address space, and a machine may have many cores.
    command.env("RAYON_NUM_THREADS", "2").env_remove("RUST_BACKTRACE").output().unwrap()
}

#[test]
fn commands_without_memory_exit_with_1_and_a_message() {
    let dirs = tempfile::tempdir().unwrap();
    let path = |name: &str| dirs.path().join(name).to_str().unwrap().to_owned();
    // A path of 200 000 edges.
    let edges: String = (0..200_000).map(|n| format!("{n} {}\n", n + 1)).collect();
    std::fs::write(path("edges.txt"), edges).unwrap();
    let tried: [&[&str]; 5] = [
        &["-q", "values", "grundy", "0..3e7"],
        &["-q", "play", "grundy", "3e7"],
        &["-q", "run", "grundy", "--to", "1e8", "--threads", "2", "--dir", &path("run")],
        &["-q", "period", ".6", "--to", "3e7", "--threads", "2"],
        &["-q", "graph", &path("edges.txt")],
    ];
    if limited(400_000, &["--version"]).status.code() != Some(0) {
        return println!("skipped: this system does not limit memory");
    }
    for arguments in tried {
        let output = limited(50_000, arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}, {}: {stderr}", output.status);
        assert!(stderr.contains("memory") || stderr.contains("threads"), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
    }
}

#[test]
fn threads_that_cannot_be_started_are_an_error_and_no_panic() {
    let dirs = tempfile::tempdir().unwrap();
    let run = dirs.path().join("run");
    crate::support::run_well("kayles", &run, &["--to", "1000"]);
    let run = run.to_str().unwrap();
    let tried: [&[&str]; 3] =
        [&["-q", "values", "kayles", "0..10"], &["-q", "values", run, "0..10", "--verify"], &["-q", "verify", run]];
    if limited(400_000, &["--version"]).status.code() != Some(0) {
        return println!("skipped: this system does not limit memory");
    }
    for arguments in tried {
        // The stack of the first thread alone needs more than the limit.
        let mut command = under("ulimit -c 0; ulimit -v 400000 && exec \"$@\"", arguments);
        let output = command.env("RUST_MIN_STACK", "1000000000").env_remove("RUST_BACKTRACE").output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}, {}: {stderr}", output.status);
        assert!(stderr.contains("error: starting threads"), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
    }
}

#[test]
fn two_signals_within_an_instant_commit_like_one() {
    let dirs = tempfile::tempdir().unwrap();
    let run = dirs.path().join("run");
    let mut child = start(&mut grundy(["-q", "run", "lasker", "--dir", run.to_str().unwrap()]));
    wait_until("values are committed", || recorded(&run) > 0 || child.try_wait().unwrap().is_some());
    send(&child, Signal::TERM);
    send(&child, Signal::TERM);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("stopped; to resume: "), "{}", text(&output.stderr));
    assert_eq!(crate::support::status(&run).unwrap()["state"], "stopped");
}

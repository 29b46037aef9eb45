//! Helpers that the test programs share: the program under test, its outputs and its run directories. Each test
//! program uses some of them.

#![allow(dead_code, reason = "each test program uses a part of it")]

mod hazard;
mod home;
pub(crate) mod mount;
pub(crate) mod simulated;
pub(crate) mod solving;
pub(crate) mod whole;

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

#[allow(unused_imports, reason = "each test program uses a part of it")]
pub(crate) use hazard::{Random, Tally, cases};
#[allow(unused_imports, reason = "each test program uses a part of it")]
pub(crate) use home::Home;

/// Whether the runs of `tests/simulated` discard values. With segments of the usual length no run discards any before
/// 2^26 values. The library contains the same tests once more, as unit tests; their segments are small, and their runs
/// discard values.
pub(crate) const FREES: bool = false;

/// The program under test with these arguments, not yet started.
pub(crate) fn grundy<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_grundy"));
    command.args(arguments);
    command
}

/// Runs the program to its end.
pub(crate) fn output_of(arguments: &[&str]) -> Output {
    grundy(arguments).output().unwrap()
}

/// Runs the program to its end: exit status, stdout, stderr.
pub(crate) fn reply(arguments: &[&str]) -> (i32, String, String) {
    let output = output_of(arguments);
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// Stdout of the program, which must succeed.
pub(crate) fn stdout_of(arguments: &[&str]) -> String {
    let output = output_of(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// The JSON that the program prints; it must succeed.
pub(crate) fn json_of(arguments: &[&str]) -> serde_json::Value {
    let stdout = stdout_of(arguments);
    serde_json::from_str(&stdout).unwrap_or_else(|e| panic!("{arguments:?}: {e}: {stdout}"))
}

/// Checks that the program fails with this exit status: nothing on stdout, these words on stderr, no panic.
pub(crate) fn fails(status: i32, arguments: &[&str], words: &[&str]) {
    let output = output_of(arguments);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{arguments:?}: {}", text(&output.stdout));
    for word in words {
        assert!(stderr.contains(word), "{arguments:?} does not mention {word}: {stderr}");
    }
    assert!(!stderr.contains("panicked"), "{stderr}");
}

/// Runs `grundy run GAME --dir DIR` with more arguments to its end.
pub(crate) fn run(game: &str, dir: &Path, more: &[&str]) -> Output {
    grundy(["run", game, "--dir"]).arg(dir).args(more).output().unwrap()
}

/// As [`run`]; it must succeed.
pub(crate) fn run_well(game: &str, dir: &Path, more: &[&str]) -> Output {
    let output = run(game, dir, more);
    assert_eq!(output.status.code(), Some(0), "{game} {more:?}: {}", text(&output.stderr));
    output
}

/// The object of `grundy status DIR --json`; `None` if the directory holds no record.
pub(crate) fn status(dir: &Path) -> Option<serde_json::Value> {
    let output = grundy(["status", "--json"]).arg(dir).output().unwrap();
    match output.status.code() {
        Some(0) => Some(serde_json::from_slice(&output.stdout).unwrap()),
        _ => None,
    }
}

/// Number of committed values, as `grundy status` reports it.
pub(crate) fn count(dir: &Path) -> u64 {
    status(dir).map_or(0, |status| status["count"].as_u64().unwrap())
}

/// Names of the kernels that this machine supports, as `grundy cpu` lists them.
pub(crate) fn kernels() -> Vec<String> {
    let cpu = grundy(["cpu", "--json"]).output().unwrap();
    let cpu: serde_json::Value = serde_json::from_slice(&cpu.stdout).unwrap();
    cpu["kernels"].as_array().unwrap().iter().map(|kernel| kernel.as_str().unwrap().to_owned()).collect()
}

/// Files that hold values.
pub(crate) const DATA: [&str; 2] = ["values.npy", "escapes.npy"];

/// Checks that two runs have equal tables, digests and statistics.
pub(crate) fn same_run(one: &Path, other: &Path) {
    for name in DATA {
        assert!(std::fs::read(one.join(name)).ok() == std::fs::read(other.join(name)).ok(), "{name} differs");
    }
    let (one, other) = (status(one).unwrap(), status(other).unwrap());
    for key in ["game", "count", "width", "escapes", "digest", "rares", "last_rare", "max_value", "max_at"] {
        assert_eq!(one[key], other[key], "{key}");
    }
}

/// Starts a process with stdout and stderr piped.
pub(crate) fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Polls a condition every 20 ms; panics after a minute.
pub(crate) fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !happened() {
        assert!(begun.elapsed() < Duration::from_secs(60), "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether this process inherited the signal as ignored; its children then ignore it too.
pub(crate) fn is_ignored(signal: rustix::process::Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).map_or("0", str::trim);
    u64::from_str_radix(mask, 16).unwrap() >> (signal.as_raw() - 1) & 1 == 1
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The text of a file of `data/`, without its comment lines.
pub(crate) fn data(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name);
    let all = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    all.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
}

/// Whether a command refused a directory that holds no run or does not exist.
pub(crate) fn says_no_run(output: &Output) -> bool {
    let stderr = text(&output.stderr);
    stderr.contains("no run here") || stderr.contains("no such file or directory")
}

//! What several of the test files share.

#![allow(dead_code, reason = "each test file uses a part of it")]

mod hazard;

use grundy::engine::{Observer, Progress};
use grundy::rule::Rule;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output};

#[allow(unused_imports, reason = "each test file uses a part of it")]
pub(crate) use hazard::{Random, Tally, cases};

/// Nobody who watches a run of the library.
pub(crate) struct Silent;

impl Observer for Silent {
    fn started(&mut self, _: &Rule, _: u64, _: Option<u64>) {}
    fn rehashed(&mut self, _: u64, _: u64) {}
    fn advanced(&mut self, _: &Progress) {}
    fn note(&mut self, _: &str) {}
}

/// The program under test, with an example's arguments.
pub(crate) fn grundy<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_grundy"));
    command.args(arguments);
    command
}

/// `grundy run GAME --dir DIR` with more arguments, to its end.
pub(crate) fn run(game: &str, dir: &Path, more: &[&str]) -> Output {
    grundy(["run", game, "--dir"]).arg(dir).args(more).output().unwrap()
}

/// Runs to the end and succeeds.
pub(crate) fn run_well(game: &str, dir: &Path, more: &[&str]) -> Output {
    let output = run(game, dir, more);
    assert_eq!(output.status.code(), Some(0), "{game} {more:?}: {}", text(&output.stderr));
    output
}

/// `grundy status DIR --json`; `None` while the directory holds no record.
pub(crate) fn status(dir: &Path) -> Option<serde_json::Value> {
    let output = grundy(["status", "--json"]).arg(dir).output().unwrap();
    match output.status.code() {
        Some(0) => Some(serde_json::from_slice(&output.stdout).unwrap()),
        _ => None,
    }
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

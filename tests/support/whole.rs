//! An uninterrupted run, with which interrupted ones are compared.

use super::{count, grundy, run_well, start, text, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// A finished run, and the options that repeat it.
pub(crate) struct Whole {
    pub(crate) game: &'static str,
    pub(crate) width: &'static str,
    /// Number of its values.
    pub(crate) to: u64,
    dirs: TempDir,
}

impl Whole {
    /// As many values as this machine computes in `time`, so that every machine commits several times; at least a
    /// tenth of `most` and at most `most`.
    pub(crate) fn lasting(game: &'static str, width: &'static str, time: Duration, most: u64) -> Whole {
        let dirs = tempfile::tempdir().unwrap();
        let trial = dirs.path().join("trial");
        let mut whole = Whole { game, width, to: most, dirs };
        let mut child = start(&mut whole.command(&trial, 0));
        std::thread::sleep(time);
        // A signal before the program handles it would end it without a commit.
        wait_until("something is committed", || count(&trial) > 0 || child.try_wait().unwrap().is_some());
        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        let output = child.wait_with_output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 130)), "{game}: {}", text(&output.stderr));
        whole.to = count(&trial).clamp(most / 10, most);
        std::fs::remove_dir_all(&trial).unwrap();
        run_well(game, &whole.dir(), &["--to", &whole.to.to_string(), "--width", width]);
        whole
    }

    /// Directory of the finished run.
    pub(crate) fn dir(&self) -> PathBuf {
        self.dirs.path().join("whole")
    }

    /// The command that computes or resumes the same run in `dir`; 0 threads stands for the number of cores.
    pub(crate) fn command(&self, dir: &Path, threads: u64) -> Command {
        let mut command = grundy(["run", self.game, "--width", self.width, "--to", &self.to.to_string(), "--dir"]);
        command.arg(dir);
        if threads > 0 {
            command.args(["--threads", &threads.to_string()]);
        }
        command
    }
}

/// The count of the last whole record in the journal, read without a process, so that it can be polled.
pub(crate) fn recorded(dir: &Path) -> u64 {
    const RECORD: usize = 4096;
    let journal = std::fs::read(dir.join("journal.jsonl")).unwrap_or_default();
    let last = journal.chunks_exact(RECORD).next_back();
    let record = last.and_then(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
    record.map_or(0, |record| record["count"].as_u64().unwrap())
}

/// The length of a file, 0 if it does not exist.
pub(crate) fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

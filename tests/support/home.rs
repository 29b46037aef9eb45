//! A directory in which commands run.

use super::{grundy, text};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::TempDir;

/// Length of a record of a journal, in bytes.
const RECORD: usize = 4096;

/// A directory in which commands run, removed in the end.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    pub(crate) fn dir(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs a command, whose words have no spaces, to its end.
    pub(crate) fn command(&self, line: &str) -> Output {
        grundy(line.split_whitespace()).current_dir(self.0.path()).output().unwrap()
    }

    /// Exit status, stdout and stderr of a command.
    pub(crate) fn reply(&self, line: &str) -> (i32, String, String) {
        let output = self.command(line);
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    }

    /// Stdout of a command, which must succeed.
    pub(crate) fn well(&self, line: &str) -> String {
        let (status, stdout, stderr) = self.reply(line);
        assert_eq!(status, 0, "{line}: {stderr}");
        stdout
    }

    /// Stderr of a command that fails with these words, with nothing on stdout and no control characters.
    pub(crate) fn fails(&self, status: i32, line: &str, words: &[&str]) -> String {
        let (found, stdout, stderr) = self.reply(line);
        assert_eq!((found, stdout), (status, String::new()), "{line}: {stderr}");
        for word in words {
            assert!(stderr.contains(word), "{line} says nothing of {word}: {stderr}");
        }
        assert!(!stderr.contains(|c: char| c.is_control() && c != '\n') && !stderr.contains("panicked"), "{stderr:?}");
        stderr
    }

    /// The lines that a command prints; it must succeed.
    pub(crate) fn lines(&self, line: &str) -> Vec<String> {
        self.well(line).lines().map(str::to_owned).collect()
    }

    /// The JSON that a command prints; it must succeed.
    pub(crate) fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.well(line)).unwrap()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// The JSON in a file.
    pub(crate) fn object(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    /// Rewrites a journal so that its records from number `from` on state another machine, or none, with the hashes
    /// that `docs/FORMAT.md` describes.
    pub(crate) fn restate_machine(&self, run: &str, from: usize, machine: Option<&str>) {
        let path = self.path(run).join("journal.jsonl");
        let lines = std::fs::read_to_string(&path).unwrap();
        let mut journal = String::new();
        let mut previous = "0".repeat(64);
        for (i, line) in lines.lines().enumerate() {
            let mut json = line.trim_end().to_owned();
            if i >= from {
                let (before, rest) = json.split_once(",\"machine\":\"").unwrap();
                let (_, after) = rest.split_once('"').unwrap();
                let stated = machine.map_or(String::new(), |machine| format!(",\"machine\":\"{machine}\""));
                json = format!("{before}{stated}{after}");
            }
            let (before, _) = json.split_once("\"previous\":\"").unwrap();
            let before = format!("{before}\"previous\":\"{previous}\"");
            let sealed = |hash: &str| {
                let width = RECORD - 1;
                format!("{:<width$}\n", format!("{before},\"blake3\":\"{hash}\"}}"))
            };
            previous = blake3::hash(sealed(&" ".repeat(64)).as_bytes()).to_string();
            journal += &sealed(&previous);
        }
        std::fs::write(path, journal).unwrap();
    }
}

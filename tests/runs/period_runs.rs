//! `grundy period` in run directories: unverified values are never called proved, an interrupted search reports its
//! result and how to resume, and progress covers the whole search.

use crate::support::{Random, fails, grundy, is_ignored, run_well, start, stdout_of, text};
use grundy::kernel::Kernel;
use grundy::period::{Found, RunSearch, Status, Stopped};
use grundy::run::{Observer, Options, Progress};
use grundy::solver::Method;
use grundy::theory::rule::Rule;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Bytes before the first value of a table.
const HEADER: u64 = 4096;

/// Changes the byte of a file at offset `at`; returns the new byte.
fn alter(file: &Path, at: u64, random: &mut Random) -> u8 {
    let file = OpenOptions::new().read(true).write(true).open(file).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    byte[0] = random.other_byte(byte[0]);
    file.write_all_at(&byte, at).unwrap();
    byte[0]
}

#[test]
fn a_table_with_one_altered_byte_is_never_called_proved() {
    let mut random = Random::new("altered tables");
    let home = tempfile::tempdir().unwrap();
    let (dir, certificate) = (home.path().join("run"), home.path().join("c.json"));
    let (at, file) = (dir.to_str().unwrap(), certificate.to_str().unwrap());
    let count = 1_500_000;
    for n in [500, 0, count - 1, random.below(count), random.below(count)] {
        let _ = std::fs::remove_dir_all(&dir);
        run_well("kayles", &dir, &["--to", &count.to_string()]);
        stdout_of(&["-q", "period", at]);
        // A byte of 255 stands for a value in escapes.npy, which has none.
        let is_escape = alter(&dir.join("values.npy"), HEADER + n, &mut random) == 255;
        let words = [if is_escape { "escapes.npy" } else { "values.npy" }, "damage"];
        for more in [&[][..], &["--json"], &["--to", "200"]] {
            fails(3, &[&["-q", "period", at, "--certificate", file][..], more].concat(), &words);
            assert!(!certificate.exists(), "G({n}) is altered");
        }
        // As above, when the directory is named for a game and holds enough values to be searched at once.
        fails(3, &["-q", "period", "kayles", "--dir", at, "--certificate", file], &words);
        assert!(!certificate.exists(), "G({n}) is altered");
    }
}

#[test]
fn resumed_table_is_verified_before_its_period_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    run_well("kayles", &dir, &["--to", "100000"]);
    // The run recomputes the value when the search resumes it.
    alter(&dir.join("values.npy"), HEADER + 500, &mut Random::new("resumed tables"));
    let said = stdout_of(&["-q", "period", "kayles", "--dir", dir.to_str().unwrap()]);
    assert!(said.contains("proved: period 12, preperiod 71"), "{said}");
}

/// A power cut leaves a record that breaks off, or headers of an earlier commit. `run` resumes such a run, and so does
/// a search, also if the directory holds enough values to be searched at once.
#[test]
fn interrupted_run_is_resumed_before_it_is_searched() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    let (table, journal) = (dir.join("values.npy"), dir.join("journal.jsonl"));
    let mut header = vec![0; usize::try_from(HEADER).unwrap()];
    for to in ["1100000", "1200000", "1300000", "1400000"] {
        run_well("kayles", &dir, &["--to", to]);
        if to == "1100000" {
            std::fs::File::open(&table).unwrap().read_exact(&mut header).unwrap();
        }
    }
    let search = ["-q", "period", "kayles", "--dir", dir.to_str().unwrap()];
    OpenOptions::new().write(true).open(&table).unwrap().write_all_at(&header, 0).unwrap();
    let said = stdout_of(&search);
    assert!(said.contains("proved: period 12, preperiod 71"), "{said}");
    let end = std::fs::metadata(&journal).unwrap().len();
    OpenOptions::new().write(true).open(&journal).unwrap().write_all_at(b"{\"f", end).unwrap();
    let said = stdout_of(&search);
    assert!(said.contains("proved: period 12, preperiod 71"), "{said}");
}

/// Starts `grundy period` and interrupts it after some time: exit status, stdout, stderr.
fn interrupted(arguments: &[&str], signal: Signal, after: Duration) -> (Option<i32>, String, String) {
    let child = start(&mut grundy(arguments));
    std::thread::sleep(after);
    kill_process(Pid::from_child(&child), signal).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

const SOON: Duration = Duration::from_millis(1500);

#[test]
fn interrupted_search_in_memory_states_that_nothing_was_kept() {
    for signal in [Signal::TERM, Signal::HUP].into_iter().filter(|&signal| !is_ignored(signal)) {
        let (status, stdout, stderr) = interrupted(&["-q", "period", ".007", "--to", "2^27"], signal, SOON);
        assert_eq!(status, Some(130), "{stderr}");
        assert!(stdout.starts_with("0.007: stopped after ") && !stdout.contains("none"), "{stdout}");
        assert!(stdout.trim_end().ends_with(" of 134,217,728 values; no period so far"), "{stdout}");
        assert!(
            stderr.contains("nothing was kept") && stderr.contains("period .007 --to 134217728 --dir DIR"),
            "{stderr}"
        );
    }
    let (status, stdout, _) = interrupted(&["-q", "period", ".007", "--to", "2^27", "--json"], Signal::TERM, SOON);
    let said: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((status, &said["status"], &said["game"]), (Some(130), &"stopped".into(), &"0.007".into()), "{said}");
    assert!(said["period"].is_null() && said["checked_through"].as_u64().unwrap() < 1 << 27, "{said}");
}

#[test]
fn the_command_that_an_interrupted_search_prints_resumes_it() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("it's a run");
    let (at, file) = (dir.to_str().unwrap(), home.path().join("c.json"));
    let file = file.to_str().unwrap();
    let arguments = [
        "-q",
        "period",
        ".007",
        "--to",
        "2^27",
        "--dir",
        at,
        "--threads",
        "1",
        "--kernel",
        "scalar",
        "--certificate",
        file,
    ];
    let (status, stdout, stderr) = interrupted(&arguments, Signal::TERM, SOON);
    assert_eq!(status, Some(130), "{stderr}");
    assert!(stdout.contains("stopped after") && !Path::new(file).exists(), "{stdout}");
    let command = stderr.split("to resume: ").nth(1).unwrap().trim_end();
    for word in
        ["grundy period .007", "--to 134217728", r"it'\''s a run'", "--threads 1", "--kernel scalar", "--certificate"]
    {
        assert!(command.contains(word), "{command} says nothing of {word}");
    }
    let before = crate::support::count(&dir);
    assert!(before > 0);
    // The command as a shell parses it, with a smaller limit.
    let shorter = command.replace("134217728", &(before + 1000).to_string()).replace("--certificate", "--json #");
    let program = env!("CARGO_BIN_EXE_grundy");
    let shell = std::process::Command::new("sh")
        .args(["-c", &shorter.replacen("grundy", &format!("'{program}' -q"), 1)])
        .output()
        .unwrap();
    let said: serde_json::Value = serde_json::from_slice(&shell.stdout).unwrap_or_else(|e| panic!("{e}: {shorter}"));
    assert_eq!((&said["status"], &said["checked_through"]), (&"none".into(), &(before + 1000).into()), "{said}");
}

/// Sets the stop flag at an event, and records the events.
struct Stopper<'a> {
    stop: &'a AtomicBool,
    at: &'static str,
    started: Vec<Start>,
    counts: Vec<u64>,
}

impl Stopper<'_> {
    fn event(&self, name: &str) {
        if name == self.at {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

impl Observer for Stopper<'_> {
    fn started(&mut self, _: &Rule, from: u64, to: Option<u64>) {
        self.started.push((from, to));
    }
    fn rehashed(&mut self, _: u64, _: u64) {
        self.event("rehashed");
    }
    fn advanced(&mut self, progress: &Progress) {
        self.counts.push(progress.count);
    }
    fn recomputed(&mut self, _: u64, _: u64) {
        self.event("recomputed");
    }
    fn note(&mut self, _: &str) {}
}

/// Where a run started, and its announced end.
type Start = (u64, Option<u64>);

/// A search in a directory that is stopped at an event of the observer: finding, starts, counts.
fn stopped_at(event: &'static str, game: &str, dir: &Path, to: u64) -> (Found, Vec<Start>, Vec<u64>) {
    let stop = AtomicBool::new(false);
    let mut observer = Stopper { stop: &stop, at: event, started: Vec::new(), counts: Vec::new() };
    let method = Method::Sparse(Kernel::best());
    let options = Options { to: Some(to), threads: 2, method, width: None, keep: None, rollback: false };
    let rule = game.parse().unwrap();
    let search = RunSearch { rule: &rule, dir, options: &options, certify: true };
    let found = search.compute_until_proved(&mut observer, &stop).unwrap();
    let Stopper { started, counts, .. } = observer;
    (found, started, counts)
}

#[test]
fn a_stop_while_values_are_verified_leaves_them_unsearched() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    for count in ["100000", "1500000"] {
        run_well("kayles", &dir, &["--to", count]);
        // The run verifies fewer values than the search begins with; the search verifies more.
        let (found, ..) = stopped_at("rehashed", "kayles", &dir, 1 << 24);
        assert!(matches!(found, Found::Unverified { of, .. } if of.to_string() == count), "{found:?}");
        let (found, ..) = stopped_at("never", "kayles", &dir, 1 << 24);
        assert!(
            matches!(found, Found::Searched { ref finding, stopped: None, .. } if finding.status() == Status::Proved)
        );
    }
}

#[test]
fn a_stop_while_the_preperiod_is_computed_leaves_it_bounded() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    run_well("kayles", &dir, &["--to", "110000000", "--keep", "1000000"]);
    let (found, ..) = stopped_at("recomputed", "kayles", &dir, 1 << 27);
    let Found::Searched { finding, stopped, .. } = found else { panic!("{found:?}") };
    let repeat = finding.repeat.as_ref().unwrap();
    assert_eq!((finding.status(), stopped, repeat.period), (Status::Proved, Some(Stopped::Preperiod), 12));
    assert!(!repeat.exact && repeat.preperiod > 1 << 26, "{repeat:?}");
}

#[test]
fn progress_counts_to_the_whole_search_and_never_backwards() {
    let home = tempfile::tempdir().unwrap();
    let whole = (1 << 23) + 12_345;
    let (found, started, counts) = stopped_at("never", "grundy", &home.path().join("run"), whole);
    assert!(matches!(found, Found::Searched { ref finding, stopped: None, .. } if finding.count == whole), "{found:?}");
    // Four runs, to 2^20, 2^21, 2^22 and 2^23, and a last one.
    assert!(!started.is_empty() && started.iter().all(|&(_, to)| to == Some(whole)), "{started:?}");
    assert!(counts.is_sorted() && counts.last() == Some(&whole), "{counts:?}");
}

#[test]
fn log_states_at_once_the_game_and_the_limit() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    // Without --dir, the first line says that the values are not kept.
    for (more, lines) in [(&[][..], 2), (&["--dir", dir.to_str().unwrap()], 1)] {
        let mut child = start(&mut grundy([&["period", ".777", "--to", "2^30"][..], more].concat()));
        let mut log = child.stderr.take().unwrap();
        let mut first = Vec::new();
        let mut byte = [0];
        while first.iter().filter(|&&byte| byte == b'\n').count() < lines && log.read(&mut byte).unwrap() == 1 {
            first.push(byte[0]);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let first = text(&first);
        assert!(first.contains("period 0.777: starting ") && first.contains(": 1,073,741,824 values ("), "{first}");
    }
}

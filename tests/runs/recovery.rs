//! Recovery of damaged or incomplete run directories, and what the format promises to readers of the bare files.
//!
//! Each damage is first refused, with advice. The test follows the advice, and the run ends with the correct values.
//! Extend this file for advice and rollback, and `damage.rs` for damage that must be detected.

use crate::support::whole::{length, recorded};
use crate::support::{count, grundy, run, run_well, same_run, start, status, text, wait_until};
use grundy::checkpoint::journal::RECORD;
use grundy::kernel::Kernel;
use grundy::run::{Options, Run};
use grundy::solver::Method;
use grundy::table::HEADER;
use grundy::theory::definition;
use grundy::theory::rule::Rule;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs::OpenOptions;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Number of values of the runs here. Below it, 0.6 has 382 values above 255.
const COUNT: &str = "20000";

/// A run of `game` to [`COUNT`] that was stopped twice, and an uninterrupted one to compare with.
struct Pair {
    parent: TempDir,
    game: &'static str,
}

impl Pair {
    fn new(game: &'static str) -> Pair {
        let pair = Pair { parent: tempfile::tempdir().unwrap(), game };
        for to in ["2000", "12000", COUNT] {
            run_well(game, &pair.dir(), &["--to", to, "--width", "u8"]);
        }
        run_well(game, &pair.whole(), &["--to", COUNT, "--width", "u8"]);
        pair
    }

    fn dir(&self) -> PathBuf {
        self.parent.path().join("run")
    }

    fn whole(&self) -> PathBuf {
        self.parent.path().join("whole")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    /// Checks that the run is refused with this exit status, and that the message advises `--rollback`.
    fn is_refused(&self, expected: i32) {
        let output = run(self.game, &self.dir(), &["--to", COUNT]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(expected), "{stderr}");
        assert!(stderr.contains("--rollback") && !stderr.contains("panicked"), "{stderr}");
    }

    /// Checks that with `--rollback` and `more` the run goes back to `back` values, and then ends with the correct
    /// ones.
    fn rolls_back_to(&self, back: u64, more: &[&str]) -> Output {
        std::fs::write(self.file("waypoint-4294967296.bin"), "").unwrap();
        let output = run(self.game, &self.dir(), &[&["--to", "1", "--rollback"], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(count(&self.dir()), back, "{}", text(&output.stderr));
        assert!(!self.file("waypoint-4294967296.bin").exists(), "the values before a waypoint are gone");
        self.ends_right();
        output
    }

    fn ends_right(&self) {
        run_well(self.game, &self.dir(), &["--to", COUNT]);
        same_run(&self.dir(), &self.whole());
        let verified = grundy(["verify"]).arg(self.dir()).output().unwrap();
        assert_eq!(verified.status.code(), Some(0), "{}", text(&verified.stderr));
    }
}

fn records(dir: &Path) -> Vec<serde_json::Value> {
    let journal = std::fs::read(dir.join("journal.jsonl")).unwrap();
    journal.chunks(RECORD).map(|line| serde_json::from_slice(line).unwrap()).collect()
}

fn set_length(path: &Path, length: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(length).unwrap();
}

fn flip(path: &Path, at: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

/// A reader that maps the bare file reads 0 exactly where G(n) is 0. In 0.64, the value 256 has a low byte of 0.
#[test]
fn the_bare_table_has_no_false_zero_and_saturates_at_255() {
    for (game, to) in [("0.64", 18_000), ("0.6", 20_000)] {
        let values = definition::values(&game.parse::<Rule>().unwrap(), to).unwrap();
        assert!(values.iter().any(|&v| v > 255 && (game == "0.6" || v == 256)), "{game} passes a byte");
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("run");
        run_well(game, &dir, &["--to", &to.to_string(), "--width", "u8"]);
        let bytes = std::fs::read(dir.join("values.npy")).unwrap();
        for (n, (&v, &byte)) in values.iter().zip(&bytes[4096..]).enumerate() {
            assert_eq!(u16::from(byte), v.min(255), "{game}: G({n}) = {v}");
        }
    }
}

#[test]
fn every_record_states_time_program_machine_and_seconds() {
    let pair = Pair::new("kayles");
    let records = records(&pair.dir());
    let mut before = (String::new(), 0);
    for record in &records {
        assert_eq!(record["format"], 2);
        assert!(record["suspect"].is_null(), "{record}");
        let program = record["program"].as_str().unwrap();
        assert!(program.starts_with(concat!("grundy ", env!("CARGO_PKG_VERSION"))), "{program}");
        assert!(record["machine"].as_str().unwrap().starts_with(std::env::consts::ARCH), "{record}");
        let time = record["time"].as_str().unwrap();
        let shape: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert_eq!(shape, "0000-00-00T00:00:00Z");
        let now = (time.to_owned(), record["seconds"].as_u64().unwrap());
        assert!(now.0 >= before.0 && now.1 >= before.1, "{before:?}, then {now:?}");
        before = now;
    }
    let status = status(&pair.dir()).unwrap();
    assert_eq!((&status["time"], &status["seconds"]), (&before.0.into(), &before.1.into()));
}

#[test]
fn a_run_stopped_before_its_width_is_decided_leaves_no_directory() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    let method = Method::Sparse(Kernel::best());
    let options = Options { to: Some(200_000), threads: 1, method, width: None, keep: None, rollback: false };
    let rule = ".6".parse().unwrap();
    let outcome = Run::builder(&rule, &dir).options(options).stop(&AtomicBool::new(true)).run().unwrap();
    assert!(outcome.stopped && outcome.computed == 0, "{outcome:?}");
    assert!(!dir.exists(), "nothing is decided, and nothing is left");
    run_well(".6", &dir, &["--to", "200000"]);
    assert_eq!(status(&dir).unwrap()["width"], "u16", "as without the stop: 8 % of the values of .6 exceed a byte");
}

/// Of the first 1000 values of .6 none exceeds a byte; of the first 65536 many do.
#[test]
fn a_short_run_decides_its_width_by_the_whole_sample() {
    let values = definition::values(&".6".parse::<Rule>().unwrap(), 1000).unwrap();
    assert!(values.iter().all(|&v| v < 255));
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    run_well(".6", &dir, &["--to", "1000"]);
    let status = status(&dir).unwrap();
    assert_eq!((&status["width"], &status["count"]), (&"u16".into(), &1000.into()));
    let printed = grundy(["values"]).arg(&dir).arg("0..1000").output().unwrap();
    let expected: String = values.iter().enumerate().map(|(n, v)| format!("{n} {v}\n")).collect();
    assert_eq!(text(&printed.stdout), expected);
}

#[test]
fn missing_escapes_file_without_entries_is_created_again() {
    let pair = Pair::new("kayles");
    std::fs::remove_file(pair.file("escapes.npy")).unwrap();
    assert_eq!(grundy(["verify"]).arg(pair.dir()).output().unwrap().status.code(), Some(3), "verify only reads");
    let output = run_well("kayles", &pair.dir(), &["--to", COUNT]);
    assert!(text(&output.stderr).contains("escapes.npy is missing"), "{}", text(&output.stderr));
    pair.ends_right();
}

#[test]
fn missing_escapes_file_with_entries_is_repaired_by_rollback() {
    let pair = Pair::new("0.6");
    assert!(status(&pair.dir()).unwrap()["escapes"].as_u64().unwrap() > 0, "0.6 has escapes");
    std::fs::remove_file(pair.file("escapes.npy")).unwrap();
    pair.is_refused(3);
    let without = records(&pair.dir()).iter().filter(|r| r["escapes"] == 0).map(|r| r["count"].as_u64().unwrap()).max();
    pair.rolls_back_to(without.unwrap(), &[]);
}

/// A value that is restored, a table that is too short, and a damaged journal, without which a rollback restores
/// nothing.
#[test]
fn values_restored_before_a_rollback_are_counted_in_its_record() {
    let pair = Pair::new("0.6");
    flip(&pair.file("values.npy"), HEADER + 1000);
    set_length(&pair.file("values.npy"), std::fs::metadata(pair.file("values.npy")).unwrap().len() - 1);
    let journal = OpenOptions::new().append(true).open(pair.file("journal.jsonl")).unwrap();
    journal.write_all_at(&[b'x'; 2 * RECORD], std::fs::metadata(pair.file("journal.jsonl")).unwrap().len()).unwrap();
    let output = run(pair.game, &pair.dir(), &["--to", "1", "--rollback"]);
    let stderr = text(&output.stderr);
    assert!(stderr.contains("recomputed and restored"), "{stderr}");
    let records = records(&pair.dir());
    let last = records.iter().rfind(|record| record["event"] == "rollback").unwrap();
    assert_eq!((&last["checks"]["repaired"], &last["errors"]), (&1.into(), &3.into()), "{stderr}");
    pair.ends_right();
}

#[test]
fn missing_value_table_is_repaired_by_rollback_to_0() {
    for game in ["kayles", "0.6"] {
        let pair = Pair::new(game);
        std::fs::remove_file(pair.file("values.npy")).unwrap();
        pair.is_refused(3);
        assert!(!pair.file("values.npy").exists(), "a refused run makes nothing");
        // The run returns to 0 values, and computes up to the requested count.
        pair.rolls_back_to(1, &[]);
    }
}

#[test]
fn missing_tables_are_repaired_by_rollback_to_0() {
    let pair = Pair::new("0.6");
    for name in ["values.npy", "escapes.npy"] {
        std::fs::remove_file(pair.file(name)).unwrap();
    }
    pair.is_refused(3);
    pair.rolls_back_to(1, &[]);
}

#[test]
fn a_missing_journal_is_refused_with_advice_that_works() {
    let pair = Pair::new("kayles");
    std::fs::remove_file(pair.file("journal.jsonl")).unwrap();
    pair.is_refused(1);
    assert!(!pair.file("journal.jsonl").exists(), "a refused run makes nothing");
    // A file that 'grundy compare --record' wrote.
    std::fs::write(pair.file("confirmed.json"), "[]").unwrap();
    let output = run("kayles", &pair.dir(), &["--to", COUNT, "--rollback", "--width", "u8"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    pair.ends_right();
}

/// The advice is never the command that was refused.
#[test]
fn a_refused_rollback_never_advises_rollback() {
    let pair = Pair::new("kayles");
    std::fs::remove_file(pair.file("journal.jsonl")).unwrap();
    let output = grundy(["run", "--to", COUNT, "--rollback", "--dir"]).arg(pair.dir()).output().unwrap();
    // Nothing states the game of the tables. It need not be the default game.
    let stderr = text(&output.stderr);
    assert!(output.status.code() == Some(1) && stderr.contains("'grundy run GAME --dir"), "{stderr}");
    assert!(!pair.file("journal.jsonl").exists(), "a refused run makes nothing");
    let pair = Pair::new("kayles");
    flip(&pair.file("journal.jsonl"), 100);
    let output = grundy(["run", "--to", COUNT, "--rollback", "--dir"]).arg(pair.dir()).output().unwrap();
    let stderr = text(&output.stderr);
    // A record after the damage names the game.
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    set_length(&pair.file("journal.jsonl"), RECORD as u64);
    flip(&pair.file("journal.jsonl"), 100);
    let output = grundy(["run", "--to", COUNT, "--rollback", "--dir"]).arg(pair.dir()).output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "no record names the game: {stderr}");
    assert!(stderr.contains("name it: 'grundy run GAME"), "{stderr}");
}

/// The journal from the damage on is kept unchanged in another file. The records after the damage are kept, and the run
/// goes back no further than the table requires.
#[test]
fn damaged_record_within_the_journal_is_repaired_by_rollback() {
    let pair = Pair::new("0.6");
    let journal = std::fs::read(pair.file("journal.jsonl")).unwrap();
    let records = records(&pair.dir());
    let all = records.last().unwrap()["count"].as_u64().unwrap();
    for (damaged, agrees) in (1..records.len() - 1).flat_map(|damaged| [(damaged, true), (damaged, false)]) {
        let pair = Pair::new("0.6");
        std::fs::write(pair.file("journal.jsonl"), &journal).unwrap();
        for name in ["values.npy", "escapes.npy"] {
            std::fs::copy(pair.whole().join(name), pair.file(name)).unwrap();
        }
        let offset = damaged * RECORD;
        flip(&pair.file("journal.jsonl"), offset as u64 + 100);
        if !agrees {
            set_length(&pair.file("values.npy"), 4096 + all - 1);
        }
        let altered = std::fs::read(pair.file("journal.jsonl")).unwrap();
        pair.is_refused(3);
        for command in ["status", "verify"] {
            let output = grundy([command]).arg(pair.dir()).output().unwrap();
            assert_eq!(output.status.code(), Some(3), "{command}");
            assert!(text(&output.stderr).contains("--rollback"), "{command}: {}", text(&output.stderr));
        }
        assert!(std::fs::read(pair.file("journal.jsonl")).unwrap() == altered, "untouched");
        let count = |record: &serde_json::Value| record["count"].as_u64().unwrap();
        let others = || records.iter().enumerate().filter(|(at, _)| *at != damaged).map(|(_, record)| count(record));
        let back = others().filter(|&count| count < all).max().unwrap().max(1);
        let output = pair.rolls_back_to(if agrees { all } else { back }, &[]);
        assert!(text(&output.stderr).contains("the records after it are kept"), "{}", text(&output.stderr));
        let aside = format!("quarantine-journal-{offset}.bin");
        assert!(text(&output.stderr).contains(&aside), "{}", text(&output.stderr));
        assert!(std::fs::read(pair.file(&aside)).unwrap() == altered[offset..], "record {damaged}: the rest is kept");
        let now = self::records(&pair.dir());
        let (lost, kept) = (damaged + 1, records.len() - 1);
        assert_eq!((&now[kept]["event"], count(&now[kept])), (&json!("rollback"), if agrees { all } else { back }));
        assert_eq!(now[kept]["errors"], if agrees { 1 } else { 2 });
        // The first record after the damage also adds the values of the lost one.
        assert_eq!((&now[damaged]["kernel"], now[damaged].get("machine")), (&json!("unknown"), None));
        for (record, before) in now[lost..kept].iter().zip(&records[lost + 1..]) {
            for key in ["event", "count", "digest", "kernel", "machine", "program", "time", "seconds", "errors"] {
                assert_eq!(record[key], before[key], "{key}");
            }
        }
    }
}

#[test]
fn damaged_first_record_costs_no_values() {
    let pair = Pair::new("kayles");
    flip(&pair.file("journal.jsonl"), 100);
    let altered = std::fs::read(pair.file("journal.jsonl")).unwrap();
    pair.is_refused(3);
    let output = run("kayles", &pair.dir(), &["--to", "1", "--rollback"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(std::fs::read(pair.file("quarantine-journal-0.bin")).unwrap() == altered, "all of it is kept");
    assert_eq!(count(&pair.dir()), 20_000);
    let records = records(&pair.dir());
    assert_eq!((&records[0]["sequence"], &records[0]["kernel"]), (&json!(0), &json!("unknown")));
    let last = records.last().unwrap();
    assert_eq!((&last["errors"], &last["event"]), (&json!(1), &json!("close")));
    assert!(last["machine"].is_string() && last["kernel"] != "unknown", "{last}");
    // Two kernels check the values whose kernel is not known.
    let output = grundy(["verify", "--level", "recompute", "--json"]).arg(pair.dir()).output().unwrap();
    let kernel = serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["kernel"].clone();
    assert_eq!(kernel.as_str().unwrap().contains(", "), Kernel::available().len() > 1, "{kernel}");
    pair.ends_right();
}

/// If the table disagrees with the records after a damaged first one, it is repaired by the first of them.
#[test]
fn damaged_first_record_and_value_are_both_repaired() {
    let pair = Pair::new("kayles");
    flip(&pair.file("journal.jsonl"), 100);
    flip(&pair.file("values.npy"), HEADER + 500);
    let output = run("kayles", &pair.dir(), &["--to", "1", "--rollback"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!((count(&pair.dir()), status(&pair.dir()).unwrap()["errors"].as_u64()), (20_000, Some(2)));
    pair.ends_right();
}

/// A hole after the journal is reported at once, without reading it, and set aside as a hole.
#[test]
fn long_hole_after_the_journal_is_reported_at_once_and_repaired() {
    const HOLE: u64 = 8 << 30;
    let pair = Pair::new("kayles");
    let journal = pair.file("journal.jsonl");
    let good = length(&journal);
    set_length(&journal, good + HOLE);
    for command in ["status", "verify"] {
        let begun = Instant::now();
        let output = grundy([command]).arg(pair.dir()).output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{command}: {stderr}");
        assert!(stderr.contains(&HOLE.to_string()), "{command}: {stderr}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{command} took {:?}", begun.elapsed());
    }
    pair.is_refused(3);
    let output = run("kayles", &pair.dir(), &["--to", COUNT, "--rollback"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let aside = std::fs::metadata(pair.file(&format!("quarantine-journal-{good}.bin"))).unwrap();
    assert_eq!(aside.len(), HOLE);
    assert!(aside.blocks() * 512 < 1 << 20, "the hole stays a hole");
    pair.ends_right();
}

/// Bytes after the last record are dropped as a torn tail up to 1 MiB, and are damage beyond.
#[test]
fn torn_tail_longer_than_1_mib_is_damage() {
    for (tail, is_torn) in [(1 << 20, true), ((1 << 20) + 1, false)] {
        let pair = Pair::new("kayles");
        let journal = pair.file("journal.jsonl");
        set_length(&journal, length(&journal) + tail);
        let output = run("kayles", &pair.dir(), &["--to", COUNT]);
        assert_eq!(output.status.code() == Some(0), is_torn, "{tail}: {}", text(&output.stderr));
    }
}

/// The run notices before its next record that its journal was truncated, extended or altered.
#[test]
fn journal_altered_under_a_run_gets_no_further_record() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 4] = [
        ("its path leads to another file now, or to none", |journal| std::fs::remove_file(journal).unwrap()),
        ("it has 4096 bytes", |journal| set_length(journal, RECORD as u64)),
        ("it has ", |journal| set_length(journal, length(journal) + 7)),
        ("its last record was altered", |journal| flip(journal, length(journal) - 200)),
    ];
    for (what, harm) in harms {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("run");
        let journal = dir.join("journal.jsonl");
        let holder = start(grundy(["run", "0.106", "--threads", "1", "--keep", "2^26", "--dir"]).arg(&dir));
        wait_until("two commits", || length(&journal) >= 3 * RECORD as u64);
        harm(&journal);
        let length_now = || std::fs::metadata(&journal).map_or(0, |file| file.len());
        let after = length_now();
        let begun = Instant::now();
        let output = holder.wait_with_output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{what}: {stderr}");
        assert!(stderr.contains(what) && stderr.contains("nothing more is written"), "{what}: {stderr}");
        assert!(begun.elapsed() < Duration::from_secs(60));
        // A commit that was being written at that moment may precede the refusal.
        assert!(length_now() <= after + RECORD as u64, "{what}");
    }
}

/// The run notices before its next record that a table was truncated: no record describes lost values.
#[test]
fn table_truncated_under_a_run_gets_no_further_record() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    let mut holder = start(grundy(["run", "0.106", "--threads", "1", "--keep", "2^26", "--dir"]).arg(&dir));
    wait_until("a commit", || recorded(&dir) > 0);
    // Repeatedly, because a commit that is being written may rewrite the header and make the file whole again.
    let escapes = dir.join("escapes.npy");
    while holder.try_wait().unwrap().is_none() {
        set_length(&escapes, 100);
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = holder.wait_with_output().unwrap();
    let stderr = text(&output.stderr);
    // Before a record, the commit finds the truncation; between a record and the map of the file, the map finds it.
    let expected = match output.status.code() {
        Some(1) => "truncated to 100 of 4096 bytes",
        Some(3) => "the file ends here",
        _ => panic!("{stderr}"),
    };
    assert!(stderr.contains("escapes.npy") && stderr.contains(expected), "{stderr}");
}

#[test]
fn status_compares_the_files_with_the_journal() {
    let pair = Pair::new("kayles");
    set_length(&pair.file("values.npy"), 5000);
    for json in [&[][..], &["--json"]] {
        let output = grundy(["status"]).arg(pair.dir()).args(json).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
        assert!(text(&output.stdout).replace(',', "").contains(COUNT), "what the journal says is shown");
        assert!(text(&output.stderr).contains("values.npy"), "{}", text(&output.stderr));
    }
}

#[test]
fn status_of_a_run_without_values_reports_it() {
    let pair = Pair::new("kayles");
    set_length(&pair.file("journal.jsonl"), RECORD as u64);
    let output = grundy(["status"]).arg(pair.dir()).output().unwrap();
    let stdout = text(&output.stdout);
    assert!(stdout.contains("0 (none is committed yet)") && !stdout.contains("G(0) to G(0)"), "{stdout}");
}

#[test]
fn run_is_not_created_among_foreign_files() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("papers");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("notes.txt"), "mine").unwrap();
    let output = run("kayles", &dir, &["--to", "100"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("notes.txt"), "{}", text(&output.stderr));
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1, "nothing was created");
    std::fs::rename(dir.join("notes.txt"), dir.join(".notes")).unwrap();
    let not_unicode = dir.join(std::ffi::OsStr::from_bytes(b"\xff.txt"));
    std::fs::write(&not_unicode, "mine").unwrap();
    assert_eq!(run("kayles", &dir, &["--to", "100"]).status.code(), Some(1), "a name that is not Unicode");
    std::fs::remove_file(not_unicode).unwrap();
    run_well("kayles", &dir, &["--to", "100"]);
}

/// A script that retries on EX_TEMPFAIL waits for the running process.
#[test]
fn a_directory_in_use_exits_with_75() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    let holder = start(grundy(["run", "0.106", "--threads", "1", "--keep", "2^26", "--dir"]).arg(&dir));
    wait_until("a commit", || recorded(&dir) > 0);
    let output = run("0.106", &dir, &["--to", "1e12"]);
    assert_eq!(output.status.code(), Some(75), "{}", text(&output.stderr));
    kill_process(Pid::from_child(&holder), Signal::TERM).unwrap();
    assert_eq!(holder.wait_with_output().unwrap().status.code(), Some(130));
}

fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let name = |entry: &std::fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut all: Vec<_> = entries.map(|entry| (name(&entry), std::fs::read(entry.path()).unwrap())).collect();
    all.sort();
    all
}

/// A rollback that is refused for another reason leaves the damaged journal unchanged.
#[test]
fn a_refused_rollback_changes_nothing() {
    for record in [0, 1, 3] {
        let pair = Pair::new("kayles");
        flip(&pair.file("journal.jsonl"), record * RECORD as u64 + 100);
        let before = files(&pair.dir());
        for refused in [&["officers"][..], &["kayles", "--to", "2^60"], &["kayles", "--keep", "5"]] {
            let output = grundy(["run"]).args(refused).args(["--rollback", "--dir"]).arg(pair.dir()).output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{refused:?}: {}", text(&output.stderr));
            assert!(files(&pair.dir()) == before, "record {record}, {refused:?}");
        }
    }
}

/// Tables whose journal has no good record are renamed, not removed.
#[test]
fn tables_without_a_good_record_are_set_aside() {
    let pair = Pair::new("kayles");
    for record in [0, 2] {
        flip(&pair.file("journal.jsonl"), record * RECORD as u64 + 100);
    }
    let values = std::fs::read(pair.file("values.npy")).unwrap();
    run_well("kayles", &pair.dir(), &["--to", COUNT, "--rollback", "--width", "u8"]);
    assert!(std::fs::read(pair.file("quarantine-values.npy")).unwrap() == values);
    pair.ends_right();
}

#[test]
fn files_set_aside_are_never_overwritten() {
    let pair = Pair::new("kayles");
    let mut kept = Vec::new();
    for name in ["quarantine-journal-12288.bin", "quarantine-journal-12288-2.bin"] {
        flip(&pair.file("journal.jsonl"), 3 * RECORD as u64 + 100);
        kept.push(std::fs::read(pair.file("journal.jsonl")).unwrap()[3 * RECORD..].to_vec());
        run_well("kayles", &pair.dir(), &["--to", COUNT, "--rollback"]);
        assert!(std::fs::read(pair.file(name)).unwrap() == *kept.last().unwrap(), "{name}");
    }
    assert!(std::fs::read(pair.file("quarantine-journal-12288.bin")).unwrap() == kept[0]);
    pair.ends_right();
}

/// Damage to the journal needs a rollback; a value that can be repaired is still repaired.
#[test]
fn a_rollback_of_the_journal_repairs_the_table() {
    let pair = Pair::new("kayles");
    flip(&pair.file("journal.jsonl"), 7 * RECORD as u64 + 100);
    flip(&pair.file("values.npy"), 4096 + 500);
    let output = run("kayles", &pair.dir(), &["--to", "1", "--rollback"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(count(&pair.dir()), 20_000, "the value is restored, and no other is given up");
    pair.ends_right();
}

/// The run of .163 uses a sparse space at 10,000 values, and gives it up before 22,000.
#[test]
fn a_rollback_states_the_space_of_the_values_that_remain() {
    let home = tempfile::tempdir().unwrap();
    let (dir, whole) = (home.path().join("run"), home.path().join("whole"));
    let space = |dir: &Path| {
        let status = status(dir).unwrap();
        ["count", "mask", "position", "rares", "last_rare"].map(|key| status[key].clone())
    };
    run_well("0.163", &whole, &["--to", "10000"]);
    run_well("0.163", &dir, &["--to", "10000", "--width", "u16"]);
    run_well("0.163", &dir, &["--to", "22000"]);
    assert_ne!(space(&dir)[1], space(&whole)[1]);
    flip(&dir.join("values.npy"), 4096 + 2 * 15_000);
    run_well("0.163", &dir, &["--to", "1", "--rollback"]);
    assert_eq!(space(&dir), space(&whole));
}

#[test]
fn damaged_header_is_refused_untouched_and_repairable_without_loss() {
    let pair = Pair::new("kayles");
    flip(&pair.file("values.npy"), 0);
    let before = files(&pair.dir());
    pair.is_refused(3);
    assert!(files(&pair.dir()) == before);
    run_well("kayles", &pair.dir(), &["--to", "1", "--rollback"]);
    assert_eq!(count(&pair.dir()).to_string(), COUNT);
    pair.ends_right();
}

/// A kill tears at most one record.
#[test]
fn two_altered_last_records_are_damage_and_not_a_torn_tail() {
    let pair = Pair::new("kayles");
    let end = length(&pair.file("journal.jsonl"));
    flip(&pair.file("journal.jsonl"), end - 200);
    run_well("kayles", &pair.dir(), &["--to", COUNT]);
    let pair = Pair::new("kayles");
    for record in [1, 2] {
        flip(&pair.file("journal.jsonl"), end - record * RECORD as u64 + 100);
    }
    pair.is_refused(3);
    let output = run("kayles", &pair.dir(), &["--to", COUNT, "--rollback"]);
    assert!(text(&output.stderr).contains("quarantine-journal-"), "{}", text(&output.stderr));
    pair.ends_right();
}

//! A run in several sessions, killed, stopped by signals, with torn and uncommitted tails: always the bytes of an
//! uninterrupted run.
//!
//! Extend this file for one way to interrupt a run, and `kill.rs` for kills at random moments.

use crate::support::{
    DATA, Random, count, grundy, is_ignored, kernels, run, run_well, same_run, start, status, text, wait_until,
};
use grundy::checkpoint::journal::{self, RECORD};
use grundy::error::Error;
use grundy::kernel::Kernel;
use grundy::run::{Options, Run, RunReader};
use grundy::solver::Method;
use grundy::storage::Dir;
use grundy::table::Width;
use grundy::theory::definition;
use grundy::theory::rule::{Leaves, Move, Rule};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

fn append(path: &Path, bytes: &[u8]) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

#[test]
fn resuming_with_other_threads_and_kernels_gives_the_same_bytes() {
    let random = &mut Random::new("pieces");
    let kernels = kernels();
    for (game, width, ends) in [
        ("0.6", "u8", &[1u64, 4095, 4097, 9000, 20_000][..]),
        ("0.6", "u16", &[5000, 20_000]),
        ("grundy", "u8", &[70_000, 250_000, 400_001]),
        ("kayles", "u16", &[10, 100_000, 200_003]),
        (".106", "auto", &[1103, 500_000, 1_500_000]),
        ("0.07", "auto", &[3000, 9000]),
        ("grundy:d=2", "u16", &[2, 6000, 50_000]),
    ] {
        let dirs = tempfile::tempdir().unwrap();
        let (whole, pieces) = (dirs.path().join("whole"), dirs.path().join("pieces"));
        let last = ends.last().unwrap().to_string();
        run_well(game, &whole, &["--to", &last, "--width", width]);
        for end in ends {
            let (threads, kernel) =
                (random.pick(&[1, 2, 3, 5, 8, 16]).to_string(), &kernels[random.below(kernels.len() as u64) as usize]);
            println!("{game} to {end}: {threads} threads, kernel {kernel}");
            run_well(
                game,
                &pieces,
                &["--to", &end.to_string(), "--width", width, "--threads", &threads, "--kernel", kernel],
            );
            assert_eq!(count(&pieces), *end);
        }
        same_run(&pieces, &whole);
    }
}

/// More threads than cores, so that blocks are finished in every order.
#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    for (game, to, has_escapes) in [("grundy", 300_000, false), ("0.6", 300_000, true), ("0.146", 60_000, true)] {
        let dirs = tempfile::tempdir().unwrap();
        let one = dirs.path().join("1");
        for threads in ["1", "2", "3", "8", "16", "64"] {
            let dir = dirs.path().join(threads);
            run_well(game, &dir, &["--to", &to.to_string(), "--width", "u8", "--threads", threads]);
            assert_eq!(count(&dir), to, "{game}, {threads} threads");
            same_run(&dir, &one);
        }
        let escapes = status(&one).unwrap()["escapes"].as_u64().unwrap();
        assert_eq!(escapes > 0, has_escapes, "{game}: {escapes} escapes");
    }
}

/// The formulas of the format, implemented a second time, on values of the definition.
#[test]
fn byte_table_with_escapes_equals_the_definition_and_its_digest() {
    let values = definition::values(&"0.6".parse::<Rule>().unwrap(), 20_000).unwrap();
    let large: Vec<(u64, u16)> = (0..).zip(values.iter().copied()).filter(|&(_, v)| v >= 255).collect();
    assert!(large.len() > 100, "the game has escapes");
    let dirs = tempfile::tempdir().unwrap();
    let dir = dirs.path().join("run");
    run_well("0.6", &dir, &["--to", "12000", "--width", "u8"]);
    run_well("0.6", &dir, &["--to", "20000"]);
    let file = |name: &str| std::fs::read(dir.join(name)).unwrap();
    assert!(file("values.npy")[4096..] == values.iter().map(|&v| v.min(255) as u8).collect::<Vec<_>>());
    let entries: Vec<u8> = large.iter().flat_map(|(n, v)| [&n.to_le_bytes()[..], &v.to_le_bytes()].concat()).collect();
    assert!(file("escapes.npy")[4096..] == entries);
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let digest = blake3::hash(&[[0; 32], *blake3::hash(&bytes).as_bytes()].concat());
    assert_eq!(status(&dir).unwrap()["digest"], digest.to_hex().as_str());
}

/// From n = 4501 on, every value below 8192 is an option. A few more positions suffice, and they are expensive.
#[test]
fn table_of_values_above_6000_equals_the_definition() {
    const TAKEN: u64 = 4500;
    let leap = (0..8192).map(|constant| Move { remove: TAKEN, constant, leaves: Leaves::One });
    let moves = "0.77".parse::<Rule>().unwrap().moves().iter().copied().chain(leap).collect();
    let rule = Rule::from_moves("leaping", moves).unwrap();
    let values = definition::values(&rule, TAKEN as usize + 65).unwrap();
    let large: Vec<(u64, u16)> = (0..).zip(values.iter().copied()).filter(|&(_, v)| v >= 255).collect();
    assert!(large.len() == 64 && large[0].1 > 6000);
    let entries: Vec<u8> = large.iter().flat_map(|(n, v)| [&n.to_le_bytes()[..], &v.to_le_bytes()].concat()).collect();
    for kernel in Kernel::available() {
        for width in [Width::U8, Width::U16] {
            let dirs = tempfile::tempdir().unwrap();
            let dir = dirs.path().join("run");
            let method = Method::Sparse(kernel);
            let to = Some(values.len() as u64);
            let options = Options { to, threads: 2, method, width: Some(width), keep: None, rollback: false };
            // The name of the rule is no game, so `Run::run` refuses it.
            assert!(matches!(Run::builder(&rule, &dir).run(), Err(Error::Rule(_))));
            Run::on(Some(&rule), &Dir::at(&dir)).options(options).run_in_pool().unwrap();
            let last = journal::read(&dir).unwrap().last;
            assert!(
                last.checks.get("witnessed") > Some(0),
                "{kernel}, {width:?}: the rule is not sparse, no kernel was used"
            );
            let file = |name: &str| std::fs::read(dir.join(name)).unwrap();
            let table: Vec<u8> = match width {
                Width::U8 => values.iter().map(|&v| v.min(255) as u8).collect(),
                Width::U16 => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            };
            assert!(file("values.npy")[4096..] == table, "{kernel}, {width:?}");
            if width == Width::U8 {
                assert!(file("escapes.npy")[4096..] == entries, "{kernel}");
            }
        }
    }
}

#[test]
fn kill_at_a_random_time_loses_nothing_committed() {
    let random = &mut Random::new("kill");
    for (game, width) in [("grundy", "u8"), ("kayles", "u16")] {
        let dirs = tempfile::tempdir().unwrap();
        let (killed, whole) = (dirs.path().join("killed"), dirs.path().join("whole"));
        let mut committed = 0;
        for round in 0..5 {
            let threads = random.pick(&["1", "2", "3", "8", "16"]);
            let delay = Duration::from_millis(random.pick(&[5, 300, 800, 1100]) + random.below(300));
            let mut child = start(grundy(["run", game, "--width", width, "--threads", threads, "--dir"]).arg(&killed));
            std::thread::sleep(delay);
            assert_eq!(child.try_wait().unwrap(), None, "round {round}: nothing ends this run but us");
            kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
            child.wait().unwrap();
            let now = count(&killed);
            println!("{game}, round {round}: killed after {delay:?}, {now} committed");
            assert!(now >= committed, "{committed} values were committed, now {now}");
            committed = now;
            if committed > 0 {
                // Every reader finds the committed values, whatever follows them in the files.
                assert_eq!(RunReader::open(&killed).unwrap().contents.last.count, committed);
                assert_eq!(grundy(["verify"]).arg(&killed).output().unwrap().status.code(), Some(0), "round {round}");
            }
        }
        let end = (committed + 10_000).to_string();
        run_well(game, &killed, &["--to", &end, "--width", width]);
        run_well(game, &whole, &["--to", &end, "--width", width]);
        same_run(&killed, &whole);
    }
}

#[test]
fn kill_before_the_first_commit_leaves_a_usable_directory() {
    let random = &mut Random::new("early kill");
    let dirs = tempfile::tempdir().unwrap();
    let whole = dirs.path().join("whole");
    run_well("0.106", &whole, &["--to", "5000"]);
    for round in 0..8 {
        let dir = dirs.path().join(format!("early{round}"));
        let mut child = start(grundy(["run", "0.106", "--dir"]).arg(&dir));
        std::thread::sleep(Duration::from_micros(random.below(40_000)));
        kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
        child.wait().unwrap();
        run_well("0.106", &dir, &["--to", "5000"]);
        same_run(&dir, &whole);
    }
}

/// The command that the program printed, with the program under test.
fn resume_command(stderr: &str) -> Command {
    let line =
        stderr.lines().find_map(|line| line.split_once("to resume: grundy ")).unwrap_or_else(|| panic!("{stderr}"));
    grundy(line.1.split_whitespace())
}

#[test]
fn int_term_and_hup_commit_and_exit_130_with_a_resume_command() {
    let dirs = tempfile::tempdir().unwrap();
    let dir = dirs.path().join("run");
    let mut command = grundy(["run", "grundy", "--threads", "2", "--dir"]);
    command.arg(&dir);
    let mut before = 0;
    // The program ignores a signal that it inherits as ignored: HUP under nohup, INT in the background of a script.
    let signals = [Signal::INT, Signal::TERM, Signal::HUP];
    for signal in signals.into_iter().filter(|&signal| !is_ignored(signal)) {
        let child = start(&mut command);
        wait_until("something new is committed", || count(&dir) > before);
        let committed = count(&dir);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{signal:?}: {stderr}");
        assert!(count(&dir) >= committed, "{signal:?}");
        assert_eq!(grundy(["verify"]).arg(&dir).output().unwrap().status.code(), Some(0), "{signal:?}");
        before = count(&dir);
        command = resume_command(&stderr);
    }
    let whole = dirs.path().join("whole");
    let end = (before + 1).to_string();
    run_well("grundy", &dir, &["--to", &end]);
    run_well("grundy", &whole, &["--to", &end]);
    same_run(&dir, &whole);
}

#[test]
fn the_resume_command_keeps_the_goal_and_a_directory_with_a_space() {
    let dirs = tempfile::tempdir().unwrap();
    let dir = dirs.path().join("a run's directory");
    let child = start(grundy(["run", "grundy", "--to", "1e8", "--dir"]).arg(&dir));
    wait_until("something is committed", || count(&dir) > 0);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "the run was done before the signal: {}", text(&output.stderr));
    let stderr = text(&output.stderr);
    let line = stderr.lines().find_map(|line| line.split_once("to resume: ")).unwrap().1;
    assert!(line.contains("--to 100000000"), "{line}");
    // The shell decides how the line is parsed.
    let shell = Command::new("sh").args(["-c", &format!("printf '%s\\n' {line}")]).output().unwrap();
    let words = text(&shell.stdout);
    assert!(words.lines().any(|word| Path::new(word) == dir), "{words}");
}

#[test]
fn torn_journal_tail_is_dropped_and_reported() {
    let random = &mut Random::new("torn");
    let dirs = tempfile::tempdir().unwrap();
    let (dir, whole) = (dirs.path().join("run"), dirs.path().join("whole"));
    run_well("0.6", &whole, &["--to", "9000"]);
    for torn in [1, 2000, RECORD - 1, RECORD, RECORD + 1, 2 * RECORD] {
        let _ = std::fs::remove_dir_all(&dir);
        run_well("0.6", &dir, &["--to", "5000"]);
        run_well("0.6", &dir, &["--to", "6000"]);
        let journal = std::fs::read(dir.join("journal.jsonl")).unwrap();
        // Start, commit and clean stop, twice; and one more commit for each that comes early on a busy machine.
        assert!(journal.len() >= 6 * RECORD && journal.len().is_multiple_of(RECORD), "{} bytes", journal.len());
        // A torn copy of a record, then what a file system may leave there: any byte but the newline that would make
        // the record whole, and zeros after it.
        let mut tail: Vec<u8> = journal[..torn.min(RECORD - 1)].to_vec();
        if torn >= RECORD {
            tail.push(random.other_byte(b'\n'));
        }
        tail.resize(torn, 0);
        append(&dir.join("journal.jsonl"), &tail);
        assert_eq!(count(&dir), 6000, "readers ignore a tail of {torn} bytes");
        let output = run_well("0.6", &dir, &["--to", "9000"]);
        assert!(text(&output.stderr).contains("dropped"), "a tail of {torn} bytes: {}", text(&output.stderr));
        same_run(&dir, &whole);
        let after = std::fs::read(dir.join("journal.jsonl")).unwrap();
        let more =
            after.strip_prefix(&*journal).unwrap_or_else(|| panic!("a tail of {torn} bytes: old records changed"));
        assert!(more.len() >= 3 * RECORD && more.len().is_multiple_of(RECORD), "a tail of {torn} bytes");
    }
}

/// A kill between writing values and their record leaves more bytes in the files than the journal describes.
#[test]
fn uncommitted_tail_of_the_tables_is_harmless() {
    let random = &mut Random::new("tail");
    let dirs = tempfile::tempdir().unwrap();
    let whole = dirs.path().join("whole");
    run_well("0.6", &whole, &["--to", "15000", "--width", "u8"]);
    for round in 0..6 {
        let dir = dirs.path().join(format!("run{round}"));
        run_well("0.6", &dir, &["--to", "12000", "--width", "u8"]);
        for name in DATA {
            let more: Vec<u8> = (0..random.below(9000)).map(|_| random.below(256) as u8).collect();
            append(&dir.join(name), &more);
        }
        let values = grundy(["values"]).arg(&dir).arg("11999").output().unwrap();
        assert_eq!(values.status.code(), Some(0), "{}", text(&values.stderr));
        let beyond = grundy(["values"]).arg(&dir).arg("12000").output().unwrap();
        assert_eq!(beyond.status.code(), Some(1), "what is not committed is not there");
        run_well("0.6", &dir, &["--to", "15000"]);
        same_run(&dir, &whole);
    }
}

/// After a kill between the record and the headers, the headers state less than the journal.
#[test]
fn headers_behind_the_journal_after_a_kill_are_accepted() {
    let dirs = tempfile::tempdir().unwrap();
    let whole = dirs.path().join("whole");
    run_well("0.6", &whole, &["--to", "15000", "--width", "u8"]);
    // On a busy machine the run may also commit after 700 ms, and the headers would be two commits behind; then try
    // again.
    let stopped_twice = (0..20).find_map(|i| {
        let dir = dirs.path().join(format!("run{i}"));
        run_well("0.6", &dir, &["--to", "9000", "--width", "u8"]);
        let headers = DATA.map(|name| std::fs::read(dir.join(name)).unwrap()[..4096].to_vec());
        run_well("0.6", &dir, &["--to", "12000"]);
        let records = std::fs::metadata(dir.join("journal.jsonl")).unwrap().len() / RECORD as u64;
        (records == 6).then_some((dir, headers))
    });
    let (dir, headers) = stopped_twice.expect("twice an open, a commit and a clean stop");
    for (name, header) in DATA.iter().zip(headers) {
        let mut file = std::fs::read(dir.join(name)).unwrap();
        file[..4096].copy_from_slice(&header);
        std::fs::write(dir.join(name), file).unwrap();
    }
    let journal = dir.join("journal.jsonl");
    let records = std::fs::read(&journal).unwrap();
    let verified = grundy(["verify"]).arg(&dir).output().unwrap();
    assert_eq!(verified.status.code(), Some(3), "after a clean stop it is damage");
    std::fs::write(&journal, &records[..records.len() - RECORD]).unwrap();
    let verified = grundy(["verify"]).arg(&dir).output().unwrap();
    assert_eq!(verified.status.code(), Some(0), "{}", text(&verified.stderr));
    run_well("0.6", &dir, &["--to", "15000"]);
    same_run(&dir, &whole);
}

#[test]
fn finished_run_reports_nothing_to_do_and_changes_nothing() {
    let dirs = tempfile::tempdir().unwrap();
    let dir = dirs.path().join("run");
    run_well("0.6", &dir, &["--to", "5000", "--width", "u8"]);
    let names = ["values.npy", "escapes.npy", "journal.jsonl"];
    let before = names.map(|name| std::fs::read(dir.join(name)).unwrap());
    for to in ["5000", "10", "1"] {
        let output = run_well("0.6", &dir, &["--to", to]);
        assert!(
            text(&output.stderr).contains("nothing to do: the run already has these values"),
            "{}",
            text(&output.stderr)
        );
    }
    assert!(before == names.map(|name| std::fs::read(dir.join(name)).unwrap()));
}

/// The definition uses no space, and leaves no trace of one.
#[test]
fn a_run_that_the_definition_began_continues_in_the_space_of_the_game() {
    let dirs = tempfile::tempdir().unwrap();
    let (dir, whole) = (dirs.path().join("run"), dirs.path().join("whole"));
    run_well("grundy", &whole, &["--to", "6000"]);
    run_well("grundy", &dir, &["--to", "5000", "--kernel", "definition"]);
    assert_eq!(status(&dir).unwrap()["mask"], 0);
    // The record of a process that computes nothing names its own kernel.
    run_well("grundy", &dir, &["--to", "1", "--keep", "1G"]);
    run_well("grundy", &dir, &["--to", "6000"]);
    assert_eq!(status(&dir).unwrap()["mask"], 0x1fe);
    assert_eq!(status(&dir).unwrap()["rares"], status(&whole).unwrap()["rares"]);
}

#[test]
fn an_existing_table_keeps_its_width() {
    let dirs = tempfile::tempdir().unwrap();
    let dir = dirs.path().join("run");
    run_well("kayles", &dir, &["--to", "5000", "--width", "u16"]);
    assert_eq!(run("kayles", &dir, &["--to", "6000", "--width", "u8"]).status.code(), Some(1));
    run_well("kayles", &dir, &["--to", "6000"]);
    assert_eq!(status(&dir).unwrap()["width"], "u16");
}

/// Values are computed while others are written: an error of writing must not be lost.
#[test]
fn failed_commit_during_computation_stops_the_run_without_loss() {
    let dirs = tempfile::tempdir().unwrap();
    let dir = dirs.path().join("run");
    // Files of at most 80000 blocks, 40 or 80 MB depending on the shell. The signal of the limit is ignored, so that
    // the write fails.
    let limited = "trap '' XFSZ; ulimit -f 80000; exec \"$0\" run .106 --to 1e9 --dir \"$1\"";
    let output = Command::new("sh").args(["-c", limited, env!("CARGO_BIN_EXE_grundy")]).arg(&dir).output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("values.npy") && !stderr.contains("panicked"), "{stderr}");
    let committed = count(&dir);
    assert!((1 << 24..100_000_000).contains(&committed), "{committed}");
    let verified = grundy(["verify"]).arg(&dir).output().unwrap();
    assert_eq!(verified.status.code(), Some(0), "{}", text(&verified.stderr));
    run_well(".106", &dir, &["--to", &(committed + 1).to_string()]);
    assert_eq!(count(&dir), committed + 1);
}

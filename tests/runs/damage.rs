//! Altered, truncated, missing, exchanged and foreign files: every command reports them, no reader returns their
//! values, and nothing overwrites them without an option.
//!
//! Extend this file for damage that must be detected, and `recovery.rs` for the advice that repairs it.

use crate::support::{DATA, Random, Tally, cases, grundy, run, status, text};
use grundy::checkpoint::journal::RECORD;
use grundy::error::Kind;
use grundy::kernel::Kernel;
use grundy::run::{self, Options, Run, RunPolicy, RunReader};
use grundy::solver::Method;
use grundy::storage::Dir;
use grundy::table::Width;
use grundy::theory::definition::Sequence;
use grundy::verify;
use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const FILES: [&str; 3] = ["values.npy", "escapes.npy", "journal.jsonl"];

/// 0.6 has 382 values above 255 below n = 20000. No single altered digit changes one of the counts here into a
/// different one.
const GAME: &str = "0.6";
const ENDS: [u64; 3] = [5600, 14_700, 20_000];

/// Each of the three ends is a run that opens, commits, and stops cleanly.
const RECORDS: usize = 9;

fn compute(dir: &Path, to: u64) {
    resumed(dir, to).unwrap();
}

/// `grundy run --to N` without a process.
fn resumed(dir: &Path, to: u64) -> grundy::Result<run::Outcome> {
    let method = Method::Sparse(Kernel::best());
    let options = Options { to: Some(to), threads: 1, method, width: Some(Width::U8), keep: None, rollback: false };
    Run::builder(&GAME.parse().unwrap(), dir).options(options).run()
}

/// The [`FILES`] of a new finished run of [`RECORDS`] records.
fn new_run() -> Vec<(&'static str, Vec<u8>)> {
    let read = |dir: &Path| FILES.map(|name| (name, std::fs::read(dir.join(name)).unwrap_or_default()));
    let dir = tempfile::tempdir().unwrap();
    let (rule, method) = (GAME.parse().unwrap(), Method::Sparse(Kernel::best()));
    for end in ENDS {
        // Commits at multiples of the last end only, so that the number of records does not depend on the clock.
        let policy = RunPolicy { commit_every: Some(ENDS[2]), repair: false, seed: Some(1) };
        let options =
            Options { to: Some(end), threads: 1, method, width: Some(Width::U8), keep: None, rollback: false };
        Run::on(Some(&rule), &Dir::at(dir.path())).options(options).policy(policy).run_in_pool().unwrap();
    }
    let files = read(dir.path());
    assert_eq!(files[2].1.len(), RECORDS * RECORD, "three times an opening, a commit and a clean stop");
    files.to_vec()
}

/// A copy of a finished run, which is created once for all tests.
fn finished() -> (TempDir, PathBuf) {
    static ONCE: std::sync::OnceLock<Vec<(&str, Vec<u8>)>> = std::sync::OnceLock::new();
    let files = ONCE.get_or_init(new_run);
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    std::fs::create_dir(&dir).unwrap();
    files.iter().for_each(|(name, bytes)| std::fs::write(dir.join(name), bytes).unwrap());
    (parent, dir)
}

fn contents(dir: &Path) -> [Option<Vec<u8>>; 3] {
    FILES.map(|name| std::fs::read(dir.join(name)).ok())
}

/// Runs `look` with one byte of a file altered, then puts the byte back.
fn altered<T>(path: &Path, at: usize, byte: u8, look: impl FnOnce() -> T) -> T {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut good = [0];
    file.read_exact_at(&mut good, at as u64).unwrap();
    file.write_all_at(&[byte], at as u64).unwrap();
    let seen = look();
    file.write_all_at(&good, at as u64).unwrap();
    seen
}

fn set_length(path: &Path, length: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(length).unwrap();
}

fn verified(dir: &Path) -> grundy::Result<verify::Report> {
    verify::digest(dir, None, |_, _| {})
}

/// Checks that `grundy run --to 20000` refuses a damaged directory as damage and changes nothing.
fn refused_untouched(dir: &Path, what: &str) -> String {
    let before = contents(dir);
    let mut stderr = String::new();
    for to in ["20000", "21000"] {
        let output = run(GAME, dir, &["--to", to]);
        stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{what}: {stderr}");
        assert!(stderr.contains("damage") && !stderr.contains("panicked"), "{what}: {stderr}");
        assert!(contents(dir) == before, "{what}: a refused run changes nothing");
    }
    assert_eq!(grundy(["verify"]).arg(dir).output().unwrap().status.code(), Some(3), "{what}: verify");
    stderr
}

/// Checks that with `--rollback` the run ends with the bytes of an undamaged one.
fn rolls_back(dir: &Path, good: &[Option<Vec<u8>>; 3], what: &str) {
    let output = run(GAME, dir, &["--to", "20000", "--rollback"]);
    assert_eq!(output.status.code(), Some(0), "{what}: {}", text(&output.stderr));
    let now = contents(dir);
    assert!(now[..2] == good[..2], "{what}: the bytes are right again");
    assert!(now[2].as_ref().unwrap().starts_with(good[2].as_ref().unwrap()), "{what}: the journal only grows");
    assert_eq!(verified(dir).unwrap().checked, 20_000, "{what}");
}

#[test]
fn undamaged_run_passes_verify() {
    let (_parent, dir) = finished();
    let report = verified(&dir).unwrap();
    assert_eq!((report.from, report.to, report.checked, report.records), (0, 20_000, 20_000, RECORDS as u64));
    assert!(status(&dir).unwrap()["escapes"].as_u64().unwrap() > 100);
}

#[test]
fn verify_finds_every_altered_byte() {
    let random = &mut Random::new("altered byte");
    let (_parent, dir) = finished();
    for name in FILES {
        let path = dir.join(name);
        let good = std::fs::read(&path).unwrap();
        let record = RECORD * random.below(RECORDS as u64) as usize;
        let whole = match name {
            "journal.jsonl" => record..record + RECORD,
            _ => 0..4096,
        };
        let elsewhere: Vec<usize> = (0..1500).map(|_| random.below(good.len() as u64) as usize).collect();
        let ends = [4096, good.len() - 1, good.len() - RECORD.min(good.len())];
        for at in whole.chain(elsewhere).chain(ends) {
            let byte = random.other_byte(good[at]);
            let seen = altered(&path, at, byte, || verified(&dir));
            let place = format!("{name}, byte {at}: {} -> {byte}", good[at]);
            match seen {
                Err(error) if error.kind() == Kind::Damage => {}
                other => panic!("{place}: {other:?}"),
            }
        }
        assert!(std::fs::read(&path).unwrap() == good);
    }
    verified(&dir).unwrap();
}

/// Flips each of these bits, one at a time; `verify` must report each.
fn flips(bits: &[(&str, usize)]) {
    let (_parent, dir) = finished();
    let good = FILES.map(|name| (name, std::fs::read(dir.join(name)).unwrap()));
    for &(name, bit) in bits {
        let (_, bytes) = good.iter().find(|(n, _)| *n == name).unwrap();
        let (at, byte) = (bit / 8, bytes[bit / 8] ^ (1 << (bit % 8)));
        match altered(&dir.join(name), at, byte, || verified(&dir)) {
            Err(error) if error.kind() == Kind::Damage => {}
            other => panic!("{name}, bit {} of byte {at}: {other:?}", bit % 8),
        }
    }
    verified(&dir).unwrap();
}

#[test]
fn verify_finds_every_flipped_bit() {
    let random = &mut Random::new("flipped bits");
    let tally = Tally::begin("flipped bits");
    let (_parent, dir) = finished();
    let lengths = FILES.map(|name| std::fs::metadata(dir.join(name)).unwrap().len());
    let record = 8 * RECORD * usize::try_from(random.below(RECORDS as u64)).unwrap();
    let mut bits: Vec<(&str, usize)> = (0..8 * 4096).map(|bit| ("values.npy", bit)).collect();
    bits.extend((record..record + 8 * RECORD).map(|bit| ("journal.jsonl", bit)));
    bits.retain(|_| random.tries(5));
    for i in 0..cases(5000, 1_000_000) {
        let file = usize::try_from(i % 3).unwrap();
        bits.push((FILES[file], usize::try_from(random.below(8 * lengths[file])).unwrap()));
    }
    let share = bits.len().div_ceil(std::thread::available_parallelism().map_or(1, usize::from));
    std::thread::scope(|scope| bits.chunks(share).for_each(|bits| drop(scope.spawn(|| flips(bits)))));
    tally.end(bits.len() as u64, "each reported: bits of a header and of a record, others in table, escapes, journal");
}

/// A kill after the first commit leaves a journal of two records.
#[test]
fn altered_byte_in_the_first_two_records_is_reported() {
    let random = &mut Random::new("first records");
    let dir = tempfile::tempdir().unwrap();
    compute(dir.path(), 3000);
    let path = dir.path().join("journal.jsonl");
    set_length(&path, 2 * RECORD as u64);
    let good = std::fs::read(&path).unwrap();
    for (at, &now) in good.iter().enumerate() {
        let byte = random.other_byte(now);
        assert!(altered(&path, at, byte, || verified(dir.path())).is_err(), "byte {at}: {now} -> {byte}");
    }
    verified(dir.path()).unwrap();
}

#[test]
fn verify_exits_3_and_names_file_and_place() {
    let random = &mut Random::new("exit status");
    let (_parent, dir) = finished();
    for (name, at) in
        [("values.npy", 60), ("values.npy", 4096 + 17), ("escapes.npy", 4096 + 25), ("journal.jsonl", 5000)]
    {
        let path = dir.join(name);
        let byte = random.other_byte(std::fs::read(&path).unwrap()[at]);
        let output = altered(&path, at, byte, || grundy(["verify"]).arg(&dir).output().unwrap());
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{name}, byte {at} -> {byte}: {stderr}");
        assert!(stderr.contains(name) || name == "escapes.npy", "{name}, byte {at}: {stderr}");
        assert!(stderr.contains("at byte"), "{stderr}");
    }
}

#[test]
fn resume_refuses_damage_unless_the_journal_can_prove_the_repair() {
    let random = &mut Random::new("resume");
    let places = [
        ("values.npy", 0, "magic"),
        ("values.npy", 62, "header"),
        ("values.npy", 3000, "padding of the header"),
        ("values.npy", 4096, "first value"),
        ("values.npy", 4096 + 5599, "last value of the first commit"),
        ("values.npy", 4096 + 5600, "first value of the second commit"),
        ("values.npy", 4096 + 19_999, "last value"),
        ("escapes.npy", 20, "header of the escapes"),
        ("escapes.npy", 4096, "heap of the first escape"),
        ("escapes.npy", 4096 + 9, "value of the first escape"),
    ];
    for (name, at, what) in places {
        let (_parent, dir) = finished();
        let good = contents(&dir);
        let path = dir.join(name);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[at] = random.other_byte(bytes[at]);
        if what == "header" {
            bytes[at] |= 0x80; // a digit would be another shape, see below
        }
        println!("{name}, byte {at} is now {}", bytes[at]);
        std::fs::write(&path, bytes).unwrap();
        if at >= 4096 {
            repairs(&dir, &good, name, what);
        } else {
            let stderr = refused_untouched(&dir, what);
            assert!(
                stderr.contains(&format!("byte {at}:")) || stderr.contains(&format!("byte {at} ")),
                "{what}: {stderr}"
            );
            rolls_back(&dir, &good, what);
        }
    }
}

/// The journal states how long the files are; a power cut between two header writes leaves any mixture of both.
#[test]
fn wrong_header_shape_is_reported_by_verify_and_corrected_by_run() {
    for (name, shape) in [("values.npy", "(29000,), }"), ("values.npy", "(2)0,0, }} "), ("escapes.npy", "(9,8,, }")] {
        let (_parent, dir) = finished();
        let good = contents(&dir);
        let mut bytes = std::fs::read(dir.join(name)).unwrap();
        let at = text(&bytes[..128]).find("'shape': (").unwrap();
        // A byte that is not UTF-8 takes three bytes in the text and one in the file.
        let at = at - text(&bytes[..128])[..at].matches('\u{fffd}').count() * 2 + "'shape': ".len();
        bytes[at..at + shape.len()].copy_from_slice(shape.as_bytes());
        std::fs::write(dir.join(name), bytes).unwrap();
        assert!(verified(&dir).is_err(), "{name}: {shape}");
        let output = run(GAME, &dir, &["--to", "20000"]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{name}: {shape}: {stderr}");
        let is_ahead = shape == "(29000,), }";
        assert_eq!(stderr.contains("the header states 29000 values"), is_ahead, "{name}: {shape}: {stderr}");
        assert!(contents(&dir)[..2] == good[..2], "{name}: {shape}");
        verified(&dir).unwrap();
    }
}

/// The run recomputes the altered values, finds that they agree with the journal, quarantines the damaged bytes, and
/// continues.
fn repairs(dir: &Path, good: &[Option<Vec<u8>>; 3], name: &str, what: &str) {
    assert_eq!(grundy(["verify"]).arg(dir).output().unwrap().status.code(), Some(3), "{what}: verify");
    let bad = std::fs::read(dir.join(name)).unwrap();
    let output = run(GAME, dir, &["--to", "20000"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{what}: {stderr}");
    assert!(stderr.contains("recomputed and restored") && stderr.contains("quarantine-"), "{what}: {stderr}");
    let now = contents(dir);
    assert!(now[..2] == good[..2], "{what}: the bytes are right again");
    assert!(now[2].as_ref().unwrap().starts_with(good[2].as_ref().unwrap()), "{what}: the journal only grows");
    assert_eq!(verified(dir).unwrap().checked, 20_000, "{what}");
    assert_eq!(status(dir).unwrap()["errors"], 1, "{what}");
    let aside = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let aside: Vec<PathBuf> = aside.filter(|path| path.to_str().unwrap().contains("quarantine-")).collect();
    assert_eq!(aside.len(), 1, "{what}: {aside:?}");
    let kept = std::fs::read(&aside[0]).unwrap();
    assert!(bad.windows(kept.len()).any(|bytes| bytes == kept), "{what}: what stood there is kept");
    assert!(good[..2].iter().flatten().all(|good| !good.windows(kept.len()).any(|bytes| bytes == kept)), "{what}");
}

#[test]
fn rollback_goes_to_the_last_good_record_and_records_it() {
    let (_parent, dir) = finished();
    let good = contents(&dir);
    let path = dir.join("values.npy");
    let mut bytes = good[0].clone().unwrap();
    bytes[4096 + 15_000] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    rolls_back(&dir, &good, "a value of the third commit");
    let journal = std::fs::read(dir.join("journal.jsonl")).unwrap();
    let records: Vec<serde_json::Value> =
        journal.chunks(RECORD).map(|line| serde_json::from_slice(line).unwrap()).collect();
    let counts: Vec<_> = records.iter().map(|r| (r["event"].as_str().unwrap(), r["count"].as_u64().unwrap())).collect();
    assert_eq!(
        counts,
        [
            ("open", 0),
            ("commit", 5600),
            ("close", 5600),
            ("open", 5600),
            ("commit", 14_700),
            ("close", 14_700),
            ("open", 14_700),
            ("commit", 20_000),
            ("close", 20_000),
            ("rollback", 14_700),
            ("commit", 20_000),
            ("close", 20_000)
        ]
    );
    assert_eq!(status(&dir).unwrap()["errors"], 1);
}

/// Reading beyond the end of a truncated mapped file ends the process with SIGBUS; here it would end the test.
#[test]
fn open_reader_survives_a_rollback_and_reports_it() {
    let (_parent, dir) = finished();
    let [_, at, end] = ENDS;
    let path = dir.join("values.npy");
    let length = std::fs::metadata(&path).unwrap().len();
    let view = RunReader::open(&dir).unwrap();
    let mut values = vec![0; 5000];
    view.read(end - 5000, &mut values).unwrap();
    let mut bytes = contents(&dir)[0].clone().unwrap();
    bytes[4096 + at as usize - 1] ^= 1;
    OpenOptions::new().write(true).open(&path).unwrap().write_all_at(&bytes, 0).unwrap();
    let output = run(GAME, &dir, &["--to", "1", "--rollback"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(status(&dir).unwrap()["count"], ENDS[0]);
    assert_eq!(verified(&dir).unwrap().checked, ENDS[0]);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), length, "readers may have mapped so much");
    let went_back = |read: grundy::Result<()>| matches!(read, Err(error) if error.to_string().contains("went back"));
    let mut again = vec![0; 5000];
    view.table.read(end - 5000, &mut again).unwrap();
    assert!(went_back(view.read(end - 5000, &mut again)) && went_back(view.read(0, &mut again)));
    // The file is then longer than what the reader has checked, but it is not known to be the same.
    compute(&dir, end + 1);
    assert!(went_back(view.read(0, &mut again)));
    assert_eq!(std::fs::metadata(&path).unwrap().len(), length + 1, "what it went back behind is passed");
    assert_eq!(verified(&dir).unwrap().checked, end + 1);
    // More bytes than were ever committed are still damage.
    set_length(&path, length + 2);
    assert_eq!(verified(&dir).unwrap_err().kind(), Kind::Damage);
}

/// One record is torn and zeros follow. Two records then replace them, so the journal is as long as before.
#[test]
fn open_reader_detects_a_rollback_with_an_equally_long_journal() {
    let (_parent, dir) = finished();
    let (journal, table) = (dir.join("journal.jsonl"), dir.join("values.npy"));
    let length = std::fs::metadata(&journal).unwrap().len();
    let alter = |path: &Path, at: u64| {
        let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 1], at).unwrap();
    };
    alter(&journal, length - 2 * RECORD as u64 + 2000);
    let file = OpenOptions::new().write(true).open(&journal).unwrap();
    file.write_all_at(&[0; RECORD], length - RECORD as u64).unwrap();
    alter(&table, 4096 + 10_000);
    let view = RunReader::open(&dir).unwrap();
    assert_eq!((view.len(), view.contents.torn), (ENDS[1], Some(length - 2 * RECORD as u64)));
    let mut value = [0];
    view.read(ENDS[1] - 1, &mut value).unwrap();
    let output = run(GAME, &dir, &["--to", "1", "--rollback"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(std::fs::metadata(&journal).unwrap().len(), length);
    let error = view.read(ENDS[1] - 1, &mut value).unwrap_err().to_string();
    assert!(error.contains("went back"), "{error}");
}

/// After a clean stop the files end where the journal states, so `verify` reports one more byte.
#[test]
fn bytes_appended_after_a_clean_stop_are_damage() {
    for name in FILES {
        let (_parent, dir) = finished();
        let mut bytes = std::fs::read(dir.join(name)).unwrap();
        bytes.push(0);
        std::fs::write(dir.join(name), bytes).unwrap();
        let seen = verified(&dir);
        assert!(matches!(&seen, Err(error) if error.kind() == Kind::Damage), "{name}: {seen:?}");
    }
}

#[test]
fn truncated_tables_are_damage_and_rollback_recomputes_them() {
    for (name, length) in [
        ("values.npy", 4096 + 19_999),
        ("values.npy", 4096 + 6000),
        ("values.npy", 4096 + 10),
        ("values.npy", 4096),
        ("escapes.npy", 4096 + 15),
        ("escapes.npy", 4096),
    ] {
        let (_parent, dir) = finished();
        let good = contents(&dir);
        set_length(&dir.join(name), length);
        let what = format!("{name} cut to {length}");
        refused_untouched(&dir, &what);
        let values = grundy(["values"]).arg(&dir).arg("0..10").output().unwrap();
        assert_eq!(values.status.code(), Some(3), "{what}: readers refuse too");
        rolls_back(&dir, &good, &what);
    }
}

/// All values that a reader returns; `None` if it refuses the run.
fn readable(dir: &Path) -> Option<Vec<u16>> {
    let view = RunReader::open(dir).ok()?;
    let mut values = vec![0; usize::try_from(view.len()).unwrap()];
    view.read(0, &mut values).unwrap();
    Some(values)
}

#[test]
fn tables_cut_at_every_length_are_damage() {
    let random = &mut Random::new("cut tables");
    let tally = Tally::begin("cut tables");
    let (mut cuts, mut runs) = (0, 0);
    for name in ["values.npy", "escapes.npy"] {
        let (_parent, dir) = finished();
        let path = dir.join(name);
        let good = std::fs::read(&path).unwrap();
        for length in (0..good.len()).rev() {
            let is_boundary = length >= good.len() - 10;
            if !is_boundary && !random.tries(5) {
                continue;
            }
            set_length(&path, length as u64);
            let mut seen = vec![verified(&dir).map(|_| "verify")];
            // Not in every case, because the run syncs the files first, which takes longer than the rest.
            if is_boundary || random.tries(4) {
                seen.push(resumed(&dir, 21_000).map(|_| "run"));
                runs += 1;
            }
            for seen in seen {
                let reported = matches!(&seen, Err(error) if error.kind() == Kind::Damage);
                assert!(reported, "{name} cut to {length}: {seen:?}");
            }
            assert!(readable(&dir).is_none(), "{name} cut to {length}");
            assert!(std::fs::read(&path).unwrap() == good[..length], "{name} cut to {length}: untouched");
            cuts += 1;
        }
    }
    tally.end(cuts, &format!("lengths of both files: verify, readers and {runs} runs refuse, nothing is touched"));
}

#[test]
fn a_journal_cut_at_every_length_never_gives_a_wrong_value() {
    let random = &mut Random::new("cut journal");
    let tally = Tally::begin("cut journal");
    let (_parent, dir) = finished();
    let (good, values) = (contents(&dir), readable(&dir).unwrap());
    let path = dir.join("journal.jsonl");
    let full = RECORDS * RECORD;
    let (mut cuts, mut runs) = (0, 0);
    for length in (0..full).rev() {
        let is_boundary = [0, RECORD - 1].contains(&(length % RECORD));
        if !is_boundary && !random.tries(5) {
            continue;
        }
        cuts += 1;
        set_length(&path, length as u64);
        let what = format!("the journal cut to {length}");
        let there = readable(&dir);
        // Records come in threes: start of a session, commit, clean stop.
        let count = (length / RECORD).checked_sub(1).map(|last| match (last / 3, last % 3) {
            (0, 0) => 0,
            (run, 0) => usize::try_from(ENDS[run - 1]).unwrap(),
            (run, _) => usize::try_from(ENDS[run]).unwrap(),
        });
        assert!(there.as_deref() == count.map(|count| &values[..count]), "{what}: readers see what is committed");
        let seen = verified(&dir);
        // Without the last clean stop it equals a killed run; without more records, the headers state more than the
        // journal.
        assert_eq!(seen.is_ok(), length == full - RECORD, "{what}: {seen:?}");
        if is_boundary || random.below(cases(1000, 100)) == 0 {
            let seen = resumed(&dir, 20_000);
            if count.is_some() {
                assert!(seen.is_ok(), "{what}: {seen:?}");
                assert!(contents(&dir)[..2] == good[..2], "{what}: the same bytes");
                assert_eq!(verified(&dir).unwrap().checked, 20_000, "{what}");
            } else {
                assert!(matches!(&seen, Err(error) if error.kind() == Kind::Damage), "{what}: {seen:?}");
            }
            FILES
                .iter()
                .zip(&good)
                .for_each(|(name, bytes)| std::fs::write(dir.join(name), bytes.as_ref().unwrap()).unwrap());
            runs += 1;
        }
    }
    tally.end(
        cuts,
        &format!("lengths of the journal: readers see what is left; {runs} runs resumed from there to the same bytes"),
    );
}

/// Bytes that may follow the committed part of a file.
fn tails(length: usize, stale: &[u8], random: &mut Random) -> [(&'static str, Vec<u8>); 3] {
    let noise = (0..length.div_ceil(8)).flat_map(|_| random.next().to_le_bytes()).take(length).collect();
    let stale = stale.iter().copied().cycle().take(length).collect();
    [("zeros", vec![0; length]), ("noise", noise), ("older bytes", stale)]
}

/// The bytes may come from a longer run, from the file system (zeros), or be anything. After a clean stop `verify`
/// reports them; after a kill they are uncommitted. No reader returns them.
#[test]
fn tail_of_any_length_is_reported_after_a_clean_stop_and_never_read() {
    let random = &mut Random::new("tails");
    let tally = Tally::begin("tails");
    let (_parent, dir) = finished();
    let good = contents(&dir).map(Option::unwrap);
    let short = tempfile::tempdir().unwrap();
    ENDS[..2].iter().for_each(|&end| compute(short.path(), end));
    let values = readable(short.path()).unwrap();
    let stopped = contents(short.path()).map(Option::unwrap);
    let mut killed = stopped.clone();
    // The last clean stop is missing.
    killed[2].truncate(stopped[2].len() - RECORD);
    let (mut tried, mut runs) = (0, 0);
    for (state, files) in [("stopped", &stopped), ("killed", &killed)] {
        for (i, name) in FILES.iter().enumerate() {
            let path = short.path().join(name);
            for (name, bytes) in FILES.iter().zip(files) {
                std::fs::write(short.path().join(name), bytes).unwrap();
            }
            for length in 1..=RECORD + 100 {
                let is_boundary = [1, RECORD].contains(&length);
                if !is_boundary && !random.tries(5) {
                    continue;
                }
                // For the journal: records of a different run of the same length.
                let older = if i == 2 { &good[2][RECORD / 2..] } else { good[i].get(files[i].len()..).unwrap() };
                // One of the three tails, or all of them.
                let kinds = tails(length, older, random);
                let from = usize::try_from(random.below(3)).unwrap();
                for (kind, tail) in kinds.iter().cycle().skip(from).take(usize::try_from(cases(1, 3)).unwrap()) {
                    let what = format!("{state}, {name} and {length} bytes of {kind}");
                    // Not truncated to 0 first: a file system may flush a file after that.
                    set_length(&path, (files[i].len() + length) as u64);
                    let file = OpenOptions::new().write(true).open(&path).unwrap();
                    file.write_all_at(tail, files[i].len() as u64).unwrap();
                    let seen = verified(short.path());
                    // `verify` reports any bytes after the last record of the journal.
                    let reported = state == "stopped" || i == 2;
                    assert_eq!(seen.is_err(), reported, "{what}: {seen:?}");
                    assert!(readable(short.path()).is_none_or(|read| read == values), "{what}: a wrong value");
                    tried += 1;
                    if is_boundary || random.below(cases(1000, 500)) == 0 {
                        resumed(short.path(), 20_000).unwrap_or_else(|error| panic!("{what}: {error}"));
                        assert!(contents(short.path())[..2] == [&good[0], &good[1]].map(|f| Some(f.clone())), "{what}");
                        assert_eq!(verified(short.path()).unwrap().checked, 20_000, "{what}");
                        for (name, bytes) in FILES.iter().zip(files) {
                            std::fs::write(short.path().join(name), bytes).unwrap();
                        }
                        runs += 1;
                    }
                }
            }
        }
    }
    tally
        .end(tried, &format!("zeros, noise, older bytes: reported or not read; {runs} runs resumed to the same bytes"));
}

#[test]
fn missing_or_headerless_tables_are_damage_that_rollback_repairs() {
    let (_parent, undamaged) = finished();
    let good = contents(&undamaged);
    for name in ["values.npy", "escapes.npy"] {
        for length in [0, 10, 4095] {
            let (_parent, dir) = finished();
            set_length(&dir.join(name), length);
            let what = format!("{name} cut to {length}");
            refused_untouched(&dir, &what);
            rolls_back(&dir, &good, &what);
        }
        let (_parent, dir) = finished();
        std::fs::remove_file(dir.join(name)).unwrap();
        refused_untouched(&dir, &format!("{name} missing"));
        assert!(!dir.join(name).exists());
        rolls_back(&dir, &good, &format!("{name} missing"));
    }
}

#[test]
fn damaged_record_before_good_ones_stops_the_run_until_rollback() {
    let random = &mut Random::new("middle record");
    let (_parent, undamaged) = finished();
    let good = contents(&undamaged);
    for record in [0, 1] {
        for _ in 0..5 {
            let (_parent, dir) = finished();
            let path = dir.join("journal.jsonl");
            let mut bytes = std::fs::read(&path).unwrap();
            let at = record * RECORD + 11 + random.below(RECORD as u64 - 11) as usize;
            bytes[at] = random.other_byte(bytes[at]);
            std::fs::write(&path, bytes).unwrap();
            let what = format!("record {record}, byte {at}");
            refused_untouched(&dir, &what);
            let output = run(GAME, &dir, &["--to", "20000", "--rollback", "--width", "u8"]);
            assert_eq!(output.status.code(), Some(0), "{what}: {}", text(&output.stderr));
            assert!(contents(&dir)[..2] == good[..2], "{what}: the bytes are right again");
            assert_eq!(verified(&dir).unwrap().checked, 20_000, "{what}");
        }
    }
}

#[test]
fn lost_or_exchanged_record_is_damage_despite_valid_hashes() {
    let (_parent, dir) = finished();
    let good = std::fs::read(dir.join("journal.jsonl")).unwrap();
    let line = |i: usize| &good[i * RECORD..(i + 1) * RECORD];
    for (order, what) in [
        (vec![0, 2], "one lost"),
        (vec![0, 1, 2, 3, 5], "the last commit lost, its clean stop left"),
        (vec![1, 2], "the first one lost"),
        (vec![0, 2, 1], "exchanged"),
        (vec![0, 1, 1, 2], "doubled"),
    ] {
        let bytes: Vec<u8> = order.iter().flat_map(|&i| line(i).iter().copied()).collect();
        std::fs::write(dir.join("journal.jsonl"), &bytes).unwrap();
        let seen = verified(&dir);
        assert!(seen.is_err(), "{what}: {seen:?}");
        let output = run(GAME, &dir, &["--to", "20000"]);
        assert_ne!(output.status.code(), Some(0), "{what}: {}", text(&output.stderr));
        assert!(std::fs::read(dir.join("journal.jsonl")).unwrap() == bytes, "{what}: untouched");
    }
}

/// The journal with one field of a record replaced and the matching hash, by the documented algorithm, implemented a
/// second time. `value` is JSON.
fn forged(journal: &[u8], record: usize, key: &str, value: &str) -> Vec<u8> {
    let line = text(&journal[record * RECORD..(record + 1) * RECORD]);
    let (before, rest) = line.split_once(&format!("\"{key}\":")).unwrap();
    let (_, after) = rest.split_once(",\"").unwrap();
    let json = format!("{before}\"{key}\":{value},\"{}", after.trim_end());
    let (before, _) = json.split_once("\"blake3\":\"").unwrap();
    let sealed = |hash: &str| format!("{:<4095}\n", format!("{before}\"blake3\":\"{hash}\"}}"));
    let hash = blake3::hash(sealed(&" ".repeat(64)).as_bytes());
    let mut bytes = journal.to_vec();
    bytes[record * RECORD..(record + 1) * RECORD].copy_from_slice(sealed(&hash.to_hex()).as_bytes());
    bytes
}

/// Two runs of one game have equal tables. Their records have valid hashes and true counts, but belong to different
/// runs.
#[test]
fn record_of_a_different_run_is_damage_despite_valid_hash_and_counts() {
    let (_parent, dir) = finished();
    let good = std::fs::read(dir.join("journal.jsonl")).unwrap();
    let [_, _, (_, others)] = <[_; 3]>::try_from(new_run()).unwrap();
    let (dir, last) = (dir.as_path(), RECORDS - 1);
    let spliced = |at: usize| [&good[..at * RECORD], &others[at * RECORD..]].concat();
    let mut cases: Vec<(String, Vec<u8>)> =
        (1..=last).map(|at| (format!("another run's from record {at} on"), spliced(at))).collect();
    // Each compared field alone reveals the record.
    let zeros = |digits: usize| format!("\"{}\"", "0".repeat(digits));
    for (key, value) in [("run", zeros(32)), ("rule", zeros(64)), ("previous", zeros(64)), ("width", "\"u16\"".into())]
    {
        cases.push((format!("a last record with another {key}"), forged(&good, last, key, &value)));
    }
    for (what, bytes) in cases {
        assert!(bytes != good, "{what}");
        std::fs::write(dir.join("journal.jsonl"), &bytes).unwrap();
        for seen in [verified(dir).map(|_| ()), resumed(dir, 21_000).map(|_| ())] {
            assert!(matches!(&seen, Err(error) if error.kind() == Kind::Damage), "{what}: {seen:?}");
        }
        assert!(readable(dir).is_none(), "{what}: readers refuse");
        assert!(std::fs::read(dir.join("journal.jsonl")).unwrap() == bytes, "{what}: untouched");
    }
}

#[test]
fn another_format_version_is_refused_untouched() {
    for (record, format) in [(0, "1"), (0, "3"), (RECORDS - 1, "1"), (RECORDS - 1, "3")] {
        let (_parent, dir) = finished();
        let journal = std::fs::read(dir.join("journal.jsonl")).unwrap();
        assert!(forged(&journal, record, "format", "2") == journal, "the hash here is the program's");
        std::fs::write(dir.join("journal.jsonl"), forged(&journal, record, "format", format)).unwrap();
        let before = contents(&dir);
        for more in [&["--to", "21000"][..], &["--to", "21000", "--rollback"]] {
            let output = run(GAME, &dir, more);
            let stderr = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{stderr}");
            assert!(stderr.contains(&format!("this run has format {format}")), "{stderr}");
            assert!(stderr.contains("grundy export"), "the way out: {stderr}");
            assert!(contents(&dir) == before, "untouched");
        }
        assert_eq!(grundy(["status"]).arg(&dir).output().unwrap().status.code(), Some(1));
    }
}

/// A record with a valid hash that contradicts the table. No number in a file sizes an allocation, so very large
/// numbers are refused as quickly as others.
#[test]
fn record_with_a_valid_hash_and_false_numbers_is_damage() {
    for (key, by) in [
        ("count", -1),
        ("count", 90_000),
        ("count", i64::MAX),
        ("escapes", -1),
        ("escapes", i64::MAX),
        ("max_value", -1),
        ("max_at", 1),
        ("rares", 1),
        ("last_rare", -1),
    ] {
        let (_parent, dir) = finished();
        let true_one = status(&dir).unwrap()[key].as_i64().unwrap();
        let false_one = true_one.saturating_add(by).to_string();
        let journal = std::fs::read(dir.join("journal.jsonl")).unwrap();
        std::fs::write(dir.join("journal.jsonl"), forged(&journal, RECORDS - 1, key, &false_one)).unwrap();
        let seen = verified(&dir);
        assert!(matches!(&seen, Err(error) if error.kind() == Kind::Damage), "{key} {false_one}: {seen:?}");
        // Bytes that an accepted run would cut off.
        let mut values = OpenOptions::new().append(true).open(dir.join("values.npy")).unwrap();
        std::io::Write::write_all(&mut values, b"stray").unwrap();
        let files = || FILES.map(|name| std::fs::read(dir.join(name)).unwrap());
        let before = files();
        let output = run(GAME, &dir, &["--to", "21000"]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{key} {false_one}: {stderr}");
        assert!(files() == before, "{key} {false_one}: a refused run changes nothing");
        if ["max_value", "max_at", "rares", "last_rare"].contains(&key) {
            let at = format!("journal.jsonl at byte {}: the table has ", 4096 * (RECORDS - 1));
            assert!(stderr.contains(&at) && stderr.contains("--rollback' records"), "{key} {false_one}: {stderr}");
            let output = run(GAME, &dir, &["--to", "20000", "--rollback"]);
            let stderr = text(&output.stderr);
            assert!(output.status.success() && stderr.contains(&at), "{key} {false_one}: {stderr}");
            let values = std::fs::read(dir.join("values.npy")).unwrap();
            assert!(values == before[0][..values.len()], "{key} {false_one}: all values are kept");
            let corrected = status(&dir).unwrap();
            assert_eq!((&corrected[key], &corrected["errors"]), (&true_one.into(), &1.into()), "{false_one}");
            verified(&dir).unwrap();
        }
    }
}

#[test]
fn a_data_file_that_is_a_symlink_is_refused_for_writing() {
    for name in FILES {
        let (parent, dir) = finished();
        let target = parent.path().join("elsewhere");
        std::fs::rename(dir.join(name), &target).unwrap();
        std::os::unix::fs::symlink(&target, dir.join(name)).unwrap();
        let before = std::fs::read(&target).unwrap();
        let output = run(GAME, &dir, &["--to", "21000"]);
        assert_eq!(output.status.code(), Some(1), "{name}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(name), "{}", text(&output.stderr));
        assert!(std::fs::read(&target).unwrap() == before, "{name}: what the link points to is untouched");
        let reading = grundy(["values"]).arg(&dir).arg("5").output().unwrap();
        assert_eq!(reading.status.code(), Some(0), "{name}: {}", text(&reading.stderr));
    }
}

#[test]
fn a_new_run_follows_no_dangling_symlink() {
    for name in FILES {
        let parent = tempfile::tempdir().unwrap();
        let (dir, target) = (parent.path().join("run"), parent.path().join("elsewhere"));
        std::fs::create_dir(&dir).unwrap();
        std::os::unix::fs::symlink(&target, dir.join(name)).unwrap();
        let output = run(GAME, &dir, &["--to", "1000", "--width", "u8"]);
        assert_eq!(output.status.code(), Some(1), "{name}: {}", text(&output.stderr));
        assert!(!target.exists(), "{name}: nothing was created elsewhere");
    }
}

#[test]
fn data_files_without_a_journal_are_not_touched() {
    let (_parent, dir) = finished();
    std::fs::remove_file(dir.join("journal.jsonl")).unwrap();
    let before = contents(&dir);
    let output = run(GAME, &dir, &["--to", "1000"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(contents(&dir) == before);
}

/// An empty journal, or one whose only record is damaged, describes no values; the values beside it may still be
/// needed.
#[test]
fn values_without_a_good_record_are_discarded_only_on_request() {
    for what in ["emptied", "broken"] {
        let dir = tempfile::tempdir().unwrap();
        compute(dir.path(), 5600);
        let journal = dir.path().join("journal.jsonl");
        match what {
            "emptied" => set_length(&journal, 0),
            _ => {
                set_length(&journal, RECORD as u64);
                let mut bytes = std::fs::read(&journal).unwrap();
                bytes[2000] ^= 1;
                std::fs::write(&journal, bytes).unwrap();
            }
        }
        let before = contents(dir.path());
        // The file keeps its inode, for readers that have mapped it.
        let inode = |name| std::fs::metadata(dir.path().join(name)).unwrap().ino();
        let _held = DATA.map(|name| std::fs::File::open(dir.path().join(name)).unwrap());
        let inodes = DATA.map(inode);
        let output = run(GAME, dir.path(), &["--to", "5600"]);
        assert_eq!(output.status.code(), Some(3), "{what}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("--rollback"), "{what}: {}", text(&output.stderr));
        assert!(contents(dir.path()) == before, "{what}: untouched");
        let output = run(GAME, dir.path(), &["--to", "5600", "--rollback", "--width", "u8"]);
        assert_eq!(output.status.code(), Some(0), "{what}: {}", text(&output.stderr));
        assert!(contents(dir.path())[..2] == before[..2], "{what}: recomputed");
        assert!(DATA.map(inode).iter().zip(inodes).all(|(now, then)| *now != then), "{what}: written over");
    }
}

#[test]
fn names_from_files_are_escaped_in_messages() {
    let (_parent, dir) = finished();
    let journal = std::fs::read(dir.join("journal.jsonl")).unwrap();
    // Six characters in the file are one control character after parsing.
    let bytes = forged(&journal, RECORDS - 1, "kernel", r#""\u001b""#);
    std::fs::write(dir.join("journal.jsonl"), bytes).unwrap();
    let output = grundy(["status"]).arg(&dir).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(!output.stdout.contains(&0x1b), "a control character reaches the terminal");
}

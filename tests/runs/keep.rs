//! Runs with `--keep`: retained values are correct, readers refuse discarded values, and no discarded value is read as
//! 0.

use crate::support::{Random, grundy, run, run_well, status, text};
use grundy::checkpoint::journal::{self, RECORD};
use grundy::error::Error;
use grundy::kernel::Kernel;
use grundy::run::RunReader;
use grundy::solver::{self, Method, SequenceStats, Solver, SparseSpace};
use grundy::table::digest::{Digest, DigestChain};
use grundy::theory::definition::Sequence;
use grundy::theory::rule::Rule;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::OpenOptions;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// .106 computes tens of millions of values per second; all its values are below 256.
const GAME: &str = ".106";
const TO: u64 = 90_000_000;

/// Number of first values that every run keeps. One whole segment lies between them and the last 140 000 values.
const HEAD: u64 = 1 << 26;
const SEGMENT: u64 = 1 << 24;
const FREED: Range<u64> = HEAD..HEAD + SEGMENT;

const KEEP: [&str; 4] = ["--to", "90000000", "--keep", "140000"];

/// Length of the header of values.npy.
const DATA: u64 = 4096;

fn values(dir: &Path) -> PathBuf {
    dir.join("values.npy")
}

/// A run that keeps everything and one that has discarded a segment, created once for all tests.
fn runs() -> (&'static Path, &'static Path) {
    static ONCE: OnceLock<TempDir> = OnceLock::new();
    static PATHS: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    let dirs = ONCE.get_or_init(|| {
        let dirs = tempfile::tempdir().unwrap();
        run_well(GAME, &dirs.path().join("whole"), &KEEP[..2]);
        run_well(GAME, &dirs.path().join("kept"), &["--to", "85000000", "--keep", "140000"]);
        run_well(GAME, &dirs.path().join("kept"), &KEEP[..2]);
        dirs
    });
    let (whole, kept) = PATHS.get_or_init(|| (dirs.path().join("whole"), dirs.path().join("kept")));
    (whole, kept)
}

/// A copy of the run with discarded values, which the test may damage.
fn copied() -> (TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    std::fs::create_dir(&dir).unwrap();
    for entry in std::fs::read_dir(runs().1).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), dir.join(entry.file_name())).unwrap();
    }
    (parent, dir)
}

fn part(path: &Path, range: Range<u64>) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(range.end - range.start).unwrap()];
    OpenOptions::new().read(true).open(path).unwrap().read_exact_at(&mut bytes, DATA + range.start).unwrap();
    bytes
}

fn is_hole(path: &Path, range: Range<u64>) -> bool {
    part(path, range).iter().all(|&byte| byte == 0)
}

/// Checks that the retained bytes equal those of the full run.
fn same_where_kept(kept: &Path, whole: &Path) {
    let (one, other) = (status(kept).unwrap(), status(whole).unwrap());
    for key in ["game", "count", "width", "escapes", "digest", "rares", "last_rare", "max_value", "max_at"] {
        assert_eq!(one[key], other[key], "{key}");
    }
    for range in serde_json::from_value::<Vec<(u64, u64)>>(one["kept"].clone()).unwrap() {
        let range = range.0..range.1;
        assert!(part(&values(kept), range.clone()) == part(&values(whole), range.clone()), "{range:?}");
    }
}

fn output_on(arguments: &[&str], dir: &Path, more: &[&str]) -> Output {
    grundy(arguments).arg(dir).args(more).output().unwrap()
}

/// Checks that the command failed with this exit status and printed nothing to stdout.
fn fails(code: i32, output: &Output, words: &[&str]) {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    assert!(!stderr.contains("panicked"), "{stderr}");
    for word in words {
        assert!(stderr.contains(word), "nothing of {word}: {stderr}");
    }
}

#[test]
fn kept_values_equal_a_full_run_and_the_rest_is_freed_on_disk() {
    let (whole, kept) = runs();
    same_where_kept(kept, whole);
    assert_eq!(status(kept).unwrap()["kept"], serde_json::json!([[0, FREED.start], [FREED.end, TO]]));
    assert_eq!(status(whole).unwrap()["kept"], serde_json::json!([[0, TO]]));
    let [kept, whole] = [kept, whole].map(|dir| std::fs::metadata(values(dir)).unwrap());
    assert_eq!(kept.len(), whole.len(), "a reader that maps the file finds every value at its place");
    assert!(kept.blocks() + SEGMENT / 512 <= whole.blocks() + 64, "{} of {} blocks", kept.blocks(), whole.blocks());
}

/// The digest of values that have no escapes, by the formula. Unit tests have shorter segments.
fn formula(table: &[u16]) -> Digest {
    table.chunks(SEGMENT as usize).fold(Digest([0; 32]), |before, segment| {
        let bytes: Vec<u8> = segment.iter().flat_map(|value| value.to_le_bytes()).collect();
        Digest(*blake3::hash(&[before.0, *blake3::hash(&bytes).as_bytes()].concat()).as_bytes())
    })
}

#[test]
fn digest_is_the_formula_over_segments_wherever_pieces_end() {
    let (whole, _) = runs();
    let table: Vec<u16> = part(&values(whole), 0..TO).into_iter().map(u16::from).collect();
    assert_eq!(status(whole).unwrap()["digest"], formula(&table).to_string());
    let segment = SEGMENT as usize;
    let table = &table[..segment + 70_000];
    for cut in [0, 1, 65_535, 65_536, segment, table.len()] {
        let mut chain = DigestChain::new();
        chain.update(&table[..cut]);
        assert_eq!(chain.digest(), formula(&table[..cut]), "{cut} values");
        chain.update(&table[cut..]);
        assert_eq!(chain.digest(), formula(table), "{cut} values before");
    }
    let mut later = DigestChain::resume(SEGMENT, formula(&table[..segment]));
    later.update(&table[segment..]);
    assert_eq!(later.digest(), formula(table));
}

#[test]
fn published_tables_include_freed_values() {
    let (whole, kept) = runs();
    let dirs = tempfile::tempdir().unwrap();
    let published = |run: &Path, name: &str, more: &[&str]| {
        let dir = dirs.path().join(name);
        let output = output_on(&["-q", "publish"], run, &[&["-o", dir.to_str().unwrap()], more].concat());
        assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
        dir
    };
    let (whole, kept) = (published(whole, "whole", &[]), published(kept, "kept", &["--segment", "2^25"]));
    for name in ["records.csv", "histogram.csv", "rares.csv", "bfile.txt"] {
        assert!(std::fs::read(whole.join(name)).unwrap() == std::fs::read(kept.join(name)).unwrap(), "{name}");
    }
    let manifest = |dir: &Path| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(dir.join("manifest.json")).unwrap()).unwrap()
    };
    let segments = manifest(&whole)["segments"].as_array().unwrap().clone();
    assert_eq!(segments.len() as u64, TO.div_ceil(SEGMENT));
    let every_second: Vec<&serde_json::Value> = segments
        .iter()
        .filter(|segment| [0, TO % (2 * SEGMENT)].contains(&(segment["to"].as_u64().unwrap() % (2 * SEGMENT))))
        .collect();
    assert_eq!(manifest(&kept)["segments"], serde_json::json!(every_second));
    let compared = output_on(&["compare", "--json"], &kept, &[whole.to_str().unwrap()]);
    let compared: serde_json::Value = serde_json::from_slice(&compared.stdout).unwrap();
    assert_eq!((&compared["agree"], &compared["differs"]), (&TO.into(), &serde_json::Value::Null));
    for segment in ["0", "1000"] {
        fails(2, &output_on(&["-q", "publish"], runs().0, &["-o", "x", "--segment", segment]), &["16777216"]);
    }
}

/// Every value of Kayles occurs among the first 100.
#[test]
fn first_positions_and_zeros_are_found_if_no_discarded_value_is_one() {
    let dirs = tempfile::tempdir().unwrap();
    let dir = dirs.path().join("kayles");
    run_well("kayles", &dir, &["--to", "85000000", "--keep", "140000"]);
    for question in ["--first", "--zeros", "--records"] {
        let (found, first) = (output_on(&["find", question], &dir, &[]), grundy(["find", question, "kayles"]).output());
        assert!(found.status.success() && found.stdout == first.unwrap().stdout, "{question}: {}", text(&found.stderr));
    }
}

#[test]
fn readers_refuse_freed_values_and_read_the_rest() {
    let (whole, dir) = runs();
    let places = ["67108864..83886080", "--keep"];
    for range in ["67108864", "83886079", "67108863..67108865", "83886079..83886081", "0..90000000"] {
        fails(1, &output_on(&["values"], dir, &[range]), &places);
        fails(1, &output_on(&["values"], dir, &["5", range]), &places);
        fails(1, &output_on(&["export", "--format", "csv"], dir, &["--range", range]), &places);
        fails(1, &output_on(&["verify"], dir, &["--range", range]), &places);
    }
    fails(1, &output_on(&["export", "--format", "npy"], dir, &[]), &places);
    let refused = output_on(&["find", "--format", "csv"], dir, &["--zeros"]);
    fails(1, &refused, &places);
    assert!(refused.stdout.is_empty(), "a refused question has no header either");
    // The summary of the discarded values has their rare positions.
    for range in ["0..90000000", "67108800..83886090", "70000000..80000000"] {
        let rare = |dir: &Path| text(&output_on(&["find", "--rares", "--range", range], dir, &[]).stdout);
        assert_eq!(rare(dir), rare(whole), "{range}");
    }
    assert!(text(&output_on(&["find", "--rares"], dir, &[]).stdout).lines().count() > 10);
    // … and their records and counts, which decide a range that contains all of them.
    let find =
        |dir: &Path, question: &[&str], range| output_on(&[&["find", "--range", range], question].concat(), dir, &[]);
    for question in [&["--records"][..], &["--histogram"], &["--value", "40..50"]] {
        for range in ["0..90000000", "60000000..83886080", "67108864..90000000"] {
            let (part, all) = (find(dir, question, range), find(whole, question, range));
            assert!(part.status.success() && part.stdout == all.stdout, "{question:?} {range}: {}", text(&part.stderr));
        }
    }
    // Each value occurs before the discarded ones; nothing says where they are among these.
    assert!(find(dir, &["--first"], "0..90000000").stdout == find(whole, &["--first"], "0..90000000").stdout);
    fails(1, &find(dir, &["--first"], "67108864..90000000"), &places);
    fails(1, &find(dir, &["--value", "29"], "0..90000000"), &places);
    for question in ["--records", "--histogram", "--first"] {
        fails(1, &find(dir, &[question], "70000000..90000000"), &places);
    }
    // The options of a position above the discarded ones include discarded values.
    fails(1, &output_on(&["verify", "--level", "definition"], dir, &["--range", "89999999"]), &places);
    // The command prints no value before it finds that the moves are discarded.
    for json in [&[][..], &["--json"]] {
        let heap = format!("{}:89999999", dir.display());
        fails(1, &grundy(["play", &heap, "nim:60000"]).args(json).output().unwrap(), &places);
        let heap = format!("{}:67108863", dir.display());
        let retained = grundy(["play", &heap, "nim:60000"]).args(json).output().unwrap();
        assert!(retained.status.success() && text(&retained.stdout).contains("60000"), "{}", text(&retained.stderr));
    }
    for range in ["67108800..67108864", "83886080..83886090", "89999999"] {
        assert_eq!(
            output_on(&["values"], dir, &[range]).stdout,
            output_on(&["values"], whole, &[range]).stdout,
            "{range}"
        );
        assert!(output_on(&["verify"], dir, &["--range", range]).status.success(), "{range}");
    }
    let view = RunReader::open(dir).unwrap();
    let mut all = vec![7; 10];
    for from in [FREED.start - 9, FREED.start, FREED.end - 1] {
        assert!(matches!(view.read(from, &mut all), Err(Error::Discarded { .. })), "{from}");
        assert!(matches!(view.table.read(from, &mut all), Err(Error::Discarded { .. })), "{from}");
    }
    assert_eq!(all, [7; 10], "not even zeros are handed out");
}

#[test]
fn verify_states_which_values_it_could_not_check() {
    let dir = runs().1;
    let report = |more: &[&str]| -> serde_json::Value {
        let output = output_on(&["verify", "--json"], dir, more);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let digest = report(&[]);
    assert_eq!(digest["checked"], TO - SEGMENT);
    assert_eq!(digest["unchecked"], serde_json::json!([FREED.start, FREED.end]));
    let sampled = report(&["--level", "definition", "--samples", "2"]);
    assert_eq!(sampled["unchecked"], serde_json::json!([FREED.start, TO]));
    assert_eq!(report(&["--range", "0..1000"])["unchecked"], serde_json::Value::Null);
    let for_people = text(&output_on(&["verify"], dir, &[]).stdout);
    assert!(for_people.starts_with("0..67,108,864 and 83,886,080..90,000,000: 73,222,784 values"), "{for_people}");
    assert!(for_people.contains("\n67,108,864..83,886,080: not checked"), "{for_people}");
    let sampled = text(&output_on(&["verify"], dir, &["--level", "definition", "--samples", "2"]).stdout);
    assert!(sampled.starts_with("0..67,108,864: "), "{sampled}");
}

/// A reader that was opened before the run discarded more must not read the new hole as values.
#[test]
fn values_freed_during_reading_are_refused() {
    let (_parent, dir) = copied();
    let journal = dir.join("journal.jsonl");
    let records = std::fs::read(&journal).unwrap();
    let before = records.chunks(RECORD).take_while(|line| !text(line).contains("snapshot-")).count();
    assert!(before * RECORD < records.len());
    std::fs::write(&journal, &records[..before * RECORD]).unwrap();
    let view = RunReader::open(&dir).unwrap();
    assert!(view.discarded().is_empty());
    std::fs::write(&journal, &records).unwrap();
    let mut values = [0; 10];
    assert!(matches!(view.read(FREED.start, &mut values), Err(Error::Discarded { .. })));
    view.read(FREED.start - 10, &mut values).unwrap();
    // The search for a period reads the bytes of the table without a check, and then requires all of them.
    assert!(matches!(view.require(0, view.len()), Err(Error::Discarded { .. })));
    view.require(0, FREED.start).unwrap();
}

#[test]
fn keep_persists_across_stops_and_kills_with_the_same_digest() {
    let random = &mut Random::new("kept and killed");
    let (whole, _) = runs();
    let dirs = tempfile::tempdir().unwrap();
    let dir = dirs.path().join("run");
    run_well(GAME, &dir, &["--to", "84500000", "--keep", "140000"]);
    assert_eq!(journal::read(&dir).unwrap().last.keep, Some(140_000));
    let mut child =
        grundy(["run", GAME, "--dir"]).arg(&dir).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while status(&dir).unwrap()["count"] == 84_500_000 {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing is committed");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(random.below(50)));
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    let output = output_on(&["verify"], &dir, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let count = status(&dir).unwrap()["count"].as_u64().unwrap();
    println!("killed at {count}");
    run_well(GAME, &dir, &["--to", &TO.max(count).to_string()]);
    if count <= TO {
        same_where_kept(&dir, whole);
    }
    assert_eq!(journal::read(&dir).unwrap().last.keep, Some(140_000));
}

/// The record states what is discarded, and a kill before the hole is punched leaves the old bytes.
#[test]
fn hole_missing_after_a_kill_is_not_readable_and_is_punched_by_run() {
    let (whole, _) = runs();
    for kill in ["before the second record", "after it"] {
        let (_parent, dir) = copied();
        let file = OpenOptions::new().write(true).open(values(&dir)).unwrap();
        file.write_all_at(&part(&values(whole), FREED), DATA + FREED.start).unwrap();
        if kill == "before the second record" {
            let journal = std::fs::read(dir.join("journal.jsonl")).unwrap();
            std::fs::write(dir.join("journal.jsonl"), &journal[..journal.len() - RECORD]).unwrap();
        }
        std::fs::write(dir.join("snapshot-99.json.part"), "{").unwrap();
        fails(1, &output_on(&["values"], &dir, &["67108864"]), &["freed"]);
        run_well(GAME, &dir, &KEEP[..2]);
        assert!(is_hole(&values(&dir), FREED), "{kill}");
        same_where_kept(&dir, whole);
        let snapshots: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name()).collect();
        let snapshots: Vec<_> =
            snapshots.iter().filter(|name| text(name.as_encoded_bytes()).contains("snap")).collect();
        assert_eq!(snapshots, ["snapshot-83886080.json"], "{kill}");
    }
}

/// A larger SIZE keeps more from then on; a smaller one discards values of a finished run.
#[test]
fn keep_size_may_change_and_freed_values_stay_freed() {
    let (whole, _) = runs();
    let (_parent, dir) = copied();
    run_well(GAME, &dir, &["--to", "90000000", "--keep", "2^40"]);
    assert_eq!(status(&dir).unwrap()["kept"], serde_json::json!([[0, FREED.start], [FREED.end, TO]]));
    let shown = text(&output_on(&["status"], &dir, &[]).stdout).split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(shown.contains("and the last 6,113,920; later at least 1,099,511,627,776)"), "{shown}");
    let other = dir.with_file_name("other");
    std::fs::create_dir(&other).unwrap();
    for name in ["values.npy", "escapes.npy", "journal.jsonl"] {
        std::fs::copy(whole.join(name), other.join(name)).unwrap();
    }
    let said = text(&run_well(GAME, &other, &KEEP).stderr);
    assert!(said.contains("freed the values from n = 67,108,864 to 83,886,079 permanently"), "{said}");
    let said = text(&run_well(GAME, &other, &KEEP).stderr);
    assert!(said.contains("nothing to do") && !said.contains("freed"), "{said}");
    same_where_kept(&other, whole);
    assert_eq!(status(&other).unwrap()["kept"], serde_json::json!([[0, FREED.start], [FREED.end, TO]]));
    assert!(is_hole(&values(&other), FREED));
}

#[test]
fn bad_snapshot_is_damage_and_rollback_goes_to_the_first_values() {
    let random = &mut Random::new("snapshot");
    for missing in [false, true] {
        let (_parent, dir) = copied();
        let path = dir.join("snapshot-83886080.json");
        let mut bytes = std::fs::read(&path).unwrap();
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] = random.other_byte(bytes[at]);
        if missing {
            std::fs::remove_file(&path).unwrap()
        } else {
            std::fs::write(&path, bytes).unwrap()
        }
        let shown = output_on(&["status"], &dir, &[]);
        assert_eq!(shown.status.code(), Some(3));
        assert!(text(&shown.stderr).contains("snapshot-83886080.json"), "{}", text(&shown.stderr));
        fails(3, &output_on(&["verify"], &dir, &[]), &["snapshot-83886080.json", "--rollback"]);
        fails(3, &run(GAME, &dir, &["--to", "91000000"]), &["snapshot-83886080.json", "--rollback"]);
        run_well(GAME, &dir, &["--to", "67200000", "--rollback"]);
        assert_eq!(status(&dir).unwrap()["kept"], serde_json::json!([[0, 67_200_000]]));
        assert!(part(&values(&dir), HEAD..67_200_000) == part(&values(runs().0), HEAD..67_200_000));
        assert_eq!(output_on(&["verify"], &dir, &[]).status.code(), Some(0));
    }
}

/// Alters the record of the first `count` values.
fn damage_record_of(dir: &Path, count: u64) {
    let path = dir.join("journal.jsonl");
    let mut bytes = std::fs::read(&path).unwrap();
    let states = |line: &[u8]| serde_json::from_slice::<serde_json::Value>(line).unwrap()["count"] == count;
    let lost = bytes.chunks(RECORD).position(states).unwrap();
    bytes[lost * RECORD + 100] ^= 1;
    std::fs::write(&path, bytes).unwrap();
}

/// The discard summary states the digest of the freed values too, so it can be read, and more can be freed.
#[test]
fn lost_record_at_the_end_of_the_freed_values_costs_no_values() {
    let (_parent, dir) = copied();
    let points = journal::read(&dir).unwrap().points;
    damage_record_of(&dir, FREED.end);
    run_well(GAME, &dir, &["--to", "1", "--rollback"]);
    same_where_kept(&dir, runs().0);
    // A manifest lacks the digest that no record states any more.
    let published = dir.with_file_name("published");
    let output = output_on(&["-q", "publish", "-o", published.to_str().unwrap()], &dir, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let output = output_on(&["compare", published.to_str().unwrap()], runs().0, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("the first 90,000,000 values have equal digests"));
    let left = journal::read(&dir).unwrap().points;
    assert_eq!(left, points.into_iter().filter(|point| point.count != FREED.end).collect::<Vec<_>>());
    for range in [&[][..], &["--range", "83886080..84000000"]] {
        let output = output_on(&["verify"], &dir, range);
        assert_eq!(output.status.code(), Some(0), "{range:?}: {}", text(&output.stderr));
    }
    for to in ["101000000", "102000000"] {
        run_well(GAME, &dir, &["--to", to]);
    }
    let end = FREED.end + SEGMENT;
    assert_eq!(status(&dir).unwrap()["kept"], serde_json::json!([[0, HEAD], [end, 102_000_000]]));
    assert!(is_hole(&values(&dir), HEAD..end));
    assert_eq!(output_on(&["verify"], &dir, &[]).status.code(), Some(0));
}

/// The discard summary states the digest of the first values, the head, too.
#[test]
fn lost_record_of_the_head_costs_no_values() {
    let (_parent, dir) = copied();
    damage_record_of(&dir, HEAD);
    fails(3, &run(GAME, &dir, &["--to", "91000000"]), &["journal.jsonl", "--rollback"]);
    run_well(GAME, &dir, &["--to", "1", "--rollback"]);
    same_where_kept(&dir, runs().0);
    for range in [&[][..], &["--range", "67000000..67100000"], &["--range", "0..67108864"]] {
        let output = output_on(&["verify"], &dir, range);
        assert_eq!(output.status.code(), Some(0), "{range:?}: {}", text(&output.stderr));
    }
    // The summary alone now states what the head must be.
    let file = OpenOptions::new().write(true).open(values(&dir)).unwrap();
    file.write_all_at(&[77], DATA + HEAD - 5).unwrap();
    fails(3, &output_on(&["verify"], &dir, &[]), &["values.npy"]);
    let output = run_well(GAME, &dir, &["--to", &TO.to_string()]);
    assert!(text(&output.stderr).contains("recomputed and restored"), "{}", text(&output.stderr));
    same_where_kept(&dir, runs().0);
}

/// No record agrees after the freed values, which are a hole: the retained values after them are copied.
#[test]
fn quarantine_file_holds_the_altered_values_after_the_freed_ones() {
    let (_parent, dir) = copied();
    damage_record_of(&dir, FREED.end);
    let file = OpenOptions::new().write(true).open(values(&dir)).unwrap();
    file.write_all_at(&[77], DATA + FREED.end + 5).unwrap();
    let altered = part(&values(&dir), FREED.end..FREED.end + 100_000);
    run_well(GAME, &dir, &["--to", "1", "--rollback"]);
    let names: Vec<String> =
        std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    let copy = names.iter().find(|name| name.ends_with(&format!("-{}.bin", DATA + FREED.end))).unwrap_or_else(|| {
        panic!("no copy of the values from {} on: {names:?}", FREED.end);
    });
    assert!(std::fs::read(dir.join(copy)).unwrap().starts_with(&altered));
    assert_eq!(output_on(&["verify"], &dir, &[]).status.code(), Some(0));
}

#[test]
fn damage_is_repaired_if_earlier_values_exist_else_rolled_back() {
    for (n, back) in [(TO - 5, None), (FREED.end, Some(HEAD..HEAD + 1)), (1000, None)] {
        let (_parent, dir) = copied();
        let file = OpenOptions::new().read(true).write(true).open(values(&dir)).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, DATA + n).unwrap();
        file.write_all_at(&[byte[0] ^ 1], DATA + n).unwrap();
        fails(3, &output_on(&["verify"], &dir, &[]), &["values.npy"]);
        let Some(back) = back else {
            let output = run_well(GAME, &dir, &["--to", &TO.to_string()]);
            assert!(text(&output.stderr).contains("recomputed and restored"), "{n}: {}", text(&output.stderr));
            same_where_kept(&dir, runs().0);
            continue;
        };
        fails(3, &run(GAME, &dir, &["--to", "91000000"]), &["--rollback"]);
        run_well(GAME, &dir, &["--to", "1", "--rollback"]);
        let count = status(&dir).unwrap()["count"].as_u64().unwrap();
        assert!(back.contains(&count), "{n}: {count}");
        assert_eq!(output_on(&["verify"], &dir, &[]).status.code(), Some(0), "{n}");
    }
}

/// As the test above, with `--rollback`.
#[test]
fn damage_in_first_or_last_values_is_reported_and_rolled_back() {
    let tail = FREED.end + 100_000..TO - 4;
    for (n, back) in [(TO - 5, tail), (FREED.end, HEAD..HEAD + 1), (1000, 0..1001)] {
        let (_parent, dir) = copied();
        let file = OpenOptions::new().read(true).write(true).open(values(&dir)).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, DATA + n).unwrap();
        file.write_all_at(&[byte[0] ^ 1], DATA + n).unwrap();
        run_well(GAME, &dir, &["--to", "1", "--rollback"]);
        let count = status(&dir).unwrap()["count"].as_u64().unwrap();
        assert!(back.contains(&count), "{n}: {count}");
        assert_eq!(output_on(&["verify"], &dir, &[]).status.code(), Some(0), "{n}");
    }
}

#[test]
fn keep_below_the_lookback_is_refused_with_the_size_needed() {
    let dirs = tempfile::tempdir().unwrap();
    let dir = dirs.path().join("run");
    // Twice the lookback: 65536 positions of the witness search, and the sample that it learns from.
    fails(
        1,
        &run("grundy", &dir, &["--to", "1000", "--keep", "65536"]),
        &["--keep 65536 is too little: the solver needs", "--keep 262656"],
    );
    fails(1, &run("grundy", &dir, &["--to", "1000", "--keep", "1M", "--kernel", "definition"]), &["definition"]);
    fails(1, &run(".3", &dir, &["--to", "1000", "--keep", "1M"]), &["definition"]);
    assert!(!values(&dir).exists());
    assert_eq!(run("grundy", &dir, &["--keep", "0"]).status.code(), Some(2));
    // The rare position 82860 comes in the first second. The known ones at 47 million are beyond `--to`.
    let begun = Instant::now();
    fails(1, &run("grundy", &dir, &["--to", "47e6", "--keep", "140000"]), &["82860", "--keep 296792"]);
    assert!(begun.elapsed() < Duration::from_secs(30));
    let count = status(&dir).unwrap()["count"].as_u64().unwrap();
    assert!(count > 82_860, "what was computed is committed");
    assert_eq!(output_on(&["verify"], &dir, &[]).status.code(), Some(0));
    let more = (count + 1000).to_string();
    fails(1, &run("grundy", &dir, &["--to", &more]), &["--keep 296792"]);
    run_well("grundy", &dir, &["--to", &more, "--keep", "148396"]);
}

/// Every start says what is freed, also where the size comes from an earlier command.
#[test]
fn runs_that_free_values_say_so_when_they_start() {
    let dirs = tempfile::tempdir().unwrap();
    let dir = dirs.path().join("run");
    let said = |options: &[&str]| text(&run_well("kayles", &dir, options).stderr);
    let kept = |size: u64| format!("keeps the first {HEAD} and at least the last {size} values, and frees the others");
    assert!(!said(&["--to", "1000"]).contains("frees"));
    assert!(said(&["--keep", "1M", "--to", "1000"]).contains(&kept(1_000_000)));
    assert!(said(&["--to", "2000"]).contains(&kept(1_000_000)));
    assert!(said(&["--to", "3000", "--keep", "1e18"]).contains(&kept(1_000_000_000_000_000_000)));
}

/// Without a sparse space every position counts as rare, which says nothing about the lookback.
#[test]
fn keep_of_a_short_run_is_judged_by_the_known_rare_positions() {
    let dirs = tempfile::tempdir().unwrap();
    let dir = dirs.path().join("run");
    run_well("kayles", &dir, &["--to", "1000"]);
    fails(1, &run("kayles", &dir, &["--to", "3000", "--keep", "10"]), &["with the last rare position at 70,"]);
}

/// A sequence with discarded values.
struct Holed {
    values: Vec<u16>,
    hole: Range<u64>,
}

impl Sequence for Holed {
    fn len(&self) -> u64 {
        self.values.len() as u64
    }

    fn discarded(&self) -> Range<u64> {
        self.hole.clone()
    }

    fn read(&self, from: u64, out: &mut [u16]) -> grundy::Result<()> {
        self.require(from, from + out.len() as u64)?;
        self.values.as_slice().read(from, out)
    }
}

/// .034 has 1079 rare positions up to 71722, and the next one at 374473.
#[test]
fn rare_position_that_needs_freed_values_stops_with_correct_values() {
    let rule: Rule = ".034".parse().unwrap();
    let method = Method::Sparse(Kernel::best());
    let values = solver::values(&rule, method, 380_000).unwrap();
    let start = 370_000;
    let mut first = Solver::new(&rule, method, None, &&values[..start]).unwrap();
    let mut past = values[..start].to_vec();
    while first.space() == SparseSpace::NONE {
        let mut more = Vec::new();
        first.advance(&past, start as u64 + 1, &mut more).unwrap();
        past.append(&mut more);
    }
    let space = first.space();
    past.truncate(start);
    let rares: Vec<(u64, u16)> = (0..).zip(values.iter().copied()).filter(|&(n, v)| space.is_rare(v, n)).collect();
    let (last, new) = (rares[rares.len() - 2].0, rares[rares.len() - 1].0);
    assert!(last < 100_000 && (start as u64) < new, "{last}, {new}");
    let hole = 1 << 16..start as u64 - solver::lookback(&rule, last);
    let inside = rares.iter().copied().filter(|(n, _)| hole.contains(n)).collect();
    let known = SequenceStats { rare_positions: inside, max_value: *values.iter().max().unwrap(), max_at: 0 };
    let mut holed = Holed { values: past, hole: hole.clone() };
    let mut solver = Solver::knowing(&rule, method, Some(space), &holed, &known).unwrap();
    let error = loop {
        let mut more = Vec::new();
        let advanced = solver.advance(&holed, 380_000, &mut more);
        holed.values.append(&mut more);
        if let Err(error) = advanced {
            break error;
        }
    };
    assert!(matches!(error, Error::Discarded { heap: Some(n), .. } if n == new), "{error}");
    // The solver has not proved its block to the end.
    assert!(holed.len() <= new && holed.len() > new - 20_000, "{}", holed.len());
    assert!(holed.values == values[..holed.values.len()]);
    assert_eq!(solver.count_rare_positions(holed.len()), (rares.len() as u64 - 1, last));
}

/// The rare positions of Grundy's game are known up to 48 399 022. A SIZE below that would stop the run there, after
/// hours.
#[test]
fn keep_too_small_for_a_known_game_is_refused_at_the_start() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    for more in [&[][..], &["--to", "1e11"]] {
        let output = run("grundy", &dir, &[&["--keep", "1M"], more].concat());
        fails(1, &output, &["48399022", "--keep"]);
        assert!(!dir.exists(), "nothing was created");
    }
    // A run that ends before these positions needs no lookback to them.
    run_well("grundy", &dir, &["--keep", "1M", "--to", "100000"]);
}

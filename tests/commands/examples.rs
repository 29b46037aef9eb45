//! The programs in `examples/` print published values.

use crate::support::{data, run_well, text};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

/// Maximum number of lines of an example.
const LONGEST: usize = 20;

/// The time of the last change below a directory.
fn changed(dir: &Path) -> SystemTime {
    let mut latest = SystemTime::UNIX_EPOCH;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let time = if path.is_dir() { changed(&path) } else { path.metadata().unwrap().modified().unwrap() };
        latest = latest.max(time);
    }
    latest
}

/// The folder of the built examples, beside that of this test. `cargo test` builds the examples first; `cargo test
/// --test commands` does not, so this function builds what is missing or older than the sources.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let profile = test.parent().unwrap().parent().unwrap();
        let folder = profile.join("examples");
        let sources = changed(Path::new("src")).max(changed(Path::new("examples")));
        let is_built = |name: &String| {
            let built = folder.join(name).metadata().and_then(|file| file.modified());
            built.is_ok_and(|built| built > sources)
        };
        if !names().iter().all(is_built) {
            let name = match profile.file_name().unwrap().to_str().unwrap() {
                "debug" => "dev",
                name => name,
            };
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["build", "--examples", "--profile", name, "--target-dir"]).arg(profile.parent().unwrap());
            assert!(cargo.status().unwrap().success(), "the examples were not built");
        }
        folder
    })
}

/// The names of the examples, sorted.
fn names() -> Vec<String> {
    let files = std::fs::read_dir("examples").unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<String> = files.map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

/// What an example prints.
fn printed<const N: usize>(name: &str, arguments: [&str; N]) -> String {
    let output = Command::new(folder().join(name)).args(arguments).output().unwrap();
    assert!(output.status.success(), "{name}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// The numbers of each line.
fn pairs(output: &str) -> Vec<(u64, u16)> {
    let pair = |line: &str| line.split_once(' ').map(|(n, value)| (n.parse().unwrap(), value.parse().unwrap()));
    output.lines().map(|line| pair(line).unwrap()).collect()
}

#[test]
fn every_example_is_short_and_has_a_head_line() {
    let tested =
        ["check_certificate", "first_values", "prove_period", "read_run", "run_with_progress", "stream_maxima"];
    assert_eq!(names(), tested);
    for name in names() {
        let source = std::fs::read_to_string(format!("examples/{name}.rs")).unwrap();
        assert!(source.starts_with("//! "), "{name}");
        assert!(source.lines().count() <= LONGEST, "{name}");
    }
}

#[test]
fn first_values_prints_the_values_of_eureka_16() {
    let mut published = Vec::new();
    for line in data("guy-eureka16.txt").lines() {
        let (first, digits) = line.split_once(' ').unwrap();
        let first: u64 = first.parse().unwrap();
        published.extend((first..).zip(digits.bytes().map(|digit| u16::from(digit - b'0'))));
    }
    assert_eq!(published.len(), 39);
    assert_eq!(pairs(&printed("first_values", [])), published);
    assert_eq!(pairs(&printed("first_values", ["kayles", "5"])), [(0, 0), (1, 1), (2, 2), (3, 3), (4, 1)]);
}

#[test]
fn stream_maxima_finds_the_first_value_above_255() {
    let fact =
        data("facts.csv").lines().find_map(|line| line.strip_prefix("grundy,first above 255,").map(str::to_owned));
    let (n, value) = fact.as_deref().unwrap().split_once(',').unwrap();
    let published = (n.parse().unwrap(), value.parse().unwrap());
    let maxima = pairs(&printed("stream_maxima", ["7300000"]));
    // Grundy, Eureka 2 (1939): the first 1, 2 and 3.
    assert_eq!(maxima[..3], [(3, 1), (5, 2), (13, 3)]);
    assert_eq!(maxima.iter().find(|maximum| maximum.1 > 255), Some(&published));
    assert!(maxima.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
}

/// Guy and Smith (1956): from 71 on, Kayles has these values at n = 0, 1, … modulo 12, and none above 8 before.
const KAYLES: [u16; 12] = [4, 1, 2, 8, 1, 4, 7, 2, 1, 8, 2, 7];

#[test]
fn read_run_prints_the_values_of_a_run() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    run_well("kayles", &dir, &["--to", "5000"]);
    let read = pairs(&printed("read_run", [dir.to_str().unwrap(), "1000", "1100"]));
    let published: Vec<(u64, u16)> = (1000..1100).zip(KAYLES.into_iter().cycle().skip(1000 % 12)).collect();
    assert_eq!(read, published);
}

#[test]
fn run_with_progress_computes_a_run_and_continues_it() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    for _ in 0..2 {
        let said = printed("run_with_progress", [dir.to_str().unwrap()]);
        assert_eq!(said, "1000000 values, the largest is 8\n");
    }
    let read = pairs(&printed("read_run", [dir.to_str().unwrap(), "999996", "1000000"]));
    assert_eq!(read, [(999_996, 4), (999_997, 1), (999_998, 2), (999_999, 8)]);
}

#[test]
fn prove_period_proves_published_periods_and_check_certificate_agrees() {
    let home = tempfile::tempdir().unwrap();
    let table = data("periods.csv");
    for game in [".07", ".77", ".16"] {
        let file = home.path().join("certificate.json");
        let row = table.lines().find_map(|line| line.strip_prefix(game)?.strip_prefix(',')).unwrap();
        let [period, preperiod, _] = row.split(',').collect::<Vec<_>>()[..] else { panic!("{row}") };
        let said = printed("prove_period", [game, file.to_str().unwrap()]);
        assert!(said.starts_with(&format!("period {period}, preperiod {preperiod}, theorem P")), "{said}");
        let said = printed("check_certificate", [file.to_str().unwrap()]);
        assert_eq!(said, format!("0{game} has period {period} from {preperiod} on\n"));
    }
}

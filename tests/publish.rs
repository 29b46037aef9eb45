//! What is published of a run, and where two runs agree.

mod support;

use grundy::checkpoint::testing::forge_run;
use grundy::publish::{Manifest, compare, sha256};
use grundy::run::{Run, RunReader};
use grundy::solver::{self, Method, SequenceStats};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use support::{data, grundy, text};
use tempfile::TempDir;

/// A directory in which commands run.
struct Home(TempDir);

impl Home {
    fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Exit status, stdout and stderr of a command.
    fn command(&self, line: &str) -> (i32, String, String) {
        let output = grundy(line.split_whitespace()).current_dir(self.0.path()).output().unwrap();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    }

    fn well(&self, line: &str) -> String {
        let (status, stdout, stderr) = self.command(line);
        assert_eq!(status, 0, "{line}: {stderr}");
        stdout
    }

    fn fails(&self, status: i32, line: &str, words: &[&str]) {
        let (found, _, stderr) = self.command(line);
        assert_eq!(found, status, "{line}: {stderr}");
        for word in words {
            assert!(stderr.contains(word), "{line} says nothing of {word}: {stderr}");
        }
        assert!(!stderr.contains("panicked"), "{stderr}");
    }

    fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.well(line)).unwrap()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Copies a published directory, with another text in its manifest.
    fn copy(&self, from: &str, to: &str, change: impl Fn(String) -> String) {
        std::fs::create_dir(self.path(to)).unwrap();
        for entry in std::fs::read_dir(self.path(from)).unwrap() {
            let name = entry.unwrap().file_name();
            std::fs::copy(self.path(from).join(&name), self.path(to).join(&name)).unwrap();
        }
        let manifest = self.path(to).join("manifest.json");
        let before = std::fs::read_to_string(&manifest).unwrap();
        let after = change(before.clone());
        assert_ne!(before, after);
        std::fs::write(manifest, after).unwrap();
    }
}

/// FIPS 180-4, examples of SHA-256.
#[test]
fn sha256_of_published_examples() {
    for (bytes, hash) in [
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
        ),
    ] {
        assert_eq!(sha256(bytes.as_bytes()).unwrap(), (bytes.len() as u64, hash.to_owned()));
    }
}

#[test]
fn published_directory_states_the_run_and_its_files() {
    let home = Home::new();
    home.well("-q run grundy --to 200000 --dir run");
    home.well("-q publish run -o there --machine riscv64 --author Ada --author Grace");
    let manifest: Value = serde_json::from_str(&home.read("there/manifest.json")).unwrap();
    let status = home.json("status run --json");
    for key in ["game", "count", "digest", "mask", "rares", "last_rare", "max_value", "max_at", "escapes"] {
        assert_eq!(manifest[key], status[key], "{key}");
    }
    assert_eq!(manifest["computed"]["machine"], "riscv64");
    home.well("-q publish run -o unstated");
    let unstated: Value = serde_json::from_slice(&std::fs::read(home.path("unstated/manifest.json")).unwrap()).unwrap();
    assert_eq!(unstated["computed"]["machine"], Value::Null, "the journal does not state the machine");
    assert_eq!(manifest["segments"], json!([{ "to": 200_000, "digest": status["digest"] }]));
    // The b-file of A002188 in the OEIS has 10001 terms from n = 0.
    let published: Vec<String> = data("grundy-1939.txt").lines().map(str::to_owned).collect();
    assert!(!published.is_empty());
    let bfile = home.read("there/bfile.txt");
    assert_eq!((bfile.lines().count(), bfile.lines().nth(16)), (10_001, Some("16 3")));
    assert_eq!(home.read("there/records.csv"), home.well("find run --records --format csv"));
    assert_eq!(home.read("there/rares.csv"), home.well("find run --rares --format csv"));
    assert_eq!(home.read("there/histogram.csv"), home.well("find run --histogram --format csv"));
    let metadata: Value = serde_json::from_str(&home.read("there/ro-crate-metadata.json")).unwrap();
    let files: Vec<&Value> =
        metadata["@graph"].as_array().unwrap().iter().filter(|entity| entity["@type"] == "File").collect();
    assert_eq!(files.len(), 7, "{files:?}");
    for file in files {
        let (bytes, hash) =
            sha256(std::fs::File::open(home.path("there").join(file["@id"].as_str().unwrap())).unwrap()).unwrap();
        assert_eq!((&file["sha256"], &file["contentSize"]), (&json!(hash), &json!(bytes.to_string())));
    }
    home.fails(1, "publish run -o there", &["not empty"]);
    home.fails(1, "publish there -o new", &["no run here"]);
    assert!(!home.path("new").exists());
}

#[test]
fn altered_published_files_and_manifests_are_refused() {
    let home = Home::new();
    home.well("-q run kayles --to 30000 --dir run");
    home.well("-q publish run -o there");
    for (i, (from, to)) in [
        ("\"count\": 30000", "\"count\": 30001"),
        ("grundy-manifest-1", "grundy-manifest-2"),
        ("\"game\": \"0.77\"", "\"game\": \"0.07\""),
        ("\"segment\": 16777216", "\"segment\": 4"),
        ("\"errors\": 0", "\"errors\": 0, \"more\": 1"),
    ]
    .into_iter()
    .enumerate()
    {
        let dir = format!("bad{i}");
        home.copy("there", &dir, |text| text.replacen(from, to, 1));
        home.fails(3, &format!("compare run {dir}"), &["manifest.json", "not a manifest"]);
    }
    std::fs::write(home.path("there/records.csv"), "n,value\n0,0\n").unwrap();
    home.fails(3, "compare run there", &["records.csv", "not the file that the manifest describes"]);
    // The manifest alone makes no statement about files beside it.
    assert_eq!(home.json("compare run there/manifest.json --json")["agree"], 30_000);
}

#[test]
fn confirmation_takes_another_kernel_another_machine_and_equal_digests() {
    let home = Home::new();
    home.well("-q run grundy --to 50000 --dir run");
    home.well("-q run grundy --to 40000 --kernel definition --dir other");
    home.well("-q run grundy --to 40000 --dir same");
    for (run, machine, confirmed) in
        [("other", "elsewhere", true), ("same", "elsewhere", false), ("other", "here", false)]
    {
        let there = format!("{run}-{machine}");
        home.well(&format!("-q publish {run} -o {there} --machine {machine}"));
        let line = format!("compare run {there} --machine here");
        // Both have commits at the same multiples only by chance, and the shorter one ends where the longer has no digest.
        let found = home.json(&format!("{line} --json"));
        assert_eq!(found["differs"], Value::Null, "{found}");
        assert!(found["agree"].as_u64().unwrap() <= 40_000, "{found}");
        assert!(confirmed || found["confirmed"] == 0, "{found}");
    }
    // Two runs of equal length.
    home.well("-q run grundy --to 50000 --kernel definition --dir second");
    home.well("-q publish second -o second-there --machine elsewhere");
    assert_eq!(home.json("status run --json")["confirmed"], 0);
    home.fails(1, "compare run second --record", &["does not confirm"]);
    let found = home.json("compare run second-there --machine here --record --json");
    assert_eq!((&found["agree"], &found["confirmed"]), (&json!(50_000), &json!(50_000)));
    assert_eq!(home.json("status run --json")["confirmed"], 50_000);
    assert!(home.well("status run").contains("50,000 values, by another kernel on another machine"));
    // The note survives the growth of the run, and is published.
    home.well("-q run --dir run --to 60000");
    assert_eq!(home.json("status run --json")["confirmed"], 50_000);
    home.well("-q publish run -o there");
    let manifest = Manifest::parse(home.read("there/manifest.json").as_bytes()).unwrap();
    assert_eq!((manifest.confirmed_values(), manifest.confirmed[0].kernel.as_str()), (50_000, "definition"));
    assert!(home.read("there/README.md").contains("first 50000 values with equal digests"));
    // A note about other values does not count.
    let note = home.read("run/confirmed.json").replace(&manifest.confirmed[0].digest, &"1".repeat(64));
    std::fs::write(home.path("run/confirmed.json"), note).unwrap();
    assert_eq!(home.json("status run --json")["confirmed"], 0);
    std::fs::write(home.path("run/confirmed.json"), "[{]").unwrap();
    home.fails(3, "status run", &["confirmed.json"]);
}

/// Two runs of which one has wrong values from n = 20,000 on, and commits at several counts.
#[test]
fn compare_names_the_first_range_that_differs() {
    let home = Home::new();
    let rule = "grundy".parse().unwrap();
    for to in [10_000, 20_000, 30_000] {
        Run::builder(&rule, home.path("right").as_path()).to(to).run().unwrap();
    }
    let run = RunReader::open(&home.path("right")).unwrap();
    let right = run.values(0..30_000).unwrap();
    let wrong = [&right[..25_000], &[right[25_000] - 1]].concat();
    let values = solver::extend(&rule, Method::default(), wrong, right.len(), |_| true).unwrap();
    let stats = SequenceStats::of(values.as_slice(), run.space(), &SequenceStats::default()).unwrap();
    let mut record = run.contents.last.clone();
    (record.rares, record.last_rare) = (stats.rare_positions.len() as u64, stats.last_rare());
    (record.max_value, record.max_at) = (stats.max_value, stats.max_at);
    std::fs::create_dir(home.path("wrong")).unwrap();
    forge_run(&home.path("wrong"), &values, record).unwrap();
    let (status, stdout, _) = home.command("compare right wrong --json");
    let found: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((status, &found["differs"]), (3, &json!({ "segment": 0, "from": 0, "to": 30_000 })), "{found}");
    // A reader that knows more digests of both finds a smaller range.
    let points = |dir: &str| Manifest::of(&RunReader::open(&home.path(dir)).unwrap(), None);
    let (one, mut two) = (points("right"), points("right"));
    two.points.last_mut().unwrap().1 = "1".repeat(64);
    let found = compare(&one, &two).unwrap();
    let differs = found.differs.unwrap();
    assert_eq!((found.agree, differs.from, differs.to), (20_000, 20_000, 30_000));
    home.well("-q run kayles --to 5000 --dir kayles");
    home.fails(1, "compare right kayles", &["grundy", "0.77", "same game"]);
    home.fails(1, "compare right nowhere", &["nowhere"]);
    assert!(!Path::new("nowhere").exists());
}

#[test]
fn verdicts_of_other_runs_are_refused() {
    let home = Home::new();
    home.well("-q run grundy --to 20000 --dir run");
    home.well("-q run grundy --to 20001 --dir other");
    for (run, check) in [("run", "check"), ("other", "wrong")] {
        let units = home.well(&format!("units verify {run} --level exclusion --parts 2 --in {check}"));
        units.lines().for_each(|unit| drop(home.well(&format!("-q unit {unit} --in {check}"))));
        home.well(&format!("merge {check} --json -o {check}.json"));
    }
    home.well("-q publish run -o there --verified check.json");
    let manifest: Value = serde_json::from_str(&home.read("there/manifest.json")).unwrap();
    assert_eq!(
        (&manifest["verified"][0]["verdict"], &manifest["verified"][0]["level"]),
        (&json!("passed"), &json!("exclusion"))
    );
    home.fails(
        1,
        "publish run -o new --verified wrong.json",
        &["wrong.json", "not the verdict of a check of this run"],
    );
    assert!(!home.path("new").exists());
}

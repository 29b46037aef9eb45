//! What is published of a run, and where two runs agree.

use crate::support::{Home, data};
use grundy::checkpoint::testing::forge_run;
use grundy::publish::{Manifest, compare, sha256};
use grundy::run::{Run, RunReader};
use grundy::solver::{self, Method, SequenceStats};
use serde_json::{Value, json};
use std::path::Path;

/// Copies a published directory, with another text in its manifest.
fn copy(home: &Home, from: &str, to: &str, change: impl Fn(String) -> String) {
    std::fs::create_dir(home.path(to)).unwrap();
    for entry in std::fs::read_dir(home.path(from)).unwrap() {
        let name = entry.unwrap().file_name();
        std::fs::copy(home.path(from).join(&name), home.path(to).join(&name)).unwrap();
    }
    let manifest = home.path(to).join("manifest.json");
    let before = std::fs::read_to_string(&manifest).unwrap();
    let after = change(before.clone());
    assert_ne!(before, after);
    std::fs::write(manifest, after).unwrap();
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
    home.restate_machine("run", 0, Some("riscv64"));
    home.well("-q publish run -o there --author Ada --author Grace");
    let manifest: Value = serde_json::from_str(&home.read("there/manifest.json")).unwrap();
    let status = home.json("status run --json");
    for key in ["game", "count", "digest", "mask", "rares", "last_rare", "max_value", "max_at", "escapes"] {
        assert_eq!(manifest[key], status[key], "{key}");
    }
    let kernel = &manifest["computed"]["origins"][0]["kernel"];
    let origins = json!([{ "to": 200_000, "kernel": kernel, "machine": "riscv64" }]);
    assert_eq!(manifest["computed"]["origins"], origins);
    let readme = home.read("there/README.md");
    assert!(readme.contains("on riscv64"));
    let comment = format!(
        "> A002188: a(n) = G(n), where G(n) is the nim-value of a heap of n in the game grundy. G(n) was computed for \
         n < 200000. The largest of these values is {}, first at n = {}. n is rare if G(n) AND ",
        status["max_value"], status["max_at"]
    );
    assert!(readme.contains(&comment), "{readme}");
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
    home.fails(1, "publish run -o there", &["not empty; choose"]);
    std::fs::remove_file(home.path("there/ro-crate-metadata.json")).unwrap();
    home.fails(1, "publish run -o there", &["not empty; an interrupted 'grundy publish'"]);
    home.fails(1, "publish run -o there/README.md", &["README.md", "not a directory"]);
    home.fails(1, "publish there -o new", &["no run here"]);
    // A run that was killed before its first commit.
    let journal = home.read("run/journal.jsonl");
    std::fs::create_dir(home.path("begun")).unwrap();
    for name in ["values.npy", "escapes.npy"] {
        let head = &std::fs::read(home.path("run").join(name)).unwrap()[..4096];
        std::fs::write(home.path("begun").join(name), head).unwrap();
    }
    std::fs::write(home.path("begun/journal.jsonl"), &journal[..4096]).unwrap();
    home.fails(1, "publish begun -o new", &["begun: the run has committed no value"]);
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
        copy(&home, "there", &dir, |text| text.replacen(from, to, 1));
        home.fails(3, &format!("compare run {dir}"), &["manifest.json", "not a manifest"]);
    }
    copy(&home, "there", "outside", |text| text.replacen("\"records.csv\"", "\"../run/values.npy\"", 1));
    home.fails(3, "compare run outside", &["outside/manifest.json", "outside the directory"]);
    std::fs::write(home.path("there/records.csv"), "n,value\n0,0\n").unwrap();
    home.fails(3, "compare run there", &["records.csv", "not the file that the manifest describes"]);
    std::fs::remove_file(home.path("there/records.csv")).unwrap();
    home.fails(3, "compare run there", &["records.csv", "missing"]);
    // A device and a pipe, which could be read without end.
    let records = home.path("there/records.csv");
    std::os::unix::fs::symlink("/dev/zero", &records).unwrap();
    home.fails(3, "compare run there", &["records.csv", "not the file that the manifest describes"]);
    std::fs::remove_file(&records).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &records, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    home.fails(3, "compare run there", &["records.csv", "not the file that the manifest describes"]);
    // The manifest alone makes no statement about files beside it.
    assert_eq!(home.json("compare run there/manifest.json --json")["agree"], 30_000);
}

/// Equal values have equal maxima, and in one space equal rare positions.
#[test]
fn manifests_that_contradict_equal_digests_are_wrong() {
    let home = Home::new();
    home.well("-q run grundy --to 30000 --dir run");
    home.well("-q publish run -o there");
    assert_eq!(home.json("compare run there --json")["contradiction"], Value::Null);
    let manifest = home.object("there/manifest.json");
    for key in ["max_value", "max_at", "rares", "last_rare"] {
        let mut altered = manifest.clone();
        altered[key] = json!(manifest[key].as_u64().unwrap() - 1);
        std::fs::write(home.path("altered.json"), altered.to_string()).unwrap();
        let (status, stdout, _) = home.reply("compare run altered.json --json");
        let found: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!((status, &found["contradiction"], &found["agree"]), (3, &json!(key), &json!(30_000)));
        assert_eq!((&found["confirmed"], &found["obstacle"]), (&json!(0), &json!("contradiction")));
        let (_, stdout, _) = home.reply("compare run altered.json");
        assert!(stdout.contains(&format!("'{key}' differs")), "{stdout}");
    }
    // The first values of a longer sequence: its largest value and its last rare position are among them.
    for (to, name) in [(1 << 24, "segment"), ((1 << 24) + 1000, "longer-segment")] {
        home.well(&format!("-q run kayles --to {to} --dir {name}-run"));
        home.well(&format!("-q publish {name}-run -o {name}"));
    }
    assert_eq!(home.json("compare longer-segment segment --json")["contradiction"], Value::Null);
    let manifest = home.object("segment/manifest.json");
    for key in ["max_value", "max_at", "rares", "last_rare"] {
        let mut altered = manifest.clone();
        altered[key] = json!(manifest[key].as_u64().unwrap() + 1);
        std::fs::write(home.path("altered.json"), altered.to_string()).unwrap();
        let (status, stdout, _) = home.reply("compare longer-segment altered.json --json");
        let found: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!((status, &found["contradiction"], &found["confirmed"]), (3, &json!(key), &json!(0)), "{stdout}");
    }
    // Without a common digest nothing follows.
    home.well("-q run kayles --to 30000 --dir kayles");
    home.well("-q publish kayles -o longer");
    home.well("-q run kayles --to 20000 --dir shorter");
    home.fails(1, "compare shorter longer --record", &["no digest is known of both"]);
    let (status, stdout, _) = home.reply("compare shorter longer");
    assert!(status == 4 && stdout.contains("no digest is stated by both"), "{stdout}");
}

/// What `compare` says of two runs of equally many values: the number of confirmed values, and the obstacle.
fn confirmed(home: &Home, one: &str, other: &str, more: &str) -> (Value, Value) {
    let found = home.json(&format!("compare {one} {other} --json {more}"));
    let agree = &found["agree"];
    assert!(found["differs"].is_null() && *agree != json!(0) && found["counts"] == json!([agree, agree]), "{found}");
    (found["confirmed"].clone(), found["obstacle"].clone())
}

#[test]
fn confirmation_takes_another_kernel_another_machine_and_equal_digests() {
    let home = Home::new();
    home.well("-q run grundy --to 20000 --dir run");
    home.well("-q run grundy --to 20000 --kernel definition --dir second");
    home.well("-q run grundy --to 20000 --dir third");
    assert_eq!(confirmed(&home, "run", "second", ""), (json!(0), json!("same-machine")));
    home.fails(1, "compare run second --record", &["does not confirm", "another processor model"]);
    home.restate_machine("second", 0, Some("riscv64"));
    home.restate_machine("third", 0, Some("riscv64"));
    assert_eq!(confirmed(&home, "run", "third", ""), (json!(0), json!("same-kernel")));
    home.fails(1, "compare run third --record", &["--kernel"]);
    home.fails(2, "compare run third --machine here", &["recorded", "leave out --machine"]);
    assert_eq!(home.json("status run --json")["confirmed"], 0);
    home.well("-q publish second -o there");
    assert_eq!(confirmed(&home, "run", "there", "--record"), (json!(20_000), Value::Null));
    assert_eq!(home.json("status run --json")["confirmed"], 20_000);
    assert!(home.well("status run").contains("20,000 values, by another kernel on another machine"));
    // The note survives the growth of the run, and is published.
    home.well("-q run --dir run --to 30000");
    assert_eq!(home.json("status run --json")["confirmed"], 20_000);
    home.well("-q publish run -o here");
    let manifest = Manifest::parse(home.read("here/manifest.json").as_bytes()).unwrap();
    assert_eq!((manifest.confirmed_values(), manifest.confirmed[0].origins[0].kernel.as_str()), (20_000, "definition"));
    assert!(home.read("here/README.md").contains("first 20000 values with equal digests"));
    // A note about other values does not count, nor one by the kernel and machine of the run, or by none.
    let good = home.read("run/confirmed.json");
    let run = home.json("status run --json");
    let mut own: Value = serde_json::from_str(&good).unwrap();
    own[0]["origins"][0]["machine"] = run["machines"][0].clone();
    let mut none = own.clone();
    none[0]["origins"] = json!([]);
    for altered in [own, none] {
        std::fs::write(home.path("run/confirmed.json"), altered.to_string()).unwrap();
        assert_eq!(home.json("status run --json")["confirmed"], 0, "{altered}");
    }
    std::fs::write(home.path("run/confirmed.json"), good).unwrap();
    assert_eq!(home.json("status run --json")["confirmed"], 20_000);
    let note = home.read("run/confirmed.json").replace(&manifest.confirmed[0].digest, &"1".repeat(64));
    std::fs::write(home.path("run/confirmed.json"), note).unwrap();
    assert_eq!(home.json("status run --json")["confirmed"], 0);
    std::fs::write(home.path("run/confirmed.json"), "[{]").unwrap();
    // The state of the run does not depend on this file.
    for (line, state) in [
        ("status run", "unknown: the file of confirmations is damaged"),
        ("status run --json", "\"state\":\"stopped\""),
        ("status run --json", "\"confirmed\":null"),
    ] {
        let (status, stdout, stderr) = home.reply(line);
        assert!(status == 3 && stdout.contains(state) && stderr.contains("confirmed.json"), "{stdout}{stderr}");
    }
}

#[test]
fn machines_of_all_parts_of_a_run_are_stated() {
    let home = Home::new();
    let records = |home: &Home| std::fs::metadata(home.path("run/journal.jsonl")).unwrap().len() as usize / 4096;
    home.well("-q run grundy --to 30000 --dir run");
    // Every record states the class of this machine.
    let here = home.json("status run --json")["machines"][0].as_str().unwrap().to_owned();
    assert!(here.starts_with(std::env::consts::ARCH), "{here}");
    assert_eq!(home.read("run/journal.jsonl").matches(&format!("\"machine\":\"{here}\"")).count(), records(&home));
    // A program of an earlier version states none, and a process on another machine adds the other values.
    home.restate_machine("run", 0, None);
    let old = records(&home);
    home.well("-q run --dir run --to 40000");
    home.restate_machine("run", old, Some("riscv64"));
    let older = records(&home);
    home.well("-q run --dir run --to 50000 --kernel definition");
    let status = home.json("status run --json");
    assert_eq!(status["machines"], json!([null, "riscv64", here]));
    let text = home.well("status run").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("a machine that is not recorded, riscv64, ") && text.contains("computed on"), "{text}");
    home.well("-q verify run");
    assert!(records(&home) > older);
    home.well("-q run grundy --to 50000 --kernel scalar --dir other");
    home.restate_machine("other", 0, Some("loongarch64"));
    // Without the machine of the first values nothing is confirmed.
    assert_eq!(confirmed(&home, "run", "other", ""), (json!(0), json!("unknown-machine")));
    home.fails(1, "publish run -o new --other other", &["not recorded", "--machine"]);
    assert!(home.well("compare run other").contains("a machine that is not recorded, riscv64"));
    assert_eq!(confirmed(&home, "run", "other", "--machine s390x"), (json!(50_000), Value::Null));
    home.well("-q publish run -o there --machine s390x --other other --other other");
    let manifest = home.object("there/manifest.json");
    let origin = |to: u64, machine: &str, kernel: &Value| json!({ "to": to, "kernel": kernel, "machine": machine });
    let fast = &manifest["computed"]["origins"][0]["kernel"];
    let expected =
        [origin(30_000, "s390x", fast), origin(40_000, "riscv64", fast), origin(50_000, &here, &json!("definition"))];
    assert_eq!(manifest["computed"]["origins"], json!(expected));
    assert_eq!(manifest["confirmed"].as_array().unwrap().len(), 1);
    assert_eq!(manifest["confirmed"][0]["origins"], json!([origin(50_000, "loongarch64", &json!("scalar"))]));
    // The values from 30,000 on have the kernel and the machine of the first ones of both.
    home.restate_machine("other", 0, Some("s390x"));
    assert_eq!(confirmed(&home, "run", "other", "--machine s390x"), (json!(0), json!("same-machine")));
    home.restate_machine("other", 0, Some("riscv64"));
    let (values, obstacle) = confirmed(&home, "run", "other", "--machine s390x");
    // As many as up to the last common commit before 30,000.
    assert!(values.as_u64().unwrap() <= 30_000, "{values}");
    assert_eq!(obstacle, "same-machine");
}

/// The same code computes the values of these games with every kernel.
#[test]
fn games_that_use_no_kernel_are_confirmed_by_the_definition_alone() {
    for (game, to, by_counts) in [("0.8F", 600, false), ("sub:1,4,10", 5000, false), ("nim", 5000, true)] {
        let home = Home::new();
        for kernel in ["auto", "scalar", "definition"] {
            home.well(&format!("-q run {game} --to {to} --kernel {kernel} --dir {kernel}"));
        }
        for other in ["scalar", "definition"] {
            home.restate_machine(other, 0, Some("riscv64"));
        }
        assert_eq!(confirmed(&home, "auto", "scalar", ""), (json!(0), json!("same-kernel")), "{game}");
        let found = confirmed(&home, "auto", "definition", "");
        let is_other = game == "0.8F" || by_counts;
        let expected = if is_other { (json!(to), Value::Null) } else { (json!(0), json!("same-kernel")) };
        assert_eq!(found, expected, "{game}");
    }
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
    let stats = SequenceStats::of(&values, run.space(), &SequenceStats::default()).unwrap();
    let mut record = run.contents.last.clone();
    (record.rares, record.last_rare) = (stats.rare_positions.len() as u64, stats.last_rare());
    (record.max_value, record.max_at) = (stats.max_value, stats.max_at);
    std::fs::create_dir(home.path("wrong")).unwrap();
    forge_run(&home.path("wrong"), &values, record).unwrap();
    let (status, stdout, _) = home.reply("compare right wrong --json");
    let found: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((status, &found["differs"]), (3, &json!({ "segment": 0, "from": 0, "to": 30_000 })), "{found}");
    assert_eq!(home.reply("compare right wrong --json --record").0, 3);
    assert_eq!(home.reply("compare right wrong --json --record").1, stdout);
    let text = home.reply("compare right wrong").1;
    assert!(text.contains("no digest is equal; the first difference is in 0..30,000, in segment 0"), "{text}");
    // A reader that knows more digests of both finds a smaller range.
    let points = |dir: &str| Manifest::of(&RunReader::open(&home.path(dir)).unwrap());
    let (one, mut two) = (points("right"), points("right"));
    two.points.last_mut().unwrap().1 = "1".repeat(64);
    let found = compare(&one, &two).unwrap();
    let differs = found.differs.unwrap();
    assert_eq!((found.agree, differs.from, differs.to), (20_000, 20_000, 30_000));
    home.well("-q run kayles --to 5000 --dir kayles");
    home.fails(1, "compare right kayles", &["grundy", "0.77", "same game"]);
    home.fails(1, "compare right nowhere", &["nowhere"]);
    assert!(!home.path("nowhere").exists());
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
    assert!(
        home.read("there/README.md")
            .contains("- checked at level exclusion: 20,000 values in 0..20,000, in a run of 20,000 values\n")
    );
    home.fails(
        1,
        "publish run -o new --verified wrong.json",
        &["wrong.json", "not the verdict of a check of this run"],
    );
    let passed: Value = serde_json::from_str(&home.read("check.json")).unwrap();
    let changes = [
        ("failed.json", json!({"verdict": "failed", "wrong": ["G(5) is 2"]}), "failed (G(5) is 2)"),
        ("hidden.json", json!({"wrong": ["G(5) is 2"]}), "failed (G(5) is 2)"),
        ("nothing.json", json!({"verdict": "incomplete", "checked": 0, "ranges": []}), "checked no value"),
        ("game.json", json!({"game": "0.77"}), "not the verdict of a check of this run"),
    ];
    let malformed = [
        ("level.json", json!({"level": "exclusion\n# all"})),
        ("verdict.json", json!({"verdict": "good"})),
        ("order.json", json!({"ranges": [[5, 9], [0, 5]]})),
        ("large.json", json!({"checked": 20_001})),
        ("few.json", json!({"checked": 1})),
        ("none.json", json!({"units": 0, "expected": 0})),
        ("more.json", json!({"note": "passed"})),
        ("kernel.json", json!({"programs": ["grundy\n# all"]})),
        ("absent.json", json!({"wrong": null})),
        ("units.json", json!({"units": 1})),
        ("part.json", json!({"ranges": [[0, 9000]], "checked": 9000})),
        ("incomplete.json", json!({"verdict": "incomplete"})),
    ];
    for (name, change, words) in changes {
        let mut verdict = passed.clone();
        change.as_object().unwrap().iter().for_each(|(key, value)| verdict[key] = value.clone());
        std::fs::write(home.path(name), verdict.to_string()).unwrap();
        home.fails(1, &format!("publish run -o new --verified {name}"), &[name, words]);
    }
    for (name, change) in malformed {
        let mut verdict = passed.clone();
        change.as_object().unwrap().iter().for_each(|(key, value)| verdict[key] = value.clone());
        std::fs::write(home.path(name), verdict.to_string()).unwrap();
        home.fails(3, &format!("publish run -o new --verified {name}"), &[name, "not a verdict"]);
    }
    home.fails(1, "publish run -o new --verified check.json --verified check.json", &["given twice"]);
    for within in ["run/new", "run/new/newer"] {
        home.fails(1, &format!("publish run -o {within}"), &["run is a run directory"]);
    }
    assert!(!home.path("run/new").exists());
    assert!(!home.path("new").exists());
}

/// The files have the SHA-256 that the manifest states, and the digest of a run is that of the list of runs.
#[test]
fn published_results_agree_with_their_manifests() {
    let home = Home::new();
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/results");
    let listed: Vec<Value> =
        data("results/octal-runs.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut count = 0;
    for entry in std::fs::read_dir(results).unwrap() {
        let dir = entry.unwrap().path();
        if !dir.join("manifest.json").exists() {
            continue;
        }
        let manifest: Value = serde_json::from_slice(&std::fs::read(dir.join("manifest.json")).unwrap()).unwrap();
        let dir = dir.to_str().unwrap();
        assert_eq!(home.json(&format!("compare {dir} {dir} --json"))["agree"], manifest["count"], "{dir}");
        for run in listed.iter().filter(|run| run["game"] == manifest["game"] && run["count"] == manifest["count"]) {
            assert_eq!(run["digest"], manifest["digest"], "{dir}");
        }
        count += 1;
    }
    assert!(count > 0);
}

/// The files of two runs would have correct hashes in either manifest.
#[test]
fn two_processes_do_not_mix_their_files() {
    let home = Home::new();
    home.well("-q run .6 --to 30000 --dir one");
    home.well("-q run kayles --to 30000 --dir two");
    for round in 0..5 {
        let barrier = std::sync::Barrier::new(2);
        let published = |run: &str| {
            barrier.wait();
            home.command(&format!("-q publish {run} -o new{round}")).status.success()
        };
        let [one, two] = std::thread::scope(|scope| {
            let both = ["one", "two"].map(|run| {
                scope.spawn({
                    let published = &published;
                    move || published(run)
                })
            });
            both.map(|thread| thread.join().unwrap())
        });
        assert!(one != two, "round {round}: {one}, {two}");
        home.well(&format!("compare new{round} {}", if one { "one" } else { "two" }));
    }
}

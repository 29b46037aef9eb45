//! Surveys and their tables: which records belong to a survey, which are missing, and which cannot be true.

use crate::support::{Home, json_of, reply, run_well, text};
use grundy::kernel::Kernel;
use grundy::solver::Method;
use grundy::survey::{Games, Plan, Record, codes, contradiction, examine};
use grundy::theory::rule::Rule;
use grundy::theory::standard_form::StandardForm;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The fields of a record, without its seal.
fn unsealed(home: &Home, file: &str) -> Value {
    let mut record = home.object(file);
    record.as_object_mut().unwrap().remove("seal");
    record
}

/// Writes a record or a plan with changed fields. A record has the seal of its changed text.
fn change(home: &Home, from: &str, to: &str, fields: &[(&str, Value)]) {
    let mut object = home.object(from);
    for (key, value) in fields {
        object[*key] = value.clone();
    }
    if let Some(seal) = object.get_mut("seal") {
        *seal = "".into();
        let hash = blake3::hash(object.to_string().as_bytes());
        object["seal"] = hash.to_hex().as_str().into();
    }
    std::fs::create_dir_all(home.path(to).parent().unwrap()).unwrap();
    std::fs::write(home.path(to), object.to_string()).unwrap();
}

/// Stdout and stderr of a command, which must succeed.
fn both(home: &Home, line: &str) -> (String, String) {
    let (status, stdout, stderr) = home.reply(line);
    assert_eq!(status, 0, "{line}: {stderr}");
    (stdout, stderr)
}

fn entries(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> =
        files.map(|path| (path.to_string_lossy().into_owned(), std::fs::read(path).unwrap())).collect();
    all.sort();
    all
}

#[test]
fn records_of_one_game_agree_for_all_lengths_and_methods() {
    let stop = AtomicBool::new(false);
    let (fast, slow) = (Method::Sparse(Kernel::best()), Method::Definition);
    let names = ["grundy", "grundy:d=3", "remove-a-square", "0.6", "0.007", "0.16", "0.104", "4.322"];
    let games = codes(2).into_iter().chain(names.map(|name| name.parse().unwrap()));
    for rule in games {
        let mut lengths =
            vec![(fast, 3), (fast, 64), (fast, 300), (slow, 300), (fast, 1000), (slow, 1000), (fast, 5000)];
        if rule.name() == "grundy" {
            lengths.extend([(fast, 1 << 16), (fast, 70_000)]); // with rare positions
        }
        let records: Vec<Record> = lengths
            .into_iter()
            .filter_map(|(method, to)| examine(&rule, method, to, &stop).unwrap())
            .inspect(|record| {
                let name = format!("{}.json", rule.directory_name());
                assert_eq!(Record::parse(&name, record.file_text().as_bytes()).as_ref(), Ok(record), "{name}");
            })
            .collect();
        for (i, a) in records.iter().enumerate() {
            for b in &records[i..] {
                assert_eq!((contradiction(a, b), contradiction(b, a)), (None, None), "{a:?}\n{b:?}");
            }
        }
    }
}

#[test]
fn merge_refuses_records_that_cannot_both_be_true() {
    let home = Home::new();
    std::fs::write(home.path("games"), "kayles\n").unwrap();
    home.well("-q survey games --to 5000 -o good");
    let good = home.object("good/0.77.json");
    assert_eq!((&good["status"], &good["period"], &good["preperiod"]), (&json!("proved"), &json!(12), &json!(71)));
    let far = ("checked_through", json!(100_000_000));
    let observed = [("status", json!("observed")), ("theorem", Value::Null), far.clone()];
    let none =
        [&observed[..], &[("status", json!("none")), ("period", Value::Null), ("preperiod", Value::Null)]].concat();
    for (i, fields) in [
        vec![far.clone(), ("max_value", json!(77))],
        vec![far.clone(), ("preperiod", json!(70))],
        vec![far.clone(), ("period", json!(24))],
        vec![("digest", json!("0".repeat(64)))],
        [&observed[..], &[("period", json!(13))]].concat(),
        [&observed[..], &[("preperiod", json!(90))]].concat(),
        none,
    ]
    .into_iter()
    .enumerate()
    {
        let dir = format!("bad{i}");
        change(&home, "good/0.77.json", &format!("{dir}/0.77.json"), &fields);
        for dirs in [format!("good {dir}"), format!("{dir} good")] {
            home.fails(3, &format!("merge {dirs}"), &["0.77.json", "contradicts"]);
        }
    }
    // A longer search with the same result.
    change(&home, "good/0.77.json", "more/0.77.json", std::slice::from_ref(&far));
    assert!(home.well("merge good more").contains("| 100000000 |"));
    // A proof outweighs a longer search without one.
    change(&home, "good/0.77.json", "seen/0.77.json", &observed);
    assert_eq!(home.well("merge seen good"), home.well("merge good"));
}

#[test]
fn merge_names_the_versions_that_wrote_the_records() {
    let home = Home::new();
    std::fs::write(home.path("games"), "kayles\n.07\n").unwrap();
    home.well("-q survey games --to 5000 -o dir");
    let (_, _, stderr) = home.reply("merge dir");
    assert!(!stderr.contains("versions"), "{stderr}");
    change(&home, "dir/0.07.json", "dir/0.07.json", &[("program", json!("grundy 0.0.1"))]);
    let (status, _, stderr) = home.reply("merge dir");
    assert!(
        status == 0 && stderr.contains("2 versions of the program wrote these records: grundy 0.0.1; "),
        "{stderr}"
    );
}

#[test]
fn a_record_of_p4_needs_values_for_its_window() {
    let home = Home::new();
    std::fs::write(home.path("games"), "grundy\n").unwrap();
    home.well("-q survey games --to 2^18 -o sparse");
    let record = home.object("sparse/grundy.json");
    let [max_at, last, count] = ["max_at", "last_rare", "checked_through"].map(|key| record[key].as_u64().unwrap());
    let merged = |period: u64| {
        let fields = [
            ("status", json!("proved")),
            ("theorem", json!("P4")),
            ("preperiod", json!(max_at)),
            ("period", json!(period)),
        ];
        change(&home, "sparse/grundy.json", "forged/grundy.json", &fields);
        home.reply("merge forged").0
    };
    // Before a window there are twice the last rare position and d = 1 values; no tokens are removed.
    let longest = count - 2 * last - 1;
    assert_eq!((merged(longest), merged(longest + 1)), (0, 3), "{last}, {count}");
}

#[test]
fn inconsistent_or_hostile_fields_are_damage_and_never_printed_raw() {
    let home = Home::new();
    std::fs::write(home.path("games"), "kayles\n").unwrap();
    home.well("-q survey games --to 5000 -o good");
    std::fs::write(home.path("games"), "grundy\n").unwrap();
    home.well("-q survey games --to 2^16 -o sparse");
    let digest = home.object("good/0.77.json")["digest"].as_str().unwrap().to_owned();
    for fields in [
        vec![("digest", json!("\u{1b}[31mred\n"))],
        vec![("digest", json!(digest.to_uppercase()))],
        vec![("digest", json!(format!("{digest}0")))],
        vec![("program", json!("grundy\u{1b}]0;x\u{7}"))],
        vec![("program", json!("p".repeat(300)))],
        vec![("program", json!("\u{202e}"))],
        vec![("game", json!("0.7\u{1b}7"))],
        vec![("game", json!("kayles"))],
        vec![("game", json!("0.770"))],
        vec![("format", json!("grundy-survey-2"))],
        vec![("status", json!("observed"))],
        vec![("status", json!("none"))],
        vec![("status", json!("\u{1b}[31m"))],
        vec![("period", Value::Null)],
        vec![("period", json!(0))],
        vec![("period", json!(u64::MAX))],
        vec![("preperiod", Value::Null)],
        vec![("preperiod", json!(5000))],
        vec![("saltus", json!(1))],
        vec![("theorem", Value::Null)],
        vec![("theorem", json!("P2"))],
        vec![("checked_through", json!(100))],
        vec![("checked_through", json!(167))],
        vec![("max_at", json!(83))],
        vec![("max_at", json!(0))],
        vec![("max_value", json!(0))],
        vec![("position", json!(1))],
        vec![("mask", json!(15))],
        vec![("rares", json!(3))],
        vec![("to", json!(0))],
        vec![("\u{1b}[31m", json!(0))],
    ] {
        change(&home, "good/0.77.json", "bad/0.77.json", &fields);
        home.fails(3, "merge bad", &["bad/0.77.json", "not a record"]);
    }
    for fields in [
        ("position", json!(7)),
        ("mask", json!(0)),
        ("rares", Value::Null),
        ("rares", json!(0)),
        ("rares", json!(60_000)),
        ("last_rare", json!(65_536)),
        ("last_rare", json!(1)),
        ("theorem", json!("P4")),
    ] {
        change(&home, "sparse/grundy.json", "bad-sparse/grundy.json", &[fields]);
        home.fails(3, "merge bad-sparse", &["bad-sparse/grundy.json", "not a record"]);
    }
    std::fs::remove_file(home.path("bad/0.77.json")).unwrap();
    std::fs::write(home.path("bad/\u{1b}[31m.json"), "{}").unwrap();
    home.fails(3, "merge bad", &["u{1b}[31m.json"]);
    std::fs::remove_file(home.path("bad/\u{1b}[31m.json")).unwrap();
    std::fs::write(home.path("bad/0.77.json"), vec![b' '; 1 << 17]).unwrap();
    home.fails(3, "merge bad", &["bad/0.77.json", "longer than", "remove it"]);
    let line = home.well("merge --json good");
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), unsealed(&home, "good/0.77.json"));
}

#[test]
fn every_flipped_bit_of_a_record_is_damage() {
    let home = Home::new();
    std::fs::write(home.path("games"), "0.6\n").unwrap();
    home.well("-q survey games --to 5000 -o good");
    let good = std::fs::read(home.path("good/0.6.json")).unwrap();
    assert!(Record::parse("0.6.json", &good).is_ok());
    for place in 0..8 * good.len() {
        let mut bad = good.clone();
        bad[place / 8] ^= 1 << (place % 8);
        assert!(Record::parse("0.6.json", &bad).is_err(), "bit {place}");
    }
    let unsealed = unsealed(&home, "good/0.6.json").to_string();
    assert_eq!(Record::parse("0.6.json", unsealed.as_bytes()), Err("it has no seal".into()));
}

#[test]
fn merge_lists_missing_games_and_writes_no_table() {
    let home = Home::new();
    let survey = "-q survey --digits 2 --to 200";
    for shard in 0..8 {
        home.well(&format!("{survey} --shard {shard}/8 -o s{shard}"));
    }
    home.well(&format!("{survey} -o whole"));
    let table = home.well("merge whole");
    assert_eq!(both(&home, "merge s7 s1 s2 s3 s4 s5 s6 s0"), (table.clone(), String::new()));
    // Two of eight shards are missing.
    let two = home.fails(
        4,
        "merge s0 s3 -o table.md",
        &["of 128 results are missing", "--partial", "shard 1/8", "shard 7/8"],
    );
    assert!(!two.contains("shard 0/8") && !two.contains("shard 3/8"), "{two}");
    assert!(!home.path("table.md").exists());
    let (partial, warning) = both(&home, "merge s0 s3 --partial");
    assert!(partial.lines().count() > 2 && partial.lines().count() < table.lines().count());
    assert!(partial.lines().all(|line| table.contains(line)) && warning.contains("shard 1/8"), "{partial}{warning}");
    // The records of the whole survey replace the missing shards.
    assert_eq!(home.well("merge s0 whole"), table);
    // A removed record, many, and one that was not searched as far as the plan requires.
    std::fs::remove_file(home.path("whole/0.4.json")).unwrap();
    home.fails(4, "merge whole", &["1 of 128 results are missing", "0.4: no record (whole)"]);
    for game in codes(2) {
        let _ = std::fs::remove_file(home.path(&format!("whole/{game}.json")));
    }
    let all = home.fails(4, "merge whole", &["128 of 128 results are missing", "and 108 more"]);
    assert!(all.lines().count() < 25, "{all}");
    home.well(&format!("{survey} -o whole"));
    assert_eq!(home.well("merge whole"), table);
    let open =
        codes(2).into_iter().find(|game| home.object(&format!("whole/{game}.json"))["status"] != "proved").unwrap();
    change(&home, &format!("whole/{open}.json"), &format!("whole/{open}.json"), &[("to", json!(100))]);
    home.fails(4, "merge whole", &[&format!("{open}: examined up to 100 values, not 200")]);
}

#[test]
fn merge_requires_surveys_and_reports_unknown_completeness() {
    let home = Home::new();
    std::fs::create_dir(home.path("empty")).unwrap();
    run_well("kayles", &home.path("run"), &["--to", "5000"]);
    std::fs::write(home.path("games"), "kayles\n0.6\n").unwrap();
    home.well("-q survey games --to 500 -o good");
    for bad in ["empty", "run", "good empty"] {
        home.fails(1, &format!("merge {bad}"), &["no survey here"]);
    }
    home.fails(1, "merge nowhere", &["nowhere: no such directory", "grundy survey"]);
    home.fails(1, "merge good games", &["games: not a directory"]);
    home.fails(1, "-q survey games --to 500 -o games", &["games: not a directory"]);
    let table = home.well("merge good");
    for output in ["good/survey.plan", "good/0.77.json", "good/../good/table", "good/unit.jsonl"] {
        let there = entries(&home.path("good"));
        home.fails(1, &format!("merge good -o {output}"), &[output, "the results that are merged"]);
        assert_eq!(entries(&home.path("good")), there);
    }
    home.well("merge good -o good/survey.md");
    std::fs::remove_file(home.path("good/survey.plan")).unwrap();
    let (same, warning) = both(&home, "merge good");
    assert!(
        same == table && warning.contains("good") && warning.contains("cannot tell whether records are missing"),
        "{warning}"
    );
    // The next survey there writes the plan.
    home.well("-q survey games --to 500 -o good");
    assert_eq!(both(&home, "merge good"), (table, String::new()));
}

#[test]
fn a_survey_is_continued_by_its_own_plan_only() {
    let home = Home::new();
    std::fs::write(home.path("games"), "kayles\n0.6\n# a comment\n").unwrap();
    std::fs::write(home.path("same"), "0.6\n.77\n0.770\n").unwrap();
    std::fs::write(home.path("others"), "kayles\n").unwrap();
    home.well("-q survey games --to 500 --shard 1/3 -o out");
    let before = entries(&home.path("out"));
    for other in ["others --shard 1/3", "games --shard 0/3", "games --shard 1/4", "games", "--digits 1 --shard 1/3"] {
        home.fails(1, &format!("-q survey {other} --to 500 -o out"), &["out", "shard 1/3", "choose another"]);
        assert_eq!(entries(&home.path("out")), before);
    }
    home.fails(1, "-q survey games --to 400 --shard 1/3 -o out", &["out", "500"]);
    assert_eq!(entries(&home.path("out")), before);
    home.well("-q survey same --to 500 --shard 1/3 -o out");
    home.well("-q survey games --to 600 --shard 1/3 -o out");
    assert_eq!(home.object("out/survey.plan")["to"], 600);
    for plan in ["{}", "\u{1b}[31m", "{\"\u{1b}\":1}"] {
        std::fs::write(home.path("out/survey.plan"), plan).unwrap();
        home.fails(3, "-q survey games --to 600 --shard 1/3 -o out", &["out/survey.plan"]);
        home.fails(3, "merge out", &["out/survey.plan"]);
    }
}

#[test]
fn foreign_files_are_not_overwritten() {
    let home = Home::new();
    for name in ["survey.md", "survey.csv", "notes.json", "lock", ".hidden"] {
        let dir = home.path(&format!("of-{name}"));
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join(name), "mine").unwrap();
        home.fails(1, &format!("-q survey --digits 1 --to 100 -o of-{name}"), &[name, "empty or a new"]);
        assert_eq!(entries(&dir).len(), 1);
        assert_eq!(std::fs::read_to_string(dir.join(name)).unwrap(), "mine");
    }
    run_well("kayles", &home.path("run"), &["--to", "5000"]);
    let before = entries(&home.path("run"));
    home.fails(1, "-q survey --digits 1 --to 100 -o run", &["is a run directory"]);
    assert_eq!(entries(&home.path("run")), before);
    // An empty file 'lock' does not make a survey of a directory.
    std::fs::create_dir(home.path("locked")).unwrap();
    std::fs::write(home.path("locked/lock"), "").unwrap();
    std::fs::write(home.path("locked/survey.csv"), "mine").unwrap();
    home.fails(1, "-q survey --digits 1 --to 100 -o locked", &["survey.csv", "empty or a new"]);
    assert_eq!(home.read("locked/survey.csv"), "mine");
    for inside in ["run/sub", "run/sub/survey"] {
        home.fails(1, &format!("-q survey --digits 1 --to 100 -o {inside}"), &["is a run directory"]);
        assert!(!home.path("run/sub").exists());
    }
    home.fails(1, "-q survey --digits 1 --to 100 -o -", &["means stdout"]);
    // An empty directory, and one whose survey was stopped before its first record.
    std::fs::create_dir(home.path("empty")).unwrap();
    home.well("-q survey --digits 1 --to 100 -o empty");
    std::fs::create_dir(home.path("begun")).unwrap();
    std::fs::write(home.path("begun/lock"), "").unwrap();
    std::fs::write(home.path("begun/survey.plan.part"), "{").unwrap();
    home.well("-q survey --digits 1 --to 100 -o begun");
}

#[test]
fn records_of_other_games_are_no_part_of_a_survey() {
    let home = Home::new();
    std::fs::write(home.path("games"), "kayles\n0.6\n").unwrap();
    std::fs::write(home.path("others"), "0.75\n").unwrap();
    home.well("-q survey others --to 500 -o other");
    home.well("-q survey games --to 500 -o out");
    std::fs::copy(home.path("other/0.75.json"), home.path("out/0.75.json")).unwrap();
    let before = entries(&home.path("out"));
    for line in ["-q survey games --to 500 -o out", "merge out"] {
        home.fails(1, line, &["0.75.json", "belongs to no game of this survey", "move it"]);
        assert_eq!(entries(&home.path("out")), before, "{line}");
    }
    // Without its plan, the directory is still not that of a survey of other games.
    std::fs::remove_file(home.path("out/0.75.json")).unwrap();
    std::fs::remove_file(home.path("out/survey.plan")).unwrap();
    home.fails(1, "-q survey others --to 500 -o out", &["0.6.json", "belongs to no game of this survey"]);
    assert!(!home.path("out/survey.plan").exists());
}

#[test]
fn a_survey_is_not_continued_with_a_shorter_time_limit() {
    let home = Home::new();
    std::fs::write(home.path("games"), "kayles\n").unwrap();
    let survey = "-q survey games --to 500 -o out";
    home.fails(2, &format!("{survey} --time-limit 1500ms"), &["whole number of seconds"]);
    home.well(&format!("{survey} --time-limit 10s"));
    home.fails(1, &format!("{survey} --time-limit 9"), &["for up to 10 s", "--time-limit 10 or more"]);
    home.well(&format!("{survey} --time-limit 11"));
    home.well(survey);
    home.fails(1, &format!("{survey} --time-limit 11"), &["without a time limit", "omit --time-limit"]);
}

#[test]
fn merge_warns_of_shards_that_are_examined_to_different_extents() {
    let home = Home::new();
    for (shard, to) in [(0, 300), (1, 200)] {
        home.well(&format!("-q survey --digits 2 --to {to} --shard {shard}/2 -o s{shard}"));
    }
    let (_, warning) = both(&home, "merge s0 s1");
    assert!(warning.contains("300 values (s0), 200 values (s1)"), "{warning}");
    home.well("-q survey --digits 2 --to 300 --shard 1/2 -o s1");
    assert_eq!(both(&home, "merge s0 s1").1, "");
}

#[test]
fn a_survey_in_use_is_refused_as_temporary() {
    let home = Home::new();
    home.well("-q survey --digits 1 --to 100 -o out");
    let lock = std::fs::File::open(home.path("out/lock")).unwrap();
    lock.lock().unwrap();
    home.fails(75, "-q survey --digits 1 --to 100 -o out", &["out", "another process"]);
    // Readers need no lock.
    home.well("merge out");
    drop(lock);
    home.well("-q survey --digits 1 --to 100 -o out");
}

#[test]
fn shards_divide_the_sequences_evenly_by_a_hash_of_the_standard_form() {
    const SHARDS: u64 = 8;
    let plan = |shard| Plan::new(Games::Digits(3), (shard, SHARDS), 100).unwrap();
    let parts: Vec<Vec<_>> = (0..SHARDS).map(|shard| plan(shard).mine()).collect();
    for (shard, part) in (0..).zip(&parts) {
        let form = |rule: &Rule| StandardForm::of(rule).unwrap().rule.name().to_owned();
        let forms: BTreeSet<String> = part.iter().map(form).collect();
        // 279 standard forms: 35 per shard, within four standard deviations.
        assert!((13..=57).contains(&forms.len()), "shard {shard} has {} standard forms", forms.len());
        for form in forms {
            let hash = blake3::hash(form.as_bytes());
            let number = hash.as_bytes()[..8].iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte));
            assert_eq!(number % SHARDS, shard, "{form}");
        }
    }
    let mut all: Vec<&str> = parts.iter().flatten().map(|rule| rule.name()).collect();
    let mut expected: Vec<String> = codes(3).iter().map(|rule| rule.name().to_owned()).collect();
    all.sort_unstable();
    expected.sort_unstable();
    assert_eq!(all, expected);
    assert!(Plan::new(Games::Digits(1), (8, 8), 100).is_err() && Plan::new(Games::Digits(7), (0, 1), 100).is_err());
}

/// Plans of earlier versions assign games to shards by the hash of their names; their shards continue and merge.
#[test]
fn shards_of_earlier_versions_continue_by_their_own_rule() {
    let home = Home::new();
    let survey = "-q survey --digits 2 --to 200";
    home.well(&format!("{survey} -o whole"));
    for shard in 0..2 {
        let dir = format!("s{shard}");
        home.well(&format!("{survey} --shard {shard}/2 -o {dir}"));
        for game in codes(2) {
            let _ = std::fs::remove_file(home.path(&format!("{dir}/{game}.json")));
        }
        let plan = format!("{dir}/survey.plan");
        change(&home, &plan, &plan, &[("sharding", json!("blake3-first-8-bytes-little-endian-mod-shards"))]);
        home.well(&format!("{survey} --shard {shard}/2 -o {dir}"));
        for game in codes(2) {
            let hash = blake3::hash(game.name().as_bytes());
            let is_here = home.path(&format!("{dir}/{game}.json")).exists();
            assert_eq!(is_here, hash.as_bytes()[0] % 2 == shard, "{game}");
        }
    }
    assert_eq!(home.well("merge s0 s1"), home.well("merge whole"));
    home.well(&format!("{survey} --shard 1/2 -o new"));
    home.fails(4, "merge s0 new", &["results are missing"]);
}

/// The games of a group share values that were computed for another game, but each is judged by its own rule.
#[test]
fn equal_games_have_the_records_that_they_have_alone() {
    let games = [
        ".007", ".04", ".042", ".137", ".07", ".764", ".766", "4.004", "4.006", ".156", ".55", ".551", "grundy", ".37",
        ".6",
    ];
    let home = Home::new();
    std::fs::write(home.path("games"), games.join("\n")).unwrap();
    home.well("-q survey games --to 2^16 -o all --threads 3");
    let masks = games.map(|game| {
        let rule: Rule = game.parse().unwrap();
        home.object(&format!("all/{}.json", rule.directory_name()))["mask"].as_u64().unwrap()
    });
    assert!(masks.iter().filter(|&&mask| mask != 0).count() >= 3, "{masks:?}");
    for game in games {
        let rule: Rule = game.parse().unwrap();
        let alone = examine(&rule, Method::default(), 1 << 16, &AtomicBool::new(false)).unwrap();
        let file = unsealed(&home, &format!("all/{}.json", rule.directory_name()));
        assert_eq!(file, serde_json::to_value(alone).unwrap(), "{game}");
    }
}

/// .6 has a built-in space from 4096 values on; .37, whose sequence is the same, has none.
#[test]
fn a_game_with_a_built_in_space_keeps_it_beside_an_equal_game() {
    let home = Home::new();
    std::fs::write(home.path("games"), ".37\n.6\n").unwrap();
    home.well("-q survey games --to 2^18 -o both");
    let record = home.object("both/0.6.json");
    assert_eq!((&record["mask"], &record["checked_through"]), (&json!(0x1ee), &json!(1 << 18)));
}

/// No space is known for .414.
#[test]
fn a_game_without_a_space_is_examined_to_an_eighth_but_at_least_to_16384() {
    let home = Home::new();
    std::fs::write(home.path("games"), "0.414\n").unwrap();
    for (to, examined) in [(1000, 1000), (1 << 14, 1 << 14), (1 << 15, 1 << 14), (1 << 18, 1 << 15)] {
        home.well(&format!("-q survey games --to {to} -o {to}"));
        let record = home.object(&format!("{to}/0.414.json"));
        assert_eq!((&record["mask"], &record["checked_through"]), (&json!(0), &json!(examined)), "{to}");
    }
}

/// With a time limit of one second, .244 ends before 2^22 values on any machine: it took 20 seconds to 2^18 on one core
/// of 2026.
#[test]
fn time_limit_ends_hard_games_and_a_longer_one_continues_them() {
    let home = Home::new();
    std::fs::write(home.path("games"), "0.244\n0.246\nkayles\n").unwrap();
    let (_, note) = both(&home, "-q survey games --to 2^22 --time-limit 1 -o out");
    assert!(note.contains("time limit: 2") && note.contains("0.244"), "{note}");
    let hard = home.object("out/0.244.json");
    assert_eq!((&hard["to"], &hard["time_limit"]), (&json!(1 << 22), &json!(1)));
    assert!(hard["checked_through"].as_u64().unwrap() < 1 << 22, "{hard}");
    assert_eq!(home.object("out/0.246.json")["digest"], hard["digest"]);
    assert!(home.object("out/0.77.json").get("time_limit").is_none());
    // Complete under this limit, but not under a longer one, nor without one.
    let table = home.well("merge out");
    let again = home.well("-q survey games --to 2^22 --time-limit 1 -o out");
    assert!(again.contains("0 of them new"), "{again}");
    change(&home, "out/survey.plan", "out/survey.plan", &[("time_limit", json!(3))]);
    home.fails(4, "merge out", &["2 of 3 results are missing", "0.244: ended by a shorter time limit"]);
    change(&home, "out/survey.plan", "out/survey.plan", &[("time_limit", Value::Null)]);
    home.fails(4, "merge out", &["2 of 3 results are missing"]);
    change(&home, "out/survey.plan", "out/survey.plan", &[("time_limit", json!(1))]);
    let (_, note) = both(&home, "-q survey games --to 2^22 --time-limit 3 -o out");
    assert!(note.contains("time limit: 2"), "{note}");
    assert_eq!(home.object("out/0.244.json")["time_limit"], json!(3));
    assert_eq!(home.well("merge out").lines().count(), table.lines().count());
    home.fails(2, "survey games --time-limit 0 -o out", &["--time-limit"]);
}

/// A game with damaged saved values has no record; the others have.
#[test]
fn damaged_saved_values_are_refused_and_removed_ones_computed_again() {
    let home = Home::new();
    std::fs::write(home.path("games"), "0.244\n0.246\n0.6\n").unwrap();
    home.well("-q survey games --to 1000 -o out");
    let short = home.object("out/0.244.json");
    let family = StandardForm::of(&"0.244".parse().unwrap()).unwrap().rule;
    let saved = home.path("out").join(format!("{}.values", family.name()));
    std::fs::write(&saved, "{}\n\0\0").unwrap();
    let output = home.command("-q survey games --to 2^18 -o out");
    let note = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{note}");
    assert!(
        ["0.244", "0.246", "values", "not saved values", "remove"].iter().all(|word| note.contains(word)),
        "{note}"
    );
    assert_eq!((home.object("out/0.244.json"), &home.object("out/0.6.json")["to"]), (short, &json!(1 << 18)));
    std::fs::remove_file(&saved).unwrap();
    home.well("-q survey games --to 2^18 -o out");
    assert_eq!(home.object("out/0.246.json")["to"], json!(1 << 18));
    // A record that a new examination contradicts.
    change(&home, "out/0.244.json", "out/0.244.json", &[("max_value", json!(60_000)), ("max_at", json!(1))]);
    let output = home.command("-q survey games --to 2^19 -o out");
    let note = text(&output.stderr);
    assert!(output.status.code() == Some(3) && note.contains("0.244.json") && note.contains("contradicts"), "{note}");
    assert_eq!(home.object("out/0.246.json")["to"], json!(1 << 19));
}

/// Nim is proved with saltus 1, so its largest value grows with the number of values. This is no contradiction.
#[test]
fn records_of_nim_of_two_lengths_are_merged() {
    let home = Home::new();
    std::fs::write(home.path("games"), "nim\nkayles\n").unwrap();
    home.well("-q survey games --to 100 -o short");
    home.well("-q survey games --to 300 -o long");
    let (table, _) = both(&home, "merge short long --format csv");
    assert!(table.contains("nim,proved,1,0,299,299,"), "{table}");
}

/// No octal game is arithmetic-periodic, so the record of one is made from another.
#[test]
fn tables_have_a_column_for_the_saltus() {
    let home = Home::new();
    std::fs::write(home.path("games"), "nim\nkayles\n.007\n").unwrap();
    home.well("-q survey games --to 1000 -o one");
    let fields = [("status", json!("observed")), ("theorem", Value::Null), ("saltus", json!(3))];
    change(&home, "one/0.77.json", "one/0.77.json", &fields);
    let rows = |table: &str, separator: char, header: usize| -> Vec<Vec<String>> {
        let cells = |line: &str| line.split(separator).map(|cell| cell.trim().to_owned()).collect();
        table.lines().enumerate().filter(|(i, _)| *i == 0 || *i >= header).map(|(_, line)| cells(line)).collect()
    };
    for (format, separator, header, none) in [("csv", ',', 1, "0"), ("markdown", '|', 2, "?")] {
        let (table, _) = both(&home, &format!("merge one --format {format}"));
        let rows = rows(&table, separator, header);
        let column = rows[0].iter().position(|name| name == "saltus").unwrap();
        let saltus: Vec<&str> = rows[1..].iter().map(|row| row[column].as_str()).collect();
        assert_eq!(saltus, [none, "3", "1"], "{table}");
        assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{table}");
    }
}

#[test]
fn shards_give_the_table_of_the_whole_and_lost_records_are_redone() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let (whole, a, b) = (path("whole"), path("a"), path("b"));
    let survey = |more: &[&str]| {
        let (status, stdout, stderr) = reply(&[&["-q", "survey", "--digits", "1", "--to", "2^15"][..], more].concat());
        assert_eq!(status, 0, "{more:?}: {stderr}");
        stdout
    };
    assert!(survey(&["-o", &whole]).contains("16 games, 16 of them new"));
    survey(&["-o", &a, "--shard", "0/2"]);
    survey(&["-o", &b, "--shard", "1/2", "--threads", "1", "--kernel", "scalar"]);
    let table = std::fs::read_to_string(home.path().join("whole/survey.csv")).unwrap();
    let (status, merged, _) = reply(&["merge", &b, &a, "--format", "csv"]);
    assert_eq!((status, merged.as_str()), (0, table.as_str()));
    assert_eq!(table.lines().count(), 17);
    assert!(table.contains("\n0.4,proved,34,54,9,"), "{table}");
    let markdown = std::fs::read_to_string(home.path().join("whole/survey.md")).unwrap();
    assert_eq!(reply(&["merge", &a, &b]).1, markdown);
    assert_eq!(reply(&["merge", &a, &b, "--json"]).1.lines().count(), 16);
    // Each record equals the result of the single command.
    for line in reply(&["merge", &whole, "--json"]).1.lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        let game = record["game"].as_str().unwrap();
        let single = json_of(&["-q", "period", game, "--to", "2^13", "--json"]);
        for key in ["status", "period", "preperiod"] {
            assert_eq!(record[key], single[key], "{game}");
        }
    }
    std::fs::remove_file(home.path().join("whole/0.4.json")).unwrap();
    assert!(survey(&["-o", &whole]).contains("16 games, 1 of them new"));
    assert!(survey(&["-o", &whole]).contains("16 games, 0 of them new"));
    assert_eq!(std::fs::read_to_string(home.path().join("whole/survey.csv")).unwrap(), table);
    // An altered record, and a record of a different game under this name.
    let record = std::fs::read_to_string(home.path().join("whole/0.4.json")).unwrap();
    let wrong = [record.replace("34", "17"), record[1..].to_owned(), record.replace("0.4", "0.6")];
    for (i, wrong) in wrong.iter().enumerate() {
        std::fs::write(home.path().join("a/0.4.json"), wrong).unwrap();
        let (status, stdout, stderr) = reply(&["merge", &whole, &a]);
        assert_eq!((status, stdout.as_str()), (3, ""), "{i}: {stderr}");
        assert!(stderr.contains("0.4.json"), "{stderr}");
    }
}

#[test]
fn game_lists_allow_comments_and_mistakes_are_reported_by_line() {
    let home = tempfile::tempdir().unwrap();
    let list = home.path().join("games.txt");
    let (list_name, out) = (list.to_str().unwrap(), home.path().join("out"));
    let arguments = ["-q", "survey", list_name, "-o", out.to_str().unwrap(), "--to", "4096"];
    std::fs::write(&list, "# octal games\nkayles   # .77\n\n.77\ngrundy:d=2\nremove-a-square\n").unwrap();
    let (status, stdout, stderr) = reply(&arguments);
    assert!(status == 0 && stdout.contains("3 games, 3 of them new; 3 periods proved"), "{stdout}{stderr}");
    std::fs::write(&list, "kayles\n# fine\n0.7G\n").unwrap();
    let (status, stdout, stderr) = reply(&arguments);
    assert_eq!((status, stdout.as_str()), (2, ""));
    assert!(stderr.contains("line 3") && stderr.contains("position 4"), "{stderr}");
    std::fs::write(&list, "# nothing\n").unwrap();
    assert_eq!(reply(&arguments).0, 2);
}

/// The longer search counts; a name may be long; a file that is no record is reported.
#[test]
fn survey_keeps_the_longest_search_and_refuses_a_foreign_file() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let long = format!("0.{}", "3".repeat(300));
    std::fs::write(path("games"), format!("4.364\n{long}\nkayles\n")).unwrap();
    let survey = |to: &str, out: &str| reply(&["-q", "survey", &path("games"), "--to", to, "-o", &path(out)]);
    let row = |dirs: &[&str]| {
        let all: Vec<String> = dirs.iter().map(|dir| path(dir)).collect();
        let arguments: Vec<&str> =
            ["merge", "--format", "csv"].into_iter().chain(all.iter().map(String::as_str)).collect();
        reply(&arguments).1.lines().find(|line| line.starts_with("4.364")).unwrap().to_owned()
    };
    assert_eq!(survey("500", "near").0, 0);
    assert_eq!(survey("24000", "far").0, 0);
    assert_eq!(row(&["near", "far"]), row(&["far"]));
    assert_eq!(row(&["far", "near"]), row(&["far"]));
    let before = row(&["near"]);
    assert_eq!(survey("600", "near").0, 0);
    let through = |row: &str| row.rsplit(',').nth(1).unwrap().parse::<u64>().unwrap();
    assert!(through(&row(&["near"])) >= through(&before), "{before} became {}", row(&["near"]));
    std::fs::write(path("games"), "kayles\n").unwrap();
    assert_eq!(survey("2000", "other").0, 0);
    std::fs::write(home.path().join("other/notes.json"), "{}").unwrap();
    let (status, _, stderr) = survey("2000", "other");
    assert!(status == 1 && stderr.contains("notes.json"), "{stderr}");
}

/// A link in the directory would lead to a file that the user did not name.
#[test]
fn survey_writes_its_tables_through_no_link() {
    let home = Home::new();
    std::fs::write(home.path("foreign"), "foreign").unwrap();
    std::fs::create_dir(home.path("survey")).unwrap();
    std::os::unix::fs::symlink(home.path("foreign"), home.path("survey/survey.csv")).unwrap();
    let (status, _, stderr) = home.reply("-q survey --digits 1 --to 1000 -o survey");
    assert!(status == 1 && stderr.contains("survey.csv: this is not a regular file"), "{status}: {stderr}");
    assert_eq!(std::fs::read_to_string(home.path("foreign")).unwrap(), "foreign");
}

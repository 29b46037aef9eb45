//! Work units: they combine to the result of the whole work, whatever kills, locks, copies or damages them.

use crate::support::{Home, Random, grundy, start, text, wait_until};
use grundy::checkpoint::testing::forge_run;
use grundy::run::{Run, RunReader};
use grundy::solver::{self, Method, SequenceStats};
use grundy::survey::{Games, codes};
use grundy::theory::standard_form::StandardForm;
use grundy::units::{Plan, UnitResult};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::FileExt;
use std::process::{Child, Stdio};
use std::sync::Barrier;

fn do_units(home: &Home, names: &[String], more: &str) {
    for name in names {
        home.well(&format!("-q unit {name} {more}"));
    }
}

/// Starts a process that does a unit in the directory `parts`.
fn begin(home: &Home, unit: &str) -> Child {
    let mut command = grundy(["-q", "unit", unit, "--in", "parts"]);
    start(command.current_dir(home.dir()).stdout(Stdio::piped()).stderr(Stdio::piped()))
}

/// Changes a text in the lines of a result, and the hash accordingly.
fn changed(result: &str, from: &str, to: &str) -> String {
    assert!(result.contains(from), "{from} is not in {result}");
    let digest = UnitResult::parse(result.as_bytes()).unwrap().end.digest;
    let (body, end) = result.trim_end().rsplit_once('\n').unwrap();
    let body = body.replace(from, to) + "\n";
    let hash = blake3::hash(body.as_bytes()).to_string();
    let changed = body + &end.replace(&digest, &hash) + "\n";
    assert!(UnitResult::parse(changed.as_bytes()).is_ok(), "{changed}");
    changed
}

#[test]
fn units_of_a_survey_merge_to_the_table_of_the_whole_survey() {
    let home = Home::new();
    home.well("-q survey --digits 2 --to 2^12 -o whole");
    let units = home.lines("units survey --digits 2 --to 2^12 --parts 11");
    assert_eq!(units.len(), 11, "{units:?}");
    // The first unit writes the plan.
    do_units(&home, &units[..4], "--in parts");
    assert_eq!(home.lines("units --missing parts"), units[4..]);
    let (_, _, stderr) = home.reply("units --missing parts");
    assert!(stderr.contains("parts: 7 of 11 units are missing; begun: 0"), "{stderr}");
    let stderr = home.fails(4, "merge parts", &["7 of 11 units are missing", units[4].as_str()]);
    assert!(!stderr.contains(&units[0]), "{stderr}");
    home.fails(4, "merge parts --format csv -o table.csv", &["missing"]);
    assert!(!home.path("table.csv").exists());
    assert_eq!(home.well("merge parts --format csv --partial").lines().count(), 1 + games_of(&units[..4]));
    do_units(&home, &units[4..], "--in parts --threads 2");
    for (format, file) in [("csv", "whole/survey.csv"), ("markdown", "whole/survey.md")] {
        assert_eq!(home.well(&format!("merge parts --format {format}")), home.read(file));
    }
    assert_eq!(home.well("merge parts --json"), home.well("merge whole --json"));
    assert_eq!(home.lines("units --missing parts"), [""; 0]);
}

/// Number of games of the first units of a survey of all codes with two digits in 11 parts.
fn games_of(units: &[String]) -> usize {
    let plan = Plan::survey(Games::Digits(2), 1 << 12, 11).unwrap();
    plan.units().iter().filter(|unit| units.contains(&unit.name().to_owned())).map(|unit| unit.size()).sum::<u64>()
        as usize
}

#[test]
fn names_of_units_state_what_they_compute() {
    let names = |to, parts| -> Vec<String> {
        let plan = Plan::survey(Games::Digits(2), to, parts).unwrap();
        plan.units().iter().map(|unit| unit.name().to_owned()).collect()
    };
    let all: BTreeSet<String> = [names(4096, 11), names(4096, 12), names(8192, 11)].concat().into_iter().collect();
    assert_eq!(all.len(), 11 + 12 + 11, "units with different work have different names");
    for name in &all {
        assert_eq!(Plan::of_name(name).unwrap().units().iter().filter(|unit| unit.name() == name).count(), 1);
        assert!(name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-'), "{name}");
    }
    let name = all.first().unwrap();
    for false_name in [&name[..name.len() - 1], "survey-digits2", "verify-exclusion-0to5-0", "survey-list-part1of2", ""]
    {
        assert_eq!(Plan::of_name(false_name), None, "{false_name}");
    }
}

#[test]
fn units_divide_all_games_evenly_and_keep_families_together() {
    let games: Vec<String> = codes(3).iter().map(|rule| rule.name().to_owned()).collect();
    let plan = Plan::survey(Games::Digits(3), 1 << 12, 61).unwrap();
    let home = Home::new();
    home.well("units survey --digits 3 --to 2^12 --parts 61 --in plan");
    assert_eq!(Plan::read(&home.path("plan")).unwrap(), plan);
    let sizes: Vec<u64> = plan.units().iter().map(grundy::units::Unit::size).collect();
    assert_eq!(sizes.iter().sum::<u64>(), games.len() as u64);
    // Every unit of a list of games with pairwise different sequences has as many games as any other, or one more.
    let forms: BTreeMap<String, String> = codes(3)
        .iter()
        .map(|rule| {
            (
                StandardForm::of(rule).map_or_else(|| rule.name().into(), |form| form.rule.name().to_owned()),
                rule.name().to_owned(),
            )
        })
        .collect();
    let different = Plan::survey(Games::List(forms.into_values().collect()), 1 << 12, 61).unwrap();
    let sizes: BTreeSet<u64> = different.units().iter().map(grundy::units::Unit::size).collect();
    assert!(sizes.len() <= 2 && sizes.last().unwrap() - sizes.first().unwrap() <= 1, "{sizes:?}");
    // Dawson's Chess and Dawson's Kayles have the same sequence, shifted by one.
    let two = Plan::survey(Games::List(vec!["0.137".into(), "0.77".into(), "0.07".into()]), 1 << 12, 3).unwrap();
    let sizes: Vec<u64> = two.units().iter().map(grundy::units::Unit::size).collect();
    assert_eq!(sizes.iter().collect::<BTreeSet<_>>(), BTreeSet::from([&1, &2]), "{sizes:?}");
}

#[test]
fn complete_unit_stays_as_it_is() {
    let home = Home::new();
    std::fs::write(home.path("games"), "kayles\n.07\n0.137\n").unwrap();
    home.fails(2, "units survey games --parts 2", &["--in"]);
    let units = home.lines("units survey games --to 2^12 --parts 2 --in parts");
    assert_eq!(home.lines("units survey games --to 2^12 --parts 2 --in parts"), units);
    home.fails(1, "units survey games --to 2^13 --parts 2 --in parts", &["belongs to", "8192"]);
    do_units(&home, &units, "--in parts");
    let file = format!("parts/{}.jsonl", units[0]);
    let before = home.read(&file);
    assert!(home.well(&format!("unit {} --in parts", units[0])).contains("complete already"));
    assert_eq!(home.read(&file), before);
    home.fails(2, "unit survey-list --in parts", &["no unit 'survey-list'"]);
    home.fails(1, &format!("unit {} --in nowhere", units[0]), &["units.plan is missing", "write the plan first"]);
    assert!(!home.path("nowhere").exists());
}

/// The list of the games of each unit saves time, and nothing else depends on it.
#[test]
fn altered_list_of_games_changes_no_unit() {
    let home = Home::new();
    let units = home.lines("units survey --digits 1 --to 2^10 --parts 3 --in good");
    do_units(&home, &units, "--in good");
    let table = home.well("merge good");
    let list = home.read("good/units.games");
    let reversed = |line: &str| line.split(' ').rev().collect::<Vec<&str>>().join(" ");
    let lists = [
        ("swapped", list.replace(&units[0], "X").replace(&units[1], &units[0]).replace('X', &units[1])),
        ("reversed", list.lines().map(reversed).collect::<Vec<String>>().join("\n")),
        ("cut", list[..list.len() / 2].to_owned()),
        ("empty", String::new()),
    ];
    for (dir, list) in lists {
        home.well(&format!("units survey --digits 1 --to 2^10 --parts 3 --in {dir}"));
        std::fs::write(home.path(dir).join("units.games"), list).unwrap();
        do_units(&home, &units, &format!("--in {dir}"));
        assert_eq!(home.well(&format!("merge {dir}")), table, "{dir}");
    }
}

/// The same list in a directory with another plan says nothing about its units.
#[test]
fn list_of_games_of_another_plan_adds_no_unit() {
    let home = Home::new();
    let unit = &home.lines("units survey --digits 1 --to 2^10 --parts 3 --in one")[0];
    home.well("units survey --digits 1 --to 2^11 --parts 3 --in other");
    std::fs::copy(home.path("one/units.games"), home.path("other/units.games")).unwrap();
    home.fails(2, &format!("unit {unit} --in other"), &["no unit"]);
    assert_eq!(home.lines("units --missing other").len(), 3);
}

#[test]
fn plan_that_was_removed_is_written_again() {
    let home = Home::new();
    home.well("-q run kayles --to 5000 --dir run");
    let lines = [
        "units survey --digits 1 --to 2^10 --parts 3 --in survey",
        "units verify run --level recompute --parts 2 --in check",
    ];
    for (line, dir) in lines.into_iter().zip(["survey", "check"]) {
        let units = home.lines(line);
        do_units(&home, &units[..1], &format!("--in {dir}"));
        for file in ["units.plan", "units.games"] {
            _ = std::fs::remove_file(home.path(dir).join(file));
        }
        std::fs::write(home.path(dir).join("units.txt"), units.join("\n")).unwrap();
        assert_eq!(home.lines(line), units);
        assert_eq!(home.lines(&format!("units --missing {dir}")), units[1..]);
    }
}

#[test]
fn list_of_units_is_no_other_file() {
    let home = Home::new();
    let units = home.lines("units survey --digits 1 --to 2^10 --parts 2");
    std::fs::create_dir(home.path("parts")).unwrap();
    std::fs::write(home.path("parts/units.txt"), units.join("\r\n")).unwrap();
    for line in home.read("parts/units.txt").split_inclusive('\n') {
        let words = ["-q", "unit", line.trim_end_matches('\n'), "--in", "parts"];
        assert!(grundy(words).current_dir(home.dir()).status().unwrap().success(), "{line:?}");
    }
    assert_eq!(home.lines("units --missing parts"), [""; 0]);
}

/// The message states what two plans with the same numbers do not have in common.
#[test]
fn message_distinguishes_plans_with_equal_numbers() {
    let home = Home::new();
    std::fs::write(home.path("games"), "kayles\n.07\n0.6\n").unwrap();
    std::fs::write(home.path("reversed"), "0.6\n.07\nkayles\n").unwrap();
    std::fs::write(home.path("others"), "kayles\n.07\n0.16\n").unwrap();
    home.well("units survey games --to 2^10 --parts 2 --in parts");
    home.fails(1, "units survey reversed --to 2^10 --parts 2 --in parts", &["the same games in another order"]);
    home.fails(1, "units survey others --to 2^10 --parts 2 --in parts", &["another list of games, with '0.6'"]);
    home.well("-q run kayles --to 5000 --dir run");
    let line = "units verify run --level definition --parts 2 --in check --samples";
    home.well(&format!("{line} 3"));
    home.fails(1, &format!("{line} 4"), &["(3 samples, seed 1)", "not to", "(4 samples, seed 1)"]);
}

#[test]
fn units_missing_in_all_of_several_directories_are_listed() {
    let home = Home::new();
    let units = home.lines("units survey --digits 1 --to 2^10 --parts 4");
    do_units(&home, &units[..2], "--in one");
    do_units(&home, &units[1..3], "--in other");
    assert_eq!(home.lines("units --missing one other"), units[3..]);
    let (_, _, stderr) = home.reply("units --missing one other");
    assert!(stderr.contains("one, other: 1 of 4 units are missing"), "{stderr}");
}

#[test]
fn merge_writes_no_file_that_could_be_a_result() {
    let home = Home::new();
    let units = home.lines("units survey --digits 1 --to 2^10 --parts 2");
    do_units(&home, &units, "--in parts");
    home.well("-q survey --digits 1 --to 2^10 -o whole");
    for (dir, name) in [("parts", "x.jsonl"), ("parts", "x.part"), ("parts", "x"), ("whole", "x.json"), ("whole", "x")]
    {
        let stderr = home.fails(1, &format!("merge {dir} -o {dir}/{name}"), &["contains the results", ".csv"]);
        assert!(!home.path(dir).join(name).exists(), "{stderr}");
    }
    for (dir, name) in [("parts", "x.json"), ("parts", "x.csv"), ("whole", "x.md"), ("whole", "x.txt")] {
        home.well(&format!("merge {dir} --json -o {dir}/{name}"));
        assert_eq!(home.read(&format!("{dir}/{name}")), home.well(&format!("merge {dir} --json")));
    }
}

#[test]
fn directories_with_other_files_are_refused() {
    let home = Home::new();
    let unit = &home.lines("units survey --digits 1 --to 2^10 --parts 2")[0];
    std::fs::create_dir(home.path("other")).unwrap();
    std::fs::write(home.path("other/thesis.tex"), "").unwrap();
    for line in ["units survey --digits 1 --to 2^10 --parts 2 --in other", &format!("unit {unit} --in other")] {
        home.fails(1, line, &["thesis.tex", "choose an empty or a new one"]);
    }
    assert_eq!(std::fs::read_dir(home.path("other")).unwrap().count(), 1);
}

/// Whatever part of a unit's lines a killed process has left, the unit ends with the records of an undisturbed one.
#[test]
fn interrupted_unit_continues_with_the_missing_games() {
    let home = Home::new();
    let mut random = Random::new("interrupted units");
    let unit = &home.lines("units survey --digits 2 --to 2^12 --parts 3 --in good")[1];
    home.well(&format!("-q unit {unit} --in good"));
    let result = home.read(&format!("good/{unit}.jsonl"));
    let whole = UnitResult::parse(result.as_bytes()).unwrap();
    let lines: Vec<&str> = result.split_inclusive('\n').collect();
    let sorted = |result: &UnitResult| {
        let records = result.records.iter().map(|record| (record.game.clone(), record.clone()));
        records.collect::<BTreeMap<_, _>>()
    };
    let mut cuts: Vec<usize> = (0..6).map(|_| random.below(result.len() as u64 + 1) as usize).collect();
    cuts.extend([0, lines[0].len(), result.len() - lines.last().unwrap().len(), result.len() - 1, result.len()]);
    for cut in cuts {
        std::fs::remove_file(home.path(&format!("good/{unit}.jsonl"))).unwrap();
        std::fs::write(home.path(&format!("good/{unit}.part")), &result[..cut]).unwrap();
        home.well(&format!("-q unit {unit} --in good"));
        let again = UnitResult::parse(home.read(&format!("good/{unit}.jsonl")).as_bytes()).unwrap();
        assert_eq!(sorted(&again), sorted(&whole), "cut at {cut}");
        // The first seal follows the line of the first process. A whole file is complete.
        let is_sealed = cut > end_of_line(&result, 2);
        let is_complete = cut == result.len();
        assert_eq!(again.sessions.len(), if is_sealed && !is_complete { 2 } else { 1 }, "cut at {cut}");
        let kept = result[..cut].matches("{\"seal\"").count().saturating_sub(2);
        assert!(again.records[..kept] == whole.records[..kept], "cut at {cut}");
        assert!(!home.path(&format!("good/{unit}.part")).exists());
    }
    // Lines of another unit, and garbage, are dropped.
    for garbage in [result.replace(unit.as_str(), "survey-other"), "\0".repeat(5000), "{}\n".into()] {
        std::fs::remove_file(home.path(&format!("good/{unit}.jsonl"))).unwrap();
        std::fs::write(home.path(&format!("good/{unit}.part")), garbage).unwrap();
        home.well(&format!("-q unit {unit} --in good"));
        let again = UnitResult::parse(home.read(&format!("good/{unit}.jsonl")).as_bytes()).unwrap();
        assert_eq!(sorted(&again), sorted(&whole));
    }
}

/// The offset of the line feed of this line, from line 0 on.
fn end_of_line(text: &str, line: usize) -> usize {
    text.match_indices('\n').nth(line).unwrap().0
}

/// A line that was altered in the file of an interrupted unit does not enter the result, and neither do those after it.
#[test]
fn altered_lines_of_an_interrupted_unit_are_computed_again() {
    let home = Home::new();
    let mut random = Random::new("altered parts");
    let unit = &home.lines("units survey --digits 1 --to 2^10 --parts 3 --in good")[1];
    home.well(&format!("-q unit {unit} --in good"));
    let table = home.well("merge good --partial");
    let file = home.path(&format!("good/{unit}.jsonl"));
    let part = home.path(&format!("good/{unit}.part"));
    let result = std::fs::read(&file).unwrap();
    let sealed = &result[..=result[..result.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap()];
    for _ in 0..60 {
        let at = random.below(sealed.len() as u64) as usize;
        let mut altered = sealed.to_vec();
        altered[at] ^= 1 << random.below(8);
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&part, altered).unwrap();
        home.well(&format!("-q unit {unit} --in good"));
        assert_eq!(home.well("merge good --partial"), table, "byte {at}");
    }
}

/// A result names all processes that worked on the unit, also those that completed no game.
#[test]
fn result_names_processes_that_completed_no_game() {
    let home = Home::new();
    std::fs::write(home.path("games"), "0.6\n").unwrap();
    let unit = &home.lines("units survey games --to 2^21 --parts 1 --in parts")[0];
    let part = home.path(&format!("parts/{unit}.part"));
    let sessions = || std::fs::read_to_string(&part).unwrap_or_default().matches("{\"session\"").count();
    for (number, signal) in [(1, Signal::TERM), (2, Signal::KILL)] {
        let child = begin(&home, unit);
        wait_until("the process has begun", || sessions() == number);
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert!(!child.wait_with_output().unwrap().status.success());
    }
    home.well(&format!("-q unit {unit} --in parts"));
    let result = UnitResult::parse(home.read(&format!("parts/{unit}.jsonl")).as_bytes()).unwrap();
    assert_eq!((result.sessions.len(), result.records.len()), (3, 1));
}

#[test]
fn stopped_unit_exits_130_and_killed_unit_is_missing() {
    let home = Home::new();
    std::fs::write(home.path("games"), "kayles\n0.16\ngrundy\n").unwrap();
    let unit = &home.lines("units survey games --to 2^26 --parts 1 --in parts")[0];
    let part = home.path(&format!("parts/{unit}.part"));
    let has_a_record = || std::fs::read_to_string(&part).is_ok_and(|text| text.contains("\"game\":\"0.77\""));
    let child = begin(&home, unit);
    wait_until("the first game is done", has_a_record);
    // Another process at the same unit.
    home.fails(75, &format!("unit {unit} --in parts"), &["another process", "try again"]);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    home.fails(4, "merge parts", &["1 of 1 units are missing", unit]);
    let mut child = begin(&home, unit);
    let sessions = || std::fs::read_to_string(&part).unwrap().matches("{\"session\"").count();
    wait_until("the second process has begun", || sessions() == 2);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(has_a_record());
    assert_eq!(home.lines("units --missing parts"), [unit.as_str()]);
}

/// Several processes begin in a new directory at once, each with every unit.
#[test]
fn concurrent_processes_do_every_unit_once() {
    let home = Home::new();
    let units = home.lines("units survey --digits 1 --to 2^12 --parts 5");
    let barrier = Barrier::new(4);
    std::thread::scope(|scope| {
        for shift in 0..4 {
            let (home, units, barrier) = (&home, &units, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for i in 0..units.len() {
                    let unit = &units[(i + shift) % units.len()];
                    let status = home.command(&format!("-q unit {unit} --in parts")).status.code();
                    assert!(matches!(status, Some(0 | 75)), "{status:?}");
                }
            });
        }
    });
    do_units(&home, &units, "--in parts");
    home.well("-q survey --digits 1 --to 2^12 -o whole");
    assert_eq!(home.well("merge parts --format csv"), home.read("whole/survey.csv"));
    let names = std::fs::read_dir(home.path("parts")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.count(), units.len() + 2, "the results, the plan and the list of games");
}

#[test]
fn only_one_of_two_plans_enters_a_new_directory() {
    let home = Home::new();
    for round in 0..10 {
        let barrier = Barrier::new(2);
        let accepted = |parts: u64| {
            barrier.wait();
            let line = format!("-q units survey --digits 2 --to 2^12 --parts {parts} --in new{round}");
            home.command(&line).status.success()
        };
        let [one, other] = std::thread::scope(|scope| {
            let both = [4, 5].map(|parts| {
                scope.spawn({
                    let accepted = &accepted;
                    move || accepted(parts)
                })
            });
            both.map(|thread| thread.join().unwrap())
        });
        assert!(one != other, "round {round}: {one}, {other}");
        home.well(&format!("units --missing new{round}"));
    }
}

/// A run that frees values loses the units of its verification that need them.
#[test]
fn runs_with_freed_values_have_no_units() {
    let home = Home::new();
    home.well("-q run .106 --to 84100000 --dir run");
    let units = home.lines("units verify run --level exclusion --parts 3 --in check");
    home.well("-q run .106 --to 85000000 --keep 140000 --dir run");
    assert_eq!(home.json("status run --json")["kept"], json!([[0, 67_108_864], [83_886_080, 85_000_000]]));
    home.fails(
        1,
        "units verify run --level exclusion --parts 3 --in new",
        &["freed 67108864..83886080", "grundy verify"],
    );
    assert!(!home.path("new").exists());
    let line = format!("-q unit {} --in check", units[2]);
    home.fails(1, &line, &["56066666..84100000 cannot be read", "has freed 67108864..83886080"]);
    assert_eq!(home.lines("units --missing check"), units);
}

#[test]
fn results_that_contradict_each_other_are_named() {
    let home = Home::new();
    let units = home.lines("units survey --digits 1 --to 2^12 --parts 2 --in parts");
    do_units(&home, &units, "--in parts");
    let file = format!("parts/{}.jsonl", units[0]);
    let good = home.read(&file);
    let record = UnitResult::parse(good.as_bytes()).unwrap().records[0].clone();
    // The same result twice is no contradiction, and another program of the same values neither.
    let copy = format!("parts/{}.copy.jsonl", units[0]);
    std::fs::write(home.path(&copy), changed(&good, grundy::PROGRAM, "grundy 9.9.9 (elsewhere)")).unwrap();
    let table = home.well("merge parts");
    std::fs::write(home.path(&copy), changed(&good, &record.digest, &"1".repeat(64))).unwrap();
    home.fails(3, "merge parts", &[&file, &copy, &record.game, "digests", "do the unit again"]);
    home.fails(3, "units --missing parts", &[&file, &copy]);
    // The same in two directories with the same plan.
    home.well("units survey --digits 1 --to 2^12 --parts 2 --in other");
    std::fs::rename(home.path(&copy), home.path(&file.replace("parts", "other"))).unwrap();
    home.fails(3, "merge parts other", &[&file, &file.replace("parts", "other")]);
    std::fs::remove_file(home.path(&file.replace("parts", "other"))).unwrap();
    assert_eq!(home.well("merge parts other"), table);
    home.well("units survey --digits 1 --to 2^12 --parts 3 --in different");
    home.fails(1, "merge parts different", &["different", "belongs to"]);
    home.well("-q survey --digits 1 --to 2^12 -o survey");
    home.fails(1, "merge parts survey", &["parts has a plan of units, and survey has none"]);
}

#[test]
fn damaged_result_is_refused_at_every_byte() {
    let home = Home::new();
    let mut random = Random::new("damaged results");
    let unit = &home.lines("units survey --digits 1 --to 2^10 --parts 8 --in parts")[0];
    home.well(&format!("-q unit {unit} --in parts"));
    let file = format!("parts/{unit}.jsonl");
    let good = home.read(&file);
    for case in 0..24 {
        let mut bytes = good.clone().into_bytes();
        let at = random.below(bytes.len() as u64) as usize;
        match case % 3 {
            0 => bytes[at] ^= 1 << random.below(7),
            1 => bytes.truncate(at),
            _ => bytes.insert(at, b'7'),
        }
        if bytes == good.as_bytes() {
            continue;
        }
        assert!(parsed_as_other(&bytes, &good), "case {case}, byte {at}");
        std::fs::write(home.path(&file), &bytes).unwrap();
        if UnitResult::parse(&bytes).is_err() {
            home.fails(3, &format!("unit {unit} --in parts"), &[&file, "not the result of a unit"]);
            home.fails(3, "merge parts", &[&file, "remove it"]);
        }
    }
    // Results of other units, under this name or without a unit of the plan.
    std::fs::write(home.path(&file), changed(&good, "part0of8", "part1of8")).unwrap();
    home.fails(3, "merge parts", &[&file, "not named after it"]);
    std::fs::write(home.path(&file), &good).unwrap();
    let lines: Vec<String> = good.split_inclusive('\n').map(str::to_owned).collect();
    assert!(lines[3].starts_with("{\"record\""), "{}", lines[3]);
    let without_a_record = [&lines[..3], &lines[4..]].concat();
    let digest = UnitResult::parse(good.as_bytes()).unwrap().end.digest;
    let body = without_a_record[..without_a_record.len() - 1].concat();
    let sealed = without_a_record.concat().replace(&digest, &blake3::hash(body.as_bytes()).to_string());
    std::fs::write(home.path(&file), &sealed).unwrap();
    let count = |less| format!("\"lines\":{},", lines.len() - less);
    home.fails(3, "merge parts", &[&file, "lines before it"]);
    std::fs::write(home.path(&file), sealed.replace(&count(1), &count(2))).unwrap();
    home.fails(3, "merge parts", &[&file, "records are not those"]);
}

/// Whether damaged bytes are refused, or state the same records and name: the times in the last line have no hash.
fn parsed_as_other(bytes: &[u8], good: &str) -> bool {
    let good = UnitResult::parse(good.as_bytes()).unwrap();
    UnitResult::parse(bytes).map_or(true, |found| (found.records, found.name) == (good.records, good.name))
}

#[test]
fn verification_units_cover_the_run_with_one_verdict() {
    let home = Home::new();
    home.well("-q run grundy --to 200000 --dir run");
    let digest = RunReader::open(&home.path("run")).unwrap().contents.last.digest;
    for (level, kernel) in [("exclusion", None), ("recompute", Some(())), ("definition", Some(()))] {
        let samples = if level == "definition" { "--samples 4" } else { "" };
        let units = home.lines(&format!("units verify run --level {level} --parts 5 {samples} --in {level}"));
        assert_eq!(units.len(), 5);
        assert!(units.iter().all(|unit| unit.ends_with(&digest[..16])), "{units:?}");
        do_units(&home, &units[1..], &format!("--in {level}"));
        home.fails(4, &format!("merge {level}"), &["1 of 5 units", &units[0]]);
        let partial: serde_json::Value =
            serde_json::from_str(&home.well(&format!("merge {level} --json --partial"))).unwrap();
        assert_eq!(
            (&partial["verdict"], &partial["ranges"]),
            (&"incomplete".into(), &serde_json::json!([[40000, 200_000]]))
        );
        do_units(&home, &units[..1], &format!("--in {level} --threads 2"));
        let joined: serde_json::Value = serde_json::from_str(&home.well(&format!("merge {level} --json"))).unwrap();
        assert_eq!((&joined["verdict"], &joined["ranges"]), (&"passed".into(), &serde_json::json!([[0, 200_000]])));
        assert_eq!((&joined["digest"], &joined["count"]), (&digest.as_str().into(), &200_000.into()));
        assert_eq!(joined["kernels"].as_array().unwrap().is_empty(), kernel.is_none(), "{joined}");
        let checked = if level == "definition" { 5 * 6 } else { 200_000 };
        assert_eq!(joined["checked"], checked, "{joined}");
        assert!(home.well(&format!("merge {level}")).contains("passed: 0..200000 of 0..200000"));
        home.fails(2, &format!("merge {level} --format csv"), &["no table"]);
    }
}

#[test]
fn options_that_do_not_belong_to_the_work_are_refused() {
    let home = Home::new();
    home.well("-q run grundy --to 20000 --dir run");
    for option in ["--samples 5", "--seed 9"] {
        home.fails(2, &format!("units verify run --level recompute --parts 2 --in check {option}"), &["definition"]);
    }
    let check = &home.lines("units verify run --level recompute --parts 2 --in check")[0];
    home.fails(2, &format!("unit {check} --in check --kernel scalar"), &["--kernel"]);
    std::fs::write(home.path("games.txt"), "kayles\n.6\n").unwrap();
    let survey = &home.lines("units survey games.txt --to 1000 --parts 2 --in parts")[0];
    home.fails(2, &format!("unit {survey} --in parts --run run"), &["--run"]);
    home.fails(1, "units --efficiency parts", &["parts", "no unit has a result"]);
    for option in ["--json", "--workers 2", "--pilot parts"] {
        home.fails(2, &format!("units --missing parts {option}"), &["--missing", "cannot be used with"]);
    }
    for dir in ["run", "run/within", "-"] {
        home.fails(1, &format!("units survey games.txt --parts 2 --in {dir}"), &["directory"]);
    }
    assert!(!home.path("-").exists() && !home.path("run/within").exists());
}

/// The levels read values before the range of the unit, whose digest is not among those compared first.
#[test]
fn damage_before_the_range_of_a_unit_is_no_wrong_value() {
    let home = Home::new();
    home.well("-q run .106 --to 34e6 --dir run");
    let last = home.lines("units verify run --level recompute --parts 3 --in check").pop().unwrap();
    let table = std::fs::OpenOptions::new().read(true).write(true).open(home.path("run/values.npy")).unwrap();
    let mut good = [0; 4];
    table.read_exact_at(&mut good, 4096 + 700).unwrap();
    table.write_all_at(&good.map(|byte| byte ^ 3), 4096 + 700).unwrap();
    let (status, _, stderr) = home.reply(&format!("-q unit {last} --in check"));
    assert_eq!((status, home.path(&format!("check/{last}.jsonl")).exists()), (3, false), "{stderr}");
    table.write_all_at(&good, 4096 + 700).unwrap();
    home.well(&format!("-q unit {last} --in check"));
}

#[test]
fn verification_unit_refuses_another_run_and_follows_a_moved_one() {
    let home = Home::new();
    home.well("-q run grundy --to 30000 --dir run");
    let unit = &home.lines("units verify run --level exclusion --parts 1 --in check")[0];
    home.well("-q run grundy --to 30001 --dir other");
    home.well("-q run kayles --to 30000 --dir kayles");
    for dir in ["other", "kayles"] {
        home.fails(1, &format!("unit {unit} --in check --run {dir}"), &["does not have the digest", "--run"]);
    }
    std::fs::rename(home.path("run"), home.path("moved")).unwrap();
    home.fails(1, &format!("unit {unit} --in check"), &["no run here", "with --run"]);
    // A run that has gone on since has the same first values.
    home.well("-q run --to 40000 --dir moved");
    home.fails(1, &format!("unit {unit} --in check --run nowhere"), &["no run here (no such directory)"]);
    home.well(&format!("-q unit {unit} --in check --run moved"));
    assert!(home.well("merge check").contains("0..30000 of 0..30000"));
}

/// A table with a wrong value and the digest of its values: one unit finds it, and the merged verdict names it.
#[test]
fn wrong_value_fails_one_unit_and_the_verdict() {
    let home = Home::new();
    let rule = "grundy".parse().unwrap();
    Run::builder(&rule, home.path("right").as_path()).to(12_000).run().unwrap();
    let run = RunReader::open(&home.path("right")).unwrap();
    let right = run.values(0..12_000).unwrap();
    let method = Method::default();
    let wrong = [&right[..7000], &[right[7000] - 1]].concat();
    let values = solver::extend(&rule, method, wrong, right.len(), |_| true).unwrap(); // the others follow from it
    let mut record = run.contents.last.clone();
    let stats = SequenceStats::of(&values, run.space(), &SequenceStats::default()).unwrap();
    (record.rares, record.last_rare) = (stats.rare_positions.len() as u64, stats.last_rare());
    (record.max_value, record.max_at) = (stats.max_value, stats.max_at);
    std::fs::create_dir(home.path("wrong")).unwrap();
    forge_run(&home.path("wrong"), &values, record).unwrap();
    let units = home.lines("units verify wrong --level recompute --parts 4 --in check");
    for (i, unit) in units.iter().enumerate() {
        if i == 2 {
            for _ in 0..2 {
                home.fails(3, &format!("-q unit {unit} --in check"), &["G(7000)"]);
            }
            let output = home.command("merge check --json");
            let stderr = text(&output.stderr);
            assert_eq!(output.status.code(), Some(3), "{stderr}");
            assert!(stderr.contains("1 of 4 units are missing") && !stderr.contains("nothing is written"), "{stderr}");
        } else {
            home.well(&format!("-q unit {unit} --in check"));
        }
    }
    let output = home.command("merge check --json");
    let verdict: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &verdict["verdict"]), (Some(3), &"failed".into()), "{verdict}");
    assert!(verdict["wrong"][0].as_str().unwrap().contains("G(7000)"), "{verdict}");
    assert_eq!(verdict["ranges"], serde_json::json!([[0, 6000], [9000, 12_000]]));
    // A result that says that the same range is right contradicts it.
    let bad = format!("check/{}.jsonl", units[2]);
    let text = home.read(&bad);
    let check = UnitResult::parse(text.as_bytes()).unwrap().check.unwrap();
    let wrong = serde_json::to_string(&check.wrong).unwrap();
    let passed = changed(
        &text,
        &format!("\"checked\":0,\"kernel\":null,\"wrong\":{wrong}"),
        "\"checked\":3000,\"kernel\":\"scalar\",\"wrong\":null",
    );
    let copy = bad.replace(".jsonl", ".again.jsonl");
    std::fs::write(home.path(&copy), passed).unwrap();
    home.fails(3, "merge check", &[&bad, &copy, "G(7000)"]);
}

#[test]
fn efficiency_follows_from_recorded_times() {
    let home = Home::new();
    let units = home.lines("units survey --digits 2 --to 2^12 --parts 40 --in parts");
    do_units(&home, &units, "--in parts");
    let lines = home.lines("units --efficiency parts --workers 1,8 --json");
    let rows: Vec<serde_json::Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((rows.len(), &rows[0]["workers"], &rows[1]["workers"]), (2, &1.into(), &8.into()));
    let number = |row: usize, key: &str| rows[row][key].as_f64().unwrap();
    assert!((number(0, "efficiency") - 1.0).abs() < 1e-9 && (number(0, "makespan") - number(0, "total")).abs() < 1e-9);
    assert!(number(1, "makespan") >= number(1, "longest") && number(1, "makespan") * 8.0 >= number(1, "total") - 1e-9);
    assert!(home.well("units --efficiency parts").contains("64 workers"));
    // The longest units first: two workers are better used than in any order that ends with the longest unit.
    let rows = home.lines("units --efficiency parts --pilot parts --workers 2 --json");
    let row: serde_json::Value = serde_json::from_str(&rows[0]).unwrap();
    assert!(row["makespan"].as_f64().unwrap() <= number(0, "total") / 2.0 + number(0, "longest"), "{row}");
}

#[test]
fn pilot_orders_units_by_its_recorded_times() {
    let home = Home::new();
    let pilot = home.lines("units survey --digits 1 --to 2^10 --parts 6 --in pilot");
    do_units(&home, &pilot, "--in pilot");
    // Times that no process took. The second part has no result.
    for (name, seconds) in pilot.iter().zip(["3.0", "1.0", "4.0", "1.5", "9.0", "2.6"]) {
        let path = home.path(&format!("pilot/{name}.jsonl"));
        let result = std::fs::read_to_string(&path).unwrap();
        let before = result.rfind("\"cpu\":").unwrap() + "\"cpu\":".len();
        let after = before + result[before..].find('}').unwrap();
        let result = format!("{}{seconds}{}", &result[..before], &result[after..]);
        // The first part took 1.45 of its 3 seconds before it began to compute, so the sixth part is longer.
        let startup = if name == &pilot[0] { "1.45" } else { "0.0" };
        let at = result.find("\"startup\":").unwrap() + "\"startup\":".len();
        let rest = at + result[at..].find('}').unwrap();
        let result = format!("{}{startup}{}", &result[..at], &result[rest..]);
        let (body, _) = result.trim_end().rsplit_once('\n').unwrap();
        let digest = result.rfind("\"digest\":\"").unwrap() + "\"digest\":\"".len();
        let hash = blake3::hash(format!("{body}\n").as_bytes()).to_string();
        std::fs::write(&path, format!("{}{hash}{}", &result[..digest], &result[digest + 64..])).unwrap();
    }
    std::fs::remove_file(home.path(&format!("pilot/{}.jsonl", pilot[1]))).unwrap();
    let mut units = home.lines("units survey --digits 1 --to 2^12 --parts 6 --pilot pilot");
    let parts: Vec<&str> = units.iter().map(|unit| unit.split('-').nth(2).unwrap()).collect();
    assert_eq!(parts, ["part1of6", "part4of6", "part2of6", "part5of6", "part0of6", "part3of6"]);
    units.sort_unstable();
    assert_eq!(units, home.lines("units survey --digits 1 --to 2^12 --parts 6"));
    home.fails(2, "units survey --digits 1 --to 2^12 --parts 7 --pilot pilot", &["another number of parts"]);
}

#[test]
fn plans_that_say_something_impossible_are_refused() {
    let home = Home::new();
    home.well("units survey --digits 1 --to 2^12 --parts 2 --in parts");
    let plan = home.read("parts/units.plan");
    for (from, to) in [
        ("\"parts\": 2", "\"parts\": 0"),
        ("\"parts\": 2", "\"parts\": 99999999"),
        ("16384", "16385"),
        ("grundy-units-plan-1", "grundy-units-plan-9"),
        ("\"digits\": 1", "\"digits\": 77"),
        ("\"digits\": 1", "\"list\": [\"0.G\"]"),
        ("{", ""),
    ] {
        assert!(plan.contains(from), "{plan}");
        assert!(Plan::parse(plan.replacen(from, to, 1).as_bytes()).is_err(), "{to}");
        std::fs::write(home.path("parts/units.plan"), plan.replacen(from, to, 1)).unwrap();
        home.fails(3, "units --missing parts", &["units.plan", "not a plan of units", "remove it"]);
    }
    for line in ["units survey --digits 1 --parts 0", "units survey --parts 2", "units", "units verify run --parts 2"] {
        assert_eq!(home.command(line).status.code(), Some(2), "{line}");
    }
    assert!(!home.path("DIR").exists());
}

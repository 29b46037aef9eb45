//! Names on the command line: games, aliases, misspelled names and run directories; and what the program states of
//! named games equals `data/`.

use crate::support::{data, fails, grundy, reply, run_well, stdout_of, text};
use grundy::solver::SparseSpace;
use grundy::theory::definition;
use grundy::theory::names::NAMED_GAMES;
use grundy::theory::rule::Rule;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Exit status, stdout and stderr of the program in this directory.
fn within(dir: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = grundy(arguments).current_dir(dir).output().unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn object(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn nim_values_are_printed_for_every_u64() {
    assert_eq!(stdout_of(&["values", "nim", "0..4"]), "0 0\n1 1\n2 2\n3 3\n");
    let large = "18446744073709551613..18446744073709551615";
    assert_eq!(
        stdout_of(&["values", "NIM", "65535..65537", "1e12", large]),
        "65535 65535\n65536 65536\n1000000000000 1000000000000\n18446744073709551613 18446744073709551613\n\
         18446744073709551614 18446744073709551614\n"
    );
    assert_eq!(stdout_of(&["values", "nim", "1e12", "--json"]), "{\"n\":1000000000000,\"value\":1000000000000}\n");
}

#[test]
fn nim_period_is_proved_with_saltus_1() {
    let kayles = object(&stdout_of(&["period", "kayles", "--json"]));
    let nim = object(&stdout_of(&["period", "nim", "--json"]));
    let keys = |object: &Value| object.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&nim), keys(&kayles), "the same keys as for other games");
    for (key, value) in
        [("status", json!("proved")), ("period", json!(1)), ("preperiod", json!(0)), ("saltus", json!(1))]
    {
        assert_eq!(nim[key], value, "{key}");
    }
    assert_eq!(nim["theorem"], Value::Null);
    let words = stdout_of(&["period", "nim"]);
    assert!(words.contains("proved") && words.contains("G(n + 1) = G(n) + 1 for all n"), "{words}");
    for (more, status) in [("--certificate", 1), ("--dir", 2)] {
        let (found, stdout, stderr) = reply(&["period", "nim", more, "-"]);
        assert_eq!((found, stdout.as_str()), (status, ""), "{stderr}");
    }
    // A row of 19 values fits 80 columns.
    let row: String = (0..19).map(|n| format!("{n:>4}")).collect();
    let table = stdout_of(&["period", "nim", "--values", "--exceptions", "/dev/null"]);
    assert!(table.starts_with(&words) && table.ends_with(&format!("\n 0{}\n", row)), "{table}");
}

#[test]
fn nim_works_in_run_export_survey_and_play() {
    let home = tempfile::tempdir().unwrap();
    let (status, _, stderr) = within(home.path(), &["run", "nim", "--to", "3000"]);
    assert_eq!(status, 0, "{stderr}");
    let lines: String = (0..3000).map(|n| format!("{n} {n}\n")).collect();
    assert!(within(home.path(), &["export", "runs/nim", "--format", "bfile"]).1 == lines);
    assert_eq!(within(home.path(), &["verify", "runs/nim", "--level", "definition"]).0, 0);
    assert_eq!(within(home.path(), &["verify", "runs/nim", "--level", "recompute"]).0, 0);
    assert!(within(home.path(), &["period", "runs/nim"]).1.contains("proved"));
    assert_eq!(within(home.path(), &["tune", "nim", "--range", "0..20", "-o", "nim.mid"]).0, 0);
    let game = within(home.path(), &["play", "nim", "39", "35", "25", "14"]).1;
    assert_eq!(game, "nim-value 19: the player to move wins with\nheap 3: 25 -> 10 (take 15)\n");
    assert_eq!(within(home.path(), &["play", "runs/nim", "39", "35", "25", "14"]).1, game);
    std::fs::write(home.path().join("games.txt"), "Nim\nkayles\n").unwrap();
    assert_eq!(within(home.path(), &["survey", "games.txt", "-o", "survey"]).0, 0);
    let record = object(&std::fs::read_to_string(home.path().join("survey/nim.json")).unwrap());
    assert_eq!((&record["status"], &record["period"], &record["saltus"]), (&json!("proved"), &json!(1), &json!(1)));
    let table = std::fs::read_to_string(home.path().join("survey/survey.md")).unwrap();
    assert!(table.contains("| nim | 1 | 0 | 1 | 65535 | 65535 |"), "{table}");
    let table = std::fs::read_to_string(home.path().join("survey/survey.csv")).unwrap();
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    let saltus = rows[0].iter().position(|&column| column == "saltus").unwrap();
    assert_eq!((rows[1][saltus], rows[2][saltus]), ("0", "1"), "{table}");
}

/// All values up to the first that does not fit are committed.
#[test]
fn nim_run_stops_at_the_first_value_above_65535() {
    let home = tempfile::tempdir().unwrap();
    let (status, _, stderr) = within(home.path(), &["run", "nim"]);
    assert_eq!(status, 1, "{stderr}");
    assert!(stderr.contains("G(65536) is above 65535"), "{stderr}");
    assert_eq!(within(home.path(), &["values", "runs/nim", "65535"]).1, "65535 65535\n");
}

#[test]
fn names_do_not_depend_on_case_blanks_hyphens_and_apostrophes() {
    for (typed, canonical) in [
        ("KAYLES", "0.77"),
        ("Dawson's Kayles", "0.07"),
        ("dawsons-kayles", "0.07"),
        ("dawson_kayles", "0.07"),
        ("Dawson\u{2019}s Chess", "0.137"),
        ("Remove A Square", "remove-a-square"),
        ("Grundy's game", "grundy"),
        ("Nim", "nim"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        run_well(typed, dir.path(), &["--to", "100"]);
        let status = object(&stdout_of(&["status", dir.path().to_str().unwrap(), "--json"]));
        assert_eq!(status["game"], canonical, "{typed}");
    }
}

#[test]
fn misspelled_names_get_a_suggestion_and_exit_status_2() {
    for (typed, suggestion) in
        [("kayle", "kayles"), ("Dawson", "dawson-kayles"), ("grundy:2", "grundy:d=2"), ("officer", "officers")]
    {
        let expected = format!("did you mean '{suggestion}'");
        fails(2, &["values", typed, "5"], &[typed, &expected]);
        fails(2, &["run", typed, "--to", "5"], &[typed, &expected]);
        fails(2, &["play", typed, "5"], &[typed, &expected]);
    }
    fails(2, &["values", "xyzzy", "5"], &["'xyzzy' is neither a game nor a directory", "grundy games"]);
}

#[test]
fn misere_play_is_refused_by_name_with_exit_status_2() {
    for typed in ["misere-kayles", "mis\u{e8}re:kayles", "Mis\u{e8}re Nim"] {
        for arguments in [["values", typed, "5"], ["period", typed, "--json"], ["play", typed, "5"]] {
            fails(2, &arguments, &[&format!("'{typed}': mis\u{e8}re play is not supported")]);
        }
    }
    fails(2, &["play", "--misere", "kayles", "10"], &["'--misere'", "misère play is not supported"]);
}

/// The commands that read a run directory and take no game instead.
fn readers(dir: &str) -> [Vec<&str>; 2] {
    [vec!["status", dir], vec!["verify", dir]]
}

/// The commands that take a game or a run directory, with the other arguments that they need.
fn readers_of_either(source: &str) -> [Vec<&str>; 4] {
    [
        vec!["values", source, "5"],
        vec!["export", source, "--format", "csv"],
        vec!["find", source, "--zeros"],
        vec!["period", source],
    ]
}

#[test]
fn game_given_as_run_directory_is_refused_with_the_path_of_its_run() {
    let home = tempfile::tempdir().unwrap();
    for arguments in readers("kayles") {
        let (status, _, stderr) = within(home.path(), &arguments);
        assert!(status == 1 && stderr.contains("'grundy run 0.77' creates runs/0.77"), "{arguments:?}: {stderr}");
    }
    run_well("kayles", &home.path().join("runs/0.77"), &["--to", "100"]);
    for arguments in readers("kayles") {
        let (status, _, stderr) = within(home.path(), &arguments);
        assert!(status == 1 && stderr.contains("its run is runs/0.77"), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("grundy run"), "{arguments:?}: {stderr}");
    }
}

#[test]
fn directory_of_runs_given_as_a_run_is_refused_with_their_list() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(home.path().join("runs/empty")).unwrap();
    let names: Vec<String> = (0..12).map(|i| format!("runs/r{i:02}")).collect();
    for name in &names {
        run_well("kayles", &home.path().join(name), &["--to", "10"]);
    }
    let listed = format!("there are runs in {} and 2 more", names[..10].join(", "));
    for arguments in readers("runs").iter().chain(&readers_of_either("./runs")) {
        let (status, _, stderr) = within(home.path(), arguments);
        assert!(status == 1 && stderr.contains("no run here"), "{arguments:?}: {stderr}");
        assert!(stderr.replace("./", "").contains(&listed), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("empty"), "{arguments:?}: {stderr}");
    }
}

/// Following the advice never creates a run with the misspelled name.
#[test]
fn advice_never_creates_a_run_with_a_misspelled_name() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("plain")).unwrap();
    std::fs::write(home.path().join("file"), "").unwrap();
    for typed in ["TYPO.json", "runs", "runs/grudny", "plain", "file", "./kayles", "a\u{1b}[31m/b"] {
        for arguments in readers(typed).into_iter().chain(readers_of_either(typed)) {
            let (status, stdout, stderr) = within(home.path(), &arguments);
            if (arguments[0], typed) == ("verify", "file") {
                continue; // a file is a certificate, or refused as one
            }
            let is_name = !typed.contains('/') && !home.path().join(typed).exists();
            let expected = if is_name && !["status", "verify"].contains(&arguments[0]) { 2 } else { 1 };
            assert_eq!(status, expected, "{arguments:?}: {stderr}");
            assert!(stdout.is_empty() && !stderr.contains("grundy run"), "{arguments:?}: {stderr}");
            assert!(!stderr.contains('\u{1b}'), "{arguments:?}: {stderr}");
        }
    }
    let missing = within(home.path(), &["verify", "TYPO.json"]).2;
    assert!(
        missing.contains("TYPO.json: no such file or directory; give a run directory or a certificate file"),
        "{missing}"
    );
    let left = std::fs::read_dir(home.path()).unwrap().count();
    assert_eq!(left, 2, "no command created anything");
}

/// A number with grouped digits, such as `11 770 282`.
fn grouped(text: &str) -> u64 {
    let digits: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    digits.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// The first number after `label`, with digits that blanks may group.
fn number_after(text: &str, label: &str) -> u64 {
    let rest = text.split_once(label).unwrap_or_else(|| panic!("no {label}")).1;
    grouped(rest.split(|c: char| !c.is_ascii_digit() && !c.is_whitespace()).next().unwrap())
}

/// Cells of the rows of Markdown tables.
fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().filter_map(|line| Some(line.strip_prefix('|')?.split('|').map(str::trim).collect()))
}

fn canonical(game: &str) -> String {
    game.parse::<Rule>().unwrap().name().to_owned()
}

#[test]
fn periods_of_named_games_equal_those_in_data() {
    let results = data("results/periods.md");
    let mut periods: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for line in data("periods.csv").lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        periods.insert(canonical(cells[0]), (grouped(cells[1]), grouped(cells[2])));
    }
    let mut without = Vec::new();
    for line in data("results/octal3.csv").lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        match cells[1] {
            "proved" => drop(periods.insert(canonical(cells[0]), (grouped(cells[2]), grouped(cells[3])))),
            _ => without.push(cells[0].to_owned()),
        }
    }
    for cells in rows(&results) {
        let words: Vec<&str> = cells[0].trim_matches('`').split(' ').collect();
        if let (["period", game, ..], Some(preperiod)) = (words.as_slice(), cells.get(2))
            && cells[1].starts_with(|c: char| c.is_ascii_digit())
        {
            periods.insert(canonical(game), (grouped(cells[1]), grouped(preperiod)));
        }
    }
    assert!(periods.len() > 700 && without.len() > 250, "the tables were read");
    let is_finite_code = |game: &str| game.starts_with(|c: char| c.is_ascii_digit()) && !game.contains('(');
    for known in NAMED_GAMES.iter().filter(|known| is_finite_code(known.game)) {
        assert_eq!(known.period, periods.get(known.game).copied(), "{}", known.game);
        assert!(known.period.is_some() || without.contains(&known.game.to_owned()), "{}", known.game);
    }
    let square = object(&stdout_of(&["period", "remove-a-square", "--json"]));
    let known = NAMED_GAMES.iter().find(|known| known.game == "remove-a-square").unwrap();
    assert_eq!(Some((square["period"].as_u64().unwrap(), square["preperiod"].as_u64().unwrap())), known.period);
}

#[test]
fn last_rare_positions_of_named_games_equal_those_in_data() {
    let mut last: BTreeMap<String, u64> = BTreeMap::new();
    for line in data("results/octal3.csv").lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let known = NAMED_GAMES.iter().find(|known| known.game == cells[0]);
        let space =
            known.and_then(|known| known.space).map(|(mask, position)| (format!("{mask:#x}"), position.to_string()));
        if !cells[7].is_empty() && space == Some((cells[8].to_owned(), cells[9].to_owned())) {
            last.insert(cells[0].to_owned(), grouped(cells[7]));
        }
    }
    // "| .104 | n1 | n2 | values | 21, 284 |", the proofs over two periods.
    for cells in rows(&data("results/periods.md")).filter(|cells| cells[0].starts_with('.') && cells.len() > 6) {
        last.insert(canonical(cells[0]), grouped(cells[4].split_once(", ").unwrap().1));
    }
    last.insert("grundy".into(), number_after(&data("results/grundy.md"), "\n- last_rare: "));
    // A proved period of even length makes the rare positions periodic too.
    for game in ["kayles", "remove-a-square"] {
        let rule: Rule = game.parse().unwrap();
        let known = rule.known().unwrap();
        let (period, preperiod) = known.period.unwrap();
        let space = known.space.and_then(|(mask, position)| SparseSpace::new(&rule, mask, position)).unwrap();
        let values = definition::values(&rule, usize::try_from(preperiod + 2 * period).unwrap()).unwrap();
        let rare = (0..).zip(&values).filter(|&(n, &value)| space.is_rare(value, n)).map(|(n, _)| n).max();
        assert!(period % 2 == 0 && rare < Some(preperiod), "{game}");
        last.insert(rule.name().to_owned(), rare.unwrap());
    }
    assert!(last.len() >= 7, "the tables were read: {last:?}");
    for known in NAMED_GAMES {
        let rule: Rule = known.game.parse().unwrap();
        assert_eq!(rule.known_last_rare(), last.get(known.game).copied(), "{}", known.game);
        assert_eq!(known.last_rare.is_some(), known.space.is_some(), "{}", known.game);
    }
    assert_eq!("0.123".parse::<Rule>().unwrap().known_last_rare(), None);
}

#[test]
fn games_lists_nim_and_what_is_known_of_each_game() {
    let listed = stdout_of(&["games"]);
    assert!(listed.lines().any(|line| line.starts_with("nim ")), "{listed}");
    let words = listed.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(words.contains("period 11,770,282, preperiod 197,769,598"), "{listed}");
    let objects: Vec<Value> = stdout_of(&["games", "--json"]).lines().map(object).collect();
    assert_eq!(objects.len(), NAMED_GAMES.len());
    let keys: Vec<&String> = objects[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["about", "aliases", "game", "last_rare", "mask", "period", "position", "preperiod"]);
}

/// `info` repeats what `games` states, and adds nothing that contradicts it.
#[test]
fn info_agrees_with_games_and_with_the_definition() {
    for known in NAMED_GAMES {
        let info = object(&stdout_of(&["info", known.game, "--json"]));
        assert_eq!((&info["game"], &info["about"]), (&json!(known.game), &json!(known.about)));
        assert_eq!(info["aliases"], json!(known.aliases));
        assert_eq!(info["period"].as_u64().zip(info["preperiod"].as_u64()), known.period, "{}", known.game);
        let (mask, position) = known.space.unwrap_or((0, 0));
        if known.space.is_some() {
            assert_eq!((&info["mask"], &info["position"]), (&json!(mask), &json!(position)), "{}", known.game);
            assert_eq!(info["last_rare"].as_u64(), known.last_rare, "{}", known.game);
        }
        let rule: Rule = known.game.parse().unwrap();
        assert_eq!(info["values"], json!(definition::values(&rule, 20).unwrap()), "{}", known.game);
        assert!(info["period"].is_null() || info["searched"].is_null(), "{info}");
    }
}

#[test]
fn info_lists_equal_games_of_dawsons_kayles() {
    let info = object(&stdout_of(&["info", ".07", "--json"]));
    assert_eq!((&info["standard_form"], &info["shift"]), (&json!("0.137"), &json!(1)));
    let equal = info["equivalent"].as_array().unwrap();
    for (game, shift) in [("0.137", 0), ("0.07", 1), ("0.4", 2)] {
        assert!(equal.contains(&json!({ "game": game, "shift": shift })), "{info}");
    }
    let words = stdout_of(&["info", ".4"]);
    let words = words.split_whitespace().collect::<Vec<&str>>().join(" ");
    for expected in [
        "remove 1 token and leave two heaps",
        "0 0 0 1 1 2 0 3 1 1",
        "2 earlier (their value at n is G(n + 2)): 0.137 (dawson-chess)",
        "1 earlier (their value at n is G(n + 1)): 0.07 (dawson-kayles)",
        "period 34, preperiod 54 (proved",
        "Winning Ways",
    ] {
        assert!(words.contains(expected), "{expected}: {words}");
    }
    fails(2, &["info", "xyzzy"], &["'xyzzy' is not a game", "grundy games"]);
    fails(2, &["info"], &["<GAME>"]);
}

#[test]
fn periods_proved_by_long_searches_equal_those_in_periods_md() {
    let results = data("results/periods.md");
    let mut count = 0;
    for line in data("results/periods.csv").lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let code = cells[0].trim_start_matches('0');
        let row = rows(&results).find(|row| row[0].trim_matches('`').split(' ').nth(1) == Some(code));
        let row = row.unwrap_or_else(|| panic!("{code} is not in periods.md"));
        let [period, preperiod, largest] = [row[1], row[2], row[3]].map(grouped);
        let expected = [period, preperiod, largest].map(|number| number.to_string());
        assert_eq!(cells[1..4], expected, "{code}");
        assert_eq!(cells[4], row[4], "{code}");
        count += 1;
    }
    assert_eq!(count, 4, "0.106, 0.104, 0.054 and 0.454");
}

/// Compares the help with the processor features that the detection in the source tests.
#[test]
fn kernel_help_names_every_feature_that_detection_requires() {
    let help = stdout_of(&["run", "--help"]);
    for (kernel, source) in
        [("avx512", include_str!("../../src/kernel/avx512/mod.rs")), ("avx2", include_str!("../../src/kernel/avx2.rs"))]
    {
        let line = help.split_once(&format!("- {kernel}:")).unwrap_or_else(|| panic!("{help}")).1;
        let line = line.split_once("\n          - ").unwrap().0.to_lowercase();
        let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric()).collect();
        let required: Vec<&str> =
            source.split("is_x86_feature_detected!(\"").skip(1).filter_map(|s| s.split('"').next()).collect();
        assert!(required.len() >= 4, "{kernel}: {required:?}");
        for feature in required {
            let name = feature.strip_prefix("avx512").unwrap_or(feature);
            assert!(words.contains(&name), "{kernel}: the help does not name {feature}: {line}");
        }
    }
}

#[test]
fn the_program_states_its_commit_and_target_everywhere() {
    let (name, details) = grundy::PROGRAM.split_once(" (").unwrap();
    assert_eq!(name, concat!("grundy ", env!("CARGO_PKG_VERSION")));
    let details: Vec<&str> = details.strip_suffix(')').unwrap().split(", ").collect();
    assert!(details.last().unwrap().starts_with(std::env::consts::ARCH), "{details:?}");
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
        output.status.success().then(|| text(&output.stdout).trim().to_owned())
    };
    // Outside a work tree the commit is that of the package, or absent.
    if git(&["ls-files", "--error-unmatch", "Cargo.toml"]).is_some() {
        let commit = git(&["rev-parse", "HEAD"]).unwrap();
        assert_eq!(details[0].strip_suffix("+changes").unwrap_or(details[0]), &commit[..12]);
    }
    assert_eq!(stdout_of(&["-V"]), format!("{}\n", grundy::PROGRAM));
    let long = stdout_of(&["--version"]);
    let lines: Vec<&str> = long.lines().collect();
    assert_eq!(lines[0], grundy::PROGRAM);
    let value = |name: &str| {
        let line = lines.iter().find(|line| line.split_whitespace().next() == Some(name));
        line.unwrap_or_else(|| panic!("no {name}: {long}"))[name.len()..].trim().split(" (").next().unwrap()
    };
    assert_eq!(Some(&value("target")), details.last(), "{long}");
    assert!(value("compiler").starts_with("rustc "), "{long}");
    let usable = object(&stdout_of(&["cpu", "--json"]))["kernels"].clone();
    let usable: Vec<&str> = usable.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!((value("usable"), value("auto")), (usable.join(" ").as_str(), usable[0]), "{long}");
    assert!(usable.iter().all(|name| value("kernels").split(' ').any(|kernel| kernel == *name)), "{long}");
    let home = tempfile::tempdir().unwrap();
    assert_eq!(within(home.path(), &["period", "kayles", "--certificate", "c.json"]).0, 0);
    std::fs::write(home.path().join("games.txt"), "kayles\n").unwrap();
    assert_eq!(within(home.path(), &["survey", "games.txt", "-o", "s"]).0, 0);
    for file in ["c.json", "s/0.77.json"] {
        let record = object(&std::fs::read_to_string(home.path().join(file)).unwrap());
        assert_eq!(record["program"], grundy::PROGRAM, "{file}");
    }
}

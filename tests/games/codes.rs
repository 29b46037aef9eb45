//! Hexadecimal codes, codes that repeat and subtraction sets, through the program: every command that computes values.

use crate::support::{grundy, stdout_of, text};
use serde_json::Value;
use std::path::Path;

/// Exit status, stdout and stderr of the program in this directory.
fn within(dir: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = grundy(arguments).current_dir(dir).output().unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn object(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// The value of n in Lasker's Nim (Winning Ways, chapter 4).
fn lasker(n: u64) -> u64 {
    match n % 4 {
        _ if n == 0 => 0,
        3 => n + 1,
        0 => n - 1,
        _ => n,
    }
}

#[test]
fn names_of_one_game_have_the_same_values() {
    for names in [
        &["sub:1,4,10", ".3003000003", "Sub: 10, 4, 1"][..],
        &["allbut:1,4", "All-But:4,1", ".0330(3)", ".0330333..."],
        &["lasker", "Lasker's Nim", "4.(3)", "4.333..."],
        &[".8f", "0.8F", ".8F0"],
    ] {
        let first = stdout_of(&["values", names[0], "0..60"]);
        for name in names {
            assert_eq!(stdout_of(&["values", name, "0..60"]), first, "{name}");
        }
    }
    let lines: String = (0..60).map(|n| format!("{n} {}\n", lasker(n))).collect();
    assert_eq!(stdout_of(&["values", "lasker", "0..60"]), lines);
}

#[test]
fn runs_of_hexadecimal_codes_resume_and_verify() {
    let home = tempfile::tempdir().unwrap();
    let inside = |arguments: &[&str]| {
        let (status, stdout, stderr) = within(home.path(), arguments);
        assert_eq!(status, 0, "{arguments:?}: {stderr}");
        stdout
    };
    for kernel in ["auto", "definition"] {
        let dir = format!("runs/{kernel}");
        inside(&["run", ".C8", "--to", "500", "--dir", &dir, "--kernel", kernel]);
        inside(&["run", ".C8", "--to", "1200", "--dir", &dir, "--kernel", "auto"]);
        for level in ["digest", "recompute", "definition"] {
            inside(&["verify", &dir, "--level", level]);
        }
        assert_eq!(inside(&["values", &dir, "0..1200"]), inside(&["values", "0.C8", "0..1200"]));
    }
    inside(&["run", "4.(3)", "--to", "300"]);
    assert!(home.path().join("runs/4.r3/values.npy").exists());
    assert_eq!(inside(&["export", "runs/4.r3", "--format", "bfile"]), inside(&["values", "lasker", "0..300"]));
    assert_eq!(within(home.path(), &["run", ".C8", "--to", "3e8", "--keep", "1000", "--dir", "kept"]).0, 1);
}

#[test]
fn period_of_a_hexadecimal_code_is_proved_and_certified() {
    let home = tempfile::tempdir().unwrap();
    let proved = |code: &str| {
        let (status, stdout, stderr) = within(home.path(), &["period", code, "--certificate", "c.json", "--json"]);
        assert_eq!(status, 0, "{code}: {stderr}");
        object(&stdout)
    };
    // A move from n leaves heaps with n - 1 tokens together. By induction G(n) is n mod 2, and so is each nim-sum.
    let found = proved(".F");
    assert_eq!((&found["status"], &found["period"], &found["preperiod"]), (&"proved".into(), &2.into(), &0.into()));
    assert_eq!(found["theorem"], "P1");
    let (status, _, stderr) = within(home.path(), &["verify", "c.json"]);
    assert_eq!(status, 0, "{stderr}");
    // 3 (n0 + p) + t values, with n0 at least 1: one less is refused.
    let certificate = std::fs::read_to_string(home.path().join("c.json")).unwrap();
    assert_eq!(object(&certificate)["checked_through"], 10);
    let shorter = certificate.replace("\"checked_through\": 10", "\"checked_through\": 9");
    assert_ne!(shorter, certificate, "{certificate}");
    std::fs::write(home.path().join("c.json"), shorter).unwrap();
    assert_eq!(within(home.path(), &["verify", "c.json"]).0, 3);
}

/// Runs `period lasker`, whose values end, with these options.
fn period_of_lasker(home: &Path, options: &[&str]) {
    let (status, stdout, stderr) = within(home, &[&["period", "lasker", "--to", "2^17", "--json"], options].concat());
    assert_eq!(status, 0, "{stderr}");
    assert!(stderr.contains("is above 65535"), "{stderr}");
    let found = object(&stdout);
    assert_eq!((&found["status"], &found["period"], &found["saltus"]), (&"observed".into(), &4.into(), &4.into()));
}

#[test]
fn period_reports_what_it_found_when_values_end() {
    let home = tempfile::tempdir().unwrap();
    period_of_lasker(home.path(), &["--for", "1h"]);
    for place in [&["--for", "1h"], &["--dir", "ones"]] {
        let (status, stdout, stderr) = within(home.path(), &[&["period", ".(1)", "--json"], &place[..]].concat());
        assert_eq!(status, 0, "{stderr}");
        assert!(stderr.contains("the code of the game repeats"), "{stderr}");
        assert_eq!(object(&stdout)["checked_through"], 65537);
    }
    let (status, _, stderr) = within(home.path(), &["values", ".(1)", "65537"]);
    assert_eq!(status, 1);
    assert!(stderr.contains("G(65537) cannot be computed"), "{stderr}");
    let (status, _, stderr) = within(home.path(), &["run", ".(1)", "--to", "65538", "--dir", "beyond"]);
    assert_eq!(status, 1);
    assert!(stderr.contains("G(65537) cannot be computed"), "{stderr}");
    assert!(!home.path().join("beyond").exists(), "a run that cannot end is not begun");
    let (status, ..) = within(home.path(), &["run", ".(1)", "--to", "65537", "--dir", "whole"]);
    assert_eq!(status, 0);
}

#[test]
fn period_reports_what_it_found_when_the_values_of_a_run_end() {
    let home = tempfile::tempdir().unwrap();
    // In a new run, and in the run when it is complete.
    (0..2).for_each(|_| period_of_lasker(home.path(), &["--dir", "new"]));
}

#[test]
fn surveys_play_and_find_support_the_codes() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("games.txt"), ".F\nlasker\n.8 # saltus 1\nsub:1,2\n").unwrap();
    let (status, _, stderr) = within(home.path(), &["survey", "games.txt", "--to", "3000", "-o", "s", "--json"]);
    assert_eq!(status, 0, "{stderr}");
    let record = |name: &str| object(&read(&home.path().join("s").join(name)));
    assert_eq!(record("0.F.json")["status"], "proved");
    assert_eq!((&record("4.r3.json")["period"], &record("4.r3.json")["saltus"]), (&4.into(), &4.into()));
    assert_eq!((&record("0.8.json")["period"], &record("0.8.json")["saltus"]), (&3.into(), &1.into()));
    assert_eq!(record("0.33.json")["game"], "0.33");
    // Four tokens in .8: one is taken, and three heaps of one are left, which have no move.
    assert_eq!(
        stdout_of(&["play", ".8", "4"]),
        "nim-value 1: the player to move wins with\nheap 1: 4 -> 1 + 1 + 1 (take 1)\n"
    );
    assert_eq!(stdout_of(&["find", ".8", "--zeros", "--range", "0..100", "--format", "text"]), "0 0\n1 0\n2 0\n3 0\n");
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn objects_of_status_name_the_strategy() {
    let home = tempfile::tempdir().unwrap();
    let (status, stdout, stderr) = within(home.path(), &["run", ".8", "--to", "100", "--json"]);
    assert_eq!(status, 0, "{stderr}");
    let status: Value = object(&stdout);
    assert_eq!(status["strategy"], "sets of the values of all pairs, because a move leaves three heaps");
}

#[test]
fn runs_of_long_codes_have_short_directories() {
    let home = tempfile::tempdir().unwrap();
    let (status, stdout, stderr) = within(home.path(), &["run", "sub:1,300", "--to", "1000"]);
    assert_eq!(status, 0, "{stderr}");
    let dir = stdout.split_whitespace().find(|word| word.starts_with("runs/")).unwrap();
    assert!(dir.len() < 200, "{stdout}");
    assert_eq!(within(home.path(), &["verify", dir, "--level", "recompute"]).0, 0);
    std::fs::write(home.path().join("games"), format!("kayles\n.{}2\n", "1".repeat(3000))).unwrap();
    let (status, _, stderr) = within(home.path(), &["survey", "games", "-o", "s"]);
    assert!(status == 2 && stderr.contains("3003 characters; at most 2048 fit a record"), "{stderr}");
}

#[test]
fn values_that_no_kernel_computes_are_recomputed_by_the_definition() {
    let home = tempfile::tempdir().unwrap();
    for (game, to) in [(".8", "700"), (".(7)", "700"), ("grundy", "9000"), (".07", "9000")] {
        let (status, _, stderr) = within(home.path(), &["-q", "run", game, "--to", to, "--dir", game]);
        assert_eq!(status, 0, "{stderr}");
        let path = format!("./{game}");
        let (status, stdout, stderr) = within(home.path(), &["verify", &path, "--level", "recompute", "--json"]);
        assert_eq!(status, 0, "{stderr}");
        let by = object(&stdout)["kernel"].clone();
        assert_eq!(by == "definition", matches!(game, ".8" | ".(7)"), "{game}: {by}");
    }
}

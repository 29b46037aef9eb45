//! `grundy status` of runs in progress, `--watch`, the layout of texts for people, and colour.

use crate::support::whole::recorded;
use crate::support::{fails, grundy, json_of, output_of, run_well, start, stdout_of, text, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, SystemTime};

/// Starts a run that computes for hours, and waits until it has committed values.
fn long_run(dir: &Path, more: &[&str]) -> Child {
    let mut command = grundy(["-q", "run", "0.6", "--threads", "1", "--dir"]);
    let mut child = start(command.arg(dir).args(more));
    wait_until("the run commits", || recorded(dir) > 0 || child.try_wait().unwrap().is_some());
    child
}

fn ended(mut child: Child, signal: Signal) {
    kill_process(Pid::from_child(&child), signal).unwrap();
    child.wait().unwrap();
}

fn time(value: &Value) -> SystemTime {
    humantime::parse_rfc3339(value.as_str().unwrap()).unwrap()
}

#[test]
fn running_run_is_reported_with_pid_goal_and_speed() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("runs/long");
    let dir = path.to_str().unwrap();
    let child = long_run(&path, &["--to=3e8"]);
    let status = json_of(&["status", dir, "--json"]);
    let running = &status["running"];
    assert_eq!((&status["state"], &running["pid"]), (&json!("running"), &json!(child.id())), "{status}");
    assert_eq!(running["to"], 300_000_000, "{status}");
    let age = SystemTime::now().duration_since(time(&running["since"])).unwrap();
    assert!(age < Duration::from_secs(120), "{status}");
    // The speed needs some seconds of computing.
    let mut status = Value::Null;
    wait_until("the speed is known", || {
        status = json_of(&["status", dir, "--json"]);
        status["rate"].is_u64()
    });
    let average = status["count"].as_f64().unwrap() / (status["seconds"].as_f64().unwrap() + 1.0);
    let rate = status["rate"].as_f64().unwrap();
    assert!(rate > average / 10.0 && rate < average * 10.0, "{status}");
    assert!(time(&status["last_commit"]) <= time(&status["time"]), "{status}");
    assert!(time(&status["running"]["end"]) > SystemTime::now(), "{status}");
    let words = stdout_of(&["status", dir]);
    assert!(words.contains(&format!("running (pid {}, for ", child.id())), "{words}");
    assert!(words.contains("will end at 300,000,000 values in"), "{words}");
    let listed = text(&grundy(["status"]).current_dir(home.path()).output().unwrap().stdout);
    assert!(listed.contains("runs/long") && listed.contains("running, "), "{listed}");
    // Status takes no lock: the run has committed more, and stops as usual.
    ended(child, Signal::TERM);
    let status = json_of(&["status", dir, "--json"]);
    assert_eq!((&status["state"], &status["running"]), (&json!("stopped"), &Value::Null), "{status}");
    assert!(stdout_of(&["status", dir]).contains("not running (stopped cleanly)"));
}

#[test]
fn killed_run_is_not_stopped_and_a_run_without_a_goal_has_no_end() {
    let dirs = tempfile::tempdir().unwrap();
    let dir = dirs.path().to_str().unwrap();
    let child = long_run(dirs.path(), &[]);
    let status = json_of(&["status", dir, "--json"]);
    assert_eq!(status["running"]["pid"], child.id(), "{status}");
    assert_eq!((&status["running"]["to"], &status["running"]["end"]), (&Value::Null, &Value::Null), "{status}");
    ended(child, Signal::KILL);
    let status = json_of(&["status", dir, "--json"]);
    assert_eq!(status["running"], Value::Null);
    // In a container, a process outside it cannot be excluded.
    let is_whole_machine = std::fs::read_link("/proc/self/ns/pid").unwrap() == Path::new("pid:[4026531836]");
    assert_eq!(status["state"], if is_whole_machine { "interrupted" } else { "unknown" }, "{status}");
    let words = stdout_of(&["status", dir]);
    assert!(!words.contains("stopped cleanly") && !words.contains("(pid "), "{words}");
}

#[test]
fn watch_prints_a_block_each_time_and_ends_with_0() {
    let dirs = tempfile::tempdir().unwrap();
    run_well("kayles", &dirs.path().join("run"), &["--to", "5000"]);
    let path = dirs.path().join("out");
    let out = std::fs::File::create(&path).unwrap();
    let mut command = grundy(["status"]);
    command.arg(dirs.path().join("run")).args(["--watch", "1"]).stdout(out);
    let mut child = command.spawn().unwrap();
    let blocks = || std::fs::read_to_string(&path).unwrap().matches("\ngame ").count();
    wait_until("the second block", || blocks() >= 2);
    assert!(!std::fs::read_to_string(&path).unwrap().contains('\u{1b}'), "no terminal, no escape sequence");
    // Not INT, which a shell without job control lets its background processes ignore.
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    fails(2, &["status", "--watch", "runs/grundy"], &["name run directories before --watch"]);
    fails(2, &["status", "--watch", "0"], &["at least 1"]);
    fails(1, &["status", "/nonexistent", "--watch"], &["no such directory"]);
}

#[test]
fn texts_for_people_fit_80_columns_and_keep_words_and_numbers_whole() {
    let home = tempfile::tempdir().unwrap();
    let within = |arguments: &[&str]| {
        let output = grundy(arguments).current_dir(home.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    for game in ["grundy", "kayles", "0.4"] {
        within(&["-q", "run", game, "--to", "70000"]);
    }
    let report = within(&["status", "runs/grundy"]);
    let digest = json_of(&["status", home.path().join("runs/grundy").to_str().unwrap(), "--json"])["digest"].clone();
    assert!(report.lines().any(|line| line.ends_with(digest.as_str().unwrap())), "{report}");
    let texts = [report, within(&["status"]), within(&["games"]), within(&["status", "runs/0.4", "runs/0.77"])];
    let infos = ["grundy", "kayles", "0.4", "0.106", "remove-a-square", "0.0"].map(|game| within(&["info", game]));
    for text in texts.iter().chain(&infos) {
        for line in text.lines() {
            assert!(line.chars().count() <= 80 && line.trim_end() == line, "{line:?} in\n{text}");
        }
    }
}

/// Stdout and stderr of the program with these variables, which contain escape sequences or do not.
fn coloured(variables: &[(&str, &str)], arguments: &[&str]) -> (bool, bool) {
    let mut command: Command = grundy(arguments);
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").envs(variables.iter().copied());
    let output = command.output().unwrap();
    (output.stdout.contains(&0x1b), output.stderr.contains(&0x1b))
}

#[test]
fn colour_follows_the_option_and_the_environment() {
    let dirs = tempfile::tempdir().unwrap();
    run_well("kayles", dirs.path(), &["--to", "5000"]);
    let dir = dirs.path().to_str().unwrap();
    for (variables, arguments, expected) in [
        (&[][..], &["status", dir][..], (false, false)),
        (&[], &["--color", "always", "status", dir], (true, false)),
        (&[], &["status", dir, "--color=never"], (false, false)),
        (&[("NO_COLOR", "1")], &["status", dir], (false, false)),
        (&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], &["status", dir], (false, false)),
        (&[("CLICOLOR_FORCE", "1")], &["status", dir, "--color", "never"], (false, false)),
        (&[], &["status", dir, "--json", "--color", "always"], (false, false)),
        (&[], &["values", "kayles", "5", "--color", "always"], (false, false)),
        (&[], &["status", "/nonexistent"], (false, false)),
        (&[], &["status", "/nonexistent", "--color", "always"], (false, true)),
        (&[], &["--color", "always", "status", "--no-such-option"], (false, true)),
        (&[], &["--color=always", "status", "--help"], (true, false)),
        (&[], &["status", "--help"], (false, false)),
    ] {
        assert_eq!(coloured(variables, arguments), expected, "{variables:?} {arguments:?}");
    }
    fails(2, &["status", "--color", "sometimes"], &["sometimes", "always"]);
}

#[test]
fn error_label_is_red_and_the_text_stays_the_same() {
    let plain = output_of(&["status", "/nonexistent"]);
    let red = output_of(&["status", "/nonexistent", "--color", "always"]);
    let (plain, red) = (text(&plain.stderr), text(&red.stderr));
    assert!(red.contains("\u{1b}[31mgrundy: error:\u{1b}[0m"), "{red:?}");
    assert_eq!(anstream::adapter::strip_str(&red).to_string(), plain);
}

/// A terminal: `script` runs the command in one.
#[test]
fn watch_redraws_on_a_terminal() {
    let dirs = tempfile::tempdir().unwrap();
    run_well("kayles", dirs.path(), &["--to", "5000"]);
    let program = env!("CARGO_BIN_EXE_grundy");
    let command = format!("timeout --signal INT 3 {program} status {} --watch 1", dirs.path().display());
    let Ok(output) = Command::new("script").args(["-qec", &command, "/dev/null"]).env("TERM", "xterm").output() else {
        println!("skipped: no program 'script' to make a terminal");
        return;
    };
    let shown = text(&output.stdout);
    assert!(shown.matches("\u{1b}[H\u{1b}[2J").count() >= 2, "{shown:?}");
    assert!(shown.contains("\u{1b}[1mgame"), "labels have colour on a terminal: {shown:?}");
}

#[test]
fn run_that_ended_at_a_value_too_large_is_complete() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("runs/lasker");
    let dir = path.to_str().unwrap();
    // By Lasker's theorem G(4k + 3) = 4k + 4.
    for _ in 0..2 {
        fails(1, &["run", "lasker", "--dir", dir, "--to", "65537"], &["G(65535) is above 65535"]);
        let status = json_of(&["status", dir, "--json"]);
        assert_eq!((&status["count"], &status["too_large"]), (&json!(65_535), &json!(65_535)), "{status}");
        assert_eq!(status["state"], "stopped");
    }
    // The search for a period still verifies the table.
    let table = path.join("values.npy");
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[4096 + 80_000] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    fails(3, &["period", dir, "--to", "65537"], &["values.npy at byte", "do not have the digest"]);
    fails(1, &["run", "lasker", "--dir", dir, "--to", "65537"], &["restored", "G(65535) is above 65535"]);
    assert!(stdout_of(&["period", dir]).contains("G(n + 4) = G(n) + 4"));
    let words = stdout_of(&["status", dir]);
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("the run is complete, because G(65,535) is above 65535"), "{words}");
    let listed = text(&grundy(["status"]).current_dir(home.path()).output().unwrap().stdout);
    assert!(listed.contains("complete: the next value is above 65535"), "{listed}");
}

//! Inputs from outside the program: texts of any length, and special files in place of regular ones.

use crate::support::{fails, grundy, run_well, text};
use grundy::error::Error;
use grundy::games::edges::{Direction, Edges, MAX_EDGES, MAX_VERTICES};
use rustix::fs::{CWD, FileType, mknodat};
use std::fs::File;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Maximum time of a command; a command that waits for a FIFO would never end.
const LONGEST: Duration = Duration::from_secs(60);

/// Runs a command, which must end.
fn ends(command: &mut Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > LONGEST {
            child.kill().unwrap();
            panic!("{command:?} did not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

fn names(prefix: &str, count: usize) -> String {
    (0..count).map(|n| format!("{prefix}{n} ")).collect()
}

fn read(text: &str, direction: Direction) -> grundy::Result<Edges> {
    Edges::read(Path::new("text"), text, direction)
}

/// Line and message of a refusal.
fn refused(text: &str) -> (usize, String) {
    match read(text, Direction::Directed) {
        Err(Error::Line { line, what, .. }) => (line, what),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_set_names_a_vertex_once() {
    let text = format!("digraph {{ {{{}}} -> {{b b; b, b}} -> {{c c}} }}", "a ".repeat(50_000));
    let edges = read(&text, Direction::Directed).unwrap();
    assert_eq!(edges.names, ["a", "b", "c"]);
    let pairs: Vec<_> = edges.edges.iter().map(|edge| (edge.from, edge.to)).collect();
    assert_eq!(pairs, [(0, 1), (1, 2)]);
}

#[test]
fn edges_and_vertices_of_a_text_are_bounded() {
    let root = MAX_EDGES.isqrt();
    assert_eq!(root * root, MAX_EDGES);
    let (a, b) = (names("a", root), names("b", root));
    let full = format!("digraph {{ {{{a}}} -> {{{b}}}\n");
    assert_eq!(read(&format!("{full} }}"), Direction::Directed).unwrap().edges.len(), MAX_EDGES);
    // A chain, a second statement, and a set that is too large alone.
    for more in [" -> c }", "; d -> e }"] {
        let (line, what) = refused(&format!("{full}{more}"));
        assert!(line == 2 && what.contains(&format!("at most {MAX_EDGES} edges")), "{line}: {what}");
    }
    let (line, what) = refused(&format!("digraph {{\n{{{a} x}}\n -> {{{b}}} }}"));
    assert!(line == 3 && what.contains(&format!("{} x {root} edges", root + 1)), "{line}: {what}");
    let lines: String = (0..=MAX_VERTICES).map(|n| format!("{n:x}\n")).collect();
    let (line, what) = refused(&lines);
    assert!(line == MAX_VERTICES + 1 && what.contains(&format!("at most {MAX_VERTICES} vertices")), "{line}: {what}");
}

#[test]
fn short_text_with_many_edges_is_parsed_quickly() {
    let home = tempfile::tempdir().unwrap();
    let (a, b) = (names("a", 50_000), names("b", 50_000));
    for (kind, arrow, command) in [("digraph", "->", &["graph"][..]), ("graph", "--", &["board", "remove-edge"])] {
        let path = home.path().join(kind);
        std::fs::write(&path, format!("{kind} {{ {{{a}}} {arrow} {{{b}}} }}")).unwrap();
        let output = ends(grundy(command).arg(&path));
        let stderr = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{stderr}");
        assert!(stderr.contains("line 1: 50000 x 50000 edges") && stderr.contains("at most"), "{stderr}");
    }
}

const TEXTS: [&[&str]; 5] = [
    &["graph"],
    &["board", "remove-edge"],
    &["board", "remove-square"],
    &["survey", "-o", "nowhere"],
    &["check", "kayles"],
];

#[test]
fn texts_without_an_end_and_directories_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let long = home.path().join("long");
    File::create(&long).unwrap().set_len(1 << 40).unwrap();
    for arguments in TEXTS {
        for (name, what) in
            [("/dev/zero", "longer than"), (long.to_str().unwrap(), "longer than"), ("/tmp", "directory")]
        {
            let output = ends(grundy(arguments).arg(name).current_dir(home.path()));
            let stderr = text(&output.stderr);
            assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{arguments:?} {name}: {stderr}");
            assert!(stderr.contains(what) && stderr.contains(name), "{arguments:?} {name}: {stderr}");
        }
        let output = ends(grundy(arguments).arg("-").current_dir(home.path()).stdin(File::open("/dev/zero").unwrap()));
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(1) && stderr.contains("standard input"), "{arguments:?}: {stderr}");
    }
    assert!(!home.path().join("nowhere").exists(), "a directory was created");
    std::fs::write(&long, b"a b\n\xff\n").unwrap();
    fails(1, &["graph", long.to_str().unwrap()], &["byte 4", "UTF-8"]);
}

#[test]
fn texts_come_from_pipes_and_standard_input_as_well() {
    let home = tempfile::tempdir().unwrap();
    let fifo = home.path().join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, 0o600.into(), 0).unwrap();
    let inputs = ["a b\n", "a b\n", "##\n##\n", "kayles\n", "0 0\n"];
    let results = ["a N 1", "nim-value 1", "nim-value", "1 game, 1 of them new", "agrees with 0.77: 1 value"];
    for ((arguments, input), result) in TEXTS.into_iter().zip(inputs).zip(results) {
        let file = home.path().join("file");
        std::fs::write(&file, input).unwrap();
        let arguments: Vec<&str> = arguments.iter().map(|&word| if word == "nowhere" { "out" } else { word }).collect();
        let from_stdin = ends(grundy(&arguments).arg("-").current_dir(home.path()).stdin(File::open(&file).unwrap()));
        let writer = (fifo.clone(), input);
        let writer = std::thread::spawn(move || std::fs::write(writer.0, writer.1).unwrap());
        let from_fifo = ends(grundy(&arguments).arg("fifo").current_dir(home.path()));
        writer.join().unwrap();
        assert!(text(&from_stdin.stdout).contains(result), "{arguments:?}: {}", text(&from_stdin.stderr));
        assert_eq!(from_fifo.status.code(), Some(0), "{arguments:?}: {}", text(&from_fifo.stderr));
    }
    let graph = home.path().join("graph");
    std::fs::write(&graph, "a b\n").unwrap();
    let twice = ends(grundy(["graph", "-", "-"]).stdin(File::open(&graph).unwrap()));
    // A graph without a vertex, and one whose lines are not separated by blanks.
    for (text_of_graph, what) in [("# nothing\n", "no vertex"), ("a,b\nb,c\n", "'a,b' is the name of one vertex")] {
        std::fs::write(&graph, text_of_graph).unwrap();
        let refused = ends(grundy(["graph", "graph"]).current_dir(home.path()));
        let stderr = text(&refused.stderr);
        assert!(refused.status.code() != Some(0) && stderr.contains(what), "{stderr}");
    }
    assert!(twice.status.code() == Some(1) && text(&twice.stderr).contains("only once"), "{}", text(&twice.stderr));
}

/// Creates a special file; the socket exists as long as its listener.
fn put(kind: &str, path: &Path) -> Option<UnixListener> {
    let _ = std::fs::remove_file(path);
    match kind {
        "directory" => std::fs::create_dir(path).unwrap(),
        "device" => symlink("/dev/zero", path).unwrap(),
        "socket" => return Some(UnixListener::bind(path).unwrap()),
        _ => mknodat(CWD, path, FileType::Fifo, 0o600.into(), 0).unwrap(),
    }
    None
}

#[test]
fn reading_a_run_never_blocks_on_a_special_file() {
    let home = tempfile::tempdir().unwrap();
    let good = home.path().join("good");
    run_well(".6", &good, &["--to", "3000", "--width", "u8"]);
    let commands: [&[&str]; 9] = [
        &["status", "DIR"],
        &["values", "DIR", "0..5"],
        &["export", "DIR", "--format", "csv"],
        &["find", "DIR", "--zeros"],
        &["verify", "DIR"],
        &["period", "DIR"],
        &["play", "DIR", "5"],
        &["run", "--dir", "DIR", "--to", "4000"],
        &["run", "--dir", "DIR", "--to", "4000", "--rollback"],
    ];
    for kind in ["fifo", "directory", "device", "socket"] {
        for name in ["journal.jsonl", "values.npy", "escapes.npy"] {
            let dir = home.path().join(format!("{kind}-{name}"));
            std::fs::create_dir(&dir).unwrap();
            for file in ["journal.jsonl", "values.npy", "escapes.npy"] {
                std::fs::copy(good.join(file), dir.join(file)).unwrap();
            }
            let _listener = put(kind, &dir.join(name));
            for command in commands {
                let arguments = command.iter().map(|&word| if word == "DIR" { dir.to_str().unwrap() } else { word });
                let output = ends(&mut grundy(arguments));
                let stderr = text(&output.stderr);
                // `status` reads the journal and need not open the other files.
                if command[0] != "status" || name == "journal.jsonl" {
                    assert!(matches!(output.status.code(), Some(1 | 3)), "{kind} {name} {command:?}: {stderr}");
                    assert!(stderr.contains(name), "{kind} {name} {command:?}: {stderr}");
                }
                assert!(!stderr.contains("panicked"), "{stderr}");
            }
        }
    }
}

#[test]
fn reading_a_survey_never_blocks_on_a_special_file() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("games"), "kayles\n").unwrap();
    let survey = |dir: &str| ends(grundy(["-q", "survey", "games", "--to", "500", "-o", dir]).current_dir(home.path()));
    for kind in ["fifo", "directory", "device", "socket"] {
        for name in ["0.77.json", "survey.plan", "lock"] {
            let dir = format!("{kind}-{name}");
            assert_eq!(survey(&dir).status.code(), Some(0));
            let _listener = put(kind, &home.path().join(&dir).join(name));
            let merged = ends(grundy(["merge", &dir]).current_dir(home.path()));
            for output in [survey(&dir), merged].iter().take(if name == "lock" { 1 } else { 2 }) {
                let stderr = text(&output.stderr);
                assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{kind} {name}: {stderr}");
                assert!(stderr.contains(name), "{kind} {name}: {stderr}");
            }
        }
    }
}

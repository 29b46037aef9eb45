//! Progress on a terminal, as a terminal shows it, and in a log; the end of a run at a given time.

use crate::support::{count, fails, grundy, is_ignored, text};
use pty_process::Size;
use pty_process::blocking::{Command, open};
use rustix::process::Signal;
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use vt100::Screen;

/// Widths of the terminals, in columns.
const WIDTHS: [u16; 3] = [60, 80, 120];

/// Maximum time until something is shown, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that runs on a terminal.
struct Terminal {
    parser: vt100::Parser,
    child: Child,
    keys: File,
    output: Receiver<Vec<u8>>,
}

impl Terminal {
    /// Starts the program with stdin and stderr on a terminal of this width, and stdout there or in a pipe.
    fn start(width: u16, arguments: &[&str], stdout: Option<Stdio>) -> Terminal {
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(24, width)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_grundy")).args(arguments).env("TERM", "xterm");
        if let Some(stdout) = stdout {
            command = command.stdout(stdout);
        }
        let child = command.spawn(pts).unwrap();
        let keys = File::from(pty.as_fd().try_clone_to_owned().unwrap());
        let mut screen = File::from(OwnedFd::from(pty));
        let (send, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // At the end of the program, reading fails.
            while let Ok(length @ 1..) = screen.read(&mut buffer) {
                let _ = send.send(buffer[..length].to_vec());
            }
        });
        let [rows, columns] = [24, width].map(|size| NonZero::new(size).unwrap());
        Terminal { parser: vt100::Parser::new(rows, columns, 0), child, keys, output }
    }

    /// Waits until the screen shows something, or the program ends; returns whether it was shown. No line of progress
    /// may wrap meanwhile.
    fn shows(&mut self, what: impl Fn(&str) -> bool) -> bool {
        let end = Instant::now() + PATIENCE;
        while !what(&self.parser.screen().contents()) {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "not within a minute; the screen: {}", self.parser.screen().contents());
            match self.output.recv_timeout(left) {
                Ok(bytes) => {
                    self.parser.process(&bytes);
                    assert!(!progress_wraps(self.parser.screen()), "{}", self.parser.screen().contents());
                }
                Err(_) => return false,
            }
        }
        true
    }

    /// Waits until the program ends; returns its exit status and the last screen.
    fn end(mut self) -> (ExitStatus, String) {
        self.shows(|_| false);
        (self.child.wait().unwrap(), self.parser.screen().contents())
    }

    fn interrupt(&mut self) {
        self.keys.write_all(b"\x03").unwrap();
    }
}

/// Whether the line at the cursor is the rest of a wrapped line of progress.
fn progress_wraps(screen: &Screen) -> bool {
    let (row, _) = screen.cursor_position();
    let line = |row: u16| screen.rows(0, u16::MAX).nth(row.into()).unwrap_or_default();
    row > 0 && screen.row_wrapped(row - 1) && [line(row - 1), line(row)].concat().contains(" %")
}

/// Whether the screen shows a line with percent, rate and time left.
fn is_complete(screen: &str) -> bool {
    screen.lines().any(|line| line.contains(" %, ") && line.contains("/s, ") && line.contains(" left"))
}

fn is_empty(screen: &str) -> bool {
    screen.trim().is_empty()
}

/// Reads a pipe slowly until `fast` is set.
fn drain(mut pipe: ChildStdout, fast: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(1..) = pipe.read(&mut buffer) {
            if !fast.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    });
}

/// A command whose output is read so slowly that it shows progress; with the flag that ends this.
fn slow(width: u16) -> (Terminal, Arc<AtomicBool>) {
    let mut terminal = Terminal::start(width, &["values", "grundy", "0..3e6"], Some(Stdio::piped()));
    let fast = Arc::new(AtomicBool::new(false));
    drain(terminal.child.stdout.take().unwrap(), Arc::clone(&fast));
    assert!(terminal.shows(is_complete), "{width}: it ended");
    (terminal, fast)
}

/// Runs a test at each width, all at the same time.
fn at_each_width(test: impl Fn(u16) + Sync) {
    std::thread::scope(|scope| {
        let test = &test;
        for width in WIDTHS {
            scope.spawn(move || test(width));
        }
    });
}

#[test]
fn progress_fits_the_width_and_is_erased_at_the_end() {
    at_each_width(|width| {
        let (terminal, fast) = slow(width);
        fast.store(true, Ordering::Relaxed);
        let (status, screen) = terminal.end();
        assert!(status.success() && is_introduction(&screen), "{width}: {status}: {screen}");
    });
}

/// Whether nothing stands on the screen but the lines that stay.
fn is_introduction(screen: &str) -> bool {
    let text: String = screen.lines().collect();
    is_empty(screen) || text.starts_with("computing 3,000,000 values in memory (") && text.ends_with(" threads)")
}

#[test]
fn progress_is_erased_before_the_default_action_of_ctrl_c() {
    if is_ignored(Signal::INT) {
        return println!("skipped: INT is ignored here");
    }
    at_each_width(|width| {
        let (mut terminal, _) = slow(width);
        terminal.interrupt();
        let (status, screen) = terminal.end();
        assert_eq!(status.signal(), Some(Signal::INT.as_raw()), "{width}: {status}");
        let said: Vec<&str> = screen.lines().collect();
        assert_eq!(said.last(), Some(&"stopped by a signal before the end"), "{width}: {screen}");
        assert!(is_introduction(&said[..said.len() - 1].join("\n")), "{width}: {screen}");
    });
}

#[test]
fn ctrl_c_shows_that_the_run_stops_and_erases_its_progress() {
    if is_ignored(Signal::INT) {
        return println!("skipped: INT is ignored here");
    }
    at_each_width(|width| {
        let dirs = tempfile::tempdir().unwrap();
        let dir = dirs.path().join("run");
        let arguments = ["run", "grundy", "--to", "1e8", "--threads", "1", "--dir", dir.to_str().unwrap()];
        let mut terminal = Terminal::start(width, &arguments, None);
        assert!(terminal.shows(is_complete), "{width}: it ended");
        let begun = Instant::now();
        terminal.interrupt();
        // A run that ends at once need not say that it will.
        let shown = terminal.shows(|screen| screen.contains("stopping …"));
        assert!(shown || begun.elapsed() < Duration::from_secs(10), "{width}");
        let (status, screen) = terminal.end();
        assert_eq!(status.code(), Some(130), "{width}: {screen}");
        // A command that does not fit the line begins on the next one.
        let words = screen.split_whitespace().collect::<Vec<&str>>().join(" ");
        assert!(words.starts_with("starting ") && words.contains("stopped; to resume: grundy run grundy --dir "));
        assert!(!screen.contains('%') && !screen.contains('░') && !screen.contains("stopping"), "{width}: {screen}");
    });
}

/// Bytes that are no text could change the state of the terminal.
#[test]
fn binary_formats_are_not_written_to_a_terminal() {
    for format in ["npy", "parquet"] {
        let terminal = Terminal::start(120, &["export", "kayles", "--range", "0..9", "--format", format], None);
        let (status, screen) = terminal.end();
        assert!(status.code() == Some(2) && screen.contains("-o FILE"), "{format}: {status}: {screen}");
    }
}

#[test]
fn search_of_unknown_size_shows_how_much_of_its_limit_it_has_used() {
    at_each_width(|width| {
        let mut terminal = Terminal::start(width, &["board", "remove-square", "7x8"], Some(Stdio::null()));
        let fields = [" % of limit, ", "/s, ≤ ", " left"];
        assert!(terminal.shows(|screen| fields.iter().all(|field| screen.contains(field))), "{width}: it ended");
        let screen = terminal.parser.screen().contents();
        assert!(width == 60 || screen.contains('░'), "{width}: {screen}");
        terminal.child.kill().unwrap();
        terminal.child.wait().unwrap();
    });
}

#[test]
fn short_and_quiet_commands_show_nothing() {
    let (status, screen) = Terminal::start(80, &["values", "kayles", "0..10"], Some(Stdio::null())).end();
    assert!(status.success() && is_empty(&screen), "{screen}");
    let dirs = tempfile::tempdir().unwrap();
    let dir = dirs.path().join("run");
    let arguments = ["-q", "run", "grundy", "--for", "2s", "--dir", dir.to_str().unwrap()];
    let (status, screen) = Terminal::start(80, &arguments, Some(Stdio::null())).end();
    assert_eq!(status.code(), Some(130));
    assert!(screen.starts_with("stopped; to resume: "), "{screen}");
}

#[test]
fn log_begins_with_a_start_line_and_has_a_line_per_interval() {
    let dirs = tempfile::tempdir().unwrap();
    let dir = dirs.path().join("run");
    let of = |arguments: &[&str]| {
        let output = grundy(["run", "grundy", "--threads", "1", "--dir"]).arg(&dir).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(130));
        text(&output.stderr)
    };
    let log = of(&["--to", "1e8", "--log-every", "1s", "--for", "4s"]);
    let lines = log.lines().map(|line| line.split_once("INFO ").map_or(line, |(_, line)| line));
    // A slow machine logs 0 values while it chooses the method, before the start line.
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with("grundy: 0.0 %, 0 of ")).collect();
    assert!(lines[0].starts_with("will stop at "), "{log}");
    assert!(lines[1].starts_with("starting ") && lines[1].contains(": 100,000,000 values (grundy, "), "{log}");
    assert!(lines[1].contains(", 1 thread; needs 100 MB, ") && lines[1].ends_with(" free)"), "{log}");
    let progress: Vec<&&str> = lines.iter().filter(|line| line.starts_with("grundy: ")).collect();
    let is_field =
        |line: &str| line.contains(" %, ") && line.contains(" of 100,000,000 values, ") && line.contains("/s, ");
    assert!(progress.iter().filter(|line| is_field(line)).count() >= 2, "{log}");
    assert!(lines.last().unwrap().starts_with("stopped; to resume: grundy run grundy --dir "), "{log}");
    let before = count(&dir);
    assert!(before > 0);
    let log = of(&["--for", "2s"]);
    assert!(log.contains("resuming ") && log.contains(", until stopped (grundy, "), "{log}");
    assert!(!log.contains(" values, "), "no line of progress in two seconds: {log}");
    assert!(count(&dir) > before);
}

#[test]
fn times_to_stop_are_checked() {
    let cases: [(&[&str], &str); 6] = [
        (&["--for", "8"], "unit"),
        (&["--for", "0s"], "more than 0"),
        (&["--until", "25:00"], "07:30"),
        (&["--until", "2020-01-01T00:00"], "past"),
        (&["--for", "1h", "--until", "07:30"], "cannot be used with"),
        (&["--log-every", "soon"], "10m"),
    ];
    for (options, words) in cases {
        fails(2, &[&["run", "kayles"], options].concat(), &[words]);
    }
}

#[test]
fn errors_are_broken_between_words_and_commands_stay_whole() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    crate::support::run_well("kayles", &dir, &["--to", "1000"]);
    let dir = dir.to_str().unwrap();
    let command = format!("'grundy run --dir {dir} --to 5000'");
    for width in WIDTHS {
        for (arguments, status) in [(&["verify", dir, "--range", "0..5000"][..], 1), (&["values", "kayles", "0-5"], 2)]
        {
            let (ended, screen) = Terminal::start(width, arguments, None).end();
            assert_eq!(ended.code(), Some(status), "{screen}");
            assert!(screen.lines().count() > 1 || width == 120, "{screen}");
            for line in screen.lines().filter(|line| line.chars().count() > width.into()) {
                assert_eq!(line.trim(), command, "{width} columns:\n{screen}");
            }
            assert!(status == 2 || screen.contains(&command), "{width} columns:\n{screen}");
        }
    }
}

#[test]
fn results_and_help_fit_the_terminal() {
    for width in WIDTHS {
        for arguments in [&["period", "kayles"][..], &["info", ".156"], &["games"], &["-h"]] {
            let (status, screen) = Terminal::start(width, arguments, None).end();
            assert_eq!(status.code(), Some(0), "{screen}");
            // A wrapped line of the screen appears as one line of its contents.
            let longest = screen.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(longest <= width.into(), "{width} columns, {arguments:?}:\n{screen}");
        }
    }
}

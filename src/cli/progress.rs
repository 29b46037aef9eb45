//! Progress of long work: one line that is redrawn on a terminal, log lines elsewhere.
//!
//! Invariant: the line on a terminal never reaches the right margin. It omits its last fields instead, and leaves room
//! for the `^C` that a terminal echoes, so that clearing one line clears all of it.

use grundy::run::{Observer, Progress};
use grundy::theory::rule::Rule;
use indicatif::{HumanCount, HumanDuration};
use std::collections::VecDeque;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Time between two log lines if stderr is not a terminal.
const LOG_EVERY: Duration = Duration::from_secs(30);

/// Time until the first log line of work without an initial log line ([`Meter::announce`]).
const FIRST_LOG: Duration = Duration::from_secs(1);

/// Minimum time between two drawings on a terminal.
const DRAW_EVERY: Duration = Duration::from_millis(100);

/// Time over which the rate on a terminal is averaged.
const RATE_OVER: Duration = Duration::from_secs(10);

/// Number of free columns at the right margin, for an echoed `^C` and the cursor.
const MARGIN: usize = 4;

/// Minimum and maximum number of columns of a bar.
const BAR: (usize, usize) = (10, 30);

/// Name of the task of hashing the stored values of a run.
const REHASHING: &str = "rehashing";

/// Name of the task of recomputing freed values.
const RECOMPUTING: &str = "recomputing";

/// Width of a terminal that does not report its own, in columns.
const USUAL_WIDTH: usize = 80;

/// Sends log lines to stderr and ignores write errors there; `quiet` leaves only errors.
pub(crate) fn init_log(quiet: bool) {
    let level = if quiet { tracing::Level::ERROR } else { tracing::Level::INFO };
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .with_max_level(level)
        .log_internal_errors(false)
        .init();
}

/// Shows the progress of one task at a time.
pub(crate) struct Meter {
    quiet: bool,
    terminal: bool,
    /// Description of the task, shown after the name of the game.
    task: Option<&'static str>,
    what: String,
    to: Option<u64>,
    begun: Instant,
    next: Instant,
    /// Time and count of the last log line, or of the drawings of the last [`RATE_OVER`].
    shown: VecDeque<(Instant, u64)>,
    /// Whether the terminal shows a line.
    is_drawn: bool,
}

impl Meter {
    /// Creates a meter; it shows nothing before [`Meter::begin`].
    pub(crate) fn new(quiet: bool) -> Meter {
        let now = Instant::now();
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Meter {
            quiet,
            terminal: std::io::stderr().is_terminal() && !is_dumb,
            task: None,
            what: String::new(),
            to: None,
            begun: now,
            next: now,
            shown: VecDeque::new(),
            is_drawn: false,
        }
    }

    /// Creates a meter that shows `task` after the name of the game.
    pub(crate) fn with_task(quiet: bool, task: &'static str) -> Meter {
        let mut meter = Meter::new(quiet);
        meter.task = Some(task);
        meter
    }

    /// Starts showing work on `what`, from the count `from` to the count `to`, or without a known end.
    pub(crate) fn begin(&mut self, what: &str, from: u64, to: Option<u64>) {
        self.end();
        let now = Instant::now();
        (self.what, self.to) = (what.to_owned(), to);
        (self.begun, self.next) = (now, now + if self.terminal { Duration::ZERO } else { FIRST_LOG });
        self.shown.clear();
        self.shown.push_back((now, from));
        if self.terminal && !self.quiet {
            self.draw(from, None, "");
        }
    }

    /// Starts showing work on the values of a game, from the count `from` to `to`. Writes the first log line at once.
    pub(crate) fn announce(&mut self, game: &str, from: u64, to: Option<u64>) {
        let what = self.task.map_or_else(|| game.to_owned(), |task| format!("{game}: {task}"));
        self.begin(&what, from, to);
        if !self.quiet && !self.terminal {
            let goal = to.map_or_else(String::new, |to| format!(" to {}", HumanCount(to)));
            tracing::info!("{what}: from {} values{goal}", HumanCount(from));
            self.next = Instant::now() + LOG_EVERY;
        }
    }

    /// Shows that the work has reached the count `at`; `more` gives additional fields.
    pub(crate) fn at(&mut self, at: u64, more: impl FnOnce() -> String) {
        let now = Instant::now();
        if now < self.next || self.quiet {
            return;
        }
        let rate = self.shown.front().and_then(|&(then, before)| rate(at.saturating_sub(before), now - then));
        if self.terminal {
            self.next = now + DRAW_EVERY;
            while self.shown.get(1).is_some_and(|&(then, _)| now - then > RATE_OVER) {
                self.shown.pop_front();
            }
            self.draw(at, rate, &more());
        } else {
            self.next = now + LOG_EVERY;
            self.shown.clear();
            tracing::info!("{}: {}{}", self.what, fields(at, self.to, rate, None).join(", "), more());
        }
        self.shown.push_back((now, at));
    }

    /// Clears the line.
    pub(crate) fn end(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            to_terminal("\r\x1b[K");
        }
    }

    fn draw(&mut self, at: u64, rate: Option<f64>, more: &str) {
        let width = terminal_size::terminal_size_of(std::io::stderr()).map_or(USUAL_WIDTH, |(width, _)| width.0.into());
        let elapsed = self.to.is_none().then(|| self.begun.elapsed());
        let line = line(width, &self.what, &fields(at, self.to, rate, elapsed), part(at, self.to), more);
        to_terminal(&format!("\r{line}\x1b[K"));
        self.is_drawn = true;
    }

    fn say(&mut self, text: &str) {
        if self.terminal && !self.quiet {
            self.end();
            to_terminal(&format!("{text}\n"));
        } else {
            tracing::info!("{text}");
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.end();
    }
}

/// Writes to stderr and ignores errors.
fn to_terminal(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Values per second; `None` if no value was counted or the time is at most 10 ms.
fn rate(values: u64, time: Duration) -> Option<f64> {
    let seconds = time.as_secs_f64();
    (values > 0 && seconds > 0.01).then(|| values as f64 / seconds)
}

/// The fraction of the work that is done, 0 to 1.
fn part(at: u64, to: Option<u64>) -> Option<f64> {
    to.filter(|&to| to > 0).map(|to| at.min(to) as f64 / to as f64)
}

/// The fields of a progress line, the most important first.
fn fields(at: u64, to: Option<u64>, rate: Option<f64>, elapsed: Option<Duration>) -> Vec<String> {
    let mut fields = Vec::new();
    // Rounded down, so that 100 % means done.
    fields.extend(part(at, to).map(|part| format!("{:.1} %", (part * 1000.0).floor() / 10.0)));
    fields
        .push(to.map_or_else(|| HumanCount(at).to_string(), |to| format!("{} of {}", HumanCount(at), HumanCount(to))));
    fields.extend(rate.map(|rate| format!("{}/s", HumanCount(rate as u64))));
    fields.extend(rate.zip(to).map(|(rate, to)| format!("{} left", rough(to.saturating_sub(at) as f64 / rate))));
    fields.extend(elapsed.map(|elapsed| format!("{} so far", rough(elapsed.as_secs_f64()))));
    fields
}

/// Formats one line for a terminal of `width` columns: the name, the first fields that fit, and a bar if there is room.
fn line(width: usize, what: &str, fields: &[String], part: Option<f64>, more: &str) -> String {
    let room = width.saturating_sub(MARGIN);
    let mut name: String = what.chars().take(room).collect();
    if name.chars().count() < what.chars().count() && name.pop().is_some() {
        name.push('…');
    }
    let more = more.split(", ").map(|field| field.trim_start_matches([';', ' ']).to_owned()).filter(|f| !f.is_empty());
    let mut text = String::new();
    for field in fields.iter().cloned().chain(more) {
        let separator = if text.is_empty() { "" } else { ", " };
        let taken = name.chars().count() + 1 + text.chars().count();
        if taken + separator.len() + field.chars().count() > room {
            break;
        }
        text = format!("{text}{separator}{field}");
    }
    if text.is_empty() {
        return name;
    }
    let left = room - name.chars().count() - 1 - text.chars().count();
    match part {
        Some(part) if left > BAR.0 => {
            let length = (left - 1).min(BAR.1);
            let done = (part * length as f64) as usize;
            format!("{name} {}{} {text}", "█".repeat(done), "░".repeat(length - done.min(length)))
        }
        _ => format!("{name} {text}"),
    }
}

/// A duration rounded to its largest unit.
fn rough(seconds: f64) -> String {
    if seconds.is_finite() && seconds < 1e10 {
        format!("{:#}", HumanDuration(Duration::from_secs_f64(seconds)))
    } else {
        "centuries".to_owned()
    }
}

impl Observer for Meter {
    fn started(&mut self, rule: &Rule, from: u64, to: Option<u64>) {
        self.announce(rule.name(), from, to);
    }

    fn rehashed(&mut self, count: u64, of: u64) {
        if self.what != REHASHING {
            self.begin(REHASHING, 0, Some(of));
        }
        self.at(count, String::new);
    }

    fn advanced(&mut self, progress: &Progress) {
        self.at(progress.count, || {
            format!(
                "; largest {} at {}, {} rare positions, the last {}",
                progress.max_value, progress.max_at, progress.rares, progress.last_rare
            )
        });
    }

    fn recomputed(&mut self, done: u64, of: u64) {
        if self.what != RECOMPUTING {
            self.begin(RECOMPUTING, 0, Some(of));
        }
        self.to = Some(of); // decreases when a nearer window is found
        self.at(done, String::new);
    }

    fn note(&mut self, text: &str) {
        self.say(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(width: usize, at: u64, to: Option<u64>, rate: Option<f64>) -> String {
        let more = "; largest 234 at 3653177, 1274 rare positions, the last 82860";
        line(width, "0.777: searching for a period", &fields(at, to, rate, None), part(at, to), more)
    }

    #[test]
    fn line_never_wraps_and_omits_its_last_fields_first() {
        for width in 0..300 {
            for (at, to) in [(0, Some(1 << 30)), (62_259_200, Some(1 << 30)), (1 << 40, Some(1 << 40)), (7, None)] {
                let line = shown(width, at, to, Some(12_345.0));
                assert!(line.chars().count() <= width.saturating_sub(MARGIN), "{width}: {line}");
            }
        }
        let narrow = shown(80, 62_259_200, Some(1 << 30), Some(200_000.0));
        assert_eq!(narrow, "0.777: searching for a period 5.7 %, 62,259,200 of 1,073,741,824, 200,000/s");
        let wide = shown(200, 62_259_200, Some(1 << 30), Some(200_000.0));
        assert!(
            wide.ends_with("200,000/s, 84m left, largest 234 at 3653177, 1274 rare positions, the last 82860"),
            "{wide}"
        );
        assert!(wide.contains(" █░░░"), "{wide}");
    }

    #[test]
    fn percentage_is_rounded_down_and_unknown_rate_is_omitted() {
        assert_eq!(fields(999_999, Some(1_000_000), None, None), ["99.9 %", "999,999 of 1,000,000"]);
        assert_eq!(fields(1 << 20, Some(1 << 20), None, None)[0], "100.0 %");
        assert_eq!(fields(5, None, None, Some(Duration::from_secs(6))), ["5", "6s so far"]);
        assert_eq!(rate(0, Duration::from_secs(1)), None);
        assert_eq!(rate(100, Duration::ZERO), None);
    }
}

//! Progress of long work: one line that is redrawn on a terminal, log lines elsewhere.
//!
//! A thread owns the display. It polls the count that the work stores and the flags that signals set, so it shows a
//! signal at once, however long the work takes until its next report.
//!
//! Invariants: work that ends within [`SILENT`] shows nothing. A line on a terminal is erased before anything else is
//! written, and before the default action of a signal.

mod line;

pub(crate) use line::{GAMES, local, seconds_left};

use super::layout::{self, counted, size};
use super::{complain, signals};
use grundy::run::{Observer, Opening, Progress};
use grundy::theory::rule::Rule;
use indicatif::HumanCount;
use line::State;
use std::collections::VecDeque;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Polling interval of the count and the flags, and time between two drawings on a terminal.
const TICK: Duration = Duration::from_millis(100);

/// Time until work shows anything.
const SILENT: Duration = Duration::from_secs(1);

/// Times between the first log lines, in seconds; the last also between all later ones.
const LOG_AFTER: [u64; 4] = [30, 60, 5 * 60, 15 * 60];

/// Time over which the rate on a terminal is averaged.
const RATE_OVER: Duration = Duration::from_secs(60);

/// Minimum time over which a rate is computed.
const RATE_MIN: Duration = Duration::from_secs(1);

/// Width of a terminal that does not report its own, in columns.
const USUAL_WIDTH: usize = 80;

/// Stack of the thread of the display, in bytes.
const STACK: usize = 256 << 10;

/// Name of the task of hashing the stored values of a run.
const REHASHING: &str = "rehashing";

/// Name of the task of recomputing freed values.
const RECOMPUTING: &str = "recomputing";

/// The time between two log lines that the user has set.
static LOG_EVERY: OnceLock<Duration> = OnceLock::new();

/// Sends log lines to stderr and ignores write errors there; `quiet` leaves only warnings. Progress is logged every
/// `log_every`; by default, at growing intervals.
pub(crate) fn init_log(quiet: bool, log_every: Option<Duration>) {
    let level = if quiet { tracing::Level::WARN } else { tracing::Level::INFO };
    log_every.map(|every| LOG_EVERY.get_or_init(|| every));
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .with_max_level(level)
        .log_internal_errors(false)
        .init();
}

/// Writes a line about the result of a command: without decoration on a terminal, else to the log; nothing with
/// `--quiet`.
pub(crate) fn note(text: &str) {
    if std::io::stderr().is_terminal() && tracing::enabled!(tracing::Level::INFO) {
        to_terminal(&format!("{}\n", layout::lines(&layout::harmless(text), "", 2, terminal_width())));
    } else {
        tracing::info!("{text}");
    }
}

/// Writes a warning: after a label on a terminal, else to the log.
fn warn(text: &str) {
    if std::io::stderr().is_terminal() {
        complain!("grundy: warning: {text}");
    } else {
        tracing::warn!("{text}");
    }
}

/// Least value at which a run notes that a value above 65535 would end it.
const LARGE: u16 = 1 << 14;

/// Shows the progress of one task at a time.
pub(crate) struct Meter {
    /// `None` if nothing is shown.
    shared: Option<Arc<Shared>>,
    thread: Option<JoinHandle<()>>,
    /// Name of the task, shown before the name of the game.
    task: Option<&'static str>,
    /// Whether a line about large values was written.
    noted_large: bool,
}

/// What the work and the thread of the display share.
struct Shared {
    /// The count that the work has reached.
    at: AtomicU64,
    display: Mutex<Display>,
    /// Signalled when `closed` is set.
    closing: Condvar,
}

/// What is shown.
struct Display {
    is_terminal: bool,
    task: Option<Task>,
    /// A line to be written once, before the first progress.
    introduction: Option<String>,
    /// The line on the terminal; empty if there is none.
    drawn: String,
    /// When the next line of the log is due, and how many there were.
    next_log: Instant,
    logged: usize,
    /// Whether the log says that the work is about to end.
    said_stopping: bool,
    closed: bool,
}

/// The work that is shown now.
struct Task {
    name: String,
    unit: &'static str,
    /// The count at the end, if it is known.
    to: Option<u64>,
    /// Whether `to` is only a limit, at which the work ends at the latest.
    is_limited: bool,
    /// Whether a move leaves two heaps or more.
    has_splits: bool,
    run: Option<Progress>,
    begun: Instant,
    /// Times and counts: on a terminal those of the last [`RATE_OVER`], in a log that of the last line.
    samples: VecDeque<(Instant, u64)>,
}

impl Meter {
    /// Creates a meter; it shows nothing before [`Meter::begin`], and never anything if `quiet` is set.
    pub(crate) fn new(quiet: bool) -> Meter {
        if quiet {
            return Meter { shared: None, thread: None, task: None, noted_large: false };
        }
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let display = Display {
            is_terminal: std::io::stderr().is_terminal() && !is_dumb,
            task: None,
            introduction: None,
            drawn: String::new(),
            next_log: Instant::now() + log_interval(0),
            logged: 0,
            said_stopping: false,
            closed: false,
        };
        let shared = Arc::new(Shared { at: AtomicU64::new(0), display: Mutex::new(display), closing: Condvar::new() });
        let shown = Arc::clone(&shared);
        let thread = std::thread::Builder::new().stack_size(STACK).spawn(move || shown.show());
        // Where no thread can be started, the work goes on without a display.
        Meter { shared: Some(shared), thread: thread.ok(), task: None, noted_large: false }
    }

    /// Creates a meter that shows `task` before the name of the game.
    pub(crate) fn with_task(quiet: bool, task: &'static str) -> Meter {
        let mut meter = Meter::new(quiet);
        meter.task = Some(task);
        meter
    }

    /// Starts showing work on `name`, from the count of values `from` to the count `to`, or without a known end.
    pub(crate) fn begin(&self, name: &str, from: u64, to: Option<u64>) {
        self.begin_counting("values", name, from, to);
    }

    /// As [`Meter::begin`], but counts what `unit` names, in the plural.
    pub(crate) fn begin_counting(&self, unit: &'static str, name: &str, from: u64, to: Option<u64>) {
        let Some(shared) = &self.shared else { return };
        let begun = Instant::now();
        shared.at.store(from, Ordering::Relaxed);
        let samples = [(begun, from)].into();
        let name = layout::harmless(name);
        let task = Task { name, unit, to, is_limited: false, has_splits: false, run: None, begun, samples };
        shared.lock().task = Some(task);
    }

    /// Shows that the work has reached the count `at`.
    pub(crate) fn at(&self, at: u64) {
        if let Some(shared) = &self.shared {
            shared.at.store(at, Ordering::Relaxed);
        }
    }

    /// Shows that the work has reached the count `at`, and has used the share `used` of its limit, from 0 to 1. The
    /// work may end long before its limit.
    pub(crate) fn within(&self, at: u64, used: f64) {
        self.at(at);
        if let Some(shared) = &self.shared
            && let Some(task) = &mut shared.lock().task
        {
            task.is_limited = true;
            // Assumes that the used share grows linearly with the count. A float cast saturates.
            task.to = (used > 0.0).then(|| (at as f64 / used) as u64);
        }
    }

    /// Ends the task and erases the line.
    pub(crate) fn end(&self) {
        if let Some(shared) = &self.shared {
            let mut display = shared.lock();
            display.erase();
            display.task = None;
        }
    }

    /// Writes a line once the work has taken so long that progress is shown.
    pub(crate) fn introduce(&self, text: String) {
        if let Some(shared) = &self.shared {
            shared.lock().introduction = Some(text);
        }
    }

    /// Writes a line that stays: without decoration on a terminal, else to the log.
    pub(crate) fn say(&self, text: &str) {
        match &self.shared {
            Some(shared) => shared.lock().say(text),
            None => tracing::info!("{text}"),
        }
    }

    /// Writes results while nothing is shown.
    pub(crate) fn print_above<T>(&self, print: impl FnOnce() -> T) -> T {
        let mut display = self.shared.as_ref().map(|shared| shared.lock());
        if let Some(display) = &mut display {
            display.erase();
        }
        print()
    }

    /// The name of the work on a game.
    fn name(&self, rule: &Rule) -> String {
        self.task.map_or_else(|| rule.name().to_owned(), |task| format!("{task} {}", rule.name()))
    }

    /// Shows that the task `name`, which begins with its first report, has reached the count `at` of `to`.
    pub(crate) fn phase(&self, name: &str, at: u64, to: u64) {
        let Some(shared) = &self.shared else { return };
        if shared.lock().task.as_ref().is_none_or(|task| task.name != name) {
            self.begin(name, at, Some(to));
        }
        self.at(at);
        if let Some(task) = &mut shared.lock().task {
            task.to = Some(to); // may decrease
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.end();
        if let Some(shared) = &self.shared {
            shared.lock().closed = true;
            shared.closing.notify_one();
        }
        self.thread.take().map(JoinHandle::join);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Display> {
        self.display.lock().unwrap_or_else(|error| error.into_inner())
    }

    /// The thread of the display.
    fn show(&self) {
        let mut display = self.lock();
        while !display.closed {
            display.tick(self.at.load(Ordering::Relaxed), Instant::now());
            let waited = self.closing.wait_timeout(display, TICK);
            display = waited.unwrap_or_else(|error| error.into_inner()).0;
        }
    }
}

impl Display {
    fn tick(&mut self, at: u64, now: Instant) {
        if signals::is_waiting() {
            self.erase();
        }
        let Some(task) = &mut self.task else { return };
        let stopping = signals::is_stopping();
        if !stopping && now - task.begun < SILENT {
            return;
        }
        if let Some(text) = self.introduction.take_if(|_| !stopping) {
            self.say(&text);
        }
        if self.is_terminal {
            self.draw(at, now, stopping);
        } else {
            self.log(at, now, stopping);
        }
    }

    fn draw(&mut self, at: u64, now: Instant, stopping: bool) {
        let Some(task) = &mut self.task else { return };
        let width = terminal_width();
        task.sample(at, now);
        let state = task.state(at, now);
        let line = if stopping { state.stopping(width) } else { state.line(width) };
        if line == self.drawn || is_in_background() {
            return;
        }
        if self.drawn.is_empty() {
            signals::hold();
        }
        to_terminal(&format!("\r{line}\x1b[K"));
        self.drawn = line;
    }

    fn log(&mut self, at: u64, now: Instant, stopping: bool) {
        let Some(task) = &mut self.task else { return };
        if stopping && !self.said_stopping {
            self.said_stopping = true;
            tracing::info!("{}: stopping", task.name);
        }
        if now < self.next_log {
            return;
        }
        tracing::info!("{}", task.state(at, now).log());
        task.samples = [(now, at)].into();
        self.logged += 1;
        self.next_log = now + log_interval(self.logged);
    }

    /// Writes a text that stays, in lines that fit the terminal.
    fn say(&mut self, text: &str) {
        if self.is_terminal {
            self.erase();
            to_terminal(&format!("{}\n", layout::lines(&layout::harmless(text), "", 2, terminal_width())));
        } else {
            tracing::info!("{text}");
        }
    }

    /// Erases the line on the terminal.
    fn erase(&mut self) {
        if !self.drawn.is_empty() {
            self.drawn.clear();
            to_terminal("\r\x1b[K");
            signals::release();
        }
    }
}

impl Task {
    fn state(&self, at: u64, now: Instant) -> State<'_> {
        let rate = self.samples.front().and_then(|&(then, before)| rate(at.saturating_sub(before), now - then));
        let extras = self.run.as_ref().map(extras).unwrap_or_default();
        let elapsed = now - self.begun;
        let is_limited = self.is_limited;
        // Without a sparse space every position is rare.
        let grows = self.has_splits && self.run.is_some_and(|run| run.rares == run.count);
        State { name: &self.name, unit: self.unit, at, to: self.to, is_limited, grows, rate, elapsed, extras }
    }

    /// Remembers when the count was `at`, at most once a second, and only while it changes: if the work reports rarely,
    /// the rate is that since the report before the last.
    fn sample(&mut self, at: u64, now: Instant) {
        let is_new = self.samples.back().is_none_or(|&(then, count)| at != count && now - then >= RATE_MIN);
        if is_new {
            self.samples.push_back((now, at));
        }
        while self.samples.len() > 2 && self.samples.get(1).is_some_and(|&(then, _)| now - then > RATE_OVER) {
            self.samples.pop_front();
        }
    }
}

/// Width of the terminal of stderr, in columns.
fn terminal_width() -> usize {
    terminal_size::terminal_size_of(std::io::stderr()).map_or(USUAL_WIDTH, |(width, _)| width.0.into())
}

/// Time between the log line with this number, from 0 on, and the line before it.
fn log_interval(number: usize) -> Duration {
    let growing = LOG_AFTER[number.min(LOG_AFTER.len() - 1)];
    LOG_EVERY.get().copied().unwrap_or(Duration::from_secs(growing))
}

/// Writes to stderr and ignores errors.
fn to_terminal(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Whether another process group has the terminal, such as the shell that started this command with `&`.
fn is_in_background() -> bool {
    rustix::termios::tcgetpgrp(std::io::stderr()).is_ok_and(|group| group != rustix::process::getpgrp())
}

/// Units per second; `None` if none was counted or the time is too short.
fn rate(counted: u64, time: Duration) -> Option<f64> {
    (counted > 0 && time >= RATE_MIN).then(|| counted as f64 / time.as_secs_f64())
}

/// What a run shows besides its progress.
fn extras(run: &Progress) -> Vec<String> {
    let [max_at, rares, last] = [run.max_at, run.rares, run.last_rare].map(HumanCount);
    let largest = format!("largest value {} at {max_at}", run.max_value);
    let rare = format!("{rares} rare positions, the last at {last}");
    // Without a sparse space every position counts as rare.
    if run.rares == run.count { vec![largest] } else { vec![largest, rare] }
}

/// The first line of a run: `resuming runs/grundy at 28,966,912 of 1,000,000,000 (grundy, avx512, 2 threads; needs 971
/// MB, 74 GB free)`.
fn opening_line(opening: &Opening<'_>) -> String {
    let dir = layout::printable(opening.dir);
    let count = HumanCount(opening.count);
    let start = match (opening.count, opening.to) {
        (0, None) => format!("starting {dir}, until stopped"),
        (0, Some(to)) => format!("starting {dir}: {}", counted(to, "values")),
        (_, None) => format!("resuming {dir} at {count}, until stopped"),
        (_, Some(to)) => format!("resuming {dir} at {count} of {}", HumanCount(to)),
    };
    let needed = opening.needed.map(|needed| format!("needs {}", size(needed)));
    let free = opening.free.map(|free| format!("{} free", size(free)));
    let room: Vec<String> = needed.into_iter().chain(free).collect();
    let room = if room.is_empty() { String::new() } else { format!("; {}", room.join(", ")) };
    format!("{start} ({}{room})", means(opening.rule, opening.method.name(), rayon::current_num_threads()))
}

/// What a computation is of, and what it uses: `grundy, avx512, 2 threads`.
pub(crate) fn means(rule: &Rule, method: &str, threads: usize) -> String {
    format!("{}, {method}, {}", rule.name(), counted(threads as u64, "threads"))
}

impl Observer for Meter {
    fn opened(&mut self, opening: &Opening<'_>) {
        if opening.to.is_none_or(|to| to > opening.count) {
            let task = if self.task.is_some() { self.name(opening.rule) + ": " } else { String::new() };
            self.say(&(task + &opening_line(opening)));
        }
    }

    fn started(&mut self, rule: &Rule, from: u64, to: Option<u64>) {
        self.begin(&self.name(rule), from, to);
        if let Some(shared) = &self.shared
            && let Some(task) = &mut shared.lock().task
        {
            task.has_splits = rule.has_splits();
        }
    }

    fn rehashed(&mut self, count: u64, of: u64) {
        self.phase(REHASHING, count, of);
    }

    fn advanced(&mut self, progress: &Progress) {
        self.at(progress.count);
        if let Some(shared) = &self.shared
            && let Some(task) = &mut shared.lock().task
        {
            task.run = Some(*progress);
        }
        let Progress { max_value, max_at, .. } = *progress;
        if max_value >= LARGE && !std::mem::replace(&mut self.noted_large, true) {
            self.say(&format!("G({max_at}) = {max_value}: the computation ends at the first value above 65535"));
        }
    }

    fn recomputed(&mut self, done: u64, of: u64) {
        self.phase(RECOMPUTING, done, of);
    }

    fn note(&mut self, text: &str) {
        self.say(text);
    }

    fn warn(&mut self, text: &str) {
        self.print_above(|| warn(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(samples: &[(Instant, u64)]) -> Task {
        let (name, begun) = (String::new(), samples[0].0);
        let samples = samples.iter().copied().collect();
        Task { name, unit: "values", to: None, is_limited: false, has_splits: true, run: None, begun, samples }
    }

    #[test]
    fn rate_is_that_of_the_last_minute() {
        let begun = Instant::now();
        let mut task = task(&[(begun, 0)]);
        // 1000 per second for ten minutes, then 10 per second for two.
        let count = |second: u64| 1000 * second.min(600) + 10 * second.saturating_sub(600);
        for second in 1..=720 {
            task.sample(count(second), begun + Duration::from_secs(second));
        }
        let rate = task.state(count(720), begun + Duration::from_secs(720)).rate.unwrap();
        assert!((9.9..10.1).contains(&rate), "{rate}");
        assert!(task.samples.len() < 100);
    }

    #[test]
    fn rate_of_work_that_reports_rarely_is_known_between_reports() {
        let begun = Instant::now();
        let mut task = task(&[(begun, 0)]);
        for second in 0..1000 {
            task.sample(500 * (second / 200), begun + Duration::from_secs(second));
        }
        let rate = task.state(2000, begun + Duration::from_secs(1000)).rate.unwrap();
        assert!((1.0..3.0).contains(&rate), "{rate}");
    }

    #[test]
    fn unknown_rate_is_omitted() {
        assert_eq!(rate(0, Duration::from_secs(1)), None);
        assert_eq!(rate(100, Duration::ZERO), None);
    }

    #[test]
    fn intervals_of_the_log_grow_to_a_quarter_of_an_hour() {
        assert_eq!([0, 1, 2, 3, 4, 99].map(|n| log_interval(n).as_secs()), [30, 60, 300, 900, 900, 900]);
    }
}

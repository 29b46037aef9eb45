//! Progress of long work: a bar on a terminal, one log line now and then elsewhere. Alone in knowing indicatif.

use grundy::engine::{Observer, Progress};
use grundy::rule::Rule;
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// How often a log line is written without a terminal.
const LOG_EVERY: Duration = Duration::from_secs(30);

/// How often a bar is drawn.
const DRAW_EVERY: Duration = Duration::from_millis(100);

/// Log lines go to stderr, while somebody reads it; `quiet` silences them.
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

/// Shows how a piece of work goes on.
pub(crate) struct Meter {
    bar: Option<ProgressBar>,
    quiet: bool,
    what: String,
    from: u64,
    to: Option<u64>,
    begun: Instant,
    next: Instant,
}

impl Meter {
    /// A meter that shows nothing before [`Meter::begin`].
    pub(crate) fn new(quiet: bool) -> Meter {
        let now = Instant::now();
        Meter { bar: None, quiet, what: String::new(), from: 0, to: None, begun: now, next: now }
    }

    /// Starts showing work that goes from `from` to `to`.
    pub(crate) fn begin(&mut self, what: &str, from: u64, to: Option<u64>) {
        self.end();
        let now = Instant::now();
        (self.what, self.from, self.to) = (what.to_owned(), from, to);
        (self.begun, self.next) = (now, now + LOG_EVERY);
        if self.quiet || !std::io::stderr().is_terminal() {
            return;
        }
        self.next = now;
        let bar = ProgressBar::with_draw_target(to, ProgressDrawTarget::stderr()).with_position(from);
        let template = match to {
            Some(_) => "{prefix} {wide_bar} {human_pos} of {human_len}, {rate} a second, {eta} left{msg}",
            None => "{prefix} {spinner} {human_pos}, {rate} a second, {elapsed}{msg}",
        };
        let rate = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            // A rate is shown, not computed with: what does not fit is shown as the largest that does.
            let _ = write!(out, "{}", HumanCount(state.per_sec() as u64));
        };
        let style = ProgressStyle::with_template(template).expect("a template of ours").with_key("rate", rate);
        bar.set_style(style);
        bar.set_prefix(what.to_owned());
        bar.reset_eta();
        self.bar = Some(bar);
    }

    /// Shows that the work has come to `at`; `more` is text to put behind.
    pub(crate) fn at(&mut self, at: u64, more: impl FnOnce() -> String) {
        let now = Instant::now();
        if now < self.next || self.quiet {
            return;
        }
        match &self.bar {
            Some(bar) => {
                self.next = now + DRAW_EVERY;
                bar.set_message(more());
                bar.set_position(at);
            }
            None => {
                self.next = now + LOG_EVERY;
                let rate = at.saturating_sub(self.from) as f64 / (now - self.begun).as_secs_f64();
                let left = self.to.map_or_else(String::new, |to| {
                    let seconds = to.saturating_sub(at) as f64 / rate.max(1e-9);
                    format!(" of {}, about {} left", HumanCount(to), rough(seconds))
                });
                tracing::info!(
                    "{}: {}{left}, {} a second{}",
                    self.what,
                    HumanCount(at),
                    HumanCount(rate as u64),
                    more()
                );
            }
        }
    }

    /// Takes the bar away.
    pub(crate) fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => tracing::info!("{text}"),
        }
    }
}

fn rough(seconds: f64) -> String {
    if seconds.is_finite() && seconds < 1e9 {
        indicatif::HumanDuration(Duration::from_secs_f64(seconds)).to_string()
    } else {
        "forever".to_owned()
    }
}

impl Observer for Meter {
    fn started(&mut self, rule: &Rule, from: u64, to: Option<u64>) {
        self.begin(rule.name(), from, to);
    }

    fn rehashed(&mut self, count: u64, of: u64) {
        if self.what != "re-hashing" {
            self.begin("re-hashing", 0, Some(of));
        }
        self.at(count, String::new);
    }

    fn advanced(&mut self, progress: &Progress) {
        self.at(progress.count, || {
            format!(
                "; largest {} at {}, {} rares, the last {}",
                progress.max_value, progress.max_at, progress.rares, progress.last_rare
            )
        });
    }

    fn again(&mut self, done: u64, of: u64) {
        if self.what != "computing again" {
            self.begin("computing again", 0, Some(of));
        }
        self.at(done, String::new);
    }

    fn note(&mut self, text: &str) {
        self.say(text);
    }
}

//! The runs of one search for a period in a run directory, and what the search learns while they compute.
//!
//! A search computes in several runs, one after the other ([`super::compute`]). A [`Session`] opens them, and is the
//! observer of all of them: it shows them to the observer of the caller as one computation, and passes the values to
//! what watches them.
//!
//! Invariant: what the watch has seen are values of the run that is open. It is forgotten when the run is opened again.

use super::watch::Watch;
use super::waypoints::{Recorder, STRIDE, Waypoints};
use crate::error::{Error, Result};
use crate::run::{Observer, Opening, Options, Progress, ProofSummary, Run, RunReader};
use crate::solver::ends::LOOKBACKS_RETAINED;
use crate::solver::{self, SparseSpace};
use crate::theory::definition::Sequence;
use crate::theory::rule::Rule;
use crate::verify;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Maximum time that a later run of a search re-hashes the table without notifying the observer.
const QUIET_REHASH: Duration = Duration::from_secs(2);

/// What all runs of a search have in common.
#[derive(Clone, Copy)]
pub(super) struct RunSettings<'a> {
    /// The rule of the game.
    pub(super) rule: &'a Rule,
    /// The run directory.
    pub(super) dir: &'a Path,
    /// The options; `to` is the maximum number of values of the whole search.
    pub(super) options: &'a Options,
}

/// The runs of one search.
pub(super) struct Session<'a> {
    settings: RunSettings<'a>,
    /// The observer of the caller.
    inner: &'a mut (dyn Observer + Send),
    /// Stops a run; set when `outer` is set, and when the watch has found a period.
    stop: &'a AtomicBool,
    /// The stop flag of the caller.
    outer: &'a AtomicBool,
    watched: Watched,
    display: Display,
    /// Number of first values that this process has verified or computed; all, once a run has started.
    verified: u64,
    /// Whether the values of the game end: the next one exceeds 65535, or not all moves of its heap are listed.
    has_ended: bool,
}

/// What receives the values of the runs.
struct Watched {
    watch: Watch,
    /// Saves waypoints of a run that discards values.
    recorder: Option<Recorder>,
}

/// What the observer of the caller shows.
#[derive(Default)]
struct Display {
    /// Number of values verified, and number of values to verify, as of the last event.
    rehashed: (u64, u64),
    /// End of the previous run of this search; `None` during the first.
    previous_run_ended: Option<Instant>,
    /// Whether the observer shows the search, rather than a re-hash.
    shows_search: bool,
}

impl Watched {
    fn new(rule: &Rule) -> Watched {
        Watched { watch: Watch::new(rule), recorder: None }
    }

    /// What continues a run from its saved state, and warnings about what cannot be read. The run has just re-hashed
    /// its values, so the watch may read them.
    fn resume(rule: &Rule, dir: &Path, from: u64) -> (Watched, Vec<String>) {
        let mut warnings = Vec::new();
        let mut watched = Watched::new(rule);
        let view = match RunReader::open(dir) {
            Ok(view) => view,
            // A new run has no record yet.
            Err(_) if from == 0 => return (watched, warnings),
            Err(error) => {
                let what = "no waypoints are saved, and the watch for the period begins again";
                return (watched, vec![format!("{what}: {error}")]);
            }
        };
        if view.contents.last.keep.is_some() {
            watched.recorder = Some(Recorder::new(Waypoints::of(dir, &view.contents.last.run), STRIDE));
        }
        match Watch::resume(rule, dir, &view) {
            Ok(watch) if from > 0 => watched.watch = watch,
            Ok(_) => {}
            Err(error) => warnings.push(format!("the watch for the period begins again: {error}")),
        }
        (watched, warnings)
    }

    /// Receives the values from `from` on, and how they were proved.
    fn see(&mut self, from: u64, values: &[u16], proof: &ProofSummary) {
        self.watch.see(from, values, proof);
        if proof.space == SparseSpace::NONE {
            return;
        }
        let width = solver::lookback(&self.watch.rule, proof.last_rare).saturating_mul(LOOKBACKS_RETAINED);
        if let Some(recorder) = &mut self.recorder {
            recorder.see(from, values, width);
        }
    }

    /// Saves the waypoints among the first `count` values, which are committed. Returns a warning when that fails; no
    /// more waypoints are saved then.
    fn committed(&mut self, count: u64) -> Option<String> {
        let error = self.recorder.as_mut()?.committed(count).err()?;
        self.recorder = None;
        Some(format!("no more waypoints are saved, so the preperiod will take longer: {error}"))
    }
}

impl Observer for Session<'_> {
    fn opened(&mut self, opening: &Opening<'_>) {
        self.forget();
        if self.display.previous_run_ended.is_none() {
            let to = self.settings.options.to;
            let needed = opening.needed.filter(|_| to == opening.to);
            self.inner.opened(&Opening { to, needed, ..*opening });
        }
    }

    fn started(&mut self, rule: &Rule, from: u64, _: Option<u64>) {
        self.verified = u64::MAX;
        self.forget();
        // From the saved state, not from what the watch saw before a failed check.
        let (watched, warnings) = Watched::resume(rule, self.settings.dir, from);
        self.watched = watched;
        warnings.iter().for_each(|warning| self.warn(warning));
        if !std::mem::replace(&mut self.display.shows_search, true) {
            self.inner.started(rule, from, self.settings.options.to);
        }
    }

    fn rehashed(&mut self, count: u64, of: u64) {
        self.display.rehashed = (count, of);
        if self.display.previous_run_ended.is_none_or(|ended| ended.elapsed() > QUIET_REHASH) {
            self.display.shows_search = false;
            self.inner.rehashed(count, of);
        }
        self.stop.fetch_or(self.outer.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    fn advanced(&mut self, progress: &Progress) {
        self.inner.advanced(progress);
        if let Some(warning) = self.watched.committed(progress.committed) {
            self.warn(&warning);
        }
        let done = self.outer.load(Ordering::Relaxed) || self.watched.watch.found.is_some();
        self.stop.fetch_or(done, Ordering::Relaxed);
    }

    fn recomputed(&mut self, done: u64, of: u64) {
        self.inner.recomputed(done, of);
    }

    fn proved(&mut self, from: u64, values: &[u16], proof: &ProofSummary) {
        self.watched.see(from, values, proof);
    }

    fn note(&mut self, text: &str) {
        self.inner.note(text);
    }

    fn warn(&mut self, text: &str) {
        self.inner.warn(text);
    }
}

impl<'a> Session<'a> {
    /// The session of a search that passes events to `inner`. It sets `stop` when `outer` is set, and when a period is
    /// found.
    pub(super) fn new(
        settings: RunSettings<'a>,
        inner: &'a mut (dyn Observer + Send),
        stop: &'a AtomicBool,
        outer: &'a AtomicBool,
    ) -> Session<'a> {
        let (watched, display) = (Watched::new(settings.rule), Display::default());
        Session { settings, inner, stop, outer, watched, display, verified: 0, has_ended: false }
    }

    /// The watch for a period.
    pub(super) fn watch(&mut self) -> &mut Watch {
        &mut self.watched.watch
    }

    /// The observer and the stop flag of the caller.
    pub(super) fn caller(&mut self) -> (&mut (dyn Observer + Send), &'a AtomicBool) {
        (&mut *self.inner, self.outer)
    }

    /// Number of values verified, and number of values to verify, as of the last event.
    pub(super) fn last_rehashed(&self) -> (u64, u64) {
        self.display.rehashed
    }

    /// Whether the values of the game end with those computed.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Forgets what the values of an earlier attempt showed. After a failed check the run is opened again, without the
    /// values after its last commit: a period that they showed must neither stop the search nor be its result.
    fn forget(&mut self) {
        self.watched.watch = Watch::new(self.settings.rule);
        self.stop.store(self.outer.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Computes up to `goal` values, or those that there are, and opens the run; `None` when the stop flag was set
    /// before all stored values were verified.
    pub(super) fn compute(&mut self, goal: u64) -> Result<Option<RunReader>> {
        self.stop.store(false, Ordering::Relaxed);
        let RunSettings { rule, dir, options } = self.settings;
        let options = Options { to: Some(goal), ..options.clone() };
        let stop = self.stop;
        let stopped = match Run::builder(rule, dir).options(options).observer(self).stop(stop).run() {
            Err(end @ (Error::ValueTooLarge { .. } | Error::Unlisted { .. })) => {
                self.has_ended = true;
                self.inner.note(&end.to_string());
                false
            }
            outcome => outcome?.stopped,
        };
        self.display.previous_run_ended = Some(Instant::now());
        if stopped && self.verified == 0 {
            return Ok(None);
        }
        let view = RunReader::open(dir)?;
        if stopped && self.verified < view.len() {
            return Ok(None); // another process has written more values
        }
        view.check_suspect()?;
        Ok(Some(view))
    }

    /// Verifies all stored values and opens the run; `None` when the stop flag was set before the end.
    pub(super) fn verify(&mut self) -> Result<Option<RunReader>> {
        let verified = verify::verified(self.settings.dir, |done, of| {
            self.rehashed(done, of);
            !self.outer.load(Ordering::Relaxed)
        })?;
        self.verified = verified.as_ref().map_or(self.verified, |view| view.len());
        Ok(verified)
    }
}

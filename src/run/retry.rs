//! Retries a run after a failed check, and records the failure in the journal.

use super::observer::{Observer, Outcome};
use crate::checkpoint::journal::{Contents, Event, Journal, Record};
use crate::error::{Error, Result};
use crate::storage::Dir;

/// Maximum number of failed checks per process before the run is abandoned.
pub(super) const FAILURES: usize = 8;

/// Records a failed check in the journal. Warns if that fails.
pub(super) fn record_failure(dir: &Dir, failure: &Error, observer: &mut (dyn Observer + Send)) {
    let record = || -> Result<()> {
        let (mut journal, contents) = Journal::open(dir)?;
        // Before the first record there is no value that could be wrong.
        let Some(Contents { mut last, .. }) = contents else { return Ok(()) };
        journal.end_at_good_records()?;
        last.errors = last.errors.saturating_add(1);
        if let Error::Differs { n, .. } | Error::OptionsDiffer { n, .. } = *failure {
            // A wrong value makes later ones wrong, so the least suspect is rechecked first.
            last.suspect = Some(last.suspect.map_or(n, |other| other.min(n)));
        }
        journal.append(Record { event: Event::Open, ..last })
    };
    if let Err(why) = record() {
        observer.warn(&format!("the failed check could not be recorded: {why}"));
    }
}

/// Identifies a failed check: two failures with the same key are the same failure.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FailureKey {
    /// Memory changed at this place.
    Flipped { what: &'static str, from: u64, to: u64 },
    /// Two computations of G(n) gave these values.
    Differs { n: u64, value: u32, again: u32 },
    /// Two kernels found different options of n.
    OptionsDiffer { n: u64 },
}

impl FailureKey {
    /// The key of a failed check; `None` for any other error.
    pub(super) fn of(error: &Error) -> Option<FailureKey> {
        match *error {
            Error::Flipped { what, from, to } => Some(FailureKey::Flipped { what, from, to }),
            Error::Differs { n, value, again, .. } => Some(FailureKey::Differs { n, value, again }),
            Error::OptionsDiffer { n, .. } => Some(FailureKey::OptionsDiffer { n }),
            _ => None,
        }
    }

    /// What the same failure twice in one process means.
    pub(super) fn repeated(&self) -> &'static str {
        match self {
            FailureKey::Flipped { .. } => {
                "the same memory changed again: a stuck memory bit is the likely cause; test the memory of this machine, and \
                 resume the run on a different machine"
            }
            FailureKey::Differs { .. } | FailureKey::OptionsDiffer { .. } => {
                "the same check failed identically twice: this points to a bug in grundy, or to a permanent hardware fault; \
                 repeat the run on a different machine, and report the bug if it fails there too"
            }
        }
    }
}

/// Attempts a run, and again after a failed check, which is recorded in the journal of `dir`: a transient hardware
/// fault does not fail the same way twice.
pub(super) fn retry_failed_checks(
    dir: &Dir,
    seed: u64,
    observer: &mut (dyn Observer + Send),
    mut run: impl FnMut(Attempt, &mut (dyn Observer + Send)) -> Result<Outcome>,
) -> Result<Outcome> {
    let mut failures: Vec<FailureKey> = Vec::new();
    loop {
        let done = run(Attempt { seed, failures: failures.len() as u64 }, observer);
        let Err(error) = done else { return done };
        let Some(key) = FailureKey::of(&error) else { return Err(error) };
        record_failure(dir, &error, observer);
        if failures.contains(&key) {
            observer.warn(key.repeated());
            return Err(error);
        }
        if failures.len() == FAILURES {
            observer.warn("too many checks failed: test the memory and the processor of this machine");
            return Err(error);
        }
        observer.warn(&format!("{error}. The run is opened again, and continues from its last commit"));
        failures.push(key);
    }
}

/// One attempt of a run, from its opening.
#[derive(Clone, Copy)]
pub(super) struct Attempt {
    /// The seed that selects the audited values, the same in each attempt.
    pub(super) seed: u64,
    /// Number of earlier attempts in this process; each failed a check.
    pub(super) failures: u64,
}

//! What the steps of one attempt of a run share, and what its preparation results in.

use super::main_loop::OpenRun;
use super::observer::{Observer, Outcome};
use super::options::{Options, RunPolicy};
use super::retry::Attempt;
use crate::checkpoint::commit::RETAINED_HEAD;
use crate::storage::Dir;
use std::sync::atomic::AtomicBool;

/// A run ready to compute, or the outcome of a run that has nothing left to compute.
pub(super) enum Prepared {
    Ready(Box<OpenRun>),
    Nothing(Outcome),
}

/// What every step of one attempt of a run works with.
pub(super) struct Context<'a> {
    pub(super) dir: &'a Dir,
    pub(super) options: &'a Options,
    pub(super) policy: RunPolicy,
    pub(super) attempt: Attempt,
    pub(super) observer: &'a mut (dyn Observer + Send),
    pub(super) stop: &'a AtomicBool,
}

impl Context<'_> {
    /// Notes what a run retains that discards values.
    pub(super) fn note_retention(&mut self, keep: Option<u64>) {
        if let Some(keep) = keep {
            let kept = format!("the first {RETAINED_HEAD} and at least the last {keep} values");
            self.observer.note(&format!("the run keeps {kept}, and frees the others permanently"));
        }
    }
}

//! What the steps of one attempt of a run share, and what its preparation results in.

use super::main_loop::OpenRun;
use super::observer::{Observer, Outcome};
use super::options::Options;
use super::retry::Attempt;
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
    pub(super) attempt: Attempt,
    pub(super) observer: &'a mut (dyn Observer + Send),
    pub(super) stop: &'a AtomicBool,
}

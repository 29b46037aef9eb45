//! The rule of the first disk error: after it, no file of the same directory is written.

use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Repeats a call until it is not interrupted.
fn retry_interrupted<T>(mut call: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Whether a disk error has forbidden all further writes to the files of one directory.
#[derive(Clone, Debug, Default)]
pub(super) struct Poison(Arc<AtomicBool>);

/// Returns the error of a write that is refused because an earlier disk error left the durable state unknown.
#[must_use]
pub fn poisoned() -> Error {
    Error::other("nothing is written after a disk error, because the durable state is unknown")
}

impl Poison {
    /// Runs a call that changes nothing.
    pub(super) fn query<T>(&self, call: impl FnMut() -> Result<T>) -> Result<T> {
        self.poison_on_failure(retry_interrupted(call), false)
    }

    /// Runs a call that changes a file or the directory.
    pub(super) fn change<T>(&self, call: impl FnMut() -> Result<T>) -> Result<T> {
        self.check()?;
        self.poison_on_failure(retry_interrupted(call), false)
    }

    /// Runs a call that makes changes durable.
    pub(super) fn sync(&self, call: impl FnMut() -> Result<()>) -> Result<()> {
        self.check()?;
        self.poison_on_failure(retry_interrupted(call), true)
    }

    fn check(&self) -> Result<()> {
        if self.0.load(Ordering::SeqCst) { Err(poisoned()) } else { Ok(()) }
    }

    /// Forbids further writes if `result` is EIO, or any error when `any_error` is set.
    fn poison_on_failure<T>(&self, result: Result<T>, any_error: bool) -> Result<T> {
        let io = rustix::io::Errno::IO.raw_os_error();
        if result.as_ref().is_err_and(|error| any_error || error.raw_os_error() == Some(io)) {
            self.0.store(true, Ordering::SeqCst);
        }
        result
    }
}

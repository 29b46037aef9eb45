//! Signals: which of them stop a command, and which are ignored.
//!
//! INT, TERM and HUP set a flag that long work polls; a second one ends the process at once. INT and HUP stay ignored
//! if the process inherited them as ignored: a shell without job control starts `grundy run … &` with INT ignored, and
//! nohup ignores HUP. TERM is always handled.

use anyhow::{Context, Result};
use signal_hook::consts::{SIGABRT, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXFSZ};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Exit status of a command that a signal stopped.
pub(crate) const STOPPED: u8 = 130;

/// The error of a command that a signal stopped before its end; the exit status is [`STOPPED`].
#[derive(Debug, thiserror::Error)]
#[error("stopped by a signal; no file was written")]
pub(crate) struct Stopped;

/// Installs the signal handlers that every command needs; called once, at the start of `main`.
///
/// - ABRT exits with status 1. The standard library calls `abort` after it has reported a failed allocation, which is a
///   failure like a full disk and needs no core dump.
/// - USR1 and USR2 are ignored, because by default they would end a run without a commit.
/// - XFSZ is ignored, so that a write beyond the file size limit (`ulimit -f`) returns an error.
///
/// # Errors
/// When a handler cannot be installed.
pub(crate) fn prepare() -> Result<()> {
    let always = Arc::new(AtomicBool::new(true));
    flag::register_conditional_shutdown(SIGABRT, 1, always).context("installing a signal handler")?;
    for signal in [SIGUSR1, SIGUSR2, SIGXFSZ] {
        flag::register(signal, Arc::default()).context("installing a signal handler")?;
    }
    Ok(())
}

/// Returns a flag that INT, TERM and HUP set from now on. A second signal exits with [`STOPPED`] at once. INT and HUP
/// that this process inherited as ignored stay ignored.
///
/// # Errors
/// When a handler cannot be installed.
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if signal != SIGTERM && is_ignored(signal) {
            continue;
        }
        // In this order: the first signal finds the flag unset and sets it, the second finds it set.
        flag::register_conditional_shutdown(signal, STOPPED.into(), Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .context("installing a signal handler")?;
    }
    Ok(stop)
}

/// Whether this process ignores the signal, according to /proc; `false` on systems without it.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

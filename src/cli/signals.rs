//! Signals: which of them stop a command, and which are ignored.
//!
//! In commands that stop cleanly, INT, TERM and HUP set a flag that long work polls ([`stop_flag`]); a second one, half
//! a second later or more, ends the process at once: `timeout` sends its signal twice within an instant. In other
//! commands they have their default action, which waits until a progress line is erased ([`hold`]). INT and HUP stay
//! ignored if the process inherited them as ignored: a shell without job control starts `grundy run … &` with INT
//! ignored, and nohup ignores HUP. TERM is always handled.
//!
//! A handler only sets flags. The thread of the progress display polls them, ten times a second.

use anyhow::{Context, Result};
use signal_hook::consts::{SIGABRT, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXFSZ};
use signal_hook::{SigId, flag, low_level};
use std::os::raw::c_int;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

/// Exit status of a command that a signal stopped.
pub(crate) const STOPPED: u8 = 130;

/// Stack of the thread that waits for a signal, in bytes.
const STACK: usize = 64 << 10;

/// The error of a command that a signal stopped before its end; the exit status is [`STOPPED`].
#[derive(Debug, thiserror::Error)]
#[error("stopped by a signal; this file was not written")]
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

/// The flag that [`stop_flag`] returns; set when the first caller has installed the handlers.
static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// The signals that end a command.
fn ending() -> impl Iterator<Item = c_int> {
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| signal == SIGTERM || !is_ignored(signal))
}

/// Time after the first signal within which a second one changes nothing.
const GRACE: Duration = Duration::from_millis(500);

/// Polling interval of the flag that a signal sets.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Returns a flag that INT, TERM and HUP set from now on; every call returns the same flag. A second signal, after
/// [`GRACE`], exits with [`STOPPED`] at once. INT and HUP that this process inherited as ignored stay ignored.
///
/// # Errors
/// When a handler cannot be installed.
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>> {
    if let Some(stop) = STOP.get() {
        return Ok(Arc::clone(stop));
    }
    let [stop, came, at_once]: [Arc<AtomicBool>; 3] = Default::default();
    for signal in ending() {
        flag::register_conditional_shutdown(signal, STOPPED.into(), Arc::clone(&at_once))
            .and_then(|_| flag::register(signal, Arc::clone(&came)))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .context("installing a signal handler")?;
    }
    let wait = move || {
        while !came.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK_EVERY);
        }
        std::thread::sleep(GRACE);
        at_once.store(true, Ordering::Relaxed);
    };
    // Where no thread can be started, the process ends when its work does.
    drop(std::thread::Builder::new().stack_size(STACK).spawn(wait));
    if let Some(held) = HELD.get() {
        for &action in &held.actions {
            low_level::unregister(action);
        }
        held.perform();
    }
    Ok(Arc::clone(STOP.get_or_init(|| stop)))
}

/// Does work that cannot be stopped, and that leaves nothing behind when its process ends. If the flag is set
/// meanwhile, calls `at_stop` and ends the process with [`STOPPED`].
pub(crate) fn until_stopped<T>(stop: &AtomicBool, at_stop: impl FnOnce() + Send, work: impl FnOnce() -> T) -> T {
    std::thread::scope(|scope| {
        let is_done = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&is_done);
        let watch = move || {
            while !done.load(Ordering::Relaxed) {
                if stop.load(Ordering::Relaxed) {
                    at_stop();
                    std::process::exit(STOPPED.into());
                }
                std::thread::park_timeout(LOOK_EVERY);
            }
        };
        // Where no thread can be started, the process ends when the work does.
        let watch = std::thread::Builder::new().spawn_scoped(scope, watch).ok();
        let _done = watch.map(|watch| Done { is_done, watch: watch.thread().clone() });
        work()
    })
}

/// Ends the thread of [`until_stopped`] on drop, also if the work panics.
struct Done {
    is_done: Arc<AtomicBool>,
    watch: Thread,
}

impl Drop for Done {
    fn drop(&mut self) {
        self.is_done.store(true, Ordering::Relaxed);
        self.watch.unpark();
    }
}

/// Whether the flag of [`stop_flag`] is set, by a signal or at the end of a time limit.
pub(crate) fn is_stopping() -> bool {
    STOP.get().is_some_and(|stop| stop.load(Ordering::Relaxed))
}

/// The default actions of signals, which wait while a progress line is shown.
struct Held {
    actions: Vec<SigId>,
    /// Whether the next signal has its default action at once.
    at_once: Arc<AtomicBool>,
    /// The signal whose default action waits; 0 for none.
    waiting: Arc<AtomicUsize>,
}

static HELD: OnceLock<Held> = OnceLock::new();

impl Held {
    fn install() -> std::io::Result<Held> {
        let mut held = Held { actions: Vec::new(), at_once: Arc::default(), waiting: Arc::default() };
        for signal in ending() {
            // In this order: the first signal finds `at_once` unset and sets it, the second finds it set.
            held.actions.push(flag::register_conditional_default(signal, Arc::clone(&held.at_once))?);
            held.actions.push(flag::register(signal, Arc::clone(&held.at_once))?);
            held.actions.push(flag::register_usize(signal, Arc::clone(&held.waiting), signal.unsigned_abs() as usize)?);
        }
        Ok(held)
    }

    /// Performs the default action of a signal that came while a progress line was shown.
    fn perform(&self) {
        if let Ok(signal @ 1..) = c_int::try_from(self.waiting.load(Ordering::SeqCst)) {
            super::complain!("stopped by a signal before the end");
            let _ = low_level::emulate_default_handler(signal); // fails for unknown signals only
        }
    }
}

/// From now on, INT, TERM and HUP wait for [`release`] to have their default action, for a second signal at most. Does
/// nothing if [`stop_flag`] handles them, or if a handler cannot be installed.
pub(crate) fn hold() {
    if STOP.get().is_some() {
        return;
    }
    match HELD.get() {
        Some(held) => held.at_once.store(false, Ordering::SeqCst),
        None => drop(Held::install().map(|held| HELD.set(held))),
    }
}

/// Whether a signal waits for [`release`].
pub(crate) fn is_waiting() -> bool {
    STOP.get().is_none() && HELD.get().is_some_and(|held| held.waiting.load(Ordering::SeqCst) != 0)
}

/// Ends [`hold`]: performs the default action of a signal that came meanwhile.
pub(crate) fn release() {
    if STOP.get().is_none()
        && let Some(held) = HELD.get()
    {
        held.at_once.store(true, Ordering::SeqCst);
        held.perform();
    }
}

/// Whether this process ignores the signal, according to /proc; `false` on systems without it.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

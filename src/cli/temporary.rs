//! Temporary directories for sequences that do not fit in memory, and the removal of those that a killed process left.
//!
//! A directory is removed when its guard is dropped. A killed process leaves its directory behind, so the next command
//! that creates one removes the stale ones first. A directory is stale only if it has the same parent, its name has one
//! of our prefixes, it and the marker file in it belong to this user, the marker has our text, and the lock on the
//! marker can be taken: the operating system releases the lock of a process that has died. Nothing else is ever
//! removed.

use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Prefixes of the names of our directories.
const PREFIXES: [&str; 2] = ["grundy-period-", "grundy-verify-"];

/// Name of the marker file.
const MARKER: &str = "grundy-temporary";
/// Content of the marker file.
const TEXT: &str =
    "A temporary directory of grundy. The next grundy command that needs one removes it when its process is dead.\n";

/// A temporary directory, removed on drop.
#[derive(Debug)]
pub(super) struct Temporary {
    home: tempfile::TempDir,
    /// The marker file, open because it holds the lock.
    _marker: File,
}

impl Temporary {
    /// Creates a directory in the system's directory for temporary files (`TMPDIR`), after removing the stale ones
    /// there.
    pub(super) fn new(prefix: &str) -> Result<Temporary> {
        Temporary::new_in(&std::env::temp_dir(), prefix)
    }

    fn new_in(place: &Path, prefix: &str) -> Result<Temporary> {
        debug_assert!(PREFIXES.contains(&prefix), "with another prefix, a stale directory would not be recognised");
        remove_stale(place);
        let creating =
            || format!("creating a temporary directory in {}; set TMPDIR to use another directory", place.display());
        let home = tempfile::Builder::new().prefix(prefix).tempdir_in(place).with_context(creating)?;
        // The marker gets its name only after it is locked, so no other process finds it unlocked.
        let unlocked = home.path().join("unlocked");
        let mut marker = File::create_new(&unlocked).with_context(creating)?;
        marker.write_all(TEXT.as_bytes()).with_context(creating)?;
        marker.try_lock().with_context(creating)?;
        std::fs::rename(&unlocked, home.path().join(MARKER)).with_context(creating)?;
        Ok(Temporary { home, _marker: marker })
    }

    /// The run directory. It does not exist yet; the run creates it.
    pub(super) fn run(&self) -> PathBuf {
        self.home.path().join("run")
    }
}

/// Removes the stale directories in `place`; skips those that cannot be examined or removed.
fn remove_stale(place: &Path) {
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        if PREFIXES.iter().any(|prefix| has_prefix(&entry.file_name(), prefix))
            && let Some(lock) = lock_stale(&entry.path())
        {
            // Removes symbolic links without following them.
            let _ = std::fs::remove_dir_all(entry.path());
            drop(lock);
        }
    }
}

fn has_prefix(name: &OsStr, prefix: &str) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(prefix))
}

/// Locks the marker of `dir` and returns it; `None` if `dir` is not a stale directory of ours.
fn lock_stale(dir: &Path) -> Option<File> {
    let user = rustix::process::geteuid().as_raw();
    let there = std::fs::symlink_metadata(dir).ok()?;
    if !there.is_dir() || there.uid() != user {
        return None;
    }
    // The open must not block on a pipe, nor follow a symbolic link.
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).ok()?;
    let mut marker = File::options().read(true).custom_flags(flags).open(dir.join(MARKER)).ok()?;
    let there = marker.metadata().ok()?;
    if !there.is_file() || there.uid() != user || there.len() != TEXT.len() as u64 {
        return None;
    }
    marker.try_lock().ok()?;
    let mut text = String::new();
    Read::by_ref(&mut marker).take(TEXT.len() as u64).read_to_string(&mut text).ok()?;
    (text == TEXT).then_some(marker)
}

#[cfg(test)]
mod tests;

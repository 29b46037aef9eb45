//! Temporary directories for values that do not fit the memory, and the removal of those that a killed process left.
//!
//! A directory is removed when its guard is dropped. A process that is killed leaves it behind, so the next command that
//! makes one removes the stale ones first. A directory counts as stale only when it lies in the same place, its name has one
//! of our prefixes, it and the marker file in it belong to this user, the marker has our text, and the lock on the marker
//! can be taken: the kernel gives up the lock of a process that has died. Nothing else is ever removed.

use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What the names of our directories begin with.
const PREFIXES: [&str; 2] = ["grundy-period-", "grundy-verify-"];

const MARKER: &str = "grundy-temporary";
const TEXT: &str =
    "A temporary directory of grundy. The next grundy command that needs one removes it when its process is dead.\n";

/// A temporary directory that is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Temporary {
    home: tempfile::TempDir,
    /// Holds the lock.
    _marker: File,
}

impl Temporary {
    /// Makes a directory in the system's place for temporary files (`TMPDIR`), after removing stale ones there.
    pub(super) fn new(prefix: &str) -> Result<Temporary> {
        Temporary::new_in(&std::env::temp_dir(), prefix)
    }

    fn new_in(place: &Path, prefix: &str) -> Result<Temporary> {
        debug_assert!(PREFIXES.contains(&prefix), "a directory that is never found stale");
        remove_stale(place);
        let making = || format!("making a temporary directory in {}; TMPDIR names another place", place.display());
        let home = tempfile::Builder::new().prefix(prefix).tempdir_in(place).with_context(making)?;
        // The marker appears under its name only when it is locked, so no other process finds it without its lock.
        let unlocked = home.path().join("unlocked");
        let mut marker = File::create_new(&unlocked).with_context(making)?;
        marker.write_all(TEXT.as_bytes()).with_context(making)?;
        marker.try_lock().with_context(making)?;
        std::fs::rename(&unlocked, home.path().join(MARKER)).with_context(making)?;
        Ok(Temporary { home, _marker: marker })
    }

    /// The directory for a run: it is not there yet, and holds nothing but the run when it is.
    pub(super) fn run(&self) -> PathBuf {
        self.home.path().join("run")
    }
}

/// Removes what killed processes left in `place`. What cannot be examined or removed is left as it is.
fn remove_stale(place: &Path) {
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        if PREFIXES.iter().any(|prefix| has_prefix(&entry.file_name(), prefix))
            && let Some(lock) = lock_stale(&entry.path())
        {
            // Links are removed, not followed.
            let _ = std::fs::remove_dir_all(entry.path());
            drop(lock);
        }
    }
}

fn has_prefix(name: &OsStr, prefix: &str) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(prefix))
}

/// The locked marker of a directory that is ours and stale.
fn lock_stale(dir: &Path) -> Option<File> {
    let user = rustix::process::geteuid().as_raw();
    let there = std::fs::symlink_metadata(dir).ok()?;
    if !there.is_dir() || there.uid() != user {
        return None;
    }
    // A pipe in its place must not block, and a link must not lead elsewhere.
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
mod tests {
    use super::*;
    use std::fs;

    fn names(place: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A directory as a killed process leaves it: with its marker, without the lock.
    fn left_behind(place: &Path, name: &str) -> PathBuf {
        let dir = place.join(name);
        fs::create_dir_all(dir.join("run")).unwrap();
        fs::write(dir.join(MARKER), TEXT).unwrap();
        fs::write(dir.join("run/values.npy"), [0; 100]).unwrap();
        dir
    }

    #[test]
    fn a_directory_of_a_dead_process_is_removed_and_one_in_use_is_kept() {
        let place = tempfile::tempdir().unwrap();
        let used = Temporary::new_in(place.path(), "grundy-verify-").unwrap();
        fs::create_dir(used.run()).unwrap();
        left_behind(place.path(), "grundy-verify-dead");
        left_behind(place.path(), "grundy-period-dead");
        let other = Temporary::new_in(place.path(), "grundy-period-").unwrap();
        assert_eq!(names(place.path()).len(), 2, "{:?}", names(place.path()));
        assert!(used.run().is_dir() && !other.run().exists());
        drop((used, other));
        assert!(names(place.path()).is_empty());
    }

    #[test]
    fn nothing_but_our_own_stale_directories_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir(at("grundy-verify-empty")).unwrap();
        fs::create_dir(at("grundy-verify-other")).unwrap();
        fs::write(at("grundy-verify-other").join(MARKER), TEXT.replace("grundy", "foobar")).unwrap();
        fs::create_dir_all(at("grundy-verify-directory").join(MARKER)).unwrap();
        fs::write(at("grundy-verify-file"), TEXT).unwrap();
        left_behind(place.path(), "somebodys-directory");
        left_behind(place.path(), "grundy-run-1");
        let elsewhere = tempfile::tempdir().unwrap();
        let target = left_behind(elsewhere.path(), "target");
        std::os::unix::fs::symlink(&target, at("grundy-verify-link")).unwrap();
        fs::create_dir(at("grundy-verify-linked-marker")).unwrap();
        std::os::unix::fs::symlink(target.join(MARKER), at("grundy-verify-linked-marker").join(MARKER)).unwrap();
        // A stale one with a link in it: the link goes, what it leads to stays.
        let stale = left_behind(place.path(), "grundy-period-stale");
        std::os::unix::fs::symlink(&target, stale.join("link")).unwrap();
        let before = names(place.path());
        drop(Temporary::new_in(place.path(), "grundy-verify-").unwrap());
        let after: Vec<String> = before.into_iter().filter(|name| name != "grundy-period-stale").collect();
        assert_eq!(names(place.path()), after);
        assert!(target.join("run/values.npy").exists() && target.join(MARKER).exists());
    }
}

//! A run directory on any storage.

use super::poison::Poison;
#[cfg(doc)]
use super::poisoned;
use super::{File, Files, Mode, Storage};
use crate::error::{Damage, printable};
use std::io::{Error, ErrorKind, Read, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A run directory on a storage. After a disk error, all clones refuse to write ([`poisoned`]).
#[derive(Clone, Debug)]
pub struct Dir {
    path: PathBuf,
    storage: Arc<dyn Storage>,
    poison: Poison,
}

impl<P: AsRef<Path> + ?Sized> From<&P> for Dir {
    /// [`Dir::at`].
    fn from(path: &P) -> Dir {
        Dir::at(path.as_ref())
    }
}

impl From<&Dir> for Dir {
    /// A clone.
    fn from(dir: &Dir) -> Dir {
        dir.clone()
    }
}

impl Dir {
    /// Returns a directory of the file system.
    #[must_use]
    pub fn at(path: &Path) -> Dir {
        Dir::on(Arc::new(Files::new(path)), path)
    }

    /// Returns a directory on any storage; messages call it `path`.
    #[must_use]
    pub fn on(storage: Arc<dyn Storage>, path: &Path) -> Dir {
        Dir { path: path.into(), storage, poison: Poison::default() }
    }

    /// Returns the path of the directory, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a file, for messages.
    #[must_use]
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns whether the directory exists.
    ///
    /// # Errors
    /// The error of the system, as for every method of [`Dir`].
    pub fn exists(&self) -> Result<bool> {
        self.poison.query(|| self.storage.exists())
    }

    /// Creates the directory and its missing ancestors, durably.
    ///
    /// # Errors
    /// The error of the system; [`poisoned`] after a disk error, as for every method that changes something.
    pub fn make(&self) -> Result<()> {
        self.poison.sync(|| self.storage.make())
    }

    /// Opens a file.
    ///
    /// # Errors
    /// `NotFound` or `AlreadyExists`, depending on the mode; `InvalidInput` if the name leads to a directory, a FIFO, a
    /// socket or a device.
    pub fn open(&self, name: &str, mode: Mode) -> Result<File> {
        let open = || self.storage.open(name, mode);
        let handle = if mode == Mode::Read { self.poison.query(open) } else { self.poison.change(open) };
        Ok(File::new(handle?, self.poison.clone()))
    }

    /// Returns the length of a file in bytes; `None` if the file does not exist.
    ///
    /// # Errors
    /// The error of the system; `InvalidInput` if the name does not lead to a regular file.
    pub fn length(&self, name: &str) -> Result<Option<u64>> {
        self.poison.query(|| self.storage.length(name))
    }

    /// Opens a file, which other processes may be renaming or replacing, and locks it; creates it empty if there is
    /// none. Waits for the lock at most `waits` times, each as long as [`File::lock_soon`] does.
    ///
    /// # Errors
    /// [`crate::Error::Locked`] if other processes hold the lock, or replace the file, for too long;
    /// [`crate::Error::Io`].
    pub(crate) fn open_locked(&self, name: &str, waits: usize) -> crate::Result<File> {
        /// Maximum number of attempts, each of which opens the file again.
        const ATTEMPTS: usize = 20;
        let io = |action| crate::Error::io(action, self.join(name));
        let mut waited = 0;
        for _ in 0..ATTEMPTS {
            let file = self.open(name, Mode::Make).map_err(io("opening for writing"))?;
            if !file.lock_soon().map_err(io("locking"))? {
                waited += 1;
                if waited == waits {
                    break;
                }
            } else if file.is_named(name).map_err(io("reading the state of"))? {
                return Ok(file);
            }
        }
        Err(crate::Error::Locked { path: self.join(name) })
    }

    /// Removes a file if it exists.
    ///
    /// # Errors
    /// The error of the system.
    pub fn remove(&self, name: &str) -> Result<()> {
        match self.poison.change(|| self.storage.remove(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// Renames a file and replaces any file that has the new name.
    ///
    /// # Errors
    /// The error of the system.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.poison.change(|| self.storage.rename(from, to))
    }

    /// Returns the names in the directory. In a name that is not Unicode, replacement characters stand for its bytes.
    ///
    /// # Errors
    /// The error of the system.
    pub fn names(&self) -> Result<Vec<String>> {
        self.poison.query(|| self.storage.names())
    }

    /// Makes the names of the directory durable: creations, renames and removals.
    ///
    /// # Errors
    /// The error of the system; every later write is refused ([`poisoned`]).
    pub fn sync(&self) -> Result<()> {
        self.poison.sync(|| self.storage.sync())
    }

    /// Returns the free space for this process, in bytes, on the device that holds or would hold the directory.
    ///
    /// # Errors
    /// The error of the system.
    pub fn free_space(&self) -> Result<u64> {
        self.poison.query(|| self.storage.free_space())
    }

    /// Returns the error of a write that failed: [`crate::Error::NoRoom`] if the device lacks space, otherwise
    /// [`crate::Error::Io`] with `action`. `needed` is the number of bytes still to be written.
    pub(crate) fn write_error(&self, source: Error, path: &Path, needed: u64, action: &str) -> crate::Error {
        if !matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
            return crate::Error::io(action, path)(source);
        }
        let available = self.free_space().unwrap_or(0).min(needed.saturating_sub(1));
        crate::Error::NoRoom { path: path.into(), needed, available, fits: None, keep: None }
    }

    /// Reads a whole file.
    ///
    /// # Errors
    /// The error of the system.
    pub fn read(&self, name: &str) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(name, Mode::Read)?.reader().read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads a whole file of at most `most` bytes.
    ///
    /// # Errors
    /// The error of the system; `InvalidData` for a longer file, of which at most `most` + 1 bytes are read.
    pub fn read_at_most(&self, name: &str, most: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.open(name, Mode::Read)?.reader().take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        if read as u64 > most {
            return Err(Error::new(ErrorKind::InvalidData, format!("the file is longer than {most} bytes")));
        }
        Ok(bytes)
    }

    /// Reads a whole file of at most `most` bytes. Returns `None` if there is no such file or no directory. `damage`
    /// makes the damage of a longer file from the reason.
    ///
    /// # Errors
    /// [`crate::Error::Damage`] for a longer file, and [`crate::Error::Io`].
    pub(crate) fn read_undamaged(
        &self,
        name: &str,
        most: u64,
        damage: impl FnOnce(String) -> Damage,
    ) -> crate::Result<Option<Vec<u8>>> {
        let path = self.join(&printable(name));
        match self.read_at_most(name, most) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                Err(crate::Error::Damage { path, offset: 0, damage: damage(error.to_string()) })
            }
            Err(error) => Err(crate::Error::io("reading", path)(error)),
        }
    }

    /// Writes a file atomically and durably: after a power cut, `name` has either its old contents (or does not exist)
    /// or all of `bytes`. A file that cannot be completed is removed, except after a disk error: then nothing
    /// is changed any more ([`poisoned`]).
    ///
    /// # Errors
    /// [`crate::Error::NoRoom`] on a full disk, otherwise [`crate::Error::Io`].
    pub fn write_whole(&self, name: &str, bytes: &[u8]) -> crate::Result<()> {
        let written = self.try_write_whole(name, bytes);
        written.map_err(|source| self.write_error(source, &self.join(name), bytes.len() as u64, "writing"))
    }

    fn try_write_whole(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let part = format!("{name}.part");
        self.remove(&part)?; // left by a process that was killed here, or a link that leads elsewhere
        let file = self.open(&part, Mode::New)?;
        let written =
            file.write_all_at(bytes, 0).and_then(|()| file.sync_all()).and_then(|()| self.rename(&part, name));
        if written.is_err() {
            // Ignored on failure: the next process that writes the file removes it.
            let _ = self.remove(&part);
        }
        written?;
        self.sync()
    }
}

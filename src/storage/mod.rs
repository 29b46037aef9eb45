//! Storage of a run directory: the directory and its files, behind two small traits.
//!
//! Every read and write of a run file goes through [`Dir`] and [`File`]. Three implementations stand below them:
//! [`mod@file`] is the file system; [`memory`] simulates a disk and records what a power cut may lose; [`faults`] wraps
//! another storage and makes its k-th operation fail. Tests can therefore cut, tear or fail every step of an order of
//! operations that a run depends on, without a disk.
//!
//! The traits ([`Storage`], [`Handle`]) are as thin as the system calls: a call may be interrupted, and a read or a
//! write may transfer fewer bytes than requested. This module handles both in one place: it repeats interrupted calls,
//! continues short reads and writes, and returns an error when a write transfers no bytes.
//!
//! Invariant: after the first failed sync, and after the first EIO, no file of the same [`Dir`] or of its clones is
//! written ([`poisoned`]). A second sync would succeed without having written anything, because the kernel marks the
//! pages clean. From then on only the data of earlier syncs is known to be on the disk.

pub mod faults;
pub mod file;
pub mod memory;

pub use file::Files;
pub use memory::Memory;

use crate::fault;
use memmap2::Mmap;
use std::fmt::Debug;
use std::io::{Error, ErrorKind, Read, Result};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The mode of opening a file. Only regular files can be opened; the modes for writing also refuse a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Reads an existing file.
    Read,
    /// Reads and writes an existing file.
    Write,
    /// Reads and writes a file, which is created if it does not exist.
    Make,
    /// Reads and writes a file, which is truncated if it exists and created if it does not.
    Empty,
    /// Creates a file that does not exist yet, to read and write it.
    New,
}

/// The operations of a directory.
pub trait Storage: Debug + Send + Sync {
    /// Returns whether the directory exists.
    fn exists(&self) -> Result<bool>;
    /// Creates the directory and its missing ancestors, durably.
    fn make(&self) -> Result<()>;
    /// Opens a file.
    fn open(&self, name: &str, mode: Mode) -> Result<Box<dyn Handle>>;
    /// Returns the length of a file in bytes; `None` if the file does not exist.
    fn length(&self, name: &str) -> Result<Option<u64>>;
    /// Removes a file.
    fn remove(&self, name: &str) -> Result<()>;
    /// Renames a file and replaces any file that has the new name.
    fn rename(&self, from: &str, to: &str) -> Result<()>;
    /// Returns the names in the directory.
    fn names(&self) -> Result<Vec<String>>;
    /// Makes the names of the directory durable: creations, renames and removals.
    fn sync(&self) -> Result<()>;
    /// Returns the free space for this process, in bytes.
    fn free_space(&self) -> Result<u64>;
}

/// The operations of an open file.
pub trait Handle: Debug + Send + Sync {
    /// Returns the length of the file in bytes.
    fn length(&self) -> Result<u64>;
    /// Reads up to `out.len()` bytes from offset `at` and returns their number, which is 0 at the end of the file.
    fn read_at(&self, out: &mut [u8], at: u64) -> Result<usize>;
    /// Returns the first offset at or after `at` that may hold a byte other than zero; `None` if only a hole follows.
    /// An implementation may always return `at`.
    fn next_data(&self, at: u64) -> Result<Option<u64>> {
        Ok(Some(at))
    }
    /// Writes a first part of `bytes` at offset `at` and returns its length in bytes.
    fn write_at(&self, bytes: &[u8], at: u64) -> Result<usize>;
    /// Truncates the file, or extends it with zeros.
    fn set_length(&self, length: u64) -> Result<()>;
    /// Makes the bytes and the length durable.
    fn sync_data(&self) -> Result<()>;
    /// Makes the bytes and all metadata of the file durable, except its name.
    fn sync_all(&self) -> Result<()>;
    /// Locks the file until it is closed; returns `false` if another handle holds the lock.
    fn try_lock(&self) -> Result<bool>;
    /// Returns whether `name` still leads to this file.
    fn is_named(&self, name: &str) -> Result<bool>;
    /// Punches a hole of `length` bytes at offset `at`: it frees the blocks, and the range reads as zeros. The length
    /// of the file stays.
    fn punch(&self, at: u64, length: u64) -> Result<()>;
    /// Maps the first `length` bytes, which can be read until the file is truncated below them.
    fn map(&self, length: u64) -> Result<Bytes>;
    /// Drops the unsynced changes, as a failed sync does when the kernel marks the pages clean. Only a simulated disk
    /// implements it.
    fn forget_unsynced(&self) {}
}

/// The first bytes of a file, as [`Handle::map`] returns them.
#[derive(Debug)]
pub enum Bytes {
    /// A memory map, which shows later writes to the file.
    Mapped(Mmap),
    /// A copy, which does not show them.
    Owned(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }
}

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
struct Poison(Arc<AtomicBool>);

/// Returns the error of a write that is refused because an earlier disk error left the durable state unknown.
#[must_use]
pub fn poisoned() -> Error {
    Error::other("nothing is written after a disk error, because the durable state is unknown")
}

impl Poison {
    /// Runs a call that changes nothing.
    fn query<T>(&self, call: impl FnMut() -> Result<T>) -> Result<T> {
        self.poison_on_failure(retry_interrupted(call), false)
    }

    /// Runs a call that changes a file or the directory.
    fn change<T>(&self, call: impl FnMut() -> Result<T>) -> Result<T> {
        self.check()?;
        self.poison_on_failure(retry_interrupted(call), false)
    }

    /// Runs a call that makes changes durable.
    fn sync(&self, call: impl FnMut() -> Result<()>) -> Result<()> {
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

/// A run directory on a storage. After a disk error, all clones refuse to write ([`poisoned`]).
#[derive(Clone, Debug)]
pub struct Dir {
    path: PathBuf,
    storage: Arc<dyn Storage>,
    poison: Poison,
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
        Ok(File { handle: handle?, poison: self.poison.clone() })
    }

    /// Returns the length of a file in bytes; `None` if the file does not exist.
    ///
    /// # Errors
    /// The error of the system; `InvalidInput` if the name does not lead to a regular file.
    pub fn length(&self, name: &str) -> Result<Option<u64>> {
        self.poison.query(|| self.storage.length(name))
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

    /// Returns the names in the directory.
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

    /// Returns the error of a write for which the device lacks space; `needed` is the number of bytes still to be
    /// written.
    #[must_use]
    pub(crate) fn no_room(&self, path: &Path, needed: u64) -> crate::Error {
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

    /// Writes a file atomically and durably: after a power cut, `name` has either its old contents (or does not exist)
    /// or all of `bytes`.
    ///
    /// # Errors
    /// The error of the system.
    pub fn write_whole(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let part = format!("{name}.part");
        self.remove(&part)?; // left by a process that was killed here, or a link that leads elsewhere
        let file = self.open(&part, Mode::New)?;
        file.write_all_at(bytes, 0)?;
        file.sync_all()?;
        self.rename(&part, name)?;
        self.sync()
    }
}

/// An open file of a [`Dir`].
#[derive(Debug)]
pub struct File {
    handle: Box<dyn Handle>,
    poison: Poison,
}

impl File {
    /// Returns the length of the file in bytes.
    ///
    /// # Errors
    /// The error of the system, as for every method of [`File`].
    pub fn length(&self) -> Result<u64> {
        self.poison.query(|| self.handle.length())
    }

    /// Fills `out` with the bytes from offset `at` on.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends before `out` is full.
    pub fn read_exact_at(&self, out: &mut [u8], mut at: u64) -> Result<()> {
        let mut rest = out;
        while !rest.is_empty() {
            match self.poison.query(|| self.handle.read_at(rest, at))? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                read => {
                    rest = &mut rest[read..];
                    at += read as u64;
                }
            }
        }
        Ok(())
    }

    /// Returns the first offset at or after `at` that may hold a byte other than zero; `None` if only a hole follows.
    ///
    /// # Errors
    /// The error of the system.
    pub fn next_data(&self, at: u64) -> Result<Option<u64>> {
        self.poison.query(|| self.handle.next_data(at))
    }

    /// Writes all of `bytes` at offset `at`.
    ///
    /// # Errors
    /// `WriteZero` if the system writes no bytes. A first part of `bytes` may be written before any error.
    pub fn write_all_at(&self, mut bytes: &[u8], mut at: u64) -> Result<()> {
        while !bytes.is_empty() {
            match self.poison.change(|| self.handle.write_at(bytes, at))? {
                0 => return Err(ErrorKind::WriteZero.into()),
                _ if fault::is("ignore-short-write") => return Ok(()), // deliberate fault, see fault.rs
                written => {
                    bytes = &bytes[written..];
                    at += written as u64;
                }
            }
        }
        Ok(())
    }

    /// Truncates the file, or extends it with zeros.
    ///
    /// # Errors
    /// The error of the system.
    pub fn set_length(&self, length: u64) -> Result<()> {
        self.poison.change(|| self.handle.set_length(length))
    }

    /// Makes the bytes and the length durable.
    ///
    /// # Errors
    /// The error of the system; every later write is refused ([`poisoned`]).
    pub fn sync_data(&self) -> Result<()> {
        self.poison.sync(|| self.handle.sync_data())
    }

    /// Makes the bytes and all metadata of the file durable, except its name.
    ///
    /// # Errors
    /// The error of the system; every later write is refused ([`poisoned`]).
    pub fn sync_all(&self) -> Result<()> {
        self.poison.sync(|| self.handle.sync_all())
    }

    /// Locks the file until it is closed; returns `false` if another handle still holds the lock after ten attempts at
    /// intervals of 20 ms. (The lock of a process that has just ended may be held for a moment by a child process that
    /// was being started.)
    ///
    /// # Errors
    /// The error of the system.
    pub fn lock_soon(&self) -> Result<bool> {
        const TRIES: u32 = 10;
        for _ in 1..TRIES {
            if self.poison.query(|| self.handle.try_lock())? {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.poison.query(|| self.handle.try_lock())
    }

    /// Returns whether `name` still leads to this file.
    ///
    /// # Errors
    /// The error of the system.
    pub fn is_named(&self, name: &str) -> Result<bool> {
        self.poison.query(|| self.handle.is_named(name))
    }

    /// Punches a hole of `length` bytes at offset `at`: it frees the blocks, and the range reads as zeros. The length
    /// of the file stays.
    ///
    /// # Errors
    /// The error of the system; `Unsupported` on a file system without holes.
    pub fn punch(&self, at: u64, length: u64) -> Result<()> {
        self.poison.change(|| self.handle.punch(at, length))
    }

    /// Maps the first `length` bytes. The file must have them and must not be truncated below them while the map is
    /// read.
    ///
    /// # Errors
    /// The error of the system.
    pub fn map(&self, length: u64) -> Result<Bytes> {
        self.poison.query(|| self.handle.map(length))
    }

    /// Returns a reader from the start of the file.
    #[must_use]
    pub fn reader(&self) -> Reader<'_> {
        Reader { file: self, at: 0 }
    }
}

/// A reader of a [`File`], with a position of its own.
#[derive(Debug)]
pub struct Reader<'a> {
    file: &'a File,
    at: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let read = self.file.poison.query(|| self.file.handle.read_at(out, self.at))?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::faults::{Fault, Faults, Plan};
    use super::*;

    #[test]
    fn no_file_is_written_after_a_failed_sync_or_eio() {
        // The operations are: open a, open b, write a, sync a. The write or the sync fails once.
        for (at, fault) in [(3, Fault::Io), (4, Fault::Io), (2, Fault::NoSpace)] {
            let memory = Memory::new();
            ["a", "b"].into_iter().for_each(|name| memory.put(name, vec![0]));
            let faults = Arc::new(Faults::new(Arc::new(memory.clone()), Plan::At { at, fault, lasting: false }));
            let dir = Dir::on(faults.clone(), Path::new("run"));
            let [a, b] = ["a", "b"].map(|name| dir.open(name, Mode::Write).unwrap());
            assert!(a.write_all_at(&[1], 0).and_then(|()| a.sync_data()).is_err());
            for refused in [b.write_all_at(&[1], 0), b.sync_data(), a.sync_all(), b.set_length(0), dir.sync()] {
                assert_eq!(refused.unwrap_err().to_string(), poisoned().to_string());
            }
            assert!(dir.remove("b").is_err() && dir.rename("b", "c").is_err() && dir.open("c", Mode::Make).is_err());
            assert_eq!((faults.disobeyed(), memory.get("b")), (0, Some(vec![0])));
            b.read_exact_at(&mut [7], 0).unwrap();
        }
    }
}

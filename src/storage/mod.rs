//! Storage of a run directory: the directory and its files, behind two small traits.
//!
//! Every read and write of a run file goes through [`Dir`] and [`File`]. Three implementations stand below them:
//! [`mod@file`] is the file system; [`testing::memory`] simulates a disk and records what a power cut may lose;
//! [`testing::faults`] wraps another storage and makes its k-th operation fail. Tests can therefore cut, tear or fail
//! every step of an order of operations that a run depends on, without a disk.
//!
//! The traits ([`Storage`], [`Handle`]) are as thin as the system calls: a call may be interrupted, and a read or a
//! write may transfer fewer bytes than requested. This module handles both in one place: it repeats interrupted calls,
//! continues short reads and writes, and returns an error when a write transfers no bytes.
//!
//! Invariant: after the first failed sync, and after the first EIO, no file of the same [`Dir`] or of its clones is
//! written ([`poisoned`]). A second sync would succeed without having written anything, because the kernel marks the
//! pages clean. From then on only the data of earlier syncs is known to be on the disk.

mod dir;
pub mod file;
mod open_file;
mod poison;
#[doc(hidden)]
pub mod testing;
#[cfg(test)]
mod tests;

pub use dir::Dir;
pub use file::Files;
pub use open_file::{File, Reader};
pub use poison::poisoned;

use memmap2::Mmap;
use std::fmt::Debug;
use std::io::Result;
use std::ops::Deref;

/// Whether a name that [`Dir::names`] returned leads to its file: it has no replacement characters.
pub(crate) fn is_unicode(name: &str) -> bool {
    !name.contains(char::REPLACEMENT_CHARACTER)
}

/// The mode of opening a file. Only regular files can be opened; the modes for writing also refuse a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Reads an existing file.
    Read,
    /// Reads and writes an existing file.
    Write,
    /// Reads and writes a file, which is created if it does not exist.
    Make,
    /// Creates a file that does not exist yet, to read and write it.
    New,
}

/// The operations of a directory.
pub trait Storage: Debug + Send + Sync {
    /// Returns whether the directory exists.
    fn exists(&self) -> Result<bool>;
    /// Creates the directory and its missing ancestors, and makes their names durable.
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
    /// Returns whether `name` still leads to this file; `false` if no file has that name.
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

//! An open file on any storage.

#[cfg(doc)]
use super::Dir;
use super::poison::Poison;
#[cfg(doc)]
use super::poisoned;
use super::{Bytes, Handle};
use crate::fault;
use std::io::{ErrorKind, Read, Result};
use std::time::Duration;

/// An open file of a [`Dir`].
#[derive(Debug)]
pub struct File {
    handle: Box<dyn Handle>,
    poison: Poison,
}

impl File {
    pub(super) fn new(handle: Box<dyn Handle>, poison: Poison) -> File {
        File { handle, poison }
    }

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

//! Where the files of a run lie: a directory and its files, behind two small traits.
//!
//! Everything that is read from or written to the files of a run directory goes through [`Dir`] and [`File`]. Below them
//! stand three implementations: [`files`], the file system; [`memory`], which remembers what a power cut may lose; and
//! [`faults`], which lets the k-th operation of another one fail. So every order of operations that a run depends on can be
//! cut, torn and failed at each step, without a disk.
//!
//! The traits ([`Storage`], [`Handle`]) are as thin as the system calls: a count of bytes may be short, a call may be
//! interrupted. What follows from that is written once, here: interrupted calls are made again, short ones are gone on
//! with, and a write of no bytes is an error.
//!
//! Invariant: after the first failed sync, and after the first EIO, nothing is written any more through any file of the
//! same [`Dir`] ([`poisoned`]). A second sync would succeed without having written anything, since the kernel marks the
//! pages clean; so nobody knows any longer what the disk holds, but for what was synced before.

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

/// How a file is opened. Only regular files are; for writing, a symbolic link is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// To be read; it must be there.
    Read,
    /// To be read and written; it must be there.
    Write,
    /// To be read and written; made when it is not there.
    Make,
    /// To be read and written, and empty.
    Empty,
    /// To be read and written; it must not be there.
    New,
}

/// A directory.
pub trait Storage: Debug + Send + Sync {
    /// Whether the directory is there.
    fn exists(&self) -> Result<bool>;
    /// Makes the directory, durably, with those above it.
    fn make(&self) -> Result<()>;
    /// Opens a file.
    fn open(&self, name: &str, mode: Mode) -> Result<Box<dyn Handle>>;
    /// The length of a file; `None` when it is not there.
    fn length(&self, name: &str) -> Result<Option<u64>>;
    /// Removes a file.
    fn remove(&self, name: &str) -> Result<()>;
    /// Gives a file another name; a file of that name is no more.
    fn rename(&self, from: &str, to: &str) -> Result<()>;
    /// The names of the files.
    fn names(&self) -> Result<Vec<String>>;
    /// Makes the names durable.
    fn sync(&self) -> Result<()>;
    /// Bytes free for this process.
    fn free_space(&self) -> Result<u64>;
}

/// An open file.
pub trait Handle: Debug + Send + Sync {
    /// Bytes.
    fn length(&self) -> Result<u64>;
    /// Reads some bytes, and says how many; none at the end of the file.
    fn read_at(&self, out: &mut [u8], at: u64) -> Result<usize>;
    /// The first offset at or behind `at` that may hold something else than zeros; `None` when only a hole follows. The
    /// answer `at` is always right.
    fn next_data(&self, at: u64) -> Result<Option<u64>> {
        Ok(Some(at))
    }
    /// Writes some bytes, and says how many.
    fn write_at(&self, bytes: &[u8], at: u64) -> Result<usize>;
    /// Cuts the file, or lets zeros follow.
    fn set_length(&self, length: u64) -> Result<()>;
    /// Makes the bytes and the length durable.
    fn sync_data(&self) -> Result<()>;
    /// Makes everything about the file durable, but for its name.
    fn sync_all(&self) -> Result<()>;
    /// Locks the file until it is closed; `false` when another has it.
    fn try_lock(&self) -> Result<bool>;
    /// Whether the file is still the one of this name.
    fn is_named(&self, name: &str) -> Result<bool>;
    /// Gives the blocks of a part back, which reads as zeros then; the length stays.
    fn punch(&self, at: u64, length: u64) -> Result<()>;
    /// The first bytes, to be read for as long as they are not cut off.
    fn map(&self, length: u64) -> Result<Bytes>;
    /// What a sync that failed does to what waited for it: the kernel marks the pages clean. Only a simulated disk can.
    fn forget_unsynced(&self) {}
}

/// The first bytes of a file.
#[derive(Debug)]
pub enum Bytes {
    /// Mapped: what is written into them later is seen.
    Mapped(Mmap),
    /// Copied.
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

/// Makes a call again for as long as it is interrupted.
fn again<T>(mut call: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Whether nothing is written any more, for all files of one directory.
#[derive(Clone, Debug, Default)]
struct Poison(Arc<AtomicBool>);

/// The error of whoever writes after an error that leaves the disk unknown.
#[must_use]
pub fn poisoned() -> Error {
    Error::other("nothing is written after an error of the disk")
}

impl Poison {
    /// A call that changes nothing.
    fn look<T>(&self, call: impl FnMut() -> Result<T>) -> Result<T> {
        self.judge(again(call), false)
    }

    /// A call that changes something.
    fn change<T>(&self, call: impl FnMut() -> Result<T>) -> Result<T> {
        self.check()?;
        self.judge(again(call), false)
    }

    /// A call after which something is durable.
    fn sync(&self, call: impl FnMut() -> Result<()>) -> Result<()> {
        self.check()?;
        self.judge(again(call), true)
    }

    fn check(&self) -> Result<()> {
        if self.0.load(Ordering::SeqCst) { Err(poisoned()) } else { Ok(()) }
    }

    fn judge<T>(&self, done: Result<T>, always: bool) -> Result<T> {
        let io = rustix::io::Errno::IO.raw_os_error();
        if done.as_ref().is_err_and(|error| always || error.raw_os_error() == Some(io)) {
            self.0.store(true, Ordering::SeqCst);
        }
        done
    }
}

/// A run directory on some storage. Clones share what they know of errors.
#[derive(Clone, Debug)]
pub struct Dir {
    path: PathBuf,
    storage: Arc<dyn Storage>,
    poison: Poison,
}

impl Dir {
    /// A directory of the file system.
    #[must_use]
    pub fn at(path: &Path) -> Dir {
        Dir::on(Arc::new(Files::new(path)), path)
    }

    /// A directory on any storage; `path` is what messages call it.
    #[must_use]
    pub fn on(storage: Arc<dyn Storage>, path: &Path) -> Dir {
        Dir { path: path.into(), storage, poison: Poison::default() }
    }

    /// What messages call the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What messages call a file.
    #[must_use]
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Whether the directory is there.
    ///
    /// # Errors
    /// What the system says, as everywhere here.
    pub fn exists(&self) -> Result<bool> {
        self.poison.look(|| self.storage.exists())
    }

    /// Makes the directory, durably, with those above it.
    ///
    /// # Errors
    /// Also after an error that leaves the disk unknown, as with all that changes something.
    pub fn make(&self) -> Result<()> {
        self.poison.sync(|| self.storage.make())
    }

    /// Opens a file.
    ///
    /// # Errors
    /// `NotFound`, `AlreadyExists` by the mode; `InvalidInput` for what is no regular file (a directory, FIFO, device).
    pub fn open(&self, name: &str, mode: Mode) -> Result<File> {
        let open = || self.storage.open(name, mode);
        let handle = if mode == Mode::Read { self.poison.look(open) } else { self.poison.change(open) };
        Ok(File { handle: handle?, poison: self.poison.clone() })
    }

    /// The length of a file; `None` when it is not there.
    ///
    /// # Errors
    /// What the system says; `InvalidInput` for what is no regular file.
    pub fn length(&self, name: &str) -> Result<Option<u64>> {
        self.poison.look(|| self.storage.length(name))
    }

    /// Removes a file, when it is there.
    ///
    /// # Errors
    /// What the system says.
    pub fn remove(&self, name: &str) -> Result<()> {
        match self.poison.change(|| self.storage.remove(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// Gives a file another name; a file of that name is no more.
    ///
    /// # Errors
    /// What the system says.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.poison.change(|| self.storage.rename(from, to))
    }

    /// The names of the files.
    ///
    /// # Errors
    /// What the system says.
    pub fn names(&self) -> Result<Vec<String>> {
        self.poison.look(|| self.storage.names())
    }

    /// Makes the names durable.
    ///
    /// # Errors
    /// What the system says; nothing is written after it.
    pub fn sync(&self) -> Result<()> {
        self.poison.sync(|| self.storage.sync())
    }

    /// Bytes free for this process, where the directory is or would be made.
    ///
    /// # Errors
    /// What the system says.
    pub fn free_space(&self) -> Result<u64> {
        self.poison.look(|| self.storage.free_space())
    }

    /// The error when this many bytes of a file do not fit the device any more.
    #[must_use]
    pub(crate) fn no_room(&self, path: &Path, needed: u64) -> crate::Error {
        let available = self.free_space().unwrap_or(0).min(needed.saturating_sub(1));
        crate::Error::NoRoom { path: path.into(), needed, available, fits: None, keep: None }
    }

    /// All bytes of a file.
    ///
    /// # Errors
    /// What the system says.
    pub fn read(&self, name: &str) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(name, Mode::Read)?.reader().read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// All bytes of a file that has at most `most` of them.
    ///
    /// # Errors
    /// What the system says; `InvalidData` for a longer file, of which at most `most` + 1 bytes are read.
    pub fn read_at_most(&self, name: &str, most: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.open(name, Mode::Read)?.reader().take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        if read as u64 > most {
            return Err(Error::new(ErrorKind::InvalidData, format!("the file is longer than {most} bytes")));
        }
        Ok(bytes)
    }

    /// Writes a whole file that is there either with all its bytes, durable, or not at all.
    ///
    /// # Errors
    /// What the system says.
    pub fn write_whole(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let part = format!("{name}.part");
        self.remove(&part)?; // of a process that was killed just here; or a link that leads elsewhere
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
    /// Bytes.
    ///
    /// # Errors
    /// What the system says, as everywhere here.
    pub fn length(&self) -> Result<u64> {
        self.poison.look(|| self.handle.length())
    }

    /// Reads as many bytes as asked for.
    ///
    /// # Errors
    /// `UnexpectedEof` when the file ends before.
    pub fn read_exact_at(&self, out: &mut [u8], mut at: u64) -> Result<()> {
        let mut rest = out;
        while !rest.is_empty() {
            match self.poison.look(|| self.handle.read_at(rest, at))? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                read => {
                    rest = &mut rest[read..];
                    at += read as u64;
                }
            }
        }
        Ok(())
    }

    /// The first offset at or behind `at` that may hold something else than zeros; `None` when only a hole follows.
    ///
    /// # Errors
    /// What the system says.
    pub fn next_data(&self, at: u64) -> Result<Option<u64>> {
        self.poison.look(|| self.handle.next_data(at))
    }

    /// Writes all bytes.
    ///
    /// # Errors
    /// `WriteZero` when none are taken; some may be written before an error.
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

    /// Cuts the file, or lets zeros follow.
    ///
    /// # Errors
    /// What the system says.
    pub fn set_length(&self, length: u64) -> Result<()> {
        self.poison.change(|| self.handle.set_length(length))
    }

    /// Makes the bytes and the length durable.
    ///
    /// # Errors
    /// What the system says; nothing is written after it.
    pub fn sync_data(&self) -> Result<()> {
        self.poison.sync(|| self.handle.sync_data())
    }

    /// Makes everything about the file durable, but for its name.
    ///
    /// # Errors
    /// What the system says; nothing is written after it.
    pub fn sync_all(&self) -> Result<()> {
        self.poison.sync(|| self.handle.sync_all())
    }

    /// Locks the file until it is closed; `false` when another has it, and keeps it for a while. (A process that has just
    /// ended may live on for a moment in a child that it was about to start.)
    ///
    /// # Errors
    /// What the system says.
    pub fn lock_soon(&self) -> Result<bool> {
        const TRIES: u32 = 10;
        for _ in 1..TRIES {
            if self.poison.look(|| self.handle.try_lock())? {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.poison.look(|| self.handle.try_lock())
    }

    /// Whether the file is still the one of this name.
    ///
    /// # Errors
    /// What the system says.
    pub fn is_named(&self, name: &str) -> Result<bool> {
        self.poison.look(|| self.handle.is_named(name))
    }

    /// Gives the blocks of a part back, which reads as zeros then; the length stays.
    ///
    /// # Errors
    /// What the system says; `Unsupported` where there are no holes.
    pub fn punch(&self, at: u64, length: u64) -> Result<()> {
        self.poison.change(|| self.handle.punch(at, length))
    }

    /// The first bytes, which must be there and must not be cut off while they are read.
    ///
    /// # Errors
    /// What the system says.
    pub fn map(&self, length: u64) -> Result<Bytes> {
        self.poison.look(|| self.handle.map(length))
    }

    /// Reads from the start on.
    #[must_use]
    pub fn reader(&self) -> Reader<'_> {
        Reader { file: self, at: 0 }
    }
}

/// A file, read from the start on.
#[derive(Debug)]
pub struct Reader<'a> {
    file: &'a File,
    at: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let read = self.file.poison.look(|| self.file.handle.read_at(out, self.at))?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::faults::{Fault, Faults, Plan};
    use super::*;

    #[test]
    fn after_a_sync_that_failed_and_after_eio_nothing_is_written_through_any_file() {
        // Two files are opened, one is written, one synced: the third or the fourth operation fails, once.
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

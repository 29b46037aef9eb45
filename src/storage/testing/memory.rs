//! A simulated disk in memory that records what is durable, and therefore what a power cut may leave.
//!
//! Every file has the bytes that a process sees, the bytes that are durable, and the changes between the two, in order.
//! Names are durable separately from the files, by a sync of the directory only. [`Memory::image`] is a possible disk
//! after a power cut: each unsynced write is lost, kept, or kept in any subset of its sectors or bytes; each unsynced
//! change of length is lost or kept; of the unsynced changes of names the first ones survive, any number of them, and
//! none is applied in part. This includes everything that real disks may leave, and more (overlapping writes may
//! survive in combinations that no disk leaves).

use crate::storage::{Bytes, Handle, Mode, Storage};
use crate::theory::nimber::index;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Length of a sector in bytes: a disk writes a sector as a whole or not at all.
pub const SECTOR: usize = 512;

/// A function that chooses a number below its argument.
pub type Choice<'a> = dyn FnMut(u64) -> u64 + 'a;

/// A change of the contents of a file.
#[derive(Clone, Debug)]
enum Change {
    Write { at: usize, bytes: Arc<[u8]> },
    Length(usize),
    Hole(Range<usize>),
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Change::Write { at, bytes } => write(content, *at, bytes),
            Change::Length(length) => content.resize(*length, 0),
            Change::Hole(hole) => {
                let end = hole.end.min(content.len());
                content[hole.start.min(end)..end].fill(0);
            }
        }
    }
}

/// Writes bytes at offset `at`, and extends the contents with zeros if necessary.
fn write(content: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if content.len() < at + bytes.len() {
        content.resize(at + bytes.len(), 0);
    }
    content[at..at + bytes.len()].copy_from_slice(bytes);
}

#[derive(Clone, Debug, Default)]
struct Inode {
    /// The bytes that a process sees.
    content: Vec<u8>,
    /// The bytes that are durable.
    durable: Vec<u8>,
    /// The changes that are not durable yet, in order.
    changes: Vec<Change>,
}

impl Inode {
    fn change(&mut self, change: Change) {
        change.apply(&mut self.content);
        self.changes.push(change);
    }

    fn sync(&mut self) {
        for change in std::mem::take(&mut self.changes) {
            change.apply(&mut self.durable);
        }
    }

    fn durable(content: Vec<u8>) -> Inode {
        Inode { durable: content.clone(), content, ..Inode::default() }
    }

    /// Returns a file that a power cut may leave; the same one, without a copy, if a power cut changes nothing. After a
    /// failed sync it may change the contents although no change is pending.
    fn left(inode: &Arc<Inode>, unit: usize, choose: &mut Choice<'_>) -> Arc<Inode> {
        if inode.changes.is_empty() && inode.content == inode.durable {
            return Arc::clone(inode);
        }
        Arc::new(Inode::durable(inode.after_power_cut(unit, choose)))
    }

    /// Returns contents that a power cut may leave.
    fn after_power_cut(&self, unit: usize, choose: &mut Choice<'_>) -> Vec<u8> {
        /// All unsynced changes are lost.
        const ALL_LOST: u64 = 0;
        /// All unsynced changes are kept.
        const ALL_KEPT: u64 = 1;
        /// Any of the changes are kept, and the length as well; lost bytes at the end read as zeros.
        const LENGTH_KEPT: u64 = 2;
        if self.changes.is_empty() {
            return self.durable.clone();
        }
        let outcome = choose(5);
        let mut content = self.durable.clone();
        for change in self.changes.iter().filter(|_| outcome != ALL_LOST) {
            match change {
                Change::Write { at, bytes } if outcome != ALL_KEPT => {
                    write_torn(&mut content, *at, bytes, unit, choose)
                }
                change if outcome == ALL_KEPT || choose(2) == 0 => change.apply(&mut content),
                _ => {}
            }
        }
        if outcome == LENGTH_KEPT && content.len() < self.content.len() {
            content.resize(self.content.len(), 0);
        }
        content
    }
}

/// Applies a write that a power cut tears: it is lost, kept, or kept in any subset of its units.
fn write_torn(content: &mut Vec<u8>, at: usize, bytes: &[u8], unit: usize, choose: &mut Choice<'_>) {
    let fate = choose(4);
    let mut from = 0;
    while from < bytes.len() {
        let to = bytes.len().min(from + unit - (at + from) % unit);
        if fate == 0 || (fate > 1 && choose(2) == 0) {
            write(content, at + from, &bytes[from..to]);
        }
        from = to;
    }
}

/// A change of the names of a directory.
#[derive(Clone, Debug)]
enum Naming {
    Created(String, usize),
    Renamed(String, String),
    Removed(String),
}

impl Naming {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Naming::Created(name, inode) => _ = names.insert(name.clone(), *inode),
            Naming::Renamed(from, to) => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
            Naming::Removed(name) => _ = names.remove(name),
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Disk {
    /// All files, with and without names. A file that a [`Memory::copy`] shares is copied when it changes.
    inodes: Vec<Arc<Inode>>,
    /// The names that a process sees, with indices into `inodes`.
    names: BTreeMap<String, usize>,
    /// The names that are durable.
    durable: BTreeMap<String, usize>,
    /// The changes of names that are not durable yet, in order.
    namings: Vec<Naming>,
    /// Indices into `inodes` of the locked files.
    locked: BTreeSet<usize>,
    /// Whether the directory exists.
    exists: bool,
}

impl Disk {
    fn name(&mut self, naming: Naming) {
        naming.apply(&mut self.names);
        self.namings.push(naming);
    }

    fn inode(&mut self, inode: usize) -> &mut Inode {
        Arc::make_mut(&mut self.inodes[inode])
    }

    fn find(&self, name: &str) -> Result<usize> {
        self.names.get(name).copied().ok_or_else(|| Error::from(ErrorKind::NotFound))
    }
}

/// A directory on a simulated disk. Clones share the directory.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    disk: Arc<Mutex<Disk>>,
}

impl Memory {
    /// Returns an empty directory that exists.
    #[must_use]
    pub fn new() -> Memory {
        Memory::from(Disk { exists: true, ..Disk::default() })
    }

    fn from(disk: Disk) -> Memory {
        Memory { disk: Arc::new(Mutex::new(disk)) }
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an independent disk in the same state, unsynced changes included, with all locks free.
    #[must_use]
    pub fn copy(&self) -> Memory {
        Memory::from(Disk { locked: BTreeSet::new(), ..self.disk().clone() })
    }

    /// Returns a disk that a power cut may leave now, on which everything is durable. `unit` is the number of aligned
    /// bytes that are written as a whole or not at all: [`SECTOR`], or 1 to tear writes at any byte.
    ///
    /// # Panics
    /// If `unit` is 0.
    #[must_use]
    pub fn image(&self, unit: usize, choose: &mut Choice<'_>) -> Memory {
        let disk = self.disk();
        let mut names = disk.durable.clone();
        let kept = match choose(3) {
            0 => 0,
            1 => disk.namings.len(),
            _ => index(choose(disk.namings.len() as u64 + 1)),
        };
        disk.namings[..kept].iter().for_each(|naming| naming.apply(&mut names));
        let image = Memory::new();
        for (name, inode) in names {
            image.put_file(&name, Inode::left(&disk.inodes[inode], unit, choose));
        }
        image
    }

    /// Returns the bytes of a file as a process sees them; `None` if the file does not exist.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Vec<u8>> {
        let disk = self.disk();
        disk.names.get(name).map(|&inode| disk.inodes[inode].content.clone())
    }

    /// Creates or replaces a file, durably.
    pub fn put(&self, name: &str, content: Vec<u8>) {
        self.put_file(name, Arc::new(Inode::durable(content)));
    }

    fn put_file(&self, name: &str, file: Arc<Inode>) {
        let mut disk = self.disk();
        let inode = disk.inodes.len();
        disk.inodes.push(file);
        disk.names.insert(name.into(), inode);
        disk.durable.insert(name.into(), inode);
        // An earlier creation of this name must not take effect later.
        disk.namings.retain(|naming| !matches!(naming, Naming::Created(created, _) if created == name));
    }
}

impl Storage for Memory {
    fn exists(&self) -> Result<bool> {
        Ok(self.disk().exists)
    }

    fn make(&self) -> Result<()> {
        self.disk().exists = true;
        Ok(())
    }

    fn open(&self, name: &str, mode: Mode) -> Result<Box<dyn Handle>> {
        let mut disk = self.disk();
        let inode = match (disk.find(name), mode) {
            (Ok(_), Mode::New) => return Err(ErrorKind::AlreadyExists.into()),
            (Err(error), Mode::Read | Mode::Write) => return Err(error),
            (Ok(inode), _) => inode,
            (Err(_), _) => {
                let inode = disk.inodes.len();
                disk.inodes.push(Arc::default());
                disk.name(Naming::Created(name.into(), inode));
                inode
            }
        };
        Ok(Box::new(Opened { disk: Arc::clone(&self.disk), inode, locks: Mutex::new(false) }))
    }

    fn length(&self, name: &str) -> Result<Option<u64>> {
        let disk = self.disk();
        Ok(disk.names.get(name).map(|&inode| disk.inodes[inode].content.len() as u64))
    }

    fn remove(&self, name: &str) -> Result<()> {
        let mut disk = self.disk();
        disk.find(name)?;
        disk.name(Naming::Removed(name.into()));
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut disk = self.disk();
        disk.find(from)?;
        disk.name(Naming::Renamed(from.into(), to.into()));
        Ok(())
    }

    fn names(&self) -> Result<Vec<String>> {
        Ok(self.disk().names.keys().cloned().collect())
    }

    fn sync(&self) -> Result<()> {
        let disk = &mut *self.disk();
        disk.namings.drain(..).for_each(|naming| naming.apply(&mut disk.durable));
        Ok(())
    }

    fn free_space(&self) -> Result<u64> {
        Ok(1 << 40)
    }
}

#[derive(Debug)]
struct Opened {
    disk: Arc<Mutex<Disk>>,
    inode: usize,
    /// Whether this handle holds the lock.
    locks: Mutex<bool>,
}

impl Opened {
    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on the file, which may change it.
    fn with<T>(&self, work: impl FnOnce(&mut Inode) -> T) -> T {
        work(self.disk().inode(self.inode))
    }

    /// Runs `work` on the file without changing it.
    fn see<T>(&self, work: impl FnOnce(&Inode) -> T) -> T {
        work(&self.disk().inodes[self.inode])
    }
}

impl Handle for Opened {
    fn length(&self) -> Result<u64> {
        Ok(self.see(|inode| inode.content.len() as u64))
    }

    fn read_at(&self, out: &mut [u8], at: u64) -> Result<usize> {
        self.see(|inode| {
            let rest = inode.content.get(index(at)..).unwrap_or_default();
            let read = out.len().min(rest.len());
            out[..read].copy_from_slice(&rest[..read]);
            Ok(read)
        })
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> Result<usize> {
        self.with(|inode| inode.change(Change::Write { at: index(at), bytes: bytes.into() }));
        Ok(bytes.len())
    }

    fn set_length(&self, length: u64) -> Result<()> {
        if self.see(|inode| inode.content.len()) != index(length) {
            self.with(|inode| inode.change(Change::Length(index(length))));
        }
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        self.sync_all()
    }

    fn sync_all(&self) -> Result<()> {
        if self.see(|inode| !inode.changes.is_empty()) {
            self.with(Inode::sync);
        }
        Ok(())
    }

    fn try_lock(&self) -> Result<bool> {
        let free = self.disk().locked.insert(self.inode);
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        *locks |= free;
        Ok(free)
    }

    fn is_named(&self, name: &str) -> Result<bool> {
        Ok(self.disk().find(name).is_ok_and(|inode| inode == self.inode))
    }

    fn punch(&self, at: u64, length: u64) -> Result<()> {
        self.with(|inode| inode.change(Change::Hole(index(at)..index(at + length))));
        Ok(())
    }

    fn map(&self, length: u64) -> Result<Bytes> {
        self.see(|inode| match inode.content.get(..index(length)) {
            Some(bytes) => Ok(Bytes::Owned(bytes.to_vec())),
            None => Err(ErrorKind::UnexpectedEof.into()),
        })
    }

    fn forget_unsynced(&self) {
        // A file system keeps the new length in its metadata, so a failed sync of the data does not lose it.
        self.with(|inode| inode.changes.retain(|change| matches!(change, Change::Length(_))));
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if *self.locks.get_mut().unwrap_or_else(PoisonError::into_inner) {
            self.disk().locked.remove(&self.inode);
        }
    }
}

#[cfg(test)]
mod tests;

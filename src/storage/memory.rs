//! A disk in memory that remembers what is durable, and so what a power cut may leave.
//!
//! Every file has the bytes that a process sees, those that are durable, and the operations between the two, in order. The
//! names of files are durable apart from the files, with the sync of the directory only. [`Memory::image`] is a disk after a
//! power cut: of what was not durable, each write is lost, kept, or kept in any of its sectors or bytes, each change of length is
//! lost or kept, and of the changes of names the first few are kept, none of them by half. That is more than disks do (what
//! is written twice may come back in the order of neither), and at least what they may do.

use super::{Bytes, Handle, Mode, Storage};
use crate::theory::nimber::index;
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a disk writes as a whole or not at all.
pub const SECTOR: usize = 512;

/// Draws a number below the bound.
pub type Choice<'a> = dyn FnMut(u64) -> u64 + 'a;

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

fn write(content: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if content.len() < at + bytes.len() {
        content.resize(at + bytes.len(), 0);
    }
    content[at..at + bytes.len()].copy_from_slice(bytes);
}

#[derive(Clone, Debug, Default)]
struct Inode {
    /// What a process sees.
    content: Vec<u8>,
    durable: Vec<u8>,
    /// Not durable yet, in order.
    changes: Vec<Change>,
    locked: bool,
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

    /// What a power cut leaves.
    fn left(&self, unit: usize, choose: &mut Choice<'_>) -> Vec<u8> {
        /// Of the changes that are not durable.
        const ALL_LOST: u64 = 0;
        const ALL_KEPT: u64 = 1;
        /// Besides, the length is kept where bytes are lost, and they read as zeros.
        const LENGTH_KEPT: u64 = 2;
        if self.changes.is_empty() {
            return self.durable.clone();
        }
        let how = choose(5);
        let mut content = self.durable.clone();
        for change in self.changes.iter().filter(|_| how != ALL_LOST) {
            match change {
                Change::Write { at, bytes } if how != ALL_KEPT => torn(&mut content, *at, bytes, unit, choose),
                change if how == ALL_KEPT || choose(2) == 0 => change.apply(&mut content),
                _ => {}
            }
        }
        if how == LENGTH_KEPT && content.len() < self.content.len() {
            content.resize(self.content.len(), 0);
        }
        content
    }
}

/// A write that is lost, kept, or kept in some of its units.
fn torn(content: &mut Vec<u8>, at: usize, bytes: &[u8], unit: usize, choose: &mut Choice<'_>) {
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

#[derive(Clone, Debug)]
enum Naming {
    Made(String, usize),
    Renamed(String, String),
    Removed(String),
}

impl Naming {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Naming::Made(name, inode) => _ = names.insert(name.clone(), *inode),
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
    /// Files with and without names; copied when one is changed that a [`Memory::copy`] still holds.
    inodes: Vec<Arc<Inode>>,
    names: BTreeMap<String, usize>,
    durable: BTreeMap<String, usize>,
    /// Not durable yet, in order.
    namings: Vec<Naming>,
    there: bool,
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

/// A directory in memory. A clone is the same directory.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    disk: Arc<Mutex<Disk>>,
}

impl Memory {
    /// An empty directory that is there.
    #[must_use]
    pub fn new() -> Memory {
        Memory::from(Disk { there: true, ..Disk::default() })
    }

    fn from(disk: Disk) -> Memory {
        Memory { disk: Arc::new(Mutex::new(disk)) }
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same state on a disk of its own, with what is not durable; locks are free.
    #[must_use]
    pub fn copy(&self) -> Memory {
        let mut disk = self.disk().clone();
        for inode in 0..disk.inodes.len() {
            if disk.inodes[inode].locked {
                disk.inode(inode).locked = false;
            }
        }
        Memory::from(disk)
    }

    /// What a power cut now may leave on the disk, all of it durable. Of so many bytes all are written, or none: a
    /// [`SECTOR`], or with 1 any of them.
    ///
    /// # Panics
    /// When `unit` is 0.
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
        let left = names.into_iter().map(|(name, inode)| (name, disk.inodes[inode].left(unit, choose)));
        let image = Memory::new();
        left.for_each(|(name, content)| image.put(&name, content));
        image
    }

    /// A file's bytes, as a process sees them.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Vec<u8>> {
        let disk = self.disk();
        disk.names.get(name).map(|&inode| disk.inodes[inode].content.clone())
    }

    /// Puts a file there, durable.
    pub fn put(&self, name: &str, content: Vec<u8>) {
        let mut disk = self.disk();
        let inode = disk.inodes.len();
        disk.inodes.push(Arc::new(Inode::durable(content)));
        disk.names.insert(name.into(), inode);
        disk.durable.insert(name.into(), inode);
        // What was to become of the name before is over.
        disk.namings.retain(|naming| !matches!(naming, Naming::Made(made, _) if made == name));
    }
}

impl Storage for Memory {
    fn exists(&self) -> Result<bool> {
        Ok(self.disk().there)
    }

    fn make(&self) -> Result<()> {
        self.disk().there = true;
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
                disk.name(Naming::Made(name.into(), inode));
                inode
            }
        };
        if mode == Mode::Empty && !disk.inodes[inode].content.is_empty() {
            disk.inode(inode).change(Change::Length(0));
        }
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
    /// Whether the lock is held by this one.
    locks: Mutex<bool>,
}

impl Opened {
    fn with<T>(&self, work: impl FnOnce(&mut Inode) -> T) -> T {
        let mut disk = self.disk.lock().unwrap_or_else(PoisonError::into_inner);
        work(disk.inode(self.inode))
    }

    fn see<T>(&self, work: impl FnOnce(&Inode) -> T) -> T {
        let disk = self.disk.lock().unwrap_or_else(PoisonError::into_inner);
        work(&disk.inodes[self.inode])
    }
}

impl Handle for Opened {
    fn length(&self) -> Result<u64> {
        Ok(self.see(|inode| inode.content.len() as u64))
    }

    fn read_at(&self, out: &mut [u8], at: u64) -> Result<usize> {
        self.see(|inode| {
            let there = inode.content.get(index(at)..).unwrap_or_default();
            let read = out.len().min(there.len());
            out[..read].copy_from_slice(&there[..read]);
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
        self.with(Inode::sync);
        Ok(())
    }

    fn try_lock(&self) -> Result<bool> {
        let free = self.with(|inode| !std::mem::replace(&mut inode.locked, true));
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        *locks |= free;
        Ok(free)
    }

    fn is_named(&self, name: &str) -> Result<bool> {
        let disk = self.disk.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(disk.find(name)? == self.inode)
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
        // The length is the file system's own, and it does not forget it.
        self.with(|inode| inode.changes.retain(|change| matches!(change, Change::Length(_))));
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if *self.locks.get_mut().unwrap_or_else(PoisonError::into_inner) {
            self.with(|inode| inode.locked = false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every image of a disk, by going through all sequences of choices.
    fn images(memory: &Memory) -> Vec<BTreeMap<String, Vec<u8>>> {
        let mut found = Vec::new();
        let mut path: Vec<(u64, u64)> = Vec::new();
        loop {
            let mut depth = 0;
            let image = memory.image(SECTOR, &mut |bound| {
                if depth == path.len() {
                    path.push((0, bound));
                }
                depth += 1;
                path[depth - 1].0
            });
            found.push(
                image.names().unwrap().into_iter().map(|name| (name.clone(), image.get(&name).unwrap())).collect(),
            );
            path.truncate(depth);
            while path.last().is_some_and(|(choice, bound)| choice + 1 == *bound) {
                path.pop();
            }
            match path.last_mut() {
                Some(last) => last.0 += 1,
                None => break,
            }
        }
        found.sort();
        found.dedup();
        found
    }

    #[test]
    fn what_is_synced_is_in_every_image_and_what_is_not_in_some() {
        let memory = Memory::new();
        let file = memory.open("a", Mode::Make).unwrap();
        file.write_at(&[1; 1024], 0).unwrap();
        file.sync_all().unwrap();
        let of = |images: Vec<BTreeMap<String, Vec<u8>>>| -> Vec<Option<Vec<u8>>> {
            images.into_iter().map(|mut image| image.remove("a")).collect()
        };
        assert_eq!(of(images(&memory)), [None, Some(vec![1; 1024])], "the sync of a file does not name it");
        memory.sync().unwrap();
        assert_eq!(of(images(&memory)), [Some(vec![1; 1024])]);
        // One write over three sectors, of which the last is new: any of them, with the length or without.
        file.write_at(&[2; 1500], 30).unwrap();
        let sectors = of(images(&memory));
        let expect = |sectors: [bool; 3], length: usize| {
            let mut bytes = vec![1; 1024];
            let ends = [(30, 512), (512, 1024), (1024, 1530)];
            for ((from, to), _) in ends.into_iter().zip(sectors).filter(|(_, kept)| *kept) {
                bytes.resize(bytes.len().max(to), 0);
                bytes[from..to].fill(2);
            }
            bytes.resize(bytes.len().max(length), 0);
            Some(bytes)
        };
        let mut expected: Vec<_> = (0..8)
            .flat_map(|bits| [1024, 1530].map(|length| expect([1, 2, 4].map(|bit| bits & bit != 0), length)))
            .collect();
        expected.sort();
        expected.dedup();
        assert_eq!(sectors, expected);
        file.forget_unsynced();
        file.sync_data().unwrap();
        assert_eq!(of(images(&memory)), [Some(vec![1; 1024])], "a sync after one that failed");
        assert_eq!(memory.get("a").unwrap()[30], 2, "which no process sees");
    }

    #[test]
    fn names_are_kept_in_order_and_a_rename_is_whole() {
        let memory = Memory::new();
        memory.put("b", vec![0]);
        memory.open("a", Mode::New).unwrap();
        memory.rename("a", "b").unwrap();
        memory.remove("b").unwrap();
        let names = |image: &BTreeMap<String, Vec<u8>>| -> Vec<(String, usize)> {
            image.iter().map(|(name, bytes)| (name.clone(), bytes.len())).collect()
        };
        let mut found: Vec<_> = images(&memory).iter().map(names).collect();
        found.sort();
        let (a, old, new) = (("a".to_owned(), 0), ("b".to_owned(), 1), ("b".to_owned(), 0));
        assert_eq!(found, [vec![], vec![a, old.clone()], vec![new], vec![old]]);
    }
}

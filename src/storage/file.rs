//! The storage on the file system.
//!
//! A map is the only way in which a file is read without a system call. It is read-only and covers committed bytes,
//! which this program does not truncate while they are mapped.

#![allow(unsafe_code)] // one place: mapping a file

use super::{Bytes, Handle, Mode, Storage};
use memmap2::MmapOptions;
use rustix::fs::{FallocateFlags, OFlags, SeekFrom, fallocate, statvfs};
use rustix::io::Errno;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A directory of the file system.
#[derive(Clone, Debug)]
pub struct Files {
    dir: PathBuf,
}

impl Files {
    /// Returns the directory of this path, whether it exists or not.
    #[must_use]
    pub fn new(dir: &Path) -> Files {
        Files { dir: dir.into() }
    }
}

impl Storage for Files {
    fn exists(&self) -> Result<bool> {
        self.dir.try_exists()
    }

    fn make(&self) -> Result<()> {
        let missing: Vec<&Path> =
            self.dir.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && !dir.exists()).collect();
        std::fs::create_dir_all(&self.dir)?;
        // The name of a directory is durable after a sync of its parent. A directory that exists may have been created
        // a moment ago, by the user or by a process that was killed before this sync.
        let existed = missing.is_empty();
        let all = if existed { vec![self.dir.as_path()] } else { missing };
        for made in all {
            let Some(parent) = made.parent() else { continue };
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            match File::open(parent).and_then(|parent| parent.sync_all()) {
                // This process created nothing there, and the system does not let it sync the directory.
                Err(error)
                    if existed && matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidInput) => {}
                synced => synced?,
            }
        }
        Ok(())
    }

    fn open(&self, name: &str, mode: Mode) -> Result<Box<dyn Handle>> {
        // Without NONBLOCK, opening a FIFO waits until another process opens its other end. Regular files ignore the
        // flag.
        let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let mut options = OpenOptions::new();
        options.read(true);
        if mode != Mode::Read {
            options.write(true);
            flags |= OFlags::NOFOLLOW;
        }
        options.custom_flags(flags.bits().cast_signed());
        match mode {
            Mode::Read | Mode::Write => {}
            Mode::Make => _ = options.create(true).truncate(false),
            Mode::New => _ = options.create_new(true),
        }
        let file = options.open(self.dir.join(name)).map_err(|error| match error.raw_os_error() {
            // The system returns ENXIO for a socket.
            Some(code) if code == Errno::NXIO.raw_os_error() => not_regular(),
            _ => error,
        })?;
        if !file.metadata()?.is_file() {
            return Err(not_regular());
        }
        Ok(Box::new(Opened { dir: self.dir.clone(), file }))
    }

    fn length(&self, name: &str) -> Result<Option<u64>> {
        match std::fs::metadata(self.dir.join(name)) {
            Ok(metadata) if metadata.is_file() => Ok(Some(metadata.len())),
            Ok(_) => Err(not_regular()),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn remove(&self, name: &str) -> Result<()> {
        std::fs::remove_file(self.dir.join(name))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        std::fs::rename(self.dir.join(from), self.dir.join(to))
    }

    fn names(&self) -> Result<Vec<String>> {
        let entries = std::fs::read_dir(&self.dir)?;
        // No name of this program's files has a replacement character.
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn sync(&self) -> Result<()> {
        File::open(&self.dir)?.sync_all()
    }

    fn free_space(&self) -> Result<u64> {
        let existing = self.dir.ancestors().find(|dir| !dir.as_os_str().is_empty() && dir.exists());
        let stat = statvfs(existing.unwrap_or(Path::new(".")))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

/// The error for a directory, FIFO, socket or device in the place of a file: none of them has bytes at offsets.
fn not_regular() -> Error {
    Error::new(ErrorKind::InvalidInput, "not a regular file; remove it or put the file back")
}

#[derive(Debug)]
struct Opened {
    dir: PathBuf,
    file: File,
}

impl Handle for Opened {
    fn length(&self) -> Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, out: &mut [u8], at: u64) -> Result<usize> {
        self.file.read_at(out, at)
    }

    fn next_data(&self, at: u64) -> Result<Option<u64>> {
        match rustix::fs::seek(&self.file, SeekFrom::Data(at)) {
            Ok(data) => Ok(Some(data)),
            Err(Errno::NXIO) => Ok(None),
            Err(Errno::INVAL) => Ok(Some(at)), // the file system does not record its holes
            Err(error) => Err(error.into()),
        }
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> Result<usize> {
        self.file.write_at(bytes, at)
    }

    fn set_length(&self, length: u64) -> Result<()> {
        self.file.set_len(length)
    }

    fn sync_data(&self) -> Result<()> {
        self.file.sync_data()
    }

    fn sync_all(&self) -> Result<()> {
        self.file.sync_all()
    }

    fn try_lock(&self) -> Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn is_named(&self, name: &str) -> Result<bool> {
        let opened = self.file.metadata()?;
        match std::fs::metadata(self.dir.join(name)) {
            Ok(named) => Ok((opened.dev(), opened.ino()) == (named.dev(), named.ino())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn punch(&self, at: u64, length: u64) -> Result<()> {
        Ok(fallocate(&self.file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, length)?)
    }

    fn map(&self, length: u64) -> Result<Bytes> {
        let length = usize::try_from(length).map_err(|_| Error::from(ErrorKind::OutOfMemory))?;
        // SAFETY: the map is read-only and covers committed bytes only. No process of this program changes them, with
        // three exceptions. A hole is punched into discarded values: the owner of the map refuses to read them
        // beforehand, and another process detects afterwards that it has read them (`run::RunReader`). A repair
        // restores bytes before anything has read them. A run writes new values after a rollback, which a reader
        // detects in the same way. Another program that shrinks the file below these bytes, or a rollback after damage
        // of the journal (docs/DURABILITY.md, G9), makes a read beyond the new end fail with SIGBUS, which no reader of
        // maps can exclude and which loses no data.
        let map = unsafe { MmapOptions::new().len(length).map(&self.file) };
        map.map(Bytes::Mapped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The calls run in a thread with a time limit, because a wrong call would wait for ever.
    #[test]
    fn only_regular_files_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("directory")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("device")).unwrap();
        std::fs::write(at("file"), "abc").unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        let (done, wait) = std::sync::mpsc::channel();
        let files = Files::new(dir.path());
        std::thread::spawn(move || {
            for name in ["directory", "fifo", "socket", "device"] {
                assert_eq!(files.length(name).unwrap_err().kind(), ErrorKind::InvalidInput, "{name}");
                let error = files.open(name, Mode::Read).unwrap_err();
                assert!(error.to_string().contains("not a regular file"), "{name}: {error}");
                for mode in [Mode::Write, Mode::Make, Mode::New] {
                    assert!(files.open(name, mode).is_err(), "{name}, {mode:?}");
                }
            }
            for name in ["file", "link"] {
                assert_eq!(files.length(name).unwrap(), Some(3));
                assert_eq!(files.open(name, Mode::Read).unwrap().length().unwrap(), 3);
            }
            done.send(()).unwrap();
        });
        wait.recv_timeout(std::time::Duration::from_secs(20)).expect("every open returned as expected");
    }

    #[test]
    fn next_data_skips_a_hole_and_ends_with_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let files = Files::new(dir.path());
        let file = files.open("file", Mode::New).unwrap();
        file.set_length(9 << 20).unwrap();
        file.write_at(b"data", 5 << 20).unwrap();
        let first = file.next_data(0).unwrap().unwrap();
        assert!(first <= 5 << 20, "data at {} was skipped: {first}", 5 << 20);
        // The file system of temporary directories may record no holes. If it does, this one is skipped.
        let path = dir.path().join("file");
        if std::fs::metadata(&path).unwrap().blocks() * 512 < 5 << 20
            && rustix::fs::seek(std::fs::File::open(&path).unwrap(), SeekFrom::Hole(0)).unwrap() == 0
        {
            assert!(first > 0, "the hole was not skipped");
        }
        let last = file.next_data(6 << 20).unwrap();
        assert!(last.is_none_or(|data| data >= 6 << 20), "{last:?}");
        assert_eq!(file.next_data(9 << 20).unwrap(), None, "no data lies beyond the end");
    }

    #[test]
    fn punching_a_file_without_holes_is_an_error() {
        let file = OpenOptions::new().write(true).open("/dev/null").unwrap();
        assert!(Opened { dir: "/dev".into(), file }.punch(4096, 4096).is_err());
    }
}

//! One growing file of a table.

use super::files::unused_name;
use super::npy::{self, HEADER, npy_header};
use crate::error::{Damage, Error, Result};
use crate::storage::{Bytes, Dir, File, Mode};
use crate::theory::nimber::index;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// The name of one of the two files, and the type of its units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) name: &'static str,
    /// The type of a unit as NumPy writes it.
    pub(super) descr: &'static str,
    /// Length of a unit, in bytes.
    pub(super) unit: u64,
}

/// One of the two files: a header and an array of units of fixed length.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) dir: Dir,
    pub(super) path: PathBuf,
    pub(super) file: File,
    pub(super) layout: Layout,
}

impl Column {
    /// Creates an empty file, locks it and makes it durable; an existing file of that name is replaced.
    pub(super) fn create(dir: &Dir, layout: Layout) -> Result<Column> {
        let mut column = Column::make(dir, layout, Mode::Make)?;
        if column.length()? > 0 {
            // A reader may have mapped this file, so unlink it instead of truncating it. The lock excludes writers.
            column.check_name()?;
            dir.remove(layout.name).map_err(Error::io("removing", &column.path))?;
            column = Column::make(dir, layout, Mode::New)?;
        }
        column.write_header(0)?;
        column.sync_all()?;
        Ok(column)
    }

    /// Opens a file in a mode that creates it, and locks it.
    fn make(dir: &Dir, layout: Layout, mode: Mode) -> Result<Column> {
        let path = dir.join(layout.name);
        let file = dir.open(layout.name, mode).map_err(Error::io("creating", &path))?;
        let column = Column { dir: dir.clone(), path, file, layout };
        column.lock()?;
        Ok(column)
    }

    /// Opens an existing file, and locks it unless `mode` is [`Mode::Read`].
    pub(super) fn open(dir: &Dir, layout: Layout, mode: Mode) -> Result<Column> {
        let path = dir.join(layout.name);
        let file = dir.open(layout.name, mode).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => {
                Error::Damage { path: path.clone(), offset: 0, damage: Damage::MissingFile }
            }
            _ => Error::io("opening", &path)(source),
        })?;
        let column = Column { dir: dir.clone(), path, file, layout };
        if mode != Mode::Read {
            column.lock()?;
        }
        Ok(column)
    }

    /// Locks the file. The lock on the journal does not exclude a second writer if the journal was replaced by another
    /// file; this lock does.
    fn lock(&self) -> Result<()> {
        if self.file.lock_soon().map_err(Error::io("locking", &self.path))? {
            Ok(())
        } else {
            Err(Error::Locked { path: self.dir.path().into() })
        }
    }

    pub(super) fn write_header(&self, length: u64) -> Result<()> {
        let header = npy_header(self.layout.descr, length, HEADER);
        self.file
            .write_all_at(&header, 0)
            .map_err(|source| self.dir.write_error(source, &self.path, HEADER, "writing the header of"))
    }

    fn read_header(&self) -> Result<Vec<u8>> {
        let mut header = vec![0; index(HEADER)];
        match self.file.read_exact_at(&mut header, 0) {
            Ok(()) => Ok(header),
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
                let damage = Damage::ShortHeader { header: HEADER };
                Err(Error::Damage { path: self.path.clone(), offset: 0, damage })
            }
            Err(e) => Err(Error::io("reading the header of", &self.path)(e)),
        }
    }

    /// The error for a header whose first wrong byte is at offset `at`.
    fn altered_header(&self, at: usize) -> Error {
        let damage = Damage::Header { descr: self.layout.descr };
        Error::Damage { path: self.path.clone(), offset: at as u64, damage }
    }

    /// Reads the shape from the header, every byte of which must be as this program writes it.
    ///
    /// # Errors
    /// [`Error::Damage`] if the header differs; [`Error::Io`].
    pub(super) fn header_shape(&self) -> Result<u64> {
        /// Number of reads before the header counts as altered: the writer may be updating the shape during a read.
        const READS: u32 = 3;
        let mut reads = 0;
        loop {
            let header = self.read_header()?;
            if let Some(shape) = npy::shape_of(self.layout.descr, &header) {
                return Ok(shape);
            }
            reads += 1;
            if reads == READS {
                return Err(self.altered_header(npy::first_difference(self.layout.descr, &header)));
            }
            std::thread::yield_now();
        }
    }

    /// Checks the header before it is rewritten. A power cut can leave a mixture of two shapes, so the bytes in the
    /// place of the shape may be any that a shape can have; the journal has the length of the array.
    ///
    /// # Errors
    /// [`Error::Damage`] if another byte differs; [`Error::Io`].
    pub(super) fn check_header(&self) -> Result<()> {
        match npy::first_wrong_byte(self.layout.descr, &self.read_header()?) {
            Some(at) => Err(self.altered_header(at)),
            None => Ok(()),
        }
    }

    /// Maps the header and the first `length` units.
    ///
    /// # Errors
    /// [`Error::Damage`] if the file has fewer; [`Error::Memory`] if they do not fit the address space; [`Error::Io`].
    pub(super) fn map(&self, length: u64) -> Result<Arc<Bytes>> {
        let bytes = self.layout.unit.checked_mul(length).and_then(|b| b.checked_add(HEADER));
        let available = self.length()?;
        let Some(bytes) = bytes.filter(|&bytes| bytes <= available) else {
            let damage = Damage::ShortFile { units: length, unit: self.layout.unit };
            return Err(Error::Damage { path: self.path.clone(), offset: available, damage });
        };
        if usize::try_from(bytes).is_err() {
            return Err(Error::Memory { what: "the map of the table", bytes });
        }
        self.file.map(bytes).map(Arc::new).map_err(Error::io("mapping", &self.path))
    }

    pub(super) fn length(&self) -> Result<u64> {
        self.file.length().map_err(Error::io("reading the state of", &self.path))
    }

    /// Whether the file holds these bytes from unit `at` on.
    pub(super) fn holds(&self, expected: &[u8], at: u64) -> Result<bool> {
        let mut found = vec![0; expected.len()];
        match self.file.read_exact_at(&mut found, HEADER + at * self.layout.unit) {
            Ok(()) => Ok(found == expected),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(Error::io("reading", &self.path)(error)),
        }
    }

    /// Writes whole units, from unit `at` on.
    pub(super) fn write(&self, bytes: &[u8], at: u64) -> Result<()> {
        let offset = HEADER + at * self.layout.unit;
        self.file.write_all_at(bytes, offset).map_err(|source| {
            // A part of the bytes may have been written.
            let end = offset + bytes.len() as u64;
            let needed = end - self.file.length().unwrap_or(offset).clamp(offset, end);
            // If the file is already long enough, the write failed because a hole in it needs blocks.
            let needed = if needed == 0 { bytes.len() as u64 } else { needed };
            let action = format!("writing {} bytes at offset {offset} of", bytes.len());
            self.dir.write_error(source, &self.path, needed, &action)
        })
    }

    /// Makes the bytes, the length and all metadata durable.
    pub(super) fn sync_all(&self) -> Result<()> {
        self.file.sync_all().map_err(Error::io("syncing", &self.path))
    }

    /// Makes the bytes and the length durable.
    pub(super) fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(Error::io("syncing", &self.path))
    }

    /// Checks that the path still names this file. If it names a different file, what this process writes vanishes when
    /// its descriptor closes.
    fn check_name(&self) -> Result<()> {
        if !self.file.is_named(self.layout.name).map_err(Error::io("reading the state of", &self.path))? {
            let what = "its path leads to another file now, or to none".into();
            return Err(Error::Replaced { path: self.path.clone(), what });
        }
        Ok(())
    }

    /// Checks that the path still names this file, and that the file still holds the `units` units written to it.
    pub(super) fn check_unchanged(&self, units: u64) -> Result<()> {
        self.check_name()?;
        let length = self.length()?;
        let end = self.end_of(units);
        if length < end {
            let what = format!("it was truncated to {length} of {end} bytes");
            return Err(Error::Replaced { path: self.path.clone(), what });
        }
        Ok(())
    }

    /// Returns the offset at which the first `units` units end. Saturates, because a record that a rollback has made
    /// obsolete may contain any number.
    fn end_of(&self, units: u64) -> u64 {
        units.saturating_mul(self.layout.unit).saturating_add(HEADER)
    }

    /// Checks that nothing follows the first `units` units.
    pub(super) fn check_length(&self, units: u64) -> Result<()> {
        let length = self.length()?;
        let end = self.end_of(units);
        if length > end {
            let damage = Damage::LongFile { bytes: length - end };
            return Err(Error::Damage { path: self.path.clone(), offset: end, damage });
        }
        Ok(())
    }

    /// Copies the existing bytes of `units` to a new quarantine file, durably, and returns the name of that file.
    /// Returns `None` if there are no such bytes, or if the first quarantine file of this name has them already.
    pub(super) fn quarantine(&self, name: &str, units: &Range<u64>) -> Result<Option<String>> {
        let offset = HEADER + units.start * self.layout.unit;
        // `units.end` comes from a record that does not agree with the files, so it may lie beyond their end.
        let end = self.length()?.min(self.end_of(units.end));
        if end <= offset {
            return Ok(None);
        }
        let mut bytes = vec![0; index(end - offset)];
        self.file.read_exact_at(&mut bytes, offset).map_err(Error::io("reading", &self.path))?;
        let stem = format!("{name}-{offset}");
        // A process that was killed here may have copied these bytes already. After a second kill there are two copies.
        let first = format!("{stem}.bin");
        if self.dir.read_at_most(&first, bytes.len() as u64).is_ok_and(|copied| copied == bytes) {
            return Ok(None);
        }
        let name = unused_name(&self.dir, &stem, "bin")?;
        self.dir.write_whole(&name, &bytes)?;
        Ok(Some(name))
    }

    /// Truncates the file to its first `units` units if it is longer, and syncs it.
    pub(super) fn cut(&self, units: u64) -> Result<()> {
        let end = self.end_of(units);
        if self.length()? > end {
            self.file.set_length(end).map_err(Error::io("truncating", &self.path))?;
        }
        self.sync_all()
    }
}

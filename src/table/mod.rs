//! The value table of a run: `values.npy`, and `escapes.npy` for the values that do not fit a byte.
//!
//! Both are NumPy files (format 1.0) with a header of exactly 4096 bytes, so that the data is page-aligned and the
//! shape can be rewritten in place. `values.npy` holds one unit per n: a byte (`|u1`) with min(G(n), 255), or two bytes
//! (`<u2`) with G(n). In a table of bytes, `escapes.npy` lists every n with G(n) >= 255 and its whole value, ascending
//! in n, as `[('n','<u8'),('v','<u2')]`. The byte saturates, so a program that reads `values.npy` alone sees every
//! value below 255 unchanged, in particular the zeros; 255 means that `escapes.npy` has the value.
//!
//! The files are written with `pwrite` and read through a map: on a full disk `pwrite` returns an error, while a store
//! through a map kills the process (SIGBUS). Only the committed part is mapped, read-only. A file is never shrunk below
//! bytes that a reader may have mapped, because reading beyond the new end would kill the reader (SIGBUS). A rollback
//! therefore leaves the files as long as they were, until the run has passed that length again.
//!
//! The shape in a header is for other readers and is updated after each commit. Only the journal defines how many
//! values are valid.
//!
//! **Holes.** A run that discards values punches holes into `values.npy`: whole segments of 2^24 values, which are
//! whole pages after a header of one page. A hole reads as zeros, and zero is a legal value, so [`Table::free`] makes
//! the table refuse to read the discarded values before their hole is punched. `escapes.npy` is never punched: it takes
//! 10 bytes for each value of 255 or more, and it stays ascending, so that it can be searched.
//!
//! **Quarantine.** Before a repair overwrites bytes that do not agree with the journal, it copies them, durably, to
//! `quarantine-SEQUENCE-OFFSET.bin` or `quarantine-SEQUENCE-escapes-OFFSET.bin`, so that the damage can be examined
//! later. SEQUENCE is that of the last record at that time, OFFSET the position of the bytes in the damaged file.
//!
//! Invariant: [`Table::len`] values are durable, and the journal has a record that commits them. A commit
//! ([`crate::checkpoint`]) keeps this order: [`Table::write`], [`Table::sync`], a record in the journal,
//! [`Table::publish`].

pub mod digest;
mod files;
mod width;

pub(crate) use files::{length_of, unused_name};
pub use width::Width;

use crate::error::{Error, Result};
use crate::fault;
use crate::storage::{Bytes, Dir, File, Mode};
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Length of the header of either file, in bytes.
pub const HEADER: u64 = 4096;

/// The name of the value table in a run directory.
pub const VALUES: &str = "values.npy";

/// The name of the escape file in a run directory.
pub const ESCAPES: &str = "escapes.npy";

/// Length of an escape, in bytes.
const ESCAPE_BYTES: u64 = 10;

/// The byte of every value of 255 or more; `escapes.npy` has the whole value.
pub(crate) const SATURATED: u8 = u8::MAX;

/// Returns the byte of a value in a table of bytes: min(`value`, 255).
pub(crate) fn saturated(value: u16) -> u8 {
    u8::try_from(value).unwrap_or(SATURATED)
}

/// Returns whether a table of bytes has this value in `escapes.npy`.
pub(crate) fn is_escape(value: u16) -> bool {
    value >= u16::from(SATURATED)
}

/// The type of an escape as NumPy writes it.
const ESCAPE_TYPE: &str = "[('n', '<u8'), ('v', '<u2')]";

/// Returns the header of a one-dimensional NumPy file, `size` bytes long: magic, version 1.0, length of the rest,
/// dictionary, spaces, newline.
///
/// `descr` is the type as NumPy writes it, a list or a quoted string; `length` is the number of elements; `size` is a
/// multiple of 64.
///
/// # Panics
/// If the dictionary does not fit `size` bytes, or if `size` exceeds 65545.
#[must_use]
pub fn npy_header(descr: &str, length: u64, size: u64) -> Vec<u8> {
    let dictionary = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': ({length},), }}");
    let rest = u16::try_from(size - 10).expect("a header of less than 64 KiB");
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend(rest.to_le_bytes());
    header.extend(dictionary.as_bytes());
    assert!((header.len() as u64) < size, "the dictionary fits the header");
    header.resize(index(size) - 1, b' ');
    header.push(b'\n');
    header
}

/// One of the two files: a header and an array of units of fixed length.
#[derive(Debug)]
struct Column {
    dir: Dir,
    name: &'static str,
    path: PathBuf,
    file: File,
    /// The type as NumPy writes it.
    descr: String,
    /// Length of a unit, in bytes.
    unit: u64,
}

impl Column {
    /// Creates an empty file, locks it and makes it durable; an existing file of that name is replaced.
    fn create(dir: &Dir, name: &'static str, descr: &str, unit: u64) -> Result<Column> {
        let path = dir.join(name);
        let make = |mode| {
            let file = dir.open(name, mode).map_err(Error::io("creating", &path))?;
            let column = Column { dir: dir.clone(), name, path: path.clone(), file, descr: descr.into(), unit };
            column.lock()?;
            Ok(column)
        };
        let mut column = make(Mode::Make)?;
        if column.length()? > 0 {
            // A reader may have mapped this file, so unlink it instead of truncating it. The lock excludes writers.
            column.check_name()?;
            dir.remove(name).map_err(Error::io("removing", &path))?;
            column = make(Mode::New)?;
        }
        column.write_header(0)?;
        column.file.sync_all().map_err(Error::io("syncing", &column.path))?;
        Ok(column)
    }

    /// Opens an existing file, and locks it if it is `writable`.
    fn open(dir: &Dir, name: &'static str, descr: &str, unit: u64, writable: bool) -> Result<Column> {
        let path = dir.join(name);
        let mode = if writable { Mode::Write } else { Mode::Read };
        let file = dir.open(name, mode).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => Error::Damage {
                path: path.clone(),
                offset: 0,
                what: format!(
                    "the file is missing, but the journal describes its contents; restore it from a copy, or return to \
                     the values that the remaining files support with 'grundy run --dir {} --rollback'",
                    dir.path().display()
                ),
            },
            _ => Error::io("opening", &path)(source),
        })?;
        let column = Column { dir: dir.clone(), name, path, file, descr: descr.into(), unit };
        if writable {
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

    fn write_header(&self, length: u64) -> Result<()> {
        let header = npy_header(&self.descr, length, HEADER);
        self.file.write_all_at(&header, 0).map_err(Error::io("writing the header of", &self.path))
    }

    fn read_header(&self) -> Result<Vec<u8>> {
        let mut header = vec![0; index(HEADER)];
        match self.file.read_exact_at(&mut header, 0) {
            Ok(()) => Ok(header),
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
                let what = "the file is shorter than its header of 4096 bytes".into();
                Err(Error::Damage { path: self.path.clone(), offset: 0, what })
            }
            Err(e) => Err(Error::io("reading the header of", &self.path)(e)),
        }
    }

    /// The error for a header whose first wrong byte is at offset `at`.
    fn altered_header(&self, at: Option<usize>) -> Error {
        let what = format!(
            "not the header of a one-dimensional array of {}; 'grundy run --dir {} --rollback' rewrites it and keeps \
             the values that agree with the journal",
            self.descr,
            self.dir.path().display()
        );
        Error::Damage { path: self.path.clone(), offset: at.unwrap_or(0) as u64, what }
    }

    /// Reads the shape from the header, every byte of which must be as this program writes it.
    ///
    /// # Errors
    /// [`Error::Damage`] if the header differs; [`Error::Io`].
    fn header_shape(&self) -> Result<u64> {
        let good = npy_header(&self.descr, 0, HEADER);
        // The writer may be updating the shape during a read, so retry twice.
        for last_try in [false, false, true] {
            let header = self.read_header()?;
            let text = String::from_utf8_lossy(&header);
            let shape = text.split_once("'shape': (").and_then(|(_, rest)| rest.split_once(','));
            let shape = shape.and_then(|(digits, _)| digits.parse::<u64>().ok());
            match shape {
                Some(shape) if npy_header(&self.descr, shape, HEADER) == header => return Ok(shape),
                _ if last_try => return Err(self.altered_header(header.iter().zip(&good).position(|(a, b)| a != b))),
                _ => std::thread::yield_now(),
            }
        }
        Err(self.altered_header(None))
    }

    /// Checks the header before it is rewritten. A power cut can leave a mixture of two shapes, so the bytes in the
    /// place of the shape may be any that a shape can have; the journal has the length of the array.
    ///
    /// # Errors
    /// [`Error::Damage`] if another byte differs; [`Error::Io`].
    fn check_header(&self) -> Result<()> {
        let header = self.read_header()?;
        let [least, most] = [0, u64::MAX].map(|length| npy_header(&self.descr, length, HEADER));
        let from = least.iter().zip(&most).position(|(a, b)| a != b).unwrap_or(0);
        let to = most.iter().rposition(|&byte| byte == b'}').unwrap_or(0);
        let may_be = |i: usize| (from..=to).contains(&i) && b"0123456789,) }".contains(&header[i]);
        match (0..header.len()).find(|&i| header[i] != least[i] && !may_be(i)) {
            Some(at) => Err(self.altered_header(Some(at))),
            None => Ok(()),
        }
    }

    /// Maps the header and the first `length` units.
    ///
    /// # Errors
    /// [`Error::Damage`] if the file has fewer; [`Error::Memory`] if they do not fit the address space; [`Error::Io`].
    fn map(&self, length: u64) -> Result<Arc<Bytes>> {
        let bytes = self.unit.checked_mul(length).and_then(|b| b.checked_add(HEADER));
        let there = self.length()?;
        let Some(bytes) = bytes.filter(|&b| b <= there) else {
            return Err(Error::Damage {
                path: self.path.clone(),
                offset: there,
                what: format!(
                    "the file ends here, but the journal says that it has {length} units of {} bytes; restore the file \
                     from a copy, or return to the values that the files support with 'grundy run --dir {} --rollback'",
                    self.unit,
                    self.dir.path().display()
                ),
            });
        };
        if usize::try_from(bytes).is_err() {
            return Err(Error::Memory { what: "the map of the table", bytes });
        }
        self.file.map(bytes).map(Arc::new).map_err(Error::io("mapping", &self.path))
    }

    fn length(&self) -> Result<u64> {
        self.file.length().map_err(Error::io("reading the state of", &self.path))
    }

    /// Writes whole units, from unit `at` on.
    fn write(&self, bytes: &[u8], at: u64) -> Result<()> {
        let offset = HEADER + at * self.unit;
        self.file.write_all_at(bytes, offset).map_err(|source| match source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                // A part of the bytes may have been written.
                let end = offset + bytes.len() as u64;
                let needed = end - self.file.length().unwrap_or(offset).clamp(offset, end);
                // If the file is already long enough, the write failed because a hole in it needs blocks.
                self.dir.no_room(&self.path, if needed == 0 { bytes.len() as u64 } else { needed })
            }
            _ => Error::io(format!("writing {} bytes at offset {offset} of", bytes.len()), &self.path)(source),
        })
    }

    fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(Error::io("syncing", &self.path))
    }

    /// Checks that the path still names this file. If it names a different file, what this process writes vanishes when its
    /// descriptor closes.
    fn check_name(&self) -> Result<()> {
        if !self.file.is_named(self.name).map_err(Error::io("reading the state of", &self.path))? {
            let what = "its path now leads to another file".into();
            return Err(Error::Replaced { path: self.path.clone(), what });
        }
        Ok(())
    }

    /// Checks that the path still names this file, and that the file still holds the `units` units written to it.
    fn check_unchanged(&self, units: u64) -> Result<()> {
        self.check_name()?;
        let length = self.length()?;
        let end = self.end_of(units);
        if length < end {
            let what = format!("it was truncated to {length} of {end} bytes");
            return Err(Error::Replaced { path: self.path.clone(), what });
        }
        Ok(())
    }

    /// Returns the offset at which the first `units` units end. Saturates, because a record that a rollback left behind
    /// may contain any number.
    fn end_of(&self, units: u64) -> u64 {
        units.saturating_mul(self.unit).saturating_add(HEADER)
    }

    /// Checks that nothing follows the first `units` units.
    fn check_length(&self, units: u64) -> Result<()> {
        let length = self.length()?;
        let end = self.end_of(units);
        if length > end {
            let what = format!("{} bytes too many for a run that was stopped cleanly", length - end);
            return Err(Error::Damage { path: self.path.clone(), offset: end, what });
        }
        Ok(())
    }

    /// Copies the existing bytes of `units` to a quarantine file, durably, and returns the name of that file. Returns
    /// `None` if there are no such bytes, or if the quarantine file exists already.
    fn quarantine(&self, name: &str, units: &Range<u64>) -> Result<Option<String>> {
        let offset = HEADER + units.start * self.unit;
        // `units.end` comes from a record that does not agree with the files, so it may lie beyond their end.
        let end = self.length()?.min(self.end_of(units.end));
        let name = format!("{name}-{offset}.bin");
        let io = |action: &'static str| Error::io(action, self.dir.join(&name));
        // An existing file of that name was written before a kill and holds the original bytes.
        if end <= offset || self.dir.length(&name).map_err(io("reading the state of"))?.is_some() {
            return Ok(None);
        }
        let mut bytes = vec![0; index(end - offset)];
        self.file.read_exact_at(&mut bytes, offset).map_err(Error::io("reading", &self.path))?;
        self.dir.write_whole(&name, &bytes).map_err(io("writing"))?;
        Ok(Some(name))
    }

    /// Truncates the file to its first `units` units if it is longer, and syncs it.
    fn cut(&self, units: u64) -> Result<()> {
        let end = self.end_of(units);
        if self.length()? > end {
            self.file.set_length(end).map_err(Error::io("truncating", &self.path))?;
        }
        self.file.sync_all().map_err(Error::io("syncing", &self.path))
    }
}

/// Punches a hole of `length` bytes into a file: it frees the blocks, and the range reads as zeros. The length of the
/// file stays.
fn punch(file: &File, path: &Path, offset: u64, length: u64) -> Result<()> {
    let action = || format!("freeing {length} bytes at offset {offset} of");
    file.punch(offset, length).map_err(|e| Error::io(action(), path)(e))
}

/// Checks on a scratch file that holes can be punched into files of this directory.
///
/// # Errors
/// [`Error::Io`] if not.
pub fn check_holes(dir: &Dir) -> Result<()> {
    /// Length of the hole, in bytes.
    const PAGE: u64 = 4096;
    const NAME: &str = "holes.tmp";
    let path = dir.join(NAME);
    dir.remove(NAME).map_err(Error::io("removing", &path))?; // left by a process that was killed here
    let file = dir.open(NAME, Mode::New).map_err(Error::io("creating", &path))?;
    dir.remove(NAME).map_err(Error::io("removing", &path))?;
    file.write_all_at(&vec![1; index(2 * PAGE)], 0).map_err(Error::io("writing", &path))?;
    punch(&file, &path, PAGE, PAGE).map_err(|error| no_holes(dir.path(), &error.to_string()))?;
    let mut bytes = vec![2; index(2 * PAGE)];
    file.read_exact_at(&mut bytes, 0).map_err(Error::io("reading", &path))?;
    let (before, hole) = bytes.split_at(index(PAGE));
    if before.iter().all(|&b| b == 1) && hole.iter().all(|&b| b == 0) {
        Ok(())
    } else {
        Err(no_holes(dir.path(), "a hole does not read as zeros"))
    }
}

/// The error for a file system on which [`check_holes`] fails.
fn no_holes(dir: &Path, why: &str) -> Error {
    let text = format!(
        "this file system cannot free parts of a file, which --keep requires ({why}); omit --keep, or choose a \
         directory on another file system"
    );
    Error::io("checking the file system of", dir)(std::io::Error::new(std::io::ErrorKind::Unsupported, text))
}

/// A read-only view of the committed part of a table. Cloning is cheap, and later commits do not change a clone.
#[derive(Clone, Debug)]
pub struct Published {
    width: Width,
    /// The value file up to its committed end, header included.
    values: Arc<Bytes>,
    /// The escape file up to its committed end, header included.
    escapes: Option<Arc<Bytes>>,
    count: u64,
    escape_count: u64,
    /// The path of the escape file, for messages.
    escapes_path: Arc<Path>,
    /// The discarded values, which cannot be read, whether their hole is punched or not.
    freed: Range<u64>,
}

/// The value table of one run.
#[derive(Debug)]
pub struct Table {
    values: Column,
    escapes: Option<Column>,
    published: Published,
    /// Number of values written, committed or not.
    written: u64,
    /// Number of escapes written, committed or not.
    written_escapes: u64,
}

impl Table {
    /// Creates the files of an empty table; existing files of these names are removed.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create(dir: &Path, width: Width) -> Result<Table> {
        Table::create_in(&Dir::at(dir), width)
    }

    /// [`Table::create`] on any storage.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create_in(dir: &Dir, width: Width) -> Result<Table> {
        let (descr, unit) = value_type(width);
        let values = Column::create(dir, VALUES, descr, unit)?;
        let escapes = match width {
            Width::U8 => Some(Column::create(dir, ESCAPES, ESCAPE_TYPE, ESCAPE_BYTES)?),
            Width::U16 => None,
        };
        dir.sync().map_err(Error::io("syncing", dir.path()))?;
        Table::published_at(values, escapes, width, 0, 0)
    }

    /// Creates the file `name` ([`VALUES`] or [`ESCAPES`]) of a table that lost it, with a header and no data.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn make_empty(dir: &Dir, width: Width, name: &str) -> Result<()> {
        let (descr, unit) = value_type(width);
        if name == ESCAPES {
            Column::create(dir, ESCAPES, ESCAPE_TYPE, ESCAPE_BYTES)?;
        } else {
            Column::create(dir, VALUES, descr, unit)?;
        }
        dir.sync().map_err(Error::io("syncing", dir.path()))
    }

    /// Renames table files that have data but no good record, before [`Table::create_in`] creates new ones:
    /// `values.npy` becomes `quarantine-values.npy`, or `quarantine-values-2.npy` and so on, and `escapes.npy`
    /// likewise. Returns the new names.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn put_old_files_aside(dir: &Dir) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for (name, stem) in [(VALUES, "quarantine-values"), (ESCAPES, "quarantine-escapes")] {
            // A kill before the first record leaves files with a header and no data.
            if length_of(dir, name)?.is_some_and(|length| length > HEADER) {
                let file = dir.open(name, Mode::Write).map_err(Error::io("opening", dir.join(name)))?;
                if !file.lock_soon().map_err(Error::io("locking", dir.join(name)))? {
                    return Err(Error::Locked { path: dir.path().into() });
                }
                let aside = unused_name(dir, stem, "npy")?;
                dir.rename(name, &aside).map_err(Error::io("renaming", dir.join(name)))?;
                names.push(aside);
            }
        }
        if !names.is_empty() {
            dir.sync().map_err(Error::io("syncing", dir.path()))?;
        }
        Ok(names)
    }

    /// Opens a table that has `count` values and `escapes` escapes according to the journal.
    ///
    /// # Errors
    /// [`Error::Damage`] if a file is missing or too short; [`Error::Locked`] if `writable` and another process has a
    /// file locked; [`Error::Io`].
    pub fn open(dir: &Path, width: Width, count: u64, escapes: u64, writable: bool) -> Result<Table> {
        Table::open_in(&Dir::at(dir), width, count, escapes, writable)
    }

    /// [`Table::open`] on any storage.
    ///
    /// # Errors
    /// As [`Table::open`].
    pub fn open_in(dir: &Dir, width: Width, count: u64, escapes: u64, writable: bool) -> Result<Table> {
        let (descr, unit) = value_type(width);
        let values = Column::open(dir, VALUES, descr, unit, writable)?;
        let column = match width {
            Width::U8 => Some(Column::open(dir, ESCAPES, ESCAPE_TYPE, ESCAPE_BYTES, writable)?),
            Width::U16 => None,
        };
        if writable {
            // A killed process may have left data in the page cache only: make it durable before relying on it.
            for column in [Some(&values), column.as_ref()].into_iter().flatten() {
                column.file.sync_all().map_err(Error::io("syncing", &column.path))?;
            }
        }
        Table::published_at(values, column, width, count, escapes)
    }

    /// Returns the table of two open files whose first `count` values and `escape_count` escapes are committed.
    fn published_at(
        values: Column,
        escapes: Option<Column>,
        width: Width,
        count: u64,
        escape_count: u64,
    ) -> Result<Table> {
        let published = Published {
            width,
            values: values.map(count)?,
            escapes: escapes.as_ref().map(|column| column.map(escape_count)).transpose()?,
            count,
            escape_count,
            escapes_path: values.dir.join(ESCAPES).into(),
            freed: 0..0,
        };
        Ok(Table { values, escapes, published, written: count, written_escapes: escape_count })
    }

    /// Returns the shapes in the headers of the values and of the escapes.
    ///
    /// # Errors
    /// [`Error::Damage`] if a header is not as this program writes it; [`Error::Io`].
    pub fn header_shapes(&self) -> Result<(u64, u64)> {
        let escapes = match &self.escapes {
            Some(column) => column.header_shape()?,
            None => self.published.escape_count,
        };
        Ok((self.values.header_shape()?, escapes))
    }

    /// Checks that the headers are as this program writes them, except for the shapes: these may be out of date, or a
    /// mixture of two shapes after a power cut.
    ///
    /// # Errors
    /// [`Error::Damage`] if a header differs elsewhere; [`Error::Io`].
    pub fn check_headers(&self) -> Result<()> {
        if let Some(column) = &self.escapes {
            column.check_header()?;
        }
        self.values.check_header()
    }

    /// Writes values after all values that were written before. They are neither durable nor readable yet.
    ///
    /// # Errors
    /// [`Error::NoRoom`] on a full disk, [`Error::Io`].
    pub fn write(&mut self, values: &[u16]) -> Result<()> {
        let (bytes, entries) = self.units(self.written, values);
        self.values.write(&bytes, self.written)?;
        if let Some(column) = &self.escapes {
            column.write(&entries, self.written_escapes)?;
            self.written_escapes += entries.len() as u64 / ESCAPE_BYTES;
        }
        self.written += values.len() as u64;
        Ok(())
    }

    /// Returns the bytes of the values from n = `from` on, and the bytes of their escapes.
    fn units(&self, from: u64, values: &[u16]) -> (Vec<u8>, Vec<u8>) {
        match self.published.width {
            Width::U8 => {
                if fault::is("cut-to-byte") {
                    // Deliberate fault, see fault.rs.
                    return (values.iter().map(|v| v.to_le_bytes()[0]).collect(), Vec::new());
                }
                let mut entries = Vec::new();
                // Escapes are few, so skip chunks of 64 values that have none.
                for (from, chunk) in (from..).step_by(64).zip(values.chunks(64)) {
                    if is_escape(chunk.iter().fold(0, |largest, &v| v.max(largest))) {
                        for (n, &v) in (from..).zip(chunk).filter(|&(_, &v)| is_escape(v)) {
                            entries.extend(n.to_le_bytes());
                            entries.extend(v.to_le_bytes());
                        }
                    }
                }
                (values.iter().map(|&v| saturated(v)).collect(), entries)
            }
            Width::U16 => (values.iter().flat_map(|v| v.to_le_bytes()).collect(), Vec::new()),
        }
    }

    /// Copies units that do not agree with the journal to quarantine files, durably, and returns the names of these
    /// files. `sequence` is that of the last record.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn quarantine(&self, sequence: u64, values: Range<u64>, escapes: Range<u64>) -> Result<Vec<String>> {
        let mut names = Vec::new();
        names.extend(self.values.quarantine(&format!("quarantine-{sequence}"), &values)?);
        if let Some(column) = &self.escapes {
            names.extend(column.quarantine(&format!("quarantine-{sequence}-escapes"), &escapes)?);
        }
        Ok(names)
    }

    /// Returns whether the entries `escapes` of the escape file are exactly the escapes of `values`, which start at n =
    /// `from`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn has_escapes(&self, from: u64, values: &[u16], escapes: Range<u64>) -> Result<bool> {
        let Some(column) = &self.escapes else { return Ok(true) };
        let entries = self.units(from, values).1;
        let fits = escapes.end - escapes.start == entries.len() as u64 / ESCAPE_BYTES;
        if !fits || column.length()? < HEADER + escapes.end * ESCAPE_BYTES {
            return Ok(false);
        }
        let mut there = vec![0; entries.len()];
        let offset = HEADER + escapes.start * ESCAPE_BYTES;
        column.file.read_exact_at(&mut there, offset).map_err(Error::io("reading", &column.path))?;
        Ok(there == entries)
    }

    /// Rewrites committed values that were altered on the disk, durably, from n = `from` on.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn restore(&self, from: u64, values: &[u16]) -> Result<()> {
        self.values.write(&self.units(from, values).0, from)?;
        self.values.sync()
    }

    /// Makes everything written durable. After an error the run must stop: a second sync would succeed without having
    /// written anything, because the kernel marks the pages clean.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sync(&self) -> Result<()> {
        if fault::is("drop-sync") {
            return Ok(()); // deliberate fault, see fault.rs
        }
        self.values.sync()?;
        match &self.escapes {
            Some(column) => column.sync(),
            None => Ok(()),
        }
    }

    /// Checks that the paths still lead to these files and that the files still hold everything written. A commit calls
    /// this before a record describes the files.
    ///
    /// # Errors
    /// [`Error::Replaced`] if a file was replaced or truncated; [`Error::Io`].
    pub fn check_unchanged(&self) -> Result<()> {
        self.values.check_unchanged(self.written)?;
        match &self.escapes {
            Some(column) => column.check_unchanged(self.written_escapes),
            None => Ok(()),
        }
    }

    /// Returns the number of values and of escapes written, committed or not.
    #[must_use]
    pub fn written(&self) -> (u64, u64) {
        (self.written, self.written_escapes)
    }

    /// Makes everything written readable and updates the headers. The journal must have a record that commits it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn publish(&mut self) -> Result<()> {
        let published = Published {
            values: self.values.map(self.written)?,
            escapes: self.escapes.as_ref().map(|column| column.map(self.written_escapes)).transpose()?,
            count: self.written,
            escape_count: self.written_escapes,
            ..self.published.clone()
        };
        self.published = published;
        self.write_headers()
    }

    /// Returns a view of the committed values.
    #[must_use]
    pub fn published(&self) -> &Published {
        &self.published
    }

    /// Rewrites the headers, even if they are correct: after a failed sync, only bytes that are written again become
    /// durable.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write_headers(&self) -> Result<()> {
        self.values.write_header(self.published.count)?;
        match &self.escapes {
            Some(column) => column.write_header(self.published.escape_count),
            None => Ok(()),
        }
    }

    /// Makes the table refuse to read these values from now on. The range consists of whole segments, or is empty.
    pub fn free(&mut self, freed: Range<u64>) {
        self.published.freed = freed;
    }

    /// Punches a hole for values that the table already refuses to read and that the journal lists as freed.
    ///
    /// # Errors
    /// [`Error::Io`].
    ///
    /// # Panics
    /// If the table does not refuse to read all of `range`.
    pub fn punch(&self, range: Range<u64>) -> Result<()> {
        let freed = &self.published.freed;
        assert!(freed.start <= range.start && range.end <= freed.end, "a hole in retained values");
        let unit = self.values.unit;
        let length = (range.end - range.start) * unit;
        punch(&self.values.file, &self.values.path, HEADER + range.start * unit, length)
    }

    /// Ends a run cleanly: truncates the files to the high-water mark, the largest number of values and of escapes ever
    /// committed ([`Journal::high_water_mark`]).
    ///
    /// [`Journal::high_water_mark`]: crate::checkpoint::journal::Journal::high_water_mark
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn close(&self, high_water_mark: (u64, u64)) -> Result<()> {
        self.values.cut(high_water_mark.0)?;
        match &self.escapes {
            Some(column) => column.cut(high_water_mark.1),
            None => Ok(()),
        }
    }

    /// Checks that the files are no longer than [`Table::close`] leaves them.
    ///
    /// # Errors
    /// [`Error::Damage`] if one is longer; [`Error::Io`].
    pub fn check_lengths(&self, high_water_mark: (u64, u64)) -> Result<()> {
        self.values.check_length(high_water_mark.0)?;
        match &self.escapes {
            Some(column) => column.check_length(high_water_mark.1),
            None => Ok(()),
        }
    }

    /// Returns the width of a value.
    #[must_use]
    pub fn width(&self) -> Width {
        self.published.width
    }

    /// Returns the path of the value file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.values.path
    }

    /// Returns the number of escapes of positions below `n`.
    pub(crate) fn escapes_below(&self, n: u64) -> u64 {
        self.published.escapes_from(n)
    }

    /// Checks that the escapes are ascending in n, that each has a value of 255 or more, and that each retained one
    /// belongs to a byte 255 of the table.
    ///
    /// # Errors
    /// [`Error::Damage`] at the first escape that fails.
    pub fn check_escapes(&self) -> Result<()> {
        self.check_some_escapes(0..self.published.escape_count)
    }

    /// [`Table::check_escapes`] for a range of escapes. Also checks that its first escape follows the one before it.
    ///
    /// # Errors
    /// [`Error::Damage`] at the first escape that fails, or if the range exceeds the committed escapes.
    pub fn check_some_escapes(&self, range: Range<u64>) -> Result<()> {
        let Some(column) = &self.escapes else { return Ok(()) };
        let published = &self.published;
        let damage = |i: u64, what: String| {
            Err(Error::Damage { path: column.path.clone(), offset: HEADER + i * ESCAPE_BYTES, what })
        };
        if range.start > range.end || range.end > published.escape_count {
            let what = format!("the journal describes the escapes {}..{}, which do not exist", range.start, range.end);
            return damage(published.escape_count, what);
        }
        let mut least = range.start.checked_sub(1).map_or(0, |before| published.escape(before).0.saturating_add(1));
        for i in range {
            let (n, v) = published.escape(i);
            let byte = usize::try_from(n).ok().and_then(|n| data(&published.values).get(n));
            let fits = published.freed.contains(&n) || byte == Some(&SATURATED);
            if n < least || !is_escape(v) || !fits {
                return damage(i, format!("the escape ({n}, {v}) contradicts the table or the escape before it"));
            }
            least = n.saturating_add(1);
        }
        Ok(())
    }
}

/// Returns the type of a value as NumPy writes it, and its length in bytes.
fn value_type(width: Width) -> (&'static str, u64) {
    let descr = match width {
        Width::U8 => "'|u1'",
        Width::U16 => "'<u2'",
    };
    (descr, width.bytes())
}

/// Returns the committed bytes after the header.
fn data(map: &Bytes) -> &[u8] {
    &map[index(HEADER)..]
}

impl Published {
    /// Returns the i-th escape, (n, G(n)).
    fn escape(&self, i: u64) -> (u64, u16) {
        let data = self.escapes.as_deref().map_or(&[][..], data);
        let entry = &data[index(i * ESCAPE_BYTES)..][..index(ESCAPE_BYTES)];
        let (n, v) = entry.split_at(8);
        (u64::from_le_bytes(n.try_into().expect("eight bytes")), u16::from_le_bytes(v.try_into().expect("two bytes")))
    }

    /// Replaces each 255 in `out`, the values from n = `from` on, by the whole value; `bytes` are the bytes of these
    /// values in the table.
    ///
    /// # Errors
    /// [`Error::Damage`] unless exactly the saturated bytes have an escape of 255 or more.
    fn replace_saturated(&self, from: u64, bytes: &[u8], out: &mut [u16]) -> Result<()> {
        let saturated = bytes.iter().filter(|&&byte| byte == SATURATED).count();
        let first = self.escapes_from(from);
        let mut i = first;
        while i < self.escape_count {
            let (n, v) = self.escape(i);
            let Some(at) = n.checked_sub(from).map(index).filter(|&at| at < out.len()) else { break };
            if bytes[at] != SATURATED || !is_escape(v) {
                return Err(self.bad_escapes(i, format!("the escape ({n}, {v}) contradicts the byte {}", bytes[at])));
            }
            out[at] = v;
            i += 1;
        }
        if i - first != saturated as u64 {
            let to = from + out.len() as u64;
            let what = format!("the values {from}..{to} have {saturated} bytes of 255, but {} escapes", i - first);
            return Err(self.bad_escapes(i, what));
        }
        Ok(())
    }

    fn bad_escapes(&self, i: u64, what: String) -> Error {
        Error::Damage { path: self.escapes_path.to_path_buf(), offset: HEADER + i * ESCAPE_BYTES, what }
    }

    /// Returns the index of the first escape at or after `n`.
    fn escapes_from(&self, n: u64) -> u64 {
        let (mut low, mut high) = (0, self.escape_count);
        while low < high {
            let middle = low.midpoint(high);
            if self.escape(middle).0 < n { low = middle + 1 } else { high = middle }
        }
        low
    }
}

impl Sequence for Table {
    fn len(&self) -> u64 {
        self.published.len()
    }

    fn freed(&self) -> Range<u64> {
        self.published.freed()
    }

    fn saturated_bytes(&self) -> Option<&[u8]> {
        self.published.saturated_bytes()
    }

    fn read(&self, from: u64, out: &mut [u16]) -> Result<()> {
        self.published.read(from, out)
    }
}

impl Sequence for Published {
    fn len(&self) -> u64 {
        self.count
    }

    fn freed(&self) -> Range<u64> {
        self.freed.clone()
    }

    fn saturated_bytes(&self) -> Option<&[u8]> {
        match self.width {
            Width::U8 => Some(&data(&self.values)[..index(self.count)]),
            Width::U16 => None,
        }
    }

    fn read(&self, from: u64, out: &mut [u16]) -> Result<()> {
        let to = from.saturating_add(out.len() as u64);
        self.require(from, to)?;
        let unit = index(self.width.bytes());
        let bytes = &data(&self.values)[index(from) * unit..index(to) * unit];
        match self.width {
            Width::U16 => {
                for (value, bytes) in out.iter_mut().zip(bytes.chunks_exact(2)) {
                    *value = u16::from_le_bytes([bytes[0], bytes[1]]);
                }
            }
            Width::U8 => {
                for (value, &byte) in out.iter_mut().zip(bytes) {
                    *value = u16::from(byte);
                }
                self.replace_saturated(from, bytes, out)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_hole_support_is_reported_and_the_check_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        check_holes(&Dir::at(dir.path())).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        // No hole can be punched through a file opened for reading.
        std::fs::write(dir.path().join("file"), [0; 8192]).unwrap();
        let file = Dir::at(dir.path()).open("file", Mode::Read).unwrap();
        let refused = punch(&file, &dir.path().join("file"), 4096, 4096).unwrap_err();
        let text = no_holes(dir.path(), &refused.to_string()).to_string();
        assert!(text.contains("--keep") && text.contains("freeing 4096 bytes at offset 4096"), "{text}");
    }
}

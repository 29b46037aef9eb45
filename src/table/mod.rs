//! The value table of a run: `values.npy`, and `escapes.npy` for what does not fit a byte.
//!
//! Both are NumPy files (format 1.0) with a header of exactly 4096 bytes, so that the data is page-aligned and the shape
//! can be rewritten in place. `values.npy` holds one unit for each of G(0), G(1), …: `|u1`, min(G(n), 255), or `<u2`, G(n).
//! With `|u1`, `escapes.npy` lists every n with G(n) >= 255 and its whole value, ascending, as
//! `[('n','<u8'),('v','<u2')]`. The byte saturates, so a reader of the bare file sees every value below 255 as it is,
//! the zeros above all; 255 means "look in `escapes.npy`".
//!
//! Written with `pwrite`, read through a map: a store through a map on a full disk kills the process (SIGBUS), `pwrite`
//! returns the error. Only the committed part is mapped, read-only, and a mapped file is never shrunk: reading behind its new
//! end would end the reader (SIGBUS). A run that went back therefore leaves the files as long as they were, until it has
//! passed that length again.
//!
//! The shape in a header is a convenience for other readers, brought up to date after each commit; how far the table
//! holds is said by the journal alone.
//!
//! **Holes.** A run that keeps less than everything punches holes into `values.npy`, whole segments of 2^24 values, which
//! are whole pages behind a header of one page. A hole reads as zeros, and zeros are legal values: what is freed is
//! refused by [`Table::free`] before a hole is punched. `escapes.npy` is kept whole: it takes 10 bytes for each value of
//! 255 or more (a thousandth of the table in Grundy's game, a 25th at most), and stays ascending, so that it can be searched.
//!
//! **Put aside.** Before bytes that do not agree with the journal are written over, they are copied to a file of their own,
//! `quarantine-SEQUENCE-OFFSET.bin` (`quarantine-SEQUENCE-escapes-OFFSET.bin`), durable: whatever was wrong can be looked at
//! later. SEQUENCE is that of the last record then, OFFSET where they stood.
//!
//! Invariant: [`Table::len`] values are durable and said to be so by the journal. The order is the engine's:
//! [`Table::write`], [`Table::sync`], a record in the journal, [`Table::publish`].

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

/// Bytes of the header of both files.
pub const HEADER: u64 = 4096;

/// The name of the value table in a run directory.
pub const VALUES: &str = "values.npy";

/// The name of the escapes in a run directory.
pub const ESCAPES: &str = "escapes.npy";

const ESCAPE_BYTES: u64 = 10;

/// The byte that stands for every value of 255 or more, whose whole value is an escape.
pub(crate) const SATURATED: u8 = u8::MAX;

/// The byte of a value in a table of bytes: min(`value`, 255).
pub(crate) fn saturated(value: u16) -> u8 {
    u8::try_from(value).unwrap_or(SATURATED)
}

/// Whether a table of bytes holds this value in `escapes.npy`.
pub(crate) fn is_escape(value: u16) -> bool {
    value >= u16::from(SATURATED)
}
const ESCAPE_TYPE: &str = "[('n', '<u8'), ('v', '<u2')]";

/// The header of a one-dimensional NumPy file: magic, version 1.0, length, dictionary, spaces, newline; `size` bytes.
///
/// `descr` is the type as NumPy writes it, a list or a quoted string; `size` is a multiple of 64.
///
/// # Panics
/// When the dictionary does not fit `size`, or `size` exceeds 65535.
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

/// One of the two files.
#[derive(Debug)]
struct Column {
    dir: Dir,
    name: &'static str,
    path: PathBuf,
    file: File,
    /// The type as NumPy writes it.
    descr: String,
    /// Bytes a unit.
    unit: u64,
}

impl Column {
    fn create(dir: &Dir, name: &'static str, descr: &str, unit: u64) -> Result<Column> {
        let path = dir.join(name);
        let make = |mode| {
            let file = dir.open(name, mode).map_err(Error::io("making", &path))?;
            let column = Column { dir: dir.clone(), name, path: path.clone(), file, descr: descr.into(), unit };
            column.lock()?;
            Ok(column)
        };
        let mut column = make(Mode::Make)?;
        if column.length()? > 0 {
            // Somebody may have mapped what is thrown away here. That nobody writes it, the lock says.
            column.check_name()?;
            dir.remove(name).map_err(Error::io("removing", &path))?;
            column = make(Mode::New)?;
        }
        column.write_header(0)?;
        column.file.sync_all().map_err(Error::io("syncing", &column.path))?;
        Ok(column)
    }

    fn open(dir: &Dir, name: &'static str, descr: &str, unit: u64, writable: bool) -> Result<Column> {
        let path = dir.join(name);
        let mode = if writable { Mode::Write } else { Mode::Read };
        let file = dir.open(name, mode).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => Error::Damage {
                path: path.clone(),
                offset: 0,
                what: format!(
                    "the file is missing, but the journal describes its contents; restore it from a copy, or go back to \
                     what the remaining files support with 'grundy run --dir {} --rollback'",
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

    /// The lock on the journal does not hold when another file is put in its place; nobody writes here all the same.
    fn lock(&self) -> Result<()> {
        match self.file.lock_soon().map_err(Error::io("locking", &self.path))? {
            true => Ok(()),
            false => Err(Error::Locked { path: self.dir.path().into() }),
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

    fn altered_header(&self, at: Option<usize>) -> Error {
        let what = format!(
            "not the header of a one-dimensional array of {}; 'grundy run --dir {} --rollback' writes it again, and keeps the \
             values that agree with the journal",
            self.descr,
            self.dir.path().display()
        );
        Error::Damage { path: self.path.clone(), offset: at.unwrap_or(0) as u64, what }
    }

    /// The shape in the header, which must be this program's own header to the last byte.
    fn header_shape(&self) -> Result<u64> {
        let good = npy_header(&self.descr, 0, HEADER);
        // A reader may look while the writer brings the shape up to date.
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

    /// The same for whoever is to write a new header: what stands in the place of the shape may be a mixture of two
    /// shapes, as a power cut can leave it. The journal tells how long the file is.
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

    /// Maps the first `length` units.
    fn map(&self, length: u64) -> Result<Arc<Bytes>> {
        let bytes = self.unit.checked_mul(length).and_then(|b| b.checked_add(HEADER));
        let there = self.length()?;
        let Some(bytes) = bytes.filter(|&b| b <= there) else {
            return Err(Error::Damage {
                path: self.path.clone(),
                offset: there,
                what: format!(
                    "the file ends here, but the journal says that it holds {length} units of {} bytes; restore it from a copy, \
                     or go back to what the files support with 'grundy run --dir {} --rollback'",
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

    fn write(&self, bytes: &[u8], at: u64) -> Result<()> {
        let offset = HEADER + at * self.unit;
        self.file.write_all_at(bytes, offset).map_err(|source| match source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                // A part may have been written.
                let end = offset + bytes.len() as u64;
                let needed = end - self.file.length().unwrap_or(offset).clamp(offset, end);
                // Nor is there room inside the file, where it has a hole.
                self.dir.no_room(&self.path, if needed == 0 { bytes.len() as u64 } else { needed })
            }
            _ => Error::io(format!("writing {} bytes at offset {offset} of", bytes.len()), &self.path)(source),
        })
    }

    fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(Error::io("syncing", &self.path))
    }

    /// Checks that the path still names this file. If it names another one, what this process writes vanishes when its
    /// descriptor closes.
    fn check_name(&self) -> Result<()> {
        if !self.file.is_named(self.name).map_err(Error::io("reading the state of", &self.path))? {
            let what = "another file was put in its place".into();
            return Err(Error::Replaced { path: self.path.clone(), what });
        }
        Ok(())
    }

    /// Checks that the path still names this file, and that the file still holds the `units` units written to it.
    fn check_unchanged(&self, units: u64) -> Result<()> {
        self.check_name()?;
        let (length, end) = (self.length()?, self.end_of(units));
        if length < end {
            let what = format!("it was cut to {length} of {end} bytes");
            return Err(Error::Replaced { path: self.path.clone(), what });
        }
        Ok(())
    }

    /// Where so many units end. A record that the run went back behind may speak of any number.
    fn end_of(&self, length: u64) -> u64 {
        length.saturating_mul(self.unit).saturating_add(HEADER)
    }

    fn check_length(&self, length: u64) -> Result<()> {
        let (there, offset) = (self.length()?, self.end_of(length));
        if there > offset {
            let what = format!("{} bytes too many for a run that was stopped cleanly", there - offset);
            return Err(Error::Damage { path: self.path.clone(), offset, what });
        }
        Ok(())
    }

    /// Copies what is there of some units to a file of its own, durable, and gives its name.
    fn quarantine(&self, name: &str, units: &Range<u64>) -> Result<Option<String>> {
        let offset = HEADER + units.start * self.unit;
        // Where the units end is what a record says that does not agree with the files.
        let end = self.length()?.min(self.end_of(units.end));
        let name = format!("{name}-{offset}.bin");
        let io = |action: &'static str| Error::io(action, self.dir.join(&name));
        // A file of that name is from a process that was killed later than here: it holds what was there at first.
        if end <= offset || self.dir.length(&name).map_err(io("reading the state of"))?.is_some() {
            return Ok(None);
        }
        let mut bytes = vec![0; index(end - offset)];
        self.file.read_exact_at(&mut bytes, offset).map_err(Error::io("reading", &self.path))?;
        self.dir.write_whole(&name, &bytes).map_err(io("writing"))?;
        Ok(Some(name))
    }

    /// Cuts what follows the first `length` units off.
    fn cut(&self, length: u64) -> Result<()> {
        let end = self.end_of(length);
        if self.length()? > end {
            self.file.set_length(end).map_err(Error::io("truncating", &self.path))?;
        }
        self.file.sync_all().map_err(Error::io("syncing", &self.path))
    }
}

/// Gives the blocks of a file back; they read as zeros then. The length stays.
fn punch(file: &File, path: &Path, offset: u64, length: u64) -> Result<()> {
    let action = || format!("freeing {length} bytes at offset {offset} of");
    file.punch(offset, length).map_err(|e| Error::io(action(), path)(e))
}

/// Finds out whether holes can be punched into files of this directory, on a scratch file.
///
/// # Errors
/// [`Error::Io`] when not.
pub fn check_holes(dir: &Dir) -> Result<()> {
    const PAGE: u64 = 4096;
    const NAME: &str = "holes.tmp";
    let path = dir.join(NAME);
    dir.remove(NAME).map_err(Error::io("removing", &path))?; // of a process that was killed just here
    let file = dir.open(NAME, Mode::New).map_err(Error::io("making", &path))?;
    dir.remove(NAME).map_err(Error::io("removing", &path))?;
    file.write_all_at(&vec![1; index(2 * PAGE)], 0).map_err(Error::io("writing", &path))?;
    punch(&file, &path, PAGE, PAGE).map_err(|error| no_holes(dir.path(), &error.to_string()))?;
    let mut bytes = vec![2; index(2 * PAGE)];
    file.read_exact_at(&mut bytes, 0).map_err(Error::io("reading", &path))?;
    let (before, hole) = bytes.split_at(index(PAGE));
    match before.iter().all(|&b| b == 1) && hole.iter().all(|&b| b == 0) {
        true => Ok(()),
        false => Err(no_holes(dir.path(), "a hole does not read as zeros")),
    }
}

fn no_holes(dir: &Path, why: &str) -> Error {
    let text = format!(
        "this file system cannot free parts of a file, as --keep needs ({why}); leave --keep out, or use another one"
    );
    Error::io("checking the file system of", dir)(std::io::Error::new(std::io::ErrorKind::Unsupported, text))
}

/// The committed part of a table, for reading; a clone is cheap and stays as it is when the run goes on.
#[derive(Clone, Debug)]
pub struct Published {
    width: Width,
    /// The files up to their committed ends, headers included.
    values: Arc<Bytes>,
    escapes: Option<Arc<Bytes>>,
    count: u64,
    escape_count: u64,
    /// What messages call the file of the escapes.
    escapes_path: Arc<Path>,
    /// Values that are refused, whether their hole is punched or not.
    freed: Range<u64>,
}

/// The value table of one run.
#[derive(Debug)]
pub struct Table {
    values: Column,
    escapes: Option<Column>,
    published: Published,
    written: u64,
    written_escapes: u64,
}

impl Table {
    /// Makes the files of an empty table; files of the same names are removed.
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

    /// Makes the file `name` ([`VALUES`] or [`ESCAPES`]) of a table that lost it: a header, and no data.
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

    /// Renames tables that hold data but have no good record, before [`Table::create_in`] makes new ones: `values.npy`
    /// becomes `quarantine-values.npy`, or `quarantine-values-2.npy` and so on, and `escapes.npy` likewise. Returns the
    /// new names.
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

    /// Opens a table of which the journal says that it holds `count` values and `escapes` escapes.
    ///
    /// # Errors
    /// [`Error::Damage`] when a file is missing, of another type or too short; [`Error::Io`].
    pub fn open(dir: &Path, width: Width, count: u64, escapes: u64, writable: bool) -> Result<Table> {
        Table::open_in(&Dir::at(dir), width, count, escapes, writable)
    }

    /// [`Table::open`] on any storage.
    ///
    /// # Errors
    /// [`Error::Damage`] when a file is missing, of another type or too short; [`Error::Io`].
    pub fn open_in(dir: &Dir, width: Width, count: u64, escapes: u64, writable: bool) -> Result<Table> {
        let (descr, unit) = value_type(width);
        let values = Column::open(dir, VALUES, descr, unit, writable)?;
        let column = match width {
            Width::U8 => Some(Column::open(dir, ESCAPES, ESCAPE_TYPE, ESCAPE_BYTES, writable)?),
            Width::U16 => None,
        };
        if writable {
            // What a killed process left in the page cache becomes durable before anything is built on it.
            for column in [Some(&values), column.as_ref()].into_iter().flatten() {
                column.file.sync_all().map_err(Error::io("syncing", &column.path))?;
            }
        }
        Table::published_at(values, column, width, count, escapes)
    }

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

    /// The shapes that the headers of the values and the escapes say.
    ///
    /// # Errors
    /// [`Error::Damage`] when a header is not this program's.
    pub fn header_shapes(&self) -> Result<(u64, u64)> {
        let escapes = self.escapes.as_ref().map_or(Ok(self.published.escape_count), Column::header_shape)?;
        Ok((self.values.header_shape()?, escapes))
    }

    /// Checks that the headers are this program's, whatever shapes they say: they may lag behind, and a power cut may have
    /// left them between two.
    ///
    /// # Errors
    /// [`Error::Damage`] when a header is not this program's.
    pub fn check_headers(&self) -> Result<()> {
        self.escapes.as_ref().map_or(Ok(()), Column::check_header)?;
        self.values.check_header()
    }

    /// Writes values after all that were written before; they are neither durable nor readable yet.
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

    /// The bytes of the values from heap `from` on, and of their escapes.
    fn units(&self, from: u64, values: &[u16]) -> (Vec<u8>, Vec<u8>) {
        match self.published.width {
            Width::U8 => {
                if fault::is("cut-to-byte") {
                    // Deliberate fault, see fault.rs.
                    return (values.iter().map(|v| v.to_le_bytes()[0]).collect(), Vec::new());
                }
                // Escapes are few: chunks of 64 values without one are skipped.
                let some = (from..)
                    .step_by(64)
                    .zip(values.chunks(64))
                    .filter(|(_, values)| is_escape(values.iter().fold(0, |largest, &v| v.max(largest))));
                let large = some.flat_map(|(from, values)| (from..).zip(values)).filter(|(_, v)| is_escape(**v));
                let entries = large.flat_map(|(n, v)| n.to_le_bytes().into_iter().chain(v.to_le_bytes()));
                (values.iter().map(|&v| saturated(v)).collect(), entries.collect())
            }
            Width::U16 => (values.iter().flat_map(|v| v.to_le_bytes()).collect(), Vec::new()),
        }
    }

    /// Copies units that do not agree with the journal to files of their own, durable, and gives the names of these;
    /// `sequence` is that of the last record.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn quarantine(&self, sequence: u64, values: Range<u64>, escapes: Range<u64>) -> Result<Vec<String>> {
        let values = self.values.quarantine(&format!("quarantine-{sequence}"), &values)?;
        let column = self.escapes.as_ref();
        let escapes =
            column.map(|column| column.quarantine(&format!("quarantine-{sequence}-escapes"), &escapes)).transpose()?;
        Ok(values.into_iter().chain(escapes.flatten()).collect())
    }

    /// Whether the escapes of the values from heap `from` on stand where they should, and are these.
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

    /// Writes committed values that were altered on the disk anew, durably, from heap `from` on.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn restore(&self, from: u64, values: &[u16]) -> Result<()> {
        self.values.write(&self.units(from, values).0, from)?;
        self.values.sync()
    }

    /// Makes durable what was written. After an error the run must stop: a second try would succeed without having
    /// written anything, since the kernel marks the pages clean.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sync(&self) -> Result<()> {
        if fault::is("drop-sync") {
            return Ok(()); // deliberate fault, see fault.rs
        }
        self.values.sync()?;
        self.escapes.as_ref().map_or(Ok(()), Column::sync)
    }

    /// Checks, before a record describes the files, that their names still lead to them and that they are as long as they
    /// were written.
    ///
    /// # Errors
    /// [`Error::Replaced`] if another file took the place of one, or one was cut; [`Error::Io`].
    pub fn check_unchanged(&self) -> Result<()> {
        self.values.check_unchanged(self.written)?;
        self.escapes.as_ref().map_or(Ok(()), |column| column.check_unchanged(self.written_escapes))
    }

    /// Values and escapes written, committed or not.
    #[must_use]
    pub fn written(&self) -> (u64, u64) {
        (self.written, self.written_escapes)
    }

    /// Makes what was written readable, here and in the headers; the journal speaks of it now.
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

    /// What can be read.
    #[must_use]
    pub fn published(&self) -> &Published {
        &self.published
    }

    /// Writes the headers anew. Also right ones: when a sync of them failed, only what is written again becomes durable.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write_headers(&self) -> Result<()> {
        self.values.write_header(self.published.count)?;
        self.escapes.as_ref().map_or(Ok(()), |escapes| escapes.write_header(self.published.escape_count))
    }

    /// Refuses to read these values from now on. The range is made of whole segments, or is empty.
    pub fn free(&mut self, freed: Range<u64>) {
        self.published.freed = freed;
    }

    /// Gives the disk space of values back that are refused already, and that the journal says are freed.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn punch(&self, range: Range<u64>) -> Result<()> {
        let freed = &self.published.freed;
        assert!(freed.start <= range.start && range.end <= freed.end, "a hole in values that are kept");
        let unit = self.values.unit;
        let length = (range.end - range.start) * unit;
        punch(&self.values.file, &self.values.path, HEADER + range.start * unit, length)
    }

    /// Ends a run cleanly: what never was committed is cut off; so many values and escapes were ([`Journal::high_water_mark`]).
    ///
    /// [`Journal::high_water_mark`]: crate::checkpoint::journal::Journal::high_water_mark
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn close(&self, high_water_mark: (u64, u64)) -> Result<()> {
        self.values.cut(high_water_mark.0)?;
        self.escapes.as_ref().map_or(Ok(()), |column| column.cut(high_water_mark.1))
    }

    /// Checks that the files are no longer than [`Table::close`] leaves them.
    ///
    /// # Errors
    /// [`Error::Damage`] when one is.
    pub fn check_lengths(&self, high_water_mark: (u64, u64)) -> Result<()> {
        self.values.check_length(high_water_mark.0)?;
        self.escapes.as_ref().map_or(Ok(()), |column| column.check_length(high_water_mark.1))
    }

    /// The width of a value.
    #[must_use]
    pub fn width(&self) -> Width {
        self.published.width
    }

    /// The path of the value file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.values.path
    }

    /// How many escapes there are of heaps below `n`.
    pub(crate) fn escapes_below(&self, n: u64) -> u64 {
        self.published.escapes_from(n)
    }

    /// Checks that the escapes are ascending, belong to the table (where its values are kept) and need to be there.
    ///
    /// # Errors
    /// [`Error::Damage`] at the first that does not.
    pub fn check_escapes(&self) -> Result<()> {
        self.check_some_escapes(0..self.published.escape_count)
    }

    /// [`Table::check_escapes`] of some of them, the first of which also follows the one before it.
    ///
    /// # Errors
    /// [`Error::Damage`] at the first that does not, or that is not there.
    pub fn check_some_escapes(&self, range: Range<u64>) -> Result<()> {
        let Some(column) = &self.escapes else { return Ok(()) };
        let there = &self.published;
        let damage = |i: u64, what: String| {
            Err(Error::Damage { path: column.path.clone(), offset: HEADER + i * ESCAPE_BYTES, what })
        };
        if range.start > range.end || range.end > there.escape_count {
            let what = format!("the journal speaks of the escapes {}..{}", range.start, range.end);
            return damage(there.escape_count, what);
        }
        let mut least = range.start.checked_sub(1).map_or(0, |before| there.escape(before).0.saturating_add(1));
        for i in range {
            let (n, v) = there.escape(i);
            let byte = usize::try_from(n).ok().and_then(|n| data(&there.values).get(n));
            let fits = there.freed.contains(&n) || byte == Some(&SATURATED);
            if n < least || !is_escape(v) || !fits {
                return damage(i, format!("the escape ({n}, {v}) contradicts the table or the escape before it"));
            }
            least = n.saturating_add(1);
        }
        Ok(())
    }
}

fn value_type(width: Width) -> (&'static str, u64) {
    let descr = match width {
        Width::U8 => "'|u1'",
        Width::U16 => "'<u2'",
    };
    (descr, width.bytes())
}

/// The committed bytes after the header.
fn data(map: &Bytes) -> &[u8] {
    &map[index(HEADER)..]
}

impl Published {
    /// The i-th escape (n, G(n)).
    fn escape(&self, i: u64) -> (u64, u16) {
        let data = self.escapes.as_deref().map_or(&[][..], data);
        let entry = &data[index(i * ESCAPE_BYTES)..][..index(ESCAPE_BYTES)];
        let (n, v) = entry.split_at(8);
        (u64::from_le_bytes(n.try_into().expect("eight")), u16::from_le_bytes(v.try_into().expect("two")))
    }

    /// Replaces each 255 among the values from `from` on by the whole value; `bytes` are those of the table.
    ///
    /// # Errors
    /// [`Error::Damage`] unless exactly the saturated bytes have an escape of 255 or more.
    fn put_escapes(&self, from: u64, bytes: &[u8], out: &mut [u16]) -> Result<()> {
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
            let what = format!("the values {from}..{to} have {saturated} bytes 255, but {} escapes", i - first);
            return Err(self.bad_escapes(i, what));
        }
        Ok(())
    }

    fn bad_escapes(&self, i: u64, what: String) -> Error {
        Error::Damage { path: self.escapes_path.to_path_buf(), offset: HEADER + i * ESCAPE_BYTES, what }
    }

    /// The first escape at or after heap `n`.
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
                self.put_escapes(from, bytes, out)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_without_holes_is_told_and_the_check_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        check_holes(&Dir::at(dir.path())).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        // A file opened for reading alone cannot have holes.
        std::fs::write(dir.path().join("file"), [0; 8192]).unwrap();
        let file = Dir::at(dir.path()).open("file", Mode::Read).unwrap();
        let refused = punch(&file, &dir.path().join("file"), 4096, 4096).unwrap_err();
        let told = no_holes(dir.path(), &refused.to_string()).to_string();
        assert!(told.contains("--keep") && told.contains("freeing 4096 bytes at offset 4096"), "{told}");
    }
}

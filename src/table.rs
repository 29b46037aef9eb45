//! The value table of a run: `values.npy`, and `escapes.npy` for what does not fit a byte.
//!
//! Both are NumPy files (format 1.0) with a header of exactly 4096 bytes, so that the data is page-aligned and the shape
//! can be rewritten in place. `values.npy` holds one unit for each of G(0), G(1), …: `|u1`, the low byte, or `<u2`. With
//! `|u1`, `escapes.npy` lists every n with G(n) > 255 and its whole value, ascending, as `[('n','<u8'),('v','<u2')]`.
//!
//! Written with `pwrite`, read through a map: a store through a map on a full disk kills the process (SIGBUS), `pwrite`
//! returns the error. Only the committed part is mapped, read-only, and a mapped file is never shrunk.
//!
//! The shape in a header is a convenience for other readers, brought up to date after each commit; how far the table
//! holds is said by the journal alone.
//!
//! **Holes.** A run that keeps less than everything punches holes into `values.npy`, whole segments of 2^24 values, which
//! are whole pages behind a header of one page. A hole reads as zeros, and zeros are legal values: what is freed is
//! refused by [`Table::free`] before a hole is punched. `escapes.npy` is kept whole: it takes 10 bytes for each value above
//! 255 (a thousandth of the table in Grundy's game, a 25th at most), and stays ascending, so that it can be searched.
//!
//! Invariant: [`Table::len`] values are durable and said to be so by the journal. The order is the engine's:
//! [`Table::write`], [`Table::sync`], a record in the journal, [`Table::publish`].

#![allow(unsafe_code)] // one place: mapping a file

use crate::definition::Sequence;
use crate::error::{Error, Result};
use crate::journal::Width;
use crate::nimber::index;
use memmap2::{Mmap, MmapOptions};
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of the header of both files.
pub const HEADER: u64 = 4096;

/// The name of the value table in a run directory.
pub const VALUES: &str = "values.npy";

/// The name of the escapes in a run directory.
pub const ESCAPES: &str = "escapes.npy";

const ESCAPE_BYTES: u64 = 10;
const ESCAPE_TYPE: &str = "[('n', '<u8'), ('v', '<u2')]";

/// The flag that makes opening a symbolic link fail.
pub(crate) fn no_follow() -> i32 {
    rustix::fs::OFlags::NOFOLLOW.bits().cast_signed()
}

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
    path: PathBuf,
    file: File,
    /// The type as NumPy writes it.
    descr: String,
    /// Bytes a unit.
    unit: u64,
}

impl Column {
    fn create(path: PathBuf, descr: String, unit: u64) -> Result<Column> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).custom_flags(no_follow());
        let file = options.open(&path).map_err(Error::io("making", &path))?;
        let column = Column { path, file, descr, unit };
        column.write_header(0)?;
        column.file.sync_all().map_err(Error::io("syncing", &column.path))?;
        Ok(column)
    }

    fn open(path: PathBuf, descr: String, unit: u64, writable: bool) -> Result<Column> {
        let mut options = OpenOptions::new();
        options.read(true).write(writable);
        if writable {
            options.custom_flags(no_follow());
        }
        let file = options.open(&path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => Error::Damage {
                path: path.clone(),
                offset: 0,
                what: "the file is missing, but the journal speaks of it".into(),
            },
            _ => Error::io("opening", &path)(source),
        })?;
        Ok(Column { path, file, descr, unit })
    }

    fn write_header(&self, length: u64) -> Result<()> {
        let header = npy_header(&self.descr, length, HEADER);
        self.file.write_all_at(&header, 0).map_err(Error::io("writing the header of", &self.path))
    }

    /// The shape in the header, which must be this program's own header to the last byte.
    fn header_shape(&self) -> Result<u64> {
        let damaged = |what: String| Error::Damage { path: self.path.clone(), offset: 0, what };
        let mut header = vec![0; index(HEADER)];
        // A reader may look while the writer brings the shape up to date.
        for last_try in [false, false, true] {
            match self.file.read_exact_at(&mut header, 0) {
                Ok(()) => {}
                Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
                    return Err(damaged("the file is shorter than its header of 4096 bytes".into()));
                }
                Err(e) => return Err(Error::io("reading the header of", &self.path)(e)),
            }
            let text = String::from_utf8_lossy(&header);
            let shape = text.split_once("'shape': (").and_then(|(_, rest)| rest.split_once(','));
            let shape = shape.and_then(|(digits, _)| digits.parse::<u64>().ok());
            match shape {
                Some(shape) if npy_header(&self.descr, shape, HEADER) == header => return Ok(shape),
                _ if last_try => {}
                _ => std::thread::yield_now(),
            }
        }
        let good = npy_header(&self.descr, 0, HEADER);
        let at = header.iter().zip(&good).position(|(a, b)| a != b).unwrap_or(0) as u64;
        Err(Error::Damage {
            path: self.path.clone(),
            offset: at,
            what: format!("not the header of a one-dimensional array of {}", self.descr),
        })
    }

    /// Maps the first `length` units.
    fn map(&self, length: u64) -> Result<Arc<Mmap>> {
        let bytes = self.unit.checked_mul(length).and_then(|b| b.checked_add(HEADER));
        let there = self.file.metadata().map_err(Error::io("reading the state of", &self.path))?.len();
        let Some(bytes) = bytes.filter(|&b| b <= there) else {
            return Err(Error::Damage {
                path: self.path.clone(),
                offset: there,
                what: format!(
                    "the file ends here, but the journal says that it holds {length} units of {} bytes",
                    self.unit
                ),
            });
        };
        let bytes = usize::try_from(bytes).map_err(|_| Error::Memory { what: "the map of the table", bytes })?;
        // SAFETY: the map is read-only, covers committed bytes only, which no process of this program changes (but for
        // holes in what is freed, which the owner of the map refuses to read before they are punched, and another process
        // finds refused once it has read: `engine::View`), and the file is not shrunk below them while it is mapped. Another program that truncates the file would make reads
        // fail with SIGBUS; that cannot be excluded by any reader of files and loses no data.
        let map = unsafe { MmapOptions::new().len(bytes).map(&self.file) };
        map.map(Arc::new).map_err(Error::io("mapping", &self.path))
    }

    fn write(&self, bytes: &[u8], at: u64) -> Result<()> {
        let offset = HEADER + at * self.unit;
        self.file.write_all_at(bytes, offset).map_err(|source| match source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Error::NoRoom {
                path: self.path.clone(),
                needed: bytes.len() as u64,
                available: available(&self.path).unwrap_or(0).min(bytes.len() as u64),
                fits: None,
                keep: None,
            },
            _ => Error::io(format!("writing {} bytes at offset {offset} of", bytes.len()), &self.path)(source),
        })
    }

    fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(Error::io("syncing", &self.path))
    }

    fn check_length(&self, length: u64) -> Result<()> {
        let there = self.file.metadata().map_err(Error::io("reading the state of", &self.path))?.len();
        let offset = HEADER + length * self.unit;
        if there > offset {
            let what = format!("{} bytes too many for a run that was stopped cleanly", there - offset);
            return Err(Error::Damage { path: self.path.clone(), offset, what });
        }
        Ok(())
    }

    /// Cuts the file to its shape, after which nothing but the committed part is left.
    fn cut(&self, length: u64) -> Result<()> {
        self.file.set_len(HEADER + length * self.unit).map_err(Error::io("truncating", &self.path))?;
        self.file.sync_all().map_err(Error::io("syncing", &self.path))
    }
}

/// Bytes free for this process on the file system of `path`.
///
/// # Errors
/// [`Error::Io`].
pub fn available(path: &Path) -> Result<u64> {
    let stat = rustix::fs::statvfs(path).map_err(|e| Error::io("reading the free space of", path)(e.into()))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Gives the blocks of a file back; they read as zeros then. The length stays.
fn punch(file: &File, path: &Path, offset: u64, length: u64) -> Result<()> {
    fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, length)
        .map_err(|e| Error::io(format!("freeing {length} bytes at offset {offset} of"), path)(e.into()))
}

/// Finds out whether holes can be punched into files of this directory, on a scratch file.
///
/// # Errors
/// [`Error::Io`] when not.
pub fn check_holes(dir: &Path) -> Result<()> {
    const PAGE: u64 = 4096;
    let path = dir.join("holes.tmp");
    let _ = std::fs::remove_file(&path); // of a process that was killed just here
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).custom_flags(no_follow());
    let file = options.open(&path).map_err(Error::io("making", &path))?;
    std::fs::remove_file(&path).map_err(Error::io("removing", &path))?;
    file.write_all_at(&vec![1; index(2 * PAGE)], 0).map_err(Error::io("writing", &path))?;
    punch(&file, &path, PAGE, PAGE).map_err(|error| no_holes(dir, &error.to_string()))?;
    let mut bytes = vec![2; index(2 * PAGE)];
    file.read_exact_at(&mut bytes, 0).map_err(Error::io("reading", &path))?;
    let (before, hole) = bytes.split_at(index(PAGE));
    match before.iter().all(|&b| b == 1) && hole.iter().all(|&b| b == 0) {
        true => Ok(()),
        false => Err(no_holes(dir, "a hole does not read as zeros")),
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
    values: Arc<Mmap>,
    escapes: Option<Arc<Mmap>>,
    count: u64,
    escape_count: u64,
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
    /// Makes the files of an empty table; files of the same names are emptied.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create(dir: &Path, width: Width) -> Result<Table> {
        let (descr, unit) = value_type(width);
        let values = Column::create(dir.join(VALUES), descr, unit)?;
        let escapes = match width {
            Width::U8 => Some(Column::create(dir.join(ESCAPES), ESCAPE_TYPE.into(), ESCAPE_BYTES)?),
            Width::U16 => None,
        };
        File::open(dir).and_then(|d| d.sync_all()).map_err(Error::io("syncing", dir))?;
        Table::published_at(values, escapes, width, 0, 0)
    }

    /// Opens a table of which the journal says that it holds `count` values and `escapes` escapes.
    ///
    /// # Errors
    /// [`Error::Damage`] when a file is missing, of another type or too short; [`Error::Io`].
    pub fn open(dir: &Path, width: Width, count: u64, escapes: u64, writable: bool) -> Result<Table> {
        let (descr, unit) = value_type(width);
        let values = Column::open(dir.join(VALUES), descr, unit, writable)?;
        let column = match width {
            Width::U8 => Some(Column::open(dir.join(ESCAPES), ESCAPE_TYPE.into(), ESCAPE_BYTES, writable)?),
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

    /// Writes values after all that were written before; they are neither durable nor readable yet.
    ///
    /// # Errors
    /// [`Error::NoRoom`] on a full disk, [`Error::Io`].
    pub fn write(&mut self, values: &[u16]) -> Result<()> {
        let bytes: Vec<u8> = match self.published.width {
            Width::U8 => values.iter().map(|v| v.to_le_bytes()[0]).collect(),
            Width::U16 => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        };
        self.values.write(&bytes, self.written)?;
        if let Some(column) = &self.escapes {
            let large = (self.written..).zip(values).filter(|(_, v)| **v > 255);
            let entries: Vec<u8> =
                large.flat_map(|(n, v)| n.to_le_bytes().into_iter().chain(v.to_le_bytes())).collect();
            column.write(&entries, self.written_escapes)?;
            self.written_escapes += entries.len() as u64 / ESCAPE_BYTES;
        }
        self.written += values.len() as u64;
        Ok(())
    }

    /// Makes durable what was written. After an error the run must stop: a second try would succeed without having
    /// written anything, since the kernel marks the pages clean.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sync(&self) -> Result<()> {
        self.values.sync()?;
        self.escapes.as_ref().map_or(Ok(()), Column::sync)
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

    /// Writes the headers anew.
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

    /// Ends a run cleanly: the files are cut to their shapes.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn close(&self) -> Result<()> {
        self.values.cut(self.published.count)?;
        self.escapes.as_ref().map_or(Ok(()), |column| column.cut(self.published.escape_count))
    }

    /// Checks that the files end where their committed parts end.
    ///
    /// # Errors
    /// [`Error::Damage`] when one is longer.
    pub fn check_lengths(&self) -> Result<()> {
        self.values.check_length(self.published.count)?;
        self.escapes.as_ref().map_or(Ok(()), |escapes| escapes.check_length(self.published.escape_count))
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

    /// Checks that the escapes are ascending, belong to the table (where its values are kept) and need to be there.
    ///
    /// # Errors
    /// [`Error::Damage`] at the first that does not.
    pub fn check_escapes(&self) -> Result<()> {
        let Some(column) = &self.escapes else { return Ok(()) };
        let mut least = 0;
        let there = &self.published;
        for i in 0..there.escape_count {
            let (n, v) = there.escape(i);
            let low = usize::try_from(n).ok().and_then(|n| data(&there.values).get(n));
            let fits = there.freed.contains(&n) || low == Some(&v.to_le_bytes()[0]);
            if n < least || v <= 255 || !fits {
                let what = format!("the escape ({n}, {v}) contradicts the table or the escape before it");
                return Err(Error::Damage { path: column.path.clone(), offset: HEADER + i * ESCAPE_BYTES, what });
            }
            least = n + 1;
        }
        Ok(())
    }
}

fn value_type(width: Width) -> (String, u64) {
    let descr = match width {
        Width::U8 => "'|u1'",
        Width::U16 => "'<u2'",
    };
    (descr.into(), width.bytes())
}

/// The committed bytes after the header.
fn data(map: &Mmap) -> &[u8] {
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
                for i in self.escapes_from(from)..self.escape_count {
                    let (n, v) = self.escape(i);
                    match n.checked_sub(from).and_then(|at| out.get_mut(index(at))) {
                        Some(value) => *value = v,
                        None => break,
                    }
                }
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
        check_holes(dir.path()).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        // A file that cannot have holes.
        let null = OpenOptions::new().write(true).open("/dev/null").unwrap();
        let refused = punch(&null, Path::new("/dev/null"), 4096, 4096).unwrap_err();
        let told = no_holes(dir.path(), &refused.to_string()).to_string();
        assert!(told.contains("--keep") && told.contains("freeing 4096 bytes at offset 4096"), "{told}");
    }
}

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

mod column;
pub mod digest;
mod escapes;
mod files;
mod holes;
mod npy;
mod published;
mod width;

pub use escapes::ESCAPES;
pub(crate) use escapes::{is_escape, saturated};
pub(crate) use files::{length_of, unused_name};
pub use holes::check_holes;
pub use npy::{HEADER, npy_header};
pub use published::Published;
pub use width::Width;

use crate::error::{Error, Result};
use crate::fault;
use crate::storage::{Dir, Mode};
use crate::theory::definition::Sequence;
use column::Column;
use escapes::{ESCAPE_BYTES, ESCAPE_TYPE};
use std::ops::Range;
use std::path::Path;

/// The name of the value table in a run directory.
pub const VALUES: &str = "values.npy";

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
        Table::of(values, escapes, 0, 0)
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
        Table::of(values, column, count, escapes)
    }

    /// Returns the table of two open files whose first `count` values and `escape_count` escapes are committed.
    fn of(values: Column, escapes: Option<Column>, count: u64, escape_count: u64) -> Result<Table> {
        let published = Published::of(&values, escapes.as_ref(), (count, escape_count), 0..0)?;
        Ok(Table { values, escapes, published, written: count, written_escapes: escape_count })
    }

    /// Returns the shapes in the headers of the values and of the escapes.
    ///
    /// # Errors
    /// [`Error::Damage`] if a header is not as this program writes it; [`Error::Io`].
    pub fn header_shapes(&self) -> Result<(u64, u64)> {
        let escapes = match &self.escapes {
            Some(column) => column.header_shape()?,
            None => self.published.escape_count(),
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
        match self.width() {
            Width::U8 => escapes::encode(from, values),
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
        let written = (self.written, self.written_escapes);
        self.published = Published::of(&self.values, self.escapes.as_ref(), written, self.published.freed())?;
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
        self.values.write_header(self.published.len())?;
        match &self.escapes {
            Some(column) => column.write_header(self.published.escape_count()),
            None => Ok(()),
        }
    }

    /// Makes the table refuse to read these values from now on. The range consists of whole segments, or is empty.
    pub fn free(&mut self, freed: Range<u64>) {
        self.published.free(freed);
    }

    /// Punches a hole for values that the table already refuses to read and that the journal lists as freed.
    ///
    /// # Errors
    /// [`Error::Io`].
    ///
    /// # Panics
    /// If the table does not refuse to read all of `range`.
    pub fn punch(&self, range: Range<u64>) -> Result<()> {
        let freed = self.published.freed();
        assert!(freed.start <= range.start && range.end <= freed.end, "a hole in retained values");
        let unit = self.values.unit;
        let length = (range.end - range.start) * unit;
        holes::punch(&self.values.file, &self.values.path, HEADER + range.start * unit, length)
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
        self.published.width()
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
        self.check_some_escapes(0..self.published.escape_count())
    }

    /// [`Table::check_escapes`] for a range of escapes. Also checks that its first escape follows the one before it.
    ///
    /// # Errors
    /// [`Error::Damage`] at the first escape that fails, or if the range exceeds the committed escapes.
    pub fn check_some_escapes(&self, range: Range<u64>) -> Result<()> {
        self.published.check_escapes(range)
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

//! A table that this process writes.

use super::column::Column;
use super::escapes::{self, ESCAPE_BYTES, ESCAPES};
use super::npy::HEADER;
use super::published::Published;
use super::reader::TableReader;
use super::width::Width;
use super::{Extent, VALUES, escape_layout, holes, length_of, unused_name, value_layout};
use crate::error::{Error, Result};
use crate::fault;
use crate::storage::{Dir, Mode};
use crate::theory::definition::Sequence;
use std::ops::{Deref, DerefMut, Range};

/// The value table of a run, for reading and writing. It holds the locks on its files, and reads as a [`TableReader`].
#[derive(Debug)]
pub(crate) struct Table {
    reader: TableReader,
    /// Number of values and of escapes written, committed or not.
    written: Extent,
}

/// Values as the files of a table hold them.
#[derive(Debug)]
pub(crate) struct Stored {
    /// The positions of the values.
    values: Range<u64>,
    /// The numbers of their escapes.
    pub(crate) escapes: Range<u64>,
    bytes: Vec<u8>,
    entries: Vec<u8>,
}

impl Deref for Table {
    type Target = TableReader;

    fn deref(&self) -> &TableReader {
        &self.reader
    }
}

impl DerefMut for Table {
    fn deref_mut(&mut self) -> &mut TableReader {
        &mut self.reader
    }
}

impl Table {
    /// Creates the files of an empty table; existing files of these names are removed.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn create(dir: &Dir, width: Width) -> Result<Table> {
        let values = Column::create(dir, value_layout(width))?;
        let escapes = match escape_layout(width) {
            Some(layout) => Some(Column::create(dir, layout)?),
            None => None,
        };
        dir.sync().map_err(Error::io("syncing", dir.path()))?;
        let reader = TableReader::of(values, escapes, Extent::default())?;
        Ok(Table { reader, written: Extent::default() })
    }

    /// Creates the file `name` ([`VALUES`] or [`ESCAPES`]) of a table that lost it, with a header and no data.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn make_empty(dir: &Dir, width: Width, name: &str) -> Result<()> {
        let layout = match escape_layout(width) {
            Some(escapes) if name == ESCAPES => escapes,
            _ => value_layout(width),
        };
        Column::create(dir, layout)?;
        dir.sync().map_err(Error::io("syncing", dir.path()))
    }

    /// Renames table files that have data but no good record, before [`Table::create`] creates new ones: `values.npy`
    /// becomes `quarantine-values.npy`, or `quarantine-values-2.npy` and so on, and `escapes.npy` likewise. Returns the
    /// new names.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn quarantine_files_without_record(dir: &Dir) -> Result<Vec<String>> {
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

    /// Opens and locks a table that has `committed` values and escapes according to the journal.
    ///
    /// # Errors
    /// [`Error::Damage`] if a file is missing or too short; [`Error::Locked`] if another process has a file locked;
    /// [`Error::Io`].
    pub(crate) fn open(dir: &Dir, width: Width, committed: Extent) -> Result<Table> {
        let values = Column::open(dir, value_layout(width), Mode::Write)?;
        let escapes = match escape_layout(width) {
            Some(layout) => Some(Column::open(dir, layout, Mode::Write)?),
            None => None,
        };
        // A killed process may have left data in the page cache only: make it durable before relying on it.
        values.sync_all()?;
        if let Some(column) = &escapes {
            column.sync_all()?;
        }
        let reader = TableReader::of(values, escapes, committed)?;
        Ok(Table { reader, written: committed })
    }

    /// Writes values after all values that were written before. They are neither durable nor readable yet.
    ///
    /// # Errors
    /// [`Error::NoRoom`] on a full disk, [`Error::Io`].
    pub(crate) fn write(&mut self, values: &[u16]) -> Result<()> {
        let (bytes, entries) = self.units(self.written.values, values);
        self.reader.values.write(&bytes, self.written.values)?;
        if let Some(column) = &self.reader.escapes {
            column.write(&entries, self.written.escapes)?;
            self.written.escapes += entries.len() as u64 / ESCAPE_BYTES;
        }
        self.written.values += values.len() as u64;
        Ok(())
    }

    /// Returns the bytes of the values from n = `from` on, and the bytes of their escapes.
    fn units(&self, from: u64, values: &[u16]) -> (Vec<u8>, Vec<u8>) {
        match self.width() {
            Width::U8 => escapes::encode(from, values),
            Width::U16 => (values.iter().flat_map(|v| v.to_le_bytes()).collect(), Vec::new()),
        }
    }

    /// Makes everything written durable. After an error the run must stop: a second sync would succeed without having
    /// written anything, because the kernel marks the pages clean.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn sync(&self) -> Result<()> {
        if fault::is("drop-sync") {
            return Ok(()); // deliberate fault, see fault.rs
        }
        for column in self.columns() {
            column.sync()?;
        }
        Ok(())
    }

    /// Checks that the paths still lead to these files and that the files still hold everything written. A commit calls
    /// this before a record describes the files.
    ///
    /// # Errors
    /// [`Error::Replaced`] if a file was replaced or truncated; [`Error::Io`].
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        for (column, units) in self.columns_with(self.written) {
            column.check_unchanged(units)?;
        }
        Ok(())
    }

    /// Returns the number of values and of escapes written, committed or not.
    pub(crate) fn written(&self) -> Extent {
        self.written
    }

    /// Makes everything written readable and updates the headers. The journal must have a record that commits it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn publish(&mut self) -> Result<()> {
        let TableReader { values, escapes, published } = &mut self.reader;
        *published = Published::of(values, escapes.as_ref(), self.written, published.discarded())?;
        self.write_headers()
    }

    /// Rewrites the headers, even if they are correct: after a failed sync, only bytes that are written again become
    /// durable.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn write_headers(&self) -> Result<()> {
        for (column, units) in self.columns_with(self.published().extent()) {
            column.write_header(units)?;
        }
        Ok(())
    }

    /// Punches a hole for values that the table already refuses to read and that the journal lists as discarded.
    ///
    /// # Errors
    /// [`Error::Io`].
    ///
    /// # Panics
    /// If the table does not refuse to read all of `range`.
    pub(crate) fn punch(&self, range: Range<u64>) -> Result<()> {
        let discarded = self.discarded();
        assert!(discarded.start <= range.start && range.end <= discarded.end, "a hole in retained values");
        let column = &self.reader.values;
        let offset = HEADER + range.start * column.layout.unit;
        let length = (range.end - range.start) * column.layout.unit;
        holes::punch(&column.file, &column.path, offset, length)
    }

    /// Truncates the files to the high-water mark, the largest number of values and of escapes ever committed
    /// ([`Journal::high_water_mark`]), and syncs them.
    ///
    /// [`Journal::high_water_mark`]: crate::checkpoint::journal::Journal::high_water_mark
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn cut(&self, high_water_mark: Extent) -> Result<()> {
        for (column, units) in self.columns_with(high_water_mark) {
            column.cut(units)?;
        }
        Ok(())
    }

    /// Copies units that do not agree with the journal to quarantine files, durably, and returns the names of the new
    /// files. `sequence` is that of the last record. Units past the end of a file are left out.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn quarantine(&self, sequence: u64, values: Range<u64>, escapes: Range<u64>) -> Result<Vec<String>> {
        let mut names = Vec::new();
        names.extend(self.reader.values.quarantine(&format!("quarantine-{sequence}"), &values)?);
        if let Some(column) = &self.reader.escapes {
            names.extend(column.quarantine(&format!("quarantine-{sequence}-escapes"), &escapes)?);
        }
        Ok(names)
    }

    /// Returns the units of values from n = `from` on, whose first escape is entry number `escape` of the escape file.
    pub(crate) fn stored(&self, from: u64, values: &[u16], escape: u64) -> Stored {
        let (bytes, entries) = self.units(from, values);
        let escapes = escape..escape + entries.len() as u64 / ESCAPE_BYTES;
        Stored { values: from..from + values.len() as u64, escapes, bytes, entries }
    }

    /// Compares the files with these units. Returns the range of the values if a byte of theirs differs, else an empty
    /// range, and the same for the escapes.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn altered(&self, stored: &Stored) -> Result<(Range<u64>, Range<u64>)> {
        let Stored { values, escapes, bytes, entries } = stored;
        let is_altered = |column: &Column, first, expected| Ok(!column.holds(expected, first)?);
        let altered = |range: &Range<u64>, is: bool| if is { range.clone() } else { range.start..range.start };
        let of_values = is_altered(&self.reader.values, values.start, bytes)?;
        let of_escapes = match &self.reader.escapes {
            Some(column) => is_altered(column, escapes.start, entries)?,
            None => false,
        };
        Ok((altered(values, of_values), altered(escapes, of_escapes)))
    }

    /// Rewrites what [`Table::altered`] has returned, durably.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn restore(&self, stored: &Stored, (values, escapes): (Range<u64>, Range<u64>)) -> Result<()> {
        if !values.is_empty() {
            self.reader.values.write(&stored.bytes, values.start)?;
        }
        if let Some(column) = self.reader.escapes.as_ref().filter(|_| !escapes.is_empty()) {
            column.write(&stored.entries, escapes.start)?;
        }
        self.sync()
    }
}

impl Sequence for Table {
    fn len(&self) -> u64 {
        self.reader.len()
    }

    fn discarded(&self) -> Range<u64> {
        self.reader.discarded()
    }

    fn saturated_bytes(&self) -> Option<&[u8]> {
        self.reader.saturated_bytes()
    }

    fn read(&self, from: u64, out: &mut [u16]) -> Result<()> {
        self.reader.read(from, out)
    }
}

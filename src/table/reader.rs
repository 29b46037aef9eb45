//! A table opened for reading.

use super::column::Column;
use super::published::Published;
use super::width::Width;
use super::{Extent, escape_layout, value_layout};
use crate::error::Result;
use crate::storage::{Dir, Mode};
use crate::theory::definition::Sequence;
use std::ops::Range;
use std::path::Path;

/// The value table of a run, for reading: the committed values, and checks of the files.
#[derive(Debug)]
pub struct TableReader {
    pub(super) values: Column,
    pub(super) escapes: Option<Column>,
    pub(super) published: Published,
}

impl TableReader {
    /// Opens a table that has `committed` values and escapes according to the journal. No lock is needed.
    ///
    /// # Errors
    /// [`Error::Damage`](crate::Error::Damage) if a file is missing or too short; [`Error::Io`](crate::Error::Io).
    pub fn open(dir: &Dir, width: Width, committed: Extent) -> Result<TableReader> {
        let values = Column::open(dir, value_layout(width), Mode::Read)?;
        let escapes = match escape_layout(width) {
            Some(layout) => Some(Column::open(dir, layout, Mode::Read)?),
            None => None,
        };
        TableReader::of(values, escapes, committed)
    }

    /// Returns the table of two open files with these committed values and escapes.
    pub(super) fn of(values: Column, escapes: Option<Column>, committed: Extent) -> Result<TableReader> {
        let published = Published::of(&values, escapes.as_ref(), committed, 0..0)?;
        Ok(TableReader { values, escapes, published })
    }

    /// Returns the files: the values, and the escapes if the table has them.
    pub(super) fn columns(&self) -> impl Iterator<Item = &Column> {
        std::iter::once(&self.values).chain(&self.escapes)
    }

    /// Returns the files with the number of units that `extent` gives each.
    pub(super) fn columns_with(&self, extent: Extent) -> impl Iterator<Item = (&Column, u64)> {
        self.columns().zip([extent.values, extent.escapes])
    }

    /// Returns the shapes in the headers of the values and of the escapes.
    ///
    /// # Errors
    /// [`Error::Damage`](crate::Error::Damage) if a header is not as this program writes it;
    /// [`Error::Io`](crate::Error::Io).
    pub fn header_shapes(&self) -> Result<Extent> {
        let escapes = match &self.escapes {
            Some(column) => column.header_shape()?,
            None => self.published.extent().escapes,
        };
        let values = self.values.header_shape()?;
        Ok(Extent { values, escapes })
    }

    /// Checks that the headers are as this program writes them, except for the shapes: these may be out of date, or a
    /// mixture of two shapes after a power cut.
    ///
    /// # Errors
    /// [`Error::Damage`](crate::Error::Damage) if a header differs elsewhere; [`Error::Io`](crate::Error::Io).
    pub(crate) fn check_headers(&self) -> Result<()> {
        if let Some(column) = &self.escapes {
            column.check_header()?;
        }
        self.values.check_header()
    }

    /// Checks that the files are no longer than a clean stop leaves them: they end at the high-water mark
    /// ([`Contents::high_water_mark`](crate::checkpoint::journal::Contents::high_water_mark)).
    ///
    /// # Errors
    /// [`Error::Damage`](crate::Error::Damage) if one is longer; [`Error::Io`](crate::Error::Io).
    pub fn check_lengths(&self, high_water_mark: Extent) -> Result<()> {
        for (column, units) in self.columns_with(high_water_mark) {
            column.check_length(units)?;
        }
        Ok(())
    }

    /// Checks that the escapes are ascending in n, that each has a value of 255 or more, and that each retained one
    /// belongs to a byte 255 of the table.
    ///
    /// # Errors
    /// [`Error::Damage`](crate::Error::Damage) at the first escape that fails.
    pub fn check_escapes(&self) -> Result<()> {
        self.check_some_escapes(0..self.published.extent().escapes)
    }

    /// [`TableReader::check_escapes`] for a range of escapes. Also checks that its first escape follows the one before
    /// it.
    ///
    /// # Errors
    /// [`Error::Damage`](crate::Error::Damage) at the first escape that fails, or if the range exceeds the committed
    /// escapes.
    pub fn check_some_escapes(&self, range: Range<u64>) -> Result<()> {
        self.published.check_escapes(range)
    }

    /// Makes the table refuse to read these values from now on. The range consists of whole segments, or is empty.
    pub(crate) fn refuse_discarded(&mut self, discarded: Range<u64>) {
        self.published.refuse_discarded(discarded);
    }

    /// Returns a view of the committed values.
    #[must_use]
    pub fn published(&self) -> &Published {
        &self.published
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
}

impl Sequence for TableReader {
    fn len(&self) -> u64 {
        self.published.len()
    }

    fn discarded(&self) -> Range<u64> {
        self.published.discarded()
    }

    fn saturated_bytes(&self) -> Option<&[u8]> {
        self.published.saturated_bytes()
    }

    fn read(&self, from: u64, out: &mut [u16]) -> Result<()> {
        self.published.read(from, out)
    }
}

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
//! whole pages after a header of one page. A hole reads as zeros, and zero is a legal value, so
//! `Table::refuse_discarded` makes the table refuse to read the discarded values before their hole is punched.
//! `escapes.npy` is never punched: it takes 10 bytes for each value of 255 or more, and it stays ascending, so that it
//! can be searched.
//!
//! **Quarantine.** Before a repair overwrites bytes that do not agree with the journal, it copies them, durably, to
//! `quarantine-SEQUENCE-OFFSET.bin` or `quarantine-SEQUENCE-escapes-OFFSET.bin`, so that the damage can be examined
//! later. SEQUENCE is that of the last record at that time, OFFSET the position of the bytes in the damaged file.
//!
//! **Who may write.** A [`TableReader`] opens the files for reading only, without a lock. A `Table`, which only this
//! crate can use, locks both files and is the one that writes.
//!
//! Invariant: `Table::len` values are durable, and the journal has a record that commits them. A commit
//! ([`crate::checkpoint`]) keeps this order: `Table::write`, `Table::sync`, a record in the journal,
//! `Table::publish`.

mod column;
pub mod digest;
mod escapes;
pub(crate) mod files;
mod holes;
mod npy;
mod published;
mod reader;
#[cfg(test)]
mod tests;
mod width;
mod writer;

pub(crate) use escapes::ESCAPE_BYTES;
pub use escapes::ESCAPES;
pub(crate) use escapes::{is_escape, saturated};
pub(crate) use files::{length_of, unused_name};
pub(crate) use holes::check_holes;
pub use npy::{HEADER, npy_header};
pub use published::Published;
pub use reader::TableReader;
pub use width::Width;
pub(crate) use writer::Table;

use column::Layout;

/// The name of the value table in a run directory.
pub const VALUES: &str = "values.npy";

/// Number of values and of escapes in a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Number of values.
    pub values: u64,
    /// Number of escapes; 0 in a table of two bytes.
    pub escapes: u64,
}

impl Extent {
    /// Returns the larger number of values and the larger number of escapes.
    #[must_use]
    pub fn max(self, other: Extent) -> Extent {
        Extent { values: self.values.max(other.values), escapes: self.escapes.max(other.escapes) }
    }
}

/// Returns the layout of the value file.
fn value_layout(width: Width) -> Layout {
    let descr = match width {
        Width::U8 => "'|u1'",
        Width::U16 => "'<u2'",
    };
    Layout { name: VALUES, descr, unit: width.bytes() }
}

/// Returns the layout of the escape file; `None` if a table of this width has none.
fn escape_layout(width: Width) -> Option<Layout> {
    match width {
        Width::U8 => Some(Layout { name: ESCAPES, descr: escapes::ESCAPE_TYPE, unit: escapes::ESCAPE_BYTES }),
        Width::U16 => None,
    }
}

//! The committed part of a table, read-only.

use super::Extent;
use super::column::Column;
use super::escapes::{self, ESCAPE_BYTES, ESCAPES, SATURATED, is_escape};
use super::npy::HEADER;
use super::width::Width;
use crate::error::{Damage, Error, Result};
use crate::storage::Bytes;
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A read-only view of the committed part of a table. Cloning is cheap, and later commits do not change a clone.
#[derive(Clone, Debug)]
pub struct Published {
    width: Width,
    /// The value file up to its committed end, header included.
    values: Arc<Bytes>,
    /// The escape file up to its committed end, header included.
    escapes: Option<Arc<Bytes>>,
    /// Number of committed values and escapes.
    extent: Extent,
    /// The path of the escape file, for messages.
    escapes_path: Arc<Path>,
    /// The discarded values, which cannot be read, whether their hole is punched or not.
    discarded: Range<u64>,
}

/// Returns the committed bytes after the header.
fn data(map: &Bytes) -> &[u8] {
    &map[index(HEADER)..]
}

impl Published {
    /// Maps the first `extent` of two open files. The values `discarded` cannot be read.
    pub(super) fn of(
        values: &Column,
        escapes: Option<&Column>,
        extent: Extent,
        discarded: Range<u64>,
    ) -> Result<Published> {
        let value_map = values.map(extent.values)?;
        let escape_map = match escapes {
            Some(column) => Some(column.map(extent.escapes)?),
            None => None,
        };
        Ok(Published {
            width: if escapes.is_some() { Width::U8 } else { Width::U16 },
            values: value_map,
            escapes: escape_map,
            extent,
            escapes_path: values.dir.join(ESCAPES).into(),
            discarded,
        })
    }

    /// Returns the width of a value.
    pub(super) fn width(&self) -> Width {
        self.width
    }

    /// Returns the number of committed values and escapes.
    pub(super) fn extent(&self) -> Extent {
        self.extent
    }

    /// Returns a view of the first `extent`; `None` if there are fewer values or escapes.
    pub(crate) fn first(&self, extent: Extent) -> Option<Published> {
        let is_there = extent.values <= self.extent.values && extent.escapes <= self.extent.escapes;
        is_there.then(|| Published { extent, ..self.clone() })
    }

    /// Refuses to read these values from now on.
    pub(super) fn refuse_discarded(&mut self, discarded: Range<u64>) {
        self.discarded = discarded;
    }

    /// Returns the i-th escape, (n, G(n)).
    fn escape(&self, i: u64) -> (u64, u16) {
        let data = self.escapes.as_deref().map_or(&[][..], data);
        escapes::decode(&data[index(i * ESCAPE_BYTES)..][..index(ESCAPE_BYTES)])
    }

    /// Replaces each 255 in `out`, the values from n = `from` on, by the whole value; `bytes` are the bytes of these
    /// values in the table.
    ///
    /// # Errors
    /// [`Error::Damage`] unless exactly the saturated bytes have an escape of 255 or more.
    fn replace_saturated(&self, from: u64, bytes: &[u8], out: &mut [u16]) -> Result<()> {
        let saturated = memchr::memchr_iter(SATURATED, bytes).count();
        let first = self.escapes_from(from);
        let mut i = first;
        while i < self.extent.escapes {
            let (n, v) = self.escape(i);
            let Some(at) = n.checked_sub(from).map(index).filter(|&at| at < out.len()) else { break };
            if bytes[at] != SATURATED || !is_escape(v) {
                return Err(self.bad_escapes(i, Damage::Escape { n, value: v, byte: Some(bytes[at]) }));
            }
            out[at] = v;
            i += 1;
        }
        if i - first != saturated as u64 {
            let to = from + out.len() as u64;
            let bytes = saturated as u64;
            return Err(self.bad_escapes(i, Damage::EscapeCount { from, to, bytes, escapes: i - first }));
        }
        Ok(())
    }

    fn bad_escapes(&self, i: u64, damage: Damage) -> Error {
        Error::Damage { path: self.escapes_path.to_path_buf(), offset: HEADER + i * ESCAPE_BYTES, damage }
    }

    /// Checks that the escapes of a range are ascending in n, that each has a value of 255 or more and belongs to a
    /// byte 255 or a discarded value, and that the first follows the escape before it.
    pub(crate) fn check_escapes(&self, range: Range<u64>) -> Result<()> {
        if self.escapes.is_none() {
            return Ok(());
        }
        if range.start > range.end || range.end > self.extent.escapes {
            let damage = Damage::NoEscapes { from: range.start, to: range.end };
            return Err(self.bad_escapes(self.extent.escapes, damage));
        }
        let mut least = range.start.checked_sub(1).map_or(0, |before| self.escape(before).0.saturating_add(1));
        for i in range {
            let (n, v) = self.escape(i);
            let byte = usize::try_from(n).ok().and_then(|n| data(&self.values).get(n));
            let fits = self.discarded.contains(&n) || byte == Some(&SATURATED);
            if n < least || !is_escape(v) || !fits {
                return Err(self.bad_escapes(i, Damage::Escape { n, value: v, byte: None }));
            }
            least = n.saturating_add(1);
        }
        Ok(())
    }

    /// Returns the number of escapes of positions below `n`: the index of the first escape at or after `n`.
    pub(crate) fn escapes_from(&self, n: u64) -> u64 {
        let (mut low, mut high) = (0, self.extent.escapes);
        while low < high {
            let middle = low.midpoint(high);
            if self.escape(middle).0 < n { low = middle + 1 } else { high = middle }
        }
        low
    }
}

impl Sequence for Published {
    fn len(&self) -> u64 {
        self.extent.values
    }

    fn discarded(&self) -> Range<u64> {
        self.discarded.clone()
    }

    fn saturated_bytes(&self) -> Option<&[u8]> {
        match self.width {
            Width::U8 => Some(&data(&self.values)[..index(self.extent.values)]),
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

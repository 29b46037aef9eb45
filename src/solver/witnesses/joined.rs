//! All values before one n as a single sequence: the last ones from memory, the earlier ones from the table.

use crate::error::{Error, Result};
use crate::solver::window::Window;
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use std::ops::Range;

/// The values before `end`: the last ones from a window, the earlier ones from `past`.
pub(in crate::solver) struct Joined<'a> {
    pub(in crate::solver) past: &'a dyn Sequence,
    pub(in crate::solver) recent: &'a Window<u16>,
    pub(in crate::solver) end: u64,
}

impl Sequence for Joined<'_> {
    fn len(&self) -> u64 {
        self.end
    }

    fn discarded(&self) -> Range<u64> {
        self.past.discarded()
    }

    fn read(&self, from: u64, out: &mut [u16]) -> Result<()> {
        let to = from + out.len() as u64;
        if to > self.end {
            return Err(Error::Range { from, to, count: self.end });
        }
        let split = to.min(self.recent.start().max(from));
        let (old, new) = out.split_at_mut(index(split - from));
        if !old.is_empty() {
            self.past.read(from, old)?;
        }
        if !new.is_empty() {
            new.copy_from_slice(self.recent.slice(split, to));
        }
        Ok(())
    }
}

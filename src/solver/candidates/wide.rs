//! Candidates on 16-bit values, for games with values that have no byte code: exact, and slower.

use super::CandidateStream;
use crate::error::{Error, Result};
use crate::theory::nimber::index;

impl CandidateStream {
    /// Computes the candidates up to `to` on 16-bit values.
    ///
    /// # Errors
    /// [`Error::ValueTooLarge`].
    pub(super) fn wide_piece(&mut self, to: u64) -> Result<()> {
        while self.end() < to {
            let value = self.wide_value(self.end())?;
            self.windows.push(value);
        }
        Ok(())
    }

    /// The least value common at `n` that is not an option.
    fn wide_value(&self, n: u64) -> Result<u16> {
        // A fresh set for each n (8 KiB), because memory that lives longer would need a check.
        let mut seen = [0u64; 1 << 10];
        let mut see = |v: u16| seen[usize::from(v / 64)] |= 1 << (v % 64);
        let window = self.windows.wide_values();
        let values = window.items();
        let start = window.start();
        for lookup in self.lookups.list() {
            // A rare other part needs no case of its own: its option is rare, and the answer is a common value.
            let other = n.saturating_sub(lookup.offset);
            if other > 0 && other.abs_diff(lookup.part) >= lookup.min_difference {
                see(lookup.value ^ values[index(other - start)]);
            }
        }
        for option in self.rule.single_options(n, |m| window.get(m)) {
            see(option);
        }
        let open = |&v: &u16| !self.space.is_rare(v, n) && seen[usize::from(v / 64)] >> (v % 64) & 1 == 0;
        (0..=u16::MAX).find(open).ok_or(Error::ValueTooLarge { n })
    }
}

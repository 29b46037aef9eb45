//! Counts the exceptions of a period p: the n of a range for which G(n) and G(n + p) differ.

use crate::error::{Error, Result};
use crate::period::LISTED;

/// Differences between the values of a range and those p later.
#[derive(Default)]
pub(super) struct Differences {
    pub(super) count: u64,
    /// The first positions, at most [`LISTED`].
    pub(super) first: Vec<u64>,
    /// The last position, and the two values there.
    last: Option<(u64, u16, u16)>,
}

impl Differences {
    /// Compares the values from `from` on with those p later.
    pub(super) fn compare(&mut self, from: u64, values: &[u16], later: &[u16]) {
        for (n, (&value, &later)) in (from..).zip(values.iter().zip(later)).filter(|(_, (a, b))| a != b) {
            self.count += 1;
            self.last = Some((n, value, later));
            if self.first.len() < LISTED {
                self.first.push(n);
            }
        }
    }

    /// The least n from which on the compared values do not differ.
    pub(super) fn preperiod(&self) -> u64 {
        self.last.map_or(0, |(n, ..)| n + 1)
    }

    /// Checks that no value from `from` on differs from that `p` later, because `p` is proved to be a period from there
    /// on.
    ///
    /// # Errors
    /// [`Error::Differs`], with the later n.
    pub(super) fn require_none_from(&self, from: u64, p: u64) -> Result<()> {
        match self.last {
            Some((n, value, later)) if n >= from => Err(Error::Differs {
                n: n + p,
                value: later.into(),
                again: value.into(),
                how: "the period that was proved".into(),
            }),
            _ => Ok(()),
        }
    }
}

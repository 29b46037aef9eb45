//! The first values of the sequence, which the search position by position covers as smaller parts.

use crate::error::{Error, Result};
use crate::solver::codes::byte_of;
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::sparse_space::SparseSpace;

/// Number of parts 0, 1, … that the search position by position covers as smaller parts. No benchmark measures it.
pub(in crate::solver) const HEAD_PARTS: u64 = 1 << 16;

/// The values of the parts below [`HEAD_PARTS`] and their codes. Both lists are reversed, so that the two parts of a
/// split run side by side.
pub(in crate::solver) struct Head {
    space: SparseSpace,
    /// G(a) at index [`HEAD_PARTS`] - 1 - a.
    values: Vec<u16>,
    /// The codes of `values`, at the same indices.
    codes: Vec<u8>,
}

impl Head {
    /// The head of the sequence `past`.
    ///
    /// # Errors
    /// Any error of reading `past`.
    pub(in crate::solver) fn reading(space: SparseSpace, past: &dyn Sequence) -> Result<Head> {
        let mut values = vec![0; index(HEAD_PARTS)];
        past.read(0, &mut values[..index(past.len().min(HEAD_PARTS))])?;
        values.reverse();
        let codes = (0..HEAD_PARTS).rev().zip(&values).map(|(a, &v)| byte_of(space, a, v)).collect();
        Ok(Head { space, values, codes })
    }

    /// Enters the values from position `end` on, as many as the head holds.
    pub(in crate::solver) fn push(&mut self, end: u64, values: &[u16]) {
        for (n, &value) in (end..HEAD_PARTS).zip(values) {
            self.values[index(HEAD_PARTS - 1 - n)] = value;
            self.codes[index(HEAD_PARTS - 1 - n)] = byte_of(self.space, n, value);
        }
    }

    /// Compares the head with the first values of `past`.
    ///
    /// # Errors
    /// [`Error::Flipped`] at the first difference, and any error of reading `past`.
    pub(in crate::solver) fn agrees_with(&self, past: &dyn Sequence) -> Result<()> {
        let mut first = vec![0; index(past.len().min(HEAD_PARTS))];
        past.read(0, &mut first)?;
        let ours = self.values.iter().rev().zip(self.codes.iter().rev());
        let is_same = |(a, (&value, ours)): (u64, (&u16, _))| ours == (&value, &byte_of(self.space, a, value));
        match (0..).zip(first.iter().zip(ours)).find(|&part| !is_same(part)) {
            None => Ok(()),
            Some((a, _)) => Err(Error::Flipped { what: "the head of the table", from: a, to: a + 1 }),
        }
    }

    /// G(a) for a below [`HEAD_PARTS`].
    pub(in crate::solver) fn value(&self, a: u64) -> u16 {
        self.values[index(HEAD_PARTS - 1 - a)]
    }

    /// The values of the parts `from..to`, descending.
    #[inline]
    pub(in crate::solver) fn values(&self, from: u64, to: u64) -> &[u16] {
        &self.values[index(HEAD_PARTS - to)..index(HEAD_PARTS - from)]
    }

    /// The codes of the parts `from..to`, descending. Rare parts have [`POISON`](crate::solver::codes::POISON).
    #[inline]
    pub(in crate::solver) fn codes(&self, from: u64, to: u64) -> &[u8] {
        &self.codes[index(HEAD_PARTS - to)..index(HEAD_PARTS - from)]
    }

    /// Flips a bit of one of the first `end` values, or of its code.
    #[cfg(test)]
    pub(in crate::solver) fn flip(&mut self, draw: u64, bit: u8, end: u64) {
        let i = index(HEAD_PARTS - 1 - draw / 2 % end.min(HEAD_PARTS));
        if draw.is_multiple_of(2) {
            self.values[i] ^= u16::from(bit);
        } else {
            self.codes[i] ^= bit;
        }
    }
}

//! Statistics of a sequence: rare positions and largest value.

use crate::error::Result;
use crate::theory::definition::{Sequence, scan_in_parallel};
use crate::theory::sparse_space::SparseSpace;
use std::ops::Range;

/// The rare positions under one space, and the largest value, of some values of a sequence: of all values, or of the
/// discarded ones ([`Sequence::discarded`]).
///
/// Without a sparse space every position is rare, and the list of them would be as long as the sequence; so the list is
/// empty then. (A commit record states the *number* of rare positions without a space as well. The type that counts
/// them, in `checkpoint::summary`, therefore holds numbers instead of a list.)
///
/// ```
/// use grundy::theory::{definition, sparse_space::SparseSpace, stats::SequenceStats};
///
/// let kayles = "kayles".parse()?;
/// let values = definition::values(&kayles, 1000)?;
/// let space = SparseSpace::new(&kayles, 0xf, 0).expect("the rule admits this mask");
/// let stats = SequenceStats::of(&values, space, &SequenceStats::default())?;
/// assert_eq!((stats.last_rare(), stats.max_value, stats.max_at), (70, 8, 27));
/// # Ok::<(), grundy::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SequenceStats {
    /// The rare positions n, ascending, with G(n); empty under [`SparseSpace::NONE`].
    pub rare_positions: Vec<(u64, u16)>,
    /// The largest value; 0 if there are no values.
    pub max_value: u16,
    /// The least n with G(n) = `max_value`; 0 if `max_value` is 0.
    pub max_at: u64,
}

impl SequenceStats {
    /// Collects the statistics of `past` under `space`: scans the retained values in parallel, and takes those of the
    /// discarded values from `freed`.
    ///
    /// # Errors
    /// Any error of reading `past`.
    pub fn of(past: &dyn Sequence, space: SparseSpace, freed: &SequenceStats) -> Result<SequenceStats> {
        let hole = past.discarded();
        let see = |stats: &mut SequenceStats, from: u64, values: &[u16]| stats.see(space, from, values);
        let scan = |range| scan_in_parallel(past, range, see, SequenceStats::and);
        // The last values come first: a run that limits its retained values discards the first of them next.
        let tail = scan(hole.end..past.len())?;
        Ok(scan(0..hole.start)?.and(freed.clone()).and(tail))
    }

    /// Adds the next values, which start at n = `from`.
    pub fn see(&mut self, space: SparseSpace, from: u64, values: &[u16]) {
        if space != SparseSpace::NONE {
            self.rare_positions.extend(space.rare_positions(from, values));
        }
        let largest = values.iter().copied().max().unwrap_or(0);
        if largest > self.max_value {
            self.max_value = largest;
            self.max_at = from + values.iter().position(|&v| v == largest).unwrap_or(0) as u64;
        }
    }

    /// Returns the statistics of these values and of `later` ones together.
    #[must_use]
    pub fn and(mut self, later: SequenceStats) -> SequenceStats {
        self.rare_positions.extend(later.rare_positions);
        if later.max_value > self.max_value {
            (self.max_value, self.max_at) = (later.max_value, later.max_at);
        }
        self
    }

    /// Returns the last rare position; 0 if there is none.
    #[must_use]
    pub fn last_rare(&self) -> u64 {
        self.rare_positions.last().map_or(0, |rare| rare.0)
    }

    /// Returns the rare positions in `range`, with their values.
    #[must_use]
    pub fn rare_positions_in(&self, range: &Range<u64>) -> &[(u64, u16)] {
        let until = |n: u64| self.rare_positions.partition_point(|rare| rare.0 < n);
        let first = until(range.start);
        &self.rare_positions[first..until(range.end).max(first)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theory::definition;
    use crate::theory::nimber::index;
    use crate::theory::rule::Rule;

    /// Values whose middle is discarded.
    struct Holed<'a> {
        values: &'a [u16],
        hole: Range<u64>,
    }

    impl Sequence for Holed<'_> {
        fn len(&self) -> u64 {
            self.values.len() as u64
        }

        fn discarded(&self) -> Range<u64> {
            self.hole.clone()
        }

        fn read(&self, from: u64, out: &mut [u16]) -> Result<()> {
            self.require(from, from + out.len() as u64)?;
            self.values.read(from, out)
        }
    }

    #[test]
    fn statistics_equal_the_definition_with_and_without_discarded_values() {
        let rule: Rule = "grundy".parse().unwrap();
        let space = SparseSpace::new(&rule, 0x1fe, 0).unwrap();
        let values = definition::values(&rule, 4000).unwrap();
        let max_value = *values.iter().max().unwrap();
        let expected = SequenceStats {
            rare_positions: (0..).zip(values.iter().copied()).filter(|&(n, v)| space.is_rare(v, n)).collect(),
            max_value,
            max_at: values.iter().position(|&v| v == max_value).unwrap() as u64,
        };
        let none = SequenceStats::default();
        assert_eq!(SequenceStats::of(&values, space, &none).unwrap(), expected);
        for hole in [0..1, 100..101, 100..3999, 1000..4000] {
            let mut freed = SequenceStats::default();
            freed.see(space, hole.start, &values[index(hole.start)..index(hole.end)]);
            assert_eq!(freed.rare_positions, expected.rare_positions_in(&hole));
            let holed = Holed { values: &values, hole };
            assert_eq!(SequenceStats::of(&holed, space, &freed).unwrap(), expected);
        }
        let unlisted = SequenceStats { rare_positions: Vec::new(), ..expected.clone() };
        assert_eq!(SequenceStats::of(&values, SparseSpace::NONE, &none).unwrap(), unlisted);
    }
}

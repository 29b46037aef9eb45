//! Facts about a sequence that people publish: the positions of a value, the running maxima, the first position and the
//! number of each value, the rare positions.
//!
//! [`rows`] answers one [`Question`] in one pass. It reads pieces of 2^18 values and examines several in parallel; what
//! depends on the order of the pieces is decided afterwards, one piece after the other, and reads a piece again only if
//! it has a new maximum or a new value.
//!
//! Invariant: the rows are those that the definition of the question gives for the values of the range, whatever the
//! number of threads.

use crate::error::{Error, Result};
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::sparse_space::SparseSpace;
use rayon::prelude::*;
use std::ops::{Range, RangeInclusive};

/// Number of values that one task reads: half a megabyte.
const PIECE: u64 = 1 << 18;

/// Number of pieces in memory at a time, per thread.
const PIECES_PER_THREAD: u64 = 4;

/// Number of different values.
const VALUES: usize = 1 << 16;

/// What to find in a range of positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// The positions of these values.
    Values(RangeInclusive<u16>),
    /// The positions whose value is greater than all values before it in the range.
    Records,
    /// The first position of each value up to the largest one in the range.
    First,
    /// The number of positions of each value that occurs.
    Histogram,
    /// The rare positions of a sparse space.
    Rare(SparseSpace),
}

/// One fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// G(n) is `value`.
    At {
        /// The position.
        n: u64,
        /// Its value.
        value: u16,
    },
    /// The first n with G(n) = `value`; `None` if the value does not occur.
    First {
        /// The value.
        value: u16,
        /// The position.
        n: Option<u64>,
    },
    /// The number of n with G(n) = `value`, at least 1.
    Count {
        /// The value.
        value: u16,
        /// The number.
        count: u64,
    },
}

/// What one piece contributes, whatever comes before it.
enum Part {
    Positions(Vec<(u64, u16)>),
    Largest(u16),
    Counts(Vec<u32>),
}

/// What the pieces so far contributed.
struct Answer<'a> {
    question: &'a Question,
    /// The number of each value, for [`Question::Histogram`] and [`Question::First`].
    counts: Vec<u64>,
    first: Vec<Option<u64>>,
    /// The largest value so far.
    largest: Option<u16>,
}

/// Calls `row` with the answer to `question` for the values of a range, in ascending order of n or of the value. Calls
/// `progress` with the position reached, after some million values; its error ends the search.
///
/// Threads: those of the current rayon pool.
///
/// # Errors
/// [`Error::Range`] and [`Error::Discarded`] as for [`Sequence::require`], any error of reading the values, and the
/// first error of `row` or `progress`.
///
/// ```
/// use grundy::find::{Question, Row, rows};
///
/// let kayles = grundy::values(&"kayles".parse()?, 1000)?;
/// let mut found = Vec::new();
/// let keep = |row| { found.push(row); Ok::<(), grundy::Error>(()) };
/// rows(&kayles, 1..1000, &Question::Records, |_| Ok(()), keep)?;
/// assert_eq!(found[..2], [Row::At { n: 1, value: 1 }, Row::At { n: 2, value: 2 }]);
/// assert_eq!(found.last(), Some(&Row::At { n: 27, value: 8 }));
/// # Ok::<(), grundy::Error>(())
/// ```
pub fn rows<E: From<Error>>(
    values: &dyn Sequence,
    range: Range<u64>,
    question: &Question,
    mut progress: impl FnMut(u64) -> std::result::Result<(), E>,
    mut row: impl FnMut(Row) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    values.require(range.start, range.end)?;
    let mut answer = Answer { question, counts: vec![0; VALUES], first: vec![None; VALUES], largest: None };
    let at_once = PIECE * PIECES_PER_THREAD * rayon::current_num_threads() as u64;
    let mut from = range.start;
    while from < range.end {
        let end = range.end.min(from + at_once);
        let starts: Vec<u64> = (from..end).step_by(index(PIECE)).collect();
        let read = |&start: &u64| -> Result<(u64, Vec<u16>, Part)> {
            let mut piece = vec![0; index(PIECE.min(end - start))];
            values.read(start, &mut piece)?;
            let part = question.part(start, &piece);
            Ok((start, piece, part))
        };
        let pieces: Vec<_> = starts.par_iter().map(read).collect::<Result<_>>()?;
        for (start, piece, part) in pieces {
            answer.add(start, &piece, part, &mut row)?;
        }
        from = end;
        progress(from)?;
    }
    answer.finish(&mut row)
}

impl Question {
    fn part(&self, start: u64, piece: &[u16]) -> Part {
        match self {
            Question::Values(wanted) => {
                let found = (start..).zip(piece.iter().copied()).filter(|(_, value)| wanted.contains(value));
                // Most pieces have none, which a loop without a branch per value decides.
                let any = piece.iter().fold(false, |any, value| any | wanted.contains(value));
                Part::Positions(if any { found.collect() } else { Vec::new() })
            }
            Question::Records => Part::Largest(piece.iter().copied().max().unwrap_or(0)),
            Question::First | Question::Histogram => {
                let mut counts = vec![0; VALUES];
                piece.iter().for_each(|&value| counts[usize::from(value)] += 1);
                Part::Counts(counts)
            }
            Question::Rare(space) => Part::Positions(space.rare_positions(start, piece).collect()),
        }
    }
}

impl Answer<'_> {
    /// Adds a piece, which follows all pieces before it, and calls `row` with the rows that are certain.
    fn add<E>(
        &mut self,
        start: u64,
        piece: &[u16],
        part: Part,
        row: &mut impl FnMut(Row) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        match part {
            Part::Positions(positions) => positions.into_iter().try_for_each(|(n, value)| row(Row::At { n, value })),
            Part::Largest(largest) if self.largest.is_none_or(|before| largest > before) => {
                for (n, &value) in (start..).zip(piece) {
                    if self.largest.is_none_or(|before| value > before) {
                        self.largest = Some(value);
                        row(Row::At { n, value })?;
                    }
                }
                Ok(())
            }
            Part::Largest(_) => Ok(()),
            Part::Counts(counts) => {
                let is_new = |value: usize| counts[value] > 0 && self.counts[value] == 0;
                if *self.question == Question::First && (0..VALUES).any(is_new) {
                    for (n, &value) in (start..).zip(piece) {
                        self.first[usize::from(value)].get_or_insert(n);
                    }
                }
                self.counts.iter_mut().zip(counts).for_each(|(all, count)| *all += u64::from(count));
                Ok(())
            }
        }
    }

    /// Calls `row` with the rows that are certain only at the end.
    fn finish<E>(self, row: &mut impl FnMut(Row) -> std::result::Result<(), E>) -> std::result::Result<(), E> {
        let Some(last) = self.counts.iter().rposition(|&count| count > 0) else { return Ok(()) };
        for (value, (&count, n)) in (0..=u16::MAX).zip(self.counts.iter().zip(self.first)).take(last + 1) {
            match self.question {
                Question::First => row(Row::First { value, n })?,
                _ if count > 0 => row(Row::Count { value, count })?,
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::Random;

    fn found(values: &[u16], range: Range<u64>, question: &Question) -> Vec<Row> {
        let mut list = Vec::new();
        rows(
            &values,
            range,
            question,
            |_| Ok(()),
            |row| {
                list.push(row);
                Ok::<(), Error>(())
            },
        )
        .unwrap();
        list
    }

    /// The answer by the definition of the question: a look at each value, and at all before it.
    fn expected(values: &[u16], range: Range<u64>, question: &Question) -> Vec<Row> {
        let list: Vec<(u64, u16)> = range.map(|n| (n, values[index(n)])).collect();
        let at = |keep: &dyn Fn(usize) -> bool| {
            let kept = (0..list.len()).filter(|&i| keep(i));
            kept.map(|i| Row::At { n: list[i].0, value: list[i].1 }).collect()
        };
        let largest = list.iter().map(|&(_, value)| value).max();
        let all = (0..=u16::MAX).take_while(|&value| Some(value) <= largest && largest.is_some());
        let of = |value: u16| list.iter().filter(move |&&(_, other)| other == value);
        match question {
            Question::Values(wanted) => at(&|i| wanted.contains(&list[i].1)),
            Question::Records => at(&|i| list[..i].iter().all(|&(_, before)| before < list[i].1)),
            Question::First => all.map(|value| Row::First { value, n: of(value).next().map(|&(n, _)| n) }).collect(),
            Question::Histogram => {
                let counts = all.map(|value| Row::Count { value, count: of(value).count() as u64 });
                counts.filter(|row| !matches!(row, Row::Count { count: 0, .. })).collect()
            }
            Question::Rare(space) => at(&|i| space.is_rare(list[i].1, list[i].0)),
        }
    }

    #[test]
    fn rows_are_those_of_the_definition() {
        let random = &mut Random::new("find");
        let space = SparseSpace::new(&"kayles".parse().unwrap(), 0xf, 0).unwrap();
        for bound in [1, 2, 40, 700] {
            let values: Vec<u16> = (0..2000).map(|_| random.below(bound) as u16).collect();
            let questions = [
                Question::Values(0..=0),
                Question::Values(3..=30),
                Question::Records,
                Question::First,
                Question::Histogram,
                Question::Rare(space),
            ];
            for question in questions {
                let start = random.below(1000);
                for range in [0..2000, start..start, start..start + 1 + random.below(1000)] {
                    let right = expected(&values, range.clone(), &question);
                    assert_eq!(found(&values, range.clone(), &question), right, "{question:?} in {range:?}");
                }
            }
        }
    }

    /// The answer for several pieces is put together from those of the pieces.
    #[test]
    fn pieces_are_joined_in_their_order() {
        let length = 3 * PIECE + 17;
        let value = |n: u64| if n.is_multiple_of(PIECE - 5) { (n / 100_000) as u16 + 7 } else { (n % 7) as u16 };
        let values: Vec<u16> = (0..length).map(value).collect();
        let marked: Vec<Row> = (0..length).step_by(index(PIECE - 5)).map(|n| Row::At { n, value: value(n) }).collect();
        assert_eq!(found(&values, 0..length, &Question::Values(7..=u16::MAX)), marked);
        assert_eq!(found(&values, 0..length, &Question::Records), marked);
        let first = found(&values, 0..length, &Question::First);
        assert!(marked.iter().all(|row| match *row {
            Row::At { n, value } => first.contains(&Row::First { value, n: Some(n) }),
            _ => false,
        }));
        let count = |row: &Row| if let Row::Count { count, .. } = row { *count } else { 0 };
        let counts = found(&values, 0..length, &Question::Histogram);
        assert_eq!((counts.iter().map(count).sum::<u64>(), counts.len()), (length, 7 + marked.len()));
    }

    #[test]
    fn errors_of_the_callbacks_end_the_search() {
        let values = vec![0; 10];
        let fail = || Err(Error::ValueTooLarge { n: 1 });
        assert!(rows(&values, 0..10, &Question::Records, |_| Ok(()), |_| fail()).is_err());
        assert!(rows(&values, 0..10, &Question::Records, |_| fail(), |_| Ok(())).is_err());
        assert!(rows(&values, 0..11, &Question::Records, |_| Ok::<(), Error>(()), |_| Ok(())).is_err());
    }
}

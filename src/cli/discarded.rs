//! Answers questions about a run that has discarded values from its discard summary.
//!
//! The summary has the rare positions, the running maxima and the number of each value of the discarded range. They
//! decide the rare positions in any range, and the records and counts if the range contains all discarded values. They
//! decide first positions if, in addition, each discarded value occurs earlier. They decide the positions of a value if
//! that value is not among the discarded ones.

use anyhow::Result;
use grundy::checkpoint::summary::DiscardSummary;
use grundy::find::{Question, Row, rows};
use grundy::run::RunReader;
use grundy::theory::definition::Sequence;
use std::collections::BTreeMap;
use std::ops::Range;

/// What receives the position reached, and what receives a row.
pub(super) type See<'a> = &'a mut dyn FnMut(u64) -> Result<()>;
pub(super) type Give<'a> = &'a mut dyn FnMut(Row) -> Result<()>;

/// The rows of a range of a run.
///
/// # Errors
/// [`grundy::Error::Range`] if the range is not part of the run, [`grundy::Error::Discarded`] if the answer depends on
/// discarded values beyond the summary, and the errors of reading and of `see` and `row`.
pub(super) fn rows_of_run(
    view: &RunReader,
    range: Range<u64>,
    question: &Question,
    (see, row): (See<'_>, Give<'_>),
) -> Result<()> {
    let whole = view.discarded();
    let gone = whole.start.clamp(range.start, range.end)..whole.end.clamp(range.start, range.end);
    let summary = if gone.is_empty() { None } else { view.discard_summary()? };
    let Some(summary) = summary else { return rows(view, range, question, see, row) };
    let asked = Asked { view, question, summary, is_whole: gone == whole, before: range.start..gone.start };
    asked.rows(gone, range, see, row)
}

/// A question about a range that includes discarded values.
struct Asked<'a> {
    view: &'a RunReader,
    question: &'a Question,
    summary: DiscardSummary,
    /// Whether the range contains all discarded values.
    is_whole: bool,
    /// The part of the range before the discarded values.
    before: Range<u64>,
}

impl Asked<'_> {
    fn rows(&self, gone: Range<u64>, range: Range<u64>, see: See<'_>, row: Give<'_>) -> Result<()> {
        let Asked { view, question, summary, is_whole, before } = self;
        let after = gone.end..range.end;
        let is_discarded = |value: u16| summary.histogram.get(usize::from(value)).is_some_and(|&count| count > 0);
        match question {
            Question::Rare(_) => {
                rows(*view, before.clone(), question, &mut *see, &mut *row)?;
                let inside = summary.rares.iter().filter(|(n, _)| gone.contains(n));
                inside.copied().try_for_each(|(n, value)| row(Row::At { n, value }))?;
                rows(*view, after, question, see, row)
            }
            Question::Values(wanted) if !wanted.clone().any(is_discarded) => {
                rows(*view, before.clone(), question, &mut *see, &mut *row)?;
                rows(*view, after, question, see, row)
            }
            Question::Records if *is_whole => {
                let mut largest = None;
                let mut higher = |found: Row| match found {
                    Row::At { value, .. } if largest.is_some_and(|before| value <= before) => Ok(()),
                    Row::At { value, .. } => {
                        largest = Some(value);
                        row(found)
                    }
                    _ => Ok(()),
                };
                rows(*view, before.clone(), question, &mut *see, &mut higher)?;
                summary.maxima.iter().copied().try_for_each(|(n, value)| higher(Row::At { n, value }))?;
                rows(*view, after, question, see, higher)
            }
            Question::Histogram if *is_whole => self.counts(after, see, row),
            Question::First if *is_whole => self.first(after, range, see, row),
            _ => Ok(view.require(range.start, range.end)?),
        }
    }

    /// The number of each value.
    fn counts(&self, after: Range<u64>, see: See<'_>, row: Give<'_>) -> Result<()> {
        let discarded = (0..=u16::MAX).zip(self.summary.histogram.iter().copied()).filter(|(_, count)| *count > 0);
        let mut counts: BTreeMap<u16, u64> = discarded.collect();
        for part in [self.before.clone(), after] {
            rows(self.view, part, self.question, &mut *see, |found| {
                if let Row::Count { value, count } = found {
                    *counts.entry(value).or_default() += count;
                }
                Ok::<(), anyhow::Error>(())
            })?;
        }
        counts.into_iter().try_for_each(|(value, count)| row(Row::Count { value, count }))
    }

    /// The first position of each value, if each discarded value occurs before the discarded range.
    fn first(&self, after: Range<u64>, range: Range<u64>, see: See<'_>, row: Give<'_>) -> Result<()> {
        let mut first: BTreeMap<u16, u64> = BTreeMap::new();
        for part in [self.before.clone(), after] {
            let is_last = part.end == range.end;
            rows(self.view, part, self.question, &mut *see, |found| {
                if let Row::First { value, n: Some(n) } = found {
                    first.entry(value).or_insert(n);
                }
                Ok::<(), anyhow::Error>(())
            })?;
            let mut discarded = (0..=u16::MAX).zip(&self.summary.histogram).filter(|(_, count)| **count > 0);
            if !is_last && discarded.any(|(value, _)| !first.contains_key(&value)) {
                self.view.require(range.start, range.end)?;
            }
        }
        let Some(largest) = first.keys().next_back().copied() else { return Ok(()) };
        (0..=largest).try_for_each(|value| row(Row::First { value, n: first.get(&value).copied() }))
    }
}

//! A run directory opened for a check: files that agree with the journal, and the ranges that can be checked.

use super::report::Report;
use super::target::Target;
use crate::checkpoint::journal::{self, Contents};
use crate::checkpoint::summary::DiscardSummary;
use crate::error::{Damage, Error, Result};
use crate::run::{RunReader, space_of};
use crate::solver::{SequenceStats, SparseSpace};
use crate::table::Extent;
use crate::table::HEADER;
use crate::theory::definition::Sequence;
use std::ops::Range;
use std::path::Path;

/// A run whose values are to be checked.
pub(super) struct CheckedRun {
    pub(super) view: RunReader,
    pub(super) space: SparseSpace,
    /// Rare positions and largest value of all values.
    pub(super) stats: SequenceStats,
}

/// Maximum number of times that a run is opened and scanned, if it discards values meanwhile.
const SCANS: u32 = 10;

impl CheckedRun {
    /// Opens the run and counts its rare positions. Does so again if the run has discarded values meanwhile.
    pub(super) fn open(dir: &Path) -> Result<CheckedRun> {
        for _ in 1..SCANS {
            match CheckedRun::scan(dir) {
                Err(Error::Discarded { .. }) => {}
                opened => return opened,
            }
        }
        CheckedRun::scan(dir)
    }

    fn scan(dir: &Path) -> Result<CheckedRun> {
        let view = open_consistent(dir)?;
        view.contents.require_no_torn_tail(dir)?;
        let last = &view.contents.last;
        let summary = view.discard_summary()?;
        let discarded = summary.as_ref().map(DiscardSummary::known).unwrap_or_default();
        let space = space_of(&view.rule, last);
        let stats = SequenceStats::of(&view, space, &discarded)?;
        Ok(CheckedRun { view, space, stats })
    }

    /// Returns the values of the run, with their space and statistics.
    pub(super) fn target(&self) -> Target<'_> {
        Target { rule: &self.view.rule, space: self.space, values: &self.view, stats: &self.stats }
    }

    /// Checks that the rare positions are those of the journal. It comes last, because an error about a wrong value
    /// is more precise.
    pub(super) fn agree(&self) -> Result<()> {
        let last = &self.view.contents.last;
        let count = self.stats.rare_positions.len() as u64;
        let last_rare = self.stats.last_rare();
        if space_of(&self.view.rule, last) != SparseSpace::NONE && (count, last_rare) != (last.rares, last.last_rare) {
            return Err(Error::Damage {
                path: self.view.table.path().into(),
                offset: HEADER,
                damage: Damage::RarePositions {
                    rares: count,
                    last_rare,
                    expected_rares: last.rares,
                    expected_last_rare: last.last_rare,
                },
            });
        }
        Ok(())
    }
}

/// Returns the parts of the range that can be checked, before and after the part that cannot, when the options of n
/// need values from n - `reach` on; without a range, those of the whole run.
pub(super) fn ranges(view: &RunReader, range: Option<Range<u64>>, reach: u64) -> Result<([Range<u64>; 2], Report)> {
    let discarded = view.discarded();
    let count = view.len();
    // Some n after the discarded values have options that need them.
    let hole = if discarded.is_empty() {
        count..count
    } else {
        discarded.start..discarded.end.saturating_add(reach).min(count)
    };
    let unchecked = (range.is_none() && !hole.is_empty()).then_some((hole.start, hole.end));
    if let Some(range) = &range {
        view.require(range.start, range.end)?;
    }
    let range = range.unwrap_or(0..count);
    let n = range.start.max(hole.start);
    if unchecked.is_none() && n < range.end.min(hole.end) {
        return Err(Error::Discarded { from: 0, to: n, hole: (discarded.start, discarded.end), heap: Some(n) });
    }
    let Range { start: from, end: to } = range;
    let (before, after) = unchecked.unwrap_or((to, to));
    let ranges = [from..before, after..to];
    let checked = ranges.iter().map(|range| range.end - range.start).sum();
    Ok((ranges, Report { from, to, checked, records: view.contents.records, unchecked, kernel: None }))
}

/// Opens the run with headers that agree with the journal. An active run may commit between the two reads, so headers
/// that disagree are an error only when the journal has not changed since.
pub(super) fn open_consistent(dir: &Path) -> Result<RunReader> {
    loop {
        let view = RunReader::open(dir)?;
        let shapes = view.table.header_shapes();
        let fits = |contents: &Contents, shapes: Extent| {
            let last = contents.last.extent();
            let before = contents.before;
            [last.values, before.values].contains(&shapes.values)
                && [last.escapes, before.escapes].contains(&shapes.escapes)
        };
        match &shapes {
            Ok(shapes) if fits(&view.contents, *shapes) => return view.check_suspect().map(|()| view),
            _ if journal::read(dir)?.last.sequence != view.contents.last.sequence => {}
            Err(_) => return shapes.map(|_| view),
            Ok(Extent { values, escapes }) => {
                let last = &view.contents.last;
                return Err(Error::Damage {
                    path: view.table.path().into(),
                    offset: 0,
                    damage: Damage::HeaderShapes {
                        values: *values,
                        escapes: *escapes,
                        expected_values: last.count,
                        expected_escapes: last.escapes,
                    },
                });
            }
        }
    }
}

//! The digest level: compares the files of a run with its journal.

use super::checked_run::open_consistent;
use super::report::Report;
use crate::checkpoint::journal::{self, Event};
use crate::checkpoint::summary::{DiscardSummary, RecordStats};
use crate::error::{Damage, Error, Result};
use crate::run::{RunReader, space_of};
use crate::solver::SparseSpace;
use crate::table::HEADER;
use crate::table::digest::{self, Digest, SEGMENT};
use crate::theory::definition::{Sequence, for_each_piece};
use rayon::prelude::*;
use std::ops::Range;
use std::path::Path;

/// Checks that the files of the run agree with the journal. `progress` receives the number of values done and of
/// values to do.
///
/// # Errors
/// [`Error::Damage`] at the first altered place; [`Error::Range`] when the range is not committed.
pub fn digest(dir: &Path, range: Option<Range<u64>>, mut progress: impl FnMut(u64, u64)) -> Result<Report> {
    let view = open_consistent(dir)?;
    let always = |done, all| {
        progress(done, all);
        true
    };
    Ok(digest_of(&view, dir, range, always)?.expect("only `go_on` ends a check early"))
}

/// Checks all retained values like [`digest()`]. Returns the reader whose values were hashed, so that later reads
/// through it see the values that were checked; `None` when `go_on`, which receives the number of values done and of
/// values to do, returned false.
///
/// # Errors
/// As [`digest()`].
pub fn verified(dir: &Path, go_on: impl FnMut(u64, u64) -> bool) -> Result<Option<RunReader>> {
    let view = open_consistent(dir)?;
    Ok(digest_of(&view, dir, None, go_on)?.map(|_| view))
}

fn digest_of(
    view: &RunReader,
    dir: &Path,
    range: Option<Range<u64>>,
    go_on: impl FnMut(u64, u64) -> bool,
) -> Result<Option<Report>> {
    view.contents.require_no_torn_tail(dir)?;
    if view.contents.last.event == Event::Close {
        // A process that writes more appends a journal record first.
        let unchanged = || !journal::read(dir).is_ok_and(|now| now.last.sequence != view.contents.last.sequence);
        if let Err(error) = view.table.check_lengths(view.contents.high_water_mark)
            && unchanged()
        {
            return Err(error);
        }
    }
    view.table.check_escapes()?;
    let summary = view.discard_summary()?;
    if let (None, Some(summary)) = (&range, &summary) {
        return digest_of_retained(view, summary, go_on);
    }
    let range = range.unwrap_or(0..view.len());
    view.require(range.start, range.end)?;
    let Some((report, recount)) = hash(view, summary.as_ref(), range, go_on)? else { return Ok(None) };
    if report.checked == view.len() {
        check_counts(view, recount)?;
    }
    Ok(Some(report))
}

/// Checks all retained values of a run that has discarded values; `None` when `go_on` returned false.
fn digest_of_retained(
    view: &RunReader,
    summary: &DiscardSummary,
    mut go_on: impl FnMut(u64, u64) -> bool,
) -> Result<Option<Report>> {
    let discarded = summary.discarded();
    let count = view.len();
    let all = count - (discarded.end - discarded.start);
    // The last values come first, because an active run soon discards their beginning.
    let tail = hash(view, Some(summary), discarded.end..count, |done, _| go_on(done, all))?;
    let Some((tail, tail_counted)) = tail else { return Ok(None) };
    let head = hash(view, Some(summary), 0..discarded.start, |done, _| go_on(tail.checked + done, all))?;
    let Some((head, head_counted)) = head else { return Ok(None) };
    let differs = |p: &&journal::CommitPoint| summary.digest_at(p.count).is_some_and(|digest| digest != p.digest);
    if let Some(point) = view.contents.points.iter().find(differs) {
        return Err(Error::Damage {
            path: view.table.path().with_file_name(journal::NAME),
            offset: 0,
            damage: Damage::SummaryDigest { values: point.count },
        });
    }
    check_counts(view, head_counted.and(summary.recount()).and(tail_counted))?;
    let checked = head.checked + tail.checked;
    Ok(Some(Report { from: 0, checked, unchecked: Some((discarded.start, discarded.end)), ..tail }))
}

/// Compares the counts of all values with those of the last record.
fn check_counts(view: &RunReader, recount: RecordStats) -> Result<()> {
    if !recount.agrees(&view.contents.last) {
        let damage = recount.mismatch_with(&view.contents.last);
        return Err(Error::Damage { path: view.table.path().into(), offset: HEADER, damage });
    }
    Ok(())
}

/// Hashes the values of a range and compares them with the journal; `None` when `go_on` returned false.
fn hash(
    view: &RunReader,
    summary: Option<&DiscardSummary>,
    range: Range<u64>,
    mut go_on: impl FnMut(u64, u64) -> bool,
) -> Result<Option<(Report, RecordStats)>> {
    let mut points = view.contents.points.clone();
    if let Some(summary) = summary {
        summary.add_head(&mut points);
    }
    // Start at a segment boundary, and end at an n, whose digest a record or the summary states.
    let stated = points.iter().rev().map(|p| (p.count, p.digest)).find(|&(n, _)| is_boundary(n, &range));
    let summarized = summary.and_then(|summary| Some((summary.to, summary.digest()?)));
    // A record takes precedence over the summary.
    let starts = summarized.filter(|&(n, _)| is_boundary(n, &range)).into_iter().chain(stated);
    let (from, mut closed) = starts.max_by_key(|&(n, _)| n).unwrap_or_default();
    let space = space_of(&view.rule, &view.contents.last);
    let mut recount = RecordStats::default();
    let end = points.iter().find(|p| p.count >= range.end).map_or(range.end, |p| p.count);
    let points = &points[points.partition_point(|p| p.count < from)..points.partition_point(|p| p.count <= end)];
    let segments: Vec<u64> = (from / SEGMENT..end.div_ceil(SEGMENT)).collect();
    let mut before = from;
    if points.first().is_some_and(|p| p.count == 0 && p.digest != Digest::default()) {
        return Err(Error::Damage { path: view.table.path().into(), offset: HEADER, damage: Damage::EmptyDigest });
    }
    // Segments are hashed in parallel and linked in order.
    for wave in segments.chunks(rayon::current_num_threads()) {
        let hashed: Vec<Hashed> =
            wave.par_iter().map(|&i| segment(view, space, points, i, end)).collect::<Result<_>>()?;
        for (&i, Hashed { counted, hashes, whole }) in wave.iter().zip(hashed) {
            for (point, hash) in of_segment(points, i).iter().zip(hashes) {
                let digest = digest::link(closed, hash);
                if digest != point.digest {
                    return Err(Error::Damage {
                        path: view.table.path().into(),
                        offset: HEADER + before * view.table.width().bytes(),
                        damage: Damage::Digest { from: before, to: point.count, repair_failed: false },
                    });
                }
                before = point.count;
            }
            closed = digest::link(closed, whole);
            recount = recount.and(counted);
            if !go_on(before - from, end - from) {
                return Ok(None);
            }
        }
    }
    let checked = end - from;
    let records = view.contents.records;
    let report = Report { from, to: end, checked, records, unchecked: None, kernel: None };
    Ok(Some((report, recount)))
}

/// Returns whether the hash of a range may start at n, if the digest of the values before is known.
fn is_boundary(n: u64, range: &Range<u64>) -> bool {
    n > 0 && n.is_multiple_of(SEGMENT) && n <= range.start
}

/// The hashes and counts of a segment of the table.
struct Hashed {
    counted: RecordStats,
    /// The hash of the segment's values up to each commit point in it.
    hashes: Vec<blake3::Hash>,
    /// The hash of the segment's values up to its end, or up to the end of the check.
    whole: blake3::Hash,
}

/// Returns the commit points after the first value of segment i, up to its end.
fn of_segment(points: &[journal::CommitPoint], i: u64) -> &[journal::CommitPoint] {
    let until = |count: u64| points.partition_point(|p| p.count <= count);
    &points[until(i * SEGMENT)..until((i + 1) * SEGMENT)]
}

/// Hashes and counts the values of segment i below `end`.
fn segment(view: &RunReader, space: SparseSpace, points: &[journal::CommitPoint], i: u64, end: u64) -> Result<Hashed> {
    let mut hasher = blake3::Hasher::new();
    let mut counted = RecordStats::default();
    let mut bytes = Vec::new();
    let mut from = i * SEGMENT;
    let mut hash_to = |to: u64| {
        for_each_piece(view, from, to, |n, values| {
            digest::enter(&mut hasher, values, &mut bytes);
            counted.see(space, n, values);
            Ok(())
        })?;
        from = to;
        Ok(hasher.finalize())
    };
    let hashes = of_segment(points, i).iter().map(|point| hash_to(point.count)).collect::<Result<_>>()?;
    let whole = hash_to(end.min((i + 1) * SEGMENT))?;
    Ok(Hashed { counted, hashes, whole })
}

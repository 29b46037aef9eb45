//! Independent checks of a finished table, by range; no lock, no write permission.
//!
//! [`digest`] asks whether the files are what the journal says: every record hashes and follows the one before, the
//! headers are this program's to the last byte, escapes and table agree, every commit's digest holds, rares and largest
//! value counted anew are those of the last record. Any altered byte of table, escapes or journal is found.
//!
//! [`definition()`] asks whether the values are right: a sample of them by the mex over all pairs, given the values before.
//!
//! What a run has freed can be checked no more. Without a range, the rest is checked, and the report says what was not; a
//! range that needs freed values is refused. The head is hashed from the start, the last values from the digest at the end
//! of the freed ones; these are counted as their snapshot says, which the journal vouches for. Of escapes of freed heaps
//! only the order is checked.
//!
//! A range of the digest starts at a segment boundary, where a record says the digest of all before; so ranges can be
//! checked on different machines.

use crate::definition::{self, Sequence, for_each_piece};
use crate::digest::{Chain, SEGMENT};
use crate::engine::{View, space_of};
use crate::error::{Error, Result};
use crate::journal::{self, Contents, Event};
use crate::snapshot::{Recount, Snapshot};
use crate::table::HEADER;
use std::ops::Range;
use std::path::Path;

/// What was checked, when nothing was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// First heap checked.
    pub from: u64,
    /// One past the last heap checked.
    pub to: u64,
    /// Values hashed, or computed anew.
    pub checked: u64,
    /// Journal records read.
    pub records: u64,
    /// Heaps between `from` and `to` that could not be checked because values are freed, half open.
    pub unchecked: Option<(u64, u64)>,
}

/// Checks that the files of the run are what the journal says. `progress` is told values done and values to do.
///
/// # Errors
/// [`Error::Damage`] at the first altered place; [`Error::Range`] when the range is not committed.
pub fn digest(dir: &Path, range: Option<Range<u64>>, progress: impl FnMut(u64, u64)) -> Result<Report> {
    let view = settled(dir)?;
    view.contents.whole(dir)?;
    if view.contents.last.event == Event::Close {
        // Whoever writes more says so in the journal first.
        let gone_on = |_: &Error| journal::read(dir).is_ok_and(|now| now.last.sequence != view.contents.last.sequence);
        view.table.check_lengths().or_else(|error| if gone_on(&error) { Ok(()) } else { Err(error) })?;
    }
    view.table.check_escapes()?;
    let snapshot = Snapshot::read(dir, &view.contents.last)?;
    if let (None, Some(snapshot)) = (&range, snapshot) {
        return kept(&view, &snapshot, progress);
    }
    let range = range.unwrap_or(0..view.len());
    view.require(range.start, range.end)?;
    let (report, recount) = hash(&view, range, progress)?;
    if report.checked == view.len() {
        counted(&view, recount)?;
    }
    Ok(report)
}

/// Checks all that is kept of a run that has freed values.
fn kept(view: &View, snapshot: &Snapshot, mut progress: impl FnMut(u64, u64)) -> Result<Report> {
    let (freed, count) = (snapshot.freed(), view.len());
    let all = count - (freed.end - freed.start);
    // First the last values: of a run that goes on, their beginning is freed soon.
    let (tail, tail_counted) = hash(view, freed.end..count, |done, _| progress(done, all))?;
    let (head, head_counted) = hash(view, 0..freed.start, |done, _| progress(tail.checked + done, all))?;
    let differs = |p: &&journal::Point| p.count == freed.end && Some(p.digest) != snapshot.digest();
    if let Some(point) = view.contents.points.iter().find(differs) {
        return Err(Error::Damage {
            path: view.table.path().with_file_name(journal::NAME),
            offset: 0,
            what: format!("the snapshot of the freed values does not end in the digest at {}", point.count),
        });
    }
    counted(view, head_counted.and(snapshot.recount()).and(tail_counted))?;
    let checked = head.checked + tail.checked;
    Ok(Report { from: 0, checked, unchecked: Some((freed.start, freed.end)), ..tail })
}

fn counted(view: &View, recount: Recount) -> Result<()> {
    if !recount.agrees(&view.contents.last) {
        return Err(Error::Damage {
            path: view.table.path().into(),
            offset: HEADER,
            what: format!("rares and largest value counted from the table are {recount:?}, not those of the journal"),
        });
    }
    Ok(())
}

/// The run with headers that fit the journal. A run that goes on may commit between the two looks, so a header that does
/// not fit is believed only when the journal has not changed meanwhile.
fn settled(dir: &Path) -> Result<View> {
    loop {
        let view = View::open(dir)?;
        let shapes = view.table.header_shapes();
        let fits = |contents: &Contents, shapes: (u64, u64)| {
            let last = &contents.last;
            [(last.count, last.escapes), contents.before].iter().any(|&(count, escapes)| shapes == (count, escapes))
                || (shapes.0 == last.count && shapes.1 == contents.before.1)
                || (shapes.0 == contents.before.0 && shapes.1 == last.escapes)
        };
        match &shapes {
            Ok(shapes) if fits(&view.contents, *shapes) => return Ok(view),
            _ if journal::read(dir)?.last.sequence != view.contents.last.sequence => {}
            Err(_) => return shapes.map(|_| view),
            Ok((values, escapes)) => {
                let last = &view.contents.last;
                return Err(Error::Damage {
                    path: view.table.path().into(),
                    offset: 0,
                    what: format!(
                        "the headers speak of {values} values and {escapes} escapes, the journal of {} and {}",
                        last.count, last.escapes
                    ),
                });
            }
        }
    }
}

fn hash(view: &View, range: Range<u64>, mut progress: impl FnMut(u64, u64)) -> Result<(Report, Recount)> {
    let points = &view.contents.points;
    // Start where a record knows the digest at a segment boundary, end where a record knows the digest.
    let boundary = |p: &&journal::Point| p.count.is_multiple_of(SEGMENT) && p.count <= range.start;
    let start = points.iter().rev().find(boundary).filter(|p| p.count > 0);
    let mut chain = start.map_or_else(Chain::new, |p| Chain::resume(p.count, p.digest));
    let from = chain.count();
    let space = space_of(&view.rule, &view.contents.last);
    let mut recount = Recount::default();
    let end = points.iter().find(|p| p.count >= range.end).map_or(range.end, |p| p.count);
    for point in points.iter().filter(|p| p.count >= from && p.count <= end) {
        let before = chain.count();
        for_each_piece(view, before, point.count, |n, values| {
            chain.update(values);
            recount.see(space, n, values);
            progress(chain.count() - from, end - from);
            Ok(())
        })?;
        if chain.digest() != point.digest {
            return Err(Error::Damage {
                path: view.table.path().into(),
                offset: HEADER + before * view.table.width().bytes(),
                what: format!(
                    "the values {before}..{} are not those that the journal speaks of; 'grundy run --rollback' goes back",
                    point.count
                ),
            });
        }
    }
    let report = Report { from, to: end, checked: end - from, records: view.contents.records, unchecked: None };
    Ok((report, recount))
}

/// Computes a sample of the values in the range anew by the definition: the first, the last, and `samples` others drawn
/// from `seed`.
///
/// # Errors
/// [`Error::Wrong`] at the first value that differs; [`Error::Range`] when the range is not committed, [`Error::Freed`] when
/// it holds heaps whose options need freed values.
pub fn definition(
    dir: &Path,
    range: Option<Range<u64>>,
    samples: u64,
    seed: u64,
    mut progress: impl FnMut(u64, u64),
) -> Result<Report> {
    let view = settled(dir)?;
    view.contents.whole(dir)?;
    let (freed, count) = (view.freed(), view.len());
    // The options of a heap need the values before it.
    let checkable = if freed.is_empty() { count } else { freed.start };
    let (range, unchecked) = match range {
        Some(range) => {
            view.require(range.start, range.end)?;
            if range.end > checkable {
                let (n, hole) = (range.end - 1, (freed.start, freed.end));
                return Err(Error::Freed { from: 0, to: n, hole, heap: Some(n) });
            }
            (range, None)
        }
        None => (0..checkable, (checkable < count).then_some((checkable, count))),
    };
    let to = unchecked.map_or(range.end, |unchecked| unchecked.1);
    let mut report = Report { from: range.start, to, checked: 0, records: view.contents.records, unchecked };
    if range.is_empty() {
        return Ok(report);
    }
    let length = range.end - range.start;
    let mut state = seed;
    let drawn = std::iter::repeat_with(|| range.start + split_mix(&mut state) % length);
    let count = usize::try_from(samples).unwrap_or(usize::MAX);
    let mut heaps: Vec<u64> = if samples >= length { range.clone().collect() } else { drawn.take(count).collect() };
    heaps.extend([range.start, range.end - 1]);
    heaps.sort_unstable();
    heaps.dedup();
    let all = heaps.len() as u64;
    for n in heaps {
        let mut found = [0];
        view.read(n, &mut found)?;
        let expected = definition::value_at(&view.rule, &view, n)?;
        if found[0] != expected {
            return Err(Error::Wrong { n, found: found[0].into(), expected: expected.into() });
        }
        report.checked += 1;
        progress(report.checked, all);
    }
    Ok(report)
}

/// SplitMix64 (Steele, Lea and Flood 2014): a sample that a printed seed reproduces everywhere.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

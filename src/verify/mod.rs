//! Independent checks of a finished table, by range; no lock, no write permission, all cores.
//!
//! [`digest()`] asks whether the files are what the journal says: every record hashes and follows the one before, the
//! headers are this program's to the last byte, escapes and table agree, every commit's digest holds, rares and largest
//! value counted anew are those of the last record. Any altered byte of table, escapes or journal is found.
//!
//! The other levels ask whether the values are right, each given those before. [`exclusion()`]: no value is that of an
//! option with one rare part, and rare heaps are as defined; finds every value too low and many of those too high
//! ([`mod@exclusion`] has the statement). [`recompute()`]: each value anew by the solver with another kernel than that
//! of the run; finds every wrong value. [`definition()`]: a sample of them by the mex over all pairs.
//!
//! What a run has freed can be checked no more. Without a range, the rest is checked, and the report says what was not;
//! a range that needs freed values is refused. The head is hashed from the start, the last values from the digest at
//! the end of the freed ones; these are counted as their snapshot says, which the journal vouches for. Of escapes of
//! freed heaps only the order is checked. Values whose options lie among freed ones are not checked either.
//!
//! A range of the digest starts at a segment boundary, where a record says the digest of all before; so ranges can be
//! checked on different machines. The other levels look at the values before a range as well, to find the rare heaps.
//!
//! Each of the other levels is a function of a [`Sequence`] and a rule, and one of a directory that calls it.

pub mod exclusion;
pub mod recompute;

use crate::checkpoint::journal::{self, Contents, Event};
use crate::checkpoint::summary::{DiscardSummary, RecordStats};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::run::{RunReader, space_of};
use crate::solver::{self, Method, SequenceStats, SparseSpace};
use crate::table::HEADER;
use crate::table::digest::{self, Digest, SEGMENT};
use crate::theory::definition::{self, Sequence, for_each_piece};
use crate::theory::nimber::index;
use crate::theory::rule::Rule;
use rayon::prelude::*;
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
    /// What computed the values anew: a kernel, or `definition`.
    pub kernel: Option<&'static str>,
}

/// Checks that the files of the run are what the journal says. `progress` is told values done and values to do.
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

/// [`digest()`] of everything that is kept. Returns the view whose values were hashed, so that what is read next is what
/// was checked; `None` when `go_on`, which is called with values done and values to do, returned false.
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
    view.contents.whole(dir)?;
    if view.contents.last.event == Event::Close {
        // Whoever writes more says so in the journal first.
        let gone_on = |_: &Error| journal::read(dir).is_ok_and(|now| now.last.sequence != view.contents.last.sequence);
        let lengths = view.table.check_lengths(view.contents.high_water_mark);
        lengths.or_else(|error| if gone_on(&error) { Ok(()) } else { Err(error) })?;
    }
    view.table.check_escapes()?;
    let snapshot = DiscardSummary::read(dir, &view.contents.last)?;
    if let (None, Some(snapshot)) = (&range, snapshot) {
        return kept(view, &snapshot, go_on);
    }
    let range = range.unwrap_or(0..view.len());
    view.require(range.start, range.end)?;
    let Some((report, recount)) = hash(view, range, go_on)? else { return Ok(None) };
    if report.checked == view.len() {
        counted(view, recount)?;
    }
    Ok(Some(report))
}

/// Checks all that is kept of a run that has freed values; `None` when `go_on` returned false.
fn kept(
    view: &RunReader,
    snapshot: &DiscardSummary,
    mut go_on: impl FnMut(u64, u64) -> bool,
) -> Result<Option<Report>> {
    let (freed, count) = (snapshot.freed(), view.len());
    let all = count - (freed.end - freed.start);
    // First the last values: of a run that goes on, their beginning is freed soon.
    let tail = hash(view, freed.end..count, |done, _| go_on(done, all))?;
    let Some((tail, tail_counted)) = tail else { return Ok(None) };
    let head = hash(view, 0..freed.start, |done, _| go_on(tail.checked + done, all))?;
    let Some((head, head_counted)) = head else { return Ok(None) };
    let differs = |p: &&journal::CommitPoint| p.count == freed.end && Some(p.digest) != snapshot.digest();
    if let Some(point) = view.contents.points.iter().find(differs) {
        return Err(Error::Damage {
            path: view.table.path().with_file_name(journal::NAME),
            offset: 0,
            what: format!("the snapshot of the freed values does not end in the digest at {}", point.count),
        });
    }
    counted(view, head_counted.and(snapshot.recount()).and(tail_counted))?;
    let checked = head.checked + tail.checked;
    Ok(Some(Report { from: 0, checked, unchecked: Some((freed.start, freed.end)), ..tail }))
}

fn counted(view: &RunReader, recount: RecordStats) -> Result<()> {
    if !recount.agrees(&view.contents.last) {
        return Err(Error::Damage {
            path: view.table.path().into(),
            offset: HEADER,
            what: format!("rares and largest value counted from the table are {recount:?}, not those of the journal"),
        });
    }
    Ok(())
}

/// The run with headers that fit the journal. A run that goes on may commit between the two looks, so a header that
/// does not fit is believed only when the journal has not changed meanwhile.
fn open_consistent(dir: &Path) -> Result<RunReader> {
    loop {
        let view = RunReader::open(dir)?;
        let shapes = view.table.header_shapes();
        let fits = |contents: &Contents, shapes: (u64, u64)| {
            let last = &contents.last;
            [(last.count, last.escapes), contents.before].iter().any(|&(count, escapes)| shapes == (count, escapes))
                || (shapes.0 == last.count && shapes.1 == contents.before.1)
                || (shapes.0 == contents.before.0 && shapes.1 == last.escapes)
        };
        match &shapes {
            Ok(shapes) if fits(&view.contents, *shapes) => return view.check_suspect().map(|()| view),
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

/// Hashes the values of a range and compares them with the journal; `None` when `go_on` returned false.
fn hash(
    view: &RunReader,
    range: Range<u64>,
    mut go_on: impl FnMut(u64, u64) -> bool,
) -> Result<Option<(Report, RecordStats)>> {
    let points = &view.contents.points;
    // Start where a record knows the digest at a segment boundary, end where a record knows the digest.
    let boundary = |p: &&journal::CommitPoint| p.count.is_multiple_of(SEGMENT) && p.count <= range.start;
    let start = points.iter().rev().find(boundary).filter(|p| p.count > 0);
    let (from, mut closed) = start.map_or((0, Digest::default()), |p| (p.count, p.digest));
    let space = space_of(&view.rule, &view.contents.last);
    let mut recount = RecordStats::default();
    let end = points.iter().find(|p| p.count >= range.end).map_or(range.end, |p| p.count);
    let points = &points[points.partition_point(|p| p.count < from)..points.partition_point(|p| p.count <= end)];
    let segments: Vec<u64> = (from / SEGMENT..end.div_ceil(SEGMENT)).collect();
    let mut before = from;
    if points.first().is_some_and(|p| p.count == 0 && p.digest != Digest::default()) {
        let what = "the digest of no values is not that of the journal".into();
        return Err(Error::Damage { path: view.table.path().into(), offset: HEADER, what });
    }
    // Segments are hashed side by side and linked in order.
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
                        what: format!(
                            "the values {before}..{} are not those that the journal speaks of; 'grundy run' computes \
                             them anew, 'grundy run --rollback' goes back",
                            point.count
                        ),
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
    let (checked, records) = (end - from, view.contents.records);
    let report = Report { from, to: end, checked, records, unchecked: None, kernel: None };
    Ok(Some((report, recount)))
}

/// A segment as it stands in the table.
struct Hashed {
    counted: RecordStats,
    /// The hash of its values up to each of the points.
    hashes: Vec<blake3::Hash>,
    /// The hash of all its values, if these are asked about.
    whole: blake3::Hash,
}

/// The points behind the first value of segment i, up to its end.
fn of_segment(points: &[journal::CommitPoint], i: u64) -> &[journal::CommitPoint] {
    let until = |count: u64| points.partition_point(|p| p.count <= count);
    &points[until(i * SEGMENT)..until((i + 1) * SEGMENT)]
}

fn segment(view: &RunReader, space: SparseSpace, points: &[journal::CommitPoint], i: u64, end: u64) -> Result<Hashed> {
    let (mut hasher, mut counted) = (blake3::Hasher::new(), RecordStats::default());
    let (mut bytes, mut from) = (Vec::new(), i * SEGMENT);
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

/// Counts the rare heaps and the largest value of all values that are there, in parallel; `freed` tells of the others.
/// Under [`SparseSpace::NONE`] no heap is told.
///
/// # Errors
/// What reading `past` gives.
pub fn count<S: Sequence + ?Sized>(past: &S, space: SparseSpace, freed: &SequenceStats) -> Result<SequenceStats> {
    /// Values counted by one task.
    const VALUES_PER_TASK: u64 = 1 << 20;
    let hole = past.freed();
    let pieces =
        |from: u64, to: u64| (from..to).step_by(index(VALUES_PER_TASK)).map(move |n| n..to.min(n + VALUES_PER_TASK));
    let pieces: Vec<Range<u64>> = pieces(0, hole.start).chain(pieces(hole.end, past.len())).collect();
    let counted = pieces.into_par_iter().map(|piece| {
        let mut known = SequenceStats::default();
        for_each_piece(past, piece.start, piece.end, |from, values| {
            known.max_value = values.iter().fold(known.max_value, |largest, &v| largest.max(v));
            if space != SparseSpace::NONE {
                let rares = (from..).zip(values).filter(|&(n, &v)| space.is_rare(v, n));
                known.rares.extend(rares.map(|(n, &v)| (n, v)));
            }
            Ok(())
        })?;
        Ok(known)
    });
    let mut all = counted.try_reduce(SequenceStats::default, |mut before, after| {
        before.rares.extend(after.rares);
        before.max_value = before.max_value.max(after.max_value);
        Ok(before)
    })?;
    all.max_value = all.max_value.max(freed.max_value);
    all.rares.extend(&freed.rares);
    all.rares.sort_unstable();
    Ok(all)
}

/// A run whose values are to be checked.
struct Suspect {
    view: RunReader,
    space: SparseSpace,
    /// Of all its values.
    known: SequenceStats,
}

impl Suspect {
    /// Opens the run and counts its rare heaps.
    fn open(dir: &Path) -> Result<Suspect> {
        let view = open_consistent(dir)?;
        view.contents.whole(dir)?;
        let last = &view.contents.last;
        let snapshot = DiscardSummary::read(dir, last)?;
        let freed = snapshot.as_ref().map(DiscardSummary::known).unwrap_or_default();
        let space = space_of(&view.rule, last);
        let known = count(&view, space, &freed)?;
        Ok(Suspect { view, space, known })
    }

    /// Checks that the rare heaps are those of the journal; asked last, since a wrong value says more.
    fn agree(&self) -> Result<()> {
        let last = &self.view.contents.last;
        let rares = (self.known.rares.len() as u64, self.last_rare());
        if space_of(&self.view.rule, last) != SparseSpace::NONE && rares != (last.rares, last.last_rare) {
            return Err(Error::Damage {
                path: self.view.table.path().into(),
                offset: HEADER,
                what: format!(
                    "{} rare heaps, the last of them {}, are counted from the table; the journal says {} and {}",
                    rares.0, rares.1, last.rares, last.last_rare
                ),
            });
        }
        Ok(())
    }

    fn last_rare(&self) -> u64 {
        self.known.rares.last().map_or(0, |rare| rare.0)
    }

    /// What can be checked of the range, or of all, when the options of a heap need values at most `reach` back: before
    /// and behind what cannot.
    fn ranges(&self, range: Option<Range<u64>>, reach: u64) -> Result<([Range<u64>; 2], Report)> {
        let (freed, count) = (self.view.freed(), self.view.len());
        // Behind the freed values some heaps have options among them.
        let hole = match freed.is_empty() {
            true => count..count,
            false => freed.start..freed.end.saturating_add(reach).min(count),
        };
        let unchecked = (range.is_none() && !hole.is_empty()).then_some((hole.start, hole.end));
        if let Some(range) = &range {
            self.view.require(range.start, range.end)?;
        }
        let range = range.unwrap_or(0..count);
        let n = range.start.max(hole.start);
        if unchecked.is_none() && n < range.end.min(hole.end) {
            return Err(Error::Freed { from: 0, to: n, hole: (freed.start, freed.end), heap: Some(n) });
        }
        let Range { start: from, end: to } = range;
        let (before, behind) = unchecked.unwrap_or((to, to));
        let ranges = [from..before, behind..to];
        let checked = ranges.iter().map(|range| range.end - range.start).sum();
        let records = self.view.contents.records;
        Ok((ranges, Report { from, to, checked, records, unchecked, kernel: None }))
    }
}

/// Tells the progress of one range as that of all: `before` values are done already, of `all`.
fn further(progress: &mut impl FnMut(u64, u64), before: u64, all: u64) -> impl FnMut(u64, u64) {
    move |done, _| progress(before + done, all)
}

/// Checks that no value of the range is that of an option with one rare part, and that the rare heaps of the range have
/// the values of the definition ([`mod@exclusion`]).
///
/// # Errors
/// [`Error::Excluded`] and [`Error::Wrong`] at the first value that contradicts others; [`Error::NoSpace`] for a game
/// that has no sparse space; [`Error::Damage`] when rare heaps are not those of the journal; [`Error::Range`] when the
/// range is not committed, [`Error::Freed`] when it holds heaps whose options need freed values.
pub fn exclusion(dir: &Path, range: Option<Range<u64>>, mut progress: impl FnMut(u64, u64)) -> Result<Report> {
    let mut suspect = Suspect::open(dir)?;
    if suspect.space == SparseSpace::NONE {
        let rule = &suspect.view.rule;
        let named = rule.known().and_then(|known| known.space);
        let space = named.and_then(|(mask, position)| SparseSpace::new(rule, mask, position));
        suspect.space = space.ok_or_else(|| Error::NoSpace { game: rule.name().into() })?;
        suspect.known = count(&suspect.view, suspect.space, &SequenceStats::default())?;
    }
    let Suspect { view, space, known } = &suspect;
    let (ranges, report) = suspect.ranges(range, suspect.last_rare() + view.rule.max_remove())?;
    let mut before = 0;
    for range in ranges {
        let length = range.end - range.start;
        exclusion::check(&view.rule, *space, view, known, range, further(&mut progress, before, report.checked))?;
        before += length;
    }
    suspect.agree()?;
    Ok(report)
}

/// Computes every value of the range anew with another kernel than that of the run ([`mod@recompute`]).
///
/// # Errors
/// [`Error::Wrong`] at the first value that differs; [`Error::Damage`], [`Error::Range`] and [`Error::Freed`] as
/// [`exclusion()`].
pub fn recompute(dir: &Path, range: Option<Range<u64>>, mut progress: impl FnMut(u64, u64)) -> Result<Report> {
    let suspect = Suspect::open(dir)?;
    let Suspect { view, space, known } = &suspect;
    let (ranges, mut report) = suspect.ranges(range, solver::lookback(&view.rule, suspect.last_rare()))?;
    let kernel = other_kernel(&view.contents.last.kernel);
    let mut before = 0;
    for range in ranges {
        let length = range.end - range.start;
        let further = further(&mut progress, before, report.checked);
        let work = recompute::check(&view.rule, Method::Sparse(kernel), *space, view, known, range, further)?;
        if work.witnessed > 0 || report.kernel.is_none() {
            report.kernel = Some(if work.witnessed > 0 { kernel.name() } else { Method::Definition.name() });
        }
        before += length;
    }
    suspect.agree()?;
    Ok(report)
}

/// The best kernel of this processor that does not have this name; its only one, if it has no other.
fn other_kernel(name: &str) -> Kernel {
    Kernel::available().into_iter().find(|kernel| kernel.name() != name).unwrap_or(Kernel::scalar())
}

/// A value of the table against the right one.
fn compare(n: u64, found: u16, expected: u16) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::Wrong { n, found: found.into(), expected: expected.into() })
}

/// Computes a sample of the values in the range anew by the definition: the first, the last, and `samples` others drawn
/// from `seed`.
///
/// # Errors
/// [`Error::Wrong`] at the first value that differs; [`Error::Range`] when the range is not committed, [`Error::Freed`]
/// when it holds heaps whose options need freed values.
pub fn definition(
    dir: &Path,
    range: Option<Range<u64>>,
    samples: u64,
    seed: u64,
    progress: impl FnMut(u64, u64),
) -> Result<Report> {
    let view = open_consistent(dir)?;
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
    let records = view.contents.records;
    let mut report = Report { from: range.start, to, checked: 0, records, unchecked, kernel: Some("definition") };
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
    sample(&view.rule, &view, &heaps, progress)?;
    report.checked = heaps.len() as u64;
    Ok(report)
}

/// Computes the values of these heaps, ascending, anew by the definition.
///
/// # Errors
/// [`Error::Wrong`] at the first value that differs; what reading `past` gives.
pub fn sample<S: Sequence + ?Sized>(
    rule: &Rule,
    past: &S,
    heaps: &[u64],
    mut progress: impl FnMut(u64, u64),
) -> Result<()> {
    let mut done = 0;
    // Small heaps side by side; of a large one the pairs are.
    for wave in heaps.chunks(4 * rayon::current_num_threads()) {
        let wrong = wave.par_iter().map(|&n| {
            let mut found = [0];
            past.read(n, &mut found)?;
            compare(n, found[0], definition::value_at(rule, past, n)?)
        });
        wrong.find_first(Result::is_err).unwrap_or(Ok(()))?;
        done += wave.len() as u64;
        progress(done, heaps.len() as u64);
    }
    Ok(())
}

/// SplitMix64 (Steele, Lea and Flood 2014): a sample that a printed seed reproduces everywhere.
pub(crate) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

//! Checks a table independently of the run that wrote it, by range; needs no lock and no write permission, and uses
//! all cores.
//!
//! [`digest()`] checks that the files agree with the journal: every record has the right hash and follows the one
//! before, the headers are byte for byte those that this program writes, escapes and table agree, every commit's
//! digest holds, and rare positions and largest value, counted again, are those of the last record. It finds any
//! altered byte of table, escapes or journal.
//!
//! The other levels check that each value is right, given those before. [`exclusion()`] checks that no value is that
//! of an option with one rare part, and that rare positions have the value of the definition; it finds every value
//! that is too low and many that are too high ([`mod@exclusion`] states which). [`recompute()`] computes each value
//! again by the solver, with another kernel than that of the run; it finds every wrong value. [`definition()`]
//! computes a sample of the values by the mex over all pairs.
//!
//! Discarded values can no longer be checked. Without a range, the retained values are checked, and the report names
//! the rest; a range that needs discarded values is refused. The head is hashed from the start, and the last values
//! from the digest at the end of the discarded ones. For the discarded values themselves the counts of the discard
//! summary are used, which the journal covers. Of the escapes of discarded values only the order is checked. Values
//! whose options lie among discarded ones are not checked either.
//!
//! A range of the digest starts at a segment boundary, where a record states the digest of all values before; so
//! ranges can be checked on different machines. The other levels also read the values before a range, to find the
//! rare positions.
//!
//! Exclusion, recomputing and definition each have one function of a [`Sequence`] and a rule, and one of a directory,
//! which calls it.

pub mod exclusion;
pub mod recompute;

use crate::checkpoint::journal::{self, Contents, Event};
use crate::checkpoint::summary::{DiscardSummary, RecordStats};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::run::{RunReader, space_of};
use crate::solver::{self, Method, SequenceStats, SparseSpace};
use crate::table::digest::{self, Digest, SEGMENT};
use crate::table::{Extent, HEADER};
use crate::theory::definition::{self, Sequence, for_each_piece};
use crate::theory::nimber::index;
use crate::theory::rule::Rule;
use rayon::prelude::*;
use std::ops::Range;
use std::path::Path;

/// The extent of a check that found nothing wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// First n checked.
    pub from: u64,
    /// One past the last n checked.
    pub to: u64,
    /// Number of values hashed or computed again.
    pub checked: u64,
    /// Number of journal records read.
    pub records: u64,
    /// The n between `from` and `to` that could not be checked because values are discarded, as a half-open range.
    pub unchecked: Option<(u64, u64)>,
    /// Name of the kernel that computed the values again, or `definition`.
    pub kernel: Option<&'static str>,
}

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
    view.contents.whole(dir)?;
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
    let summary = DiscardSummary::read(dir, &view.contents.last)?;
    if let (None, Some(summary)) = (&range, summary) {
        return digest_of_retained(view, &summary, go_on);
    }
    let range = range.unwrap_or(0..view.len());
    view.require(range.start, range.end)?;
    let Some((report, recount)) = hash(view, range, go_on)? else { return Ok(None) };
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
    let freed = summary.freed();
    let count = view.len();
    let all = count - (freed.end - freed.start);
    // The last values come first, because an active run soon discards their beginning.
    let tail = hash(view, freed.end..count, |done, _| go_on(done, all))?;
    let Some((tail, tail_counted)) = tail else { return Ok(None) };
    let head = hash(view, 0..freed.start, |done, _| go_on(tail.checked + done, all))?;
    let Some((head, head_counted)) = head else { return Ok(None) };
    let differs = |p: &&journal::CommitPoint| p.count == freed.end && Some(p.digest) != summary.digest();
    if let Some(point) = view.contents.points.iter().find(differs) {
        return Err(Error::Damage {
            path: view.table.path().with_file_name(journal::NAME),
            offset: 0,
            what: format!("the snapshot of the freed values ends in another digest than the record at {}", point.count),
        });
    }
    check_counts(view, head_counted.and(summary.recount()).and(tail_counted))?;
    let checked = head.checked + tail.checked;
    Ok(Some(Report { from: 0, checked, unchecked: Some((freed.start, freed.end)), ..tail }))
}

/// Compares the counts of all values with those of the last record.
fn check_counts(view: &RunReader, recount: RecordStats) -> Result<()> {
    if !recount.agrees(&view.contents.last) {
        let RecordStats { rares, last_rare, max_value, max_at } = recount;
        return Err(Error::Damage {
            path: view.table.path().into(),
            offset: HEADER,
            what: format!(
                "the table has {rares} rare positions, the last at n = {last_rare}, and the largest value {max_value} at \
                 n = {max_at}; the journal states other numbers"
            ),
        });
    }
    Ok(())
}

/// Opens the run with headers that agree with the journal. An active run may commit between the two reads, so headers
/// that disagree are an error only when the journal has not changed since.
fn open_consistent(dir: &Path) -> Result<RunReader> {
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
                    what: format!(
                        "the headers state {values} values and {escapes} escapes, the journal states {} and {}",
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
    // Start at a segment boundary whose digest a record states, end at an n whose digest a record states.
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
        let what = "the journal states a wrong digest of 0 values".into();
        return Err(Error::Damage { path: view.table.path().into(), offset: HEADER, what });
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
                        what: format!(
                            "the values {before}..{} do not have the digest that the journal states; 'grundy run' \
                             computes them again, 'grundy run --rollback' goes back",
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

/// Returns the rare positions and the largest value of a sequence: counts the retained values in parallel, and takes
/// those of the discarded values from `freed`. Under [`SparseSpace::NONE`] the list of rare positions is empty,
/// except for those of `freed`.
///
/// # Errors
/// Errors of reading `past`.
pub fn count<S: Sequence + ?Sized>(past: &S, space: SparseSpace, freed: &SequenceStats) -> Result<SequenceStats> {
    /// Number of values counted by one task.
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
    /// Rare positions and largest value of all values.
    known: SequenceStats,
}

impl Suspect {
    /// Opens the run and counts its rare positions.
    fn open(dir: &Path) -> Result<Suspect> {
        let view = open_consistent(dir)?;
        view.contents.whole(dir)?;
        let last = &view.contents.last;
        let summary = DiscardSummary::read(dir, last)?;
        let freed = summary.as_ref().map(DiscardSummary::known).unwrap_or_default();
        let space = space_of(&view.rule, last);
        let known = count(&view, space, &freed)?;
        Ok(Suspect { view, space, known })
    }

    /// Checks that the rare positions are those of the journal. It comes last, because an error about a wrong value
    /// is more precise.
    fn agree(&self) -> Result<()> {
        let last = &self.view.contents.last;
        let rares = (self.known.rares.len() as u64, self.last_rare());
        if space_of(&self.view.rule, last) != SparseSpace::NONE && rares != (last.rares, last.last_rare) {
            return Err(Error::Damage {
                path: self.view.table.path().into(),
                offset: HEADER,
                what: format!(
                    "the table has {} rare positions, the last at n = {}; the journal states {} and n = {}",
                    rares.0, rares.1, last.rares, last.last_rare
                ),
            });
        }
        Ok(())
    }

    fn last_rare(&self) -> u64 {
        self.known.rares.last().map_or(0, |rare| rare.0)
    }

    /// Returns the parts of the range that can be checked, before and after the part that cannot, when the options of
    /// n need values from n - `reach` on; without a range, those of the whole run.
    fn ranges(&self, range: Option<Range<u64>>, reach: u64) -> Result<([Range<u64>; 2], Report)> {
        let (freed, count) = (self.view.freed(), self.view.len());
        // Some n after the discarded values have options that need them.
        let hole =
            if freed.is_empty() { count..count } else { freed.start..freed.end.saturating_add(reach).min(count) };
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

/// Returns a function that reports the progress of one range as that of the whole check: `before` of `all` values are
/// done already.
fn overall(progress: &mut impl FnMut(u64, u64), before: u64, all: u64) -> impl FnMut(u64, u64) {
    move |done, _| progress(before + done, all)
}

/// Checks that no value of the range is that of an option with one rare part, and that the rare positions of the
/// range have the values of the definition ([`mod@exclusion`]).
///
/// # Errors
/// [`Error::Excluded`] and [`Error::Wrong`] at the first value that contradicts others; [`Error::NoSpace`] for a game
/// that has no sparse space; [`Error::Damage`] when rare positions are not those of the journal; [`Error::Range`]
/// when the range is not committed, [`Error::Freed`] when it has an n whose options need discarded values.
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
        exclusion::check(&view.rule, *space, view, known, range, overall(&mut progress, before, report.checked))?;
        before += length;
    }
    suspect.agree()?;
    Ok(report)
}

/// Computes every value of the range again, with another kernel than that of the run ([`mod@recompute`]).
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
        let overall = overall(&mut progress, before, report.checked);
        let work = recompute::check(&view.rule, Method::Sparse(kernel), *space, view, known, range, overall)?;
        if work.witnessed > 0 || report.kernel.is_none() {
            report.kernel = Some(if work.witnessed > 0 { kernel.name() } else { Method::Definition.name() });
        }
        before += length;
    }
    suspect.agree()?;
    Ok(report)
}

/// Returns the kernel with which values that the kernel `name` computed are checked; the name may be that of the
/// definition, or of a kernel that this processor does not support.
fn other_kernel(name: &str) -> Kernel {
    name.parse().map_or_else(|_| Kernel::best(), Kernel::other)
}

/// Compares a value of the table with the right one.
fn compare(n: u64, found: u16, expected: u16) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::Wrong { n, found: found.into(), expected: expected.into() })
}

/// Computes a sample of the values in the range again by the definition: the first, the last, and `samples` others,
/// chosen at random from `seed`.
///
/// # Errors
/// [`Error::Wrong`] at the first value that differs; [`Error::Range`] when the range is not committed, [`Error::Freed`]
/// when it has an n whose options need discarded values.
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
    // The options of n need all values before n.
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

/// Computes the values at `heaps`, which are ascending, again by the definition, and compares them with those of
/// `past`.
///
/// # Errors
/// [`Error::Wrong`] at the first value that differs; errors of reading `past`.
pub fn sample<S: Sequence + ?Sized>(
    rule: &Rule,
    past: &S,
    heaps: &[u64],
    mut progress: impl FnMut(u64, u64),
) -> Result<()> {
    let mut done = 0;
    // Several n are computed in parallel; for a large n the pairs are searched in parallel as well.
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

/// Returns the next number of SplitMix64 (Steele, Lea and Flood 2014), which is the same for a seed on every machine.
pub(crate) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

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
//! again by the solver, with another kernel than the one that computed it; it finds every wrong value. [`definition()`]
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
//!
//! ```
//! use grundy::{Rule, Run, verify};
//!
//! # let home = tempfile::tempdir()?;
//! # let dir = &home.path().join("kayles");
//! let kayles: Rule = "kayles".parse()?;
//! Run::builder(&kayles, dir).to(5000).run()?;
//!
//! assert_eq!(verify::digest(dir, None, |_, _| {})?.checked, 5000);
//! assert_eq!(verify::exclusion(dir, None, |_, _| {})?.checked, 5000);
//! assert_eq!(verify::recompute(dir, Some(1000..3000), |_, _| {})?.checked, 2000);
//! verify::definition(dir, None, 20, 1, |done, all| assert!(done <= all))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod checked_run;
mod digest;
pub mod exclusion;
pub mod recompute;

pub use digest::{digest, verified};

use crate::checkpoint::journal::Origin;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::solver::{self, Method, SequenceStats, SparseSpace};
use crate::theory::definition::{self, Sequence};
use crate::theory::random::split_mix;
use crate::theory::rule::Rule;
use checked_run::{CheckedRun, open_consistent, ranges};
use rayon::prelude::*;
use std::ops::Range;
use std::path::Path;

/// The extent of a check that found nothing wrong.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
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
    /// Names of the kernels that computed the values again, joined by `, `; or `definition`.
    pub kernel: Option<String>,
}

/// A sequence to be checked, with its sparse space and statistics.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The rule of the game.
    pub rule: &'a Rule,
    /// The sparse space that decides which positions are rare, or [`SparseSpace::NONE`].
    pub space: SparseSpace,
    /// The values G(0), G(1), …
    pub values: &'a dyn Sequence,
    /// Rare positions and largest value of the whole sequence under `space`, discarded values included.
    pub stats: &'a SequenceStats,
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
/// when the range is not committed, [`Error::Discarded`] when it has an n whose options need discarded values.
pub fn exclusion(dir: &Path, range: Option<Range<u64>>, mut progress: impl FnMut(u64, u64)) -> Result<Report> {
    let mut run = CheckedRun::open(dir)?;
    if run.space == SparseSpace::NONE {
        run.space = exclusion_space(&run.view.rule, run.space)?;
        run.stats = SequenceStats::of(&run.view, run.space, &SequenceStats::default())?;
    }
    let (ranges, report) = ranges(&run.view, range, run.stats.last_rare() + run.view.rule.max_remove())?;
    let mut before = 0;
    for range in ranges {
        let length = range.end - range.start;
        exclusion::check(run.target(), range, overall(&mut progress, before, report.checked))?;
        before += length;
    }
    run.agree()?;
    Ok(report)
}

/// The space in which [`exclusion()`] checks a run in `space`: that space, or else the built-in one of a named game.
pub(crate) fn exclusion_space(rule: &Rule, space: SparseSpace) -> Result<SparseSpace> {
    if space != SparseSpace::NONE {
        return Ok(space);
    }
    match solver::choice::built_in(rule) {
        SparseSpace::NONE => Err(Error::NoSpace { game: rule.name().into() }),
        space => Ok(space),
    }
}

/// Computes every value of the range again, each with another kernel than the one that computed it ([`mod@recompute`]).
/// Values that no kernel computes, because a move leaves three heaps or the code repeats, are computed by the
/// definition.
///
/// # Errors
/// [`Error::Wrong`] at the first value that differs; [`Error::Damage`], [`Error::Range`] and [`Error::Discarded`] as
/// [`exclusion()`].
pub fn recompute(dir: &Path, range: Option<Range<u64>>, mut progress: impl FnMut(u64, u64)) -> Result<Report> {
    let run = CheckedRun::open(dir)?;
    let (ranges, mut report) = ranges(&run.view, range, solver::lookback(&run.view.rule, run.stats.last_rare()))?;
    let is_sparse = run.view.rule.may_be_sparse();
    let other = |kernel: &str| if is_sparse { Method::Sparse(other_kernel(kernel)) } else { Method::Definition };
    let (mut kernels, mut before) = (Vec::new(), 0);
    for (range, kernel) in ranges.iter().flat_map(|range| by_kernel(range, &run.view.contents.origins)) {
        let method = other(kernel);
        if !kernels.contains(&method.name()) {
            kernels.push(method.name());
        }
        let length = range.end - range.start;
        recompute::check(run.target(), method, range, overall(&mut progress, before, report.checked))?;
        before += length;
    }
    // An empty range has no kernel of its own.
    if kernels.is_empty() {
        kernels.push(other(&run.view.contents.last.kernel).name());
    }
    report.kernel = Some(kernels.join(", "));
    run.agree()?;
    Ok(report)
}

/// Divides a range by the kernels that computed its values.
fn by_kernel<'a>(range: &Range<u64>, origins: &'a [Origin]) -> Vec<(Range<u64>, &'a str)> {
    let mut parts: Vec<(Range<u64>, &str)> = Vec::new();
    let mut from = range.start;
    for origin in origins {
        let to = origin.to.min(range.end);
        if from < to {
            match parts.last_mut().filter(|(_, kernel)| *kernel == origin.kernel) {
                Some((part, _)) => part.end = to,
                None => parts.push((from..to, &origin.kernel)),
            }
            from = to;
        }
    }
    parts
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
/// [`Error::Wrong`] at the first value that differs; [`Error::Range`] when the range is not committed,
/// [`Error::Discarded`] when it has an n whose options need discarded values.
pub fn definition(
    dir: &Path,
    range: Option<Range<u64>>,
    samples: u64,
    seed: u64,
    progress: impl FnMut(u64, u64),
) -> Result<Report> {
    let view = open_consistent(dir)?;
    view.contents.require_no_torn_tail(dir)?;
    // The options of n need all values before n.
    let ([range, _], mut report) = ranges(&view, range, u64::MAX)?;
    (report.checked, report.kernel) = (0, Some("definition".into()));
    if range.is_empty() {
        return Ok(report);
    }
    let length = range.end - range.start;
    let drawn = (0..).map(|i| range.start + split_mix(seed, i) % length);
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
pub fn sample(rule: &Rule, past: &dyn Sequence, heaps: &[u64], mut progress: impl FnMut(u64, u64)) -> Result<()> {
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

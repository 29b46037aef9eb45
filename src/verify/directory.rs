//! The checks of a run directory by its values: which ranges each level can check, and with which kernel.

use super::checked_run::{CheckedRun, open_consistent, ranges};
use super::definition::sample;
use super::report::{Report, overall};
use crate::checkpoint::journal::{Origin, UNKNOWN_KERNEL};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::solver::{self, Method, SequenceStats, SparseSpace};
use crate::theory::random::split_mix;
use crate::theory::rule::Rule;
use std::ops::Range;
use std::path::Path;

/// Checks that no value of the range is that of an option with one rare part, and that the rare positions of the
/// range have the values of the definition ([`mod@super::exclusion`]).
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
        super::exclusion::check(run.target(), range, overall(&mut progress, before, report.checked))?;
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

/// Computes every value of the range again, each with another kernel than the one that computed it
/// ([`mod@super::recompute`]); with two kernels where that one is not known. Values that no kernel computes, because a
/// move leaves three heaps or the code repeats, are computed by the definition.
///
/// # Errors
/// [`Error::Wrong`] at the first value that differs; [`Error::Damage`], [`Error::Range`] and [`Error::Discarded`] as
/// [`exclusion()`].
pub fn recompute(dir: &Path, range: Option<Range<u64>>, mut progress: impl FnMut(u64, u64)) -> Result<Report> {
    let run = CheckedRun::open(dir)?;
    let (ranges, mut report) = ranges(&run.view, range, solver::lookback(&run.view.rule, run.stats.last_rare()))?;
    let is_sparse = run.view.rule.may_be_sparse();
    let methods = |kernel: &str| -> Vec<Method> {
        if is_sparse {
            other_kernels(kernel).into_iter().map(Method::Sparse).collect()
        } else {
            vec![Method::Definition]
        }
    };
    let parts: Vec<(Range<u64>, Method)> = ranges
        .iter()
        .flat_map(|range| by_kernel(range, &run.view.contents.origins))
        .flat_map(|(range, kernel)| methods(kernel).into_iter().map(move |method| (range.clone(), method)))
        .collect();
    let all = parts.iter().map(|(range, _)| range.end - range.start).sum();
    let mut before = 0;
    for (range, method) in &parts {
        super::recompute::check(run.target(), *method, range.clone(), overall(&mut progress, before, all))?;
        before += range.end - range.start;
    }
    let mut used: Vec<Method> = parts.into_iter().map(|(_, method)| method).collect();
    if used.is_empty() {
        // An empty range has no kernel of its own.
        used = methods(&run.view.contents.last.kernel);
    }
    let mut kernels: Vec<&str> = Vec::new();
    for method in used {
        if !kernels.contains(&method.name()) {
            kernels.push(method.name());
        }
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

/// Returns the kernels with which values that the kernel `name` computed are checked. The name may be that of the
/// definition, or of a kernel that this processor does not support. If it is not known, two kernels check the values,
/// so that at least one of them is another.
fn other_kernels(name: &str) -> Vec<Kernel> {
    let best = Kernel::best();
    match name {
        UNKNOWN_KERNEL if best.other() != best => vec![best, best.other()],
        _ => vec![name.parse().map_or(best, Kernel::other)],
    }
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
    let heaps = sampled(&range, samples, seed);
    sample(&view.rule, &view, &heaps, progress)?;
    report.checked = heaps.len() as u64;
    Ok(report)
}

/// The n of a range that [`definition()`] recomputes, ascending: the first, the last, and up to `samples` others.
pub(crate) fn sampled(range: &Range<u64>, samples: u64, seed: u64) -> Vec<u64> {
    let length = range.end - range.start;
    let drawn = (0..).map(|i| range.start + split_mix(seed, i) % length);
    let count = usize::try_from(samples).unwrap_or(usize::MAX);
    let mut heaps: Vec<u64> = if samples >= length { range.clone().collect() } else { drawn.take(count).collect() };
    heaps.extend([range.start, range.end - 1]);
    heaps.sort_unstable();
    heaps.dedup();
    heaps
}

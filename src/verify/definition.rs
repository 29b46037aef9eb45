//! Checks values by the definition: a sample of a run, or given n of any sequence.

use super::checked_run::{open_consistent, ranges};
use super::report::Report;
use super::target::compare;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::theory::definition::{self, Sequence};
use crate::theory::random::split_mix;
use crate::theory::rule::Rule;
use rayon::prelude::*;
use std::ops::Range;
use std::path::Path;

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

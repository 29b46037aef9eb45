//! Checks values by the definition.

use super::target::compare;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::theory::definition::{self, Sequence};
use crate::theory::rule::Rule;
use rayon::prelude::*;

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

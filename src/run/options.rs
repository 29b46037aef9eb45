//! The options and the internal settings of a run.

use crate::solver::Method;
use crate::table::Width;

/// Options of a run; [`Run`](super::Run) sets them one by one.
///
/// ```
/// use grundy::run::Options;
///
/// let options = Options { to: Some(1_000_000), ..Options::default() };
/// assert_eq!((options.threads, options.keep, options.rollback), (0, None, false));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The number of values that the run has at its end, those already committed included; `None` to continue until the
    /// run is stopped.
    pub to: Option<u64>,
    /// Number of threads; 0 for one per core.
    pub threads: usize,
    /// The method that computes the values.
    pub method: Method,
    /// The width of a new table; `None` to let the first values decide.
    pub width: Option<Width>,
    /// Retain the first 2^26 values and at least this number of the last ones, and discard the others; `None` to retain
    /// what the run retained before, and every value of a new run.
    pub keep: Option<u64>,
    /// Return to the last commit that the files support, if the table disagrees with the journal or the journal is
    /// damaged.
    pub rollback: bool,
}

/// Internal settings of a run; outside tests, the default is right.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunPolicy {
    /// Commit after each multiple of this number of values, and wait for each commit; `None` to commit by the clock.
    pub commit_every: Option<u64>,
    /// Recompute values that disagree with the journal, and restore them if they then agree.
    pub repair: bool,
    /// The seed that selects the audited values; `None` for a random one.
    pub seed: Option<u64>,
}

impl Default for RunPolicy {
    fn default() -> RunPolicy {
        RunPolicy { commit_every: None, repair: true, seed: None }
    }
}

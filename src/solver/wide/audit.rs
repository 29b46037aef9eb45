//! The audit of the wide solver: for a sample of the runs, another kernel computes again what the options leave open,
//! and compares the candidates with all far lookups.

use super::WideSolver;
use super::far::FarRun;
use super::reader::Reader;
use super::run::Run;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, WIDE_LANES};
use crate::solver::audit;

/// Number of runs of [`WIDE_LANES`] positions per audited run.
const ONE_IN: u64 = 50;

/// The same where all pairs are compared, for which the kernel that audits takes several times as long.
pub(super) const ONE_IN_OF_ALL_PAIRS: u64 = 400;

impl WideSolver {
    /// Audits a sample of the positions, which `seed` selects.
    pub(in crate::solver) fn set_audit(&mut self, seed: Option<u64>) {
        self.audit = seed;
    }

    /// Does a part of the work on a run, `step`. Another kernel does it again for some runs.
    ///
    /// # Errors
    /// [`Error::OptionsDiffer`] when the results differ.
    pub(super) fn audited(&self, run: Run<'_>, far: &mut FarRun, step: impl Fn(Kernel, &mut FarRun)) -> Result<()> {
        let again = self.is_audited(run).then(|| far.clone());
        step(self.kernel, far);
        let Some(mut again) = again else { return Ok(()) };
        step(self.kernel.other(), &mut again);
        // The order of the parts that a search found is unspecified.
        far.lanes.iter_mut().chain(&mut again.lanes).for_each(|lane| lane.searched.parts.sort_unstable());
        let (lanes, again) = (&far.lanes, again.lanes);
        match (0..lanes.len()).find(|&lane| lanes[lane] != again[lane]) {
            Some(lane) => Err(self.options_differ(run, lane)),
            None => Ok(()),
        }
    }

    /// Compares the candidates of some runs with all far lookups, marked or not, by another kernel.
    ///
    /// # Errors
    /// [`Error::OptionsDiffer`] when one of them is an option.
    pub(super) fn check_candidates(&self, reader: &Reader<'_>, run: Run<'_>, far: &FarRun) -> Result<()> {
        if !self.is_audited(run) {
            return Ok(());
        }
        match reader.lane_with_option(self.kernel.other(), run, &far.lanes) {
            Some(lane) => Err(self.options_differ(run, lane)),
            None => Ok(()),
        }
    }

    /// The error of an audit that finds other options of the position of a lane.
    pub(super) fn options_differ(&self, run: Run<'_>, lane: usize) -> Error {
        let [kernel, other] = [self.kernel, self.kernel.other()].map(Kernel::name);
        Error::OptionsDiffer { n: run.first + lane as u64, kernel, other }
    }

    /// Whether another kernel computes a run again.
    pub(super) fn is_audited(&self, run: Run<'_>) -> bool {
        let one_in = if self.all_pairs.in_far_step { ONE_IN_OF_ALL_PAIRS } else { ONE_IN };
        self.audit.is_some_and(|seed| audit::choice(seed, run.first / WIDE_LANES as u64).is_multiple_of(one_in))
    }
}

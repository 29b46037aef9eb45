//! The jobs of a kernel: their contracts, the checks of their arguments, and the choice of the implementation.
//!
//! # Terms
//!
//! - A *code* is a byte that stands for a common value. A kernel knows only that it takes XORs and minima of codes.
//! - The *window* is a slice of the codes of earlier values, in the order of n.
//! - *Lane* i of a group of [`LANES`] consecutive n belongs to the index `at + i` of the window.
//! - A [`Probe`](super::Probe) is a lookup: one part of a split has a known value, and the window holds the code of the
//!   other part. In lane i it gives the *option* `window[at + i - offset] ^ code`. It *hits* a code in a lane if its
//!   option there is this code.
//! - A job for *far* probes reads only inside the window, for all lanes. Probes with offsets of at least [`LANES`]
//!   always do; others do if the codes of the lanes are known. A *near* probe has an offset below [`LANES`], and reads
//!   the codes of earlier lanes, which the job finds.
//! - The codes below [`BitPlanes::codes`] are *considered*. A considered code is *open* in a lane if no probe marked so
//!   far hits it there.
//! - A *candidate* of a lane is a code that no probe checked so far hits; the least code that no probe hits at all is
//!   the answer.
//!
//! # Jobs
//!
//! | job | result | caller |
//! |---|---|---|
//! | [`Kernel::mark`] | the options of probes in [`BitPlanes`], a bit per code and lane | all parts of the solver |
//! | [`Kernel::refine`] | the least open codes of each lane that no further far probe hits | candidates |
//! | [`Kernel::check`] | the same candidates without those that further far probes hit | candidates |
//! | [`Kernel::near`] | the answers of the lanes one after the other, with the near probes | candidates |
//! | [`Kernel::recurrence`] | the answers for any number of n, from a short list of near and far probes | candidates |
//! | [`Kernel::marks_to_open`] | the open codes below a bound | witnesses, `lookup_order` |
//! | [`Kernel::clear_hits`] | the open codes, without the least of them that further probes hit | witnesses |
//! | [`Kernel::find_code_pairs`] | for each code of a list, pairs whose XOR is the code | witnesses |
//! | [`Kernel::find_code_pair`] | after how many pairs one gives a code | `exhaustive` |
//! | [`Kernel::find_value_pair`] | after how many pairs one gives a 16-bit value | witnesses |
//! | [`Kernel::repeats`], [`Kernel::repeats_value`] | whether a finished value is an option of its own n | `verify` |
//!
//! Marking a probe costs a table access per row of eight codes; checking it costs two instructions per candidate. A
//! good order of the probes (many hits first) makes both lists shorter: see `solver::lookup_order`.

use super::probes::FarProbes;
use super::{
    BitPlanes, CANDIDATES, KEEP, Kernel, LANES, Lanes, NONE, NearProbes, Platform, Probes, Recurrence, Stage, portable,
    recurrence, scalar,
};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};

/// Number of pairs that [`Kernel::find_code_pair`] tests at a time: it stops only after a multiple of it, or at the
/// end.
pub(super) const PAIRS_BETWEEN_TESTS: usize = 128;

/// Maximum number of open codes per lane that [`Kernel::clear_hits`] compares with probes: the least ones.
pub(crate) const MAX_CLEARED_CODES: usize = 4;

/// Number of consecutive values that one call of [`Kernel::repeats`] tests.
pub(crate) const REPEATS_VALUES: usize = 256;

/// The near probes of a group of lanes, and the lanes to fill.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NearJob<'a> {
    /// Index of lane 0 in the window.
    pub(crate) at: usize,
    /// The near probes.
    pub(crate) probes: &'a NearProbes,
    /// The first lane to fill. The codes before it are known.
    pub(crate) from: usize,
    /// One past the last lane to fill.
    pub(crate) to: usize,
}

/// Calls the implementation of a job for the instruction set of a kernel. A [`Kernel`] exists only where the processor
/// has its instructions. Where an implementation requires more, its section "Safety" says so, and the method that calls
/// it has asserted it.
macro_rules! dispatch {
    ($kernel:expr, $scalar:expr, $avx2:expr, $avx512:expr) => {
        match $kernel.0 {
            Platform::Scalar => $scalar,
            // SAFETY: only `available` creates this kind, after it has detected the instructions. The method asserts
            // what the implementation requires of the arguments.
            #[cfg(target_arch = "x86_64")]
            Platform::Avx2 => unsafe { $avx2 },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Platform::Avx512 => unsafe { $avx512 },
        }
    };
}
pub(super) use dispatch;

/// The jobs of the candidate stream.
impl Kernel {
    /// Marks in `planes` the options of far probes, in the lanes from index `at` of the window on. Ignores options that
    /// are not considered. Earlier marks stay.
    ///
    /// # Panics
    /// If a probe reads codes outside the window.
    pub(crate) fn mark(self, window: &[u8], at: usize, probes: &Probes, planes: &mut BitPlanes) {
        let far = FarProbes::new(window, at, probes);
        dispatch!(self, scalar::mark(far, planes), avx2::mark(far, planes), avx512::mark(far, planes));
    }

    /// Computes the candidates of each lane: the least codes that neither the marked probes nor those of the stages
    /// hit.
    ///
    /// The open codes of a lane, and the [`BEYOND`](super::BEYOND) codes just above those considered, form an ascending
    /// list. Each stage cuts the list to its `keep` least codes, and removes those that one of its probes hits. The
    /// result is the list after the last stage.
    ///
    /// # Panics
    /// If there is no stage, a stage keeps more candidates than the one before or a number that is none of `KEEP`, or a
    /// probe reads codes outside the window.
    #[must_use]
    pub(crate) fn refine(self, window: &[u8], at: usize, planes: &BitPlanes, stages: &[Stage]) -> Lanes {
        assert!(stages.iter().all(|s| KEEP.contains(&s.keep)), "the number of candidates kept must be one of KEEP");
        assert!(
            stages.is_sorted_by(|a, b| a.keep >= b.keep),
            "a stage must not keep more candidates than the one before"
        );
        let considered_below = [planes.codes().to_le_bytes()[0]; LANES];
        let mut lanes = Lanes { code: [[NONE; LANES]; CANDIDATES], kept: stages[0].keep, held: 0, considered_below };
        dispatch!(
            self,
            scalar::least_codes(planes, &mut lanes),
            avx2::least_codes(planes, &mut lanes),
            avx512::least_codes(planes, &mut lanes)
        );
        for stage in stages {
            lanes.kept = stage.keep;
            self.check(window, at, &stage.check, &mut lanes);
        }
        lanes.code[lanes.kept..].fill([NONE; LANES]);
        lanes.held = lanes.kept;
        lanes
    }

    /// Removes the candidates that a far probe hits, and leaves those set aside as they are.
    ///
    /// # Panics
    /// If a probe reads codes outside the window.
    pub(crate) fn check(self, window: &[u8], at: usize, probes: &Probes, lanes: &mut Lanes) {
        let far = FarProbes::new(window, at, probes);
        if far.list().is_empty() {
            return;
        }
        dispatch!(self, scalar::check(far, lanes), avx2::check(far, lanes), avx512::check(far, lanes));
    }

    /// Fills `window[at + lane]` for `from <= lane < to`, in ascending order, with the least of the candidates `lanes`
    /// that no near probe hits. Stops at the first lane that has no such candidate, or whose least one a marked probe
    /// may hit ([`Lanes::is_unconsidered`]). Returns that lane, or `to`. The codes from the returned lane on are
    /// unspecified.
    ///
    /// # Panics
    /// If the offset of a probe is 0, [`LANES`] or more, or above `at`, or if the lanes are not inside the window.
    pub(crate) fn near(self, window: &mut [u8], job: NearJob<'_>, lanes: &Lanes) -> usize {
        let NearJob { at, probes, from, to } = job;
        assert!(from <= to && to <= LANES, "no such lanes");
        assert!(at <= window.len() && to <= window.len() - at, "lanes outside the window");
        assert!(probes.are_near(at), "a probe outside its window");
        if from == to {
            return to;
        }
        dispatch!(
            self,
            scalar::near(window, job, lanes),
            avx2::near(window, job, lanes),
            avx512::near(window, job, lanes)
        )
    }

    /// Fills `window[n]` for `at <= n < to`, in ascending order, with the least code below the range of `recurrence`
    /// that no probe hits. Stops at the first `n` that has none. Returns that `n`, or `to`, and writes nothing from
    /// there on.
    ///
    /// # Panics
    /// If the offset of a probe is 0 or above `at`, `at` is below [`LANES`], or `to` is below `at` or outside the
    /// window.
    pub(crate) fn recurrence(self, window: &mut [u8], at: usize, to: usize, recurrence: &Recurrence) -> usize {
        assert!(at <= to && to <= window.len(), "positions outside the window");
        assert!(recurrence.is_inside(at), "a probe outside its window");
        dispatch!(
            self,
            recurrence::scalar(window, at, to, recurrence),
            recurrence::avx2(window, at, to, recurrence),
            avx512::recurrence(window, at, to, recurrence)
        )
    }
}

/// The jobs of the witness search, the exhaustive search and `verify`.
impl Kernel {
    /// Replaces the marks of `planes` by the open codes below a bound: afterwards a bit is set exactly if its code was
    /// not marked and is below `below[lane]`.
    pub(crate) fn marks_to_open(self, planes: &mut BitPlanes, below: &[u8; LANES]) {
        dispatch!(
            self,
            portable::open(planes, below),
            portable::open_avx2(planes, below),
            portable::open_avx512(planes, below)
        );
    }

    /// Of the [`MAX_CLEARED_CODES`] least bits set in each lane, clears those whose code a far probe hits.
    ///
    /// # Panics
    /// If a probe reads codes outside the window.
    pub(crate) fn clear_hits(self, window: &[u8], at: usize, probes: &Probes, open: &mut BitPlanes) {
        let far = FarProbes::new(window, at, probes);
        if far.list().is_empty() {
            return;
        }
        dispatch!(self, scalar::clear_hits(far, open), avx2::clear_hits(far, open), avx512::clear_hits(far, open));
    }

    /// Searches a pair from `a` and `b` whose XOR is `wanted`. Pair k, counted from 1, consists of the k-th items from
    /// the ends; the longer slice has items without a partner. Tests [`PAIRS_BETWEEN_TESTS`] pairs at a time, from pair
    /// 1 on. Returns the number of pairs tested when one of them gives `wanted`, or `None` when none does.
    #[must_use]
    pub(crate) fn find_code_pair(self, a: &[u8], b: &[u8], wanted: u8) -> Option<usize> {
        dispatch!(
            self,
            portable::find_pair(a, b, wanted),
            portable::find_code_pair_avx2(a, b, wanted),
            avx512::find_code_pair(a, b, wanted)
        )
    }

    /// [`Kernel::find_code_pair`] for 16-bit values instead of codes.
    #[must_use]
    pub(crate) fn find_value_pair(self, a: &[u16], b: &[u16], wanted: u16) -> Option<usize> {
        dispatch!(
            self,
            portable::find_pair(a, b, wanted),
            portable::find_value_pair_avx2(a, b, wanted),
            portable::find_value_pair_avx512(a, b, wanted)
        )
    }

    /// Searches each code of `wanted` among the XORs of pairs from `a` and `b`, numbered as in
    /// [`Kernel::find_code_pair`]. Calls `good(code, k)` for each pair k that gives the code, in ascending order of
    /// k, until `good` returns true; then removes the code from `wanted`. The order of calls for different codes is
    /// unspecified, and so is the order of the codes left. The codes of `wanted` must differ.
    pub(crate) fn find_code_pairs(self, a: &[u8], b: &[u8], wanted: &mut Vec<u8>, good: impl FnMut(u8, usize) -> bool) {
        dispatch!(
            self,
            scalar::find_code_pairs(a, b, wanted, good),
            avx2::find_code_pairs(a, b, wanted, good),
            avx512::find_code_pairs(a, b, wanted, good)
        );
    }

    /// Whether `window[n - offset] ^ item == window[n]` for some lookup `(offset, item)` and one of the
    /// [`REPEATS_VALUES`] positions n from `at` on.
    ///
    /// # Panics
    /// If these positions, or the items that a lookup reads, are outside the window.
    #[must_use]
    pub(crate) fn repeats(self, window: &[u8], at: usize, lookups: &[(usize, u8)]) -> bool {
        dispatch!(
            self,
            portable::repeats(window, at, lookups),
            portable::repeats_avx2(window, at, lookups),
            portable::repeats_avx512(window, at, lookups)
        )
    }

    /// [`Kernel::repeats`] for 16-bit values.
    ///
    /// # Panics
    /// As for [`Kernel::repeats`].
    #[must_use]
    pub(crate) fn repeats_value(self, window: &[u16], at: usize, lookups: &[(usize, u16)]) -> bool {
        dispatch!(
            self,
            portable::repeats(window, at, lookups),
            portable::repeats_value_avx2(window, at, lookups),
            portable::repeats_value_avx512(window, at, lookups)
        )
    }
}

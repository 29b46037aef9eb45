//! The jobs of a kernel: their contracts, the checks of their arguments, and the choice of the implementation.

use super::{
    BitPlanes, CANDIDATES, KEEP, Kernel, LANES, Lanes, NONE, Platform, Probes, Recurrence, Stage, portable, recurrence,
    scalar,
};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};

/// Number of pairs that a search computes between two tests whether one of them gives the wanted value.
pub const PAIRS_BETWEEN_TESTS: usize = 128;

/// Maximum number of open codes per lane that [`Kernel::clear_hits`] tests: the least ones.
pub const MAX_CLEAR_PROBES: usize = 4;

/// Number of consecutive values that one call of [`Kernel::repeats`] tests.
pub const HEAPS: usize = 256;

/// Calls a job of the chosen kernel. All calls are safe for the same reason: a [`Kernel`] exists only where the
/// processor has its instructions.
macro_rules! dispatch {
    ($kernel:expr, $scalar:expr, $avx2:expr, $avx512:expr) => {
        match $kernel.0 {
            Platform::Scalar => $scalar,
            // SAFETY: only `available` creates this kind, after it has detected the instructions.
            #[cfg(target_arch = "x86_64")]
            Platform::Avx2 => unsafe { $avx2 },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Platform::Avx512 => unsafe { $avx512 },
        }
    };
}

impl Kernel {
    /// Marks in `planes` the options of `probes`, for the lanes from index `at` of the window on. Ignores options at or
    /// above the number of codes considered.
    ///
    /// # Panics
    /// If a probe reads bytes outside the window.
    pub fn mark(self, window: &[u8], at: usize, probes: &Probes, planes: &mut BitPlanes) {
        assert!(probes.are_far(at, window.len()), "a probe outside its window");
        dispatch!(
            self,
            scalar::mark(window, at, probes, planes),
            avx2::mark(window, at, probes, planes),
            avx512::mark(window, at, probes, planes)
        );
    }

    /// Computes the candidates of each lane.
    ///
    /// The `keep` least codes among the open codes and the [`BEYOND`] codes behind those considered enter the first
    /// stage. Each stage drops the candidates that one of its probes hits, and passes the `keep` least of the others,
    /// with `keep` of the next stage, on to that stage.
    ///
    /// # Panics
    /// If there is no stage, a stage keeps more candidates than the one before or a number that is none of [`KEEP`], or
    /// a probe reads bytes outside the window.
    #[must_use]
    pub fn refine(self, window: &[u8], at: usize, planes: &BitPlanes, stages: &[Stage]) -> Lanes {
        assert!(stages.iter().all(|s| s.check.are_far(at, window.len())), "a probe outside its window");
        assert!(stages.iter().all(|s| KEEP.contains(&s.keep)), "the number of candidates kept must be one of KEEP");
        assert!(
            stages.is_sorted_by(|a, b| a.keep >= b.keep),
            "a stage must not keep more candidates than the one before"
        );
        let marked = planes.codes.to_le_bytes()[0];
        let mut lanes = Lanes { code: [[NONE; LANES]; CANDIDATES], kept: stages[0].keep, marked };
        dispatch!(
            self,
            scalar::least(planes, &mut lanes),
            avx2::least_codes(planes, &mut lanes),
            avx512::least_codes(planes, &mut lanes)
        );
        for stage in stages {
            lanes.kept = stage.keep;
            dispatch!(
                self,
                scalar::check(window, at, &stage.check, &mut lanes),
                avx2::check(window, at, &stage.check, &mut lanes),
                avx512::check(window, at, &stage.check, &mut lanes)
            );
        }
        lanes.code[lanes.kept..].fill([NONE; LANES]);
        lanes
    }

    /// Complements the planes and masks them: afterwards a bit is set if its code was not marked and is below
    /// `below[lane]`.
    pub fn open(self, planes: &mut BitPlanes, below: &[u8; LANES]) {
        dispatch!(
            self,
            portable::open(planes, below),
            portable::open_avx2(planes, below),
            portable::open_avx512(planes, below)
        );
    }

    /// Fills `window[at + lane]` for `from <= lane < to`, in ascending order, with the least candidate that no near
    /// probe hits. Stops at the first lane whose least such candidate does not exist or was not covered by marking.
    /// Returns that lane, or `to`.
    ///
    /// # Panics
    /// If the offset of a probe is 0, [`LANES`] or more, or above `at`, or if the lanes are not inside the window.
    pub fn near(self, window: &mut [u8], at: usize, near: &Probes, lanes: &Lanes, from: usize, to: usize) -> usize {
        assert!(from <= to && to <= LANES, "no such lanes");
        assert!(at <= window.len() && to <= window.len() - at, "lanes outside the window");
        assert!(near.are_near(at), "a probe outside its window");
        match self.0 {
            _ if from == to => to,
            // SAFETY: only `available` creates this kind, after it has detected the instructions.
            #[cfg(target_arch = "x86_64")]
            Platform::Avx512 => unsafe { avx512::near(window, at, near, lanes, from, to) },
            _ => scalar::near(window, at, near, lanes, from, to),
        }
    }

    /// Fills `window[n]` for `at <= n < to`, in ascending order, with the least code below [`RECURRENCE_CODES`] that no
    /// probe hits. Stops at the first `n` that has none. Returns that `n`, or `to`, and writes nothing from there on.
    ///
    /// # Panics
    /// If the offset of a probe is 0 or above `at`, `at` is below [`LANES`], or `to` is below `at` or outside the
    /// window.
    pub fn chain(self, window: &mut [u8], at: usize, to: usize, chain: &Recurrence) -> usize {
        assert!(at <= to && to <= window.len(), "positions outside the window");
        assert!(chain.is_inside(at), "a probe outside its window");
        dispatch!(
            self,
            recurrence::scalar(window, at, to, chain),
            recurrence::avx2(window, at, to, chain),
            recurrence::avx512(window, at, to, chain)
        )
    }

    /// Of the [`MAX_CLEAR_PROBES`] least bits set in each lane, clears those whose code a probe hits.
    ///
    /// # Panics
    /// If a probe reads bytes outside the window.
    pub fn clear_hits(self, window: &[u8], at: usize, probes: &Probes, open: &mut BitPlanes) {
        assert!(probes.are_far(at, window.len()), "a probe outside its window");
        if probes.list().is_empty() {
            return;
        }
        dispatch!(
            self,
            scalar::clear_hits(window, at, probes, open),
            avx2::clear_hits(window, at, probes, open),
            avx512::clear_hits(window, at, probes, open)
        );
    }

    /// Searches `wanted` among the XORs of pairs from `a` and `b`: pair k, counted from 1, consists of the k-th items
    /// from the ends. Tests [`PAIRS_BETWEEN_TESTS`] pairs at a time. Returns the number of pairs tested when one gives
    /// `wanted`, or `None` when none does.
    #[must_use]
    pub fn find(self, a: &[u8], b: &[u8], wanted: u8) -> Option<usize> {
        dispatch!(self, portable::find(a, b, wanted), portable::find_avx2(a, b, wanted), avx512::find(a, b, wanted))
    }

    /// Searches each of the `wanted` codes, which must differ, among the XORs of pairs from `a` and `b`, numbered as in
    /// [`Kernel::find`]. Calls `good(code, k)` for each pair k that gives a wanted code, and removes the code from
    /// `wanted` when `good` returns true. For one code the calls are in ascending order of k; between codes the order
    /// is unspecified.
    pub fn find_each(self, a: &[u8], b: &[u8], wanted: &mut Vec<u8>, good: impl FnMut(u8, usize) -> bool) {
        dispatch!(
            self,
            scalar::find_each(a, b, wanted, good),
            avx2::find_each(a, b, wanted, good),
            avx512::find_each(a, b, wanted, good)
        );
    }

    /// [`Kernel::find`] for 16-bit values.
    #[must_use]
    pub fn find_value(self, a: &[u16], b: &[u16], wanted: u16) -> Option<usize> {
        dispatch!(
            self,
            portable::find(a, b, wanted),
            portable::find_value_avx2(a, b, wanted),
            portable::find_value_avx512(a, b, wanted)
        )
    }
}

impl Kernel {
    /// Whether `window[n - offset] ^ item == window[n]` for some lookup `(offset, item)` and one of the [`HEAPS`]
    /// positions n from `at` on.
    ///
    /// # Panics
    /// If these positions, or the items that a lookup reads, are outside the window.
    #[must_use]
    pub fn repeats(self, window: &[u8], at: usize, lookups: &[(usize, u8)]) -> bool {
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
    pub fn repeats_value(self, window: &[u16], at: usize, lookups: &[(usize, u16)]) -> bool {
        dispatch!(
            self,
            portable::repeats(window, at, lookups),
            portable::repeats_value_avx2(window, at, lookups),
            portable::repeats_value_avx512(window, at, lookups)
        )
    }
}

//! The mex kernels: for 64 consecutive n at once, the least values that no lookup hits.
//!
//! Each job has one contract, one signature, one reference (`scalar`) and one test that all kernels share. A kernel
//! sees only bytes and offsets. [`crate::solver`] decides what the bytes mean (the order-preserving code of common
//! values).
//!
//! A lookup ([`Probe`]) represents one part of a split whose value is known: for lane i it gives the option
//! `window[at + i - offset] ^ code`, where `at` is the index of lane 0 in the window. A lookup hits a code when this
//! option is the code. The jobs are:
//!
//! - [`Kernel::mark`]: enters the options of some lookups in [`BitPlanes`], one bit per code and lane. Both streams use
//!   it: the candidates mark the lookups of rare parts, the witnesses those of common parts.
//! - [`Kernel::refine`]: checks the least open codes, and a few codes behind those marked ([`BEYOND`]), against the
//!   other lookups, in stages that keep fewer and fewer of them ([`Stage`]). Marking a lookup costs a table access,
//!   checking it costs two instructions per candidate, so a good order of the lookups (many hits first) shortens both:
//!   see `solver::lookup_order`.
//! - [`Kernel::near`]: evaluates the lookups with offsets below 64, lane by lane, because each lane needs the values
//!   just before it.
//! - [`Kernel::open`], [`Kernel::clear_hits`]: the codes below a bound that are still open after marking, without the
//!   least of them that some more lookups hit. The witness search uses them.
//! - [`Kernel::find_each`]: searches witnesses for all targets of one n. [`Kernel::find`] and [`Kernel::find_value`]
//!   search one value.
//! - [`Kernel::repeats`], [`Kernel::repeats_value`]: whether a finished value is an option of its own n. The check of a
//!   table uses them.
//! - [`Kernel::chain`]: evaluates all lookups, near and far, for any number of values, where the lookups are few: see
//!   `recurrence`.
//!
//! Invariant: a [`Kernel`] value comes from [`Kernel::available`] (or is the portable one), so holding one proves that
//! this processor supports it.

#![allow(unsafe_code)] // vector instructions, and calls of functions compiled for them

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod bench;
mod portable;
mod recurrence;
mod scalar;

pub use recurrence::{RECURRENCE_CODES, Recurrence};
use std::fmt;

/// Number of consecutive values (lanes) that a kernel computes at once.
pub const LANES: usize = 64;

/// The numbers of codes that a kernel can consider. They are multiples of 8, because every eight codes take one
/// register and one or two instructions per lookup. A lane whose answer lies beyond the codes considered may get no
/// candidate.
pub const CODES: [usize; 12] = [16, 32, 64, 72, 80, 88, 96, 112, 128, 136, 144, 160];

/// Maximum number of codes that a kernel can consider.
pub const MOST_CODES: usize = CODES[CODES.len() - 1];

/// Number of codes behind those considered that are candidates as well, though none of them is ever marked.
pub const BEYOND: usize = 16;

/// Number of pairs that a search computes between two tests whether one of them gives the wanted value.
pub const PAIRS_BETWEEN_TESTS: usize = 128;

/// The numbers of candidates per lane that a stage of checking can keep, descending.
pub const KEEP: [usize; 7] = [12, 8, 6, 5, 4, 3, 2];

/// Maximum number of candidates per lane.
pub const CANDIDATES: usize = KEEP[0];

/// Maximum number of open codes per lane that [`Kernel::clear_hits`] tests: the least ones.
pub const MAX_CLEAR_PROBES: usize = 4;

/// Number of consecutive values that one call of [`Kernel::repeats`] tests.
pub const HEAPS: usize = 256;

/// The byte for "no candidate"; at least [`MOST_CODES`].
pub const NONE: u8 = u8::MAX;

/// One lookup: the byte `offset` positions back in the window, XOR `code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Probe {
    /// The code, four times: vector instructions broadcast this form at no cost. It is the first field, because
    /// otherwise the compiler loads both fields and separates them with two shuffles.
    codes: [u8; 4],
    /// Distance back in the window, in values.
    pub offset: usize,
}

impl Probe {
    /// The lookup of the byte `offset` positions back, XOR `code`.
    #[must_use]
    pub fn new(offset: usize, code: u8) -> Probe {
        Probe { offset, codes: [code; 4] }
    }

    /// The code that is XORed to the byte.
    #[inline]
    #[must_use]
    pub fn code(&self) -> u8 {
        self.codes[0]
    }
}

/// A list of lookups with their least and largest offset, so that the bounds of a window can be checked without a scan.
#[derive(Clone, Debug, Hash)]
pub struct Probes {
    list: Vec<Probe>,
    min_offset: usize,
    max_offset: usize,
}

impl Default for Probes {
    fn default() -> Probes {
        Probes::new()
    }
}

impl FromIterator<Probe> for Probes {
    fn from_iter<I: IntoIterator<Item = Probe>>(list: I) -> Probes {
        let mut probes = Probes::new();
        list.into_iter().for_each(|probe| probes.push(probe));
        probes
    }
}

impl Probes {
    /// An empty list.
    #[must_use]
    pub fn new() -> Probes {
        Probes { list: Vec::new(), min_offset: usize::MAX, max_offset: 0 }
    }

    /// Appends a lookup.
    pub fn push(&mut self, probe: Probe) {
        self.min_offset = self.min_offset.min(probe.offset);
        self.max_offset = self.max_offset.max(probe.offset);
        self.list.push(probe);
    }

    /// Removes all lookups.
    pub fn clear(&mut self) {
        self.list.clear();
        (self.min_offset, self.max_offset) = (usize::MAX, 0);
    }

    /// The lookups, in the order in which they were added.
    #[must_use]
    pub fn list(&self) -> &[Probe] {
        &self.list
    }

    /// The largest offset; 0 for an empty list.
    #[must_use]
    pub fn max_offset(&self) -> usize {
        self.max_offset
    }

    /// Whether the 64 bytes that each lookup reads are inside a window of this length.
    fn are_far(&self, at: usize, length: usize) -> bool {
        self.list.is_empty() || (self.min_offset + length >= at + LANES && self.max_offset <= at)
    }

    /// Whether each offset is in `1..LANES` and inside the window.
    fn are_near(&self, at: usize) -> bool {
        self.list.is_empty() || (self.min_offset >= 1 && self.max_offset < LANES && self.max_offset <= at)
    }
}

/// The codes marked as options in each lane: bit b of `rows[j][lane]` represents the code 8j + b.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub struct BitPlanes {
    /// The rows behind the codes considered are empty.
    rows: [[u8; LANES]; (MOST_CODES + BEYOND) / 8],
    /// Number of codes considered.
    codes: usize,
}

impl BitPlanes {
    /// Empty planes, in which options below `codes` can be marked.
    ///
    /// # Panics
    /// If `codes` is none of [`CODES`].
    #[must_use]
    pub fn new(codes: usize) -> BitPlanes {
        assert!(CODES.contains(&codes), "the number of codes must be one of CODES");
        BitPlanes { rows: [[0; LANES]; (MOST_CODES + BEYOND) / 8], codes }
    }

    /// Clears all marks; from now on options below `codes` can be marked.
    ///
    /// # Panics
    /// If `codes` is none of [`CODES`].
    pub fn clear(&mut self, codes: usize) {
        assert!(CODES.contains(&codes), "the number of codes must be one of CODES");
        self.rows_mut().fill([0; LANES]);
        self.codes = codes;
    }

    /// The number of codes considered: those below it.
    #[must_use]
    pub fn codes(&self) -> usize {
        self.codes
    }

    /// The rows of the codes considered, eight codes per row.
    #[must_use]
    pub fn rows(&self) -> &[[u8; LANES]] {
        &self.rows[..self.codes / 8]
    }

    /// The codes considered that are not marked in one lane, ascending.
    ///
    /// # Panics
    /// If `lane` is not below [`LANES`].
    pub fn open(&self, lane: usize) -> impl Iterator<Item = u8> {
        assert!(lane < LANES, "no such lane");
        let marked = move |code: u8| self.rows[usize::from(code / 8)][lane] >> (code % 8) & 1 == 1;
        (0..=u8::MAX).take(self.codes).filter(move |&code| !marked(code))
    }

    /// The rows of the codes considered and of the [`BEYOND`] codes behind them, none of which is ever marked.
    fn candidates(&self) -> &[[u8; LANES]] {
        &self.rows[..(self.codes + BEYOND) / 8]
    }

    fn rows_mut(&mut self) -> &mut [[u8; LANES]] {
        &mut self.rows[..self.codes / 8]
    }
}

/// A stage of [`Kernel::refine`].
#[derive(Clone, Debug, Hash)]
pub struct Stage {
    /// Maximum number of candidates per lane that enter the stage, the least ones; one of [`KEEP`].
    pub keep: usize,
    /// The lookups against which they are checked.
    pub check: Probes,
}

/// The candidates left in each lane, ascending, then [`NONE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lanes {
    code: [[u8; LANES]; CANDIDATES],
    /// Number of rows that may hold candidates; the others hold only [`NONE`].
    kept: usize,
    /// The least code that marking did not cover: a candidate from here on is known to be open only for the checked
    /// lookups.
    marked: u8,
}

impl Lanes {
    /// Row k holds the k-th candidates of all lanes, counted from 0.
    #[must_use]
    pub fn rows(&self) -> &[[u8; LANES]] {
        &self.code[..self.kept]
    }

    /// Whether marking did not cover this candidate: a marked lookup may hit it.
    #[must_use]
    pub fn is_unmarked(&self, code: u8) -> bool {
        code >= self.marked
    }
}

/// A kernel that this processor supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel(Platform);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Platform {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

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

/// Calls the instance of a generic function for the given number of candidates per lane.
macro_rules! for_kept {
    ($kept:expr, $function:ident($($argument:expr),*)) => {
        match $kept {
            12 => $function::<12>($($argument),*),
            8 => $function::<8>($($argument),*),
            6 => $function::<6>($($argument),*),
            5 => $function::<5>($($argument),*),
            4 => $function::<4>($($argument),*),
            3 => $function::<3>($($argument),*),
            _ => $function::<2>($($argument),*),
        }
    };
}
use for_kept;

impl Kernel {
    /// The portable kernel, the reference for the others.
    #[must_use]
    pub fn scalar() -> Kernel {
        Kernel(Platform::Scalar)
    }

    /// The kernels that this processor supports, fastest first.
    #[must_use]
    pub fn available() -> Vec<Kernel> {
        let mut kernels = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if avx512::is_available() {
                kernels.push(Kernel(Platform::Avx512));
            }
            if avx2::is_available() {
                kernels.push(Kernel(Platform::Avx2));
            }
        }
        kernels.push(Kernel::scalar());
        kernels
    }

    /// The fastest kernel of this processor.
    #[must_use]
    pub fn best() -> Kernel {
        Kernel::available()[0]
    }

    /// The kernel of this name, if this processor supports it.
    #[must_use]
    pub fn named(name: &str) -> Option<Kernel> {
        Kernel::available().into_iter().find(|kernel| kernel.name() == name)
    }

    /// The name of the kernel, as the option `--kernel` takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Platform::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Platform::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Platform::Avx512 => "avx512",
        }
    }

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

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small random generator (SplitMix64), local to this module, so that a printed seed reproduces a failure
    /// everywhere.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }

        fn below(&mut self, bound: usize) -> usize {
            (self.next() % bound as u64) as usize
        }

        fn probes(&mut self, count: usize, offsets: std::ops::Range<usize>, spread: usize) -> Probes {
            let mut probes = Probes::new();
            for _ in 0..count {
                let offset = offsets.start + self.below(offsets.len());
                probes.push(Probe::new(offset, self.below(spread) as u8));
            }
            probes
        }
    }

    fn hits(window: &[u8], at: usize, lane: usize, probes: &Probes, code: u8) -> bool {
        probes.list().iter().any(|p| window[at + lane - p.offset] ^ p.code() == code)
    }

    /// The contract of `refine`, restated for one lane.
    fn contract(window: &[u8], at: usize, marked: &Probes, codes: usize, stages: &[Stage], lane: usize) -> Vec<u8> {
        let open = |code: &u8| usize::from(*code) >= codes || !hits(window, at, lane, marked, *code);
        let mut left: Vec<u8> = (0..(codes + BEYOND) as u8).filter(open).collect();
        for stage in stages {
            left.truncate(stage.keep);
            left.retain(|&code| !hits(window, at, lane, &stage.check, code));
        }
        left
    }

    const LENGTHS: [usize; 10] = [0, 1, 2, 7, 8, 9, 63, 64, 65, 300];
    const SPREADS: [usize; 6] = [1, 3, 60, 128, 170, 256];

    #[test]
    fn every_kernel_keeps_the_contract_of_mark_refine_and_clear_hits() {
        for seed in 0..300 {
            let random = &mut Random(seed);
            let at = LANES + random.below(3000);
            // Number of lanes whose values the window holds already.
            let known = random.below(LANES + 1);
            let spread = SPREADS[random.below(6)];
            let window: Vec<u8> = (0..at + known).map(|_| random.below(spread) as u8).collect();
            let mut list = || {
                let count = LENGTHS[random.below(10)];
                random.probes(count, LANES - known..at + 1, spread)
            };
            let (mark, more) = (list(), list());
            let mut stages: Vec<Stage> = KEEP.map(|keep| Stage { keep, check: list() }).into();
            stages.retain(|_| random.below(2) == 0);
            if stages.is_empty() {
                stages.push(Stage { keep: KEEP[seed as usize % KEEP.len()], check: Probes::new() });
            }
            let codes = CODES[seed as usize % CODES.len()];
            let mut all = mark.clone();
            more.list().iter().for_each(|probe| all.push(*probe));
            let below: [u8; LANES] = std::array::from_fn(|_| random.below(codes + 3) as u8);
            for kernel in Kernel::available() {
                let mut planes = BitPlanes::new(codes);
                kernel.mark(&window, at, &mark, &mut planes);
                kernel.mark(&window, at, &more, &mut planes);
                let lanes = kernel.refine(&window, at, &planes, &stages);
                kernel.open(&mut planes, &below);
                let mut cleared = planes.clone();
                kernel.clear_hits(&window, at, &stages[0].check, &mut cleared);
                for lane in 0..LANES {
                    let expected = contract(&window, at, &all, codes, &stages, lane);
                    let found: Vec<u8> = lanes.code.iter().map(|row| row[lane]).take_while(|&c| c != NONE).collect();
                    assert_eq!(found, expected, "{kernel}, seed {seed}, lane {lane}");
                    assert!(lanes.code[found.len()..].iter().all(|row| row[lane] == NONE), "{kernel}, seed {seed}");
                    assert!((0..=NONE).all(|code| lanes.is_unmarked(code) == (usize::from(code) >= codes)));
                    let open = |code: &u8| *code < below[lane] && !hits(&window, at, lane, &all, *code);
                    let mut expected: Vec<u8> = (0..codes as u8).filter(open).collect();
                    let set = |planes: &BitPlanes| -> Vec<u8> {
                        let is_set = |&code: &u8| planes.rows()[usize::from(code / 8)][lane] >> (code % 8) & 1 == 1;
                        (0..codes as u8).filter(is_set).collect()
                    };
                    assert_eq!(set(&planes), expected, "{kernel}, seed {seed}, lane {lane}: open");
                    let rest = expected.split_off(MAX_CLEAR_PROBES.min(expected.len()));
                    expected.retain(|&code| !hits(&window, at, lane, &stages[0].check, code));
                    expected.extend(rest);
                    assert_eq!(set(&cleared), expected, "{kernel}, seed {seed}, lane {lane}: cleared");
                }
            }
        }
    }

    #[test]
    fn every_kernel_keeps_the_contract_of_near_for_any_lanes() {
        for seed in 0..300 {
            let random = &mut Random(seed);
            let at = LANES + random.below(100);
            let spread = SPREADS[2 + random.below(3)];
            let window: Vec<u8> = (0..at + LANES).map(|_| random.below(spread) as u8).collect();
            let count = LENGTHS[random.below(8)];
            let near = random.probes(count, 1..LANES, spread);
            let kept = KEEP[random.below(KEEP.len())];
            let marked = [NONE, random.below(spread) as u8][random.below(2)];
            let mut lanes = Lanes { code: [[NONE; LANES]; CANDIDATES], kept, marked };
            for lane in 0..LANES {
                let mut codes: Vec<u8> = (0..1 + random.below(kept)).map(|_| random.below(spread) as u8).collect();
                codes.sort_unstable();
                codes.dedup();
                codes.iter().enumerate().for_each(|(k, &code)| lanes.code[k][lane] = code);
            }
            let from = random.below(LANES);
            let to = from + random.below(LANES - from + 1);
            let mut expected = window.clone();
            let mut stopped = to;
            for lane in from..to {
                let hit = |code: u8| near.list().iter().any(|p| expected[at + lane - p.offset] ^ p.code() == code);
                let open = lanes.code.iter().map(|row| row[lane]).find(|&code| code != NONE && !hit(code));
                match open {
                    Some(code) if code < marked => expected[at + lane] = code,
                    _ => {
                        stopped = lane;
                        break;
                    }
                }
            }
            for kernel in Kernel::available() {
                let mut found = window.clone();
                assert_eq!(kernel.near(&mut found, at, &near, &lanes, from, to), stopped, "{kernel}, seed {seed}");
                assert_eq!(found[..at + stopped], expected[..at + stopped], "{kernel}, seed {seed}");
            }
        }
    }

    /// A safe function must not read outside its slices, whatever its arguments.
    #[test]
    fn every_kernel_rejects_lanes_that_are_reversed_or_outside() {
        let lanes = Lanes { code: [[NONE; LANES]; CANDIDATES], kept: 2, marked: NONE };
        let mut near = Probes::new();
        near.push(Probe::new(1, 0));
        for kernel in Kernel::available() {
            for (at, from, to) in [(100, 40, 0), (100, 0, 65), (101, 0, 64), (usize::MAX, 0, 64), (100, 65, 65)] {
                let refused = std::panic::catch_unwind(|| {
                    kernel.near(&mut [0; 164], at, &near, &lanes, from, to);
                });
                assert!(refused.is_err(), "{kernel}: at {at}, lanes {from}..{to}");
            }
        }
    }

    #[test]
    fn every_kernel_keeps_the_contract_of_chain_for_any_range() {
        let (mut complete, mut stopped) = (0, 0);
        for seed in 0..1000 {
            let random = &mut Random(seed);
            let room = [1, 100, 3000][random.below(3)];
            let at = LANES + random.below(room);
            let to = at + [0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 300][random.below(16)];
            let spread = SPREADS[random.below(6)];
            let window: Vec<u8> = (0..to + random.below(40)).map(|_| random.below(spread) as u8).collect();
            let nearest = [1, 1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 31, 32, 63, 64][random.below(16)];
            let mut probes = Vec::new();
            for end in [nearest + 2, 33, 65, at + 1] {
                let count = [0, 1, 2, 7, 30][random.below(5)];
                probes.extend_from_slice(random.probes(count, nearest..end.clamp(nearest + 1, at + 1), spread).list());
            }
            // Sometimes one n sees all codes below RECURRENCE_CODES but one, or all.
            if random.below(3) == 0 {
                let place = nearest + random.below(at + 1 - nearest);
                let missing = random.below(40) as u8;
                let codes = (0..RECURRENCE_CODES).filter(|&code| code != missing);
                probes.extend(codes.map(|code| Probe::new(place, code)));
            }
            let mut expected = window.clone();
            let open = |window: &[u8], n: usize| {
                (0..RECURRENCE_CODES).find(|&code| probes.iter().all(|p| window[n - p.offset] ^ p.code() != code))
            };
            let end = (at..to).find(|&n| open(&expected, n).map(|code| expected[n] = code).is_none()).unwrap_or(to);
            (complete, stopped) = (complete + usize::from(end == to), stopped + usize::from(end < to));
            let chain = Recurrence::new(probes.clone());
            for kernel in Kernel::available() {
                let mut found = window.clone();
                assert_eq!(kernel.chain(&mut found, at, to, &chain), end, "{kernel}, seed {seed}");
                assert_eq!(found, expected, "{kernel}, seed {seed}");
            }
        }
        assert!(complete > 100 && stopped > 100, "{complete} complete, {stopped} stopped: not the intended cases");
    }

    #[test]
    fn every_kernel_rejects_a_chain_outside_the_window() {
        for kernel in Kernel::available() {
            for (offset, at, to) in
                [(0, 100, 164), (101, 100, 164), (1, 63, 164), (1, 100, 99), (1, 100, 165), (1, usize::MAX, usize::MAX)]
            {
                let chain = Recurrence::new(vec![Probe::new(offset, 0)]);
                let refused = std::panic::catch_unwind(|| {
                    kernel.chain(&mut [0; 164], at, to, &chain);
                });
                assert!(refused.is_err(), "{kernel}: offset {offset}, {at}..{to}");
            }
        }
    }

    #[test]
    fn every_kernel_detects_an_item_that_equals_its_option() {
        let mut repeated = 0;
        for seed in 0..400 {
            let random = &mut Random(seed);
            let at = 1 + random.below(3000);
            let window: Vec<u8> = (0..at + HEAPS + random.below(50)).map(|_| random.below(200) as u8).collect();
            let count = random.below(4);
            let lookups: Vec<(usize, u8)> =
                (0..count).map(|_| (1 + random.below(at), 200 + random.below(56) as u8)).collect();
            let repeats = |n: usize| lookups.iter().any(|&(offset, item)| window[n - offset] ^ item == window[n]);
            let expected = (at..at + HEAPS).any(repeats);
            repeated += usize::from(expected);
            let wide: Vec<u16> = window.iter().map(|&v| u16::from(v) * 257).collect();
            let values: Vec<(usize, u16)> = lookups.iter().map(|&(at, item)| (at, u16::from(item) * 257)).collect();
            for kernel in Kernel::available() {
                assert_eq!(kernel.repeats(&window, at, &lookups), expected, "{kernel}, seed {seed}");
                assert_eq!(kernel.repeats_value(&wide, at, &values), expected, "{kernel}, seed {seed}");
            }
        }
        assert!((40..360).contains(&repeated), "{repeated} of 400: not the intended cases");
    }

    #[test]
    fn every_kernel_finds_the_first_step_with_the_wanted_pair() {
        for seed in 0..200 {
            let random = &mut Random(seed);
            let pairs = LENGTHS[random.below(10)] + 100 * random.below(4);
            let spread = [2, 40, 200][random.below(3)];
            let a: Vec<u8> = (0..pairs).map(|_| random.below(spread) as u8).collect();
            let b: Vec<u8> = (0..pairs + random.below(3)).map(|_| random.below(spread) as u8).collect();
            let wanted = random.below(256) as u8;
            let first = a.iter().rev().zip(b.iter().rev()).position(|(x, y)| x ^ y == wanted);
            let found = first.map(|at| pairs.min((at / PAIRS_BETWEEN_TESTS + 1) * PAIRS_BETWEEN_TESTS));
            let wide = |list: &[u8]| -> Vec<u16> { list.iter().map(|&v| u16::from(v) * 257).collect() };
            for kernel in Kernel::available() {
                assert_eq!(kernel.find(&a, &b, wanted), found, "{kernel}, seed {seed}");
                let values = kernel.find_value(&wide(&a), &wide(&b), u16::from(wanted) * 257);
                assert_eq!(values, found, "{kernel}, seed {seed}");
            }
        }
    }

    #[test]
    fn every_kernel_finds_the_first_good_pair_of_each_code() {
        let (mut found, mut missed, mut refused) = (0, 0, 0);
        for seed in 0..400 {
            let random = &mut Random(seed);
            let count = LENGTHS[random.below(10)] + [0, 128, 256, 2000][random.below(4)];
            let spread = SPREADS[random.below(6)];
            let a: Vec<u8> = (0..count + random.below(3)).map(|_| random.below(spread) as u8).collect();
            let b: Vec<u8> = (0..count + random.below(3)).map(|_| random.below(spread) as u8).collect();
            let most = [0, 1, 2, 5, 60, 256][random.below(6)];
            let mut wanted: Vec<u8> = (0..=255).collect();
            while wanted.len() > most {
                wanted.swap_remove(random.below(wanted.len()));
            }
            // `good` accepts every pair, one in two, or one in a thousand.
            let one_in = [1, 2, 1000][random.below(3)];
            let good = |code: u8, pairs: usize| Random(seed + pairs as u64 * 256 + u64::from(code)).below(one_in) == 0;
            let pairs = |code: u8| {
                let gives = a.iter().rev().zip(b.iter().rev()).enumerate().filter(move |(_, (x, y))| *x ^ *y == code);
                gives.map(|(i, _)| i + 1)
            };
            // The calls of `good` for each code: its pairs up to the first good one.
            let calls = |&code: &u8| -> Vec<(u8, usize)> {
                let bad = pairs(code).take_while(|&pairs| !good(code, pairs)).count();
                pairs(code).take(bad + 1).map(|pairs| (code, pairs)).collect()
            };
            let mut expected: Vec<(u8, usize)> = wanted.iter().flat_map(calls).collect();
            let mut left: Vec<u8> = wanted.clone();
            left.retain(|&code| !pairs(code).any(|pairs| good(code, pairs)));
            (found, missed) = (found + wanted.len() - left.len(), missed + left.len());
            refused += expected.len() - (wanted.len() - left.len());
            expected.sort_unstable();
            left.sort_unstable();
            for kernel in Kernel::available() {
                let (mut open, mut seen) = (wanted.clone(), Vec::new());
                kernel.find_each(&a, &b, &mut open, |code, pairs| {
                    seen.push((code, pairs));
                    good(code, pairs)
                });
                open.sort_unstable();
                assert_eq!(open, left, "{kernel}, seed {seed}: codes left");
                assert!(
                    wanted.iter().all(|&code| seen.iter().filter(|seen| seen.0 == code).is_sorted()),
                    "{kernel}, seed {seed}: order"
                );
                seen.sort_unstable();
                assert_eq!(seen, expected, "{kernel}, seed {seed}: calls of good");
            }
        }
        let counts = [found, missed, refused];
        assert!(counts.iter().all(|&count| count > 1000), "{counts:?}: not the intended cases");
    }
}

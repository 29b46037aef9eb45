//! The mex kernels: for 64 consecutive heaps at once, the least values that no lookup hits.
//!
//! One contract, one signature a job, one reference (`scalar`), one shared test. A kernel sees bytes and offsets only;
//! what the bytes mean (the order-keeping code of common values) is the business of [`crate::solver`].
//!
//! A lookup ([`Probe`]) is one part of a split whose value is known: for lane i it gives the option
//! `window[at + i - offset] ^ code`. The jobs are:
//!
//! - [`Kernel::mark`]: enters the options of some lookups in [`BitPlanes`], one bit a code and lane. Both streams live on
//!   it: the candidates mark the lookups of rare parts, the witnesses those of common parts.
//! - [`Kernel::refine`]: of the codes left open, and a few behind those marked ([`BEYOND`]), the least ones are held against
//!   the other lookups, in stages that keep fewer and fewer of them ([`Stage`]). Marking costs a table, checking two instructions a candidate and 64 lanes, so a
//!   good order of the lookups (many hits first) makes both short: see `solver::order`.
//! - [`Kernel::near`]: the lookups nearer than 64, lane by lane, since each needs the values just before it.
//! - [`Kernel::open`], [`Kernel::strike`]: the codes below a bound that are still open after marking, and which of the
//!   least of them some more lookups hit; what the witnesses ask.
//! - [`Kernel::find_each`]: the search for the witnesses of one heap; [`Kernel::find`], [`Kernel::find_value`]: for one.
//! - [`Kernel::repeats`], [`Kernel::repeats_value`]: whether a finished value is an option of its own heap; what a
//!   check of a table asks.
//! - [`Kernel::chain`]: all lookups, near and far, of any number of heaps, where the lookups are few: see `chain`.
//!
//! A [`Kernel`] value can be had from [`Kernel::available`] only, so holding one proves that this processor has it.

#![allow(unsafe_code)] // the vector instructions, and calls into functions compiled for them

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;
mod recurrence;
mod scalar;

pub use recurrence::{RECURRENCE_CODES, Recurrence};
use std::fmt;

/// Consecutive heaps that a kernel treats at once.
pub const LANES: usize = 64;

/// How many codes a kernel may be asked to consider: multiples of 8, since each eight take a register and an instruction
/// or two a lookup. A lane whose answer lies beyond comes back without a candidate. (Of the values of Grundy's game just
/// below 10^7 half have codes up to 34, 98 % up to 65 and 99.5 % up to 67; of those of .6 around 5·10^6 one in twenty is
/// 256 or more, codes from 128 on.)
pub const CODES: [usize; 12] = [16, 32, 64, 72, 80, 88, 96, 112, 128, 136, 144, 160];

/// The most codes that can be considered.
pub const MOST_CODES: usize = CODES[CODES.len() - 1];

/// So many codes behind those considered are candidates as well, though none of them is ever marked. (Of the heaps of
/// Grundy's game from 10^8 to 1.5·10^8 that were left without a candidate, 56 % had their answer there.)
pub const BEYOND: usize = 16;

/// Pairs that a search looks at between two questions whether the wanted one was among them.
pub const PAIRS_BETWEEN_TESTS: usize = 128;

/// How many candidates a stage of checking may keep per lane, descending.
pub const KEEP: [usize; 7] = [12, 8, 6, 5, 4, 3, 2];

/// The most candidates per lane.
pub const CANDIDATES: usize = KEEP[0];

/// Open codes per lane that more lookups may strike at once.
pub const MAX_CLEAR_PROBES: usize = 4;

/// Heaps that one question for repeats is about.
pub const HEAPS: usize = 256;

/// Stands for "no candidate"; at least [`MOST_CODES`].
pub const NONE: u8 = u8::MAX;

/// One lookup: `offset` back in the window, XOR `code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Probe {
    /// XORed to what stands there, four times over: the form that vector instructions broadcast for nothing. In front, for
    /// behind the offset the compiler loads both and takes two shuffles to tell them apart.
    codes: [u8; 4],
    /// How far back.
    pub offset: usize,
}

impl Probe {
    /// The lookup of what stands `offset` back, XOR `code`.
    #[must_use]
    pub fn new(offset: usize, code: u8) -> Probe {
        Probe { offset, codes: [code; 4] }
    }

    /// XORed to what stands there.
    #[inline]
    #[must_use]
    pub fn code(&self) -> u8 {
        self.codes[0]
    }
}

/// A list of lookups that knows how near and how far it reaches, so that a kernel need not look at each.
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
    /// No lookups.
    #[must_use]
    pub fn new() -> Probes {
        Probes { list: Vec::new(), min_offset: usize::MAX, max_offset: 0 }
    }

    /// Adds a lookup behind the others.
    pub fn push(&mut self, probe: Probe) {
        self.min_offset = self.min_offset.min(probe.offset);
        self.max_offset = self.max_offset.max(probe.offset);
        self.list.push(probe);
    }

    /// Forgets all lookups.
    pub fn clear(&mut self) {
        self.list.clear();
        (self.min_offset, self.max_offset) = (usize::MAX, 0);
    }

    /// The lookups, in the order in which they were added.
    #[must_use]
    pub fn list(&self) -> &[Probe] {
        &self.list
    }

    /// How far the max_offset reaches; 0 when there is none.
    #[must_use]
    pub fn max_offset(&self) -> usize {
        self.max_offset
    }

    /// Whether the 64 bytes that each of them looks at are inside a window of this length.
    fn are_far(&self, at: usize, length: usize) -> bool {
        self.list.is_empty() || (self.min_offset + length >= at + LANES && self.max_offset <= at)
    }

    fn are_near(&self, at: usize) -> bool {
        self.list.is_empty() || (self.min_offset >= 1 && self.max_offset < LANES && self.max_offset <= at)
    }
}

/// Which codes were seen as options in each lane: bit b of `rows[j][lane]` stands for the code 8j + b.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub struct BitPlanes {
    /// Those behind the codes considered are empty.
    rows: [[u8; LANES]; (MOST_CODES + BEYOND) / 8],
    codes: usize,
}

impl BitPlanes {
    /// No options so far, of which those below `codes` will be entered.
    ///
    /// # Panics
    /// When `codes` is none of [`CODES`].
    #[must_use]
    pub fn new(codes: usize) -> BitPlanes {
        assert!(CODES.contains(&codes), "a number of codes that no kernel has");
        BitPlanes { rows: [[0; LANES]; (MOST_CODES + BEYOND) / 8], codes }
    }

    /// Forgets all options; those below `codes` will be entered from now on.
    ///
    /// # Panics
    /// When `codes` is none of [`CODES`].
    pub fn clear(&mut self, codes: usize) {
        assert!(CODES.contains(&codes), "a number of codes that no kernel has");
        self.rows_mut().fill([0; LANES]);
        self.codes = codes;
    }

    /// Codes below this are considered.
    #[must_use]
    pub fn codes(&self) -> usize {
        self.codes
    }

    /// The rows of the codes considered, eight codes a row.
    #[must_use]
    pub fn rows(&self) -> &[[u8; LANES]] {
        &self.rows[..self.codes / 8]
    }

    /// The codes considered that were not entered in one lane, ascending.
    ///
    /// # Panics
    /// When there is no such lane.
    pub fn open(&self, lane: usize) -> impl Iterator<Item = u8> {
        assert!(lane < LANES, "no such lane");
        let marked = move |code: u8| self.rows[usize::from(code / 8)][lane] >> (code % 8) & 1 == 1;
        (0..=u8::MAX).take(self.codes).filter(move |&code| !marked(code))
    }

    /// These, and [`BEYOND`] codes more, none of which is ever entered.
    fn candidates(&self) -> &[[u8; LANES]] {
        &self.rows[..(self.codes + BEYOND) / 8]
    }

    fn rows_mut(&mut self) -> &mut [[u8; LANES]] {
        &mut self.rows[..self.codes / 8]
    }
}

/// A stage of checking.
#[derive(Clone, Debug, Hash)]
pub struct Stage {
    /// So many candidates enter it in each lane, the least ones; one of [`KEEP`].
    pub keep: usize,
    /// What they are held against.
    pub check: Probes,
}

/// Per lane the candidates that are left, ascending, then [`NONE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lanes {
    code: [[u8; LANES]; CANDIDATES],
    /// Rows that may hold anything but [`NONE`].
    kept: usize,
    /// Codes from here on were not marked, and are open only as far as they were checked.
    marked: u8,
}

impl Lanes {
    /// The k-th candidates of all lanes, for each k in turn.
    #[must_use]
    pub fn rows(&self) -> &[[u8; LANES]] {
        &self.code[..self.kept]
    }

    /// Whether this candidate was not marked: a lookup that is not checked may hit it.
    #[must_use]
    pub fn is_unmarked(&self, code: u8) -> bool {
        code >= self.marked
    }
}

/// A kernel that this processor can run.
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

/// Calls a job of the chosen kernel; the SAFETY of all of them is that the kernel's existence proves the instructions.
macro_rules! dispatch {
    ($kernel:expr, $scalar:expr, $avx2:expr, $avx512:expr) => {
        match $kernel.0 {
            Platform::Scalar => $scalar,
            // SAFETY: this kind is made by `available` only, after the processor said that it has the instructions.
            #[cfg(target_arch = "x86_64")]
            Platform::Avx2 => unsafe { $avx2 },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Platform::Avx512 => unsafe { $avx512 },
        }
    };
}

/// Calls a function made for each number of candidates with that of some lanes.
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
    /// The portable kernel, which is the reference of the others.
    #[must_use]
    pub fn scalar() -> Kernel {
        Kernel(Platform::Scalar)
    }

    /// The kernels that this processor can run, best first.
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

    /// The kernel of this name, when this processor has it.
    #[must_use]
    pub fn named(name: &str) -> Option<Kernel> {
        Kernel::available().into_iter().find(|kernel| kernel.name() == name)
    }

    /// The name that `--kernel` takes.
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

    /// Enters the options of the probes in the planes.
    ///
    /// # Panics
    /// When a probe looks at bytes outside the window.
    pub fn mark(self, window: &[u8], at: usize, probes: &Probes, planes: &mut BitPlanes) {
        assert!(probes.are_far(at, window.len()), "a probe outside its window");
        dispatch!(
            self,
            scalar::mark(window, at, probes, planes),
            avx2::mark(window, at, probes, planes),
            avx512::mark(window, at, probes, planes)
        );
    }

    /// For each lane: of the codes that the planes leave open, and the [`BEYOND`] codes behind those considered, the `keep`
    /// least of the first stage; of those, stage by stage, the ones that none of its probes hits, of which the `keep` least
    /// of the next stage go on.
    ///
    /// # Panics
    /// When there is no stage, one keeps more than the one before or a number that is none of [`KEEP`], or a probe looks
    /// at bytes outside the window.
    #[must_use]
    pub fn refine(self, window: &[u8], at: usize, planes: &BitPlanes, stages: &[Stage]) -> Lanes {
        assert!(stages.iter().all(|s| s.check.are_far(at, window.len())), "a probe outside its window");
        assert!(stages.iter().all(|s| KEEP.contains(&s.keep)), "a number of candidates that no kernel keeps");
        assert!(stages.is_sorted_by(|a, b| a.keep >= b.keep), "a stage that keeps more than the one before");
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

    /// Turns the planes round: afterwards those bits are set whose code was not marked and is below `below[lane]`.
    pub fn open(self, planes: &mut BitPlanes, below: &[u8; LANES]) {
        dispatch!(
            self,
            portable::open(planes, below),
            portable::open_avx2(planes, below),
            portable::open_avx512(planes, below)
        );
    }

    /// Fills `window[at + lane]` for `from <= lane < to` with the least candidate that no near probe hits, and stops at
    /// the first lane that has none, or one that was not marked; that lane, or `to`, is the answer.
    ///
    /// # Panics
    /// When a probe reaches before the window or [`LANES`] or more back, or the lanes beyond its end.
    pub fn near(self, window: &mut [u8], at: usize, near: &Probes, lanes: &Lanes, from: usize, to: usize) -> usize {
        assert!(from <= to && to <= LANES, "no such lanes");
        assert!(at <= window.len() && to <= window.len() - at, "lanes outside the window");
        assert!(near.are_near(at), "a probe outside its window");
        match self.0 {
            _ if from == to => to,
            // SAFETY: this kind is made by `available` only, after the processor said that it has the instructions.
            #[cfg(target_arch = "x86_64")]
            Platform::Avx512 => unsafe { avx512::near(window, at, near, lanes, from, to) },
            _ => scalar::near(window, at, near, lanes, from, to),
        }
    }

    /// Fills `window[n]` for `at <= n < to`, one after the other, with the least code below [`RECURRENCE_CODES`] that no probe
    /// hits, and stops at the first `n` that has none; that `n`, or `to`, is the answer. From there on nothing is written.
    ///
    /// # Panics
    /// When a probe reaches before the window or nowhere back, `at` is below [`LANES`], or `to` outside the window.
    pub fn chain(self, window: &mut [u8], at: usize, to: usize, chain: &Recurrence) -> usize {
        assert!(at <= to && to <= window.len(), "heaps outside the window");
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
    /// When a probe looks at bytes outside the window.
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

    /// Looks for `wanted` among `a[i] ^ b[j]`, both taken from their ends backwards side by side, in steps of [`PAIRS_BETWEEN_TESTS`]
    /// pairs: the number of pairs looked at when it was there, `None` when the shorter slice ended first.
    #[must_use]
    pub fn find(self, a: &[u8], b: &[u8], wanted: u8) -> Option<usize> {
        dispatch!(self, portable::find(a, b, wanted), portable::find_avx2(a, b, wanted), avx512::find(a, b, wanted))
    }

    /// Looks for each of the `wanted` codes, which differ, among `a[i] ^ b[j]`, both taken from their ends backwards side
    /// by side. Asks of each pair that gives one whether it will do, `good(code, pairs up to this one)`; when it does, the
    /// code is taken away. The pairs of one code are asked for in their order, those of different codes in any.
    pub fn find_each(self, a: &[u8], b: &[u8], wanted: &mut Vec<u8>, good: impl FnMut(u8, usize) -> bool) {
        dispatch!(
            self,
            scalar::find_each(a, b, wanted, good),
            avx2::find_each(a, b, wanted, good),
            avx512::find_each(a, b, wanted, good)
        );
    }

    /// The same as [`Kernel::find`] for values.
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
    /// Whether `window[n - offset] ^ item == window[n]` for a lookup `(offset, item)` and one of the [`HEAPS`] heaps
    /// from `at` on.
    ///
    /// # Panics
    /// When the heaps, or what a lookup looks at, are outside the window.
    #[must_use]
    pub fn repeats(self, window: &[u8], at: usize, lookups: &[(usize, u8)]) -> bool {
        dispatch!(
            self,
            portable::repeats(window, at, lookups),
            portable::repeats_avx2(window, at, lookups),
            portable::repeats_avx512(window, at, lookups)
        )
    }

    /// The same for values.
    ///
    /// # Panics
    /// As [`Kernel::repeats`].
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

    /// A small generator of its own, so that a printed seed reproduces a failure everywhere (SplitMix64).
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

    /// The contract of `refine`, word for word, one lane at a time.
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
    fn every_kernel_keeps_the_contract_of_marking_and_refining_at_every_length() {
        for seed in 0..300 {
            let random = &mut Random(seed);
            let at = LANES + random.below(3000);
            // Beyond the lanes' own first heap the window may be known or not.
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
    fn every_kernel_keeps_the_contract_of_near_wherever_it_starts_and_stops() {
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

    /// A safe function must not read outside its slices whatever it is given.
    #[test]
    fn lanes_that_run_backwards_or_outside_are_refused_by_every_kernel() {
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
    fn every_kernel_keeps_the_contract_of_chain_wherever_it_starts_and_stops() {
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
            // Some heap may see all the codes that the chain knows.
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
        assert!(
            complete > 100 && stopped > 100,
            "{complete} complete, {stopped} stopped: not the cases that were meant"
        );
    }

    #[test]
    fn chains_outside_the_window_are_refused_by_every_kernel() {
        for kernel in Kernel::available() {
            for (offset, at, to) in
                [(0, 100, 164), (101, 100, 164), (1, 63, 164), (1, 100, 99), (1, 100, 165), (1, usize::MAX, usize::MAX)]
            {
                let chain = Recurrence::new(vec![Probe::new(offset, 0)]);
                let refused = std::panic::catch_unwind(|| {
                    kernel.chain(&mut [0; 164], at, to, &chain);
                });
                assert!(refused.is_err(), "{kernel}: {offset} back, heaps {at}..{to}");
            }
        }
    }

    #[test]
    fn every_kernel_says_whether_an_item_repeats_an_option() {
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
        assert!((40..360).contains(&repeated), "{repeated} of 400: not the cases that were meant");
    }

    #[test]
    fn every_kernel_finds_the_first_steps_in_which_a_pair_has_the_value() {
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
    fn every_kernel_finds_the_first_good_pair_of_each_code_at_every_length() {
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
            // Every other pair will do, or one in a thousand.
            let one_in = [1, 2, 1000][random.below(3)];
            let good = |code: u8, pairs: usize| Random(seed + pairs as u64 * 256 + u64::from(code)).below(one_in) == 0;
            let pairs = |code: u8| {
                let gives = a.iter().rev().zip(b.iter().rev()).enumerate().filter(move |(_, (x, y))| *x ^ *y == code);
                gives.map(|(i, _)| i + 1)
            };
            // Of each code what is to be asked: the pairs up to the first good one.
            let asked = |&code: &u8| -> Vec<(u8, usize)> {
                let bad = pairs(code).take_while(|&pairs| !good(code, pairs)).count();
                pairs(code).take(bad + 1).map(|pairs| (code, pairs)).collect()
            };
            let mut expected: Vec<(u8, usize)> = wanted.iter().flat_map(asked).collect();
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
                assert_eq!(open, left, "{kernel}, seed {seed}: what is left");
                assert!(
                    wanted.iter().all(|&code| seen.iter().filter(|seen| seen.0 == code).is_sorted()),
                    "{kernel}, seed {seed}: order"
                );
                seen.sort_unstable();
                assert_eq!(seen, expected, "{kernel}, seed {seed}: what was asked");
            }
        }
        let counts = [found, missed, refused];
        assert!(counts.iter().all(|&count| count > 1000), "{counts:?}: not the cases that were meant");
    }
}

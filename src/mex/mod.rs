//! The mex kernels: for 64 consecutive heaps at once, the least values that no look-up hits.
//!
//! One contract, one signature a job, one reference (`scalar`), one shared test. A kernel sees bytes and offsets only;
//! what the bytes mean (the order-keeping code of common values) is the business of [`crate::sparse`].
//!
//! A look-up ([`Probe`]) is one rare position under one split: for lane i it gives the option
//! `window[at + i - offset] ^ code`. The jobs are:
//!
//! - [`Kernel::candidates`]: the far look-ups. The first ones, `mark`, are entered in a table of all codes per lane; then
//!   the eight least codes left open are held against the others, in stages that keep fewer and fewer of them
//!   ([`KEEP`]). Marking costs a table, checking two instructions a candidate and 64 lanes, so a good order of the
//!   look-ups (many hits first) makes both short: see `sparse::order`.
//! - [`Kernel::near`]: the look-ups nearer than 64, lane by lane, since each needs the values just before it.
//! - [`Kernel::chain`]: all look-ups, near and far, of any number of heaps, where the look-ups are few: see `chain`.
//! - [`Kernel::settle`], [`Kernel::gain`], [`Kernel::find`]: the inner loops of the witness search. They are plain Rust,
//!   compiled once more for each instruction set.
//!
//! A [`Kernel`] value can be had from [`Kernel::available`] only, so holding one proves that this processor has it.

#![allow(unsafe_code)] // the vector instructions, and calls into functions compiled for them

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod chain;
mod portable;
mod scalar;

pub use chain::{CHAIN_CODES, Chain};
use std::fmt;

/// Consecutive heaps that a kernel treats at once.
pub const LANES: usize = 64;

/// How many codes a kernel may be asked to consider: multiples of 8, since each eight take a register and two instructions
/// a look-up. A lane whose answer lies beyond comes back without a candidate. (Of the values of Grundy's game just below
/// 10^8 half are at most 53 and 99 % at most 146, codes below 80; of those of .6 around 5·10^6 one in twenty is 256 or
/// more, codes from 128 on.)
pub const CODES: [usize; 5] = [64, 80, 96, 128, 160];

/// The most codes that can be considered.
pub const MOST_CODES: usize = CODES[CODES.len() - 1];

/// Stages of checking.
pub const STAGES: usize = 3;

/// Candidates kept per lane: after marking, and after each stage but the last.
pub const KEEP: [usize; STAGES] = [8, 6, 5];

/// Candidates that come out.
pub const CANDIDATES: usize = KEEP[STAGES - 1];

/// Stands for "no candidate"; at least [`MOST_CODES`].
pub const NONE: u8 = u8::MAX;

/// One look-up: `offset` back in the window, XOR `code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// How far back.
    pub offset: usize,
    /// XORed to what stands there.
    pub code: u8,
}

/// A list of look-ups that knows how near and how far it reaches, so that a kernel need not look at each.
#[derive(Clone, Debug)]
pub struct Probes {
    list: Vec<Probe>,
    nearest: usize,
    farthest: usize,
}

impl Default for Probes {
    fn default() -> Probes {
        Probes::new()
    }
}

impl Probes {
    /// No look-ups.
    #[must_use]
    pub fn new() -> Probes {
        Probes { list: Vec::new(), nearest: usize::MAX, farthest: 0 }
    }

    /// Adds a look-up behind the others.
    pub fn push(&mut self, probe: Probe) {
        self.nearest = self.nearest.min(probe.offset);
        self.farthest = self.farthest.max(probe.offset);
        self.list.push(probe);
    }

    /// Forgets all look-ups.
    pub fn clear(&mut self) {
        self.list.clear();
        (self.nearest, self.farthest) = (usize::MAX, 0);
    }

    /// The look-ups, in the order in which they were added.
    #[must_use]
    pub fn list(&self) -> &[Probe] {
        &self.list
    }

    /// Whether all reach back at least to before the lanes and at most to the start of the window.
    fn are_far(&self, at: usize) -> bool {
        self.list.is_empty() || (self.nearest >= LANES && self.farthest <= at)
    }

    fn are_near(&self, at: usize) -> bool {
        self.list.is_empty() || (self.nearest >= 1 && self.farthest < LANES && self.farthest <= at)
    }
}

/// The far look-ups of a block, in the order of their use.
#[derive(Clone, Debug)]
pub struct Far {
    /// Codes below this are considered; one of [`CODES`].
    pub codes: usize,
    /// Entered in the table of codes.
    pub mark: Probes,
    /// Held against the candidates that are left, stage by stage.
    pub check: [Probes; STAGES],
}

/// Per lane the candidates that are left, ascending, then [`NONE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// `code[k][lane]`.
    pub code: [[u8; LANES]; CANDIDATES],
}

/// Bytes of a plane that one witness job treats: 512 heaps.
pub const PLANE: usize = 64;

/// A kernel that this processor can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
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
            Kind::Scalar => $scalar,
            // SAFETY: this kind is made by `available` only, after the processor said that it has the instructions.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { $avx2 },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { $avx512 },
        }
    };
}

impl Kernel {
    /// The portable kernel, which is the reference of the others.
    #[must_use]
    pub fn scalar() -> Kernel {
        Kernel(Kind::Scalar)
    }

    /// The kernels that this processor can run, best first.
    #[must_use]
    pub fn available() -> Vec<Kernel> {
        let mut kernels = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if avx512::is_available() {
                kernels.push(Kernel(Kind::Avx512));
            }
            if avx2::is_available() {
                kernels.push(Kernel(Kind::Avx2));
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
            Kind::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
        }
    }

    /// How many look-ups are best marked before checking starts (measured on Grundy's game).
    #[must_use]
    pub fn marks(self) -> usize {
        match self.0 {
            Kind::Scalar => 448,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => 320,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => 560,
        }
    }

    /// For each lane: of the codes below `far.codes` that no `mark` probe hits, the `KEEP[0]` least; of those, stage by
    /// stage, the ones that no probe of `check[stage]` hits, of which the `KEEP[stage + 1]` least stay.
    ///
    /// # Panics
    /// When a probe reaches before the window or nearer than [`LANES`], or `far.codes` is none of [`CODES`].
    #[must_use]
    pub fn candidates(self, window: &[u8], at: usize, far: &Far) -> Lanes {
        assert!(at <= window.len(), "the lanes follow what is known");
        assert!(CODES.contains(&far.codes), "a number of codes that no kernel has");
        assert!(far.mark.are_far(at) && far.check.iter().all(|c| c.are_far(at)), "a probe outside its window");
        dispatch!(
            self,
            scalar::candidates(window, at, far),
            avx2::candidates(window, at, far),
            avx512::candidates(window, at, far)
        )
    }

    /// Fills `window[at + lane]` for `from <= lane < to` with the least candidate that no near probe hits, and stops at
    /// the first lane that has none; that lane, or `to`, is the answer.
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
            Kind::Avx512 => unsafe { avx512::near(window, at, near, lanes, from, to) },
            _ => scalar::near(window, at, near, lanes, from, to),
        }
    }

    /// Fills `window[n]` for `at <= n < to`, one after the other, with the least code below [`CHAIN_CODES`] that no probe
    /// hits, and stops at the first `n` that has none; that `n`, or `to`, is the answer. From there on nothing is written.
    ///
    /// # Panics
    /// When a probe reaches before the window or nowhere back, `at` is below [`LANES`], or `to` outside the window.
    pub fn chain(self, window: &mut [u8], at: usize, to: usize, chain: &Chain) -> usize {
        assert!(at <= to && to <= window.len(), "heaps outside the window");
        assert!(chain.is_inside(at), "a probe outside its window");
        dispatch!(
            self,
            chain::scalar(window, at, to, chain),
            chain::avx2(window, at, to, chain),
            chain::avx512(window, at, to, chain)
        )
    }

    /// Clears the bits of `needed` that are set in one of the planes that start at the bytes `at + ask` (wrapping) of
    /// `planes`; stops asking when none is left.
    ///
    /// # Panics
    /// When a plane that is asked is not inside `planes`.
    pub fn settle(self, planes: &[u8], at: usize, asks: &[usize], needed: &mut [u8; PLANE]) {
        dispatch!(
            self,
            portable::settle(planes, at, asks, needed),
            portable::settle_avx2(planes, at, asks, needed),
            avx512::settle(planes, at, asks, needed)
        );
    }

    /// How many bits of `hits` are set in each level, the levels worth 9, 3 and 1.
    #[must_use]
    pub fn gain(self, levels: &[Vec<u64>; 3], hits: &[u64]) -> u32 {
        dispatch!(
            self,
            portable::gain(levels, hits),
            portable::gain_avx2(levels, hits),
            portable::gain_avx512(levels, hits)
        )
    }

    /// Looks for `wanted` among `a[i] ^ b[j]`, both taken from their ends backwards side by side, in steps of 64 pairs:
    /// the number of pairs looked at when it was there, `None` when the shorter slice ended first.
    #[must_use]
    pub fn find(self, a: &[u16], b: &[u16], wanted: u16) -> Option<usize> {
        dispatch!(
            self,
            portable::find(a, b, wanted),
            portable::find_avx2(a, b, wanted),
            portable::find_avx512(a, b, wanted)
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
                probes.push(Probe { offset, code: self.below(spread) as u8 });
            }
            probes
        }
    }

    /// The contract of `candidates`, word for word, one lane at a time.
    fn contract(window: &[u8], at: usize, far: &Far, lane: usize) -> Vec<u8> {
        let hits =
            |probes: &Probes, code: u8| probes.list().iter().any(|p| window[at + lane - p.offset] ^ p.code == code);
        let mut left: Vec<u8> = (0..far.codes as u8).filter(|&code| !hits(&far.mark, code)).collect();
        for (keep, check) in KEEP.into_iter().zip(&far.check) {
            left.truncate(keep);
            left.retain(|&code| !hits(check, code));
        }
        left.truncate(CANDIDATES);
        left
    }

    const LENGTHS: [usize; 10] = [0, 1, 2, 7, 8, 9, 63, 64, 65, 300];
    const SPREADS: [usize; 6] = [1, 3, 60, 128, 170, 256];

    #[test]
    fn every_kernel_keeps_the_contract_of_candidates_at_every_length() {
        for seed in 0..300 {
            let random = &mut Random(seed);
            let at = LANES + random.below(3000);
            let spread = SPREADS[random.below(6)];
            let window: Vec<u8> = (0..at).map(|_| random.below(spread) as u8).collect();
            let mut list = || {
                let count = LENGTHS[random.below(10)];
                random.probes(count, LANES..at + 1, spread)
            };
            let (mark, check) = (list(), [list(), list(), list()]);
            let far = Far { codes: CODES[seed as usize % CODES.len()], mark, check };
            for kernel in Kernel::available() {
                let lanes = kernel.candidates(&window, at, &far);
                for lane in 0..LANES {
                    let expected = contract(&window, at, &far, lane);
                    let found: Vec<u8> = lanes.code.iter().map(|row| row[lane]).take_while(|&c| c != NONE).collect();
                    assert_eq!(found, expected, "{kernel}, seed {seed}, lane {lane}");
                    assert!(lanes.code[found.len()..].iter().all(|row| row[lane] == NONE), "{kernel}, seed {seed}");
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
            let mut lanes = Lanes { code: [[NONE; LANES]; CANDIDATES] };
            for lane in 0..LANES {
                let mut codes: Vec<u8> =
                    (0..1 + random.below(CANDIDATES)).map(|_| random.below(spread) as u8).collect();
                codes.sort_unstable();
                codes.dedup();
                codes.iter().enumerate().for_each(|(k, &code)| lanes.code[k][lane] = code);
            }
            let from = random.below(LANES);
            let to = from + random.below(LANES - from + 1);
            let mut expected = window.clone();
            let mut stopped = to;
            for lane in from..to {
                let hit = |code: u8| near.list().iter().any(|p| expected[at + lane - p.offset] ^ p.code == code);
                let open = lanes.code.iter().map(|row| row[lane]).find(|&code| code != NONE && !hit(code));
                match open {
                    Some(code) => expected[at + lane] = code,
                    None => {
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
        let lanes = Lanes { code: [[NONE; LANES]; CANDIDATES] };
        let mut near = Probes::new();
        near.push(Probe { offset: 1, code: 0 });
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
            for farthest in [nearest + 2, 33, 65, at + 1] {
                let count = [0, 1, 2, 7, 30][random.below(5)];
                probes.extend_from_slice(
                    random.probes(count, nearest..farthest.clamp(nearest + 1, at + 1), spread).list(),
                );
            }
            // Some heap may see all the codes that the chain knows.
            if random.below(3) == 0 {
                let place = nearest + random.below(at + 1 - nearest);
                let missing = random.below(40) as u8;
                let codes = (0..CHAIN_CODES).filter(|&code| code != missing);
                probes.extend(codes.map(|code| Probe { offset: place, code }));
            }
            let mut expected = window.clone();
            let open = |window: &[u8], n: usize| {
                (0..CHAIN_CODES).find(|&code| probes.iter().all(|p| window[n - p.offset] ^ p.code != code))
            };
            let end = (at..to).find(|&n| open(&expected, n).map(|code| expected[n] = code).is_none()).unwrap_or(to);
            (complete, stopped) = (complete + usize::from(end == to), stopped + usize::from(end < to));
            let chain = Chain::new(probes.clone());
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
                let chain = Chain::new(vec![Probe { offset, code: 0 }]);
                let refused = std::panic::catch_unwind(|| {
                    kernel.chain(&mut [0; 164], at, to, &chain);
                });
                assert!(refused.is_err(), "{kernel}: {offset} back, heaps {at}..{to}");
            }
        }
    }

    #[test]
    fn the_witness_jobs_of_every_kernel_are_what_they_say() {
        for seed in 0..200 {
            let random = &mut Random(seed);
            let planes: Vec<u8> = (0..1000).map(|_| random.next() as u8 & random.next() as u8).collect();
            let starts: Vec<usize> = (0..random.below(12)).map(|_| random.below(planes.len() - PLANE + 1)).collect();
            let needed: [u8; PLANE] = std::array::from_fn(|_| random.next() as u8);
            let left: [u8; PLANE] =
                std::array::from_fn(|i| starts.iter().fold(needed[i], |bits, start| bits & !planes[start + i]));
            let words = LENGTHS[random.below(10)];
            let mut list = |length: usize| -> Vec<u64> { (0..length).map(|_| random.next()).collect() };
            let levels = [list(words), list(words), list(words)];
            let hits = list(words);
            let ones = |level: &[u64]| level.iter().zip(&hits).map(|(a, b)| (a & b).count_ones()).sum::<u32>();
            let worth = 9 * ones(&levels[0]) + 3 * ones(&levels[1]) + ones(&levels[2]);
            let pairs = LENGTHS[random.below(10)];
            let spread = [2, 40, 300][random.below(3)];
            let a: Vec<u16> = (0..pairs).map(|_| random.below(spread) as u16).collect();
            let b: Vec<u16> = (0..pairs + random.below(3)).map(|_| random.below(spread) as u16).collect();
            let wanted = random.below(spread) as u16;
            let first = a.iter().rev().zip(b.iter().rev()).position(|(x, y)| x ^ y == wanted);
            let found = first.map(|at| pairs.min((at / 64 + 1) * 64));
            for kernel in Kernel::available() {
                let mut bits = needed;
                let at = random.below(2000);
                let asks: Vec<usize> = starts.iter().map(|start| start.wrapping_sub(at)).collect();
                kernel.settle(&planes, at, &asks, &mut bits);
                assert_eq!(bits, left, "{kernel}, seed {seed}");
                assert_eq!(kernel.gain(&levels, &hits), worth, "{kernel}, seed {seed}");
                assert_eq!(kernel.find(&a, &b, wanted), found, "{kernel}, seed {seed}");
            }
        }
    }
}

//! The mex kernels: for 64 consecutive heaps at once, the least values that no look-up hits.
//!
//! One contract, one signature ([`Kernel::candidates`]), one reference (`scalar`), one shared test. A kernel sees bytes
//! and offsets only; what the bytes mean (the order-keeping code of common values) is the business of [`crate::sparse`].
//!
//! A look-up ([`Probe`]) is one rare position under one split: for lane i it gives the option
//! `window[at + i - offset] ^ code`. The first look-ups, `mark`, are entered in a table of all codes per lane; the
//! remaining ones, `check`, are only asked whether they hit one of the eight least codes that `mark` left open. Marking
//! costs a table, checking two instructions a candidate and 16 or more lanes, so a good order of the look-ups (many hits
//! first) makes the expensive part short: see `sparse::order`.
//!
//! A [`Kernel`] value can be had from [`Kernel::available`] only, so holding one proves that this processor has it.

mod scalar;

use std::fmt;

/// Consecutive heaps that a kernel treats at once.
pub const LANES: usize = 64;

/// Candidates kept per lane.
pub const CANDIDATES: usize = 8;

/// Codes below this are considered; a lane whose answer is at or above it comes back without a candidate.
pub const CODES: usize = 128;

/// One look-up: `offset` back in the window, XOR `code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// How far back, at least [`LANES`].
    pub offset: usize,
    /// XORed to what stands there.
    pub code: u8,
}

/// What a kernel answers for 64 lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// `code[k][lane]`: the k-th least code below [`CODES`] that no `mark` probe hits (ascending in k); undefined where
    /// the bit of `open` is not set.
    pub code: [[u8; LANES]; CANDIDATES],
    /// Bit k of `open[lane]`: the k-th candidate exists, and no `check` probe hits it.
    pub open: [u8; LANES],
}

/// A kernel that this processor can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Scalar,
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
        vec![Kernel::scalar()]
    }

    /// The fastest kernel of this processor.
    #[must_use]
    pub fn best() -> Kernel {
        Kernel::available()[0]
    }

    /// The name that `--kernel` takes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Scalar => "scalar",
        }
    }

    /// How many look-ups are best marked before checking starts (measured on Grundy's game).
    #[must_use]
    pub fn marks(self) -> usize {
        match self.0 {
            Kind::Scalar => 448,
        }
    }

    /// The contract of all kernels: for each lane the [`CANDIDATES`] least codes below [`CODES`] that none of `mark`
    /// hits, and which of them none of `check` hits either.
    ///
    /// # Panics
    /// When a probe reaches before the window or nearer than [`LANES`].
    #[must_use]
    pub fn candidates(self, window: &[u8], at: usize, mark: &[Probe], check: &[Probe]) -> Lanes {
        match self.0 {
            Kind::Scalar => scalar::candidates(window, at, mark, check),
        }
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
    }

    /// The contract, word for word, one lane at a time.
    fn contract(window: &[u8], at: usize, mark: &[Probe], check: &[Probe], lane: usize) -> Vec<(u8, bool)> {
        let hits = |probes: &[Probe], code: u8| probes.iter().any(|p| window[at + lane - p.offset] ^ p.code == code);
        let unmarked = (0..CODES as u8).filter(|&code| !hits(mark, code));
        unmarked.take(CANDIDATES).map(|code| (code, !hits(check, code))).collect()
    }

    #[test]
    fn every_kernel_keeps_the_contract_at_every_length() {
        for seed in 0..60 {
            let random = &mut Random(seed);
            let at = LANES + random.below(3000);
            let spread = [1, 3, 60, 128, 256][random.below(5)];
            let window: Vec<u8> = (0..at).map(|_| random.below(spread) as u8).collect();
            let mut probes = |count: usize| -> Vec<Probe> {
                let offset = |r: &mut Random| LANES + r.below(at - LANES + 1);
                (0..count).map(|_| Probe { offset: offset(random), code: random.below(spread) as u8 }).collect()
            };
            let lengths = [0, 1, 2, 7, 8, 9, 63, 64, 65, 300];
            let mark = probes(lengths[seed as usize % 10]);
            let check = probes(lengths[seed as usize / 6]);
            for kernel in Kernel::available() {
                let lanes = kernel.candidates(&window, at, &mark, &check);
                for lane in 0..LANES {
                    let expected = contract(&window, at, &mark, &check, lane);
                    for (k, &(code, open)) in expected.iter().enumerate() {
                        let found = (lanes.code[k][lane], lanes.open[lane] >> k & 1 == 1);
                        assert!(
                            found.1 == open && (!open || found.0 == code),
                            "{kernel}, seed {seed}, lane {lane}, candidate {k}: {found:?} for {:?}",
                            (code, open)
                        );
                    }
                    let exist = expected.len();
                    assert!(exist == 8 || lanes.open[lane] >> exist == 0, "{kernel}, seed {seed}: too many candidates");
                }
            }
        }
    }
}

//! Tools for tests of hazards, inside and outside the library: repeatable random numbers, numbers of cases, and
//! tallies.

#![allow(dead_code, reason = "each user uses a part of it")]

use std::fs::OpenOptions;
use std::io::Write;
use std::time::Instant;

/// The random generator of all tests: SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014). A printed seed repeats a failure on every machine.
pub(crate) struct Random(u64);

impl Random {
    /// A generator seeded by GRUNDY_TEST_SEED or by the clock. It prints the seed, which the output of a failed test
    /// shows.
    pub(crate) fn new(test: &str) -> Random {
        let clock = || {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
            now.as_nanos() as u64 % 1_000_000_007
        };
        let given = std::env::var("GRUNDY_TEST_SEED").ok().map(|seed| seed.parse().expect("a decimal seed"));
        let seed = given.unwrap_or_else(clock);
        println!("{test}: GRUNDY_TEST_SEED={seed} repeats this");
        Random(seed)
    }

    /// A generator with this seed, for seeds that another generator drew.
    pub(crate) fn seeded(seed: u64) -> Random {
        Random(seed)
    }

    /// An independent generator for one of many cases.
    pub(crate) fn fork(&mut self) -> Random {
        Random(self.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// Whether to try a case of many: in each test run one in `one_in`, chosen at random; all with GRUNDY_LONG=1.
    pub(crate) fn tries(&mut self, one_in: u64) -> bool {
        self.below(cases(one_in, 1)) == 0
    }

    /// A byte that differs from this one.
    pub(crate) fn other_byte(&mut self, byte: u8) -> u8 {
        byte ^ (1 + self.below(255)) as u8
    }
}

/// Number of cases of a hazard test: `often` in every test run, `long` with GRUNDY_LONG=1 (`scripts/test --long`).
pub(crate) fn cases(often: u64, long: u64) -> u64 {
    if std::env::var("GRUNDY_LONG").is_ok_and(|value| value == "1") { long } else { often }
}

/// One line of the table at the end of `scripts/test`: what a hazard test tried and observed. It is printed, and
/// appended to the file that GRUNDY_TALLY names.
pub(crate) struct Tally {
    hazard: &'static str,
    begun: Instant,
}

impl Tally {
    /// Starts the clock.
    pub(crate) fn begin(hazard: &'static str) -> Tally {
        Tally { hazard, begun: Instant::now() }
    }

    /// Writes the line: hazard, number of cases, observations, seconds.
    pub(crate) fn end(self, cases: u64, seen: &str) {
        let line = format!("{}\t{cases}\t{seen}\t{:.1}\n", self.hazard, self.begun.elapsed().as_secs_f64());
        print!("{line}");
        if let Ok(path) = std::env::var("GRUNDY_TALLY") {
            let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
            file.write_all(line.as_bytes()).unwrap();
        }
    }
}

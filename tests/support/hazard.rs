//! Chance that can be repeated, and how much of it was tried: for the tests of hazards, outside and inside of the library.

#![allow(dead_code, reason = "each user uses a part of it")]

use std::fs::OpenOptions;
use std::io::Write;
use std::time::Instant;

/// SplitMix64 (Steele, Lea and Flood 2014): a printed seed repeats a failure on every machine.
pub(crate) struct Random(u64);

impl Random {
    /// Seeded by GRUNDY_TEST_SEED or the clock; the seed is printed, and shown when the test fails.
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

    /// Repeats the numbers of a seed that came from another generator.
    pub(crate) fn seeded(seed: u64) -> Random {
        Random(seed)
    }

    /// A generator of its own for the `case`-th of many cases.
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

    /// A byte that differs from this one.
    pub(crate) fn other_byte(&mut self, byte: u8) -> u8 {
        byte ^ (1 + self.below(255)) as u8
    }
}

/// How many cases a test of a hazard tries: `often` in every run, `long` under `scripts/test --long` (GRUNDY_LONG=1).
pub(crate) fn cases(often: u64, long: u64) -> u64 {
    if std::env::var("GRUNDY_LONG").is_ok_and(|asked| asked == "1") { long } else { often }
}

/// What a test of a hazard did, for the table at the end of `scripts/test`: printed, and appended to the file that
/// GRUNDY_TALLY names.
pub(crate) struct Tally {
    hazard: &'static str,
    begun: Instant,
}

impl Tally {
    /// Starts the clock.
    pub(crate) fn begin(hazard: &'static str) -> Tally {
        Tally { hazard, begun: Instant::now() }
    }

    /// Writes the line of the table: hazard, cases, what was seen in them, seconds.
    pub(crate) fn end(self, cases: u64, seen: &str) {
        let line = format!("{}\t{cases}\t{seen}\t{:.1}\n", self.hazard, self.begun.elapsed().as_secs_f64());
        print!("{line}");
        if let Ok(path) = std::env::var("GRUNDY_TALLY") {
            let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
            file.write_all(line.as_bytes()).unwrap();
        }
    }
}

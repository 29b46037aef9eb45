//! Tests this build on this machine; a user runs it before a long computation.
//!
//! The self-test answers four questions, with a [`Check`] for each part. Do the kernels of this processor agree with
//! the scalar kernel? Are the values those of the definition, with every kernel and number of threads? Are they the
//! published ones (`data/`)? Does a run that is stopped, torn and resumed have the right values, and does `verify`
//! find altered bytes?
//!
//! All random numbers come from fixed seeds, so a failure can be repeated. Runs are written to a directory of their
//! own below the system's directory for temporary files, and are removed at the end.

use crate::checkpoint::journal;
use crate::error::{Error, Result};
use crate::kernel::{
    BitPlanes, KEEP, Kernel, LANES, NearJob, Probe, Probes, RANGES, REPEATS_VALUES, Recurrence, Stage,
};
use crate::run::{Observer, Progress, Run};
use crate::solver::{self, Method};
use crate::table::Width;
use crate::theory::definition;
use crate::theory::nimber::index;
use crate::theory::random::split_mix;
use crate::theory::rule::Rule;
use crate::verify;
use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Check {
    /// What the check tests.
    pub name: String,
    /// A summary of what passed, or what went wrong.
    pub outcome: std::result::Result<String, String>,
    /// Whether the system did not permit the check (no room, no permission, no memory), so that it shows nothing.
    pub is_hindered: bool,
    /// Duration of the check.
    pub time: Duration,
}

/// Runs the checks in order, and calls `each` with the result of every one, until `each` returns false. Returns whether
/// all these passed.
pub fn run(mut each: impl FnMut(&Check) -> bool) -> bool {
    let mut passed = true;
    for (name, test) in checks() {
        let begun = Instant::now();
        // A panic counts as a failed check.
        let tested = std::panic::catch_unwind(std::panic::AssertUnwindSafe(test));
        let (outcome, is_hindered) = match tested.unwrap_or_else(|_| Err("it panicked".into())) {
            Ok(said) => (Ok(said), false),
            Err(Failure::Wrong(said)) => (Err(said), false),
            Err(Failure::Hindered(said)) => (Err(said), true),
        };
        passed &= outcome.is_ok();
        if !each(&Check { name, outcome, is_hindered, time: begun.elapsed() }) {
            break;
        }
    }
    passed
}

/// Returns the names of all checks, in the order in which [`run`] runs them.
#[must_use]
pub fn names() -> Vec<String> {
    checks().into_iter().map(|(name, _)| name).collect()
}

type Test = Box<dyn FnOnce() -> Outcome>;

/// All checks, in order.
fn checks() -> Vec<(String, Test)> {
    let mut checks: Vec<(String, Test)> = Vec::new();
    let mut check = |name: String, test: Test| checks.push((name, test));
    for kernel in Kernel::available().into_iter().filter(|&kernel| kernel != Kernel::scalar()) {
        check(format!("kernel {kernel} against scalar"), Box::new(move || kernel_keeps_contract(kernel)));
    }
    for (game, count) in GAMES {
        check(format!("{game} by the definition"), Box::new(move || values_are_defined(game, count)));
    }
    check("published values".into(), Box::new(published));
    check("published periods".into(), Box::new(periods));
    check("first value above 255 of grundy".into(), Box::new(above_a_byte));
    for (game, width) in [("grundy", Width::U8), ("0.6", Width::U8), ("0.6", Width::U16)] {
        check(format!("run of {game} in {}", width.name()), Box::new(move || a_run(game, width)));
    }
    checks
}

type Outcome = std::result::Result<String, Failure>;

/// Games of all kinds, each with the number of values that are computed by the definition.
const GAMES: [(&str, usize); 8] = [
    ("grundy", 12_000),
    ("0.6", 12_000),
    ("kayles", 9000),
    ("0.106", 12_000),
    ("remove-a-square", 9000),
    ("grundy:d=3", 9000),
    ("0.004", 9000),
    ("0.034", 9000),
];

/// Number of values on which all kernels and numbers of threads must agree, for games with a known sparse space.
const FAR: usize = 25_000;

/// Why a check did not pass.
enum Failure {
    /// A result is wrong.
    Wrong(String),
    /// The system did not permit the check: no room, no permission, no memory.
    Hindered(String),
}

impl Failure {
    /// The failure of an operation on the files of a run.
    fn of_files(what: &str, error: &std::io::Error) -> Failure {
        Failure::Hindered(format!("{what}: {error}{}", advice()))
    }
}

/// What to do when the system does not permit a check.
fn advice() -> String {
    format!("; this check writes below {}: make room there, or set TMPDIR", std::env::temp_dir().display())
}

impl From<String> for Failure {
    fn from(what: String) -> Failure {
        Failure::Wrong(what)
    }
}

impl From<&str> for Failure {
    fn from(what: &str) -> Failure {
        Failure::Wrong(what.into())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Io { .. } | Error::NoRoom { .. } => Failure::Hindered(format!("{error}{}", advice())),
            Error::Memory { .. } | Error::ThreadPool { .. } => Failure::Hindered(error.to_string()),
            _ => Failure::Wrong(error.to_string()),
        }
    }
}

/// Random numbers from a seed.
struct Random {
    seed: u64,
    /// Number of numbers drawn.
    drawn: u64,
}

impl Random {
    fn new(seed: u64) -> Random {
        Random { seed, drawn: 0 }
    }

    fn next(&mut self) -> u64 {
        self.drawn += 1;
        split_mix(self.seed, self.drawn - 1)
    }

    fn below(&mut self, bound: usize) -> usize {
        index(self.next() % bound as u64)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    fn probes(&mut self, offsets: std::ops::Range<usize>) -> Vec<Probe> {
        let count = [0, 1, 7, 64, 300][self.below(5)];
        (0..count).map(|_| Probe::new(offsets.start + self.below(offsets.len()), self.byte() & 63)).collect()
    }
}

fn list(probes: &[Probe]) -> Probes {
    let mut list = Probes::new();
    probes.iter().for_each(|probe| list.push(*probe));
    list
}

/// Compares all jobs of a kernel on random data with those of the scalar kernel.
fn kernel_keeps_contract(kernel: Kernel) -> Outcome {
    const ROUNDS: u64 = 10_000;
    for seed in 0..ROUNDS {
        let random = &mut Random::new(seed);
        let at = 2 * REPEATS_VALUES + random.below(2000);
        let window: Vec<u8> = (0..at + REPEATS_VALUES).map(|_| random.byte() & 63).collect();
        let (mark, far, near) = (random.probes(LANES..at), random.probes(LANES..at), random.probes(1..LANES));
        let codes = crate::kernel::CODES[random.below(crate::kernel::CODES.len())];
        let keep = KEEP[random.below(KEEP.len())];
        let below: [u8; LANES] = std::array::from_fn(|_| random.byte());
        let wanted = random.byte() & 63;
        let split = random.below(at);
        let range = RANGES[random.below(RANGES.len())];
        let jobs = |kernel: Kernel| {
            let mut planes = BitPlanes::new(codes);
            kernel.mark(&window, at, &list(&mark), &mut planes);
            let lanes = kernel.refine(&window, at, &planes, &[Stage { keep, check: list(&far) }]);
            let mut filled = window.clone();
            let job = NearJob { at, probes: &near.iter().copied().collect(), from: 0, to: LANES };
            let to = kernel.near(&mut filled, job, &lanes);
            filled.truncate(at + to);
            kernel.marks_to_open(&mut planes, &below);
            kernel.clear_hits(&window, at, &list(&far), &mut planes);
            let mut from_recurrence = window.clone();
            let end = kernel.recurrence(
                &mut from_recurrence,
                at,
                at + LANES,
                &Recurrence::new([&near[..], &far[..]].concat(), range),
            );
            from_recurrence.truncate(end);
            let (a, b) = (&window[..split], &window[split..]);
            let wide = |list: &[u8]| -> Vec<u16> { list.iter().map(|&v| u16::from(v) * 257).collect() };
            let found = kernel.find_code_pair(a, b, wanted);
            let mut open = (0..=63).step_by(1 + split % 7).collect();
            let mut calls = Vec::new();
            kernel.find_code_pairs(a, b, &mut open, |code, pairs| {
                calls.push((code, pairs));
                pairs % 3 == 0
            });
            open.sort_unstable();
            calls.sort_unstable();
            let found_value = kernel.find_value_pair(&wide(a), &wide(b), u16::from(wanted) * 257);
            let lookups: Vec<(usize, u8)> = mark.iter().take(2).map(|p| (p.offset, 128 | p.code())).collect();
            let values: Vec<(usize, u16)> = lookups.iter().map(|&(o, code)| (o, u16::from(code) * 257)).collect();
            let mut items = window.clone();
            items[at + split % REPEATS_VALUES] |= 128;
            let repeats = kernel.repeats(&items, at, &lookups);
            let repeats_value = kernel.repeats_value(&wide(&items), at, &values);
            (lanes, filled, planes, from_recurrence, found, open, calls, found_value, repeats, repeats_value)
        };
        if jobs(kernel) != jobs(Kernel::scalar()) {
            return Err(format!("the kernel disagrees with the scalar kernel (seed {seed})").into());
        }
    }
    Ok(format!("{ROUNDS} rounds of all its jobs"))
}

/// Computes G(0), …, G(count - 1) on `threads` threads.
fn values(rule: &Rule, kernel: Kernel, threads: usize, count: usize) -> Result<Vec<u16>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(Error::threads("the self-test"))?;
    pool.install(|| solver::values(rule, Method::Sparse(kernel), count))
}

/// Compares the values of every kernel, on one, two and more threads than there are cores, with those of the
/// definition.
fn values_are_defined(game: &str, count: usize) -> Outcome {
    let rule: Rule = game.parse()?;
    let defined = definition::values(&rule, count)?;
    let far = if rule.known().is_some_and(|known| known.space.is_some()) { FAR } else { count };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut expected: Option<Vec<u16>> = None;
    for kernel in Kernel::available() {
        for threads in [1, 2, cores + 3] {
            let setting = format!("{kernel} on {threads} threads");
            let found = values(&rule, kernel, threads, far)?;
            if let Some(n) = (0..count).find(|&n| found[n] != defined[n]) {
                return Err(format!("{setting}: G({n}) = {}, but by the definition {}", found[n], defined[n]).into());
            }
            match &expected {
                Some(expected) if *expected != found => {
                    return Err(format!("{setting}: the values differ from those of the first setting").into());
                }
                Some(_) => {}
                None => expected = Some(found),
            }
        }
    }
    let found = expected.unwrap_or_default();
    let random = &mut Random::new(1);
    let mut heaps: Vec<u64> = (0..100).map(|_| random.below(far) as u64).chain([far as u64 - 1]).collect();
    heaps.sort_unstable();
    verify::sample(&rule, &found, &heaps, |_, _| {})?;
    Ok(format!("{count} values, and a sample below {far}, with every kernel on 1, 2 and {} threads", cores + 3))
}

/// Returns the lines of a file of `data/` without its comments.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with('#'))
}

/// Compares values with the published ones.
fn published() -> Outcome {
    let mut compared = 0;
    let mut compare = |game: &str, source: &str, printed: &[(usize, u16)]| -> std::result::Result<(), Failure> {
        let rule: Rule = game.parse()?;
        let computed = solver::values(&rule, Method::Sparse(Kernel::best()), 200)?;
        let wrong = printed.iter().find(|&&(n, value)| computed.get(n) != Some(&value));
        compared += printed.len();
        if let Some((n, value)) = wrong {
            return Err(format!("{source} says {value} at {n} for {game}, not {}", computed[*n]).into());
        }
        Ok(())
    };
    for (source, text) in [
        ("Eureka 2 (1939)", include_str!("../data/grundy-1939.txt")),
        ("Eureka 16", include_str!("../data/guy-eureka16.txt")),
        ("Schrage (1983)", include_str!("../data/schrage-1983-table1.txt")),
    ] {
        let mut printed = Vec::new();
        for (first, digits) in lines(text).filter_map(|line| line.split_once(' ')) {
            let first = first.parse().map_err(|_| format!("{source}: '{first}' is not the first n of a line"))?;
            printed.extend((first..).zip(digits.chars().filter_map(|c| c.to_digit(10)?.try_into().ok())));
        }
        compare("grundy", source, &printed)?;
    }
    let squares = lines(include_str!("../data/remove-a-square-a286332.txt")).flat_map(str::split_whitespace);
    let squares: Vec<(usize, u16)> = (0..).zip(squares.filter_map(|value| value.parse().ok())).collect();
    compare("remove-a-square", "OEIS A286332", &squares)?;
    if compared < 17 + 38 + 100 + 96 {
        return Err(format!("only {compared} published values are in this build").into());
    }
    Ok(format!("{compared} values"))
}

/// Compares the values of games with a preperiod of at most 1000 with the published period and preperiod.
fn periods() -> Outcome {
    let mut seen = 0;
    for line in lines(include_str!("../data/periods.csv")).skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [game, period, preperiod, _] = fields[..] else {
            return Err(format!("'{line}' does not state a period").into());
        };
        let number = |text: &str| text.parse::<usize>().map_err(|_| format!("'{line}' does not state a period"));
        let (period, preperiod) = (number(period)?, number(preperiod)?);
        if preperiod > 1000 {
            continue;
        }
        let rule: Rule = game.parse()?;
        let count = 2 * preperiod + 3 * period + 5000;
        let values = solver::values(&rule, Method::Sparse(Kernel::best()), count)?;
        let repeats = |from: usize| values[from..count - period] == values[from + period..];
        if !repeats(preperiod) || (preperiod > 0 && repeats(preperiod - 1)) {
            return Err(format!("{game} does not have period {period} and preperiod {preperiod}").into());
        }
        seen += 1;
    }
    Ok(format!("{seen} games"))
}

/// Compares the first value of Grundy's game above 255 with the published one; truncating it to a byte would make
/// later values wrong.
fn above_a_byte() -> Outcome {
    let rule: Rule = "grundy".parse()?;
    let fact = lines(include_str!("../data/facts.csv")).find_map(|line| line.strip_prefix("grundy,first above 255,"));
    let fact = fact.and_then(|numbers| numbers.split_once(','));
    let fact = fact.and_then(|(n, value)| Some((n.parse::<usize>().ok()?, value.parse::<u16>().ok()?)));
    let (n, value) = fact.ok_or("this build has no published first value above 255")?;
    let values = solver::values(&rule, Method::Sparse(Kernel::best()), n + 1)?;
    match values.iter().position(|&v| v > 255) {
        Some(first) if first == n && values[n] == value => Ok(format!("G({n}) = {value}")),
        Some(first) => Err(format!("the first is G({first}) = {}, not G({n}) = {value}", values[first]).into()),
        None => Err(format!("there is none up to n = {n}, but G({n}) should be {value}").into()),
    }
}

/// A directory for one run, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> std::io::Result<Scratch> {
        let mut tries = 0;
        loop {
            let name = format!("grundy-selftest-{}-{tries}", std::process::id());
            let path = std::env::temp_dir().join(name);
            match std::fs::create_dir(&path) {
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists && tries < 100 => tries += 1,
                created => return created.map(|()| Scratch(path)),
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0); // a directory that cannot be removed is harmless
    }
}

/// Sets the stop flag when the run has the given number of values.
struct StopAt<'a>(u64, &'a AtomicBool);

impl Observer for StopAt<'_> {
    fn advanced(&mut self, progress: &Progress) {
        if progress.count >= self.0 {
            self.1.store(true, Ordering::Relaxed);
        }
    }
}

/// Stops a run, leaves its files as a kill would leave them, resumes it, and verifies it at all levels, also with
/// altered bytes.
fn a_run(game: &str, width: Width) -> Outcome {
    const TO: u64 = 20_000;
    let rule: Rule = game.parse()?;
    let scratch = Scratch::new().map_err(|error| Failure::of_files("creating a directory", &error))?;
    let dir = &scratch.0.join("run");
    let go_on = |until: u64| {
        let stop = AtomicBool::new(false);
        let mut observer = StopAt(until, &stop);
        Run::builder(&rule, dir).to(TO).width(width).observer(&mut observer).stop(&stop).run()
    };
    let stopped = go_on(TO / 3)?.progress.count;
    if stopped >= TO {
        return Err("the run did not stop when the stop flag was set".into());
    }
    for (name, torn) in [("values.npy", &[7u8; 999][..]), (journal::NAME, &b"{\"format\":1,\"run\":\""[..])] {
        let file = OpenOptions::new().append(true).open(dir.join(name));
        file.and_then(|mut file| file.write_all(torn))
            .map_err(|error| Failure::of_files(&format!("writing {name}"), &error))?;
    }
    go_on(u64::MAX)?;
    let expected = solver::values(&rule, Method::Sparse(Kernel::scalar()), index(TO))?;
    let mut chain = crate::table::digest::DigestChain::new();
    chain.update(&expected);
    let record = journal::read(dir)?.last;
    if record.count != TO || record.digest != chain.digest().to_string() {
        return Err("the values of the resumed run differ from those computed in memory".into());
    }
    let digest = || verify::digest(dir, None, |_, _| {});
    digest()?;
    verify::exclusion(dir, None, |_, _| {})?;
    verify::recompute(dir, None, |_, _| {})?;
    verify::definition(dir, None, 50, 1, |_, _| {})?;
    let found = altered_bytes(dir, width, || digest().is_err())?;
    digest()?;
    Ok(format!("stopped at {stopped}, torn, resumed to {TO}, verified at all levels; {found} altered bytes found"))
}

/// Alters single bits of the run's files, one at a time, and tests that `is_found` reports each. Returns the number
/// of bits altered.
fn altered_bytes(dir: &Path, width: Width, is_found: impl Fn() -> bool) -> std::result::Result<usize, Failure> {
    /// Number of bits altered in each file.
    const EACH: usize = 60;
    let random = &mut Random::new(2);
    let escapes = (width == Width::U8).then_some("escapes.npy");
    let mut altered = 0;
    for name in ["values.npy", journal::NAME].into_iter().chain(escapes) {
        let path = dir.join(name);
        let io = |error: std::io::Error| Failure::of_files(&format!("altering {name}"), &error);
        let good = std::fs::read(&path).map_err(io)?;
        let mut file = OpenOptions::new().write(true).open(&path).map_err(io)?;
        let mut put = |at: usize, byte: u8| {
            file.seek(SeekFrom::Start(at as u64)).and_then(|_| file.write_all(&[byte])).map_err(io)
        };
        for _ in 0..EACH {
            let at = random.below(good.len());
            let bit = 1u8 << random.below(8);
            put(at, good[at] ^ bit)?;
            let found = is_found();
            put(at, good[at])?;
            if !found {
                return Err(
                    format!("bit {bit:#04x} of byte {at} of {name} was altered, and verify did not find it").into()
                );
            }
            altered += 1;
        }
    }
    Ok(altered)
}

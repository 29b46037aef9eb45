//! Power cuts, errors of the disk and damage, in memory: after each, what was said to be committed is there and right, and
//! the run goes on to the bytes of one that nothing happened to.
//!
//! With the feature `small-segments` the runs free values: some of the tests have other histories then ([`FREES`]).

mod support;

use grundy::checkpoint::journal::{self, Event, RECORD, Record};
use grundy::error::{Error, Kind};
use grundy::kernel::Kernel;
use grundy::run::{self, Observer, Options, Outcome, Progress, RunPolicy, RunReader};
use grundy::solver::{Method, Solver};
use grundy::storage::faults::{Fault, Faults, Plan};
use grundy::storage::memory::{Memory, SECTOR};
use grundy::storage::{Dir, Mode, Storage};
use grundy::table::Width;
use grundy::theory::definition;
use grundy::theory::rule::Rule;
use grundy::verify;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use support::{Random, Silent, Tally, cases};

const HEADER: usize = 4096;

/// Whether the runs of these tests free values. Without small segments none does before 2^26 values.
const FREES: bool = cfg!(feature = "small-segments");

/// Values in one segment.
const SEGMENT: usize = if FREES { 1 << 12 } else { 1 << 24 };

/// How far runs that free values go.
const FREED_TO: u64 = 220_000;

/// What runs that free values keep besides the head of 2^16: a little more than their game looks back at.
const KEEP: u64 = 132_000;

/// A game, and its values by the definition.
struct Game {
    rule: Rule,
    method: Method,
    values: Vec<u16>,
}

impl Game {
    fn new(name: &str, method: Method, count: usize) -> Game {
        let rule: Rule = name.parse().unwrap();
        let values = definition::values(&rule, count).unwrap();
        assert!(values.iter().any(|&v| v > 255), "{name} has escapes");
        Game { rule, method, values }
    }

    /// Take up to 290 tokens, or 291 and leave two heaps: a game with many values above 255 early, which is quick.
    fn quick() -> &'static Game {
        static ONCE: OnceLock<Game> = OnceLock::new();
        ONCE.get_or_init(|| Game::new(&format!("0.{}7", "3".repeat(290)), Method::Definition, 4000))
    }

    /// A game with rare positions, solved by the streams from heap 4096 on.
    fn sparse() -> &'static Game {
        static ONCE: OnceLock<Game> = OnceLock::new();
        ONCE.get_or_init(|| Game::new("0.6", Method::Sparse(Kernel::best()), 12_000))
    }

    /// The same game, far enough to free values, by the scalar kernel and samples of the definition.
    fn freeing() -> &'static Game {
        static ONCE: OnceLock<Game> = OnceLock::new();
        ONCE.get_or_init(|| {
            let rule: Rule = "0.6".parse().unwrap();
            let mut values = Vec::new();
            let mut solver = Solver::new(&rule, Method::Sparse(Kernel::scalar()), None, [].as_slice()).unwrap();
            while (values.len() as u64) < FREED_TO {
                let mut more = Vec::new();
                solver.advance(values.as_slice(), FREED_TO, &mut more).unwrap();
                values.append(&mut more);
            }
            for n in (0..FREED_TO).step_by(997) {
                assert_eq!(definition::value_at(&rule, values.as_slice(), n).unwrap(), values[n as usize], "G({n})");
            }
            Game { rule, method: Method::Sparse(Kernel::best()), values }
        })
    }

    /// The files of a table of `count` values, as the format defines them.
    fn files(&self, width: Width, count: u64) -> (Vec<u8>, Option<Vec<u8>>) {
        let header = |descr: &str, length: usize| {
            let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': ({length},), }}");
            let mut bytes = b"\x93NUMPY\x01\x00\xf6\x0f".to_vec();
            bytes.extend(format!("{text:<4085}\n").as_bytes());
            assert_eq!(bytes.len(), HEADER);
            bytes
        };
        let values = &self.values[..count as usize];
        match width {
            Width::U16 => {
                let data = values.iter().flat_map(|v| v.to_le_bytes());
                (header("'<u2'", values.len()).into_iter().chain(data).collect(), None)
            }
            Width::U8 => {
                let data = values.iter().map(|&v| v.min(255) as u8);
                let large: Vec<(u64, u16)> = (0..).zip(values.iter().copied()).filter(|&(_, v)| v >= 255).collect();
                let entries = large.iter().flat_map(|(n, v)| [&n.to_le_bytes()[..], &v.to_le_bytes()].concat());
                let escapes = header("[('n', '<u8'), ('v', '<u2')]", large.len()).into_iter().chain(entries);
                (header("'|u1'", values.len()).into_iter().chain(data).collect(), Some(escapes.collect()))
            }
        }
    }

    /// The digest of the first values, as the format says.
    fn digest(&self, count: u64) -> String {
        let digest = self.values[..count as usize].chunks(SEGMENT).fold([0; 32], |before, segment| {
            let bytes: Vec<u8> = segment.iter().flat_map(|v| v.to_le_bytes()).collect();
            *blake3::hash(&[before, *blake3::hash(&bytes).as_bytes()].concat()).as_bytes()
        });
        blake3::Hash::from_bytes(digest).to_hex().to_string()
    }
}

/// How a process goes about a run.
#[derive(Clone, Copy, Debug)]
struct Process {
    to: u64,
    every: u64,
    width: Width,
    keep: Option<u64>,
    rollback: bool,
    repair: bool,
}

const USUAL: Process = Process { to: 1, every: 150, width: Width::U8, keep: None, rollback: false, repair: false };

/// One that frees values, from 201 632 on.
const FREEING: Process = Process { every: 3000, keep: Some(KEEP), ..USUAL };

impl Process {
    fn run(self, game: &Game, storage: Arc<dyn Storage>) -> grundy::Result<Outcome> {
        self.watched(game, game.method, storage, &mut Silent, &AtomicBool::new(false))
    }

    fn watched(
        self,
        game: &Game,
        method: Method,
        storage: Arc<dyn Storage>,
        observer: &mut (dyn Observer + Send),
        stop: &AtomicBool,
    ) -> grundy::Result<Outcome> {
        let Process { to, every, width, keep, rollback, repair } = self;
        let options = Options { to: Some(to), threads: 1, method, width: Some(width), keep, rollback };
        let policy = RunPolicy { commit_every: Some(every), repair, seed: Some(1) };
        run::run_in(&dir(storage), Some(&game.rule), &options, policy, observer, stop)
    }
}

fn dir(storage: Arc<dyn Storage>) -> Dir {
    Dir::on(storage, Path::new("run"))
}

fn on(disk: &Memory) -> Arc<dyn Storage> {
    Arc::new(disk.clone())
}

/// The number of values that the header of the table states.
fn published(disk: &Memory) -> u64 {
    let table = disk.get("values.npy").unwrap_or_default();
    let header = String::from_utf8_lossy(&table[..table.len().min(HEADER)]).into_owned();
    let shape = header.split_once("'shape': (").and_then(|(_, rest)| rest.split_once(','));
    shape.map_or(0, |(digits, _)| digits.parse().unwrap())
}

/// A cleanly stopped run is to the byte what the definition and the format say, and is closed; the count. What follows in
/// the files was committed once, before the run went back; what is freed is a hole, or was to be one after the last record.
fn is_right(game: &Game, width: Width, disk: &Memory, what: &dyn std::fmt::Debug) -> u64 {
    let contents = journal::read_in(&dir(on(disk))).unwrap_or_else(|error| panic!("{what:?}: {error}"));
    let (last, high_water_mark) = (contents.last, contents.high_water_mark);
    let (mut values, mut escapes) = game.files(width, last.count);
    let found = disk.get("values.npy").unwrap();
    let hole = hole(&last, width);
    if found[hole.clone()].iter().zip(&values[hole.clone()]).all(|(&found, value)| found == 0 || found == *value) {
        values[hole.clone()].copy_from_slice(&found[hole]);
    }
    let differs = found.iter().zip(&values).position(|(a, b)| a != b);
    let length = |units: u64, unit: u64| HEADER + (units * unit) as usize;
    let right = found.starts_with(&values) && found.len() <= length(high_water_mark.0, width.bytes());
    assert!(right, "{what:?}: the table of {} values is not right, from byte {differs:?} on", last.count);
    let found = disk.get("escapes.npy");
    if let (Some(found), Some(escapes)) = (&found, &mut escapes) {
        tolerate_freed_escapes(&last, found, escapes);
    }
    let right = match (&found, &escapes) {
        (Some(found), Some(escapes)) => found.starts_with(escapes) && found.len() <= length(high_water_mark.1, 10),
        (found, escapes) => found == escapes,
    };
    assert!(right, "{what:?}: the escapes of {} values are not right", last.count);
    assert_eq!(last.digest, game.digest(last.count), "{what:?}");
    assert_eq!((last.event, contents.torn), (Event::Close, None), "{what:?}");
    last.count
}

/// Takes the entries of freed values as they were found: nobody reads them, and only their order is checked.
fn tolerate_freed_escapes(record: &Record, found: &[u8], escapes: &mut [u8]) {
    let freed = record.freed().unwrap();
    let is_freed = |entry: &[u8]| freed.contains(&u64::from_le_bytes(entry[..8].try_into().unwrap()));
    let entries = |bytes: &[u8]| bytes.len().saturating_sub(HEADER) / 10;
    for i in 0..entries(escapes).min(entries(found)) {
        let at = HEADER + 10 * i..HEADER + 10 * (i + 1);
        if is_freed(&escapes[at.clone()]) && is_freed(&found[at.clone()]) {
            escapes[at.clone()].copy_from_slice(&found[at]);
        }
    }
}

/// The bytes of the table that a record says are freed.
fn hole(record: &Record, width: Width) -> Range<usize> {
    let freed = record.freed().unwrap();
    let [from, to] = [freed.start, freed.end].map(|n| HEADER + (n * width.bytes()) as usize);
    if freed.is_empty() { 0..0 } else { from..to }
}

/// What is freed is given back when a process ends in good order, and only the last snapshot is left.
fn is_given_back(width: Width, disk: &Memory, what: &dyn std::fmt::Debug) {
    let last = journal::read_in(&dir(on(disk))).unwrap().last;
    assert!(disk.get("values.npy").unwrap()[hole(&last, width)].iter().all(|&byte| byte == 0), "{what:?}");
    let names = disk.names().unwrap();
    let snapshots: Vec<&String> = names.iter().filter(|name| name.starts_with("snapshot-")).collect();
    assert_eq!(snapshots, last.snapshot.iter().map(|attached| &attached.name).collect::<Vec<_>>(), "{what:?}");
}

/// The files on a real disk pass `verify`.
fn verifies(disk: &Memory, what: &dyn std::fmt::Debug) {
    let parent = tempfile::tempdir().unwrap();
    for name in disk.names().unwrap() {
        std::fs::write(parent.path().join(&name), disk.get(&name).unwrap()).unwrap();
    }
    let verified = verify::digest(parent.path(), None, |_, _| {});
    verified.unwrap_or_else(|error| panic!("{what:?}: {error}"));
}

/// The clock of a hazard; what is tried on runs that free values is counted apart.
fn begin(usual: &'static str, freeing: &'static str) -> Tally {
    Tally::begin(if FREES { freeing } else { usual })
}

/// A moment of a run: the disk after an operation, and what the program had said by then to be committed.
struct Moment {
    disk: Memory,
    acknowledged: u64,
}

/// A reader may have mapped the values of any record.
fn never_shrinks(width: Width, seen: &[Memory]) {
    let mut most = (0, 0);
    for (at, disk) in seen.iter().enumerate() {
        if let Ok(contents) = journal::read_in(&dir(on(disk))) {
            most = (most.0.max(contents.high_water_mark.0), most.1.max(contents.high_water_mark.1));
        }
        for (name, units, unit) in [("values.npy", most.0, width.bytes()), ("escapes.npy", most.1, 10)] {
            let length = disk.get(name).map(|bytes| bytes.len() as u64);
            let there = width == Width::U16 && name == "escapes.npy" || length >= Some(HEADER as u64 + units * unit);
            assert!(units == 0 || there, "operation {at}: {name} was cut to {length:?}, committed were {units}");
        }
    }
}

/// The disk after every storage operation of a process that begins with `before`.
fn moments(game: &Game, process: Process, before: &Memory) -> Vec<Moment> {
    let disk = before.copy();
    let seen = Arc::new(Mutex::new(vec![disk.copy()]));
    let watch = {
        let (disk, seen) = (disk.clone(), Arc::clone(&seen));
        move |_| seen.lock().unwrap().push(disk.copy())
    };
    process.run(game, Arc::new(Faults::watched(on(&disk), watch))).unwrap();
    is_right(game, process.width, &disk, &("the run to record", process));
    is_given_back(process.width, &disk, &("the run to record", process));
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    never_shrinks(process.width, &seen);
    let mut least = u64::MAX;
    let mut moments: Vec<Moment> =
        seen.into_iter().map(|disk| Moment { acknowledged: published(&disk), disk }).collect();
    // Going back, the header still says more than will be there; nothing else takes back what is published.
    for moment in moments.iter_mut().rev() {
        least = least.min(moment.acknowledged);
        moment.acknowledged = least;
    }
    moments
}

/// A disk that a finished process has left.
fn after(game: &Game, before: &Memory, process: Process) -> Memory {
    let disk = before.copy();
    process.run(game, on(&disk)).unwrap();
    is_right(game, process.width, &disk, &"the run before");
    disk
}

/// Opens a disk after a power cut: never an error, nothing committed is lost, and everything is right.
fn recovers(game: &Game, process: Process, disk: &Memory, acknowledged: u64, what: &dyn std::fmt::Debug) -> u64 {
    let outcome = process.run(game, on(disk));
    let outcome = outcome.unwrap_or_else(|error| panic!("{what:?}: {error}"));
    let count = is_right(game, process.width, disk, what);
    is_given_back(process.width, disk, what);
    assert_eq!(outcome.progress.count, count, "{what:?}");
    assert!(count >= acknowledged, "{what:?}: {acknowledged} values were committed, {count} are left");
    count
}

/// Where a journal ends in a clean stop, and nobody said that more follows, the files are exactly what it speaks of.
fn a_clean_stop_is_exact(game: &Game, width: Width, disk: &Memory, what: &dyn std::fmt::Debug) {
    if let Ok(contents) = journal::read_in(&dir(on(disk)))
        && (contents.last.event, contents.torn) == (Event::Close, None)
    {
        is_right(game, width, disk, what);
    }
}

/// What is recorded: a new run, one that goes on after a clean stop, and one with the streams. Or runs that free values: the
/// first ones, some more, and, of one that has kept all, many at once.
fn histories() -> Vec<(&'static Game, Process, Vec<Moment>)> {
    let mut histories = Vec::new();
    if FREES {
        for (width, keep, from, to) in [
            (Width::U8, FREEING.keep, 200_000, 209_000),
            (Width::U8, FREEING.keep, 210_000, 216_000),
            (Width::U16, None, 216_000, 216_001),
        ] {
            let process = Process { to, width, ..FREEING };
            let start = after(Game::freeing(), &Memory::new(), Process { to: from, keep, ..process });
            let moments = moments(Game::freeing(), process, &start);
            let frees = |disk: &Memory| journal::read_in(&dir(on(disk))).unwrap().last.freed().unwrap().end;
            assert!(frees(&start) < frees(&moments[moments.len() - 1].disk), "nothing is freed");
            histories.push((Game::freeing(), process, moments));
        }
        return histories;
    }
    for width in [Width::U8, Width::U16] {
        let game = Game::quick();
        let first = Process { to: 1000, every: 130, width, ..USUAL };
        histories.push((game, first, moments(game, first, &Memory::new())));
        let second = Process { to: 2000, every: 170, ..first };
        let stopped = after(game, &Memory::new(), first);
        histories.push((game, second, moments(game, second, &stopped)));
    }
    let game = Game::sparse();
    let start = after(game, &Memory::new(), Process { to: 5600, every: 5600, ..USUAL });
    let process = Process { to: 8000, every: 600, ..USUAL };
    histories.push((game, process, moments(game, process, &start)));
    histories
}

#[test]
fn power_cut_at_any_operation_loses_nothing_committed() {
    let tally = begin("power cut after every operation", "power cut after every operation, runs that free values");
    let random = &mut Random::new("power cut");
    let histories = histories();
    let operations: usize = histories.iter().map(|history| history.2.len()).sum();
    let asked = if FREES { cases(2000, 50_000) } else { cases(100_000, 1_000_000) };
    let images = asked.div_ceil(operations as u64);
    let (mut tried, mut finished, mut lost) = (0, 0, 0);
    for (game, process, moments) in &histories {
        let most: u64 = published(&moments[moments.len() - 1].disk);
        for (at, moment) in moments.iter().enumerate() {
            for case in 0..images {
                let random = &mut random.fork();
                let image = left(&moment.disk, random);
                let what = (game.rule.name().len(), process, "operation", at, "image", case);
                let only_opened = Process { to: 1, ..*process };
                if case % 4 == 0 {
                    a_clean_stop_is_exact(game, process.width, &image, &what);
                }
                let count = recovers(game, only_opened, &image, moment.acknowledged, &what);
                lost += u64::from(count < most);
                tried += 1;
                if random.below(if FREES { 50 } else { 500 }) == 0 {
                    verifies(&image, &what);
                    assert_eq!(recovers(game, *process, &image, count, &what), process.to);
                    verifies(&image, &what);
                    finished += 1;
                }
            }
        }
    }
    assert!(tried >= asked && lost > tried / 10);
    tally.end(
        tried,
        &format!("{operations} operations; all images opened and right, {finished} of them run on to the same bytes"),
    );
}

/// What one record frees is given up when the next one says the same: if the last one is ever lost, the one before it still
/// tells the truth.
#[test]
fn journal_without_its_last_record_still_matches_the_files() {
    let mut tried = 0;
    for (game, process, moments) in histories() {
        for (at, moment) in moments.iter().enumerate() {
            let disk = moment.disk.copy();
            let mut journal = disk.get("journal.jsonl").unwrap_or_default();
            let records = journal.len() / RECORD;
            if records < 2 {
                continue;
            }
            journal.truncate((records - 1) * RECORD);
            disk.put("journal.jsonl", journal);
            let count = journal::read_in(&dir(on(&disk))).unwrap().last.count;
            recovers(game, Process { to: 1, ..process }, &disk, count, &("operation", at));
            tried += 1;
        }
    }
    assert!(tried > 200, "{tried}");
}

/// A byte of one of these values is altered.
fn with_a_bad_value(disk: &Memory, random: &mut Random, width: Width, place: Range<u64>) -> Memory {
    let disk = disk.copy();
    let mut table = disk.get("values.npy").unwrap();
    let at = HEADER + (place.start * width.bytes() + random.below((place.end - place.start) * width.bytes())) as usize;
    table[at] = random.other_byte(table[at]);
    disk.put("values.npy", table);
    disk
}

/// What a process has to recover from, and how.
fn troubles(
    game: &Game,
    stopped: &Memory,
    random: &mut Random,
    histories: &[(&'static Game, Process, Vec<Moment>)],
) -> Vec<(Process, Memory)> {
    let mut troubles = Vec::new();
    let last = journal::read_in(&dir(on(stopped))).unwrap().last;
    let goal = Process { to: last.count + 400, every: 230, keep: last.keep, ..USUAL };
    let back = Process { to: if FREES { 1 } else { goal.to }, rollback: true, ..goal };
    let repair = Process { repair: true, ..goal };
    // In the head, and in the last values; between the two there are some that look back at freed ones.
    let (head, last_values) = (0..1 << 16, last.count.saturating_sub(2000)..last.count);
    let places = if FREES { [head, last_values] } else { [0..last.count, 0..last.count] };
    for place in places {
        for process in [back, repair] {
            troubles.push((process, with_a_bad_value(stopped, random, Width::U8, place.clone())));
        }
    }
    if FREES {
        let bad = stopped.copy();
        let name = last.snapshot.unwrap().name;
        let mut bytes = bad.get(&name).unwrap();
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] = random.other_byte(bytes[at]);
        bad.put(&name, bytes);
        // Goes on over the holes, and over what it went back behind.
        troubles.push((Process { to: last.count - 3500, every: 6000, ..back }, bad));
    }
    let torn = stopped.copy();
    let mut journal = torn.get("journal.jsonl").unwrap();
    let more = 1 + random.below(RECORD as u64) as usize;
    journal.extend_from_within(..more);
    journal.last_mut().unwrap().clone_from(&0);
    torn.put("journal.jsonl", journal);
    troubles.push((goal, torn));
    for _ in 0..4 {
        let those: Vec<_> = histories.iter().filter(|history| std::ptr::eq(history.0, game)).collect();
        let (_, process, moments) = those[random.below(those.len() as u64) as usize];
        let moment = &moments[random.below(moments.len() as u64) as usize];
        let image = left(&moment.disk, random);
        troubles.push((Process { to: 5, every: 230, ..*process }, image));
    }
    troubles
}

#[test]
fn power_cut_at_any_step_of_a_recovery_is_itself_recoverable() {
    let tally = begin("power cut during recovery", "power cut during recovery, runs that free values");
    let random = &mut Random::new("recovery");
    let histories = histories();
    let (game, first, second) = if FREES {
        (Game::freeing(), Process { to: 204_000, ..FREEING }, Process { to: 210_000, ..FREEING })
    } else {
        (Game::quick(), Process { to: 700, every: 110, ..USUAL }, Process { to: 1500, every: 190, ..USUAL })
    };
    let stopped = after(game, &after(game, &Memory::new(), first), second);
    let mut tried = 0;
    let mut steps = 0;
    while tried < if FREES { cases(1000, 10_000) } else { cases(10_000, 200_000) } {
        for (process, disk) in troubles(game, &stopped, random, &histories) {
            let moments = moments(game, process, &disk);
            steps += moments.len();
            for (at, moment) in moments.iter().enumerate() {
                for _ in 0..2 {
                    let random = &mut random.fork();
                    let image = left(&moment.disk, random);
                    let what = (process, "operation", at, "case", tried);
                    let opened = Process { to: 1, ..process };
                    recovers(game, opened, &image, moment.acknowledged.min(process.to), &what);
                    tried += 1;
                    if random.below(50) == 0 {
                        recovers(game, process, &image, process.to, &what);
                        verifies(&image, &what);
                    }
                }
            }
        }
    }
    tally.end(tried, &format!("{steps} steps of recoveries, all recovered from in turn"));
}

/// What a power cut leaves: of what was not durable any sectors, or any bytes.
fn left(disk: &Memory, random: &mut Random) -> Memory {
    let unit = if random.below(2) == 0 { SECTOR } else { 1 };
    disk.image(unit, &mut |bound| random.below(bound))
}

/// Everything is durable: whatever a power cut does now, the disk is the same, but for holes that the next run punches again.
fn is_durable(disk: &Memory, random: &mut Random, what: &dyn std::fmt::Debug) {
    let image = left(disk, random);
    let last = journal::read_in(&dir(on(disk))).unwrap().last;
    for name in FILES {
        let [kept, there] = [&image, disk].map(|disk| {
            let mut bytes = disk.get(name);
            if let (Some(bytes), "values.npy") = (&mut bytes, name) {
                bytes[hole(&last, last.width)].fill(0);
            }
            bytes
        });
        assert!(kept == there, "{what:?}: {name} is not durable");
    }
}

#[test]
fn io_error_at_any_operation_loses_nothing_committed() {
    let tally = begin("error at every operation", "error at every operation, runs that free values");
    let random = &mut Random::new("errors");
    let game = if FREES { Game::freeing() } else { Game::quick() };
    let mut tried = 0;
    let mut survived = 0;
    for width in [Width::U8, Width::U16] {
        let starts = if FREES {
            // The last segment of these values is discarded, and one more.
            let second = Process { to: 206_000, width, ..FREEING };
            let stopped = after(game, &Memory::new(), Process { to: 202_000, ..second });
            let bad = with_a_bad_value(&stopped, random, width, 201_500..202_000);
            let back = Process { to: 1, rollback: true, ..second };
            vec![(second, stopped), (back, bad.copy()), (Process { repair: true, ..second }, bad)]
        } else {
            let first = Process { to: 400, every: 130, width, ..USUAL };
            let second = Process { to: 800, every: 170, ..first };
            let stopped = after(game, &Memory::new(), first);
            let bad = with_a_bad_value(&stopped, random, width, 0..400);
            let back = Process { rollback: true, ..second };
            vec![
                (first, Memory::new()),
                (second, stopped),
                (back, bad.copy()),
                (Process { repair: true, ..second }, bad),
            ]
        };
        let least = if FREES { 1 << 16 } else { 130 };
        for ((process, start), fault) in starts.iter().flat_map(|start| Fault::ERRORS.map(|fault| (start, fault))) {
            let arrived = |count| count == process.to || (FREES && process.rollback && count >= least);
            let plan = |at, lasting| Plan::At { at, fault, lasting };
            let counting = Faults::new(on(&start.copy()), plan(u64::MAX, false));
            let counting = Arc::new(counting);
            process.run(game, counting.clone()).unwrap();
            for (at, lasting) in (1..=counting.met()).flat_map(|at| [(at, false), (at, true)]) {
                // A solver is made for each of these.
                if FREES && random.below(cases(8, 1)) > 0 {
                    continue;
                }
                let what = (process, fault, at, lasting);
                let disk = start.copy();
                let faults = Arc::new(Faults::new(on(&disk), plan(at, lasting)));
                let ended = process.run(game, faults.clone());
                let acknowledged = published(&disk).min(if process.rollback { least } else { u64::MAX });
                tried += 1;
                if matches!(fault, Fault::Interrupted | Fault::ShortWrite | Fault::ShortRead) {
                    ended.unwrap_or_else(|error| panic!("{what:?}: {error}"));
                    assert!(arrived(is_right(game, width, &disk, &what)), "{what:?}");
                    is_durable(&disk, random, &what);
                    survived += 1;
                    continue;
                }
                let error = ended.map(|_| ()).expect_err(&format!("{what:?}"));
                assert!(error.kind() == Kind::Failed && error.to_string().contains("run"), "{what:?}: {error}");
                assert_eq!(faults.disobeyed(), 0, "{what:?}: something was written after {error}");
                // The next process finds what the kernel still shows, or what a power cut leaves.
                let image = left(&disk, random);
                for disk in [disk, image] {
                    assert!(arrived(recovers(game, *process, &disk, acknowledged, &what)), "{what:?}");
                    // Bytes that a repair put back, and whose sync failed, are good in all that a process sees.
                    if !process.repair {
                        is_durable(&disk, random, &what);
                    }
                }
            }
        }
    }
    tally.end(
        tried,
        &format!("{survived} survived, the others ended the run and the next one went on to the same bytes"),
    );
}

/// The values of a segment between two points, or what stands for them: all that the files hold of it.
fn segment(disk: &Memory, from: u64, to: u64) -> Vec<u8> {
    disk.get("values.npy").unwrap()[HEADER + from as usize..HEADER + to as usize].to_vec()
}

/// The events and counts of a journal.
fn events(disk: &Memory) -> Vec<(String, u64)> {
    let journal = disk.get("journal.jsonl").unwrap();
    let records = journal.chunks(RECORD).map(|line| serde_json::from_slice::<serde_json::Value>(line).unwrap());
    records.map(|r| (r["event"].as_str().unwrap().to_owned(), r["count"].as_u64().unwrap())).collect()
}

/// As a process that is killed between two operations leaves it: `verify` finds nothing wrong in what is good.
#[test]
fn kill_after_any_operation_leaves_files_that_verify_accepts() {
    let mut tried = 0;
    for (_, _, moments) in histories() {
        for (at, moment) in moments.iter().enumerate() {
            let journal = moment.disk.get("journal.jsonl").unwrap_or_default();
            if !journal.is_empty() {
                verifies(&moment.disk, &("operation", at));
                tried += 1;
            }
        }
    }
    assert!(tried > 200, "{tried}");
}

#[test]
fn mismatching_bytes_are_saved_durably_before_repair() {
    let random = &mut Random::new("quarantine");
    let game = Game::quick();
    let first = Process { to: 1000, every: 250, ..USUAL };
    let stopped = after(game, &Memory::new(), first);
    let sequence = journal::read_in(&dir(on(&stopped))).unwrap().last.sequence;
    for n in [0, 249, 250, 600, 999] {
        let bad = stopped.copy();
        let mut table = bad.get("values.npy").unwrap();
        table[HEADER + n as usize] = random.other_byte(table[HEADER + n as usize]);
        bad.put("values.npy", table);
        let (from, to) = (n / 250 * 250, n / 250 * 250 + 250);
        let found = segment(&bad, from, to);
        let name = format!("quarantine-{sequence}-{}.bin", HEADER as u64 + from);
        for (rollback, repair) in [(true, false), (false, true)] {
            let process = Process { to: 1500, rollback, repair, ..first };
            let moments = moments(game, process, &bad);
            for (at, moment) in moments.iter().enumerate() {
                let image = left(&moment.disk, random);
                let kept = image.get(&name).is_some_and(|bytes| bytes == found);
                let there = image.get("values.npy").unwrap().len() >= HEADER + to as usize;
                assert!(kept || (there && segment(&image, from, to) == found), "{process:?}, {n}, operation {at}");
            }
            let last = &moments[moments.len() - 1].disk;
            let set_aside: Vec<_> =
                last.names().unwrap().into_iter().filter(|name| name.starts_with("quarantine")).collect();
            assert!(set_aside.contains(&name) && set_aside.len() <= 2, "{set_aside:?}");
            let record = journal::read_in(&dir(on(last))).unwrap().last;
            assert_eq!((record.errors, record.checks.get("repaired").copied()), (1, repair.then_some(1)));
            let event = if repair { ("repair".to_owned(), 1000) } else { ("rollback".to_owned(), from) };
            let events = events(last);
            let told = events.iter().position(|e| *e == event).unwrap_or_else(|| panic!("{events:?}"));
            assert_eq!(events[told - 1], ("close".to_owned(), 1000));
        }
    }
}

/// The lowest bit makes digits of digits and letters of letters: what it alters still reads like a record.
#[test]
fn record_with_any_digit_or_letter_changed_is_rejected() {
    let game = Game::quick();
    let disk = after(game, &Memory::new(), Process { to: 1000, every: 500, ..USUAL });
    let journal = disk.get("journal.jsonl").unwrap();
    let last = journal.len() / RECORD - 1;
    for at in 0..journal.len() {
        let mut bytes = journal.clone();
        bytes[at] ^= 1;
        disk.put("journal.jsonl", bytes);
        // Of the last record it may be a kill that broke it off; then the one before it is what counts.
        match journal::read_in(&dir(on(&disk))) {
            Err(_) => assert!(at / RECORD < last, "byte {at}: a torn tail was taken for damage"),
            Ok(contents) => assert!(
                contents.torn == Some((last * RECORD) as u64) && at / RECORD == last,
                "byte {at}: the journal is believed up to record {}",
                contents.last.sequence
            ),
        }
    }
}

/// What could not be proved to be what the journal speaks of is not touched without `--rollback`.
#[test]
fn damage_that_cannot_be_repaired_is_refused_untouched() {
    let random = &mut Random::new("no repair");
    let game = Game::quick();
    let stopped = after(game, &Memory::new(), Process { to: 1000, every: 250, ..USUAL });
    let names = ["values.npy", "escapes.npy", "journal.jsonl"];
    for (name, places) in [("escapes.npy", HEADER as u64..HEADER as u64 + 200), ("journal.jsonl", 40..4 * 4096)] {
        for _ in 0..50 {
            let bad = stopped.copy();
            let mut bytes = bad.get(name).unwrap();
            let at = (places.start + random.below(places.end - places.start)) as usize;
            bytes[at] = random.other_byte(bytes[at]);
            bad.put(name, bytes);
            let before = names.map(|name| bad.get(name));
            for repair in [false, true] {
                let process = Process { to: 1200, repair, ..USUAL };
                let error = process.run(game, on(&bad)).expect_err(&format!("{name}, byte {at}"));
                assert_eq!(error.kind(), Kind::Damage, "{name}, byte {at}: {error}");
                assert!(before == names.map(|name| bad.get(name)), "{name}, byte {at}");
            }
        }
    }
}

/// A value of 255 or more is read from its escape, and its byte in the table is 255.
#[test]
fn byte_that_contradicts_its_escape_is_repaired_and_rolled_back() {
    let random = &mut Random::new("saturated byte");
    let game = Game::quick();
    let stopped = after(game, &Memory::new(), Process { to: 1000, every: 250, ..USUAL });
    let large = (0..1000).filter(|&n| game.values[n] >= 255);
    for n in large.step_by(7) {
        let bad = stopped.copy();
        let mut table = bad.get("values.npy").unwrap();
        table[HEADER + n] = random.other_byte(table[HEADER + n]);
        bad.put("values.npy", table);
        for (rollback, repair) in [(false, false), (true, false), (false, true)] {
            let disk = bad.copy();
            let ended = Process { to: 1200, rollback, repair, ..USUAL }.run(game, on(&disk));
            match (rollback || repair, ended) {
                (true, Ok(_)) => assert_eq!(is_right(game, Width::U8, &disk, &n), 1200),
                (false, Err(error)) => assert!(error.to_string().contains("escape"), "{error}"),
                (_, other) => panic!("{n}: {other:?}"),
            }
        }
    }
}

/// What happens to a run. SpotChecks and numbers are reduced to what there is.
#[derive(Clone, Debug)]
enum Step {
    /// A process computes this number of values more, and may be stopped before.
    Run { by: u64, every: u64, stop: Option<u64>, solver: usize, threads: usize, repair: bool },
    /// A process is killed at an operation; or the power is cut, and this seed says what is left.
    End { by: u64, every: u64, at: u64, power_cut: Option<u64> },
    /// Operations of a process fail at random.
    Fail { by: u64, seed: u64, harmful: u64 },
    /// A byte of a file is altered.
    Flip { file: usize, at: u64, with: u8 },
    /// A file is cut.
    Cut { file: usize, at: u64 },
    /// A process goes back to what is good.
    Rollback { by: u64 },
    /// Somebody reads.
    Look,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let scale: u64 = if FREES { 10 } else { 1 };
    let by = move || 1..500 * scale;
    let every = move || 40 * scale..300 * scale;
    let any = any::<u64>;
    let step = prop_oneof![
        4 => (by(), every(), prop::option::of(0..500u64), 0..4usize, 0..3usize, prop::bool::ANY).prop_map(
            |(by, every, stop, solver, threads, repair)| Step::Run { by, every, stop, solver, threads, repair }
        ),
        4 => (by(), every(), 1..120u64, prop::option::of(any())).prop_map(
            |(by, every, at, power_cut)| Step::End { by, every, at, power_cut }
        ),
        2 => (by(), any(), 0..40u64).prop_map(|(by, seed, harmful)| Step::Fail { by, seed, harmful: harmful << 20 }),
        1 => (0..4usize, any(), 1..=255u8).prop_map(|(file, at, with)| Step::Flip { file, at, with }),
        1 => (0..4usize, any()).prop_map(|(file, at)| Step::Cut { file, at }),
        1 => by().prop_map(|by| Step::Rollback { by }),
        1 => Just(Step::Look),
    ];
    prop::collection::vec(step, 1..12)
}

/// Looks at a run from the outside while it goes on, and asks it to stop.
struct Reader<'a> {
    game: &'a Game,
    disk: &'a Memory,
    stop: &'a AtomicBool,
    stop_at: u64,
    looks: u64,
}

impl Observer for Reader<'_> {
    fn started(&mut self, _: &Rule, from: u64, _: Option<u64>) {
        self.stop_at = self.stop_at.saturating_add(from);
    }

    fn rehashed(&mut self, _: u64, _: u64) {}

    fn advanced(&mut self, progress: &Progress) {
        self.stop.store(progress.count >= self.stop_at, Ordering::Relaxed);
        self.looks += 1;
        if progress.committed > 0 && self.looks.is_multiple_of(3) {
            looks_right(self.game, self.disk, progress.committed);
        }
    }

    fn note(&mut self, _: &str) {}
}

/// A reader finds what is committed, and all of it right.
fn looks_right(game: &Game, disk: &Memory, committed: u64) {
    use grundy::theory::definition::Sequence;
    let view = RunReader::open_in(&dir(on(disk))).unwrap();
    assert!(view.len() >= committed, "{committed} values were committed, {} are read", view.len());
    for (from, to) in view.contents.last.kept.clone() {
        let mut values = vec![0; (to - from) as usize];
        view.read(from, &mut values).unwrap();
        assert!(values == game.values[from as usize..to as usize], "what is read is not right");
    }
    let status = journal::read_in(&dir(on(disk))).unwrap().last;
    assert_eq!(status.digest, game.digest(status.count));
}

/// The model of a run: a list of values, and the number of committed ones.
struct Model {
    game: &'static Game,
    width: Width,
    disk: Memory,
    /// The least number of values that must be there.
    committed: u64,
    /// The disk before somebody altered it.
    undamaged: Option<Memory>,
}

const FILES: [&str; 3] = ["values.npy", "escapes.npy", "journal.jsonl"];

impl Model {
    fn process(&self, by: u64, every: u64) -> Process {
        let to = (self.committed + by).min(self.game.values.len() as u64);
        Process { to, every, width: self.width, keep: FREES.then_some(KEEP), ..USUAL }
    }

    /// A process with no faults has ended; `before` is what it found.
    fn ended(&mut self, process: Process, ended: grundy::Result<Outcome>, before: &[Option<Vec<u8>>; 3]) {
        let disk = &self.disk;
        match (ended, self.undamaged.is_some()) {
            (Ok(outcome), damaged) => {
                let count = is_right(self.game, self.width, disk, &process);
                assert_eq!(outcome.progress.count, count);
                assert!(damaged || count >= self.committed, "{} were committed, {count} are left", self.committed);
                assert!(outcome.stopped || count >= process.to);
                (self.committed, self.undamaged) = (count, None);
            }
            (Err(error), true) => {
                let foreign = matches!(error, Error::Mismatch { .. } | Error::NoRun { .. });
                assert!(error.kind() == Kind::Damage || foreign, "{error}");
                // But for a torn tail of the journal, which is dropped first.
                let now = FILES.map(|name| disk.get(name));
                let torn = before[2].as_ref().is_some_and(|b| now[2].as_ref().is_some_and(|now| b.starts_with(now)));
                let same = now[..2] == before[..2] && (torn || now[2] == before[2]);
                assert!(process.repair || process.rollback || same, "a refused run changes nothing: {error}");
                if process.rollback {
                    // Not all damage can be undone: a journal with a broken record before good ones, a missing header.
                    self.disk = self.undamaged.take().unwrap();
                }
            }
            (Err(error), false) => panic!("{process:?}: {error}"),
        }
    }

    fn step(&mut self, step: &Step, pools: &[rayon::ThreadPool]) {
        let before = FILES.map(|name| self.disk.get(name));
        // Faults are tried on good disks only; a process without faults opens the others.
        let usual =
            Step::Run { by: 1, every: if FREES { 1000 } else { 100 }, stop: None, solver: 0, threads: 0, repair: true };
        let damaged = self.undamaged.is_some();
        let step = if damaged && matches!(step, Step::End { .. } | Step::Fail { .. }) { &usual } else { step };
        match *step {
            Step::Run { by, every, stop, solver, threads, repair } => {
                let process = Process { repair, ..self.process(by, every) };
                let kernels = Kernel::available();
                let method = match kernels.get(solver) {
                    Some(&kernel) if self.game.method != Method::Definition => Method::Sparse(kernel),
                    _ => self.game.method,
                };
                let flag = AtomicBool::new(false);
                let stop_at = stop.unwrap_or(u64::MAX);
                let mut reader = Reader { game: self.game, disk: &self.disk, stop: &flag, stop_at, looks: 0 };
                let run = || process.watched(self.game, method, on(&self.disk), &mut reader, &flag);
                let ended = pools[threads].install(run);
                self.ended(process, ended, &before);
            }
            Step::End { by, every, at, power_cut } => {
                let plan = Plan::At { at, fault: Fault::PowerCut, lasting: true };
                let ended = self.process(by, every).run(self.game, Arc::new(Faults::new(on(&self.disk), plan)));
                self.broke_off(ended);
                if let Some(seed) = power_cut {
                    let random = &mut Random::seeded(seed);
                    self.disk = left(&self.disk, random);
                }
            }
            Step::Fail { by, seed, harmful } => {
                let plan = Plan::Drawn { seed, harmless: 1 << 29, harmful };
                let ended = self
                    .process(by, if FREES { 1000 } else { 100 })
                    .run(self.game, Arc::new(Faults::new(on(&self.disk), plan)));
                self.broke_off(ended);
            }
            Step::Flip { file, at, with } => self.damage(file, |bytes| {
                let at = at as usize % bytes.len();
                bytes[at] ^= with;
            }),
            Step::Cut { file, at } => self.damage(file, |bytes| bytes.truncate(at as usize % bytes.len())),
            Step::Rollback { by } => {
                let process = Process { rollback: true, ..self.process(by, if FREES { 1000 } else { 100 }) };
                let ended = process.run(self.game, on(&self.disk));
                self.ended(process, ended, &before);
            }
            Step::Look => {
                if !damaged && self.committed > 0 {
                    looks_right(self.game, &self.disk, self.committed);
                }
            }
        }
    }

    /// A process of which nobody knows how far it came, but for what it published.
    fn broke_off(&mut self, ended: grundy::Result<Outcome>) {
        if let Err(error) = &ended {
            assert_eq!(error.kind(), Kind::Failed, "{error}");
        }
        // A header that a power cut tore, and that this process has not rewritten, states an arbitrary number.
        let published = published(&self.disk);
        let journal = self.disk.get("journal.jsonl").unwrap_or_default();
        let mut records =
            journal.chunks(RECORD).filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
        if records.any(|record| record["count"] == published) {
            self.committed = self.committed.max(published);
        }
        looks_right_if_there(self.game, &self.disk, self.committed);
    }

    /// Of one of [`FILES`], or the snapshot.
    fn damage(&mut self, file: usize, alter: impl FnOnce(&mut Vec<u8>)) {
        let snapshot = || self.disk.names().unwrap().into_iter().find(|name| name.starts_with("snapshot-"));
        let Some(name) = FILES.get(file).map(ToString::to_string).or_else(snapshot) else { return };
        let Some(mut bytes) = self.disk.get(&name).filter(|bytes| !bytes.is_empty()) else { return };
        if self.undamaged.is_none() {
            self.undamaged = Some(self.disk.copy());
        }
        self.disk = self.disk.copy();
        alter(&mut bytes);
        self.disk.put(&name, bytes);
    }
}

fn looks_right_if_there(game: &Game, disk: &Memory, committed: u64) {
    if committed > 0 {
        looks_right(game, disk, committed);
    }
}

/// A file that is altered before its name is durable is the altered one afterwards: once the simulated disk gave the
/// first one back.
#[test]
fn file_altered_before_its_name_is_durable_stays_altered() {
    let disk = Memory::new();
    let dir = dir(on(&disk));
    dir.make().unwrap();
    dir.open("values.npy", Mode::Make).unwrap().write_all_at(b"first", 0).unwrap();
    disk.put("values.npy", b"second".to_vec());
    dir.sync().unwrap();
    assert_eq!(disk.image(SECTOR, &mut |_| 0).get("values.npy").unwrap(), b"second");
}

#[test]
fn committed_values_survive_random_histories_of_faults() {
    let tally = begin("random histories of a run", "random histories of a run, runs that free values");
    let random = &mut Random::new("histories");
    let base = if FREES {
        after(Game::freeing(), &Memory::new(), Process { to: 200_000, ..FREEING })
    } else {
        after(Game::sparse(), &Memory::new(), Process { to: 4200, every: 1400, ..USUAL })
    };
    /// As many at a time, each with chances of its own.
    const LANES: u64 = 4;
    let count = if FREES { cases(50, 2000) } else { cases(500, 50_000) };
    let done = AtomicU64::new(0);
    let lane = |seed: &[u8]| {
        let pools = [1, 2, 3].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
        let config = Config {
            cases: u32::try_from(count.div_ceil(LANES)).unwrap(),
            failure_persistence: None,
            max_shrink_iters: 500,
            ..Config::default()
        };
        let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, seed));
        let tried = runner.run(&(0..5u8, prop::bool::ANY, steps()), |(game, narrow, steps)| {
            let mut model = match game {
                _ if FREES => Model {
                    game: Game::freeing(),
                    width: Width::U8,
                    disk: base.copy(),
                    committed: 200_000,
                    undamaged: None,
                },
                0 => Model {
                    game: Game::sparse(),
                    width: Width::U8,
                    disk: base.copy(),
                    committed: 4200,
                    undamaged: None,
                },
                _ => {
                    let width = if narrow { Width::U8 } else { Width::U16 };
                    Model { game: Game::quick(), width, disk: Memory::new(), committed: 0, undamaged: None }
                }
            };
            steps.iter().for_each(|step| model.step(step, &pools));
            model.step(&Step::Rollback { by: 1 }, &pools);
            model.step(
                &Step::Run {
                    by: 300,
                    every: if FREES { 1000 } else { 100 },
                    stop: None,
                    solver: 0,
                    threads: 0,
                    repair: false,
                },
                &pools,
            );
            done.fetch_add(steps.len() as u64, Ordering::Relaxed);
            Ok(())
        });
        tried.unwrap_or_else(|error| panic!("{error}"));
    };
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            let seed: Vec<u8> = (0..4).flat_map(|_| random.next().to_le_bytes()).collect();
            let lane = &lane;
            scope.spawn(move || lane(&seed));
        }
    });
    tally.end(count, &format!("{} steps, after each of which what was committed was there", done.into_inner()));
}

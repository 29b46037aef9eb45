//! Power cuts, errors of the disk and damage, in memory: after each, what was said to be committed is there and right, and
//! the run goes on to the bytes of one that nothing happened to.

mod support;

use grundy::definition;
use grundy::engine::{self, Conduct, Observer, Options, Outcome, Progress, View};
use grundy::error::{Error, Kind};
use grundy::journal::{self, Event, RECORD, Width};
use grundy::mex::Kernel;
use grundy::rule::Rule;
use grundy::sparse::Method;
use grundy::storage::faults::{Fault, Faults, Plan};
use grundy::storage::memory::{Memory, SECTOR};
use grundy::storage::{Dir, Mode, Storage};
use grundy::verify;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use support::{Random, Silent, Tally, cases};

const HEADER: usize = 4096;

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

    /// The files of a table of so many values, as the format says.
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
                let data = values.iter().map(|v| v.to_le_bytes()[0]);
                let large: Vec<(u64, u16)> = (0..).zip(values.iter().copied()).filter(|&(_, v)| v > 255).collect();
                let entries = large.iter().flat_map(|(n, v)| [&n.to_le_bytes()[..], &v.to_le_bytes()].concat());
                let escapes = header("[('n', '<u8'), ('v', '<u2')]", large.len()).into_iter().chain(entries);
                (header("'|u1'", values.len()).into_iter().chain(data).collect(), Some(escapes.collect()))
            }
        }
    }

    /// The digest of the first values, which are less than a segment.
    fn digest(&self, count: u64) -> String {
        if count == 0 {
            return "0".repeat(64);
        }
        let bytes: Vec<u8> = self.values[..count as usize].iter().flat_map(|v| v.to_le_bytes()).collect();
        blake3::hash(&[[0; 32], *blake3::hash(&bytes).as_bytes()].concat()).to_hex().to_string()
    }
}

/// How a process goes about a run.
#[derive(Clone, Copy, Debug)]
struct Process {
    to: u64,
    every: u64,
    width: Width,
    rollback: bool,
    repair: bool,
}

const USUAL: Process = Process { to: 1, every: 150, width: Width::U8, rollback: false, repair: false };

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
        let Process { to, every, width, rollback, repair } = self;
        let options = Options { to: Some(to), threads: 1, method, width: Some(width), keep: None, rollback };
        let conduct = Conduct { commit_every: Some(every), repair, seed: Some(1) };
        engine::run_in(&dir(storage), Some(&game.rule), &options, conduct, observer, stop)
    }
}

fn dir(storage: Arc<dyn Storage>) -> Dir {
    Dir::on(storage, Path::new("run"))
}

fn on(disk: &Memory) -> Arc<dyn Storage> {
    Arc::new(disk.clone())
}

/// What the header of the table says: the program has published so many values.
fn published(disk: &Memory) -> u64 {
    let table = disk.get("values.npy").unwrap_or_default();
    let header = String::from_utf8_lossy(&table[..table.len().min(HEADER)]).into_owned();
    let shape = header.split_once("'shape': (").and_then(|(_, rest)| rest.split_once(','));
    shape.map_or(0, |(digits, _)| digits.parse().unwrap())
}

/// A cleanly stopped run is to the byte what the definition and the format say, and is closed; the count.
fn is_right(game: &Game, width: Width, disk: &Memory, what: &dyn std::fmt::Debug) -> u64 {
    let contents = journal::read_in(&dir(on(disk))).unwrap_or_else(|error| panic!("{what:?}: {error}"));
    let last = contents.last;
    let (values, escapes) = game.files(width, last.count);
    let found = disk.get("values.npy").unwrap();
    let differs = found.iter().zip(&values).position(|(a, b)| a != b);
    assert!(found == values, "{what:?}: the table of {} values is not right, from byte {differs:?} on", last.count);
    assert!(disk.get("escapes.npy") == escapes, "{what:?}: the escapes of {} values are not right", last.count);
    assert_eq!(last.digest, game.digest(last.count), "{what:?}");
    assert_eq!((last.event, contents.torn), (Event::Close, None), "{what:?}");
    last.count
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

/// A moment of a run: the disk after an operation, and what the program had said by then to be committed.
struct Moment {
    disk: Memory,
    acknowledged: u64,
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
    let seen = std::mem::take(&mut *seen.lock().unwrap());
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

/// What is recorded: a new run, one that goes on after a clean stop, and one with the streams.
fn histories() -> Vec<(&'static Game, Process, Vec<Moment>)> {
    let mut histories = Vec::new();
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
fn whatever_a_power_cut_leaves_at_any_operation_nothing_committed_is_lost() {
    let tally = Tally::begin("power cut after every operation");
    let random = &mut Random::new("power cut");
    let histories = histories();
    let operations: usize = histories.iter().map(|history| history.2.len()).sum();
    let images = cases(100_000, 1_000_000).div_ceil(operations as u64);
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
                if random.below(500) == 0 {
                    verifies(&image, &what);
                    assert_eq!(recovers(game, *process, &image, count, &what), process.to);
                    verifies(&image, &what);
                    finished += 1;
                }
            }
        }
    }
    assert!(tried >= cases(100_000, 1_000_000) && lost > tried / 10);
    tally.end(
        tried,
        &format!("{operations} operations; all images opened and right, {finished} of them run on to the same bytes"),
    );
}

/// A byte of a committed value, of one commit in the middle, is altered.
fn with_a_bad_value(disk: &Memory, random: &mut Random, width: Width, count: u64) -> Memory {
    let disk = disk.copy();
    let mut table = disk.get("values.npy").unwrap();
    let at = HEADER + random.below(count * width.bytes()) as usize;
    table[at] = random.other_byte(table[at]);
    disk.put("values.npy", table);
    disk
}

/// What a process has to recover from, and how.
fn troubles(
    game: &Game,
    random: &mut Random,
    histories: &[(&'static Game, Process, Vec<Moment>)],
) -> Vec<(Process, Memory)> {
    let mut troubles = Vec::new();
    let first = Process { to: 700, every: 110, ..USUAL };
    let second = Process { to: 1500, every: 190, ..first };
    let stopped = after(game, &after(game, &Memory::new(), first), second);
    let goal = Process { to: 1900, every: 230, ..USUAL };
    for (rollback, repair) in [(true, false), (false, true)] {
        let bad = with_a_bad_value(&stopped, random, Width::U8, 1500);
        troubles.push((Process { rollback, repair, ..goal }, bad));
    }
    let torn = stopped.copy();
    let mut journal = torn.get("journal.jsonl").unwrap();
    let more = 1 + random.below(RECORD as u64) as usize;
    journal.extend_from_within(..more);
    journal.last_mut().unwrap().clone_from(&0);
    torn.put("journal.jsonl", journal);
    troubles.push((goal, torn));
    let cut = Process { to: 5, every: 230, ..USUAL };
    for _ in 0..4 {
        // Those of the quick game.
        let (_, process, moments) = &histories[random.below(4) as usize];
        let moment = &moments[random.below(moments.len() as u64) as usize];
        let image = left(&moment.disk, random);
        troubles.push((Process { width: process.width, ..cut }, image));
    }
    troubles
}

#[test]
fn a_power_cut_at_any_step_of_a_recovery_does_no_more_harm_than_the_one_before() {
    let tally = Tally::begin("power cut during recovery");
    let random = &mut Random::new("recovery");
    let (game, histories) = (Game::quick(), histories());
    let mut tried = 0;
    let mut steps = 0;
    while tried < cases(10_000, 200_000) {
        for (process, disk) in troubles(game, random, &histories) {
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

/// Everything is durable: whatever a power cut does now, the disk is the same.
fn is_durable(disk: &Memory, random: &mut Random, what: &dyn std::fmt::Debug) {
    let image = left(disk, random);
    for name in ["values.npy", "escapes.npy", "journal.jsonl"] {
        assert!(image.get(name) == disk.get(name), "{what:?}: {name} is not durable");
    }
}

#[test]
fn an_error_of_any_operation_loses_nothing_and_interruptions_and_short_counts_do_no_harm() {
    let tally = Tally::begin("error at every operation");
    let random = &mut Random::new("errors");
    let game = Game::quick();
    let mut tried = 0;
    let mut survived = 0;
    for width in [Width::U8, Width::U16] {
        let first = Process { to: 400, every: 130, width, ..USUAL };
        let second = Process { to: 800, every: 170, ..first };
        let stopped = after(game, &Memory::new(), first);
        let bad = with_a_bad_value(&stopped, random, width, 400);
        let starts = [
            (first, Memory::new()),
            (second, stopped),
            (Process { rollback: true, ..second }, bad.copy()),
            (Process { repair: true, ..second }, bad),
        ];
        for ((process, start), fault) in starts.iter().flat_map(|start| Fault::ERRORS.map(|fault| (start, fault))) {
            let plan = |at, lasting| Plan::At { at, fault, lasting };
            let counting = Faults::new(on(&start.copy()), plan(u64::MAX, false));
            let counting = Arc::new(counting);
            process.run(game, counting.clone()).unwrap();
            for (at, lasting) in (1..=counting.met()).flat_map(|at| [(at, false), (at, true)]) {
                let what = (process, fault, at, lasting);
                let disk = start.copy();
                let faults = Arc::new(Faults::new(on(&disk), plan(at, lasting)));
                let ended = process.run(game, faults.clone());
                let acknowledged = published(&disk).min(if process.rollback { 130 } else { u64::MAX });
                tried += 1;
                if matches!(fault, Fault::Interrupted | Fault::ShortWrite | Fault::ShortRead) {
                    ended.unwrap_or_else(|error| panic!("{what:?}: {error}"));
                    assert_eq!(is_right(game, width, &disk, &what), process.to);
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
                    assert_eq!(recovers(game, *process, &disk, acknowledged, &what), process.to);
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
fn a_kill_after_any_operation_leaves_nothing_that_verify_takes_for_damage() {
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
fn what_does_not_agree_is_kept_durably_before_it_is_written_over() {
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
fn a_record_with_any_digit_or_letter_changed_into_another_is_not_believed() {
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

/// The low byte of a value above 255 is not what reading it looks at.
#[test]
fn a_low_byte_under_an_escape_is_mended_by_repair_and_by_rollback() {
    let random = &mut Random::new("low byte");
    let game = Game::quick();
    let stopped = after(game, &Memory::new(), Process { to: 1000, every: 250, ..USUAL });
    let large = (0..1000).filter(|&n| game.values[n] > 255);
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

/// What happens to a run. Places and numbers are reduced to what there is.
#[derive(Clone, Debug)]
enum Step {
    /// A process computes so many values more, and may be told to stop on the way.
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
    let by = || 1..500u64;
    let every = || 40..300u64;
    let any = any::<u64>;
    let step = prop_oneof![
        4 => (by(), every(), prop::option::of(0..500u64), 0..4usize, 0..3usize, prop::bool::ANY).prop_map(
            |(by, every, stop, solver, threads, repair)| Step::Run { by, every, stop, solver, threads, repair }
        ),
        4 => (by(), every(), 1..120u64, prop::option::of(any())).prop_map(
            |(by, every, at, power_cut)| Step::End { by, every, at, power_cut }
        ),
        2 => (by(), any(), 0..40u64).prop_map(|(by, seed, harmful)| Step::Fail { by, seed, harmful: harmful << 20 }),
        1 => (0..3usize, any(), 1..=255u8).prop_map(|(file, at, with)| Step::Flip { file, at, with }),
        1 => (0..3usize, any()).prop_map(|(file, at)| Step::Cut { file, at }),
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
    use grundy::definition::Sequence;
    let view = View::open_in(&dir(on(disk))).unwrap();
    assert!(view.len() >= committed, "{committed} values were committed, {} are read", view.len());
    let mut values = vec![0; view.len() as usize];
    view.read(0, &mut values).unwrap();
    assert!(values == game.values[..values.len()], "what is read is not right");
    let status = journal::read_in(&dir(on(disk))).unwrap().last;
    assert_eq!(status.digest, game.digest(status.count));
}

/// The model of a run: a list of values, of which so many are committed.
struct Model {
    game: &'static Game,
    width: Width,
    disk: Memory,
    /// At least so many are there.
    committed: u64,
    /// The disk before somebody altered it.
    undamaged: Option<Memory>,
}

const FILES: [&str; 3] = ["values.npy", "escapes.npy", "journal.jsonl"];

impl Model {
    fn process(&self, by: u64, every: u64) -> Process {
        let to = (self.committed + by).min(self.game.values.len() as u64);
        Process { to, every, width: self.width, rollback: false, repair: false }
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
        // What ends badly is for disks that are good; others are looked at by a process that nothing happens to.
        let usual = Step::Run { by: 1, every: 100, stop: None, solver: 0, threads: 0, repair: true };
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
                let ended = self.process(by, 100).run(self.game, Arc::new(Faults::new(on(&self.disk), plan)));
                self.broke_off(ended);
            }
            Step::Flip { file, at, with } => self.damage(FILES[file], |bytes| {
                let at = at as usize % bytes.len();
                bytes[at] ^= with;
            }),
            Step::Cut { file, at } => self.damage(FILES[file], |bytes| bytes.truncate(at as usize % bytes.len())),
            Step::Rollback { by } => {
                let process = Process { rollback: true, ..self.process(by, 100) };
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
        self.committed = self.committed.max(published(&self.disk));
        looks_right_if_there(self.game, &self.disk, self.committed);
    }

    fn damage(&mut self, name: &str, alter: impl FnOnce(&mut Vec<u8>)) {
        let Some(mut bytes) = self.disk.get(name).filter(|bytes| !bytes.is_empty()) else { return };
        if self.undamaged.is_none() {
            self.undamaged = Some(self.disk.copy());
        }
        self.disk = self.disk.copy();
        alter(&mut bytes);
        self.disk.put(name, bytes);
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
fn a_file_that_is_put_in_the_place_of_a_new_one_stays() {
    let disk = Memory::new();
    let dir = dir(on(&disk));
    dir.make().unwrap();
    dir.open("values.npy", Mode::Make).unwrap().write_all_at(b"first", 0).unwrap();
    disk.put("values.npy", b"second".to_vec());
    dir.sync().unwrap();
    assert_eq!(disk.image(SECTOR, &mut |_| 0).get("values.npy").unwrap(), b"second");
}

#[test]
fn whatever_happens_to_a_run_its_committed_values_are_there_and_right() {
    let tally = Tally::begin("random histories of a run");
    let random = &mut Random::new("histories");
    let base = after(Game::sparse(), &Memory::new(), Process { to: 4200, every: 1400, ..USUAL });
    let pools = [1, 2, 3].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
    let seed: Vec<u8> = (0..4).flat_map(|_| random.next().to_le_bytes()).collect();
    let count = cases(500, 50_000);
    let config = Config {
        cases: u32::try_from(count).unwrap(),
        failure_persistence: None,
        max_shrink_iters: 500,
        ..Config::default()
    };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let done = AtomicU64::new(0);
    let tried = runner.run(&(0..5u8, prop::bool::ANY, steps()), |(game, narrow, steps)| {
        let mut model = match game {
            0 => Model { game: Game::sparse(), width: Width::U8, disk: base.copy(), committed: 4200, undamaged: None },
            _ => {
                let width = if narrow { Width::U8 } else { Width::U16 };
                Model { game: Game::quick(), width, disk: Memory::new(), committed: 0, undamaged: None }
            }
        };
        steps.iter().for_each(|step| model.step(step, &pools));
        model.step(&Step::Rollback { by: 1 }, &pools);
        model.step(&Step::Run { by: 300, every: 100, stop: None, solver: 0, threads: 0, repair: false }, &pools);
        done.fetch_add(steps.len() as u64, Ordering::Relaxed);
        Ok(())
    });
    tried.unwrap_or_else(|error| panic!("{error}"));
    tally.end(count, &format!("{} steps, after each of which what was committed was there", done.into_inner()));
}

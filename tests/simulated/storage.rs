//! Runs on a simulated disk, with a power cut, an I/O error or a kill at each operation: committed values survive, and
//! the next process continues to the bytes of an undisturbed run.
//!
//! Extend this file for a fault at one operation of the storage, and `histories.rs` for a fault that needs several
//! processes in a row. In the unit tests of the library the runs discard values, and some tests use other runs.

use crate::support::simulated::{
    FILES, FREEING, Game, HEADER, Process, USUAL, after, begin, dir, hole, is_given_back, is_right, left, on,
    published, verifies,
};
use crate::support::{FREES, Random, cases};
use grundy::checkpoint::journal::{self, Event, RECORD};
use grundy::error::Kind;
use grundy::storage::testing::{Fault, Faults, Memory, Plan, SECTOR};
use grundy::storage::{Mode, Storage};
use grundy::table::{Extent, Width};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// The disk after an operation, and the number of values that were published by then.
struct Moment {
    disk: Memory,
    acknowledged: u64,
}

/// No file becomes shorter than any record states, because a reader may have mapped it.
fn never_shrinks(width: Width, seen: &[Memory]) {
    let mut most = Extent::default();
    for (at, disk) in seen.iter().enumerate() {
        if let Ok(contents) = journal::read(dir(on(disk))) {
            most = most.max(contents.high_water_mark);
        }
        for (name, units, unit) in [("values.npy", most.values, width.bytes()), ("escapes.npy", most.escapes, 10)] {
            let length = disk.get(name).map(|bytes| bytes.len() as u64);
            let there = width == Width::U16 && name == "escapes.npy" || length >= Some(HEADER as u64 + units * unit);
            assert!(units == 0 || there, "operation {at}: {name} was cut to {length:?}, committed were {units}");
        }
    }
}

/// The disks after every storage operation of a process that begins with `before`.
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
    // During a rollback the header still states more than remains; nothing else reduces what is published.
    for moment in moments.iter_mut().rev() {
        least = least.min(moment.acknowledged);
        moment.acknowledged = least;
    }
    moments
}

/// Opens a disk after a power cut: there is no error, nothing committed is lost, and all values are correct.
fn recovers(game: &Game, process: Process, disk: &Memory, acknowledged: u64, what: &dyn std::fmt::Debug) -> u64 {
    let outcome = process.run(game, on(disk));
    let outcome = outcome.unwrap_or_else(|error| panic!("{what:?}: {error}"));
    let count = is_right(game, process.width, disk, what);
    is_given_back(process.width, disk, what);
    assert_eq!(outcome.progress.count, count, "{what:?}");
    assert!(count >= acknowledged, "{what:?}: {acknowledged} values were committed, {count} are left");
    count
}

/// If the journal ends with a clean stop, the files are exactly as it states.
fn a_clean_stop_is_exact(game: &Game, width: Width, disk: &Memory, what: &dyn std::fmt::Debug) {
    if let Ok(contents) = journal::read(dir(on(disk)))
        && (contents.last.event, contents.torn) == (Event::Close, None)
    {
        is_right(game, width, disk, what);
    }
}

/// The recorded runs: a new one, one that resumes after a clean stop, and one of a sparse solver. Of runs that discard
/// values: the first values, some more, and many at once in a run that kept all before.
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
            let frees = |disk: &Memory| journal::read(dir(on(disk))).unwrap().last.discarded().unwrap().end;
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
    let wanted = if FREES { cases(700, 50_000) } else { cases(20_000, 1_000_000) };
    let images = wanted.div_ceil(operations as u64);
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
    assert!(tried >= wanted && lost > tried / 10);
    tally.end(
        tried,
        &format!("{operations} operations; all images opened and right, {finished} of them run on to the same bytes"),
    );
}

/// The run discards a range when two records state it. So if the last record is lost, the one before it is still true.
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
            let count = journal::read(dir(on(&disk))).unwrap().last.count;
            recovers(game, Process { to: 1, ..process }, &disk, count, &("operation", at));
            tried += 1;
        }
    }
    assert!(tried > 200, "{tried}");
}

/// A copy of the disk with one altered byte in the values of `place`.
fn with_a_bad_value(disk: &Memory, random: &mut Random, width: Width, place: Range<u64>) -> Memory {
    let disk = disk.copy();
    let mut table = disk.get("values.npy").unwrap();
    let at = HEADER + (place.start * width.bytes() + random.below((place.end - place.start) * width.bytes())) as usize;
    table[at] = random.other_byte(table[at]);
    disk.put("values.npy", table);
    disk
}

/// States that a process has to recover from, and the process.
fn troubles(
    game: &Game,
    stopped: &Memory,
    random: &mut Random,
    histories: &[(&'static Game, Process, Vec<Moment>)],
) -> Vec<(Process, Memory)> {
    let mut troubles = Vec::new();
    let last = journal::read(dir(on(stopped))).unwrap().last;
    let goal = Process { to: last.count + 400, every: 230, keep: last.keep, ..USUAL };
    let back = Process { to: if FREES { 1 } else { goal.to }, rollback: true, ..goal };
    let repair = Process { repair: true, ..goal };
    // In the first values and in the last ones; values in between need discarded ones.
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
        // The process writes over the holes and over the values after the rollback.
        troubles.push((Process { to: last.count - 3500, every: 6000, ..back }, bad));
    }
    // A record before the last one is damaged: the run continues from the last one.
    let damaged = stopped.copy();
    let mut journal = damaged.get("journal.jsonl").unwrap();
    let at = random.below((journal.len() - RECORD) as u64) as usize;
    journal[at] = random.other_byte(journal[at]);
    damaged.put("journal.jsonl", journal);
    troubles.push((back, damaged));
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
    while tried < if FREES { cases(700, 10_000) } else { cases(6000, 200_000) } {
        for (process, disk) in troubles(game, &stopped, random, &histories) {
            let moments = moments(game, process, &disk);
            steps += moments.len();
            for (at, moment) in moments.iter().enumerate() {
                for _ in 0..2 {
                    // Each case of a run that discards values creates a solver, which is slow.
                    if FREES && !random.tries(6) {
                        continue;
                    }
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

/// Checks that everything is durable: a power cut changes nothing, except for holes that the next run punches again.
fn is_durable(disk: &Memory, random: &mut Random, what: &dyn std::fmt::Debug) {
    let image = left(disk, random);
    let last = journal::read(dir(on(disk))).unwrap().last;
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
            // Discards two segments more.
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
                if !random.tries(if FREES { 20 } else { 3 }) {
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
                // The next process finds what the kernel still holds, or what a power cut leaves.
                let image = left(&disk, random);
                for disk in [disk, image] {
                    assert!(arrived(recovers(game, *process, &disk, acknowledged, &what)), "{what:?}");
                    // A repair whose sync failed left correct bytes, as every process can see.
                    if !process.repair {
                        is_durable(&disk, random, &what);
                    }
                }
            }
        }
    }
    tally.end(
        tried,
        &format!("{survived} survived, the others ended the run and the next one resumed to the same bytes"),
    );
}

/// All bytes of a table of bytes for the values `from..to`.
fn segment(disk: &Memory, from: u64, to: u64) -> Vec<u8> {
    disk.get("values.npy").unwrap()[HEADER + from as usize..HEADER + to as usize].to_vec()
}

/// The events and counts of a journal.
fn events(disk: &Memory) -> Vec<(String, u64)> {
    let journal = disk.get("journal.jsonl").unwrap();
    let records = journal.chunks(RECORD).map(|line| serde_json::from_slice::<serde_json::Value>(line).unwrap());
    records.map(|r| (r["event"].as_str().unwrap().to_owned(), r["count"].as_u64().unwrap())).collect()
}

/// A kill between two operations leaves files in which `verify` finds no damage.
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
    let sequence = journal::read(dir(on(&stopped))).unwrap().last.sequence;
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
            let record = journal::read(dir(on(last))).unwrap().last;
            assert_eq!((record.errors, record.checks.get("repaired")), (1, repair.then_some(1)));
            let event = if repair { ("repair".to_owned(), 1000) } else { ("rollback".to_owned(), from) };
            let events = events(last);
            let stop = events.iter().position(|e| *e == event).unwrap_or_else(|| panic!("{events:?}"));
            assert_eq!(events[stop - 1], ("close".to_owned(), 1000));
        }
    }
}

/// Flipping the lowest bit turns digits into digits and letters into letters, so the result still parses as a record.
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
        // A damaged last record may also be torn by a kill; then the record before it counts.
        match journal::read(dir(on(&disk))) {
            Err(_) => assert!(at / RECORD < last, "byte {at}: a torn tail was taken for damage"),
            Ok(contents) => assert!(
                contents.torn == Some((last * RECORD) as u64) && at / RECORD == last,
                "byte {at}: the journal is believed up to record {}",
                contents.last.sequence
            ),
        }
    }
}

/// Bytes that cannot be proved to agree with the journal are not changed without `--rollback`. Without the repair,
/// which proves them, escapes are such bytes.
#[test]
fn damage_that_cannot_be_repaired_is_refused_untouched() {
    let random = &mut Random::new("no repair");
    let game = Game::quick();
    let stopped = after(game, &Memory::new(), Process { to: 1000, every: 250, ..USUAL });
    let names = ["values.npy", "escapes.npy", "journal.jsonl"];
    let escapes = HEADER as u64..stopped.get("escapes.npy").unwrap().len() as u64;
    for (name, places) in [("escapes.npy", escapes), ("journal.jsonl", 40..4 * 4096)] {
        for _ in 0..50 {
            let bad = stopped.copy();
            let mut bytes = bad.get(name).unwrap();
            let at = (places.start + random.below(places.end - places.start)) as usize;
            bytes[at] = random.other_byte(bytes[at]);
            bad.put(name, bytes);
            let before = names.map(|name| bad.get(name));
            for repair in [false, true].into_iter().filter(|repair| !repair || name == "journal.jsonl") {
                let process = Process { to: 1200, repair, ..USUAL };
                let error = process.run(game, on(&bad)).expect_err(&format!("{name}, byte {at}"));
                assert_eq!(error.kind(), Kind::Damage, "{name}, byte {at}: {error}");
                assert!(before == names.map(|name| bad.get(name)), "{name}, byte {at}");
            }
        }
    }
}

/// Altered escapes, alone or together with an altered value, are restored.
#[test]
fn altered_escapes_are_restored_from_recomputed_values() {
    let random = &mut Random::new("altered escapes");
    let game = Game::quick();
    let stopped = after(game, &Memory::new(), Process { to: 1000, every: 250, ..USUAL });
    for case in 0..100 {
        let bad = stopped.copy();
        let files = if case % 2 == 0 { &["escapes.npy"][..] } else { &["escapes.npy", "values.npy"] };
        for name in files {
            let mut bytes = bad.get(name).unwrap();
            let at = HEADER + random.below((bytes.len() - HEADER) as u64) as usize;
            bytes[at] = random.other_byte(bytes[at]);
            bad.put(name, bytes);
        }
        Process { to: 1200, repair: true, ..USUAL }
            .run(game, on(&bad))
            .unwrap_or_else(|error| panic!("case {case}: {error}"));
        assert_eq!(is_right(game, Width::U8, &bad, &case), 1200);
    }
}

/// A value of 255 or more is stored as an escape, and its byte in the table is 255.
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
                (false, Err(error)) => assert_eq!(error.kind(), Kind::Damage, "{error}"),
                (_, other) => panic!("{n}: {other:?}"),
            }
        }
    }
}

/// A file that is altered before its name is durable stays altered: a power cut does not restore the first contents.
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

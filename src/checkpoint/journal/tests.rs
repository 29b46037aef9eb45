//! Tests of the line of a record, and of the records after damage.

use super::record::{own_hash, seal, unsealed_json};
use super::*;
use crate::storage::Dir;
use crate::storage::testing::memory::Memory;
use crate::table::Width;
use std::path::Path;
use std::sync::Arc;

/// The example of docs/FORMAT.md.
const CLOSED: &str = concat!(
    r#"{"format":2,"run":"9f3f1b85de7748eb90d6812f1b72e6dc","game":"0.6","#,
    r#""rule":"b2f3355973989e576746902a0b18905e86b4e90f01f9d180bc1d66a258b6b6a0","sequence":3,"event":"close","#,
    r#""count":20000,"escapes":382,"width":"u8","mask":494,"position":0,"kept":[[0,20000]],"#,
    r#""digest":"7d83693bb71ca9a26f8b92e0b87f661ceae2bcb32f1969e28d419e8a89e10ac8","#,
    r#""rares":1583,"last_rare":18833,"max_value":284,"max_at":18855,"#,
    r#""checks":{"audited":0,"definition":4096,"memory":2,"places":45,"settled":43,"walks":0,"witnessed":15904},"#,
    r#""errors":0,"suspect":null,"kernel":"avx512","#,
    r#""program":"grundy 0.1.0 (8e2f2283f00c, x86_64-unknown-linux-gnu)","time":"2026-11-23T01:31:45Z","seconds":1,"#,
    r#""previous":"3bcb0f8ef64b15d9fec24bf4a98ea2c8ae97d4ee49cefa4885be9df2166bf756","#,
    r#""blake3":"94e7ec72b2dffba199db6a1d2ab4c7234d595946b4d2655b250b0dc5d8c7d7d6"}"#
);

/// Every key that not all records have, a suspect n, and a count of checks that this program does not know.
const OTHER_KEYS: &str = concat!(
    r#"{"format":2,"run":"9f3f1b85de7748eb90d6812f1b72e6dc","game":"grundy","rule":"","sequence":7,"event":"repair","#,
    r#""count":30000,"escapes":0,"width":"u16","mask":510,"position":1,"kept":[[0,10000],[20000,30000]],"#,
    r#""keep":1000,"snapshot":{"name":"snapshot-20000.json","blake3":""},"digest":"","#,
    r#""rares":1,"last_rare":2,"max_value":3,"max_at":4,"checks":{"audited":0,"later":9,"repaired":1,"witnessed":2},"#,
    r#""errors":1,"suspect":4001,"kernel":"scalar","machine":"aarch64","program":"","time":"","seconds":1,"previous":"","blake3":""}"#
);

fn line_of(json: &str) -> Vec<u8> {
    let mut line = json.as_bytes().to_vec();
    line.resize(RECORD - 1, b' ');
    line.push(b'\n');
    line
}

#[test]
fn a_line_that_is_read_and_written_again_has_the_same_bytes() {
    let line = line_of(CLOSED);
    let mut record: Record = serde_json::from_slice(&line).unwrap();
    assert_eq!(own_hash(&line).as_ref(), Some(&record.blake3));
    assert_eq!((record.event, record.count, record.checks.get("settled")), (Event::Close, 20_000, Some(43)));
    let (again, hash) = seal(unsealed_json(&mut record).unwrap());
    assert_eq!(String::from_utf8(again).unwrap(), String::from_utf8(line).unwrap());
    assert!(CLOSED.ends_with(&format!("{hash}\"}}")));
}

#[test]
fn keys_that_not_all_records_have_are_written_again_in_their_places() {
    let mut record: Record = serde_json::from_str(OTHER_KEYS).unwrap();
    assert_eq!((record.suspect, record.keep), (Some(4001), Some(1000)));
    assert_eq!(serde_json::to_string(&record).unwrap(), OTHER_KEYS);
    record.checks.add(Check::Repaired, u64::MAX);
    assert_eq!(record.checks.get("repaired"), Some(u64::MAX), "the sum saturates");
}

#[test]
fn origins_follow_commits_and_rollbacks() {
    let mut record: Record = serde_json::from_str(OTHER_KEYS).unwrap();
    let mut origins = Vec::new();
    let mut follow = |count: u64, kernel: &str, machine: Option<&str>| {
        (record.count, record.kernel, record.machine) = (count, kernel.into(), machine.map(Into::into));
        Origin::follow(&mut origins, &record);
        let shown =
            |origin: &Origin| format!("{}{}{}", origin.to, origin.kernel, origin.machine.as_deref().unwrap_or("?"));
        origins.iter().map(shown).collect::<Vec<String>>().join(" ")
    };
    let steps = [
        (0, "a", Some("M"), ""),
        (10, "a", Some("M"), "10aM"),
        (10, "b", Some("M"), "10aM"),
        (20, "b", Some("M"), "10aM 20bM"),
        (25, "b", Some("M"), "10aM 25bM"),
        (30, "b", None, "10aM 25bM 30b?"),
        (40, "b", Some("N"), "10aM 25bM 30b? 40bN"),
        // Back to within an origin, to the end of one, and to the start.
        (27, "c", Some("N"), "10aM 25bM 27b?"),
        (10, "c", Some("N"), "10aM"),
        (12, "c", Some("N"), "10aM 12cN"),
        (0, "c", Some("N"), ""),
        (5, "c", None, "5c?"),
    ];
    for (count, kernel, machine, expected) in steps {
        assert_eq!(follow(count, kernel, machine), expected, "{count} {kernel} {machine:?}");
    }
}

/// A journal in memory of a run of .6 with these records: event, count and errors of each.
fn journal_of(records: &[(Event, u64, u64)]) -> (Arc<Memory>, Dir) {
    let memory = Arc::new(Memory::new());
    let dir = Dir::on(memory.clone(), Path::new("run"));
    let mut journal = Journal::open(&dir).unwrap().0;
    let first = Record::first(&"0.6".parse().unwrap(), Width::U8);
    for &(event, count, errors) in records {
        let kernel = format!("kernel of {count}");
        let kept = kept(count, &(0..0));
        journal.append(Record { event, count, errors, kept, kernel, ..first.clone() }).unwrap();
    }
    (memory, dir)
}

/// Opens a journal whose bytes are altered, as a rollback does.
fn opened_to_roll_back(memory: &Memory, dir: &Dir, alter: impl FnOnce(&mut Vec<u8>)) -> Contents {
    let mut bytes = memory.get(NAME).unwrap();
    alter(&mut bytes);
    memory.put(NAME, bytes);
    Journal::open_to_roll_back(dir).unwrap().1.unwrap()
}

const RECORDS: [(Event, u64, u64); 6] = [
    (Event::Open, 0, 0),
    (Event::Commit, 100, 0),
    (Event::Commit, 200, 0),
    (Event::Commit, 300, 0),
    (Event::Commit, 400, 0),
    (Event::Close, 400, 0),
];

/// The damaged records, the counts of the points, and the origins.
type AfterDamage = (&'static [usize], &'static [u64], &'static [(u64, &'static str)]);

#[test]
fn records_after_a_damaged_one_follow_and_the_first_has_no_known_origin() {
    let cases: [AfterDamage; 7] = [
        (
            &[0],
            &[100, 200, 300, 400],
            &[(100, UNKNOWN_KERNEL), (200, "kernel of 200"), (300, "kernel of 300"), (400, "kernel of 400")],
        ),
        (&[0, 1, 2], &[300, 400], &[(300, UNKNOWN_KERNEL), (400, "kernel of 400")]),
        (&[0, 1, 2, 3, 4], &[400], &[(400, UNKNOWN_KERNEL)]),
        (&[2], &[0, 100, 300, 400], &[(100, "kernel of 100"), (300, UNKNOWN_KERNEL), (400, "kernel of 400")]),
        (&[2, 3], &[0, 100, 400], &[(100, "kernel of 100"), (400, UNKNOWN_KERNEL)]),
        (
            &[4],
            &[0, 100, 200, 300, 400],
            &[(100, "kernel of 100"), (200, "kernel of 200"), (300, "kernel of 300"), (400, UNKNOWN_KERNEL)],
        ),
        (&[2, 4], &[0, 100], &[(100, "kernel of 100")]), // a second damage
    ];
    for (damaged, counts, origins) in cases {
        let (memory, dir) = journal_of(&RECORDS);
        let contents = opened_to_roll_back(&memory, &dir, |bytes| {
            damaged.iter().for_each(|record| bytes[record * RECORD + 50] ^= 1);
        });
        let found: Vec<u64> = contents.points.iter().map(|point| point.count).collect();
        assert_eq!(found, counts, "{damaged:?}");
        let found: Vec<(u64, &str)> = contents.origins.iter().map(|origin| (origin.to, &*origin.kernel)).collect();
        assert_eq!(found, origins, "{damaged:?}");
        let is_known = |origin: &Origin| origin.machine.is_some() == (origin.kernel != UNKNOWN_KERNEL);
        assert!(contents.origins.iter().all(is_known), "{:?}", contents.origins);
    }
}

#[test]
fn records_that_cannot_follow_the_damage_are_given_up() {
    let with_rollback = [
        (Event::Open, 0, 0),
        (Event::Commit, 100, 0),
        (Event::Commit, 200, 0),
        (Event::Rollback, 100, 1),
        (Event::Commit, 300, 1),
    ];
    let flip = |record: usize| move |bytes: &mut Vec<u8>| bytes[record * RECORD + 50] ^= 1;
    let lost_rollback = journal_of(&with_rollback);
    let contents = opened_to_roll_back(&lost_rollback.0, &lost_rollback.1, flip(3));
    assert_eq!((contents.last.count, contents.records), (200, 3), "a rollback may be lost");
    // Nothing states what preceded the first record: it must count no error.
    let (memory, dir) = journal_of(&with_rollback[2..]);
    let mut bytes = memory.get(NAME).unwrap();
    bytes[50] ^= 1;
    memory.put(NAME, bytes);
    assert!(Journal::open_to_roll_back(&dir).unwrap().1.is_none(), "a rollback may be lost");
    // The first count is smaller than that before the damage.
    let smaller = [(Event::Open, 0, 0), (Event::Commit, 300, 0), (Event::Rollback, 100, 0), (Event::Commit, 200, 0)];
    let (memory, dir) = journal_of(&smaller);
    assert_eq!(opened_to_roll_back(&memory, &dir, flip(2)).last.count, 300);
    // A rollback because of a suspect value counts no error, and the run may have come as far as before.
    for suspect in [Some(150), None] {
        let (memory, dir) = journal_of(&RECORDS[..2]);
        let mut journal = Journal::open(&dir).unwrap().0;
        let last = journal.last().unwrap().clone();
        let kept_200 = kept(200, &(0..0));
        let before = Record { count: 200, suspect, digest: "1".repeat(64), kept: kept_200.clone(), ..last.clone() };
        journal.append(before.clone()).unwrap();
        journal.append(Record { event: Event::Rollback, count: 100, suspect: None, ..last.clone() }).unwrap();
        journal.append(Record { suspect: None, digest: "2".repeat(64), kept: kept_200, ..before }).unwrap();
        drop(journal);
        let contents = opened_to_roll_back(&memory, &dir, flip(3));
        assert_eq!((contents.records, contents.last.digest), (3, "1".repeat(64)), "suspect {suspect:?}");
    }
    // A record out of its place, one of another run, and a missing one.
    type Harm = fn(&mut Vec<u8>);
    let harms: [Harm; 3] = [
        |bytes| bytes.copy_within(4 * RECORD..5 * RECORD, 3 * RECORD),
        |bytes| {
            let other = journal_of(&RECORDS).0.get(NAME).unwrap();
            bytes[4 * RECORD..].copy_from_slice(&other[4 * RECORD..]);
        },
        |bytes| _ = bytes.drain(2 * RECORD..3 * RECORD),
    ];
    for (number, harm) in harms.into_iter().enumerate() {
        let (memory, dir) = journal_of(&RECORDS);
        let contents = opened_to_roll_back(&memory, &dir, |bytes| {
            harm(bytes);
            bytes[2 * RECORD + 50] ^= 1;
        });
        assert_eq!((contents.last.count, contents.records), (100, 2), "harm {number}");
    }
}

#[test]
fn a_damaged_journal_is_replaced_as_a_whole_or_not_at_all() {
    for damaged in [0, 2] {
        let (memory, dir) = journal_of(&RECORDS);
        let mut bytes = memory.get(NAME).unwrap();
        bytes[damaged * RECORD + 50] ^= 1;
        memory.put(NAME, bytes.clone());
        let (mut journal, contents) = Journal::open_to_roll_back(&dir).unwrap();
        let last = Record { event: Event::Rollback, errors: 1, ..contents.unwrap().last };
        let name = journal.replace_damage(last).unwrap();
        assert!(memory.get(&name).unwrap() == bytes[damaged * RECORD..], "everything from the damage on");
        let contents = read(dir.clone()).unwrap();
        assert_eq!((contents.records, contents.last.errors, contents.last.count), (6, 1, 400));
        assert_eq!(journal.last().unwrap().blake3, contents.last.blake3);
        assert!(Journal::open(&dir).is_err(), "the new journal is locked");
        journal.append(Record { event: Event::Close, ..contents.last }).unwrap();
        assert_eq!(read(dir).unwrap().records, 7);
    }
}

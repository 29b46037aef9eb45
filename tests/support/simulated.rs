//! Runs on a simulated disk: games with known values, processes, and checks of the files that they leave.
//!
//! The test programs and the unit tests of the library include this file. In unit tests the runs discard values
//! ([`FREES`]).

use super::{FREES, Random, Tally};
use grundy::checkpoint::journal::{self, Event, Record};
use grundy::kernel::Kernel;
use grundy::run::{Observer, Options, Outcome, Run, RunPolicy};
use grundy::solver::{Method, Solver};
use grundy::storage::testing::{Memory, SECTOR};
use grundy::storage::{Dir, Storage};
use grundy::table::Width;
use grundy::theory::definition;
use grundy::theory::rule::Rule;
use grundy::verify;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

pub(crate) const HEADER: usize = 4096;

/// Values in one segment.
pub(crate) const SEGMENT: usize = if FREES { 1 << 12 } else { 1 << 24 };

/// Number of values of the runs that discard values.
pub(crate) const FREED_TO: u64 = 220_000;

/// Number of last values that these runs keep, besides the first 2^16: slightly more than the lookback of their game.
pub(crate) const KEEP: u64 = 132_000;

/// A game and its values by the definition.
pub(crate) struct Game {
    pub(crate) rule: Rule,
    pub(crate) method: Method,
    pub(crate) values: Vec<u16>,
}

impl Game {
    pub(crate) fn new(name: &str, method: Method, count: usize) -> Game {
        let rule: Rule = name.parse().unwrap();
        let values = definition::values(&rule, count).unwrap();
        assert!(values.iter().any(|&v| v > 255), "{name} has escapes");
        Game { rule, method, values }
    }

    /// A move takes up to 290 tokens, or 291 and leaves two heaps: many values above 255 occur early, and it is fast.
    pub(crate) fn quick() -> &'static Game {
        static ONCE: OnceLock<Game> = OnceLock::new();
        ONCE.get_or_init(|| Game::new(&format!("0.{}7", "3".repeat(290)), Method::Definition, 4000))
    }

    /// A game with rare positions; the solver is sparse from n = 4096 on.
    pub(crate) fn sparse() -> &'static Game {
        static ONCE: OnceLock<Game> = OnceLock::new();
        ONCE.get_or_init(|| Game::new("0.6", Method::Sparse(Kernel::best()), 12_000))
    }

    /// The same game with enough values to discard some, by the scalar kernel, with samples checked by the definition.
    pub(crate) fn freeing() -> &'static Game {
        static ONCE: OnceLock<Game> = OnceLock::new();
        ONCE.get_or_init(|| {
            let rule: Rule = "0.6".parse().unwrap();
            let mut values = Vec::new();
            let mut solver = Solver::new(&rule, Method::Sparse(Kernel::scalar()), None, &[].as_slice()).unwrap();
            solver.extend_to(&mut values, FREED_TO, |_| true).unwrap();
            for n in (0..FREED_TO).step_by(997) {
                assert_eq!(definition::value_at(&rule, &values, n).unwrap(), values[n as usize], "G({n})");
            }
            Game { rule, method: Method::Sparse(Kernel::best()), values }
        })
    }

    /// The files of a table of `count` values as the format defines them.
    pub(crate) fn files(&self, width: Width, count: u64) -> (Vec<u8>, Option<Vec<u8>>) {
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

    /// The digest of the first `count` values as the format defines it.
    pub(crate) fn digest(&self, count: u64) -> String {
        let digest = self.values[..count as usize].chunks(SEGMENT).fold([0; 32], |before, segment| {
            let bytes: Vec<u8> = segment.iter().flat_map(|v| v.to_le_bytes()).collect();
            *blake3::hash(&[before, *blake3::hash(&bytes).as_bytes()].concat()).as_bytes()
        });
        blake3::Hash::from_bytes(digest).to_hex().to_string()
    }
}

/// Options of a process that computes a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pub(crate) to: u64,
    pub(crate) every: u64,
    pub(crate) width: Width,
    pub(crate) keep: Option<u64>,
    pub(crate) rollback: bool,
    pub(crate) repair: bool,
    /// Method of the solver; `None` for the method of the game.
    pub(crate) method: Option<Method>,
}

pub(crate) const USUAL: Process =
    Process { to: 1, every: 150, width: Width::U8, keep: None, rollback: false, repair: false, method: None };

/// A process that discards values, from 201 632 on.
pub(crate) const FREEING: Process = Process { every: 3000, keep: Some(KEEP), ..USUAL };

impl Process {
    pub(crate) fn run(self, game: &Game, storage: Arc<dyn Storage>) -> grundy::Result<Outcome> {
        self.watched(game, storage, &mut (), &AtomicBool::new(false))
    }

    pub(crate) fn watched(
        self,
        game: &Game,
        storage: Arc<dyn Storage>,
        observer: &mut (dyn Observer + Send),
        stop: &AtomicBool,
    ) -> grundy::Result<Outcome> {
        let Process { to, every, width, keep, rollback, repair, method } = self;
        let method = method.unwrap_or(game.method);
        let options = Options { to: Some(to), threads: 1, method, width: Some(width), keep, rollback };
        let policy = RunPolicy { commit_every: Some(every), repair, seed: Some(1) };
        let run = Run::on(Some(&game.rule), &dir(storage)).options(options).policy(policy);
        run.observer(observer).stop(stop).run_in_pool()
    }
}

pub(crate) fn dir(storage: Arc<dyn Storage>) -> Dir {
    Dir::on(storage, Path::new("run"))
}

pub(crate) fn on(disk: &Memory) -> Arc<dyn Storage> {
    Arc::new(disk.clone())
}

/// Number of values that the header of the table states; 0 if a power cut tore the header, as in `(898)),`.
pub(crate) fn published(disk: &Memory) -> u64 {
    let table = disk.get("values.npy").unwrap_or_default();
    let header = String::from_utf8_lossy(&table[..table.len().min(HEADER)]).into_owned();
    let shape = header.split_once("'shape': (").and_then(|(_, rest)| rest.split_once(','));
    shape.map_or(0, |(digits, _)| digits.parse().unwrap_or(0))
}

/// Checks that a cleanly stopped run equals the definition and the format to the byte; returns its count. Bytes after
/// that were committed before a rollback. Discarded values are holes, or become holes after the next record.
pub(crate) fn is_right(game: &Game, width: Width, disk: &Memory, what: &dyn std::fmt::Debug) -> u64 {
    let contents = journal::read(dir(on(disk))).unwrap_or_else(|error| panic!("{what:?}: {error}"));
    let (last, high_water_mark) = (contents.last, contents.high_water_mark);
    let (mut values, mut escapes) = game.files(width, last.count);
    let found = disk.get("values.npy").unwrap();
    let hole = hole(&last, width);
    if found[hole.clone()].iter().zip(&values[hole.clone()]).all(|(&found, value)| found == 0 || found == *value) {
        values[hole.clone()].copy_from_slice(&found[hole]);
    }
    let differs = found.iter().zip(&values).position(|(a, b)| a != b);
    let length = |units: u64, unit: u64| HEADER + (units * unit) as usize;
    let right = found.starts_with(&values) && found.len() <= length(high_water_mark.values, width.bytes());
    assert!(right, "{what:?}: the table of {} values is not right, from byte {differs:?} on", last.count);
    let found = disk.get("escapes.npy");
    if let (Some(found), Some(escapes)) = (&found, &mut escapes) {
        tolerate_freed_escapes(&last, found, escapes);
    }
    let right = match (&found, &escapes) {
        (Some(found), Some(escapes)) => {
            found.starts_with(escapes) && found.len() <= length(high_water_mark.escapes, 10)
        }
        (found, escapes) => found == escapes,
    };
    assert!(right, "{what:?}: the escapes of {} values are not right", last.count);
    assert_eq!(last.digest, game.digest(last.count), "{what:?}");
    assert_eq!((last.event, contents.torn), (Event::Close, None), "{what:?}");
    are_counted(game, &last, disk, what);
    last.count
}

/// Checks that the counts cover the discarded values, and are those of the definition.
fn are_counted(game: &Game, last: &Record, disk: &Memory, what: &dyn std::fmt::Debug) {
    let freed = last.discarded().unwrap();
    let text = disk.get("counts.jsonl").unwrap_or_default();
    let mut n = freed.start;
    for line in text.split(|&byte| byte == b'\n') {
        if n >= freed.end {
            break;
        }
        let line: serde_json::Value = serde_json::from_slice(line).unwrap_or_else(|e| panic!("{what:?}: {e}"));
        let to = line["to"].as_u64().unwrap();
        assert!(line["from"] == n && n < to && to <= freed.end, "{what:?}: {line}");
        let mut counts = vec![0u64; line["counts"].as_array().unwrap().len()];
        game.values[n as usize..to as usize].iter().for_each(|&value| counts[usize::from(value)] += 1);
        assert_eq!(line["counts"], serde_json::json!(counts), "{what:?}: the counts from n = {n} on");
        n = to;
    }
    assert!(freed.is_empty() || n == freed.end, "{what:?}: no counts from n = {n} on, discarded: {freed:?}");
}

/// Accepts any entries of discarded values: no reader uses them, and only their order is checked.
pub(crate) fn tolerate_freed_escapes(record: &Record, found: &[u8], escapes: &mut [u8]) {
    let freed = record.discarded().unwrap();
    let is_freed = |entry: &[u8]| freed.contains(&u64::from_le_bytes(entry[..8].try_into().unwrap()));
    let entries = |bytes: &[u8]| bytes.len().saturating_sub(HEADER) / 10;
    for i in 0..entries(escapes).min(entries(found)) {
        let at = HEADER + 10 * i..HEADER + 10 * (i + 1);
        if is_freed(&escapes[at.clone()]) && is_freed(&found[at.clone()]) {
            escapes[at.clone()].copy_from_slice(&found[at]);
        }
    }
}

/// The bytes of the table that a record states as discarded.
pub(crate) fn hole(record: &Record, width: Width) -> Range<usize> {
    let freed = record.discarded().unwrap();
    let [from, to] = [freed.start, freed.end].map(|n| HEADER + (n * width.bytes()) as usize);
    if freed.is_empty() { 0..0 } else { from..to }
}

/// Checks that a clean stop has punched the holes, and that only the last snapshot is left.
pub(crate) fn is_given_back(width: Width, disk: &Memory, what: &dyn std::fmt::Debug) {
    let last = journal::read(dir(on(disk))).unwrap().last;
    assert!(disk.get("values.npy").unwrap()[hole(&last, width)].iter().all(|&byte| byte == 0), "{what:?}");
    let names = disk.names().unwrap();
    let snapshots: Vec<&String> = names.iter().filter(|name| name.starts_with("snapshot-")).collect();
    assert_eq!(snapshots, last.snapshot.iter().map(|attached| &attached.name).collect::<Vec<_>>(), "{what:?}");
}

/// Checks that the files pass `verify` on a real disk.
pub(crate) fn verifies(disk: &Memory, what: &dyn std::fmt::Debug) {
    let parent = tempfile::tempdir().unwrap();
    for name in disk.names().unwrap() {
        std::fs::write(parent.path().join(&name), disk.get(&name).unwrap()).unwrap();
    }
    let verified = verify::digest(parent.path(), None, |_, _| {});
    verified.unwrap_or_else(|error| panic!("{what:?}: {error}"));
}

/// Starts the tally of a hazard; runs that discard values are counted separately.
pub(crate) fn begin(usual: &'static str, freeing: &'static str) -> Tally {
    Tally::begin(if FREES { freeing } else { usual })
}

/// The disk after a process that finished.
pub(crate) fn after(game: &Game, before: &Memory, process: Process) -> Memory {
    let disk = before.copy();
    process.run(game, on(&disk)).unwrap();
    is_right(game, process.width, &disk, &"the run before");
    disk
}

/// A disk after a power cut: unsynced sectors, or bytes, are lost at random.
pub(crate) fn left(disk: &Memory, random: &mut Random) -> Memory {
    let unit = if random.below(2) == 0 { SECTOR } else { 1 };
    disk.image(unit, &mut |bound| random.below(bound))
}

pub(crate) const FILES: [&str; 3] = ["values.npy", "escapes.npy", "journal.jsonl"];

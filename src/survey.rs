//! Many games: the period of each, one record a game, and a table like the published ones.
//!
//! Each game is hunted ([`crate::period::hunt`]) on one thread, many games side by side, up to a number of values; where
//! no space is good and every pair of heaps must be looked at, to an eighth of it; and up to four times as far when a period
//! is observed that could be proved there. What was found is one file, `CODE.json`, written whole or not at all, so a
//! survey that was stopped goes on with the games that have none. A survey can be cut into shards, whose directories
//! [`read`] takes together.
//!
//! The published tables: R. K. Guy and C. A. B. Smith, *The G-values of various games* (1956); E. R. Berlekamp, J. H. Conway,
//! R. K. Guy, *Winning Ways*, chapter 4, table 6; A. Flammenkamp's lists of octal games.
//!
//! Invariant: a record says only what [`crate::period`] proved, or that it did not.

use crate::digest::Chain;
use crate::error::{Error, Result};
use crate::period::{self, Status, Theorem};
use crate::rule::Rule;
use crate::sparse::{Known, Method, Space};
use crate::storage::{Dir, Mode};
use crate::verify;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The format of a record that this program writes and reads.
const FORMAT: &str = "grundy-survey-1";

/// How far a survey looks unless it is told otherwise.
pub const TO: u64 = 1 << 20;

/// What was found of one game; numbers that there are not are null in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// `grundy-survey-1`.
    pub format: String,
    /// What wrote it.
    pub program: String,
    /// Canonical name of the game.
    pub game: String,
    /// How far it was to be looked at.
    pub to: u64,
    /// How sure the period is.
    pub status: Status,
    /// The period.
    pub period: Option<u64>,
    /// The preperiod.
    pub preperiod: Option<u64>,
    /// Not 0 for what is arithmetic-periodic.
    pub saltus: u16,
    /// The largest value.
    pub max_value: u16,
    /// Where it appears first.
    pub max_at: u64,
    /// Mask of the sparse space; 0 for none.
    pub mask: u16,
    /// Its position term.
    pub position: u8,
    /// Rare heaps, n = 0 included; null without a space.
    pub rares: Option<u64>,
    /// The last of them.
    pub last_rare: Option<u64>,
    /// What the proof is based on.
    pub theorem: Option<Theorem>,
    /// How many values were looked at.
    pub checked_through: u64,
    /// Their digest.
    pub digest: String,
}

/// All octal codes with up to `digits` digits after the point, 0.… and 4.…, in order.
#[must_use]
pub fn codes(digits: u32) -> Vec<Rule> {
    let width = usize::try_from(digits).unwrap_or(usize::MAX);
    let all = ['0', '4'].into_iter().flat_map(|whole| (0..8u64.pow(digits)).map(move |code| (whole, code)));
    all.map(|(whole, code)| format!("{whole}.{code:0width$o}").parse().expect("an octal code")).collect()
}

/// Finds the period of one game; `None` when `stop` ended it.
///
/// # Errors
/// [`Error::ValueTooLarge`] among others.
pub fn examine(rule: &Rule, method: Method, to: u64, stop: &AtomicBool) -> Result<Option<Record>> {
    if rule.is_nim() {
        return Ok(Some(nim(to)));
    }
    let limit = |found: Option<&period::Finding>, space: Space| {
        let usual = match (found, space) {
            (Some(found), Space::NONE) if rule.splits().next().is_some() => to.min(found.count.max(to / 8)),
            _ => to,
        };
        let near = found.and_then(|found| found.needed(rule)).filter(|&needed| needed <= to.saturating_mul(4));
        usual.max(near.unwrap_or(0))
    };
    let hunt = period::hunt(rule, method, limit, |_| !stop.load(Ordering::Relaxed))?;
    if hunt.stopped {
        return Ok(None);
    }
    let values = hunt.values.as_slice();
    let known = verify::count(values, hunt.space, &Known::default())?;
    let max_at = values.iter().position(|&v| v == known.max_value).unwrap_or(0) as u64;
    let mut chain = Chain::new();
    chain.update(values);
    let sparse = hunt.space != Space::NONE;
    let repeat = hunt.finding.repeat.as_ref();
    Ok(Some(Record {
        format: FORMAT.into(),
        program: crate::PROGRAM.into(),
        game: rule.name().into(),
        to,
        status: hunt.finding.status(),
        period: repeat.map(|repeat| repeat.period),
        preperiod: repeat.map(|repeat| repeat.preperiod),
        saltus: repeat.map_or(0, |repeat| repeat.saltus),
        max_value: known.max_value,
        max_at,
        mask: hunt.space.mask,
        position: hunt.space.position,
        rares: sparse.then_some(known.rares.len() as u64),
        last_rare: known.rares.last().filter(|_| sparse).map(|rare| rare.0),
        theorem: repeat.and_then(|repeat| repeat.proof.as_ref()).map(|proof| proof.theorem),
        checked_through: hunt.finding.count,
        digest: chain.digest().to_string(),
    }))
}

/// The record of Nim: G(n) = n, so G(n + 1) = G(n) + 1 for all n. It digests the values that fit 16 bits.
fn nim(to: u64) -> Record {
    let values: Vec<u16> = (0..=u16::MAX).zip(0..to).map(|(value, _)| value).collect();
    let max_value = values.last().copied().unwrap_or(0);
    let mut chain = Chain::new();
    chain.update(&values);
    Record {
        format: FORMAT.into(),
        program: crate::PROGRAM.into(),
        game: Rule::nim().name().into(),
        to,
        status: Status::Proved,
        period: Some(1),
        preperiod: Some(0),
        saltus: 1,
        max_value,
        max_at: max_value.into(),
        mask: 0,
        position: 0,
        rares: None,
        last_rare: None,
        theorem: None,
        checked_through: values.len() as u64,
        digest: chain.digest().to_string(),
    }
}

/// How a survey ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Records that were there already.
    pub found: usize,
    /// Records made this time.
    pub made: usize,
    /// Whether `stop` ended it.
    pub stopped: bool,
    /// Games that could not be examined, and why.
    pub failed: Vec<(String, String)>,
}

/// Makes the records of these games in `dir` that are not there, `threads` at a time; `progress` is told the number done.
///
/// # Errors
/// What reading and writing records give, and [`Error::Io`] when another survey writes there. Records written before an
/// error stay. A game that cannot be examined is no error of the survey.
pub fn survey(
    rules: &[Rule],
    dir: &Path,
    method: Method,
    to: u64,
    threads: usize,
    stop: &AtomicBool,
    progress: impl Fn(usize) + Sync,
) -> Result<Outcome> {
    let dir = Dir::at(dir);
    dir.make().map_err(Error::io("making", dir.path()))?;
    let lock = dir.open("lock", Mode::Make).map_err(Error::io("making", dir.join("lock")))?;
    if !lock.lock_soon().map_err(Error::io("locking", dir.join("lock")))? {
        let held =
            std::io::Error::new(std::io::ErrorKind::WouldBlock, "another survey writes here; wait for it or stop it");
        return Err(Error::io("locking", dir.join("lock"))(held));
    }
    let there = read(&[dir.path()])?;
    let is_done = |record: &Record| record.status == Status::Proved || record.to >= to;
    let missing: Vec<&Rule> =
        rules.iter().filter(|rule| !there.get(&order(rule.name())).is_some_and(is_done)).collect();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (failed, bad) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let work = || -> Result<()> {
        // A pool of one: what a game does in parallel stays here, and other games are not taken up in between.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        let pool = pool.map_err(|e| Error::io("starting threads for", dir.path())(std::io::Error::other(e)))?;
        while let Some(rule) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
            if stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed) {
                break;
            }
            let mut record = match pool.install(|| examine(rule, method, to, stop)) {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(error) => {
                    let mut bad = bad.lock().unwrap_or_else(PoisonError::into_inner);
                    bad.push((rule.name().to_owned(), error.to_string()));
                    continue;
                }
            };
            // One that looked further, when a period was near, stays.
            if let Some(before) = there.get(&order(rule.name())).filter(|before| !further(&record, before)) {
                record = Record { to, ..before.clone() };
            }
            let text = serde_json::to_string_pretty(&record).expect("numbers and text are JSON") + "\n";
            let name = file_name(rule);
            dir.write_whole(&name, text.as_bytes()).map_err(Error::io("writing", dir.join(&name)))?;
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        }
        Ok(())
    };
    let results: Vec<Result<()>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.clamp(1, missing.len().max(1)))
            .map(|_| {
                scope.spawn(|| {
                    let result = work();
                    failed.fetch_or(result.is_err(), Ordering::Relaxed);
                    result
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    results.into_iter().collect::<Result<()>>()?;
    let (made, failed) = (done.into_inner(), bad.into_inner().unwrap_or_else(PoisonError::into_inner));
    let stopped = made + failed.len() < missing.len();
    Ok(Outcome { found: rules.len() - missing.len(), made, stopped, failed })
}

/// The code; of a very long one its first digits and a hash.
fn file_name(rule: &Rule) -> String {
    const LONGEST: usize = 100;
    let name = rule.directory_name();
    match name.get(..LONGEST) {
        Some(start) if name.len() > LONGEST => format!("{start}-{}.json", blake3::hash(name.as_bytes()).to_hex()),
        _ => format!("{name}.json"),
    }
}

/// What sorts games as tables do: by what stands before the point, then digit by digit, names that are no codes last.
type Order = (bool, String);

fn order(game: &str) -> Order {
    (!game.starts_with(|c: char| c.is_ascii_digit()), game.to_owned())
}

/// The records of some directories, in the order of a table. Of two of one game the one counts that looked further.
///
/// # Errors
/// [`Error::Damage`] when a file is no record, or two records of a game contradict each other.
pub fn read(dirs: &[&Path]) -> Result<BTreeMap<Order, Record>> {
    let mut records: BTreeMap<Order, Record> = BTreeMap::new();
    for &path in dirs {
        let dir = Dir::at(path);
        let names = dir.names().map_err(Error::io("reading the names in", path))?;
        for name in names.iter().filter(|name| name.ends_with(".json")) {
            let bytes = dir.read(name).map_err(Error::io("reading", dir.join(name)))?;
            let damage = |what: String| Error::Damage { path: dir.join(name), offset: 0, what };
            let record: Record = serde_json::from_slice(&bytes).map_err(|e| {
                damage(format!(
                    "this is no record of a survey ({e}); if it was one, remove it, and it is made anew; else move it"
                ))
            })?;
            let rule: Option<Rule> = record.game.parse().ok();
            if record.format != FORMAT || rule.is_none_or(|rule| file_name(&rule) != *name) {
                return Err(damage("this is no record of the game that it is named after".into()));
            }
            let before = records.get(&order(&record.game));
            if let Some(before) = before {
                if contradict(before, &record) {
                    return Err(damage(format!("it contradicts another record of {}", record.game)));
                }
                if !further(&record, before) {
                    continue;
                }
            }
            records.insert(order(&record.game), record);
        }
    }
    Ok(records)
}

/// Whether the first of two records of a game says more: a proof, or more values looked at.
fn further(a: &Record, b: &Record) -> bool {
    let rank = |r: &Record| (r.status == Status::Proved, r.checked_through);
    rank(a) > rank(b)
}

/// Whether not both of two records of one game can be right.
fn contradict(a: &Record, b: &Record) -> bool {
    let result = |r: &Record| (r.period, r.preperiod, r.saltus);
    let both_proved = a.status == Status::Proved && b.status == Status::Proved;
    let same_values = a.checked_through == b.checked_through;
    let values = |r: &Record| (r.digest.clone(), r.max_value, r.max_at);
    (both_proved || (same_values && a.status == b.status)) && result(a) != result(b)
        || same_values && values(a) != values(b)
}

const COLUMNS: &str =
    "game,status,period,preperiod,max_value,max_at,rares,last_rare,mask,position,theorem,saltus,checked_through,digest";

/// The table as comma-separated values, with a header line.
#[must_use]
pub fn csv<'a>(records: impl Iterator<Item = &'a Record>) -> String {
    let mut text = format!("{COLUMNS}\n");
    for r in records {
        let row = [
            r.game.clone(),
            r.status.to_string(),
            known(r.period),
            known(r.preperiod),
            r.max_value.to_string(),
            r.max_at.to_string(),
            known(r.rares),
            known(r.last_rare),
            format!("{:#x}", r.mask),
            r.position.to_string(),
            known(r.theorem),
            r.saltus.to_string(),
            r.checked_through.to_string(),
            r.digest.clone(),
        ];
        text.push_str(&row.join(","));
        text.push('\n');
    }
    text
}

/// The table as Markdown.
#[must_use]
pub fn markdown<'a>(records: impl Iterator<Item = &'a Record>) -> String {
    let mut text = String::from(
        "| code | period | preperiod | largest value | at | rares | last rare | mask | by | checked through |\n\
         |---|--:|--:|--:|--:|--:|--:|---|---|--:|\n",
    );
    for r in records {
        let period = match (r.status, r.period, r.saltus) {
            (Status::Proved, Some(p), 0) => p.to_string(),
            (Status::Proved, Some(p), s) => format!("{p}, + {s}"),
            (Status::Observed, Some(p), 0) => format!("{p} (observed)"),
            (Status::Observed, Some(p), s) => format!("{p}, + {s} (observed)"),
            _ => "?".into(),
        };
        let preperiod = if r.period.is_some() { known(r.preperiod) } else { "?".into() };
        let mask = match (r.mask, r.position) {
            (0, _) => String::new(),
            (mask, 0) => format!("{mask:#x}"),
            (mask, _) => format!("{mask:#x}, n"),
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "| {} | {period} | {preperiod} | {} | {} | {} | {} | {mask} | {} | {} |",
            r.game,
            r.max_value,
            r.max_at,
            known(r.rares),
            known(r.last_rare),
            known(r.theorem),
            r.checked_through
        );
    }
    text
}

fn known<T: ToString>(number: Option<T>) -> String {
    number.map_or_else(String::new, |number| number.to_string())
}

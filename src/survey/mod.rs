//! Examines many games: finds the period of each, writes one record per game, and makes a table like the published
//! ones.
//!
//! Each game is computed on one thread until its period is proved ([`crate::period::compute_until_proved`]) or a
//! number of values is reached; several games are examined in parallel. A game with splits but without a sparse
//! space, whose values need all pairs of heaps, is computed to an eighth of that number. A game whose observed period
//! could be proved with up to four times the number is computed that far. The result is one file, `CODE.json`,
//! written whole or not at all, so a survey that was stopped continues with the games that have none. A survey can be
//! divided into shards, each in a directory of its own; [`Plan`] assigns the games to them, and [`collect`] merges
//! the records.
//!
//! The published tables: R. K. Guy and C. A. B. Smith, *The G-values of various games* (1956); E. R. Berlekamp, J. H.
//! Conway, R. K. Guy, *Winning Ways*, chapter 4, table 6; A. Flammenkamp's lists of octal games.
//!
//! # Contradictions
//!
//! Two records of one game describe prefixes of the same sequence G, with N1 <= N2 values. A record's period p and
//! preperiod n0 state: G(n+p) = G(n) + saltus for n0 <= n < N - p; n0 is 0 or the last exception + 1; and with saltus
//! 0 no proper divisor of p is a period on the same stretch. When the period is proved, the same holds with
//! N = infinity, and p is the least period; the saltus is then 0, except in Nim, where G(n) = n proves saltus 1 with
//! p = 1 and n0 = 0. [`contradiction`] refuses two records in these cases, and in no other:
//!
//! - **C1** N1 = N2, and the digests differ. *The values are the same.*
//! - **C2** The pairs (max_value, max_at) differ, unless the second record has the greater max_value and its
//!   max_at >= N1. *When the largest of N2 values occurs first below N1, it is the largest of the N1 values, and its
//!   first occurrence is the same; otherwise it is larger than all of the N1 values.*
//! - **C3** One is proved with saltus 0, the other has N >= n0 + p, and (max_value, max_at) differ. *Every value
//!   occurs first below n0 + p, and both records cover these values.*
//! - **C4** Under the same mask and position (rares, last_rare) differ, unless the second last_rare >= N1, and rares
//!   is greater in the second record, by at most N2 - N1. *Whether n is rare depends on G(n) and n alone; then as in
//!   C2.*
//! - **C5** Both are proved, and (p, n0) differ. *Both numbers are the least ones.*
//! - **C6** Saltus 0 in both, p1 != p2, and both periods hold on a common stretch of p1 + p2 - gcd(p1, p2) values or
//!   more. *By the theorem of Fine and Wilf (1965) g = gcd(p1, p2) is a period there. The stretch has at least p1
//!   values and g divides p1, so g is a period wherever p1 is, and is not a proper divisor of p1: g = p1. Likewise
//!   g = p2.*
//! - **C7** s1 p2 != s2 p1 for the saltuses s1, s2, and both periods hold on a common stretch of p1 + p2 values. *On
//!   the indices 0 to p1 + p2 - 1 of the stretch, i -> i + p1 (mod p1 + p2) is a permutation: a step up by p1 for
//!   i < p2, down by p2 for the others. Each of its cycles has p2/g steps up and p1/g down, so p2 s1 - p1 s2 = 0.*
//! - **C8** The same p and saltus, different preperiods, and p + n0 <= N1 for the n0 of the longer record. *Then the
//!   last exception of the longer record is an exception of the shorter record as well, and its last one.*
//! - **C9** One record found no repetition in N values, and the other's holds with saltus 0 on at least all of these,
//!   with 2 (n0 + p) <= N. *Then the last N/2 values occur once more at most N/2 earlier, and
//!   [`find`](crate::period::Subject::find) would have found this.*
//!
//! Invariant: a record states only what [`crate::period`] found, and states as proved only what it proved.

mod contradiction;
pub mod plan;

pub use contradiction::contradiction;
pub use plan::{Collection, Games, Missing, Plan};

use crate::error::{Error, Result};
use crate::period::{self, Status, Theorem};
use crate::solver::{Method, SequenceStats, SparseSpace};
use crate::storage::{Dir, File, Mode};
use crate::table::digest::{Digest, DigestChain};
use crate::theory::rule::Rule;
use crate::verify;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Value of the field `format` of a record.
const FORMAT: &str = "grundy-survey-1";

/// Name of the file that a process locks while it writes to a directory.
const LOCK: &str = "lock";

/// Maximum length of the file of a record, in bytes.
const MAX_RECORD_BYTES: u64 = 64 << 10;

/// Maximum number of records that [`read`] reads in one call.
const MAX_RECORDS: usize = 1 << 20;

/// Default number of values to which a survey examines each game.
pub const TO: u64 = 1 << 20;

/// The result for one game; numbers that do not exist are null in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// `grundy-survey-1`.
    pub format: String,
    /// Name and version of the program that wrote the record.
    pub program: String,
    /// Canonical name of the game.
    pub game: String,
    /// Number of values to which the survey was to examine the game.
    pub to: u64,
    /// How well the period is established.
    pub status: Status,
    /// The period.
    pub period: Option<u64>,
    /// The preperiod.
    pub preperiod: Option<u64>,
    /// Increase per period; not 0 for an arithmetic-periodic sequence.
    pub saltus: u16,
    /// The largest value.
    pub max_value: u16,
    /// The n at which `max_value` occurs first.
    pub max_at: u64,
    /// Mask of the sparse space; 0 for none.
    pub mask: u16,
    /// Position term of the sparse space, 0 or 1.
    pub position: u8,
    /// Number of rare positions, n = 0 included; null without a space.
    pub rares: Option<u64>,
    /// The last rare position; null without a space.
    pub last_rare: Option<u64>,
    /// The theorem of the proof.
    pub theorem: Option<Theorem>,
    /// Number of values examined.
    pub checked_through: u64,
    /// Digest of these values.
    pub digest: String,
}

impl Record {
    /// Parses a record from the bytes of the file `name`.
    ///
    /// # Errors
    /// A sentence that states what is wrong, when the bytes are not a record or the record contradicts itself.
    pub fn parse(name: &str, bytes: &[u8]) -> std::result::Result<Record, String> {
        let record: Record = serde_json::from_slice(bytes).map_err(|e| printable(&e.to_string()))?;
        let rule =
            record.game.parse::<Rule>().ok().filter(|rule| rule.name() == record.game && file_name(rule) == name);
        let Some(rule) = rule.filter(|_| record.format == FORMAT) else {
            return Err("it is not the record of the game that the file is named after".into());
        };
        record.check(&rule).map(|()| record)
    }

    /// Checks that the fields fit each other and the game.
    fn check(&self, rule: &Rule) -> std::result::Result<(), String> {
        let fail = |what: &str| Err(what.to_owned());
        if !is_program(&self.program) {
            return fail("the field 'program' is not a short line of printable ASCII");
        }
        if Digest::parse(&self.digest).is_none() {
            return fail("the digest is not 64 lower-case hexadecimal digits");
        }
        let count = self.checked_through;
        if self.to == 0 || self.max_at >= count || (self.max_value == 0) != (self.max_at == 0) {
            return fail("max_value and max_at do not fit checked_through");
        }
        let space = SparseSpace::new(rule, self.mask, self.position).is_some();
        let fits = match (self.rares, self.last_rare) {
            (Some(rares), Some(last)) => space && rares >= 1 && rares - 1 <= last && last < count,
            (None, None) => (self.mask, self.position) == (0, 0),
            _ => false,
        };
        if !fits {
            return fail("mask, position, rares and last_rare do not fit each other, the game or checked_through");
        }
        let Some((p, n0)) = self.period.zip(self.preperiod) else {
            let nothing = (self.period, self.preperiod, self.theorem) == (None, None, None) && self.saltus == 0;
            return if nothing && self.status == Status::None { Ok(()) } else { fail("status and period do not fit") };
        };
        let end = p.checked_add(n0).filter(|&end| p > 0 && end <= count);
        // With saltus 0 every value occurs first before the end of the first period.
        if end.is_none_or(|end| self.saltus == 0 && self.max_at >= end) {
            return fail("period and preperiod do not fit checked_through or max_at");
        }
        let based = match (self.status, self.theorem) {
            (Status::Observed, None) => true,
            (Status::Proved, None) => rule.is_nim() && (p, n0, self.saltus) == (1, 0, 1),
            (Status::Proved, Some(Theorem::P4)) => space && self.saltus == 0,
            (Status::Proved, Some(theorem)) => {
                let from = if theorem == Theorem::P2 { n0 } else { n0.max(1) };
                self.saltus == 0 && theorem.length(rule, from, p).is_some_and(|length| length <= count)
            }
            _ => false,
        };
        if based {
            Ok(())
        } else {
            fail("status, theorem, saltus and checked_through do not fit each other or the game")
        }
    }

    /// Whether the game was examined up to `to` values, or its period is proved.
    fn is_done(&self, to: u64) -> bool {
        self.status == Status::Proved || self.to >= to
    }
}

/// Whether a text is a valid value of the field `program`.
fn is_program(text: &str) -> bool {
    const LONGEST: usize = 256;
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(|c| c == b' ' || c.is_ascii_graphic())
}

/// Prepares a text from a file for a message: escapes control characters, and truncates it to 200 characters.
fn printable(text: &str) -> String {
    const LONGEST: usize = 200;
    let escaped = |c: char| if matches!(c, '\'' | '"' | '\\') { c.to_string() } else { c.escape_debug().to_string() };
    let short: String = text.chars().take(LONGEST).map(escaped).collect();
    short + if text.chars().nth(LONGEST).is_some() { "…" } else { "" }
}

/// Returns all octal codes with up to `digits` digits after the point, first those with 0 before it, then those with
/// 4, in
/// order.
#[must_use]
pub fn codes(digits: u32) -> Vec<Rule> {
    let width = usize::try_from(digits).unwrap_or(usize::MAX);
    let all = ['0', '4'].into_iter().flat_map(|whole| (0..8u64.pow(digits)).map(move |code| (whole, code)));
    all.map(|(whole, code)| format!("{whole}.{code:0width$o}").parse().expect("an octal code")).collect()
}

/// Examines one game: computes up to `to` values, or further as the module head states, and searches for the period.
/// Returns `None` when `stop` ended the search.
///
/// # Errors
/// Errors of [`period::compute_until_proved`], such as [`Error::ValueTooLarge`].
pub fn examine(rule: &Rule, method: Method, to: u64, stop: &AtomicBool) -> Result<Option<Record>> {
    if rule.is_nim() {
        return Ok(Some(nim(to)));
    }
    let limit = |found: Option<&period::Finding>, space: SparseSpace| {
        let usual = match (found, space) {
            (Some(found), SparseSpace::NONE) if rule.splits().next().is_some() => to.min(found.count.max(to / 8)),
            _ => to,
        };
        let near = found.and_then(|found| found.needed(rule)).filter(|&needed| needed <= to.saturating_mul(4));
        usual.max(near.unwrap_or(0))
    };
    let search = period::compute_until_proved(rule, method, limit, |_| !stop.load(Ordering::Relaxed))?;
    if search.stopped {
        return Ok(None);
    }
    let values = search.values.as_slice();
    let known = verify::count(values, search.space, &SequenceStats::default())?;
    let max_at = values.iter().position(|&v| v == known.max_value).unwrap_or(0) as u64;
    let mut chain = DigestChain::new();
    chain.update(values);
    let sparse = search.space != SparseSpace::NONE;
    let repeat = search.finding.repeat.as_ref();
    Ok(Some(Record {
        format: FORMAT.into(),
        program: crate::PROGRAM.into(),
        game: rule.name().into(),
        to,
        status: search.finding.status(),
        period: repeat.map(|repeat| repeat.period),
        preperiod: repeat.map(|repeat| repeat.preperiod),
        saltus: repeat.map_or(0, |repeat| repeat.saltus),
        max_value: known.max_value,
        max_at,
        mask: search.space.mask,
        position: search.space.position,
        rares: sparse.then_some(known.rares.len() as u64),
        last_rare: known.rares.last().filter(|_| sparse).map(|rare| rare.0),
        theorem: repeat.and_then(|repeat| repeat.proof.as_ref()).map(|proof| proof.theorem),
        checked_through: search.finding.count,
        digest: chain.digest().to_string(),
    }))
}

/// Returns the record of Nim: G(n) = n, so G(n + 1) = G(n) + 1 for all n. Its digest covers the values that fit in 16
/// bits.
fn nim(to: u64) -> Record {
    let values: Vec<u16> = (0..=u16::MAX).zip(0..to).map(|(value, _)| value).collect();
    let max_value = values.last().copied().unwrap_or(0);
    let mut chain = DigestChain::new();
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

/// The result of a survey.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Number of records that existed before.
    pub found: usize,
    /// Number of records written by this call.
    pub made: usize,
    /// Whether `stop` ended the survey.
    pub stopped: bool,
    /// Names of the games that could not be examined, each with the reason.
    pub failed: Vec<(String, String)>,
}

/// The method and the number of threads of a survey.
#[derive(Clone, Copy, Debug)]
pub struct Means {
    /// The method that computes values.
    pub method: Method,
    /// Number of games examined in parallel.
    pub threads: usize,
}

/// Writes the plan to `dir`, then the records that are missing there of the games of the plan's shard. `progress`
/// receives the number of records written.
///
/// # Errors
/// Errors of reading and writing records; [`Error::Survey`] when the directory has other files or the plan of another
/// survey, [`Error::Locked`] when another process writes there. Records written before an error remain. A game that
/// cannot be examined is not an error; it is listed in [`Outcome::failed`].
pub fn survey(
    plan: Plan,
    dir: &Path,
    means: Means,
    stop: &AtomicBool,
    progress: impl Fn(usize) + Sync,
) -> Result<Outcome> {
    let Means { method, threads } = means;
    let (dir, _lock, plan) = open(plan, dir)?;
    let to = plan.to;
    let there = read(&[dir.path()])?;
    let rules = plan.mine();
    let is_there = |rule: &Rule| there.get(&order(rule.name())).is_some_and(|record| record.is_done(to));
    let missing: Vec<&Rule> = rules.iter().filter(|rule| !is_there(rule)).collect();
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let bad = Mutex::new(Vec::new());
    let work = || -> Result<()> {
        // A pool of one thread per worker, so that no worker starts another game while it waits for parallel work of
        // its own.
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
            // A record with more values, or with a proof, stays; it may have gone beyond `to` because a period was
            // near.
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

/// Creates or opens the directory of a survey, locks it, and writes the plan that is valid from now on.
fn open(plan: Plan, dir: &Path) -> Result<(Dir, File, Plan)> {
    let dir = Dir::at(dir);
    refuse_foreign(&dir)?;
    dir.make().map_err(Error::io("making", dir.path()))?;
    let lock = dir.open(LOCK, Mode::Make).map_err(Error::io("making", dir.join(LOCK)))?;
    if !lock.lock_soon().map_err(Error::io("locking", dir.join(LOCK)))? {
        return Err(Error::Locked { path: dir.path().into() });
    }
    let before = Plan::read(&dir)?;
    let plan = plan.continues(before.as_ref(), &dir)?;
    if before.as_ref() != Some(&plan) {
        plan.write(&dir)?;
    }
    Ok((dir, lock, plan))
}

/// Refuses a directory that has files but neither a plan nor a lock file nor a record of a survey.
fn refuse_foreign(dir: &Dir) -> Result<()> {
    let reading = || Error::io("reading the names in", dir.path());
    let entries = match std::fs::read_dir(dir.path()) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(reading())?,
    };
    let is_record =
        |name: &str| dir.read_at_most(name, MAX_RECORD_BYTES).is_ok_and(|b| Record::parse(name, &b).is_ok());
    let mut foreign = None;
    for entry in entries {
        let name = entry.map_err(reading())?.file_name();
        let name = name.to_string_lossy();
        // A survey's lock file is empty.
        let lock = name == LOCK && matches!(dir.length(LOCK), Ok(Some(0)));
        if lock || name == plan::NAME || (name.ends_with(".json") && is_record(&name)) {
            return Ok(());
        }
        let first = foreign.get_or_insert_with(|| name.to_string());
        if *name < **first {
            *first = name.into_owned();
        }
    }
    let Some(name) = foreign else { return Ok(()) };
    let what = format!("the directory has other files ('{}'); choose an empty or a new one", printable(&name));
    Err(Error::Survey { path: dir.path().into(), what })
}

/// Returns the file name of a game's record: the code, or for a very long code its first digits and a hash.
fn file_name(rule: &Rule) -> String {
    const LONGEST: usize = 100;
    let name = rule.directory_name();
    match name.get(..LONGEST) {
        Some(start) if name.len() > LONGEST => format!("{start}-{}.json", blake3::hash(name.as_bytes()).to_hex()),
        _ => format!("{name}.json"),
    }
}

/// Sort key of a game in a table: by the digit before the point, then digit by digit; names that are not codes come
/// last.
pub type Order = (bool, String);

fn order(game: &str) -> Order {
    (!game.starts_with(|c: char| c.is_ascii_digit()), game.to_owned())
}

/// Reads the records of the given directories, in the order of a table. Of two records of a game it returns the one
/// with a proof, or else the one with more values.
///
/// # Errors
/// [`Error::Damage`] when a file is not a record, or two records of a game contradict each other; [`Error::Survey`]
/// when there are more than 2^20.
pub fn read(dirs: &[&Path]) -> Result<BTreeMap<Order, Record>> {
    // All records of a game, each with its directory: any two of them must agree.
    let mut all: BTreeMap<Order, Vec<(&Path, Record)>> = BTreeMap::new();
    let mut count = 0;
    for &path in dirs {
        let dir = Dir::at(path);
        let mut names = dir.names().map_err(Error::io("reading the names in", path))?;
        names.retain(|name| name.ends_with(".json"));
        names.sort_unstable();
        count += names.len();
        if count > MAX_RECORDS {
            let what = format!("more than {MAX_RECORDS} records; read fewer directories together");
            return Err(Error::Survey { path: path.into(), what });
        }
        for name in &names {
            let shown = dir.join(&printable(name));
            let bytes = dir.read_at_most(name, MAX_RECORD_BYTES).map_err(Error::io("reading", &shown))?;
            let damage = |what: String| Error::Damage { path: shown.clone(), offset: 0, what };
            let record = Record::parse(name, &bytes).map_err(|what| {
                damage(format!(
                    "this is not a record of a survey: {what}; if it was one, remove it and repeat the survey's command, \
                     else move it to another directory"
                ))
            })?;
            let others = all.entry(order(&record.game)).or_default();
            for (other, before) in others.iter() {
                if let Some(why) = contradiction(before, &record) {
                    let other = other.join(name);
                    return Err(damage(format!(
                        "it contradicts {}: {why}; examine the game again in a new directory, and remove the wrong record",
                        other.display()
                    )));
                }
            }
            others.push((path, record));
        }
    }
    Ok(all.into_iter().filter_map(|(game, records)| Some((game, furthest(records)?))).collect())
}

/// Returns the record that [`further`] ranks first, with the greatest `to` of all records.
fn furthest(records: Vec<(&Path, Record)>) -> Option<Record> {
    let to = records.iter().map(|(_, record)| record.to).max()?;
    let records = records.into_iter().map(|(_, record)| record);
    let best = records.reduce(|best, record| if further(&record, &best) { record } else { best })?;
    Some(Record { to, ..best })
}

/// Whether the first of two records of a game ranks before the second: by a proof, then by the number of values.
fn further(a: &Record, b: &Record) -> bool {
    let rank = |r: &Record| (r.status == Status::Proved, r.checked_through);
    rank(a) > rank(b)
}

/// Reads the records and plans of the given directories.
///
/// # Errors
/// As [`read`]; [`Error::Survey`] for a directory with neither a plan nor records.
pub fn collect(dirs: &[&Path]) -> Result<Collection> {
    let mut collection = Collection { records: read(dirs)?, ..Collection::default() };
    for &path in dirs {
        let dir = Dir::at(path);
        match Plan::read(&dir)? {
            Some(plan) => collection.plans.push((path.into(), plan)),
            None if dir.names().is_ok_and(|names| names.iter().any(|name| name.ends_with(".json"))) => {
                collection.unplanned.push(path.into());
            }
            None => {
                let what = "no survey here: neither a plan (survey.plan) nor records; name a directory that 'grundy \
                            survey' wrote";
                return Err(Error::Survey { path: path.into(), what: what.into() });
            }
        }
    }
    Ok(collection)
}

const COLUMNS: &str =
    "game,status,period,preperiod,max_value,max_at,rares,last_rare,mask,position,theorem,saltus,checked_through,digest";

/// Returns the table as comma-separated values, with a header line.
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

/// Returns the table as Markdown.
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
        // Writing to a string never fails.
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

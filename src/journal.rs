//! The journal: commit records, the truth about how far the other files of a run hold.
//!
//! `journal.jsonl` is append only. Every line has exactly 4096 bytes: a JSON object, spaces, a newline. Every record
//! carries the BLAKE3 of its own 4096 bytes, taken with the 64 digits of that field (`blake3`, always the last key) as
//! spaces, and that of the record before, so that no line can be lost, changed or exchanged unnoticed.
//!
//! A record that breaks off or does not hash at the end of the file is a torn tail: what a killed process was writing; a
//! run drops it. The same anywhere else is damage. A record of kind `rollback` takes the run back to a smaller count;
//! records before it with larger counts no longer speak of the table.
//!
//! A run that keeps less than everything says in `kept` which values are there; `keep` and `snapshot` are in its records
//! only. Others are holes in the table, which read as zeros, so nobody may read them ([`Record::freed`]).
//!
//! The writer holds the lock on this file, and this is the file whose identity is compared with the path.

use crate::digest::{Digest, SEGMENT, SMALL};
use crate::error::{Error, Result};
use crate::fault;
use crate::rule::{Leaves, Rule};
use crate::storage::{Dir, File, Mode};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The version of the files of a run directory.
pub const FORMAT: u32 = if SMALL { u32::MAX } else { 1 };

/// Bytes of one record.
pub const RECORD: usize = 4096;

const RECORD_BYTES: u64 = RECORD as u64;

/// The name of the journal in a run directory.
pub const NAME: &str = "journal.jsonl";

/// Why a record was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    /// A process is about to write more values: a run was made, was reopened after a clean stop, or starts again from
    /// what is committed because a check failed.
    Open,
    /// Values were added.
    Commit,
    /// The run was taken back to an earlier count.
    Rollback,
    /// Values that were altered on the disk were computed anew, found to be those of the journal, and put back.
    Repair,
    /// The run was stopped cleanly: the headers are those of the commit before, and so are the lengths of the files, unless
    /// the run went back and has not passed its farthest place again ([`Contents::farthest`]).
    Close,
}

/// The width of one value in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Width {
    /// The low byte; larger values are in `escapes.npy` as well.
    U8,
    /// Two bytes, little-endian.
    U16,
}

impl Width {
    /// Bytes a value.
    #[must_use]
    pub fn bytes(self) -> u64 {
        match self {
            Width::U8 => 1,
            Width::U16 => 2,
        }
    }

    /// `u8` or `u16`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Width::U8 => "u8",
            Width::U16 => "u16",
        }
    }
}

/// One commit record. Field order is key order; `blake3` stays last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// [`FORMAT`].
    pub format: u32,
    /// A random identity of the run, 32 hexadecimal digits.
    pub run: String,
    /// The canonical name of the game.
    pub game: String,
    /// BLAKE3 of the rule's moves ([`rule_digest`]), hexadecimal.
    pub rule: String,
    /// 0, 1, 2, …
    pub sequence: u64,
    /// Why this record was written.
    pub event: Event,
    /// Committed values: G(0), …, G(count - 1).
    pub count: u64,
    /// Committed entries of `escapes.npy`.
    pub escapes: u64,
    /// Width of the table.
    pub width: Width,
    /// Mask m of the sparse space, 0 for none.
    pub mask: u16,
    /// Position term e of the sparse space.
    pub position: u8,
    /// The ranges of n whose values are kept, half open, ascending: one, or the head and the last values.
    pub kept: Vec<(u64, u64)>,
    /// How many of the last values are kept at least; absent when all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<u64>,
    /// What is known of the values that are not kept; absent when all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Attached>,
    /// Digest of the values 0..count ([`crate::digest`]).
    pub digest: String,
    /// Rare positions, n = 0 included.
    pub rares: u64,
    /// The last rare position.
    pub last_rare: u64,
    /// The largest value.
    pub max_value: u16,
    /// Where it appears first.
    pub max_at: u64,
    /// What was checked, and how often, since the run was made; and [`Record::doubt`].
    pub checks: BTreeMap<String, u64>,
    /// How many checks failed since the run was made.
    pub errors: u64,
    /// The kernel in use.
    pub kernel: String,
    /// Program and version that wrote the record.
    pub program: String,
    /// `blake3` of the record before; zeros for the first.
    pub previous: String,
    /// BLAKE3 of this record.
    pub blake3: String,
}

/// Another file of the run that a record vouches for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// Its name in the run directory.
    pub name: String,
    /// BLAKE3 of its bytes, hexadecimal.
    pub blake3: String,
}

impl Record {
    /// The digest of the committed values.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        Digest::parse(&self.digest)
    }

    /// The heap of which a check has found another value, until it is computed again.
    #[must_use]
    pub fn doubt(&self) -> Option<u64> {
        self.checks.get(DOUBT).copied()
    }

    /// The values that are freed, whole segments between the head and the last values; an empty range for none, `None`
    /// when the kept ranges make no sense.
    #[must_use]
    pub fn freed(&self) -> Option<Range<u64>> {
        match self.kept[..] {
            [(0, end)] if end == self.count && self.snapshot.is_none() => Some(0..0),
            [(0, from), (to, end)] if end == self.count && self.snapshot.is_some() => {
                let whole = from.is_multiple_of(SEGMENT) && to.is_multiple_of(SEGMENT);
                (whole && from > 0 && from < to && to < end).then_some(from..to)
            }
            _ => None,
        }
    }
}

/// The ranges that are kept of `count` values when these are freed.
#[must_use]
pub fn kept(count: u64, freed: &Range<u64>) -> Vec<(u64, u64)> {
    if freed.is_empty() { vec![(0, count)] } else { vec![(0, freed.start), (freed.end, count)] }
}

/// BLAKE3 of the moves of a rule, one `s c k d` a line in the rule's order: two games with the same moves are one rule.
#[must_use]
pub fn rule_digest(rule: &Rule) -> String {
    let mut hasher = blake3::Hasher::new();
    for m in rule.moves() {
        let (k, d) = match m.leaves {
            Leaves::Nothing => (0, 0),
            Leaves::One => (1, 0),
            Leaves::Two { min_difference } => (2, min_difference),
        };
        hasher.update(format!("{} {} {k} {d}\n", m.remove, m.constant).as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

/// What the checks of a record call the heap of which a check has found another value, until it is computed again.
pub const DOUBT: &str = "doubt";

const BLANK: &str = "                                                                ";
const ZEROS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// What a journal says of one commit that still speaks of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Values committed.
    pub count: u64,
    /// Escapes committed.
    pub escapes: u64,
    /// Digest of the values.
    pub digest: Digest,
}

/// The good records of a journal.
#[derive(Clone, Debug)]
pub struct Contents {
    /// The last good record.
    pub last: Record,
    /// The commits that the table still shows, ascending in count.
    pub points: Vec<Point>,
    /// Values and escapes that the record before the last one speaks of; a header may still say these after a kill.
    pub before: (u64, u64),
    /// The most values and the most escapes of any record: who reads may have mapped so many, whatever the run went back to.
    pub farthest: (u64, u64),
    /// Good records.
    pub records: u64,
    /// Where a torn tail starts, in bytes, when there is one.
    pub torn: Option<u64>,
}

impl Contents {
    /// Damage to report when a torn tail is not to be accepted.
    ///
    /// # Errors
    /// [`Error::Damage`] when there is a torn tail.
    pub fn whole(&self, dir: &Path) -> Result<()> {
        match self.torn {
            None => Ok(()),
            Some(offset) => Err(Error::Damage {
                path: dir.join(NAME),
                offset,
                what: "the last record is broken or breaks off; 'grundy run --dir' of this directory drops it".into(),
            }),
        }
    }
}

/// Bytes of the journal of a run directory.
fn length_in(dir: &Dir) -> Result<u64> {
    let missing = || ErrorKind::NotFound.into();
    let length = dir.length(NAME).and_then(|length| length.ok_or_else(missing));
    length.map_err(Error::io("reading the state of", dir.join(NAME)))
}

/// Whether a journal that held so many good records, perhaps with a torn tail behind them, holds others by now.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn is_another_in(dir: &Dir, records: u64) -> Result<bool> {
    let (length, end) = (length_in(dir)?, records.saturating_mul(RECORD_BYTES));
    if length < end + RECORD_BYTES {
        return Ok(length < end);
    }
    // The length alone tells nothing: as many records may have been written as were torn.
    let (path, mut line) = (dir.join(NAME), vec![0; RECORD]);
    let file = dir.open(NAME, Mode::Read).map_err(Error::io("opening", &path))?;
    match file.read_exact_at(&mut line, end) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(true),
        read => read.map(|()| own_hash(&line).is_some()).map_err(Error::io("reading", &path)),
    }
}

/// Reads the journal of a run directory; no lock is needed.
///
/// # Errors
/// [`Error::NoRun`] without a good record, [`Error::Damage`] for a broken record before good ones,
/// [`Error::Mismatch`] for another format.
pub fn read(dir: &Path) -> Result<Contents> {
    read_in(&Dir::at(dir))
}

/// [`read`] on any storage.
///
/// # Errors
/// As [`read`].
pub fn read_in(dir: &Dir) -> Result<Contents> {
    let path = dir.join(NAME);
    let no_run = |why: String| Error::NoRun { path: dir.path().into(), why };
    let file = dir.open(NAME, Mode::Read).map_err(|source| match source.kind() {
        ErrorKind::NotFound if !dir.exists().unwrap_or(true) => no_run("no such directory".into()),
        ErrorKind::NotFound => no_run(format!("no {NAME}")),
        _ => Error::io("opening", &path)(source),
    })?;
    let length = file.length().map_err(Error::io("reading the state of", &path))?;
    parse(dir.path(), &file)?.ok_or_else(|| match length {
        0..RECORD_BYTES => no_run(format!("{NAME} holds no whole record")),
        _ => Error::Damage { path, offset: 0, what: "no record is good".into() },
    })
}

fn parse(dir: &Path, file: &File) -> Result<Option<Contents>> {
    let path = dir.join(NAME);
    let length = file.length().map_err(Error::io("reading the state of", &path))?;
    // The length only saves memory where there is little to read.
    let capacity = usize::try_from(length).unwrap_or(usize::MAX).clamp(RECORD, 1 << 20);
    let mut reader = std::io::BufReader::with_capacity(capacity, file.reader());
    let mut contents: Option<Contents> = None;
    let mut broken: Option<(u64, String)> = None;
    let mut offset = 0;
    loop {
        let mut line = Vec::with_capacity(RECORD);
        reader.by_ref().take(RECORD as u64).read_to_end(&mut line).map_err(Error::io("reading", &path))?;
        if line.is_empty() {
            break;
        }
        match (check_line(dir, &line, contents.as_ref().map(|c| &c.last)), &broken) {
            (Ok(_), Some((at, what))) => {
                let what = format!("{what}, and good records follow; the journal was altered");
                return Err(Error::Damage { path, offset: *at, what });
            }
            (Ok(record), None) => accept(&mut contents, record, offset, &path)?,
            (Err(Broken::Refused(error)), _) => return Err(error),
            // What breaks off does not hash: a record that hashes but does not belong here was put here.
            (Err(Broken::Record(what)), None) if own_hash(&line).is_some() => {
                return Err(Error::Damage { path, offset, what: format!("{what}; the journal was altered") });
            }
            (Err(Broken::Record(what)), None) => broken = Some((offset, what)),
            // A record after a broken one links to the broken one, so it is judged by its own hash only.
            (Err(Broken::Record(_)), Some((at, what))) => {
                if own_hash(&line).is_some() {
                    let what = format!("{what}, and good records follow; the journal was altered");
                    return Err(Error::Damage { path, offset: *at, what });
                }
            }
        }
        offset += line.len() as u64;
    }
    if let (Some(contents), Some((at, _))) = (&mut contents, broken) {
        contents.torn = Some(at);
    }
    Ok(contents)
}

fn accept(contents: &mut Option<Contents>, record: Record, offset: u64, path: &Path) -> Result<()> {
    let digest = record.digest();
    let damaged = |what: &str| Error::Damage { path: path.into(), offset, what: what.into() };
    let digest = digest.ok_or_else(|| damaged("the digest of the values is no digest"))?;
    if record.freed().is_none() {
        return Err(damaged("the kept ranges make no sense"));
    }
    let point = Point { count: record.count, escapes: record.escapes, digest };
    match contents {
        None => {
            let (points, farthest) = (vec![point], (record.count, record.escapes));
            *contents = Some(Contents { points, before: (0, 0), farthest, last: record, records: 1, torn: None })
        }
        Some(contents) => {
            let last = contents.last.count;
            match record.event {
                Event::Commit if record.count < last => {
                    return Err(damaged("a commit with a smaller count than before"));
                }
                Event::Rollback if record.count > last => return Err(damaged("a rollback to a larger count")),
                Event::Open if record.count != last => return Err(damaged("reopened at another count than before")),
                Event::Close if record.count != last => {
                    return Err(damaged("a clean stop at another count than before"));
                }
                Event::Repair if record.count != last => return Err(damaged("a repair at another count than before")),
                _ => {}
            }
            while contents.points.last().is_some_and(|p| p.count >= record.count) {
                contents.points.pop();
            }
            contents.points.push(point);
            contents.before = (contents.last.count, contents.last.escapes);
            contents.farthest = most(contents.farthest, &record);
            contents.last = record;
            contents.records += 1;
        }
    }
    Ok(())
}

/// [`Contents::farthest`] after one record more.
fn most(farthest: (u64, u64), record: &Record) -> (u64, u64) {
    (farthest.0.max(record.count), farthest.1.max(record.escapes))
}

enum Broken {
    /// This line is no good record.
    Record(String),
    /// The whole journal is not for this program.
    Refused(Error),
}

/// The hash of a line, when it is the one that stands in it.
fn own_hash(line: &[u8]) -> Option<String> {
    if line.len() != RECORD || line[RECORD - 1] != b'\n' {
        return None;
    }
    let end = line.iter().rposition(|&c| c == b'}')?;
    let start = end.checked_sub(1 + BLANK.len())?;
    let written = std::str::from_utf8(&line[start..end - 1]).ok()?;
    let mut blanked = line.to_vec();
    blanked[start..end - 1].copy_from_slice(BLANK.as_bytes());
    (blake3::hash(hashed(&blanked)).to_hex().as_str() == written).then(|| written.to_owned())
}

/// What the hash of a line with blanks in its place is taken of: all of it.
fn hashed(line: &[u8]) -> &[u8] {
    if fault::is("hash-digest-only") {
        // Deliberate fault, see fault.rs.
        let digest = line.windows(10).position(|key| key == b"\"digest\":\"");
        return digest.and_then(|at| line.get(at..at + 10 + BLANK.len())).unwrap_or(line);
    }
    line
}

fn check_line(dir: &Path, line: &[u8], before: Option<&Record>) -> std::result::Result<Record, Broken> {
    let broken = |what: &str| Broken::Record(what.to_owned());
    let Some(hash) = own_hash(line) else {
        let foreign = serde_json::from_slice::<serde_json::Value>(line).ok();
        let format = foreign.and_then(|v| v.get("format").and_then(serde_json::Value::as_u64));
        return Err(match format {
            Some(format) if before.is_none() && format != u64::from(FORMAT) => refuse_format(dir, format),
            _ => broken("the record's own hash does not hold"),
        });
    };
    let value: serde_json::Value = serde_json::from_slice(line).map_err(|_| broken("the record is no JSON object"))?;
    let format = value.get("format").and_then(serde_json::Value::as_u64);
    match format {
        Some(format) if format == u64::from(FORMAT) => {}
        Some(format) => return Err(refuse_format(dir, format)),
        None => return Err(broken("the record says no format")),
    }
    // What the error says of the record may quote it.
    let record: Record = serde_json::from_value(value)
        .map_err(|e| Broken::Record(format!("the record is no record: {}", e.to_string().escape_debug())))?;
    let (previous, sequence) = before.map_or((ZEROS, 0), |b| (b.blake3.as_str(), b.sequence + 1));
    let foreign = fault::is("accept-foreign-record"); // deliberate fault, see fault.rs
    if (record.previous != previous && !foreign) || record.sequence != sequence {
        return Err(broken("the record does not follow the one before it"));
    }
    if !foreign && before.is_some_and(|b| b.run != record.run || b.rule != record.rule || b.width != record.width) {
        return Err(broken("the record is of another run"));
    }
    if record.blake3 != hash {
        return Err(broken("the record's own hash is not its last field"));
    }
    Ok(record)
}

fn refuse_format(dir: &Path, found: u64) -> Broken {
    Broken::Refused(Error::Mismatch {
        path: dir.into(),
        what: "the format version",
        found: found.to_string(),
        expected: FORMAT.to_string(),
    })
}

/// The journal of a run that this process writes; holds the lock.
#[derive(Debug)]
pub struct Journal {
    dir: Dir,
    path: PathBuf,
    file: File,
    end: u64,
    last: Option<Record>,
    farthest: (u64, u64),
}

impl Journal {
    /// Opens or makes the journal of `dir` and locks it.
    ///
    /// # Errors
    /// [`Error::Locked`] when another process has it, and what [`read`] gives.
    pub fn open(dir: &Path) -> Result<(Journal, Option<Contents>)> {
        Journal::open_in(&Dir::at(dir))
    }

    /// [`Journal::open`] on any storage.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn open_in(dir: &Dir) -> Result<(Journal, Option<Contents>)> {
        let path = dir.join(NAME);
        let locked = || Error::Locked { path: dir.path().into() };
        let file = dir.open(NAME, Mode::Make).map_err(Error::io("opening for writing", &path))?;
        if !file.lock_soon().map_err(Error::io("locking", &path))? {
            return Err(locked());
        }
        if !file.is_named(NAME).map_err(Error::io("reading the state of", &path))? {
            return Err(locked());
        }
        let contents = parse(dir.path(), &file)?;
        let records = contents.as_ref().map_or(0, |c| c.records);
        if let Some(before) = records.checked_sub(1) {
            // When the sync of the last record failed, the kernel shows it but will not write it: only what is written
            // again is. Those before it were synced well, or it would not be there.
            let mut line = vec![0; RECORD];
            let at = before * RECORD_BYTES;
            file.read_exact_at(&mut line, at).map_err(Error::io("reading", &path))?;
            file.write_all_at(&line, at).map_err(Error::io("writing", &path))?;
        }
        // What a killed process left in the page cache becomes durable before anything is built on it.
        file.sync_all().map_err(Error::io("syncing", &path))?;
        if contents.is_none() {
            // A new one: no table may ever be found without its journal.
            dir.sync().map_err(Error::io("syncing", dir.path()))?;
        }
        let last = contents.as_ref().map(|c| c.last.clone());
        let farthest = contents.as_ref().map_or((0, 0), |c| c.farthest);
        Ok((Journal { dir: dir.clone(), path, file, end: records * RECORD as u64, last, farthest }, contents))
    }

    /// Whether the file is longer than its good records.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn has_torn_tail(&self) -> Result<bool> {
        let length = self.file.length().map_err(Error::io("reading the state of", &self.path))?;
        Ok(length > self.end)
    }

    /// Cuts a torn tail off.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn drop_torn_tail(&mut self) -> Result<()> {
        self.file.set_length(self.end).map_err(Error::io("truncating", &self.path))?;
        self.file.sync_all().map_err(Error::io("syncing", &self.path))
    }

    /// Removes a journal without a record, unless another file has been put in its place.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn discard(self) -> Result<()> {
        let named = self.file.is_named(NAME).map_err(Error::io("reading the state of", &self.path))?;
        if self.last.is_none() && named {
            self.dir.remove(NAME).map_err(Error::io("removing", &self.path))?;
        }
        Ok(())
    }

    /// Appends a record and makes it durable; sequence, link and hash are filled in here.
    ///
    /// # Errors
    /// [`Error::Io`]; the run must stop then, since what is on the disk is no longer known.
    pub fn append(&mut self, mut record: Record) -> Result<()> {
        record.sequence = self.last.as_ref().map_or(0, |last| last.sequence + 1);
        record.previous = self.last.as_ref().map_or_else(|| ZEROS.to_owned(), |last| last.blake3.clone());
        record.blake3 = BLANK.to_owned();
        let mut line = serde_json::to_vec(&record).map_err(|e| Error::Io {
            action: "writing a record of".into(),
            path: self.path.clone(),
            source: e.into(),
        })?;
        if line.len() >= RECORD {
            // The program's own do: only a record that another has made leaves too little room for what follows it.
            let what = format!("{} bytes are to follow, which do not fit a record", line.len());
            return Err(Error::Damage { path: self.path.clone(), offset: self.end, what });
        }
        let hash_at = line.len() - 2 - BLANK.len();
        line.resize(RECORD - 1, b' ');
        line.push(b'\n');
        let hash = blake3::hash(hashed(&line)).to_hex();
        line[hash_at..hash_at + BLANK.len()].copy_from_slice(hash.as_bytes());
        if !self.file.is_named(NAME).map_err(Error::io("reading the state of", &self.path))? {
            let what = "another file was put in its place while this run held it; nothing more is written";
            return Err(Error::io("writing", &self.path)(std::io::Error::other(what)));
        }
        self.file.write_all_at(&line, self.end).map_err(|source| match source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                self.dir.no_room(&self.path, RECORD_BYTES)
            }
            _ => Error::io(format!("writing {RECORD} bytes at offset {} of", self.end), &self.path)(source),
        })?;
        self.file.sync_data().map_err(Error::io("syncing", &self.path))?;
        self.end += RECORD as u64;
        record.blake3 = hash.to_string();
        self.farthest = most(self.farthest, &record);
        self.last = Some(record);
        Ok(())
    }

    /// The last good record.
    #[must_use]
    pub fn last(&self) -> Option<&Record> {
        self.last.as_ref()
    }

    /// The most values and the most escapes of any record ([`Contents::farthest`]).
    #[must_use]
    pub fn farthest(&self) -> (u64, u64) {
        self.farthest
    }
}

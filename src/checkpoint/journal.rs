//! The journal: the commit records, which alone define how much of the other files of a run is valid.
//!
//! `journal.jsonl` is append only. Every line has exactly 4096 bytes: a JSON object, spaces and a newline. Every record
//! contains two hashes: the BLAKE3 of its own 4096 bytes, computed with spaces in the place of the 64 digits of that
//! field (`blake3`, always the last key), and the BLAKE3 of the previous record. A reader therefore detects every line
//! that is lost, changed or exchanged.
//!
//! A torn tail is an incomplete record, or a record with a wrong hash, at the end of the file: a process was killed
//! while it wrote the record. The next run drops the tail. A torn tail has at most one whole record that is not all
//! zeros, and at most [`MAX_TORN_TAIL`] bytes. Anything else after a good record is damage: a broken record before a
//! good one, a good record that does not follow the one before it, two broken records, or a longer tail. A run stops at
//! damage, unless it may roll back ([`Journal::open_to_roll_back`]): then it moves everything from the damage on to a
//! separate file and returns to the last record before the damage.
//!
//! A record of kind `rollback` returns the run to a smaller count. Earlier records with larger counts no longer
//! describe the table.
//!
//! A run that discards values lists in `kept` the ranges that it retains; only its records have the fields `keep` and
//! `snapshot`. The discarded values are, or become, holes in the table, which read as zeros, so they must not be read
//! ([`Record::freed`]).
//!
//! The writer locks the journal, and before each record it checks that the path still leads to the locked file.

use crate::error::{Error, Result};
use crate::fault;
use crate::storage::{Dir, File, Mode};
use crate::table::digest::{Digest, SEGMENT, SMALL};
use crate::table::{Width, length_of, unused_name};
use crate::theory::nimber::index;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The version of the files of a run directory.
pub const FORMAT: u32 = if SMALL { u32::MAX } else { 2 };

/// Length of a record, in bytes.
pub const RECORD: usize = 4096;

const RECORD_BYTES: u64 = RECORD as u64;

/// Maximum length of a torn tail, in bytes. Each record is durable before the next one is written, so a killed process
/// leaves less than one record; the margin allows for file systems that extend a file before its data arrives.
pub const MAX_TORN_TAIL: u64 = 1 << 20;

/// The name of the journal in a run directory.
pub const NAME: &str = "journal.jsonl";

/// Why a record was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    /// A process is about to write values: it created the run, reopened it after a clean stop, or restarts from the
    /// committed values after a failed check.
    Open,
    /// Values were added.
    Commit,
    /// The run returned to an earlier count.
    Rollback,
    /// Values that had been altered on the disk were recomputed, found to agree with the journal, and restored.
    Repair,
    /// The run was stopped cleanly: the headers and the lengths of the files agree with the previous commit. After a
    /// rollback the files stay as long as before, until the run passes its high-water mark again
    /// ([`Contents::high_water_mark`]).
    Close,
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
    /// BLAKE3 of the rule's moves ([`crate::theory::rule::Rule::digest`]), hexadecimal.
    pub rule: String,
    /// The sequence number of the record: 0, 1, 2, …
    pub sequence: u64,
    /// Why this record was written.
    pub event: Event,
    /// Number of committed values: G(0), …, G(count - 1).
    pub count: u64,
    /// Number of committed entries of `escapes.npy`.
    pub escapes: u64,
    /// Width of the table.
    pub width: Width,
    /// Mask m of the sparse space; 0 if there is none.
    pub mask: u16,
    /// Position term e of the sparse space.
    pub position: u8,
    /// The half-open ranges of n whose values are retained, ascending: either all values, or the head and the last
    /// values.
    pub kept: Vec<(u64, u64)>,
    /// Minimum number of last values to keep; absent if the run keeps all values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<u64>,
    /// The summary of the discarded values; absent if none are discarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Attached>,
    /// Digest of the values 0..count ([`crate::table::digest`]).
    pub digest: String,
    /// Number of rare positions below `count`, n = 0 included.
    pub rares: u64,
    /// The last rare position.
    pub last_rare: u64,
    /// The largest value.
    pub max_value: u16,
    /// The least n with G(n) = `max_value`.
    pub max_at: u64,
    /// Number of checks of each kind since the run was created.
    pub checks: BTreeMap<String, u64>,
    /// Number of failed checks since the run was created.
    pub errors: u64,
    /// The n whose value failed a check, until G(n) has been recomputed.
    pub suspect: Option<u64>,
    /// The name of the kernel in use.
    pub kernel: String,
    /// Program, version, commit and target that wrote the record ([`crate::PROGRAM`]).
    pub program: String,
    /// When the record was written: UTC, RFC 3339, in seconds. [`Journal::append`] sets it.
    pub time: String,
    /// Computing time of the run up to this record, over all processes, in seconds.
    pub seconds: u64,
    /// `blake3` of the previous record; zeros in the first record.
    pub previous: String,
    /// BLAKE3 of this record, computed with spaces in the place of these 64 digits.
    pub blake3: String,
}

/// A reference to another file of the run, with its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// Its name in the run directory.
    pub name: String,
    /// BLAKE3 of its bytes, hexadecimal.
    pub blake3: String,
}

impl Record {
    /// Returns the digest of the committed values; `None` if the field is no digest.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        self.digest.parse().ok()
    }

    /// Returns the range of discarded values: whole segments between the head and the last values, or an empty range if
    /// none are discarded. Returns `None` if `kept` and `snapshot` are inconsistent.
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

/// Returns the retained ranges of `count` values when the range `freed` is discarded.
#[must_use]
pub fn kept(count: u64, freed: &Range<u64>) -> Vec<(u64, u64)> {
    if freed.is_empty() { vec![(0, count)] } else { vec![(0, freed.start), (freed.end, count)] }
}

const BLANK: &str = "                                                                ";
const ZEROS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The table as one commit record describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitPoint {
    /// Number of committed values.
    pub count: u64,
    /// Number of committed escapes.
    pub escapes: u64,
    /// Digest of the values 0..`count`.
    pub digest: Digest,
}

/// The good records of a journal.
#[derive(Clone, Debug)]
pub struct Contents {
    /// The last good record.
    pub last: Record,
    /// The commits that still describe the table, ascending in count.
    pub points: Vec<CommitPoint>,
    /// Number of values and escapes in the record before the last one. After a kill, a header may still contain these.
    pub before: (u64, u64),
    /// Maximum number of values and of escapes in any record. A reader may have mapped this much, even after a
    /// rollback.
    pub high_water_mark: (u64, u64),
    /// Number of good records.
    pub records: u64,
    /// Offset of the torn tail in bytes, if there is one.
    pub torn: Option<u64>,
}

impl Contents {
    /// Checks that the journal has no torn tail, for callers that do not accept one.
    ///
    /// # Errors
    /// [`Error::Damage`] if there is a torn tail.
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

/// Returns the length of the journal of a run directory, in bytes.
fn length_in(dir: &Dir) -> Result<u64> {
    let missing = || Error::io("reading the state of", dir.join(NAME))(ErrorKind::NotFound.into());
    length_of(dir, NAME)?.ok_or_else(missing)
}

/// Returns whether the journal has changed since it held exactly `records` good records, perhaps with a torn tail after
/// them: it is shorter now, or a good record follows.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn is_another_in(dir: &Dir, records: u64) -> Result<bool> {
    let length = length_in(dir)?;
    let end = records.saturating_mul(RECORD_BYTES);
    if length < end + RECORD_BYTES {
        return Ok(length < end);
    }
    // The length alone is not enough: new records may have replaced a torn tail of the same length.
    let path = dir.join(NAME);
    let mut line = vec![0; RECORD];
    let file = dir.open(NAME, Mode::Read).map_err(Error::io("opening", &path))?;
    match file.read_exact_at(&mut line, end) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(true),
        read => read.map(|()| own_hash(&line).is_some()).map_err(Error::io("reading", &path)),
    }
}

/// Reads the journal of a run directory. No lock is needed.
///
/// # Errors
/// [`Error::NoRun`] if there is no journal, or none with a whole record; [`Error::Damage`] if the journal is damaged or
/// has no good record; [`Error::Format`] if its first record has another format; [`Error::Io`].
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
    scan(dir.path(), &file)?.undamaged(dir.path())?.ok_or_else(|| match length {
        0..RECORD_BYTES => no_run(format!("{NAME} holds no whole record")),
        _ => Error::Damage { path, offset: 0, what: "no record is good".into() },
    })
}

/// The result of [`scan`]: the good records of a journal, and the damage after them.
struct Scan {
    contents: Option<Contents>,
    damage: Option<Damage>,
}

/// The first place at which a journal is neither a good record nor a torn tail.
#[derive(Clone, Debug)]
struct Damage {
    /// The end of the good records, in bytes.
    offset: u64,
    what: String,
    /// The game of the first record with a correct hash from the damage on, if there is one.
    game: Option<StatedGame>,
}

/// The game that a record states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatedGame {
    /// The canonical name of the game.
    pub name: String,
    /// The digest of the rule ([`crate::theory::rule::Rule::digest`]).
    pub rule: String,
}

impl Scan {
    /// Returns the good records.
    ///
    /// # Errors
    /// [`Error::Damage`] if there is damage after them.
    fn undamaged(self, dir: &Path) -> Result<Option<Contents>> {
        let Some(Damage { offset, what, game }) = self.damage else { return Ok(self.contents) };
        let dir_name = dir.display();
        let remedy = match self.contents {
            Some(contents) => format!(
                "'grundy run --dir {dir_name} --rollback' returns to the last good record before it (at most {} \
                 values) and moves the rest of the journal to a quarantine file",
                contents.last.count
            ),
            None => format!(
                "no good record precedes it; 'grundy run {} --dir {dir_name} --rollback' moves the journal and the \
                 tables to quarantine files and starts again",
                game.map_or_else(|| "GAME".into(), |game| game.name.escape_default().to_string())
            ),
        };
        let what = format!("{what}; the journal was altered; {remedy}");
        Err(Error::Damage { path: dir.join(NAME), offset, what })
    }
}

/// Reads the good records from the start of a journal and decides whether the rest is a torn tail or damage.
fn scan(dir: &Path, file: &File) -> Result<Scan> {
    let path = dir.join(NAME);
    let length = file.length().map_err(Error::io("reading the state of", &path))?;
    // A short journal needs no larger buffer than its own length.
    let capacity = usize::try_from(length).unwrap_or(usize::MAX).clamp(RECORD, 1 << 20);
    let mut reader = std::io::BufReader::with_capacity(capacity, file.reader());
    let mut contents: Option<Contents> = None;
    let mut offset = 0;
    loop {
        let line = read_line(&mut reader, &path)?;
        if line.is_empty() {
            return Ok(Scan { contents, damage: None });
        }
        let broken = match check_line(dir, &line, contents.as_ref().map(|c| &c.last)) {
            Ok(record) => {
                let game = StatedGame { name: record.game.clone(), rule: record.rule.clone() };
                match accept(&mut contents, record) {
                    Ok(()) => {
                        offset += RECORD_BYTES;
                        continue;
                    }
                    Err(what) => Some((what.to_owned(), Some(game))),
                }
            }
            Err(Broken::Refused(error)) => return Err(error),
            Err(Broken::Record(what)) => {
                let rest = length.saturating_sub(offset);
                find_damage(&mut reader, &path, &line, rest)?.map(|(reason, game)| (format!("{what}{reason}"), game))
            }
        };
        let damage = broken.map(|(what, game)| Damage { offset, what, game });
        if let (Some(contents), None) = (&mut contents, &damage) {
            contents.torn = Some(offset);
        }
        return Ok(Scan { contents, damage });
    }
}

/// Reads the next 4096 bytes of a journal; fewer at its end.
fn read_line(reader: &mut impl Read, path: &Path) -> Result<Vec<u8>> {
    let mut line = Vec::with_capacity(RECORD);
    reader.by_ref().take(RECORD_BYTES).read_to_end(&mut line).map_err(Error::io("reading", path))?;
    Ok(line)
}

/// Decides whether the broken `line` and the rest of the journal can be a torn tail; `rest` is the number of bytes from
/// `line` to the end of the journal. Returns `None` if they can, else the reason why not, and the game of the first
/// record among them with a correct hash. A record after a broken one links to the broken one, so its own hash alone
/// decides whether it is good.
fn find_damage(
    reader: &mut impl Read,
    path: &Path,
    line: &[u8],
    rest: u64,
) -> Result<Option<(String, Option<StatedGame>)>> {
    let is_nonzero = |line: &[u8]| line.len() == RECORD && line.iter().any(|&byte| byte != 0);
    let mut nonzero = u64::from(is_nonzero(line));
    // A torn record has a wrong hash, so a record with a correct hash that does not belong here was put here.
    if own_hash(line).is_some() {
        return Ok(Some((String::new(), game_of(line))));
    }
    let mut read = line.len() as u64;
    while read < MAX_TORN_TAIL {
        let line = read_line(reader, path)?;
        if line.is_empty() {
            break;
        }
        if own_hash(&line).is_some() {
            return Ok(Some((", and good records follow".into(), game_of(&line))));
        }
        nonzero += u64::from(is_nonzero(&line));
        read += line.len() as u64;
    }
    if rest > MAX_TORN_TAIL {
        let what = format!(", and {rest} bytes follow the last good record, more than a killed process can leave");
        return Ok(Some((what, None)));
    }
    Ok((nonzero > 1).then(|| (format!(", and {} more broken records follow", nonzero - 1), None)))
}

/// Returns the game of a record.
fn game_of(line: &[u8]) -> Option<StatedGame> {
    let record: Record = serde_json::from_slice(line).ok()?;
    Some(StatedGame { name: record.game, rule: record.rule })
}

/// Adds a record to the contents, or returns what contradicts the digest format, `kept` or the record before it.
fn accept(contents: &mut Option<Contents>, record: Record) -> std::result::Result<(), &'static str> {
    let digest = record.digest().ok_or("the digest of the values is not 64 lowercase hexadecimal digits")?;
    if record.freed().is_none() {
        return Err("the kept ranges contradict the count or the snapshot");
    }
    let point = CommitPoint { count: record.count, escapes: record.escapes, digest };
    let Some(contents) = contents else {
        let high_water_mark = (record.count, record.escapes);
        let points = vec![point];
        *contents = Some(Contents { points, before: (0, 0), high_water_mark, last: record, records: 1, torn: None });
        return Ok(());
    };
    let last = contents.last.count;
    match record.event {
        Event::Commit if record.count < last => {
            return Err("the record commits a smaller count than the one before");
        }
        Event::Rollback if record.count > last => {
            return Err("the record rolls back to a larger count than before");
        }
        Event::Open if record.count != last => {
            return Err("the record opens the run at another count than before");
        }
        Event::Close if record.count != last => {
            return Err("the record closes the run at another count than before");
        }
        Event::Repair if record.count != last => {
            return Err("the record repairs the run at another count than before");
        }
        _ => {}
    }
    while contents.points.last().is_some_and(|p| p.count >= record.count) {
        contents.points.pop();
    }
    contents.points.push(point);
    contents.before = (contents.last.count, contents.last.escapes);
    contents.high_water_mark = raised(contents.high_water_mark, &record);
    contents.last = record;
    contents.records += 1;
    Ok(())
}

/// Returns [`Contents::high_water_mark`] with `record` taken into account.
fn raised(high_water_mark: (u64, u64), record: &Record) -> (u64, u64) {
    (high_water_mark.0.max(record.count), high_water_mark.1.max(record.escapes))
}

/// Why a line is not accepted as a record.
enum Broken {
    /// The line is no good record, for this reason.
    Record(String),
    /// This program cannot read the journal at all.
    Refused(Error),
}

/// Returns the hash of a record if it equals the hash that the record contains.
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

/// Returns the bytes covered by the record hash: the whole line, whose hash field is blanked.
fn hashed(line: &[u8]) -> &[u8] {
    if fault::is("hash-digest-only") {
        // Deliberate fault, see fault.rs.
        let digest = line.windows(10).position(|key| key == b"\"digest\":\"");
        return digest.and_then(|at| line.get(at..at + 10 + BLANK.len())).unwrap_or(line);
    }
    line
}

/// Checks that a line is a good record that follows the record `before` it, and returns the record.
fn check_line(dir: &Path, line: &[u8], before: Option<&Record>) -> std::result::Result<Record, Broken> {
    let broken = |what: &str| Broken::Record(what.to_owned());
    let Some(hash) = own_hash(line) else {
        let foreign = serde_json::from_slice::<serde_json::Value>(line).ok();
        let format = foreign.as_ref().and_then(|v| v.get("format").and_then(serde_json::Value::as_u64));
        // A record of this format whose format number was altered is damage.
        let is_ours = || foreign.is_some_and(|record| serde_json::from_value::<Record>(record).is_ok());
        return Err(match format {
            Some(format) if before.is_none() && format != u64::from(FORMAT) && !is_ours() => refuse_format(dir, format),
            _ => broken("the record does not match its own hash"),
        });
    };
    let value: serde_json::Value =
        serde_json::from_slice(line).map_err(|_| broken("the record is not a JSON object"))?;
    let format = value.get("format").and_then(serde_json::Value::as_u64);
    match format {
        Some(format) if format == u64::from(FORMAT) => {}
        Some(format) => return Err(refuse_format(dir, format)),
        None => return Err(broken("the record has no format number")),
    }
    // The error text may quote bytes of the record, so it is escaped.
    let record: Record = serde_json::from_value(value).map_err(|e| {
        Broken::Record(format!("the JSON object is not a commit record: {}", e.to_string().escape_debug()))
    })?;
    let (previous, sequence) = before.map_or((ZEROS, 0), |b| (b.blake3.as_str(), b.sequence + 1));
    let foreign = fault::is("accept-foreign-record"); // deliberate fault, see fault.rs
    if (record.previous != previous && !foreign) || record.sequence != sequence {
        return Err(broken("the record does not follow the one before it"));
    }
    if !foreign && before.is_some_and(|b| b.run != record.run || b.rule != record.rule || b.width != record.width) {
        return Err(broken("the record belongs to another run"));
    }
    if record.blake3 != hash {
        return Err(broken("the record's own hash is not its last field"));
    }
    Ok(record)
}

fn refuse_format(dir: &Path, found: u64) -> Broken {
    Broken::Refused(Error::Format { path: dir.into(), found, expected: FORMAT })
}

/// Opens the journal of `dir` for writing, or creates it, and locks it.
fn lock(dir: &Dir) -> Result<File> {
    let path = dir.join(NAME);
    let file = dir.open(NAME, Mode::Make).map_err(Error::io("opening for writing", &path))?;
    let locked = file.lock_soon().map_err(Error::io("locking", &path))?
        && file.is_named(NAME).map_err(Error::io("reading the state of", &path))?;
    if locked { Ok(file) } else { Err(Error::Locked { path: dir.path().into() }) }
}

/// Copies the bytes of the journal from `offset` on to a new quarantine file, durably, and returns the name of that
/// file. Chunks of zeros become holes.
fn copy_aside(dir: &Dir, journal: &File, offset: u64) -> Result<String> {
    let name = unused_name(dir, &format!("quarantine-journal-{offset}"), "bin")?;
    let part = format!("{name}.part");
    let copied = copy_bytes(dir, journal, offset, &part);
    if copied.is_err() {
        let _ = dir.remove(&part);
    }
    copied?;
    dir.rename(&part, &name).map_err(Error::io("renaming", dir.join(&part)))?;
    dir.sync().map_err(Error::io("syncing", dir.path()))?;
    Ok(name)
}

/// Copies the bytes of the journal from `offset` on to the new file `part` and syncs it.
fn copy_bytes(dir: &Dir, journal: &File, offset: u64, part: &str) -> Result<()> {
    /// Maximum number of bytes per read.
    const CHUNK: u64 = 1 << 20;
    let path = dir.join(NAME);
    let written = |action: &'static str| Error::io(action, dir.join(part));
    dir.remove(part).map_err(written("removing"))?; // left by a process that was killed here
    let copy = dir.open(part, Mode::New).map_err(written("creating"))?;
    let length = journal.length().map_err(Error::io("reading the state of", &path))?;
    let mut buffer = vec![0; index(CHUNK)];
    let next_data = |from| journal.next_data(from).map_err(Error::io("seeking in", &path));
    let mut next = next_data(offset)?;
    while let Some(from) = next.filter(|&from| from < length) {
        let bytes = &mut buffer[..index(CHUNK.min(length - from))];
        journal.read_exact_at(bytes, from).map_err(Error::io("reading", &path))?;
        if bytes.iter().fold(0, |bits, &byte| bits | byte) != 0 {
            copy.write_all_at(bytes, from - offset).map_err(written("writing"))?;
        }
        next = next_data(from + bytes.len() as u64)?;
    }
    copy.set_length(length - offset).map_err(written("extending"))?;
    copy.sync_all().map_err(written("syncing"))
}

/// The journal of a run that this process writes. It holds the lock on the file.
#[derive(Debug)]
pub struct Journal {
    dir: Dir,
    path: PathBuf,
    file: File,
    /// The end of the good records, in bytes.
    end: u64,
    last: Option<Record>,
    high_water_mark: (u64, u64),
    /// The damage after the good records, if there is any; [`Journal::drop_rest`] moves it to a quarantine file.
    damage: Option<Damage>,
}

impl Journal {
    /// Opens the journal of `dir`, or creates it, and locks it. Returns its good records if there are any.
    ///
    /// # Errors
    /// [`Error::Locked`] if another process holds the lock; [`Error::Damage`] and [`Error::Format`] as for [`read`];
    /// [`Error::Io`].
    pub fn open(dir: &Path) -> Result<(Journal, Option<Contents>)> {
        Journal::open_in(&Dir::at(dir))
    }

    /// [`Journal::open`] on any storage.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn open_in(dir: &Dir) -> Result<(Journal, Option<Contents>)> {
        Journal::open_with(dir, false)
    }

    /// [`Journal::open_in`] for a run that may roll back: it accepts a damaged journal and returns the good records
    /// before the damage. The damage stays in the file until [`Journal::drop_rest`].
    ///
    /// # Errors
    /// As [`Journal::open`], except [`Error::Damage`].
    pub fn open_to_roll_back(dir: &Dir) -> Result<(Journal, Option<Contents>)> {
        Journal::open_with(dir, true)
    }

    fn open_with(dir: &Dir, accepts_damage: bool) -> Result<(Journal, Option<Contents>)> {
        let path = dir.join(NAME);
        let file = lock(dir)?;
        let mut scan = scan(dir.path(), &file)?;
        let damage = if accepts_damage { scan.damage.take() } else { None };
        let contents = scan.undamaged(dir.path())?;
        let records = contents.as_ref().map_or(0, |c| c.records);
        if let Some(before) = records.checked_sub(1) {
            // If the sync of the last record failed, the kernel still returns the record but never writes it to the
            // disk, unless a process writes it again. The records before it were synced, or it would not have been
            // written.
            let mut line = vec![0; RECORD];
            let at = before * RECORD_BYTES;
            file.read_exact_at(&mut line, at).map_err(Error::io("reading", &path))?;
            file.write_all_at(&line, at).map_err(Error::io("writing", &path))?;
        }
        // A killed process may have left the records in the page cache only: make them durable before relying on them.
        file.sync_all().map_err(Error::io("syncing", &path))?;
        if contents.is_none() {
            // The journal is new: make its name durable first, so that a table never exists without a journal.
            dir.sync().map_err(Error::io("syncing", dir.path()))?;
        }
        let last = contents.as_ref().map(|c| c.last.clone());
        let high_water_mark = contents.as_ref().map_or((0, 0), |c| c.high_water_mark);
        Ok((
            Journal { dir: dir.clone(), path, file, end: records * RECORD_BYTES, last, high_water_mark, damage },
            contents,
        ))
    }

    /// Returns whether the file is longer than its good records.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn has_rest(&self) -> Result<bool> {
        let length = self.file.length().map_err(Error::io("reading the state of", &self.path))?;
        Ok(length > self.end)
    }

    /// Returns whether anything other than a torn tail follows the good records.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.damage.is_some()
    }

    /// Returns the game of the first record with a correct hash from the damage on.
    #[must_use]
    pub fn game_behind_damage(&self) -> Option<&StatedGame> {
        self.damage.as_ref()?.game.as_ref()
    }

    /// Truncates the file to its good records, which drops a torn tail. If the rest is damage, first copies it to
    /// `quarantine-journal-OFFSET.bin`; afterwards appends a rollback record if there is a good record. Returns the
    /// name of the quarantine file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn drop_rest(&mut self) -> Result<Option<String>> {
        if !self.has_rest()? {
            return Ok(None);
        }
        let name = match &self.damage {
            Some(damage) => Some(copy_aside(&self.dir, &self.file, damage.offset)?),
            None => None,
        };
        self.file.set_length(self.end).map_err(Error::io("truncating", &self.path))?;
        self.file.sync_all().map_err(Error::io("syncing", &self.path))?;
        if let (Some(last), Some(_)) = (self.last.clone(), self.damage.take()) {
            let errors = last.errors.saturating_add(1);
            self.append(Record { event: Event::Rollback, errors, ..last })?;
        }
        Ok(name)
    }

    /// Removes a journal without a record, unless the path leads to another file by now.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn discard(self) -> Result<()> {
        let named = self.file.is_named(NAME).map_err(Error::io("reading the state of", &self.path))?;
        if self.last.is_none() && named && !self.has_rest()? {
            self.dir.remove(NAME).map_err(Error::io("removing", &self.path))?;
        }
        Ok(())
    }

    /// Appends a record and makes it durable. Fills in `sequence`, `time`, `previous` and `blake3`.
    ///
    /// # Errors
    /// [`Error::Replaced`] if the file is no longer the journal that this process opened and wrote: nothing is written
    /// then. [`Error::Damage`] if the record is too long. [`Error::NoRoom`] or [`Error::Io`]: the run must stop then,
    /// because the durable state is unknown.
    pub fn append(&mut self, mut record: Record) -> Result<()> {
        record.time = humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string();
        record.sequence = self.last.as_ref().map_or(0, |last| last.sequence + 1);
        record.previous = self.last.as_ref().map_or_else(|| ZEROS.to_owned(), |last| last.blake3.clone());
        record.blake3 = BLANK.to_owned();
        let mut line = serde_json::to_vec(&record).map_err(|e| Error::Io {
            action: "writing a record of".into(),
            path: self.path.clone(),
            source: e.into(),
        })?;
        if line.len() >= RECORD {
            // This program's records fit. A record that another program wrote may have fields so long that the next
            // record, which repeats them, does not fit.
            let what = format!("the next record needs {} bytes, more than a record can have", line.len());
            return Err(Error::Damage { path: self.path.clone(), offset: self.end, what });
        }
        let hash_at = line.len() - 2 - BLANK.len();
        line.resize(RECORD - 1, b' ');
        line.push(b'\n');
        let hash = blake3::hash(hashed(&line)).to_hex();
        line[hash_at..hash_at + BLANK.len()].copy_from_slice(hash.as_bytes());
        self.check_unchanged()?;
        self.file.write_all_at(&line, self.end).map_err(|source| match source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                self.dir.no_room(&self.path, RECORD_BYTES)
            }
            _ => Error::io(format!("writing {RECORD} bytes at offset {} of", self.end), &self.path)(source),
        })?;
        self.file.sync_data().map_err(Error::io("syncing", &self.path))?;
        self.end += RECORD as u64;
        record.blake3 = hash.to_string();
        self.high_water_mark = raised(self.high_water_mark, &record);
        self.last = Some(record);
        Ok(())
    }

    /// Checks that the path still leads to this file, that its length is what this process left, and that it ends in
    /// the last record.
    ///
    /// # Errors
    /// [`Error::Replaced`] if not; [`Error::Io`].
    fn check_unchanged(&self) -> Result<()> {
        let io = |action: &'static str| Error::io(action, &self.path);
        let replaced = |what: String| Err(Error::Replaced { path: self.path.clone(), what });
        if !self.file.is_named(NAME).map_err(io("reading the state of"))? {
            return replaced("its path now leads to another file".into());
        }
        let length = self.file.length().map_err(io("reading the state of"))?;
        if length != self.end {
            return replaced(format!("it has {length} bytes instead of {}", self.end));
        }
        let Some(last) = &self.last else { return Ok(()) };
        let mut line = vec![0; RECORD];
        self.file.read_exact_at(&mut line, self.end - RECORD_BYTES).map_err(io("reading"))?;
        if own_hash(&line).as_ref() != Some(&last.blake3) {
            return replaced("its last record was altered".into());
        }
        Ok(())
    }

    /// Returns the last good record.
    #[must_use]
    pub fn last(&self) -> Option<&Record> {
        self.last.as_ref()
    }

    /// Returns the maximum number of values and of escapes in any record ([`Contents::high_water_mark`]).
    #[must_use]
    pub fn high_water_mark(&self) -> (u64, u64) {
        self.high_water_mark
    }
}

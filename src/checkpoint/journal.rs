//! The journal: commit records, the truth about how far the other files of a run hold.
//!
//! `journal.jsonl` is append only. Every line has exactly 4096 bytes: a JSON object, spaces, a newline. Every record
//! carries the BLAKE3 of its own 4096 bytes, taken with the 64 digits of that field (`blake3`, always the last key) as
//! spaces, and that of the record before, so that no line can be lost, changed or exchanged unnoticed.
//!
//! A record that breaks off or does not hash at the end of the file is a torn tail: a killed process was writing it, and
//! the next run drops it. A torn tail has at most one whole record that is not zeros, and at most [`MAX_TORN_TAIL`] bytes.
//! Anything else behind a good record is damage: a broken record before a good one, a good record that does not follow, two
//! broken records, a longer tail. A run stops at damage, unless it may roll back ([`Journal::open_to_roll_back`]): then it
//! moves everything from the damage on to a file of its own, and returns to the last record before it.
//!
//! A record of kind `rollback` takes the run back to a smaller count; records before it with larger counts no longer
//! describe the table.
//!
//! A run that keeps less than everything says in `kept` which values are there; `keep` and `snapshot` are in its records
//! only. Others are holes in the table, which read as zeros, so nobody may read them ([`Record::freed`]).
//!
//! The writer holds the lock on this file, and this is the file whose identity is compared with the path.

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

/// Bytes of one record.
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
    /// the run went back and has not passed its high_water_mark place again ([`Contents::high_water_mark`]).
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
    /// BLAKE3 of the rule's moves ([`Rule::digest`]), hexadecimal.
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
    /// Digest of the values 0..count ([`crate::table::digest`]).
    pub digest: String,
    /// Rare positions, n = 0 included.
    pub rares: u64,
    /// The last rare position.
    pub last_rare: u64,
    /// The largest value.
    pub max_value: u16,
    /// Where it appears first.
    pub max_at: u64,
    /// Number of checks of each kind since the run was made.
    pub checks: BTreeMap<String, u64>,
    /// Number of failed checks since the run was made.
    pub errors: u64,
    /// The n whose value failed a check, until G(n) has been recomputed.
    pub suspect: Option<u64>,
    /// The kernel in use.
    pub kernel: String,
    /// Program, version, commit and target that wrote the record ([`crate::PROGRAM`]).
    pub program: String,
    /// When the record was written: UTC, RFC 3339, in seconds. [`Journal::append`] sets it.
    pub time: String,
    /// Computing time of the run up to this record, over all processes, in seconds.
    pub seconds: u64,
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

const BLANK: &str = "                                                                ";
const ZEROS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// What a journal says of one commit that still speaks of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitPoint {
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
    pub points: Vec<CommitPoint>,
    /// Values and escapes that the record before the last one speaks of; a header may still say these after a kill.
    pub before: (u64, u64),
    /// The most values and the most escapes of any record: who reads may have mapped so many, whatever the run went back to.
    pub high_water_mark: (u64, u64),
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

/// Length of the journal of a run directory, in bytes.
fn length_in(dir: &Dir) -> Result<u64> {
    let missing = || Error::io("reading the state of", dir.join(NAME))(ErrorKind::NotFound.into());
    length_of(dir, NAME)?.ok_or_else(missing)
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
    scan(dir.path(), &file)?.undamaged(dir.path())?.ok_or_else(|| match length {
        0..RECORD_BYTES => no_run(format!("{NAME} holds no whole record")),
        _ => Error::Damage { path, offset: 0, what: "no record is good".into() },
    })
}

/// What a journal holds: its good records, and the damage behind them.
struct Scan {
    contents: Option<Contents>,
    damage: Option<Damage>,
}

/// The first place at which a journal is neither a good record nor a torn tail.
#[derive(Clone, Debug)]
struct Damage {
    /// In bytes; the good records end here.
    offset: u64,
    what: String,
    /// The game of the first record from the damage on that hashes, if there is one.
    game: Option<StatedGame>,
}

/// The game that a record states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatedGame {
    /// Its canonical name.
    pub name: String,
    /// The digest of its rule ([`Rule::digest`]).
    pub rule: String,
}

impl Scan {
    /// The good records of a journal without damage.
    fn undamaged(self, dir: &Path) -> Result<Option<Contents>> {
        let Some(Damage { offset, what, game }) = self.damage else { return Ok(self.contents) };
        let dir_name = dir.display();
        let way_out = match self.contents {
            Some(contents) => format!(
                "'grundy run --dir {dir_name} --rollback' goes back to the last good record before (at most {} values) and \
                 sets the rest of the journal aside",
                contents.last.count
            ),
            None => format!(
                "no good record is left before it; 'grundy run {} --dir {dir_name} --rollback' sets the journal and the tables \
                 aside and starts again",
                game.map_or_else(|| "GAME".into(), |game| game.name.escape_default().to_string())
            ),
        };
        let what = format!("{what}; the journal was altered; {way_out}");
        Err(Error::Damage { path: dir.join(NAME), offset, what })
    }
}

/// Reads the records from the start of a journal to the first that is not good, and decides what follows: a torn tail
/// or damage.
fn scan(dir: &Path, file: &File) -> Result<Scan> {
    let path = dir.join(NAME);
    let length = file.length().map_err(Error::io("reading the state of", &path))?;
    // The buffer is as long as the journal where the journal is short.
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
                follows(&mut reader, &path, &line, rest)?.map(|(follows, game)| (format!("{what}{follows}"), game))
            }
        };
        let damage = broken.map(|(what, game)| Damage { offset, what, game });
        if let (Some(contents), None) = (&mut contents, &damage) {
            contents.torn = Some(offset);
        }
        return Ok(Scan { contents, damage });
    }
}

/// The next 4096 bytes of a journal; fewer at its end.
fn read_line(reader: &mut impl Read, path: &Path) -> Result<Vec<u8>> {
    let mut line = Vec::with_capacity(RECORD);
    reader.by_ref().take(RECORD_BYTES).read_to_end(&mut line).map_err(Error::io("reading", path))?;
    Ok(line)
}

/// Why the broken `line` and the `rest` bytes from it to the end of the journal cannot be a torn tail, with the game of the
/// first record among them that hashes; `None` if they can. A record behind a broken one links to the broken one, so its own
/// hash alone decides whether it is good.
fn follows(
    reader: &mut impl Read,
    path: &Path,
    line: &[u8],
    rest: u64,
) -> Result<Option<(String, Option<StatedGame>)>> {
    let is_altered = |line: &[u8]| line.len() == RECORD && line.iter().any(|&byte| byte != 0);
    let mut altered = u64::from(is_altered(line));
    // A torn record does not hash: a record that hashes and does not belong here was put here.
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
        altered += u64::from(is_altered(&line));
        read += line.len() as u64;
    }
    if rest > MAX_TORN_TAIL {
        let what = format!(", and {rest} bytes follow the last good record, more than a killed process leaves");
        return Ok(Some((what, None)));
    }
    Ok((altered > 1).then(|| (format!(", and neither do those of the {} behind it", altered - 1), None)))
}

fn game_of(line: &[u8]) -> Option<StatedGame> {
    let record: Record = serde_json::from_slice(line).ok()?;
    Some(StatedGame { name: record.game, rule: record.rule })
}

/// Adds a record to the contents, or says what about it makes no sense.
fn accept(contents: &mut Option<Contents>, record: Record) -> std::result::Result<(), &'static str> {
    let digest = record.digest().ok_or("the digest of the values is no digest")?;
    if record.freed().is_none() {
        return Err("the kept ranges make no sense");
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
        Event::Commit if record.count < last => return Err("a commit with a smaller count than before"),
        Event::Rollback if record.count > last => return Err("a rollback to a larger count"),
        Event::Open if record.count != last => return Err("reopened at another count than before"),
        Event::Close if record.count != last => return Err("a clean stop at another count than before"),
        Event::Repair if record.count != last => return Err("a repair at another count than before"),
        _ => {}
    }
    while contents.points.last().is_some_and(|p| p.count >= record.count) {
        contents.points.pop();
    }
    contents.points.push(point);
    contents.before = (contents.last.count, contents.last.escapes);
    contents.high_water_mark = most(contents.high_water_mark, &record);
    contents.last = record;
    contents.records += 1;
    Ok(())
}

/// [`Contents::high_water_mark`] after one record more.
fn most(high_water_mark: (u64, u64), record: &Record) -> (u64, u64) {
    (high_water_mark.0.max(record.count), high_water_mark.1.max(record.escapes))
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
        let format = foreign.as_ref().and_then(|v| v.get("format").and_then(serde_json::Value::as_u64));
        // A record of this format whose number was altered is damage.
        let is_ours = || foreign.is_some_and(|record| serde_json::from_value::<Record>(record).is_ok());
        return Err(match format {
            Some(format) if before.is_none() && format != u64::from(FORMAT) && !is_ours() => refuse_format(dir, format),
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
    Broken::Refused(Error::Format { path: dir.into(), found, expected: FORMAT })
}

/// Opens or makes the journal of `dir` for writing, and locks it.
fn lock(dir: &Dir) -> Result<File> {
    let path = dir.join(NAME);
    let file = dir.open(NAME, Mode::Make).map_err(Error::io("opening for writing", &path))?;
    let locked = file.lock_soon().map_err(Error::io("locking", &path))?
        && file.is_named(NAME).map_err(Error::io("reading the state of", &path))?;
    if locked { Ok(file) } else { Err(Error::Locked { path: dir.path().into() }) }
}

/// Copies the bytes of the journal from `offset` on to a new file, durably, and returns its name. Zeros become a hole.
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

fn copy_bytes(dir: &Dir, journal: &File, offset: u64, part: &str) -> Result<()> {
    /// Bytes copied at a time.
    const CHUNK: u64 = 1 << 20;
    let path = dir.join(NAME);
    let written = |action: &'static str| Error::io(action, dir.join(part));
    dir.remove(part).map_err(written("removing"))?; // left by a process that was killed here
    let copy = dir.open(part, Mode::New).map_err(written("making"))?;
    let length = journal.length().map_err(Error::io("reading the state of", &path))?;
    let mut buffer = vec![0; index(CHUNK)];
    let next_data = |from| journal.next_data(from).map_err(Error::io("seeking in", &path));
    let mut next = next_data(offset)?;
    while let Some(from) = next.filter(|&from| from < length) {
        let bytes = &mut buffer[..index(CHUNK.min(length - from))];
        journal.read_exact_at(bytes, from).map_err(Error::io("reading", &path))?;
        if bytes.iter().fold(0, |any, &byte| any | byte) != 0 {
            copy.write_all_at(bytes, from - offset).map_err(written("writing"))?;
        }
        next = next_data(from + bytes.len() as u64)?;
    }
    copy.set_length(length - offset).map_err(written("extending"))?;
    copy.sync_all().map_err(written("syncing"))
}

/// The journal of a run that this process writes; holds the lock.
#[derive(Debug)]
pub struct Journal {
    dir: Dir,
    path: PathBuf,
    file: File,
    /// Where the good records end, in bytes.
    end: u64,
    last: Option<Record>,
    high_water_mark: (u64, u64),
    /// What lies behind the good records, unless it is a torn tail; [`Journal::drop_rest`] sets it aside.
    damage: Option<Damage>,
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
        Journal::open_with(dir, false)
    }

    /// [`Journal::open_in`] for a run that may roll back: of a damaged journal the good records before the damage count.
    /// Nothing changes before [`Journal::drop_rest`].
    ///
    /// # Errors
    /// As [`Journal::open`], but not for damage.
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
        let high_water_mark = contents.as_ref().map_or((0, 0), |c| c.high_water_mark);
        Ok((
            Journal { dir: dir.clone(), path, file, end: records * RECORD_BYTES, last, high_water_mark, damage },
            contents,
        ))
    }

    /// Whether the file is longer than its good records.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn has_rest(&self) -> Result<bool> {
        let length = self.file.length().map_err(Error::io("reading the state of", &self.path))?;
        Ok(length > self.end)
    }

    /// Whether a record is damaged, or what follows the good records is no torn tail.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.damage.is_some()
    }

    /// The game that a record behind the damage states.
    #[must_use]
    pub fn game_behind_damage(&self) -> Option<&StatedGame> {
        self.damage.as_ref()?.game.as_ref()
    }

    /// Ends the file at its last good record. A torn tail is cut off. What follows from a damaged place on moves to
    /// `quarantine-journal-OFFSET.bin`, and a rollback record says so; returns the name of that file.
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

    /// Removes a journal without a record, unless another file has been put in its place.
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

    /// Appends a record and makes it durable; sequence, time, link and hash are filled in here.
    ///
    /// # Errors
    /// [`Error::Replaced`] if the file is no longer the journal that this process opened and wrote, and then nothing is
    /// written; [`Error::Io`], and then the run must stop, since the state of the disk is unknown.
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
            // The program's own do: only a record that another has made leaves too little room for what follows it.
            let what = format!("{} bytes are to follow, which do not fit a record", line.len());
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
        self.high_water_mark = most(self.high_water_mark, &record);
        self.last = Some(record);
        Ok(())
    }

    /// Checks that the journal is still the file of its name, as long as this process left it, and ends in the last record.
    fn check_unchanged(&self) -> Result<()> {
        let io = |action: &'static str| Error::io(action, &self.path);
        let replaced = |what: String| Err(Error::Replaced { path: self.path.clone(), what });
        if !self.file.is_named(NAME).map_err(io("reading the state of"))? {
            return replaced("another file was put in its place".into());
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

    /// The last good record.
    #[must_use]
    pub fn last(&self) -> Option<&Record> {
        self.last.as_ref()
    }

    /// The most values and the most escapes of any record ([`Contents::high_water_mark`]).
    #[must_use]
    pub fn high_water_mark(&self) -> (u64, u64) {
        self.high_water_mark
    }
}

//! Reading a journal: the good records, and the decision whether the rest is a torn tail or damage.

use super::record::{ZEROS, own_hash};
use super::{CommitPoint, Event, FORMAT, MAX_TORN_TAIL, NAME, Origin, RECORD, RECORD_BYTES, Record, UNKNOWN_KERNEL};
use crate::error::{BrokenRecord, Damage, Error, JournalRest, NoRunReason, Result};
use crate::fault;
use crate::storage::{Dir, File, Mode};
use crate::table::{Extent, length_of};
use crate::theory::nimber::index;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// The good records of a journal.
#[derive(Clone, Debug)]
pub struct Contents {
    /// The last good record.
    pub last: Record,
    /// The commits that still describe the table, ascending in count.
    pub points: Vec<CommitPoint>,
    /// Which kernel computed the committed values, and on which machine.
    pub origins: Vec<Origin>,
    /// Number of values and escapes in the record before the last one. After a kill, a header may still contain these.
    pub before: Extent,
    /// Maximum number of values and of escapes in any record. A reader may have mapped this much, even after a
    /// rollback.
    pub high_water_mark: Extent,
    /// Number of good records.
    pub records: u64,
    /// Offset of the torn tail in bytes, if there is one.
    pub torn: Option<u64>,
}

impl Contents {
    /// Returns the contents of a journal with one record.
    fn of_first(record: Record, point: CommitPoint) -> Contents {
        let mut origins = Vec::new();
        Origin::follow(&mut origins, &record);
        Contents {
            points: vec![point],
            origins,
            before: Extent::default(),
            high_water_mark: record.extent(),
            last: record,
            records: 1,
            torn: None,
        }
    }

    /// Adds the next record, or the first one. Earlier points that do not lie below it no longer describe the table.
    fn followed_by(contents: Option<Contents>, record: Record, point: CommitPoint) -> Contents {
        let Some(mut contents) = contents else { return Contents::of_first(record, point) };
        while contents.points.last().is_some_and(|last| last.count >= point.count) {
            contents.points.pop();
        }
        contents.points.push(point);
        Origin::follow(&mut contents.origins, &record);
        contents.before = contents.last.extent();
        contents.high_water_mark = contents.high_water_mark.max(record.extent());
        contents.last = record;
        contents.records += 1;
        contents
    }

    /// Returns the good records before damage, if there are any, and those after it, which are not counted in
    /// `records`: they are not yet written after the good ones.
    pub(super) fn followed_after_damage(good: Option<Contents>, later: &[Record]) -> Option<Contents> {
        let records = good.as_ref().map_or(0, |good| good.records);
        let contents = later.iter().fold(good, |contents, record| {
            let digest = record.digest().expect("records_after_damage has checked it");
            Some(Contents::followed_by(contents, record.clone(), record.point(digest)))
        });
        contents.map(|contents| Contents { records, ..contents })
    }

    /// Checks that the journal has no torn tail, for callers that do not accept one.
    ///
    /// # Errors
    /// [`Error::Damage`] if there is a torn tail.
    pub fn require_no_torn_tail(&self, dir: &Path) -> Result<()> {
        match self.torn {
            None => Ok(()),
            Some(offset) => Err(Error::Damage { path: dir.join(NAME), offset, damage: Damage::TornTail }),
        }
    }
}

/// Returns the length of the journal of a run directory, in bytes.
fn length(dir: &Dir) -> Result<u64> {
    let missing = || Error::io("reading the state of", dir.join(NAME))(ErrorKind::NotFound.into());
    length_of(dir, NAME)?.ok_or_else(missing)
}

/// Returns whether the journal has changed since it held exactly `records` good records, perhaps with a torn tail after
/// them: it is shorter now, or a good record follows. A journal that was cut and has grown to the same length counts as
/// unchanged.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn has_changed_since(dir: &Dir, records: u64) -> Result<bool> {
    let length = length(dir)?;
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

/// Reads the journal of a run directory, given by its path or on any storage. No lock is needed.
///
/// # Errors
/// [`Error::NoRun`] if there is no journal, or none with a whole record; [`Error::Damage`] if the journal is damaged or
/// has no good record; [`Error::Format`] if a record with a correct hash has another format; [`Error::Io`].
pub fn read(dir: impl Into<Dir>) -> Result<Contents> {
    let dir = dir.into();
    let path = dir.join(NAME);
    let no_run = |why| Error::NoRun { path: dir.path().into(), why };
    let file = dir.open(NAME, Mode::Read).map_err(|source| match source.kind() {
        ErrorKind::NotFound if !dir.exists().unwrap_or(true) => no_run(NoRunReason::NoDirectory),
        ErrorKind::NotFound => no_run(NoRunReason::NoJournal { journal: NAME }),
        _ => Error::io("opening", &path)(source),
    })?;
    let length = file.length().map_err(Error::io("reading the state of", &path))?;
    scan(dir.path(), &file)?.undamaged(dir.path())?.ok_or_else(|| match length {
        0..RECORD_BYTES => no_run(NoRunReason::NoRecord { journal: NAME }),
        _ => Error::Damage { path, offset: 0, damage: Damage::NoGoodRecord },
    })
}

/// Returns the last of the first `records` records of a journal, at most `most` of them, in their order. They were good
/// when [`read()`] counted them; a record that was altered since, or is of another format, ends the list before it.
///
/// # Errors
/// [`Error::Io`].
pub fn last_records(dir: impl Into<Dir>, records: u64, most: u64) -> Result<Vec<Record>> {
    let dir = dir.into();
    let path = dir.join(NAME);
    let file = dir.open(NAME, Mode::Read).map_err(Error::io("opening", &path))?;
    let count = records.min(most);
    let mut bytes = vec![0; index(count) * RECORD];
    file.read_exact_at(&mut bytes, (records - count) * RECORD_BYTES).map_err(Error::io("reading", &path))?;
    let record = |line: &[u8]| own_hash(line).and_then(|_| serde_json::from_slice::<Record>(line).ok());
    Ok(bytes.chunks(RECORD).map_while(record).collect())
}

/// The result of [`scan`]: the good records of a journal, and the damage after them.
pub(super) struct Scan {
    contents: Option<Contents>,
    pub(super) damage: Option<Altered>,
}

/// The first place at which a journal is neither a good record nor a torn tail.
#[derive(Clone, Debug)]
pub(super) struct Altered {
    /// The end of the good records, in bytes.
    pub(super) offset: u64,
    /// What is wrong with the first record that is not good.
    record: BrokenRecord,
    /// Why it is not a torn tail.
    rest: JournalRest,
    /// The game of the first record with a correct hash from the damage on, if there is one.
    pub(super) game: Option<StatedGame>,
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
    pub(super) fn undamaged(self, dir: &Path) -> Result<Option<Contents>> {
        let Some(Altered { offset, record, rest, game }) = self.damage else { return Ok(self.contents) };
        let values = self.contents.map(|contents| contents.last.count);
        let game = game.map(|game| game.name.escape_default().to_string());
        let damage = Damage::Journal { record, rest, values, game };
        Err(Error::Damage { path: dir.join(NAME), offset, damage })
    }
}

/// A line of the journal.
enum Line {
    /// A good record that follows the one before it.
    Good(Box<Record>, CommitPoint),
    /// Anything else, for this reason.
    Broken(BrokenRecord),
}

/// Reads the good records from the start of a journal and decides whether the rest is a torn tail or damage.
pub(super) fn scan(dir: &Path, file: &File) -> Result<Scan> {
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
        let record = match check_line(dir, &line, contents.as_ref().map(|contents| &contents.last))? {
            Line::Good(record, point) => {
                contents = Some(Contents::followed_by(contents, *record, point));
                offset += RECORD_BYTES;
                continue;
            }
            Line::Broken(record) => record,
        };
        let damage = match classify_tail(&mut reader, &path, &line, length.saturating_sub(offset))? {
            Tail::Torn => None,
            Tail::Damaged { rest, game } => Some(Altered { offset, record, rest, game }),
        };
        if let (Some(contents), None) = (&mut contents, &damage) {
            contents.torn = Some(offset);
        }
        return Ok(Scan { contents, damage });
    }
}

/// Returns the records after the damage of a journal, as they can follow `before`, the last good record before it;
/// `None` if the first record is damaged. The damage begins at offset `from`; at most one torn record may follow the
/// last one. Returns an empty list if
///
/// - the first record after the damage is not within [`MAX_TORN_TAIL`] bytes of `from`,
/// - a record does not belong to the same run or to its place, or a second damage follows, or
/// - a rollback or a repair may be among the lost records.
pub(super) fn records_after_damage(
    file: &File,
    path: &Path,
    from: u64,
    before: Option<&Record>,
) -> Result<Vec<Record>> {
    let length = file.length().map_err(Error::io("reading the state of", path))?;
    let mut records: Vec<Record> = Vec::new();
    let mut line = vec![0; RECORD];
    let mut number = from / RECORD_BYTES;
    while (number + 1) * RECORD_BYTES <= length {
        let at = number * RECORD_BYTES;
        file.read_exact_at(&mut line, at).map_err(Error::io("reading", path))?;
        let found = own_hash(&line).and_then(|hash| match records.last() {
            Some(earlier) => next_after_damage(&line, &hash, number, earlier),
            None => first_after_damage(&line, &hash, number, before),
        });
        match found {
            Some(record) => records.push(record),
            None if own_hash(&line).is_some() => return Ok(Vec::new()),
            None if records.is_empty() && at - from < MAX_TORN_TAIL => {}
            None if records.is_empty() || length - at > RECORD_BYTES => return Ok(Vec::new()),
            None => break,
        }
        number += 1;
    }
    Ok(records)
}

/// Returns the first record after damage, in line `number` and with this correct hash, if it can follow `before`, the
/// last good record. It also adds the values of the lost records, so its kernel and its machine are unknown.
fn first_after_damage(line: &[u8], hash: &str, number: u64, before: Option<&Record>) -> Option<Record> {
    let record = record_at(line, hash, number)?;
    // A lost rollback would show: it raises `errors`, lowers the count, or follows a record with a suspect value.
    let follows = match before {
        Some(before) => {
            let is_same_state = record.count > before.count || record.digest == before.digest;
            is_of_run(&record, before)
                && record.errors == before.errors
                && record.count >= before.count
                && is_same_state
                && before.suspect.is_none()
        }
        None => record.errors == 0,
    };
    let record = Record { event: Event::Commit, kernel: UNKNOWN_KERNEL.into(), machine: None, ..record };
    (follows && point_of(&record, before).is_ok()).then_some(record)
}

/// Returns the record of line `number`, which has this correct hash, if it follows `earlier`, the record before it
/// after the damage.
fn next_after_damage(line: &[u8], hash: &str, number: u64, earlier: &Record) -> Option<Record> {
    let record = record_at(line, hash, number)?;
    let follows = is_of_run(&record, earlier) && record.previous == earlier.blake3;
    (follows && point_of(&record, Some(earlier)).is_ok()).then_some(record)
}

/// Returns the record of line `number`, which has this correct hash, if it states its place and its hash.
fn record_at(line: &[u8], hash: &str, number: u64) -> Option<Record> {
    let record: Record = serde_json::from_slice(line).ok()?;
    ((record.format, &*record.blake3, record.sequence) == (FORMAT, hash, number)).then_some(record)
}

/// Returns whether two records are of the same run.
fn is_of_run(record: &Record, other: &Record) -> bool {
    (&other.run, &other.rule, other.width) == (&record.run, &record.rule, record.width)
}

/// Reads the next 4096 bytes of a journal; fewer at its end.
fn read_line(reader: &mut impl Read, path: &Path) -> Result<Vec<u8>> {
    let mut line = Vec::with_capacity(RECORD);
    reader.by_ref().take(RECORD_BYTES).read_to_end(&mut line).map_err(Error::io("reading", path))?;
    Ok(line)
}

/// What follows the good records of a journal.
enum Tail {
    /// A torn tail.
    Torn,
    /// Damage.
    Damaged {
        /// Why it is not a torn tail.
        rest: JournalRest,
        /// The game of the first record in it with a correct hash.
        game: Option<StatedGame>,
    },
}

/// Decides whether the broken `line` and what follows it can be a torn tail; `bytes_left` is the number of bytes from
/// `line` to the end of the journal. A record after a broken one links to the broken one, so its own hash alone decides
/// whether it is good.
fn classify_tail(reader: &mut impl Read, path: &Path, line: &[u8], bytes_left: u64) -> Result<Tail> {
    let is_nonzero = |line: &[u8]| line.len() == RECORD && line.iter().any(|&byte| byte != 0);
    let damaged = |rest, game| Ok(Tail::Damaged { rest, game });
    // A torn record has a wrong hash, so a record with a correct hash that does not belong here was put here.
    if own_hash(line).is_some() {
        return damaged(JournalRest::Sealed, game_of(line));
    }
    let mut nonzero = u64::from(is_nonzero(line));
    let mut read = line.len() as u64;
    while read < MAX_TORN_TAIL {
        let line = read_line(reader, path)?;
        if line.is_empty() {
            break;
        }
        if own_hash(&line).is_some() {
            return damaged(JournalRest::GoodRecords, game_of(&line));
        }
        nonzero += u64::from(is_nonzero(&line));
        read += line.len() as u64;
    }
    if bytes_left > MAX_TORN_TAIL {
        return damaged(JournalRest::TooLong { bytes: bytes_left }, None);
    }
    if nonzero > 1 {
        return damaged(JournalRest::BrokenRecords { records: nonzero - 1 }, None);
    }
    Ok(Tail::Torn)
}

/// Returns the game of a record.
fn game_of(line: &[u8]) -> Option<StatedGame> {
    let record: Record = serde_json::from_slice(line).ok()?;
    Some(StatedGame { name: record.game, rule: record.rule })
}

/// Returns what a record with a correct hash says of the table, or what in it contradicts the digest format, `kept` or
/// the number of values in the record `before` it.
fn point_of(record: &Record, before: Option<&Record>) -> std::result::Result<CommitPoint, &'static str> {
    let digest = record.digest().ok_or("the digest of the values is not 64 lowercase hexadecimal digits")?;
    if record.discarded().is_none() {
        return Err("the kept ranges contradict the count or the snapshot");
    }
    let Some(before) = before.map(|before| before.count) else { return Ok(record.point(digest)) };
    match record.event {
        Event::Commit if record.count < before => Err("the record commits a smaller count than the one before"),
        Event::Rollback if record.count > before => Err("the record rolls back to a larger count than before"),
        Event::Open if record.count != before => Err("the record opens the run at another count than before"),
        Event::Close if record.count != before => Err("the record closes the run at another count than before"),
        Event::Repair if record.count != before => Err("the record repairs the run at another count than before"),
        _ => Ok(record.point(digest)),
    }
}

/// Returns the format that a line states, or why it states none.
fn format_of(line: &[u8]) -> std::result::Result<u64, BrokenRecord> {
    let value: serde_json::Value = serde_json::from_slice(line).map_err(|_| BrokenRecord::NotJson)?;
    value.get("format").and_then(serde_json::Value::as_u64).ok_or(BrokenRecord::NoFormat)
}

/// Returns the error of a journal of another format.
fn other_format(dir: &Path, found: u64) -> Result<Line> {
    Err(Error::Format { path: dir.into(), found, expected: FORMAT })
}

/// Checks that a line is a good record that follows the record `before` it.
///
/// # Errors
/// [`Error::Format`] if the line is a record of another format.
fn check_line(dir: &Path, line: &[u8], before: Option<&Record>) -> Result<Line> {
    let broken = |record| Ok(Line::Broken(record));
    let parsed = serde_json::from_slice::<Record>(line);
    let Some(hash) = own_hash(line) else {
        // A record of this format whose format number was altered is damage.
        return match format_of(line) {
            Ok(found) if before.is_none() && found != u64::from(FORMAT) && parsed.is_err() => other_format(dir, found),
            _ => broken(BrokenRecord::Hash),
        };
    };
    let record = match parsed {
        Ok(record) if record.format == FORMAT => record,
        Ok(record) => return other_format(dir, record.format.into()),
        Err(error) => {
            return match format_of(line) {
                // The error text may quote bytes of the record, so it is escaped.
                Ok(found) if found == u64::from(FORMAT) => {
                    broken(BrokenRecord::Fields { why: error.to_string().escape_debug().to_string() })
                }
                Ok(found) => other_format(dir, found),
                Err(why) => broken(why),
            };
        }
    };
    let foreign = fault::is("accept-foreign-record"); // deliberate fault, see fault.rs
    let previous = before.map_or(ZEROS, |before| before.blake3.as_str());
    let sequence = before.map_or(0, |before| before.sequence + 1);
    if (record.previous != previous && !foreign) || record.sequence != sequence {
        return broken(BrokenRecord::Order);
    }
    if !foreign && before.is_some_and(|b| b.run != record.run || b.rule != record.rule || b.width != record.width) {
        return broken(BrokenRecord::OtherRun);
    }
    if record.blake3 != hash {
        return broken(BrokenRecord::HashField);
    }
    match point_of(&record, before) {
        Ok(point) => Ok(Line::Good(Box::new(record), point)),
        Err(what) => broken(BrokenRecord::Contradiction(what)),
    }
}

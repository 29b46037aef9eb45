//! Writing a journal: the lock, the repair of its end, and the append of a record.

use super::read::{Altered, records_after_damage, scan};
use super::record::{ZEROS, own_hash, seal, unsealed_json};
use super::{Contents, NAME, RECORD, RECORD_BYTES, Record, StatedGame};
use crate::checkpoint::machine;
use crate::error::{Damage, Error, Result};
use crate::storage::{Dir, File, Mode};
use crate::table::{Extent, length_of, unused_name};
use crate::theory::nimber::index;
use std::path::PathBuf;

/// Opens the journal of `dir` for writing, or creates it, and locks it. Returns the file, and whether there was none.
fn lock(dir: &Dir) -> Result<(File, bool)> {
    let path = dir.join(NAME);
    let is_new = length_of(dir, NAME)?.is_none();
    let file = dir.open(NAME, Mode::Make).map_err(Error::io("opening for writing", &path))?;
    let locked = file.lock_soon().map_err(Error::io("locking", &path))?
        && file.is_named(NAME).map_err(Error::io("reading the state of", &path))?;
    if locked { Ok((file, is_new)) } else { Err(Error::Locked { path: dir.path().into() }) }
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
            copy.write_all_at(bytes, from - offset)
                .map_err(|source| dir.write_error(source, &dir.join(part), length - from, "writing"))?;
        }
        next = next_data(from + bytes.len() as u64)?;
    }
    copy.set_length(length - offset).map_err(written("extending"))?;
    copy.sync_all().map_err(written("syncing"))
}

/// The record as this program writes it on this machine now.
fn written_now(record: Record) -> Record {
    let time = humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string();
    Record { time, program: crate::PROGRAM.into(), machine: Some(machine::class().into()), ..record }
}

/// The journal of a run that this process writes. It holds the lock on the file.
#[derive(Debug)]
pub(crate) struct Journal {
    dir: Dir,
    path: PathBuf,
    file: File,
    /// Whether this process created the file.
    is_new: bool,
    /// The end of the good records, in bytes.
    end: u64,
    last: Option<Record>,
    high_water_mark: Extent,
    /// The damage after the good records, if there is any.
    damage: Option<Altered>,
    /// The records after the damage that can follow the good ones.
    later: Vec<Record>,
}

impl Journal {
    /// Opens the journal of `dir`, or creates it, and locks it. Returns its good records if there are any.
    ///
    /// # Errors
    /// [`Error::Locked`] if another process holds the lock; [`Error::Damage`] and [`Error::Format`] as for
    /// [`read`](super::read()); [`Error::Io`].
    pub(crate) fn open(dir: &Dir) -> Result<(Journal, Option<Contents>)> {
        Journal::open_with(dir, false)
    }

    /// [`Journal::open`] for a run that may roll back: it accepts a damaged journal. The contents are then the good
    /// records before the damage, and those after it if they can follow. The damage stays in the file until
    /// [`Journal::replace_damage`].
    ///
    /// # Errors
    /// As [`Journal::open`], except [`Error::Damage`].
    pub(crate) fn open_to_roll_back(dir: &Dir) -> Result<(Journal, Option<Contents>)> {
        Journal::open_with(dir, true)
    }

    fn open_with(dir: &Dir, accepts_damage: bool) -> Result<(Journal, Option<Contents>)> {
        let path = dir.join(NAME);
        let (file, is_new) = lock(dir)?;
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
        let high_water_mark = contents.as_ref().map_or(Extent::default(), |c| c.high_water_mark);
        let later = match &damage {
            Some(damage) => records_after_damage(&file, &path, damage.offset, last.as_ref())?,
            None => Vec::new(),
        };
        let contents = Contents::followed_after_damage(contents, &later);
        let (dir, end) = (dir.clone(), records * RECORD_BYTES);
        Ok((Journal { dir, path, file, is_new, end, last, high_water_mark, damage, later }, contents))
    }

    /// Returns the error for damage of the last good record.
    pub(crate) fn last_record_damaged(&self, damage: Damage) -> Error {
        Error::Damage { path: self.path.clone(), offset: self.end.saturating_sub(RECORD_BYTES), damage }
    }

    /// Returns whether the file is longer than its good records.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn has_rest(&self) -> Result<bool> {
        let length = self.file.length().map_err(Error::io("reading the state of", &self.path))?;
        Ok(length > self.end)
    }

    /// Returns whether anything other than a torn tail follows the good records.
    pub(crate) fn is_damaged(&self) -> bool {
        self.damage.is_some()
    }

    /// Returns the game of the first record with a correct hash from the damage on.
    pub(crate) fn game_after_damage(&self) -> Option<&StatedGame> {
        self.damage.as_ref()?.game.as_ref()
    }

    /// Truncates the file to its good records, which drops a torn tail. Returns the name of the quarantine file to
    /// which the rest is copied first, if it is damage.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::NoRoom`].
    pub(crate) fn end_at_good_records(&mut self) -> Result<Option<String>> {
        if !self.has_rest()? {
            return Ok(None);
        }
        let damage = self.damage.as_ref();
        let name = damage.map(|damage| copy_aside(&self.dir, &self.file, damage.offset)).transpose()?;
        self.file.set_length(self.end).map_err(Error::io("truncating", &self.path))?;
        self.file.sync_all().map_err(Error::io("syncing", &self.path))?;
        self.damage = None;
        Ok(name)
    }

    /// Copies everything from the damage on to `quarantine-journal-OFFSET.bin`, and returns the name of this file. Then
    /// replaces the journal, in one step, by a new one: the good records, those after the damage that can follow them,
    /// linked again, and the record `last`.
    ///
    /// # Errors
    /// As for [`Journal::append`].
    pub(crate) fn replace_damage(&mut self, last: Record) -> Result<String> {
        let offset = self.damage.as_ref().map_or(self.end, |damage| damage.offset);
        let name = copy_aside(&self.dir, &self.file, offset)?;
        let part = format!("{NAME}.part");
        let (dir, path, last_good) = (self.dir.clone(), self.path.clone(), self.last.clone());
        let mut new = Journal {
            dir,
            path,
            file: self.copy_good_records(&part)?,
            is_new: false,
            end: self.end,
            last: last_good,
            high_water_mark: self.high_water_mark,
            damage: None,
            later: Vec::new(),
        };
        for record in std::mem::take(&mut self.later) {
            new.write(record)?;
        }
        new.write(written_now(last))?;
        new.file.sync_all().map_err(Error::io("syncing", self.dir.join(&part)))?;
        self.check_name()?;
        self.dir.rename(&part, NAME).map_err(Error::io("renaming", self.dir.join(&part)))?;
        self.dir.sync().map_err(Error::io("syncing", self.dir.path()))?;
        *self = new;
        Ok(name)
    }

    /// Creates the locked file `part` with the good records.
    fn copy_good_records(&self, part: &str) -> Result<File> {
        let written = |action: &'static str| Error::io(action, self.dir.join(part));
        self.dir.remove(part).map_err(written("removing"))?; // left by a process that was killed here
        let file = self.dir.open(part, Mode::New).map_err(written("creating"))?;
        if !file.lock_soon().map_err(written("locking"))? {
            return Err(Error::Locked { path: self.dir.path().into() });
        }
        let mut line = vec![0; RECORD];
        for at in (0..self.end / RECORD_BYTES).map(|number| number * RECORD_BYTES) {
            self.file.read_exact_at(&mut line, at).map_err(Error::io("reading", &self.path))?;
            file.write_all_at(&line, at)
                .map_err(|source| self.dir.write_error(source, &self.dir.join(part), self.end - at, "writing"))?;
        }
        Ok(file)
    }

    /// Removes an empty journal, unless the path leads to another file by now. With `tables`, which must not be without
    /// a journal, removes it only if this process created it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn remove_if_empty(self, tables: bool) -> Result<()> {
        let named = self.file.is_named(NAME).map_err(Error::io("reading the state of", &self.path))?;
        if self.last.is_none() && named && (self.is_new || !tables) && !self.has_rest()? {
            self.dir.remove(NAME).map_err(Error::io("removing", &self.path))?;
        }
        Ok(())
    }

    /// Appends a record and makes it durable. Fills in `sequence`, `machine`, `program`, `time`, `previous` and
    /// `blake3`.
    ///
    /// # Errors
    /// [`Error::Replaced`] if the file is no longer the journal that this process opened and wrote: nothing is written
    /// then. [`Error::Damage`] if the record is too long. [`Error::NoRoom`] or [`Error::Io`]: the run must stop then,
    /// because the durable state is unknown.
    pub(crate) fn append(&mut self, record: Record) -> Result<()> {
        self.check_unchanged()?;
        self.write(written_now(record))?;
        self.file.sync_data().map_err(Error::io("syncing", &self.path))
    }

    /// Links a record to the last one and writes it after it.
    fn write(&mut self, mut record: Record) -> Result<()> {
        record.sequence = self.last.as_ref().map_or(0, |last| last.sequence + 1);
        record.previous = self.last.as_ref().map_or_else(|| ZEROS.to_owned(), |last| last.blake3.clone());
        let json = unsealed_json(&mut record).map_err(|e| Error::io("writing a record of", &self.path)(e.into()))?;
        if json.len() >= RECORD {
            // This program's records fit. A record that another program wrote may have fields so long that the next
            // record, which repeats them, does not fit.
            let damage = Damage::RecordTooLong { needed: json.len() as u64 };
            return Err(Error::Damage { path: self.path.clone(), offset: self.end, damage });
        }
        let (line, hash) = seal(json);
        record.blake3 = hash;
        self.file.write_all_at(&line, self.end).map_err(|source| {
            let action = format!("writing {RECORD} bytes at offset {} of", self.end);
            self.dir.write_error(source, &self.path, RECORD_BYTES, &action)
        })?;
        self.end += RECORD as u64;
        self.high_water_mark = self.high_water_mark.max(record.extent());
        self.last = Some(record);
        Ok(())
    }

    /// Checks that the path still leads to this file.
    ///
    /// # Errors
    /// [`Error::Replaced`] if not; [`Error::Io`].
    fn check_name(&self) -> Result<()> {
        if self.file.is_named(NAME).map_err(Error::io("reading the state of", &self.path))? {
            return Ok(());
        }
        let what = "its path leads to another file now, or to none".into();
        Err(Error::Replaced { path: self.path.clone(), what })
    }

    /// Checks that the path still leads to this file, that its length is what this process left, and that it ends in
    /// the last record.
    ///
    /// # Errors
    /// [`Error::Replaced`] if not; [`Error::Io`].
    fn check_unchanged(&self) -> Result<()> {
        let io = |action: &'static str| Error::io(action, &self.path);
        let replaced = |what: String| Err(Error::Replaced { path: self.path.clone(), what });
        self.check_name()?;
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
    pub(crate) fn last(&self) -> Option<&Record> {
        self.last.as_ref()
    }

    /// Returns the maximum number of values and of escapes in any record ([`Contents::high_water_mark`]).
    pub(crate) fn high_water_mark(&self) -> Extent {
        self.high_water_mark
    }
}

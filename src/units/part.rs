//! The file of a unit in progress: locked, extended line by line, and renamed when the unit is complete.
//!
//! A seal states the hash of all lines before it. A process that continues the unit keeps the lines up to the last seal
//! that is right, so neither a half-written nor an altered line enters the result.
//!
//! Invariant: the process that holds the lock on `NAME.part` is the only one that writes it or renames it.

use super::machine::Spent;
use super::result::{End, Line, MAX_BYTES, UnitResult, result_name};
use crate::error::{Damage, Error, Result, UnitsReason};
use crate::storage::{Dir, File};
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The name of the file of a unit in progress.
pub(super) fn part_name(unit: &str) -> String {
    format!("{unit}.part")
}

/// A unit in progress.
pub(super) struct Part<'a> {
    dir: &'a Dir,
    unit: &'a str,
    file: File,
    written: Mutex<Written>,
}

/// The lines written so far.
#[derive(Clone, Default)]
struct Written {
    /// Number of bytes.
    length: u64,
    hasher: blake3::Hasher,
    /// Number of lines.
    lines: u64,
}

impl<'a> Part<'a> {
    /// Locks the file of a unit, and creates it if it does not exist. Returns `None` if the unit is complete.
    pub(super) fn begin(dir: &'a Dir, unit: &'a str) -> Result<Option<Part<'a>>> {
        let (name, result) = (part_name(unit), result_name(unit));
        let is_complete = || dir.length(&result).map(|length| length.is_some());
        let looking = || Error::io("reading", dir.join(&result));
        if is_complete().map_err(looking())? {
            return Ok(None);
        }
        let file = dir.open_locked(&name, 1)?;
        // Another process may have completed the unit before the file was locked here.
        if is_complete().map_err(looking())? {
            dir.remove(&name).map_err(Error::io("removing", dir.join(&name)))?;
            return Ok(None);
        }
        let part = Part { dir, unit, file, written: Mutex::default() };
        // A process that was killed after the last line, or, on a network file system, one whose renaming is not seen
        // here yet.
        if UnitResult::parse(&part.bytes()?).is_ok_and(|complete| complete.name == unit) {
            part.rename()?;
            return Ok(None);
        }
        Ok(Some(part))
    }

    fn path(&self) -> PathBuf {
        self.dir.join(&part_name(self.unit))
    }

    /// The bytes of the file.
    ///
    /// # Errors
    /// [`Error::Damage`] if it is longer than a result can be; errors of reading.
    fn bytes(&self) -> Result<Vec<u8>> {
        let length = self.file.length().map_err(Error::io("reading the state of", self.path()))?;
        if length > MAX_BYTES {
            let damage = Damage::NotAResult { why: format!("the file is longer than {MAX_BYTES} bytes") };
            return Err(Error::Damage { path: self.path(), offset: 0, damage });
        }
        let mut bytes = Vec::new();
        self.file.reader().read_to_end(&mut bytes).map_err(Error::io("reading", self.path()))?;
        Ok(bytes)
    }

    /// Returns the lines that earlier processes left, up to the last seal that is right, and removes all others.
    pub(super) fn resume(&mut self) -> Result<Vec<Line>> {
        let bytes = self.bytes()?;
        let (mut read, mut written) = (Written::default(), Written::default());
        let (mut lines, mut sealed) = (Vec::new(), 0);
        for text in bytes.split_inclusive(|&byte| byte == b'\n').filter(|text| text.ends_with(b"\n")) {
            let Ok(line) = serde_json::from_slice(text) else { break };
            let is_right = matches!(&line, Line::Seal(seal) if *seal == read.seal(seal.spent));
            read.add(text);
            lines.push(line);
            if is_right {
                (written, sealed) = (read.clone(), lines.len());
            }
        }
        lines.truncate(sealed);
        self.truncate(written)?;
        Ok(lines)
    }

    /// Removes all lines.
    pub(super) fn clear(&mut self) -> Result<()> {
        self.truncate(Written::default())
    }

    fn truncate(&mut self, written: Written) -> Result<()> {
        self.file.set_length(written.length).map_err(Error::io("truncating", self.path()))?;
        self.written = Mutex::new(written);
        Ok(())
    }

    /// Appends a line.
    pub(super) fn push(&self, line: &Line) -> Result<()> {
        self.append(&mut self.lock(), &encoded(line))
    }

    /// Appends a line, and a seal with these times, after which another process can continue.
    pub(super) fn push_sealed(&self, line: &Line, spent: Spent) -> Result<()> {
        let mut written = self.lock();
        let mut bytes = encoded(line);
        let mut with_line = written.clone();
        with_line.add(&bytes);
        bytes.extend(encoded(&Line::Seal(with_line.seal(spent))));
        self.append(&mut written, &bytes)
    }

    /// Appends a seal with these times.
    pub(super) fn seal(&self, spent: Spent) -> Result<()> {
        let mut written = self.lock();
        let seal = encoded(&Line::Seal(written.seal(spent)));
        self.append(&mut written, &seal)
    }

    /// Appends the last line and renames the file, durably.
    pub(super) fn finish(self, spent: Spent) -> Result<()> {
        let mut written = self.lock();
        let end = encoded(&Line::End(written.seal(spent)));
        self.append(&mut written, &end)?;
        drop(written);
        self.rename()
    }

    /// Renames the file of the complete unit, durably. Where the file system does not keep locks, another process may
    /// have written to the same file, which is then not a result, or may have completed the unit, whose result stays.
    fn rename(&self) -> Result<()> {
        let (name, result) = (part_name(self.unit), result_name(self.unit));
        let refuse = |why| Error::Units { path: self.path(), why: UnitsReason::NotAlone { why } };
        let bytes = self.dir.read(&name).map_err(Error::io("reading", self.path()))?;
        UnitResult::parse(&bytes).map_err(refuse)?;
        self.file.sync_all().map_err(Error::io("writing", self.path()))?;
        let renaming = || Error::io("renaming", self.path());
        if self.dir.length(&result).map_err(renaming())?.is_some() {
            return Err(refuse(format!("{result} exists already")));
        }
        self.dir.rename(&name, &result).map_err(renaming())?;
        self.dir.sync().map_err(renaming())
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends whole lines.
    fn append(&self, written: &mut Written, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all_at(bytes, written.length)
            .map_err(|source| self.dir.write_error(source, &self.path(), bytes.len() as u64, "writing"))?;
        written.add(bytes);
        Ok(())
    }
}

/// Returns a line as bytes.
fn encoded(line: &Line) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(line).expect("numbers and text are JSON");
    bytes.push(b'\n');
    bytes
}

impl Written {
    /// Adds whole lines.
    fn add(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        self.hasher.update(bytes);
        self.lines += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
    }

    /// Returns the seal, or the last line, that follows these lines.
    fn seal(&self, spent: Spent) -> End {
        End { lines: self.lines, spent, digest: self.hasher.finalize().to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::Plan;
    use super::super::result::{Head, Session};
    use super::*;
    use crate::survey::Games;

    #[test]
    fn result_that_appears_while_a_unit_runs_stays() {
        let home = tempfile::tempdir().unwrap();
        let dir = Dir::at(home.path());
        let plan = Plan::survey(Games::List(vec!["0.77".into()]), 4096, 1).unwrap();
        let unit = &plan.units()[0];
        let part = Part::begin(&dir, unit.name()).unwrap().unwrap();
        part.push(&Line::Unit(Head::of(unit))).unwrap();
        part.push(&Line::Session(Session::now("scalar", 1, 0.0))).unwrap();
        let result = home.path().join(result_name(unit.name()));
        std::fs::write(&result, "other").unwrap();
        match part.finish(Spent::default()) {
            Err(Error::Units { why: UnitsReason::NotAlone { why }, .. }) => assert!(why.contains(".jsonl"), "{why}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(std::fs::read(&result).unwrap(), b"other");
        assert!(Part::begin(&dir, unit.name()).unwrap().is_none(), "the unit is complete");
    }
}

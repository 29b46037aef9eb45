//! The file of a unit in progress: locked, extended line by line, and renamed when the unit is complete.
//!
//! Invariant: the process that holds the lock on `NAME.part` is the only one that writes it or renames it.

use super::machine::Spent;
use super::result::{End, Line};
use crate::error::{Error, Result};
use crate::storage::{Dir, File, Mode};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The name of the file of a complete unit.
pub(super) fn result_name(unit: &str) -> String {
    format!("{unit}.jsonl")
}

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
#[derive(Default)]
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
        loop {
            if is_complete().map_err(looking())? {
                return Ok(None);
            }
            let file = dir.open(&name, Mode::Make).map_err(Error::io("making", dir.join(&name)))?;
            if !file.lock_soon().map_err(Error::io("locking", dir.join(&name)))? {
                return Err(Error::Locked { path: dir.join(&name) });
            }
            // Another process may have renamed the file before it was locked here.
            if !matches!(file.is_named(&name), Ok(true)) {
                continue;
            }
            if is_complete().map_err(looking())? {
                dir.remove(&name).map_err(Error::io("removing", dir.join(&name)))?;
                return Ok(None);
            }
            return Ok(Some(Part { dir, unit, file, written: Mutex::default() }));
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.join(&part_name(self.unit))
    }

    /// Reads the lines that an interrupted process left, up to the first that `accept` refuses, and removes the rest.
    pub(super) fn resume(&mut self, mut accept: impl FnMut(Line) -> bool) -> Result<()> {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut self.file.reader(), &mut bytes).map_err(Error::io("reading", self.path()))?;
        let mut written = Written::default();
        for line in bytes.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n")) {
            if !serde_json::from_slice(line).is_ok_and(&mut accept) {
                break;
            }
            written.add(line);
        }
        self.file.set_length(written.length).map_err(Error::io("truncating", self.path()))?;
        self.written = Mutex::new(written);
        Ok(())
    }

    /// Appends a line.
    pub(super) fn push(&self, line: &Line) -> Result<()> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = serde_json::to_vec(line).expect("numbers and text are JSON");
        bytes.push(b'\n');
        self.file.write_all_at(&bytes, written.length).map_err(Error::io("writing", self.path()))?;
        written.add(&bytes);
        Ok(())
    }

    /// Appends the last line and renames the file, durably.
    pub(super) fn finish(self, spent: Spent) -> Result<()> {
        let end = {
            let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
            End { lines: written.lines, spent, digest: written.hasher.finalize().to_string() }
        };
        self.push(&Line::End(end))?;
        self.file.sync_all().map_err(Error::io("writing", self.path()))?;
        let result = result_name(self.unit);
        let renaming = || Error::io("renaming", self.path());
        self.dir.rename(&part_name(self.unit), &result).map_err(renaming())?;
        self.dir.sync().map_err(renaming())
    }
}

impl Written {
    fn add(&mut self, line: &[u8]) {
        self.length += line.len() as u64;
        self.hasher.update(line);
        self.lines += 1;
    }
}

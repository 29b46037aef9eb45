//! Opens a run to read it, while another process may continue it.

use super::spot_checks;
use crate::checkpoint::journal::{self, CommitPoint, Contents, Record};
use crate::checkpoint::summary::DiscardSummary;
use crate::error::{Error, Result};
use crate::solver::{SequenceStats, SparseSpace};
use crate::storage::Dir;
use crate::table::Table;
use crate::theory::definition::Sequence;
use crate::theory::rule::Rule;
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// A run directory opened for reading: the committed part, without lock or write permission.
///
/// A sequence as well. While it is read, the run may go on and free values: whatever was read is handed out only when the
/// journal still says that it is kept.
#[derive(Debug)]
pub struct RunReader {
    /// The game.
    pub rule: Rule,
    /// The journal.
    pub contents: Contents,
    /// The table.
    pub table: Table,
    dir: Dir,
    /// How many good records the journal held when it was last read, and what it says is freed.
    followed: Mutex<(u64, Range<u64>)>,
}

impl RunReader {
    /// Opens the run in `dir`.
    ///
    /// # Errors
    /// What reading journal and table gives; [`Error::Damage`] when the journal's game is none.
    pub fn open(dir: &Path) -> Result<RunReader> {
        RunReader::open_in(&Dir::at(dir))
    }

    /// [`RunReader::open`] on any storage.
    ///
    /// # Errors
    /// As [`RunReader::open`].
    pub fn open_in(dir: &Dir) -> Result<RunReader> {
        let contents = journal::read_in(dir)?;
        let rule = rule_of(dir.path(), &contents.last)?;
        let Record { width, count, escapes, .. } = contents.last;
        let mut table = Table::open_in(dir, width, count, escapes, false)?;
        let freed = contents.last.freed().unwrap_or(0..0);
        table.free(freed.clone());
        let followed = Mutex::new((contents.records, freed));
        Ok(RunReader { rule, contents, table, dir: dir.clone(), followed })
    }

    /// The sparse space that the run uses.
    #[must_use]
    pub fn space(&self) -> SparseSpace {
        space_of(&self.rule, &self.contents.last)
    }

    /// What is known of the values that the run has freed.
    ///
    /// # Errors
    /// What reading the snapshot gives.
    pub fn freed_known(&self) -> Result<SequenceStats> {
        let snapshot = DiscardSummary::read_in(&self.dir, &self.contents.last)?;
        Ok(snapshot.as_ref().map(DiscardSummary::known).unwrap_or_default())
    }

    /// Recomputes the suspect value by the definition, if the run has one and no value is freed.
    ///
    /// # Errors
    /// [`Error::Differs`] if the definition gives another value, and what reading the values gives.
    pub fn check_suspect(&self) -> Result<()> {
        match self.contents.last.suspect {
            Some(n) if n < self.len() && self.freed().is_empty() => spot_checks::compare(&self.rule, self, n),
            _ => Ok(()),
        }
    }

    /// Checks that the run has not freed these values since it was opened.
    fn still_there(&self, from: u64, to: u64) -> Result<()> {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if journal::is_another_in(&self.dir, followed.0)? {
            let Contents { last, points, records, .. } = journal::read_in(&self.dir)?;
            let ours = |point: &&CommitPoint| point.count == self.table.len();
            let digest = points.iter().find(ours).map(|point| point.digest.to_string());
            if digest.as_ref() != Some(&self.contents.last.digest) {
                let what = "the run went back while it was read; read it again".into();
                return Err(Error::Damage { path: self.dir.join(journal::NAME), offset: 0, what });
            }
            *followed = (records, last.freed().unwrap_or(0..0));
        }
        let hole = &followed.1;
        if from.max(hole.start) < to.min(hole.end) {
            return Err(Error::Freed { from, to, hole: (hole.start, hole.end), heap: None });
        }
        Ok(())
    }
}

impl Sequence for RunReader {
    fn len(&self) -> u64 {
        self.table.len()
    }

    fn freed(&self) -> Range<u64> {
        self.table.freed()
    }

    fn saturated_bytes(&self) -> Option<&[u8]> {
        self.table.saturated_bytes()
    }

    fn read(&self, from: u64, out: &mut [u16]) -> Result<()> {
        let to = from.saturating_add(out.len() as u64);
        // Before as well: on a tmpfs that is full, to read a hole through a map is to die of it (SIGBUS).
        self.still_there(from, to)?;
        self.table.read(from, out)?;
        self.still_there(from, to)
    }
}

/// The rule of a record, which must parse and have the digest that stands there.
pub(super) fn rule_of(dir: &Path, record: &Record) -> Result<Rule> {
    let rule: Rule = record.game.parse().map_err(|_| Error::Damage {
        path: dir.join(journal::NAME),
        offset: 0,
        what: format!("'{}' is no game of this program", record.game.escape_default()),
    })?;
    check_rule(dir, &rule, record)?;
    Ok(rule)
}

pub(super) fn check_rule(dir: &Path, rule: &Rule, record: &Record) -> Result<()> {
    if rule.name() != record.game || rule.digest() != record.rule {
        let found = record.game.escape_default().to_string();
        return Err(Error::Mismatch { path: dir.into(), what: "the game", found, expected: rule.name().into() });
    }
    Ok(())
}

/// The space of a record; [`SparseSpace::NONE`] when it has none.
pub(crate) fn space_of(rule: &Rule, record: &Record) -> SparseSpace {
    SparseSpace::new(rule, record.mask, record.position).unwrap_or(SparseSpace::NONE)
}

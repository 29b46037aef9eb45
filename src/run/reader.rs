//! Opens a run to read it, while another process may continue it.

use super::spot_checks;
use crate::checkpoint::journal::{self, CommitPoint, Contents, Record};
use crate::checkpoint::summary::DiscardSummary;
use crate::error::{Damage, Error, Result};
use crate::solver::{SequenceStats, SparseSpace};
use crate::storage::Dir;
use crate::table::TableReader;
use crate::table::digest::{Digest, DigestChain};
use crate::theory::definition::{Sequence, for_each_piece};
use crate::theory::nimber::index;
use crate::theory::rule::Rule;
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// A run directory opened for reading: the committed values, without a lock and without write permission.
///
/// It implements [`Sequence`]. The run may continue meanwhile and discard values: a read returns values only if the
/// journal still lists them as retained afterwards.
#[derive(Debug)]
pub struct RunReader {
    /// The game.
    pub rule: Rule,
    /// The journal.
    pub contents: Contents,
    /// The table.
    pub table: TableReader,
    dir: Dir,
    /// Number of good records when the journal was last read, and the discarded values at that time.
    followed: Mutex<(u64, Range<u64>)>,
}

impl RunReader {
    /// Opens the run in `dir`, a path or a directory on any storage.
    ///
    /// # Errors
    /// The errors of reading journal and table; [`Error::Damage`] if the journal names no game of this program.
    pub fn open(dir: impl Into<Dir>) -> Result<RunReader> {
        let dir = dir.into();
        let contents = journal::read(&dir)?;
        let rule = rule_of(dir.path(), &contents.last)?;
        let mut table = TableReader::open(&dir, contents.last.width, contents.last.extent())?;
        let discarded = contents.last.discarded().unwrap_or(0..0);
        table.refuse_discarded(discarded.clone());
        let followed = Mutex::new((contents.records, discarded));
        Ok(RunReader { rule, contents, table, dir, followed })
    }

    /// The values G(n) for n in `range`.
    ///
    /// # Errors
    /// [`Error::Range`] if the range is not part of the committed values, [`Error::Discarded`] if some of them have
    /// been discarded, [`Error::Memory`] if they do not fit in memory, and any error of reading the files.
    ///
    /// ```
    /// # let home = tempfile::tempdir()?;
    /// # let dir = &home.path().join("kayles");
    /// # grundy::Run::builder(&"kayles".parse()?, dir).to(5000).run()?;
    /// let run = grundy::RunReader::open(dir)?;
    /// assert_eq!(run.values(0..12)?, [0, 1, 2, 3, 1, 4, 3, 2, 1, 4, 2, 6]);
    /// assert!(run.values(4990..5001).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn values(&self, range: Range<u64>) -> Result<Vec<u16>> {
        self.require(range.start, range.end)?;
        let count = range.end - range.start;
        let mut values = Vec::new();
        values
            .try_reserve_exact(index(count))
            .map_err(|_| Error::Memory { what: "the values", bytes: count.saturating_mul(2) })?;
        values.resize(index(count), 0);
        self.read(range.start, &mut values)?;
        Ok(values)
    }

    /// The sparse space that the run uses.
    #[must_use]
    pub fn space(&self) -> SparseSpace {
        space_of(&self.rule, &self.contents.last)
    }

    /// The summary of the discarded values; `None` if there are none.
    ///
    /// # Errors
    /// The errors of reading the summary, and [`Error::Discarded`] if the run has discarded more values since it was
    /// opened and removed this summary.
    pub fn discard_summary(&self) -> Result<Option<DiscardSummary>> {
        DiscardSummary::read(&self.dir, &self.contents.last).or_else(|error| {
            self.still_there(self.discarded().end, self.len())?;
            Err(error)
        })
    }

    /// Statistics of the discarded values.
    ///
    /// # Errors
    /// Those of [`RunReader::discard_summary`].
    pub fn discarded_stats(&self) -> Result<SequenceStats> {
        let summary = self.discard_summary()?;
        Ok(summary.as_ref().map(DiscardSummary::known).unwrap_or_default())
    }

    /// Digest of the values before n ([`crate::table::digest`]); `None` if it depends on discarded values that no
    /// summary covers, or the run has fewer values.
    ///
    /// # Errors
    /// The errors of reading the summary and the values.
    pub(crate) fn digest_before(&self, n: u64) -> Result<Option<Digest>> {
        let summary = self.discard_summary()?;
        let chain = match &summary {
            Some(summary) if n > summary.from => summary.digest().map(|digest| DigestChain::resume(summary.to, digest)),
            _ => Some(DigestChain::new()),
        };
        let Some(mut chain) = chain.filter(|chain| chain.count() <= n && n <= self.len()) else { return Ok(None) };
        for_each_piece(self, chain.count(), n, |_, values| {
            chain.update(values);
            Ok(())
        })?;
        Ok(Some(chain.digest()))
    }

    /// Recomputes the suspect value by the definition, if the run has one and no values are discarded.
    ///
    /// # Errors
    /// [`Error::Differs`] if the definition gives another value, and the errors of reading the values.
    pub fn check_suspect(&self) -> Result<()> {
        match self.contents.last.suspect {
            Some(n) if n < self.len() && self.discarded().is_empty() => spot_checks::compare(&self.rule, self, n),
            _ => Ok(()),
        }
    }

    /// Checks that the run has not discarded these values since it was opened.
    fn still_there(&self, from: u64, to: u64) -> Result<()> {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if journal::has_changed_since(&self.dir, followed.0)? {
            let Contents { last, points, records, .. } = journal::read(&self.dir)?;
            let ours = |point: &&CommitPoint| point.count == self.table.len();
            let digest = points.iter().find(ours).map(|point| point.digest.to_string());
            if digest.as_ref() != Some(&self.contents.last.digest) {
                let path = self.dir.join(journal::NAME);
                return Err(Error::Damage { path, offset: 0, damage: Damage::WentBack });
            }
            *followed = (records, last.discarded().unwrap_or(0..0));
        }
        let hole = &followed.1;
        if from.max(hole.start) < to.min(hole.end) {
            return Err(Error::Discarded { from, to, hole: (hole.start, hole.end), heap: None });
        }
        Ok(())
    }
}

impl Sequence for RunReader {
    fn len(&self) -> u64 {
        self.table.len()
    }

    fn discarded(&self) -> Range<u64> {
        self.table.discarded()
    }

    /// Also checks that the run has not discarded them since it was opened.
    fn require(&self, from: u64, to: u64) -> Result<()> {
        self.table.require(from, to)?;
        self.still_there(from, to)
    }

    /// The caller checks with [`Sequence::require`], after it has read the bytes, that none was discarded meanwhile.
    fn saturated_bytes(&self) -> Option<&[u8]> {
        self.table.saturated_bytes()
    }

    fn read(&self, from: u64, out: &mut [u16]) -> Result<()> {
        let to = from.saturating_add(out.len() as u64);
        // Also before the read: on a full tmpfs, reading a hole through a map raises SIGBUS.
        self.still_there(from, to)?;
        self.table.read(from, out)?;
        self.still_there(from, to)
    }
}

/// The rule of a record, which must parse and have the digest that the record states.
pub(super) fn rule_of(dir: &Path, record: &Record) -> Result<Rule> {
    let rule: Rule = record.game.parse().map_err(|_| Error::Damage {
        path: dir.join(journal::NAME),
        offset: 0,
        damage: Damage::UnknownGame { game: record.game.escape_default().to_string() },
    })?;
    check_rule(dir, &rule, record)?;
    Ok(rule)
}

pub(super) fn check_rule(dir: &Path, rule: &Rule, record: &Record) -> Result<()> {
    let differs = |what, found: &str, expected: &str| {
        let (found, expected) = (found.escape_default().to_string(), expected.into());
        Err(Error::Mismatch { path: dir.into(), what, found, expected })
    };
    if rule.name() != record.game {
        return differs("the game", &record.game, rule.name());
    }
    if rule.digest() != record.rule {
        return differs("the digest of the rule", &record.rule, &rule.digest());
    }
    Ok(())
}

/// The sparse space that a record states. `None` where it states none: the definition, which uses no space, may have
/// computed the last values.
pub(crate) fn known_space(rule: &Rule, record: &Record) -> Option<SparseSpace> {
    Some(space_of(rule, record)).filter(|&space| space != SparseSpace::NONE)
}

/// The sparse space of a record; [`SparseSpace::NONE`] if it has none.
pub(crate) fn space_of(rule: &Rule, record: &Record) -> SparseSpace {
    SparseSpace::new(rule, record.mask, record.position).unwrap_or(SparseSpace::NONE)
}

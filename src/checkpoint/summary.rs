//! Statistics of the values: of all values for the commit records, and of discarded values for their summary.
//!
//! The discard summary of a run, `snapshot-COUNT.json`, describes its discarded values: their range, the digest of all
//! values up to the end of that range, and the rare positions, running maxima and histogram of the range. It also
//! states the digest of the head, the values before that range, so that the loss of the record that states it costs no
//! values. It is written under a temporary name, made durable and renamed before a record names it and its BLAKE3. It
//! is removed when two records name a later summary.
//!
//! Invariant: a summary that [`DiscardSummary::read`] returns has the hash that the record states, and agrees with the
//! record and with itself.

use crate::checkpoint::journal::{Attached, CommitPoint, Record};
use crate::error::{Counters, Damage, Error, Result, SummaryDamage};
use crate::solver::{SequenceStats, SparseSpace};
use crate::storage::{Dir, Mode};
use crate::table::digest::Digest;
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::ops::Range;

/// The statistics of values that a record contains. Every resume recounts them and compares them with the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordStats {
    /// Number of rare positions.
    pub(crate) rares: u64,
    /// The last rare position; 0 if there is none.
    pub(crate) last_rare: u64,
    /// The largest value; 0 if there are no values.
    pub(crate) max_value: u16,
    /// The least n with G(n) = `max_value`.
    pub(crate) max_at: u64,
}

impl RecordStats {
    /// Adds the next values, which start at n = `from`.
    pub(crate) fn see(&mut self, space: SparseSpace, from: u64, values: &[u16]) {
        self.see_largest(from, values);
        for (n, _) in space.rare_positions(from, values) {
            self.rares += 1;
            self.last_rare = n;
        }
    }

    /// Adds the next values, which start at n = `from`, to the maximum only.
    pub(crate) fn see_largest(&mut self, from: u64, values: &[u16]) {
        let largest = values.iter().copied().max().unwrap_or(0);
        if largest > self.max_value {
            self.max_value = largest;
            self.max_at = from + values.iter().position(|&v| v == largest).unwrap_or(0) as u64;
        }
    }

    /// Returns the statistics of these values and of `later` ones together.
    pub(crate) fn and(self, later: RecordStats) -> RecordStats {
        let last_rare = if later.rares > 0 { later.last_rare } else { self.last_rare };
        let largest = if later.max_value > self.max_value { later } else { self };
        RecordStats { rares: self.rares + later.rares, last_rare, ..largest }
    }

    /// Returns the statistics that a record contains.
    fn of(record: &Record) -> RecordStats {
        let Record { rares, last_rare, max_value, max_at, .. } = *record;
        RecordStats { rares, last_rare, max_value, max_at }
    }

    /// Returns whether a record contains the same statistics.
    pub(crate) fn agrees(&self, record: &Record) -> bool {
        *self == RecordStats::of(record)
    }

    /// Returns the damage of a table with these statistics whose last record contains others.
    pub(crate) fn mismatch_with(&self, record: &Record) -> Damage {
        Damage::Counters { counted: self.counters(), stated: RecordStats::of(record).counters() }
    }

    fn counters(&self) -> Counters {
        let RecordStats { rares, last_rare, max_value, max_at } = *self;
        Counters { rares, last_rare, max_value, max_at }
    }
}

/// A summary of the discarded values of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscardSummary {
    /// The identity of the run.
    pub run: String,
    /// The first discarded n.
    pub from: u64,
    /// One past the last discarded n.
    pub to: u64,
    /// The values before the discarded ones; absent in the summaries of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Head>,
    /// Digest of the values 0..`to` ([`crate::table::digest`]).
    pub digest: String,
    /// Mask of the sparse space in which `rares` are rare.
    pub mask: u16,
    /// Position term of that space.
    pub position: u8,
    /// The discarded rare positions n, ascending, with G(n).
    pub rares: Vec<(u64, u16)>,
    /// The running maxima: every discarded n, ascending, whose value exceeds all earlier discarded values, with G(n).
    pub maxima: Vec<(u64, u16)>,
    /// Number of discarded values equal to 0, 1, 2, …
    pub histogram: Vec<u64>,
}

/// What a discard summary states of the head: the values before the discarded ones, all of which are retained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Number of escapes in the head; 0 in a table without escapes.
    pub escapes: u64,
    /// Digest of the head.
    pub digest: String,
}

/// Maximum length of a discard summary, in bytes: enough for 50 million rare positions.
const MAX_BYTES: u64 = 1 << 30;

/// Returns the file name of the summary of values discarded up to `to`.
fn name(to: u64) -> String {
    format!("snapshot-{to}.json")
}

impl DiscardSummary {
    /// Returns the summary of no values, to which the values from n = `from` on can be added.
    #[must_use]
    pub fn new(run: &str, space: SparseSpace, from: u64) -> DiscardSummary {
        DiscardSummary {
            run: run.into(),
            from,
            to: from,
            head: None,
            digest: String::new(),
            mask: space.mask,
            position: space.position,
            rares: Vec::new(),
            maxima: Vec::new(),
            histogram: Vec::new(),
        }
    }

    /// Adds the next values, before they are discarded.
    pub fn see(&mut self, space: SparseSpace, values: &[u16]) {
        self.rares.extend(space.rare_positions(self.to, values));
        for (n, &v) in (self.to..).zip(values) {
            if self.maxima.last().is_none_or(|&(_, largest)| v > largest) {
                self.maxima.push((n, v));
            }
            let v = usize::from(v);
            if v >= self.histogram.len() {
                self.histogram.resize(v + 1, 0);
            }
            self.histogram[v] += 1; // cannot overflow: at most the number of values
        }
        self.to += values.len() as u64;
    }

    /// Returns the range of discarded values.
    #[must_use]
    pub fn discarded(&self) -> Range<u64> {
        self.from..self.to
    }

    /// Returns the digest of the values 0..`to`; `None` if the field is no digest.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        self.digest.parse().ok()
    }

    /// Returns the head as a commit point; `None` if the summary does not state it.
    fn head_point(&self) -> Option<CommitPoint> {
        let head = self.head.as_ref()?;
        Some(CommitPoint { count: self.from, escapes: head.escapes, digest: head.digest.parse().ok()? })
    }

    /// Adds the head to the commit points of a journal, which ascend, if none of them states it: its record may be
    /// lost.
    pub(crate) fn add_head(&self, points: &mut Vec<CommitPoint>) {
        let Some(head) = self.head_point() else { return };
        if let Err(place) = points.binary_search_by_key(&head.count, |point| point.count) {
            points.insert(place, head);
        }
    }

    /// Returns the digest of the values before n, if the summary states it.
    pub(crate) fn digest_at(&self, n: u64) -> Option<Digest> {
        let head = || self.head_point().filter(|head| head.count == n).map(|head| head.digest);
        if n == self.to { self.digest() } else { head() }
    }

    /// Returns the statistics of the discarded values that a solver needs.
    #[must_use]
    pub fn known(&self) -> SequenceStats {
        let (max_at, max_value) = self.maxima.last().copied().unwrap_or_default();
        SequenceStats { rare_positions: self.rares.clone(), max_value, max_at }
    }

    /// Returns the statistics of the discarded values for a record.
    pub(crate) fn recount(&self) -> RecordStats {
        let last_rare = self.rares.last().map_or(0, |rare| rare.0);
        let (max_at, max_value) = self.maxima.last().copied().unwrap_or_default();
        RecordStats { rares: self.rares.len() as u64, last_rare, max_value, max_at }
    }

    /// Writes the summary durably. Returns its name and hash for the record that refers to it.
    ///
    /// # Errors
    /// [`Error::Memory`] if it is too long; [`Error::Io`].
    pub(crate) fn write(&self, dir: &Dir) -> Result<Attached> {
        let name = name(self.to);
        let io = |source: std::io::Error| Error::io("writing", dir.join(&name))(source);
        let mut bytes = serde_json::to_vec(self).map_err(|e| io(e.into()))?;
        bytes.push(b'\n');
        if bytes.len() as u64 > MAX_BYTES {
            return Err(Error::Memory { what: "the summary of the discarded values", bytes: bytes.len() as u64 });
        }
        dir.write_whole(&name, &bytes)?;
        Ok(Attached { name, blake3: blake3::hash(&bytes).to_hex().to_string() })
    }

    /// Reads the summary that a record names, in a run directory given by its path or on any storage. Returns `None` if
    /// the record names none, because no values are discarded.
    ///
    /// # Errors
    /// [`Error::Damage`] if the file is missing or altered, or if it contradicts the record or itself; [`Error::Io`].
    pub fn read(dir: impl Into<Dir>, record: &Record) -> Result<Option<DiscardSummary>> {
        let dir = dir.into();
        let discarded = record.discarded().unwrap_or(0..0);
        let Some(attached) = &record.snapshot else { return Ok(None) };
        let path = dir.join(&name(discarded.end));
        let damaged = |damage| Error::Damage { path: path.clone(), offset: 0, damage: Damage::Summary(damage) };
        if attached.name != name(discarded.end) {
            return Err(damaged(SummaryDamage::Name));
        }
        // Bound the length and check the hash before reading the whole file into memory.
        let mut hasher = blake3::Hasher::new();
        let file = dir.open(&attached.name, Mode::Read).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => damaged(SummaryDamage::Missing),
            _ => Error::io("reading", &path)(source),
        })?;
        if file.length().map_err(Error::io("reading the state of", &path))? > MAX_BYTES {
            return Err(damaged(SummaryDamage::TooLong));
        }
        hasher.update_reader(file.reader()).map_err(Error::io("reading", &path))?;
        if hasher.finalize().to_hex().as_str() != attached.blake3 {
            return Err(damaged(SummaryDamage::Hash));
        }
        let mut bytes = Vec::new();
        file.reader().take(MAX_BYTES).read_to_end(&mut bytes).map_err(Error::io("reading", &path))?;
        let summary: DiscardSummary =
            serde_json::from_slice(&bytes).map_err(|_| damaged(SummaryDamage::NotASummary))?;
        let fits = summary.discarded() == discarded
            && summary.run == record.run
            && (summary.mask, summary.position) == (record.mask, record.position)
            && summary.digest().is_some()
            && summary.head.is_some() == summary.head_point().is_some();
        if !fits {
            return Err(damaged(SummaryDamage::Journal));
        }
        match summary.contradiction() {
            None => Ok(Some(summary)),
            Some(what) => Err(damaged(SummaryDamage::Contradiction(what))),
        }
    }

    /// Returns what cannot be true of the discarded values, if anything. A summary with the right hash may still be
    /// forged.
    fn contradiction(&self) -> Option<&'static str> {
        let among = |positions: &[(u64, u16)]| {
            positions.iter().all(|(n, _)| self.discarded().contains(n)) && positions.is_sorted_by(|a, b| a.0 < b.0)
        };
        let occurs = |&(_, v): &(u64, u16)| self.histogram.get(usize::from(v)).is_some_and(|&number| number > 0);
        let sum = self.histogram.iter().try_fold(0u64, |sum, &number| sum.checked_add(number));
        let largest = self.histogram.iter().rposition(|&number| number > 0);
        if self.histogram.len() > 1 << 16 || sum != Some(self.to - self.from) {
            return Some("the histogram does not count every freed value once");
        }
        if !among(&self.rares) || !self.rares.iter().all(occurs) {
            return Some("the rare positions are not ascending freed positions");
        }
        let rising = self.maxima.is_sorted_by(|a, b| a.1 < b.1);
        let begins = self.maxima.first().map(|maximum| maximum.0) == Some(self.from);
        if !among(&self.maxima) || !self.maxima.iter().all(occurs) || !rising || !begins {
            return Some("the maxima do not rise from the first freed value on");
        }
        if self.maxima.last().map(|maximum| usize::from(maximum.1)) != largest {
            return Some("the last maximum is not the largest value of the histogram");
        }
        None
    }
}

/// Removes the discard summaries of a directory, finished or not, that are not among `named`.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn remove_others(dir: &Dir, named: &[&Attached]) -> Result<()> {
    for text in dir.names().map_err(Error::io("reading", dir.path()))? {
        let number = text.strip_prefix("snapshot-").and_then(|rest| rest.split_once(".json"));
        let ours = number
            .is_some_and(|(digits, rest)| digits.bytes().all(|c| c.is_ascii_digit()) && matches!(rest, "" | ".part"));
        if ours && named.iter().all(|attached| attached.name != text) {
            dir.remove(&text).map_err(Error::io("removing", dir.join(&text)))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

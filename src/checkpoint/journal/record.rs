//! What a commit record says, and its line in the journal.

#[cfg(doc)]
use super::{Contents, Journal};
use super::{FORMAT, RECORD};
use crate::fault;
use crate::table::digest::{Digest, DigestChain, SEGMENT};
use crate::table::{Extent, Width};
use crate::theory::rule::Rule;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Why a record was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    /// A process is about to write values: it created the run, reopened it after a clean stop, or restarts from the
    /// committed values after a failed check.
    Open,
    /// Values were added, values were discarded, or `keep` or `too_large` changed.
    Commit,
    /// The run returned to an equal or smaller count: to an earlier commit, after damage of the journal, or to correct
    /// false counters.
    Rollback,
    /// Values that had been altered on the disk were recomputed, found to agree with the journal, and restored.
    Repair,
    /// The run was stopped cleanly: the headers and the lengths of the files agree with the previous commit. After a
    /// rollback the files stay as long as before, until the run passes its high-water mark again
    /// ([`Contents::high_water_mark`]).
    Close,
}

/// One commit record: one field per JSON key, in the order of the keys in the line, `blake3` last. The fields are not
/// grouped, because the JSON object of a line is flat and its bytes are hashed.
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
    /// `count`, if G(`count`) is known to be above 65535, so that the run cannot continue; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub too_large: Option<u64>,
    /// Number of checks of each kind since the run was created.
    pub checks: Checks,
    /// Number of failed checks since the run was created. A range of values that was restored, damage of the journal,
    /// and false counters count as one each.
    pub errors: u64,
    /// The n whose value failed a check, until G(n) has been recomputed.
    pub suspect: Option<u64>,
    /// The name of the kernel in use; `unknown` in the first record after a lost one.
    pub kernel: String,
    /// How the next values are computed, and why ([`crate::solver::Strategy`]); absent in the first record of a run,
    /// and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// The class of the machine that wrote the record, and computed the values that it adds: its architecture and
    /// processor model. `Journal::append` sets it; absent in records of earlier versions, and in the first record after
    /// a lost one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Program, version, commit and target that wrote the record ([`crate::PROGRAM`]).
    pub program: String,
    /// When the record was written: UTC, RFC 3339, in seconds. `Journal::append` sets it.
    pub time: String,
    /// Computing time of the run up to this record, over all processes, in seconds.
    pub seconds: u64,
    /// `blake3` of the previous record; zeros in the first record.
    pub previous: String,
    /// BLAKE3 of this record, computed with spaces in the place of these 64 digits.
    pub blake3: String,
}

/// A kind of check that a run counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// Values proved by witnesses.
    Witnessed,
    /// Values computed from all pairs, because no sparse space was in use.
    Definition,
    /// Exhaustive searches after a witness search that found nothing.
    ExhaustiveSearches,
    /// Values computed again by another kernel.
    Audited,
    /// New maxima proved from all pairs.
    ProvedMaxima,
    /// Spot checks.
    SpotChecks,
    /// Comparisons of memory with its checksums.
    Memory,
    /// Values hashed from the disk by a resume.
    Rehashed,
    /// Damaged ranges that were restored.
    Repaired,
}

impl Check {
    /// Returns the key in the record.
    fn key(self) -> &'static str {
        match self {
            Check::Witnessed => "witnessed",
            Check::Definition => "definition",
            Check::ExhaustiveSearches => "walks",
            Check::Audited => "audited",
            Check::ProvedMaxima => "settled",
            Check::SpotChecks => "places",
            Check::Memory => "memory",
            Check::Rehashed => "rehashed",
            Check::Repaired => "repaired",
        }
    }
}

/// Number of checks of each kind since a run was created. A count with a key that this program does not know, from
/// another version, is carried on unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Checks(BTreeMap<String, u64>);

impl Checks {
    /// Adds to a count. The earlier count comes from a file, so the sum saturates.
    pub(crate) fn add(&mut self, check: Check, number: u64) {
        let count = self.0.entry(check.key().into()).or_default();
        *count = count.saturating_add(number);
    }

    /// Returns the count with this key; `None` if the record has none.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<u64> {
        self.0.get(key).copied()
    }
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
    /// Returns the first record of a new run: no values, and a random identity. The caller fills in what else is known,
    /// and `Journal::append` the fields that link records.
    #[must_use]
    pub fn first(rule: &Rule, width: Width) -> Record {
        Record {
            format: FORMAT,
            run: new_identity(),
            game: rule.name().into(),
            rule: rule.digest(),
            sequence: 0,
            event: Event::Open,
            count: 0,
            escapes: 0,
            width,
            mask: 0,
            position: 0,
            kept: kept(0, &(0..0)),
            keep: None,
            snapshot: None,
            digest: DigestChain::new().digest().to_string(),
            rares: 0,
            last_rare: 0,
            max_value: 0,
            max_at: 0,
            too_large: None,
            checks: Checks::default(),
            errors: 0,
            suspect: None,
            kernel: String::new(),
            strategy: None,
            machine: None,
            program: crate::PROGRAM.into(),
            time: String::new(),
            seconds: 0,
            previous: String::new(),
            blake3: String::new(),
        }
    }

    /// Returns the number of committed values and escapes.
    #[must_use]
    pub fn extent(&self) -> Extent {
        Extent { values: self.count, escapes: self.escapes }
    }

    /// Returns the digest of the committed values; `None` if the field is no digest.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        self.digest.parse().ok()
    }

    /// Returns the table as this record describes it; `digest` is that of the record.
    pub(super) fn point(&self, digest: Digest) -> CommitPoint {
        CommitPoint { count: self.count, escapes: self.escapes, digest }
    }

    /// Returns the range of discarded values: whole segments between the head and the last values, or an empty range if
    /// none are discarded. Returns `None` if `kept` and `snapshot` are inconsistent.
    #[must_use]
    pub fn discarded(&self) -> Option<Range<u64>> {
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

/// Returns a random identity of 128 bits, as 32 hexadecimal digits; not a secret.
fn new_identity() -> String {
    let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seconds.as_nanos().to_le_bytes());
    hasher.update(&std::process::id().to_le_bytes());
    hasher.update(format!("{:p}", &raw const hasher).as_bytes());
    hasher.finalize().to_hex()[..32].to_owned()
}

/// Returns the retained ranges of `count` values when the range `discarded` is discarded.
#[must_use]
pub(crate) fn kept(count: u64, discarded: &Range<u64>) -> Vec<(u64, u64)> {
    if discarded.is_empty() { vec![(0, count)] } else { vec![(0, discarded.start), (discarded.end, count)] }
}

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

/// Consecutive values that one kernel computed on one class of machines. They begin where those of the origin before
/// end, or at n = 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// One past the last n.
    pub to: u64,
    /// The kernel.
    pub kernel: String,
    /// The class of the machine; null if no record states it.
    pub machine: Option<String>,
}

impl Origin {
    /// Returns the kernels of a list, each once, in the order of their first values.
    #[must_use]
    pub fn kernels(list: &[Origin]) -> Vec<String> {
        distinct(list.iter().map(|origin| origin.kernel.clone()))
    }

    /// Returns the machines of a list, each once, in the order of their first values.
    #[must_use]
    pub fn machines(list: &[Origin]) -> Vec<Option<String>> {
        distinct(list.iter().map(|origin| origin.machine.clone()))
    }

    /// Changes a list to that after the record that follows.
    pub(super) fn follow(list: &mut Vec<Origin>, record: &Record) {
        let &Record { count, ref kernel, ref machine, .. } = record;
        let last =
            list.last_mut().filter(|last| last.to >= count || (&last.kernel, &last.machine) == (kernel, machine));
        match last {
            Some(last) if last.to < count => last.to = count,
            Some(_) => {
                let before = list.partition_point(|origin| origin.to < count);
                list.truncate(before + 1);
                list[before].to = count;
                list.retain(|origin| origin.to > 0);
            }
            None if count > 0 => list.push(Origin { to: count, kernel: kernel.clone(), machine: machine.clone() }),
            None => {}
        }
    }
}

fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for one in all {
        if !seen.contains(&one) {
            seen.push(one);
        }
    }
    seen
}

/// Spaces in the place of the hash of a record.
const BLANK: &str = "                                                                ";
/// The hash before the first record.
pub(super) const ZEROS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Returns the JSON object of a record whose hash is blank.
pub(super) fn unsealed_json(record: &mut Record) -> serde_json::Result<Vec<u8>> {
    record.blake3 = BLANK.to_owned();
    serde_json::to_vec(&record)
}

/// Returns the line of a record, given its JSON object with a blank hash of fewer than [`RECORD`] bytes, and its hash.
pub(super) fn seal(mut line: Vec<u8>) -> (Vec<u8>, String) {
    let hash_at = line.len() - 2 - BLANK.len();
    line.resize(RECORD - 1, b' ');
    line.push(b'\n');
    let hash = blake3::hash(hashed(&line)).to_hex();
    line[hash_at..hash_at + BLANK.len()].copy_from_slice(hash.as_bytes());
    (line, hash.to_string())
}

/// Returns the hash of a record if it equals the hash that the record contains.
pub(super) fn own_hash(line: &[u8]) -> Option<String> {
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

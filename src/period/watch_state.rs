//! Saves the state of a watch in a file of the run directory, so that a stopped run still finds its period after it
//! is resumed.
//!
//! `watch.bin` is one line of JSON, followed by the values of the window as little-endian u16. It is written when a
//! watched run stops, after the last commit, and is valid only for that run at that length. A run that reached
//! another length without the watch (after a kill, or by a plain `run`) has witnesses of unknown depth; its watch
//! takes a new window.
//!
//! The journal does not cover this file. An altered file is ignored, because it contains the BLAKE3 hash of the whole.
//! What is proved with its help is computed again, at least in part, before the exact preperiod is reported
//! ([`super::preperiod`]).

use super::mark::Mark;
use super::sealed_values;
use crate::checkpoint::journal::Record;
use crate::error::Result;
use crate::run::{ProofSummary, RunReader, space_of};
use crate::storage::Dir;
use crate::table::files::WATCH;
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Maximum length of the first line, in bytes.
const LONGEST_LINE: u64 = 1024;
const FORMAT: &str = "grundy-watch-2";

/// The first line of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    format: String,
    run: String,
    /// Number of values of the run.
    count: u64,
    /// Digest of these values.
    digest: String,
    /// This field and the next three are those of [`Mark`] and its `proof`. The values after this line are its window.
    n1: u64,
    rares: u64,
    last_rare: u64,
    depth: u64,
    /// BLAKE3 of the file with this field empty.
    seal: String,
}

impl Line {
    fn belongs_to(&self, record: &Record) -> bool {
        let Line { format, run, count, digest, .. } = self;
        (format.as_str(), run, *count, digest) == (FORMAT, &record.run, record.count, &record.digest)
    }

    /// Returns the bytes of the file, with the seal filled in.
    fn file(&self, window: &[u16]) -> Vec<u8> {
        sealed_values::bytes(|seal| Line { seal, ..self.clone() }, window)
    }
}

/// Writes the mark of a run that has stopped.
///
/// # Errors
/// Errors of writing the file.
pub(super) fn write(dir: &Path, view: &RunReader, mark: &Mark) -> Result<()> {
    let Record { run, count, digest, .. } = view.contents.last.clone();
    let ProofSummary { rares, last_rare, depth, .. } = mark.proof;
    let (n1, format) = (mark.n1, FORMAT.into());
    let line = Line { format, run, count, digest, n1, rares, last_rare, depth, seal: String::new() };
    Dir::at(dir).write_whole(WATCH, &line.file(&mark.window))
}

/// Whether the retained values before `n1` end with those of `window`.
fn has_values_of(view: &RunReader, n1: u64, window: &[u16]) -> bool {
    let (retained, width) = (view.discarded().end, window.len() as u64);
    let Some(start) = n1.checked_sub(width) else { return false };
    let from = start.max(retained).min(n1);
    let mut values = vec![0; index(n1 - from)];
    view.read(from, &mut values).is_ok() && window.ends_with(&values)
}

/// Returns the saved mark; `None` unless an unaltered one was written when the run had exactly its current length, and
/// its window has the values of the run, as far as these are retained.
pub(super) fn read(dir: &Path, view: &RunReader) -> Option<Mark> {
    let most = view.contents.last.count.saturating_mul(2).saturating_add(LONGEST_LINE); // the window has values of the run
    let bytes = Dir::at(dir).read_at_most(WATCH, most).ok()?;
    let (line, window) = sealed_values::parse::<Line>(&bytes)?;
    if !line.belongs_to(&view.contents.last) || line.file(&window) != bytes {
        return None;
    }
    let Line { n1, rares, last_rare, depth, .. } = line;
    if !has_values_of(view, n1, &window) {
        return None;
    }
    let space = space_of(&view.rule, &view.contents.last);
    Mark::new(n1, ProofSummary { space, rares, last_rare, depth }, window)
}

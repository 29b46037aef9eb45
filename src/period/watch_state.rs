//! What a watch remembers, in a file of the run directory, so that a run that is stopped sees its period all the same.
//!
//! `watch.bin`: one line of JSON, then the values of the window as little-endian u16. It is written when a run under watch
//! stops, after the last commit, and belongs to that length of that run alone: whatever goes on from another length (after a
//! kill, after a plain `run`) has had witnesses that nobody watched, and takes a new window. It is none of the files that
//! the journal vouches for. An altered one is passed over, for it names the BLAKE3 of the whole; and what is proved with
//! its help is computed again from nothing before the preperiod is told ([`super::preperiod`]).

use super::watch::Mark;
use crate::checkpoint::journal::Record;
use crate::error::{Error, Result};
use crate::run::{RunReader, space_of};
use crate::storage::Dir;
use serde::{Deserialize, Serialize};
use std::path::Path;

const NAME: &str = "watch.bin";

/// Maximum length of the file, in bytes. A window of 48.5 million values, as in Grundy's game, takes 97 MB.
const MAX_BYTES: u64 = 1 << 30;
const FORMAT: &str = "grundy-watch-1";

/// The first line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    format: String,
    run: String,
    /// The length of the run, and the digest of its values.
    count: u64,
    digest: String,
    /// Of [`Mark`]; the window is that of the values before n1.
    n1: u64,
    rares: u64,
    last_rare: u64,
    depth: u64,
    odd: Vec<u64>,
    /// BLAKE3 of the file in which this is empty.
    seal: String,
}

impl Line {
    fn belongs_to(&self, record: &Record) -> bool {
        let Line { format, run, count, digest, .. } = self;
        (format.as_str(), run, *count, digest) == (FORMAT, &record.run, record.count, &record.digest)
    }

    /// The bytes of the file, sealed.
    fn file(mut self, window: &[u8]) -> Vec<u8> {
        let bytes = |line: &Line| {
            let mut bytes = serde_json::to_vec(line).expect("numbers and text are JSON");
            bytes.push(b'\n');
            bytes.extend_from_slice(window);
            bytes
        };
        self.seal = String::new();
        self.seal = blake3::hash(&bytes(&self)).to_hex().to_string();
        bytes(&self)
    }
}

/// Writes down what is remembered of a run that has stopped.
///
/// # Errors
/// What writing gives.
pub(super) fn write(dir: &Path, view: &RunReader, mark: &Mark) -> Result<()> {
    let Record { run, count, digest, .. } = view.contents.last.clone();
    let Mark { n1, rares, last_rare, depth, .. } = *mark;
    let (format, odd, seal) = (FORMAT.into(), mark.odd.clone(), String::new());
    let line = Line { format, run, count, digest, n1, rares, last_rare, depth, odd, seal };
    let window: Vec<u8> = mark.window.iter().flat_map(|v| v.to_le_bytes()).collect();
    Dir::at(dir).write_whole(NAME, &line.file(&window)).map_err(Error::io("writing", dir.join(NAME)))
}

/// What was written down when the run had just this length, if anything was.
pub(super) fn read(dir: &Path, view: &RunReader) -> Option<Mark> {
    let bytes = Dir::at(dir).read_at_most(NAME, MAX_BYTES).ok()?;
    let (line, window) = bytes.split_at(bytes.iter().position(|&b| b == b'\n')? + 1);
    let line: Line = serde_json::from_slice(line).ok()?;
    if !line.belongs_to(&view.contents.last) || line.clone().file(window) != bytes {
        return None;
    }
    let (values, rest) = window.as_chunks::<2>();
    let window: Vec<u16> = values.iter().map(|&v| u16::from_le_bytes(v)).collect();
    let Line { n1, rares, last_rare, depth, odd, .. } = line;
    let space = space_of(&view.rule, &view.contents.last);
    rest.is_empty().then(|| Mark::new(n1, space, (rares, last_rare), depth, window, odd)).flatten()
}

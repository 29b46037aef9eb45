//! The file `confirmed.json` of a run directory: what other computations confirm of the run.
//!
//! Invariant: an entry counts only if the journal states the digest that it names.

use super::manifest::Confirmation;
use crate::checkpoint::journal::CommitPoint;
use crate::error::{Damage, Error, Result};
use crate::storage::Dir;
use crate::survey::printable;
use std::io::ErrorKind;
use std::path::Path;

/// The name of the file.
const NAME: &str = "confirmed.json";

/// Maximum length of the file, in bytes.
const MAX_BYTES: u64 = 16 << 20;

fn read(dir: &Dir) -> Result<Vec<Confirmation>> {
    let bytes = match dir.read_at_most(NAME, MAX_BYTES) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        bytes => bytes.map_err(Error::io("reading", dir.join(NAME)))?,
    };
    serde_json::from_slice(&bytes).map_err(|error| {
        let damage =
            Damage::NotPublished { why: format!("not a list of confirmations: {}", printable(&error.to_string())) };
        Error::Damage { path: dir.join(NAME), offset: 0, damage }
    })
}

/// Returns what is noted in the directory of a run, as far as the digests are those of these commit points.
///
/// # Errors
/// [`Error::Damage`] if the file is not as [`record`] writes it; errors of reading.
pub fn confirmations(dir: &Path, points: &[CommitPoint]) -> Result<Vec<Confirmation>> {
    let mut all = read(&Dir::at(dir))?;
    let is_stated = |noted: &Confirmation| {
        points.iter().any(|point| point.count == noted.values && point.digest.to_string() == noted.digest)
    };
    all.retain(is_stated);
    Ok(all)
}

/// Notes a confirmation in the directory of a run.
///
/// # Errors
/// As [`confirmations`]; errors of writing.
pub fn record(dir: &Path, confirmation: Confirmation) -> Result<()> {
    let dir = Dir::at(dir);
    let mut all = read(&dir)?;
    if !all.contains(&confirmation) {
        all.push(confirmation);
    }
    let text = serde_json::to_string_pretty(&all).expect("numbers and text are JSON") + "\n";
    dir.write_whole(NAME, text.as_bytes()).map_err(Error::io("writing", dir.join(NAME)))
}

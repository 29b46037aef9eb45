//! The file `confirmed.json` of a run directory: what other computations confirm of the run.
//!
//! Invariant: an entry counts only if the journal states the digest that it names, and if its values were computed by
//! another kernel on another machine than those of the run.

use super::comparison::{Obstacle, first_dependent, obstacle};
use super::manifest::Confirmation;
use crate::checkpoint::journal::{CommitPoint, Contents, Origin};
use crate::error::{Damage, Error, Result};
use crate::storage::Dir;
use crate::survey::printable;
use crate::table::files::CONFIRMATIONS as NAME;
use crate::theory::rule::Rule;
use std::path::Path;

/// Maximum length of the file, in bytes.
const MAX_BYTES: u64 = 16 << 20;

fn read(dir: &Dir) -> Result<Vec<Confirmation>> {
    let damage = |why: String| Damage::NotPublished {
        why: format!(
            "not a list of confirmations: {}; the values do not depend on this file: remove it",
            printable(&why)
        ),
    };
    let bytes = dir.read_undamaged(NAME, MAX_BYTES, damage)?.unwrap_or_default();
    // As [`record`] creates it.
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_slice(&bytes).map_err(|error| Error::Damage {
        path: dir.join(NAME),
        offset: 0,
        damage: damage(error.to_string()),
    })
}

/// Returns what is noted in the directory of a run and confirms its values, which this journal describes.
///
/// # Errors
/// [`Error::Damage`] if the file is not as [`record`] writes it; errors of reading.
pub fn confirmations(dir: &Path, journal: &Contents) -> Result<Vec<Confirmation>> {
    let mut all = read(&Dir::at(dir))?;
    let is_stated = |noted: &Confirmation| {
        let states = |point: &CommitPoint| point.count == noted.values && point.digest.to_string() == noted.digest;
        journal.points.iter().any(states)
    };
    let rule: Option<Rule> = journal.last.game.parse().ok();
    all.retain(|noted| is_stated(noted) && is_independent(rule.as_ref(), &journal.origins, noted));
    Ok(all)
}

/// Whether the values of a confirmation and those of a run were computed by different kernels on different machines. If
/// the journal does not state the machine of the run, the user stated it when the confirmation was recorded.
fn is_independent(rule: Option<&Rule>, run: &[Origin], noted: &Confirmation) -> bool {
    let obstacle = |here: &Origin, there: &Origin| match obstacle(rule, here, there) {
        Some(Obstacle::UnknownMachine) if here.machine.is_none() && there.machine.is_some() => None,
        found => found,
    };
    first_dependent(run, &noted.origins, obstacle).0 >= noted.values
}

/// Notes a confirmation in the directory of a run.
///
/// # Errors
/// As [`confirmations`]; errors of writing.
pub fn record(dir: &Path, confirmation: Confirmation) -> Result<()> {
    /// Maximum number of waits for other processes that note something.
    const WAITS: usize = 20;
    let dir = Dir::at(dir);
    let _file = dir.open_locked(NAME, WAITS)?;
    let mut all = read(&dir)?;
    if !all.contains(&confirmation) {
        all.push(confirmation);
    }
    let text = serde_json::to_string_pretty(&all).expect("numbers and text are JSON") + "\n";
    dir.write_whole(NAME, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confirmations_that_are_noted_at_the_same_time_are_all_kept() {
        let home = tempfile::tempdir().unwrap();
        let of = |values| Confirmation { values, digest: String::new(), origins: Vec::new(), program: String::new() };
        std::thread::scope(|scope| {
            for values in 1..=12 {
                let home = home.path();
                scope.spawn(move || record(home, of(values)).unwrap());
            }
        });
        let mut found: Vec<u64> = read(&Dir::at(home.path())).unwrap().iter().map(|noted| noted.values).collect();
        found.sort_unstable();
        assert_eq!(found, (1..=12).collect::<Vec<u64>>());
    }
}

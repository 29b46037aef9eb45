//! Refuses a run that cannot succeed, before anything is written: a directory with files of others, too little disk
//! space, a `--keep` below the lookback of the solver.

use super::options::Options;
use crate::checkpoint::commit::{RETAINED_HEAD, RETENTION_SLACK};
use crate::checkpoint::counts;
use crate::checkpoint::journal::{self, Record};
use crate::error::{Error, KeepReason, Result};
use crate::solver;
use crate::solver::ends::LOOKBACKS_RETAINED;
use crate::storage::Dir;
use crate::table::{self, ESCAPE_BYTES, HEADER, Width, files};
use crate::theory::rule::Rule;
use std::path::Path;

/// Refuses a directory that holds other files, because a run would mix its own files among them. Hidden files and
/// `lost+found`, which belongs to the file system, do not count.
pub(super) fn check_unoccupied(dir: &Dir) -> Result<()> {
    if !dir.exists().map_err(Error::io("reading the state of", dir.path()))? {
        return Ok(());
    }
    let ours = |name: &str| {
        let name = name.strip_suffix(".part").unwrap_or(name);
        let names = [table::VALUES, table::ESCAPES, journal::NAME, counts::NAME, files::CONFIRMATIONS, files::WATCH];
        names.contains(&name)
            || ["holes.tmp", "lost+found"].contains(&name)
            || ["snapshot-", files::WAYPOINT, "quarantine-", "."].iter().any(|start| name.starts_with(start))
    };
    let names = dir.names().map_err(Error::io("reading the names in", dir.path()))?;
    match names.into_iter().find(|name| !ours(name)) {
        Some(name) => Err(Error::Occupied { path: dir.path().into(), name: name.escape_default().to_string() }),
        None => Ok(()),
    }
}

/// Refuses a `keep` below the lookback of the solver. The lookback follows from the last rare position: the larger of
/// `last_rare`, which is that of the run, and the last known one of the game, if the run reaches it.
pub(super) fn check_keep(dir: &Path, rule: &Rule, options: &Options, keep: u64, last_rare: u64) -> Result<()> {
    let refuse = |needed, why| Err(Error::Keep { path: dir.into(), keep, needed, why });
    if !solver::may_be_sparse(rule, options.method) {
        return refuse(None, KeepReason::Definition);
    }
    let known = rule.known_last_rare().filter(|&n| options.to.is_none_or(|to| to > n));
    let last_rare = known.map_or(last_rare, |known| known.max(last_rare));
    let needed = solver::lookback(rule, last_rare);
    if needed > keep {
        return refuse(Some(needed.saturating_mul(LOOKBACKS_RETAINED)), KeepReason::Lookback { last_rare, needed });
    }
    Ok(())
}

/// What decides how much disk space a run needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoomRequest {
    /// The number of values at the end of the run; `None` if it has no end.
    pub(super) to: Option<u64>,
    /// Minimum number of last values that the run retains; `None` if it retains all.
    pub(super) keep: Option<u64>,
    pub(super) width: Width,
    /// The lookback of the solver. A number of values to keep that the error suggests is at least this.
    pub(super) lookback: u64,
}

/// Bytes that a run needs and has; `None` where that is not known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) needed: Option<u64>,
    pub(super) free: Option<u64>,
}

/// Refuses a run that does not fit the disk, before anything is written. `last` is the last record of the run.
pub(super) fn check_room(dir: &Dir, request: &RoomRequest, last: Option<&Record>) -> Result<Room> {
    /// Bytes reserved for the journal, the first escapes and other programs.
    const RESERVE: u64 = 1 << 20;
    /// The part of them that stays reserved whatever the run has taken: 64 records of the journal.
    const LEAST_RESERVE: u64 = 1 << 18;
    let RoomRequest { to, keep, width, lookback } = *request;
    let count = last.map_or(0, |last| last.count);
    let Some(to) = to.filter(|&to| to > count) else {
        return Ok(Room { needed: None, free: dir.free_space().ok() });
    };
    let available = dir.free_space().map_err(Error::io("reading the free space of", dir.path()))?;
    let held: u64 = last.map_or(0, |last| last.kept.iter().map(|(from, to)| to - from).sum());
    // A run overwrites the values after its last commit, so their bytes are available. A run with `keep` may have holes
    // after its last commit, even if no value before it is discarded: the number of such bytes is unknown. Tables
    // without a record are set aside, not overwritten.
    let length = table::length_of(dir, table::VALUES)?;
    let uncommitted = length.unwrap_or(0).saturating_sub(count.saturating_mul(width.bytes()).saturating_add(HEADER));
    let is_reused = last.is_some_and(|last| keep.is_none() || last.keep.is_none());
    let available = if is_reused { available.saturating_add(uncommitted) } else { available };
    let used = last.map_or(Ok(0), |_| used_reserve(dir))?;
    let reserve = RESERVE.saturating_sub(used).max(LEAST_RESERVE);
    let most = keep.map_or(u64::MAX, |keep| keep.saturating_add(RETAINED_HEAD + RETENTION_SLACK));
    let cost = Cost::of(width, last);
    let values = cost.of_values((to - count).min(most.saturating_sub(held)));
    let needed = values.saturating_add(reserve);
    if needed > available {
        let room = cost.values_in(available.saturating_sub(reserve));
        let keep = held
            .saturating_add(room)
            .checked_sub(RETAINED_HEAD + RETENTION_SLACK)
            .filter(|&keep| keep >= lookback.max(RETAINED_HEAD) && available >= reserve);
        let fits = (room > 0 || count == 0).then_some(count.saturating_add(room));
        return Err(Error::NoRoom { path: dir.path().into(), needed, available, fits, keep });
    }
    Ok(Room { needed: Some(values), free: Some(available) })
}

/// The number of bytes that a run has taken for what is not a value: the journal, the escapes, the header of the
/// values, and at most a block at the end of each of the three files.
fn used_reserve(dir: &Dir) -> Result<u64> {
    /// Length of a block of the file system, in bytes.
    const BLOCK: u64 = 4096;
    let length = |name| Ok(table::length_of(dir, name)?.unwrap_or(0));
    Ok(length(journal::NAME)?.saturating_add(length(table::ESCAPES)?).saturating_add(HEADER + 3 * BLOCK))
}

/// The number of bytes per value, as a fraction: those of the table, and those of as many escapes as the values so far
/// have.
struct Cost {
    bytes: u128,
    values: u128,
}

impl Cost {
    fn of(width: Width, last: Option<&Record>) -> Cost {
        // A forged record can state more escapes than values.
        let (count, escapes) = last.map_or((0, 0), |last| (last.count, last.escapes.min(last.count)));
        let values = u128::from(count.max(1));
        Cost { bytes: values * u128::from(width.bytes()) + u128::from(escapes) * u128::from(ESCAPE_BYTES), values }
    }

    /// The number of bytes of this many values; at most 2^64 - 1.
    fn of_values(&self, values: u64) -> u64 {
        u64::try_from(u128::from(values).saturating_mul(self.bytes).div_ceil(self.values)).unwrap_or(u64::MAX)
    }

    /// The number of values that fit in this many bytes.
    fn values_in(&self, bytes: u64) -> u64 {
        u64::try_from(u128::from(bytes).saturating_mul(self.values) / self.bytes).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_a_value_includes_its_share_of_escapes() {
        let plain = Cost::of(Width::U16, None);
        assert_eq!((plain.of_values(1000), plain.values_in(2001)), (2000, 1000));
        // Three bytes per value.
        let cost = Cost { bytes: 300, values: 100 };
        assert_eq!((cost.of_values(7), cost.values_in(23)), (21, 7));
        let huge = Cost { bytes: 12 << 64, values: 1 << 64 };
        assert_eq!((huge.of_values(u64::MAX), huge.values_in(24)), (u64::MAX, 2));
    }
}

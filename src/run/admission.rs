//! Refuses a run that cannot succeed, before anything is written: a directory with files of others, too little disk
//! space, a `--keep` below the lookback of the solver.

use super::options::Options;
use crate::checkpoint::commit::{RETAINED_HEAD, RETENTION_SLACK};
use crate::checkpoint::counts;
use crate::checkpoint::journal::{self, Record};
use crate::error::{Error, KeepReason, Result};
use crate::solver;
use crate::solver::ends::LOOKBACKS;
use crate::storage::Dir;
use crate::table::{self, HEADER, Width, files};
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
        return refuse(Some(needed.saturating_mul(LOOKBACKS)), KeepReason::Lookback { last_rare, needed });
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
    /// Bytes reserved for the journal, the escapes and other programs.
    const RESERVE: u64 = 1 << 20;
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
    let most = keep.map_or(u64::MAX, |keep| keep.saturating_add(RETAINED_HEAD + RETENTION_SLACK));
    let values = (to - count).min(most.saturating_sub(held)).saturating_mul(width.bytes());
    let needed = values.saturating_add(RESERVE);
    if needed > available {
        let room = available.saturating_sub(RESERVE) / width.bytes();
        let keep = held
            .saturating_add(room)
            .checked_sub(RETAINED_HEAD + RETENTION_SLACK)
            .filter(|&keep| keep >= lookback.max(RETAINED_HEAD) && available >= RESERVE);
        let fits = (room > 0 || count == 0).then_some(count.saturating_add(room));
        return Err(Error::NoRoom { path: dir.path().into(), needed, available, fits, keep });
    }
    Ok(Room { needed: Some(values), free: Some(available) })
}

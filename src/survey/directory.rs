//! The directories of a survey: their lock, plan and records.

use super::contradiction;
use super::plan::{self, Collection, Plan};
use super::record::{EXTENSION, Order, Record, file_name, further, is_record_name, order, printable};
use super::surveyor::Records;
use crate::error::{Damage, Error, Result, SurveyReason};
use crate::period::Status;
use crate::storage::{Dir, File, Mode};
use crate::theory::rule::Rule;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

/// Name of the file that a process locks while it writes to a directory.
const LOCK: &str = "lock";

/// Maximum length of the file of a record, in bytes.
const MAX_RECORD_BYTES: u64 = 64 << 10;

/// Maximum number of records that [`read`] reads in one call.
const MAX_RECORDS: usize = 1 << 20;

/// The records of a survey directory, one file per game.
pub(super) struct RecordFiles<'a> {
    pub(super) dir: &'a Dir,
    /// The records that exist.
    pub(super) there: &'a BTreeMap<Order, Record>,
}

impl Records for RecordFiles<'_> {
    /// A record that exists stays if it has more values, or a proof: it may have gone beyond `to` because a period was
    /// near. It also stays if the new one contradicts it.
    fn write(&self, rule: &Rule, record: Record) -> Result<Option<Error>> {
        let name = file_name(rule, EXTENSION);
        let before = self.there.get(&order(rule.name()));
        if let Some(why) = before.and_then(|before| contradiction(before, &record)) {
            let path = self.dir.join(&name);
            return Ok(Some(Error::Damage { path, offset: 0, damage: Damage::NewRecordContradicts { why } }));
        }
        let record = match before {
            Some(before) if !further(&record, before) => {
                Record { to: record.to, time_limit: record.time_limit, ..before.clone() }
            }
            _ => record,
        };
        self.dir.write_whole(&name, record.file_text().as_bytes())?;
        Ok(None)
    }
}

/// Creates or opens the directory of a survey, locks it, and writes the plan that is valid from now on.
pub(super) fn open(plan: Plan, dir: &Path) -> Result<(Dir, File, Plan)> {
    let dir = Dir::at(dir);
    refuse_foreign(&dir)?;
    dir.make().map_err(Error::io("making", dir.path()))?;
    let lock = dir.open(LOCK, Mode::Make).map_err(Error::io("making", dir.join(LOCK)))?;
    if !lock.lock_soon().map_err(Error::io("locking", dir.join(LOCK)))? {
        return Err(Error::Locked { path: dir.path().into() });
    }
    let before = Plan::read(&dir)?;
    let plan = plan.continues(before.as_ref(), &dir)?;
    plan.refuse_others(&dir)?;
    if before.as_ref() != Some(&plan) {
        plan.write(&dir)?;
    }
    Ok((dir, lock, plan))
}

/// Refuses a directory that has files but neither a plan nor a record of a survey, unless it has only what a survey
/// leaves that was stopped before it wrote its plan.
fn refuse_foreign(dir: &Dir) -> Result<()> {
    let reading = || Error::io("reading the names in", dir.path());
    let entries = match std::fs::read_dir(dir.path()) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(reading())?,
    };
    let is_record =
        |name: &str| dir.read_at_most(name, MAX_RECORD_BYTES).is_ok_and(|b| Record::parse(name, &b).is_ok());
    let mut foreign = None;
    for entry in entries {
        let name = entry.map_err(reading())?.file_name();
        let name = name.to_string_lossy();
        // A survey's lock file is empty.
        let lock = name == LOCK && matches!(dir.length(LOCK), Ok(Some(0)));
        if name == plan::NAME || (is_record_name(&name) && is_record(&name)) {
            return Ok(());
        }
        if lock || *name == *format!("{}.part", plan::NAME) {
            continue;
        }
        let first = foreign.get_or_insert_with(|| name.to_string());
        if *name < **first {
            *first = name.into_owned();
        }
    }
    let Some(name) = foreign else { return Ok(()) };
    let why = SurveyReason::Occupied { name: printable(&name) };
    Err(Error::Survey { path: dir.path().into(), why })
}

/// Reads the records of the given directories, in the order of a table. Of two records of a game it returns the one
/// with a proof, or else the one with more values.
///
/// # Errors
/// [`Error::Damage`] when a file is not a record, or two records of a game contradict each other; [`Error::Survey`]
/// when there are more than 2^20.
pub fn read(dirs: &[&Path]) -> Result<BTreeMap<Order, Record>> {
    // All records of a game, each with its directory: any two of them must agree.
    let mut all: BTreeMap<Order, Vec<(&Path, Record)>> = BTreeMap::new();
    let mut count = 0;
    for &path in dirs {
        let dir = Dir::at(path);
        let mut names = dir.names().map_err(Error::io("reading the names in", path))?;
        names.retain(|name| is_record_name(name));
        names.sort_unstable();
        count += names.len();
        if count > MAX_RECORDS {
            return Err(Error::Survey { path: path.into(), why: SurveyReason::TooManyRecords { most: MAX_RECORDS } });
        }
        for name in &names {
            let shown = dir.join(&printable(name));
            let bytes = dir.read_undamaged(name, MAX_RECORD_BYTES, |why| Damage::NotARecord { why })?;
            let bytes = bytes.ok_or_else(|| Error::io("reading", &shown)(ErrorKind::NotFound.into()))?;
            let damage = |damage: Damage| Error::Damage { path: shown.clone(), offset: 0, damage };
            let record = Record::parse(name, &bytes).map_err(|why| damage(Damage::NotARecord { why }))?;
            let others = all.entry(order(&record.game)).or_default();
            for (other, before) in others.iter() {
                if let Some(why) = contradiction(before, &record) {
                    let other = other.join(name);
                    return Err(damage(Damage::RecordsContradict { other, why }));
                }
            }
            others.push((path, record));
        }
    }
    Ok(all.into_iter().filter_map(|(game, records)| Some((game, furthest(records)?))).collect())
}

/// Returns the record that [`further`] ranks first, with the greatest extent of all records.
fn furthest(records: Vec<(&Path, Record)>) -> Option<Record> {
    let (_, widest) = records.iter().max_by_key(|(_, record)| record.extent())?;
    let (to, time_limit) = (widest.to, widest.time_limit);
    let records = records.into_iter().map(|(_, record)| record);
    let best = records.reduce(|best, record| if further(&record, &best) { record } else { best })?;
    let time_limit = time_limit.filter(|_| best.status != Status::Proved);
    Some(Record { to, time_limit, ..best })
}

/// Reads the records and plans of the given directories.
///
/// # Errors
/// As [`read`]; [`Error::Survey`] for a directory with neither a plan nor records, or with the record of a game that
/// its plan does not have.
pub fn collect(dirs: &[&Path]) -> Result<Collection> {
    let mut collection = Collection { records: read(dirs)?, ..Collection::default() };
    for &path in dirs {
        let dir = Dir::at(path);
        match Plan::read(&dir)? {
            Some(plan) => {
                plan.refuse_others(&dir)?;
                collection.plans.push((path.into(), plan));
            }
            None if dir.names().is_ok_and(|names| names.iter().any(|name| is_record_name(name))) => {
                collection.unplanned.push(path.into());
            }
            None => {
                return Err(Error::Survey { path: path.into(), why: SurveyReason::NoSurvey { plan: plan::NAME } });
            }
        }
    }
    Ok(collection)
}

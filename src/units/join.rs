//! Combines the results of units, and lists those that are missing.

use super::machine::Spent;
use super::part::part_name;
use super::plan::Plan;
use super::result::{MAX_BYTES, UnitResult};
use super::unit::{Unit, VerifyWork, Work};
use crate::error::{Damage, Error, Result};
use crate::storage::{Dir, is_unicode};
use crate::survey::{Order, Record, order, printable};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The results of one plan.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Joined {
    /// The plan of all directories.
    pub plan: Plan,
    /// Number of units of the plan.
    pub expected: usize,
    /// The results, one of each unit, in the order of the units, each with its file.
    pub results: Vec<(PathBuf, UnitResult)>,
    /// The names of the units without a result, in the order of the units.
    pub missing: Vec<String>,
    /// How many of these have begun.
    pub begun: usize,
}

/// Reads the results in directories that have the same plan, and compares those of the same unit.
///
/// # Errors
/// [`Error::Units`] when a directory has no plan or another plan than the first; [`Error::Damage`] when a file is not
/// the result of a unit of the plan, or two results of a unit contradict each other; errors of reading.
pub fn join(dirs: &[&Path]) -> Result<Joined> {
    let (plan, units) = plan_of(dirs)?;
    let places: HashMap<&str, usize> = units.iter().enumerate().map(|(i, unit)| (unit.name(), i)).collect();
    // All results of a unit, each with its file: any two of them must agree.
    let mut found: BTreeMap<usize, Vec<(PathBuf, UnitResult)>> = BTreeMap::new();
    let mut begun = BTreeSet::new();
    for &path in dirs {
        let dir = Dir::at(path);
        let mut names = dir.names().map_err(Error::io("reading the names in", path))?;
        names.sort_unstable();
        begun.extend(names.iter().filter(|name| name.ends_with(".part")).cloned());
        for name in names.iter().filter(|name| name.ends_with(".jsonl") && is_unicode(name)) {
            let shown = dir.join(&printable(name));
            let damage = |damage| Error::Damage { path: shown.clone(), offset: 0, damage };
            let bytes = dir.read_undamaged(name, MAX_BYTES, |why| Damage::NotAResult { why })?;
            let bytes = bytes.ok_or_else(|| Error::io("reading", &shown)(ErrorKind::NotFound.into()))?;
            let (place, result) =
                read(name, &bytes, &places, &units, &plan).map_err(|why| damage(Damage::NotAResult { why }))?;
            let others = found.entry(place).or_default();
            for (other, before) in others.iter() {
                if let Some(why) = result.contradiction(before) {
                    return Err(damage(Damage::ResultsContradict { other: other.clone(), why }));
                }
            }
            others.push((shown.clone(), result));
        }
    }
    let absent = units.iter().enumerate().filter(|(place, _)| !found.contains_key(place));
    let missing: Vec<String> = absent.map(|(_, unit)| unit.name.clone()).collect();
    let results = found.into_values().filter_map(|results| results.into_iter().next()).collect();
    let begun = missing.iter().filter(|name| begun.contains(&part_name(name))).count();
    Ok(Joined { plan, expected: units.len(), results, missing, begun })
}

/// Returns the common plan of the directories, and its units.
fn plan_of(dirs: &[&Path]) -> Result<(Plan, Vec<Unit>)> {
    let first = dirs.first().copied().unwrap_or(Path::new("."));
    let plan = Plan::read(first)?;
    for dir in dirs {
        let other = Plan::read(dir)?;
        plan.require(&other, &Dir::at(dir))?;
    }
    let units = plan.units();
    Ok((plan, units))
}

/// Parses the file `name`; the error is a sentence that states what is wrong.
fn read(
    name: &str,
    bytes: &[u8],
    places: &HashMap<&str, usize>,
    units: &[Unit],
    plan: &Plan,
) -> std::result::Result<(usize, UnitResult), String> {
    let result = UnitResult::parse(bytes)?;
    if !result.is_named(name) {
        return Err(format!("it is the result of {}, and not named after it", printable(&result.name)));
    }
    let place = *places.get(result.name.as_str()).ok_or("the plan has no such unit")?;
    result.require(&units[place], &plan.work)?;
    Ok((place, result))
}

/// What the units of a verification say together.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Verdict {
    /// Canonical name of the game.
    pub game: String,
    /// Digest of the run.
    pub digest: String,
    /// Number of values of the run with this digest.
    pub count: u64,
    /// The level of the check.
    pub level: &'static str,
    /// `passed`, `failed`, or `incomplete` if units are missing and no check failed.
    pub verdict: &'static str,
    /// The ranges of n of the units that passed, joined where they meet.
    pub ranges: Vec<(u64, u64)>,
    /// Number of values that were compared or computed again.
    pub checked: u64,
    /// Number of units with a result.
    pub units: u64,
    /// Number of units of the plan.
    pub expected: u64,
    /// What the failed checks state.
    pub wrong: Vec<String>,
    /// The kernels that computed values again.
    pub kernels: BTreeSet<String>,
    /// The programs that checked.
    pub programs: BTreeSet<String>,
    /// The classes of the machines.
    pub machines: BTreeSet<String>,
    /// The times of all units.
    pub spent: Spent,
}

impl Joined {
    /// Returns the records of a survey, in the order of a table.
    #[must_use]
    pub fn records(&self) -> BTreeMap<Order, Record> {
        let records = self.results.iter().flat_map(|(_, result)| &result.records);
        records.map(|record| (order(&record.game), record.clone())).collect()
    }

    /// Returns what the results say together; `None` for a survey.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        let Work::Verify(VerifyWork { game, digest, count, level, .. }) = &self.plan.work else { return None };
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        let (mut checked, mut wrong, mut kernels) = (0, Vec::new(), BTreeSet::new());
        for check in self.results.iter().filter_map(|(_, result)| result.check.as_ref()) {
            wrong.extend(check.wrong.clone());
            kernels.extend(check.kernel.clone());
            checked += check.checked;
            if check.wrong.is_none() {
                match ranges.last_mut() {
                    Some(last) if last.1 == check.from => last.1 = check.to,
                    _ => ranges.push((check.from, check.to)),
                }
            }
        }
        let sessions = || self.results.iter().flat_map(|(_, result)| &result.sessions);
        let covers_all = ranges == [(0, *count)];
        let verdict = match (wrong.is_empty(), covers_all) {
            (false, _) => "failed",
            (true, true) => "passed",
            (true, false) => "incomplete",
        };
        Some(Verdict {
            game: game.clone(),
            digest: digest.clone(),
            count: *count,
            level: level.name(),
            verdict,
            ranges,
            checked,
            units: self.results.len() as u64,
            expected: self.expected as u64,
            wrong,
            kernels,
            programs: sessions().map(|session| session.program.clone()).collect(),
            machines: sessions().map(|session| session.machine.clone()).collect(),
            spent: self.spent(),
        })
    }

    /// Returns the times of all units together.
    #[must_use]
    pub fn spent(&self) -> Spent {
        let all = self.results.iter().map(|(_, result)| result.end.spent);
        all.fold(Spent::default(), |sum, one| Spent { wall: sum.wall + one.wall, cpu: sum.cpu + one.cpu })
    }
}

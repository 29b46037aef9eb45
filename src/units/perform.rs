//! Does one unit.

use super::machine::{Clock, Spent};
use super::part::Part;
use super::plan::Plan;
use super::result::{Check, Head, Line, MAX_BYTES, Session, TimedRecord, UnitResult, fits, result_name};
use super::unit::{Level, SurveyWork, Task, Unit, VerifyWork, Work};
use crate::error::{self, Damage, Error, NoRunReason, Result, UnitsReason};
use crate::run::RunReader;
use crate::solver::Method;
use crate::storage::Dir;
use crate::survey::{self, Failure, Means, printable};
use crate::theory::rule::Rule;
use crate::verify;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How a unit is done.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method that computes the values of a survey.
    pub method: Method,
    /// Number of threads of a survey, at least 1. A verification uses those of the global pool.
    pub threads: usize,
    /// The directory of the run; `None` for the one that the plan names.
    pub run: Option<&'a Path>,
}

impl Default for Request<'_> {
    fn default() -> Self {
        Request { method: Method::default(), threads: 1, run: None }
    }
}

/// What [`perform()`] did.
#[derive(Debug)]
#[non_exhaustive]
pub enum Performed {
    /// The unit was complete already.
    Already,
    /// The unit is complete now.
    Completed {
        /// The times of all processes that worked on it.
        spent: Spent,
        /// Names of the games that this process computed twice, because a check failed. The machine may be faulty.
        restarted: Vec<String>,
        /// Number of sequences whose saved values were not used, because another version of the program computed them.
        outdated: usize,
    },
    /// The unit is complete, and its check found a wrong value, which the text states.
    Wrong(String),
    /// The stop flag ended it; the same call continues.
    Stopped,
    /// Some games could not be examined. The unit is not complete.
    Failed(Vec<Failure>),
}

/// Does the unit of this name in `dir`, or nothing if it is complete. `progress` receives the number of games or values
/// done, and their total.
///
/// A directory without a plan receives that of the name, if [`Plan::of_name`] knows it.
///
/// # Errors
/// [`Error::Locked`] when another process is working on this unit; [`Error::Units`] when the directory has no such
/// unit, or the run is another; [`Error::Damage`] when a file is damaged; errors of reading, writing and computing.
pub fn perform(
    name: &str,
    dir: &Path,
    request: Request<'_>,
    stop: &AtomicBool,
    progress: impl Fn(u64, u64) + Sync,
) -> Result<Performed> {
    let clock = Clock::start();
    let path = dir;
    let dir = &Dir::at(dir);
    let unknown = || Error::Units { path: path.into(), why: UnitsReason::UnknownUnit { name: printable(name) } };
    let (unit, work) = Plan::look_up(dir, name)?.ok_or_else(unknown)?;
    let Some(part) = Part::begin(dir, &unit.name)? else {
        return complete(dir, &unit, &work).map(|result| match result.check.and_then(|check| check.wrong) {
            Some(wrong) => Performed::Wrong(wrong),
            None => Performed::Already,
        });
    };
    match (&unit.task, &work) {
        (Task::Verify(range), Work::Verify(work)) => {
            let run = request.run.unwrap_or(Path::new(&work.run));
            Checking { unit: &unit, work, range: range.clone(), run }.check(part, clock, progress)
        }
        (Task::Survey(games), Work::Survey(work)) => {
            Surveying { dir, unit: &unit, games, work, request, stop }.examine(part, clock, progress)
        }
        _ => unreachable!("a unit has the kind of its plan"),
    }
}

/// Reads the result of a unit that is complete.
fn complete(dir: &Dir, unit: &Unit, work: &Work) -> Result<UnitResult> {
    let name = result_name(&unit.name);
    let path = dir.join(&name);
    let bytes = dir.read_undamaged(&name, MAX_BYTES, |why| Damage::NotAResult { why })?;
    let bytes = bytes.ok_or_else(|| Error::io("reading", &path)(ErrorKind::NotFound.into()))?;
    let result = UnitResult::parse(&bytes).and_then(|result| result.require(unit, work).map(|()| result));
    result.map_err(|why| Error::Damage { path, offset: 0, damage: Damage::NotAResult { why } })
}

/// A survey unit in progress.
struct Surveying<'a> {
    dir: &'a Dir,
    unit: &'a Unit,
    games: &'a [Rule],
    work: &'a SurveyWork,
    request: Request<'a>,
    stop: &'a AtomicBool,
}

impl Surveying<'_> {
    fn examine(&self, mut part: Part<'_>, clock: Clock, progress: impl Fn(u64, u64) + Sync) -> Result<Performed> {
        let (before, missing) = match self.continued(part.resume()?) {
            Some(continued) => continued,
            None => {
                part.clear()?;
                part.push(&Line::Unit(Head::of(self.unit)))?;
                (Spent::default(), self.games.iter().map(Rule::name).collect())
            }
        };
        let clock = clock.after(before);
        let (method, threads) = (self.request.method, self.request.threads);
        let session = Session::now(method.name(), threads, clock.own_cpu());
        part.push_sealed(&Line::Session(session), clock.spent())?;
        let all = self.games.len();
        let done = AtomicUsize::new(all - missing.len());
        let games = self.games.iter().filter(|rule| missing.contains(rule.name())).cloned().collect();
        progress(done.load(Ordering::Relaxed) as u64, all as u64);
        let results = survey::examine_part(
            survey::Part { dir: self.dir, games, to: self.work.to, means: Means { method, threads } },
            self.stop,
            |record| {
                let spent = clock.spent();
                part.push_sealed(&Line::Record(Box::new(TimedRecord { spent, record })), spent)?;
                progress(done.fetch_add(1, Ordering::Relaxed) as u64 + 1, all as u64);
                Ok(())
            },
        )?;
        let spent = clock.spent();
        if done.into_inner() == all {
            part.finish(spent)?;
            return Ok(Performed::Completed { spent, restarted: results.restarted, outdated: results.outdated.len() });
        }
        part.seal(spent)?;
        Ok(if results.failed.is_empty() { Performed::Stopped } else { Performed::Failed(results.failed) })
    }

    /// Returns the times of earlier processes and the games without a record, from the lines that they left; `None` if
    /// these are not the lines of this unit.
    fn continued(&self, lines: Vec<Line>) -> Option<(Spent, BTreeSet<&str>)> {
        let mut missing: BTreeSet<&str> = self.games.iter().map(Rule::name).collect();
        let mut before = Spent::default();
        let mut lines = lines.into_iter();
        let Some(Line::Unit(head)) = lines.next() else { return None };
        let mut fits_all = head.is_of(self.unit);
        for line in lines {
            fits_all &= match line {
                Line::Session(_) => true,
                Line::Record(timed) => {
                    let record = timed.record;
                    fits(&record, self.work.to).is_ok() && missing.remove(record.game.as_str())
                }
                Line::Seal(seal) => {
                    before = seal.spent;
                    before.is_valid()
                }
                Line::Unit(_) | Line::Check(_) | Line::End(_) => false,
            };
        }
        fits_all.then_some((before, missing))
    }
}

/// A verification unit in progress.
struct Checking<'a> {
    unit: &'a Unit,
    work: &'a VerifyWork,
    range: Range<u64>,
    /// The directory of the run.
    run: &'a Path,
}

impl Checking<'_> {
    /// Checks that the range has the digests of the run, then each value of it.
    fn check(&self, mut part: Part<'_>, clock: Clock, progress: impl Fn(u64, u64) + Sync) -> Result<Performed> {
        let Checking { unit, work, run, .. } = *self;
        require_run(run, work)?;
        part.clear()?;
        part.push(&Line::Unit(Head::of(unit)))?;
        let startup = clock.own_cpu();
        let range = || Some(self.range.clone());
        verify::digest(run, range(), |_, _| {})?;
        let report = match work.level {
            Level::Exclusion => verify::exclusion(run, range(), &progress),
            Level::Recompute => verify::recompute(run, range(), &progress),
            Level::Definition { samples, seed } => verify::definition(run, range(), samples, seed, &progress),
        };
        let (checked, kernel, wrong) = match report {
            Ok(report) => (report.checked, report.kernel, None),
            Err(error @ (Error::Wrong { .. } | Error::Excluded { .. })) => {
                // The levels read values before the range too. If these are damaged, the run has no wrong value.
                verify::digest(run, None, |_, _| {})?;
                (0, None, Some(error::printable(&error.to_string())))
            }
            Err(error) => return Err(error),
        };
        part.push(&Line::Session(Session::now(
            kernel.as_deref().unwrap_or("none"),
            rayon::current_num_threads(),
            startup,
        )))?;
        part.push(&Line::Check(Check {
            game: work.game.clone(),
            digest: work.digest.clone(),
            count: work.count,
            level: work.level.name().into(),
            from: self.range.start,
            to: self.range.end,
            checked,
            kernel,
            wrong: wrong.clone(),
        }))?;
        let spent = clock.spent();
        part.finish(spent)?;
        Ok(match wrong {
            Some(wrong) => Performed::Wrong(wrong),
            None => Performed::Completed { spent, restarted: Vec::new(), outdated: 0 },
        })
    }
}

/// Refuses a run whose first values do not have the digest that the plan names.
fn require_run(dir: &Path, work: &VerifyWork) -> Result<()> {
    let run = RunReader::open(dir).map_err(|error| match error {
        Error::NoRun { why: NoRunReason::NoDirectory, path } if dir == Path::new(&work.run) => {
            Error::Units { path, why: UnitsReason::NoRun }
        }
        error => error,
    })?;
    let points = &run.contents.points;
    let is_same = points.iter().any(|point| point.count == work.count && point.digest.to_string() == work.digest);
    if is_same && run.rule.name() == work.game {
        return Ok(());
    }
    let why = UnitsReason::OtherRun { digest: work.digest.clone(), count: work.count };
    Err(Error::Units { path: dir.into(), why })
}

//! The plan of a directory of units: what is to be computed, and how it is divided.

use super::games;
use super::unit::{Level, SHORT, SurveyWork, Task, Unit, VerifyWork, Work, survey_name, verify_name};
use crate::error::{Damage, Error, Result, UnitsReason};
use crate::run::RunReader;
use crate::storage::{Dir, Mode};
use crate::survey::{self, Games, PROOF_FACTOR, divide, is_program, printable};
use crate::table::digest::Digest;
use crate::theory::definition::Sequence;
use crate::theory::rule::Rule;
use crate::verify;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

/// The file name of a plan.
pub(super) const NAME: &str = "units.plan";

/// The usual file name of the list of the units, which users and `scripts/slurm` write.
const LIST: &str = "units.txt";

/// Value of the field `format` of a plan.
const FORMAT: &str = "grundy-units-plan-1";

/// Maximum length of a plan, in bytes.
const MAX_BYTES: u64 = 128 << 20;

/// Maximum number of parts of a plan.
pub const MAX_PARTS: u64 = 1 << 20;

/// Maximum time for which a process waits while another process writes a plan.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// What the units of a directory compute, and the number of parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// `grundy-units-plan-1`.
    pub format: String,
    /// Name and version of the program that wrote the plan.
    pub program: String,
    /// Number of parts; parts without games or values are no units.
    pub parts: u64,
    /// The whole work.
    pub work: Work,
}

impl Plan {
    /// Creates the plan of a survey.
    ///
    /// # Errors
    /// A sentence that states what is wrong, when there are no games or too many, or numbers are out of range.
    pub fn survey(games: Games, to: u64, parts: u64) -> std::result::Result<Plan, String> {
        let proof_to = to.saturating_mul(PROOF_FACTOR);
        Plan::checked(Work::Survey(SurveyWork { games, to, proof_to }), parts)
    }

    /// Creates the plan of a verification of all values of the run in `dir`.
    ///
    /// # Errors
    /// Errors of opening the run; [`Error::Units`] if it has discarded values, or the number of parts
    /// is out of range; [`Error::Range`] if it has no values.
    pub fn verify(dir: &Path, level: Level, parts: u64) -> Result<Plan> {
        let refuse = |why| Error::Units { path: dir.into(), why };
        let run = RunReader::open(dir)?;
        let hole = run.discarded();
        if !hole.is_empty() {
            return Err(refuse(UnitsReason::Discarded { hole: (hole.start, hole.end) }));
        }
        if run.len() == 0 {
            return Err(Error::Range { from: 0, to: 1, count: 0 });
        }
        if level == Level::Exclusion {
            verify::exclusion_space(&run.rule, run.space())?;
        }
        let path = std::path::absolute(dir).map_err(Error::io("finding", dir))?;
        let path = path.to_str().ok_or_else(|| refuse(UnitsReason::NotText))?.to_owned();
        let (game, count, digest) = (run.rule.name().into(), run.len(), run.contents.last.digest.clone());
        let work = Work::Verify(VerifyWork { run: path, game, count, digest, level });
        Plan::checked(work, parts).map_err(|_| refuse(UnitsReason::Parts { parts, most: MAX_PARTS }))
    }

    fn checked(work: Work, parts: u64) -> std::result::Result<Plan, String> {
        let plan = Plan { format: FORMAT.into(), program: crate::PROGRAM.into(), parts, work };
        plan.check().map(|()| plan)
    }

    /// Checks the fields; the error is a sentence that states what is wrong.
    fn check(&self) -> std::result::Result<(), String> {
        if self.format != FORMAT {
            return Err(format!("its format is '{}', not '{FORMAT}'", printable(&self.format)));
        }
        if !is_program(&self.program) {
            return Err("the field 'program' is not a short line of printable ASCII".into());
        }
        if !(1..=MAX_PARTS).contains(&self.parts) {
            return Err(format!("{} parts; a plan has 1 to {MAX_PARTS}", self.parts));
        }
        match &self.work {
            Work::Survey(SurveyWork { games, to, proof_to }) => {
                if *proof_to != to.saturating_mul(PROOF_FACTOR) {
                    return Err(format!("this program examines {to} values, for a proof not up to {proof_to}"));
                }
                survey::Plan::new(games.clone(), (0, 1), *to).map(drop)
            }
            Work::Verify(VerifyWork { game, count, digest, .. }) => {
                let is_canonical = game.parse::<Rule>().is_ok_and(|rule| rule.name() == game);
                let is_known = is_canonical && *count > 0 && digest.parse::<Digest>().is_ok();
                if is_known { Ok(()) } else { Err("game, count and digest are not those of a run".into()) }
            }
        }
    }

    /// Returns the plan of a survey of all octal codes from the name of one of its units; `None` for any other name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Plan> {
        Plan::named(name).map(|(plan, _)| plan)
    }

    /// [`Plan::of_name`], with the units of the plan.
    fn named(name: &str) -> Option<(Plan, Vec<Unit>)> {
        let words: Vec<&str> = name.split('-').collect();
        let ["survey", digits, part, to, ..] = words[..] else { return None };
        let number = |text: &str, before| text.strip_prefix(before)?.parse().ok();
        let (_, parts) = part.strip_prefix("part")?.split_once("of")?;
        let digits = u32::try_from(number(digits, "digits")?).ok()?;
        let plan = Plan::survey(Games::Digits(digits), number(to, "to")?, parts.parse().ok()?).ok()?;
        let units = plan.units();
        units.iter().any(|unit| unit.name == name).then_some((plan, units))
    }

    /// Returns the units, in the order of their parts.
    #[must_use]
    pub fn units(&self) -> Vec<Unit> {
        let parts = usize::try_from(self.parts).unwrap_or(usize::MAX);
        match &self.work {
            Work::Survey(work) => {
                let kind = match &work.games {
                    Games::Digits(digits) => format!("digits{digits}"),
                    Games::List(_) => "list".into(),
                };
                let whole = survey::Plan::new(work.games.clone(), (0, 1), work.to);
                let divided = divide(whole.map(|whole| whole.all()).unwrap_or_default(), parts);
                let parts = divided.into_iter().enumerate().filter(|(_, games)| !games.is_empty());
                let unit = |(i, games): (usize, Vec<Rule>)| Unit {
                    part: i,
                    name: survey_name(&kind, (i, self.parts), work, &games),
                    task: Task::Survey(games),
                };
                parts.map(unit).collect()
            }
            Work::Verify(work) => {
                let border = |i: usize| (i as u128 * u128::from(work.count) / u128::from(self.parts)) as u64;
                let ranges = (0..parts).map(|i| (i, border(i)..border(i + 1))).filter(|(_, range)| !range.is_empty());
                let unit = |(part, range): (usize, Range<u64>)| Unit {
                    part,
                    name: verify_name(work, &range),
                    task: Task::Verify(range),
                };
                ranges.map(unit).collect()
            }
        }
    }

    /// Whether both plans divide the same work in the same way, on whatever path the run is.
    pub(super) fn is_same(&self, other: &Plan) -> bool {
        let works = match (&self.work, &other.work) {
            (Work::Survey(one), Work::Survey(two)) => one == two,
            (Work::Verify(one), Work::Verify(two)) => *one == VerifyWork { run: one.run.clone(), ..two.clone() },
            _ => false,
        };
        works && self.parts == other.parts
    }

    /// Parses a plan from the bytes of its file.
    ///
    /// # Errors
    /// A sentence that states what is wrong, when the bytes are not a plan of this program.
    pub fn parse(bytes: &[u8]) -> std::result::Result<Plan, String> {
        let plan: Plan = serde_json::from_slice(bytes).map_err(|e| printable(&e.to_string()))?;
        plan.check().map(|()| plan)
    }

    /// Reads the plan of a directory.
    ///
    /// # Errors
    /// [`Error::Units`] when it has none; errors of reading it.
    pub fn read(dir: &Path) -> Result<Plan> {
        let none = || Error::Units { path: dir.into(), why: UnitsReason::NoPlan { plan: NAME } };
        Plan::find(&Dir::at(dir))?.ok_or_else(none)
    }

    /// Whether the directory has a plan of units.
    #[must_use]
    pub fn exists(dir: &Path) -> bool {
        dir.join(NAME).exists()
    }

    /// Returns the unit of this name of the plan of a directory, with its work: the whole work of the plan, or the part
    /// of it that the unit does. `None` if the plan has no such unit. A directory without a plan receives that of the
    /// name.
    ///
    /// # Errors
    /// Those of [`Plan::read`] and [`Plan::write`].
    pub(super) fn look_up(dir: &Dir, name: &str) -> Result<Option<(Unit, Work)>> {
        let plan = dir.read_at_most(NAME, MAX_BYTES);
        if let Some(found) = plan.ok().and_then(|plan| games::find(dir, &plan, name)) {
            return Ok(Some(found));
        }
        let (plan, units) = match Plan::find(dir)? {
            Some(plan) => {
                let units = plan.units();
                (plan, units)
            }
            None => match Plan::named(name) {
                Some((plan, units)) => {
                    plan.write_new(dir, &units)?;
                    (plan, units)
                }
                None if name.starts_with("survey-digits") => {
                    let why = UnitsReason::MistypedUnit { name: printable(name) };
                    return Err(Error::Units { path: dir.path().into(), why });
                }
                None => return Err(Error::Units { path: dir.path().into(), why: UnitsReason::NoPlan { plan: NAME } }),
            },
        };
        Ok(units.into_iter().find(|unit| unit.name == name).map(|unit| (unit, plan.work)))
    }

    /// Reads the plan of a directory, if it has one.
    pub(super) fn find(dir: &Dir) -> Result<Option<Plan>> {
        let not_a_plan = |why| Damage::NotAUnitsPlan { why };
        let Some(bytes) = dir.read_undamaged(NAME, MAX_BYTES, not_a_plan)? else { return Ok(None) };
        let damage = |why| Error::Damage { path: dir.join(NAME), offset: 0, damage: not_a_plan(why) };
        Plan::parse(&bytes).map(Some).map_err(damage)
    }

    /// Writes the plan into a directory, which is created if it does not exist. A directory that has the same plan is
    /// left as it is.
    ///
    /// # Errors
    /// [`Error::Units`] when the directory has another plan or other files; errors of writing.
    pub fn write(&self, dir: &Path) -> Result<()> {
        let dir = Dir::at(dir);
        match Plan::find(&dir)? {
            Some(there) => self.require(&there, &dir),
            None => self.write_new(&dir, &self.units()),
        }
    }

    /// Writes the plan, whose units are given, to a directory that had none.
    fn write_new(&self, dir: &Dir, units: &[Unit]) -> Result<()> {
        let refuse = |why| Err(Error::Units { path: dir.path().into(), why });
        if let Some(name) = occupant(dir, units)? {
            return refuse(UnitsReason::Occupied { name: printable(&name) });
        }
        let text = serde_json::to_string_pretty(self).expect("numbers and text are JSON") + "\n";
        if text.len() as u64 > MAX_BYTES {
            return refuse(UnitsReason::PlanTooLong { most: MAX_BYTES });
        }
        let writing = || Error::io("writing", dir.join(NAME));
        dir.make().map_err(Error::io("making", dir.path()))?;
        // Several processes may write plans at once. The first to lock the file gives it the name of the plan. One that
        // locks the file later finds the plan, and removes the file that it may have created.
        let part = format!("{NAME}.part");
        let file = dir.open(&part, Mode::Make).map_err(writing())?;
        let begun = Instant::now();
        while !file.lock_soon().map_err(Error::io("locking", dir.join(&part)))? {
            if begun.elapsed() > LONGEST_WAIT {
                return Err(Error::Locked { path: dir.path().into() });
            }
        }
        if let Some(there) = Plan::find(dir)? {
            dir.remove(&part).map_err(writing())?;
            return self.require(&there, dir);
        }
        games::write(dir, &text, units);
        file.set_length(0).map_err(writing())?;
        let written = file.write_all_at(text.as_bytes(), 0).and_then(|()| file.sync_all());
        if written.is_err() {
            // Takes no room then. The file itself stays, because another process may wait for its lock.
            let _ = file.set_length(0);
        }
        written.map_err(|source| dir.write_error(source, &dir.join(NAME), text.len() as u64, "writing"))?;
        dir.rename(&part, NAME).map_err(writing())?;
        dir.sync().map_err(writing())
    }

    pub(super) fn require(&self, there: &Plan, dir: &Dir) -> Result<()> {
        if self.is_same(there) {
            return Ok(());
        }
        let why = match (&self.work, &there.work) {
            (Work::Survey(one), Work::Survey(two)) if self.to_string() == there.to_string() => {
                UnitsReason::OtherGames { game: other_game(&one.games, &two.games) }
            }
            _ => UnitsReason::OtherPlan { found: there.to_string(), expected: self.to_string() },
        };
        Err(Error::Units { path: dir.path().into(), why })
    }
}

/// Returns the first game of the list `there` that the list `here` does not have, with characters escaped.
fn other_game(here: &Games, there: &Games) -> Option<String> {
    let (Games::List(here), Games::List(there)) = (here, there) else { return None };
    let here: HashSet<&String> = here.iter().collect();
    there.iter().find(|game| !here.contains(game)).map(|game| printable(game))
}

/// Returns the name of a file that is not of units, if there is one, and no file that one of these units or their plan
/// has written.
fn occupant(dir: &Dir, units: &[Unit]) -> Result<Option<String>> {
    let mut names = match dir.names() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        names => names.map_err(Error::io("reading the names in", dir.path()))?,
    };
    names.sort_unstable();
    let of_unit: HashSet<&str> = units.iter().map(Unit::name).collect();
    // Another process may be writing the same plan now, or the plan was removed and the results are there.
    let is_ours = |name: &String| {
        let unit = name.split('.').next().unwrap_or_default();
        name.starts_with(NAME) || name.starts_with(games::NAME) || of_unit.contains(unit)
    };
    if names.iter().any(is_ours) {
        return Ok(None);
    }
    Ok(names.into_iter().find(|name| name != LIST))
}

impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = self.parts;
        match &self.work {
            Work::Survey(SurveyWork { games: Games::Digits(digits), to, .. }) => {
                write!(f, "a survey of all octal codes with up to {digits} digits, {to} values each, in {parts} parts")
            }
            Work::Survey(SurveyWork { games: Games::List(names), to, .. }) => {
                write!(f, "a survey of {} games, {to} values each, in {parts} parts", names.len())
            }
            Work::Verify(VerifyWork { game, count, digest, level, .. }) => {
                let (game, digest) = (printable(game), &digest[..SHORT]);
                let level = match level {
                    Level::Definition { samples, seed } => format!("definition ({samples} samples, seed {seed})"),
                    Level::Exclusion | Level::Recompute => level.name().into(),
                };
                write!(f, "the check of {count} values of {game} (digest {digest}…), level {level}, in {parts} parts")
            }
        }
    }
}

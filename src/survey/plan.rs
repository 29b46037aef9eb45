//! The plan of a survey, stored as the file `survey.plan` in its directory, and the comparison of plans with records.
//!
//! Every shard's plan describes the whole survey, so [`Collection::missing`] finds missing games and shards. A hash
//! decides the shard of a game ([`Plan::shard_of`]): games with similar codes take similar times, and the hash spreads
//! them evenly. It is the hash of the game in standard form, so that all games with one standard form belong to one
//! shard, which computes their values once. The plan names the sharding rule, so shards divided by different rules are
//! never merged.

use super::codes;
use super::extent::Extent;
use super::families::representative;
use super::record::{EXTENSION, Order, Record, file_name, is_program, is_record_name, order, printable};
use crate::error::{Damage, Error, Result, SurveyReason};
use crate::storage::Dir;
use crate::theory::rule::Rule;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// The file name of a plan.
pub const NAME: &str = "survey.plan";

/// Maximum length of the name of a game, in characters, as in the records of a run.
const LONGEST_NAME: usize = 2048;

/// Maximum number of games in a survey.
pub const MAX_GAMES: usize = 1 << 20;

/// Maximum number of digits after the point of [`Games::Digits`].
pub const MAX_DIGITS: u32 = 6;

/// Maximum length of a plan, in bytes.
const MAX_BYTES: u64 = 128 << 20;

/// Value of the field `format` of a plan.
const FORMAT: &str = "grundy-survey-plan-1";

/// The rule that assigns each game to a shard: the first 8 bytes of a BLAKE3 hash, as a little-endian number, modulo
/// the number of shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Sharding {
    /// The hash of the name of the game in standard form, or of its own canonical name where it has none.
    #[serde(rename = "blake3-of-standard-form-first-8-bytes-little-endian-mod-shards")]
    StandardForm,
    /// The hash of the canonical name of the game: the rule of plans written by earlier versions.
    #[serde(rename = "blake3-first-8-bytes-little-endian-mod-shards")]
    Name,
}

/// The games of a whole survey.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Games {
    /// All octal codes with up to this number of digits after the point.
    Digits(u32),
    /// The games with these canonical names.
    List(Vec<String>),
}

/// The games of a survey, the shard of one directory, and the number of values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// `grundy-survey-plan-1`.
    pub format: String,
    /// Name and version of the program that wrote the plan.
    pub program: String,
    /// The games of the whole survey.
    pub games: Games,
    /// The rule that assigns each game to a shard.
    pub sharding: Sharding,
    /// The shard of this directory, from 0.
    pub shard: u64,
    /// Number of shards.
    pub shards: u64,
    /// Number of values to which each game is examined.
    pub to: u64,
    /// Maximum computing time of a game in seconds, as estimated before each step; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<u64>,
}

impl Plan {
    /// Creates the plan of shard `shard.0` of `shard.1`, without a time limit.
    ///
    /// # Errors
    /// A sentence that states what is wrong, when the plan has no games or too many, or there is no such shard.
    pub fn new(games: Games, shard: (u64, u64), to: u64) -> std::result::Result<Plan, String> {
        let format = FORMAT.into();
        let program = crate::PROGRAM.into();
        let (sharding, (shard, shards)) = (Sharding::StandardForm, shard);
        let plan = Plan { format, program, games, sharding, shard, shards, to, time_limit: None };
        plan.check()?;
        Ok(plan)
    }

    /// Parses a plan from the bytes of its file.
    ///
    /// # Errors
    /// A sentence that states what is wrong, when the bytes are not a plan of this program.
    pub fn parse(bytes: &[u8]) -> std::result::Result<Plan, String> {
        let plan: Plan = serde_json::from_slice(bytes).map_err(|e| printable(&e.to_string()))?;
        if plan.format != FORMAT {
            return Err(format!("its format is '{}', not '{FORMAT}'", printable(&plan.format)));
        }
        if !is_program(&plan.program) {
            return Err("the field 'program' is not a short line of printable ASCII".into());
        }
        plan.check()?;
        Ok(plan)
    }

    /// Reads the plan of a directory, if it has one.
    pub(super) fn read(dir: &Dir) -> Result<Option<Plan>> {
        let not_a_plan = |why| Damage::NotAPlan { why };
        let Some(bytes) = dir.read_undamaged(NAME, MAX_BYTES, not_a_plan)? else { return Ok(None) };
        let damage = |why| Error::Damage { path: dir.join(NAME), offset: 0, damage: not_a_plan(why) };
        Plan::parse(&bytes).map(Some).map_err(damage)
    }

    pub(super) fn write(&self, dir: &Dir) -> Result<()> {
        let text = serde_json::to_string_pretty(self).expect("numbers and text are JSON") + "\n";
        if text.len() as u64 > MAX_BYTES {
            return Err(Error::Survey { path: dir.join(NAME), why: SurveyReason::PlanTooLong { most: MAX_BYTES } });
        }
        dir.write_whole(NAME, text.as_bytes())
    }

    /// Checks the fields; the error is a sentence that states what is wrong.
    pub(super) fn check(&self) -> std::result::Result<(), String> {
        if self.shard >= self.shards || self.to == 0 {
            let Plan { shard, shards, to, .. } = self;
            return Err(format!("there is no shard {shard} of {shards} that examines {to} values of a game"));
        }
        if self.time_limit == Some(0) {
            return Err("the time limit is 0 seconds".into());
        }
        let names = match &self.games {
            Games::Digits(1..=MAX_DIGITS) => return Ok(()),
            Games::Digits(digits) => return Err(format!("{digits} digits; a survey has 1 to {MAX_DIGITS}")),
            Games::List(names) => names,
        };
        if names.is_empty() || names.len() > MAX_GAMES {
            return Err(format!("{} games; a survey has 1 to {MAX_GAMES}", names.len()));
        }
        let mut seen = BTreeSet::new();
        for name in names {
            if !is_canonical(name) || !seen.insert(name) {
                return Err(format!("'{}' is not the canonical name of a game, or is there twice", shown(name)));
            }
            if name.len() > LONGEST_NAME {
                let length = name.len();
                return Err(format!("'{}' has {length} characters; at most {LONGEST_NAME} fit a record", shown(name)));
            }
        }
        Ok(())
    }

    /// Returns the games of the whole survey, in the order in which they are examined.
    #[must_use]
    pub fn all(&self) -> Vec<Rule> {
        match &self.games {
            Games::Digits(digits) => codes(*digits),
            // `check` has refused names that are not games.
            Games::List(names) => names.iter().filter_map(|name| name.parse().ok()).collect(),
        }
    }

    /// Returns the games of this shard, in the order in which they are examined.
    #[must_use]
    pub fn mine(&self) -> Vec<Rule> {
        self.all().into_iter().filter(|rule| self.shard_of(rule) == self.shard).collect()
    }

    /// Returns the shard of a game ([`Sharding`]).
    #[must_use]
    pub fn shard_of(&self, rule: &Rule) -> u64 {
        if self.shards == 1 {
            return 0;
        }
        let hash = match self.sharding {
            Sharding::StandardForm => blake3::hash(representative(rule).rule.name().as_bytes()),
            Sharding::Name => blake3::hash(rule.name().as_bytes()),
        };
        let first: [u8; 8] = hash.as_bytes()[..8].try_into().expect("a hash has 32 bytes");
        u64::from_le_bytes(first) % self.shards
    }

    /// Checks that each record in the directory is that of a game of the whole survey.
    ///
    /// # Errors
    /// [`Error::Survey`] for another record.
    pub(super) fn refuse_others(&self, dir: &Dir) -> Result<()> {
        let mut names = dir.names().map_err(Error::io("reading the names in", dir.path()))?;
        let of_game: BTreeSet<String> = self.all().iter().map(|rule| file_name(rule, EXTENSION)).collect();
        names.retain(|name| is_record_name(name) && !of_game.contains(name));
        names.sort_unstable();
        match names.first() {
            Some(name) => {
                let why = SurveyReason::OtherGame { name: printable(name) };
                Err(Error::Survey { path: dir.path().into(), why })
            }
            None => Ok(()),
        }
    }

    /// How far each game is examined.
    pub(super) fn extent(&self) -> Extent {
        Extent { to: self.to, time_limit: self.time_limit.map(Duration::from_secs) }
    }

    /// Whether both plans belong to one survey, whatever their shards.
    fn is_of(&self, other: &Plan) -> bool {
        let same_list = || match (&self.games, &other.games) {
            (Games::List(a), Games::List(b)) => a.iter().collect::<BTreeSet<_>>() == b.iter().collect(),
            _ => false,
        };
        let same_shards = self.shards == other.shards && (self.shards == 1 || self.sharding == other.sharding);
        same_shards && (self.games == other.games || same_list())
    }

    /// Compares this plan with the one stored in the directory, and returns the plan that is valid from now on.
    ///
    /// # Errors
    /// [`Error::Survey`] when the stored plan is that of another survey or shard, or has a greater `to` or a longer
    /// time limit.
    pub(super) fn continues(self, there: Option<&Plan>, dir: &Dir) -> Result<Plan> {
        let Some(there) = there else { return Ok(self) };
        let plan = Plan { sharding: there.sharding, ..self };
        let refuse = |why| Err(Error::Survey { path: dir.path().into(), why });
        if !plan.is_of(there) || plan.shard != there.shard {
            let found = format!("{}/{there}", there.shard);
            let expected = format!("{}/{plan}", plan.shard);
            return refuse(SurveyReason::OtherSurvey { found, expected });
        }
        if plan.to < there.to {
            return refuse(SurveyReason::MoreValues { found: there.to, expected: plan.to });
        }
        if let Some(expected) = plan.time_limit
            && there.time_limit.is_none_or(|found| found > expected)
        {
            return refuse(SurveyReason::LongerLimit { found: there.time_limit, expected });
        }
        Ok(plan)
    }
}

impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of the survey of ", self.shards)?;
        match &self.games {
            Games::Digits(digits) => write!(f, "all octal codes with up to {digits} digits"),
            Games::List(names) => {
                write!(f, "{} games, {} to {}", names.len(), shown(&names[0]), shown(&names[names.len() - 1]))
            }
        }
    }
}

fn is_canonical(name: &str) -> bool {
    name.parse::<Rule>().is_ok_and(|rule| rule.name() == name)
}

/// Prepares a name, which may have thousands of digits, for a message.
fn shown(name: &str) -> String {
    const LONGEST: usize = 40;
    let short: String = name.chars().take(LONGEST).collect();
    printable(&short) + if short.len() < name.len() { "…" } else { "" }
}

/// The merged records and the plans of several survey directories.
#[derive(Clone, Debug, Default)]
pub struct Collection {
    /// One record of each game, in the order of a table.
    pub records: BTreeMap<Order, Record>,
    /// The directories that have a plan, each with its plan.
    pub plans: Vec<(PathBuf, Plan)>,
    /// The directories that have records but no plan, written by versions without plans.
    pub unplanned: Vec<PathBuf>,
}

/// The games that the plans of a [`Collection`] require and its records lack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing {
    /// Number of games of the plans.
    pub expected: usize,
    /// Number of games that are missing.
    pub games: usize,
    /// A line for each shard without a directory, then one for each other missing game.
    pub lines: Vec<String>,
}

impl Collection {
    /// Returns the missing games. When the directory of a game's shard is given, the game must have been examined up
    /// to the `to` of that plan; otherwise any record of the game counts.
    #[must_use]
    pub fn missing(&self) -> Missing {
        let mut expected = BTreeSet::new();
        let mut absent = BTreeSet::new();
        let mut shards = Vec::new();
        let mut games = BTreeMap::new();
        for survey in self.surveys() {
            let plan = survey[0].1;
            // Of two directories of a shard the plan with the greater `to` counts.
            let mut there: BTreeMap<u64, &(&PathBuf, &Plan)> = BTreeMap::new();
            for part in &survey {
                let kept = there.entry(part.1.shard).or_insert(part);
                *kept = if part.1.to > kept.1.to { part } else { *kept };
            }
            let mut of_absent: BTreeMap<u64, usize> = BTreeMap::new();
            for rule in plan.all() {
                let name = order(rule.name());
                let shard = plan.shard_of(&rule);
                let record = self.records.get(&name);
                expected.insert(name.clone());
                match (there.get(&shard), record) {
                    (None, Some(_)) => continue,
                    (None, None) => *of_absent.entry(shard).or_default() += 1,
                    (Some((path, part)), record) => {
                        let what = match record {
                            Some(record) if record.is_done(part.extent()) => continue,
                            Some(record) if record.to >= part.to => "ended by a shorter time limit".into(),
                            Some(record) => format!("examined up to {} values, not {}", record.to, part.to),
                            None => "no record".into(),
                        };
                        games.insert(name.clone(), format!("{}: {what} ({})", shown(rule.name()), path.display()));
                    }
                }
                absent.insert(name);
            }
            shards.extend(of_absent.iter().map(|(shard, count)| {
                let s = if *count == 1 { "" } else { "s" };
                format!("shard {shard}/{plan}: {count} game{s} missing, no directory of this shard is given")
            }));
        }
        let lines = shards.into_iter().chain(games.into_values()).collect();
        Missing { expected: expected.len(), games: absent.len(), lines }
    }

    /// Returns a line for each survey whose plans examine games to different extents.
    #[must_use]
    pub fn uneven(&self) -> Vec<String> {
        let extent = |plan: &Plan| {
            let limit = plan.time_limit.map_or(String::new(), |limit| format!(" within {limit} s"));
            format!("{} values{limit}", plan.to)
        };
        let is_uneven =
            |survey: &&Vec<(&PathBuf, &Plan)>| survey.iter().any(|(_, plan)| extent(plan) != extent(survey[0].1));
        let line = |survey: &Vec<(&PathBuf, &Plan)>| {
            let each = survey.iter().map(|(path, plan)| format!("{} ({})", extent(plan), path.display()));
            format!("the directories examine games to different extents: {}", each.collect::<Vec<String>>().join(", "))
        };
        self.surveys().iter().filter(is_uneven).map(line).collect()
    }

    /// Returns the plans, grouped by survey.
    fn surveys(&self) -> Vec<Vec<(&PathBuf, &Plan)>> {
        let mut surveys: Vec<Vec<(&PathBuf, &Plan)>> = Vec::new();
        for (path, plan) in &self.plans {
            match surveys.iter_mut().find(|survey| survey[0].1.is_of(plan)) {
                Some(survey) => survey.push((path, plan)),
                None => surveys.push(vec![(path, plan)]),
            }
        }
        surveys
    }
}

//! A unit: the part of a survey or of a verification that one process does, and the name that states it.

use crate::survey::Games;
use crate::theory::rule::Rule;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Number of hexadecimal digits of a hash or a digest in the name of a unit.
pub(super) const SHORT: usize = 16;

/// The work that a plan divides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// A survey.
    Survey(SurveyWork),
    /// A verification of a run.
    Verify(VerifyWork),
}

/// A survey that is divided into units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SurveyWork {
    /// The games.
    pub games: Games,
    /// Number of values to which each game is examined.
    pub to: u64,
    /// Number of values to which a game is examined if that could prove its period.
    pub proof_to: u64,
}

/// A verification that is divided into units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifyWork {
    /// Path of the run directory where the plan was written.
    pub run: String,
    /// Canonical name of the game.
    pub game: String,
    /// Number of values of the run.
    pub count: u64,
    /// Digest of these values.
    pub digest: String,
    /// The level.
    pub level: Level,
}

/// The level of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Level {
    /// [`crate::verify::exclusion()`].
    Exclusion,
    /// [`crate::verify::recompute()`].
    Recompute,
    /// [`crate::verify::definition()`].
    Definition {
        /// Number of values of each unit that are computed again, besides the first and the last.
        samples: u64,
        /// The seed that selects them.
        seed: u64,
    },
}

impl Level {
    /// Returns the name of the level.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Level::Exclusion => "exclusion",
            Level::Recompute => "recompute",
            Level::Definition { .. } => "definition",
        }
    }
}

/// One unit of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Number of the part, from 0.
    pub(super) part: usize,
    pub(super) name: String,
    pub(super) task: Task,
}

/// What a unit does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Examines games.
    Survey(Vec<Rule>),
    /// Checks a range of n.
    Verify(Range<u64>),
}

impl Unit {
    /// Returns the name, which consists of lower-case letters, digits and hyphens.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of games or values of the unit.
    #[must_use]
    pub fn size(&self) -> u64 {
        match &self.task {
            Task::Survey(games) => games.len() as u64,
            Task::Verify(range) => range.end - range.start,
        }
    }
}

/// Returns the name of part number `part` of a survey, of `parts` parts, with these games.
pub(super) fn survey_name(kind: &str, (part, parts): (usize, u64), work: &SurveyWork, games: &[Rule]) -> String {
    let mut hasher = blake3::Hasher::new();
    for rule in games {
        hasher.update(rule.name().as_bytes());
        hasher.update(b"\n");
    }
    let hash = &hasher.finalize().to_hex()[..SHORT];
    let width = parts.saturating_sub(1).to_string().len();
    format!("survey-{kind}-part{part:0width$}of{parts}-to{}-proof{}-{hash}", work.to, work.proof_to)
}

/// Returns the name of the unit that checks this range of n.
pub(super) fn verify_name(work: &VerifyWork, range: &Range<u64>) -> String {
    let sample = match work.level {
        Level::Definition { samples, seed } => format!("-samples{samples}-seed{seed}"),
        Level::Exclusion | Level::Recompute => String::new(),
    };
    let (level, digest) = (work.level.name(), &work.digest[..SHORT]);
    format!("verify-{level}{sample}-{}to{}-{digest}", range.start, range.end)
}

//! Why a run, a survey or a directory of work units was refused.

/// The clause that names the last rare position; empty while n = 0 is the only one known.
fn after_rare(last_rare: u64) -> String {
    if last_rare == 0 { String::new() } else { format!("with the last rare position at {last_rare}, ") }
}

/// Why a run needs more of its last values than it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeepReason {
    /// The game or the method computes every value by the definition, which needs all earlier values.
    #[error("values are computed by the definition, which needs all of them")]
    Definition,
    /// The run would discard values before the solver has found a sparse space.
    #[error("values are still computed by the definition, which needs all of them")]
    StillDefinition,
    /// The lookback that follows from the last rare position is larger.
    #[error("{}the solver needs the last {needed} values", after_rare(*last_rare))]
    Lookback {
        /// The last rare position.
        last_rare: u64,
        /// The lookback of the solver: the number of last values that it needs.
        needed: u64,
    },
    /// A single n needs all earlier values.
    #[error(
        "heap {n} is a new rare position, or its value is proved by no option near the ends, and so all values before \
         it are needed, of which {}..{} are freed",
        hole.0, hole.1
    )]
    AllValues {
        /// The n.
        n: u64,
        /// The half-open range of discarded values.
        hole: (u64, u64),
    },
}

/// Why a directory holds no run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoRunReason {
    /// The directory does not exist.
    #[error("no such directory")]
    NoDirectory,
    /// The directory has no journal.
    #[error("no {journal}")]
    NoJournal {
        /// The name of the missing file.
        journal: &'static str,
    },
    /// The journal is shorter than a record.
    #[error("{journal} holds no whole record")]
    NoRecord {
        /// The name of the journal.
        journal: &'static str,
    },
    /// The directory has no run, and the request does not name the game of a new one.
    #[error("and no game was named")]
    NoGame,
    /// The journal has no good record that names the game, and the request does not name it.
    #[error("its journal holds no good record that names the game")]
    NoGameRecorded,
    /// The directory has tables without a journal.
    #[error("its tables are here, but {journal} is missing, so the number of committed values is unknown")]
    LostJournal {
        /// The name of the missing file.
        journal: &'static str,
        /// The game of the requested run, if it was named.
        game: Option<String>,
    },
}

/// Why a directory is not that of the requested survey.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SurveyReason {
    /// The directory has files that no survey writes.
    #[error("the directory has other files ('{name}')")]
    Occupied {
        /// The first of these files, with characters escaped.
        name: String,
    },
    /// The directories have too many records.
    #[error("more than {most} records")]
    TooManyRecords {
        /// Maximum number of records read together.
        most: usize,
    },
    /// The directory has neither a plan nor records.
    #[error("no survey here: neither a plan ({plan}) nor records")]
    NoSurvey {
        /// The name of the file of a plan.
        plan: &'static str,
    },
    /// The names of the games do not fit a plan.
    #[error("the names of the games take more than {most} bytes")]
    PlanTooLong {
        /// Maximum length of a plan, in bytes.
        most: u64,
    },
    /// The directory has another survey, or another shard of it.
    #[error("this directory belongs to shard {found}")]
    OtherSurvey {
        /// The shard and the survey of the directory.
        found: String,
        /// The requested shard and survey.
        expected: String,
    },
    /// The directory has a record of a game that is none of the survey.
    #[error("the directory has the file '{name}', which belongs to no game of this survey")]
    OtherGame {
        /// The name of the record, with characters escaped.
        name: String,
    },
    /// The survey examines a game for a longer time than requested.
    #[error("this survey examines a game {}, and the requested limit is {expected} s", limit(*found))]
    LongerLimit {
        /// The time limit of the survey in seconds; `None` without a limit.
        found: Option<u64>,
        /// The requested time limit in seconds.
        expected: u64,
    },
    /// The survey examines more values of a game than requested.
    #[error("this survey examines up to {found} values of a game, more than {expected}")]
    MoreValues {
        /// Number of values that the survey examines.
        found: u64,
        /// The requested number of values.
        expected: u64,
    },
}

/// The time limit of a survey in words.
fn limit(seconds: Option<u64>) -> String {
    seconds.map_or("without a time limit".into(), |seconds| format!("for up to {seconds} s"))
}

/// Why a work unit, or its directory, is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnitsReason {
    /// The directory has no plan, and the name of the unit does not tell the plan.
    #[error("no units here ({plan} is missing)")]
    NoPlan {
        /// The name of the file of a plan.
        plan: &'static str,
    },
    /// The name has the form of a unit of all octal codes, but no such survey has a unit of this name.
    #[error("'{name}' is not the name of a unit: its numbers and its hash do not fit each other")]
    MistypedUnit {
        /// The name as it was typed.
        name: String,
    },
    /// The directory has files that no unit writes.
    #[error("the directory has other files ('{name}')")]
    Occupied {
        /// The first of these files, with characters escaped.
        name: String,
    },
    /// The directory has the plan of other units.
    #[error("this directory belongs to {found}, not to {expected}")]
    OtherPlan {
        /// The plan of the directory.
        found: String,
        /// The requested plan.
        expected: String,
    },
    /// The directory has the plan of a survey of another list of as many games.
    #[error("this directory belongs to a survey of {}", match game {
        Some(game) => format!("another list of games, with '{game}'"),
        None => "the same games in another order".into(),
    })]
    OtherGames {
        /// The first game of that list which the requested one does not have, with characters escaped; `None` if the
        /// lists differ in their order only.
        game: Option<String>,
    },
    /// The plan of the directory has no unit of this name.
    #[error("the plan has no unit '{name}'")]
    UnknownUnit {
        /// The name, with characters escaped.
        name: String,
    },
    /// The directory of the run is not that of the run in the plan.
    #[error("the run in this directory does not have the digest {digest} after {count} values, which the plan names")]
    OtherRun {
        /// The digest that the plan names.
        digest: String,
        /// Number of values of the plan.
        count: u64,
    },
    /// The run of the plan is not at the path that the plan names.
    #[error("no run here; the run of the plan may have been moved")]
    NoRun,
    /// Another process works on the same unit. The file system keeps no locks between them.
    #[error("another process works on the same unit ({why})")]
    NotAlone {
        /// What shows it: why the file is no result, or the result that exists.
        why: String,
    },
    /// The run has discarded values, which no unit could check.
    #[error("units check all values of a run, and this run has freed {}..{}", hole.0, hole.1)]
    Discarded {
        /// The half-open range of discarded values.
        hole: (u64, u64),
    },
    /// The path of the run is not text, and a plan cannot name it.
    #[error("the path is not UTF-8, and a plan cannot name it")]
    NotText,
    /// The list of games does not fit a plan.
    #[error("the names of the games take more than {most} bytes")]
    PlanTooLong {
        /// Maximum length of a plan, in bytes.
        most: u64,
    },
    /// The number of parts is out of range.
    #[error("{parts} parts; a plan has 1 to {most}")]
    Parts {
        /// The requested number.
        parts: u64,
        /// Maximum number of parts.
        most: u64,
    },
}

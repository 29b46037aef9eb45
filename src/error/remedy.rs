//! What a user can do about an error.

use super::Damage;
use super::reasons::{KeepReason, NoRunReason, SurveyReason, UnitsReason};
use rustix::io::Errno;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What to do about an error, as data. A program words it for its own users; the command line names its options.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// Give an octal code, a code of Grundy's game, or the name of a known game.
    NameGame,
    /// Write the point of the octal code, which is missing or a comma.
    WritePoint {
        /// The codes that may be meant.
        codes: Vec<String>,
    },
    /// Choose a name from the list of known games.
    ListGames,
    /// Choose a kernel that this processor can run.
    ListKernels,
    /// Search a smaller position, or raise the maximum number of positions.
    RaisePositions,
    /// Search a smaller position, or replace the limits by a maximum number of positions.
    BoundPositions,
    /// Check at a level that needs no sparse space.
    OtherLevel,
    /// Choose other values, or compute these again in another directory.
    OtherValues,
    /// Repeat the request and keep at least this many last values.
    KeepMore {
        /// Number of last values that suffices.
        keep: u64,
    },
    /// Compute the run in another directory and keep at least this many last values: this run cannot continue.
    KeepMoreElsewhere {
        /// Number of last values that suffices.
        keep: u64,
    },
    /// Compute the run in another directory and keep all values.
    KeepAll,
    /// Compute fewer values, or keep fewer of them.
    NeedLess {
        /// The largest total number of values that fits.
        to: Option<u64>,
        /// A number of last values to keep with which all values fit.
        keep: Option<u64>,
    },
    /// Choose another directory.
    OtherDirectory,
    /// Keep all values, or choose a directory on a file system that supports holes.
    OtherFileSystem,
    /// Wait until the other process ends, or stop it; then repeat the request.
    Wait,
    /// Repeat the request. If the error returns, test the memory of the machine.
    TestMemory,
    /// Repeat the request. If the error returns at the same values, the run is wrong there: compute it again in another
    /// directory.
    Repeat,
    /// Open the run again and repeat the request.
    ReadAgain,
    /// Check the disk.
    CheckDisk,
    /// Raise the limit of the process on the size of a file, or choose a file system for larger files.
    RaiseFileSize,
    /// Export the values with the program that wrote them, or compute the run again in another directory.
    ExportWithOlderProgram,
    /// Verify the run, to see what is left of it.
    Verify,
    /// Resume the run, which drops the torn tail of the journal.
    Resume {
        /// The run directory.
        dir: PathBuf,
    },
    /// Resume the run and name its game.
    ResumeWithGame {
        /// The run directory.
        dir: PathBuf,
    },
    /// Resume the run, which recomputes the values that disagree; or roll it back.
    Repair {
        /// The run directory.
        dir: PathBuf,
    },
    /// Roll the run back.
    RollBack {
        /// The run directory.
        dir: PathBuf,
        /// The state to which the run returns.
        to: RollBackTo,
    },
    /// Roll the run back, which rewrites the header and keeps the values that agree with the journal.
    RewriteHeader {
        /// The run directory.
        dir: PathBuf,
    },
    /// Restore the file from a copy, or roll the run back to the values that the files support.
    RestoreFile {
        /// The run directory.
        dir: PathBuf,
    },
    /// Restore the journal from a copy, or choose another directory, or roll back, which sets the tables aside and
    /// starts again.
    RestoreJournal {
        /// The run directory.
        dir: PathBuf,
        /// The game of the run, if the request names it.
        game: Option<String>,
    },
    /// Roll the run back, which records the counters of the table and keeps all values.
    CorrectCounters {
        /// The run directory.
        dir: PathBuf,
    },
    /// Roll the run back, which moves the values to quarantine files and starts again.
    SetAside {
        /// The run directory.
        dir: PathBuf,
        /// The game of the run.
        game: String,
    },
    /// Roll the run back, which keeps the values of the records after the damage, if these can follow each other.
    /// Otherwise it moves the journal and the tables to quarantine files and starts again.
    StartAgain {
        /// The run directory.
        dir: PathBuf,
        /// The game of the run, if the damaged journal names it.
        game: Option<String>,
    },
    /// Remove the file and repeat the survey if the file was a record; otherwise move the file away.
    RemoveRecord,
    /// Examine the game again in a new directory, and remove the record that is wrong.
    ExamineAgain,
    /// Remove the saved values and repeat the survey, which computes them again.
    RemoveValues,
    /// Remove the plan and repeat the survey.
    RemovePlan,
    /// Choose an empty or a new directory.
    EmptyDirectory,
    /// Read fewer directories together.
    FewerDirectories,
    /// Name a directory that a survey wrote.
    SurveyDirectory,
    /// Divide the list of games.
    DivideList,
    /// Choose another directory for this shard.
    DirectoryForShard {
        /// The shard and its survey.
        shard: String,
    },
    /// Write the plan of the units into the directory first.
    WriteUnitsPlan,
    /// Name a directory with the same plan, or an empty one.
    SamePlan,
    /// List the names of the units.
    ListUnits,
    /// Do the unit again, where no other process works on it: with locks, or in a directory of its own.
    DoUnitAlone,
    /// List the names of the units of a survey of all octal codes.
    NameUnit,
    /// Name the directory of the run.
    NameRun,
    /// Check the retained values of the run without units.
    VerifyWithoutUnits,
    /// Remove the file and do the unit again.
    RemoveResult,
    /// Remove the plan and write it again.
    RemoveUnitsPlan,
    /// Do the unit again in a new directory, and remove the wrong result.
    DoUnitAgain,
    /// Examine at least this many values of a game, or choose another directory.
    RaiseTo {
        /// Number of values that the survey examines.
        to: u64,
    },
    /// Examine each game for at least this time, or choose another directory.
    RaiseLimit {
        /// The time limit of the survey in seconds; `None` without a limit.
        seconds: Option<u64>,
    },
    /// Move the record to another directory, or choose another directory for the survey.
    MoveRecord,
}

impl Remedy {
    /// What to do about an error of the operating system, if that is known.
    ///
    /// ```
    /// use grundy::error::Remedy;
    /// use std::io::{Error, ErrorKind};
    /// assert_eq!(Remedy::of_system(&Error::from(ErrorKind::FileTooLarge)), Some(Remedy::RaiseFileSize));
    /// assert_eq!(Remedy::of_system(&Error::from(ErrorKind::NotFound)), None);
    /// ```
    #[must_use]
    pub fn of_system(error: &std::io::Error) -> Option<Remedy> {
        match error.kind() {
            ErrorKind::FileTooLarge => Some(Remedy::RaiseFileSize),
            _ if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => Some(Remedy::CheckDisk),
            _ => None,
        }
    }
}

/// The state to which a rollback returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RollBackTo {
    /// The values before the discarded values.
    BeforeDiscarded,
    /// The last record after the damage of the journal, if the records after it can follow; otherwise the last good
    /// record before the damage.
    LastGoodRecord {
        /// Number of values of the record before the damage.
        values: u64,
    },
    /// The last commit before a wrong value.
    Before {
        /// The n of the wrong value.
        n: u64,
    },
    /// The last commit that agrees with the journal.
    Values {
        /// Number of values of that commit.
        values: u64,
    },
}

/// The remedy of [`super::Error::Damage`], for the file `path`.
pub(super) fn of_damage(path: &Path, damage: &Damage) -> Option<Remedy> {
    let dir = path.parent().unwrap_or(Path::new("")).to_owned();
    let roll_back = |to| Some(Remedy::RollBack { dir: dir.clone(), to });
    match damage {
        Damage::TornTail => Some(Remedy::Resume { dir }),
        Damage::Journal { values: Some(values), .. } => roll_back(RollBackTo::LastGoodRecord { values: *values }),
        Damage::Journal { values: None, game, .. } => Some(Remedy::StartAgain { dir, game: game.clone() }),
        Damage::WentBack => Some(Remedy::ReadAgain),
        Damage::ValuesWithoutRecord { game } => Some(Remedy::SetAside { dir, game: game.clone() }),
        Damage::MissingFile | Damage::ShortFile { .. } => Some(Remedy::RestoreFile { dir }),
        Damage::Header { .. } => Some(Remedy::RewriteHeader { dir }),
        Damage::Digest { repair_failed: false, .. } | Damage::Escape { .. } | Damage::EscapeCount { .. } => {
            Some(Remedy::Repair { dir })
        }
        Damage::Digest { from, repair_failed: true, .. } => roll_back(RollBackTo::Values { values: *from }),
        Damage::UnstableValues { .. } => Some(Remedy::CheckDisk),
        Damage::Summary(_) => roll_back(RollBackTo::BeforeDiscarded),
        Damage::Counters { .. } => Some(Remedy::CorrectCounters { dir }),
        Damage::WrongSuspect { n, .. } => roll_back(RollBackTo::Before { n: *n }),
        Damage::NotARecord { .. } => Some(Remedy::RemoveRecord),
        Damage::RecordsContradict { .. } | Damage::NewRecordContradicts { .. } => Some(Remedy::ExamineAgain),
        Damage::NotSavedValues { .. } => Some(Remedy::RemoveValues),
        Damage::NotAPlan { .. } => Some(Remedy::RemovePlan),
        Damage::NotAUnitsPlan { .. } => Some(Remedy::RemoveUnitsPlan),
        Damage::NotAResult { .. } => Some(Remedy::RemoveResult),
        Damage::ResultsContradict { .. } => Some(Remedy::DoUnitAgain),
        _ => None,
    }
}

/// The remedy of [`super::Error::NoRun`].
pub(super) fn of_no_run(dir: &Path, why: &NoRunReason) -> Option<Remedy> {
    let dir = dir.to_owned();
    match why {
        NoRunReason::NoGameRecorded => Some(Remedy::ResumeWithGame { dir }),
        NoRunReason::LostJournal { game, .. } => Some(Remedy::RestoreJournal { dir, game: game.clone() }),
        _ => None,
    }
}

/// The remedy of [`super::Error::Survey`].
pub(super) fn of_survey(why: &SurveyReason) -> Remedy {
    match why {
        SurveyReason::Occupied { .. } => Remedy::EmptyDirectory,
        SurveyReason::TooManyRecords { .. } => Remedy::FewerDirectories,
        SurveyReason::NoSurvey { .. } => Remedy::SurveyDirectory,
        SurveyReason::PlanTooLong { .. } => Remedy::DivideList,
        SurveyReason::OtherSurvey { expected, .. } => Remedy::DirectoryForShard { shard: expected.clone() },
        SurveyReason::OtherGame { .. } => Remedy::MoveRecord,
        SurveyReason::LongerLimit { found, .. } => Remedy::RaiseLimit { seconds: *found },
        SurveyReason::MoreValues { found, .. } => Remedy::RaiseTo { to: *found },
    }
}

/// The remedy of [`super::Error::Units`].
pub(super) fn of_units(why: &UnitsReason) -> Option<Remedy> {
    match why {
        UnitsReason::NoPlan { .. } => Some(Remedy::WriteUnitsPlan),
        UnitsReason::MistypedUnit { .. } => Some(Remedy::NameUnit),
        UnitsReason::Occupied { .. } => Some(Remedy::EmptyDirectory),
        UnitsReason::OtherPlan { .. } | UnitsReason::OtherGames { .. } => Some(Remedy::SamePlan),
        UnitsReason::UnknownUnit { .. } => Some(Remedy::ListUnits),
        UnitsReason::OtherRun { .. } | UnitsReason::NoRun => Some(Remedy::NameRun),
        UnitsReason::NotAlone { .. } => Some(Remedy::DoUnitAlone),
        UnitsReason::Discarded { .. } => Some(Remedy::VerifyWithoutUnits),
        UnitsReason::PlanTooLong { .. } => Some(Remedy::DivideList),
        UnitsReason::NotText | UnitsReason::Parts { .. } => None,
    }
}

/// The remedy of [`super::Error::Code`]: a few digits are a code without its point, or with a comma in its place.
pub(super) fn of_code(text: &str) -> Option<Remedy> {
    /// Maximum number of digits; more are a number of values.
    const DIGITS: usize = 4;
    if text.is_empty() {
        return Some(Remedy::ListGames);
    }
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    if let Some((whole @ ("0" | "4" | "8"), rest)) = text.split_once(',')
        && are_digits(rest)
    {
        return Some(Remedy::WritePoint { codes: vec![format!("{whole}.{rest}")] });
    }
    if text.len() > DIGITS || !are_digits(text) {
        return None;
    }
    let (whole, rest) = text.split_at(1);
    let has_whole = matches!(whole, "0" | "4" | "8") && !rest.is_empty();
    let with_whole = has_whole.then(|| format!("{whole}.{rest}"));
    Some(Remedy::WritePoint { codes: with_whole.into_iter().chain([format!(".{text}")]).collect() })
}

/// The remedy of [`super::Error::Keep`].
pub(super) fn of_keep(needed: Option<u64>, why: &KeepReason) -> Remedy {
    match (needed, why) {
        (None, _) => Remedy::KeepAll,
        (Some(keep), KeepReason::AllValues { .. }) => Remedy::KeepMoreElsewhere { keep },
        (Some(keep), _) => Remedy::KeepMore { keep },
    }
}

//! The errors of the crate and their texts.
//!
//! Every variant states what was expected, what was found and where. [`Error::kind`] assigns each variant to a class,
//! which the command line maps to an exit status; [`Error::remedy`] states what the user can do, as data that the
//! command line words.

mod damage;
mod reasons;
mod remedy;
#[cfg(test)]
mod tests;

pub use damage::{BrokenRecord, Counters, Damage, JournalRest, SummaryDamage};
pub use reasons::{KeepReason, NoRunReason, SurveyReason, UnitsReason};
pub use remedy::{Remedy, RollBackTo};

use std::path::PathBuf;

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The class of an error, by the action it calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The request is invalid: a bad game code, an empty range.
    Usage,
    /// The environment or the run does not permit the request: no such directory, no disk space, an I/O error.
    Failed,
    /// Stored data contradicts itself or the mathematics.
    Damage,
    /// Another process uses the directory; a later attempt may succeed.
    Busy,
}

/// All errors of the crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A game code with a character that does not belong there. `position` counts characters from 1.
    #[error("bad game code '{}': {found} at position {position}; expected {expected}", text.escape_default())]
    Code {
        /// The code as it was typed.
        text: String,
        /// The offending character, counted from 1.
        position: usize,
        /// The character found there, or the end of the code.
        found: String,
        /// What the syntax permits there.
        expected: &'static str,
    },
    /// An unknown name of a game.
    #[error("'{}' is not a game{}", shortened(text, 60), did_you_mean(suggestions))]
    UnknownGame {
        /// The name as it was typed.
        text: String,
        /// Similar names of games.
        suggestions: Vec<String>,
    },
    /// The number of a sequence of the OEIS in the place of a game.
    #[error("{number} is a sequence, not a game: {formula} of '{game}'")]
    OeisSequence {
        /// The number.
        number: &'static str,
        /// The formula of its terms, such as `a(n) = G(n + 2)`.
        formula: String,
        /// The game whose values the sequence has.
        game: &'static str,
    },
    /// The misère form of a game, in which the player who cannot move wins.
    #[error(
        "'{}': misère play is not supported; this program computes normal play, in which the player who cannot move \
         loses",
        printable(text)
    )]
    Misere {
        /// The name as it was typed.
        text: String,
    },
    /// A list of moves that is not a rule (for example, a move that removes nothing and splits nothing).
    #[error("not a rule of a heap game: {0}")]
    Rule(String),
    /// A game whose name is too long for the records of a run.
    #[error("the code of this game has {length} characters; a run can store a code of at most {most}")]
    LongName {
        /// Length of the canonical name, in characters.
        length: usize,
        /// Maximum length.
        most: usize,
    },
    /// A position that is invalid for its game, or too large to be searched.
    #[error("not a position that can be searched: {0}")]
    Position(String),
    /// A nim-value that does not fit 16 bits. The computation stops; the value is not truncated.
    #[error("G({n}) is above 65535, the largest value that this program stores; the values below n = {n} are right")]
    ValueTooLarge {
        /// The n whose value is too large.
        n: u64,
    },
    /// A heap that is too large for a rule whose code repeats, because not all of its moves are listed.
    #[error(
        "G({n}) cannot be computed: the code of the game repeats, and this program lists the moves that remove up to \
         {largest} tokens"
    )]
    Unlisted {
        /// The heap.
        n: u64,
        /// The largest heap all of whose moves are listed.
        largest: u64,
    },
    /// A request for values beyond the end of a sequence.
    #[error("the values {from}..{to} are out of range: only {count} values (0..{count}) exist")]
    Range {
        /// The first n of the request.
        from: u64,
        /// One past the last n of the request.
        to: u64,
        /// Number of values of the sequence.
        count: u64,
    },
    /// A request for values that a run has discarded.
    #[error("{}", discarded(*from, *to, *hole, *heap))]
    Discarded {
        /// The first n of the request.
        from: u64,
        /// One past the last n of the request.
        to: u64,
        /// The half-open range of discarded values.
        hole: (u64, u64),
        /// The n whose options need the requested values, if that is the reason of the request.
        heap: Option<u64>,
    },
    /// A run that needs more of its last values than it keeps.
    #[error("{}: keeping {keep} values is too little: {why}", path.display())]
    Keep {
        /// The run directory.
        path: PathBuf,
        /// Number of last values that the run keeps.
        keep: u64,
        /// Number of last values that suffices by what is known now; `None` if the run needs all values.
        needed: Option<u64>,
        /// What needs the earlier values.
        why: KeepReason,
    },
    /// A sequence too long for the memory of this process or the address space of this machine.
    #[error("{what} needs {bytes} bytes of memory, more than this process can allocate")]
    Memory {
        /// The data that would be held.
        what: &'static str,
        /// The length of the data, in bytes.
        bytes: u64,
    },
    /// A search that would hold more positions than its bound.
    #[error("the search stops because it would have to hold more than {bound} positions")]
    Positions {
        /// Maximum number of positions held.
        bound: usize,
    },
    /// A search that would hold positions with too many parts, or take too long.
    #[error(
        "the search stops because it would have to hold more than {parts} cells or edges of positions, or to read \
         more than {work} to generate options"
    )]
    Search {
        /// Maximum number of parts (cells or edges) held.
        parts: usize,
        /// Maximum number of parts read.
        work: u64,
    },
    /// A kernel that is unknown, or that needs instructions which this processor lacks.
    #[error("this processor cannot run the kernel {}", printable(name))]
    Kernel {
        /// The name of the kernel.
        name: String,
    },
    /// A nim-value of a position that does not fit 16 bits.
    #[error("the nim-value of a position is above 65535, the largest value that this program stores")]
    PositionValue,
    /// A board or graph that is invalid or too large.
    #[error("{0}")]
    Board(String),
    /// A tune that a MIDI file cannot represent.
    #[error("{0}")]
    Tune(String),
    /// A directory that does not belong to a survey, or belongs to a different survey.
    #[error("{}: {why}", path.display())]
    Survey {
        /// The directory.
        path: PathBuf,
        /// What the directory contains.
        why: SurveyReason,
    },
    /// A directory that does not hold the requested work units, or a unit that it does not have.
    #[error("{}: {why}", path.display())]
    Units {
        /// The directory.
        path: PathBuf,
        /// What is wrong.
        why: UnitsReason,
    },
    /// A shape with an invalid character.
    #[error("row {row}, column {column} of the shape: '{}'; a shape has '#' and '.' only", found.escape_default())]
    Shape {
        /// The row, counted from 1.
        row: usize,
        /// The column, counted from 1.
        column: usize,
        /// The invalid character.
        found: char,
    },
    /// A line of a text file that is malformed or states something impossible.
    #[error("{}, line {line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with the line, and what was expected.
        what: String,
    },
    /// Data in memory changed.
    #[error(
        "the memory of this machine changed: {what} for n in {from}..{to} is not what was computed. Values \
         computed since the last check may be wrong"
    )]
    Flipped {
        /// The data that changed.
        what: &'static str,
        /// The first n of the range in which it changed.
        from: u64,
        /// One past the last n of that range.
        to: u64,
    },
    /// Values that were computed again do not have the digest that the journal states.
    #[error(
        "a check failed: the values {from}..{to}, computed again, do not have the digest that the journal states. Either \
         these values of the run are wrong, or those computed again"
    )]
    OtherDigest {
        /// The first n of the values.
        from: u64,
        /// One past the last n.
        to: u64,
    },
    /// Two independent computations of a value disagree.
    #[error("a check failed: G({n}) was computed as {value}, but {how} gives {again}")]
    Differs {
        /// The n of the value.
        n: u64,
        /// The value by the first computation.
        value: u32,
        /// The value by the second computation.
        again: u32,
        /// The method of the second computation.
        how: String,
    },
    /// Two kernels find different options of a position. Its value is not known yet.
    #[error(
        "a check failed: the kernels {kernel} and {other} find different options of n = {n}. One of them, or the memory, \
         is wrong"
    )]
    OptionsDiffer {
        /// The position.
        n: u64,
        /// The name of the kernel of the run.
        kernel: &'static str,
        /// The name of the kernel that the check uses.
        other: &'static str,
    },
    /// An operating system call failed.
    #[error("{action} {}: {source}", path.display())]
    Io {
        /// The action that failed ("reading", "writing 4096 bytes at offset 0 of").
        action: String,
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The system could not start threads.
    #[error("starting threads for {task}: {why}")]
    ThreadPool {
        /// The run directory, or the task of the threads.
        task: String,
        /// The error of the thread pool.
        why: String,
    },
    /// The file system cannot punch holes into files, which a run that discards values requires.
    #[error(
        "checking the file system of {}: this file system cannot free parts of a file, which a run that discards \
         values requires ({why})",
        path.display()
    )]
    NoHoles {
        /// The run directory.
        path: PathBuf,
        /// How the test of the file system failed.
        why: String,
    },
    /// The device lacks space for the bytes to be written.
    #[error(
        "{}: no room: {needed} bytes are still to be written, {available} are free, {} are missing",
        path.display(),
        needed.saturating_sub(*available)
    )]
    NoRoom {
        /// The file or the directory that was to be written.
        path: PathBuf,
        /// Number of bytes still to be written.
        needed: u64,
        /// Number of free bytes.
        available: u64,
        /// The largest total number of values that would fit; `None` if it is not known, or if the run has as many.
        fits: Option<u64>,
        /// A number of last values to keep with which the run would fit, if there is one.
        keep: Option<u64>,
    },
    /// The directory holds no run.
    #[error("{}: no run here ({why})", path.display())]
    NoRun {
        /// The directory.
        path: PathBuf,
        /// What is missing.
        why: NoRunReason,
    },
    /// Another process uses a directory, works on a unit, or writes a file.
    #[error("{}: another process is using it", path.display())]
    Locked {
        /// The directory or the file.
        path: PathBuf,
    },
    /// A property of the run in the directory differs from the requested one.
    #[error("{}: {what} of this run is {found}, not {expected}", path.display())]
    Mismatch {
        /// The directory.
        path: PathBuf,
        /// Which property differs.
        what: &'static str,
        /// The property of the run.
        found: String,
        /// The requested property.
        expected: String,
    },
    /// The run has a format that this program does not read.
    #[error("{}: this run has format {found}, but this program reads only format {expected}", path.display())]
    Format {
        /// The run directory.
        path: PathBuf,
        /// The format of its first record.
        found: u64,
        /// The format of this program.
        expected: u32,
    },
    /// A file of the run was replaced, truncated or altered while this process had it open.
    #[error(
        "{}: the file was changed while this run held it: {what}; nothing more is written",
        path.display()
    )]
    Replaced {
        /// The file.
        path: PathBuf,
        /// What happened to it.
        what: String,
    },
    /// A request for a new run in a directory that has other files.
    #[error("{}: this directory holds no run, but other files ({name})", path.display())]
    Occupied {
        /// The directory.
        path: PathBuf,
        /// One of the files.
        name: String,
    },
    /// A file of a run or a survey contradicts another file or itself.
    #[error("damage: {}{}: {damage}", path.display(), damage.place(*offset))]
    Damage {
        /// The file.
        path: PathBuf,
        /// The offset of the damage, in bytes; 0 where the whole file is meant.
        offset: u64,
        /// What is wrong.
        damage: Damage,
    },
    /// A value in the table that an option of the same position has as well, so one of the values involved is wrong.
    #[error("damage: the table says G({n}) = {value}, but {} has this value too: one of them is wrong", option(*rest))]
    Excluded {
        /// The n of the value.
        n: u64,
        /// The value of n in the table, and of one of its options.
        value: u32,
        /// The sizes of the heaps that the option leaves; 0 for a heap that does not exist.
        rest: (u64, u64),
    },
    /// A proved period that contradicts what is known of the game.
    #[error(
        "{game}: the proof of period {period} from n = {preperiod} on contradicts the catalogue ({known}): a computed \
         value is wrong, or the catalogue is; repeat the search, if possible on another machine"
    )]
    ContradictsCatalogue {
        /// The game.
        game: String,
        /// The period.
        period: u64,
        /// The preperiod.
        preperiod: u64,
        /// What is known, as a clause.
        known: String,
    },
    /// A check that needs a sparse space, for a game without a known one.
    #[error("{game}: this check needs a sparse space, and none is known for this game")]
    NoSpace {
        /// The game.
        game: String,
    },
    /// A certificate with a false statement.
    #[error("the certificate is refused: {what}")]
    Certificate {
        /// The false statement.
        what: String,
    },
    /// A value in the table contradicts the definition.
    #[error("damage: the table says G({n}) = {found}, but the values before it give {expected}")]
    Wrong {
        /// The n of the value.
        n: u64,
        /// The value in the table.
        found: u32,
        /// The value by the definition.
        expected: u32,
    },
}

impl Error {
    /// Returns the class of this error.
    ///
    /// ```
    /// use grundy::error::{Error, Kind};
    /// use grundy::theory::rule::Rule;
    ///
    /// let error: Error = "0.9x".parse::<Rule>().unwrap_err();
    /// assert_eq!(error.kind(), Kind::Usage);
    /// ```
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Error::Code { .. }
            | Error::UnknownGame { .. }
            | Error::OeisSequence { .. }
            | Error::Misere { .. }
            | Error::Rule(_)
            | Error::LongName { .. }
            | Error::Position(_)
            | Error::Units { why: UnitsReason::UnknownUnit { .. } | UnitsReason::MistypedUnit { .. }, .. }
            | Error::Shape { .. } => Kind::Usage,
            Error::Damage { .. }
            | Error::Wrong { .. }
            | Error::Differs { .. }
            | Error::OptionsDiffer { .. }
            | Error::OtherDigest { .. }
            | Error::Excluded { .. }
            | Error::ContradictsCatalogue { .. }
            | Error::Certificate { .. }
            | Error::Flipped { .. } => Kind::Damage,
            Error::Locked { .. } => Kind::Busy,
            _ => Kind::Failed,
        }
    }

    /// Whether a check of values or of memory failed: values that were computed before may be wrong.
    pub(crate) fn is_failed_check(&self) -> bool {
        matches!(self, Error::Flipped { .. } | Error::Differs { .. } | Error::OptionsDiffer { .. })
    }

    /// Returns what the user can do about this error, or `None` if its text says all that is known.
    ///
    /// ```
    /// use grundy::error::Remedy;
    /// use grundy::Run;
    ///
    /// let home = tempfile::tempdir()?;
    /// let error = Run::builder(&"grundy".parse()?, home.path()).to(1000).keep(65_536).run().unwrap_err();
    /// assert_eq!(error.remedy(), Some(Remedy::KeepMore { keep: 262_656 }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Error::Code { text, .. } => remedy::of_code(text),
            Error::UnknownGame { suggestions, .. } if suggestions.is_empty() => Some(Remedy::NameGame),
            Error::Discarded { .. } => Some(Remedy::OtherValues),
            Error::Keep { needed, why, .. } => Some(remedy::of_keep(*needed, why)),
            Error::Positions { .. } => Some(Remedy::RaisePositions),
            Error::Search { .. } => Some(Remedy::BoundPositions),
            Error::Kernel { .. } => Some(Remedy::ListKernels),
            Error::Survey { why, .. } => Some(remedy::of_survey(why)),
            Error::Units { why, .. } => remedy::of_units(why),
            Error::Flipped { .. } => Some(Remedy::TestMemory),
            Error::OtherDigest { .. } => Some(Remedy::Repeat),
            Error::NoHoles { .. } => Some(Remedy::OtherFileSystem),
            Error::NoRoom { fits: None, keep: None, .. } => None,
            Error::NoRoom { fits, keep, .. } => Some(Remedy::NeedLess { to: *fits, keep: *keep }),
            Error::NoRun { path, why } => remedy::of_no_run(path, why),
            Error::Locked { .. } => Some(Remedy::Wait),
            Error::Mismatch { .. } | Error::Occupied { .. } => Some(Remedy::OtherDirectory),
            Error::Format { .. } => Some(Remedy::ExportWithOlderProgram),
            Error::Replaced { .. } => Some(Remedy::Verify),
            Error::Damage { path, damage, .. } => remedy::of_damage(path, damage),
            Error::NoSpace { .. } => Some(Remedy::OtherLevel),
            Error::Io { source, .. } => Remedy::of_system(source),
            _ => None,
        }
    }

    /// Adds to [`Error::Discarded`] the n whose options needed the values; returns other errors unchanged.
    pub(crate) fn for_heap(self, n: u64) -> Error {
        match self {
            Error::Discarded { from, to, hole, heap: None } => Error::Discarded { from, to, hole, heap: Some(n) },
            other => other,
        }
    }

    /// Returns a function that makes the error of a thread pool for `task`.
    pub(crate) fn threads<E: std::fmt::Display>(task: impl std::fmt::Display) -> impl FnOnce(E) -> Error {
        let task = task.to_string();
        move |error| Error::ThreadPool { task, why: error.to_string() }
    }

    /// Returns a function that adds the failed action and the path to an operating system error.
    pub(crate) fn io(action: impl Into<String>, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let (action, path) = (action.into(), path.into());
        move |source| Error::Io { action, path, source }
    }
}

/// Returns text from a command line or a file in a form fit for a message: it escapes characters that a terminal would
/// not print unchanged, such as control characters, and keeps quotation marks and the letters of all scripts.
#[must_use]
pub fn printable(text: &str) -> String {
    let escaped = |c: char| match c {
        '\'' | '"' | '\\' => c.to_string(),
        c => c.escape_debug().to_string(),
    };
    text.chars().map(escaped).collect()
}

/// [`printable`], cut off after `longest` characters.
pub(crate) fn shortened(text: &str, longest: usize) -> String {
    let cut = if text.chars().nth(longest).is_some() { "…" } else { "" };
    printable(&text.chars().take(longest).collect::<String>()) + cut
}

/// Returns the end of the text of [`Error::UnknownGame`].
fn did_you_mean(suggestions: &[String]) -> String {
    match suggestions {
        [] => String::new(),
        names => format!("; did you mean '{}'?", names.join("' or '")),
    }
}

/// Returns the description of an option by the heaps that it leaves.
fn option((a, b): (u64, u64)) -> String {
    match (a, b) {
        (0, 0) => "the option that leaves nothing".into(),
        (0, n) | (n, 0) => format!("its option {n}"),
        (a, b) => format!("its option {a} + {b}"),
    }
}

/// Returns the text of [`Error::Discarded`].
fn discarded(from: u64, to: u64, hole: (u64, u64), heap: Option<u64>) -> String {
    let purpose = heap.map_or_else(String::new, |n| format!(", needed for the options of n = {n},"));
    format!(
        "the values {from}..{to}{purpose} cannot be read: the run keeps only a part of its values and has freed \
         {}..{}",
        hole.0, hole.1
    )
}

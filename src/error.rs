//! What can go wrong, and what to say about it.
//!
//! Every variant says what was expected, what was found and where; the text ends with what to do next, where there is
//! something to do. [`Error::kind`] sorts the variants into the classes that the command line turns into exit statuses.

use std::path::PathBuf;

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// The class of an error: who has to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What was asked for makes no sense: a bad game code, an empty range.
    Usage,
    /// The surroundings do not allow it: no such directory, no room, lock held, I/O error.
    Failed,
    /// Stored data contradicts itself or the mathematics.
    Damage,
    /// Another process uses the directory; a later try may succeed.
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
        /// What stands there.
        found: String,
        /// What could stand there.
        expected: &'static str,
    },
    /// A name that no game has.
    #[error("'{}' is not a game{}", printable(text), did_you_mean(suggestions))]
    UnknownGame {
        /// The name as it was typed.
        text: String,
        /// The names that it resembles.
        suggestions: Vec<String>,
    },
    /// The misère form of a game, in which the player who cannot move wins.
    #[error(
        "'{}': misère play is not supported; this program computes normal play, in which the player who cannot move loses",
        printable(text)
    )]
    Misere {
        /// The name as it was typed.
        text: String,
    },
    /// A list of moves that is no rule (a move that removes nothing and splits nothing, say).
    #[error("not a rule of a heap game: {0}")]
    Rule(String),
    /// A position that its game does not have, or one that is too large to be searched.
    #[error("not a position that can be searched: {0}")]
    Position(String),
    /// A nim-value that does not fit 16 bits; nothing is cut, the computation stops.
    #[error("G({n}) is above 65535, the largest value that this program stores; the values below n = {n} are right")]
    ValueTooLarge {
        /// The heap whose value is too large.
        n: u64,
    },
    /// Values were asked for that are not there.
    #[error("values {from}..{to} were asked for, but only {count} values (0..{count}) are there")]
    Range {
        /// First value asked for.
        from: u64,
        /// One past the last value asked for.
        to: u64,
        /// How many there are.
        count: u64,
    },
    /// Values were asked for that a run has freed (`--keep`).
    #[error("{}", freed(*from, *to, *hole, *heap))]
    Freed {
        /// First value asked for.
        from: u64,
        /// One past the last value asked for.
        to: u64,
        /// The values that are freed, half open.
        hole: (u64, u64),
        /// The heap whose options were asked for, where that is why.
        heap: Option<u64>,
    },
    /// A run looks back farther than it keeps values.
    #[error("{}: --keep {keep} is too little: {why}; {}", path.display(), enough(*needed, *freed))]
    Keep {
        /// The run directory.
        path: PathBuf,
        /// How many of the last values are kept.
        keep: u64,
        /// How many would do, as far as is known; `None` for all of them.
        needed: Option<u64>,
        /// Whether values are freed already, so that this run cannot go on.
        freed: bool,
        /// Who looks back.
        why: String,
    },
    /// A sequence too long for the memory of this process or the address space of this machine.
    #[error("{what} needs {bytes} bytes of memory, more than this process can get")]
    Memory {
        /// What was to be held.
        what: &'static str,
        /// Its size.
        bytes: u64,
    },
    /// A search that would hold more positions than it may.
    #[error(
        "more than {bound} positions would have to be held, and the search stops there; take a smaller position, or a \
         greater bound with --positions"
    )]
    Positions {
        /// How many it may hold.
        bound: usize,
    },
    /// A search that would hold positions with more parts than it may, or take too long.
    #[error(
        "more than {parts} cells or edges of positions would have to be held, or more than {work} read to make their \
         options, and the search stops there; take a smaller position, or the number of positions that may be held, \
         however large, with --positions"
    )]
    Search {
        /// How many parts it may hold.
        parts: usize,
        /// How many parts it may read.
        work: u64,
    },
    /// A nim-value of a position that does not fit 16 bits.
    #[error("the nim-value of a position is above 65535, the largest value that this program stores")]
    PositionValue,
    /// A board or graph that cannot be, or is too large.
    #[error("{0}")]
    Board(String),
    /// A tune that no MIDI file can be.
    #[error("{0}")]
    Tune(String),
    /// A directory that does not belong to a survey, or belongs to another one.
    #[error("{}: {what}", path.display())]
    Survey {
        /// The directory.
        path: PathBuf,
        /// What is there, and what to do.
        what: String,
    },
    /// A shape with a character that does not belong there.
    #[error("row {row}, column {column} of the shape: '{}'; a shape has '#' and '.' only", found.escape_default())]
    Shape {
        /// The row, counted from 1.
        row: usize,
        /// The column, counted from 1.
        column: usize,
        /// What stands there.
        found: char,
    },
    /// A line of a text that is not understood, or says what cannot be.
    #[error("{}, line {line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong there, and what was expected.
        what: String,
    },
    /// The memory of this machine changed under a run.
    #[error(
        "the memory of this machine changed under the run: {what} from heap {from} on, before {to}, is not what was \
         computed. Nothing since the last commit was written; the same command goes on from there. When this happens \
         again, test the memory"
    )]
    Flipped {
        /// What changed.
        what: &'static str,
        /// First heap of the place.
        from: u64,
        /// One past the last heap of the place.
        to: u64,
    },
    /// A value was computed a second time on another way, and is another one.
    #[error("a check failed: G({n}) was computed as {value}, but {how} gives {again}")]
    Differs {
        /// The heap.
        n: u64,
        /// The value.
        value: u32,
        /// What the second way gives.
        again: u32,
        /// The second way.
        how: String,
    },
    /// An operating system call failed.
    #[error("{action} {}: {source}", path.display())]
    Io {
        /// What was being done ("reading", "writing 4096 bytes at offset 0 of").
        action: String,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// No room on the device for what is to be written.
    #[error("{}", no_room(path, *needed, *available, *fits, *keep))]
    NoRoom {
        /// The run directory.
        path: PathBuf,
        /// Bytes that are still to be written.
        needed: u64,
        /// Bytes that are free.
        available: u64,
        /// The largest total number of values that would fit, when that is known.
        fits: Option<u64>,
        /// A number of last values to keep with which all would fit, when there is one.
        keep: Option<u64>,
    },
    /// The directory holds no run.
    #[error("{}: no run here ({why})", path.display())]
    NoRun {
        /// The directory.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
    /// Another process writes to this directory.
    #[error("{}: another process is using this directory; wait for it or stop it, then try again", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// The directory holds something else than what was asked for.
    #[error("{}: {what} of this run is {found}, not {expected}; choose another directory with --dir", path.display())]
    Mismatch {
        /// The directory.
        path: PathBuf,
        /// Which property differs.
        what: &'static str,
        /// What the directory has.
        found: String,
        /// What was asked for.
        expected: String,
    },
    /// The run has another format than this program reads.
    #[error(
        "{}: this run has format {found}, and this program reads format {expected} only; export its values with the program \
         that wrote it ('grundy export'), or compute the run again in another directory",
        path.display()
    )]
    Format {
        /// The run directory.
        path: PathBuf,
        /// The format of its first record.
        found: u64,
        /// The format of this program.
        expected: u32,
    },
    /// A file of the run was replaced, cut or altered while this process held it.
    #[error(
        "{}: the file was changed while this run held it: {what}; nothing more is written; 'grundy verify' shows what is left",
        path.display()
    )]
    Replaced {
        /// The file.
        path: PathBuf,
        /// What happened to it.
        what: String,
    },
    /// A new run was asked for in a directory that holds other files.
    #[error("{}: this directory holds no run, but other files ({name}); choose another directory with --dir", path.display())]
    Occupied {
        /// The directory.
        path: PathBuf,
        /// One of the files.
        name: String,
    },
    /// A file of the run is not what the journal says.
    #[error("damage: {} at byte {offset}: {what}", path.display())]
    Damage {
        /// The file.
        path: PathBuf,
        /// Where in the file, in bytes.
        offset: u64,
        /// What is wrong, and what to do.
        what: String,
    },
    /// Two values in the table that cannot both be right, or one that an option without two heaps has.
    #[error("damage: the table says G({n}) = {value}, but {} has this value too: one of them is wrong", option(*rest))]
    Excluded {
        /// The heap.
        n: u64,
        /// Its value in the table, and that of one of its options.
        value: u32,
        /// The heaps that the option leaves; 0 stands for none.
        rest: (u64, u64),
    },
    /// A run without a sparse space cannot be checked by one.
    #[error(
        "{game}: no sparse space of this game is known here, and only with one can values be excluded by options with \
         one rare part; '--level recompute' and '--level definition' check any game"
    )]
    NoSpace {
        /// The game.
        game: String,
    },
    /// A certificate that says something that is not so.
    #[error("the certificate is refused: {what}")]
    Certificate {
        /// What is not so.
        what: String,
    },
    /// A value in the table contradicts the definition.
    #[error("damage: the table says G({n}) = {found}, but the definition gives {expected}")]
    Wrong {
        /// The heap.
        n: u64,
        /// The value in the table.
        found: u32,
        /// The value by the definition.
        expected: u32,
    },
}

impl Error {
    /// Who has to act on this error.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Error::Code { .. }
            | Error::UnknownGame { .. }
            | Error::Misere { .. }
            | Error::Rule(_)
            | Error::Position(_)
            | Error::Shape { .. } => Kind::Usage,
            Error::Damage { .. }
            | Error::Wrong { .. }
            | Error::Differs { .. }
            | Error::Excluded { .. }
            | Error::Certificate { .. }
            | Error::Flipped { .. } => Kind::Damage,
            Error::Locked { .. } => Kind::Busy,
            _ => Kind::Failed,
        }
    }

    /// Says for which heap freed values were asked; other errors stay as they are.
    pub(crate) fn for_heap(self, n: u64) -> Error {
        match self {
            Error::Freed { from, to, hole, heap: None } => Error::Freed { from, to, hole, heap: Some(n) },
            other => other,
        }
    }

    /// Wraps an operating system error with what was being done to which file.
    pub(crate) fn io(action: impl Into<String>, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let (action, path) = (action.into(), path.into());
        move |source| Error::Io { action, path, source }
    }
}

/// Text from a command line or a file for a message: characters that a terminal would not print as they are, such as escape
/// codes, are escaped; letters of all scripts and quotation marks stay.
#[must_use]
pub fn printable(text: &str) -> String {
    let escaped = |c: char| match c {
        '\'' | '"' | '\\' => c.to_string(),
        c => c.escape_debug().to_string(),
    };
    text.chars().map(escaped).collect()
}

/// What follows the name of an unknown game.
fn did_you_mean(suggestions: &[String]) -> String {
    match suggestions {
        [] => "; give an octal code such as '.77' or '4.3', 'grundy:d=2', or a name of 'grundy games'".into(),
        names => format!("; did you mean '{}'?", names.join("' or '")),
    }
}

fn no_room(path: &std::path::Path, needed: u64, available: u64, fits: Option<u64>, keep: Option<u64>) -> String {
    let missing = needed.saturating_sub(available);
    let fits = fits.map_or_else(String::new, |n| format!("; at most --to {n} fits"));
    let keep = keep.map_or_else(String::new, |n| format!("; with --keep {n} it would go on"));
    format!(
        "{}: no room: {needed} bytes are still to be written, {available} are free, {missing} are missing{fits}{keep}",
        path.display()
    )
}

fn option((a, b): (u64, u64)) -> String {
    match (a, b) {
        (0, 0) => "the option that leaves nothing".into(),
        (0, n) | (n, 0) => format!("its option {n}"),
        (a, b) => format!("its option {a} + {b}"),
    }
}

fn freed(from: u64, to: u64, hole: (u64, u64), heap: Option<u64>) -> String {
    let of = heap.map_or_else(String::new, |n| format!(", for the options of heap {n}"));
    format!(
        "values {from}..{to} were asked for{of}, but {}..{} are freed, since the run keeps less than everything (--keep); \
         ask for others, or compute them anew in another directory",
        hole.0, hole.1
    )
}

fn enough(needed: Option<u64>, freed: bool) -> String {
    match (needed, freed) {
        (None, _) => "compute in a directory of its own, without --keep".into(),
        (Some(n), false) => format!("the same command with --keep {n} or more goes on"),
        (Some(n), true) => {
            format!(
                "what is committed is right, but this run cannot go on; one in another directory with --keep {n} can"
            )
        }
    }
}

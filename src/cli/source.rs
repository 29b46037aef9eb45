//! GAME or DIR: an argument that parses as a game is a game; any other is a directory. All commands that read a run
//! find its directory here, so that they report a directory without a run in the same words.

use super::advice::quoted_path;
use super::layout::printable;
use super::progress::note;
use super::{Usage, default_directory};
use anyhow::{Result, anyhow};
use grundy::error::{self, Error};
use grundy::theory::rule::Rule;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The source of values.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// A game whose values are computed.
    Game(Rule),
    /// A run directory whose values are read.
    Directory(PathBuf),
}

impl Source {
    /// Decides what `text` means. Notes that it is the name of a game if a run has this name too.
    pub(crate) fn find(typed: &OsStr) -> Result<Source> {
        let path = Path::new(typed);
        let Some(text) = typed.to_str() else { return Ok(Source::Directory(run_directory(path)?.into())) };
        let error = match text.parse() {
            Ok(rule) => {
                if has_journal(path) {
                    let run = quoted_path(&Path::new(".").join(path));
                    note(&format!("{text} is the name of a game; for the run directory of this name, give {run}"));
                }
                return Ok(Source::Game(rule));
            }
            Err(error) => error,
        };
        if path.exists() || text.contains('/') {
            return Ok(Source::Directory(run_directory(path)?.into()));
        }
        match error {
            Error::UnknownGame { suggestions, .. } => {
                let name = error::printable(text);
                let next = if suggestions.is_empty() {
                    "'grundy games' lists the names of games".to_owned()
                } else {
                    format!("did you mean '{}'?", suggestions.join("' or '"))
                };
                Err(Usage(format!("'{name}' is neither a game nor a directory; {next}")).into())
            }
            error => Err(error.into()),
        }
    }
}

/// Whether the values of the game take long: a move leaves three heaps, or two in a game whose code repeats.
pub(super) fn is_slow(rule: &Rule) -> bool {
    rule.has_splits() && !rule.may_be_sparse()
}

/// The kinds of input that a command accepts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Run,
    RunOrCertificate,
}

impl Wanted {
    fn not_found(self) -> &'static str {
        match self {
            Wanted::Run => "no such directory",
            Wanted::RunOrCertificate => "no such file or directory",
        }
    }

    /// Advice on the argument to give, with the runs nearby.
    fn advice(self, runs: &[PathBuf]) -> String {
        let what = match self {
            Wanted::Run => "give the directory of a run",
            Wanted::RunOrCertificate => "give a run directory or a certificate file",
        };
        list(runs).map_or_else(|| what.to_owned(), |runs| format!("{what}; {runs}"))
    }
}

/// Returns `dir` if it contains a journal; otherwise an error that describes the path and lists the runs nearby.
pub(crate) fn run_directory(dir: &Path) -> Result<&Path> {
    existing_run(dir, Wanted::Run)
}

/// [`run_directory`] for a command that also accepts a certificate file.
pub(crate) fn run_or_certificate(dir: &Path) -> Result<&Path> {
    existing_run(dir, Wanted::RunOrCertificate)
}

fn existing_run(dir: &Path, wanted: Wanted) -> Result<&Path> {
    let name = printable(dir);
    let there = match std::fs::metadata(dir) {
        Ok(there) => there,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Err(missing(dir, wanted));
        }
        // The command that reads the directory reports this, with the file that it could not open.
        Err(_) => return Ok(dir),
    };
    if !there.is_dir() {
        return Err(anyhow!("{name}: not a directory; {}", wanted.advice(&[])));
    }
    let found = std::fs::symlink_metadata(dir.join(grundy::checkpoint::journal::NAME));
    if !found.is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        // The command that reads the journal reports why it cannot, such as a missing permission.
        return Ok(dir);
    }
    let journal = grundy::checkpoint::journal::NAME;
    if dir.join(grundy::table::VALUES).exists() {
        let values = grundy::table::VALUES;
        return Err(anyhow!("{name}: no run here ({values} exists, but {journal} is missing)"));
    }
    let runs = runs_in(dir);
    let next = game_advice(dir).filter(|_| runs.is_empty()).unwrap_or_else(|| wanted.advice(&runs));
    Err(anyhow!("{name}: no run here (no {journal}); {next}"))
}

/// The error for a path that does not exist.
fn missing(dir: &Path, wanted: Wanted) -> anyhow::Error {
    let name = printable(dir);
    if let Some(advice) = game_advice(dir) {
        return anyhow!("{name}: this command needs a run directory, not the name of a game; {advice}");
    }
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    let runs = runs_in(parent.unwrap_or(Path::new(super::RUNS)));
    anyhow!("{name}: {}; {}", wanted.not_found(), wanted.advice(&runs))
}

/// Advice for a path that is the name of a game: the game's run directory, or the command that creates it.
fn game_advice(path: &Path) -> Option<String> {
    let rule: Rule = path.to_str()?.parse().ok()?;
    let run = default_directory(&rule);
    Some(if has_journal(&run) {
        format!("its run is {}", run.display())
    } else {
        format!("'grundy run {}' creates {}", super::advice::quoted(rule.name()), run.display())
    })
}

/// Whether a directory has a journal, or tables without one, as far as it can be read. What cannot be seen may be
/// there: the command that opens it reports why it cannot.
pub(super) fn may_have_run(dir: &Path) -> bool {
    let names = [grundy::checkpoint::journal::NAME, grundy::table::VALUES, grundy::table::ESCAPES];
    let is_absent = |error: std::io::Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    names.iter().any(|name| !std::fs::symlink_metadata(dir.join(name)).is_err_and(is_absent))
}

fn has_journal(dir: &Path) -> bool {
    std::fs::symlink_metadata(dir.join(grundy::checkpoint::journal::NAME)).is_ok()
}

/// Maximum number of directory entries examined for runs.
const EXAMINED: usize = 10_000;

/// The directories in `dir` that hold runs, sorted.
pub(super) fn runs_in(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().take(EXAMINED).flatten();
    let mut runs: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| has_journal(path)).collect();
    runs.sort_unstable();
    runs
}

/// Maximum number of runs named in a message.
const LISTED: usize = 10;

/// The phrase `there are runs in A, B and 3 more`; `None` if `runs` is empty.
fn list(runs: &[PathBuf]) -> Option<String> {
    let names: Vec<String> = runs.iter().take(LISTED).map(|run| printable(run)).collect();
    let more = match runs.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!names.is_empty()).then(|| format!("there are runs in {}{more}", names.join(", ")))
}

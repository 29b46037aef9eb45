//! The run: where the mathematics meets the storage.
//!
//! A run computes values, proves them, and commits them to a directory so that nothing that was said to be there is ever
//! lost or wrong (`ledger`). A commit comes within the first second, then every 2^24 values or 5 s, and at each end of a
//! segment of the digest; the last one may end anywhere. Computing does not wait for it, unless the one before has not
//! ended; when a commit fails, the run ends at the next block.
//!
//! On opening, the journal is read, all of the table that is kept is hashed again and compared with every record that
//! still speaks of it, and rares and largest value are counted anew, for freed values from their snapshot. Values that do
//! not agree are computed anew from those before, and put back when they are then what the journal speaks of; what stood
//! there is kept. Else the table stops the run; with `rollback` it goes back to the last record that agrees, and says so
//! in the journal before anything is written over.
//!
//! While it goes on, memory is compared before every commit, and some heaps are computed twice (`solver::audit`,
//! `places`). When something differs the run is opened again, and goes on from what is committed ([`run`]).
//!
//! Invariant: before a process writes to the tables, a record of its own is durable that says so.

mod admission;
mod commit_clock;
mod create;
mod main_loop;
mod reader;
mod rehash;
mod repair;
mod resume;
mod retry;
pub(crate) mod spot_checks;
#[cfg(test)]
mod tests;

pub use reader::RunReader;
pub(crate) use reader::space_of;

use crate::checkpoint::journal::{self, Journal, StatedGame};
use crate::error::{Error, Result};
use crate::solver::{Method, SparseSpace};
use crate::storage::Dir;
use crate::table::{self, HEADER, Width};
use crate::theory::rule::Rule;
use admission::{check_keep, check_room, check_unoccupied};
use create::{create, random_seed};
use main_loop::Run;
use reader::check_rule;
use resume::resume;
use retry::{Attempt, record_check_failure, retry_failed_checks};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Characters of a game's name that a record of 4096 bytes has room for, with all else in it.
const LONGEST_NAME: usize = 2048;

/// What a run is asked to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many values there shall be; `None` for as many as there is time for.
    pub to: Option<u64>,
    /// Threads; 0 for one a core.
    pub threads: usize,
    /// How values are computed.
    pub method: Method,
    /// The width of a new table; `None` to let the first values decide.
    pub width: Option<Width>,
    /// Keep the first 2^26 values and at least so many of the last ones, and free the others; `None` for what the run did
    /// before, and for all in a new one.
    pub keep: Option<u64>,
    /// Go back to the last good record when the table does not agree with the journal.
    pub rollback: bool,
}

/// What is left to the program, as a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunPolicy {
    /// Commit after every so many values and wait for it, whatever the clock says (for tests).
    pub commit_every: Option<u64>,
    /// Compute values anew that do not agree with the journal, and put them back when they are those that it speaks of.
    pub repair: bool,
    /// Decides at which heaps a second look is taken; chance, when it is left out.
    pub seed: Option<u64>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Values computed and proved.
    pub count: u64,
    /// Values committed.
    pub committed: u64,
    /// Rare positions.
    pub rares: u64,
    /// The last rare position.
    pub last_rare: u64,
    /// The largest value.
    pub max_value: u16,
    /// Where it appears first.
    pub max_at: u64,
}

/// How values were settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofSummary {
    /// The sparse space in use.
    pub space: SparseSpace,
    /// Rare heaps up to and with these values.
    pub rares: u64,
    /// The last of them.
    pub last_rare: u64,
    /// No witness of them has a greater smaller part.
    pub depth: u64,
}

/// Is told how a run goes on.
pub trait Observer {
    /// The run has this game and directory and starts at `from`.
    fn started(&mut self, rule: &Rule, from: u64, to: Option<u64>);
    /// `count` of `of` stored values have been hashed again.
    fn rehashed(&mut self, count: u64, of: u64);
    /// Some values more; called after every block.
    fn advanced(&mut self, progress: &Progress);
    /// These values, from heap `from` on, were computed and proved. Not called for those that were there.
    fn proved(&mut self, _from: u64, _values: &[u16], _settled: &ProofSummary) {}
    /// `done` of `of` values have been computed a second time, after a run, where freed ones are asked for.
    fn again(&mut self, _done: u64, _of: u64) {}
    /// Something that a person should know.
    fn note(&mut self, text: &str);
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The game.
    pub rule: Rule,
    /// Where the run is now.
    pub progress: Progress,
    /// Values computed this time.
    pub computed: u64,
    /// Whether the stop flag ended it.
    pub stopped: bool,
}

/// Makes or resumes the run in `dir`; `rule` may be left out when the directory holds one.
///
/// `stop` is looked at between blocks; when it is set the run commits what it has and returns. When a check fails (memory,
/// a second look), the run is opened again and goes on from what is committed; `errors` of the record counts it.
///
/// # Errors
/// Everything in [`Error`]; what was committed before stays. [`Error::Differs`] or [`Error::Flipped`] when a check fails
/// the same way twice, or again and again.
pub fn run(
    rule: Option<&Rule>,
    dir: &Path,
    options: &Options,
    observer: &mut (dyn Observer + Send),
    stop: &AtomicBool,
) -> Result<Outcome> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads).build().map_err(|e| Error::Io {
        action: "starting threads for".into(),
        path: dir.into(),
        source: std::io::Error::other(e),
    })?;
    let existed = dir.exists();
    let policy = RunPolicy { repair: true, ..RunPolicy::default() };
    let outcome = pool.install(|| run_in(&Dir::at(dir), rule, options, policy, observer, stop));
    if !existed && outcome.as_ref().is_ok_and(|outcome| outcome.stopped && outcome.progress.count == 0) {
        let _ = std::fs::remove_dir(dir); // which this run made, and left empty
    }
    outcome
}

/// [`run`] on any storage, with the threads of the pool that it is called in.
///
/// # Errors
/// As [`run`].
pub fn run_in(
    dir: &Dir,
    rule: Option<&Rule>,
    options: &Options,
    policy: RunPolicy,
    observer: &mut (dyn Observer + Send),
    stop: &AtomicBool,
) -> Result<Outcome> {
    let seed = policy.seed.unwrap_or_else(random_seed);
    retry_failed_checks(seed, policy, observer, |attempt, observer| {
        record_check_failure(dir, observer, |observer| match prepare(rule, dir, options, attempt, observer, stop)? {
            Prepared::Nothing(outcome) => Ok(outcome),
            Prepared::Ready(run) => run.go_on(options, policy, observer, stop),
        })
    })
}

enum Prepared {
    Ready(Box<Run>),
    Nothing(Outcome),
}

fn prepare(
    rule: Option<&Rule>,
    dir: &Dir,
    options: &Options,
    attempt: Attempt,
    observer: &mut (dyn Observer + Send),
    stop: &AtomicBool,
) -> Result<Prepared> {
    let length = |name: &str| dir.length(name).map_err(Error::io("reading the state of", dir.join(name)));
    // Asked in this order: who makes a run makes the journal before the data.
    let has_data = length(table::VALUES)?.is_some() || length(table::ESCAPES)?.is_some();
    let fresh = length(journal::NAME)?.is_none();
    let no_run = |why: &str| Error::NoRun { path: dir.path().into(), why: why.into() };
    if let Some(rule) = rule.filter(|rule| rule.name().len() > LONGEST_NAME) {
        let length = rule.name().len();
        return Err(Error::Rule(format!(
            "a name of {length} characters does not fit a record; at most {LONGEST_NAME} do"
        )));
    }
    if fresh {
        let Some(rule) = rule else { return Err(no_run("and no game was named")) };
        if has_data && !options.rollback {
            return Err(no_run(&format!(
                "its tables are here, but {} is missing, so nothing says how far they hold; restore it from a copy, choose \
                 another directory with --dir, or set the tables aside and start again with 'grundy run {rule} --dir {} \
                 --rollback'",
                journal::NAME,
                dir.path().display()
            )));
        }
        check_unoccupied(dir)?;
        if let Some(keep) = options.keep {
            check_keep(dir.path(), rule, options, keep, 0)?;
        }
        check_room(dir, options, None, options.width.unwrap_or(Width::U8), 0)?;
        dir.make().map_err(Error::io("making", dir.path()))?;
    }
    let (journal, contents) = if options.rollback { Journal::open_to_roll_back(dir)? } else { Journal::open_in(dir)? };
    let stated = match (&contents, journal.game_behind_damage()) {
        (None, Some(game)) => Some(stated_rule(dir.path(), rule, game)?),
        _ => None,
    };
    match (contents, rule.or(stated.as_ref())) {
        (Some(contents), rule) => {
            if let Some(rule) = rule {
                check_rule(dir.path(), rule, &contents.last)?;
            }
            resume(dir, journal, contents, options, attempt, observer, stop)
        }
        (None, None) => Err(no_run(&format!(
            "its journal holds no good record that names the game; name it: 'grundy run GAME --dir {}'",
            dir.path().display()
        ))),
        (None, Some(rule)) => {
            // A kill before the first record leaves empty tables; values without a record are somebody's loss to decide on.
            for name in [table::VALUES, table::ESCAPES] {
                let path = dir.join(name);
                if length(name)?.unwrap_or(0) > HEADER && !options.rollback {
                    let what = format!(
                        "values are here, but no record of the journal is good; 'grundy run {rule} --dir {} --rollback' \
                         sets them aside and starts again",
                        dir.path().display()
                    );
                    return Err(Error::Damage { path, offset: HEADER, what });
                }
            }
            create(dir, journal, rule, options, attempt, observer, stop)
        }
    }
}

/// The rule that a record behind the damage of a journal states, which must be `named` if the user named one.
fn stated_rule(dir: &Path, named: Option<&Rule>, game: &StatedGame) -> Result<Rule> {
    let found = game.name.escape_default().to_string();
    let expected = named.map_or("a game of this program", Rule::name).to_owned();
    let mismatch =
        || Error::Mismatch { path: dir.into(), what: "the game", found: found.clone(), expected: expected.clone() };
    let rule: Rule = game.name.parse().map_err(|_| mismatch())?;
    let agrees = |rule: &Rule| rule.digest() == game.rule;
    let agrees = agrees(&rule) && named.is_none_or(agrees);
    if agrees { Ok(rule) } else { Err(mismatch()) }
}

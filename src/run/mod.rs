//! The run: computes values, proves them, and commits them to a directory.
//!
//! `checkpoint::commit` states the order of a commit, and docs/DURABILITY.md what is guaranteed of committed values.
//! The first commit comes 0.7 s after the first block; each later interval is twice as long, up to 5 s. A commit also
//! comes at each end of a segment of the digest (2^24 values), and at the end of the run, which can be any n. Computing
//! waits for a commit only if the previous one is still being written. If a commit fails, the run ends when the block
//! in computation is complete.
//!
//! `resume` reads the journal, hashes the whole retained table, compares it with every record that still describes it,
//! and counts rare positions and the largest value again; for discarded values it takes the counts from their summary.
//! It recomputes values that disagree with the journal, and restores them if they then agree; the damaged bytes are
//! quarantined. Otherwise the run ends with an error. With `rollback` it recomputes values only if the journal is
//! damaged, and otherwise returns to the last record that agrees; it records that before it overwrites anything.
//! docs/DURABILITY.md has the table of states and actions, and states which damaged bytes are preserved.
//!
//! During a run, `solver` compares its memory before every commit, and `solver::audit` and `spot_checks` compute some
//! values twice. If a check fails, the run is opened again and continues from the last commit ([`Run::run`]).
//!
//! Invariant: while a process writes values, the last durable record is not `close`, which states where the files end.

mod admission;
mod builder;
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

pub use builder::Run;
pub use reader::RunReader;
pub(crate) use reader::space_of;

use crate::checkpoint::journal::{self, Journal, StatedGame};
use crate::error::{Damage, Error, NoRunReason, Result};
use crate::solver::{Method, SparseSpace};
use crate::storage::Dir;
use crate::table::{self, HEADER, Width};
use crate::theory::rule::Rule;
use admission::{Room, check_keep, check_room, check_unoccupied};
use create::create;
use main_loop::OpenRun;
use reader::check_rule;
use resume::resume;
use retry::Attempt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Maximum length of the name of a game, in characters: what fits a record of 4096 bytes beside the other fields.
const LONGEST_NAME: usize = 2048;

/// Options of a run; [`Run`] sets them one by one.
///
/// ```
/// use grundy::run::Options;
///
/// let options = Options { to: Some(1_000_000), ..Options::default() };
/// assert_eq!((options.threads, options.keep, options.rollback), (0, None, false));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The number of values to compute; `None` to continue until the run is stopped.
    pub to: Option<u64>,
    /// Number of threads; 0 for one per core.
    pub threads: usize,
    /// The method that computes the values.
    pub method: Method,
    /// The width of a new table; `None` to let the first values decide.
    pub width: Option<Width>,
    /// Retain the first 2^26 values and at least this number of the last ones, and discard the others; `None` to retain
    /// what the run retained before, and every value of a new run.
    pub keep: Option<u64>,
    /// Return to the last commit that the files support, if the table disagrees with the journal or the journal is
    /// damaged.
    pub rollback: bool,
}

/// Internal settings of a run; outside tests, those of [`Run::builder`] are right.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunPolicy {
    /// Commit after each multiple of this number of values, and wait for each commit; `None` to commit by the clock.
    pub commit_every: Option<u64>,
    /// Recompute values that disagree with the journal, and restore them if they then agree.
    pub repair: bool,
    /// The seed that selects the audited values; `None` for a random one.
    pub seed: Option<u64>,
}

/// The state of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Values computed and proved.
    pub count: u64,
    /// Values committed.
    pub committed: u64,
    /// Number of rare positions.
    pub rares: u64,
    /// The last rare position.
    pub last_rare: u64,
    /// The largest value.
    pub max_value: u16,
    /// The least n with this value.
    pub max_at: u64,
}

/// How the values of a block were proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofSummary {
    /// The sparse space in use.
    pub space: SparseSpace,
    /// Number of rare positions up to the end of these values.
    pub rares: u64,
    /// The last rare position.
    pub last_rare: u64,
    /// Witness depth: the largest smaller part of any witness of these values.
    pub depth: u64,
}

/// A run that was created or opened, before its stored values are verified.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Opening<'a> {
    /// The rule of the game.
    pub rule: &'a Rule,
    /// The directory.
    pub dir: &'a Path,
    /// Number of committed values.
    pub count: u64,
    /// The number of values to compute; `None` to continue until the run is stopped.
    pub to: Option<u64>,
    /// The method that computes the values.
    pub method: Method,
    /// Number of bytes that the run will still write; `None` if that is not known.
    pub needed: Option<u64>,
    /// Number of bytes that the run may write before the disk is full; `None` if that is not known.
    pub free: Option<u64>,
}

impl<'a> Opening<'a> {
    fn new(rule: &'a Rule, dir: &'a Dir, options: &Options, count: u64, room: Room) -> Opening<'a> {
        let Room { needed, free } = room;
        Opening { rule, dir: dir.path(), count, to: options.to, method: options.method, needed, free }
    }
}

/// Receives the progress of a run. Every method does nothing by default.
///
/// ```
/// use grundy::run::{Observer, Progress, Run};
///
/// /// Counts the blocks of a run.
/// #[derive(Default)]
/// struct Blocks(u64);
///
/// impl Observer for Blocks {
///     fn advanced(&mut self, _: &Progress) {
///         self.0 += 1;
///     }
/// }
///
/// # let home = tempfile::tempdir()?;
/// # let dir = &home.path().join("kayles");
/// let mut blocks = Blocks::default();
/// Run::builder(&"kayles".parse()?, dir).to(5000).observer(&mut blocks).run()?;
/// assert!(blocks.0 > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[expect(unused_variables, reason = "the names of the parameters document the methods")]
pub trait Observer {
    /// The run was created or opened; its stored values are not verified yet. A new run has decided the width of its
    /// table.
    fn opened(&mut self, opening: &Opening<'_>) {}
    /// The run of this rule starts at n = `from` and ends before `to`.
    fn started(&mut self, rule: &Rule, from: u64, to: Option<u64>) {}
    /// `count` of `of` stored values were hashed again.
    fn rehashed(&mut self, count: u64, of: u64) {}
    /// A block was computed.
    fn advanced(&mut self, progress: &Progress) {}
    /// `values`, which begin at n = `from`, were computed and proved. Not called for values that the table already
    /// held.
    fn proved(&mut self, from: u64, values: &[u16], proof: &ProofSummary) {}
    /// Discarded values are needed after the run, so values are being computed again: `done` of `of` so far.
    fn recomputed(&mut self, done: u64, of: u64) {}
    /// A message to the user.
    fn note(&mut self, text: &str) {}
}

/// Observes nothing.
impl Observer for () {}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The game.
    pub rule: Rule,
    /// The state at the end.
    pub progress: Progress,
    /// Number of values that this call computed.
    pub computed: u64,
    /// Whether the stop flag ended the run.
    pub stopped: bool,
}

enum Prepared {
    Ready(Box<OpenRun>),
    Nothing(Outcome),
}

/// What every step of one attempt of a run works with.
struct Context<'a> {
    dir: &'a Dir,
    options: &'a Options,
    attempt: Attempt,
    observer: &'a mut (dyn Observer + Send),
    stop: &'a AtomicBool,
}

fn prepare(rule: Option<&Rule>, context: &mut Context) -> Result<Prepared> {
    let Context { dir, options, .. } = *context;
    let length = |name: &str| dir.length(name).map_err(Error::io("reading the state of", dir.join(name)));
    // In this order: a process that creates a run creates the journal before the tables.
    let has_data = length(table::VALUES)?.is_some() || length(table::ESCAPES)?.is_some();
    let fresh = length(journal::NAME)?.is_none();
    let no_run = |why| Error::NoRun { path: dir.path().into(), why };
    if let Some(rule) = rule.filter(|rule| rule.name().len() > LONGEST_NAME) {
        let length = rule.name().len();
        return Err(Error::Rule(format!(
            "a name of {length} characters does not fit a record; at most {LONGEST_NAME} do"
        )));
    }
    if fresh {
        if has_data && !(options.rollback && rule.is_some()) {
            let game = rule.map(|rule| rule.name().to_owned());
            return Err(no_run(NoRunReason::LostJournal { journal: journal::NAME, game }));
        }
        let Some(rule) = rule else { return Err(no_run(NoRunReason::NoGame)) };
        check_unoccupied(dir)?;
        if let Some(keep) = options.keep {
            check_keep(dir.path(), rule, options, keep, 0)?;
        }
        check_room(dir, options, None, options.width.unwrap_or(Width::U8), 0)?;
        dir.make().map_err(Error::io("making", dir.path()))?;
    }
    let (journal, contents) = if options.rollback { Journal::open_to_roll_back(dir)? } else { Journal::open(dir)? };
    let stated = match (&contents, journal.game_after_damage()) {
        (None, Some(game)) => Some(stated_rule(dir.path(), rule, game)?),
        _ => None,
    };
    match (contents, rule.or(stated.as_ref())) {
        (Some(contents), rule) => {
            if let Some(rule) = rule {
                check_rule(dir.path(), rule, &contents.last)?;
            }
            resume(context, journal, contents)
        }
        (None, None) => Err(no_run(NoRunReason::NoGameRecorded)),
        (None, Some(rule)) => {
            // A kill before the first record leaves empty tables. Values without a record are set aside only on
            // request.
            for name in [table::VALUES, table::ESCAPES] {
                let path = dir.join(name);
                if length(name)?.unwrap_or(0) > HEADER && !options.rollback {
                    let damage = Damage::ValuesWithoutRecord { game: rule.name().to_owned() };
                    return Err(Error::Damage { path, offset: HEADER, damage });
                }
            }
            create(context, journal, rule)
        }
    }
}

/// The rule that a record after the damage of a journal states, which must be `named` if the user named one.
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

//! What a run reports: to an observer while it goes on, and as its outcome at the end.

use super::admission::Room;
use super::options::Options;
use crate::solver::{Method, SparseSpace};
use crate::storage::Dir;
use crate::theory::rule::Rule;
use std::path::Path;

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
    /// The number of values that the run has at its end, those already committed included; `None` to continue until the
    /// run is stopped.
    pub to: Option<u64>,
    /// The method that computes the values.
    pub method: Method,
    /// Number of bytes that the run will still write; `None` if that is not known.
    pub needed: Option<u64>,
    /// Number of bytes that the run may write before the disk is full; `None` if that is not known.
    pub free: Option<u64>,
}

impl<'a> Opening<'a> {
    pub(super) fn new(rule: &'a Rule, dir: &'a Dir, options: &Options, count: u64, room: Room) -> Opening<'a> {
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
    /// Called before each block, and at the end.
    fn advanced(&mut self, progress: &Progress) {}
    /// `values`, which begin at n = `from`, were computed and proved. Not called for values that the table already
    /// held.
    fn proved(&mut self, from: u64, values: &[u16], proof: &ProofSummary) {}
    /// Discarded values are needed after the run, so values are being computed again: `done` of `of` so far.
    fn recomputed(&mut self, done: u64, of: u64) {}
    /// A message to the user.
    fn note(&mut self, text: &str) {}
    /// A message about damage, a repair, a rollback or a failed check. It is a note by default.
    fn warn(&mut self, text: &str) {
        self.note(text);
    }
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

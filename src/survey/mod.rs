//! Examines many games: finds the period of each, writes one record per game, and makes a table like the published
//! ones.
//!
//! Each game is computed until its period is proved ([`crate::period::MemorySearch`]) or a number of values is reached.
//! A game with splits but without a sparse space, whose values need all pairs of heaps, is computed to an eighth of
//! that number, or to 2^14 values if that is more. A game whose observed period could be proved with up to four times
//! the number is computed that far. With a time limit, no step begins that would exceed it, as estimated from the last
//! two steps.
//!
//! Games that have the same sequence by a theorem ([`crate::theory::standard_form`]) form a family. Its values are
//! computed once; each of its games is searched and judged by its own rule. First, every family is examined up to 2^14
//! values, which suffices for most periodic games. The remaining families follow in ascending order of the estimated
//! time of their next 2^14 values, so a slow family does not delay a faster one. Several families are examined in
//! parallel, each on one thread, or on more threads if there are fewer families than threads.
//!
//! The result is one file per game, `CODE.json`, written whole or not at all, so a survey that was stopped continues
//! with the games that have none. The values of families that take long are saved every ten minutes and when the survey
//! stops; it continues with them. A survey can be divided into shards, each in a directory of its own; [`Plan`] assigns
//! the games to them, and [`collect`] merges the records.
//!
//! The published tables: R. K. Guy and C. A. B. Smith, *The G-values of various games* (1956); E. R. Berlekamp, J. H.
//! Conway, R. K. Guy, *Winning Ways*, chapter 4, table 6; A. Flammenkamp's lists of octal games.
//!
//! # Contradictions
//!
//! Two records of one game describe prefixes of the same sequence G, with N1 <= N2 values. A record's period p and
//! preperiod n0 state: G(n+p) = G(n) + saltus for n0 <= n < N - p; n0 is 0 or the last exception + 1; and with saltus
//! 0 no proper divisor of p is a period on the same stretch. When the period is proved, the same holds with
//! N = infinity, and p is the least period; the saltus is then 0, except in Nim, where G(n) = n proves saltus 1 with
//! p = 1 and n0 = 0. [`contradiction()`] refuses two records in these cases, and in no other:
//!
//! - **C1** N1 = N2, and the digests differ. *The values are the same.*
//! - **C2** The pairs (max_value, max_at) differ, unless the second record has the greater max_value and its
//!   max_at >= N1. *When the largest of N2 values occurs first below N1, it is the largest of the N1 values, and its
//!   first occurrence is the same; otherwise it is larger than all of the N1 values.*
//! - **C3** One is proved with saltus 0, the other has N >= n0 + p, and (max_value, max_at) differ. *Every value
//!   occurs first below n0 + p, and both records cover these values.*
//! - **C4** Under the same mask and position (rares, last_rare) differ, unless the second last_rare >= N1, and rares
//!   is greater in the second record, by at most N2 - N1. *Whether n is rare depends on G(n) and n alone; then as in
//!   C2.*
//! - **C5** Both are proved, and (p, n0) differ. *Both numbers are the least ones.*
//! - **C6** Saltus 0 in both, p1 != p2, and both periods hold on a common stretch of p1 + p2 - gcd(p1, p2) values or
//!   more. *By the theorem of Fine and Wilf (1965) g = gcd(p1, p2) is a period there. The stretch has at least p1
//!   values and g divides p1, so g is a period wherever p1 is, and is not a proper divisor of p1: g = p1. Likewise
//!   g = p2.*
//! - **C7** s1 p2 != s2 p1 for the saltuses s1, s2, and both periods hold on a common stretch of p1 + p2 values. *On
//!   the indices 0 to p1 + p2 - 1 of the stretch, i -> i + p1 (mod p1 + p2) is a permutation: a step up by p1 for
//!   i < p2, down by p2 for the others. Each of its cycles has p2/g steps up and p1/g down, so p2 s1 - p1 s2 = 0.*
//! - **C8** The same p and saltus, different preperiods, and p + n0 <= N1 for the n0 of the longer record. *Then the
//!   last exception of the longer record is an exception of the shorter record as well, and its last one.*
//! - **C9** One record found no repetition in N values, and the other's holds with saltus 0 on at least all of these,
//!   with 2 (n0 + p) <= N. *Then the last N/2 values occur once more at most N/2 earlier, and
//!   [`find`](crate::period::Subject::find) would have found this.*
//!
//! Invariant: a record states only what [`crate::period`] found, and states as proved only what it proved.

mod contradiction;
mod directory;
mod examination;
mod extent;
mod families;
mod pace;
mod part;
pub mod plan;
mod record;
mod saved;
mod surveyor;
mod table;

pub use contradiction::contradiction;
pub use directory::{collect, read};
pub use plan::{Collection, Games, Missing, Plan};
pub use record::{Order, Record};
pub use table::{csv, markdown};

use crate::error::{Error, Result};
use crate::solver::Method;
use crate::storage::File;
use crate::theory::rule::Rule;
use directory::{RecordFiles, open};
pub(crate) use examination::PROOF_FACTOR;
use examination::{Examination, Progress};
use extent::Extent;
pub(crate) use part::{Part, divide, examine_part};
pub(crate) use record::{is_program, order, printable};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use surveyor::{Results, Surveyor};

/// Default number of values to which a survey examines each game.
pub const TO: u64 = 1 << 20;

/// Returns all octal codes with up to `digits` digits after the point, first those with 0 before it, then those with 4,
/// in order.
#[must_use]
pub fn codes(digits: u32) -> Vec<Rule> {
    let width = usize::try_from(digits).unwrap_or(usize::MAX);
    let all = ['0', '4'].into_iter().flat_map(|whole| (0..8u64.pow(digits)).map(move |code| (whole, code)));
    all.map(|(whole, code)| format!("{whole}.{code:0width$o}").parse().expect("an octal code")).collect()
}

/// Examines one game: computes up to `to` values, or further as the module head states, and searches for the period.
/// Returns `None` when `stop` ended the search.
///
/// # Errors
/// Errors of [`crate::period::MemorySearch::look`], such as [`Error::Memory`].
///
/// # Panics
/// If `to` is 0.
///
/// ```
/// use grundy::{kernel::Kernel, period::Status, solver::Method, survey};
/// use std::sync::atomic::AtomicBool;
///
/// let method = Method::Sparse(Kernel::best());
/// let record = survey::examine(&"0.77".parse()?, method, survey::TO, &AtomicBool::new(false))?;
/// let record = record.expect("nothing stopped the search");
/// assert_eq!((record.status, record.period, record.preperiod), (Status::Proved, Some(12), Some(71)));
/// # Ok::<(), grundy::Error>(())
/// ```
pub fn examine(rule: &Rule, method: Method, to: u64, stop: &AtomicBool) -> Result<Option<Record>> {
    assert!(to > 0, "an examination of no values");
    let extent = Extent { to, time_limit: None };
    let mut examination = Examination::new(rule, method, extent);
    match examination.advance(u64::MAX, || !stop.load(Ordering::Relaxed))? {
        Progress::Interrupted => Ok(None),
        Progress::Paused | Progress::Done => examination.record().map(Some),
    }
}

/// The result of a survey.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// Number of records that existed before.
    pub found: usize,
    /// Number of records written by this call.
    pub completed: usize,
    /// Number of sequences whose values are saved, so that another call continues with them.
    pub saved: usize,
    /// Whether `stop` ended the survey.
    pub stopped: bool,
    /// The games that could not be examined.
    pub failed: Vec<Failure>,
    /// Names of the games that were computed twice, because a check failed. The machine may be faulty.
    pub restarted: Vec<String>,
    /// Number of sequences whose saved values were not used, because another version of the program wrote them.
    pub outdated: usize,
    /// The lock of the directory. Tables that are written while it is held are those of the records.
    _lock: Option<File>,
}

/// Games that a survey could not examine, for one reason.
#[derive(Debug)]
#[non_exhaustive]
pub struct Failure {
    /// Names of the games, at least one.
    pub games: Vec<String>,
    /// The reason.
    pub error: Error,
}

/// The method and the number of threads of a survey.
#[derive(Clone, Copy, Debug)]
pub struct Means {
    /// The method that computes values.
    pub method: Method,
    /// Number of threads, at least 1.
    pub threads: usize,
}

/// Writes the plan to `dir`, then the records that are missing there of the games of the plan's shard. `progress`
/// receives the number of records of these games that exist: once at the beginning, and after each record.
///
/// ```
/// use grundy::survey::{self, Games, Means, Plan};
/// use grundy::{kernel::Kernel, solver::Method};
/// use std::sync::atomic::AtomicBool;
///
/// # let home = tempfile::tempdir()?;
/// # let dir = &home.path().join("survey");
/// let games = Games::List(vec!["0.77".into(), "0.07".into()]);
/// let plan = Plan::new(games, (0, 1), 1 << 12)?;
/// let means = Means { method: Method::Sparse(Kernel::best()), threads: 2 };
/// let outcome = survey::survey(plan, dir, means, &AtomicBool::new(false), |_| {})?;
/// assert_eq!((outcome.completed, outcome.failed.len()), (2, 0));
/// assert!(survey::csv(survey::read(&[dir])?.values()).contains("0.77,proved,12,71,"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Errors of reading and writing records; [`Error::Survey`] when the directory has other files or the plan of another
/// survey or its records, [`Error::Locked`] when another process writes there; the lock is held until the outcome is
/// dropped. Records written before an error remain. A game that cannot be examined is not an error; it is listed in
/// [`Outcome::failed`].
///
/// # Panics
/// If [`Plan::new`] or [`Plan::parse`] would refuse the plan.
pub fn survey(
    plan: Plan,
    dir: &Path,
    means: Means,
    stop: &AtomicBool,
    progress: impl Fn(usize) + Sync,
) -> Result<Outcome> {
    plan.check().expect("a plan that satisfies its invariants");
    let (dir, lock, plan) = open(plan, dir)?;
    let there = read(&[dir.path()])?;
    let rules = plan.mine();
    let of = rules.len();
    let is_there = |rule: &Rule| there.get(&order(rule.name())).is_some_and(|record| record.is_done(plan.extent()));
    let missing: Vec<Rule> = rules.into_iter().filter(|rule| !is_there(rule)).collect();
    let found = of - missing.len();
    progress(found);
    let surveyor = Surveyor {
        dir: &dir,
        extent: plan.extent(),
        records: &RecordFiles { dir: &dir, there: &there },
        means,
        stop,
        progress: &|completed| progress(found + completed),
        results: Mutex::default(),
    };
    let Results { completed, failed, restarted, outdated } = surveyor.examine(missing)?;
    let games_failed: usize = failed.iter().map(|failure| failure.games.len()).sum();
    let stopped = found + completed + games_failed < of;
    let saved = saved::count(&dir)?;
    Ok(Outcome { found, completed, saved, stopped, failed, restarted, outdated: outdated.len(), _lock: Some(lock) })
}

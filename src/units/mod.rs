//! Work units: the parts of a survey or of a verification, each of which any process on any machine can do alone.
//!
//! A [`Plan`] divides the work into units. The name of a unit states what it computes: the numbers of values and a hash
//! of the games, or the level, the range and the digest of the run. [`perform()`] does one unit in a directory that may
//! be shared by many machines, and [`join()`] combines the results of one or more directories and lists what is
//! missing.
//!
//! The program knows no scheduler. Any tool that calls a command once for each line of a list can distribute the
//! units: a failed or stopped unit is called again, and a unit that is done already takes no time.
//!
//! A unit writes one file of JSON lines: `NAME.part` while it is in progress, under a lock, and renamed to `NAME.jsonl`
//! when it is complete. A survey unit appends the record of each game when it is done, and a seal, the hash of all
//! lines so far, so a unit that was killed continues with the other games. The last line states the hash of all others.
//! `docs/FORMAT.md` describes the lines.
//!
//! Units are uneven, because games are. There are two remedies: games with similar codes are spread over the units, and
//! a plan has many more units than there are workers. [`Schedule`] computes from the recorded times how well any number
//! of workers would have been used.
//!
//! ```
//! use grundy::survey::Games;
//! use grundy::units::{self, Plan, Request};
//! use std::sync::atomic::AtomicBool;
//!
//! # let home = tempfile::tempdir()?;
//! # let dir = &home.path().join("units");
//! let plan = Plan::survey(Games::List(vec!["0.77".into(), "0.07".into()]), 1 << 12, 2)?;
//! plan.write(dir)?;
//! let stop = AtomicBool::new(false);
//! for unit in plan.units() {
//!     units::perform(unit.name(), dir, Request::default(), &stop, |_, _| {})?;
//! }
//! let joined = units::join(&[dir])?;
//! assert!(joined.missing.is_empty() && joined.records().len() == 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Invariants: nothing is added to a complete result, and it names every process that wrote one of its lines. Two
//! results of one unit never silently replace each other: they agree, or [`join()`] fails and names both.

mod games;
mod join;
mod machine;
mod part;
mod perform;
mod plan;
mod result;
mod schedule;
mod unit;

pub use join::{Joined, Verdict, join};
pub use machine::Spent;
pub use perform::{Performed, Request, perform};
pub use plan::{MAX_PARTS, Plan};
pub use result::{Check, End, Session, UnitResult};
pub use schedule::Schedule;
pub use unit::{Level, SurveyWork, Unit, VerifyWork, Work};

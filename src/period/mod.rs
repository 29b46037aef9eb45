//! Finds periods, and proves them.
//!
//! A sequence has period p and preperiod n0 when G(n + p) = G(n) for all n >= n0, where p and n0 are the least such
//! numbers; n0 is the last exception + 1. A table of N values shows the equation only for n < N - p. That it holds
//! for all n >= n0 needs a theorem; [`theorems`] states four of them and proves them.
//!
//! **Least period and preperiod.** p is the least period from n0 on if p/f is not a period for any prime divisor f of
//! p; for each f there is then an n >= n0 with G(n + p/f) != G(n). n0 is the least preperiod if it is 0 or
//! G(n0 - 1 + p) != G(n0 - 1). Both are looked up in the values.
//!
//! String matching finds the candidates for p in one linear pass. It needs no memory beside a table of bytes; beside
//! other tables it needs one byte per value, rarely three.
//! `data/results/periods.md` states what each of the published periods took.
//!
//! Invariant: what is called proved follows from one of the theorems and from values that were compared. A
//! repetition without a theorem whose premises hold for the computed values is reported as *observed*, never as proved.

pub mod certificate;
mod compute;
mod continuation;
mod depth;
pub mod exclude;
mod facts;
mod finder;
mod mark;
mod memory_search;
mod offset_copy;
mod preperiod;
mod primes;
mod prove;
mod retrace;
mod sealed_values;
mod search;
mod segment_check;
mod session;
pub mod theorems;
mod watch;
mod watch_state;
mod waypoints;

pub use compute::{Found, RunSearch, Stopped};
pub use continuation::Continuation;
pub use finder::Subject;
pub use memory_search::MemorySearch;
pub use preperiod::OffsetCopies;
pub use prove::{ProvedPeriod, prove};
pub use search::{compare_before_preperiod, exceptions, last_difference};
pub use theorems::{PeriodWindow, Theorem};

use crate::theory::rule::Rule;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Maximum number of exceptions listed.
pub const LISTED: usize = 100;

/// The theorem and the premises that prove a period.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Proof {
    /// The theorem applied.
    pub theorem: Theorem,
    /// The n0 (at least 1 for P1 and P3) or n1 (P4) to which the theorem is applied.
    pub from: u64,
    /// Number of values that the proof needs, those of n < `length`.
    pub length: u64,
    /// The window of P4; `None` for the other theorems.
    pub window: Option<PeriodWindow>,
    /// Pairs (f, n): a prime factor f of the period p, and an n >= preperiod for which G(n + p/f) != G(n).
    pub least: Vec<(u64, u64)>,
}

/// How well a period is established.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The period is proved by a theorem, or by definition in Nim.
    Proved,
    /// The computed values repeat, but no theorem's premises are met.
    Observed,
    /// No repetition was found.
    None,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Status::Proved => "proved",
            Status::Observed => "observed",
            Status::None => "none",
        })
    }
}

/// A repetition: G(n + period) = G(n) + saltus from the preperiod on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Repeat {
    /// p, the least period.
    pub period: u64,
    /// n0, the last exception + 1. When values are discarded and no retained value after them is an exception, the
    /// first n after the discarded ones; for a period found by a watch, n1.
    pub preperiod: u64,
    /// Whether `preperiod` is the least. It is only a bound when values before it are discarded, or a watch found the
    /// period, and these values were not computed again ([`OffsetCopies`]).
    pub exact: bool,
    /// The increase per period: 0 for a period, greater for an arithmetic-periodic sequence, which is only ever
    /// observed.
    pub saltus: u16,
    /// The proof; `None` when the repetition is only observed.
    pub proof: Option<Proof>,
}

/// The result of a search for a period.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The repetition, if one was found.
    pub repeat: Option<Repeat>,
    /// Number of values of the sequence, discarded ones included.
    pub count: u64,
    /// The largest value.
    pub max_value: u16,
    /// The least h, among those that the search tried, for which the last h values do not occur earlier in the
    /// sequence. `None` when they do for each of them, or there are too few values.
    pub unseen_end: Option<u64>,
    /// First n searched: 0, or the end of the discarded values.
    pub start: u64,
    /// What two copies of the sequence, one period apart, showed about discarded values; `None` when none were
    /// computed.
    pub copies: Option<OffsetCopies>,
}

impl Finding {
    /// Returns how well the period is established.
    #[must_use]
    pub fn status(&self) -> Status {
        match &self.repeat {
            None => Status::None,
            Some(repeat) if repeat.proof.is_some() => Status::Proved,
            Some(_) => Status::Observed,
        }
    }

    /// Returns a number of values that suffices to prove the repetition, if it lasts, by P1 or P3; P2 and P4 often need
    /// fewer, but their premises also concern other properties of the values. `None` without a repetition, with a
    /// saltus above 0, and where neither theorem applies.
    #[must_use]
    pub fn needed(&self, rule: &Rule) -> Option<u64> {
        let repeat = self.repeat.as_ref().filter(|repeat| repeat.saltus == 0)?;
        let length = |theorem: Theorem| theorem.length(rule, theorem.start(repeat.preperiod), repeat.period);
        [Theorem::P1, Theorem::P3].into_iter().find_map(length)
    }
}

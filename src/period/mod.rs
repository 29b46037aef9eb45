//! Finds periods, and proves them.
//!
//! A sequence has period p and preperiod n0 when G(n + p) = G(n) for all n >= n0, where p and n0 are the least such
//! numbers; n0 is the last exception + 1. A table of N values shows the equation only for n < N - p. That it holds
//! for all n >= n0 needs a theorem; this head states four of them and proves them.
//!
//! **Notation.** The moves of a rule are (s, c, k, d) as in [`crate::theory::rule`]. t is the greatest s of all
//! moves, and d without a move is the greatest difference. A *part* is a heap that a split leaves; a <= b are the two
//! parts of one split. Each proof shows by induction on N that the options of N and of N + p have the same values;
//! then G(N + p) = G(N), because equal sets have the same mex. Options are compared under the same move, so the
//! constant c is the same on both sides and is not mentioned.
//!
//! **P1** (Guy and Smith, *The G-values of various games*, 1956). Every split of the rule has d = 0. If n0 >= 1 and
//! G(n+p) = G(n) for n0 <= n < 2 n0 + p + t, then G(n+p) = G(n) for all n >= n0.
//!
//! *Proof.* Let N >= 2 n0 + p + t, and let G(n+p) = G(n) for n0 <= n < N. k = 0: N > t, so neither N nor N + p has
//! such an option. k = 1: N - s >= n0, so the options of N and N + p have the same value. k = 2: an option (a, b) of
//! N has b >= (N - s)/2 >= n0 and b < N, so G(b+p) = G(b), and (a, b+p) is an option of N + p with the same value. An
//! option (a, b) of N + p has b >= (N + p - s)/2 >= n0 + p. So b - p >= n0 >= 1 is a heap, b - p = N - s - a < N, and
//! (a, b-p) is an option of N with the same value. ∎ (The proof needs n0 >= 1: with n0 = 0 the heap b - p may be
//! empty, and the rule may not allow leaving one heap only.)
//!
//! **P2**, for Grundy's game: one split, s = 0, c = 0, d = 1. If G(n) != 0 for n0 <= n < n0 + p and G(n+p) = G(n) for
//! n0 <= n <= 2 n0 + p - 2, then G(n+p) = G(n) for all n >= n0.
//!
//! *Proof.* Let N >= 2 n0 + p - 1, and let G(n+p) = G(n) for n0 <= n < N. An option (a, b) of N, a < b, has
//! b >= (N+1)/2 >= n0, so (a, b+p) is an option of N + p with the same value. An option (a, b) of N + p, a < b, has
//! b >= (N+p+1)/2 >= n0 + p. So b - p >= n0 (and n0 is not 0, because G(0) = 0 but G(n0) != 0), G(b-p) = G(b),
//! and (a, b-p) is an option of N with the same value, unless a = b - p. In that case the value of the option is
//! G(b) ^ G(b-p) = 0, and N has an option of value 0, because G(N) = G(N-p) = … is a value of the period, and none of
//! these is 0. ∎
//!
//! **P3**, for any rule. Let M be the greatest s + d (d = 0 for k < 2). If n0 >= 1 and G(n+p) = G(n) for
//! n0 <= n <= 2 n0 + 2 p + M - 2, then G(n+p) = G(n) for all n >= n0.
//!
//! *Proof.* Let N >= 2 n0 + 2 p + M - 1, and let G(n+p) = G(n) for n0 <= n < N. k = 0 and k = 1 as in P1, since
//! M >= s. k = 2: an option (a, b) of N, a <= b, has n0 <= b < N, and (a, b+p) is an option of N + p with the same
//! value; its parts differ by more. An option (a, b) of N + p, a <= b, has b >= (N+p-s)/2 >= n0 + p, so
//! G(b-p) = G(b). If |b - p - a| >= d, then (a, b-p) is an option of N with the same value. Otherwise
//! b - a <= p + d - 1, so a = (N + p - s - (b-a))/2 >= (N - s - d + 1)/2 >= n0 + p and G(a-p) = G(a); then (a-p, b),
//! whose parts differ by p more than those of (a, b), is an option of N with the same value. ∎
//!
//! **P4**, the window theorem, needs about n0 + p values instead of 2 (n0 + p). Fix a space (m, e)
//! (`solver::SparseSpace`; statement S of the crate's front page). Let r be the last rare position below n2. Call n
//! *witnessed* when each value below G(n) that is rare at n is the value of an option of n that comes from a move
//! with k < 2 or has a smaller part <= D. Let every n with n1 <= n < n2 be common and witnessed. Let q = max(r, D)
//! and W = q + t. If n1 >= 2 q + t + d, n1 > W, n2 - n1 is even when e = 1, and G(n1 - j) = G(n2 - j) for
//! 1 <= j <= W, then G(n1 + k) = G(n2 + k) for all k >= 0.
//!
//! *Proof.* Let p = n2 - n1 and n >= n1. Let G(x) = G(x+p) for n1 - W <= x < n, and let all positions from n1 to
//! n + p - 1 be common and witnessed; n is one of them, because n < n + p. To show: G(n+p) = G(n), and n + p is
//! common and witnessed. The same values are rare at n and at n + p, because p is even when e = 1.
//!
//! A *common* option of n or n + p that comes from a split has exactly one rare part a <= r. For n the other part is
//! b = n - s - a with n - W <= n - t - r <= b < n, so G(b) = G(b+p). It is the larger part, by at least d, because
//! b - a >= n - t - 2r >= d. For n + p the other part is b + p, and the same holds. b is common exactly if b + p is,
//! because they have the same value. So n and n + p have the same common options from splits. Options with k = 1
//! leave n - s, which lies within the window because s <= t <= W. k = 0 needs n = s <= t, but n > W >= t. So the
//! least common value m* that is not an option is the same for n and n + p.
//!
//! Each value below m* that is rare at n is the value of an option of n with smaller part a <= D (or with k = 1, as
//! before). There b = n - s - a >= n - W, and (a, b+p) is an option of n + p with the same value, whose parts differ
//! by at least n - t - 2D >= d. So G(n+p) = m* = G(n), which is common at n + p, and n + p is witnessed with the same
//! D. ∎
//!
//! When e = 1 and p is odd, P4 applied with n2 - n1 = 2p shows that 2p is a period from n1 on. If also G(n+p) = G(n)
//! for n1 <= n < n1 + p, then p is a period from n1 on: for n1 + p <= n < n1 + 2p,
//! G(n+p) = G(n-p+2p) = G(n-p) = G(n); and so on.
//!
//! **Least period and preperiod.** p is the least period from n0 on if p/f is not a period for any prime divisor f of
//! p; for each f there is then an n >= n0 with G(n + p/f) != G(n). n0 is the least preperiod if it is 0 or
//! G(n0 - 1 + p) != G(n0 - 1). Both are looked up in the values.
//!
//! String matching finds the candidates for p in one linear pass, and needs no memory beside the table.
//! `data/results/periods.md` states what each of the published periods took.
//!
//! Invariant: what is called proved follows from one of the statements above and from values that were compared. A
//! repetition without a theorem whose premises hold for the computed values is *observed*, never called a period.

pub mod certificate;
mod compute;
mod depth;
pub mod exclude;
mod preperiod;
mod primes;
mod prove;
mod search;
mod watch;
mod watch_state;

pub use compute::{Found, Search, Stopped, compute_until_proved, compute_until_proved_in};
pub use preperiod::OffsetCopies;
pub use prove::{ProvedPeriod, prove};

pub use search::{exceptions, last_difference};

use crate::error::{Error, Result};
use crate::solver::{self, Method, SequenceStats, SparseSpace};
use crate::theory::definition::{Prefix, Sequence, for_each_piece};
use crate::theory::nimber::index;
use crate::theory::rule::{Leaves, Rule};
use crate::verify;
use primes::prime_factors;
use search::Stretch;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Maximum number of exceptions listed.
pub const LISTED: usize = 100;

/// Minimum number of values at the end of a long sequence that must repeat for the repetition to be called observed.
const SHORTEST: u64 = 64;

/// The theorem that a proof applies; the module head states and proves each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Theorem {
    /// Guy and Smith, for rules whose splits have no least difference.
    P1,
    /// For Grundy's game, when no value of the period is 0.
    P2,
    /// Applies to any rule.
    P3,
    /// The window theorem, for rules with a sparse space.
    P4,
}

impl fmt::Display for Theorem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Theorem {
    /// Returns the number N of values that P1, P2 or P3 needs: its premise covers all n from `n0` below N - `p`.
    /// `None` when the theorem does not apply to the rule or to `n0` = 0, when N exceeds 64 bits, and for P4, which
    /// has no such bound.
    #[must_use]
    pub fn length(self, rule: &Rule, n0: u64, p: u64) -> Option<u64> {
        let twice = n0.checked_mul(2)?.checked_add(p.checked_mul(2)?)?;
        match self {
            Theorem::P1 if rule.max_difference() == 0 && n0 >= 1 => twice.checked_add(rule.max_remove()),
            Theorem::P2 if is_grundys_game(rule) => twice.checked_sub(1),
            Theorem::P3 if n0 >= 1 => twice.checked_add(p)?.checked_add(largest_step(rule))?.checked_sub(1),
            _ => None,
        }
    }
}

/// Returns M of P3, the greatest s + d.
fn largest_step(rule: &Rule) -> u64 {
    let difference = |leaves| if let Leaves::Two { min_difference } = leaves { min_difference } else { 0 };
    rule.moves().iter().map(|m| m.remove + difference(m.leaves)).max().unwrap_or(0)
}

/// Whether the rule is an octal game: every split allows equal parts, and every constant is 0. Such a rule is given
/// by the digits 0 to 7 of a code, finitely many of them not 0, with 0 or 4 before the point.
///
/// The G-sequence of no such game is arithmetic-periodic with a saltus above 0 (G. Horrocks and R. J. Nowakowski,
/// *Regularity in the G-sequences of octal and hexadecimal games*, Integers 3, 2003, G1).
fn is_octal(rule: &Rule) -> bool {
    let plain = |leaves| !matches!(leaves, Leaves::Two { min_difference } if min_difference > 0);
    rule.moves().iter().all(|m| m.constant == 0 && plain(m.leaves))
}

fn is_grundys_game(rule: &Rule) -> bool {
    Rule::grundy(1).is_ok_and(|grundy| grundy.moves() == rule.moves())
}

/// The numbers to which P4 was applied, in the notation of the module head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeriodWindow {
    /// n1.
    pub from: u64,
    /// n2.
    pub to: u64,
    /// The space (m, e).
    pub space: SparseSpace,
    /// Number of rare positions below n2, n = 0 included.
    pub rares: u64,
    /// r, the last rare position below n2.
    pub last_rare: u64,
    /// D, an upper bound of the smaller parts of witnesses.
    pub depth: u64,
}

impl PeriodWindow {
    /// Returns W, the number of values before n1 and before n2 that must agree.
    #[must_use]
    pub fn width(&self, rule: &Rule) -> u64 {
        self.last_rare.max(self.depth).saturating_add(rule.max_remove())
    }

    /// Whether n1 and n2 meet those conditions of P4 that do not involve values.
    #[must_use]
    pub fn is_placed(&self, rule: &Rule) -> bool {
        let (q, t, d) = (self.last_rare.max(self.depth), rule.max_remove(), rule.max_difference());
        let far = q.checked_mul(2).and_then(|q| q.checked_add(t)).and_then(|q| q.checked_add(d));
        far.is_some_and(|far| self.from >= far)
            && self.from > self.width(rule)
            && (self.space.position == 0 || (self.to - self.from).is_multiple_of(2))
    }
}

/// The theorem and the premises that prove a period.
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// p, the least period.
    pub period: u64,
    /// n0, the last exception + 1. When values are discarded and no retained value after them is an exception, the
    /// first n after the discarded ones; for a period found by a watch, n1.
    pub preperiod: u64,
    /// Whether `preperiod` is the least; false only when values before it are discarded and were not computed again
    /// ([`OffsetCopies`]).
    pub exact: bool,
    /// The increase per period: 0 for a period, greater for an arithmetic-periodic sequence, which is only ever
    /// observed.
    pub saltus: u16,
    /// The proof; `None` when the repetition is only observed.
    pub proof: Option<Proof>,
}

/// The result of a search for a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The repetition, if one was found.
    pub repeat: Option<Repeat>,
    /// Number of values of the sequence, discarded ones included.
    pub count: u64,
    /// The largest value.
    pub max_value: u16,
    /// Minimum number of values at the end that had to repeat; 0 when the sequence is too short to be searched.
    pub shortest: u64,
    /// First n searched: 0, or the end of the discarded values.
    pub start: u64,
    /// What two copies of the sequence showed about discarded values.
    pub lag: Option<OffsetCopies>,
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

    /// Returns the number of values that P1, P2 or P3 needs to prove the repetition; `None` without one, or with a
    /// saltus above 0.
    #[must_use]
    pub fn needed(&self, rule: &Rule) -> Option<u64> {
        let repeat = self.repeat.as_ref().filter(|repeat| repeat.saltus == 0)?;
        let from = repeat.preperiod.max(1);
        [Theorem::P1, Theorem::P2, Theorem::P3].into_iter().find_map(|t| t.length(rule, from, repeat.period))
    }
}

/// A sequence to be searched, with what is known about it besides its values.
pub struct Subject<'a, S: ?Sized> {
    /// The rule of the game.
    pub rule: &'a Rule,
    /// The method that recomputes values for P4.
    pub method: Method,
    /// The sparse space, or [`SparseSpace::NONE`].
    pub space: SparseSpace,
    /// The values G(0), G(1), …
    pub values: &'a S,
    /// Rare positions and largest value among the discarded values.
    pub freed: &'a SequenceStats,
}

impl<S: ?Sized> Clone for Subject<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: ?Sized> Copy for Subject<'_, S> {}

impl<'a, S: Sequence + ?Sized> Subject<'a, S> {
    /// Searches for the period that the end of the sequence shows, and proves it when there are enough values.
    ///
    /// # Errors
    /// Errors of reading the values; [`Error::Wrong`] when a value that is recomputed for P4 differs from the stored
    /// one.
    pub fn find(self) -> Result<Finding> {
        let known = self.known()?;
        let stretch = Stretch::new(self.values)?;
        let length = stretch.length();
        let shortest = (length / 16).max(SHORTEST).min(length / 2);
        let mut finding = Finding {
            repeat: None,
            count: self.values.len(),
            max_value: known.max_value,
            shortest,
            start: stretch.start,
            lag: None,
        };
        if shortest == 0 {
            return Ok(finding);
        }
        let mut ends: Vec<u64> = [length / 2, length / 4, length / 8, shortest].into_iter().collect();
        if self.space != SparseSpace::NONE {
            let last_rare = known.rares.last().map_or(0, |rare| rare.0);
            let window = solver::lookback(self.rule, last_rare);
            ends.extend((window < length / 2).then_some(window));
        }
        ends.retain(|&h| h >= 1);
        ends.sort_unstable();
        ends.dedup();
        finding.shortest = ends[0];
        let mut shifts: Vec<(u64, u64)> = Vec::new();
        for h in ends {
            let least = shifts.last().map_or(1, |shift| shift.1);
            match stretch.shift(h, least)? {
                Some(p) => shifts.push((h, p)),
                None => break, // a longer end does not repeat either
            }
        }
        let mut tried = 0;
        for &(h, p) in shifts.iter().rev().filter(|shift| shift.1 > 0) {
            if p == tried {
                continue;
            }
            tried = p;
            let repeat = self.examine(&known, stretch.start, p)?;
            let proved = repeat.proof.is_some();
            let seen_twice = h >= shortest && p <= h;
            if proved || (finding.repeat.is_none() && seen_twice) {
                finding.repeat = Some(repeat);
            }
            if proved {
                break;
            }
        }
        if finding.repeat.is_none() && stretch.start == 0 && !is_octal(self.rule) {
            finding.repeat = self.find_arithmetic()?;
        }
        Ok(finding)
    }

    /// Returns the rare positions and the largest value of the whole sequence; [`Error::Freed`] when no value after the
    /// discarded ones is retained, because `freed` may then describe values beyond the end.
    fn known(self) -> Result<SequenceStats> {
        let (freed, count) = (self.values.freed(), self.values.len());
        if !freed.is_empty() && freed.end >= count {
            return Err(Error::Freed { from: 0, to: count, hole: (freed.start, freed.end), heap: None });
        }
        let none = SequenceStats::default();
        verify::count(self.values, self.space, if freed.is_empty() { &none } else { self.freed })
    }

    /// Returns the repetition with period `p`, or with the divisor of `p` that is the least period: its preperiod,
    /// and a proof if a theorem applies.
    fn examine(self, known: &SequenceStats, start: u64, p: u64) -> Result<Repeat> {
        let count = self.values.len();
        let difference = last_difference(self.values, p, start, count - p)?;
        let preperiod = difference.map_or(start, |n| n + 1);
        let mut least = Vec::new();
        for f in prime_factors(p) {
            let q = p / f;
            match last_difference(self.values, q, preperiod, (preperiod + p - q).min(count - q))? {
                Some(n) => least.push((f, n)),
                None if preperiod + p <= count => return self.examine(known, start, q),
                None => {}
            }
        }
        let exact = difference.is_some() || start == 0;
        let repeat = Repeat { period: p, preperiod, exact, saltus: 0, proof: None };
        let proof = match self.by_bound(preperiod, p)? {
            None => self.by_window(known, start, preperiod, p)?,
            found => found,
        };
        Ok(Repeat { proof: proof.map(|proof| Proof { least, ..proof }), ..repeat })
    }

    /// Proves the period by P1, P2 or P3, for values that repeat with `p` from `n0` on.
    fn by_bound(self, n0: u64, p: u64) -> Result<Option<Proof>> {
        for theorem in [Theorem::P1, Theorem::P2, Theorem::P3] {
            let from = if theorem == Theorem::P2 { n0 } else { n0.max(1) };
            let Some(length) = theorem.length(self.rule, from, p).filter(|&length| length <= self.values.len()) else {
                continue;
            };
            if theorem == Theorem::P2 && has_zero(self.values, from, from + p)? {
                continue;
            }
            return Ok(Some(Proof { theorem, from, length, window: None, least: Vec::new() }));
        }
        Ok(None)
    }

    /// Proves the period by P4, for values that repeat with `p` from `n0` on. Recomputes the values from n1 to n2,
    /// which yields the depth of their witnesses.
    fn by_window(self, known: &SequenceStats, start: u64, n0: u64, p: u64) -> Result<Option<Proof>> {
        let rule = self.rule;
        let count = self.values.len();
        let Some(&(last_rare, _)) = known.rares.last() else { return Ok(None) };
        let shift = if self.space.position == 1 && p % 2 == 1 { 2 * p } else { p };
        if self.space == SparseSpace::NONE || !solver::may_be_sparse(rule, self.method) || shift >= count {
            return Ok(None);
        }
        // Far enough after n0 for a window of the usual witness depth.
        let usual = solver::lookback(rule, last_rare);
        let from = (n0.max(usual) + usual + rule.max_difference()).min(count - shift);
        let to = from + shift;
        let rares = known.rares.len() as u64;
        let mut window = PeriodWindow { from, to, space: self.space, rares, last_rare, depth: 0 };
        if last_rare >= from || !self.windows_agree(&window, start)? {
            return Ok(None);
        }
        let first = Prefix { of: self.values, count: to };
        let work = match verify::recompute::check(rule, self.method, self.space, &first, known, from..to, |_, _| ()) {
            Err(Error::Freed { .. }) => return Ok(None),
            work => work?,
        };
        window.depth = work.depth;
        if work.defined > 0 || work.found_rare > 0 || !self.windows_agree(&window, start)? {
            return Ok(None);
        }
        if shift != p && last_difference(self.values, p, from, from + p)?.is_some() {
            return Ok(None);
        }
        Ok(Some(Proof { theorem: Theorem::P4, from, length: to, window: Some(window), least: Vec::new() }))
    }

    /// Proves the period by P4 alone, for values that repeat with `p` from `n0` on; `None` when the premises of P4
    /// are not met.
    ///
    /// # Errors
    /// As [`Subject::find`].
    pub fn prove_by_window(self, n0: u64, p: u64) -> Result<Option<Proof>> {
        let known = self.known()?;
        let freed = self.values.freed();
        self.by_window(&known, if freed.is_empty() { 0 } else { freed.end }, n0, p)
    }

    /// Whether n1 and n2 are placed as P4 requires, and the W values before each are retained and agree.
    fn windows_agree(self, window: &PeriodWindow, start: u64) -> Result<bool> {
        let width = window.width(self.rule);
        if !window.is_placed(self.rule) || window.from < start + width {
            return Ok(false);
        }
        let shift = window.to - window.from;
        Ok(last_difference(self.values, shift, window.from - width, window.from)?.is_none())
    }

    /// Finds p and saltus > 0 with G(n + p) = G(n) + saltus throughout the last half, for p up to half of [`ENOUGH`].
    /// Searches only when the last half has a greater value than the first. The caller excludes octal games, where a
    /// short table can show such a repetition although none lasts.
    fn find_arithmetic(self) -> Result<Option<Repeat>> {
        /// Number of values at the end in which the period is searched.
        const ENOUGH: u64 = 1 << 18;
        let count = self.values.len();
        if count < SHORTEST || largest(self.values, count / 2)? == largest(self.values, count)? {
            return Ok(None);
        }
        let mut last = vec![0; index(count.min(ENOUGH))];
        self.values.read(count - last.len() as u64, &mut last)?;
        let steps: Vec<u16> = last.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
        let Some(p) = Stretch::new(steps.as_slice())?.shift(steps.len() as u64 / 2, 1)? else { return Ok(None) };
        let end = last[last.len() - 1];
        let period_before = last[last.len() - 1 - index(p)];
        let Some(saltus) = end.checked_sub(period_before).filter(|&saltus| saltus > 0) else { return Ok(None) };
        let mut preperiod = 0;
        let mut there = Vec::new();
        for_each_piece(self.values, 0, count - p, |from, here| {
            there.resize(here.len(), 0);
            self.values.read(from + p, &mut there)?;
            let exception = here.iter().zip(&there).rposition(|(&a, &b)| a.checked_add(saltus) != Some(b));
            preperiod = exception.map_or(preperiod, |i| from + i as u64 + 1);
            Ok(())
        })?;
        let seen = preperiod <= count / 2;
        Ok(seen.then_some(Repeat { period: p, preperiod, exact: true, saltus, proof: None }))
    }
}

fn has_zero<S: Sequence + ?Sized>(values: &S, from: u64, to: u64) -> Result<bool> {
    let mut found = false;
    for_each_piece(values, from, to, |_, piece| {
        found |= piece.contains(&0);
        Ok(())
    })?;
    Ok(found)
}

fn largest<S: Sequence + ?Sized>(values: &S, to: u64) -> Result<u16> {
    let mut largest = 0;
    for_each_piece(values, 0, to, |_, piece| {
        largest = piece.iter().fold(largest, |a, &b| a.max(b));
        Ok(())
    })?;
    Ok(largest)
}

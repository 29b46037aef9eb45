//! The least preperiod of a sequence that keeps only its last values.
//!
//! A run that frees values shows its period p when a window comes round ([`super::watch`]), and P4 of [`super`] says that it
//! holds from some n1 on. Which of the values before belong to it can no longer be read. So the sequence is computed
//! twice more, side by side and p apart: the last n < n1 with G(n) != G(n + p) is the last exception, n + 1 the least
//! preperiod. That takes as long as n1 + n2 values do, n2 = n1 + p (or n1 + 2p), and the memory of two short runs: each
//! copy keeps the first values and the last ones, as the run did.
//!
//! The copy in front sees all values below n2 go by. So what a certificate says of them is counted there, and for each
//! prime factor f of p a heap n with G(n) != G(n + p/f) is looked for among the W before n1, which belong to the period
//! since those before n2 are the same.
//!
//! The run may have taken its window long after the period began: it was resumed, or it was computed before anyone asked for
//! a period. The copy in front is watched from its first value on, so it finds the period at the first power of two n1 whose
//! window repeats. When that happens before the run's n2, the proof by this nearer window replaces the run's, and both
//! copies stop there. So `from` of the proof is bounded by preperiod, lookback and period, which is what
//! [`super::certificate`] demands, and a certificate asks for no more values than it needs.
//!
//! (The windows of Brent's algorithm, kept at many places, would save the first p values and most of the others; but
//! they would have to be on disk, and in step with the commits, for a question that is asked once a game.)
//!
//! Invariant: both copies are computed from nothing, by a solver that proves each value; what the run left is not read.

use super::certificate::{CertifiedFacts, FactCounter};
use super::watch::Watch;
use super::{LISTED, PeriodWindow, Proof, prime_factors};
use crate::checkpoint::commit::RETAINED_HEAD;
use crate::error::{Error, Result};
use crate::run::ProofSummary;
use crate::solver::{Method, Solver};
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::rule::Rule;
use std::ops::Range;

/// Freed values are dropped when there are so many, so that moving the others down stays cheap.
const MIN_DROPPED: u64 = 1 << 22;

/// What two copies showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetCopies {
    /// The least preperiod.
    pub preperiod: u64,
    /// Heaps before it that do not fit the period, how many and the first of them; `None` where one period does not reach
    /// from there to the preperiod, so that what would fit is not known.
    pub exceptions: Option<(u64, Vec<u64>)>,
    /// What a certificate says of the values below n2.
    pub(super) counted: CertifiedFacts,
    /// The proof by the nearest window: the one that was given, or an earlier one. For each prime factor f of p it has a
    /// heap n that shows p/f to be no period, where one was met.
    pub(super) proof: Proof,
}

/// The first values of a sequence, and the last ones.
struct Ends {
    head: Vec<u16>,
    /// The heap of the first of the last ones.
    start: u64,
    last: Vec<u16>,
    /// How many come first.
    most: u64,
}

impl Ends {
    fn push(&mut self, values: &[u16]) {
        let room = index(self.most - self.head.len() as u64).min(values.len());
        let (first, rest) = values.split_at(room);
        self.head.extend_from_slice(first);
        self.start = self.start.max(self.head.len() as u64);
        self.last.extend_from_slice(rest);
    }

    /// Frees what is neither among the first nor among the last `keep` values.
    fn free(&mut self, keep: u64) {
        let dead = (self.last.len() as u64).saturating_sub(keep);
        if dead >= MIN_DROPPED.min(self.most).max(keep / 2) {
            self.last.drain(..index(dead));
            self.start += dead;
        }
    }
}

impl Sequence for Ends {
    fn len(&self) -> u64 {
        self.start.max(self.head.len() as u64) + self.last.len() as u64
    }

    fn freed(&self) -> Range<u64> {
        let head = self.head.len() as u64;
        if self.start > head { head..self.start } else { 0..0 }
    }

    fn read(&self, from: u64, out: &mut [u16]) -> Result<()> {
        self.require(from, from.saturating_add(out.len() as u64))?;
        let (first, rest) =
            out.split_at_mut(index((self.head.len() as u64).saturating_sub(from).min(out.len() as u64)));
        if !first.is_empty() {
            self.head.as_slice().read(from, first)?;
        }
        if rest.is_empty() { Ok(()) } else { self.last.as_slice().read(from.max(self.start) - self.start, rest) }
    }
}

/// One of the two.
struct Copy {
    solver: Solver,
    values: Ends,
    fresh: Vec<u16>,
}

impl Copy {
    fn new(rule: &Rule, method: Method, head: u64) -> Result<Copy> {
        let values = Ends { head: Vec::new(), start: 0, last: Vec::new(), most: head };
        Ok(Copy { solver: Solver::new(rule, method, None, &values)?, values, fresh: Vec::new() })
    }

    fn len(&self) -> u64 {
        self.values.len()
    }

    /// Computes one batch, to at most `to`, and keeps at least the last `keep` values. Returns the first new n; the batch
    /// is in `fresh`.
    fn advance(&mut self, to: u64, keep: u64) -> Result<u64> {
        let from = self.len();
        self.fresh.clear();
        self.solver.advance(&self.values, to, &mut self.fresh)?;
        self.values.push(&self.fresh);
        if let Some(needed) = self.solver.lookback() {
            self.values.free(needed.saturating_mul(2).max(keep));
        }
        Ok(from)
    }

    /// How the last batch was proof.
    fn proof(&mut self) -> ProofSummary {
        let (rares, last_rare) = self.solver.rares(self.len());
        ProofSummary { space: self.solver.space(), rares, last_rare, depth: self.solver.take_depth() }
    }
}

/// Computes both copies up to where the proof by windows begins: p is the period, `proof` that of P4. `None` when `go_on`,
/// which sees how many values of how many are done, said so.
///
/// # Errors
/// What the solver gives: [`Error::Freed`] when a copy needs values that it has not kept; [`Error::Differs`] when the values
/// before n1 do not belong to the period, so that the run or this computation was wrong.
pub(super) fn lag(
    rule: &Rule,
    method: Method,
    p: u64,
    proof: &Proof,
    window: &PeriodWindow,
    go_on: impl FnMut(u64, u64) -> bool,
) -> Result<Option<OffsetCopies>> {
    lag_keeping(rule, method, p, proof, window, RETAINED_HEAD, go_on)
}

fn lag_keeping(
    rule: &Rule,
    method: Method,
    p: u64,
    proof: &Proof,
    window: &PeriodWindow,
    head: u64,
    mut go_on: impl FnMut(u64, u64) -> bool,
) -> Result<Option<OffsetCopies>> {
    // The copy in front is at most so much farther than p ahead.
    let lead = MIN_DROPPED.min(head);
    let (mut front, mut back) = (Copy::new(rule, method, head)?, Copy::new(rule, method, head)?);
    let mut ahead = Ahead::new(rule, p, proof, window);
    let mut behind = Behind { claimed: window.from - window.width(rule), ..Behind::default() };
    let mut there = Vec::new();
    while front.len() < ahead.n2 || back.len() < ahead.n1 {
        if !go_on(front.len().min(ahead.n2) + back.len().min(ahead.n1), ahead.n1 + ahead.n2) {
            return Ok(None);
        }
        if front.len() < ahead.n2.min(back.len() + p + lead / 2) {
            let from = front.advance(ahead.n2.min(back.len() + p + lead), lead)?;
            let proof = front.proof();
            ahead.see(from, &front.fresh, &proof);
            continue;
        }
        let from = back.advance(ahead.n1.min(front.len() - p), 0)?;
        there.resize(back.fresh.len(), 0);
        front.values.read(from + p, &mut there)?;
        behind.compare(from, &back.fresh, &there, p)?;
    }
    let Ahead { n1, proof, counting, nearer, shown, .. } = ahead;
    let window = proof.window.unwrap_or(*window);
    behind.belongs(n1 - window.width(rule), p)?;
    let Behind { preperiod, count, heaps, .. } = behind;
    let exceptions = (preperiod <= p).then_some((count, heaps));
    let least = if nearer { shown.nearer.found } else { shown.given.found };
    Ok(Some(OffsetCopies { preperiod, exceptions, counted: counting.done(), proof: Proof { least, ..proof } }))
}

/// What the copy in front shows.
struct Ahead {
    p: u64,
    n1: u64,
    n2: u64,
    /// The proof that holds now; its witnesses of the least period are in `shown`.
    proof: Proof,
    window: PeriodWindow,
    /// Whether `proof` is by a window that this copy found.
    nearer: bool,
    watch: Watch,
    counting: FactCounter,
    shown: BothShown,
}

/// Witnesses of the least period, looked for before the n1 of the run and before that of the copy's own window.
struct BothShown {
    given: Shown,
    nearer: Shown,
    /// The n1 of `nearer`.
    mark: Option<u64>,
}

impl Ahead {
    fn new(rule: &Rule, p: u64, proof: &Proof, window: &PeriodWindow) -> Ahead {
        let given = Shown::new(window.from - window.width(rule)..window.from, p);
        Ahead {
            p,
            n1: window.from,
            n2: proof.length,
            proof: proof.clone(),
            window: *window,
            nearer: false,
            watch: Watch::new(rule),
            counting: FactCounter::new(window.space, window.to),
            shown: BothShown { given, nearer: Shown::new(0..0, p), mark: None },
        }
    }

    /// Takes the next values.
    fn see(&mut self, from: u64, values: &[u16], proof: &ProofSummary) {
        if !self.nearer {
            self.watch.see(from, values, proof);
            self.follow_mark(from, values);
            self.take_nearer();
        }
        // A window that was found lies inside the batch, and a certificate speaks of the values before its end alone.
        let needed = &values[..index(self.n2.saturating_sub(from)).min(values.len())];
        self.counting.see(from, needed);
        self.shown.given.see(from, values);
    }

    fn follow_mark(&mut self, from: u64, values: &[u16]) {
        let Some((n1, window)) = self.watch.mark_now() else { return };
        let shown = &mut self.shown;
        if shown.mark == Some(n1) {
            shown.nearer.see(from, values);
            return;
        }
        let start = n1 - window.len() as u64;
        (shown.mark, shown.nearer) = (Some(n1), Shown::new(start..n1, self.p));
        shown.nearer.see(start, window);
        shown.nearer.see(n1, &values[index(n1 - from)..]);
    }

    /// Replaces the proof by the one that the watch has found, when it is by the same period and space and ends sooner.
    fn take_nearer(&mut self) {
        let Some(found) = self.watch.found.as_ref().filter(|found| found.period == self.p) else { return };
        let Some(proof) = &found.proof else { return };
        let Some(window) = proof.window.filter(|window| window.space == self.window.space) else { return };
        if proof.length < self.n2 {
            (self.n1, self.n2, self.nearer) = (window.from, proof.length, true);
            self.proof = proof.clone();
        }
    }
}

/// What the copy behind shows.
#[derive(Default)]
struct Behind {
    /// The values from here on belong to the period, by the window of the run.
    claimed: u64,
    preperiod: u64,
    count: u64,
    heaps: Vec<u64>,
    /// The two values of the last difference.
    last: (u16, u16),
}

impl Behind {
    /// Compares the values from `from` on with those p later.
    fn compare(&mut self, from: u64, values: &[u16], later: &[u16], p: u64) -> Result<()> {
        for (n, (&value, &again)) in (from..).zip(values.iter().zip(later)).filter(|(_, (a, b))| a != b) {
            (self.preperiod, self.last) = (n + 1, (value, again));
            self.belongs(self.claimed, p)?;
            self.count += 1;
            if self.heaps.len() < LISTED {
                self.heaps.push(n);
            }
        }
        Ok(())
    }

    /// Checks that the values from `from` on belong to the period.
    fn belongs(&self, from: u64, p: u64) -> Result<()> {
        if self.preperiod <= from {
            return Ok(());
        }
        let (value, again) = (self.last.0.into(), self.last.1.into());
        Err(Error::Differs { n: self.preperiod - 1 + p, value, again, how: "the period that was proved".into() })
    }
}

/// Looks for heaps that show p/f to be no period.
struct Shown {
    /// These heaps, which belong to the period, and their values as they come.
    heaps: Range<u64>,
    base: Vec<u16>,
    /// Prime factors f with p/f, for which none is found yet.
    open: Vec<(u64, u64)>,
    found: Vec<(u64, u64)>,
}

impl Shown {
    fn new(heaps: Range<u64>, p: u64) -> Shown {
        let open = prime_factors(p).into_iter().map(|f| (f, p / f)).collect();
        Shown { heaps, base: Vec::new(), open, found: Vec::new() }
    }

    /// Sees the values from heap `from` on go by.
    fn see(&mut self, from: u64, values: &[u16]) {
        let Range { start, end } = self.heaps;
        let part = |heaps: Range<u64>| {
            let (first, last) = (heaps.start.max(from), heaps.end.min(from + values.len() as u64));
            if first < last { (first, &values[index(first - from)..index(last - from)]) } else { (first, &[][..]) }
        };
        self.base.extend_from_slice(part(start..end).1);
        let (base, found) = (&self.base, &mut self.found);
        self.open.retain(|&(f, shift)| {
            let (first, values) = part(start + shift..end.saturating_add(shift));
            let other = values.iter().zip((first..).map(|n| base[index(n - shift - start)]));
            let Some(i) = other.into_iter().position(|(&a, b)| a != b) else { return true };
            found.push((f, first + i as u64 - shift));
            false
        });
        self.found.sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::period::{Subject, exceptions};
    use crate::solver::{Histogram, SequenceStats, values};

    /// With next to nothing kept: what all values show. Published: .16 149459, 105351; .56 144, 326640; 2×n squares 12, 71.
    #[test]
    fn two_copies_tell_what_the_whole_table_does() {
        let method = Method::Sparse(Kernel::best());
        for (game, p, n0) in [("remove-a-square", 12, 71), (".16", 149_459, 105_351), (".56", 144, 326_640)] {
            let rule: Rule = game.parse().unwrap();
            let all = values(&rule, method, 1 << 20).unwrap();
            let (space, _) = Histogram::of(all.as_slice()).unwrap().best_space(&rule);
            let freed = SequenceStats::default();
            let subject = Subject { rule: &rule, method, space, values: all.as_slice(), freed: &freed };
            let proof = subject.prove_by_window(n0, p).unwrap().unwrap();
            // What holds from some n1 on does so from later ones: here both copies have freed values long before.
            let proof = Proof { length: 800_000 + p, ..proof };
            let window = PeriodWindow { from: 800_000, to: 800_000 + p, ..proof.window.unwrap() };
            for head in [1 << 17, 1 << 26] {
                let mut last = 0;
                let see = |done, of| {
                    assert!(done >= last && done < of);
                    last = done;
                    true
                };
                let lag = lag_keeping(&rule, method, p, &proof, &window, head, see).unwrap().unwrap();
                assert_eq!(lag.preperiod, n0, "{game}");
                let by_table = exceptions(all.as_slice(), p, n0, LISTED).unwrap();
                assert_eq!(lag.exceptions, (n0 <= p).then_some(by_table), "{game}");
                // The copy in front is watched from the start, and finds a window before the one it was given.
                let nearer = lag.proof.window.unwrap();
                assert!(nearer.from <= 1 << 19 && nearer.is_placed(&rule), "{game}: {nearer:?}");
                assert!(nearer.from >= n0 + nearer.width(&rule) && nearer.to == lag.proof.length, "{game}: {nearer:?}");
                let counted = CertifiedFacts::of(all.as_slice(), lag.proof.length, nearer.space, nearer.to).unwrap();
                assert_eq!(lag.counted, counted, "{game}");
                assert_eq!(lag.proof.least.iter().map(|pair| pair.0).collect::<Vec<_>>(), prime_factors(p), "{game}");
                for &(f, n) in &lag.proof.least {
                    assert!(n >= n0 && all[index(n)] != all[index(n + p / f)], "{game}: {f}, {n}");
                }
            }
            assert_eq!(
                lag_keeping(&rule, method, p, &proof, &window, 1 << 17, |done, _| done < 300_000).unwrap(),
                None
            );
            // A window that lies before the last exceptions, or a period that is none.
            let early = PeriodWindow { from: n0 - 1 + window.width(&rule), ..window };
            let wrong = lag_keeping(&rule, method, p, &proof, &early, 1 << 17, |_, _| true);
            assert!(matches!(wrong, Err(Error::Differs { n, .. }) if n == n0 - 1 + p), "{game}: {wrong:?}");
            let wrong = lag_keeping(&rule, method, p + 2, &proof, &window, 1 << 17, |_, _| true);
            assert!(matches!(wrong, Err(Error::Differs { .. })), "{game}: {wrong:?}");
        }
    }

    #[test]
    fn the_ends_of_a_sequence_are_read_and_what_is_freed_is_refused() {
        let mut ends = Ends { head: Vec::new(), start: 0, last: Vec::new(), most: 10 };
        let values: Vec<u16> = (0..1000).collect();
        for (i, piece) in values.chunks(7).enumerate() {
            ends.push(piece);
            ends.free(20);
            let count = ends.len();
            assert_eq!(count, 1000.min(7 * (i as u64 + 1)));
            let freed = ends.freed();
            assert!(freed.is_empty() || (freed.start == 10 && count - freed.end >= 20 && count - freed.end < 37));
            for (from, to) in [(0, count.min(10)), (freed.end.min(count), count), (0, count), (5, count.min(15))] {
                let mut out = vec![0; index(to - from)];
                match ends.read(from, &mut out) {
                    Ok(()) => assert_eq!(out, &values[index(from)..index(to)]),
                    Err(e) => {
                        assert!(matches!(e, Error::Freed { .. }) && from < freed.end && to > freed.start, "{from} {to}")
                    }
                }
            }
        }
        assert!(!ends.freed().is_empty());
    }
}

//! Recomputing: the solver computes every value again, witnesses included, from the values before it as stored in the
//! table.
//!
//! The range is divided into parts. Each part has a solver of its own, which starts from the table's values before
//! the part. A solver continues from the values that it has computed, which equal those of the table up to the first
//! that differs. So when all values before the range are right, the lowest n that differs has the first wrong value;
//! later parts, which may have started after it, are not checked any further. The check finds every wrong value of
//! the range that does not follow from a wrong one before the range.
//!
//! A new solver searches all values before it for rare positions. They are collected once for all solvers
//! ([`SequenceStats`]), and the values far before a part are presented as discarded while its solver is created. While
//! it computes, it may read all of them.

use super::target::{Target, compare};
use crate::error::{Error, Result};
use crate::solver::{Method, SequenceStats, Solver, SparseSpace, Work, lookback};
use crate::theory::definition::Sequence;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

/// Minimum number of values in a part, because a new solver must first learn the order of the lookups.
const PART: u64 = 1 << 21;

/// Minimum number of values before a part that a new solver reads itself, because large values among them serve as
/// witnesses.
const VALUES_BEFORE_PART: u64 = 1 << 26;

/// Number of first values that a new solver always reads itself, at least those that it holds in memory
/// (`solver::witnesses::HEAD_PARTS`).
const HEAD_VALUES: u64 = 1 << 16;

/// The first values of a sequence, some of them presented as discarded to a solver that is created.
struct HiddenPrefix<'a> {
    past: &'a dyn Sequence,
    count: u64,
    hidden: Range<u64>,
}

impl Sequence for HiddenPrefix<'_> {
    fn len(&self) -> u64 {
        self.count
    }

    fn discarded(&self) -> Range<u64> {
        self.hidden.clone()
    }

    fn read(&self, from: u64, out: &mut [u16]) -> Result<()> {
        self.require(from, from.saturating_add(out.len() as u64))?;
        self.past.read(from, out)
    }
}

/// The sequence to recompute, and the method.
struct Recomputing<'a> {
    target: Target<'a>,
    method: Method,
    /// Index of the lowest part with an error; later parts stop.
    wrong: AtomicUsize,
}

/// Computes the values of `range` again by `method` and compares them. Uses as many threads as the calling rayon pool
/// has. Returns the work of all solvers.
///
/// # Errors
/// [`Error::Wrong`] at the first value that differs; errors of the solver and of reading `past`.
pub fn check(
    target: Target<'_>,
    method: Method,
    range: Range<u64>,
    mut progress: impl FnMut(u64, u64),
) -> Result<Work> {
    let threads = rayon::current_num_threads();
    let all = range.end.saturating_sub(range.start);
    // Later values cost more than earlier ones, so there are more parts than threads.
    let length = all.div_ceil(4 * threads as u64).max(PART);
    let parts: Vec<Range<u64>> = (0..all.div_ceil(length))
        .map(|i| range.start + i * length..range.end.min(range.start + (i + 1) * length))
        .collect();
    let recomputing = Recomputing { target, method, wrong: AtomicUsize::new(usize::MAX) };
    let next = AtomicUsize::new(0);
    let workers = threads.min(parts.len());
    let mut done: Vec<(usize, Result<Work>)> = std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        let running: Vec<_> = (0..workers)
            .map(|_| {
                let sender = sender.clone();
                let recomputing = &recomputing;
                let parts = &parts;
                let next = &next;
                scope.spawn(move || recomputing.work(threads / workers, parts, next, &sender))
            })
            .collect();
        drop(sender);
        let mut count = 0;
        for checked in receiver {
            count += checked;
            progress(count, all);
        }
        running.into_iter().flat_map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    done.sort_unstable_by_key(|part| part.0);
    let mut sum = Work::default();
    for (_, work) in done {
        sum += work?;
    }
    Ok(sum)
}

impl Recomputing<'_> {
    /// Checks parts until none is left. Each worker has a pool of its own, so its solver never waits for that of
    /// another part.
    fn work(
        &self,
        threads: usize,
        parts: &[Range<u64>],
        next: &AtomicUsize,
        progress: &Sender<u64>,
    ) -> Vec<(usize, Result<Work>)> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let mut done = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = parts.get(i) else { return done };
            let work = match &pool {
                Ok(pool) => pool.install(|| self.part(i, part.clone(), progress)),
                Err(error) => Err(Error::threads("recomputing")(error)),
            };
            done.push((i, work));
        }
    }

    /// Checks one part, and records an error so that later parts stop.
    fn part(&self, i: usize, part: Range<u64>, progress: &Sender<u64>) -> Result<Work> {
        let work = self.values(i, part, progress);
        if work.is_err() {
            self.wrong.fetch_min(i, Ordering::Relaxed);
        }
        work
    }

    /// Recomputes one part, until its end or until an earlier part has an error.
    fn values(&self, i: usize, part: Range<u64>, progress: &Sender<u64>) -> Result<Work> {
        if part.is_empty() || self.wrong.load(Ordering::Relaxed) < i {
            return Ok(Work::default());
        }
        let mut solver = self.solver(part.start)?;
        let mut past = HiddenPrefix { past: self.target.values, count: part.start, hidden: self.discarded(part.start) };
        let mut computed = Vec::new();
        let mut stored = Vec::new();
        while past.count < part.end && self.wrong.load(Ordering::Relaxed) >= i {
            computed.clear();
            let advanced = solver.advance(&past, part.end, &mut computed);
            stored.resize(computed.len(), 0);
            self.target.values.read(past.count, &mut stored)?;
            for ((n, &found), &expected) in (past.count..).zip(&stored).zip(&computed) {
                compare(n, found, expected)?;
            }
            advanced?;
            past.count += computed.len() as u64;
            let _ = progress.send(computed.len() as u64); // the receiver lives as long as there are workers
        }
        Ok(solver.work())
    }

    /// Returns the discarded values, if they lie before `start`.
    fn discarded(&self, start: u64) -> Range<u64> {
        let discarded = self.target.values.discarded();
        if discarded.end <= start { discarded } else { 0..0 }
    }

    /// Creates a solver that continues from the values before `start`.
    fn solver(&self, start: u64) -> Result<Solver> {
        let discarded = self.discarded(start);
        let Target { rule, space, values, stats } = self.target;
        let recent = start.saturating_sub(VALUES_BEFORE_PART.max(lookback(rule, stats.last_rare())));
        let hidden =
            if discarded.is_empty() { HEAD_VALUES..recent } else { discarded.start..discarded.end.max(recent) };
        let sparse = space != SparseSpace::NONE;
        let hidden = if hidden.is_empty() || !sparse { discarded } else { hidden };
        // The largest value of all is an upper bound of the largest hidden one, which is all that the solver needs.
        let known = SequenceStats {
            rare_positions: stats.rare_positions_in(&hidden).to_vec(),
            max_value: if hidden.is_empty() { 0 } else { stats.max_value },
            max_at: if hidden.is_empty() { 0 } else { stats.max_at },
        };
        let past = HiddenPrefix { past: values, count: start, hidden };
        let solver = Solver::knowing(rule, self.method, sparse.then_some(space), &past, &known)?;
        // The space is fixed to that of the run; a solver without one may still choose a space by itself.
        Ok(if solver.space() == SparseSpace::NONE { solver } else { solver.with_fixed_space() })
    }
}

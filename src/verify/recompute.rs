//! Recomputing: every value anew by the solver, witnesses included, from the values before it as they stand in the
//! table.
//!
//! The range is cut into parts, each with a solver of its own that begins behind the table's values before the part. A
//! solver goes on from the values it has handed out, which are those of the table until the first that differs; so,
//! when all before the range are right, the lowest heap that differs has the first wrong value, and the other parts,
//! which may have begun behind it, are not asked any more. Every wrong value of the range is found that does not follow
//! from a wrong one before the range.
//!
//! A solver looks for rare heaps in all values before it. They are counted once for all ([`super::count`]), and the
//! values far behind a part are shown to it as freed while it is made. While it computes it may read all of them.

use crate::error::{Error, Result};
use crate::solver::{Method, SequenceStats, Solver, SparseSpace, Work, lookback};
use crate::theory::definition::Sequence;
use crate::theory::rule::Rule;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

/// A part has at least so many heaps, since a solver that begins must learn which lookups come first.
const PART: u64 = 1 << 21;

/// So many of the last values a new solver reads itself: large ones among them serve as witnesses.
const RECENT: u64 = 1 << 26;

/// The first values, which it always reads.
const HEAD_VALUES: u64 = 1 << 16;

/// The first values of a sequence. Some are shown as freed to a solver that is made.
struct HiddenPrefix<'a, S: ?Sized> {
    past: &'a S,
    count: u64,
    hidden: Range<u64>,
}

impl<S: Sequence + ?Sized> Sequence for HiddenPrefix<'_, S> {
    fn len(&self) -> u64 {
        self.count
    }

    fn freed(&self) -> Range<u64> {
        self.hidden.clone()
    }

    fn read(&self, from: u64, out: &mut [u16]) -> Result<()> {
        self.require(from, from.saturating_add(out.len() as u64))?;
        self.past.read(from, out)
    }
}

/// What is computed anew, and how.
struct Recomputing<'a, S: ?Sized> {
    rule: &'a Rule,
    method: Method,
    space: SparseSpace,
    past: &'a S,
    known: &'a SequenceStats,
    /// The lowest part that went wrong; later ones need not go on.
    wrong: AtomicUsize,
}

/// Computes the values of `range` anew; `known` has the rare heaps of the whole sequence under `space`. All threads of
/// the calling rayon pool are used. The answer is what the solvers did.
///
/// # Errors
/// [`Error::Wrong`] at the first value that differs; what the solver and reading `past` give.
pub fn check<S: Sequence + ?Sized>(
    rule: &Rule,
    method: Method,
    space: SparseSpace,
    past: &S,
    known: &SequenceStats,
    range: Range<u64>,
    mut progress: impl FnMut(u64, u64),
) -> Result<Work> {
    let threads = rayon::current_num_threads();
    let all = range.end.saturating_sub(range.start);
    // Later heaps cost more than earlier ones, so there are more parts than threads.
    let length = all.div_ceil(4 * threads as u64).max(PART);
    let parts: Vec<Range<u64>> = (0..all.div_ceil(length))
        .map(|i| range.start + i * length..range.end.min(range.start + (i + 1) * length))
        .collect();
    let wrong = AtomicUsize::new(usize::MAX);
    let recomputing = Recomputing { rule, method, space, past, known, wrong };
    let next = AtomicUsize::new(0);
    let workers = threads.min(parts.len());
    let mut done: Vec<(usize, Result<Work>)> = std::thread::scope(|scope| {
        let (tell, told) = channel();
        let running: Vec<_> = (0..workers)
            .map(|_| {
                let (tell, recomputing, parts, next) = (tell.clone(), &recomputing, &parts, &next);
                scope.spawn(move || recomputing.work(threads / workers, parts, next, &tell))
            })
            .collect();
        drop(tell);
        let mut count = 0;
        for more in told {
            count += more;
            progress(count, all);
        }
        running.into_iter().flat_map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    done.sort_unstable_by_key(|part| part.0);
    let mut sum = Work::default();
    for (_, work) in done {
        let work = work?;
        sum.witnessed += work.witnessed;
        sum.defined += work.defined;
        sum.exhaustive_searches += work.exhaustive_searches;
        sum.found_rare += work.found_rare;
        sum.depth = sum.depth.max(work.depth);
    }
    Ok(sum)
}

impl<S: Sequence + ?Sized> Recomputing<'_, S> {
    /// Parts until there are none left. A pool for each worker: its solver never waits for one of another part.
    fn work(
        &self,
        threads: usize,
        parts: &[Range<u64>],
        next: &AtomicUsize,
        tell: &Sender<u64>,
    ) -> Vec<(usize, Result<Work>)> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let mut done = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = parts.get(i) else { return done };
            let work = match &pool {
                Ok(pool) => pool.install(|| self.part(i, part.clone(), tell)),
                Err(e) => Err(Error::io("starting threads for", "recomputing")(std::io::Error::other(e.to_string()))),
            };
            done.push((i, work));
        }
    }

    /// One part, unless an earlier one has gone wrong.
    fn part(&self, i: usize, part: Range<u64>, tell: &Sender<u64>) -> Result<Work> {
        let work = self.values(i, part, tell);
        if work.is_err() {
            self.wrong.fetch_min(i, Ordering::Relaxed);
        }
        work
    }

    fn values(&self, i: usize, part: Range<u64>, tell: &Sender<u64>) -> Result<Work> {
        if part.is_empty() || self.wrong.load(Ordering::Relaxed) < i {
            return Ok(Work::default());
        }
        let mut solver = self.solver(part.start)?;
        let mut past = HiddenPrefix { past: self.past, count: part.start, hidden: self.freed(part.start) };
        let (mut computed, mut stored) = (Vec::new(), Vec::new());
        while past.count < part.end && self.wrong.load(Ordering::Relaxed) >= i {
            computed.clear();
            let advanced = solver.advance(&past, part.end, &mut computed);
            stored.resize(computed.len(), 0);
            self.past.read(past.count, &mut stored)?;
            for ((n, &found), &expected) in (past.count..).zip(&stored).zip(&computed) {
                super::compare(n, found, expected)?;
            }
            advanced?;
            past.count += computed.len() as u64;
            let _ = tell.send(computed.len() as u64); // the other end is open as long as there are workers
        }
        Ok(solver.work())
    }

    /// What is freed before `start`.
    fn freed(&self, start: u64) -> Range<u64> {
        let freed = self.past.freed();
        if freed.end <= start { freed } else { 0..0 }
    }

    /// A solver that goes on from the values before `start`.
    fn solver(&self, start: u64) -> Result<Solver> {
        let freed = self.freed(start);
        let last_rare = self.known.rares.last().map_or(0, |rare| rare.0);
        let recent = start.saturating_sub(RECENT.max(lookback(self.rule, last_rare)));
        let hidden = match freed.is_empty() {
            true => HEAD_VALUES..recent,
            false => freed.start..freed.end.max(recent),
        };
        let sparse = self.space != SparseSpace::NONE;
        let hidden = if hidden.is_empty() || !sparse { freed } else { hidden };
        let rares = self.known.rares.iter().filter(|rare| hidden.contains(&rare.0)).copied().collect();
        let max_value = if hidden.is_empty() { 0 } else { self.known.max_value };
        let past = HiddenPrefix { past: self.past, count: start, hidden };
        let space = sparse.then_some(self.space);
        let solver = Solver::knowing(self.rule, self.method, space, &past, &SequenceStats { rares, max_value })?;
        // The space is the one that the run found good; a young sequence finds it again.
        Ok(if solver.space() == SparseSpace::NONE { solver } else { solver.with_fixed_space() })
    }
}

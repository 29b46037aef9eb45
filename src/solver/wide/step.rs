//! One step: one thread finds the values in order, and all threads prepare the far options of the next runs.
//!
//! The far step of a run does not read the values of the *lead*, the positions just before the run. So any thread can
//! do it while the near step is still at earlier positions. A longer lead leaves more work to the producer: the middle
//! step has more options, and more positions are left without a candidate. A shorter one makes threads wait. Where
//! positions have as many candidates as possible and more than one in ten loses all, the solver shortens the lead. With
//! four threads or more, another thread does a part of the middle step just before the producer takes the run: it
//! *revises* the run (`middle`).
//!
//! Invariant: the value of a position is a function of the values before it. The lead, the number of threads and their
//! order only decide which of the three steps excludes an option.

use super::WideSolver;
use super::far::FarRun;
use super::near::{Found, NearStep};
use super::reader::Reader;
use super::recent_parts::RecentParts;
use super::run::Run;
use crate::error::{Error, Result};
use crate::kernel::WIDE_LANES;
use crate::solver::Work;
use crate::solver::parallelism::Threads;
use crate::solver::slots::{Claim, Closing, SLOT, Slots, lock};
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Maximum number of positions in the lead.
pub(super) const LONGEST_LEAD: u64 = 1024;

/// Minimum number of threads where runs are revised. With fewer, the lead is so short that it does not pay. Unit tests
/// revise from two threads on.
const REVISING_THREADS: usize = if cfg!(test) { 2 } else { 4 };

/// Maximum number of positions between the known values and a run that is revised. Unit tests revise as early as
/// possible.
const REVISED: u64 = if cfg!(test) { LONGEST_LEAD } else { 2 * WIDE_LANES as u64 };

/// Time after which no thread begins with another run, so that the caller can commit or stop.
const STEP_TIME: Duration = Duration::from_millis(250);

/// Maximum number of positions in the lead with this number of threads.
pub(super) fn longest_lead(threads: Threads) -> u64 {
    match threads.count() {
        1 => 0,
        // One run for each thread, and some more, so that a slow thread does not stop the others.
        count => LONGEST_LEAD.min(((count + 2.max(count / 2)) * WIDE_LANES) as u64),
    }
}

/// The next values, which the near step has found.
struct Piece {
    values: Box<[u16]>,
    /// The parts of the last pairs found.
    recent: RecentParts,
}

/// The values that a step found.
pub(super) struct NextValues {
    /// The values of the positions up to the end of the step, which may come early.
    pub(super) values: Vec<u16>,
    /// What was found beside them.
    pub(super) found: Found,
    /// Why the step ended before its last position, if it failed.
    pub(super) outcome: Result<()>,
}

/// What another thread has read of a step.
struct OtherThread<'a> {
    /// `None` before its first work.
    reader: Option<Reader<'a>>,
    /// Number of pieces read.
    pieces: usize,
}

/// A step over some positions, which begin where the values of the solver end.
pub(super) struct Step<'a> {
    pub(super) solver: &'a WideSolver,
    positions: Range<u64>,
    threads: Threads,
    /// Number of positions in the lead.
    lead: u64,
    slots: Slots<Result<FarRun>>,
    /// What the near step has found in each run.
    pieces: Vec<OnceLock<Piece>>,
    /// Lanes to be used again: to allocate new ones takes longer than to fill them.
    spare: Mutex<Vec<FarRun>>,
    /// Number of other threads that have begun.
    begun: AtomicUsize,
    /// Whether the near step searches all pairs with other threads.
    is_searching: AtomicBool,
}

impl<'a> Step<'a> {
    /// A step over the positions up to `end`, at most half as many as the solver has values.
    pub(super) fn new(solver: &'a WideSolver, end: u64, threads: Threads) -> Step<'a> {
        let first = solver.end();
        // All smaller parts of the positions are before the step.
        let end = end.min(first + (first / 2).max(1));
        let runs = index(end - first).div_ceil(SLOT);
        let (begun, is_searching) = (AtomicUsize::new(0), AtomicBool::new(false));
        Step {
            solver,
            positions: first..end,
            threads,
            lead: solver.lead.min(longest_lead(threads)),
            slots: Slots::new(first, runs, first),
            pieces: (0..runs).map(|_| OnceLock::new()).collect(),
            spare: Mutex::new(Vec::new()),
            begun,
            is_searching,
        }
    }

    /// Finds the values.
    ///
    /// # Errors
    /// [`Error::Flipped`] when the copies of the last values differ. An error of the near step or of the audit is in
    /// [`NextValues::outcome`], and the values end before it.
    pub(super) fn run(&self, past: &dyn Sequence, work: &mut Work) -> Result<NextValues> {
        let readers = Mutex::new(Vec::new());
        let (near, outcome) = rayon::scope(|scope| {
            for _ in 1..self.threads.count() {
                scope.spawn(|_| {
                    let reader = self.prepare();
                    lock(&readers).extend(reader);
                });
            }
            self.find(past, work)
        });
        let readers = readers.into_inner().unwrap_or_else(|error| error.into_inner());
        for reader in &readers {
            reader.agrees_with(near.reader.last())?;
        }
        near.reader.agrees_with(&self.solver.values)?;
        self.agrees_with_pieces(near.reader.found())?;
        Ok(NextValues { values: near.reader.found().to_vec(), found: near.found, outcome })
    }

    /// Checks that the values of the step are those that were published.
    ///
    /// # Errors
    /// [`Error::Flipped`] otherwise.
    fn agrees_with_pieces(&self, mut values: &[u16]) -> Result<()> {
        let mut from = self.positions.start;
        for piece in self.pieces.iter().map_while(OnceLock::get) {
            let (found, rest) = values.split_at(piece.values.len());
            if found != &*piece.values {
                return Err(Error::Flipped { what: "the value", from, to: from + found.len() as u64 });
            }
            (from, values) = (from + found.len() as u64, rest);
        }
        Ok(())
    }

    /// Finds the values, and lets the other threads return then. Prepares the runs that no other thread does.
    fn find<'s>(&'s self, past: &'s dyn Sequence, work: &'s mut Work) -> (NearStep<'s>, Result<()>) {
        let _closing = Closing(&self.slots);
        let mut near = NearStep::new(self, past, work);
        let outcome = self.find_values(&mut near);
        (near, outcome)
    }

    /// The near step of all positions, until the step ends.
    ///
    /// # Errors
    /// Those of the near step and of the audit. The values before the error are found.
    fn find_values(&self, near: &mut NearStep<'_>) -> Result<()> {
        let begun = Instant::now();
        let mut end = self.positions.end;
        let mut is_last = false;
        while near.reader.end() < end {
            let run = self.run_at(near.reader.end());
            let prepare_other = || self.claim().map(|claim| self.deliver(claim, &near.reader)).is_some();
            let taken = self.slots.take(run.first, prepare_other);
            let mut far = taken.unwrap_or_else(|| self.far_lanes(run, &near.reader))?;
            self.solver.audited(run, &mut far, |kernel, far| near.reader.remove_middle(kernel, run, far))?;
            let can_continue = near.run(run, &far.lanes, end)?;
            lock(&self.spare).push(far);
            near.work.audited += if self.solver.is_audited(run) { near.reader.end() - run.first } else { 0 };
            if !can_continue {
                break;
            }
            let values = near.reader.last().slice(run.first, near.reader.end());
            let piece = Piece { values: values.into(), recent: near.found.recent.clone() };
            self.pieces[index(run.first - self.positions.start) / SLOT].get_or_init(|| piece);
            self.slots.publish(values.len());
            if !is_last && begun.elapsed() > STEP_TIME {
                is_last = true;
                end = end.min(self.slots.stop());
            }
        }
        Ok(())
    }

    /// One past the last position that the far step of the run from position `first` on knows.
    fn known_before(&self, first: u64) -> u64 {
        first.saturating_sub(self.lead).max(self.positions.start)
    }

    /// Searches all pairs, with all threads of the pool only if every task of this step is running. While the search
    /// waits for its own tasks, rayon could start on this thread a task of the step that is still queued. That task
    /// returns only when the step ends, and the step waits for the search: a deadlock.
    pub(super) fn search<R>(&self, search: impl FnOnce(bool) -> R) -> R {
        let others = self.threads.count() - 1;
        let alone = others == 0 || self.begun.load(Ordering::SeqCst) < others;
        if !alone {
            self.is_searching.store(true, Ordering::SeqCst);
            self.slots.wake();
        }
        let found = search(alone);
        self.is_searching.store(false, Ordering::SeqCst);
        found
    }

    /// The run from position `first` on, where all pieces that its far step knows are published.
    fn run_at(&self, first: u64) -> Run<'_> {
        let known = self.known_before(first);
        let pieces = index(known - self.positions.start) / SLOT;
        let last = pieces.checked_sub(1).and_then(|last| self.pieces[last].get());
        Run { known, first, recent: last.map_or(&self.solver.recent, |piece| &piece.recent) }
    }

    /// Claims the next run that can be prepared, if there is one now.
    fn claim(&self) -> Option<Claim<'_, Result<FarRun>>> {
        self.slots.claim(1, |first, known| self.known_before(first) <= known)
    }

    /// Prepares a run.
    fn deliver(&self, mut claim: Claim<'_, Result<FarRun>>, reader: &Reader<'_>) {
        claim.item = Some(self.far_lanes(self.run_at(claim.position()), reader));
    }

    /// What the far options of a run leave open.
    fn far_lanes(&self, run: Run<'_>, reader: &Reader<'_>) -> Result<FarRun> {
        let spare = lock(&self.spare).pop();
        let mut far = spare.unwrap_or_default();
        self.solver.audited(run, &mut far, |kernel, far| reader.far_lanes(kernel, run, far))?;
        self.solver.check_candidates(reader, run, &far)?;
        Ok(far)
    }

    /// Revises the next run for which it is time. Returns false if there is none.
    fn revise(&self, thread: &mut OtherThread<'a>) -> bool {
        if self.threads.count() < REVISING_THREADS {
            return false;
        }
        let is_time = |first: u64, known: u64| first <= known + REVISED;
        let Some((first, mut item)) = self.slots.revise(is_time) else { return false };
        if let Some(Ok(far)) = &mut *item {
            let (run, reader) = (self.run_at(first), self.read(thread));
            let revised = self.solver.audited(run, far, |kernel, far| reader.revise(kernel, run, far));
            if let Err(error) = revised.and_then(|()| self.solver.check_candidates(reader, run, far)) {
                *item = Some(Err(error));
            }
        }
        true
    }

    /// The reader of another thread, which knows all values published.
    fn read<'f>(&self, thread: &'f mut OtherThread<'a>) -> &'f Reader<'a> {
        let OtherThread { reader, pieces } = thread;
        let reader = reader.get_or_insert_with(|| Reader::new(self.solver));
        while let Some(piece) = self.pieces.get(*pieces).and_then(OnceLock::get) {
            reader.push(&piece.values);
            *pieces += 1;
        }
        reader
    }

    /// Prepares runs until the step ends. Returns what this thread has read, if it has.
    fn prepare(&self) -> Option<Reader<'a>> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let mut thread = OtherThread { reader: None, pieces: 0 };
        loop {
            let seen = self.slots.changes();
            if self.revise(&mut thread) {
                continue;
            }
            if let Some(claim) = self.claim() {
                self.deliver(claim, self.read(&mut thread));
                continue;
            }
            // Takes a part of the search, if one is left.
            if self.is_searching.load(Ordering::SeqCst) && rayon::yield_now() == Some(rayon::Yield::Executed) {
                continue;
            }
            if !self.slots.wait(seen, true) {
                return thread.reader;
            }
        }
    }
}

const _: () = assert!(WIDE_LANES == SLOT);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::solver::{SequenceStats, SparseSpace};
    use crate::theory::definition;
    use crate::theory::rule::Rule;

    /// Other threads read the pieces, so a value that changes in the copy of the near step is found after the step.
    #[test]
    fn a_value_that_differs_from_its_piece_is_found() {
        let rule: Rule = "0.146".parse().unwrap();
        let values = definition::values(&rule, 1000).unwrap();
        let stats = SequenceStats { max_value: *values.iter().max().unwrap(), ..SequenceStats::default() };
        let solver = WideSolver::new(&rule, SparseSpace::NONE, Kernel::scalar(), stats, &&values[..800]).unwrap();
        let step = Step::new(&solver, 1000, Threads::ONE);
        let mut found = values[800..800 + 3 * SLOT].to_vec();
        for (piece, values) in step.pieces.iter().zip(found.chunks(SLOT)) {
            piece.get_or_init(|| Piece { values: values.into(), recent: RecentParts::default() });
        }
        step.agrees_with_pieces(&found).unwrap();
        found[SLOT + 5] ^= 1;
        let (from, to) = (800 + SLOT as u64, 800 + 2 * SLOT as u64);
        let seen = step.agrees_with_pieces(&found);
        assert!(matches!(seen, Err(Error::Flipped { from: f, to: t, .. }) if (f, t) == (from, to)), "{seen:?}");
    }
}

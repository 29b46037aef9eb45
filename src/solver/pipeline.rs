//! The pipeline between the streams: candidates go to the worker piece by piece, and marks for later pieces come back.
//!
//! ```text
//! Producer    piece 0 ─► piece 1 ─► piece 2 ─► piece 3 ─► piece 4 ─► …     computes candidates, in order
//!                │ values             ▲ bit planes of the 16 x 64 lanes of piece 4
//! MarkWorker     └─► codes ─► mark ───┘                                    marks the lookups of `LookupPlan::ahead`
//! ```
//!
//! `candidates` has a picture of block, piece, group, lane and plane.
//!
//! The candidates are a serial chain, so the thread that computes them (the [`Producer`]) must do nothing that another
//! thread could do. Lookups with an offset of at least [`AHEAD`] can be marked for a piece while the three pieces
//! before it are unknown. The other end (the [`MarkWorker`]) marks them whenever a piece has arrived. The threads meet
//! only at the end of a block, because meeting more often costs time. The producer itself marks every piece whose marks
//! come too late, so a single thread can do all the work, one step after the other.
//!
//! With two threads, the thread that searches witnesses is also the worker, and serves the pipeline between groups of
//! values. With more than two, one thread is only the worker (except in blocks that begin without a plan), and the
//! other threads search witnesses: a thread that did both would deliver most marks too late.
//!
//! During a block no thread writes the shared codes. The worker copies the last codes, at most [`RECENT`] of them and
//! only as many as the plan reads, and appends the candidates of each piece to the copy. So all threads may read the
//! codes before the block.
//!
//! The producer never waits: neither for marks nor for other threads, and it calls no part of rayon. So the thread that
//! starts the producer completes it, and the worker, which waits for the producer, terminates. When the worker is gone,
//! sending a piece fails and the producer stops.
//!
//! The worker computes the codes of each piece from its values. So memory holds two copies of the codes, computed
//! independently, and the solver can compare them.

use super::block::{BLOCK, BlockLimits};
use super::codes::Codes;
use super::lookups::plan::{AHEAD, LookupPlan, PIPELINE_PIECE, RECENT};
use super::parallelism::{MarkingThread, Threads};
use crate::kernel::{BitPlanes, Kernel, LANES, Probes};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

/// Candidates, the plan that they were computed with, and planes that are no longer needed.
struct Piece {
    values: Vec<u16>,
    plan: Arc<LookupPlan>,
    used: Vec<BitPlanes>,
}

/// The bit planes of a piece in which the lookups of [`LookupPlan::ahead`] are marked.
pub(super) struct MarkedAhead {
    plan: Arc<LookupPlan>,
    start: u64,
    planes: Vec<BitPlanes>,
}

/// The end of the pipeline that computes the candidates.
pub(super) struct Producer {
    pieces: Sender<Piece>,
    rest: Rest,
    threads: Threads,
}

/// Pieces that are marked and not used yet, in ascending order, perhaps with gaps.
pub(super) struct Rest {
    marked: Receiver<MarkedAhead>,
    waiting: VecDeque<MarkedAhead>,
}

/// The end of the pipeline that marks ahead.
pub(super) struct MarkWorker<'a> {
    /// The codes before the block.
    codes: &'a Codes,
    /// A copy of the last of them, and the codes of the pieces that have arrived.
    recent: Codes,
    kernel: Kernel,
    plan: Arc<LookupPlan>,
    pieces: Receiver<Piece>,
    marked: Sender<MarkedAhead>,
    spare: Vec<Vec<BitPlanes>>,
    /// Start of the next piece to mark; the pieces before it are marked, or never will be.
    next: u64,
    /// The first position that may not be marked (`end`), and the threads of the block.
    limits: BlockLimits,
}

/// A pipeline for the positions from the end of `codes` up to the end of `limits`. `waiting` are the pieces that the
/// pipeline of the block before has marked.
pub(super) fn pipeline(
    codes: &Codes,
    kernel: Kernel,
    plan: Arc<LookupPlan>,
    limits: BlockLimits,
    waiting: VecDeque<MarkedAhead>,
) -> (Producer, MarkWorker<'_>) {
    let (pieces, arriving) = channel();
    let (marked, marks) = channel();
    let next = waiting.back().map_or(0, |ahead| ahead.start + PIPELINE_PIECE as u64);
    let recent = codes.last(copied_codes(&plan, limits.threads), BLOCK);
    let worker = MarkWorker { codes, recent, kernel, plan, pieces: arriving, marked, spare: Vec::new(), next, limits };
    (Producer { pieces, rest: Rest { marked: marks, waiting }, threads: limits.threads }, worker)
}

/// Number of last codes that the worker of a block with this plan copies: as many as the plan reads, if it has lookups
/// to mark ahead. Under a later plan that reads farther back nothing is marked ahead in this block.
fn copied_codes(plan: &LookupPlan, threads: Threads) -> usize {
    if threads.marking() == MarkingThread::None || plan.is_recurrence() {
        return 0;
    }
    match plan.ahead_recent.max_offset() {
        0 => RECENT,
        reach => reach,
    }
}

impl Producer {
    /// The threads of the block.
    pub(super) fn threads(&self) -> Threads {
        self.threads
    }

    /// The planes of the piece from `start` on, if the worker has marked it under this plan; otherwise an empty list.
    /// Drops the marks of earlier pieces.
    pub(super) fn ahead(&mut self, plan: &Arc<LookupPlan>, start: u64) -> Vec<BitPlanes> {
        let Rest { marked, waiting } = &mut self.rest;
        waiting.extend(marked.try_iter());
        waiting.retain(|ahead| ahead.start >= start);
        let fits = |ahead: &MarkedAhead| ahead.start == start && Arc::ptr_eq(&ahead.plan, plan);
        let found = waiting.iter().position(fits).and_then(|at| waiting.remove(at));
        found.map_or_else(Vec::new, |ahead| ahead.planes)
    }

    /// Sends candidates to the worker, and returns the planes used for them to it. Returns false when the worker is
    /// gone.
    pub(super) fn send(&mut self, values: &[u16], plan: &Arc<LookupPlan>, used: Vec<BitPlanes>) -> bool {
        self.pieces.send(Piece { values: values.to_vec(), plan: Arc::clone(plan), used }).is_ok()
    }

    /// Closes the channel to the worker: no more pieces follow.
    pub(super) fn close(self) -> Rest {
        self.rest
    }
}

impl Rest {
    /// The marked pieces that the next block may use. To be called once the worker has finished.
    pub(super) fn into_waiting(mut self) -> VecDeque<MarkedAhead> {
        self.waiting.extend(self.marked.try_iter());
        self.waiting
    }
}

impl MarkWorker<'_> {
    /// Whether the producer can use marks made ahead.
    pub(super) fn marks(&self) -> bool {
        self.limits.threads.marking() != MarkingThread::None && self.plan.has_ahead()
    }

    /// Takes the pieces that have arrived, and marks every piece that can be marked now. Returns false when no more
    /// pieces follow.
    pub(super) fn serve(&mut self) -> bool {
        let more = self.listen();
        self.mark(self.recent.end());
        more
    }

    /// Serves until all pieces have arrived, and returns the copy of the last codes, followed by the codes of the
    /// pieces. While pieces follow, this does not mark the next piece, because those marks would be too late. In the end
    /// it marks pieces of the next block.
    pub(super) fn finish(mut self) -> Codes {
        while self.listen() {
            self.mark(self.recent.end() + PIPELINE_PIECE as u64);
            let Ok(piece) = self.pieces.recv() else { break };
            self.take(piece);
        }
        self.mark(self.recent.end());
        self.recent
    }

    /// Takes the pieces that have arrived. Returns false when no more pieces follow.
    fn listen(&mut self) -> bool {
        loop {
            match self.pieces.try_recv() {
                Ok(piece) => self.take(piece),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn take(&mut self, piece: Piece) {
        self.recent.push(&piece.values);
        if !piece.used.is_empty() {
            self.spare.push(piece.used);
        }
        if !Arc::ptr_eq(&piece.plan, &self.plan) {
            self.plan = piece.plan;
            self.next = 0;
        }
    }

    /// Marks the pieces from position `first` on for which all codes that the lookups of [`LookupPlan::ahead`] read are
    /// known.
    fn mark(&mut self, first: u64) {
        if !self.marks() {
            return;
        }
        let end = self.limits.end.min(self.recent.end() + AHEAD as u64);
        self.next = self.next.max(first.next_multiple_of(PIPELINE_PIECE as u64));
        while self.next + PIPELINE_PIECE as u64 <= end {
            let start = self.next;
            self.next += PIPELINE_PIECE as u64;
            if self.plan.holds(start, self.next) && self.sources().iter().all(|source| source.holds_piece(start)) {
                let planes = self.marked_planes(start);
                let _ = self.marked.send(MarkedAhead { plan: Arc::clone(&self.plan), start, planes });
            }
        }
    }

    /// The two lists of lookups that are marked ahead, with the codes that each reads.
    fn sources(&self) -> [MarkSource<'_>; 2] {
        [
            MarkSource { codes: &self.recent, probes: &self.plan.ahead_recent, min_offset: AHEAD },
            MarkSource { codes: self.codes, probes: &self.plan.ahead_old, min_offset: RECENT },
        ]
    }

    /// The planes of the piece from `start` on, with all lookups marked that may be marked ahead.
    fn marked_planes(&mut self, start: u64) -> Vec<BitPlanes> {
        // Reuse memory: fresh memory for each piece would cost more time than the marks.
        let mut piece = self.spare.pop().unwrap_or_default();
        let codes_considered = self.plan.codes;
        piece.resize_with(PIPELINE_PIECE / LANES, || BitPlanes::new(codes_considered));
        for (first, planes) in (start..).step_by(LANES).zip(&mut piece) {
            planes.clear(codes_considered);
            for source in self.sources() {
                self.kernel.mark(source.codes.items(), source.codes.at(first), source.probes, planes);
            }
        }
        piece
    }
}

/// Lookups that are marked ahead, and the codes that they read.
struct MarkSource<'a> {
    codes: &'a Codes,
    probes: &'a Probes,
    /// A lower bound of the offsets of the lookups.
    min_offset: usize,
}

impl MarkSource<'_> {
    /// Whether the codes hold everything that the lookups read for the piece from `start` on.
    fn holds_piece(&self, start: u64) -> bool {
        let end = start + PIPELINE_PIECE as u64;
        let reach = self.probes.max_offset() as u64;
        let known_to = end.saturating_sub(self.min_offset as u64);
        self.probes.list().is_empty() || self.codes.hold(start, reach, known_to)
    }
}

#[cfg(test)]
mod tests;

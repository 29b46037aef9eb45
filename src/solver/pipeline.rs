//! The pipeline between the streams: candidates go to the worker piece by piece, and marks for later pieces come back.
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
//! A producer never waits: neither for marks nor for other threads, and it calls no part of rayon. So the thread that
//! starts the producer completes it, and the worker, which waits for the producer, terminates. When the worker is gone,
//! sending a piece fails and the producer stops.
//!
//! The worker computes the codes of each piece from its values. So memory holds two copies of the codes, computed
//! independently, and the solver can compare them.

use super::candidates::LookupPlan;
use super::codes::Codes;
use crate::kernel::{BitPlanes, Kernel, LANES};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

/// Number of values in a piece; pieces end on multiples of it. With longer pieces fewer lookups can be marked ahead.
/// `sequence` of `cargo bench` (benches/sequence.rs) measures its effect.
pub(super) const PIPELINE_PIECE: usize = 1024;

/// Number of values in a piece where nothing is marked ahead. `sequence/0.106` of `cargo bench` (benches/sequence.rs)
/// measures its effect.
pub(super) const LONG_PIECE: usize = 2 * PIPELINE_PIECE;

/// The least offset, in values, of a lookup that is marked ahead of time.
pub(super) const AHEAD: usize = 4 * PIPELINE_PIECE;

/// The largest offset, in values, of a lookup that is marked ahead in the copy of the last codes, and the maximum
/// length of this copy at the start of a block. Lookups with larger offsets are marked ahead in the codes before the
/// block.
pub(super) const RECENT: usize = 1 << 18;

// A lookup with an offset above RECENT, from anywhere in a block or up to AHEAD behind it, must read codes before the
// block.
const _: () = assert!(super::BLOCK + AHEAD <= RECENT);

/// Candidates, the plan that they were computed with, and planes that are no longer needed.
struct Piece {
    values: Vec<u16>,
    plan: Arc<LookupPlan>,
    used: Vec<BitPlanes>,
}

/// The bit planes of a piece in which the lookups `ahead` of a plan are marked.
pub(super) struct MarkedAhead {
    plan: Arc<LookupPlan>,
    start: u64,
    planes: Vec<BitPlanes>,
}

/// The end of the pipeline that computes the candidates.
pub(super) struct Producer {
    pieces: Sender<Piece>,
    rest: Rest,
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
    /// End of the positions that may be marked.
    limit: u64,
}

/// A pipeline for the positions from the end of `codes` up to `limit`. `waiting` are the pieces that the pipeline of
/// the block before has marked.
pub(super) fn pipeline(
    codes: &Codes,
    kernel: Kernel,
    plan: Arc<LookupPlan>,
    limit: u64,
    waiting: VecDeque<MarkedAhead>,
) -> (Producer, MarkWorker<'_>) {
    let (pieces, arriving) = channel();
    let (marked, marks) = channel();
    let next = waiting.back().map_or(0, |ahead| ahead.start + PIPELINE_PIECE as u64);
    let may_mark = rayon::current_num_threads() > 1 && !plan.is_chain();
    // Copy as many codes as this plan reads, if it has lookups to mark ahead. Under a later plan that reads farther
    // back nothing is marked ahead in this block.
    let reach = Some(plan.ahead()[0].max_offset()).filter(|&reach| reach > 0).unwrap_or(RECENT);
    let recent = codes.last(if may_mark { reach } else { 0 }, super::BLOCK);
    let worker = MarkWorker { codes, recent, kernel, plan, pieces: arriving, marked, spare: Vec::new(), next, limit };
    (Producer { pieces, rest: Rest { marked: marks, waiting } }, worker)
}

impl Producer {
    /// The planes of the piece from `start` on, if the worker has marked it under this plan; otherwise an empty list.
    /// Drops the marks of earlier pieces.
    pub(super) fn ahead(&mut self, plan: &Arc<LookupPlan>, start: u64) -> Vec<BitPlanes> {
        let Rest { marked, waiting } = &mut self.rest;
        waiting.extend(marked.try_iter());
        waiting.retain(|ahead| ahead.start >= start);
        let fits = |ahead: &MarkedAhead| ahead.start == start && Arc::ptr_eq(&ahead.plan, plan);
        waiting.iter().position(fits).and_then(|at| waiting.remove(at)).map_or_else(Vec::new, |ahead| ahead.planes)
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
        rayon::current_num_threads() > 1 && self.plan.has_ahead()
    }

    /// Takes the pieces that have arrived, and marks every piece that can be marked now. Returns false when no more
    /// pieces follow.
    pub(super) fn serve(&mut self) -> bool {
        let more = self.listen();
        self.mark(self.recent.end());
        more
    }

    /// Serves until all pieces have arrived, and returns the codes of the pieces behind the copy of the last codes.
    /// While pieces follow, this does not mark the next piece, because those marks would be too late. In the end it
    /// marks pieces of the next block.
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
            (self.plan, self.next) = (piece.plan, 0);
        }
    }

    /// Marks the pieces from position `first` on for which all codes that their lookups `ahead` read are known.
    fn mark(&mut self, first: u64) {
        if !self.marks() {
            return;
        }
        let end = self.recent.end();
        self.next = self.next.max(first.next_multiple_of(PIPELINE_PIECE as u64));
        while self.next + PIPELINE_PIECE as u64 <= self.limit.min(end + AHEAD as u64) {
            let start = self.next;
            self.next += PIPELINE_PIECE as u64;
            let lists = self.plan.ahead();
            let held =
                [(&self.recent, AHEAD), (self.codes, RECENT)].into_iter().zip(lists).all(|((codes, least), list)| {
                    let (reach, known_to) = (list.max_offset() as u64, self.next.saturating_sub(least as u64));
                    list.list().is_empty() || codes.hold(start, reach, known_to)
                });
            if !held || !self.plan.holds(start, self.next) {
                continue;
            }
            // Reuse memory: fresh memory for each piece would cost more time than the marks.
            let mut planes = self.spare.pop().unwrap_or_default();
            planes.resize_with(PIPELINE_PIECE / LANES, || BitPlanes::new(self.plan.codes()));
            for (first, planes) in (start..).step_by(LANES).zip(&mut planes) {
                planes.clear(self.plan.codes());
                for (codes, list) in [&self.recent, self.codes].into_iter().zip(lists) {
                    self.kernel.mark(codes.items(), codes.at(first), list, planes);
                }
            }
            let _ = self.marked.send(MarkedAhead { plan: Arc::clone(&self.plan), start, planes });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::kernel::{Probe, Probes};
    use crate::solver::candidates::Stream;
    use crate::solver::{Method, Solver, SparseSpace, values};
    use crate::support::Random;
    use crate::theory::rule::Rule;

    /// The producer uses marks that come back, and they equal the marks that it would make itself. Other plans, pieces
    /// already passed and pieces too far ahead get none. With one thread nothing is marked ahead.
    #[test]
    fn marks_made_ahead_equal_those_of_the_producer() {
        let rule: Rule = "grundy".parse().unwrap();
        let all = values(&rule, Method::Sparse(Kernel::best()), 400_000).unwrap();
        let (past, later) = all.split_at(360_448); // a multiple of PIPELINE_PIECE
        let space = SparseSpace::new(&rule, 0x1fe, 0).unwrap();
        let rares: Vec<(u64, u16)> = space.rare_positions(0, past).collect();
        for (threads, kernel) in
            [1, 2, 16].into_iter().flat_map(|t| Kernel::available().into_iter().map(move |k| (t, k)))
        {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut stream = Stream::new(&rule, space, kernel, rares.clone(), 255, past).unwrap();
                let mut codes = Codes::new(space, 0);
                codes.push(past);
                let begin = past.len() as u64;
                let limit = begin + 7 * PIPELINE_PIECE as u64 + 5;
                let none = || (stream.plan(), VecDeque::new());
                let (plan, waiting) = none();
                let (mut producer, worker) = pipeline(&codes, kernel, plan, limit, waiting);
                // The first piece makes the plan and carries it to the worker.
                let (found, _) = stream.block(PIPELINE_PIECE, &mut producer).unwrap();
                assert!(found == later[..PIPELINE_PIECE], "{kernel}");
                let rest = producer.close();
                let recent = worker.finish();
                codes.append(&recent).unwrap();
                let waiting = rest.into_waiting();
                let marked_pieces: Vec<u64> =
                    waiting.iter().map(|ahead| (ahead.start - begin) / PIPELINE_PIECE as u64).collect();
                assert_eq!(
                    marked_pieces,
                    if threads == 1 { vec![] } else { vec![1, 2, 3, 4] },
                    "{kernel}, {threads} threads"
                );
                let plan = stream.plan();
                for ahead in &waiting {
                    let from = codes.at(ahead.start);
                    // The producer marks a piece when all values before it are known; here the true values stand for
                    // them.
                    let mut known = Codes::new(space, 0);
                    known.push(&all);
                    for (group, planes) in ahead.planes.iter().enumerate() {
                        let mut own = BitPlanes::new(plan.codes());
                        for list in plan.ahead() {
                            kernel.mark(known.items(), from + group * LANES, list, &mut own);
                        }
                        assert!(*planes == own, "{kernel}: group {group} of the piece from {}", ahead.start);
                    }
                }
                let (mut producer, _worker) = pipeline(&codes, kernel, Arc::clone(&plan), limit, waiting);
                let other = Arc::new(LookupPlan::clone(&plan));
                assert!(producer.ahead(&plan, begin).is_empty());
                assert!(producer.ahead(&other, begin + PIPELINE_PIECE as u64).is_empty());
                let marked = producer.ahead(&plan, begin + 3 * PIPELINE_PIECE as u64);
                assert_eq!(marked.is_empty(), threads == 1);
                assert!(
                    producer.ahead(&plan, begin + 2 * PIPELINE_PIECE as u64).is_empty(),
                    "marks of a piece that was passed are dropped"
                );
            });
        }
    }

    /// Lookups with offsets just below and just above the length of the copy, among values without a code and rare
    /// positions.
    #[test]
    fn lookups_beyond_the_copy_are_marked_in_the_codes_before_the_block() {
        let random = &mut Random::new("far marks");
        let rule: Rule = "grundy".parse().unwrap();
        let space = SparseSpace::new(&rule, 0x1fe, 0).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        for kernel in Kernel::available() {
            let mut ahead = [Probes::new(), Probes::new()];
            for offset in [AHEAD, AHEAD + 1, RECENT - 1, RECENT, RECENT + 1, RECENT + 70_001] {
                ahead[usize::from(offset > RECENT)].push(Probe::new(offset, random.other_byte(0)));
            }
            let plan = Arc::new(LookupPlan::marking(ahead));
            let begin = 3 * RECENT + 2 * PIPELINE_PIECE;
            let all: Vec<u16> = (0..begin + PIPELINE_PIECE).map(|_| random.below(512) as u16).collect();
            let [mut codes, mut known] = [Codes::new(space, 0), Codes::new(space, 0)];
            codes.push(&all[..begin]);
            known.push(&all);
            known.push(&vec![0; AHEAD]);
            let (mut recent, waiting) = pool.install(|| {
                let (mut producer, worker) = pipeline(&codes, kernel, Arc::clone(&plan), u64::MAX, VecDeque::new());
                assert!(producer.send(&all[begin..], &plan, Vec::new()));
                let rest = producer.close();
                let recent = worker.finish();
                (recent, rest.into_waiting())
            });
            recent.items_mut()[random.below(RECENT as u64) as usize] ^= 1 << random.below(8);
            assert!(matches!(codes.append(&recent), Err(Error::Flipped { .. })));
            assert_eq!(recent.end(), all.len() as u64);
            assert_eq!(waiting.len(), 4, "{kernel}");
            for ahead in &waiting {
                for (group, planes) in ahead.planes.iter().enumerate() {
                    let mut own = BitPlanes::new(plan.codes());
                    let at = known.at(ahead.start) + group * LANES;
                    plan.ahead().iter().for_each(|list| kernel.mark(known.items(), at, list, &mut own));
                    assert!(*planes == own, "{kernel}: group {group} of the piece from {}", ahead.start);
                }
            }
        }
    }

    /// The solver discards the candidates behind a new rare position, so the producer stops as soon as it can.
    #[test]
    fn the_producer_stops_when_the_worker_is_gone() {
        for (game, largest) in [("grundy", 255), ("grundy", 60_000)] {
            let rule: Rule = game.parse().unwrap();
            let past = values(&rule, Method::Sparse(Kernel::best()), 200_000).unwrap();
            let space = SparseSpace::new(&rule, 0x1fe, 0).unwrap();
            let rares = space.rare_positions(0, &past).collect();
            // A large maximum among the earlier values makes the stream use 16-bit values.
            let mut stream = Stream::new(&rule, space, Kernel::best(), rares, largest, past.as_slice()).unwrap();
            let mut codes = Codes::new(space, 0);
            codes.push(&past);
            let (mut producer, worker) = pipeline(&codes, Kernel::best(), stream.plan(), u64::MAX, VecDeque::new());
            drop(worker);
            let (found, _) = stream.block(1 << 17, &mut producer).unwrap();
            assert!(found.len() <= PIPELINE_PIECE, "{} candidates that no worker takes", found.len());
        }
    }

    /// A producer that fails or panics closes the pipeline, so a worker that waits for the next piece returns.
    #[test]
    fn the_worker_does_not_wait_for_a_producer_that_is_gone() {
        let rule: Rule = "grundy".parse().unwrap();
        let past = values(&rule, Method::Sparse(Kernel::best()), 100_000).unwrap();
        let solver = Solver::new(&rule, Method::Sparse(Kernel::best()), None, past.as_slice()).unwrap();
        let space = solver.space();
        let rares = space.rare_positions(0, &past).collect();
        let stream = Stream::new(&rule, space, Kernel::best(), rares, 255, past.as_slice()).unwrap();
        let mut codes = Codes::new(space, 0);
        codes.push(&past);
        let (mut producer, worker) = pipeline(&codes, Kernel::best(), stream.plan(), u64::MAX, VecDeque::new());
        assert!(producer.send(&[1, 2, 3], &stream.plan(), Vec::new()));
        let waiter = std::thread::scope(|scope| {
            scope.spawn(|| {
                let producer = producer;
                std::thread::sleep(std::time::Duration::from_millis(20));
                drop(producer);
            });
            scope.spawn(|| worker.finish()).join()
        });
        assert_eq!(waiter.unwrap().end(), 100_003);
    }
}

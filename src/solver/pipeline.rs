//! The relay between the streams: candidates come over piece by piece, and what was marked for later pieces goes back.
//!
//! Candidates are a serial chain, so the thread that runs them ([`Producer`]) is to do nothing that others could. Lookups
//! that reach back [`AHEAD`] can be marked for a piece while the three pieces before it are not there yet; the other end
//! ([`MarkWorker`]) does so whenever a piece has come over, and both meet only at the end of a block. (Meeting after every 4096
//! heaps instead takes 3 % longer for Grundy's game and 10 % for .6, with two threads.) Marks that come too late are made
//! by the producer itself, so one thread does all of it one after the other.
//!
//! Of two threads the one that searches witnesses is the worker as well, and looks now and then what has come over. Of more
//! than two, one is the worker and nothing else (but for blocks that begin without a plan), and the witnesses are left to the
//! others: a look now and then came too late for most marks, and all threads met for each.
//!
//! What comes over is nobody else's until the block ends: the worker keeps a copy of the last codes, as many as the plan looks
//! back at and [`RECENT`] at most, and appends to it, so all threads may read the codes before.
//!
//! A producer never waits: not for marks, and not for anything that other threads do (so it calls no part of rayon). So the
//! thread that has begun it ends it, and the worker, which waits for the producer, comes to an end. When the worker is gone the
//! producer is told so, and stops.
//!
//! The worker makes the codes of what comes over anew, from values. So they are there twice, made on different ways, and can
//! be compared.

use super::candidates::LookupPlan;
use super::codes::Codes;
use crate::kernel::{BitPlanes, Kernel, LANES};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

/// Heaps that come over at once; pieces end on multiples of it. (Of the lookups of Grundy's game 453 reach back 8192 or
/// more and 720 reach 4096: with two threads pieces of 2048 took 6 % longer. With 512 it was no faster.)
pub(super) const PIPELINE_PIECE: usize = 1024;

/// The same where nothing is marked ahead: .106 took a tenth longer with short ones, and no less with longer ones.
pub(super) const LONG_PIECE: usize = 2 * PIPELINE_PIECE;

/// What reaches back so far is marked ahead of time.
pub(super) const AHEAD: usize = 4 * PIPELINE_PIECE;

/// What reaches back farther than this is marked ahead in the codes that were there when the block began; all else in a copy
/// of so many, to which is appended what comes over.
pub(super) const RECENT: usize = 1 << 18;

// What lookups beyond it ask for must be there, wherever in a block, and ahead of it, they are asked for.
const _: () = assert!(super::BLOCK + AHEAD <= RECENT);

/// Candidates, the plan they were made with, and planes that are no longer needed.
struct Piece {
    values: Vec<u16>,
    plan: Arc<LookupPlan>,
    used: Vec<BitPlanes>,
}

/// BitPlanes of a piece in which the lookups `ahead` of a plan are entered.
pub(super) struct MarkedAhead {
    plan: Arc<LookupPlan>,
    start: u64,
    planes: Vec<BitPlanes>,
}

/// The end that has the candidates.
pub(super) struct Producer {
    pieces: Sender<Piece>,
    rest: Rest,
}

/// What is marked and not used yet, in ascending order, perhaps with gaps.
pub(super) struct Rest {
    marked: Receiver<MarkedAhead>,
    waiting: VecDeque<MarkedAhead>,
}

/// The end that has the codes.
pub(super) struct MarkWorker<'a> {
    /// The codes before the block.
    codes: &'a Codes,
    /// The last of them, and those that have come over.
    recent: Codes,
    kernel: Kernel,
    plan: Arc<LookupPlan>,
    pieces: Receiver<Piece>,
    marked: Sender<MarkedAhead>,
    spare: Vec<Vec<BitPlanes>>,
    /// Pieces before this heap are marked, or never will be.
    next: u64,
    limit: u64,
}

/// A relay for the heaps from the end of `codes` up to `limit`, given what was marked before.
pub(super) fn pipeline(
    codes: &Codes,
    kernel: Kernel,
    plan: Arc<LookupPlan>,
    limit: u64,
    waiting: VecDeque<MarkedAhead>,
) -> (Producer, MarkWorker<'_>) {
    let ((pieces, coming), (marked, made)) = (channel(), channel());
    let next = waiting.back().map_or(0, |ahead| ahead.start + PIPELINE_PIECE as u64);
    let may_mark = rayon::current_num_threads() > 1 && !plan.is_chain();
    // As many as this plan looks back at, when it is one; by another that looks farther nothing is marked in this block.
    let reach = Some(plan.ahead()[0].high_water_mark()).filter(|&reach| reach > 0).unwrap_or(RECENT);
    let recent = codes.last(if may_mark { reach } else { 0 }, super::BLOCK);
    let worker = MarkWorker { codes, recent, kernel, plan, pieces: coming, marked, spare: Vec::new(), next, limit };
    (Producer { pieces, rest: Rest { marked: made, waiting } }, worker)
}

impl Producer {
    /// The planes of the piece from `start` on, when the lookups of this plan are already entered in them.
    pub(super) fn ahead(&mut self, plan: &Arc<LookupPlan>, start: u64) -> Vec<BitPlanes> {
        let Rest { marked, waiting } = &mut self.rest;
        waiting.extend(marked.try_iter());
        waiting.retain(|ahead| ahead.start >= start);
        let fits = |ahead: &MarkedAhead| ahead.start == start && Arc::ptr_eq(&ahead.plan, plan);
        waiting.iter().position(fits).and_then(|at| waiting.remove(at)).map_or_else(Vec::new, |ahead| ahead.planes)
    }

    /// Sends candidates over, and the planes that were used for them; false when nobody asks for more, since the other end
    /// is gone.
    pub(super) fn send(&mut self, values: &[u16], plan: &Arc<LookupPlan>, used: Vec<BitPlanes>) -> bool {
        self.pieces.send(Piece { values: values.to_vec(), plan: Arc::clone(plan), used }).is_ok()
    }

    /// Tells the other end that this was all.
    pub(super) fn close(self) -> Rest {
        self.rest
    }
}

impl Rest {
    /// What the next block may use, once the other end is done.
    pub(super) fn into_waiting(mut self) -> VecDeque<MarkedAhead> {
        self.waiting.extend(self.marked.try_iter());
        self.waiting
    }
}

impl MarkWorker<'_> {
    /// Whether somebody waits for what is marked ahead.
    pub(super) fn marks(&self) -> bool {
        rayon::current_num_threads() > 1 && self.plan.has_ahead()
    }

    /// Takes what has come over, and marks what can be marked now; false when that was all.
    pub(super) fn serve(&mut self) -> bool {
        let more = self.listen();
        self.mark(self.recent.end());
        more
    }

    /// Serves until all has come over, of which it gives the codes, with some before. Marks for the piece that comes next
    /// would be too late, until it is one of the next block.
    pub(super) fn finish(mut self) -> Codes {
        while self.listen() {
            self.mark(self.recent.end() + PIPELINE_PIECE as u64);
            let Ok(piece) = self.pieces.recv() else { break };
            self.take(piece);
        }
        self.mark(self.recent.end());
        self.recent
    }

    /// Takes what has come over; false when that was all.
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

    /// Marks the pieces from heap `first` on for which all is there that their far lookups ask for.
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
                    let (reach, known_to) = (list.high_water_mark() as u64, self.next.saturating_sub(least as u64));
                    list.list().is_empty() || codes.hold(start, reach, known_to)
                });
            if !held || !self.plan.holds(start, self.next) {
                continue;
            }
            // Fresh memory for each piece would cost more than what is done in it.
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

    /// Marks that come back are used, and are those that the producer would have made; other plans, places and ends too far
    /// out get none. With one thread nothing is marked.
    #[test]
    fn what_is_marked_ahead_is_what_the_front_would_mark() {
        let rule: Rule = "grundy".parse().unwrap();
        let all = values(&rule, Method::Sparse(Kernel::best()), 400_000).unwrap();
        let (past, later) = all.split_at(360_448); // a multiple of PIPELINE_PIECE
        let space = SparseSpace::new(&rule, 0x1fe, 0).unwrap();
        let rares: Vec<(u64, u16)> = space.rares(0, past).collect();
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
                // One piece to make the plan, which goes over with it.
                let (found, _) = stream.block(PIPELINE_PIECE, &mut producer).unwrap();
                assert!(found == later[..PIPELINE_PIECE], "{kernel}");
                let rest = producer.close();
                let recent = worker.finish();
                codes.append(&recent).unwrap();
                let waiting = rest.into_waiting();
                let places: Vec<u64> =
                    waiting.iter().map(|ahead| (ahead.start - begin) / PIPELINE_PIECE as u64).collect();
                assert_eq!(places, if threads == 1 { vec![] } else { vec![1, 2, 3, 4] }, "{kernel}, {threads} threads");
                let plan = stream.plan();
                for ahead in &waiting {
                    let from = codes.at(ahead.start);
                    // What the producer makes itself has all values there; here they come from the true ones.
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
                let (mut producer, _back) = pipeline(&codes, kernel, Arc::clone(&plan), limit, waiting);
                let other = Arc::new(LookupPlan::clone(&plan));
                assert!(producer.ahead(&plan, begin).is_empty());
                assert!(producer.ahead(&other, begin + PIPELINE_PIECE as u64).is_empty());
                let marked = producer.ahead(&plan, begin + 3 * PIPELINE_PIECE as u64);
                assert_eq!(marked.is_empty(), threads == 1);
                assert!(
                    producer.ahead(&plan, begin + 2 * PIPELINE_PIECE as u64).is_empty(),
                    "what was passed over is gone"
                );
            });
        }
    }

    /// Lookups just nearer and just farther than what is copied, with values that have no code and rare heaps about.
    #[test]
    fn what_reaches_back_beyond_the_copy_is_marked_where_it_stands() {
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

    /// What a producer does behind a new rare heap is thrown away, so it stops as soon as it can.
    #[test]
    fn a_front_stops_when_nobody_asks_for_more() {
        for (game, largest) in [("grundy", 255), ("grundy", 60_000)] {
            let rule: Rule = game.parse().unwrap();
            let past = values(&rule, Method::Sparse(Kernel::best()), 200_000).unwrap();
            let space = SparseSpace::new(&rule, 0x1fe, 0).unwrap();
            let rares = space.rares(0, &past).collect();
            // A large value among those before sends the stream the wide way.
            let mut stream = Stream::new(&rule, space, Kernel::best(), rares, largest, past.as_slice()).unwrap();
            let mut codes = Codes::new(space, 0);
            codes.push(&past);
            let (mut producer, worker) = pipeline(&codes, Kernel::best(), stream.plan(), u64::MAX, VecDeque::new());
            drop(worker);
            let (found, _) = stream.block(1 << 17, &mut producer).unwrap();
            assert!(found.len() <= PIPELINE_PIECE, "{} candidates that nobody asks for", found.len());
        }
    }

    /// A producer that fails, or panics, ends the relay: who waits for the next piece is told that there is none.
    #[test]
    fn nobody_waits_for_a_front_that_is_gone() {
        let rule: Rule = "grundy".parse().unwrap();
        let past = values(&rule, Method::Sparse(Kernel::best()), 100_000).unwrap();
        let solver = Solver::new(&rule, Method::Sparse(Kernel::best()), None, past.as_slice()).unwrap();
        let space = solver.space();
        let rares = space.rares(0, &past).collect();
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

use super::*;
use crate::error::Error;
use crate::kernel::Probe;
use crate::solver::candidates::CandidateStream;
use crate::solver::{Method, SequenceStats, Solver, SparseSpace, values};
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
    let rare_positions: Vec<(u64, u16)> = space.rare_positions(0, past).collect();
    for (threads, kernel) in [1, 2, 16].into_iter().flat_map(|t| Kernel::available().into_iter().map(move |k| (t, k))) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut stream = CandidateStream::new(
                &rule,
                space,
                kernel,
                SequenceStats { rare_positions: rare_positions.clone(), max_value: 255, ..SequenceStats::default() },
                past,
            )
            .unwrap();
            let mut codes = Codes::new(space, 0);
            codes.push(past);
            let begin = past.len() as u64;
            let limits = BlockLimits::up_to(begin + 7 * PIPELINE_PIECE as u64 + 5);
            let none = || (stream.plan(), VecDeque::new());
            let (plan, waiting) = none();
            let (mut producer, worker) = pipeline(&codes, kernel, plan, limits, waiting);
            // The first piece makes the plan and carries it to the worker.
            let (found, _) = stream.block(PIPELINE_PIECE, &mut producer);
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
                    let mut own = BitPlanes::new(plan.codes);
                    for list in plan.ahead() {
                        kernel.mark(known.items(), from + group * LANES, list, &mut own);
                    }
                    assert!(*planes == own, "{kernel}: group {group} of the piece from {}", ahead.start);
                }
            }
            let (mut producer, _worker) = pipeline(&codes, kernel, Arc::clone(&plan), limits, waiting);
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
        let [mut recent, mut old] = [Probes::new(), Probes::new()];
        for offset in [AHEAD, AHEAD + 1, RECENT - 1, RECENT, RECENT + 1, RECENT + 70_001] {
            let list = if offset > RECENT { &mut old } else { &mut recent };
            list.push(Probe::new(offset, random.other_byte(0)));
        }
        let plan = Arc::new(LookupPlan::marking(recent, old));
        let begin = 3 * RECENT + 2 * PIPELINE_PIECE;
        let all: Vec<u16> = (0..begin + PIPELINE_PIECE).map(|_| random.below(512) as u16).collect();
        let [mut codes, mut known] = [Codes::new(space, 0), Codes::new(space, 0)];
        codes.push(&all[..begin]);
        known.push(&all);
        known.push(&vec![0; AHEAD]);
        let (mut recent, waiting) = pool.install(|| {
            let (mut producer, worker) =
                pipeline(&codes, kernel, Arc::clone(&plan), BlockLimits::up_to(u64::MAX), VecDeque::new());
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
                let mut own = BitPlanes::new(plan.codes);
                let at = known.at(ahead.start) + group * LANES;
                plan.ahead().iter().for_each(|list| kernel.mark(known.items(), at, list, &mut own));
                assert!(*planes == own, "{kernel}: group {group} of the piece from {}", ahead.start);
            }
        }
    }
}

/// The candidates of the n after these values, and their codes.
fn stream_after(rule: &Rule, space: SparseSpace, past: &[u16]) -> (CandidateStream, Codes) {
    let rare_positions = space.rare_positions(0, past).collect();
    let stats = SequenceStats { rare_positions, ..SequenceStats::default() };
    let stream = CandidateStream::new(rule, space, Kernel::best(), stats, past).unwrap();
    let mut codes = Codes::new(space, 0);
    codes.push(past);
    (stream, codes)
}

/// The solver discards the candidates after a new rare position, so the producer stops as soon as it can.
#[test]
fn the_producer_stops_when_the_worker_is_gone() {
    let rule: Rule = "grundy".parse().unwrap();
    let past = values(&rule, Method::Sparse(Kernel::best()), 200_000).unwrap();
    let space = SparseSpace::new(&rule, 0x1fe, 0).unwrap();
    let (mut stream, codes) = stream_after(&rule, space, &past);
    let (mut producer, worker) =
        pipeline(&codes, Kernel::best(), stream.plan(), BlockLimits::up_to(u64::MAX), VecDeque::new());
    drop(worker);
    let (found, _) = stream.block(1 << 17, &mut producer);
    assert!(found.len() <= PIPELINE_PIECE, "{} candidates that no worker takes", found.len());
}

/// A producer that fails or panics closes the pipeline, so a worker that waits for the next piece returns.
#[test]
fn the_worker_does_not_wait_for_a_producer_that_is_gone() {
    let rule: Rule = "grundy".parse().unwrap();
    let past = values(&rule, Method::Sparse(Kernel::best()), 100_000).unwrap();
    let solver = Solver::new(&rule, Method::Sparse(Kernel::best()), None, past.as_slice()).unwrap();
    let space = solver.space();
    let (stream, codes) = stream_after(&rule, space, &past);
    let (mut producer, worker) =
        pipeline(&codes, Kernel::best(), stream.plan(), BlockLimits::up_to(u64::MAX), VecDeque::new());
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

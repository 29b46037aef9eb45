use super::*;
use crate::error::Error;
use crate::kernel::Probe;
use crate::solver::candidates::{CandidateStream, Stop};
use crate::solver::lookups::far_lanes::{FarLanes, unhit_codes};
use crate::solver::lookups::plan::{LEAST_FAR, LEAST_MIDDLE, RECENT};
use crate::solver::parallelism::Threads;
use crate::solver::{Method, SequenceStats, SparseSpace, values};
use crate::support::Random;
use crate::theory::rule::Rule;

/// The least offset of a far lookup of Grundy's game with four threads.
const AHEAD: usize = LEAST_FAR[3];

/// Number of values that a test computes at once.
const PUBLISHED: usize = AHEAD / 4;

/// Number of slots that can be evaluated when all values before the first of them are known.
const LEAD: usize = AHEAD / LANES;

fn grundy() -> (Rule, SparseSpace) {
    let rule: Rule = "grundy".parse().unwrap();
    let space = SparseSpace::new(&rule, 0x1fe, 0).unwrap();
    (rule, space)
}

/// A stream of Grundy's game after these values, and their codes.
fn stream_after(kernel: Kernel, past: &[u16]) -> (CandidateStream, Codes) {
    let (rule, space) = grundy();
    let rare_positions = space.rare_positions(0, past).collect();
    let stats = SequenceStats { rare_positions, max_value: 255, ..SequenceStats::default() };
    let mut stream = CandidateStream::new(&rule, space, kernel, stats, &past).unwrap();
    stream.use_threads(four_threads());
    stream.learn_when_due();
    (stream, codes_of(space, past))
}

fn codes_of(space: SparseSpace, values: &[u16]) -> Codes {
    let mut codes = Codes::new(space, 0);
    codes.push(values);
    codes
}

fn four_threads() -> Threads {
    rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap().install(Threads::of_pool)
}

/// Number of lanes that can be revised when all values before some lanes are known: those between them and the first
/// lanes whose middle lookups read values that are not known.
const REVISED: usize = LEAST_MIDDLE / LANES - 1;

/// Revises and evaluates with a follower until nothing is left to do; returns the number of slots of each.
fn follow(pipeline: &Pipeline<'_>, follower: &mut Follower) -> [usize; 2] {
    let [mut revised, mut evaluated] = [0; 2];
    loop {
        if pipeline.revise(follower) {
            revised += 1;
        } else if pipeline.evaluate_far(follower) {
            evaluated += 1;
        } else {
            return [revised, evaluated];
        }
    }
}

/// Followers evaluate and revise exactly the lanes whose far and middle lookups read known values, as the producer
/// itself would, and the producer takes them.
#[test]
fn lanes_of_other_threads_equal_those_of_the_producer() {
    let (rule, _) = grundy();
    let all = values(&rule, Method::Sparse(Kernel::best()), 400_000).unwrap();
    let begin = 360_448; // a multiple of PUBLISHED
    for kernel in Kernel::available() {
        let (mut stream, codes) = stream_after(kernel, &all[..begin]);
        let end = begin + 4 * PUBLISHED;
        let memory = BlockValues::default();
        let pipeline = Pipeline::new(&codes, &memory, kernel, end as u64 + AHEAD as u64);
        // The first piece makes the plan, and nobody has evaluated lanes before.
        let (found, stop) = stream.block(PUBLISHED, &pipeline);
        assert!(found == all[begin..][..PUBLISHED] && stop == Stop::Done, "{kernel}");
        let plan = Arc::clone(lock(&pipeline.plan).as_ref().unwrap());
        assert!(plan.shares_far());
        let mut follower = Follower::default();
        assert_eq!(follow(&pipeline, &mut follower), [REVISED, LEAD]);
        // Here the true values stand for those that the producer knows by then.
        let known = codes_of(grundy().1, &all);
        let mut own = FarLanes::default();
        let first = PUBLISHED / LANES;
        for slot in first..first + LEAD {
            let lanes = pipeline.slots.item(slot);
            let lanes = lanes.as_ref().unwrap();
            let read = LaneCodes::of(known.items(), known.at(pipeline.slots.position(slot)));
            own.evaluate(&plan, kernel, read, &mut BitPlanes::default());
            if (first + 1..=first + REVISED).contains(&slot) {
                assert!(lanes.lanes != own.lanes, "{kernel}, {slot}: middle lookups hit some candidates");
                own.revise(kernel, read);
            }
            assert!(lanes.is_of(&plan) && lanes.lanes == own.lanes && lanes.lost == own.lost, "{kernel}, {slot}");
        }
        let (found, _) = stream.block(3 * PUBLISHED, &pipeline);
        assert!(found == all[begin + PUBLISHED..end], "{kernel}");
        let taken = |slot: usize| pipeline.slots.item(slot).is_none();
        assert!((0..4 * PUBLISHED / LANES).all(taken), "{kernel}");
        // Three times as many values more are known now.
        assert_eq!(follow(&pipeline, &mut follower), [REVISED, 3 * PUBLISHED / LANES]);
        follower.agrees_with(&known).unwrap();
    }
}

/// Lookups with offsets just below and just above the length of the copy, among values without a code and rare
/// positions, for every least offset of far lookups.
#[test]
fn lookups_beyond_the_copy_read_the_codes_before_the_block() {
    let random = &mut Random::new("far lookups");
    for kernel in Kernel::available() {
        for &least_far in &LEAST_FAR[1..] {
            check_lookups_beyond_the_copy(kernel, least_far, random);
        }
    }
}

fn check_lookups_beyond_the_copy(kernel: Kernel, least_far: usize, random: &mut Random) {
    // The first eight are far lookups. The others are middle lookups, as far as they are not far ones.
    let offsets = [
        least_far,
        RECENT - 1,
        RECENT + 1,
        RECENT + 70_001,
        least_far + 1,
        RECENT,
        RECENT + 2,
        RECENT + 70_002,
        256,
        511,
        1023,
    ];
    let space = grundy().1;
    let lookups = offsets.map(|offset| Probe::new(offset, random.other_byte(0)));
    let plan = Arc::new(LookupPlan::of_lookups(least_far, &lookups));
    let begin = 3 * RECENT;
    let all: Vec<u16> = (0..begin + PUBLISHED + least_far).map(|_| random.below(512) as u16).collect();
    let (codes, known) = (codes_of(space, &all[..begin]), codes_of(space, &all));
    let memory = BlockValues::default();
    let pipeline = Pipeline::new(&codes, &memory, kernel, u64::MAX);
    pipeline.plan(&plan);
    assert!(pipeline.publish(&all[begin..][..PUBLISHED], &mut Vec::new()));
    let mut follower = Follower::default();
    let lead = least_far / LANES;
    let revised = if least_far > LEAST_MIDDLE { REVISED } else { 0 };
    assert_eq!(follow(&pipeline, &mut follower), [revised, lead], "{kernel}, {least_far}");
    let first = PUBLISHED / LANES; // the producer has passed the slots before
    for slot in first..first + lead {
        let n = pipeline.slots.position(slot);
        let mut own = FarLanes::default();
        let read = LaneCodes::of(known.items(), known.at(n));
        own.evaluate(&plan, kernel, read, &mut BitPlanes::default());
        if (first + 1..=first + revised).contains(&slot) {
            own.revise(kernel, read);
        }
        let lanes = pipeline.slots.item(slot).take().unwrap();
        assert!(lanes.lanes == own.lanes && lanes.lost == own.lost, "{kernel}, {least_far}, {n}");
    }
    follower.agrees_with(&known).unwrap();
    let copy = follower.codes.as_mut().unwrap();
    let place = random.below(copy.items().len() as u64 - LANES as u64) as usize;
    copy.items_mut()[place] ^= 1 << random.below(8);
    assert!(matches!(follower.agrees_with(&known), Err(Error::Flipped { .. })));
}

/// Lanes lose all codes considered to lookups of every kind, in a block that begins within 64 positions. The expected
/// candidates come from plain comparisons.
#[test]
fn lanes_are_completed_from_the_codes_of_both_copies() {
    let random = &mut Random::new("completed lanes");
    let space = grundy().1;
    let common = |n: u64, value: u16| if space.is_rare(value, n) { value ^ 2 } else { value };
    for kernel in Kernel::available() {
        let mut lookup = |first: usize, until: usize| {
            Probe::new(first + index(random.below((until - first) as u64)), random.below(64).to_le_bytes()[0])
        };
        let reach = AHEAD + 10_000;
        let far = (0..80).flat_map(|_| [lookup(AHEAD, reach), lookup(RECENT + 1, 2 * RECENT)]).collect::<Vec<_>>();
        let middle = (0..60).map(|_| lookup(LEAST_MIDDLE, AHEAD));
        let mut plan = LookupPlan::of_lookups(AHEAD, &far.into_iter().chain(middle).collect::<Vec<_>>());
        (plan.codes, plan.keep_late) = (16, 4);
        let plan = Arc::new(plan);
        let begin = 3 * RECENT - 27;
        let end = 3 * RECENT + PUBLISHED;
        let all: Vec<u16> = (0..end as u64 + AHEAD as u64).map(|n| common(n, random.below(128) as u16)).collect();
        let (codes, known) = (codes_of(space, &all[..begin]), codes_of(space, &all));
        let memory = BlockValues::default();
        let pipeline = Pipeline::new(&codes, &memory, kernel, u64::MAX);
        pipeline.plan(&plan);
        assert!(pipeline.publish(&all[begin..3 * RECENT], &mut Vec::new()));
        assert!(pipeline.publish(&all[3 * RECENT..end], &mut Vec::new()));
        let mut follower = Follower::default();
        while pipeline.evaluate_far(&mut follower) {}
        // A copy that is too short for the plan revises nothing.
        let mut short = Follower { codes: Some(codes.last(AHEAD, BLOCK)), ..Follower::default() };
        assert!(pipeline.revise(&mut short));
        assert_eq!(follow(&pipeline, &mut follower), [REVISED - 1, 0]);
        let first = PUBLISHED / LANES; // the producer has passed the slots before
        let [mut completed, mut completed_later] = [0; 2];
        for slot in first..first + LEAD {
            let n = pipeline.slots.position(slot);
            let lanes = pipeline.slots.item(slot).take().unwrap();
            let is_revised = (first + 2..=first + REVISED).contains(&slot);
            let mut own = FarLanes::default();
            let read = LaneCodes::of(known.items(), known.at(n));
            own.evaluate(&plan, kernel, read, &mut BitPlanes::default());
            let evaluated = own.clone();
            if is_revised {
                own.revise(kernel, read);
            }
            completed += evaluated.count_completed();
            completed_later += own.count_completed() - evaluated.count_completed();
            assert!(lanes.lanes == own.lanes && lanes.lost == own.lost, "{kernel}, {n}");
            for lane in 0..LANES {
                let lists = plan.far().chain(Some(&plan.middle).filter(|_| is_revised));
                let expected = unhit_codes(known.items(), known.at(n + lane as u64), lists);
                let [first, all] = lanes.unmarked_candidates(lane);
                assert_eq!(first, expected[..first.len()], "{kernel}, {n}, lane {lane}");
                // A lane completed before it was revised may have lost all its candidates again.
                assert!(evaluated.is_completed(lane) || !all.is_empty(), "{kernel}, {n}, lane {lane}");
            }
        }
        assert!(completed > 20 && completed_later > 5, "{kernel}: {completed} lanes and {completed_later} later");
    }
}

/// The producer does not wait for lanes that nobody has claimed, or whose thread failed. Lanes of another plan say so.
#[test]
fn lanes_that_were_not_delivered_are_not_awaited() {
    let space = grundy().1;
    let codes = codes_of(space, &vec![1; 2 * AHEAD]);
    let memory = BlockValues::default();
    let pipeline = Pipeline::new(&codes, &memory, Kernel::best(), u64::MAX);
    let window = Window::new(0, vec![0; 4 * AHEAD]);
    let [plan, other] = [1, 2].map(|code| Arc::new(LookupPlan::of_lookups(AHEAD, &[Probe::new(AHEAD, code)])));
    let take = |n, plan: &Arc<LookupPlan>| pipeline.take(n, plan, &window, &mut BitPlanes::default());
    assert!(take(codes.end(), &plan).is_none(), "nobody has claimed the first lanes");
    pipeline.plan(&plan);
    drop(pipeline.claim(&plan).unwrap());
    assert!(take(codes.end() + LANES as u64, &plan).is_none(), "a thread failed");
    assert!(pipeline.evaluate(&mut Follower::default()));
    let lanes = take(codes.end() + 2 * LANES as u64, &other).unwrap();
    assert!(!lanes.is_of(&other), "the plan has changed");
    assert!(pipeline.evaluate(&mut Follower::default()));
    assert!(take(codes.end() + 3 * LANES as u64, &plan).is_some());
}

/// While another thread evaluates the lanes that the producer needs, the producer evaluates others.
#[test]
fn the_producer_works_while_it_waits() {
    let codes = codes_of(grundy().1, &vec![1; 2 * AHEAD]);
    let memory = BlockValues::default();
    let pipeline = Pipeline::new(&codes, &memory, Kernel::best(), u64::MAX);
    let window = Window::new(0, vec![0; 4 * AHEAD]);
    let plan = Arc::new(LookupPlan::of_lookups(AHEAD, &[Probe::new(AHEAD, 1)]));
    pipeline.plan(&plan);
    let claim = pipeline.claim(&plan).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !pipeline.slots.is_ready(LEAD - 1) {
                std::thread::yield_now();
            }
            drop(claim);
        });
        assert!(pipeline.take(codes.end(), &plan, &window, &mut BitPlanes::default()).is_none());
    });
    assert!((0..LEAD).all(|slot| pipeline.slots.is_ready(slot)));
}

/// The solver discards the candidates after a new rare position, so the producer stops as soon as it can, and the other
/// threads return.
#[test]
fn all_threads_stop_when_the_pipeline_is_closed() {
    let (rule, _) = grundy();
    let past = values(&rule, Method::Sparse(Kernel::best()), 200_000).unwrap();
    let (mut stream, codes) = stream_after(Kernel::best(), &past);
    let memory = BlockValues::default();
    let pipeline = Pipeline::new(&codes, &memory, Kernel::best(), u64::MAX);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| while pipeline.wait(pipeline.changes()) {});
        std::thread::sleep(std::time::Duration::from_millis(20));
        pipeline.close();
        waiting.join().unwrap();
    });
    let (found, _) = stream.block(1 << 17, &pipeline);
    assert!(found.len() <= LANES, "{} candidates that nobody wants", found.len());
    assert!(!pipeline.evaluate(&mut Follower::default()));
}

/// Values written in pieces of any length, from any index on, are read in pieces of any length.
#[test]
fn values_in_words_are_read_as_they_were_written() {
    let random = &mut Random::new("values in words");
    let memory = BlockValues::default();
    for _ in 0..20 {
        let first = random.below(LANES as u64) as usize;
        let all: Vec<u16> = (0..2000).map(|_| random.below(1 << 16) as u16).collect();
        let (mut written, mut read, mut found) = (0, 0, Vec::new());
        while read < all.len() {
            let count = (random.below(100) as usize).min(all.len() - written);
            memory.write(first + written, &all[written..written + count]);
            written += count;
            if random.below(3) == 0 {
                found.extend_from_slice(memory.read(first + read..first + written, &mut Vec::new()));
                read = written;
            }
        }
        assert!(found == all, "from index {first} on");
    }
    let last = BLOCK + LANES - 1;
    memory.write(last, &[7]);
    assert_eq!(memory.read(last..last + 1, &mut Vec::new()), [7]);
}

/// Otherwise no claim would wake a thread that sleeps.
#[test]
fn enough_lanes_can_be_ready_to_wake_a_thread() {
    for &least_far in &LEAST_FAR[1..] {
        // The producer computes the first lanes, and a thread has claimed the second ones.
        let ready = (2..).take_while(|slot| (slot + 1) * SLOT <= least_far).count();
        assert!((1..=ready).contains(&wake_at(least_far)), "{ready} slots from {least_far} on");
    }
}

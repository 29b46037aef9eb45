//! The contracts of `jobs.rs`, tested on random data for every kernel of this processor. Each test restates a contract
//! in plain loops.

use super::probes::FarProbes;
use super::*;
use crate::support::Random;
use std::collections::HashSet;
use std::ops::Range;

const LENGTHS: [usize; 10] = [0, 1, 2, 7, 8, 9, 63, 64, 65, 300];
const SPREADS: [usize; 6] = [1, 3, 60, 128, 170, 256];

/// Draws indices, bytes and probes.
trait Draw {
    /// A number below `bound`.
    fn index(&mut self, bound: usize) -> usize;

    /// Bytes below `bound`, which is at most 256.
    fn bytes(&mut self, count: usize, bound: usize) -> Vec<u8>;

    /// Probes with these offsets, and codes below `spread`.
    fn probes(&mut self, count: usize, offsets: Range<usize>, spread: usize) -> Probes;
}

impl Draw for Random {
    fn index(&mut self, bound: usize) -> usize {
        self.below(bound as u64) as usize
    }

    fn bytes(&mut self, count: usize, bound: usize) -> Vec<u8> {
        (0..count).map(|_| self.index(bound) as u8).collect()
    }

    fn probes(&mut self, count: usize, offsets: Range<usize>, spread: usize) -> Probes {
        (0..count)
            .map(|_| {
                let offset = offsets.start + self.index(offsets.len());
                Probe::new(offset, self.index(spread) as u8)
            })
            .collect()
    }
}

/// Whether a probe hits the code in a lane.
fn hits(far: FarProbes<'_>, lane: usize, code: u8) -> bool {
    far.list().iter().any(|p| far.window[far.at + lane - p.offset] ^ p.code() == code)
}

/// The arguments of `mark`, `refine`, `open` and `clear_hits`.
struct FarCase {
    window: Vec<u8>,
    at: usize,
    /// Number of codes considered.
    codes: usize,
    /// The probes to mark, in two lists.
    mark: [Probes; 2],
    stages: Vec<Stage>,
    /// The bounds of `open`.
    below: [u8; LANES],
}

impl FarCase {
    fn new(seed: u64) -> FarCase {
        let random = &mut Random::seeded(seed);
        // Number of lanes whose values the window holds already.
        let known = random.index(LANES + 1);
        // A far probe needs LANES codes from some index up to `at` on.
        let most = [1, LANES, 3000][random.index(3)];
        let at = LANES - known + random.index(most);
        let spread = SPREADS[random.index(6)];
        let window = random.bytes(at + known, spread);
        let mut list = || {
            let count = LENGTHS[random.index(10)];
            random.probes(count, LANES - known..at + 1, spread)
        };
        let mark = [list(), list()];
        let mut stages: Vec<Stage> = KEEP.map(|keep| Stage { keep, check: list() }).into();
        stages.retain(|_| random.index(2) == 0);
        if stages.is_empty() {
            stages.push(Stage { keep: KEEP[seed as usize % KEEP.len()], check: Probes::new() });
        }
        let codes = CODES[seed as usize % CODES.len()];
        let below =
            std::array::from_fn(|_| [random.index(codes + 3) as u8, u8::MAX][usize::from(random.index(8) == 0)]);
        FarCase { window, at, codes, mark, stages, below }
    }

    fn is_hit(&self, lane: usize, probes: &Probes, code: u8) -> bool {
        hits(FarProbes::new(&self.window, self.at, probes), lane, code)
    }

    fn is_marked(&self, lane: usize, code: u8) -> bool {
        self.mark.iter().any(|probes| self.is_hit(lane, probes, code))
    }

    /// The contract of `refine` for one lane.
    fn candidates(&self, lane: usize) -> Vec<u8> {
        let open = |code: &u8| usize::from(*code) >= self.codes || !self.is_marked(lane, *code);
        let mut left: Vec<u8> = (0..(self.codes + BEYOND) as u8).filter(open).collect();
        for stage in &self.stages {
            left.truncate(stage.keep);
            left.retain(|&code| !self.is_hit(lane, &stage.check, code));
        }
        left
    }

    /// The contract of `open` for one lane.
    fn open(&self, lane: usize) -> Vec<u8> {
        let open = |code: &u8| *code < self.below[lane] && !self.is_marked(lane, *code);
        (0..self.codes as u8).filter(open).collect()
    }

    /// The contract of `clear_hits`, applied to the result of `open` and the probes of the first stage, for one lane.
    fn cleared(&self, lane: usize) -> Vec<u8> {
        let mut open = self.open(lane);
        let rest = open.split_off(MAX_CLEARED_CODES.min(open.len()));
        open.retain(|&code| !self.is_hit(lane, &self.stages[0].check, code));
        open.extend(rest);
        open
    }
}

/// The codes whose bits are set in a lane.
fn set_codes(planes: &BitPlanes, lane: usize) -> Vec<u8> {
    let is_set = |&code: &u8| planes.rows()[usize::from(code / 8)][lane] >> (code % 8) & 1 == 1;
    (0..planes.codes() as u8).filter(is_set).collect()
}

#[test]
fn every_kernel_keeps_the_contract_of_mark_refine_and_clear_hits() {
    for seed in 0..300 {
        let case = FarCase::new(seed);
        let FarCase { window, at, .. } = &case;
        for kernel in Kernel::available() {
            let mut planes = BitPlanes::new(case.codes);
            case.mark.iter().for_each(|probes| kernel.mark(window, *at, probes, &mut planes));
            let lanes = kernel.refine(window, *at, &planes, &case.stages);
            kernel.marks_to_open(&mut planes, &case.below);
            let mut cleared = planes.clone();
            kernel.clear_hits(window, *at, &case.stages[0].check, &mut cleared);
            for lane in 0..LANES {
                assert!((0..=NONE).all(|code| lanes.is_unconsidered(lane, code) == (usize::from(code) >= case.codes)));
                let found: Vec<u8> = lanes.code.iter().map(|row| row[lane]).take_while(|&c| c != NONE).collect();
                assert_eq!(found, case.candidates(lane), "{kernel}, seed {seed}, lane {lane}");
                assert!(lanes.code[found.len()..].iter().all(|row| row[lane] == NONE), "{kernel}, seed {seed}");
                assert_eq!(set_codes(&planes, lane), case.open(lane), "{kernel}, seed {seed}, lane {lane}: open");
                assert_eq!(
                    set_codes(&cleared, lane),
                    case.cleared(lane),
                    "{kernel}, seed {seed}, lane {lane}: cleared"
                );
            }
        }
    }
}

/// Lanes with `least` to `kept` candidates below `spread`, ascending. Equal ones count as one.
fn random_lanes(random: &mut Random, spread: usize, [least, kept]: [usize; 2]) -> Lanes {
    let considered_below = [NONE; LANES];
    let mut lanes = Lanes { code: [[NONE; LANES]; CANDIDATES], kept, held: kept, considered_below };
    for lane in 0..LANES {
        let count = least + random.index(kept - least + 1);
        let mut codes: Vec<u8> = (0..count).map(|_| random.index(spread) as u8).collect();
        codes.sort_unstable();
        codes.dedup();
        codes.iter().enumerate().for_each(|(k, &code)| lanes.code[k][lane] = code);
    }
    lanes
}

#[test]
fn every_kernel_keeps_the_contract_of_check_for_any_lanes() {
    for seed in 0..300 {
        let random = &mut Random::seeded(seed);
        let at = LANES + random.index(100);
        let spread = SPREADS[2 + random.index(3)];
        let length = at + random.index(LANES);
        let window = random.bytes(length, spread);
        let count = LENGTHS[random.index(8)];
        let far = random.probes(count, LANES..at + 1, spread);
        let held = random.index(KEEP.len());
        let mut lanes = random_lanes(random, spread, [0, KEEP[held]]);
        lanes.set_aside(KEEP[held + random.index(KEEP.len() - held)]);
        let mut expected = lanes.clone();
        expected.code[..lanes.kept].fill([NONE; LANES]);
        for lane in 0..LANES {
            let hit = |code: u8| far.list().iter().any(|p| window[at + lane - p.offset] ^ p.code() == code);
            let left = lanes.rows().iter().map(|row| row[lane]).filter(|&code| code != NONE && !hit(code));
            left.enumerate().for_each(|(k, code)| expected.code[k][lane] = code);
        }
        for kernel in Kernel::available() {
            let mut found = lanes.clone();
            kernel.check(&window, at, &far, &mut found);
            assert_eq!(found, expected, "{kernel}, seed {seed}");
        }
    }
}

#[test]
fn every_kernel_keeps_the_contract_of_near_for_any_lanes() {
    let (mut complete, mut stopped, mut hit_first) = (0, 0, 0);
    for seed in 0..1000 {
        let random = &mut Random::seeded(seed);
        let at = random.index(164);
        let spread = [12, 30, 60, 170][random.index(4)];
        let window = random.bytes(at + LANES, spread);
        let count = if at == 0 { 0 } else { [0, 1, 7, 20, 40, 64][random.index(6)] };
        let near: NearProbes =
            random.probes(count, 1..LANES.min(at + 1).max(2), spread).list().iter().copied().collect();
        let held = [0, random.index(KEEP.len())][random.index(2)];
        // Sometimes lanes without a candidate or with unconsidered ones, in which a kernel stops.
        let least = [0, KEEP[held]][random.index(2)];
        let mut lanes = random_lanes(random, spread, [least, KEEP[held]]);
        if random.index(4) == 0 {
            lanes.considered_below.fill_with(|| [NONE, random.index(spread) as u8][random.index(2)]);
        }
        lanes.set_aside(KEEP[[held, held + random.index(KEEP.len() - held)][random.index(2)]]);
        let from = [0, random.index(LANES)][random.index(2)];
        let to = [LANES, from + random.index(LANES - from + 1)][random.index(2)];
        let mut expected = window.clone();
        let mut end = to;
        for lane in from..to {
            let hit = |code: u8| near.list().iter().any(|p| expected[at + lane - p.offset] ^ p.code() == code);
            let open = lanes.rows().iter().map(|row| row[lane]).find(|&code| code != NONE && !hit(code));
            match open {
                Some(code) if code < lanes.considered_below[lane] => expected[at + lane] = code,
                _ => {
                    end = lane;
                    break;
                }
            }
            hit_first += usize::from(expected[at + lane] != lanes.code[0][lane]);
        }
        (complete, stopped) = (complete + usize::from(end == to), stopped + usize::from(end < to));
        for kernel in Kernel::available() {
            let mut found = window.clone();
            assert_eq!(
                kernel.near(&mut found, NearJob { at, probes: &near, from, to }, &lanes),
                end,
                "{kernel}, seed {seed}"
            );
            assert_eq!(found[..at + end], expected[..at + end], "{kernel}, seed {seed}");
        }
    }
    let counts = format!("{complete} complete, {stopped} stopped, {hit_first} first candidates hit");
    assert!(complete > 200 && stopped > 200 && hit_first > 2000, "{counts}: not the intended cases");
}

/// The message of the panic with which a job refuses its arguments.
fn refusal(job: impl FnOnce() + std::panic::UnwindSafe) -> String {
    match std::panic::catch_unwind(job) {
        Ok(()) => "not refused".into(),
        Err(panic) => panic.downcast_ref::<&str>().map_or("another panic".into(), |&message| message.into()),
    }
}

/// A call of a job with far probes, for one window and index of lane 0.
type FarJob = fn(Kernel, &[u8], usize, &Probes);

const FAR_JOBS: [(&str, FarJob); 4] = [
    ("mark", |kernel, window, at, probes| kernel.mark(window, at, probes, &mut BitPlanes::default())),
    ("check", |kernel, window, at, probes| kernel.check(window, at, probes, &mut Lanes::none())),
    ("clear_hits", |kernel, window, at, probes| kernel.clear_hits(window, at, probes, &mut BitPlanes::default())),
    ("refine", |kernel, window, at, probes| {
        let stage = Stage { keep: 2, check: probes.clone() };
        let _ = kernel.refine(window, at, &BitPlanes::default(), &[stage]);
    }),
];

/// A safe function must not read outside its slices, whatever its arguments.
#[test]
fn every_kernel_rejects_far_probes_that_read_outside_the_window() {
    // Window, index of lane 0 and offset.
    let outside = [
        (164, 100, 101),
        (163, 100, 0),
        (150, 100, 13),
        (150, 100, usize::MAX),
        (63, 0, 0),
        (63, 63, 63),
        (0, 0, 0),
        (100, usize::MAX - 10, 1),
        (100, usize::MAX, usize::MAX - 40),
        (164, usize::MAX, 0),
    ];
    for (length, at, offset) in outside {
        let window = &vec![0; length];
        // Beside a probe inside the window, where there is one.
        let inside = (length >= LANES && at < length).then(|| Probe::new(at.min(LANES), 0));
        let probes = &Probes::from_iter(inside.into_iter().chain([Probe::new(offset, 0)]));
        for kernel in Kernel::available() {
            for (name, job) in FAR_JOBS {
                let refusal = refusal(move || job(kernel, window, at, probes));
                assert_eq!(refusal, "a probe outside its window", "{kernel}, {name}: {length}, {at}, {offset}");
            }
        }
    }
}

#[test]
fn every_kernel_rejects_near_probes_that_are_not_near_or_outside() {
    let lanes = &Lanes { code: [[0; LANES]; CANDIDATES], kept: 2, held: 2, considered_below: [NONE; LANES] };
    for (at, offset) in [(100, 0), (100, LANES), (100, LANES + 1), (100, usize::MAX), (50, 51), (0, 1)] {
        let near = &NearProbes::from_iter([Probe::new(offset, 0)]);
        for kernel in Kernel::available() {
            let job = move || {
                kernel.near(&mut [0; 164], NearJob { at, probes: near, from: 0, to: LANES }, lanes);
            };
            assert_eq!(refusal(job), "a probe outside its window", "{kernel}: at {at}, offset {offset}");
        }
    }
}

#[test]
fn every_kernel_rejects_lanes_that_are_reversed_or_outside() {
    let lanes = &Lanes { code: [[NONE; LANES]; CANDIDATES], kept: 2, held: 2, considered_below: [NONE; LANES] };
    let near = &NearProbes::from_iter([Probe::new(1, 0)]);
    let (none, outside) = ("no such lanes", "lanes outside the window");
    for kernel in Kernel::available() {
        for (at, from, to, message) in [
            (100, 40, 0, none),
            (100, 0, 65, none),
            (100, 65, 65, none),
            (101, 0, 64, outside),
            (usize::MAX, 0, 64, outside),
        ] {
            let job = move || {
                kernel.near(&mut [0; 164], NearJob { at, probes: near, from, to }, lanes);
            };
            assert_eq!(refusal(job), message, "{kernel}: at {at}, lanes {from}..{to}");
        }
    }
}

#[test]
fn every_kernel_keeps_the_contract_of_recurrence_for_any_range() {
    let (mut complete, mut stopped) = (0, 0);
    for seed in 0..2000 {
        let random = &mut Random::seeded(seed);
        let range = RANGES[random.index(RANGES.len())];
        let room = [1, 100, 3000][random.index(3)];
        let at = LANES + random.index(room);
        let to = at + [0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 300][random.index(16)];
        let spread = SPREADS[random.index(6)];
        let surplus = random.index(40);
        let window = random.bytes(to + surplus, spread);
        let nearest = [1, 1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 31, 32, 63, 64][random.index(16)];
        let mut probes = Vec::new();
        for end in [nearest + 2, 33, 65, at + 1] {
            let count = [0, 1, 2, 7, 30][random.index(5)];
            probes.extend_from_slice(random.probes(count, nearest..end.clamp(nearest + 1, at + 1), spread).list());
        }
        // Sometimes one n sees all codes below the range but one, or all.
        if random.index(3) == 0 {
            let place = nearest + random.index(at + 1 - nearest);
            let missing = random.index(usize::from(range) + 8) as u8;
            let codes = (0..range).filter(|&code| code != missing);
            probes.extend(codes.map(|code| Probe::new(place, code)));
        }
        let mut expected = window.clone();
        let open = |window: &[u8], n: usize| {
            (0..range).find(|&code| probes.iter().all(|p| window[n - p.offset] ^ p.code() != code))
        };
        let end = (at..to).find(|&n| open(&expected, n).map(|code| expected[n] = code).is_none()).unwrap_or(to);
        (complete, stopped) = (complete + usize::from(end == to), stopped + usize::from(end < to));
        let recurrence = Recurrence::new(probes.clone(), range);
        for kernel in Kernel::available() {
            let mut found = window.clone();
            assert_eq!(kernel.recurrence(&mut found, at, to, &recurrence), end, "{kernel}, seed {seed}");
            assert_eq!(found, expected, "{kernel}, seed {seed}");
        }
    }
    assert!(complete > 100 && stopped > 100, "{complete} complete, {stopped} stopped: not the intended cases");
}

#[test]
fn every_kernel_rejects_a_recurrence_outside_the_window() {
    for kernel in Kernel::available() {
        let (probe, positions) = ("a probe outside its window", "positions outside the window");
        for (offset, at, to, message) in [
            (0, 100, 164, probe),
            (101, 100, 164, probe),
            (1, 63, 164, probe),
            (1, 100, 99, positions),
            (1, 100, 165, positions),
            (1, usize::MAX, usize::MAX, positions),
        ] {
            let recurrence = &Recurrence::new(vec![Probe::new(offset, 0)], RANGES[0]);
            let job = move || {
                kernel.recurrence(&mut [0; 164], at, to, recurrence);
            };
            assert_eq!(refusal(job), message, "{kernel}: offset {offset}, {at}..{to}");
        }
    }
}

/// How a test makes 16-bit values of bytes: the byte is one half of the value. The other half of what is wanted is that
/// of all options, or differs from it.
#[derive(Clone, Copy, Debug)]
enum OtherByte {
    LowIsWanted,
    LowIsNot,
    HighIsWanted,
    HighIsNot,
}

impl OtherByte {
    const ALL: [OtherByte; 4] =
        [OtherByte::LowIsWanted, OtherByte::LowIsNot, OtherByte::HighIsWanted, OtherByte::HighIsNot];

    /// The value of an item of the window or of a slice.
    fn of_value(self, byte: u8) -> u16 {
        match self {
            OtherByte::LowIsWanted | OtherByte::LowIsNot => u16::from_be_bytes([byte, 0]),
            OtherByte::HighIsWanted | OtherByte::HighIsNot => u16::from_be_bytes([0, byte]),
        }
    }

    /// The wanted XOR of two items.
    fn of_wanted(self, byte: u8) -> u16 {
        match self {
            OtherByte::LowIsWanted | OtherByte::HighIsWanted => self.of_value(byte),
            OtherByte::LowIsNot => u16::from_be_bytes([byte, 0x80]),
            OtherByte::HighIsNot => u16::from_be_bytes([1, byte]),
        }
    }

    /// Whether the other half is that of all options.
    fn is_equal(self) -> bool {
        matches!(self, OtherByte::LowIsWanted | OtherByte::HighIsWanted)
    }
}

#[test]
fn every_kernel_detects_an_item_that_equals_its_option() {
    let mut repeated = 0;
    for seed in 0..400 {
        let random = &mut Random::seeded(seed);
        let at = 1 + random.index(3000);
        let surplus = random.index(50);
        let window = random.bytes(at + REPEATS_VALUES + surplus, 200);
        let count = random.index(4);
        let lookups: Vec<(usize, u8)> =
            (0..count).map(|_| (1 + random.index(at), 200 + random.index(56) as u8)).collect();
        let repeats = |n: usize| lookups.iter().any(|&(offset, item)| window[n - offset] ^ item == window[n]);
        let expected = (at..at + REPEATS_VALUES).any(repeats);
        repeated += usize::from(expected);
        for kernel in Kernel::available() {
            assert_eq!(kernel.repeats(&window, at, &lookups), expected, "{kernel}, seed {seed}");
            for other_byte in OtherByte::ALL {
                let wide: Vec<u16> = window.iter().map(|&v| other_byte.of_value(v)).collect();
                let values: Vec<(usize, u16)> = lookups.iter().map(|&(at, v)| (at, other_byte.of_wanted(v))).collect();
                let expected = expected && other_byte.is_equal();
                assert_eq!(kernel.repeats_value(&wide, at, &values), expected, "{kernel}, seed {seed}, {other_byte:?}");
            }
        }
    }
    assert!((40..360).contains(&repeated), "{repeated} of 400: not the intended cases");
}

#[test]
fn every_kernel_finds_the_first_step_with_the_wanted_pair() {
    for seed in 0..200 {
        let random = &mut Random::seeded(seed);
        let pairs = LENGTHS[random.index(10)] + 100 * random.index(4);
        let spread = [2, 40, 200][random.index(3)];
        let a = random.bytes(pairs, spread);
        let surplus = random.index(3);
        let b = random.bytes(pairs + surplus, spread);
        let wanted = random.index(256) as u8;
        let first = a.iter().rev().zip(b.iter().rev()).position(|(x, y)| x ^ y == wanted);
        let found = first.map(|at| pairs.min((at / PAIRS_BETWEEN_TESTS + 1) * PAIRS_BETWEEN_TESTS));
        for kernel in Kernel::available() {
            assert_eq!(kernel.find_code_pair(&a, &b, wanted), found, "{kernel}, seed {seed}");
            for other_byte in OtherByte::ALL {
                let wide = |list: &[u8]| -> Vec<u16> { list.iter().map(|&v| other_byte.of_value(v)).collect() };
                let values = kernel.find_value_pair(&wide(&a), &wide(&b), other_byte.of_wanted(wanted));
                let expected = found.filter(|_| other_byte.is_equal());
                assert_eq!(values, expected, "{kernel}, seed {seed}, {other_byte:?}");
            }
        }
    }
}

#[test]
fn every_kernel_finds_the_first_good_pair_of_each_code() {
    let (mut found, mut missed, mut refused) = (0, 0, 0);
    for seed in 0..400 {
        let random = &mut Random::seeded(seed);
        let count = LENGTHS[random.index(10)] + [0, 128, 256, 2000][random.index(4)];
        let spread = SPREADS[random.index(6)];
        let surplus = random.index(3);
        let a = random.bytes(count + surplus, spread);
        let surplus = random.index(3);
        let b = random.bytes(count + surplus, spread);
        let most = [0, 1, 2, 5, 60, 256][random.index(6)];
        let mut wanted: Vec<u8> = (0..=255).collect();
        while wanted.len() > most {
            wanted.swap_remove(random.index(wanted.len()));
        }
        // `good` accepts every pair, one in two, or one in a thousand.
        let one_in = [1, 2, 1000][random.index(3)];
        let good =
            |code: u8, pairs: usize| Random::seeded(seed + pairs as u64 * 256 + u64::from(code)).index(one_in) == 0;
        let pairs = |code: u8| {
            let gives = a.iter().rev().zip(b.iter().rev()).enumerate().filter(move |(_, (x, y))| *x ^ *y == code);
            gives.map(|(i, _)| i + 1)
        };
        // The calls of `good` for each code: its pairs up to the first good one.
        let calls = |&code: &u8| -> Vec<(u8, usize)> {
            let bad = pairs(code).take_while(|&pairs| !good(code, pairs)).count();
            pairs(code).take(bad + 1).map(|pairs| (code, pairs)).collect()
        };
        let mut expected: Vec<(u8, usize)> = wanted.iter().flat_map(calls).collect();
        let mut left: Vec<u8> = wanted.clone();
        left.retain(|&code| !pairs(code).any(|pairs| good(code, pairs)));
        (found, missed) = (found + wanted.len() - left.len(), missed + left.len());
        refused += expected.len() - (wanted.len() - left.len());
        expected.sort_unstable();
        left.sort_unstable();
        for kernel in Kernel::available() {
            let (mut open, mut seen) = (wanted.clone(), Vec::new());
            kernel.find_code_pairs(&a, &b, &mut open, |code, pairs| {
                seen.push((code, pairs));
                good(code, pairs)
            });
            open.sort_unstable();
            assert_eq!(open, left, "{kernel}, seed {seed}: codes left");
            assert!(
                wanted.iter().all(|&code| seen.iter().filter(|seen| seen.0 == code).is_sorted()),
                "{kernel}, seed {seed}: order"
            );
            seen.sort_unstable();
            assert_eq!(seen, expected, "{kernel}, seed {seed}: calls of good");
        }
    }
    let counts = [found, missed, refused];
    assert!(counts.iter().all(|&count| count > 1000), "{counts:?}: not the intended cases");
}

/// Values of 6 to 16 bits, parts anywhere in the window, and candidates that some parts hit. Of larger values, which
/// only changed bits in memory give, the low bits are marked.
#[test]
fn wide_jobs_give_the_options_of_their_parts() {
    let random = &mut Random::new("wide jobs");
    for _ in 0..200 {
        let values = 1usize << (6 + random.index(11));
        let at = 1 + random.index(3000);
        let mut window: Vec<u16> = (0..at + WIDE_LANES).map(|_| random.index(values) as u16).collect();
        if random.index(3) == 0 {
            window.iter_mut().step_by(7).for_each(|item| *item ^= 1 << random.index(16));
        }
        let count = [0, 1, 2, 3, 60, 500, 4096, 4097, 6144, 6145][random.index(10)];
        let parts: Vec<WidePart> =
            (0..count).map(|_| WidePart { offset: random.index(at + 1), value: random.index(values) as u16 }).collect();
        let option = |lane: usize, part: &WidePart| window[at + lane - part.offset] ^ part.value;
        let mut candidates: [WideRow; WIDE_ROWS] = [[0; WIDE_LANES]; WIDE_ROWS];
        candidates.as_flattened_mut().fill_with(|| random.index(values) as u16);
        for (lane, candidate) in candidates[0].iter_mut().enumerate() {
            *candidate = parts.last().map_or(*candidate, |part| option(lane, part));
        }
        let is_hit = |lane: usize, candidate: u16| parts.iter().any(|part| option(lane, part) == candidate);
        for kernel in Kernel::available() {
            let count = random.index(WIDE_ROWS + 1);
            let wide = WideParts { window: &window, at, list: parts.iter().copied() };
            let hits = kernel.wide_hits(wide, &candidates[..count]);
            for (k, (hits, row)) in hits.into_iter().zip(&candidates).enumerate() {
                for (lane, &candidate) in row.iter().enumerate() {
                    let expected = k < count && is_hit(lane, candidate);
                    assert_eq!(hits >> lane & 1 == 1, expected, "{kernel}, row {k}, lane {lane}");
                }
            }
            let mut seen = vec![0; MARK_LANES * (1 + random.index(WIDE_LANES / MARK_LANES)) * values];
            kernel.mark_values(WideParts { window: &window, at, list: &parts }, values, &mut seen);
            let mut open = vec![0; seen.len() / 64];
            kernel.unmarked(&seen, &mut open);
            for (lane, (seen, open)) in seen.chunks(values).zip(open.chunks(values / 64)).enumerate() {
                let marked = |part: &WidePart| usize::from(option(lane, part)) % values;
                let options: HashSet<usize> = parts.iter().map(marked).collect();
                for (v, &seen) in seen.iter().enumerate() {
                    let expected = options.contains(&v);
                    assert_eq!(seen == 1, expected, "{kernel}, lane {lane}, value {v}");
                    assert_eq!(open[v / 64] >> (v % 64) & 1 == 0, expected, "{kernel}, lane {lane}, value {v}");
                }
            }
        }
    }
}

/// Rows of many lengths, and few or many wanted values, of which some pairs give some.
#[test]
fn wide_searches_find_exactly_the_values_of_pairs() {
    let random = &mut Random::new("wide searches");
    for _ in 0..300 {
        let values = 1 << (9 + random.index(8));
        let mut row = || -> Vec<u16> {
            let length = [0, 1, 2, 31, 32, 33, 255, 256, 257, 512, 700, 1500][random.index(12)];
            (0..length).map(|_| random.index(values) as u16).collect()
        };
        let (a, b) = (row(), row());
        let most = [20, 400][random.index(2)];
        let mut wanted: Vec<u16> = (0..random.index(most)).map(|_| random.index(values) as u16).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let aligned = |value: &u16| a.iter().rev().zip(b.iter().rev()).any(|(x, y)| x ^ y == *value);
        let open: Vec<u16> = wanted.iter().copied().filter(|value| !aligned(value)).collect();
        for kernel in Kernel::available() {
            let mut left = wanted.clone();
            kernel.remove_pair_values(&a, &b, &mut left);
            left.sort_unstable();
            assert_eq!(left, open, "{kernel}");
            for &value in &wanted {
                let expected = a.iter().zip(b.iter().rev()).position(|(x, y)| x ^ y == value);
                assert_eq!(kernel.find_mirrored_pair(&a, &b, value), expected, "{kernel}");
            }
            let mirrored = |k: usize| a[k] ^ b[b.len() - 1 - k];
            let (mut left, mut found) = (wanted.clone(), Vec::new());
            kernel.find_mirrored_pairs(&a, &b, &mut left, |k| {
                assert!((0..k).all(|earlier| mirrored(earlier) != mirrored(k)), "{kernel}: not the first pair");
                found.push(mirrored(k));
            });
            let pairs = a.len().min(b.len());
            assert!(left.iter().all(|value| (0..pairs).all(|k| mirrored(k) != *value)), "{kernel}");
            found.append(&mut left);
            found.sort_unstable();
            assert_eq!(found, wanted, "{kernel}");
        }
    }
}

/// Values of 4 to 16 bits, tiles of many lengths, and any range of 2048 values, with all, half or few of them open.
#[test]
fn every_kernel_clears_exactly_the_options_of_a_tile() {
    let random = &mut Random::new("tiles of pairs");
    let mut cleared = 0;
    for _ in 0..300 {
        let values = 1usize << (4 + random.index(13));
        let pairs = [0, 1, 63, 64, 65, 255, 256, 257, 511, 1023, 1025, TILE_PAIRS][random.index(12)];
        let lanes = 1 + random.index(2 * WIDE_LANES);
        let constant = random.index(values) as u16;
        let parts: Vec<u16> = (0..pairs).map(|_| random.index(values) as u16).collect();
        let others: Vec<u16> = (0..pairs + lanes - 1).map(|_| random.index(values) as u16).collect();
        let longer = vec![constant; (pairs + 300).min(TILE_PAIRS)];
        let one_in = [1, 2, 50][random.index(3)];
        let page = random.index(values.div_ceil(2048)) as u8;
        let mut open: Page = [0; PAGE_WORDS];
        open.iter_mut().for_each(|word| {
            *word = (0..64).filter(|_| random.index(one_in) == 0).fold(0, |word, bit| word | 1 << bit);
        });
        let lane = random.index(lanes);
        if random.index(4) == 0 {
            // No open value but options of the first pairs: a kernel may skip the others.
            let is_option = |word: usize, bit: u32| {
                let value = (usize::from(page) * 2048 + 64 * word) | bit as usize;
                (0..pairs.min(100)).any(|j| usize::from(parts[j] ^ constant ^ others[lane + j]) == value)
            };
            for (i, word) in open.iter_mut().enumerate() {
                *word = (0..64).filter(|&bit| is_option(i, bit)).fold(0, |word, bit| word | 1 << bit);
            }
        }
        let mut expected = open;
        for (j, part) in parts.iter().enumerate() {
            let option = usize::from(part ^ constant ^ others[lane + j]);
            if option / 2048 == usize::from(page) {
                let (word, bit) = (option % 2048 / 64, 1 << (option % 64));
                cleared += usize::from(expected[word] & bit != 0);
                expected[word] &= !bit;
            }
        }
        for kernel in Kernel::available() {
            let mut tile = PairTile::default();
            // The second call replaces these pairs, which are more.
            kernel.fill_tile(&mut tile, longer.iter(), 0, &longer);
            kernel.fill_tile(&mut tile, parts.iter(), constant ^ (2048 * u16::from(page)), &others);
            let mut open = open;
            kernel.clear_options(&tile, lane, &mut open);
            assert_eq!(open, expected, "{kernel}, {pairs} pairs, lane {lane} of {lanes}, page {page}");
        }
    }
    assert!(cleared > 10_000, "{cleared} values: not the intended cases");
}

#[test]
fn a_tile_is_cleared_only_by_the_kernel_that_filled_it() {
    for kernel in Kernel::available() {
        let mut tile = PairTile::default();
        kernel.fill_tile(&mut tile, [1, 2].iter(), 0, &[3, 4]);
        let tile = &tile;
        for other in Kernel::available().into_iter().filter(|&other| other != kernel) {
            let job = move || other.clear_options(tile, 0, &mut [0; PAGE_WORDS]);
            assert_eq!(refusal(job), "a tile that this kernel filled", "{kernel}, {other}");
        }
    }
}

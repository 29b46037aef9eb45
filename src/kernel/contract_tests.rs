use super::*;

/// A small random generator (SplitMix64), local to this module, so that a printed seed reproduces a failure
/// everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn probes(&mut self, count: usize, offsets: std::ops::Range<usize>, spread: usize) -> Probes {
        let mut probes = Probes::new();
        for _ in 0..count {
            let offset = offsets.start + self.below(offsets.len());
            probes.push(Probe::new(offset, self.below(spread) as u8));
        }
        probes
    }
}

fn hits(window: &[u8], at: usize, lane: usize, probes: &Probes, code: u8) -> bool {
    probes.list().iter().any(|p| window[at + lane - p.offset] ^ p.code() == code)
}

/// The contract of `refine`, restated for one lane.
fn contract(window: &[u8], at: usize, marked: &Probes, codes: usize, stages: &[Stage], lane: usize) -> Vec<u8> {
    let open = |code: &u8| usize::from(*code) >= codes || !hits(window, at, lane, marked, *code);
    let mut left: Vec<u8> = (0..(codes + BEYOND) as u8).filter(open).collect();
    for stage in stages {
        left.truncate(stage.keep);
        left.retain(|&code| !hits(window, at, lane, &stage.check, code));
    }
    left
}

const LENGTHS: [usize; 10] = [0, 1, 2, 7, 8, 9, 63, 64, 65, 300];
const SPREADS: [usize; 6] = [1, 3, 60, 128, 170, 256];

#[test]
fn every_kernel_keeps_the_contract_of_mark_refine_and_clear_hits() {
    for seed in 0..300 {
        let random = &mut Random(seed);
        let at = LANES + random.below(3000);
        // Number of lanes whose values the window holds already.
        let known = random.below(LANES + 1);
        let spread = SPREADS[random.below(6)];
        let window: Vec<u8> = (0..at + known).map(|_| random.below(spread) as u8).collect();
        let mut list = || {
            let count = LENGTHS[random.below(10)];
            random.probes(count, LANES - known..at + 1, spread)
        };
        let (mark, more) = (list(), list());
        let mut stages: Vec<Stage> = KEEP.map(|keep| Stage { keep, check: list() }).into();
        stages.retain(|_| random.below(2) == 0);
        if stages.is_empty() {
            stages.push(Stage { keep: KEEP[seed as usize % KEEP.len()], check: Probes::new() });
        }
        let codes = CODES[seed as usize % CODES.len()];
        let mut all = mark.clone();
        more.list().iter().for_each(|probe| all.push(*probe));
        let below: [u8; LANES] = std::array::from_fn(|_| random.below(codes + 3) as u8);
        for kernel in Kernel::available() {
            let mut planes = BitPlanes::new(codes);
            kernel.mark(&window, at, &mark, &mut planes);
            kernel.mark(&window, at, &more, &mut planes);
            let lanes = kernel.refine(&window, at, &planes, &stages);
            kernel.open(&mut planes, &below);
            let mut cleared = planes.clone();
            kernel.clear_hits(&window, at, &stages[0].check, &mut cleared);
            for lane in 0..LANES {
                let expected = contract(&window, at, &all, codes, &stages, lane);
                let found: Vec<u8> = lanes.code.iter().map(|row| row[lane]).take_while(|&c| c != NONE).collect();
                assert_eq!(found, expected, "{kernel}, seed {seed}, lane {lane}");
                assert!(lanes.code[found.len()..].iter().all(|row| row[lane] == NONE), "{kernel}, seed {seed}");
                assert!((0..=NONE).all(|code| lanes.is_unmarked(code) == (usize::from(code) >= codes)));
                let open = |code: &u8| *code < below[lane] && !hits(&window, at, lane, &all, *code);
                let mut expected: Vec<u8> = (0..codes as u8).filter(open).collect();
                let set = |planes: &BitPlanes| -> Vec<u8> {
                    let is_set = |&code: &u8| planes.rows()[usize::from(code / 8)][lane] >> (code % 8) & 1 == 1;
                    (0..codes as u8).filter(is_set).collect()
                };
                assert_eq!(set(&planes), expected, "{kernel}, seed {seed}, lane {lane}: open");
                let rest = expected.split_off(MAX_CLEAR_PROBES.min(expected.len()));
                expected.retain(|&code| !hits(&window, at, lane, &stages[0].check, code));
                expected.extend(rest);
                assert_eq!(set(&cleared), expected, "{kernel}, seed {seed}, lane {lane}: cleared");
            }
        }
    }
}

#[test]
fn every_kernel_keeps_the_contract_of_near_for_any_lanes() {
    for seed in 0..300 {
        let random = &mut Random(seed);
        let at = LANES + random.below(100);
        let spread = SPREADS[2 + random.below(3)];
        let window: Vec<u8> = (0..at + LANES).map(|_| random.below(spread) as u8).collect();
        let count = LENGTHS[random.below(8)];
        let near = random.probes(count, 1..LANES, spread);
        let kept = KEEP[random.below(KEEP.len())];
        let marked = [NONE, random.below(spread) as u8][random.below(2)];
        let mut lanes = Lanes { code: [[NONE; LANES]; CANDIDATES], kept, marked };
        for lane in 0..LANES {
            let mut codes: Vec<u8> = (0..1 + random.below(kept)).map(|_| random.below(spread) as u8).collect();
            codes.sort_unstable();
            codes.dedup();
            codes.iter().enumerate().for_each(|(k, &code)| lanes.code[k][lane] = code);
        }
        let from = random.below(LANES);
        let to = from + random.below(LANES - from + 1);
        let mut expected = window.clone();
        let mut stopped = to;
        for lane in from..to {
            let hit = |code: u8| near.list().iter().any(|p| expected[at + lane - p.offset] ^ p.code() == code);
            let open = lanes.code.iter().map(|row| row[lane]).find(|&code| code != NONE && !hit(code));
            match open {
                Some(code) if code < marked => expected[at + lane] = code,
                _ => {
                    stopped = lane;
                    break;
                }
            }
        }
        for kernel in Kernel::available() {
            let mut found = window.clone();
            assert_eq!(kernel.near(&mut found, at, &near, &lanes, from, to), stopped, "{kernel}, seed {seed}");
            assert_eq!(found[..at + stopped], expected[..at + stopped], "{kernel}, seed {seed}");
        }
    }
}

/// A safe function must not read outside its slices, whatever its arguments.
#[test]
fn every_kernel_rejects_lanes_that_are_reversed_or_outside() {
    let lanes = Lanes { code: [[NONE; LANES]; CANDIDATES], kept: 2, marked: NONE };
    let mut near = Probes::new();
    near.push(Probe::new(1, 0));
    for kernel in Kernel::available() {
        for (at, from, to) in [(100, 40, 0), (100, 0, 65), (101, 0, 64), (usize::MAX, 0, 64), (100, 65, 65)] {
            let refused = std::panic::catch_unwind(|| {
                kernel.near(&mut [0; 164], at, &near, &lanes, from, to);
            });
            assert!(refused.is_err(), "{kernel}: at {at}, lanes {from}..{to}");
        }
    }
}

#[test]
fn every_kernel_keeps_the_contract_of_chain_for_any_range() {
    let (mut complete, mut stopped) = (0, 0);
    for seed in 0..1000 {
        let random = &mut Random(seed);
        let room = [1, 100, 3000][random.below(3)];
        let at = LANES + random.below(room);
        let to = at + [0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 300][random.below(16)];
        let spread = SPREADS[random.below(6)];
        let window: Vec<u8> = (0..to + random.below(40)).map(|_| random.below(spread) as u8).collect();
        let nearest = [1, 1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 31, 32, 63, 64][random.below(16)];
        let mut probes = Vec::new();
        for end in [nearest + 2, 33, 65, at + 1] {
            let count = [0, 1, 2, 7, 30][random.below(5)];
            probes.extend_from_slice(random.probes(count, nearest..end.clamp(nearest + 1, at + 1), spread).list());
        }
        // Sometimes one n sees all codes below RECURRENCE_CODES but one, or all.
        if random.below(3) == 0 {
            let place = nearest + random.below(at + 1 - nearest);
            let missing = random.below(40) as u8;
            let codes = (0..RECURRENCE_CODES).filter(|&code| code != missing);
            probes.extend(codes.map(|code| Probe::new(place, code)));
        }
        let mut expected = window.clone();
        let open = |window: &[u8], n: usize| {
            (0..RECURRENCE_CODES).find(|&code| probes.iter().all(|p| window[n - p.offset] ^ p.code() != code))
        };
        let end = (at..to).find(|&n| open(&expected, n).map(|code| expected[n] = code).is_none()).unwrap_or(to);
        (complete, stopped) = (complete + usize::from(end == to), stopped + usize::from(end < to));
        let chain = Recurrence::new(probes.clone());
        for kernel in Kernel::available() {
            let mut found = window.clone();
            assert_eq!(kernel.chain(&mut found, at, to, &chain), end, "{kernel}, seed {seed}");
            assert_eq!(found, expected, "{kernel}, seed {seed}");
        }
    }
    assert!(complete > 100 && stopped > 100, "{complete} complete, {stopped} stopped: not the intended cases");
}

#[test]
fn every_kernel_rejects_a_chain_outside_the_window() {
    for kernel in Kernel::available() {
        for (offset, at, to) in
            [(0, 100, 164), (101, 100, 164), (1, 63, 164), (1, 100, 99), (1, 100, 165), (1, usize::MAX, usize::MAX)]
        {
            let chain = Recurrence::new(vec![Probe::new(offset, 0)]);
            let refused = std::panic::catch_unwind(|| {
                kernel.chain(&mut [0; 164], at, to, &chain);
            });
            assert!(refused.is_err(), "{kernel}: offset {offset}, {at}..{to}");
        }
    }
}

#[test]
fn every_kernel_detects_an_item_that_equals_its_option() {
    let mut repeated = 0;
    for seed in 0..400 {
        let random = &mut Random(seed);
        let at = 1 + random.below(3000);
        let window: Vec<u8> = (0..at + HEAPS + random.below(50)).map(|_| random.below(200) as u8).collect();
        let count = random.below(4);
        let lookups: Vec<(usize, u8)> =
            (0..count).map(|_| (1 + random.below(at), 200 + random.below(56) as u8)).collect();
        let repeats = |n: usize| lookups.iter().any(|&(offset, item)| window[n - offset] ^ item == window[n]);
        let expected = (at..at + HEAPS).any(repeats);
        repeated += usize::from(expected);
        let wide: Vec<u16> = window.iter().map(|&v| u16::from(v) * 257).collect();
        let values: Vec<(usize, u16)> = lookups.iter().map(|&(at, item)| (at, u16::from(item) * 257)).collect();
        for kernel in Kernel::available() {
            assert_eq!(kernel.repeats(&window, at, &lookups), expected, "{kernel}, seed {seed}");
            assert_eq!(kernel.repeats_value(&wide, at, &values), expected, "{kernel}, seed {seed}");
        }
    }
    assert!((40..360).contains(&repeated), "{repeated} of 400: not the intended cases");
}

#[test]
fn every_kernel_finds_the_first_step_with_the_wanted_pair() {
    for seed in 0..200 {
        let random = &mut Random(seed);
        let pairs = LENGTHS[random.below(10)] + 100 * random.below(4);
        let spread = [2, 40, 200][random.below(3)];
        let a: Vec<u8> = (0..pairs).map(|_| random.below(spread) as u8).collect();
        let b: Vec<u8> = (0..pairs + random.below(3)).map(|_| random.below(spread) as u8).collect();
        let wanted = random.below(256) as u8;
        let first = a.iter().rev().zip(b.iter().rev()).position(|(x, y)| x ^ y == wanted);
        let found = first.map(|at| pairs.min((at / PAIRS_BETWEEN_TESTS + 1) * PAIRS_BETWEEN_TESTS));
        let wide = |list: &[u8]| -> Vec<u16> { list.iter().map(|&v| u16::from(v) * 257).collect() };
        for kernel in Kernel::available() {
            assert_eq!(kernel.find(&a, &b, wanted), found, "{kernel}, seed {seed}");
            let values = kernel.find_value(&wide(&a), &wide(&b), u16::from(wanted) * 257);
            assert_eq!(values, found, "{kernel}, seed {seed}");
        }
    }
}

#[test]
fn every_kernel_finds_the_first_good_pair_of_each_code() {
    let (mut found, mut missed, mut refused) = (0, 0, 0);
    for seed in 0..400 {
        let random = &mut Random(seed);
        let count = LENGTHS[random.below(10)] + [0, 128, 256, 2000][random.below(4)];
        let spread = SPREADS[random.below(6)];
        let a: Vec<u8> = (0..count + random.below(3)).map(|_| random.below(spread) as u8).collect();
        let b: Vec<u8> = (0..count + random.below(3)).map(|_| random.below(spread) as u8).collect();
        let most = [0, 1, 2, 5, 60, 256][random.below(6)];
        let mut wanted: Vec<u8> = (0..=255).collect();
        while wanted.len() > most {
            wanted.swap_remove(random.below(wanted.len()));
        }
        // `good` accepts every pair, one in two, or one in a thousand.
        let one_in = [1, 2, 1000][random.below(3)];
        let good = |code: u8, pairs: usize| Random(seed + pairs as u64 * 256 + u64::from(code)).below(one_in) == 0;
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
            kernel.find_each(&a, &b, &mut open, |code, pairs| {
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

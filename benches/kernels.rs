//! Benchmarks of the jobs of every kernel. Each benchmark first compares all kernels with plain loops.
//!
//! `cargo bench --bench kernels` takes less than a minute. The criterion group `kernel` has one benchmark for each job
//! and kernel; an element is one lookup in one lane (`mark`, `check`, `near`, `near hits`, `clear`) or one pair
//! (`find`). The lookups of `near` hit no candidate, those of `near hits` about half of them. The group `pairs`
//! compares all pairs with all open values; an element is one pair. In the group `recurrence` an element is one value.
//! The group `constant` measures nothing by criterion; it prints a line for each cost constant:
//!
//! - `mark_ps(C)`: one marked lookup with C codes considered, per value;
//! - `check_ps(K)`: one checked lookup with K candidates kept, per value;
//! - `CLEAR_PS`: one part held against the least open targets, per value;
//! - `ENTER_PAIRS`: the time in which one pair is entered in a set, divided by the time in which one
//!   pair is compared.
//!
//! The constants apply to every kernel; the lines state the fastest one of this processor, or the kernel that the
//! environment variable `GRUNDY_BENCH_KERNEL` names.

mod support;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use grundy::bench_support::{
    CLEAR_PS, CODE_COUNTS, CheckStages, CodeWindow, ENTERED_TO_COMPARED, KEPT_COUNTS, LANE_COUNT, LookupList, Marks,
    NearList, PAGE_WORD_COUNT, RecurrenceList, TILE_PAIR_COUNT, Tile, WIDE_LANE_COUNT, check_ps, enter, find_code_pair,
    find_code_pairs, find_value_pair, mark_ps,
};
use grundy::kernel::Kernel;
use std::hint::black_box;
use support::{Random, picoseconds, report, short};

/// Number of different codes in the window and in the lookups, as in quiet stretches of Grundy's game.
const SPREAD: usize = 72;

/// The numbers of lookups that one value of Grundy's game marks and checks.
const MARKED: usize = 440;
const CHECKED: usize = 400;

/// The number of near lookups of .774, which hit candidates often.
const NEAR_HITTING: usize = 51;

/// A random code below `bound`, which is at most 256.
fn byte(random: &mut Random, bound: usize) -> u8 {
    u8::try_from(random.below(bound as u64)).expect("below 256")
}

/// A window of codes, lookups into it, and the codes that the marked ones leave open.
struct Data {
    window: CodeWindow,
    marked: Vec<(usize, u8)>,
    checked: Vec<(usize, u8)>,
    /// Near lookups that hit no candidate.
    near: Vec<(usize, u8)>,
    /// Near lookups that hit about half of the candidates.
    near_hitting: Vec<(usize, u8)>,
}

impl Data {
    fn new() -> Data {
        let mut random = Random::seeded(1);
        let codes: Vec<u8> = (0..100_000 + LANE_COUNT).map(|_| byte(&mut random, SPREAD)).collect();
        let window = CodeWindow { codes, at: 100_000 };
        let mut lookups = |count: usize, from: usize, to: usize| -> Vec<(usize, u8)> {
            (0..count).map(|_| (from + random.below((to - from) as u64) as usize, byte(&mut random, SPREAD))).collect()
        };
        let marked = lookups(MARKED, LANE_COUNT, 82_000);
        let checked = lookups(CHECKED, LANE_COUNT, 82_000);
        // Options of 128 and more are no candidates.
        let near = lookups(27, 1, LANE_COUNT).into_iter().map(|(offset, code)| (offset, code | 0x80)).collect();
        let near_hitting = lookups(NEAR_HITTING, 1, LANE_COUNT);
        Data { window, marked, checked, near, near_hitting }
    }

    /// Whether a lookup of the list hits the code in the lane.
    fn is_hit(&self, lookups: &[(usize, u8)], lane: usize, code: u8) -> bool {
        lookups.iter().any(|&(offset, other)| self.window.codes[self.window.at + lane - offset] ^ other == code)
    }

    fn marks(&self, kernel: Kernel, codes: usize) -> Marks {
        let mut marks = Marks::new(codes);
        self.window.mark(kernel, &LookupList::new(&self.marked), &mut marks);
        marks
    }

    /// The bits of the codes that are open, all of which matter.
    fn open(&self, kernel: Kernel, codes: usize) -> Marks {
        let mut open = Marks::new(codes);
        self.window.mark(kernel, &LookupList::new(&self.marked[..100]), &mut open);
        let below = u8::try_from(codes).expect("at most 160 codes");
        self.window.open(kernel, &mut open, &[below; LANE_COUNT]);
        open
    }

    /// Compares a kernel with plain loops.
    fn check(&self, kernel: Kernel) {
        // Codes just above those considered that are candidates as well.
        let beyond = 16;
        for &codes in CODE_COUNTS {
            let marks = self.marks(kernel, codes);
            let first = u8::try_from(codes).expect("at most 160 codes");
            for lane in 0..LANE_COUNT {
                for code in 0..first {
                    let is_hit = self.is_hit(&self.marked, lane, code);
                    assert_eq!(marks.is_set(code, lane), is_hit, "{kernel}: mark, code {code} in lane {lane}");
                }
            }
            for &keep in KEPT_COUNTS {
                let few = &self.checked[..20];
                let found = self.window.check(kernel, &marks, &CheckStages::new(&[(keep, few)]));
                for lane in 0..LANE_COUNT {
                    let open = |&code: &u8| code >= first || !marks.is_set(code, lane);
                    let kept = (0..first + beyond).filter(open).take(keep);
                    let left = kept.filter(|&code| !self.is_hit(few, lane, code));
                    assert!(left.eq(found.of(lane)), "{kernel}: check, lane {lane}");
                }
            }
        }
        let mut cleared = self.open(kernel, SPREAD);
        let before = cleared.clone();
        self.window.clear_hits(kernel, &LookupList::new(&self.checked), &mut cleared);
        for lane in 0..LANE_COUNT {
            let open: Vec<u8> = (0..72).filter(|&code| before.is_set(code, lane)).collect();
            for (rank, &code) in open.iter().enumerate() {
                let stays = rank >= 4 || !self.is_hit(&self.checked, lane, code);
                assert_eq!(cleared.is_set(code, lane), stays, "{kernel}: clear, code {code} in lane {lane}");
            }
        }
        for (lookups, keep) in self.near_jobs() {
            let codes = |kernel| self.near_codes(kernel, lookups, keep);
            assert!(codes(kernel) == codes(Kernel::scalar()), "{kernel}: near");
        }
    }

    /// Two lists of near lookups, each with enough candidates per lane that the near job stops at no lane.
    fn near_jobs(&self) -> [(&[(usize, u8)], usize); 2] {
        [(&self.near, 3), (&self.near_hitting, KEPT_COUNTS[0])]
    }

    /// The codes that the near job fills in, where every lane has the codes below `keep` as candidates.
    fn near_codes(&self, kernel: Kernel, lookups: &[(usize, u8)], keep: usize) -> Vec<u8> {
        let mut window = self.window.clone();
        let lanes = window.check(kernel, &Marks::new(SPREAD), &CheckStages::new(&[(keep, &[])]));
        assert_eq!(window.near(kernel, &NearList::new(lookups), &lanes), LANE_COUNT, "{kernel}: near stopped");
        window.codes
    }
}

/// Two rows of items whose XORs are never 255, and their 16-bit form.
fn pairs() -> ([Vec<u8>; 2], [Vec<u16>; 2]) {
    /// Number of pairs.
    const PAIRS: usize = 1 << 14;
    let mut random = Random::seeded(2);
    let rows = [0, 1].map(|_| (0..PAIRS).map(|_| byte(&mut random, 128)).collect::<Vec<u8>>());
    let wide = [0, 1].map(|i: usize| rows[i].iter().map(|&v| u16::from(v) * 257).collect());
    (rows, wide)
}

/// Measures marking, checking, near lookups, clearing and the searches.
fn kernels(c: &mut Criterion) {
    let data = Data::new();
    let ([a, b], [wide_a, wide_b]) = pairs();
    let [marked, checked] = [&data.marked, &data.checked].map(|list| LookupList::new(list));
    let stages = CheckStages::new(&[(3, &data.checked)]);
    let lookups = |count: usize| Throughput::Elements((count * LANE_COUNT) as u64);
    let mut group = c.benchmark_group("kernel");
    for kernel in Kernel::available() {
        data.check(kernel);
        group.throughput(lookups(MARKED));
        let mut marks = Marks::new(SPREAD);
        group.bench_function(format!("mark {kernel}"), |bench| {
            bench.iter(|| data.window.mark(kernel, black_box(&marked), &mut marks));
        });
        group.throughput(lookups(CHECKED));
        group.bench_function(format!("check {kernel}"), |bench| {
            bench.iter(|| data.window.check(kernel, black_box(&marks), &stages));
        });
        let mut open = data.open(kernel, SPREAD);
        group.bench_function(format!("clear {kernel}"), |bench| {
            bench.iter(|| data.window.clear_hits(kernel, black_box(&checked), &mut open));
        });
        for (name, (near, keep)) in ["near", "near hits"].iter().zip(data.near_jobs()) {
            group.throughput(lookups(near.len()));
            let mut window = data.window.clone();
            let lanes = window.check(kernel, &Marks::new(SPREAD), &CheckStages::new(&[(keep, &[])]));
            let near = NearList::new(near);
            group.bench_function(format!("{name} {kernel}"), |bench| {
                bench.iter(|| window.near(kernel, black_box(&near), &lanes));
            });
        }
        group.throughput(Throughput::Elements(a.len() as u64));
        assert!(
            find_code_pair(kernel, &a, &b, 255).is_none() && find_code_pair(kernel, &a, &b, a[0] ^ b[0]).is_some(),
            "{kernel}: find_code_pair"
        );
        group.bench_function(format!("find {kernel}"), |bench| {
            bench.iter(|| find_code_pair(kernel, black_box(&a), &b, 255))
        });
        assert!(find_value_pair(kernel, &wide_a, &wide_b, 255 * 257).is_none(), "{kernel}: find_value_pair");
        group.bench_function(format!("find 16-bit {kernel}"), |bench| {
            bench.iter(|| find_value_pair(kernel, black_box(&wide_a), &wide_b, 255 * 257));
        });
        let mut wanted = vec![255, 254];
        find_code_pairs(kernel, &a, &b, &mut wanted);
        assert_eq!(wanted, [255, 254], "{kernel}: find_code_pairs");
        group.bench_function(format!("find two {kernel}"), |bench| {
            bench.iter(|| find_code_pairs(kernel, black_box(&a), &b, &mut wanted));
        });
    }
    group.finish();
}

/// Measures the comparison of all pairs with all open values, as in a game without a sparse space.
fn all_pairs(c: &mut Criterion) {
    /// Distance between two open values.
    const OPEN_DISTANCE: usize = 50;
    let mut random = Random::seeded(3);
    let mut group = c.benchmark_group("pairs");
    for kernel in Kernel::available() {
        // All values are even, so no odd value is an option.
        let mut even = |count: usize| -> Vec<u16> {
            (0..count).map(|_| 2 * u16::try_from(random.below(1024)).expect("16 bits")).collect()
        };
        let (parts, others) = (even(TILE_PAIR_COUNT), even(TILE_PAIR_COUNT + WIDE_LANE_COUNT - 1));
        let tile = Tile::new(kernel, &parts, &others);
        let mut open = [0; PAGE_WORD_COUNT];
        (1..64 * PAGE_WORD_COUNT).step_by(OPEN_DISTANCE).for_each(|v| open[v / 64] |= 1 << (v % 64));
        let mut lanes = [open; WIDE_LANE_COUNT];
        let option = usize::from(parts[7] ^ others[5 + 7]);
        lanes[5][option / 64] |= 1 << (option % 64);
        tile.clear_options(kernel, &mut lanes);
        assert_eq!(lanes, [open; WIDE_LANE_COUNT], "{kernel}");
        group.throughput(Throughput::Elements((TILE_PAIR_COUNT * WIDE_LANE_COUNT) as u64));
        group.bench_function(format!("open values {kernel}"), |bench| {
            bench.iter(|| black_box(&tile).clear_options(kernel, &mut lanes));
        });
    }
    group.finish();
}

/// Measures the recurrence kernel with the lookups of .106. The initial values are arbitrary; they hardly change the
/// time.
fn recurrence(c: &mut Criterion) {
    /// Number of values before the first one computed.
    const AT: usize = 4096;
    /// Number of values computed.
    const HEAPS: usize = 1 << 16;
    let offsets = [6, 10, 13, 29, 71, 87, 99, 104, 323, 348, 362, 476, 566, 996, 1106];
    let codes = [0, 1, 2, 3, 1, 4, 5, 4, 4, 4, 4, 5, 8, 8, 8];
    let lookups: Vec<(usize, u8)> = offsets.into_iter().zip(codes).collect();
    let list = RecurrenceList::new(&lookups);
    let known = (0..AT).map(|n| (n * n % 13).to_le_bytes()[0]);
    let window = CodeWindow { codes: known.chain([0; HEAPS]).collect(), at: AT };
    let run = |kernel: Kernel, mut window: CodeWindow| {
        assert_eq!(window.recurrence(kernel, &list, AT + HEAPS), AT + HEAPS);
        window.codes
    };
    let mut expected = window.codes.clone();
    for n in AT..AT + HEAPS {
        let is_hit = |code: u8| lookups.iter().any(|&(offset, other)| expected[n - offset] ^ other == code);
        expected[n] = (0..32).find(|&code| !is_hit(code)).expect("a code below 32");
    }
    let mut group = c.benchmark_group("recurrence");
    group.throughput(Throughput::Elements(HEAPS as u64));
    for kernel in Kernel::available() {
        assert!(run(kernel, window.clone()) == expected, "{kernel}");
        group.bench_function(kernel.name(), |b| {
            b.iter_batched(|| window.clone(), |window| run(kernel, window), BatchSize::SmallInput);
        });
    }
    group.finish();
}

/// Prints the lines of the cost constants.
fn constants(_: &mut Criterion) {
    let named = std::env::var("GRUNDY_BENCH_KERNEL").ok();
    let kernel = named.map_or_else(Kernel::best, |name| name.parse().expect("a kernel of this processor"));
    let data = Data::new();
    let per_lookup = |time: f64, count: usize| time / (count * LANE_COUNT) as f64;
    println!("kernel {kernel}");
    let marked = LookupList::new(&data.marked);
    for &codes in CODE_COUNTS {
        let mut marks = Marks::new(codes);
        let time = picoseconds(|| data.window.mark(kernel, black_box(&marked), &mut marks));
        report(&format!("mark_ps({codes})"), per_lookup(time, MARKED), mark_ps(codes), "ps");
    }
    let marks = data.marks(kernel, SPREAD);
    for &keep in KEPT_COUNTS {
        let [without, with] = [&[], &data.checked[..]].map(|lookups| CheckStages::new(&[(keep, lookups)]));
        let [without, with] = [without, with].map(|stages| {
            picoseconds(|| {
                black_box(data.window.check(kernel, black_box(&marks), &stages));
            })
        });
        report(&format!("check_ps({keep})"), per_lookup(with - without, CHECKED), check_ps(keep), "ps");
    }
    let mut open = data.open(kernel, SPREAD);
    let times = [1, CHECKED].map(|count| {
        let lookups = LookupList::new(&data.checked[..count]);
        picoseconds(|| data.window.clear_hits(kernel, black_box(&lookups), &mut open))
    });
    report("CLEAR_PS", per_lookup(times[1] - times[0], CHECKED - 1), CLEAR_PS, "ps");
    let ([a, b], _) = pairs();
    let compared = picoseconds(|| {
        black_box(find_code_pair(kernel, black_box(&a), &b, 255));
    });
    let mut seen = vec![false; 256];
    let entered = picoseconds(|| enter(black_box(&mut seen), &a, &b));
    report("ENTER_PAIRS", entered / compared, ENTERED_TO_COMPARED, "pairs compared per pair entered");
}

criterion_group! { name = benches; config = short(); targets = kernels, all_pairs, recurrence, constants }
criterion_main!(benches);

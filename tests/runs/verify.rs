//! The levels of `grundy verify`: each passes correct runs, finds the errors that its documentation states, and
//! reports their place.
//!
//! Extend this file for a level of `verify`, and `damage.rs` for damaged files of a run.

use crate::support::{Random, Tally, cases, grundy, run_well, status, text};
use grundy::checkpoint::testing::forge_run;
use grundy::error::{Damage, Error, Kind};
use grundy::kernel::Kernel;
use grundy::run::{Options, Run};
use grundy::solver::{self, Histogram, Method, SequenceStats, SparseSpace};
use grundy::table::Width;
use grundy::theory::definition::{self, Sequence};
use grundy::theory::rule::{Leaves, Move, Rule};
use grundy::verify::{self, Report, Target};
use rustix::process::{Pid, Signal, kill_process};
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

const LEVELS: [&str; 4] = ["digest", "exclusion", "recompute", "definition"];

fn rule(game: &str) -> Rule {
    game.parse().unwrap()
}

fn compute(dir: &Path, game: &str, to: u64, width: Width) {
    let method = Method::Sparse(Kernel::best());
    let options = Options { to: Some(to), threads: 2, method, width: Some(width), keep: None, rollback: false };
    Run::builder(&rule(game), dir).options(options).run().unwrap();
}

fn fast(game: &str, count: usize) -> Vec<u16> {
    solver::values(&rule(game), Method::Sparse(Kernel::best()), count).unwrap()
}

/// Nim with at most 700 tokens taken, and a split: values above 512, which have no byte codes, and a sparse space.
fn wide() -> Rule {
    let nim = (1..=700).flat_map(|s| [(s, Leaves::One), (s, Leaves::Nothing)]);
    let moves = nim.chain([(3, Leaves::Two { min_difference: 1 })]);
    let moves = moves.map(|(remove, leaves)| Move { remove, constant: 0, leaves });
    Rule::from_moves("wide", moves.collect()).unwrap()
}

/// The game's own space, or the best one of its values.
fn space(rule: &Rule, values: &[u16]) -> SparseSpace {
    let named = rule.known().and_then(|known| known.space);
    match named.and_then(|(mask, position)| SparseSpace::new(rule, mask, position)) {
        Some(space) => space,
        None => Histogram::of(&values).unwrap().best_space(rule).0,
    }
}

fn verified(dir: &Path, level: &str, more: &[&str]) -> Output {
    grundy(["verify", "--level", level]).arg(dir).args(more).output().unwrap()
}

fn level(dir: &Path, level: &str, range: Option<Range<u64>>) -> grundy::Result<Report> {
    let mut last = 0;
    let see = |done, all| {
        assert!(last <= done && done <= all, "{level}: progress from {last} to {done} of {all}");
        last = done;
    };
    match level {
        "digest" => verify::digest(dir, range, see),
        "exclusion" => verify::exclusion(dir, range, see),
        "recompute" => verify::recompute(dir, range, see),
        _ => verify::definition(dir, range, 5, 1, see),
    }
}

/// Results of both levels that check every value, for a sequence in memory under a space.
fn excluded(rule: &Rule, space: SparseSpace, values: &[u16], range: Range<u64>) -> grundy::Result<u64> {
    let stats = &SequenceStats::of(&values, space, &SequenceStats::default()).unwrap();
    verify::exclusion::check(Target { rule, space, values: &values, stats }, range, |_, _| {})
}

fn recomputed(rule: &Rule, space: SparseSpace, values: &[u16], range: Range<u64>) -> grundy::Result<solver::Work> {
    let stats = &SequenceStats::of(&values, space, &SequenceStats::default()).unwrap();
    let method = Method::Sparse(Kernel::scalar());
    verify::recompute::check(Target { rule, space, values: &values, stats }, method, range, |_, _| {})
}

/// The n of a failed check.
fn heap<T>(checked: grundy::Result<T>) -> Option<u64> {
    match checked {
        Ok(_) => None,
        Err(Error::Wrong { n, .. } | Error::Excluded { n, .. }) => Some(n),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn every_level_passes_correct_runs_on_any_range() {
    let tally = Tally::begin("verify: good runs");
    let random = &mut Random::new("good runs");
    let mut checked = 0;
    for (game, to, width) in [
        ("grundy", 30_000, Width::U8),
        ("0.6", 20_000, Width::U8), // with escapes
        ("0.6", 12_000, Width::U16),
        ("kayles", 20_000, Width::U8),
        ("0.106", 100_000, Width::U8),
        ("remove-a-square", 9000, Width::U8),
        ("grundy:d=3", 12_000, Width::U8),
        ("0.104", 30_000, Width::U16),
        ("0.054", 20_000, Width::U8),
        ("0.034", 20_000, Width::U8),
        ("0.004", 9000, Width::U8),
        ("grundy", 3000, Width::U8), // younger than any space
        ("0.07", 6000, Width::U8),   // without a space
        ("0.3", 5000, Width::U8),    // without splits
        ("kayles", 1, Width::U8),
    ] {
        let dir = tempfile::tempdir().unwrap();
        compute(dir.path(), game, to, width);
        let unnamed = rule(game).known().is_none_or(|known| known.space.is_none());
        let spaceless = unnamed && status(dir.path()).unwrap()["mask"] == 0;
        let cut = |random: &mut Random| {
            let (a, b) = (random.below(to), random.below(to));
            a.min(b)..a.max(b) + 1
        };
        let edges = [None, Some(0..1), Some(to - 1..to), Some(to / 2..to / 2)].into_iter();
        let ranges: Vec<_> = edges.chain((0..cases(4, 40)).map(|_| Some(cut(random)))).collect();
        for name in LEVELS {
            for range in ranges.clone() {
                let report = match level(dir.path(), name, range.clone()) {
                    Err(Error::NoSpace { .. }) if name == "exclusion" && spaceless => continue,
                    report => report.unwrap_or_else(|e| panic!("{game} {name} {range:?}: {e}")),
                };
                let expected_range = range.clone().unwrap_or(0..to);
                assert_eq!(report.unchecked, None);
                if name == "exclusion" || name == "recompute" {
                    let length = expected_range.end - expected_range.start;
                    assert_eq!(
                        (report.from, report.to, report.checked),
                        (expected_range.start, expected_range.end, length),
                        "{game}"
                    );
                }
                assert_eq!(report.kernel.is_some(), name == "recompute" || name == "definition");
                checked += 1;
            }
            match level(dir.path(), name, Some(0..to + 1)) {
                Err(Error::Range { .. }) => {}
                Err(Error::NoSpace { .. }) if name == "exclusion" && spaceless => {}
                other => panic!("{game} {name}: {other:?}"),
            }
        }
    }
    tally.end(checked, "every range of every game passed each of the levels");
}

/// The values of the options of n: those of pairs with one rare part and of moves without two heaps, and all of them.
fn options(rule: &Rule, space: SparseSpace, values: &[u16], n: usize) -> (Vec<u16>, Vec<u16>) {
    let is_rare = |m: usize| space.is_rare(values[m], m as u64);
    let mut one_rare: Vec<u16> = rule.single_options(n as u64, |m| values[m as usize]).collect();
    let mut all = one_rare.clone();
    for split in rule.splits() {
        for a in 1..n.saturating_sub(split.remove as usize) {
            let b = n - split.remove as usize - a;
            if b >= a && (b - a) as u64 >= split.min_difference {
                let option = split.constant ^ values[a] ^ values[b];
                all.push(option);
                if is_rare(a) != is_rare(b) {
                    one_rare.push(option);
                }
            }
        }
    }
    (one_rare, all)
}

/// One wrong value among correct ones: exclusion finds exactly what it states, including every value that is too low;
/// recomputing and the definition find all.
#[test]
fn a_wrong_value_is_found_as_each_level_states() {
    let tally = Tally::begin("verify: one wrong value");
    let random = &mut Random::new("one wrong value");
    let (mut low, mut high, mut high_found) = (0, 0, 0);
    for (game, count) in [
        ("grundy", 9000),
        ("0.6", 9000),
        ("0.106", 6000),
        ("remove-a-square", 6000),
        ("0.004", 6000),
        ("0.034", 6000),
        ("wide", 6000),
    ] {
        let rule = if game == "wide" { wide() } else { rule(game) };
        let right = solver::values(&rule, Method::Sparse(Kernel::best()), count).unwrap();
        let space = space(&rule, &right);
        let large = *right.iter().max().unwrap() >= space.coded();
        assert_eq!(large, game == "wide", "{game} is checked by codes or by values as it was meant");
        let top = right.iter().max().unwrap().next_power_of_two().max(16) * 2;
        for case in 0..cases(120, 3000) {
            let n = random.below(count as u64) as usize;
            let wrong = match case % 4 {
                0 if right[n] > 0 => random.below(right[n].into()) as u16,
                1 => random.below(top.into()) as u16,
                _ => right[n] ^ (1 << random.below(u64::from(top.ilog2()))),
            };
            if wrong == right[n] {
                continue;
            }
            let mut values = right.clone();
            values[n] = wrong;
            let place = n as u64..n as u64 + 1;
            let setting = format!("{game}: G({n}) = {} is {wrong}", right[n]);
            let (one_rare, all) = options(&rule, space, &values, n);
            assert_eq!(u32::from(right[n]), grundy::theory::nimber::mex(all.iter().copied()), "{setting}");
            let is_told = space.is_rare(wrong, n as u64) || one_rare.contains(&wrong);
            let found = heap(excluded(&rule, space, &values, place.clone()));
            assert_eq!(found, is_told.then_some(n as u64), "{setting}: exclusion");
            if wrong < right[n] {
                assert!(is_told, "{setting}: too low and not excluded");
                low += 1;
            } else {
                high += 1;
                high_found += u64::from(is_told);
            }
            let sampled = verify::sample(&rule, &values, &[n as u64], |_, _| {});
            assert_eq!(heap(sampled), Some(n as u64), "{setting}: definition");
            if case % 8 == 0 {
                assert_eq!(heap(recomputed(&rule, space, &values, place)), Some(n as u64), "{setting}: recompute");
                let whole = 0..count as u64;
                assert_eq!(heap(recomputed(&rule, space, &values, whole.clone())), Some(n as u64), "{setting}");
                // A wrong value may first contradict a later one.
                let found = heap(excluded(&rule, space, &values, whole));
                assert!(
                    found.is_none_or(|found| found >= n as u64) && found.is_some() >= is_told,
                    "{setting}: {found:?}"
                );
            }
        }
    }
    assert!(low > 100 && high_found * 100 > high * 60, "{low} too low, {high_found} of {high} too high");
    let seen = format!(
        "exclusion found all {low} too low and {high_found} of {high} too high ({} %), as stated; the others all",
        high_found * 100 / high
    );
    tally.end(low + high, &seen);
}

/// A run without witnesses writes the least common value where a smaller rare one is correct. Exclusion does not
/// detect this, as it states; recomputing does.
#[test]
fn missed_rare_position_is_found_only_by_recomputing() {
    let rule = rule("grundy");
    let right = fast("grundy", 20_000);
    let space = space(&rule, &right);
    let rares = (4096..20_000).filter(|&n| space.is_rare(right[n], n as u64));
    let mut tried = 0;
    for n in rares.step_by(9) {
        let (one_rare, _) = options(&rule, space, &right[..n], n);
        let missed = (0..).find(|&v| !space.is_rare(v, n as u64) && !one_rare.contains(&v)).unwrap();
        assert!(missed > right[n], "a rare position has a value below the least common one");
        // Later values computed from the wrong one.
        let mut poisoned = right[..n].to_vec();
        poisoned.push(missed);
        let method = Method::Sparse(Kernel::best());
        let poisoned = solver::extend(&rule, method, poisoned, n + 3000, |_| true).unwrap();
        let whole = 0..poisoned.len() as u64;
        assert_eq!(heap(excluded(&rule, space, &poisoned, whole.clone())), None, "{n}");
        assert_eq!(heap(recomputed(&rule, space, &poisoned, whole)), Some(n as u64));
        tried += 1;
    }
    assert!(tried > 10, "{tried} rare positions tried");
}

/// Several parts with several wrong values: the lowest n is reported, although later parts begin after wrong values.
#[test]
fn lowest_of_several_wrong_values_is_reported() {
    let tally = Tally::begin("verify: several parts");
    let random = &mut Random::new("several parts");
    let rule = rule("0.106");
    let right = fast("0.106", 12_000_000);
    let space = space(&rule, &right);
    let all = right.len() as u64;
    assert_eq!(heap(recomputed(&rule, space, &right, 12_345..all)), None);
    assert_eq!(heap(excluded(&rule, space, &right, 12_345..all)), None);
    let tried = cases(12, 100);
    for _ in 0..tried {
        let mut values = right.clone();
        let mut lowest = all;
        for _ in 0..1 + random.below(4) {
            let n = random.below(all);
            values[n as usize] ^= 1 << random.below(4);
            lowest = lowest.min(n);
        }
        let from = random.below(lowest + 1);
        assert_eq!(heap(recomputed(&rule, space, &values, from..all)), Some(lowest), "from {from}");
        let found = heap(excluded(&rule, space, &values, from..all));
        assert!(found.is_none_or(|n| n >= lowest), "{found:?} is right, {lowest} is the lowest that is wrong");
    }
    tally.end(tried, "recompute reported the lowest wrong value of parts computed in parallel");
}

/// Values with distant lookups, so that the window is drained in between.
#[test]
fn exclusion_finds_a_value_equal_to_an_option_anywhere() {
    let tally = Tally::begin("verify: exclusion far out");
    let random = &mut Random::new("exclusion far out");
    let rule = rule("grundy");
    let right = fast("grundy", 9_500_000); // with values above 255 from 7 250 049 on
    let space = space(&rule, &right);
    let known = SequenceStats::of(&right, space, &SequenceStats::default()).unwrap();
    let tried = cases(20, 300);
    for _ in 0..tried {
        let n = 1 + random.below(right.len() as u64 - 1);
        let (part, rare) = random.pick(&known.rare_positions[1..]);
        let Some(other) = n.checked_sub(part).filter(|&other| other > 0 && other != part) else { continue };
        let wrong = rare ^ right[other as usize];
        let mut values = right.clone();
        values[n as usize] = wrong;
        let checked = excluded(&rule, space, &values, n.saturating_sub(5_000_000)..right.len() as u64);
        assert_eq!(heap(checked), Some(n), "G({n}) = {} is {wrong}, as {part} + {other}", right[n as usize]);
    }
    assert_eq!(heap(excluded(&rule, space, &right, 1..right.len() as u64)), None);
    tally.end(tried, "the value of an option planted anywhere below 9 500 000 was found at its place");
}

/// One value is wrong, all later ones are computed from it, and journal and digest agree with them.
#[test]
fn consistent_wrong_run_passes_only_the_digest_level() {
    let tally = Tally::begin("verify: poisoned runs");
    let random = &mut Random::new("poisoned runs");
    let rule = rule("grundy");
    let right = fast("grundy", 12_000);
    let dirs = tempfile::tempdir().unwrap();
    let real = dirs.path().join("real");
    compute(&real, "grundy", 12_000, Width::U16);
    let record = grundy::checkpoint::journal::read(&real).unwrap().last;
    let space = space(&rule, &right);
    let tried = cases(6, 100);
    for case in 0..tried {
        let n = 4096 + random.below(7000) as usize;
        let mut poisoned = right[..n].to_vec();
        let wrong = (right[n] ^ (1 + random.below(63) as u16)).min(right[n].saturating_sub(1));
        poisoned.push(wrong);
        let method = Method::Sparse(Kernel::best());
        let poisoned = solver::extend(&rule, method, poisoned, right.len(), |_| true).unwrap();
        let known = SequenceStats::of(&poisoned, space, &SequenceStats::default()).unwrap();
        let fake = dirs.path().join(case.to_string());
        std::fs::create_dir(&fake).unwrap();
        let mut record = record.clone();
        (record.rares, record.last_rare) = (known.rare_positions.len() as u64, known.last_rare());
        record.max_value = known.max_value;
        record.max_at = poisoned.iter().position(|&v| v == known.max_value).unwrap() as u64;
        forge_run(&fake, &poisoned, record).unwrap();
        assert_eq!(level(&fake, "digest", None).unwrap().checked, 12_000);
        for name in ["exclusion", "recompute"] {
            assert_eq!(heap(level(&fake, name, None)), Some(n as u64), "G({n}) = {} is {wrong}: {name}", right[n]);
            level(&fake, name, Some(0..n as u64)).unwrap();
            level(&fake, name, Some(n as u64 + 1..12_000)).unwrap(); // right by the values before it, as they stand
        }
        if case == 0 {
            for name in ["exclusion", "recompute"] {
                let output = verified(&fake, name, &[]);
                let stderr = text(&output.stderr);
                assert_eq!(output.status.code(), Some(3), "{stderr}");
                assert!(output.stdout.is_empty() && stderr.contains(&format!("G({n}) = {wrong}")), "{stderr}");
            }
        }
    }
    tally.end(
        tried,
        "a value too low with all later ones computed from it: found at its place by exclusion and recompute",
    );
}

/// A byte altered on the disk is reported with its n, or as rare positions that differ from the journal.
#[test]
fn altered_byte_is_reported_by_n_or_as_differing_rare_positions() {
    let dir = tempfile::tempdir().unwrap();
    compute(dir.path(), "grundy", 9000, Width::U8);
    let path = dir.path().join("values.npy");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4096 + 5000] ^= 2;
    std::fs::write(&path, bytes).unwrap();
    for name in ["exclusion", "recompute"] {
        assert_eq!(heap(level(dir.path(), name, None)), Some(5000), "{name}");
        let elsewhere = level(dir.path(), name, Some(0..5000)).unwrap_err();
        assert!(elsewhere.kind() == Kind::Damage && elsewhere.to_string().contains("rare"), "{name}: {elsewhere}");
        let output = verified(dir.path(), name, &[]);
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(3) && stderr.contains("G(5000)"), "{stderr}");
        assert!(stderr.contains("grundy verify /") && stderr.contains("another directory"), "{stderr}");
    }
}

#[test]
fn exclusion_refuses_a_game_without_a_space_and_names_alternatives() {
    let dir = tempfile::tempdir().unwrap();
    run_well("0.07", dir.path(), &["--to", "6000"]);
    let output = verified(dir.path(), "exclusion", &[]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("0.07") && stderr.contains("recompute"), "{stderr}");
    let output = verified(dir.path(), "recompute", &["--json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["checked"], &report["kernel"]), (&6000.into(), &Kernel::best().other().name().into()));
}

#[test]
fn recomputing_uses_a_different_kernel_than_the_run() {
    for kernel in Kernel::available() {
        let dir = tempfile::tempdir().unwrap();
        run_well("grundy", dir.path(), &["--to", "9000", "--kernel", kernel.name()]);
        let report = level(dir.path(), "recompute", None).unwrap();
        let other = Kernel::available().into_iter().find(|other| *other != kernel).unwrap_or(kernel);
        assert_eq!(report.kernel.as_deref(), Some(other.name()));
    }
}

#[test]
fn recomputing_uses_a_different_kernel_for_each_kernel_of_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let kernels = Kernel::available();
    let mut to = 0;
    for kernel in &kernels {
        to += 9000;
        run_well("grundy", dir.path(), &["--to", &to.to_string(), "--kernel", kernel.name()]);
    }
    for (i, kernel) in (0..).zip(kernels) {
        let report = level(dir.path(), "recompute", Some(9000 * i + 10..9000 * (i + 1) - 10)).unwrap();
        assert_eq!(report.kernel.as_deref(), Some(kernel.other().name()));
    }
}

#[test]
fn no_level_writes_or_needs_write_permission() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    compute(&dir, "0.6", 9000, Width::U8);
    let names = ["values.npy", "escapes.npy", "journal.jsonl"];
    let state = || names.map(|name| std::fs::metadata(dir.join(name)).unwrap().modified().unwrap());
    names.iter().for_each(|name| mode(&dir.join(name), 0o444));
    mode(&dir, 0o555);
    let before = state();
    for name in LEVELS {
        let output = verified(&dir, name, &[]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", text(&output.stderr));
    }
    assert_eq!(state(), before);
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), names.len());
    mode(&dir, 0o755);
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn all_levels_pass_during_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let mut going = grundy(["-q", "run", "grundy", "--threads", "1", "--dir"])
        .arg(dir.path())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while status(dir.path()).is_none_or(|status| status["count"].as_u64().unwrap() < 4096) {
        assert!(going.try_wait().unwrap().is_none(), "the run goes on until it is stopped");
        std::thread::sleep(Duration::from_millis(50));
    }
    for round in 0..cases(2, 20) {
        for name in LEVELS {
            let output =
                verified(dir.path(), name, if name == "recompute" { &["--range", "1000..200000"] } else { &[] });
            assert_eq!(output.status.code(), Some(0), "round {round}, {name}: {}", text(&output.stderr));
        }
    }
    assert!(going.try_wait().unwrap().is_none(), "still going on");
    kill_process(Pid::from_child(&going), Signal::TERM).unwrap();
    assert_eq!(going.wait().unwrap().code(), Some(130));
}

/// .106 with a segment discarded between the first 2^26 values and the last ones, and three segments hashed in
/// parallel.
#[test]
fn kept_values_are_checked_and_wrong_ones_reported() {
    const TO: u64 = 90_000_000;
    const FREED: Range<u64> = 1 << 26..(1 << 26) + (1 << 24);
    let random = &mut Random::new("kept");
    let dir = tempfile::tempdir().unwrap();
    run_well("0.106", dir.path(), &["--to", "85000000", "--keep", "140000"]);
    run_well("0.106", dir.path(), &["--to", "90000000", "--keep", "140000"]);
    assert_eq!(grundy::run::RunReader::open(dir.path()).unwrap().discarded(), FREED);
    for (name, reach) in [("exclusion", 1103 + 3), ("recompute", 1 << 17)] {
        let report = level(dir.path(), name, None).unwrap();
        let (from, to) = report.unchecked.unwrap();
        assert_eq!(from, FREED.start, "{name}");
        assert!((FREED.end + reach..FREED.end + 2 * reach).contains(&to), "{name}: {to}");
        assert_eq!((report.from, report.to, report.checked), (0, TO, TO - (to - from)), "{name}");
        for bad in [0..TO, FREED.start..FREED.start + 1, to - 1..to, FREED.end..TO] {
            assert!(
                matches!(level(dir.path(), name, Some(bad.clone())), Err(Error::Discarded { .. })),
                "{name} {bad:?}"
            );
        }
        for good in [to..to + 1, to + 1000..TO, FREED.start - 1000..FREED.start] {
            level(dir.path(), name, Some(good.clone())).unwrap_or_else(|e| panic!("{name} {good:?}: {e}"));
        }
    }
    let path = dir.path().join("values.npy");
    let (before, after) = (random.below(FREED.start), FREED.end + 400_000 + random.below(TO - FREED.end - 400_000));
    // One of the two in each test run, both with GRUNDY_LONG=1.
    let places = if cases(0, 1) == 1 { vec![before, after] } else { vec![random.pick(&[before, after])] };
    for place in places {
        let byte = 4096 + place;
        let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let mut good = [0];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut good, byte).unwrap();
        // A bit outside the mask 0xd of the space: the class stays.
        std::os::unix::fs::FileExt::write_all_at(&file, &[good[0] ^ 2], byte).unwrap();
        assert_eq!(heap(level(dir.path(), "recompute", None)), Some(place));
        let digest = level(dir.path(), "digest", None).unwrap_err();
        let Error::Damage { offset, damage: Damage::Digest { to, .. }, .. } = digest else { panic!("{digest}") };
        assert!((offset..4096 + to).contains(&byte), "{place}: {digest}");
        std::os::unix::fs::FileExt::write_all_at(&file, &good, byte).unwrap();
    }
    assert!(level(dir.path(), "digest", None).is_ok());
}

/// The sample of a seed is the same on any number of threads, and its values are correct.
#[test]
fn sampled_values_equal_the_definition() {
    let values = definition::values(&rule("0.6"), 3000).unwrap();
    let heaps: Vec<u64> = (0..values.as_slice().len() as u64).collect();
    let mut reports = Vec::new();
    verify::sample(&rule("0.6"), &values, &heaps, |done, all| reports.push((done, all))).unwrap();
    assert_eq!(reports.last(), Some(&(3000, 3000)));
    let sequence: &dyn Sequence = &Holding(values);
    verify::sample(&rule("0.6"), sequence, &heaps[2990..], |_, _| {}).unwrap();
}

/// A sequence behind a pointer, as other callers may have.
struct Holding(Vec<u16>);

impl Sequence for Holding {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, from: u64, out: &mut [u16]) -> grundy::Result<()> {
        self.0.as_slice().read(from, out)
    }
}

/// All checks pass here. If a run cannot be written, the lines and the exit status report it.
#[test]
fn self_test_passes_and_reports_failures() {
    let output = grundy(["selftest", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["ok"], true);
    assert!(report["checks"].as_array().unwrap().iter().all(|check| check["ok"] == true), "{report}");
    let scratch = tempfile::tempdir().unwrap();
    let nowhere = scratch.path().join("nowhere");
    let output = grundy(["selftest"]).env("TMPDIR", &nowhere).output().unwrap();
    let stdout = text(&output.stdout);
    // Nothing is wrong with the program or the processor.
    assert_eq!(output.status.code(), Some(1), "{stdout}");
    let failed: Vec<&str> = stdout.lines().filter(|line| line.starts_with("FAILED")).collect();
    assert!(failed.len() == 3 && failed.iter().all(|line| line.contains("set TMPDIR")), "{stdout}");
    assert!(stdout.lines().filter(|line| line.starts_with("ok")).count() > 10, "{stdout}");
}

//! Certificates: a correct one passes with every kernel. With any field altered and the seal recomputed, it is
//! refused, or its statement is still true. No file makes the check read, compute or wait without bound.
//!
//! Extend this file for the contents and the check of a certificate, and `period.rs` for the proof that it states.

use crate::support::{Random, cases, fails, grundy, output_of, text};
use grundy::kernel::Kernel;
use grundy::period::certificate::{Certificate, WindowFacts};
use grundy::period::{MemorySearch, Theorem};
use grundy::solver::{Method, SparseSpace};
use grundy::theory::rule::Rule;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

fn methods() -> Vec<Method> {
    crate::support::kernels().iter().filter_map(|name| name.parse().ok()).map(Method::Sparse).collect()
}

fn best() -> Method {
    Method::Sparse(Kernel::best())
}

/// The certificate of a game, as `grundy period` creates it, and the values that the search computed.
fn certificate_of(game: &str, method: Method, to: u64) -> (Certificate, Vec<u16>) {
    let rule: Rule = game.parse().unwrap();
    let mut search = MemorySearch::new(&rule, method);
    assert!(search.until_proved(to, |_| true).unwrap());
    let repeat = search.finding().unwrap().repeat.as_ref().unwrap();
    let certificate = Certificate::new(search.subject(), repeat, None).unwrap().unwrap();
    (certificate, search.values().to_vec())
}

/// .56 is proved by P4: its values repeat from 326640 on, and P1 would need twice as many.
fn by_window() -> (Certificate, Vec<u16>) {
    let (certificate, values) = certificate_of(".56", best(), 1 << 20);
    assert_eq!((certificate.theorem, certificate.period, certificate.preperiod), (Theorem::P4, 144, 326_640));
    (certificate, values)
}

/// The reason why an altered certificate is refused; `None` if it passes.
fn refusal(certificate: &Certificate, values: &[u16], change: impl FnOnce(&mut Certificate)) -> Option<String> {
    let mut altered = certificate.clone();
    change(&mut altered);
    let altered = altered.sealed();
    let checked = Certificate::parse(altered.to_json()).and_then(|read| read.check(best(), &values));
    checked.err().map(|error| error.to_string())
}

#[test]
fn correct_certificate_passes_with_any_kernel_and_thread_count() {
    for game in [".56", ".156", "remove-a-square", "4.3"] {
        for made_by in methods() {
            let (certificate, values) = certificate_of(game, made_by, 1 << 20);
            for (threads, checked_by) in [1, 2, 5].into_iter().flat_map(|t| methods().into_iter().map(move |m| (t, m)))
            {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let checked = pool.install(|| certificate.check(checked_by, &values));
                assert!(checked.is_ok(), "{game}: {made_by:?}, {checked_by:?}, {threads} threads: {checked:?}");
            }
        }
    }
}

#[test]
fn each_altered_field_is_refused_and_named() {
    type Change = fn(&mut Certificate);
    let changes: [(&str, Change); 33] = [
        ("format", |c| c.format = "grundy-certificate-2".into()),
        ("program", |c| c.program.clear()),
        ("program", |c| c.program = "g".repeat(129)),
        ("program", |c| c.program = "grundy\u{1b}[31m".into()),
        ("rule", |c| c.game = "0.77".into()),
        ("game", |c| c.game = "0.G".into()),
        ("rule", |c| c.rule = c.rule.replace(|c: char| c.is_ascii_digit(), "0")),
        ("theorem", |c| c.theorem = Theorem::P2),
        ("period", |c| c.period = 0),
        ("period", |c| c.period = u64::MAX),
        ("least", |c| c.period += 1),
        ("least", |c| c.period -= 1),
        ("least", |c| c.period *= 2),
        ("preperiod", |c| c.preperiod += 1),
        ("preperiod", |c| c.preperiod = u64::MAX),
        ("from", |c| c.from += 1),
        ("from", |c| c.from -= 1),
        ("from", |c| c.from = 0),
        ("from", |c| c.from = u64::MAX),
        ("checked_through", |c| c.checked_through += 1),
        ("checked_through", |c| c.checked_through -= 1),
        ("checked_through", |c| c.checked_through = 1 << 62),
        ("digest", |c| c.digest = c.rule.clone()),
        ("digest", |c| c.digest = "0x12".into()),
        ("max_value", |c| c.max_value += 1),
        ("max_value", |c| c.max_value -= 1),
        ("max_value", |c| c.max_value = 0),
        ("max_at", |c| c.max_at += 1),
        ("max_at", |c| c.max_at -= 1),
        ("max_at", |c| c.max_at = u64::MAX),
        ("least", |c| c.least.clear()),
        ("least", |c| c.least[0].0 += 2),
        ("least", |c| c.least[0].1 = 0),
    ];
    let (good, values) = certificate_of(".156", best(), 1 << 16);
    assert_eq!(good.theorem, Theorem::P1);
    for (i, (field, change)) in changes.into_iter().enumerate() {
        let what = refusal(&good, &values, change).unwrap_or_else(|| panic!("change {i} of {field} passes"));
        // The message may name another field that no longer agrees: the check compares all fields before it computes a
        // value.
        let named = what.contains(field) || what.contains("checked_through") || what.contains("theorem");
        assert!(named, "change {i} of {field}: {what}");
    }
    // A constant stretch of values does not determine the least period.
    let (n0, p) = (good.preperiod, good.period);
    let equal = (n0..).find(|&n| values[n as usize] == values[(n + p / good.least[0].0) as usize]).unwrap();
    let what = refusal(&good, &values, |c| c.least[0].1 = equal).unwrap();
    assert!(what.contains("least is false"), "{what}");
    let facts = by_window().0.window;
    let what = refusal(&good, &values, |c| c.window = facts).unwrap();
    assert!(what.contains("window"), "{what}");
}

#[test]
fn each_altered_field_of_a_window_is_refused_and_named() {
    let (good, values) = by_window();
    let window = good.window.clone().unwrap();
    type Change = fn(&mut WindowFacts);
    let changes: [(&str, Change); 20] = [
        ("window.to", |w| w.to += 2),
        ("window.to", |w| w.to -= 2),
        ("window.to", |w| w.to = u64::MAX),
        ("window", |w| w.mask = 0),
        ("window", |w| w.mask ^= 1),
        ("window", |w| w.mask ^= 2),
        ("window", |w| w.position ^= 1),
        ("window", |w| w.position = 7),
        ("window.rares", |w| w.rares += 1),
        ("window.rares", |w| w.rares -= 1),
        ("window.rares", |w| w.rares = 0),
        ("window.rares", |w| w.rares = u64::MAX),
        ("window.last_rare", |w| w.last_rare += 1),
        ("window.last_rare", |w| w.last_rare -= 1),
        ("window.last_rare", |w| w.last_rare = u64::MAX),
        ("window.rares_digest", |w| w.rares_digest = "0".repeat(64)),
        ("window.rares_digest", |w| w.rares_digest.clear()),
        ("window.depth", |w| w.depth = 0),
        ("window.depth", |w| w.depth = 1 << 40),
        ("window.depth", |w| w.depth = u64::MAX),
    ];
    for (i, (field, change)) in changes.into_iter().enumerate() {
        let mut facts = window.clone();
        change(&mut facts);
        let what = refusal(&good, &values, |c| c.window = Some(facts));
        let what = what.unwrap_or_else(|| panic!("change {i} of {field} passes"));
        assert!(what.contains(field), "change {i} of {field}: {what}");
    }
    for (field, change) in [
        ("window", (|c| c.window = None) as fn(&mut Certificate)),
        ("window", |c| c.theorem = Theorem::P1),
        ("window.to", |c| c.from += 2),
        ("window.to", |c| c.from = 0),
        ("from", |c| c.from = u64::MAX),
        ("period is false", |c| c.preperiod -= 1),
        ("preperiod", |c| c.preperiod += 1),
    ] {
        let what = refusal(&good, &values, change).unwrap_or_else(|| panic!("{field} passes"));
        assert!(what.contains(field), "{field}: {what}");
    }
    // A window farther out than any search places it, though its statement may be true.
    let what = refusal(&good, &values, |c| {
        (c.from, c.checked_through) = (1 << 50, (1 << 50) + 144);
        c.window.as_mut().unwrap().to = c.checked_through;
    });
    assert!(what.as_ref().is_some_and(|what| what.contains("its from")), "{what:?}");
}

/// Whether each value that is rare at a position of the window, and below the value there, is an option with a part of
/// at most `depth`, as P4 states it.
fn lies_within(rule: &Rule, space: SparseSpace, values: &[u16], heaps: std::ops::Range<u64>, depth: u64) -> bool {
    let value = |n: u64| values[usize::try_from(n).unwrap()];
    heaps.into_iter().all(|n| {
        let mut options: std::collections::HashSet<u16> = rule.single_options(n, value).collect();
        for split in rule.splits() {
            let parts = 1..=split.largest_small_part(n).min(depth);
            options.extend(parts.map(|a| split.constant ^ value(a) ^ value(n - split.remove - a)));
        }
        (0..value(n)).all(|target| !space.is_rare(target, n) || options.contains(&target))
    })
}

#[test]
fn depth_is_accepted_iff_all_witnesses_lie_within_it() {
    let (good, values) = by_window();
    let rule = good.the_rule().unwrap();
    let window = good.window.clone().unwrap();
    let space = SparseSpace::new(&rule, window.mask, window.position).unwrap();
    let is_true = |depth| lies_within(&rule, space, &values, good.from..window.to, depth);
    let deepest = (0..).find(|&depth| is_true(depth)).unwrap();
    assert!(deepest > 1 && deepest <= window.depth, "{deepest} of {}", window.depth);
    for depth in [0, 1, deepest - 1, deepest, deepest + 1, window.depth, window.depth + 1] {
        let what = refusal(&good, &values, |c| c.window.as_mut().unwrap().depth = depth);
        assert_eq!(what.is_none(), depth >= deepest, "depth {depth}, where {deepest} is true: {what:?}");
        assert!(what.is_none_or(|what| what.contains("window.depth") && what.contains("no option of")), "{depth}");
    }
}

/// Whether a certificate is true, given a true certificate of the same values.
fn is_true(certificate: &Certificate, good: &Certificate, values: &[u16]) -> bool {
    let rule = good.the_rule().unwrap();
    let least = certificate.least.iter().zip(&good.least).all(|(&(f, n), &(g, _))| {
        let other = usize::try_from(n + certificate.period / f).unwrap();
        f == g && n >= good.preperiod && values[usize::try_from(n).unwrap()] != values[other]
    });
    let window = match (&certificate.window, &good.window) {
        (Some(w), Some(g)) => {
            let space = SparseSpace::new(&rule, w.mask, w.position).unwrap();
            let other = SparseSpace::new(&rule, g.mask, g.position).unwrap();
            let same = (0..).zip(values).all(|(n, &v)| space.is_rare(v, n) == other.is_rare(v, n));
            let facts = WindowFacts { mask: g.mask, position: g.position, depth: g.depth, ..w.clone() };
            same && facts == *g && lies_within(&rule, space, values, certificate.from..w.to, w.depth)
        }
        (one, other) => one == other,
    };
    let Certificate { program, least: theirs, window: facts, seal, .. } = certificate.clone();
    let rest = Certificate { program, least: theirs, window: facts, seal, ..good.clone() };
    least && window && rest == *certificate
}

/// A random number, often near the given one.
fn other_number(random: &mut Random, number: u64) -> u64 {
    match random.below(8) {
        0 => number.wrapping_add(1),
        1 => number.wrapping_sub(1),
        2 => number.wrapping_mul(2),
        3 => number / 2,
        4 => number ^ (1 << random.below(64)),
        5 => random.below(1000),
        6 => number.wrapping_add(random.below(300)),
        _ => random.next(),
    }
}

fn mutate(random: &mut Random, c: &mut Certificate) {
    let window = c.window.as_mut();
    match random.below(20) {
        0 => c.period = other_number(random, c.period),
        1 => c.preperiod = other_number(random, c.preperiod),
        2 => c.from = other_number(random, c.from),
        3 => c.checked_through = other_number(random, c.checked_through),
        4 => c.max_value = other_number(random, c.max_value.into()).to_le_bytes()[0].into(),
        5 => c.max_at = other_number(random, c.max_at),
        6 => c.theorem = random.pick(&[Theorem::P1, Theorem::P2, Theorem::P3, Theorem::P4]),
        7 => c.game = random.pick(&["0.77", "0.56", "0.156", "remove-a-square", "grundy"]).into(),
        8 => std::mem::swap(&mut c.digest, &mut c.rule),
        9 => c.least.truncate(usize::try_from(random.below(2)).unwrap()),
        10 | 11 => {
            let all = c.least.len() as u64;
            if let Some(pair) = c.least.get_mut(usize::try_from(random.below(all.max(1))).unwrap()) {
                let number = if random.below(4) == 0 { &mut pair.0 } else { &mut pair.1 };
                *number = other_number(random, *number);
            }
        }
        12 => c.window = None,
        // Changes two fields that must agree together.
        13 => {
            let more = 2 * random.below(1000);
            (c.from, c.checked_through) = (c.from.wrapping_add(more), c.checked_through.wrapping_add(more));
            if let Some(window) = &mut c.window {
                window.to = c.checked_through;
            }
        }
        which => {
            let Some(window) = window else { return };
            match which {
                14 => window.to = other_number(random, window.to),
                15 => window.mask ^= 1 << random.below(16),
                16 => window.position ^= 1,
                17 => window.rares = other_number(random, window.rares),
                18 => window.last_rare = other_number(random, window.last_rare),
                _ => window.depth = other_number(random, window.depth),
            }
        }
    }
}

/// Alters fields at random and recomputes the seal.
#[test]
fn randomly_altered_certificate_is_refused_or_still_true() {
    let mut random = Random::new("altered certificates");
    let all =
        [by_window(), certificate_of(".156", best(), 1 << 16), certificate_of("remove-a-square", best(), 1 << 16)];
    let (mut refused, mut passed) = (0, 0);
    for i in 0..cases(3000, 100_000) {
        let (good, values) = &all[usize::try_from(i % 3).unwrap()];
        let mut altered = good.clone();
        for _ in 0..1 + random.below(3) {
            mutate(&mut random, &mut altered);
        }
        let altered = Certificate::parse(altered.sealed().to_json()).unwrap();
        // As the command does: it computes nothing for a certificate that the check refuses without values. A longer
        // range than these values counts as not true, because its digest is unknown.
        let judged = altered.judge().is_ok() && altered.checked_through <= values.len() as u64;
        if judged && altered.check(best(), values).is_ok() {
            assert!(is_true(&altered, good, values), "{}", altered.to_json());
            passed += 1;
        } else {
            assert!(altered.sealed() != *good, "an unaltered certificate is refused");
            refused += 1;
        }
    }
    assert!(refused > 1000 && passed > 10, "{refused} refused, {passed} passed");
}

#[test]
fn a_forged_period_of_any_size_is_judged_at_once() {
    let (good, _) = certificate_of("kayles", best(), 1 << 12);
    let begun = Instant::now();
    // Primes near 2^63 and 2^62, a product of two primes near 2^31, and powers of two.
    let semiprime = 2_147_483_647 * 2_147_483_629;
    for p in [9_223_372_036_854_775_783, 4_611_686_018_427_387_847, semiprime, 1 << 62, u64::MAX] {
        for least in [vec![], vec![(p, 71)], vec![(2, 71)], vec![(2_147_483_629, 71), (2_147_483_647, 71)]] {
            let checked_through = 2_u64.wrapping_mul(p).wrapping_add(2 * 71 + 2);
            let forged = Certificate { period: p, least: least.clone(), checked_through, ..good.clone() };
            let judged = forged.sealed().judge();
            let is_list = match &least[..] {
                [(f, _)] => *f == p && p != semiprime && p % 2 == 1 && p != u64::MAX || p == 1 << 62 && *f == 2,
                [_, _] => p == semiprime,
                _ => false,
            };
            let fits = 2_u64.checked_mul(p).and_then(|twice| twice.checked_add(2 * 71 + 2)) == Some(checked_through);
            assert_eq!(judged.is_ok(), is_list && fits, "{p}, {least:?}: {judged:?}");
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

fn write(path: &Path, certificate: Certificate) -> String {
    std::fs::write(path, certificate.sealed().to_json()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Runs `grundy verify FILE` with this directory for temporary files.
fn verify(file: &str, place: &Path) -> (Option<i32>, String, String) {
    let output = grundy(["verify", file]).env("TMPDIR", place).stdin(Stdio::null()).output().unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn command_checks_before_computing_and_states_the_amount_computed() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| -> PathBuf { home.path().join(name) };
    let (good, _) = certificate_of("kayles", best(), 1 << 12);
    let (status, stdout, stderr) = verify(&write(&at("good"), good.clone()), home.path());
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stdout.contains("period 12, preperiod 71") && stderr.contains("computing 168 values of 0.77"), "{stderr}");
    for checked_through in [1 << 29, 1 << 45, u64::MAX] {
        let forged = Certificate { checked_through, ..good.clone() };
        let (status, stdout, stderr) = verify(&write(&at("forged"), forged), home.path());
        assert_eq!((status, stdout.as_str()), (Some(3), ""), "{stderr}");
        assert!(stderr.contains("its checked_through") && !stderr.contains("computing"), "{stderr}");
    }
    // Only its values contradict this certificate. The command announces the computation, and it fits no disk.
    let preperiod = 1 << 60;
    let least = good.least.iter().map(|&(f, _)| (f, preperiod)).collect();
    let forged =
        Certificate { preperiod, from: preperiod, least, checked_through: 2 * preperiod + 24 + 2, ..good.clone() };
    let place = at("place");
    std::fs::create_dir(&place).unwrap();
    // A directory that a killed process left is removed; foreign ones are not touched.
    std::fs::create_dir(place.join("grundy-verify-foreign")).unwrap();
    let (status, stdout, stderr) = verify(&write(&at("forged"), forged), &place);
    assert_eq!((status, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(stderr.contains("computing 2,305,843,009,213,693,978 values") && stderr.contains("no room"), "{stderr}");
    let left: Vec<_> = std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["grundy-verify-foreign"]);
}

#[test]
fn reading_a_certificate_is_bounded_for_any_file() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let begun = Instant::now();
    fails(1, &["verify", "/dev/zero"], &["/dev/zero", "neither a file nor a pipe"]);
    fails(1, &["verify", &at("typo.json")], &["typo.json", "no such file"]);
    assert!(!text(&output_of(&["verify", &at("typo.json")]).stderr).contains("would make one"));
    std::fs::write(at("long"), vec![b' '; (1 << 20) + 1]).unwrap();
    fails(3, &["verify", &at("long")], &["long", "1048576 bytes", "'grundy period GAME --certificate FILE' wrote"]);
    std::fs::write(at("text"), "a -> b\n").unwrap();
    fails(3, &["verify", &at("text")], &["text: it is not a certificate: not JSON at line 1", "period GAME"]);
    std::fs::write(at("bfile"), "0 0\n1 1\n").unwrap();
    fails(
        3,
        &["verify", &at("bfile")],
        &["bfile: it is not a certificate: not a JSON object", "'grundy check GAME FILE'"],
    );
    std::fs::File::create(at("hole")).unwrap().set_len(1 << 40).unwrap();
    fails(3, &["verify", &at("hole")], &["hole", "1048576 bytes"]);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    // A pipe is read like a file, up to the same limit.
    let (good, _) = certificate_of("kayles", best(), 1 << 12);
    for (bytes, status) in [(good.to_json().into_bytes(), 0), (vec![b'['; 3 << 20], 3)] {
        let mut child = crate::support::start(grundy(["-q", "verify", "/dev/stdin"]).stdin(Stdio::piped()));
        let mut pipe = child.stdin.take().unwrap();
        let _ = pipe.write_all(&bytes); // the reader may have left
        drop(pipe);
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(status));
    }
}

#[test]
fn certificate_passes_and_any_changed_number_is_refused() {
    for game in ["kayles", ".156", "remove-a-square", "4.3", "0.0"] {
        let (certificate, values) = certificate_of(game, best(), 1 << 16);
        certificate.check(best(), &values).unwrap();
        let text = certificate.to_json();
        assert_eq!(Certificate::parse(&text).unwrap(), certificate);
        let mut changed = 0;
        for (at, digit) in text.char_indices().filter(|(_, c)| c.is_ascii_hexdigit()) {
            for other in ["0", "1", "7", "9"] {
                if other == digit.to_string() {
                    continue;
                }
                let mut altered = text.clone();
                altered.replace_range(at..=at, other);
                assert!(Certificate::parse(&altered).is_err(), "{game}: {at} of {text}");
                changed += 1;
            }
        }
        assert!(changed > 500, "{changed}");
    }
}

/// A forger can change a number and recompute the seal. The check of the number itself must then fail.
#[test]
fn wrong_certificate_with_a_recomputed_seal_is_refused() {
    let (good, values) = certificate_of(".156", best(), 1 << 16);
    type Change = fn(&mut Certificate);
    let changes: [(&str, Change); 15] = [
        ("period doubled", |c| c.period *= 2),
        ("period + 1", |c| c.period += 1),
        ("period 0", |c| c.period = 0),
        ("preperiod + 1", |c| c.preperiod += 1),
        ("preperiod - 1", |c| c.preperiod -= 1),
        ("from + 1", |c| c.from += 1),
        ("from 0", |c| c.from = 0),
        ("fewer values", |c| c.checked_through -= 1),
        ("more values", |c| c.checked_through += 1),
        ("largest", |c| c.max_value += 1),
        ("where", |c| c.max_at += 1),
        ("digest", |c| c.digest = c.digest.replace('a', "b")),
        ("no witness", |c| c.least.clear()),
        ("witness", |c| c.least[0].1 = 0),
        ("another game", |c| c.game = "0.77".into()),
    ];
    for (what, change) in changes {
        let mut wrong = good.clone();
        change(&mut wrong);
        let wrong = wrong.sealed();
        let wrong = Certificate::parse(wrong.to_json()).unwrap();
        assert!(wrong.check(best(), &values).is_err(), "{what}");
    }
    for theorem in [Theorem::P2, Theorem::P3, Theorem::P4] {
        let wrong = Certificate { theorem, ..good.clone() }.sealed();
        assert!(wrong.check(best(), &values).is_err(), "{theorem}");
    }
    // Values of a different sequence.
    let mut off = values.clone();
    off[100] ^= 1;
    assert!(good.check(best(), &off).is_err());
}

#[test]
fn no_number_in_a_certificate_panics() {
    let (certificate, values) = certificate_of(".56", best(), 1 << 20);
    assert_eq!(certificate.theorem, Theorem::P4);
    certificate.check(best(), &values).unwrap();
    let window = certificate.window.clone().unwrap();
    // A greater depth states less and is true if the windows agree; depth 0 is false.
    for (depth, good) in
        [(0, false), (window.depth + 1, true), (1 << 40, false), (u64::MAX - 1, false), (u64::MAX, false)]
    {
        let other = Certificate { window: Some(WindowFacts { depth, ..window.clone() }), ..certificate.clone() };
        assert_eq!(other.sealed().check(best(), &values).is_ok(), good, "depth {depth}");
    }
    for (rares, last_rare, to) in [
        (window.rares + 1, window.last_rare, window.to),
        (window.rares, window.last_rare + 1, window.to),
        (window.rares, window.last_rare, window.to + 1),
    ] {
        let facts = WindowFacts { rares, last_rare, to, ..window.clone() };
        let wrong = Certificate { window: Some(facts), ..certificate.clone() }.sealed();
        assert!(wrong.check(best(), &values).is_err());
    }
}

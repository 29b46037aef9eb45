//! Proofs of periods: published ones are found, proved and minimal; near misses are not proved; games without a known
//! period have none.
//!
//! Extend this file for a theorem or its search, `certificates.rs` for certificates, and `tests/runs/period_runs.rs`
//! for `grundy period` in run directories.

use crate::support::{Random, Tally, cases, grundy, json_of, reply, text};
use grundy::kernel::Kernel;
use grundy::period::certificate::Certificate;
use grundy::period::{Finding, MemorySearch, PeriodWindow, Status, Subject, Theorem};
use grundy::solver::{self, Method, SequenceStats, SparseSpace};
use grundy::theory::definition;
use grundy::theory::rule::{Leaves, Move, Rule};
use std::process::Stdio;
use std::time::Duration;

fn rule(game: &str) -> Rule {
    game.parse().unwrap()
}

fn best() -> Method {
    Method::Sparse(Kernel::best())
}

fn find(rule: &Rule, space: SparseSpace, values: &[u16]) -> Finding {
    Subject { rule, method: best(), space, values: &values, freed: &SequenceStats::default() }.find().unwrap()
}

/// (period, preperiod) of a finite sequence by the definition: the least p for which the values repeat from the least
/// n0 on, where `enough(n0, p)` values must exist.
fn plainly(values: &[u16], enough: impl Fn(usize, usize) -> usize) -> Option<(u64, u64)> {
    let n = values.len();
    (1..n).find_map(|p| {
        let n0 = (0..n - p).rev().find(|&i| values[i] != values[i + p]).map_or(0, |i| i + 1);
        (enough(n0, p) <= n).then_some((p as u64, n0 as u64))
    })
}

/// The finding of a search in memory.
fn search(rule: &Rule, to: u64) -> (Finding, SparseSpace) {
    let mut search = MemorySearch::new(rule, best());
    assert!(search.until_proved(to, |_| true).unwrap());
    (search.finding().unwrap().clone(), search.space())
}

fn found(finding: &Finding) -> Option<(u64, u64)> {
    finding.repeat.as_ref().map(|repeat| (repeat.period, repeat.preperiod))
}

#[test]
fn published_periods_are_found_and_proved() {
    let text = std::fs::read_to_string("data/periods.csv").unwrap();
    let mut games = 0;
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.starts_with("game")) {
        let field: Vec<&str> = line.split(',').collect();
        let (finding, _) = search(&rule(field[0]), 1 << 20);
        let expected = (field[1].parse().unwrap(), field[2].parse().unwrap());
        assert_eq!(finding.status(), Status::Proved, "{line}");
        assert_eq!(found(&finding), Some(expected), "{line}");
        if field[3] != "-1" {
            assert_eq!(finding.max_value.to_string(), field[3], "{line}");
        }
        games += 1;
    }
    assert!(games >= 30, "{games} games");
}

/// PRIMES STEP: period 12 from 71 on, shown by the values up to G(167).
#[test]
fn remove_a_square_period_is_proved_from_the_values_of_the_article() {
    let (finding, _) = search(&rule("remove-a-square"), 1 << 12);
    assert_eq!((finding.status(), found(&finding)), (Status::Proved, Some((12, 71))));
    let proof = finding.repeat.unwrap().proof.unwrap();
    assert_eq!((proof.theorem, proof.length), (Theorem::P1, 168));
}

#[test]
fn games_without_a_known_period_have_none() {
    for game in [".007", ".6", "grundy", "grundy:d=3"] {
        let (finding, _) = search(&rule(game), 1 << 16);
        assert_eq!(finding.status(), Status::None, "{game}");
        assert!(finding.unseen_end.is_some_and(|end| end <= 1 << 13), "{game}: {:?}", finding.unseen_end);
    }
}

#[test]
fn search_that_ends_too_early_names_the_known_period() {
    let (status, stdout, stderr) = reply(&["period", ".104", "--to", "2^15"]);
    assert!(status == 0 && stdout.starts_with("0.104: none"), "{status}: {stdout}");
    assert!(stderr.contains("is known to be 11,770,282, from n = 197,769,598 on"), "{stderr}");
    let (_, _, stderr) = reply(&["period", ".6", "--to", "2^15"]);
    assert!(!stderr.contains("known"), "{stderr}");
}

/// Few values often repeat by chance, without a period. What the search says of the last values must be true.
#[test]
fn an_end_that_is_called_unseen_does_not_occur_earlier() {
    let mut random = Random::new("unseen ends");
    let (mut ends, mut none) = (0, 0);
    for _ in 0..2000 {
        let (count, top) = (1 + random.below(200), 1 + random.below(4));
        let values: Vec<u16> = (0..count).map(|_| random.below(top) as u16 * random.below(2) as u16).collect();
        let finding = find(&rule("grundy:d=3"), SparseSpace::NONE, &values);
        let Some(end) = finding.unseen_end.filter(|_| finding.repeat.is_none()) else {
            none += 1;
            continue;
        };
        let last = &values[values.len() - end as usize..];
        assert!(!values[..values.len() - 1].windows(last.len()).any(|part| part == last), "{end} of {values:?}");
        ends += 1;
    }
    assert!(ends > 200 && none > 20, "{ends} ends, {none} without one");
}

/// Planted sequences against a search by the definition: exactly those are proved that the bounds of P1, P2 and P3
/// allow, with the least period and preperiod.
#[test]
fn planted_period_is_proved_iff_the_bound_is_reached() {
    let mut random = Random::new("planted periods");
    let games = [rule("0.77"), rule("grundy"), rule("grundy:d=3")];
    let (mut proved, mut not) = (std::collections::BTreeMap::new(), 0);
    for i in 0..9000 {
        let game = &games[i % 3];
        let (p, n0) = (1 + random.below(40), random.below(60));
        let (letters, least) = (1 + random.below(4), random.below(2));
        let word: Vec<u16> = (0..n0 + p).map(|_| u16::try_from(least + random.below(letters)).unwrap() * 255).collect();
        // About as many values as one of the theorems needs.
        let about = 2 * (n0 + p) + random.pick(&[0, 2, p]);
        let length = (about + random.below(9)).saturating_sub(random.below(9)).max(1);
        let mut values: Vec<u16> = Vec::new();
        for i in 0..usize::try_from(length).unwrap() {
            let back = usize::try_from(p).unwrap();
            values.push(if i < word.len() { word[i] } else { values[i - back] });
        }
        values[0] = 0; // as in every game
        if random.below(3) == 0 {
            // One wrong value, just inside the bound or anywhere.
            let at = usize::try_from(random.below(length)).unwrap();
            values[at] ^= random.pick(&[1, 256]);
        }
        let no_zero = |n0: usize, p: usize| !values[n0..n0 + p].contains(&0);
        let expected = plainly(&values, |n0, p| match i % 3 {
            0 => 2 * n0.max(1) + 2 * p + 2,
            1 if no_zero(n0, p) => 2 * n0 + 2 * p - 1,
            1 => 2 * n0.max(1) + 3 * p,
            _ => 2 * n0.max(1) + 3 * p + 2,
        });
        let finding = find(game, SparseSpace::NONE, &values);
        match (expected, finding.status()) {
            (Some(expected), Status::Proved) => {
                assert_eq!(found(&finding), Some(expected), "{game}: {values:?}");
                *proved.entry(finding.repeat.unwrap().proof.unwrap().theorem).or_insert(0) += 1;
            }
            (None, Status::Proved) => panic!("{game}: not proved by the definition: {finding:?} of {values:?}"),
            (Some(expected), _) => panic!("{game}: {expected:?} was not found in {values:?}"),
            (None, _) => not += 1,
        }
    }
    let all = [Theorem::P1, Theorem::P2, Theorem::P3].map(|theorem| proved.get(&theorem).copied().unwrap_or(0));
    assert!(all.iter().all(|&often| often > 500) && not > 2000, "{all:?} proved, {not} not");
}

/// The bounds against the mex: values of random rules, continued far beyond the bound.
#[test]
fn periods_proved_by_the_bounds_continue() {
    let tally = Tally::begin("periods: P1 and P3 against the mex");
    let mut random = Random::new("bounds");
    let mut theorems = std::collections::BTreeMap::new();
    for i in 0..cases(1500, 120_000) {
        let least_difference = random.pick(&[0, 0, 1, 2, 5]);
        let moves = (0..1 + random.below(4)).map(|_| {
            let remove = random.below(4);
            let constant = u16::try_from(random.pick(&[0, 0, 0, 1, 2, 7])).unwrap();
            let kinds = [Leaves::Nothing, Leaves::One, Leaves::Two { min_difference: least_difference }];
            let leaves = if remove == 0 { kinds[2] } else { random.pick(&kinds) };
            Move { remove, constant, leaves }
        });
        let rule = Rule::from_moves(format!("random {i}"), moves.collect()).unwrap();
        let values = definition::values(&rule, 1200).unwrap();
        // At several lengths, not only at a long one.
        for length in [20, 40, 80, 150, 300] {
            let finding = find(&rule, SparseSpace::NONE, &values[..length]);
            let Some(repeat) = finding.repeat.filter(|repeat| repeat.proof.is_some()) else { continue };
            let (p, n0) = (usize::try_from(repeat.period).unwrap(), usize::try_from(repeat.preperiod).unwrap());
            assert!((n0..1200 - p).all(|n| values[n] == values[n + p]), "{:?}: {repeat:?} at {length}", rule.moves());
            *theorems.entry(repeat.proof.unwrap().theorem).or_insert(0) += 1;
        }
    }
    assert!(theorems[&Theorem::P1] > 300 && theorems[&Theorem::P3] > 50, "{theorems:?}");
    tally.end(
        theorems.values().sum(),
        "lengths of random rules at which a period is called proved; each goes on to 1200",
    );
}

/// A sequence whose end is constant, or equal throughout, or whose period is half of it.
#[test]
fn constant_sequences_and_half_table_periods_are_judged_correctly() {
    let game = rule("0.77");
    for length in 1..40 {
        let zeros = vec![0; length];
        let expected = plainly(&zeros, |n0, p| 2 * n0.max(1) + 2 * p + 2);
        assert_eq!(found(&find(&game, SparseSpace::NONE, &zeros)).filter(|_| length >= 6), expected, "{length} zeros");
    }
    let mut random = Random::new("halves");
    for half in [10usize, 64, 100, 1000] {
        let word: Vec<u16> = (0..half).map(|_| u16::try_from(random.below(9)).unwrap()).collect();
        let twice = [word.clone(), word].concat();
        let finding = find(&game, SparseSpace::NONE, &twice);
        // P1 needs 2 n0 + 2 p + t values, two more than these.
        assert_ne!(finding.status(), Status::Proved, "{half}");
        assert_eq!(finding.status(), Status::Observed, "{half}");
        assert_eq!(found(&finding), Some((half as u64, 0)), "{half}");
        assert_eq!(finding.needed(&game), Some(2 + 2 * half as u64 + 2));
    }
}

#[test]
fn values_that_grow_by_a_step_each_period_are_observed_as_such() {
    let game = rule("grundy:d=2");
    let values: Vec<u16> = (0..600u16).map(|n| if n < 17 { 0 } else { (n / 5) * 3 + n % 5 }).collect();
    let finding = find(&game, SparseSpace::NONE, &values);
    let repeat = finding.repeat.as_ref().unwrap();
    assert_eq!((finding.status(), repeat.period, repeat.saltus), (Status::Observed, 5, 3));
    assert_eq!(repeat.preperiod, 17);
}

/// No finite octal code gives an arithmetic-periodic game (Horrocks and Nowakowski 2003), whatever a short table shows.
/// Each of these shows G(n + 1) = G(n) + 1 throughout: taking up to 70 tokens from a heap, and the same with splits.
#[test]
fn an_octal_game_is_never_called_arithmetic_periodic() {
    for game in [format!("0.{}", "3".repeat(70)), format!("0.{}", "2".repeat(70)), format!("0.{}", "3".repeat(300))] {
        let game = rule(&game);
        for count in [64, 66, 70] {
            let values = definition::values(&game, count).unwrap();
            assert!(values.windows(2).filter(|pair| pair[1] == pair[0] + 1).count() > count - 3, "{game}: {values:?}");
            let finding = find(&game, SparseSpace::NONE, &values);
            assert_eq!((finding.status(), finding.repeat), (Status::None, None), "{game}, {count} values");
        }
    }
    // With a constant it is not an octal game, and the finding is reported as observed.
    let moves = (1..=70).map(|remove| Move { remove, constant: 0, leaves: Leaves::One });
    let other = Move { remove: 71, constant: 1, leaves: Leaves::One };
    let game = Rule::from_moves("with a constant", moves.chain([other]).collect()).unwrap();
    let values = definition::values(&game, 64).unwrap();
    assert_eq!(find(&game, SparseSpace::NONE, &values).repeat.map(|repeat| repeat.saltus), Some(1));
}

/// P4 proves with about n0 + p values what P1 proves with twice as many, and both give the same period.
#[test]
fn window_theorem_agrees_with_the_bound_theorem() {
    for (game, mask, position) in [("0.77", 0xf, 0), ("remove-a-square", 0x3, 1), ("0.156", 0, 0), ("0.16", 0, 0)] {
        let rule = rule(game);
        let (finding, used) = search(&rule, 1 << 20);
        let whole = finding.repeat.unwrap();
        let space = SparseSpace::new(&rule, mask, position).unwrap_or(used);
        assert_ne!(space, SparseSpace::NONE, "{game}");
        // Long enough for the windows and, where possible, too short for P1.
        let lookback = solver::lookback(&rule, whole.preperiod);
        let count = whole.preperiod + 3 * whole.period + 3 * lookback;
        let values = solver::values(&rule, best(), usize::try_from(count).unwrap()).unwrap();
        let freed = SequenceStats::default();
        let subject = Subject { rule: &rule, method: best(), space, values: &values, freed: &freed };
        let repeat = subject.find().unwrap().repeat.unwrap();
        assert_eq!((repeat.period, repeat.preperiod), (whole.period, whole.preperiod), "{game}");
        let proof = repeat.proof.as_ref().unwrap();
        let by_window = subject.prove_by_window(whole.preperiod, whole.period).unwrap();
        let window = by_window.unwrap_or_else(|| panic!("{game}: P1 by {}, P4 not", proof.length));
        assert_eq!(window.theorem, Theorem::P4);
        let w = window.window.unwrap();
        assert!(w.is_placed(&rule) && w.from >= w.width(&rule) + whole.preperiod.min(1), "{w:?}");
        // The statement of the theorem: all positions after the window continue with the period.
        let p = usize::try_from(whole.period).unwrap();
        assert!((usize::try_from(w.from).unwrap()..values.len() - p).all(|n| values[n] == values[n + p]));
        // With one wrong value in the window, or a rare value in between, there is no proof.
        let mut random = Random::new("windows");
        for _ in 0..20 {
            let at = w.from - 1 - random.below(w.width(&rule));
            let mut off = values.clone();
            off[usize::try_from(at).unwrap()] ^= 1;
            let subject = Subject { values: &off, ..subject };
            let proof = subject.prove_by_window(whole.preperiod, whole.period);
            assert!(!matches!(proof, Ok(Some(_))), "{game}: G({at}) is off, and it is proved");
        }
    }
}

#[test]
fn period_command_matches_published_periods_and_keeps_its_keys() {
    for (game, period, preperiod, largest) in [(".77", 12, 71, 8), (".156", 349, 3479, 23), ("4.3", 2, 2, 2)] {
        let said = json_of(&["-q", "period", game, "--json"]);
        assert_eq!(said["status"], "proved", "{said}");
        assert_eq!((&said["period"], &said["preperiod"]), (&period.into(), &preperiod.into()), "{said}");
        assert_eq!((&said["max_value"], &said["theorem"]), (&largest.into(), &"P1".into()), "{said}");
        assert!(said["checked_through"].as_u64().unwrap() >= 2 * (period + preperiod), "{said}");
    }
    let none = json_of(&["-q", "period", ".007", "--to", "2^14", "--json"]);
    assert_eq!((&none["status"], &none["checked_through"]), (&"none".into(), &(1 << 14).into()), "{none}");
    assert!(none["period"].is_null() && none["preperiod"].is_null() && none["theorem"].is_null(), "{none}");
    // One value fewer than P1 needs, and just enough.
    let needed = 2 * (71 + 12) + 2;
    let few = json_of(&["-q", "period", "kayles", "--to", &(needed - 1).to_string(), "--json"]);
    assert_eq!((&few["status"], &few["needed"]), (&"observed".into(), &needed.into()), "{few}");
    assert_eq!((&few["period"], &few["preperiod"]), (&12.into(), &71.into()), "{few}");
    let enough = json_of(&["-q", "period", "kayles", "--to", &needed.to_string(), "--json"]);
    assert_eq!(enough["status"], "proved", "{enough}");
    // Fourteen exceptions: Winning Ways, chapter 4.
    let heaps = [0, 3, 6, 9, 11, 15, 18, 21, 22, 28, 34, 39, 57, 70];
    assert_eq!(enough["exception_heaps"], serde_json::json!(heaps), "{enough}");
}

/// Kayles in rows of twelve, as in Winning Ways, chapter 4; the last row is the period.
const KAYLES: &str = "
 n  0  1  2  3  4  5  6  7  8  9 10 11
 0 *0  1  2 *3  1  4 *3  2  1 *4  2 *6
12  4  1  2 *7  1  4 *3  2  1 *4 *6  7
24  4  1  2  8 *5  4  7  2  1  8 *6  7
36  4  1  2 *3  1  4  7  2  1  8  2  7
48  4  1  2  8  1  4  7  2  1 *4  2  7
60  4  1  2  8  1  4  7  2  1  8 *6  7
72  4  1  2  8  1  4  7  2  1  8  2  7
";

#[test]
fn values_and_exceptions_of_kayles_are_the_published_ones() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let marked = KAYLES.lines().skip(2).flat_map(|row| row.split_whitespace().skip(1)).enumerate();
    let exceptions = marked.filter_map(|(n, value)| Some(format!("{n} {}\n", value.strip_prefix('*')?)));
    let exceptions: String = exceptions.collect();
    assert_eq!(exceptions.lines().count(), 14);
    let plain = reply(&["-q", "period", "kayles"]).1;
    for source in [vec!["kayles"], vec!["kayles", "--dir", &path("run")], vec![&path("run")]] {
        let period = |more: &[&str]| {
            let (status, stdout, stderr) = reply(&[&["-q", "period"], &source[..], more].concat());
            assert_eq!(status, 0, "{stderr}");
            stdout
        };
        let said = period(&["--values", "--exceptions", &path("e.txt")]);
        assert!(said.ends_with(KAYLES) && said.lines().next() == plain.lines().next(), "{said}");
        assert_eq!(std::fs::read_to_string(path("e.txt")).unwrap(), exceptions);
        assert_eq!(period(&["--exceptions", "-"]), exceptions);
    }
    // Without a period neither is written, and the file keeps what it was.
    for (option, words) in [("--values", "no values are printed"), ("--exceptions", "no exceptions are written")] {
        let file = path("e.txt");
        let more: &[&str] = if option == "--values" { &[option] } else { &[option, &file] };
        let (status, stdout, stderr) = reply(&[&["-q", "period", ".007", "--to", "2000"], more].concat());
        assert!(status == 1 && stdout.contains("none") && stderr.contains(words), "{stdout}{stderr}");
    }
    assert_eq!(std::fs::read_to_string(path("e.txt")).unwrap(), exceptions);
    for more in [&["--exceptions", "x", "--keep", "1G"][..], &["--values", "--keep", "1G"], &["--values", "--json"]] {
        assert_eq!(reply(&[&["period", "kayles"], more].concat()).0, 2, "{more:?}");
    }
}

#[test]
fn certificate_to_stdout_is_alone_there() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("certificate.json");
    let path = path.to_str().unwrap();
    let report = reply(&["-q", "period", "kayles", "--certificate", path]).1;
    let (status, stdout, stderr) = reply(&["-q", "period", "kayles", "--certificate", "-"]);
    assert_eq!((status, stdout, stderr), (0, std::fs::read_to_string(path).unwrap(), report));
    let (status, stdout, stderr) = reply(&["-q", "period", ".007", "--to", "2000", "--certificate", "-"]);
    assert!(status == 1 && stdout.is_empty() && stderr.contains("no period is proved"), "{stdout}{stderr}");
    for more in [&["--json"][..], &["--values"], &["--exceptions", "-"]] {
        assert_eq!(reply(&[&["period", "kayles", "--certificate", "-"], more].concat()).0, 2, "{more:?}");
    }
}

#[test]
fn run_directory_is_searched_and_with_dir_it_is_resumed() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    let at = dir.to_str().unwrap();
    for (kernel, status) in [("auto", "proved"), ("scalar", "proved")] {
        let found = json_of(&["-q", "period", ".156", "--dir", at, "--kernel", kernel, "--json"]);
        assert_eq!((&found["status"], &found["period"]), (&status.into(), &349.into()), "{found}");
    }
    let count = json_of(&["status", at, "--json"])["count"].as_u64().unwrap();
    assert!(count <= 1 << 20, "{count} values for a period that shows at 8000");
    let found = json_of(&["-q", "period", at, "--json"]);
    assert_eq!((&found["period"], &found["preperiod"]), (&349.into(), &3479.into()), "{found}");
    assert_eq!(found["checked_through"], count, "{found}");
    let found = json_of(&["-q", "period", at, "--to", "4000", "--json"]);
    assert_eq!((&found["status"], &found["checked_through"]), (&"none".into(), &4000.into()), "{found}");
    let (status, _, stderr) = reply(&["-q", "period", ".077", "--dir", at]);
    assert_eq!(status, 1, "another game's directory: {stderr}");
}

#[test]
fn mistakes_and_altered_certificates_have_their_exit_status() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let certificate = path("kayles.json");
    assert_eq!(reply(&["-q", "period", "kayles", "--certificate", &certificate]).0, 0);
    let (status, stdout, _) = reply(&["-q", "verify", &certificate]);
    assert!(status == 0 && stdout.contains("period 12, preperiod 71"), "{stdout}");
    assert_eq!(json_of(&["-q", "verify", &certificate, "--json"])["theorem"], "P1");
    let text = std::fs::read_to_string(&certificate).unwrap();
    for (name, altered) in [
        ("altered.json", text.replace("\"period\": 12", "\"period\": 24")),
        ("cut.json", text[..text.len() / 2].to_owned()),
        ("other.json", "{\"format\": 1}".to_owned()),
        ("empty.json", String::new()),
    ] {
        std::fs::write(path(name), altered).unwrap();
        let (status, stdout, stderr) = reply(&["-q", "verify", &path(name)]);
        assert_eq!((status, stdout.as_str()), (3, ""), "{name}: {stderr}");
        assert!(stderr.contains("refused"), "{name}: {stderr}");
    }
    // Without a proof no file is written; the result is still printed.
    let (status, stdout, stderr) =
        reply(&["-q", "period", ".007", "--to", "2000", "--certificate", &path("none.json")]);
    assert!(status == 1 && stdout.contains("none") && stderr.contains("no certificate"), "{stdout}{stderr}");
    assert!(!home.path().join("none.json").exists());
    for (arguments, expected) in [
        (&["period", ".G"][..], 2),
        (&["period", "kayles", "--to", "0"], 2),
        (&["period", "kayles", "--to", "-5"], 2),
        (&["period", "./nowhere"], 1),
        (&["period"], 2),
        (&["survey", "-o", "x"], 2),
        (&["survey", "--digits", "1"], 2),
        (&["survey", "--digits", "1", "--shard", "2/2", "-o", "x"], 2),
        (&["survey", "nowhere.txt", "-o", "x"], 1),
        (&["merge"], 2),
        (&["merge", "nowhere"], 1),
    ] {
        let (status, stdout, stderr) = reply(arguments);
        assert_eq!((status, stdout.as_str()), (expected, ""), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
    }
}

/// A stopped search reports its result so far, with the exit status of a stop.
#[test]
fn stopped_search_reports_that_it_was_stopped() {
    for more in [&[][..], &["--dir"]] {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("run");
        let mut arguments = vec!["-q", "period", ".007", "--to", "2^26"];
        if let [dir_flag] = more {
            arguments.extend([*dir_flag, dir.to_str().unwrap()]);
        }
        let child = grundy(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(1500));
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{more:?}: {}", text(&output.stderr));
        let stdout = text(&output.stdout);
        assert!(stdout.contains("stopped after") && stdout.contains("no period so far"), "{stdout}");
        assert!(text(&output.stderr).contains("stopped"), "{}", text(&output.stderr));
    }
}

#[test]
fn status_reports_which_periods_zeros_exclude() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    crate::support::run_well("grundy", &dir, &["--to", "20000"]);
    let excluded = &json_of(&["status", dir.to_str().unwrap(), "--json"])["excluded"];
    // OEIS A036685 has 42 known zeros, the last 1222; n = 0 is no part.
    assert_eq!(
        (&excluded["count"], &excluded["largest"], &excluded["looked"]),
        (&41.into(), &1222.into(), &20000.into())
    );
}

/// For each n, the least smaller part among the options of each value; 0 for options that leave fewer than two heaps.
fn depths(rule: &Rule, values: &[u16]) -> Vec<std::collections::HashMap<u16, u64>> {
    let value = |n: u64| values[usize::try_from(n).unwrap()];
    let depth = |n: u64| {
        let mut least = std::collections::HashMap::new();
        for option in rule.single_options(n, value) {
            least.insert(option, 0);
        }
        for split in rule.splits() {
            for a in 1..=split.largest_small_part(n) {
                let option = split.constant ^ value(a) ^ value(n - split.remove - a);
                least.entry(option).and_modify(|d: &mut u64| *d = a.min(*d)).or_insert(a);
            }
        }
        least
    };
    (0..values.len() as u64).map(depth).collect()
}

/// P4 against the mex: every pair of windows of random rules and spaces that meets its conditions, with depths from
/// the definition.
#[test]
fn periods_proved_by_the_window_theorem_continue() {
    const COUNT: u64 = 700;
    let tally = Tally::begin("periods: P4 against the mex");
    let mut random = Random::new("window theorem");
    let (mut pairs, mut rules, mut odd) = (0u64, 0, 0);
    for i in 0..cases(250, 25_000) {
        let difference = random.pick(&[0, 0, 0, 1, 3]);
        let moves = (0..1 + random.below(5)).map(|_| {
            let remove = random.below(5);
            let constant = u16::try_from(random.pick(&[0, 0, 0, 1, 2, 3, 4])).unwrap();
            let kinds = [Leaves::Nothing, Leaves::One, Leaves::Two { min_difference: difference }];
            let leaves = if remove == 0 { kinds[2] } else { random.pick(&kinds) };
            Move { remove, constant, leaves }
        });
        let rule = Rule::from_moves(format!("random {i}"), moves.collect()).unwrap();
        let values = definition::values(&rule, usize::try_from(COUNT).unwrap()).unwrap();
        let value = |n: u64| values[usize::try_from(n).unwrap()];
        let least = depths(&rule, &values);
        let mut used = false;
        for (mask, position) in (1..16).flat_map(|mask| [(mask, 0), (mask, 1)]) {
            let Some(space) = SparseSpace::new(&rule, mask, position) else { continue };
            let rare: Vec<u64> = (0..COUNT).filter(|&n| space.is_rare(value(n), n)).collect();
            let depth = |n: u64| {
                let targets = (0..value(n)).filter(|&t| space.is_rare(t, n));
                targets.map(|t| least[usize::try_from(n).unwrap()][&t]).max().unwrap_or(0)
            };
            for n1 in (1..COUNT / 2).step_by(7) {
                let last_rare = *rare.iter().rev().find(|&&r| r < n1).unwrap();
                let end = rare.iter().copied().find(|&r| r >= n1).unwrap_or(COUNT);
                let mut deepest = 0;
                for n2 in n1 + 1..=end.min(COUNT - 50) {
                    deepest = deepest.max(depth(n2 - 1));
                    let w = PeriodWindow { from: n1, to: n2, space, rare_positions: 0, last_rare, depth: deepest };
                    let width = w.width(&rule);
                    if !w.is_placed(&rule) || (1..=width).any(|j| value(n1 - j) != value(n2 - j)) {
                        continue;
                    }
                    pairs += 1;
                    odd += u64::from((n2 - n1) % 2 == 1);
                    used = true;
                    let wrong = (n2..COUNT).find(|&n| value(n) != value(n - (n2 - n1)));
                    assert_eq!(wrong, None, "{:?}, {space:?}, {n1}, {n2}, depth {deepest}", rule.moves());
                }
            }
        }
        rules += u64::from(used);
    }
    assert!(pairs > 10_000 && rules > 30 && odd > 1000, "{pairs} pairs of {rules} rules, {odd} odd");
    tally.end(pairs, &format!("pairs of windows of {rules} random rules; each goes on to the end"));
}

/// The retained values prove the period; discarded values are never read.
#[test]
fn freed_values_are_not_searched_and_are_reported() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    let at = dir.to_str().unwrap();
    crate::support::run_well("kayles", &dir, &["--to", "110000000", "--keep", "1000000"]);
    let start = json_of(&["status", at, "--json"])["kept"][1][0].as_u64().unwrap();
    assert!(start > 1 << 26);
    let found = json_of(&["-q", "period", at, "--json"]);
    assert_eq!((&found["status"], &found["period"], &found["theorem"]), (&"proved".into(), &12.into(), &"P4".into()));
    assert!(found["preperiod"].is_null() && found["exceptions"].is_null(), "{found}");
    assert_eq!((&found["preperiod_at_most"], &found["searched_from"]), (&start.into(), &start.into()), "{found}");
    let (status, stdout, _) = reply(&["-q", "period", at]);
    assert!(status == 0 && stdout.replace(',', "").contains(&format!("preperiod at most {start}")), "{stdout}");
    // All of these values are retained.
    let few = json_of(&["-q", "period", at, "--to", "20", "--json"]);
    let largest = definition::values(&rule("kayles"), 20).unwrap().into_iter().max().unwrap();
    assert_eq!((&few["max_value"], &few["status"]), (&largest.into(), &"none".into()), "{few}");
    assert_eq!(json_of(&["-q", "period", at, "--to", "2000", "--json"])["preperiod"], 71);
    // The last of these values are discarded.
    let (status, stdout, stderr) = reply(&["-q", "period", at, "--to", &(start - 5).to_string()]);
    assert!(status == 1 && stdout.is_empty() && stderr.contains("freed"), "{stdout}{stderr}");
    let certificate = home.path().join("c.json");
    let (status, _, stderr) = reply(&["-q", "period", at, "--certificate", certificate.to_str().unwrap()]);
    assert!(status == 1 && stderr.contains("freed") && !certificate.exists(), "{stderr}");
    // With the name of the game, the program computes discarded values again.
    let found =
        json_of(&["-q", "period", "kayles", "--dir", at, "--certificate", certificate.to_str().unwrap(), "--json"]);
    assert_eq!((&found["preperiod"], &found["theorem"]), (&71.into(), &"P4".into()), "{found}");
    assert!(found["exceptions"].is_null(), "a period does not reach from 0 to 71: {found}");
    let (status, stdout, stderr) = reply(&["-q", "verify", certificate.to_str().unwrap()]);
    assert!(status == 0 && stdout.contains("preperiod 71"), "{stdout}{stderr}");
    // The run shows its period late, but the check needs no more values than the preperiod requires.
    let certificate = Certificate::parse(std::fs::read(&certificate).unwrap()).unwrap();
    assert!(certificate.checked_through < 1 << 20, "{} values", certificate.checked_through);
}

#[test]
fn too_few_values_are_reported() {
    for to in ["1", "2", "3"] {
        let (status, stdout, stderr) = reply(&["-q", "period", "kayles", "--to", to]);
        assert!(status == 0 && stdout.contains("none"), "{to}: {stdout}{stderr}");
    }
}

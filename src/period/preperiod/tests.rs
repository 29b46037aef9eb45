use super::*;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::period::primes::prime_factors;
use crate::period::retrace::DiscardingRun;
use crate::period::waypoints::Waypoints;
use crate::period::{LISTED, Repeat, Subject, exceptions};
use crate::solver::ends::Ends;
use crate::solver::{Histogram, SequenceStats, values};
use crate::table::digest::DigestChain;
use crate::theory::nimber::index;

/// The copies retain few values. Published periods and preperiods: .16 149459, 105351; .56 144, 326640; 2×n
/// squares 12, 71.
#[test]
fn two_copies_show_the_same_facts_as_the_whole_table() {
    let method = Method::Sparse(Kernel::best());
    for (game, p, n0) in [("remove-a-square", 12, 71), (".16", 149_459, 105_351), (".56", 144, 326_640)] {
        let rule: Rule = game.parse().unwrap();
        let all = values(&rule, method, 1 << 20).unwrap();
        let (space, _) = Histogram::of(&all).unwrap().best_space(&rule);
        let freed = SequenceStats::default();
        let subject = Subject { rule: &rule, method, space, values: &all, freed: &freed };
        assert_eq!(subject.prove_by_window(n0, 0).unwrap(), None);
        let proof = subject.prove_by_window(n0, p).unwrap().unwrap();
        // A period from some n1 on is one from a later n1 on; before this one both copies have dropped values.
        let proof = Proof { length: 800_000 + p, ..proof };
        let window = PeriodWindow { from: 800_000, to: 800_000 + p, ..proof.window.unwrap() };
        let proved = WindowProof { rule: &rule, method, period: p, proof: &proof, window };
        for head in [1 << 17, 1 << 26] {
            let mut last = 0;
            let see = |done, of| {
                assert!(done >= last && done < of);
                last = done;
                true
            };
            let copies = proved.offset_copies_retaining(head, see).unwrap().unwrap();
            assert_eq!(copies.preperiod, n0, "{game}");
            let repeat = Repeat { period: p, preperiod: n0, exact: true, saltus: 0, proof: None };
            let by_table = exceptions(&all, &repeat, LISTED).unwrap();
            assert_eq!(copies.exceptions, (n0 <= p).then_some(by_table), "{game}");
            // The front copy is watched from the start, and finds a window before the given one.
            let nearer = copies.proof.window.unwrap();
            assert!(nearer.from <= 1 << 19 && nearer.is_placed(&rule), "{game}: {nearer:?}");
            assert!(nearer.from >= n0 + nearer.width(&rule) && nearer.to == copies.proof.length, "{game}: {nearer:?}");
            let counted = CertifiedFacts::of(&all, copies.proof.length, nearer.space, nearer.to).unwrap();
            assert_eq!(copies.counted, counted, "{game}");
            assert_eq!(copies.proof.least.iter().map(|pair| pair.0).collect::<Vec<_>>(), prime_factors(p), "{game}");
            for &(f, n) in &copies.proof.least {
                assert!(n >= n0 && all[index(n)] != all[index(n + p / f)], "{game}: {f}, {n}");
            }
        }
        assert_eq!(proved.offset_copies_retaining(1 << 17, |done, _| done < 100_000).unwrap(), None);
        // A window before the last exceptions, then a wrong period.
        let early = PeriodWindow { from: n0 - 1 + window.width(&rule), ..window };
        let wrong = WindowProof { window: early, ..proved }.offset_copies_retaining(1 << 17, |_, _| true);
        assert!(matches!(wrong, Err(Error::Differs { n, .. }) if n == n0 - 1 + p), "{game}: {wrong:?}");
        let wrong = WindowProof { period: p + 2, ..proved }.offset_copies_retaining(1 << 17, |_, _| true);
        assert!(matches!(wrong, Err(Error::Differs { .. })), "{game}: {wrong:?}");
    }
}

/// The values between the first and the last ones are unknown but for waypoints. Published periods and preperiods as
/// above.
#[test]
fn waypoints_show_the_same_preperiod_as_the_whole_table() {
    let method = Method::Sparse(Kernel::best());
    for (game, p, n0, passed) in [(".16", 149_459, 105_351, 262_144), (".56", 144, 326_640, 393_216)] {
        let rule: Rule = game.parse().unwrap();
        let all = values(&rule, method, 1 << 20).unwrap();
        let (space, _) = Histogram::of(&all).unwrap().best_space(&rule);
        let subject = Subject { rule: &rule, method, space, values: &all, freed: &SequenceStats::default() };
        let proof = subject.prove_by_window(n0, p).unwrap().unwrap();
        let proof = Proof { length: 800_000 + p, ..proof };
        let window = PeriodWindow { from: 800_000, to: 800_000 + p, ..proof.window.unwrap() };
        let proved = WindowProof { rule: &rule, method, period: p, proof: &proof, window };
        let (first, from) = (1 << 16, 1_000_000);
        let run = Ends::of(all[..first].to_vec(), from, all[index(from)..].to_vec());
        let mut freed = SequenceStats::default();
        freed.see(space, first as u64, &all[first..index(from)]);
        let home = tempfile::tempdir().unwrap();
        let waypoints = &Waypoints::of(home.path(), "run");
        let write =
            |n: usize, values: &[u16]| waypoints.write(n as u64, &values[n.saturating_sub(160_000)..n]).unwrap();
        (1..8).for_each(|i| write(i << 17, &all));
        let find = |run: &Ends, go_on: &mut dyn FnMut(u64) -> bool| {
            let positions = &waypoints.positions(window.width(&rule))[..];
            let (values, freed, points) = (run, &freed, &[]);
            let run = DiscardingRun { rule: &rule, method, space, values, freed, waypoints, positions, points };
            proved.by_waypoints(&run, CertifiedFacts::default(), go_on)
        };
        let mut done = 0;
        let found = find(&run, &mut |now| now >= std::mem::replace(&mut done, now)).unwrap().unwrap();
        assert_eq!(found.preperiod, n0, "{game}");
        let repeat = Repeat { period: p, preperiod: n0, exact: true, saltus: 0, proof: None };
        let by_table = exceptions(&all, &repeat, LISTED).unwrap();
        assert_eq!(found.exceptions, (n0 <= p).then_some(by_table), "{game}");
        assert_eq!(found.proof.least.iter().map(|pair| pair.0).collect::<Vec<_>>(), prime_factors(p), "{game}");
        for &(f, n) in &found.proof.least {
            assert!(n >= n0 && all[index(n)] != all[index(n + p / f)], "{game}: {f}, {n}");
        }
        assert_eq!(find(&run, &mut |done| done < 30_000).unwrap(), None, "{game}");
        // Waypoints that another file replaces, and one with a wrong value.
        std::fs::write(home.path().join("waypoint-524288.bin"), "").unwrap();
        std::fs::remove_file(home.path().join("waypoint-655360.bin")).unwrap();
        assert_eq!(find(&run, &mut |_| true).unwrap().unwrap(), found, "{game}");
        let mut changed = all.clone();
        changed[passed - 100] ^= 1;
        write(passed, &changed);
        let wrong = find(&run, &mut |_| true);
        assert!(matches!(wrong, Err(Error::Differs { n, .. }) if n == passed as u64 - 100), "{game}: {wrong:?}");
    }
}

/// A value of the front copy that the back copy is compared with later, and a back copy with other values. Published
/// period and preperiod: .16 149459, 105351.
#[test]
fn a_flipped_value_of_a_copy_is_noticed() {
    let method = Method::Sparse(Kernel::best());
    let (rule, p, n0): (Rule, _, _) = (".16".parse().unwrap(), 149_459, 105_351);
    let all = values(&rule, method, 1 << 20).unwrap();
    let (space, _) = Histogram::of(&all).unwrap().best_space(&rule);
    let freed = SequenceStats::default();
    let subject = Subject { rule: &rule, method, space, values: &all, freed: &freed };
    let proof = subject.prove_by_window(n0, p).unwrap().unwrap();
    let proved = WindowProof { rule: &rule, method, period: p, proof: &proof, window: proof.window.unwrap() };
    let preperiod = |flip: &dyn Fn(&mut TwoCopies)| {
        let mut copies = TwoCopies::new(&proved, 1 << 20).unwrap();
        while copies.back.len() == 0 {
            copies.step().unwrap();
        }
        flip(&mut copies);
        while !copies.are_complete() {
            copies.step()?;
        }
        copies.finish().map(|found| found.preperiod)
    };
    assert_eq!(preperiod(&|_| ()).unwrap(), n0);
    // Without a check, the first would not change the preperiod, and the second would raise it.
    for n in [p + n0 - 1, p + n0] {
        let found = preperiod(&|copies| {
            assert!(copies.front.len() > n && copies.back.len() < n0 - 1);
            copies.front.values.flip(n);
        });
        assert!(matches!(found, Err(Error::Flipped { .. })), "{n}: {found:?}");
    }
    let found = preperiod(&|copies| copies.back_digest = DigestChain::new());
    assert!(matches!(found, Err(Error::Flipped { .. })), "{found:?}");
}

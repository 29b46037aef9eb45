use super::*;
use crate::kernel::Kernel;
use crate::period::primes::prime_factors;
use crate::period::{Repeat, Subject, exceptions};
use crate::solver::{Histogram, SequenceStats, values};

/// The copies retain few values. Published periods and preperiods: .16 149459, 105351; .56 144, 326640; 2×n
/// squares 12, 71.
#[test]
fn two_copies_show_the_same_facts_as_the_whole_table() {
    let method = Method::Sparse(Kernel::best());
    for (game, p, n0) in [("remove-a-square", 12, 71), (".16", 149_459, 105_351), (".56", 144, 326_640)] {
        let rule: Rule = game.parse().unwrap();
        let all = values(&rule, method, 1 << 20).unwrap();
        let (space, _) = Histogram::of(all.as_slice()).unwrap().best_space(&rule);
        let freed = SequenceStats::default();
        let subject = Subject { rule: &rule, method, space, values: all.as_slice(), freed: &freed };
        let proof = subject.prove_by_window(n0, p).unwrap().unwrap();
        // A period from some n1 on is one from a later n1 on; before this one both copies have dropped values.
        let proof = Proof { length: 800_000 + p, ..proof };
        let window = PeriodWindow { from: 800_000, to: 800_000 + p, ..proof.window.unwrap() };
        let proved = ProvedPeriod { rule: &rule, method, period: p, proof: &proof, window };
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
            let by_table = exceptions(all.as_slice(), &repeat, LISTED).unwrap();
            assert_eq!(copies.exceptions, (n0 <= p).then_some(by_table), "{game}");
            // The front copy is watched from the start, and finds a window before the given one.
            let nearer = copies.proof.window.unwrap();
            assert!(nearer.from <= 1 << 19 && nearer.is_placed(&rule), "{game}: {nearer:?}");
            assert!(nearer.from >= n0 + nearer.width(&rule) && nearer.to == copies.proof.length, "{game}: {nearer:?}");
            let counted = CertifiedFacts::of(all.as_slice(), copies.proof.length, nearer.space, nearer.to).unwrap();
            assert_eq!(copies.counted, counted, "{game}");
            assert_eq!(copies.proof.least.iter().map(|pair| pair.0).collect::<Vec<_>>(), prime_factors(p), "{game}");
            for &(f, n) in &copies.proof.least {
                assert!(n >= n0 && all[index(n)] != all[index(n + p / f)], "{game}: {f}, {n}");
            }
        }
        assert_eq!(proved.offset_copies_retaining(1 << 17, |done, _| done < 300_000).unwrap(), None);
        // A window before the last exceptions, then a wrong period.
        let early = PeriodWindow { from: n0 - 1 + window.width(&rule), ..window };
        let wrong = ProvedPeriod { window: early, ..proved }.offset_copies_retaining(1 << 17, |_, _| true);
        assert!(matches!(wrong, Err(Error::Differs { n, .. }) if n == n0 - 1 + p), "{game}: {wrong:?}");
        let wrong = ProvedPeriod { period: p + 2, ..proved }.offset_copies_retaining(1 << 17, |_, _| true);
        assert!(matches!(wrong, Err(Error::Differs { .. })), "{game}: {wrong:?}");
    }
}

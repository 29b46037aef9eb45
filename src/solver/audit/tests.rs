//! Unit tests of the audit.

use super::*;
use crate::solver::{Method, values};
use crate::theory::definition;

/// The first outputs of SplitMix64 for the seed 0, as its authors and other implementations publish them.
#[test]
fn audited_groups_are_chosen_by_splitmix64() {
    let published = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
    assert_eq!([0, 1, 2].map(|group| choice(0, group)), published);
    // The seed 1, output 0: the same state as the seed 1 - γ, output 1.
    assert_eq!(choice(1, 0), choice(1u64.wrapping_sub(0x9e37_79b9_7f4a_7c15), 1));
    assert_eq!(choice(u64::MAX, u64::MAX), choice(u64::MAX - 0x9e37_79b9_7f4a_7c15, 0), "no overflow");
}

/// A single wrong value, whatever it is, makes its group fail.
#[test]
fn the_audit_finds_a_wrong_value_and_passes_right_ones() {
    let mut state = 0x5eed_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for game in ["grundy", ".106", "0.6", "kayles", "grundy:d=2"] {
        let rule: Rule = game.parse().unwrap();
        let right = values(&rule, Method::Sparse(Kernel::best()), 140_000).unwrap();
        let known = rule.known().and_then(|known| known.space);
        let space = known.and_then(|(mask, position)| SparseSpace::new(&rule, mask, position));
        let space = space.unwrap_or_else(|| crate::solver::Histogram::of(&right).unwrap().best_space(&rule).0);
        let rare_positions: Vec<_> = space.rare_positions(0, &right).collect();
        for kernel in Kernel::available() {
            let start = 100_000u64;
            let mut audits = (0..1000).map(|seed| Audit::new(&rule, space, kernel.other(), seed, &rare_positions));
            let audit = audits.find(|audit| audit.groups(start..start + 20_000).len() > 2).unwrap();
            let mut audited = 0;
            for length in [20_000, 1, 255, 256, 5000] {
                let block = &right[index(start)..index(start) + length];
                let (codes, witnesses) = streams(&rule, space, kernel, &right[..index(start)], block);
                audited += audit.check(start..codes.end(), &codes, &witnesses, &&right[..index(start)]).unwrap();
            }
            assert!(audited > 250, "{game}, {kernel}: {audited} values were audited");
            let groups = audit.groups(start..start + 20_000);
            for _ in 0..12 {
                let group = &groups[index(random(groups.len() as u64))];
                let n = group.start + random(GROUP_VALUES);
                let mut wrong = right[index(start)..index(group.end)].to_vec();
                let value = &mut wrong[index(n - start)];
                let other = u16::try_from(random(u64::from(space.coded()))).unwrap();
                if *value >= space.coded() || other == *value || usize::from(space.code(*value)) >= MOST_CODES {
                    continue;
                }
                *value = other;
                let (codes, witnesses) = streams(&rule, space, kernel, &right[..index(start)], &wrong);
                let seen = audit.check(start..codes.end(), &codes, &witnesses, &&right[..index(start)]);
                // The error may be at another n of the group, which has the wrong value as an option.
                let in_group = matches!(&seen, Err(Error::Differs { n, .. }) if group.contains(n));
                assert!(in_group, "{game}, {kernel}: G({n}) = {other} gave {seen:?}");
                assert_ne!(definition::value_at(&rule, &right, n).unwrap(), other);
            }
        }
    }
}

fn streams(rule: &Rule, space: SparseSpace, kernel: Kernel, past: &[u16], block: &[u16]) -> (Codes, Witnesses) {
    let mut codes = Codes::new(space, 0);
    codes.push(past);
    codes.push(block);
    let mut witnesses = Witnesses::new(rule, space, kernel, Vec::new(), &past).unwrap();
    witnesses.push(block);
    (codes, witnesses)
}

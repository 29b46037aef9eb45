//! Unit tests of the witness stream.

use super::*;

/// Both parts of the only witnesses are beyond [`HEAD_PARTS`], and one is in the list of large values. The reported
/// depth must cover the smaller part, because the proof of a period relies on it.
#[test]
fn a_witness_found_by_a_large_value_is_as_deep_as_its_smaller_part() {
    let rule: Rule = "grundy".parse().unwrap();
    let space = SparseSpace::new(&rule, 0x1fe, 0).unwrap();
    let mut past = vec![0u16; 320_000];
    let large: Vec<(u64, u16)> = (150_000..).zip(258..262).collect();
    large.iter().for_each(|&(n, v)| past[index(n)] = v);
    let mut witnesses = Witnesses::new(&rule, space, Kernel::best(), large, &past).unwrap();
    witnesses.push(&[262]);
    let checked = witnesses
        .search_with(Kernel::best(), &Codes::new(space, 0))
        .search(320_000, (258..262).collect(), &past)
        .unwrap();
    assert_eq!((checked.missing, checked.exhaustive_searches), (None, 0));
    assert!(checked.depth >= 150_003, "a smaller part of 150003, and a depth of {}", checked.depth);
}

#[test]
fn a_changed_split_is_noticed() {
    let rule: Rule = "grundy".parse().unwrap();
    let space = SparseSpace::new(&rule, 0x1fe, 0).unwrap();
    let mut witnesses = Witnesses::new(&rule, space, Kernel::best(), Vec::new(), &vec![0u16; 100]).unwrap();
    assert!(witnesses.is_of(&rule, space));
    witnesses.splits[0].constant ^= 2;
    assert!(!witnesses.is_of(&rule, space));
}

/// Nothing can be compared with a copy of a discarded value, but the last values are needed.
#[test]
fn values_that_are_about_to_be_discarded_are_dropped() {
    let rule: Rule = "grundy".parse().unwrap();
    let space = SparseSpace::new(&rule, 0x1fe, 0).unwrap();
    let past = vec![0u16; 200_000];
    let needed = 200_000 - LOOKBACK - rule.max_remove();
    for (discarded, start) in [(needed - 7, needed - 7), (200_000, needed)] {
        let mut witnesses = Witnesses::new(&rule, space, Kernel::best(), Vec::new(), &past[..100].to_vec()).unwrap();
        witnesses.push(&past[100..]);
        witnesses.drop_before(discarded);
        assert_eq!(witnesses.recent.start(), start);
    }
}

/// A bit flip can make the candidate too large. The exhaustive search for its targets then finds a smaller common
/// value that is no option. This is a failed check, after which a run restarts from its last commit.
#[test]
fn a_candidate_that_is_not_the_least_is_a_failed_check() {
    let rule: Rule = "grundy".parse().unwrap();
    let space = SparseSpace::new(&rule, 0x1fe, 0).unwrap();
    let past = crate::solver::values(&rule, crate::solver::Method::Sparse(Kernel::best()), 200_001).unwrap();
    let (past, truth) = past.split_at(200_000);
    let wrong = (truth[0] + 1..512).rev().find(|&v| !space.is_rare(v, 200_000)).unwrap();
    let mut witnesses = Witnesses::new(&rule, space, Kernel::best(), Vec::new(), &past).unwrap();
    witnesses.push(&[wrong]);
    let targets = (0..wrong).filter(|&t| space.is_rare(t, 200_000)).collect();
    let seen = witnesses.search_with(Kernel::best(), &Codes::new(space, 0)).search(200_000, targets, &past);
    let (value, least) = (u32::from(wrong), u32::from(truth[0]));
    let reported =
        matches!(&seen, Err(Error::Differs { n: 200_000, value: v, again, .. }) if (*v, *again) == (value, least));
    assert!(reported, "{seen:?}");
}

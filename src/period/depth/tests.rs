use super::*;
use crate::support::Random;
use crate::theory::definition;
use crate::theory::rule::{Leaves, Move};

/// Finds the same as [`first_deeper`] by the statement in the module head.
fn plainly(rule: &Rule, space: SparseSpace, values: &[u16], heaps: Range<u64>, depth: u64) -> Option<(u64, u16)> {
    let value = |n: u64| values[index(n)];
    heaps.into_iter().find_map(|n| {
        let mut options: Vec<u16> = rule.single_options(n, value).collect();
        for split in rule.splits() {
            let parts = 1..=split.largest_small_part(n).min(depth);
            options.extend(parts.map(|a| split.constant ^ value(a) ^ value(n - split.remove - a)));
        }
        (0..value(n)).find(|&t| space.is_rare(t, n) && !options.contains(&t)).map(|t| (n, t))
    })
}

#[test]
fn first_n_without_a_witness_agrees_with_a_search_by_the_definition() {
    let mut random = Random::new("witness depths");
    let (mut deeper, mut enough) = (0, 0);
    for i in 0..200 {
        let moves = (0..1 + random.below(4)).map(|_| {
            let remove = random.below(4);
            let constant = u16::try_from(random.pick(&[0, 0, 1, 2])).unwrap();
            let two = Leaves::Two { min_difference: random.below(3) };
            let leaves = if remove == 0 { two } else { random.pick(&[Leaves::Nothing, Leaves::One, two]) };
            Move { remove, constant, leaves }
        });
        let rule = Rule::from_moves(format!("random {i}"), moves.collect()).unwrap();
        let values = definition::values(&rule, 500).unwrap();
        for (mask, position) in (1..16).flat_map(|mask| [(mask, 0), (mask, 1)]) {
            let Some(space) = SparseSpace::new(&rule, mask, position) else { continue };
            let (from, depth) = (1 + random.below(490), random.pick(&[0, 1, 5, 30, 200, 1000]));
            let heaps = from..500;
            let found = first_deeper(&rule, space, &values, heaps.clone(), depth).unwrap();
            assert_eq!(found, plainly(&rule, space, &values, heaps, depth), "{:?}, {space:?}", rule.moves());
            if found.is_some() { deeper += 1 } else { enough += 1 }
        }
    }
    assert!(deeper > 50 && enough > 50, "{deeper} deeper, {enough} not");
}

/// The only witness of n has a smaller part beyond those held in memory.
#[test]
fn parts_beyond_those_in_memory_are_read() {
    let rule: Rule = "grundy".parse().unwrap();
    let space = SparseSpace::new(&rule, 1, 0).unwrap();
    let part = NEAR + 3 * PARTS_BETWEEN_TESTS + 17;
    let n = 2 * part + 100;
    // Even values are rare. G(n) = 1 needs the option 0; every other option is 2 ^ 0.
    let mut values: Vec<u16> = (0..=n).map(|m| if m <= n / 2 && m != part { 2 } else { 0 }).collect();
    values[index(n)] = 1;
    for depth in [0, 1, NEAR, NEAR + 1, part - 1, part, part + 1, u64::MAX] {
        let found = first_deeper(&rule, space, &values, n..n + 1, depth).unwrap();
        assert_eq!(found, (depth < part).then_some((n, 0)), "depth {depth}");
    }
}

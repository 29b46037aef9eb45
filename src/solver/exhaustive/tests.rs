//! Unit tests of the exhaustive solver.

use super::*;
use crate::support::Random;
use crate::theory::definition;
use crate::theory::rule::{Leaves, Move};

#[test]
fn comparing_all_pairs_gives_the_values_of_the_definition() {
    let mut random = Random::new("exhaustive");
    let mut rules: Vec<Rule> =
        ["0.07", "0.137", "0.007", "0.4", "4.3", "0.644", "0.127", "grundy", "grundy:d=3", "remove-a-square", "0.3"]
            .iter()
            .map(|game| game.parse().unwrap())
            .collect();
    for i in 0..8 {
        let moves = (0..1 + random.below(4)).map(|_| {
            let constant = u16::try_from(random.below(300)).unwrap();
            let two = Leaves::Two { min_difference: random.below(4) };
            let leaves = random.pick(&[Leaves::One, two]);
            Move { remove: 1 + random.below(5), constant, leaves }
        });
        rules.push(Rule::from_moves(format!("random {i}"), moves.collect()).unwrap());
    }
    for rule in rules {
        let expected = definition::values(&rule, 3000).unwrap();
        let bytes = expected.iter().position(|&value| value > 255).unwrap_or(expected.len());
        assert!(bytes > 50, "{rule}");
        for kernel in Kernel::available() {
            let start = random.pick(&[0, 1, 2, 600, 2999]).min(bytes);
            let mut solver = ExhaustiveSolver::new(kernel, &&expected[..start]).unwrap();
            for (n, &value) in expected.iter().enumerate().take(bytes + 1).skip(start) {
                assert_eq!(solver.next(&rule).unwrap(), value, "{rule}, {kernel}, G({n}), from {start}");
            }
            let (past, end) = (&expected[..bytes], bytes as u64);
            assert_eq!(solver.end(), end);
            solver.check_memory(&past).unwrap();
            let (at, forwards) = (usize::try_from(random.below(end)).unwrap(), random.below(2) == 0);
            let row = &mut solver.row;
            let place = if forwards { row.forwards.get_mut(at) } else { row.backwards.iter_mut().nth_back(at) };
            *place.unwrap() ^= 4;
            assert!(solver.check_memory(&past).is_err(), "a flip at {at} of {rule} is not noticed");
        }
    }
}

/// The options may then be above all values.
#[test]
fn a_changed_bit_is_noticed_after_further_values_and_ends_no_process() {
    let rule: Rule = "0.07".parse().unwrap();
    let past = definition::values(&rule, 1000).unwrap();
    let flips: [fn(&mut ExhaustiveSolver); 5] = [
        |solver| solver.row.forwards[900] ^= 0x80,
        |solver| *solver.row.backwards.iter_mut().nth_back(3).unwrap() ^= 0x80,
        |solver| solver.values.items_mut()[999] ^= 1 << 15,
        |solver| solver.mask = 0,
        // Later values set the bit again.
        |solver| solver.mask &= !(1 << solver.mask.ilog2()),
    ];
    for (i, flip) in flips.into_iter().enumerate() {
        let mut solver = ExhaustiveSolver::new(Kernel::best(), &past).unwrap();
        flip(&mut solver);
        let mut values = past.clone();
        let further = (0..50).try_for_each(|_| solver.next(&rule).map(|value| values.push(value)));
        let seen = further.and_then(|()| solver.check_memory(&values));
        assert!(matches!(seen, Err(Error::Flipped { .. })), "flip {i}: {seen:?}");
    }
}

/// Only one pair gives the missing value. It lies beyond the pairs entered in the set and beyond the first task.
#[test]
fn a_single_decisive_pair_far_from_both_ends_is_found() {
    let rule: Rule = "0.4".parse().unwrap();
    for (at, first) in [(MARKED, 256u64), (MARKED + 1, 300), (TASK + 300, 2 * TASK + 1000), (TASK, 3 * TASK)] {
        let n = 2 * at.max(first) + 2;
        // All values but one are 0, so one option is 1 and the others are 0.
        let mut values = vec![0u16; index(n)];
        values[index(at)] = 1;
        let mut solver = ExhaustiveSolver::new(Kernel::best(), &values).unwrap();
        assert_eq!(solver.value(&rule, n).unwrap(), 2, "{at} of {n}");
        values[index(at)] = 2;
        let mut solver = ExhaustiveSolver::new(Kernel::best(), &values).unwrap();
        assert_eq!(solver.value(&rule, n).unwrap(), 1, "{at} of {n}");
    }
}

//! Published values and periods, from `data/`.
//!
//! Extend this file for a published table; its numbers go to `data/` with their source.

use crate::support::data;
use grundy::kernel::Kernel;
use grundy::solver::{self, Method};
use grundy::theory::definition;
use grundy::theory::nimber::nim_sum;
use grundy::theory::rule::Rule;

fn rule(game: &str) -> Rule {
    game.parse().unwrap()
}

fn computed(game: &str, count: usize) -> Vec<u16> {
    solver::values(&rule(game), Method::Sparse(Kernel::best()), count).unwrap()
}

/// Values as (n, value), from rows that consist of the first n and single digits.
fn printed(file: &str) -> Vec<(usize, u16)> {
    let mut values = Vec::new();
    for line in data(file).lines() {
        let (first, digits) = line.split_once(' ').unwrap();
        let digits = digits.bytes().filter(u8::is_ascii_digit).map(|digit| u16::from(digit - b'0'));
        values.extend((first.parse().unwrap()..).zip(digits));
    }
    values
}

#[test]
fn grundys_game_is_as_printed_in_1939_in_eureka_16_and_by_schrage() {
    for (file, last) in [("grundy-1939.txt", 17), ("guy-eureka16.txt", 38), ("schrage-1983-table1.txt", 100)] {
        let printed = printed(file);
        assert_eq!(printed.last().map(|p| p.0), Some(last), "{file} is complete");
        assert!(printed.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0), "{file} has no gap");
        for values in [definition::values(&rule("grundy"), 101).unwrap(), computed("grundy", 101)] {
            for &(n, value) in &printed {
                assert_eq!(values[n], value, "{file}: G({n})");
            }
        }
    }
}

#[test]
fn the_nim_addition_table_is_as_printed_in_1939() {
    let table = data("nim-addition-1939.txt");
    assert_eq!(table.lines().count(), 8);
    for (x, row) in (0..).zip(table.lines()) {
        let sums: String = (0..8).map(|y| nim_sum([x, y]).to_string()).collect();
        assert_eq!(sums, row, "row {x}");
    }
}

#[test]
fn remove_a_square_is_as_printed_with_period_12_from_71() {
    let printed: Vec<u16> =
        data("remove-a-square-a286332.txt").split_whitespace().map(|value| value.parse().unwrap()).collect();
    assert_eq!(printed.len(), 96);
    assert_eq!(definition::values(&rule("remove-a-square"), 96).unwrap(), printed);
    let values = computed("remove-a-square", 10_000);
    assert_eq!(values[..96], printed);
    has_period("remove-a-square", &values, 12, 71);
    let zeros = (2..values.len()).filter(|&n| values[n] == 0);
    assert!(zeros.eq((13..values.len()).step_by(12)), "the zeros are 12a + 1");
}

#[test]
fn the_zeros_of_grundys_game_are_those_of_a036685() {
    let zeros: Vec<usize> =
        data("grundy-zeros-a036685.txt").split_whitespace().map(|heap| heap.parse().unwrap()).collect();
    assert_eq!(zeros.len(), 42);
    let found = |values: &[u16]| (0..values.len()).filter(|&n| values[n] == 0).collect::<Vec<_>>();
    assert_eq!(found(&definition::values(&rule("grundy"), 1300).unwrap()), zeros);
    assert_eq!(found(&computed("grundy", 1 << 20)), zeros);
}

#[test]
fn the_zeros_of_dawsons_kayles_are_those_of_a215721() {
    let mut zeros: Vec<usize> =
        data("dawson-kayles-a215721.txt").split_whitespace().map(|heap| heap.parse().unwrap()).collect();
    while *zeros.last().unwrap() < 3000 {
        zeros.push(zeros[zeros.len() - 5] + 34);
    }
    let values = computed("dawson-kayles", 3000);
    zeros.retain(|&n| n < 3000);
    assert_eq!((0..3000).filter(|&n| values[n] == 0).collect::<Vec<_>>(), zeros);
}

/// Fails if a value is truncated to a byte, because then all later values are wrong.
#[test]
fn the_first_value_above_255_of_grundys_game_is_256_at_7250049() {
    let facts = data("facts.csv");
    let fact = |name: &str| -> (usize, u16) {
        let line = facts.lines().find(|line| line.split(',').nth(1) == Some(name)).unwrap();
        let mut numbers = line.split(',').skip(2);
        (numbers.next().unwrap().parse().unwrap(), numbers.next().unwrap().parse().unwrap())
    };
    let (at, value) = fact("first above 255");
    let method = Method::Sparse(Kernel::best());
    let values = solver::values(&rule("grundy"), method, at + 1000).unwrap();
    assert_eq!(values.iter().position(|&v| v > 255), Some(at));
    assert_eq!(values[at], value);
    let last_zero = values.iter().rposition(|&v| v == 0).unwrap();
    assert_eq!(last_zero, fact("last zero below 7250050").0);
}

/// G(n+p) = G(n) from the preperiod on and not earlier, and for no smaller p.
fn has_period(game: &str, values: &[u16], period: usize, preperiod: usize) {
    let repeats = |p: usize, from: usize| values[from..values.len() - p] == values[from + p..];
    assert!(values.len() >= preperiod + 2 * period, "{game}: values enough to see two periods");
    assert!(repeats(period, preperiod), "{game}: period {period} from {preperiod} on");
    if preperiod > 0 {
        let before = preperiod - 1;
        assert_ne!(values[before], values[before + period], "{game}: the preperiod is not smaller");
    }
    for smaller in 1..period {
        assert!(!repeats(smaller, preperiod), "{game}: the period is not {smaller}");
    }
}

#[test]
fn published_periods_hold_with_their_preperiods_and_largest_values() {
    let table = data("periods.csv");
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("game,period,preperiod,max_value"));
    let mut games = 0;
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let [game, period, preperiod, max_value] = fields[..] else { panic!("{line}") };
        let (period, preperiod): (usize, usize) = (period.parse().unwrap(), preperiod.parse().unwrap());
        // Beyond the bound of Guy and Smith, 2 n0 + p + t, so that the comparison is a proof.
        let values = computed(game, 2 * preperiod + 3 * period + 500);
        has_period(game, &values, period, preperiod);
        if let Ok(largest) = max_value.parse::<u16>() {
            assert_eq!(values.iter().max(), Some(&largest), "{game}: the largest value");
        }
        games += 1;
    }
    assert_eq!(games, 30, "a line for each of the games");
}

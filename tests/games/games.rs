//! Schrage's game and sums of heaps: printed tables, the theorem against the recursion, and the winning moves against
//! all moves.

use crate::support::{Random, cases, data, fails, grundy, run_well, stdout_of};
use grundy::games::play::{Game, Heap, Winning, value, winning_moves};
use grundy::games::rectangle::{Bars, by_theorem};
use grundy::theory::definition;
use grundy::theory::nimber::mex;
use grundy::theory::rule::{Leaves, Move, Rule};
use std::collections::BTreeSet;

fn json(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&stdout_of(&[arguments, &["--json"]].concat())).unwrap()
}

fn defined(game: &str, count: usize) -> Vec<u16> {
    definition::values(&game.parse().unwrap(), count).unwrap()
}

// Schrage's game

/// All bars with sides from 1 up to these.
fn bars(sides: &[u64]) -> Vec<Vec<u64>> {
    sides.iter().fold(vec![vec![]], |bars, &most| {
        bars.iter().flat_map(|bar| (1..=most).map(move |side| [&bar[..], &[side]].concat())).collect()
    })
}

#[test]
fn theorem_equals_direct_recursion_up_to_five_dimensions() {
    let largest: [&[u64]; 8] =
        [&[200], &[60, 60], &[1, 150], &[7, 90], &[14, 14, 14], &[5, 3, 40], &[7, 7, 7, 7], &[4, 5, 4, 4, 6]];
    for d in [0, 1, 2, 3, 4, 5, 8, 13, 1000] {
        let g = definition::values(&Rule::grundy(d).unwrap(), 201).unwrap();
        for sides in largest {
            let direct = Bars::compute(sides, d).unwrap();
            for bar in bars(sides) {
                let theorem = by_theorem(bar.iter().map(|&side| g[usize::try_from(side).unwrap()]));
                assert_eq!(direct.value(&bar), Some(theorem), "{bar:?}, d = {d}");
            }
        }
    }
}

/// Breaks bars as the definition states, with a map instead of arrays: the recursion of [`Bars`], implemented a second
/// time.
#[test]
fn recursion_equals_the_definition_of_the_game() {
    fn value(bar: &[u64], d: u64, known: &mut std::collections::BTreeMap<Vec<u64>, u16>) -> u16 {
        let mut key = bar.to_vec();
        key.sort_unstable();
        if let Some(&value) = known.get(&key) {
            return value;
        }
        let mut options = Vec::new();
        for axis in 0..bar.len() {
            for part in (1..bar[axis]).filter(|&part| part.abs_diff(bar[axis] - part) >= d) {
                let [mut one, mut other] = [bar.to_vec(), bar.to_vec()];
                (one[axis], other[axis]) = (part, bar[axis] - part);
                options.push(value(&one, d, known) ^ value(&other, d, known));
            }
        }
        let found = u16::try_from(mex(options)).unwrap();
        known.insert(key, found);
        found
    }
    for d in [0, 1, 2, 5] {
        let mut known = std::collections::BTreeMap::new();
        for sides in [&[40][..], &[16, 20], &[8, 7, 9], &[4, 5, 4, 3]] {
            let direct = Bars::compute(sides, d).unwrap();
            for bar in bars(sides) {
                assert_eq!(direct.value(&bar), Some(value(&bar, d, &mut known)), "{bar:?}, d = {d}");
            }
        }
    }
}

/// Section 3 of the article, Q1 and Q2, and the end of a play.
#[test]
fn sides_may_be_swapped_and_sides_of_1_and_2_do_not_count() {
    let g = defined("grundy", 41);
    let direct = Bars::compute(&[40, 40], 1).unwrap();
    let at = |m, n| direct.value(&[m, n]).unwrap();
    for m in 1..=40 {
        assert!((1..=40).all(|n| at(m, n) == at(n, m)), "{m}");
        assert_eq!([at(1, m), at(2, m)], [g[usize::try_from(m).unwrap()]; 2]);
        assert_eq!(direct.side_value(0, m), Some(at(m, 1)));
    }
    let grundy: Rule = "grundy".parse().unwrap();
    let can_be_split = |n: u64| grundy.splits().any(|split| split.largest_small_part(n) > 0);
    assert!((0..100).all(|n| can_be_split(n) == (n > 2)), "a play ends when all heaps have one or two matches");
    assert!([[1, 1], [1, 2], [2, 1], [2, 2]].iter().all(|bar| direct.value(bar) == Some(0)));
    assert_eq!([direct.value(&[41, 1]), direct.value(&[0, 1]), direct.value(&[1]), direct.side_value(2, 1)], [None; 4]);
}

/// Section 4 prints the least difference of the parts I and K - I as |K - I| >= d. With this formula d = 1 would not
/// give Grundy's game, although the same sentence states it.
#[test]
fn least_difference_is_between_the_parts_despite_the_printed_formula() {
    let mut letter = vec![0, 0];
    for k in 2..=100usize {
        letter.push(u16::try_from(mex((1..k).filter(|i| k - i >= 1).map(|i| letter[i] ^ letter[k - i]))).unwrap());
    }
    assert_eq!(letter[2], 1, "two matches could be split");
    let g = defined("grundy", 101);
    assert!(letter != g && letter == defined("grundy:d=0", 101));
}

#[test]
fn bars_of_one_dimension_give_table_1_of_schrage() {
    let direct = Bars::compute(&[100], 1).unwrap();
    let mut printed = 0;
    for line in data("schrage-1983-table1.txt").lines() {
        let (first, digits) = line.split_once(' ').unwrap();
        for (n, digit) in (first.parse().unwrap()..).zip(digits.bytes().filter(u8::is_ascii_digit)) {
            assert_eq!(direct.value(&[n]), Some(u16::from(digit - b'0')), "G({n})");
            printed += 1;
        }
    }
    assert_eq!(printed, 100);
}

/// Table 2 as printed: (M, its values).
fn table_2() -> Vec<(u64, Vec<u16>)> {
    let rows: Vec<(u64, Vec<u16>)> = data("schrage-1983-table2.txt")
        .lines()
        .map(|line| {
            let mut numbers = line.split_whitespace();
            (numbers.next().unwrap().parse().unwrap(), numbers.map(|value| value.parse().unwrap()).collect())
        })
        .collect();
    assert!(rows.iter().map(|row| row.0).eq(1..=20));
    rows
}

/// Compares Table 2 with the list of misprints in data/README.md, cell by cell.
#[test]
fn table_2_of_schrage_has_only_the_known_misprints() {
    let direct = Bars::compute(&[20, 20], 1).unwrap();
    let mut wrong = BTreeSet::new();
    let mut long = BTreeSet::new();
    for (m, row) in table_2() {
        let value = |n| direct.value(&[m, n]).unwrap();
        wrong.extend((1..=20).zip(&row).filter(|&(n, &printed)| printed != value(n)).map(|(n, _)| (m, n)));
        match row[20..] {
            [] => {}
            [stray] => {
                assert_eq!(stray, value(20), "the stray cell of row {m} is the value of column 20");
                assert_eq!((row[18], row[19]), (1, 1), "row {m} has a 1 too many before it");
                long.insert(m);
            }
            _ => panic!("row {m} has {} cells", row.len()),
        }
    }
    let g = defined("grundy", 21);
    assert_eq!(long, (1..=20).filter(|&m| g[usize::try_from(m).unwrap()] != 0).collect());
    let expected: BTreeSet<(u64, u64)> = [5, 8, 11, 13, 14, 16, 17, 18, 19].map(|m| (m, 20)).into();
    assert_eq!(wrong, &expected | &[(2, 19)].into());
    assert_eq!((table_2()[1].1[18], direct.value(&[2, 19])), (2, Some(3)), "the misprint");
}

/// The formula of section 4 for three dimensions.
#[test]
fn values_in_three_dimensions_match_section_4() {
    let (three, two) = (Bars::compute(&[12, 12, 12], 1).unwrap(), Bars::compute(&[12, 12], 1).unwrap());
    let g = defined("grundy", 13);
    let side = |side: u64| g[usize::try_from(side).unwrap()];
    for bar in bars(&[12, 12, 12]) {
        let value = three.value(&bar).unwrap();
        if side(bar[0]) == 0 {
            assert_eq!(Some(value), two.value(&bar[1..]), "{bar:?}");
        } else if bar.iter().all(|&s| side(s) > 0) {
            assert_eq!(value, 1, "{bar:?}");
        }
    }
}

#[test]
fn bars_too_large_for_the_recursion_are_refused_with_the_bound() {
    for sides in [&[100_000, 100_000][..], &[u64::MAX, u64::MAX], &[u64::MAX], &[2; 64], &[2; 100], &[1 << 20]] {
        let refused = Bars::compute(sides, 1).unwrap_err().to_string();
        assert!(refused.contains("4294967296") && refused.contains("theorem"), "{refused}");
    }
    assert!(Bars::compute(&[3, 0], 1).unwrap_err().to_string().contains("at least 1"));
    assert_eq!(Bars::compute(&[1; 50], 1).unwrap().value(&[1; 50]), Some(0));
    assert_eq!(Bars::compute(&[], 1).unwrap().value(&[]), Some(0));
    assert_eq!(Bars::compute(&[9, 9], u64::MAX).unwrap().value(&[9, 9]), Some(0), "no part can be so large");
    fails(2, &["rectangle", "1e5", "1e5", "--direct"], &["4294967296", "100000x100000"]);
    fails(2, &["rectangle", "--table", "1e5x1e5", "--direct"], &["4294967296"]);
    fails(2, &["rectangle", "2^28", "5"], &["grundy run", "268435456", "2^28"]);
    fails(2, &["rectangle", "18446744073709551615"], &["grundy run"]);
    fails(2, &["rectangle", "0", "5"], &["at least 1"]);
    fails(2, &["rectangle"], &["SIDE"]);
    fails(2, &["rectangle", "5", "--table", "3x3"], &["--table"]);
    fails(2, &["rectangle", "5", "--min-difference", "2^33"], &["4294967296"]);
    for table in ["3", "3x", "0x3", "x", "3x3x3"] {
        fails(2, &["rectangle", "--table", table], &["--table"]);
    }
}

#[test]
fn rectangle_prints_the_value_by_theorem_and_by_recursion() {
    let g = defined("grundy", 301);
    for (sides, value) in [(["1", "18"], g[18]), (["2", "19"], 3), (["5", "8"], 1), (["300", "7"], g[300])] {
        for method in [&[][..], &["--direct"]] {
            let line = stdout_of(&[&["rectangle", sides[0], sides[1]], method].concat());
            assert!(line.starts_with(&format!("{}x{}: nim-value {value}, ", sides[0], sides[1])), "{line}");
        }
    }
    for sides in [&["5x8", "9"][..], &["5", "8x9"], &["5x8x9"]] {
        assert_eq!(stdout_of(&[&["rectangle"], sides].concat()), stdout_of(&["rectangle", "5", "8", "9"]));
    }
    for wrong in ["5x", "x5", "5xx8", "5x0"] {
        fails(2, &["rectangle", wrong], &[wrong]);
    }
    let direct = json(&["rectangle", "5", "8", "9", "--min-difference", "2", "--direct"]);
    let mut theorem = json(&["rectangle", "5", "8", "9", "--min-difference", "2"]);
    let keys: Vec<&String> = direct.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["method", "min_difference", "side_values", "sides", "value"]);
    assert_eq!((&theorem["method"], &direct["method"]), (&"theorem".into(), &"direct".into()));
    theorem["method"] = "direct".into();
    assert_eq!(theorem, direct);
    let g = defined("grundy:d=2", 10);
    assert_eq!(direct["side_values"], serde_json::json!([g[5], g[8], g[9]]));
}

#[test]
fn the_table_of_rectangle_is_table_2() {
    let direct = Bars::compute(&[20, 20], 1).unwrap();
    for method in [&[][..], &["--direct"]] {
        let plain = stdout_of(&[&["rectangle", "--table", "20x19"], method].concat());
        let lines = stdout_of(&[&["rectangle", "--table", "20x19", "--json"], method].concat());
        assert_eq!((plain.lines().count(), lines.lines().count()), (21, 20));
        for ((m, printed), (line, object)) in table_2().into_iter().zip(plain.lines().skip(1).zip(lines.lines())) {
            let mut numbers = line.split_whitespace().map(|number| number.parse::<u64>().unwrap());
            assert_eq!(numbers.next(), Some(m));
            let row: Vec<u64> = numbers.collect();
            let object: serde_json::Value = serde_json::from_str(object).unwrap();
            assert_eq!(object, serde_json::json!({ "row": m, "values": row }));
            for ((n, value), printed) in (1..).zip(row).zip(printed) {
                assert_eq!(direct.value(&[m, n]).map(u64::from), Some(value));
                assert!(value == u64::from(printed) || (m, n) == (2, 19), "({m}, {n})");
            }
        }
    }
    assert_eq!(stdout_of(&["rectangle", "--table", "2x3"]), "   1 2 3\n1  0 0 1\n2  0 0 1\n");
}

// Sums of heaps

/// A component of a position: a game with its values.
struct KnownGame {
    rule: Option<Rule>,
    values: Vec<u16>,
}

impl KnownGame {
    fn new(game: &str, count: usize) -> KnownGame {
        match game {
            "nim" => KnownGame { rule: None, values: Vec::new() },
            _ => KnownGame::of(game.parse().unwrap(), count),
        }
    }

    fn of(rule: Rule, count: usize) -> KnownGame {
        KnownGame { values: definition::values(&rule, count).unwrap(), rule: Some(rule) }
    }

    fn value(&self, n: u64) -> u64 {
        match self.rule {
            None => n,
            Some(_) => self.values[usize::try_from(n).unwrap()].into(),
        }
    }

    /// Every move of a heap of n as (parts, constant), by the normal form; a move may occur more than once.
    fn moves(&self, n: u64) -> Vec<([u64; 3], u16)> {
        let Some(rule) = &self.rule else { return (0..n).map(|left| ([0, 0, left], 0)).collect() };
        let mut all = Vec::new();
        for m in rule.moves().iter().filter(|m| m.remove <= n) {
            let left = n - m.remove;
            match m.leaves {
                Leaves::Nothing if left == 0 => all.push(([0, 0, 0], m.constant)),
                Leaves::One if left > 0 => all.push(([0, 0, left], m.constant)),
                Leaves::Two { min_difference } => {
                    let parts = (1..left).map(|a| [a, left - a]);
                    let apart = parts.filter(|[a, b]| a.abs_diff(*b) >= min_difference);
                    all.extend(apart.map(|[a, b]| ([0, a.min(b), a.max(b)], m.constant)));
                }
                Leaves::Three => {
                    let all_parts = (1..left).flat_map(|a| (1..left - a).map(move |b| [a, b, left - a - b]));
                    all.extend(all_parts.map(|mut parts| {
                        parts.sort_unstable();
                        (parts, m.constant)
                    }));
                }
                _ => {}
            }
        }
        all
    }
}

/// Value and winning moves of a position, by the library.
fn played(heaps: &[(&KnownGame, u64)]) -> (u64, Vec<Winning>) {
    let position: Vec<Heap<'_>> = heaps
        .iter()
        .map(|&(game, size)| match &game.rule {
            None => Heap { game: Game::Nim, size },
            Some(rule) => Heap { game: Game::Heap { rule, values: &game.values }, size },
        })
        .collect();
    let mut wins = Vec::new();
    winning_moves(&position, |win| {
        wins.push(win);
        Ok::<_, grundy::Error>(())
    })
    .unwrap();
    (value(&position).unwrap(), wins)
}

/// The sum as both articles define it, digit by digit.
fn digital_sum(a: u64, b: u64) -> u64 {
    if a == 0 && b == 0 { 0 } else { (a + b) % 2 + 2 * digital_sum(a / 2, b / 2) }
}

/// The winning moves are all moves after which the digital sum is 0, each once. There is one if the sum is not 0.
#[test]
fn winning_moves_are_all_moves_to_value_0() {
    let split = |remove, constant, d| Move { remove, constant, leaves: Leaves::Two { min_difference: d } };
    let odd = Rule::from_moves(
        "two splits that differ in the difference only, and constants",
        vec![
            split(0, 0, 3),
            split(0, 0, 1),
            split(0, 2, 1),
            split(3, 1, 0),
            Move { remove: 2, constant: 1, leaves: Leaves::One },
            Move { remove: 2, constant: 5, leaves: Leaves::Nothing },
        ],
    )
    .unwrap();
    let names = [
        "nim",
        "grundy",
        "grundy:d=2",
        "grundy:d=0",
        "kayles",
        "4.3",
        ".6",
        "dawson-kayles",
        "remove-a-square",
        "8.8F",
    ];
    let mut games: Vec<KnownGame> = names.iter().map(|name| KnownGame::new(name, 81)).collect();
    games.push(KnownGame::of(odd, 81));
    let mut random = Random::new("winning moves");
    let (mut lost, mut won) = (0, 0);
    for _ in 0..cases(2000, 100_000) {
        let count = 1 + random.below(4);
        let heaps: Vec<(&KnownGame, u64)> =
            (0..count).map(|_| (&games[usize::try_from(random.below(11)).unwrap()], random.below(81))).collect();
        let total = heaps.iter().fold(0, |sum, &(game, n)| digital_sum(sum, game.value(n)));
        let (value, wins) = played(&heaps);
        assert_eq!(value, total);
        let mut expected = BTreeSet::new();
        for (heap, &(game, n)) in heaps.iter().enumerate() {
            let rest = total ^ game.value(n);
            for (left, constant) in game.moves(n) {
                let parts = left.iter().filter(|&&part| part > 0);
                let option = parts.fold(constant.into(), |sum, &part| digital_sum(sum, game.value(part)));
                assert_ne!(digital_sum(rest, option), total, "any move alters the value");
                if digital_sum(rest, option) == 0 {
                    expected.insert((heap, n - left.iter().sum::<u64>(), constant, left));
                }
            }
        }
        assert_eq!(expected.is_empty(), total == 0, "the sum decides the winner");
        let mut key: Vec<_> = wins.iter().map(|win| (win.heap, win.taken(), win.constant, win.left)).collect();
        if !heaps.iter().any(|(game, _)| game.rule.is_none()) {
            assert!(key.is_sorted(), "in order: {key:?}");
        }
        key.sort_unstable();
        assert!(key.iter().eq(expected.iter()), "{key:?} are not {expected:?}");
        *(if total == 0 { &mut lost } else { &mut won }) += 1;
    }
    assert!(lost > 50 && won > 50, "{lost} lost, {won} won");
}

/// Property (2) of Grundy's article: every smaller value can be reached in one move.
#[test]
fn omega_can_be_decreased_to_every_smaller_value_in_one_move() {
    let (grundys, nim) = (KnownGame::new("grundy", 200), KnownGame::new("nim", 0));
    for x in 0..200 {
        for omega in 0..grundys.value(x) {
            let (_, wins) = played(&[(&grundys, x), (&nim, omega)]);
            assert!(wins.iter().any(|win| win.heap == 0), "Omega({x}) = {} to {omega}", grundys.value(x));
        }
    }
}

/// Grundy's article, statement (1), for all positions of three heaps up to 12; and a Nim heap of x has value x.
#[test]
fn nim_p_positions_lead_only_to_n_positions_and_n_to_some_p() {
    let nim = KnownGame::new("nim", 0);
    for x in 0..=12 {
        let options: Vec<u16> = (0..u16::try_from(x).unwrap()).collect();
        assert_eq!(u64::from(mex(options)), nim.value(x));
        for (y, z) in (0..=12).flat_map(|y| (0..=12).map(move |z| (y, z))) {
            let (value, wins) = played(&[(&nim, x), (&nim, y), (&nim, z)]);
            assert_eq!(value, digital_sum(digital_sum(x, y), z));
            assert_eq!(value, digital_sum(x, digital_sum(y, z)), "associative");
            assert_eq!(wins.is_empty(), value == 0);
        }
        assert_eq!(digital_sum(x, x), 0);
    }
}

#[test]
fn omega_is_as_printed_in_1939_and_in_table_1() {
    for (file, last) in [("grundy-1939.txt", 17), ("schrage-1983-table1.txt", 100)] {
        let mut printed = Vec::new();
        for line in data(file).lines() {
            printed.extend(line.split_once(' ').unwrap().1.bytes().filter(u8::is_ascii_digit).map(|d| d - b'0'));
        }
        assert_eq!(printed.len(), last);
        let heaps: Vec<String> = (1..=last).map(|n| n.to_string()).collect();
        let arguments: Vec<&str> = ["play", "grundy"].into_iter().chain(heaps.iter().map(String::as_str)).collect();
        let object = json(&arguments);
        let values: Vec<&serde_json::Value> =
            object["heaps"].as_array().unwrap().iter().map(|heap| &heap["value"]).collect();
        assert_eq!(values, printed, "{file}");
        assert_eq!(object["value"], printed.iter().fold(0, |sum, value| sum ^ value));
    }
}

#[test]
fn nim_39_35_25_14_has_one_winning_move_15_from_the_third_heap() {
    assert_eq!(
        stdout_of(&["play", "nim", "39", "35", "25", "14"]),
        "nim-value 19: the player to move wins with\nheap 3: 25 -> 10 (take 15)\n"
    );
    assert_eq!(stdout_of(&["play", "nim", "39", "35", "10", "14"]), "nim-value 0: the player to move loses\n");
    assert_eq!(
        stdout_of(&["play", "nim", "9"]),
        "nim-value 9: the player to move wins with\nheap 1: 9 -> 0 (take 9)\n"
    );
    // The example of the digital sum: 13 becomes 6 by a move in one of three heaps.
    assert!(stdout_of(&["play", "nim", "45", "39", "25", "30"]).starts_with("nim-value 13: "));
    assert_eq!(
        stdout_of(&["play", "nim", "45", "39", "25", "30", "6"]),
        "nim-value 11: the player to move wins with\nheap 1: 45 -> 38 (take 7)\nheap 3: 25 -> 18 (take 7)\nheap 4: 30 -> 21 (take 9)\n"
    );
    assert!(stdout_of(&["play", "nim", "3", "6"]).starts_with("nim-value 5: "), "3 + 6 = 5");
    assert!(stdout_of(&["play", "nim", "18446744073709551615", "1"]).starts_with("nim-value 18446744073709551614: "));
}

#[test]
fn the_nim_addition_table_is_printed_as_in_1939() {
    assert_eq!(stdout_of(&["play", "--table", "8"]), data("nim-addition-1939.txt"));
    assert_eq!(stdout_of(&["play", "--table", "1"]), "0\n");
    assert_eq!(stdout_of(&["play", "--table", "2", "--json"]).lines().last(), Some("{\"row\":1,\"values\":[1,0]}"));
    let wide = stdout_of(&["play", "--table", "9"]);
    assert_eq!(wide.lines().next(), Some(" 0  1  2  3  4  5  6  7  8"));
    assert_eq!(wide.lines().last(), Some(" 8  9 10 11 12 13 14 15  0"));
    fails(2, &["play", "--table", "0"], &["--table"]);
}

/// A split of a lone heap wins if its two parts have the same value.
#[test]
fn the_first_twenty_winning_moves_are_printed_and_all_on_request() {
    let g = defined("grundy", 2000);
    let value = g[1999];
    let wins = (1..1000).filter(|&small| g[small] == g[1999 - small]).count();
    assert!(wins > 21, "{wins} winning moves");
    let position = ["play", "grundy:1999"];
    assert_ne!(value, 0);
    let all = stdout_of(&[&position[..], &["--all"]].concat());
    let lines: Vec<&str> = all.lines().collect();
    assert_eq!(
        (lines[0], lines.len()),
        (format!("nim-value {value}: the player to move wins with").as_str(), wins + 1)
    );
    let first = stdout_of(&position);
    let expected = format!("{}\n… {wins} winning moves in all; --all prints them\n", lines[..21].join("\n"));
    assert_eq!(first, expected);
    assert_eq!(json(&position)["moves"].as_array().unwrap().len(), wins);
}

#[test]
fn moves_that_split_or_leave_nothing_or_one_cell_are_described() {
    // Omega(17) = 2; 5 and 12 have the values 2 and 1. The other heap has value 3.
    let moves = stdout_of(&["play", "grundy:17", "nim:3"]);
    assert!(moves.contains("heap 1: 17 -> 5 + 12\n"), "{moves}");
    assert_eq!(
        stdout_of(&["play", "kayles", "2"]),
        "nim-value 2: the player to move wins with\nheap 1: 2 -> 0 (take 2)\n"
    );
    assert_eq!(
        stdout_of(&["play", "kayles", "3"]),
        "nim-value 3: the player to move wins with\nheap 1: 3 -> 1 + 1 (take 1)\n"
    );
    // A 2x1 board: a move takes one cell and leaves the other, so the game is not over.
    assert_eq!(stdout_of(&["play", "remove-a-square", "1"]), "nim-value 0: the player to move loses\n");
    assert_eq!(
        stdout_of(&["play", "remove-a-square:1", "nim:1"]),
        "nim-value 1: the player to move wins with\nheap 1: 1 -> *1 (take 1)\nheap 2: 1 -> 0 (take 1)\n"
    );
    assert_eq!(
        stdout_of(&["play", "remove-a-square", "2"]),
        "nim-value 2: the player to move wins with\nheap 1: 2 -> 0 (take 2)\n"
    );
    let object = json(&["play", "remove-a-square:1", "nim:1"]);
    assert_eq!(
        object,
        serde_json::json!({
            "value": 1, "lost": false,
            "heaps": [{ "game": "remove-a-square", "size": 1, "value": 0 }, { "game": "nim", "size": 1, "value": 1 }],
            "moves": [
                { "heap": 1, "from": 1, "to": [], "take": 1, "constant": 1 },
                { "heap": 2, "from": 1, "to": [], "take": 1, "constant": 0 },
            ],
        })
    );
    let lost = json(&["play", "nim", "0"]);
    assert_eq!((&lost["lost"], &lost["moves"]), (&true.into(), &serde_json::json!([])));
}

#[test]
fn game_arguments_may_contain_colons_or_name_directories() {
    let k = defined("kayles", 13)[12];
    let g2 = defined("grundy:d=2", 101)[100];
    let object = json(&["play", "kayles:12", "nim:5", "grundy:d=2:100"]);
    assert_eq!(object["value"], k ^ 5 ^ g2);
    assert_eq!(object["heaps"][2], serde_json::json!({ "game": "grundy:d=2", "size": 100, "value": g2 }));
    assert_eq!(json(&["play", "grundy:d=2", "1e2"])["value"], g2);
    assert_eq!(json(&["play", "grundy:d=2:100"])["value"], g2);
    let dirs = tempfile::tempdir().unwrap();
    let path = dirs.path().join("nim");
    run_well("0.6", &path, &["--to", "9000"]);
    let dir = path.to_str().unwrap();
    let heap = |n: u64| format!("{dir}:{n}");
    assert_eq!(stdout_of(&["play", dir, "8999", "77"]), stdout_of(&["play", ".6", "8999", "77"]));
    assert_eq!(stdout_of(&["play", &heap(8999), ".6:77"]), stdout_of(&["play", ".6", "8999", "77"]));
    let here = grundy(["play", "./nim:8000", "--json"]).current_dir(dirs.path()).output().unwrap();
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&here.stdout).unwrap()["value"], defined(".6", 8001)[8000]);
    fails(1, &["play", dir, "9000"], &["9,000 values", &format!("grundy run 0.6 --dir {dir} --to 9001")]);
    fails(1, &["play", &heap(8999), &heap(20_000)], &["heap 20000", "--to 20001"]);
    fails(1, &["play", "runs/none", "5"], &["runs/none"]);
    fails(2, &["play", ".G", "5"], &["position 2"]);
    fails(2, &["play", "kayle:5"], &["kayle"]);
    fails(2, &["play", "kayles"], &["GAME:HEAP"]);
    fails(2, &["play", "grundy:d=2"], &["d=2"]);
    fails(2, &["play", "kayles", "12", "x"], &["'x'"]);
    fails(2, &["play", "kayles", "x"], &["'x'"]);
    fails(2, &["play", "kayles", "nim:5"], &["'kayles' has no heap"]);
    fails(2, &["play"], &["GAME"]);
    fails(2, &["play", "kayles", "2^28"], &["grundy run", "2^28", "--dir"]);
    // The largest heap is named, whatever game brings the values above the limit.
    fails(2, &["play", "kayles:268435455", ".07:10"], &["heap 268435455", "grundy run 0.77 --to 268435456"]);
    fails(2, &["play", "kayles:2^27", ".6:2^27"], &["grundy run"]);
    fails(2, &["play", "kayles", "18446744073709551615"], &["grundy run"]);
}

/// Values above a byte, searched in several pieces: compares with every split of a large heap.
#[test]
fn winning_moves_of_a_large_heap_are_complete() {
    let n = 300_000usize;
    let method = grundy::solver::Method::Sparse(grundy::kernel::Kernel::best());
    let values = grundy::solver::values(&"grundy".parse().unwrap(), method, n + 1).unwrap();
    for nim in [0, 1, u64::from(values[n]) + 1, 70_000] {
        let total = u64::from(values[n]) ^ nim;
        let splits = (1..n.div_ceil(2)).filter(|&a| u64::from(values[a] ^ values[n - a]) == nim && total != 0);
        let expected: Vec<String> = splits.map(|a| format!("heap 1: {n} -> {a} + {}", n - a)).collect();
        let said = stdout_of(&["play", &format!("grundy:{n}"), &format!("nim:{nim}"), "--all"]);
        let found: Vec<&str> = said.lines().filter(|line| line.starts_with("heap 1")).collect();
        assert!(found.iter().eq(expected.iter()), "nim {nim}: {} and {} moves", found.len(), expected.len());
        assert!(nim > 0 || found.len() > 1000);
    }
}

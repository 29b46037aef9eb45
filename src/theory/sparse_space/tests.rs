use super::*;
use crate::theory::definition;

fn space(game: &str, mask: u16, position: u8) -> SparseSpace {
    SparseSpace::new(&game.parse().unwrap(), mask, position).unwrap()
}

#[test]
fn the_code_is_linear_and_on_common_values_increasing_and_reversible() {
    let spaces = [
        space("grundy", 0x1fe, 0),
        space("0.6", 0x1ee, 0),
        space("0.106", 0xd, 1),
        space("0.104", 0x17, 1),
        space("remove-a-square", 0x3, 1),
        space("0.77", 0x100, 0),
        space("0.77", 0x200, 0),
        space("0.77", 0x8000, 0),
    ];
    for s in spaces {
        for n in [1, 2] {
            let common: Vec<u16> = (0..s.coded()).filter(|&v| !s.is_rare(v, n)).collect();
            let codes: Vec<u8> = common.iter().map(|&v| s.code(v)).collect();
            assert!(codes.windows(2).all(|pair| pair[0] < pair[1]), "{s:?}");
            assert!(common.iter().zip(&codes).all(|(&v, &code)| s.decode(code, n) == v), "{s:?}");
            let rare: Vec<u16> = (0..s.coded()).filter(|&v| s.is_rare(v, n)).collect();
            let codes: Vec<u8> = rare.iter().map(|&v| s.code(v)).collect();
            assert!(codes.windows(2).all(|pair| pair[0] < pair[1]), "{s:?}");
            assert!(rare.iter().zip(&codes).all(|(&v, &code)| s.decode_rare(code, n) == v), "{s:?}");
        }
        for (u, v) in [(3, 5), (100, 255), (17, 240)] {
            assert_eq!(s.code(u) ^ s.code(v), s.code(u ^ v));
        }
    }
}

/// The scan skips groups, but must find a rare value at any place of any group, and no other value.
#[test]
fn the_scan_finds_the_values_that_are_rare_one_by_one() {
    for s in [space("grundy", 0x1fe, 0), space("0.106", 0xd, 1), space("0.77", 0x8000, 0), SparseSpace::NONE] {
        for (from, length) in [(0, 1), (0, 700), (1, 511), (255, 513), (1 << 40, 1024), ((1 << 40) + 1, 300), (7, 0)] {
            for place in (0..length).step_by(37) {
                let n = |i: usize| from + i as u64;
                let value = |i: usize| s.decode(i.to_le_bytes()[0], n(i)) ^ if i == place { s.lowest() } else { 0 };
                let values: Vec<u16> = (0..length).map(value).collect();
                let expected: Vec<(u64, u16)> =
                    (from..).zip(values.iter().copied()).filter(|r| s.is_rare(r.1, r.0)).collect();
                assert_eq!(s.rare_positions(from, &values).collect::<Vec<_>>(), expected, "{s:?}, {from}, {place}");
                assert!(expected.iter().any(|r| r.0 == n(place)));
            }
        }
    }
}

#[test]
fn a_space_that_mixes_the_classes_is_not_admissible() {
    let kayles = "kayles".parse().unwrap();
    assert!(SparseSpace::new(&kayles, 0xf, 1).is_none()); // removes 1 or 2: the position term sees both parities
    assert!(SparseSpace::new(&kayles, 0xf, 0).is_some());
    assert!(SparseSpace::new(&kayles, 0, 0).is_none());
    assert!(SparseSpace::new(&"0.3".parse().unwrap(), 1, 0).is_none()); // no splits, nothing to gain
    assert!(SparseSpace::new(&Rule::remove_a_square(), 0x2, 1).is_none());
}

#[test]
fn counting_by_transform_agrees_with_counting_one_by_one() {
    for game in ["kayles", "0.106", "remove-a-square", "grundy"] {
        let rule: Rule = game.parse().unwrap();
        let values = definition::values(&rule, 2000).unwrap();
        let (best, rares) = Histogram::of(&values).unwrap().best_space(&rule);
        let count = |s: SparseSpace| (0..).zip(&values).filter(|&(n, &v)| s.is_rare(v, n)).count() as u64;
        assert_eq!(count(best), rares, "{game}");
        for mask in 1..64 {
            for position in [0, 1] {
                if let Some(other) = SparseSpace::new(&rule, mask, position) {
                    assert!(count(other) >= rares, "{game}: {other:?} beats {best:?}");
                }
            }
        }
    }
}

use super::*;

fn rule(text: &str) -> Rule {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Compares with the definition, for small heaps and for heaps around the largest value that is stored.
#[test]
fn nim_has_every_removal_and_the_value_n_up_to_65535() {
    let nim = Rule::nim();
    assert!(nim.is_nim() && !rule(".3").is_nim());
    assert_eq!(crate::theory::definition::values(&nim, 300).unwrap(), (0..300).collect::<Vec<u16>>());
    for n in [65534u64, 65535] {
        let value = crate::theory::definition::value(&nim, n, |m| u16::try_from(m).unwrap()).unwrap();
        assert_eq!(u64::from(value), n);
        let mut options: Vec<u16> = nim.single_options(n, |m| u16::try_from(m).unwrap()).collect();
        options.sort_unstable();
        assert!(options == (0..value).collect::<Vec<u16>>(), "every smaller heap once");
    }
    let above = crate::theory::definition::value(&nim, 65536, |m| u16::try_from(m).unwrap());
    assert!(matches!(above, Err(Error::ValueTooLarge { n: 65536 })));
}

/// Grouped moves give the same options as the list of moves.
#[test]
fn single_options_are_those_of_the_moves() {
    let one = |remove, constant, leaves| Move { remove, constant, leaves };
    let gaps = [(1, 0), (2, 0), (4, 0), (3, 5), (4, 5), (9, 5), (1 << 32, 0)];
    let moves = gaps.iter().flat_map(|&(s, c)| [one(s, c, Leaves::Nothing), one(s, c, Leaves::One)]);
    let mixed = Rule::from_moves("mixed", moves.chain(rule(".3407").moves().to_vec()).collect()).unwrap();
    let value = |n: u64| u16::try_from(n * n % 251).unwrap();
    for game in [mixed, rule(".3"), rule(".12345670123"), rule("remove-a-square"), Rule::nim()] {
        for n in 0..40 {
            let listed = game.moves().iter().filter_map(|m| match m.leaves {
                Leaves::Nothing if n == m.remove => Some(m.constant),
                Leaves::One if n > m.remove => Some(m.constant ^ value(n - m.remove)),
                _ => None,
            });
            let (mut listed, mut grouped) =
                (listed.collect::<Vec<_>>(), game.single_options(n, value).collect::<Vec<_>>());
            listed.sort_unstable();
            grouped.sort_unstable();
            assert_eq!(grouped, listed, "{game}, {n}");
        }
    }
}

#[test]
fn each_bit_of_a_digit_is_one_move() {
    let one = |k| Move { remove: 1, constant: 0, leaves: k };
    assert_eq!(rule(".1").moves(), [one(Leaves::Nothing)]);
    assert_eq!(rule(".2").moves(), [one(Leaves::One)]);
    assert_eq!(rule(".4").moves(), [one(Leaves::Two { min_difference: 0 })]);
    assert_eq!(rule(".7").moves().len(), 3);
    assert_eq!(rule("4.").moves(), [Move { remove: 0, constant: 0, leaves: Leaves::Two { min_difference: 0 } }]);
    let long = format!(".{}7", "0".repeat(5000));
    assert_eq!(rule(&long).max_remove(), 5001);
}

/// 0.(10) removes any odd number of tokens. The finite code has only the moves that are listed of it.
#[test]
fn a_code_that_repeats_has_another_digest_than_its_listed_moves() {
    let repeating = rule(".(10)");
    let finite = Rule::from_moves("v1.0(10)", repeating.moves().to_vec()).unwrap();
    assert_eq!(repeating.moves(), finite.moves());
    assert_ne!(repeating.digest(), finite.digest());
    let finite_in_words = crate::theory::words::moves_in_words(&finite).concat();
    assert!(!finite_in_words.contains('…') && !finite_in_words.contains("or more"), "{finite_in_words}");
}

#[test]
fn any_name_is_a_directory_without_special_characters() {
    let named = |name: &str| Rule::from_moves(name, Vec::new()).unwrap().directory_name();
    for name in ["", ".", "..", "-x", "a/b", "a b", "$(a)", "ä", &"0".repeat(101)] {
        let directory = named(name);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        assert!(directory.chars().all(is_plain), "{name}: {directory}");
        assert!((66..=165).contains(&directory.len()) && directory != name, "{name}: {directory}");
        assert!(directory.starts_with(|c: char| c.is_ascii_alphanumeric()), "{name}: {directory}");
    }
    assert_eq!(named("0.77_x-y"), "0.77_x-y");
    assert_ne!(named("a/b"), named("a b"));
}

#[test]
fn a_move_that_changes_nothing_is_refused() {
    for leaves in [Leaves::Nothing, Leaves::One] {
        assert!(Rule::from_moves("x", vec![Move { remove: 0, constant: 0, leaves }]).is_err());
    }
}

use super::*;
use crate::theory::names::NAMED_GAMES;

fn rule(text: &str) -> Rule {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn position_of_error(text: &str) -> usize {
    match text.parse::<Rule>() {
        Err(Error::Code { position, .. }) => position,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn a_bad_digit_is_refused_with_its_place() {
    assert_eq!(position_of_error(".g"), 2);
    assert_eq!(position_of_error("0.77G"), 5);
    assert_eq!(position_of_error("5.3"), 1);
    assert_eq!(position_of_error("F.3"), 1);
    assert_eq!(position_of_error(".3("), 4);
    assert_eq!(position_of_error(".3()"), 4);
    assert_eq!(position_of_error(".3(4"), 5);
    assert_eq!(position_of_error(".3(4)5"), 6);
    assert_eq!(position_of_error(".3(4(5)"), 5);
    assert_eq!(position_of_error(".3)"), 3);
    assert_eq!(position_of_error(".12..."), 4);
    assert_eq!(position_of_error(".33.."), 4);
    assert_eq!(position_of_error("..."), 2);
    assert_eq!(position_of_error("sub:"), 5);
    assert_eq!(position_of_error("sub:1,0"), 7);
    assert_eq!(position_of_error("sub:1, x"), 8);
    assert_eq!(position_of_error("sub:1,,2"), 7);
    assert_eq!(position_of_error("allbut:4097"), 8);
    assert_eq!(position_of_error("00.3"), 2);
    assert_eq!(position_of_error(".7 7"), 3);
    assert_eq!(position_of_error(".7.7"), 3);
    assert_eq!(position_of_error("."), 2);
    assert_eq!(position_of_error("0"), 2);
    assert_eq!(position_of_error(""), 1);
    assert_eq!(position_of_error("grundy:d=x"), 10);
    assert_eq!(position_of_error("grundy:d="), 10);
    assert_eq!(position_of_error("grundy:d=99999999999999999999"), 10);
    assert_eq!(position_of_error("grundy:x"), 8);
    assert_eq!(position_of_error("grundy:"), 8);
    assert_eq!(position_of_error(".7\u{0667}"), 3); // an Arabic digit is no octal digit
    assert!("grundy:d=4294967297".parse::<Rule>().is_err());
}

#[test]
fn printing_and_parsing_agree_and_aliases_are_the_same_rule() {
    for (text, name) in [
        ("grundy", "grundy"),
        ("grundy:d=1", "grundy"),
        ("grundy:d=2", "grundy:d=2"),
        (".77", "0.77"),
        ("0.770", "0.77"),
        ("kayles", "0.77"),
        ("dawson-kayles", "0.07"),
        ("dawson-chess", "0.137"),
        ("officers", "0.6"),
        ("treblecross", "0.007"),
        ("4.3", "4.3"),
        ("4.", "4.0"),
        (".0", "0.0"),
        (".8f", "0.8F"),
        ("c.", "C.0"),
        (".(3)", "nim"),
        (".333...", "nim"),
        ("4.333\u{2026}", "4.(3)"),
        ("Lasker's Nim", "4.(3)"),
        ("sub:1,4,10", "0.3003000003"),
        ("Sub:4,1,1", "0.3003"),
        ("all-but:1,4", "0.0330(3)"),
        ("remove-a-square", "remove-a-square"),
        ("nim", "nim"),
        ("Dawson's Kayles", "0.07"),
        ("Dawson\u{2019}s kayles", "0.07"),
        ("dawsons-kayles", "0.07"),
        ("DAWSON_CHESS", "0.137"),
        (" KAYLES", "0.77"),
        ("Remove a square", "remove-a-square"),
        ("Grundy's game", "grundy"),
        ("GRUNDY:D=3", "grundy:d=3"),
    ] {
        assert_eq!(rule(text).name(), name);
        assert_eq!(rule(name), rule(text));
    }
    assert_eq!(rule("grundy:d=2").directory_name(), "grundy-d2");
    assert_eq!(rule("4.12(3F)").directory_name(), "4.12r3F");
    assert!(NAMED_GAMES.iter().all(|known| rule(known.game).name() == known.game));
}

#[test]
fn an_unknown_name_is_refused_with_the_names_that_resemble_it() {
    for (text, expected) in [
        ("kayle", ["kayles"].as_slice()),
        ("Kayels", &["kayles"]),
        ("tribblecross", &["treblecross"]),
        ("grundyy", &["grundy"]),
        ("nmi", &["nim"]),
        ("dawson", &["dawson-kayles", "dawson-chess"]),
        ("kayles:3", &["kayles"]),
        ("grundy:2", &["grundy:d=2"]),
        ("grundy2", &["grundy:d=2"]),
        ("grundy-d2", &["grundy:d=2"]),
        ("A000001", &[]),
        ("xyzzy", &[]),
        ("x", &[]),
        ("\u{e8}", &[]),
    ] {
        match text.parse::<Rule>() {
            Err(Error::UnknownGame { text: typed, suggestions }) => {
                assert_eq!(
                    (typed.as_str(), suggestions.as_slice()),
                    (text, &expected.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()[..])
                );
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn a_number_of_a_sequence_is_refused_with_its_game() {
    let refused = "a071441".parse::<Rule>().unwrap_err();
    assert!(matches!(refused, Error::OeisSequence { game: "0.004", .. }), "{refused:?}");
    assert_eq!(refused.to_string(), "A071441 is a sequence, not a game: a(n) = G(n + 4) of '0.004'");
}

#[test]
fn misere_play_is_refused_by_name() {
    for text in ["misere-kayles", "mis\u{e8}re:kayles", "Mise\u{300}re Nim", "kayles misere", "MIS\u{c8}RE"] {
        assert!(matches!(text.parse::<Rule>(), Err(Error::Misere { .. })), "{text}");
    }
}

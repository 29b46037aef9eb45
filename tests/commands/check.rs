//! `grundy check`: published values against those of a game or a run.

use crate::support::Home;
use grundy::theory::definition;
use serde_json::{Value, json};

/// A b-file of the values by the definition, with `offset` added to each n.
fn bfile(game: &str, count: usize, offset: i64) -> String {
    let values = definition::values(&game.parse().unwrap(), count).unwrap();
    (offset..)
        .zip(values)
        .fold(String::from("# of the definition\n"), |file, (n, value)| file + &format!("{n} {value}\n"))
}

#[test]
fn correct_files_of_every_form_agree() {
    let home = Home::new();
    home.well("run grundy --to 3000 --dir run");
    std::fs::write(home.path("b.txt"), bfile("grundy", 3000, 0)).unwrap();
    for source in ["grundy", "run", "run --verify"] {
        let text = home.well(&format!("check {source} b.txt"));
        assert_eq!(text, "b.txt agrees with grundy: 3,000 values, from n = 0 to 2,999\n");
    }
    // 0, 1, 2, 3, 1, 4, 3, 2, 1, 4, 2, 6: the values of Kayles in Winning Ways, chapter 4.
    std::fs::write(home.path("list"), "0, 1, 2, 3, 1, 4,\n3, 2, 1, 4, 2, 6\n").unwrap();
    assert!(home.well("check kayles list --from 0").contains("12 values, from n = 0 to 11"));
    assert!(home.well("check kayles list --from -1 --offset -1").contains("12 values, from n = 0 to 11"));
    std::fs::write(home.path("csv"), "n,value\n11,6\n0,0\n1000000000000,1\n").unwrap();
    assert!(
        home.well("check kayles csv")
            .contains("3 values, from n = 0 to 1,000,000,000,000; its n are not consecutive: in line 3, 0 follows 11")
    );
    std::fs::write(home.path("twice"), "0 0\n1 1\n1 1\n3 3\n").unwrap();
    assert!(home.well("check kayles twice").ends_with("; its n are not consecutive: in line 3, 1 follows 1\n"));
    std::fs::write(home.path("far"), format!("{} 2\n", i64::MAX)).unwrap();
    assert!(home.well("check kayles far").contains("1 value, "));
    std::fs::write(home.path("nim"), "65535 65535\n65536 65536\n70000 70000\n").unwrap();
    assert!(home.well("check nim nim").contains("3 values"));
    for format in ["bfile", "csv"] {
        home.well(&format!("export .6 --format {format} --comment -o export"));
        assert!(home.well("check .6 export").contains("10,001 values"));
    }
}

#[test]
fn file_in_the_place_of_the_game_is_refused_with_the_right_order() {
    let home = Home::new();
    home.well("run kayles --to 10 --dir run");
    std::fs::write(home.path("b.txt"), "0 0\n").unwrap();
    for game in ["kayles", "run"] {
        let (status, _, stderr) = home.reply(&format!("check b.txt {game}"));
        assert!(status == 2 && stderr.contains(&format!("'grundy check {game} b.txt'")), "{stderr}");
    }
}

#[test]
fn every_altered_value_is_counted_and_the_first_is_named() {
    let home = Home::new();
    home.well("run kayles --to 200000 --dir run");
    let file = bfile("kayles", 70_000, 0);
    // G(57) = 4; after it one beyond the values of a piece, and one that only its low 16 bits make equal.
    let named = "\n57 4\n";
    assert!(file.contains(named));
    let altered =
        file.replace(named, "\n57 9\n").replace("\n66666 ", "\n66666 7").replace("\n3 3\n", "\n3 3\n3 65539\n");
    std::fs::write(home.path("b.txt"), altered).unwrap();
    for source in ["kayles", "run"] {
        let (status, stdout, _) = home.reply(&format!("check {source} b.txt --json"));
        let found: Value = serde_json::from_str(&stdout).unwrap();
        let differs = json!({ "line": 6, "n": 3, "stated": 65539, "computed": 3 });
        let expected = json!({ "game": "0.77", "count": 70_001, "agree": 69_998, "first": 0, "last": 69_999,
                               "missing": 0, "differs": differs, "offset": null,
                               "gap": { "line": 6, "index": 3, "after": 3 } });
        assert_eq!((status, found), (3, expected), "{source}");
    }
}

#[test]
fn file_with_another_offset_is_recognized() {
    let home = Home::new();
    std::fs::write(home.path("b.txt"), bfile("grundy", 500, 2)).unwrap();
    let (status, stdout, _) = home.reply("check grundy b.txt");
    assert!(status == 3 && stdout.contains("with --offset 2, all values that can be compared agree"), "{stdout}");
    assert!(home.well("check grundy b.txt --offset 2").contains("500 values, from n = 0 to 499"));
    // Twelve values, the last of which are beyond the greatest n of the file, and nim.
    let values = definition::values(&"grundy".parse().unwrap(), 15).unwrap();
    let list: Vec<String> = values[3..].iter().map(u16::to_string).collect();
    std::fs::write(home.path("list"), list.join(", ")).unwrap();
    let (status, stdout, _) = home.reply("check grundy list --from 0");
    assert!(status == 3 && stdout.contains("with --from 3, all"), "{stdout}");
    assert!(home.well("check grundy list --from 3").contains("12 values, from n = 3 to 14"));
    let (_, stdout, _) = home.reply("check grundy list --from 9 --offset 7");
    assert!(stdout.contains("with --from 10, all"), "{stdout}");
    assert!(home.well("check grundy list --from 10 --offset 7").contains("12 values, from n = 3 to 14"));
    std::fs::write(home.path("nim"), (0..20).map(|n| format!("{} {n}\n", n + 1)).collect::<String>()).unwrap();
    let (status, stdout, _) = home.reply("check nim nim");
    assert!(status == 3 && stdout.contains("--offset 1,"), "{stdout}");
    // A last value beyond those that are computed, after a gap.
    std::fs::write(home.path("gap"), bfile("grundy", 70_000, -2).replace("\n-2 0\n-1 0\n", "\n") + "80000 1\n")
        .unwrap();
    let (status, stdout, _) = home.reply("check grundy gap");
    assert!(status == 3 && stdout.contains("--offset -2,"), "{stdout}");
    // One value many times, a wrong value, an offset 10 away, too few values, and an offset at which heaps are
    // negative.
    let wrong = bfile("grundy", 500, 2).replace("\n400 ", "\n400 1");
    let negative = format!("0 9\n1 9\n{}", bfile("grundy", 500, 2));
    for file in ["5 3\n".repeat(20), wrong, bfile("grundy", 500, 10), bfile("grundy", 9, 2), negative] {
        std::fs::write(home.path("b.txt"), &file).unwrap();
        let (status, stdout, _) = home.reply("check grundy b.txt");
        assert!(status == 3 && !stdout.contains("--offset"), "{stdout}");
    }
}

/// A b-file of the positions of a value by the definition, with `offset` added to each n.
fn positions(game: &str, value: u16, count: usize, offset: i64) -> String {
    let values = definition::values(&game.parse().unwrap(), count).unwrap();
    let found = (offset..).zip(values).filter(|&(_, other)| other == value);
    (1..).zip(found).map(|(k, (n, _))| format!("{k} {n}\n")).collect()
}

#[test]
fn positions_of_a_value_are_all_compared() {
    let home = Home::new();
    home.well("run grundy --to 3000 --dir run");
    let zeros = positions("grundy", 0, 3000, -1);
    let written = home.well("find run --zeros --format bfile --offset -1");
    assert!(zeros.starts_with("1 -1\n2 0\n3 1\n4 3\n") && written == zeros, "{written}");
    std::fs::write(home.path("zeros"), &zeros).unwrap();
    std::fs::write(home.path("ones"), positions("grundy", 1, 3000, 0)).unwrap();
    for source in ["grundy", "run"] {
        let text = home.well(&format!("check {source} zeros --zeros --offset -1"));
        assert!(text.contains("agrees") && text.contains("of the value 0, from n = 0 to "), "{text}");
        home.well(&format!("check {source} ones --value 1"));
        let (status, stdout, _) = home.reply(&format!("check {source} zeros --value 0 --offset -2"));
        assert!(
            status == 3 && stdout.contains("with --offset -1, all positions that can be compared agree"),
            "{stdout}"
        );
    }
    // The fourth position, n = 4, is missing, and n = 8 stands for n = 7.
    let altered = zeros.replace("\n4 3\n", "\n").replace("\n5 6\n", "\n5 7\n");
    assert_eq!(altered.len() + 4, zeros.len());
    std::fs::write(home.path("altered"), altered).unwrap();
    let (status, stdout, _) = home.reply("check grundy altered --zeros --offset -1 --json");
    let found: Value = serde_json::from_str(&stdout).unwrap();
    let missing = json!({ "line": 4, "n": 4, "stated": null, "computed": 0 });
    assert_eq!((status, &found["differs"], &found["missing"]), (3, &missing, &json!(2)), "{stdout}");
    assert_eq!((&found["offset"], &found["gap"]["index"]), (&Value::Null, &json!(5)), "{stdout}");
    let (_, stdout, _) = home.reply("check grundy altered --zeros --offset -1");
    assert!(
        stdout.contains("and lacks 2; the first is n = 4, which has the value 0 and is missing before line 4"),
        "{stdout}"
    );
    home.fails(1, "check grundy zeros --zeros", &["zeros, line 1", "n = -1", "change --offset"]);
    std::fs::write(home.path("nim"), "1 3\n2 7\n").unwrap();
    let (status, stdout, _) = home.reply("check nim nim --value 5 --json");
    let found: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((status, &found["missing"], &found["agree"]), (3, &json!(1), &json!(0)), "{stdout}");
    home.fails(2, "find grundy --zeros --offset 1", &["--format bfile"]);
    home.fails(2, "find grundy --histogram --format bfile --offset 1", &["--histogram"]);
    std::fs::write(home.path("text"), home.well("find run --zeros")).unwrap();
    home.fails(1, "check grundy text --zeros", &["text, line 2", "must ascend, but 0 follows 0"]);
}

#[test]
fn files_without_an_answer_are_refused() {
    let home = Home::new();
    home.well("run grundy --to 3000 --dir run");
    std::fs::write(home.path("b.txt"), "0 0\n3000 2\n").unwrap();
    std::fs::write(home.path("empty"), "# nothing\n\n").unwrap();
    std::fs::write(home.path("list"), "0, 1, 2\n").unwrap();
    home.fails(1, "check run b.txt", &["3000..3001", "grundy run --dir run --to 3001"]);
    home.fails(2, "check grundy b.txt --verify", &["--verify", "no run directory"]);
    home.fails(2, "check nothing b.txt", &["neither a game nor a directory"]);
    home.fails(1, "check kayles empty", &["empty", "no values"]);
    home.fails(1, "check kayles list", &["list, line 1", "--from"]);
    home.fails(1, "check kayles list --from -1", &["list, line 1", "n = -1", "change --from"]);
    home.fails(1, "check kayles missing", &["missing"]);
    std::fs::write(home.path("large"), "0 18446744073709551616\n").unwrap();
    home.fails(1, "check kayles large", &["large, line 1", "2^64 - 1"]);
    home.fails(2, "check kayles list --from 9223372036854775808", &["--from", "2^63"]);
    let mut table = std::fs::read(home.path("run/values.npy")).unwrap();
    *table.last_mut().unwrap() ^= 1;
    std::fs::write(home.path("run/values.npy"), table).unwrap();
    home.fails(3, "check run list --from 0 --verify", &["values.npy", "digest"]);
}

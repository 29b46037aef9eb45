//! The command line by example: results, exit statuses, messages, and the keys of `--json`.

use crate::support::{Home, fails, grundy, output_of, reply, run, run_well, status, stdout_of, text};
use grundy::table::digest::DigestChain;
use grundy::theory::definition;
use parquet::basic::LogicalType;
use parquet::column::reader::ColumnReader;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;

fn defined(game: &str, count: usize) -> Vec<u16> {
    definition::values(&game.parse().unwrap(), count).unwrap()
}

fn lines(values: &[u16], form: impl Fn(usize, u16) -> String) -> String {
    values.iter().enumerate().map(|(n, &v)| form(n, v) + "\n").collect()
}

/// Names of the commands that have a man page: all that the program defines.
fn documented_commands() -> BTreeSet<String> {
    let pages = tempfile::tempdir().unwrap();
    stdout_of(&["generate", "man", "-o", pages.path().to_str().unwrap()]);
    let files = std::fs::read_dir(pages.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    // `grundy.1` is the page of the program, `grundy-generate-man.1` that of a subcommand.
    let commands = files.filter_map(|file| Some(file.strip_prefix("grundy-")?.strip_suffix(".1")?.to_owned()));
    commands.filter(|name| !name.contains('-')).collect()
}

#[test]
fn every_command_has_help_with_an_example() {
    let help = stdout_of(&["--help"]);
    assert!(help.contains("Example"), "{help}");
    let commands = help.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    // Command names are indented by two columns; lines with more indentation continue a description.
    let names = commands.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.map(|line| line.split_whitespace().next().unwrap().to_owned());
    let names: BTreeSet<String> = names.filter(|name| name != "help").collect();
    assert_eq!(names, documented_commands(), "the help and the man pages list the same commands");
    for name in names {
        let help = stdout_of(&[&name, "--help"]);
        assert!(help.contains(&format!("Example: grundy {name}")), "{name}: {help}");
    }
}

#[test]
fn unparsable_arguments_are_usage_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let dir = path.to_str().unwrap();
    fails(2, &["values", ".G", "0..5"], &[".G", "position 2"]);
    fails(2, &["values", "0.77G", "0..5"], &["position 5"]);
    fails(2, &["run", ".G", "--dir", dir], &[".G", "position 2"]);
    fails(2, &["run", "kayles", "--to", "0", "--dir", dir], &["--to", "at least 1"]);
    fails(2, &["run", "kayles", "--to", "-5", "--dir", dir], &["-5"]);
    fails(2, &["run", "kayles", "--to=-5", "--dir", dir], &["negative"]);
    for bad in ["x", "1.5", "1e30", "2^64", "0x10", ""] {
        fails(2, &["run", "kayles", "--to", bad, "--dir", dir], &["--to"]);
    }
    let long = format!(".{}7", "0".repeat(4000));
    fails(2, &["run", &long, "--to", "100", "--dir", dir], &["2048"]);
    for threads in ["0", "1025", "2^16", "x"] {
        fails(2, &["run", "kayles", "--threads", threads, "--dir", dir], &["--threads"]);
    }
    fails(2, &["run", "kayles", "--kernel", "abacus", "--dir", dir], &["abacus"]);
    fails(2, &["values", "kayles", "5..5"], &["empty"]);
    fails(2, &["kayle"], &["kayle"]);
    fails(2, &["values", "kayle", "3"], &["kayle"]);
    assert_eq!(output_of(&[]).status.code(), Some(2));
    assert!(!path.exists(), "a usage error makes no directory");
}

#[test]
fn missing_files_and_unsuitable_requests_exit_with_1() {
    let dirs = tempfile::tempdir().unwrap();
    let path = dirs.path().join("none");
    let none = path.to_str().unwrap();
    fails(1, &["status", none], &[none, "no such directory"]);
    fails(1, &["values", none, "0..5"], &[none]);
    fails(1, &["verify", none], &[none]);
    fails(1, &["export", none, "--format", "csv"], &[none]);
    fails(1, &["status", dirs.path().to_str().unwrap()], &["no run"]);
    assert!(!path.exists(), "looking makes nothing");
}

#[test]
fn request_larger_than_the_disk_is_refused_before_any_write() {
    let dirs = tempfile::tempdir().unwrap();
    let path = dirs.path().join("deep").join("run");
    fails(1, &["run", "kayles", "--to", "2^60", "--dir", path.to_str().unwrap()], &["no room", "--to"]);
    assert!(!dirs.path().join("deep").exists(), "the directory was not created");
    // The run accepts the number that the message states: it resumes and computes.
    let held = dirs.path().join("held");
    run_well("kayles", &held, &["--to", "5000"]);
    let before = std::fs::read(held.join("journal.jsonl")).unwrap();
    let output = run("kayles", &held, &["--to", "2^60"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(std::fs::read(held.join("journal.jsonl")).unwrap() == before);
}

#[test]
fn directory_of_a_different_game_is_refused_untouched() {
    let dirs = tempfile::tempdir().unwrap();
    let path = dirs.path().join("run");
    let dir = path.to_str().unwrap();
    run_well("kayles", &path, &["--to", "5000"]);
    let before = std::fs::read(path.join("journal.jsonl")).unwrap();
    for game in ["grundy", "0.770007", "dawson-kayles"] {
        fails(1, &["run", game, "--to", "6000", "--dir", dir], &["0.77", "--dir"]);
    }
    assert!(std::fs::read(path.join("journal.jsonl")).unwrap() == before);
    // The same game under its code, and without a game.
    run_well("0.770", &path, &["--to", "5500"]);
    stdout_of(&["run", "--to", "6000", "--dir", dir]);
    assert_eq!(status(&path).unwrap()["count"], 6000);
}

#[test]
fn run_in_use_by_a_writer_is_refused_but_readable() {
    let dirs = tempfile::tempdir().unwrap();
    let path = dirs.path().join("run");
    let dir = path.to_str().unwrap();
    run_well("kayles", &path, &["--to", "5000"]);
    let journal = std::fs::File::open(path.join("journal.jsonl")).unwrap();
    journal.lock().unwrap();
    fails(75, &["run", "kayles", "--to", "6000", "--dir", dir], &["another process", dir]);
    stdout_of(&["status", dir]);
    stdout_of(&["values", dir, "0..100"]);
    stdout_of(&["verify", dir]);
    drop(journal);
    run_well("kayles", &path, &["--to", "6000"]);
}

#[test]
fn values_are_printed_one_per_line_in_the_order_of_arguments() {
    let g = defined("kayles", 1000);
    let line = |n: usize| format!("{n} {}\n", g[n]);
    assert_eq!(stdout_of(&["values", "kayles", "0..5", "100", "7..9"]), [0, 1, 2, 3, 4, 100, 7, 8].map(line).concat());
    assert_eq!(stdout_of(&["values", ".77", "1e2"]), line(100));
    assert_eq!(stdout_of(&["values", "kayles", "2^9..513"]), line(512));
    assert_eq!(stdout_of(&["values", "kayles", "3", "--json"]), format!("{{\"n\":3,\"value\":{}}}\n", g[3]));
    let dirs = tempfile::tempdir().unwrap();
    run_well("kayles", dirs.path(), &["--to", "1000"]);
    let dir = dirs.path().to_str().unwrap();
    assert_eq!(stdout_of(&["values", dir, "998..1000", "0"]), [998, 999, 0].map(line).concat());
    fails(1, &["values", dir, "0..1001"], &["1001", "1000 values"]);
    fails(1, &["values", dir, "0..3", "1000"], &["1000 values"]);
    // Larger than the largest possible table.
    fails(2, &["values", "grundy", "2^60"], &["grundy run"]);
    fails(2, &["values", ".106", "2^60"], &["period 328,226,140,474 from n = 465,384,263,797 on"]);
    fails(1, &["values", "lasker", "2^60"], &["the code of the game repeats"]);
}

/// Published periods and preperiods: Kayles 12, 71. By the definition, taking 1, 4 or 10 has period 11 from n = 16 on.
#[test]
fn values_beyond_a_proved_period_follow_from_it() {
    let g = defined("0.77", 200);
    let far = 12 * 10u64.pow(17);
    let line = |n: u64| format!("{n} {}\n", g[usize::try_from(n % 12).unwrap() + 96]);
    let output = output_of(&["values", "kayles", &format!("{far}..{}", far + 30), "1e12"]);
    assert_eq!(text(&output.stdout), (far..far + 30).chain([10u64.pow(12)]).map(line).collect::<String>());
    let said = text(&output.stderr);
    assert!(said.contains("prove the period 12 from n = 71 on"), "{said}");
    // No period of this game is built in.
    let taken = defined("sub:1,4,10", 100);
    assert!((16..89).all(|n| taken[n] == taken[n + 11]) && taken[15] != taken[26]);
    let far = 11 * 10u64.pow(15) + 5;
    assert_eq!(stdout_of(&["values", "sub:1,4,10", &far.to_string()]), format!("{far} {}\n", taken[93]));
    fails(2, &["values", "kayles", "5", "2^63"], &["2^63 - 1"]);
    // Few values are computed.
    assert_eq!(text(&output_of(&["values", "kayles", "1000"]).stderr), "");
}

/// Published period and preperiod of Dawson's Kayles: 34, 53. Without a sparse space, a million values would take long.
#[test]
fn export_and_find_use_a_proved_period() {
    let g = defined(".07", 53 + 34);
    let value = |n: usize| g[53 + (n - 53) % 34];
    let range = 999_900..1_000_000;
    let words = format!("{}..{}", range.start, range.end);
    let exported = output_of(&["export", ".07", "--format", "csv", "--range", &words]);
    let rows: String = range.clone().map(|n| format!("{n},{}\n", value(n))).collect();
    assert_eq!(text(&exported.stdout), format!("n,value\n{rows}"));
    let found = output_of(&["find", ".07", "--zeros", "--range", &words]);
    let zeros: String = range.filter(|&n| value(n) == 0).map(|n| format!("{n} 0\n")).collect();
    assert!(!zeros.is_empty());
    assert_eq!(text(&found.stdout), zeros);
    for output in [exported, found] {
        let said = text(&output.stderr);
        assert!(said.contains("prove the period 34 from n = 53 on"), "{said}");
    }
    fails(2, &["find", ".07", "--rares", "--range", "0..1000000"], &["no sparse space is known", "period 34"]);
    // More values than memory holds.
    let start = 1_000_000_000_000_000_000;
    let exported = stdout_of(&["export", ".07", "--format", "list", "--range", &format!("{start}..{}", start + 3)]);
    assert_eq!(exported, format!("{}, {}, {}\n", value(start), value(start + 1), value(start + 2)));
    fails(1, &["export", "nim", "--format", "csv", "--range", "65530..65540"], &["G(65536) is above 65535"]);
}

#[test]
fn a_run_whose_name_is_not_utf_8_can_be_read() {
    use std::os::unix::ffi::OsStrExt;
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join(std::ffi::OsStr::from_bytes(b"bad\xff dir"));
    run_well("kayles", &dir, &["--to", "1000"]);
    let file = home.path().join("b.txt");
    let exported = grundy(["export", "--format", "bfile", "-o"]).arg(&file).arg(&dir).output().unwrap();
    assert!(exported.status.success(), "{}", text(&exported.stderr));
    for words in [&["values"][..], &["find", "--zeros"], &["period"], &["check"]] {
        let more = if words == ["check"] { Some(&file) } else { None };
        let output = grundy(words).arg(&dir).args(more).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_run_within_a_run_directory_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    run_well("kayles", &home.path().join("run"), &["--to", "1000"]);
    for inner in ["run/inner", "run/deep/inner"] {
        for command in [vec!["run", "kayles", "--to", "10"], vec!["period", "kayles"]] {
            let inner = path(inner);
            let words = [&command[..], &["--dir", &inner]].concat();
            fails(1, &words, &["is a run directory, which must contain nothing but the run"]);
        }
    }
    assert!(!home.path().join("run/inner").exists());
    fails(2, &["run", "kayles", "--until", "9999-12-31T23:59"], &["the year 9999 is the last"]);
}

#[test]
fn exceptions_on_stdout_come_without_the_report() {
    let output = output_of(&["period", "kayles", "--exceptions", "-"]);
    assert!(text(&output.stdout).lines().all(|line| line.split(' ').all(|word| word.parse::<u64>().is_ok())));
    assert_eq!(text(&output.stdout).lines().count(), 14, "Winning Ways, chapter 4");
    assert!(text(&output.stderr).contains("period 12"));
    for option in ["--json", "--values"] {
        fails(2, &["period", "kayles", "--exceptions", "-", option], &["nothing but the exceptions"]);
    }
}

/// A071426(n) is the value of n + 2 in Treblecross, and its first term is a(1).
#[test]
fn info_prints_the_command_that_writes_the_sequence_of_the_oeis() {
    let known = stdout_of(&["info", ".007"]);
    let command = "grundy export 0.007 --format bfile --range 3..10003 --offset -2 -o b071426.txt";
    assert!(known.contains("A071426: a(n) = G(n + 2), n >= 1"), "{known}");
    assert!(known.lines().any(|line| line.ends_with(&format!("  {command}"))), "in one line: {known}");
    let command = command.trim_end_matches(" -o b071426.txt");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let exported = stdout_of(&words);
    // The first terms that the OEIS states.
    assert!(exported.starts_with("1 1\n2 1\n3 1\n4 2\n5 2\n6 0\n7 3\n"), "{exported}");
    assert!(
        exported.lines().count() == 10_000 && exported.lines().last().is_some_and(|line| line.starts_with("10000 "))
    );
    fails(2, &["values", "A71426"], &["A071426 is a sequence", "a(n) = G(n + 2) of '0.007'"]);
}

#[test]
fn run_of_nim_ends_at_the_largest_value_of_a_table() {
    let dirs = tempfile::tempdir().unwrap();
    let dir = dirs.path().to_str().unwrap();
    fails(2, &["run", "nim", "--to", "65537", "--dir", dir], &["G(n) = n", "--to is at most 65536"]);
    run_well("nim", dirs.path(), &["--to", "65536"]);
    assert_eq!(stdout_of(&["values", dir, "65535"]), "65535 65535\n");
}

#[test]
fn run_of_a_repeating_code_ends_where_its_moves_are_listed() {
    let dirs = tempfile::tempdir().unwrap();
    let dir = dirs.path().to_str().unwrap();
    fails(
        1,
        &["run", "lasker", "--to", "1e6", "--dir", dir],
        &["G(999999) cannot be computed", "--to is at most 65537"],
    );
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0);
}

#[test]
fn directory_in_the_place_of_a_game_is_named_with_the_command() {
    let dirs = tempfile::tempdir().unwrap();
    let dir = dirs.path().join("run");
    run_well("kayles", &dir, &["--to", "100"]);
    let dir = dir.to_str().unwrap();
    fails(2, &["run", dir, "--to", "200"], &[&format!("'grundy run --dir {dir}' continues the run")]);
}

#[test]
fn run_of_a_periodic_game_states_the_period() {
    let dirs = tempfile::tempdir().unwrap();
    let said = |game: &str| text(&run_well(game, &dirs.path().join(game), &["--to", "100"]).stderr);
    assert!(said("kayles").contains("the period of 0.77 is known to be 12, from n = 71 on; 'grundy values 0.77 N'"));
    assert!(!said("grundy").contains("period"));
    // Too many values prove this period.
    let long = said(".106");
    assert!(long.contains("known to be 328,226,140,474, from n = 465,384,263,797 on\n"), "{long}");
}

#[test]
fn text_that_parses_as_a_game_is_a_game_and_dot_slash_a_directory() {
    let dirs = tempfile::tempdir().unwrap();
    run_well("kayles", &dirs.path().join("grundy"), &["--to", "100"]);
    let here = |source: &str| {
        let output = grundy(["values", source, "20"]).current_dir(dirs.path()).output().unwrap();
        text(&output.stdout)
    };
    assert_eq!(here("grundy"), format!("20 {}\n", defined("grundy", 21)[20]));
    assert_eq!(here("./grundy"), format!("20 {}\n", defined("kayles", 21)[20]));
}

#[test]
fn a_run_without_a_directory_goes_to_runs_and_its_games_name() {
    let dirs = tempfile::tempdir().unwrap();
    for (game, name) in [("grundy:d=2", "grundy-d2"), (".6", "0.6")] {
        let output = grundy(["run", game, "--to", "100"]).current_dir(dirs.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(status(&dirs.path().join("runs").join(name)).unwrap()["count"], 100);
    }
}

/// The first 201 values of OEIS A002188 with its offset, from the definition, in the form that the OEIS prescribes.
#[test]
fn export_writes_the_formats_to_the_byte() {
    let dirs = tempfile::tempdir().unwrap();
    let path = dirs.path().join("run");
    let dir = path.to_str().unwrap();
    // 0.6 has values above 255, which a table of bytes stores as escapes.
    for (game, count, width) in [("grundy", 201, "u8"), ("0.6", 20_000, "u8"), ("0.6", 19_000, "u16")] {
        let _ = std::fs::remove_dir_all(&path);
        run_well(game, &path, &["--to", &count.to_string(), "--width", width]);
        let g = defined(game, count);
        let export = |format: &str| output_of(&["export", dir, "--format", format]).stdout;
        assert!(text(&export("bfile")) == lines(&g, |n, v| format!("{n} {v}")), "{game}");
        assert!(text(&export("csv")) == format!("n,value\n{}", lines(&g, |n, v| format!("{n},{v}"))), "{game}");
        assert!(text(&export("jsonl")) == lines(&g, |n, v| format!("{{\"n\":{n},\"value\":{v}}}")), "{game}");
        let list: Vec<String> = g.iter().map(u16::to_string).collect();
        assert!(text(&export("list")) == list.join(", ") + "\n", "{game}");
        let npy = export("npy");
        let data: Vec<u8> = g.iter().flat_map(|v| v.to_le_bytes()).collect();
        let header = npy.strip_suffix(&data[..]).unwrap_or_else(|| panic!("{game}: other values"));
        let shape = format!("{{'descr': '<u2', 'fortran_order': False, 'shape': ({count},), }}");
        assert!(header.starts_with(b"\x93NUMPY\x01\x00") && header.len().is_multiple_of(64), "{game}");
        assert_eq!(usize::from(u16::from_le_bytes([header[8], header[9]])) + 10, header.len(), "{game}");
        assert!(header.ends_with(b"\n"), "{game}");
        assert_eq!(text(&header[10..]).trim_end(), shape);
    }
}

/// The columns n and value of a Parquet file, and its metadata.
fn parquet_columns(path: &Path) -> (Vec<i64>, Vec<i32>, Vec<(String, String)>) {
    let file = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let facts = file.metadata().file_metadata();
    let types: Vec<_> = facts.schema_descr().columns().iter().map(|c| (c.name(), c.logical_type_ref())).collect();
    let unsigned = |bits| LogicalType::integer(bits, false);
    assert_eq!(types, [("n", Some(&unsigned(64))), ("value", Some(&unsigned(16)))]);
    let (mut numbers, mut values) = (Vec::new(), Vec::new());
    for i in 0..file.num_row_groups() {
        let group = file.get_row_group(i).unwrap();
        let rows = usize::try_from(group.metadata().num_rows()).unwrap();
        assert!(rows <= 1 << 20, "a group of {rows} rows");
        match (group.get_column_reader(0).unwrap(), group.get_column_reader(1).unwrap()) {
            (ColumnReader::Int64ColumnReader(mut n), ColumnReader::Int32ColumnReader(mut value)) => {
                n.read_records(rows, None, None, &mut numbers).unwrap();
                value.read_records(rows, None, None, &mut values).unwrap();
            }
            _ => panic!("columns of other types"),
        }
    }
    let pairs = facts.key_value_metadata().into_iter().flatten();
    (numbers, values, pairs.map(|pair| (pair.key.clone(), pair.value.clone().unwrap_or_default())).collect())
}

/// Kayles has period 12 from n = 71 on (Guy and Smith 1956), so a few values give all others.
#[test]
fn export_writes_parquet_that_a_reader_of_the_format_reads() {
    let dirs = tempfile::tempdir().unwrap();
    let path = dirs.path().join("kayles.parquet");
    let file = path.to_str().unwrap();
    let first = defined("kayles", 83);
    let value = |n: usize| i32::from(first[if n < 83 { n } else { 71 + (n - 71) % 12 }]);
    for (range, digest_of) in [(0..(1 << 20) + 70_000, None), (5..6, None), (60..100, None), (0..83, Some(&first))] {
        let (Range { start, end }, name) = (range.clone(), format!("{}..{}", range.start, range.end));
        let (status, stdout, stderr) = reply(&["export", ".77", "--format", "parquet", "--range", &name, "-o", file]);
        assert_eq!((status, stdout.as_str()), (0, ""), "{stderr}");
        let (numbers, values, facts) = parquet_columns(&path);
        assert!(numbers.into_iter().eq(range.clone().map(|n| i64::try_from(n).unwrap())), "{name}");
        assert!(values.into_iter().eq(range.map(value)), "{name}");
        let fact = |key: &str| facts.iter().find(|fact| fact.0 == key).map(|fact| fact.1.clone()).unwrap();
        assert_eq!((fact("game"), fact("program")), ("0.77".to_owned(), grundy::PROGRAM.to_owned()));
        assert_eq!((fact("from"), fact("to")), (start.to_string(), end.to_string()));
        if let Some(first) = digest_of {
            let mut chain = DigestChain::new();
            chain.update(first);
            assert_eq!(fact("digest"), chain.digest().to_string());
        }
        // The size that is stated before the export bounds the size of the file.
        let stated = stderr.split("at most ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
        assert!(
            std::fs::metadata(&path).unwrap().len() <= stated.replace(',', "").parse().unwrap(),
            "{name}: {stderr}"
        );
        let plain = output_of(&["-q", "export", ".77", "--format", "parquet", "--range", &name, "-o", "-"]).stdout;
        assert!(plain == std::fs::read(&path).unwrap(), "{name}");
    }
    fails(2, &["export", "kayles", "--format", "parquet", "--comment"], &["--comment"]);
}

#[test]
fn export_writes_ranges_and_whole_files() {
    let dirs = tempfile::tempdir().unwrap();
    let path = dirs.path().join("run");
    let dir = path.to_str().unwrap();
    run_well("kayles", &path, &["--to", "1000"]);
    let g = defined("kayles", 1000);
    assert_eq!(
        stdout_of(&["export", dir, "--format", "bfile", "--range", "998..1000"]),
        format!("998 {}\n999 {}\n", g[998], g[999])
    );
    let file = dirs.path().join("b.txt");
    let name = file.to_str().unwrap();
    assert_eq!(stdout_of(&["export", dir, "--format", "bfile", "-o", name]), "");
    assert!(std::fs::read_to_string(&file).unwrap() == lines(&g, |n, v| format!("{n} {v}")));
    fails(1, &["export", dir, "--format", "csv", "--range", "0..1001"], &["1000 values"]);
    fails(2, &["export", dir, "--format", "xls"], &["bfile", "csv", "npy", "jsonl", "list", "parquet"]);
    let nowhere = dirs.path().join("none").join("b.txt");
    fails(1, &["export", dir, "--format", "csv", "-o", nowhere.to_str().unwrap()], &["none"]);
    let left: Vec<_> = std::fs::read_dir(dirs.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "no unfinished file stays behind: {left:?}");
}

#[test]
fn status_as_json_has_the_documented_keys_and_integers() {
    let dirs = tempfile::tempdir().unwrap();
    let dir = dirs.path().to_str().unwrap();
    run_well("kayles", dirs.path(), &["--to", "5000"]);
    let out = stdout_of(&["status", dir, "--json"]);
    assert_eq!(out.lines().count(), 1, "one object on one line");
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&out).unwrap();
    let keys: BTreeSet<&str> = object.keys().map(String::as_str).collect();
    let page = include_str!("../../docs/BEHAVIOUR.md");
    let (_, list) = page.split_once("prints one object with these keys:\n\n```text\n").unwrap();
    assert_eq!(keys, list.split_once("```").unwrap().0.split_whitespace().collect());
    let help = stdout_of(&["status", "--help"]);
    let (_, list) = help.split_once("JSON keys: ").unwrap();
    assert_eq!(keys, list.split_once('.').unwrap().0.split_whitespace().collect());
    let numbers =
        ["count", "mask", "position", "rares", "last_rare", "max_value", "max_at", "escapes", "errors", "seconds"];
    assert!(numbers.iter().all(|&key| object[key].is_u64()), "{out}");
    assert!(object["checks"].as_object().unwrap().values().all(serde_json::Value::is_u64), "{out}");
    // Facts about Kayles: ten rare positions under the mask 15, the last at 70 (n = 0 counted).
    assert_eq!((&object["mask"], &object["position"]), (&15.into(), &0.into()));
    assert_eq!((&object["rares"], &object["last_rare"]), (&10.into(), &70.into()));
    let strategy = "byte streams in the sparse space 0xf, because 10 positions are rare, the last at 70";
    assert!(object["strategy"].as_str().unwrap().starts_with(strategy), "{out}");
    let g = defined("kayles", 5000);
    let largest = *g.iter().max().unwrap();
    assert_eq!(object["max_value"], largest);
    assert_eq!(object["max_at"], g.iter().position(|&v| v == largest).unwrap());
    assert_eq!((&object["game"], &object["count"]), (&"0.77".into(), &5000.into()));
    let for_people = stdout_of(&["status", dir]);
    assert!(for_people.contains("0.77") && for_people.contains("5,000 (G(0) to G(4,999))"), "{for_people}");
}

#[test]
fn verify_checks_by_digest_and_by_definition_and_by_range() {
    let dirs = tempfile::tempdir().unwrap();
    let dir = dirs.path().to_str().unwrap();
    run_well("0.6", dirs.path(), &["--to", "9000"]);
    let report = |more: &[&str]| -> serde_json::Value {
        serde_json::from_str(&stdout_of(&[&["verify", dir, "--json"], more].concat())).unwrap()
    };
    let digest = report(&[]);
    assert_eq!((&digest["ok"], &digest["level"], &digest["checked"]), (&true.into(), &"digest".into(), &9000.into()));
    let sampled = report(&["--level", "definition", "--samples", "25", "--seed", "7"]);
    assert!((20..=27).contains(&sampled["checked"].as_u64().unwrap()), "{sampled}");
    assert_eq!(sampled, report(&["--level", "definition", "--samples", "25", "--seed", "7"]), "a seed repeats it");
    let all = report(&["--level", "definition", "--range", "8000..8100", "--samples", "100"]);
    assert_eq!(all["checked"], 100);
    fails(1, &["verify", dir, "--range", "0..9001"], &["9000 values"]);
}

/// One wrong value with a matching journal and digest passes the digest level; the definition level finds the value.
#[test]
fn wrong_value_with_a_matching_digest_is_found_by_the_definition() {
    let dirs = tempfile::tempdir().unwrap();
    let (real, fake) = (dirs.path().join("real"), dirs.path().join("fake"));
    run_well("grundy", &real, &["--to", "3000", "--width", "u16"]);
    let mut values = defined("grundy", 3000);
    values[1500] ^= 1;
    std::fs::create_dir(&fake).unwrap();
    let record = grundy::checkpoint::journal::read(&real).unwrap().last;
    grundy::checkpoint::testing::forge_run(&fake, &values, record).unwrap();
    let dir = fake.to_str().unwrap();
    fails(3, &["verify", dir, "--level", "definition", "--range", "1500..1501"], &["G(1500)"]);
    let failure = |arguments: &[&str]| -> serde_json::Value {
        let output = grundy([&["verify", "--json"], arguments].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let wrong = failure(&[dir, "--level", "recompute"]);
    assert_eq!((&wrong["ok"], &wrong["n"]), (&false.into(), &1500.into()), "{wrong}");
    assert!(wrong["error"].as_str().unwrap().contains("G(1500)"), "{wrong}");
    std::fs::copy(fake.join("values.npy"), real.join("values.npy")).unwrap();
    let damaged = failure(&[real.to_str().unwrap()]);
    assert_eq!((&damaged["ok"], &damaged["n"]), (&false.into(), &serde_json::Value::Null), "{damaged}");
    assert!(damaged["error"].as_str().unwrap().contains("digest"), "{damaged}");
    stdout_of(&["verify", dir, "--level", "definition", "--range", "0..1500", "--samples", "1500"]);
}

#[test]
fn games_and_cpu_list_games_and_kernels() {
    let games = stdout_of(&["games"]);
    for name in ["grundy", "kayles", "dawson-kayles", "dawson-chess", "officers", "treblecross", "remove-a-square"] {
        assert!(games.contains(name), "{name}: {games}");
        assert_eq!(stdout_of(&["values", name, "0"]), "0 0\n", "{name} is a game");
    }
    for line in stdout_of(&["games", "--json"]).lines() {
        let game: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(stdout_of(&["values", game["game"].as_str().unwrap(), "0"]), "0 0\n");
    }
    let cpu: serde_json::Value = serde_json::from_str(&stdout_of(&["cpu", "--json"])).unwrap();
    let kernels: Vec<&str> = cpu["kernels"].as_array().unwrap().iter().map(|k| k.as_str().unwrap()).collect();
    assert_eq!(kernels.last(), Some(&"scalar"), "every processor has the portable kernel");
    for kernel in kernels {
        let dirs = tempfile::tempdir().unwrap();
        run_well("kayles", dirs.path(), &["--to", "6000", "--kernel", kernel]);
    }
}

#[test]
fn man_pages_and_completions_name_the_commands() {
    let page = stdout_of(&["generate", "man"]);
    assert!(page.contains(".TH grundy 1") && page.contains("verify"), "{page}");
    let completions = stdout_of(&["generate", "completions", "bash"]);
    assert!(completions.contains("_grundy") && completions.contains("--rollback"));
    let dirs = tempfile::tempdir().unwrap();
    stdout_of(&["generate", "man", "-o", dirs.path().to_str().unwrap()]);
    assert!(dirs.path().join("grundy-run.1").exists());
}

/// `GRUNDY_BLESS=1` writes the page again.
#[test]
fn page_of_commands_has_the_present_help_texts() {
    let page = stdout_of(&["generate", "markdown"]);
    if std::env::var_os("GRUNDY_BLESS").is_some() {
        std::fs::write("docs/COMMANDS.md", &page).unwrap();
    }
    assert!(page.contains("## `grundy board remove-square`"));
    let written = std::fs::read_to_string("docs/COMMANDS.md").unwrap();
    let changed = page.lines().zip(written.lines()).find(|(new, old)| new != old);
    assert!(page == written, "run this test with GRUNDY_BLESS=1; the first change: {changed:?}");
}

#[test]
fn status_lists_the_runs_and_reports_several() {
    let home = tempfile::tempdir().unwrap();
    let within = |arguments: &[&str]| grundy(arguments).current_dir(home.path()).output().unwrap();
    let none = within(&["status"]);
    assert_eq!((none.status.code(), text(&none.stdout).as_str()), (Some(2), ""), "{}", text(&none.stderr));
    for (game, to) in [("grundy", "2000"), ("kayles", "5000")] {
        let output = within(&["run", game, "--to", to, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let dir = format!("runs/{}", if game == "kayles" { "0.77" } else { game });
        assert_eq!(output.stdout, within(&["status", &dir, "--json"]).stdout);
    }
    let listed = text(&within(&["status"]).stdout);
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines.len() == 3 && lines[0].starts_with("run "), "{listed}");
    let is_row = |line: &str, run: &str, count: &str| line.split_whitespace().take(2).eq([run, count]);
    assert!(is_row(lines[1], "runs/0.77", "5,000") && is_row(lines[2], "runs/grundy", "2,000"), "{listed}");
    assert!(lines[1].contains(" stopped ") && lines[1].ends_with(" ago"), "{listed}");
    let both = text(&within(&["status", "runs/0.77", "runs/grundy"]).stdout);
    assert_eq!(both.lines().filter(|line| line.starts_with("game ")).count(), 2, "{both}");
    let words = both.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(
        words.contains("10, the last at 70 (n is rare if G(n) AND 0x")
            && words.contains("has an even number of 1 bits"),
        "{both}"
    );
    let in_runs = grundy(["values", "0.77", "3"]).current_dir(home.path().join("runs")).output().unwrap();
    assert_eq!(text(&in_runs.stdout), "3 3\n");
    assert!(
        text(&in_runs.stderr).contains("for the run directory of this name, give ./0.77"),
        "{}",
        text(&in_runs.stderr)
    );
    let long = within(&["run", "sub:200", "--to", "3"]);
    assert_eq!(long.status.code(), Some(0), "{}", text(&long.stderr));
    let listed = text(&within(&["status"]).stdout);
    assert!(listed.lines().filter(|line| line.ends_with(" ago")).all(|line| line.chars().count() <= 80), "{listed}");
    let long = listed.lines().find(|line| line.starts_with("runs/0.0000")).unwrap();
    std::fs::remove_dir_all(home.path().join(long)).unwrap();
    std::fs::write(home.path().join("runs/grundy/values.npy"), "").unwrap();
    let damaged = within(&["status"]);
    assert_eq!(damaged.status.code(), Some(3), "{}", text(&damaged.stderr));
    let listed = text(&damaged.stdout);
    assert!(listed.lines().any(|line| line.starts_with("runs/grundy") && line.ends_with("damaged")), "{listed}");
    let bad = within(&["status", "runs/none", "runs/grundy"]);
    let errors = text(&bad.stderr);
    assert_eq!(bad.status.code(), Some(3), "damage outweighs a missing directory: {errors}");
    assert!(errors.contains("runs/none") && errors.contains("runs/grundy/values.npy"), "{errors}");
}

#[test]
fn export_computes_a_game_and_shifts_and_comments_b_files() {
    let g = defined("kayles", 10_001);
    let export = |more: &[&str]| stdout_of(&[&["-q", "export", "kayles", "--format"], more].concat());
    assert!(export(&["csv"]) == format!("n,value\n{}", lines(&g, |n, v| format!("{n},{v}"))));
    assert_eq!(export(&["bfile", "--range", "1..4", "--offset", "-1"]), "0 1\n1 2\n2 3\n");
    assert_eq!(export(&["bfile", "--range", "0..2", "--offset", "5"]), "5 0\n6 1\n");
    let commented = export(&["bfile", "--range", "0..3", "--comment"]);
    let (comment, rows) = commented.split_at(commented.find("\n0 ").unwrap() + 1);
    assert_eq!(rows, "0 0\n1 1\n2 2\n");
    assert!(comment.lines().all(|line| line.starts_with("# ")), "{comment}");
    let dirs = tempfile::tempdir().unwrap();
    run_well("kayles", dirs.path(), &["--to", "3"]);
    let status = stdout_of(&["status", dirs.path().to_str().unwrap(), "--json"]);
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    for word in [grundy::PROGRAM, "--range 0..3 --comment", "0.77: G(0) to G(2)", status["digest"].as_str().unwrap()] {
        assert!(comment.contains(word), "{comment} has no {word}");
    }
    fails(2, &["export", "kayles", "--format", "csv", "--offset", "1"], &["--offset"]);
    fails(2, &["export", "kayles", "--format", "npy", "--comment"], &["--comment"]);
    fails(2, &["export", "kayles", "--format", "csv", "--verify"], &["--verify"]);
}

#[test]
fn values_without_a_range_are_the_first_hundred_in_rows_of_ten() {
    let g = defined("grundy", 100);
    let printed = stdout_of(&["-q", "values", "grundy"]);
    let mut rows = printed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    assert_eq!(rows.next().unwrap(), ["n", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    for (first, row) in (0..100).step_by(10).zip(rows) {
        let values: Vec<u16> = row[1..].iter().map(|value| value.parse().unwrap()).collect();
        assert_eq!((row[0].parse(), values.as_slice()), (Ok(first), &g[first..first + 10]));
    }
    assert_eq!(printed.lines().count(), 11);
    let dirs = tempfile::tempdir().unwrap();
    run_well("kayles", dirs.path(), &["--to", "13"]);
    let dir = dirs.path().to_str().unwrap();
    assert_eq!(stdout_of(&["values", dir]).lines().last(), Some("10   2  6  4"));
    assert_eq!(stdout_of(&["values", dir, "--json"]).lines().last(), Some(r#"{"n":12,"value":4}"#));
}

/// The answers for a run, and for a game computed on the spot, are those of a look at every value.
#[test]
fn find_gives_what_a_look_at_every_value_gives() {
    let dirs = tempfile::tempdir().unwrap();
    let path = dirs.path().join("run");
    let dir = path.to_str().unwrap();
    run_well("grundy", &path, &["--to", "3000"]);
    let g = defined("grundy", 3000);
    let (from, to) = (10, 2500);
    let some: Vec<(usize, u16)> = (from..to).map(|n| (n, g[n])).collect();
    let largest = some.iter().map(|&(_, value)| value).max().unwrap();
    let at = |value: u16| some.iter().filter(move |&&(_, other)| other == value);
    let rows = |keep: &dyn Fn(usize, u16) -> bool| {
        some.iter().filter(|&&(n, v)| keep(n, v)).map(|(n, v)| format!("{n} {v}\n")).collect::<String>()
    };
    let is_record = |n: usize, v: u16| g[from..n].iter().all(|&before| before < v);
    let first = |none: &str| {
        let line = |v| format!("{v} {}\n", at(v).next().map_or_else(|| none.to_owned(), |(n, _)| n.to_string()));
        (0..=largest).map(line).collect::<String>()
    };
    let histogram: String = (0..=largest).map(|v| format!("{v} {}\n", at(v).count())).collect();
    let is_rare = |n: usize, v: u16| n == 0 || (v & 0x1fe).count_ones().is_multiple_of(2);
    let expected = [
        ("--zeros", rows(&|_, v| v == 0)),
        ("--value=3..5", rows(&|_, v| v == 3 || v == 4)),
        ("--records", rows(&is_record)),
        ("--rares", rows(&is_rare)),
        ("--first", first("-")),
        (
            "--histogram",
            histogram.lines().filter(|line| !line.ends_with(" 0")).map(|line| format!("{line}\n")).collect(),
        ),
    ];
    for (question, rows) in expected {
        for source in [dir, "grundy"] {
            assert_eq!(
                stdout_of(&["-q", "find", source, question, "--range", "10..2500"]),
                rows,
                "{source} {question}"
            );
        }
    }
    let found = |question: &str, format: &str| {
        stdout_of(&["-q", "find", dir, question, "--range", "10..2500", "--format", format])
    };
    let line = |text: &str, i: usize| text.lines().nth(i).unwrap().to_owned();
    let zeros: Vec<usize> = at(0).map(|&(n, _)| n).collect();
    let numbered: String = (1..).zip(&zeros).map(|(i, n)| format!("{i} {n}\n")).collect();
    assert_eq!(found("--zeros", "bfile"), numbered);
    assert_eq!(
        line(&found("--zeros", "csv"), 0) + &line(&found("--zeros", "csv"), 1),
        format!("n,value{},0", zeros[0])
    );
    assert_eq!(line(&found("--zeros", "json"), 0), format!("{{\"n\":{},\"value\":0}}", zeros[0]));
    assert_eq!(line(&found("--histogram", "csv"), 1), format!("0,{}", zeros.len()));
    assert_eq!(found("--histogram", "bfile"), histogram);
    let absent = (0..largest).find(|&v| at(v).next().is_none()).unwrap();
    assert_eq!(line(&found("--first", "csv"), usize::from(absent) + 1), format!("{absent},"));
    let object: serde_json::Value = serde_json::from_str(&line(&found("--first", "json"), absent.into())).unwrap();
    assert_eq!((object["value"].as_u64(), object["n"].is_null()), (Some(absent.into()), true));
    assert_eq!(found("--first", "bfile").lines().count(), usize::from(absent));
}

/// `info` states a space of 4.4 and of .36. The solver finds one only after some thousand values.
#[test]
fn rare_positions_of_a_game_do_not_depend_on_the_range() {
    for game in ["4.4", ".36", "grundy"] {
        let found = |range: &str| stdout_of(&["-q", "find", game, "--rares", "--range", range]);
        let whole = found("0..9000");
        for end in [1, 3000, 4096, 4097, 6000] {
            let is_before = |line: &&str| line.split(' ').next().unwrap().parse::<u64>().unwrap() < end;
            let expected: Vec<&str> = whole.lines().filter(is_before).collect();
            assert_eq!(found(&format!("0..{end}")).lines().collect::<Vec<&str>>(), expected, "{game}, 0..{end}");
        }
    }
}

#[test]
fn find_states_the_number_of_rows_and_the_range() {
    let said =
        |value: &str| text(&grundy(["find", "kayles", "--value", value, "--range", "0..500"]).output().unwrap().stderr);
    let fours =
        definition::values(&"kayles".parse().unwrap(), 500).unwrap().iter().filter(|&&value| value == 4).count();
    assert!(said("9").contains("no rows for n in 0..500"));
    assert!(said("4").contains(&format!("{} rows for n in 0..500", fours)));
    let whole = text(&grundy(["find", "8.33", "--zeros"]).output().unwrap().stderr);
    assert!(whole.contains("3 rows for n in 0..4,096 (the default range)"), "{whole}");
}

#[test]
fn find_refuses_questions_without_an_answer() {
    fails(2, &["find", "grundy"], &["--zeros", "--rares"]);
    fails(2, &["find", "grundy", "--zeros", "--first"], &["--first"]);
    fails(2, &["find", "nim", "--zeros"], &["nim"]);
    fails(2, &["-q", "find", ".4", "--rares", "--range", "0..5000"], &["no sparse space is known"]);
    for (game, why) in [(".8F", "three heaps"), (".3", "more than one heap"), (".(7)", "repeats")] {
        fails(2, &["-q", "find", game, "--rares", "--range", "0..50"], &["no sparse space", why]);
    }
    fails(2, &["find", "grundy", "--value", "65536"], &["65536"]);
    fails(2, &["find", "grundy", "--zeros", "--verify"], &["--verify"]);
    fails(1, &["find", "none/here", "--zeros"], &["none/here"]);
}

#[test]
fn closed_stdout_is_no_error() {
    let dirs = tempfile::tempdir().unwrap();
    run_well("kayles", dirs.path(), &["--to", "100000"]);
    let dir = dirs.path().to_str().unwrap();
    for arguments in [
        &["values", "grundy", "0..100000"][..],
        &["values", "kayles", "1e18..2e18", "-q"],
        &["values", dir, "0..100000"],
        &["-q", "export", dir, "--format", "jsonl"],
        &["-q", "export", dir, "--format", "npy"],
    ] {
        let mut child = grundy(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = Vec::new();
        BufReader::with_capacity(16, child.stdout.take().unwrap()).read_until(b'\n', &mut first).unwrap();
        assert!(!first.is_empty(), "{arguments:?}");
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        let status = child.wait().unwrap();
        assert!(status.success() && stderr.is_empty(), "{arguments:?}: {status}: {stderr}");
    }
}

#[test]
fn closed_stdout_changes_neither_files_nor_exit_status() {
    let home = Home::new();
    home.well("-q run kayles --to 30000 --dir run");
    std::fs::OpenOptions::new().write(true).open(home.path("run/values.npy")).unwrap().set_len(5000).unwrap();
    let unread = |line: &str| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = grundy(line.split(' '));
        command.current_dir(home.dir()).stdout(writer).stderr(Stdio::null()).status().unwrap().code()
    };
    assert_eq!(unread("period kayles --certificate c.json --exceptions e.txt"), Some(0));
    assert!(home.path("c.json").exists() && home.read("e.txt").starts_with("0 0\n3 3\n"));
    assert_eq!((unread("status run"), unread("status run --json")), (Some(3), Some(3)));
    assert_eq!(unread("survey --digits 1 --to 2^10 -o tables"), Some(0));
    assert!(home.path("tables/survey.csv").exists() && home.path("tables/survey.md").exists());
    assert_eq!(unread("period kayles --certificate c2.json --exceptions -"), Some(0));
    assert!(home.path("c2.json").exists());
    assert_eq!(unread("period kayles --certificate c.json --exceptions ./c.json"), Some(2));
}

/// A long run does not end because its terminal is closed or `head` has exited.
#[test]
fn run_with_closed_stdout_and_stderr_completes() {
    let dirs = tempfile::tempdir().unwrap();
    for (i, to_close) in ["stdout", "stderr", "both"].into_iter().enumerate() {
        let dir = dirs.path().join(to_close);
        let begin = |to: &str| {
            let mut command = grundy(["run", "grundy", "--to", to, "--dir"]);
            command.arg(&dir).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            if i != 1 {
                drop(child.stdout.take());
            }
            if i != 0 {
                drop(child.stderr.take());
            }
            child
        };
        assert_eq!(begin("30000").wait().unwrap().code(), Some(0), "{to_close} closed");
        assert_eq!(begin("30000").wait().unwrap().code(), Some(0), "{to_close} closed, nothing to do");
        // The run writes a line about the torn tail to its log.
        let journal = dir.join("journal.jsonl");
        std::fs::OpenOptions::new().append(true).open(&journal).unwrap().write_all(b"torn").unwrap();
        assert_eq!(begin("40000").wait().unwrap().code(), Some(0), "{to_close} closed, with something to say");
        assert_eq!(grundy(["verify"]).arg(&dir).output().unwrap().status.code(), Some(0));
        // An error still gives its exit status.
        assert_eq!(begin("1e30").wait().unwrap().code(), Some(2), "{to_close} closed");
    }
}

#[test]
fn quiet_suppresses_progress_and_log_but_not_errors() {
    let dirs = tempfile::tempdir().unwrap();
    let path = dirs.path().join("run");
    let dir = path.to_str().unwrap();
    for to in ["5000", "6000", "100"] {
        let output = output_of(&["run", "kayles", "--to", to, "--dir", dir, "-q"]);
        assert_eq!(output.status.code(), Some(0));
        assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    }
    let loud = output_of(&["run", "kayles", "--to", "100", "--dir", dir]);
    assert!(!loud.stderr.is_empty(), "without -q there is something to say");
    fails(1, &["-q", "run", "grundy", "--to", "100", "--dir", dir], &["0.77"]);
    // A repair, and a rollback.
    let table = std::fs::OpenOptions::new().read(true).write(true).open(path.join("values.npy")).unwrap();
    for more in [&[][..], &["--rollback"]] {
        let mut byte = [0];
        table.read_exact_at(&mut byte, 4096 + 500).unwrap();
        table.write_all_at(&[byte[0] ^ 1], 4096 + 500).unwrap();
        let output = output_of(&[&["run", "kayles", "--to", "6000", "--dir", dir, "-q"], more].concat());
        assert_eq!(output.status.code(), Some(0), "{more:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("the damaged bytes are kept in"), "{more:?}: {}", text(&output.stderr));
    }
}

/// Ranges whose numbers of values together exceed 64 bits end at the first write to a closed pipe.
#[test]
fn many_long_ranges_of_a_periodic_game_are_no_error() {
    let mut command = grundy(["values", "kayles", "0..2^63", "0..2^63", "0..2^63"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((line.as_str(), output.status.code()), ("0 0\n", Some(0)), "{}", text(&output.stderr));
}

/// The tests may run as root, whom permissions do not stop, so no test here expects a refusal.
#[test]
fn a_directory_without_write_permission_can_be_read() {
    let dirs = tempfile::tempdir().unwrap();
    let path = dirs.path().join("run");
    let dir = path.to_str().unwrap();
    run_well("0.6", &path, &["--to", "9000"]);
    let mode = |path: &Path, mode: u32| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    let files: Vec<_> = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect();
    let before: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    files.iter().for_each(|file| mode(file, 0o444));
    mode(&path, 0o555);
    for arguments in [
        &["status", dir, "--json"][..],
        &["values", dir, "0..9000"],
        &["verify", dir],
        &["verify", dir, "--level", "definition"],
        &["export", dir, "--format", "csv"],
        &["find", dir, "--histogram"],
    ] {
        stdout_of(arguments);
    }
    mode(&path, 0o755);
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), files.len(), "readers leave nothing behind");
    assert!(before == files.iter().map(|file| std::fs::read(file).unwrap()).collect::<Vec<_>>());
}

#[test]
fn mistakes_of_the_command_line_are_explained_in_words() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    std::fs::write(&file, "").unwrap();
    fails(1, &["run", "kayles", "--dir", file.to_str().unwrap()], &["not a directory", "--dir"]);
    fails(2, &["values", ".8F", "-1..3"], &["'-1'", "must not be negative", "0..20"]);
    fails(2, &["play", "kayles", "5", "kayles", "3"], &["heap 'kayles'", "GAME:HEAP GAME:HEAP"]);
    fails(2, &["play", "kayles:12", "5"], &["'kayles 12 5'", "'kayles:12 kayles:5'"]);
    fails(2, &["play", "kayles:12", "5", "nim:3"], &["'kayles:12'", "GAME:HEAP GAME:HEAP"]);
    fails(2, &["play", "kayles", "5", "nim:3"], &["heap 'nim:3'", "GAME:HEAP GAME:HEAP"]);
    fails(2, &["play", "kayles:12", "nim"], &["'kayles:12'", "GAME:HEAP GAME:HEAP"]);
    fails(2, &["period", "kayles", "--certificate", "c", "--exceptions", "c"], &["different files"]);
    let typo = home.path().join("typo");
    for more in [&[][..], &["--to", "100"]] {
        let command = [&["run", "--dir", typo.to_str().unwrap()], more].concat();
        fails(1, &command, &["no run here", "check the name", "grundy run GAME --dir"]);
    }
    assert!(!typo.exists());
    fails(2, &["run", "kayles", "1e6"], &["'1e6'", "follows its option", "--to 1e6"]);
    fails(2, &["run", "kayles", "--to", "1,000,000"], &["without commas: 1_000_000"]);
    fails(2, &["values", "77"], &["bad game code '77'", "did you mean '.77'?"]);
    fails(2, &["values", "1..10", "grundy"], &["'grundy'", "name it before the ranges"]);
    fails(2, &["plot", "values", "grundy"], &["python3 -m grundy plot"]);
    let (status, _, stderr) = reply(&["merge", "check", "--missing"]);
    assert!(status == 2 && stderr.contains("'--missing'") && !stderr.contains("misère"), "{stderr}");
    // The n of the first period with the same remainder.
    let (n, period, preperiod) = (1_000_000_000_000_000_000_u64, 328_226_140_474, 465_384_263_797);
    let same = n - (n - preperiod) / period * period;
    fails(2, &["values", ".106", "1e18"], &[&format!("so G({n}) = G({same})"), "--keep"]);
    let (status, _, stderr) = reply(&["find", ".137", "--rares", "--range", "0..20000"]);
    assert!(status == 2 && stderr.contains("period 34") && !stderr.contains("may find one"), "{stderr}");
    crate::support::run_well("kayles", &home.path().join("periodic"), &["--to", "1000"]);
    let shown = stdout_of(&["status", home.path().join("periodic").to_str().unwrap()]);
    assert!(shown.contains("known to be 12, from n = 71 on"), "{shown}");
    let more = (std::thread::available_parallelism().unwrap().get() + 1).to_string();
    let run = crate::support::run("kayles", &home.path().join("run"), &["--to", "100", "--threads", &more]);
    let stderr = text(&run.stderr);
    assert!(run.status.success() && stderr.contains(&format!("warning: --threads {more}, but there")), "{stderr}");
}

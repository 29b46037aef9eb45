//! Properties that hold for every input of a parser, including hostile input. Each parser has one function, which
//! panics if its property fails. The fuzzers of `fuzz_targets` call it with generated inputs, `tests/fuzz.rs` with the
//! files of `corpus`.
//!
//! Text inputs are parsed as they are. For the files of a run, [`mould`] provides a complete run in memory, as the
//! program left it; the input replaces or changes one of its files. Journal records are hashed, so nearly every change
//! of a journal is refused at once. Therefore [`journal`] has a form that sets fields, and then links and hashes every
//! record again.
//!
//! Every error is also formatted, because text from a file must not reach a terminal unescaped.

#![allow(dead_code, reason = "a fuzzer has one of the functions")]

use grundy::checkpoint::journal::{self, Attached, RECORD, Record};
use grundy::checkpoint::summary::{DiscardSummary, Head};
use grundy::games::edges::{Direction, Edges, MAX_EDGES, MAX_VERTICES};
use grundy::games::graph::Graph;
use grundy::period::{MemorySearch, certificate::Certificate};
use grundy::publish::{Manifest, compare};
use grundy::run::{Observer, Options, Run, RunPolicy, RunReader};
use grundy::solver::Method;
use grundy::storage::Dir;
use grundy::storage::testing::Memory;
use grundy::survey::{self, Games, Plan};
use grundy::table::Width;
use grundy::table::digest::{Digest, SEGMENT};
use grundy::table::{ESCAPES, Extent, HEADER, TableReader, VALUES, npy_header};
use grundy::theory::definition::Sequence;
use grundy::theory::rule::Rule;
use grundy::units;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

#[path = "../src/cli/number.rs"]
mod parser;

/// A function that panics if its property does not hold for an input.
pub(crate) type Property = fn(&[u8]);

/// All properties, with the names of their corpora.
pub(crate) const ALL: [(&str, Property); 12] = [
    ("rule", rule),
    ("number", number),
    ("header", header),
    ("journal", journal),
    ("escapes", escapes),
    ("edges", edges),
    ("record", record),
    ("plan", plan),
    ("units", units),
    ("manifest", manifest),
    ("certificate", certificate),
    ("snapshot", snapshot),
];

/// Checks that the name of a parsed rule parses to the same rule, and that its directory name is plain.
pub(crate) fn rule(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Some(rule) = value_of(text.parse::<Rule>()) else { return };
    assert_eq!(value_of(rule.name().parse()).as_ref(), Some(&rule), "{text:?}");
    assert_eq!(rule.to_string(), rule.name());
    let (name, plain) = (rule.directory_name(), |c: char| c.is_ascii_alphanumeric() || "-.".contains(c));
    assert!(name.chars().all(plain) && !name.starts_with(['.', '-']), "{text:?} makes {name:?}");
    for n in [0, 1, 2, rule.max_remove().saturating_add(rule.max_difference()).saturating_add(2), u64::MAX] {
        for split in rule.splits() {
            let (a, whole) = (split.largest_small_part(n), n.saturating_sub(split.remove));
            let allowed = |a: u64| a <= whole / 2 && whole - 2 * a >= split.min_difference;
            assert!((a == 0 || allowed(a)) && !allowed(a + 1), "{text:?}: a heap of {n} with a part of {a}");
        }
        assert!(rule.single_options(n, |_| 0).count() <= rule.moves().len());
    }
}

/// Checks that a number is parsed to the value that the text denotes, that its digits parse to the same number, and
/// that a range is not empty.
pub(crate) fn number(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let read = value_of(parser::number(text));
    if let Some(n) = read {
        let digits = n.to_string();
        assert_eq!(written_out(text).as_ref(), Some(&digits), "{text:?}");
        for same in [format!("{digits}e0"), format!("{digits}^1"), format!("_{digits}_"), digits] {
            assert_eq!(parser::number(&same), Ok(n), "{text:?} as {same:?}");
        }
    }
    assert_eq!(value_of(parser::positive(text)), read.filter(|&n| n > 0), "{text:?}");
    if let Some(range) = value_of(parser::range(text)) {
        assert!(!range.is_empty(), "{text:?}");
        assert_eq!(parser::range(&format!("{}..{}", range.start, range.end)), Ok(range), "{text:?}");
    }
}

/// Returns the digits of a number or of a product of numbers. Returns `None` if the text is no number, or if its value
/// is too large.
fn written_out(text: &str) -> Option<String> {
    let text = text.replace('_', "");
    if !text.contains('*') {
        return factor_written_out(&text);
    }
    let factor = |text| factor_written_out(text)?.parse().ok();
    let product = text.split('*').try_fold(1u128, |product, text| product.checked_mul(factor(text)?))?;
    Some(product.to_string())
}

/// Returns the digits of a number without `*`. It uses no arithmetic except for powers.
fn factor_written_out(text: &str) -> Option<String> {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let digits = |text: &str| match text.trim_start_matches('0') {
        _ if !is_digits(text) => None,
        "" => Some("0".to_owned()),
        rest => Some(rest.to_owned()),
    };
    if let Some((base, exponent)) = text.split_once('^') {
        let (base, exponent) = (digits(base)?, digits(exponent)?);
        let power = match (base.as_str(), exponent.as_str()) {
            (_, "0") | ("1", _) => 1,
            ("0", _) => 0,
            _ => {
                let (base, exponent): (u128, u64) = (base.parse().ok()?, exponent.parse().ok()?);
                (0..exponent).try_fold(1u128, |product, _| product.checked_mul(base))?
            }
        };
        return Some(power.to_string());
    }
    let suffixes = [("k", 3), ("K", 3), ("M", 6), ("G", 9), ("T", 12)];
    let suffix = suffixes.iter().find_map(|&(suffix, zeros)| Some((text.strip_suffix(suffix)?, zeros)));
    let (mantissa, zeros) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, digits(exponent)?.parse().unwrap_or(usize::MAX)),
        None => suffix.unwrap_or((text, 0usize)),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) if is_digits(fraction) => (whole, fraction.trim_end_matches('0')),
        Some(_) => return None,
        None => (mantissa, ""),
    };
    let zeros = zeros.checked_sub(fraction.len()).filter(|_| is_digits(whole))?;
    // 0 with any exponent is 0.
    let zeros = if format!("{whole}{fraction}").bytes().all(|c| c == b'0') { 0 } else { zeros };
    if zeros >= 100 {
        return None;
    }
    digits(&format!("{whole}{fraction}{}", "0".repeat(zeros)))
}

/// Checks that a header is accepted only if it equals, to the last byte, the header that the program writes for its
/// shape. The first byte selects the form of the rest: with `v` or `e`, changes of the file of the values or the
/// escapes ([`changed`]); with `V` or `E`, the dictionary of its header, between the magic and the padding; with any
/// other byte, the whole file of the values.
pub(crate) fn header(input: &[u8]) {
    let Some((&how, rest)) = input.split_first() else { return };
    let name = if matches!(how, b'e' | b'E') { ESCAPES } else { VALUES };
    let run = mould();
    let good = run.files.get(name).expect("a file of the run");
    let file = match how {
        b'v' | b'e' => changed(good.clone(), rest),
        b'V' | b'E' => {
            let text = &rest[..rest.len().min(4085)];
            [&good[..10], text, &vec![b' '; 4085 - text.len()], b"\n", &good[4096..]].concat()
        }
        _ => rest.to_vec(),
    };
    let dir = run.with(name, file.clone());
    let last = &run.last;
    let Some(table) = value_of(TableReader::open(&dir, last.width, last.extent())) else { return };
    // The file must contain at least the entries that the journal states.
    let ends = if name == VALUES { last.count } else { last.escapes * 10 };
    assert!(file.len() as u64 >= HEADER + ends);
    let _ = value_of(table.check_lengths(last.extent()));
    let Some(Extent { values, escapes }) = value_of(table.header_shapes()) else { return };
    let (descr, shape) = if name == VALUES { ("'|u1'", values) } else { ("[('n', '<u8'), ('v', '<u2')]", escapes) };
    assert!(file.starts_with(&npy_header(descr, shape, HEADER)), "the shapes {values} and {escapes}");
}

/// Checks that escapes are accepted if and only if they ascend and each belongs to a byte 255 of the table. Checks that
/// reading then returns the values, or fails at a byte 255 without an escape, and that reading with refused escapes
/// does not panic. If the first byte is `e`, the rest are changes of the file ([`changed`]); otherwise it is the
/// entries.
pub(crate) fn escapes(input: &[u8]) {
    let Some((&how, rest)) = input.split_first() else { return };
    let run = mould();
    let good = run.files.get(ESCAPES).expect("a file of the run");
    let file = if how == b'e' { changed(good.clone(), rest) } else { [&good[..4096], rest].concat() };
    let entries = file.get(4096..).unwrap_or_default();
    let entries: Vec<(u64, u16)> = entries
        .chunks_exact(10)
        .map(|entry| entry.split_at(8))
        .map(|(n, v)| (u64::from_le_bytes(n.try_into().expect("8")), u16::from_le_bytes(v.try_into().expect("2"))))
        .collect();
    let dir = run.with(ESCAPES, file.clone());
    let count = run.last.count;
    let bytes: Vec<u8> = run.files[VALUES][4096..].to_vec();
    let open = |escapes: usize| {
        value_of(TableReader::open(&dir, Width::U8, Extent { values: count, escapes: escapes as u64 }))
    };
    assert!(open(entries.len() + 1).is_none(), "an escape behind the end");
    let Some(table) = open(entries.len()) else { return };
    let belongs = |&(n, v): &(u64, u16)| v >= 255 && n < count && bytes.get(n as usize) == Some(&255);
    let right = entries.is_sorted_by(|a, b| a.0 < b.0) && entries.iter().all(belongs);
    assert_eq!(value_of(table.check_escapes()).is_some(), right, "{entries:?}");
    let half = entries.len() as u64 / 2;
    let halves = [0..half, half..entries.len() as u64].map(|part| value_of(table.check_some_escapes(part)).is_some());
    assert_eq!(halves == [true, true], right, "{entries:?} by halves");
    for (from, to) in [(0, count), (count / 3, count / 2), (count, count)] {
        let mut values = vec![0; (to - from) as usize];
        let read = value_of(table.read(from, &mut values));
        let escape = |n: u64| entries.iter().find(|entry| entry.0 == n);
        let saturated = (from..to).filter(|&n| bytes[n as usize] == 255);
        // Reading a byte 255 without an escape fails, whatever the other entries are.
        let complete = right && saturated.into_iter().all(|n| escape(n).is_some());
        assert!(read.is_some() || !complete, "{from}..{to} of {entries:?}");
        if right && read.is_some() {
            let expected = |n: u64| escape(n).map_or(u16::from(bytes[n as usize]), |escape| escape.1);
            assert!(
                complete && values == (from..to).map(expected).collect::<Vec<u16>>(),
                "{from}..{to} of {entries:?}"
            );
        }
    }
    assert!(value_of(table.read(count, &mut [0])).is_none() && value_of(table.read(u64::MAX, &mut [0, 0])).is_none());
}

/// Checks that the contents of an accepted journal are consistent, that a second read gives the same contents, and that
/// its run can be read, resumed and rolled back, or is refused. The first byte selects the form of the rest: with `p`,
/// changes of the bytes ([`changed`]); with `s`, fields to set, after which links and hashes are corrected
/// ([`Mould::set`]); with any other byte, the whole file.
pub(crate) fn journal(input: &[u8]) {
    let Some((&how, rest)) = input.split_first() else { return };
    let run = mould();
    let file = match how {
        b'p' => changed(run.files[journal::NAME].clone(), rest),
        b's' => match std::str::from_utf8(rest).ok().and_then(|text| run.set(text)) {
            Some(file) => file,
            None => return,
        },
        _ => rest.to_vec(),
    };
    let dir = run.with(journal::NAME, file.clone());
    let contents = value_of(journal::read(&dir));
    if let Some(contents) = &contents {
        let last = &contents.last;
        let again = value_of(journal::read(&dir)).expect("the same file");
        assert_eq!((&again.last, &again.points, again.torn), (last, &contents.points, contents.torn));
        assert!(contents.points.is_sorted_by(|a, b| a.count < b.count));
        assert_eq!(contents.points.last().map(|p| (p.count, p.escapes)), Some((last.count, last.escapes)));
        assert_eq!(last.sequence + 1, contents.records);
        let good = contents.records * RECORD as u64;
        assert_eq!(contents.torn, (file.len() as u64 > good).then_some(good));
        assert!(last.digest().is_some() && last.discarded().is_some());
        assert!(file[..good as usize].ends_with(b"\n") && blake3::Hash::from_hex(&last.blake3).is_ok());
        let _ = value_of(contents.require_no_torn_tail(dir.path()));
        let _ = value_of(DiscardSummary::read(&dir, last));
    }
    if let Some(view) = value_of(RunReader::open(&dir)) {
        let contents = contents.as_ref().expect("a view has a journal");
        assert_eq!(view.len(), contents.last.count);
        assert_eq!(
            (view.rule.name(), view.discarded()),
            (&*contents.last.game, contents.last.discarded().unwrap_or_default())
        );
        let _ = (
            value_of(view.table.header_shapes()),
            value_of(view.table.check_escapes()),
            value_of(view.table.check_lengths(view.contents.high_water_mark)),
        );
        for from in [0, view.len().saturating_sub(64), view.len()] {
            let _ = value_of(view.read(from, &mut [0; 64]));
        }
    }
    for (repair, rollback) in [(false, false), (true, false), (false, true)] {
        resumed(&run.with(journal::NAME, file.clone()), repair, rollback);
    }
}

/// Resumes a run that has no values left to compute. If that succeeds, checks that the journal then has the same count,
/// and that resuming again succeeds with the same progress.
fn resumed(dir: &Dir, repair: bool, rollback: bool) {
    let resume = |repair: bool, rollback: bool| {
        let (method, policy) = (Method::Definition, RunPolicy { commit_every: None, repair, seed: Some(1) });
        // Without a width, a rollback to no values would compute 65,536 of them to choose it.
        let width = rollback.then_some(Width::U8);
        let options = Options { to: Some(1), threads: 1, method, width, keep: None, rollback };
        value_of(Run::on(None, dir).options(options).policy(policy).observer(&mut PrintableNotes).run_in_pool())
    };
    let Some(outcome) = resume(repair, rollback) else { return };
    let last = value_of(journal::read(dir)).expect("a journal").last;
    assert_eq!((last.count, last.max_value), (outcome.progress.count, outcome.progress.max_value));
    let again = resume(false, false).expect("a run that was resumed is whole");
    assert_eq!(again.progress, outcome.progress);
}

/// Checks that edges written again as DOT, with every name in quotes, parse to the same edges, and that the values of
/// an accepted graph satisfy the definition of the mex.
pub(crate) fn edges(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    for (direction, kind, arrow) in [(Direction::Directed, "digraph", "->"), (Direction::Undirected, "graph", "--")] {
        let Some(read) = value_of(Edges::read(Path::new("text"), text, direction)) else { continue };
        let lines = text.lines().count().max(1);
        assert!(read.edges.iter().all(|e| e.from.max(e.to) < read.names.len() && (1..=lines).contains(&e.line)));
        assert!(read.names.len() <= MAX_VERTICES && read.edges.len() <= MAX_EDGES);
        assert!(read.names.iter().enumerate().all(|(place, name)| read.find(name) == Some(place)));
        if !read.names.iter().any(|name| name.contains('\\')) {
            let quoted = |place: usize| format!("\"{}\"", read.names[place].replace('"', "\\\""));
            let vertices = (0..read.names.len()).map(|place| quoted(place) + ";");
            let edges = read.edges.iter().map(|e| format!("{} {arrow} {};", quoted(e.from), quoted(e.to)));
            let dot = format!("{kind} {{{}{}}}", vertices.collect::<String>(), edges.collect::<String>());
            let again = value_of(Edges::read(Path::new("again"), &dot, direction)).expect("DOT of ours");
            let pairs = |edges: &Edges| edges.edges.iter().map(|e| (e.from, e.to)).collect::<Vec<_>>();
            assert_eq!((&again.names, pairs(&again)), (&read.names, pairs(&read)));
        }
        if let Some(graph) = value_of(Graph::new(read)) {
            for (vertex, &value) in graph.values().iter().enumerate() {
                let options: Vec<u16> = graph.options(vertex).into_iter().map(|to| graph.values()[to]).collect();
                assert!(!options.contains(&value) && (0..value).all(|below| options.contains(&below)), "{text:?}");
            }
        }
    }
}

/// The text of a record with its seal; `None` if the text is no JSON object.
fn sealed(text: &str) -> Option<String> {
    let mut fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).ok()?;
    fields.insert("seal".into(), "".into());
    let hash = blake3::hash(serde_json::to_string(&fields).ok()?.as_bytes());
    fields.insert("seal".into(), hash.to_hex().as_str().into());
    serde_json::to_string(&fields).ok()
}

/// Checks that an accepted record prints as one line of a table and survives a round trip through JSON, that
/// contradiction between two records of a game is symmetric, and that no record contradicts itself. After a first byte
/// `r`, the input is the text of a record, which is also tried with its seal. Otherwise it consists of lines `RECORD
/// KEY JSON`, which set fields of the first (`1`) and the second (`2`) of two good records of Kayles.
pub(crate) fn record(input: &[u8]) {
    const NAME: &str = "0.77.json";
    let mut accepted = Vec::new();
    if let Some(text) = input.strip_prefix(b"r") {
        accepted.extend(value_of(survey::Record::parse(NAME, text)));
        let sealed = std::str::from_utf8(text).ok().and_then(sealed);
        accepted.extend(sealed.and_then(|text| value_of(survey::Record::parse(NAME, text.as_bytes()))));
    } else {
        let Ok(text) = std::str::from_utf8(input) else { return };
        for (which, good) in ["1", "2"].into_iter().zip(good_records()) {
            let mut fields = good.clone();
            for line in text.lines() {
                let mut words = line.splitn(3, ' ');
                let (Some(record), Some(key)) = (words.next(), words.next()) else { continue };
                match words.next() {
                    _ if record != which => {}
                    Some(json) => _ = fields.insert(key.into(), json.into()),
                    None => _ = fields.remove(key),
                }
            }
            let fields = fields.iter().map(|(key, json)| format!("{}:{json}", serde_json::Value::from(&**key)));
            let text = sealed(&format!("{{{}}}", fields.collect::<Vec<_>>().join(",")));
            accepted.extend(text.and_then(|text| value_of(survey::Record::parse(NAME, text.as_bytes()))));
        }
        assert!(!input.is_empty() || accepted.len() == 2, "the good records are not accepted");
    }
    for record in &accepted {
        for table in [survey::csv([record].into_iter()), survey::markdown([record].into_iter())] {
            let header = table.lines().count() - 1;
            assert!(!table.contains(|c: char| c.is_control() && c != '\n') && (1..=2).contains(&header), "{table:?}");
        }
        let again = record.file_text();
        assert_eq!(survey::Record::parse(NAME, again.as_bytes()).as_ref(), Ok(record));
        for other in &accepted {
            let [why, back] = [(record, other), (other, record)].map(|(a, b)| survey::contradiction(a, b).is_some());
            assert!(why == back && (!why || record != other), "{record:?}\n{other:?}");
        }
    }
}

/// Returns the fields of two records of Kayles as JSON: one from 2000 values, which is proved, and one from 100 values.
fn good_records() -> &'static [BTreeMap<String, String>; 2] {
    static ONCE: OnceLock<[BTreeMap<String, String>; 2]> = OnceLock::new();
    ONCE.get_or_init(|| {
        [2000, 100].map(|to| {
            let rule = "0.77".parse().expect("a game");
            let record = survey::examine(&rule, Method::Definition, to, &AtomicBool::new(false)).expect("values");
            let fields =
                serde_json::to_value(record.expect("the search was not stopped")).expect("numbers and text are JSON");
            let fields = fields.as_object().expect("a record").clone();
            fields.into_iter().map(|(key, value)| (key, value.to_string())).collect()
        })
    })
}

/// Checks that an accepted plan survives a round trip through JSON, and that each of its games is in exactly one shard.
pub(crate) fn plan(input: &[u8]) {
    let Some(plan) = value_of(Plan::parse(input)) else { return };
    let again = serde_json::to_vec(&plan).expect("numbers and text are JSON");
    assert_eq!(Plan::parse(&again).as_ref(), Ok(&plan));
    if matches!(plan.games, Games::Digits(4..)) {
        return; // hundreds of thousands of games
    }
    let (all, mine) = (plan.all(), plan.mine());
    assert!(mine.iter().all(|rule| all.contains(rule) && plan.shard_of(rule) == plan.shard));
    assert_eq!(all.iter().filter(|rule| plan.shard_of(rule) == plan.shard).count(), mine.len());
    assert!(all.iter().all(|rule| plan.shard_of(rule) < plan.shards));
}

/// Checks that an accepted plan of units survives a round trip through JSON, and that its units divide the work and
/// have different names. Other input stands for the lines of a result before the last one, which is added with the hash
/// of the others.
pub(crate) fn units(input: &[u8]) {
    let Some(plan) = value_of(units::Plan::parse(input)) else { return result(input) };
    let again = serde_json::to_vec(&plan).expect("numbers and text are JSON");
    assert_eq!(units::Plan::parse(&again).as_ref(), Ok(&plan));
    let whole = match &plan.work {
        units::Work::Survey(work) if matches!(work.games, Games::Digits(4..)) => return,
        units::Work::Survey(work) => Plan::new(work.games.clone(), (0, 1), work.to).expect("a plan").all().len() as u64,
        units::Work::Verify(work) => work.count,
    };
    if plan.parts > 1 << 12 {
        return; // a million units
    }
    let units = plan.units();
    let names: BTreeMap<&str, u64> = units.iter().map(|unit| (unit.name(), unit.size())).collect();
    assert_eq!((names.len(), names.values().sum::<u64>()), (units.len(), whole));
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    assert!(names.keys().all(|name| name.chars().all(plain)), "{names:?}");
}

/// Checks that the texts of an accepted result can be printed.
fn result(lines: &[u8]) {
    let end = serde_json::json!({ "end": {
        "lines": lines.iter().filter(|&&byte| byte == b'\n').count(),
        "spent": { "wall": 1.5, "cpu": 0.5 },
        "digest": blake3::hash(lines).to_string(),
    }});
    let bytes = [lines, end.to_string().as_bytes(), b"\n"].concat();
    let Some(result) = value_of(units::UnitResult::parse(&bytes)) else { return };
    let wrong = result.check.and_then(|check| check.wrong).unwrap_or_default();
    let kernels: String = result.sessions.into_iter().map(|session| session.kernel + &session.host).collect();
    assert!(!(wrong + &kernels).contains(char::is_control));
}

/// Checks that an accepted manifest survives a round trip, and agrees with itself.
pub(crate) fn manifest(input: &[u8]) {
    let Some(manifest) = value_of(Manifest::parse(input)) else { return };
    assert_eq!(Manifest::parse(manifest.text().as_bytes()).as_ref(), Ok(&manifest));
    let found = compare(&manifest, &manifest).expect("the same game");
    assert_eq!((found.agree, found.differs, found.confirmed), (manifest.count, None, 0));
}

/// Returns the JSON object `template` with the fields of the object `input`, or `None` if `input` is no JSON object.
fn overlaid(template: &impl serde::Serialize, input: &[u8]) -> Option<serde_json::Value> {
    let fields: BTreeMap<String, serde_json::Value> = serde_json::from_slice(input).ok()?;
    let mut object = serde_json::to_value(template).expect("numbers and text are JSON");
    fields.into_iter().for_each(|(key, value)| object[key.as_str()] = value);
    Some(object)
}

/// Checks that a certificate of Kayles whose fields are replaced by those of the input, and which is sealed again, is
/// judged quickly and is refused unless it is true. Input that is no JSON object is parsed as the certificate file.
pub(crate) fn certificate(input: &[u8]) {
    /// Number of values that a certificate is compared with.
    const VALUES: u64 = 1 << 12;
    static KAYLES: OnceLock<(Certificate, Vec<u16>)> = OnceLock::new();
    let (good, values) = KAYLES.get_or_init(|| {
        let rule: Rule = "kayles".parse().expect("a game");
        let mut search = MemorySearch::new(&rule, Method::Definition);
        search.until_proved(VALUES, |_| true).expect("values");
        let repeat = search.finding().and_then(|finding| finding.repeat.as_ref()).expect("a period");
        let certificate = Certificate::new(search.subject(), repeat, None).expect("values").expect("a proof");
        (certificate, search.values().to_vec())
    });
    let Some(object) = overlaid(good, input) else {
        let _ = value_of(Certificate::parse(input)).map(|certificate| value_of(certificate.judge()));
        return;
    };
    let Some(forged) = serde_json::from_value::<Certificate>(object).ok().map(Certificate::sealed) else { return };
    let Some(forged) = value_of(Certificate::parse(forged.to_json())) else { return };
    if value_of(forged.judge()).is_none() || forged.game != good.game || forged.checked_through > values.len() as u64 {
        return;
    }
    if value_of(forged.check(Method::Definition, values)).is_some() {
        assert_eq!((forged.period, forged.preperiod), (12, 71), "Kayles has no other least period and preperiod");
        assert_eq!(forged.max_value, good.max_value);
    }
}

/// Checks that a snapshot with the hash that its record states is refused unless its fields are consistent. The input
/// is a JSON object whose fields replace those of a good snapshot; any other input is the file.
pub(crate) fn snapshot(input: &[u8]) {
    let run = mould();
    let (from, to) = (SEGMENT, 2 * SEGMENT);
    let good = DiscardSummary {
        run: run.last.run.clone(),
        from,
        to,
        head: Some(Head { escapes: 0, digest: run.last.digest.clone() }),
        digest: run.last.digest.clone(),
        mask: run.last.mask,
        position: run.last.position,
        rares: vec![(from, 0), (to - 1, 3)],
        maxima: vec![(from, 0), (from + 1, 3)],
        histogram: vec![1, 0, 0, SEGMENT - 1],
    };
    let bytes = overlaid(&good, input).map_or_else(|| input.to_vec(), |object| object.to_string().into_bytes());
    let name = format!("snapshot-{to}.json");
    let attached = Attached { name: name.clone(), blake3: blake3::hash(&bytes).to_hex().to_string() };
    let count = to + 100;
    let kept = vec![(0, from), (to, count)];
    let record = Record { count, kept, keep: Some(1), snapshot: Some(attached), ..run.last.clone() };
    let Some(read) = value_of(DiscardSummary::read(run.with(&name, bytes), &record)).flatten() else {
        assert!(input != b"{}", "the good one is read");
        return;
    };
    assert_eq!(read.discarded(), from..to);
    assert!(read.head.as_ref().is_none_or(|head| head.digest.parse::<Digest>().is_ok()));
    assert_eq!(read.histogram.iter().map(|&number| u128::from(number)).sum::<u128>(), u128::from(to - from));
    let known = read.known();
    assert_eq!(read.histogram.iter().rposition(|&number| number > 0), Some(usize::from(known.max_value)));
    assert!(
        known.rare_positions.iter().all(|(n, _)| (from..to).contains(n))
            && known.rare_positions.is_sorted_by(|a, b| a.0 < b.0)
    );
}

/// Applies changes to a file. Each change consists of an offset (two bytes, little-endian), a length (one byte), and
/// that many bytes to write at the offset. A change without bytes truncates the file at the offset.
fn changed(mut file: Vec<u8>, mut changes: &[u8]) -> Vec<u8> {
    while let [low, high, count, rest @ ..] = changes {
        let at = usize::from(u16::from_le_bytes([*low, *high]));
        let (bytes, rest) = rest.split_at(rest.len().min(usize::from(*count)));
        if bytes.is_empty() {
            file.truncate(at);
        } else {
            file.resize(file.len().max(at + bytes.len()), 0);
            file[at..at + bytes.len()].copy_from_slice(bytes);
        }
        changes = rest;
    }
    file
}

/// A complete run, as the program left it.
struct Mould {
    files: BTreeMap<&'static str, Vec<u8>>,
    last: Record,
    /// Fields of each record of the journal, as JSON.
    records: Vec<BTreeMap<String, String>>,
}

/// Returns a run of 400 values with several commits and a clean stop. In its game, a move takes up to 290 tokens, or
/// takes 291 and may leave two heaps, so values of 255 and more occur early.
fn mould() -> &'static Mould {
    static ONCE: OnceLock<Mould> = OnceLock::new();
    ONCE.get_or_init(|| {
        let disk = Memory::new();
        let dir = Dir::on(Arc::new(disk.clone()), Path::new("run"));
        let rule: Rule = format!("0.{}7", "3".repeat(290)).parse().expect("a game");
        let (width, method) = (Some(Width::U8), Method::Definition);
        let options = Options { to: Some(400), threads: 1, method, width, keep: None, rollback: false };
        let policy = RunPolicy { commit_every: Some(100), repair: false, seed: Some(1) };
        Run::on(Some(&rule), &dir)
            .options(options)
            .policy(policy)
            .observer(&mut PrintableNotes)
            .run_in_pool()
            .expect("a run");
        let last = journal::read(&dir).expect("a journal").last;
        assert!(last.escapes > 0);
        let file = |name| (name, disk.get(name).expect("a file of the run"));
        let files = BTreeMap::from([VALUES, ESCAPES, journal::NAME].map(file));
        let fields = |line: &[u8]| {
            let fields: BTreeMap<String, serde_json::Value> = serde_json::from_slice(line).expect("a record");
            fields.into_iter().map(|(key, value)| (key, value.to_string())).collect()
        };
        let records = files[journal::NAME].chunks(RECORD).map(fields).collect();
        Mould { files, last, records }
    })
}

impl Mould {
    /// Returns the run in memory with `file` in place of the file `name`.
    fn with(&self, name: &str, file: Vec<u8>) -> Dir {
        let disk = Memory::new();
        for (other, bytes) in self.files.iter().filter(|(other, _)| **other != name) {
            disk.put(other, bytes.clone());
        }
        disk.put(name, file);
        Dir::on(Arc::new(disk), Path::new("run"))
    }

    /// Returns the journal with changed fields. Each line of `text` is one change: `RECORD KEY JSON` sets a field,
    /// `RECORD KEY` removes it, and `RECORD` removes the record. Records after the last one are copies of it. Sequence,
    /// link and hash are corrected unless they are set; if `blake3` is set, the hash is written under another key.
    /// Returns `None` if a change is malformed or a record does not fit its line.
    fn set(&self, text: &str) -> Option<Vec<u8>> {
        const MOST: usize = 12;
        let mut records: BTreeMap<usize, BTreeMap<String, String>> = self
            .records
            .iter()
            .cloned()
            .map(|record| without(record, &["sequence", "previous", "blake3"]))
            .enumerate()
            .collect();
        let copied = records.values().last().cloned().unwrap_or_default();
        for line in text.lines() {
            let mut words = line.splitn(3, ' ');
            let number: usize = words.next()?.parse().ok().filter(|&number| number < MOST)?;
            let Some(key) = words.next() else {
                records.remove(&number);
                continue;
            };
            let record = records.entry(number).or_insert_with(|| copied.clone());
            match words.next() {
                Some(json) => _ = record.insert(key.into(), json.into()),
                None => _ = record.remove(key),
            }
        }
        let mut file = Vec::new();
        let mut previous = "0".repeat(64);
        for (sequence, mut record) in records.into_values().enumerate() {
            record.entry("sequence".into()).or_insert_with(|| sequence.to_string());
            record.entry("previous".into()).or_insert_with(|| format!("\"{previous}\""));
            let hash = if record.contains_key("blake3") { "hash" } else { "blake3" };
            let fields = record.iter().map(|(key, json)| format!("{}:{json},", serde_json::Value::from(&**key)));
            let mut line = format!("{{{}\"{hash}\":\"", fields.collect::<String>()).into_bytes();
            let at = line.len();
            line.extend([b' '; 64]);
            line.extend(b"\"}");
            if line.len() >= RECORD {
                return None;
            }
            line.resize(RECORD - 1, b' ');
            line.push(b'\n');
            previous = blake3::hash(&line).to_hex().to_string();
            line[at..at + 64].copy_from_slice(previous.as_bytes());
            file.extend(line);
        }
        Some(file)
    }
}

fn without(mut record: BTreeMap<String, String>, keys: &[&str]) -> BTreeMap<String, String> {
    record.retain(|key, _| !keys.contains(&key.as_str()));
    record
}

/// Returns the value of a result. The text of an error must contain no control characters.
fn value_of<T, E: std::fmt::Display>(result: Result<T, E>) -> Option<T> {
    result.map_err(|error| assert!(!error.to_string().contains(char::is_control), "{:?}", error.to_string())).ok()
}

/// Asserts that every note can be printed.
struct PrintableNotes;

impl Observer for PrintableNotes {
    fn note(&mut self, text: &str) {
        assert!(!text.contains(char::is_control), "{text:?}");
    }
}

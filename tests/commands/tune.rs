//! Tunes: files parsed note by note, and the statements of the article in Eureka 16 on the sequences that Guy played.

use crate::support::{grundy, text};
use grundy::games::finite::{Game, GameSolver};
use grundy::theory::definition;
use grundy::tune::{HIGHEST, MAX_NOTES, Playing, file, note};
use midly::{Format, MetaMessage, MidiMessage, Smf, Timing, TrackEventKind};

fn defined(game: &str, count: usize) -> Vec<u16> {
    definition::values(&game.parse().unwrap(), count).unwrap()
}

/// The notes with their length in beats, beats per bar, microseconds per beat.
fn heard(bytes: &[u8]) -> (Vec<(u8, f64)>, u8, u32) {
    let smf = Smf::parse(bytes).unwrap();
    assert_eq!(smf.header.format, Format::SingleTrack);
    let Timing::Metrical(ticks) = smf.header.timing else { panic!("{:?}", smf.header) };
    let (mut now, mut on, mut notes, mut bar, mut beat) = (0, None, Vec::new(), 0, 0);
    let track = &smf.tracks[0];
    for event in track {
        now += event.delta.as_int();
        match event.kind {
            TrackEventKind::Midi { message: MidiMessage::NoteOn { key, vel }, .. } => {
                assert!(vel > 0 && on.is_none(), "one note at a time, and to be heard");
                on = Some((key, now));
            }
            TrackEventKind::Midi { message: MidiMessage::NoteOff { key, .. }, .. } => {
                let (sounding, since) = on.take().expect("a note that sounds");
                assert_eq!(sounding, key);
                notes.push((key.as_int(), f64::from(now - since) / f64::from(ticks.as_int())));
            }
            TrackEventKind::Meta(MetaMessage::TimeSignature(beats, quarter, _, _)) => {
                assert_eq!(quarter, 2, "quarter notes");
                bar = beats;
            }
            TrackEventKind::Meta(MetaMessage::Tempo(tempo)) => beat = tempo.as_int(),
            _ => {}
        }
    }
    assert!(on.is_none());
    assert_eq!(track.last().unwrap().kind, TrackEventKind::Meta(MetaMessage::EndOfTrack));
    (notes, bar, beat)
}

/// The white keys of a keyboard from middle C (60) upwards.
fn white_keys() -> Vec<u8> {
    let black = [1, 3, 6, 8, 10];
    (60..=127).filter(|key| !black.contains(&(key % 12))).collect()
}

#[test]
fn values_map_to_white_keys_from_middle_c_and_fold_by_octaves() {
    let keys = white_keys();
    assert_eq!(keys[..8], [60, 62, 64, 65, 67, 69, 71, 72]);
    assert_eq!(keys.len(), usize::from(HIGHEST) + 1);
    for value in 0..=u16::MAX {
        let key = note(value);
        match keys.get(usize::from(value)) {
            Some(&own) => assert_eq!(key, own, "{value}"),
            None => {
                assert!(key <= 127 && key > 115, "{value} is in the highest octave: {key}");
                assert_eq!(key % 12, note(value % 7) % 12, "{value} keeps the name of its note");
            }
        }
    }
}

#[test]
fn a_file_read_back_has_the_notes_of_the_values() {
    let values: Vec<u16> = (0..300).chain([65535, 0, 0, 40]).collect();
    let bytes = file("a tune", &values, Playing { tempo: 150, bar: 3 }).unwrap();
    let (notes, bar, beat) = heard(&bytes);
    assert_eq!(notes, values.iter().map(|&value| (note(value), 1.0)).collect::<Vec<_>>());
    assert_eq!((bar, beat), (3, 400_000));
    assert!(file("x", &vec![0; MAX_NOTES + 1], Playing { tempo: 150, bar: 3 }).is_err());
    for tempo in [0, 3, 60_000_001] {
        assert!(file("x", &[0], Playing { tempo, bar: 4 }).is_err(), "{tempo} beats a minute");
    }
    assert!(file("x", &[0], Playing { tempo: 4, bar: 4 }).is_ok());
}

#[test]
fn the_command_writes_grundys_game_to_300_and_the_waltz_of_6() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.mid");
    let name = path.to_str().unwrap();
    let tune = |arguments: &[&str]| {
        let output = grundy([&["tune", "-q", "-o", name], arguments].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        (heard(&std::fs::read(&path).unwrap()), text(&output.stdout))
    };
    let keys = white_keys();
    let expected = |game: &str, from: usize, to: usize| -> Vec<(u8, f64)> {
        defined(game, to)[from..].iter().map(|&value| (keys[usize::from(value)], 1.0)).collect()
    };
    let ((notes, bar, _), _) = tune(&[]);
    assert_eq!((notes, bar), (expected("grundy", 0, 301), 4));
    let ((notes, bar, beat), out) = tune(&[".6", "--tempo", "120", "--json"]);
    assert_eq!((notes, bar, beat), (expected(".6", 1, 301), 3, 500_000));
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    let json = serde_json::json!({"game": "0.6", "from": 1, "to": 301, "notes": 300, "folded": 0, "tempo": 120, "bar": 3,
        "file": name});
    assert_eq!(object, json);
    let ((notes, bar, _), out) = tune(&["kayles", "--range", "5..17", "--bar", "2"]);
    assert_eq!((notes, bar), (expected("kayles", 5, 17), 2));
    assert!(out.contains("12 notes"), "{out}");
    assert!(tune(&["--range", "0"]).1.contains(" 1 note of"), "one note is no plural");
}

#[test]
fn a_tune_is_written_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("none").join("t.mid");
    for (status, arguments) in [
        (1, vec!["tune", "-o", path.to_str().unwrap()]),
        (2, vec!["tune", ".G", "-o", path.to_str().unwrap()]),
        (2, vec!["tune", "kayles", "--range", "0..1048577", "-o", path.to_str().unwrap()]),
        (2, vec!["tune", "kayles", "--tempo", "3", "-o", path.to_str().unwrap()]),
        (2, vec!["tune", "kayles"]),
    ] {
        let output = grundy(&arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    std::fs::create_dir(dir.path().join("none")).unwrap();
    // A directory of this name makes the last step fail.
    std::fs::create_dir(&path).unwrap();
    let output = grundy(["tune", "-o", path.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(std::fs::read_dir(dir.path().join("none")).unwrap().count(), 1, "no unfinished file stays");
}

/// Games of rows as the article describes them: whether a move may take `taken` adjacent counters at place `at` of a
/// row. A move leaves two rows, perhaps empty, so a position is a list of rows.
struct Rows {
    may: fn(row: usize, taken: usize, at: usize) -> bool,
}

impl Game for Rows {
    type Position = Vec<usize>;

    fn options(&self, rows: Vec<usize>) -> impl Iterator<Item = Vec<usize>> {
        let [row] = rows[..] else { panic!("one row at a time: {rows:?}") };
        let all = (1..=2).flat_map(move |taken| (0..(row + 1).saturating_sub(taken)).map(move |at| (taken, at)));
        let allowed = all.filter(move |&(taken, at)| (self.may)(row, taken, at));
        allowed.map(move |(taken, at)| vec![at, row - at - taken])
    }

    fn components(&self, rows: Vec<usize>) -> Vec<Vec<usize>> {
        rows.into_iter().filter(|&row| row > 0).map(|row| vec![row]).collect()
    }
}

#[test]
fn rules_of_6_4_and_kayles_match_their_description_in_words() {
    type May = fn(usize, usize, usize) -> bool;
    let games: [(&str, May); 3] = [
        // "Any one counter can be removed, except a single counter standing on its own."
        (".6", |row, taken, _| taken == 1 && row > 1),
        // "Remove 1 counter not at the end of a row."
        (".4", |row, taken, at| taken == 1 && at > 0 && at + 1 < row),
        // "Remove 1 or 2 adjacent counters."
        ("kayles", |_, _, _| true),
    ];
    for (game, may) in games {
        let words = Rows { may };
        let mut solver = GameSolver::new(&words, 1 << 20);
        let found: Vec<u16> = (0..301).map(|row| solver.value(vec![row]).unwrap()).collect();
        assert_eq!(found, defined(game, 301), "{game}");
    }
}

/// The least shift p below 60 under which most values repeat, and whether all do.
fn nearest_period(values: &[u16]) -> (usize, bool) {
    let same = |p: usize| values.windows(p + 1).filter(|w| w[0] == w[p]).count() as f64 / (values.len() - p) as f64;
    let best = (1..60).rev().max_by(|&a, &b| same(a).total_cmp(&same(b))).unwrap();
    (best, same(best) == 1.0)
}

#[test]
fn grundys_game_repeats_3_and_game_6_repeats_26_only_with_jumps() {
    let (grundy, officers) = (defined("grundy", 301), defined(".6", 301));
    for from in [0, 100, 150] {
        assert_eq!(nearest_period(&grundy[from..]), (3, false), "Grundy's game from {from} to 300");
        assert_eq!(nearest_period(&officers[from..]), (26, false), ".6 from {from} to 300");
    }
}

#[test]
fn the_two_curious_exceptions_have_exact_periods_34_and_12() {
    for (game, period, preperiod) in [(".4", 34, 54), ("kayles", 12, 71)] {
        let values = defined(game, 1000);
        let repeats = |p: usize, from: usize| values[from..values.len() - p] == values[from + p..];
        assert!(repeats(period, preperiod) && !repeats(period, preperiod - 1), "{game}");
        assert!((1..period).all(|p| !repeats(p, preperiod)), "{game}: no smaller one");
        assert_eq!(nearest_period(&values[preperiod..]), (period, true), "{game}");
    }
}

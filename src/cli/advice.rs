//! Advice on errors, in the words of the command line: the library states what is wrong and what helps, as data; this
//! module names the commands and options.

use super::layout::size;
use grundy::error::{Error, Remedy, RollBackTo};
use grundy::theory::rule::Rule;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Returns the text of an error, with the advice that belongs to it.
pub(crate) fn message(error: &Error) -> String {
    let text = statement(error);
    match error.remedy().and_then(|remedy| advice(&remedy)) {
        Some(advice) => format!("{text}; {advice}"),
        None => text,
    }
}

/// Returns the text of an error of the command line, with the advice on the error of the system that caused it, if any.
pub(super) fn chain(error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    let system = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>());
    match system.and_then(Remedy::of_system).and_then(|remedy| advice(&remedy)) {
        Some(advice) => format!("{text}; {advice}"),
        None => text,
    }
}

/// Parses the name of a game in an argument; the error ends with the advice that belongs to it.
pub(super) fn rule(text: &str) -> Result<Rule, String> {
    text.parse().map_err(|error| {
        let dir = Path::new(text);
        if dir.is_dir() {
            let what = format!("'{text}' is a directory, and a game is expected");
            let is_run = dir.join(grundy::checkpoint::journal::NAME).exists();
            let advice = format!(
                "; 'grundy run --dir {0}' continues the run, 'grundy status {0}' describes it",
                quoted_path(dir)
            );
            return if is_run { what + &advice } else { what };
        }
        message(&error)
    })
}

/// Returns what is wrong: the text of the library, except where the user knows the cause as an option.
fn statement(error: &Error) -> String {
    match error {
        Error::Keep { path, keep, why, .. } => format!("{}: --keep {keep} is too little: {why}", path.display()),
        Error::Discarded { from, to, hole, heap } => {
            let purpose = heap.map_or_else(String::new, |n| format!(", needed for the options of n = {n},"));
            format!(
                "the values {from}..{to}{purpose} cannot be read: the run was limited by --keep and has freed {}..{}",
                hole.0, hole.1
            )
        }
        Error::Memory { what, bytes } => {
            format!("{what} needs {} of memory, more than this process can allocate", size(*bytes))
        }
        Error::NoHoles { path, why } => format!(
            "checking the file system of {}: this file system cannot free parts of a file, which --keep requires \
             ({why})",
            path.display()
        ),
        Error::NoRoom { path, needed, available, fits, .. } => format!(
            "{}: no room: {} are still to be written, {} are free, {} are missing{}",
            path.display(),
            size(*needed),
            size(*available),
            size(needed.saturating_sub(*available)),
            // The disk filled up during the run, or has no room for a further value.
            if fits.is_none() {
                "; make room, then repeat the command, which continues after what was committed"
            } else {
                ""
            }
        ),
        other => other.to_string(),
    }
}

/// Adds to [`Error::Range`] the command that computes more values of the run in `dir`; returns other errors unchanged.
pub(super) fn of_run(error: Error, dir: &Path) -> anyhow::Error {
    match error {
        Error::Range { to, .. } => {
            anyhow::anyhow!("{error}; '{} --to {to}' computes more", run(None, dir))
        }
        other => other.into(),
    }
}

/// Returns the advice for a remedy; `None` for a remedy of a later library that this command line does not know.
fn advice(remedy: &Remedy) -> Option<String> {
    in_the_request(remedy).or_else(|| in_a_run(remedy)).or_else(|| in_a_survey(remedy)).or_else(|| of_units(remedy))
}

/// Returns the advice for remedies that change the request or its surroundings.
fn in_the_request(remedy: &Remedy) -> Option<String> {
    let text = match remedy {
        Remedy::NameGame => {
            "give a code such as '.77', '4.3' or '.8F', 'grundy:d=2', 'sub:1,4', or a name of 'grundy games'"
        }
        Remedy::WritePoint { codes } => return Some(format!("did you mean '{}'?", codes.join("' or '"))),
        Remedy::ListGames => "'grundy games' lists the names of games",
        Remedy::ListKernels => "'grundy cpu' lists the kernels that it can run",
        Remedy::RaisePositions => "take a smaller position, or raise the bound with --positions",
        Remedy::BoundPositions => {
            "take a smaller position, or replace both limits by a number of positions, however large, with --positions"
        }
        Remedy::OtherLevel => "'--level recompute' and '--level definition' check any game",
        Remedy::OtherValues => "choose other values, or compute these again in another directory",
        Remedy::KeepAll => "compute the run in another directory, without --keep",
        Remedy::OtherDirectory => "choose another directory with --dir",
        Remedy::OtherFileSystem => "omit --keep, or choose a directory on another file system",
        Remedy::Wait => "wait for it or stop it, then try again",
        Remedy::TestMemory => "the same command resumes from there. If this happens again, test the memory",
        Remedy::Repeat => {
            "repeat the command. If it fails at the same values again, compute the run again in another directory"
        }
        Remedy::ReadAgain => "read it again",
        Remedy::CheckDisk => "check the disk",
        Remedy::RaiseFileSize => {
            "raise the limit on the size of files (ulimit -f), or choose a file system for larger files"
        }
        Remedy::KeepMore { keep } => return Some(format!("repeat the same command with --keep {keep} or more")),
        Remedy::KeepMoreElsewhere { keep } => {
            return Some(format!(
                "the committed values are correct, but this run cannot continue; compute it in another directory with \
                 --keep {keep}"
            ));
        }
        Remedy::NeedLess { to: Some(0), keep: None } => "choose a directory on another file system with --dir",
        Remedy::NeedLess { to, keep } => {
            let to = to.map(|to| format!("at most --to {to} fits"));
            let keep = keep.map(|keep| format!("with --keep {keep} the run would fit"));
            return Some(to.into_iter().chain(keep).collect::<Vec<_>>().join("; "));
        }
        _ => return None,
    };
    Some(text.to_owned())
}

/// Returns the advice for remedies that repair a run directory or leave it.
fn in_a_run(remedy: &Remedy) -> Option<String> {
    Some(match remedy {
        Remedy::Verify => "'grundy verify' checks what is left".into(),
        Remedy::ExportWithOlderProgram => "export its values with the program that wrote it ('grundy export'), or \
                                           compute the run again in another directory"
            .into(),
        Remedy::CorrectCounters { dir } => {
            format!("'{}' records the counters of the table and keeps all values", roll_back(None, dir))
        }
        Remedy::Resume { dir } => format!("'{}' drops it", run(None, dir)),
        Remedy::ResumeWithGame { dir } => format!("name it: '{}'", run(Some("GAME"), dir)),
        Remedy::Repair { dir } => {
            let (again, back) = (run(None, dir), roll_back(None, dir));
            format!(
                "'{again}' recomputes and restores altered values and escapes, and continues the run; where it cannot, it \
                 states how many values '{back}' keeps"
            )
        }
        Remedy::RollBack { dir, to: to @ RollBackTo::BeforeDiscarded } => {
            format!("restore the file from a copy; or '{}' {}", roll_back(None, dir), rolled_back_to(*to)?)
        }
        Remedy::RollBack { dir, to } => format!("'{}' {}", roll_back(None, dir), rolled_back_to(*to)?),
        Remedy::RewriteHeader { dir } => {
            format!("'{}' rewrites it and keeps the values that agree with the journal", roll_back(None, dir))
        }
        Remedy::RestoreFile { dir } => format!(
            "restore the file from a copy, or return to the values that the files support with '{}'",
            roll_back(None, dir)
        ),
        Remedy::RestoreJournal { dir, game } => format!(
            "restore it from a copy, choose another directory with --dir, or set the tables aside and start again with \
             '{}'",
            roll_back(Some(game.as_deref().unwrap_or("GAME")), dir)
        ),
        Remedy::SetAside { dir, game } => {
            format!("'{}' sets them aside and starts again", roll_back(Some(game), dir))
        }
        Remedy::StartAgain { dir, game } => format!(
            "'{}' keeps the values of the records after the damage, if these can follow each other; otherwise it moves \
             the journal and the tables to quarantine files and starts again",
            roll_back(Some(game.as_deref().unwrap_or("GAME")), dir)
        ),
        _ => return None,
    })
}

/// Returns the advice for remedies of a survey.
fn in_a_survey(remedy: &Remedy) -> Option<String> {
    Some(match remedy {
        Remedy::RemoveRecord => {
            "if 'grundy survey' wrote this file, remove it and repeat the command, else move it to another directory"
                .into()
        }
        Remedy::ExamineAgain => "examine the game again in a new directory, and remove the wrong record".into(),
        Remedy::RemoveValues => {
            "remove the file and repeat the command ('grundy survey' or 'grundy unit'), which computes them again"
                .into()
        }
        Remedy::RemovePlan => "remove it and repeat the survey's command".into(),
        Remedy::EmptyDirectory => "choose an empty or a new one".into(),
        Remedy::FewerDirectories => "read fewer directories together".into(),
        Remedy::SurveyDirectory => "name a directory that 'grundy survey' or 'grundy units … --in DIR' wrote".into(),
        Remedy::DivideList => "divide the list".into(),
        Remedy::DirectoryForShard { shard } => format!("choose another directory for shard {shard}"),
        Remedy::MoveRecord => "move it to another directory, or choose another directory for the survey".into(),
        Remedy::RaiseLimit { seconds: Some(seconds) } => {
            format!("use --time-limit {seconds} or more, or another directory")
        }
        Remedy::RaiseLimit { seconds: None } => "omit --time-limit, or choose another directory".into(),
        Remedy::RaiseTo { to } => format!("use --to {to} or more, or another directory"),
        _ => return None,
    })
}

/// Returns the advice for remedies of work units.
fn of_units(remedy: &Remedy) -> Option<String> {
    let text = match remedy {
        Remedy::WriteUnitsPlan => {
            "write the plan first, with 'grundy units survey … --in DIR' or 'grundy units verify … --in DIR'"
        }
        Remedy::DoUnitAlone => {
            "repeat the same command; where the file system keeps no locks between machines, give each machine a \
             directory of its own"
        }
        Remedy::NameUnit => "'grundy units survey --digits K --to N --parts P' lists the names of units",
        Remedy::ListUnits => "'grundy units --missing DIR' lists the units that are left",
        Remedy::SamePlan => "name a directory with the same plan, or an empty or new one",
        Remedy::NameRun => "name the directory of the run with --run",
        Remedy::VerifyWithoutUnits => "'grundy verify' checks the other values",
        Remedy::RemoveResult => "if 'grundy unit' wrote this file, remove it and do the unit again, else move it away",
        Remedy::RemoveUnitsPlan => {
            "restore it from a copy or from another worker's directory; or remove it and repeat the command 'grundy units … \
             --in DIR', which keeps the results if the games, or the values of the run, are the same"
        }
        Remedy::DoUnitAgain => {
            "move both results away, do the unit again ('grundy unit'), and keep the one that agrees with it"
        }
        _ => return None,
    };
    Some(text.to_owned())
}

/// Returns what a rollback to this state does; `None` for a state of a later library.
fn rolled_back_to(to: RollBackTo) -> Option<String> {
    Some(match to {
        RollBackTo::BeforeDiscarded => {
            "returns to the values before the freed values, and drops those after them".into()
        }
        RollBackTo::LastGoodRecord { values } => format!(
            "copies the damaged part of the journal to a quarantine file and keeps the records after it if they can \
             follow; otherwise the run returns to the last good record before it (at most {values} values)"
        ),
        RollBackTo::Before { .. } => "goes back before it".into(),
        RollBackTo::Values { values } => format!("goes back to {values} values"),
        _ => return None,
    })
}

/// Returns the command that resumes the run in a directory.
fn run(game: Option<&str>, dir: &Path) -> String {
    let game = game.map_or_else(String::new, |game| format!(" {}", quoted(game)));
    format!("grundy run{game} --dir {}", quoted_path(dir))
}

/// Returns the command that rolls the run in a directory back.
fn roll_back(game: Option<&str>, dir: &Path) -> String {
    format!("{} --rollback", run(game, dir))
}

/// Returns a path as a word for a shell that is not taken for an option.
pub(super) fn quoted_path(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    if bytes.starts_with(b"-") && bytes != b"-" { quoted_bytes(&[b"./", bytes].concat()) } else { quoted_bytes(bytes) }
}

/// Returns a word, quoted for a shell where it needs quotes.
pub(super) fn quoted(word: &str) -> String {
    quoted_bytes(word.as_bytes())
}

/// Returns a word, quoted for a shell where it needs quotes. A word that cannot be printed is written as `$'…'`, which
/// bash, zsh and ksh read.
fn quoted_bytes(word: &[u8]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-=:+,@%".contains(c);
    match std::str::from_utf8(word) {
        Ok(text) if !text.is_empty() && text.chars().all(plain) => text.into(),
        Ok(text) if !text.contains(char::is_control) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => format!("$'{}'", word.iter().map(|&byte| escaped(byte)).collect::<String>()),
    }
}

/// A byte within `$'…'`.
fn escaped(byte: u8) -> String {
    match byte {
        b'\'' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use grundy::error::{Damage, KeepReason};

    #[test]
    fn advice_names_the_command_with_the_directory_quoted_for_a_shell() {
        let path = Path::new("my runs/it's").join("values.npy");
        let damage = Damage::Header { descr: "<u2" };
        assert_eq!(
            message(&Error::Damage { path, offset: 7, damage }),
            "damage: my runs/it's/values.npy at byte 7: not the header of a one-dimensional array of <u2; 'grundy run \
             --dir 'my runs/it'\\''s' --rollback' rewrites it and keeps the values that agree with the journal"
        );
    }

    #[test]
    fn words_that_cannot_be_printed_are_quoted_byte_by_byte() {
        for (word, expected) in [
            ("runs/0.77", "runs/0.77"),
            ("", "''"),
            ("it's ä", r"'it'\''s ä'"),
            ("tab\there", r"$'tab\x09here'"),
            ("it's\n\\", r"$'it\'s\x0a\\'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
        let path = Path::new(std::ffi::OsStr::from_bytes(b"-bad\xff"));
        assert_eq!(quoted_path(path), r"$'./-bad\xff'");
    }

    #[test]
    fn unknown_game_in_an_argument_ends_with_advice() {
        assert_eq!(
            rule("xyzzy").unwrap_err(),
            "'xyzzy' is not a game; give a code such as '.77', '4.3' or '.8F', 'grundy:d=2', 'sub:1,4', or a name of \
             'grundy games'"
        );
        assert!(rule("").unwrap_err().ends_with("; 'grundy games' lists the names of games"));
        assert_eq!(rule("kayle").unwrap_err(), "'kayle' is not a game; did you mean 'kayles'?");
        assert!(rule("77").unwrap_err().ends_with("before the point; did you mean '.77'?"));
        assert!(rule("0,77").unwrap_err().ends_with("the point of a code; did you mean '0.77'?"));
        assert!(rule("43").unwrap_err().ends_with("did you mean '4.3' or '.43'?"));
        assert!(rule("077").unwrap_err().ends_with("the point of a code; did you mean '0.77' or '.077'?"));
        for number in ["1e6", "1000000"] {
            assert!(!rule(number).unwrap_err().contains("did you mean"), "{number}");
        }
    }

    #[test]
    fn advice_names_the_options_of_the_command_line() {
        let why = KeepReason::Lookback { last_rare: 9, needed: 100 };
        assert_eq!(
            message(&Error::Keep { path: "runs/x".into(), keep: 5, needed: Some(100), why }),
            "runs/x: --keep 5 is too little: with the last rare position at 9, the solver needs the last 100 values; \
             repeat the same command with --keep 100 or more"
        );
        assert_eq!(
            message(&Error::Discarded { from: 5, to: 7, hole: (6, 9), heap: Some(8) }),
            "the values 5..7, needed for the options of n = 8, cannot be read: the run was limited by --keep and has \
             freed 6..9; choose other values, or compute these again in another directory"
        );
        assert_eq!(
            message(&Error::NoHoles { path: "x".into(), why: "no".into() }),
            "checking the file system of x: this file system cannot free parts of a file, which --keep requires (no); \
             omit --keep, or choose a directory on another file system"
        );
        assert_eq!(
            message(&Error::Memory { what: "the sequence", bytes: 8 << 30 }),
            "the sequence needs 8.59 GB of memory, more than this process can allocate"
        );
        let room = |fits, keep| Error::NoRoom { path: "x".into(), needed: 9_000, available: 4_000, fits, keep };
        let text = "x: no room: 9 kB are still to be written, 4 kB are free, 5 kB are missing";
        assert_eq!(
            message(&room(None, None)),
            format!("{text}; make room, then repeat the command, which continues after what was committed")
        );
        let range = Error::Range { from: 5, to: 7, count: 6 };
        assert_eq!(
            of_run(range, Path::new("a b")).to_string(),
            "the values 5..7 are out of range: only 6 values (0..6) exist; 'grundy run --dir 'a b' --to 7' computes more"
        );
        assert_eq!(
            message(&room(Some(3), Some(2))),
            format!("{text}; at most --to 3 fits; with --keep 2 the run would fit")
        );
        assert_eq!(
            message(&room(Some(0), None)),
            format!("{text}; choose a directory on another file system with --dir")
        );
    }
}

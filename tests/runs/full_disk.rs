//! Full disks and file size limits: the run stops with a message, and resumes when space is available.
//!
//! Needs root for the disks (tmpfs); the tests are skipped without it.

use crate::support::mount::Mount;
use crate::support::whole::{Whole, length, recorded};
use crate::support::{Random, Tally, cases, count, grundy, run, run_well, same_run, start, text, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

const MEGA: u64 = 1 << 20;

/// A file system of `bytes` in memory; `None`, with a message, where none can be mounted.
fn mounted(bytes: u64) -> Option<Mount> {
    let mount = Mount::tmpfs(bytes);
    mount.map_err(|why| println!("skipped: no file system could be mounted ({why})")).ok()
}

/// Checks that the run stopped, that its message states how many bytes are missing, and that the committed values are
/// correct.
fn stopped(output: &Output, dir: &Path, what: &str) {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{what}: {:?}, {stderr}", output.status);
    assert!(
        stderr.contains("no room: ") && stderr.contains("are missing") && !stderr.contains("panicked"),
        "{what}: {stderr}"
    );
    let verified = grundy(["verify"]).arg(dir).output().unwrap();
    // There is no run if the disk had no space for its first record.
    let expected = if length(&dir.join("journal.jsonl")) >= 4096 { 0 } else { 1 };
    assert_eq!(verified.status.code(), Some(expected), "{what}: {}", text(&verified.stderr));
}

/// Fills the disk except for `but` bytes.
fn fill(path: &Path, but: u64) {
    let free = grundy::storage::Dir::at(path).free_space().unwrap();
    let mut file = OpenOptions::new().append(true).create(true).open(path.join("filler")).unwrap();
    for _ in 0..free.saturating_sub(but) / 4096 {
        match file.write_all(&[1; 4096]) {
            Err(error) if error.kind() == std::io::ErrorKind::StorageFull => break, // the run took some meanwhile
            written => written.unwrap(),
        }
    }
}

/// Checks that the run resumes to its end.
fn resumes(whole: &Whole, dir: &Path, what: &str) {
    let output = whole.command(dir, 0).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{what}: {}", text(&output.stderr));
    assert_eq!(grundy(["verify"]).arg(dir).output().unwrap().status.code(), Some(0), "{what}");
    same_run(dir, &whole.dir());
}

/// What the run writes when the disk is full.
#[derive(Clone, Copy, Debug)]
enum Full {
    /// The disk is small from the start, so the first files do not fit.
    Small,
    /// Another file takes the space during the run, except for some pages.
    Filled,
    /// Another file takes all space that the values of the last commit do not need, so escapes, record or headers do
    /// not fit.
    Exactly,
}

#[test]
fn run_stops_on_a_full_disk_and_resumes_when_space_is_available() {
    let random = &mut Random::new("full disk");
    let tally = Tally::begin("full disk");
    let sizes = cases(3, 60);
    if let Err(why) = Mount::tmpfs(MEGA) {
        return tally.end(0, &format!("skipped: no file system could be mounted ({why})"));
    }
    let wholes = [(".106", "u8", 24_000_000), ("kayles", "u16", 12_000_000), ("0.6", "u8", 400_000)]
        .map(|(game, width, most)| Whole::lasting(game, width, Duration::from_millis(1500), most));
    let (mut some, mut none, mut ended) = (0, 0, 0);
    for case in 0..sizes {
        let whole = &wholes[usize::try_from(random.below(3)).unwrap()];
        let bytes = length(&whole.dir().join("values.npy")) + length(&whole.dir().join("escapes.npy"));
        // Each kind in turn.
        let full = [Full::Small, Full::Filled, Full::Exactly][usize::try_from(case % 3).unwrap()];
        let size = match full {
            Full::Small => 4096 * (4 + random.below(bytes / 4096)),
            _ => bytes + 4 * MEGA,
        };
        let what = format!("{} to {}, {size} bytes, {full:?}", whole.game, whole.to);
        println!("{what}");
        let mount = Mount::tmpfs(size).unwrap();
        let dir = mount.path().join("run");
        let output = match full {
            // Without `--to`, because the run refuses a disk that is too small for a stated end.
            Full::Small => grundy(["run", whole.game, "--width", whole.width, "--dir"]).arg(&dir).output().unwrap(),
            Full::Filled => {
                let mut child = start(&mut whole.command(&dir, 0));
                wait_until("something is committed", || recorded(&dir) > 0 || child.try_wait().unwrap().is_some());
                fill(&mount.path(), random.below(4 * 4096));
                // Makes the run commit now.
                let _ = kill_process(Pid::from_child(&child), Signal::TERM);
                child.wait_with_output().unwrap()
            }
            Full::Exactly => {
                let child = start(&mut whole.command(&dir, 0));
                wait_until("the table is there", || length(&dir.join("values.npy")) >= 4096);
                let left = bytes.saturating_sub(length(&dir.join("values.npy")));
                fill(&mount.path(), left + 4096 * random.below(3));
                child.wait_with_output().unwrap()
            }
        };
        // The last commit may have found enough space.
        if matches!(full, Full::Small) || !matches!(output.status.code(), Some(0 | 130)) {
            stopped(&output, &dir, &what);
            match count(&dir) {
                0 => none += 1,
                _ => some += 1,
            }
        } else {
            ended += 1;
        }
        mount.resize(3 * bytes + 8 * MEGA);
        let _ = std::fs::remove_file(mount.path().join("filler"));
        resumes(whole, &dir, &what);
    }
    tally.end(
        sizes,
        &format!(
            "{some} stopped after a commit, {none} before the first, {ended} had just room; the same bytes when it grew"
        ),
    );
}

/// `ulimit -f` counts blocks of 512 or 1024 bytes, depending on the shell.
#[test]
fn file_size_limit_is_an_error_and_not_a_fatal_signal() {
    let random = &mut Random::new("file size limit");
    let tally = Tally::begin("file size limit");
    let limits = cases(4, 60);
    let whole = Whole::lasting(".106", "u8", Duration::from_millis(1500), 10_000_000);
    for _ in 0..limits {
        let dirs = tempfile::tempdir().unwrap();
        let dir = dirs.path().join("run");
        let blocks = 16 + random.below(length(&whole.dir().join("values.npy")) / 1024 - 16);
        let limited = format!("ulimit -f {blocks}; exec \"$0\" run .106 --width u8 --dir \"$1\"");
        let output =
            Command::new("sh").args(["-c", &limited, env!("CARGO_BIN_EXE_grundy")]).arg(&dir).output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{blocks} blocks: {:?}, {stderr}", output.status);
        assert!(stderr.contains("values.npy") && stderr.contains("ulimit -f"), "{blocks} blocks: {stderr}");
        if count(&dir) > 0 {
            assert_eq!(grundy(["verify"]).arg(&dir).output().unwrap().status.code(), Some(0), "{blocks} blocks");
        }
        if count(&dir) <= whole.to {
            resumes(&whole, &dir, &format!("{blocks} blocks"));
        }
    }
    tally.end(limits, "exit status 1, no signal; the same bytes without the limit");
}

#[test]
fn disk_full_before_the_first_record_needs_space_but_no_rollback() {
    let tally = Tally::begin("disk full in the first commit");
    let mount = match Mount::tmpfs(1 << 20) {
        Ok(mount) => mount,
        Err(why) => return tally.end(0, &format!("skipped: no file system could be mounted ({why})")),
    };
    let dir = mount.path().join("run");
    assert_eq!(run("0.106", &dir, &["--width", "u8"]).status.code(), Some(1));
    assert_eq!(count(&dir), 0);
    mount.resize(20 << 20);
    run_well("0.106", &dir, &["--to", "100000", "--width", "u8"]);
    tally.end(1, "resumed when the disk grew");
}

/// The first values decide the width. Two bytes per value need 2.4 MB instead of 1.7 MB, and the disk has 2 MiB.
#[test]
fn run_that_does_not_fit_the_disk_leaves_no_file() {
    let Some(mount) = mounted(2 * MEGA) else { return };
    let dir = mount.path().join("run");
    let output = run("0.6", &dir, &["--to", "700000"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("--to"), "{}", text(&output.stderr));
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
    run_well("0.6", &dir, &["--to", "400000"]);
}

/// After a rollback, the file still holds the discarded values and a copy of the damaged bytes; the run overwrites the
/// former.
#[test]
fn run_after_a_rollback_reuses_the_space_of_its_files() {
    let Some(mount) = mounted(15 * MEGA / 2) else { return };
    let dir = mount.path().join("run");
    run_well(".106", &dir, &["--to", "3000000", "--width", "u8"]);
    let table = OpenOptions::new().write(true).open(dir.join("values.npy")).unwrap();
    table.write_all_at(&[255], 4096 + 1000).unwrap();
    run_well(".106", &dir, &["--to", "1", "--rollback"]);
    assert!(count(&dir) <= 1000, "{}", count(&dir));
    run_well(".106", &dir, &["--to", "3000000"]);
    assert_eq!(count(&dir), 3_000_000);
    let more = run(".106", &dir, &["--to", "9000000"]);
    assert_eq!(more.status.code(), Some(1), "{}", text(&more.stderr));
}

/// A process that a full disk ended can leave values without a record that fill the disk.
#[test]
fn space_of_values_without_a_record_serves_the_next_record() {
    let Some(mount) = mounted(4 * MEGA) else { return };
    let dir = mount.path().join("run");
    run_well(".106", &dir, &["--to", "1000000", "--width", "u8"]);
    let mut table = OpenOptions::new().append(true).open(dir.join("values.npy")).unwrap();
    while table.write_all(&[1; 4096]).is_ok() {}
    assert_eq!(grundy::storage::Dir::at(&dir).free_space().unwrap(), 0);
    run_well(".106", &dir, &["--to", "2000000"]);
    assert_eq!(count(&dir), 2_000_000);
}

/// The names of the files of a directory that are not finished, except for an empty file that serves as a lock.
fn unfinished(dir: &Path) -> Vec<String> {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let names = files.filter(|file| length(file) > 0 || !file.ends_with("units.plan.part"));
    names.map(|file| file.display().to_string()).filter(|name| name.ends_with(".part")).collect()
}

#[test]
fn commands_on_a_full_disk_leave_nothing_that_prevents_their_repetition() {
    let Some(mount) = mounted(16 * MEGA) else { return };
    let at = |name: &str| mount.path().join(name).to_str().unwrap().to_owned();
    run_well("grundy", &mount.path().join("run"), &["--to", "300000"]);
    std::fs::write(at("games"), "kayles\n.07\n.137\n.6\n.104\n").unwrap();
    let (run, published, survey, units, games) = (at("run"), at("published"), at("survey"), at("units"), at("games"));
    let commands: [(&str, Vec<&str>); 3] = [
        ("published", vec!["publish", &run, "-o", &published]),
        ("survey", vec!["survey", &games, "--to", "2^13", "-o", &survey]),
        ("units", vec!["units", "survey", &games, "--to", "2^13", "--parts", "4", "--in", &units]),
    ];
    for (output, arguments) in &commands {
        for pages in 0..8 {
            fill(&mount.path(), 4096 * pages);
            let refused = grundy(["-q"]).args(arguments).output().unwrap();
            std::fs::remove_file(at("filler")).unwrap();
            if refused.status.success() {
                break;
            }
            let stderr = text(&refused.stderr);
            assert_eq!(refused.status.code(), Some(1), "{output}, {pages} pages: {stderr}");
            if let Ok(there) = std::fs::read_dir(at(output)) {
                assert_eq!(unfinished(&mount.path().join(output)), [""; 0], "{output}, {pages} pages");
                assert!(*output != "published" || there.count() == 0, "{pages} pages: {stderr}");
            }
        }
        let repeated = grundy(["-q"]).args(arguments).output().unwrap();
        // `publish` may have succeeded already, and refuses its complete result.
        let is_complete = *output == "published" && mount.path().join("published/ro-crate-metadata.json").exists();
        assert!(repeated.status.success() || is_complete, "{output}: {}", text(&repeated.stderr));
    }
}

/// A resume that lacks even the room for one value must not advise the number of values that the run has.
#[test]
fn resume_without_any_room_advises_to_make_room() {
    let Some(mount) = mounted(4 * MEGA) else { return };
    let dir = mount.path().join("run");
    run_well(".106", &dir, &["--to", "1000000", "--width", "u8"]);
    fill(&mount.path(), 0);
    let refused = run(".106", &dir, &["--to", "2000000"]);
    let stderr = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("make room") && !stderr.contains("fits"), "{stderr}");
    let refused = run(".106", &mount.path().join("new"), &["--to", "2000000"]);
    let stderr = text(&refused.stderr);
    assert!(refused.status.code() == Some(1) && stderr.contains("on another file system"), "{stderr}");
}

#[test]
fn surveys_and_units_on_a_full_disk_say_how_much_is_missing() {
    let Some(mount) = mounted(MEGA) else { return };
    let (survey, units) = (mount.path().join("survey"), mount.path().join("units"));
    let surveyed = || grundy(["survey", "--digits", "1", "--to", "1000", "-o"]).arg(&survey).output().unwrap();
    assert!(surveyed().status.success());
    let mut plan = grundy(["units", "survey", "--digits", "1", "--to", "1000", "--parts", "2", "--in"]);
    let planned = text(&plan.arg(&units).output().unwrap().stdout);
    let name = planned.lines().next().expect("the plan has two units").to_owned();
    let unit = || grundy(["unit", &name, "--in"]).arg(&units).output().unwrap();
    std::fs::remove_file(survey.join("0.7.json")).unwrap();
    fill(&mount.path(), 0);
    for output in [surveyed(), unit()] {
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("no room: ") && stderr.contains("make room"), "{stderr}");
    }
    std::fs::remove_file(mount.path().join("filler")).unwrap();
    for output in [surveyed(), unit()] {
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
}

/// The journal and the escapes have already taken a part of what a new run reserves for them.
#[test]
fn a_run_that_fits_still_fits_when_it_is_resumed() {
    let Some(mount) = mounted(8 * MEGA) else { return };
    let dir = mount.path().join("run");
    let refused = text(&run("grundy", &dir, &["--to", "1e9"]).stderr);
    let (_, advice) = refused.split_once("at most --to ").unwrap_or_else(|| panic!("{refused}"));
    let to: u64 = advice.split(' ').next().unwrap().parse().unwrap();
    let part = (to / 2).to_string();
    run_well("grundy", &dir, &["--to", &part]);
    run_well("grundy", &dir, &["--to", &to.to_string()]);
}

//! Files that commands write: which files they never overwrite, and what remains of a file that cannot be completed.

use crate::support::mount::Mount;
use crate::support::{fails, grundy, output_of, reply, run_well, stdout_of, text};
use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// A directory with a run of Grundy's game in `run`.
struct Place {
    dirs: tempfile::TempDir,
}

impl Place {
    fn new(to: &str) -> Place {
        let place = Place { dirs: tempfile::tempdir().unwrap() };
        run_well("grundy", Path::new(&place.run()), &["--to", to]);
        place
    }

    fn path(&self, name: &str) -> String {
        self.dirs.path().join(name).to_str().unwrap().to_owned()
    }

    fn run(&self) -> String {
        self.path("run")
    }

    /// `grundy export RUN --format FORMAT -o FILE`
    fn export(&self, format: &str, file: &str) -> Output {
        output_of(&["export", &self.run(), "--format", format, "-o", file])
    }

    /// Stdout of an export.
    fn exported(&self, format: &str) -> Vec<u8> {
        output_of(&["-q", "export", &self.run(), "--format", format]).stdout
    }

    /// Names in the directory of the place.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.dirs.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// Names, inodes and bytes of all files in a directory.
fn state(dir: &Path) -> BTreeMap<PathBuf, (u64, Vec<u8>)> {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    files.map(|file| (file.clone(), (file.metadata().unwrap().ino(), std::fs::read(&file).unwrap()))).collect()
}

fn well(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

fn mode(file: &str) -> u32 {
    std::fs::metadata(file).unwrap().mode() & 0o7777
}

#[test]
fn no_output_is_written_to_or_among_the_files_of_a_run() {
    let place = Place::new("2000");
    let run = &place.run();
    let before = state(Path::new(run));
    let survey = place.path("survey");
    stdout_of(&["-q", "survey", "--digits", "1", "--to", "64", "-o", &survey]);
    let link = |name: &str, to: &str| {
        symlink(to, place.path(name)).unwrap();
        place.path(name)
    };
    std::fs::hard_link(format!("{run}/values.npy"), place.path("hard")).unwrap();
    let mut targets: Vec<String> = ["values.npy", "escapes.npy", "journal.jsonl", "new.txt", "../run/values.npy"]
        .map(|n| format!("{run}/{n}"))
        .into();
    targets.extend([link("soft", &format!("{run}/values.npy")), link("none", &format!("{run}/new.txt"))]);
    targets.push(format!("{}/values.npy", link("dir", run)));
    std::fs::create_dir(format!("{run}/within")).unwrap();
    targets.push(format!("{run}/within/new.txt"));
    for target in &targets {
        for format in ["bfile", "csv", "npy", "jsonl", "parquet"] {
            fails(1, &["export", run, "--format", format, "-o", target], &["writing"]);
        }
        fails(1, &["find", run, "--zeros", "-o", target], &["writing"]);
        fails(1, &["tune", "-o", target], &["writing"]);
        fails(1, &["-q", "period", "kayles", "--certificate", target], &["writing"]);
        fails(1, &["-q", "period", "kayles", "--exceptions", target], &["writing"]);
        fails(1, &["merge", &survey, "-o", target], &["writing"]);
    }
    fails(1, &["export", run, "--format", "npy", "-o", &place.path("hard")], &["a file of the run"]);
    fails(1, &["find", run, "--zeros", "-o", &place.path("hard")], &["a file of the run"]);
    for dir in [run.as_str(), &place.path("dir"), &format!("{run}/within"), &format!("{run}/within/new")] {
        fails(1, &["-q", "survey", "--digits", "1", "-o", dir], &["is a run directory"]);
        fails(1, &["generate", "man", "-o", dir], &["is a run directory"]);
    }
    std::fs::remove_dir(format!("{run}/within")).unwrap(); // it is empty
    assert!(state(Path::new(run)) == before);
    assert_eq!(output_of(&["-q", "verify", run]).status.code(), Some(0));
}

#[test]
fn directories_and_block_devices_are_refused_as_outputs() {
    let place = Place::new("1000");
    let run = &place.run();
    let directory = place.path("directory");
    std::fs::create_dir(&directory).unwrap();
    fails(1, &["export", run, "--format", "csv", "-o", &directory], &["this is a directory"]);
    fails(1, &["-q", "period", "kayles", "--certificate", &directory], &["this is a directory"]);
    fails(1, &["export", run, "--format", "csv", "-o", &place.path("new/")], &["not the name of a file"]);
    // An unused loop device; every write to it fails.
    let block = place.path("block");
    match Command::new("mknod").args([&block, "b", "7", "1048575"]).output() {
        Ok(created) if created.status.success() => fails(1, &["tune", "-o", &block], &["this is a block device"]),
        _ => println!("skipped: only root can make the node of a block device"),
    }
}

#[test]
fn existing_files_and_links_named_part_are_not_touched() {
    let place = Place::new("1000");
    let (file, victim) = (place.path("b.txt"), place.path("victim"));
    std::fs::write(place.path("b.txt.part"), "mine").unwrap();
    std::fs::write(&victim, "mine too").unwrap();
    symlink(&victim, place.path("c.json.part")).unwrap();
    let before = place.names();
    well(&place.export("bfile", &file));
    assert!(std::fs::read(&file).unwrap() == place.exported("bfile"));
    well(&output_of(&["-q", "period", "kayles", "--certificate", &place.path("c.json")]));
    // No period is proved, so no file is written, and the earlier check leaves none.
    let output = output_of(&["-q", "period", ".007", "--to", "2000", "--certificate", &place.path("b.txt")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(std::fs::read(&file).unwrap() == place.exported("bfile"));
    assert_eq!(std::fs::read_to_string(place.path("b.txt.part")).unwrap(), "mine");
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine too");
    assert!(Path::new(&place.path("c.json.part")).is_symlink());
    let mut after = before;
    after.extend(["b.txt".to_owned(), "c.json".to_owned()]);
    after.sort();
    assert_eq!(place.names(), after);
}

#[test]
fn replaced_file_keeps_its_mode_and_a_new_one_gets_the_umask() {
    let place = Place::new("1000");
    let (old, new) = (place.path("old"), place.path("new"));
    std::fs::write(&old, "old").unwrap();
    std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o604)).unwrap();
    for file in [&old, &new] {
        let script = "umask 027; exec \"$@\"";
        let arguments = ["export", &place.run(), "--format", "csv", "-o", file];
        let mut command = Command::new("sh");
        well(&command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_grundy")]).args(arguments).output().unwrap());
    }
    assert_eq!((mode(&old), mode(&new)), (0o604, 0o640));
    // The file behind a link is replaced, not the link.
    let link = place.path("link");
    symlink(&old, &link).unwrap();
    well(&place.export("npy", &link));
    assert!(Path::new(&link).is_symlink() && std::fs::read(&old).unwrap() == place.exported("npy"));
    assert_eq!(mode(&old), 0o604);
}

#[test]
fn a_file_above_the_limit_of_sizes_is_removed_and_the_limit_named() {
    let place = Place::new("1000");
    let (file, run) = (place.path("b.txt"), place.run());
    for script in [format!("-o {file}"), format!("> {}", place.path("stdout"))] {
        let script = format!("ulimit -f 1; exec \"$0\" -q export {run} --format csv {script}");
        let output = Command::new("sh").args(["-c", &script, env!("CARGO_BIN_EXE_grundy")]).output().unwrap();
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(1) && stderr.contains("ulimit -f"), "{script}: {stderr}");
    }
    assert!(!Path::new(&file).exists());
}

#[test]
fn a_file_that_may_not_be_written_is_not_replaced() {
    let place = Place::new("1000");
    let file = place.path("b.txt");
    std::fs::write(&file, "mine").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o444)).unwrap();
    if std::fs::OpenOptions::new().write(true).open(&file).is_ok() {
        return println!("skipped: root may write any file");
    }
    fails(1, &["export", &place.run(), "--format", "csv", "-o", &file], &["not writable"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn two_exports_to_one_file_leave_one_of_them_whole() {
    let place = Place::new("300000");
    let file = place.path("values");
    let whole = [place.exported("csv"), place.exported("jsonl")];
    for _ in 0..5 {
        let children = ["csv", "jsonl"].map(|format| {
            let arguments = ["-q", "export", &place.run(), "--format", format, "-o", &file];
            grundy(arguments).stderr(Stdio::piped()).spawn().unwrap()
        });
        for child in children {
            well(&child.wait_with_output().unwrap());
        }
        assert!(whole.contains(&std::fs::read(&file).unwrap()), "the file is a mixture");
    }
    assert_eq!(place.names(), ["run", "values"]);
}

#[test]
fn a_full_disk_leaves_the_old_file_and_nothing_else() {
    let place = Place::new("1000000");
    let size = place.exported("bfile").len() as u64;
    // Space for the least that the file could need but not for all of it, and no space at all.
    for (room, words) in [(size - 500_000, "No space left"), (1 << 20, "no room: at least")] {
        let mount = match Mount::tmpfs(room) {
            Ok(mount) => mount,
            Err(why) => return println!("skipped: no file system could be mounted ({why})"),
        };
        let file = mount.path().join("b.txt");
        std::fs::write(&file, "old").unwrap();
        fails(1, &["-q", "export", &place.run(), "--format", "bfile", "-o", file.to_str().unwrap()], &[words]);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
        assert_eq!(std::fs::read_dir(mount.path()).unwrap().count(), 1, "{words}");
    }
    fails(1, &["-q", "export", &place.run(), "--format", "bfile", "-o", "/dev/full"], &["No space left"]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let help = grundy(["run", "--help"]).stdout(full).output().unwrap();
    assert_eq!((help.status.code(), text(&help.stderr).contains("No space left")), (Some(1), true));
}

#[test]
fn a_dash_is_stdout_and_pipes_and_devices_are_written_to() {
    let place = Place::new("1000");
    let (run, csv) = (&place.run(), place.exported("csv"));
    for target in ["-", "/dev/stdout"] {
        let output = place.export("csv", target);
        assert!(output.status.success() && output.stdout == csv, "{target}: {}", text(&output.stderr));
    }
    let script =
        format!("{{ echo first; \"$0\" -q export {run} --format csv -o /dev/stdout; }} >> {}", place.path("all"));
    well(&Command::new("sh").args(["-c", &script, env!("CARGO_BIN_EXE_grundy")]).output().unwrap());
    assert!(std::fs::read(place.path("all")).unwrap() == [&b"first\n"[..], &csv].concat());
    let pipe = place.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = Command::new("cat").arg(&pipe).stdout(Stdio::piped()).spawn().unwrap();
    well(&place.export("csv", &pipe));
    assert!(reader.wait_with_output().unwrap().stdout == csv);
    assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
    well(&place.export("csv", "/dev/null"));
    // A tune is binary, so its summary goes to stderr; a table is the same with and without the dash.
    well(&output_of(&["tune", "-o", &place.path("tune.mid")]));
    let tune = output_of(&["tune", "-o", "-"]);
    assert!(tune.status.success() && tune.stdout == std::fs::read(place.path("tune.mid")).unwrap());
    assert!(text(&tune.stderr).contains("301 notes"), "{}", text(&tune.stderr));
    let survey = place.path("survey");
    well(&output_of(&["-q", "survey", "--digits", "1", "--to", "1000", "-o", &survey]));
    assert_eq!(stdout_of(&["merge", &survey, "-o", "-"]), stdout_of(&["merge", &survey]));
}

#[test]
fn export_states_its_size_before_it_starts_unless_quiet() {
    let place = Place::new("100001");
    for format in ["bfile", "csv", "npy", "jsonl", "list", "parquet"] {
        for range in ["0..100001", "0..1", "95..1005"] {
            let output = output_of(&["export", &place.run(), "--format", format, "--range", range]);
            let (stderr, written) = (text(&output.stderr), output.stdout.len());
            let (before, bytes) =
                stderr.split_once(" bytes").map_or(("", ""), |(before, _)| before.rsplit_once(' ').unwrap());
            let bytes: usize = bytes.replace(',', "").parse().unwrap_or_else(|_| panic!("{format}: {stderr}"));
            // How many values the dictionary of a Parquet file has is not known before.
            let most = 2 * written + if format == "parquet" { 1000 } else { 0 };
            if before.ends_with("at most") {
                assert!(written <= bytes && bytes <= most, "{format} {range}: {written}, {stderr}");
            } else {
                assert_eq!(written, bytes, "{format} {range}: {stderr}");
            }
            assert!(format != "npy" || !before.ends_with("at most"), "{stderr}");
        }
    }
    let output = output_of(&["-q", "export", &place.run(), "--format", "csv", "-o", &place.path("v.csv")]);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
}

#[test]
fn with_verify_an_altered_table_is_refused_and_nothing_is_written() {
    let place = Place::new("100000");
    let (run, file) = (&place.run(), &place.path("values.csv"));
    let export: [&str; 6] = ["-q", "export", run, "--format", "csv", "-o"];
    let commands: [Vec<&str>; 3] =
        [[&export[..], &[file]].concat(), vec!["-q", "values", run, "0..5"], vec!["-q", "play", run, "4000", "17"]];
    let verified = |command: &[&str]| output_of(&[command, &["--verify"]].concat());
    let good = commands.each_ref().map(|command| {
        let (plain, verified) = (output_of(command), verified(command));
        assert!(plain.status.success() && verified.status.success(), "{}", text(&verified.stderr));
        assert!(plain.stdout == verified.stdout, "{command:?}");
        plain.stdout
    });
    let written = std::fs::read(file).unwrap();
    // A wrong nim-value at n = 90 000, which none of the commands reads.
    let table = Path::new(run).join("values.npy");
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[4096 + 90_000] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    std::fs::remove_file(file).unwrap();
    for (command, good) in commands.iter().zip(good) {
        let output = verified(command);
        assert_eq!(output.status.code(), Some(3), "{command:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty() && text(&output.stderr).contains("damage"), "{}", text(&output.stderr));
        assert!(!Path::new(file).exists());
        if command[1] != "export" {
            assert!(output_of(command).stdout == good, "{command:?}");
        }
    }
    assert!(output_of(&commands[0]).status.success() && std::fs::read(file).unwrap() != written);
    for command in ["export", "values", "play"] {
        let help = stdout_of(&[command, "--help"]).split_whitespace().collect::<Vec<&str>>().join(" ");
        assert!(help.contains("--verify") && help.contains("reads the table as it is"), "{command}: {help}");
    }
    fails(2, &["values", "kayles", "0..5", "--verify"], &["--verify"]);
    fails(2, &["play", "kayles", "5", "--verify"], &["--verify"]);
}

/// A reader of stdout may leave early, but an output file that is a pipe must receive the whole result.
#[test]
fn a_pipe_whose_reader_leaves_is_an_error() {
    let place = Place::new("200000");
    let pipe = place.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = Command::new("head").args(["-c", "10", &pipe]).stdout(Stdio::null()).spawn();
    let output = place.export("bfile", &pipe);
    reader.unwrap().wait().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains(&pipe), "{}", text(&output.stderr));
}

#[test]
fn special_files_are_written_to_and_not_replaced() {
    let home = tempfile::tempdir().unwrap();
    let (target, link) = (home.path().join("target"), home.path().join("link"));
    std::fs::write(&target, "old").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    assert_eq!(reply(&["-q", "period", "kayles", "--certificate", link.to_str().unwrap()]).0, 0);
    assert!(link.is_symlink() && std::fs::read_to_string(&target).unwrap().contains("grundy-certificate-1"));
    assert_eq!(reply(&["-q", "period", "kayles", "--certificate", "/dev/null"]).0, 0);
    let null = std::fs::metadata("/dev/null").unwrap();
    assert!(!null.is_file() && null.len() == 0, "/dev/null is a file now");
    // The file is checked before anything is computed.
    let begun = std::time::Instant::now();
    let (status, stdout, _) = reply(&["-q", "period", "grundy", "--to", "2^27", "--certificate", "/nowhere/x.json"]);
    assert!(status == 1 && stdout.is_empty() && begun.elapsed() < Duration::from_secs(2));
    let (status, _, stderr) = reply(&["verify", target.to_str().unwrap(), "--level", "recompute"]);
    assert!(status == 2 && stderr.contains("certificate"), "{stderr}");
    std::fs::write(&target, [0xff, 0xfe, 0x00]).unwrap();
    assert_eq!(reply(&["verify", target.to_str().unwrap()]).0, 3);
}

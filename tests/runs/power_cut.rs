//! Power cuts under a running program on real file systems: durable values survive, and the files state nothing else.
//!
//! `FS_IOC_SHUTDOWN` without a flush of the log stops a file system at once: unsynced data is lost, as in a power cut.
//! The test then kills the program, mounts the image again, and the file system replays its log. Needs root, and runs
//! with GRUNDY_LONG=1 only.

use crate::support::mount::Mount;
use crate::support::whole::{Whole, length, recorded};
use crate::support::{Random, Tally, cases, count, grundy, same_run, start, text};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Size of an image in bytes: XFS needs 300 MB, and the largest table fits.
const BYTES: u64 = 400 << 20;

/// Waits for a line, then shuts down the file system of its argument. It is started early, so that its start does not
/// delay the cut.
const CUT: &str = "
import fcntl, os, struct, sys
mount = os.open(sys.argv[1], os.O_RDONLY)
print(flush=True)
sys.stdin.readline()
fcntl.ioctl(mount, 0x8004587D, struct.pack('I', 2))
";

/// The process that cuts the power of a mount.
struct Switch(Child);

impl Switch {
    fn ready(mount: &Path) -> Result<Switch, String> {
        let mut command = Command::new("python3");
        command.args(["-c", CUT]).arg(mount).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("python3: {e}"))?;
        let mut line = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).map_err(|e| format!("python3: {e}"))?;
        Ok(Switch(child))
    }

    fn cut(mut self) -> Result<(), String> {
        self.0.stdin.take().unwrap().write_all(b"\n").unwrap();
        let output = self.0.wait_with_output().unwrap();
        if output.status.success() {
            return Ok(());
        }
        Err(text(&output.stderr).lines().last().unwrap_or("no ioctl").to_owned())
    }

    /// Checks whether power can be cut here; the error states why not.
    fn tried(kind: &str) -> Result<(), String> {
        let mount = Mount::image(kind, BYTES)?;
        Switch::ready(&mount.path())?.cut()
    }
}

/// Number of values in the header of the table. The run updates it when a record is durable, although readers can read
/// the record earlier.
fn promised(dir: &Path) -> u64 {
    let bytes = std::fs::read(dir.join("values.npy")).unwrap_or_default();
    let header = text(&bytes[..bytes.len().min(4096)]);
    let shape = header.split_once("'shape': (").and_then(|(_, rest)| rest.split_once(','));
    shape.and_then(|(digits, _)| digits.parse().ok()).unwrap_or(0)
}

/// Waits for a random time after the start or after a file grew.
fn wait_for_the_moment(random: &mut Random, dir: &Path, child: &mut Child) {
    let (name, most) = match random.below(5) {
        0 => return std::thread::sleep(Duration::from_millis(random.below(2500))),
        1 | 2 => ("values.npy", 30_000),
        _ => ("journal.jsonl", 30_000),
    };
    // At the first commit of this process or at a later one.
    for _ in 0..1 + random.below(2) {
        let path = dir.join(name);
        let before = length(&path).max(4096);
        let begun = Instant::now();
        while length(&path) <= before && begun.elapsed() < Duration::from_secs(8) && child.try_wait().unwrap().is_none()
        {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
    std::thread::sleep(Duration::from_micros(random.pick(&[0, most / 100, most / 10, most]) * random.below(100) / 100));
}

/// Results on one kind of file system.
#[derive(Default)]
struct Seen {
    cuts: u64,
    before_the_first_record: u64,
    torn: u64,
    read_but_not_durable: u64,
    beyond: u64,
}

fn cut_runs(kind: &str, wholes: &[Whole], cuts: u64, random: &mut Random) -> Seen {
    let mut seen = Seen::default();
    while seen.cuts < cuts {
        let whole = &wholes[usize::try_from(random.below(wholes.len() as u64)).unwrap()];
        let mut mount = Mount::image(kind, BYTES).unwrap();
        let dir = mount.path().join("run");
        for _ in 0..(1 + random.below(3)).min(cuts - seen.cuts) {
            let switch = Switch::ready(&mount.path()).unwrap();
            let mut child = start(&mut whole.command(&dir, 1 + random.below(3)));
            wait_for_the_moment(random, &dir, &mut child);
            let (promised, read) = (promised(&dir), recorded(&dir));
            switch.cut().unwrap();
            std::thread::sleep(Duration::from_millis(random.below(50)));
            child.kill().unwrap();
            let output = child.wait_with_output().unwrap();
            let fair = matches!(output.status.code(), Some(0 | 1)) || output.status.signal() == Some(9);
            assert!(fair, "{kind}: {:?}, {}", output.status, text(&output.stderr));
            mount.unmount();
            mount.again().unwrap();
            seen.cuts += 1;
            let now = count(&dir);
            let what = format!("{kind}, {} to {}, cut {}", whole.game, whole.to, seen.cuts);
            println!("{what}: {promised} promised, {read} read, {now} there");
            assert!(now >= promised, "{what}: {promised} values were committed, {now} are there");
            seen.read_but_not_durable += u64::from(now < read);
            let verified = grundy(["verify"]).arg(&dir).output().unwrap();
            let stderr = text(&verified.stderr);
            match verified.status.code() {
                Some(0) => {}
                Some(1) if now == 0 && crate::support::says_no_run(&verified) => seen.before_the_first_record += 1,
                // Only the record that was being written may be torn.
                Some(3) if stderr.contains("the last record is broken or breaks off") => seen.torn += 1,
                Some(3) if now == 0 && stderr.contains("no record is good") => seen.torn += 1,
                code => panic!("{what}: verify ends with {code:?}: {stderr}"),
            }
            let unit = if whole.width == "u16" { 2 } else { 1 };
            seen.beyond += u64::from(length(&dir.join("values.npy")) > 4096 + unit * now);
        }
        let mut command = whole.command(&dir, 0);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{kind}, {}: {}", whole.game, text(&output.stderr));
        same_run(&dir, &whole.dir());
        assert_eq!(grundy(["verify"]).arg(&dir).output().unwrap().status.code(), Some(0), "{kind}, {}", whole.game);
    }
    seen
}

fn power_cuts(kind: &str, hazard: &'static str) {
    let random = &mut Random::new(hazard);
    let tally = Tally::begin(hazard);
    let cuts = cases(0, 200);
    if cuts == 0 {
        return tally.end(0, "skipped: --long only");
    }
    if let Err(why) = Switch::tried(kind) {
        return tally.end(0, &format!("skipped: {why}"));
    }
    let wholes = [(".106", "u8", 60_000_000), ("kayles", "u16", 20_000_000), ("0.6", "u8", 1_000_000)]
        .map(|(game, width, most)| Whole::lasting(game, width, Duration::from_millis(3000), most));
    let seen = cut_runs(kind, &wholes, cuts, random);
    tally.end(
        seen.cuts,
        &format!(
            "{} before the first record, {} torn records, {} with values beyond the last, {} with a record read that \
             was not durable; nothing committed was lost, the same bytes",
            seen.before_the_first_record, seen.torn, seen.beyond, seen.read_but_not_durable
        ),
    );
}

#[test]
fn power_cut_on_ext4() {
    power_cuts("ext4", "power cut, ext4");
}

#[test]
fn power_cut_on_xfs() {
    power_cuts("xfs", "power cut, XFS");
}

//! `grundy publish` and `grundy compare`: a directory that others can cite and check, and where two runs agree.

use super::discarded::rows_of_run;
use super::layout::{counted, fitted, machine_names};
use super::number::number;
use super::progress::{Meter, note};
use super::signals::{self, Stopped};
use super::space::which_are_rare;
use super::{Usage, output};
use anyhow::{Context, Result, anyhow, bail};
use grundy::Error;
use grundy::checkpoint::journal::Origin;
use grundy::error::printable;
use grundy::find::{Question, Row};
use grundy::publish::{self, Comparison, FileEntry, Manifest, Obstacle, Publication, compare, sha256};
use grundy::run::RunReader;
use grundy::solver::SparseSpace;
use grundy::table::digest::SEGMENT;
use grundy::theory::definition::Sequence;
use indicatif::HumanCount;
use serde::Deserialize;
use std::fs::{File, TryLockError};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::SystemTime;

/// File name of a manifest.
const MANIFEST: &str = "manifest.json";

/// File name of the metadata.
const METADATA: &str = "ro-crate-metadata.json";

/// File name of the records.
const RECORDS: &str = "records.csv";

/// Maximum number of values in the b-file.
const BFILE: u64 = 10_001;

/// Maximum length of a manifest or a verdict, in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// Kinds of pictures, as `python3 -m grundy plot` names them.
const PICTURES: [&str; 3] = ["density", "records", "histogram"];

/// Arguments of `grundy publish`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy publish runs/grundy -o grundy-1e9 --author 'Ada Example'\n         \
                        grundy merge check --json -o check.json\n         \
                        grundy publish runs/grundy -o grundy-1e9 --verified check.json --other there/manifest.json\n\n\
                        Verifies the table against the journal, then writes manifest.json (game, count, digest after \
                        every 2^24 values, program, kernels, machines, checks, SHA-256 of the other files), \
                        ro-crate-metadata.json (RO-Crate 1.1), README.md, bfile.txt (the first 10,001 values), \
                        records.csv, rares.csv, histogram.csv and segments.csv, and pictures if the Python package is \
                        installed. Of freed values, the tables state what the discard summary of the run contains. With \
                        --segment 2^32, the manifest of a very long run stays small.\n\n\
                        A run is confirmed as far as another computation, by another kernel on another machine, has \
                        equal digests; both machines must be known. Two machines with the same processor model count as one.")]
pub(crate) struct PublishArgs {
    /// Run directory.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Directory to write; it must be new or empty.
    #[arg(short, value_name = "DIR")]
    output: PathBuf,
    /// Processor model of the machine that computed the values for which an earlier version recorded none [default:
    /// unknown].
    #[arg(long, value_name = "TEXT")]
    machine: Option<String>,
    /// Verdict of a check of this run, as 'grundy merge --json' writes it; may be given several times.
    #[arg(long, value_name = "FILE")]
    verified: Vec<PathBuf>,
    /// Manifest or published directory of another computation; may be given several times.
    #[arg(long, value_name = "MANIFEST")]
    other: Vec<PathBuf>,
    /// State a digest after every N values, a multiple of 2^24. Two manifests can be compared only where both state a
    /// digest.
    #[arg(long, value_name = "N", value_parser = segment, default_value = "2^24")]
    segment: u64,
    /// Name of an author; may be given several times.
    #[arg(long, value_name = "NAME")]
    author: Vec<String>,
    /// Address of the licence of the published data.
    #[arg(long, value_name = "URL", default_value = "https://creativecommons.org/publicdomain/zero/1.0/")]
    licence: String,
}

/// Arguments of `grundy compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy compare runs/grundy there/manifest.json\n\n\
                        Compares the digests that both state: those at segment boundaries (every 2^24 values, or as 'publish --segment' states), those at \
                        the ends, and of two runs those of all commits. Of a published directory, the SHA-256 of its \
                        files are checked first. Of a run directory, nothing but the journal is read. Exit status 3 if \
                        digests differ.\n\n\
                        JSON keys: game counts agree differs kernels machines confirmed obstacle; 'differs' is null, or \
                        has the keys segment from to; 'machines' contains null where the machine of values is not \
                        known; 'confirmed' is the number of first values that different kernels on different machines \
                        computed with equal digests; 'obstacle' is null, or why no more are: differs, \
                        no-common-digest, same-kernel, unknown-machine or same-machine.")]
pub(crate) struct CompareArgs {
    /// Run directory, published directory, or manifest.
    #[arg(value_name = "A")]
    one: PathBuf,
    /// Run directory, published directory, or manifest to compare it with.
    #[arg(value_name = "B")]
    other: PathBuf,
    /// Processor model of the machine that computed the values of A and B for which an earlier version recorded none
    /// [default: unknown].
    #[arg(long, value_name = "TEXT")]
    machine: Option<String>,
    /// Note in the run directory A what B confirms, for 'status' and 'publish'.
    #[arg(long)]
    record: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Parses a positive multiple of the segment length.
fn segment(text: &str) -> Result<u64, String> {
    match number(text)? {
        length if length > 0 && length.is_multiple_of(SEGMENT) => Ok(length),
        _ => Err(format!("must be a positive multiple of {SEGMENT}")),
    }
}

/// Reads the manifest of a published directory or a file, or makes that of a run.
fn manifest_of(path: &Path) -> Result<Manifest> {
    if path.is_dir() && !path.join(MANIFEST).exists() {
        return Ok(Manifest::of(&RunReader::open(super::source::run_directory(path)?)?));
    }
    let file = if path.is_dir() { path.join(MANIFEST) } else { path.to_owned() };
    let text = super::input::read_text(&file, MAX_BYTES)?;
    let manifest = Manifest::parse(text.as_bytes()).map_err(|why| damage(&file, &format!("not a manifest: {why}")))?;
    if path.is_dir() {
        for entry in &manifest.files {
            let file = path.join(&entry.name);
            if entry.name.contains('/') || FileEntry::of(path, &entry.name)? != *entry {
                return Err(damage(&file, "not the file that the manifest describes"));
            }
        }
    }
    Ok(manifest)
}

/// Compares two manifests, each with its path.
fn compared((path, one): (&Path, &Manifest), (there, other): (&Path, &Manifest)) -> Result<Comparison> {
    compare(one, other).ok_or_else(|| {
        let (path, there) = (path.display(), there.display());
        anyhow!("{path} is of the game {}, {there} of {}; compare computations of the same game", one.game, other.game)
    })
}

/// The error of a file that does not hold what it should.
fn damage(path: &Path, why: &str) -> anyhow::Error {
    let damage = grundy::error::Damage::NotPublished { why: why.into() };
    Error::Damage { path: path.into(), offset: 0, damage }.into()
}

pub(crate) fn compare_two(args: &CompareArgs) -> Result<ExitCode> {
    let (mut one, mut other) = (manifest_of(&args.one)?, manifest_of(&args.other)?);
    name_machine(args.machine.as_deref(), &mut [&mut one, &mut other])?;
    let comparison = compared((&args.one, &one), (&args.other, &other))?;
    if args.record {
        let confirmation = comparison.confirmation(&other).ok_or_else(|| {
            let (one, other) = (args.one.display(), args.other.display());
            anyhow!("{other} does not confirm {one}: {}", comparison.obstacle.map_or("no values", reason))
        })?;
        publish::record(super::source::run_directory(&args.one)?, confirmation)?;
    }
    output::print(|out| {
        if args.json {
            return output::object(out, &comparison);
        }
        let [a, b] = comparison.counts.map(HumanCount);
        let agree = match comparison.agree {
            0 if comparison.differs.is_none() => "no digest is stated by both".to_owned(),
            agree => format!("the first {} have equal digests", counted(agree, "values")),
        };
        let mut text = format!("{}: {a} and {b} values; {agree}", comparison.game);
        if let Some(differs) = comparison.differs {
            let (from, to, segment) = (differs.from, differs.to, differs.segment);
            text += &format!("; they differ in {from}..{to}");
            if to - from <= SEGMENT {
                text += &format!(", in segment {segment}");
            }
        }
        let by = |i: usize| {
            let (kernels, machines) = (comparison.kernels[i].join(", "), machine_names(&comparison.machines[i]));
            printable(&format!("kernel {kernels} on {machines}"))
        };
        text += &format!("; computed by {}, and by {}: ", by(0), by(1));
        text += &match comparison.confirmed {
            0 => "not confirmed".to_owned(),
            values => format!("{} confirmed", counted(values, "values")),
        };
        if let Some(obstacle) = comparison.obstacle {
            text += &format!(", because {}", reason(obstacle));
        }
        Ok(out.write_all(fitted(&(text + "\n")).as_bytes())?)
    })?;
    Ok(ExitCode::from(if comparison.differs.is_some() { 3 } else { 0 }))
}

/// Enters the machine of `--machine` where it is not known.
fn name_machine(machine: Option<&str>, manifests: &mut [&mut Manifest]) -> Result<()> {
    let Some(machine) = machine else { return Ok(()) };
    let named = manifests.iter_mut().map(|manifest| manifest.name_machine(machine)).filter(|is_needed| *is_needed);
    if named.count() == 0 {
        return Err(Usage("the machine of all values is recorded; leave out --machine".into()).into());
    }
    Ok(())
}

/// Words the reason why no more values are confirmed, and what to do.
fn reason(obstacle: Obstacle) -> &'static str {
    match obstacle {
        Obstacle::Differs => "the digests differ; 'grundy verify --level recompute' finds the wrong values",
        Obstacle::NoCommonDigest => {
            "no digest is known of both after the same number of values; compute both to the same number"
        }
        Obstacle::SameKernel => {
            "the same kernel computed both; compute one of them again with another --kernel, on another processor model"
        }
        Obstacle::UnknownMachine => {
            "the machine that computed some of the values is not recorded; name it with --machine, or compute again"
        }
        Obstacle::SameMachine => {
            "both may have been computed on the same machine; compute one of them on another processor model"
        }
        _ => "the computations are not independent",
    }
}

pub(crate) fn publish_run(args: &PublishArgs, quiet: bool) -> Result<()> {
    let dir = &args.output;
    output::refuse_unsuitable_directory(dir)?;
    refuse_occupied(dir)?;
    dir.ancestors().skip(1).try_for_each(output::refuse_run_directory)?;
    let run_directory = super::source::run_directory(&args.run)?;
    refuse_unpublishable(run_directory)?;
    let run = super::values::open(run_directory, true, quiet)?;
    let mut manifest = Manifest::of(&run).with_segment(args.segment).map_err(Usage)?;
    name_machine(args.machine.as_deref(), &mut [&mut manifest])?;
    for path in &args.verified {
        manifest.verified.push(verdict(path, &manifest)?);
    }
    manifest.confirmed = publish::confirmations(&args.run, &run.contents.points)?;
    for path in &args.other {
        let other = manifest_of(path)?;
        let comparison = compared((&args.run, &manifest), (path, &other))?;
        let Some(confirmation) = comparison.confirmation(&other) else {
            let why = comparison.obstacle.map_or("no values", reason);
            bail!("{} does not confirm this run: {why}", path.display());
        };
        manifest.confirmed.push(confirmation);
    }
    std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    let _lock = locked(dir)?;
    refuse_occupied(dir)?;
    let mut names = Vec::new();
    let written = write_files(args, &run, &mut manifest, &mut names, quiet);
    if written.is_err() {
        // Ignored on failure: the error of writing says more.
        names.iter().for_each(|name| drop(std::fs::remove_file(dir.join(name))));
    }
    let files = written?;
    let confirmed = match manifest.confirmed_values() {
        0 => "not confirmed".to_owned(),
        values => format!("{} confirmed", counted(values, "values")),
    };
    let (files, values) = (counted(files, "files"), counted(manifest.count, "values"));
    output::print(|out| {
        Ok(writeln!(out, "{}: {files} about {values} of {}, {confirmed}", dir.display(), manifest.game)?)
    })
}

/// Writes all files of a publication, and adds to `names` the name of each before it is written. Returns the number of
/// files.
fn write_files(
    args: &PublishArgs,
    run: &RunReader,
    manifest: &mut Manifest,
    names: &mut Vec<String>,
    quiet: bool,
) -> Result<u64> {
    let dir = &args.output;
    let write = |name: &str, text: &str| output::whole_file(&dir.join(name), |out| Ok(out.write_all(text.as_bytes())?));
    tables(run, manifest, (dir, names), quiet)?;
    pictures(&args.run, (dir, names))?;
    let readme = readme(manifest, names, run);
    names.push("README.md".into());
    write("README.md", &readme)?;
    for name in names.iter() {
        manifest.files.push(FileEntry::of(dir, name)?);
    }
    names.push(MANIFEST.into());
    write(MANIFEST, &manifest.text())?;
    let mut files = manifest.files.clone();
    files.push(FileEntry::of(dir, MANIFEST)?);
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let publication = Publication { licence: &args.licence, authors: &args.author, date: &now[..10] };
    names.push(METADATA.into());
    write(METADATA, &publish::ro_crate(manifest, &files, &publication))?;
    Ok(names.len() as u64)
}

/// Locks a directory until the file is dropped, so that two processes do not mix their files.
fn locked(dir: &Path) -> Result<File> {
    let file = File::open(dir).with_context(|| format!("opening {}", dir.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Locked { path: dir.into() }.into()),
        // Some network file systems cannot lock a directory.
        Err(TryLockError::Error(_)) => Ok(file),
    }
}

/// Refuses a directory that is not empty. `publish` writes the records first and the metadata last, each by way of a
/// hidden temporary file.
fn refuse_occupied(dir: &Path) -> Result<()> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    if names.is_empty() {
        return Ok(());
    }
    let is_begun = names.iter().any(|name| name == RECORDS || name.starts_with(output::TEMPORARY));
    let is_complete = names.iter().any(|name| name == METADATA);
    let why = if is_begun && !is_complete {
        "an interrupted 'grundy publish' may have left the files: remove them, or "
    } else {
        ""
    };
    bail!("{}: the directory is not empty; {why}choose an empty or a new one", dir.display())
}

/// Refuses a run without committed values, and one that a process computes with `--keep`, because it frees values while
/// they are read.
fn refuse_unpublishable(directory: &Path) -> Result<()> {
    let last = RunReader::open(directory)?.contents.last;
    let dir = super::source::printable(directory);
    if last.count == 0 {
        bail!("{dir}: the run has committed no value yet; continue it, then publish it");
    }
    if last.keep.is_none() || !super::status::is_running(directory) {
        return Ok(());
    }
    bail!("{dir}: a process computes this run and frees values; stop it, publish the run, and then resume it")
}

/// What a verdict of `grundy merge --json` states, as far as it is read here.
#[derive(Deserialize)]
struct Verdict {
    digest: String,
    count: u64,
    level: String,
    verdict: String,
    ranges: Vec<(u64, u64)>,
    checked: u64,
    wrong: Vec<String>,
}

impl Verdict {
    fn of(verdict: &serde_json::Value) -> Result<Verdict, String> {
        let verdict = Verdict::deserialize(verdict).map_err(|error| error.to_string())?;
        let is_level = matches!(&*verdict.level, "exclusion" | "recompute" | "definition");
        if !is_level || !matches!(&*verdict.verdict, "passed" | "failed" | "incomplete") {
            return Err("its level or its verdict is unknown".into());
        }
        let ends: Vec<u64> = verdict.ranges.iter().flat_map(|&(from, to)| [from, to]).collect();
        let is_ascending = ends.is_sorted() && ends.last().is_none_or(|&to| to <= verdict.count);
        if !is_ascending || verdict.checked > verdict.ranges.iter().map(|(from, to)| to - from).sum() {
            return Err("its ranges, its count and the number of checked values contradict each other".into());
        }
        Ok(verdict)
    }

    /// What was checked, as an item of a list.
    fn item(&self) -> String {
        let ranges = self.ranges.iter().map(|&(from, to)| format!("{}..{}", HumanCount(from), HumanCount(to)));
        let (ranges, checked) = (ranges.collect::<Vec<_>>().join(", "), counted(self.checked, "values"));
        let (level, all) = (&self.level, counted(self.count, "values"));
        format!("- checked at level {level}: {checked} in {ranges}, in a run of {all}\n")
    }
}

/// Reads a verdict and checks that it states a digest of this run, and no failed check.
fn verdict(path: &Path, manifest: &Manifest) -> Result<serde_json::Value> {
    let text = super::input::read_text(path, MAX_BYTES)?;
    let not_one = |why: &str| damage(path, &format!("not a verdict: {}", printable(why)));
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|e| not_one(&e.to_string()))?;
    let verdict = Verdict::of(&value).map_err(|why| not_one(&why))?;
    if !manifest.points.iter().any(|(at, there)| (*at, there) == (verdict.count, &verdict.digest)) {
        bail!("{}: this is not the verdict of a check of this run; 'grundy merge --json' writes one", path.display());
    }
    if verdict.verdict == "failed" || !verdict.wrong.is_empty() {
        let why = verdict.wrong.first().map_or_else(String::new, |why| format!(" ({})", printable(why)));
        bail!("{}: a check of this run failed{why}; verify the run, and do not publish wrong values", path.display());
    }
    if verdict.checked == 0 {
        bail!("{}: this verdict has checked no value; do the units of its plan first", path.display());
    }
    Ok(value)
}

/// Writes the tables of a run into a directory, and adds their names.
fn tables(run: &RunReader, manifest: &Manifest, (dir, names): (&Path, &mut Vec<String>), quiet: bool) -> Result<()> {
    let meter = Meter::new(quiet);
    let count = run.len();
    let space = run.space();
    let mut questions =
        vec![(RECORDS, "n,value", Question::Records), ("histogram.csv", "value,count", Question::Histogram)];
    if space != SparseSpace::NONE {
        questions.push(("rares.csv", "n,value", Question::Rare(space)));
    }
    for (name, header, question) in questions {
        names.push(name.to_owned());
        output::whole_file(&dir.join(name), |out| {
            writeln!(out, "{header}")?;
            let mut see = |n| {
                meter.phase("searching", n, count);
                Ok(())
            };
            let mut write = |row| {
                match row {
                    Row::At { n, value } => writeln!(out, "{n},{value}")?,
                    Row::Count { value, count } => writeln!(out, "{value},{count}")?,
                    Row::First { .. } => {}
                }
                Ok(())
            };
            rows_of_run(run, 0..count, &question, (&mut see, &mut write))
        })?;
    }
    meter.end();
    names.extend(["bfile.txt".to_owned(), "segments.csv".to_owned()]);
    output::whole_file(&dir.join("bfile.txt"), |out| {
        for (n, value) in run.values(0..count.min(BFILE))?.into_iter().enumerate() {
            writeln!(out, "{n} {value}")?;
        }
        Ok(())
    })?;
    output::whole_file(&dir.join("segments.csv"), |out| {
        writeln!(out, "to,digest")?;
        manifest.segments.iter().try_for_each(|segment| Ok(writeln!(out, "{},{}", segment.to, segment.digest)?))
    })
}

/// Draws pictures with the Python package, where it is installed, into a directory, and adds their names.
///
/// # Errors
/// [`Stopped`] after a signal, which may have ended the drawing as well.
fn pictures(run: &Path, (dir, names): (&Path, &mut Vec<String>)) -> Result<()> {
    let before = names.len();
    // A drawing that is interrupted leaves its files there; they vanish with the directory.
    let desk = tempfile::Builder::new().prefix(output::TEMPORARY).tempdir_in(dir).context("making a directory")?;
    for kind in PICTURES {
        let name = format!("{kind}.png");
        let mut command = Command::new("python3");
        command.args(["-m", "grundy", "plot", kind]).arg(run).arg("-o").arg(desk.path().join(&name));
        let drawn = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        if signals::is_stopping() {
            return Err(Stopped).with_context(|| format!("writing {}", dir.join(&name).display()));
        }
        if drawn.is_ok_and(|status| status.success()) && desk.path().join(&name).exists() {
            let (drawn, picture) = (desk.path().join(&name), dir.join(&name));
            names.push(name);
            std::fs::rename(drawn, &picture).with_context(|| format!("writing {}", picture.display()))?;
        }
    }
    if names.len() == before {
        note("no pictures: the Python package, or matplotlib, is not installed for python3");
    }
    Ok(())
}

/// The text of README.md.
fn readme(manifest: &Manifest, names: &[String], run: &RunReader) -> String {
    let Manifest { game, count, digest, computed, max_value, max_at, mask, rares, last_rare, .. } = manifest;
    let (kernels, machines) =
        (Origin::kernels(&computed.origins).join(", "), machine_names(&Origin::machines(&computed.origins)));
    let confirmed = match manifest.confirmed_values() {
        0 => "no computation by another kernel on another machine is recorded here".to_owned(),
        values => format!("another kernel on another machine computed the first {values} values with equal digests"),
    };
    let verdicts = manifest.verified.iter().filter_map(|verdict| Verdict::of(verdict).ok());
    let checked: String = verdicts.map(|verdict| verdict.item()).collect();
    let rare = match run.space() {
        SparseSpace::NONE => "The run had no sparse space.".to_owned(),
        space => {
            let which = which_are_rare(space);
            format!("Rare positions: {rares}, the last at n = {last_rare} (mask {mask:#x}; {which}).")
        }
    };
    let freed = freed_values(run.discarded());
    let files: String = names.iter().map(|name| format!("- `{name}`\n")).collect();
    format!(
        "# Nim-values of {game}\n\n\
         G(0), …, G({}), exact: {count} values. Largest value: {max_value}, first at n = {max_at}. \
         {rare}\n\n\
         - digest of all values: `{digest}`\n\
         - computed by {}, kernel {kernels}, on {machines}, {} s of computing time, {} failed checks\n\
         - confirmed: {confirmed}\n{checked}\n\
         {freed}`{MANIFEST}` states the digest after every {} values and after all of them. Digest 0 is 32 zero bytes, \
         and digest i, after i segments of 2^24 values, is BLAKE3(digest i-1, BLAKE3(values of segment i as \
         little-endian 16-bit numbers)). \
         Two computations of the game are equal up to n if their digests after n values are; `grundy compare` finds the \
         first range between two digests in which they differ.\n\n{files}",
        count - 1,
        computed.program,
        computed.seconds,
        computed.errors,
        manifest.segment,
    )
}

/// Which values the run has freed, in words.
fn freed_values(Range { start, end }: Range<u64>) -> String {
    if start == end {
        return String::new();
    }
    format!(
        "The run has freed G({start}), …, G({}). `records.csv`, `rares.csv` and `histogram.csv` state what it found \
         among them before.\n\n",
        end - 1
    )
}

/// The entry of a file, with its SHA-256.
trait Described: Sized {
    fn of(dir: &Path, name: &str) -> Result<Self>;
}

impl Described for FileEntry {
    fn of(dir: &Path, name: &str) -> Result<FileEntry> {
        let path = dir.join(name);
        let reading = || format!("reading {}", path.display());
        let (bytes, sha256) = File::open(&path).and_then(sha256).with_context(reading)?;
        Ok(FileEntry { name: name.into(), bytes, sha256 })
    }
}

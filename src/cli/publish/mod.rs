//! `grundy publish`: write a directory that others can cite and check.

mod files;
mod readme;
mod verdict;

use super::compare::{compared, name_machine, reason};
use super::layout::{counted, printable};
use super::number::number;
use super::published::{MANIFEST, entry_of, manifest_of};
use super::{Usage, output, source, status, values};
use anyhow::{Context, Result, bail};
use grundy::Error;
use grundy::publish::{self, Manifest, Publication};
use grundy::run::RunReader;
use grundy::table::digest::SEGMENT;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// File name of the metadata.
const METADATA: &str = "ro-crate-metadata.json";

/// File name of the records.
const RECORDS: &str = "records.csv";

/// Arguments of `grundy publish`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy publish runs/grundy -o grundy-1e9 --author 'Ada Example'\n         \
                        grundy merge check --json -o check.json\n         \
                        grundy publish runs/grundy -o grundy-1e9 --verified check.json --other there/manifest.json\n\n\
                        Verifies the table against the journal, then writes manifest.json (game, count, digest after \
                        every 2^24 values, program, kernels, machines, checks, SHA-256 of the other files), \
                        ro-crate-metadata.json (RO-Crate 1.1), README.md, bfile.txt (the first 10,001 values), \
                        records.csv, rares.csv (if the run uses a sparse space), histogram.csv and segments.csv, and \
                        pictures if the Python package is installed. Of freed values, the tables state what the discard summary of the run contains. With \
                        --segment 2^32, the manifest of a very long run stays small.\n\n\
                        The first N values of a run are confirmed if another kernel on another machine computed them \
                        with an equal digest; both machines must be known. Two machines with the same processor model \
                        count as one.")]
pub(crate) struct Args {
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

/// Parses a positive multiple of the segment length.
fn segment(text: &str) -> Result<u64, String> {
    match number(text)? {
        length if length > 0 && length.is_multiple_of(SEGMENT) => Ok(length),
        _ => Err(format!("must be a positive multiple of {SEGMENT}")),
    }
}

pub(crate) fn publish(args: &Args, quiet: bool) -> Result<()> {
    let dir = &args.output;
    output::refuse_unsuitable_directory(dir)?;
    refuse_occupied(dir)?;
    let run_directory = source::run_directory(&args.run)?;
    refuse_unpublishable(run_directory)?;
    let run = values::open(run_directory, true, quiet)?;
    let mut manifest = Manifest::of(&run).with_segment(args.segment).map_err(Usage)?;
    name_machine(args.machine.as_deref(), &mut [&mut manifest])?;
    for path in &args.verified {
        manifest.verified.push(verdict::read(path, &manifest)?);
    }
    manifest.confirmed = publish::confirmations(&args.run, &run.contents)?;
    for path in &args.other {
        let other = manifest_of(path)?;
        let comparison = compared((&args.run, &manifest), (path, &other))?;
        let Some(confirmation) = comparison.confirmation(&other) else {
            let why = comparison.obstacle.map_or("no values", reason);
            bail!("{} does not confirm this run: {why}", path.display());
        };
        if !manifest.confirmed.contains(&confirmation) {
            manifest.confirmed.push(confirmation);
        }
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
        Ok(writeln!(out, "{}: {files} that describe {values} of {}, {confirmed}", dir.display(), manifest.game)?)
    })
}

/// Writes all files of a publication, and adds to `names` the name of each before it is written. Returns the number of
/// files.
fn write_files(
    args: &Args,
    run: &RunReader,
    manifest: &mut Manifest,
    names: &mut Vec<String>,
    quiet: bool,
) -> Result<u64> {
    let dir = &args.output;
    let write = |name: &str, text: &str| output::whole_file(&dir.join(name), |out| Ok(out.write_all(text.as_bytes())?));
    files::tables(run, manifest, (dir, names), quiet)?;
    files::pictures(&args.run, (dir, names))?;
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let publication = Publication { licence: &args.licence, authors: &args.author, date: &now[..10] };
    let readme = readme::readme(manifest, names, run, &publication);
    names.push("README.md".into());
    write("README.md", &readme)?;
    for name in names.iter() {
        manifest.files.push(entry_of(dir, name)?);
    }
    names.push(MANIFEST.into());
    write(MANIFEST, &manifest.text())?;
    let mut files = manifest.files.clone();
    files.push(entry_of(dir, MANIFEST)?);
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
    let dir = printable(directory);
    if last.count == 0 {
        bail!("{dir}: the run has committed no value yet; continue it, then publish it");
    }
    if last.keep.is_none() || !status::is_running(directory) {
        return Ok(());
    }
    bail!("{dir}: a process computes this run and frees values; stop it, publish the run, and then resume it")
}

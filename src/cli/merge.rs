//! `grundy merge`: combine the records of surveys into a table, or the results of units.

use super::layout::{counted, fitted, printable};
use super::progress::note;
use super::survey::Format;
use super::{Usage, complain};
use anyhow::{Result, anyhow};
use grundy::survey::{self, Missing, Record};
use grundy::units::{self, Joined, Verdict};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Maximum number of lines of missing results that `merge` prints.
const MAX_LISTED: usize = 20;

/// Arguments of `grundy merge`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: grundy merge shard0 shard1 --format csv -o table.csv\n         \
                        grundy merge check --json\n\n\
                        Of two records of one game, merge takes the proved one, else the one with more values; it \
                        refuses records that contradict each other with exit status 3. The plans in the directories \
                        list the expected games. If results are missing, merge lists them on stderr, writes no \
                        table, and exits with status 4.\n\n\
                        The results of units ('grundy units') are combined in the same way: those of a survey into \
                        the table of the whole survey, those of a verification into one verdict, with exit status 3 \
                        if a check failed, also if other results are missing. A unit that met a damaged file \
                        ('grundy unit' exits with status 3 and names it) has no result, and its values get no verdict. Two results of one unit that \
                        contradict each other are an error.\n\n\
                        JSON keys of a verdict: game digest count level verdict ranges checked units expected wrong \
                        kernels programs machines spent; 'verdict' is passed, failed or incomplete")]
pub(crate) struct Args {
    /// Survey directories, or directories of units that have the same plan.
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// Format of the table.
    #[arg(long, value_enum, default_value = "markdown")]
    format: Format,
    /// File to write; '-' is stdout [default: stdout].
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Same as --format jsonl.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Write the table of the available results even if others are missing.
    #[arg(long)]
    partial: bool,
}

pub(crate) fn merge(args: &Args) -> Result<ExitCode> {
    let dirs: Vec<&Path> = args.dirs.iter().map(PathBuf::as_path).collect();
    let format = if args.json { Format::Jsonl } else { args.format };
    for dir in &dirs {
        refuse_missing(dir)?;
    }
    if let Some(output) = args.output.as_ref().filter(|output| output.as_path() != Path::new("-")) {
        refuse_results(output, &dirs)?;
    }
    let has_units = |dir: &&&Path| units::Plan::exists(dir);
    if let Some(of_units) = dirs.iter().find(has_units) {
        if let Some(other) = dirs.iter().find(|dir| !units::Plan::exists(dir)) {
            return Err(anyhow!(
                "{} has a plan of units, and {} has none; merge units and surveys separately",
                printable(of_units),
                printable(other)
            ));
        }
        return merge_units(&dirs, format, args);
    }
    let collection = survey::collect(&dirs)?;
    for dir in &collection.unplanned {
        let dir = dir.display();
        complain!("grundy: warning: {dir}: no plan (survey.plan), so merge cannot tell whether records are missing");
    }
    collection.uneven().iter().for_each(|line| complain!("grundy: warning: {line}"));
    let missing = collection.missing();
    if missing.games > 0 {
        list_records(&missing, args.partial);
        if !args.partial {
            return Ok(ExitCode::from(super::INCOMPLETE));
        }
    }
    note_versions(&collection.records);
    write(&format.text(collection.records.values())?, args)?;
    Ok(ExitCode::SUCCESS)
}

/// Notes that records were written by several versions of the program.
fn note_versions<K>(records: &BTreeMap<K, Record>) {
    let versions: BTreeSet<&str> = records.values().map(|record| record.program.as_str()).collect();
    if versions.len() > 1 {
        let versions: Vec<&str> = versions.into_iter().collect();
        note(&format!("{} versions of the program wrote these records: {}", versions.len(), versions.join("; ")));
    }
}

/// Refuses a path that is not a directory.
fn refuse_missing(dir: &Path) -> Result<()> {
    let what = match dir.metadata() {
        Ok(there) if there.is_dir() => return Ok(()),
        Ok(_) => "not a directory",
        Err(error) if error.kind() == ErrorKind::NotFound => "no such directory",
        Err(error) => return Err(anyhow!("{}: {error}", printable(dir))),
    };
    Err(anyhow!("{}: {what}; give a directory that 'grundy survey' or 'grundy unit' wrote", printable(dir)))
}

/// Refuses an output file in one of the directories that are merged, unless its name cannot be that of a result.
fn refuse_results(output: &Path, dirs: &[&Path]) -> Result<()> {
    let extension = output.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(parent) = parent.canonicalize() else { return Ok(()) };
    let Some(dir) = dirs.iter().find(|dir| dir.canonicalize().is_ok_and(|dir| dir == parent)) else { return Ok(()) };
    let (allowed, suffixes) = if units::Plan::exists(dir) {
        (&["csv", "json", "md", "txt"][..], ".md, .csv, .json or .txt")
    } else {
        (&["csv", "md", "txt"][..], ".md, .csv or .txt")
    };
    if allowed.contains(&extension) {
        return Ok(());
    }
    Err(anyhow!(
        "writing {}: {} contains the results that are merged; choose another directory, or a name that ends in \
         {suffixes}",
        printable(output),
        printable(dir)
    ))
}

/// Lists the missing results of surveys on stderr.
fn list_records(missing: &Missing, partial: bool) {
    let (kind, what) = if partial {
        ("warning", ":")
    } else {
        ("error", "; no table is written. Complete the surveys, or use --partial. Missing:")
    };
    complain!("grundy: {kind}: {} of {} results are missing{what}", missing.games, missing.expected);
    for line in missing.lines.iter().take(MAX_LISTED) {
        complain!("  {line}");
    }
    if missing.lines.len() > MAX_LISTED {
        complain!("  and {} more lines", missing.lines.len() - MAX_LISTED);
    }
}

/// Combines the results of directories of units: the table of a survey, or the verdict of a verification.
fn merge_units(dirs: &[&Path], format: Format, args: &Args) -> Result<ExitCode> {
    let joined = units::join(dirs)?;
    let verdict = joined.verdict();
    let wrong = verdict.as_ref().map_or(&[][..], |verdict| &verdict.wrong);
    wrong.iter().for_each(|why| complain!("grundy: error: {why}"));
    let failed = !wrong.is_empty();
    if !joined.missing.is_empty() {
        list_units(&joined, args.partial || failed);
        if !args.partial && !failed {
            return Ok(ExitCode::from(super::INCOMPLETE));
        }
    }
    let text = match &verdict {
        None => {
            let records = joined.records();
            note_versions(&records);
            format.text(records.values())?
        }
        Some(verdict) => verdict_text(verdict, format)?,
    };
    write(&text, args)?;
    Ok(if failed { ExitCode::from(3) } else { ExitCode::SUCCESS })
}

/// A verdict in a format.
fn verdict_text(verdict: &Verdict, format: Format) -> Result<String> {
    match format {
        Format::Jsonl => return Ok(serde_json::to_string(verdict)? + "\n"),
        Format::Csv => return Err(Usage("a verification has no table; use --json, or no --format".into()).into()),
        Format::Markdown => {}
    }
    let Verdict { game, digest, count, level, checked, units, expected, .. } = verdict;
    let ranges: Vec<String> = verdict.ranges.iter().map(|(from, to)| format!("{from}..{to}")).collect();
    let shown = if ranges.is_empty() { "nothing".into() } else { ranges.join(", ") };
    let (checked, what) = (counted(*checked, "values"), verdict.verdict);
    Ok(fitted(&format!(
        "{game}: level {level} {what}: {shown} of 0..{count} in {units} of {}, {checked} compared or computed again, \
         {:.0} s of processor time on {}; digest {digest}\n",
        counted(*expected, "units"),
        verdict.spent.cpu,
        counted(verdict.machines.len() as u64, "processor models"),
    )))
}

/// Lists the missing units on stderr.
fn list_units(joined: &Joined, partial: bool) {
    let (kind, what) = if partial {
        ("warning", ":")
    } else {
        (
            "error",
            "; nothing is written. Do them ('grundy units --missing DIR...' lists all), or use --partial. Missing:",
        )
    };
    let (missing, expected) = (joined.missing.len(), joined.expected);
    complain!("grundy: {kind}: {missing} of {expected} units are missing{what}");
    for name in joined.missing.iter().take(MAX_LISTED) {
        complain!("  {name}");
    }
    if missing > MAX_LISTED {
        complain!("  and {} more", missing - MAX_LISTED);
    }
}

/// Writes the table or the verdict to the file of `-o`, or to stdout.
fn write(text: &str, args: &Args) -> Result<()> {
    match &args.output {
        Some(path) => {
            super::output::whole_file(path, |out| Ok(out.write_all(text.as_bytes())?))?;
            if path != Path::new("-") {
                note(&format!("wrote {}", printable(path)));
            }
            Ok(())
        }
        None => super::output::print(|out| Ok(out.write_all(text.as_bytes())?)),
    }
}

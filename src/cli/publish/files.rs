//! The tables and pictures of a publication.

use super::RECORDS;
use crate::cli::find;
use crate::cli::layout;
use crate::cli::output;
use crate::cli::progress::{Meter, note};
use crate::cli::signals::{self, Stopped};
use anyhow::{Context, Result};
use grundy::find::Question;
use grundy::publish::Manifest;
use grundy::run::RunReader;
use grundy::solver::SparseSpace;
use grundy::theory::definition::Sequence;
use std::path::Path;
use std::process::{Command, Stdio};

/// Maximum number of values in the b-file.
const BFILE: u64 = 10_001;

/// Kinds of pictures, as `python3 -m grundy plot` names them.
const PICTURES: [&str; 3] = ["density", "records", "histogram"];

/// Writes the tables of a run into a directory, and adds their names.
pub(super) fn tables(
    run: &RunReader,
    manifest: &Manifest,
    (dir, names): (&Path, &mut Vec<String>),
    quiet: bool,
) -> Result<()> {
    let meter = Meter::new(quiet);
    let count = run.len();
    let space = run.space();
    let mut questions = vec![(RECORDS, Question::Records), ("histogram.csv", Question::Histogram)];
    if space != SparseSpace::NONE {
        questions.push(("rares.csv", Question::Rare(space)));
    }
    for (name, question) in questions {
        names.push(name.to_owned());
        let show = |n| meter.phase("searching", n, count);
        output::whole_file(&dir.join(name), |out| find::csv_of_run(run, &question, show, out))?;
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
pub(super) fn pictures(run: &Path, (dir, names): (&Path, &mut Vec<String>)) -> Result<()> {
    let before = names.len();
    // A drawing that is interrupted leaves its files there; they vanish with the directory.
    let desk = tempfile::Builder::new().prefix(output::TEMPORARY).tempdir_in(dir).context("making a directory")?;
    let python = std::env::var_os("GRUNDY_PYTHON").filter(|name| !name.is_empty()).unwrap_or_else(|| "python3".into());
    for kind in PICTURES {
        let name = format!("{kind}.png");
        let mut command = Command::new(&python);
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
        let python = layout::printable(Path::new(&python));
        note(&format!("no pictures: the Python package, or matplotlib, is not installed for {python}"));
    }
    Ok(())
}

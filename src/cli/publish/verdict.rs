//! The verdict of `grundy merge --json` on a check of the run that is published.

use crate::cli::input;
use crate::cli::layout::counted;
use crate::cli::published::{MAX_BYTES, damage};
use anyhow::{Result, bail};
use grundy::error::printable;
use grundy::publish::Manifest;
use indicatif::HumanCount;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// What a verdict of `grundy merge --json` states. The fields that begin with `_` are checked but not used.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Verdict {
    game: String,
    digest: String,
    count: u64,
    level: String,
    verdict: String,
    ranges: Vec<(u64, u64)>,
    checked: u64,
    units: u64,
    expected: u64,
    wrong: Vec<String>,
    #[serde(rename = "kernels")]
    _kernels: Vec<Line>,
    #[serde(rename = "programs")]
    _programs: Vec<Line>,
    #[serde(rename = "machines")]
    _machines: Vec<Line>,
    #[serde(rename = "spent")]
    _spent: BTreeMap<String, f64>,
}

/// A short line of printable ASCII.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Line;

impl TryFrom<String> for Line {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Line, Self::Error> {
        let is_short = (1..=256).contains(&text.len());
        let is_line = is_short && text.bytes().all(|c| c == b' ' || c.is_ascii_graphic());
        if is_line { Ok(Line) } else { Err("a text is not a short line of printable ASCII") }
    }
}

impl Verdict {
    pub(super) fn of(verdict: &serde_json::Value) -> Result<Verdict, String> {
        let verdict = Verdict::deserialize(verdict).map_err(|error| error.to_string())?;
        let is_level = matches!(&*verdict.level, "exclusion" | "recompute" | "definition");
        if !is_level || !matches!(&*verdict.verdict, "passed" | "failed" | "incomplete") {
            return Err("its level or its verdict is unknown".into());
        }
        let ends: Vec<u64> = verdict.ranges.iter().flat_map(|&(from, to)| [from, to]).collect();
        let is_ascending = ends.is_sorted() && ends.last().is_none_or(|&to| to <= verdict.count);
        // Only level definition takes a sample.
        let are_checked = |covered: u64| match &*verdict.level {
            "definition" => verdict.checked <= covered,
            _ => verdict.checked == covered,
        };
        if !is_ascending || !are_checked(verdict.ranges.iter().map(|(from, to)| to - from).sum()) {
            return Err("its ranges, its count and the number of checked values contradict each other".into());
        }
        let is_whole = verdict.units > 0 && verdict.units == verdict.expected && verdict.ranges == [(0, verdict.count)];
        if verdict.wrong.is_empty() && (verdict.verdict == "passed") != is_whole {
            return Err("its verdict does not follow from its units and ranges".into());
        }
        Ok(verdict)
    }

    /// What was checked, as an item of a list.
    pub(super) fn item(&self) -> String {
        let ranges = self.ranges.iter().map(|&(from, to)| format!("{}..{}", HumanCount(from), HumanCount(to)));
        let (ranges, checked) = (ranges.collect::<Vec<_>>().join(", "), counted(self.checked, "values"));
        let (level, all) = (&self.level, counted(self.count, "values"));
        format!("- checked at level {level}: {checked} in {ranges}, in a run of {all}\n")
    }
}

/// Reads a verdict and checks that it states a digest of this run, and no failed check.
pub(super) fn read(path: &Path, manifest: &Manifest) -> Result<serde_json::Value> {
    let text = input::read_text(path, MAX_BYTES)?;
    let not_one = |why: &str| damage(path, &format!("not a verdict: {}", printable(why)));
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|e| not_one(&e.to_string()))?;
    if value.get("verdict").is_none() {
        bail!("{}: this is no verdict of a check; 'grundy merge --json' writes one", path.display());
    }
    let verdict = Verdict::of(&value).map_err(|why| not_one(&why))?;
    let is_stated = |(at, there): &(u64, String)| (*at, there) == (verdict.count, &verdict.digest);
    if verdict.game != manifest.game || !manifest.points.iter().any(is_stated) {
        bail!("{}: this is not the verdict of a check of this run; 'grundy merge --json' writes one", path.display());
    }
    if verdict.verdict == "failed" || !verdict.wrong.is_empty() {
        let why = verdict.wrong.first().map_or_else(String::new, |why| format!(" ({})", printable(why)));
        bail!("{}: a check of this run failed{why}; verify the run, and do not publish wrong values", path.display());
    }
    if verdict.checked == 0 {
        bail!("{}: this verdict has checked no value; do the units of its plan first", path.display());
    }
    if manifest.verified.contains(&value) {
        bail!("{}: this verdict is given twice; name each once", path.display());
    }
    Ok(value)
}

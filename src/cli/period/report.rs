//! What `grundy period` prints about a search: one JSON object, or sentences.

use super::Ending;
use grundy::period::{Finding, Proof, Repeat, Stopped, Theorem};
use grundy::theory::rule::Rule;
use indicatif::HumanCount;
use serde::Serialize;
use std::fmt;

/// Maximum number of exceptions listed in words.
const LISTED_IN_WORDS: usize = 20;

/// The object of `period --json`: one field per key. Unknown numbers are null.
#[derive(Debug, Default, Serialize)]
pub(in crate::cli) struct Object<'a> {
    pub(in crate::cli) game: &'a str,
    pub(in crate::cli) status: String,
    pub(in crate::cli) period: Option<u64>,
    pub(in crate::cli) preperiod: Option<u64>,
    pub(in crate::cli) max_value: Option<u16>,
    pub(in crate::cli) theorem: Option<Theorem>,
    pub(in crate::cli) checked_through: u64,
    pub(in crate::cli) preperiod_at_most: Option<u64>,
    pub(in crate::cli) saltus: Option<u16>,
    pub(in crate::cli) needed: Option<u64>,
    pub(in crate::cli) exceptions: Option<u64>,
    pub(in crate::cli) exception_heaps: Option<&'a [u64]>,
    pub(in crate::cli) searched_end: Option<u64>,
    pub(in crate::cli) searched_from: u64,
}

/// The result of a search, as it is printed.
pub(super) struct Report<'a> {
    pub(super) rule: &'a Rule,
    pub(super) finding: &'a Finding,
    pub(super) ending: Ending,
    /// The number of exceptions and the first of them, if they are known.
    pub(super) exceptions: Option<(u64, Vec<u64>)>,
}

impl Report<'_> {
    /// The object of `--json`.
    pub(super) fn object(&self) -> Object<'_> {
        let finding = self.finding;
        let repeat = finding.repeat.as_ref();
        let is_proved = repeat.is_some_and(|repeat| repeat.proof.is_some());
        Object {
            game: self.rule.name(),
            status: if self.ending == Ending::Done { finding.status().to_string() } else { "stopped".into() },
            period: repeat.map(|repeat| repeat.period),
            preperiod: repeat.filter(|repeat| repeat.exact).map(|repeat| repeat.preperiod),
            max_value: Some(finding.max_value),
            theorem: repeat.and_then(|repeat| repeat.proof.as_ref()).map(|proof| proof.theorem),
            checked_through: finding.count,
            preperiod_at_most: repeat.map(|repeat| repeat.preperiod),
            saltus: repeat.map(|repeat| repeat.saltus),
            needed: if is_proved { None } else { finding.needed(self.rule) },
            exceptions: self.exceptions.as_ref().map(|exceptions| exceptions.0),
            exception_heaps: self.exceptions.as_ref().map(|exceptions| exceptions.1.as_slice()),
            searched_end: finding.unseen_end.filter(|_| repeat.is_none()),
            searched_from: finding.start,
        }
    }

    /// How the search ended, in words.
    fn status(&self) -> String {
        match self.ending {
            Ending::Done => self.finding.status().to_string(),
            Ending::Stopped { what: Stopped::Searching, to } => {
                let so_far = if self.finding.repeat.is_some() { "observed so far" } else { "no period so far" };
                format!("stopped after {} of {} values; {so_far}", HumanCount(self.finding.count), HumanCount(to))
            }
            Ending::Stopped { what: Stopped::Preperiod, .. } => {
                "stopped before the least preperiod and the data of the certificate were complete; proved".into()
            }
        }
    }

    /// The sentences about a repetition.
    fn write_repeat(&self, f: &mut fmt::Formatter<'_>, repeat: &Repeat) -> fmt::Result {
        let rule = self.rule;
        let status = self.status();
        let Repeat { period, preperiod, exact, saltus, proof } = repeat;
        let end = HumanCount(self.finding.count - period);
        let [period, preperiod] = [*period, *preperiod].map(HumanCount);
        if *saltus > 0 {
            writeln!(f, "{rule}: {status}: G(n + {period}) = G(n) + {saltus} for {preperiod} <= n < {end}")?;
            return self.write_exceptions(f);
        }
        let at_most = if *exact { "" } else { "at most " };
        let largest = self.finding.max_value;
        writeln!(f, "{rule}: {status}: period {period}, preperiod {at_most}{preperiod}, largest value {largest}")?;
        self.write_exceptions(f)?;
        match proof {
            Some(proof) => self.write_proof(f, repeat, proof),
            None => self.write_observation(f, repeat),
        }
    }

    fn write_exceptions(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((count, positions)) = &self.exceptions else { return Ok(()) };
        if *count == 0 {
            return Ok(());
        }
        let list: Vec<String> = positions.iter().take(LISTED_IN_WORDS).map(u64::to_string).collect();
        let more = if *count > list.len() as u64 { ", …" } else { "" };
        let noun = if *count == 1 { "exception" } else { "exceptions" };
        writeln!(f, "  {} {noun}: {}{more}", HumanCount(*count), list.join(", "))
    }

    /// What a repetition without a proof shows, and how many values suffice for a proof.
    fn write_observation(&self, f: &mut fmt::Formatter<'_>, repeat: &Repeat) -> fmt::Result {
        let end = HumanCount(self.finding.count - repeat.period);
        let [period, preperiod] = [repeat.period, repeat.preperiod].map(HumanCount);
        write!(f, "  G(n + {period}) = G(n) for {preperiod} <= n < {end}; this is no proof")?;
        match self.finding.needed(self.rule) {
            Some(needed) => {
                writeln!(f, ". If the repetition lasts, {} values suffice for one: --to {needed}", HumanCount(needed))
            }
            None => writeln!(f),
        }
    }

    /// The theorem of a proof and the values that it uses.
    fn write_proof(&self, f: &mut fmt::Formatter<'_>, repeat: &Repeat, proof: &Proof) -> fmt::Result {
        let rule = self.rule;
        let Repeat { period, exact, .. } = repeat;
        let preperiod = HumanCount(repeat.preperiod);
        let by = match proof.theorem {
            Theorem::P1 => "P1 (Guy and Smith)",
            Theorem::P2 => "P2 (Grundy's game)",
            Theorem::P3 => "P3 (splits with a minimum difference)",
            Theorem::P4 => "P4 (windows)",
        };
        match (exact, self.finding.count.checked_sub(*period)) {
            (true, _) if self.finding.copies.is_some() => {
                writeln!(f, "  proved by {by}: G(n + {}) = G(n) for all n from {preperiod} on", HumanCount(*period))?;
            }
            (true, Some(end)) => writeln!(
                f,
                "  proved by {by}: G(n + {}) = G(n) was compared for all n from {preperiod} to {}",
                HumanCount(*period),
                HumanCount(end.saturating_sub(1))
            )?,
            _ => {
                write!(
                    f,
                    "  proved by {by}, from {preperiod} on; the values that determine the preperiod have been freed"
                )?;
                if proof.window.is_some() {
                    write!(f, " ('grundy period {rule} --dir DIR' computes them again)")?;
                }
                writeln!(f)?;
            }
        }
        match proof.window {
            Some(w) => writeln!(
                f,
                "  the {} values before {} and {} agree; no position between them is rare (the last of {} rare \
                 positions is {}), and the witness depth is at most {}",
                HumanCount(w.width(rule)),
                HumanCount(w.from),
                HumanCount(w.to),
                HumanCount(w.rare_positions),
                HumanCount(w.last_rare),
                HumanCount(w.depth)
            ),
            None => writeln!(
                f,
                "  {} values suffice for this proof ({} searched)",
                HumanCount(proof.length),
                HumanCount(self.finding.count)
            ),
        }
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(repeat) = &self.finding.repeat {
            return self.write_repeat(f, repeat);
        }
        write!(f, "{}: {}", self.rule, self.status())?;
        if self.ending == Ending::Done {
            write!(f, ": {}", no_period(self.finding))?;
        }
        writeln!(f)
    }
}

/// Which values were searched without finding a period.
fn no_period(finding: &Finding) -> String {
    let Finding { max_value, unseen_end, start, .. } = *finding;
    let count = HumanCount(finding.count);
    let Some(end) = unseen_end.map(HumanCount) else {
        return format!("no period: a search needs more than {count} values");
    };
    match start {
        0 => {
            format!("no period in {count} values (largest {max_value}): the last {end} values do not occur earlier")
        }
        _ => format!(
            "no period in {count} values (largest {max_value}), of which only those from n = {} on are kept and \
             were searched: the last {end} values do not occur earlier among them",
            HumanCount(start)
        ),
    }
}

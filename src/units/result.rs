//! The result of a unit: its lines, and their checks.

use super::machine::{Spent, host};
use super::unit::{Level, Task, Unit, VerifyWork, Work};
use crate::checkpoint::machine::class;
use crate::error;
use crate::survey::{Record, contradiction, is_program, printable};
use crate::verify;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::SystemTime;

/// Maximum length of a result, in bytes.
pub(super) const MAX_BYTES: u64 = 1 << 30;

/// The name of the file of a complete unit.
pub(super) fn result_name(unit: &str) -> String {
    format!("{unit}.jsonl")
}

/// Value of the field `format` of a result.
const FORMAT: &str = "grundy-unit-2";

/// The same in results of earlier versions, which have no seals.
const EARLIER: &str = "grundy-unit-1";

/// Maximum length of the statement that a value is wrong, in bytes.
const LONGEST_STATEMENT: usize = 4096;

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Line {
    Unit(Head),
    Session(Session),
    Record(Box<TimedRecord>),
    Check(Check),
    /// Another process can continue after this line.
    Seal(End),
    End(End),
}

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    format: String,
    name: String,
}

impl Head {
    pub(super) fn of(unit: &Unit) -> Head {
        Head { format: FORMAT.into(), name: unit.name.clone() }
    }

    pub(super) fn is_of(&self, unit: &Unit) -> bool {
        self.format == FORMAT && self.name == unit.name
    }
}

/// A record of a survey, and the times when it was complete.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TimedRecord {
    pub(super) spent: Spent,
    pub(super) record: Record,
}

/// A process that worked on the unit; the lines that follow it are its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// Name and version of the program.
    pub program: String,
    /// The kernel that computed values, or `definition`.
    pub kernel: String,
    /// The class of the machine: its architecture and processor.
    pub machine: String,
    /// The name of the host.
    pub host: String,
    /// Number of threads.
    pub threads: u64,
    /// When it began, in seconds since 1970.
    pub time: u64,
    /// Processor time before it began to compute, in seconds: the division of the games takes most of it.
    #[serde(default)]
    pub startup: f64,
}

impl Session {
    pub(super) fn now(kernel: &str, threads: usize, startup: f64) -> Session {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Session {
            program: crate::PROGRAM.into(),
            kernel: kernel.into(),
            machine: class().into(),
            host: host(),
            threads: threads as u64,
            time: time.as_secs(),
            startup,
        }
    }
}

/// The result of a check of a range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Canonical name of the game.
    pub game: String,
    /// Digest of the run.
    pub digest: String,
    /// Number of values of the run that have this digest.
    pub count: u64,
    /// The level.
    pub level: String,
    /// First n checked.
    pub from: u64,
    /// One past the last n checked.
    pub to: u64,
    /// Number of values compared (level exclusion) or recomputed; 0 if the check failed.
    pub checked: u64,
    /// The kernel that computed values again, `definition`, or null.
    pub kernel: Option<String>,
    /// The statement that a value is wrong; null if the check passed.
    pub wrong: Option<String>,
}

impl Check {
    /// Whether this is a check of a unit of this plan.
    fn fits(&self, work: &VerifyWork, range: &std::ops::Range<u64>) -> bool {
        let run = (&self.game, &self.digest, self.count) == (&work.game, &work.digest, work.count);
        let extent = self.level == work.level.name() && (self.from, self.to) == (range.start, range.end);
        let (checked, has_kernel) = match work.level {
            Level::Exclusion => (range.end - range.start, false),
            Level::Recompute => (range.end - range.start, true),
            Level::Definition { samples, seed } => (verify::sampled(range, samples, seed).len() as u64, true),
        };
        let is_complete = match self.wrong {
            Some(_) => self.checked == 0,
            None => self.checked == checked && self.kernel.is_some() == has_kernel,
        };
        run && extent && is_complete
    }
}

/// The last line, and each line after which another process can continue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// Number of lines before this one.
    pub lines: u64,
    /// The times of the unit so far, over all processes that worked on it.
    pub spent: Spent,
    /// BLAKE3 hash of all bytes before this line, as 64 hexadecimal digits.
    pub digest: String,
}

/// The complete result of a unit.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitResult {
    /// The name of the unit.
    pub name: String,
    /// The processes that worked on it, at least one.
    pub sessions: Vec<Session>,
    /// The records of a survey unit.
    pub records: Vec<Record>,
    /// The check of a verification unit.
    pub check: Option<Check>,
    /// The last line.
    pub end: End,
}

impl UnitResult {
    /// Parses the bytes of a file; the error is a sentence that states what is wrong.
    ///
    /// # Errors
    /// When the bytes are not those that a unit writes.
    pub fn parse(bytes: &[u8]) -> Result<UnitResult, String> {
        let mut lines = Vec::new();
        let mut before = 0;
        let mut end_at = 0;
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            let number = lines.len() + 1;
            if !line.ends_with(b"\n") {
                return Err(format!("line {number} has no end"));
            }
            let parsed: Line = serde_json::from_slice(line).map_err(|e| {
                let what = printable(&e.to_string());
                format!("line {number}: {what}")
            })?;
            lines.push(parsed);
            end_at = before;
            before += line.len();
        }
        let mut lines = lines.into_iter();
        let Some(Line::Unit(head)) = lines.next() else { return Err("the first line names no unit".into()) };
        if ![FORMAT, EARLIER].contains(&head.format.as_str()) {
            return Err(format!("its format is '{}', not '{FORMAT}'", printable(&head.format)));
        }
        let Some(Line::End(end)) = lines.next_back() else { return Err("the last line is missing".into()) };
        if end.lines != 1 + lines.len() as u64 {
            return Err(format!("the last line states {} lines before it, not {}", end.lines, 1 + lines.len()));
        }
        if end.digest != blake3::hash(&bytes[..end_at]).to_string() {
            return Err("the lines do not have the hash that the last one states".into());
        }
        let mut result = UnitResult { name: head.name, sessions: Vec::new(), records: Vec::new(), check: None, end };
        for line in lines {
            match line {
                Line::Session(session) => result.sessions.push(session),
                Line::Record(timed) => result.records.push(timed.record),
                Line::Check(check) if result.check.is_none() => result.check = Some(check),
                Line::Seal(_) => {}
                _ => return Err("the lines are not in the order of a result".into()),
            }
        }
        if result.sessions.is_empty() || !result.end.spent.is_valid() {
            return Err("it states no process or no valid times".into());
        }
        if !result.has_plain_texts() {
            return Err("a text is not a short line of printable characters".into());
        }
        Ok(result)
    }

    /// Whether no text could change a terminal on which a message shows it.
    fn has_plain_texts(&self) -> bool {
        let session = |session: &Session| {
            let Session { program, kernel, machine, host, startup, .. } = session;
            [program, kernel, machine].into_iter().all(|text| is_program(text))
                && (host.is_empty() || is_program(host))
                && startup.is_finite()
        };
        let check = |check: &Check| {
            let is_plain = |why: &String| error::printable(why) == *why && why.len() <= LONGEST_STATEMENT;
            check.kernel.as_ref().is_none_or(|kernel| is_program(kernel)) && check.wrong.as_ref().is_none_or(is_plain)
        };
        self.sessions.iter().all(session) && self.check.as_ref().is_none_or(check)
    }

    /// Whether the unit of a file's name is that of this result: `UNIT.jsonl`, or `UNIT.WORD.jsonl` for another result.
    pub(super) fn is_named(&self, file: &str) -> bool {
        let rest = file.strip_prefix(&self.name).unwrap_or_default();
        file == result_name(&self.name) || (rest.starts_with('.') && rest.ends_with(".jsonl"))
    }

    /// Checks that the result is one of this unit; the error is a sentence that states what is wrong.
    pub(super) fn require(&self, unit: &Unit, work: &Work) -> Result<(), String> {
        match (&unit.task, work) {
            (Task::Survey(games), Work::Survey(work)) => {
                let expected: BTreeSet<&str> = games.iter().map(|rule| rule.name()).collect();
                let found: BTreeSet<&str> = self.records.iter().map(|record| record.game.as_str()).collect();
                if expected != found || self.records.len() != games.len() || self.check.is_some() {
                    return Err("its records are not those of the games of the unit".into());
                }
                self.records.iter().try_for_each(|record| fits(record, work.to))
            }
            (Task::Verify(range), Work::Verify(work)) => {
                let fits = self.check.as_ref().is_some_and(|check| check.fits(work, range));
                let fits = fits && self.records.is_empty();
                if fits { Ok(()) } else { Err("its check is not that of the unit".into()) }
            }
            _ => Err("it is a result of other work".into()),
        }
    }

    /// Returns the processor time without that before the processes began to compute, in seconds.
    pub(super) fn computing_time(&self) -> f64 {
        self.end.spent.cpu - self.sessions.iter().map(|session| session.startup).sum::<f64>()
    }

    /// Returns the reason why two results of one unit cannot both be true.
    pub(super) fn contradiction(&self, other: &UnitResult) -> Option<String> {
        let records = self.records.iter().find_map(|one| {
            let two = other.records.iter().find(|two| two.game == one.game)?;
            contradiction(one, two).map(|why| format!("{}: {why}", one.game))
        });
        let checks = || match (&self.check, &other.check) {
            (Some(Check { wrong: Some(why), .. }), Some(Check { wrong: None, .. })) => Some(why.clone()),
            (Some(Check { wrong: None, .. }), Some(Check { wrong: Some(why), .. })) => {
                Some(format!("no value is wrong here, and there: {why}"))
            }
            (Some(one), Some(two)) if one.checked != two.checked => {
                Some(format!("{} and {} values were checked", one.checked, two.checked))
            }
            _ => None,
        };
        records.or_else(checks)
    }
}

/// Checks a record of a survey to this number of values; the error is a sentence that states what is wrong.
pub(super) fn fits(record: &Record, to: u64) -> Result<(), String> {
    record.is_sound().map_err(|why| format!("{}: {why}", printable(&record.game)))?;
    if record.to != to || record.time_limit.is_some() {
        return Err(format!("{}: the game was not examined as the plan says", record.game));
    }
    Ok(())
}

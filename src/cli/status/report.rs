//! The text of `grundy status DIR`: a label and a paragraph for each fact.

use super::pace::{self, Pace};
use super::{Examined, State, fault};
use crate::cli::colour::{ACTIVE, BAD, painted};
use crate::cli::layout::{counted, duration, machine_names, paragraph, size};
use crate::cli::values::known_period;
use crate::cli::{games, space};
use grundy::checkpoint::journal::{Origin, Record};
use grundy::error::printable;
use grundy::period::exclude::Excluded;
use grundy::solver::SparseSpace;
use grundy::table::Width;
use grundy::theory::catalogue::PeriodFact;
use grundy::theory::rule::Rule;
use indicatif::HumanCount;
use std::fmt;
use std::time::{Duration, SystemTime};

/// The lines of `status` for a run.
pub(super) struct Report<'a> {
    /// The run directory, fit to print.
    pub(super) dir: &'a str,
    pub(super) run: &'a Examined,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { dir, run } = self;
        let record = &run.contents.last;
        let lines = [
            ("directory", (*dir).to_owned()),
            ("game", game(record)),
            ("state", state(run)),
            ("values", values(record)),
            ("last commit", last_commit(run)),
            ("speed", speed(run)),
            ("computing time", format!("{}, over all processes", duration(Duration::from_secs(record.seconds)))),
            ("journal records", HumanCount(run.contents.records).to_string()),
            ("kept", kept(record)),
            ("table", width(record)),
            ("digest", record.digest.escape_default().to_string()),
            ("largest value", format!("{} at {}", record.max_value, HumanCount(record.max_at))),
            ("sparse space", sparse_space(record)),
            ("rare positions", rare_positions(record)),
            ("strategy", strategy(record)),
            ("periods", periods(record, run.excluded.as_ref())),
            ("proved", checks(record, PROVED)),
            ("rechecked", checks(record, RECHECKED)),
            ("failed checks", failed_checks(record)),
            ("computed on", computed_on(run)),
            ("confirmed", confirmed(run)),
            ("written by", format!("{}, kernel {}", record.program.escape_default(), record.kernel.escape_default())),
        ];
        for (name, value) in lines {
            f.write_str(&paragraph(name, &value))?;
        }
        if run.contents.torn.is_some() {
            f.write_str(&paragraph("note", "the last record is incomplete; the next run removes it"))?;
        }
        Ok(())
    }
}

/// The machines that computed the values.
fn computed_on(run: &Examined) -> String {
    let machines = Origin::machines(&run.contents.origins);
    if machines.is_empty() { "no machine yet".to_owned() } else { printable(&machine_names(&machines)) }
}

/// How far another computation gave the same digests.
fn confirmed(run: &Examined) -> String {
    match run.confirmed {
        Err(_) => painted(BAD, "unknown: the file of confirmations is damaged"),
        Ok(0) => {
            "no: no computation by another kernel on another machine is noted ('grundy compare --record')".to_owned()
        }
        Ok(values) => format!("{}, by another kernel on another machine", counted(values, "values")),
    }
}

/// The game, with the name that users know.
fn game(record: &Record) -> String {
    let rule = record.game.parse::<grundy::Rule>();
    rule.map_or_else(|_| record.game.escape_default().to_string(), |rule| games::with_name(&rule))
}

/// Whether a process writes the run, since when, and when it is expected to end.
fn state(run: &Examined) -> String {
    if let Some(error) = &run.damage {
        return painted(BAD, fault(error));
    }
    match &run.state {
        State::Running(holder) => {
            let age = holder.since.and_then(|since| run.now.duration_since(since).ok());
            let age = age.map_or_else(String::new, |age| format!(", for {}", duration(age)));
            format!("{} (pid {}{age}){}", painted(ACTIVE, "running"), holder.pid, goal(run, holder.to))
        }
        State::Stopped => "not running (stopped cleanly)".to_owned(),
        State::Interrupted => {
            "not running (the last process was interrupted; the next one resumes from the last commit)".to_owned()
        }
        State::Unknown(why) => format!("unknown: no process that writes the run is visible, but {why}"),
    }
}

/// The number of values that the process computes, and when it is expected to reach it.
fn goal(run: &Examined, to: Option<u64>) -> String {
    let Some(to) = to else { return String::new() };
    let end = run.end().map(|end| {
        let left = end.duration_since(run.now).unwrap_or_default();
        let (about, at) = if run.grows() { ("at least", "not before") } else { ("about", "at") };
        format!(" in {about} {}, {at} {}", duration(left), utc(end))
    });
    format!("; will end at {} values{}", HumanCount(to), end.unwrap_or_default())
}

/// When the last values were committed, and how long ago.
fn last_commit(run: &Examined) -> String {
    let Some(record) = &run.last_commit else { return "none among the last records".to_owned() };
    let Some(time) = pace::time(record) else { return record.time.escape_default().to_string() };
    match run.now.duration_since(time) {
        Ok(age) => format!("{} ago, at {}", duration(age), utc(time)),
        Err(_) => utc(time),
    }
}

/// Values per second over the last minutes.
fn speed(run: &Examined) -> String {
    match run.pace {
        Some(Pace { rate, over }) => {
            format!("{} values per second, over the last {} of computing", HumanCount(rate), duration(over))
        }
        None => "unknown; the last process has not computed long enough".to_owned(),
    }
}

/// A time, in seconds: `2026-11-23 22:50:03 UTC`.
pub(super) fn utc(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string().replace('T', " ").replace('Z', " UTC")
}

fn values(record: &Record) -> String {
    match record.count {
        0 => "0 (none is committed yet)".to_owned(),
        count => {
            let end = record.too_large.map_or_else(String::new, |n| {
                format!("; the run is complete, because G({}) is above {}", HumanCount(n), u16::MAX)
            });
            format!("{} (G(0) to G({})){end}", HumanCount(count), HumanCount(count - 1))
        }
    }
}

fn kept(record: &Record) -> String {
    let range = |(from, to): &(u64, u64)| format!("{}..{}", HumanCount(*from), HumanCount(*to));
    let ranges = record.kept.iter().map(range).collect::<Vec<String>>().join(" and ");
    let last = record.kept.last().map_or(0, |(from, to)| to - from);
    match record.keep {
        // After --keep was raised, the values that an earlier limit freed stay freed.
        Some(keep) if record.kept.len() > 1 && last < keep => {
            format!(
                "{ranges} (the first values and the last {}; later at least {})",
                HumanCount(last),
                HumanCount(keep)
            )
        }
        Some(keep) => format!("{ranges} (the first values, and at least the last {})", HumanCount(keep)),
        None => ranges,
    }
}

/// The length of the tables.
fn width(record: &Record) -> String {
    /// Length of an entry of the list of large values, in bytes.
    const ESCAPE: u64 = 10;
    let kept: u64 = record.kept.iter().map(|(from, to)| to - from).sum();
    match record.width {
        Width::U8 => {
            let size = size(kept.saturating_add(ESCAPE.saturating_mul(record.escapes)));
            format!("{size}: one byte per value (u8), and a list of {} from 255 on", counted(record.escapes, "values"))
        }
        Width::U16 => format!("{}: two bytes per value (u16)", size(kept.saturating_mul(2))),
    }
}

/// The sparse space, and what it is for.
fn sparse_space(record: &Record) -> String {
    space_of(record).map_or_else(|| "none: every position is rare".to_owned(), space::explained)
}

/// The number of rare positions, and which they are.
fn rare_positions(record: &Record) -> String {
    let Some(space) = space_of(record) else { return "all, because there is no sparse space".to_owned() };
    let (count, last) = (HumanCount(record.rares), HumanCount(record.last_rare));
    format!("{count}, the last at {last} ({})", space::which_are_rare(space))
}

fn space_of(record: &Record) -> Option<SparseSpace> {
    SparseSpace::new(&record.game.parse().ok()?, record.mask, record.position)
}

fn strategy(record: &Record) -> String {
    let strategy = record.strategy.as_deref().unwrap_or("not recorded; the next run records it");
    strategy.escape_default().to_string()
}

fn periods(record: &Record, excluded: Option<&Excluded>) -> String {
    let rule: Option<Rule> = record.game.parse().ok();
    if let Some(PeriodFact::Periodic { period, preperiod }) = rule.as_ref().and_then(known_period) {
        let [period, preperiod] = [period, preperiod].map(HumanCount);
        return format!("known to be {period}, from n = {preperiod} on ('grundy info')");
    }
    let Some(excluded) = excluded else { return "unknown, because the table cannot be read".to_owned() };
    let Excluded { non_multiples, least_left, examined, .. } = excluded;
    let Some(largest) = non_multiples.last() else {
        return format!("no period is ruled out by the zeros among the first {} values", HumanCount(*examined));
    };
    let (count, largest, examined) = (non_multiples.len(), HumanCount(*largest), HumanCount(*examined));
    format!(
        "the zeros among the first {examined} values rule out every divisor of {count} numbers, of which {largest} is the \
         largest; the smallest period that they do not rule out is {}",
        HumanCount(*least_left)
    )
}

/// A kind of check: its key in the record, and what it counts, in the singular and in the plural.
type Kind = (&'static str, &'static str, &'static str);

/// The checks that prove values.
const PROVED: &[Kind] = &[
    ("witnessed", "value by witnesses", "values by witnesses"),
    ("definition", "by the definition", "by the definition"),
];

/// The checks that repeat a computation.
const RECHECKED: &[Kind] = &[
    ("audited", "value by another kernel", "values by another kernel"),
    ("places", "by the definition", "by the definition"),
    ("settled", "new maximum from all pairs", "new maxima from all pairs"),
    ("walks", "value without a known witness, from all pairs", "values without a known witness, from all pairs"),
    ("memory", "memory check", "memory checks"),
    ("rehashed", "value hashed from the disk", "values hashed from the disk"),
    ("repaired", "damaged range restored", "damaged ranges restored"),
];

/// The numbers of checks of these kinds that the run has made.
fn checks(record: &Record, kinds: &[Kind]) -> String {
    let count = |(key, one, many): &Kind| {
        let number = record.checks.get(key).filter(|number| *number > 0)?;
        Some(format!("{} {}", HumanCount(number), if number == 1 { one } else { many }))
    };
    kinds.iter().filter_map(count).collect::<Vec<String>>().join(", ")
}

fn failed_checks(record: &Record) -> String {
    let mut text = record.errors.to_string();
    if record.errors > 0 {
        text = painted(BAD, &text)
            + "; what failed was computed again or restored; test the memory and the disk of this machine";
    }
    if let Some(n) = record.suspect {
        text += &format!("; G({n}) is suspect until it is recomputed");
    }
    text
}

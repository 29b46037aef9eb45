//! The speed of a run over the last minutes, from the last records of its journal.

use super::super::progress::seconds_left;
use grundy::checkpoint::journal::{Event, Record};
use std::time::{Duration, SystemTime};

/// Maximum computing time over which the speed is measured, in seconds.
const OVER: u64 = 300;

/// Minimum computing time over which the speed is measured, in seconds. Records state whole seconds.
const AT_LEAST: u64 = 4;

/// Maximum number of records that are read.
pub(super) const RECORDS: u64 = 1024;

/// A hundred years.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 86_400);

/// The speed of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    /// Values per second of computing time.
    pub(super) rate: u64,
    /// The computing time over which the rate was measured.
    pub(super) over: Duration,
}

/// The speed over the last [`OVER`] seconds of computing time, from the last records of a run. `None` if the records
/// since the last start or rollback cover too little time.
pub(super) fn pace(records: &[Record]) -> Option<Pace> {
    let last = records.last()?;
    let is_recent = |record: &&Record| last.seconds.saturating_sub(record.seconds) <= OVER;
    let mut first = last;
    for record in records.iter().rev().take_while(is_recent) {
        first = record;
        if matches!(record.event, Event::Open | Event::Rollback) {
            break;
        }
    }
    let seconds = last.seconds.saturating_sub(first.seconds);
    let values = last.count.saturating_sub(first.count);
    (seconds >= AT_LEAST && values > 0).then(|| Pace { rate: values / seconds, over: Duration::from_secs(seconds) })
}

/// The time of a record; `None` if it is not a time.
pub(super) fn time(record: &Record) -> Option<SystemTime> {
    humantime::parse_rfc3339(&record.time).ok()
}

/// When the run reaches `to` values: never before now. `None` if that takes more than a century. With `grows`
/// each value needs all pairs of heaps, and the result is a lower bound.
pub(super) fn end(last: &Record, grows: bool, pace: Pace, to: u64, now: SystemTime) -> Option<SystemTime> {
    let left = seconds_left(last.count, to, pace.rate.max(1) as f64, grows);
    let left = Duration::try_from_secs_f64(left).ok().filter(|&left| left < CENTURY)?;
    time(last)?.checked_add(left).map(|end| end.max(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use grundy::table::Width;

    fn records(points: &[(Event, u64, u64)]) -> Vec<Record> {
        let first = Record::first(&"grundy".parse().unwrap(), Width::U8);
        let record = |&(event, seconds, count)| Record { event, seconds, count, ..first.clone() };
        points.iter().map(record).collect()
    }

    #[test]
    fn rate_is_that_of_the_last_minutes_and_of_one_process() {
        use Event::{Close, Commit, Open, Rollback};
        let of = |points: &[_]| pace(&records(points)).map(|pace| (pace.rate, pace.over.as_secs()));
        assert_eq!(of(&[(Open, 0, 0), (Commit, 100, 1000), (Commit, 350, 1500), (Commit, 400, 4000)]), Some((10, 300)));
        assert_eq!(of(&[(Commit, 90, 9), (Open, 100, 1000), (Commit, 110, 6000), (Close, 110, 6000)]), Some((500, 10)));
        assert_eq!(of(&[(Commit, 90, 9000), (Rollback, 100, 1000), (Commit, 110, 6000)]), Some((500, 10)));
        assert_eq!(of(&[(Open, 7, 0), (Commit, 9, 1000)]), None, "too short");
        assert_eq!(of(&[(Open, 0, 50), (Commit, 60, 50)]), None, "no progress");
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn end_counts_from_the_last_record_and_is_not_in_the_past() {
        let mut last = records(&[(Event::Commit, 10, 1000)]).pop().unwrap();
        last.time = "2026-11-23T12:00:00Z".to_owned();
        let at = |text: &str| humantime::parse_rfc3339(text).unwrap();
        let pace = Pace { rate: 10, over: Duration::from_secs(10) };
        let end_at = |now| end(&last, false, pace, 1600, at(now));
        assert_eq!(end_at("2026-11-23T12:00:05Z"), Some(at("2026-11-23T12:01:00Z")));
        assert_eq!(end_at("2026-11-23T12:03:00Z"), Some(at("2026-11-23T12:03:00Z")));
        assert_eq!(end(&last, false, pace, u64::MAX, at("2026-11-23T12:00:05Z")), None, "far beyond a century");
    }
}

//! The text of a progress line: as many fields as fit the width.
//!
//! Invariant: the line never reaches the right margin, and leaves room for the `^C` that a terminal echoes, so that
//! clearing one line clears all of it.

use crate::cli::layout::{duration, scaled};
use indicatif::HumanCount;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ZonedDateTime};
use std::time::Duration;

/// Number of free columns at the right margin, for an echoed `^C` and the cursor.
const MARGIN: usize = 4;

/// Minimum and maximum number of columns of a bar.
const BAR: (usize, usize) = (10, 30);

/// Minimum and maximum number of characters of a name before it is cut.
const NAME: (usize, usize) = (8, 32);

/// The unit of a survey. Its games take very different times, and the easiest come first, so the time left is unknown.
pub(crate) const GAMES: &str = "games";

/// Time until the time left is estimated: work often begins slowly.
const SETTLED: Duration = Duration::from_secs(3);

/// Seconds of a day. The end of work that takes longer is shown as a date.
const DAY: f64 = 86_400.0;

/// Seconds after which the end of work is shown as a date without the time of day.
const FAR: f64 = 300.0 * DAY;

/// The state of some work at one moment.
pub(super) struct State<'a> {
    pub(super) name: &'a str,
    /// What is counted, in the plural.
    pub(super) unit: &'a str,
    pub(super) at: u64,
    /// The count at the end, if it is known.
    pub(super) to: Option<u64>,
    /// Whether `to` is only a limit, at which the work ends at the latest.
    pub(super) is_limited: bool,
    /// Whether a value costs time in proportion to its n, or more: each needs all pairs of heaps.
    pub(super) grows: bool,
    /// Counted units per second.
    pub(super) rate: Option<f64>,
    pub(super) elapsed: Duration,
    /// More fields, the most important first.
    pub(super) extras: Vec<String>,
}

/// How numbers are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `62,259,200 of 1,073,741,824 values`, `200,000/s`.
    Long,
    /// `62.3M of 1.07G`, `200 k/s`.
    Short,
}

impl State<'_> {
    /// Formats one line for a terminal of `width` columns: the name, the fields that fit, and a bar if there is room.
    pub(super) fn line(&self, width: usize) -> String {
        let room = width.saturating_sub(MARGIN);
        let essential = joined([self.percent(), self.rate(Form::Short), self.end()]);
        let name = cut(self.name, room.saturating_sub(length(&essential) + 1).clamp(NAME.0, NAME.1).min(room));
        let left = room - length(&name);
        let fields = |form| [self.percent(), Some(self.count(form)), self.rate(form), self.end()];
        let long = (0..=self.extras.len()).rev().map(|extras| {
            joined(fields(Form::Long).into_iter().chain(self.extras[..extras].iter().cloned().map(Some)))
        });
        let all: Vec<String> = long.chain([joined(fields(Form::Short)), essential]).collect();
        if let Some(part) = self.part()
            && let Some(text) = all.iter().find(|text| length(text) + BAR.0 + 2 <= left)
        {
            return format!("{name} {} {text}", bar(part, (left - length(text) - 2).min(BAR.1)));
        }
        let brief = [joined([self.percent(), self.rate(Form::Short)]), self.percent().unwrap_or_default()];
        let text = all.into_iter().chain(brief).find(|text| !text.is_empty() && length(text) < left);
        text.map_or_else(|| name.clone(), |text| format!("{name} {text}"))
    }

    /// Formats a line that says that the work is about to end, for a terminal of `width` columns.
    pub(super) fn stopping(&self, width: usize) -> String {
        let texts = [
            format!("{}: stopping …, at {}; a second Ctrl-C ends at once", self.name, self.count(Form::Long)),
            format!("{}: stopping …, at {}", self.name, self.count(Form::Short)),
        ];
        let room = width.saturating_sub(MARGIN);
        let text = texts.into_iter().find(|text| length(text) <= room);
        text.unwrap_or_else(|| "stopping …".chars().take(room).collect())
    }

    /// Formats a line of a log.
    pub(super) fn log(&self) -> String {
        let fields = [self.percent(), Some(self.count(Form::Long)), self.rate(Form::Long), self.end()];
        format!("{}: {}", self.name, joined(fields.into_iter().chain(self.extras.iter().cloned().map(Some))))
    }

    /// The fraction of the work that is done, 0 to 1.
    fn part(&self) -> Option<f64> {
        self.to.filter(|&to| to > 0).map(|to| self.at.min(to) as f64 / to as f64)
    }

    /// Rounded down, so that 100 % means done.
    fn percent(&self) -> Option<String> {
        let of = if self.is_limited { " of limit" } else { "" };
        self.part().map(|part| format!("{:.1} %{of}", (part * 1000.0).floor() / 10.0))
    }

    fn count(&self, form: Form) -> String {
        let number = |count| if form == Form::Long { HumanCount(count).to_string() } else { scaled(count as f64, "") };
        let to = self.to.filter(|_| !self.is_limited);
        let unit = if form == Form::Long || to.is_none() { format!(" {}", self.unit) } else { String::new() };
        match to {
            Some(to) => format!("{} of {}{unit}", number(self.at), number(to)),
            None => format!("{}{unit}", number(self.at)),
        }
    }

    fn rate(&self, form: Form) -> Option<String> {
        let rate = self.rate?;
        Some(match form {
            _ if rate < 1.0 / 60.0 => format!("{:.1}/h", 3600.0 * rate),
            _ if rate < 1.0 => format!("{:.1}/min", 60.0 * rate),
            _ if rate < 100.0 => format!("{rate:.1}/s"),
            Form::Long => format!("{}/s", HumanCount(rate as u64)),
            Form::Short => format!("{}/s", scaled(rate, " ")),
        })
    }

    /// The time that is left, or the date of the end if that is more than a day away. Without a known end, and for
    /// [`GAMES`], the time since the beginning.
    fn end(&self) -> Option<String> {
        let Some(to) = self.to.filter(|_| self.unit != GAMES) else {
            return Some(format!("{} so far", span(self.elapsed.as_secs_f64())));
        };
        let rate = self.rate.filter(|_| self.elapsed >= SETTLED)?;
        let seconds = seconds_left(self.at, to, rate, self.grows);
        let (sign, ends) = match (self.is_limited, self.grows) {
            (true, false) => ("≤ ", "ends before"),
            (false, true) => ("≥ ", "ends after"),
            _ => ("", "ends"),
        };
        if seconds < DAY {
            return Some(format!("{sign}{} left", span(seconds)));
        }
        let after = SignedDuration::try_from_secs_f64(seconds).ok();
        let end = after.and_then(|after| Timestamp::now().checked_add(after).ok());
        let Some(end) = end else { return Some("centuries left".into()) };
        Some(format!("{ends} {}", date(&local(end), seconds < FAR)))
    }
}

/// The time from the count `at` to the count `to`, in seconds. `rate` is the number of values per second now. With
/// `grows`, the time of a value is proportional to n: it is n / (`at` * `rate`).
pub(crate) fn seconds_left(at: u64, to: u64, rate: f64, grows: bool) -> f64 {
    let left = to.saturating_sub(at) as f64 / rate;
    if grows { left * (at as f64 + to as f64) / (2.0 * at.max(1) as f64) } else { left }
}

/// A time in the time zone of the system, or in UTC if that is unknown.
pub(crate) fn local(time: Timestamp) -> ZonedDateTime {
    time.to_zoned_datetime(TimeZone::try_system().unwrap_or(TimeZone::UTC))
}

/// `1 Dec 07:30 CET`, or `1 Dec 2031`.
pub(crate) fn date(time: &ZonedDateTime, with_time: bool) -> String {
    time.strftime(if with_time { "%-d %b %H:%M %Z" } else { "%-d %b %Y" }).to_string()
}

/// A duration of at most two units, rounded to minutes from ten minutes on.
fn span(seconds: f64) -> String {
    let unit = match seconds {
        ..600.0 => 1.0,
        ..DAY => 60.0,
        _ => 3600.0,
    };
    let seconds = (seconds / unit).round() * unit;
    duration(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

fn bar(part: f64, length: usize) -> String {
    let done = ((part * length as f64) as usize).min(length);
    "█".repeat(done) + &"░".repeat(length - done)
}

/// The first characters of a name, with … for those that are cut off. A character that may be wider than one column,
/// or none, becomes a question mark.
fn cut(name: &str, most: usize) -> String {
    let plain = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
    if length(name) <= most {
        return name.chars().map(plain).collect();
    }
    name.chars().map(plain).take(most.saturating_sub(1)).chain((most > 0).then_some('…')).collect()
}

fn joined(fields: impl IntoIterator<Item = Option<String>>) -> String {
    fields.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Number of columns.
fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(name: &str, at: u64, to: Option<u64>, rate: Option<f64>) -> State<'_> {
        let extras = ["largest value 234 at 3,653,177".into(), "1,274 rare positions".into()].into();
        State {
            name,
            unit: "values",
            at,
            to,
            is_limited: false,
            grows: false,
            rate,
            elapsed: Duration::from_secs(6),
            extras,
        }
    }

    #[test]
    fn line_never_reaches_the_margin() {
        let long = "0.1234567012345670123456701234567";
        for (name, width) in
            ["grundy", "period 0.777", long, "2×3"].into_iter().flat_map(|n| (0..300).map(move |w| (n, w)))
        {
            for (at, to) in [(0, Some(1 << 30)), (62_259_200, Some(1 << 30)), (1 << 40, Some(1 << 40)), (7, None)] {
                for rate in [None, Some(1e-9), Some(0.01), Some(12_345.0), Some(1e15)] {
                    let state = state(name, at, to, rate);
                    for line in [state.line(width), state.stopping(width)] {
                        assert!(length(&line) <= width.saturating_sub(MARGIN), "{width}: {line}");
                    }
                }
            }
        }
    }

    #[test]
    fn percent_rate_and_time_left_stand_on_60_columns() {
        for name in ["grundy", "period 0.777", "remove-square 3 of 7: 10x10"] {
            let near = state(name, 62_259_200, Some(1 << 30), Some(200_000.0)).line(60);
            for field in [" 5.7 %, ", " 200 k/s, ", " 1h 24m left"] {
                assert!(near.contains(field), "{near}");
            }
            let far = state(name, 62_259_200, Some(1 << 40), Some(200_000.0)).line(60);
            assert!(far.contains(" 0.0 %, 200 k/s, ends ") && far.contains(':'), "{far}");
        }
    }

    #[test]
    fn line_omits_the_least_important_fields_first() {
        let state = state("grundy", 62_259_200, Some(1 << 30), Some(200_000.0));
        assert_eq!(state.line(49), "grundy ░░░░░░░░░░ 5.7 %, 200 k/s, 1h 24m left");
        assert_eq!(state.line(48), "grundy 5.7 %, 200 k/s, 1h 24m left");
        let short = state.line(80);
        assert!(short.starts_with("grundy █░"), "{short}");
        assert!(short.ends_with("░ 5.7 %, 62.3M of 1.07G, 200 k/s, 1h 24m left") && length(&short) == 76, "{short}");
        let long = state.line(100);
        assert!(long.ends_with("░ 5.7 %, 62,259,200 of 1,073,741,824 values, 200,000/s, 1h 24m left"), "{long}");
        assert!(state.line(140).ends_with(" 1h 24m left, largest value 234 at 3,653,177"), "{}", state.line(140));
    }

    /// From n = 1000 to 3000 a value takes twice the time of the one at 1000, on average.
    #[test]
    fn time_left_grows_with_the_time_of_a_value() {
        let state = State { grows: true, ..state("x", 1000, Some(3000), Some(10.0)) };
        assert_eq!(state.end().unwrap(), "≥ 6m 40s left");
        assert!(State { rate: Some(0.001), ..state }.end().unwrap().starts_with("ends after "));
    }

    #[test]
    fn limit_is_not_shown_as_the_end() {
        let state = State { is_limited: true, unit: "positions", ..state("7x8", 1000, Some(100_000), Some(10.0)) };
        assert_eq!(state.line(60), "7x8 ░░░░░░░░░░░░░░ 1.0 % of limit, 10.0/s, ≤ 2h 45m left");
        assert!(state.line(90).ends_with("░ 1.0 % of limit, 1,000 positions, 10.0/s, ≤ 2h 45m left"));
    }

    #[test]
    fn percentage_is_rounded_down_and_unknown_rate_is_omitted() {
        assert_eq!(state("x", 999_999, Some(1_000_000), None).line(26), "x ████████████░ 99.9 %");
        assert!(state("x", 1 << 20, Some(1 << 20), None).line(60).contains(" 100.0 %"));
        assert_eq!(state("x", 5, None, None).line(30), "x 5 values, 6s so far");
    }

    #[test]
    fn time_left_is_not_estimated_from_the_first_seconds() {
        let state = state("x", 10, Some(1000), Some(10.0));
        assert_eq!(state.end().unwrap(), "1m 39s left");
        assert_eq!(State { elapsed: Duration::from_secs(2), ..state }.end(), None);
    }

    #[test]
    fn rates_below_one_per_second_are_not_shown_as_zero() {
        let rate = |rate| state("x", 5, Some(10), Some(rate)).rate(Form::Short).unwrap();
        assert_eq!([rate(0.001), rate(0.05), rate(3.21), rate(99.0)], ["3.6/h", "3.0/min", "3.2/s", "99.0/s"]);
        assert_eq!([rate(950.0), rate(1e6), rate(12_345.0)], ["950/s", "1 M/s", "12.3 k/s"]);
    }
}

//! `--for` and `--until`: stop a command cleanly at a time, as a signal does.

use super::duration;
use super::progress::{Meter, local};
use anyhow::{Context, Result};
use jiff::civil::{DateTime, Time};
use jiff::{SignedDuration, Timestamp, ToSpan, ZonedDateTime};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Maximum time between two readings of the clock; the system time may change meanwhile.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Options of commands that can be stopped.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Deadline {
    /// Stop cleanly after this time, as on Ctrl-C, with exit status 130; for example 90s, 30m, 8h, 2days.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration::duration, conflicts_with = "until")]
    duration: Option<Duration>,
    /// Stop cleanly at this local time, as on Ctrl-C, with exit status 130; 07:30 is the next 07:30, 2026-12-01T07:30
    /// a date and time. No time zone is accepted.
    #[arg(long, value_name = "TIME", value_parser = until)]
    until: Option<Until>,
}

/// The time of `--until`.
#[derive(Clone, Debug)]
pub(super) struct Until {
    typed: String,
    time: Timestamp,
}

impl Deadline {
    /// Sets `stop` when the time has come. Tells the user when that is.
    ///
    /// # Errors
    /// When the time is too far away, or no thread can be started.
    pub(super) fn arm(&self, stop: &Arc<AtomicBool>, meter: &Meter) -> Result<()> {
        let end = match (&self.duration, &self.until) {
            (Some(duration), _) => {
                let after = SignedDuration::try_from(*duration)?;
                Timestamp::now().checked_add(after).context("the time of --for is too long")?
            }
            (None, Some(until)) => until.time,
            (None, None) => return Ok(()),
        };
        let stop = Arc::clone(stop);
        let wait = move || {
            while let Ok(left) = Duration::try_from(end.duration_since(Timestamp::now()))
                && !left.is_zero()
            {
                std::thread::sleep(left.min(LOOK_EVERY));
            }
            stop.store(true, Ordering::Relaxed);
        };
        std::thread::Builder::new().spawn(wait).context("starting a thread for the time limit")?;
        meter.say(&format!("will stop at {}", local(end).strftime("%-d %b %Y %H:%M:%S %Z")));
        Ok(())
    }

    /// The options as words of a command line that is used later; without a date, which is then past.
    pub(super) fn words(&self) -> Option<String> {
        let duration = self.duration.map(|duration| {
            let text = humantime::format_duration(duration).to_string();
            format!("--for {}", text.replace(' ', ""))
        });
        let until = self.until.as_ref().filter(|until| !until.typed.contains('-'));
        duration.or_else(|| until.map(|until| format!("--until {}", until.typed)))
    }
}

fn until(text: &str) -> Result<Until, String> {
    let now = local(Timestamp::now());
    let time = moment(text, &now)?.timestamp();
    if time <= now.timestamp() {
        return Err("this time is past".to_owned());
    }
    Ok(Until { typed: text.to_owned(), time })
}

/// Advice on the form of a time.
const FORMS: &str = "write local times as 07:30 or 2026-12-01T07:30";

/// Parses a time of day, of which it returns the next after `now`, or a date and a time, in the time zone of `now`.
fn moment(text: &str, now: &ZonedDateTime) -> Result<ZonedDateTime, String> {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let nothing = |_| format!("there is no such date or time; {FORMS}");
    let beyond = |_| "this time is too late: the year 9999 is the last".to_owned();
    let time: Time = match shape.as_str() {
        "00:00" | "00:00:00" => text.parse().map_err(nothing)?,
        "0000-00-00T00:00" | "0000-00-00T00:00:00" | "0000-00-00 00:00" | "0000-00-00 00:00:00" => {
            let time: DateTime = text.parse().map_err(nothing)?;
            return time.to_zoned_datetime(now.time_zone().clone()).map_err(beyond);
        }
        _ => return Err(FORMS.to_owned()),
    };
    let at = |now: &ZonedDateTime| now.date().to_datetime(time).to_zoned_datetime(now.time_zone().clone());
    let today = at(now).map_err(beyond)?;
    if today > *now {
        return Ok(today);
    }
    now.checked_add(1.day()).and_then(|tomorrow| at(&tomorrow)).map_err(beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_day_is_the_next_one_and_a_date_is_exact() {
        let now: ZonedDateTime = "2026-11-23T22:49:54+01:00[Europe/Berlin]".parse().unwrap();
        let text = |time: &str| moment(time, &now).map(|time| time.to_string());
        let berlin = |time: &str| Ok(format!("{time}+01:00[Europe/Berlin]"));
        assert_eq!(text("07:30"), berlin("2026-11-24T07:30:00"));
        assert_eq!(text("23:00"), berlin("2026-11-23T23:00:00"));
        assert_eq!(text("22:49:54"), berlin("2026-11-24T22:49:54"));
        assert_eq!(text("2026-12-01T07:30"), berlin("2026-12-01T07:30:00"));
        assert_eq!(text("2026-12-01 07:30:15"), berlin("2026-12-01T07:30:15"));
        for wrong in ["25:00", "2026-13-01T07:30", "2026-02-30 01:00"] {
            assert!(text(wrong).unwrap_err().starts_with("there is no such date or time"), "{wrong}");
        }
        let other =
            ["", "7", "12", "2026", "2026-12-01", "20261201T0730", "2026-11-27T01:00+09:00", "tomorrow", "07:30Z"];
        for wrong in other {
            assert_eq!(text(wrong), Err(FORMS.to_owned()), "{wrong}");
        }
        assert!(until("2020-01-01T00:00").unwrap_err().contains("past"));
    }
}

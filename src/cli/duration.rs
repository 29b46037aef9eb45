//! The parser of durations (`90s`, `10m`, `8h`).

use std::time::Duration;

/// Maximum duration of a command: a thousand years.
const LONGEST: Duration = Duration::from_secs(1000 * 31_557_600);

/// Parses a duration of more than 0, such as `90s`, `10m`, `8h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        // Months for humantime, and a million in every number of this program.
        _ if text.contains('M') => Err("M is neither minutes nor months here; write 5min or 5months".to_owned()),
        Ok(duration) if duration.is_zero() => Err("must be more than 0".to_owned()),
        Ok(duration) if duration > LONGEST => Err("must be at most 1000 years".to_owned()),
        Err(humantime::DurationError::NumberOverflow) => Err("must be at most 1000 years".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(format!("{error}; write durations as 90s, 10m, 8h or 2days")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_and_are_positive() {
        assert_eq!(duration("8h"), Ok(Duration::from_secs(8 * 3600)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(90 * 60)));
        for long in ["1001years", "100000000000000d", "99999999999999999999999s"] {
            assert_eq!(duration(long), Err("must be at most 1000 years".to_owned()), "{long}");
        }
        for wrong in ["", "8", "0s", "h", "-1h", "1x", "5M"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}

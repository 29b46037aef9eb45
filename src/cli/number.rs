//! Numbers as people write them: `1e9`, `2^35`, `10M`, `10_000_000`; and half-open ranges of them.

use std::ops::Range;

/// A number of values or a heap; exact, never rounded.
pub(crate) fn number(text: &str) -> Result<u64, String> {
    let bad = |why: &str| Err(format!("{why}; numbers are written 1000, 10_000_000, 1e9, 2^35 or 10M"));
    let plain = text.replace('_', "");
    if plain.is_empty() || plain.len() > 64 {
        return bad("not a number");
    }
    if plain.starts_with('-') {
        return bad("numbers here are not negative");
    }
    let digits = |text: &str| -> Option<u128> {
        let all = !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
        all.then(|| text.parse().ok()).flatten()
    };
    let power =
        |base: u128, exponent: &str| -> Option<u128> { base.checked_pow(u32::try_from(digits(exponent)?).ok()?) };
    let value = if let Some((base, exponent)) = plain.split_once('^') {
        digits(base).and_then(|base| power(base, exponent))
    } else if let Some((mantissa, exponent)) = plain.split_once(['e', 'E']) {
        scaled(mantissa, digits(exponent))
    } else {
        let suffixes = [('k', 3), ('K', 3), ('M', 6), ('G', 9), ('T', 12)];
        match suffixes.into_iter().find_map(|(c, exponent)| Some((plain.strip_suffix(c)?, exponent))) {
            Some((mantissa, exponent)) => scaled(mantissa, Some(exponent)),
            None => digits(&plain),
        }
    };
    match value.map(u64::try_from) {
        Some(Ok(value)) => Ok(value),
        Some(Err(_)) => bad("a number of this program is below 2^64"),
        None => bad("not a whole number"),
    }
}

/// `mantissa`·10^`exponent` for a mantissa that may have a point and digits after it, when the result is whole.
fn scaled(mantissa: &str, exponent: Option<u128>) -> Option<u128> {
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (mantissa, ""),
    };
    let places = u128::try_from(fraction.len()).ok()?;
    let exponent = exponent?.checked_sub(places)?;
    let digits = format!("{whole}{fraction}");
    let all = !whole.is_empty() && digits.bytes().all(|c| c.is_ascii_digit());
    let digits: u128 = all.then(|| digits.parse().ok()).flatten()?;
    digits.checked_mul(10u128.checked_pow(u32::try_from(exponent).ok()?)?)
}

/// A number that is not 0.
pub(crate) fn positive(text: &str) -> Result<u64, String> {
    match number(text)? {
        0 => Err("0 values are none; at least 1 is needed".to_owned()),
        value => Ok(value),
    }
}

/// `A..B`, half open, or a single number.
pub(crate) fn range(text: &str) -> Result<Range<u64>, String> {
    let Some((from, to)) = text.split_once("..") else {
        let n = number(text)?;
        return Ok(n..n.checked_add(1).ok_or("a number of this program is below 2^64")?);
    };
    let (from, to) = (number(from)?, number(to)?);
    if from >= to {
        return Err(format!("the range {from}..{to} is empty; ranges are half open, A..B with A below B"));
    }
    Ok(from..to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_or_refused() {
        for (text, value) in [
            ("0", 0),
            ("1e8", 100_000_000),
            ("1E3", 1000),
            ("1.5e3", 1500),
            ("2.5M", 2_500_000),
            ("2^35", 1 << 35),
            ("10M", 10_000_000),
            ("10_000_000", 10_000_000),
            ("3k", 3000),
            ("1G", 1_000_000_000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(number(text), Ok(value), "{text}");
        }
        for text in [
            "",
            "_",
            "-1",
            "1.5",
            "1.55e1",
            "1e",
            "e5",
            "2^",
            "^3",
            "2^64",
            "1e20",
            "1e400",
            "0x10",
            "1 0",
            "M",
            "1.M",
            "1.e3",
            "10MM",
            "1kk",
            "\u{0661}",
            "18446744073709551616",
            "9e99999999999999999999999999",
            "2^4294967296",
        ] {
            assert!(number(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ranges_are_half_open() {
        assert_eq!(range("3..5"), Ok(3..5));
        assert_eq!(range("1e3..2^11"), Ok(1000..2048));
        assert_eq!(range("7"), Ok(7..8));
        for text in ["5..5", "6..5", "..5", "5..", "a..b", "18446744073709551615"] {
            assert!(range(text).is_err(), "{text}");
        }
        assert!(positive("0").is_err());
    }
}

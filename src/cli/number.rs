//! Parsers of numbers (`1e9`, `2^35`, `10M`, `10_000_000`, `3*2^24`) and of half-open ranges of numbers.
//!
//! The package of the fuzzers compiles this file as well, so it uses only the standard library.

use std::ops::{Range, RangeInclusive};

/// The error text for numbers from 2^64 on.
const TOO_LARGE: &str = "numbers must be less than 2^64";

/// Why a text is not a number.
enum Wrong {
    /// The text is malformed, or its value is not whole.
    Text,
    /// The value overflows 128 bits, so it exceeds 2^64 as well.
    Large,
}

/// Parses a whole number below 2^64, such as an n or a number of values; exact, never rounded.
pub(crate) fn number(text: &str) -> Result<u64, String> {
    let bad = |why: &str| Err(format!("{why}; write numbers as 1000, 10_000_000, 1e9, 2^35, 3*2^24 or 10M"));
    let plain = text.replace('_', "");
    if plain.is_empty() || plain.len() > 64 {
        return bad("not a number");
    }
    if has_groups(text) {
        return Err(format!("numbers are written without commas: {}", text.replace(',', "_")));
    }
    if text.contains(',') {
        return bad("a number contains no comma");
    }
    if plain.starts_with('-') {
        return bad("numbers must not be negative");
    }
    let product = plain.split('*').map(factor).try_fold(1u128, |product, factor| {
        let factor = factor?;
        product.checked_mul(factor).ok_or(Wrong::Large)
    });
    match product.map(u64::try_from) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(_)) | Err(Wrong::Large) => bad(TOO_LARGE),
        Err(Wrong::Text) => bad("not a whole number"),
    }
}

/// Whether commas separate groups of three digits, as in `1,000,000`.
fn has_groups(text: &str) -> bool {
    let is_digits = |group: &str| group.bytes().all(|c| c.is_ascii_digit());
    let mut groups = text.split(',');
    let is_first = |group: &str| (1..=3).contains(&group.len()) && is_digits(group);
    text.contains(',')
        && groups.next().is_some_and(is_first)
        && groups.all(|group| group.len() == 3 && is_digits(group))
}

/// Parses a number without `*`.
fn factor(text: &str) -> Result<u128, Wrong> {
    if let Some((base, exponent)) = text.split_once('^') {
        let (base, exponent) = (digits(base)?, digits(exponent)?);
        return match exponent {
            0 => Ok(1),
            _ if base <= 1 => Ok(base),
            _ => u32::try_from(exponent).ok().and_then(|exponent| base.checked_pow(exponent)).ok_or(Wrong::Large),
        };
    }
    if let Some((mantissa, exponent)) = text.split_once(['e', 'E']) {
        return scaled(mantissa, digits(exponent)?);
    }
    let suffixes = [('k', 3), ('K', 3), ('M', 6), ('G', 9), ('T', 12)];
    match suffixes.into_iter().find_map(|(c, exponent)| Some((text.strip_suffix(c)?, exponent))) {
        Some((mantissa, exponent)) => scaled(mantissa, exponent),
        None => scaled(text, 0),
    }
}

/// Parses a nonempty string of decimal digits.
fn digits(text: &str) -> Result<u128, Wrong> {
    if text.is_empty() || !text.bytes().all(|c| c.is_ascii_digit()) {
        return Err(Wrong::Text);
    }
    text.parse().map_err(|_| Wrong::Large)
}

/// Computes `mantissa`·10^`exponent`, where the mantissa may have a decimal point; the result must be whole.
fn scaled(mantissa: &str, exponent: u128) -> Result<u128, Wrong> {
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => {
            digits(fraction)?;
            (whole, fraction.trim_end_matches('0'))
        }
        None => (mantissa, ""),
    };
    digits(whole)?;
    let digits = digits(&format!("{whole}{fraction}"))?;
    let zeros = exponent.checked_sub(fraction.len() as u128).ok_or(Wrong::Text)?;
    if digits == 0 {
        return Ok(0);
    }
    let power = u32::try_from(zeros).ok().and_then(|zeros| 10u128.checked_pow(zeros));
    power.and_then(|power| digits.checked_mul(power)).ok_or(Wrong::Large)
}

/// Parses a number of at least 1.
pub(crate) fn positive(text: &str) -> Result<u64, String> {
    match number(text)? {
        0 => Err("must be at least 1".to_owned()),
        value => Ok(value),
    }
}

/// Returns a parser of numbers within these bounds.
pub(crate) fn within<T: TryFrom<u64>>(bounds: RangeInclusive<u64>) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let value = number(text)?;
        let fits = T::try_from(value).ok().filter(|_| bounds.contains(&value));
        fits.ok_or_else(|| format!("must be from {} to {}", bounds.start(), bounds.end()))
    }
}

/// Parses a half-open range `A..B`, or a single number N as N..N+1.
pub(crate) fn range(text: &str) -> Result<Range<u64>, String> {
    let Some((from, to)) = text.split_once("..") else {
        let n = number(text).map_err(|why| format!("{why}; write ranges as 0..20 (0 to 19)"))?;
        return Ok(n..n.checked_add(1).ok_or("the largest n in a range is 2^64 - 2")?);
    };
    if from.is_empty() || to.is_empty() {
        return Err("a range needs both ends; write 0..20 for 0 to 19".to_owned());
    }
    if to.starts_with('=') {
        return Err("a range has no '='; write 0..20 for 0 to 19".to_owned());
    }
    let (from, to) = (number(from)?, number(to)?);
    if from >= to {
        return Err(format!("the range {from}..{to} is empty; write half-open ranges A..B with A less than B"));
    }
    Ok(from..to)
}

/// Parses a number that is added to each n, such as -1 or +1.
pub(crate) fn offset(text: &str) -> Result<i64, String> {
    let (sign, size) = match text.strip_prefix('-') {
        Some(size) => (-1, size),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let size =
        i64::try_from(number(size)?).map_err(|_| "this number must be between -(2^63 - 1) and 2^63 - 1".to_owned())?;
    Ok(sign * size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_with_commas_is_refused_with_its_right_form() {
        let error = number("1,000,000").unwrap_err();
        assert_eq!(error, "numbers are written without commas: 1_000_000");
        for other in ["1,x", "1,5e6", "1,5", ",500", "1,,000"] {
            assert!(number(other).unwrap_err().starts_with("a number contains no comma"), "{other}");
        }
    }

    #[test]
    fn numbers_are_exact_or_refused() {
        for (text, value) in [
            ("0", 0),
            ("1e8", 100_000_000),
            ("1E3", 1000),
            ("1.5e3", 1500),
            ("1.50e1", 15),
            ("1.500k", 1500),
            ("2.00", 2),
            ("3*2^24", 3 << 24),
            ("2^10*3*5", 15 << 10),
            ("1.5k*2", 3000),
            ("1^99999999999", 1),
            ("0e99999", 0),
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
            "1.550e1",
            "1.5*2",
            "2*",
            "*2",
            "2**3",
            "2^3^2",
            "2^32*2^32",
            "1..5",
            "1.5.0",
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
    fn refusals_state_the_mistake() {
        for large in ["2^64", "1e20", "9e99999999999", "2^32*2^32", "99999999999999999999999999999999999999999999"] {
            assert!(number(large).unwrap_err().contains("less than 2^64"), "{large}");
        }
        assert!(range("18446744073709551615").unwrap_err().contains("2^64 - 2"));
        for text in ["1.55e1", "x", "1.M"] {
            assert!(number(text).unwrap_err().contains("not a whole number"), "{text}");
        }
        assert_eq!(positive("0"), Err("must be at least 1".to_owned()));
        for wrong in ["0", "2^10+1", "1025", "2^16", "2^64"] {
            assert!(within::<u16>(1..=1024)(wrong).is_err(), "{wrong}");
        }
        assert_eq!(within::<u16>(1..=1024)("2000"), Err("must be from 1 to 1024".to_owned()));
        assert_eq!(within::<u8>(1..=1024)("256"), Err("must be from 1 to 1024".to_owned()), "never truncated");
        assert_eq!(within::<u16>(1..=1024)("2^10"), Ok(1024));
    }

    #[test]
    fn ranges_are_half_open() {
        assert_eq!(range("3..5"), Ok(3..5));
        assert_eq!(range("1e3..2^11"), Ok(1000..2048));
        assert_eq!(range("7"), Ok(7..8));
        assert_eq!(range("2^25..3*2^24"), Ok(1 << 25..3 << 24));
        for text in ["5..5", "6..5", "..5", "5..", "a..b", "18446744073709551615"] {
            assert!(range(text).is_err(), "{text}");
        }
        for text in ["..5", "5..", "0-5", "0..=5", "a"] {
            assert!(range(text).unwrap_err().contains("0..20"), "{text}");
        }
    }

    #[test]
    fn offsets_are_exact_or_refused() {
        assert_eq!([offset("-1"), offset("+3"), offset("1e3"), offset("0")], [Ok(-1), Ok(3), Ok(1000), Ok(0)]);
        assert_eq!(offset("-9223372036854775807"), Ok(-i64::MAX));
        for text in ["2^63", "-2^63", "x", "--1", "+-1", "1.5"] {
            assert!(offset(text).is_err(), "{text}");
        }
    }
}

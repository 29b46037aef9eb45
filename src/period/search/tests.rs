use super::*;
use crate::support::Random;

/// Finds the least shift by comparing at every shift.
fn plainly(values: &[u16], h: usize, least: usize) -> Option<u64> {
    let n = values.len();
    (least.max(1)..=n.saturating_sub(h)).find(|p| values[n - h..] == values[n - h - p..n - p]).map(|p| p as u64)
}

#[test]
fn the_least_shift_is_the_one_of_the_definition() {
    let mut random = Random::new("shifts");
    for _ in 0..3000 {
        let (length, letters) = (1 + random.below(80), 1 + random.below(3));
        let period = 1 + random.below(20);
        let mut values: Vec<u16> = Vec::new();
        for i in 0..length {
            let again = i >= period && random.below(12) > 0;
            let fresh = random.below(letters) + if random.below(4) == 0 { 300 } else { 0 };
            values.push(if again { values[index(i - period)] } else { u16::try_from(fresh).unwrap() });
        }
        let stretch = Stretch::new(&values).unwrap();
        for h in 1..=values.len() {
            for least in [0, 1, 2, 7] {
                let found = stretch.shift(h as u64, least).unwrap();
                assert_eq!(found, plainly(&values, h, index(least)), "{values:?}, {h}, {least}");
            }
        }
    }
}

/// The bytes repeat at every shift; the values repeat only at one that comes after [`TRIES`] others.
#[test]
fn whole_values_are_searched_when_saturated_bytes_repeat_everywhere() {
    for period in [1000u64, 1025, 1500] {
        let values: Vec<u16> = (0..3 * period + 10).map(|i| if i % period == 0 { 256 } else { 300 }).collect();
        let stretch = Stretch::new(&values).unwrap();
        assert_eq!(stretch.shift(2 * period, 1).unwrap(), Some(period));
        assert_eq!(stretch.shift(3 * period, 1).unwrap(), None);
    }
}

/// Values of which some have been discarded since the search began. Their bytes are still borrowed.
struct Discarding {
    values: Vec<u16>,
    bytes: Vec<u8>,
}

impl Sequence for Discarding {
    fn len(&self) -> u64 {
        self.values.len() as u64
    }

    fn read(&self, from: u64, out: &mut [u16]) -> Result<()> {
        self.values.read(from, out)
    }

    fn saturated_bytes(&self) -> Option<&[u8]> {
        Some(&self.bytes)
    }

    fn require(&self, from: u64, to: u64) -> Result<()> {
        Err(Error::Discarded { from, to, hole: (1, 2), heap: None })
    }
}

#[test]
fn no_shift_is_returned_once_borrowed_bytes_are_discarded() {
    let found: Vec<u16> = (0..100).map(|n| n % 7).collect();
    let missing: Vec<u16> = (0..100).collect();
    let many: Vec<u16> = (0..4510).map(|n| if n % 1500 == 0 { 256 } else { 300 }).collect();
    for (values, h) in [(found, 50), (missing, 50), (many, 3000)] {
        let bytes = values.iter().map(|&value| saturated(value)).collect();
        let values = Discarding { values, bytes };
        assert!(matches!(Stretch::new(&values).unwrap().shift(h, 1), Err(Error::Discarded { .. })));
    }
}

#[test]
fn the_last_difference_is_found_across_pieces() {
    let p = 3;
    let mut values: Vec<u16> = (0..300_000).map(|n| [5, 6, 300][n % 3]).collect();
    assert_eq!(last_difference(&values, p, 0, 300_000 - p).unwrap(), None);
    for at in [299_999, 299_000, 65_536, 65_535, 100, 2] {
        values[at] ^= 256;
        assert_eq!(last_difference(&values, p, 0, 300_000 - p).unwrap(), {
            let at = at as u64;
            Some(if at + p < 300_000 { at } else { at - p })
        });
        values[at] ^= 256;
    }
    assert_eq!(last_difference(&values, p, 7, 7).unwrap(), None);
}

/// The values follow a pattern with this period and saltus, apart from the chosen positions.
#[test]
fn exceptions_differ_from_the_repetition_continued_backwards() {
    let mut random = Random::new("exceptions");
    for _ in 0..200 {
        let (p, n0, saltus) = (1 + random.below(30), random.below(100), random.below(3));
        let pattern = |n: u64| u16::try_from(n % p + n / p * saltus).unwrap();
        let chosen: Vec<u64> = (0..n0).filter(|_| random.below(5) == 0).collect();
        let values: Vec<u16> = (0..n0 + p).map(|n| pattern(n) + 1000 * u16::from(chosen.contains(&n))).collect();
        let saltus = u16::try_from(saltus).unwrap();
        let repeat = Repeat { period: p, preperiod: n0, exact: true, saltus, proof: None };
        let (count, first) = exceptions(&values, &repeat, 4).unwrap();
        let expected = (chosen.len() as u64, &chosen[..chosen.len().min(4)]);
        assert_eq!((count, first.as_slice()), expected, "{p}, {n0}, {saltus}");
        let mut seen = Vec::new();
        let all = compare_before_preperiod(&values, &repeat, |n, value, fits| {
            seen.push((n, value, fits));
            Ok::<(), Error>(())
        });
        all.unwrap();
        let each = (0..n0).zip(values).map(|(n, value)| (n, value, !chosen.contains(&n)));
        assert_eq!(seen, each.collect::<Vec<_>>(), "{p}, {n0}, {saltus}");
    }
}

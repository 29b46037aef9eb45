//! Values that a run computes a second time by exhaustive search: at the ends of segments, at powers of two and their
//! neighbours, and, at each commit, beside the last rare position if it is new.
//!
//! A programming error is most likely to show there: at boundaries of buffers and windows, where lists grow, and
//! where n needs one more bit.
//!
//! One value costs n/2 pairs per split, which takes all cores seconds near n = 10^9. So a run spends at most one part
//! in [`SHARE`] of its time on them, lowest n first, and drops the lowest when more than [`WAITING`] wait.
//!
//! A suspect n, where a check failed, is always computed again, whatever time it takes: this tells a transient fault of
//! the hardware from a bug.
//!
//! A run that has discarded values computes no further spot checks, because exhaustive search needs all values.

use crate::error::{Error, Result};
use crate::table::digest::SEGMENT;
use crate::theory::definition::{self, Sequence};
use crate::theory::rule::Rule;
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Spot checks take at most one part in this number of the time of a run.
const SHARE: u32 = 100;

/// Computing time that spot checks may use before one part in [`SHARE`] of the elapsed time allows it.
const ADVANCE: Duration = Duration::from_millis(20);

/// Maximum number of spot checks that wait.
const WAITING: usize = 64;

/// The spot checks of one run.
pub(crate) struct SpotChecks {
    begun: Instant,
    spent: Duration,
    /// Measured pairs per second.
    speed: f64,
    /// Each n whose value is to be computed again; the value may not be computed yet.
    waiting: BTreeSet<u64>,
    /// The least n that was not considered yet.
    seen: u64,
    last_rare: u64,
    suspect: Option<u64>,
    done: u64,
}

impl SpotChecks {
    /// Starts at n = `count`; `last_rare` is the last rare position, and `suspect` an n where a check failed.
    pub(crate) fn new(count: u64, last_rare: u64, suspect: Option<u64>) -> SpotChecks {
        let (begun, spent, waiting) = (Instant::now(), Duration::ZERO, BTreeSet::new());
        SpotChecks { begun, spent, speed: 1e8, waiting, seen: count, last_rare, suspect, done: 0 }
    }

    /// The n whose value failed a check, until G(n) has been recomputed.
    pub(crate) fn suspect(&self) -> Option<u64> {
        self.suspect
    }

    /// Notes that G(n) was recomputed elsewhere and confirmed.
    pub(crate) fn confirm(&mut self, n: u64) {
        self.suspect = self.suspect.filter(|&suspect| suspect != n);
    }

    /// Number of values that were computed a second time and agreed.
    pub(crate) fn done(&self) -> u64 {
        self.done
    }

    /// Schedules the spot checks below `count`.
    fn see(&mut self, count: u64, last_rare: u64) {
        self.waiting.extend(places(self.seen..count));
        if last_rare != self.last_rare {
            self.waiting.extend([last_rare.saturating_sub(1), last_rare + 1]);
        }
        while self.waiting.len() > WAITING {
            self.waiting.pop_first();
        }
        (self.seen, self.last_rare) = (count, last_rare);
    }

    /// Computes scheduled values again while there is time. `past` holds all values so far.
    ///
    /// # Errors
    /// [`Error::Differs`] if a value differs, and the errors of reading `past`.
    pub(crate) fn look(&mut self, rule: &Rule, past: &dyn Sequence, last_rare: u64) -> Result<()> {
        self.see(past.len(), last_rare);
        if !past.discarded().is_empty() {
            self.waiting.clear();
        } else if let Some(n) = self.suspect.filter(|&n| n < past.len()) {
            compare(rule, past, n)?;
            self.suspect = None;
        }
        while let Some(&n) = self.waiting.first().filter(|&&n| n < past.len()) {
            let pairs = rule.options_about(n) as f64 + 1.0;
            let earned = self.begun.elapsed() / SHARE + ADVANCE;
            if self.spent + Duration::from_secs_f64(pairs / self.speed) > earned {
                break;
            }
            self.waiting.pop_first();
            let begun = Instant::now();
            compare(rule, past, n)?;
            self.spent += begun.elapsed();
            if pairs > 1e6 {
                self.speed = pairs / begun.elapsed().as_secs_f64().max(1e-9);
            }
            self.done += 1;
        }
        Ok(())
    }
}

/// Computes G(n) a second time, by exhaustive search.
///
/// # Errors
/// [`Error::Differs`] if the value differs, and the errors of reading `past`.
pub(crate) fn compare(rule: &Rule, past: &dyn Sequence, n: u64) -> Result<()> {
    let mut value = [0];
    past.read(n, &mut value)?;
    let again = definition::value_at(rule, past, n)?;
    if again != value[0] {
        let how = "the definition".into();
        return Err(Error::Differs { n, value: value[0].into(), again: again.into(), how });
    }
    Ok(())
}

/// The spot checks in this range, without the neighbours of rare positions.
fn places(heaps: Range<u64>) -> Vec<u64> {
    let powers = (0..63).map(|k| 1u64 << k).flat_map(|n| [n - 1, n, n + 1]);
    let segments = (heaps.start / SEGMENT..=heaps.end / SEGMENT).map(|k| k * SEGMENT);
    powers.chain(segments.flat_map(|n| [n.saturating_sub(1), n])).filter(|n| heaps.contains(n)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_values_are_found_exactly_at_spot_checks() {
        let rule: Rule = "grundy".parse().unwrap();
        let right = definition::values(&rule, 5000).unwrap();
        // 4000 counts as the last rare heap.
        for (n, is_place) in
            [(4095, true), (4096, true), (4097, true), (4094, false), (3999, true), (4001, true), (4000, false)]
        {
            let mut places = SpotChecks::new(2100, 0, None);
            places.look(&rule, &&right[..3000], 0).unwrap();
            assert_eq!(places.done(), 0, "no place is between 2100 and 3000");
            let mut values = right.clone();
            values[n] ^= 1;
            let seen = places.look(&rule, &values, 4000);
            let found = matches!(seen, Err(Error::Differs { n: at, .. }) if at == n as u64);
            // A later value may have the wrong value among its options, and then that one differs.
            assert_eq!(found, is_place, "{n}: {seen:?}");
        }
        let mut places = SpotChecks::new(3000, 0, None);
        for (count, done) in [(4001, 1), (4002, 2)] {
            places.look(&rule, &&right[..count], 4000).unwrap();
            assert_eq!(places.done(), done, "3999, and 4001 as soon as its value is there");
        }
        let mut places = SpotChecks::new(0, 0, None);
        places.look(&rule, &right, 4000).unwrap();
        // 0 to 5, three for each power from 8 to 4096, two beside the rare one.
        assert_eq!(places.done(), 6 + 10 * 3 + 2);
    }

    /// Even if no time is left for other spot checks.
    #[test]
    fn suspect_value_is_checked_as_soon_as_it_is_there() {
        let rule: Rule = "grundy".parse().unwrap();
        let mut values = definition::values(&rule, 5000).unwrap();
        values[4001] ^= 1;
        let mut places = SpotChecks::new(2100, 0, Some(4001));
        places.spent = Duration::from_secs(1 << 20);
        places.look(&rule, &&values[..4001], 0).unwrap();
        assert_eq!(places.suspect(), Some(4001));
        let seen = places.look(&rule, &&values[..4002], 0);
        assert!(matches!(seen, Err(Error::Differs { n: 4001, .. })), "{seen:?}");
        assert_eq!(places.suspect(), Some(4001), "it is still suspect");
        values[4001] ^= 1;
        places.look(&rule, &values, 0).unwrap();
        assert_eq!((places.suspect(), places.done()), (None, 0));
    }

    #[test]
    fn places_are_the_ends_of_segments_and_the_powers_of_two() {
        let end = 1 << 24;
        assert_eq!(places(end - 10..end + 10), [end - 1, end, end + 1, end - 1, end]);
        assert_eq!(places(3 * end - 10..3 * end + 10), [3 * end - 1, 3 * end]);
        assert_eq!(places(5..20), [5, 7, 8, 9, 15, 16, 17]);
    }
}

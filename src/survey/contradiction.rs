//! Decides whether two records of one game can both be true. The head of [`super`] states the cases and their proofs.

use super::Record;
use crate::period::Status;

/// Returns the reason why two records of one game cannot both be true; `None` when they can.
#[must_use]
pub fn contradiction(a: &Record, b: &Record) -> Option<String> {
    let (short, long) = if a.checked_through <= b.checked_through { (a, b) } else { (b, a) };
    let n1 = short.checked_through;
    let n2 = long.checked_through;
    if n1 == n2 && short.digest != long.digest {
        return Some(format!("the digests of the same {n1} values differ"));
    }
    values(short, long)
        .or_else(|| rares(short, long))
        .or_else(|| match (Repeat::of(short), Repeat::of(long)) {
            (Some(one), Some(other)) => repeats(one, other),
            (Some(seen), None) => unseen(seen, n2),
            (None, Some(seen)) => unseen(seen, n1),
            (None, None) => None,
        })
        .map(|why| format!("{why} ({n1} and {n2} values)"))
}

/// Tests the cases C2 and C3.
fn values(short: &Record, long: &Record) -> Option<String> {
    let [(value1, at1), (value2, at2)] = [short, long].map(|r| (r.max_value, r.max_at));
    let same = (value1, at1) == (value2, at2);
    let grows = value2 > value1 && at2 >= short.checked_through;
    let repeating = [short, long].into_iter().filter(|r| r.status == Status::Proved && r.saltus == 0);
    let ends = repeating.filter_map(|r| Repeat::of(r)?.end());
    let covered = ends.into_iter().any(|end| short.checked_through >= end);
    let wrong = !same && (!grows || covered);
    wrong.then(|| format!("the largest values are {value1} at {at1} and {value2} at {at2}"))
}

/// Tests the case C4.
fn rares(short: &Record, long: &Record) -> Option<String> {
    let n1 = short.checked_through;
    let n2 = long.checked_through;
    let [(rares1, last1), (rares2, last2)] = [short, long].map(|r| (r.rares, r.last_rare));
    let grows =
        last2 >= Some(n1) && rares2 > rares1 && rares2.zip(rares1).is_some_and(|(two, one)| two - one <= n2 - n1);
    let wrong =
        (short.mask, short.position) == (long.mask, long.position) && (rares1, last1) != (rares2, last2) && !grows;
    wrong.then(|| {
        let shown = |number: Option<u64>| number.map_or_else(|| "none".into(), |number| number.to_string());
        let [rares1, last1, rares2, last2] = [rares1, last1, rares2, last2].map(shown);
        format!("the numbers of rare positions are {rares1}, the last {last1}, and {rares2}, the last {last2}")
    })
}

/// States that G(n + period) = G(n) + saltus for n in `preperiod..through - period`.
#[derive(Clone, Copy)]
struct Repeat {
    period: u64,
    preperiod: u64,
    saltus: u16,
    /// Number of values; `u64::MAX` when the period is proved.
    through: u64,
}

impl Repeat {
    fn of(record: &Record) -> Option<Repeat> {
        let through = if record.status == Status::Proved { u64::MAX } else { record.checked_through };
        Some(Repeat { period: record.period?, preperiod: record.preperiod?, saltus: record.saltus, through })
    }

    fn is_proved(self) -> bool {
        self.through == u64::MAX
    }

    /// Returns the end of the first period, preperiod + period.
    fn end(self) -> Option<u64> {
        self.preperiod.checked_add(self.period)
    }
}

/// Tests the cases C5 to C8.
fn repeats(a: Repeat, b: Repeat) -> Option<String> {
    let (short, long) = if a.through <= b.through { (a, b) } else { (b, a) };
    let p1 = short.period;
    let p2 = long.period;
    let n1 = short.preperiod;
    let n2 = long.preperiod;
    let common = u128::from(short.through.saturating_sub(n1.max(n2)));
    let sum = u128::from(p1) + u128::from(p2);
    let drifts = u128::from(short.saltus) * u128::from(p2) != u128::from(long.saltus) * u128::from(p1);
    let wrong = match (p1 == p2, short.saltus == long.saltus) {
        _ if short.is_proved() => (p1, n1) != (p2, n2),
        (true, true) => n1 != n2 && long.end().is_some_and(|end| end <= short.through),
        (false, true) if short.saltus == 0 => common >= sum - u128::from(gcd(p1, p2)),
        _ => drifts && common >= sum,
    };
    wrong.then(|| {
        let shown = |r: Repeat| {
            let how = if r.is_proved() { "proved" } else { "observed" };
            let saltus = if r.saltus > 0 { format!(", saltus {}", r.saltus) } else { String::new() };
            format!("period {} from {} on{saltus} ({how})", r.period, r.preperiod)
        };
        format!("{} and {} cannot both be right", shown(short), shown(long))
    })
}

/// Tests the case C9, where the other record found no repetition in `count` values.
fn unseen(seen: Repeat, count: u64) -> Option<String> {
    let twice = seen.end()?.checked_mul(2)?;
    let wrong = seen.saltus == 0 && count <= seen.through && twice <= count;
    wrong.then(|| {
        let Repeat { period, preperiod, .. } = seen;
        format!("period {period} from {preperiod} on would have been seen in {count} values, but none was")
    })
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests;

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
mod tests {
    use super::super::record::FORMAT;
    use super::*;
    use crate::PROGRAM;
    use crate::period::Theorem;
    use crate::support::Random;
    use crate::table::digest::DigestChain;

    /// Creates a record without a repetition; counts rare positions and the largest value by their definitions.
    fn bare(values: &[u16], mask: u16) -> Record {
        let mut chain = DigestChain::new();
        chain.update(values);
        let max_value = *values.iter().max().unwrap();
        let is_rare = |n: &u64| *n == 0 || (values[usize::try_from(*n).unwrap()] & mask).count_ones().is_multiple_of(2);
        let rares: Vec<u64> = (0..values.len() as u64).filter(is_rare).collect();
        Record {
            format: FORMAT.into(),
            program: PROGRAM.into(),
            game: "0.77".into(),
            to: values.len() as u64,
            status: Status::None,
            period: None,
            preperiod: None,
            saltus: 0,
            max_value,
            max_at: values.iter().position(|&v| v == max_value).unwrap() as u64,
            mask,
            position: 0,
            rares: (mask != 0).then_some(rares.len() as u64),
            last_rare: rares.last().copied().filter(|_| mask != 0),
            theorem: None,
            checked_through: values.len() as u64,
            digest: chain.digest().to_string(),
        }
    }

    /// Returns the least n from which on G(n + p) = G(n) + saltus.
    fn preperiod(values: &[u16], p: usize, saltus: u16) -> usize {
        let exception = (0..values.len() - p).rev().find(|&n| values[n].checked_add(saltus) != Some(values[n + p]));
        exception.map_or(0, |n| n + 1)
    }

    /// Returns all true observed records of these values, by the definitions.
    fn all_true(values: &[u16], mask: u16) -> Vec<Record> {
        let count = values.len();
        let bare = bare(values, mask);
        let mut all = Vec::new();
        let stands_again = |p: usize| values[count - count / 2..] == values[count - count / 2 - p..count - p];
        if !(1..=count / 2).any(stands_again) {
            all.push(bare.clone());
        }
        for p in 1..count {
            let Some(saltus) = values[count - 1].checked_sub(values[count - 1 - p]) else { continue };
            let n0 = preperiod(values, p, saltus);
            let stretch = &values[n0..];
            let divides = |q: usize| p.is_multiple_of(q) && preperiod(stretch, q, 0) == 0;
            if n0 + p <= count && (saltus > 0 || !(1..p).any(divides)) {
                let (period, preperiod) = (Some(p as u64), Some(n0 as u64));
                all.push(Record { status: Status::Observed, period, preperiod, saltus, ..bare.clone() });
            }
        }
        all
    }

    /// The sequences become periodic, or arithmetic-periodic, or neither; the records are all true ones of their
    /// prefixes.
    #[test]
    fn true_records_of_one_sequence_never_contradict_each_other() {
        let mut random = Random::new("true records");
        let small = |n: u64| usize::try_from(n).unwrap();
        let mut pairs = 0;
        for _ in 0..600 {
            let (p, n0, letters) = (small(1 + random.below(9)), small(random.below(12)), 1 + random.below(4));
            let (kind, length) = (random.below(3), 64);
            let mut values: Vec<u16> = Vec::new();
            for n in 0..length {
                let fresh = n < n0 + p || kind == 2;
                let step = u16::from(kind == 1) * 2;
                values.push(if fresh { u16::try_from(random.below(letters)).unwrap() } else { values[n - p] + step });
            }
            let mut records = Vec::new();
            for _ in 0..3 {
                let mask = if random.below(2) == 0 { 0 } else { 3 };
                let count = small(2 + random.below(length as u64 - 2));
                records.extend(all_true(&values[..count], mask));
                let Some(p) = (1..=p).find(|&q| kind == 0 && preperiod(&values, q, 0) + 2 * q <= length - 16) else {
                    continue;
                };
                let n0 = preperiod(&values, p, 0);
                if n0 + p <= count {
                    let (status, theorem) = (Status::Proved, Some(Theorem::P3));
                    let (period, preperiod) = (Some(p as u64), Some(n0 as u64));
                    records.push(Record { status, theorem, period, preperiod, ..bare(&values[..count], mask) });
                }
            }
            for a in &records {
                for b in &records {
                    assert_eq!(contradiction(a, b), None, "{values:?}\n{a:?}\n{b:?}");
                    pairs += 1;
                }
            }
        }
        assert!(pairs > 100_000, "only {pairs} pairs were compared");
    }

    /// Returns the first `count` values of 5 5 0 1 2 0 1 2 …
    fn sequence(count: usize) -> Vec<u16> {
        [5, 5].into_iter().chain((0..).map(|n: u16| n % 3)).take(count).collect()
    }

    #[test]
    fn each_case_is_refused_in_either_order_of_the_records() {
        let proved = |count: usize, p: u64, n0: u64| {
            let (status, theorem) = (Status::Proved, Some(Theorem::P3));
            Record { status, theorem, period: Some(p), preperiod: Some(n0), ..bare(&sequence(count), 3) }
        };
        let observed =
            |count: usize, p: u64, n0: u64| Record { status: Status::Observed, theorem: None, ..proved(count, p, n0) };
        let none = |count: usize| bare(&sequence(count), 3);
        let rares = |count: usize, rares: u64, last: u64| Record {
            rares: Some(rares),
            last_rare: Some(last),
            ..observed(count, 3, 2)
        };
        let [real, longer] = [20, 30].map(|count| observed(count, 3, 2));
        let pairs = [
            ("C1", real.clone(), Record { digest: longer.digest.clone(), ..real.clone() }),
            ("C2", real.clone(), Record { max_value: 4, ..longer.clone() }),
            ("C2", real.clone(), Record { max_value: 6, max_at: 19, ..longer.clone() }),
            ("C2", real.clone(), Record { max_at: 1, ..longer.clone() }),
            ("C3", proved(20, 3, 2), Record { max_value: 6, max_at: 20, ..longer.clone() }),
            ("C3", real.clone(), Record { max_value: 6, max_at: 20, ..proved(30, 3, 2) }),
            ("C4", real.clone(), rares(30, 9, 19)),
            ("C4", real.clone(), rares(30, real.rares.unwrap(), 25)),
            ("C4", real.clone(), rares(30, real.rares.unwrap() + 11, 29)),
            ("C5", proved(20, 3, 2), proved(30, 3, 1)),
            ("C5", proved(20, 3, 2), proved(30, 4, 2)),
            ("C6", proved(20, 3, 2), observed(30, 4, 2)),
            ("C6", proved(20, 12, 2), observed(36, 13, 2)),
            ("C6", proved(20, 6, 2), observed(30, 3, 9)),
            ("C6", observed(20, 3, 2), observed(30, 5, 3)),
            ("C7", proved(20, 3, 2), Record { saltus: 1, ..observed(30, 4, 2) }),
            ("C7", Record { saltus: 1, ..observed(20, 3, 2) }, Record { saltus: 2, ..observed(30, 3, 2) }),
            ("C8", proved(20, 3, 2), observed(30, 3, 7)),
            ("C8", observed(20, 3, 7), proved(30, 3, 2)),
            ("C8", observed(20, 3, 2), observed(30, 3, 7)),
            ("C9", proved(20, 3, 2), none(10)),
            ("C9", observed(20, 3, 2), none(10)),
        ];
        for (case, a, b) in pairs {
            assert!(contradiction(&a, &b).is_some() && contradiction(&b, &a).is_some(), "{case}: {a:?} and {b:?}");
        }
        // With one common value fewer both records can be true.
        for (a, b) in [
            (proved(20, 12, 2), observed(25, 13, 2)),
            (proved(20, 3, 2), none(9)),
            (observed(20, 3, 2), none(30)),
            (observed(20, 3, 2), observed(30, 3, 18)),
        ] {
            assert_eq!(contradiction(&a, &b), None, "{a:?} and {b:?}");
        }
    }
}

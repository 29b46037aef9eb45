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
        time_limit: None,
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

use super::*;
use crate::theory::definition;
use crate::theory::rule::Rule;

/// Wherever the discarded range lies, the statistics of head, range and tail add up to those of the whole sequence.
#[test]
fn statistics_of_head_discarded_range_and_tail_add_up() {
    let rule: Rule = "grundy".parse().unwrap();
    let space = SparseSpace::new(&rule, 0x1fe, 0).unwrap();
    let values = definition::values(&rule, 3000).unwrap();
    let rares: Vec<u64> = (0..).zip(&values).filter(|&(n, &v)| space.is_rare(v, n)).map(|rare| rare.0).collect();
    let largest = *values.iter().max().unwrap();
    let at = values.iter().position(|&v| v == largest).unwrap() as u64;
    for (from, to) in [(1, 2), (100, 900), (1, 2999), (at, at + 1), (at + 1, 3000 - 1), (500, at)] {
        let count = |range: Range<u64>| {
            let mut stats = RecordStats::default();
            let part = &values[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()];
            stats.see(space, range.start, part);
            stats
        };
        let mut summary = DiscardSummary::new("", space, from);
        for n in from..to {
            summary.see(space, &values[usize::try_from(n).unwrap()..][..1]);
        }
        let all = count(0..from).and(summary.recount()).and(count(to..3000));
        let expected = RecordStats {
            rares: rares.len() as u64,
            last_rare: *rares.last().unwrap(),
            max_value: largest,
            max_at: at,
        };
        assert_eq!(all, expected, "{from}..{to}");
        assert_eq!(summary.histogram.iter().sum::<u64>(), to - from);
    }
}

/// A summary whose hash the journal states may still be forged, so a contradiction in it is refused before it is
/// used.
#[test]
fn a_summary_that_contradicts_itself_is_refused() {
    type Forge = fn(&mut DiscardSummary);
    let rule: Rule = "grundy".parse().unwrap();
    let space = SparseSpace::new(&rule, 0x1fe, 0).unwrap();
    let values = definition::values(&rule, 3000).unwrap();
    let mut good = DiscardSummary::new("", space, 100);
    good.see(space, &values[100..2000]);
    assert_eq!(good.contradiction(), None);
    assert!(good.rares.len() > 2 && good.maxima.len() > 2);
    let forgeries: [(&str, Forge); 14] = [
        ("a histogram whose sum wraps around", |s| s.histogram = vec![u64::MAX; 2]),
        ("one value too many", |s| s.histogram[1] += 1),
        ("one value too few", |s| s.histogram[1] -= 1),
        ("a histogram of values beyond 16 bits", |s| s.histogram.resize((1 << 16) + 1, 0)),
        ("a rare position before the freed values", |s| s.rares[0].0 = 99),
        ("a rare position after the freed values", |s| s.rares.last_mut().unwrap().0 = 2000),
        ("rare positions out of order", |s| s.rares.swap(0, 1)),
        ("a rare position twice", |s| s.rares[1] = s.rares[0]),
        ("a rare value that never occurs", |s| s.rares[0].1 = 60_000),
        ("a maximum after the freed values", |s| s.maxima.last_mut().unwrap().0 = 5000),
        ("maxima that do not rise", |s| s.maxima[1].1 = s.maxima[0].1),
        ("no maximum", |s| s.maxima.clear()),
        ("the first maximum missing", |s| _ = s.maxima.remove(0)),
        ("the last maximum missing", |s| _ = s.maxima.pop()),
    ];
    for (what, forge) in forgeries {
        let mut forged = good.clone();
        forge(&mut forged);
        assert!(forged.contradiction().is_some(), "{what}");
    }
}

#[test]
fn only_summaries_that_no_record_names_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let all = ["snapshot-1.json", "snapshot-2.json", "snapshot-2.json.part", "snapshot-3.json", "snapshot-x.json", "s"];
    all.iter().for_each(|name| std::fs::write(dir.path().join(name), "").unwrap());
    let named = Attached { name: "snapshot-2.json".into(), blake3: String::new() };
    remove_others(&Dir::at(dir.path()), &[&named]).unwrap();
    let mut left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["s", "snapshot-2.json", "snapshot-x.json"]);
}

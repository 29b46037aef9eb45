//! Power cuts during the commits that discard values.

use super::*;
use crate::checkpoint::journal;
use crate::storage::testing::{Faults, Memory, SECTOR};
use crate::storage::{Mode, Storage};
use crate::table;
use crate::table::Width;
use crate::theory::nimber::index;
use crate::theory::rule::Rule;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The last record of a run that retains at least 1000 values after the head.
fn template(rule: &Rule, space: SparseSpace) -> Record {
    Record {
        event: Event::Commit,
        mask: space.mask,
        position: space.position,
        keep: Some(1000),
        ..Record::first(rule, Width::U8)
    }
}

/// Cuts the power after every operation of the commits that discard a segment. In every image, the values that the
/// last record lists as kept are in the table, and the summary that it names covers exactly the values that it
/// lists as discarded.
#[test]
fn power_cut_during_discard_leaves_files_that_match_the_journal() {
    const FREED: Range<u64> = RETAINED_HEAD..RETAINED_HEAD + SEGMENT;
    let rule: Rule = "grundy".parse().unwrap();
    let space = SparseSpace::new(&rule, 0x1fe, 0).unwrap();
    // Common values only; 0, which a hole reads as, is not among them.
    let common: Vec<u16> = (1..256).filter(|&v| !space.is_rare(v, 1)).collect();
    let value = move |n: u64| common[index(n) % common.len()];
    let disk = Memory::new();
    let watching = Arc::new(AtomicBool::new(false));
    let images = Arc::new(AtomicU64::new(0));
    let seed = AtomicU64::new(1);
    let watch = {
        let disk = disk.clone();
        let watching = Arc::clone(&watching);
        let images = Arc::clone(&images);
        let value = value.clone();
        move |_| {
            if !watching.load(Ordering::SeqCst) {
                return;
            }
            let mut choose = |bound| {
                let next = seed.load(Ordering::SeqCst).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(11);
                seed.store(next, Ordering::SeqCst);
                (next >> 33) % bound
            };
            let image: Arc<dyn Storage> = Arc::new(disk.image(SECTOR, &mut choose));
            let dir = Dir::on(image, Path::new("image"));
            let last = journal::read(&dir).unwrap().last;
            let discarded = last.discarded().unwrap();
            assert_eq!(DiscardSummary::read(&dir, &last).unwrap().map_or(0..0, |s| s.discarded()), discarded);
            let file = dir.open(table::VALUES, Mode::Read).unwrap();
            let edges = [FREED.start, FREED.end - 1, FREED.end, last.count - 1];
            for n in (0..last.count).step_by(997).chain(edges).filter(|&n| n < last.count) {
                let mut byte = [0];
                file.read_exact_at(&mut byte, HEADER + n).unwrap();
                assert!(discarded.contains(&n) || u16::from(byte[0]) == value(n), "G({n}) = {} is kept", byte[0]);
            }
            images.fetch_add(1, Ordering::SeqCst);
        }
    };
    let dir = Dir::on(Arc::new(Faults::watched(Arc::new(disk.clone()), watch)), Path::new("run"));
    let journal = Journal::open(&dir).unwrap().0;
    let table = Table::create(&dir, Width::U8).unwrap();
    let mut committer = Committer::new(&dir, journal, table, template(&rule, space));
    let mut chain = DigestChain::new();
    for length in [RETAINED_HEAD, SEGMENT, 2000, 2000] {
        watching.store(length == 2000, Ordering::SeqCst);
        let values: Vec<u16> = (chain.count()..chain.count() + length).map(&value).collect();
        chain.update(&values);
        let batch = Batch {
            values: Arc::new(values),
            computed_digest: chain.digest(),
            counted: RecordStats::default(),
            too_large: None,
            strategy: Strategy { engine: "byte streams", space, reason: "this is a test".into() },
            checks: Checks::default(),
            suspect: None,
            lookback: Some(1000),
        };
        let may_discard = batch.may_discard(committer.table().published(), committer.keep());
        let before = committer.discarded();
        committer.commit(&batch).unwrap();
        assert_eq!(may_discard, committer.discarded() != before);
    }
    committer.close().unwrap();
    let mut hole = [7; 4096];
    dir.open(table::VALUES, Mode::Read).unwrap().read_exact_at(&mut hole, HEADER + FREED.start).unwrap();
    assert_eq!(hole, [0; 4096], "the segment was freed");
    assert!(images.load(Ordering::SeqCst) > 40, "{images:?}");
}

//! Tests of runs whose memory or whose committed values change.

use super::commit_clock::CommitClock;
use super::context::{Context, Prepared};
use super::main_loop::OpenRun;
use super::prepare::prepare;
use super::retry::{Attempt, record_failure, retry_failed_checks};
use super::spot_checks::SpotChecks;
use super::*;
use crate::checkpoint::commit::RETAINED_HEAD;
use crate::checkpoint::journal::{self, Event, Journal, Record};
use crate::checkpoint::summary::DiscardSummary;
use crate::error::{Damage, Error, Result};
use crate::kernel::Kernel;
use crate::solver::Method;
use crate::storage::Dir;
use crate::storage::testing::Memory;
use crate::support::{Random, Tally, cases};
use crate::table::digest::{DigestChain, SEGMENT};
use crate::table::{self, HEADER, Width};
use crate::theory::definition;
use crate::theory::definition::{Appended, Sequence};
use crate::theory::nimber::index;
use crate::theory::rule::{Leaves, Move, Rule};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Records the messages of a run.
#[derive(Default)]
struct Notes(Vec<String>);

impl Observer for Notes {
    fn note(&mut self, text: &str) {
        self.0.push(text.into());
    }
}

const TO: u64 = 20_000;

fn options(to: u64) -> Options {
    let method = Method::Sparse(Kernel::best());
    Options { to: Some(to), threads: 1, method, width: Some(Width::U8), keep: None, rollback: false }
}

/// Runs to [`TO`]; what `harm` does to each attempt comes after some values and before the next check.
fn run_with(dir: &Dir, notes: &mut Notes, mut harm: impl FnMut(u64, &mut OpenRun)) -> Result<Outcome> {
    let (rule, policy) =
        ("0.6".parse::<Rule>().unwrap(), RunPolicy { commit_every: Some(1000), ..RunPolicy::default() });
    let stop = AtomicBool::new(false);
    Run::on(Some(&rule), dir).options(options(12_000)).policy(policy).observer(notes).run_in_pool().unwrap();
    let mut attempts = 0;
    retry_failed_checks(dir, 7, notes, |attempt, observer| {
        attempts += 1;
        let options = &options(TO);
        match prepare(Some(&rule), &mut Context { dir, options, policy, attempt, observer, stop: &stop })? {
            Prepared::Nothing(outcome) => Ok(outcome),
            Prepared::Ready(mut run) => {
                harm(attempts, &mut run);
                run.go_on(options, policy, observer, &stop)
            }
        }
    })
}

fn last_record(dir: &Dir) -> Record {
    journal::read(dir).unwrap().last
}

/// Digest of the values of a run to [`TO`], by the definition.
fn right_digest() -> String {
    let mut chain = DigestChain::new();
    chain.update(&definition::values(&"0.6".parse().unwrap(), 20_000).unwrap());
    chain.digest().to_string()
}

/// Changes what later values are computed from, and what waits to be written.
const HARMS: [fn(&mut OpenRun); 2] = [|run| run.solver.flip(), |run| run.computed_digest.update(&[7])];

#[test]
fn one_bit_flip_restarts_the_run_and_is_counted() {
    for harm in HARMS {
        let (dir, mut notes) = (Dir::on(Arc::new(Memory::new()), Path::new("run")), Notes::default());
        let outcome = run_with(&dir, &mut notes, |attempt, run| {
            if attempt == 1 {
                harm(run)
            }
        });
        let last = last_record(&dir);
        assert_eq!((outcome.unwrap().progress.count, last.errors), (TO, 1), "{:?}", notes.0);
        assert_eq!(last.digest, right_digest());
    }
}

#[test]
fn same_flip_twice_ends_the_run_without_a_commit() {
    for harm in HARMS {
        let (dir, mut notes) = (Dir::on(Arc::new(Memory::new()), Path::new("run")), Notes::default());
        let outcome = run_with(&dir, &mut notes, |_, run| harm(run));
        assert!(matches!(outcome, Err(Error::Flipped { .. })), "{outcome:?}");
        assert!(notes.0.last().unwrap().contains("memory changed again"), "{:?}", notes.0);
        let last = last_record(&dir);
        assert_eq!((last.count, last.errors), (12_000, 2), "no value was written");
        run_with(&dir, &mut notes, |_, _| ()).unwrap();
        assert_eq!(last_record(&dir).digest, right_digest());
    }
}

/// What is computed and not yet written is nowhere else: a bit that flips there would be committed.
#[test]
fn bit_flip_in_the_output_buffer_is_never_committed() {
    let tally = Tally::begin("flips in the output buffer");
    let rounds = cases(100, 20_000);
    let mut random = Random::new("flips in the output buffer");
    let (rule, stop) = ("0.6".parse::<Rule>().unwrap(), AtomicBool::new(false));
    let (policy, mut notes) = (RunPolicy { seed: Some(7), ..RunPolicy::default() }, Notes::default());
    let dir = Dir::on(Arc::new(Memory::new()), Path::new("run"));
    Run::on(Some(&rule), &dir).options(options(12_000)).policy(policy).observer(&mut notes).run_in_pool().unwrap();
    let attempt = Attempt { seed: 7, failures: 0 };
    for round in 0..rounds {
        let prepared = {
            let (options, observer) = (&options(TO), &mut notes);
            prepare(Some(&rule), &mut Context { dir: &dir, options, policy, attempt, observer, stop: &stop }).unwrap()
        };
        let Prepared::Ready(mut run) = prepared else { panic!("there is something to do") };
        for _ in 0..1 + random.below(3) {
            let mut more = Vec::new();
            let past = Appended { first: run.writer.published(), more: &run.pending };
            run.solver.advance(&past, TO, &mut more).unwrap();
            run.computed_digest.update(&more);
            run.largest.see_largest(past.len(), &more);
            run.pending.append(&mut more);
        }
        let at = index(random.below(run.pending.len() as u64));
        run.pending[at] ^= 1 << random.below(16);
        let seen = run.check().and_then(|()| run.commit()).and_then(|()| run.writer.wait());
        assert!(matches!(seen, Err(Error::Flipped { .. })), "round {round}: bit of {at}: {seen:?}");
        drop(run);
        assert_eq!(last_record(&dir).count, 12_000);
    }
    tally.end(rounds, "all noticed before the commit");
}

/// A record with a wrong largest value would be refused from then on.
#[test]
fn a_bit_flip_in_the_largest_value_is_noticed() {
    let (rule, stop) = ("0.07".parse::<Rule>().unwrap(), AtomicBool::new(false));
    let (policy, dir) = (RunPolicy::default(), Dir::on(Arc::new(Memory::new()), Path::new("run")));
    Run::on(Some(&rule), &dir).options(options(2000)).policy(policy).run_in_pool().unwrap();
    let attempt = Attempt { seed: 7, failures: 0 };
    let flips: [fn(&mut OpenRun); 3] =
        [|run| run.largest.max_at ^= 32, |run| run.largest.max_value ^= 64, |run| run.largest_before.max_at ^= 1];
    for flip in flips {
        let (options, observer) = (&options(5000), &mut Notes::default());
        let mut context = Context { dir: &dir, options, policy, attempt, observer, stop: &stop };
        let Prepared::Ready(mut run) = prepare(Some(&rule), &mut context).unwrap() else { panic!("there is more") };
        flip(&mut run);
        assert!(matches!(run.check(), Err(Error::Flipped { .. })));
    }
}

/// Commits 2500 values of 0.07, of which G(2250) is wrong, as a mistake of the program would leave them. `values` are
/// the correct values.
fn commit_wrong_value(dir: &Dir, values: &[u16], policy: RunPolicy) {
    let (rule, stop) = ("0.07".parse::<Rule>().unwrap(), AtomicBool::new(false));
    Run::on(Some(&rule), dir).options(options(2000)).policy(policy).run_in_pool().unwrap();
    let attempt = Attempt { seed: 7, failures: 0 };
    let mut context =
        Context { dir, options: &options(5000), policy, attempt, observer: &mut Notes::default(), stop: &stop };
    let Prepared::Ready(mut run) = prepare(Some(&rule), &mut context).unwrap() else {
        panic!("there is something to do")
    };
    run.pending = values[2000..2500].to_vec();
    run.pending[250] ^= 1;
    run.computed_digest.update(&run.pending);
    run.largest.see_largest(2000, &run.pending);
    run.commit().unwrap();
    run.writer.wait().unwrap();
    run.writer.close().unwrap();
}

/// A table that agrees with its journal and has a wrong value.
#[test]
fn committed_wrong_value_stops_the_run_until_rollback_before_it() {
    let (rule, stop) = ("0.07".parse::<Rule>().unwrap(), AtomicBool::new(false));
    let values = definition::values(&rule, 5000).unwrap();
    let mut chain = DigestChain::new();
    chain.update(&values);
    let policy = RunPolicy { commit_every: Some(500), ..RunPolicy::default() };
    let (dir, mut notes) = (Dir::on(Arc::new(Memory::new()), Path::new("run")), Notes::default());
    commit_wrong_value(&dir, &values, policy);
    let prepared = |attempt: Attempt, notes: &mut Notes| match prepare(
        Some(&rule),
        &mut Context { dir: &dir, options: &options(5000), policy, attempt, observer: notes, stop: &stop },
    ) {
        Ok(Prepared::Ready(run)) => Ok(run),
        Ok(Prepared::Nothing(_)) => panic!("there is something to do"),
        Err(error) => Err(error),
    };

    let mut attempts = 0;
    let seen = retry_failed_checks(&dir, 7, &mut notes, |attempt, _| {
        attempts += 1;
        let mut run = prepared(attempt, &mut Notes::default())?;
        run.spot_checks = SpotChecks::new(2500, 0, Some(2250)); // as a spot check that comes late
        run.go_on(&options(5000), policy, &mut Notes::default(), &stop)
    });
    let refused = |seen: &Result<Outcome>| {
        matches!(seen, Err(Error::Damage { damage: Damage::WrongSuspect { n: 2250, .. }, .. }))
    };
    assert!(refused(&seen) && attempts == 2, "{attempts}: {seen:?}");
    // Neither another process, nor one with nothing to do, nor a reader accepts it.
    for to in [5000, 2500] {
        let seen = Run::on(None, &dir).options(options(to)).policy(policy).observer(&mut notes).run_in_pool();
        assert!(refused(&seen), "{seen:?}");
        let last = last_record(&dir);
        assert_eq!((last.count, last.errors, last.suspect), (2500, 1, Some(2250)));
        let seen = RunReader::open(&dir).unwrap().check_suspect();
        assert!(matches!(seen, Err(Error::Differs { n: 2250, .. })), "{seen:?}");
    }
    let back = Options { rollback: true, ..options(2100) };
    Run::on(None, &dir).options(back.clone()).policy(policy).observer(&mut notes).run_in_pool().unwrap();
    assert!(notes.0.iter().any(|note| note.contains("went back to 2000")), "{:?}", notes.0);
    let last = last_record(&dir);
    assert_eq!((last.count, last.errors, last.suspect), (2100, 1, Some(2250)), "until it is there again");
    Run::on(None, &dir).options(options(5000)).policy(policy).observer(&mut notes).run_in_pool().unwrap();
    let last = last_record(&dir);
    assert_eq!((last.count, last.errors, last.suspect), (5000, 1, None));
    assert_eq!(last.digest, chain.digest().to_string());
}

/// The journal has the digest of a wrong value, so altered values near it cannot be recomputed to that digest. Values
/// of an earlier commit are still restored, and stay restored although the run is refused; no record says so.
#[test]
fn repair_that_disagrees_with_the_journal_is_refused_until_rollback() {
    let values = definition::values(&"0.07".parse().unwrap(), 5000).unwrap();
    let mut chain = DigestChain::new();
    chain.update(&values);
    let policy = RunPolicy { commit_every: Some(500), ..RunPolicy::default() };
    let memory = Arc::new(Memory::new());
    let (dir, mut notes) = (Dir::on(memory.clone(), Path::new("run")), Notes::default());
    commit_wrong_value(&dir, &values, policy);
    let data = index(HEADER);
    let flip = |n: usize| {
        let mut bytes = memory.get(table::VALUES).unwrap();
        bytes[data + n] ^= 1;
        memory.put(table::VALUES, bytes);
    };
    let files = || -> Vec<_> { dir.names().unwrap().into_iter().map(|name| (memory.get(&name), name)).collect() };
    let refused = |notes: &mut Notes| {
        let seen = Run::on(None, &dir).options(options(5000)).policy(policy).observer(notes).run_in_pool();
        let damage = Damage::Digest { from: 2000, to: 2500, repair_failed: true };
        assert!(matches!(&seen, Err(Error::Damage { damage: found, .. }) if *found == damage), "{seen:?}");
    };
    flip(2300);
    let before = files();
    refused(&mut notes);
    assert!(files() == before, "no byte changes");

    flip(700);
    let (altered, journal) = (memory.get(table::VALUES).unwrap(), memory.get(journal::NAME));
    refused(&mut notes);
    let restored = memory.get(table::VALUES).unwrap();
    assert!(restored[data + 700] != altered[data + 700] && restored[data + 701..] == altered[data + 701..]);
    assert!(memory.get(journal::NAME) == journal, "no record");
    let sequence = last_record(&dir).sequence;
    let copy = memory.get(&format!("quarantine-{sequence}-{}.bin", data + 500));
    assert!(copy.unwrap() == altered[data + 500..data + 1000]);

    let back = Options { rollback: true, ..options(5000) };
    Run::on(None, &dir).options(back).policy(policy).observer(&mut notes).run_in_pool().unwrap();
    assert!(notes.0.iter().any(|note| note.contains("went back to 2000")), "{:?}", notes.0);
    let copy = memory.get(&format!("quarantine-{sequence}-{}.bin", data + 2000));
    assert!(copy.unwrap() == altered[data + 2000..data + 2500]);
    assert_eq!(last_record(&dir).digest, chain.digest().to_string());
}

/// Sets a flag at the first note with a text.
struct StopAt<'a>(&'static str, &'a AtomicBool);

impl Observer for StopAt<'_> {
    fn note(&mut self, text: &str) {
        self.1.fetch_or(text.contains(self.0), Ordering::Relaxed);
    }
}

/// The next process finds nothing to restore, so it could not record what the stopped one restored.
#[test]
fn a_repair_that_is_stopped_is_recorded() {
    let rule = "0.6".parse::<Rule>().unwrap();
    let policy = RunPolicy { commit_every: Some(1000), ..RunPolicy::default() };
    let memory = Arc::new(Memory::new());
    let dir = Dir::on(memory.clone(), Path::new("run"));
    Run::on(Some(&rule), &dir).options(options(TO)).policy(policy).run_in_pool().unwrap();
    let mut bytes = memory.get(table::VALUES).unwrap();
    bytes[index(HEADER) + 5500] ^= 1;
    memory.put(table::VALUES, bytes);
    let stop = AtomicBool::new(false);
    let mut observer = StopAt("were recomputed and restored", &stop);
    let run = Run::on(None, &dir).options(options(TO)).policy(policy).observer(&mut observer).stop(&stop);
    assert!(run.run_in_pool().unwrap().stopped);
    let last = last_record(&dir);
    assert_eq!((last.event, last.errors, last.checks.get("repaired")), (journal::Event::Repair, 1, Some(1)));
    assert_eq!(last.digest, right_digest());
}

/// A directory with tables and no journal, and a rollback that ends before it writes anything.
#[test]
fn a_rollback_without_a_journal_that_is_stopped_leaves_no_journal() {
    let rule = "0.6".parse::<Rule>().unwrap();
    let memory = Arc::new(Memory::new());
    let dir = Dir::on(memory.clone(), Path::new("run"));
    Run::on(Some(&rule), &dir).options(options(TO)).run_in_pool().unwrap();
    dir.remove(journal::NAME).unwrap();
    let names = dir.names().unwrap();
    let back = Options { rollback: true, width: None, ..options(TO) };
    let stop = AtomicBool::new(true);
    assert!(Run::on(Some(&rule), &dir).options(back).stop(&stop).run_in_pool().unwrap().stopped);
    assert_eq!(dir.names().unwrap(), names);
}

/// Damage and a suspect at once: the damage is reported or repaired, and the suspect is rechecked in the values that
/// agree.
#[test]
fn rollback_because_of_damage_keeps_the_suspect() {
    let rule = "0.07".parse::<Rule>().unwrap();
    let policy = RunPolicy { commit_every: Some(500), ..RunPolicy::default() };
    let memory = Arc::new(Memory::new());
    let (dir, mut notes) = (Dir::on(memory.clone(), Path::new("run")), Notes::default());
    Run::on(Some(&rule), &dir).options(options(3000)).policy(policy).observer(&mut notes).run_in_pool().unwrap();
    let differs = |n| Error::Differs { n, value: 1, again: 2, how: "a test".into() };
    for n in [1250, 2750] {
        record_failure(&dir, &differs(n), &mut notes);
    }
    assert_eq!((last_record(&dir).errors, last_record(&dir).suspect), (2, Some(1250)), "the least");
    let mut bytes = memory.get(table::VALUES).unwrap();
    bytes[4096 + 2600] ^= 1;
    memory.put(table::VALUES, bytes);
    let back = Options { rollback: true, ..options(2500) };
    Run::on(None, &dir).options(back.clone()).policy(policy).observer(&mut notes).run_in_pool().unwrap();
    assert_eq!((last_record(&dir).count, last_record(&dir).suspect), (2500, None), "1250 was good");

    record_failure(&dir, &differs(2400), &mut notes);
    let mut bytes = memory.get(table::VALUES).unwrap();
    bytes[4096 + 2100] ^= 1;
    memory.put(table::VALUES, bytes);
    Run::on(None, &dir)
        .options(Options { rollback: true, ..options(2000) })
        .policy(policy)
        .observer(&mut notes)
        .run_in_pool()
        .unwrap();
    assert_eq!((last_record(&dir).count, last_record(&dir).suspect), (2000, Some(2400)), "not there any more");
    Run::on(None, &dir).options(options(3000)).policy(policy).observer(&mut notes).run_in_pool().unwrap();
    assert_eq!((last_record(&dir).count, last_record(&dir).suspect), (3000, None));
}

/// A failure that a stop follows at once is counted all the same.
#[test]
fn check_that_fails_during_a_stop_is_counted() {
    let (rule, stop) = ("0.6".parse::<Rule>().unwrap(), AtomicBool::new(false));
    let policy = RunPolicy { commit_every: Some(1000), ..RunPolicy::default() };
    let (dir, mut notes) = (Dir::on(Arc::new(Memory::new()), Path::new("run")), Notes::default());
    Run::on(Some(&rule), &dir).options(options(12_000)).policy(policy).observer(&mut notes).run_in_pool().unwrap();
    let outcome = retry_failed_checks(&dir, 7, &mut notes, |attempt, observer| {
        let options = &options(TO);
        match prepare(Some(&rule), &mut Context { dir: &dir, options, policy, attempt, observer, stop: &stop })? {
            Prepared::Nothing(outcome) => Ok(outcome),
            Prepared::Ready(mut run) => {
                stop.store(true, Ordering::Relaxed);
                run.solver.flip();
                run.go_on(options, policy, observer, &stop)
            }
        }
    });
    assert!(outcome.unwrap().stopped);
    assert_eq!((last_record(&dir).count, last_record(&dir).errors), (12_000, 1), "{:?}", notes.0);
}

/// A machine that fails every 6 s, of which opening the run takes 1 s, keeps most of what it computes.
#[test]
fn commit_intervals_grow_from_short_to_long() {
    let begun = Instant::now();
    let at = |milliseconds| begun + Duration::from_millis(milliseconds);
    let mut clock = CommitClock::new();
    assert!(!clock.is_due(at(3_600_000)), "the first block decides, however long it takes");
    clock.block_computed(at(1000));
    let mut commits = Vec::new();
    for now in (1000..30_000).step_by(100) {
        clock.block_computed(at(now));
        if clock.is_due(at(now)) {
            commits.push(now);
            clock.commit_handed_over(at(now));
        }
    }
    assert_eq!(commits, [1700, 3100, 5900, 10_900, 15_900, 20_900, 25_900]);
}

#[test]
fn failure_is_retried_unless_it_repeats_identically() {
    let differs = |n: u64| Error::Differs { n, value: 1, again: 2, how: "a test".into() };
    let done =
        || Ok(Outcome { rule: "kayles".parse().unwrap(), progress: Progress::default(), computed: 0, stopped: false });
    let attempt = |failing: &dyn Fn(u64) -> Option<Error>| {
        let (mut attempts, mut notes) = (0, Notes::default());
        let dir = Dir::on(Arc::new(Memory::new()), Path::new("run"));
        let outcome = retry_failed_checks(&dir, 0, &mut notes, |attempt, _| {
            attempts += 1;
            assert_eq!(attempt.failures + 1, attempts, "the next attempt knows of the failures");
            failing(attempts).map_or_else(done, Err)
        });
        (outcome.map(|_| ()), attempts, notes.0.last().cloned().unwrap_or_default())
    };
    assert!(matches!(attempt(&|_| None), (Ok(()), 1, _)));
    assert!(matches!(attempt(&|n| (n == 1).then(|| differs(5))), (Ok(()), 2, _)));
    assert!(matches!(attempt(&|n| (n < 4).then(|| differs(n))), (Ok(()), 4, _)));
    let (outcome, attempts, note) = attempt(&|_| Some(differs(5)));
    assert!(matches!(outcome, Err(Error::Differs { n: 5, .. })) && attempts == 2 && note.contains("report the bug"));
    let options_differ = |n: u64| Error::OptionsDiffer { n, kernel: "a", other: "b" };
    let (outcome, attempts, note) = attempt(&|_| Some(options_differ(5)));
    assert!(
        matches!(outcome, Err(Error::OptionsDiffer { n: 5, .. })) && attempts == 2 && note.contains("report the bug")
    );
    // A bit that is stuck changes the same memory each time; the second text is then no evidence of a bug.
    let flipped = || Error::Flipped { what: "the codes", from: 1, to: 2 };
    let (outcome, attempts, note) = attempt(&|_| Some(flipped()));
    assert!(matches!(outcome, Err(Error::Flipped { .. })) && attempts == 2 && note.contains("stuck memory bit"));
    assert!(!note.contains("bug"), "{note}");
    let (outcome, attempts, note) = attempt(&|n| Some(differs(n)));
    assert!(
        outcome.is_err() && attempts == 1 + retry::FAILURES as u64 && note.contains("test the memory"),
        "{attempts}, {note}"
    );
    let (outcome, attempts, _) = attempt(&|_| Some(Error::ValueTooLarge { n: 1 }));
    assert!(matches!(outcome, Err(Error::ValueTooLarge { .. })) && attempts == 1, "no check failed");
}

/// A review while the first discarding commit is in flight must not change the space, which the summary states.
#[test]
fn space_is_fixed_before_the_first_discarding_commit() {
    const KEPT: u64 = 140_000;
    let count = RETAINED_HEAD + SEGMENT + KEPT;
    let (rule, stop) = ("0.106".parse::<Rule>().unwrap(), AtomicBool::new(false));
    let (policy, mut notes) = (RunPolicy { seed: Some(7), ..RunPolicy::default() }, Notes::default());
    let dir = Dir::on(Arc::new(Memory::new()), Path::new("run"));
    Run::on(Some(&rule), &dir).options(options(count)).policy(policy).observer(&mut notes).run_in_pool().unwrap();
    let attempt = Attempt { seed: 7, failures: 0 };
    let keeping = Options { keep: Some(KEPT), ..options(count + 1000) };
    let mut context = Context { dir: &dir, options: &keeping, policy, attempt, observer: &mut notes, stop: &stop };
    let Prepared::Ready(mut run) = prepare(Some(&rule), &mut context).unwrap() else {
        panic!("there is something to do")
    };
    assert!(!run.solver.has_fixed_space());
    run.commit().unwrap();
    assert!(run.solver.has_fixed_space());
    run.writer.wait().unwrap();
    assert!(!run.writer.published().discarded().is_empty());
}

/// The discard summary states the digest of the head too. Without it, as in summaries of earlier versions, nothing
/// states which head belongs to the values after the discarded ones.
#[test]
fn a_lost_record_of_the_head_costs_values_if_no_summary_states_it() {
    const KEPT: u64 = 140_000;
    let count = RETAINED_HEAD + 4 * SEGMENT + KEPT;
    let keeping = |to| Options { keep: Some(KEPT), ..options(to) };
    for is_stated in [true, false] {
        let memory = Arc::new(Memory::new());
        let (dir, mut notes) = (Dir::on(memory.clone(), Path::new("run")), Notes::default());
        let mut run = |options| {
            let rule = "0.106".parse::<Rule>().unwrap();
            let policy = RunPolicy { commit_every: Some(1500), ..RunPolicy::default() };
            Run::on(Some(&rule), &dir).options(options).policy(policy).observer(&mut notes).run_in_pool()
        };
        run(keeping(count)).unwrap();
        let before = last_record(&dir);
        let discarded = before.discarded().unwrap();
        assert_eq!(discarded.start, RETAINED_HEAD);
        let mut summary = DiscardSummary::read(dir.clone(), &before).unwrap().unwrap();
        if !is_stated {
            forget_head(&dir, &mut summary);
        }
        lose_record(&memory, RETAINED_HEAD);
        assert!(matches!(run(keeping(count)), Err(Error::Damage { .. })), "a damaged journal is refused");
        run(Options { rollback: true, ..keeping(1) }).unwrap();
        let after = last_record(&dir);
        assert_eq!(after.errors, if is_stated { 1 } else { 2 });
        if is_stated {
            assert_eq!((after.count, &after.digest, &after.kept), (count, &before.digest, &before.kept));
        } else {
            assert!(after.count < RETAINED_HEAD, "{}", after.count);
            // No discarded values, which are a hole, are copied.
            let is_of_values = |name: &String| {
                name.starts_with("quarantine-") && !name.contains("journal") && !name.contains("escapes")
            };
            let names: Vec<String> = dir.names().unwrap().into_iter().filter(is_of_values).collect();
            let [copy] = &names[..] else { panic!("one copy of values: {names:?}") };
            let (length, most) = (memory.get(copy).unwrap().len(), index(RETAINED_HEAD - after.count));
            assert!(length <= most, "{copy} has {length} values, at most {most} precede the discarded ones");
        }
        // Later runs need no rollback, and discard further values.
        run(keeping(count)).unwrap();
        assert_eq!(last_record(&dir).digest, before.digest);
        run(keeping(count + 2 * SEGMENT)).unwrap();
        let last = last_record(&dir);
        assert_eq!(last.discarded().unwrap(), RETAINED_HEAD..discarded.end + 2 * SEGMENT);
        let head = DiscardSummary::read(dir.clone(), &last).unwrap().unwrap().head;
        assert!(head.is_some(), "a later summary states the head");
        assert!(summary.head.is_none() || head == summary.head);
    }
}

/// Removes the head from the summary that the last record of a run names, as if an earlier version had written it.
fn forget_head(dir: &Dir, summary: &mut DiscardSummary) {
    summary.head = None;
    let snapshot = Some(summary.write(dir).unwrap());
    let mut journal = Journal::open(dir).unwrap().0;
    let last = journal.last().unwrap().clone();
    journal.append(Record { event: Event::Open, snapshot, ..last }).unwrap();
}

/// Alters a byte of the record with this count.
fn lose_record(memory: &Memory, count: u64) {
    let mut bytes = memory.get(journal::NAME).unwrap();
    let states = |line: &[u8]| serde_json::from_slice::<Record>(line).unwrap().count == count;
    let place = bytes.chunks(journal::RECORD).position(states).unwrap();
    bytes[place * journal::RECORD + 50] ^= 1;
    memory.put(journal::NAME, bytes);
}

/// G(0) = 0, and all values below 2^16 are options of 1. The first values decide the width of the table.
#[test]
fn a_value_too_large_among_the_first_ends_a_new_run_with_an_error() {
    let moves = (0..=u16::MAX).map(|constant| Move { remove: 1, constant, leaves: Leaves::Nothing });
    let rule = Rule::from_moves("all values", moves.collect()).unwrap();
    for to in [None, Some(2), Some(1 << 20)] {
        let dir = Dir::on(Arc::new(Memory::new()), Path::new("run"));
        let options = Options { to, width: None, ..options(1) };
        let ended = Run::on(Some(&rule), &dir).options(options).run_in_pool();
        assert!(matches!(ended, Err(Error::ValueTooLarge { n: 1 })), "{to:?}: {ended:?}");
        let last = last_record(&dir);
        assert_eq!((last.count, last.too_large), (1, Some(1)));
    }
}

/// By Lasker's theorem G(4k + 3) = 4k + 4, so G(65535) is the first value above 65535.
#[test]
fn run_past_a_recorded_end_verifies_the_table_and_computes_nothing() {
    const END: u64 = 65_535;
    let memory = Arc::new(Memory::new());
    let dir = Dir::on(memory.clone(), Path::new("run"));
    let lasker = "lasker".parse().unwrap();
    let run = |to| Run::on(Some(&lasker), &dir).options(Options { width: None, ..options(to) });
    assert!(run(END + 1).run_in_pool().is_err());
    let last = last_record(&dir);
    assert_eq!((last.count, last.too_large, last.event), (END, Some(END), Event::Close));
    let again = run(END + 1).run_in_pool();
    assert!(matches!(again, Err(Error::ValueTooLarge { n: END })), "{again:?}");
    assert!(run(END).run_in_pool().is_ok());
    assert_eq!(last_record(&dir), last, "neither run writes a record");
    // The error says that the values before are right, so they are verified first.
    let intact = memory.get(table::VALUES).unwrap();
    let mut damaged = intact.clone();
    damaged[index(HEADER) + 2000] ^= 1;
    memory.put(table::VALUES, damaged);
    let again = run(END + 1).run_in_pool();
    assert!(matches!(again, Err(Error::ValueTooLarge { n: END })), "{again:?}");
    assert_eq!((memory.get(table::VALUES).unwrap(), last_record(&dir).event), (intact, Event::Close), "repaired");
    let last = last_record(&dir);
    // A run continues one of an earlier version, which states no end, and records it.
    let mut journal = Journal::open(&dir).unwrap().0;
    journal.append(Record { event: Event::Open, too_large: None, ..last }).unwrap();
    drop(journal);
    assert!(run(END + 1).run_in_pool().is_err());
    assert_eq!(last_record(&dir).too_large, Some(END));
}

#[test]
fn false_end_of_the_values_is_a_failed_check_and_not_recorded() {
    let rule = "0.6".parse::<Rule>().unwrap();
    let (policy, stop, mut notes) = (RunPolicy::default(), AtomicBool::new(false), Notes::default());
    let dir = Dir::on(Arc::new(Memory::new()), Path::new("run"));
    Run::on(Some(&rule), &dir).options(options(12_000)).observer(&mut notes).run_in_pool().unwrap();
    let attempt = Attempt { seed: 7, failures: 0 };
    let prepared = {
        let (options, observer) = (&options(TO), &mut notes);
        prepare(Some(&rule), &mut Context { dir: &dir, options, policy, attempt, observer, stop: &stop }).unwrap()
    };
    let Prepared::Ready(run) = prepared else { panic!("there is something to do") };
    let ended = run.end_after(Error::ValueTooLarge { n: 12_000 });
    assert!(matches!(ended, Err(Error::Differs { n: 12_000, value: 65_536, .. })), "{ended:?}");
    assert_eq!(last_record(&dir).too_large, None);
}

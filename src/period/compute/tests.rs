use super::*;
use crate::period::{Proof, Theorem};
use crate::run::{Opening, Progress, ProofSummary, Run};
use crate::solver::{Method, Solver};

/// What a search holds when its watch has found a period in values that are not committed, and a check then fails: the
/// next attempt of the run opens it again.
#[test]
fn period_is_forgotten_with_the_values_that_showed_it() {
    let rule: Rule = ".16".parse().unwrap();
    let home = tempfile::tempdir().unwrap();
    let dir = &home.path().join("run");
    let (stop, outer) = (&AtomicBool::new(false), &AtomicBool::new(false));
    let settings = RunSettings { rule: &rule, dir, options: &Options::default() };
    let observer = &mut ();
    let mut session = Session::new(settings, observer, stop, outer);

    let mut solver = Solver::new(&rule, Method::default(), None, &[].as_slice()).unwrap();
    let (mut values, mut fresh) = (Vec::new(), Vec::new());
    while session.watch().found.is_none() {
        assert!(values.len() < 1 << 20, "the watch finds the period 149459 of .16");
        fresh.clear();
        solver.advance(&values, 1 << 20, &mut fresh).unwrap();
        let (rares, last_rare) = solver.count_rare_positions((values.len() + fresh.len()) as u64);
        let proof = ProofSummary { space: solver.space(), rares, last_rare, depth: solver.take_depth() };
        session.proved(values.len() as u64, &fresh, &proof);
        values.extend_from_slice(&fresh);
    }
    let found = session.watch().found.clone();
    // Without a committed value; and with some.
    for to in [1000, 2000] {
        session.advanced(&Progress { count: values.len() as u64, ..Progress::default() });
        assert!(stop.load(Ordering::Relaxed), "the period ends the run");
        let outcome = Run::builder(&rule, dir).to(to).observer(&mut session).stop(stop).run().unwrap();
        assert_eq!((outcome.progress.count, outcome.stopped), (to, false));
        assert_eq!(session.watch().found.take(), None);
        session.watch().found.clone_from(&found);
    }
}

/// Sets the stop flag when a run verifies its table after the search has verified it.
struct StopsLate<'a> {
    stop: &'a AtomicBool,
    was_opened: bool,
}

impl Observer for StopsLate<'_> {
    fn opened(&mut self, _: &Opening<'_>) {
        self.was_opened = true;
    }

    fn rehashed(&mut self, _: u64, _: u64) {
        self.stop.fetch_or(self.was_opened, Ordering::Relaxed);
    }
}

/// A table with more values than the first goal is verified and searched. Then the run is resumed, which verifies it
/// again.
#[test]
fn a_stop_during_a_later_verification_keeps_what_was_found() {
    let rule: Rule = "grundy".parse().unwrap();
    let home = tempfile::tempdir().unwrap();
    let dir = &home.path().join("run");
    let count = FIRST_LOOK_ON_DISK + 1;
    Run::builder(&rule, dir).to(count).run().unwrap();
    let options = Options { to: Some(4 * count), ..Options::default() };
    let search = RunSearch { rule: &rule, dir, options: &options, certify: false };
    let stop = AtomicBool::new(false);
    let found = search.compute_until_proved(&mut StopsLate { stop: &stop, was_opened: false }, &stop).unwrap();
    assert!(stop.load(Ordering::Relaxed), "the run verifies the table again");
    let Found::Searched { finding, stopped, .. } = found else { panic!("{found:?}") };
    assert_eq!((finding.count, stopped), (count, Some(Stopped::Searching)));
}

/// One flipped bit in a copy would move the preperiod: here that of .16, 105351 (published).
#[test]
fn copies_that_contradict_the_run_are_refused() {
    let rule: Rule = ".16".parse().unwrap();
    let home = tempfile::tempdir().unwrap();
    let dir = &home.path().join("run");
    Run::builder(&rule, dir).to(600_000).run().unwrap();
    let view = &RunReader::open(dir).unwrap();
    let (period, from, length) = (149_459, 300_000, 449_459);
    let copies = |preperiod, digested: u64| {
        let counted = CertifiedFacts::new(view.digest_before(digested).unwrap().unwrap(), SequenceStats::default());
        let proof = Proof { theorem: Theorem::P4, from, length, window: None, least: Vec::new() };
        OffsetCopies { preperiod, exceptions: None, counted, proof }
    };
    let right = &copies(105_351, length);
    confirm_digest(right, view).unwrap();
    confirm_preperiod(right, period, view).unwrap();
    for wrong in [0, 1, 105_350, 105_352, 200_001] {
        let confirmed = confirm_preperiod(&copies(wrong, length), period, view);
        assert!(matches!(confirmed, Err(Error::Flipped { .. })), "{wrong}: {confirmed:?}");
    }
    let other = confirm_digest(&copies(105_351, length - 1), view);
    assert!(matches!(other, Err(Error::OtherDigest { .. })), "{other:?}");
}

use super::*;
use crate::kernel::Kernel;
use crate::run::{Observer, Run};
use crate::solver::{Method, Solver};
use crate::support::Random;

/// Passes what a run proves to a watch.
struct Seeing(Watch);

impl Observer for Seeing {
    fn proved(&mut self, from: u64, values: &[u16], proof: &ProofSummary) {
        self.0.see(from, values, proof);
    }
}

/// Runs a solver under a watch, which receives the values from `from` on in pieces of random lengths.
fn watched(game: &str, from: u64, to: u64, random: &mut Random) -> (Option<Repeat>, Vec<u16>) {
    let rule: Rule = game.parse().unwrap();
    let mut solver = Solver::new(&rule, Method::Sparse(Kernel::best()), None, &[].as_slice()).unwrap();
    let mut watch = Watch::new(&rule);
    let (mut values, mut fresh) = (Vec::new(), Vec::new());
    while (values.len() as u64) < to && watch.found.is_none() {
        fresh.clear();
        solver.advance(&values, to, &mut fresh).unwrap();
        let (rares, last_rare) = solver.count_rare_positions(values.len() as u64 + fresh.len() as u64);
        let proof = ProofSummary { space: solver.space(), rares, last_rare, depth: solver.take_depth() };
        let mut n = values.len() as u64;
        for piece in fresh.chunks(1 + usize::try_from(random.below(40_000)).unwrap()) {
            if n >= from {
                watch.see(n, piece, &proof);
            }
            n += piece.len() as u64;
        }
        values.extend_from_slice(&fresh);
    }
    (watch.found, values)
}

/// Published periods and preperiods: .16 149459, 105351; .56 144, 326640; and a game with e = 1, 2×n squares 12,
/// 71.
#[test]
fn watch_finds_and_proves_published_periods() {
    let mut random = Random::new("watch");
    for (game, from, p, n0) in [
        (".16", 0, 149_459, 105_351),
        (".16", 200_000, 149_459, 105_351),
        (".56", 0, 144, 326_640),
        ("remove-a-square", 0, 12, 71),
        ("kayles", 5, 12, 71),
    ] {
        let (found, values) = watched(game, from, 1 << 21, &mut random);
        let found = found.unwrap_or_else(|| panic!("{game} from {from}"));
        assert_eq!(found.period, p, "{game} from {from}");
        assert!(found.preperiod >= n0 && !found.exact, "{game}: {found:?}");
        let window = found.proof.unwrap().window.unwrap();
        assert_eq!(window.to - window.from, p);
        assert!(values.len() as u64 >= window.to);
    }
    for game in ["grundy", ".6"] {
        assert_eq!(watched(game, 0, 1 << 19, &mut random).0, None, "{game}");
    }
}

/// A run that was stopped after n1 continues with its window. A run that was continued without the watch, or
/// whose saved state was altered, takes a new window.
#[test]
fn window_survives_a_stop_but_not_a_gap_or_an_altered_file() {
    let (rule, p): (Rule, u64) = (".16".parse().unwrap(), 149_459);
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    let advance = |to: u64, watch: Watch| {
        let mut seeing = Seeing(watch);
        Run::builder(&rule, &dir).to(to).threads(2).observer(&mut seeing).run().unwrap();
        (seeing.0, RunReader::open(&dir).unwrap())
    };
    let n1 = 1 << 18;
    let (watch, view) = advance(n1 + 10_000, Watch::new(&rule));
    assert_eq!(watch.mark.as_ref().map(|mark| mark.n1), Some(n1));
    watch.write_down(&dir, &view).unwrap();
    let again = Watch::resume(&rule, &dir, &view).unwrap();
    let same = |a: &Mark, b: &Mark| (a.n1, a.proof.depth, &a.window) == (b.n1, b.proof.depth, &b.window);
    assert!(same(again.mark.as_ref().unwrap(), watch.mark.as_ref().unwrap()));
    let saved = std::fs::read(dir.join("watch.bin")).unwrap();
    for at in (0..saved.len()).step_by(997) {
        let mut altered = saved.clone();
        altered[at] ^= 1;
        std::fs::write(dir.join("watch.bin"), altered).unwrap();
        assert!(Watch::resume(&rule, &dir, &view).unwrap().mark.is_none(), "byte {at}");
    }
    // A window with a valid seal whose values are not those of the run.
    let mark = watch.mark.as_ref().unwrap();
    let mut window = mark.window.clone();
    window[1000] ^= 1;
    let other = Mark::new(mark.n1, mark.proof, window).unwrap();
    crate::period::watch_state::write(&dir, &view, &other).unwrap();
    assert!(Watch::resume(&rule, &dir, &view).unwrap().mark.is_none());
    std::fs::write(dir.join("watch.bin"), &saved).unwrap();
    let (seen, view) = advance(n1 + p + 1000, again);
    let found = seen.found.as_ref().expect("the period shows");
    assert_eq!((found.period, found.preperiod), (p, n1));
    // The saved state belongs to another length now.
    let late = Watch::resume(&rule, &dir, &view).unwrap();
    assert!(late.mark.is_none() && late.recent.len() as u64 >= solver::lookback(&rule, view.contents.last.last_rare));
}

/// The solver of a game without splits needs few values, so the watch must not hold all of them.
#[test]
fn nothing_is_remembered_without_a_sparse_space() {
    let rule: Rule = ".333".parse().unwrap();
    let proof = ProofSummary { space: SparseSpace::NONE, rares: 0, last_rare: 0, depth: 0 };
    let mut watch = Watch::new(&rule);
    for from in (0..5000).step_by(1000) {
        watch.see(from, &[1; 1000], &proof);
        assert!(watch.recent.is_empty() && watch.mark.is_none() && watch.end == from + 1000);
    }
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    Run::builder(&rule, &dir).to(3000).run().unwrap();
    let watch = Watch::resume(&rule, &dir, &RunReader::open(&dir).unwrap()).unwrap();
    assert!(watch.recent.is_empty() && watch.end == 3000);
}

/// A window that recurs proves nothing after a rare position or with deep witnesses, nor does one that differs in
/// a value.
#[test]
fn recurring_window_proves_nothing_when_another_premise_fails() {
    let rule: Rule = "remove-a-square".parse().unwrap();
    let space = SparseSpace::new(&rule, 0x3, 1).unwrap();
    let good = ProofSummary { space, rares: 10, last_rare: 70, depth: 100 };
    let count = 1 << 19;
    let seen = |values: &[u16], proof: &dyn Fn(u64) -> ProofSummary| {
        let mut watch = Watch::new(&rule);
        for (i, piece) in values.chunks(1000).enumerate() {
            let from = 1000 * i as u64;
            watch.see(from, piece, &proof(from));
        }
        watch.found
    };
    let cycle = |p: usize| (0..count).map(|n| [1, 2, 3, 4, 5, 6, 7][n % p]).collect::<Vec<u16>>();
    assert_eq!(seen(&cycle(6), &|_| good).map(|found| found.period), Some(6));
    // P4 needs an even distance where the position term is 1.
    assert_eq!(seen(&cycle(7), &|_| good).map(|found| found.period), Some(14));
    // The last position of each piece is rare.
    assert!(seen(&cycle(6), &|from| ProofSummary { rares: 10 + from, last_rare: from + 999, ..good }).is_none());
    assert!(seen(&cycle(6), &|_| ProofSummary { depth: 1 << 40, ..good }).is_none());
    // No 131 000 values occur twice.
    let grows: Vec<u16> =
        (0..count).map(|n| if n % 50_021 == 0 { u16::try_from(n / 50_021).unwrap() + 9 } else { 3 }).collect();
    assert!(seen(&grows, &|_| good).is_none());
}

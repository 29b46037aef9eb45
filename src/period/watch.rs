//! Watches a run for a period, when the run retains only its last values.
//!
//! As in Brent's cycle detection (*An improved Monte Carlo factorization algorithm*, BIT 20, 1980), the watch
//! remembers the last values before some n1, a power of two, and compares every later end of the sequence with this
//! window. At the next power of two it replaces the window. When the W values before n2 equal those before n1, and no
//! rare position and no deep witness occurred in between, P4 of [`super`] proves that n2 - n1 is a period from n1 on.
//! It is the least period: a smaller one would have shown the same window sooner. (With e = 1 P4 needs an even
//! distance. If half of that distance is odd and a period, the window has already recurred at this odd distance; so
//! where it has, the two halves are compared value by value.)
//!
//! The cost is a copy of the values, and a search for the last [`NEEDLE`] values of the window among them. When a run
//! is stopped, its window is saved ([`super::watch_state`]). A run that was killed takes a new window when it is
//! resumed, and then finds the period one period later.
//!
//! Invariant: from n1 to the last value seen every n is common, and `depth` bounds the depth of its witnesses.

use super::{PeriodWindow, Proof, Repeat, Theorem, watch_state};
use crate::error::Result;
use crate::run::{ProofSummary, RunReader};
use crate::solver::{self, SparseSpace};
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::rule::Rule;
use memchr::memmem::Finder;
use std::path::Path;

/// Number of values at the end of the window that are searched for; the other values are compared where these occur.
const NEEDLE: usize = 64;

/// Number of values, beyond two windows, that a resumed watch reads again. It exceeds the number that a run computes
/// after its watch has found the period.
const SEEN_AGAIN: u64 = 1 << 20;

/// The window before n1, and what is known about the values since.
pub(super) struct Mark {
    pub(super) n1: u64,
    space: SparseSpace,
    pub(super) rares: u64,
    pub(super) last_rare: u64,
    /// Upper bound of the smaller parts of witnesses since n1.
    pub(super) depth: u64,
    /// The values before n1.
    pub(super) window: Vec<u16>,
    /// Searches for the low bytes of the last [`NEEDLE`] values of `window`.
    needle: Finder<'static>,
    /// Odd distances at which the window recurred, when e = 1.
    pub(super) odd: Vec<u64>,
}

impl Mark {
    /// Creates a mark at n1, given the number of rare positions and the last of them; `None` when `window` is shorter
    /// than [`NEEDLE`].
    pub(super) fn new(
        n1: u64,
        space: SparseSpace,
        (rares, last_rare): (u64, u64),
        depth: u64,
        window: Vec<u16>,
        odd: Vec<u64>,
    ) -> Option<Mark> {
        let last = &window[window.len().checked_sub(NEEDLE)?..];
        let low: Vec<u8> = last.iter().map(|v| v.to_le_bytes()[0]).collect();
        let needle = Finder::new(&low).into_owned();
        Some(Mark { n1, space, rares, last_rare, depth, window, needle, odd })
    }
}

/// Receives the values of a run and searches them for a period.
pub(super) struct Watch {
    rule: Rule,
    /// The last values seen.
    recent: Vec<u16>,
    /// One past the last n seen.
    end: u64,
    mark: Option<Mark>,
    /// The first period that P4 proved.
    pub(super) found: Option<Repeat>,
}

impl Watch {
    pub(super) fn new(rule: &Rule) -> Watch {
        Watch { rule: rule.clone(), recent: Vec::new(), end: 0, mark: None, found: None }
    }

    /// Returns n1 and the window before it, as remembered now.
    pub(super) fn mark_now(&self) -> Option<(u64, &[u16])> {
        self.mark.as_ref().map(|mark| (mark.n1, mark.window.as_slice()))
    }

    /// Creates a watch that continues where a run was stopped, from the saved state.
    ///
    /// # Errors
    /// Errors of reading the last values.
    pub(super) fn resume(rule: &Rule, dir: &Path, view: &RunReader) -> Result<Watch> {
        let end = view.len();
        let mut watch = Watch::new(rule);
        let wide = solver::lookback(rule, view.contents.last.last_rare);
        // Far enough back to find again a period that was found just before the stop.
        let start = end.saturating_sub(wide.saturating_mul(2).saturating_add(SEEN_AGAIN)).max(view.freed().end);
        watch.recent = vec![0; index(end - start)];
        view.read(start, &mut watch.recent)?;
        watch.end = end;
        watch.mark = watch_state::read(dir, view);
        watch.compare(watch.recent.len());
        Ok(watch)
    }

    /// Saves the mark for [`Watch::resume`], if the watch has seen all values of the run.
    ///
    /// # Errors
    /// Errors of writing the file.
    pub(super) fn write_down(&self, dir: &Path, view: &RunReader) -> Result<()> {
        match &self.mark {
            Some(mark) if self.end == view.len() => watch_state::write(dir, view, mark),
            _ => Ok(()),
        }
    }

    /// Receives the values of `from..from + values.len()`, and the summary of how they were proved.
    pub(super) fn see(&mut self, from: u64, values: &[u16], proof: &ProofSummary) {
        if from != self.end {
            // The engine has opened the run again.
            self.recent = Vec::new();
            self.mark = None;
        }
        self.end = from;
        let wide = solver::lookback(&self.rule, proof.last_rare);
        if let Some(mark) = &mut self.mark {
            mark.depth = mark.depth.max(proof.depth);
            if (mark.space, mark.rares, mark.last_rare) != (proof.space, proof.rares, proof.last_rare) {
                self.mark = None;
            }
        }
        let mut rest = values;
        while !rest.is_empty() {
            // Up to the next power of two.
            let next = (self.end + 1).next_power_of_two();
            let (piece, later) = rest.split_at(index(next - self.end).min(rest.len()));
            self.take(piece);
            rest = later;
            if self.found.is_some() {
                continue; // the found period stays, and so does its window
            }
            self.compare(piece.len());
            let due = self.mark.is_none() || self.end == next;
            if proof.space != SparseSpace::NONE && due && proof.last_rare < self.end && self.found.is_none() {
                self.mark(wide, proof);
            }
        }
        let keep = index(wide);
        if self.recent.len() > 4 * keep + (1 << 20) {
            self.recent.drain(..self.recent.len() - keep);
        }
    }

    fn take(&mut self, piece: &[u16]) {
        self.recent.extend_from_slice(piece);
        self.end += piece.len() as u64;
    }

    /// Takes the last `wide` values as the window, when there are enough of them.
    fn mark(&mut self, wide: u64, proof: &ProofSummary) {
        let Some(start) = self.recent.len().checked_sub(index(wide)) else { return };
        let (rares, window) = ((proof.rares, proof.last_rare), self.recent[start..].to_vec());
        self.mark = Mark::new(self.end, proof.space, rares, proof.depth, window, Vec::new());
    }

    /// Compares each of the last `fresh` ends of the sequence with the window.
    fn compare(&mut self, fresh: usize) {
        let Some(mark) = &mut self.mark else { return };
        let first = self.recent.len().saturating_sub(fresh + NEEDLE - 1);
        let low: Vec<u8> = self.recent[first..].iter().map(|v| v.to_le_bytes()[0]).collect();
        let mut from = 0;
        while let Some(at) = mark.needle.find(&low[from..]) {
            let end = first + from + at + NEEDLE; // in `recent`
            from += at + 1;
            let n2 = self.end - (self.recent.len() - end) as u64;
            let width = mark.window.len();
            if n2 <= mark.n1 || end < width || self.recent[end - width..end] != mark.window[..] {
                continue;
            }
            let (p, e) = (n2 - mark.n1, mark.space.position);
            if e == 1 && p % 2 == 1 {
                mark.odd.push(p);
                continue;
            }
            let window = PeriodWindow {
                from: mark.n1,
                to: n2,
                space: mark.space,
                rares: mark.rares,
                last_rare: mark.last_rare,
                depth: mark.depth,
            };
            if !window.is_placed(&self.rule) || window.width(&self.rule) > width as u64 || mark.last_rare >= mark.n1 {
                continue;
            }
            let half_seen = e == 1 && mark.odd.contains(&(p / 2));
            let proof =
                Proof { theorem: Theorem::P4, from: mark.n1, length: n2, window: Some(window), least: Vec::new() };
            let mut repeat = Repeat { period: p, preperiod: mark.n1, exact: false, saltus: 0, proof: Some(proof) };
            if half_seen {
                match halves_agree(&self.recent[..end], p) {
                    Some(true) => repeat.period = p / 2,
                    Some(false) => {}
                    // p is a period, but p/2 may be one as well; without proof of the least period, the repetition is
                    // only observed.
                    None => repeat.proof = None,
                }
            }
            self.found = Some(repeat);
            return;
        }
    }
}

/// Whether the last p values have period p/2; `None` when `values` has fewer than p.
fn halves_agree(values: &[u16], p: u64) -> Option<bool> {
    let last = &values[values.len().checked_sub(usize::try_from(p).ok()?)?..];
    let (a, b) = last.split_at(last.len() / 2);
    Some(a == b)
}

#[cfg(test)]
mod tests {
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
        let mut solver = Solver::new(&rule, Method::Sparse(Kernel::best()), None, &[][..]).unwrap();
        let mut watch = Watch::new(&rule);
        let (mut values, mut fresh) = (Vec::new(), Vec::new());
        while (values.len() as u64) < to && watch.found.is_none() {
            fresh.clear();
            solver.advance(values.as_slice(), to, &mut fresh).unwrap();
            let (rares, last_rare) = solver.rares(values.len() as u64 + fresh.len() as u64);
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
        let same = |a: &Mark, b: &Mark| (a.n1, a.depth, &a.window, &a.odd) == (b.n1, b.depth, &b.window, &b.odd);
        assert!(same(again.mark.as_ref().unwrap(), watch.mark.as_ref().unwrap()));
        let saved = std::fs::read(dir.join("watch.bin")).unwrap();
        for at in (0..saved.len()).step_by(997) {
            let mut altered = saved.clone();
            altered[at] ^= 1;
            std::fs::write(dir.join("watch.bin"), altered).unwrap();
            assert!(Watch::resume(&rule, &dir, &view).unwrap().mark.is_none(), "byte {at}");
        }
        std::fs::write(dir.join("watch.bin"), &saved).unwrap();
        let (seen, view) = advance(n1 + p + 1000, again);
        let found = seen.found.as_ref().expect("the period shows");
        assert_eq!((found.period, found.preperiod), (p, n1));
        // The saved state belongs to another length now.
        let late = Watch::resume(&rule, &dir, &view).unwrap();
        assert!(
            late.mark.is_none() && late.recent.len() as u64 >= solver::lookback(&rule, view.contents.last.last_rare)
        );
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
        // An odd period: P4 proves twice the period, and then the halves agree.
        assert_eq!(seen(&cycle(7), &|_| good).map(|found| found.period), Some(7));
        // The last position of each piece is rare.
        assert!(seen(&cycle(6), &|from| ProofSummary { rares: 10 + from, last_rare: from + 999, ..good }).is_none());
        assert!(seen(&cycle(6), &|_| ProofSummary { depth: 1 << 40, ..good }).is_none());
        // No 131 000 values occur twice.
        let grows: Vec<u16> =
            (0..count).map(|n| if n % 50_021 == 0 { u16::try_from(n / 50_021).unwrap() + 9 } else { 3 }).collect();
        assert!(seen(&grows, &|_| good).is_none());
    }
}

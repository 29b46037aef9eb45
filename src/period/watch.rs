//! Watching a run for a period, when it keeps only its last values.
//!
//! As in Brent's cycle detection (*An improved Monte Carlo factorization algorithm*, BIT 20, 1980) the last values before some
//! n1, a power of two, are remembered, and every later end of the sequence is held against them; at the next power of two
//! they are replaced. When the W values before n2 are those before n1, and no rare heap and no deep witness came in
//! between, P4 of [`super`] says that n2 - n1 is a period from n1 on. It is the least: a smaller one would have shown the
//! same window sooner. (With e = 1 only even distances count. Half of one, if odd, would have shown the window too, at an
//! odd distance; where it has, the half must be looked at value by value.)
//!
//! That costs a copy of the values and a search for the last [`NEEDLE`] of the window among them. A run that is stopped has
//! its window written down ([`super::watch_state`]); one that was killed takes a new window where it is resumed, and then
//! sees the period one period later.
//!
//! Invariant: between n1 and the last value seen every heap is common, and `depth` bounds how deep its witnesses lie.

use super::{PeriodWindow, Proof, Repeat, Theorem, watch_state};
use crate::error::Result;
use crate::run::{ProofSummary, RunReader};
use crate::solver::{self, SparseSpace};
use crate::theory::definition::Sequence;
use crate::theory::nimber::index;
use crate::theory::rule::Rule;
use memchr::memmem::Finder;
use std::path::Path;

/// So many values of the window are searched for; the others are compared where these are found.
const NEEDLE: usize = 64;

/// A run that has found its period does not go much farther.
const SEEN_AGAIN: u64 = 1 << 20;

/// What is remembered of n1.
pub(super) struct Mark {
    pub(super) n1: u64,
    space: SparseSpace,
    pub(super) rares: u64,
    pub(super) last_rare: u64,
    /// The greatest smaller part of a witness since.
    pub(super) depth: u64,
    /// The values before n1.
    pub(super) window: Vec<u16>,
    /// Low bytes of the last of them.
    needle: Finder<'static>,
    /// Odd distances at which the window was seen, when e = 1.
    pub(super) odd: Vec<u64>,
}

impl Mark {
    /// A mark at n1; `None` when the window is too short to be searched for. Of the rare heaps number and last are known.
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

/// Sees the values of a run go by.
pub(super) struct Watch {
    rule: Rule,
    /// The last values seen.
    recent: Vec<u16>,
    /// One past the last heap seen.
    end: u64,
    mark: Option<Mark>,
    /// The first period that P4 proved.
    pub(super) found: Option<Repeat>,
}

impl Watch {
    pub(super) fn new(rule: &Rule) -> Watch {
        Watch { rule: rule.clone(), recent: Vec::new(), end: 0, mark: None, found: None }
    }

    /// n1 and the values before it that are remembered now.
    pub(super) fn mark_now(&self) -> Option<(u64, &[u16])> {
        self.mark.as_ref().map(|mark| (mark.n1, mark.window.as_slice()))
    }

    /// A watch that goes on where a run was stopped, with what was written down then.
    ///
    /// # Errors
    /// What reading the last values gives.
    pub(super) fn resume(rule: &Rule, dir: &Path, view: &RunReader) -> Result<Watch> {
        let (end, mut watch) = (view.len(), Watch::new(rule));
        let wide = solver::lookback(rule, view.contents.last.last_rare);
        // Far enough back to see again what was found just before.
        let start = end.saturating_sub(wide.saturating_mul(2).saturating_add(SEEN_AGAIN)).max(view.freed().end);
        watch.recent = vec![0; index(end - start)];
        view.read(start, &mut watch.recent)?;
        (watch.end, watch.mark) = (end, watch_state::read(dir, view));
        watch.compare(watch.recent.len());
        Ok(watch)
    }

    /// Writes down what is remembered, for [`Watch::resume`].
    ///
    /// # Errors
    /// What writing gives.
    pub(super) fn write_down(&self, dir: &Path, view: &RunReader) -> Result<()> {
        match &self.mark {
            Some(mark) if self.end == view.len() => watch_state::write(dir, view, mark),
            _ => Ok(()),
        }
    }

    /// Takes the values of `from..from + values.len()`, and what is known of how they were proof.
    pub(super) fn see(&mut self, from: u64, values: &[u16], proof: &ProofSummary) {
        if from != self.end {
            (self.recent, self.mark) = (Vec::new(), None); // a run that was opened again
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
                continue; // what was found stays, and its window
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

    /// Remembers the last values, when there are enough of them.
    fn mark(&mut self, wide: u64, proof: &ProofSummary) {
        let Some(start) = self.recent.len().checked_sub(index(wide)) else { return };
        let (rares, window) = ((proof.rares, proof.last_rare), self.recent[start..].to_vec());
        self.mark = Mark::new(self.end, proof.space, rares, proof.depth, window, Vec::new());
    }

    /// Holds each of the last `fresh` ends against the window.
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
                    // A period it is, but perhaps not the least: so it is not called one.
                    None => repeat.proof = None,
                }
            }
            self.found = Some(repeat);
            return;
        }
    }
}

/// Whether the last p values have period p/2; `None` when they are not all there.
fn halves_agree(values: &[u16], p: u64) -> Option<bool> {
    let last = &values[values.len().checked_sub(usize::try_from(p).ok()?)?..];
    let (a, b) = last.split_at(last.len() / 2);
    Some(a == b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::run::{self, Observer, Options, Progress};
    use crate::solver::{Method, Solver};
    use crate::support::Random;
    use std::sync::atomic::AtomicBool;

    /// Shows a watch what a run proves.
    struct Seeing(Watch);

    impl Observer for Seeing {
        fn started(&mut self, _: &Rule, _: u64, _: Option<u64>) {}
        fn rehashed(&mut self, _: u64, _: u64) {}
        fn advanced(&mut self, _: &Progress) {}
        fn proved(&mut self, from: u64, values: &[u16], proof: &ProofSummary) {
            self.0.see(from, values, proof);
        }
        fn note(&mut self, _: &str) {}
    }

    /// Runs a solver under a watch, which sees pieces of all lengths, from `from` on.
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

    /// Published: .16 149459, 105351; .56 144, 326640; .104-like games with e = 1: 2xn squares 12, 71.
    #[test]
    fn a_period_is_seen_and_proved_while_values_go_by() {
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

    /// Stopped behind n1 a run goes on with its window; one that was gone on with by other means, or whose note was altered,
    /// takes a new one, and sees the period one period later.
    #[test]
    fn a_stop_does_not_lose_the_window_and_a_gap_does() {
        let (rule, p): (Rule, u64) = (".16".parse().unwrap(), 149_459);
        let method = Method::Sparse(Kernel::best());
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("run");
        let advance = |to: u64, watch: Watch| {
            let mut seeing = Seeing(watch);
            let options = Options { to: Some(to), threads: 2, method, width: None, keep: None, rollback: false };
            run::run(Some(&rule), &dir, &options, &mut seeing, &AtomicBool::new(false)).unwrap();
            (seeing.0, RunReader::open(&dir).unwrap())
        };
        let n1 = 1 << 18;
        let (watch, view) = advance(n1 + 10_000, Watch::new(&rule));
        assert_eq!(watch.mark.as_ref().map(|mark| mark.n1), Some(n1));
        watch.write_down(&dir, &view).unwrap();
        let again = Watch::resume(&rule, &dir, &view).unwrap();
        let same = |a: &Mark, b: &Mark| (a.n1, a.depth, &a.window, &a.odd) == (b.n1, b.depth, &b.window, &b.odd);
        assert!(same(again.mark.as_ref().unwrap(), watch.mark.as_ref().unwrap()));
        let note = std::fs::read(dir.join("watch.bin")).unwrap();
        for at in (0..note.len()).step_by(997) {
            let mut altered = note.clone();
            altered[at] ^= 1;
            std::fs::write(dir.join("watch.bin"), altered).unwrap();
            assert!(Watch::resume(&rule, &dir, &view).unwrap().mark.is_none(), "byte {at}");
        }
        std::fs::write(dir.join("watch.bin"), &note).unwrap();
        let (seen, view) = advance(n1 + p + 1000, again);
        let found = seen.found.as_ref().expect("the period shows");
        assert_eq!((found.period, found.preperiod), (p, n1));
        // The note is of another length now.
        let late = Watch::resume(&rule, &dir, &view).unwrap();
        assert!(
            late.mark.is_none() && late.recent.len() as u64 >= solver::lookback(&rule, view.contents.last.last_rare)
        );
    }

    /// A window that comes back is not enough: not after a rare heap, not with deep witnesses, not one value off.
    #[test]
    fn a_window_that_comes_back_is_not_believed_without_the_rest() {
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
        // An odd period: P4 shows twice as much, and then the halves agree.
        assert_eq!(seen(&cycle(7), &|_| good).map(|found| found.period), Some(7));
        // The last heap of each piece is rare.
        assert!(seen(&cycle(6), &|from| ProofSummary { rares: 10 + from, last_rare: from + 999, ..good }).is_none());
        assert!(seen(&cycle(6), &|_| ProofSummary { depth: 1 << 40, ..good }).is_none());
        // Never the same 131 000 values again.
        let grows: Vec<u16> =
            (0..count).map(|n| if n % 50_021 == 0 { u16::try_from(n / 50_021).unwrap() + 9 } else { 3 }).collect();
        assert!(seen(&grows, &|_| good).is_none());
    }
}

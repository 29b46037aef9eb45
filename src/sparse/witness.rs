//! The witness stream: behind the candidates, an option for every smaller rare value.
//!
//! The least common value m* that is not an option is G(n) if and only if every value below m* that is rare at n is an
//! option too; each needs one option that has it, a witness. There is no serial dependency here: any part of the heaps
//! before n may be used, so groups of 512 heaps are checked side by side.
//!
//! **Planes.** For each value v one bit a heap ("G(n) = v"). For a target t and a split with smaller part a and
//! o = s + a a multiple of 8, the heaps that this split settles are the plane of `G(a) ^ c ^ t` shifted by whole bytes:
//! one OR of 64 bytes settles 512 heaps. Which parts are asked for which target is learnt greedily, and diversely, from
//! the last heaps. What is left is searched heap by heap from the small end, and a search that fails ends in the
//! exhaustive walk over all pairs ([`definition::first_missing`]), which is the only place where a value is ever called
//! rare.
//!
//! **Values of 256 and more** are targets like all others. Their witnesses need a part whose value is itself above 255 (or
//! a constant with such a bit), one heap in thousands, so those heaps are kept in a list.
//!
//! Invariant: a heap is reported as settled only after each of its targets was seen as the value of an option whose parts
//! are at least 1 and far enough apart. Parts inside the block under test count, because the heaps are settled in
//! ascending order: when one fails, all from there on are discarded.

use super::space::Space;
use super::window::Window;
use crate::definition::{self, Sequence};
use crate::error::{Error, Result};
use crate::mex::{Kernel, PLANE};
use crate::nimber::{NimSet, index};
use crate::rule::{Rule, Split};
use rayon::prelude::*;

/// Heaps checked together by one task: 64 bytes of a plane.
const GROUP: u64 = 512;

/// Smaller parts that planes are asked for reach up to here.
const DEPTH: u64 = 49_152;

/// Smaller parts that the search heap by heap reaches.
const HEAD: u64 = 1 << 16;

/// The span of heaps learnt from, a multiple of [`GROUP`]; 64 heaps of every [`SAMPLE_STEP`] times 64.
const SAMPLE: u64 = 16_384;

/// Every how many words of 64 heaps are learnt from.
const SAMPLE_STEP: usize = 8;

/// Parts considered per target when learning: those whose other part has the most frequent values.
const CHOICES: usize = 768;

/// Parts learnt per target.
const PROBES: usize = 320;

/// A new order is learnt after this many heaps, or when there are twice as many.
const RELEARN: u64 = 1 << 22;

/// Before this heap everything is searched heap by heap.
const YOUNG: u64 = 8192;

/// How far back values are read when a stream is made, besides the largest removal of the rule and the first [`HEAD`].
pub(super) const LOOKBACK: u64 = HEAD + SAMPLE + GROUP;

/// Values that have a plane.
const PLANES: usize = 512;

/// Bytes of one plane; not a multiple of 4096, or all planes would meet in the same cache sets.
const STRIDE: usize = 33_856;

/// What checking a block came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Checked {
    /// The first heap whose candidate is too large, and its true value, which is rare.
    pub(super) missing: Option<(u64, u16)>,
    /// The largest smaller part of any witness, or a bound of it.
    pub(super) depth: u64,
    /// Exhaustive walks.
    pub(super) walks: u64,
}

impl Checked {
    /// Both parts of a block; `missing` is that of the lower heap.
    fn and(self, later: Checked) -> Checked {
        Checked {
            missing: self.missing.or(later.missing),
            depth: self.depth.max(later.depth),
            walks: self.walks + later.walks,
        }
    }
}

/// Where a plane is asked, in bytes from the place of the group in plane 0 (wrapping): the start of the plane less an
/// eighth of the offset.
type Ask = usize;

pub(super) struct Witnesses {
    rule: Rule,
    kernel: Kernel,
    space: Space,
    splits: Vec<Split>,
    /// G(a) at index [`HEAD`] - 1 - a: reversed, so that the two parts of a split run side by side.
    head: Vec<u16>,
    /// The last values, at least [`HEAD`] and the largest removal back.
    recent: Window<u16>,
    /// Heaps with values above 255.
    large: Vec<(u64, u16)>,
    /// Bit n - `planes_from` of plane v is set when G(n) = v.
    planes: Vec<u8>,
    /// A multiple of [`GROUP`].
    planes_from: u64,
    /// Per target the parts that are asked, best first.
    asks: Vec<Vec<Ask>>,
    /// The smaller parts asked are at most this large; 0 before anything is learnt.
    depth: u64,
    learnt_at: u64,
}

impl Witnesses {
    /// A stream that continues `past`, of whose values above 255 `large` are known, with their heaps.
    pub(super) fn new<S: Sequence + ?Sized>(
        rule: &Rule,
        space: Space,
        kernel: Kernel,
        large: Vec<(u64, u16)>,
        past: &S,
    ) -> Result<Witnesses> {
        let end = past.len();
        let mut head = vec![0; index(HEAD)];
        past.read(0, &mut head[..index(end.min(HEAD))])?;
        head.reverse();
        let start = end.saturating_sub(LOOKBACK + rule.max_remove());
        let mut recent = vec![0; index(end - start)];
        past.read(start, &mut recent)?;
        let mut witnesses = Witnesses {
            rule: rule.clone(),
            kernel,
            space,
            splits: rule.splits().collect(),
            head,
            recent: Window::new(start, recent),
            large,
            planes: vec![0; PLANES * STRIDE],
            planes_from: 0,
            asks: vec![Vec::new(); PLANES],
            depth: 0,
            learnt_at: 0,
        };
        witnesses.planes_from = end.saturating_sub(witnesses.lookback()) / GROUP * GROUP;
        for n in witnesses.planes_from.max(start)..end {
            witnesses.set_bit(n, witnesses.recent.get(n));
        }
        Ok(witnesses)
    }

    fn end(&self) -> u64 {
        self.recent.end()
    }

    /// G(a) for a below [`HEAD`].
    fn small(&self, a: u64) -> u16 {
        self.head[index(HEAD - 1 - a)]
    }

    /// How far back planes are read: for learning, from the start of the sample.
    fn lookback(&self) -> u64 {
        DEPTH + SAMPLE + self.rule.max_remove() + GROUP
    }

    /// Moves the planes down, so that `more` values have room.
    fn slide_planes(&mut self, more: usize) {
        let from = self.end().saturating_sub(self.lookback()) / GROUP * GROUP;
        let dead = index((from - self.planes_from) / 8);
        let used = index(self.end() - self.planes_from) / 8 + 1;
        assert!(used - dead + more / 8 + 65 <= STRIDE, "the largest removal of the rule leaves the planes no room");
        for plane in self.planes.chunks_exact_mut(STRIDE) {
            plane.copy_within(dead..used, 0);
            plane[used - dead..used].fill(0);
        }
        self.planes_from = from;
    }

    #[inline]
    fn set_bit(&mut self, n: u64, value: u16) {
        if usize::from(value) < PLANES {
            let bit = index(n - self.planes_from);
            self.planes[usize::from(value) * STRIDE + bit / 8] |= 1 << (bit % 8);
        }
    }

    /// Takes up the next values, proved or about to be checked.
    pub(super) fn push(&mut self, values: &[u16]) {
        let end = self.end();
        if index(end - self.planes_from) / 8 + values.len() / 8 + 66 > STRIDE {
            self.slide_planes(values.len());
        }
        for (n, &value) in (end..).zip(values) {
            if n < HEAD {
                self.head[index(HEAD - 1 - n)] = value;
            }
            if value > 255 {
                self.large.push((n, value));
            }
            self.set_bit(n, value);
        }
        self.recent.extend(values.iter().copied());
        self.recent.forget_before(end.saturating_sub(HEAD + self.rule.max_remove() + SAMPLE + GROUP));
    }

    /// Forgets the values from `end` on.
    pub(super) fn truncate(&mut self, end: u64) {
        for n in end..self.end() {
            let value = usize::from(self.recent.get(n));
            if value < PLANES {
                let bit = index(n - self.planes_from);
                self.planes[value * STRIDE + bit / 8] &= !(1 << (bit % 8));
            }
        }
        self.recent.truncate(end);
        self.large.truncate(self.large.partition_point(|large| large.0 < end));
        self.learnt_at = self.learnt_at.min(end);
    }

    /// Searches witnesses for the heaps from `start` to the end of the stream. `past` holds at least the values before
    /// the oldest one held here, for the exhaustive walk.
    pub(super) fn check<S: Sequence + ?Sized>(&mut self, start: u64, past: &S) -> Result<Checked> {
        if start >= (self.learnt_at + RELEARN).min(self.learnt_at * 2).max(YOUNG) {
            self.learn(start);
        }
        let groups: Vec<u64> = (start / GROUP..self.end().div_ceil(GROUP)).collect();
        let this = &*self;
        groups
            .par_iter()
            .map(|group| {
                let from = start.max(group * GROUP);
                this.check_group(group * GROUP, from, this.end().min((group + 1) * GROUP), past)
            })
            .try_reduce(Checked::default, |a, b| Ok(a.and(b)))
    }

    /// Whether all parts that planes are asked for exist, apart far enough, for heaps from `n` on.
    fn uses_planes(&self, n: u64) -> bool {
        let removed = self.rule.max_remove();
        self.depth > 0
            && n > 2 * self.depth + removed + self.rule.max_difference()
            && n >= self.planes_from + self.depth + removed
    }

    fn check_group<S: Sequence + ?Sized>(&self, group: u64, from: u64, to: u64, past: &S) -> Result<Checked> {
        let mut checked = Checked::default();
        if !self.uses_planes(group) {
            for n in from..to {
                let targets = (0..self.recent.get(n)).filter(|&t| self.space.is_rare(t, n)).collect();
                checked = checked.and(self.search(n, targets, past)?);
                if checked.missing.is_some() {
                    break;
                }
            }
            return Ok(checked);
        }
        checked.depth = self.depth;
        let at = index((group - self.planes_from) / 8);
        let mut hard = Vec::new();
        self.for_each_need(group, from, to, |target, needed| {
            let asks = self.asks.get(usize::from(target)).map_or(&[][..], Vec::as_slice);
            self.kernel.settle(&self.planes, at, asks, needed);
            for (word, bytes) in (0..).zip(needed.chunks_exact(8)) {
                let mut bits = u64::from_le_bytes(bytes.try_into().expect("eight"));
                while bits != 0 {
                    let n = group + word * 64 + u64::from(bits.trailing_zeros());
                    match self.find(n, target) {
                        Some(depth) => checked.depth = checked.depth.max(depth),
                        None => hard.push((n, target)),
                    }
                    bits &= bits - 1;
                }
            }
        });
        // In ascending order of heaps: the first that fails ends the search, since what follows builds on it.
        hard.sort_unstable();
        for same in hard.chunk_by(|a, b| a.0 == b.0) {
            checked = checked.and(self.search(same[0].0, same.iter().map(|&(_, t)| t).collect(), past)?);
            if checked.missing.is_some() {
                break;
            }
        }
        Ok(checked)
    }

    /// The depth at which a split of `n` has the value `target`, when one with a part below [`HEAD`] has. All splits are
    /// asked near the small end before any is asked farther out: one of them may never have the value.
    #[inline]
    fn find(&self, n: u64, target: u16) -> Option<u64> {
        const ENDS: [u64; 4] = [1, 1 << 10, 1 << 13, HEAD];
        ENDS.windows(2).find_map(|ends| {
            self.splits.iter().find_map(|split| {
                let to = ends[1].min(self.reach(n, split) + 1);
                if to <= ends[0] {
                    return None;
                }
                let (small, large) = self.parts(n, split, ends[0], to);
                let pairs = self.kernel.find(small, large, target ^ split.constant)?;
                Some(ends[0] - 1 + pairs as u64)
            })
        })
    }

    /// The largest smaller part that the values in memory allow to look at.
    #[inline]
    fn reach(&self, n: u64, split: &Split) -> u64 {
        let held = (n - self.recent.start()).saturating_sub(split.remove);
        split.largest_small_part(n).min(HEAD - 1).min(held)
    }

    /// The values of the smaller parts `from..to`, and of the other parts at the same index.
    #[inline]
    fn parts(&self, n: u64, split: &Split, from: u64, to: u64) -> (&[u16], &[u16]) {
        let small = &self.head[index(HEAD - to)..index(HEAD - from)];
        (small, self.recent.slice(n - split.remove - to + 1, n - split.remove - from + 1))
    }

    /// For each target that some heap of `from..to` in the group needs: which heaps need it.
    fn for_each_need(&self, group: u64, from: u64, to: u64, mut see: impl FnMut(u16, &mut [u8; PLANE])) {
        let values = self.recent.slice(from, to);
        let top = values.iter().copied().max().unwrap_or(0);
        let mut by_value = vec![[0u8; PLANE]; usize::from(top) + 1];
        for (n, &value) in (from..to).zip(values) {
            let bit = index(n - group);
            by_value[usize::from(value)][bit / 8] |= 1 << (bit % 8);
        }
        let mut above = [0u8; PLANE];
        for target in (0..top).rev() {
            for (bits, more) in above.iter_mut().zip(&by_value[usize::from(target) + 1]) {
                *bits |= more;
            }
            // Groups start at even heaps, so even heaps are the even bits.
            let even = if self.space.is_rare(target, 2) { 0x55 } else { 0 };
            let odd = if self.space.is_rare(target, 1) { 0xaa } else { 0 };
            if even | odd != 0 {
                let mut needed = above.map(|bits| bits & (even | odd));
                see(target, &mut needed);
            }
        }
    }

    /// Learns which parts to ask for which target, from the heaps just before `end`.
    fn learn(&mut self, end: u64) {
        self.learnt_at = end;
        let sample = SAMPLE.min(end / 4 / GROUP * GROUP);
        let first = end / GROUP * GROUP - sample;
        let known = (first - self.planes_from).saturating_sub(self.rule.max_remove());
        self.depth = DEPTH.min(known / 8 * 8).min(end / 4);
        let mut needed: Vec<Vec<u64>> = vec![Vec::new(); PLANES];
        let groups = sample / GROUP;
        for g in 0..groups {
            let group = first + g * GROUP;
            self.for_each_need(group, group, group + GROUP, |target, bits| {
                if let Some(words) = needed.get_mut(usize::from(target)) {
                    words.resize(index(g) * 8 / SAMPLE_STEP, 0);
                    let sample = bits.chunks_exact(8).step_by(SAMPLE_STEP);
                    words.extend(sample.map(|b| u64::from_le_bytes(b.try_into().expect("eight"))));
                }
            });
        }
        let mut frequency = vec![0; PLANES];
        for &value in self.recent.slice(first, first + sample) {
            if let Some(often) = frequency.get_mut(usize::from(value)) {
                *often += 1;
            }
        }
        let asks: Vec<Vec<Ask>> = (0..PLANES)
            .into_par_iter()
            .map(|target| match &needed[target] {
                words if words.iter().all(|&word| word == 0) => Vec::new(),
                words => self.learn_target(u16::try_from(target).expect("below 512"), words, first, &frequency),
            })
            .collect();
        self.asks = asks;
    }

    fn learn_target(&self, target: u16, needed: &[u64], first: u64, frequency: &[u32]) -> Vec<Ask> {
        let mut asks: Vec<(u32, Ask)> = Vec::new();
        for split in &self.splits {
            let offsets = (split.remove + 1).next_multiple_of(8)..split.remove + self.depth;
            for offset in offsets.step_by(8) {
                let value = target ^ split.constant ^ self.small(offset - split.remove);
                if let Some(&often) = frequency.get(usize::from(value)).filter(|&&often| often > 0) {
                    asks.push((often, (usize::from(value) * STRIDE).wrapping_sub(index(offset / 8))));
                }
            }
        }
        if asks.len() > CHOICES {
            asks.select_nth_unstable_by_key(CHOICES, |ask| std::cmp::Reverse(ask.0));
            asks.truncate(CHOICES);
        }
        let hits = |ask: Ask| -> Vec<u64> {
            let bytes = ask.wrapping_add(index((first - self.planes_from) / 8));
            let plane = &self.planes[bytes..bytes + needed.len() * 8 * SAMPLE_STEP];
            let words = plane.chunks_exact(8).step_by(SAMPLE_STEP).zip(needed);
            words.map(|(b, need)| u64::from_le_bytes(b.try_into().expect("eight")) & need).collect()
        };
        let choices: Vec<(Ask, Vec<u64>)> = asks.into_iter().map(|(_, ask)| (ask, hits(ask))).collect();
        // Heaps hit never, once, twice, and more often; worth 9, 3, 1 and 0.
        let mut hit = [needed.to_vec(), vec![0; needed.len()], vec![0; needed.len()]];
        let gain = |hit: &[Vec<u64>; 3], hits: &[u64]| self.kernel.gain(hit, hits);
        let mut queue: std::collections::BinaryHeap<(u32, usize, usize)> =
            choices.iter().enumerate().map(|(i, choice)| (gain(&hit, &choice.1), i, 0)).collect();
        let mut asks = Vec::with_capacity(PROBES);
        while let Some((_, of, round)) = queue.pop() {
            let (ask, hits) = &choices[of];
            if round < asks.len() {
                queue.push((gain(&hit, hits), of, asks.len()));
                continue;
            }
            asks.push(*ask);
            for (i, hits) in hits.iter().enumerate() {
                let moved = [hit[0][i] & hits, hit[1][i] & hits];
                hit[2][i] = hit[2][i] & !hits | moved[1];
                hit[1][i] = hit[1][i] & !hits | moved[0];
                hit[0][i] &= !hits;
            }
            if asks.len() == PROBES {
                break;
            }
        }
        asks
    }

    /// Searches witnesses of the targets at one heap, from the small end, then everywhere.
    fn search<S: Sequence + ?Sized>(&self, n: u64, mut targets: Vec<u16>, past: &S) -> Result<Checked> {
        let mut checked = Checked::default();
        for option in self.rule.single_options(n, |m| self.recent.get(m)) {
            targets.retain(|&t| t != option);
        }
        let mut everything = true;
        for split in &self.splits {
            let reach = self.reach(n, split);
            everything &= reach == split.largest_small_part(n);
            if reach == 0 {
                continue;
            }
            let depth = self.search_small(n, split, reach, &mut targets);
            checked.depth = checked.depth.max(depth);
            if targets.is_empty() {
                return Ok(checked);
            }
        }
        if everything {
            checked.missing = targets.iter().min().map(|&t| (n, t));
            return Ok(checked);
        }
        let all = Joined { past, recent: &self.recent, end: n };
        self.search_large(n, &mut targets, &all)?;
        if !targets.is_empty() {
            checked.walks = 1;
            checked.depth = n / 2;
            let missing = definition::first_missing(&self.rule, &all, n, u32::from(self.recent.get(n)))?;
            // A common value that is missing would mean that the candidate was not the least one: a wrong kernel.
            assert!(missing.is_none_or(|t| self.space.is_rare(t, n)), "the candidate of heap {n} is not the least");
            checked.missing = missing.map(|t| (n, t));
        }
        Ok(checked)
    }

    /// Removes the targets that splits with smaller part 1..=reach give; the largest part looked at.
    fn search_small(&self, n: u64, split: &Split, reach: u64, targets: &mut Vec<u16>) -> u64 {
        /// With more targets than this, options are entered in a set instead of being compared.
        const FEW: usize = 16;
        /// Splits entered between two questions whether all is found.
        const STEP: u64 = 256;
        let mut depth = 0;
        let mut seen = NimSet::new();
        let mut a = 1;
        while a <= reach && targets.len() > FEW {
            let to = (a + STEP).min(reach + 1);
            let (small, large) = self.parts(n, split, a, to);
            small.iter().zip(large).for_each(|(x, y)| seen.insert(split.constant ^ x ^ y));
            targets.retain(|&t| !seen.contains(t));
            a = to;
            depth = to - 1;
        }
        let (small, large) = self.parts(n, split, a, reach + 1);
        targets.retain(|&t| match self.kernel.find(small, large, t ^ split.constant) {
            Some(pairs) => {
                depth = depth.max(a - 1 + pairs as u64);
                false
            }
            None => true,
        });
        if targets.is_empty() { depth } else { reach }
    }

    /// Removes the targets that splits with one of the last heaps of value above 255 give.
    fn search_large<S: Sequence + ?Sized>(&self, n: u64, targets: &mut Vec<u16>, all: &S) -> Result<()> {
        const LAST: usize = 4096;
        let before = self.large.partition_point(|large| large.0 < n);
        for &(b, value) in self.large[..before].iter().rev().take(LAST) {
            for split in &self.splits {
                let Some(a) = (n - b).checked_sub(split.remove).filter(|&a| a > 0) else { continue };
                if a.abs_diff(b) >= split.min_difference {
                    let mut other = [0];
                    match all.read(a, &mut other) {
                        Err(Error::Freed { .. }) => continue, // another part may do
                        read => read?,
                    }
                    targets.retain(|&t| t != split.constant ^ value ^ other[0]);
                }
            }
            if targets.is_empty() {
                break;
            }
        }
        Ok(())
    }
}

/// The values before `end`: old ones from `past`, the last ones from a window.
struct Joined<'a, S: ?Sized> {
    past: &'a S,
    recent: &'a Window<u16>,
    end: u64,
}

impl<S: Sequence + ?Sized> Sequence for Joined<'_, S> {
    fn len(&self) -> u64 {
        self.end
    }

    fn read(&self, from: u64, out: &mut [u16]) -> Result<()> {
        let to = from + out.len() as u64;
        if to > self.end {
            return Err(Error::Range { from, to, count: self.end });
        }
        let split = to.min(self.recent.start().max(from));
        let (old, new) = out.split_at_mut(index(split - from));
        if !old.is_empty() {
            self.past.read(from, old)?;
        }
        if !new.is_empty() {
            new.copy_from_slice(self.recent.slice(split, to));
        }
        Ok(())
    }
}

//! The witness stream: for each candidate, an option for every smaller rare value.
//!
//! The least common value m* that is not an option is G(n) if and only if every value below m* that is rare at n is an
//! option too. Each such value (a target) needs one option that has it, its witness. There is no serial dependency
//! here: a witness may use any parts below n, so threads check groups of values side by side.
//!
//! **Marks.** A pair of common parts gives a rare value, and most options are such pairs. The kernel that marks the
//! options of rare parts for the candidates marks here the options of some hundred common parts, 64 values at a time.
//! It then holds some hundred more parts against the least targets that stay open below the candidate. The stream
//! searches the rest value by value from the smallest parts on, all targets of one n in one pass
//! ([`Kernel::find_each`]). A search that fails ends in the exhaustive search over all pairs
//! ([`definition::first_missing`]). A value is called rare only after all pairs were compared: by the exhaustive
//! search, or by the search value by value where its parts are all the parts of n. The stream learns which parts to
//! mark ([`lookup_order`]) and chooses on a sample how many.
//!
//! **Values of 256 and more** are targets like all others. Their witnesses need a part whose value is itself above 255
//! (or a constant with such a bit). Such values are rare, one in thousands, so the stream keeps a list of their
//! positions.
//!
//! Invariant: a value counts as witnessed only after each of its targets was found as the value of an option whose
//! parts are at least 1 and far enough apart. Parts inside the block under test count, because the values are accepted
//! in ascending order: when one fails, the solver discards all from there on.

pub(super) mod bench;

use super::candidates::hash;
use super::codes::{Codes, POISON};
use super::lookup_order::{self, Left, LookupRun};
use super::window::Window;
use crate::error::{Error, Result};
use crate::fault;
use crate::kernel::{self, BitPlanes, Kernel, LANES, Probe, Probes};
use crate::theory::definition::{self, Sequence};
use crate::theory::nimber::{NimSet, index};
use crate::theory::rule::{Rule, Split};
use crate::theory::sparse_space::SparseSpace;
use std::ops::Range;

/// Number of values that one task checks, a multiple of [`LANES`].
pub(super) const GROUP_VALUES: u64 = 256;

/// The largest smaller part that is marked.
const DEPTH: u64 = 16_384;

/// Number of parts 0, 1, … that the search value by value covers as smaller parts.
const HEAD_PARTS: u64 = 1 << 16;

/// Maximum number of parts that are marked or held against the least open targets.
const MOST_PARTS: usize = 900;

/// Price of marking one part with `codes` codes considered, in picoseconds per value. `kernel/mark` of `cargo bench`
/// (benches/sequence.rs) measures it again for 72 codes.
const fn mark_price(codes: usize) -> usize {
    (500 + codes * 36) / LANES
}

/// Price of holding one part against the least open targets ([`Kernel::clear_hits`]), in picoseconds per value. No
/// benchmark measures it.
const CLEAR_PRICE: usize = 19;

/// Price of a target searched value by value, in picoseconds per target. Set by trial on whole sequences. No benchmark
/// measures it.
const FIND_PRICE: usize = 60_000;

/// Price of one more considered code, in picoseconds per value. No benchmark measures it.
const CODE_PRICE: u64 = 250;

/// Price of a target that is not considered, in picoseconds per target: two thirds of [`FIND_PRICE`], because no part
/// was marked for it in vain. No benchmark measures it.
const TARGET_LOSS: u64 = 40_000;

/// The least n at which parts are learnt; below it the stream searches every target value by value.
const YOUNG: u64 = 8192;

/// Minimum number of values above 255 that are kept with their positions: the last ones.
const LARGE: usize = 1 << 14;

/// Number of last values that a new stream reads, besides the largest removal of the rule and the first [`HEAD_PARTS`].
pub(super) const LOOKBACK: u64 = HEAD_PARTS + lookup_order::SPAN + GROUP_VALUES;

/// The result of checking one group of values, or several consecutive ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CheckedGroup {
    /// The first n whose candidate is too large, and its true value, which is rare.
    pub(super) missing: Option<(u64, u16)>,
    /// The largest smaller part of any witness, or an upper bound of it.
    pub(super) depth: u64,
    /// Number of exhaustive searches.
    pub(super) exhaustive_searches: u64,
    /// Number of values audited by another kernel.
    pub(super) audited: u64,
}

impl CheckedGroup {
    /// Combines this result with that of `later` values; the lower n decides `missing`.
    pub(super) fn and(self, later: CheckedGroup) -> CheckedGroup {
        CheckedGroup {
            missing: self.missing.or(later.missing),
            depth: self.depth.max(later.depth),
            exhaustive_searches: self.exhaustive_searches + later.exhaustive_searches,
            audited: self.audited + later.audited,
        }
    }
}

pub(super) struct Witnesses {
    rule: Rule,
    kernel: Kernel,
    space: SparseSpace,
    splits: Vec<Split>,
    /// G(a) at index [`HEAD_PARTS`] - 1 - a: reversed, so that the two parts of a split run side by side.
    head: Vec<u16>,
    /// The codes of the values in `head`, at the same indices.
    head_codes: Vec<u8>,
    /// The last values, back by at least [`HEAD_PARTS`] and the largest removal.
    recent: Window<u16>,
    /// The last positions with values above 255, with these values.
    large: Vec<(u64, u16)>,
    /// Sum of the checksums of the entries of `large`, each taken at insertion.
    large_checksum: u64,
    /// For even and odd n, the number of rare values below each value. The codes of these rare values are exactly those
    /// below this number.
    rare_below: [Vec<u16>; 2],
    /// Common parts in learnt order.
    parts: Vec<Probe>,
    /// The first of `parts`, which are marked.
    marks: Probes,
    /// The next of `parts`, which are held against the least targets that stay open.
    clear_probes: Probes,
    /// Number of codes considered when marking: those below it.
    codes_considered: usize,
    /// The largest smaller part that may be marked; 0 before parts are learnt.
    depth: u64,
    learnt_at: u64,
    considered_at: u64,
    rebalanced_at: u64,
    /// Number of targets per 1024 values when the budget was chosen.
    targets_at_rebalance: usize,
    /// Checksum of `head` and `head_codes`, taken when they are complete.
    head_checksum: Option<u64>,
    /// Checksum of `parts`, `marks` and `clear_probes`, taken at creation.
    parts_checksum: u64,
    /// Whether a retired list of parts failed its checksum.
    flipped: bool,
}

impl Witnesses {
    /// A stream that continues `past`; `large` are the last of its values above 255, with their positions.
    ///
    /// # Errors
    /// Any error of reading `past`.
    pub(super) fn new<S: Sequence + ?Sized>(
        rule: &Rule,
        space: SparseSpace,
        kernel: Kernel,
        large: Vec<(u64, u16)>,
        past: &S,
    ) -> Result<Witnesses> {
        let end = past.len();
        let mut head = vec![0; index(HEAD_PARTS)];
        past.read(0, &mut head[..index(end.min(HEAD_PARTS))])?;
        head.reverse();
        let start = end.saturating_sub(LOOKBACK + rule.max_remove());
        let mut recent = vec![0; index(end - start)];
        past.read(start, &mut recent)?;
        Ok(Witnesses {
            rule: rule.clone(),
            kernel,
            space,
            splits: rule.splits().collect(),
            head_codes: (0..HEAD_PARTS).rev().zip(&head).map(|(a, &v)| code_of(space, a, v)).collect(),
            head,
            recent: Window::new(start, recent),
            large_checksum: sum_of_hashes(&large),
            large,
            rare_below: rare_below(space),
            parts: Vec::new(),
            marks: Probes::new(),
            clear_probes: Probes::new(),
            codes_considered: kernel::MOST_CODES,
            depth: 0,
            learnt_at: 0,
            considered_at: 0,
            rebalanced_at: 0,
            targets_at_rebalance: 0,
            head_checksum: None,
            parts_checksum: hash((&Vec::<Probe>::new(), &Probes::new(), &Probes::new())),
            flipped: false,
        })
    }

    /// One past the position of the last value.
    pub(super) fn end(&self) -> u64 {
        self.recent.end()
    }

    /// The kernel that searches.
    pub(super) fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// G(n) for one of the last positions.
    pub(super) fn value(&self, n: u64) -> u16 {
        self.recent.get(n)
    }

    /// G(a) for a below [`HEAD_PARTS`].
    fn small(&self, a: u64) -> u16 {
        self.head[index(HEAD_PARTS - 1 - a)]
    }

    /// Number of last codes that the witness search reads for a position, for its group and for the positions of a
    /// sample.
    pub(super) fn lookback(&self) -> u64 {
        DEPTH + lookup_order::SPAN + self.rule.max_remove() + GROUP_VALUES
    }

    /// Appends the next values, proved or about to be checked.
    pub(super) fn push(&mut self, values: &[u16]) {
        let end = self.end();
        for (n, &value) in (end..HEAD_PARTS).zip(values) {
            self.head[index(HEAD_PARTS - 1 - n)] = value;
            self.head_codes[index(HEAD_PARTS - 1 - n)] = code_of(self.space, n, value);
        }
        if values.iter().copied().max().unwrap_or(0) > 255 {
            let before = self.large.len();
            self.large.extend((end..).zip(values.iter().copied()).filter(|&(_, value)| value > 255));
            self.large_checksum = self.large_checksum.wrapping_add(sum_of_hashes(&self.large[before..]));
            let dropped = many_first(&self.large);
            self.large_checksum = self.large_checksum.wrapping_sub(sum_of_hashes(&self.large[..dropped]));
            self.large.drain(..dropped);
        }
        self.recent.extend(values.iter().copied());
        if self.head_checksum.is_none() && end >= HEAD_PARTS {
            self.head_checksum = Some(hash((&self.head, &self.head_codes)));
        }
    }

    /// Forgets the values that positions from the end on do not read, after comparing them with `past`.
    ///
    /// # Errors
    /// [`Error::Flipped`] at the first difference, and any error of reading `past`.
    pub(super) fn forget<S: Sequence + ?Sized>(&mut self, past: &S) -> Result<()> {
        let horizon =
            self.end().saturating_sub(HEAD_PARTS + self.rule.max_remove() + lookup_order::SPAN + GROUP_VALUES);
        self.recent.evictable_agrees_with(horizon, past)?;
        self.recent.forget_before(horizon);
        Ok(())
    }

    /// Forgets the values from `end` on.
    pub(super) fn truncate(&mut self, end: u64) {
        self.recent.truncate(end);
        let kept = self.large.partition_point(|large| large.0 < end);
        self.large_checksum = self.large_checksum.wrapping_sub(sum_of_hashes(&self.large[kept..]));
        self.large.truncate(kept);
        self.learnt_at = self.learnt_at.min(end);
        self.considered_at = self.considered_at.min(end);
        self.rebalanced_at = self.rebalanced_at.min(end);
    }

    /// Compares everything that later values depend on with its state at creation.
    ///
    /// # Errors
    /// [`Error::Flipped`] at the first difference, and any error of reading `past`.
    pub(super) fn check_memory<S: Sequence + ?Sized>(&self, codes: &Codes, past: &S) -> Result<()> {
        self.recent.agrees_with(past)?;
        if self.head_checksum.is_some_and(|checksum| hash((&self.head, &self.head_codes)) != checksum) {
            return Err(Error::Flipped { what: "the head of the table", from: 0, to: HEAD_PARTS });
        }
        if self.flipped || self.parts_hash() != self.parts_checksum || self.rare_below != rare_below(self.space) {
            return Err(Error::Flipped { what: "the list of parts", from: 0, to: self.depth });
        }
        if sum_of_hashes(&self.large) != self.large_checksum {
            return Err(Error::Flipped { what: "the list of values above 255", from: 0, to: self.end() });
        }
        codes.agree_with(self.recent.start(), self.recent.items())
    }

    /// Before the check of values from `start` on: learns the parts, or reconsiders the number of codes, when due.
    pub(super) fn prepare(&mut self, start: u64, codes: &Codes) {
        if start >= lookup_order::next_learning(self.learnt_at).max(YOUNG) {
            self.learn(start, codes);
        } else if self.depth > 0 && start >= self.considered_at + lookup_order::RECONSIDER_INTERVAL {
            self.reconsider(codes);
        }
    }

    /// Whether marks are valid for `from..to`: all marked parts exist and are far enough apart for n from `from` on,
    /// and `codes` holds everything that they read.
    fn uses_marks(&self, from: u64, to: u64, codes: &Codes) -> bool {
        let removed = self.rule.max_remove();
        self.depth > 0
            && from > 2 * self.depth + removed + self.rule.max_difference()
            && codes.hold(from, self.depth + removed, to)
    }

    /// Searches witnesses for the values `from..to` of the stream with this kernel. `codes` holds the codes of these
    /// values; `past` holds at least the values before the oldest one held here, for the exhaustive search.
    ///
    /// # Errors
    /// [`Error::Differs`] when the exhaustive search finds a smaller common value than the candidate, and any error of
    /// reading `past`.
    pub(super) fn check_group<S: Sequence + ?Sized>(
        &self,
        kernel: Kernel,
        from: u64,
        to: u64,
        codes: &Codes,
        past: &S,
    ) -> Result<CheckedGroup> {
        let mut checked = CheckedGroup::default();
        if !self.uses_marks(from, to, codes) {
            for n in from..to {
                let targets = (0..self.recent.get(n)).filter(|&t| self.space.is_rare(t, n)).collect();
                checked = checked.and(self.search(kernel, n, targets, past)?);
                if checked.missing.is_some() {
                    break;
                }
            }
            return Ok(checked);
        }
        checked.depth = self.depth;
        let mut hard = Vec::new();
        for first in (from..to).step_by(LANES) {
            let lanes = index(to - first).min(LANES);
            self.open_targets(kernel, first, lanes, codes, |n, targets| {
                checked.depth = checked.depth.max(self.find(kernel, n, targets, codes));
                hard.extend(targets.iter().map(|&code| (n, self.space.decode_rare(code, n))));
            });
        }
        // In ascending order of n: the first failure ends the search, because the later candidates depend on it.
        for same in hard.chunk_by(|a, b| a.0 == b.0) {
            let targets = same.iter().map(|&(_, t)| t).collect();
            checked = checked.and(self.search(kernel, same[0].0, targets, past)?);
            if checked.missing.is_some() {
                break;
            }
        }
        Ok(checked)
    }

    /// Calls `see(n, codes)` for each of the `lanes` values from `first` on that has open targets: rare values below
    /// G(n) that no marked part gives. `codes` are the codes of these targets.
    fn open_targets(
        &self,
        kernel: Kernel,
        first: u64,
        lanes: usize,
        codes: &Codes,
        mut see: impl FnMut(u64, &mut Vec<u8>),
    ) {
        let at = codes.at(first);
        let mut planes = BitPlanes::new(self.codes_considered);
        kernel.mark(codes.items(), at, &self.marks, &mut planes);
        let (mut ends, mut below) = ([0; LANES], [0; LANES]);
        for (lane, (n, &value)) in (first..).zip(self.recent.slice(first, first + lanes as u64)).enumerate() {
            ends[lane] = usize::from(self.rare_below[usize::from(n % 2 == 1)][usize::from(value)]);
            below[lane] = ends[lane].min(self.codes_considered).to_le_bytes()[0];
        }
        kernel.open(&mut planes, &below);
        kernel.clear_hits(codes.items(), at, &self.clear_probes, &mut planes);
        let mut some = ends.map(|end| u8::from(end > self.codes_considered));
        planes.rows().iter().for_each(|row| some.iter_mut().zip(row).for_each(|(some, bits)| *some |= bits));
        let mut open = Vec::new();
        for lane in (0..lanes).filter(|&lane| some[lane] != 0) {
            open.clear();
            for (first, rows) in (0..=u8::MAX).step_by(64).zip(planes.rows().chunks(8)) {
                let mut bits = rows.iter().rev().fold(0, |bits, row| bits << 8 | u64::from(row[lane]));
                while bits != 0 {
                    open.push(first + bits.trailing_zeros().to_le_bytes()[0]);
                    bits &= bits - 1;
                }
            }
            open.extend((self.codes_considered..ends[lane]).map(|code| code.to_le_bytes()[0]));
            see(first + lane as u64, &mut open);
        }
    }

    /// Removes the targets, given by their codes, that splits of `n` with a part below [`HEAD_PARTS`] give. Returns the
    /// largest smaller part of these witnesses. Searches the small parts of all splits before the larger parts of any,
    /// because one of the splits may never give the value.
    fn find(&self, kernel: Kernel, n: u64, targets: &mut Vec<u8>, codes: &Codes) -> u64 {
        /// Bounds of the ranges of smaller parts, searched one after the other for all splits.
        const ENDS: [u64; 4] = [1, 1 + (1 << 10), 1 + (1 << 13), HEAD_PARTS];
        let mut depth = 0;
        for ends in ENDS.windows(2) {
            for split in &self.splits {
                let to = ends[1].min(self.reach(n, split) + 1);
                if targets.is_empty() || to <= ends[0] {
                    continue;
                }
                depth = depth.max(self.find_between(kernel, n, split, ends[0]..to, targets, codes));
            }
        }
        depth
    }

    /// Removes the targets that one split with smaller part in `parts` gives, and returns the largest smaller part of
    /// these witnesses. Compares codes where they are held. A rare part has no code: a pair that matches with a
    /// placeholder is no witness.
    fn find_between(
        &self,
        kernel: Kernel,
        n: u64,
        split: &Split,
        parts: Range<u64>,
        targets: &mut Vec<u8>,
        codes: &Codes,
    ) -> u64 {
        let (from, to, last) = (parts.start, parts.end, n - split.remove);
        let mut pairs = 0;
        if split.constant < self.space.coded() && codes.hold(last, to, last) {
            let small = &self.head_codes[index(HEAD_PARTS - to)..index(HEAD_PARTS - from)];
            let large = &codes.items()[codes.at(last - to + 1)..codes.at(last - from + 1)];
            // XOR with the constant turns the codes of targets into the codes that two parts must give, and back.
            let constant = self.space.code(split.constant);
            targets.iter_mut().for_each(|code| *code ^= constant);
            kernel.find_each(small, large, targets, |_, seen| {
                let common = small[small.len() - seen] != POISON && large[large.len() - seen] != POISON;
                pairs = if common { pairs.max(seen) } else { pairs };
                common
            });
            targets.iter_mut().for_each(|code| *code ^= constant);
        } else {
            let (small, large) = self.parts(n, split, from, to);
            targets.retain(|&code| {
                let wanted = self.space.decode_rare(code, n) ^ split.constant;
                let seen = kernel.find_value(small, large, wanted);
                pairs = pairs.max(seen.unwrap_or(0));
                seen.is_none()
            });
        }
        if pairs == 0 { 0 } else { from - 1 + pairs as u64 }
    }

    /// The largest smaller part for which memory holds the values of both parts.
    #[inline]
    fn reach(&self, n: u64, split: &Split) -> u64 {
        let held = (n - self.recent.start()).saturating_sub(split.remove);
        split.largest_small_part(n).min(HEAD_PARTS - 1).min(held)
    }

    /// The values of the smaller parts `from..to`, descending, and of the other parts at the same indices.
    #[inline]
    fn parts(&self, n: u64, split: &Split, from: u64, to: u64) -> (&[u16], &[u16]) {
        let small = &self.head[index(HEAD_PARTS - to)..index(HEAD_PARTS - from)];
        (small, self.recent.slice(n - split.remove - to + 1, n - split.remove - from + 1))
    }

    /// The number of targets of `n`, whose codes are those below this number; 0 where G(n) is rare or has no code.
    fn targets(&self, n: u64, codes: &Codes) -> usize {
        let below = self.rare_below[usize::from(n % 2 == 1)].get(usize::from(self.recent.get(n)));
        if codes.get(n) == POISON { 0 } else { below.map_or(0, |&below| usize::from(below)) }
    }

    /// Chooses the number of codes to consider from the last values. Chooses the budget again as well when the number
    /// of targets has changed by more than an eighth, or when the last choice is [`lookup_order::REBALANCE_INTERVAL`]
    /// values old.
    fn reconsider(&mut self, codes: &Codes) {
        let end = self.end();
        self.considered_at = end;
        let last = end.saturating_sub(1 << 12).max(self.recent.start());
        let below: Vec<usize> = (last..end).map(|n| self.targets(n, codes)).collect();
        self.codes_considered = lookup_order::codes_to_consider(&below, CODE_PRICE, |more| more * TARGET_LOSS);
        let targets = below.iter().sum::<usize>() * 1024 / below.len().max(1);
        if targets.abs_diff(self.targets_at_rebalance) * 8 > self.targets_at_rebalance
            || end >= self.rebalanced_at + lookup_order::REBALANCE_INTERVAL
        {
            self.targets_at_rebalance = targets;
            self.rebalance(codes);
        }
    }

    /// Learns which parts to mark, from the values before `end`.
    fn learn(&mut self, end: u64, codes: &Codes) {
        let sample = lookup_order::sample(end);
        // Few targets need few parts.
        let needed: usize = sample.iter().map(|&n| self.targets(n, codes)).sum::<usize>() / sample.len().max(1);
        self.depth = DEPTH.min(end / 4).min(512 * (needed as u64 + 1));
        if !sample.first().is_some_and(|&first| codes.hold(first, self.depth + self.rule.max_remove(), end)) {
            self.depth = 0;
            return;
        }
        self.learnt_at = end;
        let below: Vec<usize> = sample.iter().map(|&n| self.targets(n, codes)).collect();
        let indices: Vec<usize> = sample.iter().map(|&n| codes.at(n)).collect();
        let mut parts = Vec::new();
        for split in &self.splits {
            for a in 1..=self.depth {
                let (value, removed) = (self.small(a), a + split.remove);
                if self.space.is_rare(value, a) || value.max(value ^ split.constant) >= self.space.coded() {
                    continue;
                }
                let code = self.space.code(value ^ split.constant);
                if usize::from(POISON ^ code) >= kernel::MOST_CODES {
                    parts.push(Probe::new(index(removed), code));
                }
            }
        }
        lookup_order::learn(&mut parts, &[], MOST_PARTS, &below, |part, i| {
            codes.items()[indices[i] - part.offset] ^ part.code()
        });
        parts.truncate(MOST_PARTS);
        self.flipped |= self.parts_hash() != self.parts_checksum;
        self.parts = parts;
        self.parts_checksum = self.parts_hash();
        self.reconsider(codes);
        self.rebalance(codes);
    }

    /// Chooses how many of the parts are marked and how many are held against the least open targets, from the targets
    /// that they leave open at the last values.
    fn rebalance(&mut self, codes: &Codes) {
        let below = |n: u64| self.targets(n, codes).min(self.codes_considered).to_le_bytes()[0];
        let run =
            |first: u64| LookupRun { at: codes.at(first), below: std::array::from_fn(|i| below(first + i as u64)) };
        let runs: Vec<LookupRun> = lookup_order::last(self.end()).map(run).collect();
        let left = lookup_order::left(self.kernel, codes.items(), &self.parts, &runs, self.codes_considered);
        let (marks, clear_probes) = choose_budget(&left, runs.len() * LANES, self.codes_considered);
        self.flipped |= self.parts_hash() != self.parts_checksum;
        self.marks.clear();
        self.clear_probes.clear();
        self.parts.iter().take(marks).for_each(|part| self.marks.push(*part));
        self.parts.iter().skip(marks).take(clear_probes).for_each(|part| self.clear_probes.push(*part));
        self.parts_checksum = self.parts_hash();
        self.rebalanced_at = self.end();
    }

    /// A checksum of the parts and their use.
    fn parts_hash(&self) -> u64 {
        hash((&self.parts, &self.marks, &self.clear_probes))
    }

    /// Searches witnesses of the targets of one n: among the smallest parts, then with the values above 255, then
    /// exhaustively.
    fn search<S: Sequence + ?Sized>(
        &self,
        kernel: Kernel,
        n: u64,
        mut targets: Vec<u16>,
        past: &S,
    ) -> Result<CheckedGroup> {
        let mut checked = CheckedGroup::default();
        if fault::is("skip-large-targets") {
            targets.retain(|&t| t <= 255); // deliberate fault, see fault.rs
        }
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
            let depth = self.search_small(kernel, n, split, reach, &mut targets);
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
        checked.depth = checked.depth.max(self.search_large(n, &mut targets, &all)?);
        if !targets.is_empty() {
            checked.exhaustive_searches = 1;
            checked.depth = n / 2;
            let missing = definition::first_missing(&self.rule, &all, n, u32::from(self.recent.get(n)))?;
            if let Some(least) = missing.filter(|&t| !self.space.is_rare(t, n)) {
                // The candidate is not the least common value that is missing: the kernel is wrong, or a bit has
                // flipped.
                let (value, again) = (self.recent.get(n).into(), least.into());
                return Err(Error::Differs { n, value, again, how: "all pairs".into() });
            }
            checked.missing = missing.map(|t| (n, t));
        }
        Ok(checked)
    }

    /// Removes the targets that splits with smaller part in 1..=reach give. Returns the largest smaller part compared.
    fn search_small(&self, kernel: Kernel, n: u64, split: &Split, reach: u64, targets: &mut Vec<u16>) -> u64 {
        /// Maximum number of targets that are compared one by one; with more, the options are entered in a set.
        const FEW: usize = 16;
        /// Number of options entered in the set between two tests of the targets.
        const SPLITS_BETWEEN_TESTS: u64 = 256;
        let mut depth = 0;
        let mut seen = NimSet::new();
        let mut a = 1;
        while a <= reach && targets.len() > FEW {
            let to = (a + SPLITS_BETWEEN_TESTS).min(reach + 1);
            let (small, large) = self.parts(n, split, a, to);
            small.iter().zip(large).for_each(|(x, y)| seen.insert(split.constant ^ x ^ y));
            targets.retain(|&t| !seen.contains(t));
            a = to;
            depth = to - 1;
        }
        let (small, large) = self.parts(n, split, a, reach + 1);
        targets.retain(|&t| match kernel.find_value(small, large, t ^ split.constant) {
            Some(pairs) => {
                depth = depth.max(a - 1 + pairs as u64);
                false
            }
            None => true,
        });
        if targets.is_empty() { depth } else { reach }
    }

    /// Removes the targets that splits give in which one part has a value above 255 and is in the list of such values.
    /// Returns the largest smaller part of these splits.
    fn search_large<S: Sequence + ?Sized>(&self, n: u64, targets: &mut Vec<u16>, all: &S) -> Result<u64> {
        /// Maximum number of values above 255 that are tried: the last ones before n.
        const LAST: usize = 4096;
        let mut depth = 0;
        let before = self.large.partition_point(|large| large.0 < n);
        for &(b, value) in self.large[..before].iter().rev().take(LAST) {
            for split in &self.splits {
                // After a bit flip the position b may be any number.
                let rest = n.checked_sub(b).and_then(|rest| rest.checked_sub(split.remove));
                let Some(a) = rest.filter(|&a| a > 0) else { continue };
                if a.abs_diff(b) >= split.min_difference {
                    let mut other = [0];
                    match all.read(a, &mut other) {
                        Err(Error::Freed { .. }) => continue, // another split may give the target
                        read => read?,
                    }
                    let before = targets.len();
                    targets.retain(|&t| t != split.constant ^ value ^ other[0]);
                    if targets.len() < before {
                        depth = depth.max(a.min(b));
                    }
                }
            }
            if targets.is_empty() {
                break;
            }
        }
        Ok(depth)
    }
}

/// The number of entries at the start of the list of values above 255 that may be dropped.
pub(super) fn many_first(large: &[(u64, u16)]) -> usize {
    if large.len() > 4 * LARGE { large.len() - 2 * LARGE } else { 0 }
}

fn sum_of_hashes(large: &[(u64, u16)]) -> u64 {
    large.iter().fold(0, |sum, large| sum.wrapping_add(hash(large)))
}

/// The number of rare values below each value that has a code when common, at even and at odd n.
fn rare_below(space: SparseSpace) -> [Vec<u16>; 2] {
    [2, 1].map(|n| {
        let mut rare = 0;
        let below = |v: u16| {
            let before = rare;
            rare += u16::from(space.is_rare(v, n));
            before
        };
        (0..space.coded()).map(below).collect()
    })
}

/// The values before `end`: the last ones from a window, the earlier ones from `past`.
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

/// The cheapest numbers of parts, in learnt order, to mark and then to hold against the least open targets.
///
/// `left[k]` counts the targets that the first k · [`lookup_order::LOOKUPS_PER_STEP`] parts leave open, over `values`
/// sampled values.
fn choose_budget(left: &[Left], values: usize, considered: usize) -> (usize, usize) {
    // Open targets beyond the first MAX_CLEAR_PROBES of each lane, which are not held against parts.
    let beyond = |left: &Left| left.sum - left.at_least[1..=kernel::MAX_CLEAR_PROBES].iter().sum::<usize>();
    let cost = |&(first, last): &(usize, usize)| {
        let searched = left[last].sum + beyond(&left[first]);
        let prices = first * mark_price(considered) + (last - first) * CLEAR_PRICE;
        lookup_order::LOOKUPS_PER_STEP * prices * values + searched * FIND_PRICE
    };
    let choices = (0..left.len()).flat_map(|first| (first..left.len()).map(move |last| (first, last)));
    let (first, last) = choices.min_by_key(cost).unwrap_or((0, 0));
    (lookup_order::LOOKUPS_PER_STEP * first, lookup_order::LOOKUPS_PER_STEP * (last - first))
}

/// The code of G(a) = `value`, or the placeholder [`u8::MAX`] where the value is rare or has no code.
fn code_of(space: SparseSpace, a: u64, value: u16) -> u8 {
    if value >= space.coded() || space.is_rare(value, a) { u8::MAX } else { space.code(value) }
}

/// Bit flips for tests; `draw` selects the place.
#[cfg(test)]
impl Witnesses {
    pub(super) fn flip_recent(&mut self, draw: u64, bit: u8) {
        let values = self.recent.items_mut(); // all of these are proved
        let i = index(draw) % values.len();
        values[i] ^= u16::from(bit) << (draw % 8);
    }

    pub(super) fn flip_head(&mut self, draw: u64, bit: u8) -> bool {
        let i = index(draw) % self.head.len();
        if draw.is_multiple_of(2) {
            self.head[i] ^= u16::from(bit)
        } else {
            self.head_codes[i] ^= bit
        }
        self.head_checksum.is_some()
    }

    /// Returns false when the list is empty.
    pub(super) fn flip_large(&mut self, draw: u64, bit: u8) -> bool {
        let count = self.large.len().max(1);
        let Some((n, value)) = self.large.get_mut(index(draw / 2) % count) else { return false };
        if draw.is_multiple_of(2) {
            *n ^= u64::from(bit)
        } else {
            *value ^= u16::from(bit)
        }
        true
    }

    pub(super) fn flip_rare_below(&mut self, draw: u64, bit: u8) {
        let list = &mut self.rare_below[index(draw % 2)];
        let at = index(draw / 2) % list.len();
        list[at] ^= u16::from(bit);
    }

    /// Returns false when no parts are known.
    pub(super) fn flip_part(&mut self, draw: u64, bit: u8) -> bool {
        let count = self.parts.len().max(1);
        let Some(part) = self.parts.get_mut(index(draw) % count) else { return false };
        *part = Probe::new(part.offset, part.code() ^ bit);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both parts of the only witnesses are beyond [`HEAD_PARTS`], and one is in the list of large values. The reported
    /// depth must cover the smaller part, because the proof of a period relies on it.
    #[test]
    fn a_witness_found_by_a_large_value_is_as_deep_as_its_smaller_part() {
        let rule: Rule = "grundy".parse().unwrap();
        let space = SparseSpace::new(&rule, 0x1fe, 0).unwrap();
        let mut past = vec![0u16; 320_000];
        let large: Vec<(u64, u16)> = (150_000..).zip(258..262).collect();
        large.iter().for_each(|&(n, v)| past[index(n)] = v);
        let mut witnesses = Witnesses::new(&rule, space, Kernel::best(), large, past.as_slice()).unwrap();
        witnesses.push(&[262]);
        let checked = witnesses.search(Kernel::best(), 320_000, (258..262).collect(), past.as_slice()).unwrap();
        assert_eq!((checked.missing, checked.exhaustive_searches), (None, 0));
        assert!(checked.depth >= 150_003, "a smaller part of 150003, and a depth of {}", checked.depth);
    }

    /// A bit flip can make the candidate too large. The exhaustive search for its targets then finds a smaller common
    /// value that is no option. This is a failed check, after which a run restarts from its last commit.
    #[test]
    fn a_candidate_that_is_not_the_least_is_a_failed_check() {
        let rule: Rule = "grundy".parse().unwrap();
        let space = SparseSpace::new(&rule, 0x1fe, 0).unwrap();
        let past = crate::solver::values(&rule, crate::solver::Method::Sparse(Kernel::best()), 200_001).unwrap();
        let (past, truth) = past.split_at(200_000);
        let wrong = (truth[0] + 1..512).rev().find(|&v| !space.is_rare(v, 200_000)).unwrap();
        let mut witnesses = Witnesses::new(&rule, space, Kernel::best(), Vec::new(), past).unwrap();
        witnesses.push(&[wrong]);
        let targets = (0..wrong).filter(|&t| space.is_rare(t, 200_000)).collect();
        let seen = witnesses.search(Kernel::best(), 200_000, targets, past);
        let (value, least) = (u32::from(wrong), u32::from(truth[0]));
        let reported =
            matches!(&seen, Err(Error::Differs { n: 200_000, value: v, again, .. }) if (*v, *again) == (value, least));
        assert!(reported, "{seen:?}");
    }
}

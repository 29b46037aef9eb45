//! The candidate stream: for each n the least common value that is not an option.
//!
//! Only options with exactly one rare part can be common (`theory::sparse_space`), so one lookup per rare position and
//! split finds all common options. Lookups with an offset of at least [`LANES`] (far) and nearer ones (near) are
//! separate kernel jobs, 64 values at a time. Far lookups are marked, or checked in stages. The stream learns their
//! order ([`lookup_order`]), chooses on a sample of other values how many it marks and how many candidates each stage
//! keeps (the budget), and chooses again as the values change. Lookups with an offset of at least [`AHEAD`] can be
//! marked ahead of time by another thread ([`pipeline`](super::pipeline)); with more than two threads, that thread
//! marks all of them. While there are irregular lookups, the stream computes those and the near ones value by value.
//!
//! Where there are few lookups and all are regular, all of them are one job of the recurrence kernel ([`Recurrence`]),
//! and the stream learns no order. When the values of a game often have codes outside the range of the recurrence
//! kernel, the stream stops using that kernel for good.
//!
//! A lane is **unresolved** when lookups hit all its candidates. The stream then reads every lookup that was not
//! marked, one byte each. The codes just behind the marked ones are candidates too; when such a code is the least one
//! left, the stream also reads the marked lookups, which are fewer.
//!
//! A lookup is **irregular** for a block when, for some n of the block, the other part would not exist, would be rare
//! itself (a pair of rare parts gives a rare value, which the code cannot express), or would be too near for the
//! difference rule. Beyond twice the last rare position every lookup is regular.
//!
//! Values at or above [`SparseSpace::coded`] (at most 512) have no byte code. When the first one appears, the stream
//! switches to 16-bit values and a set of them. This path is exact and slower, and few games need it (.004 has values
//! above 6000).
//!
//! Invariant: after [`Stream::block`] the stream is ahead of the proved values; [`Stream::truncate`] takes it back.

pub(super) mod bench;

use super::codes::Codes;
use super::lookup_order::{self, Left, LookupRun};
use super::pipeline::{AHEAD, LONG_PIECE, PIPELINE_PIECE, Producer, RECENT};
use super::window::Window;
use crate::error::{Error, Result};
use crate::fault;
use crate::kernel::{self, BitPlanes, Kernel, LANES, Lanes, Probe, Probes, Recurrence, Stage};
use crate::theory::definition::{Sequence, for_each_piece};
use crate::theory::nimber::index;
use crate::theory::rule::{Leaves, Rule, Split};
use crate::theory::sparse_space::SparseSpace;
use bitvec::vec::BitVec;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// One rare part r under one split: a heap of n has the option `value ^ G(n - offset)`, where s is the number of tokens
/// that the split removes, c its constant and d its least difference.
///
/// A move that leaves one heap is a lookup with r = 0 where its options have the class of the heap that is left.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Lookup {
    /// s + r.
    pub(super) offset: u64,
    /// c ^ G(r).
    pub(super) value: u16,
    /// r.
    part: u64,
    /// d.
    min_difference: u64,
}

/// The lookups of one block, sorted by the job that evaluates them.
#[derive(Clone, Debug, Hash)]
pub(super) struct LookupPlan {
    /// The plan is valid for blocks inside `from..until`.
    from: u64,
    until: u64,
    /// Number of codes considered (those below it); one of [`kernel::CODES`].
    codes: usize,
    /// Lookups marked first, perhaps ahead of time: offsets of at least [`AHEAD`], those above [`RECENT`] in the second
    /// list.
    ahead: [Probes; 2],
    /// Lookups marked after `ahead`.
    mark: Probes,
    /// Lookups checked against the candidates that are left, stage by stage.
    check: Vec<Stage>,
    /// Lookups with an offset below [`LANES`].
    near: Probes,
    irregular: Vec<Lookup>,
    /// Whether moves that leave one heap may have common options that no lookup represents.
    single_heap_moves: bool,
    /// All lookups, where they are few and all regular.
    chain: Option<Recurrence>,
}

pub(super) struct Stream {
    rule: Rule,
    space: SparseSpace,
    kernel: Kernel,
    splits: Vec<Split>,
    /// The rare positions, ascending, and their values.
    rares: Vec<(u64, u16)>,
    /// One bit per position, up to the last rare position.
    is_rare: BitVec<u64>,
    /// The value of each code at even and at odd n.
    decoded: [[u16; 256]; 2],
    /// Whether the recurrence kernel may be used; false once `fallback_cost` has exceeded [`MAX_FALLBACK_COST`].
    chains: bool,
    /// Penalty for values that the recurrence kernel could not compute, in values ([`FALLBACK_COST`]).
    fallback_cost: u64,
    /// All lookups, in learnt order.
    lookups: Vec<Lookup>,
    budget: Budget,
    codes_considered: usize,
    plan: Arc<LookupPlan>,
    /// Checksums of the rare positions, the lookups (a sum, because their order changes) and the plan, each taken at
    /// creation.
    expected: Checksums,
    /// Whether a retired plan failed its checksum.
    flipped: bool,
    learnt_at: u64,
    considered_at: u64,
    rebalanced_at: u64,
    /// Number of unresolved lanes since `rebalanced_at`.
    unresolved: u64,
    /// Byte codes, back to the largest offset of a lookup; empty on the 16-bit path.
    codes: Window<u8>,
    /// Values: on the 16-bit path back to the largest offset of a lookup, otherwise back to the largest removal.
    values: Window<u16>,
    /// Whether the stream uses 16-bit values instead of codes.
    wide: bool,
}

/// Price of one more considered code, in picoseconds per value. No benchmark measures it on its own.
const CODE_PRICE: u64 = 300;

/// Price of an unresolved lane, in picoseconds per unresolved value. No benchmark measures it.
const LANE_LOSS: u64 = 1_000_000;

/// Price of an answer among the [`kernel::BEYOND`] codes behind those considered, in picoseconds per such value: the
/// stream reads only the marked lookups again. Speed hardly depends on it. No benchmark measures it.
const BEYOND_LOSS: u64 = 400_000;

/// Number of lookups marked before an order is learnt.
const UNLEARNT: usize = 600;

/// The least n at which an order is learnt; below it the order is by offset.
const YOUNG: u64 = 1 << 16;

/// Maximum number of different lookups of a game for which the stream uses [`Kernel::chain`]. Most games with more
/// lookups have codes outside the range of the recurrence kernel.
const CHAIN: usize = 320;

/// Maximum number of values per call of [`Kernel::chain`].
const LINKS: usize = 1024;

/// Cost of a value that the recurrence kernel cannot compute, in values that it can. It is added to
/// [`Stream::fallback_cost`], which falls by one with each value that the kernel computes. No benchmark measures it.
const FALLBACK_COST: u64 = 64;

/// Fallback cost, in values, above which the stream stops using the recurrence kernel.
const MAX_FALLBACK_COST: u64 = 1 << 14;

/// The use of the lookups by rank in the order: those before rank `marks` are marked, the others are checked in stages
/// `(keep, from)`. Stage `(keep, from)` holds the ranks from `from` up to the start of the next stage.
#[derive(Clone, Debug)]
struct Budget {
    marks: usize,
    stages: Vec<(usize, usize)>,
}

impl LookupPlan {
    /// An empty plan, valid for no block.
    fn none() -> LookupPlan {
        LookupPlan {
            from: 0,
            until: 0,
            codes: kernel::MOST_CODES,
            ahead: [Probes::new(), Probes::new()],
            mark: Probes::new(),
            check: Vec::new(),
            near: Probes::new(),
            irregular: Vec::new(),
            single_heap_moves: true,
            chain: None,
        }
    }

    /// A plan valid for every block, with nothing but lookups to mark ahead.
    #[cfg(test)]
    pub(super) fn marking(ahead: [Probes; 2]) -> LookupPlan {
        LookupPlan { until: u64::MAX, ahead, single_heap_moves: false, ..LookupPlan::none() }
    }

    /// The number of codes considered: those below it.
    pub(super) fn codes(&self) -> usize {
        self.codes
    }

    /// The lookups that may be marked ahead of time: offsets up to [`RECENT`], and larger ones.
    pub(super) fn ahead(&self) -> &[Probes; 2] {
        &self.ahead
    }

    /// Whether all lookups are one job of the recurrence kernel.
    pub(super) fn is_chain(&self) -> bool {
        self.chain.is_some()
    }

    /// Whether there are lookups to mark ahead of time, and marks made ahead would be used.
    pub(super) fn has_ahead(&self) -> bool {
        self.is_regular() && self.chain.is_none() && self.ahead.iter().any(|list| !list.list().is_empty())
    }

    /// Whether the plan is valid for the positions `start..end`.
    pub(super) fn holds(&self, start: u64, end: u64) -> bool {
        self.from <= start && end <= self.until
    }

    /// The lookups that are marked, now or ahead of time.
    fn marked(&self) -> impl Iterator<Item = &Probes> {
        std::iter::once(&self.mark).chain(&self.ahead)
    }

    /// The lookups that are checked.
    fn checked(&self) -> impl Iterator<Item = &Probes> {
        self.check.iter().map(|stage| &stage.check)
    }

    /// The far lookups: those that are marked and those that are checked.
    fn far(&self) -> impl Iterator<Item = &Probes> {
        self.marked().chain(self.checked())
    }

    /// Whether the lists of the kernels hold every common option.
    fn is_regular(&self) -> bool {
        self.irregular.is_empty() && !self.single_heap_moves
    }
}

/// Price of marking one lookup with `codes` codes considered, in picoseconds per value. `kernel/mark` of `cargo bench`
/// (benches/sequence.rs) measures it again for 72 codes.
const fn mark_price(codes: usize) -> u64 {
    (500 + 36 * codes as u64) / LANES as u64
}

/// Price of checking one lookup with `keep` candidates kept per lane, in picoseconds per value. `kernel/refine` of
/// `cargo bench` (benches/sequence.rs) measures it again for five stages together.
const fn check_price(keep: usize) -> u64 {
    (500 + 240 * keep as u64) / LANES as u64
}

/// The budget with the least estimated cost that marks at least the first `given` of `ranks` lookups.
///
/// `left[k]` counts the open codes below the answer after the first k · [`lookup_order::LOOKUPS_PER_STEP`] lookups,
/// over `values` sampled values. A lane loses its answer where at least as many codes below the answer are open as a
/// stage keeps.
fn choose_budget(left: &[Left], ranks: usize, values: usize, given: usize, codes: usize) -> Budget {
    /// Number of sampled values per answer that may be lost where a stage begins.
    const VALUES_PER_LOST: usize = 2048;
    /// Minimum number of lookups in a stage other than the last; a shorter stage costs more than it saves.
    const MIN_STAGE: usize = 60;
    let rank = |step: usize| ranks.min(step * lookup_order::LOOKUPS_PER_STEP);
    let lost = |step: usize, keep: usize| left[step].at_least[keep];
    let begin = kernel::KEEP
        .map(|keep| (0..left.len()).find(|&step| lost(step, keep) <= values / VALUES_PER_LOST).map_or(ranks, rank));
    let plan = |first: usize, marks: usize| -> Budget {
        let later = (first + 1..kernel::KEEP.len()).filter(|&k| begin[k] < ranks);
        let mut stages = vec![(kernel::KEEP[first], marks)];
        for k in later {
            let (from, last) = (begin[k].max(marks), stages[stages.len() - 1].1);
            if from == last {
                stages.pop();
            }
            if from == last || from >= last + MIN_STAGE {
                stages.push((kernel::KEEP[k], from));
            }
        }
        Budget { marks, stages }
    };
    let cost = |(step, budget): &(usize, Budget)| -> u64 {
        let ends = budget.stages.iter().skip(1).map(|stage| stage.1).chain([ranks]);
        let checks = budget.stages.iter().zip(ends).map(|(&(keep, from), to)| (to - from) as u64 * check_price(keep));
        let lost = lost(*step, budget.stages[0].0) as u64 * LANE_LOSS / values as u64;
        budget.marks as u64 * mark_price(codes) + checks.sum::<u64>() + lost
    };
    let steps = given.div_ceil(lookup_order::LOOKUPS_PER_STEP)..left.len();
    let choices = (0..kernel::KEEP.len()).flat_map(|first| steps.clone().map(move |step| (first, step)));
    let choices = choices.map(|(first, step)| (step, plan(first, rank(step))));
    choices.min_by_key(cost).expect("there are choices").1
}

/// Where the stream stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The block is complete.
    Done,
    /// The next value has no byte code; [`Stream::widen`] is needed once all before it is proved.
    TooWide,
}

/// Checksums of data that is written once and read for a long time.
#[derive(Clone, Copy, Debug, Default)]
struct Checksums {
    rares: u64,
    lookups: u64,
    plan: u64,
}

/// The least code that is not hit.
fn least(hits: &[u8; 256]) -> Option<u8> {
    (0..=u8::MAX).find(|&code| hits[usize::from(code)] == 0)
}

/// A 64-bit checksum of data in memory: two different inputs have the same one with probability 2^-64. It never
/// outlives the process, so it may use [`DefaultHasher`], whose algorithm can change with the compiler.
pub(super) fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

impl Stream {
    /// A stream that continues `past`, whose rare positions under `space`, with their values, are `rares` and whose
    /// largest value is `max_value`.
    pub(super) fn new<S: Sequence + ?Sized>(
        rule: &Rule,
        space: SparseSpace,
        kernel: Kernel,
        rares: Vec<(u64, u16)>,
        max_value: u16,
        past: &S,
    ) -> Result<Stream> {
        let mut stream = Stream {
            rule: rule.clone(),
            space,
            kernel,
            splits: rule.splits().collect(),
            rares: Vec::new(),
            is_rare: BitVec::new(),
            decoded: [0, 1].map(|n| std::array::from_fn(|code| space.decode(code.to_le_bytes()[0], n))),
            chains: true,
            fallback_cost: 0,
            lookups: Vec::new(),
            budget: Budget { marks: UNLEARNT, stages: vec![(kernel::CANDIDATES, UNLEARNT)] },
            codes_considered: kernel::MOST_CODES,
            plan: Arc::new(LookupPlan::none()),
            expected: Checksums { plan: hash(LookupPlan::none()), ..Checksums::default() },
            flipped: false,
            learnt_at: 0,
            considered_at: 0,
            rebalanced_at: 0,
            unresolved: 0,
            codes: Window::new(past.len(), Vec::new()),
            values: Window::new(past.len(), Vec::new()),
            wide: false,
        };
        for m in rule.moves().iter().filter(|m| m.leaves == Leaves::One && space.keeps_class(m.remove, m.constant)) {
            stream.add(Lookup { offset: m.remove, value: m.constant, part: 0, min_difference: 0 });
        }
        rares.into_iter().for_each(|(n, value)| stream.enter(n, value));
        // A mask without a low bit leaves a byte code for too few values.
        if max_value >= space.coded() || space.coded() < 512 {
            stream.wide = true;
        }
        stream.refill(past)?;
        Ok(stream)
    }

    pub(super) fn end(&self) -> u64 {
        self.values.end()
    }

    pub(super) fn rares(&self) -> &[(u64, u16)] {
        &self.rares
    }

    pub(super) fn is_wide(&self) -> bool {
        self.wide
    }

    /// The largest distance to a value that a lookup reads, from the end or from a position of a sample.
    pub(super) fn reach(&self) -> u64 {
        self.last_rare() + self.rule.max_remove() + lookup_order::SPAN
    }

    fn last_rare(&self) -> u64 {
        self.rares.last().map_or(0, |rare| rare.0)
    }

    fn add(&mut self, lookup: Lookup) {
        self.expected.lookups = self.expected.lookups.wrapping_add(hash(lookup));
        self.lookups.push(lookup);
    }

    /// Replaces the plan, after comparing the old plan with its checksum.
    fn adopt(&mut self, plan: LookupPlan) {
        self.flipped |= hash(&*self.plan) != self.expected.plan;
        self.expected.plan = hash(&plan);
        self.plan = Arc::new(plan);
    }

    fn enter(&mut self, n: u64, value: u16) {
        self.rares.push((n, value));
        self.expected.rares = hash((self.expected.rares, n, value));
        self.is_rare.resize(index(n), false);
        self.is_rare.push(true);
        let frozen = fault::is("freeze-rares") && n == self.end(); // deliberate fault, see fault.rs
        if n > 0 && !frozen {
            for split in self.splits.clone() {
                let (offset, value) = (split.remove + n, split.constant ^ value);
                self.add(Lookup { offset, value, part: n, min_difference: split.min_difference });
            }
        }
        self.adopt(LookupPlan::none());
    }

    /// Reads the windows again from `past`, which holds every value up to the end of the stream.
    fn refill<S: Sequence + ?Sized>(&mut self, past: &S) -> Result<()> {
        let end = past.len();
        let start = end.saturating_sub(self.reach());
        let short = end.saturating_sub(self.rule.max_remove() + lookup_order::SPAN);
        let (mut codes, mut values) = (Vec::new(), Vec::new());
        let codes_from = if self.is_wide() { end } else { start };
        let values_from = if self.is_wide() { start } else { short };
        for_each_piece(past, codes_from.min(values_from), end, |from, piece| {
            for (n, &v) in (from..).zip(piece) {
                if n >= codes_from {
                    codes.push(self.space.code(v));
                }
                if n >= values_from {
                    values.push(v);
                }
            }
            Ok(())
        })?;
        self.codes = Window::new(codes_from, codes);
        self.values = Window::new(values_from, values);
        Ok(())
    }

    /// Appends the next value, which the witness search found to be rare. `past` holds every value before it.
    pub(super) fn push_rare<S: Sequence + ?Sized>(&mut self, value: u16, past: &S) -> Result<()> {
        let n = past.len();
        assert_eq!(n, self.end(), "a rare value must follow the last proved value");
        self.enter(n, value);
        if value >= self.space.coded() && !self.is_wide() {
            self.widen(past)?;
        } else if self.values.start().min(self.codes.start()) > 0 {
            // The new lookup reads values from the start of the sequence on.
            self.refill(past)?;
        }
        self.push(value);
        Ok(())
    }

    fn push(&mut self, value: u16) {
        if !self.wide {
            self.codes.push(self.space.code(value));
        }
        self.values.push(value);
    }

    /// Switches to 16-bit values. `past` holds every value up to the end of the stream.
    pub(super) fn widen<S: Sequence + ?Sized>(&mut self, past: &S) -> Result<()> {
        self.wide = true;
        self.refill(past)
    }

    /// Takes the stream back to `end` and keeps everything before it.
    pub(super) fn truncate(&mut self, end: u64) {
        self.codes.truncate(end);
        self.values.truncate(end);
        self.learnt_at = self.learnt_at.min(end);
        self.considered_at = self.considered_at.min(end);
        self.rebalanced_at = self.rebalanced_at.min(end);
    }

    /// Forgets the values that positions from `proved` on do not read, and the codes before `horizon`, which the shared
    /// `codes` forget as well. No later check would notice a change in forgotten data, so this compares the data first:
    /// the codes with the other copy and, on the 16-bit path, the values with `past`.
    ///
    /// # Errors
    /// [`Error::Flipped`] at the first difference, and any error of reading `past`.
    pub(super) fn forget<S: Sequence + ?Sized>(
        &mut self,
        proved: u64,
        horizon: u64,
        codes: &mut Codes,
        past: &S,
    ) -> Result<()> {
        let short = self.rule.max_remove() + lookup_order::SPAN;
        let values_from = proved.saturating_sub(if self.is_wide() { self.reach() } else { short });
        if self.is_wide() {
            self.values.evictable_agrees_with(values_from, past)?;
        }
        let ours = self.codes.start() + self.codes.evictable(horizon).len() as u64;
        let end = codes.evictable(horizon).unwrap_or(0).clamp(ours, self.codes.end());
        codes.compare(self.codes.start(), self.codes.slice(self.codes.start(), end), |n| self.rare_at(n))?;
        // Two threads, because the remaining codes move down: tens of millions in Grundy's game.
        rayon::join(|| self.codes.forget_before(horizon), || codes.forget_before(horizon));
        self.values.forget_before(values_from);
        Ok(())
    }

    /// Computes the next `length` candidates and sends them to the other end of the pipeline piece by piece. Computes
    /// fewer when one has no byte code, or when the other end is gone.
    pub(super) fn block(&mut self, length: usize, producer: &mut Producer) -> Result<(Vec<u16>, Stop)> {
        let start = self.end();
        let end = start + length as u64;
        let mut stop = Stop::Done;
        if !self.is_wide() {
            if self.plan.chain.is_none() && start >= lookup_order::next_learning(self.learnt_at).max(YOUNG) {
                self.learn();
            }
            if start >= self.considered_at + lookup_order::RECONSIDER_INTERVAL {
                self.reconsider();
            }
        }
        while self.end() < end && stop == Stop::Done {
            let from = self.end();
            let piece = if self.plan.chain.is_some() { LONG_PIECE } else { PIPELINE_PIECE };
            let to = end.min((from + 1).next_multiple_of(piece as u64));
            let used = if self.is_wide() {
                self.wide_piece(to)?;
                Vec::new()
            } else {
                let (stopped, used) = self.piece(to, producer);
                stop = stopped;
                used
            };
            if !producer.send(self.values.slice(from, self.end()), &self.plan, used) {
                break;
            }
        }
        Ok((self.values.slice(start, self.end()).to_vec(), stop))
    }

    /// The candidates up to `to`, and the planes that were marked ahead for them.
    fn piece(&mut self, to: u64, producer: &mut Producer) -> (Stop, Vec<BitPlanes>) {
        let (from, mut stop) = (self.end(), Stop::Done);
        if !self.plan.holds(from, to) {
            self.make_plan(from, to);
        }
        let mut planes = producer.ahead(&self.plan, from);
        let mut ahead = planes.iter_mut();
        while self.end() < to && stop == Stop::Done {
            let left = index(to - self.end());
            stop = match self.plan.chain {
                Some(_) => self.chained(left),
                None => self.lanes(left.min(LANES), ahead.next()),
            };
        }
        (stop, planes)
    }

    /// Computes the candidates up to `to` on 16-bit values.
    fn wide_piece(&mut self, to: u64) -> Result<()> {
        while self.end() < to {
            let value = self.wide_value(self.end())?;
            self.values.push(value);
        }
        Ok(())
    }

    /// The longest block whose lookups take a fraction of a second.
    pub(super) fn longest_block(&self) -> usize {
        /// Maximum number of lookups per block. On the slow paths a lookup takes about a nanosecond.
        const BATCH: usize = 1 << 28;
        1 << (BATCH / self.lookups.len().max(1)).max(LANES).ilog2()
    }

    /// Chooses the number of codes to consider from the last values. Chooses the budget again as well when too many
    /// lanes were unresolved, or when the last choice is [`lookup_order::REBALANCE_INTERVAL`] values old.
    fn reconsider(&mut self) {
        self.considered_at = self.end();
        let answers: Vec<usize> =
            self.codes.items().iter().rev().take(1 << 13).map(|&code| usize::from(code)).collect();
        let loss = |beyond: u64| if beyond <= kernel::BEYOND as u64 { BEYOND_LOSS } else { LANE_LOSS };
        let codes = lookup_order::codes_to_consider(&answers, CODE_PRICE, loss);
        if codes != self.codes_considered {
            self.codes_considered = codes;
            self.adopt(LookupPlan::none());
        }
        let due = self.unresolved > lookup_order::MAX_UNRESOLVED
            || self.end() >= self.rebalanced_at + lookup_order::REBALANCE_INTERVAL;
        if due && self.learnt_at > 0 && self.plan.chain.is_none() {
            self.rebalance();
        }
    }

    /// The code of the option that a lookup gives at `n`, or [`u8::MAX`] when it gives none. A pair of rare parts
    /// counts as if its option were common, which costs speed at worst.
    fn option(&self, lookup: &Lookup, n: u64) -> u8 {
        let other = n.checked_sub(lookup.offset).filter(|_| lookup.value < self.space.coded());
        other.map_or(u8::MAX, |other| self.codes.get(other) ^ self.space.code(lookup.value))
    }

    /// The code of G(n), or 0 at a rare position, from which there is nothing to learn.
    fn answer(&self, n: u64) -> usize {
        if self.rare_at(n) { 0 } else { usize::from(self.codes.get(n)) }
    }

    /// Whether the lookup is marked ahead of time whatever the budget. With more than two threads every lookup that can
    /// be marked ahead is, though most would be cheaper to check, because that leaves less work to the one thread that
    /// computes the values in order. Two threads have no time to spare: both search witnesses once the candidates are
    /// complete.
    fn is_ahead(lookup: &Lookup) -> bool {
        rayon::current_num_threads() > 2 && lookup.offset >= AHEAD as u64
    }

    /// Learns the order of the lookups, and chooses the budget.
    fn learn(&mut self) {
        let end = self.end();
        self.reconsider();
        let sample = lookup_order::sample(end);
        let mut lookups: Vec<Lookup> = self.lookups.iter().filter(|lookup| Self::is_ahead(lookup)).copied().collect();
        let mut rest: Vec<Lookup> = self.lookups.iter().filter(|lookup| !Self::is_ahead(lookup)).copied().collect();
        let all = rest.len();
        let answers: Vec<usize> = sample.iter().map(|&n| self.answer(n)).collect();
        lookup_order::learn(&mut rest, &lookups, all, &answers, |lookup, i| self.option(lookup, sample[i]));
        lookups.append(&mut rest);
        self.lookups = lookups;
        self.learnt_at = end;
        self.rebalance();
    }

    /// Chooses the budget from the codes that the lookups leave open at the last values.
    fn rebalance(&mut self) {
        // Fewer runs when there are many lookups, so that the time is bounded.
        let most = ((1 << 22) / self.lookups.len().max(1)).max(1);
        let below = |n: u64| self.answer(n).min(self.codes_considered).to_le_bytes()[0];
        let run = |first: u64| LookupRun {
            at: self.codes.at(first),
            below: std::array::from_fn(|i| below(first + i as u64)),
        };
        let runs: Vec<LookupRun> = lookup_order::last(self.end()).map(run).take(most).collect();
        let reach = runs.iter().map(|run| run.at).min().unwrap_or(0);
        let probe = |lookup: &Lookup| {
            let offset = index(lookup.offset);
            match offset {
                // Near lookups, whose values come too late to be marked or checked, and lookups without an option get a
                // placeholder that hits the code of the answer itself. Only the codes below the answer matter.
                _ if offset < LANES || offset > reach || lookup.value >= self.space.coded() => Probe::new(0, 0),
                _ => Probe::new(offset, self.space.code(lookup.value)),
            }
        };
        let probes: Vec<Probe> = self.lookups.iter().map(probe).collect();
        let left = lookup_order::left(self.kernel, self.codes.items(), &probes, &runs, self.codes_considered);
        let given = self.lookups.iter().take_while(|lookup| Self::is_ahead(lookup)).count();
        self.budget = choose_budget(&left, probes.len(), runs.len() * LANES, given, self.codes_considered);
        self.rebalanced_at = self.end();
        self.unresolved = 0;
        self.adopt(LookupPlan::none());
    }

    /// Compares everything that later values depend on with its state at creation: the codes with the other copy, which
    /// was computed independently, the values with `past`, and the rare positions, the lookups and the plan with their
    /// checksums.
    ///
    /// # Errors
    /// [`Error::Flipped`] at the first difference, and any error of reading `past`.
    pub(super) fn check_memory<S: Sequence + ?Sized>(&self, codes: &Codes, past: &S) -> Result<()> {
        self.values.agrees_with(past)?;
        let rares = self.rares.iter().fold(0, |checksum, &(n, value)| hash((checksum, n, value)));
        let bits_agree =
            self.is_rare.count_ones() == self.rares.len() && self.rares.iter().all(|rare| self.rare_at(rare.0));
        if rares != self.expected.rares || !bits_agree {
            return Err(Error::Flipped { what: "the list of rare positions", from: 0, to: self.end() });
        }
        let lookups = self.lookups.iter().fold(0u64, |sum, lookup| sum.wrapping_add(hash(lookup)));
        if lookups != self.expected.lookups || self.flipped || hash(&*self.plan) != self.expected.plan {
            return Err(Error::Flipped { what: "the list of lookups", from: 0, to: self.end() });
        }
        if self.is_wide() {
            return Ok(());
        }
        codes.compare(self.codes.start(), self.codes.items(), |n| self.rare_at(n))
    }

    /// The plan of the next blocks, for marking ahead.
    pub(super) fn plan(&self) -> Arc<LookupPlan> {
        Arc::clone(&self.plan)
    }

    #[inline]
    fn rare_at(&self, n: u64) -> bool {
        self.is_rare.get(index(n)).is_some_and(|bit| *bit)
    }

    /// Makes the plan of the block `start..end`, valid until the first position at which a lookup becomes irregular.
    fn make_plan(&mut self, start: u64, end: u64) {
        let may_leave_one = self.rule.moves().iter().any(|m| !matches!(m.leaves, Leaves::Two { .. }));
        let single_heap_moves_until = self.last_rare() + self.rule.max_remove() + 1;
        let single_heap_moves = may_leave_one && start < single_heap_moves_until;
        let mut plan = LookupPlan {
            from: start,
            until: u64::MAX,
            codes: self.codes_considered,
            single_heap_moves,
            ..LookupPlan::none()
        };
        if single_heap_moves {
            plan.until = single_heap_moves_until.max(end);
        }
        let Budget { marks, stages } = &self.budget;
        plan.check = stages.iter().map(|&(keep, _)| Stage { keep, check: Probes::new() }).collect();
        for (rank, lookup) in self.lookups.iter().enumerate() {
            // All values have codes, so every option of this lookup is too large to be a candidate, and has no code.
            if lookup.value >= self.space.coded() {
                continue;
            }
            let irregular_at = self.next_irregular(lookup, start);
            plan.until = plan.until.min(irregular_at.max(end));
            // Even the last n of the block is too small for the lookup.
            if lookup.offset >= end {
                continue;
            }
            if irregular_at < end {
                plan.irregular.push(*lookup);
                continue;
            }
            let probe = Probe::new(index(lookup.offset), self.space.code(lookup.value));
            let list = match probe.offset {
                0..LANES => &mut plan.near,
                AHEAD.. if rank < *marks => &mut plan.ahead[usize::from(probe.offset > RECENT)],
                _ if rank < *marks => &mut plan.mark,
                _ => &mut plan.check[stages.partition_point(|&(_, from)| from <= rank) - 1].check,
            };
            list.push(probe);
        }
        let use_recurrence = plan.is_regular() && self.chains;
        plan.chain = use_recurrence
            .then(|| Recurrence::new(plan.far().chain([&plan.near]).flat_map(Probes::list).copied().collect()));
        plan.chain = plan.chain.filter(|chain| chain.len() <= CHAIN);
        self.adopt(plan);
    }

    /// Computes the next `count` candidates with the recurrence kernel. Where the least code is outside the range of
    /// the kernel, reads all lookups for that value.
    fn chained(&mut self, count: usize) -> Stop {
        let start = self.end();
        let at = self.codes.at(start);
        let mut done = 0;
        while let Some(chain) = self.plan.chain.as_ref().filter(|_| done < count) {
            let to = at + count.min(done + LINKS);
            let codes = self.codes.items_mut();
            codes.resize(to, 0);
            let end = self.kernel.chain(codes, at + done, to, chain);
            codes.truncate(end);
            self.fallback_cost = self.fallback_cost.saturating_sub((end - at - done) as u64);
            done = end - at;
            if end < to {
                let n = start + done as u64;
                match least(&self.hits(n, self.plan.far())) {
                    Some(code) if self.space.decode(code, n) < self.space.coded() => self.codes.push(code),
                    _ => break,
                }
                self.fallback_cost += FALLBACK_COST;
                done += 1;
            }
        }
        if self.fallback_cost > MAX_FALLBACK_COST {
            self.chains = false;
            let plan = LookupPlan { chain: None, ..LookupPlan::clone(&self.plan) };
            self.adopt(plan);
        }
        self.decode(start);
        if done == count { Stop::Done } else { Stop::TooWide }
    }

    /// Appends the values of the codes from `start` on.
    fn decode(&mut self, start: u64) {
        let codes = &self.codes.items()[self.codes.at(start)..];
        let is_odd = usize::from(start % 2 == 1);
        let [first, second] = [is_odd, 1 - is_odd].map(|parity| &self.decoded[parity]);
        self.values.extend_by_turns(codes, |code| first[usize::from(code)], |code| second[usize::from(code)]);
    }

    /// The first position from `start` on for which the lookup is irregular.
    fn next_irregular(&self, lookup: &Lookup, start: u64) -> u64 {
        if start <= lookup.offset {
            return start.max(lookup.offset); // the other part does not exist yet, or is 0, which is no heap
        }
        let next_rare = self.rares.partition_point(|rare| rare.0 < start - lookup.offset);
        let rare_pair = self.rares.get(next_rare).map_or(u64::MAX, |rare| rare.0 + lookup.offset);
        // The parts differ by less than d from n = offset + part - (d - 1) to offset + part + (d - 1).
        let equal = lookup.offset + lookup.part;
        let too_near = match lookup.min_difference {
            0 => u64::MAX,
            d if start < equal + d => start.max((equal + 1).saturating_sub(d)),
            _ => u64::MAX,
        };
        rare_pair.min(too_near)
    }

    /// Computes the next `count` candidates, at most [`LANES`], given the planes that were marked ahead, if any.
    fn lanes(&mut self, count: usize, ahead: Option<&mut BitPlanes>) -> Stop {
        let start = self.end();
        let at = self.codes.at(start);
        // With many irregular lookups the kernel would leave most of the work undone.
        let use_kernel = count > LANES / 8 && self.plan.irregular.len() * 4 < self.lookups.len();
        let mut own = None;
        let found = use_kernel.then(|| {
            let codes = self.codes.items();
            let planes = match ahead {
                Some(planes) => planes,
                None => {
                    let own = own.insert(BitPlanes::new(self.plan.codes));
                    self.plan.ahead.iter().for_each(|list| self.kernel.mark(codes, at, list, own));
                    own
                }
            };
            self.kernel.mark(codes, at, &self.plan.mark, planes);
            (self.kernel.refine(codes, at, planes, &self.plan.check), &*planes)
        });
        let mut done = 0;
        while done < count {
            if let Some((lanes, _)) = found.as_ref().filter(|_| self.plan.is_regular()) {
                let codes = self.codes.items_mut();
                codes.resize(at + count, 0);
                done = self.kernel.near(codes, at, &self.plan.near, lanes, done, count);
                codes.truncate(at + done);
                if done == count {
                    break;
                }
            }
            let n = start + done as u64;
            let code = match &found {
                Some((lanes, planes)) => self.lane_code(n, lanes, planes, done),
                None => least(&self.hits(n, self.plan.far())),
            };
            match code {
                Some(code) if self.space.decode(code, n) < self.space.coded() => self.codes.push(code),
                _ => break,
            }
            done += 1;
        }
        self.decode(start);
        if done == count { Stop::Done } else { Stop::TooWide }
    }

    /// The least code that no lookup hits at `n`, given the result of the kernel in the lane of `n`. Reads only the
    /// lookups that the answer needs, and no marked lookup when the answer is among the marked codes.
    fn lane_code(&mut self, n: u64, lanes: &Lanes, planes: &BitPlanes, lane: usize) -> Option<u8> {
        let mut hits = self.hits(n, std::iter::empty());
        let is_open = |hits: &[u8; 256], code: u8| code != kernel::NONE && hits[usize::from(code)] == 0;
        let mut candidates = lanes.rows().iter().map(|row| row[lane]);
        let mut open = candidates.find(|&code| is_open(&hits, code));
        if let Some(code) = open
            && lanes.is_unmarked(code)
        {
            self.enter_hits(self.plan.marked(), &mut hits);
            open = std::iter::once(code).chain(candidates).find(|&code| is_open(&hits, code));
        }
        open.or_else(|| {
            self.unresolved += 1;
            self.enter_hits(self.plan.checked(), &mut hits);
            planes.open(lane).find(|&code| is_open(&hits, code)).or_else(|| {
                self.enter_hits(self.plan.marked(), &mut hits);
                least(&hits)
            })
        })
    }

    /// The codes hit at `n` (entries other than 0) by near and irregular lookups, by moves that leave one heap, and by
    /// the lookups in `lists`.
    fn hits<'a>(&'a self, n: u64, lists: impl Iterator<Item = &'a Probes>) -> [u8; 256] {
        let mut hits = [0; 256];
        let mut hit = |code: u8| hits[usize::from(code)] = 1;
        for lookup in &self.plan.irregular {
            if let Some(other) = self.other_part(lookup, n) {
                hit(self.codes.get(other) ^ self.space.code(lookup.value));
            }
        }
        if self.plan.single_heap_moves {
            for option in self.rule.single_options(n, |m| self.value_at(m)) {
                if option < self.space.coded() && !self.space.is_rare(option, n) {
                    hit(self.space.code(option));
                }
            }
        }
        self.enter_hits(std::iter::once(&self.plan.near).chain(lists), &mut hits);
        hits
    }

    /// Enters the codes that these lookups hit at the next n, the end of the codes.
    fn enter_hits<'a>(&self, lists: impl Iterator<Item = &'a Probes>, hits: &mut [u8; 256]) {
        let codes = self.codes.items();
        let end = codes.len();
        for list in lists {
            // One loop per list: the loop over a flattened iterator is slower.
            list.list().iter().for_each(|probe| hits[usize::from(codes[end - probe.offset] ^ probe.code())] = 1);
        }
    }

    /// G(m) for a single heap that a move may leave: from the values, or from the codes of this block.
    fn value_at(&self, m: u64) -> u16 {
        if m < self.values.end() { self.values.get(m) } else { self.space.decode(self.codes.get(m), m) }
    }

    /// The other part of an irregular lookup at `n`, when the option exists and is common.
    #[inline]
    fn other_part(&self, lookup: &Lookup, n: u64) -> Option<u64> {
        let other = n.checked_sub(lookup.offset)?;
        (other > 0 && !self.rare_at(other) && other.abs_diff(lookup.part) >= lookup.min_difference).then_some(other)
    }

    /// The least value common at `n` that is not an option, on 16-bit values.
    fn wide_value(&self, n: u64) -> Result<u16> {
        // A fresh set for each n (8 KiB), because memory that lives longer would need a check.
        let mut seen = [0u64; 1 << 10];
        let mut see = |v: u16| seen[usize::from(v / 64)] |= 1 << (v % 64);
        let (values, start) = (self.values.items(), self.values.start());
        for lookup in &self.lookups {
            // A rare other part needs no case of its own: its option is rare, and the answer is a common value.
            let other = n.saturating_sub(lookup.offset);
            if other > 0 && other.abs_diff(lookup.part) >= lookup.min_difference {
                see(lookup.value ^ values[index(other - start)]);
            }
        }
        for option in self.rule.single_options(n, |m| self.values.get(m)) {
            see(option);
        }
        let open = |&v: &u16| !self.space.is_rare(v, n) && seen[usize::from(v / 64)] >> (v % 64) & 1 == 0;
        (0..=u16::MAX).find(open).ok_or(Error::ValueTooLarge { n })
    }
}

/// Bit flips for tests; `draw` selects the place.
#[cfg(test)]
impl Stream {
    pub(super) fn flip_code(&mut self, draw: u64, bit: u8, unproved: usize) {
        // No lookup reads the code of a rare position, and no check covers codes that are not proved yet.
        let proved = self.end() - self.codes.start() - unproved as u64;
        let n = self.codes.start() + draw % proved;
        let n = (n..).find(|&n| !self.rare_at(n)).expect("a common position");
        let at = self.codes.at(n);
        self.codes.items_mut()[at] ^= bit;
    }

    pub(super) fn flip_rare(&mut self, draw: u64, bit: u8) {
        let i = index(draw) % self.rares.len();
        if draw.is_multiple_of(2) { self.rares[i].0 ^= u64::from(bit) } else { self.rares[i].1 ^= u16::from(bit) }
    }

    pub(super) fn first_code(&self) -> u64 {
        self.codes.start()
    }

    pub(super) fn flip_value(&mut self, draw: u64, bit: u8, unproved: usize) {
        let values = self.values.items_mut();
        let i = index(draw) % (values.len() - unproved);
        values[i] ^= u16::from(bit) << (draw % 8);
    }

    /// Returns false when no lookup is marked.
    pub(super) fn flip_plan(&mut self, draw: u64, bit: u8) -> bool {
        let plan = Arc::make_mut(&mut self.plan);
        let list = plan.mark.list().to_vec();
        plan.mark.clear();
        for (i, probe) in list.iter().enumerate() {
            let flipped = if i == index(draw) % list.len() { bit } else { 0 };
            plan.mark.push(Probe::new(probe.offset, probe.code() ^ flipped));
        }
        !list.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::pipeline::pipeline;
    use crate::solver::{Histogram, Method, values};
    use std::collections::VecDeque;

    /// A stream that continues the first values of a game, with the rare positions of its best space.
    fn stream(rule: &Rule, kernel: Kernel, past: &[u16]) -> Stream {
        let (space, _) = Histogram::of(past).unwrap().best_space(rule);
        let rares = (0..).zip(past.iter().copied()).filter(|&(n, v)| space.is_rare(v, n)).collect();
        let max_value = past.iter().copied().max().unwrap_or(0);
        Stream::new(rule, space, kernel, rares, max_value, past).unwrap()
    }

    /// Compares the recurrence kernel with marking, checking and near lookups, in blocks of many lengths.
    #[test]
    fn the_recurrence_and_the_lanes_give_the_same_candidates() {
        let games = [".106", ".104", ".054", ".454", ".77", ".044", ".205", "remove-a-square"];
        // Two games have codes outside the range of the recurrence kernel: one now and then, one too often.
        let games = games.into_iter().chain([".174"]).map(|game| (game, true)).chain([(".015", false)]);
        let mut fallbacks = 0;
        for (game, stays) in games {
            let rule: Rule = game.parse().unwrap();
            let past = values(&rule, Method::Sparse(Kernel::best()), 12_000).unwrap();
            for kernel in Kernel::available() {
                let (mut chained, mut plain) = (stream(&rule, kernel, &past), stream(&rule, kernel, &past));
                plain.chains = false;
                for length in [1, 7, 63, 64, 65, 1000, 1024, 1025, 16384, 3, 16384, 2, 16384, 16384, 16384, 16384] {
                    let proved = chained.end();
                    let [found, expected] = [&mut chained, &mut plain].map(|stream| {
                        let codes = Codes::new(stream.space, stream.end());
                        let (mut producer, _worker) =
                            pipeline(&codes, kernel, stream.plan(), u64::MAX, VecDeque::new());
                        stream.block(length, &mut producer).unwrap()
                    });
                    assert!(found == expected, "{rule}, {kernel}, {length} from {proved}");
                    fallbacks += u64::from(chained.fallback_cost > 0);
                }
                assert!(plain.plan.chain.is_none());
                assert_eq!(
                    chained.plan.chain.is_some(),
                    stays,
                    "{rule}, {kernel}, fallback_cost {}",
                    chained.fallback_cost
                );
            }
        }
        assert!(fallbacks > 0, "no game had a code outside the range of the recurrence kernel");
    }
}

//! The candidate stream: for each heap the least common value that is not an option.
//!
//! Only options with exactly one rare part can be common (`solver::space`), so one lookup per rare position and split
//! finds them all. Those that reach back at least [`LANES`] and the nearer ones are jobs of a kernel, 64 heaps at a time:
//! the far ones are marked, or checked in stages; their order is learnt ([`order`]), and how many are marked and what the
//! stages keep is tried out on other heaps, and again as the values change. What reaches back [`AHEAD`] may be marked ahead
//! of time by another thread ([`pipeline`](super::pipeline)); with more than one other at hand all of it is. While there are odd lookups,
//! these and the near ones are done heap by heap. Where there are few lookups and none is odd, all of them are one job of a
//! kernel ([`Recurrence`]), and no order is learnt: .106 makes 400 million candidates a second instead of 68. A game that often
//! has codes which the chain does not know goes back to the other way for good.
//!
//! A heap whose candidates were all hit is **lost** and done alone: all lookups that were not marked are asked, one byte
//! each. The next codes behind those that are marked are candidates too; where one of them is left, the lookups that were
//! marked are asked, which are fewer. (Between 1 and 1.3·10^8 in Grundy's game, each of the two befalls 5 to 6 heaps in 1000.)
//!
//! A lookup is **odd** for a block of heaps when, for one of them, the other part would not exist, would be rare itself
//! (a pair of rares gives a rare value, which the code cannot express), or would be too near for the difference rule.
//! Beyond twice the last rare position no lookup is odd.
//!
//! Values at or above 512 ([`SparseSpace::coded`]) have no byte code. When the first one appears the stream goes over to 16-bit
//! values and a set of them: exact, slower, and needed by few games (.004 has values above 6000).
//!
//! Invariant: after [`Stream::block`] the stream has run ahead of what is proved; [`Stream::truncate`] takes it back.

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

/// One rare part under one split: a heap of n has the option `value ^ G(n - offset)`. A move that leaves one heap is a
/// lookup with part 0 where its options have the class of the heap that is left.
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

/// The lookups of one block, sorted by how they are done.
#[derive(Clone, Debug, Hash)]
pub(super) struct LookupPlan {
    /// The plan holds for blocks inside `from..until`.
    from: u64,
    until: u64,
    /// Codes below this are considered; one of [`kernel::CODES`].
    codes: usize,
    /// Entered in the planes first, perhaps ahead of time: all reach back at least [`AHEAD`], the second more than [`RECENT`].
    ahead: [Probes; 2],
    /// Entered in the planes then.
    mark: Probes,
    /// Held against the candidates that are left, stage by stage.
    check: Vec<Stage>,
    near: Probes,
    irregular: Vec<Lookup>,
    /// Moves that leave one heap may have common options that no lookup stands for.
    single_heap_moves: bool,
    /// All lookups, where they are few and there is nothing else to ask.
    chain: Option<Recurrence>,
}

pub(super) struct Stream {
    rule: Rule,
    space: SparseSpace,
    kernel: Kernel,
    splits: Vec<Split>,
    /// The rare positions, ascending, and their values.
    rares: Vec<(u64, u16)>,
    /// One bit a position, up to the last rare one.
    is_rare: BitVec<u64>,
    /// The value of each code at even and at odd heaps.
    decoded: [[u16; 256]; 2],
    /// Whether the chain is worth its while; else its fallback_cost was too high.
    chains: bool,
    fallback_cost: u64,
    /// In learnt order.
    lookups: Vec<Lookup>,
    budget: Budget,
    codes_considered: usize,
    plan: Arc<LookupPlan>,
    /// Hashes of the rares, the lookups (the sum of theirs, since their order changes) and the plan, taken when each was
    /// made.
    expected: Checksums,
    /// A plan that is no longer in use was another one in the end than when it was made.
    flipped: bool,
    learnt_at: u64,
    considered_at: u64,
    shared_at: u64,
    /// Heaps since then that were left without a candidate.
    lost: u64,
    /// Byte codes as far back as a lookup may reach; empty on the 16-bit path.
    codes: Window<u8>,
    /// Values: as far back as a lookup may reach on the 16-bit path, else as a move that leaves one heap may.
    values: Window<u16>,
    /// Whether the 16-bit path is taken.
    wide: bool,
}

/// What considering one code more costs in every heap, and a heap whose answer is beyond, in picoseconds (measured).
const CODE_PRICE: u64 = 300;
const LANE_LOSS: u64 = 1_000_000;
/// And one whose answer is no farther beyond than a kernel looks: those lookups that are marked are asked for it alone. (By
/// trial: 250 000 and 600 000 make no difference.)
const BEYOND_LOSS: u64 = 400_000;

/// Lookups that are marked before an order is learnt.
const UNLEARNT: usize = 600;

/// Before this heap the order is by distance.
const YOUNG: u64 = 1 << 16;

/// Up to so many different lookups are done by [`Kernel::chain`]. (With AVX-512 it is two and a half
/// times as fast as candidates and near lookups for the 70 of .054, twice for the 263 of .354. Of the games tried with more
/// lookups most have codes that the chain does not know.)
const CHAIN: usize = 320;

/// Heaps done by one call of [`Kernel::chain`].
const LINKS: usize = 1024;

/// A heap that the chain cannot do costs about as much as so many that it can; these are its fallback_cost, and each heap that it
/// does pays one back.
const FALLBACK_COST: u64 = 64;

/// The chain is given up when its fallback_cost is so high.
const MAX_FALLBACK_COST: u64 = 1 << 14;

/// How the lookups are used, by their ranks in the order: before `marks` they are marked, then they are checked in stages
/// `(keep, from)` that go up to where the next one begins.
#[derive(Clone, Debug)]
struct Budget {
    marks: usize,
    stages: Vec<(usize, usize)>,
}

impl LookupPlan {
    /// A plan that holds nowhere.
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

    /// A plan that holds everywhere, with nothing but lookups to mark ahead.
    #[cfg(test)]
    pub(super) fn marking(ahead: [Probes; 2]) -> LookupPlan {
        LookupPlan { until: u64::MAX, ahead, single_heap_moves: false, ..LookupPlan::none() }
    }

    /// Codes below this are considered.
    pub(super) fn codes(&self) -> usize {
        self.codes
    }

    /// The lookups that may be marked ahead of time, if any.
    pub(super) fn ahead(&self) -> &[Probes; 2] {
        &self.ahead
    }

    /// Whether all lookups are one job of a kernel.
    pub(super) fn is_chain(&self) -> bool {
        self.chain.is_some()
    }

    /// Whether it is worth while to mark ahead of time.
    pub(super) fn has_ahead(&self) -> bool {
        self.is_regular() && self.chain.is_none() && self.ahead.iter().any(|list| !list.list().is_empty())
    }

    /// Whether the plan holds for the heaps `start..end`.
    pub(super) fn holds(&self, start: u64, end: u64) -> bool {
        self.from <= start && end <= self.until
    }

    /// The lookups that are marked, now or ahead of time.
    fn marked(&self) -> impl Iterator<Item = &Probes> {
        std::iter::once(&self.mark).chain(&self.ahead)
    }

    /// Those that are checked.
    fn checked(&self) -> impl Iterator<Item = &Probes> {
        self.check.iter().map(|stage| &stage.check)
    }

    /// Both.
    fn far(&self) -> impl Iterator<Item = &Probes> {
        self.marked().chain(self.checked())
    }

    /// Whether all lookups are in the lists of the kernels.
    fn is_regular(&self) -> bool {
        self.irregular.is_empty() && !self.single_heap_moves
    }
}

/// What a lookup costs a heap that is marked, with so many codes considered, or checked, with so many candidates kept;
/// in picoseconds (measured).
const fn mark_price(codes: usize) -> u64 {
    (500 + 36 * codes as u64) / LANES as u64
}
const fn check_price(keep: usize) -> u64 {
    (500 + 240 * keep as u64) / LANES as u64
}

/// The cheapest budget of so many lookups that mark those `given`, if it is known how many candidates too many the first of
/// them leave in some heaps.
fn choose_budget(left: &[Left], ranks: usize, heaps: usize, given: usize, codes: usize) -> Budget {
    /// One heap in so many may lose its answer where a stage begins.
    const LOST: usize = 2048;
    /// A stage of fewer lookups costs more than it saves.
    const SHORT: usize = 60;
    let rank = |step: usize| ranks.min(step * lookup_order::LOOKUPS_PER_STEP);
    let lost = |step: usize, keep: usize| left[step].at_least[keep];
    let begin =
        kernel::KEEP.map(|keep| (0..left.len()).find(|&step| lost(step, keep) <= heaps / LOST).map_or(ranks, rank));
    let plan = |first: usize, marks: usize| -> Budget {
        let later = (first + 1..kernel::KEEP.len()).filter(|&k| begin[k] < ranks);
        let mut stages = vec![(kernel::KEEP[first], marks)];
        for k in later {
            let (from, last) = (begin[k].max(marks), stages[stages.len() - 1].1);
            if from == last {
                stages.pop();
            }
            if from == last || from >= last + SHORT {
                stages.push((kernel::KEEP[k], from));
            }
        }
        Budget { marks, stages }
    };
    let cost = |(step, budget): &(usize, Budget)| -> u64 {
        let ends = budget.stages.iter().skip(1).map(|stage| stage.1).chain([ranks]);
        let checks = budget.stages.iter().zip(ends).map(|(&(keep, from), to)| (to - from) as u64 * check_price(keep));
        let lost = lost(*step, budget.stages[0].0) as u64 * LANE_LOSS / heaps as u64;
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

/// Hashes of what is made once and read for long.
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

/// A 64-bit checksum of data in memory: two different inputs have the same one with probability 2^-64. It never outlives the
/// process, so it may use [`DefaultHasher`], whose algorithm can change with the compiler.
pub(super) fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

impl Stream {
    /// A stream that continues `past`, whose rare positions under `space` are `rares`.
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
            shared_at: 0,
            lost: 0,
            codes: Window::new(past.len(), Vec::new()),
            values: Window::new(past.len(), Vec::new()),
            wide: false,
        };
        for m in rule.moves().iter().filter(|m| m.leaves == Leaves::One && space.keeps_class(m.remove, m.constant)) {
            stream.add(Lookup { offset: m.remove, value: m.constant, part: 0, min_difference: 0 });
        }
        rares.into_iter().for_each(|(n, value)| stream.enter(n, value));
        // A mask without a low bit leaves no byte code worth having.
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

    /// How far back lookups reach, from a heap or from one to be learnt from.
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

    /// Goes over to another plan, after a last look at the old one.
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

    /// Reads the windows anew from `past`, which holds everything up to the end of the stream.
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

    /// Enters the value of the next heap, which the witness search found to be rare. `past` holds everything before it.
    pub(super) fn push_rare<S: Sequence + ?Sized>(&mut self, value: u16, past: &S) -> Result<()> {
        let n = past.len();
        assert_eq!(n, self.end(), "a rare heap is entered right behind what is proved");
        self.enter(n, value);
        if value >= self.space.coded() && !self.is_wide() {
            self.widen(past)?;
        } else if self.values.start().min(self.codes.start()) > 0 {
            // The new lookup starts at the very beginning of the sequence.
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

    /// Goes over to 16-bit values. `past` holds everything up to the end of the stream.
    pub(super) fn widen<S: Sequence + ?Sized>(&mut self, past: &S) -> Result<()> {
        self.wide = true;
        self.refill(past)
    }

    /// Takes the stream back to `end`; what is before it stays.
    pub(super) fn truncate(&mut self, end: u64) {
        self.codes.truncate(end);
        self.values.truncate(end);
        self.learnt_at = self.learnt_at.min(end);
        self.considered_at = self.considered_at.min(end);
        self.shared_at = self.shared_at.min(end);
    }

    /// Forgets what heaps from `proved` on do not look back at, and the codes before `horizon`, which the shared `codes`
    /// forget as well. A change in what is forgotten would never be seen later, so it is looked at before: codes side by
    /// side, and values where they are looked back at (on the 16-bit path; else the last few are).
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
        // What is left is moved down, 48 million codes in Grundy's game.
        rayon::join(|| self.codes.forget_before(horizon), || codes.forget_before(horizon));
        self.values.forget_before(values_from);
        Ok(())
    }

    /// Computes the candidates of the next `length` heaps, and sends them over piece by piece; fewer when one has no byte
    /// code, or when nobody asks for more.
    pub(super) fn block(&mut self, length: usize, producer: &mut Producer) -> Result<(Vec<u16>, Stop)> {
        let start = self.end();
        let end = start + length as u64;
        let mut stop = Stop::Done;
        if !self.is_wide() {
            if self.plan.chain.is_none() && start >= lookup_order::next_learning(self.learnt_at).max(YOUNG) {
                self.learn();
            }
            if start >= self.considered_at + lookup_order::RECONSIDER {
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

    /// The same on 16-bit values.
    fn wide_piece(&mut self, to: u64) -> Result<()> {
        while self.end() < to {
            let value = self.wide_value(self.end())?;
            self.values.push(value);
        }
        Ok(())
    }

    /// The longest block whose lookups are done within a fraction of a second.
    pub(super) fn longest_block(&self) -> usize {
        /// Lookups, at about a nanosecond each where it goes slowly.
        const BATCH: usize = 1 << 28;
        1 << (BATCH / self.lookups.len().max(1)).max(LANES).ilog2()
    }

    /// Considers as many codes as the last values make worth while, and budget the lookups out anew when too many heaps
    /// were lost, or it was long ago.
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
        let due = self.lost > lookup_order::LOST || self.end() >= self.shared_at + lookup_order::SHARE;
        if due && self.learnt_at > 0 && self.plan.chain.is_none() {
            self.rebalance();
        }
    }

    /// The code of the option that a lookup gives, [`u8::MAX`] when there is none. A pair of rares is learnt from as if
    /// it were common: that costs speed at worst.
    fn option(&self, lookup: &Lookup, n: u64) -> u8 {
        let other = n.checked_sub(lookup.offset).filter(|_| lookup.value < self.space.coded());
        other.map_or(u8::MAX, |other| self.codes.get(other) ^ self.space.code(lookup.value))
    }

    /// The code of this heap; at a rare heap nothing is to be learnt.
    fn answer(&self, n: u64) -> usize {
        if self.rare_at(n) { 0 } else { usize::from(self.codes.get(n)) }
    }

    /// The lookups that are marked ahead of time in any case. With many threads all that may be are, though most would be
    /// cheaper to check: what is left to the one thread that must go heap after heap is shorter. (Two threads are busy
    /// without: they search witnesses side by side when the candidates are done, and marking no more than one thread
    /// would takes 8 % less of their time.)
    fn is_ahead(lookup: &Lookup) -> bool {
        rayon::current_num_threads() > 2 && lookup.offset >= AHEAD as u64
    }

    /// Learns the order of the lookups, and how to share them out.
    fn learn(&mut self) {
        let end = self.end();
        self.reconsider();
        let heaps = lookup_order::sample(end);
        let mut lookups: Vec<Lookup> = self.lookups.iter().filter(|lookup| Self::is_ahead(lookup)).copied().collect();
        let mut rest: Vec<Lookup> = self.lookups.iter().filter(|lookup| !Self::is_ahead(lookup)).copied().collect();
        let all = rest.len();
        let answers: Vec<usize> = heaps.iter().map(|&n| self.answer(n)).collect();
        lookup_order::learn(&mut rest, &lookups, all, &answers, |lookup, i| self.option(lookup, heaps[i]));
        lookups.append(&mut rest);
        self.lookups = lookups;
        self.learnt_at = end;
        self.rebalance();
    }

    /// Decides how the lookups are shared out, by what they leave at the last heaps.
    fn rebalance(&mut self) {
        // In bounded time, however many lookups there are.
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
                // The near ones come too late to be counted on. A heap's own code is not asked for.
                _ if offset < LANES || offset > reach || lookup.value >= self.space.coded() => Probe::new(0, 0),
                _ => Probe::new(offset, self.space.code(lookup.value)),
            }
        };
        let probes: Vec<Probe> = self.lookups.iter().map(probe).collect();
        let left = lookup_order::left(self.kernel, self.codes.items(), &probes, &runs, self.codes_considered);
        let given = self.lookups.iter().take_while(|lookup| Self::is_ahead(lookup)).count();
        self.budget = choose_budget(&left, probes.len(), runs.len() * LANES, given, self.codes_considered);
        (self.shared_at, self.lost) = (self.end(), 0);
        self.adopt(LookupPlan::none());
    }

    /// Compares everything that later heaps look back at with what it was when it was computed: the codes with the other
    /// copy of them, which was made on its own way, the values with `past`, rares, lookups and plan with their hashes.
    pub(super) fn check_memory<S: Sequence + ?Sized>(&self, codes: &Codes, past: &S) -> Result<()> {
        self.values.agrees_with(past)?;
        let rares = self.rares.iter().fold(0, |checksum, &(n, value)| hash((checksum, n, value)));
        let places =
            self.is_rare.count_ones() == self.rares.len() && self.rares.iter().all(|rare| self.rare_at(rare.0));
        if rares != self.expected.rares || !places {
            return Err(Error::Flipped { what: "the list of rare heaps", from: 0, to: self.end() });
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

    /// The lookups of the next blocks, for marking ahead.
    pub(super) fn plan(&self) -> Arc<LookupPlan> {
        Arc::clone(&self.plan)
    }

    #[inline]
    fn rare_at(&self, n: u64) -> bool {
        self.is_rare.get(index(n)).is_some_and(|bit| *bit)
    }

    /// The plan of the block `start..end`, which holds until the first heap where a lookup becomes odd.
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
            // All values being coded ones, every option of this lookup is too large to be a candidate, and has no code.
            if lookup.value >= self.space.coded() {
                continue;
            }
            let odd_at = self.next_odd(lookup, start);
            plan.until = plan.until.min(odd_at.max(end));
            // Not even the last heap of the block is large enough.
            if lookup.offset >= end {
                continue;
            }
            if odd_at < end {
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
        let settled = plan.is_regular() && self.chains;
        plan.chain =
            settled.then(|| Recurrence::new(plan.far().chain([&plan.near]).flat_map(Probes::list).copied().collect()));
        plan.chain = plan.chain.filter(|chain| chain.len() <= CHAIN);
        self.adopt(plan);
    }

    /// The next `count` heaps, by the chain; a heap whose least code the chain does not know is done the exact way.
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

    /// Makes values of the codes from `start` on.
    fn decode(&mut self, start: u64) {
        let codes = &self.codes.items()[self.codes.at(start)..];
        let is_odd = usize::from(start % 2 == 1);
        let [first, second] = [is_odd, 1 - is_odd].map(|parity| &self.decoded[parity]);
        self.values.extend_by_turns(codes, |code| first[usize::from(code)], |code| second[usize::from(code)]);
    }

    /// The first heap from `start` on for which the lookup is odd.
    fn next_odd(&self, lookup: &Lookup, start: u64) -> u64 {
        if start <= lookup.offset {
            return start.max(lookup.offset); // its other part does not exist yet, and then is heap 0, which is none
        }
        let next_rare = self.rares.partition_point(|rare| rare.0 < start - lookup.offset);
        let meets_a_rare = self.rares.get(next_rare).map_or(u64::MAX, |rare| rare.0 + lookup.offset);
        // Too near: the parts differ by less than d from offset + part - (d - 1) to offset + part + (d - 1).
        let equal = lookup.offset + lookup.part;
        let too_near = match lookup.min_difference {
            0 => u64::MAX,
            d if start < equal + d => start.max((equal + 1).saturating_sub(d)),
            _ => u64::MAX,
        };
        meets_a_rare.min(too_near)
    }

    /// The next `count` heaps, at most [`LANES`], given the planes that were marked ahead, if any.
    fn lanes(&mut self, count: usize, ahead: Option<&mut BitPlanes>) -> Stop {
        let start = self.end();
        let at = self.codes.at(start);
        // With many odd lookups the kernel would leave most of the work undone.
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

    /// The least code that no lookup hits at `n`, given what the kernel did in its lane; as few lookups are asked as will
    /// do, and none that was marked when a marked code is the answer.
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
            self.lost += 1;
            self.enter_hits(self.plan.checked(), &mut hits);
            planes.open(lane).find(|&code| is_open(&hits, code)).or_else(|| {
                self.enter_hits(self.plan.marked(), &mut hits);
                least(&hits)
            })
        })
    }

    /// The codes that near and odd lookups, moves that leave one heap and these lookups hit at `n`: those that are not 0.
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

    /// Enters the codes that these lookups hit at the next heap.
    fn enter_hits<'a>(&self, lists: impl Iterator<Item = &'a Probes>, hits: &mut [u8; 256]) {
        let codes = self.codes.items();
        let end = codes.len();
        for list in lists {
            // A loop of its own for each list: flattened, it took twice as long.
            list.list().iter().for_each(|probe| hits[usize::from(codes[end - probe.offset] ^ probe.code())] = 1);
        }
    }

    /// G(m) for a heap that a move may leave: from the values, or from the codes of this block.
    fn value_at(&self, m: u64) -> u16 {
        if m < self.values.end() { self.values.get(m) } else { self.space.decode(self.codes.get(m), m) }
    }

    /// The other part of an odd lookup at `n`, when the option exists and is common.
    #[inline]
    fn other_part(&self, lookup: &Lookup, n: u64) -> Option<u64> {
        let other = n.checked_sub(lookup.offset)?;
        (other > 0 && !self.rare_at(other) && other.abs_diff(lookup.part) >= lookup.min_difference).then_some(other)
    }

    /// The least value common at `n` that is not an option, on 16-bit values.
    fn wide_value(&self, n: u64) -> Result<u16> {
        // Anew for each heap (8 KiB): what would outlive it would have to be compared.
        let mut seen = [0u64; 1 << 10];
        let mut see = |v: u16| seen[usize::from(v / 64)] |= 1 << (v % 64);
        let (values, start) = (self.values.items(), self.values.start());
        for lookup in &self.lookups {
            // The option of a rare other part is rare, and no rare value is asked for: it need not be told apart.
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

/// Flips for a test, of what is chosen by a number.
#[cfg(test)]
impl Stream {
    pub(super) fn flip_code(&mut self, draw: u64, bit: u8, unproved: usize) {
        // A rare heap is not looked back at, nor is what is not proved yet.
        let heaps = self.end() - self.codes.start() - unproved as u64;
        let n = self.codes.start() + draw % heaps;
        let n = (n..).find(|&n| !self.rare_at(n)).expect("a common heap");
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

    /// False when no lookup is marked.
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

    /// A stream behind the first values of a game, with the rares that its space has among them.
    fn stream(rule: &Rule, kernel: Kernel, past: &[u16]) -> Stream {
        let (space, _) = Histogram::of(past).unwrap().best_space(rule);
        let rares = (0..).zip(past.iter().copied()).filter(|&(n, v)| space.is_rare(v, n)).collect();
        let max_value = past.iter().copied().max().unwrap_or(0);
        Stream::new(rule, space, kernel, rares, max_value, past).unwrap()
    }

    /// The chain against candidates and near lookups, in blocks of all lengths.
    #[test]
    fn the_chain_and_the_lanes_give_the_same_candidates() {
        let games = [".106", ".104", ".054", ".454", ".77", ".044", ".205", "remove-a-square"];
        // And two with codes that the chain does not know: now and then, and too often.
        let games = games.into_iter().chain([".174"]).map(|game| (game, true)).chain([(".015", false)]);
        let mut debts = 0;
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
                        let (mut producer, _back) = pipeline(&codes, kernel, stream.plan(), u64::MAX, VecDeque::new());
                        stream.block(length, &mut producer).unwrap()
                    });
                    assert!(found == expected, "{rule}, {kernel}, {length} from {proved}");
                    debts += u64::from(chained.fallback_cost > 0);
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
        assert!(debts > 0, "no game had a heap that the chain does not know");
    }
}

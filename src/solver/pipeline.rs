//! The pipeline of one block: every thread evaluates far and middle lookups, one thread the others.
//!
//! ```text
//! lanes that end at most this many positions after the known values:
//!        64   producer     late and near lookups: the candidates, in order
//!       256   any thread   middle lookups (FarLanes::revise), from the slot after the one the producer takes next
//! least_far   any thread   far lookups (FarLanes::evaluate), one slot at a time
//! ```
//!
//! The candidates are a serial chain, so the thread that computes them (the *producer*) must do nothing that another
//! thread could do. A far lookup has an offset of at least [`LookupPlan::least_far`]. So the far lookups of 64 lanes
//! need only values that are known well before the producer reaches these lanes. Any other thread evaluates them
//! completely: it marks, checks, and hands over the few candidates that are left
//! ([`FarLanes`](super::lookups::far_lanes::FarLanes)). A little later, just before the producer needs the lanes, the
//! values that the middle lookups read are known. A thread then *revises* the lanes: it checks the candidates against
//! the middle lookups, and completes lanes that are left without a considered code. What no thread has revised in time,
//! the producer revises itself. It checks the candidates that are left against the late and the near lookups, which are
//! few.
//!
//! Where the plan has no far lookups to share ([`LookupPlan::shares_far`]), the producer does all of this alone, and
//! the other threads search witnesses.
//!
//! The threads share the lanes as [`Slots`], one slot for each 64 lanes.
//!
//! During a block no thread writes the shared codes. Each thread has its own copy of the last ones ([`Follower`]), and
//! appends the codes of the values that the producer publishes. It computes them from the values. So memory holds
//! several copies of the codes, computed independently, and the solver compares them.
//!
//! Invariant: the lanes of a slot are a function of the plan and of values before them, so neither the number of
//! threads nor their order changes a value.

use super::codes::Codes;
use super::lookups::far_lanes::{LaneCodes, SharedLanes};
use super::lookups::plan::{LEAST_MIDDLE, LookupPlan, RECENT};
use super::slots::{Claim, Closing, SLOT, Slots, lock};
use super::window::Window;
use crate::error::Result;
use crate::kernel::{BitPlanes, Kernel, LANES};
use crate::theory::nimber::index;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Maximum number of values in a block: a multiple of the lanes of a kernel and of the groups of the witness search.
/// The threads meet after each block, so a smaller number costs time. `sequence` of `cargo bench` (benches/sequence.rs)
/// measures its effect.
pub(super) const BLOCK: usize = 1 << 18;

/// Number of slots that must be ready before a thread that sleeps is woken, or fewer, if no more can be ready. A thread
/// needs longer to wake than to evaluate a slot, so the threads that are awake usually come first.
const WAKE_AT: usize = 4;

/// Number of slots that must be ready besides a claimed one before a thread that sleeps is woken, where far lookups
/// begin at this offset. The slot that the producer works on and the claimed slot are never among them.
fn wake_at(least_far: usize) -> usize {
    WAKE_AT.min((least_far / SLOT).saturating_sub(2))
}

/// Minimum number of used [`SharedLanes`] that the producer gives back in one call. Other threads use the same mutex
/// all the time, so each call costs the producer a cache miss.
const RETURNED: usize = 16;

/// The pipeline of the candidates of one block.
pub(super) struct Pipeline<'a> {
    /// The codes before the block.
    codes: &'a Codes,
    /// The values of the block that are published.
    values: &'a BlockValues,
    kernel: Kernel,
    slots: Slots<SharedLanes>,
    /// The plan of the next lanes; `None` before the producer begins.
    plan: Mutex<Option<Arc<LookupPlan>>>,
    /// Lanes to be used again: to allocate new ones takes longer than to evaluate them.
    spare: Mutex<Vec<SharedLanes>>,
}

/// Memory for the values of a block, which the producer writes while other threads read those that are published. Each
/// word holds four values.
pub(super) struct BlockValues(Box<[AtomicU64]>);

/// Number of values in a word of [`BlockValues`].
const WORD: usize = 4;

impl Default for BlockValues {
    /// Memory for [`BLOCK`] values from any position on. The first has an index below [`LANES`].
    fn default() -> BlockValues {
        BlockValues((0..(BLOCK + LANES) / WORD).map(|_| AtomicU64::new(0)).collect())
    }
}

impl BlockValues {
    /// Writes `values` from index `first` on. Only one thread may write.
    fn write(&self, first: usize, values: &[u16]) {
        let in_first_word = (first.next_multiple_of(WORD) - first).min(values.len());
        let (head, rest) = values.split_at(in_first_word);
        let (words, tail) = rest.as_chunks::<WORD>();
        self.write_in_word(first, head);
        let first_word = (first + head.len()) / WORD;
        for (place, &word) in self.0[first_word..][..words.len()].iter().zip(words) {
            place.store(word_of(word), Ordering::Relaxed);
        }
        self.write_in_word(first + values.len() - tail.len(), tail);
    }

    /// Writes less than a word, and keeps the other values of that word.
    fn write_in_word(&self, first: usize, values: &[u16]) {
        if !values.is_empty() {
            let place = &self.0[first / WORD];
            let mut word = values_of(place.load(Ordering::Relaxed));
            word[first % WORD..][..values.len()].copy_from_slice(values);
            place.store(word_of(word), Ordering::Relaxed);
        }
    }

    /// Reads the values at these indices, with `memory` as memory for them.
    fn read<'m>(&self, range: Range<usize>, memory: &'m mut Vec<u16>) -> &'m [u16] {
        let words = &self.0[range.start / WORD..range.end.div_ceil(WORD)];
        memory.clear();
        memory.extend(words.iter().flat_map(|word| values_of(word.load(Ordering::Relaxed))));
        &memory[range.start % WORD..][..range.len()]
    }
}

/// A word that holds these values.
fn word_of(values: [u16; WORD]) -> u64 {
    let [[a, b], [c, d], [e, f], [g, h]] = values.map(u16::to_ne_bytes);
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

/// The values of a word.
fn values_of(word: u64) -> [u16; WORD] {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    [[a, b], [c, d], [e, f], [g, h]].map(u16::from_ne_bytes)
}

/// A thread that evaluates and revises lanes: its copy of the last codes, up to the last published value that it has
/// read.
#[derive(Default)]
pub(super) struct Follower {
    codes: Option<Codes>,
    /// Memory for the values that it reads at once.
    values: Vec<u16>,
    /// Memory for the marks of the lanes that it evaluates.
    planes: BitPlanes,
    /// The last plan seen, and its number.
    plan: Option<Arc<LookupPlan>>,
    plans: usize,
}

impl<'a> Pipeline<'a> {
    /// A pipeline for the positions from the end of `codes` up to `end`, at most [`BLOCK`]. `values` is memory for
    /// their values.
    pub(super) fn new(codes: &'a Codes, values: &'a BlockValues, kernel: Kernel, end: u64) -> Pipeline<'a> {
        let first = codes.end().next_multiple_of(LANES as u64);
        let count = index(end.saturating_sub(first).min(BLOCK as u64)) / LANES;
        Pipeline {
            codes,
            values,
            kernel,
            slots: Slots::new(first, count, codes.end()),
            plan: Mutex::new(None),
            spare: Mutex::new(Vec::new()),
        }
    }

    // ---- The producer.

    /// Announces the plan of the next lanes.
    pub(super) fn plan(&self, plan: &Arc<LookupPlan>) {
        *lock(&self.plan) = Some(Arc::clone(plan));
        self.slots.announce();
    }

    /// One past the last position whose value is published.
    pub(super) fn known(&self) -> u64 {
        self.slots.known()
    }

    /// Whether more values are wanted.
    pub(super) fn is_open(&self) -> bool {
        self.slots.is_open()
    }

    /// Publishes the next values, and returns the memory of used lanes. Returns false when no more are wanted.
    pub(super) fn publish(&self, values: &[u16], used: &mut Vec<SharedLanes>) -> bool {
        if used.len() >= RETURNED
            && let Ok(mut spare) = self.spare.try_lock()
        {
            spare.append(used);
        }
        self.values.write(self.place(self.slots.known()), values);
        self.slots.publish(values.len())
    }

    /// The index of position n in the values of the block. It is a multiple of [`LANES`] where n is.
    fn place(&self, n: u64) -> usize {
        index(n - (self.codes.end() - self.codes.end() % LANES as u64))
    }

    /// The far lanes from `n` on, if another thread has evaluated or is evaluating them, perhaps under an older plan
    /// ([`FarLanes::is_of`](super::lookups::far_lanes::FarLanes)). `None` if no thread has claimed them, or if it
    /// failed; the producer then evaluates them. While it waits, the producer evaluates other lanes under `plan` with
    /// its own `codes`, and with `planes` as memory for the marks.
    pub(super) fn take(
        &self,
        n: u64,
        plan: &Arc<LookupPlan>,
        codes: &Window<u8>,
        planes: &mut BitPlanes,
    ) -> Option<SharedLanes> {
        self.slots.take(n, || {
            let Some(claim) = self.claim(plan) else { return false };
            let codes = LaneCodes::of(codes.items(), codes.at(claim.position()));
            self.evaluate_claim(claim, plan, codes, planes);
            true
        })
    }

    /// The far lanes from `n` on, if another thread has evaluated them, under whatever plan.
    pub(super) fn take_ready(&self, n: u64) -> Option<SharedLanes> {
        self.slots.take_ready(n)
    }

    /// Lets the processor begin to load what [`Pipeline::take_ready`] reads first.
    pub(super) fn prefetch(&self, n: u64) {
        self.slots.prefetch(n);
    }

    /// Wakes the threads without work.
    pub(super) fn wake(&self) {
        self.slots.wake();
    }

    /// A guard that closes the pipeline on drop.
    pub(super) fn closing(&self) -> Closing<'_, SharedLanes> {
        Closing(&self.slots)
    }

    /// Ends the pipeline: no more lanes are wanted, or no more values follow.
    pub(super) fn close(&self) {
        self.slots.close();
    }

    /// For benchmarks: evaluates all lanes under a plan, with codes that hold all values before the last slot.
    pub(super) fn fill(&self, plan: &Arc<LookupPlan>, codes: &Window<u8>) {
        let mut planes = BitPlanes::default();
        for number in 0..self.slots.count() {
            let codes = LaneCodes::of(codes.items(), codes.at(self.slots.position(number)));
            self.evaluate_claim(self.slots.claim_of(number), plan, codes, &mut planes);
        }
    }

    /// For benchmarks: revises all lanes, with codes that hold all values before the last slot.
    pub(super) fn revise_all(&self, codes: &Window<u8>) {
        while let Some((n, mut lanes)) = self.slots.revise(|_, _| true) {
            let codes = LaneCodes::of(codes.items(), codes.at(n));
            lanes.iter_mut().for_each(|lanes| lanes.revise(self.kernel, codes));
        }
    }

    // ---- The other threads.

    /// Revises lanes that the producer takes soon, or evaluates the next lanes that can be evaluated. Returns false if
    /// there are none now.
    pub(super) fn evaluate(&self, follower: &mut Follower) -> bool {
        self.revise(follower) || self.evaluate_far(follower)
    }

    /// Revises the next lanes for which all values that the middle lookups read are known. Returns false if there are
    /// none now.
    fn revise(&self, follower: &mut Follower) -> bool {
        // A thread has a copy of the codes once it has evaluated lanes.
        let Some(codes) = &mut follower.codes else { return false };
        if follower.plan.as_ref().is_some_and(|plan| plan.middle.list().is_empty()) {
            return false;
        }
        let is_known = |n: u64, known: u64| n + LANES as u64 <= known + LEAST_MIDDLE as u64;
        let Some((n, mut lanes)) = self.slots.revise(is_known) else { return false };
        if let Some(lanes) = &mut *lanes {
            self.read(codes, &mut follower.values);
            if lanes.can_revise(n, codes, self.codes) {
                lanes.revise(self.kernel, self.lane_codes(n, codes));
            }
        }
        true
    }

    /// Appends the codes of the values that were published since the last call.
    fn read(&self, codes: &mut Codes, values: &mut Vec<u16>) {
        let [first, known] = [codes.end(), self.slots.known()].map(|n| self.place(n));
        codes.push(self.values.read(first..known, values));
    }

    /// Evaluates the next lanes that can be evaluated. Returns false if there are none now.
    fn evaluate_far(&self, follower: &mut Follower) -> bool {
        let plans = self.slots.announced();
        if plans != follower.plans {
            (follower.plan, follower.plans) = (lock(&self.plan).clone(), plans);
        }
        let Some(plan) = &follower.plan else { return false };
        let Some(claim) = self.claim(plan) else { return false };
        let n = claim.position();
        let codes = follower.codes.get_or_insert_with(|| self.codes.last(plan.reach_of_recent(), BLOCK));
        self.read(codes, &mut follower.values);
        if plan.can_read(n, codes, self.codes) {
            self.evaluate_claim(claim, plan, self.lane_codes(n, codes), &mut follower.planes);
        }
        // Otherwise the claim delivers nothing, and the producer evaluates the lanes.
        true
    }

    /// Claims the first slot that can be evaluated now under a plan.
    fn claim(&self, plan: &LookupPlan) -> Option<Claim<'_, SharedLanes>> {
        let is_ready = |n: u64, known: u64| {
            let end = n + LANES as u64;
            plan.shares_far() && end <= known + plan.least_far as u64 && plan.holds(n, end)
        };
        self.slots.claim(wake_at(plan.least_far), is_ready)
    }

    /// What the lookups of the lanes from `n` on read: `recent`, a copy of the last codes, and the codes before the
    /// block.
    fn lane_codes<'c>(&'c self, n: u64, recent: &'c Codes) -> LaneCodes<'c> {
        LaneCodes::of_two((recent.items(), recent.at(n)), (self.codes.items(), self.codes.at(n)))
    }

    /// Evaluates the far lookups of a plan.
    fn evaluate_claim(
        &self,
        mut claim: Claim<'_, SharedLanes>,
        plan: &Arc<LookupPlan>,
        codes: LaneCodes<'_>,
        planes: &mut BitPlanes,
    ) {
        let spare = lock(&self.spare).pop();
        let mut lanes = spare.unwrap_or_default();
        lanes.evaluate(plan, self.kernel, codes, planes);
        claim.item = Some(lanes);
    }

    /// A number that changes when there may be more lanes to evaluate.
    pub(super) fn changes(&self) -> u64 {
        self.slots.changes()
    }

    /// Waits until there may be more lanes to evaluate than when [`Pipeline::changes`] was `seen`. Returns false when
    /// the pipeline is closed.
    pub(super) fn wait(&self, seen: u64) -> bool {
        // Without far lookups there is nothing to watch for.
        let shares_far = lock(&self.plan).as_ref().is_none_or(|plan| plan.shares_far());
        self.slots.wait(seen, shares_far)
    }
}

const _: () = assert!(LANES == SLOT);
// A lookup with an offset above RECENT, from anywhere in a block, must read codes before the block.
const _: () = assert!(BLOCK + LANES <= RECENT);

impl Follower {
    /// Checks that the codes of this thread are those of `codes`, which ends with the block.
    ///
    /// # Errors
    /// [`Error::Flipped`](crate::error::Error::Flipped) when they differ: lanes evaluated with them may be wrong.
    pub(super) fn agrees_with(&self, codes: &Codes) -> Result<()> {
        self.codes.as_ref().map_or(Ok(()), |copy| codes.agree_with_copy(copy))
    }
}

#[cfg(test)]
mod tests;

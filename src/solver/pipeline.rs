//! The pipeline of one block: every thread evaluates far lookups, one thread the others.
//!
//! ```text
//! positions   ── known ──┐ lead of the far lookups, at most AHEAD
//!                        ▼◄────────────────────────────────────────────►
//! Producer               near and late lookups: the candidates, in order
//! other threads          far lookups of the next lanes, in any order       ─► FarLanes
//! ```
//!
//! The candidates are a serial chain, so the thread that computes them (the *producer*) must do nothing that another
//! thread could do. A far lookup has an offset of at least [`AHEAD`]. So the far lookups of 64 lanes need only values
//! that are known while the producer is still hundreds of positions before these lanes. Any other thread evaluates them,
//! completely: it marks, checks and hands over the few candidates that are left ([`FarLanes`]).
//! The producer holds those against the other lookups, which are few.
//!
//! The threads share a list of *slots*, one for each 64 lanes. A thread claims the first slot that no thread has claimed
//! and whose values are known. The producer claims the slot that it needs next, if no thread has; and while another
//! thread is evaluating that slot, it claims others. So it waits only when there is nothing else to do, and one thread can
//! do all the work.
//!
//! During a block no thread writes the shared codes. Each thread has its own copy of the last ones ([`Follower`]), and
//! appends the codes of the pieces that the producer publishes. It computes them from the values. So memory holds several
//! copies of the codes, computed independently, and the solver compares them.
//!
//! Invariants: the lanes of a slot are a function of the plan and of values before them, so neither the number of threads
//! nor their order changes a value. No thread waits for a thread that waits: the producer waits only for a claimed slot,
//! and the thread that claimed it waits for nothing.

use super::block::BLOCK;
use super::codes::Codes;
use super::lookups::plan::{AHEAD, FarLanes, LookupPlan};
use super::window::Window;
use crate::error::Result;
use crate::kernel::{Kernel, LANES};
use crate::theory::nimber::index;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Number of values that the producer publishes at once. With more of them the other threads learn of values later, and
/// with fewer the producer spends more time on publishing.
pub(super) const PUBLISHED: usize = 256;

/// Number of looks at a slot before the producer sleeps: some microseconds.
const SPINS: usize = 400;

/// Number of looks at the pipeline before a thread without work sleeps: the time of several pieces.
const WATCHES: usize = 2000;

/// Maximum time of a sleep. A wake-up that came too early costs at most this time.
const NAP: Duration = Duration::from_micros(200);

/// The pipeline of the candidates of one block.
pub(super) struct Pipeline<'a> {
    /// The codes before the block.
    codes: &'a Codes,
    kernel: Kernel,
    /// The first position of the first slot.
    first: u64,
    slots: Vec<Slot>,
    state: Mutex<State>,
    /// Number of pieces published, plus one when the pipeline is closed: changes when `state` offers more.
    changes: AtomicUsize,
    /// Signalled when a slot becomes claimable while threads sleep, and when the pipeline is closed.
    offered: Condvar,
    /// Whether the producer sleeps, and the signal that wakes it.
    producer_sleeps: AtomicBool,
    delivered: Condvar,
}

/// The far lanes of 64 consecutive positions.
#[derive(Default)]
struct Slot {
    /// Whether the thread that claimed the slot has finished.
    is_ready: AtomicBool,
    /// `None` if it delivered nothing.
    lanes: Mutex<Option<Box<FarLanes>>>,
}

/// What the threads share.
struct State {
    /// The plan of the next lanes; `None` before the producer begins.
    plan: Option<Arc<LookupPlan>>,
    /// The values that the producer has published.
    pieces: Vec<Arc<[u16]>>,
    /// One past the last of their positions.
    known: u64,
    /// The first slot that no thread has claimed; all slots before it are claimed, or passed.
    next: usize,
    /// Memory for lanes: fresh memory would cost more time than the work.
    spare: Vec<Box<FarLanes>>,
    /// Number of threads that sleep.
    sleepers: usize,
    /// Whether a thread watches for changes; the others sleep.
    has_watcher: bool,
    /// Whether no more lanes are wanted.
    is_closed: bool,
}

/// A thread that evaluates far lookups: its copy of the last codes, and of those of the pieces that it has seen.
#[derive(Default)]
pub(super) struct Follower {
    codes: Option<Codes>,
    /// Number of pieces seen.
    pieces: usize,
}

/// A claimed slot. Delivers on drop, so that the producer does not wait for a thread that has failed.
struct Claim<'p, 'a> {
    pipeline: &'p Pipeline<'a>,
    slot: usize,
    plan: Arc<LookupPlan>,
    lanes: Option<Box<FarLanes>>,
}

impl<'a> Pipeline<'a> {
    /// A pipeline for the positions from the end of `codes` up to `end`.
    pub(super) fn new(codes: &'a Codes, kernel: Kernel, end: u64) -> Pipeline<'a> {
        let first = codes.end().next_multiple_of(LANES as u64);
        let slots = index(end.saturating_sub(first).min(BLOCK as u64)) / LANES;
        let state = State {
            plan: None,
            pieces: Vec::new(),
            known: codes.end(),
            next: 0,
            spare: Vec::new(),
            sleepers: 0,
            has_watcher: false,
            is_closed: false,
        };
        Pipeline {
            codes,
            kernel,
            first,
            slots: (0..slots).map(|_| Slot::default()).collect(),
            state: Mutex::new(state),
            changes: AtomicUsize::new(0),
            offered: Condvar::new(),
            producer_sleeps: AtomicBool::new(false),
            delivered: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked left the state between two statements that may be separated.
        self.state.lock().unwrap_or_else(|error| error.into_inner())
    }

    /// The slot of the lanes from `n` on, if there is one.
    fn slot_of(&self, n: u64) -> Option<usize> {
        let distance = n.checked_sub(self.first).filter(|distance| distance.is_multiple_of(LANES as u64))?;
        Some(index(distance) / LANES).filter(|&slot| slot < self.slots.len())
    }

    /// The first position of a slot.
    fn position(&self, slot: usize) -> u64 {
        self.first + (slot * LANES) as u64
    }

    // ---- The producer.

    /// Announces the plan of the next lanes.
    pub(super) fn plan(&self, plan: &Arc<LookupPlan>) {
        self.lock().plan = Some(Arc::clone(plan));
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Publishes the next values, and returns the memory of used lanes. Returns false when no more are wanted.
    pub(super) fn publish(&self, values: &[u16], used: &mut Vec<Box<FarLanes>>) -> bool {
        let piece = Arc::from(values);
        let mut state = self.lock();
        state.pieces.push(piece);
        state.known += values.len() as u64;
        state.spare.append(used);
        let is_open = !state.is_closed;
        drop(state);
        self.changes.fetch_add(1, Ordering::Release);
        is_open
    }

    /// The far lanes from `n` on under this plan, if another thread has evaluated or is evaluating them. Otherwise no
    /// other thread will. While it waits, the producer evaluates other lanes with its own `codes`.
    pub(super) fn take(&self, n: u64, plan: &Arc<LookupPlan>, codes: &Window<u8>) -> Option<Box<FarLanes>> {
        let number = self.slot_of(n)?;
        let slot = &self.slots[number];
        if !slot.is_ready.load(Ordering::Acquire) {
            let mut state = self.lock();
            if state.next <= number {
                state.next = number + 1;
                return None;
            }
            drop(state);
            while !slot.is_ready.load(Ordering::Acquire) {
                let Some((mut claim, mut lanes, _)) = self.claim(usize::MAX) else {
                    self.wait_for(slot);
                    break;
                };
                let n = self.position(claim.slot);
                let read = (codes.items(), codes.at(n));
                lanes.evaluate(&claim.plan, self.kernel, read, read);
                claim.lanes = Some(lanes);
            }
        }
        let lanes = slot.lanes.lock().unwrap_or_else(|error| error.into_inner()).take();
        lanes.filter(|lanes| lanes.is_of(plan))
    }

    /// Waits until the thread that claimed the slot has finished.
    fn wait_for(&self, slot: &Slot) {
        let is_ready = || slot.is_ready.load(Ordering::Acquire);
        for _ in 0..SPINS {
            if is_ready() {
                return;
            }
            spin_loop();
        }
        let mut state = self.lock();
        self.producer_sleeps.store(true, Ordering::SeqCst);
        while !is_ready() {
            state = self.delivered.wait_timeout(state, NAP).unwrap_or_else(|error| error.into_inner()).0;
        }
        self.producer_sleeps.store(false, Ordering::SeqCst);
    }

    /// Ends the pipeline: no more lanes are wanted, or no more values follow.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changes.fetch_add(1, Ordering::Release);
        self.offered.notify_all();
    }

    /// For benchmarks: evaluates all lanes under a plan, with codes that hold all values before the last slot.
    pub(super) fn fill(&self, plan: &Arc<LookupPlan>, codes: &Window<u8>) {
        for slot in 0..self.slots.len() {
            let n = self.position(slot);
            let mut lanes = Box::<FarLanes>::default();
            let read = (codes.items(), codes.at(n));
            lanes.evaluate(plan, self.kernel, read, read);
            drop(Claim { pipeline: self, slot, plan: Arc::clone(plan), lanes: Some(lanes) });
        }
    }

    // ---- The other threads.

    /// Evaluates the next lanes that can be evaluated. Returns false if there are none now.
    pub(super) fn evaluate(&self, follower: &mut Follower) -> bool {
        let Some((mut claim, mut lanes, pieces)) = self.claim(follower.pieces) else { return false };
        let n = self.position(claim.slot);
        let copied = || self.codes.last(claim.plan.reach_of_recent(), BLOCK);
        let codes = follower.codes.get_or_insert_with(copied);
        pieces.iter().for_each(|piece| codes.push(piece));
        follower.pieces += pieces.len();
        if claim.plan.can_read(n, codes, self.codes) {
            let [recent, old] = [codes, self.codes].map(|codes| (codes.items(), codes.at(n)));
            lanes.evaluate(&claim.plan, self.kernel, recent, old);
            claim.lanes = Some(lanes);
        }
        true
    }

    /// Claims the first slot that can be evaluated now. Also returns memory for its lanes, and the pieces after the
    /// first `seen` ones.
    fn claim(&self, seen: usize) -> Option<(Claim<'_, 'a>, Box<FarLanes>, Vec<Arc<[u16]>>)> {
        let mut state = self.lock();
        if state.is_closed {
            return None;
        }
        let plan = state.plan.as_ref().filter(|plan| plan.has_far())?;
        // The producer has passed the slots before the end of the known values.
        let passed = index(state.known.saturating_sub(self.first)).div_ceil(LANES);
        let slot = state.next.max(passed);
        let is_ready = |slot: usize| {
            let n = self.position(slot);
            let end = n + LANES as u64;
            slot < self.slots.len() && end <= state.known + AHEAD as u64 && plan.holds(n, end)
        };
        if !is_ready(slot) {
            return None;
        }
        if state.sleepers > 0 && is_ready(slot + 1) {
            self.offered.notify_one();
        }
        let plan = Arc::clone(plan);
        let pieces = state.pieces.get(seen..).unwrap_or_default().to_vec();
        state.next = slot + 1;
        let lanes = state.spare.pop();
        drop(state);
        Some((Claim { pipeline: self, slot, plan, lanes: None }, lanes.unwrap_or_default(), pieces))
    }

    /// A number that changes when there may be more lanes to evaluate.
    pub(super) fn changes(&self) -> usize {
        self.changes.load(Ordering::Acquire)
    }

    /// Waits until there may be more lanes to evaluate than when [`Pipeline::changes`] was `seen`. Returns false when the
    /// pipeline is closed.
    pub(super) fn wait(&self, seen: usize) -> bool {
        let mut state = self.lock();
        if state.is_closed {
            return false;
        }
        let watches = !state.has_watcher;
        if watches {
            state.has_watcher = true;
            drop(state);
            let has_changed = (0..WATCHES).any(|_| {
                spin_loop();
                self.changes() != seen
            });
            state = self.lock();
            state.has_watcher = false;
            if has_changed || state.is_closed {
                return !state.is_closed;
            }
        }
        state.sleepers += 1;
        state = self.offered.wait_timeout(state, NAP).unwrap_or_else(|error| error.into_inner()).0;
        state.sleepers -= 1;
        !state.is_closed
    }
}

impl Drop for Claim<'_, '_> {
    fn drop(&mut self) {
        let slot = &self.pipeline.slots[self.slot];
        *slot.lanes.lock().unwrap_or_else(|error| error.into_inner()) = self.lanes.take();
        slot.is_ready.store(true, Ordering::SeqCst);
        if self.pipeline.producer_sleeps.load(Ordering::SeqCst) {
            let _state = self.pipeline.lock();
            self.pipeline.delivered.notify_one();
        }
    }
}

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

//! The pipeline of one block: every thread evaluates far lookups, one thread the others.
//!
//! ```text
//! positions   ── known ──┐ lead of the far lookups
//!                        ▼◄────────────────────────────────────────────►
//! Producer               near and late lookups: the candidates, in order
//! other threads          far lookups of the next lanes, in any order       ─► FarLanes
//! ```
//!
//! The candidates are a serial chain, so the thread that computes them (the *producer*) must do nothing that another
//! thread could do. A far lookup has an offset of at least [`LookupPlan::least_far`]. So the far lookups of 64 lanes need
//! only values that are known while the producer is still hundreds of positions before these lanes. Any other thread
//! evaluates them completely: it marks, checks, and hands over the few candidates that are left
//! ([`FarLanes`](super::lookups::plan::FarLanes)). The producer checks those against the other lookups, which are few.
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
//! nor their order changes a value. The waits form no cycle: threads without work wait for the producer, the producer waits
//! only for a claimed slot, and the thread that claimed it does not wait.

use super::block::BLOCK;
use super::codes::Codes;
use super::lookups::plan::{LookupPlan, SharedLanes};
use super::window::Window;
use crate::error::Result;
use crate::kernel::{Kernel, LANES};
use crate::theory::nimber::index;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Number of pieces that the producer publishes in the lead of the far lookups. With fewer of them the other threads learn
/// of values later, and with more the producer spends more time on publishing.
pub(super) const PIECES_AHEAD: usize = 4;

/// Number of polls of a slot before the producer sleeps: some microseconds.
const SPINS: usize = 400;

/// Number of polls of the pipeline before a thread without work sleeps: the time of several pieces.
const WATCHES: usize = 2000;

/// Maximum time of a sleep where one thread sleeps; where k threads sleep, k times as long. A wake-up that came too early
/// costs one thread at most that time.
const NAP: Duration = Duration::from_micros(200);

/// The pipeline of the candidates of one block.
pub(super) struct Pipeline<'a> {
    /// The codes before the block.
    codes: &'a Codes,
    kernel: Kernel,
    /// The first position of the first slot.
    first: u64,
    slots: Vec<Slot>,
    /// The first slot that no thread has claimed; all slots before it are claimed, or passed.
    next: AtomicUsize,
    /// The values that the producer has published: the first [`Pipeline::published`] items.
    pieces: Vec<OnceLock<Box<[u16]>>>,
    published: AtomicUsize,
    /// One past the last of their positions.
    known: AtomicU64,
    /// The plan of the next lanes, and how often it has changed; `None` before the producer begins.
    plan: Mutex<Option<Arc<LookupPlan>>>,
    plans: AtomicUsize,
    /// Memory for lanes: fresh memory would cost more time than the work.
    spare: Mutex<Vec<SharedLanes>>,
    /// Whether no more lanes are wanted.
    is_closed: AtomicBool,
    idle: Mutex<Idle>,
    /// Signalled when a slot becomes claimable while threads sleep, and when the pipeline is closed.
    offered: Condvar,
    /// Number of threads that sleep.
    sleepers: AtomicUsize,
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
    lanes: Mutex<Option<SharedLanes>>,
}

/// The threads that have nothing to do.
#[derive(Default)]
struct Idle {
    /// Whether a thread watches for changes; the others sleep.
    has_watcher: bool,
}

/// A thread that evaluates far lookups: its copy of the last codes, and of those of the pieces that it has seen.
#[derive(Default)]
pub(super) struct Follower {
    codes: Option<Codes>,
    /// Number of pieces seen.
    pieces: usize,
    /// The last plan seen, and its number.
    plan: Option<Arc<LookupPlan>>,
    plans: usize,
}

/// A claimed slot. Delivers on drop, so that the producer does not wait for a thread that has failed.
struct Claim<'p, 'a> {
    pipeline: &'p Pipeline<'a>,
    slot: usize,
    /// The lanes, once they are evaluated.
    lanes: Option<SharedLanes>,
}

/// Locks a mutex, also after a panic: whatever is done under these locks leaves the data whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Pipeline<'a> {
    /// A pipeline for the positions from the end of `codes` up to `end`.
    pub(super) fn new(codes: &'a Codes, kernel: Kernel, end: u64) -> Pipeline<'a> {
        let first = codes.end().next_multiple_of(LANES as u64);
        let slots = index(end.saturating_sub(first).min(BLOCK as u64)) / LANES;
        Pipeline {
            codes,
            kernel,
            first,
            slots: (0..slots).map(|_| Slot::default()).collect(),
            next: AtomicUsize::new(0),
            // Every piece but the last ends at a multiple of LANES: one may end before the first slot, and one after the
            // last.
            pieces: (0..slots + 2).map(|_| OnceLock::new()).collect(),
            published: AtomicUsize::new(0),
            known: AtomicU64::new(codes.end()),
            plan: Mutex::new(None),
            plans: AtomicUsize::new(0),
            spare: Mutex::new(Vec::new()),
            is_closed: AtomicBool::new(false),
            idle: Mutex::new(Idle::default()),
            offered: Condvar::new(),
            sleepers: AtomicUsize::new(0),
            producer_sleeps: AtomicBool::new(false),
            delivered: Condvar::new(),
        }
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
        *lock(&self.plan) = Some(Arc::clone(plan));
        self.plans.fetch_add(1, Ordering::Release);
    }

    /// Publishes the next values, and returns the memory of used lanes. Returns false when no more are wanted.
    pub(super) fn publish(&self, values: &[u16], used: &mut Vec<SharedLanes>) -> bool {
        // No block has more pieces than this. The producer itself would evaluate all lanes after values beyond them.
        if let Some(piece) = self.pieces.get(self.published.load(Ordering::Relaxed)) {
            let _ = piece.set(values.into());
            self.published.fetch_add(1, Ordering::Relaxed);
            self.known.fetch_add(values.len() as u64, Ordering::Release);
        }
        if let Ok(mut spare) = self.spare.try_lock() {
            spare.append(used);
        }
        !self.is_closed.load(Ordering::Relaxed)
    }

    /// The far lanes from `n` on under this plan, if another thread has evaluated or is evaluating them. `None` if no thread
    /// has claimed them, if it had another plan, or if it failed; the producer then evaluates them. While it waits, the
    /// producer evaluates other lanes with its own `codes`.
    pub(super) fn take(&self, n: u64, plan: &Arc<LookupPlan>, codes: &Window<u8>) -> Option<SharedLanes> {
        let number = self.slot_of(n)?;
        let slot = &self.slots[number];
        if !slot.is_ready.load(Ordering::Acquire) {
            if self.next.fetch_max(number + 1, Ordering::Relaxed) <= number {
                return None;
            }
            while !slot.is_ready.load(Ordering::Acquire) {
                let Some(mut claim) = self.claim(plan) else {
                    self.wait_for(slot);
                    break;
                };
                let read = (codes.items(), codes.at(self.position(claim.slot)));
                claim.evaluate(plan, read, read);
            }
        }
        lock(&slot.lanes).take().filter(|lanes| lanes.is_of(plan))
    }

    /// Waits until the thread that claimed the slot has finished.
    fn wait_for(&self, slot: &Slot) {
        let is_ready = || slot.is_ready.load(Ordering::SeqCst);
        for _ in 0..SPINS {
            if is_ready() {
                return;
            }
            spin_loop();
        }
        let mut idle = lock(&self.idle);
        self.producer_sleeps.store(true, Ordering::SeqCst);
        while !is_ready() {
            idle = self.delivered.wait_timeout(idle, NAP).unwrap_or_else(PoisonError::into_inner).0;
        }
        self.producer_sleeps.store(false, Ordering::SeqCst);
    }

    /// Ends the pipeline: no more lanes are wanted, or no more values follow.
    pub(super) fn close(&self) {
        let idle = lock(&self.idle);
        self.is_closed.store(true, Ordering::SeqCst);
        drop(idle);
        self.offered.notify_all();
    }

    /// For benchmarks: evaluates all lanes under a plan, with codes that hold all values before the last slot.
    pub(super) fn fill(&self, plan: &Arc<LookupPlan>, codes: &Window<u8>) {
        for slot in 0..self.slots.len() {
            let read = (codes.items(), codes.at(self.position(slot)));
            Claim { pipeline: self, slot, lanes: None }.evaluate(plan, read, read);
        }
    }

    // ---- The other threads.

    /// Evaluates the next lanes that can be evaluated. Returns false if there are none now.
    pub(super) fn evaluate(&self, follower: &mut Follower) -> bool {
        let plans = self.plans.load(Ordering::Acquire);
        if plans != follower.plans {
            (follower.plan, follower.plans) = (lock(&self.plan).clone(), plans);
        }
        let Some(plan) = &follower.plan else { return false };
        let Some(mut claim) = self.claim(plan) else { return false };
        let n = self.position(claim.slot);
        let codes = follower.codes.get_or_insert_with(|| self.codes.last(plan.reach_of_recent(), BLOCK));
        // `claim` has read `known`, so all pieces up to it are set; later ones may be.
        while let Some(piece) = self.pieces.get(follower.pieces).and_then(OnceLock::get) {
            codes.push(piece);
            follower.pieces += 1;
        }
        if plan.can_read(n, codes, self.codes) {
            let [recent, old] = [codes, self.codes].map(|codes| (codes.items(), codes.at(n)));
            claim.evaluate(plan, recent, old);
        }
        true
    }

    /// Claims the first slot that can be evaluated now under a plan.
    fn claim(&self, plan: &LookupPlan) -> Option<Claim<'_, 'a>> {
        if !plan.has_far() {
            return None;
        }
        let mut next = self.next.load(Ordering::Relaxed);
        loop {
            let known = self.known.load(Ordering::Acquire);
            // The producer has passed the slots before the end of the known values.
            let passed = index(known.saturating_sub(self.first)).div_ceil(LANES);
            let slot = next.max(passed);
            let is_ready = |slot: usize| {
                let n = self.position(slot);
                let end = n + LANES as u64;
                slot < self.slots.len() && end <= known + plan.least_far as u64 && plan.holds(n, end)
            };
            if !is_ready(slot) || self.is_closed.load(Ordering::Relaxed) {
                return None;
            }
            match self.next.compare_exchange_weak(next, slot + 1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    if self.sleepers.load(Ordering::Relaxed) > 0 && is_ready(slot + 1) {
                        self.offered.notify_one();
                    }
                    return Some(Claim { pipeline: self, slot, lanes: None });
                }
                Err(now) => next = now,
            }
        }
    }

    /// A number that changes when there may be more lanes to evaluate.
    pub(super) fn changes(&self) -> usize {
        self.plans.load(Ordering::Relaxed) + self.published.load(Ordering::Relaxed)
    }

    /// Waits until there may be more lanes to evaluate than when [`Pipeline::changes`] was `seen`. Returns false when the
    /// pipeline is closed.
    pub(super) fn wait(&self, seen: usize) -> bool {
        let is_open = || !self.is_closed.load(Ordering::SeqCst);
        let mut idle = lock(&self.idle);
        if !is_open() {
            return false;
        }
        // Without far lookups there is nothing to watch for.
        let has_far = lock(&self.plan).as_ref().is_none_or(|plan| plan.has_far());
        if has_far && !idle.has_watcher {
            idle.has_watcher = true;
            drop(idle);
            let has_changed = (0..WATCHES).any(|_| {
                spin_loop();
                self.changes() != seen || !is_open()
            });
            idle = lock(&self.idle);
            idle.has_watcher = false;
            if has_changed || !is_open() {
                return is_open();
            }
        }
        let sleepers = self.sleepers.fetch_add(1, Ordering::Relaxed) + 1;
        // Together, the threads that sleep wake as often as one.
        drop(
            self.offered
                .wait_timeout(idle, NAP.saturating_mul(u32::try_from(sleepers).unwrap_or(u32::MAX)))
                .unwrap_or_else(PoisonError::into_inner),
        );
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        is_open()
    }
}

impl Claim<'_, '_> {
    /// Evaluates the far lookups of a plan: `recent` and `old` are codes, with the index of the first lane.
    fn evaluate(&mut self, plan: &Arc<LookupPlan>, recent: (&[u8], usize), old: (&[u8], usize)) {
        let spare = lock(&self.pipeline.spare).pop();
        let mut lanes = spare.unwrap_or_default();
        lanes.evaluate(plan, self.pipeline.kernel, recent, old);
        self.lanes = Some(lanes);
    }
}

impl Drop for Claim<'_, '_> {
    fn drop(&mut self) {
        let slot = &self.pipeline.slots[self.slot];
        *lock(&slot.lanes) = self.lanes.take();
        slot.is_ready.store(true, Ordering::SeqCst);
        if self.pipeline.producer_sleeps.load(Ordering::SeqCst) {
            let _idle = lock(&self.pipeline.idle);
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

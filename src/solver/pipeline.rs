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
//! The threads share the lanes as [`Slots`], one slot for each 64 lanes.
//!
//! During a block no thread writes the shared codes. Each thread has its own copy of the last ones ([`Follower`]), and
//! appends the codes of the pieces that the producer publishes. It computes them from the values. So memory holds several
//! copies of the codes, computed independently, and the solver compares them.
//!
//! Invariant: the lanes of a slot are a function of the plan and of values before them, so neither the number of threads
//! nor their order changes a value.

use super::block::BLOCK;
use super::codes::Codes;
use super::lookups::plan::{LookupPlan, SharedLanes};
use super::slots::{Claim, Closing, SLOT, Slots, lock};
use super::window::Window;
use crate::error::Result;
use crate::kernel::{Kernel, LANES};
use crate::theory::nimber::index;
use std::sync::{Arc, Mutex};

/// Number of pieces that the producer publishes in the lead of the far lookups. With fewer of them the other threads learn
/// of values later, and with more the producer spends more time on publishing.
pub(super) const PIECES_AHEAD: usize = 4;

/// The pipeline of the candidates of one block.
pub(super) struct Pipeline<'a> {
    /// The codes before the block.
    codes: &'a Codes,
    kernel: Kernel,
    slots: Slots<SharedLanes, Box<[u16]>>,
    /// The plan of the next lanes; `None` before the producer begins.
    plan: Mutex<Option<Arc<LookupPlan>>>,
    /// Memory for lanes: fresh memory would cost more time than the work.
    spare: Mutex<Vec<SharedLanes>>,
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

impl<'a> Pipeline<'a> {
    /// A pipeline for the positions from the end of `codes` up to `end`.
    pub(super) fn new(codes: &'a Codes, kernel: Kernel, end: u64) -> Pipeline<'a> {
        let first = codes.end().next_multiple_of(LANES as u64);
        let count = index(end.saturating_sub(first).min(BLOCK as u64)) / LANES;
        Pipeline {
            codes,
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

    /// Publishes the next values, and returns the memory of used lanes. Returns false when no more are wanted.
    pub(super) fn publish(&self, values: &[u16], used: &mut Vec<SharedLanes>) -> bool {
        if let Ok(mut spare) = self.spare.try_lock() {
            spare.append(used);
        }
        self.slots.publish(values.into(), values.len())
    }

    /// The far lanes from `n` on under this plan, if another thread has evaluated or is evaluating them. `None` if no thread
    /// has claimed them, if it had another plan, or if it failed; the producer then evaluates them. While it waits, the
    /// producer evaluates other lanes with its own `codes`.
    pub(super) fn take(&self, n: u64, plan: &Arc<LookupPlan>, codes: &Window<u8>) -> Option<SharedLanes> {
        let lanes = self.slots.take(n, || {
            let Some(claim) = self.claim(plan) else { return false };
            let read = (codes.items(), codes.at(claim.position()));
            self.evaluate_claim(claim, plan, read, read);
            true
        });
        lanes.filter(|lanes| lanes.is_of(plan))
    }

    /// A guard that closes the pipeline on drop.
    pub(super) fn closing(&self) -> Closing<'_, SharedLanes, Box<[u16]>> {
        Closing(&self.slots)
    }

    /// Ends the pipeline: no more lanes are wanted, or no more values follow.
    pub(super) fn close(&self) {
        self.slots.close();
    }

    /// For benchmarks: evaluates all lanes under a plan, with codes that hold all values before the last slot.
    pub(super) fn fill(&self, plan: &Arc<LookupPlan>, codes: &Window<u8>) {
        for number in 0..self.slots.count() {
            let read = (codes.items(), codes.at(self.slots.position(number)));
            self.evaluate_claim(self.slots.claim_of(number), plan, read, read);
        }
    }

    // ---- The other threads.

    /// Evaluates the next lanes that can be evaluated. Returns false if there are none now.
    pub(super) fn evaluate(&self, follower: &mut Follower) -> bool {
        let plans = self.slots.announced();
        if plans != follower.plans {
            (follower.plan, follower.plans) = (lock(&self.plan).clone(), plans);
        }
        let Some(plan) = &follower.plan else { return false };
        let Some(claim) = self.claim(plan) else { return false };
        let n = claim.position();
        let codes = follower.codes.get_or_insert_with(|| self.codes.last(plan.reach_of_recent(), BLOCK));
        while let Some(piece) = self.slots.piece(follower.pieces) {
            codes.push(piece);
            follower.pieces += 1;
        }
        if plan.can_read(n, codes, self.codes) {
            let [recent, old] = [codes, self.codes].map(|codes| (codes.items(), codes.at(n)));
            self.evaluate_claim(claim, plan, recent, old);
        }
        true
    }

    /// Claims the first slot that can be evaluated now under a plan.
    fn claim(&self, plan: &LookupPlan) -> Option<Claim<'_, SharedLanes, Box<[u16]>>> {
        let is_ready = |n: u64, known: u64| {
            let end = n + LANES as u64;
            plan.has_far() && end <= known + plan.least_far as u64 && plan.holds(n, end)
        };
        self.slots.claim(is_ready)
    }

    /// Evaluates the far lookups of a plan: `recent` and `old` are codes, with the index of the first lane.
    fn evaluate_claim(
        &self,
        mut claim: Claim<'_, SharedLanes, Box<[u16]>>,
        plan: &Arc<LookupPlan>,
        recent: (&[u8], usize),
        old: (&[u8], usize),
    ) {
        let spare = lock(&self.spare).pop();
        let mut lanes = spare.unwrap_or_default();
        lanes.evaluate(plan, self.kernel, recent, old);
        claim.item = Some(lanes);
    }

    /// A number that changes when there may be more lanes to evaluate.
    pub(super) fn changes(&self) -> usize {
        self.slots.changes()
    }

    /// Waits until there may be more lanes to evaluate than when [`Pipeline::changes`] was `seen`. Returns false when the
    /// pipeline is closed.
    pub(super) fn wait(&self, seen: usize) -> bool {
        // Without far lookups there is nothing to watch for.
        let has_far = lock(&self.plan).as_ref().is_none_or(|plan| plan.has_far());
        self.slots.wait(seen, has_far)
    }
}

const _: () = assert!(LANES == SLOT);

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

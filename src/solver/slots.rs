//! Slots: work that all threads share to prepare positions for the one thread that finds the values in order.
//!
//! The values of a sequence are found one after the other, by one thread: the *producer*. What other threads can
//! prepare for it is divided into *slots*, one for each [`SLOT`] consecutive positions. A thread claims the first slot
//! that no thread has claimed and that can be prepared with the values known so far. The producer claims the slot that
//! it needs next, if no thread has; and while another thread prepares that slot, it claims others. So it waits only
//! when there is nothing else to do, and one thread can do all the work.
//!
//! The producer publishes the values *piece* by piece, and each of the other threads makes its own copy of them. A
//! thread may *revise* what was prepared for a slot once more, when more values are known, just before the producer
//! takes it.
//!
//! Invariant: the waits form no cycle. Threads without work wait for the producer, the producer waits only for a slot
//! that is claimed or being revised, and the thread that does so does not wait, provided that the caller prepares and
//! revises slots without waiting.

use crate::kernel::prefetch;
use crate::theory::nimber::index;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Number of positions of a slot.
pub(super) const SLOT: usize = 64;

/// Number of polls of a slot before the producer sleeps.
const SPINS: usize = 400;

/// Number of polls of the one thread that watches for work, before it sleeps as well.
const WATCHES: usize = 2000;

/// Maximum time of one sleep of the producer; another thread sleeps at most this time multiplied by the number of
/// sleeping threads. A thread that misses a signal sleeps that long.
const NAP: Duration = Duration::from_micros(200);

/// Slots for consecutive positions, each of which receives a `T`.
pub(super) struct Slots<T> {
    /// The first position of the first slot.
    first: u64,
    slots: Vec<Slot<T>>,
    claims: OwnLine<Claims>,
    published: OwnLine<Published>,
    /// Whether no more slots are wanted.
    is_closed: AtomicBool,
    sleep: OwnLine<Sleep>,
}

/// Data that lies in cache lines of its own. What one thread writes often must not lie beside what others read: each
/// write takes the line from their caches.
#[repr(align(128))]
struct OwnLine<T>(T);

impl<T> std::ops::Deref for OwnLine<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// How far the claims are. All threads write it.
#[derive(Default)]
struct Claims {
    /// The first slot that no thread has claimed; all slots before it are claimed, or passed.
    next: AtomicUsize,
    /// The first slot that no thread revises or has revised; all slots before it are, or were passed.
    unrevised: AtomicUsize,
}

/// How far the producer is. Only the producer writes it, so it needs no operation that reads and writes at once.
struct Published {
    /// One past the last position whose value is published.
    known: AtomicU64,
    /// Number of announcements ([`Slots::announce`]).
    announced: AtomicUsize,
}

/// The threads that have nothing to do. All threads write it.
#[derive(Default)]
struct Sleep {
    idle: Mutex<Idle>,
    /// Signalled when a thread has claimed a slot and enough others can be claimed ([`Slots::claim`]), by
    /// [`Slots::wake`], and when the slots are closed.
    offered: Condvar,
    /// Number of threads that sleep.
    sleepers: AtomicUsize,
    /// Whether the producer sleeps.
    producer_sleeps: AtomicBool,
    /// Signalled when the slot for which the producer waits is delivered, and when the slots are closed.
    delivered: Condvar,
}

/// What is prepared for [`SLOT`] consecutive positions.
#[repr(align(64))]
struct Slot<T> {
    /// Whether the thread that claimed the slot has finished.
    is_delivered: AtomicBool,
    /// `None` if it delivered nothing.
    item: Mutex<Option<T>>,
}

/// The threads that have nothing to do.
#[derive(Default)]
struct Idle {
    /// Whether a thread watches for changes; the others sleep.
    has_watcher: bool,
}

/// A claimed slot. Delivers on drop, so that the producer does not wait for a thread that has failed.
pub(super) struct Claim<'s, T> {
    slots: &'s Slots<T>,
    number: usize,
    /// What is delivered.
    pub(super) item: Option<T>,
}

/// Closes the slots on drop, so that no thread waits for a producer that has failed.
pub(super) struct Closing<'s, T>(pub(super) &'s Slots<T>);

impl<T> Drop for Closing<'_, T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Locks a mutex even if a thread panicked while it held the lock. Only a panic of a thread that revises leaves half
/// changed data; the caller then discards all work, because the panic also ends the scope of its threads.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Slots<T> {
    /// `count` slots from position `first` on, where the values before `known` are known.
    pub(super) fn new(first: u64, count: usize, known: u64) -> Slots<T> {
        Slots {
            first,
            slots: (0..count).map(|_| Slot { is_delivered: AtomicBool::new(false), item: Mutex::new(None) }).collect(),
            claims: OwnLine(Claims::default()),
            published: OwnLine(Published { known: AtomicU64::new(known), announced: AtomicUsize::new(0) }),
            is_closed: AtomicBool::new(false),
            sleep: OwnLine(Sleep::default()),
        }
    }

    /// Number of slots.
    pub(super) fn count(&self) -> usize {
        self.slots.len()
    }

    /// The first position of a slot.
    pub(super) fn position(&self, number: usize) -> u64 {
        self.first + (number * SLOT) as u64
    }

    /// The number of the slot of the positions from `n` on, if there is one.
    fn number_of(&self, n: u64) -> Option<usize> {
        let distance = n.checked_sub(self.first).filter(|distance| distance.is_multiple_of(SLOT as u64))?;
        Some(index(distance) / SLOT).filter(|&number| number < self.slots.len())
    }

    // ---- The producer.

    /// Announces a change that may let threads claim slots, such as a new plan.
    pub(super) fn announce(&self) {
        let announced = self.published.announced.load(Ordering::Relaxed);
        self.published.announced.store(announced + 1, Ordering::Release);
    }

    /// Publishes a piece, the next `count` values: what the producer has written before is visible to a thread that
    /// claims or revises a slot with these values. Returns false when no more are wanted.
    pub(super) fn publish(&self, count: usize) -> bool {
        let known = &self.published.known;
        known.store(known.load(Ordering::Relaxed) + count as u64, Ordering::Release);
        self.is_open()
    }

    /// Whether more slots are wanted.
    pub(super) fn is_open(&self) -> bool {
        !self.is_closed.load(Ordering::Relaxed)
    }

    /// What another thread has prepared for the positions from `n` on, or is preparing. `None` if no slot begins at
    /// `n`, if no thread has claimed it (it counts as claimed now), or if the thread delivered nothing; the producer
    /// then prepares the positions. While it waits, the producer calls `prepare_other`, which prepares another slot, or
    /// returns false.
    pub(super) fn take(&self, n: u64, mut prepare_other: impl FnMut() -> bool) -> Option<T> {
        let number = self.number_of(n)?;
        let slot = &self.slots[number];
        if !slot.is_delivered.load(Ordering::Acquire) {
            if self.claims.next.fetch_max(number + 1, Ordering::Relaxed) <= number {
                return None;
            }
            while !slot.is_delivered.load(Ordering::Acquire) {
                if !prepare_other() {
                    self.wait_for(slot);
                    break;
                }
            }
        }
        lock(&slot.item).take()
    }

    /// What another thread has prepared for the positions from `n` on, if it has, and no thread revises it now.
    /// Otherwise [`Slots::take`] can take it later.
    pub(super) fn take_ready(&self, n: u64) -> Option<T> {
        let slot = &self.slots[self.number_of(n)?];
        slot.is_delivered.load(Ordering::Acquire).then(|| slot.item.try_lock().ok()?.take())?
    }

    /// Lets the processor begin to load the state of the slot of the positions from `n` on, if there is one.
    pub(super) fn prefetch(&self, n: u64) {
        if let Some(number) = self.number_of(n) {
            prefetch(&self.slots[number]);
        }
    }

    /// Waits until the thread that claimed the slot has finished.
    fn wait_for(&self, slot: &Slot<T>) {
        let is_ready = || slot.is_delivered.load(Ordering::SeqCst);
        for _ in 0..SPINS {
            if is_ready() {
                return;
            }
            spin_loop();
        }
        let mut idle = lock(&self.sleep.idle);
        self.sleep.producer_sleeps.store(true, Ordering::SeqCst);
        while !is_ready() {
            idle = self.sleep.delivered.wait_timeout(idle, NAP).unwrap_or_else(PoisonError::into_inner).0;
        }
        self.sleep.producer_sleeps.store(false, Ordering::SeqCst);
    }

    /// Lets no thread claim another slot. Returns the first position that no thread has claimed.
    pub(super) fn stop(&self) -> u64 {
        let next = self.claims.next.fetch_max(self.slots.len(), Ordering::Relaxed);
        self.position(next.min(self.slots.len()))
    }

    /// Wakes the threads without work.
    pub(super) fn wake(&self) {
        drop(lock(&self.sleep.idle));
        self.sleep.offered.notify_all();
    }

    /// Ends the work: no more slots are wanted, or no more values follow.
    pub(super) fn close(&self) {
        let idle = lock(&self.sleep.idle);
        self.is_closed.store(true, Ordering::SeqCst);
        drop(idle);
        self.sleep.offered.notify_all();
    }

    // ---- All threads.

    /// Claims the first slot that no thread has claimed, if `can_prepare(n, known)` for its first position n: whether
    /// it can be prepared with the values before `known`. Wakes a thread that sleeps if the next `wake_at` slots can be
    /// prepared as well.
    pub(super) fn claim(&self, wake_at: usize, can_prepare: impl Fn(u64, u64) -> bool) -> Option<Claim<'_, T>> {
        let mut next = self.claims.next.load(Ordering::Relaxed);
        loop {
            let known = self.known();
            // The producer has passed the slots before the end of the known values.
            let passed = index(known.saturating_sub(self.first)).div_ceil(SLOT);
            let number = next.max(passed);
            let is_ready = |number: usize| number < self.slots.len() && can_prepare(self.position(number), known);
            if !is_ready(number) || self.is_closed.load(Ordering::Relaxed) {
                return None;
            }
            match self.claims.next.compare_exchange_weak(next, number + 1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    if self.sleep.sleepers.load(Ordering::Relaxed) > 0 && is_ready(number + wake_at) {
                        self.sleep.offered.notify_one();
                    }
                    return Some(self.claim_of(number));
                }
                Err(now) => next = now,
            }
        }
    }

    /// A claim of any slot, claimed or not.
    pub(super) fn claim_of(&self, number: usize) -> Claim<'_, T> {
        Claim { slots: self, number, item: None }
    }

    /// Locks the next slot that no thread has revised. Returns its first position n and what was delivered for it:
    /// `None` if the producer has taken it. Returns nothing if the slot is not delivered, or if `is_time(n, known)` is
    /// false; `known` is the end of the published values. The producer waits for the lock.
    pub(super) fn revise(&self, is_time: impl Fn(u64, u64) -> bool) -> Option<(u64, MutexGuard<'_, Option<T>>)> {
        let unrevised = self.claims.unrevised.load(Ordering::Relaxed);
        let known = self.known();
        // The producer takes this slot next, or has taken it. It may also hold the slot after it (`take_ready`).
        let taken = index(known.saturating_sub(self.first)) / SLOT;
        let number = unrevised.max(taken + 1);
        let slot = self.slots.get(number)?;
        let n = self.position(number);
        let is_open = !self.is_closed.load(Ordering::Relaxed);
        let is_ready = is_open && is_time(n, known) && slot.is_delivered.load(Ordering::Acquire);
        let claim =
            || self.claims.unrevised.compare_exchange(unrevised, number + 1, Ordering::Relaxed, Ordering::Relaxed);
        (is_ready && claim().is_ok()).then(|| (n, lock(&slot.item)))
    }

    /// One past the last position whose value is published. After a successful [`Slots::claim`] it is at least what the
    /// claim counted as known.
    pub(super) fn known(&self) -> u64 {
        self.published.known.load(Ordering::Acquire)
    }

    /// Number of announcements.
    pub(super) fn announced(&self) -> usize {
        self.published.announced.load(Ordering::Acquire)
    }

    /// A number that changes when there may be more slots to prepare.
    pub(super) fn changes(&self) -> u64 {
        self.published.announced.load(Ordering::Relaxed) as u64 + self.published.known.load(Ordering::Relaxed)
    }

    /// Returns when there may be more slots to prepare than when [`Slots::changes`] was `seen`, and at the latest after
    /// a sleep. One thread may watch for that, if it `watches`; the others sleep. Returns false when the slots are
    /// closed.
    pub(super) fn wait(&self, seen: u64, watches: bool) -> bool {
        let is_open = || !self.is_closed.load(Ordering::SeqCst);
        let mut idle = lock(&self.sleep.idle);
        if !is_open() {
            return false;
        }
        if watches && !idle.has_watcher {
            idle.has_watcher = true;
            drop(idle);
            let has_changed = (0..WATCHES).any(|_| {
                spin_loop();
                self.changes() != seen || !is_open()
            });
            idle = lock(&self.sleep.idle);
            idle.has_watcher = false;
            if has_changed || !is_open() {
                return is_open();
            }
        }
        let sleepers = self.sleep.sleepers.fetch_add(1, Ordering::Relaxed) + 1;
        // Together, the threads that sleep wake as often as one.
        let nap = NAP.saturating_mul(u32::try_from(sleepers).unwrap_or(u32::MAX));
        drop(self.sleep.offered.wait_timeout(idle, nap).unwrap_or_else(PoisonError::into_inner));
        self.sleep.sleepers.fetch_sub(1, Ordering::Relaxed);
        is_open()
    }
}

impl<T> Claim<'_, T> {
    /// The first position of the slot.
    pub(super) fn position(&self) -> u64 {
        self.slots.position(self.number)
    }
}

impl<T> Drop for Claim<'_, T> {
    fn drop(&mut self) {
        let slot = &self.slots.slots[self.number];
        *lock(&slot.item) = self.item.take();
        slot.is_delivered.store(true, Ordering::SeqCst);
        let sleep = &self.slots.sleep;
        if sleep.producer_sleeps.load(Ordering::SeqCst) {
            let _idle = lock(&sleep.idle);
            sleep.delivered.notify_one();
        }
    }
}

#[cfg(test)]
impl<T> Slots<T> {
    /// What was delivered to a slot and not taken.
    pub(super) fn item(&self, number: usize) -> MutexGuard<'_, Option<T>> {
        lock(&self.slots[number].item)
    }

    /// Whether the thread that claimed the slot has finished.
    pub(super) fn is_ready(&self, number: usize) -> bool {
        self.slots[number].is_delivered.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of ten slots from position 100 on, the first six are delivered, and the producer takes one after the other.
    #[test]
    fn a_slot_is_revised_once_and_only_before_it_is_taken() {
        let slots: Slots<usize> = Slots::new(100, 10, 100);
        for number in 0..6 {
            slots.claim(1, |_, _| true).unwrap().item = Some(number);
        }
        let revise = |least: u64| {
            let (n, mut item) = slots.revise(|n, known| n >= known + least)?;
            let item = item.as_mut()?;
            *item += 10;
            Some((n, *item))
        };
        assert_eq!(revise(65), None, "it is not time yet");
        assert_eq!(revise(0), Some((164, 11)), "the producer takes the slot of position 100 next");
        assert_eq!(slots.take(100, || false), Some(0));
        assert_eq!(revise(0), Some((228, 12)));
        for (number, n) in [(11, 164), (12, 228), (3, 292)] {
            slots.publish(SLOT);
            assert_eq!(slots.take(n, || false), Some(number));
        }
        assert_eq!(revise(0), Some((356, 14)), "the slot of position 292 is taken");
        slots.close();
        assert_eq!(revise(0), None, "no more slots are wanted");
    }
}

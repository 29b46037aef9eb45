//! A storage whose operations fail as planned.
//!
//! Operations are counted, over all files, from 1 on. A plan says which of them fail, how, and whether only once; it is
//! repeated by the same plan on the same run. [`Plan::drawn`] draws from a seed instead, for many faults in one run.
//!
//! A fault meets those operations only that can have it: no read runs out of space. A sync that fails takes what waited for
//! it along, as the kernel does ([`Handle::forget_unsynced`]).

use super::{Bytes, Handle, Mode, Storage};
use rustix::io::Errno;
use std::io::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What an operation may suffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// EIO, any operation.
    Io,
    /// ENOSPC, whatever may need room.
    NoSpace,
    /// EFBIG, a write.
    TooLarge,
    /// EINTR, any operation; when it lasts, every second one.
    Interrupted,
    /// A write of half the bytes.
    ShortWrite,
    /// A read of half the bytes.
    ShortRead,
    /// The power is cut: this operation and all later ones fail.
    PowerCut,
}

impl Fault {
    /// All but the power cut.
    pub const ERRORS: [Fault; 6] =
        [Fault::Io, Fault::NoSpace, Fault::TooLarge, Fault::Interrupted, Fault::ShortWrite, Fault::ShortRead];

    fn meets(self, operation: Operation) -> bool {
        match self {
            Fault::Io | Fault::Interrupted | Fault::PowerCut => true,
            Fault::NoSpace => matches!(operation, Operation::Write | Operation::Sync | Operation::Change),
            Fault::TooLarge | Fault::ShortWrite => operation == Operation::Write,
            Fault::ShortRead => operation == Operation::Read,
        }
    }

    fn error(self) -> Option<Error> {
        let errno = match self {
            Fault::Io | Fault::PowerCut => Errno::IO,
            Fault::NoSpace => Errno::NOSPC,
            Fault::TooLarge => Errno::FBIG,
            Fault::Interrupted => Errno::INTR,
            Fault::ShortWrite | Fault::ShortRead => return None,
        };
        Some(errno.into())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Look,
    Read,
    Write,
    Change,
    Sync,
}

/// Which operations fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// None; they are counted.
    None,
    /// The `at`-th of those that the fault may meet, or all from there on.
    At {
        /// From 1 on.
        at: u64,
        /// What happens.
        fault: Fault,
        /// Whether it happens from then on.
        lasting: bool,
    },
    /// Any, with one of these chances in 2^32, drawn from a seed; interruptions and short counts do no harm.
    Drawn {
        /// Repeats the faults.
        seed: u64,
        /// Of an operation to be interrupted or cut short.
        harmless: u64,
        /// Of an operation to fail.
        harmful: u64,
    },
}

type Watch = dyn Fn(u64) + Send + Sync;

struct State {
    plan: Plan,
    /// Operations so far, and those that the fault may meet.
    operations: AtomicU64,
    met: AtomicU64,
    /// Whether an error left the disk unknown, and how often something was changed all the same.
    unknown: AtomicBool,
    disobeyed: AtomicU64,
    watch: Option<Box<Watch>>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} after {} operations", self.plan, self.operations.load(Ordering::SeqCst))
    }
}

impl State {
    /// What the next operation suffers.
    fn next(&self, operation: Operation) -> Option<Fault> {
        let fault = self.drawn(operation);
        if self.unknown.load(Ordering::SeqCst) && !matches!(operation, Operation::Look | Operation::Read) {
            self.disobeyed.fetch_add(1, Ordering::SeqCst);
        }
        let error = fault.is_some_and(|fault| match fault {
            Fault::Io | Fault::PowerCut => true,
            Fault::NoSpace => operation == Operation::Sync,
            _ => false,
        });
        self.unknown.fetch_or(error, Ordering::SeqCst);
        fault
    }

    fn drawn(&self, operation: Operation) -> Option<Fault> {
        let number = self.operations.fetch_add(1, Ordering::SeqCst) + 1;
        match self.plan {
            Plan::None => None,
            Plan::At { at, fault, lasting } => {
                let met =
                    if fault.meets(operation) { self.met.fetch_add(1, Ordering::SeqCst) + 1 } else { return None };
                let lasting = lasting || fault == Fault::PowerCut;
                let now = met == at || (lasting && met > at && (fault != Fault::Interrupted || (met - at) % 2 == 0));
                now.then_some(fault)
            }
            Plan::Drawn { seed, harmless, harmful } => {
                let drawn = mix(seed ^ mix(number));
                let fault = match drawn >> 32 {
                    chance if chance < harmless => match operation {
                        Operation::Write if drawn & 1 == 0 => Fault::ShortWrite,
                        Operation::Read if drawn & 1 == 0 => Fault::ShortRead,
                        _ => Fault::Interrupted,
                    },
                    chance if chance < harmless + harmful => match operation {
                        Operation::Write | Operation::Change if drawn & 1 == 0 => Fault::NoSpace,
                        _ => Fault::Io,
                    },
                    _ => return None,
                };
                Some(fault)
            }
        }
    }

    fn done(&self) {
        if let Some(watch) = &self.watch {
            watch(self.operations.load(Ordering::SeqCst));
        }
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014).
fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A storage whose operations fail as planned.
#[derive(Debug)]
pub struct Faults {
    inner: Arc<dyn Storage>,
    state: Arc<State>,
}

impl Faults {
    /// Another storage, with a plan.
    #[must_use]
    pub fn new(inner: Arc<dyn Storage>, plan: Plan) -> Faults {
        Faults::made(inner, plan, None)
    }

    /// Another storage, in which nothing fails; `watch` is told the number of every operation when it is done.
    #[must_use]
    pub fn watched(inner: Arc<dyn Storage>, watch: impl Fn(u64) + Send + Sync + 'static) -> Faults {
        Faults::made(inner, Plan::None, Some(Box::new(watch)))
    }

    fn made(inner: Arc<dyn Storage>, plan: Plan, watch: Option<Box<Watch>>) -> Faults {
        let (operations, met, disobeyed) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let state = State { plan, operations, met, unknown: AtomicBool::new(false), disobeyed, watch };
        Faults { inner, state: Arc::new(state) }
    }

    /// How many operations there were.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.state.operations.load(Ordering::SeqCst)
    }

    /// How many of them the fault of the plan could have met.
    #[must_use]
    pub fn met(&self) -> u64 {
        self.state.met.load(Ordering::SeqCst)
    }

    /// How often something was to be changed after EIO or a sync that failed.
    #[must_use]
    pub fn disobeyed(&self) -> u64 {
        self.state.disobeyed.load(Ordering::SeqCst)
    }

    fn call<T>(&self, operation: Operation, call: impl FnOnce(&dyn Storage) -> Result<T>) -> Result<T> {
        if let Some(error) = self.state.next(operation).and_then(Fault::error) {
            return Err(error);
        }
        let done = call(&*self.inner);
        self.state.done();
        done
    }
}

impl Storage for Faults {
    fn exists(&self) -> Result<bool> {
        self.call(Operation::Look, |inner| inner.exists())
    }

    fn make(&self) -> Result<()> {
        self.call(Operation::Change, |inner| inner.make())
    }

    fn open(&self, name: &str, mode: Mode) -> Result<Box<dyn Handle>> {
        let operation = if matches!(mode, Mode::Read | Mode::Write) { Operation::Look } else { Operation::Change };
        let inner = self.call(operation, |inner| inner.open(name, mode))?;
        Ok(Box::new(Opened { inner, state: Arc::clone(&self.state) }))
    }

    fn length(&self, name: &str) -> Result<Option<u64>> {
        self.call(Operation::Look, |inner| inner.length(name))
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.call(Operation::Change, |inner| inner.remove(name))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.call(Operation::Change, |inner| inner.rename(from, to))
    }

    fn names(&self) -> Result<Vec<String>> {
        self.call(Operation::Look, |inner| inner.names())
    }

    fn sync(&self) -> Result<()> {
        self.call(Operation::Sync, |inner| inner.sync())
    }

    fn free_space(&self) -> Result<u64> {
        self.call(Operation::Look, |inner| inner.free_space())
    }
}

#[derive(Debug)]
struct Opened {
    inner: Box<dyn Handle>,
    state: Arc<State>,
}

impl Opened {
    fn call<T>(&self, operation: Operation, call: impl FnOnce(&dyn Handle, bool) -> Result<T>) -> Result<T> {
        let fault = self.state.next(operation);
        if let Some(error) = fault.and_then(Fault::error) {
            if operation == Operation::Sync && !matches!(fault, Some(Fault::Interrupted | Fault::PowerCut)) {
                self.inner.forget_unsynced();
            }
            return Err(error);
        }
        let done = call(&*self.inner, fault.is_some());
        self.state.done();
        done
    }
}

/// Half of them, and at least one where there are any.
fn half(bytes: usize, short: bool) -> usize {
    if short { bytes.div_ceil(2) } else { bytes }
}

impl Handle for Opened {
    fn length(&self) -> Result<u64> {
        self.call(Operation::Look, |inner, _| inner.length())
    }

    fn read_at(&self, out: &mut [u8], at: u64) -> Result<usize> {
        self.call(Operation::Read, |inner, short| {
            let length = half(out.len(), short);
            inner.read_at(&mut out[..length], at)
        })
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> Result<usize> {
        self.call(Operation::Write, |inner, short| inner.write_at(&bytes[..half(bytes.len(), short)], at))
    }

    fn set_length(&self, length: u64) -> Result<()> {
        self.call(Operation::Change, |inner, _| inner.set_length(length))
    }

    fn sync_data(&self) -> Result<()> {
        self.call(Operation::Sync, |inner, _| inner.sync_data())
    }

    fn sync_all(&self) -> Result<()> {
        self.call(Operation::Sync, |inner, _| inner.sync_all())
    }

    fn try_lock(&self) -> Result<bool> {
        self.call(Operation::Look, |inner, _| inner.try_lock())
    }

    fn is_named(&self, name: &str) -> Result<bool> {
        self.call(Operation::Look, |inner, _| inner.is_named(name))
    }

    fn punch(&self, at: u64, length: u64) -> Result<()> {
        self.call(Operation::Change, |inner, _| inner.punch(at, length))
    }

    fn map(&self, length: u64) -> Result<Bytes> {
        self.call(Operation::Look, |inner, _| inner.map(length))
    }

    fn forget_unsynced(&self) {
        self.inner.forget_unsynced();
    }
}

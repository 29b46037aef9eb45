//! A storage whose operations fail according to a plan.
//!
//! The operations of all files together are counted from 1 on. A [`Plan`] defines which of them fail, how, and whether
//! only once; the same plan on the same run gives the same faults. [`Plan::Drawn`] draws many faults of one run from a
//! seed.
//!
//! A fault applies only to operations that can have it: no read runs out of space, for example. A failed sync drops the
//! changes that it should have made durable, as the kernel does ([`Handle::forget_unsynced`]).

use crate::storage::{Bytes, Handle, Mode, Storage};
use crate::theory::random::split_mix;
use rustix::io::Errno;
use std::io::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A fault of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Any operation fails with EIO.
    Io,
    /// A write, a sync or a change of names or lengths fails with ENOSPC.
    NoSpace,
    /// A write fails with EFBIG.
    TooLarge,
    /// Any operation fails with EINTR; if the fault is lasting, every second one.
    Interrupted,
    /// A write transfers half of the bytes.
    ShortWrite,
    /// A read transfers half of the bytes.
    ShortRead,
    /// The power is cut: this operation and all later ones fail.
    PowerCut,
}

impl Fault {
    /// All faults except the power cut.
    pub const ERRORS: [Fault; 6] =
        [Fault::Io, Fault::NoSpace, Fault::TooLarge, Fault::Interrupted, Fault::ShortWrite, Fault::ShortRead];

    /// Returns whether the fault can apply to an operation of this kind.
    fn applies_to(self, operation: Operation) -> bool {
        match self {
            Fault::Io | Fault::Interrupted | Fault::PowerCut => true,
            Fault::NoSpace => matches!(operation, Operation::Write | Operation::Sync | Operation::Change),
            Fault::TooLarge | Fault::ShortWrite => operation == Operation::Write,
            Fault::ShortRead => operation == Operation::Read,
        }
    }

    /// Returns the error that the operation returns; `None` if it transfers fewer bytes instead.
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

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    /// Changes nothing and reads no bytes of a file.
    Query,
    /// Reads bytes of a file.
    Read,
    /// Writes bytes of a file.
    Write,
    /// Changes a name, a length or the blocks of a file.
    Change,
    /// Makes changes durable.
    Sync,
}

/// Which operations fail, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// No operation fails; operations are only counted.
    None,
    /// The `at`-th of the operations to which the fault can apply fails.
    At {
        /// The number of the operation, counted from 1.
        at: u64,
        /// The fault.
        fault: Fault,
        /// Whether all later operations to which the fault can apply fail as well.
        lasting: bool,
    },
    /// Every operation fails with the given probabilities, drawn from a seed.
    Drawn {
        /// The seed, which determines the faults.
        seed: u64,
        /// Probability, in units of 2^-32, that an operation is interrupted or transfers half of the bytes.
        harmless: u64,
        /// Probability, in units of 2^-32, that an operation fails with EIO or ENOSPC.
        harmful: u64,
    },
}

/// A function that receives the number of each completed operation.
type Watch = dyn Fn(u64) + Send + Sync;

struct State {
    plan: Plan,
    /// Number of operations.
    operations: AtomicU64,
    /// Number of operations to which the fault of the plan can apply.
    met: AtomicU64,
    /// Whether an error has left the durable state unknown.
    unknown: AtomicBool,
    /// Number of writes, changes and syncs after that error.
    disobeyed: AtomicU64,
    watch: Option<Box<Watch>>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} after {} operations", self.plan, self.operations.load(Ordering::SeqCst))
    }
}

impl State {
    /// Counts the next operation and returns its fault, if it has one.
    fn next(&self, operation: Operation) -> Option<Fault> {
        let fault = self.planned(operation);
        if self.unknown.load(Ordering::SeqCst) && !matches!(operation, Operation::Query | Operation::Read) {
            self.disobeyed.fetch_add(1, Ordering::SeqCst);
        }
        let makes_unknown = fault.is_some_and(|fault| match fault {
            Fault::Io | Fault::PowerCut => true,
            Fault::NoSpace => operation == Operation::Sync,
            _ => false,
        });
        self.unknown.fetch_or(makes_unknown, Ordering::SeqCst);
        fault
    }

    /// Counts the next operation and returns the fault that the plan has for it.
    fn planned(&self, operation: Operation) -> Option<Fault> {
        let number = self.operations.fetch_add(1, Ordering::SeqCst) + 1;
        match self.plan {
            Plan::None => None,
            Plan::At { at, fault, lasting } => {
                if !fault.applies_to(operation) {
                    return None;
                }
                let met = self.met.fetch_add(1, Ordering::SeqCst) + 1;
                let lasting = lasting || fault == Fault::PowerCut;
                let recurs = lasting && met > at && (fault != Fault::Interrupted || (met - at).is_multiple_of(2));
                (met == at || recurs).then_some(fault)
            }
            Plan::Drawn { seed, harmless, harmful } => {
                let drawn = split_mix(seed ^ split_mix(number, 0), 0);
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

    /// Reports the completed operation to the watcher.
    fn done(&self) {
        if let Some(watch) = &self.watch {
            watch(self.operations.load(Ordering::SeqCst));
        }
    }
}

/// A storage whose operations fail according to a plan.
#[derive(Debug)]
pub struct Faults {
    inner: Arc<dyn Storage>,
    state: Arc<State>,
}

impl Faults {
    /// Wraps a storage with a plan.
    #[must_use]
    pub fn new(inner: Arc<dyn Storage>, plan: Plan) -> Faults {
        Faults::with_watch(inner, plan, None)
    }

    /// Wraps a storage in which nothing fails; calls `watch` with the number of every completed operation.
    #[must_use]
    pub fn watched(inner: Arc<dyn Storage>, watch: impl Fn(u64) + Send + Sync + 'static) -> Faults {
        Faults::with_watch(inner, Plan::None, Some(Box::new(watch)))
    }

    fn with_watch(inner: Arc<dyn Storage>, plan: Plan, watch: Option<Box<Watch>>) -> Faults {
        let state = State {
            plan,
            operations: AtomicU64::new(0),
            met: AtomicU64::new(0),
            unknown: AtomicBool::new(false),
            disobeyed: AtomicU64::new(0),
            watch,
        };
        Faults { inner, state: Arc::new(state) }
    }

    /// Returns the number of operations.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.state.operations.load(Ordering::SeqCst)
    }

    /// Returns the number of operations to which the fault of the plan could apply.
    #[must_use]
    pub fn met(&self) -> u64 {
        self.state.met.load(Ordering::SeqCst)
    }

    /// Returns the number of writes, changes and syncs after EIO or a failed sync. A program that obeys the rule of
    /// [`poisoned`](crate::storage::poisoned) makes none.
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
        self.call(Operation::Query, |inner| inner.exists())
    }

    fn make(&self) -> Result<()> {
        self.call(Operation::Change, |inner| inner.make())
    }

    fn open(&self, name: &str, mode: Mode) -> Result<Box<dyn Handle>> {
        let operation = if matches!(mode, Mode::Read | Mode::Write) { Operation::Query } else { Operation::Change };
        let inner = self.call(operation, |inner| inner.open(name, mode))?;
        Ok(Box::new(Opened { inner, state: Arc::clone(&self.state) }))
    }

    fn length(&self, name: &str) -> Result<Option<u64>> {
        self.call(Operation::Query, |inner| inner.length(name))
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.call(Operation::Change, |inner| inner.remove(name))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.call(Operation::Change, |inner| inner.rename(from, to))
    }

    fn names(&self) -> Result<Vec<String>> {
        self.call(Operation::Query, |inner| inner.names())
    }

    fn sync(&self) -> Result<()> {
        self.call(Operation::Sync, |inner| inner.sync())
    }

    fn free_space(&self) -> Result<u64> {
        self.call(Operation::Query, |inner| inner.free_space())
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

/// Returns the number of bytes to transfer: half of them, rounded up, if the operation is `short`.
fn half(bytes: usize, short: bool) -> usize {
    if short { bytes.div_ceil(2) } else { bytes }
}

impl Handle for Opened {
    fn length(&self) -> Result<u64> {
        self.call(Operation::Query, |inner, _| inner.length())
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
        self.call(Operation::Query, |inner, _| inner.try_lock())
    }

    fn is_named(&self, name: &str) -> Result<bool> {
        self.call(Operation::Query, |inner, _| inner.is_named(name))
    }

    fn punch(&self, at: u64, length: u64) -> Result<()> {
        self.call(Operation::Change, |inner, _| inner.punch(at, length))
    }

    fn map(&self, length: u64) -> Result<Bytes> {
        self.call(Operation::Query, |inner, _| inner.map(length))
    }

    fn forget_unsynced(&self) {
        self.inner.forget_unsynced();
    }
}

//! The number of threads that a solver plans for.
//!
//! Invariant: the number of threads changes the time of a computation and no value. Every block is completed with any
//! number of threads, one included ([`pipeline`](super::pipeline)).

/// The number of threads that a solver plans for.
///
/// A solver starts no threads. It runs in the rayon pool in which it is called. This number decides how many threads
/// share the work of a block, how far they work ahead of the thread that finds the values in order, and which lookups
/// they evaluate for it. Comparisons of all pairs of bytes, exhaustive searches, reading the earlier values, and work
/// between two blocks use the whole pool. A number above the size of the pool counts as the size of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parallelism {
    wanted: usize,
}

impl Parallelism {
    /// All threads of the pool in which the solver is called: the pool of `rayon::ThreadPool::install`, or the global
    /// pool.
    #[must_use]
    pub const fn of_pool() -> Parallelism {
        Parallelism { wanted: usize::MAX }
    }

    /// `threads` threads, or all threads of the pool if it has fewer; 0 counts as 1.
    #[must_use]
    pub const fn threads(threads: usize) -> Parallelism {
        Parallelism { wanted: if threads == 0 { 1 } else { threads } }
    }

    /// This number of threads, or the size of the current pool if that is smaller.
    pub(super) fn in_pool(self) -> Threads {
        Threads { count: self.wanted.min(rayon::current_num_threads()) }
    }
}

impl Default for Parallelism {
    /// [`Parallelism::of_pool`].
    fn default() -> Parallelism {
        Parallelism::of_pool()
    }
}

/// The number of threads of one step of the solver: at least 1, and at most the size of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Threads {
    count: usize,
}

impl Threads {
    /// One thread.
    pub(super) const ONE: Threads = Threads { count: 1 };

    /// Two threads.
    #[cfg(test)]
    pub(super) const TWO: Threads = Threads { count: 2 };

    /// Eight threads.
    pub(super) const EIGHT: Threads = Threads { count: 8 };

    /// The number of threads.
    pub(super) fn count(self) -> usize {
        self.count
    }
}

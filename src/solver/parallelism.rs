//! The number of threads of a step.
//!
//! A solver starts no threads. It runs in the rayon pool in which it is called: that of `rayon::ThreadPool::install`,
//! or the global pool.
//!
//! Invariant: the number of threads changes the time of a computation and no value. Every block is completed with any
//! number of threads, one included ([`pipeline`](super::pipeline)).

/// The number of threads of one step of the solver: the size of the pool. It decides how many tasks share the work of a
/// block, how far these work ahead of the thread that finds the values in order, and which lookups they evaluate for
/// it.
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

    /// All threads of the current pool.
    pub(super) fn of_pool() -> Threads {
        Threads { count: rayon::current_num_threads() }
    }

    /// The number of threads, at least 1.
    pub(super) fn count(self) -> usize {
        self.count
    }
}

//! How many threads the solver has, and what that decides.
//!
//! The number of threads selects who marks lookups ahead of time ([`pipeline`](super::pipeline)). It never changes a
//! value. Every such decision in the candidate stream and in the pipeline goes through this type.

/// The number of threads of the rayon pool in which the caller runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parallelism(usize);

impl Parallelism {
    /// The parallelism of the pool in which this thread runs.
    pub(super) fn current() -> Parallelism {
        Parallelism(rayon::current_num_threads())
    }

    /// Whether another thread than that of the candidates marks lookups ahead of time.
    pub(super) fn marks_ahead(self) -> bool {
        self.0 > 1
    }

    /// Whether one thread does nothing but mark ahead, so that every lookup that can be marked ahead is.
    pub(super) fn has_mark_thread(self) -> bool {
        self.0 > 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pool_decides_who_marks_ahead() {
        for (threads, marks_ahead, has_mark_thread) in [(1, false, false), (2, true, false), (3, true, true)] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let parallelism = pool.install(Parallelism::current);
            assert_eq!(parallelism, Parallelism(threads));
            assert_eq!(parallelism.marks_ahead(), marks_ahead);
            assert_eq!(parallelism.has_mark_thread(), has_mark_thread);
        }
    }
}

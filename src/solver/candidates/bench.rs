//! Functions through which benchmarks time single steps of the candidate stream.

use super::{CandidateStream, Stop};
use crate::error::Result;
use crate::kernel::{self, BitPlanes, CODES, Kernel, LANES, Lanes, Probe, Probes, Stage};
use crate::solver::SequenceStats;
use crate::solver::bench::processor_time;
use crate::solver::codes::Codes;
use crate::solver::parallelism::Threads;
use crate::solver::pipeline::{BlockValues, Pipeline};
use crate::theory::rule::Rule;
use crate::theory::sparse_space::SparseSpace;
use std::sync::Arc;
use std::time::Duration;

/// A candidate stream at the end of known values, with a learnt order and the plan of a single thread.
pub struct CandidateBench {
    stream: CandidateStream,
    /// The codes after the known values: none, because one thread computes everything.
    codes: Codes,
    /// Memory for the values of a block.
    values: BlockValues,
    /// Lanes in which every code is marked, so that the codes above are the only candidates.
    beyond: Lanes,
    /// Lanes without a candidate.
    empty: Lanes,
}

impl CandidateBench {
    /// A stream that continues `past` in the sparse space of this mask and position term. The number of values in
    /// `past` must be a multiple of `LANES`.
    ///
    /// # Errors
    /// Any error of the solver.
    ///
    /// # Panics
    /// If the game has no such space.
    pub fn new(rule: &Rule, mask: u16, position: u8, kernel: Kernel, past: &[u16]) -> Result<CandidateBench> {
        let space = SparseSpace::new(rule, mask, position).expect("a space of this game");
        let mut stats = SequenceStats::default();
        stats.see(space, 0, past);
        let stream = CandidateStream::new(rule, space, kernel, stats, &past)?;
        let every_code: Probes = (0..=u8::MAX).map(|code| Probe::new(LANES, code)).collect();
        let (items, at) = next_lanes(&stream);
        let mut all_marked = BitPlanes::default();
        kernel.mark(items, at, &every_code, &mut all_marked);
        let refine = |planes, check| {
            let stage = Stage { keep: kernel::CANDIDATES, check };
            kernel.refine(items, at, planes, &[stage])
        };
        let beyond = refine(&all_marked, Probes::new());
        let empty = refine(&BitPlanes::new(CODES[0]), every_code.clone());
        let codes = Codes::new(space, stream.end());
        let mut bench = CandidateBench { stream, codes, values: BlockValues::default(), beyond, empty };
        bench.block(LANES)?; // learns the order and makes the plan
        Ok(bench)
    }

    /// Computes the next `length` candidates, and takes the stream back.
    ///
    /// # Errors
    /// Any error of the stream.
    ///
    /// # Panics
    /// If a candidate has no byte code.
    pub fn block(&mut self, length: usize) -> Result<Vec<u16>> {
        let start = self.stream.end();
        let pipeline = Pipeline::new(&self.codes, &self.values, self.stream.kernel, start + length as u64);
        self.stream.use_threads(Threads::ONE);
        self.stream.learn_when_due();
        let (candidates, stop) = self.stream.block(length, &pipeline);
        assert!(stop == Stop::Done, "a candidate without a byte code");
        self.stream.truncate(start);
        Ok(candidates)
    }

    /// Computes the next `length` candidates as with eight threads, and takes the stream back. Returns them with the
    /// processor time of three stages: the far and the middle lookups, which any thread evaluates, and the rest, which
    /// one thread does. Returns `None` where the stream has no far lookups to share.
    ///
    /// # Errors
    /// Any error of the stream.
    ///
    /// # Panics
    /// If a candidate has no byte code.
    pub fn stages(&mut self, length: usize) -> Result<Option<(Vec<u16>, [Duration; 3])>> {
        let (start, end) = (self.stream.end(), self.stream.end() + length as u64);
        let kernel = self.stream.kernel;
        // Learns the order and makes the plan.
        self.stream.use_threads(Threads::EIGHT);
        self.stream.learn_when_due();
        self.stream.block(length, &Pipeline::new(&self.codes, &self.values, kernel, end));
        let known = self.stream.windows.codes().clone();
        self.stream.truncate(start);
        let plan = Arc::clone(&self.stream.plan);
        if !plan.shares_far() {
            return Ok(None);
        }
        let pipeline = Pipeline::new(&self.codes, &self.values, kernel, end);
        let begin = processor_time();
        pipeline.fill(&plan, &known);
        let far = processor_time() - begin;
        let begin = processor_time();
        pipeline.revise_all(&known);
        let middle = processor_time() - begin;
        let begin = processor_time();
        let (candidates, stop) = self.stream.block(length, &pipeline);
        let near = processor_time() - begin;
        assert!(stop == Stop::Done, "a candidate without a byte code");
        self.stream.truncate(start);
        Ok(Some((candidates, [far, middle, near])))
    }

    /// The planes of the next lanes with every marked lookup of the plan, for this number of codes considered.
    #[must_use]
    fn marked_planes(&self, codes: usize) -> BitPlanes {
        let mut planes = BitPlanes::new(codes);
        let (items, at) = next_lanes(&self.stream);
        for list in self.stream.plan.marked() {
            self.stream.kernel.mark(items, at, list, &mut planes);
        }
        planes
    }

    /// Marks every marked lookup of the plan for the next lanes and takes the least candidates: the work that grows
    /// with the number of codes considered. Returns the least candidate of lane 0.
    #[must_use]
    pub fn mark_with(&self, codes: usize) -> u8 {
        let planes = self.marked_planes(codes);
        let keep = self.stream.plan.check.first().map_or(kernel::CANDIDATES, |stage| stage.keep);
        let (items, at) = next_lanes(&self.stream);
        let lanes = self.stream.kernel.refine(items, at, &planes, &[Stage { keep, check: Probes::new() }]);
        lanes.rows()[0][0]
    }

    /// The value at the end of the stream, computed as in a lane that has no candidate left.
    ///
    /// # Panics
    /// If it has no byte code.
    pub fn unresolved(&mut self) -> u16 {
        let n = self.stream.end();
        let code = self.stream.lane_code(n, &self.empty, 0).expect("a code");
        self.stream.space.decode(code, n)
    }

    /// The answer in a lane whose first candidate is the first code above those considered: this code, when no marked
    /// lookup hits it.
    #[must_use]
    pub fn beyond(&mut self) -> Option<u8> {
        self.stream.lane_code(self.stream.end(), &self.beyond, 0)
    }

    /// The value at the end of the stream, computed from all lookups, as where the recurrence kernel has no answer.
    ///
    /// # Panics
    /// If it has no byte code.
    #[must_use]
    pub fn fallback(&self) -> u16 {
        let n = self.stream.end();
        let code = self.stream.least_code(n).expect("a code");
        self.stream.space.decode(code, n)
    }

    /// Computes the next `count` codes by the recurrence kernel, `step` per call, and returns the last of them. Returns
    /// `None` where the plan uses other jobs, or where a code is outside the range of the kernel.
    pub fn recurrence(&mut self, count: usize, step: usize) -> Option<u8> {
        let plan = Arc::clone(&self.stream.plan);
        let recurrence = plan.recurrence.as_ref()?;
        let (_, at) = next_lanes(&self.stream);
        let kernel = self.stream.kernel;
        let codes = self.stream.windows.codes_mut().items_mut();
        codes.resize(at + count, 0);
        let is_whole = (at..at + count).step_by(step).all(|from| {
            let to = (at + count).min(from + step);
            kernel.recurrence(codes, from, to, recurrence) == to
        });
        let last = codes.last().copied();
        codes.truncate(at);
        last.filter(|_| is_whole)
    }

    /// Number of codes considered.
    #[must_use]
    pub fn codes(&self) -> usize {
        self.stream.plan.codes
    }

    /// Numbers of lookups that the plan marks, checks and leaves to the near job.
    #[must_use]
    pub fn lookups(&self) -> [usize; 3] {
        let plan = &self.stream.plan;
        let marked: usize = plan.marked().map(|list| list.list().len()).sum();
        let beyond_lanes: usize = plan.beyond_lanes().map(|list| list.list().len()).sum();
        [marked, beyond_lanes - marked, plan.near.probes().list().len()]
    }
}

/// The codes that the lookups of the next lanes read, and the index of lane 0.
fn next_lanes(stream: &CandidateStream) -> (&[u8], usize) {
    let codes = stream.windows.codes();
    (codes.items(), codes.at(stream.end()))
}

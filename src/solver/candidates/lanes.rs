//! Candidates of 64 positions at a time, and the reading of all lookups for one position.

use super::{CandidateStream, Stop};
use crate::kernel::{self, LANES, Lanes, NearJob, Probes};
use crate::solver::lookups::far_lanes::{FarLanes, Hits, LaneCodes, SharedLanes, enter_hits};
use crate::solver::pipeline::Pipeline;

/// The least code that is not hit.
pub(super) fn least(hits: &Hits) -> Option<u8> {
    (0..=u8::MAX).find(|&code| hits[usize::from(code)] == 0)
}

impl CandidateStream {
    /// Computes the next `count` candidates, at most [`LANES`].
    pub(super) fn lanes(&mut self, count: usize, pipeline: &Pipeline<'_>) -> Stop {
        let start = self.end();
        // With many irregular lookups the kernel would leave most of the work undone.
        let use_kernel = count > LANES / 8 && self.plan.irregular.len() * 4 < self.lookups.len();
        let done = if !use_kernel {
            self.lanes_by_value(count)
        } else if let Some(mut far) = self.take_far(start, pipeline) {
            let done = self.lanes_by_kernel(count, &mut far);
            self.used.push(far);
            done
        } else {
            let mut far = self.own_lanes.take().unwrap_or_default();
            let codes = self.windows.codes();
            let codes = LaneCodes::of(codes.items(), codes.at(start));
            far.evaluate(&self.plan, self.kernel, codes, &mut self.planes);
            let done = self.lanes_by_kernel(count, &mut far);
            self.own_lanes = Some(far);
            done
        };
        self.windows.decode_from(start);
        if done == count { Stop::Done } else { Stop::TooWide }
    }

    /// The far lanes from `n` on, if another thread has evaluated them under the plan in use. If the lanes after them
    /// are ready, they are taken as well, and begin to move to the cache of this thread, as does the state of the slot
    /// that the next call tries.
    fn take_far(&mut self, n: u64, pipeline: &Pipeline<'_>) -> Option<SharedLanes> {
        if !self.plan.shares_far() {
            return None;
        }
        let taken = self.ahead.take().filter(|&(first, _)| first == n).map(|(_, lanes)| lanes);
        let lanes = taken.or_else(|| pipeline.take(n, &self.plan, self.windows.codes(), &mut self.planes));
        let next = n + LANES as u64;
        pipeline.prefetch(next + LANES as u64);
        self.ahead = pipeline.take_ready(next).map(|lanes| {
            lanes.prefetch(self.plan.keep_late);
            (next, lanes)
        });
        lanes.filter(|lanes| lanes.is_of(&self.plan))
    }

    /// Appends the codes of the next `count` candidates, given what the far lookups leave. Returns their number, which
    /// is less than `count` when one has no byte code.
    fn lanes_by_kernel(&mut self, count: usize, far: &mut FarLanes) -> usize {
        let start = self.end();
        let at = self.windows.codes().at(start);
        let codes = self.windows.codes().items();
        far.revise(self.kernel, LaneCodes::of(codes, at));
        self.unresolved += far.lost;
        self.kernel.check(codes, at, &self.plan.late, &mut far.lanes);
        let mut done = 0;
        while done < count {
            if self.plan.is_regular() {
                let codes = self.windows.codes_mut().items_mut();
                codes.resize(at + count, 0);
                done =
                    self.kernel.near(codes, NearJob { at, probes: &self.plan.near, from: done, to: count }, &far.lanes);
                codes.truncate(at + done);
                if done == count {
                    break;
                }
            }
            let n = start + done as u64;
            let code = self.lane_code(n, &far.lanes, done);
            if !self.push_code(code, n) {
                break;
            }
            done += 1;
        }
        done
    }

    /// Appends the codes of the next `count` candidates, each from all lookups. Returns their number, which is less
    /// than `count` when one has no byte code.
    fn lanes_by_value(&mut self, count: usize) -> usize {
        let start = self.end();
        for done in 0..count {
            let n = start + done as u64;
            if !self.push_code(self.least_code(n), n) {
                return done;
            }
        }
        count
    }

    /// Appends the code of the candidate of `n`. Returns false when the candidate has no byte code.
    pub(super) fn push_code(&mut self, code: Option<u8>, n: u64) -> bool {
        match code {
            Some(code) if self.space.decode(code, n) < self.space.coded() => {
                self.windows.codes_mut().push(code);
                true
            }
            _ => false,
        }
    }

    /// The least code that no lookup hits at `n`, the end of the codes. Reads all lookups.
    pub(super) fn least_code(&self, n: u64) -> Option<u8> {
        least(&self.hits(n, self.plan.beyond_lanes()))
    }

    /// The least code that no lookup hits at `n`, given the candidates in the lane of `n`. Reads no far lookup while a
    /// considered code is left, and only the marked ones where a code above is. In an unresolved lane it reads all.
    pub(super) fn lane_code(&mut self, n: u64, lanes: &Lanes, lane: usize) -> Option<u8> {
        let mut hits = self.hits(n, std::iter::empty());
        let mut open = self.open_code(lanes, lanes.rows(), lane, &mut hits);
        if open.is_none() {
            self.enter_hits(self.plan.after_far(), &mut hits);
            open = self.open_code(lanes, lanes.aside(), lane, &mut hits);
        }
        if open.is_some() {
            return open;
        }
        self.unresolved += 1;
        self.enter_hits(self.plan.far(), &mut hits);
        least(&hits)
    }

    /// The least candidate of a lane, among those in `rows`, that is not hit. Enters the hits of the marked lookups if
    /// they may hit it.
    fn open_code(&self, lanes: &Lanes, rows: &[[u8; LANES]], lane: usize, hits: &mut Hits) -> Option<u8> {
        let is_open = |hits: &Hits, code: u8| code != kernel::NONE && hits[usize::from(code)] == 0;
        let mut candidates = rows.iter().map(|row| row[lane]);
        let code = candidates.find(|&code| is_open(hits, code))?;
        if !lanes.is_unconsidered(lane, code) {
            return Some(code);
        }
        self.enter_hits(self.plan.marked(), hits);
        std::iter::once(code).chain(candidates).find(|&code| is_open(hits, code))
    }

    /// The codes hit at `n` by near and irregular lookups, by moves that leave one heap, and by the lookups in `lists`.
    fn hits<'a>(&'a self, n: u64, lists: impl Iterator<Item = &'a Probes>) -> Hits {
        let mut hits = [0; 256];
        let mut hit = |code: u8| hits[usize::from(code)] = 1;
        for lookup in &self.plan.irregular {
            if let Some(other) = self.rare_positions.other_part(lookup, n) {
                hit(self.windows.codes().get(other) ^ self.space.code(lookup.value));
            }
        }
        if self.plan.single_heap_moves {
            for option in self.rule.single_options(n, |m| self.windows.value_at(m)) {
                if option < self.space.coded() && !self.space.is_rare(option, n) {
                    hit(self.space.code(option));
                }
            }
        }
        self.enter_hits(std::iter::once(self.plan.near.probes()).chain(lists), &mut hits);
        hits
    }

    /// Enters the codes that these lookups hit at the next n, the end of the codes.
    fn enter_hits<'a>(&self, lists: impl Iterator<Item = &'a Probes>, hits: &mut Hits) {
        let codes = self.windows.codes().items();
        enter_hits(codes, codes.len(), lists, hits);
    }
}

//! Candidates of 64 positions at a time, and the reading of all lookups for one position.

use super::{CandidateStream, Stop};
use crate::kernel::{self, BitPlanes, LANES, Lanes, NearJob, Probes};
use crate::solver::lookups::plan::{FarLanes, SharedLanes};
use crate::solver::pipeline::Pipeline;

/// The codes that are options of one n: entry `code` is not 0.
type Hits = [u8; 256];

/// The least code that is not hit.
pub(super) fn least(hits: &Hits) -> Option<u8> {
    (0..=u8::MAX).find(|&code| hits[usize::from(code)] == 0)
}

impl CandidateStream {
    /// Computes the next `count` candidates, at most [`LANES`]. Appends to `used` the memory of lanes that another thread
    /// has evaluated.
    pub(super) fn lanes(&mut self, count: usize, pipeline: &Pipeline<'_>, used: &mut Vec<SharedLanes>) -> Stop {
        let start = self.end();
        // With many irregular lookups the kernel would leave most of the work undone.
        let use_kernel = count > LANES / 8 && self.plan.irregular.len() * 4 < self.lookups.list().len();
        let done = if !use_kernel {
            self.lanes_by_value(count)
        } else if let Some(mut far) =
            Some(start).filter(|_| self.plan.has_far()).and_then(|n| pipeline.take(n, &self.plan, self.windows.codes()))
        {
            let done = self.lanes_by_kernel(count, &mut far);
            used.push(far);
            done
        } else {
            let mut far = self.own_lanes.take().unwrap_or_default();
            let codes = self.windows.codes();
            let read = (codes.items(), codes.at(start));
            far.evaluate(&self.plan, self.kernel, read, read);
            let done = self.lanes_by_kernel(count, &mut far);
            self.own_lanes = Some(far);
            done
        };
        self.windows.decode_from(start);
        if done == count { Stop::Done } else { Stop::TooWide }
    }

    /// Appends the codes of the next `count` candidates, given what the far lookups leave. Returns their number, which is
    /// less than `count` when one has no byte code.
    fn lanes_by_kernel(&mut self, count: usize, far: &mut FarLanes) -> usize {
        let start = self.end();
        let at = self.windows.codes().at(start);
        self.kernel.check(self.windows.codes().items(), at, &self.plan.late, &mut far.lanes);
        let FarLanes { planes, lanes, .. } = far;
        let mut done = 0;
        while done < count {
            if self.plan.is_regular() {
                let codes = self.windows.codes_mut().items_mut();
                codes.resize(at + count, 0);
                done = self.kernel.near(codes, NearJob { at, probes: &self.plan.near, from: done, to: count }, lanes);
                codes.truncate(at + done);
                if done == count {
                    break;
                }
            }
            let n = start + done as u64;
            let code = self.lane_code(n, lanes, planes, done);
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

    /// The least code that no lookup hits at `n`, given the result of the kernel in the lane of `n`. Reads only the
    /// lookups that the answer needs, and no marked lookup when the answer is among the marked codes.
    pub(super) fn lane_code(&mut self, n: u64, lanes: &Lanes, planes: &BitPlanes, lane: usize) -> Option<u8> {
        let mut hits = self.hits(n, std::iter::empty());
        let is_open = |hits: &Hits, code: u8| code != kernel::NONE && hits[usize::from(code)] == 0;
        let mut candidates = lanes.rows().iter().map(|row| row[lane]);
        let mut open = candidates.find(|&code| is_open(&hits, code));
        if let Some(code) = open
            && lanes.is_unmarked(code)
        {
            self.enter_hits(self.plan.marked(), &mut hits);
            open = std::iter::once(code).chain(candidates).find(|&code| is_open(&hits, code));
        }
        if open.is_some() {
            return open;
        }
        self.unresolved += 1;
        self.enter_hits(self.plan.checked(), &mut hits);
        open = planes.open(lane).find(|&code| is_open(&hits, code));
        if open.is_some() {
            return open;
        }
        self.enter_hits(self.plan.marked(), &mut hits);
        least(&hits)
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
        self.enter_hits(std::iter::once(&self.plan.near).chain(lists), &mut hits);
        hits
    }

    /// Enters the codes that these lookups hit at the next n, the end of the codes.
    fn enter_hits<'a>(&self, lists: impl Iterator<Item = &'a Probes>, hits: &mut Hits) {
        let codes = self.windows.codes().items();
        let end = codes.len();
        for list in lists {
            // One loop per list: the loop over a flattened iterator is slower.
            list.list().iter().for_each(|probe| hits[usize::from(codes[end - probe.offset] ^ probe.code())] = 1);
        }
    }
}

//! Which pairs to mark: those that hit most values below G(n), learnt on the last values.
//!
//! The order is greedy, as in [`lookup_order`](crate::solver::lookup_order): each next part is one that hits most
//! of the values below G(n), where each hit lowers the weight of a value to 3/8. A part at most a quarter worse than the
//! best is good enough.

use super::{LONGEST_BATCH, WideSolver};
use crate::kernel::WidePart;
use crate::theory::nimber::index;
use std::collections::BinaryHeap;

/// Bound, exclusive, of the common parts that are marked.
const DEPTH: u64 = 1 << 14;

/// Maximum number of positions in a sample.
const SAMPLE: u64 = 256;

/// Number of last values over which a sample is spread.
const SPAN: u64 = 1 << 16;

/// Weight of a value that no chosen part hits yet.
const FULL_WEIGHT: u32 = 1 << 12;

/// Maximum number of positions per new hit of a marked rare part. Learning ends with the first part that needs more
/// positions to hit one more common value. A mark costs 0.3 ns per position, and a candidate that it saves 0.1 µs.
const COMMON_PER_MARK: u64 = 300;

/// Where there are many rare parts, the maximum is their number divided by this one instead, if that is larger: each
/// candidate is held against all of them, at 0.02 ns each.
const RARE_PARTS_PER_MARK: u64 = 17;

/// Maximum number of positions per new hit of a marked common part, which gives rare values: the search for a pair takes
/// 20 ns.
const RARE_PER_MARK: u64 = 60;

/// Maximum number of marked parts of one class.
const MOST_MARKS: usize = 1 << 15;

impl WideSolver {
    /// Learns the marks again when the sequence has doubled.
    pub(super) fn learn_when_due(&mut self) {
        let end = self.end();
        if end >= 2 * self.marks.learnt_at {
            self.marks.learnt_at = end;
            let marks = self.learn();
            self.marks.depth = marks.iter().map(|mark| mark.offset as u64).max().unwrap_or(0);
            self.marks.parts.replace(marks);
        }
    }

    /// The parts of one class that may be marked: they exist for all positions from now on, and are far enough apart.
    fn parts(&self, rare: bool) -> Vec<WidePart> {
        let end = self.end();
        let least = LONGEST_BATCH as u64;
        let mut parts = Vec::new();
        for split in self.rule.splits() {
            let most = (end / 4).min(split.largest_small_part(end - SPAN.min(end / 4)) / 2);
            let mut push = |a: u64, value: u16| {
                parts.push(WidePart { offset: index(a + split.remove), value: value ^ split.constant });
            };
            if rare {
                let rare = self.rare_positions.list().iter().filter(|(r, _)| (least..most).contains(r));
                rare.for_each(|&(r, value)| push(r, value));
                continue;
            }
            for a in least..DEPTH.min(most) {
                let value = self.head.value(a);
                if !self.space.is_rare(value, a) {
                    push(a, value);
                }
            }
        }
        parts
    }

    /// The parts to mark: rare parts, which give common values, then common parts, which give rare values.
    fn learn(&self) -> Vec<WidePart> {
        let end = self.end();
        let span = SPAN.min(end / 4);
        let count = SAMPLE.min(span / 4).max(1);
        let step = (span / count).saturating_sub(1) | 1;
        let sample: Vec<u64> = (0..count).map(|i| end - 1 - i * step % span).collect();
        let (rare, common) = (self.parts(true), self.parts(false));
        let common_per_mark = COMMON_PER_MARK.max(rare.len() as u64 / RARE_PARTS_PER_MARK);
        let (mut marks, more) = rayon::join(
            || self.best_parts(&rare, &sample, common_per_mark),
            || self.best_parts(&common, &sample, RARE_PER_MARK),
        );
        marks.extend(more);
        marks
    }

    /// The best of the parts, best first. Ends with the part that hits a new value below the answer at one position of
    /// the sample in `per_mark`.
    fn best_parts(&self, parts: &[WidePart], sample: &[u64], per_mark: u64) -> Vec<WidePart> {
        let bound = self.classes.bound();
        let mut weight = vec![0u32; bound * sample.len()];
        for (row, &n) in weight.chunks_mut(bound).zip(sample) {
            row[..usize::from(self.values.get(n))].fill(FULL_WEIGHT);
        }
        let items = self.values.items();
        let ats: Vec<usize> = sample.iter().map(|&n| self.values.at(n)).collect();
        let places = |part: WidePart| {
            let option = move |at: &usize| usize::from(items[at - part.offset] ^ part.value);
            ats.iter().enumerate().map(move |(i, at)| i * bound + option(at))
        };
        let gain = |weight: &[u32], part: WidePart| places(part).map(|place| u64::from(weight[place])).sum::<u64>();
        let mut queue: BinaryHeap<(u64, usize)> =
            parts.iter().enumerate().map(|(i, &part)| (gain(&weight, part), i)).collect();
        let mut best = Vec::new();
        while let Some((most, i)) = queue.pop() {
            let part = parts[i];
            let now = gain(&weight, part);
            let next = queue.peek().map_or(0, |next| next.0);
            if now < most && now * 4 < next * 3 {
                queue.push((now, i));
                continue;
            }
            best.push(part);
            for place in places(part) {
                weight[place] = weight[place] * 3 / 8;
            }
            if now * per_mark < u64::from(FULL_WEIGHT) * sample.len() as u64 || best.len() >= MOST_MARKS {
                break;
            }
        }
        best
    }
}

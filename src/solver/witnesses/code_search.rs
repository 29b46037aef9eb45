//! The search on codes: 64 positions at a time by marks, then all targets of one n in one pass.
//!
//! A pair of common parts gives a rare value, and most options are such pairs. The code of a target is the XOR of the
//! codes of the two parts and of the constant of the split.

use super::GroupSearch;
use super::head::HEAD_PARTS;
use crate::kernel::{BitPlanes, LANES};
use crate::solver::codes::POISON;
use crate::theory::rule::Split;
use std::ops::Range;

impl GroupSearch<'_> {
    /// Calls `see(n, codes)` for each of the `lanes` values from `first` on that has open targets: rare values below
    /// G(n) that no marked part gives. `codes` are the codes of these targets.
    pub(super) fn open_targets(&self, first: u64, lanes: usize, mut see: impl FnMut(u64, &mut Vec<u8>)) {
        let GroupSearch { stream, kernel, codes } = *self;
        let considered = stream.learning.codes_considered;
        let at = codes.at(first);
        let mut planes = BitPlanes::new(considered);
        kernel.mark(codes.items(), at, &stream.parts.marks, &mut planes);
        let mut ends = [0; LANES];
        let mut below = [0; LANES];
        for (lane, (n, &value)) in (first..).zip(stream.recent.slice(first, first + lanes as u64)).enumerate() {
            // A value without a code, which only a changed bit in memory can give, has no targets.
            let rare_below = stream.rare_below[usize::from(n % 2 == 1)].get(usize::from(value));
            ends[lane] = rare_below.copied().map_or(0, usize::from);
            below[lane] = ends[lane].min(considered).to_le_bytes()[0];
        }
        kernel.marks_to_open(&mut planes, &below);
        kernel.clear_hits(codes.items(), at, &stream.parts.clear_probes, &mut planes);
        let mut some = ends.map(|end| u8::from(end > considered));
        planes.rows().iter().for_each(|row| some.iter_mut().zip(row).for_each(|(some, bits)| *some |= bits));
        let mut open = Vec::new();
        for lane in (0..lanes).filter(|&lane| some[lane] != 0) {
            open.clear();
            for (first, rows) in (0..=u8::MAX).step_by(64).zip(planes.rows().chunks(8)) {
                let mut bits = rows.iter().rev().fold(0, |bits, row| bits << 8 | u64::from(row[lane]));
                while bits != 0 {
                    open.push(first + bits.trailing_zeros().to_le_bytes()[0]);
                    bits &= bits - 1;
                }
            }
            open.extend((considered..ends[lane]).map(|code| code.to_le_bytes()[0]));
            see(first + lane as u64, &mut open);
        }
    }

    /// Removes the targets, given by their codes, that splits of `n` with a part below [`HEAD_PARTS`] give. Returns the
    /// largest smaller part of these witnesses. Searches the small parts of all splits before the larger parts of any,
    /// because one of the splits may never give the value.
    pub(super) fn find(&self, n: u64, targets: &mut Vec<u8>) -> u64 {
        /// Bounds of the ranges of smaller parts, searched one after the other for all splits.
        const ENDS: [u64; 4] = [1, 1 + (1 << 10), 1 + (1 << 13), HEAD_PARTS];
        let mut depth = 0;
        for ends in ENDS.windows(2) {
            for split in &self.stream.splits {
                let to = ends[1].min(self.stream.largest_held_part(n, split) + 1);
                if targets.is_empty() || to <= ends[0] {
                    continue;
                }
                depth = depth.max(self.find_between(n, split, ends[0]..to, targets));
            }
        }
        depth
    }

    /// Removes the targets that one split with smaller part in `parts` gives, and returns the largest smaller part of
    /// these witnesses. Compares codes where they are held. A rare part has no code: a pair that matches with a
    /// placeholder is no witness.
    fn find_between(&self, n: u64, split: &Split, parts: Range<u64>, targets: &mut Vec<u8>) -> u64 {
        let GroupSearch { stream, kernel, codes } = *self;
        let Range { start: from, end: to } = parts;
        let last = n - split.remove;
        let mut pairs = 0;
        if split.constant < stream.space.coded() && codes.hold(last, to, last) {
            let small = stream.head.codes(from, to);
            let large = &codes.items()[codes.at(last - to + 1)..codes.at(last - from + 1)];
            // XOR with the constant turns the codes of targets into the codes that two parts must give, and back.
            let constant = stream.space.code(split.constant);
            targets.iter_mut().for_each(|code| *code ^= constant);
            kernel.find_code_pairs(small, large, targets, |_, seen| {
                let common = small[small.len() - seen] != POISON && large[large.len() - seen] != POISON;
                pairs = if common { pairs.max(seen) } else { pairs };
                common
            });
            targets.iter_mut().for_each(|code| *code ^= constant);
        } else {
            let (small, large) = stream.part_values(n, split, from, to);
            targets.retain(|&code| {
                let wanted = stream.space.decode_rare(code, n) ^ split.constant;
                let seen = kernel.find_value_pair(small, large, wanted);
                pairs = pairs.max(seen.unwrap_or(0));
                seen.is_none()
            });
        }
        if pairs == 0 { 0 } else { from - 1 + pairs as u64 }
    }
}

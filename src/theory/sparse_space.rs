//! The sparse space (m, e): which values are rare at which n, and the codes of the common ones.
//!
//! Choose a mask m and e in {0, 1} such that popcount(c & m) + e*s has the same parity h for every split (s, c) of the
//! rule. Call v **rare at n** if popcount(v & m) + e*n + h is even, else **common at n**. For a split, class(c ^ G(a) ^
//! G(b) at n) = class(a) + class(b) mod 2, because popcount is linear over XOR mod 2 and n = s + a + b: rare+rare and
//! common+common give rare options, rare+common gives common ones. So the common options that come from splits have
//! exactly one rare part. (The sparse space of *Winning Ways*, chapter 4, is the case e = 0. For .106 and
//! remove-a-square no mask alone gives a sparse space, but a mask with the position term does.)
//!
//! **Code.** Drop the lowest bit j of the mask: the map v -> code is linear over XOR, and on the values common at one n
//! it is one-to-one and increasing, because bit j is a function of the others. For Grundy's game, m = 0x1fe, the common
//! values below 512 become the bytes 0..=255, and the mex can be taken without decoding.

use crate::error::Result;
use crate::theory::definition::{Sequence, for_each_piece};
use crate::theory::rule::Rule;
use std::fmt;
use std::ops::Range;

/// A mask and position term that the rule admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SparseSpace {
    /// The mask m; 0 when every position counts as rare.
    pub mask: u16,
    /// The position term e, 0 or 1.
    pub position: u8,
    /// The parity h, the same for all splits, of popcount(c & m) + e*s over the splits.
    parity: u8,
}

impl fmt::Display for SparseSpace {
    /// The mask, and whether there is a position term.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let term = if self.position == 0 { "" } else { " with the position term" };
        write!(f, "{:#x}{term}", self.mask)
    }
}

impl SparseSpace {
    /// The space without a mask, in which every position is rare.
    pub const NONE: SparseSpace = SparseSpace { mask: 0, position: 0, parity: 0 };

    /// The space (mask, position), or `None` if the mask is 0, the rule has no splits or moves that leave three heaps,
    /// or its splits do not admit the space.
    #[must_use]
    pub fn new(rule: &Rule, mask: u16, position: u8) -> Option<SparseSpace> {
        let parity = |remove: u64, constant: u16| {
            let odd = u8::from((constant & mask).count_ones() % 2 == 1);
            odd ^ (position & u8::from(remove % 2 == 1))
        };
        if !rule.may_be_sparse() {
            return None;
        }
        let mut parities = rule.splits().map(|s| parity(s.remove, s.constant));
        let first = parities.next()?;
        (mask != 0 && position <= 1 && parities.all(|p| p == first)).then_some(SparseSpace {
            mask,
            position,
            parity: first,
        })
    }

    /// Whether this is a space of the rule, or [`SparseSpace::NONE`].
    #[must_use]
    pub fn belongs_to(self, rule: &Rule) -> bool {
        self == SparseSpace::NONE || SparseSpace::new(rule, self.mask, self.position) == Some(self)
    }

    /// Whether value `v` is rare at `n`; every value is rare at n = 0.
    #[inline]
    #[must_use]
    pub fn is_rare(self, v: u16, n: u64) -> bool {
        n == 0 || self.class(v, n & 1 == 1) == 0
    }

    /// The rare positions among `values` = G(`from`), G(`from` + 1), …, with their values.
    ///
    /// A resumed run scans the whole table, in which rare positions are one in a million. So the scan skips every group
    /// whose sum of classes shows that it has no rare position; the compiler vectorises this sum.
    pub(crate) fn rare_positions(self, from: u64, values: &[u16]) -> impl Iterator<Item = (u64, u16)> {
        /// Number of values in a group.
        const VALUES_PER_GROUP: usize = 256;
        let groups = (from..).step_by(VALUES_PER_GROUP).zip(values.chunks(VALUES_PER_GROUP));
        let some = groups.filter(move |&(first, group)| {
            let flip = u16::from(self.position);
            let (even, _) = group.as_chunks::<2>();
            let common = |v: u16, odd: u16| {
                let folded = v & self.mask;
                let folded = folded ^ folded >> 8;
                let folded = folded ^ folded >> 4;
                let folded = folded ^ folded >> 2;
                (folded ^ folded >> 1 ^ (flip & odd) ^ u16::from(self.parity)) & 1
            };
            let odd = u16::from(first % 2 == 1);
            let all = even.iter().map(|&[a, b]| common(a, odd) + common(b, odd ^ 1)).sum::<u16>();
            first == 0 || usize::from(all) < group.len()
        });
        let each = some.flat_map(|(first, group)| (first..).zip(group.iter().copied()));
        each.filter(move |&(n, v)| self.is_rare(v, n))
    }

    /// Whether a move that removes s tokens, leaves one heap and XORs c gives options of the class of that heap.
    #[must_use]
    pub(crate) fn keeps_class(self, remove: u64, constant: u16) -> bool {
        self.class(constant, remove % 2 == 1) == self.parity
    }

    /// 0 for rare, 1 for common, for n > 0 of the given parity.
    #[inline]
    fn class(self, v: u16, odd: bool) -> u8 {
        u8::from((v & self.mask).count_ones() % 2 == 1) ^ (self.position & u8::from(odd)) ^ self.parity
    }

    /// The number of the bit that the code drops, counted from 0.
    fn dropped(self) -> u32 {
        self.mask.trailing_zeros()
    }

    /// The bound of the values that have a byte code: 512, or 256 if the code drops a bit above bit 8.
    #[must_use]
    pub fn coded(self) -> u16 {
        if self.dropped() <= 8 { 512 } else { 256 }
    }

    /// The code of a value below [`SparseSpace::coded`]; linear over XOR.
    ///
    /// # Panics
    /// If the value has no code.
    #[inline]
    #[must_use]
    pub fn code(self, v: u16) -> u8 {
        assert!(v < self.coded(), "a value without a code");
        let low = (1u32 << self.dropped()) - 1;
        let v = u32::from(v);
        // At most 8 bits remain: 9 bits without the dropped one, or 8 bits below the dropped one.
        ((v >> 1 & !low) | (v & low)).to_le_bytes()[0]
    }

    /// The value common at `n` that has this code: the value v with `code(v) == code` if v is below
    /// [`SparseSpace::coded`]. Codes that would need a larger value give one that has no code.
    #[inline]
    #[must_use]
    pub fn decode(self, code: u8, n: u64) -> u16 {
        let v = self.without_dropped(code);
        if self.class(v, n & 1 == 1) == 1 { v } else { v ^ self.lowest() }
    }

    /// The value rare at `n > 0` that has this code; it increases with the code, as [`SparseSpace::decode`] does.
    #[inline]
    #[must_use]
    pub fn decode_rare(self, code: u8, n: u64) -> u16 {
        let v = self.without_dropped(code);
        if self.class(v, n & 1 == 1) == 0 { v } else { v ^ self.lowest() }
    }

    /// The lowest bit of the mask.
    fn lowest(self) -> u16 {
        self.mask & self.mask.wrapping_neg()
    }

    /// The value of a code with 0 as the dropped bit.
    #[inline]
    fn without_dropped(self, code: u8) -> u16 {
        let low = (1u32 << self.dropped()) - 1;
        let code = u32::from(code);
        let without = (code & !low) << 1 | (code & low);
        u16::try_from(without & 0xffff).expect("16 bits")
    }
}

/// The number of occurrences of each value at even and at odd n, for n >= 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: [Vec<i64>; 2],
}

impl Default for Histogram {
    /// The histogram of no values.
    fn default() -> Histogram {
        Histogram { counts: [vec![0; 1], vec![0; 1]] }
    }
}

impl Histogram {
    /// Counts the values of `past`.
    ///
    /// # Errors
    /// Any error of reading `past`.
    pub fn of(past: &dyn Sequence) -> Result<Histogram> {
        let mut histogram = Histogram::default();
        histogram.add(past, 1..past.len(), 1)?;
        Ok(histogram)
    }

    /// Counts each of the values in `range`, which begins at n = 1 or later, as `weight` values more.
    ///
    /// # Errors
    /// Any error of reading `past`.
    pub(crate) fn add(&mut self, past: &dyn Sequence, range: Range<u64>, weight: i64) -> Result<()> {
        for_each_piece(past, range.start, range.end, |from, values| {
            for (n, &v) in (from..).zip(values) {
                let v = usize::from(v);
                let length = (v + 1).next_power_of_two();
                if length > self.counts[0].len() {
                    self.counts.iter_mut().for_each(|counts| counts.resize(length, 0));
                }
                self.counts[usize::from(n & 1 == 1)][v] += weight;
            }
            Ok(())
        })
    }

    /// The largest value; 0 if there are no values.
    pub(crate) fn largest(&self) -> u16 {
        let largest = |counts: &Vec<i64>| counts.iter().rposition(|&count| count > 0);
        let largest = self.counts.iter().filter_map(largest).max().unwrap_or(0);
        u16::try_from(largest).expect("a value")
    }

    /// The number of rare positions under a space, n = 0 included.
    #[must_use]
    pub(crate) fn rare_positions(&self, space: SparseSpace) -> u64 {
        let rare = |odd: usize| {
            let counts = (0..=u16::MAX).zip(&self.counts[odd]);
            counts.filter(|&(v, _)| space.class(v, odd == 1) == 0).map(|(_, &count)| count).sum::<i64>()
        };
        u64::try_from(1 + rare(0) + rare(1)).expect("a count")
    }

    /// The admissible space with the fewest rare positions, and their number (n = 0 included).
    ///
    /// For a mask m, the sum of (-1)^popcount(v & m) over all occurrences v is one entry of the Walsh–Hadamard
    /// transform of the histogram. So one transform for each parity of n counts the rare positions of all masks at
    /// once.
    #[must_use]
    pub fn best_space(&self, rule: &Rule) -> (SparseSpace, u64) {
        let totals = self.counts.each_ref().map(|counts| counts.iter().sum::<i64>());
        let transforms = self.counts.each_ref().map(|counts| walsh_hadamard(counts.clone()));
        let all = (SparseSpace::NONE, u64::try_from(1 + totals[0] + totals[1]).expect("a count"));
        (1..transforms[0].len())
            .flat_map(|mask| [0, 1].map(|position| (mask, position)))
            .filter_map(|(mask, position)| SparseSpace::new(rule, u16::try_from(mask).expect("16 bits"), position))
            .map(|space| {
                let counts = [0, 1].map(|odd| {
                    let sign = if space.class(0, odd == 1) == 0 { 1 } else { -1 };
                    (totals[odd] + sign * transforms[odd][usize::from(space.mask)]) / 2
                });
                (space, u64::try_from(1 + counts[0] + counts[1]).expect("a count"))
            })
            .fold(all, |best, next| if next.1 < best.1 { next } else { best })
    }
}

/// The Walsh–Hadamard transform of a list whose length is a power of two.
fn walsh_hadamard(mut counts: Vec<i64>) -> Vec<i64> {
    let mut half = 1;
    while half < counts.len() {
        for block in counts.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for (a, b) in low.iter_mut().zip(high) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        half *= 2;
    }
    counts
}

#[cfg(test)]
mod tests;

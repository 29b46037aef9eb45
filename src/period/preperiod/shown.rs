//! Witnesses that no proper divisor of p is a period.

use crate::period::primes::prime_factors;
use crate::theory::nimber::index;
use std::ops::Range;

/// Searches for positions which show that p/f is not a period, for each prime factor f of p.
pub(super) struct Shown {
    /// The positions to compare, all of which belong to the period.
    heaps: Range<u64>,
    /// The values of `heaps` seen up to now.
    base: Vec<u16>,
    /// Pairs (f, p/f) for which no such position is found yet.
    open: Vec<(u64, u64)>,
    /// Pairs (f, n) with G(n) != G(n + p/f), sorted.
    pub(super) found: Vec<(u64, u64)>,
}

impl Shown {
    pub(super) fn new(heaps: Range<u64>, p: u64) -> Shown {
        let open = prime_factors(p).into_iter().map(|f| (f, p / f)).collect();
        Shown { heaps, base: Vec::new(), open, found: Vec::new() }
    }

    /// Receives the next values, those from `from` on.
    pub(super) fn see(&mut self, from: u64, values: &[u16]) {
        let Range { start, end } = self.heaps;
        let part = |heaps: Range<u64>| {
            let first = heaps.start.max(from);
            let last = heaps.end.min(from + values.len() as u64);
            if first < last { (first, &values[index(first - from)..index(last - from)]) } else { (first, &[][..]) }
        };
        self.base.extend_from_slice(part(start..end).1);
        let base = &self.base;
        let found = &mut self.found;
        self.open.retain(|&(f, shift)| {
            let (first, values) = part(start + shift..end.saturating_add(shift));
            let other = values.iter().zip((first..).map(|n| base[index(n - shift - start)]));
            let Some(i) = other.into_iter().position(|(&a, b)| a != b) else { return true };
            found.push((f, first + i as u64 - shift));
            false
        });
        self.found.sort_unstable();
    }
}

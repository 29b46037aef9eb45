//! Functions through which benchmarks time the two steps of the comparison of all pairs, and its cost constant.

/// Number of pairs assumed to be compared in the time in which one pair is entered in the set.
pub const ENTERED_TO_COMPARED: u64 = super::ENTER_PAIRS;

/// Enters the values of pairs of parts in a set.
pub fn enter(seen: &mut [bool], small: &[u8], large: &[u8]) {
    super::mark(seen, (small, large), 0);
}

//! The data of the jobs on 16-bit values: parts of splits, the window in which they read, and rows of candidates.

/// Number of consecutive n for which [`Kernel::wide_hits`](super::Kernel::wide_hits) compares options at once.
pub(crate) const WIDE_LANES: usize = 64;

/// One part of a pair: in each lane it gives the option `window[at + lane - offset] ^ value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WidePart {
    /// Distance from n to the other part.
    pub(crate) offset: usize,
    /// The value of the part, or that value XORed with the constant of a split.
    pub(crate) value: u16,
}

/// Maximum number of rows of candidates that one job holds against the options.
pub(crate) const WIDE_ROWS: usize = 4;

/// One candidate per lane.
pub(crate) type WideRow = [u16; WIDE_LANES];

/// Parts, and the window in which they read the other parts. Each job asserts that all of them read only values inside
/// the window, in all lanes.
pub(crate) struct WideParts<'a, I> {
    pub(crate) window: &'a [u16],
    /// The index of lane 0 in the window.
    pub(crate) at: usize,
    pub(crate) list: I,
}

/// The values that a part reads in lanes 0, 1, …
#[inline(always)]
pub(super) fn others(window: &[u16], at: usize, part: WidePart) -> &[u16; WIDE_LANES] {
    let from = at.wrapping_sub(part.offset);
    window[from..from.wrapping_add(WIDE_LANES)].try_into().expect("WIDE_LANES values")
}

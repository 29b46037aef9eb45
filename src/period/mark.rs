//! The window that a watch remembers ([`super::watch`]).

use crate::run::ProofSummary;
use memchr::memmem::Finder;

/// Number of values at the end of the window that are searched for; the other values are compared where these occur.
pub(super) const NEEDLE: usize = 64;

/// The window before n1, and what is known about the values since.
pub(super) struct Mark {
    pub(super) n1: u64,
    /// How the values since n1 were proved; its `depth` bounds the smaller parts of their witnesses, not counting
    /// pairs of two rare parts ([`theorems`](super::theorems)).
    pub(super) proof: ProofSummary,
    /// The values before n1.
    pub(super) window: Vec<u16>,
    /// Searches for the low bytes of the last [`NEEDLE`] values of `window`.
    pub(super) needle: Finder<'static>,
}

impl Mark {
    /// Creates a mark at n1; `None` when `window` is shorter than [`NEEDLE`].
    pub(super) fn new(n1: u64, proof: ProofSummary, window: Vec<u16>) -> Option<Mark> {
        let last = &window[window.len().checked_sub(NEEDLE)?..];
        let low: Vec<u8> = last.iter().map(|v| v.to_le_bytes()[0]).collect();
        let needle = Finder::new(&low).into_owned();
        Some(Mark { n1, proof, window, needle })
    }
}

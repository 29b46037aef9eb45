//! Lookups in codes, and lists of them.

use super::LANES;

/// One lookup: the byte `offset` positions back in the window, XOR `code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Probe {
    /// The code, four times: vector instructions broadcast this form at no cost. It is the first field, because
    /// otherwise the compiler loads both fields and separates them with two shuffles.
    pub(super) codes: [u8; 4],
    /// Distance back in the window, in values.
    pub offset: usize,
}

impl Probe {
    /// The lookup of the byte `offset` positions back, XOR `code`.
    #[must_use]
    pub fn new(offset: usize, code: u8) -> Probe {
        Probe { offset, codes: [code; 4] }
    }

    /// The code that is XORed to the byte.
    #[inline]
    #[must_use]
    pub fn code(&self) -> u8 {
        self.codes[0]
    }
}

/// A list of lookups with their least and largest offset, so that the bounds of a window can be checked without a scan.
#[derive(Clone, Debug, Hash)]
pub struct Probes {
    list: Vec<Probe>,
    min_offset: usize,
    max_offset: usize,
}

impl Default for Probes {
    fn default() -> Probes {
        Probes::new()
    }
}

impl FromIterator<Probe> for Probes {
    fn from_iter<I: IntoIterator<Item = Probe>>(list: I) -> Probes {
        let mut probes = Probes::new();
        list.into_iter().for_each(|probe| probes.push(probe));
        probes
    }
}

impl Probes {
    /// An empty list.
    #[must_use]
    pub fn new() -> Probes {
        Probes { list: Vec::new(), min_offset: usize::MAX, max_offset: 0 }
    }

    /// Appends a lookup.
    pub fn push(&mut self, probe: Probe) {
        self.min_offset = self.min_offset.min(probe.offset);
        self.max_offset = self.max_offset.max(probe.offset);
        self.list.push(probe);
    }

    /// Removes all lookups.
    pub fn clear(&mut self) {
        self.list.clear();
        (self.min_offset, self.max_offset) = (usize::MAX, 0);
    }

    /// The lookups, in the order in which they were added.
    #[must_use]
    pub fn list(&self) -> &[Probe] {
        &self.list
    }

    /// The largest offset; 0 for an empty list.
    #[must_use]
    pub fn max_offset(&self) -> usize {
        self.max_offset
    }

    /// Whether the 64 bytes that each lookup reads are inside a window of this length.
    pub(super) fn are_far(&self, at: usize, length: usize) -> bool {
        self.list.is_empty() || (self.min_offset + length >= at + LANES && self.max_offset <= at)
    }

    /// Whether each offset is in `1..LANES` and inside the window.
    pub(super) fn are_near(&self, at: usize) -> bool {
        self.list.is_empty() || (self.min_offset >= 1 && self.max_offset < LANES && self.max_offset <= at)
    }
}

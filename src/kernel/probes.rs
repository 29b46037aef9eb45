//! Probes (lookups in codes), lists of them, and lists that fit a window.

use super::LANES;

/// One lookup: the code `offset` positions back in the window, XOR `code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub(crate) struct Probe {
    /// The code, four times: vector instructions broadcast this form at no cost. It is the first field, because
    /// otherwise the compiler loads both fields and separates them with two shuffles.
    pub(super) codes: [u8; 4],
    /// Distance back in the window, in positions.
    pub(crate) offset: usize,
}

impl Probe {
    /// The lookup of the code `offset` positions back, XOR `code`.
    #[must_use]
    pub(crate) fn new(offset: usize, code: u8) -> Probe {
        Probe { offset, codes: [code; 4] }
    }

    /// The code that is XORed to the code in the window.
    #[inline]
    pub(crate) fn code(&self) -> u8 {
        self.codes[0]
    }
}

/// A list of probes with their least and largest offset, with which the bounds of a window are checked without a scan.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Probes {
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
    pub(crate) fn new() -> Probes {
        Probes { list: Vec::new(), min_offset: usize::MAX, max_offset: 0 }
    }

    /// Appends a probe.
    pub(crate) fn push(&mut self, probe: Probe) {
        self.min_offset = self.min_offset.min(probe.offset);
        self.max_offset = self.max_offset.max(probe.offset);
        self.list.push(probe);
    }

    /// Removes all probes.
    #[cfg(test)]
    pub(crate) fn clear(&mut self) {
        *self = Probes::new();
    }

    /// The probes, in the order in which they were added.
    #[inline]
    pub(crate) fn list(&self) -> &[Probe] {
        &self.list
    }

    /// The largest offset; 0 for an empty list.
    #[inline]
    pub(crate) fn max_offset(&self) -> usize {
        self.max_offset
    }

    /// Whether each offset is in `1..LANES` and inside the window.
    pub(super) fn are_near(&self, at: usize) -> bool {
        self.list.is_empty() || (self.min_offset >= 1 && self.max_offset < LANES && self.max_offset <= at)
    }
}

/// Probes that can be evaluated in all lanes at once: each of them reads [`LANES`] bytes inside the window.
///
/// Invariant: `offset <= at` and `at - offset + LANES <= window.len()` for the offset of each probe. [`FarProbes::new`]
/// checks it, and the vector code reads the window without further checks.
#[derive(Clone, Copy, Debug)]
pub(super) struct FarProbes<'a> {
    /// The codes of earlier values.
    pub(super) window: &'a [u8],
    /// Index of lane 0 in the window.
    pub(super) at: usize,
    probes: &'a Probes,
}

impl<'a> FarProbes<'a> {
    /// The probes of a list, for the lanes from index `at` of the window on.
    ///
    /// # Panics
    /// If a probe reads bytes outside the window.
    #[inline]
    pub(super) fn new(window: &'a [u8], at: usize, probes: &'a Probes) -> FarProbes<'a> {
        let is_inside =
            || probes.max_offset <= at && window.len() >= LANES && at - probes.min_offset <= window.len() - LANES;
        assert!(probes.list.is_empty() || is_inside(), "a probe outside its window");
        FarProbes { window, at, probes }
    }

    /// The probes, in the order in which they were added to their list.
    #[inline]
    pub(super) fn list(self) -> &'a [Probe] {
        &self.probes.list
    }
}

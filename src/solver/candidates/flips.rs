//! Bit flips for tests; `draw` selects the place.

use super::CandidateStream;
use crate::kernel::Probe;
use crate::theory::nimber::index;
use std::sync::Arc;

impl CandidateStream {
    pub(in crate::solver) fn flip_code(&mut self, draw: u64, bit: u8, unproved: usize) {
        // No lookup reads the code of a rare position, and no check covers codes that are not proved yet.
        let start = self.first_code();
        let proved = self.end() - start - unproved as u64;
        let n = start + draw % proved;
        let n = (n..).find(|&n| !self.rare_positions.contains(n)).expect("a common position");
        let codes = self.windows.codes_mut();
        let at = codes.at(n);
        codes.items_mut()[at] ^= bit;
    }

    pub(in crate::solver) fn flip_rare(&mut self, draw: u64, bit: u8) {
        let rare_positions = self.rare_positions.list_mut();
        let i = index(draw) % rare_positions.len();
        if draw.is_multiple_of(2) {
            rare_positions[i].0 ^= u64::from(bit);
        } else {
            rare_positions[i].1 ^= u16::from(bit);
        }
    }

    /// Whether other threads may evaluate the far lookups of the plan.
    pub(in crate::solver) fn shares_far(&self) -> bool {
        self.plan.shares_far()
    }

    pub(in crate::solver) fn first_code(&self) -> u64 {
        self.windows.codes().start()
    }

    pub(in crate::solver) fn flip_value(&mut self, draw: u64, bit: u8, unproved: usize) {
        let values = self.windows.values_mut().items_mut();
        let i = index(draw) % (values.len() - unproved);
        values[i] ^= u16::from(bit) << (draw % 8);
    }

    /// Returns false when no lookup is marked.
    pub(in crate::solver) fn flip_plan(&mut self, draw: u64, bit: u8) -> bool {
        let plan = Arc::make_mut(self.plan.value_mut());
        let list = plan.mark.list().to_vec();
        plan.mark.clear();
        for (i, probe) in list.iter().enumerate() {
            let flipped = if i == index(draw) % list.len() { bit } else { 0 };
            plan.mark.push(Probe::new(probe.offset, probe.code() ^ flipped));
        }
        !list.is_empty()
    }
}

//! Functions through which benchmarks time single steps of the witness search.

use super::{GROUP_VALUES, GroupSearch, Witnesses};
use crate::error::Result;
use crate::kernel::{BitPlanes, Kernel, LANES};
use crate::solver::codes::Codes;
use crate::theory::nimber::index;
use crate::theory::rule::Rule;
use crate::theory::sparse_space::SparseSpace;

/// The targets of one n that are left to the search position by position, given by their codes.
pub type OpenTargets = Vec<(u64, Vec<u8>)>;

/// A witness stream with a block of values whose witnesses are to be searched.
pub struct WitnessBench {
    witnesses: Witnesses,
    codes: Codes,
    past: Vec<u16>,
    from: u64,
    to: u64,
}

impl WitnessBench {
    /// A stream that continues the first `from` values in the sparse space of this mask and position term, with the
    /// other values as its block. It learns its parts when there are values enough.
    ///
    /// # Errors
    /// Any error of the solver.
    ///
    /// # Panics
    /// If the game has no such space.
    pub fn new(
        rule: &Rule,
        (mask, position): (u16, u8),
        kernel: Kernel,
        values: &[u16],
        from: usize,
    ) -> Result<WitnessBench> {
        let space = SparseSpace::new(rule, mask, position).expect("a space of this game");
        let mut codes = Codes::new(space, 0);
        codes.push(values);
        let past = values[..from].to_vec();
        let large = (0..).zip(past.iter().copied()).filter(|&(_, value)| value > 255).collect();
        let mut witnesses = Witnesses::new(rule, space, kernel, large, &past)?;
        witnesses.learn_when_due(&codes);
        witnesses.push(&values[from..]);
        Ok(WitnessBench { witnesses, codes, past, from: from as u64, to: values.len() as u64 })
    }

    fn group_search(&self) -> GroupSearch<'_> {
        self.witnesses.search_with(self.witnesses.kernel, &self.codes)
    }

    /// Searches all witnesses of the block. Returns the first n without one and its true value, if any.
    ///
    /// # Errors
    /// Any error of the search.
    pub fn check(&self) -> Result<Option<(u64, u16)>> {
        let mut to = self.from;
        while to < self.to {
            let from = to;
            to = self.to.min(from + GROUP_VALUES);
            let kernel = self.witnesses.kernel;
            let group = self.witnesses.check_group(kernel, from..to, &self.codes, &self.past)?;
            if group.missing.is_some() {
                return Ok(group.missing);
            }
        }
        Ok(None)
    }

    /// The targets of the block that no learnt part gives.
    #[must_use]
    pub fn open_targets(&self) -> OpenTargets {
        let mut open = OpenTargets::new();
        for first in (self.from..self.to).step_by(LANES) {
            let lanes = index(self.to - first).min(LANES);
            self.group_search().open_targets(first, lanes, |n, targets| open.push((n, targets.clone())));
        }
        open
    }

    /// All targets of the block: every rare value below G(n).
    #[must_use]
    pub fn all_targets(&self) -> Vec<(u64, Vec<u16>)> {
        let is_target = |n: u64, t: u16| self.witnesses.space.is_rare(t, n);
        let of = |n: u64| (0..self.witnesses.value(n)).filter(|&t| is_target(n, t)).collect();
        (self.from..self.to).map(|n| (n, of(n))).collect()
    }

    /// Searches these targets position by position, all targets of one n in one pass. Returns the number of targets
    /// left.
    #[must_use]
    pub fn find(&self, targets: &OpenTargets) -> usize {
        let mut left = 0;
        for (n, targets) in targets {
            let mut targets = targets.clone();
            self.group_search().find(*n, &mut targets);
            left += targets.len();
        }
        left
    }

    /// Searches these targets on 16-bit values, as where no parts are learnt. Returns the first n whose search fails.
    ///
    /// # Errors
    /// Any error of the search.
    pub fn search(&self, targets: &[(u64, Vec<u16>)]) -> Result<Option<u64>> {
        for (n, targets) in targets {
            let searched = self.group_search().search(*n, targets.clone(), &self.past)?;
            if searched.missing.is_some() {
                return Ok(Some(*n));
            }
        }
        Ok(None)
    }

    /// Marks the learnt parts for the first lanes of the block, and clears the bits that no target has: the work that
    /// grows with the number of codes considered. Returns whether a bit is set.
    #[must_use]
    pub fn mark_with(&self, codes: usize) -> bool {
        let kernel = self.witnesses.kernel;
        let (items, at) = (self.codes.items(), self.codes.at(self.from));
        let mut planes = BitPlanes::new(codes);
        kernel.mark(items, at, &self.witnesses.parts.marks, &mut planes);
        kernel.marks_to_open(&mut planes, &[0; LANES]);
        let mut some = [0; LANES];
        planes.rows().iter().for_each(|row| some.iter_mut().zip(row).for_each(|(some, bits)| *some |= bits));
        some.iter().any(|&bits| bits != 0)
    }

    /// Number of codes considered.
    #[must_use]
    pub fn codes(&self) -> usize {
        self.witnesses.learning.codes_considered
    }

    /// Sets the number of codes considered and keeps the learnt parts.
    pub fn consider(&mut self, codes: usize) {
        self.witnesses.learning.codes_considered = codes;
    }

    /// Numbers of parts that are marked, and that are held against the least open targets.
    #[must_use]
    pub fn parts(&self) -> [usize; 2] {
        [self.witnesses.parts.marks.list().len(), self.witnesses.parts.clear_probes.list().len()]
    }
}

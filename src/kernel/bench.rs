//! Functions through which benchmarks call the jobs of a kernel. The types hide those of the jobs, which are private.

use super::{
    BitPlanes, CODES, KEEP, Kernel, LANES, Lanes, NearJob, NearProbes, PAGE_WORDS, PairTile, Probe, Probes, RANGES,
    Recurrence, Stage, TILE_PAIRS, WIDE_LANES,
};

/// Number of consecutive values that a kernel computes at once.
pub const LANE_COUNT: usize = LANES;

/// The numbers of codes that a kernel can consider.
pub const CODE_COUNTS: &[usize] = &CODES;

/// The numbers of candidates per lane that a stage of checking can keep.
pub const KEPT_COUNTS: &[usize] = &KEEP;

/// A list of lookups.
pub struct LookupList(Probes);

impl LookupList {
    /// The list of these lookups, each an offset and a code.
    #[must_use]
    pub fn new(lookups: &[(usize, u8)]) -> LookupList {
        LookupList(lookups.iter().map(|&(offset, code)| Probe::new(offset, code)).collect())
    }
}

/// A list of near lookups.
pub struct NearList(NearProbes);

impl NearList {
    /// The list of these lookups, each an offset and a code.
    #[must_use]
    pub fn new(lookups: &[(usize, u8)]) -> NearList {
        NearList(lookups.iter().map(|&(offset, code)| Probe::new(offset, code)).collect())
    }
}

/// The stages of a check.
pub struct CheckStages(Vec<Stage>);

impl CheckStages {
    /// Stages of (candidates kept, lookups), in the order of the check.
    #[must_use]
    pub fn new(stages: &[(usize, &[(usize, u8)])]) -> CheckStages {
        CheckStages(stages.iter().map(|&(keep, lookups)| Stage { keep, check: LookupList::new(lookups).0 }).collect())
    }
}

/// The bit planes of [`LANE_COUNT`] lanes.
#[derive(Clone)]
pub struct Marks(BitPlanes);

impl Marks {
    /// Empty planes with this number of codes considered, one of [`CODE_COUNTS`].
    #[must_use]
    pub fn new(codes: usize) -> Marks {
        Marks(BitPlanes::new(codes))
    }

    /// Whether the bit of a code is set in a lane.
    #[must_use]
    pub fn is_set(&self, code: u8, lane: usize) -> bool {
        self.0.rows()[usize::from(code / 8)][lane] >> (code % 8) & 1 == 1
    }
}

/// The candidates of [`LANE_COUNT`] lanes.
pub struct CandidateLanes(Lanes);

impl CandidateLanes {
    /// The candidates of a lane, ascending.
    #[must_use]
    pub fn of(&self, lane: usize) -> Vec<u8> {
        self.0.rows().iter().map(|row| row[lane]).filter(|&code| code != super::NONE).collect()
    }
}

/// The lookups of the recurrence kernel.
pub struct RecurrenceList(Recurrence);

impl RecurrenceList {
    /// All lookups of a sequence, near and far.
    #[must_use]
    pub fn new(lookups: &[(usize, u8)]) -> RecurrenceList {
        RecurrenceList(Recurrence::new(
            lookups.iter().map(|&(offset, code)| Probe::new(offset, code)).collect(),
            RANGES[0],
        ))
    }
}

/// The codes of the values before index `at`, and space for those of the lanes from `at` on.
#[derive(Clone)]
pub struct CodeWindow {
    /// The codes.
    pub codes: Vec<u8>,
    /// The index of lane 0.
    pub at: usize,
}

impl CodeWindow {
    /// Calls `Kernel::mark`.
    #[inline]
    pub fn mark(&self, kernel: Kernel, lookups: &LookupList, marks: &mut Marks) {
        kernel.mark(&self.codes, self.at, &lookups.0, &mut marks.0);
    }

    /// Calls `Kernel::refine`.
    #[inline]
    #[must_use]
    pub fn check(&self, kernel: Kernel, marks: &Marks, stages: &CheckStages) -> CandidateLanes {
        CandidateLanes(kernel.refine(&self.codes, self.at, &marks.0, &stages.0))
    }

    /// Calls `Kernel::marks_to_open`.
    #[inline]
    pub fn open(&self, kernel: Kernel, marks: &mut Marks, below: &[u8; LANE_COUNT]) {
        kernel.marks_to_open(&mut marks.0, below);
    }

    /// Calls `Kernel::clear_hits`.
    #[inline]
    pub fn clear_hits(&self, kernel: Kernel, lookups: &LookupList, marks: &mut Marks) {
        kernel.clear_hits(&self.codes, self.at, &lookups.0, &mut marks.0);
    }

    /// Calls `Kernel::near` for all lanes.
    #[inline]
    pub fn near(&mut self, kernel: Kernel, near: &NearList, lanes: &CandidateLanes) -> usize {
        let job = NearJob { at: self.at, probes: &near.0, from: 0, to: LANES };
        kernel.near(&mut self.codes, job, &lanes.0)
    }

    /// Calls `Kernel::recurrence` from `at` up to index `to`.
    #[inline]
    pub fn recurrence(&mut self, kernel: Kernel, list: &RecurrenceList, to: usize) -> usize {
        kernel.recurrence(&mut self.codes, self.at, to, &list.0)
    }
}

/// Calls `Kernel::find_code_pair`.
#[inline]
#[must_use]
pub fn find_code_pair(kernel: Kernel, a: &[u8], b: &[u8], wanted: u8) -> Option<usize> {
    kernel.find_code_pair(a, b, wanted)
}

/// Calls `Kernel::find_value_pair`.
#[inline]
#[must_use]
pub fn find_value_pair(kernel: Kernel, a: &[u16], b: &[u16], wanted: u16) -> Option<usize> {
    kernel.find_value_pair(a, b, wanted)
}

/// Calls `Kernel::find_code_pairs`, which accepts every pair.
#[inline]
pub fn find_code_pairs(kernel: Kernel, a: &[u8], b: &[u8], wanted: &mut Vec<u8>) {
    kernel.find_code_pairs(a, b, wanted, |_, _| true);
}

/// Number of lanes of a [`Tile`].
pub const WIDE_LANE_COUNT: usize = WIDE_LANES;

/// Maximum number of pairs of a lane of a [`Tile`].
pub const TILE_PAIR_COUNT: usize = TILE_PAIRS;

/// Number of words of a set of values below 2048, one bit per value.
pub const PAGE_WORD_COUNT: usize = PAGE_WORDS;

/// The pairs of consecutive parts and their partners.
pub struct Tile(PairTile);

impl Tile {
    /// The tile whose pair j of lane i consists of `parts[j]` and `others[i + j]`.
    #[must_use]
    pub fn new(kernel: Kernel, parts: &[u16], others: &[u16]) -> Tile {
        let mut tile = PairTile::default();
        kernel.fill_tile(&mut tile, parts.iter(), 0, others);
        Tile(tile)
    }

    /// Calls `Kernel::clear_options` for each lane and its set of values below 2048.
    #[inline]
    pub fn clear_options(&self, kernel: Kernel, open: &mut [[u64; PAGE_WORD_COUNT]]) {
        open.iter_mut().enumerate().for_each(|(lane, open)| kernel.clear_options(&self.0, lane, open));
    }
}

//! The near probes of a plan, as a list and by offset.
//!
//! For a decided lane, a kernel asks which later lanes its code hits. For a doubtful lane, it asks whether an option
//! hits a candidate. In both cases each other lane is at another offset. So the probes are also arranged in *rows*,
//! with one code for each offset. There are as many rows as the offset with the most probes has.
//!
//! Invariant: for each offset of a probe, the codes at this offset in all rows are the codes of exactly the probes with
//! this offset.

use super::{LANES, Probe, Probes};

/// Probes with offsets below [`LANES`], each of which may read the code of an earlier lane.
#[derive(Clone, Debug, Hash)]
pub(crate) struct NearProbes {
    probes: Probes,
    /// Number of probes with each offset.
    counts: [usize; LANES],
    /// Bit d is set if there is a probe with offset d.
    offsets: u64,
    rows: Vec<NearRow>,
}

/// One code for each offset from 1 to `LANES` - 1. Entries without a probe are unspecified: [`NearProbes::offsets`]
/// tells which have one.
#[derive(Clone, Debug, Hash)]
pub(super) struct NearRow {
    /// Entry `LANES` + d is the code at offset d. Of the 64 entries from `LANES` - j on, number i belongs to the offset
    /// from lane j to lane i.
    forward: [u8; 2 * LANES],
    /// Entry `LANES` - d is the code at offset d, in the order of the 64 codes before a lane.
    backward: [u8; LANES],
}

impl NearRow {
    /// A row of zeros.
    const EMPTY: NearRow = NearRow { forward: [0; 2 * LANES], backward: [0; LANES] };

    /// Sets the code at an offset in 1..`LANES`.
    fn set(&mut self, offset: usize, code: u8) {
        self.forward[LANES + offset] = code;
        self.backward[LANES - offset] = code;
    }

    /// In entry i, the code at the offset from lane `lane` to lane i. Entries up to `lane` have none.
    #[inline]
    pub(super) fn after_lane(&self, lane: usize) -> &[u8; LANES] {
        self.forward[LANES - lane..].first_chunk().expect("a lane is below LANES")
    }

    /// In entry i, the code at offset `LANES` - i. Entry 0 has none.
    #[inline]
    pub(super) fn backward(&self) -> &[u8; LANES] {
        &self.backward
    }
}

impl Default for NearProbes {
    fn default() -> NearProbes {
        NearProbes { probes: Probes::new(), counts: [0; LANES], offsets: 0, rows: Vec::new() }
    }
}

impl FromIterator<Probe> for NearProbes {
    fn from_iter<I: IntoIterator<Item = Probe>>(list: I) -> NearProbes {
        let mut probes = NearProbes::default();
        list.into_iter().for_each(|probe| probes.push(probe));
        probes
    }
}

impl NearProbes {
    /// Appends a probe. `Kernel::near` panics if an offset is outside of 1..`LANES`.
    pub(crate) fn push(&mut self, probe: Probe) {
        self.probes.push(probe);
        let (offset, code) = (probe.offset, probe.code());
        let Some(count) = self.counts.get_mut(offset).filter(|_| offset > 0) else { return };
        let row = *count;
        *count += 1;
        self.offsets |= 1 << offset;
        if row == self.rows.len() {
            self.rows.push(self.rows.first().cloned().unwrap_or(NearRow::EMPTY));
        }
        // The first probe of an offset fills its entry in all rows. Later probes replace it in one row each.
        let rows = if row == 0 { &mut self.rows[..] } else { &mut self.rows[row..=row] };
        rows.iter_mut().for_each(|row| row.set(offset, code));
    }

    /// The probes, in the order in which they were added.
    #[inline]
    pub(crate) fn probes(&self) -> &Probes {
        &self.probes
    }

    /// [`NearProbes::probes`] as a slice.
    #[inline]
    pub(super) fn list(&self) -> &[Probe] {
        self.probes.list()
    }

    /// Bit d is set if there is a probe with offset d.
    #[inline]
    pub(super) fn offsets(&self) -> u64 {
        self.offsets
    }

    /// Bit `LANES` - d is set if there is a probe with offset d.
    #[inline]
    pub(super) fn backward_offsets(&self) -> u64 {
        self.offsets.reverse_bits() << 1
    }

    /// The rows.
    #[inline]
    pub(super) fn rows(&self) -> &[NearRow] {
        &self.rows
    }

    /// Whether each offset is in `1..LANES` and inside the window.
    pub(super) fn are_near(&self, at: usize) -> bool {
        self.probes.are_near(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::Random;

    #[test]
    fn rows_hold_the_probes_of_every_offset_and_no_others() {
        let random = &mut Random::new("rows of near probes");
        for count in 0..200 {
            let mut draw = |below: u64| random.below(below);
            let list: Vec<(usize, u8)> = (0..count).map(|_| (1 + draw(63) as usize, draw(256) as u8)).collect();
            let probes: NearProbes = list.iter().map(|&(offset, code)| Probe::new(offset, code)).collect();
            for offset in 1..LANES {
                let expected: Vec<u8> = list.iter().filter(|probe| probe.0 == offset).map(|probe| probe.1).collect();
                assert_eq!(probes.offsets() >> offset & 1 == 1, !expected.is_empty());
                assert_eq!(probes.backward_offsets() >> (LANES - offset) & 1 == 1, !expected.is_empty());
                if expected.is_empty() {
                    continue;
                }
                let lane = draw(64 - offset as u64) as usize;
                let sorted = |mut codes: Vec<u8>| {
                    codes.sort_unstable();
                    codes.dedup();
                    codes
                };
                let expected = sorted(expected);
                let forward = probes.rows().iter().map(|row| row.after_lane(lane)[lane + offset]).collect();
                let backward = probes.rows().iter().map(|row| row.backward()[LANES - offset]).collect();
                assert_eq!([sorted(forward), sorted(backward)], [expected.clone(), expected], "offset {offset}");
            }
            assert_eq!((probes.offsets() & 1, probes.backward_offsets() & 1), (0, 0));
        }
    }
}

//! The near job of the vector kernels: [`near_by`] assumes the first candidate of all 64 lanes, and corrects the lanes
//! where that is wrong.
//!
//! A near probe reads the code of an earlier lane, or of one of the 63 positions before lane 0. Each lane to be filled
//! first gets its first candidate as its code. A lane is *doubtful* if an option hits this candidate, or if it is
//! missing or not considered. The kernel goes through the doubtful lanes in ascending order, and takes the least
//! candidate that no option hits. If this is another code, the later lanes whose first candidate it hits become
//! doubtful too. Of 64 lanes, one gets another code in Grundy's game, and 24 in .774.
//!
//! A lane may be doubtful because of a code that was replaced later. The comparison then finds its first candidate
//! again.
//!
//! Invariant: the first candidate of an undecided lane that is not doubtful is considered, and no option computed from
//! the present codes hits it.

use super::planes::before;
use super::{LANES, Lanes, NONE, NearJob};

/// The codes of the [`LANES`] positions before lane 0, as far as they are in the window, and those of all lanes: entry
/// `LANES` + i is that of lane i. Undecided lanes have their first candidates.
pub(super) type NearCodes = [u8; 2 * LANES];

/// [`Kernel::near`](super::Kernel::near) by vector instructions. `doubtful` finds the doubtful lanes. `decide` replaces
/// the code of a lane by its least candidate that no option hits, and returns the later lanes whose first candidate the
/// new code hits; none if the code stays. `None` if the job stops at this lane.
#[inline(always)]
pub(super) fn near_by(
    window: &mut [u8],
    job: NearJob<'_>,
    lanes: &Lanes,
    doubtful: impl Fn(&NearCodes) -> u64,
    decide: impl Fn(&mut NearCodes, usize) -> Option<u64>,
) -> usize {
    let NearJob { at, from, to, .. } = job;
    let mut codes = [0; 2 * LANES];
    let earlier = at.min(LANES);
    codes[LANES - earlier..][..earlier + from].copy_from_slice(&window[at - earlier..at + from]);
    codes[LANES + from..].copy_from_slice(&lanes.code[0][from..]);
    let mut doubtful = doubtful(&codes);
    let mut undecided = before(to) & !before(from);
    let end = loop {
        let lane = (doubtful & undecided).trailing_zeros() as usize;
        if lane == LANES {
            break to;
        }
        let Some(hit) = decide(&mut codes, lane) else { break lane };
        doubtful |= hit;
        undecided &= !before(lane + 1);
    };
    window[at + from..at + end].copy_from_slice(&codes[LANES + from..LANES + end]);
    end
}

/// The least candidate of a lane that `is_hit` does not reject. `None` if there is none, or if it was not considered.
#[inline(always)]
pub(super) fn least_open(lanes: &Lanes, lane: usize, is_hit: impl Fn(u8) -> bool) -> Option<u8> {
    let mut candidates = lanes.rows().iter().map(|row| row[lane]).filter(|&code| code != NONE);
    candidates.find(|&code| !is_hit(code)).filter(|&code| !lanes.is_unconsidered(lane, code))
}

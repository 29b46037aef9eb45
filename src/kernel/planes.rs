//! The tables between the jobs: the codes marked in each lane ([`BitPlanes`]), and the candidates left in each lane
//! ([`Lanes`]).

use super::{Probes, prefetch};

/// Number of consecutive n (lanes) for which a kernel marks and checks at once.
pub(crate) const LANES: usize = 64;

/// The numbers of codes that can be considered. They are multiples of 8, because every eight codes take one register
/// and one or two instructions per probe. A lane whose answer lies beyond the codes considered may get no candidate.
pub(crate) const CODES: [usize; 12] = [16, 32, 64, 72, 80, 88, 96, 112, 128, 136, 144, 160];

/// Maximum number of codes that can be considered.
pub(crate) const MOST_CODES: usize = CODES[CODES.len() - 1];

/// Number of codes just above those considered that are candidates as well, though none of them is ever marked.
pub(crate) const BEYOND: usize = 16;

/// Maximum number of rows of eight codes that can hold candidates.
pub(super) const MOST_ROWS: usize = (MOST_CODES + BEYOND) / 8;

/// The numbers of candidates per lane that a [`Stage`] can keep, descending.
pub(crate) const KEEP: [usize; 7] = [12, 8, 6, 5, 4, 3, 2];

/// Maximum number of candidates per lane.
pub(crate) const CANDIDATES: usize = KEEP[0];

/// Byte b, the lowest first, is 1 << b.
#[cfg(target_arch = "x86_64")]
pub(super) const ONE_HOT: i64 = 0x8040_2010_0804_0201_u64.cast_signed();

/// The byte for "no candidate", above all codes that can be candidates.
pub(crate) const NONE: u8 = u8::MAX;

/// One bit for each lane before this one.
#[inline]
pub(super) fn before(lane: usize) -> u64 {
    ((1u128 << lane) - 1) as u64
}

/// Calls the instance of a generic function for a number of candidates per lane, one of [`KEEP`].
macro_rules! for_kept {
    ($kept:expr, $function:ident($($argument:expr),*)) => {
        match $kept {
            12 => $function::<12>($($argument),*),
            8 => $function::<8>($($argument),*),
            6 => $function::<6>($($argument),*),
            5 => $function::<5>($($argument),*),
            4 => $function::<4>($($argument),*),
            3 => $function::<3>($($argument),*),
            2 => $function::<2>($($argument),*),
            kept => unreachable!("{kept} candidates are not in KEEP"),
        }
    };
}
pub(super) use for_kept;

/// The least code of row j, in the type of the intrinsics.
#[inline]
pub(super) const fn first_code(j: usize) -> i8 {
    assert!(j < MOST_ROWS);
    (j * 8).to_le_bytes()[0].cast_signed()
}

/// A number below 128, in the type of the intrinsics.
#[inline]
pub(super) const fn number(m: usize) -> i8 {
    assert!(m < 128);
    m.to_le_bytes()[0].cast_signed()
}

/// One bit per considered code and lane: bit b of `rows[j][lane]` represents the code 8j + b.
///
/// The bits of new planes are *marks*: a bit is set if a marked probe hits the code. `Kernel::marks_to_open` replaces
/// them by their complement below a bound; from then on a bit is set if the code is open.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct BitPlanes {
    /// The rows above the codes considered are empty.
    rows: [[u8; LANES]; MOST_ROWS],
    /// Number of codes considered: those below it.
    codes: usize,
}

impl Default for BitPlanes {
    /// Planes without marks, for as many codes as possible.
    fn default() -> BitPlanes {
        BitPlanes::new(MOST_CODES)
    }
}

impl BitPlanes {
    /// Planes without marks, in which options below `codes` can be marked.
    ///
    /// # Panics
    /// If `codes` is none of `CODES`.
    #[must_use]
    pub(crate) fn new(codes: usize) -> BitPlanes {
        assert!(CODES.contains(&codes), "the number of codes must be one of CODES");
        BitPlanes { rows: [[0; LANES]; MOST_ROWS], codes }
    }

    /// Clears all bits. From now on options below `codes` can be marked.
    ///
    /// # Panics
    /// If `codes` is none of [`CODES`].
    pub(crate) fn clear(&mut self, codes: usize) {
        assert!(CODES.contains(&codes), "the number of codes must be one of CODES");
        // All rows, because a bit that flipped in a row that is not considered now would otherwise be read later.
        self.rows = [[0; LANES]; MOST_ROWS];
        self.codes = codes;
    }

    /// The number of codes considered: those below it.
    #[inline]
    pub(crate) fn codes(&self) -> usize {
        self.codes
    }

    /// The rows of the codes considered, eight codes per row.
    #[inline]
    pub(crate) fn rows(&self) -> &[[u8; LANES]] {
        &self.rows[..self.codes / 8]
    }

    /// The codes considered that are not marked in one lane, ascending. The bits must be marks.
    ///
    /// # Panics
    /// If `lane` is not below [`LANES`].
    pub(crate) fn unmarked_codes(&self, lane: usize) -> impl Iterator<Item = u8> {
        assert!(lane < LANES, "no such lane");
        let marked = move |code: u8| self.rows[usize::from(code / 8)][lane] >> (code % 8) & 1 == 1;
        (0..=u8::MAX).take(self.codes).filter(move |&code| !marked(code))
    }

    /// The rows of the codes considered and of the [`BEYOND`] codes just above them, whose bits are never set.
    #[inline]
    pub(super) fn candidates(&self) -> &[[u8; LANES]] {
        &self.rows[..(self.codes + BEYOND) / 8]
    }

    /// [`BitPlanes::rows`], to be changed.
    #[inline]
    pub(super) fn rows_mut(&mut self) -> &mut [[u8; LANES]] {
        &mut self.rows[..self.codes / 8]
    }
}

/// A stage of [`Kernel::refine`](super::Kernel::refine).
#[derive(Clone, Debug, Hash)]
pub(crate) struct Stage {
    /// Maximum number of candidates per lane that enter the stage: the least ones. One of [`KEEP`].
    pub(crate) keep: usize,
    /// The probes with which they are compared.
    pub(crate) check: Probes,
}

/// The candidates left in each lane, ascending, then `NONE`. Each row is a cache line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Lanes {
    /// `code[k][lane]` is the k-th candidate of the lane, counted from 0.
    pub(super) code: [[u8; LANES]; CANDIDATES],
    /// For each lane, a code: candidates from it on were compared with the probes of the stages, and not with the
    /// marked ones. It is the number of codes considered, or [`NONE`] where the list was completed.
    pub(super) considered_below: [u8; LANES],
    /// Number of rows with which the jobs work.
    pub(super) kept: usize,
    /// Number of rows that may hold candidates; the others hold only [`NONE`]. Those from `kept` on are set aside.
    pub(super) held: usize,
}

impl Lanes {
    /// Lanes without candidates.
    #[must_use]
    pub(crate) fn none() -> Lanes {
        Lanes { code: [[NONE; LANES]; CANDIDATES], kept: 0, held: 0, considered_below: [0; LANES] }
    }

    /// Sets all but the `keep` least candidates of each lane aside. The jobs then work with those alone.
    ///
    /// # Panics
    /// If `keep` is none of `KEEP`.
    pub(crate) fn set_aside(&mut self, keep: usize) {
        assert!(KEEP.contains(&keep), "the number of candidates kept must be one of KEEP");
        self.kept = self.kept.min(keep);
    }

    /// The rows of the candidates that are set aside, which are larger than those of [`Lanes::rows`] in each lane.
    pub(crate) fn aside(&self) -> &[[u8; LANES]] {
        &self.code[self.kept..self.held]
    }

    /// Row k holds the k-th candidates of all lanes, counted from 0, without those set aside.
    #[inline]
    pub(crate) fn rows(&self) -> &[[u8; LANES]] {
        &self.code[..self.kept]
    }

    /// Lets the processor begin to load the first rows.
    pub(crate) fn prefetch(&self, rows: usize) {
        prefetch(&self.kept);
        prefetch(&self.considered_below);
        self.code[..rows].iter().for_each(prefetch);
    }

    /// The candidates of a lane, ascending, then [`NONE`].
    pub(crate) fn of(&self, lane: usize) -> [u8; CANDIDATES] {
        self.code.map(|row| row[lane])
    }

    /// Whether this candidate of a lane was not considered, so that a marked probe may hit it.
    #[inline]
    pub(crate) fn is_unconsidered(&self, lane: usize, code: u8) -> bool {
        code >= self.considered_below[lane]
    }

    /// The lanes that have no considered code among their candidates, those set aside included, and that were not
    /// completed.
    pub(crate) fn incomplete(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, aside) = (&self.code[0], self.aside().first().unwrap_or(&[NONE; LANES]));
        let is_incomplete: [u8; LANES] = std::array::from_fn(|lane| {
            let end = self.considered_below[lane];
            u8::from(first[lane] >= end && aside[lane] >= end && end != NONE)
        });
        // Most lanes are complete, so eight are tested at once.
        let some = (0..LANES).step_by(8).filter(move |&from| is_incomplete[from..from + 8] != [0; 8]);
        some.flat_map(|from| from..from + 8).filter(move |&lane| is_incomplete[lane] != 0)
    }

    /// Replaces the candidates of a lane by the first of `codes`, which are the least codes that no probe evaluated so
    /// far hits, ascending.
    pub(crate) fn complete(&mut self, lane: usize, codes: impl Iterator<Item = u8>) {
        let codes = codes.take_while(|&code| code != NONE).chain(std::iter::repeat(NONE));
        self.code[..self.held].iter_mut().zip(codes).for_each(|(row, code)| row[lane] = code);
        self.considered_below[lane] = NONE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bit that flipped in a row beyond the codes considered would otherwise be read once there are more of them.
    #[test]
    fn cleared_planes_have_no_bit_left_in_any_row() {
        for before in CODES {
            for codes in CODES {
                let mut planes = BitPlanes::new(before);
                planes.rows = [[u8::MAX; LANES]; MOST_ROWS];
                planes.clear(codes);
                assert_eq!(planes, BitPlanes::new(codes), "{before}, then {codes}");
            }
        }
    }
}

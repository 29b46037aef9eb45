//! The tables between the jobs: the codes marked in each lane, and the candidates left in each lane.

use super::Probes;

/// Calls the instance of a generic function for the given number of candidates per lane.
macro_rules! for_kept {
    ($kept:expr, $function:ident($($argument:expr),*)) => {
        match $kept {
            12 => $function::<12>($($argument),*),
            8 => $function::<8>($($argument),*),
            6 => $function::<6>($($argument),*),
            5 => $function::<5>($($argument),*),
            4 => $function::<4>($($argument),*),
            3 => $function::<3>($($argument),*),
            _ => $function::<2>($($argument),*),
        }
    };
}
pub(super) use for_kept;

/// Number of consecutive values (lanes) that a kernel computes at once.
pub const LANES: usize = 64;

/// The numbers of codes that a kernel can consider. They are multiples of 8, because every eight codes take one
/// register and one or two instructions per lookup. A lane whose answer lies beyond the codes considered may get no
/// candidate.
pub const CODES: [usize; 12] = [16, 32, 64, 72, 80, 88, 96, 112, 128, 136, 144, 160];

/// Maximum number of codes that a kernel can consider.
pub const MOST_CODES: usize = CODES[CODES.len() - 1];

/// Number of codes behind those considered that are candidates as well, though none of them is ever marked.
pub const BEYOND: usize = 16;

/// The numbers of candidates per lane that a stage of checking can keep, descending.
pub const KEEP: [usize; 7] = [12, 8, 6, 5, 4, 3, 2];

/// Maximum number of candidates per lane.
pub const CANDIDATES: usize = KEEP[0];

/// The byte for "no candidate"; at least [`MOST_CODES`].
pub const NONE: u8 = u8::MAX;

/// The codes marked as options in each lane: bit b of `rows[j][lane]` represents the code 8j + b.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub struct BitPlanes {
    /// The rows behind the codes considered are empty.
    rows: [[u8; LANES]; (MOST_CODES + BEYOND) / 8],
    /// Number of codes considered.
    pub(super) codes: usize,
}

impl BitPlanes {
    /// Empty planes, in which options below `codes` can be marked.
    ///
    /// # Panics
    /// If `codes` is none of [`CODES`].
    #[must_use]
    pub fn new(codes: usize) -> BitPlanes {
        assert!(CODES.contains(&codes), "the number of codes must be one of CODES");
        BitPlanes { rows: [[0; LANES]; (MOST_CODES + BEYOND) / 8], codes }
    }

    /// Clears all marks; from now on options below `codes` can be marked.
    ///
    /// # Panics
    /// If `codes` is none of [`CODES`].
    pub fn clear(&mut self, codes: usize) {
        assert!(CODES.contains(&codes), "the number of codes must be one of CODES");
        self.rows_mut().fill([0; LANES]);
        self.codes = codes;
    }

    /// The number of codes considered: those below it.
    #[must_use]
    pub fn codes(&self) -> usize {
        self.codes
    }

    /// The rows of the codes considered, eight codes per row.
    #[must_use]
    pub fn rows(&self) -> &[[u8; LANES]] {
        &self.rows[..self.codes / 8]
    }

    /// The codes considered that are not marked in one lane, ascending.
    ///
    /// # Panics
    /// If `lane` is not below [`LANES`].
    pub fn open(&self, lane: usize) -> impl Iterator<Item = u8> {
        assert!(lane < LANES, "no such lane");
        let marked = move |code: u8| self.rows[usize::from(code / 8)][lane] >> (code % 8) & 1 == 1;
        (0..=u8::MAX).take(self.codes).filter(move |&code| !marked(code))
    }

    /// The rows of the codes considered and of the [`BEYOND`] codes behind them, none of which is ever marked.
    pub(super) fn candidates(&self) -> &[[u8; LANES]] {
        &self.rows[..(self.codes + BEYOND) / 8]
    }

    #[inline]
    pub(super) fn rows_mut(&mut self) -> &mut [[u8; LANES]] {
        &mut self.rows[..self.codes / 8]
    }
}

/// A stage of [`Kernel::refine`].
#[derive(Clone, Debug, Hash)]
pub struct Stage {
    /// Maximum number of candidates per lane that enter the stage, the least ones; one of [`KEEP`].
    pub keep: usize,
    /// The lookups against which they are checked.
    pub check: Probes,
}

/// The candidates left in each lane, ascending, then [`NONE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lanes {
    pub(super) code: [[u8; LANES]; CANDIDATES],
    /// Number of rows that may hold candidates; the others hold only [`NONE`].
    pub(super) kept: usize,
    /// The least code that marking did not cover: a candidate from here on is known to be open only for the checked
    /// lookups.
    pub(super) marked: u8,
}

impl Lanes {
    /// Row k holds the k-th candidates of all lanes, counted from 0.
    #[must_use]
    pub fn rows(&self) -> &[[u8; LANES]] {
        &self.code[..self.kept]
    }

    /// Whether marking did not cover this candidate: a marked lookup may hit it.
    #[must_use]
    pub fn is_unmarked(&self, code: u8) -> bool {
        code >= self.marked
    }
}

//! The parts of the last pairs found: the *recent parts*, which the next searches try first.

/// Maximum number of parts that are remembered.
const RECENT_PARTS: usize = 512;

/// Number of recent parts that the far step tries before the last range of pairs with a part below `HEAD_PARTS`.
const FIRST_PARTS: usize = 64;

/// Number of recent parts whose options are computed before they are compared with the targets, and number of recent
/// parts that are compared with one part at once.
pub(super) const PARTS_AT_ONCE: usize = 64;

/// Parts of pairs that were found, roughly those that gave most values first. They change no value, so they need no
/// checksum.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentParts {
    parts: Vec<u64>,
}

impl RecentParts {
    /// The first parts, of which the far step tries pairs early, and the others.
    pub(super) fn first_and_others(&self) -> (&[u64], &[u64]) {
        self.parts.split_at(FIRST_PARTS.min(self.parts.len()))
    }

    /// The place of a part. The parts are compared in groups, which the compiler vectorises.
    fn place(&self, part: u64) -> Option<usize> {
        let is_in = |parts: &[u64]| parts.iter().fold(false, |any, &recent| any | (recent == part));
        let group = self.parts.chunks(PARTS_AT_ONCE).position(is_in)?;
        self.parts[group * PARTS_AT_ONCE..]
            .iter()
            .position(|&recent| recent == part)
            .map(|at| group * PARTS_AT_ONCE + at)
    }

    /// Moves a part towards the front, or enters it.
    pub(super) fn note(&mut self, part: u64) {
        match self.place(part) {
            Some(place) => self.parts.swap(place, place / 2),
            None => {
                self.parts.truncate(RECENT_PARTS - 1);
                self.parts.push(part);
            }
        }
    }
}

//! The digest of a sequence: equal on every machine, for every kernel, width and number of threads.
//!
//! digest_0 is 32 zero bytes, and digest_i = BLAKE3(digest_(i-1) ‖ BLAKE3(values of segment i as little-endian u16)). A
//! segment has 2^24 values; the last one may be partial. Because the digests form a chain, a long table can be checked
//! in pieces: given the digest at a segment boundary, the values after it can be checked without those before it.

use blake3::Hasher;
use std::fmt;
use std::str::FromStr;

/// Number of values in a segment. Few in unit tests, which keep many copies of a run with discarded values in memory.
pub const SEGMENT: u64 = if cfg!(test) { 1 << 12 } else { 1 << 24 };

/// A digest, printed as 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Digest(pub [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(blake3::Hash::from_bytes(self.0).to_hex().as_str())
    }
}

/// The error of parsing a text that is not 64 lowercase hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoDigest;

impl fmt::Display for NoDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the text is not a digest, 64 lowercase hexadecimal digits")
    }
}

impl std::error::Error for NoDigest {}

impl FromStr for Digest {
    type Err = NoDigest;

    /// Parses 64 lowercase hexadecimal digits.
    ///
    /// # Errors
    /// [`NoDigest`] for any other text.
    fn from_str(text: &str) -> Result<Digest, NoDigest> {
        let lower = text.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c));
        let hash = blake3::Hash::from_hex(text).map_err(|_| NoDigest)?;
        if lower { Ok(Digest(*hash.as_bytes())) } else { Err(NoDigest) }
    }
}

/// Computes the digest of a sequence piece by piece.
#[derive(Clone, Debug)]
pub struct DigestChain {
    /// The digest of all complete segments.
    closed: Digest,
    /// The hash of the values of the segment in progress.
    segment: Hasher,
    /// Number of values added.
    count: u64,
}

impl Default for DigestChain {
    fn default() -> DigestChain {
        DigestChain::new()
    }
}

impl DigestChain {
    /// Returns the chain of no values.
    #[must_use]
    pub fn new() -> DigestChain {
        DigestChain { closed: Digest::default(), segment: Hasher::new(), count: 0 }
    }

    /// Returns a chain that continues after `count` values with this digest.
    ///
    /// # Panics
    /// If `count` is not a multiple of [`SEGMENT`].
    #[must_use]
    pub fn resume(count: u64, digest: Digest) -> DigestChain {
        assert!(count.is_multiple_of(SEGMENT), "a chain can be resumed only at a segment boundary");
        DigestChain { closed: digest, segment: Hasher::new(), count }
    }

    /// Returns the number of values added.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds the next values.
    pub fn update(&mut self, values: &[u16]) {
        self.add(values, 1 << 16, Hasher::update);
    }

    /// Adds the next values. All threads of the current rayon pool hash them, if they are many.
    pub(crate) fn update_in_parallel(&mut self, values: &[u16]) {
        /// Minimum number of values that several threads hash: 128 KiB, below which one thread is faster (documentation
        /// of BLAKE3).
        const MANY: usize = 1 << 16;
        if values.len() < MANY {
            self.update(values);
        } else {
            self.add(values, 1 << 18, Hasher::update_rayon);
        }
    }

    /// Adds the next values, at most `longest` of them at a time, which `hash` adds to the hash of a segment.
    fn add(&mut self, mut values: &[u16], longest: usize, hash: for<'a> fn(&'a mut Hasher, &[u8]) -> &'a mut Hasher) {
        let mut bytes = Vec::with_capacity(values.len().min(longest) * 2);
        while !values.is_empty() {
            let room = SEGMENT - self.count % SEGMENT;
            let length = values.len().min(longest).min(usize::try_from(room).unwrap_or(usize::MAX));
            let (piece, rest) = values.split_at(length);
            fill(&mut bytes, piece);
            hash(&mut self.segment, &bytes);
            self.count += length as u64;
            if self.count.is_multiple_of(SEGMENT) {
                self.closed = link(self.closed, self.segment.finalize());
                self.segment = Hasher::new();
            }
            values = rest;
        }
    }

    /// Returns the digest of all values added.
    #[must_use]
    pub fn digest(&self) -> Digest {
        if self.count.is_multiple_of(SEGMENT) { self.closed } else { link(self.closed, self.segment.finalize()) }
    }
}

/// Adds values to the hash of a segment; `bytes` is a buffer for reuse.
pub(crate) fn enter(segment: &mut Hasher, values: &[u16], bytes: &mut Vec<u8>) {
    fill(bytes, values);
    segment.update(bytes);
}

/// Replaces `bytes` by those that are hashed for `values`.
fn fill(bytes: &mut Vec<u8>, values: &[u16]) {
    bytes.clear();
    bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
}

/// Returns the digest after a segment, from the digest `before` it and the hash of its values.
pub(crate) fn link(before: Digest, segment: blake3::Hash) -> Digest {
    let mut hasher = Hasher::new();
    hasher.update(&before.0);
    hasher.update(segment.as_bytes());
    Digest(*hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theory::nimber::index;

    /// The formula of the module head, computed independently and without pieces.
    fn formula(values: &[u16]) -> Digest {
        values.chunks(index(SEGMENT)).fold(Digest([0; 32]), |before, segment| {
            let bytes: Vec<u8> = segment.iter().flat_map(|v| v.to_le_bytes()).collect();
            let both = [before.0, *blake3::hash(&bytes).as_bytes()].concat();
            Digest(*blake3::hash(&both).as_bytes())
        })
    }

    #[test]
    fn the_digest_is_the_formula_wherever_pieces_end() {
        let first = index(SEGMENT);
        // More values than the least number that several threads hash.
        let values: Vec<u16> = (0..40 * SEGMENT + 1000).map(|n| ((n * 2_654_435_761) >> 16) as u16).collect();
        for cut in [0, 1, first - 1, first, first + 1, 65_535, 65_536, 65_537, 40 * first, values.len()] {
            let mut chain = DigestChain::new();
            chain.update(&values[..cut]);
            assert_eq!(chain.digest(), formula(&values[..cut]), "{cut} values");
            let mut parallel = chain.clone();
            chain.update(&values[cut..]);
            parallel.update_in_parallel(&values[cut..]);
            assert_eq!([chain.digest(), parallel.digest()], [formula(&values); 2], "{cut} values before");
        }
        let mut later = DigestChain::resume(SEGMENT, formula(&values[..first]));
        later.update(&values[first..]);
        assert_eq!(later.digest(), formula(&values));
    }

    #[test]
    fn a_printed_digest_parses_and_other_texts_do_not() {
        let digest = formula(&[1, 2, 3]);
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!("00".parse::<Digest>(), Err(NoDigest));
        assert_eq!(digest.to_string().to_uppercase().parse::<Digest>(), Err(NoDigest));
    }
}

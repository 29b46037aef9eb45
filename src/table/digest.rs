//! The digest of a sequence: the same on every machine, for every kernel, width and number of threads.
//!
//! digest_i = BLAKE3(digest_(i-1) ‖ BLAKE3(values of segment i as little-endian u16)), in segments of 2^24 values,
//! digest_0 = 32 zero bytes; the last segment may be partial. The chain lets a long table be checked in pieces: whoever
//! knows the digest at one segment boundary can check what follows without what came before.

use blake3::Hasher;
use std::fmt;

/// Values in one segment.
pub const SEGMENT: u64 = if SMALL { 1 << 12 } else { 1 << 24 };

/// Whether this is the program of the tests that free values: with segments so small that a run which frees some fits
/// memory many times. What it writes is of another format ([`crate::checkpoint::journal::FORMAT`]), which no other build accepts.
pub(crate) const SMALL: bool = cfg!(feature = "small-segments");

/// A digest, printed as 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Digest(pub [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(blake3::Hash::from_bytes(self.0).to_hex().as_str())
    }
}

impl Digest {
    /// Reads 64 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Digest> {
        let lower = text.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c));
        blake3::Hash::from_hex(text).ok().filter(|_| lower).map(|hash| Digest(*hash.as_bytes()))
    }
}

/// Digests a sequence piece by piece.
#[derive(Clone, Debug)]
pub struct DigestChain {
    closed: Digest,
    segment: Hasher,
    count: u64,
}

impl Default for DigestChain {
    fn default() -> DigestChain {
        DigestChain::new()
    }
}

impl DigestChain {
    /// The chain of no values.
    #[must_use]
    pub fn new() -> DigestChain {
        DigestChain { closed: Digest::default(), segment: Hasher::new(), count: 0 }
    }

    /// A chain that continues after `count` values with this digest; `count` is a multiple of [`SEGMENT`].
    #[must_use]
    pub fn resume(count: u64, digest: Digest) -> DigestChain {
        assert!(count.is_multiple_of(SEGMENT), "a chain can be taken up at segment boundaries only");
        DigestChain { closed: digest, segment: Hasher::new(), count }
    }

    /// How many values have been digested.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Takes the next values.
    pub fn update(&mut self, mut values: &[u16]) {
        let mut bytes = Vec::with_capacity(values.len().min(1 << 16) * 2);
        while !values.is_empty() {
            let room = SEGMENT - self.count % SEGMENT;
            let length = values.len().min(1 << 16).min(usize::try_from(room).unwrap_or(usize::MAX));
            let (piece, rest) = values.split_at(length);
            enter(&mut self.segment, piece, &mut bytes);
            self.count += length as u64;
            if self.count.is_multiple_of(SEGMENT) {
                self.closed = link(self.closed, self.segment.finalize());
                self.segment = Hasher::new();
            }
            values = rest;
        }
    }

    /// The digest of all values so far.
    #[must_use]
    pub fn digest(&self) -> Digest {
        if self.count.is_multiple_of(SEGMENT) { self.closed } else { link(self.closed, self.segment.finalize()) }
    }
}

/// Enters values in the hash of a segment; `bytes` is room to be used again.
pub(crate) fn enter(segment: &mut Hasher, values: &[u16], bytes: &mut Vec<u8>) {
    bytes.clear();
    bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    segment.update(bytes);
}

/// The digest after a segment, given that before it and the hash of its values.
pub(crate) fn link(before: Digest, segment: blake3::Hash) -> Digest {
    let mut hasher = Hasher::new();
    hasher.update(&before.0);
    hasher.update(segment.as_bytes());
    Digest(*hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The formula of the module head, written down a second time without pieces.
    fn plainly(values: &[u16]) -> Digest {
        values.chunks(1 << 24).fold(Digest([0; 32]), |before, segment| {
            let bytes: Vec<u8> = segment.iter().flat_map(|v| v.to_le_bytes()).collect();
            let both = [before.0, *blake3::hash(&bytes).as_bytes()].concat();
            Digest(*blake3::hash(&both).as_bytes())
        })
    }

    #[test]
    fn pieces_do_not_matter_and_segments_close_where_they_should() {
        let values: Vec<u16> =
            (0..(1u32 << 24) + 70_000).map(|n| (n.wrapping_mul(2_654_435_761) >> 16) as u16).collect();
        for cut in [0, 1, 65_535, 65_536, 1 << 24, values.len()] {
            let mut chain = DigestChain::new();
            chain.update(&values[..cut]);
            assert_eq!(chain.digest(), plainly(&values[..cut]), "{cut} values");
            chain.update(&values[cut..]);
            assert_eq!(chain.digest(), plainly(&values));
        }
        let mut later = DigestChain::resume(1 << 24, plainly(&values[..1 << 24]));
        later.update(&values[1 << 24..]);
        assert_eq!(later.digest(), plainly(&values));
    }

    #[test]
    fn a_digest_survives_printing() {
        let digest = plainly(&[1, 2, 3]);
        assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
        assert_eq!(Digest::parse("00"), None);
        assert_eq!(Digest::parse(&digest.to_string().to_uppercase()), None);
    }
}

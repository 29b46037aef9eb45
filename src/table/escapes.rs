//! Escapes: the values of 255 or more of a table of bytes, as entries (n, G(n)) of `escapes.npy`.

use crate::fault;

/// The name of the escape file in a run directory.
pub const ESCAPES: &str = "escapes.npy";

/// The type of an escape as NumPy writes it.
pub(super) const ESCAPE_TYPE: &str = "[('n', '<u8'), ('v', '<u2')]";

/// Length of an escape, in bytes.
pub(crate) const ESCAPE_BYTES: u64 = 10;

/// The byte of every value of 255 or more; `escapes.npy` has the whole value.
pub(super) const SATURATED: u8 = u8::MAX;

/// Returns the byte of a value in a table of bytes: min(`value`, 255).
pub(crate) fn saturated(value: u16) -> u8 {
    u8::try_from(value).unwrap_or(SATURATED)
}

/// Returns whether a table of bytes has this value in `escapes.npy`.
pub(crate) fn is_escape(value: u16) -> bool {
    value >= u16::from(SATURATED)
}

/// Returns the bytes of the values from n = `from` on in a table of bytes, and the bytes of their escapes.
pub(super) fn encode(from: u64, values: &[u16]) -> (Vec<u8>, Vec<u8>) {
    if fault::is("cut-to-byte") {
        // Deliberate fault, see fault.rs.
        return (values.iter().map(|v| v.to_le_bytes()[0]).collect(), Vec::new());
    }
    let mut entries = Vec::new();
    // Escapes are few, so skip chunks of 64 values that have none.
    for (from, chunk) in (from..).step_by(64).zip(values.chunks(64)) {
        if is_escape(chunk.iter().fold(0, |largest, &v| v.max(largest))) {
            for (n, &v) in (from..).zip(chunk).filter(|&(_, &v)| is_escape(v)) {
                entries.extend(n.to_le_bytes());
                entries.extend(v.to_le_bytes());
            }
        }
    }
    (values.iter().map(|&v| saturated(v)).collect(), entries)
}

/// Returns an entry, (n, G(n)).
///
/// # Panics
/// Unless `entry` has [`ESCAPE_BYTES`] bytes.
pub(super) fn decode(entry: &[u8]) -> (u64, u16) {
    let (n, v) = entry.split_at(8);
    (u64::from_le_bytes(n.try_into().expect("eight bytes")), u16::from_le_bytes(v.try_into().expect("two bytes")))
}

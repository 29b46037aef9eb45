//! Files of one line of JSON, followed by values as little-endian u16. The line contains the BLAKE3 hash of the whole
//! file with an empty hash, its *seal*, so that an altered file is noticed.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Returns the bytes of a file; `line` receives the seal and returns the line.
pub(super) fn bytes<L: Serialize>(line: impl Fn(String) -> L, values: &[u16]) -> Vec<u8> {
    let bytes = |seal: String| {
        let mut bytes = serde_json::to_vec(&line(seal)).expect("numbers and text are JSON");
        bytes.push(b'\n');
        bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
        bytes
    };
    bytes(blake3::hash(&bytes(String::new())).to_hex().to_string())
}

/// Returns the line and the values of a file, altered or not; `None` if it does not have this form.
pub(super) fn parse<L: DeserializeOwned>(bytes: &[u8]) -> Option<(L, Vec<u16>)> {
    let (line, values) = bytes.split_at(bytes.iter().position(|&b| b == b'\n')? + 1);
    let (values, rest) = values.as_chunks::<2>();
    let line = serde_json::from_slice(line).ok()?;
    rest.is_empty().then(|| (line, values.iter().map(|&v| u16::from_le_bytes(v)).collect()))
}

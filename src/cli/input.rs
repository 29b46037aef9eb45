//! Text input of a command: a file, a pipe, or standard input, with a limit on its length.

use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// The file name that means standard input.
const STDIN: &str = "-";

/// Reads the text of a file, or of standard input when `path` is `-`.
///
/// Reads pipes as well: a shell passes `<(command)` as one. Reads at most `most_bytes` + 1 bytes, so an endless device
/// is refused without reading on.
///
/// # Errors
/// When the input cannot be read, is a directory, is longer than `most_bytes`, or is not UTF-8; also when standard
/// input is read a second time.
pub(super) fn read_text(path: &Path, most_bytes: u64) -> Result<String> {
    read(path, most_bytes).with_context(|| format!("reading {}", called(path).display()))
}

/// The name of an input in messages.
pub(super) fn called(path: &Path) -> &Path {
    if path == Path::new(STDIN) { Path::new("standard input") } else { path }
}

fn read(path: &Path, most_bytes: u64) -> Result<String> {
    static STDIN_READ: AtomicBool = AtomicBool::new(false);
    if path == Path::new(STDIN) {
        if STDIN_READ.swap(true, Ordering::Relaxed) {
            bail!("standard input can be read only once; name a file for the other input");
        }
        return text_of(std::io::stdin().lock(), most_bytes);
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        bail!("this is a directory; name a file");
    }
    if metadata.len() > most_bytes {
        return Err(too_long(most_bytes));
    }
    text_of(file, most_bytes)
}

fn text_of(input: impl Read, most_bytes: u64) -> Result<String> {
    let mut bytes = Vec::new();
    input.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        return Err(too_long(most_bytes));
    }
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        anyhow::anyhow!("the input is not text: byte {offset} is not UTF-8")
    })
}

fn too_long(most_bytes: u64) -> anyhow::Error {
    anyhow::anyhow!("the input is longer than {most_bytes} bytes, the limit for this input")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_up_to_the_limit() {
        assert_eq!(text_of(&b"abc"[..], 3).unwrap(), "abc");
        for (bytes, limit, what) in [(&b"abcd"[..], 3, "longer than 3"), (b"ab\xff", 9, "byte 2"), (b"a", 0, "limit")] {
            let error = text_of(bytes, limit).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
        // An endless input.
        assert!(text_of(std::io::repeat(0), 1 << 20).is_err());
    }
}

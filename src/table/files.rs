//! Lengths and names of the files of a run directory.

use crate::error::{Error, Result};
use crate::storage::Dir;

/// Returns the length of a file of a run directory in bytes; `None` if the file does not exist.
pub(crate) fn length_of(dir: &Dir, name: &str) -> Result<Option<u64>> {
    dir.length(name).map_err(Error::io("reading the state of", dir.join(name)))
}

/// Returns a name that no file of the directory has: `STEM.EXTENSION`, or `STEM-2.EXTENSION` and so on.
pub(crate) fn unused_name(dir: &Dir, stem: &str, extension: &str) -> Result<String> {
    let mut name = format!("{stem}.{extension}");
    let mut number = 1u64;
    while length_of(dir, &name)?.is_some() {
        number += 1;
        name = format!("{stem}-{number}.{extension}");
    }
    Ok(name)
}

//! Lengths and names of the files of a run directory.

use crate::error::{Error, Result};
use crate::storage::Dir;

/// The file with the state of a period search that was stopped.
pub(crate) const WATCH: &str = "watch.bin";

/// The file that notes which other computations confirm the run.
pub(crate) const CONFIRMATIONS: &str = "confirmed.json";

/// First characters of the name of each waypoint.
pub(crate) const WAYPOINT: &str = "waypoint-";

/// Returns the name of the waypoint that holds the last values before n, for a period search.
pub(crate) fn waypoint_name(n: u64) -> String {
    format!("{WAYPOINT}{n}.bin")
}

/// Returns the n of a waypoint; `None` for the name of any other file.
pub(crate) fn waypoint_number(name: &str) -> Option<u64> {
    name.strip_prefix(WAYPOINT)?.strip_suffix(".bin")?.parse().ok()
}

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

//! Waypoints: the last values before some n, saved along a run that discards values.
//!
//! With the first values and the rare positions of the run, a solver continues from a waypoint as it would from all
//! values, until it meets a new rare position. So a part of the sequence can be computed again without the values
//! before it ([`super::retrace`]).
//!
//! The file `waypoint-N.bin` is one line of JSON, followed by the values before N as little-endian u16. It is written
//! once these values are committed. The journal does not cover it. A file is ignored unless it names the run and
//! contains the BLAKE3 hash of the whole.

use super::sealed_values;
use crate::error::Result;
use crate::storage::Dir;
use crate::table::files::{waypoint_name, waypoint_number};
use crate::theory::nimber::index;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Distance of the waypoints of a run, in values.
pub(super) const STRIDE: u64 = 1 << 32;

/// Maximum number of values of a waypoint.
const MOST_VALUES: u64 = 1 << 20;

/// Maximum length of a file, in bytes.
const MAX_BYTES: u64 = 2 * MOST_VALUES + 1024;

const FORMAT: &str = "grundy-waypoint-1";

/// The first line of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    format: String,
    run: String,
    n: u64,
    /// BLAKE3 of the file with this field empty.
    seal: String,
}

/// The waypoints of a run.
#[derive(Clone, Debug)]
pub(super) struct Waypoints {
    dir: Dir,
    /// The identity of the run.
    run: String,
}

impl Waypoints {
    /// The waypoints in `dir` of the run with this identity.
    pub(super) fn of(dir: &Path, run: &str) -> Waypoints {
        Waypoints { dir: Dir::at(dir), run: run.into() }
    }

    /// Saves the last `values` before n.
    ///
    /// # Errors
    /// Errors of writing the file.
    pub(super) fn write(&self, n: u64, values: &[u16]) -> Result<()> {
        self.dir.write_whole(&waypoint_name(n), &self.bytes(n, values))
    }

    /// The bytes of the file.
    fn bytes(&self, n: u64, values: &[u16]) -> Vec<u8> {
        let line = |seal| Line { format: FORMAT.into(), run: self.run.clone(), n, seal };
        sealed_values::bytes(line, values)
    }

    /// The n of all valid waypoints with at least `width` values, ascending.
    pub(super) fn positions(&self, width: u64) -> Vec<u64> {
        let names = self.dir.names().unwrap_or_default();
        let mut positions: Vec<u64> = names.iter().filter_map(|name| waypoint_number(name)).collect();
        positions.retain(|&n| self.read(n).is_some_and(|values| values.len() as u64 >= width));
        positions.sort_unstable();
        positions.dedup();
        positions
    }

    /// The last values before n; `None` unless there is an unaltered waypoint of this run.
    pub(super) fn read(&self, n: u64) -> Option<Vec<u16>> {
        let bytes = self.dir.read_at_most(&waypoint_name(n), MAX_BYTES).ok()?;
        let (_, values) = sealed_values::parse::<Line>(&bytes)?;
        (values.len() as u64 <= n && self.bytes(n, &values) == bytes).then_some(values)
    }
}

/// Saves waypoints of the values that it receives, once they are committed.
pub(super) struct Recorder {
    waypoints: Waypoints,
    /// Distance of the waypoints.
    stride: u64,
    /// The first values of the next waypoint.
    values: Vec<u16>,
    /// One past the n of the last of `values`.
    end: u64,
    /// The waypoints whose values are not committed, ascending, with their values.
    uncommitted: Vec<(u64, Vec<u16>)>,
}

impl Recorder {
    /// A recorder of the values of a run.
    pub(super) fn new(waypoints: Waypoints, stride: u64) -> Recorder {
        Recorder { waypoints, stride, values: Vec::new(), end: 0, uncommitted: Vec::new() }
    }

    /// Receives the values from `from` on. A waypoint has `width` values; there is none with more than [`MOST_VALUES`]
    /// or the stride, nor one whose first values were not received.
    pub(super) fn see(&mut self, from: u64, values: &[u16], width: u64) {
        if width > self.stride.min(MOST_VALUES) {
            return;
        }
        let to = from + values.len() as u64;
        for n in ((from + 1).next_multiple_of(self.stride)..to + width).step_by(index(self.stride)) {
            let (start, end) = ((n - width).max(from), n.min(to));
            if start >= end {
                continue;
            }
            if self.end != start {
                self.values.clear();
            }
            self.values.extend_from_slice(&values[index(start - from)..index(end - from)]);
            self.end = end;
            if end == n {
                let values = std::mem::take(&mut self.values);
                if values.len() as u64 >= width {
                    self.uncommitted.push((n, values));
                }
            }
        }
    }

    /// Saves the waypoints of the first `count` values, which are committed.
    ///
    /// # Errors
    /// Errors of writing a file.
    pub(super) fn committed(&mut self, count: u64) -> Result<()> {
        let committed = self.uncommitted.partition_point(|(n, _)| *n <= count);
        self.uncommitted.drain(..committed).try_for_each(|(n, values)| self.waypoints.write(n, &values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::Random;

    #[test]
    fn waypoints_are_the_values_before_multiples_of_the_stride() {
        let random = &mut Random::new("waypoints");
        let home = tempfile::tempdir().unwrap();
        let all: Vec<u16> = (0..5000).map(|_| random.below(1 << 16) as u16).collect();
        let waypoints = Waypoints::of(home.path(), "run");
        let mut recorder = Recorder::new(waypoints.clone(), 1000);
        let mut from = 0;
        while from < all.len() {
            let to = all.len().min(from + 1 + random.below(1500) as usize);
            recorder.see(from as u64, &all[from..to], 300);
            // Values are committed later than they are computed.
            recorder.committed(from as u64).unwrap();
            assert!(waypoints.positions(1).iter().all(|&n| n <= from as u64), "{from}");
            from = to;
        }
        recorder.committed(5000).unwrap();
        assert_eq!(waypoints.positions(1), [1000, 2000, 3000, 4000, 5000]);
        for n in waypoints.positions(1) {
            assert_eq!(waypoints.read(n).unwrap(), &all[n as usize - 300..n as usize], "{n}");
        }
        // A file of another run, and a changed file.
        assert_eq!(Waypoints::of(home.path(), "another").read(1000), None);
        let path = home.path().join(waypoint_name(2000));
        let mut bytes = std::fs::read(&path).unwrap();
        let place = random.below(bytes.len() as u64) as usize;
        bytes[place] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(waypoints.read(2000), None);
    }

    #[test]
    fn a_waypoint_without_its_first_values_is_not_saved() {
        let home = tempfile::tempdir().unwrap();
        let waypoints = Waypoints::of(home.path(), "run");
        let mut recorder = Recorder::new(waypoints.clone(), 1000);
        recorder.see(800, &[1; 250], 300);
        recorder.see(1500, &[1; 300], 300);
        recorder.see(1850, &[1; 200], 300);
        recorder.committed(3000).unwrap();
        assert!(waypoints.positions(1).is_empty());
    }
}

//! Holes in files: punching them, and checking that the file system can.

use crate::error::{Error, Result};
use crate::storage::{Dir, File, Mode};
use crate::theory::nimber::index;
use std::path::Path;

/// Punches a hole of `length` bytes into a file: it frees the blocks, and the range reads as zeros. The length of the
/// file stays.
pub(super) fn punch(file: &File, path: &Path, offset: u64, length: u64) -> Result<()> {
    let action = || format!("freeing {length} bytes at offset {offset} of");
    file.punch(offset, length).map_err(|e| Error::io(action(), path)(e))
}

/// Checks on a scratch file that holes can be punched into files of this directory.
///
/// # Errors
/// [`Error::NoHoles`] if not; [`Error::Io`].
pub(crate) fn check_holes(dir: &Dir) -> Result<()> {
    /// Length of the hole, in bytes.
    const PAGE: u64 = 4096;
    const NAME: &str = "holes.tmp";
    let path = dir.join(NAME);
    dir.remove(NAME).map_err(Error::io("removing", &path))?; // left by a process that was killed here
    let file = dir.open(NAME, Mode::New).map_err(Error::io("creating", &path))?;
    dir.remove(NAME).map_err(Error::io("removing", &path))?;
    file.write_all_at(&vec![1; index(2 * PAGE)], 0).map_err(|error| {
        // The user does not know the scratch file.
        dir.write_error(error, dir.path(), 2 * PAGE, "writing a file in")
    })?;
    punch(&file, &path, PAGE, PAGE).map_err(|error| no_holes(dir.path(), &error.to_string()))?;
    let mut bytes = vec![2; index(2 * PAGE)];
    file.read_exact_at(&mut bytes, 0).map_err(Error::io("reading", &path))?;
    let (before, hole) = bytes.split_at(index(PAGE));
    if before.iter().all(|&b| b == 1) && hole.iter().all(|&b| b == 0) {
        Ok(())
    } else {
        Err(no_holes(dir.path(), "a hole does not read as zeros"))
    }
}

/// The error for a file system on which [`check_holes`] fails.
fn no_holes(dir: &Path, why: &str) -> Error {
    Error::NoHoles { path: dir.into(), why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Storage;
    use crate::storage::testing::{Fault, Faults, Memory, Plan};
    use std::sync::Arc;

    #[test]
    fn missing_hole_support_is_reported_and_the_check_leaves_no_file() {
        let path = Path::new("run");
        let disk = Memory::new();
        check_holes(&Dir::on(Arc::new(disk.clone()), path)).unwrap();
        assert_eq!(disk.names().unwrap(), Vec::<String>::new());
        // Each operation fails in turn, among them the punch.
        let counted = Arc::new(Faults::new(Arc::new(Memory::new()), Plan::None));
        check_holes(&Dir::on(counted.clone(), path)).unwrap();
        let mut refused = 0;
        for at in 1..=counted.operations() {
            let disk = Memory::new();
            let plan = Plan::At { at, fault: Fault::Io, lasting: false };
            let error = check_holes(&Dir::on(Arc::new(Faults::new(Arc::new(disk), plan)), path)).unwrap_err();
            if let Error::NoHoles { why, .. } = &error {
                assert!(why.contains("freeing 4096 bytes at offset 4096"), "{why}");
                refused += 1;
            }
        }
        assert_eq!(refused, 1, "the punch fails once");
    }
}

//! File systems of a test's own: small ones, to be full, and ones on loop devices, to lose power.
//!
//! Mounting needs root and a kernel that allows it, so every function says why where it cannot; the test is skipped
//! then, and its line of the table says so.

use super::text;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// What was mounted; unmounted when dropped.
pub(crate) struct Mount {
    /// Holds the mount point, and the image of a loop device.
    place: TempDir,
    mounted: bool,
}

impl Mount {
    /// An empty file system in memory.
    pub(crate) fn tmpfs(bytes: u64) -> Result<Mount, String> {
        let mut mount = Mount::nowhere();
        command("mount", &["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"], &mount.path())?;
        mount.mounted = true;
        Ok(mount)
    }

    /// An image file with an empty `ext4` or `xfs`.
    pub(crate) fn image(kind: &str, bytes: u64) -> Result<Mount, String> {
        let mut mount = Mount::nowhere();
        std::fs::File::create(mount.image_path()).unwrap().set_len(bytes).unwrap();
        command(&format!("mkfs.{kind}"), &["-q"], &mount.image_path())?;
        mount.again()?;
        Ok(mount)
    }

    fn nowhere() -> Mount {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("mount")).unwrap();
        Mount { place, mounted: false }
    }

    fn image_path(&self) -> PathBuf {
        self.place.path().join("image")
    }

    /// The mount point.
    pub(crate) fn path(&self) -> PathBuf {
        self.place.path().join("mount")
    }

    /// Gives a file system in memory another size.
    pub(crate) fn resize(&self, bytes: u64) {
        command("mount", &["-o", &format!("remount,size={bytes}")], &self.path()).unwrap();
    }

    /// Unmounts an image; who still has a file open there gets some time to end.
    pub(crate) fn unmount(&mut self) {
        let all = (0..50).map(|_| command("umount", &[], &self.path()));
        let tried = all.inspect(|done| {
            if done.is_err() {
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        assert!(tried.into_iter().any(|done| done.is_ok()), "{} is busy", self.path().display());
        self.mounted = false;
    }

    /// Mounts the image.
    pub(crate) fn again(&mut self) -> Result<(), String> {
        let image = self.image_path();
        command("mount", &["-o", "loop", image.to_str().unwrap()], &self.path())?;
        self.mounted = true;
        Ok(())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.mounted {
            let _ = command("umount", &["-l"], &self.path());
        }
    }
}

/// Runs a system tool on a path; the first line of what it says when it fails.
fn command(name: &str, arguments: &[&str], path: &Path) -> Result<(), String> {
    // Not in the PATH of everybody.
    let places = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(|dir| Path::new(dir).join(name));
    let program = places.iter().find(|p| p.exists()).ok_or_else(|| format!("{name} is not installed"))?;
    let output = Command::new(program).args(arguments).arg(path).output().map_err(|e| format!("{name}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(text(&output.stderr).lines().next().unwrap_or(name).to_owned())
}

//! File systems for one test: small ones that become full, and ones on loop devices that lose power.
//!
//! Mounting needs root and a kernel that permits it. Each function returns the reason if it cannot mount; the test
//! then prints that it is skipped.

use super::text;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// A mounted file system, unmounted when dropped.
pub(crate) struct Mount {
    /// Directory of the mount point and of the image of a loop device.
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

    /// Changes the size of a file system in memory.
    pub(crate) fn resize(&self, bytes: u64) {
        command("mount", &["-o", &format!("remount,size={bytes}")], &self.path()).unwrap();
    }

    /// Unmounts an image. Waits up to 5 s for processes that still have a file open there.
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

/// Runs a system tool on a path. The error is the first line of its stderr.
fn command(name: &str, arguments: &[&str], path: &Path) -> Result<(), String> {
    // These directories are not in every PATH.
    let places = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(|dir| Path::new(dir).join(name));
    let program = places.iter().find(|p| p.exists()).ok_or_else(|| format!("{name} is not installed"))?;
    let output = Command::new(program).args(arguments).arg(path).output().map_err(|e| format!("{name}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(text(&output.stderr).lines().next().unwrap_or(name).to_owned())
}

//! Which process writes a run: the holder of the lock on its journal, found without taking the lock.
//!
//! Linux lists the locks of this machine in /proc/locks, with the process that took each and the device and inode of
//! the file. Some file systems (overlayfs, Btrfs) list another device or inode than `stat` returns. There, the open
//! files of each process that holds a lock decide, as far as this user may read them.
//!
//! Locks of processes in other containers, and of other machines that share the file system, are not listed.

use grundy::checkpoint::journal;
use procfs::process::Process;
use procfs::{Current, Lock, LockKind, LockType};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The process that writes a run.
pub(super) struct Holder {
    pub(super) pid: i32,
    /// When the process was started; `None` if the system does not show it.
    pub(super) since: Option<SystemTime>,
    /// The number of values that the process computes, if it is a `grundy run` with `--to`.
    pub(super) to: Option<u64>,
}

/// Returns the process that holds the lock on the journal of the run in `dir`; `None` if this process sees none.
pub(super) fn holder(dir: &Path) -> Option<Holder> {
    let journal = std::fs::metadata(dir.join(journal::NAME)).ok()?;
    let locks = procfs::locks().ok()?;
    let exclusive =
        locks.iter().filter(|lock| matches!((&lock.lock_type, &lock.kind), (LockType::FLock, LockKind::Write)));
    let holds = |lock: &Lock| lock.pid.filter(|&pid| pid > 0 && (is_on(lock, &journal) || has_locked(pid, &journal)));
    let pid = exclusive.filter_map(holds).next()?;
    let process = Process::new(pid).ok();
    let process = process.as_ref();
    let arguments = process.and_then(|process| process.cmdline().ok());
    Some(Holder { pid, since: process.and_then(started), to: arguments.and_then(crate::cli::goal_of) })
}

/// Whether a lock is on this file, by the device and inode that the system lists.
fn is_on(lock: &Lock, file: &Metadata) -> bool {
    lock.inode == file.ino() && rustix::fs::makedev(lock.devmaj, lock.devmin) == file.dev()
}

/// Whether this process has locked this file, by its open files.
fn has_locked(pid: i32, file: &Metadata) -> bool {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let is_file = |open: &std::fs::DirEntry| {
        // The path leads to the open file itself, even if its name has been removed.
        std::fs::metadata(open.path()).is_ok_and(|open| (open.dev(), open.ino()) == (file.dev(), file.ino()))
    };
    let is_locked = |open: std::fs::DirEntry| {
        let information = format!("/proc/{pid}/fdinfo/{}", open.file_name().display());
        let information = std::fs::read_to_string(information).unwrap_or_default();
        information.lines().any(|line| line.starts_with("lock:") && line.contains("FLOCK") && line.contains("WRITE"))
    };
    files.filter(is_file).any(is_locked)
}

/// When a process was started.
fn started(process: &Process) -> Option<SystemTime> {
    let after_boot = process.stat().ok()?.starttime as f64 / procfs::ticks_per_second() as f64;
    let age = procfs::Uptime::current().ok()?.uptime - after_boot;
    SystemTime::now().checked_sub(Duration::try_from_secs_f64(age.max(0.0)).ok()?)
}

/// Why a process that writes the run in `dir` may not be visible; `None` if any such process is.
pub(super) fn blind_spot(dir: &Path) -> Option<&'static str> {
    /// Magic numbers of file systems on local disks and in memory: ext4, XFS, Btrfs, tmpfs, overlayfs, ZFS, F2FS,
    /// bcachefs.
    const LOCAL: [u64; 8] =
        [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0x2fc1_2fc1, 0xf2f5_2010, 0xca45_1a4e];
    /// The namespace of all processes of the machine (PROC_PID_INIT_INO of the kernel).
    const ALL_PROCESSES: &str = "pid:[4026531836]";
    let kind = rustix::fs::statfs(dir).map(|file_system| file_system.f_type as u64);
    if !kind.is_ok_and(|kind| LOCAL.contains(&kind)) {
        return Some("a process on another machine that shares this file system is not visible here");
    }
    if procfs::locks().is_err() {
        return Some("/proc/locks, which lists the locks of all processes, cannot be read");
    }
    let space = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    (space != Path::new(ALL_PROCESSES)).then_some("a process outside this container is not visible here")
}

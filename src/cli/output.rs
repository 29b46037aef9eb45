//! Where results go: stdout, or the file that an option such as `-o` names.
//!
//! A file is written under a random name beside its target and renamed when it is complete, so that the target holds
//! either what it held before or the whole result. Three kinds of target are refused: files in a run directory, which
//! must hold nothing but the run; directories; and block devices. Pipes, sockets and character devices (`/dev/stdout`,
//! `>(command)`) are written to as they are, and `-` is stdout.

use super::signals::{Stopped, stop_flag};
use anyhow::{Context, Result, bail};
use rustix::fs::{Access, AtFlags, CWD, accessat, statvfs};
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{BufWriter, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::NamedTempFile;

/// Bytes that are collected before a file is written to.
const BUFFER: usize = 1 << 20;

/// Writes a result to stdout, buffered.
///
/// # Errors
/// What `body` and writing give.
pub(crate) fn print(body: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    body(&mut out)?;
    out.flush()?;
    Ok(())
}

/// Writes a result to the file that the user named; see [`Output`].
///
/// # Errors
/// What [`Output::to`] and [`Output::write`] give.
pub(crate) fn whole_file(path: &Path, body: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    Output::to(path)?.write(body)
}

/// Checks that [`whole_file`] could write there, before hours of work. Changes nothing in the file system.
///
/// # Errors
/// What [`Output::to`] gives, and what creating a file beside the target gives.
pub(crate) fn can_write(path: &Path) -> Result<()> {
    if let Target::File { real, .. } = &Output::to(path)?.target {
        // A file without a name, where the file system has them; nobody sees it, and nothing of it stays.
        tempfile::tempfile_in(directory_of(real)).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// Refuses a directory that holds a run, as the target of several files.
///
/// # Errors
/// When the directory holds a journal.
pub(crate) fn refuse_run_directory(dir: &Path) -> Result<()> {
    if dir.join(grundy::checkpoint::journal::NAME).symlink_metadata().is_ok() {
        bail!("{} is a run directory, where nothing else may be written; choose another directory", dir.display());
    }
    Ok(())
}

/// Where a result goes.
#[derive(Debug)]
pub(crate) struct Output {
    /// As it was typed; `-` for stdout.
    typed: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    Stdout,
    /// A pipe, socket or character device, which is opened and written to.
    Stream,
    /// A regular file: its path without links, and what is there now.
    File {
        real: PathBuf,
        replaced: Option<Metadata>,
    },
}

impl Output {
    /// The standard output.
    pub(crate) fn stdout() -> Output {
        Output { typed: PathBuf::from("-"), target: Target::Stdout }
    }

    /// What the user named. Links are resolved here, once.
    ///
    /// # Errors
    /// When nothing may be written there: a file in a run directory, a directory, a block device, a file without write
    /// permission, a link to nothing, a name in a directory that does not exist.
    pub(crate) fn to(path: &Path) -> Result<Output> {
        let typed = path.to_owned();
        if path == Path::new("-") {
            return Ok(Output { typed, target: Target::Stdout });
        }
        let target = Target::of(path).with_context(|| format!("writing {}", path.display()))?;
        Ok(Output { typed, target })
    }

    /// Whether this is the standard output.
    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self.target, Target::Stdout)
    }

    /// The name for messages.
    pub(crate) fn name(&self) -> String {
        if self.is_stdout() { "stdout".to_owned() } else { self.typed.display().to_string() }
    }

    /// Refuses a target that is one of the files in `dir`, the run directory that is read, under whatever name. What else
    /// is wrong with the directory, opening the run says.
    ///
    /// # Errors
    /// When it is one of them.
    pub(crate) fn refuse_files_of(&self, dir: &Path) -> Result<()> {
        let Target::File { real, replaced: Some(replaced) } = &self.target else { return Ok(()) };
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let file = entry.path();
            if file.metadata().is_ok_and(|there| (there.dev(), there.ino()) == (replaced.dev(), replaced.ino())) {
                bail!("writing {}: {} is {}, a file of the run", self.typed.display(), real.display(), file.display());
            }
        }
        Ok(())
    }

    /// Refuses a result of at least `bytes` bytes when the file system of the target has less room. The room of a file
    /// that is replaced does not count: it is freed only when the new one is complete.
    ///
    /// # Errors
    /// When there is too little room.
    pub(crate) fn require_room(&self, bytes: u64) -> Result<()> {
        let Target::File { real, .. } = &self.target else { return Ok(()) };
        // Some file systems do not tell; a write that fails later removes what it wrote.
        let Ok(stat) = statvfs(directory_of(real)) else { return Ok(()) };
        let blocks = if rustix::process::geteuid().is_root() { stat.f_bfree } else { stat.f_bavail };
        let free = blocks.saturating_mul(stat.f_frsize);
        if bytes > free {
            bail!(
                "writing {}: no room: at least {bytes} bytes are to be written, {free} are free; choose another file \
                 system or a smaller --range",
                self.typed.display()
            );
        }
        Ok(())
    }

    /// Writes the result: `body` writes it to the writer that it is given.
    ///
    /// A file appears under its name when it is complete and on the disk. It keeps the mode of the file that it replaces.
    /// The first INT, TERM or HUP ends the writing of a file, and what was written is removed, as on any error. A signal
    /// ends a write to a pipe at once, as it always does.
    ///
    /// # Errors
    /// What `body` and writing give, and [`Stopped`].
    pub(crate) fn write(&self, body: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
        let written = match &self.target {
            Target::Stdout => return print(body),
            Target::Stream => stream(&self.typed, body),
            Target::File { real, replaced } => file(real, replaced.as_ref(), body),
        };
        written.with_context(|| format!("writing {}", self.typed.display()))
    }
}

impl Target {
    fn of(path: &Path) -> Result<Target> {
        let there = match std::fs::metadata(path) {
            Ok(there) => there,
            Err(error) if error.kind() == ErrorKind::NotFound => return Target::new_file(path),
            Err(error) => return Err(error.into()),
        };
        let is = |file: std::io::Result<(u64, u64)>| file.is_ok_and(|id| id == (there.dev(), there.ino()));
        let kind = there.file_type();
        if kind.is_dir() {
            bail!("this is a directory; name a file");
        }
        if kind.is_block_device() {
            bail!("this is a block device; name a file");
        }
        // '/dev/stdout' may be a file that the shell opened to append to it, or a socket, which cannot be opened.
        if is(identity(std::io::stdout())) {
            return Ok(Target::Stdout);
        }
        if !kind.is_file() {
            return Ok(Target::Stream);
        }
        if is(identity(std::io::stderr())) {
            bail!("messages of this command go there; name another file");
        }
        accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS)
            .map_err(std::io::Error::from)
            .context("the file is there and cannot be written")?;
        let real = std::fs::canonicalize(path)?;
        refuse_run_directory(directory_of(&real))?;
        Ok(Target::File { real, replaced: Some(there) })
    }

    /// A name under which there is nothing.
    fn new_file(path: &Path) -> Result<Target> {
        if let Ok(to) = std::fs::read_link(path) {
            bail!("this is a link to {}, which does not exist; name that file itself", to.display());
        }
        let (Some(name), false) = (path.file_name(), path.as_os_str().as_bytes().ends_with(b"/")) else {
            bail!("this is not the name of a file");
        };
        let dir = directory_of(path);
        let dir = dir.canonicalize().with_context(|| format!("the directory {}", dir.display()))?;
        refuse_run_directory(&dir)?;
        Ok(Target::File { real: dir.join(name), replaced: None })
    }
}

/// The directory of a file, `.` for a bare name.
fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Device and inode of an open file.
fn identity(file: impl AsFd) -> std::io::Result<(u64, u64)> {
    let there = File::from(file.as_fd().try_clone_to_owned()?).metadata()?;
    Ok((there.dev(), there.ino()))
}

fn stream(path: &Path, body: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() || kind.is_block_device() {
        bail!("another file was put there meanwhile");
    }
    let mut out = BufWriter::with_capacity(BUFFER, file);
    body(&mut out)?;
    Ok(out.flush()?)
}

fn file(path: &Path, replaced: Option<&Metadata>, body: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let stop = stop_flag()?;
    let stopped = || if stop.load(Ordering::Relaxed) { Err(Stopped) } else { Ok(()) };
    let dir = directory_of(path);
    // Created exclusively, and removed when dropped. The umask takes its part of the mode of a new file.
    let mode = if replaced.is_some() { 0o600 } else { 0o666 };
    let part: NamedTempFile = tempfile::Builder::new()
        .prefix(".grundy-")
        .suffix(".part")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(dir)?;
    let mut out = BufWriter::with_capacity(BUFFER, Stoppable { file: part.as_file(), stop: Arc::clone(&stop) });
    let written = body(&mut out).and_then(|()| Ok(out.flush()?));
    drop(out.into_parts()); // without another flush
    stopped()?;
    written?;
    if let Some(replaced) = replaced {
        // Only root can give a file to others.
        let _ = std::os::unix::fs::fchown(part.as_file(), Some(replaced.uid()), Some(replaced.gid()));
        part.as_file().set_permissions(Permissions::from_mode(replaced.mode() & 0o777))?;
    }
    part.as_file().sync_all()?;
    stopped()?;
    part.persist(path).map_err(|error| error.error)?;
    // Not every file system syncs directories; the file itself is whole in any case.
    let _ = File::open(dir).and_then(|dir| dir.sync_all());
    Ok(())
}

/// A file that cannot be written to once a signal has come.
struct Stoppable<'a> {
    file: &'a File,
    stop: Arc<AtomicBool>,
}

impl Write for Stoppable<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.stop.load(Ordering::Relaxed) {
            // Not `Interrupted`, upon which writers try again.
            true => Err(std::io::Error::other(Stopped)),
            false => self.file.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

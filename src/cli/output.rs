//! Output of results: to stdout, or to the file that an option such as `-o` names.
//!
//! A file is written under a random name beside its target and renamed when it is complete, so that the target contains
//! either its previous content or the whole result. Three kinds of target are refused: files in a run directory, which
//! must contain nothing but the run; directories; and block devices. Pipes and character devices (`/dev/stdout`,
//! `>(command)`) are opened and written directly, and `-` is stdout.

use super::layout::size;
use super::signals::{self, Stopped};
use anyhow::{Context, Result, bail};
use rustix::fs::{Access, AtFlags, CWD, OFlags, accessat, fcntl_getfl, fcntl_setfl, statvfs};
use rustix::io::Errno;
use serde::Serialize;
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{BufWriter, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tempfile::NamedTempFile;

/// Size of the write buffer of a file, in bytes.
const BUFFER: usize = 1 << 20;

/// How the name of a temporary file beside its target begins.
pub(crate) const TEMPORARY: &str = ".grundy-";

/// Writes a result to stdout, buffered. Once the reader of a pipe has gone, `body` ends at its next write, which is no
/// error: the exit status and the files of the command do not depend on the reader.
///
/// # Errors
/// The errors of `body` and of writing to stdout.
pub(crate) fn print(body: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    unless_reader_left(print_while_read(body))
}

/// Takes an error of a closed pipe for success: the reader of stdout has gone.
pub(crate) fn unless_reader_left(printed: Result<()>) -> Result<()> {
    match printed {
        Err(error) if super::is_closed_pipe(&error) => Ok(()),
        printed => printed,
    }
}

/// Like [`print`], but a reader that has gone is an error, which ends a command that prints at intervals.
///
/// # Errors
/// The errors of `body` and of writing to stdout.
pub(crate) fn print_while_read(body: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, Stdout(std::io::stdout().lock()));
    body(&mut out)?;
    out.flush()?;
    Ok(())
}

/// The standard output, whose errors name it.
struct Stdout<'a>(std::io::StdoutLock<'a>);

fn of_stdout(error: std::io::Error) -> std::io::Error {
    std::io::Error::new(error.kind(), format!("writing to stdout: {error}"))
}

impl Write for Stdout<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes).map_err(of_stdout)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush().map_err(of_stdout)
    }
}

/// Writes a text for people to stdout, with the styles of [`super::colour`] if stdout has colour.
///
/// # Errors
/// The errors of writing to stdout.
pub(crate) fn styled(text: &str) -> Result<()> {
    let mut out = anstream::AutoStream::auto(std::io::stdout().lock());
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(of_stdout);
    unless_reader_left(written.map_err(Into::into))
}

/// Writes a line with a JSON object, its keys in alphabetical order.
///
/// # Errors
/// The errors of writing to `out`.
pub(crate) fn object(out: &mut dyn Write, fields: &impl Serialize) -> Result<()> {
    Ok(writeln!(out, "{}", serde_json::to_value(fields)?)?)
}

/// Writes a result to the file that the user named; see [`Output`].
///
/// # Errors
/// The errors of [`Output::to`] and [`Output::write`].
pub(crate) fn whole_file(path: &Path, body: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    Output::to(path)?.write(body)
}

/// Checks that the directory can receive a file of this name, which the command chose: that there is none, or a regular
/// file that it may replace. A link would lead to a file that the user did not name.
///
/// # Errors
/// If something else has the name.
pub(crate) fn refuse_foreign(file: &Path) -> Result<()> {
    if file.symlink_metadata().is_ok_and(|there| !there.is_file()) {
        bail!("{}: this is not a regular file; remove it, or choose another directory", file.display());
    }
    Ok(())
}

/// Checks that [`whole_file`] can write to `path`, so that a long computation does not end in vain. Changes nothing in
/// the file system.
///
/// # Errors
/// The errors of [`Output::to`] and of creating a file beside the target.
pub(crate) fn can_write(path: &Path) -> Result<()> {
    if let Target::File { real, .. } = &Output::to(path)?.target {
        // An unnamed file where the file system supports it; the file vanishes when it is closed.
        let created = tempfile::tempfile_in(directory_of(real)).map_err(without_path);
        created.with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// An error of `tempfile` without the file that it names, which the user does not know.
fn without_path(error: std::io::Error) -> std::io::Error {
    let text = error.to_string();
    let cause = text.split_once(" at path ").map_or(text.as_str(), |(cause, _)| cause);
    std::io::Error::new(error.kind(), cause)
}

/// Refuses a directory of output files, without symbolic links in its path, that is a run directory or lies in one.
///
/// # Errors
/// If the directory or one above it contains a journal.
fn refuse_within_run(dir: &Path) -> Result<()> {
    dir.ancestors().try_for_each(refuse_run_directory)
}

fn refuse_run_directory(dir: &Path) -> Result<()> {
    if dir.join(grundy::checkpoint::journal::NAME).symlink_metadata().is_ok() {
        bail!("{} is a run directory, which must contain nothing but the run; choose another directory", dir.display());
    }
    Ok(())
}

/// Checks that a command can write a directory of files to `dir`.
///
/// # Errors
/// If `dir` is `-`, a file, or a run directory, or lies in a run directory.
pub(crate) fn refuse_unsuitable_directory(dir: &Path) -> Result<()> {
    if dir == Path::new("-") {
        bail!("'-' means stdout, but this command writes a directory; name one ('./-' is one with this name)");
    }
    if dir.metadata().is_ok_and(|there| !there.is_dir()) {
        bail!("{}: not a directory; choose an empty directory or a new one", dir.display());
    }
    let existing = dir.ancestors().find(|dir| dir.as_os_str().is_empty() || dir.exists()).unwrap_or(dir);
    let existing = if existing.as_os_str().is_empty() { Path::new(".") } else { existing };
    match existing.canonicalize() {
        Ok(real) => refuse_within_run(&real),
        Err(_) => refuse_run_directory(dir),
    }
}

/// The destination of a result.
#[derive(Debug)]
pub(crate) struct Output {
    /// The path as it was typed; `-` for stdout.
    typed: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    Stdout,
    /// A pipe, socket or character device, which is opened and written directly.
    Stream,
    /// A regular file: its path without symbolic links, and the metadata of the file that it replaces.
    File {
        real: PathBuf,
        replaced: Option<Metadata>,
    },
}

impl Output {
    /// The output of an option: as [`Output::to`], or stdout if the option is not given.
    ///
    /// # Errors
    /// The errors of [`Output::to`].
    pub(crate) fn of_option(path: Option<&Path>) -> Result<Output> {
        Output::to(path.unwrap_or(Path::new("-")))
    }

    /// The output to `path`, or to stdout if it is `-`. Resolves symbolic links, once.
    ///
    /// # Errors
    /// If the target is refused: a file in a run directory, a directory, a block device, a file without write
    /// permission, a dangling symbolic link, or a name in a directory that does not exist.
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

    /// Whether both are the same file, or both are stdout.
    pub(crate) fn is_same(&self, other: &Output) -> bool {
        match (&self.target, &other.target) {
            (Target::File { real: one, .. }, Target::File { real: two, .. }) => one == two,
            (one, two) => matches!((one, two), (Target::Stdout, Target::Stdout)) || self.typed == other.typed,
        }
    }

    /// The name for messages.
    pub(crate) fn name(&self) -> String {
        if self.is_stdout() { "stdout".to_owned() } else { self.typed.display().to_string() }
    }

    /// Refuses a target that is a file in `dir`, the run directory that the command reads, under any name (device and
    /// inode are compared). Ignores an unreadable directory, which opening the run reports.
    ///
    /// # Errors
    /// If the target is such a file.
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

    /// Refuses a result of at least `bytes` bytes if the file system of the target has less free space. The space of a
    /// replaced file does not count, because it is freed only when the new file is complete.
    ///
    /// # Errors
    /// If there is too little free space.
    pub(crate) fn require_room(&self, bytes: u64) -> Result<()> {
        let Target::File { real, .. } = &self.target else { return Ok(()) };
        // Some file systems do not report free space; a write that fails later removes its partial file.
        let Ok(stat) = statvfs(directory_of(real)) else { return Ok(()) };
        let blocks = if rustix::process::geteuid().is_root() { stat.f_bfree } else { stat.f_bavail };
        let free = blocks.saturating_mul(stat.f_frsize);
        if bytes > free {
            bail!(
                "writing {}: no room: at least {} are needed, {} are free; choose another file system or a smaller \
                 --range",
                self.typed.display(),
                size(bytes),
                size(free)
            );
        }
        Ok(())
    }

    /// Writes the result: calls `body` with the writer of the destination.
    ///
    /// A file appears under its name when it is complete and synced. It keeps the mode of the file that it replaces.
    /// The first INT, TERM or HUP stops the writing of a file; the partial file is removed, as on any error. A signal
    /// during a write to stdout or a pipe has its default effect.
    ///
    /// # Errors
    /// The errors of `body` and of writing; [`Stopped`] after a signal.
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
        // '/dev/stdout' may be a file that the shell opened for appending, or a socket, which cannot be opened by path.
        if is(identity(std::io::stdout())) {
            return Ok(Target::Stdout);
        }
        if !kind.is_file() {
            return Ok(Target::Stream);
        }
        if is(identity(std::io::stderr())) {
            bail!("this file receives the messages of this command; name another file");
        }
        accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS)
            .map_err(std::io::Error::from)
            .context("the file exists but is not writable")?;
        let real = std::fs::canonicalize(path)?;
        refuse_within_run(directory_of(&real))?;
        Ok(Target::File { real, replaced: Some(there) })
    }

    /// The target for a name that does not exist yet.
    fn new_file(path: &Path) -> Result<Target> {
        if let Ok(to) = std::fs::read_link(path) {
            bail!("this is a symbolic link to {}, which does not exist; name that file itself", to.display());
        }
        let (Some(name), false) = (path.file_name(), path.as_os_str().as_bytes().ends_with(b"/")) else {
            bail!("this is not the name of a file");
        };
        let dir = directory_of(path);
        let dir = dir.canonicalize().with_context(|| format!("the directory {}", dir.display()))?;
        refuse_within_run(&dir)?;
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

/// Writes to a pipe or a character device.
fn stream(path: &Path, body: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let file = open_stream(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() || kind.is_block_device() {
        bail!("the path was replaced by another file while the command ran");
    }
    let mut out = BufWriter::with_capacity(BUFFER, file);
    body(&mut out)?;
    Ok(out.flush()?)
}

/// Opens a pipe or a character device for writing. Waits until a process reads a named pipe, or a signal stops the
/// command: an open that waits in the system would not notice the signal. After an earlier signal only the next one,
/// which ends the process, stops the waiting, because what the command writes then is its result so far.
fn open_stream(path: &Path) -> Result<File> {
    /// Time between two attempts.
    const RETRY_EVERY: Duration = Duration::from_millis(50);
    let no_wait = OFlags::NONBLOCK.bits().cast_signed();
    let was_stopping = signals::is_stopping();
    let lacks_reader = |error: &std::io::Error| {
        let is_pipe = || path.metadata().is_ok_and(|there| there.file_type().is_fifo());
        error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) && is_pipe()
    };
    loop {
        match OpenOptions::new().write(true).custom_flags(no_wait).open(path) {
            Err(error) if lacks_reader(&error) => {
                if signals::is_stopping() && !was_stopping {
                    return Err(Stopped.into());
                }
                std::thread::sleep(RETRY_EVERY);
            }
            opened => {
                let file = opened?;
                let flags = fcntl_getfl(&file).map_err(std::io::Error::from)?;
                fcntl_setfl(&file, flags - OFlags::NONBLOCK).map_err(std::io::Error::from)?;
                return Ok(file);
            }
        }
    }
}

fn file(path: &Path, replaced: Option<&Metadata>, body: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    // What a command writes after it was stopped is its result so far.
    let stop = if signals::is_stopping() { Arc::default() } else { signals::stop_flag()? };
    let stopped = || if stop.load(Ordering::Relaxed) { Err(Stopped) } else { Ok(()) };
    let dir = directory_of(path);
    // Created exclusively and removed on drop. The umask applies to the mode of a new file.
    let mode = if replaced.is_some() { 0o600 } else { 0o666 };
    let part: NamedTempFile = tempfile::Builder::new()
        .prefix(TEMPORARY)
        .suffix(".part")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(dir)
        .map_err(without_path)?;
    let mut out = BufWriter::with_capacity(BUFFER, Stoppable { file: part.as_file(), stop: Arc::clone(&stop) });
    let written = body(&mut out).and_then(|()| Ok(out.flush()?));
    drop(out.into_parts()); // without another flush
    stopped()?;
    written?;
    if let Some(replaced) = replaced {
        // Ignored on failure, because only root can change the owner.
        let _ = std::os::unix::fs::fchown(part.as_file(), Some(replaced.uid()), Some(replaced.gid()));
        part.as_file().set_permissions(Permissions::from_mode(replaced.mode() & 0o777))?;
    }
    part.as_file().sync_all()?;
    stopped()?;
    part.persist(path).map_err(|error| error.error)?;
    // Ignored on failure: not every file system syncs directories, and the file itself is complete.
    let _ = File::open(dir).and_then(|dir| dir.sync_all());
    Ok(())
}

/// A file whose writes fail once a signal has set the flag.
struct Stoppable<'a> {
    file: &'a File,
    stop: Arc<AtomicBool>,
}

impl Write for Stoppable<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.stop.load(Ordering::Relaxed) {
            // Not `Interrupted`, which makes writers retry.
            return Err(std::io::Error::other(Stopped));
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_temporary_file_does_not_name_it() {
        let parent = tempfile::tempdir().unwrap();
        let missing = parent.path().join("missing");
        let error = tempfile::Builder::new().tempfile_in(&missing).unwrap_err();
        assert!(error.to_string().contains("missing"), "{error}");
        assert_eq!(without_path(error).to_string(), "No such file or directory (os error 2)");
    }
}

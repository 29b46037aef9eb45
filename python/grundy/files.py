"""Files: those of runs, opened for reading and protected from other output, and output files."""

from __future__ import annotations

import errno
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import BinaryIO

from .errors import RunError

EXAMINED = 10_000  # maximum number of directory entries that are examined for runs
LISTED = 10  # maximum number of runs that a message names


def text_of(path: str | os.PathLike[str]) -> str:
    """Returns a path as a str. Raises TypeError for bytes and everything else that is no path.

    >>> from pathlib import Path
    >>> text_of(Path("runs") / "kayles")
    'runs/kayles'
    """
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if isinstance(text, str):
        return text
    raise TypeError(f"{path!r} is not a path; give a str or a Path")


def failure(path: str, error: OSError, advice: str) -> RunError:
    """Returns the RunError for an OSError that the file `path` of a run caused.

    The advice stands at the end, unless too many files are open.
    """
    if error.errno in (errno.EMFILE, errno.ENFILE):
        advice = (
            "keep fewer runs (each holds up to two files open as long as it is referenced), or"
            " raise the limit with `ulimit -n`"
        )
    return RunError(f"{path!r}: {error.strerror}; {advice}")


def open_regular(path: str) -> BinaryIO:
    """Opens a regular file for reading in binary. Does not wait, as opening a FIFO does.

    Raises RunError for anything but a regular file, and OSError.
    """

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))

    file = open(path, "rb", opener=opener)
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise RunError(f"{path!r}: not a regular file; restore the file of the run")


def require_run_directory(path: str) -> None:
    """Raises RunError unless `path` is a directory with a journal. Names the runs in it."""
    advice = "give the directory of a run"
    try:
        is_directory = stat.S_ISDIR(os.stat(path).st_mode)
    except FileNotFoundError:
        raise RunError(f"{path!r}: no such directory; {advice}") from None
    except OSError as e:
        raise failure(path, e, advice) from None
    if not is_directory:
        raise RunError(f"{path!r}: not a directory; {advice}")
    if _has_journal(path):
        return
    if os.path.lexists(os.path.join(path, "values.npy")):
        raise RunError(
            f"{path!r}: no run here (values.npy exists, but journal.jsonl is missing); copy the"
            " run again with all its files"
        )
    raise RunError(f"{path!r}: no run here (no journal.jsonl); {advice}{_runs_in(path)}")


def _has_journal(folder: str) -> bool:
    """Whether the directory has a journal, readable or not."""
    try:
        os.lstat(os.path.join(folder, "journal.jsonl"))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # `Journal` reports why it cannot be read
        return True
    return True


def _runs_in(folder: str) -> str:
    """Returns "; there are runs in A, B and 3 more", or "" if `folder` holds no runs."""
    try:
        with os.scandir(folder) as entries:
            paths = [entry.path for entry in islice(entries, EXAMINED)]
    except OSError:
        return ""
    runs = [repr(path) for path in sorted(filter(_has_journal, paths))]
    more = f" and {len(runs) - LISTED} more" if len(runs) > LISTED else ""
    return f"; there are runs in {', '.join(runs[:LISTED])}{more}" if runs else ""


def refuse_run_directory(path: str) -> None:
    """Raises ValueError if the output file `path` lies in a run directory, at any depth."""
    folder = os.path.realpath(os.path.dirname(path) or ".")
    while not os.path.lexists(os.path.join(folder, "journal.jsonl")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return
        folder = parent
    raise ValueError(
        f"{path!r}: {folder!r} is a run directory, and only runs write there; give a file in"
        " another directory"
    )


@contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """Opens an output file for writing, which has the name `path` only when it is complete.

    A file that is replaced passes its permissions on. A symbolic link is followed. A pipe or a
    device is written directly. Raises OSError, which names `path`, if the file cannot be created or
    replaced.
    """
    real = os.path.realpath(path)
    mode: int | None = None
    with suppress(OSError):
        mode = os.stat(real).st_mode
    if mode is not None and not stat.S_ISREG(mode):
        with open(path, "wb") as file:
            yield file
        return
    part = os.path.join(os.path.dirname(real), f".grundy-{uuid.uuid4().hex}.part")
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    with _error_of(path):
        descriptor = os.open(part, flags, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if mode is not None:
                with _error_of(path):
                    os.chmod(part, mode & 0o777)
            yield file
        with _error_of(path):
            os.replace(part, real)
    except BaseException:
        os.unlink(part)
        raise


@contextmanager
def _error_of(path: str) -> Iterator[None]:
    """Gives an OSError the name `path` in place of that of the temporary file."""
    try:
        yield
    except OSError as e:
        raise OSError(e.errno, e.strerror, path) from None

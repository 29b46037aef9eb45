"""Files: those of runs, opened for reading and protected from other output, and output files."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from .errors import RunError


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

    A symbolic link is followed. A pipe or a device is written directly. Raises OSError, which names
    `path`, if the file cannot be created or replaced.
    """
    real = os.path.realpath(path)
    try:
        is_special = not stat.S_ISREG(os.stat(real).st_mode)
    except OSError:
        is_special = False
    if is_special:
        with open(path, "wb") as file:
            yield file
        return
    with _error_of(path):
        descriptor, part = tempfile.mkstemp(".part", ".grundy-", os.path.dirname(real))
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(part, 0o666 & ~mask)
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

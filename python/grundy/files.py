"""Files of run directories: opened for reading, and protected from other output."""

from __future__ import annotations

import os
import stat
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

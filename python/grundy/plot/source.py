"""Opens what is drawn: a run directory, or a game that the program computes first."""

from __future__ import annotations

import mmap
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from .arguments import Options
from .counting import Chunk
from .errors import PlotError, UsageError
from .reader import Run, open_run

CHUNK = 1 << 18  # values read at a time; fits the caches
RELEASE = 1 << 26  # values after which the pages of the table are given back
DEFAULT_VALUES = 1 << 20  # values of a game without --range
SLOW_VALUES = 1 << 12  # the same if a move leaves three heaps or the code of the game repeats
NAMES = {
    "grundy": "Grundy's game",
    "0.77": "Kayles",
    "0.07": "Dawson's Kayles",
    "0.137": "Dawson's chess",
    "0.007": "Treblecross",
    "0.6": "Officers",
}


class Source:
    """The values G(a), ..., G(b - 1) of a run.

    run   the run, which holds at least b values
    a, b  the range, 0 <= a < b
    """

    def __init__(self, run: Run, a: int, b: int) -> None:
        self.run, self.a, self.b = run, a, b

    def __len__(self) -> int:
        return self.b - self.a

    @property
    def name(self) -> str:
        """The name of the game in titles."""
        game = str(self.run.game)
        return NAMES.get(game, game)

    @property
    def space(self) -> tuple[int, int] | None:
        """(mask, position term) of the sparse space of the run; None if it uses none."""
        record = self.run.last_record
        return (record["mask"], record["position"]) if record["mask"] else None

    def values(self, a: int, b: int) -> npt.NDArray[np.uint16]:
        """Returns G(a), ..., G(b - 1); shape (b - a,). Raises the errors of the reader."""
        return np.asarray(self.run.values(a, b))

    def chunks(self, size: int = CHUNK) -> Iterator[Chunk]:
        """Yields (start, values) for consecutive parts of [a, b), each of at most `size` values."""
        read = 0
        for start in range(self.a, self.b, size):
            values = self.values(start, min(start + size, self.b))
            yield start, values
            read += len(values)
            if read >= RELEASE:
                self.release()
                read = 0

    def release(self) -> None:
        """Gives the pages of the table that this process has read back to the system.

        They stay in the page cache, but no longer count as memory of this process.
        """
        base: object = self.run.mmap()
        while base is not None and not isinstance(base, mmap.mmap):
            base = getattr(base, "base", None)
        if base is not None and hasattr(mmap, "MADV_DONTNEED"):
            base.madvise(mmap.MADV_DONTNEED)


@contextmanager
def open_source(options: Options, beyond: int = 0) -> Iterator[Source]:
    """Opens the run directory or computes the game that `options.source` names.

    A game is computed into a temporary directory, which is removed at the end.

    beyond  number of values to compute beyond the range of a game

    Raises PlotError, and the errors of the reader.
    """
    text = options.source
    if os.sep in text or os.path.exists(os.path.join(text, "journal.jsonl")):
        yield _part(open_run(text), options)
        return
    with tempfile.TemporaryDirectory(prefix="grundy-plot-") as folder:
        path = os.path.join(folder, "run")
        count = options.range[1] if options.range else _default_values(text)
        _compute(text, count + beyond, path, options.program)
        source = _part(open_run(path), options)
        source.b = min(source.b, count)
        yield source


def open_directory(options: Options) -> Run:
    """Opens the run directory `options.source`. Raises the errors of the reader."""
    return open_run(options.source)


def _part(run: Run, options: Options) -> Source:
    """Returns the part of `run` to draw, after a check that all of its values can be read."""
    if len(run) == 0:
        raise PlotError(f"{run.path!r}: the run has no committed values yet; wait for a commit")
    a, b = options.range or (0, len(run))
    if b > len(run):
        raise PlotError(
            f"{run.path!r}: the range {a}..{b} ends beyond the {len(run)} committed values;"
            " continue the run, or give a smaller --range"
        )
    at = a
    for lo, hi in run.kept:  # ascending; adjacent ranges count as one
        if lo <= at < hi:
            at = hi
    if at < b:
        kept = ", ".join(f"{lo}..{hi}" for lo, hi in run.kept)
        raise PlotError(f"{run.path!r}: the run has freed G({at}); give a --range within {kept}")
    return Source(run, a, b)


def _default_values(game: str) -> int:
    slow = re.search(r"[(:]|\.\.\.$|^(nim|lasker)|^[48c]?\.[0-7]*[89a-f]", game, re.IGNORECASE)
    return SLOW_VALUES if slow else DEFAULT_VALUES


def _compute(game: str, count: int, path: str, program: str | None) -> None:
    """Computes the first `count` values of `game` into the run directory `path`."""
    found = program or os.environ.get("GRUNDY") or shutil.which("grundy")
    if not found:
        raise PlotError(
            f"{game!r}: the program 'grundy', which computes a game, is not in PATH; give it with"
            " --program PATH or in the variable GRUNDY, or give a run directory"
        )
    command = [found, "run", game, "--to", str(count), "--dir", path, "--quiet"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError as e:
        raise PlotError(
            f"{found!r}: {e.strerror or e}; give the program with --program PATH"
        ) from e
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().split("\n\n")[0]
        said = re.sub("^error: (invalid value .*? for '.*?': )?", "", said)
        text = said or f"{found!r} ended with status {done.returncode}"
        if done.returncode == 2:
            raise UsageError(f"{game!r} is neither a run directory nor a game: {text}")
        raise PlotError(f"computing {game!r}: {text}")

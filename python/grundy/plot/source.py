"""Opens what is drawn: a run directory, or a game that the program computes first."""

from __future__ import annotations

import mmap
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Callable, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from ..find import ENTRY
from ..program import find_program
from ..rows import Row, parsed_rows
from .arguments import Options
from .counting import Chunk, Ints, add_blocks, by_column
from .errors import PlotError, UsageError
from .reader import Run, open_run

CHUNK = 1 << 18  # values read at a time; fits the caches
RELEASE = 1 << 26  # values after which the pages of the table are given back
DEFAULT_VALUES = 1 << 20  # values of a game without --range
SLOW_VALUES = 1 << 12  # the same if a move leaves three heaps or the code of the game repeats
VERSION_SECONDS = 10  # maximum time of `grundy --version`
SILENT = 2  # seconds after which a computation is announced
LONGEST_NAME = 40  # characters of a name in a title
NAMES = {
    "grundy": "Grundy's game",
    "0.77": "Kayles",
    "0.07": "Dawson's Kayles",
    "0.137": "Dawson's chess",
    "0.007": "Treblecross",
    "0.6": "Officers",
}

T = TypeVar("T")

# What a run knows of the values that it has discarded.
Known = Literal["counts", "first", "maxima", "rares"]


class Source:
    """The values G(a), ..., G(b - 1) of a run.

    run   the run, which holds at least b values
    a, b  the range, 0 <= a < b
    unit  1, or, if the run has discarded values of the range, the number of n in a block of counts
    """

    def __init__(self, run: Run, a: int, b: int, unit: int = 1) -> None:
        self.run, self.a, self.b, self.unit = run, a, b, unit

    def __len__(self) -> int:
        return self.b - self.a

    @property
    def name(self) -> str:
        """The name of the game in titles."""
        return name_of(self.run)

    @property
    def has_space(self) -> bool:
        """Whether the run uses a sparse space, so that each position is rare or common."""
        return bool(self.run.last_record["mask"])

    def rares(self) -> npt.NDArray[np.void]:
        """Returns the rare positions as entries with n and value; none without a sparse space."""
        if not self.has_space:
            return np.empty(0, ENTRY)
        found = self.run.rares(self.a, self.b)
        self.release()
        return found

    def values(self, a: int, b: int) -> npt.NDArray[np.uint16]:
        """Returns G(a), ..., G(b - 1); shape (b - a,). Raises the errors of the reader."""
        return np.asarray(self.run.values(a, b))

    def chunks(self, size: int = CHUNK, maxima: bool = False) -> Iterator[Chunk]:
        """Yields (start, values) for consecutive parts of [a, b), each of at most `size` values.

        Discarded values are left out, except that each of their maxima, if `maxima` is set, is a
        part of its own.
        """
        read, end = 0, self.a
        for lo, hi in _retained(self.run, self.a, self.b):
            if maxima and end < lo:
                yield from self._maxima(end, lo)
            for start in range(lo, hi, size):
                values = self.values(start, min(start + size, hi))
                yield start, values
                read += len(values)
                if read >= RELEASE:
                    self.release()
                    read = 0
            end = hi
        if maxima and end < self.b:
            yield from self._maxima(end, self.b)

    def _maxima(self, a: int, b: int) -> Iterator[Chunk]:
        """Yields each discarded maximum of [a, b) as a chunk."""
        for n, value in (self.run.summary() or {})["maxima"]:
            if a <= n < b:
                yield n, np.array([value], np.uint16)

    def count(self, edges: Ints, rows: int, group: int = 1) -> Ints:
        """Counts values by column and row, as counting.by_column. Discarded values count too.

        Edges among discarded values are multiples of `unit`. Raises PlotError if the run has no
        counts of a discarded value.
        """
        counts = by_column(self.chunks(), edges, rows, group)
        if self.unit > 1:
            add_blocks(counts, self.run.counts(), edges, group)
            missing = int(edges[-1] - edges[0] - counts.sum())
            if missing:
                raise PlotError(
                    f"{self.run.path!r}: counts.jsonl lacks {missing} of the discarded values of"
                    f" {edges[0]}..{edges[-1]}; give a --range of values that it counts"
                )
        return counts

    def snapped(self, edges: Ints) -> Ints:
        """Returns the edges, those among discarded values rounded down to a multiple of `unit`."""
        if self.unit == 1:
            return edges
        (_, lo), (hi, _) = self.run.kept
        inside = (edges > lo) & (edges < hi)
        return np.unique(np.where(inside, edges // self.unit * self.unit, edges))

    def release(self) -> None:
        """Gives the pages of the table that this process has read back to the system.

        They stay in the page cache, but no longer count as memory of this process.
        """
        base: object = self.run.mmap()
        while base is not None and not isinstance(base, mmap.mmap):
            # NumPy refers to a map directly or through a memoryview.
            base = base.obj if isinstance(base, memoryview) else getattr(base, "base", None)
        if base is not None and hasattr(mmap, "MADV_DONTNEED"):
            base.madvise(mmap.MADV_DONTNEED)


def name_of(run: Run) -> str:
    """Returns the name of the game in titles, at most LONGEST_NAME characters."""
    game = str(run.game)
    name = NAMES.get(game, game)
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


@contextmanager
def open_source(options: Options, beyond: int = 0, known: Known | None = None) -> Iterator[Source]:
    """Opens the run directory or computes the game that `options.source` names.

    A game is computed into a temporary directory, which is removed at the end.

    beyond  number of values to compute beyond the range of a game
    known   what the picture needs of discarded values; None if it needs the values themselves

    Raises PlotError, and the errors of the reader.
    """
    text = options.source
    if os.sep in text or os.path.exists(os.path.join(text, "journal.jsonl")):
        yield _part(open_run(text), options, known)
        return
    with tempfile.TemporaryDirectory(prefix="grundy-plot-") as folder:
        path = os.path.join(folder, "run")
        count = options.range[1] if options.range else _default_values(text)
        _compute(text, count, beyond, path, options.program)
        source = _part(open_run(path), options, known)
        source.b = min(source.b, count)
        yield source


def read_rows(path: str, kind: str, parse: Callable[[Row], T]) -> list[T]:
    """Returns what `rows.parsed_rows` does. Raises PlotError."""
    try:
        return parsed_rows(path, kind, parse)
    except OSError as e:
        raise PlotError(f"{path!r}: {e.strerror or e}; give {kind}") from e
    except ValueError as e:
        raise PlotError(str(e)) from e


def open_directory(options: Options) -> Run:
    """Opens the run directory `options.source`. Raises the errors of the reader."""
    return open_run(options.source)


def _part(run: Run, options: Options, known: Known | None) -> Source:
    """Returns the part of `run` to draw, after a check that enough is known of all its values."""
    if len(run) == 0:
        raise PlotError(f"{run.path!r}: the run has no committed values yet; wait for a commit")
    a, b = options.range or (0, len(run))
    if b > len(run):
        raise PlotError(
            f"{run.path!r}: the range {a}..{b} ends beyond the {len(run)} committed values;"
            " continue the run, or give a smaller --range"
        )
    if sum(hi - lo for lo, hi in _retained(run, a, b)) == b - a:
        return Source(run, a, b)
    (_, lo), (hi, _) = run.kept
    if known is None or (known in ("first", "maxima") and a > lo):
        raise PlotError(
            f"{run.path!r}: the run has discarded G({max(a, lo)}); give a --range within"
            f" {_ranges(run.kept)}"
        )
    unit = _unit(run) if known == "counts" else 1
    if any(lo < edge < hi and edge % unit for edge in (a, b)):
        raise PlotError(
            f"{run.path!r}: the run has discarded values at an end of {a}..{b}, and knows them in"
            f" blocks; give a --range that begins and ends at a multiple of {unit}, or within"
            f" {_ranges(run.kept)}"
        )
    return Source(run, a, b, unit)


def _retained(run: Run, a: int, b: int) -> list[tuple[int, int]]:
    """Returns the parts of [a, b) that the run retains, ascending and not empty."""
    parts = [(max(lo, a), min(hi, b)) for lo, hi in run.kept]
    return [(lo, hi) for lo, hi in parts if lo < hi]


def _ranges(ranges: Iterable[tuple[int, int]]) -> str:
    return ", ".join(f"{lo}..{hi}" for lo, hi in ranges)


def _unit(run: Run) -> int:
    """Returns the number of n in a block of the counts of discarded values."""
    for block in run.counts():
        return block.stop - block.start
    raise PlotError(
        f"{run.path!r}: the run has discarded G({run.kept[0][1]}), and has no counts of discarded"
        f" values in counts.jsonl; give a --range within {_ranges(run.kept)}"
    )


def _default_values(game: str) -> int:
    slow = re.search(r"[(:]|\.\.\.$|^(nim|lasker)|^[48c]?\.[0-7]*[89a-f]", game, re.IGNORECASE)
    return SLOW_VALUES if slow else DEFAULT_VALUES


def _run(command: list[str], work: str) -> subprocess.CompletedProcess[bytes]:
    """Runs a command, and says on stderr what it does if it takes long."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe) as process:
        try:
            try:
                output = process.communicate(timeout=SILENT)
            except subprocess.TimeoutExpired:
                print(f"{work} …", file=sys.stderr)
                output = process.communicate()
        except BaseException:  # a signal, too: without the kill, the context manager would wait
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, *output)


def _compute(game: str, count: int, beyond: int, path: str, program: str | None) -> None:
    """Computes the first `count + beyond` values of `game` into the run directory `path`."""
    found = program or find_program()
    if not found:
        raise PlotError(
            f"{game!r}: the program 'grundy', which computes a game, is not in PATH; give it with"
            " --program PATH or in the variable GRUNDY, or give a run directory"
        )
    command = [found, "run", game, "--to", str(count + beyond), "--dir", path, "--quiet"]
    try:
        done = _run(command, f"computing {count + beyond:,} values of {game}")
    except OSError as e:
        raise PlotError(
            f"{found!r}: {e.strerror or e}; give the program with --program PATH"
        ) from e
    if done.returncode == 0 and os.path.exists(os.path.join(path, "journal.jsonl")):
        return
    said = done.stderr.decode("utf-8", "replace").strip().split("\n\n")[0]
    if not said and done.returncode == 0:
        said = f"{found!r} ended without an error and wrote no run; is it an old version?"
    said = said or f"{found!r} ended with status {done.returncode}"
    if not _is_grundy(found):
        raise PlotError(
            f"computing {game!r}: {' '.join(said.split())}; {found!r} may be another program,"
            " because '--version' does not print the version of grundy: give the program with"
            " --program PATH or in the variable GRUNDY"
        )
    if done.returncode == 2 and os.path.isdir(game):
        raise UsageError(
            f"{game!r}: the directory has no journal.jsonl, and the name is no game; give a run"
            " directory or a game"
        )
    text = _adapted(said, game, path, beyond)
    if done.returncode == 2:
        raise UsageError(f"{game!r} is neither a run directory nor a game: {text}")
    raise PlotError(f"computing {game!r}: {text}")


def _adapted(said: str, game: str, path: str, beyond: int) -> str:
    """Returns a message of the program without the temporary path and without its options.

    Its advice names options that this command does not have: that on the number of values becomes
    one on --range, other advice is left out. `beyond` values are computed beyond the range.
    """
    said = re.sub("^(grundy: )?error: (invalid value .*? for '.*?': )?", "", said)
    said = said.replace(f"{path}: ", "").replace(path, game)

    def range_of(found: re.Match[str]) -> str:
        return f"give a --range that ends at {max(int(found[1]) - beyond, 1)} at most"

    said, fitted = re.subn(r"at most --to ([0-9]+) fits", range_of, said)
    what, *advice = said.split("; ")
    own = [part for part in advice if "--" not in part or "--range" in part]
    if not fitted and len(own) < len(advice):
        own.append("give another --range")
    return "; ".join([what, *own])


def _is_grundy(program: str) -> bool:
    """Whether the program prints the version of grundy."""
    try:
        done = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=VERSION_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.startswith(b"grundy ")

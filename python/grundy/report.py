"""The results of a run as Markdown: its state, its maxima and zeros, the digest of every segment.

Segment digests come from the journal, which keeps them all. Every retained value is read once. The
discard summary accounts for the discarded values. The run may continue meanwhile.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .errors import Discarded
from .run import Run, open_run

SEGMENT = 1 << 24  # number of values per segment; a record states the digest at the end of each
ATTEMPTS = 10  # maximum number of attempts to read a run that discards values meanwhile
KEYS = [
    *("count", "width", "mask", "position", "rares", "last_rare", "max_value", "max_at", "escapes"),
    *("kernel", "program", "time", "seconds", "checks", "errors", "suspect", "kept", "digest"),
]
OF_SPACE = ("position", "rares", "last_rare")  # keys without meaning if the mask is 0

Digests = dict[int, str]


class Census:
    """Maxima and zeros of the values of one stretch [from, to).

    maxima     (n, value) for each value larger than all before it in the stretch
    zeros      number of zeros
    last_zero  n of the last zero among the values whose positions are known, or None
    """

    def __init__(self) -> None:
        self.maxima: list[tuple[int, int]] = []
        self.zeros = 0
        self.last_zero: int | None = None

    def see(self, start: int, values: NDArray[np.uint16]) -> None:
        """Adds the next values of the stretch, which begin at `start`."""
        best = self.maxima[-1][1] if self.maxima else -1
        if int(values.max()) > best:
            running = np.maximum.accumulate(values)
            new = np.flatnonzero(running[1:] > running[:-1]) + 1
            for i in [0, *new.tolist()]:
                if int(values[i]) > best:
                    best = int(values[i])
                    self.maxima.append((start + i, best))
        zeros = np.flatnonzero(values == 0)
        if len(zeros):
            self.zeros += len(zeros)
            self.last_zero = start + int(zeros[-1])

    def append(self, later: Census) -> None:
        """Adds the census of the stretch that follows."""
        best = self.maxima[-1][1] if self.maxima else -1
        self.maxima += [(n, value) for n, value in later.maxima if value > best]
        self.zeros += later.zeros
        if later.last_zero is not None:
            self.last_zero = later.last_zero


def census(run: Run) -> Census:
    """Returns the census of all committed values, retained and discarded."""
    parts = []
    # Reads in the order in which the run removes data: first the summary, then the values after
    # the discarded ones, in ascending order. The run never discards the first of two ranges.
    summary = run.summary()
    if summary is not None:
        discarded = Census()
        discarded.maxima = [(n, value) for n, value in summary["maxima"]]
        discarded.zeros = summary["histogram"][0]
        parts.append((summary["from"], summary["to"], discarded))
    for a, b in [*run.kept[1:], *run.kept[:1]]:
        retained = Census()
        for start, values in run.chunks(start=a, stop=b):
            retained.see(start, values)
        parts.append((a, b, retained))
    whole = Census()
    for _, _, part in sorted(parts, key=lambda part: part[:2]):
        whole.append(part)
    return whole


def segments(run: Run) -> Digests:
    """Returns the digest at the end of every whole segment of the committed values, by count."""
    digests: Digests = {}
    for record in run.journal():
        end = record["count"]
        if record["event"] == "rollback":
            digests = {count: digest for count, digest in digests.items() if count <= end}
        if end % SEGMENT == 0 and end > 0:
            digests[end] = record["digest"]
    return digests


def read(directory: str) -> tuple[Run, Census, Digests]:
    """Returns the run, its census and its digests as of one record of the journal.

    Raises Discarded if the run discards its values faster than they are read.
    """
    for attempt in range(1, ATTEMPTS + 1):
        run = open_run(directory)
        try:
            return run, census(run), segments(run)
        except Discarded as error:
            now = open_run(directory).last_record["sequence"]
            if now == run.last_record["sequence"]:  # another attempt would fail in the same way
                raise
            if attempt == ATTEMPTS:
                raise Discarded(
                    f"{error}; the run discarded values {ATTEMPTS} times before they were read:"
                    " stop it, run this script, and resume it"
                ) from error
    raise AssertionError("every attempt returns or raises")


def markdown(
    run: Run,
    found: Census,
    digests: Digests,
    command: str | None = None,
    commit: str | None = None,
    notes: Sequence[str] = (),
) -> str:
    """Returns the results as Markdown, with the command, the commit and notes if they are given."""
    lines = [f"# {run.game.encode('unicode_escape').decode()}, {run.count} values", ""]
    for name, text in [("command", command), ("commit", commit)]:
        if text:
            lines.append(f"- {name}: `{text}`")
    # The journals of earlier versions do not state the machine of the run.
    lines.append(f"- machine: {run.last_record.get('machine') or machine()}")
    lines += [f"- {note}" for note in notes]
    lines += [f"- {key}: {json.dumps(run.last_record.get(key))}" for key in keys(run)]
    last = "none among the kept values"
    if found.last_zero is not None:
        last = f"the last among the kept values at {found.last_zero}"
    lines.append(f"- zeros: {found.zeros}, {last}")
    lines += ["", "## New maxima", "", "| n | G(n) |", "|---|---|"]
    lines += [f"| {n} | {value} |" for n, value in found.maxima]
    lines += ["", "## Digests", ""]
    lines += ["Of the values 0 to count - 1, at the end of every segment of 2^24 values.", ""]
    lines.append("```text")
    for count, digest in sorted(digests.items()):
        text = json.dumps(digest).strip('"')
        lines.append(f"{count} {text}")
    lines.append("```")
    return "\n".join(lines)


def keys(run: Run) -> list[str]:
    """Returns the keys of the last record to print; without a space, none about rare positions."""
    return [key for key in KEYS if run.last_record["mask"] or key not in OF_SPACE]


def machine() -> str:
    """Returns the processor and the system of this process as one line."""
    name = platform.processor()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            names = (
                line.split(":", 1)[1].strip() for line in info if line.startswith("model name")
            )
            name = next(names)
    except (OSError, StopIteration):
        pass
    return f"{name}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"

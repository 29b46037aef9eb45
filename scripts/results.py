#!/usr/bin/env python3
# /// script
# requires-python = ">=3.9"
# dependencies = ["numpy"]
# ///
"""Prints the results of a run as Markdown: its state, its maxima and zeros, the digest of every segment.

Segment digests come from the journal, which keeps them all. Every kept value is read once. The snapshot that the
journal names accounts for the freed values. The run may continue meanwhile: if it frees values before they are read,
the script opens the run again at its newest record.

Exit status: 0 done, 1 nothing to read or values freed too fast, 2 usage, 3 damage.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys

try:
    import numpy as np
except ImportError as e:  # `--help` works without NumPy
    np, missing = None, e
else:
    import grundy_table

SEGMENT = 1 << 24  # number of values per segment; the journal records a digest at the end of each segment
ATTEMPTS = 10  # maximum number of attempts to read a run that frees values meanwhile
EXAMPLE = "example: results.py runs/grundy --command 'grundy run grundy --to 2^34 --keep 1G' > grundy-2-34.md"
KEYS = [
    *("count", "width", "mask", "position", "rares", "last_rare", "max_value", "max_at", "escapes", "kernel", "program"),
    *("time", "seconds", "checks", "errors", "suspect", "kept", "digest"),
]


class Census:
    """Maxima and zeros of the values of one stretch [from, to)."""

    def __init__(self):
        self.maxima = []  # (n, value) for each value larger than all before it in the stretch
        self.zeros = 0
        self.last_zero = None  # n of the last zero among the values whose positions are known

    def see(self, start, values):
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

    def append(self, later):
        """Adds the census of the stretch that follows."""
        best = self.maxima[-1][1] if self.maxima else -1
        self.maxima += [(n, value) for n, value in later.maxima if value > best]
        self.zeros += later.zeros
        if later.last_zero is not None:
            self.last_zero = later.last_zero


def census(run):
    """Returns the census of all committed values, kept and freed."""
    parts = []
    # Reads in the order in which the run removes data: first the snapshot, then the values after the freed ones, in
    # ascending order. The run never frees the first of two kept ranges.
    snapshot = run.snapshot()
    if snapshot:
        freed = Census()
        freed.maxima = [tuple(pair) for pair in snapshot["maxima"]]
        freed.zeros = snapshot["histogram"][0]
        parts.append((snapshot["from"], snapshot["to"], freed))
    for a, b in [*run.kept[1:], *run.kept[:1]]:
        kept = Census()
        for start, values in run.chunks(a, b):
            kept.see(start, values)
        parts.append((a, b, kept))
    whole = Census()
    for _, _, part in sorted(parts, key=lambda part: part[:2]):
        whole.append(part)
    return whole


def segments(run):
    """Returns the digest at the end of every whole segment of the committed values, as {count: digest}."""
    digests = {}
    for record in run.records():
        if record["event"] == "rollback":
            digests = {count: digest for count, digest in digests.items() if count <= record["count"]}
        if record["count"] % SEGMENT == 0 and record["count"] > 0:
            digests[record["count"]] = record["digest"]
    return digests


def read(directory):
    """Returns (run, census, digests) as of one record of the journal.

    Raises grundy_table.NotKept if the run frees its values faster than they are read.
    """
    for attempt in range(1, ATTEMPTS + 1):
        run = grundy_table.open_run(directory)
        try:
            return run, census(run), segments(run)
        except grundy_table.NotKept as error:
            now = grundy_table.open_run(directory).record["sequence"]
            if now == run.record["sequence"]:  # another attempt would fail in the same way
                raise
            if attempt == ATTEMPTS:
                raise grundy_table.NotKept(
                    f"{error}; the run freed values {ATTEMPTS} times before they were read: stop it, run this script,"
                    " and resume it"
                ) from error


def machine():
    """Returns the processor and the system as one line."""
    name = platform.processor()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            name = next(line.split(":", 1)[1].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{name}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def write(run, found, digests, options):
    """Prints the results as Markdown."""
    game = run.game.encode("unicode_escape").decode()
    print(f"# {game}, {run.count} values\n")
    for name, text in [("command", options.command), ("commit", options.commit)]:
        if text:
            print(f"- {name}: `{text}`")
    print(f"- machine: {machine()}")
    for note in options.note:
        print(f"- {note}")
    for key in KEYS:
        print(f"- {key}: {json.dumps(run.record.get(key))}")
    last = "none among the kept values" if found.last_zero is None else f"the last among the kept values at {found.last_zero}"
    print(f"- zeros: {found.zeros}, {last}\n")
    print("## New maxima\n\n| n | G(n) |\n|---|---|")
    for n, value in found.maxima:
        print(f"| {n} | {value} |")
    print("\n## Digests\n\nOf the values 0 to count - 1, at the end of every segment of 2^24 values.\n\n```text")
    for count, digest in sorted(digests.items()):
        print(count, json.dumps(digest).strip('"'))
    print("```")


def main(arguments=None):
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description="Print the results of a run as Markdown.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("directory", metavar="DIR", help="run directory; the run may continue meanwhile")
    parser.add_argument("--command", metavar="TEXT", help="state the command that made the run")
    parser.add_argument("--commit", metavar="HASH", help="state the commit of the program that made the run")
    parser.add_argument(
        "--note", metavar="TEXT", action="append", default=[], help="add a line, for instance the wall time; repeatable"
    )
    options = parser.parse_args(arguments)
    if np is None:
        print(
            f"results.py: NumPy cannot be imported ({' '.join(str(missing).split())}); install it with"
            " `python3 -m pip install numpy`, or start this script with `uv run`",
            file=sys.stderr,
        )
        return 1
    try:
        run, found, digests = read(options.directory)
    except grundy_table.RunError as error:
        print(f"results.py: {error}", file=sys.stderr)
        return 3 if isinstance(error, grundy_table.Damage) else 1
    write(run, found, digests, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The counts of the discarded values by block, `counts.jsonl`: how often each value occurs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .errors import Damage
from .files import failure, open_regular
from .journal import is_natural
from .summary import Summary

LINE_LIMIT = 1 << 20  # maximum number of bytes of a line


class BlockCounts(NamedTuple):
    """How often each value occurs in G(start), ..., G(stop - 1).

    counts  number of n with the value 0, 1, 2, ...: an int64 array of at most 65536 elements whose
            sum is stop - start
    """

    start: int
    stop: int
    counts: NDArray[np.int64]


def read_counts(directory: str, summary: Summary) -> Iterator[BlockCounts]:
    """Yields the blocks of the discarded values that `summary` describes, ascending.

    A block that is missing from the file is left out. Raises Damage if a line contradicts itself or
    the line before it, or if the lines cover all discarded values but do not add up to the
    histogram of the summary. Raises RunError if the file cannot be read.
    """
    path = os.path.join(directory, "counts.jsonl")
    total = np.zeros(len(summary["histogram"]), np.int64)
    end: int = summary["from"]
    covered = True
    for block in _lines(path):
        if block.stop > summary["to"]:
            break
        if block.start < end or block.counts.sum() != block.stop - block.start:
            raise _damage(path, f"the line of the block {block.start} is not right")
        if len(block.counts) > len(total):
            raise _damage(path, "it counts values that the discard summary does not")
        covered = covered and block.start == end
        end = block.stop
        total[: len(block.counts)] += block.counts
        yield block
    if covered and end == summary["to"] and total.tolist() != summary["histogram"]:
        raise _damage(path, "it does not add up to the histogram of the discard summary")


def _lines(path: str) -> Iterator[BlockCounts]:
    """Yields the lines of the file up to the first that is not whole; none without the file."""
    try:
        with open_regular(path) as file:
            while line := file.readline(LINE_LIMIT):
                block = _parse(line)
                if block is None:
                    return
                yield block
    except FileNotFoundError:
        return
    except OSError as e:
        raise failure(path, e, "check the file and try again") from e


def _parse(line: bytes) -> BlockCounts | None:
    try:
        found: Any = json.loads(line) if line.endswith(b"\n") else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    start, stop, counts = found.get("from"), found.get("to"), found.get("counts")
    if not (isinstance(start, int) and isinstance(stop, int) and isinstance(counts, list)):
        return None
    if not all(is_natural(number) and number < 1 << 40 for number in [start, stop, *counts]):
        return None
    return BlockCounts(start, stop, np.array(counts, np.int64))


def _damage(path: str, what: str) -> Damage:
    return Damage(f"{path!r}: {what}; the counts are used for pictures only: remove the file")

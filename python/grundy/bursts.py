"""Finds the bursts of a run: the stretches in which large values are frequent.

The large values are counted in blocks of BLOCK consecutive n. A block is loud if at least one value
in LOUD is large. A burst begins and ends with a loud block, and has at most GAP consecutive blocks
that are not loud. So its edges are known to the block.

In Grundy's game up to 3*10^10, with 176 as the least large value, few gaps between loud blocks have
32 to 128 blocks: most are much shorter or much longer. GAP lies between.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .run import Run

BLOCK = 1 << 12  # number of n in a block
LOUD = 100  # maximum number of values per large value in a loud block
GAP = 48  # maximum number of consecutive blocks of a burst that are not loud
READ = 1 << 8  # number of blocks that are read at a time

Counts = npt.NDArray[np.int64]


class Burst(NamedTuple):
    """The positions `begin` to `end` - 1, both multiples of BLOCK.

    large      number of large values
    loud       number of loud blocks
    rares      number of rare positions; 0 in a run without a sparse space
    complete   whether more than GAP blocks on each side were searched and are not loud; before the
               burst, all blocks from n = 0 on suffice
    """

    begin: int
    end: int
    large: int
    loud: int
    rares: int
    complete: bool


def find_bursts(run: Run, least: int, start: int = 0, stop: int | None = None) -> Iterator[Burst]:
    """Yields the bursts among G(start) ... G(stop - 1), ascending; by default among all values.

    A value is large if it is at least `least`. Only whole blocks are searched. Needs 8 bytes of
    memory for 4096 values. Raises the errors of reading the run: Discarded if the run has discarded
    one of the values, IndexError unless 0 <= start <= stop <= count.

    Example: ``share = sum(b.end - b.begin for b in find_bursts(run, 176)) / run.count``
    """
    record = run.last_record
    rares = run.rares(0, record["last_rare"] + 1)["n"] if record["mask"] else np.zeros(0, np.int64)
    first = -(-start // BLOCK)
    counts = count(run, first, (run.count if stop is None else stop) // BLOCK, least)
    for begin, end, loud in edges(counts * LOUD >= BLOCK):
        a, b = (first + begin) * BLOCK, (first + end) * BLOCK
        has_begun = begin > GAP or first == 0
        yield Burst(
            a,
            b,
            int(counts[begin:end].sum()),
            loud,
            int(np.searchsorted(rares, b) - np.searchsorted(rares, a)),
            has_begun and len(counts) - end > GAP,
        )


def count(run: Run, first: int, last: int, least: int) -> Counts:
    """Returns the number of large values in each of the blocks `first` to `last` - 1."""
    counts = np.zeros(max(last - first, 0), np.int64)
    if last <= first:
        return counts
    for start, values in run.chunks(READ * BLOCK, first * BLOCK, last * BLOCK):
        block = start // BLOCK - first
        large = values.reshape(-1, BLOCK) >= least
        counts[block : block + len(large)] = np.count_nonzero(large, axis=1)
    return counts


def edges(is_loud: npt.NDArray[np.bool_]) -> list[tuple[int, int, int]]:
    """Returns (first block, one past the last block, number of loud blocks) of each burst."""
    loud = np.flatnonzero(is_loud)
    if len(loud) == 0:
        return []
    cuts = np.flatnonzero(np.diff(loud) > GAP + 1) + 1
    parts = np.split(loud, cuts)
    return [(int(part[0]), int(part[-1]) + 1, len(part)) for part in parts]

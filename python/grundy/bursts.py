"""Finds the bursts of a run: the stretches in which large values are frequent.

The large values are counted in blocks of `size` consecutive n. A block is loud if at least `share`
of its values are large. A burst begins and ends with a loud block, and has at most `gap`
consecutive blocks that are not loud. So its edges are exact to one block.

In Grundy's game up to 3*10^10, with 176 as the least large value, few gaps between loud blocks of
4096 values have 32 to 128 blocks: most are much shorter or much longer. GRUNDY.gap lies between.
In .172, with 220 as the least large value, the share is 8 % outside bursts and 11 % inside. But it
varies so much between blocks of 4096 values that only blocks of some 2^18 tell the two apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .run import Run

READ = 1 << 20  # number of values that are read at a time, at least one block

Counts = npt.NDArray[np.int64]


class Blocks(NamedTuple):
    """What distinguishes bursts from other stretches.

    size    number of n in a block
    share   least share of large values in a loud block
    gap     maximum number of consecutive blocks of a burst that are not loud
    """

    size: int
    share: float
    gap: int


GRUNDY = Blocks(size=1 << 12, share=0.01, gap=48)  # for Grundy's game


class Burst(NamedTuple):
    """The positions `begin` to `end` - 1, both multiples of the size of a block.

    large      number of large values
    loud       number of loud blocks
    rares      number of rare positions; 0 in a run without a sparse space
    complete   whether more blocks than a gap on each side were searched and are not loud; before
               the burst, all blocks from n = 0 on suffice
    """

    begin: int
    end: int
    large: int
    loud: int
    rares: int
    complete: bool


def find_bursts(
    run: Run, least: int, start: int = 0, stop: int | None = None, blocks: Blocks = GRUNDY
) -> Iterator[Burst]:
    """Yields the bursts among G(start) ... G(stop - 1), ascending; by default among all values.

    A value is large if it is at least `least`. Only whole blocks are searched. Needs 8 bytes of
    memory for each block. Raises the errors of reading the run: Discarded if the run has discarded
    one of the values, IndexError unless 0 <= start <= stop <= count.

    Example: ``share = sum(b.end - b.begin for b in find_bursts(run, 176)) / run.count``
    """
    record = run.last_record
    rares = run.rares(0, record["last_rare"] + 1)["n"] if record["mask"] else np.zeros(0, np.int64)
    size, share, gap = blocks
    first = -(-start // size)
    counts = count(run, first, (run.count if stop is None else stop) // size, size, least)
    for begin, end, loud in edges(counts >= share * size, gap):
        a, b = (first + begin) * size, (first + end) * size
        has_begun = begin > gap or first == 0
        yield Burst(
            a,
            b,
            int(counts[begin:end].sum()),
            loud,
            int(np.searchsorted(rares, b) - np.searchsorted(rares, a)),
            has_begun and len(counts) - end > gap,
        )


def count(run: Run, first: int, last: int, size: int, least: int) -> Counts:
    """Returns the number of large values in each of the blocks `first` to `last` - 1."""
    counts = np.zeros(max(last - first, 0), np.int64)
    if last <= first:
        return counts
    read = max(READ // size, 1) * size
    for start, values in run.chunks(read, first * size, last * size):
        block = start // size - first
        large = values.reshape(-1, size) >= least
        counts[block : block + len(large)] = np.count_nonzero(large, axis=1)
    return counts


def edges(is_loud: npt.NDArray[np.bool_], gap: int) -> list[tuple[int, int, int]]:
    """Returns (first block, one past the last block, number of loud blocks) of each burst."""
    loud = np.flatnonzero(is_loud)
    if len(loud) == 0:
        return []
    cuts = np.flatnonzero(np.diff(loud) > gap + 1) + 1
    parts = np.split(loud, cuts)
    return [(int(part[0]), int(part[-1]) + 1, len(part)) for part in parts]

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

import math
import os
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt

from .index import Part, bounds, exact, whole
from .run import Run

READ = 1 << 20  # number of values that are read at a time, at least one block

Counts = npt.NDArray[np.int64]


class Blocks(NamedTuple):
    """What distinguishes bursts from other stretches.

    size    number of n in a block, >= 1
    share   least share of large values in a loud block, 0 < share <= 1; a float is the decimal
            number that Python prints
    gap     maximum number of consecutive blocks of a burst that are not loud, >= 0
    """

    size: SupportsIndex
    share: Part
    gap: SupportsIndex


GRUNDY = Blocks(size=1 << 12, share=0.01, gap=48)  # for Grundy's game


class Burst(NamedTuple):
    """The positions `begin` to `end` - 1, both multiples of the size of a block.

    large      number of large values
    loud       number of loud blocks
    rares      number of rare positions; 0 in a run without a sparse space
    complete   True if more than `gap` blocks on each side were searched and are not loud. Before
               the burst, a search from n = 0 on also suffices.
    """

    begin: int
    end: int
    large: int
    loud: int
    rares: int
    complete: bool


def find_bursts(
    run: Run,
    least: SupportsIndex,
    start: SupportsIndex = 0,
    stop: SupportsIndex | None = None,
    blocks: Blocks = GRUNDY,
) -> Iterator[Burst]:
    """Yields the bursts among G(start) ... G(stop - 1), ascending; by default among all values.

    A value is large if it is at least `least`, which is from 1 to 65535. Only whole blocks are
    searched. Needs 8 bytes of memory for each block, and about 3 bytes for each value of one block.

    Raises at the call: ValueError or TypeError if `least` or `blocks` are not in these ranges,
    IndexError unless 0 <= start <= stop <= count, TypeError if `run` is not a Run. Raises the
    errors of reading while the bursts are read: Discarded if the run has discarded one of the
    values.

    Example: ``share = sum(b.end - b.begin for b in find_bursts(run, 176)) / run.count``

    >>> import grundy
    >>> bursts = find_bursts(grundy.open_run("runs/grundy"), 90, blocks=Blocks(100, 0.01, 3))
    >>> [(burst.begin, burst.end) for burst in bursts]
    [(8300, 9000)]
    """
    if isinstance(run, (str, os.PathLike)):
        raise TypeError(f"{run!r} is a path; open it with grundy.open_run")
    if not isinstance(run, Run):
        raise TypeError(f"expected a Run, not {type(run).__name__}; open one with grundy.open_run")
    if not isinstance(blocks, Blocks):
        raise TypeError(f"expected Blocks, not {type(blocks).__name__}; give grundy.bursts.Blocks")
    start, stop = bounds(start, stop, run.count, run.path)
    least = whole(least)
    if not 0 < least < 1 << 16:
        raise ValueError(f"least {least}: give a value from 1 to 65535")
    return _bursts(run, least, start, stop, *checked(blocks))


def checked(blocks: Blocks) -> tuple[int, Fraction, int]:
    """Returns the numbers of `blocks`. Raises ValueError for one outside the range of Blocks."""
    size, share, gap = whole(blocks.size), exact(blocks.share), whole(blocks.gap)
    if size < 1:
        raise ValueError(f"size {size}: give a number of values from 1 on")
    if share is None or not 0 < share <= 1:
        raise ValueError(f"share {blocks.share}: give a share above 0 and up to 1, such as 0.01")
    if gap < 0:
        raise ValueError(f"gap {gap}: give a number of blocks from 0 on")
    return size, share, gap


def _bursts(
    run: Run, least: int, start: int, stop: int, size: int, share: Fraction, gap: int
) -> Iterator[Burst]:
    """Yields what `find_bursts` returns, for checked arguments."""
    first, last = -(-start // size), stop // size
    if first >= last:
        return
    record, rares = run.last_record, np.zeros(0, np.int64)
    if record["mask"]:
        end = min(last * size, record["last_rare"] + 1)
        rares = run.rares(first * size, max(first * size, end))["n"]
    counts = count(run, first, last, size, least)
    for begin, end, loud in edges(counts >= math.ceil(share * size), gap):
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

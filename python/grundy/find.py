"""Facts about a sequence that people publish: zeros, records, first positions, counts, rare values.

Each function reads a sequence once, as consecutive blocks (start, values), and holds one block in
memory. The definitions are those of `grundy find`.

Rare positions. A sparse space is a mask m and a position term e. The class of a value v at n is
popcount(v & m) + e*n + h mod 2, where h depends on the rule; the value is rare at n if its class is
0. Position 0 is always rare. See src/theory/sparse_space.rs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Callable

import numpy as np
from numpy.typing import NDArray

Block = tuple[int, NDArray[np.uint16]]  # the first position, and the values from there on

VALUES = 1 << 16  # number of different values
ENTRY = np.dtype([("n", np.int64), ("value", np.uint16)])  # a position and its value


def zeros(blocks: Iterable[Block]) -> NDArray[np.int64]:
    """Returns the positions with value 0, ascending."""
    found = [start + np.flatnonzero(values == 0) for start, values in blocks]
    return np.concatenate([np.empty(0, np.int64), *found])


def positions(blocks: Iterable[Block], first: int, stop: int) -> NDArray[np.void]:
    """Returns the positions whose values are in [first, stop), as entries with n and value."""
    # With 16-bit arithmetic that wraps around, one comparison decides both bounds.
    low, number = np.uint16(first), stop - first

    def wanted(start: int, values: NDArray[np.uint16]) -> NDArray[np.intp]:
        at: NDArray[np.intp] = np.flatnonzero(values - low < number)
        return at

    return _entries(blocks, wanted)


def records(blocks: Iterable[Block]) -> NDArray[np.void]:
    """Returns the positions whose value is greater than all values before it, as entries."""
    best = -1

    def new(start: int, values: NDArray[np.uint16]) -> NDArray[np.intp]:
        nonlocal best
        if not len(values) or int(values.max()) <= best:
            return np.empty(0, np.intp)
        running = np.maximum.accumulate(values)
        rises = np.flatnonzero(running[1:] > running[:-1]) + 1
        at: NDArray[np.intp] = np.concatenate([np.zeros(1, np.intp), rises])
        at = at[values[at].astype(np.int64) > best]
        best = int(running[-1])
        return at

    return _entries(blocks, new)


def first(blocks: Iterable[Block]) -> NDArray[np.int64]:
    """Returns the first position of each value up to the largest; -1 if it does not occur."""
    found = np.full(VALUES, -1, np.int64)
    for start, values in blocks:
        if (found[values] >= 0).all():
            continue
        here = np.full(VALUES, -1, np.int64)
        # Of several assignments to one element, the last one counts: that of the first position.
        here[values[::-1]] = np.arange(start + len(values) - 1, start - 1, -1)
        found = np.where(found >= 0, found, here)
    return np.array(found[: _length(found >= 0)])


def histogram(blocks: Iterable[Block]) -> NDArray[np.int64]:
    """Returns the number of positions of each value up to the largest."""
    counts = np.zeros(VALUES, np.int64)
    for _, values in blocks:
        here = np.bincount(values)
        counts[: len(here)] += here
    return np.array(counts[: _length(counts > 0)])


def rares(blocks: Iterable[Block], mask: int, position: int, parity: int) -> NDArray[np.void]:
    """Returns the rare positions of the sparse space (mask, position) as entries.

    parity is the term h of the class.
    """
    is_common = (_parities(np.arange(VALUES) & mask) ^ parity).astype(bool)

    def rare(start: int, values: NDArray[np.uint16]) -> NDArray[np.intp]:
        common = is_common[values]
        if position:
            common[1 - start % 2 :: 2] ^= True  # the odd positions
        if start == 0:
            common[:1] = False
        return np.flatnonzero(~common)

    return _entries(blocks, rare)


def parity_at(n: int, value: int, mask: int, position: int, is_rare: bool) -> int:
    """Returns the term h of the space in which `value` is rare, or common, at n > 0."""
    return (bin(value & mask).count("1") + position * n + (0 if is_rare else 1)) % 2


def _parities(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns, for each number below 2^16, the number of its bits mod 2."""
    for shift in (8, 4, 2, 1):
        numbers = numbers ^ numbers >> shift
    return numbers & 1


def _length(occurs: NDArray[np.bool_]) -> int:
    """Returns the largest value that occurs, plus 1; 0 if none does."""
    at = np.flatnonzero(occurs)
    return int(at[-1]) + 1 if len(at) else 0


def _entries(
    blocks: Iterable[Block],
    select: Callable[[int, NDArray[np.uint16]], NDArray[np.intp]],
) -> NDArray[np.void]:
    """Returns the positions that `select` chooses in each block, with their values."""
    parts = [np.empty(0, ENTRY)]
    for start, values in blocks:
        at = select(start, values)
        if len(at):
            part = np.empty(len(at), ENTRY)
            part["n"], part["value"] = start + at, values[at]
            parts.append(part)
    return np.concatenate(parts)

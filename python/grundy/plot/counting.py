"""Counts values in one pass over consecutive chunks, in bounded memory.

A chunk is a pair (start, values): the values G(start), G(start + 1), ... as a uint16 array of shape
(size,). Chunks follow each other without gaps. One thread counts: np.bincount holds the interpreter
lock, so a second thread gains nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from .reader import BlockCounts

Chunk = tuple[int, npt.NDArray[np.uint16]]
Ints = npt.NDArray[np.int64]


def linear_edges(a: int, b: int, columns: int, unit: int = 1) -> Ints:
    """Returns the edges of at most `columns` columns of [a, b), whose sizes differ by at most unit.

    Shape (columns + 1,), ascending, from a to b; 0 <= a < b. The edges between them are multiples
    of `unit`; the first and the last column can be smaller than the others.
    """
    low, high = a // unit, -(-b // unit)
    columns = min(columns, high - low)
    edges = [unit * (low + (high - low) * i // columns) for i in range(columns + 1)]
    edges[0], edges[-1] = a, b
    return np.array(edges, np.int64)


def log_edges(a: int, b: int, columns: int) -> Ints:
    """Returns the edges of at most `columns` columns of [a, b) of about equal ratio, 1 <= a < b.

    Shape (at most columns + 1,), ascending without repetition, from a to b.
    """
    edges = np.unique(np.geomspace(a, b, columns + 1).astype(np.int64))
    edges[0], edges[-1] = a, b
    return edges


def greatest(chunks: Iterable[Chunk]) -> int:
    """Returns the greatest value, or 0 without values."""
    return max((int(values.max()) for _, values in chunks), default=0)


def by_column(chunks: Iterable[Chunk], edges: Ints, rows: int, group: int = 1) -> Ints:
    """Counts values by column and row.

    edges  column i is the n with edges[i] <= n < edges[i + 1]; ascending; other n do not count
    group  row r is the values from r * group to (r + 1) * group - 1; all values are below
           rows * group

    Returns the counts, shape (len(edges) - 1, rows).
    """
    counts = np.zeros((len(edges) - 1, rows), np.int64)
    for start, values in chunks:
        stop = start + len(values)
        if group > 1:
            values = values // np.uint16(group)
        i = max(int(np.searchsorted(edges, start, "right")) - 1, 0)
        while i < len(counts) and edges[i] < stop:
            lo, hi = max(int(edges[i]), start), min(int(edges[i + 1]), stop)
            if lo < hi:
                counts[i] += np.bincount(values[lo - start : hi - start], minlength=rows)
            i += 1
    return counts


def add_blocks(counts: Ints, blocks: Iterable[BlockCounts], edges: Ints, group: int = 1) -> None:
    """Adds blocks to counts by column and row, as `by_column` returns them for the same edges.

    Each block lies within one column, or outside of all.
    """
    for block in blocks:
        i = int(np.searchsorted(edges, block.start, "right")) - 1
        if 0 <= i < len(counts):
            np.add.at(counts[i], np.arange(len(block.counts)) // group, block.counts)


def records(chunks: Iterable[Chunk]) -> Ints:
    """Returns the (n, G(n)) with G(n) greater than all values before it; shape (records, 2)."""
    best, found = -1, []
    for start, values in chunks:
        if len(values) == 0 or int(values.max()) <= best:
            continue
        running = np.maximum.accumulate(values)
        new = np.flatnonzero(running[1:] > running[:-1]) + 1
        for i in [0, *new.tolist()]:
            if int(values[i]) > best:
                best = int(values[i])
                found.append((start + i, best))
    return np.array(found, np.int64).reshape(-1, 2)


def matches(window: npt.NDArray[np.uint16], lags: int) -> Ints:
    """Counts the n in the first len(window) - lags places with G(n) = G(n + p), for 1 <= p <= lags.

    Returns the counts, shape (lags,); element p - 1 belongs to p.
    """
    length = len(window) - lags
    if len(window) and int(window.max()) < 256:  # bytes are compared faster
        head, data = window[:length].astype(np.uint8), window.astype(np.uint8)
        return _matches(head, data, lags)
    return _matches(window[:length], window, lags)


def _matches(
    head: npt.NDArray[np.unsignedinteger], data: npt.NDArray[np.unsignedinteger], lags: int
) -> Ints:
    length = len(head)
    return np.array(
        [np.count_nonzero(head == data[p : p + length]) for p in range(1, lags + 1)], np.int64
    )

"""Finds where a sequence of counts changes between two states.

The bins are consecutive and of equal size. The distance of a bin is the total variation distance
between the shares of the values in it and the typical shares, which are the medians over all bins:
half the sum of the absolute differences, between 0 and 1. The distances are split into a low and a
high state so that the sum of squared deviations from the means of the two is least. Each bin is
then given a state so that the sum of

    +x in the high state, -x in the low state, x = (distance - middle) / (high mean - low mean)

minus EDGE_COST for each edge is greatest. A burst that lasts only one or two bins is thus not
separated from its surroundings.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

EDGE_COST = 1.0
# The states are accepted if they account for this part of the variance of the distances, and if
# their means differ by LEAST_GAP. A normal distribution cut at its mean accounts for 2/pi = 0.64,
# a uniform distribution for 0.75.
LEAST_EXPLAINED = 0.8
LEAST_GAP = 0.02
CLEAR = 0.87  # least part of the variance for which two clear states account
FEW = 256  # number of bins below which bins are not joined


class Segment(NamedTuple):
    """The bins from `start` to `stop` - 1, all in one state; `distance` is their mean distance."""

    start: int
    stop: int
    high: bool
    distance: float


def distances(counts: npt.NDArray[np.integer]) -> Floats:
    """Returns the distance of each bin, shape (bins,). counts: (bins, rows), no bin empty."""
    shares = counts / counts.sum(axis=1, keepdims=True, dtype=np.float64)
    typical = np.median(shares, axis=0)
    if typical.sum() > 0:
        typical /= typical.sum()
    shares -= typical
    np.abs(shares, out=shares)
    return np.asarray(shares.sum(axis=1) / 2)


def segments(distance: Floats) -> list[Segment]:
    """Returns the segments in order; neighbours differ in state. distance: (bins,), not empty.

    Returns one low segment if the distances do not have two states.
    """
    low, high, explained = _two_means(distance)
    if explained < LEAST_EXPLAINED or high - low < LEAST_GAP:
        return [Segment(0, len(distance), False, float(distance.mean()))]
    state = _states((distance - (low + high) / 2) / (high - low))
    edges = [0, *(np.flatnonzero(state[1:] != state[:-1]) + 1).tolist(), len(state)]
    return [
        Segment(a, b, bool(state[a]), float(distance[a:b].mean()))
        for a, b in zip(edges[:-1], edges[1:])
    ]


def joined(counts: Ints, edges: Ints) -> tuple[Ints, Ints]:
    """Joins the bins in pairs until two states are clear, and returns their counts and edges.

    The shares of a small bin vary so much by chance that they hide the states, or seem to change
    them within a burst. If no states become clear, returns the first bins with two states, else the
    bins as they are. Fewer than FEW bins are not joined. A last bin without a partner is dropped.

    counts  shape (bins, rows), no bin empty
    edges   bin i is the n with edges[i] <= n < edges[i + 1]; shape (bins + 1,)
    """
    best = None
    now = counts, edges
    while True:
        distance = distances(now[0])
        if len(segments(distance)) > 1:
            best = best or now
            if _two_means(distance)[2] >= CLEAR:
                return now
        if len(now[0]) < FEW:
            return best or (counts, edges)
        pairs = len(now[0]) // 2
        pair_counts = now[0][: 2 * pairs].reshape(pairs, 2, -1).sum(axis=1)
        now = pair_counts, now[1][: 2 * pairs + 1 : 2]


def _two_means(x: Floats) -> tuple[float, float, float]:
    """Returns the means of the two best groups, and the part of the variance that they explain."""
    ordered = np.sort(x)
    size = np.arange(1, len(x))
    if len(size) == 0 or ordered[0] == ordered[-1]:
        return float(ordered[0]), float(ordered[-1]), 0.0
    lower = np.cumsum(ordered)[:-1] / size
    upper = (ordered.sum() - np.cumsum(ordered)[:-1]) / (len(x) - size)
    between = size * (len(x) - size) / len(x) ** 2 * (upper - lower) ** 2
    best = int(np.argmax(between))
    return float(lower[best]), float(upper[best]), float(between[best] / x.var())


def _states(x: Floats) -> npt.NDArray[np.bool_]:
    """Returns the best state of each bin (True is high) by dynamic programming; shape (bins,)."""
    low, high = 0.0, 0.0  # the best sums that end in each state
    changed = np.zeros((len(x), 2), np.bool_)
    for i, gain in enumerate(x.tolist()):
        to_low, to_high = high - EDGE_COST > low, low - EDGE_COST > high
        changed[i] = to_low, to_high
        low, high = (
            (high - EDGE_COST if to_low else low) - gain,
            (low - EDGE_COST if to_high else high) + gain,
        )
    changed[0] = False  # the first bin has no edge before it
    states = np.zeros(len(x), np.bool_)
    state = high > low
    for i in range(len(x) - 1, -1, -1):
        states[i] = state
        if changed[i, int(state)]:
            state = not state
    return states

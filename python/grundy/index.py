"""What may stand between the brackets of `run[...]`: slices, index arrays and masks as in NumPy."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray


def whole(x: object) -> int:
    """Returns `x` as an int. Raises TypeError unless it is an integer and no bool."""
    if not isinstance(x, (bool, np.bool_)):
        try:
            return operator.index(x)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise TypeError(f"{x!r} is not an integer; the bounds of a range are integers such as 10**6")


def position_in(n: int, count: int) -> int:
    """Returns the position of index n, which counts from the end if it is negative."""
    if not -count <= n < count:
        raise _outside(n, count)
    return n + count if n < 0 else n


def range_of(key: slice, count: int) -> range:
    """Returns the positions of a slice. Ends outside the sequence are clipped, as in a list."""
    for end in (key.start, key.stop, key.step):
        if end is not None:
            whole(end)
    return range(*key.indices(count))


def positions_of(key: object, count: int) -> NDArray[np.int64]:
    """Returns the positions 0 ... count - 1 that an index array or a mask selects.

    Raises IndexError for an index outside the sequence and for a mask of another length, and
    TypeError for anything but integers and bools.
    """
    try:
        array = None if isinstance(key, tuple) else np.asarray(key)
    except ValueError:  # a list of lists of different lengths
        array = None
    if array is not None and array.size == 0 and isinstance(key, list):
        array = array.astype(np.int64)
    if array is not None and array.ndim > 0 and array.dtype.kind == "b":
        return _true_positions(array, count)
    if array is None or array.ndim == 0 or array.dtype.kind not in "iu":
        if isinstance(key, list) and key and all(type(n) is int for n in key):  # beyond int64
            raise _outside(max(key, key=abs), count)
        raise _no_index(key)
    wrong = array >= count
    if array.dtype.kind == "i":
        wrong |= array < -count
    if wrong.any():
        raise _outside(array[wrong].flat[0], count)
    positions = array.astype(np.int64)
    positions[positions < 0] += count
    return positions


def _true_positions(mask: NDArray[Any], count: int) -> NDArray[np.int64]:
    if mask.shape != (count,):
        raise IndexError(f"a mask of shape {mask.shape} does not fit the {count} committed values")
    return np.flatnonzero(mask).astype(np.int64, copy=False)


def _outside(n: object, count: int) -> IndexError:
    return IndexError(
        f"index {n} is not within the {count} committed values; continue the run, or open it again"
        " if it has continued"
    )


def _no_index(key: object) -> TypeError:
    kind = type(key).__name__
    if isinstance(key, (list, np.ndarray)):
        kind += " with other elements"
    return TypeError(
        "index a run with an integer, a slice, a mask, or a list or array of integers, not with"
        f" {kind} (int(x) converts a float)"
    )

"""Checks of arguments: numbers, ranges of positions, and what may stand in `run[...]`."""

from __future__ import annotations

import numbers
import operator
from fractions import Fraction
from typing import Any, SupportsIndex, Union

import numpy as np
from numpy.typing import NDArray

# A part of a whole: 0.5, Fraction(1, 3)
Part = Union[numbers.Rational, int, float, "np.integer[Any]", "np.floating[Any]"]


def whole(x: object) -> int:
    """Returns `x`, an integer of Python or NumPy, as an int. Raises TypeError for others and bools.

    >>> import numpy as np
    >>> whole(np.uint8(200)) * 1000
    200000
    """
    if not isinstance(x, (bool, np.bool_)):
        try:
            return operator.index(x)  # type: ignore[arg-type]
        except TypeError:
            pass
    advice = "int(x) converts a float" if _is_float(x) else "give an integer such as 1000"
    raise TypeError(f"{x!r} is not an integer; {advice}")


def exact(x: Part) -> Fraction | None:
    """Returns a rational number or a float as a Fraction; None for NaN and infinities.

    A float is the decimal number that Python prints: 0.07 is 7/100. Raises TypeError for other
    types.

    >>> exact(0.07)
    Fraction(7, 100)
    """
    if isinstance(x, numbers.Rational) and not isinstance(x, bool):
        return Fraction(int(x.numerator), int(x.denominator))
    if not isinstance(x, (float, np.floating)):
        raise TypeError(f"{x!r} is not a number; give one such as 0.5 or Fraction(1, 3)")
    return Fraction(str(x)) if np.isfinite(x) else None


def bounds(
    start: SupportsIndex, stop: SupportsIndex | None, count: int, name: str
) -> tuple[int, int]:
    """Returns the bounds of the positions from `start` to `stop` - 1 as ints.

    stop   None stands for `count`
    count  number of values
    name   name of the sequence in messages

    Raises IndexError unless 0 <= start <= stop <= count, TypeError unless both are integers.

    >>> bounds(70, None, 1000, "kayles")
    (70, 1000)
    """
    a = whole(start)
    b = count if stop is None else whole(stop)
    for bound in (a, b):
        if bound < 0:
            raise IndexError(
                f"{name!r}: the bound {bound} is negative; give bounds from 0 to the number of"
                f" values (run[-5:] reads the last 5 of the {count} committed values)"
            )
    if max(a, b) > count:
        raise IndexError(
            f"{name!r}: [{a}, {b}) is not within the {count} committed values; continue the run,"
            " or open it again if it has continued"
        )
    if a > b:
        raise IndexError(
            f"{name!r}: the range begins at {a} and ends before it, at {b}; give the smaller bound"
            f" first (the run has {count} committed values)"
        )
    return a, b


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
    if array is not None and array.size == 0 and isinstance(key, (list, range)):
        array = array.astype(np.int64)
    if array is not None and array.ndim > 0 and array.dtype.kind == "b":
        return _true_positions(array, count)
    if array is None or array.ndim == 0 or array.dtype.kind not in "iu":
        if not (isinstance(key, list) and key and all(map(_is_integer, key))):
            raise _no_index(key)
        # Integers beyond int64, or of types of NumPy that have no common integer type.
        array = np.array([position_in(int(n), count) for n in key], np.int64)
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
    kind, hint = type(key).__name__, ""
    if isinstance(key, (list, np.ndarray)):
        kind += " with other elements"
    if _is_float(key):
        hint = "; int(x) converts a float"
    elif isinstance(key, np.ndarray) and key.dtype.kind == "f":
        hint = "; x.astype(int) converts floats"
    elif key is Ellipsis:
        hint = "; run[:] reads all values"
    return TypeError(
        "index a run with an integer, a slice, a mask, or a list or array of integers, not with"
        f" {kind}{hint}"
    )


def _is_integer(x: object) -> bool:
    return isinstance(x, (int, np.integer)) and not isinstance(x, bool)


def _is_float(x: object) -> bool:
    return isinstance(x, (float, np.floating))

"""Searches a sequence of nim-values for a period. Observes periods, proves none.

`find_period` finds the least p with which the last part of the sequence repeats, and the least n0
from which on the whole sequence repeats with p.

The search. A window of L values repeats with p if and only if its first L - p values equal its last
L - p. Polynomial hashes of all prefixes, mod the prime 2^31 - 1, decide this for all p together in
linear time. Equal words have equal hashes, so no period is missed. The search then compares every p
with equal hashes value by value, in ascending order. So no false period is reported, and the first
period that holds is the least. Memory: 4 bytes for each value of the window and a few dozen MB.
"""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Protocol, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from .errors import Damage, RunError
from .index import Part, bounds, exact, whole
from .run import CHUNK
from .table import HEADER_BYTES, SATURATED

PRIME = (1 << 31) - 1
# A primitive root mod PRIME: its powers below 2^31 - 2 are distinct, so a single wrong value in a
# periodic window always changes the hashes.
BASE = 48271


class Values(Protocol):
    """What `find_period` reads: a Run, an Array, or any object with these members.

    game    canonical name of the game; None if it is not known
    count   number of values
    kept    half-open ranges of the values that can be read, ascending
    """

    @property
    def game(self) -> Any: ...

    @property
    def count(self) -> int: ...

    @property
    def kept(self) -> list[tuple[int, int]]: ...

    def values(self, start: int, stop: int) -> NDArray[Any]:
        """Returns G(start) ... G(stop - 1)."""


class Array:
    """A .npy file of nim-values: one dimension, any unsigned integers."""

    game: str | None = None

    def __init__(self, path: str | os.PathLike[str]) -> None:
        path = os.fspath(path)
        advice = "give a run directory or a .npy file"
        try:
            with open(path, "rb") as file:
                magic = file.read(6)
        except OSError as e:
            raise RunError(f"{path!r}: {e.strerror or e}; {advice}") from e
        if magic != b"\x93NUMPY":
            raise RunError(f"{path!r}: not a .npy file; {advice}")
        folder, name = os.path.split(os.path.realpath(path))
        if name == "values.npy" and os.path.lexists(os.path.join(folder, "journal.jsonl")):
            # The bare table may lack the larger values, and does not state how many are committed.
            raise RunError(f"{path!r} is the table of a run; open the directory {folder!r}")
        try:
            with np.errstate(over="raise"):
                self._values: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        except Exception as e:  # for a damaged header, NumPy raises errors of many types
            raise Damage(f"{path!r}: not a whole .npy file ({e}); write or copy it again") from e
        if self._values.ndim != 1 or self._values.dtype.kind != "u":
            raise RunError(
                f"{path!r}: not a one-dimensional array of unsigned integers; convert it, for"
                " instance to uint16"
            )
        is_table = getattr(self._values, "offset", 0) == HEADER_BYTES
        if is_table and self._values.dtype == np.uint8 and self._contains(SATURATED):
            raise RunError(
                f"{path!r} is the table of a run, or a copy of it, and lacks the values of"
                f" {SATURATED} or more, which are in escapes.npy; open the run directory"
            )
        self.count = len(self._values)
        self.kept = [(0, self.count)]

    def _contains(self, value: int) -> bool:
        starts = range(0, len(self._values), CHUNK)
        return any((self._values[a : a + CHUNK] == value).any() for a in starts)

    def values(self, start: int, stop: int) -> NDArray[Any]:
        """Returns G(start) ... G(stop - 1) in a new array."""
        return np.array(self._values[start:stop])


def last_exception(table: Values, p: int, a: int, b: int) -> int | None:
    """Returns the greatest n in [a, b) with G(n + p) != G(n), or None.

    Reads G(a) ... G(b + p - 1).
    """
    for hi in range(b, a, -CHUNK):
        lo = max(a, hi - CHUNK)
        differ = np.flatnonzero(table.values(lo, hi) != table.values(lo + p, hi + p))
        if len(differ):
            return lo + int(differ[-1])
    return None


def matches(
    table: Values, shift: SupportsIndex, start: SupportsIndex = 0, stop: SupportsIndex | None = None
) -> int:
    """Returns the number of n with start <= n, n + shift < stop and G(n + shift) = G(n).

    table  a Run, an Array, or any object with the members of Values
    shift  from 1 to stop - start
    stop   by default the number of values

    Divided by stop - start - shift, this is the share of matches at this shift. Reads blocks, in
    bounded memory. Raises ValueError for another shift, IndexError unless
    0 <= start <= stop <= count, and the errors of `table.values`.

    >>> import grundy
    >>> kayles = grundy.open_run("runs/kayles")
    >>> matches(kayles, 12, 71), matches(kayles, 11, 71)
    (917, 0)
    """
    a, b = bounds(start, stop, _count(table), str(table.game))
    p = whole(shift)
    if not 1 <= p <= b - a:
        raise ValueError(f"shift {p}: give a number from 1 to the {b - a} values of the range")
    total = 0
    for lo in range(a, b - p, CHUNK):
        hi = min(lo + CHUNK, b - p)
        total += int(np.count_nonzero(table.values(lo, hi) == table.values(lo + p, hi + p)))
    return total


def candidates(table: Values, a: int, b: int, limit: int) -> Iterator[int]:
    """Yields, ascending, every p in 1 ... limit <= b - a with which G(a) ... G(b - 1) repeats.

    Also yields about one in 2^31 of the p with which it does not repeat.
    """
    length = b - a
    powers = np.ones(min(length, CHUNK) + 1, np.uint64)  # BASE^0, BASE^1, ...
    known = 1
    while known < len(powers):  # doubles the number of known powers
        step = pow(BASE, known, PRIME)
        new = powers[known : 2 * known]
        new[:] = powers[: len(new)] * step % PRIME
        known *= 2

    # prefix[i] = sum of G(a + j) * BASE^j over j < i
    prefix = np.zeros(length + 1, np.uint32)
    for lo in range(0, length, CHUNK):
        x = table.values(a + lo, min(a + lo + CHUNK, b)).astype(np.uint64) % PRIME
        sums = np.cumsum(x * powers[: len(x)] % PRIME) % PRIME
        sums = (sums * pow(BASE, lo, PRIME) + int(prefix[lo])) % PRIME
        prefix[lo + 1 : lo + 1 + len(x)] = sums

    total = int(prefix[length])
    for lo in range(1, limit + 1, CHUNK):
        hi = min(lo + CHUNK, limit + 1)
        last = (total + PRIME - prefix[lo:hi].astype(np.uint64)) % PRIME
        first = prefix[length - hi + 1 : length - lo + 1][::-1].astype(np.uint64)
        shift = powers[: hi - lo] * pow(BASE, lo, PRIME) % PRIME
        for i in np.flatnonzero(first * shift % PRIME == last):
            yield lo + int(i)


def checked(tail: Part, window: SupportsIndex, repeats: SupportsIndex) -> tuple[Fraction, int, int]:
    """Returns the arguments of `find_period` as a Fraction and two ints.

    Raises ValueError unless 0 < tail <= 1, window >= 1 and repeats >= 2. Raises TypeError for other
    types, such as a text.

    >>> checked(0.7, 1000, 3)
    (Fraction(7, 10), 1000, 3)
    """
    part, window, repeats = exact(tail), whole(window), whole(repeats)
    if part is None or not 0 < part <= 1:
        raise ValueError(f"tail {tail}: give a part above 0 and at most 1 such as 0.5 or 1/3")
    if window < 1:
        raise ValueError(f"window {window}: give a number of values above 0 such as 10**6")
    if repeats < 2:
        raise ValueError(
            f"repeats {repeats}: give a number of periods of at least 2, because one whole period"
            " is no repetition"
        )
    return part, window, repeats


def find_period(
    table: Values,
    tail: Part = Fraction(1, 2),
    window: SupportsIndex = 1 << 24,
    repeats: SupportsIndex = 2,
) -> dict[str, Any]:
    """Searches a run, or another sequence of nim-values, for a period.

    table    a Run, an Array (a .npy file), or any object with the members of Values
    tail     the part of the sequence to search, from its end: a Fraction or float, 0 < tail <= 1
    window   maximum number of values to search, >= 1
    repeats  number of whole periods that the searched part must contain, >= 2

    Returns a dict with the keys that `scripts/find_period.py --json` prints:

    game             name of the game, or None
    status           "observed" or "none"
    period           the least p with which the searched part repeats, or None
    preperiod        the last n with G(n + period) != G(n), plus 1; None if the values that
                     determine it are discarded
    max_value        the largest value, discarded ones included
    checked_through  number of values
    searched         `from`, `to`: the searched part, half open; `max_period`: the largest period
                     searched for; `repeats`; `kept_from`: the first n after the discarded values,
                     or 0

    This is an observation and no proof: `grundy period` proves periods, and also finds sequences
    with G(n + p) = G(n) + saltus, for which this function returns "none". Raises ValueError or
    TypeError for other arguments, and the errors of `table.values`. Time: linear. Memory: 4 bytes
    for each value of the window.

    >>> import grundy
    >>> found = find_period(grundy.open_run("runs/kayles"))
    >>> found["status"], found["period"], found["preperiod"]
    ('observed', 12, 71)
    """
    count = _count(table)
    part, window, repeats = checked(tail, window, repeats)
    start = count  # start of the last retained stretch; adjacent ranges form one stretch
    for lo, hi in reversed(table.kept):
        if hi == start:
            start = lo
    length = min(int(count * part), window, count - start)
    a, limit = count - length, length // repeats

    period = preperiod = None
    for p in candidates(table, a, count, limit):
        if last_exception(table, p, a, count - p) is None:
            period = p
            break
    if period is not None:
        n = last_exception(table, period, start, a)
        if n is not None:
            preperiod = n + 1
        elif start == 0:
            preperiod = 0
    return {
        "game": table.game,
        "status": "none" if period is None else "observed",
        "period": period,
        "preperiod": preperiod,
        "max_value": max_value(table),
        "checked_through": count,
        "searched": {
            "from": a,
            "to": count,
            "max_period": limit,
            "repeats": repeats,
            "kept_from": start,
        },
    }


def _count(table: Values) -> int:
    """Returns the number of values. Raises TypeError if `table` is no sequence of values."""
    if isinstance(table, (str, os.PathLike)):
        raise TypeError(f"{table!r} is a path; open it with grundy.open_run or grundy.period.Array")
    try:
        return operator.index(table.count)
    except (AttributeError, TypeError):
        raise TypeError(
            f"expected a Run or an Array, not {type(table).__name__}; save the values with"
            " numpy.save, and open the file with grundy.period.Array"
        ) from None


def max_value(table: Values) -> int:
    """Returns the largest value. The journal of a run states it, discarded values included."""
    record = getattr(table, "last_record", None)
    if record is not None:
        return int(record["max_value"])
    starts = range(0, table.count, CHUNK)
    return max((int(table.values(a, min(a + CHUNK, table.count)).max()) for a in starts), default=0)


def shape_of_rule(game: str | None) -> tuple[int, int] | None:
    """Returns (t, d) of the game's rule, or None if this module does not know the name.

    t  the largest number of tokens that a move removes
    d  the least difference of the two heaps of a split
    """
    aliases = {
        "kayles": 2,
        "dawson-kayles": 2,
        "dawson-chess": 3,
        "officers": 1,
        "treblecross": 3,
        "remove-a-square": 2,
    }
    if game in aliases:
        return aliases[game], 0
    if m := re.fullmatch(r"grundy(?::d=([0-9]{1,18}))?", game or ""):
        return 0, int(m[1] or 1)
    if m := re.fullmatch(r"[04]?\.([0-7]*)", game or ""):
        return len(m[1].rstrip("0")), 0
    return None


def proof_bounds(table: Values, p: int, n0: int) -> list[str]:
    """Returns lines that state how many values a proof of period p from n0 on needs.

    n0 need not be the least preperiod.

    A table of `count` values shows G(n + p) = G(n) for n0 <= n < count - p.
    """
    rule = shape_of_rule(table.game)
    if rule is None:
        return [
            "The number of values that a proof needs depends on the rule, which is not known here."
        ]
    t, d = rule
    n1 = max(n0, 1)  # P1 and P3 require n0 >= 1

    def line(name: str, need: int) -> str:
        verdict = "reached" if table.count >= need else f"{need - table.count} more needed"
        return f"{name}: a proof needs {need} values, the table has {table.count}: {verdict}."

    if d == 0:  # for n0 <= n < 2 n0 + p + t
        return [line("P1 (Guy-Smith)", 2 * n1 + 2 * p + t)]
    lines = []
    if (t, d) == (0, 1):  # for n0 <= n <= 2 n0 + p - 2, without a zero in one period
        zero = first_zero(table, n0, n0 + p)
        if zero is None:
            return [line("P2 (Grundy's game)", 2 * n0 + 2 * p - 1)]
        lines = [f"P2 (Grundy's game) does not apply: G({zero}) = 0 lies in the period."]
    # for n0 <= n <= 2 n0 + 2 p + M - 2 with M the greatest s + d
    return lines + [line("P3 (minimum difference)", 2 * n1 + 3 * p + t + d - 1)]


def first_zero(table: Values, a: int, b: int) -> int | None:
    """Returns the least n in [a, b) with G(n) = 0, or None."""
    for lo in range(a, b, CHUNK):
        zeros = np.flatnonzero(table.values(lo, min(lo + CHUNK, b)) == 0)
        if len(zeros):
            return lo + int(zeros[0])
    return None


def describe(table: Values, result: dict[str, Any]) -> str:
    """Returns the result as text."""
    searched, count = result["searched"], table.count
    name = "table" if table.game is None else table.game.encode("unicode_escape").decode()
    part_searched = f"the last {searched['to'] - searched['from']} of {count} values"
    lines = []
    if searched["max_period"] == 0:
        lines.append(
            f"{name}: none: {part_searched} cannot be searched, because {searched['repeats']} whole"
            f" periods have at least {searched['repeats']} values; choose a larger part with --tail"
            " and --window, or compute more values."
        )
    elif result["status"] == "none":
        lines.append(
            f"{name}: none: no period up to {searched['max_period']} holds throughout"
            f" {part_searched} ({searched['repeats']} whole periods required). Longer periods, and"
            " periods that begin later, were not searched for; choose another part with --tail and"
            " --window."
        )
    else:
        p, n0 = result["period"], result["preperiod"]
        begin = searched["kept_from"] if n0 is None else n0
        if n0 is None:
            preperiod = f"preperiod at most {begin} (the run has discarded values before it)"
        else:
            preperiod = f"preperiod {n0}"
        lines.append(
            f"{name}: observed: period {p}, {preperiod}: G(n+{p}) = G(n) for"
            f" {begin} <= n < {count - p}."
        )
        lines.append(f"The period is the least that holds throughout {part_searched}.")
        lines += proof_bounds(table, p, begin)
        if n0 is None:
            lines.append("If the period begins earlier than that, a proof needs fewer values.")
        lines.append(
            "Observed is not proved. `grundy period` proves periods, of a game or of a run."
        )
    lines.append(f"Greatest value: {result['max_value']}.")
    return "\n".join(lines)

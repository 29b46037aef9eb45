#!/usr/bin/env python3
# /// script
# requires-python = ">=3.9"
# dependencies = ["numpy"]
# ///
"""Searches the value table of a run directory, or a .npy file of nim-values, for a period.

Finds the least p with which the last part of the table repeats at least `--repeats` times, and the
least n0 from which on the whole table repeats with p. This is an observation and not a proof. The
output states how many values a proof needs.

The search. A window of L values repeats with p if and only if its first L - p values equal its last
L - p. Polynomial hashes of all prefixes, mod the prime 2^31 - 1, decide this for all p together in
linear time. Equal words have equal hashes, so no period is missed. The script then compares every p
with equal hashes value by value, in ascending order. So no false period is reported, and the first
period that holds is the least. Memory: 4 bytes for each value of the window and a few dozen MB.

Exit status: 0 observed or none, 1 nothing to read, 2 usage, 3 damage.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from fractions import Fraction

try:
    import numpy as np
except ImportError as e:  # `--help` works without NumPy
    np, missing = None, e
else:
    import grundy_table
    from grundy_table import CHUNK, Damage, RunError

PRIME = (1 << 31) - 1
# A primitive root mod PRIME: its powers below 2^31 - 2 are distinct, so a single wrong value in a
# periodic window always changes the hashes.
BASE = 48271


class Array:
    """A .npy file of nim-values (one dimension, any unsigned integers), with the interface of a Run."""

    def __init__(self, path):
        advice = "give a run directory or a .npy file"
        try:
            with open(path, "rb") as file:
                if file.read(6) != b"\x93NUMPY":
                    raise RunError(f"{path!r}: not a .npy file; {advice}")
            self._values = np.load(path, mmap_mode="r", allow_pickle=False)
        except OSError as e:
            raise RunError(f"{path!r}: {e.strerror or e}; {advice}") from e
        except (ValueError, SyntaxError) as e:
            raise Damage(f"{path!r}: not a whole .npy file ({e}); write or copy it again") from e
        if (
            not isinstance(self._values, np.ndarray)
            or self._values.ndim != 1
            or self._values.dtype.kind != "u"
        ):
            raise RunError(
                f"{path!r}: not a one-dimensional array of unsigned integers; convert it, for instance to uint16"
            )
        self.game, self.count = None, len(self._values)
        self.kept = [(0, self.count)]

    def values(self, a, b):
        return np.array(self._values[a:b])

    def max_value(self):
        return max(
            (int(self.values(a, a + CHUNK).max()) for a in range(0, self.count, CHUNK)), default=0
        )


def last_exception(table, p, a, b):
    """Returns the greatest n in [a, b) with G(n + p) != G(n), or None. Reads G(a) ... G(b + p - 1)."""
    for hi in range(b, a, -CHUNK):
        lo = max(a, hi - CHUNK)
        differ = np.flatnonzero(table.values(lo, hi) != table.values(lo + p, hi + p))
        if len(differ):
            return lo + int(differ[-1])
    return None


def candidates(table, a, b, limit):
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


def find_period(table, tail=Fraction(1, 2), window=1 << 24, repeats=2):
    """Searches `table` for a period. Returns a dict with the keys of --json.

    table    a Run or an Array
    tail     the part of the table to search, 0 < tail <= 1, from its end
    window   maximum number of values to search
    repeats  number of whole periods that the searched part must contain, >= 2

    status is "observed" or "none". The period is the least with which [searched from, searched to)
    repeats, at most searched max_period. The preperiod is the last n with G(n + period) != G(n),
    plus 1; it is None if the values that determine it are not kept. checked_through is exclusive.
    """
    count = table.count
    start = count  # start of the last kept stretch; adjacent ranges form one stretch
    for lo, hi in reversed(table.kept):
        if hi == start:
            start = lo
    length = min(int(count * tail), window, count - start)
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

    max_value = table.max_value() if isinstance(table, Array) else table.record.get("max_value")
    return {
        "game": table.game,
        "status": "none" if period is None else "observed",
        "period": period,
        "preperiod": preperiod,
        "max_value": max_value,
        "checked_through": count,
        "searched": {
            "from": a,
            "to": count,
            "max_period": limit,
            "repeats": repeats,
            "kept_from": start,
        },
    }


def shape_of_rule(game):
    """Returns (t, d) of the game's rule, or None if this script does not know the name.

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


def proof_bounds(table, p, n0):
    """Returns lines that state how many values a proof of period p from n0 on needs.

    n0 need not be the least preperiod.

    A table of `count` values shows G(n + p) = G(n) for n0 <= n < count - p.
    """
    rule = shape_of_rule(table.game)
    if rule is None:
        return ["The number of values that a proof needs depends on the rule, which is not known here."]
    t, d = rule
    n1 = max(n0, 1)  # P1 and P3 require n0 >= 1

    def line(name, need):
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


def first_zero(table, a, b):
    """Returns the least n in [a, b) with G(n) = 0, or None."""
    for lo in range(a, b, CHUNK):
        zeros = np.flatnonzero(table.values(lo, min(lo + CHUNK, b)) == 0)
        if len(zeros):
            return lo + int(zeros[0])
    return None


def describe(table, result):
    """Returns the result as text."""
    searched, count = result["searched"], table.count
    name = "table" if table.game is None else table.game.encode("unicode_escape").decode()
    part_searched = f"the last {searched['to'] - searched['from']} of {count} values"
    lines = []
    if result["status"] == "none":
        lines.append(
            f"{name}: none: no period up to {searched['max_period']} holds throughout {part_searched}"
            f" ({searched['repeats']} whole periods required). Longer periods, and periods that begin"
            " later, were not searched for; choose another part with --tail and --window."
        )
    else:
        p, n0 = result["period"], result["preperiod"]
        begin = searched["kept_from"] if n0 is None else n0
        if n0 is None:
            preperiod = f"preperiod at most {begin} (the values before it are not all kept)"
        else:
            preperiod = f"preperiod {n0}"
        lines.append(
            f"{name}: observed: period {p}, {preperiod}: G(n+{p}) = G(n) for {begin} <= n < {count - p}."
        )
        lines.append(f"The period is the least that holds throughout {part_searched}.")
        lines += proof_bounds(table, p, begin)
        lines.append("Observed is not proved.")
    lines.append(f"Greatest value: {result['max_value']}.")
    return "\n".join(lines)


def number(text):
    """Parses a whole number > 0 as `grundy` does: 16777216, 2^24, 1e7, 10M, 10_000_000."""
    if m := re.fullmatch(r"([0-9]{1,18})\^([0-9]{1,2})", text.replace("_", "")):
        value = int(m[1]) ** int(m[2])
    elif m := re.fullmatch(r"([0-9]{1,18})(?:e([0-9]{1,2})|([kMGT]))?", text.replace("_", "")):
        value = int(m[1]) * 10 ** (int(m[2] or 0) or {"k": 3, "M": 6, "G": 9, "T": 12}.get(m[3], 0))
    else:
        value = 0
    if not 0 < value < 1 << 63:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number above 0 such as 1000000, 2^24 or 10M"
        )
    return value


def part(text):
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a part above 0 and at most 1 such as 0.5 or 1/3"
        )
    return value


def whole_periods(text):
    value = number(text)
    if value < 2:
        raise argparse.ArgumentTypeError("must be at least 2: one whole period is no repetition")
    return value


def main(argv=None):
    parser = argparse.ArgumentParser(
        description="Search a table of nim-values for a period. Observes periods, proves none.",
        epilog="example: find_period.py runs/kayles",
    )
    parser.add_argument(
        "table", metavar="DIR|FILE.npy", help="run directory, or .npy file of nim-values"
    )
    parser.add_argument(
        "--tail",
        type=part,
        default="1/2",
        metavar="PART",
        help="search the last PART of the table [default: %(default)s]",
    )
    parser.add_argument(
        "--window",
        type=number,
        default="2^24",
        metavar="N",
        help="search at most N values [default: %(default)s]",
    )
    parser.add_argument(
        "--repeats",
        type=whole_periods,
        default="2",
        metavar="K",
        help="require K whole periods [default: %(default)s]",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object with the keys game, status, period, preperiod, max_value,"
        " checked_through, searched",
    )
    options = parser.parse_args(argv)
    if np is None:
        print(
            f"find_period: NumPy cannot be imported ({' '.join(str(missing).split())}); install"
            " it with `python3 -m pip install numpy`, or start this script with `uv run`",
            file=sys.stderr,
        )
        return 1

    path = options.table
    if os.path.basename(path) == "values.npy" and os.path.exists(
        os.path.join(os.path.dirname(path), "journal.jsonl")
    ):
        # The bare file lacks the larger values, and does not state how many values are committed.
        parser.error(
            f"{path!r} is part of a run; give the directory {os.path.dirname(path) or '.'!r}"
        )
    try:
        table = Array(path) if os.path.isfile(path) else grundy_table.open_run(path)
        result = find_period(table, options.tail, options.window, options.repeats)
        print(json.dumps(result) if options.json else describe(table, result))
    except RunError as e:
        print(f"find_period: {e}", file=sys.stderr)
        return 3 if isinstance(e, Damage) else 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Parses the numbers, parts and ranges of command lines.

Numbers and ranges are those of the program: 1e9, 2^35, 3*2^24, 10M, 10_000_000, A..B. A part of a
whole is written as 0.5, 5e-1 or 1/2.
"""

from __future__ import annotations

import argparse
import re
from fractions import Fraction
from typing import Callable, TypeVar

T = TypeVar("T")

LIMIT = 1 << 64
_SUFFIXES = {"k": 3, "K": 3, "M": 6, "G": 9, "T": 12}
LONGEST = 64  # maximum number of characters of a number
_HOW = "write numbers as 1000, 10_000_000, 1e9, 2^35, 3*2^24 or 10M"


def number(text: str) -> int:
    """Returns the whole number in `text`, 0 <= number < 2^64; exact, never rounded.

    Raises ValueError with a message for users.
    """
    plain = text.replace("_", "")
    if plain.startswith("-"):
        raise ValueError(f"{text!r}: numbers must not be negative; {_HOW}")
    if not plain or len(plain) > LONGEST:
        raise ValueError(f"{text!r} is not a number; {_HOW}")
    product = 1
    for factor in plain.split("*"):
        product *= _factor(factor, text)
    if product >= LIMIT:
        raise ValueError(f"{text!r}: numbers must be less than 2^64; {_HOW}")
    return product


def _factor(factor: str, text: str) -> int:
    power = re.fullmatch(r"([0-9]+)\^([0-9]+)", factor)
    if power:
        base, exponent = int(power[1]), int(power[2])
        # From 2^64 on, every power of a base above 1 is too large as well.
        return int(base ** min(exponent, 64))
    scaled = re.fullmatch(r"([0-9]+)(?:\.([0-9]+))?(?:[eE]([0-9]+)|([kKMGT]))?", factor)
    if scaled:
        fraction = (scaled[2] or "").rstrip("0")
        exponent = int(scaled[3] or _SUFFIXES.get(scaled[4], 0))
        zeros = exponent - len(fraction)
        if zeros >= 0:
            return int(int(scaled[1] + fraction) * 10 ** min(zeros, 64))
    raise ValueError(f"{text!r} is not a whole number; {_HOW}")


def positive(text: str) -> int:
    """Returns the number in `text`, 1 <= number < 2^64. Raises ValueError."""
    value = number(text)
    if value == 0:
        raise ValueError("must be at least 1")
    return value


def part(text: str) -> Fraction:
    """Returns the number in `text`, such as 0.5, 5e-1 or 1/2; exact. Raises ValueError."""
    # Without a limit of the exponent, 1e-99999999 would have a hundred million digits.
    if len(text) <= LONGEST and re.fullmatch(r"[0-9./]+(?:[eE][+-]?[0-9]{1,3})?", text):
        try:
            return Fraction(text)
        except (ValueError, ZeroDivisionError):
            pass
    raise ValueError(f"{text!r} is not a number such as 0.5 or 1/3")


def half_open(text: str) -> tuple[int, int]:
    """Returns (a, b) of a range "A..B" of the n from a to b - 1, a < b. Raises ValueError."""
    how = "write half-open ranges A..B, such as 0..1e6"
    start, dots, stop = text.partition("..")
    if not dots:
        raise ValueError(f"{text!r} is not a range; {how}")
    if not start or not stop:
        raise ValueError(f"{text!r} does not say where the range {_ends(start)}; {how}")
    if start.startswith("-") or stop.startswith("-"):
        raise ValueError(f"{text!r}: the bounds of a range must not be negative; {how}")
    a, b = number(start), number(stop)
    if a > b:
        raise ValueError(f"the range {a}..{b} begins after its end; {how}")
    if a == b:
        raise ValueError(
            f"the range {a}..{b} is empty, because it holds the n from A to B - 1; {how}"
        )
    return a, b


def _ends(start: str) -> str:
    return "ends" if start else "begins"


def argument_type(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Returns `parse` as a type of argparse, which shows the text of its ValueError."""

    def parsed(text: str) -> T:
        try:
            return parse(text)
        except ValueError as e:
            raise argparse.ArgumentTypeError(str(e)) from e

    return parsed

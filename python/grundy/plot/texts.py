"""Numbers and ranges of n as texts of a picture; powers are mathtext."""

from __future__ import annotations

import math


def number_text(n: int) -> str:
    """Returns n in full, with commas between groups of three digits."""
    return f"{n:,}"


def count_text(n: int, word: str) -> str:
    """Returns a number and what is counted: "1 record", "2,000 records"."""
    return f"{number_text(n)} {word}" + "s" * (n != 1)


def short_text(n: float) -> str:
    """Returns a number as a tick label: 0.01 to 999,999 as such, others as 5·10^8 (mathtext)."""
    if n == 0:
        return "0"
    if 0.01 <= abs(n) < 10**6:
        return f"{n:,.0f}" if n == int(n) else f"{n:,g}"
    exponent = math.floor(math.log10(abs(n)) + 1e-9)
    mantissa = f"{n / 10**exponent:.6g}"
    if mantissa == "1":
        return rf"$10^{{{exponent}}}$"
    return rf"${mantissa}{{\cdot}}10^{{{exponent}}}$"


def log_text(x: float) -> str:
    """Returns a tick label of a logarithmic axis: 1, 10, 10^2; 0.2, 50, 2·10^6 (mathtext)."""
    if x <= 0:
        return "0"
    exponent = math.floor(math.log10(x) + 1e-9)
    if x in (1, 10) or not math.isclose(x, 10.0**exponent):
        return short_text(x)
    return rf"$10^{{{exponent}}}$"


def range_text(a: int, b: int) -> str:
    """Returns the range a <= n < b in mathtext, with powers of 10 and 2 as such."""
    return f"n < {_bound(b)}" if a == 0 else f"{_bound(a)} ≤ n < {_bound(b)}"


def _bound(n: int) -> str:
    if n >= 10**5 and n % 10**5 == 0:
        return short_text(n)
    if n >= 2**12 and n & (n - 1) == 0:
        return rf"$2^{{{n.bit_length() - 1}}}$"
    return number_text(n)

"""The axes of a picture: ticks and their labels, linear and logarithmic, and the axis of n."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter

from .texts import log_text, short_text


def linear_axis(axis: Any, count: int = 8) -> None:
    """Gives an axis at most `count` ticks at round numbers."""
    axis.set_major_locator(
        MaxNLocator(nbins=count, steps=[1, 2, 2.5, 5, 10], integer=True, min_n_ticks=1)
    )
    axis.set_major_formatter(FuncFormatter(lambda x, _: short_text(x)))


def log_axis(axis: Any, ticks: int = 12, negative: bool = False) -> None:
    """Gives a logarithmic axis at most `ticks` ticks at powers of 10, and marks between them.

    If fewer than two powers of 10 lie on the axis, the ticks are at multiples of powers of 10, and
    if fewer than two multiples do, at round numbers. Set the limits of the axis first. There are no
    ticks below 1 unless `negative` is set.
    """
    low, high = sorted(axis.get_view_interval())
    least = low if negative else max(low, 1)
    decades = range(math.floor(math.log10(least)), math.ceil(math.log10(high)) + 1)

    def places(factors: Iterable[int]) -> list[float]:
        every = [m * 10.0**k for k in decades for m in factors]
        return [x for x in every if least * 0.999 <= x <= high * 1.001]

    minor = places(range(2, 10))
    for factors in ([1], [1, 2, 5], range(1, 10)):
        major = places(factors)
        if len(major) > 1:
            break
    else:
        major, minor = [float(x) for x in MaxNLocator(5).tick_values(least, high)], []
    axis.set_major_locator(FixedLocator(major[:: -(-len(major) // ticks)]))
    axis.set_minor_locator(FixedLocator(minor))
    axis.set_major_formatter(FuncFormatter(lambda x, _: log_text(x)))
    axis.set_minor_formatter(NullFormatter())


def is_wide(low: float, high: float) -> bool:
    """Whether at least two powers of 10 from 1 on lie in [low, high].

    With fewer, a logarithmic axis has too few labels to be read.
    """
    powers = [k for k in range(0, 20) if low <= 10**k <= high]
    return len(powers) > 1


def n_axis(axes: Axes, a: int, b: int, label: bool = True) -> None:
    """Makes the x-axis one of n for a <= n < b: logarithmic if the range is wide, else linear.

    n = 0 has no place on a logarithmic axis. It is drawn at n = 1, as the label says.
    """
    if _is_log(a, b):
        axes.set_xscale("log")
        axes.set_xlim(max(a, 0.9), b * 1.1)
        log_axis(axes.xaxis)
    else:
        margin = 0.01 * (b - a)
        axes.set_xlim(a - margin, b + margin)
        linear_axis(axes.xaxis)
    if label:
        axes.set_xlabel("n (n = 0 is drawn at n = 1)" if a == 0 and _is_log(a, b) else "n")


def n_places(n: npt.NDArray[Any], a: int, b: int) -> npt.NDArray[Any]:
    """Returns where the positions `n` of the range a <= n < b are drawn on the axis of `n_axis`."""
    return np.maximum(n, 1) if _is_log(a, b) else n


def _is_log(a: int, b: int) -> bool:
    return is_wide(max(a, 0.9), b * 1.1)


def side(axes: Axes, x: float, usual: str) -> str:
    """Returns the horizontal alignment with which a text at `x` stays in the axes.

    usual  the alignment where the text fits on both sides
    """
    place = axes.transAxes.inverted().transform(axes.transData.transform((x, 1)))[0]
    if place < 0.3:
        return "left"
    return "right" if place > 0.75 else usual


def log_steps(
    least: float, greatest: float, steps: int = 4
) -> tuple[npt.NDArray[Any], BoundaryNorm]:
    """Returns boundaries of about `steps` colours per factor of 10 around [least, greatest]."""
    low = math.floor(math.log10(least) + 1e-9)
    high = math.ceil(math.log10(greatest) * steps - 1e-9) / steps
    count = max(round((high - low) * steps), 1)
    levels = 10.0 ** (low + np.arange(count + 1) / steps)
    return levels, BoundaryNorm(levels, 256)

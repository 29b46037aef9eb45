"""The points (n, G(n)). With many values, every cell of the picture that holds a point."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .. import axis, raster, style, texts
from ..arguments import Options
from ..errors import UsageError
from ..source import Source, open_source

POINTS = 1 << 16  # maximum number of values that are drawn as points


def draw(options: Options) -> Figure:
    """Draws the points, or the cells that hold one. With a period, marks the n that differ."""
    figure = style.new_figure(options)
    frame = style.Frame(options, top=114 if options.period else 78)
    axes = frame.axes(figure)
    with open_source(options, beyond=options.period or 0) as source:
        title = f"{source.name}, {texts.range_text(source.a, source.b)}: nim-values"
        if len(source) > POINTS:
            if options.period:
                raise UsageError(
                    f"--period draws at most {POINTS} values, and the range has {len(source)};"
                    " give a smaller --range"
                )
            _cells(axes, source, options, frame)
        else:
            _points(axes, source, options)
    axes.set_xlabel("n")
    axes.set_ylabel("value G(n)")
    style.set_title(axes, options, title, pad=21 if options.period else None)
    return figure


def _cells(axes: Axes, source: Source, options: Options, frame: style.Frame) -> None:
    grid = raster.count(source, options, frame.width, frame.height // 2)
    shown = np.where(grid.counts > 0, 1.0, np.nan)
    raster.show(axes, grid, shown, frame.width, cmap=style.one_colour(style.BLUE), vmin=0, vmax=1)


def _points(axes: Axes, source: Source, options: Options) -> None:
    a, b = source.a, source.b
    values = source.values(a, b)
    n = np.arange(a, b)
    size = float(np.clip(150 / np.sqrt(len(n)), 1.1, 5))
    how: Any = {"linestyle": "", "marker": "o", "markeredgewidth": 0, "rasterized": len(n) > 4096}
    if options.period is None:
        axes.plot(n, values, color=style.BLUE, markersize=size, **how)
    else:
        for label, colour, chosen in compared(source, values, options.period):
            axes.plot(n[chosen], values[chosen], color=colour, markersize=size, label=label, **how)
        style.legend_above(axes)
    if options.log and axis.is_wide(max(a, 0.9), b):
        axes.set_xscale("log")
        axes.set_xlim(max(a, 0.9), b)
        axis.log_axis(axes.xaxis)
    else:
        margin = 0.01 * (b - a)
        axes.set_xlim(a - margin, b + margin)
        axis.linear_axis(axes.xaxis)
    top = int(values.max())
    axes.set_ylim(-0.03 * top - 0.5, 1.03 * top + 0.5)
    axis.linear_axis(axes.yaxis, 7)


def compared(
    source: Source, values: npt.NDArray[np.uint16], period: int
) -> list[tuple[str, str, npt.NDArray[np.bool_]]]:
    """Compares the values of the source with those `period` later, as far as the run has them.

    Returns label, colour and the n of each class: equal, different, and, if there are such n, those
    whose G(n + period) is not computed. Raises UsageError if that is all of them.
    """
    count = len(source.run)
    later = source.values(min(source.a + period, count), min(source.b + period, count))
    if len(later) == 0:
        raise UsageError(
            f"--period {period}: the run has {count} values, so G(n + {period}) is not computed for"
            f" any n of {source.a}..{source.b}; give a smaller --period or --range, or continue the"
            " run"
        )
    is_known = np.arange(len(values)) < len(later)
    is_other = np.zeros(len(values), bool)
    is_other[: len(later)] = values[: len(later)] != later
    last = ""
    if is_other.any():
        n = source.a + int(np.flatnonzero(is_other)[-1])
        last = f", the last at n = {texts.number_text(n)}"
    classes = [
        (f"G(n + {period}) = G(n)", style.BLUE, is_known & ~is_other),
        (f"G(n + {period}) ≠ G(n){last}", style.VERMILION, is_other),
    ]
    if not is_known.all():
        classes.append((f"G(n + {period}) not computed", style.GREY, ~is_known))
    return classes

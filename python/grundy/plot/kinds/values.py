"""The points (n, G(n)). With many values, every cell of the picture that holds a point."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .. import raster, style
from ..arguments import Options
from ..errors import UsageError
from ..source import Source, open_source

POINTS = 1 << 16  # maximum number of values that are drawn as points


def draw(options: Options) -> Figure:
    """Draws the points, or the cells that hold one. With a period, marks the n that differ."""
    figure = style.new_figure(options)
    frame = style.Frame(options)
    axes = frame.axes(figure)
    with open_source(options, beyond=options.period or 0) as source:
        title = f"{source.name}, {style.range_text(source.a, source.b)}: nim-values"
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
    style.set_title(axes, options, title)
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
        period = options.period
        later = source.values(min(a + period, len(source.run)), min(b + period, len(source.run)))
        known = len(later)
        other = np.zeros(len(n), bool)
        other[:known] = values[:known] != later
        axes.plot(
            n[~other],
            values[~other],
            color=style.BLUE,
            markersize=size,
            label=f"G(n + {period}) = G(n)",
            **how,
        )
        axes.plot(
            n[other],
            values[other],
            color=style.VERMILION,
            markersize=size * 1.15,
            label=f"G(n + {period}) ≠ G(n)"
            + (f", the last at n = {style.number_text(int(n[other][-1]))}" if other.any() else ""),
            **how,
        )
        axes.legend(
            loc="lower right",
            bbox_to_anchor=(1.0, 1.0),
            ncols=2,
            borderaxespad=0.2,
            markerscale=1.3,
        )
    if options.log:
        axes.set_xscale("log")
        axes.set_xlim(max(a, 0.9), b)
        style.log_axis(axes.xaxis)
    else:
        margin = 0.01 * (b - a)
        axes.set_xlim(a - margin, b + margin)
        style.linear_axis(axes.xaxis)
    top = int(values.max())
    axes.set_ylim(-0.03 * top - 0.5, 1.03 * top + 0.5)
    style.linear_axis(axes.yaxis, 7)

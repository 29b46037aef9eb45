"""The records: the values that are greater than all values before them in the range."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from .. import counting, style
from ..arguments import Options
from ..source import open_source


def draw(options: Options) -> Figure:
    """Draws the greatest value up to n as steps over log n, with a point at each record."""
    with open_source(options, known="maxima") as source:
        found = counting.records(source.chunks(known="maxima"))
        a, b = source.a, source.b
        title = f"{source.name}, {style.range_text(a, b)}: {style.number_text(len(found))} records"
    figure = style.new_figure(options)
    axes = style.Frame(options).axes(figure)
    last_n, last = (int(x) for x in found[-1])
    n, values = np.maximum(found[:, 0], 1), found[:, 1]  # n = 0 has no place on a log axis
    axes.step([*n, b], [*values, last], where="post", color=style.SKY)
    axes.plot(n, values, "o", color=style.BLUE, markersize=3.2, markeredgewidth=0)
    axes.annotate(
        f"{style.number_text(last)} at n = {style.number_text(last_n)}",
        (max(last_n, 1), last),
        xytext=(-6, 5),
        textcoords="offset points",
        ha="right",
        va="bottom",
        color=style.INK,
        fontsize=9,
    )
    axes.set_xscale("log")
    axes.set_xlim(max(a, 0.9), b * 1.1)
    axes.set_ylim(0, max(last * 1.12, 1))
    style.log_axis(axes.xaxis)
    style.linear_axis(axes.yaxis, 7)
    axes.grid(True, axis="y", color=style.PALE, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.set_xlabel("n")
    axes.set_ylabel("greatest value so far")
    style.set_title(axes, options, title)
    return figure

"""The first position of each value, and the values that do not occur."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from .. import axis, style, texts
from ..arguments import Options
from ..source import open_source


def draw(options: Options) -> Figure:
    """Draws a point (value, first n), and a mark below the axis for each value that is missing."""
    with open_source(options, known="first") as source:
        a, b = source.a, source.b
        first, every = source.run.first(a, b), source.run.histogram(a, b)
        rare_only = every == np.bincount(source.rares()["value"], minlength=len(every))
        common = "common" if source.has_space else "occurs"
        title = f"{source.name}, {texts.range_text(a, b)}: first position of each value"
    values = np.arange(len(first))
    found = first >= 0
    n = np.maximum(first, 1)  # n = 0 has no place on a log axis
    missing = values[~found]

    figure = style.new_figure(options)
    axes = style.Frame(options).axes(figure)
    size = float(np.clip(60 / np.sqrt(len(values)), 1.5, 4))
    rare = found & rare_only
    low = max(a, 1) * 0.25
    for chosen, colour, label in (
        (found & ~rare, style.BLUE, common),
        (rare, style.VERMILION, "rare"),
    ):
        if chosen.any():
            axes.plot(
                values[chosen],
                n[chosen],
                "o",
                color=colour,
                markersize=size,
                markeredgewidth=0,
                label=f"{label}: {texts.number_text(int(chosen.sum()))}",
            )
    if len(missing):
        axes.plot(
            missing,
            np.full(len(missing), low),
            "|",
            color=style.INK,
            markersize=7,
            markeredgewidth=0.7,
            label=f"does not occur: {texts.number_text(len(missing))}",
        )
    axes.set_yscale("log")
    top = float(n.max(initial=1))
    axes.set_ylim(low / 2, 2 * top * (top / low) ** 0.15)  # leaves room for the legend
    margin = 0.015 * len(values)
    axes.set_xlim(-margin - 0.5, len(values) - 0.5 + margin)
    axis.log_axis(axes.yaxis)
    axis.linear_axis(axes.xaxis, 12)
    axes.grid(True, axis="y", color=style.PALE, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.legend(loc="upper left", ncols=3, borderaxespad=0.2, columnspacing=2)
    axes.set_xlabel("value")
    zero = "\n(n = 0 is drawn at n = 1)" if a == 0 else ""
    axes.set_ylabel(f"first n with this value{zero}")
    style.set_title(axes, options, title)
    return figure

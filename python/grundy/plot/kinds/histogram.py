"""How often each value occurs in the range, at common and at rare positions in two colours."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from .. import axis, counting, raster, style, texts
from ..arguments import Options
from ..source import Source, open_source

BARS = 600  # maximum number of values that have a bar each


def draw(options: Options) -> Figure:
    """Draws a bar for each value (or for each group of values) on a logarithmic scale."""
    with open_source(options, known="counts") as source:
        common, rare = classes(source)
        title = (
            f"{source.name}, {texts.range_text(source.a, source.b)}: how often each value occurs"
        )
    group = -(-len(common) // BARS)
    starts = np.arange(0, len(common), group)
    common, rare = np.add.reduceat(common, starts), np.add.reduceat(rare, starts)

    figure = style.new_figure(options)
    axes = style.Frame(options).axes(figure)
    edges = [*(starts - 0.5).tolist(), float(starts[-1] + group - 0.5)]
    for counts, colour, label in (
        (common, style.BLUE, "common positions" if source.has_space else "positions"),
        (rare, style.VERMILION, "rare positions"),
    ):
        if counts.any():
            axes.stairs(
                np.where(counts > 0, counts, np.nan),
                edges,
                baseline=0.5,
                fill=True,
                color=colour,
                linewidth=0,
                label=f"{label}: {texts.number_text(int(counts.sum()))}",
            )
    axes.set_yscale("log")
    axes.set_xlim(edges[0] - 0.01 * edges[-1], edges[-1] + 0.01 * edges[-1])
    axes.set_ylim(0.5, max(int((common + rare).max()) * 8, 10))
    axis.log_axis(axes.yaxis)
    axis.linear_axis(axes.xaxis, 12)
    if source.has_space:
        axes.legend(loc="upper right", ncols=2, borderaxespad=0)
    axes.set_xlabel("value" if group == 1 else f"value, in groups of {group}")
    what = "this value" if group == 1 else "a value of the group"
    axes.set_ylabel(f"number of n with {what}")
    style.set_title(axes, options, title)
    return figure


def classes(source: Source) -> tuple[counting.Ints, counting.Ints]:
    """Counts each value where it is common, and where it is rare; discarded values count too.

    Both arrays have the same shape, and end with the greatest value of `raster.greatest`.
    """
    every = source.count(np.array([source.a, source.b]), raster.greatest(source) + 1)[0]
    rare = np.bincount(source.rares()["value"], minlength=len(every))
    return every - rare, rare

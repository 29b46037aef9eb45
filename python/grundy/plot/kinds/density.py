"""How often each value occurs in each column of n. Every value of the range is counted."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from .. import axis, raster, style, texts
from ..arguments import Options
from ..source import open_source


def draw(options: Options) -> Figure:
    """Draws the share of each value in each column, from light (rare) to dark; white is none."""
    frame = style.Frame(options, right=230)
    with open_source(options, known="counts") as source:
        grid = raster.count(source, options, frame.width, frame.height)
        title = (
            f"{source.name}, {texts.range_text(source.a, source.b)}: how often each value occurs"
        )
    shares = grid.counts / grid.sizes
    positive = shares[shares > 0]
    levels, norm = axis.log_steps(max(float(positive.min()), 1e-6), float(positive.max()))
    shown = np.where(shares > 0, np.maximum(shares, levels[0]), 0)

    figure = style.new_figure(options)
    axes = frame.axes(figure)
    image = raster.show(axes, grid, shown, frame.width, cmap=style.sequential(), norm=norm)
    axes.set_ylabel("value G(n)")
    style.set_title(axes, options, title)
    bar = frame.colour_bar(figure)
    scale = figure.colorbar(image, cax=bar, ticks=levels[::4], spacing="uniform")
    scale.ax.yaxis.set_major_formatter(FuncFormatter(lambda x, _: texts.log_text(x)))
    scale.ax.minorticks_off()
    scale.outline.set_linewidth(0.5)
    what = "value" if grid.group == 1 else f"group of {grid.group} values"
    size = int(grid.sizes.max())
    width = "" if grid.log else f" of {texts.number_text(size)} n"
    style.label_bar(scale, f"share of a {what} in a column{width}; white: none")
    return figure

"""The share of n with G(n + p) = G(n), for each p and along n.

Counting all n for each p would take (number of n) x (number of p) comparisons. Each column of the
picture therefore stands for one window: WINDOW consecutive n at the start of the column.
"""

from __future__ import annotations

import numpy as np
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from .. import axis, counting, style, texts
from ..arguments import Options
from ..errors import UsageError
from ..source import Source, open_source

LAGS = 180
WINDOW = 1 << 14
LEAST_WINDOW = 1 << 4


def draw(options: Options) -> Figure:
    """Draws the share over n and p as a map; a period is a dark row of share 1."""
    frame = style.Frame(options, right=230)
    lags = options.lags or LAGS
    with open_source(options, beyond=lags) as source:
        a, b = source.a, min(source.b, len(source.run) - lags)  # G(n + p) must be known
        if b - a < LEAST_WINDOW:
            raise UsageError(_too_few(source, lags))
        columns = min(frame.width, (b - a) // LEAST_WINDOW)
        edges = counting.linear_edges(a, b, columns)
        shares = np.empty((len(edges) - 1, lags))
        for i, (start, end) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist())):
            length = min(WINDOW, end - start)
            window = source.values(start, start + length + lags)
            shares[i] = counting.matches(window, lags) / length
            if i % 64 == 63:  # the system maps more than what is read
                source.release()
        title = f"{source.name}, {texts.range_text(a, b)}: share of n with G(n + p) = G(n)"
    group = -(-lags // frame.height)
    starts = np.arange(0, lags, group)
    shown = np.maximum.reduceat(shares, starts, axis=1)

    figure = style.new_figure(options)
    axes = frame.axes(figure)
    most = max(float(np.percentile(shown, 99.9)), 0.01)
    levels = np.linspace(0, np.ceil(most * 20) / 20, 16)
    image = axes.imshow(
        shown.T,
        extent=(a, b, 0.5, len(starts) * group + 0.5),
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        cmap=style.sequential(),
        norm=BoundaryNorm(levels, 256, extend="max" if shown.max() > levels[-1] else "neither"),
    )
    axes.set_xlim(a, b)
    axis.linear_axis(axes.xaxis)
    axis.linear_axis(axes.yaxis)
    axes.set_xlabel("n")
    axes.set_ylabel("distance p" if group == 1 else f"distance p (greatest share of {group})")
    style.set_title(axes, options, title)
    bar = frame.colour_bar(figure)
    step = 0.05 if levels[-1] < 0.45 else 0.1
    scale = figure.colorbar(
        image, cax=bar, extendfrac=0.03, ticks=np.arange(0, levels[-1] + 1e-9, step)
    )
    scale.ax.yaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{100 * x:.0f} %"))
    scale.outline.set_linewidth(0.5)
    size = min(WINDOW, int(np.diff(edges).max()))
    style.label_bar(scale, f"share of {texts.number_text(size)} consecutive n per column")
    return figure


def _too_few(source: Source, lags: int) -> str:
    """Returns an error text for a range without LEAST_WINDOW positions to compare."""
    values = texts.count_text(len(source), "value")
    if len(source) < LEAST_WINDOW:
        return f"the range has {values}; give a --range of at least {LEAST_WINDOW} values"
    return (
        f"the run has {len(source.run)} values, {LEAST_WINDOW} positions of the range and the"
        f" values up to {lags} after them are necessary; give smaller --lags, or a --range that"
        " begins earlier"
    )

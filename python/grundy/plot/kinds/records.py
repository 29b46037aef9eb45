"""The records: the values that are greater than all values before them in the range."""

from __future__ import annotations

from matplotlib.figure import Figure

from .. import axis, counting, style, texts
from ..arguments import Options
from ..source import open_source


def draw(options: Options) -> Figure:
    """Draws the greatest value up to n as steps, with a point at each record."""
    with open_source(options, known="maxima") as source:
        found = counting.records(source.chunks(maxima=True))
        a, b = source.a, source.b
        number = texts.count_text(len(found), "record")
        title = f"{source.name}, {texts.range_text(a, b)}: {number}"
    figure = style.new_figure(options)
    axes = style.Frame(options).axes(figure)
    last_n, last = (int(x) for x in found[-1])
    n, values = axis.n_places(found[:, 0], a, b), found[:, 1]
    axes.step([*n, b], [*values, last], where="post", color=style.SKY)
    axes.plot(n, values, "o", color=style.BLUE, markersize=3.2, markeredgewidth=0)
    axis.n_axis(axes, a, b)
    axes.set_ylim(0, max(last * 1.12, 1))
    align = axis.side(axes, n[-1], "right")
    axes.annotate(
        f"{texts.number_text(last)} at n = {texts.number_text(last_n)}",
        (n[-1], last),
        xytext=(6 if align == "left" else -6, 5),
        textcoords="offset points",
        ha=align,
        va="bottom",
        color=style.INK,
        fontsize=9,
    )
    axis.linear_axis(axes.yaxis, 7)
    axes.grid(True, axis="y", color=style.PALE, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.set_ylabel("greatest value so far")
    style.set_title(axes, options, title)
    return figure

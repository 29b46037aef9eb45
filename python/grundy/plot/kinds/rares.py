"""The rare positions of the sparse space: their number up to n, and their values."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from .. import axis, counting, style, texts
from ..arguments import Options
from ..errors import PlotError
from ..source import open_source

LIMIT = 1 << 20  # maximum number of rare positions that are drawn
GAP = 10  # least ratio of two successive positions between which a late group begins
LATE = 1000  # least position before such a group


def draw(options: Options) -> Figure:
    """Draws the number of rare positions up to n, and below it the value at each of them."""
    with open_source(options, known="rares") as source:
        if not source.has_space:
            raise PlotError(
                f"{options.source!r}: no sparse space is in use, so no position is rare or common;"
                " draw another kind"
            )
        found = source.rares()
        a, b = source.a, source.b
        number = texts.count_text(len(found), "rare position")
        title = f"{source.name}, {texts.range_text(a, b)}: {number}"
    if len(found) == 0:
        raise PlotError(
            f"{options.source!r}: no position of {a}..{b} is rare; give another --range"
        )
    if len(found) > LIMIT:
        raise PlotError(
            f"{options.source!r}: {len(found)} positions are rare, and at most {LIMIT} can be"
            " drawn; give a smaller --range"
        )

    figure = style.new_figure(options)
    over, under = style.Frame(options).stacked(figure, lower=0.46, gap=56)
    n, values = axis.n_places(found["n"], a, b), found["value"]
    over.step([*n, b], [*range(1, len(n) + 1), len(n)], where="post", color=style.VERMILION)
    over.set_yscale("log")
    over.set_ylim(0.8, max(len(n) * 4, 10))
    axis.log_axis(over.yaxis)
    over.set_ylabel("rare up to n" if a == 0 else f"rare from {texts.short_text(a)} to n")
    under.plot(n, values, "o", color=style.VERMILION, markersize=2.4, markeredgewidth=0, alpha=0.6)
    late = late_group(found["n"])
    if len(late):
        first, last = (texts.number_text(int(late[k])) for k in (0, -1))
        under.annotate(
            f"{texts.number_text(len(late))} from n = {first}\nto {last}",
            (late[0], values[-len(late) :].mean()),
            xytext=(-9, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=9,
        )
    axis.linear_axis(under.yaxis, 4)
    under.set_ylabel("value G(n)")
    for axes in (over, under):
        axis.n_axis(axes, a, b, label=axes is under)
        axes.grid(True, color=style.PALE, linewidth=0.5)
        axes.set_axisbelow(True)
    # The curve rises to this point and is level after it, so above left and below right are empty.
    align = axis.side(over, n[-1], "left")
    over.annotate(
        f"the last at n = {texts.number_text(int(found['n'][-1]))}",
        (n[-1], len(n)),
        xytext=(3, -9) if align == "left" else (-3, 4),
        textcoords="offset points",
        ha=align,
        va="top" if align == "left" else "bottom",
        fontsize=9,
    )
    over.tick_params(labelbottom=False)
    style.set_title(over, options, title)
    return figure


def late_group(n: counting.Ints) -> counting.Ints:
    """Returns the ascending positions after the last gap in which they grow by a factor of GAP.

    Gaps below LATE do not count: there the first positions of every game are far apart.
    """
    gaps = np.flatnonzero((n[1:] >= GAP * n[:-1]) & (n[:-1] >= LATE))
    return n[gaps[-1] + 1 :] if len(gaps) else n[:0]

"""The rare positions of the sparse space: their number up to n, and their values."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from .. import counting, style
from ..arguments import Options
from ..errors import PlotError
from ..source import open_source

LIMIT = 1 << 20  # maximum number of rare positions
GAP = 10  # least ratio of two successive positions between which a late group begins
LATE = 1000  # least position before such a group


def draw(options: Options) -> Figure:
    """Draws the number of rare positions up to n, and below it the value at each of them."""
    with open_source(options, known="rares") as source:
        if source.space is None:
            raise PlotError(
                f"{options.source!r}: the run uses no sparse space, so no position is rare or"
                " common; compute more values, or draw another kind"
            )
        space = counting.Space(*source.space)
        try:
            found = counting.rare_positions(source.chunks(known="rares"), space, LIMIT)
        except counting.TooMany as e:
            raise PlotError(
                f"{options.source!r}: more than {LIMIT} positions are rare; give a smaller --range"
            ) from e
        a, b = source.a, source.b
        number = style.count_text(len(found), "rare position")
        title = f"{source.name}, {style.range_text(a, b)}: {number}"
    if len(found) == 0:
        raise PlotError(
            f"{options.source!r}: no position of {a}..{b} is rare; give another --range"
        )

    figure = style.new_figure(options)
    over, under = style.Frame(options).stacked(figure, lower=0.46, gap=56)
    n = style.n_places(found[:, 0], a, b)
    over.step([*n, b], [*range(1, len(n) + 1), len(n)], where="post", color=style.VERMILION)
    over.set_yscale("log")
    over.set_ylim(0.8, max(len(n) * 2, 10))
    style.log_axis(over.yaxis)
    over.set_ylabel("rare up to n")
    under.plot(
        n, found[:, 1], "o", color=style.VERMILION, markersize=2.4, markeredgewidth=0, alpha=0.6
    )
    late = late_group(found[:, 0])
    if len(late):
        first, last = (style.number_text(int(late[k])) for k in (0, -1))
        under.annotate(
            f"{style.number_text(len(late))} from n = {first}\nto {last}",
            (late[0], found[-len(late) :, 1].mean()),
            xytext=(-9, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=9,
        )
    style.linear_axis(under.yaxis, 4)
    under.set_ylabel("value G(n)")
    for axes in (over, under):
        style.n_axis(axes, a, b, label=axes is under)
        axes.grid(True, color=style.PALE, linewidth=0.5)
        axes.set_axisbelow(True)
    over.annotate(
        f"the last at n = {style.number_text(int(found[-1, 0]))}",
        (n[-1], len(n)),
        xytext=(0, -9),
        textcoords="offset points",
        ha=style.side(over, n[-1], "center"),
        va="top",
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

"""Periods and preperiods of the games of a survey."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from ...rows import Row, field, whole
from .. import axis, style, texts
from ..arguments import Options
from ..errors import PlotError
from ..source import read_rows

Games = dict[tuple[int, int], list[str]]

AREA = 9  # square points of a disc for each game
CLEAR = 5  # pixels at DPI between a name and the next name or point
LIMIT = 10**18  # periods and preperiods are less
NAMED = 6  # named points with the greatest periods, and with the greatest preperiods


def draw(options: Options) -> Figure:
    """Draws a point for each pair of period and preperiod; its area grows with the games."""
    status, games = read(options.source)
    if not games:
        raise PlotError(f"{options.source!r}: no game has a period; give a survey with periods")
    figure = style.new_figure(options)
    axes = style.Frame(options).axes(figure)
    period = np.array([pair[0] for pair in games])
    preperiod = np.array([pair[1] for pair in games])
    number = np.array([len(names) for names in games.values()])
    axes.scatter(
        period, preperiod + 1, s=AREA * number, color=style.BLUE, alpha=0.55, linewidth=0, zorder=3
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(0.7, period.max() * 8)
    axes.set_ylim(0.6, (preperiod.max() + 1) * 4)
    axis.log_axis(axes.xaxis)
    axis.log_axis(axes.yaxis)
    _name(axes, games)
    axes.grid(True, color=style.PALE, linewidth=0.5)
    axes.set_axisbelow(True)
    for count in sizes(int(number.max())):
        axes.scatter(
            [],
            [],
            s=AREA * count,
            color=style.BLUE,
            alpha=0.55,
            linewidth=0,
            label=texts.count_text(count, "game"),
        )
    # The lengths of a legend are in units of its font size.
    disc = float(AREA * number.max()) ** 0.5 / style.LEGEND
    axes.legend(
        loc="lower right",
        handlelength=max(disc, 2),
        labelspacing=max(0.75 * disc, 0.9),
        borderpad=max(0.6 * disc, 0.6),
    )
    axes.set_xlabel("period")
    axes.set_ylabel("preperiod + 1")
    words = {"proved": "proved", "observed": "observed", "none": "without a period in the survey"}
    counts = ", ".join(
        f"{texts.number_text(status[key])} {word}" for key, word in words.items() if status[key]
    )
    total = texts.count_text(sum(status.values()), "game")
    style.set_title(axes, options, f"Periods of {total}: {counts}")
    return figure


def sizes(greatest: int) -> list[int]:
    """Returns the numbers of games whose discs the legend shows; the last is `greatest`."""
    return [count for count in (1, 10, 50) if 3 * count <= greatest] + [greatest]


def _name(axes: Axes, games: Games) -> None:
    """Names points with the greatest preperiods and periods, if the name overlaps no other."""
    chosen = sorted(games, key=lambda pair: pair[1])[: -NAMED - 1 : -1]
    chosen += sorted(games)[: -NAMED - 1 : -1]
    taken = []
    for pair in set(chosen):
        x, y = axes.transData.transform((pair[0], pair[1] + 1))
        radius = (AREA * len(games[pair])) ** 0.5 / 2 * axes.figure.dpi / 72
        taken.append(Bbox([[x - radius, y - radius], [x + radius, y + radius]]))
    for pair in dict.fromkeys(chosen):
        names = sorted(games[pair], key=lambda name: (len(name), name))
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        gap = 3 + 1.5 * len(names) ** 0.5
        for side, align in ((1, "left"), (-1, "right")):
            text = axes.annotate(
                f"{names[0]}{more}",
                (pair[0], pair[1] + 1),
                xytext=(side * gap, 0),
                textcoords="offset points",
                ha=align,
                va="center",
                fontsize=8,
                zorder=4,
            )
            box = text.get_window_extent().padded(CLEAR * axes.figure.dpi / style.DPI)
            if not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            text.remove()


def read(path: str) -> tuple[Counter[str], Games]:
    """Returns the number of games by status, and the games of each (period, preperiod).

    Raises PlotError unless `path` is a table of a survey.
    """
    status: Counter[str] = Counter()
    games: Games = defaultdict(list)

    def count(row: Row) -> None:
        status[field(row, "status")] += 1
        game = field(row, "game")
        if field(row, "period"):
            period, preperiod = whole(row, "period"), whole(row, "preperiod")
            if not (0 < period < LIMIT and 0 <= preperiod < LIMIT):
                raise ValueError(f"no game has period {period} and preperiod {preperiod}")
            games[period, preperiod].append(game)

    read_rows(path, "the survey.csv of a survey", count)
    return status, games

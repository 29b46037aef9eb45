"""Values per second of computing time along a run, from its journal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from .. import axis, style, texts
from ..arguments import Options
from ..errors import PlotError
from ..source import name_of, open_directory

STEPS = 100  # maximum number of steps in the picture
LEAST_SECONDS = 10  # the journal states whole seconds


class Part(NamedTuple):
    """The n from a to b - 1, computed in `seconds`."""

    a: int
    b: int
    seconds: float

    @property
    def rate(self) -> float:
        """Values per second."""
        return (self.b - self.a) / self.seconds


def draw(options: Options) -> Figure:
    """Draws the rate between records that are far enough apart in computing time."""
    run = open_directory(options)
    found = rates(list(run.journal()))
    if not found:
        raise PlotError(
            f"{options.source!r}: the run has computed for less than {LEAST_SECONDS} seconds;"
            " draw a longer run"
        )
    figure = style.new_figure(options)
    axes = style.Frame(options).axes(figure)
    edges = [found[0].a, *(part.b for part in found)]
    rate = np.array([part.rate for part in found]) / 10**6
    # The difference of two times in whole seconds is wrong by less than a second.
    seconds = np.array([part.seconds for part in found])
    axes.stairs(
        rate * seconds / (seconds - 1),
        edges,
        baseline=rate * seconds / (seconds + 1),
        fill=True,
        color=style.SKY,
        alpha=0.35,
        linewidth=0,
        label="error of times in whole seconds",
    )
    axes.stairs(rate, edges, baseline=None, color=style.BLUE, linewidth=1.2)
    axes.legend(loc="lower right")
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(0, float((rate * seconds / (seconds - 1)).max()) * 1.1)
    axis.linear_axis(axes.xaxis)
    axis.linear_axis(axes.yaxis, 7)
    axes.grid(True, axis="y", color=style.PALE, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.set_xlabel("n")
    axes.set_ylabel("million values per second")
    values = texts.count_text(int(run.last_record["count"]), "value")
    time = texts.number_text(int(run.last_record["seconds"]))
    style.set_title(axes, options, f"{name_of(run)}: {values} in {time} s of computing time")
    return figure


def rates(records: Iterable[dict[str, Any]]) -> list[Part]:
    """Returns the consecutive parts a <= n < b of a run.

    Each part takes at least LEAST_SECONDS, and the 1/STEPS part of the whole. What a
    rollback has taken back is left out, with the time that it took.
    """
    points: list[tuple[int, float]] = []
    wasted = 0.0  # seconds
    for record in records:
        count, at = int(record["count"]), float(record.get("seconds") or 0)
        went_back = bool(points) and points[-1][0] > count
        while points and points[-1][0] > count:
            points.pop()
        if points and points[-1][0] == count:
            _, before = points.pop()
            if went_back:
                wasted = at - before
        points.append((count, at - wasted))
    if not points:
        return []
    least = max(LEAST_SECONDS, (points[-1][1] - points[0][1]) / STEPS)
    found: list[Part] = []
    count, seconds = points[0]
    for n, at in points[1:]:
        if at - seconds >= least:
            found.append(Part(count, n, at - seconds))
            count, seconds = n, at
    if found and points[-1][0] > count:  # too short for a part of its own
        last = found[-1]
        found[-1] = Part(last.a, points[-1][0], last.seconds + points[-1][1] - seconds)
    return found

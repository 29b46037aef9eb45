"""Counts of a source in a grid of columns of n and rows of values, one column per pixel."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from . import axis, counting
from .arguments import Options
from .errors import UsageError
from .source import Source

SPINE_GAP = 2  # distance of the spines from an image, in points


class Grid(NamedTuple):
    """How many n each cell holds.

    counts  shape (columns, rows)
    edges   column i is the n with edges[i] <= n < edges[i + 1]; shape (columns + 1,)
    group   row r is the values from r * group to (r + 1) * group - 1
    log     whether the columns are of equal ratio instead of equal size
    """

    counts: counting.Ints
    edges: counting.Ints
    group: int
    log: bool

    @property
    def sizes(self) -> counting.Ints:
        """The number of n in each column, shape (columns, 1)."""
        return np.diff(self.edges)[:, np.newaxis]


def count(source: Source, options: Options, columns: int, rows: int) -> Grid:
    """Counts every value of the source in a grid of at most `columns` by `rows` cells.

    With options.log, n begins at 1, and the columns are of equal ratio if the range is wide enough
    for a logarithmic axis. Raises UsageError if no n is left.
    """
    a, b = source.a, source.b
    if options.log:
        if b < 2:
            raise UsageError(
                "--log draws n from 1 on, and the range holds 0 alone; leave out --log"
            )
        a = max(a, 1)
    log = options.log and axis.is_wide(a, b)
    if log:
        edges = source.snapped(counting.log_edges(a, b, columns))
    else:
        edges = counting.linear_edges(a, b, columns, source.unit)
    top = greatest(source)
    group = -(-(top + 1) // rows)
    height = -(-(top + 1) // group)
    counts = source.count(edges, height, group)
    return Grid(counts, edges, group, log)


def greatest(source: Source) -> int:
    """Returns the greatest value of the source; of the run if that is all, or has gaps."""
    if (source.a, source.b) == (0, len(source.run)) or source.unit > 1:
        return int(source.run.last_record["max_value"])
    return counting.greatest(source.chunks())


def show(
    axes: Axes, grid: Grid, cells: npt.NDArray[np.generic], columns: int, **how: Any
) -> AxesImage:
    """Shows `cells`, of the shape of grid.counts, on axes that are `columns` pixels wide.

    n runs along the x-axis and the value along the y-axis. `how` goes to Axes.imshow. The spines
    lie beside the image, not on its first column and row.
    """
    for spine in ("left", "bottom"):
        axes.spines[spine].set_position(("outward", SPINE_GAP))
    low, high = float(grid.edges[0]), float(grid.edges[-1])
    on = axes
    if grid.log:
        # Images on a logarithmic axis are distorted, so the image is on linear axes behind it.
        axes.set_xscale("log")
        axes.patch.set_visible(False)
        on = axes.figure.add_axes(axes.get_position().bounds, zorder=axes.get_zorder() - 1)
        on.set_axis_off()
        places = low * (high / low) ** ((np.arange(columns) + 0.5) / columns)
        columns_of = np.searchsorted(grid.edges, places, "right") - 1
        cells = cells[np.clip(columns_of, 0, len(cells) - 1)]
    extent = (low, high, -0.5, len(cells[0]) * grid.group - 0.5)
    image = on.imshow(
        cells.T, extent=extent, origin="lower", aspect="auto", interpolation="nearest", **how
    )
    axes.set_xlim(low, high)
    axes.set_ylim(extent[2:])
    if grid.log:
        axis.log_axis(axes.xaxis)
    else:
        axis.linear_axis(axes.xaxis)
    axis.linear_axis(axes.yaxis, 7)
    axes.set_xlabel("n")
    return image

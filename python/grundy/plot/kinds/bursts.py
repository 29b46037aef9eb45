"""Where the density of the values changes between two states, with a table of the edges."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .. import axis, counting, raster, segments, style, texts
from ..arguments import Options
from ..errors import UsageError
from ..source import open_source

BINS = 1 << 14  # maximum number of bins
LEAST_BIN = 1 << 12  # number of n in a bin, by default
ROWS = 512  # maximum number of groups of values


def _set_label(axes: Axes) -> None:
    """Labels the axis of distances with the longest text that fits, or else the shortest."""
    for text in ("distance from typical shares", "distance from\ntypical shares", "distance"):
        label = axes.set_ylabel(text, labelpad=0)
        box = axes.yaxis.get_tightbbox() or label.get_window_extent()
        if label.get_window_extent().height <= axes.bbox.height and box.x0 >= 0:
            break


def draw(options: Options) -> tuple[Figure, str]:
    """Draws the distances, and the shares of values in both states; returns the edges as text."""
    with open_source(options, known="counts") as source:
        a, b = source.a, source.b
        size = options.bin or max(default_bin(b - a), source.unit)
        if size % source.unit or a % source.unit:
            raise UsageError(
                f"the run has discarded values, and knows them in blocks of {source.unit}; give"
                " multiples of this number as --bin and as the start of --range"
            )
        bins = (b - a) // size
        if not 2 <= bins <= BINS:
            raise UsageError(
                f"{b - a} values make {bins} bins of {size}; give a --bin with 2 to {BINS} bins"
            )
        group = -(-(raster.greatest(source) + 1) // ROWS)
        edges = a + size * np.arange(bins + 1)
        rows = -(-(raster.greatest(source) + 1) // group)
        counts = source.count(edges, rows, group)
        name = source.name
    if not options.bin:
        counts, edges = segments.joined(counts, edges)
        bins, size = len(counts), int(edges[1] - edges[0])
    distance = segments.distances(counts)
    parts = segments.segments(distance)
    text = table(parts, edges)
    bursts = [part for part in parts if part.high]

    figure = style.new_figure(options)
    over, under = style.Frame(options).stacked(figure, lower=0.42, gap=170)
    middle = (edges[:-1] + edges[1:]) / 2
    for part in bursts:
        over.axvspan(
            edges[part.start], edges[part.stop], color=style.ORANGE, alpha=0.35, linewidth=0
        )
    over.plot(middle, distance, color=style.BLUE, linewidth=0.5, rasterized=True)
    over.set_xlim(a, b)
    over.set_ylim(0, float(distance.max()) * 1.12 or 1)
    axis.linear_axis(over.xaxis)
    over.set_xlabel("n", labelpad=1)
    _set_label(over)
    count = texts.count_text(len(bursts), "burst") if bursts else "no bursts found"
    style.set_title(
        over,
        options,
        f"{name}, {texts.range_text(a, b)}: {count} (bins of {texts.number_text(size)} n)",
    )

    high = np.zeros(bins, bool)
    for part in bursts:
        high[part.start : part.stop] = True
    values = (np.arange(rows + 1) * group) - 0.5
    for chosen, colour, label in (
        (~high, style.BLUE, "outside bursts" if bursts else "all bins"),
        (high, style.VERMILION, "in bursts"),
    ):
        if chosen.any():
            total = counts[chosen].sum(axis=0)
            share = total / total.sum()
            some = np.flatnonzero(share)
            under.hlines(
                share[some],
                values[some],
                values[some + 1],
                color=colour,
                linewidth=2,
                label=f"{label}: {100 * chosen.mean():.1f} % of n",
            )
    under.set_yscale("log")
    under.margins(y=0.08)
    under.autoscale_view()
    axis.log_axis(under.yaxis, 6, negative=True)
    axis.linear_axis(under.xaxis, 12)
    under.set_xlim(values[0], values[-1])
    under.set_xlabel("value G(n)" if group == 1 else f"value G(n), in groups of {group}")
    under.set_ylabel("share")
    under.legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=2, borderaxespad=0)
    return figure, text


def default_bin(count: int) -> int:
    """Returns the number of n in a bin to begin with: the least power of 2 for `count` values.

    There are at most BINS bins. A bin has at least LEAST_BIN n, so that the shares of the values
    are known well, or fewer if there would be less than 256 bins.
    """
    least = max(min(LEAST_BIN, count >> 8), 1)
    least = 1 << (least.bit_length() - 1)
    return max(1 << (-(-count // BINS) - 1).bit_length(), least)


def table(parts: list[segments.Segment], edges: counting.Ints) -> str:
    """Returns a line for each edge between two segments: n, kind, mean distances on both sides."""
    if len(parts) == 1:
        return "no edges: the bins do not have two states; try other bins with --bin"
    lines = [f"{'edge':>4}  {'n':>14}  {'burst':<6}  {'before':>7}  {'after':>7}"]
    for i, (before, after) in enumerate(zip(parts[:-1], parts[1:]), 1):
        kind = "begins" if after.high else "ends"
        lines.append(
            f"{i:>4}  {edges[after.start]:>14}  {kind:<6}  {before.distance:>7.3f}"
            f"  {after.distance:>7.3f}"
        )
    return "\n".join(lines)

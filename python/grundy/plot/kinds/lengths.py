"""The lengths of the bursts that `scripts/bursts.py` found, and of what is between the long ones.

Both are compared with an exponential distribution that begins at the least length and has the same
mean: the lengths of a process without memory. The distance is the greatest difference between the
two distribution functions. For N lengths from such a process, one distance in twenty exceeds
1.06 / sqrt(N) (H. W. Lilliefors, J. Amer. Statist. Assoc. 64, 1969, 387-389). The means of the four
quarters, in the order of n, show whether the lengths change along n.
"""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...rows import Row, whole
from .. import axis, style, texts
from ..arguments import Options
from ..errors import PlotError
from ..source import read_rows

LIMIT = 1 << 62  # all positions are less
LONG = 1 << 20  # least length of a long burst
LEAST = 4  # least number of long bursts

Lengths = npt.NDArray[np.int64]


def draw(options: Options) -> tuple[Figure, str]:
    """Draws lengths, and how many long ones exceed each; returns the distributions as text too."""
    begin, end, complete = read(options.source)
    length = end - begin
    long = length >= LONG
    if (long & complete).sum() < LEAST:
        raise PlotError(
            f"{options.source!r}: fewer than {LEAST} complete bursts have {LONG} n or more; give"
            " the bursts of a longer run"
        )
    groups = {
        "long bursts": (style.VERMILION, length[long & complete]),
        "quiet between long bursts": (style.BLUE, between(begin[long], end[long])),
    }
    before, after = correlations(begin[long], end[long])
    text = table({name: lengths for name, (_, lengths) in groups.items()})
    text += (
        f"\ncorrelation of length and quiet: {before:.3f} before, {after:.3f} after a long burst"
    )
    figure = style.new_figure(options)
    over, under = style.Frame(options).stacked(figure, lower=0.44, gap=110)
    _draw_lengths(over, begin, length)
    bursts, number = texts.count_text(len(begin), "burst"), texts.number_text(int(long.sum()))
    least = rf"$2^{{{LONG.bit_length() - 1}}}$"
    source = os.path.basename(options.source)
    title = f"{source}: {bursts}, {number} of them with {least} n or more"
    style.set_title(over, options, title)
    for name, (colour, lengths) in groups.items():
        _survival(under, lengths, colour, name)
    under.set_yscale("log")
    most = max(len(lengths) for _, lengths in groups.values())
    under.set_ylim(0.5, 30 * most)  # leaves room for the legend
    axis.log_axis(under.yaxis, 4)
    under.set_xlim(0, None)
    axis.linear_axis(under.xaxis)
    under.set_xlabel("length (number of n)")
    under.set_ylabel("number of longer\nstretches")
    under.legend(loc="upper right", ncols=2)
    return figure, text


def _draw_lengths(axes: Axes, begin: Lengths, length: Lengths) -> None:
    """Draws a point for each burst."""
    long = length >= LONG
    for chosen, colour in ((~long, style.BLUE), (long, style.VERMILION)):
        axes.plot(
            begin[chosen],
            length[chosen],
            "o",
            color=colour,
            markersize=2.4,
            markeredgewidth=0,
            alpha=0.6,
            rasterized=True,
        )
    axes.set_yscale("log")
    axis.log_axis(axes.yaxis, 6)
    axes.set_xlim(0, begin[-1] + length[-1])
    axis.linear_axis(axes.xaxis)
    axes.set_xlabel("n where the burst begins", labelpad=1)
    axes.set_ylabel("length\n(number of n)")


def between(begin: Lengths, end: Lengths) -> Lengths:
    """Returns the lengths of the stretches between successive bursts."""
    return begin[1:] - end[:-1]


def correlations(begin: Lengths, end: Lengths) -> tuple[float, float]:
    """Returns those of the lengths of bursts with the stretches before them, and after them."""
    length, quiet = end - begin, between(begin, end)
    with np.errstate(invalid="ignore"):  # of equal lengths: NaN
        before = np.corrcoef(length[1:], quiet)[0, 1]
        return before, np.corrcoef(length[:-1], quiet)[0, 1]


def distance(lengths: Lengths) -> float:
    """Returns the distance between the lengths and the exponential distribution."""
    x = np.sort(lengths)
    share = -np.expm1(-(x - x[0]) / max(float(x.mean()) - x[0], 1))
    rank = np.arange(len(x) + 1) / len(x)
    return float(max((rank[1:] - share).max(), (share - rank[:-1]).max()))


def table(groups: dict[str, Lengths]) -> str:
    """Returns a line for each group: number, lengths, and distance with the bound for it."""
    heads = f"{'mean':>9}  {'median':>9}  {'longest':>9}  {'means of the quarters':^42}"
    lines = [f"{'':25}  {'number':>6}  {heads}  distance"]
    for name, x in groups.items():
        quarters = "  ".join(f"{part.mean():>9.0f}" for part in np.array_split(x, 4) if len(part))
        lines.append(
            f"{name:25}  {len(x):>6}  {x.mean():>9.0f}  {np.median(x):>9.0f}  {x.max():>9}"
            f"  {quarters:42}  {distance(x):.3f} (1.06 / sqrt(N) = {1.06 / len(x) ** 0.5:.3f})"
        )
    return "\n".join(lines)


def _survival(axes: Axes, lengths: Lengths, colour: str, label: str) -> None:
    """Draws the number of lengths above each x, and that of the exponential distribution."""
    x = np.sort(lengths)
    mean = float(x.mean() - x[0])
    text = texts.short_text(float(f"{x.mean():.3g}"))
    axes.step(x, np.arange(len(x), 0, -1), where="pre", color=colour, linewidth=1.5, label=label)
    if mean == 0:
        return
    fit = np.array([x[0], x[0] + mean * np.log(len(x) / 0.5)])
    axes.plot(
        fit,
        len(x) * np.exp(-(fit - x[0]) / mean),
        color=colour,
        linewidth=0.8,
        linestyle="--",
        label=f"exponential, mean {text}",
    )


def read(path: str) -> tuple[Lengths, Lengths, npt.NDArray[np.bool_]]:
    """Returns the columns begin, end and complete. Raises PlotError unless the bursts ascend."""
    last = 0

    def burst(row: Row) -> tuple[int, int, bool]:
        nonlocal last
        begin, end = whole(row, "begin"), whole(row, "end")
        if not last <= begin < end < LIMIT:
            raise ValueError(f"the burst {begin}..{end} does not follow the one before it")
        last = end
        return begin, end, whole(row, "complete") != 0

    begin, end, complete = zip(*read_rows(path, "the output of bursts.py", burst))
    return np.array(begin, np.int64), np.array(end, np.int64), np.array(complete, np.bool_)

"""Figures, axes, tick labels and colours that all pictures share, and how a picture is saved.

A picture is drawn at 200 dots per inch, so that it can be shown at half its width: text of 9 points
is 25 pixels of a PNG, and 12.5 pixels of the picture as shown.
"""

from __future__ import annotations

import io
import math
import os
import tempfile
from typing import Any

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import BoundaryNorm, Colormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter

from .arguments import Options
from .errors import PlotError

DPI = 200

# Colours of Okabe and Ito, which people with colour vision deficiency can tell apart.
BLUE, VERMILION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
SKY, INK, GREY, PALE = "#56B4E9", "#222222", "#777777", "#DDDDDD"

Box = tuple[float, float, float, float]  # left, bottom, width, height; parts of the figure

RC: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "mathtext.fontset": "dejavusans",
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.labelsize": 9.5,
    "axes.labelpad": 5,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.handletextpad": 0.5,
    "lines.linewidth": 1.1,
    "path.simplify": True,
    "svg.fonttype": "path",
    "svg.hashsalt": "grundy",
}


class Frame:
    """The margins of a figure in pixels, and the size of the axes that they leave."""

    def __init__(self, options: Options, right: int = 56, bottom: int = 128) -> None:
        self.total = (options.width, options.height)
        self.left, self.bottom, self.right, self.top = 152, bottom, right, 78
        self.width = options.width - self.left - self.right
        self.height = options.height - self.bottom - self.top

    def box(self, x: float, y: float, width: float, height: float) -> Box:
        """Converts a box in pixels from the lower left corner of the figure to its fractions."""
        return x / self.total[0], y / self.total[1], width / self.total[0], height / self.total[1]

    def axes(self, figure: Figure) -> Axes:
        """Adds axes that fill the frame."""
        return figure.add_axes(self.box(self.left, self.bottom, self.width, self.height))

    def stacked(self, figure: Figure, lower: float, gap: int) -> tuple[Axes, Axes]:
        """Adds two axes above each other; the lower one has the part `lower` of the height."""
        low = int((self.height - gap) * lower)
        high = self.height - gap - low
        under = figure.add_axes(self.box(self.left, self.bottom, self.width, low))
        over = figure.add_axes(self.box(self.left, self.bottom + low + gap, self.width, high))
        return over, under


def new_figure(options: Options) -> Figure:
    """Returns an empty figure of the size in `options`."""
    figure = Figure(figsize=(options.width / DPI, options.height / DPI), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def number_text(n: int) -> str:
    """Returns n in full, with commas between groups of three digits."""
    return f"{n:,}"


def short_text(n: float) -> str:
    """Returns a number as a tick label: 20,000 below a million, then as 5·10^8 (mathtext)."""
    if n == 0:
        return "0"
    if abs(n) < 10**6:
        return f"{n:,.0f}" if n == int(n) else f"{n:,g}"
    exponent = math.floor(math.log10(abs(n)) + 1e-9)
    mantissa = f"{n / 10**exponent:.6g}"
    if mantissa == "1":
        return rf"$10^{{{exponent}}}$"
    return rf"${mantissa}{{\cdot}}10^{{{exponent}}}$"


def range_text(a: int, b: int) -> str:
    """Returns the range a <= n < b in mathtext, with powers of 10 and 2 as such."""
    return f"n < {_bound(b)}" if a == 0 else f"{_bound(a)} ≤ n < {_bound(b)}"


def _bound(n: int) -> str:
    if n >= 10**5 and n % 10**5 == 0:
        return short_text(n)
    if n >= 2**12 and n & (n - 1) == 0:
        return rf"$2^{{{n.bit_length() - 1}}}$"
    return number_text(n)


def set_title(axes: Axes, options: Options, title: str) -> None:
    """Sets the title that the command line gives, else `title`."""
    if options.title is None:
        axes.set_title(title)
    else:
        axes.set_title(options.title, parse_math=False)


def linear_axis(axis: Any, count: int = 8) -> None:
    """Gives an axis at most `count` ticks at round numbers."""
    axis.set_major_locator(MaxNLocator(nbins=count, steps=[1, 2, 2.5, 5, 10], integer=True))
    axis.set_major_formatter(FuncFormatter(lambda x, _: short_text(x)))


def log_axis(axis: Any, ticks: int = 12, negative: bool = False) -> None:
    """Gives a logarithmic axis at most `ticks` ticks at powers of 10, and marks between them.

    Set the limits of the axis first. There are no ticks below 1 unless `negative` is set.
    """
    low, high = sorted(axis.get_view_interval())
    powers = [10.0**k for k in range(math.floor(math.log10(high)) + 1) if 10**k >= low * 0.999]
    if low < 0.5 and negative:
        powers = [10.0**k for k in range(math.ceil(math.log10(low)), 0)] + powers
    if powers:
        below = [m * power for power in [powers[0] / 10, *powers] for m in range(2, 10)]
        axis.set_minor_locator(FixedLocator([x for x in below if x >= 1 or negative]))
        powers = powers[:: -(-len(powers) // ticks)]
    axis.set_major_locator(FixedLocator(powers))
    axis.set_major_formatter(FuncFormatter(lambda x, _: power_text(x)))
    axis.set_minor_formatter(NullFormatter())


def power_text(x: float) -> str:
    """Returns a power of 10 as a tick label: 1, 10, then 10^2 (mathtext)."""
    if x in (1, 10):
        return f"{x:.0f}"
    return rf"$10^{{{round(math.log10(x))}}}$" if x > 0 else "0"


def sequential() -> Colormap:
    """Returns viridis from light to dark, without its lightest yellow; below the range, white."""
    base = matplotlib.colormaps["viridis_r"]
    colours = ListedColormap(base(np.linspace(0.04, 1, 256)))
    return colours.with_extremes(under="white", bad="white")


def one_colour(colour: str) -> Colormap:
    """Returns a map of all values to one colour, and of NaN to white."""
    return ListedColormap([colour]).with_extremes(bad="white")


def log_steps(
    least: float, greatest: float, steps: int = 4
) -> tuple[npt.NDArray[Any], BoundaryNorm]:
    """Returns boundaries of about `steps` colours per factor of 10 around [least, greatest]."""
    low = math.floor(math.log10(least) + 1e-9)
    high = math.ceil(math.log10(greatest) * steps - 1e-9) / steps
    count = max(round((high - low) * steps), 1)
    levels = 10.0 ** (low + np.arange(count + 1) / steps)
    return levels, BoundaryNorm(levels, 256)


def save(figure: Figure, path: str) -> None:
    """Writes the figure to `path` as PNG (with at most 256 colours) or SVG, by its suffix.

    The file appears under its name when it is complete. Raises PlotError.
    """
    data = io.BytesIO()
    if path.lower().endswith(".svg"):
        figure.savefig(data, format="svg", metadata={"Date": None})
    else:
        data = _palette_png(figure)
    folder = os.path.dirname(path) or "."
    try:
        handle, part = tempfile.mkstemp(prefix=os.path.basename(path) + ".", dir=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data.getvalue())
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(part, 0o666 & ~mask)
            os.replace(part, path)
        except BaseException:
            os.unlink(part)
            raise
    except OSError as e:
        raise PlotError(
            f"{path!r}: {e.strerror or e}; give a file in a directory that can be written"
        ) from e


def _palette_png(figure: Figure) -> io.BytesIO:
    """Returns the figure as a PNG file with a palette, about a third of the size of one without."""
    from PIL import Image

    canvas = figure.canvas
    assert isinstance(canvas, FigureCanvasAgg)
    canvas.draw()
    image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    data = io.BytesIO()
    image.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(
        data, "PNG", optimize=True, dpi=(DPI, DPI)
    )
    return data

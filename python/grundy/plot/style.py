"""Figures, titles, legends and colours that all pictures share, and how a picture is saved.

A picture is drawn at 200 dots per inch, so that it can be shown at half its width: text of 9 points
is 25 pixels of a PNG, and 12.5 pixels of the picture as shown. A picture that is smaller than LEAST
has fewer dots per inch, so that texts and margins shrink with it: at a width of 600 pixels, text of
9 points is 12.5 pixels.
"""

from __future__ import annotations

import io
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Colormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.text import Text

from ..files import replacing
from .arguments import Options
from .errors import PlotError

DPI = 200
LEAST = (1200, 675)  # width and height in pixels from which on a picture has DPI dots per inch
EDGE = 20  # pixels at DPI between a title and the edge of the picture
LEGEND = 8.5  # points of the texts of a legend
LEAST_TITLE = 8  # points of a title that does not fit one line

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
    "legend.fontsize": LEGEND,
    "legend.frameon": False,
    "legend.handletextpad": 0.5,
    "lines.linewidth": 1.1,
    "path.simplify": True,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "grundy",
}


class Frame:
    """The margins of a figure in pixels, and the size of the axes that they leave.

    right, top  the margins at DPI dots per inch; smaller pictures have smaller ones
    """

    def __init__(self, options: Options, right: int = 56, top: int = 78) -> None:
        self.total = (options.width, options.height)
        self._scale = scale(options)
        self.left, self.right = self.pixels(152), self.pixels(right)
        self.bottom, self.top = self.pixels(128), self.pixels(top)
        self.width = options.width - self.left - self.right
        self.height = options.height - self.bottom - self.top

    def pixels(self, size: int) -> int:
        """Returns a size at DPI dots per inch in pixels of this picture."""
        return round(size * self._scale)

    def box(self, x: float, y: float, width: float, height: float) -> Box:
        """Converts a box in pixels from the lower left corner of the figure to its fractions."""
        return x / self.total[0], y / self.total[1], width / self.total[0], height / self.total[1]

    def axes(self, figure: Figure) -> Axes:
        """Adds axes that fill the frame."""
        return figure.add_axes(self.box(self.left, self.bottom, self.width, self.height))

    def stacked(self, figure: Figure, lower: float, gap: int) -> tuple[Axes, Axes]:
        """Adds two axes above each other; the lower one has the part `lower` of the height.

        gap  distance between them, in pixels at DPI dots per inch
        """
        gap = self.pixels(gap)
        low = int((self.height - gap) * lower)
        high = self.height - gap - low
        under = figure.add_axes(self.box(self.left, self.bottom, self.width, low))
        over = figure.add_axes(self.box(self.left, self.bottom + low + gap, self.width, high))
        return over, under

    def colour_bar(self, figure: Figure) -> Axes:
        """Adds axes for a colour bar in a right margin of 230 pixels."""
        x = self.left + self.width + self.pixels(28)
        return figure.add_axes(self.box(x, self.bottom, self.pixels(30), self.height))


def scale(options: Options) -> float:
    """Returns the factor of all sizes but those of the picture: 1, or less in a small picture."""
    return min(1.0, options.width / LEAST[0], options.height / LEAST[1])


def new_figure(options: Options) -> Figure:
    """Returns an empty figure of the size in `options`."""
    dpi = DPI * scale(options)
    # A millionth of a pixel more, because matplotlib rounds the number of pixels down.
    size = [(pixels + 1e-6) / dpi for pixels in (options.width, options.height)]
    figure = Figure(figsize=(size[0], size[1]), dpi=dpi, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def set_title(axes: Axes, options: Options, title: str, pad: float | None = None) -> None:
    """Sets the title that the command line gives, else `title`, at most as wide as the picture.

    A long title is set smaller, then in two lines. What does not fit two lines is replaced by "…".

    pad  distance from the axes in points, if it is not the usual one
    """
    given = bool(options.title)
    text = axes.set_title(options.title or title, pad=pad, parse_math=not given)
    figure = axes.figure
    left = axes.get_position().x0 * figure.bbox.width
    room = figure.bbox.width - left - EDGE * figure.dpi / DPI
    size = text.get_fontsize() * room / max(text.get_window_extent().width, 1)
    if size >= text.get_fontsize():
        return
    text.set_fontsize(max(size, LEAST_TITLE))
    if size < LEAST_TITLE:
        text.set_text(_two_lines(text, room))


def _two_lines(text: Text, room: float) -> str:
    """Returns the string of `text` in two lines of at most `room` pixels each."""
    whole = " ".join(text.get_text().split())
    end = _fitting(text, whole, room)
    space = whole.rfind(" ", 0, end + 1)
    end = space if space > 0 else end
    rest = whole[end:].strip()
    end_of_rest = _fitting(text, rest, room)
    if end_of_rest < len(rest):
        rest = rest[: max(_fitting(text, rest, room, "…"), 1)] + "…"
    return f"{whole[:end]}\n{rest}"


def _fitting(text: Text, string: str, room: float, end: str = "") -> int:
    """Returns how many characters of `string`, followed by `end`, fit `room` pixels."""
    low, high = 0, min(len(string), int(room))
    while low < high:
        middle = (low + high + 1) // 2
        text.set_text(string[:middle] + end)
        if text.get_window_extent().width <= room:
            low = middle
        else:
            high = middle - 1
    return low


def label_bar(bar: Colorbar, label: str) -> None:
    """Sets the label of a colour bar, at most as long as the picture is high."""
    bar.set_label(label)
    text, figure = bar.ax.yaxis.label, bar.ax.figure
    place = bar.ax.get_position()
    middle = (place.y0 + place.y1) / 2
    room = 2 * min(middle, 1 - middle) * figure.bbox.height - EDGE * figure.dpi / DPI
    text.set_fontsize(text.get_fontsize() * min(1.0, room / text.get_window_extent().height))


def legend_above(axes: Axes) -> None:
    """Adds a legend in one row between the axes and the title, at most as wide as the picture."""
    figure = axes.figure
    handles, labels = axes.get_legend_handles_labels()
    edge = EDGE * figure.dpi / DPI
    room = figure.bbox.width * (1 - axes.get_position().x0) - edge
    size = LEGEND
    for _ in range(9):  # hinted text does not shrink in proportion
        legend = axes.legend(
            handles,
            labels,
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=len(labels),
            borderaxespad=0.2,
            borderpad=0.2,
            columnspacing=1.5,
            markerscale=1.3,
            fontsize=size,
        )
        width = legend.get_window_extent().width
        if width <= room:
            return
        size *= min(0.97, room / width)


def sequential() -> Colormap:
    """Returns viridis from light to dark, without its lightest yellows; below the range, white."""
    base = matplotlib.colormaps["viridis_r"]
    colours = ListedColormap(base(np.linspace(0.12, 1, 256)))
    return colours.with_extremes(under="white", bad="white")


def one_colour(colour: str) -> Colormap:
    """Returns a map of all values to one colour, and of NaN to white."""
    return ListedColormap([colour]).with_extremes(bad="white")


def save(figure: Figure, path: str) -> None:
    """Writes the figure to `path` as PNG (with at most 256 colours), SVG or PDF, by its suffix.

    The file appears under its name when it is complete. Raises PlotError.
    """
    data = io.BytesIO()
    if path.lower().endswith(".svg"):
        figure.savefig(data, format="svg", metadata={"Date": None})
    elif path.lower().endswith(".pdf"):
        figure.savefig(data, format="pdf", metadata={"CreationDate": None})
    else:
        data = _palette_png(figure)
    try:
        with replacing(path) as file:
            file.write(data.getvalue())
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
        data, "PNG", optimize=True, dpi=(figure.dpi, figure.dpi)
    )
    return data

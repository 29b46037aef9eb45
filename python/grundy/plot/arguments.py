"""The command line. Needs neither NumPy nor matplotlib, so that `--help` works without them."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .. import notation
from ..files import refuse_run_directory
from ..notation import argument_type
from .errors import UsageError

WIDTH, HEIGHT = 1760, 990
LEAST_SIZE, GREATEST_SIZE = 400, 20_000
GREATEST_LAGS = 10_000  # 1.6 GB of memory in the widest picture
SUFFIXES = (".png", ".svg", ".pdf")

# What each kind draws. The kind `x` is in the module `kinds/x.py`.
KINDS = {
    "values": "points (n, G(n)); with many values, every cell of the picture that holds a point",
    "density": "how often each value occurs in each column of n; every value is counted",
    "records": "the values that are greater than all values before them",
    "rares": "the rare positions of the sparse space, their number and their values",
    "histogram": "how often each value occurs",
    "first": "the first position of each value, and the values that do not occur",
    "match": "the share of n with G(n + p) = G(n), for each p and along n",
    "bursts": "where the density changes; prints a table of the edges",
    "lengths": "lengths of bursts; prints their distribution (SOURCE is the output of bursts.py)",
    "periods": "periods and preperiods of a survey (SOURCE is its survey.csv)",
    "rate": "values per second of computing time along a run (SOURCE is a run directory)",
}
OF_VALUES = [kind for kind in KINDS if kind not in ("lengths", "periods", "rate")]

_EPILOG = """\
SOURCE is a run directory, or else a game, which the program computes first (2^20 values, or as many
as --range needs). Numbers: 1e9, 2^35, 3*2^24, 10M. The suffix of FILE,
.png, .svg or .pdf, is the format. Values are read in pieces, so memory does not grow with the run.

exit status: 0 drawn, 1 nothing to draw or FILE cannot be written, 2 usage, 3 damage, 130, 143 or
129 stopped by Ctrl-C, TERM or HUP
"""


@dataclass(frozen=True)
class Options:
    """The command line. `width` and `height` are pixels of a PNG; an SVG has the same shape."""

    kind: str
    source: str
    output: str
    width: int = WIDTH
    height: int = HEIGHT
    title: str | None = None
    range: tuple[int, int] | None = None  # n, half open
    program: str | None = None  # path of the program that computes a game
    log: bool = False  # logarithmic axis of n
    period: int | None = None  # values: the period to compare with
    lags: int = 0  # match: the greatest p; 0 for the default
    bin: int = 0  # bursts: number of n in a bin; 0 for the default


def parse(argv: Sequence[str], prog: str) -> Options:
    """Returns the options in `argv`. Raises UsageError, and SystemExit(0) after `--help`.

    prog  the command as a user types it, for the usage and the examples of the help
    """
    options = Options(**vars(_parser(prog).parse_args(_joined(argv))))
    if os.path.splitext(options.output)[1].lower() not in SUFFIXES:
        raise UsageError(
            f"{options.output!r}: the suffix of the file is its format; use .png, .svg or .pdf"
        )
    try:
        refuse_run_directory(options.output)
    except ValueError as e:
        raise UsageError(str(e)) from e
    return options


def _joined(argv: Sequence[str]) -> list[str]:
    """Joins --range and a range that begins with "-", which argparse would take for an option."""
    joined: list[str] = []
    for argument in argv:
        if joined[-1:] == ["--range"] and re.match("-[0-9.]", argument):
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        raise UsageError(f"{message}; '{self.prog} --help' shows the options")


def _parser(prog: str) -> _Parser:
    parser = _Parser(
        prog=prog,
        description="Draws a picture of the values of a run or a game.",
        epilog=_EPILOG + f"\nExample: {prog} density runs/grundy -o density.png",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    for kind, text in KINDS.items():
        source = {"lengths": "bursts.csv", "periods": "survey.csv"}.get(kind, "runs/grundy")
        sub = kinds.add_parser(
            kind,
            help=text,
            description=f"Draws {text}.",
            epilog=_EPILOG + f"\nExample: {prog} {kind} {source} -o {kind}.png",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        _add_options(sub, kind)
    return parser


def _add_options(sub: argparse.ArgumentParser, kind: str) -> None:
    sub.add_argument("source", metavar="SOURCE", help="run directory, game, or CSV file")
    sub.add_argument("-o", dest="output", metavar="FILE", required=True, help="file to write")
    size = argument_type(_size)
    sub.add_argument(
        "--width", type=size, default=WIDTH, metavar="PIXELS", help=f"width [default: {WIDTH}]"
    )
    sub.add_argument(
        "--height", type=size, default=HEIGHT, metavar="PIXELS", help=f"height [default: {HEIGHT}]"
    )
    sub.add_argument("--title", help="title, instead of the one that names game and range")
    if kind not in OF_VALUES:
        return
    sub.add_argument(
        "--range",
        type=argument_type(notation.half_open),
        metavar="A..B",
        help="range of n [default: all committed values of a run, the first 2^20 of a game]",
    )
    sub.add_argument(
        "--program",
        metavar="PATH",
        help="program that computes a game"
        " [default: the variable GRUNDY, else the installed program]",
    )
    if kind in ("values", "density"):
        sub.add_argument(
            "--log",
            action="store_true",
            help="logarithmic axis of n, from 1 on; linear if it would have fewer than two labels",
        )
    if kind == "values":
        sub.add_argument(
            "--period",
            type=argument_type(notation.positive),
            metavar="P",
            help="mark the n with G(n + P) other than G(n)",
        )
    if kind == "match":
        sub.add_argument(
            "--lags",
            type=argument_type(_lags),
            default=0,
            metavar="P",
            help=f"greatest p, at most {GREATEST_LAGS} [default: 180]",
        )
    if kind == "bursts":
        sub.add_argument(
            "--bin",
            type=argument_type(notation.positive),
            default=0,
            metavar="SIZE",
            help="number of n in a bin [default: a power of 2 with at most 2^14 bins, doubled until"
            " two states are clear]",
        )


def _lags(text: str) -> int:
    value = notation.positive(text)
    if value > GREATEST_LAGS:
        raise ValueError(f"{value} distances; use 1 to {GREATEST_LAGS}")
    return value


def _size(text: str) -> int:
    value = notation.number(text)
    if not LEAST_SIZE <= value <= GREATEST_SIZE:
        raise ValueError(f"{value} pixels; use {LEAST_SIZE} to {GREATEST_SIZE}")
    return value

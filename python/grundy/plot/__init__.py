"""Draws pictures of nim-values: `python -m grundy plot KIND RUN|GAME -o FILE`.

arguments   the command line (without NumPy and matplotlib)
errors      the errors that end the program with a message
source      a run directory, or a game that the program computes
reader      the reader of run directories
counting    counts in one pass over the values
raster      counts in a grid of columns of n and rows of values
segments    finds where counts change
style       what all pictures share
kinds       one module per kind of picture: draw(options) returns the figure
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from . import arguments
from .errors import PlotError, UsageError

STOPPING = ("SIGTERM", "SIGHUP")


class Stopped(BaseException):
    """A signal ends the program. The one argument is its number."""


def main(
    argv: Sequence[str] | None = None, prog: str = "plot", command: str = "python3 -m grundy plot"
) -> int:
    """Draws the picture that `argv` (default: the command line) asks for.

    prog     name of the program in messages
    command  the command as a user types it, for `--help`

    Returns the exit status: 0 drawn, 1 nothing to draw or the file cannot be written, 2 usage,
    3 damage; 130, 143 or 129 stopped by Ctrl-C, SIGTERM or SIGHUP, after the program that computes
    a game has been ended and its files removed. Raises SystemExit(0) after `--help`.
    """
    try:
        with _signals_raise():
            return _main(sys.argv[1:] if argv is None else argv, prog, command)
    except UsageError as e:
        return _fail(prog, str(e), 2)
    except PlotError as e:
        return _fail(prog, str(e), 1)
    except KeyboardInterrupt:
        return _fail(prog, "stopped; no file was written", 130)
    except Stopped as e:
        return _fail(prog, "stopped; no file was written", 128 + int(e.args[0]))


@contextmanager
def _signals_raise() -> Iterator[None]:
    """Raises Stopped at the first of the signals STOPPING that would end this process.

    Signals can be handled in the main thread only; elsewhere this does nothing.
    """
    names = STOPPING if threading.current_thread() is threading.main_thread() else ()
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    numbers = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]

    def stop(number: int, frame: FrameType | None) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)  # while files are removed
        raise Stopped(number)

    for number in numbers:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _main(argv: Sequence[str], prog: str, command: str) -> int:
    options = arguments.parse(argv, command)
    try:
        import importlib

        import matplotlib
        import numpy  # noqa: F401
    except ImportError as e:
        raise PlotError(
            f"{e}; install it with 'python3 -m pip install numpy matplotlib', or use"
            " 'uv run scripts/plot.py'"
        ) from e
    from ..stdout import print_text
    from . import style
    from .reader import Damage, RunError

    kind = importlib.import_module(f"{__name__}.kinds.{options.kind}")
    try:
        with matplotlib.rc_context(style.RC):
            drawn = kind.draw(options)
            figure, text = drawn if isinstance(drawn, tuple) else (drawn, "")
            style.save(figure, options.output)
    except Damage as e:
        return _fail(prog, str(e), 3)
    except RunError as e:
        raise PlotError(str(e)) from e
    failed = print_text(text) if text else None
    if failed:
        raise PlotError(f"stdout cannot be written: {failed}; {options.output!r} was written")
    return 0


def _fail(prog: str, text: str, status: int) -> int:
    print(f"{prog}: {text}", file=sys.stderr)
    return status

"""The commands of the scripts `bursts.py`, `find_period.py`, `open_games.py` and `results.py`."""

from __future__ import annotations

import argparse
import os
import re
import sys
from typing import Callable


def number(text: str) -> int:
    """Parses a whole number > 0 as `grundy` does: 16777216, 2^24, 1e7, 10M, 10_000_000."""
    if m := re.fullmatch(r"([0-9]{1,18})\^([0-9]{1,2})", text.replace("_", "")):
        value = int(int(m[1]) ** int(m[2]))
    elif m := re.fullmatch(r"([0-9]{1,18})(?:e([0-9]{1,2})|([kMGT]))?", text.replace("_", "")):
        value = int(m[1]) * 10 ** (int(m[2] or 0) or {"k": 3, "M": 6, "G": 9, "T": 12}.get(m[3], 0))
    else:
        value = 0
    if not 0 < value < 1 << 63:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number above 0 such as 1000000, 2^24 or 10M"
        )
    return value


def has_numpy(command: str) -> bool:
    """Whether NumPy can be imported. If not, prints one line of advice on stderr."""
    try:
        import numpy  # noqa: F401
    except ImportError as e:
        print(
            f"{command}: NumPy cannot be imported ({' '.join(str(e).split())}); install it with"
            " `python3 -m pip install numpy`, or start this script with `uv run`",
            file=sys.stderr,
        )
        return False
    return True


def exit_status(main: Callable[[], int]) -> int:
    """Calls `main` and returns the exit status of the script.

    A closed pipe is no error: its reader, such as `head`, has read enough.
    """
    try:
        status = main()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Python flushes stdout at exit, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0

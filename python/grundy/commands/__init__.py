"""The commands of the scripts `bursts.py`, `find_period.py`, `open_games.py` and `results.py`."""

from __future__ import annotations

import os
import sys
from typing import Callable


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

"""The commands of the scripts `bursts.py`, `find_period.py`, `open_games.py` and `results.py`."""

from __future__ import annotations

import os
import sys
from typing import Callable

from ..stdout import discard_rest


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
    """Calls `main` and returns the exit status of the script: 130 after Ctrl-C.

    A closed pipe is no error: its reader, such as `head`, has read enough. Other errors of stdout,
    such as a full disk, are one line on stderr and status 1.
    """
    name = os.path.basename(sys.argv[0])
    if sys.stdout is None:
        print(f"{name}: stdout is closed; redirect it to a file or a pipe", file=sys.stderr)
        return 1
    try:
        try:
            return main()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        discard_rest()
        return 0
    except OSError as error:
        if error.filename is not None:
            raise  # of another file than stdout
        discard_rest()
        print(
            f"{name}: stdout cannot be written: {error.strerror or error}; write to a file on a"
            " disk with free space",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        print(f"{name}: stopped", file=sys.stderr)
        return 130

"""The commands of the scripts `bursts.py`, `find_period.py`, `open_games.py` and `results.py`."""

from __future__ import annotations

import sys


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

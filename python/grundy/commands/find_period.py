"""`scripts/find_period.py`: searches a run directory or a .npy file of nim-values for a period.

Exit status: 0 observed or none, 1 nothing to read or stdout cannot be written, 2 usage, 3 damage,
130 stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence

from ..errors import Damage, RunError
from ..notation import argument_type, part, positive
from . import has_numpy


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description="Search a table of nim-values for a period. Observes periods, proves none.",
        epilog="example: find_period.py runs/kayles",
    )
    parser.add_argument(
        "table", metavar="DIR|FILE.npy", help="run directory, or .npy file of nim-values"
    )
    parser.add_argument(
        "--tail",
        type=argument_type(part),
        default="1/2",
        metavar="PART",
        help="search the last PART of the table [default: %(default)s]",
    )
    parser.add_argument(
        "--window",
        type=argument_type(positive),
        default="2^24",
        metavar="N",
        help="search at most N values [default: %(default)s]",
    )
    parser.add_argument(
        "--repeats",
        type=argument_type(positive),
        default="2",
        metavar="K",
        help="require K whole periods [default: %(default)s]",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object with the keys game, status, period, preperiod, max_value,"
        " checked_through, searched",
    )
    options = parser.parse_args(argv)
    if not has_numpy("find_period.py"):
        return 1
    from ..period import Array, checked, describe, find_period
    from ..run import open_run

    try:
        checked(options.tail, options.window, options.repeats)
    except ValueError as e:
        parser.error(str(e))
    path = options.table
    try:
        table = Array(path) if os.path.isfile(path) else open_run(path)
        result = find_period(table, options.tail, options.window, options.repeats)
        print(json.dumps(result) if options.json else describe(table, result))
    except RunError as e:
        print(f"find_period.py: {e}", file=sys.stderr)
        return 3 if isinstance(e, Damage) else 1
    return 0

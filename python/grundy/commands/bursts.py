"""`scripts/bursts.py`: prints the bursts of a run as CSV.

Exit status: 0 done, 1 nothing to read, 2 usage, 3 damage.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence

from ..errors import Damage, RunError
from . import has_numpy

EPILOG = """\
columns: begin and end (half open, multiples of 4096), length, large (number of large values),
loud (number of blocks of 4096 with at least 1 % of large values), rares (number of rare positions),
complete (0 if fewer than 49 blocks of 4096 were searched before or after the burst)

If the run has discarded values, those after the last discarded one are searched.

example: bursts.py runs/grundy --large 176 > bursts.csv
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description="Print the bursts of a run, the stretches in which large values are frequent.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("directory", metavar="DIR", help="run directory")
    parser.add_argument(
        "--large",
        type=int,
        metavar="V",
        default=176,
        help="least large value [default: %(default)s, for Grundy's game]",
    )
    options = parser.parse_args(arguments)
    if not 0 < options.large < 1 << 16:
        parser.error(f"--large {options.large}: give a value from 1 to 65535")
    if not has_numpy("bursts.py"):
        return 1
    from ..bursts import find_bursts
    from ..run import open_run

    rows = csv.writer(sys.stdout, lineterminator="\n")
    try:
        run = open_run(options.directory)
        rows.writerow(["begin", "end", "length", "large", "loud", "rares", "complete"])
        for burst in find_bursts(run, options.large, *run.kept[-1]):
            begin, end, *counts, complete = burst
            rows.writerow([begin, end, end - begin, *counts, int(complete)])
    except RunError as error:
        print(f"bursts.py: {error}", file=sys.stderr)
        return 3 if isinstance(error, Damage) else 1
    return 0

"""`scripts/bursts.py`: prints the bursts of a run as CSV.

Exit status: 0 done, 1 nothing to read or stdout cannot be written, 2 usage, 3 damage, 130 stopped.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence

from ..errors import Damage, RunError
from ..notation import argument_type, number, part, positive
from . import has_numpy

EPILOG = """\
A block is loud if at least the share S of its values is large. A burst begins and ends with a loud
block, and has at most GAP consecutive blocks that are not loud.

columns: begin and end (half open, multiples of the size of a block), length, large (number of
large values), loud (number of loud blocks), rares (number of rare positions), complete (1 if more
than GAP blocks were searched on each side; before the burst, all blocks from n = 0 suffice)

If the run has discarded values, those after the last discarded one are searched.

examples: bursts.py runs/grundy > bursts.csv
          bursts.py runs/0.172 --large 220 --block 2^18 --share 0.101 --gap 0 > bursts.csv
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
        type=argument_type(number),
        metavar="V",
        default=176,
        help="least large value [default: %(default)s, for Grundy's game]",
    )
    parser.add_argument(
        "--block",
        type=argument_type(positive),
        metavar="N",
        default=1 << 12,
        help="number of values in a block [default: %(default)s]",
    )
    parser.add_argument(
        "--share",
        type=argument_type(part),
        metavar="S",
        default="0.01",
        help="least share of large values in a loud block [default: %(default)s]",
    )
    parser.add_argument(
        "--gap",
        type=argument_type(number),
        metavar="GAP",
        default=48,
        help="maximum number of consecutive blocks of a burst that are not loud"
        " [default: %(default)s]",
    )
    options = parser.parse_args(arguments)
    if not 0 < options.large < 1 << 16:
        parser.error(f"--large {options.large}: give a value from 1 to 65535")
    if not 0 < options.share <= 1:
        parser.error(f"--share {options.share}: give a share above 0 and up to 1, such as 0.01")
    if not has_numpy("bursts.py"):
        return 1
    from ..bursts import Blocks, find_bursts
    from ..run import open_run

    rows = csv.writer(sys.stdout, lineterminator="\n")
    try:
        blocks = Blocks(options.block, options.share, options.gap)
        run = open_run(options.directory)
        rows.writerow(["begin", "end", "length", "large", "loud", "rares", "complete"])
        start, stop = run.kept[-1] if run.kept else (run.count, run.count)
        for burst in find_bursts(run, options.large, start, stop, blocks):
            begin, end, *counts, complete = burst
            rows.writerow([begin, end, end - begin, *counts, int(complete)])
    except RunError as error:
        print(f"bursts.py: {error}", file=sys.stderr)
        return 3 if isinstance(error, Damage) else 1
    return 0

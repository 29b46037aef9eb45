"""`scripts/results.py`: prints the results of a run as Markdown.

The run may continue meanwhile: if it discards values before they are read, the command opens the
run again at its newest record.

Exit status: 0 done, 1 nothing to read, values discarded too fast or stdout cannot be written,
2 usage, 3 damage, 130 stopped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ..errors import Damage, RunError
from . import has_numpy

EXAMPLE = "example: results.py runs/grundy --command 'grundy run grundy --to 2^34 --keep 1G' > FILE"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description="Print the results of a run as Markdown.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "directory", metavar="DIR", help="run directory; the run may continue meanwhile"
    )
    parser.add_argument("--command", metavar="TEXT", help="state the command that made the run")
    parser.add_argument(
        "--commit", metavar="HASH", help="state the commit of the program that made the run"
    )
    parser.add_argument(
        "--note",
        metavar="TEXT",
        action="append",
        default=[],
        help="add a line, for instance the wall time; repeatable",
    )
    options = parser.parse_args(arguments)
    if not has_numpy("results.py"):
        return 1
    from ..report import markdown, read

    try:
        run, found, digests = read(options.directory)
    except RunError as error:
        print(f"results.py: {error}", file=sys.stderr)
        return 3 if isinstance(error, Damage) else 1
    print(markdown(run, found, digests, options.command, options.commit, options.note))
    return 0

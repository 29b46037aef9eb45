"""`python -m grundy ARGUMENTS` runs the program, `python -m grundy plot` draws pictures."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from typing import NoReturn

from .program import find_program
from .stdout import print_text

HELP = (["--help"], ["-h"], ["help"])
MORE_HELP = """
A command of the Python package: 'python3 -m grundy plot' draws pictures of a run or a game; see
'python3 -m grundy plot --help'."""


def main(arguments: list[str]) -> NoReturn:
    """Replaces this process by the program, or runs a command of the package and exits."""
    if arguments[:1] == ["plot"]:
        sys.exit(importlib.import_module(".plot", "grundy").main(arguments[1:]))
    program = find_program()
    if program is None:
        sys.exit(
            "grundy: the program was not found beside this package, nor on PATH; install it with"
            " `cargo install --path .`, or name it in the variable GRUNDY"
        )
    sys.stdout.flush()
    try:
        if arguments in HELP:
            status = subprocess.run([program, *arguments], check=False).returncode
            failed = print_text(MORE_HELP)
            sys.exit(f"grundy: stdout cannot be written: {failed}" if failed else status)
        os.execv(program, [program, *arguments])
    except OSError as e:
        sys.exit(f"grundy: {program!r}: {e.strerror}; set GRUNDY to the path of the program")


if __name__ == "__main__":
    main(sys.argv[1:])

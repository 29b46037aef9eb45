"""`python -m grundy ARGUMENTS` runs the program or a command of this package.

`plot` draws pictures, `find-period` searches a .npy file or a run for a period, and `bursts` lists
the bursts of large values.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from typing import NoReturn

from .commands import exit_status
from .program import find_program
from .stdout import print_text

HELP = (["--help"], ["-h"], ["help"])
MORE_HELP = """
Commands of the Python package: 'python3 -m grundy plot' draws pictures of a run or a game,
'find-period' searches a run or a .npy file for a period, 'bursts' lists the bursts of a run; see
'python3 -m grundy plot --help', and so on."""
COMMANDS = {"bursts": ".commands.bursts", "find-period": ".commands.find_period"}


def main(arguments: list[str]) -> NoReturn:
    """Replaces this process by the program, or runs a command of the package and exits."""
    if arguments[:1] == ["plot"]:
        sys.exit(importlib.import_module(".plot", "grundy").main(arguments[1:]))
    if arguments[:1] and arguments[0] in COMMANDS:
        sys.argv[0] = f"grundy {arguments[0]}"  # the name in the messages of the command
        module = importlib.import_module(COMMANDS[arguments[0]], "grundy")
        sys.exit(exit_status(lambda: module.main(arguments[1:])))
    program = find_program()
    if program is None:
        sys.exit(
            "grundy: the program was not found beside this package, nor on PATH; install it with"
            " `cargo install --path .`, or name it in the variable GRUNDY"
        )
    sys.stdout.flush()
    # The interpreter with which `publish` draws pictures.
    os.environ.setdefault("GRUNDY_PYTHON", sys.executable or "python3")
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

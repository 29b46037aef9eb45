"""`python -m grundy ARGUMENTS` runs the program, `python -m grundy plot` draws pictures."""

from __future__ import annotations

import importlib
import os
import sys
from typing import NoReturn

from .program import find_program


def main(arguments: list[str]) -> NoReturn:
    """Replaces this process by the program, or runs a command of the package and exits."""
    if arguments[:1] == ["plot"]:
        sys.exit(importlib.import_module(".plot", "grundy").main(arguments[1:]))
    program = find_program()
    if program is None:
        sys.exit(
            "grundy: the program was not found beside this package, nor on PATH; install it with"
            " `cargo install --path .`"
        )
    sys.stdout.flush()
    os.execv(program, [program, *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])

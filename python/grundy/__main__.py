"""`python -m grundy ARGUMENTS` runs the program, `python -m grundy plot` draws pictures."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import sysconfig
from typing import NoReturn


def find_program() -> str | None:
    """Returns the path of the program: that of this package, or the first on PATH; None without."""
    target = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    user = "posix_user" if os.name == "posix" else "nt_user"
    directories = [
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", user),
        os.path.join(target, "bin"),  # pip install --target
    ]
    for directory in directories:
        path = os.path.join(directory, "grundy" + (sysconfig.get_config_var("EXE") or ""))
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return shutil.which("grundy")


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
